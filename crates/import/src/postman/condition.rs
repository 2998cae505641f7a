//! `if (pm.response.code === 200) { … }`: what a script only does under a condition.

use std::collections::BTreeSet;

use serde_json::Value as Json;
use tidemark_scenario::source::{Map, Value};

use super::Making;
use super::answer::{Answer, code_of, extraction, plain_value};
use super::script::{self, Statement, call, split};
use super::value::{Js, literal};
use crate::checks::ranges;

/// Deepest nesting of conditions, and of tests in them.
const DEPTH_MAX: usize = 8;
/// Comparisons as JavaScript writes them, as the language does, and with their sides changed.
const SIGNS: [(&str, &str, &str); 8] = [
    ("===", "==", "=="),
    ("!==", "!=", "!="),
    ("==", "==", "=="),
    ("!=", "!=", "!="),
    (">=", ">=", "<="),
    ("<=", "<=", ">="),
    (">", ">", "<"),
    ("<", "<", ">"),
];

/// A condition of a script.
#[derive(Debug, Clone)]
pub(super) enum Condition {
    /// The status compared with a number.
    Status(&'static str, u64),
    /// What is no question of the status.
    Holds(String),
    Not(Box<Condition>),
    All(Vec<Condition>),
    Any(Vec<Condition>),
}

impl Condition {
    /// The statuses with which it may hold; none where it does not ask for the status.
    fn statuses(&self) -> Option<BTreeSet<u32>> {
        let all = || 100..600u32;
        match self {
            Condition::Status(sign, code) => {
                let holds = |status: &u32| match *sign {
                    "==" => u64::from(*status) == *code,
                    "!=" => u64::from(*status) != *code,
                    ">=" => u64::from(*status) >= *code,
                    "<=" => u64::from(*status) <= *code,
                    ">" => u64::from(*status) > *code,
                    _ => u64::from(*status) < *code,
                };
                Some(all().filter(holds).collect())
            }
            Condition::Holds(_) => None,
            Condition::Not(inner) => {
                let without = inner.statuses()?;
                Some(all().filter(|status| !inner.is_of_status() || !without.contains(status)).collect())
            }
            Condition::All(parts) => {
                let sets = parts.iter().filter_map(Condition::statuses);
                sets.reduce(|one, other| one.intersection(&other).copied().collect())
            }
            Condition::Any(parts) => {
                let sets: Option<Vec<_>> = parts.iter().map(Condition::statuses).collect();
                sets.map(|sets| sets.into_iter().flatten().collect())
            }
        }
    }

    /// Whether a comparison with this status has another outcome than with one that is missing.
    fn tells_from_missing(&self, status: u32) -> bool {
        match self {
            Condition::Status(sign, _) => {
                let holds = self.statuses().is_some_and(|statuses| statuses.contains(&status));
                holds != (*sign == "!=")
            }
            Condition::Holds(_) => false,
            Condition::Not(inner) => inner.tells_from_missing(status),
            Condition::All(parts) | Condition::Any(parts) => {
                parts.iter().any(|part| part.tells_from_missing(status))
            }
        }
    }

    /// Whether nothing but the status decides.
    fn is_of_status(&self) -> bool {
        match self {
            Condition::Status(..) => true,
            Condition::Holds(_) => false,
            Condition::Not(inner) => inner.is_of_status(),
            Condition::All(parts) | Condition::Any(parts) => parts.iter().all(Condition::is_of_status),
        }
    }

    fn expression(&self, status: &str) -> String {
        let joined = |parts: &[Condition], word: &str| {
            let parts: Vec<String> = parts
                .iter()
                .map(|part| match part {
                    Condition::All(_) | Condition::Any(_) => format!("({})", part.expression(status)),
                    part => part.expression(status),
                })
                .collect();
            parts.join(word)
        };
        match self {
            Condition::Status(sign, code) => format!("{status} {sign} {code}"),
            Condition::Holds(text) => text.clone(),
            Condition::Not(inner) => match inner.as_ref() {
                Condition::Holds(text) if text.chars().all(|c| c.is_alphanumeric() || c == '_') => {
                    format!("not {text}")
                }
                inner => format!("not ({})", inner.expression(status)),
            },
            Condition::All(parts) => joined(parts, " and "),
            Condition::Any(parts) => joined(parts, " or "),
        }
    }
}

/// Statuses that have to be right so that a script's condition is the same here: of a request that has failed nothing is kept,
/// not even its status.
#[derive(Debug)]
pub(super) struct Asked {
    statement: Statement,
    statuses: BTreeSet<u32>,
}

impl Making<'_> {
    /// `if (…) { … } else { … }`; false where it is none, or its condition is not known.
    pub(super) fn is_branch(
        &mut self,
        statement: &Statement,
        answer: &mut Answer,
        above: Option<&Condition>,
        depth: usize,
    ) -> bool {
        let Some(branch) = script::branch(statement).filter(|_| depth < DEPTH_MAX) else { return false };
        let Some(condition) = self.condition(branch.condition, answer, 0) else { return false };
        let both = |own: Condition| match above {
            Some(above) => Condition::All(vec![above.clone(), own]),
            None => own,
        };
        let then = both(condition.clone());
        self.under(&branch.then, &then, answer, depth + 1);
        if !branch.otherwise.is_empty() {
            let otherwise = both(Condition::Not(Box::new(condition)));
            self.under(&branch.otherwise, &otherwise, answer, depth + 1);
        }
        true
    }

