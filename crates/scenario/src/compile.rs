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
mod load;
mod persistence;
mod rates;
mod requests;
mod scope;
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
use crate::objective::{self, Names};
use crate::plan::{
    About, Ask, AtLimit, Choose, Limits, Load, Objective, Op, PIPELINE_MAX, PLACES_MAX, Phase, Plan,
    Preparation, SESSIONS_MAX, STREAMS_MAX, SessionKind, SessionLimit, SlotIndex, Store, System, Target,
    USERS_MAX,
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
    let mut requests = Requests::new(root.get("defaults"), reader);
    let sessions = sessions(root, reader, &mut shared, &mut requests);
    let binds = requests.first(|ask| matches!(ask, Ask::WebSocket(_) | Ask::EventStream(_))).is_some();
    // After the sessions, so that their labels come first in the report.
    let prepare = root.get("prepare").map(|node| {
        let steps = node.get("steps").unwrap_or(node);
        let mut kind = Session::new(reader, &mut shared, &mut requests).compile("prepare", steps, true);
        kind.weight = 1;
        kind
    });
    let preparation = root.get("prepare").map_or(Preparation::default(), |node| preparation(node, reader));
    if preparation != Preparation::default()
        && let Some(kind) = &prepare
        && kind.ops.iter().any(|op| matches!(op, Op::Request(at) if requests.plans.get(usize::from(*at)).is_some_and(|plan| plan.ledger.is_some())))
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
    requests.warn_of_unreachable(reader.sink);
    let name_given = root.get("name").and_then(|node| reader.text(node));
    let system = system::read(root.get("system"), base, reader);
    let load = load?;
    let users = load.most_users();
    if let Some(node) = root.get("load").filter(|_| users > USERS_MAX) {
        reader.sink.error(node, format!("{users} users are too many; at most {USERS_MAX}"));
    }
    verify::warn_of_unentered(root, &requests, &objectives, reader);
    let limits = limits(root.get("limits"), &load, binds, reader);
    let mut system = system.unwrap_or_default();
    let mut targets = targets::read(root, base, reader);
    targets::assign(root, &system, &mut targets, &mut requests, reader);
    follow::add_hops(root, &system, &targets, &mut requests, reader);
    let kinds = sessions.iter().chain(&prepare);
    for (kind, uses) in kinds.zip(&requests.uses) {
        steps::bound::check_paths(&kind.ops, &requests.plans, uses, reader.sink);
    }
    let is_alone = targets.is_empty();
    let whole = Whole { root, requests: &requests, system: &system, targets: &targets, reader, is_alone };
    steps::check_beside(&whole);
    let stores = store::read(root.get("stores"), reader);
    stores.tell(root.get("system"), &mut system, reader);
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
    let watch = watch::read(root.get("watch"), reader);
    let mut plan = Plan { system, stores, watch, ..Plan::new(name, load) };
    if let (Some(node), Err(message)) = (root.get("watch"), plan.check_watched()) {
        reader.sink.error(node, message);
    }
    let named = plan.watched_names();
    let watched: Vec<(&str, bool)> =
        named.iter().zip(&plan.watch).map(|(name, watch)| (name.as_str(), watch.faults)).collect();
    let there = fault::There { system: &plan.system, started: &started, watched: &watched };
    plan.faults = fault::read(root.get("faults"), &there, &plan.load, reader);
    let mut plan = Plan {
        name: name_given.unwrap_or_else(|| stem(name)),
        description: root.get("description").and_then(|node| reader.text(node)).unwrap_or_default(),
        labels: requests.label_names(),
        tags: requests.tags(),
        groups: requests.groups,
        metrics: requests.metrics,
        requests: requests.plans,
        sessions,
        prepare,
        preparation,
        limits,
        counters: shared.counters(),
        feeders: shared.feeders,
        keys: shared.keys,
        verify,
        objectives,
        targets,
        seed: root.get("seed").and_then(|node| reader.whole(node, 0)),
        source_name: name.to_owned(),
        source: reader.sink.text().to_owned(),
        ..plan
    };
    held::check(root, &plan, reader);
    store_settings.retain(|(_, setting)| reader.settings.is_of_stores_only(setting));
    plan.store_settings = store_settings;
    Some(plan)
}

