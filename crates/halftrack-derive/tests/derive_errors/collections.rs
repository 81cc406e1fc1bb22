use halftrack::{Body, Input};

#[derive(Clone, Debug, PartialEq, Body)]
struct Player {
    name: String,
    items: Vec<u8>,
    #[range(0..=9)]
    scores: std::collections::BTreeMap<u8, u8>,
}

#[derive(Clone, Debug, Default, PartialEq, Input)]
struct Keys {
    pressed: Option<Vec<char>>,
    name: &'static str,
    both: (bool, bool),
    count: usize,
    letter: char,
    long: u128,
}

fn main() {}
