//! One connection that carries calls: from its handshake on, what is to be sent over it and what comes.

use std::collections::VecDeque;
use std::io;

use tidemark_scenario::diagnostic::did_you_mean;
use tidemark_wire::http1::{DecoderLimits, ResponseDecoder};
use tidemark_wire::rpc::{AnswerReader, CallWriter, Greeting, JSON, Limits};
use tidemark_wire::websocket::handshake::{self, Key};
use tidemark_wire::websocket::{
    self, Decoder, Event, Kind, PROTOCOL_ERROR, Role, write_close, write_message, write_pong,
};

use super::call::{Call, Calls, Reply};
use crate::io::stream_failure::{broken, unsendable, violation};

/// Calls are sent in frames of at most this size, where the server does not want smaller ones; a larger call is a
/// frame of its own.
const FRAME_BYTES: usize = 64 << 10;
/// With so much that the server has not taken, further calls wait.
const UNSENT_BYTES_MAX: usize = 8 << 20;
/// With so much that the server has not taken, its pings go unanswered.
const UNSENT_BYTES_PONG: usize = 64 << 10;
/// Most that an item has beside its payload.
const ITEM_BYTES: usize = 32;
/// What a frame of the server may be larger than the largest payload.
const FRAME_MORE_BYTES: usize = 1 << 20;

/// What a connection is good for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum LinkState {
    /// There is none.
    #[default]
    Closed,
    /// The socket is being made.
    Connecting,
    /// It was asked to become a WebSocket.
    Upgrading,
    /// It is one; the server has not said yet what it takes.
    Greeting,
    /// It takes calls.
    Open,
    /// It only ends what is under way.
    Retired,
}

/// Where calls are taken.
#[derive(Debug, Clone)]
pub(super) struct Endpoint {
    /// The `Host` header.
    pub authority: String,
    /// The path of the WebSocket.
    pub path: String,
}

/// Why a connection is lost, and the close code to tell the server, where it should hear one.
#[derive(Debug)]
pub(super) struct Loss {
    /// The error for all on it.
    pub error: io::Error,
    /// The last word.
    pub close_code: Option<u16>,
}

impl From<io::Error> for Loss {
    fn from(error: io::Error) -> Self {
        Loss { error, close_code: None }
    }
}

/// What came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum News {
    /// The server has greeted: it takes calls.
    Opened,
    /// An answer with this id.
    Answered(u64),
}

/// A connection.
pub(super) struct Link {
    /// What it is good for.
    pub state: LinkState,
    /// Calls sent and waited for.
    pub active: usize,
    /// Calls that were given up, and whose answers have not come yet.
    pub owed: usize,
    /// Streams that wait until it takes calls.
    pub opening: usize,
    /// Streams whose call waits until it may be sent, each with the number of its opening; some may have left.
    pub held: VecDeque<(u32, u32)>,
    /// How often bytes have come.
    pub receptions: u64,
    /// What is to be sent, whole WebSocket frames.
    pub out: Vec<u8>,
    /// Whether it stands among those with something to be sent.
    pub is_dirty: bool,
    key: Key,
    handshake: ResponseDecoder,
    decoder: Decoder,
    reader: AnswerReader,
    /// Whether the decoder's message is a frame that is being read.
    is_within_frame: bool,
    greeting: Option<Greeting>,
    /// The server's numbers of the methods, by our own.
    numbers: Vec<Option<u32>>,
    frame: Vec<u8>,
    writer: CallWriter,
}

impl Link {
    /// A connection that is not there yet.
    pub fn new(payload_bytes: usize) -> Self {
        let frame_bytes = payload_bytes.saturating_add(FRAME_MORE_BYTES);
        let most = websocket::Limits { frame_bytes, message_bytes: frame_bytes };
        // An item has more than one byte, so the bytes of a frame bound its items.
        let limits = Limits { frame_bytes, items: usize::MAX, payload_bytes };
        Link {
            state: LinkState::Closed,
            active: 0,
            owed: 0,
            opening: 0,
            held: VecDeque::new(),
            receptions: 0,
            out: Vec::new(),
            is_dirty: false,
            key: [0; 24],
            handshake: ResponseDecoder::new(DecoderLimits::default()),
            decoder: Decoder::new(Role::Client, most),
            reader: AnswerReader::new(limits),
            is_within_frame: false,
            greeting: None,
            numbers: Vec::new(),
            frame: Vec::new(),
            writer: CallWriter::new(),
        }
    }

