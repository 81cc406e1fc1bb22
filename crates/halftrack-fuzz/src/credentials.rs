//! Signed tokens: nobody comes in by one that was not signed for them.

use std::fs;
use std::path::PathBuf;
use std::sync::LazyLock;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use data_encoding::BASE64;
use halftrack::PlayerName;
use halftrack_io::RoomName;
use ring::signature::{Ed25519KeyPair, KeyPair as _};

use crate::script::Script;
use crate::token::{Bearer, Claims, Signer, Stay, Verifier};

/// When tokens are checked, seconds since 1970.
const NOW: u64 = 1_800_000_000;

struct Keys {
    signer: Signer,
    verifier: Verifier,
    name: PlayerName,
    room: RoomName,
}

/// The same keys every time, so that what fails fails again.
static KEYS: LazyLock<Keys> = LazyLock::new(|| {
    const PRIVATE: [u8; 16] = [0x30, 0x2e, 2, 1, 0, 0x30, 5, 6, 3, 0x2b, 0x65, 0x70, 4, 0x22, 4, 0x20];
    const PUBLIC: [u8; 12] = [0x30, 0x2a, 0x30, 5, 6, 3, 0x2b, 0x65, 0x70, 3, 0x21, 0];
    let seed = [7; 32];
    let pair = Ed25519KeyPair::from_seed_unchecked(&seed).expect("any 32 bytes are a seed");
    let folder = std::env::temp_dir().join(format!("halftrack-fuzz-{}", std::process::id()));
    fs::create_dir_all(&folder).expect("a folder for the keys");
    let private = write(&folder.join("key.pem"), "PRIVATE KEY", &[&PRIVATE[..], &seed].concat());
    let public = [&PUBLIC[..], pair.public_key().as_ref()].concat();
    let public = write(&folder.join("key.pub.pem"), "PUBLIC KEY", &public);
    let keys = Keys {
        signer: Signer::from_file(&private).expect("a private key"),
        verifier: Verifier::from_file(&public, None).expect("a public key"),
        name: PlayerName::new("Ada").expect("a name"),
        room: RoomName::new("duel").expect("a name"),
    };
    let _ = fs::remove_dir_all(&folder);
    keys
});

fn write(path: &std::path::Path, label: &str, der: &[u8]) -> PathBuf {
    let text = format!("-----BEGIN {label}-----\n{}\n-----END {label}-----\n", BASE64.encode(der));
    fs::write(path, text).expect("a key's file");
    path.to_owned()
}

fn is_let_in(token: &str) -> bool {
    let now: SystemTime = UNIX_EPOCH + Duration::from_secs(NOW);
    let bearer = Bearer { name: &KEYS.name, room: &KEYS.room, now, stay: Stay::Begins };
    KEYS.verifier.check(token, bearer).is_ok()
}

/// Any text; a token signed for what the script says; or a good one with some of it changed.
pub fn token(bytes: &[u8]) {
    let mut script = Script::new(bytes);
    match script.byte() % 3 {
        0 => {
            // Whatever the text is: the key is not in it.
            let Ok(text) = core::str::from_utf8(script.rest()) else { return };
            assert!(!is_let_in(text), "{text}");
        }
        1 => {
            let exp = NOW.wrapping_add_signed(i64::from(script.byte().cast_signed()));
            let sub = String::from_utf8_lossy(script.counted()).into_owned();
            let room = script.flag().then(|| String::from_utf8_lossy(script.rest()).into_owned());
            let meant = sub == "Ada" && exp > NOW && room.as_deref().is_none_or(|room| room == "duel");
            let token = KEYS.signer.sign(&Claims { sub, exp, room, ..Claims::default() });
            // The longest name and room make less than the longest token.
            assert_eq!(is_let_in(&token), meant && token.len() <= 1_024);
        }
        _ => {
            let claims = Claims {
                sub: "Ada".to_owned(),
                exp: NOW + 60,
                room: Some("duel".to_owned()),
                ..Claims::default()
            };
            let good = KEYS.signer.sign(&claims);
            let mut changed = good.clone().into_bytes();
            script.mutate(&mut changed);
            let Ok(changed) = String::from_utf8(changed) else { return };
            assert_eq!(is_let_in(&changed), changed == good, "{changed}");
        }
    }
}
