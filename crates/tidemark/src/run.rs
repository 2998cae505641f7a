//! `tidemark run`: a scenario becomes a run directory and a summary.

use std::path::Path;

use tidemark_lab::{Finished, Pins, RunOptions};
use tidemark_record::{Comparison, Run};
use tidemark_report::{html, json};
use tidemark_scenario::{Experiment, Plan};

use crate::args::RunArguments;
use crate::failure::Failure;
use crate::results::ResultArguments;
use crate::watch::{Watch, WatchOptions};
use crate::{compare, output, report, scenario};

/// Name of the page in the run directory.
pub const PAGE: &str = "report.html";

/// Carries a scenario out, or several that are compared, and shows what came of it.
pub fn run(arguments: RunArguments) -> Result<u8, Failure> {
    check_results(&arguments.results, arguments.json)?;
    match scenario::load(&arguments.scenario, &arguments.settings)? {
        Experiment::One(plan) => one(*plan, arguments),
        Experiment::Comparison(comparison) => compare::run(comparison, arguments),
    }
}

fn one(mut plan: Plan, arguments: RunArguments) -> Result<u8, Failure> {
    plan.override_load(arguments.rate, arguments.duration)
        .map_err(|error| Failure::usage(error.to_string()))?;
    ask(&mut plan, &arguments);
    let name = plan.name.clone();
    let mut options = self::options(&arguments)?;
    let shown = arguments.sinks.start(&options.pins)?;
    options.sinks = shown.sinks();
    let carried_out = carry_out(plan, options, arguments.watch_options());
    shown.remark();
    let results = arguments.results;
    let (finished, run) =
        carried_out.map_err(|failure| results.without_a_run(&name, arguments.json, failure))?;
    let written = results.write(&run, arguments.json);
    // the text ends with the place of the page, which is why that is written first
    if !results.markdown_to_stdout() {
        let text = if arguments.json { json::summary(&run) } else { report::text(&run) };
        output::print(&format!("{}\n", text.trim_end()))?;
    }
    written?;
    Ok(finished.exit_status())
}

/// What the command line asks of a plan beside its load.
pub fn ask(plan: &mut Plan, arguments: &RunArguments) {
    if arguments.abort_early {
        plan.objectives.iter_mut().for_each(|objective| objective.abort_early = true);
    }
    arguments.reach.apply(&mut plan.system);
    if let Some(streams) = arguments.reach.streams {
        plan.limits.streams = streams.into();
    }
}

/// How the command line wants it carried out.
pub fn options(arguments: &RunArguments) -> Result<RunOptions, Failure> {
    Ok(RunOptions {
        out: arguments.out.clone(),
        threads: arguments.threads.map(usize::from),
        pins: Pins::parse(&arguments.pins).map_err(|error| Failure::usage(format!("--pin: {error}")))?,
        io: arguments.io,
        spin: arguments.spin,
        timestamps: arguments.timestamps,
        seed: arguments.seed,
        keep_data: arguments.keep_data,
        url: arguments.url.clone(),
        before_exit: Watch::before_exit(),
        ..RunOptions::default()
    })
}

/// Carries a plan out and writes its page.
pub fn carry_out(
    plan: Plan,
    options: RunOptions,
    watch_options: WatchOptions,
) -> Result<(Finished, Run), Failure> {
    let finished = {
        let mut watch = Watch::new(watch_options, &plan.name)?;
        tidemark_lab::run(plan, options, &mut |progress| watch.show(progress))?
    };
    let run = open(&finished.run_dir)?;
    html::write(&run, &finished.run_dir.join(PAGE))
        .map_err(|error| Failure::unwritable(error.to_string()))?;
    Ok((finished, run))
}

/// Finds mistakes in what is asked for beside the run.
pub fn check_results(results: &ResultArguments, json: bool) -> Result<(), Failure> {
    if json && results.markdown_to_stdout() {
        let reason =
            "--json and --markdown - both want standard output; give one of them a file: --markdown FILE";
        return Err(Failure::usage(reason));
    }
    results.check()
}

/// Reads a run directory.
pub fn open(dir: &Path) -> Result<Run, Failure> {
    if Comparison::is_at(dir) {
        let reason = "is of several runs that are compared; name one of those in it";
        return Err(Failure::usage(format!("{}: {reason}", dir.display())));
    }
    Run::open(dir).map_err(|error| Failure::usage(error.to_string()))
}
