//! A recorded match is watched: going anywhere is the same as playing up to there, and no file does any harm.

#[path = "../../halftrack/tests/rig/mod.rs"]
mod rig;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use halftrack::client::{Client, ClientConfig};
use halftrack::model::Presses;
use halftrack::record::{Entry, Recorder, Recording};
use halftrack::server::ServerConfig;
use halftrack::session::SessionState;
use halftrack::{Cadence, PlayerId, PlayerName, Timestamp, Token};
use rig::{Dice, Rig, Way, ms};
use serde_json::Value;
use tanks::{About, Axis, Fighter, Seen, ShootInput, TankInput, TankWorld, TankWorldConfig, Tanks};
use tanks_theatre::{Limits, Theatre, Wish};

const BAD: Way =
    Way { delay: Duration::from_millis(30), jitter: Duration::from_millis(25), loss: 0.05, duplicate: 0.01 };
const SECONDS: u64 = 20;
const MACHINES: u8 = 3;
const CRATES: u8 = 6;
const PLATFORMS: u8 = 1;

fn config() -> TankWorldConfig {
    // One hit makes a wreck: there is something to see.
    let things = TankWorldConfig { crates: CRATES, platforms: PLATFORMS, ..TankWorldConfig::default() };
    TankWorldConfig { seed: 3, damage: 100, machines: MACHINES, ..things }
}

/// Drives anywhere, and shoots at whoever is first.
fn drive(bot: &mut (Dice, TankInput, Timestamp, Timestamp), now: Timestamp, client: &mut Client<Tanks>) {
    let (dice, wish, next, next_shot) = bot;
    if now >= *next {
        *next = now + ms(100 + dice.below(900));
        let mut axis = || Axis::from_level(dice.below(33) as i8 - 16);
        let (turn, throttle) = (axis(), axis());
        *wish = TankInput { turn, throttle, rocket: Presses::next(wish.rocket) };
    }
    client.set_input(now, *wish);
    let (Some(tank), Some((snapshot, at)), Some(reconciler)) =
        (client.predicted().copied(), client.seen(), client.reconciler())
    else {
        return;
    };
    let Some(other) = client.remotes().iter().next().map(|other| other.visible) else { return };
    if now < *next_shot || client.state() != SessionState::LoggedIn {
        return;
    }
    *next_shot = now + ms(500 + dice.below(300));
    let turns =
        (other.y - tank.tank().unwrap().y).atan2(other.x - tank.tank().unwrap().x) / std::f64::consts::TAU;
    let (tick, grid) = ShootInput::grid(client.cadence(), reconciler.predictor().time());
    let aim = ((turns * 65_536.0).round() as i64 & 0xffff) as u16;
    let seen = Seen::new(client.cadence(), snapshot, at);
    let _ = client.order(now, &ShootInput { tick, at: grid, aim, seen }.encode());
}

/// A match of four over bad links, one of whom leaves, and of machines.
fn recording() -> Vec<u8> {
    static MADE: OnceLock<Vec<u8>> = OnceLock::new();
    MADE.get_or_init(|| {
        let world = TankWorld::new(config()).unwrap();
        let mut rig = Rig::new(ServerConfig::default(), world, 5);
        assert!(rig.server.record([7; 16], About::new("test", 1_700_000_000, &config()).encode()));
        for index in 0..4 {
            let rules = Arc::new(Tanks::new(Arc::clone(&config().arena)));
            let name = PlayerName::new(&format!("bot {index}")).unwrap();
            rig.join(ClientConfig::new(name, Cadence::default(), rules), BAD);
        }
        let bot = |index: u64| (Dice(5 + index), TankInput::NEUTRAL, Timestamp::ZERO, Timestamp::ZERO);
        let mut bots: Vec<_> = (0..4).map(bot).collect();
        rig.run(Duration::from_secs(SECONDS - 5), |seat, now, client| drive(&mut bots[seat], now, client));
        let now = rig.now;
        rig.seats[1].client.logout(now);
        rig.run(Duration::from_secs(5), |seat, now, client| drive(&mut bots[seat], now, client));
        rig.server.stop();
        rig.server.poll_record(&mut rig.record);
        rig.record
    })
    .clone()
}

