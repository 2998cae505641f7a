//! The load while it goes on: its intervals are taken, everything is looked at, and what ends it early is minded.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use tidemark_drive::{DriveEnd, PhaseTimes};
use tidemark_record::summary::AgentFigures;
use tidemark_record::{Sample, StoreLook, ThreadInterval, Totals};
use tidemark_scenario::Plan;

use super::preparing::Environment;
use super::{Experiment, Record, written};
use crate::drivers::{Drivers, Ended, Handed, TakenOver};
use crate::error::LabError;
use crate::faults::Faults;
use crate::figures::{Figures, Seen as SeenOfStores};
use crate::interrupt::StopRequest;
use crate::monitor::SYSTEM;
use crate::neighbours::Neighbours;
use crate::started::try_held;
use crate::timetable::{Timetable, microseconds};
use crate::watch::Seen as SeenOfWatched;
use tidemark_verdict as verdict;
use tidemark_verdict::silence::Silence;
use tidemark_verdict::unreachable::{Unreachable, Watch};

/// How often a stop request, the phase and the system are looked at.
pub const LOOK_EVERY: Duration = Duration::from_millis(50);

/// A load that has begun. Dropped, the load ends first, then the faults, then what both were aimed at.
pub struct Started {
    pub drivers: Drivers,
    pub faults: Faults,
    /// What the stores say of themselves.
    pub figures: Figures,
    /// The run's zero.
    pub epoch: Instant,
    pub environment: Environment,
}

/// A load that is over.
pub struct Driven {
    pub load: Load,
    pub faults: Faults,
    pub figures: Figures,
    /// The run's zero.
    pub epoch: Instant,
    pub environment: Environment,
}

/// What a load left behind.
pub struct Load {
    pub end: DriveEnd,
    /// Why a driver broke off in the middle, if one did.
    pub broke: Option<String>,
    /// Where agents of a fleet were lost, and others took their share over.
    pub taken_over: Option<TakenOver>,
    /// That another coordinator went on with the run, if one did.
    pub resumed: Option<String>,
    /// The agents of a fleet, where they drove.
    pub agents: Vec<AgentFigures>,
    /// How the system ended, if it did so by itself.
    pub system_ended: Option<String>,
    /// The objective that cut it short.
    pub unreachable: Option<Unreachable>,
    /// Whether it ended before its time because enough was known.
    pub enough: bool,
    /// When requests succeeded and failed.
    pub silence: Silence,
    /// What there was while no fault was felt, where there are faults.
    pub undisturbed: Option<Totals>,
    /// Who else used the machine.
    pub neighbours: Neighbours,
}

tidemark_record::named! {
    /// Why a load ends before its time, by the kind of event that tells it.
    #[derive(Clone, Copy)]
    enum Reason {
        Interrupted = "interrupted",
        Unreachable = "unreachable",
        Enough = "enough",
        Exited = "exited",
    }
}

/// A load that is watched.
struct Watching<'a, 'w> {
    plan: &'a Plan,
    /// The run's zero.
    epoch: Instant,
    stop_request: &'a dyn Fn() -> StopRequest,
    /// Set once enough is known.
    enough: Option<&'a AtomicBool>,
    record: &'a mut Record<'w>,
    environment: &'a mut Environment,
    faults: &'a mut Faults,
    figures: &'a mut Figures,
    /// Samples of what is watched that have come since the last look.
    samples: Vec<Sample>,
}

/// What was seen of it so far.
struct Seen<'p> {
    timetable: Timetable,
    watch: Watch<'p>,
    silence: Silence,
    undisturbed: Option<Totals>,
    neighbours: Neighbours,
    /// When the load was told to end before its time, microseconds since the run began.
    stopped_us: Option<u64>,
    unreachable: Option<Unreachable>,
    enough: bool,
    system_ended: Option<String>,
}

/// Nothing yet, of a plan.
fn totals(plan: &Plan) -> Totals {
    let mut totals = Totals::new(&plan.labels);
    totals.set_groups(&plan.groups);
    totals.set_own_metrics(&verdict::custom_metrics(plan));
    totals
}

impl<'p> Seen<'p> {
    fn new(plan: &'p Plan, phases: &[PhaseTimes]) -> Self {
        let timetable = Timetable::new(plan, phases);
        let breaks = plan.faults.iter().any(|fault| !fault.kind.is_maintenance());
        Seen {
            watch: Watch::new(plan, timetable.window_s()),
            timetable,
            silence: Silence::new(!breaks && verdict::judges_errors(plan)).beside_faults(breaks),
            undisturbed: breaks.then(|| totals(plan)),
            neighbours: Neighbours::default(),
            stopped_us: None,
            unreachable: None,
            enough: false,
            system_ended: None,
        }
    }

    /// Whether a moment lies within the measured window, which ends where sending does.
    fn is_measured(&self, at_us: u64) -> bool {
        self.timetable.is_measured(at_us) && self.stopped_us.is_none_or(|stopped_us| at_us <= stopped_us)
    }

