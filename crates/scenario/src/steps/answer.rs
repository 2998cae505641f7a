//! Keys of all steps that wait for an answer: what is kept of it, and what must hold of it.

use tidemark_wire::json;

use super::Step;
use crate::compile::Session;
use crate::grammar::Scalar::{Bool, Condition, Duration, Regex, Status, Template, Text, Word};
use crate::grammar::Shape::{Either, List, Map, Record as Of, Scalar, Tree};
use crate::grammar::kinds::{self, words};
use crate::grammar::record::{Kind, record};
use crate::grammar::{Key, Keys, Rule, Shape, key};
use crate::plan::{Check, Extraction, JsonTest, JsonType, RequestPlan, Source, TextTest, WhenMissing};
use crate::template::{self, Encoding};
use crate::yaml::{Content, Node, one_or_many};

pub(super) const LABEL: Key =
    key("label", Scalar(Text), "Name in the report; requests with the same one are counted together.");
pub(super) const TAGS: Key = key(
    "tags",
    Map(Keys::Text("tag names"), &Scalar(Text)),
    "Texts by name that stand beside its label in results, tables and metrics.",
);
pub(super) const AT: Key = key(
    "at",
    Scalar(Text),
    "Name of the target that it goes to, one of `targets`; `system` is the system, where it goes otherwise.",
);
pub(super) const TIMEOUT: Key = key("timeout", Scalar(Duration), "Longest time for the answer.");
pub(super) const EXTRACT: Key =
    key("extract", Map(Keys::Variable, &SOURCE), "What is kept of the answer, by variable.");

static SOURCE: Shape = Either(&[Scalar(Text), Extracted::SHAPE]);

words! {
    /// What becomes of a variable for which an answer has nothing.
    enum MissingWord {
        /// It is missing, too.
        Clear = "clear",
        /// It stays as it was.
        Keep = "keep",
        /// The request has failed.
        Fail = "fail",
    }
}

record! {
    /// Where a value comes from. Short: a JSON path for its first value, or `status` or `body`.
    struct Extracted("extraction", "an extraction", Rule::OneOf(&["json", "all", "count", "header", "cookie", "regex"])) {
        json: kinds::JsonPath = "The first value at a JSON path; null counts as nothing.",
        all: kinds::JsonPath = "All values at a JSON path, as a list.",
        count: kinds::JsonPath = "How many values are at a JSON path.",
        header: kinds::Text = "A header of the answer.",
        cookie: kinds::Text = "A cookie that the answer sets.",
        regex: kinds::Regex = "A group of the first match in the body.",
        group: kinds::Whole<0> = "Which group; by default the first if there is one, else the match.",
        when_missing: MissingWord as "when missing" =
            "The variable becomes missing, stays as it was, or the request counts as failed. Where nothing is said \
             it becomes missing, and the run's notes say how often.",
    }
}

record! {
    /// What must hold of an answer.
    pub(super) static CHECK("check", "a check") {
        "status": Either(&[Scalar(Status), List(&Scalar(Status), 1)]) => "Right statuses: 200, 2xx, 200-204.",
        "body": TEST => "The body: just this text, or a test.",
        "header": Map(Keys::Text("header names"), &TEST) => "Headers: just this text, or a test.",
        "json": Map(Keys::JsonPath, &JSON_TEST) =>
            "Values by JSON path: this value (`3` is a number, `\"3\"` a text or what is written so), or a test.",
        THAT,
    }
}

pub(super) const THAT: Key = key(
    "that",
    Either(&[Scalar(Condition), List(&Scalar(Condition), 1)]),
    "Expressions over the variables, after the extractions.",
);
pub(super) const TEST: Shape = Either(&[Scalar(Template), Of(|| &TEXT_TEST)]);

pub(super) static JSON_TEST: Shape = Either(&[Of(|| &VALUE_TEST), Tree]);

