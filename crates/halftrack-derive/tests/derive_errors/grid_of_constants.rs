use halftrack::Body;

const SIZE: f64 = 0.3;

#[derive(Clone, Copy, Debug, PartialEq, Body)]
struct Tank {
    #[grid(1/16, -SIZE..=SIZE)]
    x: f64,
}

fn main() {}
