//! What a run is summed up in. The fields are the paths of the JSON; `docs/LAB.md` defines each.

use halftrack::Cause;
use serde::Serialize;

use crate::check::Violation;
use crate::samples::Distribution;

/// What was measured in one run.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Measured {
    /// Simulated seconds, those before measuring began included.
    pub seconds: f64,
    /// Clients.
    pub players: usize,
    /// The players' own bodies.
    pub own: Own,
    /// Their input on its way.
    pub input: Input,
    /// All other bodies, as drawn.
    pub remote: Remote,
    /// Bodies that the bodies of players emit.
    pub emit: Emit,
    /// Bodies that are predicted together with the player's own.
    pub group: Group,
    /// Shots.
    pub combat: Combat,
    /// Bytes, per client.
    pub net: Net,
    /// Reliable events against the truth.
    pub events: Events,
    /// What must always hold.
    pub invariants: Invariants,
}

/// The players' own bodies.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Own {
    /// Ticks that the server simulated of them.
    pub ticks: u64,
    /// Ticks whose state was not the last prediction of it, by late or lost input and nothing else.
    pub mispredicted_ticks: u64,
    /// The same as a part of all ticks.
    pub mispredict_ratio: f64,
    /// Corrections that were too large to be eased, and not of a respawn, a teleport or a resync.
    pub snaps: u64,
    /// The same per player and minute.
    pub snaps_per_player_minute: f64,
    /// Corrections of any cause.
    pub corrections: u64,
    /// Their size, respawns and teleports left out.
    pub correction_m: Distribution,
    /// The same in degrees.
    pub correction_deg: Distribution,
    /// The size of those whose cause was a collision.
    pub contact_correction_m: Distribution,
    /// All of them together, metres for each player and minute.
    pub contact_m_per_player_minute: f64,
    /// How fast the visible pose is moved by corrections, over frames in which it is.
    pub correction_speed_mps: Distribution,
    /// From the first offset to none.
    pub offset_ms_to_converge: Distribution,
    /// Ticks predicted beyond the newest state, in each frame.
    pub pending_ticks: Distribution,
    /// Corrections by their cause.
    pub by_cause: ByCause,
}

/// Corrections by their cause.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[allow(missing_docs, reason = "each is the cause of its name")]
pub struct ByCause {
    pub late_input: u64,
    pub lost_input: u64,
    pub collision: u64,
    pub death: u64,
    pub respawn: u64,
    pub teleport: u64,
    pub params: u64,
    pub world: u64,
    pub other_input: u64,
    pub resync: u64,
    pub unexplained: u64,
}

impl ByCause {
    pub(crate) fn add(&mut self, other: &Self) {
        self.late_input += other.late_input;
        self.lost_input += other.lost_input;
        self.collision += other.collision;
        self.death += other.death;
        self.respawn += other.respawn;
        self.teleport += other.teleport;
        self.params += other.params;
        self.world += other.world;
        self.other_input += other.other_input;
        self.resync += other.resync;
        self.unexplained += other.unexplained;
    }

    /// Counts one more.
    pub(crate) fn count(&mut self, cause: Cause) {
        *match cause {
            Cause::LateInput => &mut self.late_input,
            Cause::LostInput => &mut self.lost_input,
            Cause::Collision => &mut self.collision,
            Cause::Death => &mut self.death,
            Cause::Respawn => &mut self.respawn,
            Cause::Teleport => &mut self.teleport,
            Cause::Params => &mut self.params,
            Cause::World => &mut self.world,
            Cause::OtherInput => &mut self.other_input,
            Cause::Resync => &mut self.resync,
            _ => &mut self.unexplained,
        } += 1;
    }
}

/// Input on its way.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Input {
    /// Ticks that the server took input for.
    pub ticks: u64,
    /// Ticks whose own datagram came, but too late.
    pub late_ratio: f64,
    /// Ticks whose own datagram never came.
    pub lost_ratio: f64,
    /// Ticks that were simulated without all of their input.
    pub held_ratio: f64,
    /// The prediction clock less the server's real one.
    pub lead_ms: Distribution,
    /// The same less the mean one-way delay of the link.
    pub excess_lead_ms: Distribution,
    /// How early the first closing datagram of a tick came; below zero when late.
    pub margin_ms: Distribution,
    /// From an action to the first frame that shows it.
    pub action_to_screen_ms: Distribution,
    /// From an action to its first arrival at the server.
    pub action_to_server_ms: Distribution,
}

