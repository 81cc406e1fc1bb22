//! The state of a client as serde sees it: all but its config, its rules, its secrets, and memory that is only used again.
//!
//! Bytes that wait for the stream are saved as their number: they may hold secrets, and only their number matters.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::de::{Deserializer, Error};
use serde::ser::Serializer;
use serde::{Deserialize, Serialize};

use super::carry::Rider;
use super::fates::Fates;
use super::group::Joined;
use super::lives::Tracked;
use super::others::{FullState, Others};
use super::own::{Own, Reported};
use super::sender::InputSender;
use super::timing::Timing;
use super::{Client, ClientConfig, ClientStats};
use crate::game::Game;
use crate::id::{BodyId, PlayerId, PlayerName};
use crate::interpolate::SavedRemotes;
use crate::lane::LaneRouter;
use crate::model::Body;
use crate::predict::Authority;
use crate::reconcile::{Reconciler, SavedReconciler};
use crate::saved::{Unrestorable, ensure};
use crate::session::{SavedSession, SessionState};
use crate::snapshot::{MAX_OWNED, SavedCrowd};
use crate::stats::CorrectionStats;
use crate::sync_watch::SyncWatch;
use crate::tick::{Epoch, Tick};
use crate::time::Timestamp;
use crate::wire::FrameReader;
use crate::wire::control::Welcome;

/// The session and its stream.
type SavedLinks = (
    (Timestamp, SavedSession, SessionState, LaneRouter, FrameReader, usize, BTreeMap<PlayerId, PlayerName>),
    (Option<SyncWatch>, ClientStats),
);
/// The bodies that the player owns.
type SavedOwn<G> = (
    (Option<(Epoch, Tick)>, Vec<BodyId>, Option<Authority<G>>, Option<SavedReconciler<G>>),
    (Vec<Joined>, Vec<Tracked<G>>, Vec<Rider>, Fates),
    (<G as Game>::Input, Option<Tick>, Option<Timestamp>),
    (CorrectionStats, CorrectionStats, Reported),
);
type SavedOthers<G> = (SavedCrowd<G>, SavedRemotes<G>, Timestamp, bool, Option<FullState>);
type Saved<G> = (SavedLinks, Timing, InputSender<<G as Game>::Input>, SavedOthers<G>, SavedOwn<G>);

/// The whole state, for a flight recorder: see [`Client::restore`].
impl<G: Game> Serialize for Client<G> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        // Named one by one: a new field cannot be forgotten.
        let Self {
            config: _,
            cadence: _,
            now,
            session,
            shown_state,
            router,
            reader,
            out,
            events: _,
            names,
            timing,
            sender,
            own,
            others,
            lives,
            carriers,
            left_out: _,
            watch,
            stats,
        } = self;
        let Own {
            newest,
            ids,
            state,
            reconciler,
            group,
            fates,
            wanted,
            open,
            resynced,
            past,
            past_group,
            reported,
            section: _,
        } = own;
        let Others { crowd, remotes, next_full_request, needs_full, full } = others;
        (
            ((now, session.saved(), shown_state, router, reader, out.len(), names), (watch, stats)),
            timing,
            sender,
            (crowd.saved(), remotes.saved(), next_full_request, needs_full, full),
            (
                (newest, ids, state, reconciler.as_ref().map(Reconciler::saved)),
                (group.saved(), lives.saved(), carriers.saved(), fates),
                (wanted, open, resynced),
                (past, past_group, reported),
            ),
        )
            .serialize(serializer)
    }
}

impl<G: Game> Client<G> {
    /// The config that it was built from.
    pub fn config(&self) -> &ClientConfig<G> {
        &self.config
    }

    /// Whether its state can be saved: the host has taken all events, and no login is half way.
    pub fn is_at_rest(&self) -> bool {
        let state = self.session.state();
        let no_login = state == SessionState::LoggedIn || self.reader.unfinished() == 0;
        self.events.is_empty() && state != SessionState::LoginPending && no_login
    }

