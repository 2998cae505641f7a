//! Scripts of elements: one whose statements only set variables, wait or write to the log becomes steps.

use tidemark_scenario::source::{Step, Think, Value};

use super::function::set;
use super::group::time;
use super::tree::Node;
use super::value::Holds;
use super::{Making, Scope};

/// Longest script that is read, bytes.
const SCRIPT_MAX: usize = 16 << 10;
/// Calls that change nothing but a log.
const LOGS: [&str; 9] = [
    "log.info(",
    "log.debug(",
    "log.warn(",
    "log.error(",
    "print(",
    "println(",
    "System.out.println(",
    "OUT.println(",
    "console.log(",
];
/// Words that a variable of a script begins with.
const TYPES: [&str; 9] = ["def", "var", "let", "const", "String", "int", "Integer", "long", "Long"];

/// A statement of a script.
#[derive(Debug, PartialEq)]
enum Statement<'s> {
    /// It changes nothing here.
    Nothing,
    /// `Thread.sleep(…)`, milliseconds
    Wait(f64),
    /// `vars.put("name", …)`
    Put(&'s str, &'s str),
    /// `def name = …`
    Local(&'s str, &'s str),
}

impl<'a> Making<'a> {
    /// Makes the variables known that scripts set.
    pub(super) fn look_scripts(&mut self, node: &Node<'_>) {
        if node.is_enabled() {
            self.scripted(node);
            node.children.iter().for_each(|child| self.look_scripts(child));
        }
    }

    /// The steps of the scripts around a sampler that run before it (`PreProcessor`) or behind it (`PostProcessor`).
    pub(super) fn scripts(&mut self, scope: &Scope<'a>, when: &str) -> Vec<Step> {
        let mut steps = Vec::new();
        for (at, node) in scope.nodes.iter().enumerate().filter(|(_, node)| node.kind().ends_with(when)) {
            let made = self.scripted(node).unwrap_or_default();
            let is_before = scope.nodes[at + 1..].iter().any(|node| node.kind().contains("Extractor"));
            if !made.is_empty() && when == "PostProcessor" && is_before {
                self.leave_out(
                    node,
                    "run before the extractors that stand behind it; here it runs after them",
                );
            }
            steps.extend(made);
        }
        steps
    }

    /// What a script does, if all of it is known. Else nothing is told or declared here.
    pub(super) fn scripted(&mut self, node: &Node<'_>) -> Option<Vec<Step>> {
        let (script, file) = match node.kind() {
            "JSR223PreProcessor"
            | "JSR223PostProcessor"
            | "JSR223Sampler"
            | "BeanShellPreProcessor"
            | "BeanShellPostProcessor" => ("script", "filename"),
            "BeanShellSampler" => ("BeanShellSampler.query", "BeanShellSampler.filename"),
            _ => return None,
        };
        let text = node.text(script);
        // of a compiled script only the first value of a variable counts
        let is_fixed = node.flag("cacheKey") && text.contains("${");
        if text.len() > SCRIPT_MAX || is_fixed || !node.text(file).trim().is_empty() {
            return None;
        }
        let text = without_comments(text);
        let before = std::mem::take(&mut self.before);
        let (told, notes) = (self.left_out.len(), self.notes.len());
        let mut declared = Vec::new();
        let steps = self.statements(&text, node, &mut declared);
        self.before = before;
        if steps.is_none() {
            self.left_out.truncate(told);
            self.notes.truncate(notes);
            for name in declared {
                self.variables.remove(&name);
            }
        }
        steps
    }

    /// The steps of a script; the variables of the plan that it sets first are declared.
    fn statements(&mut self, text: &str, node: &Node<'_>, declared: &mut Vec<String>) -> Option<Vec<Step>> {
        let is_groovy = !node.text("scriptLanguage").to_ascii_lowercase().contains("script");
        let mut steps = Vec::new();
        let mut puts: Vec<String> = Vec::new();
        for statement in split(text)? {
            let statement = statement_of(statement)?;
            if let Statement::Put(_, code) | Statement::Local(_, code) = statement
                && (!is_exact(code, is_groovy) || puts.iter().any(|put| code.contains(put)))
            {
                return None;
            }
            let (code, slot) = match statement {
                Statement::Nothing => continue,
                Statement::Wait(ms) => {
                    let pause = Think { time: Value::Scalar(time(ms / 1e3)), ..Think::default() };
                    steps.push(pause.into());
                    continue;
                }
                Statement::Put(name, code) => {
                    let known = self.variables.get(name).map(|variable| variable.holds);
                    match known {
                        Some(Holds::List) => return None,
                        Some(_) => {}
                        None => declared.push(name.to_owned()),
                    }
                    self.declare(name, Holds::Text);
                    // JMeter puts values in place of these before the script runs
                    puts.push(format!("${{{name}}}"));
                    (code, self.slot(name))
                }
                Statement::Local(name, code) => {
                    let expr = self.code(code, is_groovy, node, 0)?;
                    let key = local_key(name, node);
                    let slot = match self.locals.get(&key) {
                        Some((slot, _)) => slot.clone(),
                        None => self.own_name(name),
                    };
                    // a text is no number, even if it looks like one
                    let is_number = expr.is_plain && !code.starts_with(['"', '\'']);
                    self.locals.insert(key, (slot.clone(), is_number));
                    steps.append(&mut self.before);
                    steps.push(set(&slot, &expr.text));
                    continue;
                }
            };
            let expr = self.code(code, is_groovy, node, 0)?;
            steps.append(&mut self.before);
            steps.push(set(&slot, &expr.text));
        }
        Some(steps)
    }
}

