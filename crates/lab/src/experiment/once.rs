//! Each kind of session once, told step by step, without a load: for whoever looks for a mistake in a scenario.

use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, OnceLock};

use tidemark_drive::{DriveError, DriveOptions, LoggedStep, OnceError, Stopper};
use tidemark_record::Counters;
use tidemark_scenario::Plan;
use tidemark_scenario::plan::ALL_SHOWN;

use super::preparing::LOOK_EVERY;
use super::{Experiment, begin, driven, not_begun};
use crate::error::LabError;
use crate::interrupt::StopRequest;
use crate::progress::{Progress, Watcher};
use crate::run_options::RunOptions;
use crate::script;
use crate::secret;
use crate::trace::Trace;

/// What came of it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Once {
    /// Whether every request was answered well, and every check held.
    pub is_good: bool,
    /// Whether the user stopped it while a session was under way.
    pub is_stopped: bool,
    /// What else there is to know.
    pub notes: Vec<String>,
    /// Why the trace is not whole, where it is not.
    pub trace_unwritten: Option<String>,
}

/// Starts what a scenario starts, prepares it, and has each kind of session, or only the one of this name, done once by one
/// user. `tell` is handed the name of the kind and each step as it ends. What is in the run directory afterwards, the logs
/// of what was started among it, is no run.
///
/// # Errors
/// As [`run`](super::run). A step that fails is none, nor is a stop request while a session is under way: the step that it cut
/// off is told, and the trace is whole.
pub fn once(
    mut plan: Plan,
    options: RunOptions,
    kind: Option<&str>,
    progress: &mut dyn FnMut(Progress),
    tell: &mut dyn FnMut(&str, LoggedStep),
) -> Result<Once, LabError> {
    if let Some(kind) = kind.filter(|kind| plan.sessions.iter().all(|session| session.name != *kind)) {
        let names: Vec<&str> = plan.sessions.iter().map(|session| session.name.as_str()).collect();
        return Err(LabError::Usage(format!(
            "the scenario has no session called {kind}; it has {}",
            names.join(", ")
        )));
    }
    plan.requests.iter_mut().for_each(|request| request.shown_body_bytes = ALL_SHOWN);
    // there is no load beside which anything could be watched, or broken
    let watched = plan.watched_names();
    plan.faults.retain(|fault| !watched.contains(&fault.target));
    plan.watch.clear();
    let experiment = begin(plan, options)?;
    let result = experiment.once(kind, &Watcher::new(progress), tell);
    let secrets = &experiment.plan.secrets;
    secret::logs(secrets, &experiment.run_dir.join(tidemark_record::LOGS_DIR))
        .map_err(|error| LabError::Measure(format!("secrets may be left in the logs: {error}")))?;
    result.map_err(|error| error.in_words(|text| secrets.masked(text)))
}

impl Experiment {
    fn once(
        &self,
        kind: Option<&str>,
        progress: &Watcher<'_>,
        tell: &mut dyn FnMut(&str, LoggedStep),
    ) -> Result<Once, LabError> {
        let mut record = self.record(progress)?;
        let prepared = self.prepare(&mut record, progress)?;
        let (mut environment, shared) = (prepared.environment, prepared.shared.followed(&self.plan));
        let shared = Arc::new(shared);
        let mut once = Once { is_good: true, ..Once::default() };
        let systems = std::iter::once(&environment.system).chain(&environment.others);
        // there are few requests: all of them
        let begun = self.options.trace.as_ref().map(|to| Trace::begin(to, Some(1), &self.plan, systems));
        let (trace, tracing) = begun.transpose()?.unzip();
        let kinds = self.plan.sessions.iter().enumerate();
        for (index, session) in kinds.filter(|(_, session)| kind.is_none_or(|kind| session.name == kind)) {
            let mut options = self.drive_options(&environment.system, &environment.others);
            let mut script = None;
            if session.script.is_some() {
                options.threads = 1;
                let stop_request = || self.stop_request();
                // the only kind of those that are driven
                let alone = Arc::new(Plan { sessions: vec![session.clone()], ..Plan::clone(&self.plan) });
                let begin = self.begin_of_script(&alone, &shared, &options, &stop_request);
                if let Some((begun, with_script)) = script::begin(&begin)? {
                    (script, options) = (Some(begun), with_script);
                }
            }
            let options = DriveOptions { trace: tracing.clone(), ..options };
            let (plan, session, shared) = (Arc::clone(&self.plan), session.clone(), Arc::clone(&shared));
            let name = session.name.clone();
            let (sender, steps) = channel();
            let number = u16::try_from(index).unwrap_or(u16::MAX);
            let stopper: Arc<OnceLock<Stopper>> = Arc::default();
            let given = Arc::clone(&stopper);
            let thread = std::thread::Builder::new().name("once".into()).spawn(move || {
                // it is set only here
                let mut begun = |stopper| drop(given.set(stopper));
                tidemark_drive::run_logged(&plan, &session, &shared, &options, number, sender, &mut begun)
            });
            let thread = thread.map_err(driven)?;
            loop {
                match steps.recv_timeout(LOOK_EVERY) {
                    Ok(step) => tell(&name, step),
                    Err(RecvTimeoutError::Timeout) => {}
                    Err(RecvTimeoutError::Disconnected) => break,
                }
                if self.stop_request() != StopRequest::None {
                    once.is_stopped = true;
                    // one that has not begun yet is met next time
                    if let Some(stopper) = stopper.get() {
                        stopper.abort();
                    }
                }
            }
            match thread.join() {
                Ok(Ok(_)) => {}
                Ok(Err(OnceError::Request { .. })) => once.is_good = false,
                Ok(Err(OnceError::Program(reason))) => return Err(LabError::Script(reason)),
                Ok(Err(OnceError::Drive(error @ DriveError::Grpc(_)))) => return Err(not_begun(error)),
                Ok(Err(error)) => return Err(LabError::Measure(format!("session {name}: {error}"))),
                Err(panic) => std::panic::resume_unwind(panic),
            }
            if let Some(mut script) = script {
                script.load_over(&|| self.stop_request())?;
                let objections = script.findings(0).objections;
                once.is_good &= objections.is_empty();
                once.notes.extend(objections);
            }
            if once.is_stopped {
                once.is_good = false;
                break;
            }
        }
        // nobody has more
        drop(tracing);
        let trace = trace.map(|trace| trace.end(&Counters::default())).transpose();
        once.trace_unwritten = trace.as_ref().err().cloned();
        once.notes.extend(trace.unwrap_or_else(Some));
        if let Some(ending) = environment.system.ended(&|_| false) {
            once.is_good = false;
            once.notes
                .push(format!("the system ended by itself ({ending}); {}", environment.system.log_tail()));
        }
        environment.system.stop();
        once.notes.extend(environment.system.run_after());
        once.notes.iter_mut().for_each(|note| *note = self.plan.secrets.masked(note));
        Ok(once)
    }
}
