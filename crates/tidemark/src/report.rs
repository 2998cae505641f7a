//! `tidemark report`: a run is shown again, or what JMeter measured.

use std::path::Path;

use tidemark_record::{ComparisonFile, RUNS_DIR, resolve};
use tidemark_report::{blocks, html, jmeter, markdown, still};

use crate::args::ReportArguments;
use crate::failure::Failure;
use crate::output::Place;
use crate::results::Outcomes;
use crate::{carry_out, compare, limit, output, results};

/// Shows a run on standard output, or writes what is asked for to files.
pub fn report(arguments: &ReportArguments) -> Result<u8, Failure> {
    let page = arguments.html.as_deref();
    arguments.results.check(page.map(|file| ("--html", file)))?;
    if arguments.prices.prices.is_some() && arguments.jmeter.is_some() {
        let reason =
            "JMeter's results do not have the CPU time that a price is reckoned with; leave out --jmeter";
        return Err(Failure::usage(format!("--prices: {reason}")));
    }
    if let Some(dir) = &arguments.jmeter {
        return of_jmeter(dir, arguments);
    }
    // there is one without --jmeter
    let run = arguments.run.as_deref().unwrap_or_default();
    let dir = resolve(run, Path::new(RUNS_DIR)).map_err(|error| Failure::usage(error.to_string()))?;
    if ComparisonFile::is_at(&dir) {
        return compare::report(&dir, arguments);
    }
    if tidemark_record::limit::is_at(&dir) {
        return limit::report(&dir, arguments);
    }
    let mut run = carry_out::open(&dir)?;
    if arguments.prices.prices.is_some() {
        let prices = arguments.prices.read()?;
        prices.check(&[&run.manifest])?;
        run.manifest.bill = prices.bill(&run.manifest);
    }
    if !run.missing.is_empty() {
        let missing = run.missing.join(", ");
        output::remark(&format!("{} has no {missing}; shown without", dir.display()));
    }
    let results = &arguments.results;
    let mut outcomes = Outcomes::default();
    let place = Place::beside(results.take_stdout() || page.is_some_and(results::is_stdout));
    outcomes.add(results.write_in_detail(&run, place, arguments.latency));
    outcomes.add(match &arguments.html {
        Some(page) if results::is_stdout(page) => {
            let page = html::page(&run).map_err(|error| Failure::broken(error.to_string()));
            page.and_then(|page| output::print(&page))
        }
        Some(page) => carry_out::write_page(&run, page).and_then(|()| match results.take_stdout() {
            true => Ok(()),
            false => output::print(&format!("report: {}\n", page.display())),
        }),
        // whoever asks for a file needs no text
        None if results.any() => Ok(()),
        None => output::summary(&run, Place::Stdout, arguments.latency)
            .and_then(|text| Place::Stdout.tell(&text, false)),
    });
    outcomes.all().map(|()| tidemark_lab::EXIT_PASS)
}

/// Shows what JMeter and nmon wrote below a directory.
fn of_jmeter(dir: &Path, arguments: &ReportArguments) -> Result<u8, Failure> {
    if let Some(flag) = arguments.results.any_of_one_run().or(arguments.latency.then_some("--latency")) {
        let reason = "is of a run of Tidemark; of JMeter's results there are --json, --markdown and --html";
        return Err(Failure::usage(format!("{flag} {reason}")));
    }
    let written = [&arguments.html, &arguments.results.json, &arguments.results.markdown];
    if let Some(file) = written.into_iter().flatten().find(|file| is_result(file, dir)) {
        let reason = "is a file that would be read; give the report another name";
        return Err(Failure::usage(format!("{} {reason}", file.display())));
    }
    let found = jmeter::read(dir).map_err(|error| Failure::usage(error.to_string()))?;
    let figures = found.figures();
    let markdown = || markdown::render(&blocks::jmeter(&figures, true));
    let page = || still::jmeter(&figures);
    arguments.places().put(&blocks::jmeter(&figures, false), || figures.json(), markdown, page)?;
    Ok(tidemark_lab::EXIT_PASS)
}

/// Whether this is a file below a directory that has the name of results.
fn is_result(file: &Path, dir: &Path) -> bool {
    let of_name = file.extension().and_then(|name| name.to_str()).unwrap_or_default();
    let is_named = ["jtl", "csv", "xml", "log", "nmon"].iter().any(|name| of_name.eq_ignore_ascii_case(name));
    let whole = |path: &Path| path.canonicalize().ok();
    is_named && whole(file).zip(whole(dir)).is_some_and(|(file, dir)| file.starts_with(dir))
}
