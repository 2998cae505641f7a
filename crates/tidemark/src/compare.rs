//! Comparisons: `tidemark run` of a file that names several scenarios, and `tidemark report` of what it left.

use std::path::Path;

use tidemark_lab::{EXIT_PASS, Turn};
use tidemark_record::{ComparedRuns, Part};
use tidemark_report::comparison::Compared;
use tidemark_report::{html, text, units};
use tidemark_scenario::Comparison;

use crate::args::{ReportArguments, RunArguments};
use crate::failure::Failure;
use crate::{carry_out, output};

/// Carries out all that is compared, and shows how they compare.
pub fn run(mut comparison: Comparison, arguments: RunArguments) -> Result<u8, Failure> {
    check(arguments.results.any().or(arguments.latency.then_some("--latency")))?;
    let rate = arguments.constant_rate()?;
    for variant in &mut comparison.variants {
        variant
            .plan
            .override_load(None, arguments.duration)
            .map_err(|error| Failure::usage(format!("{}: {error}", variant.name)))?;
        carry_out::ask(&mut variant.plan, &arguments).map_err(|failure| Failure {
            message: format!("{}: {failure}", variant.name),
            ..failure
        })?;
    }
    if rate.is_some()
        && let Some(other) = comparison.variants.iter().find(|v| v.plan.requests_per_session().is_none())
    {
        let reason = "do not all make the same number of requests, so that --rate cannot be equal for all";
        return Err(Failure::usage(format!("sessions of {} {reason}", other.name)));
    }
    let mut options = carry_out::options(&arguments)?;
    let sinks = arguments.sinks.start(&options.pins)?;
    options.sinks = sinks.sinks();
    let compared =
        tidemark_lab::compare(&comparison, &options, rate, &mut |turn, plan, options| {
            if !arguments.quiet && !arguments.tui {
                output::remark(&announced(turn));
            }
            carry_out::carry_out(plan, options, arguments.watch_options()).map(|(finished, _)| finished)
        })?;
    sinks.remark();
    let (figures, runs) = open(&compared.dir)?;
    write(&figures, &runs, &compared.dir.join(carry_out::PAGE))?;
    output::print(&format!("{}\n", shown(&figures, arguments.json).trim_end()))?;
    Ok(compared.exit_status)
}

/// Shows a comparison again.
pub fn report(dir: &Path, arguments: &ReportArguments) -> Result<u8, Failure> {
    check(arguments.results.any().or(arguments.latency.then_some("--latency")))?;
    let (figures, runs) = open(dir)?;
    if let Some(page) = &arguments.html {
        write(&figures, &runs, page)?;
    }
    match &arguments.html {
        Some(page) if !arguments.json => output::print(&format!("report: {}\n", page.display()))?,
        _ => output::print(&format!("{}\n", shown(&figures, arguments.json).trim_end()))?,
    }
    Ok(EXIT_PASS)
}

/// What is of one run cannot be had of several.
fn check(wanted: Option<&'static str>) -> Result<(), Failure> {
    match wanted {
        None => Ok(()),
        Some(flag) => Err(Failure::usage(format!(
            "{flag} is of one run, and this compares several; name one of those: tidemark report DIR/1-… {flag}"
        ))),
    }
}

fn open(dir: &Path) -> Result<(Compared, ComparedRuns), Failure> {
    let runs = ComparedRuns::open(dir).map_err(|error| Failure::usage(error.to_string()))?;
    let figures = Compared::of(&runs).map_err(|error| Failure::broken(error.to_string()))?;
    Ok((figures, runs))
}

fn write(figures: &Compared, runs: &ComparedRuns, page: &Path) -> Result<(), Failure> {
    html::write_comparison(figures, runs, page).map_err(|error| Failure::unwritable(error.to_string()))
}

fn shown(figures: &Compared, json: bool) -> String {
    if json { figures.json() } else { text::comparison::summary(figures, output::style()) }
}

/// `2 of 4: WebSocket, at 49,000/s`.
fn announced(turn: &Turn) -> String {
    let rate = match (turn.part, turn.rate_per_s) {
        (Part::EqualRate | Part::OwnRate, Some(rate)) => format!(", at {}/s", units::three_digits(rate)),
        _ => String::new(),
    };
    format!("{} of {}: {}{rate}", turn.done + 1, turn.of, turn.variant)
}
