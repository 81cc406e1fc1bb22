//! A player whose process crashed comes back in another one, with the token that the first one saved.

use std::time::Duration;

use crate::rig::carts::{config, nothing, rig, shuttle};
use crate::rig::{Rig, Way, ms};
use halftrack::cart::{Cart, Rails};
use halftrack::client::{ClientConfig, ClientEvent};
use halftrack::session::{DisconnectReason, SessionEnd, SessionState};
use halftrack::wire::control::{LoginRefused, Restart};
use halftrack::{Cause, Status, Token};

const NAME_TAKEN: SessionState = SessionState::Failed(SessionEnd::Refused(LoginRefused::NameTaken));

fn with_token(name: &str, token: Option<Token>) -> ClientConfig<Cart> {
    let mut config = config(name);
    config.session.resume = token;
    config
}

/// The process of a client ends without a word, and neither side's connection is told.
fn crash(rig: &mut Rig<Rails>, seat: usize) {
    rig.seats[seat].frozen_until = rig.now + Duration::from_secs(100_000);
}

fn restarts(rig: &Rig<Rails>, seat: usize) -> Vec<Restart> {
    let events = rig.seats[seat].events.iter();
    events
        .filter_map(|event| if let ClientEvent::Restarted(why) = event { Some(*why) } else { None })
        .collect()
}

fn bells(rig: &Rig<Rails>, seat: usize) -> Vec<u8> {
    let events = rig.seats[seat].events.iter();
    events
        .filter_map(|event| if let ClientEvent::Game(bytes) = event { Some(bytes[2]) } else { None })
        .collect()
}

#[test]
fn session_13_a_saved_token_brings_another_process_back_to_its_body_at_once() {
    let mut rig = rig();
    let way = Way::delayed(ms(20));
    let ada = rig.join(config("Ada"), way);
    let bob = rig.join(config("Bob"), way);
    assert_eq!(rig.seats[ada].client.resume_token(), None, "nobody let it in yet");
    rig.run(Duration::from_secs(3), shuttle);
    for bell in 0..3 {
        rig.seats[bob].client.order(rig.now, &[bell]).unwrap();
    }
    rig.run(Duration::from_secs(2), shuttle);
    let player = rig.seats[ada].client.player().unwrap();
    let token = rig.seats[ada].client.resume_token().unwrap();
    let saved = token.reveal();
    assert_eq!(saved.parse(), Ok(token), "as text, for a file");

    // The server has not noticed, and the name alone does not bring Ada back.
    crash(&mut rig, ada);
    rig.run(ms(200), shuttle);
    let before = *rig.server.body_of(player).unwrap();
    let stranger = rig.join(config("Ada"), way);
    rig.run(ms(200), nothing);
    assert_eq!(rig.seats[stranger].client.state(), NAME_TAKEN);

    let back = rig.join(with_token("Ada", saved.parse().ok()), way);
    rig.run(ms(300), nothing);
    let seat = &rig.seats[back];
    assert_eq!((seat.client.state(), seat.client.player()), (SessionState::LoggedIn, Some(player)));
    assert_eq!(restarts(&rig, back), [Restart::Reclaimed]);
    assert_eq!(rig.seats[ada].closed, [DisconnectReason::Superseded], "the crashed process's connection");
    assert_eq!(rig.server.bodies().count(), 2);
    let now = *rig.server.body_of(player).unwrap();
    assert!((now.x - before.x).abs() < 3.0, "the same cart, where it was: {} and {}", before.x, now.x);

    // It plays: exactly, among the others, and each message comes once across a cut.
    rig.run(Duration::from_secs(2), shuttle);
    for bell in 3..6 {
        rig.seats[bob].client.order(rig.now, &[bell]).unwrap();
        rig.seats[back].client.order(rig.now, &[bell + 100]).unwrap();
        rig.run(ms(100), shuttle);
        rig.cut(back);
        rig.run(Duration::from_secs(1), shuttle);
    }
    let seat = &rig.seats[back];
    assert_eq!(bells(&rig, back), [3, 103, 4, 104, 5, 105]);
    let reconciler = seat.client.reconciler().unwrap();
    assert_eq!(reconciler.predictor().status(), Status::Predicting);
    assert_eq!(reconciler.stats().of(Cause::Unexplained), 0, "{:?}", reconciler.stats());
    assert_eq!((seat.client.players().count(), seat.client.remotes().iter().count()), (2, 1));
    assert_eq!(restarts(&rig, back), [Restart::Reclaimed], "cuts are resumed as ever");
    assert_eq!(seat.client.resume_token(), Some(token), "and it is good for the next crash");
}

