//! Signed tokens: JSON Web Tokens with EdDSA (Ed25519) and nothing else. What they say, how they are made and checked.
//!
//! A token names its player (`sub`) and its end (`exp`). It may name its beginning (`nbf`), its audience (`aud`) and the one
//! room it is for (`room`):
//!
//! ```text
//! {"alg":"EdDSA","typ":"JWT"}.{"sub":"Ada","exp":1800000000,"room":"duel"}.signature     each in base64url
//! ```
//!
//! The algorithm can be no other: a token cannot choose how it is checked. A header with `crit` is refused, because it names
//! extensions that must be understood, and none are (RFC 7515, 4.1.11).

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use data_encoding::{BASE64, BASE64URL_NOPAD};
use halftrack::PlayerName;
use halftrack_io::RoomName;
use ring::rand::{SecureRandom as _, SystemRandom};
use ring::signature::{ED25519, Ed25519KeyPair, KeyPair as _, UnparsedPublicKey};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{PrivatePkcs8KeyDer, SubjectPublicKeyInfoDer};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};

use crate::out;

/// What a token says.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Claims {
    /// The player's name, and no other.
    pub(crate) sub: String,
    /// When it ends, seconds since 1970.
    #[serde(deserialize_with = "whole_seconds")]
    pub(crate) exp: u64,
    /// When it begins, seconds since 1970; at once, if it does not say.
    #[serde(default, deserialize_with = "optional_seconds", skip_serializing_if = "Option::is_none")]
    pub(crate) nbf: Option<u64>,
    /// The services that it is for.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    pub(crate) aud: Option<Audience>,
    /// The room that it is for; any, if none is named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) room: Option<String>,
}

/// One name, or several (RFC 7519, 4.1.3).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub(crate) enum Audience {
    One(String),
    Many(Vec<String>),
}

impl Audience {
    fn has(&self, name: &str) -> bool {
        match self {
            Self::One(only) => only == name,
            Self::Many(names) => names.iter().any(|one| one == name),
        }
    }
}

/// A `NumericDate` may have a fraction (RFC 7519, 2), which is cut off.
fn whole_seconds<'de, D: Deserializer<'de>>(from: D) -> Result<u64, D::Error> {
    let number = serde_json::Number::deserialize(from)?;
    let fraction = number.as_f64().filter(|seconds| (0.0..1e15).contains(seconds));
    number.as_u64().or(fraction.map(|seconds| seconds as u64)).ok_or_else(|| D::Error::custom("not a date"))
}

fn optional_seconds<'de, D: Deserializer<'de>>(from: D) -> Result<Option<u64>, D::Error> {
    whole_seconds(from).map(Some)
}

/// `null` is a value of the wrong form, not a claim left out.
fn present<'de, D: Deserializer<'de>, T: Deserialize<'de>>(from: D) -> Result<Option<T>, D::Error> {
    T::deserialize(from).map(Some)
}

#[derive(Serialize, Deserialize)]
struct Header {
    alg: String,
    #[serde(default)]
    typ: Option<String>,
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    crit: Option<serde_json::Value>,
}

/// The login that a token is checked for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bearer<'a> {
    pub(crate) name: &'a PlayerName,
    pub(crate) room: &'a RoomName,
    pub(crate) now: SystemTime,
    pub(crate) stay: Stay,
}

/// Whether a login begins a session or takes one up again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stay {
    Begins,
    /// The session's own token proves who it is, and the match goes on: an end that has passed since is not looked at.
    Resumes,
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
    #[error("it is not good yet: look at the clocks of this server and of the login service")]
    NotYet,
    #[error("it is for another service: auth.audience must be one of its `aud`")]
    OtherAudience,
    #[error("its header asks for an extension (`crit`) that this server does not know")]
    Extension,
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
    #[error("standard output cannot be written to: {0}")]
    Print(#[source] std::io::Error),
}

/// The wrapping of an Ed25519 public key's 32 bytes (RFC 8410, 4).
const PUBLIC_KEY_PREFIX: [u8; 12] = [0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00];

