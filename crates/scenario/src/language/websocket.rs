//! The steps over a WebSocket.

use super::{CHECK, EXTRACT_KEY, LABEL, LEDGER_KEY, QUERY, TEST, TIMEOUT};
use crate::grammar::Scalar::{Condition, Template, Text, Whole, Word};
use crate::grammar::Shape::{Either, List, Map, Record as Of, Scalar, Tree};
use crate::grammar::{Keys, Record, Rule, Shape, key};

pub(super) const CONNECT: Record = Record {
    what: "a ws connect step",
    schema: "wsConnect",
    about: "Turns the session's connection into a WebSocket, until it is closed or the session ends.",
    verbs: &[key("ws connect", Scalar(Template), "Path that is asked for, begun with a slash.")],
    keys: &[
        LABEL,
        QUERY,
        key("headers", Map(Keys::Text("header names"), &Scalar(Template)), "Headers of the handshake."),
        key(
            "subprotocol",
            Either(&[Scalar(Text), List(&Scalar(Text), 1)]),
            "What is spoken over it; of several, the server chooses one.",
        ),
        TIMEOUT,
        EXTRACT_KEY,
        key("check", Of(&CHECK), "What must hold of the answer, whose status is 101."),
    ],
    rule: Rule::Free,
};

pub(super) const SEND: Record = Record {
    what: "a ws send step",
    schema: "wsSend",
    about: "Sends a message over the session's WebSocket; with `expect`, waits for the one that answers it.",
    verbs: &[key("ws send", MESSAGE, "The message: a text, or its kind.")],
    keys: &[
        LABEL,
        key("expect", EXPECTED, "Waits for a message that passes, of those that come after the sending."),
        LEDGER_KEY,
        TIMEOUT,
        EXTRACT_KEY,
    ],
    rule: Rule::Free,
};

pub(super) const EXPECT: Record = Record {
    what: "a ws expect step",
    schema: "wsExpect",
    about: "Waits for a message that passes; those that came before and that no step took count, too.",
    verbs: &[key("ws expect", EXPECTED, "What must hold of it.")],
    keys: &[LABEL, TIMEOUT, EXTRACT_KEY],
    rule: Rule::Free,
};

pub(super) const PING: Record = Record {
    what: "a ws ping step",
    schema: "wsPing",
    about: "Sends a ping and waits for its pong.",
    verbs: &[key("ws ping", Scalar(Template), "What the ping holds: up to 125 bytes.")],
    keys: &[LABEL, TIMEOUT],
    rule: Rule::Free,
};

pub(super) const CLOSE: Record = Record {
    what: "a ws close step",
    schema: "wsClose",
    about: "Closes the session's WebSocket and waits until the other side has closed it, too.",
    verbs: &[key("ws close", Scalar(Whole(1000)), "The close code; 1000 is a normal end.")],
    keys: &[LABEL, key("reason", Scalar(Template), "Words for the other side, up to 123 bytes."), TIMEOUT],
    rule: Rule::Free,
};

const MESSAGE: Shape = Either(&[Scalar(Template), Of(&KINDS_OF_MESSAGE)]);

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

const EXPECTED: Shape = Either(&[Scalar(Word(&["any"])), Of(&EXPECTED_MESSAGE)]);

static EXPECTED_MESSAGE: Record = Record {
    what: "an expected message",
    schema: "wsExpected",
    about: "What must hold of a message; others are passed over.",
    verbs: &[],
    keys: &[
        key("body", TEST, "The whole message: just this text, or a test."),
        key("json", Map(Keys::JsonPath, &TEST), "Values by JSON path: just this text, or a test."),
        key(
            "that",
            Either(&[Scalar(Condition), List(&Scalar(Condition), 1)]),
            "Expressions over the variables, after the extractions.",
        ),
    ],
    rule: Rule::Free,
};