/// All other bodies, as drawn: those of players, and those of the world.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Remote {
    /// How far the render time lies behind the server's time less the mean one-way delay of the link.
    pub delay_ms: Distribution,
    /// Off the true motion, in ticks without interference.
    pub pose_error_m: Distribution,
    /// The same in degrees.
    pub pose_error_deg: Distribution,
    /// Off the true motion, in ticks with interference.
    pub contact_error_m: Distribution,
    /// Pictures that went on by guess or stood, as a part of all.
    pub hold_ratio: f64,
    /// Times that the render time or a state went backwards.
    pub rewinds: u64,
}

/// Bodies that the bodies of players emit: shots, as far as the library knows of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Emit {
    /// Bodies that the server's simulation emitted.
    pub shots: u64,
    /// Births that a shooter's own client predicted.
    pub born_predicted: u64,
    /// Births that it heard of from the server.
    pub confirmed: u64,
    /// Births that it predicted and took back.
    pub revoked: u64,
    /// The same by their cause.
    pub revoked_by: ByCause,
    /// Bodies that it had twice: born twice, or two for one of the server, or drawn twice in a frame.
    pub doubled: u64,
    /// Bodies that it never drew, and presses that the server never played.
    pub lost: u64,
    /// Births that it took back though the server simulated all of its input as sent.
    pub unmatched: u64,
    /// Frames from a press to the first one that draws the newborn body: 1 is the first frame after the press.
    pub frames_to_screen: Distribution,
    /// Bodies in view of other clients, one for each client.
    pub views: u64,
    /// Of these, bodies that a frame left out.
    pub unseen: u64,
}

impl Emit {
    /// Counts those of another in; distributions stay.
    pub(crate) fn add(&mut self, other: &Self) {
        self.shots += other.shots;
        self.born_predicted += other.born_predicted;
        self.confirmed += other.confirmed;
        self.revoked += other.revoked;
        self.revoked_by.add(&other.revoked_by);
        self.doubled += other.doubled;
        self.lost += other.lost;
        self.unmatched += other.unmatched;
        self.views += other.views;
        self.unseen += other.unseen;
    }
}

/// Bodies that are predicted together with the player's own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Group {
    /// Members, in each frame.
    pub members: Distribution,
    /// Bodies that were drawn among the others, and then in the group.
    pub joins: u64,
    /// Bodies that were drawn in the group, and then among the others.
    pub leaves: u64,
    /// States that moved the predicted pose of a member, for whatever cause.
    pub corrections: u64,
    /// By how much.
    pub correction_m: Distribution,
    /// The same over all states of members, those included that moved nothing.
    pub correction_per_state_m: Distribution,
    /// Corrections by their cause.
    pub by_cause: ByCause,
    /// How far behind prediction time members are drawn, in each frame.
    pub draw_lag_ms: Distribution,
    /// Frames in which a body that joins or leaves moved too far, or was drawn twice, or not at all.
    pub steps: u64,
}

impl Group {
    /// Counts those of another in; distributions stay.
    pub(crate) fn add(&mut self, other: &Self) {
        self.joins += other.joins;
        self.leaves += other.leaves;
        self.corrections += other.corrections;
        self.by_cause.add(&other.by_cause);
        self.steps += other.steps;
    }
}

/// Shots.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Combat {
    /// Shots ordered whose outcome is known.
    pub shots: u64,
    /// Shots that hit somebody.
    pub hits: u64,
    /// Outcomes that are what the shooter's screen showed, as a part of shots; those of who died first are left out.
    pub agreed_ratio: f64,
    /// Shots that were refused.
    pub rejected: u64,
    /// Shots of machines that hit players.
    pub machine_hits: u64,
}

/// Bytes, per client.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Net {
    /// Payload that a client sends.
    pub up_bytes_per_s: f64,
    /// Payload that a client is sent.
    pub down_bytes_per_s: f64,
    /// Snapshot bytes for each other body that moved in the tick of the snapshot.
    pub bytes_per_moving_entity: f64,
    /// Snapshots whose bodies did not add up.
    pub check_failed: u64,
}

/// Reliable events against the truth.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Events {
    /// Events that a client was to hear, and heard.
    pub told: u64,
    /// Events that it never heard.
    pub lost: u64,
    /// Events that it heard again, or that nobody told.
    pub duplicated: u64,
}

/// What must always hold.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Invariants {
    /// Checks made.
    pub checked: u64,
    /// Checks that failed.
    pub violated: u64,
    /// The first of these.
    pub list: Vec<Violation>,
}
