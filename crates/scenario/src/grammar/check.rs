//! The check of a file against the shapes of the language.

use super::{Record, Rule, Scalar, Shape};
use crate::diagnostic::{did_you_mean, nearest};
use crate::reader::Reader;
use crate::sink::Sink;
use crate::steps::{self, Step, kinds};
use crate::yaml::{Content, Node};

/// Checks a node against a shape; `what` says what stands there.
pub(crate) fn check(node: &Node, shape: &Shape, what: &str, reader: &Reader<'_>) {
    if !shape.accepts(node) || (node.is_null() && !takes_null(shape)) {
        reader.sink.error(node, format!("{what} is {}; expected {}", node.kind(), shape.wanted()));
        return;
    }
    match shape {
        Shape::Scalar(scalar) => reader.check(node, *scalar),
        Shape::Record(record) => check_record(node, record(), reader),
        Shape::Step => check_step(node, reader),
        Shape::Map(keys, value) => {
            for (name, inner) in node.entries() {
                reader.check_key(name, *keys);
                check(inner, value, &quoted(name), reader);
            }
        }
        Shape::List(of, at_least) => {
            if node.items().len() < *at_least {
                let message = match node.items().len() {
                    0 => format!("{what} is an empty list; expected at least {at_least}"),
                    few => format!("{what} has only {few}; expected at least {at_least}"),
                };
                reader.sink.error(node, message);
            }
            for item in node.items() {
                check(item, of, "this item", reader);
            }
        }
        Shape::Either(shapes) => {
            if let Some(shape) = shapes.iter().find(|shape| shape.accepts(node)) {
                check(node, shape, what, reader);
            }
        }
        Shape::Tree => {}
    }
}

fn takes_null(shape: &Shape) -> bool {
    match shape {
        Shape::Scalar(Scalar::Value) | Shape::Tree => true,
        Shape::Either(shapes) => shapes.iter().any(takes_null),
        _ => false,
    }
}

fn quoted(name: &Node) -> String {
    format!("\"{}\"", name.text().unwrap_or_default())
}

fn check_record(node: &Node, record: &Record, reader: &Reader<'_>) {
    let known = || record.all_keys();
    for (name, inner) in node.entries() {
        let Some(text) = name.text() else { continue };
        match known().find(|key| key.name == text) {
            Some(key) => check(inner, &key.shape, &quoted(name), reader),
            None => {
                let mut hint = did_you_mean(text, known().map(|key| key.name));
                if hint.is_empty() {
                    let names: Vec<_> = record.keys.iter().map(|key| key.name).collect();
                    let names = if names.is_empty() { "no other keys".to_owned() } else { names.join(", ") };
                    hint = format!("; {} has {names}", record.what);
                }
                reader.sink.error(name, format!("unknown key \"{text}\"{hint}"));
            }
        }
    }
    for key in record.keys.iter().filter(|key| key.required && node.get(key.name).is_none()) {
        reader.sink.error(node, format!("{} needs the key \"{}\": {}", record.what, key.name, key.about));
    }
    check_rule(node, record, reader);
}

fn check_rule(node: &Node, record: &Record, reader: &Reader<'_>) {
    let (Rule::OneOf(names) | Rule::AtMostOneOf(names)) = record.rule else { return };
    let mut given =
        node.entries().iter().filter(|(key, _)| key.text().is_some_and(|key| names.contains(&key)));
    let first = given.next();
    if let Some((second, _)) = given.next() {
        let first = first.and_then(|(key, _)| key.text()).unwrap_or_default();
        let second_name = second.text().unwrap_or_default();
        let message = format!("{} has either \"{first}\" or \"{second_name}\", not both", record.what);
        reader.sink.error(second, message);
    }
    if first.is_none() && matches!(record.rule, Rule::OneOf(_)) {
        reader.sink.error(node, format!("{} needs one of the keys {}", record.what, names.join(", ")));
    }
}

