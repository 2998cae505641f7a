//! Steps of gRPC, and what cannot stand beside them.

pub(super) mod close;
pub(super) mod expect;
pub(super) mod open;
pub(super) mod send;

use std::time::Duration;

use tidemark_record::GrpcCode;
use tidemark_wire::grpc::metadata::{MetadataError, check_name, is_binary, value_as_sent, write_padded};

use super::Step;
use super::answer::{AT, EXTRACT, JSON_TEST, LABEL, TAGS, TEST, THAT, TIMEOUT};
use super::beside::{self, Spoken};
use super::ledger::LEDGER;
use super::measure::MEASURE;
use crate::compile::{Session, Whole};
use crate::grammar::Keys;
use crate::grammar::Scalar::{Bool, Duration as Time, Template as TemplateText, Text, Word};
use crate::grammar::Shape::{Either, List, Map, Record as Of, Scalar, Tree};
use crate::grammar::record::record;
use crate::grammar::{Key, key};
use crate::plan::{Check, GrpcCall, GrpcStep, LedgerPlan, RequestKind, RequestPlan, TextTest};
use crate::protobuf::{Method, MethodName};
use crate::template::{Encoding, Template};
use crate::yaml::{Content, Node, Position, one_or_many};

pub(super) static SPOKEN: Spoken = Spoken {
    schemes: &["grpc", "grpcs"],
    is_ask: |ask| matches!(ask, RequestKind::Grpc(_)),
    server: "a server of gRPC",
    requests: "calls of gRPC",
    step: "grpc: …",
    has_streams: true,
};

/// How much longer than its deadline a call is waited for, lest the server's own word on it is missed.
const GRACE: Duration = Duration::from_secs(1);
/// Most messages that a step sends.
const MESSAGES_MAX: usize = 10_000;

const METADATA: Key = key(
    "metadata",
    Map(Keys::Text("names of metadata"), &Scalar(TemplateText)),
    "Metadata of the call, by name; the value of a name that ends with `-bin` is the base64 of its bytes.",
);
const DEADLINE: Key = key(
    "deadline",
    Scalar(Time),
    "The time that the server is told the call has; by default `timeout`. Without `timeout` a call is waited for one \
     second longer.",
);
const COMPRESS: Key =
    key("compress", Scalar(Bool), "Whether messages are sent compressed, by gzip; false by default.");

