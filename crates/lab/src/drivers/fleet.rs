//! Agents on other machines as one driver: each drives its part of the load, and what they hand over is merged as what
//! threads of one process hand over.
//!
//! An agent that is gone hands nothing over any more. What was due at it from then on was never sent, and counts so.

use std::collections::VecDeque;
use std::io::Cursor;
use std::ops::Range;
use std::sync::mpsc::RecvTimeoutError;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tidemark_drive::{Address, DriveEnd, DriveOptions, PhaseTimes, Share, never_sent};
use tidemark_fleet::clock::{Offset, REFUSED_ABOVE_US, TOLD_ABOVE_US};
use tidemark_fleet::split::deal;
use tidemark_fleet::{Coordinator, File, FleetError, Server};
use tidemark_record::summary::AgentFigures;
use tidemark_record::{Event, HANDOVER_VERSION, Handover, ThreadInterval};
use tidemark_scenario::Plan;
use tidemark_scenario::outside::Origin;

use super::fleet_agent::READY;
use super::fleet_ssh::{Machines, Placed};
use super::fleet_task::{TASK, Task, files_of, tls_of};
use super::{Driver, Ended, Handed, Setup, add, could_not_drive};
use crate::error::LabError;
use crate::interrupt::StopRequest;
use crate::run_options::RunOptions;
use crate::system::Running;
use crate::timetable::microseconds;

/// Version of Tidemark, which coordinator and agents have the same of.
const VERSION: (&str, u32) = (env!("CARGO_PKG_VERSION"), HANDOVER_VERSION);
/// Most threads of a fleet: an entry in the ledger has three digits for its thread.
const THREADS_MAX: usize = 999;
/// Longest time that agents may take to fetch their files, make their plans and find the system.
const READY_WITHIN: Duration = Duration::from_secs(120);
/// From the moment at which all are ready to the load's begin: each of them has heard of it by then.
const BEGIN_AFTER: Duration = Duration::from_secs(1);
/// Time for each connection that is made beforehand, and for all of them at most.
const AHEAD_EACH: Duration = Duration::from_micros(100);
const AHEAD_MAX: Duration = Duration::from_secs(2);
/// An agent that hands nothing over for so long is gone, though NATS can be reached: a cut of 10 s loses nothing.
const GONE_AFTER: Duration = Duration::from_secs(15);
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
}

