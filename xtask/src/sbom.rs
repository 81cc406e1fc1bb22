//! The software bill of materials of the program `tanks`, as CycloneDX JSON: every crate that is compiled into the server or
//! into the wasm of its page, and the library that the page itself brings.
//!
//! `cargo-cyclonedx` lists one target's crates. The program embeds a page that was built for another target, with a library
//! from npm.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

/// A crate whose dependencies are part of the program, and the target it is compiled for.
const ROOTS: [(&str, &str); 3] = [
    ("tanks-server", "x86_64-unknown-linux-gnu"),
    ("tanks-web", "wasm32-unknown-unknown"),
    ("tanks-theatre", "wasm32-unknown-unknown"),
];

/// Packages of npm whose code is in `web/dist`; the others only build it.
const PAGE: [&str; 1] = ["uplot"];

/// Writes the bill to `file`.
pub(crate) fn write(file: &Path) -> Result<(), String> {
    let lock = read("Cargo.lock")?;
    let checksums = checksums(&lock);
    let mut components = BTreeMap::new();
    for (root, target) in ROOTS {
        let metadata = metadata(target)?;
        for package in shipped(&metadata, root)? {
            let component = component(&metadata, &package, &checksums)?;
            components.insert(component["purl"].to_string(), component);
        }
    }
    let packages: Value = parse(&read("web/package-lock.json")?)?;
    for name in PAGE {
        let package = &packages["packages"][format!("node_modules/{name}")];
        let version = package["version"].as_str().ok_or(format!("{name} is not in web/package-lock.json"))?;
        let purl = format!("pkg:npm/{name}@{version}");
        components.insert(
            purl.clone(),
            json!({
                "type": "library", "bom-ref": purl, "purl": purl, "name": name, "version": version,
                "licenses": [{ "expression": package["license"] }],
            }),
        );
    }
    let bill = json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {
            "component": { "type": "application", "name": "tanks", "version": env!("CARGO_PKG_VERSION") },
        },
        "components": components.values().collect::<Vec<_>>(),
    });
    let text = serde_json::to_string_pretty(&bill).map_err(|problem| problem.to_string())?;
    std::fs::write(file, text + "\n")
        .map_err(|problem| format!("cannot write {}: {problem}", file.display()))?;
    println!("{} components: {}", components.len(), file.display());
    Ok(())
}

fn read(path: &str) -> Result<String, String> {
    std::fs::read_to_string(crate::workspace().join(path))
        .map_err(|problem| format!("cannot read {path}: {problem}"))
}

fn parse(text: &str) -> Result<Value, String> {
    serde_json::from_str(text).map_err(|problem| problem.to_string())
}

fn metadata(target: &str) -> Result<Value, String> {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["metadata", "--locked", "--format-version", "1", "--filter-platform", target]);
    let output = cargo.current_dir(crate::workspace()).output().map_err(|problem| problem.to_string())?;
    if !output.status.success() {
        return Err(format!("cargo metadata failed:\n{}", String::from_utf8_lossy(&output.stderr)));
    }
    parse(&String::from_utf8_lossy(&output.stdout))
}

/// Ids of all packages that `root` is compiled with: neither tests nor build scripts are shipped.
fn shipped(metadata: &Value, root: &str) -> Result<BTreeSet<String>, String> {
    let nodes: BTreeMap<&str, &Value> =
        array(&metadata["resolve"]["nodes"]).filter_map(|node| Some((node["id"].as_str()?, node))).collect();
    let is_root = |package: &&Value| package["name"] == root && package["source"].is_null();
    let start = array(&metadata["packages"]).find(is_root).and_then(|package| package["id"].as_str());
    let mut todo = vec![start.ok_or(format!("{root} is not in the workspace"))?];
    let mut found = BTreeSet::new();
    while let Some(id) = todo.pop() {
        if !found.insert(id.to_owned()) {
            continue;
        }
        let dependencies = nodes.get(id).map(|node| array(&node["deps"])).into_iter().flatten();
        let compiled =
            |dependency: &&Value| array(&dependency["dep_kinds"]).any(|kind| kind["kind"].is_null());
        todo.extend(dependencies.filter(compiled).filter_map(|dependency| dependency["pkg"].as_str()));
    }
    Ok(found)
}

fn component(metadata: &Value, id: &str, checksums: &BTreeMap<String, String>) -> Result<Value, String> {
    let package = array(&metadata["packages"]).find(|package| package["id"] == id);
    let package = package.ok_or(format!("cargo metadata has no package {id}"))?;
    let (name, version) = (text(&package["name"]), text(&package["version"]));
    let purl = format!("pkg:cargo/{name}@{version}");
    let hashes: Vec<_> = checksums
        .get(&format!("{name} {version}"))
        .map(|content| json!({ "alg": "SHA-256", "content": content }))
        .into_iter()
        .collect();
    Ok(json!({
        "type": "library", "bom-ref": purl, "purl": purl, "name": name, "version": version,
        // An old way to write a choice.
        "licenses": [{ "expression": text(&package["license"]).replace('/', " OR ") }],
        "hashes": hashes,
    }))
}

/// Checksums of the lock file by `name version`.
fn checksums(lock: &str) -> BTreeMap<String, String> {
    let field = |block: &str, key: &str| {
        let line = block.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(" = "))?;
        Some(line.trim_matches('"').to_owned())
    };
    lock.split("[[package]]")
        .filter_map(|block| {
            let name = format!("{} {}", field(block, "name")?, field(block, "version")?);
            Some((name, field(block, "checksum")?))
        })
        .collect()
}

fn array(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}
