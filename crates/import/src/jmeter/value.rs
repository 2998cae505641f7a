//! Texts of a plan become texts and expressions of the language: references to its variables, properties and functions.

use tidemark_scenario::source::{Scalar, verbatim};

use super::Making;
use super::text::{Piece, pieces, unescaped};
use super::tree::Node;
use crate::har::hidden::is_secret_name;
use crate::names::{free, name_of};
use crate::plan::{concat, quoted};

/// JMeter's own variable that says whether the last request ended well.
pub(super) const LAST_SAMPLE_OK: &str = "JMeterThread.last_sample_ok";
/// Deepest chain of variables that name each other.
const DEPTH_MAX: usize = 16;
/// Longest expression that is put together, bytes.
const EXPRESSION_MAX: usize = 64 << 10;

/// An expression of the language.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Expr {
    pub(super) text: String,
    /// What it is, where that is known before the run: of settings with their defaults.
    pub(super) value: Option<String>,
    /// Whether it is known to have nothing that a path or a query would encode.
    pub(super) is_plain: bool,
    /// What it is before it was percent-encoded, where the plan encodes it by itself.
    pub(super) decoded: Option<String>,
}

impl Expr {
    /// One that is computed by each user.
    pub(super) fn computed(text: impl Into<String>) -> Expr {
        Expr { text: text.into(), value: None, is_plain: false, decoded: None }
    }

    /// The same of a number or a UUID.
    pub(super) fn plain(text: impl Into<String>) -> Expr {
        Expr { is_plain: true, ..Expr::computed(text) }
    }

    /// A setting.
    fn setting(name: String, value: &str) -> Expr {
        Expr { value: Some(value.to_owned()), ..Expr::plain(name) }
    }

    /// A text as it is.
    pub(super) fn literal(text: &str) -> Expr {
        Expr { value: Some(text.to_owned()), ..Expr::plain(quoted(text)) }
    }
}

/// What a variable of the plan holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Holds {
    Text,
    /// A number, which is never encoded.
    Number,
    /// All matches of an extractor: `name_1`, `name_2` and `name_matchNr` are of it.
    List,
}

/// A variable that a session sets.
#[derive(Debug, Clone)]
pub(super) struct Variable {
    pub(super) name: String,
    pub(super) holds: Holds,
}

