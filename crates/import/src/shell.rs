//! Quotes of a command line, as bash reads them.
//!
//! No shell is run: what a shell would put in (variables, the output of commands) is refused by name, as are its operators.

/// The words of the one command that a text has, as bash splits it, with its `$'…'`, which browsers write.
///
/// # Errors
/// Where a shell would put something in or do more than run one command, and where quotes are not closed.
pub fn words(text: &str) -> Result<Vec<String>, String> {
    let (words, rest) = command(text)?;
    match rest.trim() {
        "" => Ok(words),
        rest => {
            let begin: String = rest.chars().take(20).collect();
            Err(format!(
                "a second command follows: {begin}; a \\ at the end of a line makes the next one part of it"
            ))
        }
    }
}

/// The words of the first command of a text, which ends with its line, and what follows.
///
/// # Errors
/// As of [`words`].
pub fn command(text: &str) -> Result<(Vec<String>, &str), String> {
    let mut words = Vec::new();
    // nothing between two words
    let mut word: Option<String> = None;
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let behind = &rest[c.len_utf8()..];
        if let Some(next) = line_goes_on(rest) {
            rest = next;
            continue;
        }
        rest = behind;
        match c {
            '\n' if word.is_some() || !words.is_empty() => break,
            c if c.is_whitespace() => words.extend(word.take()),
            '#' if word.is_none() => rest = &rest[rest.find('\n').unwrap_or(rest.len())..],
            '\\' => {
                let escaped = rest.chars().next();
                word.get_or_insert_default().push(escaped.unwrap_or('\\'));
                rest = &rest[escaped.map_or(0, char::len_utf8)..];
            }
            '\'' => {
                let (quoted, next) = rest.split_once('\'').ok_or_else(open)?;
                word.get_or_insert_default().push_str(quoted);
                rest = next;
            }
            '"' => rest = in_double_quotes(rest, word.get_or_insert_default())?,
            '$' if rest.starts_with('\'') => {
                let end = end_of(&rest[1..], '\'').ok_or_else(open)?;
                word.get_or_insert_default().push_str(&unescaped(&rest[1..=end])?);
                rest = &rest[end + 2..];
            }
            // a text that would be translated
            '$' if rest.starts_with('"') => {}
            '$' | '`' => {
                refuse_expansion(c, rest)?;
                word.get_or_insert_default().push(c);
            }
            '^' if rest.is_empty() || rest.starts_with(['"', '\n', '\r', '^', '\\']) => {
                return Err("this is quoted for cmd.exe, with ^; copy it as cURL (bash)".into());
            }
            ';' | '|' | '&' | '<' | '>' | '(' | ')' => {
                return Err(format!(
                    "{c} outside of quotes needs a shell, but none runs here; put the URL or the text into '…', and leave out pipes and redirections"
                ));
            }
            other => word.get_or_insert_default().push(other),
        }
    }
    words.extend(word);
    Ok((words, rest))
}

fn open() -> String {
    "its quotes are not closed".into()
}

/// What follows a `\` at the end of a line.
fn line_goes_on(text: &str) -> Option<&str> {
    text.strip_prefix("\\\n").or_else(|| text.strip_prefix("\\\r\n"))
}

/// Reads up to the closing quote; what follows it.
fn in_double_quotes<'t>(text: &'t str, word: &mut String) -> Result<&'t str, String> {
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        if let Some(next) = line_goes_on(rest) {
            rest = next;
            continue;
        }
        rest = &rest[c.len_utf8()..];
        match c {
            '"' => return Ok(rest),
            '\\' if rest.starts_with(['$', '`', '"', '\\']) => {
                word.push_str(&rest[..1]);
                rest = &rest[1..];
            }
            '$' | '`' => {
                refuse_expansion(c, rest)?;
                word.push(c);
            }
            other => word.push(other),
        }
    }
    Err(open())
}

/// Names what a shell would put in the place of `$…` or of a backtick; a `$` that stands alone is one.
fn refuse_expansion(mark: char, rest: &str) -> Result<(), String> {
    const SHOWN: usize = 40;
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let length = match rest.chars().next() {
        _ if mark == '`' => rest.find('`').map_or(rest.len(), |at| at + 1),
        Some('{') => rest.find('}').map_or(rest.len(), |at| at + 1),
        Some('(') => rest.find(')').map_or(rest.len(), |at| at + 1),
        Some(c) if c.is_ascii_alphabetic() || c == '_' => rest.find(|c| !is_part(c)).unwrap_or(rest.len()),
        Some(c) if c.is_ascii_digit() || "?!@*#$-".contains(c) => 1,
        _ => return Ok(()),
    };
    let shown: String = rest[..length].chars().take_while(|c| *c != '\n').take(SHOWN).collect();
    Err(format!(
        "{mark}{shown} would be expanded by a shell, but none runs here; write its value, or put it in '…' to send it literally"
    ))
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

    #[test]
    fn what_a_shell_leaves_alone_stays() {
        for (line, wanted) in [
            (r"a '$X' '`b`' \$X \`b", vec!["a", "$X", "`b`", "$X", "`b"]),
            (r#""\$X \`b \"c\" \d \\" "$" "a$ b""#, vec![r#"$X `b "c" \d \"#, "$", "a$ b"]),
            ("a b#c # d", vec!["a", "b#c"]),
            ("a \\\n b \"c\\\nd\" \\\r\n e", vec!["a", "b", "cd", "e"]),
            ("\n\n a '' \"\"\n", vec!["a", "", ""]),
            ("'b\nc'", vec!["b\nc"]),
            ("a^b ^c", vec!["a^b", "^c"]),
            ("$\"a\"", vec!["a"]),
        ] {
            assert_eq!(words(line).unwrap(), wanted, "{line}");
        }
        let (first, rest) = command("a 'b\nc' \\\n d\ne f").unwrap();
        assert_eq!((first, rest), (["a", "b\nc", "d"].map(str::to_owned).to_vec(), "e f"));
    }

    #[test]
    fn what_a_shell_would_fill_in_is_named() {
        for (line, says) in [
            ("curl h -H \"A: $TOKEN\"", "$TOKEN would be expanded by a shell"),
            ("a $X-1", "$X would"),
            ("a ${X:-b}/c", "${X:-b} would"),
            ("a \"$(date +%s)\"", "$(date +%s) would"),
            ("a `date`", "`date` would"),
            ("a $1", "$1 would"),
            ("a \"$?\"", "$? would"),
            ("a http://h/?b=1&c=2", "& outside of quotes"),
            ("a | jq .", "| outside of quotes"),
            ("a > b", "> outside of quotes"),
            ("a ^\"b^\"", "cmd.exe"),
            ("a \"b\" ^", "cmd.exe"),
            ("a\nb", "a second command follows: b"),
            ("a 'b", "not closed"),
            ("a \"b", "not closed"),
            ("a $'b", "not closed"),
        ] {
            let told = words(line).unwrap_err();
            assert!(told.contains(says), "{line}: {told}");
        }
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in "[ab '\"$`\\\\{(\n\r#^&;é]{0,30}") {
            let _ = words(&text);
        }

        #[test]
        fn what_is_quoted_stays_as_it_is(wanted in proptest::collection::vec("[^\0]{0,12}", 1..5)) {
            let quoted: Vec<String> =
                wanted.iter().map(|word| format!("'{}'", word.replace('\'', "'\\''"))).collect();
            assert_eq!(words(&quoted.join(" ")).unwrap(), wanted);
        }
    }
}
