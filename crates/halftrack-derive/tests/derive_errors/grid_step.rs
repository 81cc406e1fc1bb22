use halftrack::Body;

#[derive(Clone, Copy, Debug, PartialEq, Body)]
struct Tank {
    #[grid(0, -512..=512)]
    zero: f64,
    #[grid(-1/16, -1..=1)]
    negative: f64,
    #[grid(1/0, -1..=1)]
    infinite: f64,
    #[grid(3/10, 0..=1)]
    uneven: f64,
    #[grid(1/1024, 512..=-512)]
    backwards: f64,
    #[grid(0.000001, 0..=100_000)]
    finest: f64,
    #[grid(1/65536, -512..=512)]
    single: f32,
    #[turns(0)]
    still: f64,
    #[turns(2/3)]
    odd: f64,
}

fn main() {}
