use halftrack::Body;

#[derive(Clone, Copy, Debug, PartialEq, Body)]
struct Tank {
    #[gird(1/1024, -512..=512)]
    x: f64,
}

fn main() {}
