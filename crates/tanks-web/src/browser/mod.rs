//! The layer on the browser: what the page calls, when the client is woken, and how it gets its connections.

mod link;
mod panic;

use std::cell::RefCell;
use std::rc::{Rc, Weak};

use halftrack::session::{DisconnectReason, SessionEnd, SessionState};
use halftrack::{Link as Lane, SyncLink, Timestamp};
use halftrack_netem::Passage;
use js_sys::{Function, Promise, Reflect};
use wasm_bindgen::closure::Closure;
use wasm_bindgen::prelude::wasm_bindgen;
use wasm_bindgen::{JsCast, JsError, JsValue};
use wasm_bindgen_futures::JsFuture;
use web_sys::{Response, Window};

pub use panic::on_panic;

use crate::browser::link::{Happened, Link, Listener, Socket, Taken, Transport, has_transport};
use crate::{Address, LinkSettings, Mode, Part, Play, Site, Task, Ways};

/// Which way the page wants to be connected.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    /// WebTransport, and the WebSocket when that fails.
    Auto,
    Transport,
    Socket,
}

struct Inside {
    play: Play,
    site: Site,
    address: Address,
    config_url: String,
    way: Way,
    link: Option<Link>,
    /// Goes up with every connection that is asked for or given up: what an older one says is not heard.
    turn: u32,
    /// Since when WebTransport is known not to work where the WebSocket does.
    no_transport: Option<(Timestamp, String)>,
    timer: Option<i32>,
    on_timer: Option<Closure<dyn FnMut()>>,
}

/// The page's client. See `API.md`.
#[wasm_bindgen]
pub struct TankClient {
    inside: Rc<RefCell<Inside>>,
}

/// The digest of `ticks` ticks of a fixed brawl, in hexadecimal: the same on every platform.
#[wasm_bindgen]
pub fn golden_hash(ticks: u32) -> String {
    format!("{:016x}", tanks::golden::play(ticks).digest)
}

/// Breaks down on purpose, for tests of what the page does then.
#[wasm_bindgen]
pub fn break_down() {
    panic!("as the page wished");
}

#[wasm_bindgen]
impl TankClient {
    /// A client for the site of `config_json`, on the page `page_url`, in `room`, for a player called `name`. `resume` is
    /// what [`Self::resume_token`] gave an earlier page of that player; any other text is no token, and is not used.
    #[wasm_bindgen(constructor)]
    pub fn new(
        config_json: &str,
        page_url: &str,
        room: &str,
        name: &str,
        token: Option<String>,
        resume: Option<String>,
    ) -> Result<TankClient, JsError> {
        let site = Site::read(config_json)?;
        let address = Address::new(page_url, room)?;
        let resume = resume.and_then(|resume| resume.parse().ok());
        let play = Play::new(&site, name, token, resume, (js_sys::Math::random() * 1e15) as u64)?;
        let inside = Rc::new(RefCell::new(Inside {
            play,
            site,
            address,
            config_url: "/config.json".to_owned(),
            way: Way::Auto,
            link: None,
            turn: 0,
            no_transport: None,
            timer: None,
            on_timer: None,
        }));
        let weak = Rc::downgrade(&inside);
        inside.borrow_mut().on_timer = Some(Closure::new(move || woken(&weak)));
        Ok(Self { inside })
    }

    /// `auto`, `webtransport` or `websocket`: holds from the next connection on.
    pub fn set_transport(&self, way: &str) -> Result<(), JsError> {
        let way = match way {
            "auto" => Way::Auto,
            "webtransport" => Way::Transport,
            "websocket" => Way::Socket,
            _ => return Err(JsError::new("a transport is auto, webtransport or websocket")),
        };
        let inside = &mut *self.inside.borrow_mut();
        (inside.way, inside.no_transport) = (way, None);
        Ok(())
    }

    /// Comes in.
    pub fn connect(&self) {
        self.inside.borrow_mut().play.connect(now());
        follow(&self.inside);
    }

    /// What brings the player back after a crash of the page, while there is a session to come back to. A secret.
    pub fn resume_token(&self) -> Option<String> {
        self.inside.borrow().play.resume_token().map(|token| token.reveal())
    }

    /// Leaves.
    pub fn logout(&self) {
        self.inside.borrow_mut().play.logout(now());
        follow(&self.inside);
    }

