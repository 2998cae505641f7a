//! Code without its comments and the contents of its strings: what is left names variables.

/// What stands before a `/` that begins a regular expression, where it is no division.
const BEFORE_REGEX: &str = "(,=:[!&|?{};+-*%~^<>";
/// Words behind which a `/` begins one, too.
const WORDS_BEFORE_REGEX: [&str; 6] = ["return", "typeof", "case", "in", "of", "void"];

/// The code with spaces in place of comments and of what stands in strings, templates and regular expressions; all else
/// keeps its place. Holes of templates (`${…}`) are code. What is not closed ends with its line, a comment or template with
/// the code.
pub(super) fn blanked(code: &str) -> String {
    let mut out = String::with_capacity(code.len());
    // of each template that is open, the braces that are open in its hole
    let mut holes: Vec<usize> = Vec::new();
    let mut rest = code;
    while let Some(c) = rest.chars().next() {
        let is_of_hole = holes.last().is_some_and(|open| *open == 0);
        let length = match c {
            '/' if rest.starts_with("//") => rest.find('\n').unwrap_or(rest.len()),
            '/' if rest.starts_with("/*") => rest[2..].find("*/").map_or(rest.len(), |at| at + 4),
            '/' if begins_regex(&out) => regex(rest),
            '\'' | '"' => string(rest, c),
            '`' => text_of_template(rest, &mut holes),
            '}' if is_of_hole => {
                holes.pop();
                text_of_template(rest, &mut holes)
            }
            c => {
                if let Some(open) = holes.last_mut() {
                    *open = (*open + usize::from(c == '{')).saturating_sub(usize::from(c == '}'));
                }
                out.push(c);
                rest = &rest[c.len_utf8()..];
                continue;
            }
        };
        let (blank, after) = rest.split_at(length);
        // a string stays a value, by its quotes
        let is_value = matches!(c, '\'' | '"' | '`');
        for (at, byte) in blank.bytes().enumerate() {
            out.push(if byte == b'\n' {
                '\n'
            } else if is_value && at == 0 {
                '"'
            } else {
                ' '
            });
        }
        rest = after;
    }
    out
}

/// Whether a `/` behind this begins a regular expression.
fn begins_regex(before: &str) -> bool {
    let before = before.trim_end();
    let Some(last) = before.chars().next_back() else { return true };
    BEFORE_REGEX.contains(last)
        || WORDS_BEFORE_REGEX
            .iter()
            .any(|word| before.strip_suffix(word).is_some_and(|rest| !rest.ends_with(super::is_of_word)))
}

/// How long a regular expression is; 1 where it has no end on its line.
fn regex(text: &str) -> usize {
    let (mut is_escaped, mut is_in_class) = (false, false);
    for (at, c) in text.char_indices().skip(1) {
        match c {
            '\n' => break,
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            '[' => is_in_class = true,
            ']' => is_in_class = false,
            '/' if !is_in_class => return at + 1,
            _ => {}
        }
    }
    1
}

/// How long a string is that ends with this quote, or with its line.
fn string(text: &str, quote: char) -> usize {
    let mut is_escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            '\n' => return at,
            c if c == quote => return at + 1,
            _ => {}
        }
    }
    text.len()
}

/// How long the text of a template is, from its quote or from the end of a hole, up to its end or the next hole.
fn text_of_template(text: &str, holes: &mut Vec<usize>) -> usize {
    let mut is_escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            '`' => return at + 1,
            '$' if text[at + 1..].starts_with('{') => {
                holes.push(0);
                return at + 2;
            }
            _ => {}
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::blanked;

    #[test]
    fn only_code_is_left() {
        for (code, left) in [
            ("a // b\nc", "a     \nc"),
            ("a /* b\n c */ d", "a     \n      d"),
            ("f('x', \"y\\\"z\") + 1", "f(\"  , \"     ) + 1"),
            ("`a ${b + `c ${d}`} e` + f", "\"    b + \"    d       + f"),
            ("`${ {a: 1}.a }` + b", "\"   {a: 1}.a    + b"),
            ("/'[/]\\//.test(a) / b / c", "        .test(a) / b / c"),
            ("return /x'/.test(a)", "return     .test(a)"),
            ("'open\nb", "\"    \nb"),
            ("a / b; // c / d", "a / b;         "),
        ] {
            assert_eq!(blanked(code), left, "{code}");
        }
    }

    proptest! {
        #[test]
        fn all_else_keeps_its_place(code in "[-a-z ./*'\"`${}\\\\\nä\\[\\]]{0,60}") {
            let left = blanked(&code);
            prop_assert_eq!(left.len(), code.len());
            prop_assert_eq!(left.matches('\n').count(), code.matches('\n').count());
        }
    }
}
