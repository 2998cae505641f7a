//! A script: what all its users share.

use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap};
use std::fs;
use std::path::{Component, Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use serde_json::Value;

use tidemark_scenario::plan::{LABELS_MAX, ScriptBounds};

use crate::compiled::Compiled;
use crate::console::Console;
use crate::metrics::{Definitions, Part};
use crate::options::{Common, Given, ScenarioOf};
use crate::thresholds::{self, Threshold};

/// Most memory of a user, bytes.
const MEMORY_MAX: usize = 256 << 20;
/// Longest that a user is at work without waiting.
const TURN_MAX: Duration = Duration::from_secs(30);
/// Largest file that a script opens, bytes.
const FILE_BYTES_MAX: u64 = 256 << 20;
/// Iterations that threw whose words are told.
const THROWN_TOLD_MAX: u64 = 10;

/// Most texts that a script keeps secret.
const SECRETS_MAX: usize = 1_000;
/// What stands in their place, as in k6.
const MASK: &str = "***SECRET_REDACTED***";

/// Most kinds of sessions of a plan: each has a label.
const KINDS_MAX: usize = LABELS_MAX;

/// What a user may take.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bounds {
    pub memory: usize,
    pub turn: Duration,
}

impl Bounds {
    /// The usual ones, unless the scenario gives others.
    pub fn of(given: ScriptBounds) -> Bounds {
        Bounds { memory: given.memory_bytes.unwrap_or(MEMORY_MAX), turn: given.step.unwrap_or(TURN_MAX) }
    }
}

/// A script, its options and its users' common state.
#[derive(Debug)]
pub(crate) struct Script {
    /// As messages name it.
    pub name: String,
    pub path: PathBuf,
    pub source: String,
    pub env: Vec<(String, String)>,
    /// What the command line says in place of its options.
    pub given: Given,
    pub bounds: Bounds,
    pub definitions: Definitions,
    pub compiled: Compiled,
    /// What it said of itself when it was first run.
    pub told: OnceLock<Told>,
    /// What `setup` returned, as JSON.
    pub data: OnceLock<Arc<str>>,
    /// The system's URL, without a slash at its end: for URLs that begin with a slash.
    pub base: OnceLock<String>,
    read_at: Instant,
    /// When the run began, nanoseconds since it was read.
    begun_ns: AtomicU64,
    files: Mutex<HashMap<PathBuf, Arc<[u8]>>>,
    arrays: Mutex<Vec<(String, Arc<Vec<String>>)>>,
    /// Why the run is to end.
    aborted: Mutex<Option<String>>,
    /// Whether it is: users ask before each request.
    is_aborted: AtomicBool,
    /// Why the run has failed, though it goes on.
    failed: Mutex<Option<String>>,
    console: Console,
    /// Texts that it must not write.
    secrets: Mutex<Vec<String>>,
    /// Iterations that ended with an exception.
    pub thrown: AtomicU64,
    pub iterations: AtomicU64,
    pub users: AtomicU64,
    /// Iterations begun, by the plan's kinds of sessions.
    pub iterations_of: Vec<AtomicU64>,
    /// Of each kind of sessions, iterations that are under way, where they are bounded.
    pub active_of: Vec<AtomicU64>,
    /// Iterations that found no place.
    pub dropped: AtomicU64,
    /// Requests that were not sent, as their URL leads nowhere.
    pub nowhere: AtomicU64,
    /// When the next request may leave, nanoseconds since it was read, where their rate is bounded.
    next_slot_ns: AtomicU64,
    /// Iterations that have begun and not ended.
    pub under_way: AtomicU64,
    /// Most of them at once.
    pub most_under_way: AtomicU64,
    /// Iterations that ended where they were.
    pub interrupted: AtomicU64,
    /// What its clients of gRPC load of message types.
    pub grpc_types: Mutex<Vec<GrpcTypes>>,
    /// What clients say that connect to an origin.
    pub grpc_origins: Mutex<HashMap<String, GrpcTarget>>,
    /// What its clients of gRPC are told and do not use.
    pub grpc_unused: Mutex<BTreeSet<String>>,
    /// Whether it imports what opens WebSockets.
    pub opens_websockets: AtomicBool,
    /// Whether it may list the fields of an answer.
    pub lists_fields: AtomicBool,
    /// Whether nothing is sent and nothing printed.
    pub is_rehearsal: bool,
}

