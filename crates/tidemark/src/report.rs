//! `tidemark report`: a run is shown again.

use std::path::Path;

use tidemark_record::{Comparison, RUNS_DIR, resolve};
use tidemark_report::{html, json};

use crate::args::ReportArguments;
use crate::failure::Failure;
use crate::{carry_out, compare, output};

/// Shows a run on standard output, or writes what is asked for to files.
pub fn report(arguments: &ReportArguments) -> Result<u8, Failure> {
    arguments.results.check(arguments.json)?;
    let dir =
        resolve(&arguments.run, Path::new(RUNS_DIR)).map_err(|error| Failure::usage(error.to_string()))?;
    if Comparison::is_at(&dir) {
        return compare::report(&dir, arguments);
    }
    let run = carry_out::open(&dir)?;
    if !run.missing.is_empty() {
        let missing = run.missing.join(", ");
        output::remark(&format!("{} has no {missing}; shown without", dir.display()));
    }
    if let Some(page) = &arguments.html {
        html::write(&run, page).map_err(|error| Failure::unwritable(error.to_string()))?;
    }
    let results = &arguments.results;
    results.write(&run, arguments.json)?;
    if arguments.json {
        output::print(&format!("{}\n", json::summary(&run).trim_end()))?;
    } else if let Some(page) = &arguments.html {
        output::print(&format!("report: {}\n", page.display()))?;
    } else if !results.markdown_to_stdout() && !results.any_file() {
        output::print(&format!("{}\n", output::summary(&run, arguments.latency)?.trim_end()))?;
    }
    Ok(tidemark_lab::EXIT_PASS)
}
