//! Files that were made to harm whoever opens them: a recording or a bug report that somebody sent, given to the program.

use std::fs;
use std::io::Read as _;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use halftrack::record::{Entry, Header, Recorder};
use halftrack::{Cadence, Digest, PlayerId, PlayerName, Tick, TickInput, Token, shared_hash};
use tanks::{About, Arena, Obstacle, Seen, ShootInput, TankInput, TankWorldConfig, Tanks};

use crate::attack::{Failed, Field, Outcome, attacks};
use crate::bytes::varint;
use crate::dice::Dice;
use crate::fighter::Fighter;

attacks! { Guests:
    "crafted-recordings", "recordings that no server wrote, given to `tanks replay`" => crafted_recordings;
    "crafted-flights", "bug reports that no client wrote, given to `tanks flight`" => crafted_flights;
}

/// Seconds of processor time that a file below 100 kB may take: the format allows for a second and a few more, and a debug
/// build is slower.
const MAX_CPU: Duration = Duration::from_secs(20);
/// A file of these sizes takes a few MiB.
const MAX_MEMORY: u64 = 128 << 20;
/// A program that is not done by then is ended: the machine may be busy.
const PATIENCE: Duration = Duration::from_secs(60);

/// A file, and the code that the program must end with.
struct Case {
    what: &'static str,
    file: Vec<u8>,
    /// One of these.
    codes: &'static [i32],
    /// A part of what the program says.
    says: &'static str,
}

impl Case {
    fn new(what: &'static str, file: Vec<u8>, codes: &'static [i32], says: &'static str) -> Self {
        Self { what, file, codes, says }
    }
}

/// What a program came to.
struct Ended {
    status: ExitStatus,
    said: String,
    cpu: Duration,
    memory: u64,
}

/// Runs `tanks COMMAND FILE`. With little priority: players share this machine.
fn run(program: &Path, command: &str, file: &Path) -> Result<Ended, Failed> {
    let mut child = Command::new("nice")
        .args(["-n", "19"])
        .arg(program)
        .arg(command)
        .arg(file)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    let out = child.stdout.take().ok_or("no output")?;
    let err = child.stderr.take().ok_or("no standard error")?;
    // A megabyte is more than it has to say; the rest is read and dropped, so that it does not wait for a reader.
    let listen = |mut from: Box<dyn std::io::Read + Send>| {
        thread::spawn(move || {
            let mut said = vec![];
            let _ = from.by_ref().take(1 << 20).read_to_end(&mut said);
            let _ = std::io::copy(&mut from, &mut std::io::sink());
            String::from_utf8_lossy(&said).into_owned()
        })
    };
    let (out, err) = (listen(Box::new(out)), listen(Box::new(err)));
    let (begun, process) = (Instant::now(), child.id());
    let (mut cpu, mut memory) = (Duration::ZERO, 0);
    let status = loop {
        cpu = cpu_time(process).unwrap_or(cpu);
        memory = peak_memory(process).unwrap_or(memory);
        if let Some(status) = child.try_wait()? {
            break status;
        }
        if cpu > MAX_CPU || memory > MAX_MEMORY || begun.elapsed() > PATIENCE {
            child.kill()?;
            break child.wait()?;
        }
        thread::sleep(Duration::from_millis(5));
    };
    let said = [out.join(), err.join()].map(Result::unwrap_or_default).concat();
    Ok(Ended { status, said, cpu, memory })
}

/// Processor time of a process so far. A hundredth of a second is the unit of `/proc` on every Linux.
fn cpu_time(process: u32) -> Option<Duration> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // After the name, which may have spaces in it: state is field 3, user time 14, system time 15.
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace().skip(11);
    let ticks = fields.next()?.parse::<u64>().ok()? + fields.next()?.parse::<u64>().ok()?;
    Some(Duration::from_millis(10 * ticks))
}

fn peak_memory(process: u32) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    Some(line.split_whitespace().next()?.parse::<u64>().ok()? * 1_024)
}

