//! What is looked for in an answer: variables, and texts that must or must not be there.

use tidemark_scenario::source::{Map, Step, Value, verbatim};

use super::pattern::{
    Test, behind_version, column, escaped, header_of, is_all, is_good, json_path, literal_of, of_old_pattern,
    regex, source_of_path, test_of,
};
use super::steps::{State, Variable, end, set, time};
use super::{Making, nested, shown};
use crate::plan::quoted;
use crate::xml::Element;

/// What kind of answer it is.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Kind {
    Http,
    Message,
    Rows,
}

/// What is looked for in one answer.
#[derive(Default)]
pub(super) struct Answer {
    pub(super) extract: Map,
    pub(super) check: Map,
    that: Vec<String>,
    after: Vec<Step>,
    /// Variables that are taken from others.
    derived: Vec<Step>,
    again: Option<Again>,
}

/// A request that is made again.
struct Again {
    condition: String,
    most: u64,
    pause_s: f64,
}

impl Answer {
    /// The checks as they stand in a step.
    pub(super) fn checks(&mut self) -> Map {
        let that: Vec<Value> = std::mem::take(&mut self.that).into_iter().map(Value::from).collect();
        let mut check = std::mem::take(&mut self.check);
        match that.len() {
            0 => {}
            1 => check.insert("that", that.into_iter().next().unwrap_or_default()),
            _ => check.insert("that", Value::List(that)),
        }
        check
    }

    /// A step with what follows from its answer.
    pub(super) fn around(self, step: Step, making: &mut Making<'_>) -> Vec<Step> {
        let mut steps = vec![step];
        steps.extend(self.derived);
        let Some(again) = self.again else {
            steps.extend(self.after);
            return steps;
        };
        let name = making.own_variable("again");
        steps.push(set(&name, format!("${{{}}}", again.condition)));
        if again.pause_s > 0.0 {
            let pause = Map::from([("think", Value::Scalar(time(again.pause_s)))]);
            steps.push(when(&name, vec![Step::Other(pause)]));
        }
        let repeat = Map::from([
            ("repeat", Value::from(again.most.saturating_add(1))),
            ("steps", nested(vec![when(&name, steps)])),
        ]);
        let mut steps = vec![set(&name, true), Step::Other(repeat)];
        steps.extend(self.after);
        steps
    }
}

fn when(condition: &str, steps: Vec<Step>) -> Step {
    let condition = Value::from(format!("${{{condition}}}"));
    Step::Other(Map::from([("when", condition), ("steps", nested(steps))]))
}

