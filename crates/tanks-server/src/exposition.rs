//! The text of `/metrics`: made at most once a second, and shared by its readers.
//!
//! The text is kept in pieces. A reader holds no more than the piece that is being written to its socket, and asks for the
//! next one by number. A text that is not kept any more ends its readers. So a reader that does not read keeps a piece
//! alive, and not a whole text: memory is bounded by the texts that are kept, whoever reads and however slowly.

use core::pin::Pin;
use core::task::{Context, Poll};
use std::collections::{BTreeMap, VecDeque};
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, PoisonError, Weak};
use std::time::{Duration, Instant};

use axum::body::{Bytes, HttpBody};
use hyper::body::{Frame, SizeHint};
use tokio::sync::Mutex;

/// Who reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reader {
    /// Showed a secret: it is always served, and its text is fresh.
    Trusted,
    /// Anybody else, at this address.
    Stranger(IpAddr),
}

struct Text {
    made: Instant,
    pieces: Vec<Bytes>,
    length: usize,
    /// Readings by strangers, by address.
    strangers: std::sync::Mutex<BTreeMap<IpAddr, usize>>,
}

/// See the module.
#[derive(Default)]
pub(crate) struct Exposition {
    /// The newest last.
    kept: Mutex<VecDeque<Arc<Text>>>,
}

impl Exposition {
    /// A stranger's text is this old at most.
    const AGE: Duration = Duration::from_secs(1);
    /// A trusted reader's is. Not zero: a script that asks in a loop must not keep a core.
    const FRESH: Duration = Duration::from_millis(100);
    /// Texts that are kept: a reader has at least three seconds for one.
    const KEPT: usize = 4;
    /// Small beside what a system buffers for a socket.
    const PIECE: usize = 16 * 1_024;
    /// Readings by strangers per text, that is per second. Prometheus asks once in several seconds.
    const MAX_STRANGERS: usize = 64;
    /// Of these, the readings by one address (IPv6: one /64): one address alone keeps no other reader out.
    const MAX_PER_ADDRESS: usize = 32;

    /// The text for another reader, written by `make` if there is none that is new enough. None when it has as many readers
    /// as it may have.
    pub(crate) async fn read(
        self: &Arc<Self>,
        reader: Reader,
        now: Instant,
        make: impl FnOnce() -> String + Send + 'static,
    ) -> Option<Reading> {
        let text = match self.newest(reader, now).await {
            Some(text) => text,
            None => {
                let this = Arc::clone(self);
                // A task of its own: a reader that leaves must not undo the work, or each of them would begin it anew.
                tokio::spawn(async move { this.renew(reader, now, make).await }).await.ok()??
            }
        };
        text.admits(reader).then(|| Reading { text: Arc::downgrade(&text), next: 0, left: text.length })
    }

    async fn newest(&self, reader: Reader, now: Instant) -> Option<Arc<Text>> {
        self.kept.lock().await.back().filter(|text| text.serves(reader, now)).cloned()
    }

    async fn renew(
        &self,
        reader: Reader,
        now: Instant,
        make: impl FnOnce() -> String + Send + 'static,
    ) -> Option<Arc<Text>> {
        let mut kept = self.kept.lock().await;
        // Another reader may have had it written in the meantime.
        if let Some(text) = kept.back().filter(|text| text.serves(reader, now)) {
            return Some(Arc::clone(text));
        }
        // Of hundreds of rooms it takes milliseconds, in which the runtime's threads have players to serve.
        let text = tokio::task::spawn_blocking(move || Text::new(now, &make())).await.ok()?;
        let text = Arc::new(text);
        kept.push_back(Arc::clone(&text));
        if kept.len() > Self::KEPT {
            kept.pop_front();
        }
        Some(text)
    }
}

impl Text {
    fn new(made: Instant, text: &str) -> Self {
        // Each piece is an allocation of its own: a slice would keep the whole text alive.
        let pieces = text.as_bytes().chunks(Exposition::PIECE).map(Bytes::copy_from_slice).collect();
        Self { made, pieces, length: text.len(), strangers: std::sync::Mutex::default() }
    }

    /// Whether one more reader is given this text; it is counted then.
    fn admits(&self, reader: Reader) -> bool {
        let Reader::Stranger(address) = reader else { return true };
        let mut strangers = self.strangers.lock().unwrap_or_else(PoisonError::into_inner);
        let full = strangers.values().sum::<usize>() >= Exposition::MAX_STRANGERS;
        let network = network(address);
        let known = strangers.get(&network).copied().unwrap_or(0);
        let admitted = !full && known < Exposition::MAX_PER_ADDRESS;
        if admitted {
            strangers.insert(network, known + 1);
        }
        admitted
    }

    fn serves(&self, reader: Reader, now: Instant) -> bool {
        let age = match reader {
            Reader::Trusted => Exposition::FRESH,
            Reader::Stranger(_) => Exposition::AGE,
        };
        now.saturating_duration_since(self.made) < age
    }
}

/// What one customer has: an IPv4 address, or the /64 of an IPv6 address.
fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() >> 64 << 64).into(),
        address => address,
    }
}

/// A text on its way to one reader.
pub(crate) struct Reading {
    text: Weak<Text>,
    /// The number of the next piece.
    next: usize,
    left: usize,
}

/// The reader took longer than its text is kept.
#[derive(Debug, thiserror::Error)]
#[error("the text was read too slowly")]
pub(crate) struct TooSlow;