    /// Drops the connection, as a network does. The client comes back by itself.
    pub fn cut(&self) {
        {
            let inside = &mut *self.inside.borrow_mut();
            inside.drop_link(DisconnectReason::Silent);
            inside.play.handle_disconnected(
                now(),
                None,
                Some("the connection was cut by the page".to_owned()),
            );
        }
        follow(&self.inside);
    }

    /// Draws a frame at `now_ms`, what `requestAnimationFrame` gives: the numbers of the view are those of then.
    pub fn frame(&self, now_ms: f64) {
        self.inside.borrow_mut().play.frame(timestamp(now_ms));
        follow(&self.inside);
    }

    /// Where in the wasm memory the view begins.
    pub fn view_ptr(&self) -> *const f64 {
        self.inside.borrow().play.view().as_ptr()
    }

    /// How many numbers it has.
    pub fn view_len(&self) -> usize {
        self.inside.borrow().play.view().len()
    }

    /// From now on: ahead and to the left are positive, -1 to 1.
    pub fn set_input(&self, throttle: f32, turn: f32) {
        self.inside.borrow_mut().play.set_input(now(), throttle, turn);
        follow(&self.inside);
    }

    /// Shoots, radians to the left of east. Gives metres, or a number below zero: see `API.md`.
    pub fn fire(&self, aim: f64) -> f64 {
        let fired = self.inside.borrow_mut().play.fire(now(), aim);
        follow(&self.inside);
        fired.unwrap_or_else(|problem| problem.code())
    }

    /// The rocket button was pressed. Gives whether there is a tank that hears of it.
    pub fn press_rocket(&self) -> bool {
        let heard = self.inside.borrow_mut().play.press_rocket(now());
        follow(&self.inside);
        heard
    }

    /// Turns a part of the netcode on or off.
    pub fn set_switch(&self, name: &str, on: bool) -> Result<(), JsError> {
        let part = Part::named(name).ok_or_else(|| {
            let names = Part::ALL.map(Part::name).join(", ");
            JsError::new(&format!("there is no switch {name}; there are {names}"))
        })?;
        self.inside.borrow_mut().play.set_switch(now(), part, mode(on));
        follow(&self.inside);
        Ok(())
    }

    /// Changes the bad network `up`, `down` or `both` ways.
    pub fn set_link(&self, ways: &str, settings_json: &str) -> Result<(), JsError> {
        let ways = match ways {
            "up" => Ways::Up,
            "down" => Ways::Down,
            "both" => Ways::Both,
            _ => return Err(JsError::new("a link goes up, down or both ways")),
        };
        let settings = LinkSettings::read(settings_json)?;
        self.inside.borrow_mut().play.set_link(ways, &settings)?;
        Ok(())
    }

    /// Begins or ends a partition: nothing gets through.
    pub fn set_blocked(&self, on: bool) {
        let passage = if on { Passage::Blocked } else { Passage::Open };
        self.inside.borrow_mut().play.set_passage(now(), passage);
        follow(&self.inside);
    }

    /// Whether the view has the path of what the server has not answered.
    pub fn show_path(&self, on: bool) {
        self.inside.borrow_mut().play.show_path(mode(on));
    }

    /// What has happened since the last call: a JSON array.
    pub fn poll_events(&self) -> String {
        self.inside.borrow_mut().play.poll_events()
    }

    /// Players and machines that are there: a JSON array.
    pub fn fighters(&self) -> String {
        self.inside.borrow().play.fighters()
    }

    /// Numbers for plots: JSON.
    pub fn diagnostics(&self) -> String {
        self.inside.borrow().play.diagnostics()
    }

    /// The whole session in numbers: JSON.
    pub fn export(&self) -> String {
        self.inside.borrow().play.export()
    }

    /// Everything that this client was told of late, as a report that replays exactly: the bytes of a `.flight` file.
    pub fn report(&self, note: &str) -> Vec<u8> {
        self.inside.borrow_mut().play.report(note)
    }
}

impl Drop for TankClient {
    fn drop(&mut self) {
        if let Ok(mut inside) = self.inside.try_borrow_mut() {
            inside.clear_timer();
            inside.drop_link(DisconnectReason::LoggedOut);
        }
    }
}

impl Inside {
    /// Hands out what is to be written.
    fn write(&mut self) {
        let now = now();
        while let Some((lane, bytes)) = self.play.poll_bytes(now) {
            let Some(link) = &self.link else { continue };
            match lane {
                Lane::Sync if link.send_datagram(&bytes) == Taken::No => self.play.count_dropped(),
                Lane::Sync => {}
                Lane::Reliable => link.send_stream(&bytes),
            }
        }
        if let Some(link) = &self.link {
            self.play.set_backlog(link.backlog());
        }
    }

