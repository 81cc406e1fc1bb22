//! A page's client against a real server, in virtual time.

use crate::rig::{
    AUTHORITATIVE, CORRECTIONS, DRAWN, FLAGS, Frames, LOGGED_IN, MARGIN, OPEN_TICK, OWN, POINTS, PREDICTED,
    ROUND_TRIP, Rig, STATE, TANKS, VISIBLE, away,
};
use halftrack::SyncLink;
use halftrack_netem::Passage;
use tanks_web::{LinkSettings, Mode, NotFired, Part, Ways};

fn slow(millis: u32) -> LinkSettings {
    LinkSettings::read(&format!(r#"{{"delay_ms":{millis}}}"#)).unwrap()
}

/// Drives ahead on a link of 60 ms each way, and comes out of a partition: the server has stopped the tank meanwhile.
fn partitioned(part: Part) -> Rig {
    let mut rig = Rig::new(1, SyncLink::Present);
    rig.pages[0].play.set_link(Ways::Both, &slow(60)).unwrap();
    rig.run(3_000);
    let now = rig.now;
    rig.pages[0].play.set_switch(now, part, Mode::Off);
    rig.pages[0].play.set_input(now, 1.0, 0.0);
    rig.run(500);
    rig.pages[0].play.set_passage(rig.now, Passage::Blocked);
    rig.run(600);
    rig.pages[0].play.set_passage(rig.now, Passage::Open);
    rig.run(100);
    while rig.pages[0].pose(VISIBLE) == rig.pages[0].pose(PREDICTED) {
        rig.run(1);
        assert!(rig.now.as_micros() < 9_000_000, "there was nothing to correct");
    }
    rig
}

#[test]
fn a_page_drives_and_sees_itself_at_once_and_others_as_they_were() {
    let mut rig = Rig::new(2, SyncLink::Present);
    let before = rig.pages[0].pose(DRAWN);
    rig.pages[0].play.set_input(rig.now, 1.0, 0.0);
    rig.run(34);
    let page = &rig.pages[0];
    assert!(away(page.pose(DRAWN), before) > 0.05, "two frames later it has moved on its own screen");
    assert_eq!(page.pose(AUTHORITATIVE), before, "the server has not even simulated it");
    rig.run(2_000);
    let page = &rig.pages[0];
    assert!(away(page.pose(AUTHORITATIVE), before) > 10.0);
    assert_eq!(page.at(CORRECTIONS), 0.0, "nothing to correct");
    assert_eq!(page.at(FLAGS) as u32 & 0b11111, 0b1111);
    let rows = page.tanks();
    assert_eq!(rows.len(), 2);
    let own = rows.iter().find(|row| row[0] == page.at(OWN)).unwrap();
    assert_eq!((own[1], own[2], own[6] as u32 & 3), (page.at(DRAWN), page.at(DRAWN + 1), 3));
    assert!((own[4] - 8.0).abs() < 0.2, "speed {}", own[4]);
    let seen = rig.pages[1].tanks().into_iter().find(|row| row[0] == page.at(OWN)).unwrap();
    assert!(seen[5] == 100.0 && (seen[4] - 8.0).abs() < 0.5 && seen[14] > 0.0, "{seen:?}");
    let joined: Vec<_> = page.told("joined").iter().map(|event| event["name"].clone()).collect();
    assert_eq!(joined.len(), 2, "{joined:?}");
    assert!(page.told("state").iter().any(|event| event["state"] == "logged_in"));
    let diagnostics = page.diagnostics();
    assert!(diagnostics["hold_ratio"].as_f64().unwrap() < 0.05, "but for the first, every tick came");
    assert!(diagnostics["traffic"]["datagrams_down"].as_u64().unwrap() > 30);
    assert!(page.at(MARGIN) > 0.0, "input comes early");
}

#[test]
fn the_bad_network_is_what_was_asked_for_and_goes_again() {
    let mut rig = Rig::new(1, SyncLink::Present);
    assert!(rig.pages[0].at(ROUND_TRIP) < 5.0);
    rig.pages[0].play.set_link(Ways::Both, &slow(80)).unwrap();
    rig.run(12_000);
    let trip = rig.pages[0].at(ROUND_TRIP);
    assert!((160.0..175.0).contains(&trip), "{trip} ms");
    rig.pages[0].play.set_link(Ways::Both, &LinkSettings::default()).unwrap();
    rig.run(12_000);
    assert!(rig.pages[0].at(ROUND_TRIP) < 5.0);
    assert!(rig.pages[0].play.set_link(Ways::Up, &slow(70_000)).is_err());
}

#[test]
fn without_prediction_the_own_tank_is_behind() {
    let mut rig = Rig::new(1, SyncLink::Present);
    rig.pages[0].play.set_link(Ways::Both, &slow(60)).unwrap();
    rig.run(3_000);
    for part in [Part::Prediction, Part::Interpolation] {
        rig.pages[0].play.set_switch(rig.now, part, Mode::Off);
        rig.pages[0].play.set_input(rig.now, 1.0, 0.0);
        let before = rig.pages[0].pose(DRAWN);
        rig.run(100);
        assert_eq!(rig.pages[0].pose(DRAWN), before, "nothing moves before the server says so");
        rig.run(400);
        let page = &rig.pages[0];
        assert!(away(page.pose(DRAWN), before) > 0.5, "then it does");
        assert!(away(page.pose(DRAWN), page.pose(PREDICTED)) > 0.8, "a round trip behind");
        rig.pages[0].play.set_input(rig.now, 0.0, 0.0);
        rig.run(1_000);
    }
    rig.pages[0].play.set_switch(rig.now, Part::Prediction, Mode::On);
    rig.run(20);
    assert_eq!(rig.pages[0].pose(DRAWN), rig.pages[0].pose(VISIBLE));
}

#[test]
fn without_reconciliation_the_own_tank_drifts() {
    let mut rig = partitioned(Part::Reconciliation);
    rig.pages[0].play.set_input(rig.now, 0.0, 0.0);
    rig.run(2_000);
    let page = &rig.pages[0];
    assert_eq!(page.pose(VISIBLE), page.pose(AUTHORITATIVE), "the netcode is with the server");
    assert!(away(page.pose(DRAWN), page.pose(AUTHORITATIVE)) > 1.0, "what is drawn never will be");
    rig.pages[0].play.set_switch(rig.now, Part::Reconciliation, Mode::On);
    rig.run(20);
    assert_eq!(rig.pages[0].pose(DRAWN), rig.pages[0].pose(AUTHORITATIVE));
}

#[test]
fn without_smoothing_a_correction_is_a_jump() {
    let rig = partitioned(Part::Smoothing);
    let page = &rig.pages[0];
    assert_eq!(page.pose(DRAWN), page.pose(PREDICTED));
    assert!(away(page.pose(VISIBLE), page.pose(PREDICTED)) > 0.1);
    let diagnostics = page.diagnostics();
    let recent = diagnostics["recent"].as_array().unwrap();
    assert!(!recent.is_empty() && page.at(CORRECTIONS) as usize >= recent.len());
    assert!(recent.iter().all(|each| each["cause"] != "unexplained"), "{recent:?}");
    assert!(diagnostics["hold_ratio"].as_f64().unwrap() > 0.0);
    let export: serde_json::Value = serde_json::from_str(&page.play.export()).unwrap();
    assert!(export["samples"].as_array().unwrap().len() > 30);
    assert_eq!(export["corrections"].as_array().unwrap().len(), page.at(CORRECTIONS) as usize);
}

#[test]
fn without_interpolation_others_are_where_they_were_last_told_to_be() {
    let mut rig = Rig::new(2, SyncLink::Present);
    rig.pages[1].play.set_input(rig.now, 1.0, 0.5);
    rig.run(700);
    let other =
        |rig: &Rig| rig.pages[0].tanks().into_iter().find(|row| row[0] != rig.pages[0].at(OWN)).unwrap();
    let row = other(&rig);
    assert!(away([row[1], row[2], 0.0], [row[11], row[12], 0.0]) > 0.01, "drawn behind the newest state");
    rig.pages[0].play.set_switch(rig.now, Part::Interpolation, Mode::Off);
    rig.run(17);
    let row = other(&rig);
    assert_eq!([row[1], row[2], row[3]], [row[11], row[12], row[13]]);
}

#[test]
fn without_sub_ticks_input_waits_for_the_tick() {
    let mut rig = Rig::new(1, SyncLink::Present);
    rig.pages[0].play.set_switch(rig.now, Part::SubTick, Mode::Off);
    let open = rig.pages[0].at(OPEN_TICK);
    while rig.pages[0].at(OPEN_TICK) == open {
        rig.run(1);
    }
    let (open, before) = (rig.pages[0].at(OPEN_TICK), rig.pages[0].pose(PREDICTED));
    rig.pages[0].play.set_input(rig.now, 1.0, 0.0);
    while rig.pages[0].at(OPEN_TICK) == open {
        assert_eq!(rig.pages[0].pose(PREDICTED), before, "not in this tick");
        rig.run(1);
    }
    rig.run(34);
    assert_ne!(rig.pages[0].pose(PREDICTED), before, "but in the next");
    rig.pages[0].play.set_switch(rig.now, Part::SubTick, Mode::On);
    rig.run(500);
    assert_eq!(rig.pages[0].at(CORRECTIONS), 0.0);
}

#[test]
fn a_shot_is_ordered_foretold_and_told_of() {
    let mut rig = Rig::new(2, SyncLink::Present);
    let target = rig.pages[0].tanks().into_iter().find(|row| row[0] != rig.pages[0].at(OWN)).unwrap();
    let own = rig.pages[0].pose(DRAWN);
    let (aim, distance) =
        ((target[2] - own[1]).atan2(target[1] - own[0]), away(own, [target[1], target[2], 0.0]));
    let now = rig.now;
    let reach = rig.pages[0].play.fire(now, aim).unwrap();
    assert!((reach - (distance - 1.5)).abs() < 0.01 || reach == 60.0, "{reach} of {distance} m");
    assert_eq!(rig.pages[0].play.fire(now, aim), Err(NotFired::CoolingDown));
    assert_eq!(rig.pages[0].play.fire(now, f64::NAN), Err(NotFired::NotIn));
    rig.run(300);
    for page in &rig.pages {
        let fired = page.told("fired");
        assert_eq!(fired.len(), 1);
        let metres = |name: &str, at: usize| fired[0][name][at].as_f64().unwrap();
        let length = (metres("to", 0) - metres("from", 0)).hypot(metres("to", 1) - metres("from", 1));
        assert!((length - reach).abs() < 0.1, "{length} of {reach} m");
    }
    assert_eq!(rig.pages[0].told("fired")[0]["own"], true);
    assert!(rig.pages[1].told("fired")[0]["in_ms"].as_f64().unwrap() >= 0.0);
    if reach < 60.0 {
        assert_eq!(rig.pages[1].told("damage")[0]["hp"], 75);
        assert_eq!(rig.pages[1].at(9), 75.0);
    }
    rig.run(300);
    assert!(rig.pages[0].play.fire(rig.now, aim + 1.0).is_ok(), "ready again");
}

#[test]
fn a_gun_is_not_ready_before_it_is_loaded_for_the_first_time() {
    for sync_link in [SyncLink::Present, SyncLink::Absent] {
        let mut rig = Rig::arriving(1, sync_link);
        let mut cooling = 0;
        // A click each millisecond, from before the login on.
        let reach = (0..2_000).find_map(|_| {
            rig.run(1);
            let now = rig.now;
            let fired = rig.pages[0].play.fire(now, 1.0);
            cooling += u32::from(fired == Err(NotFired::CoolingDown));
            fired.ok()
        });
        assert!(reach.is_some() && cooling > 100, "{reach:?} after {cooling} ms with a tank");
        assert!(cooling <= 500, "{cooling} ms");
        rig.run(500);
        let page = &rig.pages[0];
        assert_eq!((page.told("fired").len(), page.told("rejected").len()), (1, 0), "{:?}", page.events);
    }
}

#[test]
fn a_cut_page_comes_back_as_the_same_player() {
    let mut rig = Rig::new(2, SyncLink::Present);
    let (own, before) = (rig.pages[0].at(OWN), rig.pages[0].pose(AUTHORITATIVE));
    rig.cut(0);
    rig.run(20);
    assert_ne!(rig.pages[0].at(STATE), LOGGED_IN);
    rig.run(1_500);
    assert_eq!((rig.pages[0].at(STATE), rig.pages[0].at(OWN)), (LOGGED_IN, own));
    assert_eq!(rig.pages[0].pose(AUTHORITATIVE), before, "where it was");
    assert_eq!(rig.pages[0].told("restarted").len(), 0);
}

#[test]
fn a_hidden_page_keeps_little_and_is_back_at_once() {
    let mut rig = Rig::new(2, SyncLink::Present);
    rig.pages[0].play.set_link(Ways::Both, &slow(30)).unwrap();
    rig.pages[0].frames = Frames::Hidden;
    rig.pages[1].play.set_input(rig.now, 1.0, 1.0);
    for shot in 0..120 {
        let _ = rig.pages[1].play.fire(rig.now, f64::from(shot));
        rig.run(1_000);
    }
    let waiting: Vec<serde_json::Value> = serde_json::from_str(&rig.pages[0].play.poll_events()).unwrap();
    assert!((60..=1_025).contains(&waiting.len()), "{}", waiting.len());
    rig.pages[0].frames = Frames::Shown;
    rig.run(300);
    let page = &rig.pages[0];
    assert_eq!(page.at(STATE), LOGGED_IN, "it was never away");
    let [one, other] = [page, &rig.pages[1]].map(|page| page.tanks());
    assert_eq!(one.len(), other.len());
    let age = one.iter().map(|row| row[14]).fold(0.0, f64::max);
    assert!(age < 200.0, "the newest state is {age} ms old");
}

#[test]
fn without_datagrams_everything_goes_by_the_stream() {
    let mut rig = Rig::new(2, SyncLink::Absent);
    rig.pages[0].play.set_input(rig.now, 1.0, 0.3);
    rig.run(2_000);
    let page = &rig.pages[0];
    assert_eq!(page.at(CORRECTIONS), 0.0);
    assert!(page.at(MARGIN) > 0.0, "margins are seen there too");
    assert_eq!(page.diagnostics()["traffic"]["datagrams_up"], 0);
    assert!(page.diagnostics()["client"]["snapshots"].as_u64().unwrap() > 40);
}

#[test]
fn the_path_goes_from_what_the_server_told_to_what_is_predicted() {
    let mut rig = Rig::new(1, SyncLink::Present);
    rig.pages[0].play.set_link(Ways::Both, &slow(60)).unwrap();
    rig.pages[0].play.set_input(rig.now, 1.0, 0.4);
    rig.run(3_010);
    assert_eq!(rig.pages[0].at(POINTS), 0.0, "nobody asked");
    rig.pages[0].play.show_path(Mode::On);
    rig.run(17);
    let page = &rig.pages[0];
    let (count, start) = (page.at(POINTS) as usize, page.at(POINTS + 1) as usize);
    assert!(count >= 3);
    assert_eq!(page.pose(start), page.pose(AUTHORITATIVE));
    assert_eq!(page.pose(start + (count - 1) * 4), page.pose(PREDICTED));
}

/// A page that crashed comes back by its saved token to the tank that it had, while its name alone is kept out.
#[test]
fn a_saved_token_brings_the_page_after_a_crash_back_to_its_tank() {
    let mut rig = Rig::new(2, SyncLink::Present);
    let (own, token) = (rig.pages[0].at(OWN), rig.pages[0].play.resume_token());
    let place = rig.pages[0].pose(PREDICTED);
    drop(rig.crash(0));
    rig.run(200);
    let stranger = rig.open("Player 0", None, SyncLink::Present);
    rig.run(300);
    assert_eq!(rig.pages[stranger].told("state").last().unwrap()["state"], "failed", "the name is taken");
    let back = rig.open("Player 0", token, SyncLink::Present);
    rig.run(500);
    let page = &rig.pages[back];
    assert_eq!((page.at(STATE), page.at(OWN), page.at(TANKS)), (LOGGED_IN, own, 2.0), "{:?}", page.events);
    assert_eq!(page.told("restarted")[0]["why"], "reclaimed");
    assert!(away(place, page.pose(PREDICTED)) < 0.1, "the same tank");
}

#[test]
fn a_page_says_whether_the_server_stopped_or_removed_the_player_or_the_network_cut_it() {
    let newest = |rig: &Rig, page: usize, state: &str| {
        let states = rig.pages[page].told("state");
        let newest = states.iter().rev().find(|event| event["state"] == state);
        newest.map(|event| (event["why"].clone(), event["text"].as_str().unwrap().to_owned()))
    };
    let mut rig = Rig::new(3, SyncLink::Present);
    rig.cut(0);
    rig.run(40);
    let cut = newest(&rig, 0, "reconnecting").unwrap();
    assert_eq!(cut, (serde_json::Value::Null, "cut, and coming back".to_owned()));
    let bob = rig.server.players().nth(1).unwrap();
    rig.server.kick(bob);
    rig.run(40);
    let kicked = newest(&rig, 1, "failed").unwrap();
    assert_eq!(kicked, (serde_json::Value::Null, "failed: removed by an operator".to_owned()));
    rig.server.stop();
    rig.run(40);
    let stopped = (serde_json::json!("stopped"), "the server is shutting down".to_owned());
    assert_eq!(newest(&rig, 2, "reconnecting"), Some(stopped.clone()));
    rig.run(40_000);
    assert_eq!(newest(&rig, 2, "timed_out"), Some(stopped), "it is still known when the page gives up");
}

/// Drives to and fro while the network stands still for half of every second, and gives every correction as the page had it
/// the moment it was new, with the pose that the server had at the end of its tick.
fn corrected() -> (Rig, Vec<(serde_json::Value, [f64; 3])>) {
    let mut rig = Rig::new(1, SyncLink::Present);
    rig.pages[0].play.set_link(Ways::Both, &slow(40)).unwrap();
    rig.run(2_000);
    let own = rig.server.bodies().next().unwrap().0;
    let (mut found, mut known) = (vec![], 0.0);
    for step in 0..12_000u32 {
        if step % 1_000 == 0 {
            rig.pages[0].play.set_passage(rig.now, Passage::Blocked);
            let throttle = if step % 2_000 == 0 { 1.0 } else { -1.0 };
            rig.pages[0].play.set_input(rig.now, throttle, throttle * 0.5);
        }
        if step % 1_000 == 500 {
            rig.pages[0].play.set_passage(rig.now, Passage::Open);
        }
        rig.run(1);
        if rig.pages[0].at(CORRECTIONS) > known {
            known = rig.pages[0].at(CORRECTIONS);
            let newest = rig.pages[0].diagnostics()["recent"].as_array().unwrap().last().unwrap().clone();
            let tick = halftrack::Tick::new(u32::try_from(newest["tick"].as_u64().unwrap()).unwrap());
            let tank = rig.server.body(own, tick).unwrap();
            let open = rig.pages[0].at(OPEN_TICK) - f64::from(tick.number());
            let replayed = newest["replayed_ticks"].as_f64().unwrap();
            assert!((0.0..=1.0).contains(&(open - replayed)), "{open} ticks since, {replayed} replayed");
            found.push((
                newest,
                [
                    tank.tank().unwrap().x,
                    tank.tank().unwrap().y,
                    tank.tank().unwrap().heading * std::f64::consts::TAU,
                ],
            ));
        }
    }
    (rig, found)
}

fn numbers(value: &serde_json::Value) -> [f64; 3] {
    let numbers: Vec<_> = value.as_array().unwrap().iter().map(|number| number.as_f64().unwrap()).collect();
    numbers.try_into().unwrap()
}

#[test]
fn diag_01_the_page_has_the_numbers_of_every_correction() {
    let (_, found) = corrected();
    assert!(found.len() >= 5, "{found:?}");
    for (correction, server) in &found {
        let [authoritative, before, after] =
            ["authoritative", "before", "after"].map(|name| numbers(&correction[name]));
        let turned = |one: f64, other: f64| {
            let turns = (one - other) / std::f64::consts::TAU;
            (turns - turns.round()).abs() * std::f64::consts::TAU
        };
        assert!(away(authoritative, *server) < 1e-9, "{correction} at {server:?}");
        assert!(turned(authoritative[2], server[2]) < 1e-9, "{correction} at {server:?}");
        let (distance, angle) =
            (correction["distance"].as_f64().unwrap(), correction["angle"].as_f64().unwrap());
        assert!((away(after, before) - distance).abs() < 1e-9, "{correction}");
        assert!((turned(after[2], before[2]) - angle.abs()).abs() < 1e-9, "{correction}");
        assert!(distance > 0.0 || angle != 0.0, "{correction}");
        assert!(
            ["lost_input", "late_input"].contains(&correction["cause"].as_str().unwrap()),
            "{correction}"
        );
    }
}

#[test]
fn diag_02_the_counts_on_the_page_are_those_of_its_corrections() {
    let (mut rig, found) = corrected();
    rig.pages[0].play.set_link(Ways::Both, &slow(60)).unwrap();
    rig.pages[0].play.set_input(rig.now, 0.0, 0.0);
    // The last word on input that was lost or late.
    rig.run(6_000);
    let exported: serde_json::Value = serde_json::from_str(&rig.pages[0].play.export()).unwrap();
    let (now, all) = (&exported["now"], exported["corrections"].as_array().unwrap());
    assert!(found.len() >= 5 && all.len() >= found.len(), "{found:?}");
    assert_eq!(rig.pages[0].at(CORRECTIONS), all.len() as f64);
    for count in now["causes"].as_array().unwrap() {
        let of = all.iter().filter(|correction| correction["cause"] == count[0]).count();
        assert_eq!(count[1].as_u64().unwrap(), of as u64, "{}", count[0]);
    }
    for outcome in ["negligible", "eased", "snapped"] {
        let of = all.iter().filter(|correction| correction["outcome"] == outcome).count();
        assert_eq!(now["outcomes"][outcome].as_u64().unwrap(), of as u64, "{outcome}");
    }
    let recent = now["recent"].as_array().unwrap();
    assert_eq!(recent.as_slice(), &all[all.len() - recent.len()..]);
}
