//! A scenario after checking and compiling: what the driver executes.
//!
//! A session kind is a flat array of [`Op`]s over [slots](crate::slot::Slot); every control step has become jumps.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tidemark_wire::json;

use crate::expr::Expr;
use crate::grammar::kinds::words;
use crate::outside::Origin;
use crate::secrets::Secrets;
use crate::store_facts::store_facts;
use crate::template::Template;

mod aerospike;
mod ask;
mod code;
mod fault;
mod follow;
mod grpc;
mod launch;
mod limits;
mod load;
mod measure;
mod memcached;
mod persistence;
mod proxy;
mod ratio;
mod script;
mod statement;
mod store;
mod system;
mod upload;
mod verify;
mod watch;

pub use crate::context::Feeder;
pub use crate::objective::{About, Comparison, CustomFigure, Metric, Objective, Within};
pub use crate::slot::SlotIndex;
pub use aerospike::AerospikeRequest;
pub use ask::{
    Call, EventStreamStep, HttpRequest, RedisCommand, RequestKind, TargetForm, Wait, WebSocketStep,
};
pub use code::{CodePlan, CodeVariable};
pub use fault::{Fault, FaultKind, ROLL_PAUSE};
pub use follow::{Follow, Hops};
pub use grpc::{GrpcCall, GrpcStep};
pub use launch::{Hook, INSTANCE, Launch, PORT, READY_STATUS, Ready};
pub use limits::{
    AtLimit, Choose, LABEL_BYTES, LABELS_MAX, Limits, PIPELINE_MAX, PLACES_MAX, SESSIONS_MAX, STREAMS_MAX,
    SessionLimit, USERS_MAX, VALUES_BYTES_MAX,
};
pub use load::{Curve, KindLoad, Load, LoadModel, PHASES_MAX, Pause, Phase, Series, Spacing, Stream};
pub use measure::{METRICS_MAX, MetricKind, MetricPlan};
pub use memcached::{MemcachedCommand, MemcachedWord};
pub use persistence::{AppendOnly, Persistence, SnapshotAfter};
pub use proxy::{NO_PROXY, PROXY_OF_ENVIRONMENT, check_proxy};
pub use ratio::{Counted, RATIOS_MAX, RatioForm, RatioPlan};
pub use script::{Grace, SCRIPT_BYTES_MAX, ScriptBounds, ScriptPlan, ScriptTool};
pub use statement::{Statement, TransactionPart};
pub use store::{Cluster, Durability, Product, Store, StoreOrigin};
pub use system::{
    Balancer, HttpVersion, NOBODY, Resolve, SYSTEM_TARGET, System, SystemOrigin, Target, Tier, TlsSettings,
};
pub use upload::{FileBody, FileChange, UploadPiece};
pub use verify::{
    CassandraTable, ContentsQuestion, CountQuestion, Each, NextPage, NextSource, PARALLEL_MAX, QUESTIONS_MAX,
    ReadFrom, Verify,
};
pub use watch::{Agent, MetricSeries, SERIES_MAX, WATCHED_MAX, Watch, Watched, is_harmless};

/// What stands in front of a called method in labels.
pub const CALL: &str = "CALL";
/// Where remote calls are taken if a scenario does not say.
pub const RPC_PATH: &str = "/rpc";
/// That all of an answer's body is kept to be seen.
pub const ALL_SHOWN: usize = usize::MAX;
/// Most groups of steps that are within each other.
pub const GROUPS_DEEP: usize = 4;
/// Most requests of a parallel step.
pub const PARALLEL_REQUESTS_MAX: usize = 1_000;