/// The wrapping of a private key's 32 bytes, without the public key (RFC 8410, 7; version 1): OpenSSL does not read the
/// form with both, which `ring` writes.
const PRIVATE_KEY_PREFIX: [u8; 16] =
    [0x30, 0x2e, 0x02, 0x01, 0x00, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x04, 0x22, 0x04, 0x20];

/// How far the clock of the login service may run ahead of this one, in seconds. A token is often used in the second in
/// which it was made.
const NBF_LEEWAY: u64 = 5;

/// Longer tokens are not looked at.
const MAX_BYTES: usize = 1_024;

/// Checks tokens.
#[derive(Clone, Debug)]
pub(crate) struct Verifier {
    key: UnparsedPublicKey<Vec<u8>>,
    /// The name of this service in `aud`.
    audience: Option<String>,
}

impl Verifier {
    pub(crate) fn from_file(path: &Path, audience: Option<String>) -> Result<Self, KeyError> {
        let text = read(path)?;
        let form = || KeyError::Form { path: path.to_owned(), what: "public" };
        let wrapped = SubjectPublicKeyInfoDer::from_pem_slice(&text).map_err(|_| form())?;
        let key = wrapped.strip_prefix(&PUBLIC_KEY_PREFIX).filter(|key| key.len() == 32).ok_or_else(form)?;
        Ok(Self { key: UnparsedPublicKey::new(&ED25519, key.to_vec()), audience })
    }

    /// Whether `token` lets `bearer` in.
    pub(crate) fn check(&self, token: &str, bearer: Bearer<'_>) -> Result<Claims, TokenError> {
        let claims = self.read(token)?;
        let now = seconds(bearer.now);
        if bearer.stay == Stay::Begins && now >= claims.exp {
            return Err(TokenError::Expired);
        }
        if claims.nbf.is_some_and(|begins| now.saturating_add(NBF_LEEWAY) < begins) {
            return Err(TokenError::NotYet);
        }
        // A service that is not named must refuse; one that has a name takes no token for anybody (RFC 7519, 4.1.3).
        let meant = match (&claims.aud, &self.audience) {
            (Some(audience), Some(name)) => audience.has(name),
            (claimed, name) => claimed.is_none() && name.is_none(),
        };
        if !meant {
            return Err(TokenError::OtherAudience);
        }
        if claims.sub != bearer.name.as_str() {
            return Err(TokenError::OtherPlayer);
        }
        if claims.room.as_deref().is_some_and(|only| only != bearer.room.as_str()) {
            return Err(TokenError::OtherRoom);
        }
        Ok(claims)
    }

    /// The claims of a token whose signature is good.
    fn read(&self, token: &str) -> Result<Claims, TokenError> {
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
        if header.crit.is_some() {
            return Err(TokenError::Extension);
        }
        self.key.verify(signed.as_bytes(), &decode(signature)?).map_err(|_| TokenError::Signature)?;
        serde_json::from_slice(&decode(claims)?).map_err(|_| malformed)
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
        let header = Header { alg: "EdDSA".to_owned(), typ: Some("JWT".to_owned()), crit: None };
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
    let mut seed = [0; 32];
    SystemRandom::new().fill(&mut seed).map_err(|_| KeyError::NoRandomness)?;
    let (secret, wrapped) = wrapped_pair(&seed).ok_or(KeyError::NoRandomness)?;
    let public = public_path(private);
    write_new(private, &secret, true)?;
    write_new(&public, &wrapped, false)?;
    Ok(public)
}

/// Both halves of the pair that follows from `seed`, as PEM.
fn wrapped_pair(seed: &[u8; 32]) -> Option<(String, String)> {
    let key = Ed25519KeyPair::from_seed_unchecked(seed).ok()?;
    let public = [&PUBLIC_KEY_PREFIX[..], key.public_key().as_ref()].concat();
    let private = [&PRIVATE_KEY_PREFIX[..], seed].concat();
    Some((pem("PRIVATE KEY", &private), pem("PUBLIC KEY", &public)))
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
    #[arg(long, value_name = "FILE", conflicts_with_all = ["key", "name", "room", "audience"])]
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
    /// The service that it is for: auth.audience of the server. Default: none.
    #[arg(long)]
    audience: Option<String>,
    /// How long it is good for. A player who was cut comes back with it also when it has expired since.
    #[arg(long, default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..=525_600))]
    minutes: u64,
}

/// Makes a token or a pair of keys, and says so on standard output.
pub(crate) fn run(options: &Options) -> Result<(), KeyError> {
    if let Some(private) = &options.new_key {
        let public = write_new_pair(private)?;
        out::print(format_args!(
            "{} signs tokens: keep it secret\n{} checks them: auth.public_key of the server\n",
            private.display(),
            public.display()
        ))
        .map_err(KeyError::Print)?;
        return Ok(());
    }
    let (Some(key), Some(name)) = (&options.key, &options.name) else { return Ok(()) };
    let claims = Claims {
        sub: name.as_str().to_owned(),
        exp: seconds(SystemTime::now()) + options.minutes * 60,
        nbf: None,
        aud: options.audience.clone().map(Audience::One),
        room: options.room.as_ref().map(ToString::to_string),
    };
    out::line(Signer::from_file(key)?.sign(&claims)).map_err(KeyError::Print)?;
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
        let keys = (Signer::from_file(&private).unwrap(), Verifier::from_file(&public, None).unwrap());
        (folder, keys.0, keys.1)
    }

