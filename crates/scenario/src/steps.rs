//! The kinds of steps. Each is a file beside this one, with its keys, what is compiled from it and an example, and a
//! line in [`KINDS`]; nothing else knows its name.

/// Declares a kind of step: its [record](crate::grammar::record::record), what may not stand beside it, and steps that show it.
/// A function `compile` is what compiles it.
macro_rules! step {
    (
        $(#[doc = $about:literal])+
        KIND($schema:literal, $what:literal $(, $rule:expr)?) [ $($verb:tt)+ ] { $($keys:tt)* }
        $(beside: $beside:expr,)?
        example: $example:literal
    ) => {
        $crate::grammar::record::record! {
            $(#[doc = $about])+
            static RECORD($schema, $what $(, $rule)?) [ $($verb)+ ] { $($keys)* }
        }

        pub(in $crate::steps) static KIND: $crate::steps::StepKind = $crate::steps::StepKind {
            record: || &RECORD,
            compile,
            beside: &[ $($beside)? ],
            example: $example,
        };
    };
}

mod aerospike;
mod answer;
mod auth;
mod beside;
pub(crate) mod bound;
mod call;
mod choose;
mod cql;
mod each;
mod end;
mod event_stream;
mod group;
mod grpc;
mod js;
mod keys;
pub(crate) mod ledger;
mod measure;
mod memcached;
mod parallel;
pub(crate) mod redis;
mod repeat;
mod request;
mod set;
mod sometimes;
mod sql;
mod statement;
mod take;
pub(crate) mod think;
mod transaction;
mod upload;
mod websocket;
mod when;

pub(crate) use auth::AUTH;
pub(crate) use beside::Spoken;
pub(crate) use request::{FOLLOW, HEADERS};
pub use sql::REFUSED as REFUSED_SQL;

use crate::compile::{Session, Whole};
use crate::grammar::{Key, Record, Scalar, Shape};
use crate::plan::RequestKind;
use crate::yaml::Node;

/// All kinds, in the order in which they are told.
static KINDS: &[&StepKind] = &[
    &request::KIND,
    &sometimes::KIND,
    &repeat::KIND,
    &choose::KIND,
    &when::KIND,
    &each::KIND,
    &group::KIND,
    &parallel::KIND,
    &think::KIND,
    &set::KIND,
    &js::KIND,
    &measure::KIND,
    &take::KIND,
    &end::KIND,
    &call::KIND,
    &redis::KIND,
    &memcached::KIND,
    &sql::KIND,
    &transaction::KIND,
    &cql::KIND,
    &aerospike::KIND,
    &grpc::KIND,
    &grpc::open::KIND,
    &grpc::send::KIND,
    &grpc::expect::KIND,
    &grpc::close::KIND,
    &websocket::connect::KIND,
    &websocket::send::KIND,
    &websocket::expect::KIND,
    &websocket::ping::KIND,
    &websocket::close::KIND,
    &websocket::expect_close::KIND,
    &event_stream::connect::KIND,
    &event_stream::expect::KIND,
    &event_stream::close::KIND,
];

/// The protocols that are not HTTP.
static SPOKEN: &[&Spoken] =
    &[&grpc::SPOKEN, &redis::SPOKEN, &memcached::SPOKEN, &sql::SPOKEN, &cql::SPOKEN, &aerospike::SPOKEN];

/// A list of steps.
pub(crate) static STEPS: Shape = Shape::List(&Shape::Step, 1);

/// A kind of step.
pub(crate) struct StepKind {
    /// Its verbs and keys: files are checked by them, and the JSON Schema is made from them.
    record: fn() -> &'static Record,
    /// Adds its operations to the session.
    compile: fn(&mut Session<'_, '_>, &Step<'_>),
    /// Reports what cannot stand beside such steps in a scenario.
    beside: &'static [fn(&Whole<'_>)],
    /// Steps that show it, in YAML; those of other kinds are there for its sake.
    #[cfg_attr(not(test), expect(dead_code, reason = "read by tests"))]
    pub(crate) example: &'static str,
}

/// A step whose kind is known.
pub(crate) struct Step<'n> {
    pub(crate) kind: &'static StepKind,
    pub(crate) node: &'n Node,
    /// The key that says what it does, and what stands there.
    pub(crate) verb: &'n Node,
    pub(crate) value: &'n Node,
}

/// All kinds of steps.
pub(crate) fn kinds() -> impl Iterator<Item = &'static StepKind> {
    KINDS.iter().copied()
}

/// The keys that a step may have: those of its kind, and behind them those of all kinds, so that a step of which
/// nobody knows what it does is looked at as well.
pub(crate) fn keys(step: &Node) -> impl Iterator<Item = &'static Key> {
    let kind = Step::of(step).map(|step| step.kind);
    kind.into_iter().chain(kinds()).flat_map(|kind| kind.record().all_keys())
}

