//! One connection of the browser: WebTransport with one stream and datagrams, or a WebSocket. Moves bytes, and knows
//! nothing of what they mean.

use std::cell::Cell;
use std::rc::Rc;

use halftrack::session::DisconnectReason;
use js_sys::{ArrayBuffer, Function, Promise, Reflect, Uint8Array};
use wasm_bindgen::closure::Closure;
use wasm_bindgen::{JsCast, JsValue};
use wasm_bindgen_futures::JsFuture;
use web_sys::{
    BinaryType, CloseEvent, MessageEvent, ReadableStream, ReadableStreamDefaultReader, WebSocket,
    WebTransport, WebTransportCloseInfo, WebTransportCongestionControl, WebTransportHash,
    WebTransportOptions, WritableStream, WritableStreamDefaultWriter,
};

/// Codes of a WebSocket from here on are an application's.
const FIRST_CODE: u32 = 4_000;
/// Datagrams that the browser has been given and not taken. More are as good as lost: newer ones say the same.
const MAX_DATAGRAMS: u32 = 32;

/// What a connection tells its owner.
pub(super) enum Happened {
    /// A piece of the stream.
    Stream(Vec<u8>),
    /// A datagram.
    Datagram(Vec<u8>),
    /// It is over; the server's reason, if it gave one.
    Ended(Option<DisconnectReason>),
}

/// Whom it tells.
pub(super) type Listener = Rc<dyn Fn(Happened)>;

/// A connection.
pub(super) enum Link {
    Transport(Transport),
    Socket(Socket),
}

/// Whether a datagram was taken.
#[derive(PartialEq, Eq)]
pub(super) enum Taken {
    Yes,
    No,
}

impl Link {
    pub(super) fn send_datagram(&self, bytes: &[u8]) -> Taken {
        match self {
            Self::Transport(transport) => transport.datagrams.write(bytes, MAX_DATAGRAMS),
            Self::Socket(_) => Taken::No,
        }
    }

    pub(super) fn send_stream(&self, bytes: &[u8]) {
        match self {
            Self::Transport(transport) => {
                transport.stream.write(bytes, u32::MAX);
            }
            // One that is closing has said so, or will.
            Self::Socket(socket) => drop(socket.socket.send_with_u8_array(bytes)),
        }
    }

    /// Bytes of the stream that the browser has been given and not taken.
    pub(super) fn backlog(&self) -> usize {
        match self {
            Self::Transport(transport) => transport.stream.in_flight.1.get(),
            Self::Socket(socket) => socket.socket.buffered_amount() as usize,
        }
    }

    /// Closes when what was written has left.
    pub(super) fn close(self, reason: DisconnectReason) {
        match self {
            Self::Transport(transport) => wasm_bindgen_futures::spawn_local(async move {
                let finished = transport.stream.writer.close();
                let _ = super::within(500, finished.into()).await;
                let info = WebTransportCloseInfo::new();
                info.set_close_code(reason.code());
                info.set_reason(&reason.to_string());
                transport.session.close_with_close_info(&info);
            }),
            Self::Socket(socket) => {
                let code = u16::try_from(FIRST_CODE + reason.code()).unwrap_or(1_000);
                drop(socket.socket.close_with_code_and_reason(code, &reason.to_string()));
            }
        }
    }
}

/// Writes without waiting: `desiredSize` would let one datagram per task through. What is in flight is counted instead.
struct Writer {
    writer: WritableStreamDefaultWriter,
    /// Writes and bytes.
    in_flight: Rc<(Cell<u32>, Cell<usize>)>,
}

impl Writer {
    fn new(stream: &WritableStream) -> Result<Self, JsValue> {
        Ok(Self { writer: stream.get_writer()?, in_flight: Rc::default() })
    }

    fn write(&self, bytes: &[u8], most: u32) -> Taken {
        let (writes, in_bytes) = (&self.in_flight.0, &self.in_flight.1);
        if writes.get() >= most {
            return Taken::No;
        }
        writes.set(writes.get() + 1);
        in_bytes.set(in_bytes.get() + bytes.len());
        let (promise, in_flight) =
            (self.writer.write_with_chunk(&Uint8Array::from(bytes)), self.in_flight.clone());
        let length = bytes.len();
        wasm_bindgen_futures::spawn_local(async move {
            // A connection that is gone says so where it is read.
            let _ = JsFuture::from(promise).await;
            in_flight.0.set(in_flight.0.get().saturating_sub(1));
            in_flight.1.set(in_flight.1.get().saturating_sub(length));
        });
        Taken::Yes
    }
}

/// WebTransport.
pub(super) struct Transport {
    session: WebTransport,
    stream: Writer,
    datagrams: Writer,
    /// The longest datagram that it takes, bytes.
    pub(super) max_datagram: u32,
}

/// Whether this page may use WebTransport: only in a secure context, and not in every browser.
pub(super) fn has_transport() -> bool {
    Reflect::has(&js_sys::global(), &JsValue::from_str("WebTransport")).unwrap_or(false)
}

