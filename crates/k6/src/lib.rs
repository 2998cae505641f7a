//! Scripts of k6, in JavaScript, as sessions.
//!
//! A user of k6 is a session's number: it has a JavaScript runtime of its own ([QuickJS](https://bellard.org/quickjs/)), on
//! a stack of its own. An iteration is a session. A request suspends the stack, goes through the load engine like every
//! other, and its answer resumes it. Contract: k6's documentation of its JavaScript API, version 1.
//!
//! # What holds
//! - What a script measures (k6's metrics, its own, checks) is k6's: service times. Response times from the due moment, the
//!   ledger and the verdict are those of every session.
//! - A user's memory and the time that it works without waiting are bounded.
//! - What most scripts do for each request is done in Rust (`ask`, `groups`), whose code all users share: JavaScript is each
//!   user's own, and not in the processor's caches when its turn comes. Modules are loaded for what is beyond that.
//! - `js` steps of a scenario ([`Steps`]) have a runtime for each driving thread, and run to their end in turn with it. Its
//!   globals are frozen, so that nothing of a session is left for the next one.
//! - A script opens files only before its first iteration, and has no network but the load engine.

mod ask;
mod bytes;
mod commonjs;
mod compiled;
mod console;
mod events;
mod groups;
mod head;
mod host;
#[cfg(feature = "html")]
mod html;
mod intrinsics;
mod label;
mod memory;
mod metrics;
mod modules;
mod once;
mod options;
mod program;
mod rehearsal;
mod reply;
mod requests;
mod scenario;
mod script;
mod sent;
mod sockets;
mod steps;
mod summary;
mod text;
mod thresholds;
#[cfg(feature = "typescript")]
mod typescript;
mod urls;
mod vu;
mod webcrypto;

use std::fmt;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::Value;
use tidemark_drive::Programs;
use tidemark_scenario::plan::ScriptBounds;
use tidemark_scenario::source::Scenario;

pub use metrics::CheckCounts;
#[doc(hidden)]
pub use once::{Once, SentOnce};
pub use options::{Executor, Given, ScenarioOf, Stage};
pub use program::{Origin, Runs};
pub use rehearsal::Sent;
pub use steps::{Mistake, Steps};
pub use summary::{Summary, ThresholdOutcome};

use crate::metrics::{Kind, Measured, Metrics};
use crate::program::Users;
use crate::script::{Bounds, Script};
use crate::vu::Vu;

/// What is read of a scenario of its options.
const KNOWN_SCENARIO_OPTIONS: [&str; 19] = [
    "duration",
    "env",
    "exec",
    "executor",
    "gracefulRampDown",
    "gracefulStop",
    "iterations",
    "maxDuration",
    "maxVUs",
    "options",
    "preAllocatedVUs",
    "rate",
    "stages",
    "startRate",
    "startTime",
    "startVUs",
    "tags",
    "timeUnit",
    "vus",
];

/// Options that are read, or that say nothing of the load, the requests or what is measured.
const KNOWN_OPTIONS: [&str; 39] = [
    "batch",
    "batchPerHost",
    "blockHostnames",
    "cloud",
    "discardResponseBodies",
    "duration",
    "ext",
    "hosts",
    "httpDebug",
    "insecureSkipTLSVerify",
    "iterations",
    "linger",
    "maxRedirects",
    "minIterationDuration",
    "noConnectionReuse",
    "noCookiesReset",
    "noSetup",
    "noSummary",
    "noTeardown",
    "noThresholds",
    "noUsageReport",
    "out",
    "paused",
    "quiet",
    "rps",
    "scenarios",
    "setupTimeout",
    "stages",
    "summaryTimeUnit",
    "summaryTrendStats",
    "systemTags",
    "tags",
    "teardownTimeout",
    "thresholds",
    "throw",
    "tlsAuth",
    "userAgent",
    "verbose",
    "vus",
];
/// Longest that `setup` and `teardown` take, unless the script says otherwise.
const SETUP_MAX: Duration = Duration::from_secs(60);

/// What is wrong with a script, with its file and line.
#[derive(Debug, thiserror::Error, Clone, PartialEq, Eq)]
#[error("{0}")]
pub struct ScriptError(String);

/// Where a script stands, and what it is given.
#[derive(Debug, Clone)]
pub struct Source<'a> {
    /// As messages name it.
    pub name: &'a str,
    /// Where it lies.
    pub path: &'a Path,
    /// Its text.
    pub text: &'a [u8],
    /// What it finds in `__ENV`.
    pub env: &'a [(String, String)],
    /// What the command line says in place of its options.
    pub given: Given,
    /// What each user may take, where that is given: 256 MiB and 30 s otherwise.
    pub bounds: ScriptBounds,
}

/// A script that has been read: its top level has run.
pub struct K6 {
    script: Arc<Script>,
    /// What each thread measures.
    threads: Arc<Mutex<Vec<Arc<Metrics>>>>,
}

impl fmt::Debug for K6 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("K6").field("script", &self.script.name).finish_non_exhaustive()
    }
}

