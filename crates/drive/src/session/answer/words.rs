//! A failed check in words: what was looked at, what was expected, what was there.

use tidemark_record::status_name;
use tidemark_scenario::Template;
use tidemark_scenario::Value;
use tidemark_scenario::plan::{Check, JsonTest, SlotIndex, Source, TextTest};
use tidemark_scenario::template::Encoding;
use tidemark_scenario::value::Wrong;
use tidemark_wire::json;

use super::{Answer, ENCODING, Scratch, Variables, found, is_of_json, judge_value, shown};
use crate::session::findings;

/// Most variables of a condition that are shown with their values.
const VARIABLES_SHOWN: usize = 5;

/// What a check looks at.
pub(super) fn subject(check: &Check) -> String {
    match check {
        Check::Status(_) => "check status".to_owned(),
        Check::Header(name, _) => format!("check header {name}"),
        Check::Body(_) => "check body".to_owned(),
        Check::Json(path, _) | Check::JsonValue(path, _) => format!("check {path}"),
        Check::Value { .. } => "read".to_owned(),
        Check::Holds(_, text) => format!("check {text}"),
    }
}

/// What must hold, as far as it is known before the run; `expected` is what a text with holes has become, where that is known.
pub(super) fn wanted(check: &Check, expected: Option<&[u8]>) -> String {
    let test = match check {
        Check::Status(ranges) => return format!("{}: {}", subject(check), statuses(ranges)),
        Check::Header(_, test) | Check::Body(test) | Check::Json(_, test) => test,
        Check::JsonValue(_, test) => {
            return format!("{}: {}", subject(check), json_test(test, expected.unwrap_or(b"what varies")));
        }
        Check::Value { .. } | Check::Holds(..) => return subject(check),
    };
    let text = |template: &Template| {
        template.as_literal().or(expected).map_or_else(|| "what varies".to_owned(), value)
    };
    let test = match test {
        TextTest::Exists => "exists".to_owned(),
        TextTest::Equals(template) => text(template),
        TextTest::Contains(template) => format!("contains {}", text(template)),
        TextTest::Matches(regex) => format!("matches {}", shown(regex.as_str().as_bytes())),
    };
    format!("{}: {test}", subject(check))
}

/// What a check looks at in an answer.
pub(super) fn saw(check: &Check, answer: &dyn Answer, variables: Variables<'_>) -> String {
    let is_of_body = is_of_json(check) || matches!(check, Check::Body(_) | Check::Value { .. });
    if is_of_body && answer.unreadable().is_some() {
        let encoding = shown(answer.header(ENCODING).unwrap_or(b"as it came"));
        return format!(
            "a body that cannot be read ({encoding}), {} bytes as it came",
            answer.received_bytes()
        );
    }
    if is_of_json(check)
        && let Err(error) = json::check(answer.body())
    {
        return format!("a body that is {error}");
    }
    let got = match check {
        Check::Status(_) => return answer.status_words(),
        Check::Header(name, _) => answer.header(name).map(value),
        Check::Body(_) | Check::Value { .. } => Some(shown(answer.body())),
        Check::Json(path, _) => found(path, answer.body()).map(value),
        Check::JsonValue(path, _) => path.find(answer.body()).ok().flatten().map(shown),
        Check::Holds(condition, _) => Some(values(&condition.variables(), variables)),
    };
    got.unwrap_or_else(|| "nothing".to_owned())
}

/// Where a value is looked for.
pub(crate) fn source(source: &Source) -> String {
    match source {
        Source::Json(path) => path.to_string(),
        Source::JsonAll(path) => format!("all of {path}"),
        Source::JsonCount(path) => format!("count of {path}"),
        Source::Header(name) => format!("header {name}"),
        Source::Cookie(name) => format!("cookie {name}"),
        Source::Regex(regex, group) => format!("group {group} of {}", shown(regex.as_str().as_bytes())),
        Source::Body => "the body".to_owned(),
        Source::Status => "the status".to_owned(),
    }
}

/// A value that may be empty.
fn value(text: &[u8]) -> String {
    if text.is_empty() { "\"\"".to_owned() } else { shown(text) }
}

/// Variables with their values.
fn values(slots: &[SlotIndex], variables: Variables<'_>) -> String {
    let value = |slot: &SlotIndex| {
        let slot = usize::from(*slot);
        let name = variables.names.get(slot).map_or("a variable", String::as_str);
        match variables.slots.get(slot).and_then(|slot| findings::text(slot.value())) {
            Some(text) => format!("{name} is {}", shown(text.as_bytes())),
            None => format!("{name} is not set"),
        }
    };
    slots.iter().take(VARIABLES_SHOWN).map(value).collect::<Vec<_>>().join(", ")
}

fn statuses(ranges: &[(u16, u16)]) -> String {
    let one = |(low, high): &(u16, u16)| {
        if low == high { status_name(*low) } else { format!("{low}-{high}") }
    };
    ranges.iter().map(one).collect::<Vec<_>>().join(" or ")
}

/// A status that is none of those that were expected.
pub(super) fn status(name: &str, ranges: &[(u16, u16)], got: u16, body: &str) -> String {
    format!("check {name}: expected {}, got {}: {body}", statuses(ranges), status_name(got))
}

/// A check that does not hold; `scratch` is as the check left it.
pub(super) fn check(
    check: &Check,
    answer: &dyn Answer,
    variables: Variables<'_>,
    scratch: &Scratch,
) -> String {
    if let Some(error) = scratch.not_json.filter(|_| is_of_json(check)) {
        return format!("{}: the body is {error}: {}", subject(check), shown(answer.body()));
    }
    let (test, got) = match check {
        Check::Status(ranges) => return status(answer.status_name(), ranges, answer.status(), ""),
        Check::Header(name, test) => (test, answer.header(name)),
        Check::Body(test) => (test, Some(answer.body())),
        Check::Json(path, test) => (test, found(path, answer.body()).map(|_| scratch.text.as_slice())),
        Check::JsonValue(path, test) => {
            let got = match path.find(answer.body()) {
                Ok(token) => token.map_or_else(|| "nothing".to_owned(), shown),
                Err(error) => format!("a body that is {error}"),
            };
            let wanted = json_test(test, &scratch.expected);
            return format!("{}: expected {wanted}, got {got}", subject(check));
        }
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
            let values = values(&condition.variables(), variables);
            let does_not = if values.is_empty() { "it does not hold" } else { "" };
            return format!("{}: {values}{does_not}", subject(check));
        }
    };
    let got = match (check, got) {
        (_, None) => "nothing".to_owned(),
        (Check::Body(_), Some(body)) => shown(body),
        (_, Some(text)) => value(text),
    };
    format!("{}: expected {}, got {got}", subject(check), expectation(test, scratch))
}

/// What must hold of a value of JSON; `varying` is what a text with holes has become.
fn json_test(test: &JsonTest, varying: &[u8]) -> String {
    match test {
        JsonTest::Is(template) => shown(template.as_literal().unwrap_or(varying)),
        JsonTest::Type(of) => format!("a value of type {}", of.name()),
        JsonTest::Absent => "nothing at all".to_owned(),
        JsonTest::Empty => "nothing, or null".to_owned(),
    }
}

fn expectation(test: &TextTest, scratch: &Scratch) -> String {
    let text = |template: &Template| value(template.as_literal().unwrap_or(&scratch.expected));
    match test {
        TextTest::Exists => "anything".to_owned(),
        TextTest::Equals(template) => text(template),
        TextTest::Contains(template) => format!("to contain {}", text(template)),
        TextTest::Matches(regex) => format!("to match {}", shown(regex.as_str().as_bytes())),
    }
}
