//! Paths by chance: a small pattern language, written out as holes of the scenario language.
//!
//! `[a-z0-9]` is one of these characters, `\d` a digit, `\w` a letter, digit or underscore, `(cats|dogs)` one of
//! these words; `{4}` or `{1,8}` behind one of them repeats it. Everything else stands for itself.

use std::fmt::Write;

/// Most values that a function of the scenario language takes.
const PICK_MAX: usize = 16;
/// Most repetitions where their number is fixed.
const REPEAT_MAX: usize = 64;
/// Most digits that are drawn as one number.
const DIGITS_MAX: usize = 15;

/// A pattern as a text with holes, for a path.
pub fn template(pattern: &str) -> Result<String, String> {
    let mut out = String::new();
    let mut rest = pattern;
    while let Some(c) = rest.chars().next() {
        rest = &rest[c.len_utf8()..];
        let choices = match c {
            '[' => {
                let (inside, behind) = rest.split_once(']').ok_or("a [ has no ]")?;
                rest = behind;
                class(inside)?
            }
            '(' => {
                let (inside, behind) = rest.split_once(')').ok_or("a ( has no )")?;
                rest = behind;
                inside.split('|').map(str::to_owned).collect()
            }
            '\\' => {
                let escaped = rest.chars().next().ok_or("nothing follows the last \\")?;
                rest = &rest[escaped.len_utf8()..];
                match escaped {
                    'd' => class("0-9")?,
                    'w' => class("a-zA-Z0-9_")?,
                    other => {
                        out.push(other);
                        continue;
                    }
                }
            }
            ']' | ')' | '{' | '}' | '|' | '$' => {
                return Err(format!("{c} has no meaning here; write \\{c} for the character"));
            }
            literal => {
                out.push(literal);
                continue;
            }
        };
        if let Some(bad) = choices.iter().flat_map(|choice| choice.chars()).find(|c| !may_stand(*c)) {
            return Err(format!("{bad:?} is not allowed in a choice"));
        }
        if rest.starts_with(['*', '+', '?']) {
            return Err("the count must be a number, like {1,8}".into());
        }
        let (least, most, behind) = repetition(rest)?;
        rest = behind;
        repeat(&choices, least, most, &mut out)?;
    }
    Ok(out)
}

fn may_stand(c: char) -> bool {
    c.is_ascii_graphic() && !"'\"\\{}$".contains(c)
}

/// The characters of `a-z0-9_`.
fn class(inside: &str) -> Result<Vec<String>, String> {
    if inside.starts_with('^') {
        return Err("[^…] is not supported; name the characters that are allowed there".into());
    }
    let chars: Vec<char> = inside.chars().collect();
    let mut found: Vec<char> = Vec::new();
    let mut at = 0;
    while at < chars.len() {
        let (from, to, width) = match chars.get(at + 1..at + 3) {
            Some(['-', to]) => (chars[at], *to, 3),
            _ => (chars[at], chars[at], 1),
        };
        at += width;
        if from > to || !to.is_ascii() {
            return Err(format!("{from}-{to} is not a range of characters"));
        }
        found.extend((from..=to).filter(|c| !found.contains(c)).collect::<Vec<_>>());
    }
    if found.is_empty() {
        return Err("[] names no character".into());
    }
    Ok(found.iter().map(char::to_string).collect())
}

/// `{n}` or `{n,m}`, and what follows; once where there is none.
fn repetition(rest: &str) -> Result<(usize, usize, &str), String> {
    let Some(inside) = rest.strip_prefix('{') else { return Ok((1, 1, rest)) };
    let (inside, behind) = inside.split_once('}').ok_or("a { has no }")?;
    let number =
        |text: &str| text.trim().parse::<usize>().map_err(|_| format!("{{{inside}}} is not a number"));
    let (least, most) = match inside.split_once(',') {
        Some((least, most)) => (number(least)?, number(most)?),
        None => (number(inside)?, number(inside)?),
    };
    let limit = if least == most { REPEAT_MAX } else { PICK_MAX };
    if least > most || most > limit {
        return Err(format!("{{{inside}}} is out of range; at most {limit} there"));
    }
    Ok((least, most, behind))
}

fn repeat(choices: &[String], least: usize, most: usize, out: &mut String) -> Result<(), String> {
    // writing to a String cannot fail
    let digits =
        choices.len() == 10 && choices.iter().all(|c| c.len() == 1 && c.as_bytes()[0].is_ascii_digit());
    if digits && least == most && (1..=DIGITS_MAX).contains(&most) {
        let _ = write!(out, "${{path(pad(random(0, {}), {most}))}}", 10u64.pow(most as u32) - 1);
        return Ok(());
    }
    let one = pick(choices);
    if least == most {
        out.push_str(&format!("${{path({one})}}").repeat(most));
    } else if choices.iter().all(|choice| choice.len() == 1) {
        let all = vec![one.as_str(); most].join(", ");
        let _ = write!(out, "${{path(slice(concat({all}), 0, random({least}, {most})))}}");
    } else {
        return Err("words can only be repeated a fixed number of times".into());
    }
    Ok(())
}

/// One of the choices, each as likely as the others.
fn pick(choices: &[String]) -> String {
    let (first, rest) = choices.split_at(choices.len().min(PICK_MAX));
    let quoted: Vec<String> = first.iter().map(|choice| format!("'{choice}'")).collect();
    let one = format!("pick({})", quoted.join(", "));
    match rest {
        [] => one,
        _ => format!("if(random(1, {}) <= {}, {one}, {})", choices.len(), first.len(), pick(rest)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_become_holes() {
        assert_eq!(template("/a?b=1").unwrap(), "/a?b=1");
        assert_eq!(template("item-[0-9]{4}").unwrap(), "item-${path(pad(random(0, 9999), 4))}");
        assert_eq!(template("(cats|dogs)/x").unwrap(), "${path(pick('cats', 'dogs'))}/x");
        assert_eq!(template("[ab-]").unwrap(), "${path(pick('a', 'b', '-'))}");
        assert_eq!(
            template("[ab]{1,2}").unwrap(),
            "${path(slice(concat(pick('a', 'b'), pick('a', 'b')), 0, random(1, 2)))}"
        );
        assert!(template("[a-z]").unwrap().contains("if(random(1, 26) <= 16, pick('a', "));
    }

    #[test]
    fn mistakes_are_told() {
        for (pattern, says) in [
            ("[a-z", "no ]"),
            ("(a|b", "no )"),
            ("[a-z]+", "{1,8}"),
            ("[z-a]", "not a range"),
            ("[^a]", "not supported"),
            ("[]", "no character"),
            ("[a]{2,1}", "out of range"),
            ("[a]{9999}", "at most 64"),
            ("[a]{x}", "not a number"),
            ("(ab|c){1,2}", "fixed number"),
            ("a{2}", "no meaning"),
            ("['\"]", "not allowed"),
            ("\\", "nothing follows"),
        ] {
            let told = template(pattern).unwrap_err();
            assert!(told.contains(says), "{pattern}: {told}");
        }
    }
}
