//! Flags of `tidemark compare`, and nothing else.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use tidemark_report::comparison::{Rule, SIDES_MAX};

use crate::args::key_value;
use crate::cost::PriceArguments;
use crate::driver::DriverArguments;
use crate::failure::Failure;
use crate::quantities::{RateRange, rate, time, users};
use crate::results::SeveralResultArguments;

/// `tidemark compare`
#[derive(Debug, Args)]
#[command(after_help = "\
Each side is a letter. A is the first, and the others are compared with it. Sides that run here run in turn, in rounds of \
A B B A or B A A B. They end once each figure of all requests differs for sure or is known to --within, or the budget is used up.

Exit status: 0 compared, 1 a --fail-if surely fails or a --url is unreachable at first, 2 wrong use, 3 no valid measurement \
(a side did not start or went away, or each round has an invalid run) or a --fail-if is not sure (--unsure), 130 stopped.

Examples:
  tidemark compare runs/monday runs/friday
  tidemark compare runs/a1,runs/a2,runs/a3 runs/b1,runs/b2,runs/b3
  tidemark compare kv-redis --set store=redis --vs store=valkey --budget 5m
  tidemark compare my.yaml --command './old {port}' --command './new {port}'
  tidemark compare my.yaml --revision main --revision HEAD --build 'cargo build --release' --fail-if 'p99>+5%'
  tidemark compare my.yaml --baseline runs/monday,runs/tuesday,runs/friday --markdown pr.md
  tidemark compare last")]
#[command(mut_arg("seed", |arg| arg.help("Seed of the random numbers, also of the order within rounds")))]
pub struct CompareArguments {
    /// Two sides or more, each a run, several (A1,A2) or a folder of runs; or one scenario whose sides run here; or a comparison
    #[arg(value_name = "A B|SCENARIO", required = true, num_args = 1..)]
    pub what: Vec<String>,
    /// Set a setting of the scenario, for all sides (repeatable)
    #[arg(long = "set", value_name = "KEY=VALUE", value_parser = key_value)]
    pub settings: Vec<(String, String)>,
    /// Set a setting for B alone (repeatable)
    #[arg(long = "vs", value_name = "KEY=VALUE", value_parser = key_value, conflicts_with_all = ["commands", "urls", "revisions", "baseline"])]
    pub vs: Vec<(String, String)>,
    /// The command that starts the system of a side; {port} in it stands for a free port (once for each side)
    #[arg(long = "command", value_name = "COMMAND", conflicts_with_all = ["urls", "revisions", "baseline"])]
    pub commands: Vec<String>,
    /// Where the system of a side runs already (once for each side)
    #[arg(long = "url", value_name = "URL", conflicts_with_all = ["revisions", "baseline"])]
    pub urls: Vec<String>,
    /// The git revision of a side; the scenario's command runs in a worktree of it (once for each side)
    #[arg(long = "revision", value_name = "REVISION", conflicts_with = "baseline")]
    pub revisions: Vec<String>,
    /// The command that builds a revision, run in this folder's place in the worktree
    #[arg(long, value_name = "COMMAND", requires = "revisions")]
    pub build: Option<String>,
    /// Earlier runs to compare fresh ones with
    #[arg(long, value_name = "RUN,…")]
    pub baseline: Option<String>,
    /// Longest time for all runs together [default: 10m]
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub budget: Option<Duration>,
    /// Most rounds; with --baseline, fresh runs
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=10_000))]
    pub rounds: Option<u64>,
    /// How well a figure must be known before a comparison ends early [default: 3%]
    #[arg(long, value_name = "PERCENT", value_parser = percent)]
    pub within: Option<f64>,
    /// Exit with status 1 once this is sure: 'p99>+5%', 'rate<-3%', 'Checkout p99>+10%' (repeatable)
    #[arg(long = "fail-if", value_name = "RULE", value_parser = Rule::parse)]
    pub rules: Vec<Rule>,
    /// Exit status where the runs cannot decide a --fail-if: fail (1), pass (0), or 3
    #[arg(long, value_name = "fail|pass|3", default_value = "3", hide_possible_values = true)]
    pub unsure: Unsure,
    /// Length of the measured phase of each run [default: the scenario's, or less where that leaves too few rounds]
    #[arg(short = 'd', long = "for", visible_alias = "duration", short_alias = 'z', value_name = "TIME", value_parser = time)]
    pub duration: Option<Duration>,
    /// Sessions that arrive each second in the measured phase, like 20k (open load)
    #[arg(short, long, short_alias = 'R', value_name = "RATE", value_parser = rate)]
    pub rate: Option<RateRange>,
    /// Users of a closed load, or connections
    #[arg(short = 'c', long = "users", visible_alias = "connections", value_name = "N", value_parser = users)]
    pub users: Option<u32>,
    /// How it is driven.
    #[command(flatten)]
    pub driver: DriverArguments,
    /// The directory of the runs, new or empty [default: a new one in runs/]
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Print nothing while it runs, and nothing but errors on standard error
    #[arg(long, short)]
    pub quiet: bool,
    /// What is written beside the text.
    #[command(flatten)]
    pub results: SeveralResultArguments,
    /// What it costs.
    #[command(flatten)]
    pub prices: PriceArguments,
    /// The folder of the runs whose history the Markdown shows
    #[arg(long, value_name = "FOLDER", default_value = tidemark_record::RUNS_DIR)]
    pub history: PathBuf,
}

