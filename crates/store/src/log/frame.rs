//! Files of frames: what the logs and the snapshots are made of.
//!
//! A file begins with a head: a title that says what it is, its number, the key of the store, a checksum. Frames
//! follow: length of the content (4 bytes), number (8), checksum of the content (8), checksum of these three (8),
//! content. Both checksums are seeded with that of the file's head, and so with the store's random key: no frame of
//! another file, and nothing that somebody stored, can pass for a frame.

use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom};

use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::recover::OpenError;
use crate::files::Files;

pub(crate) const FILE_HEAD_BYTES: usize = 32;
pub(crate) const FRAME_HEAD_BYTES: usize = 28;
/// No frame has more content; far above what one write can be.
pub(crate) const CONTENT_BYTES_MAX: usize = 256 * 1024 * 1024;
/// Read in one go while looking for frames behind damage.
const SEARCH_BYTES: usize = 1024 * 1024;

/// What a file of frames is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Log,
    Snapshot,
}

/// How a file of frames begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FileHead {
    pub(crate) kind: Kind,
    /// Of a log: the number of its first group. Of a snapshot: the number of the last group that it covers.
    pub(crate) number: u64,
    /// The store's random number.
    pub(crate) key: u64,
}

impl FileHead {
    fn title(self) -> &'static [u8; 8] {
        match self.kind {
            Kind::Log => b"TmLog 1\n",
            Kind::Snapshot => b"TmSnap1\n",
        }
    }

    /// What the checksums of the file's frames are seeded with.
    pub(crate) fn seed(self) -> u64 {
        xxh3_64_with_seed(&self.bytes()[..24], self.key)
    }

    pub(crate) fn bytes(self) -> [u8; FILE_HEAD_BYTES] {
        let mut bytes = [0; FILE_HEAD_BYTES];
        bytes[..8].copy_from_slice(self.title());
        bytes[8..16].copy_from_slice(&self.number.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.key.to_le_bytes());
        let sum = xxh3_64_with_seed(&bytes[..24], self.key);
        bytes[24..].copy_from_slice(&sum.to_le_bytes());
        bytes
    }

    fn parse(bytes: &[u8; FILE_HEAD_BYTES], kind: Kind) -> Option<Self> {
        let head = FileHead { kind, number: number_at(bytes, 8), key: number_at(bytes, 16) };
        (head.bytes() == *bytes).then_some(head)
    }
}

fn number_at(bytes: &[u8], at: usize) -> u64 {
    let mut number = [0; 8];
    number.copy_from_slice(&bytes[at..at + 8]);
    u64::from_le_bytes(number)
}

/// Room for a frame: its head comes first, the content is written behind it.
pub(crate) fn begin(frame: &mut Vec<u8>) {
    frame.clear();
    frame.resize(FRAME_HEAD_BYTES, 0);
}

/// Completes a frame once its content is there.
pub(crate) fn seal(frame: &mut [u8], seed: u64, number: u64) {
    let (head, content) = frame.split_at_mut(FRAME_HEAD_BYTES);
    head[..4].copy_from_slice(&(content.len() as u32).to_le_bytes());
    head[4..12].copy_from_slice(&number.to_le_bytes());
    head[12..20].copy_from_slice(&xxh3_64_with_seed(content, seed).to_le_bytes());
    let sum = xxh3_64_with_seed(&head[..20], seed);
    head[20..].copy_from_slice(&sum.to_le_bytes());
}

/// Length, number and checksum of a frame's content, if these bytes are the head of one.
fn parse_head(head: &[u8], seed: u64) -> Option<(usize, u64, u64)> {
    if number_at(head, 20) != xxh3_64_with_seed(&head[..20], seed) {
        return None;
    }
    let length = u32::from_le_bytes([head[0], head[1], head[2], head[3]]) as usize;
    (length <= CONTENT_BYTES_MAX).then(|| (length, number_at(head, 4), number_at(head, 12)))
}

