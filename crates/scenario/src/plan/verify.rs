//! How the system is asked, after the load, for everything that it holds.

use std::collections::HashSet;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tidemark_wire::json;

use crate::context::{Context, Shared};
use crate::slot::Slot;
use crate::template::Template;

/// Most connections that ask at once.
pub const PARALLEL_MAX: usize = 64;
/// Most questions for contents, each perhaps with many pages.
pub const QUESTIONS_MAX: usize = 1_000_000;

/// What is asked after the load, so that it can be held against the ledger.
#[derive(Debug, Clone)]
pub struct Verify {
    /// Wait before the first question.
    pub settle: Duration,
    /// Where the system says how many writes it has taken and does not show yet: asked until that is 0.
    pub behind: Option<CountQuestion>,
    /// Where the system says how much it holds.
    pub count: Option<CountQuestion>,
    /// What is asked or read: 0 is the system, what follows are the plan's targets.
    pub at: u16,
    /// Where everything is read.
    pub from: ReadFrom,
    /// Names and values of headers that every question has.
    pub headers: Vec<(String, String)>,
    /// Connections that ask at once, at most [`PARALLEL_MAX`].
    pub parallel: usize,
    /// Longest time for all of it.
    pub within: Duration,
}

/// Where everything is read back.
#[derive(Debug, Clone)]
pub enum ReadFrom {
    /// Where the system's API shows it.
    Api(Box<ContentsQuestion>),
    /// In the directory of a shipped system's own store, once the system was stopped.
    Embedded,
    /// In a table of messages in Apache Cassandra.
    Cassandra(CassandraTable),
    /// In the Redis that is driven: all values of its keys.
    Redis {
        /// Which, as SCAN's MATCH takes it.
        keys: String,
    },
    /// In the memcached that is driven: the values of its keys.
    Memcached {
        /// Which; `*` stands for any characters, `?` for one.
        keys: String,
    },
    /// In the Aerospike that is driven: the values of its records' bins.
    Aerospike {
        /// The set that is read; of all sets if it has no name.
        set: String,
    },
    /// In the PostgreSQL or Cassandra that is driven: every value of the rows that a statement has.
    Rows {
        /// The statement, SQL or CQL.
        statement: String,
    },
}

/// Where the messages are in Apache Cassandra, as far as `verify` says it: what is not said there, the system's
/// settings say or the store that the run starts, else the defaults of these settings.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CassandraTable {
    /// Addresses of some of its nodes, `HOST:PORT` with commas between.
    pub contact: Option<String>,
    /// The keyspace of the table.
    pub keyspace: Option<String>,
    /// How many replicas acknowledged a write; as many are read as it takes to miss none.
    pub consistency: Option<String>,
    /// The defaults of the shipped system that keeps such a table, in the order of [`Self::SETTINGS`].
    pub defaults: [Option<&'static str>; 3],
}

impl CassandraTable {
    /// What says where the table is: keys of `verify`, and settings of a system.
    pub const SETTINGS: [&'static str; 3] = ["contact", "keyspace", "consistency"];
    /// Names of consistencies.
    pub const CONSISTENCIES: [&'static str; 4] = ["one", "quorum", "local-quorum", "all"];
}

/// A question for a number.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct CountQuestion {
    /// Path, with query.
    pub path: String,
    /// Where in the answer the number stands; the answer is nothing but the number if none.
    pub json: Option<json::Path>,
}

/// A question for contents, asked once or for each row of a feeder, page by page.
#[derive(Debug, Clone)]
pub struct ContentsQuestion {
    /// What the variables of the paths are; asked once if nothing.
    pub each: Option<Each>,
    /// Paths, with query: all of them are asked.
    pub paths: Vec<Template>,
    /// Where contents stand in an answer.
    pub items: json::Path,
    /// How the next page is found.
    pub next: Option<NextPage>,
    /// A regular expression whose first group, in a content, is in how many places that content is to be.
    pub copies: Option<String>,
}

/// What a question is asked for.
#[derive(Debug, Clone)]
pub enum Each {
    /// The rows of this feeder, whose columns are the variables of the path, in this order.
    Row(usize),
    /// The whole numbers from one to another, which are the only variable.
    Number {
        /// The first.
        from: u64,
        /// Where the system says the last.
        to: CountQuestion,
    },
}

/// Stands for the number in a path that is asked for numbers.
const NUMBER: &str = "918273645546372819";

/// How the next page is asked for.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct NextPage {
    /// Where an answer names it; where it does not, or with an empty text or null, it is the last one.
    pub source: NextSource,
    /// The query parameter that hands it back; it is the next path itself if none.
    pub parameter: Option<String>,
}

/// Where an answer names the next page.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum NextSource {
    /// In a header, by its lower-case name.
    Header(String),
    /// In its JSON.
    Json(json::Path),
}

impl ContentsQuestion {
    /// The paths of all questions, each once, in the order of the feeder's rows.
    ///
    /// # Errors
    /// If there are more than [`QUESTIONS_MAX`], or a path is no text.
    pub fn paths(&self, shared: &Shared, seed: u64, epoch_ms: i64) -> Result<Vec<String>, String> {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut render = |template: &Template, slots: &[Slot], columns: &[String]| {
            let mut path = Vec::new();
            let cx = &mut Context { slots, shared, random: &mut random, epoch_ms };
            template.render(cx, &mut path).map_err(|unmet| unmet.describe(columns))?;
            String::from_utf8(path).map_err(|_| "a path to ask for contents is not UTF-8 text".to_owned())
        };
        let feeder = match &self.each {
            Some(Each::Row(index)) => shared.feeders().get(*index),
            _ => None,
        };
        let Some(feeder) = feeder else {
            return self.paths.iter().map(|template| render(template, &[], &[])).collect();
        };
        let mut slots = vec![Slot::default(); feeder.columns.len()];
        let (mut paths, mut known) = (Vec::new(), HashSet::new());
        for row in &feeder.rows {
            slots.iter_mut().zip(row).for_each(|(slot, cell)| slot.set_text(cell.as_bytes()));
            for template in &self.paths {
                let path = render(template, &slots, &feeder.columns)?;
                if known.insert(path.clone()) {
                    paths.push(path);
                }
            }
            if paths.len() > QUESTIONS_MAX {
                return Err(format!("the feeder {} gives more than {QUESTIONS_MAX} questions", feeder.name));
            }
        }
        Ok(paths)
    }

    /// What stands before and behind the number in each path that is asked for numbers.
    ///
    /// # Errors
    /// If the number does not stand in a path, once.
    pub fn around_number(
        &self,
        shared: &Shared,
        seed: u64,
        epoch_ms: i64,
    ) -> Result<Vec<[String; 2]>, String> {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut number = Slot::default();
        number.set_text(NUMBER.as_bytes());
        let around = |template: &Template| {
            let mut path = Vec::new();
            let slots = std::slice::from_ref(&number);
            let cx = &mut Context { slots, shared, random: &mut random, epoch_ms };
            template.render(cx, &mut path).map_err(|unmet| unmet.describe(&[]))?;
            let path = String::from_utf8_lossy(&path);
            let parts: Vec<&str> = path.split(NUMBER).collect();
            match parts[..] {
                [before, behind] => Ok([before.to_owned(), behind.to_owned()]),
                _ => Err(format!(
                    "a path to ask for contents has the number {} times, not once",
                    parts.len() - 1
                )),
            }
        };
        self.paths.iter().map(around).collect()
    }
}
