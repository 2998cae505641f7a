//! What an expression of a script stands for.

use std::collections::HashMap;

use super::Making;
use super::script::{call, split};
use crate::plan::quoted;

/// Deepest nesting of expressions.
const DEPTH_MAX: usize = 20;

/// A value that a script may look at or set.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Js {
    /// A text, a number, `true`, `false` or nothing.
    Literal(serde_json::Value),
    /// An expression of the scenario.
    Expression(String),
    /// A part of the answer, by its JSON path.
    Json(String),
    /// How many items it has.
    Count(String),
    Header(String),
    Cookie(String),
    Status,
    Body,
    /// How long the answer took, milliseconds.
    Time,
    /// `pm.response` itself.
    Response,
}

impl Js {
    /// As an expression, where it needs nothing of the answer.
    pub(super) fn expression(&self) -> Option<String> {
        match self {
            Js::Expression(text) => Some(text.clone()),
            Js::Literal(serde_json::Value::String(text)) => Some(quoted(text)),
            Js::Literal(serde_json::Value::Null) => Some("missing".into()),
            Js::Literal(value) => Some(value.to_string()),
            _ => None,
        }
    }
}

/// What variables of a script stand for.
pub(super) type Locals = HashMap<String, Js>;

impl Making<'_> {
    pub(super) fn value(&mut self, text: &str, locals: &Locals) -> Option<Js> {
        self.value_in(text.trim(), locals, 0)
    }

    fn value_in(&mut self, text: &str, locals: &Locals, depth: usize) -> Option<Js> {
        if depth > DEPTH_MAX || text.is_empty() {
            return None;
        }
        if let Some(literal) = literal(text) {
            return Some(Js::Literal(literal));
        }
        let sum = split(text, "+");
        if sum.len() > 1 && !text.contains("++") {
            if let Some(random) = random(text) {
                return Some(Js::Expression(random));
            }
            let parts: Vec<Js> =
                sum.iter().map(|part| self.value_in(part, locals, depth + 1)).collect::<Option<_>>()?;
            let is_text = parts.iter().any(|part| matches!(part, Js::Literal(serde_json::Value::String(_))));
            let parts: Vec<String> = parts.iter().map(Js::expression).collect::<Option<_>>()?;
            let made = if is_text { format!("concat({})", parts.join(", ")) } else { parts.join(" + ") };
            return Some(Js::Expression(made));
        }
        if let Some(inner) = text.strip_prefix('`').and_then(|text| text.strip_suffix('`')) {
            return self.template(inner, locals, depth);
        }
        if let Some(known) = known(text) {
            return Some(Js::Expression(known));
        }
        for begin in ["String(", "parseInt(", "parseFloat(", "Number("] {
            if let Some((inner, "")) = call(text, begin) {
                let inner = self.value_in(split(inner, ",").first()?, locals, depth + 1)?.expression()?;
                let function = if begin == "String(" { "text" } else { "number" };
                return Some(Js::Expression(format!("{function}({inner})")));
            }
        }
        if let Some(inner) = text.strip_suffix(".toString()") {
            return self.value_in(inner, locals, depth + 1);
        }
        if let Some((inner, "")) = call(text, "pm.variables.replaceIn(") {
            let serde_json::Value::String(inner) = literal(inner)? else { return None };
            return Some(Js::Expression(self.text(&inner).expression()));
        }
        if let Some(name) = getter(text) {
            return Some(Js::Expression(self.hole(&name).expression));
        }
        self.of_answer(text, locals)
    }

    /// `` `a ${b}` ``
    fn template(&mut self, text: &str, locals: &Locals, depth: usize) -> Option<Js> {
        let (mut parts, mut rest) = (Vec::new(), text);
        while let Some((before, behind)) = rest.split_once("${") {
            let (inner, behind) = behind.split_once('}')?;
            if !before.is_empty() {
                parts.push(quoted(before));
            }
            parts.push(self.value_in(inner.trim(), locals, depth + 1)?.expression()?);
            rest = behind;
        }
        if !rest.is_empty() {
            parts.push(quoted(rest));
        }
        Some(Js::Expression(format!("concat({})", parts.join(", "))))
    }

    fn of_answer(&mut self, text: &str, locals: &Locals) -> Option<Js> {
        const JSON: [&str; 3] =
            ["pm.response.json()", "JSON.parse(responseBody)", "JSON.parse(pm.response.text())"];
        match text {
            "pm.response" => return Some(Js::Response),
            "pm.response.code" | "responseCode.code" => return Some(Js::Status),
            "pm.response.text()" | "responseBody" => return Some(Js::Body),
            "pm.response.responseTime" | "responseTime" => return Some(Js::Time),
            _ => {}
        }
        for (begin, of) in [
            ("pm.response.headers.get(", Js::Header as fn(String) -> Js),
            ("postman.getResponseHeader(", Js::Header),
            ("pm.cookies.get(", Js::Cookie),
        ] {
            if let Some((inner, "")) = call(text, begin) {
                let serde_json::Value::String(name) = literal(inner)? else { return None };
                return Some(of(name));
            }
        }
        if let Some(rest) = JSON.iter().find_map(|begin| text.strip_prefix(begin)) {
            return path("$", rest);
        }
        let end = text.find(|c: char| !(c.is_alphanumeric() || "_$".contains(c))).unwrap_or(text.len());
        match (locals.get(&text[..end])?, &text[end..]) {
            (known, "") => Some(known.clone()),
            (Js::Json(base), rest) => path(base, rest),
            _ => None,
        }
    }
}

