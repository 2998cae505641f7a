//! Commands around a system of one's own: before it is started and after it was stopped, each run to its end.

use std::collections::BTreeMap;
use std::path::PathBuf;

use tidemark_scenario::plan::{Errand, Launch, PORT};

use crate::child::{Child, Spec, TAIL_LINES};
use crate::error::LabError;
use crate::interrupt::StopRequest;
use crate::served::{self, ASK_EVERY, Deadline, check_stop_request};

/// What a command and what is run around it are started with.
#[derive(Debug, Clone, Default)]
pub struct Surroundings {
    /// The run directory, for their logs.
    pub run_dir: PathBuf,
    /// Cores that they are held to; empty for all.
    pub cores: Vec<usize>,
    env: BTreeMap<String, String>,
    cwd: Option<PathBuf>,
    port: u16,
}

impl Surroundings {
    /// Of a system that listens there.
    pub fn of(launch: &Launch, port: u16, run_dir: PathBuf, cores: Vec<usize>) -> Surroundings {
        let mut all = Surroundings { run_dir, cores, cwd: launch.cwd.clone(), port, ..Default::default() };
        all.env = launch.env.iter().map(|(name, value)| (name.clone(), all.told(value))).collect();
        all
    }

    /// A text with the port in it.
    pub fn told(&self, text: &str) -> String {
        text.replace(PORT, &self.port.to_string())
    }

    /// How a command is started, with a log of this name.
    pub fn spec(&self, name: &str, command: &[String]) -> Result<Spec, LabError> {
        let command = command.iter().map(|word| self.told(word)).collect();
        let spec = served::spec(name, command, &self.run_dir, &self.cores, false)?;
        Ok(Spec { env: self.env.clone(), cwd: self.cwd.clone(), ..spec })
    }
}

/// Runs what comes before a system, one after the other, up to the first that fails.
pub fn run_before(
    launch: &Launch,
    surroundings: &Surroundings,
    stop_request: &dyn Fn() -> StopRequest,
) -> Result<(), LabError> {
    let mut errands = launch.before.iter().enumerate();
    errands.try_for_each(|(index, errand)| run(errand, "before", index + 1, surroundings, stop_request))
}

/// Runs one to its end: the one of this number under a key of the scenario.
fn run(
    errand: &Errand,
    when: &str,
    number: usize,
    surroundings: &Surroundings,
    stop_request: &dyn Fn() -> StopRequest,
) -> Result<(), LabError> {
    let program = errand.command.first().map(String::as_str).unwrap_or_default();
    one(errand, &format!("{when}-{number}"), surroundings, stop_request)
        .map_err(|error| error.in_words(|text| format!("command {number} of `{when}` (`{program}`) {text}")))
}

fn one(
    errand: &Errand,
    name: &str,
    surroundings: &Surroundings,
    stop_request: &dyn Fn() -> StopRequest,
) -> Result<(), LabError> {
    let spec = surroundings.spec(name, &errand.command)?;
    let mut child = Child::spawn(&spec)
        .and_then(|mut child| child.guard().map(|()| child))
        .map_err(|error| LabError::Start(format!("cannot be started: {error}")))?;
    let deadline = Deadline::new(errand.within);
    loop {
        match child.ending() {
            Some(_) if child.exit_code() == Some(0) => return Ok(()),
            Some(ending) => {
                return Err(LabError::Start(format!("failed ({ending}); {}", child.log_tail(TAIL_LINES))));
            }
            None if deadline.is_over() => {
                child.kill();
                let (within, tail) = (errand.within, child.log_tail(TAIL_LINES));
                return Err(LabError::Start(format!(
                    "was not over within {within:?} and was killed; `within` says how long it may take; {tail}"
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
pub struct Afterwards {
    errands: Vec<Errand>,
    surroundings: Surroundings,
}

impl Afterwards {
    /// These, later.
    pub fn new(errands: &[Errand], surroundings: &Surroundings) -> Afterwards {
        Afterwards { errands: errands.to_vec(), surroundings: surroundings.clone() }
    }

    /// Now, and never again. All of them are run; returns what went wrong.
    pub fn run(&mut self) -> Vec<LabError> {
        let errands = std::mem::take(&mut self.errands);
        let ran = errands.iter().enumerate().map(|(index, errand)| {
            run(errand, "after", index + 1, &self.surroundings, &|| StopRequest::None)
        });
        ran.filter_map(Result::err).collect()
    }
}

impl Drop for Afterwards {
    fn drop(&mut self) {
        // the run has failed already, and with a reason of its own
        drop(self.run());
    }
}
