//! A match as a picture: where everybody drove, where they died, and how the score went. One file, for a browser.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use halftrack::record::Entry;
use tanks::{About, CombatEvent, Fighter, Obstacle, TankPlayback};

use super::Outcome;
use super::told::{Told, at, clock};
use crate::words::{Count, Date};

/// A point of a trail every so many ticks: five in a second are a smooth line.
const EVERY: u32 = 4;
/// Trails and marks in one picture: a page that a browser still draws.
const MAX_POINTS: usize = 400_000;

#[derive(Debug, Default)]
pub(super) struct Picture {
    tracks: Vec<Track>,
    /// The track of each fighter that is there.
    here: BTreeMap<Fighter, usize>,
    points: usize,
    deaths: Vec<Death>,
    size: [f64; 2],
    obstacles: Vec<Obstacle>,
}

#[derive(Debug)]
struct Track {
    name: String,
    is_machine: bool,
    /// Pieces between a death and the next life.
    pieces: Vec<Vec<[f64; 2]>>,
    /// When it killed, seconds.
    kills: Vec<f64>,
}

#[derive(Debug)]
struct Death {
    at: [f64; 2],
    when: f64,
    who: usize,
    by: Option<usize>,
}

impl Picture {
    pub(super) fn see(&mut self, entry: &Entry, playback: &TankPlayback) {
        match entry {
            Entry::Joined { player, name, .. } => self.begin(Fighter::from(*player), name.to_string()),
            Entry::Left { player } => {
                self.count_deaths(playback);
                self.here.remove(&Fighter::from(*player));
            }
            Entry::Tick => self.tick(playback),
            _ => {}
        }
    }

    /// Begins the track of a fighter.
    fn begin(&mut self, fighter: Fighter, name: String) {
        self.here.insert(fighter, self.tracks.len());
        let is_machine = fighter.player().is_none();
        self.tracks.push(Track { name, is_machine, pieces: vec![vec![]], kills: vec![] });
    }

    fn tick(&mut self, playback: &TankPlayback) {
        let stage = playback.stage();
        let arena = &stage.world().config().arena;
        (self.size, self.obstacles) = (arena.size(), arena.obstacles().to_vec());
        // Machines do not join: they are there from some tick on.
        for (id, driver, _) in stage.bodies().filter(|(.., body)| body.tank().is_some()) {
            let fighter = Fighter::of(id, driver);
            if let Some(name) = fighter.machine_name().filter(|_| !self.here.contains_key(&fighter)) {
                self.begin(fighter, name);
            }
        }
        self.count_deaths(playback);
        if !stage.tick().number().is_multiple_of(EVERY) || self.points > MAX_POINTS {
            return;
        }
        for (id, driver, tank) in stage.bodies().filter(|(.., body)| body.tank().is_some()) {
            let track = self.here.get(&Fighter::of(id, driver)).and_then(|at| self.tracks.get_mut(*at));
            let Some(piece) = track.and_then(|track| track.pieces.last_mut()) else { continue };
            let point = [tank.pose().x, tank.pose().y];
            // Whoever stands still leaves no trail.
            if piece.last().is_none_or(|last| distance(*last, point) > 0.2) {
                piece.push(point);
                self.points += 1;
            }
        }
    }

    fn count_deaths(&mut self, playback: &TankPlayback) {
        for (_, bytes) in playback.stage().events().iter() {
            match CombatEvent::decode(bytes) {
                Ok(CombatEvent::Death { fighter, by, .. }) => self.die(playback, fighter, by),
                Ok(CombatEvent::Respawn { fighter, .. }) => {
                    if let Some(track) = self.here.get(&fighter).and_then(|at| self.tracks.get_mut(*at)) {
                        track.pieces.push(vec![]);
                    }
                }
                _ => {}
            }
        }
    }

