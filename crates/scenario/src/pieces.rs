//! Splitting a text at its `${…}` holes.

/// A stretch of a text.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Piece<'t> {
    /// Text as it is.
    Literal(&'t str),
    /// An expression, and the byte of the text at which it begins.
    Hole { offset: usize, text: &'t str },
}

/// A text's pieces; `$${` stands for a `${` that is text. The error is the byte of a `${` that is not closed.
pub(crate) fn split(text: &str) -> Result<Vec<Piece<'_>>, usize> {
    let mut pieces = Vec::new();
    let mut done = 0;
    let mut from = 0;
    while let Some(found) = text[from..].find("${") {
        let at = from + found;
        if at > done && text.as_bytes()[at - 1] == b'$' {
            pieces.push(Piece::Literal(&text[done..at - 1]));
            done = at;
            from = at + 2;
            continue;
        }
        if at > done {
            pieces.push(Piece::Literal(&text[done..at]));
        }
        let inside = at + 2;
        let length = end_of_hole(&text[inside..]).ok_or(at)?;
        pieces.push(Piece::Hole { offset: inside, text: &text[inside..inside + length - 1] });
        done = inside + length;
        from = done;
    }
    if done < text.len() || pieces.is_empty() {
        pieces.push(Piece::Literal(&text[done..]));
    }
    Ok(pieces)
}

/// The byte just behind the `}` that closes an expression begun before `text`; quotes hide braces.
pub(crate) fn end_of_hole(text: &str) -> Option<usize> {
    let mut quote = None;
    let mut escaped = false;
    for (at, byte) in text.bytes().enumerate() {
        match quote {
            Some(_) if escaped => escaped = false,
            Some(_) if byte == b'\\' => escaped = true,
            Some(mark) if byte == mark => quote = None,
            Some(_) => {}
            None if byte == b'"' || byte == b'\'' => quote = Some(byte),
            None if byte == b'}' => return Some(at + 1),
            None => {}
        }
    }
    None
}

/// The expression, where a text is one hole and nothing else.
pub(crate) fn only_hole(text: &str) -> Option<(usize, &str)> {
    let trimmed = text.trim_start();
    let skipped = text.len() - trimmed.len();
    let pieces = split(trimmed.trim_end()).ok()?;
    match pieces.as_slice() {
        [Piece::Hole { offset, text }] => Some((skipped + offset, text)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_fall_into_pieces() {
        let hole = |offset, text| Piece::Hole { offset, text };
        assert_eq!(split("").unwrap(), [Piece::Literal("")]);
        assert_eq!(split("a$b").unwrap(), [Piece::Literal("a$b")]);
        assert_eq!(split("a${b}c").unwrap(), [Piece::Literal("a"), hole(3, "b"), Piece::Literal("c")]);
        assert_eq!(split("${a}${b}").unwrap(), [hole(2, "a"), hole(6, "b")]);
        assert_eq!(split("x$${a}").unwrap(), [Piece::Literal("x"), Piece::Literal("${a}")]);
        assert_eq!(split("ab ${c").unwrap_err(), 3);
        assert_eq!(only_hole(" ${a} "), Some((3, "a")));
        assert_eq!(only_hole("${a}b"), None);
    }
}
