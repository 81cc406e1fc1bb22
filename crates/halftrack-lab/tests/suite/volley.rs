//! Every press is one shot: on the shipped networks, over troubles, and not where the rules of the two ends differ.

use std::sync::Arc;
use std::time::Duration;

use halftrack::client::ClientConfig;
use halftrack::server::{Room, ServerConfig, World};
use halftrack::wire::control::Login;
use halftrack::{
    Cadence, Driver, Game, MotionLimits, PlayerId, PlayerName, Pose2, Reach, Step, SyncLink, Timestamp,
};
use halftrack_flight::FlightClient;
use halftrack_lab::volley::{Gunner, NETWORKS, Network, Piece, Range, ShotsConfig, Trigger, Volley, fire};
use halftrack_lab::{Bot, Cut, Frames, Happening, Lab, LabConfig, Measured, Rule, SeatConfig, Wake};

#[test]
fn every_press_is_one_shot_on_every_shipped_network() {
    let networks: Vec<_> = NETWORKS.iter().map(|name| Network::shipped(name).unwrap()).collect();
    let config = ShotsConfig { networks, shots: 5_000, seed: 3, threads: 2 };
    let fired = fire(&config, |_| ()).unwrap();
    assert_eq!(fired.iter().map(|fired| &*fired.network).collect::<Vec<_>>(), NETWORKS);
    for fired in &fired {
        assert!(fired.is_good(), "{fired:?}");
        assert_eq!((fired.violated, fired.unexplained, fired.emit.unseen), (0, 0, 0), "{fired:?}");
        assert!(fired.emit.shots >= 1_000 && fired.emit.views > 7 * 900, "{fired:?}");
        assert!(fired.emit.confirmed >= fired.emit.shots, "{fired:?}");
    }
    let mobile = fired.last().unwrap();
    assert!(mobile.held_ticks > 50, "input was late and lost: {mobile:?}");
}

/// Eight seats that differ in everything, and troubles that are shorter than sixteen presses take.
fn troubled(seed: u64) -> Measured {
    let server = ServerConfig { capacity: 8, max_connections: 64, ..ServerConfig::default() };
    let mut lab = Lab::new(LabConfig::new(server, seed), Range::default()).unwrap();
    let link = Network::shipped("wifi").unwrap().link;
    for index in 0..8 {
        let name = PlayerName::new(&format!("Gunner {index}")).unwrap();
        let client = ClientConfig::new(name, Cadence::default(), Arc::new(Volley));
        let config = SeatConfig {
            frames: [Frames::Hz(60), Frames::Hz(144), Frames::Irregular, Frames::Hz(30)][index % 4],
            wake: if index % 3 == 0 { Wake::Boundary } else { Wake::Frame },
            sync_link: if index == 5 { SyncLink::Absent } else { SyncLink::Present },
            clock_ppm: [0, 300, -300][index % 3],
            ..SeatConfig::new(client, link)
        };
        lab.join(config, Box::new(Gunner::new(seed * 100 + index as u64))).unwrap();
    }
    let short = Duration::from_millis(600);
    for second in (5..40).step_by(5) {
        let at = |more: u64| Duration::from_millis(second * 1_000 + more);
        lab.schedule(at(0), Happening::ClientStall(0, short));
        lab.schedule(at(700), Happening::Partition(1, short));
        lab.schedule(at(1_300), Happening::DatagramsCut(2, Cut::Both, short));
        lab.schedule(at(1_900), Happening::Reconnect(3));
        lab.schedule(at(2_500), Happening::RouteChange(4, Duration::from_millis(90), short));
        lab.schedule(at(3_100), Happening::ServerStall(Duration::from_millis(300)));
    }
    lab.run(Duration::from_secs(42));
    lab.drain();
    assert!(lab.presses() > 2_000);
    lab.measured()
}

#[test]
fn every_press_is_one_shot_over_stalls_cuts_and_partitions() {
    for seed in 1..=2 {
        let measured = troubled(seed);
        let emit = &measured.emit;
        assert_eq!((emit.lost, emit.doubled, emit.unmatched), (0, 0, 0), "seed {seed}: {emit:?}");
        let broken: Vec<_> =
            measured.invariants.list.iter().filter(|found| found.rule != Rule::Recovered).collect();
        assert!(broken.is_empty(), "seed {seed}: {broken:#?}");
        assert!(emit.shots > 2_000, "{emit:?}");
    }
}

