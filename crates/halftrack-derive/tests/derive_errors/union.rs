use halftrack::Body;

#[derive(Clone, Copy, Body)]
union Either {
    small: u8,
    large: u32,
}

fn main() {}
