//! A panic ends the client. The page and its console are told why in words, not as `unreachable`.

use std::cell::RefCell;

use js_sys::Function;
use wasm_bindgen::JsValue;
use wasm_bindgen::prelude::wasm_bindgen;

thread_local! {
    static LISTENER: RefCell<Option<Function>> = const { RefCell::new(None) };
}

/// Calls `listener` with a message when the client has broken down. It can only be loaded anew then.
#[wasm_bindgen(js_name = on_panic)]
pub fn on_panic(listener: Function) {
    LISTENER.with(|slot| *slot.borrow_mut() = Some(listener));
}

#[wasm_bindgen(start)]
fn start() {
    std::panic::set_hook(Box::new(|panic| {
        let message = format!("the client has broken down: {panic}");
        web_sys::console::error_1(&JsValue::from_str(&message));
        let listener = LISTENER.with(|slot| slot.try_borrow().ok().and_then(|slot| slot.clone()));
        if let Some(listener) = listener {
            // What a listener throws is no more of our business.
            let _ = listener.call1(&JsValue::UNDEFINED, &JsValue::from_str(&message));
        }
        // Whoever called gets an error that says why.
        wasm_bindgen::throw_str(&message);
    }));
}
