//! The page as the server gives it out: wasm, its glue, and what Vite makes of `web/`, in `web/dist`.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::sources;
use crate::workspace;

const TARGET: &str = "wasm32-unknown-unknown";
/// WebTransport is not in the stable part of `web-sys`.
const CFG: &str = "--cfg=web_sys_unstable_apis";
/// Debian's toolchain, which has the sources of the standard library where rustup has a target to install.
const DEBIAN: [&str; 3] = ["/usr/bin/cargo", "/usr/bin/rustc", "/usr/bin/wasm-ld-19"];
const DEBIAN_PACKAGES: &str = "rustc-web cargo-web rust-web-src lld-19";
/// Crates that become a wasm, each with what it may have, compressed. The first is what a player downloads before anything
/// moves: a second on a slow mobile link. The other comes when somebody watches a recording.
const MODULES: [(&str, u64); 2] = [("tanks-web", 240 * 1_000), ("tanks-theatre", 130 * 1_000)];

/// Builds everything.
pub(crate) fn build() -> Result<(), String> {
    let modules = compile()?;
    let web = workspace().join("web");
    let glue = web.join("src/wasm");
    let bindgen = workspace().join("xtask/bindgen/Cargo.toml");
    let made = workspace().join("target/bindgen");
    install(&web)?;
    for (name, max_bytes) in MODULES {
        let name = name.replace('-', "_");
        let mut command = Command::new(cargo());
        command.args(["run", "--quiet", "--release", "--locked", "--manifest-path"]).arg(&bindgen);
        command.arg("--target-dir").arg(&made).arg("--");
        run(command.arg(modules.join(format!("{name}.wasm"))).arg(&glue))?;
        optimise(&web, &glue.join(format!("{name}_bg.wasm")), max_bytes)?;
    }
    run(npm(&web).args(["run", "--silent", "build"]))?;
    let list =
        sources::list(workspace()).map_err(|problem| format!("the sources cannot be read: {problem}"))?;
    fs::write(workspace().join(sources::LIST), list).map_err(|problem| problem.to_string())
}

/// Fails when `web/dist` was made of other sources than there are.
pub(crate) fn check() -> Result<(), String> {
    let found =
        sources::list(workspace()).map_err(|problem| format!("the sources cannot be read: {problem}"))?;
    let made_of = fs::read_to_string(workspace().join(sources::LIST)).unwrap_or_default();
    match sources::differences(&made_of, &found).as_slice() {
        [] => Ok(()),
        others => {
            Err(format!("web/dist is not up to date: run `cargo xtask web`\n  {}", others.join("\n  ")))
        }
    }
}

/// The wasm modules, by rustup's target if there is one, or by Debian's toolchain. Gives the folder that they are in.
fn compile() -> Result<PathBuf, String> {
    let directory = workspace().join("target/web");
    let mut common = vec!["build", "--locked", "--profile", "web", "--target", TARGET];
    common.extend(MODULES.iter().flat_map(|(name, _)| ["--package", name]));
    let mut command = if has_target() {
        let mut command = Command::new(cargo());
        command.args(&common).env("RUSTFLAGS", flags(&[CFG]));
        command
    } else if DEBIAN.iter().all(|program| Path::new(program).exists()) {
        let [cargo, rustc, linker] = DEBIAN;
        let mut command = Command::new(cargo);
        command.args(&common).args(["-Zbuild-std=std,panic_abort", "-Zbuild-std-features=optimize_for_size"]);
        command.env("RUSTC", rustc).env("RUSTC_BOOTSTRAP", "1").env_remove("RUSTUP_TOOLCHAIN");
        command.env("RUSTFLAGS", flags(&[CFG, &format!("-Clinker={linker}")]));
        command
    } else {
        return Err(format!(
            "nothing here builds wasm: `rustup target add {TARGET}`, or on Debian `apt-get install \
             --no-install-recommends {DEBIAN_PACKAGES}`"
        ));
    };
    run(command.arg("--target-dir").arg(&directory).env_remove("CARGO_ENCODED_RUSTFLAGS"))?;
    Ok(directory.join(TARGET).join("web"))
}

fn has_target() -> bool {
    let output = Command::new("rustup").args(["target", "list", "--installed"]).output();
    output.is_ok_and(|output| String::from_utf8_lossy(&output.stdout).lines().any(|line| line == TARGET))
}

/// What panics say of where they were is the same wherever it is built.
fn flags(more: &[&str]) -> String {
    let home =
        std::env::var("CARGO_HOME").ok().or_else(|| Some(format!("{}/.cargo", std::env::var("HOME").ok()?)));
    let registries = home.map(|home| PathBuf::from(home).join("registry/src"));
    let inside = registries.and_then(|path| fs::read_dir(path).ok()).into_iter().flatten().flatten();
    let known = inside
        .map(|entry| entry.path())
        .chain([workspace().to_owned(), PathBuf::from("/usr/lib/rustlib/src/rust")]);
    let remapped = known.map(|path| format!("--remap-path-prefix={}=.", path.display()));
    more.iter().map(|flag| (*flag).to_owned()).chain(remapped).collect::<Vec<_>>().join(" ")
}

/// `npm ci`, if the lockfile is newer than what is installed.
fn install(web: &Path) -> Result<(), String> {
    let changed = |path: &Path| fs::metadata(path).and_then(|metadata| metadata.modified()).ok();
    let installed = changed(&web.join("node_modules/.package-lock.json"));
    if installed.is_some() && installed >= changed(&web.join("package-lock.json")) {
        return Ok(());
    }
    run(npm(web).args(["ci", "--silent"]))
}

fn optimise(web: &Path, module: &Path, max_bytes: u64) -> Result<(), String> {
    const OPTIMISE: [&str; 9] = [
        "exec",
        "--",
        "wasm-opt",
        "-O3",
        "--enable-bulk-memory",
        "--enable-multivalue",
        "--enable-nontrapping-float-to-int",
        "--enable-reference-types",
        "--enable-sign-ext",
    ];
    let mut command = npm(web);
    command.args(OPTIMISE).args(["--enable-mutable-globals", "--strip-debug", "--strip-producers", "-o"]);
    run(command.arg(module).arg(module))?;
    let script = "console.log(require('zlib').gzipSync(require('fs').readFileSync(process.argv[1]), {level: 9}).length)";
    let output = Command::new("node").args(["-e", script]).arg(module).output();
    let output = output.map_err(|problem| format!("node cannot be started: {problem}"))?;
    let compressed: u64 = String::from_utf8_lossy(&output.stdout).trim().parse().unwrap_or(u64::MAX);
    let size = fs::metadata(module).map_or(0, |metadata| metadata.len());
    let name = module.file_name().unwrap_or_default().to_string_lossy();
    println!("{name}: {size} bytes, {compressed} compressed (at most {max_bytes})");
    if compressed > max_bytes { Err(format!("{name} is too large")) } else { Ok(()) }
}

fn cargo() -> String {
    std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned())
}

fn npm(web: &Path) -> Command {
    let mut command = Command::new("npm");
    command.current_dir(web);
    command
}

fn run(command: &mut Command) -> Result<(), String> {
    let program = command.get_program().to_string_lossy().into_owned();
    let first = command.get_args().map(OsStr::to_string_lossy).take(3).collect::<Vec<_>>().join(" ");
    match command.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("`{program} {first} ...` failed ({status})")),
        Err(problem) => Err(format!("`{program}` cannot be started: {problem}")),
    }
}
