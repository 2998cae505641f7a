//! Items out of a frame, as slices of it.

use super::varint::Place;
use super::{ANSWER, CALL, CANCEL, FAILURE, JUMP, KIND, Limits, METHOD, REASON_BYTES_MAX, RpcError, TIME};

/// A call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Call<'a> {
    /// The client's number for it, which its answer carries.
    pub id: u64,
    /// The method's number in the greeting.
    pub method: u32,
    /// The time that it had left when it was sent, in milliseconds; never 0.
    pub deadline_ms: u32,
    /// Its arguments.
    pub payload: &'a [u8],
}

/// What a client sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Request<'a> {
    /// Do this.
    Call(Call<'a>),
    /// The answer to that call is not waited for any more. It is answered nevertheless.
    Cancel {
        /// The call's number.
        id: u64,
    },
}

/// What a server sends: exactly one for each call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer<'a> {
    /// What the method returned.
    Done {
        /// The call's number.
        id: u64,
        /// The returned value.
        payload: &'a [u8],
    },
    /// The call failed.
    Failed {
        /// The call's number.
        id: u64,
        /// Why, as a code of HTTP: 400 to 599.
        code: u16,
        /// Why, in words.
        reason: &'a str,
    },
}

/// Where a reader stands within a frame.
#[derive(Debug, Clone, Copy)]
struct State {
    limits: Limits,
    at: usize,
    items: usize,
    id: u64,
}

impl State {
    fn new(limits: Limits) -> Self {
        State { limits, at: 0, items: 0, id: 0 }
    }

    /// The next item's first byte, unless the frame has ended.
    #[inline]
    fn next<'a>(&mut self, frame: &'a [u8]) -> Result<Option<(u8, Place<'a>)>, RpcError> {
        if self.at >= frame.len() {
            return Ok(None);
        }
        if self.items == 0 && frame.len() > self.limits.frame_bytes {
            return Err(RpcError::FrameTooLarge { limit_bytes: self.limits.frame_bytes });
        }
        if self.items >= self.limits.items {
            return Err(RpcError::TooManyItems { limit: self.limits.items });
        }
        self.items += 1;
        let mut place = Place { frame, at: self.at };
        Ok(Some((place.byte()?, place)))
    }

    #[inline]
    fn id(&mut self, tag: u8, place: &mut Place<'_>) -> Result<u64, RpcError> {
        let difference = if tag & JUMP == 0 { 1 } else { place.difference()? };
        self.id = self.id.checked_add_signed(difference).ok_or(RpcError::Id)?;
        Ok(self.id)
    }

    #[inline]
    fn payload<'a>(&self, place: &mut Place<'a>) -> Result<&'a [u8], RpcError> {
        let limit_bytes = self.limits.payload_bytes;
        place.bytes(limit_bytes, RpcError::PayloadTooLarge { limit_bytes })
    }
}

/// Reads a client's frames, item by item. Keeps its place, so that the rest of a frame can wait.
#[derive(Debug, Clone, Copy)]
pub struct CallReader {
    state: State,
    /// Method and deadline of the call before.
    before: Option<(u32, u32)>,
}

impl CallReader {
    /// A reader that begins a frame.
    pub fn new(limits: Limits) -> Self {
        CallReader { state: State::new(limits), before: None }
    }

    /// Begins another frame.
    pub fn begin(&mut self) {
        *self = Self::new(self.state.limits);
    }

    /// The next item of the frame, always the same one since the last [`begin`](Self::begin); none at its end.
    ///
    /// # Errors
    /// Why the frame is not taken; then the connection is of no more use.
    #[inline]
    pub fn next<'a>(&mut self, frame: &'a [u8]) -> Result<Option<Request<'a>>, RpcError> {
        let Some((tag, mut place)) = self.state.next(frame)? else { return Ok(None) };
        let request = match tag & KIND {
            CALL if tag & !(KIND | JUMP | METHOD | TIME) == 0 => {
                let id = self.state.id(tag, &mut place)?;
                let (method, deadline_ms) = self.method(tag, &mut place)?;
                self.before = Some((method, deadline_ms));
                let payload = self.state.payload(&mut place)?;
                Request::Call(Call { id, method, deadline_ms, payload })
            }
            CANCEL if tag & !(KIND | JUMP) == 0 => Request::Cancel { id: self.state.id(tag, &mut place)? },
            _ => return Err(RpcError::Item(tag)),
        };
        self.state.at = place.at;
        Ok(Some(request))
    }

    #[inline]
    fn method(&self, tag: u8, place: &mut Place<'_>) -> Result<(u32, u32), RpcError> {
        if tag & (METHOD | TIME) == 0 {
            return self.before.ok_or(RpcError::NothingBefore);
        }
        let before = self.before.ok_or(RpcError::NothingBefore);
        let method = match tag & METHOD {
            0 => before?.0,
            // a number that no greeting has is no method, which is for the server to answer
            _ => u32::try_from(place.number()?).unwrap_or(u32::MAX),
        };
        let deadline_ms = match tag & TIME {
            0 => before?.1,
            _ => u32::try_from(place.number()?).ok().filter(|ms| *ms > 0).ok_or(RpcError::Deadline)?,
        };
        Ok((method, deadline_ms))
    }

    /// All that is left of the frame; ends behind an error.
    pub fn all<'a>(mut self, frame: &'a [u8]) -> impl Iterator<Item = Result<Request<'a>, RpcError>> {
        let mut failed = false;
        std::iter::from_fn(move || {
            let next = if failed { None } else { self.next(frame).transpose() };
            failed = matches!(next, Some(Err(_)));
            next
        })
    }
}

/// Reads a server's frames behind the greeting, item by item.
#[derive(Debug, Clone, Copy)]
pub struct AnswerReader {
    state: State,
}

impl AnswerReader {
    /// A reader that begins a frame.
    pub fn new(limits: Limits) -> Self {
        AnswerReader { state: State::new(limits) }
    }

    /// Begins another frame.
    pub fn begin(&mut self) {
        *self = Self::new(self.state.limits);
    }

    /// The next item of the frame, always the same one since the last [`begin`](Self::begin); none at its end.
    ///
    /// # Errors
    /// Why the frame is not taken; then the connection is of no more use.
    #[inline]
    pub fn next<'a>(&mut self, frame: &'a [u8]) -> Result<Option<Answer<'a>>, RpcError> {
        let Some((tag, mut place)) = self.state.next(frame)? else { return Ok(None) };
        let answer = match tag & !JUMP {
            ANSWER => {
                let id = self.state.id(tag, &mut place)?;
                Answer::Done { id, payload: self.state.payload(&mut place)? }
            }
            FAILURE => {
                let id = self.state.id(tag, &mut place)?;
                let code = u16::try_from(place.number()?).ok().filter(|code| (400..600).contains(code));
                let code = code.ok_or(RpcError::Code)?;
                let too_long = RpcError::PayloadTooLarge { limit_bytes: REASON_BYTES_MAX };
                Answer::Failed { id, code, reason: place.text(REASON_BYTES_MAX, too_long)? }
            }
            _ => return Err(RpcError::Item(tag)),
        };
        self.state.at = place.at;
        Ok(Some(answer))
    }

    /// All that is left of the frame; ends behind an error.
    pub fn all<'a>(mut self, frame: &'a [u8]) -> impl Iterator<Item = Result<Answer<'a>, RpcError>> {
        let mut failed = false;
        std::iter::from_fn(move || {
            let next = if failed { None } else { self.next(frame).transpose() };
            failed = matches!(next, Some(Err(_)));
            next
        })
    }
}
