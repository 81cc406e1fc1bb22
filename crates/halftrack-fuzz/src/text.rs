//! Text that people, pages and files say: names, addresses, JSON, plans, an operator's config.

use halftrack::PlayerName;
use halftrack_io::{Origin, RoomName};
use halftrack_lab::Plan;
use tanks_web::{Address, Site};

use crate::budget::within;
use crate::config::Config;
use crate::json::Json;

/// What is no text goes no further than what reads it.
fn text(bytes: &[u8]) -> Option<&str> {
    core::str::from_utf8(bytes).ok()
}

/// Players, rooms and pages. A name that is taken is one that can be shown, and is taken again as it is.
pub fn names(bytes: &[u8]) {
    let Some(text) = text(bytes) else { return };
    if let Ok(name) = within(4 * PlayerName::MAX_CHARS, || PlayerName::new(text)) {
        assert!((1..=PlayerName::MAX_CHARS).contains(&name.as_str().chars().count()));
        assert!(!name.as_str().chars().any(char::is_control));
        assert_eq!(PlayerName::new(name.as_str()), Ok(name));
    }
    if let Ok(room) = within(RoomName::MAX_BYTES, || RoomName::new(text)) {
        assert_eq!(room.as_str(), text);
        assert!(text.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'/' && byte != b'.'));
    }
    let _ = within(1_024 + 4 * text.len(), || text.parse::<Origin>());
    let _ = within(1_024 + 8 * text.len(), || Address::new(text, "main"));
}

/// Whatever another library reads, ours does, and as the same; and a site's JSON gives a site, an arena, or an error.
pub fn json(bytes: &[u8]) {
    let Some(text) = text(bytes) else { return };
    // An empty list is two bytes of text, and a list of them grows by doubling.
    let ours = within(1_024 + 128 * text.len(), || Json::read(text));
    if let Ok(theirs) = serde_json::from_str::<serde_json::Value>(text)
        && depth(&theirs) <= 16
        && !has_pairs(text)
    {
        let ours = ours.expect("it is JSON");
        assert!(is_same(&ours, &theirs), "{ours:?} {theirs:?}");
    }
    if let Ok(site) = Site::read(text) {
        let _ = site.arena();
        if let Ok(address) = Address::new("https://[::1]:7777/", "main") {
            let _ = (site.socket_url(&address), site.transport_url(&address));
        }
    }
}

/// Halves of surrogate pairs: those of ours stay halves.
fn has_pairs(text: &str) -> bool {
    text.to_ascii_lowercase().contains("\\ud")
}

fn depth(json: &serde_json::Value) -> usize {
    use serde_json::Value;
    1 + match json {
        Value::Array(list) => list.iter().map(depth).max().unwrap_or(0),
        Value::Object(entries) => entries.values().map(depth).max().unwrap_or(0),
        _ => 0,
    }
}

fn is_same(ours: &Json, theirs: &serde_json::Value) -> bool {
    use serde_json::Value;
    match (ours, theirs) {
        (Json::Null, Value::Null) => true,
        (Json::Bool(one), Value::Bool(other)) => one == other,
        (Json::Number(one), Value::Number(other)) => Some(one.to_bits()) == other.as_f64().map(f64::to_bits),
        (Json::Text(one), Value::String(other)) => one == other,
        (Json::List(one), Value::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| is_same(one, other))
        }
        // Of two keys of the same name our first counts, and their last.
        (Json::Object(one), Value::Object(other)) if one.len() != other.len() => one.len() > other.len(),
        (Json::Object(one), Value::Object(other)) => {
            one.iter().all(|(key, one)| other.get(key).is_some_and(|other| is_same(one, other)))
        }
        _ => false,
    }
}

/// A plan of the lab: one that is read can be run.
pub fn plan(bytes: &[u8]) {
    let Some(text) = text(bytes) else { return };
    let Ok(plan) = Plan::read(text) else { return };
    assert!((1..=400).contains(&plan.seats.len()));
    assert!(plan.seats.iter().all(|seat| seat.link.check().is_ok()));
    assert!(plan.happenings.len() <= 400 * text.len());
}

/// An operator's config: a file, and then each line as one that is set over the others.
pub fn config(bytes: &[u8]) {
    let Some(text) = text(bytes) else { return };
    let _ = toml::from_str::<Config>(text);
    let sets: Vec<_> = text.lines().take(16).map(str::to_owned).collect();
    if let Ok(config) = Config::load(None, &sets) {
        let _ = (config.rooms.cadence(), config.rooms.arena.to_string(), config.tls.validity());
    }
}