/// Gives every case to the program, and holds its end against the code that is documented.
async fn give(
    field: &Field,
    command: &'static str,
    cases: Vec<Case>,
    outcome: &mut Outcome,
) -> Result<(), Failed> {
    let Some(program) = field.server.path() else {
        outcome.saw("not tried: the program is not at hand");
        return Ok(());
    };
    for case in cases {
        let path = field.server.folder().join("crafted");
        fs::write(&path, &case.file)?;
        let (program, file) = (program.to_owned(), path.clone());
        let ended = tokio::task::spawn_blocking(move || run(&program, command, &file)).await??;
        fs::remove_file(&path)?;
        outcome.sent("files", 1);
        judge(&case, &ended, outcome);
    }
    // A file without an end.
    let (program, file) = (program.to_owned(), Path::new("/dev/zero").to_owned());
    let ended = tokio::task::spawn_blocking(move || run(&program, command, &file)).await??;
    outcome.sent("files", 1);
    judge(&Case::new("zeros without end", vec![], &[2], "tanks: "), &ended, outcome);
    Ok(())
}

fn judge(case: &Case, ended: &Ended, outcome: &mut Outcome) {
    let Case { what, codes, says, .. } = case;
    let Ended { status, said, cpu, memory } = ended;
    match status.code() {
        Some(code) => outcome.saw(format!("ended with {code}")),
        None => outcome.saw(format!("{what}: {status}")),
    }
    outcome.check(
        status.code().is_some_and(|code| codes.contains(&code)),
        format!("{what}: {status} after {cpu:?} and {} MiB, not one of {codes:?}: {said:.300}", memory >> 20),
    );
    outcome.check(said.contains(says), format!("{what}: it does not say {says:?}: {said:.300}"));
    outcome.check(!said.contains("panicked"), format!("{what}: {said:.300}"));
}

/// Writes recordings of matches that never were.
struct Forge {
    recorder: Recorder<Tanks>,
    players: Vec<PlayerId>,
    tick: u32,
    bytes: Vec<u8>,
}

impl Forge {
    fn new(config: &TankWorldConfig) -> Self {
        let rules = Arc::new(Tanks::new(Arc::clone(&config.arena)));
        let header = Header {
            shared: shared_hash(&*rules, Cadence::default()),
            cadence_micros: 50_000,
            first_tick: 0,
            run: [0; 16],
            body_key: [0; 16],
            // More bodies than a room of ours takes.
            limits: (u32::MAX, u32::MAX),
            about: About::new("main", 1, config).encode(),
        };
        Self { recorder: Recorder::new(&header), players: vec![], tick: 0, bytes: vec![] }
    }

    fn join(&mut self, count: u16) -> Result<(), Failed> {
        for player in (1..=count).map(PlayerId::new) {
            let (name, token) = (PlayerName::new("x")?, Token::new([0; 16]));
            self.recorder.write(&Entry::Joined { player, name, token, claims: None });
            self.players.push(player);
        }
        Ok(())
    }

    fn ticks(&mut self, ticks: u32) {
        for _ in 0..ticks {
            self.tick += 1;
            let told = TickInput::steady(TankInput::NEUTRAL);
            self.recorder.tick(self.players.iter().map(|player| (*player, told, 0)), 0);
            self.recorder.take(&mut self.bytes);
        }
    }

    /// A shot by each of the first players, at the newest tick.
    fn volley(&mut self, count: usize) {
        let seen = Seen { snapshot: Tick::new(self.tick), before_micros: 250_000 };
        let shot = ShootInput { tick: Tick::new(self.tick + 1), at: 0, aim: 0, seen };
        for player in self.players.iter().take(count) {
            self.recorder.write(&Entry::Ordered { player: *player, bytes: shot.encode() });
        }
    }

    fn finish(mut self) -> Vec<u8> {
        self.recorder.take(&mut self.bytes);
        self.bytes
    }
}

