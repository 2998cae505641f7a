//! What scripts look at in an answer, keep of it, and set.

use std::collections::HashMap;

use serde_json::Value as Json;
use tidemark_scenario::source::{Map, Scalar, Step, Value, verbatim};

use super::Making;
use super::condition::{Asked, may_miss};
use super::script::{self, Statement, call, lines, split, statements};
use super::value::{Js, Locals, literal, member};
use crate::checks::Checks;
use crate::names::name_of;
use crate::plan::shown;
use crate::tree::Node;

/// Most bytes of a script.
const SCRIPT_BYTES_MAX: usize = 256 << 10;
/// Words of an expectation that say nothing.
const FILLERS: [&str; 14] =
    ["to", "be", "been", "is", "that", "which", "and", "has", "have", "with", "at", "of", "same", "deep"];
/// What may change what is sent, in a statement that is not known.
const CHANGES: [&str; 9] = [
    ".set(",
    "Variable(",
    "sendRequest",
    "NextRequest",
    "execution",
    "pm.request",
    "unset",
    ".clear",
    "eval(",
];

/// What becomes of an answer.
#[derive(Default)]
pub(super) struct Answer {
    /// The request, for what is told.
    element: String,
    pub(super) locals: Locals,
    pub(super) extract: Map,
    /// What is set behind the request.
    pub(super) set: Map,
    /// The same as expressions.
    pub(super) expressions: HashMap<String, String>,
    /// Statuses that conditions look for.
    pub(super) asked: Vec<Asked>,
    pub(super) check: Checks,
    /// Longest response time, milliseconds.
    slowest_ms: Option<(usize, f64)>,
}

impl Answer {
    pub(super) fn new(element: &str) -> Answer {
        Answer { element: element.to_owned(), ..Answer::default() }
    }
}