fn refused(error: FleetError) -> LabError {
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
        let threads = dealt.last().map_or(0, |last| last.end);
        let few = plan.feeders.iter().find(|feeder| feeder.held && feeder.rows.len() < threads);
        if let Some(feeder) = few {
            return Err(LabError::Usage(format!(
                "the rows of {} are held, and {} are too few for {threads} driving threads; use fewer --agents or --threads",
                feeder.name,
                feeder.rows.len()
            )));
        }
        Ok(Chosen { coordinator, dealt })
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
        plan: &Plan,
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
        self.coordinator.take(VERSION).map_err(refused)?;
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
        let now = Instant::now();
        let agents = names.into_iter().zip(&self.dealt).zip(offsets).map(|((name, threads), offset)| Agent {
            name,
            threads: threads.clone(),
            heard: now,
            told_us: vec![0; threads.len()],
            open: 0,
            end: None,
            lost: None,
            offset,
        });
        Ok(Box::new(Fleet {
            agents: agents.collect(),
            phases: phases.unwrap_or_default(),
            share: Share { first: 0, all: self.threads(), begin },
            coordinator: self.coordinator,
            plan: Arc::new(plan.clone()),
            seed: options.seed,
            epoch: options.epoch,
            connected: now,
            told,
            never_sent: VecDeque::new(),
            stopped: false,
        }))
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
        is_right: &mut dyn FnMut(Handover) -> Result<(), String>,
    ) -> Result<(), LabError> {
        let asked = Instant::now();
        let mut waited_for: Vec<&String> = names.iter().collect();
        while let Some(first) = waited_for.first() {
            let failed = |name: &str, reason: &str| could_not_drive(format!("agent {name}: {reason}"));
            match self.coordinator.next(LOOK_EVERY) {
                Ok((member, told)) => {
                    let name = names.get(member).map_or("", String::as_str);
                    match told
                        .map_err(|reason| failed(name, &reason))
                        .and_then(|told| read(&told).map_err(|reason| failed(name, &reason)))?
                    {
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

/// Requests due within the measured window of which it is told what became.
fn ended(interval: &ThreadInterval) -> u64 {
    let measured = interval.series.iter().filter(|series| series.measured);
    measured.map(|series| series.response_time_us.len()).sum::<u64>() + interval.measured_dropped
}

fn read(message: &[u8]) -> Result<Handover, String> {
    match Handover::read(&mut Cursor::new(message)) {
        Ok(Some(handover)) => Ok(handover),
        Ok(None) => Err("it handed over nothing".into()),
        Err(error) => Err(format!("what it hands over cannot be read: {error}")),
    }
}

/// An agent while it drives.
struct Agent {
    name: String,
    threads: Range<usize>,
    /// When something came from it last.
    heard: Instant,
    /// Where the last interval of each thread ended, microseconds since the run began.
    told_us: Vec<u64>,
    /// Requests due within the measured window of which it has not told what became.
    open: u64,
    end: Option<DriveEnd>,
    lost: Option<String>,
    offset: Offset,
}

/// Agents that drive.
struct Fleet {
    agents: Vec<Agent>,
    phases: Vec<PhaseTimes>,
    share: Share,
    coordinator: Coordinator,
    plan: Arc<Plan>,
    seed: u64,
    epoch: Instant,
    /// When NATS could be reached last after it could not.
    connected: Instant,
    /// What is to be told next.
    told: VecDeque<Handed>,
    /// What was due at agents that are gone, in order of time.
    never_sent: VecDeque<ThreadInterval>,
    stopped: bool,
}

impl Fleet {
    /// What an agent handed over.
    fn take(&mut self, member: usize, handover: Handover) -> Option<Handed> {
        let agent = self.agents.get_mut(member)?;
        if agent.lost.is_some() || agent.end.is_some() {
            return None;
        }
        agent.heard = Instant::now();
        match handover {
            Handover::Interval(mut interval, part) => {
                let place = usize::from(interval.thread).checked_sub(agent.threads.start);
                let Some(told_us) = place.and_then(|place| agent.told_us.get_mut(place)) else {
                    self.lose(member, "it told of a thread that it does not have".into());
                    return None;
                };
                *told_us = interval.end_us.max(*told_us);
                agent.open = (agent.open + interval.measured_offered).saturating_sub(ended(&interval));
                interval.ledger = part;
                Some(Handed::Interval(*interval))
            }
            Handover::Event(event) => {
                let text = format!("{}: {}", agent.name, event.text);
                Some(Handed::Event(Event { text, ..event }))
            }
            Handover::End(end) => {
                agent.end = Some(*end);
                None
            }
            Handover::Error(reason) => {
                self.lose(member, reason);
                None
            }
            Handover::Hello(_) | Handover::Traced(_) => {
                self.lose(member, "it began anew".into());
                None
            }
        }
    }

    /// An agent hands nothing over any more: what is due at it from its last interval on is never sent.
    fn lose(&mut self, member: usize, reason: String) {
        let agent = &mut self.agents[member];
        let last_us = agent.told_us.iter().copied().max().unwrap_or(0);
        let text = format!(
            "{} is lost: {reason}; what was due at it from {:.1}s on is never sent",
            agent.name,
            last_us as f64 / 1e6
        );
        agent.lost = Some(reason);
        self.coordinator.give_up(member);
        let at_us = microseconds(self.epoch.elapsed());
        self.told.push_back(Handed::Event(Event { at_us: at_us as i64, kind: "agent".into(), text }));
        if self.stopped {
            return;
        }
        let from: Vec<(usize, u64)> = agent.threads.clone().zip(agent.told_us.iter().copied()).collect();
        if agent.open > 0 {
            // nobody knows what became of them
            let thread = u16::try_from(agent.threads.start).unwrap_or(u16::MAX);
            let mut unknown = ThreadInterval::empty(thread, last_us, last_us + 1);
            (unknown.dropped, unknown.measured_dropped) = (agent.open, agent.open);
            self.never_sent.push_back(unknown);
        }
        self.never_sent.extend(never_sent(&self.plan, self.seed, self.share, &from));
        self.never_sent.make_contiguous().sort_by_key(|interval| interval.end_us);
    }

    fn is_over(&self) -> bool {
        self.agents.iter().all(|agent| agent.end.is_some() || agent.lost.is_some())
    }

    /// What was never sent by now; all of it once nobody drives any more and the load is over.
    fn due(&mut self) -> Option<ThreadInterval> {
        let now_us = microseconds(self.epoch.elapsed());
        let is_due = self.never_sent.front().is_some_and(|interval| interval.end_us <= now_us);
        if is_due { self.never_sent.pop_front() } else { None }
    }

    /// Finds agents of which nothing was heard for too long.
    fn mind(&mut self) {
        if !self.coordinator.is_connected() {
            self.connected = Instant::now();
        }
        for member in 0..self.agents.len() {
            let agent = &self.agents[member];
            let silent = agent.heard.max(self.connected).elapsed();
            if agent.end.is_none() && agent.lost.is_none() && silent > GONE_AFTER {
                self.lose(member, format!("nothing came from it for {} s", GONE_AFTER.as_secs()));
            }
        }
    }
}

impl Driver for Fleet {
    fn phases(&self) -> &[PhaseTimes] {
        &self.phases
    }

    fn next(&mut self, within: Duration) -> Handed {
        if let Some(told) = self.told.pop_front() {
            return told;
        }
        if let Some(interval) = self.due() {
            return Handed::Interval(interval);
        }
        if self.is_over() {
            if self.never_sent.is_empty() || self.stopped {
                return Handed::Over;
            }
            std::thread::sleep(within);
            return Handed::Nothing;
        }
        self.mind();
        match self.coordinator.next(within) {
            Ok((member, Ok(message))) => match read(&message) {
                Ok(handover) => self.take(member, handover).unwrap_or(Handed::Nothing),
                Err(reason) => {
                    self.lose(member, reason);
                    Handed::Nothing
                }
            },
            Ok((member, Err(reason))) => {
                self.lose(member, reason);
                Handed::Nothing
            }
            Err(_) => Handed::Nothing,
        }
    }

    fn recycle(&mut self, _: ThreadInterval) {}

    fn stop(&mut self) {
        self.stopped = true;
        self.never_sent.clear();
        self.coordinator.stop();
    }

    fn abort(&mut self) {
        self.stopped = true;
        self.never_sent.clear();
        self.coordinator.abort();
    }

    fn end(self: Box<Self>) -> Result<Ended, LabError> {
        let Fleet { agents, phases, coordinator, .. } = *self;
        drop(coordinator);
        let last_us = agents.iter().flat_map(|agent| &agent.told_us).copied().max().unwrap_or(0);
        let lost =
            agents.iter().filter_map(|agent| Some(format!("agent {}: {}", agent.name, agent.lost.as_ref()?)));
        let lost: Vec<String> = lost.collect();
        let figures = |agent: &Agent| AgentFigures {
            agent: agent.name.clone(),
            first_thread: agent.threads.start as u64,
            threads: agent.threads.len() as u64,
            clock_offset_us: agent.offset.offset_us,
            clock_bound_us: agent.offset.bound_us,
            lost: agent.lost.clone(),
            ..AgentFigures::default()
        };
        let told = agents.iter().map(figures).collect();
        let mut ends = agents.into_iter().filter_map(|agent| agent.end);
        let mut end = ends.next().unwrap_or_else(|| {
            let mut phases = phases;
            phases.retain(|phase| phase.start_us < last_us);
            phases.iter_mut().for_each(|phase| phase.end_us = phase.end_us.min(last_us));
            DriveEnd { phases, ended_us: last_us, ..DriveEnd::default() }
        });
        ends.for_each(|one| add(&mut end, one));
        Ok(Ended { end, broke: (!lost.is_empty()).then(|| lost.join("; ")), agents: told })
    }
}