impl Transport {
    /// Connects to a server that shows a certificate of one of these hashes, or of an authority if there are none.
    pub(super) async fn connect(url: &str, hashes: &[[u8; 32]], listener: Listener) -> Result<Self, JsValue> {
        let options = WebTransportOptions::new();
        options.set_congestion_control(WebTransportCongestionControl::LowLatency);
        options.set_require_unreliable(true);
        let hashes: Vec<_> = hashes.iter().map(hash_of).collect();
        if !hashes.is_empty() {
            options.set_server_certificate_hashes(&hashes);
        }
        let session = WebTransport::new_with_options(url, &options)?;
        let live = Rc::new(Cell::new(false));
        // From the beginning on: a rejection that nobody waits for would be an error of the page's.
        let (closed, heard, end) = (session.closed(), live.clone(), listener.clone());
        wasm_bindgen_futures::spawn_local(async move {
            let info = JsFuture::from(Promise::from(closed)).await.ok();
            let code = info.and_then(|info| get_number(&info, "closeCode"));
            if heard.get() {
                end(Happened::Ended(code.and_then(|code| DisconnectReason::from_code(code as u32))));
            }
        });
        let opened = Self::open(&session, listener).await;
        live.set(opened.is_ok());
        opened.inspect_err(|_| session.close())
    }

    async fn open(session: &WebTransport, listener: Listener) -> Result<Self, JsValue> {
        super::within(3_000, session.ready().into()).await?;
        let stream = JsFuture::from(session.create_bidirectional_stream()).await?;
        let (stream_in, stream_out): (ReadableStream, WritableStream) =
            (get(&stream, "readable")?, get(&stream, "writable")?);
        let duplex = JsValue::from(session.datagrams());
        // Chromium has `writable`, the newer text of the standard `createWritable`.
        let datagrams_out = match get::<Function>(&duplex, "createWritable") {
            Ok(create) => create.call0(&duplex)?.unchecked_into(),
            Err(_) => get(&duplex, "writable")?,
        };
        let datagrams_in: ReadableStream = get(&duplex, "readable")?;
        let (stream, datagrams) = (Writer::new(&stream_out)?, Writer::new(&datagrams_out)?);
        read(&stream_in, listener.clone(), Happened::Stream);
        read(&datagrams_in, listener, Happened::Datagram);
        let max_datagram = session.datagrams().max_datagram_size();
        Ok(Self { session: session.clone(), stream, datagrams, max_datagram })
    }
}

fn hash_of(bytes: &[u8; 32]) -> WebTransportHash {
    let hash = WebTransportHash::new();
    hash.set_algorithm("sha-256");
    hash.set_value_u8_array(&Uint8Array::from(bytes.as_slice()));
    hash
}

/// Reads to the end, as fast as it comes: nothing waits in the browser, also when the page is hidden.
fn read(from: &ReadableStream, listener: Listener, as_what: fn(Vec<u8>) -> Happened) {
    let reader: ReadableStreamDefaultReader = from.get_reader().unchecked_into();
    wasm_bindgen_futures::spawn_local(async move {
        while let Ok(result) = JsFuture::from(Promise::from(reader.read())).await {
            let done = Reflect::get(&result, &JsValue::from_str("done")).is_ok_and(|done| done.is_truthy());
            let Ok(value) = get::<Uint8Array>(&result, "value") else { break };
            if done {
                break;
            }
            listener(as_what(value.to_vec()));
        }
    });
}

/// A WebSocket, and what listens to it.
pub(super) struct Socket {
    socket: WebSocket,
    _on_message: Closure<dyn FnMut(MessageEvent)>,
    _on_close: Closure<dyn FnMut(CloseEvent)>,
}

impl Socket {
    pub(super) async fn connect(url: &str, listener: Listener) -> Result<Self, JsValue> {
        let socket = WebSocket::new(url)?;
        socket.set_binary_type(BinaryType::Arraybuffer);
        let opened = Promise::new(&mut |resolve, reject| {
            socket.set_onopen(Some(&resolve));
            socket.set_onerror(Some(&reject));
        });
        super::within(4_000, opened.into()).await.map_err(|problem| {
            drop(socket.close());
            // An error event has nothing to say, by design.
            if problem.is_string() { problem } else { JsValue::from_str("it could not be opened") }
        })?;
        socket.set_onerror(None);
        let hear = listener.clone();
        let on_message = Closure::<dyn FnMut(MessageEvent)>::new(move |message: MessageEvent| {
            if let Ok(buffer) = message.data().dyn_into::<ArrayBuffer>() {
                hear(Happened::Stream(Uint8Array::new(&buffer).to_vec()));
            }
        });
        let on_close = Closure::<dyn FnMut(CloseEvent)>::new(move |close: CloseEvent| {
            let code = u32::from(close.code()).checked_sub(FIRST_CODE);
            listener(Happened::Ended(code.and_then(DisconnectReason::from_code)));
        });
        socket.set_onmessage(Some(on_message.as_ref().unchecked_ref()));
        socket.set_onclose(Some(on_close.as_ref().unchecked_ref()));
        Ok(Self { socket, _on_message: on_message, _on_close: on_close })
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        // The closures go with it.
        self.socket.set_onmessage(None);
        self.socket.set_onclose(None);
        self.socket.set_onopen(None);
    }
}

fn get<T: JsCast>(from: &JsValue, name: &str) -> Result<T, JsValue> {
    Reflect::get(from, &JsValue::from_str(name))?.dyn_into()
}

fn get_number(from: &JsValue, name: &str) -> Option<f64> {
    Reflect::get(from, &JsValue::from_str(name)).ok()?.as_f64()
}
