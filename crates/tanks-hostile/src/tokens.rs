//! Signed tokens of every kind, good and bad. The suite has the key; attackers have what they were given.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use data_encoding::{BASE64, BASE64URL_NOPAD};
use ring::rand::SystemRandom;
use ring::signature::{Ed25519KeyPair, KeyPair as _};

use crate::attack::Failed;

/// A pair of keys: the server has the public one.
pub(crate) struct Keys(Ed25519KeyPair);

impl Keys {
    pub(crate) fn new() -> Result<Self, Failed> {
        let pair = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new()).map_err(|_| "no random numbers")?;
        Ok(Self(Ed25519KeyPair::from_pkcs8(pair.as_ref()).map_err(|_| "no key")?))
    }

    /// The public key as other programs read it (RFC 8410).
    pub(crate) fn public_pem(&self) -> String {
        const PREFIX: [u8; 12] = [0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00];
        let wrapped = [&PREFIX[..], self.0.public_key().as_ref()].concat();
        format!("-----BEGIN PUBLIC KEY-----\n{}\n-----END PUBLIC KEY-----\n", BASE64.encode(&wrapped))
    }

    /// A token that is good for a while.
    pub(crate) fn good(&self, name: &str) -> String {
        self.token("EdDSA", &format!(r#"{{"sub":"{name}","exp":{}}}"#, seconds() + 3_600))
    }

    /// One for one room only.
    pub(crate) fn for_room(&self, name: &str, room: &str) -> String {
        self.token("EdDSA", &format!(r#"{{"sub":"{name}","exp":{},"room":"{room}"}}"#, seconds() + 3_600))
    }

    /// One that was good until a moment ago.
    pub(crate) fn expired(&self, name: &str) -> String {
        self.token("EdDSA", &format!(r#"{{"sub":"{name}","exp":{}}}"#, seconds() - 1))
    }

    /// One that is good for so many seconds, with more claims than that: `,"key":value`.
    pub(crate) fn lasting(&self, name: &str, seconds_left: u64, more: &str) -> String {
        let claims = format!(r#"{{"sub":"{name}","exp":{}{more}}}"#, seconds() + seconds_left);
        self.token("EdDSA", &claims)
    }

    pub(crate) fn token(&self, algorithm: &str, claims: &str) -> String {
        self.with_header(&format!(r#"{{"alg":"{algorithm}","typ":"JWT"}}"#), claims)
    }

    pub(crate) fn with_header(&self, header: &str, claims: &str) -> String {
        let signed = format!(
            "{}.{}",
            BASE64URL_NOPAD.encode(header.as_bytes()),
            BASE64URL_NOPAD.encode(claims.as_bytes())
        );
        let signature = BASE64URL_NOPAD.encode(self.0.sign(signed.as_bytes()).as_ref());
        format!("{signed}.{signature}")
    }
}

/// Seconds since 1970.
pub(crate) fn seconds() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO).as_secs()
}
