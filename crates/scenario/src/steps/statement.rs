//! What steps that execute a statement have in common.

use super::Step;
use crate::compile::Session;
use crate::grammar::Scalar::Template as TemplateText;
use crate::grammar::Shape::{List, Scalar};
use crate::grammar::{Key, key};
use crate::plan::{RequestKind, Statement};
use crate::template::Encoding;
use crate::yaml::Node;

pub(super) const WITH: Key =
    key("with", List(&Scalar(TemplateText), 1), "Values of its placeholders, in order, as text.");

/// Most placeholders of a statement.
const PARAMETERS_MAX: usize = 1_000;

/// Compiles such a step; the plan is what the reply is looked at with. `refused`: words that a statement cannot begin with.
pub(super) fn compile(
    session: &mut Session<'_, '_>,
    step: &Step<'_>,
    ask: fn(Statement) -> RequestKind,
    refused: &[&str],
    why: &str,
) {
    let text = session.template(step.value, Encoding::Raw);
    let text = text.as_literal().map(|text| String::from_utf8_lossy(text).into_owned());
    let sink = session.reader.sink;
    let first = text.as_deref().and_then(first_word).map(|word| word.to_ascii_uppercase());
    match &first {
        None if text.is_none() => {
            let message = "a statement is prepared once for each connection, so that no variable stands in it; put its place \
                           there, and its value into `with`";
            sink.error(step.value, message);
        }
        None => sink.error(step.value, "this statement is empty"),
        Some(word) if refused.contains(&word.as_str()) => sink.error(step.value, why),
        Some(_) => {}
    }
    if text.as_deref().is_some_and(|text| text.contains('\0')) {
        sink.error(step.value, "a statement has no zero bytes");
    }
    let Some(label) = session.label_or(step, step.node.position, || first.unwrap_or_default()) else {
        return;
    };
    let given = step.get("with").map(Node::items).unwrap_or_default();
    if let Some(node) = given.get(PARAMETERS_MAX) {
        session.reader.sink.error(node, format!("these are too many; at most {PARAMETERS_MAX}"));
    }
    let (parameters, ledger) = session
        .entered(step, |session| given.iter().map(|node| session.template(node, Encoding::Raw)).collect());
    let part = session.part(step);
    let statement = Statement { text: text.unwrap_or_default(), parameters, part };
    let plan = session.request(step, label, (ask(statement), ledger), step.get("check"));
    session.check_cookieless(step, &plan, "the reply to a statement has no cookies");
    session.push_request(step, plan);
}

/// The first word, past white space, comments and opening parentheses.
fn first_word(mut text: &str) -> Option<&str> {
    loop {
        text = text.trim_start_matches(|c: char| c.is_whitespace() || c == '(');
        let behind = match text.strip_prefix("--") {
            Some(comment) => comment.split_once('\n').map(|(_, behind)| behind),
            None => match text.strip_prefix("/*") {
                Some(comment) => comment.split_once("*/").map(|(_, behind)| behind),
                None => break,
            },
        };
        text = behind?;
    }
    text.split(|c: char| !(c.is_alphanumeric() || c == '_')).next().filter(|word| !word.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_word_stands_behind_comments() {
        for (text, word) in [
            ("  select 1", Some("select")),
            ("-- why\n/* and */ INSERT INTO t", Some("INSERT")),
            ("BEGIN;", Some("BEGIN")),
            ("( (select 1) union (select 2))", Some("select")),
            ("-- nothing", None),
            ("", None),
        ] {
            assert_eq!(first_word(text), word);
        }
    }
}
