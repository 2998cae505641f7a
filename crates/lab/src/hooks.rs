//! Hooks of a system of one's own: the commands `before` it is started and `after` it has stopped, each run to its end.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use tidemark_scenario::plan::{Hook, Launch, PORT};

use crate::child::{Child, Spec, TAIL_LINES};
use crate::error::LabError;
use crate::interrupt::StopRequest;
use crate::served::{self, ASK_EVERY, Deadline, check_stop_request};

/// What a command and what is run around it are started with.
#[derive(Debug, Clone, Default)]
pub struct LaunchContext {
    /// The run directory, for their logs.
    pub run_dir: PathBuf,
    /// Cores that they are held to; empty for all.
    pub cores: Vec<usize>,
    env: BTreeMap<String, String>,
    cwd: Option<PathBuf>,
    port: u16,
}

impl LaunchContext {
    /// Of a system that listens there.
    pub fn of(launch: &Launch, port: u16, run_dir: PathBuf, cores: Vec<usize>) -> LaunchContext {
        let mut all = LaunchContext { run_dir, cores, cwd: launch.cwd.clone(), port, ..Default::default() };
        all.env = launch.env.iter().map(|(name, value)| (name.clone(), all.with_port(value))).collect();
        all
    }

    /// A text with the port in it.
    pub fn with_port(&self, text: &str) -> String {
        text.replace(PORT, &self.port.to_string())
    }

    /// How a command is started, with a log of this name.
    pub fn spec(&self, name: &str, command: &[String]) -> Result<Spec, LabError> {
        let command = command.iter().map(|word| self.with_port(word)).collect();
        let spec = served::spec(name, command, &self.run_dir, &self.cores, false)?;
        Ok(Spec { env: self.env.clone(), cwd: self.cwd.clone(), ..spec })
    }
}

/// Runs what comes before a system, one after the other, up to the first that fails.
pub fn run_before(
    launch: &Launch,
    context: &LaunchContext,
    stop_request: &dyn Fn() -> StopRequest,
) -> Result<(), LabError> {
    let mut hooks = launch.before.iter().enumerate();
    hooks.try_for_each(|(index, hook)| run(hook, "before", index + 1, context, stop_request))
}

/// Runs one to its end: the one of this number under a key of the scenario.
fn run(
    hook: &Hook,
    when: &str,
    number: usize,
    context: &LaunchContext,
    stop_request: &dyn Fn() -> StopRequest,
) -> Result<(), LabError> {
    let program = hook.command.first().map(String::as_str).unwrap_or_default();
    one(hook, &format!("{when}-{number}"), context, stop_request)
        .map_err(|error| error.in_words(|text| format!("command {number} of `{when}` (`{program}`) {text}")))
}

fn one(
    hook: &Hook,
    name: &str,
    context: &LaunchContext,
    stop_request: &dyn Fn() -> StopRequest,
) -> Result<(), LabError> {
    to_end(&context.spec(name, &hook.command)?, hook.within, "`within`", stop_request)
}

/// Runs a command to its end, which must come with status 0 within so long; `key` is what says how long.
pub fn to_end(
    spec: &Spec,
    within: Duration,
    key: &str,
    stop_request: &dyn Fn() -> StopRequest,
) -> Result<(), LabError> {
    let mut child = Child::spawn(spec)
        .and_then(|mut child| child.guard().map(|()| child))
        .map_err(|error| LabError::Start(format!("cannot be started: {error}")))?;
    let deadline = Deadline::new(within);
    loop {
        match child.ending() {
            Some(_) if child.exit_code() == Some(0) => return Ok(()),
            Some(ending) => {
                return Err(LabError::Start(format!("failed ({ending}); {}", child.log_tail(TAIL_LINES))));
            }
            None if deadline.is_over() => {
                child.kill();
                let tail = child.log_tail(TAIL_LINES);
                return Err(LabError::Start(format!(
                    "was not over within {within:?} and was killed; {key} says how long it may take; {tail}"
                )));
            }
            None => {
                check_stop_request(stop_request)?;
                std::thread::sleep(ASK_EVERY);
            }
        }
    }
}

/// What is run once a system was stopped; also where it never started, when this is dropped.
#[derive(Debug, Default)]
pub struct AfterHooks {
    hooks: Vec<Hook>,
    context: LaunchContext,
}

impl AfterHooks {
    /// These, later.
    pub fn new(hooks: &[Hook], context: &LaunchContext) -> AfterHooks {
        AfterHooks { hooks: hooks.to_vec(), context: context.clone() }
    }

    /// Now, and never again. All of them are run; returns what went wrong.
    pub fn run(&mut self) -> Vec<LabError> {
        let hooks = std::mem::take(&mut self.hooks);
        let ran = hooks
            .iter()
            .enumerate()
            .map(|(index, hook)| run(hook, "after", index + 1, &self.context, &|| StopRequest::None));
        ran.filter_map(Result::err).collect()
    }
}

impl Drop for AfterHooks {
    fn drop(&mut self) {
        // the run has failed already, and with a reason of its own
        drop(self.run());
    }
}