/// By how many users `prepare` is done, and how often.
fn preparation(node: &Node, reader: &Reader<'_>) -> Preparation {
    let get = |key| node.get(key).and_then(|node| reader.whole(node, 1));
    let users = get("users").map_or(1, |users| usize::try_from(users).unwrap_or(usize::MAX));
    if let Some(node) = node.get("users").filter(|_| users > PREPARING_MAX) {
        reader.sink.error(node, format!("{users} is too large; at most {PREPARING_MAX}"));
    }
    let times = get("times").unwrap_or(users as u64);
    Preparation { users: users.min(usize::try_from(times).unwrap_or(usize::MAX)), times }
}

fn stem(name: &str) -> String {
    let stem = Path::new(name).file_stem().and_then(|stem| stem.to_str());
    stem.unwrap_or(name).to_owned()
}

fn sessions(
    root: &Node,
    reader: &Reader<'_>,
    shared: &mut SharedNames,
    requests: &mut Requests,
) -> Vec<SessionKind> {
    let Some(node) = root.get("sessions") else { return Vec::new() };
    let mut kinds = Vec::new();
    for (name, node) in node.entries() {
        let (Some(name), Some(steps)) = (name.text(), node.get("steps")) else { continue };
        let weight = node.get("weight").and_then(|weight| reader.whole(weight, 0)).unwrap_or(1);
        let Ok(weight) = u32::try_from(weight) else {
            reader.sink.error(node, "this weight is too large");
            continue;
        };
        // a setting may leave a session out
        let by_setting = node.get("weight").and_then(Node::text).is_some_and(|text| text.contains("${"));
        let mut kind = Session::new(reader, shared, requests).compile(name, steps, weight > 0 || by_setting);
        if weight > 0 && !kind.ops.iter().any(|op| matches!(op, Op::Request(_))) && !reader.sink.has_errors()
        {
            reader
                .sink
                .error(steps, format!("the session \"{name}\" sends nothing; it needs at least one request"));
        }
        kind.weight = weight;
        kind.keep_cookies = node.get("keep cookies").and_then(|node| reader.bool(node)).unwrap_or(false);
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
        let Some(text) = node.get("objective").or_else(|| node.text().map(|_| node)) else { continue };
        let Some((mut objective, label)) = reader.objective(text, &requests.metrics) else { continue };
        objective.abort_early = node.get("abort early").and_then(|node| reader.bool(node)).unwrap_or(false);
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

fn limits(node: Option<&Node>, load: &Load, binds: bool, reader: &Reader<'_>) -> Limits {
    let get = |key: &str| node.and_then(|node| node.get(key));
    let whole = |key, least, most| get(key).and_then(|node| bounded(node, least, most, reader));
    let time = |key| get(key).and_then(|node| reader.duration(node));
    let usual = Limits::default();
    let keep_alive = get("keep alive").and_then(|node| reader.bool(node)).unwrap_or(usual.keep_alive);
    let pipeline = get("pipeline").map_or(usual.pipeline, |node| pipeline(node, keep_alive, binds, reader));
    let streams = whole("streams", 1, STREAMS_MAX).unwrap_or(usual.streams);
    let needed = load.most_users().div_ceil(pipeline.max(streams));
    let named = whole("connections", 1, USERS_MAX);
    let connections = named.unwrap_or(usual.connections).max(needed);
    if let Some((node, named)) = get("connections").zip(named).filter(|(_, named)| *named < needed) {
        let users = load.most_users();
        let each = match pipeline.max(streams) {
            1 => "who hold one each".to_owned(),
            depth => format!("{depth} to a connection"),
        };
        let message = format!(
            "{named} connections are too few for {users} users, {each}: there will be {needed}; give that many, or fewer users"
        );
        reader.sink.warn(node.position, message);
    }
    if let Some(node) = get("pipeline").filter(|_| connections.saturating_mul(pipeline) > PLACES_MAX) {
        let message = format!(
            "{connections} connections with {pipeline} requests at once each are too many; at most {PLACES_MAX} together"
        );
        reader.sink.error(node, message);
    }
    Limits {
        streams,
        connections,
        connections_named: get("connections").is_some(),
        choose: get("choose").and_then(|node| choose(node, reader)).unwrap_or(usual.choose),
        waiting: whole("waiting", 0, SESSIONS_MAX),
        in_flight: session_limit(node, load, reader),
        connect_timeout: time("connect timeout").unwrap_or(usual.connect_timeout),
        body_bytes: get("body")
            .and_then(|node| reader.size(node))
            .map_or(usual.body_bytes, |bytes| bytes as usize),
        drain: time("drain").unwrap_or(usual.drain),
        sessions: get("sessions").and_then(|node| reader.whole(node, 1)),
        keep_alive,
        pipeline,
        batch: get("batch").map_or(usual.batch, |node| batch(node, pipeline, reader)),
    }
}

/// A count within bounds; what is too large is told, and as large as it may be.
fn bounded(node: &Node, least: u64, most: usize, reader: &Reader<'_>) -> Option<usize> {
    let count = reader.whole(node, least)?;
    let within = usize::try_from(count).ok().filter(|count| *count <= most);
    if within.is_none() {
        reader.sink.error(node, format!("{count} is too large; at most {most}"));
    }
    Some(within.unwrap_or(most))
}

/// How many requests leave together over a connection whose answers are to come.
fn batch(node: &Node, pipeline: usize, reader: &Reader<'_>) -> usize {
    let Some(batch) = reader.whole(node, 1) else { return 1 };
    let most = pipeline as u64;
    if batch > most {
        let message = format!("{batch} is too large; a connection carries {most} at once (\"pipeline\")");
        reader.sink.error(node, message);
    }
    batch.min(most) as usize
}

/// Which of the free connections a session takes.
fn choose(node: &Node, reader: &Reader<'_>) -> Option<Choose> {
    match reader.word(node, &["in turn", "first free", "fill"])? {
        "first free" => Some(Choose::FirstFree),
        "fill" => Some(Choose::Fill),
        _ => Some(Choose::InTurn),
    }
}

/// How many requests a connection carries at once.
fn pipeline(node: &Node, keep_alive: bool, binds: bool, reader: &Reader<'_>) -> usize {
    let Some(depth) = bounded(node, 1, PIPELINE_MAX, reader) else { return 1 };
    if depth > 1 && binds {
        let reason = "sessions share connections where requests are pipelined, and a WebSocket has its own, as an event stream has; leave out";
        reader.sink.error(node, format!("{reason} one of the two"));
    }
    if depth > 1 && !keep_alive {
        let reason = "a connection that is closed after each request carries one at a time; leave out";
        reader.sink.error(node, format!("{reason} \"keep alive: false\", or this"));
    }
    depth
}

fn session_limit(node: Option<&Node>, load: &Load, reader: &Reader<'_>) -> Option<SessionLimit> {
    let node = node?;
    let at_limit = node.get("at limit").and_then(|node| reader.word(node, &["wait", "drop"]));
    let Some((key, sessions)) = node.entry("in flight") else {
        if let Some((key, _)) = node.entry("at limit") {
            reader.sink.error(key, "\"at limit\" needs a limit beside it: in flight");
        }
        return None;
    };
    if load.streams().iter().all(|stream| stream.model.is_closed()) {
        reader.sink.error(
            key,
            "users are their own limit: sessions in flight are limited where they arrive at a rate",
        );
    }
    let most = bounded(sessions, 1, SESSIONS_MAX, reader)?;
    let at_limit = if at_limit == Some("drop") { AtLimit::Drop } else { AtLimit::Wait };
    Some(SessionLimit { most, at_limit })
}

/// A whole scenario, when its parts are known, for what has to fit together.
pub(crate) struct Whole<'a> {
    pub(crate) root: &'a Node,
    pub(crate) requests: &'a Requests,
    pub(crate) system: &'a System,
    /// What is driven beside it.
    pub(crate) targets: &'a [Target],
    pub(crate) reader: &'a Reader<'a>,
    /// Whether nothing is driven beside the system.
    pub(crate) is_alone: bool,
}

impl Whole<'_> {
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
