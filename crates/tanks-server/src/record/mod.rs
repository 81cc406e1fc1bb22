//! Recordings: the folder that matches are written to, and are found in after a crash.
//!
//! A room's match is a file of its own, made when the first player comes. What is written is in the system's hands before
//! anything that follows from it is sent, and on the disk within a second or so.

mod file;

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::SystemTime;

use halftrack::record::{Recording, RecordingRefused};
use halftrack_io::RoomName;
use ring::rand::{SecureRandom, SystemRandom};
use tanks::{About, MatchRefused, TankWorldConfig, Tanks};

pub(crate) use file::RecordingFile;

use crate::token::seconds;

/// What recordings end with.
pub(crate) const EXTENSION: &str = "htrec";
/// What is in the name of one that could not be written to its end.
const INCOMPLETE: &str = ".incomplete";

/// A recording that is longer is not read unless its reader asks for it: a gibibyte is three weeks of sixteen players.
const MAX_BYTES: u64 = 1 << 30;
/// More than the longest header of a recording.
const MAX_HEADER: u64 = 1 << 17;

/// Why a folder cannot be recorded to, or a match not be read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RecordError {
    #[error("cannot record to {}: {source}; choose a folder that may be written to", folder.display())]
    Folder { folder: PathBuf, source: io::Error },
    #[error("cannot read {}: {source}", path.display())]
    Read { path: PathBuf, source: io::Error },
    #[error("{}: {source}", path.display())]
    Refused { path: PathBuf, source: MatchRefused },
    #[error("{} is longer than {} MiB; use --allow-long to play it all the same", path.display(), MAX_BYTES >> 20)]
    Long { path: PathBuf },
}

/// What all recordings of the program have counted.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    pub(crate) bytes: AtomicU64,
    pub(crate) failures: AtomicU64,
    pub(crate) syncs: AtomicU64,
}

/// The same at one moment.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counted {
    pub(crate) bytes: u64,
    pub(crate) failures: u64,
    pub(crate) syncs: u64,
}

impl Counts {
    pub(crate) fn read(&self) -> Counted {
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        Counted { bytes: read(&self.bytes), failures: read(&self.failures), syncs: read(&self.syncs) }
    }
}

/// See the module.
pub(crate) struct Recordings {
    folder: PathBuf,
    run: [u8; 16],
    counts: Arc<Counts>,
    open: Mutex<Vec<Weak<fs::File>>>,
    syncing: AtomicBool,
    /// Made so far: two rooms of one name in one second are two files.
    made: AtomicU64,
}

impl Recordings {
    /// Records to `folder`, which is made if it is not there.
    pub(crate) fn open(folder: &Path) -> Result<Self, RecordError> {
        let failed = |source| RecordError::Folder { folder: folder.to_owned(), source };
        fs::create_dir_all(folder).map_err(failed)?;
        // Better now than when the first player comes.
        let probe = folder.join(".writable");
        fs::write(&probe, []).and_then(|()| fs::remove_file(&probe)).map_err(failed)?;
        Ok(Self {
            folder: folder.to_owned(),
            run: this_run(),
            counts: Arc::default(),
            open: Mutex::default(),
            syncing: AtomicBool::new(false),
            made: AtomicU64::new(0),
        })
    }

    pub(crate) fn counts(&self) -> &Counts {
        &self.counts
    }

    /// The run of the machine: see [`halftrack::record::Header::run`].
    pub(crate) fn run(&self) -> [u8; 16] {
        self.run
    }

    /// A new match in `room`: its file, made with the first byte, and what its header says of it.
    pub(crate) fn begin(
        self: &Arc<Self>,
        room: &RoomName,
        world: &TankWorldConfig,
    ) -> (RecordingFile, About) {
        let now = seconds(SystemTime::now());
        let number = self.made.fetch_add(1, Ordering::Relaxed);
        // By name they lie in the order in which they began.
        let path = self.folder.join(format!("{room}.{now:012}.{number:04}.{EXTENSION}"));
        (RecordingFile::new(path, Arc::clone(self)), About::new(room.as_str(), now, world))
    }

    /// One that goes on: what is not whole is cut off first, and put aside.
    pub(crate) fn go_on(self: &Arc<Self>, found: &Unfinished, whole: usize) -> io::Result<RecordingFile> {
        if let Some(rest) = found.bytes.get(whole..).filter(|rest| !rest.is_empty()) {
            fs::write(found.path.with_extension("damaged"), rest)?;
        }
        // One that could not be written to its end can be, from here on.
        let path = complete_name(&found.path);
        if path != found.path {
            fs::rename(&found.path, &path)?;
        }
        RecordingFile::reopen(path, whole as u64, Arc::clone(self))
    }

