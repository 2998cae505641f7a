//! Sending a message over a WebSocket.

use tidemark_wire::websocket::Kind;

use super::expect::EXPECTED;
use super::over;
use crate::compile::Session;
use crate::grammar::Scalar::Template;
use crate::grammar::Shape::{Either, Record as Of, Scalar, Tree};
use crate::grammar::{Record, Rule, Shape, key};
use crate::plan::WebSocketStep;
use crate::steps::answer::{AT, EXTRACT, LABEL, TAGS, TIMEOUT};
use crate::steps::ledger::LEDGER;
use crate::steps::measure::MEASURE;
use crate::steps::{Step, StepKind};
use crate::template::{self, Encoding};
use crate::yaml::Node;

pub(in crate::steps) static KIND: StepKind = StepKind {
    record: Record {
        what: "a ws send step",
        schema: "wsSend",
        about: "Sends a message over the session's WebSocket; with `expect`, waits for the one that answers it.",
        verbs: &[key("ws send", MESSAGE, "The message: a text, or its kind.")],
        keys: &[
            LABEL,
            TAGS,
            AT,
            key("expect", EXPECTED, "Waits for a message that passes, of those that come after the sending."),
            LEDGER,
            TIMEOUT,
            EXTRACT,
            MEASURE,
        ],
        rule: Rule::Free,
    },
    compile,
    beside: None,
    example: "
- ws connect: /chat
- ws send: {json: {say: hello}}
  expect: {json: {$.say: hello}}
",
};

const MESSAGE: Shape = Either(&[Scalar(Template), Of(|| &KINDS_OF_MESSAGE)]);

static KINDS_OF_MESSAGE: Record = Record {
    what: "a message",
    schema: "wsMessage",
    about: "A message by its kind.",
    verbs: &[],
    keys: &[
        key("text", Scalar(Template), "A text as it is."),
        key("json", Tree, "A text in JSON; a text that is one `${…}` keeps the value's type."),
        key("binary", Scalar(Template), "This text's bytes as a binary message."),
    ],
    rule: Rule::OneOf(&["text", "json", "binary"]),
};

fn compile(session: &mut Session<'_, '_>, step: &Step<'_>) {
    let ((kind, message), ledger) = session.entered(step, |session| message(session, step.value));
    let expected = step.get("expect");
    if let Some(node) = step.get("ledger").filter(|_| expected.is_none()) {
        let message = "without expect nothing acknowledges this message; say what answers it";
        session.reader.sink.error(node, message);
    }
    let action = WebSocketStep::Send { message, kind, expects: expected.is_some() };
    over(session, step, (action, ledger), expected);
}

fn message(session: &mut Session<'_, '_>, value: &Node) -> (Kind, template::Template) {
    if value.text().is_some() {
        return (Kind::Text, session.template(value, Encoding::Raw));
    }
    if let Some(tree) = value.get("json") {
        let mut message = template::Template::default();
        session.json(tree, &mut message);
        return (Kind::Text, message);
    }
    let (kind, node) = match value.get("binary") {
        Some(node) => (Kind::Binary, Some(node)),
        None => (Kind::Text, value.get("text")),
    };
    (kind, node.map(|node| session.template(node, Encoding::Raw)).unwrap_or_default())
}
