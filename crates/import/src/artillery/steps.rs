//! What a user does, in order.

use std::collections::HashSet;

use tidemark_scenario::plan::PARALLEL_REQUESTS_MAX;
use tidemark_scenario::source::{Map, Parallel, Step, Think, Value};
use tidemark_scenario::units::Time;

use super::Making;
use crate::draft::{is_typed, seconds};
use crate::plan::{nested, quoted, shown};
use crate::tree::{Content, Node};

/// Most loops inside each other.
const DEPTH_MAX: usize = 10;
/// How many items a list that is not known may have, for how long a user takes.
const LENGTH: f64 = 10.0;
/// Methods of requests.
const METHODS: [&str; 7] = ["get", "post", "put", "patch", "delete", "head", "options"];
/// Functions that a scenario calls around its requests.
const HOOKS: [&str; 5] = ["beforeScenario", "afterScenario", "beforeRequest", "afterResponse", "onError"];
/// Keys of a step that belong to a loop.
const LOOP: [&str; 5] = ["count", "over", "loopValue", "loopElement", "whileTrue"];

/// Where a session is in its steps.
pub(super) struct State {
    pub(super) name: String,
    /// What is done once at the beginning.
    takes: Vec<String>,
    begins: Map,
    /// Variables that are used, and those that answers or loops set.
    pub(super) used: Vec<String>,
    pub(super) set: Vec<String>,
    /// The variables of the loop around a step: its number, and its element.
    pub(super) counter: Option<String>,
    pub(super) element: Option<String>,
    depth: usize,
    /// How often a step is done.
    times: f64,
    /// How long the pauses are, seconds.
    pub(super) lasts_s: f64,
    /// Whether the steps are done once, before all users.
    pub(super) is_before: bool,
}

impl State {
    pub(super) fn new(name: &str) -> State {
        State {
            name: name.to_owned(),
            takes: Vec::new(),
            begins: Map::new(),
            used: Vec::new(),
            set: Vec::new(),
            counter: None,
            element: None,
            depth: 0,
            times: 1.0,
            lasts_s: 0.0,
            is_before: false,
        }
    }

    /// A variable that has a value from the beginning.
    pub(super) fn begin(&mut self, name: &str, value: Value) {
        if self.begins.get(name).is_none() {
            self.begins.insert(name, value);
        }
    }

    /// A row that is taken at the beginning.
    pub(super) fn take(&mut self, feeder: &str) {
        if !self.takes.iter().any(|known| known == feeder) {
            self.takes.push(feeder.to_owned());
        }
    }
}