/// Everything that the driver and the lab need to carry an experiment out.
#[derive(Debug, Clone)]
pub struct Plan {
    /// Name of the scenario.
    pub name: String,
    /// What it is, for a person.
    pub description: String,
    /// Labels of the requests, in the order of the file.
    pub labels: Vec<String>,
    /// Of each label: texts by name that stand beside it in results.
    pub tags: Vec<BTreeMap<String, String>>,
    /// Groups of steps, in the order of the file; [`Op::BeginGroup`] names them by index.
    pub groups: Vec<String>,
    /// What the scenario measures itself, in the order of the file; [`Op::Measure`] names it by index.
    pub metrics: Vec<MetricPlan>,
    /// Ratios of what it counts, in the order of the file.
    pub ratios: Vec<RatioPlan>,
    /// Requests; [`Op::Request`] names them by index.
    pub requests: Vec<RequestPlan>,
    /// What virtual users do, by weight.
    pub sessions: Vec<SessionKind>,
    /// Done before the load; a failure here ends the run with exit status 3.
    pub prepare: Option<SessionKind>,
    /// By how many, and how often.
    pub preparation: Preparation,
    /// How sessions come.
    pub load: Load,
    /// Number of shared counters.
    pub counters: usize,
    /// Rows that sessions draw from.
    pub feeders: Vec<Feeder>,
    /// Numbers of records, by name, of which it is known which are inserted and how new their values are.
    pub keys: Vec<KeysPlan>,
    /// Code of the sessions; [`Op::Code`] names it by index.
    pub codes: Vec<CodePlan>,
    /// Bounds of code and of scripts.
    pub script: ScriptBounds,
    /// Bounds of the driver.
    pub limits: Limits,
    /// How the system is asked for what it holds, to be compared with the ledger.
    pub verify: Option<Verify>,
    /// What decides pass or fail.
    pub objectives: Vec<Objective>,
    /// What is started before, or only driven.
    pub system: System,
    /// Where requests go beside the system.
    pub targets: Vec<Target>,
    /// Parts of the system that are started before what is driven, in this order, and stopped after it.
    pub services: Vec<System>,
    /// Stores that are started before the system, and stopped after it.
    pub stores: Vec<Store>,
    /// Settings given from outside that say of a store and of nothing else, each with the store's name.
    pub store_settings: Vec<(String, String)>,
    /// The settings and what they are in this run, in the order of the file, without secrets.
    pub settings: Vec<(String, String)>,
    /// What nobody here starts, and is looked at all the same.
    pub watch: Vec<Watch>,
    /// What is broken on purpose, in order of time.
    pub faults: Vec<Fault>,
    /// Seed of the random numbers, where the scenario fixes one.
    pub seed: Option<u64>,
    /// Where the scenario came from, for messages.
    pub source_name: String,
    /// The scenario as it was, without its secrets.
    pub source: String,
    /// What must not be written down.
    pub secrets: Secrets,
    /// What it was read from.
    pub read_from: Arc<Origin>,
}

impl Plan {
    /// A plan of a load and nothing else: no session, the usual bounds.
    pub fn new(name: &str, load: Load) -> Plan {
        Plan {
            name: name.to_owned(),
            description: String::new(),
            labels: Vec::new(),
            tags: Vec::new(),
            groups: Vec::new(),
            metrics: Vec::new(),
            ratios: Vec::new(),
            requests: Vec::new(),
            sessions: Vec::new(),
            prepare: None,
            preparation: Preparation::default(),
            load,
            counters: 0,
            feeders: Vec::new(),
            keys: Vec::new(),
            codes: Vec::new(),
            script: ScriptBounds::default(),
            limits: Limits::default(),
            verify: None,
            objectives: Vec::new(),
            system: System::default(),
            targets: Vec::new(),
            services: Vec::new(),
            stores: Vec::new(),
            store_settings: Vec::new(),
            settings: Vec::new(),
            watch: Vec::new(),
            faults: Vec::new(),
            seed: None,
            source_name: String::new(),
            source: String::new(),
            secrets: Secrets::default(),
            read_from: Arc::default(),
        }
    }

    /// The requests whose writes are entered in the ledger, with their labels.
    pub fn entered(&self) -> impl Iterator<Item = (&str, &LedgerPlan)> {
        self.requests.iter().filter_map(|request| {
            let label = self.labels.get(usize::from(request.label)).map_or("", String::as_str);
            request.ledger.as_ref().map(|ledger| (label, ledger))
        })
    }

    /// The requests that go to a target; 0 is the system.
    pub fn requests_to(&self, target: usize) -> impl Iterator<Item = &RequestPlan> {
        self.requests.iter().filter(move |request| usize::from(request.target) == target)
    }

