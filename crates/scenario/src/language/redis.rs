//! The step that sends a command to Redis.

use super::{CHECK, EXTRACT_KEY, LABEL, LEDGER_KEY, TIMEOUT};
use crate::grammar::Scalar::Template;
use crate::grammar::Shape::{List, Record as Of, Scalar};
use crate::grammar::{Record, Rule, key};

pub(super) const REDIS: Record = Record {
    what: "a command of Redis",
    schema: "redis",
    about: "Sends a command to a server that speaks Redis' protocol, and waits for its reply (docs/redis.md).",
    verbs: &[key(
        "redis",
        List(&Scalar(Template), 1),
        "The command and its arguments: `[SET, \"k:${n}\", \"${value}\"]`.",
    )],
    keys: &[
        LABEL,
        LEDGER_KEY,
        TIMEOUT,
        EXTRACT_KEY,
        key(
            "check",
            Of(&CHECK),
            "What must hold of the reply: its status is 200, 204 where it is nil, 500 where it is an error. The body is its text, \
             JSON where it is an array or a map.",
        ),
    ],
    rule: Rule::Free,
};
