//! Names and addresses that an operator keeps out, each with who said so and why, in a file that survives a restart.
//!
//! [`Gate`] and [`Door`] enforce bans; this has the list that operators see, and `bans.json` in `admin.state_folder`. The
//! file is written whole to another name and then renamed: a crash leaves the old list or the new one.

use std::fs;
use std::io::{self, Read as _, Write as _};
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use halftrack::PlayerName;
use halftrack_io::{Door, now};
use serde::{Deserialize, Serialize};

use crate::gate::Gate;
use crate::token::seconds;

/// What is kept out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Banned {
    Player(PlayerName),
    Address(IpAddr),
}

/// One entry of the list. Times are seconds since 1970.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Ban {
    #[serde(flatten)]
    pub(crate) whom: Banned,
    pub(crate) since: u64,
    /// For good, if there is none.
    pub(crate) until: Option<u64>,
    /// In the operator's words.
    pub(crate) why: Option<String>,
    /// The operator's name, if one was given.
    pub(crate) by: Option<String>,
}

impl Ban {
    fn is_over(&self, now: u64) -> bool {
        self.until.is_some_and(|until| now >= until)
    }
}

/// The file.
#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct File {
    version: u32,
    bans: Vec<Ban>,
}

/// A list of bans that cannot be used. The server does not start without it: players would come back unnoticed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum BansError {
    #[error("cannot use {}: {source}; admin.state_folder must be a folder that the server may write to", path.display())]
    Folder { path: PathBuf, source: io::Error },
    #[error("{} is no list of bans: {problem}; mend it, or move it away to start without bans", path.display())]
    Form { path: PathBuf, problem: String },
}

/// Whether a change of the list is in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kept {
    /// It survives a restart.
    Yes,
    /// There is no file, or it could not be written, which the log says.
    No,
}

/// No more names or addresses can be kept out.
#[derive(Debug)]
pub(crate) struct Full;

/// See the module.
pub(crate) struct Bans {
    gate: Arc<Gate>,
    door: Door,
    file: Option<PathBuf>,
    list: Mutex<Vec<Ban>>,
}

impl Bans {
    const FILE: &str = "bans.json";
    const VERSION: u32 = 1;
    /// A ban takes about 600 bytes at most: names, addresses and reasons are short.
    const MAX_BYTES: u64 = 32 << 20;

    /// The bans in that folder, which hold from here on; none that survive, without one.
    pub(crate) fn open(folder: Option<&Path>, gate: &Arc<Gate>, door: &Door) -> Result<Self, BansError> {
        let file = folder.map(|folder| folder.join(Self::FILE));
        let bans = Self { gate: Arc::clone(gate), door: door.clone(), file, list: Mutex::default() };
        if let (Some(folder), Some(file)) = (folder, &bans.file) {
            fs::create_dir_all(folder)
                .map_err(|source| BansError::Folder { path: folder.to_owned(), source })?;
            let form = |problem: String| BansError::Form { path: file.clone(), problem };
            let now = seconds(SystemTime::now());
            let mut list = read(file)?;
            list.retain(|ban| !ban.is_over(now));
            for ban in &list {
                bans.enforce(ban, now).map_err(|Full| form("it holds too many".to_owned()))?;
            }
            *bans.list() = list;
        }
        Ok(bans)
    }

    fn list(&self) -> MutexGuard<'_, Vec<Ban>> {
        self.list.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn enforce(&self, ban: &Ban, at: u64) -> Result<(), Full> {
        let left = ban.until.map(|until| Duration::from_secs(until.saturating_sub(at)));
        match &ban.whom {
            Banned::Player(name) if !self.gate.ban(name, left) => Err(Full),
            Banned::Player(_) => Ok(()),
            Banned::Address(address) => {
                self.door.ban(*address, left.map(|left| now() + left)).map_err(|_| Full)
            }
        }
    }

    /// Keeps a name or an address out from here on. Waits for the disk.
    pub(crate) fn ban(&self, ban: Ban) -> Result<Kept, Full> {
        self.enforce(&ban, ban.since)?;
        let mut list = self.list();
        list.retain(|other| other.whom != ban.whom && !other.is_over(ban.since));
        list.push(ban);
        Ok(self.save(&list))
    }

    /// Lets a name or an address in again. `None` when it was not kept out. Waits for the disk.
    pub(crate) fn unban(&self, whom: &Banned) -> Option<Kept> {
        let lifted = match whom {
            Banned::Player(name) => self.gate.unban(name),
            Banned::Address(address) => self.door.unban(*address),
        };
        let mut list = self.list();
        // A ban of an IPv6 address is one of its /64, and may be lifted by another address of that.
        let holds = |ban: &Ban| match &ban.whom {
            Banned::Player(name) => self.gate.is_banned(name),
            Banned::Address(address) => self.door.is_banned(*address),
        };
        list.retain(holds);
        lifted.then(|| self.save(&list))
    }

    /// Those that hold.
    pub(crate) fn all(&self) -> Vec<Ban> {
        let now = seconds(SystemTime::now());
        self.list().iter().filter(|ban| !ban.is_over(now)).cloned().collect()
    }

    fn save(&self, list: &[Ban]) -> Kept {
        let Some(path) = &self.file else { return Kept::No };
        let written = serde_json::to_vec_pretty(&File { version: Self::VERSION, bans: list.to_vec() })
            .map_err(io::Error::from)
            .and_then(|text| replace(path, &text));
        match written {
            Ok(()) => Kept::Yes,
            Err(problem) => {
                tracing::error!(file = %path.display(), %problem, "bans hold until the server ends: the file cannot be written");
                Kept::No
            }
        }
    }
}

