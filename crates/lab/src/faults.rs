//! Breaks what the lab started, on purpose and in time, and puts it right again.
//!
//! Each target has a thread of its own, so that nothing that takes long (a graceful stop, a restart) keeps another
//! fault from its time or the run from its intervals. What they did comes back as news; whoever carries the run out
//! [takes](Faults::news) them. On every way out, a panic too, the threads are told and waited for, and what was
//! frozen is thawed before it is stopped.

mod maintenance;

use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use tidemark_record::Event;
use tidemark_record::FaultEvent;
use tidemark_record::maintenance::is_kind;
use tidemark_scenario::plan::{Fault, FaultKind};

use crate::disk::{Disk, Disks};
use crate::error::LabError;
use crate::figures::{Endpoint, is_of};
use crate::link::{Condition, Link};
use crate::monitor::SYSTEM;
use crate::process::Patience;
use crate::started::{Handle, held};
use crate::stop_signal::{StopSignal, Threads};
use crate::tier::Tier;
use crate::timetable::microseconds;

/// What follows a fault within this time after it was put right is still taken for a part of its dip, where the
/// driver and the system are judged while the run goes on.
const FELT_AFTER_US: u64 = 5_000_000;
/// What was due within this time before a fault may be answered within it, and be missed among what is judged without it.
const FELT_BEFORE_US: u64 = 1_000_000;

/// How often a disk that is to be full is filled up again: what a system removes makes room.
const FILL_EVERY: Duration = Duration::from_millis(20);
/// How often it is looked whether what was killed is there again; it is looked for once a second.
const BACK_EVERY: Duration = Duration::from_millis(100);

/// What happened to a fault.
#[derive(Debug)]
enum News {
    Began,
    Healed(&'static str),
    Ready(Duration),
    /// Somebody else started it again.
    Back,
    Failed(String),
}

/// A fault by its index, when, and what.
type TimedNews = (usize, Instant, News);

/// What faults need beside what was started.
#[derive(Clone, Default)]
pub struct Injectors {
    /// Where faults are of a link, by the name of who is behind it. They stay to the end of the run: what there is is
    /// asked for through them.
    pub links: Vec<(String, Arc<Link>)>,
    /// Where faults fill disks.
    pub disks: Arc<Disks>,
    /// Servers of stores that can be asked for maintenance.
    pub(crate) endpoints: Vec<Endpoint>,
    /// Services whose instances can be replaced, added and taken away.
    pub(crate) tiers: Vec<Arc<Tier>>,
}

/// The faults of a run, on their way.
pub struct Faults {
    epoch: Instant,
    /// From when the times of the plan count, since the epoch.
    zero_us: u64,
    plan: Vec<Fault>,
    records: Vec<FaultEvent>,
    started: Vec<Handle>,
    _injectors: Injectors,
    told: Receiver<TimedNews>,
    threads: Threads,
}

impl Faults {
    /// Whether everything that is to be broken is there.
    pub fn check(plan: &[Fault], started: &[Handle], injectors: &Injectors) -> Result<(), LabError> {
        let is_linked = |fault: &Fault| injectors.links.iter().any(|(name, _)| *name == fault.target);
        if let Some(fault) =
            plan.iter().find(|fault| fault.kind.asks_a_store() && asked(injectors, fault).is_empty())
        {
            return Err(LabError::Usage(format!(
                "`{fault}` is not possible: `{}` does not speak Redis' protocol",
                fault.target
            )));
        }
        let broken = || plan.iter().filter(|fault| !fault.kind.is_maintenance());
        match broken().find(|fault| find(started, &fault.target).is_empty() && !is_linked(fault)) {
            Some(fault) => Err(LabError::Usage(format!(
                "`{fault}` is not possible: this run does not start `{}`, and only what it starts can be broken, and what it \
                 watches with `faults: true`",
                fault.target
            ))),
            None => Ok(()),
        }
    }

