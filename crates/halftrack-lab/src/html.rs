//! Results as one file for a browser: a table for each plan, and pictures of one client's run. No scripts, no links.

use std::fmt::Write as _;

use halftrack::Cause;

use crate::runs::{PlanResult, number_at};
use crate::table::{ROWS, shown};
use crate::trace::Trace;

const STYLE: &str = "body{font:15px/1.5 system-ui,sans-serif;max-width:1080px;margin:2em auto;padding:0 1em;color:#1b1f24;\
background:#fff}h1,h2{font-weight:600}h2{margin-top:2.5em;border-top:1px solid #d8dde3;padding-top:1em}code{background:#f2f4f7;\
padding:.1em .3em}table{border-collapse:collapse;margin:1em 0}td,th{padding:.15em .9em .15em 0;text-align:right;\
font-variant-numeric:tabular-nums}td:first-child,th:first-child{text-align:left;white-space:pre}.bad{color:#b3261e;\
font-weight:600}.good{color:#1d7a3e}figure{display:inline-block;margin:.5em 1em .5em 0;vertical-align:top}\
figcaption{font-size:13px;color:#57606a;max-width:500px}svg{background:#fbfcfd;border:1px solid #e3e7ec}";

const BLUE: &str = "#2563c9";
const ORANGE: &str = "#d97706";
const GREEN: &str = "#1d7a3e";
const RED: &str = "#b3261e";
const GREY: &str = "#8a939d";

/// The report of these results. `command` is what made it; each plan has the trace of one client.
pub fn report(command: &str, results: &[PlanResult], traces: &[Trace]) -> String {
    let mut text = format!(
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>What the player sees</title><style>{STYLE}</style>\
         <h1>What the player sees</h1><p>Made by <code>halftrack-lab {}</code>: the real server and clients over a seeded \
         network in virtual time. What each number means: <code>docs/LAB.md</code>.</p>",
        escaped(command)
    );
    for (result, trace) in results.iter().zip(traces) {
        plan(&mut text, result, trace);
    }
    text.push_str("</html>\n");
    text
}

fn plan(text: &mut String, result: &PlanResult, trace: &Trace) {
    let PlanResult { plan, players, machines, seconds, seed, runs, .. } = result;
    let (class, word) = if result.is_good() { ("good", "as expected") } else { ("bad", "not as expected") };
    let last = seed + runs.len().saturating_sub(1) as u64;
    let machines = if *machines > 0 { format!("{machines} machines, ") } else { String::new() };
    let _ = write!(
        text,
        "<h2>{} <span class=\"{class}\">{word}</span></h2><p>{players} players, {machines}{seconds} s, seeds {seed} to \
         {last}.</p><table><tr><th></th><th>worst</th><th>median</th></tr>",
        escaped(plan)
    );
    for (path, name) in ROWS {
        let failed = result.failed.iter().any(|failure| failure.path == path);
        let class = if failed { " class=\"bad\"" } else { "" };
        let (worst, median) = (number_at(&result.worst, path), number_at(&result.median, path));
        let _ = write!(
            text,
            "<tr{class}><td>{name}</td><td>{}</td><td>{}</td></tr>",
            shown(worst),
            shown(median)
        );
    }
    text.push_str("</table>");
    for (seed, found) in result.violations() {
        let _ = write!(
            text,
            "<p class=\"bad\">Seed {seed}, {:.3} s, {:?}: {}</p>",
            found.at_s,
            found.rule,
            escaped(&found.what)
        );
    }
    pictures(text, trace);
}

