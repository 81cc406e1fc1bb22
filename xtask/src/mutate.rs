//! Rules broken on purpose, one at a time: the tests must see each.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::workspace;

struct Mutation {
    name: &'static str,
    what: &'static str,
    file: &'static str,
    right: &'static str,
    wrong: &'static str,
}

const MUTATIONS: [Mutation; 3] = [
    Mutation {
        name: "heading-after-position",
        what: "a tank moves along the heading it had before the step",
        file: "crates/tanks/src/rules/tank.rs",
        right: "(heading, forward(heading) * way)",
        wrong: "(heading, forward(tank.heading) * way)",
    },
    Mutation {
        name: "microsecond-dropped",
        what: "every substep is a microsecond short",
        file: "crates/halftrack/src/replay.rs",
        right: "            span,\n",
        wrong: "            span: span - 1,\n",
    },
    Mutation {
        name: "tick-too-many-pruned",
        what: "a state takes the tick after its own out of the pending ones",
        file: "crates/halftrack/src/input/pending.rs",
        right: "acknowledged.next().since(self.first) as usize",
        wrong: "acknowledged.next().next().since(self.first) as usize",
    },
];

/// The names, with what each breaks.
pub(crate) fn list() -> String {
    MUTATIONS.iter().fold(String::from("cargo xtask mutate NAME, with one of:\n"), |mut list, mutation| {
        let _ = writeln!(list, "  {:24} {}", mutation.name, mutation.what);
        list
    })
}

/// Runs the tests on one: fails when they do, which is right.
pub(crate) fn one(name: &str) -> Result<(), String> {
    let mutation = MUTATIONS.iter().find(|mutation| mutation.name == name);
    let mutation = mutation.ok_or_else(|| format!("there is no mutation `{name}`\n{}", list()))?;
    let copy = Copied::new()?;
    if copy.tests_pass_with(mutation, Stdio::inherit)? {
        println!("SURVIVED: {}: {}", mutation.name, mutation.what);
        Ok(())
    } else {
        Err(format!("the tests fail, as they must: {}", mutation.what))
    }
}

/// Runs the tests on each: fails when they pass any, and when they fail on the code as it is.
pub(crate) fn all() -> Result<(), String> {
    let copy = Copied::new()?;
    if !copy.tests_pass(Stdio::null)? {
        return Err("the tests fail without any mutation: run `cargo test`".to_owned());
    }
    let mut survivors = vec![];
    for mutation in &MUTATIONS {
        let survived = copy.tests_pass_with(mutation, Stdio::null)?;
        println!("{} {}: {}", if survived { "SURVIVED" } else { "caught  " }, mutation.name, mutation.what);
        if survived {
            survivors.push(mutation.name);
        }
    }
    if survivors.is_empty() {
        Ok(())
    } else {
        Err(format!("the tests let these pass: {}", survivors.join(", ")))
    }
}

/// A copy of the workspace to break things in.
struct Copied {
    root: PathBuf,
}

impl Copied {
    fn new() -> Result<Self, String> {
        let root = workspace().join("target/mutate/tree");
        let _ = fs::remove_dir_all(&root);
        let problem = |problem: std::io::Error| format!("{}: {problem}", workspace().display());
        for entry in fs::read_dir(workspace()).map_err(problem)? {
            let name = entry.map_err(problem)?.file_name();
            if name != "target" && name != ".git" {
                copy(Path::new(&name), &root)?;
            }
        }
        Ok(Self { root })
    }

    /// Breaks the rule, runs the tests, and mends it.
    fn tests_pass_with(&self, mutation: &Mutation, output: fn() -> Stdio) -> Result<bool, String> {
        let path = self.root.join(mutation.file);
        let source = fs::read_to_string(&path).map_err(|problem| format!("{}: {problem}", path.display()))?;
        let found = source.matches(mutation.right).count();
        if found != 1 {
            return Err(format!(
                "{}: `{}` is there {found} times, not once; bring xtask/src/mutate.rs up to date",
                mutation.file, mutation.right
            ));
        }
        let write =
            |text: &str| fs::write(&path, text).map_err(|problem| format!("{}: {problem}", path.display()));
        write(&source.replace(mutation.right, mutation.wrong))?;
        let passed = self.tests_pass(output);
        write(&source)?;
        passed
    }

    fn tests_pass(&self, output: fn() -> Stdio) -> Result<bool, String> {
        let mut cargo = Command::new("cargo");
        cargo
            // The rules and the core, without what needs sockets: whoever holds them to their promises is there.
            .args([
                "test",
                "--quiet",
                "--lib",
                "--tests",
                "-p",
                "halftrack",
                "-p",
                "tanks",
                "-p",
                "halftrack-lab",
            ])
            .current_dir(&self.root)
            .env("CARGO_TARGET_DIR", workspace().join("target/mutate/target"))
            // A broken rule would leave its counterexamples lying about.
            .env("PROPTEST_FAILURE_PERSISTENCE", "off")
            .stdout(output())
            .stderr(output());
        let status = cargo.status().map_err(|problem| format!("cannot run cargo: {problem}"))?;
        Ok(status.success())
    }
}

/// Copies a file or a folder of the workspace to the same place under `root`.
fn copy(relative: &Path, root: &Path) -> Result<(), String> {
    let (from, to) = (workspace().join(relative), root.join(relative));
    let problem = |problem: std::io::Error| format!("{}: {problem}", from.display());
    if from.is_dir() {
        for entry in fs::read_dir(&from).map_err(problem)? {
            copy(&relative.join(entry.map_err(problem)?.file_name()), root)?;
        }
    } else {
        if let Some(folder) = to.parent() {
            fs::create_dir_all(folder).map_err(problem)?;
        }
        fs::copy(&from, &to).map_err(problem)?;
    }
    Ok(())
}