    /// Begins to wait for their times, which count from `zero_us` after `epoch`.
    pub fn begin(
        plan: &[Fault],
        started: Vec<Handle>,
        injectors: Injectors,
        epoch: Instant,
        zero_us: u64,
    ) -> io::Result<Faults> {
        let (sender, told) = channel();
        let records = plan.iter().map(record).collect();
        let mut faults = Faults {
            epoch,
            zero_us,
            plan: plan.to_vec(),
            records,
            started,
            _injectors: injectors.clone(),
            told,
            threads: Threads::default(),
        };
        let breaks = |fault: &Fault| !fault.kind.is_maintenance();
        let mut targets: Vec<&str> =
            plan.iter().filter(|fault| breaks(fault)).map(|fault| fault.target.as_str()).collect();
        targets.sort_unstable();
        targets.dedup();
        let own = |of: &dyn Fn(&Fault) -> bool| -> Vec<(usize, Fault)> {
            let own = plan.iter().enumerate().filter(|(_, fault)| of(fault));
            own.map(|(index, fault)| (index, fault.clone())).collect()
        };
        let of_targets =
            targets.into_iter().map(|target| (target, own(&|fault| breaks(fault) && fault.target == target)));
        // each by itself: nobody knows how long it takes, and what is broken meanwhile is in time
        let maintenance = plan.iter().enumerate().filter(|(_, fault)| !breaks(fault));
        let maintenance = maintenance.map(|(at, fault)| (fault.target.as_str(), vec![(at, fault.clone())]));
        for (target, own) in of_targets.chain(maintenance) {
            let handles = find(&faults.started, target);
            let zero = epoch + Duration::from_micros(zero_us);
            let (injectors, stop) = (injectors.clone(), Arc::clone(&faults.threads.stop));
            let breaker = Breaker { handles, injectors, zero, stop, sender: sender.clone() };
            let thread = std::thread::Builder::new().name("faults".into());
            faults.threads.all.push(thread.spawn(move || breaker.carry_out(&own))?);
        }
        Ok(faults)
    }

    /// What has happened since the last call, for the run's time axis.
    pub fn news(&mut self) -> Vec<Event> {
        let mut events = Vec::new();
        while let Ok((index, at, news)) = self.told.try_recv() {
            let at_us = microseconds(at.saturating_duration_since(self.epoch));
            let record = &mut self.records[index];
            let target = &record.target;
            let (kind, text) = match news {
                News::Began => {
                    record.begin_us = Some(at_us);
                    ("fault", record.fault.clone())
                }
                News::Healed(how) => {
                    record.healed_us = Some(at_us);
                    ("healed", format!("{target} {how}"))
                }
                News::Ready(after) => {
                    record.ready_us = Some(at_us);
                    ("healed", format!("{target} is ready, {:.2} s after its start", after.as_secs_f64()))
                }
                News::Back => {
                    (record.healed_us, record.ready_us) = (Some(at_us), Some(at_us));
                    ("healed", format!("{target} is there again"))
                }
                News::Failed(reason) => {
                    let text = format!("{}: {}", record.fault, reason.lines().next().unwrap_or_default());
                    record.error = Some(reason);
                    ("fault", text)
                }
            };
            events.push(Event { at_us: at_us as i64, kind: kind.into(), text });
        }
        events
    }

    /// What could not be brought back.
    pub fn gone(&self) -> Option<String> {
        let lost = |record: &&FaultEvent| {
            record.begin_us.is_some() && record.error.is_some() && !is_kind(&record.kind)
        };
        let record = self.records.iter().find(lost)?;
        let reason = record.error.as_deref().unwrap_or_default();
        Some(format!("`{}` did not come back after `{}`: {reason}", record.target, record.fault))
    }

    /// What was killed or stopped and is not ready again, once all is over.
    pub fn still_down(&self) -> Vec<String> {
        let is_down = |record: &&FaultEvent| {
            record.is_not_put_right() && self.records.iter().all(|other| !record.is_raised_by(other))
        };
        let say = |record: &FaultEvent| {
            format!("{} was not ready again when the load ended, after `{}`", record.target, record.fault)
        };
        self.records.iter().filter(is_down).map(say).collect()
    }

