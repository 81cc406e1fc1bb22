use halftrack::{Body, Input};

#[derive(Clone, Copy, Debug, Default, PartialEq, Input, Body)]
struct Aim {
    #[turns(1/256)]
    at: f32,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Input, Body)]
#[exact_image(Boddy)]
struct Lean {
    on: bool,
}

fn main() {}