impl Making<'_> {
    /// What the plan looks for in the answer to a request.
    pub(super) fn answer(&mut self, request: &Element, kind: Kind, state: &mut State) -> Answer {
        let mut answer = Answer::default();
        for child in &request.children {
            match child.name.as_str() {
                "dyn_variable" => self.dynamic(child, kind, &mut answer, state),
                "match" => self.matched(child, kind, &mut answer, state),
                _ => {}
            }
        }
        answer
    }

    /// A variable out of the answer.
    fn dynamic(&mut self, element: &Element, kind: Kind, answer: &mut Answer, state: &mut State) {
        self.known(element, &["name", "xpath", "re", "jsonpath", "pgsql_expr", "regexp", "header", "decode"]);
        let name = element.attribute("name").unwrap_or_default().trim().to_owned();
        if name.is_empty() {
            return self.tell(element, "set a variable that has no name", true);
        }
        let ours = self.variable(&name);
        let is_set = state.is_set(&name);
        state.set(&name, Variable::Any);
        if element.attribute("decode").is_some_and(|decode| decode != "false") {
            self.tell(element, "decoded entities of HTML in the value (&amp;amp;)", false);
        }
        let is_list = state.is_gone_through(&name);
        let of = |key: &str| element.attribute(key).filter(|value| !value.is_empty());
        let source: Option<Value> = if let Some(path) = of("jsonpath") {
            json_path(path).map(|path| source_of_path(&path, is_list)).filter(is_good)
        } else if let Some(header) = of("header").filter(|_| kind == Kind::Http) {
            match header.split_once('/') {
                None => Some(Map::from([("header", verbatim(header))]).into()),
                Some((header, part)) => {
                    self.part_of_header(header, part, (&ours, is_set), answer);
                    return;
                }
            }
        } else if let Some(expression) = of("pgsql_expr").filter(|_| kind == Kind::Rows) {
            column(expression).map(Value::from)
        } else if kind == Kind::Rows || of("xpath").is_some() {
            None
        } else {
            let pattern = match (of("re"), of("regexp")) {
                (Some(pattern), _) => pattern.to_owned(),
                (None, Some(old)) => of_old_pattern(old),
                (None, None) => {
                    format!(r#"name=["']{}["'][^>]*\svalue=["']([^"']*)["']"#, escaped(&name))
                }
            };
            self.of_pattern(&pattern, kind)
        };
        match source {
            Some(source) => {
                if matches!(&source, Value::Map(map) if map.get("all").is_some()) {
                    state.set(&name, Variable::List);
                }
                answer.extract.insert(ours, source);
            }
            None => {
                let what = ["xpath", "re", "regexp", "jsonpath", "pgsql_expr", "header"]
                    .iter()
                    .find_map(|key| Some(format!("{key} {:?}", shown(of(key)?))))
                    .unwrap_or_else(|| "the field of a form".into());
                self.tell(
                    element,
                    format!(
                        "set the variable {:?} from {what}, which has no counterpart: a setting stands for it",
                        shown(&name)
                    ),
                    true,
                );
                let wanted = self.free_of_variables(&format!("{ours}_value"));
                let comment = format!("what the variable {} had in Tsung: put a value here", shown(&name));
                let setting = self.settings.named(
                    format!("line {} {name}", element.line),
                    &wanted,
                    &wanted,
                    &comment,
                    crate::UNSET,
                );
                answer.derived.push(set(&ours, format!("${{{setting}}}")));
            }
        }
    }

    /// `www-authenticate/nonce`: what stands in quotes behind a name in a header.
    fn part_of_header(
        &mut self,
        header: &str,
        part: &str,
        (ours, is_set): (&str, bool),
        answer: &mut Answer,
    ) {
        let source =
            Map::from([("header", Value::from(verbatim(header))), ("when missing", Value::from("clear"))]);
        let source = Value::from(source);
        let known = answer.extract.entries().iter().find(|entry| entry.value == source);
        let whole = match known.map(|entry| entry.key.clone()) {
            Some(known) => known,
            None => self.own_variable(&header.replace('-', "_")),
        };
        answer.extract.insert(whole.as_str(), source);
        // it stands beside this status, which would fail otherwise
        if header.eq_ignore_ascii_case("www-authenticate") && answer.check.get("status").is_none() {
            answer.check.insert("status", 401u64);
        }
        let begin = quoted(&format!("{part}=\""));
        let value = format!("before(after({whole}, {begin}), '\"')");
        // without the header it stays as it was
        let value = if is_set { format!("if(exists({whole}), {value}, {ours})") } else { value };
        answer.derived.push(set(ours, format!("${{{value}}}")));
    }

    /// The source of a pattern's first group.
    fn of_pattern(&self, pattern: &str, kind: Kind) -> Option<Value> {
        if kind == Kind::Http
            && let Some((header, rest)) = header_of(pattern)
        {
            let rest = rest.trim_start();
            if header == "set-cookie" {
                let (cookie, rest) = rest.split_once('=')?;
                let is_name = !cookie.is_empty() && literal_of(cookie).is_some();
                return (is_name && is_all(rest))
                    .then(|| Map::from([("cookie", literal_of(cookie).unwrap_or_default())]).into());
            }
            return is_all(rest).then(|| Map::from([("header", header)]).into());
        }
        if kind == Kind::Http && pattern.trim_start_matches('^').starts_with("HTTP/") {
            let rest = behind_version(pattern)?;
            return ["([0-9]+)", "(\\d+)", "([0-9]{3})", "(\\d{3})", "([0-9]*)", "(\\d*)", "(...)"]
                .contains(&rest.trim_end())
                .then(|| "status".into());
        }
        let value = Value::from(regex(pattern));
        is_good(&value).then_some(value)
    }

    /// A text that is looked for, and what follows from it.
    fn matched(&mut self, element: &Element, kind: Kind, answer: &mut Answer, state: &State) {
        self.known(
            element,
            &[
                "do",
                "when",
                "subst",
                "loop_back",
                "name",
                "max_loop",
                "max_restart",
                "sleep_loop",
                "apply_to_content",
                "skip_headers",
            ],
        );
        element.children.iter().for_each(|child| self.unknown(child, false));
        let action = element.attribute("do").unwrap_or("continue");
        let when = element.attribute("when").unwrap_or("match");
        let pattern = element.text.trim();
        let says = format!("looked for {:?} and, on {}, done {}", shown(pattern), shown(when), shown(action));
        // what changes which requests follow
        let is_flow = ["abort", "abort_test", "restart", "loop"].contains(&action);
        if element.attribute("apply_to_content").is_some_and(|apply| apply != "undefined") {
            return self.tell(element, format!("{says}, behind a function of its own"), is_flow);
        }
        if kind == Kind::Rows || !["match", "nomatch"].contains(&when) {
            return self.tell(element, says, is_flow);
        }
        let test = if element.attribute("subst") == Some("true") && pattern.contains("%%") {
            let text = self.text(element, pattern, true, state);
            let is_text = pattern.split("%%").step_by(2).all(|part| literal_of(part).is_some());
            if !is_text {
                return self.tell(element, format!("{says}: a pattern with variables"), is_flow);
            }
            let body = self.own_variable("body");
            answer.extract.insert(body.as_str(), "body");
            Some(Test::Expression(format!("contains({body}, {})", text.expression())))
        } else {
            test_of(pattern, element.attribute("skip_headers") == Some("http"), kind)
        };
        let Some(test) = test else {
            return self.tell(element, format!("{says}: this pattern has no counterpart"), is_flow);
        };
        let is_match = when == "match";
        match action {
            // Tsung only counts: what is looked for is expected
            "continue" => self.expect(test, true, answer),
            // what is logged is not expected
            "log" | "dump" => self.expect(test, !is_match, answer),
            "abort" | "abort_test" => {
                if action == "abort_test" {
                    self.tell(element, "ended the whole test: only the session ends", false);
                }
                let condition = self.decision(test, is_match, answer);
                // as Tsung counts it
                let counted = Map::from([("match_stop", Map::from([("counter", 1u64)]))]);
                let stop = vec![Step::Other(Map::from([("measure", counted)])), end()];
                answer.after.push(self::when(&condition, stop));
            }
            "loop" => {
                let whole = |name: &str, usual: u64| {
                    element.attribute(name).map_or(Some(usual), |text| text.trim().parse().ok())
                };
                let (most, pause) = (whole("max_loop", 20), whole("sleep_loop", 5));
                if let (Some(most), Some(pause), Some(0), true) =
                    (most, pause, whole("loop_back", 0), answer.again.is_none() && kind == Kind::Http)
                {
                    let condition = self.decision(test, is_match, answer);
                    answer.again = Some(Again { condition, most, pause_s: pause as f64 });
                } else {
                    self.tell(element, says, true);
                }
            }
            _ => self.tell(element, says, true),
        }
    }

    /// Adds a check.
    fn expect(&mut self, test: Test, is_there: bool, answer: &mut Answer) {
        if is_there {
            match &test {
                Test::Status(status) if answer.check.get("status").is_none() => {
                    return answer.check.insert("status", u64::from(*status));
                }
                Test::Body(pattern) if answer.check.get("body").is_none() => {
                    let test = match literal_of(pattern) {
                        Some(text) => Map::from([("contains", verbatim(&text))]),
                        None => Map::from([("matches", pattern.as_str())]),
                    };
                    return answer.check.insert("body", test);
                }
                Test::Header(name, pattern) if answer.check.get("header").is_none() => {
                    let test = Map::from([("matches", pattern.as_str())]);
                    return answer.check.insert("header", Map::from([(name.as_str(), test)]));
                }
                _ => {}
            }
        }
        let found = self.found(test, answer);
        answer.that.push(goal(&found, is_there));
    }

    /// What decides which steps follow. Of an answer that fails nothing is kept, so that no status may fail it.
    fn decision(&mut self, test: Test, is_match: bool, answer: &mut Answer) -> String {
        if answer.check.get("status").is_none() {
            answer.check.insert("status", "100-599");
        }
        let found = self.found(test, answer);
        if is_match { found } else { goal(&found, false) }
    }

    /// A condition that holds where it was found.
    fn found(&mut self, test: Test, answer: &mut Answer) -> String {
        match test {
            Test::Expression(expression) => expression,
            Test::Status(status) => {
                let name = self.own_variable("status");
                answer.extract.insert(name.as_str(), "status");
                format!("{name} == {status}")
            }
            Test::Header(header, pattern) => {
                let name = self.own_variable(&header.replace('-', "_"));
                let source = Map::from([("header", header.as_str()), ("when missing", "clear")]);
                answer.extract.insert(name.as_str(), source);
                match literal_of(&pattern) {
                    Some(text) => format!("contains(default({name}, ''), {})", quoted(&text)),
                    None => format!("exists({name})"),
                }
            }
            Test::Body(pattern) => {
                let name = self.own_variable("found");
                let mut source = regex(&pattern);
                source.insert("when missing", "clear");
                answer.extract.insert(name.as_str(), source);
                format!("exists({name})")
            }
        }
    }
}

/// A condition, or its contrary.
fn goal(found: &str, is_there: bool) -> String {
    match (is_there, found.split_once(" == ")) {
        (true, _) => found.to_owned(),
        (false, Some((name, value))) if !found.contains('(') => format!("{name} != {value}"),
        (false, _) => format!("not {found}"),
    }
}
