//! SESSION: getting in, staying in, and coming back, over connections that the test cuts.

use std::time::Duration;

use halftrack::session::{
    ClientSession, ConnectionId, SessionCommand, SessionConfig, SessionEnd, SessionState, SessionTable,
    TableConfig,
};
use halftrack::wire::control::{
    Continuity, FromClient, FromServer, HeartbeatReply, Login, LoginAccepted, LoginRefused, PROTOCOL, Restart,
};
use halftrack::{PlayerId, PlayerName, Timestamp, Token};
use proptest::prelude::*;

const SHARED: u64 = 77;

fn ms(millis: u64) -> Timestamp {
    Timestamp::from_micros(millis * 1_000)
}

fn config(name: &str) -> SessionConfig {
    SessionConfig::new(PlayerName::new(name).unwrap(), SHARED)
}

fn accepted(continuity: Continuity) -> LoginAccepted {
    LoginAccepted { player: PlayerId::new(3), token: Token::new([3; 16]), continuity }
}

fn commands(session: &mut ClientSession) -> Vec<SessionCommand> {
    std::iter::from_fn(|| session.poll_command()).collect()
}

/// A session that is in, at zero.
fn logged_in() -> ClientSession {
    let mut session = ClientSession::new(config("Ada")).unwrap();
    session.connect(ms(0));
    session.handle_connected(ms(0));
    session.handle_accepted(ms(0), &accepted(Continuity::New));
    commands(&mut session);
    session
}

#[test]
fn session_01_connected_is_not_logged_in() {
    let mut session = ClientSession::new(config("Ada")).unwrap();
    assert_eq!(session.state(), SessionState::Idle);
    session.connect(ms(0));
    assert_eq!(
        (session.state(), commands(&mut session)),
        (SessionState::Connecting, vec![SessionCommand::Connect])
    );
    session.handle_connected(ms(20));
    assert_eq!((session.state(), session.player()), (SessionState::LoginPending, None));
    let said = commands(&mut session);
    assert!(matches!(said.as_slice(), [SessionCommand::Send(FromClient::Login(Login { resume: None, .. }))]));
    session.handle_accepted(ms(40), &accepted(Continuity::New));
    assert_eq!((session.state(), session.player()), (SessionState::LoggedIn, Some(PlayerId::new(3))));
}

#[test]
fn session_02_a_login_that_is_refused_says_why_and_one_that_hangs_times_out() {
    let mut session = ClientSession::new(config("Ada")).unwrap();
    session.connect(ms(0));
    session.handle_connected(ms(20));
    session.handle_refused(LoginRefused::NameTaken);
    let refused = SessionEnd::Refused(LoginRefused::NameTaken);
    assert_eq!(session.state(), SessionState::Failed(refused));
    assert_eq!(refused.to_string(), "the name is taken: choose another");
    assert_eq!(session.poll_timeout(), None, "and does not try again by itself");

    session.connect(ms(100));
    assert_eq!(session.state(), SessionState::Connecting, "but it may be asked to");
    let mut now = ms(100);
    while let Some(due) = session.poll_timeout() {
        assert!(due > now, "a timeout that is not in the future would spin");
        now = due;
        session.handle_timeout(now - Duration::from_micros(1));
        session.handle_timeout(now);
    }
    assert_eq!(session.state(), SessionState::TimedOut);
    // The first try took 5 s until it was given up: the grace counts from there.
    assert_eq!(now, ms(100 + 5_000 + 30_000));
}

#[test]
fn session_03_coming_back_is_tried_with_pauses_that_double() {
    let mut session = logged_in();
    let mut now = ms(10_000);
    session.handle_heard(now);
    let mut pauses = vec![];
    for _ in 0..7 {
        session.handle_disconnected(now, None);
        assert_eq!(session.state(), SessionState::Reconnecting);
        let due = session.poll_timeout().unwrap();
        session.handle_timeout(due - Duration::from_micros(1));
        assert_eq!(session.state(), SessionState::Reconnecting, "not a microsecond too soon");
        session.handle_timeout(due);
        assert_eq!(session.state(), SessionState::Connecting);
        pauses.push(due.saturating_since(now).as_millis());
        now = due;
    }
    assert_eq!(pauses, [250, 500, 1_000, 2_000, 2_000, 2_000, 2_000]);
    session.handle_connected(now);
    session.handle_accepted(now, &accepted(Continuity::Resumed { received: 0 }));
    session.handle_disconnected(now, None);
    assert_eq!(
        session.poll_timeout(),
        Some(now + Duration::from_millis(250)),
        "and start over once it is in"
    );
}

