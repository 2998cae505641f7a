//! `tidemark driver`: drives for another process of this program, which tells it what.

use std::ffi::OsString;
use std::io;

use tidemark_lab::drivers::{self, Setup};
use tidemark_lab::{EXIT_PASS, RunOptions};
use tidemark_scenario::{Experiment, Plan};

use crate::args::Verb;
use crate::failure::Failure;
use crate::{carry_out, run, scenario, words};

/// Drives until the load is over, or standard input ends. Standard output is what it hands over.
pub fn drive() -> Result<u8, Failure> {
    drivers::serve(|setup| plan(setup).map_err(|failure| failure.message), io::stdin(), io::stdout())
        .map_err(|error| Failure::broken(format!("nobody takes what is handed over: {error}")))?;
    Ok(EXIT_PASS)
}

/// The plan of the run that it drives for.
fn plan(setup: &Setup) -> Result<(Plan, RunOptions), Failure> {
    let words = words::words(setup.words.iter().map(OsString::from));
    let Ok(Some(Verb::Run(arguments))) = words::parsed(&words).map(|arguments| arguments.verb) else {
        return Err(Failure::usage("a driver of its own is for `tidemark run`"));
    };
    match scenario::of_text(&arguments.scenario, &setup.scenario, &arguments.settings)? {
        Experiment::One(plan) => Ok((run::asked(*plan, &arguments)?, carry_out::options(&arguments)?)),
        Experiment::Comparison(_) => Err(Failure::usage("a comparison is not driven at once")),
    }
}
