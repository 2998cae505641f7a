//! A server of remote calls, made of the codec's other side.

use std::collections::{BTreeSet, HashSet};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use rustls::ServerConfig;
use tidemark_drive::{DriveOptions, Tls};
use tidemark_scenario::Plan;
use tidemark_wire::http1::{DecoderLimits, RequestDecoder};
use tidemark_wire::rpc::{AnswerWriter, Call, CallReader, Greeting, JSON, Limits, Request};
use tidemark_wire::websocket::{Event, Kind, handshake, write_close, write_message, write_ping};

use super::options;
use super::websocket::{Socket, converse, listen, receive};

/// What it can be called for.
pub const METHODS: [&str; 2] = ["trade.trade", "trade.price"];

/// What the server saw.
#[derive(Default)]
pub struct Seen {
    pub connections: AtomicUsize,
    pub calls: AtomicUsize,
    pub frames: AtomicUsize,
    pub cancels: AtomicUsize,
    pub pongs: AtomicUsize,
    pub most_items: AtomicUsize,
    pub most_frame_bytes: AtomicUsize,
    /// Methods with their deadlines and arguments, each once.
    pub payloads: Mutex<BTreeSet<String>>,
}

/// What a server does with a call: it answers with `writer` into `frame`, or lets it be.
pub type Behave = fn(&Call<'_>, &mut AnswerWriter, &mut Vec<u8>) -> Then;

/// What is done behind the frame of a call.
#[derive(PartialEq)]
pub enum Then {
    GoOn,
    /// The call's answers of this turn, then bytes as they are, then an end without a word.
    Raw(&'static [u8]),
    Hang,
    Close(u16, &'static str),
    Ping,
}

pub struct Server {
    pub address: SocketAddr,
    pub seen: Arc<Seen>,
}

/// What a server says that it takes.
#[derive(Clone)]
pub struct Offered {
    pub limits: Limits,
    pub in_flight_max: usize,
    pub methods: Vec<String>,
    pub tls: Option<Arc<ServerConfig>>,
}

pub fn offered() -> Offered {
    let methods = METHODS.map(str::to_owned).to_vec();
    Offered { limits: Limits::default(), in_flight_max: 8192, methods, tls: None }
}

pub fn server(offered: Offered, behave: Behave) -> Server {
    let seen = Arc::new(Seen::default());
    let counts = seen.clone();
    let address = listen(offered.tls.clone(), move |stream| {
        // A driver that leaves in between is no error here.
        let _ = serve(stream, &offered, behave, &counts);
    });
    Server { address, seen }
}

fn serve(stream: &mut dyn Socket, offered: &Offered, behave: Behave, seen: &Seen) -> Option<()> {
    let mut request = RequestDecoder::new(DecoderLimits::default());
    receive(stream, &mut request)?;
    assert_eq!(request.target(), b"/rpc");
    let offer = handshake::check_request(&request).unwrap();
    assert_eq!(offer.protocols().collect::<Vec<_>>(), [JSON]);
    let mut out = Vec::new();
    handshake::write_answer(&mut out, offer.key, Some(JSON)).unwrap();
    let Offered { limits, in_flight_max, methods, .. } = offered.clone();
    let mut greeting = Vec::new();
    Greeting { limits, in_flight_max, methods }.write(&mut greeting).unwrap();
    // In one piece with the answer.
    write_message(&mut out, Kind::Binary, &greeting, None);
    stream.write_all(&out).ok()?;
    let (mut is_counted, mut unanswered) = (false, HashSet::new());
    converse(stream, |event, decoder, out| match event {
        Event::Message(kind) => {
            assert_eq!(kind, Kind::Binary);
            // The connection that only greets is not one that calls.
            if !std::mem::replace(&mut is_counted, true) {
                seen.connections.fetch_add(1, Ordering::SeqCst);
            }
            let (frame, then) = answer(decoder.message(), limits, behave, seen, &mut unanswered);
            // Before the answer: the last pong of a run is then on its way before the last call is.
            if then == Then::Ping {
                write_ping(out, b"p", None);
            }
            if !frame.is_empty() {
                write_message(out, Kind::Binary, &frame, None);
            }
            match then {
                Then::GoOn | Then::Ping => return true,
                Then::Raw(bytes) => out.extend_from_slice(bytes),
                Then::Close(code, reason) => write_close(out, Some(code), reason, None),
                Then::Hang => {}
            }
            false
        }
        Event::Pong => {
            seen.pongs.fetch_add(1, Ordering::SeqCst);
            true
        }
        Event::Close => false,
        Event::Ping => true,
    });
    Some(())
}

/// Works a frame through, for the frame of its answers; the first call that is to end the connection does so behind it.
fn answer(
    message: &[u8],
    limits: Limits,
    behave: Behave,
    seen: &Seen,
    unanswered: &mut HashSet<u64>,
) -> (Vec<u8>, Then) {
    let (mut writer, mut frame, mut then) = (AnswerWriter::new(), Vec::new(), Then::GoOn);
    seen.frames.fetch_add(1, Ordering::SeqCst);
    seen.most_frame_bytes.fetch_max(message.len(), Ordering::SeqCst);
    let mut items = 0;
    for item in CallReader::new(limits).all(message) {
        items += 1;
        match item.expect("the driver's items are right") {
            Request::Call(call) => {
                seen.calls.fetch_add(1, Ordering::SeqCst);
                let payload = std::str::from_utf8(call.payload).unwrap();
                let method = METHODS[call.method as usize];
                seen.payloads.lock().unwrap().insert(format!("{method} {} {payload}", call.deadline_ms));
                let items_before = writer.items();
                let one = behave(&call, &mut writer, &mut frame);
                if writer.items() == items_before {
                    unanswered.insert(call.id);
                }
                if then == Then::GoOn {
                    then = one;
                }
            }
            Request::Cancel { id } => {
                seen.cancels.fetch_add(1, Ordering::SeqCst);
                if unanswered.remove(&id) {
                    writer.failure(&mut frame, id, 499, "cancelled");
                }
            }
        }
    }
    seen.most_items.fetch_max(items, Ordering::SeqCst);
    (frame, then)
}

/// Answers as a server does that works.
pub fn well(call: &Call<'_>, writer: &mut AnswerWriter, frame: &mut Vec<u8>) -> Then {
    writer.answer(frame, call.id, b"{\"done\":true}");
    Then::GoOn
}

/// To call this server, which is asked first what it takes.
pub fn calling(address: SocketAddr, tls: Option<Tls>, plan: &Plan) -> DriveOptions {
    let mut options = options(address, 1);
    options.targets[0].tls = tls;
    let mut stream = TcpStream::connect(address).unwrap();
    let greeted = options.targets[0].greet_calls("/rpc", plan.called(), &mut stream);
    greeted.unwrap_or_else(|error| panic!("{error}"));
    options
}
