//! What an operator may choose: by file, by flag, with a line for every mistake.
//!
//! `default.toml` says the same as the `Default`s here, with reasons: it is what `--print-config` shows.

mod arena;

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use halftrack::Cadence;
use halftrack_io::RoomName;
use serde::{Deserialize, Deserializer, de};
use tanks::{RoundConfig, TankWorldConfig};

pub(crate) use arena::ArenaChoice;

/// The commented defaults.
pub(crate) const DEFAULT_FILE: &str = include_str!("default.toml");

/// Everything that can be chosen.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Config {
    pub(crate) listen: SocketAddr,
    pub(crate) log: Log,
    pub(crate) tls: Tls,
    pub(crate) auth: Auth,
    pub(crate) rooms: Rooms,
    pub(crate) limits: Limits,
    pub(crate) admin: Admin,
    pub(crate) metrics: Metrics,
    pub(crate) drain: Drain,
    pub(crate) record: Record,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from(([127, 0, 0, 1], 7_777)),
            log: Log::default(),
            tls: Tls::default(),
            auth: Auth::default(),
            rooms: Rooms::default(),
            limits: Limits::default(),
            admin: Admin::default(),
            metrics: Metrics::default(),
            drain: Drain::default(),
            record: Record::default(),
        }
    }
}

/// Where matches are written.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Record {
    pub(crate) folder: Option<PathBuf>,
    pub(crate) recover: bool,
}

/// What is told of what happens.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Log {
    pub(crate) level: String,
    pub(crate) format: LogFormat,
}

impl Default for Log {
    fn default() -> Self {
        Self { level: "info".to_owned(), format: LogFormat::Text }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum LogFormat {
    Text,
    Json,
}

/// Who the server says it is.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Tls {
    pub(crate) certificate: Option<PathBuf>,
    pub(crate) key: Option<PathBuf>,
    pub(crate) names: Vec<String>,
    pub(crate) days: Within<1, 14>,
    pub(crate) keep: Option<PathBuf>,
}

impl Default for Tls {
    fn default() -> Self {
        let names = ["localhost", "127.0.0.1", "::1"].map(str::to_owned).into();
        Self { certificate: None, key: None, names, days: Within(14), keep: None }
    }
}

impl Tls {
    pub(crate) fn validity(&self) -> Duration {
        Duration::from_secs(self.days.0 * 24 * 3_600)
    }
}

/// Who is let in.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Auth {
    pub(crate) mode: crate::site::Auth,
    pub(crate) public_key: Option<PathBuf>,
    pub(crate) audience: Option<String>,
}

impl Default for Auth {
    fn default() -> Self {
        Self { mode: crate::site::Auth::Guests, public_key: None, audience: None }
    }
}

/// Rooms.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Rooms {
    #[serde(deserialize_with = "room_name")]
    pub(crate) default: RoomName,
    capacity: Within<1, 4_096>,
    max: Within<1, 1_024>,
    empty_s: Within<0, 86_400>,
    cadence_ms: Within<5, 200>,
    pub(crate) arena: ArenaChoice,
    grace_s: Within<0, 3_600>,
    round_s: RoundSeconds,
    break_s: Within<1, 300>,
    machines: Within<0, { TankWorldConfig::MAX_MACHINES as u64 }>,
    crates: Within<0, { TankWorldConfig::MAX_CRATES as u64 }>,
    platforms: Within<0, { TankWorldConfig::MAX_PLATFORMS as u64 }>,
}

impl Default for Rooms {
    fn default() -> Self {
        Self {
            default: RoomName::default(),
            capacity: Within(256),
            max: Within(32),
            empty_s: Within(30),
            cadence_ms: Within(50),
            arena: ArenaChoice::default(),
            grace_s: Within(30),
            round_s: RoundSeconds(300),
            break_s: Within(8),
            machines: Within(0),
            crates: Within(16),
            platforms: Within(2),
        }
    }
}

impl Rooms {
    pub(crate) fn capacity(&self) -> usize {
        self.capacity.count()
    }

