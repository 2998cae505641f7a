//! A failed check in words: what was looked at, what was expected, what was there.

use tidemark_scenario::Template;
use tidemark_scenario::Value;
use tidemark_scenario::plan::{Check, TextTest};
use tidemark_scenario::template::Encoding;
use tidemark_scenario::value::Wrong;

use super::{Answer, Scratch, Variables, found, judge_value, shown};

/// Most variables of a condition that are shown with their values.
const VARIABLES_SHOWN: usize = 5;

/// What a check looks at.
pub(super) fn subject(check: &Check) -> String {
    match check {
        Check::Status(_) => "check status".to_owned(),
        Check::Header(name, _) => format!("check header {name}"),
        Check::Body(_) => "check body".to_owned(),
        Check::Json(path, _) => format!("check {path}"),
        Check::Value { .. } => "read".to_owned(),
        Check::Holds(_, text) => format!("check {text}"),
    }
}

/// A status that is none of those that were expected.
pub(super) fn status(ranges: &[(u16, u16)], got: u16, body: &str) -> String {
    let expected: Vec<String> = ranges
        .iter()
        .map(|(low, high)| if low == high { low.to_string() } else { format!("{low}-{high}") })
        .collect();
    format!("check status: expected {}, got {got}: {body}", expected.join(" or "))
}

/// A check that does not hold; `scratch` is as the check left it.
pub(super) fn check(
    check: &Check,
    answer: &dyn Answer,
    variables: Variables<'_>,
    scratch: &Scratch,
) -> String {
    let (test, got) = match check {
        Check::Status(ranges) => return status(ranges, answer.status(), ""),
        Check::Header(name, test) => (test, answer.header(name)),
        Check::Body(test) => (test, Some(answer.body())),
        Check::Json(path, test) => (test, found(path, answer.body()).map(|_| scratch.text.as_slice())),
        Check::Value { number, least, values } => {
            let text = |slot: &u16| {
                let mut text = Vec::new();
                let slot = variables.slots.get(usize::from(*slot));
                Encoding::Raw.write_value(slot.map_or(Value::Missing, |slot| slot.value()), &mut text);
                shown(&text)
            };
            let judged = judge_value(answer.body(), variables.slots, (*number, *least), *values);
            let wanted = match judged {
                Err(Wrong::Stale(_) | Wrong::Gone) => {
                    format!(
                        ", but version {} or a later one was acknowledged before this was sent",
                        text(least)
                    )
                }
                Err(Wrong::Few(_)) => format!(", expected {values}"),
                _ => String::new(),
            };
            let flaw = judged.err().map(|wrong| wrong.to_string()).unwrap_or_default();
            return format!("read of {}: {flaw}{wanted}: {}", text(number), shown(answer.body()));
        }
        Check::Holds(condition, _) => {
            let all = condition.variables();
            let values = all.iter().take(VARIABLES_SHOWN).map(|slot| {
                let slot = usize::from(*slot);
                let name = variables.names.get(slot).map_or("a variable", String::as_str);
                match variables.slots.get(slot).map_or(Value::Missing, |slot| slot.value()) {
                    Value::Missing => format!("{name} is not set"),
                    value => {
                        let mut text = Vec::new();
                        Encoding::Raw.write_value(value, &mut text);
                        format!("{name} is {}", shown(&text))
                    }
                }
            });
            let values = values.collect::<Vec<_>>().join(", ");
            let does_not = if values.is_empty() { "it does not hold" } else { "" };
            return format!("{}: {values}{does_not}", subject(check));
        }
    };
    let got = got.map_or_else(|| "nothing".to_owned(), shown);
    format!("{}: expected {}, got {got}", subject(check), expectation(test, scratch))
}

fn expectation(test: &TextTest, scratch: &Scratch) -> String {
    let text = |template: &Template| shown(template.as_literal().unwrap_or(&scratch.expected));
    match test {
        TextTest::Exists => "anything".to_owned(),
        TextTest::Equals(template) => text(template),
        TextTest::Contains(template) => format!("to contain {}", text(template)),
        TextTest::Matches(regex) => format!("to match {}", shown(regex.as_str().as_bytes())),
    }
}