async fn crafted_recordings(field: &Field) -> Result<Outcome, Failed> {
    let (mut outcome, mut dice) = (Outcome::default(), Dice::new(field.seed));
    // The smallest arena: every tank is in the way of every other.
    let arena = Arc::new(Arena::new([8.0, 8.0], vec![])?);
    let cooldown = Duration::from_millis(20);
    let heap = TankWorldConfig { arena, cooldown, ..TankWorldConfig::default() };
    let open = TankWorldConfig::default();
    let mut crowd = Forge::new(&heap);
    crowd.join(1_500)?;
    crowd.ticks(20);
    let mut volley = Forge::new(&heap);
    volley.join(300)?;
    for _ in 0..40 {
        volley.ticks(1);
        volley.volley(200);
    }
    let mut ages = Forge::new(&open);
    for _ in 0..250 {
        ages.recorder.write(&Entry::Passed { ticks: Entry::MAX_PASSED });
        ages.recorder.take(&mut ages.bytes);
    }
    let mut many = Forge::new(&open);
    many.join(20_000)?;
    many.ticks(20);
    // A player for whom all machines that there can be look around among all pillars that there can be.
    let pillar = |number: usize| {
        let center = [(number % 16) as f64 * 9.0 - 67.5, (number / 16) as f64 * 9.0 - 67.5];
        Obstacle::Pillar { center, radius: 0.1 }
    };
    let pillars: Vec<_> = (0..Arena::MAX_OBSTACLES).map(pillar).collect();
    let arena = Arc::new(Arena::new([150.0, 150.0], pillars)?);
    let (machines, range) = (TankWorldConfig::MAX_MACHINES, 300.0);
    let mut patrol = Forge::new(&TankWorldConfig { arena, machines, range, ..TankWorldConfig::default() });
    patrol.join(1)?;
    patrol.ticks(20_000);
    let mut small = Forge::new(&open);
    small.join(2)?;
    small.ticks(40);
    let small = small.finish();
    let long = "use --allow-long";
    let mut cases = vec![
        Case::new("1,500 tanks in one heap", crowd.finish(), &[2], long),
        Case::new("a heap in which all shoot", volley.finish(), &[2], long),
        Case::new("4 billion ticks without players", ages.finish(), &[0], "verified"),
        Case::new("20,000 players", many.finish(), &[1, 2, 3], ""),
        Case::new("a hundred machines for a quarter of an hour", patrol.finish(), &[1, 2], ""),
        Case::new("no bytes", vec![], &[2], "tanks: "),
        Case::new("garbage", dice.bytes(50_000), &[2], "tanks: "),
        Case::new("a header without its end", small[..20].to_vec(), &[2], "tanks: "),
        Case::new("a match without its end", small[..small.len() - 1].to_vec(), &[1, 3], ""),
    ];
    let changed = if field.is_long() { 20 } else { 4 };
    cases.extend((0..changed).map(|_| Case::new("a bit changed", dice.flip(&small), &[1, 2, 3], "")));
    give(field, "replay", cases, &mut outcome).await?;
    Ok(outcome)
}

/// A section of a flight report, with a check that is right.
fn section(kind: u8, contents: &[u8], to: &mut Vec<u8>) {
    let (words, rest) = contents.as_chunks::<8>();
    let digest = words.iter().fold(Digest::new(), |digest, word| digest.word(u64::from_le_bytes(*word)));
    let mut last = [0; 8];
    last[..rest.len()].copy_from_slice(rest);
    let check = digest.word(u64::from_le_bytes(last)).word(contents.len() as u64).finish()
        ^ u64::from(kind).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    to.push(kind);
    to.extend(u32::try_from(contents.len()).unwrap_or(u32::MAX).to_le_bytes());
    to.extend(check.to_le_bytes());
    to.extend(contents);
}

/// The sections of a report: kinds and contents.
fn sections(report: &[u8]) -> Vec<(u8, &[u8])> {
    let (mut found, mut rest) = (vec![], report.get(18..).unwrap_or_default());
    while let Some((head, after)) = rest.split_first_chunk::<13>() {
        let length = u32::from_le_bytes([head[1], head[2], head[3], head[4]]) as usize;
        let Some((contents, next)) = after.split_at_checked(length) else { break };
        found.push((head[0], contents));
        rest = next;
    }
    found
}