    /// Statements that are done under a condition.
    fn under(&mut self, statements: &[Statement], condition: &Condition, answer: &mut Answer, depth: usize) {
        let before = answer.locals.clone();
        for statement in statements {
            if let Some(inner) = script::test(statement).filter(|_| depth < DEPTH_MAX) {
                self.under(&inner, condition, answer, depth + 1);
                continue;
            }
            let is_known = self.is_set_under(statement, condition, answer)
                || self.is_branch(statement, answer, Some(condition), depth)
                || self.is_local(statement, answer);
            if !is_known {
                self.untold(statement, answer);
            }
        }
        // what a variable is behind it depends on the condition
        let after = std::mem::replace(&mut answer.locals, before);
        answer.locals.retain(|name, value| after.get(name) == Some(value));
    }

    fn is_set_under(&mut self, statement: &Statement, condition: &Condition, answer: &mut Answer) -> bool {
        let Some((name, Some(value))) = self.setter(&statement.text, &answer.locals) else { return false };
        let ours = self.draft.variable(&name);
        let statuses = condition.statuses();
        if let Some(statuses) = &statuses {
            let statement = Statement { line: statement.line, text: statement.text.clone() };
            let is_of_answer = value.expression().is_none();
            let is_needed = |status: &u32| {
                is_of_answer && statuses.contains(status) || condition.tells_from_missing(*status)
            };
            answer.asked.push(Asked { statement, statuses: (400..600).filter(is_needed).collect() });
        }
        let is_right = |right: &BTreeSet<u32>| {
            condition.is_of_status() && statuses.as_ref().is_some_and(|statuses| right.is_subset(statuses))
        };
        let is_free = answer.extract.get(&ours).is_none() && answer.set.get(&ours).is_none();
        // with any other status the request has failed, which leaves the variable as it was
        if let Some(of) = extraction(&value).and_then(|source| may_miss(source, "keep")).filter(|_| is_free)
            && answer.check.status.as_ref().map(statuses_of).as_ref().is_some_and(is_right)
        {
            answer.extract.insert(ours.as_str(), of);
        } else {
            let Some(value) = self.seen(&value, answer) else { return false };
            let status = match condition.statuses() {
                Some(_) => self.looked_at(&Js::Status, false, answer).unwrap_or_default(),
                None => String::new(),
            };
            let other = answer.expressions.get(&ours).cloned().unwrap_or_else(|| ours.clone());
            let made = format!("if({}, {value}, {other})", condition.expression(&status));
            answer.set.insert(ours.as_str(), format!("${{{made}}}"));
            answer.expressions.insert(ours.clone(), made);
        }
        self.set.insert(ours);
        true
    }

    /// A value as an expression; a part of the answer as a variable, which may be missing.
    pub(super) fn seen(&mut self, value: &Js, answer: &mut Answer) -> Option<String> {
        self.looked_at(value, true, answer)
    }

    /// Sets a variable in any case.
    pub(super) fn put(&mut self, ours: String, value: &Js, expression: &str, answer: &mut Answer) {
        answer.set.insert(ours.as_str(), plain_value(value, expression));
        answer.expressions.insert(ours, expression.to_owned());
    }

    /// Has the answers be right that conditions look for, where no check says which are.
    pub(super) fn asked(&mut self, answer: &mut Answer) {
        let asked = std::mem::take(&mut answer.asked);
        let Some(status) = &answer.check.status else {
            let mut right: BTreeSet<u32> = asked.into_iter().flat_map(|one| one.statuses).collect();
            if !right.is_empty() {
                right.extend(200..400);
                answer.check.status = Some(ranges(&right.into_iter().collect::<Vec<u32>>()));
            }
            return;
        };
        let right = statuses_of(status);
        for one in asked.iter().filter(|one| !one.statuses.is_subset(&right)) {
            self.untold(&one.statement, answer);
        }
    }

