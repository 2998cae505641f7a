//! Messages and control frames, put together from the bytes of a connection.

use super::write::{BINARY, CLOSE, CONTINUATION, PING, PONG, TEXT};
use super::{Decoded, Event, Kind, Limits, MAX_CONTROL_BYTES, Role, WebSocketError, is_close_code, mask};

/// Longest head of a frame: two bytes, a length of eight, a key of four.
const HEAD_BYTES: usize = 14;
/// A message's buffer larger than this is given back to the system when the next message begins.
const KEPT_BYTES: usize = 1 << 20;

/// A frame whose head has come.
#[derive(Debug, Clone, Copy)]
struct Frame {
    opcode: u8,
    last: bool,
    key: Option<[u8; 4]>,
    length: usize,
    taken: usize,
}

/// Decodes one event after the other from a connection's bytes.
///
/// What an accessor shows holds until the next call of [`decode`](Self::decode). After an error the connection is of
/// no more use, and `decode` repeats the error.
#[derive(Debug)]
pub struct Decoder {
    role: Role,
    limits: Limits,
    head: [u8; HEAD_BYTES],
    head_bytes: usize,
    frame: Option<Frame>,
    /// The message that has begun and not ended.
    open: Option<Kind>,
    message: Vec<u8>,
    /// Bytes of a text's front that are known to be UTF-8.
    checked_bytes: usize,
    control: [u8; MAX_CONTROL_BYTES],
    control_bytes: usize,
    closed: bool,
    failed: Option<WebSocketError>,
}

impl Decoder {
    /// A decoder for the side `role`, ready for the first frame.
    pub fn new(role: Role, limits: Limits) -> Self {
        Decoder {
            role,
            limits,
            head: [0; HEAD_BYTES],
            head_bytes: 0,
            frame: None,
            open: None,
            message: Vec::new(),
            checked_bytes: 0,
            control: [0; MAX_CONTROL_BYTES],
            control_bytes: 0,
            closed: false,
            failed: None,
        }
    }

    /// Begins anew on another connection; buffers are kept.
    pub fn start(&mut self) {
        let mut message = std::mem::take(&mut self.message);
        message.clear();
        *self = Decoder { message, ..Decoder::new(self.role, self.limits) };
    }

    /// Takes bytes from the front of `input`, until they complete an event or are all taken. To be called again with
    /// the rest while there is an event. After a close nothing is taken.
    pub fn decode(&mut self, input: &[u8]) -> Result<Decoded, WebSocketError> {
        if let Some(error) = self.failed {
            return Err(error);
        }
        let result = self.advance(input);
        self.failed = result.err();
        debug_assert!(result.is_err() || result.is_ok_and(|decoded| decoded.consumed <= input.len()));
        result
    }

    fn advance(&mut self, input: &[u8]) -> Result<Decoded, WebSocketError> {
        let mut consumed = 0;
        while !self.closed {
            if self.frame.is_none() {
                let (taken, whole) = self.read_head(&input[consumed..])?;
                consumed += taken;
                if !whole {
                    break;
                }
            }
            let Some(frame) = self.frame.as_mut() else { break };
            let rest = &input[consumed..];
            let taken = rest.len().min(frame.length - frame.taken);
            let piece = &rest[..taken];
            let offset = frame.taken;
            frame.taken += taken;
            consumed += taken;
            let (frame, ended) = (*frame, frame.taken == frame.length);
            if frame.opcode >= CLOSE {
                self.control_piece(piece, frame, offset);
            } else {
                self.message_piece(piece, frame, offset)?;
            }
            if !ended {
                break;
            }
            self.frame = None;
            let event = self.frame_ended(frame)?;
            if event.is_some() {
                return Ok(Decoded { consumed, event });
            }
        }
        Ok(Decoded { consumed, event: None })
    }