/// What comes next in a file.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Next<'a> {
    Frame {
        number: u64,
        content: &'a [u8],
    },
    /// The file ends here, behind a whole frame.
    End,
    /// What stands here is no whole frame.
    Broken,
}

/// Reads a file of frames from its beginning.
pub(crate) struct Frames {
    file: BufReader<File>,
    pub(crate) head: FileHead,
    seed: u64,
    /// Where the next frame begins.
    pub(crate) offset: u64,
    length: u64,
    content: Vec<u8>,
}

impl Frames {
    /// Opens the file, which must be of this kind, number and (where it is known) key.
    pub(crate) fn open(
        files: &Files,
        name: &str,
        kind: Kind,
        number: u64,
        key: Option<u64>,
    ) -> Result<Self, OpenError> {
        let file = files.open(name)?;
        let length = file.metadata()?.len();
        let mut file = BufReader::with_capacity(256 * 1024, file);
        let mut bytes = [0; FILE_HEAD_BYTES];
        let head = match file.read_exact(&mut bytes) {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => None,
            Err(error) => return Err(error.into()),
            Ok(()) => FileHead::parse(&bytes, kind),
        };
        let Some(head) = head else {
            return Err(OpenError::Damaged(format!(
                "{name} is damaged at byte 0: it does not begin as it should"
            )));
        };
        if head.number != number || key.is_some_and(|key| key != head.key) {
            return Err(OpenError::Damaged(format!("{name} is not of this store, or was renamed")));
        }
        let offset = FILE_HEAD_BYTES as u64;
        Ok(Frames { file, head, seed: head.seed(), offset, length, content: Vec::new() })
    }