impl Making<'_> {
    /// Statements that are done before a request.
    pub(super) fn before(&mut self, scripts: &[&Node], answer: &mut Answer) -> Vec<Step> {
        for script in scripts {
            for statement in self.statements(script, answer) {
                if let Some((name, Some(value))) = self.setter(&statement.text, &answer.locals)
                    && let Some(expression) = value.expression()
                {
                    let name = self.draft.variable(&name);
                    self.set.insert(name.clone());
                    self.put(name, &value, &expression, answer);
                } else if !self.is_branch(&statement, answer, None, 0) && !self.is_local(&statement, answer) {
                    self.untold(&statement, answer);
                }
            }
        }
        let set = std::mem::take(&mut answer.set);
        answer.expressions.clear();
        // nothing is answered yet
        if !answer.extract.is_empty() || !answer.asked.is_empty() {
            answer.extract = Map::new();
            answer.asked.clear();
            let would = "looked at an answer before its request";
            self.draft.tell(self.line, &answer.element, would, true);
        }
        if set.is_empty() { Vec::new() } else { vec![Step::Other(Map::from([("set", set)]))] }
    }

    /// Statements that are done behind it.
    pub(super) fn after(&mut self, scripts: &[&Node], answer: &mut Answer) {
        for script in scripts {
            for statement in self.statements(script, answer) {
                self.statement(&statement, answer, 0);
            }
        }
        self.asked(answer);
    }

    fn statements(&mut self, script: &Node, answer: &Answer) -> Vec<Statement> {
        let lines = lines(script);
        if script.get("src").is_some()
            || lines.iter().map(|(_, text)| text.len()).sum::<usize>() > SCRIPT_BYTES_MAX
        {
            let would = "run a script that is too large, or lies elsewhere";
            self.draft.tell(script.line, &answer.element, would, true);
            script.done();
            return Vec::new();
        }
        statements(&lines)
    }

    pub(super) fn untold(&mut self, statement: &Statement, answer: &Answer) {
        let is_request = CHANGES.iter().any(|change| statement.text.contains(change));
        // what is printed changes nothing
        if statement.text.starts_with("console.") && !is_request {
            return;
        }
        let first = statement.text.lines().next().unwrap_or_default();
        let more = if statement.text.contains('\n') { " …" } else { "" };
        let would = format!("done the statement `{}`{more}", shown(first));
        self.draft.tell(statement.line, &answer.element, would, is_request);
    }

    fn statement(&mut self, statement: &Statement, answer: &mut Answer, depth: usize) {
        if depth < 5
            && let Some(inner) = script::test(statement)
        {
            // variables of a test are its own
            let locals = answer.locals.clone();
            inner.iter().for_each(|statement| self.statement(statement, answer, depth + 1));
            answer.locals = locals;
            return;
        }
        let text = &statement.text;
        let is_known = self.is_set(text, answer)
            || self.is_branch(statement, answer, None, depth)
            || self.is_local(statement, answer)
            || self.is_expectation(statement, answer).unwrap_or(false);
        if !is_known {
            self.untold(statement, answer);
        }
    }

    /// `pm.environment.set("x", value)` and the like: the name and the value, if that is known.
    pub(super) fn setter(&mut self, text: &str, locals: &Locals) -> Option<(String, Option<Js>)> {
        const SETTERS: [&str; 6] = [
            "pm.environment.set(",
            "pm.collectionVariables.set(",
            "pm.globals.set(",
            "pm.variables.set(",
            "postman.setEnvironmentVariable(",
            "postman.setGlobalVariable(",
        ];
        let (inner, _) =
            SETTERS.iter().find_map(|begin| call(text, begin).filter(|(_, rest)| rest.is_empty()))?;
        let parts = split(inner, ",");
        let name = literal(parts.first()?)?.as_str()?.to_owned();
        let value = (parts.len() == 2).then(|| self.value(parts[1], locals)).flatten();
        Some((name, value))
    }

    fn is_set(&mut self, text: &str, answer: &mut Answer) -> bool {
        let Some((name, Some(value))) = self.setter(text, &answer.locals) else { return false };
        let ours = self.draft.variable(&name);
        let source = extraction(&value);
        match (source, value.expression()) {
            (Some(source), _) if answer.extract.get(&ours).is_none() && answer.set.get(&ours).is_none() => {
                answer.extract.insert(ours, source);
            }
            (_, Some(expression)) => self.put(ours, &value, &expression, answer),
            (_, None) => {
                let Some(seen) = self.seen(&value, answer) else { return false };
                self.put(ours, &value, &seen, answer);
            }
        }
        self.set.insert(self.draft.variable(&name));
        true
    }

    /// `var x = …`
    pub(super) fn is_local(&mut self, statement: &Statement, answer: &mut Answer) -> bool {
        let Some((left, right)) = statement.text.split_once('=') else { return false };
        let left = left.trim();
        let name =
            ["var ", "let ", "const "].iter().find_map(|word| left.strip_prefix(word)).unwrap_or(left).trim();
        let is_name = !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || "_$".contains(c));
        if !is_name || right.starts_with(['=', '>']) {
            return false;
        }
        match self.value(right, &answer.locals) {
            // one that is drawn once must not be drawn at each use
            Some(Js::Expression(expression)) if expression.contains('(') => {
                let ours = self.draft.variable(&format!("script {name}"));
                answer.set.insert(ours.as_str(), format!("${{{expression}}}"));
                answer.locals.insert(name.to_owned(), Js::Expression(ours));
                true
            }
            Some(value) => {
                answer.locals.insert(name.to_owned(), value);
                true
            }
            None => {
                answer.locals.remove(name);
                false
            }
        }
    }

    /// `pm.response.to.…`, `pm.expect(…).…`, `tests["…"] = …`: none where it is not one, or not a known one.
    fn is_expectation(&mut self, statement: &Statement, answer: &mut Answer) -> Option<bool> {
        let text = statement.text.as_str();
        let line = statement.line;
        if let Some(rest) = text.strip_prefix("pm.response.to") {
            return Some(self.chain(line, Js::Response, rest, answer));
        }
        if let Some((inner, rest)) = call(text, "pm.expect(") {
            let subject = split(inner, ",");
            let subject = self.value(subject.first()?, &answer.locals)?;
            return Some(self.chain(line, subject, rest, answer));
        }
        let (_, condition) = text.strip_prefix("tests[")?.split_once("] =")?;
        let condition = condition.trim();
        if let Some((inner, "")) = call(condition, "responseBody.has(") {
            let what = self.value(inner, &answer.locals)?;
            return Some(self.holds(line, &Js::Body, "include", &[what], false, answer));
        }
        for (sign, operation) in [("===", "equal"), ("==", "equal"), ("<", "below"), (">", "above")] {
            if let [left, right] = split(condition, sign).as_slice() {
                let (left, right) = (self.value(left, &answer.locals)?, self.value(right, &answer.locals)?);
                return Some(self.holds(line, &left, operation, &[right], false, answer));
            }
        }
        None
    }

    /// `.to.not.eql(5)` and the like, behind what is looked at.
    fn chain(&mut self, line: usize, subject: Js, text: &str, answer: &mut Answer) -> bool {
        let mut is_not = false;
        let mut operation: Option<(String, Vec<Js>)> = None;
        for part in split(text, ".").into_iter().filter(|part| !part.is_empty()) {
            let name = part.split('(').next().unwrap_or_default();
            let arguments = call(part, &format!("{name}("));
            match arguments {
                None if name == part && name == "not" => is_not = !is_not,
                None if name == part && FILLERS.contains(&name) => {}
                _ if operation.is_some() || name == part && part.contains('(') => return false,
                Some((inner, "")) => {
                    let inner = match inner.strip_prefix('[').and_then(|inner| inner.strip_suffix(']')) {
                        Some(list) if name == "oneOf" => list,
                        _ => inner,
                    };
                    let parts = split(inner, ",").into_iter().filter(|part| !part.is_empty());
                    let values = parts.map(|part| self.value(part, &answer.locals)).collect::<Option<_>>();
                    let Some(values) = values else { return false };
                    operation = Some((name.to_owned(), values));
                }
                Some(_) => return false,
                None => operation = Some((name.to_owned(), Vec::new())),
            }
        }
        let Some((name, values)) = operation else { return false };
        self.holds(line, &subject, &name, &values, is_not, answer)
    }

    /// One expectation as a check; false where it cannot be one.
    fn holds(
        &mut self,
        line: usize,
        of: &Js,
        name: &str,
        with: &[Js],
        is_not: bool,
        answer: &mut Answer,
    ) -> bool {
        let first = with.first();
        let literal = match first {
            Some(Js::Literal(value)) if with.len() == 1 => Some(value),
            _ => None,
        };
        let text = literal.and_then(Json::as_str);
        let is_equal = ["equal", "equals", "eq", "eql", "eqls"].contains(&name);
        match (of, name) {
            (Js::Response, _) => return self.of_response(name, with, is_not, answer),
            (Js::Time, "below" | "lessThan" | "lt" | "most" | "lte" | "lessThanOrEqual") if !is_not => {
                let Some(most) = literal.and_then(Json::as_f64) else { return false };
                answer.slowest_ms = Some((line, most));
                return true;
            }
            (Js::Time, _) => return false,
            (Js::Status, _) if !is_not && (is_equal || name == "oneOf") && answer.check.status.is_none() => {
                let status = |value: &Js| match value {
                    Js::Literal(value) => value.as_u64().filter(|status| (100..600).contains(status)),
                    _ => None,
                };
                let Some(all) = with.iter().map(status).collect::<Option<Vec<u64>>>() else { return false };
                return put_status(answer, &all);
            }
            (Js::Body, "include" | "contain" | "includes" | "contains" | "string")
                if !is_not && answer.check.body.is_none() =>
            {
                if let Some(text) = text {
                    answer.check.body = Some(Map::from([("contains", verbatim(text))]).into());
                    return true;
                }
            }
            (Js::Json(path), _) if !is_not && answer.check.json.get(path).is_none() => {
                if let Some(value) = json_check(name, is_equal, literal, with) {
                    answer.check.json.insert(path.as_str(), value);
                    return true;
                }
                if let (true, Some(Js::Expression(expression))) = (is_equal, first) {
                    answer.check.json.insert(path.as_str(), format!("${{{expression}}}"));
                    return true;
                }
                if let ("property", Some(key)) = (name, with.first().and_then(js_text)) {
                    let below = format!("{path}{}", member(&key));
                    let value = match with.get(1) {
                        None => Some(exists().into()),
                        Some(Js::Literal(value)) => scalar(value),
                        Some(_) => None,
                    };
                    let Some(value) = value.filter(|_| answer.check.json.get(&below).is_none()) else {
                        return false;
                    };
                    answer.check.json.insert(below, value);
                    return true;
                }
            }
            (Js::Header(header), _)
                if !is_not
                    && answer.check.header.get(header).is_none_or(|known| *known == Value::Map(exists())) =>
            {
                let test = match (name, text) {
                    (_, Some(text)) if is_equal => Some(Value::from(verbatim(text))),
                    ("include" | "contain", Some(text)) => {
                        Some(Map::from([("contains", verbatim(text))]).into())
                    }
                    ("exist" | "ok", None) => Some(exists().into()),
                    _ => None,
                };
                if let Some(test) = test {
                    answer.check.header.insert(header.as_str(), test);
                    return true;
                }
            }
            _ => {}
        }
        self.holds_that(of, name, is_equal, with, is_not, answer)
    }

    /// The same as a condition over what is extracted.
    fn holds_that(
        &mut self,
        of: &Js,
        name: &str,
        is_equal: bool,
        with: &[Js],
        is_not: bool,
        answer: &mut Answer,
    ) -> bool {
        let (of, name) = match (of, name) {
            (Js::Json(path), "length" | "lengthOf") => (Js::Count(path.clone()), "equal"),
            (Js::Json(path), "empty") => (Js::Count(path.clone()), "zero"),
            (of, name) => (of.clone(), name),
        };
        let is_equal = is_equal || name == "equal";
        let Some(left) = self.looked_at(&of, false, answer) else { return false };
        let Some(values) = with.iter().map(Js::expression).collect::<Option<Vec<String>>>() else {
            return false;
        };
        let made = match (name, values.as_slice()) {
            (_, [value]) if is_equal => format!("{left} {} {value}", if is_not { "!=" } else { "==" }),
            ("zero", []) => format!("{left} {} 0", if is_not { ">" } else { "==" }),
            ("above" | "greaterThan" | "gt", [value]) => format!("{left} > {value}"),
            ("below" | "lessThan" | "lt", [value]) => format!("{left} < {value}"),
            ("least" | "gte" | "greaterThanOrEqual", [value]) => format!("{left} >= {value}"),
            ("most" | "lte" | "lessThanOrEqual", [value]) => format!("{left} <= {value}"),
            ("within", [low, high]) => format!("{left} >= {low} and {left} <= {high}"),
            ("include" | "contain" | "includes" | "contains" | "string", [value]) => {
                format!("contains({left}, {value})")
            }
            ("oneOf", [_, ..]) => {
                let ways: Vec<String> = values.iter().map(|value| format!("{left} == {value}")).collect();
                ways.join(" or ")
            }
            ("exist" | "ok", []) => format!("exists({left})"),
            ("undefined" | "null", []) => format!("not exists({left})"),
            ("true", []) => left,
            ("false", []) => format!("not {left}"),
            _ => return false,
        };
        let is_done = (is_equal || name == "zero") && is_not;
        let made = if is_not && !is_done { format!("not ({made})") } else { made };
        if !answer.check.that.contains(&made) {
            answer.check.that.push(made);
        }
        true
    }

    fn of_response(&mut self, name: &str, with: &[Js], is_not: bool, answer: &mut Answer) -> bool {
        let texts: Option<Vec<String>> = with.iter().map(js_text).collect();
        let class = match name {
            "ok" | "success" => Some(Value::from("2xx")),
            "redirection" => Some("3xx".into()),
            "clientError" => Some("4xx".into()),
            "serverError" => Some("5xx".into()),
            "info" => Some("1xx".into()),
            "error" => Some(vec![Value::from("4xx"), "5xx".into()].into()),
            "created" => Some(201u64.into()),
            "accepted" => Some(202u64.into()),
            "badRequest" => Some(400u64.into()),
            "unauthorized" => Some(401u64.into()),
            "forbidden" => Some(403u64.into()),
            "notFound" => Some(404u64.into()),
            "rateLimited" => Some(429u64.into()),
            _ => None,
        };
        if let Some(class) = class {
            if name == "error" && is_not && answer.check.status.is_none() {
                answer.check.status = Some(vec![Value::from("2xx"), "3xx".into()].into());
                return true;
            }
            if is_not || !with.is_empty() {
                return false;
            }
            answer.check.status.get_or_insert(class);
            return true;
        }
        match (name, texts.as_deref()) {
            ("status", Some([status])) => {
                let Some(status) = status.parse().ok().or_else(|| code_of(status)) else { return false };
                self.holds(0, &Js::Status, "equal", &[Js::Literal(Json::from(status as u64))], is_not, answer)
            }
            ("header", Some([header])) if !is_not => {
                if answer.check.header.get(header).is_none() {
                    answer.check.header.insert(header.as_str(), exists());
                }
                true
            }
            ("header", Some([header, _])) => {
                self.holds(0, &Js::Header(header.clone()), "equal", &with[1..], is_not, answer)
            }
            ("json", Some([])) if !is_not => {
                answer.check.header.insert("Content-Type", Map::from([("contains", "json")]));
                true
            }
            ("body", Some([_])) if !is_not && answer.check.body.is_none() => {
                let text = with.first().and_then(js_text).unwrap_or_default();
                answer.check.body = Some(verbatim(&text).into());
                true
            }
            ("jsonBody", Some([path, ..])) if !is_not => {
                let path = format!("$.{}", path.trim_start_matches("$."));
                match with {
                    [_] => self.holds(0, &Js::Json(path), "exist", &[], false, answer),
                    [_, value] => {
                        self.holds(0, &Js::Json(path), "equal", std::slice::from_ref(value), false, answer)
                    }
                    _ => false,
                }
            }
            _ => false,
        }
    }

    /// What is looked at as an expression: a variable that it is extracted into. `misses`: it may well be missing.
    pub(super) fn looked_at(&mut self, of: &Js, misses: bool, answer: &mut Answer) -> Option<String> {
        if let Some(expression) = of.expression() {
            return Some(expression);
        }
        let source = extraction(of)?;
        let quiet = may_miss(source.clone(), "clear").map(Value::Map);
        let is_known = |value: &Value| *value == source || Some(value) == quiet.as_ref();
        if let Some(known) = answer.extract.entries().iter().find(|entry| is_known(&entry.value)) {
            return Some(known.key.clone());
        }
        let wanted = match of {
            Js::Status => "status".to_owned(),
            Js::Body => "body".to_owned(),
            Js::Count(path) => format!("{}_count", last(path)),
            Js::Json(path) => last(path),
            Js::Header(name) | Js::Cookie(name) => name_of(name).to_lowercase(),
            _ => return None,
        };
        // no variable of the collection has this name
        let ours = self.draft.variable(&format!("answer {wanted}"));
        let ours = if answer.extract.get(&ours).is_some() {
            let number = answer.extract.len();
            self.draft.variable(&format!("answer {wanted} {number}"))
        } else {
            ours
        };
        answer.extract.insert(ours.as_str(), quiet.filter(|_| misses).unwrap_or(source));
        Some(ours)
    }

    /// How slow an answer may be, as an objective.
    pub(super) fn slow(&mut self, answer: &Answer, label: &str) {
        let Some((line, most)) = answer.slowest_ms else { return };
        let is_plain = label.chars().all(|c| c.is_ascii_alphanumeric() || " _-/.".contains(c))
            && label.starts_with(|c: char| c.is_ascii_alphabetic())
            && !["group ", "errors", "rate"].iter().any(|word| label.starts_with(word));
        let would = if is_plain && most > 0.0 && self.objectives.len() < 500 {
            let objective = Value::from(format!("{label} p99 < {most}ms"));
            if !self.objectives.contains(&objective) {
                self.objectives.push(objective);
            }
            format!("failed where the answer takes longer than {most} ms: it is an objective, of 99 in 100")
        } else {
            format!("failed where the answer takes longer than {most} ms: write an objective for it")
        };
        self.draft.tell(line, &answer.element, would, false);
    }
}

