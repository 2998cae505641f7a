//! How the lab reads what the shipped systems store and tell, without them.

use std::path::Path;

use tidemark_lab::shipped::{MessageStore, MessageTable, OperationsElsewhere, ShippedStores};
use tidemark_scenario::plan::{Durability, System};
use tidemark_store::messages::TreeReader;

/// Contents between two looks whether to go on.
const LOOK_CONTENTS: usize = 1_000;

/// The stores of the shipped systems.
#[derive(Debug)]
pub struct Stores;

impl ShippedStores for Stores {
    fn can_read(&self, store: &str) -> Result<(), String> {
        match store {
            "cassandra" if !cfg!(feature = "cassandra") => Err(cassandra::NOT_BUILT_IN.into()),
            _ => Ok(()),
        }
    }

    fn directory(&self, dir: &Path, durability: Durability) -> Result<Box<dyn MessageStore>, String> {
        let durability = match durability {
            Durability::Synced => tidemark_store::Durability::Synced,
            Durability::Buffered => tidemark_store::Durability::Buffered,
            Durability::Memory => tidemark_store::Durability::Memory,
        };
        let reader = TreeReader::open(dir, durability).map_err(|error| error.to_string())?;
        Ok(Box::new(Directory(reader)))
    }

    fn table(&self, table: &MessageTable) -> Result<Box<dyn MessageStore>, String> {
        cassandra::open(table)
    }

    fn operations(&self, system: &System) -> Option<Box<dyn OperationsElsewhere>> {
        #[cfg(feature = "kafka")]
        if kafka::is_named(system) {
            return Some(Box::new(kafka::Topic::of(system)));
        }
        let _ = system;
        None
    }
}

struct Directory(TreeReader);

impl MessageStore for Directory {
    fn parts(&self) -> usize {
        self.0.parts()
    }

    fn count(&self) -> Result<Option<u64>, String> {
        self.0.count().map(Some).map_err(|error| error.to_string())
    }

    fn payloads(
        &self,
        part: usize,
        goes_on: &dyn Fn() -> bool,
        visit: &mut dyn FnMut(&[u8]),
    ) -> Result<(), String> {
        for (index, payload) in self.0.payloads(part).enumerate() {
            if index % LOOK_CONTENTS == 0 && !goes_on() {
                return Err("nobody waits for it any more".into());
            }
            visit(&payload.map_err(|error| error.to_string())?);
        }
        Ok(())
    }
}

mod cassandra {
    use tidemark_lab::shipped::{MessageStore, MessageTable};

    /// What a program without the client says.
    pub const NOT_BUILT_IN: &str = "this program was built without the client of Apache Cassandra; build it with: cargo \
        build --release -p tidemark --features cassandra, or read the messages through the system's API, with \"contents\"";

    #[cfg(not(feature = "cassandra"))]
    pub fn open(_: &MessageTable) -> Result<Box<dyn MessageStore>, String> {
        Err(NOT_BUILT_IN.into())
    }

    #[cfg(feature = "cassandra")]
    pub fn open(table: &MessageTable) -> Result<Box<dyn MessageStore>, String> {
        use tidemark_store::cassandra::{Options, Reader};

        let options = table.consistency.parse().map(|consistency| Options {
            contact: table.contact.clone(),
            keyspace: table.keyspace.clone(),
            consistency,
            ..Options::default()
        });
        let reader = options.and_then(|options| Reader::open(&options)).map_err(|error| error.to_string())?;
        Ok(Box::new(client::Table(reader)))
    }

    #[cfg(feature = "cassandra")]
    mod client {
        use tidemark_lab::shipped::MessageStore;
        use tidemark_store::cassandra::Reader;

        pub struct Table(pub Reader);

        impl MessageStore for Table {
            fn parts(&self) -> usize {
                self.0.parts()
            }

            fn cluster(&self) -> Result<Option<String>, String> {
                self.0.cluster().map(Some).map_err(|error| error.to_string())
            }

            fn payloads(
                &self,
                part: usize,
                goes_on: &dyn Fn() -> bool,
                visit: &mut dyn FnMut(&[u8]),
            ) -> Result<(), String> {
                self.0.payloads(part, goes_on, visit).map(drop).map_err(|error| error.to_string())
            }
        }
    }
}

#[cfg(feature = "kafka")]
mod kafka {
    use tidemark_lab::shipped::OperationsElsewhere;
    use tidemark_scenario::plan::System;
    use tidemark_store::StoreError;
    use tidemark_store::kafka::{Options, Positions, ends_of_events, read_events};

    /// The setting of a shipped system that says where it tells of its operations, and its value for a topic of Kafka.
    const EVENTS: &str = "events";
    const KAFKA: &str = "kafka";

    /// A topic, and where it ended before the system was started: what earlier runs have left is not of this one.
    pub struct Topic {
        options: Options,
        ends: Result<Positions, StoreError>,
    }

    pub fn is_named(system: &System) -> bool {
        system.settings.get(EVENTS).is_some_and(|place| place == KAFKA)
    }

    impl Topic {
        pub fn of(system: &System) -> Topic {
            let mut options = Options { topic: tidemark_store::events::TOPIC.into(), ..Options::default() };
            if let Some(brokers) = system.settings.get("brokers").and_then(|text| Options::brokers_of(text)) {
                options.brokers = brokers;
            }
            if let Some(topic) = system.settings.get("topic") {
                options.topic = topic.clone();
            }
            Topic { ends: ends_of_events(&options), options }
        }
    }

    impl OperationsElsewhere for Topic {
        fn lines(&self, visit: &mut dyn FnMut(&[u8]) -> bool) -> Result<(), String> {
            let from = self.ends.clone().unwrap_or_default();
            read_events(&self.options, &from, visit).map_err(|error| error.to_string())
        }

        fn mixed_with_earlier(&self) -> Option<String> {
            let reason = self.ends.as_ref().err()?;
            Some(format!(
                "what operations.parquet lacks may be that of earlier runs, too: where the topic `{}` ended before this \
                 one is not known ({reason})",
                self.options.topic
            ))
        }
    }
}
