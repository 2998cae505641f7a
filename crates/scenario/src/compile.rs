//! From a checked tree to a plan.
//!
//! Shapes were checked before, so whatever is missing or of the wrong kind here has been reported and is passed over
//! in silence; what is reported here is what shapes cannot know: names, expressions, and how parts fit together.

mod define;
mod fault;
mod feeder;
mod follow;
mod held;
mod jump;
mod keys;
mod launch;
mod limits;
mod load;
mod persistence;
mod rates;
mod ratios;
mod requests;
mod scope;
mod script;
mod services;
mod store;
mod system;
mod tags;
mod targets;
mod text;
mod verify;
mod watch;

use std::path::Path;

pub(crate) use self::define::split_each;
pub(crate) use self::launch::split as split_command;
pub(crate) use self::load::window;
pub(crate) use self::rates::are_few;
use self::requests::Requests;
use self::scope::{Scope, SessionNames, SharedNames};
pub(crate) use self::system::READY_WITHIN;
use self::targets::Aim;
pub(crate) use self::targets::split_origin;
use crate::grammar::record::Kind;
use crate::language::{self, Parts, Prepare};
use crate::objective::{self, Names};
use crate::plan::{
    ALL_SHOWN, About, GrpcStep, Objective, Op, Phase, Plan, Preparation, RequestKind, ScriptPlan, ScriptTool,
    SessionKind, SlotIndex, Store, System, Target, USERS_MAX,
};
use crate::reader::Reader;
use crate::steps::{self, STEPS};
use crate::yaml::{Node, Position};

/// Most users who prepare.
const PREPARING_MAX: usize = 100_000;

