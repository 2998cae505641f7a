//! Messages over a WebSocket.

use tidemark_scenario::source::{Map, Step, Value, verbatim};
use tidemark_wire::http1::is_token;

use super::Making;
use super::answer::Answer;
use super::steps::State;
use crate::plan::{nested, shown};
use crate::tree::{Content, Node};

impl Making<'_> {
    /// The steps of a scenario whose WebSocket is open from the beginning.
    pub(super) fn messages(&mut self, scenario: &Node, flow: &[Node], state: &mut State) -> Vec<Step> {
        let (first, rest) = match flow.first() {
            Some(first) if first.get("connect").is_some() => (first.get("connect"), &flow[1..]),
            _ => (None, flow),
        };
        let Some(connect) = self.connect(scenario, first, state) else { return Vec::new() };
        // what goes elsewhere has names of its own
        let path = connect.get("ws connect").and_then(Value::as_str).unwrap_or_default();
        let host = path.split_once("://").and_then(|(_, rest)| rest.split('/').next()).map(str::to_owned);
        let mut steps = vec![Step::Other(connect)];
        steps.extend(self.sent(rest, state));
        steps.push(Step::Other(Map::from([("ws close", 1000u64)])));
        let Some(host) = host else { return steps };
        let mut all = nested(steps);
        name_messages(&mut all, &host);
        let Value::List(all) = all else { return Vec::new() };
        all.into_iter()
            .filter_map(|step| if let Value::Map(step) = step { Some(Step::Other(step)) } else { None })
            .collect()
    }

    fn connect(&mut self, scenario: &Node, node: Option<&Node>, state: &mut State) -> Option<Map> {
        let place = node.unwrap_or(scenario);
        let default = format!("{}{}", self.target, self.base);
        let url = match node.map(|node| &node.content) {
            None => default,
            Some(Content::Scalar(scalar)) => scalar.as_str().to_owned(),
            Some(_) => node.and_then(|node| node.text("target")).map_or(default, str::to_owned),
        };
        if let Some(function) = node.and_then(|node| node.get("function")) {
            self.function(function, "connect", "connect");
        }
        if !self.draft.has_room(place.line, "connect", url.len()) {
            return None;
        }
        let path = self.path(place, &url, "connect", state)?;
        // what is of a WebSocket is of HTTP, too
        let path = path
            .strip_prefix("ws")
            .filter(|rest| rest.starts_with("://") || rest.starts_with("s://"))
            .map_or(path.clone(), |rest| format!("http{rest}"));
        let mut step = Map::from([("ws connect", if path.is_empty() { "/".to_owned() } else { path })]);
        let common = self.of("ws");
        let own = node.filter(|node| matches!(node.content, Content::Map(_)));
        let mut headers = Map::new();
        let of = |key: &str| own.and_then(|own| own.get(key)).or(common.and_then(|common| common.get(key)));
        for (name, value) in of("headers").map(Node::entries).unwrap_or_default() {
            let text = self.scalar_text(value, state);
            self.draft.header(value.line, &mut headers, name, &text);
        }
        // those of the configuration are of a connection without its own
        common.iter().for_each(|common| common.ignore(&["headers"]));
        if !headers.is_empty() {
            step.insert("headers", headers);
        }
        let mut protocols: Vec<Value> = Vec::new();
        for one in of("subprotocols").map(Node::one_or_many).unwrap_or_default() {
            let name = one.as_str().unwrap_or_default();
            if is_token(name.as_bytes()) {
                protocols.push(verbatim(name).into());
            } else {
                self.draft.tell(
                    one.line,
                    "connect",
                    format!("asked for the subprotocol {:?}", shown(name)),
                    true,
                );
            }
        }
        common.iter().for_each(|common| common.ignore(&["subprotocols"]));
        match <[Value; 1]>::try_from(protocols) {
            Ok([one]) => step.insert("subprotocol", one),
            Err(all) if !all.is_empty() => step.insert("subprotocol", all),
            Err(_) => {}
        }
        Some(step)
    }

    fn sent(&mut self, flow: &[Node], state: &mut State) -> Vec<Step> {
        let mut steps = Vec::new();
        for node in flow {
            if let Some(made) = self.common(node, state, |making, flow, state| making.sent(flow, state)) {
                steps.extend(made);
                continue;
            }
            let (kind, message) = match (node.get("send"), node.get("wait")) {
                (Some(send), _) => ("ws send", send),
                (None, Some(wait)) => ("ws expect", wait),
                (None, None) => {
                    steps.extend(self.no_step(node));
                    continue;
                }
            };
            steps.extend(self.message(kind, message, state));
        }
        steps
    }

    fn message(&mut self, kind: &str, node: &Node, state: &mut State) -> Vec<Step> {
        if !self.draft.has_room(node.line, kind, 0) {
            node.done();
            return Vec::new();
        }
        let is_asked = matches!(&node.content, Content::Map(entries) if entries.iter().any(|(key, _)| key == "capture" || key == "match"));
        let mut answer = Answer::default();
        let payload = if is_asked {
            self.answer(node, kind, &mut answer, state);
            if !answer.of_page.is_empty() {
                self.draft.tell(node.line, kind, "captured what a selector finds in its message", true);
            }
            node.get("payload")
        } else {
            Some(node)
        };
        let check = std::mem::take(&mut answer.check).into_map();
        let expected = if check.is_empty() { Value::from("any") } else { check.into() };
        let mut step = Map::new();
        match (kind, payload) {
            ("ws send", Some(payload)) => {
                let value = match &payload.content {
                    Content::Scalar(scalar) => {
                        let text = self.text(payload, scalar.as_str(), state);
                        let text = self.draft.value("message", &text);
                        if text.is_empty() { Map::from([("text", text)]).into() } else { Value::from(text) }
                    }
                    _ => Map::from([("json", self.tree(payload, "value", state))]).into(),
                };
                step.insert("ws send", value);
                if is_asked {
                    step.insert("expect", expected);
                }
            }
            ("ws expect", _) if is_asked => {
                step.insert("ws expect", expected);
            }
            _ => {
                self.draft.tell(
                    node.line,
                    kind,
                    format!("sent {:?}", shown(node.as_str().unwrap_or("…"))),
                    true,
                );
                node.done();
                return Vec::new();
            }
        }
        if !answer.extract.is_empty() {
            step.insert("extract", answer.extract);
        }
        let mut steps = vec![Step::Other(step)];
        if !answer.set.is_empty() {
            steps.push(Step::Other(Map::from([("set", answer.set)])));
        }
        steps
    }
}

/// Names what is sent over a WebSocket, which would be counted together with that of the system.
fn name_messages(value: &mut Value, host: &str) {
    match value {
        Value::Scalar(_) => {}
        Value::List(items) => items.iter_mut().for_each(|item| name_messages(item, host)),
        Value::Map(map) => {
            if let Some(Value::List(mut steps)) = map.remove("steps") {
                steps.iter_mut().for_each(|step| name_messages(step, host));
                map.insert("steps", Value::List(steps));
            }
            let kind = map.entries().first().map(|entry| entry.key.clone()).unwrap_or_default();
            if ["ws send", "ws expect", "ws close"].contains(&kind.as_str()) {
                map.insert("label", format!("{kind} {host}"));
            }
        }
    }
}
