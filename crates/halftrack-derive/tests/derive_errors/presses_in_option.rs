use halftrack::Input;

#[derive(Clone, Copy, Debug, Default, PartialEq, Input)]
struct Pad {
    #[presses]
    fire: Option<u8>,
}

fn main() {}
