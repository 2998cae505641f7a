//! Commands: written, and their words found again.

use super::length;

/// Writes a command: an array of strings.
pub fn write_command(words: &[&[u8]], out: &mut Vec<u8>) {
    write_head(words.len(), out);
    words.iter().for_each(|word| write_word(word, out));
}

/// Writes what stands before a command's words.
pub fn write_head(words: usize, out: &mut Vec<u8>) {
    write_length(b'*', words, out);
}

/// What stands behind a word.
pub const WORD_END: &[u8] = b"\r\n";

/// Writes what stands before a word of so many bytes.
pub fn write_word_head(bytes: usize, out: &mut Vec<u8>) {
    write_length(b'$', bytes, out);
}

/// Writes one of a command's words.
fn write_word(word: &[u8], out: &mut Vec<u8>) {
    write_word_head(word.len(), out);
    out.extend_from_slice(word);
    out.extend_from_slice(WORD_END);
}

/// Writes one of a command's words that `write` appends.
///
/// # Errors
/// What `write` says; what is appended then is no word.
///
/// ```
/// use tidemark_wire::resp::write_word_by;
///
/// let mut out = Vec::new();
/// write_word_by(&mut out, |out| Ok::<(), ()>(out.extend_from_slice(b"key:42")))?;
/// assert_eq!(out, b"$6\r\nkey:42\r\n");
/// # Ok::<(), ()>(())
/// ```
pub fn write_word_by<E>(
    out: &mut Vec<u8>,
    write: impl FnOnce(&mut Vec<u8>) -> Result<(), E>,
) -> Result<(), E> {
    // most lengths have two digits
    let at = out.len();
    out.extend_from_slice(b"$00\r\n");
    let begin = out.len();
    write(out)?;
    let bytes = out.len() - begin;
    if let 10..100 = bytes {
        out[at + 1] = b'0' + (bytes / 10) as u8;
        out[at + 2] = b'0' + (bytes % 10) as u8;
    } else {
        out.splice(at + 1..at + 3, itoa::Buffer::new().format(bytes).bytes());
    }
    out.extend_from_slice(b"\r\n");
    Ok(())
}

fn write_length(kind: u8, length: usize, out: &mut Vec<u8>) {
    out.push(kind);
    out.extend_from_slice(itoa::Buffer::new().format(length).as_bytes());
    out.extend_from_slice(b"\r\n");
}

/// The words of a command as [`write_command`] writes it; it ends early where that is none.
///
/// ```
/// use tidemark_wire::resp::{words, write_command};
///
/// let mut out = Vec::new();
/// write_command(&[b"GET", b"k"], &mut out);
/// assert!(words(&out).eq([&b"GET"[..], b"k"]));
/// ```
pub fn words(command: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = after_line(command).map_or(&[][..], |(_, rest)| rest);
    std::iter::from_fn(move || {
        let (line, behind) = after_line(rest)?;
        let bytes = length(line.strip_prefix(b"$")?).ok()?;
        let word = behind.get(..bytes)?;
        rest = behind.get(bytes + 2..)?;
        Some(word)
    })
}

fn after_line(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = text.iter().position(|byte| *byte == b'\r')?;
    Some((&text[..end], text.get(end + 2..)?))
}
