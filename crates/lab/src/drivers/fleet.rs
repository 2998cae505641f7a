//! Agents on other machines as one driver: each drives its part of the load, and what they hand over is merged as what
//! threads of one process hand over.
//!
//! Here agents are chosen and begin; `fleet_driver` has them once they drive.

use std::collections::VecDeque;
use std::fmt;
use std::ops::Range;
use std::path::Path;
use std::str::FromStr;
use std::sync::mpsc::RecvTimeoutError;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tidemark_drive::{Address, DriveOptions, PhaseTimes, Share};
use tidemark_fleet::clock::{Offset, REFUSED_ABOVE_US, TOLD_ABOVE_US};
use tidemark_fleet::split::deal;
use tidemark_fleet::{Coordinator, File, FleetError, Server};
use tidemark_record::{Event, HANDOVER_VERSION, Handover, IntervalSums, Packed};
use tidemark_scenario::Plan;
use tidemark_scenario::outside::Origin;

use super::fleet_agent::READY;
use super::fleet_driver::{Fleet, read};
use super::fleet_member::Agent;
use super::fleet_ssh::{Machines, Placed};
use super::fleet_task::{TASK, Task, files_of, tls_of};
use super::{Driver, Handed, Setup, could_not_drive};
use crate::error::LabError;
use crate::interrupt::StopRequest;
use crate::run_options::RunOptions;
use crate::system::Running;

/// Version of Tidemark, which coordinator and agents have the same of.
pub(super) const VERSION: (&str, u32) = (env!("CARGO_PKG_VERSION"), HANDOVER_VERSION);
/// Most threads of a fleet: an entry in the ledger has three digits for its thread, and the last number is of sessions that run once.
pub(super) const THREADS_MAX: usize = tidemark_drive::ONCE_THREAD as usize;
/// Longest time that agents may take to fetch their files, make their plans and find the system.
const READY_WITHIN: Duration = Duration::from_secs(120);
/// From the moment at which all are ready to the load's begin: each of them has heard of it by then.
const BEGIN_AFTER: Duration = Duration::from_secs(1);
/// Time for each connection that is made beforehand, and for all of them at most.
const AHEAD_EACH: Duration = Duration::from_micros(100);
const AHEAD_MAX: Duration = Duration::from_secs(2);
/// How often a stop request is looked at while agents get ready.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Which agents drive.
#[derive(Debug)]
pub struct FleetOptions {
    /// Where they are found.
    pub at: Place,
    /// How many; all that are idle if none.
    pub agents: Option<usize>,
    /// Threads of each; as many as it offers if none.
    pub threads: Option<usize>,
    /// What becomes of the share of one that is lost.
    pub on_loss: OnLoss,
}

tidemark_record::named! {
    /// What becomes of the share of an agent that is lost.
    #[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
    pub enum OnLoss {
        /// It is never sent, and counts so.
        #[default]
        NeverSent = "never-sent",
        /// The others take it over.
        Rebalance = "rebalance",
    }
}

impl fmt::Display for OnLoss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for OnLoss {
    type Err = String;

    fn from_str(name: &str) -> Result<OnLoss, String> {
        OnLoss::from_name(name).ok_or_else(|| "write never-sent or rebalance".into())
    }
}

/// Where agents are found.
#[derive(Debug)]
pub enum Place {
    /// They wait at NATS.
    Nats(Server),
    /// They are placed by `ssh` for the first run, and stay for all that have these options.
    Ssh(Machines, Box<Mutex<Option<Placed>>>),
}

impl FleetOptions {
    /// The URL of NATS, where somebody named it.
    pub(crate) fn url(&self) -> Option<&str> {
        match &self.at {
            Place::Nats(server) => Some(&server.url),
            Place::Ssh(..) => None,
        }
    }

    /// Where agents wait now, and how many are wanted.
    fn server(
        &self,
        run: &RunOptions,
        stop_request: &dyn Fn() -> StopRequest,
    ) -> Result<(Server, Option<usize>), LabError> {
        let (machines, placed) = match &self.at {
            Place::Nats(server) => return Ok((server.clone(), self.agents)),
            Place::Ssh(machines, placed) => (machines, placed),
        };
        let mut placed = placed.lock().unwrap_or_else(PoisonError::into_inner);
        let there = match placed.take() {
            Some(there) => there,
            None => Placed::start(machines, &run.executable, stop_request)?,
        };
        let server = placed.insert(there).server.clone();
        Ok((server, self.agents.or(Some(machines.count()))))
    }
}