    fn add(&mut self, interval: &ThreadInterval, faults: &Faults) {
        self.silence.add(interval);
        let undisturbed = self.undisturbed.as_mut();
        if let Some(undisturbed) =
            undisturbed.filter(|_| !faults.are_felt(interval.start_us, interval.end_us))
        {
            undisturbed.add_interval(interval);
        }
    }
}

impl Experiment {
    /// Sees the load to its end.
    ///
    /// # Errors
    /// [`LabError::Interrupted`] where all is to stop at once; else where the run cannot be written or measured.
    pub(super) fn drive(&self, started: Started, record: &mut Record<'_>) -> Result<Driven, LabError> {
        // dropped from the last to the first
        let Started { mut environment, epoch, mut figures, mut faults, drivers } = started;
        let watching = Watching {
            plan: &self.plan,
            epoch,
            stop_request: &|| self.stop_request(),
            enough: self.options.enough.as_deref(),
            record,
            environment: &mut environment,
            faults: &mut faults,
            figures: &mut figures,
            samples: Vec::new(),
        };
        let load = watching.until_over(drivers)?;
        if let Some(script) = &mut record.script {
            script.load_over(&|| self.stop_request())?;
        }
        record.writer.add_counters(&load.end.counters);
        for part in &load.end.untaken {
            record.writer.add_to_ledger(part, load.end.ended_us).map_err(written)?;
        }
        faults.end().iter().try_for_each(|event| record.writer.add_event(event)).map_err(written)?;
        Ok(Driven { load, faults, figures, epoch, environment })
    }
}

impl Watching<'_, '_> {
    /// Takes intervals and looks at everything until the driving threads are done.
    fn until_over(mut self, mut drivers: Drivers) -> Result<Load, LabError> {
        let mut seen = Seen::new(self.plan, drivers.phases());
        seen.neighbours = Neighbours::beside(self.environment.watches.processes());
        // what is seen from now on counts
        self.environment.monitor.look(microseconds(self.epoch.elapsed()));
        loop {
            match drivers.next(LOOK_EVERY) {
                Handed::Interval(mut interval) => {
                    let details = interval.examples.iter_mut().map(|example| &mut example.detail);
                    for told in details.chain(interval.own.iter_mut().filter_map(|own| own.example.as_mut()))
                    {
                        *told = self.plan.secrets.masked(told);
                    }
                    self.record.writer.add_interval(&interval).map_err(written)?;
                    seen.add(&interval, self.faults);
                    drivers.recycle(interval);
                }
                Handed::Event(event) => self.record.writer.add_event(&event).map_err(written)?,
                Handed::Nothing => {}
                Handed::Over => break,
            }
            let now_us = microseconds(self.epoch.elapsed());
            self.tell_faults()?;
            let told = self.figures.news();
            self.tell_figures(told, &seen)?;
            let told = self.environment.watches.news();
            self.tell_watched(told, &seen)?;
            self.tell_phase(&mut seen, now_us)?;
            let in_window = seen.is_measured(now_us);
            seen.neighbours.look(now_us, in_window);
            let looked = seen.timetable.look_is_due(now_us);
            if looked {
                self.look_around(now_us)?;
                self.record.script.as_mut().map_or(Ok(()), |script| script.look())?;
            }
            self.mind_the_end(&mut drivers, &mut seen, now_us, looked)?;
        }
        let now_us = microseconds(self.epoch.elapsed());
        let told = self.environment.watches.end();
        self.tell_watched(told, &seen)?;
        self.look(now_us)?;
        seen.neighbours.look(now_us, false);
        let told = self.figures.end();
        self.tell_figures(told, &seen)?;
        let Ended { end, broke, taken_over, resumed, agents, notes } = drivers.end()?;
        self.record.account.notes.extend(notes);
        let Seen { system_ended, unreachable, enough, mut silence, undisturbed, neighbours, .. } = seen;
        if let Some(at_us) = end.stopped_us {
            silence.stopped(at_us);
        }
        Ok(Load {
            end,
            broke,
            taken_over,
            resumed,
            agents,
            system_ended,
            unreachable,
            enough,
            silence,
            undisturbed,
            neighbours,
        })
    }

    fn tell_faults(&mut self) -> Result<(), LabError> {
        for event in self.faults.news() {
            self.record.writer.add_event(&event).map_err(written)?;
        }
        Ok(())
    }

    fn tell_figures(&mut self, told: SeenOfStores, seen: &Seen<'_>) -> Result<(), LabError> {
        let SeenOfStores { looks, events, begun_us } = told;
        begun_us.iter().for_each(|at_us| self.record.writer.mark(*at_us));
        self.add_looks(looks, seen)?;
        events.iter().try_for_each(|event| self.record.writer.add_event(event)).map_err(written)
    }

    fn tell_watched(&mut self, told: SeenOfWatched, seen: &Seen<'_>) -> Result<(), LabError> {
        let SeenOfWatched { samples, looks, events } = told;
        self.samples.extend(samples);
        self.add_looks(looks, seen)?;
        events.iter().try_for_each(|event| self.record.writer.add_event(event)).map_err(written)
    }

