use super::*;
use crate::lane::{Link, MessageKind};
use crate::wire::control::{Continuity, PROTOCOL, Resume};
use crate::wire::{Frame, FrameReader};

const SHARED: u64 = 7;

fn at(millis: u64) -> Timestamp {
    Timestamp::ZERO + Duration::from_millis(millis)
}

fn id(number: u64) -> ConnectionId {
    ConnectionId::new(number)
}

fn token(number: u64) -> Token {
    Token::new([u8::try_from(number).unwrap(); 16])
}

fn login(name: &str, resume: Option<Resume>) -> Login {
    let name = PlayerName::new(name).unwrap();
    Login { protocol: PROTOCOL, shared: SHARED, name, resume, credentials: None }
}

/// A server, and a host that lets everybody in.
struct Host {
    sessions: SessionServer,
    events: Vec<SessionEvent>,
}

impl Host {
    fn new(change: impl FnOnce(&mut SessionServerConfig)) -> Self {
        let mut config = SessionServerConfig::new(SHARED);
        change(&mut config);
        Self { sessions: SessionServer::new(config).unwrap(), events: vec![] }
    }

    fn connect(&mut self, now: Timestamp, number: u64) {
        self.sessions.handle_connected(now, id(number), SyncLink::Present, token(number));
    }

    /// Messages arrive in one piece.
    fn receive(&mut self, now: Timestamp, number: u64, messages: &[FromClient]) {
        let mut stream = vec![];
        assert!(messages.iter().all(|message| message.append_to(&mut stream)));
        let mut bytes = stream.as_slice();
        while let Some(event) = self.sessions.handle_stream(now, id(number), &mut bytes) {
            if let SessionEvent::LoginRequested { connection, login } = &event
                && let Some(let_in) = self.sessions.log_in(now, *connection, login)
            {
                self.sessions.send(now, *connection, &FromServer::LoginAccepted(let_in.accepted));
                self.sessions.finish_login(now, let_in.accepted.player);
            }
            self.events.push(event);
        }
    }

    fn log_in(&mut self, now: Timestamp, number: u64, name: &str, resume: Option<Resume>) -> PlayerId {
        self.connect(now, number);
        self.receive(now, number, &[FromClient::Login(login(name, resume))]);
        self.sessions.player_of(id(number)).expect("logged in")
    }

    fn sent(&mut self, number: u64) -> Vec<FromServer> {
        let mut stream = vec![];
        self.sessions.poll_stream(id(number), &mut stream);
        let (mut bytes, mut reader, mut sent) = (stream.as_slice(), FrameReader::default(), vec![]);
        while let Some(frame) = reader.next(&mut bytes).unwrap() {
            sent.push(FromServer::read(frame).unwrap());
        }
        sent
    }

    fn closes(&mut self) -> Vec<(ConnectionId, DisconnectReason)> {
        core::iter::from_fn(|| self.sessions.poll_close()).collect()
    }

    fn take_events(&mut self) -> Vec<SessionEvent> {
        self.events.extend(core::iter::from_fn(|| self.sessions.poll_event()));
        core::mem::take(&mut self.events)
    }

    fn tell(&mut self, now: Timestamp, player: PlayerId, event: &[u8]) {
        let mut frame = vec![];
        assert!(Frame { kind: FromServer::COMBAT_EVENT, body: event }.append_to(&mut frame));
        self.sessions.tell(now, player, &frame);
    }
}

#[test]
fn refused_login_says_why_and_closes() {
    let mut host = Host::new(|config| config.table.capacity = 1);
    host.log_in(at(0), 1, "Ada", None);
    host.connect(at(0), 2);
    host.receive(at(0), 2, &[FromClient::Login(login("Bob", None))]);
    assert_eq!(host.sent(2), [FromServer::LoginRefused(LoginRefused::Full)]);
    assert_eq!(host.closes(), [(id(2), DisconnectReason::Refused)]);
    assert_eq!(host.sessions.player_of(id(2)), None);
    assert_eq!((host.sessions.stats().logins, host.sessions.stats().refused), (1, 1));
}

