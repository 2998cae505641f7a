//! A search as it is kept, so that it can be shown again and gone on with.

use serde::{Deserialize, Serialize};

use crate::cause::Resources;
use crate::estimate::decided;
use crate::found::{Found, found};
use crate::search::{Ending, Options, counted};
use crate::trial::{Goal, NotCounted, Purpose, Trial};

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
    #[serde(default, rename = "room")]
    pub resources: Resources,
    /// The trials that were carried out.
    #[serde(default)]
    pub trials: Vec<Trial>,
    /// Why it ended; absent while it has not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<Ending>,
    /// Requests each second that it must hold, if so many are asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_least_per_s: Option<f64>,
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
        if searches.searches.is_empty() {
            return Err("no search is in it".into());
        }
        for (index, search) in searches.searches.iter().enumerate() {
            search.check().map_err(|reason| format!("search {}: {reason}", index + 1))?;
        }
        Ok(searches)
    }
}

/// Smallest and largest number that is believed.
const NUMBERS: (f64, f64) = (1e-9, 1e15);
/// Levels that are believed.
const LEVEL_MAX: f64 = 1e12;
/// Seconds that are believed: three years.
const SECONDS_MAX: f64 = 1e8;
/// Requests of a trial that are believed.
const REQUESTS_MAX: u64 = 1 << 52;
/// Trials of a search, moments of a trial, goals, and rounds or places.
const TRIALS_MAX: usize = 5_000;
const MOMENTS_MAX: usize = 1_000_000;
const GOALS_MAX: usize = 1_000;
const ROUNDS_MAX: u32 = 1_000_000;

/// Whether it is a number above 0 and no larger than this.
fn above_0(name: &str, value: f64, most: f64) -> Result<(), String> {
    match (NUMBERS.0..=most).contains(&value) {
        true => Ok(()),
        false => Err(format!("{name} is {value}, which is not above 0 and at most {most}")),
    }
}

/// The same where 0 is as good.
fn from_0(name: &str, value: f64, most: f64) -> Result<(), String> {
    if value == 0.0 { Ok(()) } else { above_0(name, value, most) }
}

impl Search {
    /// What no search can have written.
    fn check(&self) -> Result<(), String> {
        if self.goals.is_empty() || self.goals.len() > GOALS_MAX {
            return Err(format!("it has {} objectives", self.goals.len()));
        }
        if self.trials.len() > TRIALS_MAX {
            return Err(format!("it has {} trials, more than {TRIALS_MAX}", self.trials.len()));
        }
        for Goal { text, percentile, .. } in &self.goals {
            let Some(percentile) = percentile else { continue };
            above_0(&format!("`bound_s` of {text}"), percentile.bound_s, SECONDS_MAX)?;
            if !(NUMBERS.0..1.0).contains(&percentile.allowed) {
                return Err(format!(
                    "`allowed` of {text} is {}, which is not between 0 and 1",
                    percentile.allowed
                ));
            }
        }
        let Options { level_first, level_max, budget_s, precision, warm_up_s, .. } = self.options;
        above_0("`first`", level_first, LEVEL_MAX)?;
        above_0("`most`", level_max, LEVEL_MAX)?;
        above_0("`budget_s`", budget_s, SECONDS_MAX)?;
        above_0("`precision`", precision, 1.0)?;
        from_0("`warm_up_s`", warm_up_s, SECONDS_MAX)?;
        let at_least = [self.at_least_per_s, self.options.at_least_per_s];
        for per_s in at_least.into_iter().flatten() {
            above_0("`at_least_per_s`", per_s, LEVEL_MAX)?;
        }
        from_0("`cores`", self.resources.cores, NUMBERS.1)?;
        for (index, trial) in self.trials.iter().enumerate() {
            self.check_trial(trial).map_err(|reason| format!("trial {}: {reason}", index + 1))?;
        }
        self.check_end()
    }

