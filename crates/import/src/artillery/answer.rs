//! What is captured of an answer, and what must hold of it.

use tidemark_scenario::source::{Map, Scalar, Step, Value, verbatim};
use tidemark_wire::json::Path;

use super::Making;
use super::steps::State;
use crate::checks::Checks;
use crate::holes::Place;
use crate::javascript::{self, Which, of_page};
use crate::plan::{quoted, shown};
use crate::tree::{Content, Node};

/// What becomes of an answer.
#[derive(Default)]
pub(super) struct Answer {
    pub(super) extract: Map,
    /// What is set behind the request.
    pub(super) set: Map,
    /// Code that takes values out of the page, and where each has to find one its variable.
    pub(super) of_page: Vec<(Step, Option<String>)>,
    pub(super) check: Checks,
}

impl Making<'_> {
    pub(super) fn answer(&mut self, node: &Node, element: &str, answer: &mut Answer, state: &mut State) {
        for capture in node.get("capture").map(Node::one_or_many).unwrap_or_default() {
            self.capture(capture, element, answer, state);
        }
        for one in node.get("match").map(Node::one_or_many).unwrap_or_default() {
            self.matched(one, element, answer, state);
        }
        let Some(expect) = node.get("expect") else { return };
        if !self.expects {
            self.draft.tell(expect.line, element, "checked nothing: the plugin expect is not on", false);
            return expect.done();
        }
        for one in expect.one_or_many() {
            for (name, value) in one.entries() {
                if self.expected(name, value, answer, state).is_none() {
                    let would = format!("expected {}: {}", shown(name), shown(value.as_str().unwrap_or("…")));
                    self.draft.tell(value.line, element, would, false);
                    value.done();
                }
            }
        }
    }

    fn capture(&mut self, node: &Node, element: &str, answer: &mut Answer, state: &mut State) {
        let is_strict = node.text("strict") != Some("false");
        let Some(name) = node.text("as").map(str::to_owned) else {
            self.draft.tell(node.line, element, "captured a value, of which it does not say as what", true);
            return node.done();
        };
        let ours = self.draft.variable(&name);
        let is_all = node.text("multiple") == Some("false") || self.lists.contains(&name);
        node.ignore(&["multiple"]);
        let mut source = Map::new();
        if let Some(path) = node.text("json") {
            let path = self.text(node, path, state).write(Place::Raw);
            let Some(path) = json_path(&path) else {
                return self.untaken(node, element, &name, &path);
            };
            match (is_all, is_definite(&path)) {
                (true, is_definite) => {
                    source.insert("all", if is_definite { format!("{path}[*]") } else { path })
                }
                (false, true) => source.insert("json", path),
                (false, false) => {
                    // of several Artillery draws one
                    let all = self.draft.variable(&format!("all {name}"));
                    source.insert("all", path);
                    answer.set.insert(ours.as_str(), format!("${{{all}[random(0, len({all}) - 1)]}}"));
                    if is_strict {
                        source.insert("when missing", "fail");
                    }
                    answer.extract.insert(all, source);
                    state.set.push(ours);
                    return self.transformed(node, element);
                }
            }
        } else if let Some(header) = node.text("header") {
            source.insert("header", verbatim(header));
        } else if let Some(pattern) = node.text("regexp") {
            let flags: String =
                node.text("flags").unwrap_or_default().chars().filter(|c| "ims".contains(*c)).collect();
            let pattern = if flags.is_empty() { pattern.to_owned() } else { format!("(?{flags}){pattern}") };
            let group = node.number("group").unwrap_or(0.0) as usize;
            let known = regex::Regex::new(&pattern).ok().filter(|regex| group < regex.captures_len());
            if known.is_none() {
                return self.untaken(node, element, &name, &pattern);
            }
            source.insert("regex", verbatim(&pattern));
            source.insert("group", group);
        } else if let Some(selector) = node.text("selector") {
            let found = javascript::selector(selector, &["contains", "checked", "disabled", "enabled"]);
            let (Some(found), Some(which), Some(attribute), false) =
                (found, which(node), node.text("attr"), selector.contains("{{"))
            else {
                return self.untaken(node, element, &name, selector);
            };
            let part = format!("attr({})", quoted(attribute));
            let code = of_page(&ours, &found, which, &part, None);
            answer.of_page.push((code, is_strict.then(|| ours.clone())));
            state.set.push(ours);
            return self.transformed(node, element);
        } else {
            let kind = ["xpath", "cookie"].into_iter().find(|kind| node.get(kind).is_some());
            return self.untaken(node, element, &name, kind.unwrap_or("what is not known"));
        }
        if is_strict {
            source.insert("when missing", "fail");
        }
        let short = source.get("json").filter(|_| source.len() == 1).cloned();
        state.set.push(ours.clone());
        answer.extract.insert(ours, short.unwrap_or(Value::Map(source)));
        self.transformed(node, element);
    }

    fn transformed(&mut self, node: &Node, element: &str) {
        if let Some(function) = node.get("transform") {
            self.function(function, "transform", element);
        }
    }

    fn untaken(&mut self, node: &Node, element: &str, name: &str, how: &str) {
        let would = format!("captured {:?} by {:?}", shown(name), shown(how));
        self.draft.tell(node.line, element, would, true);
        node.done();
    }

    /// `match`: what ends the session where it does not hold.
    fn matched(&mut self, node: &Node, element: &str, answer: &mut Answer, state: &mut State) {
        let value = node.get("value");
        let path = node.text("json").map(str::to_owned);
        node.ignore(&["strict"]);
        let done =
            match (path.as_deref().and_then(json_path), node.text("regexp"), node.text("header"), value) {
                (Some(path), None, None, Some(value))
                    if is_definite(&path) && answer.check.json.get(&path).is_none() =>
                {
                    let value = self.value_of(value, state);
                    value.map(|value| answer.check.json.insert(path, value))
                }
                (None, Some(pattern), None, None)
                    if answer.check.body.is_none() && regex::Regex::new(pattern).is_ok() =>
                {
                    answer.check.body = Some(Map::from([("matches", verbatim(pattern))]).into());
                    Some(())
                }
                (None, None, Some(header), Some(value)) => {
                    let value = self.scalar_text(value, state).write(Place::Raw);
                    answer.check.header.insert(verbatim(header), value);
                    Some(())
                }
                _ => None,
            };
        if done.is_none() {
            self.draft.tell(node.line, element, "ended the session where the answer does not match", false);
            node.done();
        }
    }

    /// A value that is compared with one of JSON.
    fn value_of(&mut self, node: &Node, state: &mut State) -> Option<Value> {
        match &node.content {
            Content::Scalar(scalar) if scalar.is_bare() => Some(scalar.clone().into()),
            Content::Scalar(_) => Some(self.scalar_text(node, state).write(Place::Raw).into()),
            _ => None,
        }
    }

    /// A check of the plugin `expect`; none where it has no counterpart.
    fn expected(&mut self, name: &str, node: &Node, answer: &mut Answer, state: &mut State) -> Option<()> {
        let one = |key: &str, value: Value| Value::Map(Map::from([(key, value)]));
        let text = |making: &mut Self, node: &Node, state: &mut State| {
            Some(making.text(node, node.as_str()?, state))
        };
        match name {
            "statusCode" if answer.check.status.is_none() => {
                let all: Vec<Value> = node.one_or_many().iter().map(status).collect::<Option<_>>()?;
                answer.check.status = Some(match <[Value; 1]>::try_from(all) {
                    Ok([one]) => one,
                    Err(all) => all.into(),
                });
            }
            "notStatusCode" => {
                let ours = self.draft.variable("answer status");
                let all: Vec<String> = node
                    .one_or_many()
                    .iter()
                    .map(|one| Some(status(one)?.as_str()?.to_owned()))
                    .collect::<Option<_>>()?;
                answer.extract.insert(ours.as_str(), "status");
                let all: Vec<String> = all.iter().map(|one| format!("{ours} != {one}")).collect();
                answer.check.that.push(all.join(" and "));
            }
            "contentType" => {
                let kind = text(self, node, state)?.write(Place::Raw);
                answer.check.header.insert("Content-Type", one("contains", kind.into()));
            }
            "hasHeader" => {
                let header = node.as_str()?;
                if answer.check.header.get(header).is_none() {
                    answer.check.header.insert(verbatim(header), one("exists", true.into()));
                }
            }
            "headerEquals" => {
                let [header, value] = node.items() else { return None };
                let value = text(self, value, state)?.write(Place::Raw);
                answer.check.header.insert(verbatim(header.as_str()?), value);
            }
            "hasProperty" | "notHasProperty" => {
                let path = json_path(&format!("$.{}", node.as_str()?))?;
                let test = if name == "hasProperty" {
                    one("exists", true.into())
                } else {
                    one("absent", true.into())
                };
                if answer.check.json.get(&path).is_some() {
                    return None;
                }
                answer.check.json.insert(path, test);
            }
            "equals" => {
                let all: Vec<String> = node
                    .items()
                    .iter()
                    .map(|item| Some(text(self, item, state)?.expression()))
                    .collect::<Option<_>>()?;
                let [first, rest @ ..] = all.as_slice() else { return None };
                let all: Vec<String> =
                    rest.iter().map(|other| format!("text({first}) == text({other})")).collect();
                answer.check.that.push(all.join(" and "));
                if rest.is_empty() {
                    answer.check.that.pop();
                }
            }
            "matchesRegexp" if answer.check.body.is_none() => {
                let pattern = node.as_str()?;
                regex::Regex::new(pattern).ok()?;
                answer.check.body = Some(one("matches", verbatim(pattern).into()));
            }
            _ => return None,
        }
        Some(())
    }
}