    /// The requests that sessions of a kind make, in the order of their steps.
    pub fn requests_of<'a>(
        &'a self,
        kind: &'a SessionKind,
    ) -> impl DoubleEndedIterator<Item = &'a RequestPlan> {
        kind.ops.iter().filter_map(|op| match op {
            Op::Request(request) => self.requests.get(usize::from(*request)),
            _ => None,
        })
    }

    /// The labels of what a kind of sessions sends, by its steps or its script: indices, some of them more than once.
    pub fn labels_of<'a>(&'a self, kind: &'a SessionKind) -> impl Iterator<Item = usize> + 'a {
        let of_script = kind.script.iter().flat_map(|script| {
            std::iter::once(script.label).chain(script.labels.iter().map(|(_, label)| *label))
        });
        self.requests_of(kind).map(|request| request.label).chain(of_script).map(usize::from)
    }

    /// Whether the requests to a target are remote calls: all are, or none is.
    pub fn has_calls_to(&self, target: usize) -> bool {
        self.requests_to(target).any(RequestPlan::is_call)
    }

    /// The methods that are called there, `service.method`; some more than once.
    pub fn called_at(&self, target: usize) -> impl Iterator<Item = &str> {
        self.requests_to(target).filter_map(RequestPlan::called)
    }

    /// Drives what runs at this URL in place of the system. A store that was the system and is nothing else is not
    /// started.
    ///
    /// # Errors
    /// In words: a fault is about such a store, so that what is broken would not be what is driven; or a setting given from
    /// outside says of nothing else, so that it would be of no effect.
    pub fn drive_instead(&mut self, url: &str) -> Result<(), String> {
        self.secrets.add_password_of(url);
        let before = std::mem::replace(&mut self.system.origin, SystemOrigin::Url(url.to_owned()));
        // what called the services is not there
        self.services.clear();
        self.system.tier = Tier::default();
        let SystemOrigin::Url(before) = before else { return Ok(()) };
        let is_replaced = |fault: &&Fault| store_facts(&before).any(|fact| fault.is_about(fact.store));
        if let Some(fault) = self.faults.iter().find(is_replaced) {
            return Err(format!(
                "--url replaces the store that `{fault}` is about, so that another one would be broken than is driven; leave out \
                 --url, or the fault"
            ));
        }
        let targets = &self.targets;
        let is_named = |name: &str| {
            targets.iter().any(|target| match &target.at.origin {
                SystemOrigin::Url(url) => store_facts(url).any(|fact| fact.store == name),
                _ => false,
            })
        };
        let driven: Vec<&str> =
            store_facts(&before).map(|fact| fact.store).filter(|name| !is_named(name)).collect();
        let is_driven = |store: &str| driven.contains(&store);
        // what says how another one is started that there is, too
        let is_kept = |setting: &str| {
            let is_another = |store: &str| !is_driven(store) && self.stores.iter().any(|of| of.name == store);
            self.store_settings.iter().any(|(store, other)| other == setting && is_another(store))
        };
        let lost =
            self.store_settings.iter().filter(|(store, setting)| is_driven(store) && !is_kept(setting));
        let mut lost: Vec<String> = lost.map(|(_, setting)| format!("--set {setting}")).collect();
        lost.dedup();
        if !lost.is_empty() {
            return Err(format!(
                "{} would be of no effect: only the store \"{}\" is started so, and --url replaces it by what runs already; \
                 leave that out, or --url",
                lost.join(" and "),
                driven.join("\", \"")
            ));
        }
        self.stores.retain(|store| !driven.contains(&store.name.as_str()));
        Ok(())
    }

    /// Whether the system is one of the scenario's stores.
    pub fn drives_a_store(&self) -> bool {
        matches!(&self.system.origin, SystemOrigin::Url(url) if store_facts(url).next().is_some())
    }

    /// Names of all targets, the system first.
    pub fn target_names(&self) -> Vec<String> {
        let named = self.targets.iter().map(|target| target.name.clone());
        std::iter::once(SYSTEM_TARGET.to_owned()).chain(named).collect()
    }

    /// The target of each label's requests.
    pub fn targets_of_labels(&self) -> Vec<usize> {
        let of = |label: usize| self.requests.iter().find(|request| usize::from(request.label) == label);
        (0..self.labels.len()).map(|label| of(label).map_or(0, |request| request.target.into())).collect()
    }

    /// The methods that are called at the system.
    pub fn called(&self) -> impl Iterator<Item = &str> {
        self.called_at(0)
    }

    /// Whether any session, or what prepares them, has a step over a WebSocket.
    pub fn has_websockets(&self) -> bool {
        self.requests.iter().any(|request| matches!(request.ask, RequestKind::WebSocket(_)))
    }

    /// Whether any session, or what prepares them, has a step with an event stream.
    pub fn has_event_streams(&self) -> bool {
        self.requests.iter().any(|request| matches!(request.ask, RequestKind::EventStream(_)))
    }
}