    fn condition(&mut self, text: &str, answer: &mut Answer, depth: usize) -> Option<Condition> {
        let text = text.trim();
        if depth > DEPTH_MAX || text.is_empty() {
            return None;
        }
        if let Some((inner, "")) = call(text, "(") {
            return self.condition(inner, answer, depth + 1);
        }
        for (sign, of) in [("||", Condition::Any as fn(Vec<Condition>) -> Condition), ("&&", Condition::All)]
        {
            let parts = split(text, sign);
            if parts.len() > 1 {
                let parts = parts.into_iter().map(|part| self.condition(part, answer, depth + 1));
                return parts.collect::<Option<_>>().map(of);
            }
        }
        if let Some(inner) = text.strip_prefix('!').filter(|inner| !inner.starts_with('=')) {
            return Some(Condition::Not(Box::new(self.condition(inner, answer, depth + 1)?)));
        }
        if let Some((list, behind)) = text.strip_prefix('[').and_then(|text| text.split_once("].includes(")) {
            let of = self.value(behind.strip_suffix(')')?, &answer.locals)?;
            let items = split(list, ",").into_iter().map(|item| self.value(item, &answer.locals));
            let items = items.collect::<Option<Vec<Js>>>()?;
            let parts = items.iter().map(|item| self.compared(&of, ("==", "=="), item, answer));
            return parts.collect::<Option<_>>().map(Condition::Any);
        }
        for (sign, ours, turned) in SIGNS {
            let parts = split(text, sign);
            let [left, right] = parts.as_slice() else { continue };
            if ["pm.response.status", "responseCode.name"].contains(left) {
                let code = code_of(literal(right)?.as_str()?)?;
                return ["==", "!="].contains(&ours).then_some(Condition::Status(ours, u64::from(code)));
            }
            let (left, right) = (self.value(left, &answer.locals)?, self.value(right, &answer.locals)?);
            return self.compared(&left, (ours, turned), &right, answer);
        }
        for (begin, of) in
            [("pm.response.headers.has(", Js::Header as fn(String) -> Js), ("pm.cookies.has(", Js::Cookie)]
        {
            if let Some((inner, "")) = call(text, begin) {
                let name = literal(inner)?.as_str()?.to_owned();
                return Some(Condition::Holds(format!("exists({})", self.seen(&of(name), answer)?)));
            }
        }
        if let Some((name, "")) = call(text, "pm.environment.has(") {
            let name = literal(name)?.as_str()?.to_owned();
            return Some(Condition::Holds(format!("exists({})", self.hole(&name).expression)));
        }
        match self.value(text, &answer.locals)? {
            Js::Response | Js::Time | Js::Status => None,
            value => Some(Condition::Holds(self.seen(&value, answer)?)),
        }
    }

    fn compared(
        &mut self,
        left: &Js,
        (sign, turned): (&'static str, &'static str),
        right: &Js,
        answer: &mut Answer,
    ) -> Option<Condition> {
        match (left, right) {
            (Js::Time | Js::Response, _) | (_, Js::Time | Js::Response) => None,
            (Js::Status, Js::Literal(code)) => Some(Condition::Status(sign, code.as_u64()?)),
            (Js::Literal(code), Js::Status) => Some(Condition::Status(turned, code.as_u64()?)),
            (Js::Status, _) | (_, Js::Status) => None,
            (of, Js::Literal(Json::Null)) | (Js::Literal(Json::Null), of) => {
                let exists = format!("exists({})", self.seen(of, answer)?);
                match sign {
                    "==" => Some(Condition::Holds(format!("not {exists}"))),
                    "!=" => Some(Condition::Holds(exists)),
                    _ => None,
                }
            }
            _ => {
                let (left, right) = (self.seen(left, answer)?, self.seen(right, answer)?);
                Some(Condition::Holds(format!("{left} {sign} {right}")))
            }
        }
    }
}

/// An extraction that says what becomes of the variable where nothing is found; none where something always is.
pub(super) fn may_miss(source: Value, then: &str) -> Option<Map> {
    let mut of = match source {
        Value::Map(of) => of,
        path if path.as_str().is_some_and(|path| path.starts_with('$')) => Map::from([("json", path)]),
        _ => return None,
    };
    of.insert("when missing", then);
    Some(of)
}

/// The statuses of a check.
fn statuses_of(check: &Value) -> BTreeSet<u32> {
    let of = |value: &Value| {
        let text = value.as_str().unwrap_or_default();
        let (from, to) = match text.strip_suffix("xx") {
            Some(class) => (format!("{class}00"), format!("{class}99")),
            None => {
                let (from, to) = text.split_once('-').unwrap_or((text, text));
                (from.to_owned(), to.to_owned())
            }
        };
        from.parse::<u32>().ok().zip(to.parse::<u32>().ok()).map(|(from, to)| from..=to.min(599))
    };
    match check {
        Value::List(all) => all.iter().filter_map(of).flatten().collect(),
        one => of(one).into_iter().flatten().collect(),
    }
}