impl Making<'_> {
    /// The steps of a scenario, or of what is done before all; none where nothing can be sent.
    pub(super) fn flow(&mut self, scenario: &Node, state: &mut State) -> Vec<Step> {
        let element = format!("scenario {:?}", shown(&state.name));
        scenario.ignore(&["name", "weight"]);
        let engine = scenario.text("engine").unwrap_or("http");
        if engine != "http" && engine != "ws" {
            let would = format!("done its steps by the engine {:?}", shown(engine));
            self.draft.tell(scenario.line, &element, would, true);
            scenario.done();
            return Vec::new();
        }
        for hook in HOOKS {
            if let Some(node) = scenario.get(hook) {
                self.function(node, hook, &element);
            }
        }
        let flow = scenario.list("flow");
        let steps =
            if engine == "ws" { self.messages(scenario, flow, state) } else { self.steps(flow, state) };
        let all = nested(steps.clone());
        if !has_request(&all) {
            let would = "been a kind of user: nothing of it can be sent here, so others come in its place";
            self.draft.tell(scenario.line, &element, would, true);
            return Vec::new();
        }
        let mut set = HashSet::new();
        names_set(&all, &mut set);
        for name in std::mem::take(&mut state.used) {
            // what would have captured it was told
            if !set.contains(&name) {
                let comment = "the script would have captured it";
                self.draft.settings.map.insert_with_comment(comment, name, crate::UNSET);
            }
        }
        let mut all: Vec<Step> = Vec::new();
        all.extend(state.takes.drain(..).map(|feeder| Step::Other(Map::from([("take", feeder)]))));
        if !state.begins.is_empty() {
            all.push(Step::Other(Map::from([("set", std::mem::take(&mut state.begins))])));
        }
        all.extend(steps);
        all
    }

    pub(super) fn steps(&mut self, flow: &[Node], state: &mut State) -> Vec<Step> {
        let mut steps = Vec::new();
        for node in flow {
            steps.extend(self.step(node, state));
        }
        steps
    }

    fn step(&mut self, node: &Node, state: &mut State) -> Vec<Step> {
        if let Some(steps) = self.common(node, state, |making, flow, state| making.steps(flow, state)) {
            return steps;
        }
        let Content::Map(entries) = &node.content else { return self.no_step(node) };
        match entries.iter().find(|(key, _)| METHODS.contains(&key.to_ascii_lowercase().as_str())) {
            Some((method, _)) => match node.get(method) {
                Some(request) => self.request(method, request, state),
                None => self.no_step(node),
            },
            None => self.no_step(node),
        }
    }

    pub(super) fn no_step(&mut self, node: &Node) -> Vec<Step> {
        let keys: Vec<&str> = match &node.content {
            Content::Map(entries) => entries.iter().map(|(key, _)| key.as_str()).collect(),
            _ => node.as_str().into_iter().collect(),
        };
        self.draft.tell(
            node.line,
            &format!("step {}", shown(&keys.join(", "))),
            "done a step that is not known here",
            true,
        );
        node.done();
        Vec::new()
    }

    /// What steps of all engines have; none where it is another one.
    pub(super) fn common(
        &mut self,
        node: &Node,
        state: &mut State,
        inner: impl Fn(&mut Self, &[Node], &mut State) -> Vec<Step>,
    ) -> Option<Vec<Step>> {
        if let Some(think) = node.get("think") {
            let jitter = node.get("jitter").is_some();
            return Some(self.think(think, jitter, state).into_iter().collect());
        }
        if node.get("loop").is_some() {
            return Some(self.looped(node, state, inner));
        }
        if let Some(log) = node.get("log") {
            self.draft.tell(
                log.line,
                "log",
                format!("printed {:?}", shown(log.as_str().unwrap_or_default())),
                false,
            );
            log.done();
            return Some(Vec::new());
        }
        if let Some(function) = node.get("function") {
            let element = format!("scenario {:?}", shown(&state.name));
            self.function(function, "function", &element);
            return Some(Vec::new());
        }
        if let Some(parallel) = node.get("parallel") {
            let limit = node.number("limit").filter(|limit| *limit >= 1.0);
            let steps = inner(self, parallel.items(), state);
            let is_request = |step: &Step| matches!(step, Step::Request(_));
            if (1..=PARALLEL_REQUESTS_MAX).contains(&steps.len()) && steps.iter().all(is_request) {
                let at_most = limit.map(|limit| (limit as u64).into());
                return Some(vec![Parallel { requests: steps, at_most, ..Parallel::default() }.into()]);
            }
            let would =
                "done its steps at once, of which some are no mere requests: here one after the other";
            self.draft.tell(parallel.line, "parallel", would, false);
            return Some(steps);
        }
        None
    }

    /// Functions of the script's own code.
    pub(super) fn function(&mut self, node: &Node, kind: &str, element: &str) {
        for one in node.one_or_many() {
            let name = shown(one.as_str().unwrap_or_default());
            let would = format!("called {name:?} of {:?} ({kind})", self.processor);
            self.draft.tell(one.line, element, would, true);
        }
        node.done();
    }

    fn think(&mut self, node: &Node, jitter: bool, state: &mut State) -> Option<Step> {
        let text = node.as_str().unwrap_or_default();
        let written = self.written_out(text);
        let Some(seconds) = seconds(&written) else {
            // a time of a user's own has no counterpart
            self.draft.tell(node.line, "think", format!("waited for {:?}", shown(text)), false);
            return None;
        };
        state.lasts_s += seconds * state.times;
        if jitter {
            self.draft.tell(node.line, "think", "drawn its length at random around this one", false);
        }
        let time = Value::Scalar(Time(std::time::Duration::from_secs_f64(seconds)).into());
        Some(Think { time, ..Think::default() }.into())
    }

    fn looped(
        &mut self,
        node: &Node,
        state: &mut State,
        inner: impl Fn(&mut Self, &[Node], &mut State) -> Vec<Step>,
    ) -> Vec<Step> {
        let element = "loop";
        if state.depth == DEPTH_MAX {
            self.draft.tell(node.line, element, format!("been more than {DEPTH_MAX} loops deep"), true);
            node.done();
            return Vec::new();
        }
        if let Some(function) = node.get("whileTrue") {
            self.function(function, "whileTrue", element);
        }
        let count = node.text("count").map(str::to_owned);
        let counter = node.text("loopValue").map(str::to_owned);
        let over = node.get("over");
        let named = node.text("loopElement").map(str::to_owned);
        let (before, times) = ((state.counter.clone(), state.element.clone()), state.times);
        // a loop within another has a number of its own
        let own = match state.depth {
            0 => "$loopCount".to_owned(),
            depth => format!("$loopCount {}", depth + 1),
        };
        let counter = self.draft.variable(counter.as_deref().unwrap_or(&own));
        let (mut map, mut first) = (Map::new(), None);
        if let Some(over) = over {
            let item = self.draft.variable(named.as_deref().unwrap_or("$loopElement"));
            let Some(list) = self.list(over, state) else {
                self.draft.tell(over.line, element, "gone over what is no list that is known here", true);
                node.done();
                return Vec::new();
            };
            match list {
                Listed::Variable(list) => {
                    map.insert("each", format!("{item} in ${{{list}}}"));
                    state.times = times * LENGTH;
                }
                Listed::Items(length, of) => {
                    map.insert("repeat", length);
                    state.times = times * length as f64;
                    first = Some(Map::from([(item.as_str(), of.replace("INDEX", &counter))]));
                }
            }
            state.element = Some(item);
            node.ignore(&["count"]);
        } else {
            let text = count.unwrap_or_default();
            let written = self.written_out(&text);
            let times_of = match written.trim().parse::<i64>() {
                Ok(number) if number > 0 => {
                    state.times = times * number as f64;
                    Some(Value::from(number))
                }
                Ok(_) => None,
                Err(_) => {
                    let text = self.text(node, &text, state);
                    let hole = text.only_hole().filter(|hole| !hole.expression.starts_with('\''));
                    hole.map(|hole| format!("${{{}}}", hole.expression).into())
                }
            };
            let Some(times_of) = times_of else {
                self.draft.tell(
                    node.line,
                    element,
                    format!("repeated its steps {:?} times", shown(&text)),
                    true,
                );
                node.done();
                return Vec::new();
            };
            map.insert("repeat", times_of);
        }
        state.counter = Some(counter.clone());
        state.depth += 1;
        let mut steps = inner(self, node.list("loop"), state);
        state.depth -= 1;
        (state.counter, state.element) = before;
        state.times = times;
        node.ignore(&LOOP);
        if steps.is_empty() {
            return steps;
        }
        if let Some(first) = first {
            steps.insert(0, Step::Other(Map::from([("set", first)])));
        }
        let uses = nested(steps);
        let is_used = uses_variable(&uses, &counter);
        if map.get("repeat").is_some() && is_used {
            map.insert("as", counter);
        } else if is_used {
            self.draft.tell(node.line, element, "counted its rounds while it goes over a list", true);
        }
        map.insert("steps", uses);
        vec![Step::Other(map)]
    }

    /// What a loop goes over.
    fn list(&mut self, over: &Node, state: &mut State) -> Option<Listed> {
        if let Some(name) = over.as_str() {
            // a variable of the configuration is one value, drawn from its list
            let is_captured = self.assigned.contains(name) && !self.values.contains_key(name);
            let ours = self.draft.variable(name);
            state.used.extend(is_captured.then(|| ours.clone()));
            return is_captured.then_some(Listed::Variable(ours));
        }
        let texts: Vec<&str> = over.items().iter().map(Node::as_str).collect::<Option<_>>()?;
        let mark =
            [",", "|", ";", "~"].into_iter().find(|mark| !texts.iter().any(|text| text.contains(mark)))?;
        if texts.is_empty() || texts.iter().any(|text| text.contains("{{")) {
            return None;
        }
        let part = format!("part({}, '{mark}', INDEX)", quoted(&texts.join(mark)));
        let is_number = texts.iter().all(|text| is_typed(text) && text.parse::<i64>().is_ok());
        let of = if is_number { format!("${{number({part})}}") } else { format!("${{{part}}}") };
        Some(Listed::Items(texts.len(), of))
    }
}

