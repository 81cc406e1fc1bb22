//! The program as an operator has it: started, asked by HTTP, sent signals, and ended.
#![allow(dead_code, reason = "each test uses its own part of it")]

#[path = "../../../src/scratch.rs"]
mod scratch;

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};
use std::{fs, thread};

/// Nothing here takes a tenth of it; a machine that is busy may.
pub(crate) const PATIENCE: Duration = Duration::from_secs(40);

/// Waits until something is so.
pub(crate) fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < PATIENCE, "not in {PATIENCE:?}: {what}");
        thread::sleep(Duration::from_millis(100));
    }
}

pub(crate) use scratch::Folder;

/// What a program that has ended said.
pub(crate) struct Said {
    pub(crate) status: ExitStatus,
    pub(crate) out: String,
    pub(crate) err: String,
}

/// A program that runs. Killed, if a test ends before it does.
pub(crate) struct Program {
    child: Child,
    out: Receiver<String>,
    err: Receiver<String>,
    said_out: String,
    said_err: String,
}

fn lines(from: impl std::io::Read + Send + 'static) -> Receiver<String> {
    let (tell, told) = channel();
    thread::spawn(move || {
        for line in BufReader::new(from).lines().map_while(Result::ok) {
            if tell.send(line).is_err() {
                break;
            }
        }
    });
    told
}

impl Program {
    pub(crate) fn start<S: AsRef<std::ffi::OsStr>>(arguments: &[S]) -> Self {
        Self::spawn(Command::new(env!("CARGO_BIN_EXE_tanks")).args(arguments))
    }

    fn spawn(command: &mut Command) -> Self {
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let (out, err) = (lines(child.stdout.take().unwrap()), lines(child.stderr.take().unwrap()));
        Self { child, out, err, said_out: String::new(), said_err: String::new() }
    }

    /// A server on any port, with these keys set.
    pub(crate) fn serve(sets: &[&str]) -> Server {
        Self::serve_at("127.0.0.1:0", sets)
    }

    pub(crate) fn serve_at(listen: &str, sets: &[&str]) -> Server {
        let mut arguments = vec!["serve", "--listen", listen];
        for set in sets {
            arguments.extend(["--set", set]);
        }
        Self::server(&arguments)
    }

    pub(crate) fn server(arguments: &[&str]) -> Server {
        Self::listening(Self::start(arguments))
    }

    /// A server that a shell has prepared something for.
    pub(crate) fn shell(command: &str) -> Server {
        let mut shell = Command::new("sh");
        shell.args(["-c", command]);
        Self::listening(Self::spawn(&mut shell))
    }

    fn listening(mut program: Self) -> Server {
        let line = program.line_with("http://");
        let at = line.find("http://").unwrap();
        let address = line[at + "http://".len()..].split_whitespace().next().unwrap().to_owned();
        Server { program, address }
    }

    /// Waits for a line on standard output that holds `text`.
    pub(crate) fn line_with(&mut self, text: &str) -> String {
        let start = Instant::now();
        loop {
            match self.out.recv_timeout(Duration::from_millis(50)) {
                Ok(line) => {
                    self.said_out.push_str(&line);
                    self.said_out.push('\n');
                    if line.contains(text) {
                        return line;
                    }
                }
                Err(_) => {
                    let ended = self.child.try_wait().unwrap();
                    assert!(ended.is_none(), "ended with {ended:?}: {}", self.heard());
                    assert!(start.elapsed() < PATIENCE, "no line with {text:?}: {}", self.heard());
                }
            }
        }
    }

    fn heard(&mut self) -> String {
        self.said_out.extend(self.out.try_iter().map(|line| line + "\n"));
        self.said_err.extend(self.err.try_iter().map(|line| line + "\n"));
        format!("{}{}", self.said_out, self.said_err)
    }

    pub(crate) fn signal(&self, signal: &str) {
        let command = format!("kill -{signal} {}", self.child.id());
        assert!(Command::new("sh").args(["-c", &command]).status().unwrap().success());
    }

    pub(crate) fn is_running(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }

    /// What it has logged so far.
    pub(crate) fn log(&mut self) -> String {
        self.heard();
        self.said_err.clone()
    }

    /// Waits for its end.
    pub(crate) fn end(mut self) -> Said {
        let start = Instant::now();
        let status = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status;
            }
            assert!(start.elapsed() < PATIENCE, "it does not end: {}", self.heard());
            thread::sleep(Duration::from_millis(10));
        };
        self.said_out.extend(self.out.iter().map(|line| line + "\n"));
        self.said_err.extend(self.err.iter().map(|line| line + "\n"));
        Said { status, out: core::mem::take(&mut self.said_out), err: core::mem::take(&mut self.said_err) }
    }

    pub(crate) fn kill(mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Runs the program to its end.
pub(crate) fn tanks(arguments: &[&str]) -> Said {
    Program::start(arguments).end()
}

/// A server that listens.
pub(crate) struct Server {
    pub(crate) program: Program,
    pub(crate) address: String,
}

/// An answer by HTTP.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: String,
}

impl Server {
    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub(crate) fn get(&self, path: &str) -> Answer {
        self.ask("GET", path, "", "")
    }

    pub(crate) fn ask(&self, method: &str, path: &str, headers: &str, body: &str) -> Answer {
        self.try_ask(method, path, headers, body).unwrap()
    }

    pub(crate) fn try_ask(
        &self,
        method: &str,
        path: &str,
        headers: &str,
        body: &str,
    ) -> std::io::Result<Answer> {
        let mut stream = TcpStream::connect(&self.address)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        let length = body.len();
        write!(
            stream,
            "{method} {path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\nContent-Length: {length}\r\n{headers}\r\n{body}",
            self.address
        )?;
        let mut text = String::new();
        stream.read_to_string(&mut text)?;
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
        Ok(Answer { status, head: head.to_owned(), body: body.to_owned() })
    }

    pub(crate) fn admin(&self, method: &str, path: &str, secret: &str, body: &str) -> Answer {
        self.ask(method, path, &format!("Authorization: Bearer {secret}\r\n"), body)
    }

    /// A number of `/metrics`, by the beginning of its line.
    pub(crate) fn metric(&self, series: &str) -> f64 {
        let text = self.get("/metrics").body;
        let line = text.lines().find(|line| line.starts_with(series) && !line.starts_with('#'));
        let value = line.and_then(|line| line.rsplit(' ').next()).and_then(|value| value.parse().ok());
        value.unwrap_or_else(|| panic!("no {series} in\n{text}"))
    }

    pub(crate) fn players(&self) -> f64 {
        self.metric("halftrack_room_players{room=\"main\"}")
    }

    /// Bots for so many seconds.
    pub(crate) fn bots(&self, count: u32, seconds: u32, more: &[&str]) -> Program {
        let (url, count, seconds) = (self.url(), count.to_string(), seconds.to_string());
        let mut arguments = vec!["bots", "--connect", &url, "--count", &count, "--seconds", &seconds];
        arguments.extend(more);
        Program::start(&arguments)
    }

    /// Ends it as Ctrl-C does, and gives what it said.
    pub(crate) fn interrupt(self) -> Said {
        self.program.signal("INT");
        self.program.end()
    }
}

pub(crate) fn json(file: &Path) -> serde_json::Value {
    serde_json::from_str(&fs::read_to_string(file).unwrap()).unwrap()
}