    fn add_looks(&mut self, mut looks: Vec<StoreLook>, seen: &Seen<'_>) -> Result<(), LabError> {
        looks.iter_mut().for_each(|look| look.measured = seen.is_measured(look.at_us));
        self.record.writer.add_store_looks(&looks).map_err(written)
    }

    fn tell_phase(&mut self, seen: &mut Seen<'_>, now_us: u64) -> Result<(), LabError> {
        let Some(phase) = seen.timetable.entered(now_us).filter(|_| seen.stopped_us.is_none()) else {
            return Ok(());
        };
        let text = format!("{}: {}", phase.name, phase.level);
        let at_us = phase.start_us as i64;
        self.record.event(at_us, "phase", text)
    }

    /// Once a second: every process.
    fn look_around(&mut self, now_us: u64) -> Result<(), LabError> {
        for handle in self.faults.started() {
            // one that somebody is at work on is looked at next time
            if let Some(handle) = try_held(handle).filter(|handle| handle.is_ours()) {
                self.environment.monitor.follow(handle.name(), handle.process_id());
            }
        }
        self.look(now_us)
    }

    fn look(&mut self, now_us: u64) -> Result<(), LabError> {
        let mut samples = self.environment.monitor.look(now_us);
        let environment = &self.environment;
        let driven = environment.system.tier().map(|tier| (SYSTEM, tier));
        let others = environment.services.tiers().iter().map(|tier| (tier.name(), tier));
        let sums = others.chain(driven).filter_map(|(name, tier)| tier.sum(name, &samples));
        // a whole stands in front of its parts
        let sums: Vec<Sample> = sums.collect();
        samples.splice(0..0, sums);
        samples.append(&mut self.samples);
        self.record.writer.add_samples(&samples).map_err(written)
    }

    /// Ends the load where the user, an objective or the end of the system says so.
    fn mind_the_end(
        &mut self,
        drivers: &mut Drivers,
        seen: &mut Seen<'_>,
        now_us: u64,
        looked: bool,
    ) -> Result<(), LabError> {
        let found = if looked && seen.stopped_us.is_none() {
            seen.watch.unreachable(self.record.writer.totals())
        } else {
            None
        };
        match (self.stop_request)() {
            StopRequest::Abort => {
                drivers.abort();
                return Err(LabError::Interrupted(None));
            }
            StopRequest::Stop if seen.stopped_us.is_none() => {
                seen.stopped_us = Some(now_us);
                self.stop(drivers, now_us, Reason::Interrupted, "stopped by the user".into())?;
            }
            _ => {}
        }
        if let Some(found) = found.filter(|_| seen.stopped_us.is_none()) {
            seen.stopped_us = Some(now_us);
            self.stop(drivers, now_us, Reason::Unreachable, found.reason.clone())?;
            seen.unreachable = Some(found);
        }
        let enough = self.enough.is_some_and(|enough| enough.load(Ordering::Relaxed));
        if enough && seen.stopped_us.is_none() {
            (seen.stopped_us, seen.enough) = (Some(now_us), true);
            self.stop(drivers, now_us, Reason::Enough, "enough is known".into())?;
        }
        if seen.system_ended.is_none()
            && let Some((ending, reason)) = self.gone(now_us)
        {
            seen.stopped_us = seen.stopped_us.or(Some(now_us));
            self.stop(drivers, now_us, Reason::Exited, ending)?;
            seen.system_ended = Some(reason);
        }
        Ok(())
    }

    fn stop(
        &mut self,
        drivers: &mut Drivers,
        now_us: u64,
        reason: Reason,
        text: String,
    ) -> Result<(), LabError> {
        drivers.stop();
        self.record.event(now_us as i64, reason.name(), text)
    }

    /// What ended though nobody stopped it: how it ended, and the same as a reason for the verdict.
    fn gone(&mut self, now_us: u64) -> Option<(String, String)> {
        let at_s = now_us as f64 / 1e6;
        if let Some(gone) = self.faults.gone() {
            return Some((gone.lines().next().unwrap_or_default().to_owned(), gone));
        }
        if let Some((name, ending)) =
            self.environment.stores.ended(&|name| self.faults.expect_the_end_of(name))
        {
            let text = format!("{name}: {ending}");
            let tail = self.plan.secrets.masked_traffic(&self.environment.stores.log_tail(&name));
            let reason = format!("the store {name} ended by itself: {ending} after {at_s:.1}s; {tail}");
            return Some((text, reason));
        }
        for tier in self.environment.services.tiers() {
            let Some((name, ending)) = tier.ended(&|name| self.faults.expect_the_end_of(name)) else {
                continue;
            };
            let tail = self.plan.secrets.masked_traffic(&tier.log_tail(&name));
            let reason = format!("the service {name} ended by itself: {ending} after {at_s:.1}s; {tail}");
            return Some((format!("{name}: {ending}"), reason));
        }
        let ending = self.environment.system.ended(&|name| self.faults.expect_the_end_of(name))?;
        let tail = self.plan.secrets.masked_traffic(&self.environment.system.log_tail());
        let reason = format!("the system ended by itself: {ending} after {at_s:.1}s; {tail}");
        Some((ending, reason))
    }
}
