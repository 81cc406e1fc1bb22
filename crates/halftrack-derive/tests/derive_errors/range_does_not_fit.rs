use halftrack::Body;

const MANY: u32 = 1_000;

#[derive(Clone, Copy, Debug, PartialEq, Body)]
struct Literal {
    #[range(0..=300)]
    hp: u8,
    #[range(-1..=9)]
    ammo: u16,
    #[range(9..=1)]
    gear: i8,
    #[range(0.5..=9)]
    lives: i32,
}

#[derive(Clone, Copy, Debug, PartialEq, Body)]
struct Constant {
    #[range(0..=MANY)]
    hp: u8,
}

fn main() {
    let _ = Constant::MAX_BITS;
}