#[test]
fn session_03_silence_is_a_cut() {
    let mut session = logged_in();
    let mut now = ms(0);
    while session.state() == SessionState::LoggedIn {
        now = session.poll_timeout().unwrap();
        session.handle_timeout(now);
    }
    assert_eq!((now, session.state()), (ms(4_000), SessionState::Reconnecting));
    let said = commands(&mut session);
    assert_eq!(said.last(), Some(&SessionCommand::Close));
    let heartbeats =
        said.iter().filter(|said| matches!(said, SessionCommand::Send(FromClient::Heartbeat(_))));
    assert_eq!(heartbeats.count(), 4, "one a second until then");
}

#[test]
fn session_02_an_end_for_good_is_not_a_cut() {
    for end in [SessionEnd::Superseded, SessionEnd::Kicked, SessionEnd::UnknownRoom, SessionEnd::TooMuch] {
        let mut session = logged_in();
        session.handle_disconnected(ms(5), Some(end));
        assert_eq!((session.state(), session.poll_timeout()), (SessionState::Failed(end), None));
    }
    let mut session = logged_in();
    session.logout();
    let said = [SessionCommand::Send(FromClient::Logout(())), SessionCommand::Close];
    assert_eq!((session.state(), commands(&mut session)), (SessionState::LoggedOut, said.to_vec()));
    session.handle_disconnected(ms(5), None);
    assert_eq!(session.state(), SessionState::LoggedOut, "the connection went because we did");
}

#[test]
fn a_server_that_claims_what_was_never_sent_is_broken() {
    let mut session = logged_in();
    let reply = HeartbeatReply { sent_micros: 0, held_micros: 0, server_micros: 0, received: 1 };
    session.handle_heartbeat(ms(1), &reply);
    assert_eq!(session.state(), SessionState::Failed(SessionEnd::Broken));
    let mut session = logged_in();
    session.handle_disconnected(ms(1), None);
    session.handle_timeout(ms(251));
    session.handle_connected(ms(251));
    session.handle_accepted(ms(251), &accepted(Continuity::Resumed { received: 5 }));
    assert_eq!(session.state(), SessionState::Failed(SessionEnd::Broken));
}

fn table() -> SessionTable {
    SessionTable::new(TableConfig { capacity: 3, ..TableConfig::new(SHARED) }).unwrap()
}

fn login(name: &str) -> Login {
    Login {
        protocol: PROTOCOL,
        shared: SHARED,
        name: PlayerName::new(name).unwrap(),
        resume: None,
        credentials: None,
    }
}

fn connection(number: u64) -> ConnectionId {
    ConnectionId::new(number)
}

fn token(number: u8) -> Token {
    Token::new([number; 16])
}

fn resume(name: &str, token: Token, received: u64) -> Login {
    Login {
        resume: Some(halftrack::wire::control::Resume { token, received: Some(received) }),
        ..login(name)
    }
}

#[test]
fn session_02_every_way_not_to_be_let_in_has_its_name() {
    let mut table = table();
    let mut try_in = |number: u8, login: &Login| {
        table
            .login(ms(0), connection(u64::from(number)), login, token(number))
            .map(|let_in| let_in.accepted.player)
    };
    assert_eq!(try_in(1, &login("Ada")), Ok(PlayerId::new(0)));
    let old = Login { protocol: PROTOCOL + 1, ..login("Bob") };
    assert_eq!(try_in(2, &old), Err(LoginRefused::Protocol { server: PROTOCOL }));
    assert_eq!(try_in(2, &Login { shared: SHARED + 1, ..login("Bob") }), Err(LoginRefused::Rules));
    assert_eq!(try_in(2, &login("Ada")), Err(LoginRefused::NameTaken));
    assert_eq!(try_in(2, &login("Bob")), Ok(PlayerId::new(1)));
    assert_eq!(try_in(3, &login("Cid")), Ok(PlayerId::new(2)));
    assert_eq!(try_in(4, &login("Dan")), Err(LoginRefused::Full));
}

