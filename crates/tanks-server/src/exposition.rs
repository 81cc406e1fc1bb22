//! The text of `/metrics`: made at most once a second, and shared by its readers.
//!
//! The text is kept in pieces. A reader holds no more than the piece that is being written to its socket, and asks for the
//! next one by number. A text that is not kept any more ends its readers. So a reader that does not read keeps a piece
//! alive, and not a whole text: memory is bounded by the texts that are kept, whoever reads and however slowly.

use core::pin::Pin;
use core::task::{Context, Poll};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use axum::body::{Bytes, HttpBody};
use hyper::body::{Frame, SizeHint};
use tokio::sync::Mutex;

/// Who reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reader {
    /// Showed a secret: it is always served, and its text is fresh.
    Trusted,
    /// Anybody else.
    Stranger,
}

struct Text {
    made: Instant,
    pieces: Vec<Bytes>,
    length: usize,
    /// Strangers that were given this text.
    strangers: AtomicUsize,
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
    /// Strangers per text, that is per second. Prometheus asks once in several seconds.
    const MAX_STRANGERS: usize = 64;

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
        let admitted =
            reader == Reader::Trusted || text.strangers.fetch_add(1, Ordering::Relaxed) < Self::MAX_STRANGERS;
        admitted.then(|| Reading { text: Arc::downgrade(&text), next: 0, left: text.length })
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
        Self { made, pieces, length: text.len(), strangers: AtomicUsize::new(0) }
    }

    fn serves(&self, reader: Reader, now: Instant) -> bool {
        let age = match reader {
            Reader::Trusted => Exposition::FRESH,
            Reader::Stranger => Exposition::AGE,
        };
        now.saturating_duration_since(self.made) < age
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
        let mut one = shared.read(Reader::Stranger, now, || text('a')).await.unwrap();
        let mut other =
            shared.read(Reader::Stranger, now, || unreachable!("it is new enough")).await.unwrap();
        assert_eq!(one.size_hint().exact(), Some(text('a').len() as u64));
        let (first, second) = (one.frame().await.unwrap().unwrap(), other.frame().await.unwrap().unwrap());
        assert_eq!(first.data_ref().unwrap().as_ptr(), second.data_ref().unwrap().as_ptr());
        let third = shared.read(Reader::Stranger, now, || unreachable!("it is new enough")).await.unwrap();
        assert_eq!(all(third).await.unwrap(), text('a'));
    }

    #[tokio::test]
    async fn a_text_has_so_many_strangers_and_any_number_of_trusted_readers() {
        let (shared, now) = (Arc::new(Exposition::default()), Instant::now());
        for _ in 0..Exposition::MAX_STRANGERS {
            assert!(shared.read(Reader::Stranger, now, || text('a')).await.is_some());
        }
        assert!(shared.read(Reader::Stranger, now, || text('a')).await.is_none());
        assert!(shared.read(Reader::Trusted, now, || text('a')).await.is_some());
    }

    #[tokio::test]
    async fn a_reader_that_does_not_read_keeps_one_piece_and_then_has_an_error() {
        let (shared, now) = (Arc::new(Exposition::default()), Instant::now());
        let mut slow = shared.read(Reader::Stranger, now, || text('a')).await.unwrap();
        let piece = slow.frame().await.unwrap().unwrap().into_data().unwrap();
        for (seconds, letter) in (1..).zip(['b', 'c', 'd', 'e']) {
            let now = now + seconds * Exposition::AGE;
            let reading = shared.read(Reader::Stranger, now, move || text(letter)).await.unwrap();
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
            let reading = core::pin::pin!(shared.read(Reader::Stranger, now, make));
            let _ = futures_now(reading).await;
        }
        assert!(shared.read(Reader::Stranger, now, || text('a')).await.is_some());
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