    fn ada(room: Option<&str>) -> Claims {
        Claims { sub: "Ada".to_owned(), exp: NOW + 60, room: room.map(str::to_owned), ..Claims::default() }
    }

    fn check(
        verifier: &Verifier,
        token: &str,
        name: &str,
        room: &str,
        now: u64,
    ) -> Result<Claims, TokenError> {
        check_at(verifier, token, (name, room), now, Stay::Begins)
    }

    fn check_at(
        verifier: &Verifier,
        token: &str,
        (name, room): (&str, &str),
        now: u64,
        stay: Stay,
    ) -> Result<Claims, TokenError> {
        let (name, room) = (&PlayerName::new(name).unwrap(), &RoomName::new(room).unwrap());
        verifier.check(token, Bearer { name, room, now: at(now), stay })
    }

    /// Any header and claims, signed.
    fn sign(signer: &Signer, header: &str, claims: &str) -> String {
        let encode = |json: &str| BASE64URL_NOPAD.encode(json.as_bytes());
        let signed = format!("{}.{}", encode(header), encode(claims));
        let signature = BASE64URL_NOPAD.encode(signer.0.sign(signed.as_bytes()).as_ref());
        format!("{signed}.{signature}")
    }

    #[test]
    fn a_token_that_expired_in_the_match_still_resumes_it() {
        let (_folder, signer, verifier) = pair();
        let token = signer.sign(&ada(Some("duel")));
        let check = |name, room, stay| check_at(&verifier, &token, (name, room), NOW + 600, stay).map(drop);
        assert_eq!(check("Ada", "duel", Stay::Begins), Err(TokenError::Expired));
        assert_eq!(check("Ada", "duel", Stay::Resumes), Ok(()));
        assert_eq!(check("Eve", "duel", Stay::Resumes), Err(TokenError::OtherPlayer));
        assert_eq!(check("Ada", "main", Stay::Resumes), Err(TokenError::OtherRoom));
    }

