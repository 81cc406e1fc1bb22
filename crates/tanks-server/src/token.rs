//! Signed tokens: JSON Web Tokens with EdDSA (Ed25519) and nothing else. What they say, how they are made and checked.
//!
//! A token names its player and when it ends, and may name the one room it is for:
//!
//! ```text
//! {"alg":"EdDSA","typ":"JWT"}.{"sub":"Ada","exp":1800000000,"room":"duel"}.signature     each in base64url
//! ```
//!
//! The header is only looked at for its algorithm, which can be no other: a token cannot choose how it is checked.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use data_encoding::{BASE64, BASE64URL_NOPAD};
use halftrack::PlayerName;
use halftrack_io::RoomName;
use ring::rand::SystemRandom;
use ring::signature::{ED25519, Ed25519KeyPair, UnparsedPublicKey};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{PrivatePkcs8KeyDer, SubjectPublicKeyInfoDer};
use serde::{Deserialize, Serialize};

/// What a token says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Claims {
    /// The player's name, and no other.
    pub(crate) sub: String,
    /// When it ends, seconds since 1970.
    pub(crate) exp: u64,
    /// The room that it is for; any, if none is named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) room: Option<String>,
}

#[derive(Serialize, Deserialize)]
struct Header {
    alg: String,
    #[serde(default)]
    typ: Option<String>,
}

/// Why a token lets nobody in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum TokenError {
    #[error("it is not a token signed with EdDSA")]
    Malformed,
    #[error("its signature is not of this server's key")]
    Signature,
    #[error("it has expired")]
    Expired,
    #[error("it is for another player")]
    OtherPlayer,
    #[error("it is for another room")]
    OtherRoom,
}

/// A key that cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum KeyError {
    #[error("cannot read {}: {source}; check the path and who may read it", path.display())]
    Read { path: PathBuf, source: std::io::Error },
    #[error("{} holds no Ed25519 {what} key in PEM form: `tanks token --new-key KEY.pem` makes a pair", path.display())]
    Form { path: PathBuf, what: &'static str },
    #[error("cannot write {}: {source}; choose a file that is not there yet, in a folder you may write to", path.display())]
    Write { path: PathBuf, source: std::io::Error },
    #[error("the system gives no random numbers: try again")]
    NoRandomness,
}

/// What comes before the 32 bytes of an Ed25519 public key in its usual wrapping (RFC 8410).
const PUBLIC_KEY_PREFIX: [u8; 12] = [0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00];

/// Longer tokens are not looked at.
const MAX_BYTES: usize = 1_024;

/// Checks tokens.
#[derive(Clone, Debug)]
pub(crate) struct Verifier(UnparsedPublicKey<Vec<u8>>);

impl Verifier {
    pub(crate) fn from_file(path: &Path) -> Result<Self, KeyError> {
        let text = read(path)?;
        let form = || KeyError::Form { path: path.to_owned(), what: "public" };
        let wrapped = SubjectPublicKeyInfoDer::from_pem_slice(&text).map_err(|_| form())?;
        let key = wrapped.strip_prefix(&PUBLIC_KEY_PREFIX).filter(|key| key.len() == 32).ok_or_else(form)?;
        Ok(Self(UnparsedPublicKey::new(&ED25519, key.to_vec())))
    }

    /// Whether `token` lets `name` into `room` at `now`.
    pub(crate) fn check(
        &self,
        token: &str,
        name: &PlayerName,
        room: &RoomName,
        now: SystemTime,
    ) -> Result<Claims, TokenError> {
        let malformed = TokenError::Malformed;
        if token.len() > MAX_BYTES {
            return Err(malformed);
        }
        let (signed, signature) = token.rsplit_once('.').ok_or(malformed)?;
        let (header, claims) = signed.split_once('.').ok_or(malformed)?;
        let decode = |text: &str| BASE64URL_NOPAD.decode(text.as_bytes()).map_err(|_| malformed);
        let header: Header = serde_json::from_slice(&decode(header)?).map_err(|_| malformed)?;
        if header.alg != "EdDSA" {
            return Err(malformed);
        }
        self.0.verify(signed.as_bytes(), &decode(signature)?).map_err(|_| TokenError::Signature)?;
        let claims: Claims = serde_json::from_slice(&decode(claims)?).map_err(|_| malformed)?;
        if seconds(now) >= claims.exp {
            return Err(TokenError::Expired);
        }
        if claims.sub != name.as_str() {
            return Err(TokenError::OtherPlayer);
        }
        if claims.room.as_deref().is_some_and(|only| only != room.as_str()) {
            return Err(TokenError::OtherRoom);
        }
        Ok(claims)
    }
}

/// Makes tokens.
#[derive(Debug)]
pub(crate) struct Signer(Ed25519KeyPair);

impl Signer {
    pub(crate) fn from_file(path: &Path) -> Result<Self, KeyError> {
        let text = read(path)?;
        let form = || KeyError::Form { path: path.to_owned(), what: "private" };
        let wrapped = PrivatePkcs8KeyDer::from_pem_slice(&text).map_err(|_| form())?;
        // Other tools leave the public key out of the file.
        let key = Ed25519KeyPair::from_pkcs8_maybe_unchecked(wrapped.secret_pkcs8_der());
        key.map(Self).map_err(|_| form())
    }

