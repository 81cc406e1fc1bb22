//! Clients and a server together, and a script of what goes wrong between them: loss, copies, cuts, stalls, other routes.
//!
//! Every reliable event comes once and in order, nothing is drawn from the future or backwards, what waits is bounded; and
//! when nothing has been lost for a while, everybody has the same room, to the bit.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use halftrack::client::Client;
use halftrack::server::ServerConfig;
use halftrack::session::SessionState;
use halftrack::{Body, SyncLink, Timestamp};
use halftrack_flight::FlightClient;
use halftrack_lab::{Frames, Happening, Lab, LabConfig, Rule, SeatConfig, Wake};
use halftrack_netem::LinkConfig;
use tanks::{Axis, MoveParams, TankCommand, TankInput, Tanks};

use crate::budget::within;
use crate::convoy::Convoy;
use crate::hostile_peer::is_same_room;
use crate::rig::{aim, client_config, shoot};
use crate::script::Script;

const MAX_ACTS: usize = 60;
const MAX_PLAYERS: usize = 3;
/// Of virtual time, for what the script wants.
const MAX_SPAN: Duration = Duration::from_secs(12);
/// A connection that is found out to be dead, some attempts at another, and a segment of it that was lost six times.
const QUIET: Duration = Duration::from_secs(60);

/// What a player wants.
#[derive(Clone, Copy, Debug, Default)]
struct Wish {
    input: TankInput,
    shot: Option<Aim>,
}

#[derive(Clone, Copy, Debug)]
enum Aim {
    AtSomebody,
    There(u16),
}

/// A script of trouble between clients and a server.
pub fn bad_network(bytes: &[u8]) {
    within(48 << 20, || Trouble::new(Script::new(bytes)).play());
}

struct Trouble<'a> {
    script: Script<'a>,
    lab: Lab<Convoy>,
    wishes: Vec<Rc<RefCell<Wish>>>,
}

impl<'a> Trouble<'a> {
    fn new(mut script: Script<'a>) -> Self {
        let mut server = ServerConfig { capacity: MAX_PLAYERS, ..ServerConfig::default() };
        let seed = script.u16();
        // One seed in four is of a room with every kind of body, and of snapshots that have no room for all of them.
        let world = if seed >> 14 == 2 { Convoy::new(2) } else { Convoy::plain() };
        if seed >> 14 == 2 {
            server.max_datagram_bytes = 200;
        }
        let config = LabConfig { warm_up: Duration::from_secs(1), ..LabConfig::new(server, seed.into()) };
        let lab = Lab::new(config, world).expect("a good config");
        let mut trouble = Self { script, lab, wishes: vec![] };
        trouble.join();
        trouble.join();
        trouble.lab.run(Duration::from_millis(600));
        trouble
    }

    fn play(mut self) {
        let begun = self.lab.elapsed();
        for _ in 0..MAX_ACTS {
            if self.script.is_over() || self.lab.elapsed() > begun + MAX_SPAN {
                break;
            }
            self.act();
        }
        for wish in &self.wishes {
            *wish.borrow_mut() = Wish::default();
        }
        assert_eq!(self.lab.command(Convoy::REST), Ok(()));
        // A stream that loses a third of its packets in bursts, half a second apart, can break for longer than any bound.
        self.lab.stop_loss().expect("a good link");
        let end = self.lab.elapsed() + QUIET;
        while self.is_same().is_err() && self.lab.elapsed() < end {
            self.lab.run(Duration::from_millis(500));
        }
        assert_eq!(self.is_same(), Ok(()));
        self.lab.drain();
        let measured = self.lab.measured();
        let broken = measured.invariants.list.iter().find(|violation| is_always(violation.rule));
        assert!(broken.is_none(), "{broken:?}");
    }

    fn act(&mut self) {
        let act = self.script.byte();
        let seat = usize::from(act >> 4) % self.wishes.len();
        match act & 15 {
            0..=3 => {
                let millis = 10 + 2 * u64::from(self.script.byte());
                self.lab.run(Duration::from_millis(millis));
            }
            4..=6 => {
                let levels = self.script.u16().to_le_bytes();
                let axis = |level: u8| Axis::from_level((level % 33).cast_signed() - Axis::LEVELS);
                self.wishes[seat].borrow_mut().input =
                    TankInput { turn: axis(levels[0]), throttle: axis(levels[1]), rocket: levels[0] / 33 };
            }
            7 => self.wishes[seat].borrow_mut().shot = Some(Aim::AtSomebody),
            8 => self.wishes[seat].borrow_mut().shot = Some(Aim::There(self.script.u16())),
            9 => {
                let span = self.span(10);
                self.happen(Happening::ServerStall(span));
            }
            10 => {
                let span = self.span(20);
                self.happen(Happening::ClientStall(seat, span));
            }
            11 => {
                let span = self.span(25);
                self.happen(Happening::Partition(seat, span));
            }
            12 => {
                let (delay, span) = (self.span(1), self.span(10));
                self.happen(Happening::RouteChange(seat, delay, span));
            }
            13 => self.happen(Happening::Reconnect(seat)),
            14 => self.meddle(seat),
            _ if self.wishes.len() < MAX_PLAYERS => self.join(),
            _ => {}
        }
    }

