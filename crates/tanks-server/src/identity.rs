//! The server's certificate: from files, or made here and changed in good time.

use std::time::{Duration, SystemTime};

use halftrack_io::{Certificate, CertificateHash, IoError};

use crate::config;

/// What the server shows, and what it will show next.
pub(crate) struct Identity {
    certificate: Certificate,
    made: Option<Made>,
}

/// Of a certificate that was made here.
struct Made {
    /// Shown after the one that is shown now: announced early, so that a client that came before the change knows it.
    next: Certificate,
    since: SystemTime,
    validity: Duration,
    names: Vec<String>,
}

impl Identity {
    pub(crate) fn new(config: &config::Tls, now: SystemTime) -> Result<Self, IoError> {
        if let (Some(chain), Some(key)) = (&config.certificate, &config.key) {
            return Ok(Self { certificate: Certificate::from_pem_files(chain, key)?, made: None });
        }
        let (names, validity) = (config.names.clone(), config.validity());
        let certificate = sign(&names, validity)?;
        let next = sign(&names, validity)?;
        Ok(Self { certificate, made: Some(Made { next, since: now, validity, names }) })
    }

    pub(crate) fn certificate(&self) -> &Certificate {
        &self.certificate
    }

    /// For whoever knows no authority that has signed it: what is shown, and what will be.
    pub(crate) fn hashes(&self) -> Vec<CertificateHash> {
        let made = self.made.as_ref();
        made.map_or_else(Vec::new, |made| vec![self.certificate.hash(), made.next.hash()])
    }

    /// Changes a certificate that was made here, after half of its time. Gives whether it did.
    pub(crate) fn rotate(&mut self, now: SystemTime) -> Result<bool, IoError> {
        let Some(made) = &mut self.made else { return Ok(false) };
        if now.duration_since(made.since).unwrap_or(Duration::ZERO) < made.validity / 2 {
            return Ok(false);
        }
        let fresh = sign(&made.names, made.validity)?;
        self.certificate = core::mem::replace(&mut made.next, fresh);
        made.since = now;
        Ok(true)
    }
}

fn sign(names: &[String], validity: Duration) -> Result<Certificate, IoError> {
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    Certificate::self_signed(&names, validity)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;

    #[test]
    fn the_next_certificate_is_announced_before_it_is_shown() {
        let (config, start) = (Config::default().tls, SystemTime::now());
        let mut identity = Identity::new(&config, start).unwrap();
        let before = identity.hashes();
        assert_eq!((before.len(), before[0]), (2, identity.certificate().hash()));
        let day = Duration::from_secs(24 * 3_600);
        assert!(!identity.rotate(start + day * 7 - Duration::from_secs(1)).unwrap());
        assert!(identity.rotate(start + day * 7).unwrap());
        let after = identity.hashes();
        assert_eq!((after[0], identity.certificate().hash()), (before[1], before[1]));
        assert!(!before.contains(&after[1]));
        assert!(!identity.rotate(start + day * 8).unwrap());
        // It was made seven days before it is shown, and is shown for seven more: it still holds then.
        assert!(identity.rotate(start + day * 14).unwrap());
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
