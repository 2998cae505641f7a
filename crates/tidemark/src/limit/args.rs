//! Flags of `tidemark limit`, and nothing else.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use tidemark_scenario::plan::Watch;
use tidemark_scenario::units::Time;

use crate::args::{key_value, watch};
use crate::compare::args::percent;
use crate::cost::PriceArguments;
use crate::driver::DriverArguments;
use crate::failure::Failure;
use crate::quantities::{RateRange, rate, time, users};
use crate::reach::ReachArguments;
use crate::results::SeveralResultArguments;

/// Less is not time for two trials.
const BUDGET_LEAST: Duration = Duration::from_secs(8);

/// `tidemark limit`
#[derive(Debug, Args)]
#[command(after_help = "\
The search doubles the load until an objective breaks. Then it runs trials around the limit, in shuffled order, until the limit \
is known to --within or the budget is used up. To continue a search that was stopped, give the same command with --out DIR.

Exit status: 0 a limit was found, 1 nothing holds, surely less than --at-least, or a --url is unreachable, 2 wrong use, 3 no limit \
of the system was seen (the load generator was the limit, others had the machine, or the time was too short), 130 stopped.

Examples:
  tidemark limit airline
  tidemark limit my.yaml --url http://127.0.0.1:8080 --watch port=8080 --until 'p99<50ms'
  tidemark limit my.yaml --budget 10m --over cores=1,2,4 --pin driver=6,7
  tidemark limit my.yaml --over pool=10,20,40 --json
  tidemark limit my.yaml --at-least 5k/s --budget 3m     in CI
  tidemark limit my.yaml --out runs/limit --budget 30m   goes on there
  tidemark report runs/limit")]
#[command(mut_arg("seed", |arg| arg.help("Seed of the random numbers, also of the order of trials")))]
pub struct LimitArguments {
    /// A scenario file, the name of a shipped scenario, or a plan of JMeter, Tsung, Postman or Artillery
    #[arg(value_name = "SCENARIO")]
    pub scenario: String,
    /// Set a setting of the scenario (repeatable)
    #[arg(long = "set", value_name = "KEY=VALUE", value_parser = key_value)]
    pub settings: Vec<(String, String)>,
    /// Of a JMeter plan: a property that it asks for (repeatable)
    #[arg(short = 'J', value_name = "NAME=VALUE", value_parser = key_value)]
    pub properties: Vec<(String, String)>,
    /// Of a Postman collection the file of its environment, of an Artillery script the name of one
    #[arg(long, value_name = "FILE|NAME")]
    pub environment: Option<String>,
    /// One more objective, like 'p99<10ms' or 'Login errors<0.1%' (repeatable)
    #[arg(long = "until", visible_alias = "objective", value_name = "OBJECTIVE")]
    pub objectives: Vec<String>,
    /// About how long a search may take, like 10m
    #[arg(long, value_name = "TIME", default_value = "5m", value_parser = time)]
    pub budget: Duration,
    /// End early once half of the limit's interval is no more than this
    #[arg(long, value_name = "PERCENT", default_value = "2%", value_parser = percent)]
    pub within: f64,
    /// Search once for each value of a setting, or number of cores of the system: cores=1,2,4
    #[arg(long, value_name = "KEY=VALUE,VALUE,…", value_parser = key_values)]
    pub over: Option<(String, Vec<String>)>,
    /// Sessions each second to begin with [default: the scenario's; a closed load becomes an open one]
    #[arg(short, long, short_alias = 'R', value_name = "RATE", value_parser = rate)]
    pub rate: Option<RateRange>,
    /// Users to begin with [default: the scenario's]; where sessions arrive at a rate, connections
    #[arg(short = 'c', long = "users", visible_alias = "connections", value_name = "N", value_parser = users)]
    pub users: Option<u32>,
    /// Most sessions each second, or most users, that are tried
    #[arg(long, value_name = "RATE|N", value_parser = rate)]
    pub most: Option<RateRange>,
    /// Requests each second that it must hold, also in a last, longer trial: exit status 1 where the whole interval is below, 3 where nothing shows it
    #[arg(long, value_name = "RATE", value_parser = rate)]
    pub at_least: Option<RateRange>,
    /// Drive the system at this URL instead of starting the scenario's
    #[arg(long, value_name = "URL")]
    pub url: Option<String>,
    /// Also watch a process that Tidemark does not start: pid=N, name=PROGRAM, port=N and the like (repeatable)
    #[arg(long, value_name = "WHAT", value_parser = watch)]
    pub watch: Vec<Watch>,
    /// How it is driven.
    #[command(flatten)]
    pub driver: DriverArguments,
    /// The directory of the trials: new or empty, or that of a search that goes on [default: a new one in runs/]
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
    /// How that URL is reached
    #[command(flatten)]
    pub reach: ReachArguments,
}

/// `cores=1,2,4`.
fn key_values(text: &str) -> Result<(String, Vec<String>), String> {
    let told = || "write it as KEY=VALUE,VALUE with two values or more, like cores=1,2,4".to_owned();
    let (key, values) = key_value(text).map_err(|_| told())?;
    let values: Vec<String> = values.split(',').map(|value| value.trim().to_owned()).collect();
    if values.len() < 2 || values.iter().any(String::is_empty) {
        return Err(told());
    }
    match (1..values.len()).find(|index| values[..*index].contains(&values[*index])) {
        Some(index) => Err(format!("{} is there twice", values[index])),
        None => Ok((key, values)),
    }
}

impl LimitArguments {
    /// Finds what would fail after a long time, before that begins.
    pub fn check(&self) -> Result<(), Failure> {
        if self.budget < BUDGET_LEAST {
            return Err(Failure::usage(format!(
                "--budget {}: two trials take longer; give it {} or more, better some minutes",
                Time(self.budget),
                Time(BUDGET_LEAST)
            )));
        }
        self.results.check()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_a_family_are_two_or_more_and_all_different() {
        let (key, values) = key_values("cores=1, 2,4").unwrap();
        assert_eq!((key.as_str(), values), ("cores", vec!["1".to_owned(), "2".into(), "4".into()]));
        for wrong in ["cores", "cores=1", "cores=1,,2", "=1,2"] {
            assert!(key_values(wrong).unwrap_err().contains("two values or more"), "{wrong}");
        }
        assert_eq!(key_values("cores=1,2,1").unwrap_err(), "1 is there twice");
    }
}
