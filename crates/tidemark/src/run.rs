//! `tidemark run`: a scenario becomes a run directory and a summary.

use tidemark_lab::drivers::DriverKind;
use tidemark_scenario::{Experiment, Plan};

use crate::args::RunArguments;
use crate::carry_out::CarriedOut;
use crate::failure::Failure;
use crate::{carry_out, compare, import, once, output, resume};

/// Carries a scenario out, or several that are compared, and shows what came of it.
pub fn run(arguments: RunArguments) -> Result<u8, Failure> {
    arguments.results.check(arguments.trace.output())?;
    if let Some(run) = arguments.resume.clone() {
        return resume::resume(&run, arguments);
    }
    match import::loaded(&arguments)? {
        Experiment::One(mut plan) if arguments.once.is_some() => {
            carry_out::ask(&mut plan, &arguments)?;
            once::once(*plan, &arguments)
        }
        Experiment::Comparison(_) if arguments.once.is_some() => Err(Failure::usage(
            "--once is of one scenario, and this compares several; give it one of those that stand under `compare:`",
        )),
        Experiment::Comparison(_) if arguments.trace.trace.is_some() => Err(Failure::usage(
            "--trace is of one run, and this compares several; give it one of those that stand under `compare:`",
        )),
        Experiment::Comparison(_) if arguments.who_drives != DriverKind::Threads => Err(Failure::usage(
            "--driver is of one run, and this compares several; give it one of those that stand under `compare:`",
        )),
        Experiment::One(plan) => one(*plan, arguments),
        Experiment::Comparison(comparison) => compare::run(*comparison, arguments),
    }
}

/// A scenario's plan as the command line changes it.
pub fn asked(mut plan: Plan, arguments: &RunArguments) -> Result<Plan, Failure> {
    plan.override_load(arguments.constant_rate()?, arguments.duration)
        .map_err(|error| Failure::usage(error.to_string()))?;
    carry_out::ask(&mut plan, arguments)?;
    Ok(plan)
}

fn one(plan: Plan, arguments: RunArguments) -> Result<u8, Failure> {
    let plan = asked(plan, &arguments)?;
    let name = plan.name.clone();
    let prices = arguments.prices.read()?;
    prices.check_plans([&plan])?;
    let mut options = carry_out::options(&arguments)?;
    let shown = arguments.sinks.start(&options.pins)?;
    options.sinks = shown.sinks();
    let carried_out = carry_out::carry_out(plan, options, arguments.display_options());
    shown.remark();
    let carried_out = carried_out.map_err(|failure| arguments.results.without_a_run(&name, failure))?;
    conclude(carried_out, &arguments)
}

/// Shows what came of a run, and writes what was asked for.
pub fn conclude(carried_out: CarriedOut, arguments: &RunArguments) -> Result<u8, Failure> {
    let CarriedOut { finished, mut run, mut page } = carried_out;
    let (results, prices) = (&arguments.results, arguments.prices.read()?);
    if let Some(bill) = prices.bill(&run.manifest) {
        run.manifest.bill = Some(bill);
        // where the page could not be written, that is told, and this as well
        page = page.and(carry_out::write_again(&run));
    }
    let asked = (results, &arguments.trace, arguments.quiet);
    carry_out::conclude(&run, &finished, asked, page, |place| output::summary(&run, place, arguments.latency))
}