/// Agents that were chosen.
pub struct Chosen {
    coordinator: Coordinator,
    dealt: Vec<Range<usize>>,
    on_loss: OnLoss,
}

pub(super) fn refused(error: FleetError) -> LabError {
    match error {
        FleetError::Usage(reason) => LabError::Usage(reason),
        other => LabError::Usage(other.to_string()),
    }
}

impl Chosen {
    /// Chooses agents for a plan, and deals threads out to them.
    pub(crate) fn choose(
        options: &FleetOptions,
        plan: &Plan,
        run: &RunOptions,
        stop_request: &dyn Fn() -> StopRequest,
    ) -> Result<Chosen, LabError> {
        check(plan)?;
        let (server, wanted) = options.server(run, stop_request)?;
        let mut coordinator = Coordinator::choose(&server, wanted, VERSION).map_err(refused)?;
        let offered: Vec<usize> = coordinator
            .members()
            .iter()
            .map(|agent| options.threads.unwrap_or(agent.threads).max(1))
            .collect();
        let most = plan.limits.connections.clamp(1, THREADS_MAX);
        let most = plan.limits.in_flight.map_or(most, |limit| most.min(limit.most.max(1)));
        let mut dealt = deal(&offered, most);
        // one that would have no connection takes no part
        dealt.retain(|threads| !threads.is_empty());
        coordinator.keep(dealt.len());
        if wanted.is_some_and(|wanted| wanted > dealt.len()) {
            return Err(LabError::Usage(format!(
                "{} agents need as many connections, and the scenario has {most}; give fewer --agents",
                offered.len()
            )));
        }
        let on_loss = options.on_loss;
        if on_loss == OnLoss::Rebalance {
            check_rebalance(plan, &dealt)?;
        }
        let threads = dealt.last().map_or(0, |last| last.end);
        let few = plan.feeders.iter().find(|feeder| feeder.held && feeder.rows.len() < threads);
        if let Some(feeder) = few {
            return Err(LabError::Usage(format!(
                "the rows of {} are held, and {} are too few for {threads} driving threads; use fewer --agents or --threads",
                feeder.name,
                feeder.rows.len()
            )));
        }
        Ok(Chosen { coordinator, dealt, on_loss })
    }

    /// Threads of all agents.
    pub(crate) fn threads(&self) -> usize {
        self.dealt.last().map_or(0, |last| last.end)
    }

    /// Names of the agents, each with its threads.
    pub(crate) fn agents(&self) -> Vec<(String, Range<usize>)> {
        let names = self.coordinator.members().iter().map(|agent| agent.name.clone());
        names.zip(self.dealt.iter().cloned()).collect()
    }

