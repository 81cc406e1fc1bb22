//! The client's side of a dead sync link. It notices when snapshots stop arriving by datagram and reports that; and it
//! falls back to the reliable link when the server reports the same of input.

use super::Client;
use crate::game::Game;
use crate::lane::{Lane, Link, MessageKind, SyncLink};
use crate::session::SessionState;
use crate::sync_watch::{PATIENCE, SyncWatch};
use crate::time::Timestamp;
use crate::wire::control::{FromClient, SyncHeard};

impl<G: Game> Client<G> {
    /// The link that messages of this kind take at the moment. The sync lane falls back to the reliable link while the
    /// server does not receive datagrams.
    pub fn link(&self, kind: MessageKind) -> Link {
        self.router.link(kind)
    }

    /// Whether snapshots arrive by datagram. False without a sync link, and while it is dead.
    pub fn receives_datagrams(&self) -> bool {
        self.watch.is_some_and(|watch| !watch.is_dead())
    }

    /// The player was let in: snapshots arrive from here on.
    pub(super) fn watch_sync(&mut self, now: Timestamp) {
        let sync = self.router.sync_link() == SyncLink::Present
            && self.router.lane(MessageKind::PlayerState) == Lane::HighFrequencySync;
        self.watch = sync.then(|| SyncWatch::new(now, self.cadence.interval()));
        self.timing.echoed = now;
    }

    /// A datagram arrived.
    pub(super) fn hear_datagram(&mut self, now: Timestamp) {
        if self.watch.as_mut().is_some_and(|watch| watch.datagram(now)) {
            self.say_sync_heard(true);
        }
    }

    /// The server answered a heartbeat that was sent at `sent`. Only an answer to a heartbeat of the silence shows that
    /// the server was alive in it: an older one may have been on its way for long.
    pub(super) fn hear_sign_of_life(&mut self, now: Timestamp, sent: Timestamp) {
        let suspects = |watch: &&mut SyncWatch| watch.suspects_from() <= Some(sent + PATIENCE / 4);
        if let Some(watch) = self.watch.as_mut().filter(suspects) {
            watch.peer_is_alive(now);
        }
    }

    /// Time has passed: asks the server for a sign of life when datagrams of either direction seem to be lost. That of the
    /// server is an answer; to the server, the question is one of this client.
    pub(super) fn check_sync(&mut self, now: Timestamp) {
        // spec: LANE-11
        if self.session.state() != SessionState::LoggedIn {
            return;
        }
        for from in self.suspicions().into_iter().flatten().filter(|from| now >= *from) {
            // One heartbeat for each silence is enough: the link is reliable.
            self.session.hasten_heartbeat(now, from - PATIENCE / 4);
        }
        if self.watch.as_mut().is_some_and(|watch| watch.falls_silent(now)) {
            self.stats.sync_down_dead += 1;
            self.say_sync_heard(false);
        }
    }

    /// From when on datagrams down, and up, seem to be lost.
    fn suspicions(&self) -> [Option<Timestamp>; 2] {
        let by_datagram = self.router.link(MessageKind::MoveInput) == Link::Sync && self.own.newest.is_some();
        let down = self.watch.and_then(|watch| watch.suspects_from());
        [down, by_datagram.then(|| self.timing.echoed + PATIENCE)]
    }

    /// When [`Self::check_sync`] has something to do.
    pub(super) fn sync_due(&self) -> Option<Timestamp> {
        let logged_in = self.session.state() == SessionState::LoggedIn;
        let [down, up] = self.suspicions();
        // One that has passed has been acted on: the session repeats its question by itself.
        let verdict = self.watch.and_then(|watch| watch.deadline());
        let due = [down, up, verdict].into_iter().flatten().filter(|due| logged_in && *due > self.now);
        due.min()
    }

    fn say_sync_heard(&mut self, arriving: bool) {
        let fits = FromClient::SyncHeard(SyncHeard { arriving }).append_to(&mut self.out);
        debug_assert!(fits, "a message of ours fits into a frame");
    }

    /// The server says whether this client's datagrams arrive.
    pub(super) fn take_sync_heard(&mut self, now: Timestamp, heard: SyncHeard) {
        self.stats.sync_up_dead += u64::from(self.router.is_sync_heard() && !heard.arriving);
        self.router = self.router.with_sync_heard(heard.arriving);
        self.timing.echoed = now;
        self.sender.end_probe();
    }
}
