//! JMeter's texts: `${name}` and `${__function(argument,…)}` in them.

/// A piece of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Piece {
    /// As it is sent.
    Text(String),
    /// `${name}`
    Variable(String),
    /// `${__name(…)}`, with its arguments as they are written.
    Call(String, Vec<String>),
}

/// Deepest nesting of functions that is followed.
const DEPTH_MAX: usize = 16;

/// The pieces of a text. Where it has no reference at all, it stays as it is, backslashes too.
pub(super) fn pieces(text: &str) -> Vec<Piece> {
    if !text.contains("${") {
        return vec![Piece::Text(text.to_owned())];
    }
    let mut pieces = Vec::new();
    let mut plain = String::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        if first == '\\' && rest[1..].starts_with(['$', ',', '\\']) {
            plain.push_str(&rest[1..2]);
            rest = &rest[2..];
        } else if rest.starts_with("${")
            && let Some((piece, behind)) = reference(&rest[2..])
        {
            if !plain.is_empty() {
                pieces.push(Piece::Text(std::mem::take(&mut plain)));
            }
            pieces.push(piece);
            rest = behind;
        } else {
            plain.push(first);
            rest = &rest[first.len_utf8()..];
        }
    }
    if !plain.is_empty() || pieces.is_empty() {
        pieces.push(Piece::Text(plain));
    }
    pieces
}

/// Where the reference ends that a text begins with.
pub(super) fn reference_end(text: &str) -> Option<usize> {
    let (_, rest) = reference(text.strip_prefix("${")?)?;
    Some(text.len() - rest.len())
}

/// What stands behind `${`, and the rest behind its `}`.
fn reference(text: &str) -> Option<(Piece, &str)> {
    let end = text.find(['(', '}'])?;
    let name = text[..end].trim();
    if text[end..].starts_with('}') {
        let piece = match name.strip_prefix("__") {
            Some(function) => Piece::Call(function.to_owned(), Vec::new()),
            None => Piece::Variable(name.to_owned()),
        };
        return Some((piece, &text[end + 1..]));
    }
    // a variable may have a parenthesis in its name
    let Some(function) = name.strip_prefix("__") else {
        let end = text.find('}')?;
        return Some((Piece::Variable(text[..end].to_owned()), &text[end + 1..]));
    };
    let (arguments, behind) = arguments(&text[end + 1..])?;
    Some((Piece::Call(function.to_owned(), arguments), behind.trim_start().strip_prefix('}')?))
}

/// The arguments behind a `(`, and the rest behind its `)`.
fn arguments(text: &str) -> Option<(Vec<String>, &str)> {
    let mut arguments = vec![String::new()];
    let (mut holes, mut parentheses) = (0usize, 0usize);
    let mut chars = text.char_indices().peekable();
    while let Some((at, found)) = chars.next() {
        let last = arguments.last_mut()?;
        match found {
            '\\' => {
                last.push(found);
                last.extend(chars.next().map(|(_, next)| next));
            }
            '$' if chars.peek().is_some_and(|(_, next)| *next == '{') => {
                holes += 1;
                if holes > DEPTH_MAX {
                    return None;
                }
                last.push(found);
            }
            '}' if holes > 0 => {
                holes -= 1;
                last.push(found);
            }
            ',' if holes == 0 && parentheses == 0 => arguments.push(String::new()),
            '(' => {
                parentheses += 1;
                last.push(found);
            }
            ')' if parentheses == 0 && holes == 0 => return Some((arguments, &text[at + 1..])),
            ')' => {
                parentheses = parentheses.saturating_sub(1);
                last.push(found);
            }
            _ => last.push(found),
        }
    }
    None
}

/// An argument without its escapes; it has no references.
pub(super) fn unescaped(text: &str) -> String {
    let mut out = String::new();
    let mut chars = text.chars().peekable();
    while let Some(found) = chars.next() {
        match (found, chars.peek()) {
            ('\\', Some('$' | ',' | '\\')) => out.extend(chars.next()),
            _ => out.push(found),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_taken_apart() {
        let text = |text: &str| Piece::Text(text.into());
        let variable = |name: &str| Piece::Variable(name.into());
        let call = |name: &str, arguments: &[&str]| {
            Piece::Call(name.into(), arguments.iter().map(|&one| one.to_owned()).collect())
        };
        for (whole, expected) in [
            ("a\\,b", vec![text("a\\,b")]),
            ("a${b}\\${c}", vec![text("a"), variable("b"), text("${c}")]),
            (
                "${__P(host,localhost)}:${p}",
                vec![call("P", &["host", "localhost"]), text(":"), variable("p")],
            ),
            ("${__UUID}", vec![call("UUID", &[])]),
            ("${__time()}", vec![call("time", &[""])]),
            ("${__V(a_${__counter(TRUE,)})}", vec![call("V", &["a_${__counter(TRUE,)}"])]),
            ("${__groovy(f(1\\,2))}", vec![call("groovy", &["f(1\\,2)"])]),
            ("${open", vec![text("${open")]),
            ("", vec![text("")]),
        ] {
            assert_eq!(pieces(whole), expected, "{whole}");
        }
        assert_eq!(unescaped("a\\,b\\\\c\\d"), "a,b\\c\\d");
        assert_eq!(crate::plan::quoted("it's \\ \n"), "'it\\'s \\\\ \\n'");
    }
}
