//! Who is there, from where, and who is not wanted: counted by address. Knows no clock and no connection.

use core::net::{IpAddr, Ipv6Addr};
use std::collections::BTreeMap;
use std::time::Duration;

use halftrack::Timestamp;

use crate::door::bucket::Bucket;
use crate::door::{DoorStats, Limits, Refusal};

/// What an address counts as: itself, or the /64 of an IPv6 address, of which one customer has all. IPv4 that
/// comes by a socket for both is IPv4.
pub(super) fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V4(address) => IpAddr::V4(address),
        IpAddr::V6(address) => IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() & (u128::MAX << 64))),
    }
}

/// Whether a peer has shown that it receives at the address that it sends from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Proof {
    Shown,
    Missing,
}

/// What is known of an address.
#[derive(Default)]
struct Known {
    open: usize,
    http: usize,
    handshakes: Bucket,
    requests: Bucket,
}

/// See the module.
#[derive(Default)]
pub(super) struct Table {
    known: BTreeMap<IpAddr, Known>,
    /// Until when; none is until further notice.
    bans: BTreeMap<IpAddr, Option<Timestamp>>,
    pub(super) stats: DoorStats,
    swept: Timestamp,
}

impl Table {
    /// Addresses that are remembered. One that has nothing open and has not knocked for a while is forgotten,
    /// so this is reached only by more at once than a machine can shake hands with; then nobody new is heard.
    const MAX_ADDRESSES: usize = 16_384;
    /// Looking through all of them is not to be had for a handshake each.
    const SWEEP: Duration = Duration::from_millis(100);
    pub(super) const MAX_BANS: usize = 4_096;

    /// Somebody at `address` (see [`network`]) wants in.
    pub(super) fn admit(
        &mut self,
        now: Timestamp,
        limits: &Limits,
        address: IpAddr,
        proof: Proof,
    ) -> Result<(), Refusal> {
        let admitted = self.decide(now, limits, address, proof);
        match admitted {
            Ok(()) => {}
            Err(Refusal::Banned) => self.stats.banned += 1,
            Err(Refusal::Unproven) => self.stats.retries += 1,
            Err(Refusal::TooFast) => self.stats.handshake_rate += 1,
            Err(Refusal::Full) => self.stats.full += 1,
            Err(Refusal::AddressFull) => self.stats.address_full += 1,
        }
        admitted
    }

    fn decide(
        &mut self,
        now: Timestamp,
        limits: &Limits,
        address: IpAddr,
        proof: Proof,
    ) -> Result<(), Refusal> {
        if self.is_banned(now, address) {
            return Err(Refusal::Banned);
        }
        // Before it is counted: whoever sends from somebody else's address must not use up what that one is
        // allowed.
        if proof == Proof::Missing && self.stats.unfinished >= limits.retry_from {
            return Err(Refusal::Unproven);
        }
        let connections = self.stats.connections;
        let known = self.known(now, limits, address).ok_or(Refusal::TooFast)?;
        if !known.handshakes.take(now, limits.handshakes(), 1) {
            return Err(Refusal::TooFast);
        }
        if connections >= limits.max_connections {
            return Err(Refusal::Full);
        }
        if known.open >= limits.max_per_address {
            return Err(Refusal::AddressFull);
        }
        self.take_place(address);
        self.stats.unfinished += 1;
        Ok(())
    }

    fn take_place(&mut self, address: IpAddr) {
        self.known.entry(address).or_default().open += 1;
        self.stats.connections += 1;
    }

    /// A connection goes on from another address. It is checked there like a new arrival: bans, handshakes, connections.
    /// A connection that is refused keeps its old place until it is closed.
    pub(super) fn relocate(
        &mut self,
        now: Timestamp,
        limits: &Limits,
        old: IpAddr,
        new: IpAddr,
    ) -> Result<(), Refusal> {
        self.leave(old);
        let moved = self.admit(now, limits, new, Proof::Shown);
        match moved {
            Ok(()) => {
                // Its handshake is counted already.
                self.stats.unfinished -= 1;
                self.stats.moved += 1;
            }
            Err(_) => self.take_place(old),
        }
        moved
    }

    /// A connection that was admitted is gone.
    pub(super) fn leave(&mut self, address: IpAddr) {
        self.stats.connections -= 1;
        if let Some(known) = self.known.get_mut(&address) {
            known.open -= 1;
        }
    }

    /// Somebody opens a connection to the HTTP server.
    pub(super) fn admit_http(&mut self, now: Timestamp, limits: &Limits, address: IpAddr) -> bool {
        let left = self.stats.http_connections < limits.max_http;
        let known = self.known(now, limits, address).filter(|_| left);
        let Some(known) = known.filter(|known| known.http < limits.max_per_address) else {
            self.stats.http_refused += 1;
            return false;
        };
        if !known.requests.take(now, limits.requests(), 1) {
            self.stats.request_rate += 1;
            return false;
        }
        known.http += 1;
        self.stats.http_connections += 1;
        true
    }