fn pictures(text: &mut String, trace: &Trace) {
    let frames = &trace.frames;
    let (Some(first), Some(last)) = (frames.first(), frames.last()) else { return };
    let span = (first.at_s, last.at_s);
    let client = trace.client;
    figure(
        text,
        &top_view(trace),
        &format!(
            "Client {client} from above, the first 12 s: where the server had it (grey), where it was predicted (blue), where it \
         was drawn (orange)."
        ),
    );
    let corrections: Vec<_> =
        trace.corrections.iter().map(|(at, size, cause)| (*at, size.min(2.0), colour(*cause))).collect();
    let plot = Plot::new(span, (0.0, corrections.iter().map(|dot| dot.1).fold(0.1, f64::max)));
    figure(
        text,
        &plot.dots(&corrections).done("m"),
        "Corrections by cause, cut at 2 m: late or lost input (red), collision \
        (orange), death and respawn (grey), resync (blue).",
    );
    let leads: Vec<_> = frames.iter().map(|frame| (frame.at_s, frame.lead_ms)).collect();
    let margins: Vec<_> = trace
        .margins
        .iter()
        .map(|(at, margin)| (*at, *margin, if *margin < 0.0 { RED } else { GREEN }))
        .collect();
    let most = range(leads.iter().map(|(_, lead)| *lead).chain(margins.iter().map(|dot| dot.1)));
    let plot = Plot::new(span, most).dots(&margins).line(&leads, BLUE);
    figure(
        text,
        &plot.done("ms"),
        "How far prediction runs ahead of the server's clock (blue), and how early each tick's input \
        came: in time (green), late (red).",
    );
    let delays: Vec<_> = frames.iter().map(|frame| (frame.at_s, frame.delay_ms)).collect();
    let guesses: Vec<_> = frames
        .iter()
        .filter(|frame| frame.guessed > 0.0)
        .map(|frame| (frame.at_s, frame.delay_ms, RED))
        .collect();
    let plot =
        Plot::new(span, range(delays.iter().map(|(_, delay)| *delay))).line(&delays, BLUE).dots(&guesses);
    figure(
        text,
        &plot.done("ms"),
        "How far others are drawn behind, beyond the link's delay; red where somebody is drawn by guess \
        or stands.",
    );
    let seconds = (span.1 - span.0).ceil().max(1.0) as usize;
    let mut bytes = vec![0.0; seconds];
    for (at, sent) in &trace.down {
        if let Some(slot) = bytes.get_mut((at - span.0).max(0.0) as usize) {
            *slot += *sent as f64;
        }
    }
    let bytes: Vec<_> =
        bytes.iter().enumerate().map(|(at, sent)| (span.0 + at as f64 + 0.5, *sent)).collect();
    let most = bytes.iter().map(|(_, sent)| *sent).fold(1.0, f64::max);
    figure(
        text,
        &Plot::new(span, (0.0, most)).line(&bytes, BLUE).done("bytes/s"),
        "What the client is sent, per second.",
    );
}

fn colour(cause: Cause) -> &'static str {
    match cause {
        Cause::LateInput | Cause::LostInput => RED,
        Cause::Collision => ORANGE,
        Cause::Resync => BLUE,
        _ => GREY,
    }
}

/// From the least to the greatest, without the rarest ends: a stall would make a line of everything else.
fn range(values: impl Iterator<Item = f64>) -> (f64, f64) {
    let mut values: Vec<_> = values.filter(|value| value.is_finite()).collect();
    values.sort_by(f64::total_cmp);
    let at = |share: f64| {
        values.get((share * values.len().saturating_sub(1) as f64) as usize).copied().unwrap_or(0.0)
    };
    let (low, high) = (at(0.005).min(0.0), at(0.995).max(1.0));
    (low, high + (high - low) * 0.1)
}