    /// Forgets the connection; the buffers stay.
    pub fn reset(&mut self) {
        self.state = LinkState::Closed;
        (self.active, self.owed, self.opening, self.receptions) = (0, 0, 0, 0);
        self.held.clear();
        self.out.clear();
        self.frame.clear();
        self.writer.begin();
        self.handshake.start(false, false);
        self.decoder.start();
        self.is_within_frame = false;
        self.greeting = None;
        self.numbers.clear();
    }

    /// The socket is there: it is asked to become a WebSocket.
    pub fn ask(&mut self, endpoint: &Endpoint, random: &mut fastrand::Rng) -> Result<(), Loss> {
        self.key = handshake::key(random.u128(..).to_ne_bytes());
        let (path, authority) = (endpoint.path.as_bytes(), endpoint.authority.as_bytes());
        handshake::write_request(&mut self.out, path, authority, &self.key, &[JSON])
            .map_err(|error| unsendable(format!("the handshake cannot be written: {error}")))?;
        self.state = LinkState::Upgrading;
        Ok(())
    }

    /// What the server said that it takes.
    pub fn greeting(&self) -> Option<&Greeting> {
        self.greeting.as_ref()
    }

    /// Whether one more call may be sent now.
    pub fn has_room(&self) -> bool {
        let most = self.greeting.as_ref().map_or(0, |greeting| greeting.in_flight_max.max(1));
        self.active + self.owed < most && self.out.len() + self.frame.len() < UNSENT_BYTES_MAX
    }

    /// Puts a call into the frame that is being written.
    pub fn call(
        &mut self,
        id: u64,
        call: &Call,
        calls: &Calls,
        random: &mut fastrand::Rng,
    ) -> io::Result<()> {
        let method = self.number(call.method, calls)?;
        let Some(greeting) = &self.greeting else { return Err(io::ErrorKind::NotConnected.into()) };
        let Limits { frame_bytes, items, payload_bytes } = greeting.limits;
        let bytes = call.payload.len();
        if bytes > payload_bytes || bytes.saturating_add(ITEM_BYTES) > frame_bytes {
            let most = payload_bytes.min(frame_bytes.saturating_sub(ITEM_BYTES));
            return Err(unsendable(format!(
                "the arguments of {} are {bytes} bytes; the server takes at most {most}",
                calls.name(call.method)
            )));
        }
        let is_full = self.frame.len() + bytes + ITEM_BYTES > frame_bytes.min(FRAME_BYTES);
        if (is_full || self.writer.items() >= items) && !self.frame.is_empty() {
            self.end_frame(random);
        }
        self.writer.call(&mut self.frame, id, method, call.deadline_ms.max(1), &call.payload);
        Ok(())
    }

    /// Takes a call back.
    pub fn cancel(&mut self, id: u64, random: &mut fastrand::Rng) {
        let limits = self.greeting.as_ref().map(|greeting| greeting.limits).unwrap_or_default();
        let is_full = self.frame.len() + ITEM_BYTES > limits.frame_bytes.min(FRAME_BYTES);
        if (is_full || self.writer.items() >= limits.items) && !self.frame.is_empty() {
            self.end_frame(random);
        }
        self.writer.cancel(&mut self.frame, id);
    }

    /// The server's number of a method.
    fn number(&mut self, method: usize, calls: &Calls) -> io::Result<u32> {
        if let Some(Some(number)) = self.numbers.get(method) {
            return Ok(*number);
        }
        let Some(greeting) = &self.greeting else { return Err(io::ErrorKind::NotConnected.into()) };
        let number = number_of(greeting, calls.name(method)).map_err(unsendable)?;
        if self.numbers.len() <= method {
            self.numbers.resize(method + 1, None);
        }
        self.numbers[method] = Some(number);
        Ok(number)
    }

    /// Makes what was called a message that can be sent.
    pub fn end_frame(&mut self, random: &mut fastrand::Rng) {
        if !self.frame.is_empty() {
            write_message(&mut self.out, Kind::Binary, &self.frame, Some(random.u32(..).to_ne_bytes()));
            self.frame.clear();
            self.writer.begin();
        }
    }