    /// A connection of `address` to the HTTP server makes a request.
    pub(super) fn admit_request(&mut self, now: Timestamp, limits: &Limits, address: IpAddr) -> bool {
        let known = self.known.get_mut(&address);
        let admitted = known.is_some_and(|known| known.requests.take(now, limits.requests(), 1));
        self.stats.request_rate += u64::from(!admitted);
        admitted
    }

    pub(super) fn leave_http(&mut self, address: IpAddr) {
        self.stats.http_connections -= 1;
        if let Some(known) = self.known.get_mut(&address) {
            known.http -= 1;
        }
    }

    /// What is known of `address`; none when it is new and there is no room for it.
    fn known(&mut self, now: Timestamp, limits: &Limits, address: IpAddr) -> Option<&mut Known> {
        if !self.known.contains_key(&address) && self.known.len() >= Self::MAX_ADDRESSES {
            if now.saturating_since(self.swept) < Self::SWEEP {
                return None;
            }
            self.sweep(now, limits);
            if self.known.len() >= Self::MAX_ADDRESSES {
                return None;
            }
        }
        Some(self.known.entry(address).or_default())
    }

    /// Forgets those of whom there is nothing to know.
    fn sweep(&mut self, now: Timestamp, limits: &Limits) {
        self.swept = now;
        let (handshakes, requests) = (limits.handshakes(), limits.requests());
        self.known.retain(|_, known| {
            let whole = known.handshakes.is_whole(now, handshakes) && known.requests.is_whole(now, requests);
            known.open > 0 || known.http > 0 || !whole
        });
    }

    /// Gives whether there was room for it.
    pub(super) fn ban(&mut self, now: Timestamp, address: IpAddr, until: Option<Timestamp>) -> bool {
        self.forget_bans(now);
        if !self.bans.contains_key(&address) && self.bans.len() >= Self::MAX_BANS {
            return false;
        }
        self.bans.insert(address, until);
        true
    }

    pub(super) fn unban(&mut self, address: IpAddr) -> bool {
        self.bans.remove(&address).is_some()
    }

    pub(super) fn bans(&mut self, now: Timestamp) -> Vec<(IpAddr, Option<Timestamp>)> {
        self.forget_bans(now);
        self.bans.iter().map(|(address, until)| (*address, *until)).collect()
    }

    pub(super) fn is_banned(&self, now: Timestamp, address: IpAddr) -> bool {
        self.bans.get(&address).is_some_and(|until| until.is_none_or(|until| now < until))
    }

    fn forget_bans(&mut self, now: Timestamp) {
        self.bans.retain(|_, until| until.is_none_or(|until| now < until));
    }