/// The element of a page that `index` means.
fn which(node: &Node) -> Option<Which> {
    match node.text("index") {
        None => Some(Which::At(0)),
        Some("random") => Some(Which::Random),
        Some("last") => Some(Which::Last),
        Some(number) => number.trim().parse().ok().map(Which::At),
    }
}

fn status(node: &Node) -> Option<Value> {
    let number: u16 = node.as_str()?.trim().parse().ok()?;
    (100..600).contains(&number).then(|| Scalar::unquoted(&number.to_string()).into())
}

/// A path as the language has it.
fn json_path(path: &str) -> Option<String> {
    let path = path.trim();
    let path = match path.strip_prefix('$') {
        Some(_) => path.to_owned(),
        None => format!("$.{}", path.trim_start_matches('.')),
    };
    if Path::parse(&path).is_ok() {
        return Some(path);
    }
    // `$.a-b` stands in quotes here
    let parts = path.strip_prefix("$.")?.split('.').map(|part| {
        let (name, index) = part.split_at(part.find('[').unwrap_or(part.len()));
        let is_plain = name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '*');
        if is_plain { format!(".{name}{index}") } else { format!("[{}]{index}", quoted(name)) }
    });
    let path = format!("${}", parts.collect::<String>());
    Path::parse(&path).is_ok().then_some(path)
}

/// Whether a path names one value at most.
pub(super) fn is_definite(path: &str) -> bool {
    !["*", "..", "?", ",", ":"].iter().any(|mark| path.contains(mark))
}