    /// Has them begin: gives them the plan, waits until all are ready, and names one instant.
    pub(crate) fn start(
        mut self,
        run: &RunOptions,
        (plan, run_dir): (&Plan, &Path),
        targets: &[&Running],
        options: &DriveOptions,
        stop_request: &dyn Fn() -> StopRequest,
    ) -> Result<Box<dyn Driver>, LabError> {
        check_targets(targets)?;
        let here = rustix::system::uname();
        let elsewhere =
            self.coordinator.members().iter().find(|agent| agent.host != here.nodename().to_string_lossy());
        if let Some(agent) = elsewhere {
            check_reachable(targets, &agent.name, &agent.host)?;
        }
        // what it is read from says more than words and text
        self.put_task(run, plan, Setup::new((&[], ""), targets, options))?;
        self.coordinator.take(self.on_loss == OnLoss::Rebalance, VERSION).map_err(refused)?;
        let names: Vec<String> = self.agents().into_iter().map(|(name, _)| name).collect();
        self.wait_for(&names, stop_request, &mut |handover| match handover {
            Handover::Event(event) if event.kind == READY => Ok(()),
            _ => Err("it did not say that it is ready".into()),
        })?;
        let offsets = self.coordinator.offsets().map_err(refused)?;
        let mut told = VecDeque::new();
        for (name, offset) in names.iter().zip(&offsets) {
            told.push_back(Handed::Event(clock_event(name, *offset)?));
        }
        let begin = options.epoch.elapsed() + BEGIN_AFTER + time_ahead(plan);
        self.coordinator.begin(&offsets, options.epoch, begin).map_err(refused)?;
        let mut phases: Option<Vec<PhaseTimes>> = None;
        let epoch_us = Setup::epoch_us(options);
        self.wait_for(&names, stop_request, &mut |handover| match handover {
            Handover::Hello(hello) if hello.epoch_us != epoch_us => {
                Err("it began with another run's zero".into())
            }
            Handover::Hello(hello) if phases.as_ref().is_some_and(|known| *known != hello.phases) => {
                Err("it began another load".into())
            }
            Handover::Hello(hello) => {
                phases.get_or_insert(hello.phases);
                Ok(())
            }
            _ => Err("it did not begin with a hello".into()),
        })?;
        let agents = names.into_iter().zip(&self.dealt).zip(offsets);
        let agents = agents.map(|((name, threads), offset)| Agent::new(name, threads, offset)).collect();
        if self.on_loss == OnLoss::Rebalance {
            self.coordinator.watch();
        }
        let share = Share { first: 0, all: self.threads(), begin, taken: None };
        let mut fleet = Fleet {
            agents,
            phases: phases.unwrap_or_default(),
            next_number: share.all,
            next_take_over: 1,
            unwritten: None,
            share,
            coordinator: self.coordinator,
            plan: Arc::new(plan.clone()),
            seed: options.seed,
            epoch: options.epoch,
            connected: Instant::now(),
            away_since: None,
            told,
            sums: IntervalSums::default(),
            never_sent: VecDeque::new(),
            stopped: false,
            on_loss: self.on_loss,
            notes: Vec::new(),
            resumed: Vec::new(),
            missing: 0,
            run_dir: run_dir.to_owned(),
            before: None,
            there: 0,
            unstored_end: false,
            idle: false,
        };
        fleet.store();
        if let Some(error) = fleet.unwritten.take() {
            return Err(LabError::Measure(error));
        }
        Ok(Box::new(fleet))
    }

    fn put_task(&self, run: &RunOptions, plan: &Plan, setup: Setup) -> Result<(), LabError> {
        let tls = tls_of(plan);
        let task = Task {
            setup,
            files: files_of(&plan.read_from, &tls),
            from: Origin::clone(&plan.read_from),
            load: plan.load.clone(),
            limits: plan.limits.clone(),
            tls,
            dealt: self.dealt.iter().map(|threads| (threads.start, threads.len())).collect(),
            threads: self.threads(),
            io: run.io.to_string(),
            spin: run.spin,
            timestamps: run.timestamps.to_string(),
        };
        let bytes = serde_json::to_vec(&task).map_err(could_not_drive)?;
        let mut all = vec![(TASK.to_owned(), File::Bytes(&bytes))];
        // one that is not there is told of by whoever reads the scenario
        let there = task.files.iter().filter(|(path, _)| path.is_file());
        all.extend(there.map(|(path, name)| (name.clone(), File::At(path))));
        self.coordinator.put(&all).map_err(refused)
    }

