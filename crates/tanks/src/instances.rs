//! Client and server of this game, compiled here once in debug builds.
//!
//! They are generic, so each test and program that uses them would compile its own. A debug build takes the ones that
//! a crate below has compiled already.

use halftrack::client::Client;
use halftrack::server::Server;
use halftrack::snapshot::{Bodies, Crowd};
use halftrack::{Predictor, Reconciler, Remotes};

use crate::{TankWorld, Tanks};

/// Names the functions that everything else is called by. Nothing calls this.
#[doc(hidden)]
pub fn instances() -> Vec<*const ()> {
    type S = Server<TankWorld>;
    type C = Client<Tanks>;
    vec![
        S::new as *const (),
        S::handle_connected as *const (),
        S::handle_stream as *const (),
        S::handle_datagram as *const (),
        S::handle_disconnected as *const (),
        S::handle_timeout as *const (),
        S::poll_stream as *const (),
        S::poll_datagram as *const (),
        S::kick as *const (),
        S::drain as *const (),
        S::stop as *const (),
        S::command as *const (),
        S::record as *const (),
        S::stats as *const (),
        C::new as *const (),
        C::connect as *const (),
        C::logout as *const (),
        C::set_input as *const (),
        C::order as *const (),
        C::handle_connected as *const (),
        C::handle_disconnected as *const (),
        C::handle_stream as *const (),
        C::handle_datagram as *const (),
        C::handle_timeout as *const (),
        C::frame as *const (),
        C::poll_timeout as *const (),
        C::poll_stream as *const (),
        C::poll_datagram as *const (),
        Bodies::<Tanks>::write as *const (),
        Bodies::<Tanks>::body_at as *const (),
        Crowd::<Tanks>::read as *const (),
        Predictor::<Tanks>::accept as *const (),
        Reconciler::<Tanks>::accept as *const (),
        Remotes::<Tanks>::frame as *const (),
    ]
}
