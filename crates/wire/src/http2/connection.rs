//! A connection of HTTP/2, as the client has it.
//!
//! Its owner feeds it what comes, takes [`Event`]s until there are none, and sends what was appended to its buffer. Streams
//! have an owner each, a number that only says whom an event is for. Data that comes is lent from the input and never kept;
//! what is granted again to the server is granted at once, or where a stream [holds](Request::holds) its data once that is
//! [released](Connection::release).
//!
//! What the server may make it keep is bounded: a frame that is not a body's, a header block, answers that are owed to
//! PING and SETTINGS, streams that were given up. What its owner sends is kept until flow control lets it go;
//! how much that is, [`Connection::waiting_bytes`] tells.

mod frames;
mod head;
mod sending;
mod stream;

use std::collections::VecDeque;

use super::frame::{FrameHead, HEAD_BYTES, MOST, PAYLOAD_BYTES, PREFACE, kind, setting};
use super::hpack::{Decoder, Fields, KNOWN_LISTS};
use super::{Reason, Violation, frame};
use head::Answer;
use stream::{Abandoned, Granted, Streams};

/// What a server may send on a stream before more is granted.
pub const STREAM_WINDOW_BYTES: u32 = 1 << 20;
/// What it may send on a connection.
pub const CONNECTION_WINDOW_BYTES: u32 = 16 << 20;
/// What either end may send on a connection or a stream before anybody has said anything.
const FIRST_WINDOW_BYTES: u32 = 65_535;
/// Largest header block of an answer, each with 32 bytes beside its own.
pub const HEADERS_BYTES: usize = 64 << 10;
/// The same in its compressed form.
const BLOCK_BYTES: usize = 256 << 10;
/// Most frames in which it comes.
const BLOCK_FRAMES: usize = 128;
/// Bytes that may wait to be sent before no more data is put behind them.
pub const OUTPUT_BYTES: usize = 256 << 10;
/// What a piece of data that waits takes beside its bytes.
pub const PIECE_BYTES: usize = 64;
/// Bytes of answers to PING and SETTINGS that may wait to be sent.
const OWED_BYTES: usize = 256 << 10;
/// Room for a frame that is kept for the next one.
const RETAINED_BYTES: usize = 4 << 10;

/// A request as a connection sees it, but for its headers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Request {
    /// Whom its answer is for.
    pub owner: u32,
    /// Whether nothing follows its headers.
    pub ends: bool,
    /// Whether its method is `HEAD`, so that no body follows whatever length the answer names.
    pub is_head: bool,
    /// Whether the server may send more only as its owner [releases](Connection::release) what came.
    pub holds: bool,
}

/// What came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event<'a> {
    /// An interim answer (1xx).
    Interim {
        /// Whom it is for.
        owner: u32,
    },
    /// The head of an answer; its headers are in [`Connection::fields`].
    Head {
        /// Whom it is for.
        owner: u32,
        /// Of HTTP.
        status: u16,
        /// Bytes of the body, where the head says so.
        length: Option<u64>,
        /// Whether that is all.
        ends: bool,
    },
    /// A piece of a body.
    Data {
        /// Whom it is for.
        owner: u32,
        /// The piece.
        bytes: &'a [u8],
        /// Whether that is all.
        ends: bool,
    },
    /// Trailers, in [`Connection::fields`]; that is all.
    Trailers {
        /// Whom they are for.
        owner: u32,
    },
    /// The stream is over without an answer that is whole.
    Failed {
        /// Whom it was for.
        owner: u32,
        /// Why.
        why: StreamError,
    },
}

impl Event<'_> {
    /// Whom it is for.
    pub fn owner(&self) -> u32 {
        match *self {
            Event::Interim { owner }
            | Event::Head { owner, .. }
            | Event::Data { owner, .. }
            | Event::Trailers { owner }
            | Event::Failed { owner, .. } => owner,
        }
    }
}

/// Why a stream is over without an answer that is whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StreamError {
    /// The server reset it.
    Reset(Reason),
    /// The server ends the connection and says that it did nothing about it.
    NotTaken(Reason),
    /// What the server sent on it is not right. It is reset.
    Wrong(Violation),
}

/// A header block that came in part.
#[derive(Debug, Clone, Copy)]
struct Listing {
    stream: u32,
    ends: bool,
    frames: usize,
}

