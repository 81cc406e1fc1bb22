//! The server under attack: the real program, as a process of its own, with small limits so that they are reached.
//!
//! Knows how it is started, asked and ended, not what is done to it. Ends nothing that it did not start.

use std::collections::VecDeque;
use std::fs;
use std::io::{BufRead as _, BufReader, Read, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use crate::attack::Failed;
use crate::metrics::Metrics;
use crate::tokens::Keys;

/// Who may play there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ground {
    /// Anybody.
    Guests,
    /// Whoever has a signed token.
    Tokens,
}

/// What the operator's endpoint is opened with.
pub(crate) const SECRET: &str = "the-suite-knows-it-and-no-attacker";

/// Keys of the config that are not the defaults: rooms are small and emptied soon, and patience is short, so that the suite
/// reaches every limit in seconds. Without rounds: a new one would move the tanks of an attack.
const SETS: [&str; 8] = [
    "log.level=warn",
    "rooms.capacity=64",
    "rooms.max=8",
    "rooms.empty_s=2",
    "rooms.grace_s=3",
    "rooms.round_s=0",
    "limits.handshake_s=2",
    "limits.stall_s=2",
];

/// See the module.
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    pub(crate) keys: Keys,
    /// None for one that somebody else has started.
    program: Option<Program>,
    folder: PathBuf,
}

struct Program {
    path: PathBuf,
    child: Child,
    log: Arc<Log>,
    memory: Arc<Memory>,
}

/// What the program has said on standard error: the last lines, and how much it was.
#[derive(Default)]
struct Log {
    last: Mutex<VecDeque<String>>,
    lines: AtomicU64,
    panics: AtomicU64,
}

/// Its memory, looked at all the time.
#[derive(Default)]
struct Memory {
    now: AtomicU64,
    most: AtomicU64,
    over: AtomicBool,
}

impl Server {
    /// Starts the program on a free port of this machine.
    pub(crate) fn start(program: &Path, ground: Ground) -> Result<Self, Failed> {
        let folder = std::env::temp_dir().join(format!("tanks-hostile-{}-{ground:?}", std::process::id()));
        fs::create_dir_all(&folder)?;
        let keys = Keys::new()?;
        let (secret, public) = (folder.join("secret"), folder.join("key.pub.pem"));
        fs::write(&secret, SECRET)?;
        fs::write(&public, keys.public_pem())?;
        let mut command = Command::new(program);
        command.args(["serve", "--listen", "127.0.0.1:0", "--record"]).arg(folder.join("recordings"));
        let mut sets: Vec<_> = SETS.iter().map(ToString::to_string).collect();
        sets.push(format!("admin.secret_file={}", secret.display()));
        if ground == Ground::Tokens {
            sets.extend(["auth.mode=tokens".to_owned(), format!("auth.public_key={}", public.display())]);
        }
        for set in &sets {
            command.args(["--set", set]);
        }
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().map_err(|problem| format!("{}: {problem}", program.display()))?;
        let (out, err) = (child.stdout.take(), child.stderr.take());
        let (log, memory) = (Arc::<Log>::default(), Arc::<Memory>::default());
        let address = err.ok_or("no standard error").map(|err| listen(err, &log)).and(out.ok_or("no output"));
        let address = address.map_err(Failed::from).and_then(address_of);
        watch(child.id(), &memory);
        let program = Some(Program { path: program.to_owned(), child, log, memory });
        let mut server = Self { address: SocketAddr::from(([127, 0, 0, 1], 0)), keys, program, folder };
        server.address = address.map_err(|problem| format!("{problem}\n{}", server.last_words()))?;
        Ok(server)
    }

    /// One that runs already, for guests.
    pub(crate) fn at(address: SocketAddr) -> Result<Self, Failed> {
        let folder = std::env::temp_dir().join(format!("tanks-hostile-{}", std::process::id()));
        Ok(Self { address, keys: Keys::new()?, program: None, folder })
    }

    pub(crate) fn is_ours(&self) -> bool {
        self.program.is_some()
    }

    /// The program that runs, for its other commands. None for a server that was not started here.
    pub(crate) fn path(&self) -> Option<&Path> {
        self.program.as_ref().map(|program| program.path.as_path())
    }

    /// A folder for files, removed with this.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// What it has counted.
    pub(crate) fn metrics(&self) -> Result<Metrics, Failed> {
        let (status, body) = self.ask("GET", "/metrics", "")?;
        if status != 200 {
            return Err(format!("/metrics answers {status}").into());
        }
        Ok(Metrics::read(&body))
    }

    pub(crate) fn config(&self) -> Result<serde_json::Value, Failed> {
        Ok(serde_json::from_str(&self.ask("GET", "/config.json", "")?.1)?)
    }