    fn die(&mut self, playback: &TankPlayback, fighter: Fighter, by: Fighter) {
        let (when, by) = (at(playback), self.here.get(&by).copied().filter(|_| by != fighter));
        let mut bodies = playback.stage().bodies();
        let found = bodies.find(|(id, driver, _)| Fighter::of(*id, *driver) == fighter);
        let place = found.map(|(.., tank)| [tank.pose().x, tank.pose().y]);
        if let (Some(who), Some(at)) = (self.here.get(&fighter).copied(), place) {
            self.deaths.push(Death { at, when, who, by });
        }
        if let Some(track) = by.and_then(|by| self.tracks.get_mut(by)) {
            track.kills.push(when);
        }
    }

    /// The page.
    pub(super) fn page(&self, about: &About, told: &Told, outcome: &Outcome) -> String {
        let mut page = String::from(HEAD);
        let room = escape(&about.room);
        let length = clock(outcome.seconds);
        let verified = match (&outcome.differs, &outcome.damaged) {
            (Some(differs), _) => format!("differs from tick {} on", differs.tick),
            (None, Some(damaged)) => {
                format!("verified {}; {}", Count(outcome.ticks, "tick"), escape(damaged))
            }
            (None, None) => format!("verified {}", Count(outcome.ticks, "tick")),
        };
        let machines = self.tracks.iter().filter(|track| track.is_machine).count();
        let fighters = Count((self.tracks.len() - machines) as u64, "player").to_string();
        let fighters = match machines as u64 {
            0 => fighters,
            machines => format!("{fighters} &middot; {}", Count(machines, "machine")),
        };
        let _ = write!(
            page,
            "<h1>{room}</h1><p class=\"sub\">{} &middot; {length} &middot; {fighters} &middot; {} &middot; {verified}</p>",
            Date(about.started),
            Count(told.kills.len() as u64, "kill")
        );
        self.write_ground(&mut page);
        self.write_chart(&mut page, outcome.seconds);
        self.write_table(&mut page, told);
        page.push_str("</main>");
        page
    }

    fn write_ground(&self, page: &mut String) {
        let [width, height] = self.size;
        let _ = write!(
            page,
            "<svg class=\"ground\" viewBox=\"{} {} {width} {height}\" role=\"img\" aria-label=\"where everybody drove\">",
            -width / 2.0,
            -height / 2.0
        );
        // North is up.
        page.push_str("<g transform=\"scale(1,-1)\">");
        for obstacle in &self.obstacles {
            let _ = match obstacle {
                Obstacle::Block { min, max } => write!(
                    page,
                    "<rect class=\"wall\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"/>",
                    min[0],
                    min[1],
                    max[0] - min[0],
                    max[1] - min[1]
                ),
                Obstacle::Pillar { center, radius } => {
                    write!(
                        page,
                        "<circle class=\"wall\" cx=\"{}\" cy=\"{}\" r=\"{radius}\"/>",
                        center[0], center[1]
                    )
                }
            };
        }
        for (index, track) in self.tracks.iter().enumerate() {
            let _ = write!(
                page,
                "<g class=\"t\" style=\"--c:{}\"><title>{}</title>",
                colour(index),
                escape(&track.name)
            );
            for piece in track.pieces.iter().filter(|piece| piece.len() > 1) {
                page.push_str("<polyline points=\"");
                for [x, y] in piece {
                    let _ = write!(page, "{x:.1},{y:.1} ");
                }
                page.push_str("\"/>");
            }
            page.push_str("</g>");
        }
        for death in &self.deaths {
            let [x, y] = death.at;
            let by = death.by.and_then(|by| self.tracks.get(by)).map_or("?", |track| &track.name);
            let who = self.tracks.get(death.who).map_or("?", |track| &track.name);
            let _ = write!(
                page,
                "<g class=\"x\" style=\"--c:{}\" transform=\"translate({x:.1},{y:.1})\"><title>{} {} killed {}</title>\
                 <path d=\"M-.8-.8.8.8M-.8.8.8-.8\"/></g>",
                colour(death.who),
                clock(death.when),
                escape(by),
                escape(who)
            );
        }
        page.push_str("</g></svg>");
    }