    /// Waits until each agent has said something that is right.
    fn wait_for(
        &self,
        names: &[String],
        stop_request: &dyn Fn() -> StopRequest,
        is_right: &mut dyn FnMut(Handover<Packed<'_>>) -> Result<(), String>,
    ) -> Result<(), LabError> {
        let asked = Instant::now();
        let mut waited_for: Vec<&String> = names.iter().collect();
        while let Some(first) = waited_for.first() {
            let failed = |name: &str, reason: &str| could_not_drive(format!("agent {name}: {reason}"));
            match self.coordinator.next(LOOK_EVERY) {
                Ok((member, told)) => {
                    let name = names.get(member).map_or("", String::as_str);
                    let told = told.map_err(|reason| failed(name, &reason))?;
                    match read(&told).map_err(|reason| failed(name, &reason))? {
                        Handover::Error(reason) => return Err(failed(name, &reason)),
                        handover => is_right(handover).map_err(|reason| failed(name, &reason))?,
                    }
                    waited_for.retain(|waited_for| *waited_for != name);
                }
                Err(RecvTimeoutError::Disconnected) => return Err(could_not_drive("NATS is gone")),
                Err(RecvTimeoutError::Timeout) if stop_request() != StopRequest::None => {
                    return Err(LabError::Interrupted(None));
                }
                Err(RecvTimeoutError::Timeout) if asked.elapsed() > READY_WITHIN => {
                    return Err(failed(first, "it was not ready in time"));
                }
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
        Ok(())
    }
}

/// Whether a plan can be driven by several processes.
fn check(plan: &Plan) -> Result<(), LabError> {
    let usage = |reason: &str| Err(LabError::Usage(format!("--fleet: {reason}")));
    if plan.sessions.iter().any(|kind| kind.script.is_some()) {
        return usage("a script runs in one process; leave --fleet out");
    }
    if !plan.keys.is_empty() {
        return usage("agents do not know which `keys` the others wrote; leave --fleet out");
    }
    Ok(())
}

/// Whether others can take a lost agent's share over.
fn check_rebalance(plan: &Plan, dealt: &[Range<usize>]) -> Result<(), LabError> {
    let usage = |reason: String| Err(LabError::Usage(format!("--on-agent-loss rebalance: {reason}")));
    if plan.limits.sessions.is_some() {
        let reason =
            "it is not known how many sessions of a number (-n) a lost agent began; leave one of the two out";
        return usage(reason.into());
    }
    let all = dealt.last().map_or(0, |last| last.end);
    let largest = dealt.iter().map(Range::len).max().unwrap_or(0);
    let users = plan.load.most_users();
    // rows of one that is lost stay its own: it may be cut off, and go on
    let few =
        plan.feeders.iter().find(|feeder| feeder.held && feeder.rows.len() * (all - largest) < users * all);
    match few.filter(|_| dealt.len() > 1) {
        Some(feeder) => usage(format!(
            "the rows of {} are held, and those of the agents that are left would be too few for {users} users; give it {} rows \
             or more, or leave the flag out",
            feeder.name,
            (users * all).div_ceil(all - largest)
        )),
        None => Ok(()),
    }
}

/// Whether agents can know beforehand what they drive.
fn check_targets(targets: &[&Running]) -> Result<(), LabError> {
    for target in targets {
        let reason = match &target.target {
            of if of.proxy.is_some() => "agents drive no system behind a proxy",
            of if of.protocol.shards().is_some() => "agents drive no store whose keys are on several servers",
            _ => continue,
        };
        return Err(LabError::Usage(format!("--fleet: {reason}; leave it out")));
    }
    Ok(())
}

/// An address of this machine alone is another server, or none, on the agent's machine.
fn check_reachable(targets: &[&Running], agent: &str, host: &str) -> Result<(), LabError> {
    for target in targets {
        let is_here = match &target.target.address {
            Address::Tcp(address) => address.ip().is_loopback(),
            Address::Unix(_) => true,
        };
        if is_here {
            return Err(LabError::Usage(format!(
                "--fleet: {} is an address of this machine alone, and agent {agent} is on {host}; name the system as {host} reaches it",
                target.url
            )));
        }
    }
    Ok(())
}

fn time_ahead(plan: &Plan) -> Duration {
    match plan.limits.connections_named {
        true => AHEAD_EACH
            .saturating_mul(u32::try_from(plan.limits.connections).unwrap_or(u32::MAX))
            .min(AHEAD_MAX),
        false => Duration::ZERO,
    }
}

/// What is told of an agent's clock.
fn clock_event(name: &str, offset: Offset) -> Result<Event, LabError> {
    let ms = |us: f64| us / 1_000.0;
    let (ahead, bound) = (ms(offset.offset_us as f64), ms(offset.bound_us as f64));
    if offset.bound_us > REFUSED_ABOVE_US {
        let reason = "its clock cannot be compared: the shortest way to it and back takes";
        return Err(could_not_drive(format!("agent {name}: {reason} {:.0} ms", 2.0 * bound)));
    }
    let note = if offset.bound_us > TOLD_ABOVE_US { "; its seconds may be off by as much" } else { "" };
    let text = format!("{name}: its clock is {ahead:.3} ms ahead, give or take {bound:.3} ms{note}");
    Ok(Event { at_us: 0, kind: "agent".into(), text })
}
