//! Which kind a step is meant to be, and what is wrong where it is none.

use super::{Step, kinds};
use crate::diagnostic::{did_you_mean, nearest};
use crate::grammar::{check, check_record, quoted};
use crate::reader::Reader;
use crate::sink::Sink;
use crate::yaml::{Content, Node};

fn verbs() -> impl Iterator<Item = &'static str> {
    kinds().flat_map(|kind| kind.record.verbs).map(|verb| verb.name)
}

/// Tells of a verb that is misspelt, and puts the one that was meant in its place.
pub(crate) fn mend_verb(step: &mut Node, sink: &Sink<'_>) {
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
    let is_key = |name: &str| kinds().any(|kind| kind.record.keys.iter().any(|key| key.name == name));
    let mut names = step.entries().iter().filter_map(|(key, _)| Some((key, key.text()?)));
    names.find(|(_, name)| !is_key(name))
}

/// Checks a step's keys, those that its kind has.
pub(crate) fn check_step(node: &Node, reader: &Reader<'_>) {
    let Some(step) = Step::of(node) else { return check_unknown(node, reader) };
    let other = node.entries().iter().find(|(key, _)| {
        key.position != step.verb.position && key.text().is_some_and(|name| verbs().any(|verb| verb == name))
    });
    if let Some((second, _)) = other {
        let (first, second_name) = (quoted(step.verb), quoted(second));
        let message = format!(
            "a step does one thing; {second_name} beside {first} must be a step of its own, begun with \"- \""
        );
        reader.sink.error(second, message);
    }
    check_record(node, &step.kind.record, reader);
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
    let keys = || kinds().flat_map(|kind| kind.record.keys);
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