record! {
    /// What must hold of a value of JSON.
    static VALUE_TEST("json_test", "a test of JSON", Rule::OneOf(&["equals", "contains", "matches", "exists", "absent", "type"])) {
        "equals": Tree => "It is this value: numbers by their size, lists in order, members in any order.",
        "contains": Scalar(Template) => "This is somewhere in it, as a text.",
        "matches": Scalar(Regex) => "This regular expression matches somewhere in it, as a text.",
        "exists": Scalar(Bool) => "Whether it is there, and not null.",
        "absent": Scalar(Word(&["true"])) => "Nothing is there, not even null.",
        "type": Scalar(Word(&JsonType::NAMES)) => "Its type, in JSON's words.",
    }
}

record! {
    /// What must hold of a text.
    static TEXT_TEST("test", "a test", Rule::OneOf(&["equals", "contains", "matches", "exists"])) {
        "equals": Scalar(Template) => "It is just this.",
        "contains": Scalar(Template) => "This is somewhere in it.",
        "matches": Scalar(Regex) => "This regular expression matches somewhere in it.",
        "exists": Scalar(Word(&["true"])) => "It is there at all.",
    }
}

impl Session<'_, '_> {
    /// Reports what looks at headers, where an answer has a status and a body and nothing else.
    pub(super) fn check_headless(&self, step: &Step<'_>, plan: &RequestPlan, message: &str) {
        let of_head = |source: &Source| matches!(source, Source::Header(_) | Source::Cookie(_));
        if let Some(extract) = step.get("extract")
            && plan.extractions.iter().any(|extraction| of_head(&extraction.source))
        {
            self.reader.sink.error(extract, message);
        }
        if let Some(check) = step.get("check")
            && plan.checks.iter().any(|check| matches!(check, Check::Header(..)))
        {
            self.reader.sink.error(check, message);
        }
    }

    /// Reports what looks for cookies, where an answer has none.
    pub(super) fn check_cookieless(&self, step: &Step<'_>, plan: &RequestPlan, message: &str) {
        if let Some(extract) = step.get("extract")
            && plan.extractions.iter().any(|one| matches!(one.source, Source::Cookie(_)))
        {
            self.reader.sink.error(extract, message);
        }
    }

    pub(crate) fn extractions(&mut self, node: Option<&Node>) -> Vec<Extraction> {
        let mut extractions = Vec::new();
        for (name, node) in node.map(Node::entries).unwrap_or_default() {
            let Some(slot) = name.text().and_then(|name| self.scope.slot(name)) else { continue };
            let Some(said) = Extracted::read(node, self.reader) else { continue };
            let when_missing = match said.when_missing.value {
                None => WhenMissing::Tell,
                Some(MissingWord::Clear) => WhenMissing::Clear,
                Some(MissingWord::Keep) => WhenMissing::Keep,
                Some(MissingWord::Fail) => WhenMissing::Fail,
            };
            let Some(source) = self.source(said) else { continue };
            extractions.push(Extraction { slot, source, when_missing });
        }
        extractions
    }

    fn source(&self, said: Extracted<'_>) -> Option<Source> {
        let reader = self.reader;
        if said.node.text().is_some() {
            let text = reader.text(said.node)?;
            return match text.as_str() {
                "status" => Some(Source::Status),
                "body" => Some(Source::Body),
                _ if text.starts_with('$') => reader.json_path(said.node).map(Source::Json),
                _ => {
                    let message =
                        format!("\"{text}\" is neither a JSON path begun with $, nor status, nor body");
                    reader.sink.error(said.node, message);
                    None
                }
            };
        }
        let Extracted { json, all, count, header, cookie, regex, group, .. } = said;
        let of_json = json.value.map(Source::Json).or(all.value.map(Source::JsonAll));
        let of_head = header.value.map(|name| Source::Header(name.to_ascii_lowercase()));
        let source = of_json.or(count.value.map(Source::JsonCount)).or(of_head);
        source.or(cookie.value.map(Source::Cookie)).or_else(|| {
            let regex = regex.value?;
            let groups = regex.captures_len() - 1;
            let number = group.given()?.map_or(groups.min(1), |number| *number as usize);
            if number > groups {
                group.error(reader.sink, format!("the expression has only {groups} groups"));
            }
            Some(Source::Regex(regex, number))
        })
    }