fn exists() -> Map {
    Map::from([("exists", true)])
}

/// How a value is kept.
pub(super) fn extraction(value: &Js) -> Option<Value> {
    Some(match value {
        Js::Json(path) => path.as_str().into(),
        Js::Count(path) => Map::from([("count", format!("{path}[*]"))]).into(),
        Js::Header(name) => Map::from([("header", verbatim(name))]).into(),
        Js::Cookie(name) => Map::from([("cookie", verbatim(name))]).into(),
        Js::Status => "status".into(),
        Js::Body => "body".into(),
        _ => return None,
    })
}

/// A value that is set: as it is, or as an expression.
pub(super) fn plain_value(value: &Js, expression: &str) -> Value {
    match value {
        Js::Literal(Json::String(text)) => verbatim(text).into(),
        Js::Literal(value) if !value.is_null() => Scalar::unquoted(&value.to_string()).into(),
        _ => format!("${{{expression}}}").into(),
    }
}

fn scalar(value: &Json) -> Option<Value> {
    Some(match value {
        Json::Null => Value::default(),
        Json::String(text) => verbatim(text).into(),
        Json::Bool(value) => (*value).into(),
        Json::Number(number) => Scalar::unquoted(&number.to_string()).into(),
        _ => return None,
    })
}

/// What `check: json` has for an expectation.
fn json_check(name: &str, is_equal: bool, literal: Option<&Json>, with: &[Js]) -> Option<Value> {
    let one = |key: &str, value: Value| Some(Value::Map(Map::from([(key, value)])));
    match (name, literal) {
        (_, Some(value)) if is_equal => scalar(value),
        ("a" | "an", Some(Json::String(kind))) => {
            let kinds = ["string", "number", "boolean", "null", "array", "object"];
            kinds.contains(&kind.as_str()).then(|| kind.as_str().into()).and_then(|kind| one("type", kind))
        }
        ("include" | "contain" | "string", Some(Json::String(text))) => {
            one("contains", verbatim(text).into())
        }
        ("true" | "false", _) if with.is_empty() => Some((name == "true").into()),
        ("null", _) if with.is_empty() => Some(Value::default()),
        ("undefined", _) if with.is_empty() => one("absent", true.into()),
        ("exist" | "ok", _) if with.is_empty() => one("exists", true.into()),
        _ => None,
    }
}

