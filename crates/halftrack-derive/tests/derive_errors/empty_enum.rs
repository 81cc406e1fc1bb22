use halftrack::Body;

#[derive(Clone, Copy, Debug, PartialEq, Body)]
enum Nothing {}

fn main() {}
