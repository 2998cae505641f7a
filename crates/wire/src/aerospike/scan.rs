//! All records of a set.

use super::frame::{self, FrameKind, Frames, ReplyError};
use super::message::{LAST, Message, PARTITION_DONE, particle};
use super::request::{append_field, field, header};
use crate::http1::Decoded;

/// Partitions of a namespace.
pub const PARTITIONS: u16 = 4096;

const READ: u8 = 1;

/// Appends the question for all records of a set, of the namespace where the set has no name. `id` tells it from others that
/// the node is asked at the time; `timeout_ms` is how long it may be unable to send.
pub fn scan(namespace: &str, set: &str, id: u64, timeout_ms: u32, out: &mut Vec<u8>) {
    let begin = frame::begin(FrameKind::Message, out);
    let fields = if set.is_empty() { 4 } else { 5 };
    out.extend_from_slice(&header([READ, 0, PARTITION_DONE], fields, [0, 0]));
    append_field(field::NAMESPACE, namespace.as_bytes(), out);
    if !set.is_empty() {
        append_field(field::SET, set.as_bytes(), out);
    }
    let partitions: Vec<u8> = (0..PARTITIONS).flat_map(u16::to_le_bytes).collect();
    append_field(field::PARTITIONS, &partitions, out);
    append_field(field::SOCKET_TIMEOUT, &timeout_ms.to_be_bytes(), out);
    append_field(field::QUERY_ID, &id.to_be_bytes(), out);
    frame::end(begin, out);
}

/// What a scan tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Found<'m> {
    /// A bin's value, as text.
    Value(&'m [u8]),
    /// All of a partition has been told, or it is not there: the result code is not 0.
    Partition {
        /// Its number.
        number: u32,
        /// What came of it.
        code: u8,
    },
    /// Nothing more comes; with another result code than 0 because of that.
    End {
        /// What came of it all.
        code: u8,
    },
}

/// Decodes what a scan tells, many records to a frame.
#[derive(Debug)]
pub struct Records {
    frames: Frames,
    text: Vec<u8>,
}

impl Records {
    /// In frames of so many bytes at most.
    pub fn new(frame_bytes: usize) -> Records {
        Records { frames: Frames::new(FrameKind::Message, frame_bytes, 0), text: Vec::new() }
    }

    /// Takes bytes from the front of `input` and shows what is in them; complete once nothing more comes.
    ///
    /// # Errors
    /// The bytes are none of a scan.
    pub fn decode(&mut self, input: &[u8], visit: &mut dyn FnMut(Found<'_>)) -> Result<Decoded, ReplyError> {
        let mut consumed = 0;
        loop {
            let text = &mut self.text;
            let (taken, ended) =
                self.frames.take(&input[consumed..], |payload| each(payload, text, visit))?;
            consumed += taken;
            match ended {
                Some(true) => return Ok(Decoded { consumed, complete: true }),
                Some(false) => {}
                None => return Ok(Decoded { consumed, complete: false }),
            }
        }
    }
}

/// Shows what a frame tells; whether it is the last one.
fn each(
    mut payload: &[u8],
    text: &mut Vec<u8>,
    visit: &mut dyn FnMut(Found<'_>),
) -> Result<bool, ReplyError> {
    while !payload.is_empty() {
        let message = Message::read(payload)?;
        let code = message.code;
        let is_of_partition = message.info3 & PARTITION_DONE != 0;
        let is_record = code == 0 && !is_of_partition && message.info3 & LAST == 0;
        payload = message.each_bin(|bin| {
            if is_record && bin.particle != particle::NULL {
                text.clear();
                bin.append_text(text)?;
                visit(Found::Value(text));
            }
            Ok(())
        })?;
        if message.info3 & LAST != 0 || (code != 0 && !is_of_partition) {
            visit(Found::End { code });
            return Ok(true);
        }
        if is_of_partition {
            visit(Found::Partition { number: message.generation, code });
        }
    }
    Ok(false)
}
