//! A connection that is a WebSocket: what came over it, what is to be sent, and what the step under way waits for.
//!
//! Frames that cannot leave yet because the connection still sends wait in `pending`; messages that no step waits for,
//! in the `inbox`.

use std::collections::VecDeque;

use tidemark_record::Outcome;
use tidemark_scenario::plan::WebSocketStep;
use tidemark_wire::websocket::{
    self, Decoder, Limits, Role, write_close, write_message, write_ping, write_pong,
};

use crate::fault::Fault;

/// Most messages of a connection that are kept for a later step.
const INBOX_MESSAGES: usize = 64;
/// Most bytes of such messages; one alone may be larger.
const INBOX_BYTES: usize = 1 << 20;
/// Emptied buffers of messages that are kept for further ones.
const SPARE_BUFFERS: usize = 8;
/// Most bytes of pongs that wait until the connection has sent what is before them; further pings go unanswered.
const PENDING_BYTES: usize = 64 << 10;
/// What the step under way waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Awaiting {
    /// Nothing; no step is under way.
    Nothing,
    /// That all is sent.
    Sent,
    /// A message that comes from now on.
    Message,
    /// The pong of its ping.
    Pong,
    /// The peer's close.
    Close,
}

/// A connection that is a WebSocket.
#[derive(Debug)]
pub(crate) struct WebSocket {
    /// What came.
    pub decoder: Decoder,
    /// What the step under way waits for.
    pub awaiting: Awaiting,
    /// The payload of the ping under way.
    ping: Vec<u8>,
    /// Frames that are to be sent.
    pub pending: Vec<u8>,
    inbox: VecDeque<Vec<u8>>,
    inbox_bytes: usize,
    spare: Vec<Vec<u8>>,
}

impl WebSocket {
    /// For messages of so many bytes at most.
    pub fn new(message_bytes: usize) -> Box<WebSocket> {
        let limits = Limits { frame_bytes: message_bytes, message_bytes };
        Box::new(WebSocket {
            decoder: Decoder::new(Role::Client, limits),
            awaiting: Awaiting::Nothing,
            ping: Vec::new(),
            pending: Vec::new(),
            inbox: VecDeque::new(),
            inbox_bytes: 0,
            spare: Vec::new(),
        })
    }

    /// Messages that nobody took.
    pub fn kept(&self) -> usize {
        self.inbox.len()
    }

    /// Keeps the decoder's message for a later step; how many older ones had to go.
    pub fn keep(&mut self) -> u64 {
        let message = self.decoder.message();
        let mut buffer = self.spare.pop().unwrap_or_default();
        buffer.extend_from_slice(message);
        self.inbox_bytes += buffer.len();
        self.inbox.push_back(buffer);
        let mut gone = 0;
        while self.inbox.len() > INBOX_MESSAGES || (self.inbox_bytes > INBOX_BYTES && self.inbox.len() > 1) {
            if let Some(oldest) = self.next_kept() {
                self.reuse(oldest);
                gone += 1;
            }
        }
        gone
    }

    /// The oldest message that was kept.
    pub fn next_kept(&mut self) -> Option<Vec<u8>> {
        let message = self.inbox.pop_front()?;
        self.inbox_bytes -= message.len();
        Some(message)
    }

    /// Takes the buffer of a message that was kept back.
    pub fn reuse(&mut self, mut buffer: Vec<u8>) {
        if self.spare.len() < SPARE_BUFFERS && buffer.capacity() <= INBOX_BYTES {
            buffer.clear();
            self.spare.push(buffer);
        }
    }

    /// Writes what a step sends behind what is to be sent, masked by `key`, and awaits what ends the step. `payload` may
    /// hold something else afterwards.
    pub fn begin(&mut self, step: &WebSocketStep, payload: &mut Vec<u8>, key: [u8; 4]) -> Result<(), Fault> {
        let (out, key) = (&mut self.pending, Some(key));
        self.awaiting = match step {
            WebSocketStep::Connect { .. } | WebSocketStep::Expect => Awaiting::Message,
            WebSocketStep::Send { kind, expects } => {
                if *kind == websocket::Kind::Text && std::str::from_utf8(payload).is_err() {
                    return Err(failed(Outcome::Protocol, "the text to be sent is not valid UTF-8"));
                }
                write_message(out, *kind, payload, key);
                if *expects { Awaiting::Message } else { Awaiting::Sent }
            }
            WebSocketStep::Ping => {
                write_ping(out, payload, key);
                payload.truncate(websocket::MAX_CONTROL_BYTES);
                std::mem::swap(&mut self.ping, payload);
                Awaiting::Pong
            }
            WebSocketStep::Close { code } => {
                write_close(out, Some(*code), &String::from_utf8_lossy(payload), key);
                Awaiting::Close
            }
        };
        Ok(())
    }

    /// Answers the ping that came, unless too much is to be sent already.
    pub fn pong(&mut self, key: [u8; 4]) {
        if self.pending.len() < PENDING_BYTES {
            write_pong(&mut self.pending, self.decoder.control(), Some(key));
        }
    }

    /// Whether the pong that came is the one of the step's ping.
    pub fn is_its_pong(&self) -> bool {
        self.awaiting == Awaiting::Pong && self.decoder.control() == self.ping
    }

    /// The peer's close in words.
    pub fn close_told(&self) -> String {
        match (self.decoder.close_code(), self.decoder.close_reason()) {
            (None, _) => "the other side closed the WebSocket".to_owned(),
            (Some(code), "") => format!("the other side closed the WebSocket with code {code}"),
            (Some(code), reason) => format!("the other side closed the WebSocket with code {code}: {reason}"),
        }
    }
}

/// A failure in words.
pub(crate) fn failed(outcome: Outcome, words: impl Into<std::borrow::Cow<'static, str>>) -> Fault {
    Fault::WebSocket(outcome, words.into())
}
