//! The UDP socket of an endpoint. An address that has not been proven is sent at most three times as many bytes as came
//! from it (RFC 9000, section 8.1): a forged first packet must not make a flood for the owner of its address.
//!
//! The transport library stops when the limit is reached. Its last datagram may begin below the limit and end above it,
//! and so may each loss probe. Here such a datagram is dropped, which to the library is a datagram that was lost.

use core::fmt;
use core::pin::Pin;
use core::task::{Context, Poll};
use std::collections::BTreeMap;
use std::io::{self, IoSliceMut};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use halftrack::Timestamp;
use quinn::udp::{RecvMeta, Transmit};
use quinn::{AsyncUdpSocket, UdpPoller};

use crate::clock::now;

/// See the module.
pub(crate) struct Socket {
    inner: Arc<dyn AsyncUdpSocket>,
    unproven: Arc<Unproven>,
}

impl fmt::Debug for Socket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Socket").field("inner", &self.inner).finish_non_exhaustive()
    }
}

impl Socket {
    pub(crate) fn new(inner: Arc<dyn AsyncUdpSocket>) -> Self {
        Self { inner, unproven: Arc::default() }
    }

    pub(crate) fn unproven(&self) -> Arc<Unproven> {
        self.unproven.clone()
    }
}

/// Addresses that have begun a handshake and have not proven that they receive.
#[derive(Default)]
pub(crate) struct Unproven {
    allowances: Mutex<BTreeMap<SocketAddr, Allowance>>,
    /// How many there are: most of the time none, and then a packet costs no lock.
    count: AtomicUsize,
    /// When those that are over were last removed, in microseconds.
    swept: AtomicU64,
}

#[derive(Default)]
struct Allowance {
    handshakes: usize,
    /// When the last handshake was given up.
    ended: Timestamp,
    received: u64,
    sent: u64,
}

impl Unproven {
    /// Bytes to an address for each byte from it.
    const FACTOR: u64 = 3;
    /// The shortest datagram that begins a handshake. What the first one had is not known here.
    const FIRST: u64 = 1_200;
    /// Addresses at most. Above this number a newcomer has to prove its address first.
    const MAX: usize = 4_096;
    /// A handshake that was given up still sends its close, and answers late packets, for at most so long.
    const DRAIN: Duration = Duration::from_secs(10);

    /// How often those that are over are removed.
    const SWEEP: Duration = Duration::from_secs(1);

    fn allowances(&self) -> MutexGuard<'_, BTreeMap<SocketAddr, Allowance>> {
        self.allowances.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A handshake begins at `address`. `None` when there is no room for it.
    pub(crate) fn begin(self: &Arc<Self>, now: Timestamp, address: SocketAddr) -> Option<Handshake> {
        let mut allowances = self.allowances();
        let swept = Timestamp::from_micros(self.swept.load(Ordering::Relaxed));
        if now.saturating_since(swept) >= Self::SWEEP {
            self.swept.store(now.as_micros(), Ordering::Relaxed);
            allowances.retain(|_, each| each.handshakes > 0 || now < each.ended + Self::DRAIN);
        }
        if allowances.len() >= Self::MAX && !allowances.contains_key(&address) {
            return None;
        }
        // The first datagram of an address that is known has been counted when it came.
        let fresh = || Allowance { received: Self::FIRST, ..Allowance::default() };
        allowances.entry(address).or_insert_with(fresh).handshakes += 1;
        self.count.store(allowances.len(), Ordering::Relaxed);
        Some(Handshake { unproven: self.clone(), address })
    }

    fn received(&self, address: SocketAddr, bytes: usize) {
        if self.count.load(Ordering::Relaxed) > 0
            && let Some(allowance) = self.allowances().get_mut(&address)
        {
            allowance.received += bytes as u64;
        }
    }

    /// Whether a datagram may be sent; if so, it counts.
    fn may_send(&self, address: SocketAddr, datagram: &[u8]) -> bool {
        let mut allowances = self.allowances();
        let Some(allowance) = allowances.get_mut(&address) else { return true };
        let sent = allowance.sent + datagram.len() as u64;
        // A packet with a short header is of a session that is established, or one of a few bytes in the server's first
        // flight. A forged handshake must not stop the session of the player whose address it uses.
        let short = datagram.first().is_some_and(|first| first & 0x80 == 0);
        let fits = short || sent <= Self::FACTOR * allowance.received;
        if fits {
            allowance.sent = sent;
        }
        fits
    }
}

