//! The directory of an embedded store as what it holds, once nobody has it open.

use std::path::PathBuf;

use tidemark_store::Durability;
use tidemark_store::messages::TreeReader;

use super::search::{Bounds, DirectStore, PartReader, StoredContents, Unfinished};
use crate::LabError;

/// Contents between two looks whether to go on.
const LOOK_CONTENTS: usize = 1_000;

/// Reads a store of messages where it lies. One that cannot be opened says so to whoever wants to read.
pub struct Directory {
    dir: PathBuf,
    store: Result<TreeReader, Unfinished>,
}

impl Directory {
    pub(super) fn open(dir: PathBuf, durability: Durability) -> Directory {
        let store = TreeReader::open(&dir, durability);
        Directory { store: store.map_err(|error| Unfinished::Failed(error.to_string())), dir }
    }

    fn store(&self) -> Result<&TreeReader, Unfinished> {
        self.store.as_ref().map_err(Clone::clone)
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
        self.store.as_ref().map_or(1, TreeReader::parts)
    }

    fn reader(&self) -> Result<Box<dyn PartReader + '_>, Unfinished> {
        self.store().map(|store| Box::new(store) as Box<dyn PartReader>)
    }

    fn count(&self, _: &Bounds) -> Result<Option<u64>, Unfinished> {
        let counted = self.store()?.count();
        counted.map(Some).map_err(|error| Unfinished::Failed(error.to_string()))
    }
}

impl PartReader for &TreeReader {
    fn read(&mut self, part: usize, bounds: &Bounds, visit: &mut dyn FnMut(&[u8])) -> Result<(), Unfinished> {
        for (index, payload) in self.payloads(part).enumerate() {
            if index % LOOK_CONTENTS == 0 {
                bounds.check()?;
            }
            visit(&payload.map_err(|error| Unfinished::Failed(error.to_string()))?);
        }
        Ok(())
    }
}