fn read(path: &Path) -> Result<Vec<Ban>, BansError> {
    let form = |problem: String| BansError::Form { path: path.to_owned(), problem };
    let mut text = vec![];
    let read = fs::File::open(path).and_then(|file| file.take(Bans::MAX_BYTES + 1).read_to_end(&mut text));
    match read {
        Err(problem) if problem.kind() == io::ErrorKind::NotFound => return Ok(vec![]),
        Err(source) => return Err(BansError::Folder { path: path.to_owned(), source }),
        Ok(bytes) if bytes as u64 > Bans::MAX_BYTES => return Err(form("it is too long".to_owned())),
        Ok(_) => {}
    }
    let file: File = serde_json::from_slice(&text).map_err(|problem| form(problem.to_string()))?;
    if file.version != Bans::VERSION {
        return Err(form(format!(
            "it is of version {}, and this server reads {}",
            file.version,
            Bans::VERSION
        )));
    }
    Ok(file.bans)
}

/// Puts `text` in the place of the file, all of it or nothing. It names players: nobody else reads it.
fn replace(path: &Path, text: &[u8]) -> io::Result<()> {
    let fresh = path.with_extension("json.new");
    let mut options = fs::OpenOptions::new();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(&fresh)?;
    file.write_all(text)?;
    file.sync_all()?;
    fs::rename(&fresh, path)?;
    // The name is in the folder, which is written on its own.
    match path.parent() {
        Some(folder) if cfg!(unix) => fs::File::open(folder)?.sync_all(),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config;
    use crate::scratch::Folder;
    use halftrack_io::{Limits, RoomName};

    fn open(folder: Option<&Path>) -> Result<Bans, BansError> {
        let gate = Arc::new(Gate::new(&config::Auth::default()).unwrap());
        let door = Door::new(Arc::new(|_: &RoomName| None), Limits::default()).unwrap();
        Bans::open(folder, &gate, &door)
    }

    fn player(name: &str) -> Banned {
        Banned::Player(PlayerName::new(name).unwrap())
    }

    fn ban(whom: Banned, left: Option<u64>) -> Ban {
        let since = seconds(SystemTime::now());
        let until = left.map(|left| since + left);
        Ban { whom, since, until, why: Some("aimbot".to_owned()), by: None }
    }

    #[test]
    fn bans_hold_after_a_restart_until_they_are_over_or_lifted() {
        let folder = Folder::new();
        let address = Banned::Address("2001:db8::7".parse().unwrap());
        let bans = open(Some(folder.path())).unwrap();
        for ban in [ban(player("Ada"), None), ban(player("Eve"), Some(0)), ban(address.clone(), Some(3_600))]
        {
            assert_eq!(bans.ban(ban).unwrap(), Kept::Yes);
        }
        drop(bans);
        let bans = open(Some(folder.path())).unwrap();
        let listed: Vec<_> = bans.all().into_iter().map(|ban| (ban.whom, ban.why)).collect();
        let why = Some("aimbot".to_owned());
        assert_eq!(listed, [(player("Ada"), why.clone()), (address.clone(), why)]);
        assert!(bans.gate.is_banned(&PlayerName::new("Ada").unwrap()));
        assert!(!bans.gate.is_banned(&PlayerName::new("Eve").unwrap()), "that one was over");
        assert!(bans.door.is_banned("2001:db8::1".parse().unwrap()), "it is of the /64");
        assert_eq!(bans.unban(&Banned::Address("2001:db8::2".parse().unwrap())), Some(Kept::Yes));
        assert_eq!(bans.unban(&address), None);
        drop(bans);
        let bans = open(Some(folder.path())).unwrap();
        assert_eq!(bans.all().len(), 1);
        assert!(!bans.door.is_banned("2001:db8::1".parse().unwrap()));
    }

    #[test]
    fn a_second_ban_takes_the_place_of_the_first() {
        let bans = open(None).unwrap();
        assert_eq!(bans.ban(ban(player("Ada"), Some(60))).unwrap(), Kept::No, "there is no folder");
        assert_eq!(bans.ban(ban(player("Ada"), None)).unwrap(), Kept::No);
        assert_eq!(bans.all().iter().map(|ban| ban.until).collect::<Vec<_>>(), [None]);
    }

    #[test]
    fn a_list_that_cannot_be_read_stops_the_start() {
        let folder = Folder::new();
        for (text, hint) in [
            ("", "EOF"),
            ("{\"version\": 2, \"bans\": []}", "version 2"),
            ("{\"version\": 1, \"bans\": [{\"player\": \"\\u0007\", \"since\": 1}]}", "no list of bans"),
            ("{\"version\": 1, \"bans\": [{\"since\": 1}]}", "no list of bans"),
        ] {
            folder.write(Bans::FILE, text);
            let said = open(Some(folder.path())).err().unwrap().to_string();
            assert!(said.contains("bans.json") && said.contains(hint) && said.contains("mend it"), "{said}");
        }
        let file = folder.write("file", "");
        let said = open(Some(&file)).err().unwrap().to_string();
        assert!(said.contains("admin.state_folder"), "{said}");
    }

    #[test]
    fn a_write_that_fails_leaves_the_old_list() {
        let folder = Folder::new();
        let bans = open(Some(folder.path())).unwrap();
        assert_eq!(bans.ban(ban(player("Ada"), None)).unwrap(), Kept::Yes);
        // The name that is written to first is taken by a folder.
        fs::create_dir(folder.path().join("bans.json.new")).unwrap();
        assert_eq!(bans.ban(ban(player("Eve"), None)).unwrap(), Kept::No);
        assert!(bans.gate.is_banned(&PlayerName::new("Eve").unwrap()), "it holds all the same");
        assert_eq!(open(Some(folder.path())).unwrap().all().len(), 1);
    }
}