async fn crafted_flights(field: &Field) -> Result<Outcome, Failed> {
    const KEY: u8 = 3;
    const CALLS: u8 = 4;
    const END: u8 = 5;
    const SETUP: u8 = 6;
    // Kinds of calls.
    const TIMEOUT: u8 = 8;
    const FRAME: u8 = 9;
    let (mut outcome, mut dice) = (Outcome::default(), Dice::new(field.seed));
    let mut fighter = Fighter::enter(field, "flights", "reporter").await?.with_driver();
    let report = fighter.fly(Duration::from_millis(1_500)).await?;
    fighter.leave().await;
    let parts = sections(&report);
    // The report with another preface, key state or calls in the place of its own.
    let with = |kind: u8, change: &mut dyn FnMut(&[u8]) -> Vec<u8>| {
        let mut bytes = report[..18].to_vec();
        for (each, contents) in &parts {
            if *each == kind {
                section(*each, &change(contents), &mut bytes);
            } else {
                section(*each, contents, &mut bytes);
            }
        }
        bytes
    };
    // Calls to draw a frame, or for timers, each so many microseconds after the last.
    let calls = |kind: u8, micros: u64, count: usize| {
        let mut call = vec![];
        varint(2 * micros, &mut call);
        call.push(kind);
        if kind == FRAME {
            call.extend([0; 8]);
        }
        call.repeat(count)
    };
    let year = 365 * 24 * 3_600 * 1_000_000;
    let mut longer = report[..18].to_vec();
    parts.iter().filter(|(kind, _)| *kind != END).for_each(|(kind, all)| section(*kind, all, &mut longer));
    longer.extend([CALLS, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0, 0, 0, 0, 0]);
    // A key state again and again: each is compared with the replay, byte by byte.
    let mut keys = report[..18].to_vec();
    for (kind, contents) in parts.iter().filter(|(kind, _)| *kind != END) {
        (0..if *kind == KEY { 20 } else { 1 }).for_each(|_| section(*kind, contents, &mut keys));
    }
    section(END, &[], &mut keys);
    let mut cases = vec![
        Case::new("an honest report", report.clone(), &[0], "frames exactly"),
        Case::new(
            "the same with its sections written anew",
            with(0, &mut <[u8]>::to_vec),
            &[0],
            "frames exactly",
        ),
        Case::new("a section of 4 GiB", longer, &[2], "damage"),
        Case::new("key states without calls", keys, &[0, 1, 2], ""),
        Case::new("frames a year apart", with(CALLS, &mut |_| calls(FRAME, year, 2_000)), &[1, 2], ""),
        Case::new("timers a year apart", with(CALLS, &mut |_| calls(TIMEOUT, year, 2_000)), &[1, 2], ""),
        Case::new("frames a day apart", with(CALLS, &mut |_| calls(FRAME, year / 365, 2_000)), &[1, 2], ""),
        Case::new(
            "frames a minute apart",
            with(CALLS, &mut |_| calls(FRAME, 60_000_000, 2_000)),
            &[1, 2],
            "",
        ),
        Case::new("frames without time", with(CALLS, &mut |_| calls(FRAME, 0, 6_000)), &[1, 2], ""),
        Case::new("no bytes", vec![], &[2], "tanks: "),
        Case::new("garbage", dice.bytes(50_000), &[2], "tanks: "),
        Case::new("a report without its end", report[..report.len() / 2].to_vec(), &[2], "tanks: "),
    ];
    let changed = if field.is_long() { 20 } else { 4 };
    for number in 0..changed {
        cases.push(Case::new("a bit changed", dice.flip(&report), &[2], "tanks: "));
        let kind = [1, KEY, CALLS, SETUP][number % 4];
        let mutated = with(kind, &mut |contents| dice.flip(contents));
        cases.push(Case::new("a bit changed, and the check with it", mutated, &[0, 1, 2], ""));
    }
    give(field, "flight", cases, &mut outcome).await?;
    Ok(outcome)
}
