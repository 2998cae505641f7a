//! A run whose coordinator was killed, as another one goes on with it.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tidemark_drive::DriveOptions;
use tidemark_fleet::{Coordinator, PrivateFolder};
use tidemark_record::{Before, read_fleet};
use tidemark_scenario::Plan;
use tidemark_scenario::outside;
use tidemark_scenario::plan::{HttpVersion, Store, System, SystemOrigin};

use super::fleet::{FleetOptions, Place as Waits, VERSION, refused};
use super::fleet_agent::PlanOf;
use super::fleet_driver::{Fleet, Stored};
use super::fleet_task::{TASK, TASK_BYTES_MAX, Task, given_of, settle};
use super::{Driver, Place, could_not_drive};
use crate::error::LabError;
use crate::experiment::settle as settle_options;
use crate::run_options::RunOptions;

/// What is left of the run at NATS and in its directory.
pub struct Resumed {
    stored: Stored,
    coordinator: Coordinator,
}

/// What the run is.
pub struct Resuming {
    pub plan: Plan,
    pub seed: u64,
    pub ledger_seed: u64,
    pub threads: usize,
    /// When the run's clock was zero.
    pub zero: SystemTime,
    /// What came with the run, which is gone with this.
    pub _folder: PrivateFolder,
}

impl Resumed {
    /// Finds it. From now on agents that still drive hear that somebody is there.
    ///
    /// # Errors
    /// [`LabError::Usage`] if there is nothing to go on with. Nothing is changed.
    pub fn find(dir: &Path, options: &FleetOptions) -> Result<Resumed, LabError> {
        let usage = |reason: String| LabError::Usage(format!("{reason}; {}", way_out(dir)));
        let is_not_to_be_read = |error: &dyn std::fmt::Display| usage(format!("{}: {error}", dir.display()));
        let Waits::Nats(server) = &options.at else {
            return Err(usage("agents that ssh started ended with their coordinator".into()));
        };
        let text = read_fleet(dir).map_err(|error| is_not_to_be_read(&error))?;
        let text = text.ok_or_else(|| {
            usage(format!("{} is no run of a fleet, or its load had not begun", dir.display()))
        })?;
        let stored: Stored = serde_json::from_slice(&text).map_err(|error| is_not_to_be_read(&error))?;
        if (stored.version.0.as_str(), stored.version.1) != VERSION {
            return Err(usage(format!(
                "the run was begun by Tidemark {}, and this is {}",
                stored.version.0, VERSION.0
            )));
        }
        let coordinator =
            Coordinator::resume(server, stored.left.clone()).map_err(|error| usage(error.to_string()))?;
        Ok(Resumed { stored, coordinator })
    }

    /// What the run is, by what its agents were told.
    ///
    /// # Errors
    /// [`LabError::Usage`] if nobody can go on with it.
    pub fn run(&self, dir: &Path, plan: PlanOf<'_>, options: &RunOptions) -> Result<Resuming, LabError> {
        let usage = |reason: String| LabError::Usage(format!("{reason}; {}", way_out(dir)));
        let task = self.coordinator.fetch(TASK, TASK_BYTES_MAX).map_err(|error| usage(error.to_string()))?;
        let task: Task = serde_json::from_slice(&task).map_err(|error| usage(error.to_string()))?;
        let folder = PrivateFolder::new("resumed").map_err(could_not_drive)?;
        let given =
            given_of(&task, folder.path(), &|name, path, most| self.coordinator.fetch_into(name, path, most));
        let given = given.map_err(usage)?;
        let mut plan = outside::given(&given, || plan(&task.from)).map_err(usage)?;
        settle(&mut plan, &given, (task.load, task.limits), task.tls);
        settle_options(&mut plan, options)?;
        check(&plan).map_err(usage)?;
        // it was prepared when it began
        plan.prepare = None;
        let targets = plan.targets.iter_mut().map(|target| &mut target.at);
        for (system, place) in std::iter::once(&mut plan.system).chain(targets).zip(task.setup.targets) {
            place.put_into(system);
        }
        let zero = UNIX_EPOCH + Duration::from_micros(task.setup.epoch_us);
        let (seed, ledger_seed) = (task.setup.seed, task.setup.ledger_seed);
        Ok(Resuming { plan, seed, ledger_seed, threads: task.threads, zero, _folder: folder })
    }

    /// Goes on: tells again what was recorded, and then all that follows.
    pub(crate) fn go_on(
        self,
        before: Before,
        plan: &Arc<Plan>,
        run_dir: &Path,
        options: &DriveOptions,
    ) -> Result<Box<dyn Driver>, LabError> {
        let Resumed { stored, coordinator } = self;
        let run = (Arc::clone(plan), run_dir);
        let fleet = Fleet::resumed((stored, coordinator), before, run, (options.seed, options.epoch));
        Ok(Box::new(fleet.map_err(refused)?))
    }
}

impl Place {
    /// Has a system be found here.
    fn put_into(self, system: &mut System) {
        system.origin = SystemOrigin::Url(self.url);
        system.connect_to = self.address;
        system.http = if self.is_http2 { HttpVersion::Two } else { HttpVersion::One };
    }
}

/// What can be done with a run with which nobody can go on.
fn way_out(dir: &Path) -> String {
    format!("`tidemark report {}` makes a run of what was recorded", dir.display())
}

/// Whether what belongs to the run outlived its coordinator.
fn check(plan: &Plan) -> Result<(), String> {
    let is_started =
        !matches!(plan.system.origin, SystemOrigin::Url(_)) || plan.stores.iter().any(Store::is_started);
    if is_started || !plan.services.is_empty() {
        return Err("what the run started ended with its coordinator".into());
    }
    if !plan.faults.is_empty() {
        return Err("nobody knows which of its faults took place".into());
    }
    Ok(())
}
