//! Core's modules know only those below them: the graph of their imports has no cycle.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// Which modules of the crate each of its top-level modules imports, tests left out.
fn imports() -> BTreeMap<String, BTreeSet<String>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut graph: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for file in sources(&root) {
        let inside = file.strip_prefix(&root).unwrap();
        let name = inside.iter().next().unwrap().to_str().unwrap().trim_end_matches(".rs").to_owned();
        if name != "lib" {
            graph.entry(name).or_default().extend(mentioned(&fs::read_to_string(&file).unwrap()));
        }
    }
    let names: BTreeSet<String> = graph.keys().cloned().collect();
    for (name, imported) in &mut graph {
        imported.retain(|other| other != name);
        let unknown: Vec<_> = imported.difference(&names).collect();
        assert!(
            unknown.is_empty(),
            "`{name}` imports {unknown:?} from the crate's root: name the module instead"
        );
    }
    graph
}

fn sources(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let of = |path: PathBuf| if path.is_dir() { sources(&path) } else { vec![path] };
    entries.flat_map(of).filter(|path| !is_test(path)).collect()
}

fn is_test(path: &Path) -> bool {
    path.ends_with("tests.rs")
        || path.ends_with("snapshot/round_trip.rs")
        || path.ends_with("snapshot/bodies_tests.rs")
}

/// The first names behind `crate::`, outside comments and unit tests.
fn mentioned(source: &str) -> BTreeSet<String> {
    let code = source.split("#[cfg(test)]\nmod ").next().unwrap();
    let code = code.split("#[cfg(test)]\npub(crate) mod ").next().unwrap();
    let lines = code.lines().map(|line| line.split("//").next().unwrap());
    let code: String = lines.filter(|line| !line.starts_with("extern")).collect::<Vec<_>>().join("\n");
    let names = code.split("crate::").skip(1).map(|rest| {
        let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
        rest[..end].to_owned()
    });
    names.collect()
}

/// A module that reaches itself, and the way it does.
fn cycle(graph: &BTreeMap<String, BTreeSet<String>>) -> Option<Vec<String>> {
    fn search<'a>(
        graph: &'a BTreeMap<String, BTreeSet<String>>,
        name: &'a str,
        path: &mut Vec<&'a str>,
        done: &mut BTreeSet<&'a str>,
    ) -> Option<Vec<String>> {
        if let Some(at) = path.iter().position(|on_path| *on_path == name) {
            return Some(path[at..].iter().map(|name| (*name).to_owned()).collect());
        }
        if !done.insert(name) {
            return None;
        }
        path.push(name);
        let found = graph[name].iter().find_map(|next| search(graph, next, path, done));
        path.pop();
        found
    }
    let mut done = BTreeSet::new();
    graph.keys().find_map(|name| search(graph, name, &mut vec![], &mut done))
}

#[test]
fn no_module_imports_itself_through_others() {
    let graph = imports();
    assert!(graph.len() > 30, "these are not all modules: {:?}", graph.keys());
    assert!(graph["client"].contains("predict") && graph["predict"].contains("game"));
    assert_eq!(cycle(&graph), None);
}

#[test]
fn a_cycle_is_found_and_named() {
    let graph = |edges: &[(&str, &str)]| {
        let mut graph: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for (from, to) in edges {
            graph.entry((*to).to_owned()).or_default();
            graph.entry((*from).to_owned()).or_default().insert((*to).to_owned());
        }
        graph
    };
    assert_eq!(cycle(&graph(&[("a", "b"), ("a", "c"), ("b", "c")])), None);
    let found = cycle(&graph(&[("a", "b"), ("b", "c"), ("c", "b")]));
    assert_eq!(found, Some(vec!["b".to_owned(), "c".to_owned()]));
}
