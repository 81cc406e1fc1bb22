//! What a frame shows: where each tank is drawn, and the numbers around it.

use core::time::Duration;

use halftrack::{Tick, Timestamp};
use tanks::{Fighter, Rocket, TankPose, TankWorldConfig};

use super::Play;
use crate::bodies::{self, Shown};
use crate::record::{Sample, millis};
use crate::switches::{Mode, Part, told};
use crate::view::{Around, Drawn, flag, sampling_flag};

impl Play {
    /// Where the own tank is drawn, by what is turned on.
    pub(super) fn own_pose(&self) -> Option<TankPose> {
        let interpolated = if self.switches.is_off(Part::Interpolation) { Mode::Off } else { Mode::On };
        let raw = || self.client.predicted().map(|tank| tank.pose());
        if self.switches.is_off(Part::Prediction) {
            return told(&self.client, interpolated);
        }
        if self.switches.is_off(Part::Reconciliation) {
            return self.drift.map(|drift| drift.pose()).or_else(raw);
        }
        if self.switches.is_off(Part::Smoothing) {
            return raw();
        }
        self.client.reconciler().and_then(|reconciler| reconciler.visible()).copied().or_else(raw)
    }

    pub(super) fn draw(&mut self, now: Timestamp) {
        let around = self.around(now);
        let raw = self.switches.is_off(Part::Interpolation);
        let (client, vitals, shots) = (&self.client, &self.vitals, &self.shots);
        let age = |tick: Tick| {
            let since =
                client.server_time(now).map(|time| time.saturating_since(client.cadence().end_of(tick)));
            since.map_or(f64::NAN, |since| since.as_secs_f64() * 1e3)
        };
        let row = |fighter: Fighter, pose, flags, told: &tanks::Tank, tick, carrier| {
            let vital = vitals.of(fighter);
            let alive = vital.map_or(told.is_alive(), |vital| vital.is_alive());
            let shot = shots.iter().find(|(shooter, _, at)| *shooter == fighter && *at <= now);
            Drawn {
                fighter,
                pose,
                flags: flags | if alive { flag::ALIVE } else { 0 },
                hp: f64::from(vital.and_then(|vital| vital.hp).unwrap_or(told.hp)),
                kills: vital.map_or(0, |vital| vital.kills),
                deaths: vital.map_or(0, |vital| vital.deaths),
                shot: shot.map(|(_, aim, at)| (*aim, now.saturating_since(*at))),
                told: told.pose(),
                told_age_ms: age(tick),
                carrier,
            }
        };
        // A player that has left may still be in the newest snapshot.
        let here = |fighter: Fighter| fighter.player().is_none_or(|player| client.name(player).is_some());
        let others = client.remotes().iter().filter_map(|other| {
            let fighter = Fighter::of(other.id, other.driver);
            let pose = if raw { other.state.pose() } else { other.visible };
            let told = other.state.tank()?;
            let flags = sampling_flag(other.sampling);
            let row = || row(fighter, pose, flags, told, other.state_tick, other.carrier);
            here(fighter).then(row)
        });
        let authority = client.own().next().and_then(|(own, ..)| client.authoritative(own));
        let carrier = client.own().next().and_then(|(.., member)| member?.carrier());
        let own = client.player().zip(around.drawn).zip(authority);
        let own = own.and_then(|((player, pose), (tick, told))| {
            Some(row(player.into(), pose, flag::OWN, told.tank()?, tick, carrier))
        });
        // In order of their fighters, as the view wants it.
        let mut rows: Vec<Drawn> = others.chain(own).collect();
        rows.sort_unstable_by_key(|row| row.fighter);
        let mode = |part| if self.switches.is_off(part) { Mode::Off } else { Mode::On };
        let (prediction, interpolation) = (mode(Part::Prediction), mode(Part::Interpolation));
        let others = bodies::drawn(client, Shown { prediction, interpolation });
        self.view.write(now, client, &around, rows.into_iter(), &others, self.path);
    }

    fn around(&self, now: Timestamp) -> Around {
        let time = self.client.reconciler().map(|reconciler| reconciler.predictor().time());
        let last = self.record.last();
        let respawn = TankWorldConfig::default().respawn_after;
        Around {
            drawn: self.own_pose(),
            gun_left: time.map_or(Duration::ZERO, |time| self.gun.left(time)),
            gun_cooldown: self.gun.cooldown(),
            respawn_in_ms: self
                .died
                .map_or(-1.0, |died| respawn.saturating_sub(now.saturating_since(died)).as_secs_f64() * 1e3),
            margin_ms: self.margin_ms(),
            jitter_ms: self.gauge.jitter_micros / 1e3,
            corrections: self.record.count(),
            last_correction_m: last.map_or(0.0, |last| last.distance()),
            last_correction_age_ms: last
                .map_or(f64::NAN, |last| now.saturating_since(last.at()).as_secs_f64() * 1e3),
            input: [self.wish.throttle.value(), self.wish.turn.value()],
            bytes_up: self.gauge.traffic.bytes_up(),
            bytes_down: self.gauge.traffic.bytes_down(),
            events: self.mailbox.len(),
            reload_left: Duration::from_micros(
                self.client.predicted().and_then(|body| body.tank()).map_or(0, |tank| tank.reload).into(),
            ),
            reload: Duration::from_micros(Rocket::RELOAD_MICROS.into()),
        }
    }

    fn margin_ms(&self) -> f64 {
        self.client.margin().map_or(f64::NAN, |margin| margin.micros as f64 / 1e3)
    }

    pub(super) fn sample(&self, now: Timestamp) -> Sample {
        let client = &self.client;
        let span = |time: Option<Duration>| time.map_or(f64::NAN, |time| time.as_secs_f64() * 1e3);
        let remote_delay = client.server_time(now).and_then(|time| client.remotes().delay(time));
        let reconciler = client.reconciler();
        Sample {
            at_ms: millis(now),
            rtt_ms: span(client.mean_round_trip()),
            jitter_ms: self.gauge.jitter_micros / 1e3,
            lead_ms: span(client.lead()),
            margin_ms: self.margin_ms(),
            remote_delay_ms: span(remote_delay),
            offset_m: reconciler
                .and_then(|reconciler| reconciler.presenter())
                .map_or(0.0, |presenter| presenter.offset().distance()),
            pending_ticks: reconciler.map_or(0, |reconciler| {
                u32::try_from(reconciler.predictor().pending().count()).unwrap_or(u32::MAX)
            }),
            corrections: self.record.count(),
            made_up_ticks: client.stats().held,
            snapshots: client.stats().snapshots,
            bytes_up: self.gauge.traffic.bytes_up(),
            bytes_down: self.gauge.traffic.bytes_down(),
            players: u32::try_from(client.players().count()).unwrap_or(u32::MAX),
        }
    }
}