/// What an undecided rule counts as.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum Unsure {
    /// As if it failed.
    Fail,
    /// As if it did not.
    Pass,
    /// A status of its own: that of what was not measured.
    #[default]
    #[value(name = "3")]
    Invalid,
}

/// The usual budget, and how well figures are usually to be known.
const BUDGET: Duration = Duration::from_secs(600);
pub const WITHIN: f64 = 0.03;

impl CompareArguments {
    /// Whether it is said what the sides are that run here.
    pub fn has_sides(&self) -> bool {
        !self.vs.is_empty()
            || !self.commands.is_empty()
            || !self.urls.is_empty()
            || !self.revisions.is_empty()
            || self.baseline.is_some()
    }

    /// The first flag given that is of sides that run here.
    pub fn of_sides_that_run(&self) -> Option<&'static str> {
        let given = [
            ("--set", !self.settings.is_empty()),
            ("--budget", self.budget.is_some()),
            ("--rounds", self.rounds.is_some()),
            ("--within", self.within.is_some()),
            ("--for", self.duration.is_some()),
            ("--rate", self.rate.is_some()),
            ("--users", self.users.is_some()),
            ("--out", self.out.is_some()),
            ("--pin", !self.driver.pins.is_empty()),
            ("--threads", self.driver.threads.is_some()),
            ("--seed", self.driver.seed.is_some()),
            ("--spin", self.driver.spin),
        ];
        given.into_iter().find_map(|(flag, is_given)| is_given.then_some(flag))
    }

    /// Longest time for all runs together.
    pub fn budget(&self) -> Duration {
        self.budget.unwrap_or(BUDGET)
    }

    /// Finds what would fail after a long time, before that begins.
    pub fn check(&self) -> Result<(), Failure> {
        let lists = [("--command", &self.commands), ("--url", &self.urls), ("--revision", &self.revisions)];
        for (flag, sides) in lists {
            if sides.len() == 1 {
                let reason = "is given once for each side; give it twice or more";
                return Err(Failure::usage(format!("{flag} {reason}")));
            }
            if sides.len() > SIDES_MAX {
                return Err(Failure::usage(format!("{flag}: at most {SIDES_MAX} sides")));
            }
        }
        self.results.check()
    }
}

/// A share of at least a thousandth: `3%`.
pub fn percent(text: &str) -> Result<f64, String> {
    let number = text.trim().trim_end_matches('%').trim_end().parse::<f64>();
    match number.map(|number| number / 100.0) {
        Ok(share) if (0.001..=1.0).contains(&share) => Ok(share),
        _ => Err("write a percentage from 0.1% to 100%, like 3%".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentages_are_shares() {
        assert_eq!((percent("3%"), percent("0.5")), (Ok(0.03), Ok(0.005)));
        assert!(percent("0%").is_err() && percent("x").is_err() && percent("200%").is_err());
    }
}
