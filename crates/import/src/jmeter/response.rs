//! Assertions: what must hold of an answer.

use tidemark_scenario::source::{Map, Request, Scalar, Value};

use super::tree::Node;
use super::{Making, Scope};
use crate::checks::ranges;

/// Bits of `Assertion.test_type`.
const MATCH: u32 = 1;
const CONTAINS: u32 = 2;
const NOT: u32 = 4;
const EQUALS: u32 = 8;
const SUBSTRING: u32 = 16;
const OR: u32 = 32;
/// Any status at all.
const ANY_STATUS: &str = "100-599";

impl<'a> Making<'a> {
    /// Checks and extractions of a request.
    pub(super) fn answer(&mut self, scope: &Scope<'a>, request: &mut Request) {
        self.extractions(scope, request);
        for &node in &scope.nodes {
            match node.kind() {
                "ResponseAssertion" => self.response(node, request),
                "JSONPathAssertion" => {
                    let path = self.json_path(node.text("JSON_PATH"), node);
                    self.json_check(node, path, request);
                }
                "JMESPathAssertion" => {
                    // another path is told where it stands
                    if let Some(path) = super::extract::jmes_path(node.text("JMES_PATH")) {
                        self.json_check(node, Some(path), request);
                    }
                }
                "SizeAssertion" => self.size(node, request),
                "DurationAssertion" => self.duration(node, "DurationAssertion.duration", request),
                "SampleTimeout" => self.duration(node, "InterruptTimer.timeout", request),
                _ => {}
            }
        }
    }

    fn response(&mut self, node: &'a Node<'a>, request: &mut Request) {
        let kind = node.text("Assertion.test_type").trim().parse::<u32>().unwrap_or(SUBSTRING);
        let texts = node.list("Asserion.test_strings").iter().chain(node.list("Assertion.test_strings"));
        let texts: Vec<&str> = texts.map(|text| text.text.as_str()).collect();
        let field = node.text("Assertion.test_field").trim();
        let field = field.strip_prefix("Assertion.").unwrap_or(field);
        let scope = node.text("Assertion.scope").trim();
        // also where nothing is compared
        if node.flag("Assertion.assume_success") && request.check.get("status").is_none() {
            request.check.insert("status", ANY_STATUS);
        }
        if texts.is_empty() {
            return;
        }
        if !matches!(scope, "" | "all" | "parent") {
            return self.not_checked(node, &texts);
        }
        match field {
            "response_code" => {
                if !self.status(node, kind, &texts, request) {
                    self.not_checked(node, &texts);
                }
            }
            "response_data" | "response_data_as_document" if field == "response_data" => {
                let mut conditions = Vec::new();
                for text in &texts {
                    let Some(condition) = self.body_condition(node, kind, text, request, texts.len() == 1)
                    else {
                        return self.not_checked(node, &texts);
                    };
                    conditions.extend(condition);
                }
                if kind & OR != 0 && conditions.len() > 1 {
                    conditions = vec![conditions.join(" or ")];
                }
                conditions.into_iter().for_each(|condition| add_that(request, &condition));
            }
            "response_headers" => {
                for text in &texts {
                    if !self.header_check(node, kind, text, request) {
                        return self.not_checked(node, &texts);
                    }
                }
            }
            _ => self.not_checked(node, &texts),
        }
    }

    fn not_checked(&mut self, node: &Node<'_>, texts: &[&str]) {
        let field = node.text("Assertion.test_field");
        let field = field.strip_prefix("Assertion.").unwrap_or(field).replace('_', " ");
        let texts: Vec<String> = texts.iter().take(3).map(|text| super::shown(text)).collect();
        self.leave_out(node, &format!("checked the {field} against {}", texts.join(", ")));
    }