/// Compiles a whole scenario. The plan is worth something only if the sink has no errors.
pub(crate) fn scenario(root: &Node, name: &str, base: &Path, reader: &Reader<'_>) -> Option<Plan> {
    let mut shared = feeder::read(root.get("feeders"), base, reader);
    shared.keys = keys::read(root.get("keys"), reader);
    let parts = Parts::read(root, reader)?;
    let mut requests = Requests::new(&parts.defaults);
    let said = root.get("script").and_then(|node| language::Script::read(node, reader));
    let bounds = said.map(|said| script::bounds(&said, reader.sink)).unwrap_or_default();
    let mut sessions = sessions(root, base, reader, &mut shared, &mut requests);
    sessions.iter_mut().filter_map(|kind| kind.script.as_mut()).for_each(|script| script.bounds = bounds);
    let binds = requests
        .first(|ask| {
            matches!(
                ask,
                RequestKind::WebSocket(_)
                    | RequestKind::EventStream(_)
                    | RequestKind::Grpc(GrpcStep::Open(_))
            )
        })
        .is_some();
    // After the sessions, so that their labels come first in the report.
    let said = root.get("prepare").and_then(|node| Prepare::read(node, reader));
    let prepare = said.as_ref().map(|said| {
        let steps = said.steps.value.unwrap_or(said.node);
        let mut kind = Session::new(reader, &mut shared, &mut requests).compile("prepare", steps, true);
        kind.weight = 1;
        kind
    });
    let preparation = said.as_ref().map_or(Preparation::default(), |said| preparation(said, reader));
    let enters = |op: &Op| matches!(op, Op::Request(at) if requests.plans.get(usize::from(*at)).is_some_and(|plan| plan.ledger.is_some()));
    if preparation != Preparation::default()
        && prepare.as_ref().is_some_and(|kind| kind.ops.iter().any(enters))
        && let Some(node) = root.get("prepare")
    {
        let message = "what many users prepare cannot be entered in the ledger; leave out `ledger`, or `users` and `times`";
        reader.sink.error(node, message);
    }
    let mut verify =
        root.get("verify").and_then(|node| verify::read(node, reader, &mut shared, &mut requests));
    let load = load::read(root.get("load"), &sessions, base, reader);
    let phases = load.as_ref().map(|load| load.phases.as_slice());
    let objectives = objectives(root.get("objectives"), &requests, phases, reader);
    let ratios = ratios::read(root.get("ratios"), &requests, reader);
    requests.warn_of_unreachable(reader.sink);
    let is_bounded =
        |kind: &SessionKind| kind.script.as_ref().is_some_and(|script| script.tool == ScriptTool::K6);
    if let Some((key, _)) =
        root.entry("script").filter(|_| requests.codes.is_empty() && !sessions.iter().any(is_bounded))
    {
        let message = "this bounds scripts of k6 and js steps, and the scenario has none of them";
        reader.sink.warn(key.position, message.into());
    }
    let name_given = root.get("name").and_then(|node| reader.text(node));
    let mut services = services::read(root.get("services"), root.get("stores"), base, reader);
    let mut system_node = root.get("system");
    services.check_driven(system_node, root.get("services"), reader);
    let system = match services.take_driven(&parts.system, reader) {
        Some((service, node)) => {
            system_node = Some(node);
            Some(service)
        }
        None => system_node.and_then(|_| system::read(&parts.system, base, reader)),
    };
    let load = load?;
    let users = load.most_users();
    if let Some(node) = root.get("load").filter(|_| users > USERS_MAX) {
        reader.sink.error(node, format!("{users} users are too many; at most {USERS_MAX}"));
    }
    verify::warn_of_unentered(root, &requests, &objectives, reader);
    let limits = limits::read(&parts.limits, &load, binds, reader.sink);
    let mut system = system.unwrap_or_default();
    let mut targets = targets::read(root, base, reader);
    targets::assign(root, &system, &mut targets, &mut requests, reader);
    follow::add_hops(root, &system, &targets, &mut requests, reader);
    let kinds = sessions.iter().chain(&prepare);
    for (kind, uses) in kinds.zip(&requests.uses) {
        steps::bound::check_paths(&kind.ops, &requests.plans, uses, reader.sink);
    }
    let is_alone = targets.is_empty();
    let whole = Whole {
        root,
        parts: &parts,
        requests: &requests,
        system: &system,
        targets: &targets,
        reader,
        is_alone,
    };
    steps::check_beside(&whole);
    let stores = store::read(root.get("stores"), base, reader);
    stores.tell(system_node, &mut system, reader);
    services.tell(&stores, reader);
    services.check(&system, system_node, reader);
    let mut services = services.into_services();
    for (_, node) in root.get("targets").map(Node::entries).unwrap_or_default() {
        stores.tell(Some(node), &mut System::default(), reader);
    }
    stores.check_faults(root.get("faults"), reader);
    let store::Stores { wanted: stores, settings: mut store_settings, .. } = stores;
    verify::check_store(root, verify.as_ref().map(|verify| &verify.from), &system, &stores, reader);
    if let Some(verify) = &mut verify
        && let Some(at) = verify::at(root, &targets, reader)
    {
        verify.at = at;
        verify::check_target(root, verify, &system, &targets, reader);
        verify::set_defaults(&mut verify.from, &system, reader);
    }
    let started: Vec<String> = stores.iter().flat_map(Store::names).collect();
    fault::make_room(root.get("faults"), services.iter_mut().chain([&mut system]), reader);
    let watch = watch::read(root.get("watch"), reader);
    let mut plan = Plan { system, services, stores, watch, ..Plan::new(name, load) };
    if let (Some(node), Err(message)) = (root.get("watch"), plan.check_watched()) {
        reader.sink.error(node, message);
    }
    let named = plan.watched_names();
    let watched: Vec<(&str, bool)> =
        named.iter().zip(&plan.watch).map(|(name, watch)| (name.as_str(), watch.faults)).collect();
    let there =
        fault::There { system: &plan.system, services: &plan.services, started: &started, watched: &watched };
    plan.faults = fault::read(root.get("faults"), &there, &plan.load, reader);
    let mut plan = Plan {
        name: name_given.unwrap_or_else(|| stem(name)),
        description: root.get("description").and_then(|node| reader.text(node)).unwrap_or_default(),
        labels: requests.label_names(),
        tags: requests.tags(),
        groups: requests.groups,
        metrics: requests.metrics,
        ratios,
        requests: requests.plans,
        sessions,
        prepare,
        preparation,
        limits,
        counters: shared.counters(),
        feeders: shared.feeders,
        keys: shared.keys,
        codes: requests.codes,
        script: bounds,
        verify,
        objectives,
        targets,
        seed: root.get("seed").and_then(|node| reader.whole(node, 0)),
        source_name: name.to_owned(),
        read_from: std::sync::Arc::default(),
        source: reader.sink.text().to_owned(),
        ..plan
    };
    held::check(root, &plan, reader);
    store_settings.retain(|(_, setting)| reader.settings.is_of_stores_only(setting));
    plan.store_settings = store_settings;
    Some(plan)
}