#[test]
fn session_04_each_session_is_on_its_own() {
    let mut table = table();
    for (number, name) in [(1, "Ada"), (2, "Bob")] {
        table.login(ms(0), connection(u64::from(number)), &login(name), token(number)).unwrap();
    }
    let (ada, bob) = (PlayerId::new(0), PlayerId::new(1));
    table.heard(ms(5_999), bob);
    let expired = table.handle_timeout(ms(6_000));
    assert_eq!(
        (expired.connections, expired.players),
        (vec![connection(1)], vec![]),
        "Ada was silent, Bob was not"
    );
    assert_eq!((table.player_of(connection(1)), table.player_of(connection(2))), (None, Some(bob)));
    assert_eq!(table.handle_timeout(ms(11_000)).players, []);
    table.heard(ms(35_000), bob);
    assert_eq!(table.handle_timeout(ms(35_999)).players, [], "she may still come back");
    assert_eq!(table.handle_timeout(ms(36_000)).players, [ada], "and now no more");
    assert_eq!(table.players().map(|(player, _)| player).collect::<Vec<_>>(), [bob]);
}

/// The answer goes down with its connection: the client comes without a token, and is let in all the same.
#[test]
fn session_11_a_lost_answer_does_not_cost_the_name() {
    let mut table = table();
    let try_in = |table: &mut SessionTable, at: u64, number: u8| {
        let let_in = table.login(ms(at), connection(u64::from(number)), &login("Ada"), token(number));
        let_in.map(|let_in| (let_in.accepted.player.number(), let_in.accepted.token, let_in.superseded))
    };
    assert_eq!(try_in(&mut table, 0, 1), Ok((0, token(1), None)));
    assert_eq!(try_in(&mut table, 2_000, 2), Err(LoginRefused::NameTaken), "the answer may be on its way");
    table.disconnected(ms(2_100), connection(1));
    assert_eq!(try_in(&mut table, 2_100, 4), Ok((1, token(4), None)));
    assert_eq!(table.len(), 1);
    // A message confirms the session: its client has the token, and the name alone is not enough any more.
    assert!(table.heard(ms(2_200), PlayerId::new(1)));
    assert_eq!(try_in(&mut table, 9_000, 5), Err(LoginRefused::NameTaken));
    table.disconnected(ms(9_000), connection(4));
    assert_eq!(try_in(&mut table, 9_001, 6), Err(LoginRefused::NameTaken));
}

#[test]
fn session_12_a_login_by_name_gets_a_fresh_token_and_the_old_one_dies() {
    let mut table = table();
    // An attacker logs in by the name that a guest will use, keeps the token and goes without a word.
    let kept = table.login(ms(0), connection(1), &login("Ada"), token(1)).unwrap().accepted;
    table.disconnected(ms(1), connection(1));
    let guest = table.login(ms(2), connection(2), &login("Ada"), token(2)).unwrap();
    assert_eq!(guest.accepted.token, token(2), "not the token that the attacker kept");
    assert_eq!(guest.accepted.continuity, Continuity::New);
    assert_eq!((guest.replaced, guest.superseded), (Some(kept.player), None));
    assert_ne!(guest.accepted.player, kept.player);
    // The kept token opens nothing: not while the guest is in, not while it is away, not by another name.
    let mut steal = |name: &str, at: u64| {
        let taken = table.login(ms(at), connection(at), &resume(name, kept.token, 0), token(9));
        if at == 3 {
            table.heard(ms(3), guest.accepted.player);
            table.disconnected(ms(4), connection(2));
        }
        taken.map(|let_in| let_in.accepted.player)
    };
    assert_eq!(steal("Ada", 3), Err(LoginRefused::NameTaken));
    assert_eq!(steal("Ada", 5), Err(LoginRefused::NameTaken));
    assert_ne!(steal("Eve", 6), Ok(guest.accepted.player));
    let back = table.login(ms(7), connection(7), &resume("Ada", token(2), 0), token(7)).unwrap().accepted;
    assert_eq!((back.player, back.continuity), (guest.accepted.player, Continuity::Resumed { received: 0 }));
    // A token counts for the name that it was given to.
    let other = table.login(ms(8), connection(8), &resume("Bob", token(2), 0), token(8)).unwrap().accepted;
    assert_ne!(other.player, guest.accepted.player);
}