/// Tells of every step whose verb is misspelt, and puts the verb that was meant in its place, so that whatever else
/// is wrong with the step is found as well.
pub(crate) fn mend_verbs(node: &mut Node, shape: &Shape, sink: &Sink<'_>) {
    if !shape.accepts(node) {
        return;
    }
    if let Shape::Either(shapes) = shape {
        let shape = shapes.iter().find(|shape| shape.accepts(node));
        return shape.into_iter().for_each(|shape| mend_verbs(node, shape, sink));
    }
    if let Shape::Step = shape {
        mend_verb(node, sink);
    }
    let keys: Vec<_> = match shape {
        Shape::Record(record) => record().all_keys().collect(),
        Shape::Step => steps::keys(node).collect(),
        _ => Vec::new(),
    };
    match (shape, &mut node.content) {
        (Shape::List(of, _), Content::List(items)) => {
            items.iter_mut().for_each(|item| mend_verbs(item, of, sink));
        }
        (Shape::Map(_, value), Content::Map(entries)) => {
            entries.iter_mut().for_each(|(_, inner)| mend_verbs(inner, value, sink));
        }
        (_, Content::Map(entries)) => {
            for (name, inner) in entries {
                let key = keys.iter().find(|key| Some(key.name) == name.text());
                key.into_iter().for_each(|key| mend_verbs(inner, &key.shape, sink));
            }
        }
        _ => {}
    }
}

/// What steps begin with.
fn verbs() -> impl Iterator<Item = &'static str> {
    kinds().flat_map(|kind| kind.record().verbs).map(|verb| verb.name)
}

/// Tells of a verb that is misspelt, and puts the one that was meant in its place.
fn mend_verb(step: &mut Node, sink: &Sink<'_>) {
    if Step::of(step).is_some() {
        return;
    }
    let Some((key, name)) = unknown_verb(step) else { return };
    let Some(verb) = nearest(name, verbs()) else { return };
    sink.error(key, format!("unknown step \"{name}\"; did you mean {verb}?"));
    let (position, verb) = (key.position, verb.to_owned());
    let Content::Map(entries) = &mut step.content else { return };
    if let Some((key, _)) = entries.iter_mut().find(|(key, _)| key.position == position) {
        key.content = Content::Scalar { text: verb, plain: true };
    }
}

/// What stands where a step's verb should. The verb is by custom the first key; one that is a key of some step is
/// hardly a misspelt verb.
fn unknown_verb(step: &Node) -> Option<(&Node, &str)> {
    let is_key = |name: &str| kinds().any(|kind| kind.record().keys.iter().any(|key| key.name == name));
    let mut names = step.entries().iter().filter_map(|(key, _)| Some((key, key.text()?)));
    names.find(|(_, name)| !is_key(name))
}

/// Checks a step's keys, those that its kind has.
fn check_step(node: &Node, reader: &Reader<'_>) {
    let Some(step) = Step::of(node) else { return check_unknown(node, reader) };
    let is_other = |name: &str| !step.has_key(name) && verbs().any(|verb| verb == name);
    let other = node
        .entries()
        .iter()
        .find(|(key, _)| key.position != step.verb.position && key.text().is_some_and(is_other));
    if let Some((second, _)) = other {
        let (first, second_name) = (quoted(step.verb), quoted(second));
        let message = format!(
            "a step does one thing; {second_name} beside {first} must be a step of its own, begun with \"- \""
        );
        reader.sink.error(second, message);
    }
    check_record(node, step.kind.record(), reader);
}

/// A step of which nobody knows what it does: its other keys are looked at nevertheless.
fn check_unknown(node: &Node, reader: &Reader<'_>) {
    let all = verbs().collect::<Vec<_>>().join(", ");
    let unknown = unknown_verb(node);
    match unknown {
        Some((key, name)) => {
            reader.sink.error(key, format!("unknown step \"{name}\"; a step is one of {all}"));
        }
        None => {
            reader.sink.error(node, format!("this step does not say what it does; it needs one of {all}"));
        }
    }
    let keys = || kinds().flat_map(|kind| kind.record().keys);
    for (name, inner) in node.entries() {
        let Some(text) = name.text().filter(|_| unknown.is_none_or(|(key, _)| key.position != name.position))
        else {
            continue;
        };
        match keys().find(|key| key.name == text) {
            Some(key) => check(inner, &key.shape, &quoted(name), reader),
            None => {
                let hint = did_you_mean(text, keys().map(|key| key.name));
                reader.sink.error(name, format!("unknown key \"{text}\"{hint}"));
            }
        }
    }
}