    pub(crate) fn sign(&self, claims: &Claims) -> String {
        let encode = |json: serde_json::Result<Vec<u8>>| BASE64URL_NOPAD.encode(&json.unwrap_or_default());
        let header = Header { alg: "EdDSA".to_owned(), typ: Some("JWT".to_owned()) };
        let signed =
            format!("{}.{}", encode(serde_json::to_vec(&header)), encode(serde_json::to_vec(claims)));
        let signature = BASE64URL_NOPAD.encode(self.0.sign(signed.as_bytes()).as_ref());
        format!("{signed}.{signature}")
    }
}

/// Seconds since 1970.
pub(crate) fn seconds(at: SystemTime) -> u64 {
    at.duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO).as_secs()
}

fn read(path: &Path) -> Result<Vec<u8>, KeyError> {
    fs::read(path).map_err(|source| KeyError::Read { path: path.to_owned(), source })
}

/// Where the public half of a pair goes: `key.pem` has `key.pub.pem` beside it.
pub(crate) fn public_path(private: &Path) -> PathBuf {
    private.with_extension("pub.pem")
}

/// Writes a new pair: the private key where it is said, readable by its owner alone, and the public one beside it. Files
/// that are there already are not touched.
pub(crate) fn write_new_pair(private: &Path) -> Result<PathBuf, KeyError> {
    let pair = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new()).map_err(|_| KeyError::NoRandomness)?;
    let key = Ed25519KeyPair::from_pkcs8(pair.as_ref()).map_err(|_| KeyError::NoRandomness)?;
    let wrapped = [&PUBLIC_KEY_PREFIX[..], ring::signature::KeyPair::public_key(&key).as_ref()].concat();
    let public = public_path(private);
    write_new(private, &pem("PRIVATE KEY", pair.as_ref()), true)?;
    write_new(&public, &pem("PUBLIC KEY", &wrapped), false)?;
    Ok(public)
}

fn write_new(path: &Path, text: &str, secret: bool) -> Result<(), KeyError> {
    let mut options = fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    if secret {
        use std::os::unix::fs::OpenOptionsExt as _;
        options.mode(0o600);
    }
    let _ = secret;
    let written = options.open(path).and_then(|mut file| file.write_all(text.as_bytes()));
    written.map_err(|source| KeyError::Write { path: path.to_owned(), source })
}

fn pem(label: &str, der: &[u8]) -> String {
    let body = BASE64.encode(der);
    let lines = body.as_bytes().chunks(64).map(String::from_utf8_lossy);
    let lines: Vec<_> = lines.collect();
    format!("-----BEGIN {label}-----\n{}\n-----END {label}-----\n", lines.join("\n"))
}

/// `tanks token`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    tanks token --new-key key.pem                        a new pair: key.pem and key.pub.pem\n  \
    tanks token --key key.pem --name Ada --minutes 60    a token for Ada\n\n\
    The server checks with the public key:\n  \
    tanks serve --set auth.mode=tokens --set auth.public_key=key.pub.pem")]
pub(crate) struct Options {
    /// Makes a new pair of keys: this file, and the public key beside it as *.pub.pem.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["key", "name", "room"])]
    new_key: Option<PathBuf>,
    /// The private key that signs (Ed25519, PEM).
    #[arg(long, value_name = "FILE", required_unless_present = "new_key")]
    key: Option<PathBuf>,
    /// Whom the token is for: the name that the player comes with.
    #[arg(long, required_unless_present = "new_key", value_parser = PlayerName::new)]
    name: Option<PlayerName>,
    /// The only room that it is for. Default: any.
    #[arg(long)]
    room: Option<RoomName>,
    /// How long it is good for. A player who was cut needs it again to come back.
    #[arg(long, default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..=525_600))]
    minutes: u64,
}

