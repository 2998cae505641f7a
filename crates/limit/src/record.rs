//! A search as it is kept, so that it can be shown again and gone on with.

use serde::{Deserialize, Serialize};

use crate::cause::Room;
use crate::found::{Found, found};
use crate::search::{Ending, Options};
use crate::trial::{Goal, Trial};

/// Version of the form that this writes, and the highest that it reads.
const FORMAT: u32 = 1;

/// One search, or one for each value of a setting.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Searches {
    /// Version of the form.
    pub format: u32,
    /// Name of the scenario.
    pub name: String,
    /// What the scenario says it is.
    #[serde(default)]
    pub description: String,
    /// The full command.
    #[serde(default)]
    pub command: Vec<String>,
    /// What was asked for beside the scenario, in words that are the same whenever the same is asked for.
    #[serde(default)]
    pub asked: Vec<String>,
    /// The searches, in the order of their settings.
    pub searches: Vec<Search>,
    /// Why it did not come to its end, if it did not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stopped: Option<String>,
}

/// A search for one limit.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Search {
    /// What is set for it, where there are several: `cores=2`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub setting: Option<String>,
    /// The objectives.
    pub goals: Vec<Goal>,
    /// Where it begins and ends.
    pub options: Options,
    /// What the system has.
    #[serde(default)]
    pub room: Room,
    /// The trials that were carried out.
    #[serde(default)]
    pub trials: Vec<Trial>,
    /// Why it ended; absent while it has not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<Ending>,
    /// What a reader must know beside.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

impl Searches {
    /// None yet, of a scenario.
    pub fn new(name: &str, description: &str) -> Searches {
        Searches {
            format: FORMAT,
            name: name.to_owned(),
            description: description.to_owned(),
            command: Vec::new(),
            asked: Vec::new(),
            searches: Vec::new(),
            stopped: None,
        }
    }

    /// As it is written down.
    pub fn to_json(&self) -> String {
        // numbers that are finite and texts: nothing that JSON cannot say
        serde_json::to_string_pretty(self).expect("a search is plain JSON") + "\n"
    }

    /// Reads it again.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn from_json(text: &str) -> Result<Searches, String> {
        let searches: Searches = serde_json::from_str(text).map_err(|error| error.to_string())?;
        if searches.format > FORMAT {
            return Err(format!(
                "a search of format {}, this version reads up to {FORMAT}; use a newer tidemark",
                searches.format
            ));
        }
        let fits = |search: &Search| search.trials.iter().all(|trial| trial.seen.len() == search.goals.len());
        match searches.searches.iter().all(fits) {
            true => Ok(searches),
            false => Err("a trial says something of other objectives than the search has".into()),
        }
    }
}

impl Search {
    /// What it comes to by now.
    pub fn found(&self) -> Found {
        found(&self.goals, &self.trials, &self.options, &self.room, self.ended)
    }
}
