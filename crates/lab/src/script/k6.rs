//! Scripts of k6: `setup` before the load, `teardown` after it, thresholds and `handleSummary` at the end.

use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use tidemark_drive::{DriveOptions, Programs, Protocol, Target};
use tidemark_k6::{Given, K6, Origin, Runs, Source, Summary};
use tidemark_record::manifest::ObjectiveResult;
use tidemark_record::{RunWriter, ScriptCheck};
use tidemark_scenario::plan::{Curve, Load, LoadModel, Op, Phase, ScriptPlan, SessionKind};
use tidemark_scenario::{Plan, Shared};

use super::{Begin, Begun, EndedScript, Findings, LOOK_EVERY, Said, Script};
use crate::drivers::{Drivers, Handed};
use crate::error::LabError;
use crate::interrupt::StopRequest;

struct K6Script {
    k6: Arc<K6>,
    script: ScriptPlan,
    origins: Vec<Origin>,
    once: Once,
    begun: Instant,
    /// How long the load was.
    seconds: f64,
    summary: Option<Summary>,
    teardown_failed: Option<String>,
    /// Whether the user stopped the load.
    is_stopped: bool,
    /// By kind of sessions, how many iterations there are to be, where that is fixed.
    asked: Vec<Option<u64>>,
}

/// The requests that are in no figure but the script's own.
fn not_sent(k6: &K6) -> Option<String> {
    let count = k6.requests_not_sent();
    (count > 0).then(|| {
        format!("requests of the script not sent: {count}, as a URL or a header is not valid or blockHostnames has the host; only its own http_req_failed counts them")
    })
}

/// Iterations that did not come to their end, and are in no figure of the script's.
fn interrupted(k6: &K6) -> Option<String> {
    let count = k6.iterations_interrupted();
    (count > 0).then(|| {
        format!("iterations interrupted: {count}; no figure of the script has them; a longer gracefulStop, gracefulRampDown or `limits: drain` lets them finish")
    })
}

/// The options that the script exports in vain, and parameters that it gives in vain.
fn not_read(k6: &K6) -> Option<String> {
    let options = k6.options_not_read().into_iter().map(|name| format!("options.{name}"));
    let names: Vec<String> = options.chain(k6.parameters_not_read()).collect();
    (!names.is_empty()).then(|| format!("ignored: {}", names.join(", ")))
}

/// What `setup` and `teardown` are driven by: one session of one user.
struct Once {
    plan: Arc<Plan>,
    shared: Arc<Shared>,
    options: DriveOptions,
}

fn usage(error: tidemark_k6::ScriptError) -> LabError {
    LabError::Usage(error.to_string())
}

/// What `__ENV` has: the process's environment, and what the scenario gives.
fn env(script: &ScriptPlan) -> Vec<(String, String)> {
    let given = script.args.iter().filter_map(|pair| pair.split_once('='));
    let given = given.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let ours = std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
    ours.chain(given).collect()
}

fn read(script: &ScriptPlan) -> Result<K6, LabError> {
    let env = env(script);
    let source = Source {
        name: &script.file,
        path: &script.path,
        text: &script.source,
        env: &env,
        given: Given::default(),
        bounds: script.bounds,
    };
    let k6 = K6::read(&source).map_err(usage)?;
    match k6.exports(&script.exec) {
        true => Ok(k6),
        false => Err(LabError::Usage(format!("{}: it exports no function {}", script.file, script.exec))),
    }
}

/// Runs a script's top level, and no function of it.
///
/// # Errors
/// The first mistake, with its line.
pub(super) fn check(script: &ScriptPlan) -> Result<(), LabError> {
    read(script).map(drop)
}

fn origin(target: &Target, script: &ScriptPlan) -> Result<Origin, LabError> {
    let scheme = match (&target.protocol, target.tls.is_some()) {
        (Protocol::Http1 | Protocol::Http2(_), false) => "http",
        (Protocol::Http1 | Protocol::Http2(_), true) => "https",
        (Protocol::Grpc(_), false) => "grpc",
        (Protocol::Grpc(_), true) => "grpcs",
        _ => return Err(LabError::Usage(format!("{}: a script of k6 speaks HTTP and gRPC", script.file))),
    };
    let own_port = if target.tls.is_some() { ":443" } else { ":80" };
    let authority = target.authority.strip_suffix(own_port).unwrap_or(&target.authority);
    Ok(Origin {
        scheme: scheme.to_owned(),
        authority: authority.to_ascii_lowercase(),
        base_path: target.base_path.clone(),
        types: match &target.protocol {
            Protocol::Grpc(grpc) => grpc.types.clone(),
            _ => None,
        },
    })
}

