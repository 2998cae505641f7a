//! What the program knows of the systems that it ships: how their own stores are read without them.
//!
//! The lab itself knows none of them. Whoever builds a program with systems hands this over with the [`RunOptions`].
//!
//! [`RunOptions`]: crate::RunOptions

use std::fmt::Debug;
use std::path::Path;

use serde::{Deserialize, Serialize};
use tidemark_scenario::plan::{Durability, System};

/// Reads what shipped systems store and tell.
pub trait ShippedStores: Debug + Sync {
    /// Whether this program can read a store directly, by its word in `verify: {store: …}`.
    ///
    /// # Errors
    /// That its client was not built in, and how to have it.
    fn can_read(&self, store: &str) -> Result<(), String>;

    /// Opens the directory of a system's embedded store, which no process has open. `durability` is what its writes were worth.
    ///
    /// # Errors
    /// If no store is there, another process has it open, or it cannot be read.
    fn directory(&self, dir: &Path, durability: Durability) -> Result<Box<dyn MessageStore>, String>;

    /// Connects to a table of messages in Cassandra.
    ///
    /// # Errors
    /// If the nodes cannot be reached or have no such table, or the client was not built in.
    fn table(&self, table: &MessageTable) -> Result<Box<dyn MessageStore>, String>;

    /// Where a system that is not started yet will tell of its operations, if not in a file.
    fn operations(&self, system: &System) -> Option<Box<dyn OperationsElsewhere>>;
}

/// Messages that lie in a store, in parts that can be read at the same time.
pub trait MessageStore: Sync {
    /// How many parts there are; every message is in exactly one.
    fn parts(&self) -> usize;

    /// The name of the cluster, where it is one.
    ///
    /// # Errors
    /// If it does not answer.
    fn cluster(&self) -> Result<Option<String>, String> {
        Ok(None)
    }

    /// How many messages the store says that it holds, where it knows.
    ///
    /// # Errors
    /// If it cannot be read.
    fn count(&self) -> Result<Option<u64>, String> {
        Ok(None)
    }

    /// Shows the payload of every message of a part, each once, for as long as `goes_on`.
    ///
    /// # Errors
    /// If not all of them could be read.
    fn payloads(
        &self,
        part: usize,
        goes_on: &dyn Fn() -> bool,
        visit: &mut dyn FnMut(&[u8]),
    ) -> Result<(), String>;
}

/// Operations that a system tells of elsewhere than in a file.
pub trait OperationsElsewhere: Send {
    /// Shows every line that was told since this was made, for as long as `visit` returns true.
    ///
    /// # Errors
    /// If not all of them could be read.
    fn lines(&self, visit: &mut dyn FnMut(&[u8]) -> bool) -> Result<(), String>;

    /// Why lines of before may be among them, if that is so.
    fn mixed_with_earlier(&self) -> Option<String>;
}

/// A table of messages in Cassandra.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct MessageTable {
    /// Nodes, `HOST:PORT` each.
    pub contact: Vec<String>,
    /// Where it is.
    pub keyspace: String,
    /// Of reads, by Cassandra's word.
    pub consistency: String,
    /// The name of the cluster that the run started; it is stopped by its end.
    pub cluster: Option<String>,
}

/// A program without systems.
#[derive(Debug)]
pub struct NoSystems;

const NO_SYSTEMS: &str =
    "this program was built without the shipped systems; build it with: cargo build --release -p tidemark";

impl ShippedStores for NoSystems {
    fn can_read(&self, store: &str) -> Result<(), String> {
        match store {
            "embedded" | "cassandra" => Err(NO_SYSTEMS.into()),
            _ => Ok(()),
        }
    }

    fn directory(&self, _: &Path, _: Durability) -> Result<Box<dyn MessageStore>, String> {
        Err(NO_SYSTEMS.into())
    }

    fn table(&self, _: &MessageTable) -> Result<Box<dyn MessageStore>, String> {
        Err(NO_SYSTEMS.into())
    }

    fn operations(&self, _: &System) -> Option<Box<dyn OperationsElsewhere>> {
        None
    }
}
