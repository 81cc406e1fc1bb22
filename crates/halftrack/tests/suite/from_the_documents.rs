//! `docs/FROM_THE_DOCUMENTS.md` holds: each file is there and has the names that its row gives it, each test exists, and no
//! name, requirement or scenario of the five documents has been dropped.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn document() -> String {
    fs::read_to_string(workspace().join("docs/FROM_THE_DOCUMENTS.md")).unwrap()
}

/// Every Rust file below `folder`, as one text.
fn source_below(folder: &Path) -> String {
    let mut all = String::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            all.push_str(&source_below(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            all.push_str(&fs::read_to_string(&path).unwrap());
        }
    }
    all
}

/// What stands between backticks.
fn quoted(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

/// The cells of each row of the tables below the heading `section` and its subheadings, with the nearest heading.
fn rows(document: &str, section: &str) -> Vec<(String, Vec<String>)> {
    let start = document.find(&format!("\n## {section}\n")).unwrap_or_else(|| panic!("no section {section}"));
    let section = &document[start + 1..];
    let section = &section[..section.find("\n## ").unwrap_or(section.len())];
    let (mut heading, mut rows) = (String::new(), vec![]);
    for line in section.lines() {
        if let Some(title) = line.strip_prefix("### ") {
            title.clone_into(&mut heading);
        }
        let Some(row) = line.strip_prefix("| ").and_then(|line| line.strip_suffix(" |")) else { continue };
        rows.push((heading.clone(), row.split(" | ").map(|cell| cell.trim().to_owned()).collect()));
    }
    rows
}

/// Whether `text` has `word` as a whole identifier.
fn has_word(text: &str, word: &str) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    text.match_indices(word)
        .any(|(at, _)| !text[..at].ends_with(is_part) && !text[at + word.len()..].starts_with(is_part))
}

#[test]
fn each_name_stands_in_the_file_that_its_row_gives() {
    let document = document();
    let rows = rows(&document, "Names");
    let mut checked = 0;
    for (_, cells) in rows.iter().filter(|(_, cells)| cells.len() == 3 && cells[0] != "in the documents") {
        let [theirs, ours, files] = cells.as_slice() else { continue };
        let mut text = String::new();
        for file in quoted(files) {
            let path = workspace().join(file);
            text.push_str(&fs::read_to_string(&path).unwrap_or_else(|problem| panic!("{file}: {problem}")));
        }
        assert!(!text.is_empty(), "{theirs}: the row gives no file");
        let identifiers = quoted(ours).flat_map(|name| name.split("::"));
        for identifier in identifiers {
            // The crate itself is named in its manifest, not in its source.
            let known = has_word(&text, identifier) || identifier == "halftrack";
            assert!(known, "{theirs}: `{identifier}` is not in {files}");
            checked += 1;
        }
    }
    assert!(checked > 100, "the tables of names are gone: {checked} names");
}

/// Every identifier of the five documents, and the terms that they define. Kept here so that no row is lost unnoticed.
const NAMES: [&str; 66] = [
    "AccumulateWithElapsedTime",
    "AcknowledgedMoveTick",
    "ApplyTankMovementToPredictedState",
    "CombatEvent",
    "DefaultMessageDeliveryPolicyResolver",
    "FixedUpdate",
    "HighFrequencySync",
    "IReadOnlyList<PredictedMoveStep>",
    "Mathf.Min",
    "MessageManager",
    "MoveInput",
    "PlayerState",
    "PredictedMoveStep",
    "PredictedMoveStep.Input",
    "RUDPClient",
    "ReliableOrdered",
    "ReplayPendingInputs",
    "SessionManager",
    "ShootInput",
    "SimulatedDurationSeconds",
    "SimulationInterval",
    "ThrottleInput",
    "Time.fixedDeltaTime",
    "TurnInput",
    "forward(heading)",
    "heading(t+dt)",
    "position(t+dt)",
    "remaining",
    "replayInputs",
    "serverStepSeconds",
    "throttleSpeed",
    "turnSpeed",
    "acknowledged movement tick",
    "authoritative baseline",
    "authoritative snapshot",
    "authoritative transform state",
    "bounded correction",
    "bounded-correction threshold",
    "business message types",
    "clock-sync strategy",
    "control-plane messages",
    "controlled player",
    "correction budget",
    "correction tail",
    "default shared resolver",
    "delivery policy",
    "diagnostics",
    "envelope",
    "fire-input path",
    "gameplay baseline",
    "gameplay truth",
    "integration wiring",
    "latest-wins stale filter",
    "liveness or RTT",
    "pending-input buffer",
    "predicted simulation pose",
    "presentation smoothing",
    "primary reliable transport",
    "replay buffer",
    "residual error",
    "server authoritative movement cadence",
    "server-tick sample",
    "smoothed clock data",
    "snap threshold",
    "sync transport",
    "zero-vector",
];

