//! `tidemark verify`: whether a run lost anything, asked once more.

use std::path::Path;

use tidemark_lab::{EXIT_INTERRUPTED, Progress, verify};
use tidemark_record::{RUNS_DIR, resolve};

use crate::args::VerifyArguments;
use crate::display::{Display, DisplayOptions};
use crate::failure::Failure;
use crate::output::Place;
use crate::results::{Outcomes, ResultArguments};
use crate::{carry_out, output, systems};

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
        verify::again(&mut run, arguments.url.as_deref(), &arguments.secrets, systems::STORES, &mut tell)?
    };
    let page = dir.join(carry_out::PAGE);
    let place = Place::beside(results.take_stdout());
    let mut outcomes = Outcomes::default();
    outcomes.add(output::summary(&run, place, false).and_then(|text| place.tell(&text, arguments.quiet)));
    outcomes.add(carry_out::write_page(&run, &page));
    outcomes.add(results.write(&run, place));
    outcomes.all()?;
    let stopped = run.manifest.summary.ledger.as_ref().is_some_and(verify::was_stopped);
    Ok(if stopped { EXIT_INTERRUPTED } else { status })
}
