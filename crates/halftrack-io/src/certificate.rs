//! Certificates: the server's own, and which of them a client trusts. Does not know who listens or connects.

use core::fmt;
use core::str::FromStr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, WebPkiSupportedAlgorithms, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer, ServerName, UnixTime};
use rustls::{CertificateError, DigitallySignedStruct, RootCertStore, SignatureScheme};

use crate::error::IoError;

/// SHA-256 of a certificate: what a browser takes as `serverCertificateHashes`.
///
/// ```
/// use halftrack_io::CertificateHash;
///
/// let hash: CertificateHash = "00ff".repeat(16).parse()?;
/// assert_eq!(hash.to_string(), "00ff".repeat(16));
/// # Ok::<(), halftrack_io::IoError>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct CertificateHash([u8; 32]);

impl CertificateHash {
    /// The hash of a certificate in DER form.
    pub fn of(der: &[u8]) -> Self {
        let mut hash = [0; 32];
        let digest = ring::digest::digest(&ring::digest::SHA256, der);
        for (to, from) in hash.iter_mut().zip(digest.as_ref()) {
            *to = *from;
        }
        Self(hash)
    }

    /// Its bytes.
    pub const fn bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl fmt::Display for CertificateHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for CertificateHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for CertificateHash {
    type Err = IoError;

    fn from_str(text: &str) -> Result<Self, IoError> {
        let digits: Vec<u8> = text
            .chars()
            .map(|digit| digit.to_digit(16).and_then(|digit| u8::try_from(digit).ok()))
            .collect::<Option<_>>()
            .ok_or(IoError::Hash)?;
        let bytes: Vec<u8> =
            digits.chunks(2).map(|pair| pair.iter().fold(0, |sum, digit| sum << 4 | digit)).collect();
        if digits.len() != 64 {
            return Err(IoError::Hash);
        }
        bytes.try_into().map(Self).map_err(|_| IoError::Hash)
    }
}

/// A server's certificate and its key.
pub struct Certificate {
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
    hash: CertificateHash,
}

impl fmt::Debug for Certificate {
    /// Without the key.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Certificate").field("hash", &self.hash).finish_non_exhaustive()
    }
}

impl Certificate {
    /// As long as a browser takes one by its hash.
    pub const MAX_VALIDITY: Duration = Duration::from_secs(14 * 24 * 3_600);
    /// The clocks of two machines differ: it is valid so long before it is made.
    const BEFORE: Duration = Duration::from_secs(600);

    /// What nobody else has, for keys that are to last as long as it does.
    pub(crate) fn secret(&self) -> &[u8] {
        self.key.secret_der()
    }

    /// One that vouches for itself, for these host names and addresses: ECDSA on P-256, which is what browsers take by
    /// hash. `validity` is from an hour to [`Self::MAX_VALIDITY`].
    ///
    /// # Errors
    /// When the validity is out of its range, or a name is none.
    pub fn self_signed(names: &[&str], validity: Duration) -> Result<Self, IoError> {
        if validity > Self::MAX_VALIDITY || validity < Duration::from_secs(3_600) {
            return Err(IoError::Validity);
        }
        let failed = |problem: rcgen::Error| IoError::Certificate(problem.into());
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let mut params = rcgen::CertificateParams::new(names).map_err(failed)?;
        let start = SystemTime::now() - Self::BEFORE;
        params.not_before = start.into();
        params.not_after = (start + validity).into();
        let key = rcgen::KeyPair::generate_for(&rcgen::PKCS_ECDSA_P256_SHA256).map_err(failed)?;
        let certificate = params.self_signed(&key).map_err(failed)?;
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
        Ok(Self::of(vec![certificate.der().clone()], key))
    }

    /// One from files in PEM form: the chain, the server's own first, and its key.
    ///
    /// # Errors
    /// When a file cannot be read, or holds something else.
    pub fn from_pem_files(chain: &Path, key: &Path) -> Result<Self, IoError> {
        let certificates = read_chain(chain)?;
        let bytes = read(key)?;
        let pem = |_| IoError::Pem { path: key.to_owned(), what: "private key" };
        let key = PrivateKeyDer::from_pem_slice(&bytes).map_err(pem)?;
        Ok(Self::of(certificates, key))
    }