    pub(crate) fn max(&self) -> usize {
        self.max.count()
    }

    pub(crate) fn empty(&self) -> Duration {
        self.empty_s.seconds()
    }

    pub(crate) fn grace(&self) -> Duration {
        self.grace_s.seconds()
    }

    /// Rounds, unless the operator wants a match without an end.
    pub(crate) fn rounds(&self) -> Option<RoundConfig> {
        let length = Duration::from_secs(self.round_s.0);
        (!length.is_zero()).then(|| RoundConfig { length, pause: self.break_s.seconds() })
    }

    /// Tanks in each room that the world drives.
    pub(crate) fn machines(&self) -> u8 {
        u8::try_from(self.machines.0).unwrap_or(TankWorldConfig::MAX_MACHINES)
    }

    /// Crates in each room.
    pub(crate) fn crates(&self) -> u8 {
        u8::try_from(self.crates.0).unwrap_or(TankWorldConfig::MAX_CRATES)
    }

    /// Platforms in each room, as far as its arena has lanes for them.
    pub(crate) fn platforms(&self) -> u8 {
        u8::try_from(self.platforms.0).unwrap_or(TankWorldConfig::MAX_PLATFORMS)
    }

    /// What everybody must share stays as in `old`.
    pub(crate) fn keep(&mut self, old: &Self) {
        (self.cadence_ms, self.arena, self.default) = (old.cadence_ms, old.arena, old.default.clone());
    }

    /// How long a tick is. In range, as the file's key is.
    pub(crate) fn cadence(&self) -> Cadence {
        Cadence::new(Duration::from_millis(self.cadence_ms.0)).unwrap_or_default()
    }
}

/// What nobody gets more of.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Limits {
    pub(crate) connections: Within<1, 65_536>,
    pub(crate) connections_per_address: Within<1, 65_536>,
    pub(crate) handshakes_per_address_per_s: Within<1, 100_000>,
    pub(crate) retry_above_handshakes: Within<0, 65_536>,
    pub(crate) handshake_s: Within<1, 60>,
    pub(crate) idle_s: Within<2, 600>,
    pub(crate) migration: bool,
    pub(crate) messages_per_s: Within<100, 1_000_000>,
    pub(crate) bytes_per_s: Within<10_000, 1_000_000_000>,
    pub(crate) stall_s: Within<1, 60>,
    pub(crate) requests_per_address_per_s: Within<1, 100_000>,
    pub(crate) bodies_per_room: Within<1, 16_384>,
    pub(crate) origins: Vec<String>,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: Within(1_024),
            connections_per_address: Within(256),
            handshakes_per_address_per_s: Within(50),
            retry_above_handshakes: Within(64),
            handshake_s: Within(5),
            idle_s: Within(10),
            migration: true,
            messages_per_s: Within(600),
            bytes_per_s: Within(131_072),
            stall_s: Within(5),
            requests_per_address_per_s: Within(100),
            bodies_per_room: Within(1_024),
            origins: vec![],
        }
    }
}

/// Who may say what happens to others.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Admin {
    pub(crate) secret_file: Option<PathBuf>,
    pub(crate) state_folder: Option<PathBuf>,
}

/// Where `/metrics` is read, and with which secret.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Metrics {
    pub(crate) listen: Option<SocketAddr>,
    pub(crate) secret_file: Option<PathBuf>,
    pub(crate) rooms: Within<0, 1_024>,
}

impl Default for Metrics {
    fn default() -> Self {
        Self { listen: None, secret_file: None, rooms: Within(8) }
    }
}

/// How it ends.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Drain {
    seconds: Within<0, 3_600>,
}

impl Default for Drain {
    fn default() -> Self {
        Self { seconds: Within(30) }
    }
}

impl Drain {
    pub(crate) fn span(&self) -> Duration {
        self.seconds.seconds()
    }
}

/// A whole number from one to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Within<const MIN: u64, const MAX: u64>(pub(crate) u64);

impl<const MIN: u64, const MAX: u64> Within<MIN, MAX> {
    pub(crate) fn count(self) -> usize {
        usize::try_from(self.0).unwrap_or(usize::MAX)
    }