/// Whether all of an expression means the same here: it divides nothing, has no fractions, and its texts have neither other
/// escapes nor, in Groovy, variables.
fn is_exact(code: &str, is_groovy: bool) -> bool {
    let mut before = ' ';
    outside_of_quotes(code).all(|(at, found, is_code)| {
        let next = code[at + found.len_utf8()..].chars().next().unwrap_or(' ');
        let is_exact = match found {
            '/' | '%' => !is_code,
            '.' => !is_code || !before.is_ascii_digit(),
            '\\' => "\\\"'nt$".contains(next),
            '$' => is_code || !is_groovy || before == '\\' || !(next.is_alphabetic() || next == '_'),
            _ => true,
        };
        before = found;
        is_exact
    })
}

/// What a variable of a script is known by.
pub(super) fn local_key(name: &str, node: &Node<'_>) -> String {
    format!("{} {name}", node.element.line)
}

/// Code and its quotes: where each character lies.
fn outside_of_quotes(text: &str) -> impl Iterator<Item = (usize, char, bool)> + '_ {
    let (mut quote, mut is_escaped) = (None, false);
    text.char_indices().map(move |(at, found)| {
        let was_quoted = quote.is_some();
        match quote {
            _ if is_escaped => is_escaped = false,
            Some(_) if found == '\\' => is_escaped = true,
            Some(mark) if found == mark => quote = None,
            None if matches!(found, '"' | '\'') => quote = Some(found),
            _ => {}
        }
        (at, found, !was_quoted && quote.is_none())
    })
}

/// A script without its comments.
fn without_comments(text: &str) -> String {
    let (mut out, mut rest) = (String::new(), text);
    loop {
        let begin = outside_of_quotes(rest)
            .find(|(at, _, is_code)| {
                *is_code && (rest[*at..].starts_with("//") || rest[*at..].starts_with("/*"))
            })
            .map(|(at, _, _)| at);
        let Some(begin) = begin else {
            out.push_str(rest);
            return out;
        };
        out.push_str(&rest[..begin]);
        let comment = &rest[begin..];
        let length = match comment.starts_with("//") {
            true => comment.find('\n'),
            false => comment.find("*/").map(|end| end + 2),
        };
        rest = &comment[length.unwrap_or(comment.len())..];
    }
}

/// The statements of a script; none where it has blocks.
fn split(text: &str) -> Option<Vec<&str>> {
    let (mut statements, mut begin, mut depth) = (Vec::new(), 0, 0usize);
    for (at, found, is_code) in outside_of_quotes(text) {
        match found {
            _ if !is_code => {}
            '{' | '}' => return None,
            '(' | '[' => depth += 1,
            ')' | ']' => depth = depth.checked_sub(1)?,
            ';' | '\n' if depth == 0 => {
                statements.push(text[begin..at].trim());
                begin = at + 1;
            }
            _ => {}
        }
    }
    statements.push(text[begin..].trim());
    Some(statements)
}

/// A statement, if it is a known one.
fn statement_of(text: &str) -> Option<Statement<'_>> {
    let is_log =
        LOGS.iter().any(|log| text.starts_with(log)) && text.ends_with(')') && !text.contains("put(");
    if text.is_empty() || text.starts_with("import ") || is_log {
        return Some(Statement::Nothing);
    }
    let inside = |begin: &str| text.strip_prefix(begin)?.strip_suffix(')');
    if let Some(ms) = inside("Thread.sleep(") {
        let ms = ms.trim().trim_end_matches(['L', 'l']).parse::<f64>().ok()?;
        return ms.is_finite().then_some(if ms > 0.0 { Statement::Wait(ms) } else { Statement::Nothing });
    }
    if let Some(put) = inside("vars.put(") {
        let put = put.trim_start();
        let quote = put.chars().next().filter(|c| matches!(c, '"' | '\''))?;
        let (name, code) = put[1..].split_once(quote)?;
        let code = code.trim_start().strip_prefix(',')?;
        let is_name = !name.trim().is_empty() && !name.contains(['$', '\\']);
        return is_name.then(|| Statement::Put(name.trim(), code.trim()));
    }
    let (left, code) = text.split_once('=')?;
    let mut words = left.split_whitespace();
    let (kind, name) = (words.next()?, words.next()?);
    let is_word = name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    (TYPES.contains(&kind) && is_word && words.next().is_none() && !code.starts_with('='))
        .then(|| Statement::Local(name, code.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_are_read_statement_by_statement() {
        let read = |text: &str| -> Option<Vec<Statement<'static>>> {
            let text: &'static str = Box::leak(without_comments(text).into_boxed_str());
            split(text)?.into_iter().map(statement_of).collect()
        };
        assert_eq!(
            read(
                "import a.B; // c\nlog.info('x;//y')\n/* z */ def n = f(1,\n 2)\nvars.put(\"a b\", n + ';')"
            ),
            Some(vec![
                Statement::Nothing,
                Statement::Nothing,
                Statement::Nothing,
                Statement::Local("n", "f(1,\n 2)"),
                Statement::Put("a b", "n + ';'"),
            ])
        );
        assert_eq!(read("Thread.sleep(100L);"), Some(vec![Statement::Wait(100.0), Statement::Nothing]));
        for text in
            ["if (a) { vars.put('b', '1') }", "vars.put(name, '1')", "prev.setSuccessful(false)", "a == b"]
        {
            assert_eq!(read(text), None, "{text}");
        }
    }
}
