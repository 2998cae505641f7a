//! `tidemark verify`: whether a run lost anything, asked once more.

use std::path::Path;

use tidemark_lab::{EXIT_INTERRUPTED, Progress, verify};
use tidemark_record::{RUNS_DIR, resolve};
use tidemark_report::html;

use crate::args::VerifyArguments;
use crate::display::{Display, DisplayOptions};
use crate::failure::Failure;
use crate::output::Place;
use crate::results::ResultArguments;
use crate::{carry_out, output};

/// Verifies a run and shows it.
pub fn verify(arguments: &VerifyArguments) -> Result<u8, Failure> {
    let results = ResultArguments { json: arguments.json.clone(), ..ResultArguments::default() };
    results.check(None)?;
    let dir =
        resolve(&arguments.run, Path::new(RUNS_DIR)).map_err(|error| Failure::usage(error.to_string()))?;
    let mut run = carry_out::open(&dir)?;
    let status = {
        let display_options = DisplayOptions { quiet: arguments.quiet, ..DisplayOptions::default() };
        let mut display = Display::new(display_options, &run.manifest.scenario)?;
        let mut tell =
            |step: verify::Step| display.show(Progress::Verifying { read: step.read, of: step.of });
        verify::again(&mut run, arguments.url.as_deref(), &arguments.secrets, &mut tell)?
    };
    let page = dir.join(carry_out::PAGE);
    html::write(&run, &page).map_err(|error| Failure::unwritable(error.to_string()))?;
    let place = Place::beside(results.take_stdout());
    let written = results.write(&run, place);
    place.tell(&output::summary(&run, place, false)?, arguments.quiet)?;
    written?;
    let stopped = run.manifest.summary.ledger.as_ref().is_some_and(verify::was_stopped);
    Ok(if stopped { EXIT_INTERRUPTED } else { status })
}
