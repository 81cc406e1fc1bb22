//! Signed tokens that are not good: on a server that asks for them.

use super::logins::{Way, squat};
use crate::attack::{Failed, Field, Outcome, attacks};
use crate::bytes::LoginBytes;
use crate::metrics::Counter;
use crate::peer::{Login, Peer};
use crate::tokens::{Keys, seconds};

attacks! { Tokens:
    "token-missing", "no token, an empty one, and garbage in its place" => token_missing;
    "token-forged", "signed with another key, without a key, or changed" => token_forged;
    "token-expired", "a token that was good until a second ago" => token_expired;
    "token-early", "a token that is not good yet" => token_early;
    "token-other-audience", "a token for another service" => token_other_audience;
    "token-critical", "a token whose header asks for an extension" => token_critical;
    "token-outlived", "a token that expires in the match: to resume it, and to begin another" => token_outlived;
    "token-other-room", "a token for another room" => token_other_room;
    "token-other-player", "a token of somebody else" => token_other_player;
    "token-replayed", "a stolen token, used while its player is in" => token_replayed;
    "rooms-without-token", "connections by every link that each name a room, without a login and with one that has no token" => rooms_without_token;
}

/// Tries to come in, and expects not to.
async fn refused(field: &Field, outcome: &mut Outcome, login: &LoginBytes) -> Result<(), Failed> {
    let mut peer = Peer::connect(field).await?;
    let answer = peer.log_in(login).await?;
    outcome.sent("logins", 1);
    outcome.check(
        matches!(answer, Login::Refused(_)),
        format!("let in, or not told why not: {}", answer.told()),
    );
    outcome.saw(answer.told());
    outcome.expect(Counter::REFUSED, 1);
    Ok(())
}

async fn token_missing(field: &Field) -> Result<Outcome, Failed> {
    let mut outcome = Outcome::default();
    let login = LoginBytes::new(field, "nobody");
    refused(field, &mut outcome, &login).await?;
    let long = "a".repeat(3_000);
    for token in ["", ".", "..", "a.b.c", "null", "\u{202e}", &long] {
        refused(field, &mut outcome, &login.clone().with_token(token)).await?;
    }
    Ok(outcome)
}

async fn token_forged(field: &Field) -> Result<Outcome, Failed> {
    let mut outcome = Outcome::default();
    let (login, other) = (LoginBytes::new(field, "forger"), Keys::new()?);
    let good = field.server.keys.good("forger");
    let claims = r#"{"sub":"forger","exp":99999999999}"#;
    let mut tokens = vec![other.good("forger"), good[..good.len() - 2].to_owned(), format!("{good}A")];
    for algorithm in ["none", "HS256", "eddsa", "RS256"] {
        tokens.push(field.server.keys.token(algorithm, claims));
    }
    // Without a signature, and with the claims of another token.
    tokens.push(good.rsplit_once('.').map_or(String::new(), |(signed, _)| format!("{signed}.")));
    let (header, rest) = good.split_once('.').unwrap_or_default();
    let (_, signature) = rest.split_once('.').unwrap_or_default();
    let changed = data_encoding::BASE64URL_NOPAD.encode(claims.as_bytes());
    tokens.push(format!("{header}.{changed}.{signature}"));
    for token in tokens {
        refused(field, &mut outcome, &login.clone().with_token(&token)).await?;
    }
    Ok(outcome)
}

