//! Tanks that the world drives, as a page has them: by the keys of their fighters, with names, scores and combat.

use std::collections::{BTreeMap, BTreeSet};

use crate::rig::{DRAWN, Frames, LOGGED_IN, OWN, Page, Rig, STATE, TANKS, away};
use halftrack::server::ServerConfig;
use halftrack::{Driver, SyncLink};
use serde_json::Value;
use tanks::Fighter;

const MACHINES: u8 = 5;

/// The fighter of a row of the view.
fn fighter(row: &[f64]) -> Fighter {
    Fighter::from_key(row[0] as u64)
}

fn is_machine(fighter: Fighter) -> bool {
    fighter.player().is_none()
}

fn scoreboard(page: &Page) -> Vec<Value> {
    serde_json::from_str(&page.play.fighters()).unwrap()
}

fn fighter_of(value: &Value) -> Fighter {
    Fighter::from_key(value.as_u64().unwrap())
}

/// Names by fighter: of the events, as a page keeps them.
fn names(page: &Page) -> BTreeMap<Fighter, String> {
    let mut names = BTreeMap::new();
    for event in &page.events {
        if event["type"] == "joined" {
            names.insert(fighter_of(&event["fighter"]), event["name"].as_str().unwrap().to_owned());
        } else if event["type"] == "left" {
            names.remove(&fighter_of(&event["fighter"]));
        }
    }
    names
}

#[test]
fn machines_have_rows_names_and_scores_on_every_page() {
    let mut rig = Rig::with_machines(2, MACHINES, SyncLink::Present);
    rig.run(500);
    let mut on_server: Vec<_> =
        rig.server.bodies().map(|(id, driver, _)| (Fighter::of(id, driver), driver)).collect();
    on_server.sort_by_key(|(fighter, _)| *fighter);
    assert_eq!(
        on_server.iter().filter(|(_, driver)| *driver == Driver::World).count(),
        usize::from(MACHINES)
    );
    for page in &rig.pages {
        let rows: Vec<Fighter> = page.tanks().iter().map(|row| fighter(row)).collect();
        let expected: Vec<Fighter> = on_server.iter().map(|(fighter, _)| *fighter).collect();
        assert_eq!(rows, expected, "players before machines, each by its exact key");
        let board = scoreboard(page);
        let listed: Vec<Fighter> = board.iter().map(|line| fighter_of(&line["fighter"])).collect();
        assert_eq!(listed, expected);
        let joined = names(page);
        for (line, fighter) in board.iter().zip(&listed) {
            let name = line["name"].as_str().unwrap();
            assert_eq!(
                joined.get(fighter).map(String::as_str),
                Some(name),
                "one name, in the event and on the board"
            );
            if is_machine(*fighter) {
                assert_eq!(
                    (Some(name), &line["own"]),
                    (fighter.machine_name().as_deref(), &Value::Bool(false))
                );
            }
            assert!(line["hp"].as_u64().is_some_and(|hp| hp <= 100), "{line}");
        }
        let own = page.tanks().into_iter().find(|row| row[0] == page.at(OWN)).unwrap();
        assert_eq!(own[6] as u32 & 1, 1, "the own tank is found by the own key");
        assert_eq!(page.told("joined").len(), 2 + usize::from(MACHINES), "once each");
    }
}

#[test]
fn machines_drive_and_fight_and_every_event_names_a_tank_that_is_there() {
    let mut rig = Rig::with_machines(2, MACHINES, SyncLink::Present);
    let before: BTreeMap<Fighter, [f64; 3]> =
        rig.pages[0].tanks().iter().map(|row| (fighter(row), [row[1], row[2], 0.0])).collect();
    rig.run(1_000);
    let moved = rig.pages[0].tanks().into_iter().filter(|row| is_machine(fighter(row)));
    let moved = moved.filter(|row| away(before[&fighter(row)], [row[1], row[2], 0.0]) > 0.5).count();
    assert!(moved >= 3, "{moved} machines have moved");
    for _ in 0..60 {
        rig.run(1_000);
        if rig.pages[0].told("death").iter().any(|event| is_machine(fighter_of(&event["fighter"]))) {
            break;
        }
    }
    rig.run(300);
    for page in &rig.pages {
        let here = names(page);
        let mut fired = 0;
        for event in &page.events {
            for role in ["shooter", "target", "by", "fighter"] {
                let Some(key) = event[role].as_u64() else { continue };
                assert!(here.contains_key(&Fighter::from_key(key)), "{role} of {event}");
            }
            fired += u32::from(event["type"] == "fired" && is_machine(fighter_of(&event["shooter"])));
        }
        assert!(fired > 5, "{fired} shots of machines");
        let deaths = page.told("death");
        assert!(!deaths.is_empty());
        // The last word of the scoreboard is that of the events and of the rows.
        let rows = page.tanks();
        for line in scoreboard(page) {
            let known = fighter_of(&line["fighter"]);
            let died = deaths.iter().filter(|event| fighter_of(&event["fighter"]) == known).count() as u64;
            assert_eq!(line["deaths"], died, "{line}");
            let row = rows.iter().find(|row| fighter(row) == known).unwrap();
            assert_eq!(
                (row[9], row[10]),
                (line["kills"].as_f64().unwrap(), line["deaths"].as_f64().unwrap())
            );
        }
        let shot = rows.iter().find(|row| is_machine(fighter(row)) && row[8].is_finite());
        assert!(shot.is_some(), "the picture has reached a shot of a machine");
    }
}

