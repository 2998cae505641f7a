//! What the importers of collections and scripts make on the way: names, settings, and what is told.

use std::collections::HashMap;

use serde_json::Value as Json;
use tidemark_scenario::source::{Map, Request, Scalar, Scenario, Value, verbatim};
use tidemark_scenario::{Secrets, secrets};
use tidemark_wire::http1::is_token;

use crate::error::ImportError;
use crate::har::hidden::{has_secret, is_hidden, is_secret_name};
use crate::holes::{Place, Text};
use crate::left_out::LeftOut;
use crate::names::{Settings, free, name_of};
use crate::plan::{Plan, shown};
use crate::tree::Node;
use crate::{Imported, UNSET, add_header};

/// Most requests that become steps.
const REQUESTS_MAX: usize = 2_000;
/// Most text of all requests, bytes.
const BYTES_MAX: usize = 1 << 20;
/// Most parts that are told; beyond, the last one says that there are more.
const TOLD_MAX: usize = 10_000;
/// Most parts that an error tells.
const SHOWN_PARTS_MAX: usize = 10;
/// Longest name of a request, characters.
const LABEL_MAX: usize = 100;
/// Deepest JSON that is written as YAML.
const DEPTH_MAX: usize = 16;
/// Headers that the driver writes itself, and those whose loss changes what is asked.
const OWN_HEADERS: [&str; 5] = ["content-length", "connection", "transfer-encoding", "upgrade", "expect"];
/// Where a secret comes from.
const SECRET: &str = "a secret, not copied: set this variable, or give --set";

/// What is made on the way.
pub(crate) struct Draft<'p> {
    pub(crate) file: &'p Plan<'p>,
    pub(crate) left_out: Vec<LeftOut>,
    pub(crate) settings: Settings,
    /// Secrets of the plan, by the settings that stand for them.
    given: Vec<(String, String)>,
    /// What the plan's variables are called here.
    names: HashMap<String, String>,
    /// Names of requests, and what each is.
    labels: HashMap<String, String>,
    requests: usize,
    bytes: usize,
}