fn figure(text: &mut String, picture: &str, caption: &str) {
    let _ = write!(text, "<figure>{picture}<figcaption>{caption}</figcaption></figure>");
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// Something over time.
struct Plot {
    time: (f64, f64),
    value: (f64, f64),
    drawn: String,
}

impl Plot {
    const WIDTH: f64 = 500.0;
    const HEIGHT: f64 = 200.0;
    const LEFT: f64 = 46.0;
    const BOTTOM: f64 = 22.0;

    fn new(time: (f64, f64), value: (f64, f64)) -> Self {
        Self { time, value, drawn: String::new() }
    }

    fn place(&self, at: f64, value: f64) -> (f64, f64) {
        let part =
            |value: f64, (low, high): (f64, f64)| ((value - low) / (high - low).max(1e-9)).clamp(0.0, 1.0);
        let x = Self::LEFT + part(at, self.time) * (Self::WIDTH - Self::LEFT - 8.0);
        (x, 8.0 + (1.0 - part(value, self.value)) * (Self::HEIGHT - Self::BOTTOM - 8.0))
    }

    fn line(mut self, points: &[(f64, f64)], colour: &str) -> Self {
        // More points than there are pixels show nothing more.
        let every = points.len().div_ceil(1_500).max(1);
        let mut path = String::new();
        for (at, value) in points.iter().step_by(every) {
            let (x, y) = self.place(*at, *value);
            let _ = write!(path, "{x:.1},{y:.1} ");
        }
        let _ = write!(self.drawn, "<polyline points=\"{path}\" fill=\"none\" stroke=\"{colour}\"/>");
        self
    }

    fn dots(mut self, dots: &[(f64, f64, &str)]) -> Self {
        for (at, value, colour) in dots {
            let (x, y) = self.place(*at, *value);
            let _ = write!(self.drawn, "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"1.6\" fill=\"{colour}\"/>");
        }
        self
    }

    fn done(self, unit: &str) -> String {
        let (width, height, bottom) = (Self::WIDTH, Self::HEIGHT, Self::HEIGHT - Self::BOTTOM);
        let mut axes = String::new();
        for share in [0.0, 0.5, 1.0] {
            let value = self.value.0 + (self.value.1 - self.value.0) * share;
            let (_, y) = self.place(self.time.0, value);
            let label = if self.value.1 < 10.0 { format!("{value:.2}") } else { format!("{value:.0}") };
            let _ = write!(
                axes,
                "<line x1=\"{}\" x2=\"{width}\" y1=\"{y:.1}\" y2=\"{y:.1}\" stroke=\"#e3e7ec\"/><text x=\"{}\" y=\"{:.1}\" \
                 text-anchor=\"end\">{label}</text>",
                Self::LEFT,
                Self::LEFT - 5.0,
                y + 4.0
            );
            let at = self.time.0 + (self.time.1 - self.time.0) * share;
            let (x, _) = self.place(at, self.value.0);
            let _ = write!(
                axes,
                "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{at:.0} s</text>",
                x.clamp(60.0, width - 20.0),
                bottom + 16.0
            );
        }
        format!(
            "<svg viewBox=\"0 0 {width} {height}\" width=\"{width}\" height=\"{height}\" font-size=\"11\" fill=\"{GREY}\">{axes}\
             <text x=\"{}\" y=\"18\">{unit}</text>{}</svg>",
            Self::LEFT + 4.0,
            self.drawn
        )
    }
}

/// The paths of the first seconds, to scale.
fn top_view(trace: &Trace) -> String {
    const SIDE: f64 = 420.0;
    /// Metres. Nobody drives so far in a frame: it was put there.
    const JUMP: f64 = 2.0;
    let from = trace.frames.first().map_or(0.0, |frame| frame.at_s);
    let frames: Vec<_> = trace.frames.iter().take_while(|frame| frame.at_s < from + 12.0).collect();
    let places = || frames.iter().flat_map(|frame| [frame.predicted, frame.visible, frame.authoritative]);
    let bound = |axis: usize| {
        let values = places().map(|place| place[axis]);
        values
            .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| (low.min(value), high.max(value)))
    };
    let ((left, right), (bottom, top)) = (bound(0), bound(1));
    let size = (right - left).max(top - bottom).max(1.0) * 1.08;
    let (middle_x, middle_y) = (f64::midpoint(left, right), f64::midpoint(bottom, top));
    let mut drawn = String::new();
    let mut path = |place: fn(&crate::trace::TraceFrame) -> [f64; 2], colour: &str, width: f64| {
        let jumps = |pair: &[[f64; 2]]| (pair[1][0] - pair[0][0]).hypot(pair[1][1] - pair[0][1]) > JUMP;
        let places: Vec<_> = frames.iter().map(|frame| place(frame)).collect();
        for way in places.chunk_by(|one, other| !jumps(&[*one, *other])) {
            let mut points = String::new();
            for [x, y] in way {
                let (x, y) = ((x - middle_x) / size + 0.5, 0.5 - (y - middle_y) / size);
                let _ = write!(points, "{:.1},{:.1} ", x * SIDE, y * SIDE);
            }
            let _ = write!(
                drawn,
                "<polyline points=\"{points}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"{width}\" \
                 stroke-linejoin=\"round\"/>"
            );
        }
    };
    path(|frame| frame.authoritative, "#c5ccd3", 6.0);
    path(|frame| frame.predicted, BLUE, 3.0);
    path(|frame| frame.visible, ORANGE, 1.2);
    format!(
        "<svg viewBox=\"0 0 {SIDE} {SIDE}\" width=\"{SIDE}\" height=\"{SIDE}\" font-size=\"11\" fill=\"{GREY}\">{drawn}\
         <text x=\"8\" y=\"{}\">{size:.1} m</text></svg>",
        SIDE - 8.0
    )
}
