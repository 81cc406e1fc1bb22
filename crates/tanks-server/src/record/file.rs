//! One recording that is being written.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use halftrack_io::Journal;

use super::{Recordings, incomplete_name};

/// See the module.
pub(crate) struct RecordingFile {
    path: PathBuf,
    file: Option<Arc<File>>,
    recordings: Arc<Recordings>,
}

impl RecordingFile {
    /// One that is made with its first byte.
    pub(super) fn new(path: PathBuf, recordings: Arc<Recordings>) -> Self {
        Self { path, file: None, recordings }
    }

    /// One that is there, and goes on after so many bytes.
    pub(super) fn reopen(path: PathBuf, length: u64, recordings: Arc<Recordings>) -> io::Result<Self> {
        let file = OpenOptions::new().append(true).open(&path)?;
        file.set_len(length)?;
        file.sync_data()?;
        let file = Arc::new(file);
        recordings.register(&file);
        Ok(Self { path, file: Some(file), recordings })
    }

    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        let file = match &self.file {
            Some(file) => file,
            None => {
                let mut options = OpenOptions::new();
                options.append(true).create_new(true);
                // It has tokens by which players come back.
                #[cfg(unix)]
                std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
                let file = Arc::new(options.open(&self.path)?);
                if let Some(folder) = self.path.parent() {
                    // Its name is to last too.
                    File::open(folder)?.sync_all()?;
                }
                self.recordings.register(&file);
                tracing::info!(file = %self.path.display(), "a recording begins");
                self.file.insert(file)
            }
        };
        (&**file).write_all(bytes)?;
        self.recordings.counts().bytes.fetch_add(bytes.len() as u64, Ordering::Relaxed);
        Ok(())
    }
}

impl Journal for RecordingFile {
    fn write(&mut self, bytes: &[u8]) -> bool {
        let Err(problem) = self.append(bytes) else { return true };
        self.recordings.counts().failures.fetch_add(1, Ordering::Relaxed);
        tracing::error!(
            file = %self.path.display(), %problem,
            "this match is not recorded any more, and goes on: free the disk, or check who may write there"
        );
        // Players will be told what is not in it: whoever goes on from it must know.
        if self.file.is_some()
            && let Err(problem) = fs::rename(&self.path, incomplete_name(&self.path))
        {
            tracing::error!(file = %self.path.display(), %problem, "nor can it be marked as incomplete");
        }
        false
    }
}
