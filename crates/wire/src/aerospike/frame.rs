//! Frames, put together from bytes as they come.

/// Version and kind, then a length of 48 bits.
pub(super) const FRAME_BYTES: usize = 8;
/// Of a buffer that grew beyond this, the rest is given back before the next reply.
pub(super) const RETAINED_BYTES: usize = 1 << 20;
const VERSION: u8 = 2;

/// What a frame holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FrameKind {
    /// Lines about a node.
    Info = 1,
    /// Messages about records.
    Message = 3,
}

/// Why bytes are no reply, or none that is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ReplyError {
    /// The connection was closed before the first byte.
    #[error("the connection was closed before any byte of the reply")]
    Empty,
    /// The connection was closed inside the reply.
    #[error("the connection was closed in the middle of the reply")]
    Truncated,
    /// Another protocol, or another kind of frame.
    #[error("a reply does not begin as one of Aerospike's protocol")]
    Frame,
    /// A length within it goes beyond its end, or leaves something.
    #[error("a reply is not as long as it says")]
    Length,
    /// A number of another size than numbers have.
    #[error("a value in a reply is none of its type")]
    Value,
    /// More than [`ReplyLimits::body_bytes`](super::ReplyLimits).
    #[error("the reply is larger than the limit of {limit_bytes} bytes")]
    TooLarge {
        /// That limit.
        limit_bytes: usize,
    },
}

/// Appends the beginning of a frame whose length is written by [`end`]; returns where it begins.
pub(super) fn begin(kind: FrameKind, out: &mut Vec<u8>) -> usize {
    let begin = out.len();
    out.extend_from_slice(&[VERSION, kind as u8, 0, 0, 0, 0, 0, 0]);
    begin
}

/// Ends the frame that began there.
pub fn end(begin: usize, out: &mut [u8]) {
    let length = ((out.len() - begin - FRAME_BYTES) as u64).to_be_bytes();
    out[begin + 2..begin + FRAME_BYTES].copy_from_slice(&length[2..]);
}

/// Takes one frame after the other from a connection's bytes.
#[derive(Debug)]
pub(super) struct Frames {
    kind: FrameKind,
    /// Most bytes of a payload, and the limit that is told.
    payload_max: usize,
    limit_bytes: usize,
    /// What has come of a frame that is not whole.
    gathered: Vec<u8>,
}

impl Frames {
    /// Frames of a kind whose payloads have at most `limit_bytes`, and `beside` for what stands around that.
    pub fn new(kind: FrameKind, limit_bytes: usize, beside: usize) -> Frames {
        Frames { kind, payload_max: limit_bytes.saturating_add(beside), limit_bytes, gathered: Vec::new() }
    }

    /// Forgets what is not whole, and gives back what a large frame needed.
    pub fn clear(&mut self) {
        self.gathered.clear();
        self.gathered.shrink_to(RETAINED_BYTES);
    }

    /// Bytes that are held for frames that are not whole.
    #[cfg(test)]
    pub fn held_bytes(&self) -> usize {
        self.gathered.capacity()
    }

    /// Takes bytes from the front of `input` up to the end of the next frame; how many, and what `with` made of the payload
    /// once it is whole.
    pub fn take<R>(
        &mut self,
        input: &[u8],
        with: impl FnOnce(&[u8]) -> Result<R, ReplyError>,
    ) -> Result<(usize, Option<R>), ReplyError> {
        if self.gathered.is_empty()
            && let Some(whole) = self.bytes_of(input)?.filter(|whole| *whole <= input.len())
        {
            return Ok((whole, Some(with(&input[FRAME_BYTES..whole])?)));
        }
        let mut at = 0;
        loop {
            let known = self.bytes_of(&self.gathered)?;
            if known == Some(self.gathered.len()) {
                break;
            }
            let missing = known.unwrap_or(FRAME_BYTES) - self.gathered.len();
            let taken = missing.min(input.len() - at);
            if taken == 0 {
                return Ok((at, None));
            }
            self.gathered.extend_from_slice(&input[at..at + taken]);
            at += taken;
        }
        let result = with(&self.gathered[FRAME_BYTES..]);
        self.gathered.clear();
        Ok((at, Some(result?)))
    }

    /// How long a frame is that begins so; none where that cannot be told yet.
    fn bytes_of(&self, bytes: &[u8]) -> Result<Option<usize>, ReplyError> {
        let Some(head) = bytes.first_chunk::<FRAME_BYTES>() else { return Ok(None) };
        if head[..2] != [VERSION, self.kind as u8] {
            return Err(ReplyError::Frame);
        }
        let length = u64::from_be_bytes(*head) & 0xffff_ffff_ffff;
        match usize::try_from(length).ok().filter(|length| *length <= self.payload_max) {
            Some(length) => Ok(Some(FRAME_BYTES + length)),
            None => Err(ReplyError::TooLarge { limit_bytes: self.limit_bytes }),
        }
    }
}