    /// Writes it as files in PEM form, the key readable by its owner alone: a server that starts again can show the same.
    /// Files that are there are replaced.
    ///
    /// # Errors
    /// When a file cannot be written.
    pub fn write_pem_files(&self, chain: &Path, key: &Path) -> Result<(), IoError> {
        let certificates: String = self.chain.iter().map(|each| pem("CERTIFICATE", each)).collect();
        let label = match &self.key {
            PrivateKeyDer::Pkcs1(_) => "RSA PRIVATE KEY",
            PrivateKeyDer::Sec1(_) => "EC PRIVATE KEY",
            _ => "PRIVATE KEY",
        };
        // First: a certificate without its key is of no use.
        write(key, &pem(label, self.key.secret_der()), Readers::Owner)?;
        write(chain, &certificates, Readers::Everybody)
    }

    fn of(chain: Vec<CertificateDer<'static>>, key: PrivateKeyDer<'static>) -> Self {
        let hash = CertificateHash::of(chain.first().map_or(&[], |own| own.as_ref()));
        Self { chain, key, hash }
    }

    /// Its hash, for those who are to trust it by that.
    pub fn hash(&self) -> CertificateHash {
        self.hash
    }

    /// Whether the handshake that shows it fits into what an unproven address may be sent: three datagrams. With a longer
    /// chain a handshake would stop in the middle and wait for the peer, which takes as long as asking for proof first.
    pub(crate) fn fits_unproven(&self) -> bool {
        /// Of 3,600 bytes, the rest is for the other messages of the handshake and for what is around them.
        const MAX_CHAIN: usize = 2_800;
        self.chain.iter().map(|each| each.len()).sum::<usize>() <= MAX_CHAIN
    }

    /// What the handshake needs of it.
    pub(crate) fn tls(&self, protocols: &[&[u8]]) -> Result<rustls::ServerConfig, IoError> {
        let failed = |problem: rustls::Error| IoError::Certificate(problem.into());
        let mut tls = rustls::ServerConfig::builder_with_provider(provider())
            .with_protocol_versions(&[&rustls::version::TLS13])
            .map_err(failed)?
            .with_no_client_auth()
            .with_single_cert(self.chain.clone(), self.key.clone_key())
            .map_err(failed)?;
        tls.alpn_protocols = protocols.iter().map(|protocol| protocol.to_vec()).collect();
        Ok(tls)
    }
}

/// Which servers a client believes to be themselves. There is no way to believe anybody.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Trust {
    /// Those with one of these certificates, whatever names are in them.
    Hashes(Vec<CertificateHash>),
    /// Those whose certificate is signed by one in this PEM file, and made for the host that is asked for.
    Roots(PathBuf),
    /// Those whose certificate is signed by an authority that the system trusts, and made for the host.
    System,
}

/// Notes what an unknown server showed, for an error that can be read.
pub(crate) type Shown = Arc<Mutex<Option<CertificateHash>>>;

impl Trust {
    /// What the handshake needs of it.
    pub(crate) fn tls(&self, protocol: &[u8]) -> Result<(rustls::ClientConfig, Shown), IoError> {
        let shown = Shown::default();
        let failed = |problem: rustls::Error| IoError::Handshake(problem.into());
        let builder = rustls::ClientConfig::builder_with_provider(provider())
            .with_protocol_versions(&[&rustls::version::TLS13])
            .map_err(failed)?;
        let mut tls = match self {
            Self::Hashes(hashes) => {
                let algorithms = provider().signature_verification_algorithms;
                let by_hash = ByHash { trusted: hashes.clone(), shown: shown.clone(), algorithms };
                builder.dangerous().with_custom_certificate_verifier(Arc::new(by_hash)).with_no_client_auth()
            }
            Self::Roots(path) => {
                let mut roots = RootCertStore::empty();
                for certificate in read_chain(path)? {
                    roots.add(certificate).map_err(failed)?;
                }
                builder.with_root_certificates(roots).with_no_client_auth()
            }
            Self::System => {
                let mut roots = RootCertStore::empty();
                // Some of a system's roots are older than the rules; the others do.
                roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
                builder.with_root_certificates(roots).with_no_client_auth()
            }
        };
        tls.alpn_protocols = vec![protocol.to_vec()];
        Ok((tls, shown))
    }
}

fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}

