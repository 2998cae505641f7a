//! Scripts as statements: only their usual idioms are known, each by itself.

use crate::tree::{Content, Node};

/// The lines of a script, each with its line in the collection.
pub(super) fn lines(script: &Node) -> Vec<(usize, &str)> {
    script.ignore(&["type", "id", "packages", "requests"]);
    let exec = script.get("exec");
    match exec.map(|exec| &exec.content) {
        Some(Content::List(_)) => {
            let items = exec.map(Node::items).unwrap_or_default();
            // a line of an export has no line end in it; if it has, all of them are that element's
            items
                .iter()
                .flat_map(|item| item.as_str().unwrap_or_default().lines().map(|line| (item.line, line)))
                .collect()
        }
        Some(Content::Scalar(text)) => {
            let line = exec.map_or(0, |exec| exec.line);
            text.as_str().lines().map(|text| (line, text)).collect()
        }
        _ => Vec::new(),
    }
}

/// A statement, without the `;` behind it, and the line where it begins.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Statement {
    pub(super) line: usize,
    pub(super) text: String,
}

/// What a scanner of JavaScript is within.
#[derive(Clone, Copy, PartialEq)]
enum Within {
    Code,
    Quotes(char),
    Line,
    Block,
}

/// Goes through code, and tells of each character whether it is one of code, and how deep in brackets it is.
fn scan(text: &str, mut of: impl FnMut(usize, char, bool, usize)) {
    let (mut within, mut depth, mut escaped) = (Within::Code, 0usize, false);
    let mut chars = text.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        let next = chars.peek().map(|(_, c)| *c);
        match within {
            Within::Code => match c {
                '"' | '\'' | '`' => {
                    of(at, c, false, depth);
                    within = Within::Quotes(c);
                    continue;
                }
                '/' if next == Some('/') => within = Within::Line,
                '/' if next == Some('*') => within = Within::Block,
                '(' | '[' | '{' => {
                    of(at, c, true, depth);
                    depth += 1;
                    continue;
                }
                ')' | ']' | '}' => {
                    depth = depth.saturating_sub(1);
                    of(at, c, true, depth);
                    continue;
                }
                _ => {
                    of(at, c, true, depth);
                    continue;
                }
            },
            Within::Quotes(quote) => {
                of(at, c, false, depth);
                if escaped {
                    escaped = false;
                } else if c == '\\' {
                    escaped = true;
                } else if c == quote {
                    within = Within::Code;
                }
                continue;
            }
            Within::Line if c == '\n' => {
                within = Within::Code;
                of(at, c, true, depth);
                continue;
            }
            Within::Block if c == '*' && next == Some('/') => {
                chars.next();
                within = Within::Code;
            }
            Within::Line | Within::Block => {}
        }
        // a comment is nothing, but its line ends count
        if c == '\n' {
            of(at, c, false, depth);
        }
    }
}

/// The statements of a script.
pub(super) fn statements(lines: &[(usize, &str)]) -> Vec<Statement> {
    let whole: Vec<&str> = lines.iter().map(|(_, text)| *text).collect();
    let whole = whole.join("\n");
    let whole = whole.as_str();
    let mut out: Vec<Statement> = Vec::new();
    let (mut current, mut from, mut row) = (String::new(), 0, 0);
    let push = |text: &mut String, from: usize, out: &mut Vec<Statement>| {
        let trimmed = text.trim().trim_end_matches(';').trim_end();
        if !trimmed.is_empty() {
            let line = lines.get(from).map_or(0, |(line, _)| *line);
            out.push(Statement { line, text: trimmed.to_owned() });
        }
        text.clear();
    };
    let bytes = whole.as_bytes();
    scan(whole, |at, c, is_code, depth| {
        let begins = current.trim().is_empty();
        if begins && !c.is_whitespace() {
            from = row;
        }
        current.push(c);
        let is_end = depth == 0
            && is_code
            && match c {
                ';' => true,
                // a line ends a statement where neither it nor the next goes on
                '\n' => {
                    let last = current.trim_end().chars().last();
                    let rest = whole.get(at + 1..).unwrap_or_default().trim_start();
                    let goes_on = last.is_none_or(|c| "=+-*/%&|,.?:(<>".contains(c))
                        || rest.starts_with(['.', '?', ':', '+', '=', '&', '|'])
                        || rest.starts_with("else")
                        || rest.starts_with("catch")
                        || rest.starts_with("finally");
                    !goes_on
                }
                _ => false,
            };
        if is_end {
            push(&mut current, from, &mut out);
        }
        if bytes.get(at) == Some(&b'\n') {
            row += 1;
        }
    });
    push(&mut current, from, &mut out);
    out
}

/// Parts of code between a separator that stands outside of brackets and quotes.
pub(super) fn split<'t>(text: &'t str, separator: &str) -> Vec<&'t str> {
    let (mut parts, mut from) = (Vec::new(), 0);
    scan(text, |at, _, is_code, depth| {
        if is_code && depth == 0 && at >= from && text[at..].starts_with(separator) {
            parts.push(text[from..at].trim());
            from = at + separator.len();
        }
    });
    parts.push(text.get(from..).unwrap_or_default().trim());
    parts
}