#[test]
fn session_12_a_resume_confirms_the_session() {
    let mut table = table();
    let ada = table.login(ms(0), connection(1), &login("Ada"), token(1)).unwrap().accepted;
    table.disconnected(ms(1), connection(1));
    table.login(ms(2), connection(2), &resume("Ada", ada.token, 0), token(2)).unwrap();
    table.disconnected(ms(3), connection(2));
    let by_name = table.login(ms(4), connection(3), &login("Ada"), token(3));
    assert_eq!(by_name, Err(LoginRefused::NameTaken), "its client has the token");
}

#[test]
fn session_06_a_token_brings_the_same_player_back() {
    let mut table = table();
    let let_in = table.login(ms(0), connection(1), &login("Ada"), token(1)).unwrap().accepted;
    table.get_mut(let_in.player).unwrap().log().push(b"event").unwrap();
    table.disconnected(ms(100), connection(1));
    let back = table.login(ms(20_000), connection(2), &resume("Ada", let_in.token, 0), token(2)).unwrap();
    assert_eq!(back.accepted.player, let_in.player);
    assert_eq!(back.accepted.continuity, Continuity::Resumed { received: 0 });
    assert_eq!(back.superseded, None);
    assert_eq!(table.get_mut(let_in.player).unwrap().log().poll(), Some(b"event".as_slice()));
    // The answer may be lost on its way: the token is good again.
    table.disconnected(ms(20_001), connection(2));
    let again = table.login(ms(20_002), connection(3), &resume("Ada", let_in.token, 0), token(3)).unwrap();
    assert_eq!(again.accepted.player, let_in.player);
    // A token that nobody gave begins a session, and says so.
    let stranger = table.login(ms(20_003), connection(4), &resume("Eve", token(99), 0), token(4)).unwrap();
    assert_eq!(stranger.accepted.continuity, Continuity::Restarted(Restart::Unknown));
    assert_ne!(stranger.accepted.player, let_in.player);
}

#[test]
fn session_07_the_newest_connection_wins() {
    let mut table = table();
    let let_in = table.login(ms(0), connection(1), &login("Ada"), token(1)).unwrap().accepted;
    let back = table.login(ms(10), connection(2), &resume("Ada", let_in.token, 0), token(2)).unwrap();
    assert_eq!(back.superseded, Some(connection(1)));
    assert_eq!(table.player_of(connection(2)), Some(let_in.player));
    assert_eq!(table.player_of(connection(1)), None, "what still comes by the old one is nobody's");
    table.disconnected(ms(20), connection(1));
    assert_eq!(table.player_of(connection(2)), Some(let_in.player), "and its end is nobody's business");
}

#[test]
fn session_09_a_log_that_overflowed_is_told_and_begins_anew() {
    let mut table =
        SessionTable::new(TableConfig { max_log_messages: 2, ..TableConfig::new(SHARED) }).unwrap();
    let let_in = table.login(ms(0), connection(1), &login("Ada"), token(1)).unwrap().accepted;
    table.disconnected(ms(1), connection(1));
    let log = table.get_mut(let_in.player).unwrap().log();
    assert!(log.push(b"1").is_ok() && log.push(b"2").is_ok() && log.push(b"3").is_err());
    let back = table.login(ms(2), connection(2), &resume("Ada", let_in.token, 0), token(2)).unwrap().accepted;
    assert_eq!(back.player, let_in.player, "the same player");
    assert_eq!(
        back.continuity,
        Continuity::Restarted(Restart::Overflow),
        "but told that something is missing"
    );

    let mut session = logged_in();
    session.log().push(b"shot").unwrap();
    session.handle_disconnected(ms(1), None);
    session.handle_timeout(ms(251));
    session.handle_connected(ms(251));
    session.handle_accepted(ms(251), &accepted(back.continuity));
    assert_eq!(session.state(), SessionState::LoggedIn);
    assert!(commands(&mut session).contains(&SessionCommand::Restarted(Restart::Overflow)));
    assert!(session.log().is_empty());
}

