//! `tidemark run`: a scenario becomes a run directory and a summary.

use std::path::Path;

use tidemark_lab::{Pins, RunOptions};
use tidemark_record::Run;
use tidemark_report::{html, json};

use crate::args::RunArguments;
use crate::failure::Failure;
use crate::results::ResultArguments;
use crate::watch::{Watch, Wish};
use crate::{output, report, scenario};

/// Name of the page in the run directory.
pub const PAGE: &str = "report.html";

/// Carries a scenario out and shows what came of it.
pub fn run(arguments: RunArguments) -> Result<u8, Failure> {
    let results = arguments.results;
    check_results(&results, arguments.json)?;
    let mut plan = scenario::load(&arguments.scenario, &arguments.settings)?;
    plan.override_load(arguments.rate, arguments.duration)
        .map_err(|error| Failure::usage(error.to_string()))?;
    if arguments.abort_early {
        plan.objectives.iter_mut().for_each(|objective| objective.abort_early = true);
    }
    arguments.reach.apply(&mut plan.system);
    if let Some(streams) = arguments.reach.streams {
        plan.limits.streams = streams.into();
    }
    let options = RunOptions {
        out: arguments.out,
        threads: arguments.threads.map(usize::from),
        pins: Pins::parse(&arguments.pins).map_err(|error| Failure::usage(format!("--pin: {error}")))?,
        io: arguments.io,
        seed: arguments.seed,
        keep_data: arguments.keep_data,
        url: arguments.url,
        before_exit: Watch::before_exit(),
        ..RunOptions::default()
    };
    let finished = {
        let wish = Wish { tui: arguments.tui, quiet: arguments.quiet, goal: None };
        let mut watch = Watch::new(wish, &plan.name)?;
        tidemark_lab::run(plan, options, &mut |progress| watch.show(progress))?
    };

    let run = open(&finished.run_dir)?;
    let page = finished.run_dir.join(PAGE);
    html::write(&run, &page).map_err(|error| Failure::unwritable(error.to_string()))?;
    let written = results.write(&run, arguments.json);
    // the text ends with the place of the page, which is why that is written first
    if !results.markdown_to_stdout() {
        let text = if arguments.json { json::summary(&run) } else { report::text(&run) };
        output::print(&format!("{}\n", text.trim_end()))?;
    }
    written?;
    Ok(finished.exit_status())
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
    Run::open(dir).map_err(|error| Failure::usage(error.to_string()))
}