#[test]
fn silent_connection_is_closed_and_its_player_leaves_after_the_grace() {
    let mut host = Host::new(|config| {
        (config.table.silence, config.table.grace) = (Duration::from_secs(6), Duration::from_secs(30));
    });
    let player = host.log_in(at(0), 1, "Ada", None);
    host.take_events();
    host.sessions.handle_timeout(at(5_999));
    assert_eq!(host.closes(), []);
    host.sessions.handle_timeout(at(6_000));
    assert_eq!(host.closes(), [(id(1), DisconnectReason::Silent)]);
    assert_eq!(host.take_events(), [SessionEvent::Away { player }]);
    assert_eq!(host.sessions.connection_of(player), None);
    host.sessions.handle_timeout(at(35_999));
    assert_eq!(host.take_events(), []);
    host.sessions.handle_timeout(at(36_000));
    assert_eq!(host.take_events(), [SessionEvent::Left { player }]);
    assert!(host.sessions.is_empty());
}

#[test]
fn connection_that_does_not_log_in_is_closed_at_its_deadline() {
    let mut host = Host::new(|config| config.login = Duration::from_secs(5));
    host.connect(at(0), 1);
    host.log_in(at(0), 2, "Ada", None);
    host.sessions.handle_timeout(at(4_999));
    assert_eq!(host.closes(), []);
    host.sessions.handle_timeout(at(5_000));
    assert_eq!(host.closes(), [(id(1), DisconnectReason::LoginTimeout)]);
    host.receive(at(5_000), 1, &[FromClient::Login(login("Bob", None))]);
    assert_eq!(host.sessions.players().count(), 1, "a login after the close has no effect");
}

#[test]
fn resume_by_a_second_connection_closes_the_first() {
    let mut host = Host::new(|_| ());
    let player = host.log_in(at(0), 1, "Ada", None);
    host.take_events();
    let resume = Some(Resume { token: token(1), received: Some(0) });
    assert_eq!(host.log_in(at(10), 2, "Ada", resume), player);
    assert_eq!(host.closes(), [(id(1), DisconnectReason::Superseded)]);
    assert_eq!(host.sessions.connection_of(player), Some(id(2)));
    assert_eq!(host.sessions.player_of(id(1)), None);
    let events = host.take_events();
    assert!(matches!(
        &events[..],
        [SessionEvent::LoginRequested { .. }, SessionEvent::Away { player: away }] if *away == player
    ));
    host.sessions.handle_closed(id(1));
    assert_eq!(host.sessions.connection_of(player), Some(id(2)), "the late close is the old connection's");
}

#[test]
fn resume_sends_the_unacknowledged_messages_once() {
    let mut host = Host::new(|_| ());
    let player = host.log_in(at(0), 1, "Ada", None);
    host.tell(at(0), player, b"a");
    host.sessions.handle_disconnected(at(1), id(1));
    host.tell(at(2), player, b"b");
    let resume = Some(Resume { token: token(1), received: Some(1) });
    host.log_in(at(3), 2, "Ada", resume);
    let sent = host.sent(2);
    assert!(matches!(&sent[0], FromServer::LoginAccepted(accepted)
        if accepted.continuity == Continuity::Resumed { received: 0 }));
    assert_eq!(sent[1..], [FromServer::CombatEvent(b"b".to_vec())]);
}

#[test]
fn events_of_one_message_come_before_the_next_message() {
    let mut host = Host::new(|_| ());
    host.connect(at(0), 1);
    let order = |number| FromClient::ShootInput(vec![number]);
    host.receive(
        at(0),
        1,
        &[FromClient::Login(login("Ada", None)), order(1), order(2), FromClient::Logout(())],
    );
    let player = PlayerId::new(0);
    let ordered = |number| SessionEvent::Order { connection: id(1), player, bytes: vec![number] };
    assert_eq!(
        host.take_events()[1..],
        [SessionEvent::Confirmed { player }, ordered(1), ordered(2), SessionEvent::Left { player }]
    );
    assert_eq!(host.closes(), [(id(1), DisconnectReason::LoggedOut)]);
}

#[test]
fn message_before_the_login_is_malformed_and_nothing_after_it_is_read() {
    let mut host = Host::new(|_| ());
    host.connect(at(0), 1);
    let messages = [FromClient::ShootInput(vec![1]), FromClient::Login(login("Ada", None))];
    host.receive(at(0), 1, &messages);
    assert_eq!(host.take_events(), []);
    assert_eq!(host.closes(), [(id(1), DisconnectReason::Malformed)]);
}