    /// The next frame. After `Broken` only [`later`](Self::later) makes sense.
    pub(crate) fn next(&mut self) -> io::Result<Next<'_>> {
        let left = self.length.saturating_sub(self.offset);
        if left == 0 {
            return Ok(Next::End);
        }
        if left < FRAME_HEAD_BYTES as u64 {
            return Ok(Next::Broken);
        }
        let mut head = [0; FRAME_HEAD_BYTES];
        self.file.read_exact(&mut head)?;
        let Some((length, number, sum)) = parse_head(&head, self.seed) else { return Ok(Next::Broken) };
        if left - (FRAME_HEAD_BYTES as u64) < length as u64 {
            return Ok(Next::Broken);
        }
        self.content.resize(length, 0);
        self.file.read_exact(&mut self.content)?;
        if xxh3_64_with_seed(&self.content, self.seed) != sum {
            return Ok(Next::Broken);
        }
        self.offset += (FRAME_HEAD_BYTES + length) as u64;
        Ok(Next::Frame { number, content: &self.content })
    }

    /// The bytes behind the last whole frame.
    pub(crate) fn left(&self) -> u64 {
        self.length.saturating_sub(self.offset)
    }

    /// Looks behind a broken frame for the head of one with a higher number than `number`, whole or not; tells the
    /// highest.
    pub(crate) fn later(&mut self, number: u64) -> io::Result<Option<u64>> {
        self.file.seek(SeekFrom::Start(self.offset))?;
        let mut highest = None;
        let mut window = Vec::new();
        loop {
            // What is kept of the window before is too short to have been looked at.
            let kept = window.len();
            (&mut self.file).take(SEARCH_BYTES as u64).read_to_end(&mut window)?;
            if window.len() == kept {
                return Ok(highest);
            }
            for head in window.windows(FRAME_HEAD_BYTES) {
                let found = parse_head(head, self.seed).map(|(_, number, _)| number);
                highest = highest.max(found.filter(|found| *found > number));
            }
            let done = window.len().saturating_sub(FRAME_HEAD_BYTES - 1);
            window.drain(..done);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: FileHead = FileHead { kind: Kind::Log, number: 5, key: 77 };
    const CONTENTS: [&[u8]; 3] = [b"first", b"", b"the third group"];

    /// A file with three frames, and where each ends.
    fn written() -> (Vec<u8>, Vec<usize>) {
        let mut bytes = HEAD.bytes().to_vec();
        let mut ends = Vec::new();
        for (number, content) in (5..).zip(CONTENTS) {
            let mut frame = Vec::new();
            begin(&mut frame);
            frame.extend_from_slice(content);
            seal(&mut frame, HEAD.seed(), number);
            bytes.extend(frame);
            ends.push(bytes.len());
        }
        (bytes, ends)
    }

    fn open(bytes: &[u8]) -> Result<Frames, OpenError> {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("file"), bytes).unwrap();
        Frames::open(&Files::new(dir.path(), None), "file", Kind::Log, 5, Some(77))
    }

    /// How many frames are whole, whether something else stands behind them, and the highest frame behind that.
    fn read(bytes: &[u8]) -> (usize, bool, Option<u64>) {
        let mut frames = open(bytes).unwrap();
        let mut whole = 0;
        loop {
            match frames.next().unwrap() {
                Next::Frame { number, content } => {
                    assert_eq!((number, content), (5 + whole as u64, CONTENTS[whole]));
                    whole += 1;
                }
                Next::End => return (whole, false, None),
                Next::Broken => return (whole, true, frames.later(5 + whole as u64).unwrap()),
            }
        }
    }

    #[test]
    fn a_cut_leaves_the_whole_frames_before_it() {
        let (bytes, ends) = written();
        for cut in FILE_HEAD_BYTES..=bytes.len() {
            let whole = ends.iter().filter(|end| **end <= cut).count();
            let is_torn = cut != FILE_HEAD_BYTES && !ends.contains(&cut);
            assert_eq!(read(&bytes[..cut]), (whole, is_torn, None), "cut at {cut}");
            let mut with_zeros = bytes[..cut].to_vec();
            with_zeros.resize(cut + 100, 0);
            assert_eq!(read(&with_zeros), (whole, true, None), "cut at {cut}, zeros behind");
        }
        for cut in 0..FILE_HEAD_BYTES {
            assert!(open(&bytes[..cut]).is_err());
        }
    }

    #[test]
    fn frames_behind_damage_are_found() {
        let (bytes, ends) = written();
        for at in 0..bytes.len() {
            let mut wrong = bytes.clone();
            wrong[at] ^= 0x40;
            if at < FILE_HEAD_BYTES {
                assert!(open(&wrong).is_err(), "byte {at}");
                continue;
            }
            let whole = ends.iter().filter(|end| **end <= at).count();
            assert_eq!(read(&wrong), (whole, true, (whole < 2).then_some(7)), "byte {at}");
        }
    }

    #[test]
    fn frames_far_behind_damage_are_found() {
        let (bytes, ends) = written();
        for gap in [SEARCH_BYTES - 40, SEARCH_BYTES - 10, SEARCH_BYTES, 2 * SEARCH_BYTES + 1] {
            let mut wide = bytes[..ends[0]].to_vec();
            wide.resize(ends[0] + gap, 0x5a);
            wide.extend_from_slice(&bytes[ends[1]..]);
            assert_eq!(read(&wide), (1, true, Some(7)), "{gap} bytes between");
        }
    }

    #[test]
    fn the_frames_of_another_file_are_none() {
        let (bytes, _) = written();
        let mut other = FileHead { key: 78, ..HEAD }.bytes().to_vec();
        other.extend_from_slice(&bytes[FILE_HEAD_BYTES..]);
        assert!(open(&other).is_err());
        let mut frames = {
            let dir = tempfile::tempdir().unwrap();
            std::fs::write(dir.path().join("file"), &other).unwrap();
            Frames::open(&Files::new(dir.path(), None), "file", Kind::Log, 5, None).unwrap()
        };
        assert_eq!(frames.next().unwrap(), Next::Broken);
        assert_eq!(frames.later(0).unwrap(), None);
    }
}
