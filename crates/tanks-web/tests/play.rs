//! A page's client against a real server, in virtual time.

mod rig;

use halftrack::SyncLink;
use halftrack_netem::Passage;
use rig::{
    AUTHORITATIVE, CORRECTIONS, DRAWN, FLAGS, Frames, LOGGED_IN, MARGIN, OPEN_TICK, OWN, POINTS, PREDICTED,
    ROUND_TRIP, Rig, STATE, VISIBLE, away,
};
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