fn script_of(source: &Source<'_>) -> Result<Script, ScriptError> {
    let text = std::str::from_utf8(source.text)
        .map_err(|_| ScriptError(format!("{}: it is not UTF-8", source.name)))?;
    let env = source.env.to_vec();
    let mut script = Script::new(source.name, source.path, text.to_owned(), env, source.given.clone());
    script.bounds = Bounds::of(source.bounds);
    Ok(script)
}

impl K6 {
    /// Reads a script: runs its top level once.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn read(source: &Source<'_>) -> Result<K6, ScriptError> {
        let script = Arc::new(script_of(source)?);
        drop(Vu::begin(&script, host::MAIN, &Arc::default()).map_err(ScriptError)?);
        let told = script.told();
        for scenario in &told.scenarios {
            if !told.functions.contains(&scenario.exec) {
                return Err(ScriptError(format!(
                    "{}: it exports no function {}, which the scenario {} runs",
                    source.name, scenario.exec, scenario.name
                )));
            }
        }
        Ok(K6 { script, threads: Arc::default() })
    }

    /// Runs a script's functions once without a network, to learn where they send what.
    ///
    /// # Errors
    /// What is wrong with its top level.
    pub fn rehearse(&self, source: &Source<'_>) -> Result<Sent, ScriptError> {
        let mut script = script_of(source)?;
        script.is_rehearsal = true;
        script.bounds = rehearsal::bounds(script.bounds);
        let script = Arc::new(script);
        Ok(rehearsal::rehearse(&script))
    }

    /// The scenario that drives it as its options ask; `file` is how that names it, `args` are what it gives to `__ENV`.
    ///
    /// # Errors
    /// If its rehearsal asked for what is no URL, or ended with an exception before it sent anything.
    pub fn scenario(&self, file: &str, args: &[String], sent: &Sent) -> Result<Scenario, ScriptError> {
        let name = Path::new(file)
            .file_stem()
            .map_or_else(|| file.to_owned(), |stem| stem.to_string_lossy().into_owned());
        scenario::scenario((file, &name), args, &self.script, sent).map_err(ScriptError)
    }

    /// The loads that its options ask for.
    pub fn scenarios(&self) -> &[ScenarioOf] {
        &self.script.told().scenarios
    }

    /// Whether it exports a function of this name.
    pub fn exports(&self, function: &str) -> bool {
        self.script.told().functions.iter().any(|known| known == function)
    }

    /// An option that it exports.
    pub fn option(&self, name: &str) -> Option<&Value> {
        self.script.told().options.get(name).filter(|value| !value.is_null())
    }

    /// How long `setup` or `teardown` may take.
    pub fn longest(&self, function: &str) -> Duration {
        let told =
            self.option(&format!("{function}Timeout")).and_then(|told| options::milliseconds(told).ok());
        told.and_then(|ms| Duration::try_from_secs_f64(ms / 1_000.0).ok()).unwrap_or(SETUP_MAX)
    }

    /// URLs that begin with a slash are of this system.
    pub fn set_base(&self, url: &str) {
        let _ = self.script.base.set(url.trim_end_matches('/').to_owned());
    }

    /// The sessions' iterations, by the plan's kinds of sessions.
    pub fn programs(&self, origins: Vec<Origin>, kinds: Vec<Option<Runs>>) -> Programs {
        self.programs_of(origins, kinds, false)
    }

    /// A single run of `setup` or `teardown`, by the plan's only session.
    pub fn programs_of_main(&self, origins: Vec<Origin>, runs: Runs) -> Programs {
        self.programs_of(origins, vec![Some(runs)], true)
    }

    fn programs_of(&self, origins: Vec<Origin>, kinds: Vec<Option<Runs>>, is_main: bool) -> Programs {
        let (script, threads) = (Arc::clone(&self.script), Arc::clone(&self.threads));
        let (origins, kinds): (Arc<[Origin]>, Arc<[Option<Runs>]>) = (origins.into(), kinds.into());
        let opens_websockets = script.opens_websockets.load(Ordering::Relaxed);
        let programs = Programs::new(move |_| {
            let metrics = Arc::new(Metrics::default());
            threads.lock().unwrap_or_else(PoisonError::into_inner).push(Arc::clone(&metrics));
            Box::new(Users::new(&script, &metrics, &origins, &kinds, is_main))
        });
        if opens_websockets { programs.opening_websockets() } else { programs }
    }

    /// Why the script ended the run, if it did.
    pub fn aborted(&self) -> Option<String> {
        self.script.aborted()
    }

    /// How many conditions its thresholds have.
    pub fn threshold_count(&self) -> usize {
        self.script.told().thresholds.len()
    }

    /// The load begins: the run's time starts here. What `setup` measured stays.
    pub fn load_begins(&self) {
        self.script.set_begun();
    }

    fn measured(&self) -> Measured {
        let mut sum = Measured::default();
        let threads = self.threads.lock().unwrap_or_else(PoisonError::into_inner);
        threads.iter().for_each(|thread| thread.add_to(&mut sum));
        sum
    }

    /// Ends the run if a threshold that asks for it is crossed.
    pub fn look(&self) {
        let elapsed_s = self.script.elapsed().as_secs_f64();
        let told = self.script.told();
        let asks = |of: &&thresholds::Threshold| of.aborts_after_s.is_some_and(|after| elapsed_s >= after);
        let asking: Vec<_> = told.thresholds.iter().filter(asks).collect();
        if asking.is_empty() || self.script.aborted().is_some() {
            return;
        }
        let measured = self.measured();
        for threshold in asking {
            let outcome = summary::outcome(&self.script, &measured, threshold, elapsed_s);
            if !outcome.holds {
                self.script.abort(format!("{}: {outcome}, and it aborts the run", self.script.name));
            }
        }
    }

    /// How many iterations were due and never begun, beside the sessions that the driver dropped. `asked`: as for
    /// [`summary`](Self::summary).
    pub fn never_begun(&self, asked: &[Option<u64>]) -> u64 {
        let kinds = asked.iter().zip(&self.script.iterations_of);
        let missing = |(asked, begun): (&Option<u64>, &AtomicU64)| {
            Some(asked.as_ref()?.saturating_sub(begun.load(Ordering::Relaxed)))
        };
        self.script.dropped.load(Ordering::Relaxed) + kinds.filter_map(missing).sum::<u64>()
    }

    /// What it measured in a load of so many seconds, of which the driver dropped so many sessions. `asked`: by the plan's
    /// kinds of sessions, how many iterations there were to be, where that is fixed.
    pub fn summary(&self, seconds: f64, dropped: u64, asked: &[Option<u64>]) -> Summary {
        let script = &self.script;
        let mut measured = self.measured();
        let dropped = dropped + self.never_begun(asked);
        // as in k6, who waits for an iteration is not active
        let active = script.most_under_way.load(Ordering::Relaxed);
        // a thread may make users for a place that another thread's had before
        let allowed: u64 = script.told().scenarios.iter().map(|of| of.executor.most_users()).sum();
        let made = script.users.load(Ordering::Relaxed).min(allowed).max(active);
        measured.set(metrics::DROPPED_ITERATIONS, Kind::Counter, dropped as f64);
        measured.set(metrics::VUS, Kind::Gauge, active as f64);
        measured.set(metrics::VUS_MAX, Kind::Gauge, made as f64);
        Summary::new(script, &measured, seconds)
    }

    /// Options that it exports and that nobody reads here, misspelt ones among them.
    pub fn options_not_read(&self) -> Vec<String> {
        let unread = |of: &Value, prefix: &str, known: &[&str]| -> Vec<String> {
            let names = of.as_object().into_iter().flat_map(|options| options.keys());
            let unknown = names.filter(|name| !known.contains(&name.as_str()));
            unknown.map(|name| format!("{prefix}{name}")).collect()
        };
        let options = &self.script.told().options;
        let scenarios = options.get("scenarios").and_then(Value::as_object);
        let of_scenarios = scenarios.into_iter().flatten().flat_map(|(scenario, of)| {
            unread(of, &format!("scenarios.{scenario}."), &KNOWN_SCENARIO_OPTIONS)
        });
        unread(options, "", &KNOWN_OPTIONS).into_iter().chain(of_scenarios).collect()
    }

    /// Parameters that it gives to clients of gRPC and that nobody reads here.
    pub fn parameters_not_read(&self) -> Vec<String> {
        let unused = self.script.grpc_unused.lock().unwrap_or_else(PoisonError::into_inner);
        unused.iter().map(|name| format!("{name} of grpc.Client.connect")).collect()
    }

    /// Requests that were not sent, as their URL leads nowhere: the script saw them fail.
    pub fn requests_not_sent(&self) -> u64 {
        self.script.nowhere.load(Ordering::Relaxed)
    }

    /// Iterations that did not come to their end.
    pub fn iterations_interrupted(&self) -> u64 {
        self.script.iterations_interrupted()
    }

    /// Forgets an abort, so that `teardown` can run.
    pub fn clear_abort(&self) {
        self.script.clear_abort();
    }

    /// What `handleSummary` returns: texts by where they go. None where the script has none.
    ///
    /// # Errors
    /// What it threw.
    pub fn handle_summary(&self, summary: &Summary) -> Result<Option<Vec<(String, String)>>, ScriptError> {
        if !self.exports("handleSummary") {
            return Ok(None);
        }
        let mut vu = Vu::begin(&self.script, host::MAIN, &Arc::default()).map_err(ScriptError)?;
        let call = vu::Call {
            function: "handleSummary".into(),
            takes_data: false,
            argument: Some(summary.data.to_string().into()),
            place: vu::Place::NONE,
        };
        let returned = match vu.resume(vu::Input::Call(call)) {
            vu::Output::Returned(json) => json.unwrap_or_default(),
            vu::Output::Threw(words) => return Err(ScriptError(words)),
            _ => {
                return Err(ScriptError(format!(
                    "{}: handleSummary cannot send requests or sleep",
                    self.script.name
                )));
            }
        };
        let returned: Value = serde_json::from_str(&returned).unwrap_or_default();
        let entries = returned.as_object().into_iter().flatten();
        let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        Ok(Some(entries.map(|(place, value)| (place.clone(), text(value))).collect()))
    }
}
