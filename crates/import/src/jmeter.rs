//! From a JMeter plan: thread groups become sessions and their load, samplers requests, and what surrounds them what the
//! language has for it. What has no counterpart is told with its line.

mod code;
mod config;
mod control;
mod extract;
mod function;
mod group;
mod include;
mod response;
mod sampler;
mod script;
mod text;
mod timer;
mod tree;
mod value;

#[cfg(test)]
mod tests;

use std::collections::{BTreeSet, HashMap, HashSet};

use tidemark_scenario::source::{Defaults, Feeder, Map, Named, Scenario, Session, Step, System, Value};

use self::group::{Group, GroupLoad};
use self::include::Documents;
use self::tree::Node;
use self::value::Variable;
use crate::error::ImportError;
use crate::left_out::LeftOut;
use crate::names::Settings;
use crate::plan::Plan;
use crate::{Imported, xml};

/// Most parts that are told as left out, one by one.
const LEFT_OUT_MAX: usize = 1_000;
/// Most steps of a scenario that are made of one plan, modules written out.
const STEPS_MAX: usize = 20_000;
/// Longest name that is shown, characters.
const SHOWN_MAX: usize = 80;
/// Most names that a remark lists.
const LISTED_MAX: usize = 12;
/// Most redirects that JMeter follows, which is also most that a scenario may.
const REDIRECTS: u64 = 20;

/// The scenario of a plan.
pub(super) fn scenario(plan: &Plan<'_>) -> Result<Imported, ImportError> {
    let wrong = |reason: String| {
        ImportError::new(format!("{}: this is not a JMeter plan that can be read: {reason}", plan.name))
    };
    let mut root = xml::parse(plan.text).map_err(wrong)?;
    if root.attribute("version") == Some("1.0") {
        decode(&mut root);
    }
    if root.name != "jmeterTestPlan" {
        return Err(wrong(format!("its root is <{}>, and not <jmeterTestPlan>", shown(&root.name))));
    }
    let documents = Documents::read(root, plan.folder);
    let trees = documents.trees();
    // the system is the place of most requests, which is known once they are made
    let first = Making::new(plan, &trees, None, Common::default()).make();
    let (system, common) = (first.most_requested(), Common::of(&first.requests));
    Making::new(plan, &trees, Some(system), common).make().finished()
}

/// The first format of plans has its texts encoded, as forms are, and its names among the properties.
fn decode(element: &mut xml::Element) {
    let text = element.text.replace('+', " ");
    element.text = percent_encoding::percent_decode_str(&text).decode_utf8_lossy().into_owned();
    element.children.iter_mut().for_each(decode);
    for (attribute, property) in [("enabled", "TestElement.enabled"), ("testname", "TestElement.name")] {
        let value = tree::property(element, property).map(str::to_owned);
        element.attributes.extend(value.map(|value| (attribute.to_owned(), value)));
    }
}

/// A name for a person: one line, and not too long.
pub(super) fn shown(text: &str) -> String {
    let line: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).take(SHOWN_MAX).collect();
    if line.chars().count() < text.chars().count() {
        format!("{}…", line.trim())
    } else {
        line.trim().to_owned()
    }
}