/// A DATA frame that came in part.
#[derive(Debug, Clone, Copy)]
struct Data {
    stream: u32,
    /// Bytes of its payload that are still to come.
    missing: usize,
    /// Those at its end that are padding.
    padding: usize,
    /// Whether the next byte says how many these are.
    says_padding: bool,
    ends: bool,
}

/// The client's end of a connection.
#[derive(Debug)]
pub struct Connection {
    streams: Streams,
    abandoned: Abandoned,
    /// The next stream's number.
    next: u32,
    decoder: Decoder,
    fields: Fields,
    /// The answers that lists begin which the decoder remembers.
    answers: [Option<Answer>; KNOWN_LISTS],
    /// A frame that is not whole yet.
    partial: Vec<u8>,
    data: Option<Data>,
    /// Bytes to be passed over.
    skipped: usize,
    listing: Option<Listing>,
    /// What has come of it.
    block: Vec<u8>,
    /// What is told next.
    told: VecDeque<(u32, StreamError)>,
    /// Whether the server's SETTINGS have come.
    is_greeted: bool,
    /// The last stream that the server takes, once it has said so.
    last: Option<u32>,
    /// What the server may send.
    granted: Granted,
    /// Bytes of data that may be sent on the connection, and at first on a stream.
    window: i64,
    stream_window: u32,
    most_streams: usize,
    /// Streams with data that may go as soon as the connection lets it.
    ready: VecDeque<u32>,
    /// Bytes of answers to PING and SETTINGS since the output was taken.
    owed: usize,
}

impl Connection {
    /// Appends what a client says first.
    pub fn new(out: &mut Vec<u8>) -> Connection {
        out.extend_from_slice(PREFACE);
        let settings = [
            (setting::ENABLE_PUSH, 0),
            (setting::INITIAL_WINDOW_SIZE, STREAM_WINDOW_BYTES),
            (setting::MAX_HEADER_LIST_SIZE, HEADERS_BYTES as u32),
        ];
        let length = settings.len() * setting::BYTES;
        FrameHead { length, kind: kind::SETTINGS, flags: 0, stream: 0 }.write(out);
        for (name, value) in settings {
            out.extend_from_slice(&name.to_be_bytes());
            out.extend_from_slice(&value.to_be_bytes());
        }
        let more = CONNECTION_WINDOW_BYTES - FIRST_WINDOW_BYTES;
        frame::write(kind::WINDOW_UPDATE, 0, 0, &more.to_be_bytes(), out);
        Connection {
            streams: Streams::default(),
            abandoned: Abandoned::default(),
            next: 1,
            decoder: Decoder::default(),
            fields: Fields::default(),
            answers: [None; KNOWN_LISTS],
            partial: Vec::new(),
            data: None,
            skipped: 0,
            listing: None,
            block: Vec::new(),
            told: VecDeque::new(),
            is_greeted: false,
            last: None,
            granted: Granted::new(CONNECTION_WINDOW_BYTES),
            window: i64::from(FIRST_WINDOW_BYTES),
            stream_window: FIRST_WINDOW_BYTES,
            most_streams: usize::MAX,
            ready: VecDeque::new(),
            owed: 0,
        }
    }

    /// Whether the server has said hello, by its SETTINGS.
    pub fn is_greeted(&self) -> bool {
        self.is_greeted
    }

    /// Most streams that the server takes at once, as far as it has said.
    pub fn most_streams(&self) -> usize {
        self.most_streams
    }

    /// Whether it takes no new request: the server said so, or the numbers of streams are used up.
    pub fn is_going_away(&self) -> bool {
        self.last.is_some() || self.next > MOST
    }

    /// The headers that the last event told of.
    pub fn fields(&mut self) -> &mut Fields {
        &mut self.fields
    }

    /// What was appended to the output was taken from there.
    pub fn taken(&mut self) {
        self.owed = 0;
    }

