//! Comparisons: `tidemark compare`; `tidemark run` of a file that names several scenarios, and `tidemark report` of what
//! either left.

pub mod args;
mod fresh;
mod shown;
mod sides;
mod stored;

use std::path::Path;
use std::time::Duration;

use tidemark_lab::{EXIT_FAIL, EXIT_INVALID, EXIT_PASS, Turn};
use tidemark_record::summary::Status;
use tidemark_record::{ComparedRuns, ComparisonFile, Part};
use tidemark_report::comparison::Compared;
use tidemark_report::{blocks, html, text, units};
use tidemark_scenario::Comparison;
use tidemark_scenario::units::Time;

use crate::args::{ReportArguments, RunArguments};
use crate::failure::Failure;
use crate::output::Place;
use crate::results::{Outcomes, ResultArguments};
use crate::{carry_out, output, results};
use args::CompareArguments;

/// `tidemark compare`: holds runs that are there against each other, or has sides run in turn.
pub fn compare(arguments: &CompareArguments) -> Result<u8, Failure> {
    arguments.check()?;
    let prices = arguments.prices.read()?;
    match &arguments.what[..] {
        [one] if arguments.has_sides() => fresh::compare(one, &prices, arguments),
        [one] => match stored::comparison(one)? {
            Some(dir) => {
                check_stored(arguments)?;
                stored::show(&dir, &prices, arguments)
            }
            None => fresh::compare(one, &prices, arguments),
        },
        _ if arguments.has_sides() => Err(Failure::usage(
            "--vs, --command, --url, --revision and --baseline are for one scenario, and these are several; runs that are there are \
             compared by their names alone",
        )),
        sides => {
            check_stored(arguments)?;
            stored::compare(sides, &prices, arguments)
        }
    }
}

/// Runs that are there cannot be had otherwise.
fn check_stored(arguments: &CompareArguments) -> Result<(), Failure> {
    match arguments.of_sides_that_run() {
        Some(flag) => Err(Failure::usage(format!(
            "{flag} is of sides that run here, and these are runs that are there; leave it out, or name a scenario"
        ))),
        None => Ok(()),
    }
}

/// Carries out all that is compared, and shows how they compare.
pub fn run(mut comparison: Comparison, arguments: RunArguments) -> Result<u8, Failure> {
    check(arguments.results.any_but_json().or(arguments.latency.then_some("--latency")))?;
    let rate = arguments.constant_rate()?;
    let prices = arguments.prices.read()?;
    for side in &mut comparison.sides {
        side.plan
            .override_load(None, arguments.duration)
            .map_err(|error| Failure::usage(format!("{}: {error}", side.name)))?;
        carry_out::ask(&mut side.plan, &arguments)
            .map_err(|failure| Failure { message: format!("{}: {failure}", side.name), ..failure })?;
    }
    if let Some(other) = Comparison::uneven(&comparison.sides).filter(|_| rate.is_some()) {
        let reason = "do not all make the same number of requests, and other sides are of other scenarios, so that --rate \
                      cannot be equal for all";
        return Err(Failure::usage(format!("sessions of {other} {reason}")));
    }
    prices.check_plans(comparison.sides.iter().map(|side| &side.plan))?;
    let mut options = carry_out::options(&arguments)?;
    let sinks = arguments.sinks.start(&options.pins)?;
    options.sinks = sinks.sinks();
    let mut outcomes = Outcomes::default();
    let compared = tidemark_lab::compare(&comparison, &options, rate, &mut |turn, plan, options| {
        if !arguments.quiet && !arguments.tui {
            if turn.done == 0 {
                output::remark(&length(turn));
            }
            output::remark(&announced(turn));
        }
        let one = carry_out::carry_out(plan, options, arguments.display_options())?;
        outcomes.add(one.page);
        Ok::<_, Failure>(one.finished)
    })?;
    sinks.remark();
    let (mut figures, runs) = open(&compared.dir)?;
    figures.bills = prices.bills_now(&compared.dir);
    outcomes.add(show(&figures, &arguments.results, arguments.quiet));
    outcomes.add(write(&figures, &runs, &compared.dir.join(carry_out::PAGE)));
    outcomes.all().map(|()| exit_status(compared.exit_status, figures.status()))
}

