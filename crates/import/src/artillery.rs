//! From a script of Artillery: its scenarios as sessions, its phases as an open load.
//!
//! Users arrive at the rates of the phases, each does one scenario. What has no counterpart is told with its line, never
//! skipped.

mod answer;
mod ensure;
mod http;
mod load;
mod payload;
mod steps;
#[cfg(test)]
mod tests;
mod text;
mod websocket;

use std::collections::{HashMap, HashSet};

use tidemark_scenario::source::{Defaults, Feeder, Map, Scalar, Scenario, Session, System, Value, verbatim};
use tidemark_scenario::units::Time;

use self::steps::State;
use crate::Imported;
use crate::draft::{Draft, seconds};
use crate::error::ImportError;
use crate::holes::has_marks;
use crate::plan::{Plan, is_address, shown};
use crate::postman::has_credentials;
use crate::tree::{Content, Node};

/// Most redirects in a row, as Artillery follows.
const FOLLOW: u64 = 10;
/// How long Artillery waits for an answer where nothing is said, seconds.
const TIMEOUT_S: f64 = 10.0;
/// Most sessions.
const SESSIONS_MAX: usize = 200;
/// Plugins that only count, show or send figures elsewhere.
const COUNTING: [&str; 9] = [
    "expect",
    "ensure",
    "metrics-by-endpoint",
    "publish-metrics",
    "apdex",
    "slack",
    "memory-inspector",
    "cloudwatch",
    "datadog",
];

/// The scenario of a script.
///
/// # Errors
/// Where it is no script, or has nothing that can be driven.
pub(crate) fn scenario(plan: &Plan<'_>) -> Result<Imported, ImportError> {
    let cannot = |reason: String| ImportError::new(format!("{}: {reason}", plan.name));
    if has_marks(plan.text) {
        return Err(cannot("it has characters for private use (U+F0000 to U+FFFFF): remove them".into()));
    }
    let is_json = plan.text.trim_start().starts_with('{');
    let root =
        if is_json { Node::from_json(plan.name, plan.text)? } else { Node::from_yaml(plan.name, plan.text)? };
    let config = root.get("config").ok_or_else(|| cannot("it has no config".into()))?;
    let all = config.map("environments");
    let names = all.map(Node::entries).unwrap_or_default();
    let environment = match plan.environment {
        None => None,
        Some(name) => {
            Some(names.iter().find(|(known, _)| known == name).map(|(_, node)| node).ok_or_else(|| {
                let known: Vec<&str> = names.iter().map(|(known, _)| known.as_str()).collect();
                cannot(format!("there is no environment {name:?} in it; it has: {}", known.join(", ")))
            })?)
        }
    };
    for (_, node) in names {
        if environment.is_none_or(|chosen| !std::ptr::eq(chosen, node)) {
            node.done();
        }
    }
    let mut making = Making::new(plan, config, environment);
    if making.target.is_empty() {
        let way_out = if names.is_empty() {
            String::new()
        } else {
            "; give an environment: --environment NAME".to_owned()
        };
        return Err(cannot(format!("its config has no target{way_out}")));
    }
    if !is_address(&making.target) {
        let target = shown(&making.target);
        return Err(cannot(format!("its target {target:?} cannot be driven; write http://HOST:PORT")));
    }
    let scenario = making.script(&root);
    making.draft.tell_unknown(&root, |keys| {
        let place = keys.iter().position(|key| !["config", "environments"].contains(key)).unwrap_or(0);
        let place = if keys.get(1) == Some(&"environments") { place + 1 } else { place };
        let place = keys.get(place).unwrap_or(&"");
        match keys.first() {
            Some(&"config") => ["http", "defaults", "payload", "ws"].contains(place),
            // Artillery passes over what it does not know beside its scenarios
            first => first.is_some_and(|first| ["scenarios", "before", "after"].contains(first)),
        }
    });
    making.draft.finished(scenario)
}

/// A feeder of a file, and its columns.
struct Payload {
    feeder: String,
    /// What variables of the script are called here, and whether a cell of theirs is a number.
    fields: Vec<(String, bool)>,
}

