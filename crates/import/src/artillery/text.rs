//! Templates: `{{ name }}`, `{{ $randomNumber(1, 9) }}`, and conditions.

use std::path::Path;

use tidemark_scenario::source::{
    Load, Map, Method, Request, Scalar, Scenario, Session, Step, System, Value, verbatim,
};

use super::Making;
use super::steps::State;
use crate::draft::is_typed;
use crate::holes::{Hole, Text};
use crate::plan::{nested, quoted, shown};
use crate::tree::{Content, Node};

/// How often a value may name another variable.
const NESTED_MAX: usize = 10;
/// Most bytes of a value with all that it names.
const VALUE_BYTES_MAX: usize = 1 << 20;
/// Most values that stand in one expression.
const PICKED_MAX: usize = 20;

impl Making<'_> {
    /// A text with its variables.
    pub(super) fn text(&mut self, node: &Node, text: &str, state: &mut State) -> Text {
        let text = if text.contains("{{") { self.partly_written_out(text) } else { text.to_owned() };
        let text = Text::of_braces(&text, &mut |name| self.hole(node, name, state));
        if text.is_full() {
            self.draft.tell(node.line, "text", "replaced more variables than a text may have here", true);
        }
        text
    }

    /// Values that name other variables are written out.
    fn partly_written_out(&self, text: &str) -> String {
        self.resolved(text, |making, name| match name {
            "$environment" => Some(making.draft.file.environment.unwrap_or("undefined").to_owned()),
            name => making.values.get(name).filter(|value| value.contains("{{")).cloned(),
        })
    }

    /// All values that are known are.
    pub(super) fn written_out(&mut self, text: &str) -> String {
        self.resolved(text, |making, name| match name {
            "target" => Some(format!("{}{}{}", making.target, making.base, making.slash)),
            "$environment" => making.draft.file.environment.map(str::to_owned),
            name => making.values.get(name).filter(|_| !making.assigned.contains(name)).cloned(),
        })
    }

    fn resolved(&self, text: &str, of: impl Fn(&Self, &str) -> Option<String>) -> String {
        let mut out = text.to_owned();
        for _ in 0..NESTED_MAX {
            let next =
                Text::of_braces(&out, &mut |name| Some(Hole::new(of(self, name)?, false))).written_out();
            if next == out || next.len() > VALUE_BYTES_MAX {
                break;
            }
            out = next;
        }
        out
    }

    fn hole(&mut self, node: &Node, name: &str, state: &mut State) -> Option<Hole> {
        // `{{{ name }}}`
        let name = name.trim_matches(['{', '}']).trim();
        let text =
            |expression: String, is_plain| Some(Hole { is_text: true, ..Hole::new(expression, is_plain) });
        if let Some((function, inner)) = name.strip_suffix(')').and_then(|name| name.split_once('(')) {
            let numbers: Vec<Option<i64>> =
                inner.split(',').map(|number| number.trim().parse().ok()).collect();
            match (function.trim(), numbers.as_slice()) {
                ("$randomNumber", [Some(low), Some(high)]) => {
                    return Some(Hole::new(format!("random({}, {})", low.min(high), low.max(high)), true));
                }
                ("$randomString", [length]) if length.is_some() || inner.trim().is_empty() => {
                    let length = length.unwrap_or(10).clamp(1, 10_000);
                    return text(format!("random_text({length})"), true);
                }
                _ => {
                    let would = format!("called {}: random letters stand for what it gave", shown(name));
                    self.draft.tell(node.line, "template", would, true);
                    return text("random_text(10)".into(), true);
                }
            }
        }
        let environment = name.strip_prefix("$processEnvironment.").or(name.strip_prefix("$env."));
        if let Some(variable) = environment {
            // only those that are there for it can be asked for
            let comment = "from the environment of Artillery: set this variable, or give --set";
            let setting = self.draft.settings.secret(
                format!("environment {variable}"),
                variable,
                &format!("{variable}_value"),
                comment,
            );
            return Some(Hole::new(setting, false));
        }
        match name {
            "$uuid" => {
                let ours = self.draft.variable("$uuid");
                state.begin(&ours, "${uuid()}".into());
                return text(ours, true);
            }
            "$testId" => return text("random_text(12)".into(), true),
            "target" => {
                return text(quoted(&format!("{}{}{}", self.target, self.base, self.slash)), false);
            }
            "$loopCount" if state.counter.is_some() => {
                return Some(Hole::new(state.counter.clone().unwrap_or_default(), true));
            }
            "$loopElement" if state.element.is_some() => {
                return Some(Hole::new(state.element.clone().unwrap_or_default(), false));
            }
            _ => {}
        }
        self.variable(name, state).or_else(|| {
            let would = format!("written {:?}, which is no variable that is known here", shown(name));
            self.draft.tell(node.line, "template", would, true);
            Some(Hole::new(quoted("undefined"), true))
        })
    }

    /// What a variable of the script stands for.
    pub(super) fn variable(&mut self, name: &str, state: &mut State) -> Option<Hole> {
        let payload = self.payloads.iter().position(|payload| {
            self.draft
                .known_variable(name)
                .is_some_and(|ours| payload.fields.iter().any(|(field, _)| *field == ours))
        });
        if let Some(at) = payload {
            let ours = self.draft.variable(name);
            state.take(&self.payloads[at].feeder);
            let is_number = self.payloads[at].fields.iter().any(|(field, number)| *field == ours && *number);
            let hole = Hole { is_text: !is_number, ..Hole::new(ours.clone(), false) };
            return Some(if is_number {
                hole.with_type(format!("default(number({ours}), {ours})"))
            } else {
                hole
            });
        }
        if let Some(values) = self.drawn.get(name).cloned() {
            let ours = self.draft.variable(name);
            let is_text = values.iter().all(|value| value.as_str().is_some_and(|text| !is_typed(text)));
            let literal = |value: &Value| match value {
                Value::Scalar(scalar) if !scalar.is_bare() => quoted(scalar.as_str()),
                value => value.as_str().unwrap_or("missing").to_owned(),
            };
            let drawn = if values.len() <= PICKED_MAX {
                let all: Vec<String> = values.iter().map(literal).collect();
                format!("${{pick({})}}", all.join(", "))
            } else {
                let feeder = format!("{ours}_values");
                if !self.feeders.iter().any(|(known, _)| *known == feeder) {
                    let values = values
                        .iter()
                        .map(|value| verbatim(value.as_str().unwrap_or_default()).into())
                        .collect();
                    let made = tidemark_scenario::source::Feeder {
                        values,
                        order: Some("random".into()),
                        ..Default::default()
                    };
                    self.feeders.push((feeder.clone(), made));
                }
                format!("${{next({feeder})}}")
            };
            state.begin(&ours, drawn.into());
            return Some(Hole { is_text, ..Hole::new(ours, false) });
        }
        let value = self.values.get(name).cloned();
        if self.assigned.contains(name) {
            let ours = self.draft.variable(name);
            if let Some(value) = value {
                let is_bare = is_typed(&value) && !self.texts.contains(name);
                let value = if is_bare { Scalar::unquoted(&value) } else { verbatim(&value).into() };
                state.begin(&ours, value.into());
            }
            state.used.push(ours.clone());
            return Some(Hole::new(ours, false));
        }
        let value = value?;
        let is_plain = value.chars().all(|c| c.is_ascii_alphanumeric() || "-._~".contains(c));
        let is_text = !is_typed(&value) && value.parse::<f64>().is_err();
        let setting = self.draft.setting(name, Some(&value), "");
        let hole = Hole { is_text, ..Hole::new(setting.clone(), is_plain) };
        let is_quoted = is_typed(&value) && self.texts.contains(name);
        Some(if is_quoted { hole.with_type(format!("text({setting})")) } else { hole })
    }

    /// A structure with templates in it, as source.
    pub(super) fn tree(&mut self, node: &Node, name: &str, state: &mut State) -> Value {
        match &node.content {
            Content::List(_) => {
                node.items().iter().map(|item| self.tree(item, name, state)).collect::<Vec<_>>().into()
            }
            Content::Map(_) => {
                let mut map = Map::new();
                for (key, value) in node.entries() {
                    let ours = self.text(value, key, state).write(crate::holes::Place::Raw);
                    map.insert(ours, self.tree(value, key, state));
                }
                map.into()
            }
            Content::Scalar(scalar) if scalar.is_bare() => self.draft.number(name, scalar),
            Content::Scalar(scalar) => {
                let is_call = scalar.as_str().contains('(');
                let text = self.text(node, scalar.as_str(), state);
                match text.only_hole() {
                    // what a function gives is a text; a variable keeps its type
                    Some(hole) if is_call && !hole.is_text => {
                        format!("${{text({})}}", hole.expression).into()
                    }
                    Some(hole) => format!("${{{}}}", hole.typed()).into(),
                    None => self.draft.value(name, &text).into(),
                }
            }
        }
    }

    /// A condition of `ifTrue` as an expression; none where it is none that is known.
    pub(super) fn condition(&mut self, text: &str, state: &mut State) -> Option<String> {
        let token = regex::Regex::new(
            r#"^\s*("(?:[^"\\]|\\.)*"|[A-Za-z_$][A-Za-z0-9_.$]*|\d+(?:\.\d+)?|==|!=|<=|>=|[<>=()+*/-])"#,
        )
        .ok()?;
        let (mut out, mut plain, mut rest) = (Vec::new(), Vec::new(), text.trim_end());
        while !rest.is_empty() {
            let found = token.captures(rest)?;
            let (whole, word) = (found.get(0)?, found.get(1)?.as_str());
            rest = &rest[whole.end()..];
            let made = match word {
                "and" | "or" | "not" | "true" | "false" => word.to_owned(),
                "=" => "==".to_owned(),
                word if word.starts_with('"') => quoted(&word[1..word.len() - 1]),
                word if word.starts_with(|c: char| c.is_alphabetic() || "_$".contains(c)) => {
                    if rest.starts_with('(') {
                        return None;
                    }
                    match word {
                        "$loopCount" => state.counter.clone()?,
                        "$loopElement" => state.element.clone()?,
                        name => self.variable(name, state)?.expression,
                    }
                }
                word => word.to_owned(),
            };
            let is_name = made.starts_with(|c: char| c.is_alphabetic() || c == '_');
            let is_word = ["and", "or", "not", "true", "false"].contains(&made.as_str());
            plain.push(if is_name && !is_word { "x".to_owned() } else { made.clone() });
            out.push(made);
        }
        let made = out.join(" ").replace("( ", "(").replace(" )", ")");
        is_condition(&plain.join(" ")).then_some(made)
    }
}

/// Whether a text is a condition of the language, whose only variable is `x`.
fn is_condition(text: &str) -> bool {
    let when = Map::from([
        ("when", Value::from(format!("${{{text}}}"))),
        ("steps", nested(vec![Request::new(Method::Get, "/").into()])),
    ]);
    let set = Map::from([("set", Map::from([("x", "${random(1, 2)}")]))]);
    let steps = vec![Step::Other(set), Step::Other(when)];
    let whole = Scenario {
        system: Some(System { url: Some("http://h".into()), ..System::default() }),
        sessions: vec![("s".into(), Session { steps, ..Session::default() })],
        load: Some(Load { users: Some(1u64.into()), hold: Some("1s".into()), ..Load::default() }),
        ..Scenario::default()
    };
    let (_, mistakes) =
        tidemark_scenario::check_text("condition.yaml", &whole.to_yaml(), Path::new("."), &[]);
    !mistakes.has_errors()
}
