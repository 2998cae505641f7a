//! Requests to Aerospike, and what cannot stand beside them.

use std::ops::RangeInclusive;

use tidemark_wire::aerospike::{
    Action, BIN_BYTES_MAX, EXPIRES_S, GENERATIONS, SET_BYTES_MAX, is_bin, is_set,
};

use super::Step;
use super::answer::{AT, CHECK, EXTRACT, LABEL, TAGS, TIMEOUT};
use super::beside::{self, Spoken};
use super::keys::{INSERT, READ, WRITE};
use super::ledger::LEDGER;
use crate::compile::{Session, Whole};
use crate::grammar::Scalar::Template as TemplateText;
use crate::grammar::Shape::{List, Record as Of, Scalar};
use crate::plan::{AerospikeRequest, RequestKind};
use crate::template::{Encoding, Template};
use crate::yaml::Node;

pub(super) static SPOKEN: Spoken = Spoken {
    schemes: &["aerospike"],
    is_ask: |ask| matches!(ask, RequestKind::Aerospike(_)),
    server: "Aerospike",
    requests: "requests to Aerospike",
    step: "aerospike: […]",
    has_streams: false,
};

/// Most bins of a request.
const BINS_MAX: usize = 1_000;

/// What stands behind set and key.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Takes {
    /// Names of bins, also none.
    Bins,
    /// Bins with a text each.
    Texts,
    /// Bins with a whole number each.
    Numbers,
    /// Nothing.
    Nothing,
}

/// Requests, what they do, and what stands behind set and key.
static REQUESTS: [(&str, Action, Takes); 11] = [
    ("get", Action::Get, Takes::Bins),
    ("exists", Action::Exists, Takes::Nothing),
    ("put", Action::Put, Takes::Texts),
    ("create", Action::Create, Takes::Texts),
    ("update", Action::Update, Takes::Texts),
    ("replace", Action::Replace, Takes::Texts),
    ("append", Action::Append, Takes::Texts),
    ("prepend", Action::Prepend, Takes::Texts),
    ("add", Action::Add, Takes::Numbers),
    ("touch", Action::Touch, Takes::Nothing),
    ("delete", Action::Delete, Takes::Nothing),
];

step! {
    /// Asks Aerospike for something about one record, and waits for its reply (docs/aerospike.md).
    KIND("aerospike", "a request to Aerospike") [
        "aerospike": List(&Scalar(TemplateText), 1) =>
            "What is done, the record's set and key, and its bins: `[get, people, \"k:${n}\"]`, `[put, people, KEY, \
             BIN, VALUE]`."
    ] {
        LABEL, TAGS, AT, LEDGER,
        "expires": Scalar(TemplateText) =>
            "Of a write: in how many seconds the record expires; 0, the default, as the namespace has it, -1 never, \
             -2 as before.",
        "generation": Scalar(TemplateText) =>
            "Of a write: the generation that the record must have, as `extract: {g: {header: generation}}` has it; \
             else it is not done.",
        INSERT, WRITE, READ, TIMEOUT, EXTRACT,
        "check": Of(|| &CHECK) =>
            "What must hold of the reply: its status is 200, 204 for a miss, 409 where it was not done, 500 for an \
             error. The body is the value of one bin, or a JSON object of several; headers are `generation`, \
             `expires` and `code`.",
    }
    beside: check_beside,
    example: "
- aerospike: [put, people, ann, name, Ann, city, Oslo]
  expires: 60
- aerospike: [get, people, ann, name]
  check: {status: 200, body: Ann}
"
}

fn check_beside(whole: &Whole<'_>) {
    beside::check(whole, &SPOKEN);
}

fn compile(session: &mut Session<'_, '_>, step: &Step<'_>) {
    let words = step.value.items();
    let name = || words.first().and_then(Node::text).unwrap_or_default().to_ascii_lowercase();
    let Some(label) = session.label_or(step, step.node.position, name) else { return };
    let (request, ledger) = session.entered(step, |session| request(session, step, words));
    let is_write = request.as_ref().is_none_or(|request| request.action.is_write());
    for key in ["expires", "generation"] {
        if let Some((key, _)) = step.node.entry(key).filter(|_| !is_write) {
            session.reader.sink.error(key, "this belongs to writes");
        }
    }
    // what is wrong with a request has been told, and the rest of the step is looked at as well
    let request = request.unwrap_or(AerospikeRequest {
        action: Action::Exists,
        set: String::new(),
        key: Template::literal(""),
        bins: Vec::new(),
        expires: None,
        generation: None,
    });
    let plan = session.request(step, label, (RequestKind::Aerospike(request), ledger), step.get("check"));
    session.check_cookieless(step, &plan, "the reply to a request has no cookies");
    session.push_request(step, plan);
}

