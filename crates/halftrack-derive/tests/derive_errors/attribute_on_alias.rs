use halftrack::Body;

type Metres = f64;

#[derive(Clone, Copy, Debug, PartialEq, Body)]
struct Tank {
    #[range(0..=9)]
    x: Metres,
}

fn main() {}