/// By how many users a session is done before the load, and how often.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Preparation {
    /// How many users at once.
    pub users: usize,
    /// How often they do it, all together.
    pub times: u64,
}

impl Default for Preparation {
    /// One user, once.
    fn default() -> Self {
        Preparation { users: 1, times: 1 }
    }
}

/// Numbers of records: which are inserted, and how new their values are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeysPlan {
    /// Their name.
    pub name: String,
    /// Numbers go from 1 to this.
    pub most: u64,
    /// So many are there before the run.
    pub loaded: u64,
}

/// What a request does with a number of `keys`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeyStep {
    /// Index into [`Plan::keys`].
    pub keys: usize,
    /// What it does.
    pub does: KeyUse,
    /// The variable with the number.
    pub number: SlotIndex,
    /// The variable that gets the version which is written; of a read, the least one that may be found.
    pub version: SlotIndex,
}

/// What is done with a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyUse {
    /// The next number is taken, and inserted once the request ended well.
    Insert,
    /// A version is written.
    Write,
    /// What is found must be of the number, whole, and no older than what was acknowledged before the request was sent.
    Read,
}

/// What one virtual user does.
#[derive(Debug, Clone)]
pub struct SessionKind {
    /// Its name.
    pub name: String,
    /// How often it is chosen, against the sum of all weights.
    pub weight: u32,
    /// Number of variables.
    pub slots: usize,
    /// Names of the variables, for messages.
    pub slot_names: Vec<String>,
    /// Whether cookies are kept from one iteration of a closed user to the next (they never outlive a session otherwise).
    pub keep_cookies: bool,
    /// What is done, in order; ends with [`Op::End`].
    pub ops: Vec<Op>,
    /// The script that says what is done at [`Op::Program`], where one does.
    pub script: Option<ScriptPlan>,
}

