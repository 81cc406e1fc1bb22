//! Client and server of [`crate::cart`], compiled here once in debug builds.
//!
//! They are generic, so each test and example that uses them would compile its own. A debug build takes the ones that
//! a crate below has compiled already.

use crate::cart::{Cart, Rails};
use crate::client::Client;
use crate::interpolate::Remotes;
use crate::predict::Predictor;
use crate::reconcile::Reconciler;
use crate::server::Server;
use crate::snapshot::{Bodies, Crowd};

/// Names the functions that everything else is called by. Nothing calls this.
pub fn instances() -> Vec<*const ()> {
    type S = Server<Rails>;
    type C = Client<Cart>;
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
        Bodies::<Cart>::write as *const (),
        Bodies::<Cart>::body_at as *const (),
        Crowd::<Cart>::read as *const (),
        Predictor::<Cart>::accept as *const (),
        Reconciler::<Cart>::accept as *const (),
        Remotes::<Cart>::frame as *const (),
    ]
}
