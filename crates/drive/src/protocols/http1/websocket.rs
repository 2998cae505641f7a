//! A connection that is a WebSocket: what came over it, what is to be sent, and what the step under way waits for.
//!
//! Frames that cannot leave yet because the connection still sends wait in `pending`; messages that no step waits for,
//! in the `inbox`.

use tidemark_record::Outcome;
use tidemark_scenario::plan::WebSocketStep;
use tidemark_scenario::{Context, Template};
use tidemark_wire::websocket::{
    self, Decoder, Event as Frame, Kind, Limits, Role, write_close, write_message, write_ping, write_pong,
};

use super::inbox::{Inbox, Offer};
use crate::session::answer::Answer;
use crate::session::failure::Failure;
use crate::session::sockets::{Heard, Said};

/// Most bytes of pongs that wait until the connection has sent what is before them; further pings go unanswered.
const PENDING_BYTES: usize = 64 << 10;

/// Most bytes that a program has said and that wait until the connection takes them; one message alone may be larger.
const SAID_BYTES: usize = 16 << 20;

/// A program's side of a WebSocket.
#[derive(Debug, Default)]
pub(super) struct OfProgram {
    /// What came last.
    pub news: News,
    /// Whether the program has closed it.
    pub is_closing: bool,
    /// Whether the connection is over once all is sent.
    pub is_leaving: bool,
}

/// What a program hears next.
#[derive(Debug, Default)]
pub(super) enum News {
    #[default]
    Nothing,
    /// What the decoder has.
    Frame(Frame),
    Ended,
    Broken(Outcome, Box<str>),
}

/// What the step under way waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Awaiting {
    /// Nothing; no step is under way.
    Nothing,
    /// That all is sent.
    Sent,
    /// A message that comes from now on.
    Message,
    /// A message that came before, or that comes.
    AnyMessage,
    /// The pong of its ping.
    Pong,
    /// The peer's close, which answers the step's own.
    Close,
    /// The peer's close.
    PeerClose,
}

/// A connection that is a WebSocket.
#[derive(Debug)]
pub(super) struct WebSocket {
    /// What came.
    pub decoder: Decoder,
    /// What the step under way waits for.
    pub awaiting: Awaiting,
    /// Whether a step has been begun here: until then the answer is the handshake's.
    pub has_begun: bool,
    /// Frames that are to be sent.
    pub pending: Vec<u8>,
    /// Whether it is among those that have something to send.
    pub is_listed: bool,
    /// Why there is none any more, in words, where that came while no step was under way.
    pub gone: Option<Box<str>>,
    /// Whether the peer has closed it.
    pub is_closed: bool,
    /// Where a program has it, and no step.
    pub of_program: Option<OfProgram>,
    /// The payload of the ping under way.
    ping: Vec<u8>,
    inbox: Inbox,
}

impl WebSocket {
    /// For messages of so many bytes at most.
    pub fn new(message_bytes: usize) -> Box<WebSocket> {
        let limits = Limits { frame_bytes: message_bytes, message_bytes };
        Box::new(WebSocket {
            decoder: Decoder::new(Role::Client, limits),
            awaiting: Awaiting::Nothing,
            has_begun: false,
            pending: Vec::new(),
            is_listed: false,
            gone: None,
            is_closed: false,
            of_program: None,
            ping: Vec::new(),
            inbox: Inbox::default(),
        })
    }

    /// How many messages nobody took.
    pub fn untaken(&self) -> usize {
        self.inbox.len()
    }

    /// Keeps the decoder's message for a later step; how many older ones had to go.
    fn keep(&mut self) -> u64 {
        self.inbox.keep(&[self.decoder.message()])
    }

    /// A message came: whether it may be the answer, and how many had to go where it is kept for a later step.
    pub fn offer_received(&mut self) -> Result<(), u64> {
        match self.awaiting {
            Awaiting::Message | Awaiting::AnyMessage => {
                self.inbox.offer = Offer::Received;
                Ok(())
            }
            _ => Err(self.keep()),
        }
    }

    /// Offers the oldest message that was kept, if the step takes one; false if there is none.
    pub fn offer_kept(&mut self) -> bool {
        self.awaiting == Awaiting::AnyMessage && self.inbox.offer_kept()
    }

    /// Whether the message that is offered was kept.
    pub fn is_kept_offered(&self) -> bool {
        self.inbox.offer == Offer::Kept
    }

    /// What was offered is not the answer: how many messages went by that.
    pub fn decline(&mut self) -> u64 {
        match std::mem::take(&mut self.inbox.offer) {
            Offer::None => 0,
            Offer::Received if self.awaiting == Awaiting::Message => self.keep(),
            Offer::Received | Offer::Kept => 1,
        }
    }

