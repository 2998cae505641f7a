//! Steps in JavaScript: the way out where the language does not say what is wanted.

mod blanked;

use self::blanked::blanked;
use super::Step;
use crate::compile::Session;
use crate::diagnostic::did_you_mean;
use crate::expr::parse::{RESERVED, is_name};
use crate::grammar::Scalar::Code;
use crate::grammar::Shape::Scalar;
use crate::plan::{CodePlan, CodeVariable, Op};
use crate::sink::Sink;
use crate::yaml::{Node, Position};

/// What has the variables, and what stands between it and a variable's name.
const VARS: &str = "vars";
const DOT: &str = ".";
/// The last answer's name.
const ANSWER: &str = "res";
/// Operators that stand in front of a `=`, where that sets what is on its left.
const SETTING: [&str; 16] =
    ["", "+", "-", "**", "*", "/", "%", "<<", ">>>", ">>", "&&", "&", "||", "|", "^", "??"];

step! {
    /// Runs JavaScript, which reads and sets variables and sees the last answer.
    KIND("js", "a js step") [
        "js": Scalar(Code) =>
            "The body of a function: `vars.NAME` is a variable of the session, `res` its last answer. An exception fails the step."
    ] {}
    example: "
- GET: /cart
- js: |
    vars.total = res.json('items').reduce((sum, item) => sum + item.price, 0).toFixed(2);
- POST: /pay
  json: {total: '${total}'}
"
}

fn compile(session: &mut Session<'_, '_>, step: &Step<'_>) {
    let Some(text) = step.value.text() else { return };
    let sink = session.reader.sink;
    if text.trim().is_empty() {
        return sink.error(step.value, "there is no JavaScript here");
    }
    let Ok(index) = u16::try_from(session.requests.codes.len()) else {
        return sink.error(step.value, "this scenario has too many js steps");
    };
    let only_code = blanked(text);
    let mut code = CodePlan {
        text: text.into(),
        variables: Vec::new(),
        reads_answer: mentions(&only_code, ANSWER),
        file: sink.name().to_owned(),
        places: places(step.value, sink),
    };
    for named in named(&only_code) {
        if code.variables.iter().any(|known| known.name == named.name) {
            if !named.is_set {
                session.scope.read(named.name);
            }
        } else if let Some(variable) = session.code_variable(&named, &code) {
            code.variables.push(variable);
        }
    }
    session.ops.push(Op::Code { code: index, reads_answer: code.reads_answer });
    session.requests.codes.push(code);
}

impl Session<'_, '_> {
    /// Makes the variables known that code sets.
    pub(crate) fn define_in_code(&mut self, node: &Node) {
        let Some(text) = node.text() else { return };
        let mut of_lines = None;
        let only_code = blanked(text);
        for named in named(&only_code).filter(|named| named.is_set || named.may_be_set) {
            let is_setting = self.reader.settings.names().any(|setting| setting == named.name);
            if !is_name(named.name) || (is_setting && !named.is_set) {
                continue;
            }
            let places = of_lines.get_or_insert_with(|| places(node, self.reader.sink));
            self.define_at(named.name, position(text, places, &named));
        }
    }

    /// A variable, or a setting, that code names; none where it is neither, which is told.
    fn code_variable(&mut self, named: &Named<'_>, code: &CodePlan) -> Option<CodeVariable> {
        let (name, reader) = (named.name, self.reader);
        let wrong = |message: String| {
            reader.sink.error_at(position(&code.text, &code.places, named), message);
        };
        if name.is_empty() {
            wrong("write vars.NAME: a variable is known by its name in the code".to_owned());
            return None;
        }
        if !is_name(name) {
            wrong(match RESERVED.contains(&name) {
                true => format!("\"{name}\" is a word of the expressions; choose another name"),
                false => format!("\"{name}\" cannot be a name; use letters, digits and _, not a digit first"),
            });
            return None;
        }
        let slot = if named.is_set { self.scope.slot(name) } else { self.scope.read(name) };
        if let Some(slot) = slot {
            return Some(CodeVariable { name: name.to_owned(), slot, is_fixed: false });
        }
        if let Some(value) = reader.settings.value(name) {
            let value = value.map_err(wrong).ok()?;
            let slot = self.scope.hidden(name);
            self.assign(slot, crate::expr::Expr::new(value));
            return Some(CodeVariable { name: name.to_owned(), slot, is_fixed: true });
        }
        if self.shared.lacks_columns {
            return None;
        }
        let hint = did_you_mean(name, self.scope.known().chain(reader.settings.names()));
        let advice = if hint.is_empty() { "; nothing sets it" } else { "" };
        wrong(format!("unknown variable \"{name}\"{hint}{advice}"));
        None
    }
}

/// A place in code that names a variable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Named<'c> {
    /// The name.
    name: &'c str,
    /// The byte at which it begins.
    at: usize,
    /// Whether it is set there.
    is_set: bool,
    /// Whether it may be: it may be a part of a pattern.
    may_be_set: bool,
}

/// Whether a character may be within a word of JavaScript.
fn is_of_word(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | '$' | '\u{200c}' | '\u{200d}')
}

