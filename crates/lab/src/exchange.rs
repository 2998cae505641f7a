//! A question over a connection that blocks, and the whole of its answer.

use std::fmt::Display;
use std::io::{self, ErrorKind, Read, Write};

use tidemark_wire::http1::Decoded;

/// Characters of a stranger's text that are shown.
const SHOWN_CHARACTERS: usize = 200;

/// Sends a question, and hands what comes to `decode` until the answer is complete. Nothing comes behind it.
///
/// # Errors
/// The connection broke, or what came is no answer ([`ErrorKind::InvalidData`]).
pub fn exchange<E: Display>(
    stream: &mut (impl Read + Write + ?Sized),
    question: &[u8],
    mut decode: impl FnMut(&[u8]) -> Result<Decoded, E>,
) -> io::Result<()> {
    stream.write_all(question)?;
    stream.flush()?;
    let mut buffer = [0; 8 << 10];
    loop {
        let bytes = read(stream, &mut buffer)?;
        if decode(&buffer[..bytes]).map_err(no_answer)?.complete {
            return Ok(());
        }
    }
}

/// Reads at least a byte.
///
/// # Errors
/// The connection broke, or was closed.
pub fn read(stream: &mut (impl Read + ?Sized), buffer: &mut [u8]) -> io::Result<usize> {
    loop {
        match stream.read(buffer) {
            Ok(0) => {
                return Err(io::Error::new(
                    ErrorKind::UnexpectedEof,
                    "it closed the connection within an answer",
                ));
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            other => return other,
        }
    }
}

/// What came is no answer.
pub fn no_answer(why: impl Display) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, format!("its answer cannot be read: {why}"))
}

/// The server's own error, in answer to a command.
pub fn refused(command: &str, words: &str) -> io::Error {
    io::Error::other(format!("{command}: it answers \"{}\"", shown(words)))
}

/// A stranger's text for a line of ours: its beginning, without control characters.
pub fn shown(text: &str) -> String {
    let mut shown = String::new();
    let mut characters = text.chars();
    for character in characters.by_ref().take(SHOWN_CHARACTERS) {
        if character.is_control() { shown.extend(character.escape_default()) } else { shown.push(character) }
    }
    if characters.next().is_some() { shown + "…" } else { shown }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_stranger_says_stays_in_its_line() {
        assert_eq!(shown("a\x1b[2J\nb"), "a\\u{1b}[2J\\nb");
        let long = shown(&"é".repeat(1_000));
        assert_eq!(long.chars().count(), SHOWN_CHARACTERS + 1);
        assert!(long.ends_with('…'));
    }
}
