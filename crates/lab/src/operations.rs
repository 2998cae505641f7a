//! What the system has told of its operations, made into a file of the run once it has told all.

use std::path::Path;
use std::time::SystemTime;

use tidemark_record::{RecordError, Told, take_operations};
use tidemark_scenario::plan::System;

/// The setting of a shipped system that says where it tells of its operations, and its value for a topic of Kafka.
const EVENTS: &str = "events";
const KAFKA: &str = "kafka";

/// Gathers what a stopped system has told in the run directory, or where its settings say. Returns what a reader of the run
/// must know of it.
///
/// # Errors
/// The run's operations cannot be written.
pub fn gather(run_dir: &Path, system: &System, zero: SystemTime) -> Result<Vec<String>, RecordError> {
    if !system.tells_operations {
        return Ok(Vec::new());
    }
    let told = match system.settings.get(EVENTS).is_some_and(|place| place == KAFKA) {
        true => from_kafka(run_dir, system, zero)?,
        false => Ok(take_operations(run_dir, zero)?),
    };
    Ok(match told {
        Ok(told) => told.iter().flat_map(Told::notes).collect(),
        Err(reason) => {
            vec![format!("the system's own operations are not all in operations.parquet: {reason}")]
        }
    })
}

/// None where they are told to Kafka, which has them or says why not.
type FromKafka = Result<Option<Told>, String>;

#[cfg(not(feature = "kafka"))]
fn from_kafka(_: &Path, _: &System, _: SystemTime) -> Result<FromKafka, RecordError> {
    Ok(Err("this program was built without Apache Kafka".into()))
}

#[cfg(feature = "kafka")]
fn from_kafka(run_dir: &Path, system: &System, zero: SystemTime) -> Result<FromKafka, RecordError> {
    use tidemark_record::ToldOperations;
    use tidemark_store::kafka::{Options, read_events};

    let mut options = Options { topic: tidemark_store::events::TOPIC.into(), ..Options::default() };
    if let Some(brokers) = system.settings.get("brokers").and_then(|text| Options::brokers_of(text)) {
        options.brokers = brokers;
    }
    if let Some(topic) = system.settings.get("topic") {
        options.topic = topic.clone();
    }
    let mut told = ToldOperations::create(run_dir, zero)?;
    let mut written = Ok(());
    let read = read_events(&options, |line| {
        written = told.line(line);
        written.is_ok()
    });
    written?;
    let told = told.finish()?;
    Ok(read.map(|()| Some(told)).map_err(|error| error.to_string()))
}
