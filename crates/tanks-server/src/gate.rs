//! Who is let in: tokens, and players that an operator keeps out. Shared by all rooms, changed while they run.

use std::collections::BTreeMap;
use std::sync::{PoisonError, RwLock};
use std::time::{Duration, Instant, SystemTime};

use halftrack::PlayerName;
use halftrack::wire::control::{Login, LoginRefused};
use halftrack_io::RoomName;

use crate::config;
use crate::site;
use crate::token::{Bearer, KeyError, Stay, Verifier};

/// See the module.
#[derive(Debug)]
pub(crate) struct Gate {
    inside: RwLock<Inside>,
}

#[derive(Debug)]
struct Inside {
    /// Checks tokens, where they are asked for.
    verifier: Option<Verifier>,
    /// Until when; for good, if never.
    banned: BTreeMap<PlayerName, Option<Instant>>,
}

impl Inside {
    fn is_banned(&self, name: &PlayerName) -> bool {
        let until = self.banned.get(name);
        until.is_some_and(|until| until.is_none_or(|until| Instant::now() < until))
    }
}

impl Gate {
    /// Names that can be kept out at a time. Operators who need more want tokens.
    pub(crate) const MAX_BANNED: usize = 10_000;

    pub(crate) fn new(config: &config::Auth) -> Result<Self, KeyError> {
        let inside = Inside { verifier: verifier(config)?, banned: BTreeMap::new() };
        Ok(Self { inside: RwLock::new(inside) })
    }

    /// Goes by another config from here on.
    pub(crate) fn reload(&self, config: &config::Auth) -> Result<(), KeyError> {
        let verifier = verifier(config)?;
        self.inside.write().unwrap_or_else(PoisonError::into_inner).verifier = verifier;
        Ok(())
    }

    /// Whether `login` may come into `room`.
    pub(crate) fn check(&self, login: &Login, room: &RoomName, stay: Stay) -> Result<(), LoginRefused> {
        let inside = self.inside.read().unwrap_or_else(PoisonError::into_inner);
        if inside.is_banned(&login.name) {
            return Err(LoginRefused::Banned);
        }
        let Some(verifier) = &inside.verifier else { return Ok(()) };
        let token = login.credentials.as_deref().ok_or(LoginRefused::CredentialsNeeded)?;
        let bearer = Bearer { name: &login.name, room, now: SystemTime::now(), stay };
        verifier.check(token, bearer).map(drop).map_err(|problem| {
            tracing::info!(player = %login.name, %room, %problem, "a token was refused");
            LoginRefused::CredentialsInvalid
        })
    }

    /// Keeps a name out, for so long or for good. Gives whether there was room for it.
    pub(crate) fn ban(&self, name: &PlayerName, span: Option<Duration>) -> bool {
        let now = Instant::now();
        let mut inside = self.inside.write().unwrap_or_else(PoisonError::into_inner);
        inside.banned.retain(|_, until| until.is_none_or(|until| now < until));
        if inside.banned.len() >= Self::MAX_BANNED && !inside.banned.contains_key(name) {
            return false;
        }
        inside.banned.insert(name.clone(), span.and_then(|span| now.checked_add(span)));
        true
    }

    /// Lets a name in again. Gives whether it was kept out.
    pub(crate) fn unban(&self, name: &PlayerName) -> bool {
        self.inside.write().unwrap_or_else(PoisonError::into_inner).banned.remove(name).is_some()
    }

    /// Whether a name is kept out.
    pub(crate) fn is_banned(&self, name: &PlayerName) -> bool {
        self.inside.read().unwrap_or_else(PoisonError::into_inner).is_banned(name)
    }
}

fn verifier(config: &config::Auth) -> Result<Option<Verifier>, KeyError> {
    match (config.mode, &config.public_key) {
        (site::Auth::Tokens, Some(path)) => Verifier::from_file(path, config.audience.clone()).map(Some),
        _ => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scratch::Folder;
    use crate::token::{Claims, Signer, seconds, write_new_pair};
    use halftrack::wire::control::PROTOCOL;

    fn login(name: &str, credentials: Option<String>) -> Login {
        let name = PlayerName::new(name).unwrap();
        Login { protocol: PROTOCOL, shared: 0, name, resume: None, credentials }
    }

    #[test]
    fn guests_come_in_unless_they_are_kept_out() {
        let gate = Gate::new(&config::Auth::default()).unwrap();
        let (room, ada) = (RoomName::default(), PlayerName::new("Ada").unwrap());
        assert_eq!(gate.check(&login("Ada", None), &room, Stay::Begins), Ok(()));
        assert!(gate.ban(&ada, None));
        assert_eq!(gate.check(&login("Ada", None), &room, Stay::Begins), Err(LoginRefused::Banned));
        assert_eq!(gate.check(&login("Eve", None), &room, Stay::Begins), Ok(()));
        assert!(gate.is_banned(&ada));
        assert!(gate.unban(&ada) && !gate.unban(&ada));
        assert_eq!(gate.check(&login("Ada", None), &room, Stay::Begins), Ok(()));
        assert!(gate.ban(&ada, Some(Duration::ZERO)));
        assert_eq!(gate.check(&login("Ada", None), &room, Stay::Begins), Ok(()), "it is over");
    }

    #[test]
    fn tokens_are_asked_for_after_a_reload() {
        let folder = Folder::new();
        let private = folder.path().join("key.pem");
        let public = write_new_pair(&private).unwrap();
        let (room, gate) = (RoomName::default(), Gate::new(&config::Auth::default()).unwrap());
        let tokens =
            config::Auth { mode: site::Auth::Tokens, public_key: Some(public), ..config::Auth::default() };
        gate.reload(&tokens).unwrap();
        assert_eq!(
            gate.check(&login("Ada", None), &room, Stay::Begins),
            Err(LoginRefused::CredentialsNeeded)
        );
        let bad = Some("x.y.z".to_owned());
        assert_eq!(
            gate.check(&login("Ada", bad), &room, Stay::Begins),
            Err(LoginRefused::CredentialsInvalid)
        );
        let exp = seconds(SystemTime::now()) + 60;
        let claims = Claims { sub: "Ada".to_owned(), exp, ..Claims::default() };
        let signer = Signer::from_file(&private).unwrap();
        assert_eq!(gate.check(&login("Ada", Some(signer.sign(&claims))), &room, Stay::Begins), Ok(()));
        let old = || Some(signer.sign(&Claims { exp: 1, ..claims.clone() }));
        assert_eq!(
            gate.check(&login("Ada", old()), &room, Stay::Begins),
            Err(LoginRefused::CredentialsInvalid)
        );
        assert_eq!(gate.check(&login("Ada", old()), &room, Stay::Resumes), Ok(()));
        let missing = config::Auth { public_key: Some("none.pem".into()), ..tokens };
        assert!(gate.reload(&missing).is_err());
        assert_eq!(
            gate.check(&login("Ada", None), &room, Stay::Begins),
            Err(LoginRefused::CredentialsNeeded),
            "a reload that fails changes nothing"
        );
    }
}