/// Makes a token or a pair of keys, and says so on standard output.
pub(crate) fn run(options: &Options) -> Result<(), KeyError> {
    if let Some(private) = &options.new_key {
        let public = write_new_pair(private)?;
        println!("{} signs tokens: keep it secret", private.display());
        println!("{} checks them: auth.public_key of the server", public.display());
        return Ok(());
    }
    let (Some(key), Some(name)) = (&options.key, &options.name) else { return Ok(()) };
    let claims = Claims {
        sub: name.as_str().to_owned(),
        exp: seconds(SystemTime::now()) + options.minutes * 60,
        room: options.room.as_ref().map(ToString::to_string),
    };
    println!("{}", Signer::from_file(key)?.sign(&claims));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scratch::Folder;

    const NOW: u64 = 1_700_000_000;

    fn at(seconds: u64) -> SystemTime {
        UNIX_EPOCH + Duration::from_secs(seconds)
    }

    fn pair() -> (Folder, Signer, Verifier) {
        let folder = Folder::new();
        let private = folder.path().join("key.pem");
        let public = write_new_pair(&private).unwrap();
        let keys = (Signer::from_file(&private).unwrap(), Verifier::from_file(&public).unwrap());
        (folder, keys.0, keys.1)
    }

    fn ada(room: Option<&str>) -> Claims {
        Claims { sub: "Ada".to_owned(), exp: NOW + 60, room: room.map(str::to_owned) }
    }

    fn check(
        verifier: &Verifier,
        token: &str,
        name: &str,
        room: &str,
        now: u64,
    ) -> Result<Claims, TokenError> {
        verifier.check(token, &PlayerName::new(name).unwrap(), &RoomName::new(room).unwrap(), at(now))
    }

    #[test]
    fn a_token_lets_its_player_in_and_nobody_else() {
        let (_folder, signer, verifier) = pair();
        let token = signer.sign(&ada(None));
        assert_eq!(check(&verifier, &token, "Ada", "any", NOW), Ok(ada(None)));
        assert_eq!(check(&verifier, &token, "Eve", "any", NOW), Err(TokenError::OtherPlayer));
        assert_eq!(check(&verifier, &token, "Ada", "any", NOW + 59).map(|_| ()), Ok(()));
        assert_eq!(check(&verifier, &token, "Ada", "any", NOW + 60), Err(TokenError::Expired));
        let token = signer.sign(&ada(Some("duel")));
        assert_eq!(check(&verifier, &token, "Ada", "duel", NOW).map(|_| ()), Ok(()));
        assert_eq!(check(&verifier, &token, "Ada", "main", NOW), Err(TokenError::OtherRoom));
    }

    #[test]
    fn another_key_another_algorithm_and_any_changed_letter_are_refused() {
        let (_folder, signer, verifier) = pair();
        let (_other_folder, other, _) = pair();
        assert_eq!(check(&verifier, &other.sign(&ada(None)), "Ada", "a", NOW), Err(TokenError::Signature));
        let token = signer.sign(&ada(None));
        let (_, rest) = token.split_once('.').unwrap();
        for alg in ["none", "HS256", "eddsa", ""] {
            let header = BASE64URL_NOPAD.encode(format!(r#"{{"alg":"{alg}"}}"#).as_bytes());
            assert_eq!(
                check(&verifier, &format!("{header}.{rest}"), "Ada", "a", NOW),
                Err(TokenError::Malformed)
            );
        }
        for at in 0..token.len() {
            let mut changed = token.clone().into_bytes();
            changed[at] = if changed[at] == b'A' { b'B' } else { b'A' };
            assert!(check(&verifier, &String::from_utf8(changed).unwrap(), "Ada", "a", NOW).is_err(), "{at}");
        }
        for end in 0..token.len() {
            assert!(check(&verifier, &token[..end], "Ada", "a", NOW).is_err());
        }
        assert_eq!(check(&verifier, &"a".repeat(MAX_BYTES + 1), "Ada", "a", NOW), Err(TokenError::Malformed));
    }

    #[test]
    fn claims_of_another_form_are_refused() {
        let (_folder, signer, verifier) = pair();
        let sign = |claims: &str| {
            let header = BASE64URL_NOPAD.encode(br#"{"alg":"EdDSA"}"#);
            let signed = format!("{header}.{}", BASE64URL_NOPAD.encode(claims.as_bytes()));
            let signature = BASE64URL_NOPAD.encode(signer.0.sign(signed.as_bytes()).as_ref());
            format!("{signed}.{signature}")
        };
        let good = sign(r#"{"sub":"Ada","exp":1700000060,"iat":5}"#);
        assert!(check(&verifier, &good, "Ada", "a", NOW).is_ok());
        for bad in [
            r#"{"sub":"Ada"}"#,
            r#"{"sub":"Ada","exp":"1700000060"}"#,
            r#"{"sub":"Ada","exp":-1}"#,
            r#"{"sub":"Ada","exp":1700000060,"room":7}"#,
            r#"{"exp":1700000060}"#,
            "[]",
            "",
        ] {
            assert_eq!(check(&verifier, &sign(bad), "Ada", "a", NOW), Err(TokenError::Malformed), "{bad}");
        }
    }

    #[test]
    fn keys_are_not_overwritten_and_bad_files_are_named() {
        let folder = Folder::new();
        let private = folder.path().join("key.pem");
        let public = write_new_pair(&private).unwrap();
        assert!(matches!(write_new_pair(&private), Err(KeyError::Write { .. })));
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            assert_eq!(fs::metadata(&private).unwrap().permissions().mode() & 0o777, 0o600);
        }
        let said = |path: &Path| Verifier::from_file(path).unwrap_err().to_string();
        assert!(said(&private).contains("no Ed25519 public key"), "{}", said(&private));
        assert!(said(Path::new("none.pem")).contains("cannot read none.pem"));
        let other = folder.write("other.pem", "-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n");
        assert!(said(&other).contains("no Ed25519 public key"));
        assert!(matches!(Signer::from_file(&public), Err(KeyError::Form { .. })));
    }
}