    /// Reads a saved state into a client that was built from the same config and rules, and checks it. Tokens are not
    /// saved, so the restored client cannot reconnect: it is there to be looked at.
    ///
    /// # Errors
    /// When the bytes end too early, or no client was ever in that state. Do not use this client any more then.
    pub fn restore<'de, D: Deserializer<'de>>(&mut self, saved: D) -> Result<(), D::Error> {
        let saved = Saved::<G>::deserialize(saved)?;
        self.take_saved(saved).map_err(D::Error::custom)
    }

    fn take_saved(&mut self, saved: Saved<G>) -> Result<(), Unrestorable> {
        let (links, timing, sender, others, own) = saved;
        self.take_links(links)?;
        ensure(timing.is_sound(self.config.lead), "clock")?;
        ensure(sender.is_sound(), "input")?;
        (self.timing, self.sender) = (timing, sender);
        let (crowd, remotes, next_full_request, needs_full, full) = others;
        let bounded = |full: &FullState| full.length.max(full.bytes.len()) <= Welcome::MAX_BODIES_BYTES;
        ensure(full.as_ref().is_none_or(bounded), "full state")?;
        self.others.full = full;
        self.others.crowd.restore(crowd)?;
        self.others.remotes.restore(remotes)?;
        (self.others.next_full_request, self.others.needs_full) = (next_full_request, needs_full);
        self.take_own(own)
    }

    fn take_links(&mut self, (links, (watch, stats)): SavedLinks) -> Result<(), Unrestorable> {
        let (now, session, shown_state, router, reader, waiting, names) = links;
        self.session.restore(session)?;
        (self.now, self.shown_state, self.router) = (now, shown_state, router);
        (self.reader, self.names, self.watch, self.stats) = (reader, names, watch, stats);
        ensure(self.router.policy() == self.config.policy, "delivery policy")?;
        ensure(self.reader.is_sound() && waiting <= 2 * Self::MAX_OUT, "stream")?;
        self.out.clear();
        self.out.resize(waiting, 0);
        self.events.clear();
        Ok(())
    }

    fn take_own(&mut self, saved: SavedOwn<G>) -> Result<(), Unrestorable> {
        const INVALID: Unrestorable = Unrestorable { part: "prediction" };
        let ((newest, ids, state, saved), (joined, tracked, riders, fates), inputs, counts) = saved;
        ensure(fates.is_sound() && ids.len() <= MAX_OWNED, "own bodies")?;
        let mut own = Own { newest, fates, ..Own::new() };
        ensure(state.is_some() != ids.is_empty(), "own bodies")?;
        if let Some(state) = &state {
            let at = Some((state.epoch, state.tick)) == newest && state.tick <= Tick::MAX_STATE;
            let known = ids.first() == Some(&state.own.id) && ids.iter().all(|id| state.get(*id).is_some());
            let sound = state.is_in_order() && state.actors().all(|actor| actor.body.check().is_ok());
            ensure(at && known && sound, "own bodies")?;
        }
        own.reconciler = saved
            .map(|saved| {
                let state = state.as_ref().ok_or(INVALID)?;
                let time = self.cadence.end_of(state.tick);
                let ClientConfig { rules, predict, correction, .. } = &self.config;
                let begun = Reconciler::new(Arc::clone(rules), *predict, *correction, self.now, time, state);
                let mut reconciler = begun.map_err(|_| INVALID)?;
                reconciler.restore(saved)?;
                let baseline = reconciler.predictor().baseline();
                ensure((baseline.epoch, baseline.tick) == (state.epoch, state.tick), "baseline")?;
                Ok(reconciler)
            })
            .transpose()?;
        (own.ids, own.state) = (ids, state);
        (own.wanted, own.open, own.resynced) = inputs;
        (own.past, own.past_group, own.reported) = counts;
        ensure(own.group.restore(joined), "group")?;
        ensure(self.lives.restore(tracked), "emitted bodies")?;
        ensure(self.carriers.restore(riders), "carried bodies")?;
        self.own = own;
        Ok(())
    }
}
