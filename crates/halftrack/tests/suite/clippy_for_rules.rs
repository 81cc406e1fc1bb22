//! `docs/clippy-for-rules.toml` is valid: clippy knows every path in it and reports every use.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use toml::Table;

fn lints() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/clippy-for-rules.toml")
}

fn entries(list: &str) -> Vec<(String, String)> {
    let table: Table = fs::read_to_string(lints()).unwrap().parse().unwrap();
    let text = |entry: &toml::Value, key: &str| entry[key].as_str().unwrap().to_owned();
    table[list].as_array().unwrap().iter().map(|entry| (text(entry, "path"), text(entry, "reason"))).collect()
}

/// A function that names everything that is banned, one thing on each line.
fn offender() -> String {
    let mut code = String::from("#![allow(unused)]\npub fn rules() {\n");
    for (path, _) in entries("disallowed-types") {
        let arguments = if path.ends_with("Map") { "<u8, u8>" } else { "" };
        let arguments = if path.ends_with("Set") { "<u8>" } else { arguments };
        code += &format!("    let _: Option<{path}{arguments}> = None;\n");
    }
    for (path, _) in entries("disallowed-methods") {
        let generics = match path.as_str() {
            "std::env::var" => "::<&str>",
            "std::thread::spawn" => "::<fn(), ()>",
            _ => "",
        };
        code += &format!("    let _ = {path}{generics};\n");
    }
    // Exact everywhere: allowed.
    code + "    let _ = (2f64.sqrt().floor().ceil().round().trunc().abs().mul_add(2.0, 1.0), 1f32.copysign(2.0));\n}\n"
}

/// Runs clippy on a crate of one file, as a game's author would.
#[test]
fn clippy_reports_every_banned_path_and_no_other() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("clippy_for_rules");
    fs::create_dir_all(folder.join("src")).unwrap();
    fs::copy(lints(), folder.join("clippy.toml")).unwrap();
    // A workspace of its own: the folder may lie inside ours.
    let manifest = "[package]\nname = \"rules\"\nedition = \"2024\"\n[workspace]\n";
    fs::write(folder.join("Cargo.toml"), manifest).unwrap();
    let code = offender();
    fs::write(folder.join("src/lib.rs"), &code).unwrap();

    let mut clippy = Command::new(env!("CARGO"));
    clippy.args(["clippy", "--offline", "--quiet", "--message-format=short"]).current_dir(&folder);
    // This test may itself run under clippy's wrapper or with flags that are not for this crate.
    for name in
        ["RUSTC_WORKSPACE_WRAPPER", "RUSTFLAGS", "CARGO_ENCODED_RUSTFLAGS", "CLIPPY_CONF_DIR", "CLIPPY_ARGS"]
    {
        clippy.env_remove(name);
    }
    let output = clippy.env("CARGO_TARGET_DIR", folder.join("target")).output().unwrap();
    let report = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{report}");
    assert!(!report.contains("clippy.toml"), "a path that names nothing:\n{report}");

    for (number, line) in (1..).zip(code.lines()) {
        let place = format!("src/lib.rs:{number}:");
        let reported =
            report.lines().any(|report| report.starts_with(&place) && report.contains("disallowed"));
        let banned = line.trim().starts_with("let _") && !line.contains("sqrt()");
        assert_eq!(reported, banned, "{line}\n{report}");
    }
}

#[test]
fn every_reason_says_what_to_use() {
    let entries: Vec<_> =
        entries("disallowed-types").into_iter().chain(entries("disallowed-methods")).collect();
    assert!(entries.len() >= 40);
    for (path, reason) in entries {
        let (why, instead) = reason.split_once("; ").unwrap_or_else(|| panic!("{path}: {reason}"));
        assert!(!why.is_empty() && !instead.is_empty(), "{path}: {reason}");
    }
}
