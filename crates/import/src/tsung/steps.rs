//! What a user does, in order: requests, pauses, loops, conditions.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use tidemark_scenario::source::{Map, Step, Think, Value, verbatim};
use tidemark_scenario::units::Time;

use super::machines::{Server, server};
use super::{Making, nested, shown};
use crate::plan::quoted;
use crate::xml::Element;

/// Most steps inside each other: each is up to four levels of the scenario, which has 64.
const DEPTH_MAX: usize = 10;
/// Most groups inside each other, as of the scenario language.
const GROUPS_MAX: usize = 4;
/// How often a loop is done at most, where the plan does not say.
const REPEATS: u64 = 20;
/// Longest pause.
const PAUSE_MAX_S: f64 = 366.0 * 86_400.0;

/// What is known of a variable's values.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Variable {
    /// Letters, digits and the like: the same however it is encoded.
    Plain,
    /// A list of them.
    List,
    Any,
}

/// A pause, seconds.
enum Pause {
    Fixed(f64),
    Exponential(f64),
    Between(f64, f64),
}

impl Pause {
    /// The longest, or one that hardly any is longer than.
    fn longest_s(&self) -> f64 {
        match self {
            Pause::Fixed(s) | Pause::Between(_, s) => *s,
            Pause::Exponential(mean) => mean * 3.0,
        }
    }
}

/// Where a session is in its steps.
pub(super) struct State {
    /// Where requests go that name no host.
    pub(super) base: Option<Server>,
    /// Variables that are set so far, as Tsung calls them.
    variables: HashMap<String, Variable>,
    /// Those of them that only steps set which may not be done.
    unsure: HashSet<String>,
    /// Those that had no sure value before they were set, in order.
    began: Vec<String>,
    /// Those that a `foreach` goes over.
    lists: HashSet<String>,
    depth: usize,
    groups: usize,
    /// Where a WebSocket is open, if one is.
    pub(super) open: Option<Option<Server>>,
    /// Whether it is kept while another protocol is spoken.
    pub(super) is_kept: bool,
}

impl State {
    pub(super) fn new(session: &Element, base: Option<Server>) -> State {
        let mut lists = HashSet::new();
        lists_of(session, &mut lists);
        let variables = HashMap::from([("tsung_userid".to_owned(), Variable::Plain)]);
        State {
            base,
            variables,
            unsure: HashSet::new(),
            began: Vec::new(),
            lists,
            depth: 0,
            groups: 0,
            open: None,
            is_kept: false,
        }
    }

    pub(super) fn set(&mut self, name: &str, kind: Variable) {
        let is_known = self.variables.insert(name.to_owned(), kind).is_some();
        if self.unsure.remove(name) || !is_known {
            self.began.push(name.to_owned());
        }
    }

    pub(super) fn is_set(&self, name: &str) -> bool {
        self.variables.contains_key(name)
    }

    /// Whether it is set only by steps that may not have been done.
    pub(super) fn is_unsure(&self, name: &str) -> bool {
        self.unsure.contains(name)
    }

    pub(super) fn is_plain(&self, name: &str) -> bool {
        self.variables.get(name) == Some(&Variable::Plain)
    }

    /// Whether a `foreach` goes through it.
    pub(super) fn is_gone_through(&self, name: &str) -> bool {
        self.lists.contains(name)
    }

    fn is_list(&self, name: &str) -> bool {
        self.variables.get(name) == Some(&Variable::List)
    }
}

fn lists_of(element: &Element, lists: &mut HashSet<String>) {
    if element.name == "foreach" {
        lists.extend(element.attribute("in").map(|name| name.trim().to_owned()));
    }
    element.children.iter().for_each(|child| lists_of(child, lists));
}

