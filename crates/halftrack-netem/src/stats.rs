//! Counters of what a link did to its traffic. Plain numbers, for tests, programs and metrics alike.

/// What a link has counted since it was built.
///
/// A [`crate::DatagramLink`] counts datagrams, and accounts for each: `sent + duplicated` is `delivered + lost +
/// blocked + corrupted + queue_dropped + cleared` and what is under way. A [`crate::StreamLink`] counts segments;
/// `sent` is `delivered + cleared` and what is under way, as a stream loses nothing.
///
/// ```
/// use halftrack::Timestamp;
/// use halftrack_netem::{DatagramLink, LinkConfig};
///
/// let mut link = DatagramLink::new(LinkConfig { loss: 1.0, ..LinkConfig::default() }, 1)?;
/// link.send(Timestamp::ZERO, b"gone");
/// assert_eq!((link.stats().sent, link.stats().lost), (1, 1));
/// # Ok::<(), halftrack_netem::NetemError>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkStats {
    /// Given to the link.
    pub sent: u64,
    /// Taken out at the far end.
    pub delivered: u64,
    /// Lost by chance. A stream's are sent again, and counted here each time.
    pub lost: u64,
    /// Lost because the link was blocked. Zero in a stream, which holds them back.
    pub blocked: u64,
    /// Damaged, noticed by the transport's check and dropped. A stream's are sent again.
    pub corrupted: u64,
    /// Dropped because the queue was full. In a stream: calls refused for want of room.
    pub queue_dropped: u64,
    /// Under way when the link was cleared.
    pub cleared: u64,
    /// Copies put on the way beside the original.
    pub duplicated: u64,
    /// Sent without their delay, by `reorder`.
    pub overtaking: u64,
    /// Delivered after one that was sent later (RFC 4737), whether jitter or `reorder` did it.
    pub reordered: u64,
    /// Sent again after a loss, damage or a partition. Zero for datagrams.
    pub retransmitted: u64,
    /// Bytes of what was sent.
    pub bytes_sent: u64,
    /// Bytes of what was delivered.
    pub bytes_delivered: u64,
    /// Calls with a `now` before that of an earlier call; taken as that of the earlier one.
    pub backwards: u64,
}