    /// Whether what lies between two moments may feel a fault.
    pub fn are_felt(&self, from_us: u64, to_us: u64) -> bool {
        self.plan.iter().zip(&self.records).any(|(fault, record)| {
            if fault.kind.is_maintenance() {
                return false;
            }
            let due_us = self.zero_us.saturating_add(fault.at.as_micros() as u64);
            let is_before = from_us < due_us && due_us.saturating_sub(FELT_BEFORE_US) < to_us;
            let Some(begin_us) = record.begin_us else { return is_before };
            // what nobody is to put right is to be lived with
            let right_us = record.right_us().or(fault.lasts.is_none().then_some(begin_us));
            begin_us.saturating_sub(FELT_BEFORE_US) < to_us
                && right_us.is_none_or(|right_us| from_us < right_us.saturating_add(FELT_AFTER_US))
        })
    }

    /// Whether the end of a process is part of a fault: its disk was filled, which not everybody survives, and it is
    /// to be killed or stopped and started again.
    pub fn expect_the_end_of(&self, name: &str) -> bool {
        let begun = |index: usize| self.records[index].begin_us.is_some();
        let about = || self.plan.iter().enumerate().filter(|(_, fault)| fault.is_about(name));
        let filled = about().any(|(index, fault)| fault.kind.disk_bytes().is_some() && begun(index));
        let restarts = |fault: &Fault| fault.kind.ends_processes() && fault.lasts.is_some();
        filled && about().any(|(index, fault)| restarts(fault) && !begun(index))
    }

    /// Ends all of them: what is frozen goes on; what is down stays down. Returns what happened meanwhile.
    pub fn end(&mut self) -> Vec<Event> {
        self.threads.end();
        self.news()
    }

    /// Starts again what is down though it was to come back, and the system in any case: it is to be asked what it
    /// holds. What was on its way up when all was over is waited for. Returns what happened.
    pub fn restore(&mut self, patience: Patience<'_>) -> Vec<Event> {
        let mut events = Vec::new();
        for handle in &self.started {
            let mut handle = held(handle);
            if !handle.is_ours() {
                continue;
            }
            let name = handle.name().to_owned();
            let comes_back =
                |fault: &Fault| fault.kind.ends_processes() && fault.lasts.is_some() && fault.is_about(&name);
            let mut of_it = self.plan.iter().zip(&self.records).filter(|(fault, _)| fault.is_about(&name));
            let is_half_up = of_it.any(|(_, record)| {
                restarts(record)
                    && record.healed_us.is_some()
                    && record.ready_us.is_none()
                    && record.error.is_none()
            });
            let is_down = handle.process_id().is_none();
            if !(is_half_up || is_down && (name == SYSTEM || self.plan.iter().any(comes_back))) {
                continue;
            }
            let (kind, text) = match handle.restart(patience) {
                Ok(()) => ("healed", format!("{name} is started again, after the load")),
                Err(error) => ("fault", format!("{name} could not be started again: {error}")),
            };
            let at_us = microseconds(self.epoch.elapsed()) as i64;
            events.push(Event { at_us, kind: kind.into(), text });
        }
        events
    }

    /// All that was started, broken or not.
    pub fn started(&self) -> &[Handle] {
        &self.started
    }