#[test]
fn no_name_of_the_documents_is_missing() {
    let document = document();
    let theirs: Vec<_> = rows(&document, "Names").into_iter().map(|(_, cells)| cells[0].clone()).collect();
    for name in NAMES {
        let identifier = !name.contains(' ') && !name.contains('-');
        let stands = |cell: &String| match identifier && name != "diagnostics" && name != "envelope" {
            true => quoted(cell).any(|quoted| quoted == name),
            false => cell.contains(name),
        };
        assert!(theirs.iter().any(stands), "{name} is in no row of the names");
    }
}

/// Whether `source` declares `name` as a test.
fn is_test(source: &str, name: &str) -> bool {
    source.match_indices(&format!("fn {name}(")).any(|(at, _)| {
        let before = source[..at].rsplit("fn ").next().unwrap_or_default();
        before.contains("#[test]") || before.contains("#[tokio::test")
    })
}

#[test]
fn each_requirement_and_scenario_has_a_test_that_exists() {
    let document = document();
    let source = source_below(&workspace().join("crates"));
    let mut counts = BTreeMap::<(String, String), usize>::new();
    for (title, cells) in rows(&document, "Requirements and scenarios") {
        let [kind, scenario, tests] = cells.as_slice() else { continue };
        assert!(quoted(tests).next().is_some(), "{title}, {scenario}: no test is named");
        for test in quoted(tests) {
            assert!(is_test(&source, test), "{title}, {scenario}: there is no test `{test}`");
        }
        *counts.entry((title, kind.clone())).or_default() += 1;
    }
    let expected = [
        ("client-prediction-replay", 2, 6),
        ("client-prediction-cadence", 2, 3),
        ("local-player-reconciliation", 2, 5),
        ("network-sync-strategy", 6, 16),
    ];
    for (title, requirements, scenarios) in expected {
        let count = |kind: &str| counts.get(&(title.to_owned(), kind.to_owned())).copied();
        assert_eq!(
            (count("Requirement"), count("Scenario")),
            (Some(requirements), Some(scenarios)),
            "{title}"
        );
    }
}

/// Outside the tables too.
#[test]
fn each_path_and_each_qualified_name_exists() {
    let document = document();
    let paths: Vec<_> = quoted(&document).filter(|word| word.starts_with("crates/")).collect();
    assert!(paths.len() > 60, "{} paths", paths.len());
    for path in paths {
        assert!(
            workspace().join(path).exists(),
            "docs/FROM_THE_DOCUMENTS.md names `{path}`, which is not there"
        );
    }
    let source = source_below(&workspace().join("crates"));
    for name in quoted(&document).filter(|word| word.contains("::")) {
        // Arguments are for the reader.
        let path = name.split('(').next().unwrap_or(name);
        let known = path.split("::").all(|part| has_word(&source, part));
        assert!(known, "docs/FROM_THE_DOCUMENTS.md names `{name}`, which is nowhere in the code");
    }
}
