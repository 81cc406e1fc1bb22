//! The documents say what is so: every id has its test, every citation its id, every path its file.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn read(path: &str) -> String {
    fs::read_to_string(workspace().join(path)).unwrap_or_else(|problem| panic!("{path}: {problem}"))
}

/// Every Rust file below `folder`.
fn sources(folder: &Path, found: &mut Vec<(PathBuf, String)>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = fs::read_to_string(&path).unwrap();
            found.push((path, text));
        }
    }
}

fn crates() -> Vec<(PathBuf, String)> {
    let mut found = vec![];
    sources(&workspace().join("crates"), &mut found);
    assert!(found.len() > 20);
    found
}

/// `FAMILY-00`, as it stands in documents and citations.
fn is_id(word: &str) -> bool {
    let digits = |number: &str| number.len() == 2 && number.bytes().all(|byte| byte.is_ascii_digit());
    word.split_once('-').is_some_and(|(family, number)| {
        family.len() > 1 && family.bytes().all(|byte| byte.is_ascii_uppercase()) && digits(number)
    })
}

/// Ids of the spec, each with the test that it names.
fn spec() -> BTreeMap<String, String> {
    let mut ids = BTreeMap::new();
    for line in read("docs/SPEC.md").lines() {
        let cells: Vec<_> = line.split('|').map(str::trim).collect();
        if let ["", id, .., test, ""] = cells.as_slice()
            && is_id(id)
        {
            let test = test.trim_matches('`').to_owned();
            assert!(ids.insert((*id).to_owned(), test).is_none(), "{id} stands twice in docs/SPEC.md");
        }
    }
    assert!(ids.len() >= 25, "docs/SPEC.md has lost its tables: {ids:?}");
    ids
}

#[test]
fn every_id_of_the_spec_has_the_test_that_it_names() {
    let sources = crates();
    for (id, test) in spec() {
        let prefix = id.to_lowercase().replace('-', "_");
        assert!(test.starts_with(&format!("{prefix}_")), "{id} names `{test}`, which is not named after it");
        let declared = format!("fn {test}(");
        let is_test = |text: &str| {
            text.split(&declared)
                .next()
                .filter(|before| before.len() < text.len())
                .is_some_and(|before| before.rsplit("fn ").next().unwrap_or(before).contains("#[test]"))
        };
        assert!(sources.iter().any(|(_, text)| is_test(text)), "{id}: there is no test `{test}`");
    }
}

#[test]
fn every_complaint_has_its_test() {
    let sources = crates();
    let text = read("docs/COMPLAINTS.md");
    let tests: Vec<_> = text.split('`').skip(1).step_by(2).filter(|word| !word.contains('/')).collect();
    assert!(tests.len() >= 24, "docs/COMPLAINTS.md has lost its tables");
    for test in tests {
        let declared = format!("fn {test}(");
        assert!(sources.iter().any(|(_, text)| text.contains(&declared)), "there is no test `{test}`");
    }
}

#[test]
fn every_citation_is_of_an_id_in_the_spec() {
    let spec = spec();
    let mut cited = 0;
    for (path, text) in crates() {
        for (number, line) in text.lines().enumerate() {
            let Some((_, citation)) = line.trim().split_once("// spec: ") else { continue };
            let words = citation.split(|c: char| !(c.is_ascii_alphanumeric() || c == '-'));
            let ids: Vec<_> = words.filter(|word| is_id(word)).collect();
            // This file speaks of citations without making any.
            if path.ends_with("documents.rs") {
                continue;
            }
            let place = format!("{}:{}", path.display(), number + 1);
            assert!(!ids.is_empty(), "{place} cites nothing: {citation}");
            for id in ids {
                assert!(spec.contains_key(id), "{place} cites {id}, which docs/SPEC.md does not have");
                cited += 1;
            }
        }
    }
    assert!(cited >= 15, "only {cited} citations");
}