    /// Kills over time, a line for each of the best.
    fn write_chart(&self, page: &mut String, seconds: f64) {
        let most = self.tracks.iter().map(|track| track.kills.len()).max().unwrap_or(0).max(1);
        page.push_str("<h2>Kills</h2><svg class=\"chart\" viewBox=\"-6 -4 318 88\" role=\"img\" aria-label=\"kills over time\">");
        for kills in (0..=most).step_by(most.div_ceil(5)) {
            let y = 80.0 - kills as f64 / most as f64 * 80.0;
            let _ = write!(
                page,
                "<path class=\"grid\" d=\"M0 {y:.1}H300\"/><text x=\"-1\" y=\"{y:.1}\">{kills}</text>"
            );
        }
        for (index, track) in self.tracks.iter().enumerate() {
            let _ = write!(page, "<path class=\"line\" style=\"--c:{}\" d=\"M0 80", colour(index));
            for (kills, when) in track.kills.iter().enumerate() {
                let (x, y) =
                    (when / seconds.max(1.0) * 300.0, 80.0 - (kills + 1) as f64 / most as f64 * 80.0);
                let _ = write!(page, "H{x:.1}V{y:.1}");
            }
            let _ = write!(page, "H300\"><title>{}</title></path>", escape(&track.name));
        }
        let _ = write!(page, "<text class=\"end\" x=\"300\" y=\"83\">{}</text></svg>", clock(seconds));
    }

    fn write_table(&self, page: &mut String, told: &Told) {
        page.push_str(
            "<table><tr><th></th><th>player</th><th>kills</th><th>deaths</th><th>shots</th><th>hits</th></tr>",
        );
        for score in told.scores.ranked() {
            let index = self.tracks.iter().position(|track| track.name == score.name.as_str());
            let _ = write!(
                page,
                "<tr><td style=\"color:{}\">&#9632;</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td></tr>",
                colour(index.unwrap_or(0)),
                escape(score.name.as_str()),
                score.kills,
                score.deaths,
                score.shots,
                score.hits
            );
        }
        page.push_str("</table>");
    }
}

fn distance(from: [f64; 2], to: [f64; 2]) -> f64 {
    (to[0] - from[0]).hypot(to[1] - from[1])
}

/// As far apart as so many can be: round the circle by the golden angle.
fn colour(index: usize) -> String {
    format!("hsl({:.0} 65% 55%)", (index as f64 * 137.508) % 360.0)
}

/// Names are text, whatever is in them.
fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

const HEAD: &str = "<!doctype html><meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width\">\
<title>A match</title><style>\
:root{color-scheme:light dark;--bg:#f6f5f1;--ink:#23241f;--soft:#8a8b80;--wall:#c9c7ba;--ground:#fff}\
@media(prefers-color-scheme:dark){:root{--bg:#171814;--ink:#e8e7de;--soft:#7d7e73;--wall:#3c3d35;--ground:#1f201b}}\
body{margin:0;background:var(--bg);color:var(--ink);font:15px/1.5 system-ui,sans-serif}\
main{max-width:1080px;margin:0 auto;padding:32px 20px}\
h1{margin:0;font-size:28px}h2{margin:28px 0 6px;font-size:16px}.sub{margin:2px 0 18px;color:var(--soft)}\
.ground{display:block;width:100%;background:var(--ground);border:1px solid var(--wall);border-radius:6px}\
.wall{fill:var(--wall)}\
.t polyline{fill:none;stroke:var(--c);stroke-width:.22;stroke-linejoin:round;opacity:.45}\
.t:hover polyline{opacity:1;stroke-width:.45}\
.x path{fill:none;stroke:var(--c);stroke-width:.35}\
.chart{display:block;width:100%}.grid{stroke:var(--wall);stroke-width:.3}\
.line{fill:none;stroke:var(--c);stroke-width:.9}.line:hover{stroke-width:2}\
text{font-size:4px;fill:var(--soft);text-anchor:end;dominant-baseline:middle}\
table{margin-top:24px;border-collapse:collapse}th,td{padding:2px 14px 2px 0;text-align:right}\
th{color:var(--soft);font-weight:500}th:nth-child(2),td:nth-child(2){text-align:left}\
td{font-variant-numeric:tabular-nums}</style><main>";
