//! `tidemark hit`: one URL, a few flags, the same engine, record and report as a scenario.

pub mod args;
pub mod grpc;
mod pattern;
mod recipe;
mod redis;

use std::path::Path;

use args::HitArguments;
use tidemark_lab::{LabError, Listed, Progress, RunOptions};
use tidemark_report::blocks::{self, Quick};
use tidemark_report::text;
use tidemark_scenario::plan::Stream;
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
    let (scenario, requests) = recipe::scenario(arguments)?;
    let text = scenario.to_yaml();
    let (plan, diagnostics) = check_text(NAME, &text, Path::new("."), &[]);
    let plan = plan.ok_or_else(|| failure(&diagnostics))?;
    if arguments.print_scenario {
        output::print(&text)?;
        return Ok(tidemark_lab::EXIT_PASS);
    }
    let listed = (requests > 1).then(|| listed(arguments, requests));
    let most = most_requests(arguments.requests, &plan);
    let too_few = most.zip(listed.as_ref()).and_then(|(most, listed)| listed.warning(most, false));
    if let Some(too_few) = too_few {
        output::remark(&format!("warning: {too_few}"));
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
        listed,
        prints_to_stderr: arguments.results.take_stdout() || arguments.trace.takes_stdout(),
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
    run.manifest.notes.iter_mut().for_each(|note| *note = in_flags(note));
    run.manifest.summary.verdict.reasons.iter_mut().for_each(|reason| reason.in_words(in_flags));
    let mut page = Ok(());
    if dir.temporary {
        run.manifest.summary.run_dir.clear();
    } else {
        page = carry_out::write_page(&run, &finished.run_dir.join(carry_out::PAGE));
    }
    let shown = Quick { percentiles: arguments.latency, kept: !dir.temporary };
    let asked = (results, &arguments.trace, arguments.quiet);
    carry_out::conclude(&run, &finished, asked, page, |place| {
        let blocks = blocks::quick(&run, shown).map_err(|error| Failure::broken(error.to_string()))?;
        Ok(text::render(&blocks, place.style()))
    })
}

/// What is sent in turn, and how all of it is.
fn listed(arguments: &HitArguments, requests: u64) -> Listed {
    let way_out = match (arguments.requests, arguments.rate) {
        (Some(_), _) => format!("give -n {requests} or more"),
        (None, Some(_)) => "give a longer -d, or a higher -r".to_owned(),
        (None, None) => "give a longer -d".to_owned(),
    };
    Listed { requests, way_out }
}

/// How many requests fall due at most, warm-up included, where that is known beforehand.
fn most_requests(requests: Option<u64>, plan: &Plan) -> Option<u64> {
    let due = |stream: Stream<'_>| {
        let due = stream.phases.iter().map(|phase| phase.peak() * phase.duration.as_secs_f64()).sum::<f64>();
        (!stream.model.is_closed()).then_some(due.ceil() as u64)
    };
    let due: Option<u64> = plan.load.streams().into_iter().map(due).sum();
    [requests, due].into_iter().flatten().min()
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
    const WORDS: [(&str, &str); 8] = [
        ("`protos`", "--proto"),
        ("a file of `descriptors`", "a descriptor set with --protoset"),
        ("`includes`", "--import-path"),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn how_many_requests_fall_due_is_known_before_the_run() {
        for (load, requests, most) in [
            ("rate: 10/s, warm-up: 1s, hold: 2s", None, Some(30)),
            ("rate: 10/s, warm-up: 1s, hold: 2s", Some(7), Some(7)),
            ("users: 5, hold: 2s", None, None),
            ("users: 5, hold: 2s", Some(7), Some(7)),
        ] {
            let text = format!(
                "system: {{url: http://h}}\nsessions: {{a: {{steps: [GET: /]}}}}\nload: {{{load}}}\n"
            );
            let plan = check_text(NAME, &text, Path::new("."), &[]).0.unwrap();
            assert_eq!(most_requests(requests, &plan), most, "{load}");
        }
    }
}
