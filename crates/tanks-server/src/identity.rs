//! The server's certificate: from files, or made here, kept, and changed in good time.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use halftrack_io::{Certificate, CertificateHash, IoError};
use serde::{Deserialize, Serialize};

use crate::config;
use crate::token::seconds;

/// What the server shows, and what it will show next.
pub(crate) struct Identity {
    certificate: Certificate,
    made: Option<Made>,
}

/// Of a certificate that was made here.
struct Made {
    /// Shown after the one that is shown now: announced early, so that a client that came before the change knows it.
    next: Certificate,
    about: About,
    keep: Option<PathBuf>,
}

/// What is kept beside certificates.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct About {
    /// Since when the present one is shown, seconds since 1970.
    since: u64,
    validity_s: u64,
    names: Vec<String>,
}

impl Identity {
    pub(crate) fn new(config: &config::Tls, now: SystemTime) -> Result<Self, IoError> {
        if let (Some(chain), Some(key)) = (&config.certificate, &config.key) {
            return Ok(Self { certificate: Certificate::from_pem_files(chain, key)?, made: None });
        }
        let about = About {
            since: seconds(now),
            validity_s: config.validity().as_secs(),
            names: config.names.clone(),
        };
        if let Some(kept) = config.keep.as_deref().and_then(|folder| load(folder, &about, now)) {
            return Ok(kept);
        }
        let (certificate, next) = (sign(&about)?, sign(&about)?);
        let made = Made { next, about, keep: config.keep.clone() };
        let identity = Self { certificate, made: Some(made) };
        identity.save()?;
        Ok(identity)
    }

    pub(crate) fn certificate(&self) -> &Certificate {
        &self.certificate
    }

    /// For whoever knows no authority that has signed it: what is shown, and what will be.
    pub(crate) fn hashes(&self) -> Vec<CertificateHash> {
        let made = self.made.as_ref();
        made.map_or_else(Vec::new, |made| vec![self.certificate.hash(), made.next.hash()])
    }

    /// Changes a certificate that was made here, when it is time. Gives whether it did.
    pub(crate) fn rotate(&mut self, now: SystemTime) -> Result<bool, IoError> {
        let Some(made) = self.made.as_mut().filter(|made| made.about.is_due(now)) else { return Ok(false) };
        let fresh = sign(&made.about)?;
        self.certificate = core::mem::replace(&mut made.next, fresh);
        made.about.since = seconds(now);
        self.save()?;
        Ok(true)
    }

    /// Keeps what was made here, where it is to be kept.
    fn save(&self) -> Result<(), IoError> {
        let Some(Made { next, about, keep: Some(folder) }) = &self.made else { return Ok(()) };
        let failed = |source| IoError::Write { path: folder.clone(), source };
        fs::create_dir_all(folder).map_err(failed)?;
        for (certificate, name) in [(&self.certificate, "present"), (next, "next")] {
            certificate.write_pem_files(&pem(folder, name), &key(folder, name))?;
        }
        let text = serde_json::to_string(about).unwrap_or_default();
        fs::write(folder.join(ABOUT), text).map_err(failed)
    }
}

const ABOUT: &str = "about.json";

fn pem(folder: &Path, name: &str) -> PathBuf {
    folder.join(format!("{name}.pem"))
}

fn key(folder: &Path, name: &str) -> PathBuf {
    folder.join(format!("{name}.key"))
}

impl About {
    /// One is made when the one before it begins to be shown, and shown from then on for two fifths of its time: it is
    /// over after four, and a clock may be wrong by hours.
    fn is_due(&self, now: SystemTime) -> bool {
        let since = UNIX_EPOCH + Duration::from_secs(self.since);
        now.duration_since(since).unwrap_or(Duration::ZERO) >= Duration::from_secs(self.validity_s) * 2 / 5
    }
}

/// What was kept, if it is for the same names and time, and is not due to be changed.
fn load(folder: &Path, wanted: &About, now: SystemTime) -> Option<Identity> {
    let about: About = serde_json::from_slice(&fs::read(folder.join(ABOUT)).ok()?).ok()?;
    let same = (&about.names, about.validity_s) == (&wanted.names, wanted.validity_s);
    if !same || about.is_due(now) || about.since > seconds(now) {
        return None;
    }
    let read = |name| Certificate::from_pem_files(&pem(folder, name), &key(folder, name)).ok();
    let (certificate, next) = (read("present")?, read("next")?);
    Some(Identity { certificate, made: Some(Made { next, about, keep: Some(folder.to_owned()) }) })
}

fn sign(about: &About) -> Result<Certificate, IoError> {
    let names: Vec<&str> = about.names.iter().map(String::as_str).collect();
    Certificate::self_signed(&names, Duration::from_secs(about.validity_s))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;
    use crate::scratch::Folder;

    const DAY: Duration = Duration::from_secs(24 * 3_600);

    #[test]
    fn the_next_certificate_is_announced_before_it_is_shown() {
        let (config, start) = (Config::default().tls, SystemTime::now());
        let mut identity = Identity::new(&config, start).unwrap();
        let before = identity.hashes();
        assert_eq!((before.len(), before[0]), (2, identity.certificate().hash()));
        // Two fifths of fourteen days, and the second that a clock is read within.
        let due = DAY * 28 / 5;
        assert!(!identity.rotate(start + due - Duration::from_secs(2)).unwrap());
        assert!(identity.rotate(start + due).unwrap());
        let after = identity.hashes();
        assert_eq!((after[0], identity.certificate().hash()), (before[1], before[1]));
        assert!(!before.contains(&after[1]));
        assert!(!identity.rotate(start + due + DAY).unwrap());
        assert!(
            identity.rotate(start + due * 2).unwrap(),
            "the second one was made at the start, and has days left"
        );
    }

    #[test]
    fn a_restart_shows_the_same_until_it_is_due() {
        let (folder, start) = (Folder::new(), SystemTime::now());
        let config = config::Tls { keep: Some(folder.path().join("kept")), ..Config::default().tls };
        let first = Identity::new(&config, start).unwrap().hashes();
        assert_eq!(Identity::new(&config, start + DAY).unwrap().hashes(), first);
        let mut again = Identity::new(&config, start + DAY).unwrap();
        assert!(again.rotate(start + DAY * 6).unwrap());
        assert_eq!(Identity::new(&config, start + DAY * 7).unwrap().hashes(), again.hashes());
        let other = config::Tls { names: vec!["example.org".to_owned()], ..config.clone() };
        assert_ne!(Identity::new(&other, start + DAY * 7).unwrap().hashes(), again.hashes());
        fs::write(folder.path().join("kept/present.key"), "torn").unwrap();
        assert_eq!(Identity::new(&config, start + DAY * 7).unwrap().hashes().len(), 2, "made anew");
        let unwritable = config::Tls { keep: Some("/dev/null/kept".into()), ..config };
        assert!(matches!(Identity::new(&unwritable, start), Err(IoError::Write { .. })));
    }

    #[test]
    fn files_that_are_not_there_are_named() {
        let config = config::Tls {
            certificate: Some("no-chain.pem".into()),
            key: Some("no-key.pem".into()),
            ..Config::default().tls
        };
        let said = Identity::new(&config, SystemTime::now()).err().map(|problem| problem.to_string());
        assert!(said.unwrap().contains("no-chain.pem"));
    }
}
