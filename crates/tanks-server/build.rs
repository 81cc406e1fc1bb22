//! The page is part of the program: when it is built anew, or for the first time, so is the program.

fn main() {
    println!("cargo::rerun-if-changed=../../web/dist");
}
