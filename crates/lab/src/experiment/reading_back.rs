//! What the system holds after the load, held against the ledger.

use std::path::Path;

use tidemark_record::summary::Ledger;
use tidemark_store::Durability;

use super::watching::Driven;
use super::{Experiment, written};
use crate::error::LabError;
use crate::interrupt::Wish;
use crate::progress::{Progress, Watcher};
use crate::system::Running;
use crate::verify::{self, Holdings, Pages, Recipe, Unfinished};

/// Why a run whose load was stopped is not verified.
const STOPPED_BEFORE: &str = "stopped by the user before its load was over";

impl Experiment {
    /// Where a store is to be read straight that is behind its system: waits for it. Returns why that was in vain.
    pub(super) fn catch_up(
        &self,
        recipe: Option<&mut Recipe>,
        system: &Running,
        driven: &Driven,
        progress: &Watcher<'_>,
    ) -> Result<Option<Unfinished>, LabError> {
        let is_there = driven.system_ended.is_none() && self.wish() == Wish::GoOn;
        let Some(recipe) = recipe.filter(|_| is_there) else { return Ok(None) };
        let mut tell =
            |step: verify::Step| progress.tell(Progress::Verifying { read: step.read, of: step.of });
        let goes_on = || self.wish() == Wish::GoOn;
        verify::catch_up(&self.run_dir, recipe, &system.target, &goes_on, &mut tell)
    }

    /// Reads everything back and holds it against the ledger; none where nothing was entered and nobody asked.
    pub(super) fn verify(
        &self,
        recipe: Option<&Recipe>,
        system: &Running,
        driven: &Driven,
        progress: &Watcher<'_>,
    ) -> Result<Option<Ledger>, LabError> {
        let entered = |why: &str| verify::entered(&self.run_dir, why).map_err(written);
        let Some(recipe) = recipe else { return entered(verify::NO_VERIFY) };
        if driven.system_ended.is_some() && recipe.asks_the_system() {
            return entered("the system ended by itself, so that nobody could be asked");
        }
        if self.wish() != Wish::GoOn {
            return entered(STOPPED_BEFORE);
        }
        let mut tell =
            |step: verify::Step| progress.tell(Progress::Verifying { read: step.read, of: step.of });
        let goes_on = || self.wish() == Wish::GoOn;
        let mut search = |holdings: &dyn Holdings| {
            verify::verify(&self.run_dir, recipe, holdings, &goes_on, &mut tell).map(Some).map_err(written)
        };
        match verify::straight(recipe, &self.run_dir) {
            Some(store) => search(&*store),
            None => search(&Pages::new(recipe, &system.target)?),
        }
    }

    /// Where a system keeps its data, within the run directory if need be, and what an acknowledged write in it is worth.
    pub(super) fn store_of<'s>(&self, system: &'s Running) -> Option<(&'s Path, Durability)> {
        let dir = system.data_dir()?;
        // a whole path where it lies on a file system of its own
        let dir = dir.strip_prefix(&self.run_dir).unwrap_or(dir);
        let durability = system.durability.as_deref()?.parse().ok()?;
        Some((dir, durability))
    }
}