/// A plan on its way to a scenario.
struct Making<'a> {
    plan: &'a Plan<'a>,
    trees: &'a include::Trees<'a>,
    plan_name: String,
    properties: &'a [(String, String)],
    asked_properties: BTreeSet<String>,
    settings: Settings,
    /// Settings that hold secrets, with what the plan has for them.
    secrets: Vec<(String, String)>,
    /// Names of settings, variables, feeders and counters.
    taken: HashSet<String>,
    user_variables: HashMap<String, String>,
    variables: HashMap<String, Variable>,
    feeders: Named<Feeder>,
    /// Feeders by what they were made of.
    known_feeders: HashMap<String, String>,
    /// Variables that are columns of other names, by feeder.
    renamed: HashMap<String, Map>,
    /// Counters by what they were made of.
    counters: HashMap<String, String>,
    /// Variables of scripts by what they are known by: their names here, and whether each is a number.
    locals: HashMap<String, (String, bool)>,
    /// Texts of scripts, which may set variables.
    script_texts: Vec<String>,
    left_out: Vec<LeftOut>,
    /// The first of those that are too many to be told, whose request is missing if that of any is.
    not_told: Option<LeftOut>,
    /// Kinds of listeners.
    listeners: BTreeSet<String>,
    /// Lines and names of what is disabled.
    disabled: BTreeSet<(usize, String)>,
    notes: Vec<String>,
    told_unset: HashSet<(String, usize)>,
    /// The place of the system: `http://host:port`.
    system: Option<String>,
    origins: Vec<(String, usize)>,
    /// Labels, and the place that each is of.
    labels: HashMap<String, String>,
    /// Whether the plan asks how the last request ended.
    asks_last: bool,
    group: Group,
    /// Steps before the request that is being made.
    before: Vec<Step>,
    /// Steps behind it.
    after: Vec<Step>,
    steps: usize,
    /// Elements that were looked at for steps.
    visits: usize,
    sessions: Vec<(String, Session, GroupLoad)>,
    prepare: Vec<Step>,
    limits: Map,
    keep_alive: Vec<bool>,
    /// What each request has that others may have.
    requests: Vec<Common>,
    /// What all have, which stands in the defaults.
    common: Common,
}