    /// What became of them.
    pub fn records(&self) -> &[FaultEvent] {
        &self.records
    }
}

/// All that a target names: itself, or every node of a store.
fn find(started: &[Handle], target: &str) -> Vec<Handle> {
    let is_one = |handle: &&Handle| {
        let handle = held(handle);
        let rest = handle.name().strip_prefix(target);
        rest.is_some_and(|rest| rest.is_empty() || handle.is_ours() && rest.starts_with('.'))
    };
    started.iter().filter(is_one).cloned().collect()
}

/// The servers that a fault asks for maintenance.
fn asked(injectors: &Injectors, fault: &Fault) -> Vec<Endpoint> {
    let has_kind = |endpoint: &&Endpoint| {
        endpoint.product.maintenance().iter().any(|kind| kind.word == fault.kind.word())
    };
    let meant = injectors.endpoints.iter().filter(|endpoint| is_of(&endpoint.name, &fault.target));
    meant.filter(has_kind).cloned().collect()
}

fn record(fault: &Fault) -> FaultEvent {
    FaultEvent {
        fault: fault.to_string(),
        kind: fault.kind.word().into(),
        target: fault.target.clone(),
        ..FaultEvent::default()
    }
}

/// Whether what healed it is only the begin of a start.
fn restarts(record: &FaultEvent) -> bool {
    record.kind == FaultKind::Kill.word() || record.kind == FaultKind::Stop.word()
}

/// The thread of one target.
struct Breaker {
    handles: Vec<Handle>,
    injectors: Injectors,
    /// What the faults' times count from.
    zero: Instant,
    stop: Arc<StopSignal>,
    sender: Sender<TimedNews>,
}

impl Breaker {
    fn carry_out(&self, faults: &[(usize, Fault)]) {
        for (index, fault) in faults {
            if !self.stop.wait_until(self.zero + fault.at) {
                return;
            }
            let tell = |at: Instant, news: News| {
                // nobody listens only where the run is over
                let _ = self.sender.send((*index, at, news));
            };
            let patience: Patience<'_> = &|| !self.stop.is_set();
            match fault.kind {
                FaultKind::Kill | FaultKind::Stop => self.down(fault, patience, &tell),
                FaultKind::Freeze => self.freeze(fault, &tell),
                FaultKind::Slow { .. } | FaultKind::Cut { .. } => self.impair(fault, &tell),
                FaultKind::Fill { .. } => self.fill(fault, &tell),
                FaultKind::Roll | FaultKind::Scale { .. } => self.change_instances(fault, patience, &tell),
                FaultKind::Rewrite | FaultKind::Snapshot => {
                    let endpoints = asked(&self.injectors, fault);
                    maintenance::carry_out(&endpoints, fault.kind.word(), &self.stop, &tell);
                }
            }
        }
    }

    /// Waits until a fault is to be undone; false if all is over before.
    fn lasts(&self, fault: &Fault) -> bool {
        fault.until().is_some_and(|until| self.stop.wait_until(self.zero + until))
    }

    fn down(&self, fault: &Fault, patience: Patience<'_>, tell: &dyn Fn(Instant, News)) {
        let at = Instant::now();
        tell(at, News::Began);
        for handle in &self.handles {
            match fault.kind {
                FaultKind::Kill => held(handle).kill(),
                _ => held(handle).stop(patience),
            };
        }
        if self.handles.iter().any(|handle| !held(handle).is_ours()) {
            return self.await_return(tell);
        }
        if !self.lasts(fault) {
            return;
        }
        let at = Instant::now();
        tell(at, News::Healed("is started again"));
        match self.handles.iter().try_for_each(|handle| held(handle).restart(patience)) {
            Ok(()) => tell(Instant::now(), News::Ready(at.elapsed())),
            Err(LabError::Interrupted(_)) => {}
            Err(error) => tell(Instant::now(), News::Failed(error.to_string())),
        }
    }

    fn change_instances(&self, fault: &Fault, patience: Patience<'_>, tell: &dyn Fn(Instant, News)) {
        let Some(tier) = self.injectors.tiers.iter().find(|tier| tier.name() == fault.target) else {
            let reason = format!("`{}` is one process and not a service of several instances", fault.target);
            return tell(Instant::now(), News::Failed(reason));
        };
        tell(Instant::now(), News::Began);
        let (done, changed) = match fault.kind {
            FaultKind::Scale { instances } => {
                ("has its new number of instances", tier.scale(instances, patience))
            }
            _ => ("has new instances", tier.roll(patience, &|_| (), &mut |_| ())),
        };
        match changed {
            Ok(()) => tell(Instant::now(), News::Healed(done)),
            Err(LabError::Interrupted(_)) => {}
            Err(error) => tell(Instant::now(), News::Failed(error.to_string())),
        }
    }