#[test]
fn session_02_a_client_whose_name_is_taken_tries_until_its_grace_is_over() {
    // It may be its own name: the server has yet to notice that the connection was cut.
    let mut session = ClientSession::new(config("Ada")).unwrap();
    session.connect(ms(0));
    session.handle_connected(ms(10));
    session.handle_disconnected(ms(20), None);
    let mut now = ms(20);
    while let Some(due) = session.poll_timeout() {
        now = due;
        session.handle_timeout(now);
        if session.state() == SessionState::Connecting {
            session.handle_connected(now);
            session.handle_refused(LoginRefused::NameTaken);
            assert_eq!(session.state(), SessionState::Reconnecting, "at {now:?}");
        }
    }
    let refused = SessionEnd::Refused(LoginRefused::NameTaken);
    assert_eq!((now, session.state()), (ms(30_020), SessionState::Failed(refused)));
}

#[test]
fn session_07_a_login_of_ones_own_that_comes_late_is_not_somebody_else() {
    let mut session = logged_in();
    session.handle_disconnected(ms(1_000), None);
    session.handle_timeout(ms(1_250));
    session.handle_connected(ms(1_250));
    // No answer: given up, while the login may still be under way.
    session.handle_timeout(ms(6_250));
    session.handle_timeout(session.poll_timeout().unwrap());
    session.handle_connected(ms(7_000));
    session.handle_accepted(ms(7_000), &accepted(Continuity::Resumed { received: 0 }));
    assert_eq!(session.state(), SessionState::LoggedIn);
    session.handle_disconnected(ms(7_100), Some(SessionEnd::Superseded));
    assert_eq!(session.state(), SessionState::Reconnecting, "by itself, as far as it can know");
    session.handle_timeout(session.poll_timeout().unwrap());
    session.handle_connected(ms(8_000));
    session.handle_accepted(ms(8_000), &accepted(Continuity::Resumed { received: 0 }));
    session.handle_disconnected(ms(8_100), Some(SessionEnd::Superseded));
    assert_eq!(session.state(), SessionState::Failed(SessionEnd::Superseded), "and this time not");
}

#[test]
fn session_09_an_answer_that_tells_of_new_numbers_may_be_lost() {
    let mut table =
        SessionTable::new(TableConfig { max_log_messages: 2, ..TableConfig::new(SHARED) }).unwrap();
    let let_in = table.login(ms(0), connection(1), &login("Ada"), token(1)).unwrap().accepted;
    table.heard(ms(0), let_in.player);
    let push = |table: &mut SessionTable, message: &[u8]| {
        table.get_mut(let_in.player).unwrap().log().push(message).is_ok()
    };
    assert!(push(&mut table, b"1") && push(&mut table, b"2") && !push(&mut table, b"3"));
    let back = |table: &mut SessionTable, number: u8| {
        let login = resume("Ada", let_in.token, 1);
        table.login(ms(1), connection(u64::from(number)), &login, token(number)).unwrap().accepted.continuity
    };
    let anew = Continuity::Restarted(Restart::Overflow);
    assert_eq!(back(&mut table, 2), anew);
    // Lost. Meanwhile something has a number that the client has seen another message by.
    assert!(push(&mut table, b"4"));
    assert_eq!(back(&mut table, 3), anew, "the one that it has received is none of these");
    table.get_mut(let_in.player).unwrap().log().acknowledge(0).unwrap();
    assert!(push(&mut table, b"5"));
    assert_eq!(table.get_mut(let_in.player).unwrap().log().poll(), Some(b"5".as_slice()));
    assert_eq!(back(&mut table, 4), Continuity::Resumed { received: 0 }, "now it knows");
}

