//! A table of messages in Cassandra as what it holds, read through the store's own client.

use tidemark_store::StoreError;

use self::client::Reader;
use super::recipe::Table;
use super::search::{Bounds, DirectStore, PartReader, StoredContents, Unfinished};
use crate::LabError;

/// What a program without the client says.
pub const NOT_BUILT_IN: &str = "this program was built without the client of Apache Cassandra; build it with: cargo \
    build --release -p tidemark --features cassandra, or read the messages through the system's API, with \"contents\"";

/// Reads the messages where they lie. A table that cannot be read says so to whoever wants to read.
pub struct Messages {
    reader: Result<Reader, Unfinished>,
    contact: String,
    /// Whether the run started the nodes, which are stopped by its end.
    started: bool,
}

impl Messages {
    pub(super) fn open(table: &Table) -> Messages {
        let contact = table.contact.join(", ");
        let reader = client::open(table).and_then(|reader| {
            // where a cluster of another run is by now, everything would seem lost
            match (&table.cluster, reader.cluster().map_err(|error| error.to_string())?) {
                (Some(wanted), found) if found != *wanted => Err(format!(
                    "the nodes at {contact} are of another cluster than this run had: {found}, not {wanted}"
                )),
                _ => Ok(reader),
            }
        });
        Messages { reader: reader.map_err(Unfinished::Failed), contact, started: table.cluster.is_some() }
    }

    fn reader(&self) -> Result<&Reader, Unfinished> {
        self.reader.as_ref().map_err(Clone::clone)
    }
}

impl DirectStore for Messages {
    fn must_be_there(&self) -> Result<(), LabError> {
        match &self.reader {
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
        self.reader.as_ref().map_or(1, Reader::parts)
    }

    fn reader(&self) -> Result<Box<dyn PartReader + '_>, Unfinished> {
        self.reader().map(|reader| Box::new(reader) as Box<dyn PartReader>)
    }
}

impl PartReader for &Reader {
    fn read(&mut self, part: usize, bounds: &Bounds, visit: &mut dyn FnMut(&[u8])) -> Result<(), Unfinished> {
        let goes_on = || bounds.check().is_ok();
        self.payloads(part, &goes_on, visit).map(drop).map_err(|error: StoreError| {
            bounds.check().err().unwrap_or_else(|| Unfinished::Failed(error.to_string()))
        })
    }
}

#[cfg(feature = "cassandra")]
mod client {
    use tidemark_store::cassandra::Options;
    pub use tidemark_store::cassandra::Reader;

    use super::super::recipe::Table;

    pub fn open(table: &Table) -> Result<Reader, String> {
        let consistency = table.consistency.parse();
        let options = consistency.map(|consistency| Options {
            contact: table.contact.clone(),
            keyspace: table.keyspace.clone(),
            consistency,
            ..Options::default()
        });
        options.and_then(|options| Reader::open(&options)).map_err(|error| error.to_string())
    }
}

/// In a program without the client: nothing that could be opened.
#[cfg(not(feature = "cassandra"))]
mod client {
    use super::super::recipe::Table;
    use super::{NOT_BUILT_IN, StoreError};

    pub enum Reader {}

    impl Reader {
        pub fn cluster(&self) -> Result<String, StoreError> {
            match *self {}
        }

        pub fn parts(&self) -> usize {
            match *self {}
        }

        pub fn payloads(
            &self,
            _: usize,
            _: &dyn Fn() -> bool,
            _: impl FnMut(&[u8]),
        ) -> Result<u64, StoreError> {
            match *self {}
        }
    }

    pub fn open(_: &Table) -> Result<Reader, String> {
        Err(NOT_BUILT_IN.into())
    }
}
