//! Remote calls, and what cannot stand beside them.

use tidemark_wire::rpc::NAME_BYTES_MAX;

use super::Step;
use super::answer::{AT, CHECK, EXTRACT, LABEL, TAGS, TIMEOUT};
use super::ledger::LEDGER;
use super::measure::MEASURE;
use crate::compile::{Session, Whole};
use crate::grammar::Scalar::Text;
use crate::grammar::Shape::{Record as Of, Scalar, Tree};
use crate::language::Parts;
use crate::plan::{CALL, Call, HttpVersion, RequestKind};
use crate::reader::Reader;
use crate::template::Template;
use crate::yaml::{Content, Node};

step! {
    /// Calls a method over a WebSocket that many sessions share, and waits for its answer (docs/rpc.md).
    KIND("call", "a call") ["CALL": Scalar(Text) => "The method: `service.method`."] {
        LABEL, TAGS, AT,
        "args": Tree =>
            "Its arguments as JSON: a list has all of them, anything else is the only one; none by default.",
        LEDGER, TIMEOUT, EXTRACT, MEASURE,
        "check": Of(|| &CHECK) =>
            "What must hold of the answer: its status is 200, or the code of the failure, whose words are the body.",
    }
    beside: check_beside,
    example: "
- CALL: trade.trade
  args: [{name: ibm, amount: 1}]
  check: {status: 200}
"
}

fn compile(session: &mut Session<'_, '_>, step: &Step<'_>) {
    let method = method(step.value, session.reader);
    let words = || format!("{CALL} {method}");
    let Some(label) = session.label_or(step, step.node.position, words) else { return };
    // The server is told the time in milliseconds, of which a call has at least one.
    let deadline_ms = u32::try_from(session.timeout(step).as_millis()).unwrap_or(u32::MAX).max(1);
    let sent = session.entered(step, |session| {
        RequestKind::Call(Call { method, deadline_ms, arguments: arguments(session, step.get("args")) })
    });
    let plan = session.request(step, label, sent, step.get("check"));
    session.check_headless(step, &plan, "the answer to a call has neither headers nor cookies");
    session.push_request(step, plan);
}

/// A method's name; reports one that cannot be.
fn method(node: &Node, reader: &Reader<'_>) -> String {
    let name = reader.text(node).unwrap_or_default();
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte);
    let parts = name.split_once('.').filter(|(service, method)| !service.is_empty() && !method.is_empty());
    if parts.is_none() || !name.bytes().all(is_name) || name.len() > NAME_BYTES_MAX {
        let message = format!("\"{name}\" cannot be a method's name; write service.method");
        reader.sink.error(node, message);
    }
    name
}

/// The arguments as an array.
fn arguments(session: &mut Session<'_, '_>, node: Option<&Node>) -> Template {
    let mut arguments = Template::default();
    match node {
        None => arguments.push_literal(b"[]"),
        Some(list) if matches!(list.content, Content::List(_)) => session.json(list, &mut arguments),
        Some(only) => {
            arguments.push_literal(b"[");
            session.json(only, &mut arguments);
            arguments.push_literal(b"]");
        }
    }
    arguments
}

fn check_beside(whole: &Whole<'_>) {
    let Whole { requests, is_alone, parts: Parts { defaults, limits, system }, .. } = *whole;
    let sink = whole.reader.sink;
    let Some(place_of_call) = requests.first(|ask| matches!(ask, RequestKind::Call(_))) else {
        if let Some(key) = system.rpc.key() {
            sink.warn(key.position, "no step is a CALL, so nothing is called there".to_owned());
        }
        return;
    };
    if let Some(position) = requests.first(|ask| !matches!(ask, RequestKind::Call(_))) {
        let message = format!(
            "calls and requests are not made over the same connections, and line {} makes a call; leave out one of \
             the two",
            place_of_call.line
        );
        sink.error_at(position, message);
    }
    if is_alone {
        defaults.headers.refuse(sink, "calls have no headers");
        let message = "calls are not pipelined; `streams` says how many a connection carries at once";
        limits.pipeline.refuse(sink, message);
        if limits.keep_alive.value == Some(false) {
            limits.keep_alive.refuse(sink, "calls share connections, which stay open");
        }
    }
    if whole.system.http == HttpVersion::Two {
        system.http.refuse(sink, "calls go over a WebSocket, which begins with HTTP/1.1; leave this out");
    }
}