impl HttpBody for Reading {
    type Data = Bytes;
    type Error = TooSlow;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, TooSlow>>> {
        if self.left == 0 {
            return Poll::Ready(None);
        }
        let piece = self.text.upgrade().and_then(|text| text.pieces.get(self.next).cloned());
        let Some(piece) = piece else {
            self.left = 0;
            return Poll::Ready(Some(Err(TooSlow)));
        };
        self.next += 1;
        self.left = self.left.saturating_sub(piece.len());
        Poll::Ready(Some(Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.left == 0
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http_body_util::BodyExt as _;
    use std::net::Ipv4Addr;
    use std::sync::atomic::{AtomicUsize, Ordering};

    /// A stranger at one of many addresses.
    fn stranger(number: u8) -> Reader {
        Reader::Stranger(Ipv4Addr::new(192, 0, 2, number).into())
    }

    /// A text of two and a half pieces.
    fn text(letter: char) -> String {
        letter.to_string().repeat(Exposition::PIECE * 5 / 2)
    }

    async fn all(reading: Reading) -> Result<String, TooSlow> {
        reading.collect().await.map(|read| String::from_utf8(read.to_bytes().into()).unwrap())
    }

    #[tokio::test]
    async fn readers_share_one_text_and_copy_nothing() {
        let (shared, now) = (Arc::new(Exposition::default()), Instant::now());
        let mut one = shared.read(stranger(0), now, || text('a')).await.unwrap();
        let mut other = shared.read(stranger(0), now, || unreachable!("it is new enough")).await.unwrap();
        assert_eq!(one.size_hint().exact(), Some(text('a').len() as u64));
        let (first, second) = (one.frame().await.unwrap().unwrap(), other.frame().await.unwrap().unwrap());
        assert_eq!(first.data_ref().unwrap().as_ptr(), second.data_ref().unwrap().as_ptr());
        let third = shared.read(stranger(0), now, || unreachable!("it is new enough")).await.unwrap();
        assert_eq!(all(third).await.unwrap(), text('a'));
    }

    #[tokio::test]
    async fn a_text_has_so_many_strangers_and_any_number_of_trusted_readers() {
        let (shared, now) = (Arc::new(Exposition::default()), Instant::now());
        for reading in 0..100 {
            let read = shared.read(stranger(0), now, || text('a')).await;
            assert_eq!(read.is_some(), reading < Exposition::MAX_PER_ADDRESS, "{reading}");
        }
        for reading in Exposition::MAX_PER_ADDRESS..Exposition::MAX_STRANGERS {
            assert!(shared.read(stranger(reading as u8), now, || text('a')).await.is_some(), "{reading}");
        }
        assert!(shared.read(stranger(200), now, || text('a')).await.is_none());
        assert!(shared.read(Reader::Trusted, now, || text('a')).await.is_some());
        let later = now + Exposition::AGE;
        assert!(shared.read(stranger(0), later, || text('b')).await.is_some(), "a second later");
    }

    #[test]
    fn an_address_is_counted_by_its_network() {
        let of = |text: &str| network(text.parse().unwrap());
        assert_eq!(of("2001:db8::1:2:3:4"), of("2001:db8::ffff:0:0:1"));
        assert_ne!(of("2001:db8::1"), of("2001:db8:0:1::1"));
        assert_eq!(of("::ffff:192.0.2.1"), of("192.0.2.1"));
        assert_ne!(of("192.0.2.1"), of("192.0.2.2"));
    }

    #[tokio::test]
    async fn a_reader_that_does_not_read_keeps_one_piece_and_then_has_an_error() {
        let (shared, now) = (Arc::new(Exposition::default()), Instant::now());
        let mut slow = shared.read(stranger(0), now, || text('a')).await.unwrap();
        let piece = slow.frame().await.unwrap().unwrap().into_data().unwrap();
        for (seconds, letter) in (1..).zip(['b', 'c', 'd', 'e']) {
            let now = now + seconds * Exposition::AGE;
            let reading = shared.read(stranger(0), now, move || text(letter)).await.unwrap();
            assert_eq!(all(reading).await.unwrap(), text(letter), "a second later there is another");
        }
        assert_eq!(shared.kept.lock().await.len(), Exposition::KEPT);
        assert_eq!(piece.len(), Exposition::PIECE, "what it has, it has");
        assert!(slow.text.upgrade().is_none() && slow.frame().await.unwrap().is_err());
        assert!(slow.frame().await.is_none());
    }

    #[tokio::test]
    async fn readers_that_leave_do_not_have_it_written_again_and_again() {
        let (shared, now) = (Arc::new(Exposition::default()), Instant::now());
        let made = Arc::new(AtomicUsize::new(0));
        for _ in 0..50 {
            let made = Arc::clone(&made);
            let make = move || {
                made.fetch_add(1, Ordering::Relaxed);
                text('a')
            };
            // It is dropped after one step.
            let reading = core::pin::pin!(shared.read(stranger(0), now, make));
            let _ = futures_now(reading).await;
        }
        // The stranger may have used up its readings by now: that depends on how soon the text was there.
        assert!(shared.read(Reader::Trusted, now, || text('a')).await.is_some());
        assert_eq!(made.load(Ordering::Relaxed), 1);
    }

    /// Polls once, and lets other tasks run.
    async fn futures_now<F: Future + Unpin>(mut future: F) -> Option<F::Output> {
        let polled = core::future::poll_fn(|context| Poll::Ready(Pin::new(&mut future).poll(context))).await;
        tokio::task::yield_now().await;
        match polled {
            Poll::Ready(output) => Some(output),
            Poll::Pending => None,
        }
    }
}