    fn check_trial(&self, trial: &Trial) -> Result<(), String> {
        above_0("`level`", trial.ask.level, LEVEL_MAX)?;
        from_0("`warm_up_s`", trial.ask.warm_up_s, SECONDS_MAX)?;
        above_0("`most_s`", trial.ask.measured_max_s, SECONDS_MAX)?;
        from_0("`began_s`", trial.began_s, SECONDS_MAX)?;
        above_0("`took_s`", trial.took_s, SECONDS_MAX)?;
        from_0("`measured_s`", trial.measured_s, SECONDS_MAX)?;
        if let Purpose::Refine { round, place } = trial.ask.purpose
            && round.max(place) > ROUNDS_MAX
        {
            return Err(format!("it is place {place} of round {round}"));
        }
        if trial.seen.len() != self.goals.len() {
            return Err("it says something of other objectives than the search has".into());
        }
        for tail in trial.seen.iter().filter_map(|seen| seen.tail.as_ref()) {
            if tail.due_checked().is_none_or(|due| due > REQUESTS_MAX) {
                return Err("it has more requests than there can be".into());
            }
        }
        let figures = &trial.figures;
        let all = || figures.processes.iter().chain(&figures.neighbours);
        let cores = all().map(|process| process.cores).chain(all().filter_map(|process| process.waited));
        let cores = cores.chain(figures.answers.iter().map(|of| of.bytes));
        let numbers = [
            figures.offered_per_s,
            figures.achieved_per_s,
            figures.failed_share,
            figures.mean_us.unwrap_or(0.0),
            figures.service_mean_us.unwrap_or(0.0),
            figures.in_flight,
            figures.waiting,
        ];
        for value in numbers.into_iter().chain(cores) {
            // what is below a billionth is no more than 0
            if !(0.0..=NUMBERS.1).contains(&value) {
                return Err(format!("a figure of it is {value}"));
            }
        }
        let times = [figures.p50_us, figures.p90_us, figures.p99_us, figures.p999_us];
        if times.into_iter().flatten().any(|us| us > REQUESTS_MAX) {
            return Err("a percentile of it is longer than there can be".into());
        }
        if trial.moments.len() > MOMENTS_MAX {
            return Err(format!("it has {} moments", trial.moments.len()));
        }
        for moment in &trial.moments {
            from_0("`at_s`", moment.at_s, SECONDS_MAX)?;
            if moment.ended > REQUESTS_MAX || moment.slow > moment.ended {
                return Err(format!("{} of {} requests were slow", moment.slow, moment.ended));
            }
        }
        Ok(())
    }

    /// Whether it can have ended as it says.
    fn check_end(&self) -> Result<(), String> {
        let Some(ended) = self.ended else { return Ok(()) };
        let decided = self.decided();
        let holds = decided.iter().any(|trial| trial.holds());
        let breaks = decided.iter().any(|trial| !trial.holds());
        let is_driver = |trial: &Trial| matches!(trial.not_counted, Some(NotCounted::Driver(_)));
        let fits = match ended {
            Ending::Precise => holds && breaks,
            Ending::Budget | Ending::Undecided => true,
            Ending::Driver => self.trials.iter().any(is_driver),
            Ending::Disturbed => self.trials.iter().any(Trial::is_disturbed),
            Ending::NothingHolds => breaks && !holds,
            Ending::NothingBreaks => holds,
            Ending::Saturated => holds && self.options.users,
        };
        match fits {
            true => Ok(()),
            false => {
                let word = serde_json::to_string(&ended).unwrap_or_default();
                Err(format!("`ended` is {word}, which its trials contradict"))
            }
        }
    }

    /// Those of its trials that hold or break.
    pub fn decided(&self) -> Vec<&Trial> {
        decided(&self.goals, &counted(&self.trials))
    }

    /// What it comes to by now.
    pub fn found(&self) -> Found {
        found(&self.goals, &self.trials, &self.options, &self.resources, self.ended)
    }
}
