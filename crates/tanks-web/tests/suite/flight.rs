//! The page's flight recorder: a report of a player's client replays exactly on a bad network.

use std::sync::Arc;

use crate::rig::{Frames, LOGGED_IN, Rig, STATE};
use halftrack::{Cause, SyncLink};
use halftrack_flight::{Replayer, Report, Step};
use tanks::Tanks;
use tanks_web::{LinkSettings, Mode, Part, Ways};

fn replayer<'a>(report: &'a Report<'a>) -> Replayer<'a, Tanks> {
    Replayer::new(report, Arc::new(Tanks::from_setup(report.setup()).unwrap())).unwrap()
}

/// Replays a report exactly. Gives the number of frames and of key states.
fn replay(bytes: &[u8]) -> (u64, u64) {
    let report = Report::read(bytes).unwrap();
    assert_eq!(report.damage(), None);
    let mut replayer = replayer(&report);
    let mut keys = 1;
    while let Some(step) = replayer.step() {
        assert!(!matches!(step, Step::Broken(_) | Step::Event(None)), "{step:?}");
        keys += u64::from(matches!(step, Step::Key(_)));
    }
    assert_eq!(replayer.first_difference(), None);
    assert_eq!(replayer.exact_frames(), replayer.frames());
    (replayer.frames(), keys)
}

#[test]
fn a_bug_report_replays_exactly() {
    let mut rig = Rig::with_machines(3, 4, SyncLink::Present);
    let bad = r#"{"delay_ms":40,"jitter_ms":25,"loss":0.08}"#;
    for page in &mut rig.pages {
        page.play.set_link(Ways::Both, &LinkSettings::read(bad).unwrap()).unwrap();
    }
    let drive = [(1.0, 0.0), (0.3, 1.0), (-1.0, 0.2), (0.0, 0.0), (1.0, -0.7)];
    for (round, (throttle, turn)) in drive.into_iter().cycle().take(40).enumerate() {
        let now = rig.now;
        for (index, page) in rig.pages.iter_mut().enumerate() {
            // All towards each other: they meet.
            page.play.set_input(now, throttle, turn * (index as f32 - 1.0));
            let _ = page.play.fire(now, round as f64);
        }
        match round {
            9 => rig.cut(0),
            14 => rig.pages[0].frames = Frames::Hidden,
            18 => rig.pages[0].frames = Frames::Shown,
            24 => rig.pages[0].play.set_switch(now, Part::SubTick, Mode::Off),
            28 => rig.pages[0].play.set_switch(now, Part::Reconciliation, Mode::Off),
            _ => {}
        }
        rig.run(617);
    }
    assert_eq!(rig.pages[0].at(STATE), LOGGED_IN);
    let page = &mut rig.pages[0];
    let bytes = page.play.report("it jumped");
    let (frames, keys) = replay(&bytes);
    assert!(frames > 1_000 && keys >= 2, "{frames} frames, {keys} states");
    let report = Report::read(&bytes).unwrap();
    assert_eq!(report.note(), "it jumped");
    let mut replayer = replayer(&report);
    while replayer.step().is_some() {}
    let corrected = replayer.client().reconciler().unwrap().stats();
    assert!(corrected.by_cause().map(|(_, count)| count).sum::<u64>() > 0, "there was something to see");
    assert_eq!(corrected.of(Cause::Unexplained), 0);
    replay(&rig.pages[1].play.report(""));
}