impl Making<'_> {
    /// Makes a variable of the plan known, and gives it a name of its own.
    pub(super) fn declare(&mut self, name: &str, holds: Holds) {
        let name = name.trim();
        match self.variables.get_mut(name) {
            Some(known) => {
                if holds == Holds::List || known.holds == Holds::List {
                    known.holds = Holds::List;
                } else if known.holds != holds {
                    known.holds = Holds::Text;
                }
            }
            None if name.is_empty() => {}
            None => {
                let own = self.own_name(name);
                self.variables.insert(name.to_owned(), Variable { name: own, holds });
            }
        }
    }

    /// A name that nothing else has.
    pub(super) fn own_name(&mut self, wanted: &str) -> String {
        let wanted = name_of(wanted);
        let name = free(&wanted, &wanted, |name| self.taken.contains(name));
        self.taken.insert(name.clone());
        name
    }

    /// The name of a variable that a session sets.
    pub(super) fn slot(&mut self, name: &str) -> String {
        if !self.variables.contains_key(name.trim()) {
            self.declare(name, Holds::Text);
        }
        self.variables.get(name.trim()).map_or_else(|| name_of(name), |variable| variable.name.clone())
    }

    /// A text of the plan as one of the scenario.
    pub(super) fn text(&mut self, text: &str, node: &Node<'_>) -> String {
        self.template(text, node, false, |expr| expr.text.clone())
    }

    /// A text in a path: JMeter encodes nothing there but spaces.
    pub(super) fn path_text(&mut self, text: &str, node: &Node<'_>) -> String {
        self.template(text, node, true, |expr| match &expr.decoded {
            // a hole of a path is encoded by itself
            Some(decoded) => decoded.clone(),
            None if expr.is_plain => expr.text.clone(),
            None => format!("path({})", expr.text),
        })
    }

    fn template(
        &mut self,
        text: &str,
        node: &Node<'_>,
        in_path: bool,
        hole: impl Fn(&Expr) -> String,
    ) -> String {
        let plain = |text: &str| if in_path { verbatim(&text.replace(' ', "%20")) } else { verbatim(text) };
        let mut out = String::new();
        for piece in pieces(text) {
            match piece {
                Piece::Text(text) => out.push_str(&plain(&text)),
                piece => match self.piece(&piece, node, 0) {
                    // a literal, or what a user variable holds
                    Some(expr) if expr.value.as_ref().is_some_and(|value| expr.text == quoted(value)) => {
                        out.push_str(&plain(&expr.value.unwrap_or_default()));
                    }
                    Some(expr) => out.push_str(&format!("${{{}}}", hole(&expr))),
                    None => out.push_str(&plain(&written(&piece))),
                },
            }
        }
        out
    }

    /// A text as an expression.
    pub(super) fn expression(&mut self, text: &str, node: &Node<'_>) -> Option<Expr> {
        self.expression_at(text, node, 0)
    }

    pub(super) fn expression_at(&mut self, text: &str, node: &Node<'_>, depth: usize) -> Option<Expr> {
        if depth > DEPTH_MAX {
            return None;
        }
        let pieces = pieces(text);
        let mut parts: Vec<Expr> = Vec::new();
        for piece in &pieces {
            parts.push(match piece {
                Piece::Text(text) => Expr::literal(text),
                piece => self.piece(piece, node, depth)?,
            });
        }
        if parts.len() == 1 {
            return parts.pop();
        }
        let value: Option<String> = parts.iter().map(|part| part.value.as_deref()).collect();
        let texts: Vec<String> = parts.iter().map(|part| part.text.clone()).collect();
        if texts.iter().map(String::len).sum::<usize>() > EXPRESSION_MAX {
            return None;
        }
        Some(Expr {
            text: concat(&texts),
            value,
            is_plain: parts.iter().all(|part| part.is_plain),
            decoded: None,
        })
    }

    /// What a text is before the run, where that is known.
    pub(super) fn known(&mut self, text: &str, node: &Node<'_>) -> Option<String> {
        self.expression(text, node)?.value
    }

    /// A number that is known before the run.
    pub(super) fn number(&mut self, text: &str, node: &Node<'_>) -> Option<f64> {
        let known = self.known(text.trim(), node)?;
        known.trim().parse().ok().filter(|number: &f64| number.is_finite())
    }

    /// A number or a setting as a value of the scenario.
    pub(super) fn scalar(&mut self, text: &str, node: &Node<'_>) -> Scalar {
        let text = self.text(text.trim(), node);
        Scalar::unquoted(&text)
    }

    fn piece(&mut self, piece: &Piece, node: &Node<'_>, depth: usize) -> Option<Expr> {
        match piece {
            Piece::Text(text) => Some(Expr::literal(text)),
            Piece::Variable(name) => {
                let found = self.variable(name, node, depth);
                if found.is_none() && self.user_variables.contains_key(name.trim()) {
                    let would = format!("put what the plan sets as ${{{}}} in its place", super::shown(name));
                    self.leave_out_request(node, &would);
                    return None;
                }
                found.or_else(|| self.tell_unset(name, node))
            }
            Piece::Call(name, arguments) => {
                let found = self.call(name, arguments, node, depth);
                if found.is_none() {
                    let would = format!("put the value of {} in its place", written(piece));
                    self.leave_out_request(node, &would);
                }
                found
            }
        }
    }

    /// A variable of the plan, if anything sets it.
    pub(super) fn variable(&mut self, name: &str, node: &Node<'_>, depth: usize) -> Option<Expr> {
        let name = name.trim();
        if name == LAST_SAMPLE_OK && self.asks_last {
            let answered = self.answered();
            self.group.asks_last = true;
            return Some(Expr::computed(format!("if(exists({answered}), 'true', 'false')")));
        }
        if let Some(variable) = self.variables.get(name) {
            let text = variable.name.clone();
            return Some(match variable.holds {
                Holds::Number => Expr::plain(text),
                Holds::Text => Expr::computed(text),
                Holds::List => Expr::computed(format!("first({text})")),
            });
        }
        if let Some(raw) = self.user_variables.get(name).cloned() {
            if !raw.contains("${") {
                return Some(self.user_setting(name, &raw));
            }
            return self.expression_at(&raw, node, depth + 1);
        }
        // name_3, name_matchNr: items of a list
        let (list, item) = name.rsplit_once('_')?;
        let list = self.variables.get(list).filter(|list| list.holds == Holds::List)?;
        if item == "matchNr" {
            return Some(Expr::plain(format!("len({})", list.name)));
        }
        let number: usize = item.parse().ok()?;
        Some(Expr::computed(format!("{}[{}]", list.name, number.checked_sub(1)?)))
    }

    /// The setting of a user-defined variable.
    fn user_setting(&mut self, name: &str, value: &str) -> Expr {
        let what = format!("variable {name}");
        let setting =
            self.setting(&what, name, &format!("the plan's variable {}", super::shown(name)), value);
        Expr::setting(setting, value)
    }

    /// The setting of a property, which `-J name=value` gives.
    pub(super) fn property(&mut self, name: &str, default: &str) -> Expr {
        let given =
            self.properties.iter().rev().find(|(known, _)| known == name).map(|(_, value)| value.clone());
        self.asked_properties.insert(name.to_owned());
        let (what, value) = match given {
            Some(value) => (format!("property {name}"), value),
            None => (format!("property {name} {default}"), default.to_owned()),
        };
        let about = format!("-J {}=…", super::shown(name));
        let setting = self.setting(&what, name, &about, &value);
        Expr::setting(setting, &value)
    }

    /// A setting, once for what it stands for. One with a secret's name holds no value.
    fn setting(&mut self, what: &str, wanted: &str, about: &str, value: &str) -> String {
        if let Some(name) = self.settings.of(what) {
            return name.to_owned();
        }
        let own = self.own_name(wanted);
        if is_secret_name(wanted) && !value.is_empty() {
            let name = self.settings.secret(what.to_owned(), &own, &own, about);
            self.secrets.push((name.clone(), value.to_owned()));
            return name;
        }
        self.settings.named(what.to_owned(), &own, &own, about, Scalar::unquoted(value))
    }

    /// A secret that stands in the plan, as a hole; what names settings and variables stays.
    pub(super) fn secret(&mut self, name: &str, value: &str, node: &Node<'_>) -> String {
        if value.is_empty() || value.contains("${") {
            return self.text(value, node);
        }
        let what = format!("secret {name} {value}");
        let wanted = if is_secret_name(name) { name.to_owned() } else { format!("{name}_secret") };
        format!("${{{}}}", self.setting(&what, &wanted, "it stands in the plan", value))
    }

    /// A URL as a plan may name it: settings by their values, the port of its scheme with it and without.
    pub(super) fn ways_to_write(&self, place: &str) -> Vec<String> {
        let (mut out, mut rest) = (String::new(), place);
        while let Some((before, behind)) = rest.split_once("${") {
            let hole = behind.split_once('}').and_then(|(name, behind)| {
                let inner =
                    name.strip_prefix("path(").and_then(|name| name.strip_suffix(')')).unwrap_or(name);
                Some((self.settings.map.get(inner)?.as_str()?, behind))
            });
            let Some((value, behind)) = hole.filter(|(value, _)| !value.contains("${")) else { break };
            out.push_str(before);
            out.push_str(value);
            rest = behind;
        }
        out.push_str(rest);
        let mut all = vec![out.clone()];
        for (scheme, port) in [("http://", ":80"), ("https://", ":443")] {
            let Some(behind) = out.strip_prefix(scheme) else { continue };
            let (host, path) = behind.split_at(behind.find('/').unwrap_or(behind.len()));
            match host.strip_suffix(port) {
                Some(host) => all.push(format!("{scheme}{host}{path}")),
                None if !host.contains(':') => all.push(format!("{scheme}{host}{port}{path}")),
                None => {}
            }
        }
        all
    }

    /// Tells that nothing sets a variable. JMeter leaves its name then, unless a script sets it.
    fn tell_unset(&mut self, name: &str, node: &Node<'_>) -> Option<Expr> {
        let is_of_jmeter = ["JMeterThread.", "START.", "TESTSTART."].iter().any(|own| name.starts_with(own));
        let is_of_script = is_of_jmeter || self.script_texts.iter().any(|text| text.contains(name));
        let written = (!is_of_script).then(|| Expr::literal(&format!("${{{name}}}")));
        if !self.told_unset.insert((name.to_owned(), node.element.line)) {
            return written;
        }
        let name = super::shown(name);
        if is_of_script {
            let who = if is_of_jmeter { "JMeter" } else { "a script" };
            let would = format!("put what {who} sets as ${{{name}}} in its place");
            self.leave_out_request(node, &would);
        } else {
            let note =
                format!("nothing in the plan sets ${{{name}}}: it stays as it is written, as in JMeter");
            self.note(note);
        }
        written
    }
}

/// A piece as it stands in the plan.
fn written(piece: &Piece) -> String {
    match piece {
        Piece::Text(text) => text.clone(),
        Piece::Variable(name) => format!("${{{name}}}"),
        Piece::Call(name, arguments) if arguments.is_empty() => format!("${{__{name}}}"),
        Piece::Call(name, arguments) => {
            let arguments: Vec<String> = arguments.iter().map(|argument| unescaped(argument)).collect();
            format!("${{__{name}({})}}", arguments.join(","))
        }
    }
}