/// Volley with a gun that jams, or stutters, on one side only. Nobody is told.
#[derive(Clone, Copy, Debug, Default)]
struct Faulty {
    jams: bool,
}

impl Game for Faulty {
    type Input = Trigger;
    type Body = Piece;
    type Pose = Pose2;

    fn advance(&self, piece: &mut Piece, input: Trigger, step: &mut Step<'_, Self>) {
        // A cart that stands fires; what a shot meets is of no matter here.
        match piece {
            Piece::Cart { x, far, fired, .. } => {
                if *fired != input.fire && !(self.jams && input.fire % 4 == 3) {
                    let shot = Piece::Shot { x: *x, y: 0.0, drift: 0, back: *far, left: 300_000 };
                    step.emit(shot, Duration::ZERO);
                }
                *fired = input.fire;
                *x = (*x + f64::from(input.drive) * step.seconds()).clamp(-40.0, 40.0);
            }
            Piece::Shot { y, left, .. } => {
                let span = (*left).min(step.span().subsec_micros());
                *y += 20.0 * f64::from(span) * 1e-6;
                *left -= span;
                if *left == 0 {
                    step.remove(Duration::from_micros(u64::from(span)));
                }
            }
        }
    }

    fn pose(&self, piece: &Piece) -> Option<Pose2> {
        Volley.pose(piece)
    }

    fn limits(&self, piece: &Piece) -> MotionLimits {
        Volley.limits(piece)
    }

    fn fingerprint(&self) -> u64 {
        7
    }

    fn reach(&self, piece: &Piece, span: Duration) -> Option<Reach> {
        Volley.reach(piece, span)
    }
}

#[derive(Debug)]
struct FaultyRange(Arc<Faulty>);

impl World for FaultyRange {
    type Game = Faulty;

    fn rules(&self) -> &Arc<Faulty> {
        &self.0
    }

    fn join(&mut self, player: PlayerId, _: &Login, room: &mut Room<'_, Faulty>) {
        let x = f64::from(player.number()) * 5.0;
        room.spawn(Driver::Player(player), Piece::Cart { x, far: false, fired: 0, burst: 0 }).unwrap();
    }
}

/// Taps once in a third of a second.
#[derive(Debug, Default)]
struct Tapper {
    next: Timestamp,
    presses: u64,
}

impl Bot<Faulty> for Tapper {
    fn drive(&mut self, now: Timestamp, client: &mut FlightClient<Faulty>) -> Option<Trigger> {
        if now >= self.next && client.reconciler().is_some() {
            self.next = now + Duration::from_millis(333);
            self.presses += 1;
        }
        Some(Trigger { drive: (self.presses % 5) as i8 - 2, fire: (self.presses % 16) as u8 })
    }

    fn presses(&self) -> Option<u64> {
        Some(self.presses)
    }
}

fn faulty(server: Faulty, client: Faulty) -> Measured {
    let config = LabConfig::new(ServerConfig::default(), 4);
    let mut lab = Lab::new(config, FaultyRange(Arc::new(server))).unwrap();
    for name in ["Ada", "Bob"] {
        let client = ClientConfig::new(PlayerName::new(name).unwrap(), Cadence::default(), Arc::new(client));
        let seat = SeatConfig::new(client, Network::shipped("broadband").unwrap().link);
        lab.join(seat, Box::new(Tapper::default())).unwrap();
    }
    lab.run(Duration::from_secs(15));
    lab.drain();
    lab.measured()
}

#[test]
fn shots_that_only_one_side_fires_are_found() {
    let (sound, jams) = (Faulty { jams: false }, Faulty { jams: true });
    let good = faulty(sound, sound);
    assert_eq!((good.emit.lost, good.emit.doubled, good.emit.unmatched), (0, 0, 0), "{:?}", good.emit);
    assert_eq!(good.invariants.violated, 0, "{:?}", good.invariants.list);
    assert!(good.emit.shots > 60, "{:?}", good.emit);
    // The client fires what the server does not.
    let invented = faulty(jams, sound);
    assert!(invented.emit.lost > 15, "presses without a shot: {:?}", invented.emit);
    assert!(invented.emit.unmatched + invented.emit.doubled > 10, "{:?}", invented.emit);
    assert!(invented.invariants.list.iter().any(|found| found.rule == Rule::EmittedOnce));
    // The server fires what the client does not.
    let late = faulty(sound, jams);
    assert!(late.emit.frames_to_screen.max > 3.0, "{:?}", late.emit);
    assert!(late.emit.born_predicted < late.emit.shots, "{:?}", late.emit);
}