/// The exit status of a comparison: that of its table. A run of which it says that nothing was measured neither passes nor
/// fails.
fn exit_status(of_runs: u8, of_table: Option<Status>) -> u8 {
    match (of_runs, of_table) {
        (EXIT_PASS | EXIT_FAIL, Some(Status::Invalid)) => EXIT_INVALID,
        _ => of_runs,
    }
}

/// Shows a comparison again.
pub fn report(dir: &Path, arguments: &ReportArguments) -> Result<u8, Failure> {
    let record = ComparisonFile::open(dir).map_err(|error| Failure::usage(error.to_string()))?;
    let of_one_run = match record.in_rounds {
        Some(_) => arguments.results.any_of_one_run(),
        None => arguments.results.any_but_json(),
    };
    check(of_one_run.or(arguments.latency.then_some("--latency")))?;
    let bills = arguments.prices.read()?.bills_of(dir)?;
    if record.in_rounds.is_some() {
        return shown::report(dir, &record, bills, arguments);
    }
    let (mut figures, runs) = open(dir)?;
    figures.bills = bills;
    let mut outcomes = Outcomes::default();
    outcomes.add(match &arguments.html {
        Some(page) if results::is_stdout(page) => {
            let page = html::comparison(&figures, &runs).map_err(|error| Failure::broken(error.to_string()));
            page.and_then(|page| output::print(&page))
        }
        Some(page) => write(&figures, &runs, page).and_then(|()| match arguments.results.take_stdout() {
            true => Ok(()),
            false => output::print(&format!("report: {}\n", page.display())),
        }),
        // whoever asks for a file needs no text
        None => return show(&figures, &arguments.results, true).map(|()| EXIT_PASS),
    });
    if let Some(file) = &arguments.results.json {
        outcomes.add(results::write("--json", file, &format!("{}\n", figures.json().trim_end())));
    }
    outcomes.all().map(|()| EXIT_PASS)
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

/// The JSON where it is asked for, and the text where that leaves room for it.
fn show(figures: &Compared, results: &ResultArguments, quiet: bool) -> Result<(), Failure> {
    let place = Place::beside(results.take_stdout());
    let mut outcomes = Outcomes::default();
    if !results.are_shown_later {
        outcomes.add(place.tell(&text::render(&blocks::compared(figures), place.style()), quiet));
    }
    if let Some(file) = &results.json {
        outcomes.add(results::write("--json", file, &format!("{}\n", figures.json().trim_end())));
    }
    outcomes.all()
}

/// `40 runs, 8m of load; starting and filling what each needs comes on top`.
fn length(turn: &Turn) -> String {
    let whole = Time(Duration::from_secs(turn.planned.as_secs_f64().round() as u64));
    let runs = turn.of;
    format!("{runs} runs, {whole} of load; starting and filling what each needs comes on top")
}

/// `2 of 4: WebSocket, at 49,000/s`.
fn announced(turn: &Turn) -> String {
    let rate = match (turn.part, turn.rate_per_s) {
        (Part::EqualRate | Part::OwnRate, Some(rate)) => format!(", at {}/s", units::three_digits(rate)),
        _ => String::new(),
    };
    format!("{} of {}: {}{rate}", turn.done + 1, turn.of, turn.side)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_not_measured_neither_passes_nor_fails() {
        let [pass, fail, invalid] = [Status::Pass, Status::Fail, Status::Invalid].map(Some);
        for (of_runs, of_table, wanted) in [
            (EXIT_PASS, pass, EXIT_PASS),
            (EXIT_PASS, invalid, EXIT_INVALID),
            (EXIT_FAIL, invalid, EXIT_INVALID),
            (EXIT_FAIL, fail, EXIT_FAIL),
            (EXIT_INVALID, pass, EXIT_INVALID),
            (130, invalid, 130),
        ] {
            assert_eq!(exit_status(of_runs, of_table), wanted, "{of_runs} {of_table:?}");
        }
    }

    #[test]
    fn how_long_it_takes_is_said_at_the_start() {
        let turn = Turn {
            side: "Redis".into(),
            part: Part::OwnLoad,
            round: 1,
            rate_per_s: None,
            done: 0,
            of: 40,
            planned: Duration::from_secs(480),
        };
        assert!(length(&turn).starts_with("40 runs, 8m of load; "), "{}", length(&turn));
    }
}