impl<'a> Making<'a> {
    fn new(
        plan: &'a Plan<'a>,
        trees: &'a include::Trees<'a>,
        system: Option<String>,
        common: Common,
    ) -> Making<'a> {
        Making {
            plan,
            trees,
            plan_name: String::new(),
            properties: plan.properties,
            asked_properties: BTreeSet::new(),
            settings: Settings::default(),
            secrets: Vec::new(),
            taken: HashSet::new(),
            user_variables: HashMap::new(),
            variables: HashMap::new(),
            feeders: Vec::new(),
            known_feeders: HashMap::new(),
            renamed: HashMap::new(),
            counters: HashMap::new(),
            locals: HashMap::new(),
            script_texts: Vec::new(),
            left_out: Vec::new(),
            not_told: None,
            listeners: BTreeSet::new(),
            disabled: BTreeSet::new(),
            notes: Vec::new(),
            told_unset: HashSet::new(),
            system,
            origins: Vec::new(),
            labels: HashMap::new(),
            asks_last: plan.text.contains(value::LAST_SAMPLE_OK),
            group: Group::default(),
            before: Vec::new(),
            after: Vec::new(),
            steps: 0,
            visits: 0,
            sessions: Vec::new(),
            prepare: Vec::new(),
            limits: Map::new(),
            keep_alive: Vec::new(),
            requests: Vec::new(),
            common,
        }
    }

    fn make(mut self) -> Self {
        let trees = self.trees;
        for tree in trees.all() {
            self.look(tree);
        }
        for tree in trees.all() {
            self.look_scripts(tree);
        }
        for tree in trees.main() {
            if !tree.is_enabled() {
                self.disable(tree);
            } else if tree.kind() == "TestPlan" {
                self.test_plan(tree);
            } else if tree.kind() == "WorkBench" {
                self.note("the plan's WorkBench is left out: JMeter does not run it either".into());
            } else {
                self.leave_out(tree, "done what only JMeter knows");
            }
        }
        self
    }

    /// Looks a tree through for what is known everywhere: user variables, and what sets variables.
    fn look(&mut self, node: &'a Node<'a>) {
        if !node.is_enabled() {
            return;
        }
        match node.kind() {
            "TestPlan" => {
                self.plan_name = node.name().to_owned();
                self.user_defined(node.arguments("TestPlan.user_defined_variables"));
            }
            "Arguments" => self.user_defined(node.arguments("")),
            _ => self.declare_of(node),
        }
        node.children.iter().for_each(|child| self.look(child));
    }

    fn user_defined(&mut self, arguments: &'a [xml::Element]) {
        for argument in arguments {
            let name = tree::property(argument, "Argument.name").unwrap_or_default();
            let value = tree::property(argument, "Argument.value").unwrap_or_default();
            if !name.is_empty() {
                self.user_variables.insert(name.trim().to_owned(), value.to_owned());
            }
        }
    }

    fn test_plan(&mut self, plan: &'a Node<'a>) {
        if plan.flag("TestPlan.serialize_threadgroups") && self.groups() > 1 {
            self.leave_out(plan, "run its thread groups one after another; here they begin together");
        }
        let scope = Scope::default().with(&plan.children);
        for child in &plan.children {
            if !child.is_enabled() {
                self.disable(child);
            } else if group::is_group(child.kind()) {
                self.thread_group(child, &scope, &plan.children);
            } else {
                self.aside(child);
            }
        }
    }

    /// What is no step: it is taken over where it holds, or told.
    fn aside(&mut self, node: &'a Node<'a>) {
        let kind = node.kind();
        if kind.ends_with("Processor") && self.scripted(node).is_some() {
            // it is taken over with the samplers in its scope
        } else if kind == "ResultAction" {
            match node.text("OnError.action").trim() {
                "" | "0" => {}
                "1" => self.leave_out_request(node, "ended the thread after a failed request"),
                "2" | "3" => self.leave_out_request(node, "ended the whole test after a failed request"),
                _ => self.leave_out_request(node, "left its loop after a failed request"),
            }
        } else if is_listener(node) {
            self.listeners.insert(kind.to_owned());
        } else if kind == "ConfigTestElement" && !config::is_of_http(node) {
            self.leave_out(node, "set what samplers of another kind have in common");
        } else if let Some(would) = config::would(node) {
            let is_request = kind == "VariableThroughputTimer" || self.script_changes_requests(node);
            self.leave(node, &would, is_request);
        } else if !config::is_taken_over(kind) && !matches!(kind, "TestFragmentController") {
            // whatever it is, it may change what is sent
            let would = format!("done what a {kind} of JMeter does");
            let is_check = kind.contains("Assertion") && !is_or_has_sampler(node);
            self.leave(node, &would, !is_check);
        }
    }

    fn leave_out(&mut self, node: &Node<'_>, would: &str) {
        self.leave(node, would, false);
    }

    /// The same where requests are missing, or others are sent.
    fn leave_out_request(&mut self, node: &Node<'_>, would: &str) {
        self.leave(node, would, true);
    }

    fn leave(&mut self, node: &Node<'_>, would: &str, is_request: bool) {
        let left = LeftOut {
            line: node.element.line,
            element: node.title(),
            would: shown_long(would),
            is_request,
            setting: None,
        };
        if self.left_out.contains(&left) {
            return;
        }
        if self.left_out.len() < LEFT_OUT_MAX {
            self.left_out.push(left);
            return;
        }
        let would = format!("done what is not told: only {LEFT_OUT_MAX} parts are");
        let not_told = self.not_told.get_or_insert(LeftOut { would, is_request: false, ..left });
        not_told.is_request |= is_request;
    }

    fn disable(&mut self, node: &Node<'_>) {
        self.disabled.insert((node.element.line, node.title()));
    }

    fn note(&mut self, note: String) {
        if !self.notes.contains(&note) && self.notes.len() < LEFT_OUT_MAX {
            self.notes.push(note);
        }
    }

    /// The place that most requests go to, the first of several.
    fn most_requested(&self) -> String {
        let most = self.origins.iter().map(|(_, requests)| *requests).max();
        let found = self.origins.iter().find(|(_, requests)| Some(*requests) == most);
        found.map(|(origin, _)| origin.clone()).unwrap_or_default()
    }

    fn counter(&mut self, of: &str) -> String {
        if let Some(name) = self.counters.get(of) {
            return name.clone();
        }
        let name = self.own_name("counter");
        self.counters.insert(of.to_owned(), name.clone());
        name
    }

    fn finished(mut self) -> Result<Imported, ImportError> {
        let name = self.plan.name.to_owned();
        if self.sessions.iter().all(|(_, session, _)| session.steps.is_empty()) {
            let mut why: Vec<String> =
                self.left_out.iter().take(LISTED_MAX).map(ToString::to_string).collect();
            if why.is_empty() {
                why = self
                    .disabled
                    .iter()
                    .take(LISTED_MAX)
                    .map(|(line, title)| format!("line {line}: {title}: disabled"))
                    .collect();
            }
            let why = if why.is_empty() { String::new() } else { format!(":\n{}", why.join("\n")) };
            return Err(ImportError::new(format!(
                "{name}: there is nothing in it that can be sent here{why}"
            )));
        }
        for (property, _) in self.properties {
            if !self.asked_properties.contains(property) {
                self.notes.push(format!("-J {property}: the plan does not ask for this property"));
            }
        }
        if !self.keep_alive.is_empty() && self.keep_alive.iter().all(|keeps| !keeps) {
            self.limits.insert("keep alive", false);
        } else if self.keep_alive.contains(&false) {
            self.note("some requests close their connection (use_keepalive is off, or Connection: close); here all keep it".into());
        }
        let (load, limit) = self.load();
        if let Some(sessions) = limit {
            self.limits.insert("sessions", sessions);
        }
        let remark = self.remark();
        let sessions: Named<Session> =
            self.sessions.into_iter().map(|(name, session, _)| (name, session)).collect();
        let comment = format!(
            "Made of {}{}. What was left out was told on the way.",
            shown(&self.plan.name.rsplit(['/', '\\']).next().unwrap_or_default().replace("${", "$ {")),
            if self.plan_name.is_empty() { String::new() } else { format!(" ({})", shown(&self.plan_name)) }
        );
        let mut scenario = Scenario {
            comment,
            name: Some(tidemark_scenario::source::verbatim(&shown(&self.plan_name)).into())
                .filter(|_| !self.plan_name.trim().is_empty()),
            system: Some(System {
                comment: "Is this the one to drive? Another: run with --url.".into(),
                url: Some(self.system.unwrap_or_default().into()),
                ..System::default()
            }),
            feeders: self.feeders,
            defaults: self.common.defaults(),
            prepare: self.prepare,
            sessions,
            load: Some(load),
            limits: self.limits,
            // how fast it has to be is for a person to say
            objectives: vec!["errors < 0.1%".into()],
            ..Scenario::default()
        };
        // a setting that nothing names would change nothing
        let text = scenario.to_yaml();
        let words: HashSet<&str> = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').collect();
        let mut settings = self.settings.map;
        let names: Vec<String> = settings.entries().iter().map(|entry| entry.key.clone()).collect();
        for name in names.iter().filter(|name| !words.contains(name.as_str())) {
            settings.remove(name);
        }
        scenario.settings = settings;
        let mut given = self.secrets;
        given.retain(|(name, _)| scenario.settings.get(name).is_some());
        let mut left_out = self.left_out;
        left_out.sort_by_key(|left| left.line);
        left_out.extend(self.not_told);
        Ok(Imported { remark, left_out, given, ..Imported::from(scenario) })
    }

    /// What a person should know beside what was left out.
    fn remark(&self) -> String {
        let mut lines: Vec<String> = self.notes.clone();
        if !self.listeners.is_empty() {
            let kinds: Vec<&str> = self.listeners.iter().map(String::as_str).collect();
            lines.push(format!(
                "Listeners need no counterpart, as a run keeps everything: {}",
                kinds.join(", ")
            ));
        }
        if !self.disabled.is_empty() {
            let more = self.disabled.len().saturating_sub(LISTED_MAX);
            let more = if more > 0 { format!("\n  and {more} more") } else { String::new() };
            let shown: Vec<String> = self
                .disabled
                .iter()
                .take(LISTED_MAX)
                .map(|(line, title)| format!("\n  line {line}: {title}"))
                .collect();
            lines.push(format!("Disabled in the plan, so not taken over:{}{more}", shown.concat()));
        }
        lines.join("\n")
    }
}

