//! Steps over a WebSocket, and whether there is one where they stand.

use tidemark_wire::websocket::{Kind, is_close_code};

use super::Session;
use super::define::one_or_many;
use crate::plan::{Ask, HttpRequest, Op, RequestPlan, Source, WebSocketStep};
use crate::sink::Sink;
use crate::template::{Encoding, Template};
use crate::yaml::{Node, Place};

/// Headers of the handshake, which the driver writes.
const HANDSHAKE_HEADERS: [&str; 6] = [
    "upgrade",
    "sec-websocket-key",
    "sec-websocket-version",
    "sec-websocket-accept",
    "sec-websocket-extensions",
    "sec-websocket-protocol",
];

impl Session<'_, '_> {
    /// A step whose verb is one of `ws …`.
    pub(super) fn websocket(&mut self, schema: &str, step: &Node, verb: &Node, value: &Node) {
        let words = || match schema {
            "wsConnect" => format!("ws connect {}", value.text().unwrap_or_default()),
            _ => verb.text().unwrap_or_default().to_owned(),
        };
        let Some(label) = self.label_or(step, words) else { return };
        let (mut handshake, mut body, mut expected, mut ledger) = (None, None, None, None);
        let action = match schema {
            "wsConnect" => {
                let protocols = self.protocols(step);
                handshake = Some(self.handshake(step, value, &protocols));
                WebSocketStep::Connect { protocols }
            }
            "wsSend" => {
                let ((kind, message), entered) = self.entered(step, |session| session.message(value));
                (body, ledger) = (Some(message), entered);
                expected = step.get("expect");
                if let Some(node) = step.get("ledger").filter(|_| expected.is_none()) {
                    let message = "without expect nothing acknowledges this message; say what answers it";
                    self.reader.sink.error(node, message);
                }
                WebSocketStep::Send { kind, expects: expected.is_some() }
            }
            "wsExpect" => {
                expected = Some(value);
                WebSocketStep::Expect
            }
            "wsPing" => {
                body = Some(self.template(value, Encoding::Raw));
                WebSocketStep::Ping
            }
            _ => {
                body = step.get("reason").map(|reason| self.template(reason, Encoding::Raw));
                WebSocketStep::Close { code: self.close_code(value) }
            }
        };
        let is_connect = matches!(action, WebSocketStep::Connect { .. });
        let extractions = self.extractions(step.get("extract"));
        if let Some(extract) = step.get("extract").filter(|_| !is_connect) {
            let no_message =
                |source: &Source| matches!(source, Source::Header(_) | Source::Cookie(_) | Source::Status);
            if expected.is_none() {
                self.reader.sink.error(extract, "there is no message to extract from without expect");
            } else if extractions.iter().any(|extraction| no_message(&extraction.source)) {
                self.reader.sink.error(extract, "a message has neither status nor headers nor cookies");
            }
        }
        let plan = RequestPlan {
            label,
            ask: handshake.map_or(Ask::Message(body), Ask::Http),
            ledger,
            timeout: self.timeout(step),
            extractions,
            checks: self.checks(if is_connect { step.get("check") } else { expected }),
        };
        if let Some(request) = self.add_request(step, plan) {
            self.connection_uses.push((self.ops.len(), step.place));
            self.ops.push(Op::WebSocket { request, step: action });
        }
    }

    fn protocols(&self, step: &Node) -> Vec<String> {
        let mut protocols = Vec::new();
        for node in step.get("subprotocol").map(one_or_many).unwrap_or_default() {
            let Some(protocol) = self.reader.text(node) else { continue };
            let is_token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
            if protocol.is_empty() || !protocol.bytes().all(is_token) {
                self.reader.sink.error(node, format!("\"{protocol}\" cannot be a subprotocol's name"));
            }
            protocols.push(protocol);
        }
        protocols
    }

