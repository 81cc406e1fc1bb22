use halftrack::Input;

#[derive(Clone, Copy, Debug, Default, PartialEq, Input)]
struct Pad {
    #[presses]
    fire: u16,
    #[presses]
    jump: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Input)]
enum Order {
    #[default]
    Wait,
    Go {
        #[presses]
        taps: u8,
    },
}

fn main() {}