/// The rows of tanks, and of other bodies.
fn tanks(view: &[f64]) -> impl Iterator<Item = &[f64]> {
    view[view[5] as usize..].chunks(16).take(view[4] as usize)
}

fn bodies(view: &[f64]) -> impl Iterator<Item = &[f64]> {
    view[view[53] as usize..].chunks(12).take(view[52] as usize)
}

fn read(mut theatre: Theatre) -> Theatre {
    while theatre.index_some(50) {}
    theatre
}

fn open(bytes: Vec<u8>) -> Theatre {
    read(Theatre::open(bytes).unwrap())
}

fn fighter_of(value: &Value) -> Fighter {
    Fighter::from_key(value["fighter"].as_u64().unwrap())
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

/// Everything that is seen, to the bit; of the events only those that are to come.
fn seen(theatre: &mut Theatre) -> (Vec<u64>, String) {
    theatre.poll_events();
    let numbers = theatre.frame().iter().map(|number| number.to_bits()).collect();
    (numbers, theatre.fighters())
}

#[test]
fn record_05_going_anywhere_is_playing_up_to_there_to_the_bit() {
    let bytes = recording();
    let (mut played, mut jumped) = (open(bytes.clone()), open(bytes));
    let end = played.length();
    assert!(end > Duration::from_secs(SECONDS - 2) && end <= Duration::from_secs(SECONDS), "{end:?}");
    let mut dice = Dice(8);
    let anywhere = |_| Duration::from_micros(dice.below(end.as_micros() as u64));
    let mut places: Vec<_> = (0..40).map(anywhere).chain([Duration::ZERO]).collect();
    places.sort();
    played.set_wish(Wish::Play);
    jumped.set_wish(Wish::Play);
    let mut pictures = BTreeMap::new();
    for at in places {
        // In steps as a page makes them.
        while played.at() < at {
            let left = at.saturating_sub(played.at());
            played.advance(left.min(ms(17)));
        }
        pictures.insert(at, seen(&mut played));
    }
    for (at, picture) in pictures.iter().rev().chain(&pictures) {
        jumped.seek(*at);
        assert_eq!(seen(&mut jumped), *picture, "at {at:?}");
    }
    // What is to come is told in the same way, from wherever one comes.
    let rest = |theatre: &mut Theatre| {
        theatre.seek(ms(7_321));
        theatre.set_wish(Wish::Play);
        theatre.set_speed(8.0);
        (0..40).for_each(|_| theatre.advance(ms(20)));
        theatre.poll_events()
    };
    let told = rest(&mut jumped);
    assert_eq!(rest(&mut played), told);
    assert!(told.contains("fired"), "{told}");
}

#[test]
fn a_match_has_its_players_its_kills_and_what_clients_had_to_correct() {
    let mut theatre = open(recording());
    let about = json(&theatre.about());
    assert_eq!((about["room"].as_str(), about["started"].as_u64()), (Some("test"), Some(1_700_000_000)));
    assert_eq!((&about["damage"], &about["differs_ms"]), (&Value::Null, &Value::Null));
    assert_eq!(about["arena"]["size"][0].as_f64(), Some(config().arena.size()[0]));
    assert!(!about["arena"]["obstacles"].as_array().unwrap().is_empty());

    let marks = json(&theatre.marks(0));
    let of = |kind: &str| marks.as_array().unwrap().iter().filter(|mark| mark["type"] == kind).count();
    assert!(of("kill") > 2 && of("report") > 2, "{marks}");
    let all = marks.as_array().unwrap().len();
    assert_eq!(json(&theatre.marks(all - 1)).as_array().unwrap().len(), 1, "what is not known yet");
    let report = marks.as_array().unwrap().iter().find(|mark| mark["type"] == "report").unwrap();
    assert!(report["corrections"][0][0].is_string() && report["corrections"][0][1].as_u64() > Some(0));
    assert!(report["name"].as_str().unwrap().starts_with("bot "));

    theatre.seek(Duration::from_secs(10));
    let here = |theatre: &Theatre| -> (usize, usize) {
        let fighters = json(&theatre.fighters());
        let keys = fighters.as_array().unwrap().iter().map(fighter_of);
        let (players, machines): (Vec<_>, Vec<_>) = keys.partition(|fighter| fighter.player().is_some());
        (players.len(), machines.len())
    };
    assert_eq!(here(&theatre), (4, MACHINES.into()));
    theatre.seek(theatre.length());
    assert_eq!(here(&theatre), (3, MACHINES.into()), "one has left");
    let fighters = json(&theatre.fighters());
    let kills: u64 = fighters.as_array().unwrap().iter().map(|each| each["kills"].as_u64().unwrap()).sum();
    assert!(kills > 0 && kills <= of("kill") as u64);

    // Every shot is told once, by whoever fired it; whoever is hit is told of.
    theatre.seek(Duration::ZERO);
    theatre.set_wish(Wish::Play);
    let mut told = vec![];
    while theatre.wish() == Wish::Play {
        theatre.advance(ms(33));
        told.extend(json(&theatre.poll_events()).as_array().unwrap().clone());
    }
    let count = |kind: &str| told.iter().filter(|event| event["type"] == kind).count();
    assert_eq!(count("death"), of("kill"));
    assert_eq!(count("report"), of("report"));
    assert_eq!((count("left"), count("hit")), (1, count("damage")));
    assert!(count("fired") > count("hit") && count("respawn") > 0);
    // From the end it begins anew.
    theatre.set_wish(Wish::Play);
    assert_eq!(theatre.at(), Duration::ZERO);
}

#[test]
fn machines_are_watched_by_their_keys_and_names_and_fight_like_players() {
    let mut theatre = open(recording());
    theatre.seek(Duration::from_secs(2));
    let fighters = json(&theatre.fighters());
    let names: BTreeMap<Fighter, String> = (fighters.as_array().unwrap().iter())
        .map(|each| (fighter_of(each), each["name"].as_str().unwrap().to_owned()))
        .collect();
    let machines: Vec<Fighter> = names.keys().copied().filter(|each| each.player().is_none()).collect();
    assert_eq!(machines.len(), usize::from(MACHINES));
    for machine in &machines {
        assert_eq!(names.get(machine), machine.machine_name().as_ref());
    }
    let rows: Vec<Fighter> = tanks(theatre.frame()).map(|row| Fighter::from_key(row[0] as u64)).collect();
    assert_eq!(rows, names.keys().copied().collect::<Vec<_>>(), "in order, by their exact keys");

    theatre.seek(Duration::ZERO);
    theatre.set_wish(Wish::Play);
    let mut told = vec![];
    while theatre.wish() == Wish::Play {
        theatre.advance(ms(33));
        told.extend(json(&theatre.poll_events()).as_array().unwrap().clone());
    }
    let machine = |key: &Value| key.as_u64().is_some_and(|key| machines.contains(&Fighter::from_key(key)));
    let count = |kind: &str, role: &str| {
        told.iter().filter(|event| event["type"] == kind && machine(&event[role])).count()
    };
    assert!(count("fired", "shooter") > 10, "they shoot");
    assert_eq!(count("left", "fighter"), 0, "they stay");
    let marks = json(&theatre.marks(0));
    let kills: Vec<_> = marks.as_array().unwrap().iter().filter(|mark| mark["type"] == "kill").collect();
    assert!(kills.iter().any(|mark| machine(&mark["fighter"])), "they die");
    for mark in kills {
        for (key, name) in [("fighter", "name"), ("by", "by_name")] {
            let fighter = Fighter::from_key(mark[key].as_u64().unwrap());
            assert_eq!(mark[name].as_str(), names.get(&fighter).map(String::as_str), "{mark}");
        }
    }
    // The tally of the list is that of the events.
    let end = json(&theatre.fighters());
    for each in end.as_array().unwrap().iter().filter(|each| machine(&each["fighter"])) {
        let events = |kind: &str, role: &str| {
            told.iter().filter(|event| event["type"] == kind && event[role] == each["fighter"]).count() as u64
        };
        let shots = [events("fired", "shooter"), events("hit", "shooter"), events("death", "fighter")];
        assert_eq!([&each["shots"], &each["hits"], &each["deaths"]], shots.map(Value::from).each_ref());
    }
}

#[test]
fn a_machine_that_comes_late_joins() {
    // Two players fill the room: a machine has a place when one of them leaves.
    let server = ServerConfig { max_bodies: 2, ..ServerConfig::default() };
    let config = || TankWorldConfig { crates: 0, platforms: 0, ..config() };
    let mut rig = Rig::new(server, TankWorld::new(config()).unwrap(), 5);
    assert!(rig.server.record([7; 16], About::new("test", 1_700_000_000, &config()).encode()));
    for index in 0..2 {
        let rules = Arc::new(Tanks::new(Arc::clone(&config().arena)));
        let name = PlayerName::new(&format!("bot {index}")).unwrap();
        rig.join(ClientConfig::new(name, Cadence::default(), rules), Way::IDEAL);
    }
    rig.run(Duration::from_secs(2), |_, _, _| {});
    let now = rig.now;
    rig.seats[1].client.logout(now);
    rig.run(Duration::from_secs(1), |_, _, _| {});
    rig.server.stop();
    rig.server.poll_record(&mut rig.record);
    let mut theatre = open(rig.record);
    let machines = |theatre: &Theatre| {
        let fighters = json(&theatre.fighters());
        let keys = fighters.as_array().unwrap().iter().map(fighter_of);
        keys.filter(|fighter| fighter.player().is_none()).collect::<Vec<_>>()
    };
    assert_eq!(machines(&theatre), []);
    theatre.set_wish(Wish::Play);
    let mut told = vec![];
    while theatre.wish() == Wish::Play {
        theatre.advance(ms(33));
        told.extend(json(&theatre.poll_events()).as_array().unwrap().clone());
    }
    let came = machines(&theatre);
    assert_eq!((came.len(), theatre.frame()[4]), (1, 2.0));
    let joined: Vec<_> = told.iter().filter(|event| event["type"] == "joined").collect();
    assert_eq!(joined.iter().map(|event| fighter_of(event)).collect::<Vec<_>>(), came, "{joined:?}");
    assert_eq!(joined[0]["name"].as_str(), came[0].machine_name().as_deref());
}

#[test]
fn rockets_crates_and_platforms_are_drawn_once_and_never_leap() {
    let mut theatre = open(recording());
    theatre.set_wish(Wish::Play);
    let (mut last, mut told): (BTreeMap<u64, [f64; 2]>, Vec<Value>) = Default::default();
    let mut flown = BTreeMap::new();
    while theatre.wish() == Wish::Play {
        theatre.advance(ms(16));
        told.extend(json(&theatre.poll_events()).as_array().unwrap().clone());
        let mut now = BTreeMap::new();
        let mut kinds = [0u8; 4];
        for row in bodies(theatre.frame()) {
            let (id, at) = (row[0] as u64, [row[2], row[3]]);
            kinds[row[1] as usize] += 1;
            assert_eq!(now.insert(id, at), None, "each once");
            if let Some(before) = last.get(&id) {
                let way = (at[0] - before[0]).hypot(at[1] - before[1]);
                // A rocket flies 0.35 m in a picture.
                assert!(way < if row[1] == 1.0 { 0.4 } else { 0.2 }, "{row:?} leaps by {way} m");
            }
            if row[1] == 1.0 {
                flown.insert(id, row[6]);
            }
        }
        assert_eq!(kinds[2..], [CRATES, PLATFORMS]);
        last = now;
    }
    let of = |life: &str| {
        let rockets = told.iter().filter(|event| event["type"] == "rocket" && event["life"] == life);
        rockets.map(|event| event["id"].as_u64().unwrap()).collect::<Vec<_>>()
    };
    let (born, ended) = (of("born"), of("ended"));
    assert!(flown.len() > 10, "{flown:?}");
    for id in flown.keys() {
        assert_eq!(born.iter().filter(|born| *born == id).count(), 1, "{id} of {flown:?}, {born:?}");
    }
    // At the end of the recording some are still there. One that meets something at the muzzle is only told to end.
    let burst = born.iter().filter(|id| ended.contains(id)).count();
    assert!(
        burst + 4 >= born.len() && ended.len() <= BTreeSet::from_iter(&ended).len(),
        "{born:?} {ended:?}"
    );
    let owners = flown.values().map(|owner| Fighter::from_key(*owner as u64));
    assert!(owners.into_iter().all(|owner| owner.player().is_some()), "players launched them");
}

#[test]
fn tanks_never_leap_between_pictures() {
    let mut theatre = open(recording());
    theatre.set_wish(Wish::Play);
    theatre.set_speed(0.5);
    let mut last: Vec<[f64; 4]> = vec![];
    while theatre.wish() == Wish::Play {
        theatre.advance(ms(16));
        let numbers = theatre.frame();
        let tanks = tanks(numbers).map(|tank| [tank[0], tank[1], tank[2], tank[5]]);
        let tanks: Vec<_> = tanks.collect();
        for [key, x, y, hp] in &tanks {
            let before = last.iter().find(|before| before[0] == *key);
            // A wreck comes back elsewhere.
            let Some(before) = before.filter(|before| before[3] > 0.0 || *hp == 0.0) else { continue };
            let way = (x - before[1]).hypot(y - before[2]);
            assert!(way < 0.2, "{key} leaps by {way} m");
        }
        last = tanks;
    }
}

#[test]
fn copies_and_marks_are_bounded_and_going_back_is_the_same() {
    let bytes = recording();
    let limits = Limits { every: 4, copies: 8, tanks: 1_000, marks: 3 };
    let mut bounded = read(Theatre::with_limits(bytes.clone(), limits).unwrap());
    assert!((4..=8).contains(&bounded.copies()), "{}", bounded.copies());
    assert_eq!(json(&bounded.marks(0)).as_array().unwrap().len(), 3);
    assert!(json(&bounded.about())["marks_left_out"].as_u64() > Some(0));
    let few = Limits { every: 4, copies: 100, tanks: 20, ..limits };
    assert!(read(Theatre::with_limits(bytes.clone(), few).unwrap()).copies() <= 5);
    let mut usual = open(bytes);
    assert!(usual.copies() <= 3);
    for at in [19_000, 3_010, 12_345, 90, 18_000] {
        bounded.seek(ms(at));
        usual.seek(ms(at));
        assert_eq!(seen(&mut bounded), seen(&mut usual), "at {at} ms");
    }
}

#[test]
fn what_was_read_can_be_watched_before_the_rest_is() {
    let mut theatre = Theatre::open(recording()).unwrap();
    assert_eq!(
        (theatre.length(), theatre.frame().len(), theatre.fighters()),
        (Duration::ZERO, 64, "[]".into())
    );
    theatre.seek(ms(500));
    while theatre.length() < ms(2_000) {
        assert!(theatre.index_some(10));
    }
    theatre.seek(ms(60_000));
    assert_eq!(theatre.at(), theatre.length());
    theatre.set_wish(Wish::Play);
    theatre.advance(ms(500));
    assert_eq!((theatre.at(), theatre.wish()), (theatre.length(), Wish::Play), "it waits for more");
    theatre.index_some(100);
    theatre.advance(ms(500));
    assert!(theatre.at() > ms(2_000));
    let read = theatre.frame()[49];
    assert!(read > 0.0 && read < 1.0, "{read}");
}

#[test]
fn damaged_files_are_watched_up_to_where_they_are_whole() {
    let whole = recording();
    for end in [whole.len() - 1, whole.len() / 2 + 3, whole.len() / 3 + 3] {
        // A file that ends with a chunk is whole. Two such ends are never side by side.
        let damage = |theatre: &Theatre| json(&theatre.about())["damage"].as_str().map(str::to_owned);
        let cut = [end, end - 1].map(|end| open(whole[..end].to_vec()));
        let mut theatre = cut.into_iter().find(|theatre| damage(theatre).is_some()).unwrap();
        let damage = damage(&theatre).unwrap();
        assert!(damage.starts_with("damaged after tick "), "{damage}");
        theatre.seek(theatre.length());
        assert!(theatre.frame()[4] >= 3.0);
    }
    for (bytes, why) in [
        (vec![], "this is no recording"),
        (b"<!doctype html>".to_vec(), "this is no recording"),
        (whole[..40].to_vec(), "the beginning of the recording is damaged"),
    ] {
        assert_eq!(Theatre::open(bytes).unwrap_err().to_string(), why);
    }
}

/// A file that no server wrote: right checks around whatever is wanted.
fn forged(entries: &[Entry]) -> Vec<u8> {
    let header = Recording::<Tanks>::open(recording()).unwrap().header().clone();
    let (mut recorder, mut bytes) = (Recorder::<Tanks>::new(&header), vec![]);
    for chunk in entries.chunks(500) {
        chunk.iter().for_each(|entry| recorder.write(entry));
        recorder.take(&mut bytes);
    }
    bytes
}

#[test]
fn record_06_no_file_does_any_harm() {
    let whole = recording();
    let mut dice = Dice(4);
    for _ in 0..30 {
        let mut bytes = whole.clone();
        for _ in 0..=dice.below(3) {
            let at = dice.below(bytes.len() as u64) as usize;
            bytes[at] = dice.below(256) as u8;
        }
        bytes.truncate(dice.below(2 * bytes.len() as u64).max(20) as usize);
        let Ok(theatre) = Theatre::open(bytes) else { continue };
        let mut theatre = read(theatre);
        theatre.seek(Duration::from_millis(dice.below(30_000)));
        theatre.frame();
    }
    let joined = |player: u16| Entry::Joined {
        player: PlayerId::new(player),
        name: PlayerName::new("Mallory").unwrap(),
        token: Token::new([0; 16]),
        claims: None,
    };
    let report = Entry::Reported {
        player: PlayerId::new(9),
        corrections: vec![(3, 1), (77, 9), (255, 65_535)],
        snapped: 3,
    };
    let odd = [
        report,
        joined(1),
        joined(1),
        Entry::Left { player: PlayerId::new(8) },
        Entry::Ended,
        Entry::Slipped,
    ];
    let mut theatre = open(forged(&odd));
    theatre.seek(Duration::MAX);
    theatre.set_wish(Wish::Play);
    theatre.advance(Duration::from_secs(1 << 40));
    assert_eq!((theatre.length(), theatre.frame().len()), (Duration::ZERO, 64), "no tick, no picture");
    assert_eq!(json(&theatre.marks(0))[0]["corrections"], json(r#"[["death",1]]"#));
    theatre.set_speed(f64::NAN);
    theatre.set_speed(f64::INFINITY);
    assert_eq!(theatre.frame()[51], 8.0);
}
