//! Commands of a host to a match of tanks, as bytes that a recording keeps.
//!
//! postcard: the number of the variant and its fields; places and headings as floats of 64 bits, parameters in the units of
//! the wire.

use halftrack::PlayerId;
use halftrack::wire::WireError;
use serde::{Deserialize, Serialize};

use super::{TankWorld, WorldError};
use crate::body::MoveParams;

/// A command of the host, for [`halftrack::server::Server::command`].
///
/// ```
/// use halftrack::server::{CommandRefused, Server, ServerConfig};
/// use halftrack::{PlayerId, Timestamp};
/// use tanks::{TankCommand, TankWorld, TankWorldConfig};
///
/// let world = TankWorld::new(TankWorldConfig::default())?;
/// let mut server = Server::new(ServerConfig::default(), world, Timestamp::ZERO)?;
/// let home = TankCommand::Teleport { player: PlayerId::new(1), x: 0.0, y: 0.0, heading: 0.25 };
/// let refused = server.command(&home.encode()).unwrap_err();
/// assert_eq!(refused, CommandRefused::Refused { why: "there is no such player" });
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum TankCommand {
    /// Puts a player's tank somewhere else, at the end of the next tick: see [`TankWorld::teleport`].
    Teleport {
        /// Whose.
        player: PlayerId,
        /// Metres.
        x: f64,
        /// Metres.
        y: f64,
        /// Turns.
        heading: f64,
    },
    /// Makes a player's tank move by other parameters, from the end of the next tick on: see [`TankWorld::set_params`].
    SetParams {
        /// Whose.
        player: PlayerId,
        /// The parameters.
        #[serde(with = "units")]
        params: MoveParams,
    },
}

impl TankCommand {
    /// A variant, a player of up to three bytes, and three floats.
    const MAX_BYTES: usize = 1 + 3 + 3 * 8;

    /// The command as bytes.
    pub fn encode(&self) -> Vec<u8> {
        let mut buffer = [0; Self::MAX_BYTES];
        postcard::to_slice(self, &mut buffer).map(|written| written.to_vec()).unwrap_or_default()
    }

    /// Reads it.
    ///
    /// # Errors
    /// When the bytes are no command.
    pub fn decode(bytes: &[u8]) -> Result<Self, WireError> {
        let invalid = |_| WireError::Invalid { field: "command" };
        let (command, rest) = postcard::take_from_bytes(bytes).map_err(invalid)?;
        if rest.is_empty() { Ok(command) } else { Err(WireError::Trailing) }
    }

    pub(super) fn obey(self, world: &mut TankWorld) -> Result<(), WorldError> {
        match self {
            Self::Teleport { player, x, y, heading } => world.teleport(player, x, y, heading),
            Self::SetParams { player, params } => world.set_params(player, params),
        }
    }
}

/// Parameters in the units of the wire.
mod units {
    use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

    use crate::body::MoveParams;

    pub(super) fn serialize<S: Serializer>(params: &MoveParams, to: S) -> Result<S::Ok, S::Error> {
        params.units().serialize(to)
    }

    pub(super) fn deserialize<'a, D: Deserializer<'a>>(from: D) -> Result<MoveParams, D::Error> {
        MoveParams::from_units(Deserialize::deserialize(from)?).map_err(de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_survive_their_bytes_and_other_bytes_are_refused() {
        let player = PlayerId::new(u16::MAX);
        let params = MoveParams::new(4.0, 0.3).unwrap();
        let commands = [
            TankCommand::Teleport { player, x: -40.5, y: f64::MIN, heading: f64::NAN },
            TankCommand::SetParams { player, params },
        ];
        for command in commands {
            let bytes = command.encode();
            assert_eq!(format!("{:?}", TankCommand::decode(&bytes).unwrap()), format!("{command:?}"));
            let invalid = WireError::Invalid { field: "command" };
            assert_eq!(TankCommand::decode(&bytes[..bytes.len() - 1]), Err(invalid));
            assert_eq!(TankCommand::decode(&[bytes.as_slice(), &[0]].concat()), Err(WireError::Trailing));
        }
        let fast = postcard::to_allocvec(&(1u8, player, u16::MAX, u16::MAX)).unwrap();
        assert_eq!(TankCommand::decode(&fast), Err(WireError::Invalid { field: "command" }));
    }
}