/// Whether code has this word, which is no name of a property.
fn mentions(code: &str, word: &str) -> bool {
    code.match_indices(word).any(|(at, _)| {
        let before = code[..at].chars().next_back();
        let is_spread = code[..at].ends_with("...");
        before.is_none_or(|c| is_spread || !(is_of_word(c) || c == '.'))
            && !code[at + word.len()..].starts_with(is_of_word)
    })
}

/// The places in code that name variables; without a name where `vars` has none behind it. Of the code, comments and strings
/// are blanked.
fn named(code: &str) -> impl Iterator<Item = Named<'_>> {
    code.match_indices(VARS).filter_map(|(found, _)| {
        let before = &code[..found];
        let last = before.chars().next_back();
        if last.is_some_and(|c| is_of_word(c) || (c == '.' && !before.ends_with("..."))) {
            return None;
        }
        let rest = &code[found + VARS.len()..];
        if rest.starts_with(is_of_word) {
            return None;
        }
        let Some(rest) = rest.strip_prefix(DOT) else {
            return Some(Named { name: "", at: found, is_set: false, may_be_set: false });
        };
        let at = code.len() - rest.len();
        let end = rest.find(|c| !is_of_word(c)).unwrap_or(rest.len());
        let (name, rest) = rest.split_at(end);
        let (before, rest) = (before.trim_end(), rest.trim_start());
        let sets = |operator: &&str| {
            let rest = rest.strip_prefix(*operator);
            rest.is_some_and(|rest| {
                rest.starts_with('=') && !rest.starts_with("==") && !rest.starts_with("=>")
            })
        };
        let counts = |text: &str| text == "++" || text == "--";
        let is_set = SETTING.iter().any(sets)
            || rest.get(..2).is_some_and(counts)
            || before.len() >= 2 && before.get(before.len() - 2..).is_some_and(counts);
        let may_be_set =
            rest.starts_with([',', ']', '}']) || rest.starts_with("of ") || rest.starts_with("in ");
        Some(Named { name, at, is_set, may_be_set })
    })
}

/// Where the lines of a text stand in the file; where they are not found, only where the text begins.
fn places(node: &Node, sink: &Sink<'_>) -> Vec<(usize, usize)> {
    let lines: Vec<&str> = node.text().unwrap_or_default().lines().collect();
    let (begin, first_column) = (node.position.line, node.position.column);
    let place = |first: usize, index: usize| {
        let (line, source) = (lines[index], sink.line(first + index));
        let skipped = if first + index == begin { first_column.saturating_sub(1) } else { 0 };
        let skipped = source.char_indices().nth(skipped).map_or(source.len(), |(byte, _)| byte);
        let found = skipped + source[skipped..].find(line)?;
        Some((first + index, source[..found].chars().count() + 1))
    };
    let all = |first: usize| (0..lines.len()).map(|index| place(first, index)).collect::<Option<Vec<_>>>();
    let is_block = sink.is_block(node);
    let found = (begin + usize::from(is_block)..=begin + 1).find_map(all).filter(|all| !all.is_empty());
    found.unwrap_or_else(|| vec![(begin, first_column)])
}

/// Where a name in code stands in the file.
fn position(code: &str, places: &[(usize, usize)], named: &Named<'_>) -> Position {
    let before = &code[..named.at];
    let line = before.matches('\n').count();
    let column = before.chars().rev().take_while(|c| *c != '\n').count();
    let (line, column) = match places.get(line) {
        Some((line, first)) if places.len() == code.lines().count() => (*line, first + column),
        _ => places.first().copied().unwrap_or_default(),
    };
    Position { line, column, start: 0, end: named.name.chars().count() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(code: &str) -> Vec<(&str, bool, bool)> {
        named(code).map(|named| (named.name, named.is_set, named.may_be_set)).collect()
    }

    #[test]
    fn names_and_whether_they_are_set_are_found() {
        assert_eq!(
            all("vars.a = 1; vars.b += vars.c;"),
            [("a", true, false), ("b", true, false), ("c", false, false)]
        );
        for code in ["vars.a++", "--vars.a", "vars.a ??= 1", "vars.a>>>=1", "vars.a =-1", "vars.a **= 2"] {
            assert_eq!(all(code), [("a", true, false)], "{code}");
        }
        for code in ["vars.a == 1", "vars.a === 1", "vars.a <= 1", "vars.a >= 1", "vars.a + 1", "vars.a != 1"]
        {
            assert_eq!(all(code), [("a", false, false)], "{code}");
        }
        for code in ["[vars.a] = [1]", "({x: vars.a} = y)", "for (vars.a of list);"] {
            assert_eq!(all(code), [("a", false, true)], "{code}");
        }
        assert_eq!(
            all("myvars.a; x.vars.b; vars. ; `${vars.c}` + f(...vars.d); varsity; {total} = vars; vars['x']"),
            [
                ("", false, false),
                ("c", false, true),
                ("d", false, false),
                ("", false, false),
                ("", false, false)
            ]
        );
        assert_eq!(all("vars.ä; vars.$x"), [("ä", false, false), ("$x", false, false)]);
    }

    #[test]
    fn what_names_the_answer_looks_at_it() {
        for code in ["res.body", "f(res)", "[...res]", "const {body} = res"] {
            assert!(mentions(code, ANSWER), "{code}");
        }
        for code in ["x.res", "result", "pres.x", ""] {
            assert!(!mentions(code, ANSWER), "{code}");
        }
    }
}
