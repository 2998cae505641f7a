//! `tidemark hit`: one URL, a few flags, the same engine, record and report as a scenario.

pub mod args;
mod curl;
mod form;
mod list;
mod pattern;
mod recipe;
mod redis;
mod shell;
mod target;

use std::path::Path;

use args::HitArguments;
use tidemark_lab::{LabError, Progress, RunOptions};
use tidemark_report::text::quick::{self, Quick};
use tidemark_scenario::{Diagnostics, Plan, check_text};

use crate::display::{Display, DisplayOptions};
use crate::failure::Failure;
use crate::output::OwnDir;
use crate::{carry_out, output};

/// What the scenario is called in messages.
const NAME: &str = "hit";

/// Hits a URL and shows what came of it.
pub fn hit(arguments: &HitArguments) -> Result<u8, Failure> {
    arguments.results.check(arguments.trace.output())?;
    let text = recipe::scenario(arguments)?.to_yaml();
    let (plan, diagnostics) = check_text(NAME, &text, Path::new("."), &[]);
    let plan = plan.ok_or_else(|| failure(&diagnostics))?;
    if arguments.print_scenario {
        output::print(&text)?;
        return Ok(tidemark_lab::EXIT_PASS);
    }
    let display_options =
        DisplayOptions { tui: arguments.tui, quiet: arguments.quiet, goal: arguments.requests };
    let mut display = Display::new(display_options, &plan.name)?;
    let dir = run_dir(arguments)?;
    let driver = arguments.driver.options()?;
    let shown = arguments.sinks.start(&driver.pins)?;
    let options = RunOptions {
        out: dir.path.clone(),
        threads: threads(driver.threads, &plan),
        sinks: shown.sinks(),
        trace: arguments.trace.options(arguments.tui)?,
        remember: !dir.temporary,
        before_exit: Display::before_exit(),
        ..driver
    };
    let finished =
        tidemark_lab::run(plan, options, &mut |progress| display.show(in_words_of_a_hit(progress)));
    // the terminal is given back before anything is said
    drop(display);
    shown.remark();
    let finished = finished.map_err(|error| match error {
        LabError::Interrupted(_) if dir.temporary => LabError::Interrupted(None),
        error => error,
    });
    let results = &arguments.results;
    let finished = finished.map_err(|error| {
        let failure = Failure::from(error);
        let message = in_flags(&failure.message);
        results.without_a_run(NAME, Failure { message, ..failure })
    })?;

    let mut run = carry_out::open(&finished.run_dir)?;
    let notes = run.manifest.notes.iter_mut().chain(&mut run.manifest.summary.verdict.reasons);
    notes.for_each(|note| *note = in_flags(note));
    let mut page = Ok(());
    if dir.temporary {
        run.manifest.summary.run_dir.clear();
    } else {
        page = carry_out::write_page(&run, &finished.run_dir.join(carry_out::PAGE));
    }
    let shown = Quick { percentiles: arguments.latency, kept: !dir.temporary };
    let asked = (results, &arguments.trace, arguments.quiet);
    carry_out::conclude(&run, &finished, asked, page, |place| {
        quick::summary(&run, place.style(), shown).map_err(|error| Failure::broken(error.to_string()))
    })
}

/// A session of a hit is one request.
fn in_words_of_a_hit(progress: Progress) -> Progress {
    match progress {
        Progress::Phase { name, level, duration } => {
            let level = level.replace("sessions/s", "requests/s");
            Progress::Phase { name, level, duration }
        }
        other => other,
    }
}

/// What is wrong with the flags, in words about them and not about the scenario that they stand for.
fn failure(diagnostics: &Diagnostics) -> Failure {
    let messages: Vec<&str> = diagnostics.items().iter().map(|item| item.message.as_str()).collect();
    Failure::usage(in_flags(&messages.join("\n       ")))
}

/// What is said in the keys of a scenario, in the flags of a hit.
fn in_flags(text: &str) -> String {
    const WORDS: [(&str, &str); 5] = [
        ("`limits: connections`", "-c"),
        ("`limits: pipeline`", "--pipeline"),
        ("`limits: streams`", "--streams"),
        ("connections that the scenario names", "connections that -c names"),
        (
            "`follow: 5` goes there, `check: {status: 2xx}` makes failures",
            "a hit of `curl -L …` goes there, --expect 2xx makes failures",
        ),
    ];
    WORDS.iter().fold(text.to_owned(), |text, (key, flag)| text.replace(key, flag))
}

/// A thread without a connection would be of no use.
fn threads(asked: Option<usize>, plan: &Plan) -> Option<usize> {
    let connections = plan.limits.connections;
    match asked {
        Some(threads) => Some(threads.min(connections)),
        None if connections == 1 => Some(1),
        None => None,
    }
}

/// Where the run goes.
fn run_dir(arguments: &HitArguments) -> Result<OwnDir, Failure> {
    if let Some(save) = &arguments.save {
        return Ok(OwnDir { path: save.clone(), temporary: false });
    }
    OwnDir::temporary("hit", "--save=DIR")
}
