//! What the page calls. See `API.md`.

use core::time::Duration;

use wasm_bindgen::JsError;
use wasm_bindgen::prelude::wasm_bindgen;

use crate::{Theatre, Wish};

#[wasm_bindgen]
extern "C" {
    #[wasm_bindgen(js_namespace = performance)]
    fn now() -> f64;
    #[wasm_bindgen(js_namespace = console)]
    fn error(text: &str);
}

/// Entries from one look at the clock to the next: well below a millisecond of them.
const ENTRIES: u32 = 16;

/// The page's theatre.
#[wasm_bindgen(js_name = Theatre)]
pub struct PageTheatre(Theatre);

#[wasm_bindgen(js_class = Theatre)]
impl PageTheatre {
    /// Opens a file. Throws in words when it is no recording.
    #[wasm_bindgen(constructor)]
    pub fn new(bytes: Vec<u8>) -> Result<PageTheatre, JsError> {
        Ok(Self(Theatre::open(bytes)?))
    }

    /// Reads on for so many milliseconds; gives whether something is left.
    pub fn index_some(&mut self, budget_ms: f64) -> bool {
        let start = now();
        loop {
            let more = self.0.index_some(ENTRIES);
            if !more || now() - start >= budget_ms {
                return more;
            }
        }
    }

    /// Goes anywhere, milliseconds.
    pub fn seek(&mut self, at_ms: f64) {
        self.0.seek(millis(at_ms));
    }

    /// Lets time go on, or stand.
    pub fn play(&mut self, on: bool) {
        self.0.set_wish(if on { Wish::Play } else { Wish::Pause });
    }

    /// From a quarter to eight times as fast.
    pub fn set_speed(&mut self, speed: f64) {
        self.0.set_speed(speed);
    }

    /// So many milliseconds have passed: the numbers of the view are those of now.
    pub fn frame(&mut self, passed_ms: f64) {
        self.0.advance(millis(passed_ms));
        self.0.frame();
    }

    /// Where in the wasm memory the view begins.
    pub fn view_ptr(&self) -> *const f64 {
        self.0.view().as_ptr()
    }

    /// How many numbers it has.
    pub fn view_len(&self) -> usize {
        self.0.view().len()
    }

    /// What has happened since the last call: a JSON array.
    pub fn poll_events(&mut self) -> String {
        self.0.poll_events()
    }

    /// Players and machines that are there: a JSON array.
    pub fn fighters(&self) -> String {
        self.0.fighters()
    }

    /// What is marked on the time line, from that mark on: a JSON array.
    pub fn marks(&self, from: usize) -> String {
        self.0.marks(from)
    }

    /// What there is to say about the file: JSON.
    pub fn about(&self) -> String {
        self.0.about()
    }
}

/// What is no number of milliseconds is none.
fn millis(ms: f64) -> Duration {
    Duration::from_micros((ms * 1e3).max(0.0) as u64)
}

/// Whoever called gets an error that says why it broke down, not `unreachable`.
#[wasm_bindgen(start)]
fn start() {
    std::panic::set_hook(Box::new(|panic| {
        let message = format!("the player has broken down: {panic}");
        error(&message);
        wasm_bindgen::throw_str(&message);
    }));
}
