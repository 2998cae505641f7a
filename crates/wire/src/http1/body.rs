//! Bodies: of a known length, in chunks, or until the connection closes.

use super::token::is_token_byte;
use super::{Decoded, DecoderLimits, HttpError, MAX_CHUNK_LINE_BYTES};

/// A body buffer that grew beyond this is given back before the next message.
const RETAINED_BYTES: usize = 1 << 20;
/// What is set aside at once for an announced length; the rest as it comes, for the announcement may be a lie.
const RESERVED_BYTES: usize = 64 << 10;
/// Hexadecimal digits of a chunk size; 16 of them fill 64 bits.
const MAX_SIZE_DIGITS: u8 = 16;
/// The largest chunk size that is a number: some count with a sign, and would take a larger one for a negative one.
const MAX_SIZE: u64 = i64::MAX as u64;

/// How the end of a body is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Framing {
    None,
    Length(u64),
    Chunked,
    UntilClose,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum State {
    #[default]
    Complete,
    Fixed {
        left: u64,
    },
    UntilClose,
    // chunked, in the order of the bytes
    Size {
        size: u64,
        digits: u8,
    },
    /// Blanks between the size and what follows it.
    SizeBlank {
        size: u64,
    },
    Extension {
        size: u64,
    },
    SizeLineFeed {
        size: u64,
    },
    Chunk {
        left: u64,
    },
    ChunkReturn,
    ChunkLineFeed,
    /// At the beginning of a trailer line, or of the blank line that ends the body.
    TrailerStart,
    TrailerName,
    TrailerValue,
    TrailerLineFeed,
    LastLineFeed,
}

/// The body of one message.
#[derive(Debug, Default)]
pub(super) struct Body {
    state: State,
    kept: Vec<u8>,
    /// Most bytes that are kept, from its beginning on.
    kept_max: usize,
    /// It is drained as it comes, and may go on for ever.
    is_streamed: bool,
    length_bytes: u64,
    /// Bytes of the chunk-size line or of all trailers so far.
    line_bytes: usize,
}

impl Body {
    /// Forgets the message before; of this one so many bytes are kept.
    pub fn reset(&mut self, kept_max: usize) {
        self.state = State::Complete;
        self.kept_max = kept_max;
        self.is_streamed = false;
        self.length_bytes = 0;
        self.line_bytes = 0;
        self.kept.clear();
        if self.kept.capacity() > RETAINED_BYTES {
            self.kept.shrink_to(RETAINED_BYTES);
        }
    }

    /// Forgets the message before; this one has no bound, and whoever reads it drains it.
    pub fn reset_streamed(&mut self) {
        self.reset(usize::MAX);
        self.is_streamed = true;
    }

    /// Forgets what is kept.
    pub fn drain(&mut self) {
        self.kept.clear();
        if self.kept.capacity() > RESERVED_BYTES {
            self.kept.shrink_to(RESERVED_BYTES);
        }
    }

    /// Most bytes of all of it.
    fn limit_bytes(&self, limits: &DecoderLimits) -> u64 {
        if self.is_streamed { u64::MAX } else { limits.body_bytes as u64 }
    }

    /// The head is read; this is how the body comes.
    pub fn begin(&mut self, framing: Framing, limits: &DecoderLimits) -> Result<(), HttpError> {
        self.state = match framing {
            Framing::None | Framing::Length(0) => State::Complete,
            Framing::Length(left) => {
                if left > self.limit_bytes(limits) {
                    return Err(HttpError::BodyTooLarge { limit_bytes: limits.body_bytes });
                }
                self.kept.reserve((left as usize).min(RESERVED_BYTES).min(self.kept_max));
                State::Fixed { left }
            }
            Framing::Chunked => State::Size { size: 0, digits: 0 },
            Framing::UntilClose => State::UntilClose,
        };
        Ok(())
    }

    pub fn bytes(&self) -> &[u8] {
        &self.kept
    }

    pub fn length_bytes(&self) -> u64 {
        self.length_bytes
    }

    /// The connection was closed: whether that makes the body whole.
    pub fn finish(&mut self) -> Result<(), HttpError> {
        match self.state {
            State::Complete | State::UntilClose => {
                self.state = State::Complete;
                Ok(())
            }
            _ => Err(HttpError::Truncated),
        }
    }

    /// Takes the bytes of the body from the front of `input`.
    pub fn read(&mut self, input: &[u8], limits: &DecoderLimits) -> Result<Decoded, HttpError> {
        let consumed = match self.state {
            State::Complete => 0,
            State::Fixed { left } => {
                let part = front(input, left);
                self.take(part, limits)?;
                let left = left - part.len() as u64;
                self.state = if left == 0 { State::Complete } else { State::Fixed { left } };
                part.len()
            }
            State::UntilClose => {
                self.take(input, limits)?;
                input.len()
            }
            _ => self.read_chunked(input, limits)?,
        };
        Ok(Decoded { consumed, complete: self.state == State::Complete })
    }