#[test]
fn every_path_in_the_architecture_exists() {
    let text = read("ARCHITECTURE.md");
    let paths: Vec<_> = text.split('`').skip(1).step_by(2).filter(|word| word.contains('/')).collect();
    assert!(paths.len() >= 20, "ARCHITECTURE.md names too few places: {paths:?}");
    for path in paths {
        assert!(workspace().join(path).exists(), "ARCHITECTURE.md names `{path}`, which is not there");
    }
}

#[test]
fn every_module_is_in_the_architecture() {
    let text = read("ARCHITECTURE.md");
    for (path, _) in crates() {
        let path = path.strip_prefix(workspace()).unwrap().to_string_lossy().into_owned();
        let Some((_, inside)) = path.split_once("/src/") else { continue };
        let place = path.trim_end_matches("/mod.rs");
        let named = text.contains(&format!("`{place}`")) || text.contains(&format!("`{place}/`"));
        // A folder stands for what is in it; `lib.rs` is the map of its crate.
        let folder = Path::new(place).parent().map(|folder| folder.to_string_lossy().into_owned());
        let in_folder =
            inside.contains('/') && folder.is_some_and(|folder| text.contains(&format!("`{folder}/`")));
        assert!(named || in_folder || inside == "lib.rs", "ARCHITECTURE.md does not name `{place}`");
    }
}

/// The program that attacks a server says of itself what `docs/SECURITY.md` says of it: the same attacks, in the same words.
#[test]
fn every_attack_has_its_documented_answer() {
    let mut made = vec![];
    let mut files = vec![];
    sources(&workspace().join("crates/tanks-hostile/src/attacks"), &mut files);
    for (_, text) in &files {
        let Some(list) = text.split("attacks! {").nth(1).and_then(|rest| rest.split("\n}").next()) else {
            continue;
        };
        // "name", "what" => function;
        let words: Vec<_> = list.split('"').skip(1).step_by(2).collect();
        made.extend(words.chunks_exact(2).map(|pair| (pair[0].to_owned(), pair[1].to_owned())));
    }
    let mut documented = vec![];
    for line in read("docs/SECURITY.md").lines() {
        let cells: Vec<_> = line.split('|').map(str::trim).collect();
        if let ["", name, what, answer, ""] = cells.as_slice()
            && name.starts_with('`')
        {
            assert!(!answer.is_empty(), "{name} has no answer in docs/SECURITY.md");
            documented.push((name.trim_matches('`').to_owned(), (*what).to_owned()));
        }
    }
    made.sort();
    documented.sort();
    assert!(made.len() >= 50, "the attacks have lost their lists: {made:?}");
    assert_eq!(made, documented);
}

/// The layouts in the protocol are those at the top of the files that read and write them.
#[test]
fn the_protocol_has_the_layouts_of_the_code() {
    has_the_layouts_of(
        "docs/PROTOCOL.md",
        &[
            "crates/halftrack/src/snapshot/header.rs",
            "crates/halftrack/src/snapshot/own.rs",
            "crates/halftrack/src/snapshot/gaps.rs",
            "crates/halftrack/src/snapshot/encoder.rs",
            "crates/halftrack/src/snapshot/section.rs",
            "crates/halftrack/src/model/code.rs",
        ],
    );
    has_the_layouts_of(
        "docs/FLIGHT.md",
        &["crates/halftrack-flight/src/report.rs", "crates/halftrack-flight/src/call.rs"],
    );
}

fn has_the_layouts_of(document: &str, files: &[&str]) {
    let protocol = read(document);
    for file in files {
        let text = read(file);
        let layout = text.split("//! ```text\n").nth(1).and_then(|rest| rest.split("//! ```").next());
        let layout = layout.unwrap_or_else(|| panic!("{file} has no layout"));
        for line in layout.lines() {
            let line = line.trim_start_matches("//!").trim();
            assert!(protocol.contains(line), "{document} does not have this line of {file}: {line}");
        }
    }
}