/// Who may read a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Readers {
    Owner,
    Everybody,
}

/// Writes a file whole: whoever reads it meanwhile finds the old one.
fn write(path: &Path, text: &str, readers: Readers) -> Result<(), IoError> {
    let written = || {
        let new = path.with_extension("new");
        let mut options = std::fs::OpenOptions::new();
        options.write(true).create(true).truncate(true);
        #[cfg(unix)]
        if readers == Readers::Owner {
            use std::os::unix::fs::OpenOptionsExt as _;
            options.mode(0o600);
        }
        let _ = readers;
        let mut file = options.open(&new)?;
        std::io::Write::write_all(&mut file, text.as_bytes())?;
        file.sync_all()?;
        std::fs::rename(&new, path)
    };
    written().map_err(|source| IoError::Write { path: path.to_owned(), source })
}

fn pem(label: &str, der: &[u8]) -> String {
    let body = data_encoding::BASE64.encode(der);
    let lines: Vec<_> = body.as_bytes().chunks(64).map(String::from_utf8_lossy).collect();
    format!("-----BEGIN {label}-----\n{}\n-----END {label}-----\n", lines.join("\n"))
}

fn read(path: &Path) -> Result<Vec<u8>, IoError> {
    std::fs::read(path).map_err(|source| IoError::File { path: path.to_owned(), source })
}

fn read_chain(path: &Path) -> Result<Vec<CertificateDer<'static>>, IoError> {
    let bytes = read(path)?;
    let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&bytes).collect();
    match chain {
        Ok(chain) if !chain.is_empty() => Ok(chain),
        _ => Err(IoError::Pem { path: path.to_owned(), what: "certificate" }),
    }
}

/// Believes those whose certificate has a known hash, and who have its key.
#[derive(Debug)]
struct ByHash {
    trusted: Vec<CertificateHash>,
    shown: Shown,
    algorithms: WebPkiSupportedAlgorithms,
}

impl ServerCertVerifier for ByHash {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let hash = CertificateHash::of(end_entity);
        if self.trusted.contains(&hash) {
            return Ok(ServerCertVerified::assertion());
        }
        *self.shown.lock().unwrap_or_else(PoisonError::into_inner) = Some(hash);
        Err(CertificateError::ApplicationVerificationFailure.into())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        // QUIC has no TLS 1.2.
        Err(CertificateError::ApplicationVerificationFailure.into())
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, certificate, signed, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_certificate_lives_no_longer_than_a_browser_takes() {
        let day = Duration::from_secs(24 * 3_600);
        assert!(Certificate::self_signed(&["localhost", "127.0.0.1"], day * 14).is_ok());
        assert!(Certificate::self_signed(&["localhost"], Duration::from_secs(3_600)).is_ok());
        for validity in [day * 14 + Duration::from_secs(1), Duration::from_secs(3_599)] {
            assert!(matches!(Certificate::self_signed(&["localhost"], validity), Err(IoError::Validity)));
        }
    }

    #[test]
    fn every_certificate_has_its_own_hash_and_no_key_is_shown() {
        let make = || Certificate::self_signed(&["localhost"], Certificate::MAX_VALIDITY).unwrap();
        let (one, other) = (make(), make());
        assert_ne!(one.hash(), other.hash());
        assert_eq!(one.hash().to_string().parse::<CertificateHash>().unwrap(), one.hash());
        assert_eq!(format!("{one:?}"), format!("Certificate {{ hash: {}, .. }}", one.hash()));
    }

    #[test]
    fn what_is_no_hash_is_refused() {
        for text in ["", "00", &"0".repeat(63), &"0".repeat(65), &"g".repeat(64), &"ä".repeat(32)] {
            assert!(text.parse::<CertificateHash>().is_err(), "{text}");
        }
    }

    #[test]
    fn files_that_are_not_there_or_not_right_are_named() {
        let missing = Path::new("/nowhere/chain.pem");
        let said = Certificate::from_pem_files(missing, missing).unwrap_err().to_string();
        assert!(said.starts_with("cannot read /nowhere/chain.pem"), "{said}");
        let wrong = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml"));
        let said = Certificate::from_pem_files(wrong, wrong).unwrap_err().to_string();
        assert!(said.contains("Cargo.toml holds no certificate in PEM form"), "{said}");
    }
}