    pub(crate) fn checks(&mut self, node: Option<&Node>) -> Vec<Check> {
        let mut checks = Vec::new();
        let Some(node) = node else { return checks };
        if let Some(status) = node.get("status") {
            let ranges = one_or_many(status).iter().filter_map(|node| self.reader.status(node));
            checks.push(Check::Status(ranges.collect()));
        }
        for (name, test) in node.get("header").map(Node::entries).unwrap_or_default() {
            let lower = name.text().unwrap_or_default().to_ascii_lowercase();
            checks.extend(self.test(test).map(|test| Check::Header(lower, test)));
        }
        checks.extend(self.checks_of_body(node));
        checks
    }

    /// Those that look at the body and at variables.
    pub(super) fn checks_of_body(&mut self, node: &Node) -> Vec<Check> {
        let mut checks = Vec::new();
        if let Some(body) = node.get("body") {
            checks.extend(self.test(body).map(Check::Body));
        }
        for (path, test) in node.get("json").map(Node::entries).unwrap_or_default() {
            checks.extend(self.reader.json_path(path).and_then(|path| self.json_check(path, test)));
        }
        for condition in node.get("that").map(one_or_many).unwrap_or_default() {
            let text = self.reader.expression(condition).map(|(_, text)| text.trim().to_owned());
            let expr = self.expression(condition);
            checks.extend(expr.zip(text).map(|(expr, text)| Check::Holds(expr, text)));
        }
        checks
    }

    fn json_check(&mut self, path: json::Path, node: &Node) -> Option<Check> {
        if !matches!(node.content, Content::Map(_)) {
            return Some(self.json_value(path, node));
        }
        if let Some(value) = node.get("equals") {
            Some(self.json_value(path, value))
        } else if let Some(word) = node.get("type") {
            let of_type = self.reader.word(word, &JsonType::NAMES).and_then(JsonType::from_name)?;
            Some(Check::JsonValue(path, JsonTest::Type(of_type)))
        } else if node.get("absent").is_some() {
            Some(Check::JsonValue(path, JsonTest::Absent))
        } else if let Some(exists) = node.get("exists") {
            Some(match self.reader.bool(exists)? {
                true => Check::Json(path, TextTest::Exists),
                false => Check::JsonValue(path, JsonTest::Empty),
            })
        } else {
            self.test(node).map(|test| Check::Json(path, test))
        }
    }

    /// That a value of JSON is this one. A text, and what is put together of texts, is compared as one.
    fn json_value(&mut self, path: json::Path, node: &Node) -> Check {
        let word = match &node.content {
            Content::Scalar { text, plain: true } => match text.as_str() {
                "" | "~" | "null" => Some("null"),
                text => Some(text)
                    .filter(|text| matches!(*text, "true" | "false") || json::is_number(text.as_bytes())),
            },
            Content::Scalar { .. } => None,
            Content::List(_) | Content::Map(_) => {
                let mut tree = template::Template::default();
                self.json(node, &mut tree);
                return Check::JsonValue(path, JsonTest::Is(tree));
            }
        };
        match word {
            Some(word) => Check::JsonValue(path, JsonTest::Is(template::Template::literal(word))),
            None => Check::Json(path, TextTest::Equals(self.template(node, Encoding::Raw))),
        }
    }

    pub(super) fn test(&mut self, node: &Node) -> Option<TextTest> {
        if node.text().is_some() {
            return Some(TextTest::Equals(self.template(node, Encoding::Raw)));
        }
        if let Some(text) = node.get("equals") {
            Some(TextTest::Equals(self.template(text, Encoding::Raw)))
        } else if let Some(text) = node.get("contains") {
            Some(TextTest::Contains(self.template(text, Encoding::Raw)))
        } else if let Some(pattern) = node.get("matches") {
            self.reader.regex(pattern).map(TextTest::Matches)
        } else {
            node.get("exists").map(|_| TextTest::Exists)
        }
    }
}
