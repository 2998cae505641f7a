//! `tidemark history`: the runs of a folder over time.

use std::path::PathBuf;

use clap::Args;
use tidemark_lab::EXIT_PASS;
use tidemark_record::RUNS_DIR;
use tidemark_report::history::History;
use tidemark_report::{blocks, still, text};

use crate::failure::Failure;
use crate::output::Place;
use crate::results::{self, Outcomes, ResultArguments};

/// `tidemark history`
#[derive(Debug, Args)]
#[command(after_help = "\
Runs stand in one line only where scenario, load, system, settings and machine are the same. Each figure has a bar for each \
run, and a mark where it changed to stay, with the revisions before and behind. A change needs three runs on either side.

Examples:
  tidemark history
  tidemark history runs --scenario airline --html history.html
  tidemark history --json")]
pub struct HistoryArguments {
    /// The folder of the runs
    #[arg(value_name = "FOLDER", default_value = RUNS_DIR)]
    pub folder: PathBuf,
    /// Only runs of this scenario, by its name
    #[arg(long, value_name = "NAME")]
    pub scenario: Option<String>,
    /// Write one JSON object in place of the text, to standard output unless =FILE is said
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true, default_missing_value = "-")]
    pub json: Option<PathBuf>,
    /// Write a page with charts in place of the text; - is standard output
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
}

/// Shows how figures went.
pub fn history(arguments: &HistoryArguments) -> Result<u8, Failure> {
    let written = ResultArguments { json: arguments.json.clone(), ..ResultArguments::default() };
    written.check(arguments.html.as_deref().map(|file| ("--html", file)))?;
    let mut history = History::read(&arguments.folder).map_err(|error| Failure::usage(error.to_string()))?;
    if let Some(name) = &arguments.scenario {
        history = history.of_scenario(name).map_err(Failure::usage)?;
    }
    let mut outcomes = Outcomes::default();
    if let Some(file) = &arguments.json {
        outcomes.add(results::write("--json", file, &history.json()));
    }
    if let Some(file) = &arguments.html {
        outcomes.add(results::write("--html", file, &still::history(&history)));
    }
    // whoever asks for a file needs no text
    if arguments.json.is_none() && arguments.html.is_none() {
        let summary = text::render(&blocks::history(&history), Place::Stdout.style());
        outcomes.add(Place::Stdout.tell(&summary, false));
    }
    outcomes.all().map(|()| EXIT_PASS)
}
