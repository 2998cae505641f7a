//! The directory of an embedded store as what it holds, once nobody has it open.

use std::path::PathBuf;

use tidemark_scenario::plan::Durability;

use super::search::{Bounds, DirectStore, PartReader, StoredContents, Unfinished, part_reader};
use crate::LabError;
use crate::shipped::{MessageStore, ShippedStores};

/// Reads a store of messages where it lies. One that cannot be opened says so to whoever wants to read.
pub struct Directory {
    dir: PathBuf,
    store: Result<Box<dyn MessageStore>, Unfinished>,
}

impl Directory {
    pub(super) fn open(dir: PathBuf, durability: Durability, shipped: &dyn ShippedStores) -> Directory {
        Directory { store: shipped.directory(&dir, durability).map_err(Unfinished::Failed), dir }
    }

    fn store(&self) -> Result<&dyn MessageStore, Unfinished> {
        self.store.as_ref().map(|store| &**store).map_err(Clone::clone)
    }
}

impl DirectStore for Directory {
    fn must_be_there(&self) -> Result<(), LabError> {
        match self.dir.is_dir() {
            true => Ok(()),
            false => Err(LabError::Usage(format!(
                "{}: what the store held is not there any more, so that it can only be verified while the run goes on; \
                 run it with --keep-data, and it can be done again later",
                self.dir.display()
            ))),
        }
    }
}

impl StoredContents for Directory {
    fn parts(&self) -> usize {
        self.store().map_or(1, MessageStore::parts)
    }

    fn reader(&self) -> Result<Box<dyn PartReader + '_>, Unfinished> {
        self.store().map(part_reader)
    }

    fn count(&self, _: &Bounds) -> Result<Option<u64>, Unfinished> {
        self.store()?.count().map_err(Unfinished::Failed)
    }
}