    /// Statuses: `200`, `200|302`, `2..`, `2\d\d`.
    fn status(&mut self, node: &Node<'_>, kind: u32, texts: &[&str], request: &mut Request) -> bool {
        let mut good: Vec<u32> = Vec::new();
        let statuses = 100..600u32;
        let mut sets: Vec<Vec<u32>> = Vec::new();
        for text in texts {
            let Some(known) = self.known(text, node) else { return false };
            let holds: Box<dyn Fn(&str) -> bool> = match kind & (MATCH | CONTAINS | EQUALS | SUBSTRING) {
                EQUALS => Box::new(move |status| status == known),
                SUBSTRING => Box::new(move |status| status.contains(&known)),
                of => {
                    let whole = if of == MATCH { format!("^(?:{known})$") } else { known };
                    let Ok(regex) = regex::Regex::new(&whole) else { return false };
                    Box::new(move |status| regex.is_match(status))
                }
            };
            sets.push(
                statuses.clone().filter(|status| holds(&status.to_string()) != (kind & NOT != 0)).collect(),
            );
        }
        for status in statuses {
            let mut of = sets.iter().map(|set| set.contains(&status));
            let holds = if kind & OR != 0 { of.any(|is| is) } else { of.all(|is| is) };
            if holds {
                good.push(status);
            }
        }
        // JMeter counts 400 and more as failed whatever is checked, unless it is told not to look
        if !node.flag("Assertion.assume_success") {
            good.retain(|status| (200..400).contains(status));
        }
        if good.is_empty() {
            return false;
        }
        let good = ranges(&good);
        // one check of the status is all that a request has
        let other = request.check.get("status").filter(|known| known.as_str() != Some(ANY_STATUS));
        if other.is_some_and(|known| *known != good) {
            return false;
        }
        request.check.insert("status", good);
        true
    }

    /// A check of the body; or conditions, where it is none of the language's.
    fn body_condition(
        &mut self,
        node: &Node<'_>,
        kind: u32,
        text: &str,
        request: &mut Request,
        is_only: bool,
    ) -> Option<Vec<String>> {
        let of = kind & (MATCH | CONTAINS | EQUALS | SUBSTRING);
        let is_not = kind & NOT != 0;
        let is_free = is_only && !is_not && request.check.get("body").is_none();
        if matches!(of, EQUALS | SUBSTRING) {
            if is_free {
                let word = if of == EQUALS { "equals" } else { "contains" };
                let text = self.text(text, node);
                request.check.insert("body", Map::from([(word, text)]));
                return Some(Vec::new());
            }
            let body = self.body(request);
            let text = self.expression(text, node)?.text;
            let holds =
                if of == EQUALS { format!("{body} == {text}") } else { format!("contains({body}, {text})") };
            return Some(vec![if is_not { format!("not ({holds})") } else { holds }]);
        }
        let mut pattern = match self.pattern(text, node) {
            Some(pattern) => pattern,
            None => {
                // an expression of plain letters around variables is a text
                let is_plain = !text
                    .replace("${", "")
                    .replace('}', "")
                    .contains(['\\', '[', '(', '*', '+', '?', '|', '^', '{', '.']);
                if of != CONTAINS || !is_plain {
                    return None;
                }
                return self.body_condition(node, (kind & !CONTAINS) | SUBSTRING, text, request, is_only);
            }
        };
        if of == MATCH {
            pattern = format!("^(?:{pattern})$");
        }
        if is_free {
            // a text of letters says itself
            let is_text = of == CONTAINS && regex::escape(&pattern) == pattern;
            let word = if is_text { "contains" } else { "matches" };
            request.check.insert("body", Map::from([(word, pattern)]));
            return Some(Vec::new());
        }
        let found = self.own_name("found");
        let of = Map::from([
            ("regex", Value::from(pattern)),
            ("group", 0u64.into()),
            ("when missing", "clear".into()),
        ]);
        request.extract.insert(found.clone(), of);
        Some(vec![if is_not { format!("not exists({found})") } else { format!("exists({found})") }])
    }

    /// The variable with the whole body.
    fn body(&mut self, request: &mut Request) -> String {
        let known = request.extract.entries().iter().find(|entry| entry.value.as_str() == Some("body"));
        if let Some(known) = known {
            return known.key.clone();
        }
        let name = match &self.group.body {
            Some(name) => name.clone(),
            None => self.own_name("answer"),
        };
        self.group.body = Some(name.clone());
        request.extract.insert(name.clone(), "body");
        name
    }

    /// `Content-Type: application/json`, `application/json` of all headers' text.
    fn header_check(&mut self, node: &Node<'_>, kind: u32, text: &str, request: &mut Request) -> bool {
        let of = kind & (MATCH | CONTAINS | EQUALS | SUBSTRING);
        let Some((name, value)) = text.split_once(':') else { return false };
        let is_token = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-');
        let is_plain = of == SUBSTRING
            || regex::escape(value) == value
            || !value.contains(['\\', '[', '(', '*', '+', '?', '|', '^']);
        if kind & (NOT | OR) != 0 || of == EQUALS || of == MATCH || !is_token || !is_plain {
            return false;
        }
        let value = self.text(value.trim(), node);
        let mut headers = match request.check.remove("header") {
            Some(Value::Map(headers)) => headers,
            _ => Map::new(),
        };
        let is_free = headers.get(name).is_none();
        if is_free {
            headers.insert(name, Map::from([("contains", value)]));
        }
        request.check.insert("header", headers);
        is_free
    }

