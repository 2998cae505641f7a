//! Decodes bodies that were sent with a Content-Encoding (RFC 9110, 8.4).
//!
//! ```
//! use tidemark_wire::encoding::{Scratch, decode};
//!
//! let body = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x02\xff\xcb\x48\xcd\xc9\xc9\x07\x00\x86\xa6\x10\x36\x05\x00\x00\x00";
//! let (mut decoded, mut room) = (Vec::new(), Scratch::default());
//! decode([b"gzip".as_slice()], body, 1_000, &mut decoded, &mut room)?;
//! assert_eq!(decoded, b"hello");
//! # Ok::<(), tidemark_wire::encoding::EncodingError>(())
//! ```

use std::io::{self, Read};

use flate2::bufread::{DeflateDecoder, GzDecoder, ZlibDecoder};
use ruzstd::decoding::errors::{FrameDecoderError, ReadFrameHeaderError};
use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};

/// Most encodings that one body may have, one after the other.
pub const MAX_ENCODINGS: usize = 4;
/// Most members of gzip, or frames of zstd, in one body: empty ones cost time, and no limit of bytes ends them.
const MAX_MEMBERS: usize = 1_000;
/// How a member of gzip begins.
const GZIP: [u8; 2] = [0x1f, 0x8b];
/// Of a body that goes on where it should have ended.
const BEHIND: &str = "there are bytes behind its end";
/// How a frame of zstd begins (RFC 8878, 3.1.1).
const ZSTD: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
/// The largest window of zstd that a body may ask for (RFC 9659): so much has to be kept while it is read.
const ZSTD_WINDOW_MAX: u64 = 8 << 20;
/// Bytes of the buffer that brotli reads its input through.
const INPUT_BYTES: usize = 4096;
/// Of a buffer that grew beyond this, the rest is given back before the next body.
const RETAINED_BYTES: usize = 1 << 20;
/// Bytes of an encoding's name that an error shows.
const SHOWN_BYTES: usize = 40;

/// The second buffer that a body encoded more than once goes through; kept to be used again.
#[derive(Debug, Default)]
pub struct Scratch(Vec<u8>);

/// Why a body cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EncodingError {
    /// An encoding that is not known here.
    #[error("the body is encoded with \"{0}\", which is not known here: gzip, deflate, br and zstd are")]
    Unknown(String),
    /// More encodings than [`MAX_ENCODINGS`].
    #[error("the body is encoded more than {MAX_ENCODINGS} times")]
    TooMany,
    /// What came is not what its encoding says.
    #[error("the body cannot be read as {name}: {reason}")]
    Broken {
        /// The encoding's name.
        name: &'static str,
        /// In words.
        reason: String,
    },
    /// It is larger than it may be, once it is read.
    #[error("the body is larger than the limit of {limit_bytes} bytes once its {name} is read")]
    TooLarge {
        /// The encoding's name.
        name: &'static str,
        /// The limit that was given.
        limit_bytes: usize,
    },
}

/// How a body is encoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Encoding {
    Gzip,
    Deflate,
    Brotli,
    Zstd,
}

impl Encoding {
    /// By a name in a `Content-Encoding`; none where it says that there is none.
    fn from_name(name: &[u8]) -> Result<Option<Encoding>, EncodingError> {
        let is = |one: &str| name.eq_ignore_ascii_case(one.as_bytes());
        Ok(Some(match () {
            () if is("gzip") || is("x-gzip") => Encoding::Gzip,
            () if is("deflate") => Encoding::Deflate,
            () if is("br") => Encoding::Brotli,
            () if is("zstd") => Encoding::Zstd,
            () if is("identity") => return Ok(None),
            () => {
                let name = String::from_utf8_lossy(&name[..name.len().min(SHOWN_BYTES)]);
                return Err(EncodingError::Unknown(name.escape_default().to_string()));
            }
        }))
    }

