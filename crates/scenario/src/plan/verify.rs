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
    Api(ContentsQuestion),
    /// In the directory of a shipped system's own store, once the system was stopped.
    Embedded,
    /// In a table of messages in Apache Cassandra.
    Cassandra(CassandraTable),
    /// In the Redis that is the system: all values of its keys.
    Redis {
        /// Which, as SCAN's MATCH takes it.
        keys: String,
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
    /// The feeder whose columns are the variables of the path, in this order.
    pub each: Option<usize>,
    /// Path, with query.
    pub path: Template,
    /// Where contents stand in an answer.
    pub items: json::Path,
    /// How the next page is found.
    pub next: Option<NextPage>,
}

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
        let mut render = |slots: &[Slot], columns: &[String]| {
            let mut path = Vec::new();
            let cx = &mut Context { slots, shared, random: &mut random, epoch_ms };
            self.path.render(cx, &mut path).map_err(|unmet| unmet.describe(columns))?;
            String::from_utf8(path).map_err(|_| "a path to ask for contents is not UTF-8 text".to_owned())
        };
        let Some(feeder) = self.each.and_then(|index| shared.feeders().get(index)) else {
            return Ok(vec![render(&[], &[])?]);
        };
        let mut slots = vec![Slot::default(); feeder.columns.len()];
        let (mut paths, mut known) = (Vec::new(), HashSet::new());
        for row in &feeder.rows {
            slots.iter_mut().zip(row).for_each(|(slot, cell)| slot.set_text(cell.as_bytes()));
            let path = render(&slots, &feeder.columns)?;
            if known.insert(path.clone()) {
                paths.push(path);
            }
            if paths.len() > QUESTIONS_MAX {
                return Err(format!("the feeder {} gives more than {QUESTIONS_MAX} questions", feeder.name));
            }
        }
        Ok(paths)
    }
}