    fn handshake(&mut self, step: &Node, path: &Node, protocols: &[String]) -> HttpRequest {
        for (name, _) in step.get("headers").map(Node::entries).unwrap_or_default() {
            let Some(text) = name.text() else { continue };
            if HANDSHAKE_HEADERS.iter().any(|own| text.eq_ignore_ascii_case(own)) {
                let advice =
                    if text.to_ascii_lowercase().ends_with("protocol") { "; use subprotocol" } else { "" };
                let message =
                    format!("the header {text} belongs to the handshake, which is written for you{advice}");
                self.reader.sink.error(name, message);
            }
        }
        let mut request = self.http(step, "GET", path, None);
        if !protocols.is_empty() {
            let offered = Template::literal(protocols.join(", "));
            request.headers.push(("Sec-WebSocket-Protocol".to_owned(), offered));
        }
        request
    }

    fn message(&mut self, value: &Node) -> (Kind, Template) {
        if value.text().is_some() {
            return (Kind::Text, self.template(value, Encoding::Raw));
        }
        if let Some(tree) = value.get("json") {
            let mut message = Template::default();
            self.json(tree, &mut message);
            return (Kind::Text, message);
        }
        let (kind, node) = match value.get("binary") {
            Some(node) => (Kind::Binary, Some(node)),
            None => (Kind::Text, value.get("text")),
        };
        (kind, node.map(|node| self.template(node, Encoding::Raw)).unwrap_or_default())
    }

    fn close_code(&self, node: &Node) -> u16 {
        let Some(code) = self.reader.whole(node, 1000) else { return 1000 };
        match u16::try_from(code).ok().filter(|code| is_close_code(*code)) {
            Some(code) => code,
            None => {
                let message =
                    format!("{code} is no close code that can be sent; use 1000, or one of 3000 to 4999");
                self.reader.sink.error(node, message);
                1000
            }
        }
    }
}

/// There may be no WebSocket.
const CLOSED: u8 = 1;
/// There may be one.
const OPEN: u8 = 2;

/// Reports steps that cannot be right on any way that leads to them: a message without a WebSocket, a request or
/// another connect while the connection is one.
pub(super) fn check_paths(ops: &[Op], uses: &[(usize, Place)], sink: &Sink<'_>) {
    if !ops.iter().any(|op| matches!(op, Op::WebSocket { .. })) {
        return;
    }
    let states = states_before(ops);
    for (index, place) in uses {
        let message = match (&ops[*index], states[*index]) {
            (Op::WebSocket { step: WebSocketStep::Connect { .. }, .. }, OPEN) => {
                "there is a WebSocket already; a session has one at a time, so close it first with ws close"
            }
            (Op::Request(_), OPEN) => {
                "the session's connection is a WebSocket here; requests can follow after a ws close"
            }
            (Op::WebSocket { step, .. }, CLOSED) if !matches!(step, WebSocketStep::Connect { .. }) => {
                "there is no WebSocket here on any way; begin one with ws connect before"
            }
            _ => continue,
        };
        sink.error_at(*place, message.to_owned());
    }
}

/// What there may be before each operation; 0 where none comes to.
fn states_before(ops: &[Op]) -> Vec<u8> {
    let mut states = vec![0; ops.len()];
    let mut open = vec![(0usize, CLOSED)];
    while let Some((index, state)) = open.pop() {
        let Some(before) = states.get_mut(index) else { continue };
        // Each operation is visited at most once for each state.
        if *before | state == *before {
            continue;
        }
        *before |= state;
        match &ops[index] {
            Op::Jump(to) => open.push((*to as usize, state)),
            Op::JumpUnless { to, .. } => open.extend([(*to as usize, state), (index + 1, state)]),
            Op::Choose { ways, .. } => open.extend(ways.iter().map(|(_, to)| (*to as usize, state))),
            Op::WebSocket { step: WebSocketStep::Connect { .. }, .. } => open.push((index + 1, OPEN)),
            Op::WebSocket { step: WebSocketStep::Close { .. }, .. } => open.push((index + 1, CLOSED)),
            Op::End => {}
            Op::Request(_) | Op::WebSocket { .. } | Op::Set { .. } | Op::Take { .. } | Op::Think(_) => {
                open.push((index + 1, state))
            }
        }
    }
    states
}
