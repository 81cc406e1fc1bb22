//! What `web/dist` is made of: every source file with a hash, so that anybody can tell whether it is up to date without
//! building it. Also part of `crates/tanks-web/tests/suite/dist.rs`, so it knows nothing but the standard library.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Where the list is kept.
pub(crate) const LIST: &str = "web/dist/sources.txt";

/// Directories with all that is in them, and single files.
const SOURCES: [&str; 21] = [
    "crates/halftrack/Cargo.toml",
    "crates/halftrack/src",
    "crates/halftrack-derive/Cargo.toml",
    "crates/halftrack-derive/src",
    "crates/halftrack-flight/Cargo.toml",
    "crates/halftrack-flight/src",
    "crates/halftrack-netem/Cargo.toml",
    "crates/halftrack-netem/src",
    "crates/tanks/Cargo.toml",
    "crates/tanks/src",
    "crates/tanks-theatre/Cargo.toml",
    "crates/tanks-theatre/src",
    "crates/tanks-web/Cargo.toml",
    "crates/tanks-web/src",
    "web/harness.html",
    "web/index.html",
    "web/package-lock.json",
    "web/package.json",
    "web/public",
    "web/src",
    "web/tsconfig.json",
];
/// Made of the others.
const MADE: &str = "web/src/wasm";

/// The list as it should be, of the workspace at `root`: a hash and a name to each line.
pub(crate) fn list(root: &Path) -> io::Result<String> {
    let mut files = vec![];
    for source in SOURCES.into_iter().chain(["web/vite.config.ts"]) {
        gather(root, Path::new(source), &mut files)?;
    }
    let mut lines = BTreeMap::new();
    for file in files {
        let name = file.to_string_lossy().replace('\\', "/");
        lines.insert(name, hash(&fs::read(root.join(&file))?));
    }
    let locked = locked(root, &fs::read_to_string(root.join("Cargo.lock"))?)?;
    lines.insert(
        "Cargo.lock, as far as tanks-web and tanks-theatre depend on it".to_owned(),
        hash(locked.as_bytes()),
    );
    let mut list = String::new();
    for (name, hash) in lines {
        let _ = writeln!(list, "{hash:016x}  {name}");
    }
    Ok(list)
}

/// Names that are in one list only, or with different hashes.
pub(crate) fn differences(one: &str, other: &str) -> Vec<String> {
    let (one, other): (BTreeSet<_>, BTreeSet<_>) = (one.lines().collect(), other.lines().collect());
    let names = one.symmetric_difference(&other).filter_map(|line| line.split_once("  "));
    names.map(|(_, name)| name.to_owned()).collect::<BTreeSet<_>>().into_iter().collect()
}

fn gather(root: &Path, at: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    let path = root.join(at);
    if at == Path::new(MADE) || !path.exists() {
        return Ok(());
    }
    if path.is_file() {
        files.push(at.to_owned());
        return Ok(());
    }
    for entry in fs::read_dir(path)? {
        gather(root, &at.join(entry?.file_name()), files)?;
    }
    Ok(())
}

/// FNV-1a: it notices changes, and is no defence.
fn hash(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        // A checkout may have other line ends.
        let next = (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
        if *byte == b'\r' { hash } else { next }
    })
}

/// The versions that tanks-web and tanks-theatre are built with, from a lockfile.
fn locked(root: &Path, lockfile: &str) -> io::Result<String> {
    let mut packages: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for package in lockfile.split("[[package]]").skip(1) {
        let name = package.lines().find_map(|line| line.strip_prefix("name = "));
        if let Some(name) = name {
            packages.entry(name.trim_matches('"')).or_default().push(package.trim());
        }
    }
    let (mut found, mut next) = (BTreeMap::new(), ["tanks-web", "tanks-theatre"].map(str::to_owned).to_vec());
    while let Some(name) = next.pop() {
        if found.contains_key(&name) {
            continue;
        }
        let entries = packages.get(name.as_str()).map_or(&[][..], Vec::as_slice);
        let wanted = dependencies(root, &name)?;
        for entry in entries {
            let listed = entry.split_once("dependencies = [").map_or("", |(_, list)| list);
            let listed =
                listed.lines().filter_map(|line| line.trim().strip_prefix('"')?.split(['"', ' ']).next());
            next.extend(
                listed
                    .filter(|name| wanted.as_ref().is_none_or(|wanted| wanted.contains(*name)))
                    .map(str::to_owned),
            );
        }
        // Of our own, only the version counts: their development needs others.
        let text: String = match wanted {
            Some(_) => String::new(),
            None => entries.join("\n"),
        };
        found.insert(name, text);
    }
    Ok(found.into_iter().map(|(name, text)| format!("{name}\n{text}\n")).collect())
}

/// What one of our own crates depends on, but for development; `None` if it is not ours.
fn dependencies(root: &Path, name: &str) -> io::Result<Option<BTreeSet<String>>> {
    let manifest = root.join("crates").join(name).join("Cargo.toml");
    if !manifest.exists() {
        return Ok(None);
    }
    let (mut names, mut inside) = (BTreeSet::new(), false);
    for line in fs::read_to_string(manifest)?.lines() {
        if line.starts_with('[') {
            inside = line.ends_with("dependencies]") && !line.contains("dev-dependencies");
        } else if let (true, Some(name)) = (inside, line.split(['.', ' ', '=']).next()) {
            names.insert(name.to_owned());
        }
    }
    Ok(Some(names))
}