/// Elements that hold for the samplers beside them and below, the outermost first.
#[derive(Clone, Default)]
struct Scope<'a> {
    nodes: Vec<&'a Node<'a>>,
}

impl<'a> Scope<'a> {
    fn with(&self, children: &'a [Node<'a>]) -> Scope<'a> {
        let mut nodes = self.nodes.clone();
        nodes.extend(children.iter().filter(|child| {
            child.is_enabled() && !is_or_has_sampler(child) && !child.kind().ends_with("Controller")
        }));
        Scope { nodes }
    }

    /// Those of a kind, the innermost first.
    fn inward<'s>(&'s self, kinds: &'s [&'s str]) -> impl Iterator<Item = &'a Node<'a>> + 's {
        self.nodes.iter().rev().copied().filter(move |node| kinds.contains(&node.kind()))
    }
}

fn is_listener(node: &Node<'_>) -> bool {
    const KINDS: [&str; 6] = [
        "ResultCollector",
        "Summariser",
        "BackendListener",
        "ResultSaver",
        "MailerResultCollector",
        "DebugPostProcessor",
    ];
    let kind = node.kind();
    KINDS.contains(&kind)
        || ["Collector", "Visualizer", "Listener", "Reporter"].iter().any(|end| kind.ends_with(end))
            && !kind.contains("JSR223")
            && !kind.contains("BeanShell")
        || matches!(kind, "DebugSampler")
}