/// `'text'`, `"text"`, a number, `true`, `false`, `null`, `undefined`.
pub(super) fn literal(text: &str) -> Option<serde_json::Value> {
    let text = text.trim();
    let quote = text.chars().next().filter(|c| "\"'`".contains(*c));
    if let Some(quote) = quote {
        let inner = text.strip_prefix(quote)?.strip_suffix(quote)?;
        let (mut out, mut chars) = (String::new(), inner.chars());
        while let Some(c) = chars.next() {
            match c {
                '\\' => out.push(match chars.next()? {
                    'n' => '\n',
                    't' => '\t',
                    'r' => '\r',
                    c if "\\\"'`/$".contains(c) => c,
                    _ => return None,
                }),
                // it ends before
                c if c == quote => return None,
                '$' if quote == '`' && chars.as_str().starts_with('{') => return None,
                c => out.push(c),
            }
        }
        return Some(out.into());
    }
    match text {
        "undefined" => Some(serde_json::Value::Null),
        _ => serde_json::from_str(text)
            .ok()
            .filter(|value: &serde_json::Value| value.is_number() || value.is_boolean() || value.is_null()),
    }
}

/// `.a["b"][0]`, behind a path.
fn path(base: &str, mut rest: &str) -> Option<Js> {
    let mut out = base.to_owned();
    while !rest.is_empty() {
        if let Some(behind) = rest.strip_prefix("?.").or(rest.strip_prefix('.')) {
            let end =
                behind.find(|c: char| !(c.is_alphanumeric() || "_$".contains(c))).unwrap_or(behind.len());
            let (name, more) = behind.split_at(end);
            if name == "length" && more.is_empty() {
                return Some(Js::Count(out));
            }
            if name.is_empty() || more.starts_with('(') {
                return None;
            }
            out += &member(name);
            rest = more;
        } else {
            let (inner, more) = rest.strip_prefix('[')?.split_once(']')?;
            match literal(inner)? {
                serde_json::Value::String(name) => out += &member(&name),
                serde_json::Value::Number(index) => out += &format!("[{}]", index.as_u64()?),
                _ => return None,
            }
            rest = more;
        }
    }
    Some(Js::Json(out))
}

/// A member as a path names it.
pub(super) fn member(name: &str) -> String {
    let is_plain = name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
        && name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    if is_plain { format!(".{name}") } else { format!("[{}]", quoted(name)) }
}

/// `pm.environment.get("x")` and the like: the variable's name.
fn getter(text: &str) -> Option<String> {
    const GETTERS: [&str; 7] = [
        "pm.environment.get(",
        "pm.collectionVariables.get(",
        "pm.globals.get(",
        "pm.variables.get(",
        "pm.iterationData.get(",
        "postman.getEnvironmentVariable(",
        "postman.getGlobalVariable(",
    ];
    let inner = GETTERS.iter().find_map(|begin| call(text, begin).filter(|(_, rest)| rest.is_empty()))?.0;
    literal(inner)?.as_str().map(str::to_owned)
}

/// Times and random numbers.
fn known(text: &str) -> Option<String> {
    let plain: String = text.chars().filter(|c| !c.is_whitespace()).collect();
    match plain.as_str() {
        "Date.now()" | "newDate().getTime()" | "newDate().valueOf()" | "+newDate()" => Some("now()".into()),
        "newDate().toISOString()" => Some("date(now(), '%Y-%m-%dT%H:%M:%S%.3fZ')".into()),
        "Math.floor(Date.now()/1000)"
        | "Math.round(Date.now()/1000)"
        | "Math.floor(newDate().getTime()/1000)" => Some("floor(now() / 1000)".into()),
        plain => {
            if let Some((inner, "")) = call(plain, "_.random(") {
                let (low, high) = inner.split_once(',')?;
                let bounds = (low.parse::<i64>().ok()?, high.parse::<i64>().ok()?);
                return Some(format!("random({}, {})", bounds.0, bounds.1));
            }
            random(plain)
        }
    }
}

/// `Math.floor(Math.random() * 100) + 1`
fn random(text: &str) -> Option<String> {
    let plain: String = text.chars().filter(|c| !c.is_whitespace()).collect();
    let (inner, rest) = call(&plain, "Math.floor(")?;
    let count = inner.strip_prefix("Math.random()*")?.trim_matches(['(', ')']);
    let count: i64 = count.parse().ok().filter(|count| *count > 0)?;
    let from: i64 = match rest {
        "" => 0,
        rest => rest.strip_prefix('+')?.parse().ok()?,
    };
    Some(format!("random({from}, {})", from.checked_add(count)?.checked_sub(1)?))
}