struct Making<'n> {
    draft: Draft<'n>,
    config: &'n Node,
    environment: Option<&'n Node>,
    /// Where requests go: the system, and a path in front of all others.
    target: String,
    base: String,
    /// What the target ends with behind that, where a template writes it.
    slash: &'static str,
    /// Variables with one value.
    values: HashMap<String, String>,
    /// Those of them that are texts, although they look like numbers.
    texts: HashSet<String>,
    /// Variables of which each user draws one of several values.
    drawn: HashMap<String, Vec<Value>>,
    /// Variables that steps set.
    assigned: HashSet<String>,
    /// Variables that a loop goes over.
    lists: HashSet<String>,
    payloads: Vec<Payload>,
    feeders: Vec<(String, Feeder)>,
    /// Whether answers are checked by `expect`.
    expects: bool,
    /// Functions of the script's own code are in this file.
    processor: String,
}

impl<'n> Making<'n> {
    fn new(file: &'n Plan<'n>, config: &'n Node, environment: Option<&'n Node>) -> Making<'n> {
        let mut making = Making {
            draft: Draft::new(file),
            config,
            environment,
            target: String::new(),
            base: String::new(),
            slash: "",
            values: HashMap::new(),
            texts: HashSet::new(),
            drawn: HashMap::new(),
            assigned: HashSet::new(),
            lists: HashSet::new(),
            payloads: Vec::new(),
            feeders: Vec::new(),
            expects: false,
            processor: String::new(),
        };
        making.variables();
        let target = making.of("target").and_then(Node::as_str).unwrap_or_default().trim().to_owned();
        let target = making.written_out(&target);
        let end = target.find("://").map_or(0, |at| at + 3);
        let end = target[end..].find('/').map_or(target.len(), |at| end + at);
        making.base = target[end..].trim_end_matches('/').to_owned();
        making.slash = if target[end..].ends_with('/') { "/" } else { "" };
        making.target = target[..end].to_owned();
        if has_credentials(&making.target) {
            let (scheme, host) = making.target.split_once("://").unwrap_or(("http", &making.target));
            making.target = format!("{scheme}://{}", host.rsplit('@').next().unwrap_or_default());
            let would = "sent the credentials that stand in it: requests are sent without";
            making.draft.tell(config.line, "config.target", would, true);
        }
        making
    }

    /// A key of the configuration; the environment's wins.
    fn of(&self, key: &str) -> Option<&'n Node> {
        let own = self.environment.and_then(|environment| environment.get(key));
        let common = self.config.get(key);
        if own.is_some() {
            common.iter().for_each(|node| node.done());
        }
        own.or(common)
    }

    /// A key that both may have parts of.
    fn both(&self, key: &str) -> impl Iterator<Item = &'n Node> + use<'n> {
        let own = self.environment.and_then(|environment| environment.get(key));
        self.config.get(key).into_iter().chain(own)
    }

    fn variables(&mut self) {
        for (name, node) in self.both("variables").flat_map(Node::entries) {
            match &node.content {
                Content::Scalar(scalar) => {
                    if !scalar.is_bare() {
                        self.texts.insert(name.clone());
                    }
                    self.values.insert(name.clone(), scalar.as_str().to_owned());
                }
                Content::List(_) => {
                    let of = |item: &Node| item.scalar().cloned().map(Value::Scalar);
                    match node.items().iter().map(of).collect::<Option<Vec<Value>>>() {
                        Some(values) if !values.is_empty() => {
                            self.drawn.insert(name.clone(), values);
                        }
                        _ => self.structured(name, node),
                    }
                }
                Content::Map(_) => self.structured(name, node),
            }
        }
    }

    fn structured(&mut self, name: &str, node: &Node) {
        node.done();
        let would = "given a variable lists or objects, whose parts are not known here";
        self.draft.tell(node.line, &format!("variable {}", shown(name)), would, true);
    }

    fn script(&mut self, root: &'n Node) -> Option<Scenario> {
        root.ignore(&["$schema"]);
        self.config.ignore(&["apdex"]);
        let flows = root.list("scenarios");
        self.scan(root);
        self.plugins();
        self.payload();
        let (mut defaults, mut limits, mut system) = (Defaults::default(), Map::new(), System::default());
        // a WebSocket asks for neither
        if flows.iter().any(|flow| flow.text("engine").unwrap_or("http") == "http")
            || root.map("before").is_some()
        {
            defaults.headers.insert("Accept-Encoding", "gzip, deflate, br");
            defaults.other.insert("follow", FOLLOW);
        }
        self.options(flows, &mut defaults, &mut limits, &mut system);
        let mut prepare = Vec::new();
        if let Some(before) = root.map("before") {
            let mut state = State::new("before");
            state.is_before = true;
            prepare = self.flow(before, &mut state);
            if !state.set.is_empty() {
                let would = "handed what it captured to all users: here each session begins without";
                self.draft.tell(before.line, "before", would, true);
            }
        }
        if let Some(after) = root.map("after") {
            self.draft.tell(after.line, "after", "sent requests once all users had ended", true);
            after.done();
        }
        let mut sessions: Vec<(String, Session)> = Vec::new();
        let mut lasts_s = 0.0_f64;
        let is_single = flows.len() == 1;
        for (at, flow) in flows.iter().enumerate() {
            let wanted = flow.text("name").map(str::trim).filter(|name| !name.is_empty());
            let wanted = wanted.map_or_else(
                || if is_single { "visitor".into() } else { format!("scenario {}", at + 1) },
                verbatim,
            );
            let mut name = wanted.clone();
            let mut number = 1;
            while sessions.iter().any(|(known, _)| *known == name) {
                number += 1;
                name = format!("{wanted} ({number})");
            }
            if sessions.len() == SESSIONS_MAX {
                let would = format!("been a kind of user: only {SESSIONS_MAX} are there");
                self.draft.tell(flow.line, &format!("scenario {}", shown(&wanted)), would, true);
                flow.done();
                continue;
            }
            let mut state = State::new(&name);
            let steps = self.flow(flow, &mut state);
            let weight = flow.number("weight");
            if steps.is_empty() {
                continue;
            }
            lasts_s = lasts_s.max(state.lasts_s);
            let weight = weight.map(|weight| Scalar::unquoted(&weight.to_string())).filter(|_| !is_single);
            sessions.push((name, Session { weight, steps, ..Session::default() }));
        }
        if sessions.is_empty() || !self.draft.has_requests() {
            return None;
        }
        let load = self.load(lasts_s, &mut limits);
        let objectives = self.ensure();
        let file = self.draft.file.name.rsplit(['/', '\\']).next().unwrap_or_default();
        system.url = Some(verbatim(&self.target).into());
        system.comment = "Is this the one to drive? Another: run with --url.".into();
        Some(Scenario {
            comment: format!("Made of {}. What was left out was told on the way.", shown(file)),
            system: Some(system),
            feeders: std::mem::take(&mut self.feeders),
            defaults: Some(defaults),
            prepare,
            sessions,
            load: Some(load),
            limits,
            // of one user's few requests no percentile is known
            objectives: match self.of("phases") {
                Some(_) if objectives.is_empty() => crate::objectives(),
                _ => objectives,
            },
            ..Scenario::default()
        })
    }

    /// Looks through all steps for variables that they set, or go over.
    fn scan(&mut self, node: &Node) {
        match &node.content {
            Content::Scalar(_) => {}
            Content::List(items) => items.iter().for_each(|item| self.scan(item)),
            Content::Map(entries) => {
                for (key, value) in entries {
                    let Content::Scalar(scalar) = &value.content else {
                        self.scan(value);
                        continue;
                    };
                    match key.as_str() {
                        "as" | "loopValue" | "loopElement" => {
                            self.assigned.insert(scalar.as_str().to_owned())
                        }
                        "over" => self.lists.insert(scalar.as_str().to_owned()),
                        _ => false,
                    };
                }
            }
        }
    }

    fn plugins(&mut self) {
        for (name, node) in self.both("plugins").flat_map(Node::entries) {
            self.expects |= name == "expect";
            if !COUNTING.contains(&name.as_str()) {
                let would = "been asked before and behind each request, by code of its own";
                self.draft.tell(node.line, &format!("plugin {}", shown(name)), would, true);
            } else if name.starts_with("publish")
                || ["slack", "cloudwatch", "datadog"].contains(&name.as_str())
            {
                self.draft.tell(
                    node.line,
                    &format!("plugin {}", shown(name)),
                    "sent its figures elsewhere",
                    false,
                );
            }
            if name != "ensure" {
                node.done();
            }
        }
        if let Some(node) = self.of("processor") {
            self.processor = shown(node.as_str().unwrap_or_default());
            let would = format!("called functions of {}, where its steps name them", self.processor);
            self.draft.tell(node.line, "processor", would, false);
            node.done();
        }
    }

    /// What the configuration says of all requests.
    fn options(&mut self, flows: &[Node], defaults: &mut Defaults, limits: &mut Map, system: &mut System) {
        let mut timeout_s = TIMEOUT_S;
        if let Some(number) = self.of("timeout").and_then(Node::as_str).and_then(seconds) {
            timeout_s = number;
        }
        let mut headers = Vec::new();
        for common in self.both("defaults") {
            headers.extend(common.map("headers"));
            if let Some(think) = common.map("think") {
                self.draft.tell(
                    think.line,
                    "defaults.think",
                    "drawn pauses at random around their length",
                    false,
                );
                think.done();
            }
        }
        for http in self.both("http") {
            if let Some(number) = http.text("timeout").and_then(seconds) {
                timeout_s = number;
            }
            http.ignore(&["extendedMetrics"]);
            if let Some(pool) = http.number("pool").filter(|pool| *pool >= 1.0 && *pool <= 1e6) {
                limits.insert("connections", pool as u64);
            }
            if let Some(most) = http.get("maxSockets") {
                self.draft.tell(most.line, "http.maxSockets", "bounded the connections of each user", false);
                most.done();
            }
            if let Some(of) = http.map("defaults") {
                headers.extend(of.map("headers"));
                if let Some(node) = of.map("think") {
                    self.draft.tell(
                        node.line,
                        "http.defaults.think",
                        "drawn pauses at random around their length",
                        false,
                    );
                    node.done();
                }
            }
        }
        let mut state = State::new("");
        for (name, node) in headers.into_iter().flat_map(Node::entries) {
            let text = node.as_str().unwrap_or_default();
            let own = text.replace("{{ ", "{{");
            if own.contains("{{") && !own.contains("{{$") {
                let would = "been left out by Artillery, too: it knows no variables of users there";
                self.draft.tell(node.line, &format!("header {}", shown(name)), would, false);
                continue;
            }
            let text = self.text(node, text, &mut state);
            let before = name.to_ascii_lowercase();
            let known =
                defaults.headers.entries().iter().find(|entry| entry.key.to_ascii_lowercase() == before);
            if let Some(known) = known.map(|entry| entry.key.clone()) {
                defaults.headers.remove(&known);
            }
            self.draft.header(node.line, &mut defaults.headers, name, &text);
        }
        defaults.timeout = Some(Time(std::time::Duration::from_secs_f64(timeout_s)).into());
        if let Some(tls) = self.of("tls") {
            if tls.text("rejectUnauthorized") == Some("false") {
                system.tls.insert("insecure", true);
            }
            if let Some(name) = tls.text("servername") {
                self.draft.tell(tls.line, "tls.servername", format!("asked for {}", shown(name)), true);
            }
        }
        if !flows.iter().any(|flow| flow.text("engine") == Some("ws")) {
            self.both("ws").for_each(Node::done);
        }
        if let Some(node) = self.of("engines") {
            // engines are told where a scenario has one
            node.done();
        }
        if let Some(node) = self.of("socketio") {
            self.draft.tell(node.line, "socketio", "spoken Socket.IO", false);
            node.done();
        }
    }
}