    fn name(self) -> &'static str {
        match self {
            Encoding::Gzip => "gzip",
            Encoding::Deflate => "deflate",
            Encoding::Brotli => "br",
            Encoding::Zstd => "zstd",
        }
    }

    /// Appends what `body` was to `out`, up to one byte more than the limit.
    fn read(self, body: &[u8], limit_bytes: usize, out: &mut Vec<u8>) -> io::Result<()> {
        let most = (limit_bytes as u64).saturating_add(1);
        match self {
            Encoding::Gzip => return read_gzip(body, most, out),
            // the standard says zlib, and some servers have always sent the bare stream
            Encoding::Deflate if is_zlib(body) => ZlibDecoder::new(body).take(most).read_to_end(out)?,
            Encoding::Deflate => DeflateDecoder::new(body).take(most).read_to_end(out)?,
            Encoding::Brotli => {
                let mut reader = brotli_decompressor::Decompressor::new(body, INPUT_BYTES);
                (&mut reader).take(most).read_to_end(out)?
            }
            Encoding::Zstd => return read_zstd(body, most, out),
        };
        Ok(())
    }
}

/// Whether a stream begins as zlib's do (RFC 1950).
fn is_zlib(body: &[u8]) -> bool {
    let [method, flags, ..] = *body else { return false };
    method & 0x0f == 8 && method >> 4 <= 7 && (u16::from(method) << 8 | u16::from(flags)) % 31 == 0
}

/// One member after the other, up to `most` bytes.
fn read_gzip(body: &[u8], most: u64, out: &mut Vec<u8>) -> io::Result<()> {
    let mut decoder = GzDecoder::new(body);
    for _ in 0..MAX_MEMBERS {
        let left = most - out.len() as u64;
        decoder.by_ref().take(left).read_to_end(out)?;
        let rest = *decoder.get_ref();
        if rest.is_empty() || out.len() as u64 >= most {
            return Ok(());
        }
        if !rest.starts_with(&GZIP[..rest.len().min(GZIP.len())]) {
            return Err(io::Error::other(BEHIND));
        }
        decoder.reset(rest);
    }
    Err(io::Error::other(format!("it has more than {MAX_MEMBERS} members")))
}

/// One frame after the other, up to `most` bytes.
fn read_zstd(mut body: &[u8], most: u64, out: &mut Vec<u8>) -> io::Result<()> {
    use FrameDecoderError::ReadFrameHeaderError as Header;
    let mut frames = 0;
    while !body.is_empty() && (out.len() as u64) < most {
        if frames == MAX_MEMBERS {
            return Err(io::Error::other(format!("it has more than {MAX_MEMBERS} frames")));
        }
        match memory_asked_by(body) {
            Some(Memory::Window(bytes)) if bytes > ZSTD_WINDOW_MAX => {
                let reason = format!("its window has {bytes} bytes, and may have {ZSTD_WINDOW_MAX}");
                return Err(io::Error::other(reason));
            }
            Some(Memory::Content(bytes)) if bytes >= most - out.len() as u64 => {
                return Err(io::ErrorKind::FileTooLarge.into());
            }
            _ => {}
        }
        // a new one for each: one that is used again reserves as much as the frame asks for
        let mut decoder = FrameDecoder::new();
        match decoder.init(&mut body) {
            Ok(()) => read_frame(&mut decoder, &mut body, most, out)?,
            // a frame that holds something else (RFC 8878, 3.1.2)
            Err(Header(ReadFrameHeaderError::SkipFrame { length, .. })) => {
                body = body.get(length as usize..).ok_or(io::ErrorKind::UnexpectedEof)?;
            }
            Err(Header(ReadFrameHeaderError::BadMagicNumber(_))) if frames > 0 => {
                return Err(io::Error::other(BEHIND));
            }
            Err(error) => return Err(in_words(&error)),
        }
        frames += 1;
    }
    Ok(())
}

/// What has to be kept while a frame of zstd is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Memory {
    /// So many of the last bytes.
    Window(u64),
    /// All of it, which is so many bytes.
    Content(u64),
}

/// As a frame's header says it (RFC 8878, 3.1.1.1); none where it is no frame, or not all of it there.
fn memory_asked_by(frame: &[u8]) -> Option<Memory> {
    let (descriptor, rest) = frame.strip_prefix(&ZSTD)?.split_first()?;
    let is_single_segment = descriptor & 0x20 != 0;
    if !is_single_segment {
        let window = u64::from(*rest.first()?);
        let base = 1u64 << (10 + (window >> 3));
        return Some(Memory::Window(base + base / 8 * (window & 7)));
    }
    let id_bytes = [0, 1, 2, 4][usize::from(descriptor & 3)];
    let rest = rest.get(id_bytes..)?;
    Some(Memory::Content(match descriptor >> 6 {
        0 => u64::from(*rest.first()?),
        // one byte says it up to here
        1 => 256 + u64::from(u16::from_le_bytes(*rest.first_chunk()?)),
        2 => u64::from(u32::from_le_bytes(*rest.first_chunk()?)),
        _ => u64::from_le_bytes(*rest.first_chunk()?),
    }))
}

