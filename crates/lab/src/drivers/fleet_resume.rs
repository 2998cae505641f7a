//! A run whose coordinator was killed, as another one goes on with it.

use std::collections::VecDeque;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};
use tidemark_drive::{DriveEnd, DriveOptions, PhaseTimes, Share};
use tidemark_fleet::clock::Offset;
use tidemark_fleet::{Coordinator, FleetError, PrivateFolder, ResumeState};
use tidemark_record::{Before, IntervalSums, read_fleet, write_fleet};
use tidemark_scenario::Plan;
use tidemark_scenario::outside;
use tidemark_scenario::plan::{HttpVersion, Store, System, SystemOrigin};

use super::fleet::{FleetOptions, OnLoss, Place as Waits, VERSION, refused};
use super::fleet_agent::PlanOf;
use super::fleet_driver::Fleet;
use super::fleet_member::{Agent, Part};
use super::fleet_task::{TASK, TASK_BYTES_MAX, Task, given_of, settle};
use super::{Driver, Handed, Place, could_not_drive};
use crate::error::LabError;
use crate::experiment::settle as settle_options;
use crate::run_options::RunOptions;

/// What another coordinator needs to go on with a run.
#[derive(Serialize, Deserialize)]
pub(super) struct Stored {
    /// The program that wrote it, and the version of what is handed over to it.
    pub(super) version: (String, u32),
    pub(super) left: ResumeState,
    begin: Duration,
    phases: Vec<PhaseTimes>,
    agents: Vec<StoredAgent>,
    rebalance: bool,
    next_number: usize,
    next_take_over: u64,
    notes: Vec<String>,
    resumed: Vec<String>,
    missing: u64,
}

#[derive(Serialize, Deserialize)]
struct StoredAgent {
    name: String,
    parts: Vec<Part>,
    end: Option<DriveEnd>,
    lost: Option<String>,
    replaced: bool,
    until_us: u64,
    offset: (i64, u64),
}

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
            usage(format!("{} was not run with --fleet, or its load had not begun", dir.display()))
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

impl Fleet {
    /// Goes on where another coordinator was gone: tells again what that had recorded, and then all that follows.
    pub(super) fn resumed(
        (stored, mut coordinator): (Stored, Coordinator),
        before: Before,
        (plan, run_dir): (Arc<Plan>, &Path),
        (seed, epoch): (u64, Instant),
    ) -> Result<Fleet, FleetError> {
        let (drive, last) = coordinator.who_drives()?;
        // this machine's clock may be another
        let offsets = coordinator.offsets_known();
        coordinator.own();
        let now = Instant::now();
        let agent = |((of, drives), offset): ((StoredAgent, bool), Option<Offset>)| Agent {
            name: of.name,
            parts: of.parts.into_iter().map(Part::untold).collect(),
            heard: now,
            end: of.end,
            ended_by: 0,
            lost: of.lost,
            replaced: of.replaced,
            until_us: of.until_us,
            drives,
            offset: offset.unwrap_or(Offset { offset_us: of.offset.0, bound_us: of.offset.1 }),
        };
        let all =
            stored.agents.iter().filter_map(|agent| agent.parts.first()).map(|part| part.threads.len()).sum();
        let on_loss = if stored.rebalance { OnLoss::Rebalance } else { OnLoss::NeverSent };
        if stored.rebalance {
            coordinator.watch();
        }
        let mut fleet = Fleet {
            agents: stored.agents.into_iter().zip(drive).zip(offsets).map(agent).collect(),
            phases: stored.phases,
            share: Share { first: 0, all, begin: stored.begin, taken: None },
            coordinator,
            plan,
            seed,
            epoch,
            connected: now,
            away_since: None,
            told: VecDeque::new(),
            sums: IntervalSums::default(),
            never_sent: VecDeque::new(),
            stopped: false,
            on_loss,
            next_number: stored.next_number,
            next_take_over: stored.next_take_over,
            unwritten: None,
            notes: stored.notes,
            resumed: stored.resumed,
            missing: stored.missing,
            run_dir: run_dir.to_owned(),
            before: Some(before),
            there: last,
            unstored_end: false,
            idle: false,
        };
        // nobody is left who could go on
        fleet.stopped = fleet.agents.iter().all(|agent| !agent.is_there() || !agent.drives);
        Ok(fleet)
    }

    /// Writes down what another coordinator needs to go on. Where it cannot be written, the run ends.
    pub(super) fn store(&mut self) {
        self.store_as(self.coordinator.left());
    }

    /// The same with what agents are about to hear. Gives whether it is written: if not, they must not hear it.
    pub(super) fn store_as(&mut self, left: ResumeState) -> bool {
        let agent = |agent: &Agent| StoredAgent {
            name: agent.name.clone(),
            parts: agent.parts.clone(),
            end: agent.end.clone().filter(|_| self.is_recorded(agent)),
            lost: agent.lost.clone(),
            replaced: agent.replaced,
            until_us: agent.until_us,
            offset: (agent.offset.offset_us, agent.offset.bound_us),
        };
        let stored = Stored {
            version: (VERSION.0.to_owned(), VERSION.1),
            left,
            begin: self.share.begin,
            phases: self.phases.clone(),
            agents: self.agents.iter().map(agent).collect(),
            rebalance: self.on_loss == OnLoss::Rebalance,
            next_number: self.next_number,
            next_take_over: self.next_take_over,
            notes: self.notes.clone(),
            resumed: self.resumed.clone(),
            missing: self.missing,
        };
        let text = serde_json::to_vec(&stored).map_err(|error| error.to_string());
        let written = text.and_then(|text| write_fleet(&self.run_dir, &text).map_err(|e| e.to_string()));
        match written {
            Ok(()) => true,
            Err(error) => {
                self.unwritten.get_or_insert(error);
                self.abort();
                false
            }
        }
    }

    /// Tells again what another coordinator recorded; none once that is over.
    pub(super) fn again(&mut self) -> Option<Handed> {
        let before = self.before.as_mut()?;
        if let Some(interval) = before.next_interval() {
            let bounds = (interval.start_us, interval.end_us);
            for share in &*interval.shares() {
                let mut parts = self.agents.iter_mut().flat_map(|agent| &mut agent.parts);
                parts.find_map(|part| part.note(share, bounds));
            }
            return Some(Handed::Interval(interval));
        }
        if let Some(before) = self.before.take() {
            // what stays is told again by whoever goes on next
            let _ = before.done();
        }
        self.go_on();
        None
    }

    /// Goes on behind what another coordinator recorded.
    fn go_on(&mut self) {
        let now = Instant::now();
        let last_us = self.agents.iter().map(Agent::last_us).max().unwrap_or(0).min(self.now_us());
        let told = |us: u64| us as f64 / 1e6;
        let text = format!(
            "the coordinator was gone from {:.1}s on; another one resumed the run, and nothing was watched until {:.1}s",
            told(last_us),
            told(self.now_us())
        );
        self.resumed.push(text.clone());
        self.tell(text);
        for member in 0..self.agents.len() {
            let agent = &mut self.agents[member];
            agent.heard = now;
            if agent.lost.is_none() || self.stopped {
                continue;
            }
            let (parts, until_us) = (agent.parts.clone(), agent.until_us);
            // it is counted as missing already
            self.give_up_due(&parts, until_us);
        }
        self.store();
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
