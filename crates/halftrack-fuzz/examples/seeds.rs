//! Writes what corpora begin with into `fuzz/corpus/`, beside what is there.

use std::collections::BTreeMap;
use std::path::Path;

fn main() -> std::io::Result<()> {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus");
    let mut numbers = BTreeMap::new();
    for (target, seed) in halftrack_fuzz::seeds() {
        let folder = corpus.join(target);
        std::fs::create_dir_all(&folder)?;
        let number = numbers.entry(target).or_insert(0);
        *number += 1;
        std::fs::write(folder.join(format!("seed-{number:03}")), seed)?;
    }
    for (target, count) in numbers {
        println!("{count:4} {target}");
    }
    Ok(())
}