/// A token that the server does not know, or no longer, is a login like any other, and the host hears why.
#[test]
fn session_13_a_token_that_is_wrong_or_expired_is_a_new_login_by_name() {
    let mut rig = rig();
    let way = Way::delayed(ms(20));
    let ada = rig.join(config("Ada"), way);
    rig.run(Duration::from_secs(1), shuttle);
    let (player, token) = (rig.seats[ada].client.player(), rig.seats[ada].client.resume_token());

    let eve = rig.join(with_token("Eve", Some(Token::new([9; 16]))), way);
    let thief = rig.join(with_token("Mallory", token), way);
    let guess = rig.join(with_token("Ada", Some(Token::new([9; 16]))), way);
    rig.run(ms(300), shuttle);
    assert_eq!(rig.seats[guess].client.state(), NAME_TAKEN, "a wrong token is no way to a name");
    for seat in [eve, thief] {
        assert_eq!(rig.seats[seat].client.state(), SessionState::LoggedIn);
        assert_ne!(rig.seats[seat].client.player(), player, "a token counts for its own name only");
        assert_eq!(restarts(&rig, seat), [Restart::Unknown]);
    }

    crash(&mut rig, ada);
    // Six seconds of silence, thirty of grace.
    rig.run(Duration::from_secs(37), nothing);
    let late = rig.join(with_token("Ada", token), way);
    rig.run(ms(300), nothing);
    assert_eq!(rig.seats[late].client.state(), SessionState::LoggedIn);
    assert_ne!(rig.seats[late].client.player(), player, "the grace is over");
    assert_eq!(restarts(&rig, late), [Restart::Unknown]);
    assert_ne!(rig.seats[late].client.resume_token(), token, "a fresh one");
}

/// A session that is over has no token that is worth saving, and a client that comes again does not use the old one.
#[test]
fn a_session_that_is_over_has_no_token() {
    let mut rig = rig();
    let ada = rig.join(config("Ada"), Way::delayed(ms(20)));
    rig.run(Duration::from_secs(1), nothing);
    let token = rig.seats[ada].client.resume_token();
    let now = rig.now;
    rig.seats[ada].client.logout(now);
    assert_eq!(rig.seats[ada].client.resume_token(), None);
    rig.run(ms(200), nothing);
    let back = rig.join(with_token("Ada", token), Way::delayed(ms(20)));
    rig.run(ms(300), nothing);
    assert_eq!(restarts(&rig, back), [Restart::Unknown], "logged out is gone");
    let now = rig.now;
    rig.seats[back].client.logout(now);
    rig.run(ms(200), nothing);
    let now = rig.now;
    rig.seats[back].client.connect(now);
    rig.run(ms(300), nothing);
    assert_eq!(rig.seats[back].client.state(), SessionState::LoggedIn);
    assert_eq!(restarts(&rig, back), [Restart::Unknown], "the second time it was a plain login");
}

/// A server that could not be reached at first is asked for the session again, not for a new one.
#[test]
fn a_saved_token_is_kept_until_a_login_was_answered() {
    let mut rig = rig();
    let ada = rig.join(config("Ada"), Way::delayed(ms(20)));
    rig.run(Duration::from_secs(1), nothing);
    let (player, token) = (rig.seats[ada].client.player(), rig.seats[ada].client.resume_token());
    crash(&mut rig, ada);
    let back = rig.join(with_token("Ada", token), Way::delayed(ms(20)));
    for _ in 0..3 {
        rig.run(ms(30), nothing);
        rig.cut(back);
        rig.run(ms(600), nothing);
        assert_eq!(rig.seats[back].client.resume_token(), token);
    }
    rig.run(Duration::from_secs(3), nothing);
    assert_eq!(
        (rig.seats[back].client.state(), rig.seats[back].client.player()),
        (SessionState::LoggedIn, player)
    );
}
