//! All integration tests of the crate as one program: the core's generic code is compiled once, not once per file.

mod bodies;
mod dead_datagrams;
mod findings;
mod group;
mod lab;
mod machines;
mod newcomers;
mod plans;
mod plays;
mod rounds;
mod volley;
mod witness;
mod wraps;
