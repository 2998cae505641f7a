//! Lines of a file, however long they are.

use std::borrow::Cow;
use std::io::{self, BufRead, Read};

/// Longest line of which all is read, bytes; of a longer one the rest is passed over.
pub(super) const LINE_BYTES_MAX: u64 = 64 << 10;

/// The lines of a file with their numbers, one after the other.
pub(super) struct Lines<R> {
    from: R,
    line: Vec<u8>,
    number: u64,
    is_cut: bool,
}

impl<R: BufRead> Lines<R> {
    pub(super) fn new(from: R) -> Lines<R> {
        Lines { from, line: Vec::new(), number: 0, is_cut: false }
    }

    /// Whether the last line was longer than is read.
    pub(super) fn is_cut(&self) -> bool {
        self.is_cut
    }

    /// The next line, without its end, and its number from 1. What is not UTF-8 in it is replaced.
    pub(super) fn next(&mut self) -> io::Result<Option<(u64, Cow<'_, str>)>> {
        self.line.clear();
        if (&mut self.from).take(LINE_BYTES_MAX).read_until(b'\n', &mut self.line)? == 0 {
            return Ok(None);
        }
        self.is_cut = !self.line.ends_with(b"\n")
            && self.line.len() as u64 == LINE_BYTES_MAX
            && self.from.skip_until(b'\n')? > 0;
        self.number += 1;
        while self.line.last().is_some_and(|end| b"\r\n".contains(end)) {
            self.line.pop();
        }
        let line = self.line.strip_prefix("\u{feff}".as_bytes()).filter(|_| self.number == 1);
        Ok(Some((self.number, String::from_utf8_lossy(line.unwrap_or(&self.line)))))
    }
}