    /// From nothing to so many times a quarter of a second.
    fn span(&mut self, most: u64) -> Duration {
        Duration::from_millis(u64::from(self.script.byte()) * most)
    }

    fn happen(&mut self, happening: Happening) {
        self.lab.schedule(self.lab.elapsed(), happening);
    }

    /// The host puts a tank somewhere else, or makes it another one.
    fn meddle(&mut self, seat: usize) {
        let Some(player) = self.lab.client(seat).and_then(Client::player) else { return };
        let (x, y) = (f64::from(self.script.byte()) / 4.0 - 32.0, f64::from(self.script.byte()) / 5.0 - 25.0);
        let quick = self.script.flag();
        let command = if quick {
            // No faster than what the clients' corrections are made for.
            let params = MoveParams::new(x.abs() / 4.0, 0.3).expect("a good speed");
            TankCommand::SetParams { player, params }
        } else {
            TankCommand::Teleport { player, x, y, heading: 0.25 }
        };
        let _ = self.lab.command(&command.encode());
    }

    fn join(&mut self) {
        let name = ["Ada", "Bob", "Cid"][self.wishes.len()];
        let wish = Rc::new(RefCell::new(Wish::default()));
        let mut seat = SeatConfig::new(client_config(name, self.lab.server()), LinkConfig::default());
        seat.up = link(&mut self.script);
        seat.down = link(&mut self.script);
        let how = self.script.byte();
        seat.sync_link = if how & 7 == 7 { SyncLink::Absent } else { SyncLink::Present };
        seat.frames = if how & 8 == 8 { Frames::Irregular } else { Frames::Hz(30) };
        seat.wake = if how & 16 == 16 { Wake::Boundary } else { Wake::Frame };
        seat.clock_ppm = (i32::from(how >> 5) - 3) * 100;
        let puppet = Rc::clone(&wish);
        let bot = move |now: Timestamp, client: &mut FlightClient<Tanks>| {
            drive(now, client, &mut puppet.borrow_mut())
        };
        self.lab.join(seat, Box::new(bot)).expect("a good seat");
        self.wishes.push(wish);
        // Whoever is cut while it logs in begins anew, and the lab cannot tell which events it then has to hear.
        for _ in 0..80 {
            if self.lab.client(self.wishes.len() - 1).is_some_and(|new| new.state() == SessionState::LoggedIn)
            {
                break;
            }
            self.lab.run(Duration::from_millis(250));
        }
    }

    /// Whether everybody is in and has the same room, and whoever stands is predicted where it stands; what is wrong, if
    /// not.
    fn is_same(&self) -> Result<(), String> {
        if self.lab.untold() > 0 {
            return Err(format!("{} events have not been told", self.lab.untold()));
        }
        let server = self.lab.server();
        for client in (0..self.lab.clients()).filter_map(|seat| self.lab.client(seat)) {
            if client.state() != SessionState::LoggedIn {
                return Err(format!("it is {:?}", client.state()));
            }
            is_same_room(server, client)?;
            let own = client.player().and_then(|player| server.body_of(player));
            // Two hulls that overlap by a grid step push each other by less than half a step: within the open tick the
            // tank is off the grid, and settling puts it back where it was.
            let predicted = client.predicted().map(|predicted| {
                let mut settled = *predicted;
                settled.settle();
                settled
            });
            if predicted.as_ref() != own || own.is_none_or(|own| !own.is_alive()) {
                return Err(format!("predicted {predicted:?}, and there is {own:?}"));
            }
        }
        Ok(())
    }
}

/// What holds on every network. How soon all is as it was depends on it; and so does whether a client ever plays, and
/// whether input that was missed is known to be late or lost when a correction is named.
fn is_always(rule: Rule) -> bool {
    !matches!(rule, Rule::Recovered | Rule::TrueCause | Rule::Plays)
}

fn drive(now: Timestamp, client: &mut FlightClient<Tanks>, wish: &mut Wish) -> Option<TankInput> {
    let aim = match wish.shot.take() {
        Some(Aim::AtSomebody) => aim(client),
        Some(Aim::There(aim)) => Some(aim),
        None => None,
    };
    if let Some(aim) = aim {
        shoot(now, client, aim);
    }
    Some(wish.input)
}

/// One way of a client: from an ideal one to one that is hardly any.
fn link(script: &mut Script<'_>) -> LinkConfig {
    let how = script.byte();
    let delay = Duration::from_millis(script.byte().into());
    LinkConfig {
        delay,
        jitter: (delay / 4).min(Duration::from_millis(u64::from(how & 15) * 4)),
        keep_order: how & 0x80 == 0x80,
        loss: f64::from(script.byte() % 32) / 100.0,
        burst: 1.0 + f64::from(how >> 4 & 3),
        reorder: if how & 0x40 == 0x40 { 0.1 } else { 0.0 },
        duplicate: f64::from(script.byte() % 24) / 100.0,
        ..LinkConfig::default()
    }
}
