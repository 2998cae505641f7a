//! Sending a message over a WebSocket.

use tidemark_wire::websocket::Kind;

use super::expect::EXPECTED;
use super::over;
use crate::compile::Session;
use crate::grammar::Scalar::Template;
use crate::grammar::Shape::{Either, Scalar};
use crate::grammar::kinds;
use crate::grammar::record::{Kind as _, record};
use crate::grammar::{Rule, Shape};
use crate::plan::WebSocketStep;
use crate::steps::Step;
use crate::steps::answer::{AT, EXTRACT, LABEL, TAGS, TIMEOUT};
use crate::steps::ledger::LEDGER;
use crate::steps::measure::MEASURE;
use crate::template::{self, Encoding};
use crate::yaml::Node;

step! {
    /// Sends a message over the session's WebSocket; with `expect`, waits for the one that answers it.
    KIND("wsSend", "a ws send step") ["ws send": MESSAGE => "The message: a text, or its kind."] {
        LABEL, TAGS, AT,
        "expect": EXPECTED => "Waits for a message that passes, of those that come after the sending.",
        LEDGER, TIMEOUT, EXTRACT, MEASURE,
    }
    example: "
- ws connect: /chat
- ws send: {json: {say: hello}}
  expect: {json: {$.say: hello}}
"
}

const MESSAGE: Shape = Either(&[Scalar(Template), Message::SHAPE]);

record! {
    /// A message by its kind.
    struct Message("wsMessage", "a message", Rule::OneOf(&["text", "json", "binary"])) {
        text: kinds::Template = "A text as it is.",
        json: kinds::Tree = "A text in JSON; a text that is one `${…}` keeps the value's type.",
        binary: kinds::Template = "This text's bytes as a binary message.",
    }
}

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
    let Some(said) = Message::read(value, session.reader) else { return (Kind::Text, Default::default()) };
    if let Some(tree) = said.json.value {
        let mut message = template::Template::default();
        session.json(tree, &mut message);
        return (Kind::Text, message);
    }
    let kind = if said.binary.is_there() { Kind::Binary } else { Kind::Text };
    let text = said.binary.value.or(said.text.value).unwrap_or(value);
    (kind, session.template(text, Encoding::Raw))
}
