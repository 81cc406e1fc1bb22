use halftrack::Pose;

#[derive(Clone, Copy, Debug, PartialEq, Pose)]
struct Nowhere {
    #[turns]
    heading: f64,
}

#[derive(Clone, Copy, Debug, PartialEq, Pose)]
struct Short {
    #[position]
    at: [f64; 4],
}

#[derive(Clone, Copy, Debug, PartialEq, Pose)]
struct Twice {
    #[position]
    at: [f64; 2],
    #[x]
    x: f64,
}

#[derive(Clone, Copy, Debug, PartialEq, Pose)]
struct Dizzy {
    #[x]
    x: f64,
    #[turns]
    hull: f64,
    #[turns]
    turret: f64,
}

#[derive(Clone, Copy, Debug, PartialEq, Pose)]
struct Whole {
    #[x]
    x: i32,
}

#[derive(Clone, Copy, Debug, PartialEq, Pose)]
struct Flat {
    #[x]
    x: f64,
    #[rotation]
    turned: [f64; 3],
}

#[derive(Clone, Copy, Debug, PartialEq, Pose)]
enum Either {
    Here,
}

fn main() {}