    /// Waits until whoever looks after what was only watched has started it again.
    fn await_return(&self, tell: &dyn Fn(Instant, News)) {
        while self.stop.wait_until(Instant::now() + BACK_EVERY) {
            if self.handles.iter().all(|handle| held(handle).process_id().is_some()) {
                return tell(Instant::now(), News::Back);
            }
        }
    }

    /// What there is of each target, by its name.
    fn of_ours<T>(&self, find: impl Fn(&str) -> Option<T>) -> Vec<T> {
        self.handles.iter().filter_map(|handle| find(held(handle).name())).collect()
    }

    fn impair(&self, fault: &Fault, tell: &dyn Fn(Instant, News)) {
        let of = |name: &str| {
            let own = self.injectors.links.iter().filter(|(owner, _)| owner == name);
            own.map(|(_, link)| link).collect::<Vec<_>>()
        };
        // what is only reached has a link and no process
        let links: Vec<&Arc<Link>> = match self.handles.is_empty() {
            true => of(&fault.target),
            false => self.of_ours(|name| Some(of(name))).into_iter().flatten().collect(),
        };
        if links.is_empty() {
            return tell(Instant::now(), News::Failed("nothing goes through a link".into()));
        }
        tell(Instant::now(), News::Began);
        let impair = |condition: &mut Condition| match fault.kind {
            FaultKind::Slow { latency, bandwidth } => {
                (condition.latency, condition.bandwidth) = (latency, bandwidth);
            }
            FaultKind::Cut { share } => {
                condition.refused = share;
                // with a share of new connections only, those that there are stay
                condition.cuts += u64::from(share >= 1.0);
            }
            _ => {}
        };
        links.iter().for_each(|link| link.set(impair));
        let _ = self.lasts(fault);
        let heal = |condition: &mut Condition| {
            *condition = Condition { cuts: condition.cuts, ..Condition::default() }
        };
        links.iter().for_each(|link| link.set(heal));
        tell(Instant::now(), News::Healed("has its whole link again"));
    }

    fn fill(&self, fault: &Fault, tell: &dyn Fn(Instant, News)) {
        let disks: Vec<&Disk> = self.of_ours(|name| self.injectors.disks.of(name));
        if disks.is_empty() {
            return tell(Instant::now(), News::Failed("its data has no disk of its own".into()));
        }
        let until = self.zero + fault.until().unwrap_or(fault.at);
        let goes_on = || !self.stop.is_set() && Instant::now() < until;
        let at = Instant::now();
        let fill = || -> io::Result<()> {
            let mut fillings = disks.iter().map(|disk| disk.fill()).collect::<io::Result<Vec<_>>>()?;
            fillings.iter_mut().try_for_each(|filling| filling.take_the_rest(&goes_on))?;
            tell(at, News::Began);
            while goes_on() {
                self.stop.wait_until(until.min(Instant::now() + FILL_EVERY));
                fillings.iter_mut().try_for_each(|filling| filling.take_the_rest(&goes_on))?;
            }
            Ok(())
        };
        let filled = fill();
        match filled {
            Ok(()) => tell(Instant::now(), News::Healed("has room on its disk again")),
            Err(error) => tell(Instant::now(), News::Failed(format!("the disk cannot be filled: {error}"))),
        }
    }

    fn freeze(&self, fault: &Fault, tell: &dyn Fn(Instant, News)) {
        let at = Instant::now();
        let frozen = self.handles.iter().try_for_each(|handle| held(handle).freeze());
        match &frozen {
            Ok(()) => tell(at, News::Began),
            Err(error) => tell(at, News::Failed(format!("it cannot be frozen: {error}"))),
        }
        let _ = frozen.is_ok() && self.lasts(fault);
        self.handles.iter().for_each(|handle| held(handle).thaw());
        if frozen.is_ok() {
            tell(Instant::now(), News::Healed("goes on"));
        }
    }
}

#[cfg(test)]
mod tests;