/// Whether it is a sampler, or holds one.
fn is_or_has_sampler(node: &Node<'_>) -> bool {
    let kind = node.kind();
    let is_one = kind.contains("Sampler") || kind.contains("sampler");
    (is_one && kind != "DebugSampler")
        || node.children.iter().filter(|child| child.is_enabled()).any(is_or_has_sampler)
}

/// What would have been done, bounded.
fn shown_long(text: &str) -> String {
    const LONG: usize = 200;
    let line: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).take(LONG).collect();
    if line.chars().count() < text.chars().count() { format!("{line}…") } else { line }
}

/// Steps as a value, to stand below another.
fn values(steps: Vec<Step>) -> Value {
    let holder = Scenario { prepare: steps, ..Scenario::default() };
    holder.to_map().remove("prepare").unwrap_or_else(|| Value::List(Vec::new()))
}

/// What a request has that others may have as well.
#[derive(Debug, Clone, Default, PartialEq)]
struct Common {
    headers: Vec<(String, String)>,
    follow: Option<u64>,
    timeout: Option<String>,
}

impl Common {
    /// What all of them have.
    fn of(requests: &[Common]) -> Common {
        let mut requests = requests.iter();
        let mut common = requests.next().cloned().unwrap_or_default();
        for other in requests {
            common.headers.retain(|header| other.headers.contains(header));
            common.follow = common.follow.filter(|_| common.follow == other.follow);
            common.timeout = common.timeout.take().filter(|timeout| Some(timeout) == other.timeout.as_ref());
        }
        common
    }

    fn defaults(&self) -> Option<Defaults> {
        let mut defaults = Defaults { timeout: self.timeout.clone().map(Into::into), ..Defaults::default() };
        for (name, value) in &self.headers {
            defaults.headers.insert(name.as_str(), header_value(value));
        }
        if let Some(follow) = self.follow {
            defaults.other.insert("follow", follow);
        }
        (defaults != Defaults::default()).then_some(defaults)
    }
}

/// Nothing is sent of a header that is empty here.
fn header_value(value: &str) -> Value {
    if value.is_empty() { Value::List(Vec::new()) } else { value.into() }
}
