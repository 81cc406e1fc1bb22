//! The operator's secret: read from a file, never told.

use std::fs;
use std::path::{Path, PathBuf};

use ring::digest::{Digest, SHA256, digest};

/// A hash of it: comparing hashes takes as long for a near miss as for a far one.
pub(crate) struct Secret(Digest);

/// A secret that cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SecretError {
    #[error("cannot read {}: {source}; admin.secret_file and metrics.secret_file name files with a secret", path.display())]
    Read { path: PathBuf, source: std::io::Error },
    #[error("{} is too short for a secret: write at least 16 characters, such as `openssl rand -hex 16` gives", path.display())]
    Short { path: PathBuf },
}

impl Secret {
    /// The one in that file, if there is to be one.
    pub(crate) fn of(file: Option<&Path>) -> Result<Option<Self>, SecretError> {
        let Some(path) = file else { return Ok(None) };
        let read = |source| SecretError::Read { path: path.to_owned(), source };
        let text = fs::read_to_string(path).map_err(read)?;
        let secret = text.trim();
        if secret.len() < 16 {
            return Err(SecretError::Short { path: path.to_owned() });
        }
        Ok(Some(Self(digest(&SHA256, secret.as_bytes()))))
    }

    pub(crate) fn is(&self, secret: &str) -> bool {
        digest(&SHA256, secret.as_bytes()).as_ref() == self.0.as_ref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scratch::Folder;

    #[test]
    fn a_secret_is_itself_and_nothing_else() {
        let folder = Folder::new();
        let file = folder.write("secret", "0123456789abcdef\n");
        let secret = Secret::of(Some(&file)).unwrap().unwrap();
        assert!(secret.is("0123456789abcdef"));
        assert!(!secret.is("0123456789abcdef\n") && !secret.is("") && !secret.is("0123456789abcdeg"));
        assert!(Secret::of(None).unwrap().is_none());
        let short = folder.write("short", "0123456789abcde\n\n");
        assert!(matches!(Secret::of(Some(&short)), Err(SecretError::Short { .. })));
        assert!(Secret::of(Some(Path::new("none"))).is_err());
    }
}