/// By how many users `prepare` is done, and how often.
fn preparation(said: &Prepare<'_>, reader: &Reader<'_>) -> Preparation {
    let count = said.users.at_most(PREPARING_MAX, reader.sink).unwrap_or(1);
    let times = said.times.value.unwrap_or(count as u64);
    Preparation { users: count.min(usize::try_from(times).unwrap_or(usize::MAX)), times }
}

fn stem(name: &str) -> String {
    let stem = Path::new(name).file_stem().and_then(|stem| stem.to_str());
    stem.unwrap_or(name).to_owned()
}

fn sessions(
    root: &Node,
    base: &Path,
    reader: &Reader<'_>,
    shared: &mut SharedNames,
    requests: &mut Requests,
) -> Vec<SessionKind> {
    let Some(node) = root.get("sessions") else { return Vec::new() };
    let mut kinds = Vec::new();
    for (key, node) in node.entries() {
        let (Some(name), Some(said)) = (key.text(), language::Session::read(node, reader)) else { continue };
        let weight = said.weight.value.unwrap_or(1);
        let Ok(weight) = u32::try_from(weight) else {
            reader.sink.error(node, "this weight is too large");
            continue;
        };
        // a setting may leave a session out
        let by_setting = said.weight.node().and_then(Node::text).is_some_and(|text| text.contains("${"));
        let reachable = weight > 0 || by_setting;
        script::check_keys(&said, reader);
        let kind = match said.steps.value {
            Some(steps) => Some(Session::new(reader, shared, requests).compile(name, steps, reachable)),
            None => script::session(key, &said, base, reader, requests),
        };
        let Some(mut kind) = kind else { continue };
        let others = kinds.iter().filter_map(|other: &SessionKind| other.script.as_ref());
        let is_other = |other: &ScriptPlan, own: &ScriptPlan| {
            (&other.path, other.tool) != (&own.path, ScriptTool::K6) || other.args != own.args
        };
        if kind.script.as_ref().is_some_and(|own| others.clone().any(|other| is_other(other, own))) {
            let message = "another session has a script already, and a run has one at most; sessions that `exec` functions of \
                           the same script of k6 can stand beside each other, with the same `args`";
            said.script.error(reader.sink, message);
        }
        let sends = kind.ops.iter().any(|op| matches!(op, Op::Request(_) | Op::Program));
        if weight > 0 && !sends && !reader.sink.has_errors() {
            let message = format!("the session \"{name}\" sends nothing; it needs at least one request");
            reader.sink.error(said.steps.value.unwrap_or(node), message);
        }
        kind.weight = weight;
        kind.keep_cookies = said.keep_cookies.value.unwrap_or(false);
        kinds.push(kind);
    }
    let total: u64 = kinds.iter().map(|kind| u64::from(kind.weight)).sum();
    if node.entries().is_empty() || (total == 0 && !kinds.is_empty()) {
        reader.sink.error(node, "no session runs: every weight is 0; give one a weight above 0");
    }
    if total > u64::from(u32::MAX) {
        reader.sink.error(node, "the sum of the weights is too large");
    }
    kinds
}

fn objectives(
    node: Option<&Node>,
    requests: &Requests,
    phases: Option<&[Phase]>,
    reader: &Reader<'_>,
) -> Vec<Objective> {
    let labels = requests.label_names();
    let (groups, metrics) = (&requests.groups, &requests.metrics);
    let names = Names { labels: &labels, groups, metrics, phases: phases.unwrap_or_default() };
    let mut objectives = Vec::new();
    for node in node.map(Node::items).unwrap_or_default() {
        // a text, or a mapping with more about it
        let Some(said) = language::Objective::read(node, reader) else { continue };
        let Some(text) = said.objective.value.or(node.text().map(|_| node)) else { continue };
        let Some((mut objective, label)) = reader.objective(text, &requests.metrics) else { continue };
        objective.abort_early = said.abort_early.value.unwrap_or(false);
        // what is wrong with the load is told already
        if let Some(label) = label.filter(|label| phases.is_some() || !label.contains(':')) {
            match objective::about(&label, &objective, &names) {
                Ok(about) => objective.about = about,
                Err(message) => reader.sink.error(node, message),
            }
            let what = match objective.about {
                About::All | About::Label(_) => "",
                About::Group(_) => "a group",
                About::Metric(_) => "a metric of your own",
                About::Phase(..) => "a phase",
            };
            if objective.abort_early && !what.is_empty() {
                let message =
                    format!("an objective on {what} is decided at the end; leave \"abort early\" out");
                reader.sink.error(node, message);
            }
        }
        objectives.push(objective);
    }
    objectives
}