    fn drop_link(&mut self, reason: DisconnectReason) {
        self.turn += 1;
        let words = self.play.last_words();
        if let Some(link) = self.link.take() {
            if !words.is_empty() {
                link.send_stream(&words);
            }
            link.close(reason);
        }
    }

    fn clear_timer(&mut self) {
        if let Some(timer) = self.timer.take() {
            window().clear_timeout_with_handle(timer);
        }
    }

    /// Wakes up when there is something to do.
    fn set_timer(&mut self) {
        self.clear_timer();
        let (Some(due), Some(on_timer)) = (self.play.poll_timeout(), &self.on_timer) else { return };
        // Rounded up: one that comes too early would only have to be set again.
        let wait = due.saturating_since(now()).as_micros().div_ceil(1_000);
        let callback: &Function = on_timer.as_ref().unchecked_ref();
        let wait = i32::try_from(wait).unwrap_or(i32::MAX);
        self.timer = window().set_timeout_with_callback_and_timeout_and_arguments_0(callback, wait).ok();
    }
}

/// Does what the client asks for, and sees to it that it is woken.
fn follow(inside: &Rc<RefCell<Inside>>) {
    let mut borrowed = inside.borrow_mut();
    while let Some(task) = borrowed.play.poll_task() {
        match task {
            Task::Connect => {
                borrowed.drop_link(DisconnectReason::Silent);
                let turn = borrowed.turn;
                wasm_bindgen_futures::spawn_local(dial(Rc::downgrade(inside), turn));
            }
            Task::Close => {
                let reason = farewell(borrowed.play.state());
                borrowed.drop_link(reason);
            }
        }
    }
    borrowed.write();
    borrowed.set_timer();
}

fn woken(inside: &Weak<RefCell<Inside>>) {
    let Some(inside) = inside.upgrade() else { return };
    {
        let mut inside = inside.borrow_mut();
        inside.timer = None;
        inside.play.handle_timeout(now());
    }
    follow(&inside);
}

/// What the connection of `turn` tells.
fn listener(inside: Weak<RefCell<Inside>>, turn: u32) -> Listener {
    Rc::new(move |happened| {
        let Some(inside) = inside.upgrade() else { return };
        {
            let inside = &mut *inside.borrow_mut();
            if inside.turn != turn {
                return;
            }
            match happened {
                Happened::Stream(bytes) => inside.play.handle_bytes(now(), Lane::Reliable, &bytes),
                Happened::Datagram(bytes) => inside.play.handle_bytes(now(), Lane::Sync, &bytes),
                Happened::Ended(reason) => {
                    inside.turn += 1;
                    inside.link = None;
                    let problem = reason.map(|reason| format!("the server closed the connection: {reason}"));
                    inside.play.handle_disconnected(now(), reason, problem);
                }
            }
        }
        follow(&inside);
    })
}

/// Makes the connection that the session asked for, one way or the other.
async fn dial(weak: Weak<RefCell<Inside>>, turn: u32) {
    let Some(inside) = weak.upgrade() else { return };
    let way = inside.borrow().way;
    let known = inside.borrow().known_problem();
    let transport = match (way, known) {
        (Way::Socket, _) => Err("the page asked for it".to_owned()),
        (Way::Auto, Some(known)) => Err(known),
        (Way::Auto | Way::Transport, _) => dial_transport(&inside, &weak, turn).await,
    };
    let (made, why) = match transport {
        Ok(link) => (Ok(link), "states and input go as datagrams: none waits for a lost one".to_owned()),
        Err(problem) if way == Way::Transport => (Err(format!("WebTransport: {problem}")), String::new()),
        Err(problem) => {
            let url = { inside.borrow().site_urls().1 };
            let made = Socket::connect(&url, listener(weak.clone(), turn)).await.map(Link::Socket);
            let made = made.map_err(|error| format!("WebTransport: {problem}; WebSocket: {}", words(&error)));
            (made, problem)
        }
    };
    {
        let inside = &mut *inside.borrow_mut();
        if inside.turn != turn {
            // Given up, or asked for again, meanwhile.
            if let Ok(link) = made {
                link.close(DisconnectReason::LoggedOut);
            }
            return;
        }
        inside.take_dialled(made, why);
    }
    follow(&inside);
}

impl Inside {
    fn site_urls(&self) -> (String, String) {
        (self.site.transport_url(&self.address), self.site.socket_url(&self.address))
    }