impl Making<'_> {
    pub(super) fn steps(&mut self, elements: &[Element], state: &mut State) -> Vec<Step> {
        let mut steps = Vec::new();
        for element in elements {
            steps.extend(self.step(element, state));
        }
        steps
    }

    fn step(&mut self, element: &Element, state: &mut State) -> Vec<Step> {
        match element.name.as_str() {
            "request" => self.request(element, state),
            "thinktime" => self.think(element, state),
            "setdynvars" => self.set_variables(element, state),
            "change_type" => {
                self.change_type(element, state);
                Vec::new()
            }
            "set_option" => {
                self.set_option(element);
                Vec::new()
            }
            "abort" => self.abort(element),
            "interaction" => {
                self.known(element, &["action", "id"]);
                self.tell(element, "measured the time between two users", false);
                Vec::new()
            }
            "transaction" | "for" | "repeat" | "if" | "foreach" if state.depth == DEPTH_MAX => {
                self.tell(
                    element,
                    format!("done its steps: it is more than {DEPTH_MAX} steps deep"),
                    super::has_request(element),
                );
                Vec::new()
            }
            "transaction" => self.deeper(state, |making, state| making.transaction(element, state)),
            "for" => self.deeper(state, |making, state| making.counted(element, state)),
            "repeat" => self.deeper(state, |making, state| making.repeat(element, state)),
            "if" => self.deeper(state, |making, state| making.condition(element, state)),
            "foreach" => self.deeper(state, |making, state| making.each(element, state)),
            _ => {
                self.unknown(element, true);
                Vec::new()
            }
        }
    }

    fn deeper(
        &mut self,
        state: &mut State,
        of: impl FnOnce(&mut Self, &mut State) -> Vec<Step>,
    ) -> Vec<Step> {
        state.depth += 1;
        let steps = of(self, state);
        state.depth -= 1;
        steps
    }

    /// Steps that are done several times or perhaps not at all: a WebSocket that they open ends with them.
    fn inner(&mut self, element: &Element, children: &[Element], state: &mut State) -> Vec<Step> {
        let is_open = state.open.is_some();
        let mut steps = self.steps(children, state);
        if !is_open && state.open.take().is_some() {
            self.tell(element, "kept a WebSocket open past these steps: it is closed at their end", false);
            steps.push(close());
        }
        steps
    }

    fn transaction(&mut self, element: &Element, state: &mut State) -> Vec<Step> {
        self.known(element, &["name"]);
        if state.groups == GROUPS_MAX {
            self.tell(
                element,
                format!("measured its requests together: groups are at most {GROUPS_MAX} deep"),
                false,
            );
            return self.steps(&element.children, state);
        }
        state.groups += 1;
        let before = self.requests;
        let steps = self.steps(&element.children, state);
        state.groups -= 1;
        if self.requests == before {
            if !super::has_request(element) {
                self.tell(element, "measured the time of what has no request", false);
            }
            return steps;
        }
        let name = verbatim(element.attribute("name").unwrap_or("transaction"));
        vec![Step::Other(Map::from([("group", Value::from(name)), ("steps", nested(steps))]))]
    }

    /// `for`: Tsung does its steps at least once, then asks whether the counter has reached the end.
    fn counted(&mut self, element: &Element, state: &mut State) -> Vec<Step> {
        self.known(element, &["var", "from", "to", "incr"]);
        let name = element.attribute("var").unwrap_or_default().trim().to_owned();
        let step = element.attribute("incr").map_or(Some(1), |step| step.trim().parse::<i64>().ok());
        let Some(step) = step.filter(|step| *step > 0) else {
            self.tell(
                element,
                "repeated its steps: an increment that is no number above 0 has no end",
                super::has_request(element),
            );
            return Vec::new();
        };
        let from = self.bound(element, "from", state);
        let to = self.bound(element, "to", state);
        let (Some(from), Some(to)) = (from, to) else {
            self.tell(element, "repeated its steps: its bounds cannot be read", super::has_request(element));
            return Vec::new();
        };
        let variable = self.variable(&name);
        state.set(&name, Variable::Plain);
        let mut inner = self.inner(element, &element.children, state);
        let numbers = from.parse::<i64>().ok().zip(to.parse::<i64>().ok());
        let times = match numbers {
            Some((from, to)) => {
                let span = to.saturating_sub(from).max(0) as u64;
                Value::from(span.div_ceil(step as u64) + 1)
            }
            None if step == 1 => format!("${{max({to} - {from}, 0) + 1}}").into(),
            None => format!("${{max(ceil(({to} - {from}) / {step}), 0) + 1}}").into(),
        };
        if inner.is_empty() {
            // the counter is left where it ends
            return vec![set(&variable, if numbers.is_some() { to } else { format!("${{{to}}}") })];
        }
        let mut map = Map::from([("repeat", times)]);
        if from == "0" && step == 1 {
            map.insert("as", variable.as_str());
        } else {
            let round = self.own_variable(&format!("{variable}_round"));
            let counted = match step {
                1 => format!("${{{round} + {from}}}"),
                step if from == "0" => format!("${{{round} * {step}}}"),
                step => format!("${{{round} * {step} + {from}}}"),
            };
            map.insert("as", round.as_str());
            let set = Map::from([(variable.as_str(), counted)]);
            inner.insert(0, Step::Other(Map::from([("set", set)])));
        }
        map.insert("steps", nested(inner));
        vec![Step::Other(map)]
    }

    /// A number, or the variable that has it.
    fn bound(&mut self, element: &Element, name: &str, state: &State) -> Option<String> {
        let text = element.attribute(name)?.trim();
        if let Ok(number) = text.parse::<i64>() {
            return Some(number.to_string());
        }
        let variable = text.strip_prefix("%%_")?.strip_suffix("%%")?;
        (state.is_set(variable) && !variable.contains("%%")).then(|| self.variable(variable))
    }

    /// `repeat` with `while` or `until` at its end: a variable says whether it goes on.
    fn repeat(&mut self, element: &Element, state: &mut State) -> Vec<Step> {
        self.known(element, &["name", "max_repeat"]);
        let most = element.attribute("max_repeat").map_or(Some(REPEATS), |most| most.trim().parse().ok());
        let is_test = |child: &Element| ["while", "until"].contains(&child.name.as_str());
        let at = element.children.iter().rposition(is_test).unwrap_or(0);
        let (children, behind) = element.children.split_at(at);
        let is_last = !behind.iter().skip(1).any(super::has_request);
        let (Some(most), Some(last)) = (most, behind.first().filter(|last| is_test(last) && is_last)) else {
            self.tell(
                element,
                "repeated its steps: there is no while or until at its end, or max_repeat is no number",
                super::has_request(element),
            );
            return Vec::new();
        };
        let mut inner = self.inner(element, children, state);
        let condition = self.test(last, state);
        if inner.is_empty() {
            return inner;
        }
        let Some((variable, condition)) = condition else {
            // a variable that is not set ends it
            return inner;
        };
        let name = self.own_variable(element.attribute("name").unwrap_or("again"));
        let goes_on = match last.name.as_str() {
            "while" => condition,
            // where the variable has no value, Tsung stops
            _ => format!("exists({variable}) and not ({condition})"),
        };
        inner.push(set(&name, format!("${{{goes_on}}}")));
        let when = Map::from([("when", Value::from(format!("${{{name}}}"))), ("steps", nested(inner))]);
        let repeat = Map::from([
            // the first time is not counted
            ("repeat", Value::from(most.saturating_add(1))),
            ("steps", nested(vec![Step::Other(when)])),
        ]);
        vec![set(&name, Value::from(true)), Step::Other(repeat)]
    }

    /// What `if`, `while` and `until` ask: the variable, and the condition as an expression.
    fn test(&mut self, element: &Element, state: &State) -> Option<(String, String)> {
        self.known(element, &["var", "eq", "neq", "gt", "gte", "lt", "lte"]);
        let of = element.attribute("var").unwrap_or_default().trim();
        let (name, index) = match of.strip_suffix(']').and_then(|of| of.split_once('[')) {
            Some((name, index)) => (name, index.parse::<usize>().ok().filter(|index| *index > 0)),
            None => (of, None),
        };
        if !state.is_set(name) {
            self.tell(
                element,
                format!("asked for the variable {:?}, which is not set before", shown(name)),
                false,
            );
            return None;
        }
        let variable = self.variable(name);
        let variable = match index {
            Some(index) => format!("{variable}[{}]", index - 1),
            None => variable,
        };
        let signs = [("eq", "=="), ("neq", "!="), ("gt", ">"), ("gte", ">="), ("lt", "<"), ("lte", "<=")];
        let mut found = signs.iter().filter_map(|(key, sign)| Some((sign, element.attribute(key)?)));
        let Some((sign, value)) = found.next() else {
            self.tell(element, "compared a variable with nothing", false);
            return None;
        };
        let is_order = !["==", "!="].contains(sign);
        let value = match value.trim().parse::<f64>() {
            Ok(number) if is_order && number.is_finite() => value.trim().to_owned(),
            _ if is_order => {
                self.tell(element, format!("compared with {:?}, which is no number", shown(value)), false);
                return None;
            }
            _ => quoted(value),
        };
        Some((variable.clone(), format!("{variable} {sign} {value}")))
    }

    /// Steps that may not be done: a variable that only they set may have no value behind them.
    fn perhaps(&mut self, element: &Element, state: &mut State) -> Vec<Step> {
        let before = state.began.len();
        let steps = self.inner(element, &element.children, state);
        state.unsure.extend(state.began[before..].iter().cloned());
        steps
    }

    fn condition(&mut self, element: &Element, state: &mut State) -> Vec<Step> {
        let test = self.test(element, state);
        let of = element.attribute("var").unwrap_or_default();
        let is_unsure = state.is_unsure(of.split('[').next().unwrap_or_default().trim());
        let inner = if test.is_some() {
            self.perhaps(element, state)
        } else {
            self.inner(element, &element.children, state)
        };
        if inner.is_empty() {
            return inner;
        }
        match test {
            Some((variable, condition)) => {
                // without a value Tsung does the steps
                let condition = match is_unsure {
                    true => format!("not exists({variable}) or {condition}"),
                    false => condition,
                };
                let when = Value::from(format!("${{{condition}}}"));
                vec![Step::Other(Map::from([("when", when), ("steps", nested(inner))]))]
            }
            // Tsung does the steps then
            None => inner,
        }
    }

    fn each(&mut self, element: &Element, state: &mut State) -> Vec<Step> {
        self.known(element, &["name", "in", "include", "exclude"]);
        let list = element.attribute("in").unwrap_or_default().trim().to_owned();
        let item = element.attribute("name").unwrap_or_default().trim().to_owned();
        if !state.is_set(&list) {
            self.tell(
                element,
                format!("gone through {:?}, which is not set before", shown(&list)),
                super::has_request(element),
            );
            return Vec::new();
        }
        let is_list = state.is_list(&list);
        state.set(&item, Variable::Any);
        let variable = self.variable(&item);
        let mut inner = if is_list {
            self.perhaps(element, state)
        } else {
            self.inner(element, &element.children, state)
        };
        if inner.is_empty() {
            return vec![set(&variable, format!("${{{}}}", self.variable(&list)))];
        }
        for (key, is_included) in [("include", true), ("exclude", false)] {
            let Some(pattern) = element.attribute(key).filter(|pattern| !pattern.is_empty()) else {
                continue;
            };
            match condition_of_pattern(&variable, pattern) {
                Some(condition) => {
                    let condition = if is_included { condition } else { format!("not {condition}") };
                    let when = Value::from(format!("${{{condition}}}"));
                    inner = vec![Step::Other(Map::from([("when", when), ("steps", nested(inner))]))];
                }
                None => self.tell(
                    element,
                    format!(
                        "left out items: {key} {:?} has no counterpart, so all are taken",
                        shown(pattern)
                    ),
                    true,
                ),
            }
        }
        if !is_list {
            // of what is no list, Tsung takes the whole once
            inner.insert(0, set(&variable, format!("${{{}}}", self.variable(&list))));
            return inner;
        }
        let each = format!("{variable} in ${{{}}}", self.variable(&list));
        vec![Step::Other(Map::from([("each", Value::from(each)), ("steps", nested(inner))]))]
    }

    /// How long the pauses among some elements are together, seconds: random ones nearly at their longest.
    pub(super) fn pauses_s(&self, elements: &[Element]) -> f64 {
        const TIMES: f64 = 10.0;
        let of = |element: &Element| {
            let number =
                |name: &str| element.attribute(name).and_then(|text| text.trim().parse::<f64>().ok());
            match element.name.as_str() {
                "thinktime" => self.pause(element).map_or(0.0, |pause| pause.longest_s()),
                "for" => {
                    let times = number("from").zip(number("to")).map(|(from, to)| {
                        (to - from).max(0.0) / number("incr").unwrap_or(1.0).max(1.0) + 1.0
                    });
                    times.unwrap_or(TIMES) * self.pauses_s(&element.children)
                }
                "repeat" | "foreach" => {
                    number("max_repeat").unwrap_or(TIMES) * self.pauses_s(&element.children)
                }
                _ => self.pauses_s(&element.children),
            }
        };
        elements.iter().map(of).sum()
    }

    fn think(&mut self, element: &Element, state: &State) -> Vec<Step> {
        self.known(element, &["random", "value", "min", "max"]);
        let value = element.attribute("value").unwrap_or_default().trim();
        match value {
            "wait_global" => {
                self.tell(element, "waited until all users are connected", false);
                return Vec::new();
            }
            "wait_bidi" => {
                self.tell(element, "waited until the server sends something", false);
                return Vec::new();
            }
            _ => {}
        }
        if value.contains("%%") {
            let text = self.text(element, value, true, state);
            let Some(hole) = text.only_hole() else {
                self.tell(element, "waited for a time that cannot be read", false);
                return Vec::new();
            };
            self.tell(
                element,
                format!(
                    "waited for as many seconds as the variable {} says: pauses hold no variables",
                    hole.expression
                ),
                false,
            );
            return Vec::new();
        }
        let Some(pause) = self.pause(element) else {
            self.tell(element, "waited for a time that cannot be read", false);
            return Vec::new();
        };
        let seconds = |s: f64| Value::from(time(s));
        let time = match pause {
            Pause::Fixed(s) => seconds(s),
            Pause::Exponential(mean) => Map::from([("exponential", seconds(mean))]).into(),
            Pause::Between(low, high) => {
                Map::from([("between", Value::List(vec![seconds(low), seconds(high)]))]).into()
            }
        };
        vec![Think { time, ..Think::default() }.into()]
    }

    /// What a pause is, with what the option says of all.
    fn pause(&self, element: &Element) -> Option<Pause> {
        let usual = self.options.think.as_ref();
        let own = usual.filter(|_| self.options.override_think).unwrap_or(element);
        let number = |of: &Element, name: &str| {
            let number = of.attribute(name)?.trim().parse::<f64>().ok();
            number.filter(|s| s.is_finite() && (0.0..=PAUSE_MAX_S).contains(s))
        };
        let is_bare = ["value", "min", "max"].iter().all(|name| own.attribute(name).is_none());
        let of = if is_bare { usual.unwrap_or(own) } else { own };
        let random = own.attribute("random").or(usual.and_then(|usual| usual.attribute("random")));
        match (number(of, "min").zip(number(of, "max")), number(of, "value")) {
            (Some((low, high)), None) if low <= high => Some(Pause::Between(low, high)),
            (None, Some(mean)) if random == Some("true") => Some(Pause::Exponential(mean)),
            (None, Some(value)) => Some(Pause::Fixed(value)),
            _ => None,
        }
    }

    /// From here on another protocol is spoken, or another server driven.
    fn change_type(&mut self, element: &Element, state: &mut State) {
        self.known(element, &["new_type", "host", "port", "server_type", "store", "restore", "bidi"]);
        let of = |name: &str| element.attribute(name).unwrap_or_default().trim();
        state.is_kept = of("store") == "true";
        let has_variable = of("host").contains("%%") || of("port").contains("%%");
        match server(of("host"), of("port"), of("server_type")) {
            Some((server, _)) if !has_variable => state.base = Some(server),
            _ => self.tell(
                element,
                "gone on at a server that cannot be named here: requests behind it go where those before went",
                true,
            ),
        }
    }

    fn set_option(&mut self, element: &Element) {
        let name = shown(element.attribute("name").unwrap_or_default());
        self.tell(element, format!("set {name} for one kind of sessions"), false);
    }

    fn abort(&mut self, element: &Element) -> Vec<Step> {
        self.known(element, &["type"]);
        if element.attribute("type") == Some("all") {
            self.tell(element, "ended the whole test: only the session ends", false);
        }
        vec![end()]
    }
}

/// Closes a WebSocket.
pub(super) fn close() -> Step {
    Step::Other(Map::from([("ws close", 1000u64)]))
}

/// Ends the session.
pub(super) fn end() -> Step {
    Step::Other(Map::from([("end", "session")]))
}

/// Sets a variable.
pub(super) fn set(name: &str, value: impl Into<Value>) -> Step {
    Step::Other(Map::from([("set", Map::from([(name, value.into())]))]))
}

pub(super) fn time(seconds: f64) -> tidemark_scenario::source::Scalar {
    Time(Duration::from_micros((seconds * 1e6).round() as u64)).into()
}

/// A pattern that is but a text, perhaps at the begin, as a condition on a variable.
fn condition_of_pattern(variable: &str, pattern: &str) -> Option<String> {
    let pattern = pattern.strip_suffix(".*$").or(pattern.strip_suffix(".*")).unwrap_or(pattern);
    let (is_begin, rest) = match pattern.strip_prefix('^') {
        Some(rest) => (true, rest),
        None => (false, pattern),
    };
    let text = super::pattern::literal_of(rest)?;
    let function = if is_begin { "starts_with" } else { "contains" };
    Some(format!("{function}({variable}, {})", quoted(&text)))
}