    /// Collects a frame's head; how many bytes it took of `input`, and whether the head is whole.
    fn read_head(&mut self, input: &[u8]) -> Result<(usize, bool), WebSocketError> {
        // As it mostly comes: the whole head is in the input, and nothing needs to be put aside.
        if self.head_bytes == 0
            && input.len() >= 2
            && let wanted = head_length(input[1])
            && input.len() >= wanted
        {
            self.frame = Some(self.read_frame(&input[..wanted])?);
            return Ok((wanted, true));
        }
        let mut taken = 0;
        loop {
            let wanted = if self.head_bytes < 2 { 2 } else { head_length(self.head[1]) };
            if self.head_bytes >= 2 && self.head_bytes == wanted {
                break;
            }
            let piece = &input[taken..input.len().min(taken + wanted - self.head_bytes)];
            if piece.is_empty() {
                return Ok((taken, false));
            }
            self.head[self.head_bytes..self.head_bytes + piece.len()].copy_from_slice(piece);
            self.head_bytes += piece.len();
            taken += piece.len();
            if self.head_bytes == 2 {
                self.check_start(self.head[0], self.head[1])?;
            }
        }
        let head = self.head;
        self.frame = Some(self.read_frame(&head[..self.head_bytes])?);
        self.head_bytes = 0;
        Ok((taken, true))
    }

    /// What can be wrong with the first two bytes.
    fn check_start(&self, first: u8, second: u8) -> Result<(), WebSocketError> {
        if first & 0x70 != 0 {
            return Err(WebSocketError::ReservedBits);
        }
        let (opcode, last) = (first & 0x0f, first & 0x80 != 0);
        match (self.role, second & 0x80 != 0) {
            (Role::Client, true) => return Err(WebSocketError::Masked),
            (Role::Server, false) => return Err(WebSocketError::NotMasked),
            _ => {}
        }
        match opcode {
            CONTINUATION if self.open.is_none() => Err(WebSocketError::NothingToContinue),
            TEXT | BINARY if self.open.is_some() => Err(WebSocketError::MessageNotEnded),
            CONTINUATION | TEXT | BINARY => Ok(()),
            CLOSE | PING | PONG if !last => Err(WebSocketError::FragmentedControl),
            CLOSE | PING | PONG if second & 0x7f > 125 => Err(WebSocketError::ControlTooLarge),
            CLOSE | PING | PONG => Ok(()),
            unknown => Err(WebSocketError::UnknownOpcode(unknown)),
        }
    }

    /// A whole head.
    fn read_frame(&mut self, head: &[u8]) -> Result<Frame, WebSocketError> {
        self.check_start(head[0], head[1])?;
        let (opcode, last) = (head[0] & 0x0f, head[0] & 0x80 != 0);
        let (length, at) = match head[1] & 0x7f {
            126 => {
                let length = u64::from(u16::from_be_bytes([head[2], head[3]]));
                (Some(length).filter(|length| *length > 125), 4)
            }
            127 => {
                let length = head[2..10].iter().fold(0, |sum, byte| sum << 8 | u64::from(*byte));
                (Some(length).filter(|length| *length > 0xffff && length >> 63 == 0), 10)
            }
            short => (Some(u64::from(short)), 2),
        };
        let length = length.ok_or(WebSocketError::LengthForm)?;
        let key = (head[1] & 0x80 != 0).then(|| [head[at], head[at + 1], head[at + 2], head[at + 3]]);
        if opcode < CLOSE {
            self.begin_data(opcode, length)?;
        } else {
            self.control_bytes = 0;
        }
        Ok(Frame { opcode, last, key, length: length as usize, taken: 0 })
    }

    /// A frame of a message begins, whose length is held against the limits before anything of it is kept.
    fn begin_data(&mut self, opcode: u8, length: u64) -> Result<(), WebSocketError> {
        if length > self.limits.frame_bytes as u64 {
            return Err(WebSocketError::FrameTooLarge { limit_bytes: self.limits.frame_bytes });
        }
        if self.open.is_none() {
            self.message.clear();
            self.message.shrink_to(KEPT_BYTES);
            self.checked_bytes = 0;
        }
        if length > (self.limits.message_bytes as u64).saturating_sub(self.message.len() as u64) {
            return Err(WebSocketError::MessageTooLarge { limit_bytes: self.limits.message_bytes });
        }
        match opcode {
            TEXT => self.open = Some(Kind::Text),
            BINARY => self.open = Some(Kind::Binary),
            _ => {}
        }
        Ok(())
    }