    /// Why WebTransport is not tried, if it has just failed where the WebSocket did not.
    fn known_problem(&self) -> Option<String> {
        const FOR_MICROS: u128 = 60_000_000;
        let (since, problem) = self.no_transport.as_ref()?;
        (now().saturating_since(*since).as_micros() < FOR_MICROS).then(|| problem.clone())
    }

    fn take_dialled(&mut self, made: Result<Link, String>, why: String) {
        match made {
            Ok(link) => {
                let (kind, sync_link) = match &link {
                    Link::Transport(transport) => {
                        ("webtransport", SyncLink::of_max_datagram(transport.max_datagram as usize))
                    }
                    Link::Socket(_) => {
                        self.no_transport.get_or_insert_with(|| (now(), why.clone()));
                        ("websocket", SyncLink::Absent)
                    }
                };
                self.link = Some(link);
                self.play.handle_connected(now(), sync_link, kind, why);
            }
            Err(problem) => self.play.handle_disconnected(now(), None, Some(problem)),
        }
    }
}

/// WebTransport; once more if the server has other certificates by now.
async fn dial_transport(
    inside: &Rc<RefCell<Inside>>,
    weak: &Weak<RefCell<Inside>>,
    turn: u32,
) -> Result<Link, String> {
    if !has_transport() {
        let secure = window().is_secure_context();
        let why =
            if secure { "this browser has no WebTransport" } else { "WebTransport needs a page by https" };
        return Err(why.to_owned());
    }
    let attempt = async || {
        let (url, hashes) = {
            let inside = inside.borrow();
            (inside.site_urls().0, inside.site.certificate_hashes().to_vec())
        };
        Transport::connect(&url, &hashes, listener(weak.clone(), turn)).await.map(Link::Transport)
    };
    let problem = match attempt().await {
        Ok(link) => return Ok(link),
        Err(problem) => words(&problem),
    };
    let config_url = { inside.borrow().config_url.clone() };
    let told = fetch(&config_url).await.map_err(|_| problem.clone())?;
    let site = Site::read(&told).map_err(|error| error.to_string())?;
    let known = { inside.borrow().site.clone() };
    if site == known {
        return Err(problem);
    }
    inside.borrow_mut().site = site;
    attempt().await.map_err(|problem| words(&problem))
}

async fn fetch(url: &str) -> Result<String, JsValue> {
    let response = within(2_000, window().fetch_with_str(url).into()).await?;
    let text = response.dyn_into::<Response>()?.text()?;
    within(2_000, text.into()).await?.as_string().ok_or(JsValue::NULL)
}

/// What a promise gives, if it does so in time.
async fn within(millis: i32, promise: JsValue) -> Result<JsValue, JsValue> {
    let mut timer = None;
    let late = Promise::new(&mut |_, reject| {
        let callback = Closure::once_into_js(move || {
            drop(reject.call1(&JsValue::UNDEFINED, &JsValue::from_str("no answer in time")));
        });
        let callback: &Function = callback.unchecked_ref();
        timer = window().set_timeout_with_callback_and_timeout_and_arguments_0(callback, millis).ok();
    });
    let both = js_sys::Array::of2(&promise, &late);
    let first = JsFuture::from(Promise::race(&both)).await;
    if let Some(timer) = timer {
        window().clear_timeout_with_handle(timer);
    }
    first
}

/// An error in words.
fn words(error: &JsValue) -> String {
    let message = Reflect::get(error, &JsValue::from_str("message")).ok().and_then(|text| text.as_string());
    message.or_else(|| error.as_string()).unwrap_or_else(|| "no reason was given".to_owned())
}

/// Why a client closes.
fn farewell(state: SessionState) -> DisconnectReason {
    match state {
        SessionState::Failed(SessionEnd::Broken) => DisconnectReason::Malformed,
        SessionState::LoggedOut | SessionState::Failed(_) => DisconnectReason::LoggedOut,
        _ => DisconnectReason::Silent,
    }
}

fn window() -> Window {
    js_sys::global().unchecked_into()
}

fn now() -> Timestamp {
    timestamp(window().performance().map_or(0.0, |performance| performance.now()))
}

fn timestamp(millis: f64) -> Timestamp {
    // A float that is negative or none becomes zero: `Play` never goes back.
    Timestamp::from_micros((millis * 1e3) as u64)
}

fn mode(on: bool) -> Mode {
    if on { Mode::On } else { Mode::Off }
}