    /// Files that are being written, for [`Self::sync`].
    fn register(&self, file: &Arc<fs::File>) {
        self.open.lock().unwrap_or_else(PoisonError::into_inner).push(Arc::downgrade(file));
    }

    /// Puts on the disk what was written: to be called every second, where it may take long.
    pub(crate) fn sync(&self) {
        if self.syncing.swap(true, Ordering::AcqRel) {
            // The disk has not done with the last time: it would not be faster for being asked again.
            return;
        }
        let files: Vec<_> = {
            let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
            open.retain(|file| file.strong_count() > 0);
            open.iter().filter_map(Weak::upgrade).collect()
        };
        for file in files {
            match file.sync_data() {
                Ok(()) => self.counts.syncs.fetch_add(1, Ordering::Relaxed),
                Err(problem) => {
                    tracing::error!(%problem, "a recording cannot be put on the disk");
                    self.counts.failures.fetch_add(1, Ordering::Relaxed)
                }
            };
        }
        self.syncing.store(false, Ordering::Release);
    }

    /// The newest recording of each room, which may be of a match that never ended.
    pub(crate) fn unfinished(&self) -> Result<Vec<Unfinished>, RecordError> {
        let failed = |source| RecordError::Folder { folder: self.folder.clone(), source };
        let mut newest: BTreeMap<String, PathBuf> = BTreeMap::new();
        for entry in fs::read_dir(&self.folder).map_err(failed)? {
            let path = entry.map_err(failed)?.path();
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            let Some((room, _)) = name.split_once('.').filter(|_| name.ends_with(EXTENSION)) else {
                continue;
            };
            let known = newest.entry(room.to_owned()).or_insert_with(|| path.clone());
            if *known < path {
                *known = path;
            }
        }
        Ok(newest.into_values().filter_map(read_unfinished).collect())
    }
}

/// A match that may go on.
pub(crate) struct Unfinished {
    pub(crate) path: PathBuf,
    pub(crate) room: RoomName,
    pub(crate) about: About,
    bytes: Arc<[u8]>,
    incomplete: bool,
}

impl Unfinished {
    pub(crate) fn recording(&self) -> Result<Recording<Tanks>, RecordingRefused> {
        Recording::open(Arc::clone(&self.bytes))
    }

    /// Whether players may have been told what is not in it: it was written in another run of the machine, could not be
    /// written, or is damaged in its middle.
    pub(crate) fn is_rewound(&self, run: [u8; 16]) -> bool {
        let Ok(mut recording) = self.recording() else { return true };
        let mut last = recording.header().run;
        while let Some(entry) = recording.next() {
            if let halftrack::record::Entry::Recovered { run, .. } = entry {
                last = run;
            }
        }
        let damaged = recording.damage().is_some_and(|damage| !damage.cut);
        self.incomplete || last != run || damaged
    }
}

/// Reads one; what cannot be read is told, and left alone.
fn read_unfinished(path: PathBuf) -> Option<Unfinished> {
    let read = || {
        let bytes: Arc<[u8]> = fs::read(&path).map_err(|problem| problem.to_string())?.into();
        let recording =
            Recording::<Tanks>::open(Arc::clone(&bytes)).map_err(|problem| problem.to_string())?;
        let about = About::decode(&recording.header().about).map_err(|problem| problem.to_string())?;
        let room = RoomName::new(&about.room).map_err(|problem| problem.to_string())?;
        Ok::<_, String>((bytes, about, room))
    };
    match read() {
        Ok((bytes, about, room)) => {
            let incomplete = complete_name(&path) != path;
            Some(Unfinished { path, room, about, bytes, incomplete })
        }
        Err(problem) => {
            tracing::warn!(file = %path.display(), problem, "this recording cannot be gone on with");
            None
        }
    }
}

/// Without the mark of one that could not be written.
fn complete_name(path: &Path) -> PathBuf {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    path.with_file_name(name.replace(INCOMPLETE, ""))
}

fn incomplete_name(path: &Path) -> PathBuf {
    path.with_extension(format!("{}.{EXTENSION}", INCOMPLETE.trim_start_matches('.')))
}

/// What is the same until the machine is started again. Where the system does not tell, no two processes share one:
/// what was not synced is then taken for lost.
fn this_run() -> [u8; 16] {
    let told = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let digits: String = told.chars().filter(char::is_ascii_hexdigit).collect();
    match u128::from_str_radix(&digits, 16) {
        Ok(run) if digits.len() == 32 => run.to_be_bytes(),
        _ => {
            let mut run = [0; 16];
            let _ = SystemRandom::new().fill(&mut run);
            run
        }
    }
}