    pub(crate) fn seconds(self) -> Duration {
        Duration::from_secs(self.0)
    }
}

impl<'de, const MIN: u64, const MAX: u64> Deserialize<'de> for Within<MIN, MAX> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let number = i64::deserialize(deserializer)?;
        let within = u64::try_from(number).ok().filter(|number| (MIN..=MAX).contains(number));
        let refuse =
            || de::Error::custom(format!("{number} is out of range: choose one from {MIN} to {MAX}"));
        within.map(Self).ok_or_else(refuse)
    }
}

/// Seconds of a round; 0 for none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "i64")]
struct RoundSeconds(u64);

impl TryFrom<i64> for RoundSeconds {
    type Error = String;

    fn try_from(seconds: i64) -> Result<Self, String> {
        let good =
            u64::try_from(seconds).ok().filter(|seconds| *seconds == 0 || (10..=86_400).contains(seconds));
        good.map(Self).ok_or_else(|| format!("{seconds} is out of range: choose 0, or one from 10 to 86400"))
    }
}

fn room_name<'de, D: Deserializer<'de>>(deserializer: D) -> Result<RoomName, D::Error> {
    String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
}

/// A config that cannot be used: where, and what to do.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ConfigError {
    #[error("cannot read {}: {source}; check the path given with --config", path.display())]
    Read { path: PathBuf, source: std::io::Error },
    #[error("{} is not a config:\n{problem}\n`tanks serve --print-config` shows every key", path.display())]
    File { path: PathBuf, problem: String },
    #[error(
        "--set {set} cannot be used:\n{problem}\nwrite KEY=VALUE, as in --set rooms.capacity=64 or --set log.format=json"
    )]
    Set { set: String, problem: String },
    #[error("{}{problem}", path.as_ref().map(|path| format!("{}: ", path.display())).unwrap_or_default())]
    Conflict { path: Option<PathBuf>, problem: &'static str },
}

impl Config {
    /// The defaults, then the file, then each `KEY=VALUE`.
    pub(crate) fn load(file: Option<&Path>, sets: &[String]) -> Result<Self, ConfigError> {
        let mut given = toml::Table::new();
        if let Some(path) = file {
            let read = |source| ConfigError::Read { path: path.to_owned(), source };
            let text = fs::read_to_string(path).map_err(read)?;
            let refuse = |error: toml::de::Error| ConfigError::File {
                path: path.to_owned(),
                problem: error.to_string().trim_end().to_owned(),
            };
            // On its own first: only the text knows its lines.
            toml::from_str::<Self>(&text).map_err(refuse)?;
            given = toml::from_str(&text).map_err(refuse)?;
        }
        for set in sets {
            let refuse = |problem: &str| ConfigError::Set { set: set.clone(), problem: problem.to_owned() };
            merge(&mut given, parse_set(set).ok_or_else(|| refuse("it is not KEY=VALUE"))?);
            let checked: Result<Self, _> = given.clone().try_into();
            checked.map_err(|error: toml::de::Error| refuse(error.message()))?;
        }
        let refuse = |error: toml::de::Error| ConfigError::Set {
            set: sets.join(" --set "),
            problem: error.message().to_owned(),
        };
        let config: Self = given.try_into().map_err(refuse)?;
        config
            .check()
            .map_err(|problem| ConfigError::Conflict { path: file.map(Path::to_owned), problem })?;
        Ok(config)
    }

    /// What two keys together make wrong.
    fn check(&self) -> Result<(), &'static str> {
        if self.tls.certificate.is_some() != self.tls.key.is_some() {
            return Err("tls.certificate and tls.key go together: give both files or neither");
        }
        if self.auth.mode == crate::site::Auth::Tokens && self.auth.public_key.is_none() {
            return Err(
                "auth.mode is \"tokens\", so auth.public_key must name a file: `tanks token --new-key KEY.pem` makes a pair",
            );
        }
        if self.limits.connections_per_address.0 > self.limits.connections.0 {
            return Err("limits.connections_per_address is more than limits.connections: lower it");
        }
        let Rooms { capacity, machines, crates, platforms, .. } = &self.rooms;
        if capacity.0 + machines.0 + crates.0 + platforms.0 > self.limits.bodies_per_room.0 {
            return Err("rooms.capacity, rooms.machines, rooms.crates and rooms.platforms are more than \
                 limits.bodies_per_room together: raise it");
        }
        Ok(())
    }
}