    fn take(&mut self, part: &[u8], limits: &DecoderLimits) -> Result<(), HttpError> {
        self.length_bytes = self.length_bytes.saturating_add(part.len() as u64);
        if self.length_bytes > self.limit_bytes(limits) {
            return Err(HttpError::BodyTooLarge { limit_bytes: limits.body_bytes });
        }
        let room = self.kept_max.saturating_sub(self.kept.len());
        if room > 0 {
            self.kept.extend_from_slice(&part[..part.len().min(room)]);
        }
        Ok(())
    }

    fn read_chunked(&mut self, input: &[u8], limits: &DecoderLimits) -> Result<usize, HttpError> {
        let mut at = 0;
        while at < input.len() && self.state != State::Complete {
            if let State::Chunk { left } = self.state {
                let part = front(&input[at..], left);
                self.take(part, limits)?;
                at += part.len();
                let left = left - part.len() as u64;
                self.state = if left == 0 { State::ChunkReturn } else { State::Chunk { left } };
            } else {
                self.state = self.step(input[at], limits)?;
                at += 1;
            }
        }
        Ok(at)
    }

    /// One byte of what stands around the chunks. Lines end with both CR and LF: leniency here is what smuggled
    /// requests are made of.
    fn step(&mut self, byte: u8, limits: &DecoderLimits) -> Result<State, HttpError> {
        match self.state {
            State::Size { .. } | State::SizeBlank { .. } | State::Extension { .. } => {
                self.line_bytes += 1;
                if self.line_bytes > MAX_CHUNK_LINE_BYTES {
                    return Err(HttpError::ChunkLineTooLong);
                }
                size_line(self.state, byte)
            }
            State::SizeLineFeed { size } => {
                self.line_bytes = 0;
                match (byte, size) {
                    (b'\n', 0) => Ok(State::TrailerStart),
                    (b'\n', left) if left > self.limit_bytes(limits).saturating_sub(self.length_bytes) => {
                        Err(HttpError::BodyTooLarge { limit_bytes: limits.body_bytes })
                    }
                    (b'\n', left) => Ok(State::Chunk { left }),
                    _ => Err(HttpError::ChunkSizeInvalid),
                }
            }
            State::ChunkReturn if byte == b'\r' => Ok(State::ChunkLineFeed),
            State::ChunkLineFeed if byte == b'\n' => Ok(State::Size { size: 0, digits: 0 }),
            State::ChunkReturn | State::ChunkLineFeed => Err(HttpError::ChunkEndMissing),
            state => {
                self.line_bytes += 1;
                if self.line_bytes > limits.head_bytes {
                    return Err(HttpError::HeadTooLarge { limit_bytes: limits.head_bytes });
                }
                trailer(state, byte)
            }
        }
    }
}

/// The line with a chunk's size: digits, blanks, an extension, CR.
fn size_line(state: State, byte: u8) -> Result<State, HttpError> {
    let (size, blank_allowed) = match state {
        State::Size { size, digits } => {
            if let Some(digit) = (byte as char).to_digit(16) {
                return match digits < MAX_SIZE_DIGITS && size <= MAX_SIZE >> 4 {
                    true => Ok(State::Size { size: size << 4 | u64::from(digit), digits: digits + 1 }),
                    false => Err(HttpError::ChunkSizeInvalid),
                };
            }
            (size, digits > 0)
        }
        State::SizeBlank { size } => (size, true),
        State::Extension { size } => {
            return match byte {
                b'\r' => Ok(State::SizeLineFeed { size }),
                b'\t' | b' '..=b'~' | 0x80.. => Ok(State::Extension { size }),
                _ => Err(HttpError::ChunkSizeInvalid),
            };
        }
        _ => return Err(HttpError::ChunkSizeInvalid),
    };
    match byte {
        _ if !blank_allowed => Err(HttpError::ChunkSizeInvalid),
        b'\r' => Ok(State::SizeLineFeed { size }),
        b';' => Ok(State::Extension { size }),
        b' ' | b'\t' => Ok(State::SizeBlank { size }),
        _ => Err(HttpError::ChunkSizeInvalid),
    }
}

/// Trailers are checked for their shape and passed over: nothing asks for their content.
fn trailer(state: State, byte: u8) -> Result<State, HttpError> {
    match (state, byte) {
        (State::TrailerStart, b'\r') => Ok(State::LastLineFeed),
        (State::TrailerStart | State::TrailerName, _) if is_token_byte(byte) => Ok(State::TrailerName),
        (State::TrailerName, b':') => Ok(State::TrailerValue),
        (State::TrailerValue, b'\r') => Ok(State::TrailerLineFeed),
        (State::TrailerValue, b'\t' | b' '..=b'~' | 0x80..) => Ok(State::TrailerValue),
        (State::TrailerLineFeed, b'\n') => Ok(State::TrailerStart),
        (State::LastLineFeed, b'\n') => Ok(State::Complete),
        _ => Err(HttpError::TrailerMalformed),
    }
}

/// At most `limit` bytes from the front.
fn front(input: &[u8], limit: u64) -> &[u8] {
    let length = usize::try_from(limit).unwrap_or(usize::MAX).min(input.len());
    &input[..length]
}
