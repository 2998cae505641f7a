//! A store that is read past its system: which there are, and whether this program can read them.

use std::path::Path;

use super::cassandra::{Messages, NOT_BUILT_IN};
use super::directory::Directory;
use super::recipe::{Recipe, Store};
use super::search::Holdings;
use crate::LabError;

/// A store, opened to be read. One that cannot be opened says so to whoever wants to read.
pub trait Straight: Holdings {
    /// Refuses to go on where nothing is left to be read after the run.
    ///
    /// # Errors
    /// That it is gone, and what would have kept it.
    fn must_be_there(&self) -> Result<(), LabError>;
}

/// The store that a recipe names; none if the system is to be asked instead.
pub fn straight(recipe: &Recipe, run_dir: &Path) -> Option<Box<dyn Straight>> {
    Some(match recipe.store.as_ref()? {
        Store::Directory { dir, durability } => Box::new(Directory::open(run_dir.join(dir), *durability)),
        Store::Cassandra(table) => Box::new(Messages::open(table)),
    })
}

/// Whether this program can read a store straight.
///
/// # Errors
/// That its client was not built in, and how to have it.
pub fn can_read(store: &str) -> Result<(), String> {
    match store {
        "cassandra" if !cfg!(feature = "cassandra") => Err(NOT_BUILT_IN.into()),
        _ => Ok(()),
    }
}
