//! The directory of an embedded store as what it holds, once nobody has it open.

use std::path::{Path, PathBuf};

use tidemark_store::messages::TreeReader;

use super::client::Unfinished;
use super::recipe::Recipe;
use super::search::{Bounds, Holdings, Part};
use crate::LabError;

/// Contents between two looks whether to go on.
const LOOK_CONTENTS: usize = 1_000;

/// Reads a store of messages where it lies. One that cannot be opened says so to whoever wants to read.
pub struct Directory {
    dir: PathBuf,
    store: Result<TreeReader, Unfinished>,
}

impl Directory {
    /// What a recipe names; none if the system is to be asked instead.
    pub fn of(recipe: &Recipe, run_dir: &Path) -> Option<Directory> {
        let kept = recipe.store.as_ref()?;
        let dir = run_dir.join(&kept.dir);
        let store = TreeReader::open(&dir, kept.durability);
        Some(Directory { store: store.map_err(|error| Unfinished::Failed(error.to_string())), dir })
    }

    /// Refuses to go on where the data was removed after the run.
    pub(super) fn must_be_there(&self) -> Result<(), LabError> {
        match self.dir.is_dir() {
            true => Ok(()),
            false => Err(LabError::Usage(format!(
                "{}: what the store held is not there any more, so that it can only be verified while the run goes on; \
                 run it with --keep-data, and it can be done again later",
                self.dir.display()
            ))),
        }
    }

    fn store(&self) -> Result<&TreeReader, Unfinished> {
        self.store.as_ref().map_err(Clone::clone)
    }
}

impl Holdings for Directory {
    fn parts(&self) -> usize {
        self.store.as_ref().map_or(1, TreeReader::parts)
    }

    fn reader(&self) -> Result<Box<dyn Part + '_>, Unfinished> {
        self.store().map(|store| Box::new(store) as Box<dyn Part>)
    }

    fn count(&self, _: &Bounds) -> Result<Option<u64>, Unfinished> {
        let counted = self.store()?.count();
        counted.map(Some).map_err(|error| Unfinished::Failed(error.to_string()))
    }
}

impl Part for &TreeReader {
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
