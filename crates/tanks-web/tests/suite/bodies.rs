//! Rockets, crates and platforms on the page, against a real server in virtual time.

use std::collections::BTreeSet;

use crate::rig::{CORRECTIONS, DRAWN, OWN, Page, Rig, away};
use halftrack::SyncLink;
use tanks_web::{LinkSettings, Ways};

const ROCKET: f64 = 1.0;
const CRATE: f64 = 2.0;
const PLATFORM: f64 = 3.0;
const RELOAD_LEFT: usize = 54;
/// Bits of a row's flags.
const OWNED: u32 = 1;
const PREDICTED: u32 = 32;

fn slow(rig: &mut Rig, millis: u32) {
    let settings = LinkSettings::read(&format!(r#"{{"delay_ms":{millis}}}"#)).unwrap();
    rig.pages[0].play.set_link(Ways::Both, &settings).unwrap();
    rig.run(3_000);
}

fn of_kind(page: &Page, kind: f64) -> Vec<Vec<f64>> {
    page.bodies().into_iter().filter(|row| row[1] == kind).collect()
}

/// How often a rocket was told to be born or to end so.
fn told(page: &Page, life: &str, certainty: &str) -> usize {
    let rockets = page.told("rocket");
    rockets.iter().filter(|event| event["life"] == life && event["certainty"] == certainty).count()
}

fn rockets(page: &Page) -> [u64; 3] {
    let counts = page.diagnostics()["rockets"].clone();
    ["predicted", "confirmed", "revoked"].map(|name| counts[name].as_u64().unwrap())
}

#[test]
fn a_rocket_is_in_the_frame_after_its_press_and_bursts_once() {
    let mut rig = Rig::new(1, SyncLink::Present);
    slow(&mut rig, 60);
    assert!(rig.pages[0].play.press_rocket(rig.now));
    rig.run(17);
    let page = &rig.pages[0];
    let [rocket] = &of_kind(page, ROCKET)[..] else { panic!("it is not drawn: {:?}", page.bodies()) };
    assert_eq!((rocket[5] as u32, rocket[6], rocket[7]), (OWNED | PREDICTED, page.at(OWN), 0.0));
    assert!((1.0..3.0).contains(&away([rocket[2], rocket[3], 0.0], page.pose(DRAWN))));
    assert_eq!((told(page, "born", "predicted"), told(page, "born", "confirmed")), (1, 0));
    assert!((1_400.0..1_500.0).contains(&page.at(RELOAD_LEFT)), "it is reloaded");
    let id = rocket[0];
    let mut pictures = 0;
    while told(&rig.pages[0], "ended", "predicted") == 0 {
        rig.run(16);
        let rows = of_kind(&rig.pages[0], ROCKET);
        assert!(rows.len() <= 1 && rows.iter().all(|row| row[0] == id), "drawn once: {rows:?}");
        pictures += rows.len();
    }
    assert!(pictures > 60, "{pictures}");
    rig.run(1_000);
    let page = &rig.pages[0];
    assert!(of_kind(page, ROCKET).is_empty(), "it does not come back with the server's word");
    for (life, certainty) in [("born", "confirmed"), ("ended", "predicted"), ("ended", "confirmed")] {
        assert_eq!(told(page, life, certainty), 1, "{life} {certainty}");
    }
    assert_eq!((told(page, "born", "revoked"), told(page, "ended", "revoked")), (0, 0));
    assert_eq!((rockets(page), page.at(CORRECTIONS)), ([1, 1, 0], 0.0));
}

#[test]
fn a_press_is_counted_once_and_only_a_press_launches() {
    let mut rig = Rig::new(1, SyncLink::Present);
    // Two within a millisecond: the tube holds one.
    assert!(rig.pages[0].play.press_rocket(rig.now));
    assert!(rig.pages[0].play.press_rocket(rig.now));
    rig.run(1_600);
    for turn in [0.5, 0.0, -0.5, 0.0] {
        rig.pages[0].play.set_input(rig.now, 1.0, turn);
        rig.run(40);
    }
    assert_eq!(rockets(&rig.pages[0]), [1, 1, 0], "driving launches nothing, and no press is kept for later");
    assert_eq!(rig.pages[0].at(RELOAD_LEFT), 0.0);
    assert!(rig.pages[0].play.press_rocket(rig.now));
    rig.run(300);
    assert_eq!(rockets(&rig.pages[0]), [2, 2, 0]);
}

#[test]
fn a_page_that_comes_back_goes_on_counting() {
    let mut rig = Rig::new(1, SyncLink::Present);
    assert!(rig.pages[0].play.press_rocket(rig.now));
    rig.run(2_500);
    let token = rig.pages[0].play.resume_token();
    drop(rig.crash(0));
    rig.open("Player 0", token, SyncLink::Present);
    assert!(!rig.pages[0].play.press_rocket(rig.now), "there is no tank yet");
    rig.run(2_500);
    assert_eq!(rockets(&rig.pages[0]), [0; 3], "nothing is launched by itself");
    assert!(rig.pages[0].play.press_rocket(rig.now));
    rig.run(300);
    assert_eq!(rockets(&rig.pages[0]), [1, 1, 0]);
}

#[test]
fn others_see_a_rocket_once_and_in_the_colour_of_its_tank() {
    let mut rig = Rig::new(2, SyncLink::Present);
    let shooter = rig.pages[0].at(OWN);
    assert!(rig.pages[0].play.press_rocket(rig.now));
    let mut pictures = 0;
    for _ in 0..150 {
        rig.run(16);
        let rows = of_kind(&rig.pages[1], ROCKET);
        assert!(rows.len() <= 1, "{rows:?}");
        for row in rows {
            assert_eq!((row[5] as u32 & (OWNED | PREDICTED), row[6]), (0, shooter));
            pictures += 1;
        }
    }
    assert!(pictures > 60, "{pictures}");
    let page = &rig.pages[1];
    assert_eq!((told(page, "born", "confirmed"), told(page, "ended", "confirmed")), (1, 1));
    assert_eq!((page.told("rocket").len(), rockets(page)), (2, [0; 3]), "nothing is foretold of it");
}

#[test]
fn every_body_is_drawn_once_while_the_group_changes() {
    let mut rig = Rig::with_things(2, 40, 2);
    slow(&mut rig, 40);
    let mut predicted = BTreeSet::new();
    let mut last = 0;
    for step in 0..400 {
        if step % 40 == 0 {
            rig.pages[0].play.set_input(rig.now, 1.0, if step % 80 == 0 { 0.4 } else { -0.2 });
        }
        rig.run(16);
        let rows = rig.pages[0].bodies();
        let ids: Vec<u64> = rows.iter().map(|row| row[0] as u64).collect();
        assert!(ids.is_sorted_by(|one, other| one < other), "each once, in order: {ids:?}");
        assert_eq!((of_kind(&rig.pages[0], CRATE).len(), of_kind(&rig.pages[0], PLATFORM).len()), (40, 2));
        let group: BTreeSet<u64> =
            rows.iter().filter(|row| row[5] as u32 & PREDICTED != 0).map(|row| row[0] as u64).collect();
        assert!(rows.iter().all(|row| (row[5] as u32 & PREDICTED != 0) == row[7].is_finite()));
        last = group.len();
        predicted.extend(group);
    }
    assert!(predicted.len() > last, "bodies came and went: {predicted:?}");
    assert_eq!(rig.pages[1].bodies().len(), 42);
}