/// What a loop goes over.
enum Listed {
    Variable(String),
    /// How many items there are, and the one at INDEX.
    Items(usize, String),
}

/// Whether anything is sent in steps.
fn has_request(value: &Value) -> bool {
    let is_verb =
        |key: &str| key == "ws connect" || METHODS.iter().any(|method| method.to_uppercase() == key);
    match value {
        Value::Scalar(_) => false,
        Value::List(items) => items.iter().any(has_request),
        Value::Map(map) => {
            let first = map.entries().first();
            first.is_some_and(|entry| is_verb(&entry.key))
                || ["steps", "parallel"].iter().any(|key| map.get(key).is_some_and(has_request))
        }
    }
}

/// The variables that steps set.
fn names_set(value: &Value, names: &mut HashSet<String>) {
    match value {
        Value::Scalar(_) => {}
        Value::List(items) => items.iter().for_each(|item| names_set(item, names)),
        Value::Map(map) => {
            for entry in map.entries() {
                match (entry.key.as_str(), &entry.value) {
                    ("extract" | "set", Value::Map(inner)) => {
                        names.extend(inner.entries().iter().map(|entry| entry.key.clone()));
                    }
                    ("js", Value::Scalar(code)) => {
                        let words = code.as_str().split("vars.").skip(1);
                        let is_end = |c: char| !(c.is_ascii_alphanumeric() || c == '_');
                        names.extend(words.filter_map(|rest| rest.split(is_end).next()).map(str::to_owned));
                    }
                    ("as" | "each", Value::Scalar(name)) => {
                        names.extend(name.as_str().split(' ').next().map(str::to_owned));
                    }
                    ("steps" | "parallel", inner) => names_set(inner, names),
                    _ => {}
                }
            }
        }
    }
}

/// Whether an expression in a value names a variable.
fn uses_variable(value: &Value, name: &str) -> bool {
    match value {
        Value::Scalar(scalar) => scalar.as_str().split("${").skip(1).any(|hole| {
            let hole = hole.split('}').next().unwrap_or_default();
            hole.split(|c: char| !(c.is_alphanumeric() || c == '_')).any(|word| word == name)
        }),
        Value::List(items) => items.iter().any(|item| uses_variable(item, name)),
        Value::Map(map) => map.entries().iter().any(|entry| {
            uses_variable(&entry.value, name) || uses_variable(&entry.key.as_str().into(), name)
        }),
    }
}