fn runs(kind: &SessionKind) -> Option<Runs> {
    let script = kind.script.as_ref()?;
    Some(Runs {
        name: kind.name.clone(),
        function: script.exec.clone(),
        iterations: script.iterations,
        label: script.label,
        labels: script.labels.clone(),
        timeout: script.timeout,
    })
}

/// Reads a script, and runs its `setup`.
///
/// # Errors
/// What it threw, with its line.
pub(super) fn begin(script: &ScriptPlan, begin: &Begin<'_>) -> Result<Begun, LabError> {
    let of_thread = script.clone();
    let k6 = Arc::new(super::apart(script, begin.stop_request, move || read(&of_thread))??);
    let mut options = begin.options.clone();
    let origins =
        options.targets.iter().map(|target| origin(target, script)).collect::<Result<Vec<_>, _>>()?;
    let system = &origins[0];
    k6.set_base(&format!("{}://{}{}", system.scheme, system.authority, system.base_path));
    let is_alone = begin.plan.sessions.len() == 1;
    let asked = |kind: &SessionKind| {
        let of_kind = kind.script.as_ref().and_then(|script| script.iterations);
        of_kind.or(begin.plan.limits.sessions.filter(|_| is_alone))
    };
    let mut ready = K6Script {
        k6,
        script: script.clone(),
        origins,
        once: Once {
            plan: Arc::clone(begin.plan),
            shared: Arc::clone(begin.shared),
            options: begin.options.clone(),
        },
        begun: Instant::now(),
        seconds: 0.0,
        summary: None,
        teardown_failed: None,
        is_stopped: false,
        asked: begin.plan.sessions.iter().map(asked).collect(),
    };
    ready.run("setup", begin.stop_request)?;
    let kinds = begin.plan.sessions.iter().map(runs).collect();
    options.programs = Some(ready.k6.programs(ready.origins.clone(), kinds));
    // the run's zero is behind `setup`
    (options.epoch, options.wall_epoch) = (Instant::now(), SystemTime::now());
    ready.k6.load_begins();
    ready.begun = Instant::now();
    Ok((Box::new(ready), options))
}

impl K6Script {
    /// Runs `setup` or `teardown`, if the script has it, by a user who makes no part of the load.
    fn run(&self, function: &str, stop_request: &dyn Fn() -> StopRequest) -> Result<(), LabError> {
        if !self.k6.exports(function) {
            return Ok(());
        }
        let longest = self.k6.longest(function);
        let runs = Runs {
            name: function.to_owned(),
            function: function.to_owned(),
            iterations: None,
            label: self.script.label,
            labels: Vec::new(),
            timeout: self.script.timeout.min(longest),
        };
        let programs = self.k6.programs_of_main(self.origins.clone(), runs);
        let is_in_time = self.once.drive(&self.script, programs, longest, stop_request)?;
        match self.k6.aborted() {
            Some(why) => Err(LabError::Usage(why)),
            None if !is_in_time => {
                let of = &self.script.file;
                Err(LabError::Usage(format!(
                    "{of}: {function} did not return within {} s",
                    longest.as_secs_f64()
                )))
            }
            None => Ok(()),
        }
    }
}

impl Once {
    /// Whether it came to its end in so long.
    fn drive(
        &self,
        script: &ScriptPlan,
        programs: Programs,
        longest: Duration,
        stop_request: &dyn Fn() -> StopRequest,
    ) -> Result<bool, LabError> {
        let phase = Phase {
            name: "once".into(),
            duration: longest,
            from: 1.0,
            to: 1.0,
            measured: false,
            curve: Curve::Line,
        };
        let kind = SessionKind {
            name: script.exec.clone(),
            weight: 1,
            slots: 0,
            slot_names: Vec::new(),
            keep_cookies: false,
            ops: vec![Op::Program, Op::End],
            script: Some(script.clone()),
        };
        let load = Load::new(LoadModel::Closed, vec![phase]);
        let mut plan = Plan { sessions: vec![kind], load, ..Plan::clone(&self.plan) };
        plan.limits.sessions = Some(1);
        plan.limits.in_flight = None;
        let options = DriveOptions {
            threads: 1,
            trace: None,
            programs: Some(programs),
            epoch: Instant::now(),
            wall_epoch: SystemTime::now(),
            ..self.options.clone()
        };
        let failed = |error: tidemark_drive::DriveError| LabError::Usage(error.to_string());
        let drive =
            tidemark_drive::start(Arc::new(plan), Arc::clone(&self.shared), options).map_err(failed)?;
        let mut drivers = Drivers::new(vec![Box::new(drive)]);
        let begun = Instant::now();
        let mut is_in_time = true;
        loop {
            if stop_request() != StopRequest::None {
                drivers.abort();
            }
            if begun.elapsed() > longest {
                is_in_time = false;
                drivers.abort();
            }
            match drivers.next(LOOK_EVERY) {
                Handed::Interval(interval) => drivers.recycle(interval),
                Handed::Nothing | Handed::Event(_) => {}
                Handed::Over => break,
            }
        }
        drivers.end()?;
        match stop_request() {
            StopRequest::None => Ok(is_in_time),
            _ => Err(LabError::Interrupted(None)),
        }
    }
}

