//! What the system holds after the load, held against the ledger.

use std::path::Path;

use tidemark_record::Maintenance;
use tidemark_record::fault::FaultEvent;
use tidemark_record::summary::Ledger;
use tidemark_scenario::plan::Durability;

use super::preparing::Environment;
use super::watching::{Driven, Load};
use super::{Experiment, Record, written};
use crate::error::LabError;
use crate::interrupt::StopRequest;
use crate::progress::{Progress, Watcher};
use crate::system::Running;
use crate::timetable::microseconds;
use crate::verify::{self, Pages, Recipe, StoredContents, Unfinished};

/// Why a run whose load was stopped is not verified.
const STOPPED_BEFORE: &str = "stopped by the user before its load was over";

/// What the system was found to hold, with everything stopped.
pub struct Verified {
    pub load: Load,
    pub faults: Vec<FaultEvent>,
    pub maintenance: Vec<Maintenance>,
    /// None where nothing was entered and nobody asked.
    pub ledger: Option<Ledger>,
}

impl Experiment {
    /// Reads back what the system holds, and stops everything.
    pub(super) fn verify(
        &self,
        driven: Driven,
        record: &mut Record<'_>,
        progress: &Watcher<'_>,
    ) -> Result<Verified, LabError> {
        // dropped from the last to the first
        let Driven { mut environment, epoch, mut faults, figures, load } = driven;
        let Environment {
            recipe, system, others, operations, services, stores, watches, synced_before, ..
        } = &mut environment;
        let now_us = || microseconds(epoch.elapsed()) as i64;
        record.account.notes.extend(faults.still_down());
        record.account.notes.extend(figures.notes());
        record.account.notes.extend(watches.notes());
        for tier in services.tiers().iter().chain(system.tier()) {
            record.account.notes.extend(tier.taken_out(&self.plan.faults));
        }
        let maintenance = figures.maintenance(faults.records());
        let needs_nodes = recipe.as_ref().is_some_and(|recipe| !recipe.is_of_a_directory());
        if needs_nodes && self.stop_request() == StopRequest::None {
            let restored = faults.restore(&|| self.stop_request() == StopRequest::None);
            for event in &restored {
                record.account.notes.extend((event.kind == "fault").then(|| event.text.clone()));
                record.writer.add_event(event).map_err(written)?;
            }
        }
        let stop = |system: &mut Running, record: &mut Record<'_>| {
            let at_us = now_us();
            let Some(ending) = system.stop() else { return Ok(()) };
            record.account.stopped(&ending);
            record.event(at_us, "stopped", ending)
        };
        let missing = self.catch_up(recipe.as_mut(), self.asked(system, others), &load, progress)?;
        if recipe.as_ref().is_some_and(Recipe::is_of_a_directory) {
            // nobody reads a directory while another has it open
            stop(system, record)?;
        }
        let ledger = match missing {
            Some(reason) => verify::entered(&self.run_dir, &reason.to_string()).map_err(written)?,
            None => self.read_back(recipe.as_ref(), self.asked(system, others), &load, progress)?,
        };
        let broke_off = load.broke.is_some() || load.taken_over.is_some();
        let ledger = ledger.map(|ledger| tidemark_record::summary::Ledger { broke_off, ..ledger });
        if let Some(ledger) = &ledger {
            record.event(now_us(), "verified", verify::in_words(ledger))?;
        }

        let at_us = now_us();
        stop(system, record)?;
        record.account.notes.extend(system.run_after());
        record.account.notes.extend(services.stop(&|| self.stop_request() != StopRequest::Abort));
        if let Some(zero) = record.writer.zero() {
            // the stores may have what it told
            let prepares = self.plan.prepare.is_some();
            let notes = operations.gather(&self.run_dir, zero, prepares).map_err(written)?;
            record.account.notes.extend(notes);
        }
        // whoever stopped the run does not want to wait for this
        let after = if self.stop_request() == StopRequest::None {
            self.probe(system, stores, progress)?
        } else {
            None
        };
        record.account.synced(synced_before.take(), after);
        for (name, ending) in stores.stop(&|| self.stop_request() != StopRequest::Abort) {
            record.account.store_stopped(&name, &ending);
            record.event(at_us, "stopped", format!("{name}: {ending}"))?;
        }
        Ok(Verified { load, faults: faults.records().to_vec(), maintenance, ledger })
    }

    /// What is asked or read: the system, or one of the targets beside it.
    pub(super) fn asked<'s>(&self, system: &'s Running, others: &'s [Running]) -> &'s Running {
        let at = self.plan.verify.as_ref().and_then(|verify| usize::from(verify.at).checked_sub(1));
        at.and_then(|at| others.get(at)).unwrap_or(system)
    }

    /// Where a store is to be read directly that is behind its system: waits for it. Returns why that was in vain.
    fn catch_up(
        &self,
        recipe: Option<&mut Recipe>,
        system: &Running,
        load: &Load,
        progress: &Watcher<'_>,
    ) -> Result<Option<Unfinished>, LabError> {
        let is_there = load.system_ended.is_none() && self.stop_request() == StopRequest::None;
        let Some(recipe) = recipe.filter(|_| is_there) else { return Ok(None) };
        let mut tell =
            |step: verify::Step| progress.tell(Progress::Verifying { read: step.read, of: step.of });
        let goes_on = || self.stop_request() == StopRequest::None;
        verify::catch_up(&self.run_dir, recipe, &system.target, &goes_on, &mut tell)
    }

    /// Reads everything back and holds it against the ledger; none where nothing was entered and nobody asked.
    fn read_back(
        &self,
        recipe: Option<&Recipe>,
        system: &Running,
        load: &Load,
        progress: &Watcher<'_>,
    ) -> Result<Option<Ledger>, LabError> {
        let entered = |why: &str| verify::entered(&self.run_dir, why).map_err(written);
        let Some(recipe) = recipe else { return entered(verify::NO_VERIFY) };
        let is_of_another = self.plan.verify.as_ref().is_some_and(|verify| verify.at > 0);
        if load.system_ended.is_some() && recipe.asks_the_system() && !is_of_another {
            return entered("the system ended by itself, so that nobody could be asked");
        }
        if self.stop_request() != StopRequest::None {
            return entered(STOPPED_BEFORE);
        }
        let mut tell =
            |step: verify::Step| progress.tell(Progress::Verifying { read: step.read, of: step.of });
        let goes_on = || self.stop_request() == StopRequest::None;
        let mut search = |contents: &dyn StoredContents| {
            verify::verify(&self.run_dir, recipe, contents, &goes_on, &mut tell).map(Some).map_err(written)
        };
        match verify::direct_store(recipe, &self.run_dir, &system.target, self.options.shipped) {
            Some(store) => search(&*store),
            None => search(&Pages::new(recipe, &system.target)?),
        }
    }

    /// Where a system keeps its data, within the run directory if need be, and what an acknowledged write in it is worth.
    pub(super) fn store_of<'s>(&self, system: &'s Running) -> Option<(&'s Path, Durability)> {
        let dir = system.data_dir()?;
        // a whole path where it lies on a file system of its own
        let dir = dir.strip_prefix(&self.run_dir).unwrap_or(dir);
        let durability = Durability::from_name(system.durability.as_deref()?)?;
        Some((dir, durability))
    }
}