#[test]
fn a_player_hits_a_machine_where_it_is_drawn() {
    let mut rig = Rig::with_machines(1, 1, SyncLink::Present);
    let target = |rig: &Rig| rig.pages[0].tanks().into_iter().find(|row| is_machine(fighter(row))).unwrap();
    for _ in 0..40 {
        let (row, own) = (target(&rig), rig.pages[0].pose(DRAWN));
        let (x, y) = (row[1] - own[0], row[2] - own[1]);
        let now = rig.now;
        if let Ok(reach) = rig.pages[0].play.fire(now, y.atan2(x))
            && reach < 59.0
        {
            assert!((reach - (x.hypot(y) - 1.5)).abs() < 0.01, "{reach} m to a machine at {} m", x.hypot(y));
            rig.run(300);
            let machine = fighter(&row);
            let hits = rig.pages[0].told("hit");
            assert!(hits.iter().any(|event| fighter_of(&event["target"]) == machine), "{hits:?}");
            let line = scoreboard(&rig.pages[0]).pop().unwrap();
            assert_eq!((fighter_of(&line["fighter"]), line["hp"].as_f64()), (machine, Some(target(&rig)[5])));
            return;
        }
        rig.run(600);
    }
    panic!("the machine was never in reach");
}

#[test]
fn a_page_that_comes_back_after_a_crash_sees_the_same_machines() {
    let mut rig = Rig::with_machines(2, MACHINES, SyncLink::Present);
    let machines = |page: &Page| -> Vec<Fighter> {
        page.tanks().iter().map(|row| fighter(row)).filter(|fighter| is_machine(*fighter)).collect()
    };
    let (before, token) = (machines(&rig.pages[0]), rig.pages[0].play.resume_token());
    drop(rig.crash(0));
    rig.run(200);
    let back = rig.open("Player 0", token, SyncLink::Present);
    rig.run(1_000);
    let page = &rig.pages[back];
    assert_eq!(page.told("restarted").len(), 1);
    assert_eq!((page.at(STATE), page.at(TANKS)), (LOGGED_IN, 2.0 + f64::from(MACHINES)));
    assert_eq!(machines(page), before);
    let known: Vec<_> = names(page).into_keys().filter(|fighter| is_machine(*fighter)).collect();
    assert_eq!(known, before, "told after the restart, or kept through it");
    rig.cut(0);
    rig.run(1_500);
    assert_eq!(machines(&rig.pages[0]), before, "and after a cut");
}

#[test]
fn a_player_that_left_is_not_drawn_when_the_page_hears_of_it() {
    let mut rig = Rig::with_machines(2, 1, SyncLink::Present);
    let left = rig.pages[1].at(OWN);
    let now = rig.now;
    rig.pages[1].play.logout(now);
    for _ in 0..500 {
        rig.run(1);
        let page = &rig.pages[0];
        let heard = page.told("left").iter().any(|event| event["fighter"].as_f64() == Some(left));
        let drawn = page.tanks().iter().any(|row| row[0] == left);
        assert!(!(heard && drawn), "a tank without a player");
    }
    assert_eq!(rig.pages[0].told("left").len(), 1);
    assert_eq!(scoreboard(&rig.pages[0]).len(), 2, "the other player, and the machine");
}

#[test]
fn a_page_that_was_hidden_knows_machines_before_their_shots() {
    let mut rig = Rig::with_machines(1, MACHINES, SyncLink::Present);
    let hidden = rig.open("Late", None, SyncLink::Present);
    rig.pages[hidden].frames = Frames::Hidden;
    rig.run(8_000);
    rig.pages[hidden].frames = Frames::Shown;
    rig.run(40);
    let mut known = BTreeSet::new();
    let mut shots = 0;
    for event in &rig.pages[hidden].events {
        if event["type"] == "joined" {
            known.insert(fighter_of(&event["fighter"]));
        } else if event["type"] == "fired" {
            assert!(known.contains(&fighter_of(&event["shooter"])), "{event}");
            shots += 1;
        }
    }
    assert!(shots > 5, "{shots} shots");
}

#[test]
fn a_machine_that_comes_late_joins() {
    // Two players fill the room: a machine has a place when one of them leaves.
    let server = ServerConfig { max_bodies: 2, ..ServerConfig::default() };
    let mut rig = Rig::arriving_at(server, 2, 3, SyncLink::Present);
    rig.run(1_500);
    let machines = |page: &Page| names(page).into_keys().filter(|fighter| is_machine(*fighter)).count();
    assert_eq!((rig.pages[0].at(TANKS), machines(&rig.pages[0])), (2.0, 0));
    let now = rig.now;
    rig.pages[1].play.logout(now);
    rig.run(500);
    let page = &rig.pages[0];
    assert_eq!((page.at(TANKS), machines(page)), (2.0, 1), "{:?}", page.events);
    let board = scoreboard(page);
    let machine = fighter_of(&board[1]["fighter"]);
    assert_eq!((board.len(), board[1]["name"].as_str()), (2, machine.machine_name().as_deref()));
}