impl<'p> Draft<'p> {
    pub(crate) fn new(file: &'p Plan<'p>) -> Draft<'p> {
        Draft {
            file,
            left_out: Vec::new(),
            settings: Settings::default(),
            given: Vec::new(),
            names: HashMap::new(),
            labels: HashMap::new(),
            requests: 0,
            bytes: 0,
        }
    }

    /// Tells a part that is not here; once, however often it is met.
    pub(crate) fn tell(&mut self, line: usize, element: &str, would: impl Into<String>, is_request: bool) {
        let masked = |text: &str| Secrets::default().masked(text);
        let (element, would) = (masked(element), masked(&would.into()));
        let mut one = LeftOut { line, element, would, is_request, setting: None };
        let is_same = |known: &LeftOut| known.line == one.line && known.would == one.would;
        if self.left_out.iter().rev().any(is_same) {
            return;
        }
        match self.left_out.len() {
            TOLD_MAX.. => return,
            length if length + 1 == TOLD_MAX => {
                one.would = format!("done more that is not here: only {TOLD_MAX} parts are told");
                one.is_request = true;
            }
            _ => {}
        }
        self.left_out.push(one);
    }

    /// Tells a value that is missing, which a setting gives.
    pub(crate) fn tell_missing(
        &mut self,
        line: usize,
        element: &str,
        would: impl Into<String>,
        setting: &str,
    ) {
        let count = self.left_out.len();
        self.tell(line, element, would, true);
        if let Some(told) = self.left_out.get_mut(count).filter(|_| count + 1 < TOLD_MAX) {
            told.setting = Some(setting.to_owned());
        }
    }

    /// Tells what of a file nobody asked for; `sends` says whether a request may be another one without it.
    pub(crate) fn tell_unknown(&mut self, root: &Node, sends: impl Fn(&[&str]) -> bool) {
        root.unknown(&mut Vec::new(), &mut |keys, node| {
            let value = node.as_str().map_or(String::new(), |value| format!(": {}", shown(value)));
            let keys: Vec<&str> = keys.iter().copied().filter(|key| *key != "[]").collect();
            let element = format!("{}{value}", shown(&keys.join(".")));
            self.tell(node.line, &element, "done something that is not known here", sends(&keys));
        });
    }

    /// Whether one more request of so many bytes has room.
    pub(crate) fn has_room(&mut self, line: usize, element: &str, bytes: usize) -> bool {
        let (requests, all) = (self.requests + 1, self.bytes + bytes);
        let has_room = requests <= REQUESTS_MAX && all <= BYTES_MAX;
        if has_room {
            (self.requests, self.bytes) = (requests, all);
        } else {
            let would =
                format!("been sent: it is beyond {REQUESTS_MAX} requests or {BYTES_MAX} bytes of all");
            self.tell(line, element, would, true);
        }
        has_room
    }

    pub(crate) fn has_requests(&self) -> bool {
        self.requests > 0
    }

    /// What a variable of the plan is called here.
    pub(crate) fn variable(&mut self, theirs: &str) -> String {
        if let Some(name) = self.names.get(theirs) {
            return name.clone();
        }
        let wanted = name_of(theirs);
        let is_taken = |name: &str| {
            self.names.values().any(|known| known == name) || self.settings.map.get(name).is_some()
        };
        let name = free(&wanted, &format!("{wanted}_2"), is_taken);
        self.names.insert(theirs.to_owned(), name.clone());
        name
    }

    /// The same, if it is known.
    pub(crate) fn known_variable(&self, theirs: &str) -> Option<&str> {
        self.names.get(theirs).map(String::as_str)
    }

    /// A setting for what has a value in the plan, or none: then a person has to give one.
    pub(crate) fn setting(&mut self, theirs: &str, value: Option<&str>, comment: &str) -> String {
        match value {
            Some(value) if is_hidden(theirs, value) => return self.secret(theirs, value),
            None if is_secret_name(theirs) => {
                return self.settings.secret(
                    format!("secret {theirs}"),
                    theirs,
                    &format!("{theirs}_2"),
                    SECRET,
                );
            }
            _ => {}
        }
        let ours = self.variable(theirs);
        if self.settings.of(theirs).is_none() && self.settings.map.get(&ours).is_none() {
            let value = value.unwrap_or(UNSET);
            let value = if is_typed(value) { Scalar::unquoted(value) } else { verbatim(value).into() };
            self.settings.map.insert_with_comment(comment, ours.as_str(), value);
        }
        ours
    }

    /// A setting for a secret of the plan, which is not copied: one for each value.
    pub(crate) fn secret(&mut self, name: &str, value: &str) -> String {
        let begin: String = name_of(name).chars().take(30).collect();
        let other = format!("{begin}_secret");
        let is_taken = |name: &str| self.names.values().any(|known| known == name);
        let wanted = if secrets::is_secret_name(&begin) { begin } else { other.clone() };
        let wanted = free(&wanted, &other, is_taken);
        let setting =
            self.settings.secret(format!("secret {} {value}", name.to_lowercase()), &wanted, &other, SECRET);
        if !self.given.iter().any(|(known, _)| *known == setting) {
            self.given.push((setting.clone(), value.to_owned()));
        }
        setting
    }

    /// A value as the scenario has it: a setting where it is secret.
    pub(crate) fn value(&mut self, name: &str, text: &Text) -> String {
        match text.literal() {
            Some(literal)
                if !literal.is_empty() && (is_hidden(name, literal) || has_secret_in(name, literal)) =>
            {
                let literal = literal.to_owned();
                format!("${{{}}}", self.secret(name, &literal))
            }
            _ => text.write(Place::Raw),
        }
    }

    /// A user with a password; none, and told, where no server could tell one from the other.
    pub(crate) fn basic(&mut self, line: usize, element: &str, user: &Text, password: &Text) -> Option<Map> {
        if user.marked.contains(':') {
            self.tell(line, element, "sent a user whose name has a colon in it: it is sent without", true);
            return None;
        }
        let user = user.write(Place::Raw);
        let password = self.value("password", password);
        Some(Map::from([("basic", Map::from([("user", user), ("password", password)]))]))
    }

    /// A header of a request; those that the driver writes itself are told.
    pub(crate) fn header(&mut self, line: usize, headers: &mut Map, name: &str, value: &Text) {
        let element = format!("header {}", shown(name));
        let is = |other: &str| name.eq_ignore_ascii_case(other);
        if !is_token(name.as_bytes()) {
            self.tell(line, &element, "sent a header that no server would read: its name is none", false);
        } else if is("host") || OWN_HEADERS.iter().any(|own| is(own)) {
            // another host is another site
            self.tell(line, &element, "been sent; the driver writes this one itself", is("host"));
        } else {
            let value = self.value(name, value);
            add_header(headers, &verbatim(name), value);
        }
    }

    /// Names a request; `what` is the same for requests that are counted together.
    pub(crate) fn label(&mut self, made: &mut Request, wanted: &str, above: &str) {
        let path = made.path.as_str();
        let at = made.other.get("at").and_then(Value::as_str).map_or(String::new(), |at| format!("{at} "));
        let what = format!("{at}{} {}", made.method.as_str(), path.split('?').next().unwrap_or(path));
        let short = |text: &str| text.chars().take(LABEL_MAX).collect::<String>();
        let wanted = if wanted.trim().is_empty() { short(&plain(&what)) } else { short(wanted.trim()) };
        let mut label = wanted.clone();
        let mut number = 1;
        while self.labels.get(&label).is_some_and(|known| *known != what) {
            number += 1;
            label = match number {
                2 if !above.is_empty() => short(&format!("{above}: {wanted}")),
                number => format!("{wanted} ({number})"),
            };
        }
        self.labels.insert(label.clone(), what.clone());
        if label != what || path.contains('?') {
            made.label = Some(verbatim(&label).into());
        }
    }

    /// A body that is JSON with holes in it, as source; none where it has to stay a text.
    pub(crate) fn json_text(&mut self, text: &Text) -> Option<Value> {
        // a hole that stands by itself becomes a text for now, and is known by its mark
        let (mut out, mut lone) = (String::new(), Vec::new());
        let (mut is_within, mut is_escaped) = (false, false);
        for c in text.marked.chars() {
            if text.hole_of(c).is_some() && !is_within {
                lone.push(c);
                out.extend(['"', c, '"']);
                continue;
            }
            if c == '"' && !is_escaped {
                is_within = !is_within;
            }
            is_escaped = c == '\\' && !is_escaped;
            out.push(c);
        }
        let json: Json = serde_json::from_str(&out).ok()?;
        // a number with more digits than it can keep, or a key that is there twice, stays as it is
        let length = |text: &str| text.chars().filter(|c| !c.is_whitespace()).count();
        let is_same = length(&json.to_string()) == length(&out) && depth(&json) <= DEPTH_MAX;
        let is_tree = json.is_object() || json.is_array();
        (is_same && is_tree).then(|| self.json(&json, "value", text, &lone))
    }

    fn json(&mut self, value: &Json, name: &str, text: &Text, lone: &[char]) -> Value {
        match value {
            Json::Null => Value::default(),
            Json::Bool(value) => (*value).into(),
            Json::Number(number) => self.number(name, &Scalar::unquoted(&number.to_string())),
            Json::String(of) if text.is_text(of) && is_hidden(name, of) => {
                format!("${{{}}}", self.secret(name, of)).into()
            }
            Json::String(of) => {
                let mut chars = of.chars();
                match (chars.next(), chars.next()) {
                    // in quotes it is a text, whatever its value
                    (Some(c), None)
                        if !lone.contains(&c) && text.hole_of(c).is_some_and(|hole| !hole.is_text) =>
                    {
                        let expression = text.hole_of(c).map_or("", |hole| hole.expression.as_str());
                        format!("${{text({expression})}}").into()
                    }
                    _ => text.write_part(of, Place::Raw).into(),
                }
            }
            Json::Array(items) => {
                items.iter().map(|item| self.json(item, name, text, lone)).collect::<Vec<_>>().into()
            }
            Json::Object(members) => {
                let mut map = Map::new();
                for (key, member) in members {
                    map.insert(text.write_part(key, Place::Raw), self.json(member, key, text, lone));
                }
                map.into()
            }
        }
    }

    /// A number or a truth value; a setting where it is secret (`pin: 1234`).
    pub(crate) fn number(&mut self, name: &str, scalar: &Scalar) -> Value {
        if is_secret_name(name) && secrets::is_secret(name, scalar.as_str()) {
            return format!("${{{}}}", self.secret(name, scalar.as_str())).into();
        }
        scalar.clone().into()
    }

    /// What was made, or why nothing can be driven.
    pub(crate) fn finished(self, scenario: Option<Scenario>) -> Result<Imported, ImportError> {
        let Draft { mut left_out, settings, given, .. } = self;
        left_out.sort_by_key(|one| one.line);
        match scenario {
            Some(scenario) => {
                let scenario = Scenario { settings: settings.map, ..scenario };
                Ok(Imported { left_out, given, ..Imported::from(scenario) })
            }
            None => {
                let told = left_out.iter().take(SHOWN_PARTS_MAX).map(|one| format!("\n  {one}"));
                let told: String = told.collect();
                let name = self.file.name;
                Err(ImportError::new(format!("{name}: nothing of it can be driven here:{told}")))
            }
        }
    }
}