#[test]
fn acknowledgement_of_unsent_messages_removes_the_player() {
    let mut host = Host::new(|_| ());
    let player = host.log_in(at(0), 1, "Ada", None);
    host.take_events();
    host.receive(at(0), 1, &[FromClient::Heartbeat(Heartbeat { sent_micros: 0, received: 1 })]);
    assert_eq!(host.take_events(), [SessionEvent::Confirmed { player }, SessionEvent::Left { player }]);
    assert_eq!(host.closes(), [(id(1), DisconnectReason::Malformed)]);
    assert!(host.sessions.is_empty());
}

#[test]
fn slow_reader_is_closed_and_may_resume() {
    let mut host = Host::new(|config| config.max_stream_bytes = 16_384);
    let player = host.log_in(at(0), 1, "Ada", None);
    host.take_events();
    let event = [0; 4_000];
    (0..4).for_each(|_| host.tell(at(0), player, &event));
    assert_eq!(host.closes(), [], "just inside");
    host.tell(at(0), player, &event);
    assert_eq!(host.closes(), [(id(1), DisconnectReason::TooSlow)]);
    assert_eq!(host.take_events(), [SessionEvent::Away { player }]);
    host.log_in(at(1), 2, "Ada", Some(Resume { token: token(1), received: Some(5) }));
    assert_eq!(host.sessions.connection_of(player), Some(id(2)));
}

#[test]
fn drain_warns_players_and_lets_only_resumes_in() {
    let mut host = Host::new(|_| ());
    host.log_in(at(0), 1, "Ada", None);
    host.sent(1);
    host.sessions.drain(at(0), Duration::from_secs(9));
    assert!(matches!(&host.sent(1)[..], [FromServer::Closing(closing)] if closing.within_millis == 9_000));
    host.connect(at(0), 2);
    host.receive(at(0), 2, &[FromClient::Login(login("Bob", None))]);
    assert_eq!(host.sent(2), [FromServer::LoginRefused(LoginRefused::Draining)]);
    let resume = Some(Resume { token: token(1), received: Some(0) });
    host.log_in(at(1_000), 3, "Ada", resume);
    assert!(matches!(&host.sent(3)[..], [FromServer::LoginAccepted(_), FromServer::Closing(closing)]
        if closing.within_millis == 8_000));
}

#[test]
fn stop_closes_every_connection_and_later_ones() {
    let mut host = Host::new(|_| ());
    host.connect(at(0), 1);
    host.log_in(at(0), 2, "Ada", None);
    host.sessions.stop(at(0));
    host.connect(at(0), 3);
    let stopped = [1, 2, 3].map(|number| (id(number), DisconnectReason::Stopped));
    assert_eq!(host.closes(), stopped);
}

#[test]
fn connections_beyond_the_limit_are_closed() {
    let mut host = Host::new(|config| config.max_connections = 2);
    (1..=3).for_each(|number| host.connect(at(0), number));
    assert_eq!(host.closes(), [(id(3), DisconnectReason::TooMany)]);
    host.sessions.handle_closed(id(3));
    host.sessions.handle_disconnected(at(0), id(1));
    host.connect(at(0), 4);
    assert_eq!(host.closes(), [], "a place is free again");
}

#[test]
fn client_that_misses_snapshots_gets_them_by_the_reliable_link() {
    let mut host = Host::new(|_| ());
    host.log_in(at(0), 1, "Ada", None);
    let link = |host: &Host| host.sessions.router(id(1)).unwrap().link(MessageKind::PlayerState);
    assert_eq!(link(&host), Link::Sync);
    let heard = |arriving| FromClient::SyncHeard(crate::wire::control::SyncHeard { arriving });
    host.receive(at(0), 1, &[heard(false)]);
    assert_eq!(link(&host), Link::Reliable);
    host.receive(at(0), 1, &[heard(true)]);
    assert_eq!(link(&host), Link::Sync);
    assert_eq!(host.sessions.stats().sync_down_dead, 1);
}
