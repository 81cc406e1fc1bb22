//! What one client went through, moment by moment: for pictures.

use halftrack::Cause;

/// One client's run, from when measuring began.
#[derive(Clone, Debug, Default)]
pub struct Trace {
    /// Which client.
    pub client: usize,
    /// Its frames.
    pub frames: Vec<TraceFrame>,
    /// Its corrections: when, by how many metres, and why.
    pub corrections: Vec<(f64, f64, Cause)>,
    /// When the input of a tick came, and how many milliseconds early.
    pub margins: Vec<(f64, f64)>,
    /// When something was sent to it, and how many bytes.
    pub down: Vec<(f64, usize)>,
}

/// One frame. Places are metres from where the client was first drawn.
#[derive(Clone, Copy, Debug, Default)]
pub struct TraceFrame {
    /// Seconds from the start of the run.
    pub at_s: f64,
    /// Where gameplay has the body.
    pub predicted: [f64; 2],
    /// Where it is drawn.
    pub visible: [f64; 2],
    /// Where the newest state has it.
    pub authoritative: [f64; 2],
    /// The prediction clock less the server's, milliseconds.
    pub lead_ms: f64,
    /// How far others are drawn behind, milliseconds.
    pub delay_ms: f64,
    /// The part of the others that is drawn by guess or stands.
    pub guessed: f64,
}