/// Message types of gRPC that a script loads, by paths relative to it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GrpcTypes {
    /// Files of `.proto`.
    pub protos: Vec<String>,
    /// Folders in which these import each other.
    pub includes: Vec<String>,
    /// Files with descriptor sets.
    pub descriptors: Vec<String>,
}

impl GrpcTypes {
    /// Adds what others have.
    pub(crate) fn add(&mut self, others: &GrpcTypes) {
        let add = |known: &mut Vec<String>, more: &[String]| {
            for one in more {
                if !known.contains(one) {
                    known.push(one.clone());
                }
            }
        };
        add(&mut self.protos, &others.protos);
        add(&mut self.includes, &others.includes);
        add(&mut self.descriptors, &others.descriptors);
    }
}

/// What clients of gRPC say of where they connect to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GrpcTarget {
    /// What they have loaded.
    pub types: GrpcTypes,
    /// Where connections go, where that is not what is asked for; two at most.
    pub addresses: Vec<String>,
    /// What they say of TLS; two at most.
    pub tls: Vec<GrpcTls>,
}

/// What a client of gRPC says of TLS, as PEM; nothing where it says none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GrpcTls {
    /// Authorities that it trusts.
    pub authorities: Vec<String>,
    /// Its own certificate.
    pub certificate: String,
    /// The key of that.
    pub key: String,
    /// Whether the key has a password.
    pub has_password: bool,
}

/// What a script says of itself.
#[derive(Debug, Clone, Default)]
pub(crate) struct Told {
    pub options: Value,
    /// The functions that it exports.
    pub functions: Vec<String>,
    pub scenarios: Vec<ScenarioOf>,
    /// What its options say of all requests and iterations.
    pub common: Common,
    pub thresholds: Vec<Threshold>,
    /// The parts of metrics that thresholds ask for.
    pub parts: Vec<Part>,
}

impl Script {
    pub fn new(name: &str, path: &Path, source: String, env: Vec<(String, String)>, given: Given) -> Script {
        Script {
            name: name.to_owned(),
            path: normal(path),
            source,
            env,
            given,
            bounds: Bounds::of(ScriptBounds::default()),
            definitions: Definitions::new(),
            compiled: Compiled::default(),
            told: OnceLock::new(),
            data: OnceLock::new(),
            base: OnceLock::new(),
            read_at: Instant::now(),
            begun_ns: AtomicU64::new(0),
            files: Mutex::default(),
            arrays: Mutex::default(),
            aborted: Mutex::default(),
            is_aborted: AtomicBool::new(false),
            failed: Mutex::default(),
            console: Console::new(name),
            secrets: Mutex::default(),
            thrown: AtomicU64::new(0),
            iterations: AtomicU64::new(0),
            users: AtomicU64::new(0),
            iterations_of: (0..KINDS_MAX).map(|_| AtomicU64::new(0)).collect(),
            active_of: (0..KINDS_MAX).map(|_| AtomicU64::new(0)).collect(),
            dropped: AtomicU64::new(0),
            nowhere: AtomicU64::new(0),
            next_slot_ns: AtomicU64::new(0),
            under_way: AtomicU64::new(0),
            most_under_way: AtomicU64::new(0),
            interrupted: AtomicU64::new(0),
            grpc_types: Mutex::default(),
            grpc_origins: Mutex::default(),
            grpc_unused: Mutex::default(),
            opens_websockets: AtomicBool::new(false),
            lists_fields: AtomicBool::new(false),
            is_rehearsal: false,
        }
    }

