//! A table of messages in Cassandra as what it holds, read through the store's own client.

use crate::LabError;
use crate::shipped::{MessageStore, MessageTable, ShippedStores};
use crate::verify::search::{DirectStore, PartReader, StoredContents, Unfinished, part_reader};

/// Reads the messages where they lie. A table that cannot be read says so to whoever wants to read.
pub struct Messages {
    store: Result<Box<dyn MessageStore>, Unfinished>,
    contact: String,
    /// Whether the run started the nodes, which are stopped by its end.
    started: bool,
}

impl Messages {
    pub fn open(table: &MessageTable, shipped: &dyn ShippedStores) -> Messages {
        let contact = table.contact.join(", ");
        let store = shipped.table(table).and_then(|store| {
            // where a cluster of another run is by now, everything would seem lost
            match (&table.cluster, store.cluster()?) {
                (Some(wanted), Some(found)) if found != *wanted => Err(format!(
                    "the nodes at {contact} are of another cluster than this run had: {found}, not {wanted}"
                )),
                _ => Ok(store),
            }
        });
        Messages { store: store.map_err(Unfinished::Failed), contact, started: table.cluster.is_some() }
    }
}

impl DirectStore for Messages {
    fn must_be_there(&self) -> Result<(), LabError> {
        match &self.store {
            Err(error) if self.started => Err(LabError::Usage(format!(
                "the run started its Cassandra at {} and stopped it with its end, so that it can only be verified while \
                 the run goes on ({error}); a Cassandra that runs by itself can be read later: name it with the setting \
                 `contact` of the system",
                self.contact
            ))),
            Err(error) => Err(LabError::Usage(error.to_string())),
            Ok(_) => Ok(()),
        }
    }
}

impl StoredContents for Messages {
    fn parts(&self) -> usize {
        self.store.as_ref().map_or(1, |store| store.parts())
    }

    fn reader(&self) -> Result<Box<dyn PartReader + '_>, Unfinished> {
        self.store.as_ref().map(|store| part_reader(&**store)).map_err(Clone::clone)
    }
}