    fn json_check(&mut self, node: &Node<'_>, path: Option<String>, request: &mut Request) {
        let expected = node.text("EXPECTED_VALUE");
        // to JMESPath what is not there is null
        let is_jmes = node.kind() == "JMESPathAssertion";
        let told = node.text(if is_jmes { "JMES_PATH" } else { "JSON_PATH" });
        let would = format!("checked the JSON at {told}");
        let (is_valued, is_regex) =
            (node.flag("JSONVALIDATION"), node.flag("ISREGEX") || node.text("ISREGEX").is_empty());
        let Some(path) = path else {
            return self.leave_out(node, &would);
        };
        let is_inverted = node.flag("INVERT");
        let test: Value = if node.flag("EXPECT_NULL") && is_valued {
            match is_inverted {
                true => Map::from([("exists", Value::from(true))]).into(),
                false if is_jmes => Map::from([("exists", false)]).into(),
                false => Scalar::null().into(),
            }
        } else if is_inverted && is_valued {
            return self.leave_out(node, &format!("{would}, that it is not {}", super::shown(expected)));
        } else if !is_valued && is_jmes {
            Map::from([("exists", !is_inverted)]).into()
        } else if is_inverted {
            Map::from([("absent", true)]).into()
        } else if !is_valued {
            // there, be it null
            let count = self.own_name("found");
            request.extract.insert(count.clone(), Map::from([("count", path)]));
            return add_that(request, &format!("{count} > 0"));
        } else if is_regex && regex::escape(expected) != expected {
            match self.pattern(expected, node) {
                Some(pattern) => Map::from([("matches", format!("^(?:{pattern})$"))]).into(),
                None => return self.leave_out(node, &would),
            }
        } else {
            let text = self.text(expected, node);
            Value::from(text)
        };
        let mut json = match request.check.remove("json") {
            Some(Value::Map(json)) => json,
            _ => Map::new(),
        };
        if json.get(&path).is_some() {
            self.leave_out(node, &would);
        } else {
            json.insert(path, test);
        }
        request.check.insert("json", json);
    }

    fn size(&mut self, node: &Node<'_>, request: &mut Request) {
        let field = node.text("Assertion.test_field");
        let size = self.expression(node.text("SizeAssertion.size").trim(), node);
        let sign = match node.text("SizeAssertion.operator").trim() {
            "1" | "" => "==",
            "2" => "!=",
            "3" => ">",
            "4" => "<",
            "5" => ">=",
            _ => "<=",
        };
        let is_body = field.ends_with("response_data");
        let Some(size) = size.filter(|_| is_body) else {
            let what = if is_body { "body" } else { "whole answer, headers included," };
            return self.leave_out(
                node,
                &format!("checked the size of the {what} ({sign} {})", node.text("SizeAssertion.size")),
            );
        };
        let body = self.body(request);
        add_that(request, &format!("len({body}) {sign} {}", super::function::number(&size)));
    }

    fn duration(&mut self, node: &Node<'_>, name: &str, request: &mut Request) {
        let Some(most) = self.number(node.text(name), node).filter(|ms| *ms >= 1.0) else {
            return self.leave_out(node, "checked how long its answer took");
        };
        self.note(format!(
            "{}: an answer that takes longer is a timeout here, and not waited for",
            node.title()
        ));
        let most = super::group::time(most / 1e3);
        request.timeout = Some(match request.timeout.take() {
            Some(known) => shorter(known, most),
            None => most,
        });
    }
}

/// The shorter of two times.
pub(super) fn shorter(one: Scalar, other: Scalar) -> Scalar {
    let length = |time: &Scalar| tidemark_scenario::units::parse_duration(time.as_str()).ok();
    if length(&one) <= length(&other) { one } else { other }
}

/// One more condition.
fn add_that(request: &mut Request, condition: &str) {
    let condition = Value::from(format!("${{{condition}}}"));
    let value = match request.check.remove("that") {
        Some(Value::List(mut all)) => {
            all.push(condition);
            Value::List(all)
        }
        Some(one) => Value::List(vec![one, condition]),
        None => condition,
    };
    request.check.insert("that", value);
}