#[test]
fn player_numbers_go_round_and_pass_over_whoever_is_there() {
    let mut table = table();
    let stays = table.login(ms(0), connection(0), &login("Stays"), token(0)).unwrap().accepted.player;
    let mut seen = vec![];
    for round in 1..=70_000 {
        let guest = table.login(ms(round), connection(round), &login("Guest"), token(1)).unwrap().accepted;
        assert_ne!(guest.player, stays);
        seen.push(guest.player.number());
        table.remove(guest.player);
    }
    assert_eq!(
        (seen[0], seen[65_534], seen[65_535]),
        (1, 65_535, 1),
        "all of them, and none of those in use"
    );
}

#[test]
fn player_numbers_are_not_used_again_soon() {
    let mut table = table();
    let mut last = None;
    for round in 0..5 {
        let let_in = table.login(ms(round), connection(round), &login("Ada"), token(1)).unwrap().accepted;
        assert_ne!(Some(let_in.player), last);
        last = Some(let_in.player);
        assert!(table.remove(let_in.player).is_some());
    }
}

proptest! {
    /// A client and a server that send to each other, over connections that are cut at any moment with anything on the
    /// way: every message arrives exactly once, in both directions, and there is never a second player.
    #[test]
    fn session_08_both_directions_survive_any_cuts(script in prop::collection::vec(0u8..10, 0..400)) {
        let mut world = World::new();
        for action in script {
            world.act(action);
        }
        world.settle();
        prop_assert_eq!(&world.client_got, &(0..world.server_sent).collect::<Vec<_>>());
        prop_assert_eq!(&world.server_got, &(0..world.client_sent).collect::<Vec<_>>());
        prop_assert_eq!(world.table.players().count(), 1);
    }
}

/// A client, a server, and what is on the way between them.
struct World {
    now: u64,
    session: ClientSession,
    table: SessionTable,
    connection: u64,
    /// What is on the way in the present connection; none when it is cut.
    up: Vec<Vec<u8>>,
    down: Vec<Vec<u8>>,
    alive: bool,
    client_sent: u32,
    server_sent: u32,
    client_got: Vec<u32>,
    server_got: Vec<u32>,
}

impl World {
    fn new() -> Self {
        let hour = Duration::from_secs(3_600);
        let mut session = ClientSession::new(SessionConfig {
            // The test cuts by itself, and as long as it likes.
            silence: hour,
            grace: hour,
            ..config("Ada")
        })
        .unwrap();
        session.connect(ms(0));
        let table = TableConfig { silence: hour, grace: hour, ..TableConfig::new(SHARED) };
        let mut world = Self {
            now: 0,
            session,
            table: SessionTable::new(table).unwrap(),
            connection: 0,
            up: vec![],
            down: vec![],
            alive: false,
            client_sent: 0,
            server_sent: 0,
            client_got: vec![],
            server_got: vec![],
        };
        world.settle();
        world
    }

    fn act(&mut self, action: u8) {
        self.now += 100;
        match action {
            0 | 1 => {
                self.session.log().push(&self.client_sent.to_le_bytes()).unwrap();
                self.client_sent += 1;
            }
            2 | 3 => {
                let message = self.server_sent.to_le_bytes();
                let (_, player) = self.player().unwrap();
                player.log().push(&message).unwrap();
                self.server_sent += 1;
            }
            4 | 5 => self.step(),
            6 => self.deliver_up(),
            7 => self.deliver_down(),
            8 => self.session.handle_timeout(ms(self.now)),
            _ => self.cut(),
        }
    }

    fn player(&mut self) -> Option<(PlayerId, &mut halftrack::session::Session)> {
        let player = self.table.players().next()?.0;
        self.table.get_mut(player).map(|session| (player, session))
    }

    fn cut(&mut self) {
        self.alive = false;
        self.up.clear();
        self.down.clear();
        self.table.disconnected(ms(self.now), connection(self.connection));
        self.session.handle_disconnected(ms(self.now), None);
    }