    /// Writes what a step sends behind what is to be sent, masked by `key`, and awaits what ends the step. `payload` is
    /// room.
    pub fn begin(
        &mut self,
        step: &WebSocketStep,
        cx: &mut Context<'_>,
        payload: &mut Vec<u8>,
        key: [u8; 4],
    ) -> Result<(), Failure> {
        payload.clear();
        let mut render = |template: &Template| template.render(cx, payload).map_err(Failure::Unmet);
        let (out, key) = (&mut self.pending, Some(key));
        self.awaiting = match step {
            WebSocketStep::Connect { .. } | WebSocketStep::Expect => Awaiting::AnyMessage,
            WebSocketStep::Send { message, kind, expects } => {
                render(message)?;
                if *kind == websocket::Kind::Text && std::str::from_utf8(payload).is_err() {
                    return Err(Failure::Unsendable("the text to be sent is not valid UTF-8".into()));
                }
                write_message(out, *kind, payload, key);
                if *expects { Awaiting::Message } else { Awaiting::Sent }
            }
            WebSocketStep::Ping(holds) => {
                render(holds)?;
                write_ping(out, payload, key);
                payload.truncate(websocket::MAX_CONTROL_BYTES);
                std::mem::swap(&mut self.ping, payload);
                Awaiting::Pong
            }
            WebSocketStep::Close { code, reason } => {
                render(reason)?;
                write_close(out, Some(*code), &String::from_utf8_lossy(payload), key);
                Awaiting::Close
            }
            WebSocketStep::ExpectClose => Awaiting::PeerClose,
        };
        (self.has_begun, self.inbox.offer) = (true, Offer::None);
        Ok(())
    }

    /// What a program hears.
    pub fn news(&self) -> Option<Heard<'_>> {
        let text = |bytes| std::str::from_utf8(bytes).unwrap_or_default();
        Some(match &self.of_program.as_ref()?.news {
            News::Nothing => return None,
            News::Frame(Frame::Message(Kind::Text)) => Heard::Text(text(self.decoder.message())),
            News::Frame(Frame::Message(Kind::Binary)) => Heard::Binary(self.decoder.message()),
            News::Frame(Frame::Ping) => Heard::Ping(self.decoder.control()),
            News::Frame(Frame::Pong) => Heard::Pong(self.decoder.control()),
            News::Frame(Frame::Close) => {
                Heard::Closed(self.decoder.close_code(), self.decoder.close_reason())
            }
            News::Ended => Heard::Ended,
            News::Broken(_, words) => Heard::Broken(words),
        })
    }

    /// Writes what a program says behind what is to be sent, masked by `key`; false where too much is to be sent already.
    pub fn say(&mut self, said: &Said, key: [u8; 4]) -> bool {
        let Some(of_program) = &mut self.of_program else { return false };
        if self.pending.len() > SAID_BYTES {
            return false;
        }
        let (out, key) = (&mut self.pending, Some(key));
        match said {
            Said::Text(text) => write_message(out, Kind::Text, text.as_bytes(), key),
            Said::Binary(bytes) => write_message(out, Kind::Binary, bytes, key),
            Said::Ping(payload) => write_ping(out, payload, key),
            Said::Close(code, reason) => write_close(out, told(*code), reason, key),
            Said::Leave(code) => write_close(out, told(*code), "", key),
        }
        of_program.is_closing = matches!(said, Said::Close(..) | Said::Leave(_));
        of_program.is_leaving = matches!(said, Said::Leave(_));
        true
    }

    /// Whether a program has left it, and all else is sent.
    pub fn is_leaving(&self) -> bool {
        self.of_program.as_ref().is_some_and(|of_program| of_program.is_leaving)
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
    pub fn close_words(&self) -> String {
        match (self.decoder.close_code(), self.decoder.close_reason()) {
            (None, _) => "the other side closed the WebSocket".to_owned(),
            (Some(code), "") => format!("the other side closed the WebSocket with code {code}"),
            (Some(code), reason) => format!("the other side closed the WebSocket with code {code}: {reason}"),
        }
    }
}

/// What stands for a close without a code (RFC 6455, 7.4.1).
const NO_CODE: u16 = 1005;

/// What a close with this code says of it.
fn told(code: u16) -> Option<u16> {
    Some(code).filter(|code| *code != NO_CODE)
}

impl WebSocket {
    /// Whether the answer is the peer's close.
    pub fn is_answered_by_close(&self) -> bool {
        self.is_closed && self.awaiting == Awaiting::PeerClose
    }
}

impl Answer for WebSocket {
    /// The code of the close that was waited for.
    fn status(&self) -> u16 {
        if self.is_answered_by_close() { self.decoder.close_code().unwrap_or(NO_CODE) } else { 0 }
    }

    fn status_name(&self) -> &'static str {
        if self.is_answered_by_close() { "close code" } else { "status" }
    }

    fn status_words(&self) -> String {
        if self.is_answered_by_close() {
            return format!("close code {}", Answer::status(self));
        }
        match self.inbox.offer {
            Offer::None => "done".into(),
            Offer::Received | Offer::Kept => "a message".into(),
        }
    }

    fn body(&self) -> &[u8] {
        match self.inbox.offer {
            Offer::None if self.is_answered_by_close() => self.decoder.close_reason().as_bytes(),
            Offer::None => &[],
            Offer::Received => self.decoder.message(),
            Offer::Kept => self.inbox.taken(),
        }
    }

    fn body_bytes(&self) -> Option<u64> {
        (self.inbox.offer != Offer::None).then(|| self.received_bytes())
    }
}
