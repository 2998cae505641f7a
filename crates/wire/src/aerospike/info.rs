//! What a node tells of itself.

use super::frame::{self, FrameKind, Frames, ReplyError};
use crate::http1::Decoded;

/// Most bytes of what it tells: statistics are some hundred short lines.
const INFO_BYTES: usize = 4 << 20;

/// Appends a question for values by their names.
pub fn ask(names: &[&str], out: &mut Vec<u8>) {
    let begin = frame::begin(FrameKind::Info, out);
    for name in names {
        out.extend_from_slice(name.as_bytes());
        out.push(b'\n');
    }
    frame::end(begin, out);
}

/// Decodes the answer to a question.
#[derive(Debug)]
pub struct InfoDecoder {
    frames: Frames,
    told: Vec<u8>,
}

impl Default for InfoDecoder {
    fn default() -> Self {
        InfoDecoder { frames: Frames::new(FrameKind::Info, INFO_BYTES, 0), told: Vec::new() }
    }
}

impl InfoDecoder {
    /// Takes bytes from the front of `input`, up to the end of the answer.
    ///
    /// # Errors
    /// The bytes are none.
    pub fn decode(&mut self, input: &[u8]) -> Result<Decoded, ReplyError> {
        let told = &mut self.told;
        let (consumed, whole) = self.frames.take(input, |payload| {
            told.clear();
            told.extend_from_slice(payload);
            Ok(())
        })?;
        Ok(Decoded { consumed, complete: whole.is_some() })
    }

    /// What it answers to a name.
    pub fn answer(&self, name: &str) -> Option<&str> {
        let lines = self.told.split(|byte| *byte == b'\n').filter_map(|line| std::str::from_utf8(line).ok());
        lines
            .filter_map(|line| line.split_once('\t'))
            .find(|(known, _)| *known == name)
            .map(|(_, value)| value)
    }
}
