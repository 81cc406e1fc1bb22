//! A plan as the text of a file: what `Plan::read` reads again.

use std::fmt::{Display, Write as _};
use std::time::Duration;

use halftrack::SyncLink;

use super::{Plan, SeatPlan};
use crate::lab::{Cut, Happening};
use crate::pace::{Frames, Wake};
use crate::tank::Bots;

impl Plan {
    /// The plan as a file. Expectations are left out: they are numbers of the plan that this one may have come from.
    ///
    /// ```
    /// use halftrack_lab::Plan;
    ///
    /// let plan = Plan::read("name = \"short\"\nseconds = 4\nplayers = 2\n[link]\ndelay_ms = 20")?;
    /// assert_eq!(Plan::read(&plan.to_text())?.to_text(), plan.to_text());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn to_text(&self) -> String {
        let usual = self.seats.first();
        let mut text = String::new();
        line(&mut text, "name", format_args!("{:?}", self.name));
        line(&mut text, "seconds", seconds(self.span));
        line(&mut text, "players", self.seats.len());
        line(&mut text, "machines", self.machines);
        line(&mut text, "crates", self.crates);
        line(&mut text, "platforms", self.platforms);
        line(&mut text, "cadence_ms", ms(self.cadence.interval()));
        line(&mut text, "first_tick", self.first_tick);
        line(&mut text, "stream_late_cost_ms", ms(self.stream_late_cost));
        let bots = match self.bots {
            Bots::Brawl => "brawl",
            Bots::Tour => "tour",
            Bots::Rockets => "rockets",
            Bots::Push => "push",
            Bots::Ride => "ride",
        };
        line(&mut text, "bots", format_args!("{bots:?}"));
        line(&mut text, "seed", self.seed);
        line(&mut text, "runs", self.runs);
        if let Some(usual) = usual {
            own_keys(usual).into_iter().for_each(|(key, value)| line(&mut text, key, value));
            text.push_str("[link]\n");
            link_keys(usual).into_iter().for_each(|(key, value)| line(&mut text, key, value));
        }
        for (index, seat) in self.seats.iter().enumerate().filter(|(_, seat)| Some(*seat) != usual) {
            text.push_str("[[client]]\n");
            line(&mut text, "index", index);
            let keys = own_keys(seat).into_iter().chain(link_keys(seat));
            let usual = usual.map(|usual| own_keys(usual).into_iter().chain(link_keys(usual)));
            let same = keys.zip(usual.into_iter().flatten()).filter(|(own, usual)| own != usual);
            same.for_each(|((key, value), _)| line(&mut text, key, value));
        }
        self.happenings.iter().for_each(|(at, happening)| event(&mut text, *at, happening));
        text
    }
}

fn line(text: &mut String, key: &str, value: impl Display) {
    // Writing into a text cannot fail.
    let _ = writeln!(text, "{key} = {value}");
}

fn ms(span: Duration) -> f64 {
    span.as_micros() as f64 / 1e3
}

/// Rounded to microseconds: as a sum of seconds and parts it would have digits that nobody wrote.
fn seconds(span: Duration) -> f64 {
    span.as_micros() as f64 / 1e6
}

fn own_keys(seat: &SeatPlan) -> [(&'static str, String); 2] {
    let hz = match seat.frames {
        Frames::Hz(hz) => hz,
        Frames::Irregular => 0,
    };
    let wake = match seat.wake {
        Wake::Frame => "\"frame\"",
        Wake::Boundary => "\"boundary\"",
    };
    [("frame_hz", hz.to_string()), ("wake", wake.to_owned())]
}

fn link_keys(seat: &SeatPlan) -> [(&'static str, String); 11] {
    let link = &seat.link;
    [
        ("delay_ms", ms(link.delay).to_string()),
        ("jitter_ms", ms(link.jitter).to_string()),
        ("keep_order", link.keep_order.to_string()),
        ("loss", link.loss.to_string()),
        ("burst", link.burst.to_string()),
        ("reorder", link.reorder.to_string()),
        ("duplicate", link.duplicate.to_string()),
        ("corrupt", link.corrupt.to_string()),
        ("rate_kbps", (link.rate_bits_per_second.unwrap_or(0) as f64 / 1e3).to_string()),
        ("sync_lane", (seat.sync_link == SyncLink::Present).to_string()),
        ("clock_ppm", seat.clock_ppm.to_string()),
    ]
}

fn event(text: &mut String, at: Duration, happening: &Happening) {
    let way = match *happening {
        Happening::DatagramsCut(_, Cut::Up, _) => Some("up"),
        Happening::DatagramsCut(_, Cut::Down, _) => Some("down"),
        _ => None,
    };
    let (kind, client, span, delay) = match *happening {
        Happening::ServerStall(span) => ("server_stall", None, Some(span), None),
        Happening::ClientStall(client, span) => ("client_stall", Some(client), Some(span), None),
        Happening::Partition(client, span) => ("partition", Some(client), Some(span), None),
        Happening::RouteChange(client, delay, span) => {
            ("route_change", Some(client), Some(span), Some(delay))
        }
        Happening::DatagramsCut(client, _, span) => ("datagrams_cut", Some(client), Some(span), None),
        Happening::Reconnect(client) => ("reconnect", Some(client), None, None),
        Happening::Leave(client, span) => ("leave", Some(client), Some(span), None),
        // What the lab lets happen by itself, in consequence of the others.
        Happening::Come(_)
        | Happening::PartitionOver(_)
        | Happening::RouteBack(_)
        | Happening::DatagramsBack(_) => return,
    };
    text.push_str("[[event]]\n");
    line(text, "at_s", seconds(at));
    line(text, "kind", format_args!("{kind:?}"));
    client.into_iter().for_each(|client| line(text, "client", client));
    span.into_iter().for_each(|span| line(text, "for_s", seconds(span)));
    delay.into_iter().for_each(|delay| line(text, "delay_ms", ms(delay)));
    way.into_iter().for_each(|way| line(text, "way", format_args!("{way:?}")));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::SHIPPED;

    #[test]
    fn what_is_written_is_read_as_the_same_plan() {
        let different = "name = \"d\"\nplayers = 3\nmachines = 5\ncrates = 3\nplatforms = 1\nfirst_tick = 65000\nframe_hz = 0\n[[client]]\nindex = 1\n\
                         wake = \"boundary\"\nsync_lane = false\nloss = 0.125\n[[event]]\nat_s = 1.5\n\
                         kind = \"leave\"\nclient = 2\nfor_s = 3\n[[event]]\nat_s = 2\nkind = \"route_change\"\n\
                         for_s = 1\ndelay_ms = 12.5\n[[event]]\nat_s = 3\nkind = \"datagrams_cut\"\nclient = 0\n\
                         for_s = 2\nway = \"down\"";
        for text in SHIPPED.map(|(_, text)| text).into_iter().chain([different]) {
            let mut plan = Plan::read(text).unwrap();
            let again = Plan::read(&plan.to_text()).unwrap();
            plan.expect.clear();
            assert_eq!(format!("{again:?}"), format!("{plan:?}"));
        }
    }
}