    /// The run begins.
    pub fn set_begun(&self) {
        self.begun_ns.store(self.read_at.elapsed().as_nanos() as u64, Ordering::Relaxed);
        self.next_slot_ns.store(0, Ordering::Relaxed);
    }

    /// Since then, or since it was read.
    pub fn elapsed(&self) -> Duration {
        let begun = Duration::from_nanos(self.begun_ns.load(Ordering::Relaxed));
        self.read_at.elapsed().saturating_sub(begun)
    }

    /// How long the next request has to wait, as the options bound the rate of all.
    pub fn wait_for_slot(&self) -> Option<Duration> {
        let between_ns = (1e9 / self.told().common.rps?) as u64;
        let now_ns = self.elapsed().as_nanos() as u64;
        let taken = |next_ns: u64| Some(next_ns.max(now_ns).saturating_add(between_ns));
        let slot_ns = self.next_slot_ns.fetch_update(Ordering::Relaxed, Ordering::Relaxed, taken);
        let wait_ns = slot_ns.unwrap_or_default().saturating_sub(now_ns);
        (wait_ns > 0).then(|| Duration::from_nanos(wait_ns))
    }

    /// What it said of itself.
    pub fn told(&self) -> &Told {
        static NOTHING: OnceLock<Told> = OnceLock::new();
        self.told.get().unwrap_or_else(|| NOTHING.get_or_init(Told::default))
    }

    /// A file beside the script, read once for all users.
    ///
    /// # Errors
    /// Why it cannot be read.
    pub fn file(&self, path: &Path) -> Result<Arc<[u8]>, String> {
        let path = normal(path);
        let mut files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = files.get(&path) {
            return Ok(Arc::clone(known));
        }
        let shown = path.display();
        let about = fs::metadata(&path).map_err(|error| format!("cannot read {shown}: {error}"))?;
        if !about.is_file() {
            return Err(format!("cannot read {shown}: it is not a file"));
        }
        if about.len() > FILE_BYTES_MAX {
            return Err(format!("cannot read {shown}: it has more than {} MiB", FILE_BYTES_MAX >> 20));
        }
        let bytes: Arc<[u8]> =
            fs::read(&path).map_err(|error| format!("cannot read {shown}: {error}"))?.into();
        files.insert(path, Arc::clone(&bytes));
        Ok(bytes)
    }

    /// A file that it has opened.
    pub fn opened(&self, path: &Path) -> Option<Arc<[u8]>> {
        self.files.lock().unwrap_or_else(PoisonError::into_inner).get(&normal(path)).cloned()
    }

    /// Keeps a text out of all lines that the script writes.
    pub fn keep_secret(&self, value: String) {
        let mut secrets = self.secrets.lock().unwrap_or_else(PoisonError::into_inner);
        if !value.is_empty() && secrets.len() < SECRETS_MAX && !secrets.contains(&value) {
            secrets.push(value);
        }
    }

    /// The names of what it keeps out of them, in its environment.
    pub fn secret_names(&self) -> Vec<String> {
        let secrets = self.secrets.lock().unwrap_or_else(PoisonError::into_inner);
        let kept = self.env.iter().filter(|(_, value)| secrets.contains(value));
        kept.map(|(name, _)| name.clone()).collect()
    }

    /// The file with this text, of those that it opened: relative to its own folder where it is below that.
    pub fn file_with(&self, text: &str) -> Option<PathBuf> {
        let files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        let (path, _) = files.iter().find(|(_, bytes)| ***bytes == *text.as_bytes())?;
        let below = self.path.parent().and_then(|folder| path.strip_prefix(folder).ok());
        Some(below.unwrap_or(path).to_owned())
    }

    /// The number of a shared array, if it is there.
    pub fn array(&self, name: &str) -> Option<usize> {
        let arrays = self.arrays.lock().unwrap_or_else(PoisonError::into_inner);
        arrays.iter().position(|(known, _)| known == name)
    }

