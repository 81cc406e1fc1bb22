//! The page is part of the program: when it is built anew, or for the first time, so is the program. And what the program
//! was built with, for `halftrack_build_info`.

use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=../../web/dist");
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let said = Command::new(rustc).arg("--version").output().ok();
    let said = said.and_then(|said| String::from_utf8(said.stdout).ok()).unwrap_or_default();
    // `rustc 1.95.0 (59807616e 2026-04-14)`
    let version = said.split_whitespace().nth(1).unwrap_or("unknown");
    println!("cargo::rustc-env=TANKS_RUSTC={version}");
}
