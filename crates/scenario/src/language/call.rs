//! The step that makes a remote call.

use super::{CHECK, EXTRACT_KEY, LABEL, LEDGER_KEY, TIMEOUT};
use crate::grammar::Scalar::Text;
use crate::grammar::Shape::{Record as Of, Scalar, Tree};
use crate::grammar::{Record, Rule, key};

pub(super) const CALL: Record = Record {
    what: "a call",
    schema: "call",
    about: "Calls a method over a WebSocket that many sessions share, and waits for its answer (docs/rpc.md).",
    verbs: &[key("CALL", Scalar(Text), "The method: `service.method`.")],
    keys: &[
        LABEL,
        key(
            "args",
            Tree,
            "Its arguments as JSON: a list has all of them, anything else is the only one; none by default.",
        ),
        LEDGER_KEY,
        TIMEOUT,
        EXTRACT_KEY,
        key(
            "check",
            Of(&CHECK),
            "What must hold of the answer: its status is 200, or the code of the failure, whose words are the body.",
        ),
    ],
    rule: Rule::Free,
};