/// Whether the value of a header or parameter has a secret in it (`Basic …`, `Bearer …`).
fn has_secret_in(name: &str, value: &str) -> bool {
    name.eq_ignore_ascii_case("authorization") || name.eq_ignore_ascii_case("cookie") && has_secret(value)
}

/// Whether a text is a number or a truth value where nobody says that it is a text.
pub(crate) fn is_typed(text: &str) -> bool {
    let is_whole = text.parse::<i64>().is_ok_and(|number| number.to_string() == text);
    is_whole || ["true", "false"].contains(&text)
}

/// A name without holes.
fn plain(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, hole)) = rest.split_once("${") {
        out += before;
        let Some((hole, behind)) = hole.split_once('}') else { return out };
        let name: String = hole.chars().filter(|c| c.is_alphanumeric() || *c == '_').collect();
        out += &format!("[{}]", name.strip_prefix("path").filter(|name| !name.is_empty()).unwrap_or(&name));
        rest = behind;
    }
    out + rest
}

/// How many values stand in each other.
pub(crate) fn depth(value: &Json) -> usize {
    match value {
        Json::Array(items) => 1 + items.iter().map(depth).max().unwrap_or(0),
        Json::Object(members) => 1 + members.values().map(depth).max().unwrap_or(0),
        _ => 1,
    }
}

/// The time of a text or a number, in seconds where it has no unit: `5`, `"500ms"`, `"2 min"`.
pub(crate) fn seconds(text: &str) -> Option<f64> {
    const SECONDS_MAX: f64 = 366.0 * 86_400.0;
    let text = text.trim();
    let at = text.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(text.len());
    let number: f64 = text[..at].trim().parse().ok()?;
    let unit = match text[at..].trim() {
        "ms" | "msec" | "msecs" | "millisecond" | "milliseconds" => 0.001,
        "" | "s" | "sec" | "secs" | "second" | "seconds" => 1.0,
        "m" | "min" | "mins" | "minute" | "minutes" => 60.0,
        "h" | "hr" | "hrs" | "hour" | "hours" => 3_600.0,
        "d" | "day" | "days" => 86_400.0,
        _ => return None,
    };
    Some(number * unit).filter(|seconds| *seconds >= 0.0 && *seconds <= SECONDS_MAX)
}