/// What follows a frame's header, up to `most` bytes in `out`.
fn read_frame(decoder: &mut FrameDecoder, body: &mut &[u8], most: u64, out: &mut Vec<u8>) -> io::Result<()> {
    while !decoder.is_finished() {
        decoder
            .decode_blocks(&mut *body, BlockDecodingStrategy::UptoBlocks(1))
            .map_err(|error| in_words(&error))?;
        let left = most - out.len() as u64;
        decoder.by_ref().take(left).read_to_end(out)?;
        if out.len() as u64 >= most {
            return Ok(());
        }
    }
    let told = decoder.get_checksum_from_data();
    if told.is_some() && told != decoder.get_calculated_checksum() {
        return Err(io::Error::other("it is damaged: its checksum is wrong"));
    }
    Ok(())
}

/// What is wrong with a frame of zstd; the library's own words are Rust's.
fn in_words(error: &FrameDecoderError) -> io::Error {
    if let FrameDecoderError::DictNotProvided { .. } = error {
        return io::Error::other("it needs a dictionary");
    }
    let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(one) = cause {
        if one.downcast_ref::<io::Error>().is_some_and(is_early_end) {
            return io::ErrorKind::UnexpectedEof.into();
        }
        cause = one.source();
    }
    io::Error::other("it is damaged")
}

/// Whether there was less to read than should be there.
fn is_early_end(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::UnexpectedEof
}

/// The encodings that headers name, in the order in which they were done.
fn named<'h>(
    headers: impl IntoIterator<Item = &'h [u8]>,
) -> Result<([Option<Encoding>; MAX_ENCODINGS], usize), EncodingError> {
    let (mut all, mut count) = ([None; MAX_ENCODINGS], 0);
    for header in headers {
        let names = header.split(|byte| *byte == b',').map(<[u8]>::trim_ascii);
        for name in names.filter(|name| !name.is_empty()) {
            let Some(encoding) = Encoding::from_name(name)? else { continue };
            *all.get_mut(count).ok_or(EncodingError::TooMany)? = Some(encoding);
            count += 1;
        }
    }
    Ok((all, count))
}

/// Empties the buffers of [`decode`], and gives back what they have beyond 1 MiB.
pub fn forget(out: &mut Vec<u8>, room: &mut Scratch) {
    for buffer in [out, &mut room.0] {
        buffer.clear();
        buffer.shrink_to(RETAINED_BYTES);
    }
}

/// Reads a body that is encoded as these values of `Content-Encoding` say. False where it is not encoded at all, or there
/// is none (an answer to HEAD says how its body would be): then `out` is left empty. What it is, and what it is in
/// between, has `limit_bytes` at most.
///
/// # Errors
/// An encoding that is not known, a body that is not what it says, or one that is too large; `out` is empty then.
pub fn decode<'h>(
    headers: impl IntoIterator<Item = &'h [u8]>,
    body: &[u8],
    limit_bytes: usize,
    out: &mut Vec<u8>,
    room: &mut Scratch,
) -> Result<bool, EncodingError> {
    forget(out, room);
    if body.is_empty() {
        return Ok(false);
    }
    let (encodings, count) = named(headers)?;
    let mut is_first = true;
    // what was done last is undone first
    for encoding in encodings[..count].iter().rev().flatten() {
        if !is_first {
            std::mem::swap(out, &mut room.0);
            out.clear();
        }
        let input = if is_first { body } else { &room.0 };
        let read = encoding.read(input, limit_bytes, out);
        let name = encoding.name();
        let error = match read {
            _ if out.len() > limit_bytes => EncodingError::TooLarge { name, limit_bytes },
            // it says so itself
            Err(error) if error.kind() == io::ErrorKind::FileTooLarge => {
                EncodingError::TooLarge { name, limit_bytes }
            }
            Err(error) if is_early_end(&error) => {
                EncodingError::Broken { name, reason: "it ends too early".to_owned() }
            }
            Err(error) => EncodingError::Broken { name, reason: error.to_string() },
            Ok(()) => {
                is_first = false;
                continue;
            }
        };
        out.clear();
        return Err(error);
    }
    Ok(count > 0)
}

#[cfg(test)]
mod tests;