    /// Takes bytes behind `at`, which it moves on, until there are news. An answer is put into `reply`.
    pub fn read(
        &mut self,
        bytes: &[u8],
        at: &mut usize,
        reply: &mut Reply,
        random: &mut fastrand::Rng,
    ) -> Result<Option<News>, Loss> {
        loop {
            if self.is_within_frame {
                match self.reader.next(self.decoder.message()) {
                    Ok(Some(answer)) => return Ok(Some(News::Answered(reply.take(answer)))),
                    Ok(None) => self.is_within_frame = false,
                    Err(error) => return Err(wrong(&error, error.close_code())),
                }
            }
            if self.state == LinkState::Upgrading && !self.upgrade(bytes, at)? {
                return Ok(None);
            }
            let decoded = self.decoder.decode(&bytes[*at..]);
            let decoded = decoded.map_err(|error| wrong(&error, error.close_code()))?;
            *at += decoded.consumed;
            match decoded.event {
                None => return Ok(None),
                Some(Event::Message(Kind::Binary)) if self.state == LinkState::Greeting => {
                    let greeting = Greeting::read(self.decoder.message());
                    self.greeting = Some(greeting.map_err(|error| wrong(&error, error.close_code()))?);
                    self.state = LinkState::Open;
                    return Ok(Some(News::Opened));
                }
                Some(Event::Message(Kind::Binary)) => {
                    self.reader.begin();
                    self.is_within_frame = true;
                }
                Some(Event::Message(Kind::Text)) => {
                    return Err(wrong(&"a text, where all messages are binary", PROTOCOL_ERROR));
                }
                Some(Event::Ping) if self.out.len() < UNSENT_BYTES_PONG => {
                    let key = Some(random.u32(..).to_ne_bytes());
                    write_pong(&mut self.out, self.decoder.control(), key);
                }
                Some(Event::Ping | Event::Pong) => {}
                Some(Event::Close) => return Err(self.closed()),
            }
        }
    }

    /// Reads the answer to the handshake; whether it is there.
    fn upgrade(&mut self, bytes: &[u8], at: &mut usize) -> Result<bool, Loss> {
        let decoded = self.handshake.decode(&bytes[*at..]).map_err(|error| violation(error.to_string()))?;
        *at += decoded.consumed;
        if !self.handshake.head_complete() {
            return Ok(false);
        }
        match handshake::check_answer(&self.handshake, &self.key, &[JSON]) {
            Ok(Some(_)) => {
                self.state = LinkState::Greeting;
                Ok(true)
            }
            Ok(None) => {
                Err(violation(format!("the server takes the WebSocket, but not the subprotocol {JSON}"))
                    .into())
            }
            Err(error) => Err(violation(error.to_string()).into()),
        }
    }

    /// The server has closed, with a reason or without.
    fn closed(&self) -> Loss {
        let words = match (self.decoder.close_code(), self.decoder.close_reason()) {
            (None, _) => "the server closed the WebSocket".to_owned(),
            (Some(code), "") => format!("the server closed the WebSocket with code {code}"),
            (Some(code), reason) => format!("the server closed the WebSocket with code {code}: {reason}"),
        };
        Loss {
            error: broken(words),
            close_code: Some(self.decoder.close_code().unwrap_or(websocket::NORMAL)),
        }
    }

    /// Appends the last word.
    pub fn write_last_word(code: u16, out: &mut Vec<u8>, random: &mut fastrand::Rng) {
        write_close(out, Some(code), "", Some(random.u32(..).to_ne_bytes()));
    }
}

/// A method's number in a greeting, or that there is none.
pub(super) fn number_of(greeting: &Greeting, method: &str) -> Result<u32, String> {
    greeting.number_of(method).ok_or_else(|| {
        let hint = did_you_mean(method, greeting.methods.iter().map(String::as_str));
        format!("the server has no method {method}{hint}")
    })
}

/// Something against the protocol.
fn wrong(what: &dyn std::fmt::Display, close_code: u16) -> Loss {
    let error = violation(format!("what the server sent is not right for calls: {what}"));
    Loss { error, close_code: Some(close_code) }
}
