//! The page that the server gives out is made of the sources that are here.

#[path = "../../../../xtask/src/sources.rs"]
mod sources;

use std::path::Path;

#[test]
fn dist_is_up_to_date() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let made_of = std::fs::read_to_string(root.join(sources::LIST)).unwrap_or_default();
    let changed = sources::differences(&made_of, &sources::list(&root).unwrap());
    assert!(
        changed.is_empty(),
        "web/dist is not up to date: run `cargo xtask web`\n  {}",
        changed.join("\n  ")
    );
}

#[test]
fn a_list_tells_every_change() {
    let one = "01  a\n02  b\n03  c\n";
    assert_eq!(sources::differences(one, one), [""; 0]);
    assert_eq!(sources::differences(one, "01  a\n05  b\n04  d\n"), ["b", "c", "d"]);
    assert_eq!(sources::differences("", "01  a\n"), ["a"]);
}