/// What is spoken where URLs begin so; none is HTTP.
pub(crate) fn spoken_at(scheme: &str) -> Option<&'static Spoken> {
    SPOKEN.iter().copied().find(|spoken| spoken.schemes.contains(&scheme))
}

/// What a request is spoken with; none is HTTP.
pub(crate) fn spoken_by(ask: &RequestKind) -> Option<&'static Spoken> {
    SPOKEN.iter().copied().find(|spoken| (spoken.is_ask)(ask))
}

/// Whether this key of a step maps names of the author's to values.
pub(crate) fn has_values(key: &str) -> bool {
    let is_such = |shape: &Shape| {
        matches!(
            shape,
            Shape::Tree
                | Shape::Map(_, Shape::Scalar(Scalar::Value | Scalar::Template))
                | Shape::Map(_, Shape::Either([Shape::Scalar(Scalar::Template), ..]))
        )
    };
    kinds().flat_map(|kind| kind.record().all_keys()).any(|known| known.name == key && is_such(&known.shape))
}

/// Reports what cannot stand beside steps of each kind.
pub(crate) fn check_beside(whole: &Whole<'_>) {
    kinds().flat_map(|kind| kind.beside).for_each(|check| check(whole));
}

impl StepKind {
    /// Its verbs and keys.
    pub(crate) fn record(&self) -> &'static Record {
        (self.record)()
    }
}

impl<'n> Step<'n> {
    /// The step at a node; none if nobody knows what it does.
    pub(crate) fn of(node: &'n Node) -> Option<Self> {
        let mut steps = node.entries().iter().filter_map(|(verb, value)| {
            let name = verb.text()?;
            let kind = kinds().find(|kind| kind.record().verbs.iter().any(|verb| verb.name == name))?;
            Some(Step { kind, node, verb, value })
        });
        let first = steps.next()?;
        // what is a step by itself and a key of others is a key beside one of these
        let name = first.verb.text().unwrap_or_default();
        Some(steps.find(|other| other.has_key(name)).unwrap_or(first))
    }

    /// Whether its kind has a key of this name.
    pub(crate) fn has_key(&self, name: &str) -> bool {
        self.kind.record().keys.iter().any(|key| key.name == name)
    }

    /// The value of a key.
    pub(crate) fn get(&self, key: &str) -> Option<&'n Node> {
        self.node.get(key)
    }
}

impl Session<'_, '_> {
    /// Compiles a list of steps.
    pub(crate) fn steps(&mut self, steps: &Node) {
        let reachable = self.reachable;
        for node in steps.items() {
            match Step::of(node) {
                Some(step) => (step.kind.compile)(self, &step),
                None => self.unknown(node),
            }
        }
        self.reachable = reachable;
    }

    /// A step of which nobody knows what it does: what is in it is looked at nevertheless.
    fn unknown(&mut self, step: &Node) {
        if let Some(label) = step.get("label") {
            self.label(label);
        }
        self.extractions(step.get("extract"));
        self.checks(step.get("check"));
        self.inner(step.get("steps"), true);
        self.inner(step.get("else"), true);
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::sink::Sink;

    /// Whether one of these steps, or of the steps in them, is of a kind.
    fn has(node: &Node, kind: &StepKind) -> bool {
        Step::of(node).is_some_and(|step| std::ptr::eq(step.kind, kind))
            || node
                .items()
                .iter()
                .chain(node.entries().iter().map(|(_, value)| value))
                .any(|of| has(of, kind))
    }

    fn is_in(steps: &str, kind: &StepKind) -> bool {
        crate::yaml::read(&Sink::new("steps.yaml", steps)).is_some_and(|steps| has(&steps, kind))
    }

    #[test]
    fn every_example_shows_its_kind_and_loads_without_a_warning() {
        for kind in kinds() {
            let name = kind.record().schema;
            assert!(is_in(kind.example, kind), "{name}");
            let steps = kind.example.replace('\n', "\n      ");
            let feeders =
                if steps.contains("take:") { "feeders: {people: {rows: [{name: ann}]}}" } else { "" };
            let text = format!(
                "keys: {{records: 100}}\n{feeders}\nsessions:\n  one:\n    steps:{steps}\nload: {{users: 1, hold: 1s}}\n"
            );
            let (plan, diagnostics) = crate::check_text("example.yaml", &text, Path::new("."), &[]);
            assert_eq!((plan.is_some(), diagnostics.to_string().as_str()), (true, ""), "{name}:\n{text}");
        }
    }

    #[test]
    fn the_reference_shows_every_kind() {
        let reference = include_str!("../../../docs/scenario.md");
        let blocks: Vec<_> =
            reference.split("```yaml\n").skip(1).filter_map(|rest| rest.split("```").next()).collect();
        for kind in kinds() {
            let is_shown = blocks.iter().any(|block| is_in(block, kind));
            assert!(is_shown, "docs/scenario.md has no example with {}", kind.record().what);
        }
    }
}
