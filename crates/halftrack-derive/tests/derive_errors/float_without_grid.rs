use halftrack::Body;

#[derive(Clone, Copy, Debug, PartialEq, Body)]
struct Tank {
    x: f64,
    corners: [[f32; 2]; 4],
    #[range(0..=100)]
    hp: u8,
}

fn main() {}
