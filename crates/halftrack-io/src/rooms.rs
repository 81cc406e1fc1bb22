//! Which room a peer means: names, and where to look them up. Does not know what is played in them.

use core::fmt;
use core::str::FromStr;

use halftrack::wire::control::{Login, LoginRefused};

use crate::error::IoError;
use crate::room::RoomHandle;

/// What a room is called: 1 to 32 of the characters a-z, A-Z, 0-9, - and _, so that it can stand in an address and in a
/// log as it is.
///
/// ```
/// use halftrack_io::RoomName;
///
/// assert_eq!(RoomName::default().as_str(), "main");
/// assert!(RoomName::new("duel-7").is_ok() && RoomName::new("../duel").is_err());
/// ```
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RoomName(String);

impl RoomName {
    /// Characters at most, which are bytes.
    pub const MAX_BYTES: usize = 32;

    /// The name `name`.
    ///
    /// # Errors
    /// When it is empty, too long, or has another character.
    pub fn new(name: &str) -> Result<Self, IoError> {
        let fits = (1..=Self::MAX_BYTES).contains(&name.len());
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
        if fits && name.bytes().all(plain) { Ok(Self(name.to_owned())) } else { Err(IoError::RoomName) }
    }

    /// As text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The room that a path means: `/room/NAME`, or the one that is meant when nothing is said.
    pub(crate) fn of_path(path: &str) -> Option<Self> {
        match path.trim_end_matches('/') {
            "" => Some(Self::default()),
            path => Self::new(path.strip_prefix("/room/")?).ok(),
        }
    }
}

impl Default for RoomName {
    /// The room of those who ask for none.
    fn default() -> Self {
        Self("main".to_owned())
    }
}

impl fmt::Display for RoomName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for RoomName {
    type Err = IoError;

    fn from_str(name: &str) -> Result<Self, IoError> {
        Self::new(name)
    }
}

/// Why a login gets no room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum NoRoom {
    /// There is no room of that name, and none is made.
    Unknown,
    /// The room would have to be made, and is not made for this login.
    Refused(LoginRefused),
}

/// Finds the room of a name, or makes one. Called on the runtime, once for every connection, after its [`Login`] has
/// arrived and before any room has checked it: it should not take long.
pub trait Rooms: Send + Sync + 'static {
    /// The room for this login. A room that exists checks the login itself. Make a room only for a login that you would
    /// let in: a name alone can be sent by anybody.
    ///
    /// # Errors
    /// Why there is none. The peer hears it, and is closed.
    fn find(&self, name: &RoomName, login: &Login) -> Result<RoomHandle, NoRoom>;
}

/// Rooms that exist, by name alone.
impl<F: Fn(&RoomName) -> Option<RoomHandle> + Send + Sync + 'static> Rooms for F {
    fn find(&self, name: &RoomName, _: &Login) -> Result<RoomHandle, NoRoom> {
        self(name).ok_or(NoRoom::Unknown)
    }
}

/// One room, by the name of [`RoomName::default`].
impl Rooms for RoomHandle {
    fn find(&self, name: &RoomName, _: &Login) -> Result<RoomHandle, NoRoom> {
        if *name == RoomName::default() { Ok(self.clone()) } else { Err(NoRoom::Unknown) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_end_at_thirty_two() {
        assert!(RoomName::new(&"a".repeat(32)).is_ok());
        for name in ["", "a b", "ä", "a/b", "a%20", &"a".repeat(33)] {
            assert!(RoomName::new(name).is_err(), "{name}");
        }
    }

    #[test]
    fn a_path_means_a_room() {
        let room = |path| RoomName::of_path(path).map(|name| name.to_string());
        assert_eq!(room("/room/duel").as_deref(), Some("duel"));
        assert_eq!(room("/").as_deref(), Some("main"));
        assert_eq!(room("").as_deref(), Some("main"));
        for path in ["/room", "/room/", "/room/a/b", "/duel", "/room/%41"] {
            assert!(RoomName::of_path(path).is_none(), "{path}");
        }
    }
}