    /// Adds a shared array; its number.
    pub fn add_array(&self, name: &str, items: Vec<String>) -> usize {
        let mut arrays = self.arrays.lock().unwrap_or_else(PoisonError::into_inner);
        match arrays.iter().position(|(known, _)| known == name) {
            Some(at) => at,
            None => {
                arrays.push((name.to_owned(), Arc::new(items)));
                arrays.len() - 1
            }
        }
    }

    /// The items of a shared array, each as JSON.
    pub fn items(&self, array: usize) -> Arc<Vec<String>> {
        let arrays = self.arrays.lock().unwrap_or_else(PoisonError::into_inner);
        arrays.get(array).map(|(_, items)| Arc::clone(items)).unwrap_or_default()
    }

    /// Ends the run.
    pub fn abort(&self, why: String) {
        let why = self.masked(&why).into_owned();
        self.aborted.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(why);
        self.is_aborted.store(true, Ordering::Release);
    }

    /// Forgets why the run was to end.
    pub fn clear_abort(&self) {
        *self.aborted.lock().unwrap_or_else(PoisonError::into_inner) = None;
        self.is_aborted.store(false, Ordering::Release);
    }

    /// Why the run is to end.
    pub fn aborted(&self) -> Option<String> {
        if !self.is_aborted.load(Ordering::Acquire) {
            return None;
        }
        self.aborted.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The run has failed.
    pub fn fail(&self, why: String) {
        let why = self.masked(&why).into_owned();
        self.failed.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(why);
    }

    /// Why the run has failed.
    pub fn failed(&self) -> Option<String> {
        self.failed.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Writes a line of the script's.
    pub fn log(&self, level: &str, words: &str) {
        if self.is_rehearsal {
            return;
        }
        self.console.log(level, &self.masked(words));
    }

    /// The same without the secrets that the script was given.
    pub fn masked<'a>(&self, words: &'a str) -> Cow<'a, str> {
        let secrets = self.secrets.lock().unwrap_or_else(PoisonError::into_inner);
        secrets.iter().fold(Cow::Borrowed(words), |words, secret| match words.contains(secret) {
            true => words.replace(secret, MASK).into(),
            false => words,
        })
    }

    /// An iteration ended with an exception.
    pub fn threw(&self, words: &str) {
        let thrown = self.thrown.fetch_add(1, Ordering::Relaxed);
        if thrown < THROWN_TOLD_MAX {
            self.log("error", words);
        }
    }

    /// Iterations that did not come to their end, once the load is over.
    pub fn iterations_interrupted(&self) -> u64 {
        self.interrupted.load(Ordering::Relaxed) + self.under_way.load(Ordering::Relaxed)
    }

    /// Keeps what it said of itself, with the parts of metrics that its thresholds ask for.
    ///
    /// # Errors
    /// A threshold that is none.
    pub fn keep(
        &self,
        options: Value,
        functions: Vec<String>,
        scenarios: Vec<ScenarioOf>,
    ) -> Result<(), String> {
        let thresholds = thresholds::read(&options)?;
        let known = self.definitions.list();
        let mut parts: Vec<Part> = Vec::new();
        for threshold in &thresholds {
            let (name, tags) = thresholds::split(&threshold.of)?;
            let metric = known.iter().position(|known| known.name == name);
            let metric = metric.ok_or_else(|| format!("thresholds: there is no metric {name}"))?;
            threshold.check(known[metric].kind)?;
            if !tags.is_empty() && !parts.iter().any(|part| part.written == threshold.of) {
                parts.push(Part { metric, written: threshold.of.clone(), tags });
            }
        }
        let common = Common::read(&options)?;
        let told = Told { options, functions, scenarios, common, thresholds, parts };
        self.told.set(told).map_err(|_| "the script was read twice".to_owned())
    }
}

/// A path without `.` and `..`, as far as that can be said without looking.
pub(crate) fn normal(path: &Path) -> PathBuf {
    let mut normal = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir if matches!(normal.components().next_back(), Some(Component::Normal(_))) => {
                normal.pop();
            }
            part => normal.push(part),
        }
    }
    normal
}