    fn control_piece(&mut self, piece: &[u8], frame: Frame, offset: usize) {
        let place = &mut self.control[offset..offset + piece.len()];
        place.copy_from_slice(piece);
        if let Some(key) = frame.key {
            mask(place, key, offset);
        }
        self.control_bytes = offset + piece.len();
    }

    fn message_piece(&mut self, piece: &[u8], frame: Frame, offset: usize) -> Result<(), WebSocketError> {
        let start = self.message.len();
        self.message.extend_from_slice(piece);
        if let Some(key) = frame.key {
            mask(&mut self.message[start..], key, offset);
        }
        if self.open == Some(Kind::Text) {
            self.check_text()?;
        }
        Ok(())
    }

    /// Checks what has come of a text; a character's front may be left for later.
    fn check_text(&mut self) -> Result<(), WebSocketError> {
        match std::str::from_utf8(&self.message[self.checked_bytes..]) {
            Ok(text) => self.checked_bytes += text.len(),
            Err(error) if error.error_len().is_none() => self.checked_bytes += error.valid_up_to(),
            Err(_) => return Err(WebSocketError::InvalidText),
        }
        Ok(())
    }

    /// What the end of a frame completes.
    fn frame_ended(&mut self, frame: Frame) -> Result<Option<Event>, WebSocketError> {
        match frame.opcode {
            PING => Ok(Some(Event::Ping)),
            PONG => Ok(Some(Event::Pong)),
            CLOSE => {
                match self.control() {
                    [] => {}
                    [_] => return Err(WebSocketError::CloseCode),
                    [high, low, reason @ ..] => {
                        if !is_close_code(u16::from_be_bytes([*high, *low])) {
                            return Err(WebSocketError::CloseCode);
                        }
                        if std::str::from_utf8(reason).is_err() {
                            return Err(WebSocketError::InvalidText);
                        }
                    }
                }
                self.closed = true;
                Ok(Some(Event::Close))
            }
            _ if frame.last => {
                let kind = self.open.take().unwrap_or(Kind::Binary);
                if kind == Kind::Text && self.checked_bytes < self.message.len() {
                    return Err(WebSocketError::InvalidText);
                }
                Ok(Some(Event::Message(kind)))
            }
            _ => Ok(None),
        }
    }

    /// The last message, whole once its event came.
    pub fn message(&self) -> &[u8] {
        &self.message
    }

    /// The last control frame's payload.
    pub fn control(&self) -> &[u8] {
        &self.control[..self.control_bytes]
    }

    /// The code with which the peer closed; none if it did not, or gave none.
    pub fn close_code(&self) -> Option<u16> {
        match self.control() {
            [high, low, ..] if self.closed => Some(u16::from_be_bytes([*high, *low])),
            _ => None,
        }
    }

    /// The words that the peer gave for closing, often empty.
    pub fn close_reason(&self) -> &str {
        let reason = if self.closed { self.control().get(2..).unwrap_or_default() } else { &[] };
        std::str::from_utf8(reason).unwrap_or_default()
    }

    /// What it takes of the memory beside its own size, used or not.
    pub fn held_bytes(&self) -> usize {
        self.message.capacity()
    }

    /// Gives back the memory of the last message, which nobody must want to see any more. Between messages only.
    pub fn trim(&mut self) {
        if self.is_between_messages() {
            self.message = Vec::new();
        }
    }

    /// Whether the connection stands between two messages: its end now cuts none off.
    pub fn is_between_messages(&self) -> bool {
        self.open.is_none() && self.frame.is_none() && self.head_bytes == 0
    }
}

/// How long a head is, by its second byte.
fn head_length(second: u8) -> usize {
    let length = match second & 0x7f {
        126 => 4,
        127 => 10,
        _ => 2,
    };
    if second & 0x80 != 0 { length + 4 } else { length }
}