/// One operation. Targets are indices into [`SessionKind::ops`].
#[derive(Debug, Clone)]
pub enum Op {
    /// Send a request and wait for its answer.
    Request(u16),
    /// Set a variable (the old value may be read by the expression).
    Set {
        /// Which variable.
        slot: SlotIndex,
        /// To what.
        value: Expr,
    },
    /// Take the next row of a feeder whose rows are held; the one that the session has of it is given back first.
    Take {
        /// Index into [`Plan::feeders`].
        feeder: usize,
        /// The variable that gets the row's index.
        row: SlotIndex,
    },
    /// Go on at another operation.
    Jump(u32),
    /// Go on at another operation unless the condition holds.
    JumpUnless {
        /// Condition.
        condition: Expr,
        /// Where to go if it does not hold.
        to: u32,
    },
    /// Go on at another operation unless the last request ended well.
    JumpUnlessGood(u32),
    /// Go on at one of several operations, by chance or in turn.
    Choose {
        /// Upper bounds (exclusive) of the draw and where each goes; ascending.
        ways: Vec<(u32, u32)>,
        /// The draw is uniform in `0..total`.
        total: u32,
        /// The shared counter that stands for the draw where the ways are gone in turn, over all users.
        counter: Option<usize>,
    },
    /// Wait; microseconds.
    Think(Expr),
    /// What follows is of a group, too, up to its [`Op::EndGroup`]; at most [`GROUPS_DEEP`] within each other.
    BeginGroup(u16),
    /// The group that began last is over.
    EndGroup,
    /// Count a step as failed, because what it says has no sense.
    Refuse {
        /// What its author wrote.
        text: Arc<str>,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// Measure a number of the scenario's own.
    Measure {
        /// Index into [`Plan::metrics`].
        metric: u16,
        /// The number.
        value: Expr,
        /// As its author wrote it.
        text: String,
        /// Whether only where the last request ended well.
        if_good: bool,
    },
    /// Make the requests up to another operation at the same time; go on there when all are over.
    Parallel {
        /// Where it goes on. Between are requests of HTTP alone.
        until: u32,
        /// How many are under way to each target.
        at_most: u16,
    },
    /// Run code, which may look at the last answer and set variables; whoever drives the plan brings what runs it.
    Code {
        /// Index into [`Plan::codes`].
        code: u16,
        /// Whether it looks at the last answer.
        reads_answer: bool,
    },
    /// Make the requests of a program, until that has no more; whoever drives the plan brings it.
    Program,
    /// The session's end.
    End,
}

/// One labelled request, its parts compiled.
#[derive(Debug, Clone)]
pub struct RequestPlan {
    /// Index into [`Plan::labels`].
    pub label: u16,
    /// Where it goes: 0 is the system, what follows are [`Plan::targets`].
    pub target: u16,
    /// What is sent.
    pub ask: RequestKind,
    /// How its write is entered in the ledger, if it is.
    pub ledger: Option<LedgerPlan>,
    /// What it does with a number of `keys`, if it does.
    pub key: Option<KeyStep>,
    /// Longest time from due sending to the last byte.
    pub timeout: Duration,
    /// What is kept from the answer.
    pub extractions: Vec<Extraction>,
    /// What must hold of the answer; without a status check, any status below 400 is right.
    pub checks: Vec<Check>,
    /// Bytes of the answer's body that are kept, from its beginning on, though nothing looks at it: for whoever wants to see
    /// it. All of it is read where it is encoded, if these are [`ALL_SHOWN`].
    pub shown_body_bytes: usize,
    /// How redirects are followed, if they are; then these are of the last answer.
    pub follow: Option<Follow>,
}

impl RequestPlan {
    /// Whether it is a remote call.
    pub fn is_call(&self) -> bool {
        matches!(self.ask, RequestKind::Call(_))
    }

    /// The method that it calls, if it is a remote call.
    pub fn called(&self) -> Option<&str> {
        match &self.ask {
            RequestKind::Call(call) => Some(&call.method),
            _ => None,
        }
    }

    /// The request of HTTP, if it is one or begins with one.
    pub fn http(&self) -> Option<&HttpRequest> {
        match &self.ask {
            RequestKind::Http(request)
            | RequestKind::WebSocket(WebSocketStep::Connect { request, .. })
            | RequestKind::EventStream(EventStreamStep::Connect(request)) => Some(request),
            _ => None,
        }
    }

    /// Whether it is of interest later which target an answer is to: where a location leads, and which paths a cookie is
    /// for, depends on that.
    pub fn needs_target(&self) -> bool {
        let is_location =
            |e: &Extraction| matches!(&e.source, Source::Header(name) if name == Follow::LOCATION_HEADER);
        self.follow.is_some()
            || self
                .http()
                .is_some_and(|request| request.form == TargetForm::Whole || request.cookie_path("").is_none())
            || self.extractions.iter().any(is_location)
    }

    /// Whether an answer's body is needed as a whole.
    pub fn needs_body(&self) -> bool {
        self.shown_body_bytes == ALL_SHOWN || self.looks_at_body()
    }

