//! An experiment whose coordinator was killed: another one goes on with it.

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::SystemTime;

use super::{Experiment, finished};
use crate::drivers::fleet_agent::PlanOf;
use crate::drivers::fleet_resume::{Resumed, Resuming};
use crate::error::LabError;
use crate::finished::Finished;
use crate::interrupt::Interrupt;
use crate::progress::Progress;
use crate::run_options::RunOptions;

/// Goes on with a run of a fleet whose coordinator was killed, in its directory. `plan` reads the plan of what the run's agents
/// were told; `options` are those of the run.
///
/// Where the agents still drive, all goes on as if nothing had been; where they have stopped, the run ends with what they handed
/// over, and says what is missing.
///
/// # Errors
/// As of [`run`](super::run); [`LabError::Usage`] where there is nothing to go on with, and nothing is changed then.
pub fn resume(
    dir: &Path,
    options: RunOptions,
    plan: PlanOf<'_>,
    progress: &mut dyn FnMut(Progress),
) -> Result<Finished, LabError> {
    tidemark_record::begun(dir).map_err(|error| LabError::Usage(error.to_string()))?;
    let fleet = options.fleet.as_deref().ok_or_else(|| LabError::Usage("--resume is of a fleet".into()))?;
    let resumed = Resumed::find(dir, fleet)?;
    let interrupt = Interrupt::watch(options.before_exit)
        .map_err(|error| LabError::Measure(format!("cannot watch signals: {error}")))?;
    let Resuming { mut plan, seed, ledger_seed, threads, zero, _folder } =
        resumed.run(dir, plan, &options)?;
    // the run's clock is found by it
    if SystemTime::now() < zero {
        return Err(LabError::Usage(
            "the wall clock of this machine is before the begin of the run: put it right, and resume the run again".into(),
        ));
    }
    if let Some(url) = fleet.url() {
        plan.secrets.add_logins_of(url);
    }
    let experiment = Experiment {
        plan: Arc::new(plan),
        options,
        seed,
        ledger_seed,
        threads,
        chosen: Mutex::new(None),
        resumed: Mutex::new(Some(resumed)),
        before: Mutex::new(None),
        zero: Some(zero),
        run_dir: dir.to_owned(),
        interrupt,
    };
    finished(experiment, progress)
}