/// A handshake whose peer has not proven its address.
pub(crate) struct Handshake {
    unproven: Arc<Unproven>,
    address: SocketAddr,
}

impl Handshake {
    /// The handshake is done, which proves the address.
    pub(crate) fn done(self) {
        let mut allowances = self.unproven.allowances();
        if allowances.get(&self.address).is_some_and(|allowance| allowance.handshakes == 1) {
            allowances.remove(&self.address);
        }
        self.unproven.count.store(allowances.len(), Ordering::Relaxed);
    }
}

impl Drop for Handshake {
    fn drop(&mut self) {
        if let Some(allowance) = self.unproven.allowances().get_mut(&self.address) {
            allowance.handshakes = allowance.handshakes.saturating_sub(1);
            allowance.ended = now();
        }
    }
}

impl AsyncUdpSocket for Socket {
    fn create_io_poller(self: Arc<Self>) -> Pin<Box<dyn UdpPoller>> {
        self.inner.clone().create_io_poller()
    }

    fn try_send(&self, transmit: &Transmit<'_>) -> io::Result<()> {
        let unproven = &self.unproven;
        if unproven.count.load(Ordering::Relaxed) == 0
            || !unproven.allowances().contains_key(&transmit.destination)
        {
            return self.inner.try_send(transmit);
        }
        let size = transmit.segment_size.unwrap_or(transmit.contents.len()).max(1);
        for datagram in transmit.contents.chunks(size) {
            if unproven.may_send(transmit.destination, datagram) {
                let Transmit { destination, ecn, src_ip, .. } = *transmit;
                let one = Transmit { destination, ecn, contents: datagram, segment_size: None, src_ip };
                self.inner.try_send(&one)?;
            }
        }
        Ok(())
    }

    fn poll_recv(
        &self,
        context: &mut Context<'_>,
        buffers: &mut [IoSliceMut<'_>],
        meta: &mut [RecvMeta],
    ) -> Poll<io::Result<usize>> {
        let received = self.inner.poll_recv(context, buffers, meta);
        if let Poll::Ready(Ok(count)) = received {
            for each in meta.iter().take(count) {
                self.unproven.received(each.addr, each.len);
            }
        }
        received
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.inner.local_addr()
    }

    fn max_transmit_segments(&self) -> usize {
        self.inner.max_transmit_segments()
    }

    fn max_receive_segments(&self) -> usize {
        self.inner.max_receive_segments()
    }

    fn may_fragment(&self) -> bool {
        self.inner.may_fragment()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(number: u16) -> SocketAddr {
        SocketAddr::from(([192, 0, 2, 1], number))
    }

    #[test]
    fn an_unproven_address_is_sent_three_times_as_much_and_a_proven_one_anything() {
        let unproven = Arc::<Unproven>::default();
        let (long, short) = ([0xc0; 1_200], [0x40; 100]);
        let handshake = unproven.begin(Timestamp::ZERO, address(1)).unwrap();
        let sent = || (0..9).filter(|_| unproven.may_send(address(1), &long)).count();
        assert_eq!(sent(), 3);
        unproven.received(address(1), 399);
        assert_eq!(sent(), 0, "a byte is missing");
        unproven.received(address(1), 1);
        assert_eq!(sent(), 1);
        assert!(unproven.may_send(address(1), &short), "a session goes on");
        assert!(unproven.may_send(address(2), &long));
        handshake.done();
        assert_eq!(sent(), 9);
        assert!(unproven.allowances().is_empty());
    }

    #[test]
    fn a_handshake_that_was_given_up_is_held_to_its_allowance_for_a_while() {
        let unproven = Arc::<Unproven>::default();
        let later = now() + Unproven::DRAIN + Duration::from_secs(60);
        for number in 0..4_096 {
            drop(unproven.begin(now(), address(number)).unwrap());
        }
        assert!((0..4).all(|number| unproven.may_send(address(9), &[0xc0; 1_200]) == (number < 3)));
        assert!(unproven.begin(now(), address(5_000)).is_none(), "full");
        let known = unproven.begin(now(), address(9)).unwrap();
        assert!(!unproven.may_send(address(9), &[0xc0; 1_200]), "the same address again");
        assert!(unproven.begin(later, address(5_000)).is_some());
        assert_eq!(unproven.allowances().len(), 2);
        drop(known);
    }
}
