//! Beginning a WebSocket.

use tidemark_wire::http1::is_token;

use crate::compile::Session;
use crate::grammar::Keys;
use crate::grammar::Scalar::{Template, Text};
use crate::grammar::Shape::{Either, List, Map, Record as Of, Scalar};
use crate::plan::{HttpRequest, RequestKind, WebSocketStep};
use crate::reader::Reader;
use crate::steps::Step;
use crate::steps::answer::{AT, CHECK, EXTRACT, LABEL, TAGS, TIMEOUT};
use crate::steps::auth::AUTH;
use crate::steps::measure::MEASURE;
use crate::steps::request::QUERY;
use crate::template;
use crate::yaml::{Node, one_or_many};

/// Headers of the handshake, which the driver writes.
const HANDSHAKE_HEADERS: [&str; 6] = [
    "upgrade",
    "sec-websocket-key",
    "sec-websocket-version",
    "sec-websocket-accept",
    "sec-websocket-extensions",
    "sec-websocket-protocol",
];

step! {
    /// Turns the session's connection into a WebSocket, until it is closed or the session ends.
    KIND("wsConnect", "a ws connect step") [
        "ws connect": Scalar(Template) => "Path that is asked for, begun with a slash."
    ] {
        LABEL, TAGS, AT, QUERY,
        "headers": Map(Keys::Text("header names"), &Scalar(Template)) => "Headers of the handshake.",
        AUTH,
        "subprotocol": Either(&[Scalar(Text), List(&Scalar(Text), 1)]) =>
            "What is spoken over it; of several, the server chooses one.",
        TIMEOUT, EXTRACT, MEASURE,
        "check": Of(|| &CHECK) => "What must hold of the answer, whose status is 101.",
    }
    example: "
- ws connect: /chat
  subprotocol: chat.v2
"
}

fn compile(session: &mut Session<'_, '_>, step: &Step<'_>) {
    let words = || format!("ws connect {}", step.value.text().unwrap_or_default());
    let Some(label) = session.label_or(step, step.node.position, words) else { return };
    let protocols = protocols(step, session.reader);
    let request = handshake(session, step, &protocols);
    let connect = WebSocketStep::Connect { request, protocols };
    let plan = session.request(step, label, (RequestKind::WebSocket(connect), None), step.get("check"));
    session.push_request(step, plan);
}

fn protocols(step: &Step<'_>, reader: &Reader<'_>) -> Vec<String> {
    let mut protocols = Vec::new();
    for node in step.get("subprotocol").map(one_or_many).unwrap_or_default() {
        let Some(protocol) = reader.text(node) else { continue };
        if !is_token(protocol.as_bytes()) {
            reader.sink.error(node, format!("\"{protocol}\" cannot be a subprotocol's name"));
        }
        protocols.push(protocol);
    }
    protocols
}

fn handshake(session: &mut Session<'_, '_>, step: &Step<'_>, protocols: &[String]) -> HttpRequest {
    for (name, _) in step.get("headers").map(Node::entries).unwrap_or_default() {
        let Some(text) = name.text() else { continue };
        if HANDSHAKE_HEADERS.iter().any(|own| text.eq_ignore_ascii_case(own)) {
            let advice =
                if text.to_ascii_lowercase().ends_with("protocol") { "; use subprotocol" } else { "" };
            let message =
                format!("the header {text} belongs to the handshake, which is written for you{advice}");
            session.reader.sink.error(name, message);
        }
    }
    let mut request = session.http(step, "GET", None);
    if !protocols.is_empty() {
        let offered = template::Template::literal(protocols.join(", "));
        request.headers.push(("Sec-WebSocket-Protocol".to_owned(), offered));
    }
    request
}
