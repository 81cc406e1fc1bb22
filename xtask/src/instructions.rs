//! Instruction counts of a reconcile, by callgrind: the same on a busy machine and an idle one.

use std::process::Command;

use crate::workspace;

const TIMES: u64 = 1_000;

/// Prints what a reconcile costs, and what each further pending tick adds.
pub(crate) fn count() -> Result<(), String> {
    run(Command::new("cargo").args([
        "build",
        "--release",
        "--package",
        "tanks",
        "--example",
        "instructions",
    ]))?;
    println!("instructions per reconcile, {TIMES} times each, by callgrind:\n");
    println!("| place | 1 pending | 10 | 20 | 60 | per further tick |");
    println!("|---|---|---|---|---|---|");
    for place in ["open", "walls", "pillar", "group"] {
        let counts = [1, 10, 20, 60].map(|pending| reconcile(place, pending));
        let [one, ten, twenty, sixty] = counts;
        let (one, ten, twenty, sixty) = (one?, ten?, twenty?, sixty?);
        println!("| {place} | {one} | {ten} | {twenty} | {sixty} | {} |", (twenty - ten) / 10);
    }
    Ok(())
}

fn reconcile(place: &str, pending: u32) -> Result<u64, String> {
    let program = workspace().join("target/release/examples/instructions");
    let mut valgrind = Command::new("valgrind");
    valgrind
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null", "--toggle-collect=*Scene::reconcile*"])
        .arg(program)
        .args([place, &pending.to_string(), &TIMES.to_string()]);
    let report = run(&mut valgrind)?;
    let collected =
        report.lines().find_map(|line| line.split_once("Collected :")).map(|(_, count)| count.trim());
    let collected: u64 = collected
        .and_then(|count| count.parse().ok())
        .ok_or("callgrind did not say what it collected; is this valgrind 3.15 or newer?")?;
    if collected == 0 {
        return Err("callgrind saw no call of Scene::reconcile".to_owned());
    }
    Ok(collected / TIMES)
}

/// Runs it in the workspace; gives what it wrote to standard error.
fn run(command: &mut Command) -> Result<String, String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command
        .current_dir(workspace())
        .output()
        .map_err(|problem| format!("cannot run {name}: {problem}; is it installed?"))?;
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    if output.status.success() { Ok(said) } else { Err(format!("{name} failed:\n{said}")) }
}