    /// The next thing that `input` means, which is cut by what was read; none once all of it is read. What the server is to
    /// be told is appended to `out`.
    ///
    /// # Errors
    /// The server did something against the protocol that ends the connection. It is told so by a GOAWAY.
    pub fn next<'a>(
        &mut self,
        input: &mut &'a [u8],
        out: &mut Vec<u8>,
    ) -> Result<Option<Event<'a>>, Violation> {
        loop {
            if let Some((owner, why)) = self.told.pop_front() {
                return Ok(Some(Event::Failed { owner, why }));
            }
            match self.step(input, out) {
                Ok(Step::Read) => {}
                Ok(Step::Wanting) => return Ok(None),
                Ok(Step::Came(event)) => return Ok(Some(event)),
                Err(violation) => {
                    let last_and_reason = [[0; 4], violation.reason.0.to_be_bytes()].concat();
                    frame::write(kind::GOAWAY, 0, 0, &last_and_reason, out);
                    return Err(violation);
                }
            }
        }
    }

    /// Reads a frame, or a piece of one.
    fn step<'a>(&mut self, input: &mut &'a [u8], out: &mut Vec<u8>) -> Result<Step<'a>, Violation> {
        if self.skipped > 0 {
            let (_, rest) = input.split_at(self.skipped.min(input.len()));
            self.skipped -= input.len() - rest.len();
            *input = rest;
        }
        if let Some(data) = self.data {
            return self.data(data, input, out);
        }
        if !self.partial.is_empty() {
            return self.step_partial(input, out);
        }
        let Some((bytes, rest)) = input.split_first_chunk() else {
            return Ok(self.keep(input));
        };
        let head = FrameHead::read(bytes);
        self.check(head)?;
        if head.kind == kind::DATA {
            *input = rest;
            return self.begin_data(head, out);
        }
        let Some((payload, rest)) = rest.split_at_checked(head.length) else {
            return Ok(self.keep(input));
        };
        *input = rest;
        self.frame(head, payload, out)
    }

    /// The same where a part of it came before.
    fn step_partial<'a>(&mut self, input: &mut &'a [u8], out: &mut Vec<u8>) -> Result<Step<'a>, Violation> {
        if self.partial.len() < HEAD_BYTES {
            self.fill(HEAD_BYTES, input);
            let Some(bytes) = self.partial.first_chunk() else { return Ok(Step::Wanting) };
            let head = FrameHead::read(bytes);
            self.check(head)?;
            if head.kind == kind::DATA {
                self.partial.clear();
                return self.begin_data(head, out);
            }
        }
        let Some(bytes) = self.partial.first_chunk() else { return Ok(Step::Wanting) };
        let head = FrameHead::read(bytes);
        self.fill(HEAD_BYTES + head.length, input);
        if self.partial.len() < HEAD_BYTES + head.length {
            return Ok(Step::Wanting);
        }
        let mut partial = std::mem::take(&mut self.partial);
        let step = self.frame(head, &partial[HEAD_BYTES..], out);
        partial.clear();
        partial.shrink_to(RETAINED_BYTES);
        self.partial = partial;
        step
    }

    /// Keeps what is left of the input for the next one.
    fn keep(&mut self, input: &mut &[u8]) -> Step<'static> {
        self.partial.extend_from_slice(input);
        *input = &[];
        Step::Wanting
    }

    /// Keeps more of the input until so many bytes are kept.
    fn fill(&mut self, bytes: usize, input: &mut &[u8]) {
        let missing = bytes.saturating_sub(self.partial.len());
        let (taken, rest) = input.split_at(missing.min(input.len()));
        self.partial.extend_from_slice(taken);
        *input = rest;
    }

    /// What is wrong with a frame whatever is in it.
    fn check(&self, head: FrameHead) -> Result<(), Violation> {
        if !self.is_greeted && (head.kind != kind::SETTINGS || head.flags != 0) {
            return Err(Violation::protocol("its first frame is no SETTINGS"));
        }
        if head.length > PAYLOAD_BYTES {
            return Err(Violation::size("a frame is larger than a frame may be"));
        }
        match self.listing {
            Some(listing) if (head.kind, head.stream) != (kind::CONTINUATION, listing.stream) => {
                Err(Violation::protocol("another frame came within a header block"))
            }
            _ => Ok(()),
        }
    }
}

/// What came of reading.
enum Step<'a> {
    /// Something that its owner need not know.
    Read,
    /// More is to come first.
    Wanting,
    /// An event.
    Came(Event<'a>),
}

#[cfg(test)]
mod tests;
