//! Every corpus is replayed: what once failed stays repaired, and what is reached stays reached.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use halftrack_fuzz::TARGETS;

fn fuzz() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz")
}

/// Files of a folder, in order.
fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap_or_else(|problem| panic!("{}: {problem}", folder.display()));
    let mut files: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

fn names(folder: &Path) -> BTreeSet<String> {
    files(folder).iter().map(|path| path.file_stem().unwrap().to_string_lossy().into_owned()).collect()
}

#[test]
fn every_input_of_every_corpus_is_survived() {
    for (name, target) in TARGETS {
        let folder = fuzz().join("corpus").join(name);
        let inputs = files(&folder);
        assert!(!inputs.is_empty(), "{name} has no corpus");
        for input in inputs {
            let bytes = fs::read(&input).unwrap();
            let survived = std::panic::catch_unwind(|| target(&bytes));
            assert!(survived.is_ok(), "{name} fails: see {}", input.display());
        }
    }
}

#[test]
fn targets_programs_and_corpora_are_the_same() {
    let targets: BTreeSet<_> = TARGETS.iter().map(|(name, _)| (*name).to_owned()).collect();
    assert_eq!(names(&fuzz().join("corpus")), targets);
    assert_eq!(names(&fuzz().join("fuzz_targets")), targets);
    let manifest = fs::read_to_string(fuzz().join("Cargo.toml")).unwrap();
    for name in &targets {
        assert!(manifest.contains(&format!("name = \"{name}\"")), "fuzz/Cargo.toml has no program {name}");
    }
}

/// A corpus is for the tests, which have seconds: what a night of fuzzing finds is minimised first.
#[test]
fn corpora_are_small() {
    for (name, _) in TARGETS {
        let inputs = files(&fuzz().join("corpus").join(name));
        let bytes: u64 = inputs.iter().map(|input| fs::metadata(input).unwrap().len()).sum();
        assert!(inputs.len() <= 60 && bytes <= 150_000, "{name}: {} files, {bytes} bytes", inputs.len());
    }
}