/// `name(arguments)rest`: what stands in the brackets, and behind them. `begin` ends with the bracket.
pub(super) fn call<'t>(text: &'t str, begin: &str) -> Option<(&'t str, &'t str)> {
    let from = begin.len();
    text.strip_prefix(begin)?;
    let mut end = None;
    scan(text, |at, c, is_code, depth| {
        if is_code && c == ')' && depth == 0 && at >= from && end.is_none() {
            end = Some(at);
        }
    });
    let end = end?;
    Some((text[from..end].trim(), text[end + 1..].trim()))
}

/// The statements of `pm.test("…", function () { … })`; the function may be an arrow.
pub(super) fn test(statement: &Statement) -> Option<Vec<Statement>> {
    let (inner, rest) = call(&statement.text, "pm.test(")?;
    if !rest.is_empty() {
        return None;
    }
    let parts = split(inner, ",");
    let body = parts.get(1..)?.join(", ");
    let body = body.strip_prefix("async").map_or(body.as_str(), str::trim_start);
    let is_function = body.starts_with("function");
    let arrow = body.split_once("=>").map(|(_, body)| body.trim());
    let code = match arrow.filter(|_| !is_function) {
        Some(code) if !code.starts_with('{') => code,
        Some(code) => code.strip_prefix('{')?.strip_suffix('}')?,
        None if is_function => body.split_once('{')?.1.strip_suffix('}')?,
        None => return None,
    };
    let at = statement.text.find(code.trim())?;
    Some(within(statement, at, code.trim()))
}

/// The statements of code that stands in a statement, from this byte.
fn within(statement: &Statement, at: usize, code: &str) -> Vec<Statement> {
    let first = statement.line + statement.text[..at].matches('\n').count();
    let lines: Vec<(usize, &str)> = code.lines().enumerate().map(|(row, text)| (first + row, text)).collect();
    statements(&lines)
}

/// `if (condition) { then } else { otherwise }`
pub(super) struct Branch<'t> {
    pub(super) condition: &'t str,
    pub(super) then: Vec<Statement>,
    pub(super) otherwise: Vec<Statement>,
}

/// A statement as a branch, if it is one.
pub(super) fn branch(statement: &Statement) -> Option<Branch<'_>> {
    let text = statement.text.as_str();
    let (condition, rest) = call(text.strip_prefix("if")?.trim_start(), "(")?;
    // both are the end of the statement's text
    let at = |part: &str| text.len() - part.len();
    let Some(behind) = rest.strip_prefix('{') else {
        let then = within(statement, at(rest), rest);
        return Some(Branch { condition, then, otherwise: Vec::new() });
    };
    let end = closing(behind)?;
    let then = within(statement, at(behind), &behind[..end]);
    let rest = behind[end + 1..].trim_start();
    let otherwise = match rest.strip_prefix("else").map(str::trim_start) {
        None if rest.is_empty() => Vec::new(),
        None => return None,
        Some(code) => {
            let inner = code.strip_prefix('{').and_then(|inner| inner.strip_suffix('}'));
            let inner = inner.filter(|inner| closing(inner).is_none()).unwrap_or(code);
            within(statement, at(code) + usize::from(inner.len() < code.len()), inner)
        }
    };
    Some(Branch { condition, then, otherwise })
}

/// Where the bracket closes that stands before a text.
fn closing(text: &str) -> Option<usize> {
    let mut end = None;
    let (mut depth, mut is_closed) = (0usize, false);
    scan(text, |at, c, is_code, _| match c {
        '(' | '[' | '{' if is_code => depth += 1,
        ')' | ']' | '}' if is_code && !is_closed => {
            if depth == 0 {
                (end, is_closed) = (Some(at), true);
            }
            depth = depth.saturating_sub(1);
        }
        _ => {}
    });
    end
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_have_their_lines() {
        let code = "// a; b\nvar a = 1; let b = {\n  c: ';' };\npm.test(\"x; y\", function () {\n  one();\n  two(\")\")\n    .three;\n});\n/* x\n*/ if (a) {\n  b();\n} else {\n}\nlast()";
        let lines: Vec<(usize, &str)> = code.lines().enumerate().map(|(at, line)| (at + 10, line)).collect();
        let all = statements(&lines);
        let short: Vec<(usize, &str)> =
            all.iter().map(|one| (one.line, one.text.split('\n').next().unwrap())).collect();
        assert_eq!(
            short,
            [
                (11, "var a = 1"),
                (11, "let b = {"),
                (13, "pm.test(\"x; y\", function () {"),
                (19, "if (a) {"),
                (23, "last()")
            ]
        );
        let inner = test(&all[2]).unwrap();
        let inner: Vec<(usize, &str)> = inner.iter().map(|one| (one.line, one.text.as_str())).collect();
        assert_eq!(inner, [(14, "one()"), (15, "two(\")\")\n    .three")]);
        let arrow = Statement { line: 3, text: "pm.test('x', () => a.b(1))".into() };
        assert_eq!(test(&arrow).unwrap(), [Statement { line: 3, text: "a.b(1)".into() }]);
        assert_eq!(split("a(1, 2), [3, '4,'], b", ","), ["a(1, 2)", "[3, '4,']", "b"]);
        assert_eq!(call("f(g(1), ')').to.be", "f("), Some(("g(1), ')'", ".to.be")));
    }
}