impl Script for K6Script {
    fn look(&mut self) -> Result<(), LabError> {
        self.k6.look();
        Ok(())
    }

    fn load_over(&mut self, stop_request: &dyn Fn() -> StopRequest) -> Result<(), LabError> {
        self.seconds = self.begun.elapsed().as_secs_f64();
        self.is_stopped = stop_request() != StopRequest::None;
        // it cleans up, however the load ended; who stops the run once more does without
        self.k6.clear_abort();
        let stop_request = || match stop_request() {
            StopRequest::Abort => StopRequest::Abort,
            _ => StopRequest::None,
        };
        match self.run("teardown", &stop_request) {
            Err(LabError::Usage(why)) => {
                self.teardown_failed = Some(format!("teardown: {why}"));
                Ok(())
            }
            done => done,
        }
    }

    fn stops_early(&self) -> bool {
        // only once all iterations are done
        false
    }

    fn findings(&mut self, dropped: u64) -> Findings {
        let summary = self.summary.insert(self.k6.summary(self.seconds, dropped, &self.asked));
        let outcome = |of: &tidemark_k6::ThresholdOutcome| ObjectiveResult {
            objective: format!("{}: {}", of.of, of.written),
            met: of.holds && !of.is_unknown,
            measured: of.measured(),
            default: false,
            undecided: of.is_unknown,
            undecided_by: None,
        };
        let of_check = |of: &ScriptCheck| {
            format!("check {:?} failed {} of {} times", of.name, of.fails, of.passes + of.fails)
        };
        let failed_checks = summary.figures.checks.iter().filter(|of| of.fails > 0).map(of_check);
        let exceptions = summary.figures.exceptions;
        let exceptions = (exceptions > 0).then(|| {
            format!("{exceptions} {} in the script", if exceptions == 1 { "exception" } else { "exceptions" })
        });
        // the driver dropped none of these, so that nobody else counts them
        let never_begun = || {
            let count = self.k6.never_begun(&self.asked);
            let is_bounded = summary.thresholds.iter().any(|of| of.of.trim() == "dropped_iterations");
            let them = if count == 1 { "iteration" } else { "iterations" };
            // what the user stopped is not the script's failure
            (count > 0 && !is_bounded && !self.is_stopped).then(|| {
                format!("{count} {them} that were due were never begun, and no threshold bounds dropped_iterations")
            })
        };
        Findings {
            objections: failed_checks.chain(exceptions).chain(self.teardown_failed.clone()).collect(),
            thresholds: summary.thresholds.iter().map(outcome).collect(),
            judges_without_requests: !summary.thresholds.is_empty()
                && summary.thresholds.iter().all(|of| of.judges_without_requests()),
            failed: self.teardown_failed.clone().or_else(|| summary.failed.clone()).or_else(never_begun),
            notes: not_read(&self.k6)
                .into_iter()
                .chain(not_sent(&self.k6))
                .chain(interrupted(&self.k6))
                .collect(),
            figures: Some(summary.figures.clone()),
        }
    }

    fn end(mut self: Box<Self>, _: &RunWriter<'_>, _: usize) -> Option<EndedScript> {
        let summary = self.summary.take()?;
        let k6 = Arc::clone(&self.k6);
        Some(EndedScript(Arc::new(move || {
            let mut said = Said::default();
            for (place, text) in k6
                .handle_summary(&summary)
                .map_err(|error| format!("handleSummary: {error}"))?
                .into_iter()
                .flatten()
            {
                match place.as_str() {
                    "stdout" => said.out.push(text),
                    "stderr" => said.err.push(text),
                    _ => said.files.push((place, text)),
                }
            }
            Ok(said)
        })))
    }
}
