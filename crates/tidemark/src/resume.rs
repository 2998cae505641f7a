//! `tidemark run --resume`: another coordinator goes on with a run of a fleet.

use crate::args::RunArguments;
use crate::failure::Failure;
#[cfg(feature = "fleet")]
use crate::{args::Verb, carry_out::CarriedOut, display::Display, run, scenario, words};

/// Goes on with a run whose coordinator was killed.
#[cfg(feature = "fleet")]
pub fn resume(named: &str, mut arguments: RunArguments) -> Result<u8, Failure> {
    use std::ffi::OsString;
    use std::path::Path;

    use tidemark_lab::RunOptions;
    use tidemark_record::{RUNS_DIR, resolve};
    use tidemark_scenario::Plan;
    use tidemark_scenario::outside::Origin;
    use tidemark_scenario::secrets::MASK;

    let usage = |error: tidemark_record::RecordError| Failure::usage(error.to_string());
    let dir = resolve(named, Path::new(RUNS_DIR)).map_err(usage)?;
    let begun = tidemark_record::begun(&dir).map_err(usage)?;
    let report = format!("`tidemark report {}` makes a run of what was recorded", dir.display());
    let words = words::words(begun.command.iter().map(OsString::from));
    let Ok(Some(Verb::Run(mut began))) = words::parsed(&words).map(|arguments| arguments.verb) else {
        let reason = "--resume goes on with what `tidemark run` began, and this run is another verb's";
        return Err(Failure::usage(format!("{}: {reason}; {report}", dir.display())));
    };
    let url = arguments.driver.fleet.fleet.take().or_else(|| began.driver.fleet.fleet.clone());
    let Some(url) = url else {
        return Err(Failure::usage(format!("{} was not run with --fleet; {report}", dir.display())));
    };
    if url.contains(MASK) {
        let reason = "the login of its NATS server is not written down; give --fleet URL, too";
        return Err(Failure::usage(format!("{}: {reason}", dir.display())));
    }
    // whom it reaches is said anew, all else as it was
    began.driver.fleet.fleet = Some(url);
    began.driver.fleet.nats = arguments.driver.fleet.nats.clone();
    let plan = |from: &Origin| -> Result<Plan, String> {
        let mut plan = scenario::again(from)?;
        for objective in &began.objectives {
            plan.add_objective(objective)?;
        }
        plan.objectives.iter_mut().for_each(|objective| objective.abort_early |= began.abort_early);
        plan.watch.extend(began.watch.iter().cloned());
        Ok(plan)
    };
    let mut options = RunOptions {
        url: began.url.clone(),
        prints_to_stderr: arguments.results.take_stdout(),
        command_line: begun.command.clone(),
        before_exit: Display::before_exit(),
        ..began.driver.options()?
    };
    let shown = arguments.sinks.start(&options.pins)?;
    options.sinks = shown.sinks();
    let resumed = {
        let mut display = Display::new(arguments.display_options(), &begun.scenario)?;
        tidemark_lab::resume(&dir, options, &plan, &mut |progress| display.show(progress))
    };
    shown.remark();
    let results = &arguments.results;
    let finished = resumed.map_err(|error| results.without_a_run(&begun.scenario, error.into()))?;
    run::conclude(CarriedOut::of(finished)?, &arguments)
}

/// There is no fleet in this program.
#[cfg(not(feature = "fleet"))]
pub fn resume(_: &str, _: RunArguments) -> Result<u8, Failure> {
    Err(crate::fleet::without_fleets())
}