/// `KEY=VALUE` as a table. A value that is no TOML is taken as text: nobody writes quotes for a shell.
fn parse_set(set: &str) -> Option<toml::Table> {
    let (key, value) = set.split_once('=')?;
    let (key, value) = (key.trim(), value.trim());
    let plain =
        |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_');
    if !key.split('.').all(plain) {
        return None;
    }
    let as_toml = toml::from_str(&format!("{key} = {value}")).ok();
    as_toml.or_else(|| {
        let (parents, last) = key.rsplit_once('.').unwrap_or(("", key));
        let leaf = toml::Table::from_iter([(last.to_owned(), toml::Value::String(value.to_owned()))]);
        let wrap =
            |inner, parent: &str| toml::Table::from_iter([(parent.to_owned(), toml::Value::Table(inner))]);
        Some(parents.rsplit('.').filter(|parent| !parent.is_empty()).fold(leaf, wrap))
    })
}

/// Puts `more` over `into`.
fn merge(into: &mut toml::Table, more: toml::Table) {
    for (key, value) in more {
        match (into.get_mut(&key), value) {
            (Some(toml::Value::Table(into)), toml::Value::Table(more)) => merge(into, more),
            (_, value) => drop(into.insert(key, value)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load(text: &str, sets: &[&str]) -> Result<Config, String> {
        let folder = crate::scratch::Folder::new();
        let file = folder.write("tanks.toml", text);
        let sets: Vec<String> = sets.iter().map(|set| (*set).to_owned()).collect();
        Config::load(Some(&file), &sets).map_err(|problem| problem.to_string())
    }

    #[test]
    fn a_round_has_ten_seconds_to_a_day_or_is_off() {
        let rounds = |set: &str| {
            load("", &[set]).map(|config| config.rooms.rounds().map(|rounds| rounds.length.as_secs()))
        };
        assert_eq!(rounds("rooms.round_s=0"), Ok(None));
        for seconds in [10, 86_400] {
            assert_eq!(rounds(&format!("rooms.round_s={seconds}")), Ok(Some(seconds)));
        }
        for seconds in [-1, 9, 86_401] {
            let refused = rounds(&format!("rooms.round_s={seconds}")).unwrap_err();
            assert!(refused.contains("choose 0, or one from 10 to 86400"), "{refused}");
        }
    }

    #[test]
    fn a_room_has_none_to_a_hundred_machines() {
        let machines = |set: &str| load("", &[set]).map(|config| config.rooms.machines());
        assert_eq!(load("", &[]).map(|config| config.rooms.machines()), Ok(0));
        for count in [0, 6, 100] {
            assert_eq!(machines(&format!("rooms.machines={count}")), Ok(count));
        }
        for count in [-1, 101] {
            let refused = machines(&format!("rooms.machines={count}")).unwrap_err();
            assert!(refused.contains("choose one from 0 to 100"), "{refused}");
        }
    }

    #[test]
    fn a_room_has_crates_and_platforms_within_their_ranges() {
        let load =
            |set: &str| load("", &[set]).map(|config| (config.rooms.crates(), config.rooms.platforms()));
        assert_eq!(load("rooms.machines=1"), Ok((16, 2)));
        assert_eq!((load("rooms.crates=64"), load("rooms.platforms=0")), (Ok((64, 2)), Ok((16, 0))));
        for (set, range) in [("rooms.crates=65", "0 to 64"), ("rooms.platforms=5", "0 to 4")] {
            let refused = load(set).unwrap_err();
            assert!(refused.contains(&format!("choose one from {range}")), "{refused}");
        }
    }

    #[test]
    fn a_room_has_a_body_for_each_player_machine_crate_and_platform() {
        let bodies = |more: &str| {
            let sets = [
                "limits.bodies_per_room=74",
                "rooms.machines=6",
                "rooms.crates=3",
                "rooms.platforms=1",
                more,
            ];
            load("", &sets).map(|config| config.limits.bodies_per_room.count())
        };
        assert_eq!(bodies("rooms.capacity=64"), Ok(74));
        let refused = bodies("rooms.capacity=65").unwrap_err();
        assert!(refused.contains("limits.bodies_per_room") && refused.contains("raise it"), "{refused}");
        for (set, good) in [("1", true), ("0", false), ("16384", true), ("16385", false)] {
            let set = format!("limits.bodies_per_room={set}");
            let sets = ["rooms.capacity=1", "rooms.crates=0", "rooms.platforms=0", &set];
            assert_eq!(load("", &sets).is_ok(), good, "{set}");
        }
    }

    #[test]
    fn the_printed_file_says_the_defaults_and_every_key() {
        assert_eq!(load(DEFAULT_FILE, &[]), Ok(Config::default()));
        let optional =
            |line: &str| line.strip_prefix("# ").filter(|line| line.contains(" = \"")).map(str::to_owned);
        let every: String = DEFAULT_FILE
            .lines()
            .map(|line| optional(line).unwrap_or_else(|| line.to_owned()) + "\n")
            .collect();
        let config = load(&every, &[]).unwrap();
        assert!(config.tls.certificate.is_some() && config.tls.key.is_some() && config.tls.keep.is_some());
        assert!(
            config.auth.public_key.is_some()
                && config.auth.audience.is_some()
                && config.admin.secret_file.is_some()
                && config.admin.state_folder.is_some()
        );
        assert!(config.metrics.listen.is_some() && config.metrics.secret_file.is_some());
    }

    #[test]
    fn nothing_given_is_the_defaults() {
        assert_eq!(Config::load(None, &[]).unwrap(), Config::default());
        assert_eq!(load("", &[]), Ok(Config::default()));
    }

    #[test]
    fn a_mistake_has_its_line_and_what_to_do() {
        let said = load("listen = \"127.0.0.1:1\"\n[rooms]\ncapacity = 0\n", &[]).unwrap_err();
        assert!(said.contains("line 3") && said.contains("choose one from 1 to 4096"), "{said}");
        let said = load("[rooms]\ncapacty = 10\n", &[]).unwrap_err();
        assert!(said.contains("line 2") && said.contains("capacty") && said.contains("capacity"), "{said}");
        let said = load("[rooms\n", &[]).unwrap_err();
        assert!(said.contains("line 1"), "{said}");
        let said = load("[rooms]\narena = \"moon\"\n", &[]).unwrap_err();
        assert!(said.contains("line 2") && said.contains("proving-ground"), "{said}");
        let said = load("[tls]\nkey = \"a\"\n", &[]).unwrap_err();
        assert!(said.contains("go together"), "{said}");
        let missing = Config::load(Some(Path::new("no/such/file.toml")), &[]).unwrap_err().to_string();
        assert!(missing.contains("no/such/file.toml") && missing.contains("--config"), "{missing}");
    }

    #[test]
    fn a_flag_replaces_the_file() {
        let config = load(
            "[rooms]\ncapacity = 10\nmax = 3\n",
            &["rooms.capacity=20", "log.format=json", "listen=[::1]:0", "limits.origins=[\"https://a.b\"]"],
        );
        let config = config.unwrap();
        assert_eq!((config.rooms.capacity(), config.rooms.max()), (20, 3));
        assert_eq!(config.log.format, LogFormat::Json);
        assert_eq!(config.listen, "[::1]:0".parse().unwrap());
        assert_eq!(config.limits.origins, ["https://a.b"]);
        for bad in ["rooms.capacity", "rooms.capacity=0", "room.capacity=3", "=3", "rooms..max=3"] {
            let said = load("", &[bad]).unwrap_err();
            assert!(said.contains(bad), "{said}");
        }
    }
}
