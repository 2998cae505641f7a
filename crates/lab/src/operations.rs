//! What the system has told of its operations, made into a file of the run once it has told all.

use std::path::Path;
use std::time::SystemTime;

use tidemark_record::{RecordError, Told, ToldOperations, take_operations};
use tidemark_scenario::plan::System;

use crate::shipped::{OperationsElsewhere, ShippedStores};

/// Where a system will tell of its operations.
pub enum Operations {
    /// Nowhere.
    Nowhere,
    /// In the file that it is started with.
    File,
    /// Elsewhere, as a topic of Apache Kafka.
    Elsewhere(Box<dyn OperationsElsewhere>),
}

impl Operations {
    /// Looks where those of a system that is not started yet will be.
    pub fn of(system: &System, shipped: &dyn ShippedStores) -> Operations {
        if !system.tells_operations {
            return Operations::Nowhere;
        }
        shipped.operations(system).map_or(Operations::File, Operations::Elsewhere)
    }

    /// Gathers in the run directory what a stopped system has told. Returns what a reader of the run must know of it;
    /// what was over before the run's clock began is none of that where the scenario `prepares`.
    ///
    /// # Errors
    /// The run's operations cannot be written.
    pub fn gather(
        &self,
        run_dir: &Path,
        zero: SystemTime,
        prepares: bool,
    ) -> Result<Vec<String>, RecordError> {
        let (told, mut notes) = match self {
            Operations::Nowhere => return Ok(Vec::new()),
            Operations::File => (take_operations(run_dir, zero)?.unwrap_or_default(), Vec::new()),
            Operations::Elsewhere(place) => gather_from(&**place, run_dir, zero)?,
        };
        let is_expected = prepares && told.operations > 0;
        let told = Told { before: if is_expected { 0 } else { told.before }, ..told };
        notes.extend(told.notes());
        Ok(notes)
    }
}

/// What the system has told there, and in a file where that was in vain.
fn gather_from(
    place: &dyn OperationsElsewhere,
    run_dir: &Path,
    zero: SystemTime,
) -> Result<(Told, Vec<String>), RecordError> {
    let mut told = ToldOperations::create(run_dir, zero)?;
    told.file(run_dir)?;
    let mut written = Ok(());
    let read = place.lines(&mut |line| {
        written = told.line(line);
        written.is_ok()
    });
    written?;
    let told = Told { elsewhere: 0, ..told.finish()? };
    let unread = read
        .err()
        .map(|reason| format!("the system's own operations are not all in operations.parquet: {reason}"));
    let notes = unread.into_iter().chain(place.mixed_with_earlier());
    Ok((told, notes.collect()))
}