    /// Whether an extraction or a check looks at an answer's body.
    pub fn looks_at_body(&self) -> bool {
        let from_body =
            |source: &Source| !matches!(source, Source::Header(_) | Source::Cookie(_) | Source::Status);
        self.extractions.iter().any(|e| from_body(&e.source)) || self.checks.iter().any(Check::looks_at_body)
    }
}

/// A write that is entered in the ledger: before it is sent, its content is made and put into a variable, which the
/// request then sends.
#[derive(Debug, Clone)]
pub struct LedgerPlan {
    /// The variable.
    pub slot: SlotIndex,
    /// What stands before, between and behind the entry and the checksum.
    pub text: [Template; 3],
    /// Whether the entry is the first of the two.
    pub entry_first: bool,
}

/// A value kept from an answer.
#[derive(Debug, Clone)]
pub struct Extraction {
    /// Variable that gets it.
    pub slot: SlotIndex,
    /// Where it is.
    pub source: Source,
    /// What happens where there is none.
    pub when_missing: WhenMissing,
}

/// What happens where an extraction finds nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WhenMissing {
    /// The variable becomes missing, and the run says how often that was.
    Tell,
    /// The variable becomes missing, as the scenario expects.
    Clear,
    /// The variable stays as it was.
    Keep,
    /// The request counts as failed (outcome `check`), the variable becomes missing.
    Fail,
}

/// Where a value comes from.
#[derive(Debug, Clone)]
pub enum Source {
    /// The first JSON value at a path: text unescaped, everything else as written; null counts as nothing.
    Json(json::Path),
    /// All JSON values at a path, as a list (an empty list if there is none).
    JsonAll(json::Path),
    /// How many JSON values are at a path (0 if there is none).
    JsonCount(json::Path),
    /// A header's value, by its lower-case name.
    Header(String),
    /// A cookie that the answer sets, by name.
    Cookie(String),
    /// A group of the first match in the body.
    Regex(regex::bytes::Regex, usize),
    /// The whole body.
    Body,
    /// The status code, a number.
    Status,
}

/// What must hold of an answer.
#[derive(Debug, Clone)]
pub enum Check {
    /// The status is one of these ranges, bounds included.
    Status(Vec<(u16, u16)>),
    /// A header, by its lower-case name.
    Header(String, TextTest),
    /// The body.
    Body(TextTest),
    /// The first JSON value at a path, as text; null counts as nothing.
    Json(json::Path, TextTest),
    /// The same with its type.
    JsonValue(json::Path, JsonTest),
    /// It holds so many values of the number that a variable has, and no older version than another has (docs/kv.md).
    Value {
        /// The variable with the number.
        number: SlotIndex,
        /// The one with the version.
        least: SlotIndex,
        /// How many values.
        values: u32,
    },
    /// An expression over the variables, evaluated after the extractions; with its source text.
    Holds(Expr, String),
}

impl Check {
    /// Whether it looks at an answer's body.
    pub fn looks_at_body(&self) -> bool {
        match self {
            Check::Body(_) | Check::Json(..) | Check::JsonValue(..) | Check::Value { .. } => true,
            Check::Status(_) | Check::Header(..) | Check::Holds(..) => false,
        }
    }
}

/// What must hold of a value of JSON.
#[derive(Debug, Clone)]
pub enum JsonTest {
    /// It is this one, which is written as JSON: numbers by their size, members in any order.
    Is(Template),
    /// It is of this type.
    Type(JsonType),
    /// Nothing is there.
    Absent,
    /// Nothing is there, or null.
    Empty,
}

words! {
    /// A type of JSON.
    pub enum JsonType {
        /// A text.
        String = "string",
        /// A number.
        Number = "number",
        /// True or false.
        Boolean = "boolean",
        /// Null.
        Null = "null",
        /// A list.
        Array = "array",
        /// An object.
        Object = "object",
    }
}

impl JsonType {
    /// Of a raw token.
    pub fn of(token: &[u8]) -> Option<JsonType> {
        Some(match token.first()? {
            b'"' => JsonType::String,
            b't' | b'f' => JsonType::Boolean,
            b'n' => JsonType::Null,
            b'[' => JsonType::Array,
            b'{' => JsonType::Object,
            _ => JsonType::Number,
        })
    }
}

/// What must hold of a text.
#[derive(Debug, Clone)]
pub enum TextTest {
    /// It is there at all.
    Exists,
    /// It is just this.
    Equals(Template),
    /// This is somewhere in it.
    Contains(Template),
    /// It matches.
    Matches(regex::bytes::Regex),
}
