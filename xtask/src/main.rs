//! The chores of this workspace, by `cargo xtask CHORE`.

mod instructions;
mod mutate;
mod sbom;
mod sources;
mod web;

use std::path::Path;
use std::process::ExitCode;

const HELP: &str = "\
The chores of this workspace.

usage: cargo xtask CHORE

  instructions      count the instructions of a reconcile with callgrind (needs valgrind): the figures of
                    docs/PERFORMANCE.md, whatever else the machine is doing
  mutate NAME       break one rule on purpose, in a copy, and run the tests on it: they must fail, and so does
                    this command
  mutate --all      do that with every rule of the list: fails if the tests let one pass
  sbom FILE         write the bill of materials of `tanks`, page included, as CycloneDX JSON
  web               build the page, wasm and all, into web/dist (needs node, and a toolchain for wasm: it says which)
  web --check       fail if web/dist was made of other sources than there are
  help              print this
";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let result = match words.as_slice() {
        ["instructions"] => instructions::count(),
        ["mutate", "--all"] => mutate::all(),
        ["mutate", name] => mutate::one(name),
        ["mutate"] => {
            print!("{}", mutate::list());
            Ok(())
        }
        ["sbom", file] => sbom::write(Path::new(file)),
        ["web"] => web::build(),
        ["web", "--check"] => web::check(),
        ["help" | "--help" | "-h"] | [] => {
            print!("{HELP}");
            Ok(())
        }
        _ => Err(format!("there is no chore `{}`\n\n{HELP}", words.join(" "))),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            eprintln!("error: {problem}");
            ExitCode::FAILURE
        }
    }
}

/// The top of the workspace.
fn workspace() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap_or(Path::new("."))
}
