//! Writes recordings of matches that never were, with checks that are right.
#![allow(dead_code, reason = "each test uses the part that it needs")]

use std::sync::Arc;

use halftrack::record::{Entry, Header, Recorder};
use halftrack::{Cadence, PlayerId, PlayerName, Tick, TickInput, Token, shared_hash};
use tanks::{About, Seen, ShootInput, TankInput, TankWorldConfig, Tanks};

/// See the module.
pub(crate) struct Forge {
    recorder: Recorder<Tanks>,
    players: Vec<PlayerId>,
    tick: u32,
    /// The name of everybody who comes.
    pub(crate) name: &'static str,
    bytes: Vec<u8>,
}

impl Forge {
    pub(crate) fn new(config: &TankWorldConfig) -> Self {
        let rules = Tanks::new(Arc::clone(&config.arena));
        let header = Header {
            shared: shared_hash(&rules, Cadence::default()),
            cadence_micros: 50_000,
            first_tick: 0,
            run: [0; 16],
            body_key: [0; 16],
            limits: (4_096, 16),
            about: About::new("main", 1, config).encode(),
        };
        Self { recorder: Recorder::new(&header), players: vec![], tick: 0, name: "x", bytes: vec![] }
    }

    pub(crate) fn join(&mut self, player: u16) {
        let player = PlayerId::new(player);
        let name = PlayerName::new(self.name).expect("a name");
        self.recorder.write(&Entry::Joined { player, name, token: Token::new([0; 16]), claims: None });
        self.players.push(player);
        self.players.sort_unstable();
    }

    pub(crate) fn leave(&mut self, player: u16) {
        let player = PlayerId::new(player);
        self.recorder.write(&Entry::Left { player });
        self.players.retain(|there| *there != player);
    }

    /// A shot by the player of this place, at the newest tick.
    pub(crate) fn shoot(&mut self, place: usize) {
        let seen = Seen { snapshot: Tick::new(self.tick), before_micros: 250_000 };
        let shot = ShootInput { tick: Tick::new(self.tick + 1), at: 0, aim: 0, seen };
        let bytes = shot.encode();
        self.recorder.write(&Entry::Ordered { player: self.players[place], bytes });
    }

    pub(crate) fn ticks(&mut self, ticks: u32) {
        for _ in 0..ticks {
            self.tick += 1;
            let told = TickInput::steady(TankInput::NEUTRAL);
            self.recorder.tick(self.players.iter().map(|player| (*player, told, 0)), 0);
            self.frame();
        }
    }

    pub(crate) fn passed(&mut self, ticks: u32) {
        self.recorder.write(&Entry::Passed { ticks });
        self.tick += ticks;
    }

    pub(crate) fn check(&mut self) {
        self.recorder.write(&Entry::Check { digest: 0 });
    }

    /// Closes the frame at hand.
    pub(crate) fn frame(&mut self) {
        self.recorder.take(&mut self.bytes);
    }

    pub(crate) fn finish(mut self) -> Vec<u8> {
        self.frame();
        self.bytes
    }
}