async fn token_expired(field: &Field) -> Result<Outcome, Failed> {
    let mut outcome = Outcome::default();
    let keys = &field.server.keys;
    let claims = [r#"{"sub":"late","exp":0}"#, r#"{"sub":"late"}"#, r#"{"sub":"late","exp":-1}"#];
    let tokens = claims.map(|claims| keys.token("EdDSA", claims));
    for token in tokens.into_iter().chain([keys.expired("late")]) {
        refused(field, &mut outcome, &LoginBytes::new(field, "late").with_token(&token)).await?;
    }
    Ok(outcome)
}

async fn token_early(field: &Field) -> Result<Outcome, Failed> {
    let mut outcome = Outcome::default();
    for ahead in [60, 3_600, 1 << 40] {
        let begins = format!(r#","nbf":{}"#, seconds() + ahead);
        let token = field.server.keys.lasting("early", 1 << 41, &begins);
        refused(field, &mut outcome, &LoginBytes::new(field, "early").with_token(&token)).await?;
    }
    Ok(outcome)
}

async fn token_other_audience(field: &Field) -> Result<Outcome, Failed> {
    let mut outcome = Outcome::default();
    for audience in [r#","aud":"shop""#, r#","aud":["shop","forum"]"#, r#","aud":[]"#, r#","aud":null"#] {
        let token = field.server.keys.lasting("buyer", 60, audience);
        refused(field, &mut outcome, &LoginBytes::new(field, "buyer").with_token(&token)).await?;
    }
    Ok(outcome)
}

async fn token_critical(field: &Field) -> Result<Outcome, Failed> {
    let mut outcome = Outcome::default();
    let claims = r#"{"sub":"odd","exp":99999999999}"#;
    for more in [r#""crit":["exp"]"#, r#""crit":["b64"],"b64":false"#, r#""crit":[]"#] {
        let token = field.server.keys.with_header(&format!(r#"{{"alg":"EdDSA",{more}}}"#), claims);
        refused(field, &mut outcome, &LoginBytes::new(field, "odd").with_token(&token)).await?;
    }
    Ok(outcome)
}

async fn token_outlived(field: &Field) -> Result<Outcome, Failed> {
    let mut outcome = Outcome::default();
    let until = seconds() + 2;
    let mut login =
        LoginBytes::new(field, "outlived").with_token(&field.server.keys.lasting("outlived", 2, ""));
    let mut peer = Peer::connect(field).await?;
    let Login::In { player, token, .. } = peer.log_in(&login).await? else {
        return Err("a good token was refused".into());
    };
    while seconds() <= until {
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    }
    refused(field, &mut outcome, &LoginBytes { name: b"other".to_vec(), ..login.clone() }).await?;
    refused(field, &mut outcome, &login).await?;
    // Its player is cut, and comes back.
    login.resume = Some(token);
    let mut back = Peer::connect(field).await?;
    let answer = back.log_in(&login).await?;
    let same = matches!(answer, Login::In { player: again, .. } if again == player);
    outcome.check(same, format!("a player was kept out of its own match: {}", answer.told()));
    outcome.saw(format!("with its session: {}", answer.told()));
    back.leave().await;
    Ok(outcome)
}

async fn token_other_room(field: &Field) -> Result<Outcome, Failed> {
    let mut outcome = Outcome::default();
    let token = field.server.keys.for_room("guest", "duel");
    let login = LoginBytes::new(field, "guest").with_token(&token);
    refused(field, &mut outcome, &login).await?;
    for room in ["duel-2", "DUEL"] {
        let login = LoginBytes { room: room.as_bytes().to_vec(), ..login.clone() };
        refused(field, &mut outcome, &login).await?;
    }
    // Where it is for, it is good.
    let mut peer = Peer::connect(field).await?;
    let answer = peer.log_in(&LoginBytes { room: b"duel".to_vec(), ..login }).await?;
    outcome.check(matches!(answer, Login::In { .. }), "a good token was refused");
    peer.leave().await;
    Ok(outcome)
}

async fn token_other_player(field: &Field) -> Result<Outcome, Failed> {
    let mut outcome = Outcome::default();
    let keys = &field.server.keys;
    for (of, name) in [("Ada", "Eve"), ("Eve", "Honest 0"), ("eve", "Eve"), ("Eve ", "Eve"), ("", "Eve")] {
        refused(field, &mut outcome, &LoginBytes::new(field, name).with_token(&keys.good(of))).await?;
    }
    Ok(outcome)
}

async fn token_replayed(field: &Field) -> Result<Outcome, Failed> {
    let mut outcome = Outcome::default();
    let keys = &field.server.keys;
    // While its player is in, it brings in nobody else.
    for number in 0..crate::honest::COUNT {
        let name = format!("Honest {number}");
        refused(field, &mut outcome, &LoginBytes::new(field, &name).with_token(&keys.good(&name))).await?;
    }
    // Afterwards it does, until it expires: a token is for whoever has it.
    let login = LoginBytes::new(field, "again").with_token(&keys.good("again"));
    for _ in 0..2 {
        let mut peer = Peer::connect(field).await?;
        let answer = peer.log_in(&login).await?;
        outcome.check(matches!(answer, Login::In { .. }), "a good token was refused");
        outcome.saw(format!("after its player has left: {}", answer.told()));
        peer.leave().await;
    }
    Ok(outcome)
}

async fn rooms_without_token(field: &Field) -> Result<Outcome, Failed> {
    let mut outcome = Outcome::default();
    let without = LoginBytes::new(field, "squatter").frame();
    for (number, way) in [Way::Quic, Way::WebTransport, Way::WebSocket].into_iter().enumerate() {
        let (name, room) = (format!("good {number}"), format!("good-{number}"));
        let token = field.server.keys.for_room(&name, &room);
        let good = LoginBytes { room: room.into_bytes(), ..LoginBytes::new(field, &name).with_token(&token) };
        drop(squat(field, &mut outcome, way, &[], &good).await?);
        drop(squat(field, &mut outcome, way, &without, &good).await?);
    }
    outcome.expect(Counter::REFUSED, 3 * 40);
    Ok(outcome)
}