/// A request from its words; none if that cannot be told.
fn request(session: &mut Session<'_, '_>, step: &Step<'_>, words: &[Node]) -> Option<AerospikeRequest> {
    let templates: Vec<Template> = words.iter().map(|word| session.template(word, Encoding::Raw)).collect();
    let sink = session.reader.sink;
    let said = templates.first()?.as_literal().map(|name| name.to_ascii_lowercase());
    let known = said.as_ref().and_then(|said| REQUESTS.iter().find(|(name, ..)| name.as_bytes() == said));
    let Some((name, action, takes)) = known else {
        let names: Vec<&str> = REQUESTS.iter().map(|(name, ..)| *name).collect();
        let message = format!("unknown Aerospike command; use one of {}", names.join(", "));
        sink.error(words.first()?, message);
        return None;
    };
    let usage = match takes {
        Takes::Bins => format!("[{name}, SET, KEY, BIN, …]"),
        Takes::Texts => format!("[{name}, SET, KEY, BIN, VALUE, …]"),
        Takes::Numbers => format!("[{name}, SET, KEY, BIN, NUMBER, …]"),
        Takes::Nothing => format!("[{name}, SET, KEY]"),
    };
    let (Some(set), Some(key)) = (templates.get(1), templates.get(2)) else {
        sink.error(step.value, format!("something is missing here: {usage}"));
        return None;
    };
    let set = self::name(set);
    match &set {
        None => sink.error(&words[1], "no variable stands in the name of a set"),
        Some(set) if !is_set(set) => {
            let message = format!("the name of a set has at most {SET_BYTES_MAX} bytes, without `:` and `;`");
            sink.error(&words[1], message);
        }
        Some(_) => {}
    }
    let (nodes, given) = (&words[3..], &templates[3..]);
    let step_by = if action.has_values() { 2 } else { 1 };
    match takes {
        Takes::Nothing if !given.is_empty() => {
            sink.error(&nodes[0], format!("this is one word too many: {usage}"));
        }
        Takes::Texts | Takes::Numbers if given.is_empty() || given.len() % 2 == 1 => {
            sink.error(step.value, format!("something is missing here: {usage}"));
            return None;
        }
        _ if given.len() / step_by > BINS_MAX => {
            sink.error(&nodes[BINS_MAX * step_by], format!("these are too many bins; at most {BINS_MAX}"));
        }
        _ => {}
    }
    let mut bins = Vec::new();
    for (nodes, templates) in nodes.chunks(step_by).zip(given.chunks(step_by)) {
        let bin = self::name(&templates[0]);
        match &bin {
            None => sink.error(&nodes[0], "no variable stands in the name of a bin"),
            Some(bin) if !is_bin(bin) => {
                sink.error(&nodes[0], format!("the name of a bin has 1 to {BIN_BYTES_MAX} bytes"));
            }
            Some(_) => {}
        }
        let value = templates.get(1).cloned();
        if *takes == Takes::Numbers
            && let Some(literal) = value.as_ref().and_then(Template::as_literal)
            && number(literal).is_none()
        {
            sink.error(&nodes[1], "this is a whole number of 64 bits");
        }
        bins.push((bin.unwrap_or_default(), value));
    }
    let mut of_write = |name: &str, within: RangeInclusive<i64>, wrong: &str| {
        let node = step.get(name)?;
        let template = session.template(node, Encoding::Raw);
        if template.as_literal().is_some_and(|text| !number(text).is_some_and(|n| within.contains(&n))) {
            session.reader.sink.error(node, wrong);
        }
        Some(template)
    };
    let seconds = "this is a whole number of seconds, 0, -1 for never or -2 for as before";
    let expires = of_write("expires", EXPIRES_S, seconds);
    let generation = of_write("generation", GENERATIONS, "this is a whole number from 1 to 65535");
    Some(AerospikeRequest {
        action: *action,
        set: set.unwrap_or_default(),
        key: key.clone(),
        bins,
        expires,
        generation,
    })
}

/// A name, in which no variable stands.
fn name(template: &Template) -> Option<String> {
    template.as_literal().map(|name| String::from_utf8_lossy(name).into_owned())
}

fn number(text: &[u8]) -> Option<i64> {
    std::str::from_utf8(text).ok()?.parse().ok()
}
