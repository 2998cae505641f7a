//! A plan becomes a run directory with its page: what `run` does once, and a comparison several times.

use std::path::Path;

use tidemark_lab::{Finished, RunOptions, Said};
use tidemark_record::{ComparisonFile, Run, write_manifest};
use tidemark_report::html;
use tidemark_scenario::Plan;

use crate::args::RunArguments;
use crate::display::{Display, DisplayOptions};
use crate::failure::Failure;
use crate::output::Place;
use crate::results::{Outcomes, ResultArguments};
use crate::trace::{self, TraceArguments};

/// Name of the page in the run directory.
pub const PAGE: &str = "report.html";

/// What the command line asks of a plan beside its rate and length.
pub fn ask(plan: &mut Plan, arguments: &RunArguments) -> Result<(), Failure> {
    if let Some(users) = arguments.users {
        plan.override_users(users).map_err(|error| Failure::usage(error.to_string()))?;
    }
    for objective in &arguments.objectives {
        plan.add_objective(objective)
            .map_err(|error| Failure::usage(format!("--until (--objective): {error}")))?;
    }
    if arguments.abort_early {
        plan.objectives.iter_mut().for_each(|objective| objective.abort_early = true);
    }
    plan.watch.extend(arguments.watch.iter().cloned());
    arguments.reach.ask(plan, arguments.url.as_deref())
}

/// How the command line wants it carried out.
pub fn options(arguments: &RunArguments) -> Result<RunOptions, Failure> {
    Ok(RunOptions {
        out: arguments.out.clone(),
        driver: arguments.who_drives,
        keep_data: arguments.keep_data,
        url: arguments.url.clone(),
        trace: arguments.trace.options(arguments.tui)?,
        prints_to_stderr: arguments.results.take_stdout() || arguments.trace.takes_stdout(),
        before_exit: Display::before_exit(),
        ..arguments.driver.options()?
    })
}

/// A plan that was carried out.
pub struct CarriedOut {
    pub finished: Finished,
    pub run: Run,
    /// What became of its page; there is a run all the same.
    pub page: Result<(), Failure>,
}

/// Carries a plan out and writes its page.
pub fn carry_out(
    plan: Plan,
    options: RunOptions,
    display_options: DisplayOptions,
) -> Result<CarriedOut, Failure> {
    let finished = {
        let mut display = Display::new(display_options, &plan.name)?;
        tidemark_lab::run(plan, options, &mut |progress| display.show(progress))?
    };
    CarriedOut::of(finished)
}

impl CarriedOut {
    /// Writes the page of a run that is over.
    pub fn of(finished: Finished) -> Result<CarriedOut, Failure> {
        let run = open(&finished.run_dir)?;
        let page = write_page(&run, &finished.run_dir.join(PAGE));
        Ok(CarriedOut { finished, run, page })
    }
}

/// Writes the page of a run.
pub fn write_page(run: &Run, page: &Path) -> Result<(), Failure> {
    html::write(run, page).map_err(|error| Failure::unwritable(error.to_string()))
}

/// Writes a run's manifest and page again, as something was added to it.
pub fn write_again(run: &Run) -> Result<(), Failure> {
    write_manifest(&run.dir, &run.manifest).map_err(|error| Failure::unwritable(error.to_string()))?;
    write_page(run, &run.dir.join(PAGE))
}

/// Carries one of many out: no page, and nothing is shown meanwhile.
pub fn without_page(plan: Plan, options: RunOptions) -> Result<Finished, Failure> {
    let quiet = DisplayOptions { quiet: true, ..DisplayOptions::default() };
    let mut display = Display::new(quiet, &plan.name)?;
    Ok(tidemark_lab::run(plan, options, &mut |progress| display.show(progress))?)
}

/// Reads a run directory.
pub fn open(dir: &Path) -> Result<Run, Failure> {
    if ComparisonFile::is_at(dir) {
        let reason = "is of several runs that are compared; name one of those in it";
        return Err(Failure::usage(format!("{}: {reason}", dir.display())));
    }
    if tidemark_record::limit::is_at(dir) {
        let reason = "is a search for a limit; name one of the trials in it";
        return Err(Failure::usage(format!("{}: {reason}", dir.display())));
    }
    Run::open(dir).map_err(|error| Failure::usage(error.to_string()))
}

/// Shows what came of a run, its text first, and writes what was asked for; the exit status.
///
/// # Errors
/// What could not be shown or written, if something could not.
pub fn conclude(
    run: &Run,
    finished: &Finished,
    (results, traced, is_quiet): (&ResultArguments, &TraceArguments, bool),
    page: Result<(), Failure>,
    text: impl FnOnce(Place) -> Result<String, Failure>,
) -> Result<u8, Failure> {
    let place = Place::beside(results.take_stdout() || traced.takes_stdout());
    let mut outcomes = Outcomes::default();
    // the verdict first: it is there whatever becomes of the files
    if !results.are_shown_later {
        outcomes.add(text(place).and_then(|text| place.tell(&text, is_quiet)));
    }
    outcomes.add(page);
    outcomes.add(results.write(run, place));
    outcomes.add(trace::whole(finished.trace_unwritten.as_deref()));
    let said = finished.script.as_ref().map_or(Ok(Said::default()), tidemark_lab::EndedScript::done);
    let asked = said.as_ref().ok().and_then(|said| said.status);
    outcomes.add(said.map_err(Failure::broken).and_then(|said| tell(&said, place, is_quiet)));
    // what a script asks for takes no verdict back
    let status = finished.exit_status();
    outcomes.all().map(|()| if status == tidemark_lab::EXIT_PASS { asked.unwrap_or(status) } else { status })
}

/// Prints and writes what a script says of a run.
fn tell(said: &Said, place: Place, is_quiet: bool) -> Result<(), Failure> {
    for text in &said.out {
        place.tell(text, is_quiet)?;
    }
    for text in &said.err {
        Place::Stderr.tell(text, is_quiet)?;
    }
    for (file, text) in &said.files {
        let failed = |error: std::io::Error| Failure::unwritable(format!("{file}: {error}"));
        std::fs::write(file, text).map_err(failed)?;
    }
    Ok(())
}