    /// What it has counted.
    pub(super) fn counted(&mut self, now: Timestamp) -> DoorStats {
        self.forget_bans(now);
        DoorStats { addresses: self.known.len(), bans: self.bans.len(), ..self.stats }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Timestamp {
        Timestamp::from_micros(millis * 1_000)
    }

    fn of(text: &str) -> IpAddr {
        network(text.parse().unwrap())
    }

    #[test]
    fn addresses_count_as_what_one_customer_has() {
        assert_eq!(of("::ffff:192.0.2.1"), of("192.0.2.1"));
        assert_ne!(of("192.0.2.1"), of("192.0.2.2"));
        assert_eq!(of("2001:db8:1:2::1"), of("2001:db8:1:2:ffff::9"));
        assert_ne!(of("2001:db8:1:2::1"), of("2001:db8:1:3::1"));
    }

    #[test]
    fn places_are_counted_in_all_and_by_address_and_given_back() {
        let limits = Limits { max_connections: 3, max_per_address: 2, ..Limits::default() };
        let (mut table, one, other) = (Table::default(), of("192.0.2.1"), of("2001:db8::1"));
        let admit = |table: &mut Table, address| table.admit(at(0), &limits, address, Proof::Shown);
        assert_eq!((admit(&mut table, one), admit(&mut table, one)), (Ok(()), Ok(())));
        assert_eq!(admit(&mut table, one), Err(Refusal::AddressFull));
        assert_eq!(admit(&mut table, other), Ok(()));
        assert_eq!(admit(&mut table, other), Err(Refusal::Full));
        table.leave(one);
        assert_eq!(admit(&mut table, other), Ok(()));
        let counted = table.counted(at(0));
        assert_eq!((counted.connections, counted.full, counted.address_full), (3, 1, 1));
    }

    #[test]
    fn a_connection_that_moves_counts_at_its_new_address() {
        let limits = Limits { max_connections: 2, max_per_address: 1, ..Limits::default() };
        let (mut table, old, new) = (Table::default(), of("192.0.2.1"), of("192.0.2.2"));
        let admit = |table: &mut Table, address| table.admit(at(0), &limits, address, Proof::Shown);
        assert_eq!((admit(&mut table, old), admit(&mut table, new)), (Ok(()), Ok(())));
        assert_eq!(table.relocate(at(0), &limits, old, new), Err(Refusal::AddressFull));
        assert_eq!(admit(&mut table, old), Err(Refusal::Full), "it still has its old place");
        table.leave(new);
        assert_eq!(table.relocate(at(0), &limits, old, new), Ok(()));
        assert_eq!(admit(&mut table, new), Err(Refusal::AddressFull));
        assert_eq!(admit(&mut table, old), Ok(()), "its old place is free");
        assert!(table.ban(at(0), of("192.0.2.3"), None));
        assert_eq!(table.relocate(at(0), &limits, new, of("192.0.2.3")), Err(Refusal::Banned));
        let counted = table.counted(at(0));
        assert_eq!((counted.connections, counted.unfinished, counted.moved, counted.banned), (2, 3, 1, 1));
    }

    #[test]
    fn connections_and_requests_by_http_share_one_rate_per_address() {
        let limits = Limits { requests_per_second: 2, ..Limits::default() };
        let (mut table, one, other) = (Table::default(), of("192.0.2.1"), of("192.0.2.2"));
        assert!(table.admit_http(at(0), &limits, one) && table.admit_http(at(0), &limits, one));
        let answered = (0..20).filter(|_| table.admit_request(at(0), &limits, one)).count();
        assert_eq!(answered, 8, "five seconds' worth, and two connections");
        assert!(!table.admit_http(at(0), &limits, one), "a new connection gives no new requests");
        assert!(table.admit_http(at(0), &limits, other), "another address has its own");
        assert!(table.admit_request(at(500), &limits, one) && !table.admit_request(at(500), &limits, one));
        let counted = table.counted(at(500));
        assert_eq!((counted.request_rate, counted.http_refused), (12 + 1 + 1, 0));
    }

    #[test]
    fn by_default_two_hundred_come_from_one_machine_at_once() {
        let (mut table, limits, machine) = (Table::default(), Limits::default(), of("192.0.2.1"));
        for _ in 0..200 {
            assert_eq!(table.admit(at(0), &limits, machine, Proof::Shown), Ok(()));
        }
        let refused =
            (0..200).filter(|_| table.admit(at(0), &limits, machine, Proof::Shown).is_err()).count();
        assert_eq!(refused, 150, "and fifty more");
    }

    #[test]
    fn whoever_has_not_shown_an_address_does_not_use_up_what_it_is_allowed() {
        let limits = Limits { retry_from: 1, handshake_burst: 2, ..Limits::default() };
        let (mut table, victim) = (Table::default(), of("192.0.2.1"));
        assert_eq!(table.admit(at(0), &limits, victim, Proof::Missing), Ok(()));
        for _ in 0..9 {
            assert_eq!(table.admit(at(0), &limits, victim, Proof::Missing), Err(Refusal::Unproven));
        }
        assert_eq!(table.admit(at(0), &limits, victim, Proof::Shown), Ok(()));
        assert_eq!(table.admit(at(0), &limits, victim, Proof::Shown), Err(Refusal::TooFast));
        assert_eq!(table.admit(at(20), &limits, victim, Proof::Shown), Ok(()), "50 a second");
    }

    #[test]
    fn addresses_are_forgotten_and_never_more_than_there_is_room_for() {
        let limits = Limits { handshakes_per_second: 1, ..Limits::default() };
        let mut table = Table::default();
        let mut refused = 0;
        for number in 0..20_000_u32 {
            let address = IpAddr::V4(number.into());
            match table.admit(at(0), &limits, address, Proof::Shown) {
                Ok(()) => table.leave(address),
                Err(_) => refused += 1,
            }
        }
        assert_eq!((table.known.len(), refused), (16_384, 20_000 - 16_384));
        let late = of("192.0.2.1");
        assert_eq!(
            table.admit(at(1_000), &limits, late, Proof::Shown),
            Ok(()),
            "a second later all are whole"
        );
        assert_eq!(table.known.len(), 1);
    }

    #[test]
    fn bans_end_and_are_bounded() {
        let (mut table, limits, banned) = (Table::default(), Limits::default(), of("2001:db8::1"));
        assert!(table.ban(at(0), banned, Some(at(100))));
        let neighbour = of("2001:db8::2");
        assert_eq!(table.admit(at(99), &limits, neighbour, Proof::Missing), Err(Refusal::Banned));
        assert_eq!(table.admit(at(100), &limits, neighbour, Proof::Missing), Ok(()));
        assert!(table.bans(at(100)).is_empty());
        for number in 0..Table::MAX_BANS {
            assert!(table.ban(at(0), IpAddr::V4(u32::try_from(number).unwrap().into()), None));
        }
        assert!(!table.ban(at(0), banned, None), "full");
        assert!(table.unban(of("0.0.0.7")) && !table.unban(of("0.0.0.7")));
        assert!(table.ban(at(0), banned, None) && table.is_banned(at(u32::MAX.into()), banned));
    }
}
