use halftrack::Body;

#[derive(Clone, Copy, Debug, PartialEq, Body)]
struct Pair<T>(T, T);

fn main() {}