/// A whole scenario, when its parts are known, for what has to fit together.
pub(crate) struct Whole<'a> {
    pub(crate) root: &'a Node,
    /// What stands in some parts of it.
    pub(crate) parts: &'a Parts<'a>,
    pub(crate) requests: &'a Requests,
    pub(crate) system: &'a System,
    /// What is driven beside it.
    pub(crate) targets: &'a [Target],
    pub(crate) reader: &'a Reader<'a>,
    /// Whether nothing is driven beside the system.
    pub(crate) is_alone: bool,
}

impl Whole<'_> {
    /// Whether connections carry several requests at once.
    pub(crate) fn is_pipelined(&self) -> bool {
        self.parts.limits.pipeline.value.is_some_and(|depth| depth > 1)
    }

    /// What the URL of the system begins with; where that is a store, what its product's does.
    pub(crate) fn scheme(&self) -> Option<&str> {
        targets::scheme(self.root, self.system)
    }
}

/// A transaction of several statements being compiled.
pub(crate) struct Transaction {
    /// Where it goes.
    pub(crate) aim: Aim,
    /// Jumps of requests that failed, to be filled in when it is known where it is undone.
    pub(crate) failures: Vec<usize>,
}

/// A session kind being compiled.
pub(crate) struct Session<'a, 's> {
    pub(crate) reader: &'a Reader<'s>,
    pub(crate) shared: &'a mut SharedNames,
    pub(crate) requests: &'a mut Requests,
    pub(crate) scope: Scope,
    pub(crate) ops: Vec<Op>,
    /// Whether what is compiled now can ever be reached.
    pub(crate) reachable: bool,
    /// Groups within which the next step stands.
    pub(crate) groups_open: usize,
    /// The operations that use the connection, and where they stand.
    connection_uses: Vec<(usize, Position)>,
    /// The origin that the step's absolute URL names, if it has one.
    pub(crate) origin: Option<String>,
    /// Where the last WebSocket or event stream before this step was opened.
    bound_at: Aim,
    /// The variable that gets the paths of redirects, where a step follows them.
    location: Option<SlotIndex>,
    /// The transaction within which the next step stands.
    pub(crate) transaction: Option<Transaction>,
    /// Jumps to the session's end, to be filled in when it is known.
    pub(crate) to_end: Vec<usize>,
}

impl<'a, 's> Session<'a, 's> {
    fn new(reader: &'a Reader<'s>, shared: &'a mut SharedNames, requests: &'a mut Requests) -> Self {
        let scope = Scope::default();
        Session {
            reader,
            shared,
            requests,
            scope,
            ops: Vec::new(),
            reachable: true,
            groups_open: 0,
            connection_uses: Vec::new(),
            origin: None,
            bound_at: Aim::Open,
            location: None,
            transaction: None,
            to_end: Vec::new(),
        }
    }

    fn compile(mut self, name: &str, steps: &Node, reachable: bool) -> SessionKind {
        self.reachable = reachable;
        self.define_within(steps, &STEPS);
        self.steps(steps);
        let end = self.here();
        for jump in std::mem::take(&mut self.to_end) {
            self.ops[jump] = Op::Jump(end);
        }
        self.ops.push(Op::End);
        self.requests.uses.push(self.connection_uses);
        if self.ops.iter().any(|op| matches!(op, Op::Code { reads_answer: true, .. })) {
            // any of them may be the last one before
            for op in &self.ops {
                if let Op::Request(request) = op
                    && let Some(plan) = self.requests.plans.get_mut(usize::from(*request))
                {
                    plan.shown_body_bytes = ALL_SHOWN;
                }
            }
        }
        if self.scope.is_too_large() {
            self.reader.sink.error(steps, "this session has too many variables and loops");
        }
        self.scope.warn_of_unused(self.reader.sink);
        let slot_names = self.scope.into_names();
        SessionKind {
            name: name.to_owned(),
            weight: 0,
            slots: slot_names.len(),
            slot_names,
            keep_cookies: false,
            ops: self.ops,
            script: None,
        }
    }

    fn names(&mut self) -> SessionNames<'_> {
        SessionNames { settings: self.reader.settings, scope: &mut self.scope, shared: self.shared }
    }

    /// Index of the next operation.
    pub(crate) fn here(&self) -> u32 {
        self.ops.len() as u32
    }
}