step! {
    /// Calls a method of gRPC, and waits for the whole answer (docs/grpc.md).
    KIND("grpc", "a call of gRPC") ["grpc": Scalar(Text) => "The method: `shop.Cart/Add`."] {
        LABEL, TAGS, AT,
        "message": Tree =>
            "The message, as JSON; a list sends its items as messages, where the method takes several. Empty by default.",
        METADATA, DEADLINE, COMPRESS, LEDGER, TIMEOUT, EXTRACT, MEASURE,
        "check": Of(|| &CHECK) => "What must hold of the answer; its status is `OK` where nothing is said.",
    }
    beside: check_beside,
    example: "
- grpc: shop.Cart/Add
  message: {item: ibm, amount: 1}
  check: {status: OK, json: {$.total: \"1\"}}
"
}

record! {
    /// What must hold of an answer of gRPC.
    static CHECK("grpcCheck", "a check of gRPC") {
        "status": Either(&[Scalar(Word(&GrpcCode::NAMES)), List(&Scalar(Word(&GrpcCode::NAMES)), 1)]) =>
            "Right statuses: `OK`, `NOT_FOUND`, ….",
        "body": TEST => "The whole answer as JSON: just this text, or a test. Of several messages it is a list.",
        "metadata": Map(Keys::Text("names of metadata"), &TEST) =>
            "Metadata of the answer, its headers and its trailers: just this text, or a test.",
        "json": Map(Keys::JsonPath, &JSON_TEST) =>
            "Values by JSON path: this value (`3` is a number, `\"3\"` a text or what is written so), or a test.",
        THAT,
    }
}

fn compile(session: &mut Session<'_, '_>, step: &Step<'_>) {
    let Some((label, mut call)) = begin(session, step, "") else { return };
    let sent = session.entered(step, |session| {
        call.metadata = metadata(session, step);
        RequestKind::Grpc(GrpcStep::Call { call, messages: messages(session, step.get("message")) })
    });
    let mut plan = session.request(step, label, sent, None);
    end(session, step, &mut plan, step.get("check"));
}

/// The label of a call, and what its step says of it but for its metadata.
fn begin(session: &mut Session<'_, '_>, step: &Step<'_>, verb: &str) -> Option<(u16, GrpcCall)> {
    let text = session.reader.text(step.value).unwrap_or_default();
    let method = MethodName::read(&text);
    if method.is_none() {
        let message = format!("\"{text}\" cannot be a method; write it as shop.Cart/Add");
        session.reader.sink.error(step.value, message);
    }
    let method = method.unwrap_or_default();
    let label = session.label_or(step, step.node.position, || format!("{verb}{method}"))?;
    let deadline = step.get("deadline").and_then(|node| session.reader.duration(node));
    let compresses = step.get("compress").and_then(|node| session.reader.bool(node)).unwrap_or(false);
    let line = step.node.position.line;
    Some((label, GrpcCall { method, metadata: Vec::new(), deadline, compresses, line }))
}

/// Adds a step whose answer has a status.
fn end(session: &mut Session<'_, '_>, step: &Step<'_>, plan: &mut RequestPlan, check: Option<&Node>) {
    let is_open = matches!(plan.ask, RequestKind::Grpc(GrpcStep::Open(_)));
    if let RequestKind::Grpc(GrpcStep::Call { call, .. } | GrpcStep::Open(call)) = &mut plan.ask {
        match call.deadline {
            // a stream lasts longer than its beginning
            Some(_) if is_open => {}
            Some(deadline) if step.get("timeout").is_none() => plan.timeout = deadline.saturating_add(GRACE),
            None if !is_open => call.deadline = Some(plan.timeout),
            _ => {}
        }
    }
    plan.checks = checks(session, check);
    session.check_cookieless(step, plan, "an answer of gRPC has no cookies");
    session.push_request(step, plan.clone());
}

fn checks(session: &mut Session<'_, '_>, node: Option<&Node>) -> Vec<Check> {
    let mut checks = Vec::new();
    let Some(node) = node else { return checks };
    if let Some(status) = node.get("status") {
        let codes = one_or_many(status).iter().filter_map(|node| code(session, node));
        checks.push(Check::Status(codes.map(|code| (code.status(), code.status())).collect()));
    }
    for (name, test) in node.get("metadata").map(Node::entries).unwrap_or_default() {
        let lower = name.text().unwrap_or_default().to_ascii_lowercase();
        let mut wanted = session.test(test);
        if let Some(TextTest::Equals(value)) = &mut wanted
            && is_binary(lower.as_bytes())
            && let Some(constant) = value.as_literal()
        {
            let is_base64 = |one| value_as_sent(&lower, one).is_ok();
            if !constant.split(|byte| *byte == b',').all(is_base64) {
                session.reader.sink.error(test, MetadataError::Base64.to_string());
            }
            // as the answer's own is brought into form
            let mut padded = Vec::new();
            write_padded(constant, &mut padded);
            *value = Template::literal(padded);
        }
        checks.extend(wanted.map(|wanted| Check::Header(lower, wanted)));
    }
    checks.extend(session.checks_of_body(node));
    checks
}

/// A status by its name.
fn code(session: &Session<'_, '_>, node: &Node) -> Option<GrpcCode> {
    GrpcCode::from_name(session.reader.word(node, &GrpcCode::NAMES)?)
}

/// A step over the session's stream: what it does, and what must hold of a message that comes.
fn over(
    session: &mut Session<'_, '_>,
    step: &Step<'_>,
    (action, ledger): (GrpcStep, Option<LedgerPlan>),
    expected: Option<&Node>,
) {
    session.over_messages(step, (RequestKind::Grpc(action), ledger), expected, "metadata");
}

fn metadata(session: &mut Session<'_, '_>, step: &Step<'_>) -> Vec<(String, Template)> {
    let mut metadata = Vec::new();
    for (name, value) in step.get("metadata").map(Node::entries).unwrap_or_default() {
        let Some(text) = name.text() else { continue };
        let lower = text.to_ascii_lowercase();
        if let Err(reason) = check_name(&lower) {
            session.reader.sink.error(name, format!("\"{text}\" cannot be the name of metadata: {reason}"));
        }
        // what varies is looked at when it is sent
        let template = session.template(value, Encoding::Raw);
        if let Some(Err(reason)) = template.as_literal().map(|value| value_as_sent(&lower, value)) {
            session.reader.sink.error(value, format!("the metadata \"{lower}\" cannot be sent: {reason}"));
        }
        metadata.push((lower, template));
    }
    metadata
}

/// Messages as JSON: of a list each item, else the one.
fn messages(session: &mut Session<'_, '_>, node: Option<&Node>) -> Vec<Template> {
    let Some(node) = node else { return vec![Template::literal("{}")] };
    let nodes =
        if matches!(node.content, Content::List(_)) { node.items() } else { std::slice::from_ref(node) };
    if nodes.len() > MESSAGES_MAX {
        session.reader.sink.error(node, format!("{} messages; at most {MESSAGES_MAX}", nodes.len()));
    }
    nodes.iter().map(|node| message(session, node)).collect()
}

fn message(session: &mut Session<'_, '_>, node: &Node) -> Template {
    let mut message = Template::default();
    session.json(node, &mut message);
    message
}

/// Reports methods and messages that the types do not have, where a scenario names types.
fn check_beside(whole: &Whole<'_>) {
    beside::check(whole, &SPOKEN);
    let types_of = |target: u16| {
        let at = match usize::from(target).checked_sub(1) {
            None => Some(whole.system),
            Some(target) => whole.targets.get(target).map(|target| &target.at),
        };
        at.and_then(|at| at.types.as_ref())
    };
    let placed = || whole.requests.placed().filter_map(|(plan, at)| Some((plan.target, plan.grpc()?, at)));
    let opens = placed().filter_map(|(target, step, _)| Some((target, step.opens(types_of(target)?)?)));
    let opened: Vec<(u16, Method)> = opens.collect();
    for (target, step, position) in placed() {
        let Some(types) = types_of(target) else { continue };
        let there = opened.iter().filter(|(of, _)| *of == target).map(|(_, method)| method);
        if let Err((number, wrong)) = step.check(types, there) {
            let place = place(whole.root, position, number, &wrong.way);
            whole.reader.sink.error_at(place.unwrap_or(position), wrong.words);
        }
    }
}

/// Where in a step's messages something stands to which this way leads, as far as it can be followed.
fn place(root: &Node, step: Position, number: usize, way: &[String]) -> Option<Position> {
    let step = mapping_at(root, step)?;
    let mut node = step.get("message").or_else(|| step.get("grpc send")).filter(|_| !way.is_empty())?;
    node = node.items().get(number).unwrap_or(node);
    let mut place = node.position;
    for part in way {
        let item = part.parse::<usize>().ok().and_then(|at| node.items().get(at));
        (place, node) = match (node.entry(part), item) {
            (Some((key, value)), _) => (key.position, value),
            (None, Some(item)) => (item.position, item),
            (None, None) => break,
        };
    }
    Some(place)
}

/// The mapping that stands there.
fn mapping_at(node: &Node, position: Position) -> Option<&Node> {
    if node.position == position && matches!(node.content, Content::Map(_)) {
        return Some(node);
    }
    let mut parts = node.items().iter().chain(node.entries().iter().map(|(_, value)| value));
    parts.find_map(|part| mapping_at(part, position))
}