/// How long a recording may be that is read for somebody who wants to see it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Length {
    /// [`MAX_BYTES`].
    Bounded,
    Any,
}

/// Reads a recording for somebody who wants to see it. The header is checked before the rest is read: a file that is no
/// recording costs no memory, however long it is.
pub(crate) fn read_match(path: &Path, length: Length) -> Result<(About, tanks::TankPlayback), RecordError> {
    let unread = |source| RecordError::Read { path: path.to_owned(), source };
    let refused = |source| RecordError::Refused { path: path.to_owned(), source };
    let max = if length == Length::Any { u64::MAX } else { MAX_BYTES };
    let mut file = fs::File::open(path).map_err(unread)?;
    let known = file.metadata().map_err(unread)?.len();
    let mut bytes = vec![];
    file.by_ref().take(MAX_HEADER).read_to_end(&mut bytes).map_err(unread)?;
    tanks::open_recording(bytes.as_slice()).map_err(refused)?;
    if known <= max {
        let rest = max.saturating_sub(bytes.len() as u64).saturating_add(1);
        file.take(rest).read_to_end(&mut bytes).map_err(unread)?;
    }
    if known > max || bytes.len() as u64 > max {
        return Err(RecordError::Long { path: path.to_owned() });
    }
    tanks::open_recording(bytes).map_err(refused)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scratch::Folder;
    use halftrack_io::Journal as _;

    fn world() -> TankWorldConfig {
        TankWorldConfig::default()
    }

    #[test]
    fn a_file_is_made_with_its_first_byte_and_named_when_it_fails() {
        let folder = Folder::new();
        let recordings = Arc::new(Recordings::open(&folder.path().join("new/folder")).unwrap());
        let (mut file, _) = recordings.begin(&RoomName::default(), &world());
        let names = || {
            let entries = fs::read_dir(folder.path().join("new/folder")).unwrap();
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect::<Vec<_>>()
        };
        assert!(names().is_empty());
        assert!(file.write(b"one") && file.write(b"two"));
        assert_eq!(names().len(), 1);
        assert_eq!(recordings.counts().bytes.load(Ordering::Relaxed), 6);
        recordings.sync();
        assert_eq!(recordings.counts().syncs.load(Ordering::Relaxed), 1);
        let path = folder.path().join("new/folder").join(&names()[0]);
        assert_eq!(complete_name(&incomplete_name(&path)), path);
        assert!(recordings.unfinished().unwrap().is_empty(), "six bytes are no recording");
    }

    #[test]
    fn record_08_a_file_is_not_read_beyond_its_bound() {
        let folder = Folder::new();
        let path = folder.path().join("long.htrec");
        let header = halftrack::record::Header {
            shared: halftrack::shared_hash(&Tanks::new(world().arena), halftrack::Cadence::default()),
            cadence_micros: 50_000,
            first_tick: 0,
            run: [0; 16],
            body_key: [0; 16],
            limits: (1_024, 16),
            about: About::new("main", 1, &world()).encode(),
        };
        let mut bytes = vec![];
        halftrack::record::Recorder::<Tanks>::new(&header).take(&mut bytes);
        fs::write(&path, &bytes).unwrap();
        assert!(read_match(&path, Length::Bounded).is_ok());
        // A hole, which takes no space on the disk.
        fs::File::options().append(true).open(&path).unwrap().set_len(MAX_BYTES + 1).unwrap();
        let said = read_match(&path, Length::Bounded).err().unwrap().to_string();
        assert!(
            said.ends_with("is longer than 1024 MiB; use --allow-long to play it all the same"),
            "{said}"
        );
        // Zeros without end: the header decides before the rest is read.
        let zeros = Path::new("/dev/zero");
        assert!(matches!(read_match(zeros, Length::Any), Err(RecordError::Refused { .. })));
    }

    #[test]
    fn what_cannot_be_written_to_is_told_at_the_start() {
        let said = Recordings::open(Path::new("/dev/null/recordings")).err().unwrap().to_string();
        assert!(said.starts_with("cannot record to /dev/null/recordings"), "{said}");
    }

    #[test]
    fn a_run_of_the_machine_is_the_same_for_two_processes_of_it() {
        if Path::new("/proc/sys/kernel/random/boot_id").exists() {
            assert_eq!(this_run(), this_run());
        }
    }
}
