//! What the system has told of its operations, made into a file of the run once it has told all.

use std::path::Path;
use std::time::SystemTime;

use tidemark_record::{RecordError, Told, take_operations};
use tidemark_scenario::plan::System;

/// Where a system will tell of its operations.
pub enum Operations {
    /// Nowhere.
    Nowhere,
    /// In the file that it is started with.
    File,
    /// In a topic of Apache Kafka.
    #[cfg(feature = "kafka")]
    Kafka(topic::Topic),
}

impl Operations {
    /// Looks where those of a system that is not started yet will be.
    pub fn of(system: &System) -> Operations {
        #[cfg(feature = "kafka")]
        if system.tells_operations && topic::is_named(system) {
            return Operations::Kafka(topic::Topic::of(system));
        }
        if system.tells_operations { Operations::File } else { Operations::Nowhere }
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
            #[cfg(feature = "kafka")]
            Operations::Kafka(topic) => topic.gather(run_dir, zero)?,
        };
        let is_expected = prepares && told.operations > 0;
        let told = Told { before: if is_expected { 0 } else { told.before }, ..told };
        notes.extend(told.notes());
        Ok(notes)
    }
}

#[cfg(feature = "kafka")]
mod topic {
    use std::path::Path;
    use std::time::SystemTime;

    use tidemark_record::{RecordError, Told, ToldOperations};
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

        pub fn gather(&self, run_dir: &Path, zero: SystemTime) -> Result<(Told, Vec<String>), RecordError> {
            let mut told = ToldOperations::create(run_dir, zero)?;
            // what it could not tell to Kafka
            told.file(run_dir)?;
            let mut written = Ok(());
            let from = self.ends.clone().unwrap_or_default();
            let read = read_events(&self.options, &from, |line| {
                written = told.line(line);
                written.is_ok()
            });
            written?;
            let told = Told { elsewhere: 0, ..told.finish()? };
            let unread = read.err().map(|reason| {
                format!("the system's own operations are not all in operations.parquet: {reason}")
            });
            let others = self.ends.as_ref().err().map(|reason| {
                format!(
                    "what operations.parquet lacks may be that of earlier runs, too: where the topic `{}` ended before this \
                     one is not known ({reason})",
                    self.options.topic
                )
            });
            Ok((told, unread.into_iter().chain(others).collect()))
        }
    }
}
