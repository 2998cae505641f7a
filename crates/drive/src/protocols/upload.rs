//! Bodies that are read from files while they are sent: a piece at a time, so that none is in memory as a whole.
//!
//! A request's head leaves first; whenever all that was handed over has been taken, the next piece is read. A file is open
//! once for all sessions. One that is not in the system's memory keeps the driving thread waiting as it is read, which
//! counts as the driver's own lag.

use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use tidemark_scenario::plan::UploadPiece;
use tidemark_scenario::{Context, Unmet};

/// Bytes that are read and sent at once.
pub(crate) const PIECE_BYTES: usize = 256 << 10;

/// What is to be sent behind a head.
#[derive(Debug, Default)]
pub(crate) struct Upload {
    parts: VecDeque<Part>,
}

#[derive(Debug)]
enum Part {
    Text(Vec<u8>),
    File { file: Arc<File>, at: u64, end: u64 },
}

impl Upload {
    /// Of these pieces, and how many bytes they are.
    pub fn new(pieces: &[UploadPiece], cx: &mut Context<'_>) -> Result<(Upload, u64), Unmet> {
        let (mut upload, mut bytes) = (Upload::default(), 0);
        for piece in pieces {
            let part = match piece {
                UploadPiece::Text(template) => {
                    let mut text = Vec::new();
                    template.render(cx, &mut text)?;
                    bytes += text.len() as u64;
                    (!text.is_empty()).then_some(Part::Text(text))
                }
                UploadPiece::File(body) => {
                    bytes += body.bytes;
                    let file = || Part::File { file: Arc::clone(&body.file), at: 0, end: body.bytes };
                    (body.bytes > 0).then(file)
                }
            };
            upload.parts.extend(part);
        }
        Ok((upload, bytes))
    }

    /// Whether all of it has been read.
    pub fn is_over(&self) -> bool {
        self.parts.is_empty()
    }

    /// Appends the next piece, of [`PIECE_BYTES`] at most but for a text.
    ///
    /// # Errors
    /// A file cannot be read, or has become shorter than it was.
    pub fn read(&mut self, out: &mut Vec<u8>) -> io::Result<()> {
        match self.parts.front_mut() {
            None => {}
            Some(Part::Text(text)) => {
                out.append(text);
                self.parts.pop_front();
            }
            Some(Part::File { file, at, end }) => {
                // less than a piece, which fits
                let bytes = (*end - *at).min(PIECE_BYTES as u64) as usize;
                let begin = out.len();
                out.resize(begin + bytes, 0);
                file.read_exact_at(&mut out[begin..], *at).map_err(|error| match error.kind() {
                    io::ErrorKind::UnexpectedEof => {
                        io::Error::new(error.kind(), "the file of the body became shorter while it was sent")
                    }
                    _ => error,
                })?;
                *at += bytes as u64;
                if at == end {
                    self.parts.pop_front();
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use tidemark_scenario::plan::FileBody;
    use tidemark_scenario::{Shared, Template};

    use super::*;

    fn upload(pieces: &[UploadPiece]) -> (Upload, u64) {
        let shared = Shared::new(0, Vec::new());
        let mut random = fastrand::Rng::with_seed(1);
        let mut cx = Context { slots: &[], shared: &shared, random: &mut random, epoch_ms: 0 };
        Upload::new(pieces, &mut cx).unwrap()
    }

    fn file(bytes: &[u8]) -> (tempfile::NamedTempFile, UploadPiece) {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(bytes).unwrap();
        let body = FileBody::open(file.path()).unwrap();
        (file, UploadPiece::File(body))
    }

    #[test]
    fn pieces_follow_one_another_and_none_is_larger_than_a_piece() {
        let bytes: Vec<u8> = (0..2 * PIECE_BYTES as u32 + 7).map(|n| (n % 251) as u8).collect();
        let (_file, large) = file(&bytes);
        let (_empty, empty) = file(b"");
        let text = |text: &str| UploadPiece::Text(Template::literal(text));
        let (mut upload, length) = upload(&[text("before "), large, empty, text(" behind")]);
        assert_eq!(length, bytes.len() as u64 + 14);
        let (mut all, mut largest) = (Vec::new(), 0);
        while !upload.is_over() {
            let mut out = Vec::new();
            upload.read(&mut out).unwrap();
            largest = largest.max(out.len());
            all.append(&mut out);
        }
        assert_eq!(largest, PIECE_BYTES);
        assert!(all == [&b"before "[..], &bytes, b" behind"].concat());
    }

    #[test]
    fn a_file_that_became_shorter_is_told() {
        let (shorter, piece) = file(&[7; 100]);
        let (mut upload, _) = upload(&[piece]);
        shorter.as_file().set_len(50).unwrap();
        let error = upload.read(&mut Vec::new()).unwrap_err();
        assert!(error.to_string().contains("became shorter"), "{error}");
    }
}