    #[test]
    fn a_token_is_refused_before_its_beginning() {
        let (_folder, signer, verifier) = pair();
        let begins = |nbf: &str| {
            let claims = format!(r#"{{"sub":"Ada","exp":{},"nbf":{nbf}}}"#, NOW + 60);
            let token = sign(&signer, r#"{"alg":"EdDSA"}"#, &claims);
            check(&verifier, &token, "Ada", "a", NOW).map(drop)
        };
        assert_eq!(begins(&NOW.to_string()), Ok(()));
        assert_eq!(begins(&format!("{}.75", NOW - 1)), Ok(()));
        assert_eq!(begins(&(NOW + NBF_LEEWAY).to_string()), Ok(()), "clocks differ a little");
        assert_eq!(begins(&(NOW + NBF_LEEWAY + 1).to_string()), Err(TokenError::NotYet));
        for wrong in ["null", "-1", r#""1700000000""#, "[]", "1e300"] {
            assert_eq!(begins(wrong), Err(TokenError::Malformed), "{wrong}");
        }
    }

    #[test]
    fn an_audience_must_be_ours_and_ours_must_be_named() {
        let (folder, signer, nameless) = pair();
        let public = public_path(&folder.path().join("key.pem"));
        let tanks = Verifier::from_file(&public, Some("tanks".to_owned())).unwrap();
        let said = |verifier: &Verifier, aud: &str| {
            let claims = format!(r#"{{"sub":"Ada","exp":{}{aud}}}"#, NOW + 60);
            check(verifier, &sign(&signer, r#"{"alg":"EdDSA"}"#, &claims), "Ada", "a", NOW).map(drop)
        };
        for (aud, named, unnamed) in [
            ("", Err(TokenError::OtherAudience), Ok(())),
            (r#","aud":"tanks""#, Ok(()), Err(TokenError::OtherAudience)),
            (r#","aud":["shop","tanks"]"#, Ok(()), Err(TokenError::OtherAudience)),
            (r#","aud":"shop""#, Err(TokenError::OtherAudience), Err(TokenError::OtherAudience)),
            (r#","aud":[]"#, Err(TokenError::OtherAudience), Err(TokenError::OtherAudience)),
            (r#","aud":null"#, Err(TokenError::Malformed), Err(TokenError::Malformed)),
            (r#","aud":7"#, Err(TokenError::Malformed), Err(TokenError::Malformed)),
        ] {
            assert_eq!(said(&tanks, aud), named, "{aud}");
            assert_eq!(said(&nameless, aud), unnamed, "{aud}");
        }
    }

    #[test]
    fn a_header_with_critical_extensions_is_refused() {
        let (_folder, signer, verifier) = pair();
        let claims = format!(r#"{{"sub":"Ada","exp":{}}}"#, NOW + 60);
        let said = |header| check(&verifier, &sign(&signer, header, &claims), "Ada", "a", NOW).map(drop);
        assert_eq!(said(r#"{"alg":"EdDSA","kid":"7"}"#), Ok(()), "others may be passed over");
        for header in [
            r#"{"alg":"EdDSA","crit":["exp"]}"#,
            r#"{"alg":"EdDSA","crit":["b64"],"b64":false}"#,
            r#"{"alg":"EdDSA","crit":[]}"#,
            r#"{"alg":"EdDSA","crit":null}"#,
        ] {
            assert_eq!(said(header), Err(TokenError::Extension), "{header}");
        }
    }

    /// The key of RFC 8410, section 10.3, in the form that OpenSSL reads and writes.
    #[test]
    fn keys_are_written_as_in_rfc_8410() {
        let seed = data_encoding::HEXLOWER
            .decode(b"d4ee72dbf913584ad5b6d8f1f769f8ad3afe7c28cbf1d4fbe097a88f44755842")
            .unwrap();
        let (private, public) = wrapped_pair(seed.as_slice().try_into().unwrap()).unwrap();
        let body = "MC4CAQAwBQYDK2VwBCIEINTuctv5E1hK1bbY8fdp+K06/nwoy/HU++CXqI9EdVhC";
        assert_eq!(private, format!("-----BEGIN PRIVATE KEY-----\n{body}\n-----END PRIVATE KEY-----\n"));
        let body = "MCowBQYDK2VwAyEAGb9ECWmEzf6FQbrBZ9w7lshQhqowtrbLDFw4rXAxZuE=";
        assert_eq!(public, format!("-----BEGIN PUBLIC KEY-----\n{body}\n-----END PUBLIC KEY-----\n"));
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
        let sign = |claims: &str| sign(&signer, r#"{"alg":"EdDSA"}"#, claims);
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
        let said = |path: &Path| Verifier::from_file(path, None).unwrap_err().to_string();
        assert!(said(&private).contains("no Ed25519 public key"), "{}", said(&private));
        assert!(said(Path::new("none.pem")).contains("cannot read none.pem"));
        let other = folder.write("other.pem", "-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n");
        assert!(said(&other).contains("no Ed25519 public key"));
        assert!(matches!(Signer::from_file(&public), Err(KeyError::Form { .. })));
    }
}
