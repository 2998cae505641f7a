//! Quotes of a command line, as bash reads them.

/// The words of a command line, as a shell has them, with bash's `$'…'`, which browsers write.
pub fn words(line: &str) -> Result<Vec<String>, String> {
    let open = || "its quotes are not closed".to_owned();
    shlex::split(&without_dollar_quotes(line).ok_or_else(open)??).ok_or_else(open)
}

/// The line with `$'…'` in ordinary quotes; nothing where one is not closed.
fn without_dollar_quotes(line: &str) -> Option<Result<String, String>> {
    let mut out = String::new();
    let mut rest = line;
    while let Some(c) = rest.chars().next() {
        // a line that goes on; of `shlex` it would be an empty word
        if let Some(next) = rest.strip_prefix("\\\n").or_else(|| rest.strip_prefix("\\\r\n")) {
            rest = next;
            continue;
        }
        let length = match c {
            '\\' => 1 + rest[1..].chars().next().map_or(0, char::len_utf8),
            '\'' => 2 + rest[1..].find('\'')?,
            '"' => 2 + end_of(&rest[1..], '"')?,
            '$' if rest[1..].starts_with('\'') => {
                let end = end_of(&rest[2..], '\'')?;
                let quoted = unescaped(&rest[2..2 + end]).and_then(|text| {
                    Ok(shlex::try_quote(&text).map_err(|error| error.to_string())?.into_owned())
                });
                match quoted {
                    Ok(quoted) => out += &quoted,
                    Err(reason) => return Some(Err(reason)),
                }
                rest = &rest[3 + end..];
                continue;
            }
            other => other.len_utf8(),
        };
        out += &rest[..length];
        rest = &rest[length..];
    }
    Some(Ok(out))
}

/// The byte of the first such mark without a backslash before it.
fn end_of(text: &str, mark: char) -> Option<usize> {
    let mut escaped = false;
    for (at, c) in text.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            c if c == mark => return Some(at),
            _ => {}
        }
    }
    None
}

/// What stands between `$'` and `'`.
fn unescaped(text: &str) -> Result<String, String> {
    let mut out: Vec<u8> = Vec::new();
    let mut rest = text;
    let push = |out: &mut Vec<u8>, c: char| out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
    while let Some(c) = rest.chars().next() {
        rest = &rest[c.len_utf8()..];
        if c != '\\' {
            push(&mut out, c);
            continue;
        }
        let Some(kind) = rest.chars().next() else { break };
        let behind = &rest[kind.len_utf8()..];
        let (radix, most, digits) = match kind {
            'x' => (16, 2, behind),
            'u' => (16, 4, behind),
            'U' => (16, 8, behind),
            '0'..='7' => (8, 3, rest),
            _ => {
                let plain = match kind {
                    'n' => '\n',
                    't' => '\t',
                    'r' => '\r',
                    'a' => '\u{7}',
                    'b' => '\u{8}',
                    'e' | 'E' => '\u{1b}',
                    'f' => '\u{c}',
                    'v' => '\u{b}',
                    other => other,
                };
                push(&mut out, plain);
                rest = behind;
                continue;
            }
        };
        let length = digits.chars().take(most).take_while(|c| c.is_digit(radix)).count();
        let code = u32::from_str_radix(&digits[..length], radix)
            .map_err(|_| format!("there are no digits behind \\{kind}"))?;
        rest = &digits[length..];
        match (kind, u8::try_from(code & 0xff)) {
            ('u' | 'U', _) => push(&mut out, char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER)),
            (_, Ok(byte)) => out.push(byte),
            (_, Err(_)) => {}
        }
    }
    String::from_utf8(out).map_err(|_| {
        "a text between $' and ' is not UTF-8; put the body into a file: --data-binary @FILE".into()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_are_bashs() {
        for (line, wanted) in [
            ("a 'b c' \"d 'e\" f\\ g", vec!["a", "b c", "d 'e", "f g"]),
            ("$'a\\tb' '$'\\''x'", vec!["a\tb", "$'x"]),
            ("\"$'a'\"", vec!["$'a'"]),
            ("$'\\x41\\102\\u00df\\\\'", vec!["AB\u{df}\\"]),
            ("x$''y", vec!["xy"]),
        ] {
            assert_eq!(words(line).unwrap(), wanted, "{line}");
        }
        assert!(words("$'\\xff'").unwrap_err().contains("not UTF-8"));
    }
}