fn put_status(answer: &mut Answer, all: &[u64]) -> bool {
    answer.check.status = Some(match all {
        [] => return false,
        [one] => (*one).into(),
        all => all.iter().map(|one| Value::from(*one)).collect::<Vec<_>>().into(),
    });
    true
}

fn js_text(value: &Js) -> Option<String> {
    match value {
        Js::Literal(Json::String(text)) => Some(text.clone()),
        Js::Literal(value) if value.is_number() => Some(value.to_string()),
        _ => None,
    }
}

/// The status of a reason phrase.
pub(super) fn code_of(reason: &str) -> Option<u16> {
    const REASONS: [(&str, u16); 9] = [
        ("OK", 200),
        ("Created", 201),
        ("Accepted", 202),
        ("No Content", 204),
        ("Bad Request", 400),
        ("Unauthorized", 401),
        ("Forbidden", 403),
        ("Not Found", 404),
        ("Conflict", 409),
    ];
    REASONS.iter().find(|(known, _)| known.eq_ignore_ascii_case(reason)).map(|(_, code)| *code)
}

/// The last name of a path.
fn last(path: &str) -> String {
    let name = path.rsplit(['.', '[']).next().unwrap_or_default();
    let name: String = name.chars().filter(|c| c.is_alphanumeric() || *c == '_').collect();
    if name.is_empty() || name.starts_with(|c: char| c.is_ascii_digit()) {
        "item".into()
    } else {
        name_of(&name)
    }
}