    /// Everybody does what is to be done, once.
    fn step(&mut self) {
        self.session.handle_timeout(ms(self.now));
        while let Some(command) = self.session.poll_command() {
            match command {
                SessionCommand::Connect => {
                    self.connection += 1;
                    (self.alive, self.up, self.down) = (true, vec![], vec![]);
                    self.session.handle_connected(ms(self.now));
                }
                SessionCommand::Close => self.cut(),
                SessionCommand::Send(message) if self.alive => {
                    let mut bytes = vec![];
                    assert!(message.append_to(&mut bytes));
                    self.up.push(bytes);
                }
                SessionCommand::Send(_) => {}
                SessionCommand::Restarted(why) => panic!("nothing was lost: {why:?}"),
            }
        }
        if self.session.state() == SessionState::LoggedIn && self.alive {
            while let Some(message) = self.session.log().poll().map(<[u8]>::to_vec) {
                let mut bytes = vec![];
                assert!(FromClient::ShootInput(message).append_to(&mut bytes));
                self.up.push(bytes);
            }
        }
        let here = connection(self.connection);
        let mut out = vec![];
        if let Some((_, player)) = self.player().filter(|(_, player)| player.connection() == Some(here)) {
            while let Some(message) = player.log().poll().map(<[u8]>::to_vec) {
                let mut bytes = vec![];
                assert!(FromServer::CombatEvent(message).append_to(&mut bytes));
                out.push(bytes);
            }
        }
        self.down.extend(out);
    }

    fn deliver_up(&mut self) {
        if self.up.is_empty() {
            return;
        }
        let bytes = self.up.remove(0);
        let here = connection(self.connection);
        match read(&bytes, FromClient::read) {
            FromClient::Login(login) => {
                let let_in = self.table.login(ms(self.now), here, &login, token(1)).unwrap();
                self.reply(&FromServer::LoginAccepted(let_in.accepted));
            }
            FromClient::ShootInput(message) => {
                let (_, player) = self.player().unwrap();
                player.log().receive();
                self.server_got.push(u32::from_le_bytes(message.try_into().unwrap()));
            }
            FromClient::Heartbeat(heartbeat) => {
                let (_, player) = self.player().unwrap();
                player.log().acknowledge(heartbeat.received).unwrap();
                let received = player.log().received();
                let reply = HeartbeatReply {
                    sent_micros: heartbeat.sent_micros,
                    held_micros: 0,
                    server_micros: 0,
                    received,
                };
                self.reply(&FromServer::HeartbeatReply(reply));
            }
            other => panic!("{other:?}"),
        }
    }

    fn reply(&mut self, message: &FromServer) {
        let mut bytes = vec![];
        assert!(message.append_to(&mut bytes));
        self.down.push(bytes);
    }

    fn deliver_down(&mut self) {
        if self.down.is_empty() {
            return;
        }
        let bytes = self.down.remove(0);
        match read(&bytes, FromServer::read) {
            FromServer::LoginAccepted(accepted) => self.session.handle_accepted(ms(self.now), &accepted),
            FromServer::HeartbeatReply(reply) => self.session.handle_heartbeat(ms(self.now), &reply),
            FromServer::CombatEvent(message) => {
                self.session.log().receive();
                self.client_got.push(u32::from_le_bytes(message.try_into().unwrap()));
            }
            other => panic!("{other:?}"),
        }
    }

    /// Until nothing is left to be said.
    fn settle(&mut self) {
        for _ in 0..40 {
            self.now += 500;
            self.step();
            while !self.up.is_empty() || !self.down.is_empty() {
                self.deliver_up();
                self.deliver_down();
            }
        }
        assert_eq!(self.session.state(), SessionState::LoggedIn);
    }
}

fn read<T>(bytes: &[u8], read: fn(halftrack::wire::Frame<'_>) -> Result<T, halftrack::wire::WireError>) -> T {
    let mut reader = halftrack::wire::FrameReader::default();
    let frame = reader.next(&mut &*bytes).unwrap().unwrap();
    read(frame).unwrap()
}