    /// Asks as the operator does.
    pub(crate) fn ask(&self, method: &str, path: &str, body: &str) -> Result<(u16, String), Failed> {
        const PATIENCE: Duration = Duration::from_secs(5);
        let mut stream = TcpStream::connect_timeout(&self.address, PATIENCE)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        write!(
            stream,
            "{method} {path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\nAuthorization: Bearer {SECRET}\r\n\
             Content-Length: {}\r\n\r\n{body}",
            self.address,
            body.len()
        )?;
        let mut text = String::new();
        stream.read_to_string(&mut text)?;
        let (head, body) = text.split_once("\r\n\r\n").ok_or("no answer")?;
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).ok_or("no status")?;
        Ok((status, body.to_owned()))
    }

    /// Bytes of memory it has now, and had at most since the last time this was asked. Of a program of somebody else, what
    /// it says itself.
    pub(crate) fn memory(&self) -> (u64, u64) {
        match &self.program {
            Some(program) => {
                let now = program.memory.now.load(Ordering::Relaxed);
                (now, program.memory.most.swap(now, Ordering::Relaxed).max(now))
            }
            None => {
                let told = self.metrics().ok().map(|metrics| metrics.get("process_resident_memory_bytes"));
                let now = told.unwrap_or(0.0) as u64;
                (now, now)
            }
        }
    }

    /// Lines that it has logged.
    pub(crate) fn logged(&self) -> u64 {
        self.program.as_ref().map_or(0, |program| program.log.lines.load(Ordering::Relaxed))
    }

    pub(crate) fn panics(&self) -> u64 {
        self.program.as_ref().map_or(0, |program| program.log.panics.load(Ordering::Relaxed))
    }

    pub(crate) fn last_words(&self) -> String {
        let Some(program) = &self.program else { return String::new() };
        let last = program.log.last.lock().unwrap_or_else(PoisonError::into_inner);
        last.iter().cloned().collect::<Vec<_>>().join("\n")
    }

    /// Ends it as Ctrl-C does, and gives whether it ended as it should.
    pub(crate) fn stop(mut self) -> Result<(), Failed> {
        let Some(program) = &mut self.program else { return Ok(()) };
        let number = program.child.id().to_string();
        Command::new("kill").args(["-INT", &number]).status()?;
        let patience = Instant::now() + Duration::from_secs(15);
        while Instant::now() < patience {
            if let Some(status) = program.child.try_wait()? {
                return if status.success() { Ok(()) } else { Err(format!("it ended with {status}").into()) };
            }
            thread::sleep(Duration::from_millis(20));
        }
        Err("it did not end when it was told to".into())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some(program) = &mut self.program {
            program.memory.over.store(true, Ordering::Relaxed);
            let _ = program.child.kill();
            let _ = program.child.wait();
        }
        let _ = fs::remove_dir_all(&self.folder);
    }
}

fn listen(from: impl Read + Send + 'static, log: &Arc<Log>) {
    const KEPT: usize = 40;
    let log = Arc::clone(log);
    thread::spawn(move || {
        for line in BufReader::new(from).lines().map_while(Result::ok) {
            log.lines.fetch_add(1, Ordering::Relaxed);
            log.panics.fetch_add(u64::from(line.contains("panicked")), Ordering::Relaxed);
            let mut last = log.last.lock().unwrap_or_else(PoisonError::into_inner);
            last.push_back(line);
            if last.len() > KEPT {
                last.pop_front();
            }
        }
    });
}

/// Waits for the line that says where it serves.
fn address_of(out: impl Read + Send + 'static) -> Result<SocketAddr, Failed> {
    let (tell, told) = mpsc::channel();
    thread::spawn(move || {
        for line in BufReader::new(out).lines().map_while(Result::ok) {
            if let Some((_, address)) = line.split_once("http://") {
                let _ = tell.send(address.trim().to_owned());
            }
        }
    });
    let address = told.recv_timeout(Duration::from_secs(20)).map_err(|_| "the server does not start")?;
    Ok(address.parse()?)
}

fn watch(process: u32, memory: &Arc<Memory>) {
    let memory = Arc::clone(memory);
    thread::spawn(move || {
        while !memory.over.load(Ordering::Relaxed) {
            let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
            let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
            let kilobytes: Option<u64> =
                line.and_then(|line| line.split_whitespace().next()).and_then(|number| number.parse().ok());
            if let Some(kilobytes) = kilobytes {
                memory.now.store(kilobytes * 1_024, Ordering::Relaxed);
                memory.most.fetch_max(kilobytes * 1_024, Ordering::Relaxed);
            }
            thread::sleep(Duration::from_millis(20));
        }
    });
}

/// Whether that is this machine and no other.
pub(crate) fn is_here(address: &SocketAddr) -> bool {
    address.ip() == Ipv4Addr::LOCALHOST
}
