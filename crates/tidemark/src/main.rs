//! The command line: flags become a plan and options, a library does the work, the result becomes an exit status.
//!
//! | status | means |
//! | --- | --- |
//! | 0 | done; for a run: every objective was met |
//! | 1 | an objective was missed, something was lost, a comparison fails a rule, or the system is unreachable |
//! | 2 | wrong use, or input that cannot be read |
//! | 3 | no measurement that can be trusted |
//! | 70 | an internal error |
//! | 74 | there is a result, but it cannot be written: the disk is full, say |
//! | 130 | stopped by the user |

mod agent;
mod args;
mod carry_out;
mod check;
mod compare;
mod cost;
mod crash;
mod cube;
mod display;
mod driver;
mod driving;
mod failure;
mod fleet;
mod history;
mod hit;
mod import;
mod init;
mod install;
mod limit;
#[cfg(feature = "systems")]
mod manifests;
mod once;
mod output;
mod overview;
mod plan;
mod progress;
#[cfg(all(test, feature = "tui"))]
#[path = "../tests/program/pty.rs"]
#[allow(dead_code, reason = "the tests of the program use the rest")]
mod pty;
mod quantities;
mod reach;
mod report;
mod reproduce;
mod results;
mod resume;
mod run;
mod scenario;
#[cfg(feature = "js")]
mod script;
#[cfg(feature = "systems")]
mod serve;
mod settings;
mod sinks;
#[cfg_attr(not(feature = "systems"), path = "no_systems.rs")]
mod systems;
mod trace;
#[cfg(feature = "tui")]
mod tui;
mod ui;
mod up;
mod verify;
mod words;

use std::ffi::OsString;
use std::process::ExitCode;

use args::{Arguments, Verb};
use clap::Parser;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use failure::Failure;

fn main() -> ExitCode {
    crash::no_backtraces();
    let status = std::panic::catch_unwind(|| {
        let words = words::words(std::env::args_os());
        match words::parsed(&words) {
            Ok(arguments) => carry_out(arguments.verb),
            Err(error) if error.kind() == ErrorKind::DisplayHelp => help(&error),
            Err(error) => negative(&error, &words).map_or_else(|| wrong_use(&error), end),
        }
    });
    // what went wrong has been said by the panic hook
    ExitCode::from(status.unwrap_or(crash::EXIT_CRASH))
}

/// Help, and behind it the settings of the scenario that stands beside `--help`.
fn help(error: &clap::Error) -> u8 {
    let words = words::words(std::env::args_os()).into_iter();
    let words = words.filter(|word| word != "--help" && word != "-h");
    let scenario = Arguments::try_parse_from(words).ok().and_then(|arguments| match arguments.verb? {
        Verb::Run(arguments) => Some(arguments.scenario),
        Verb::Limit(arguments) => Some(arguments.scenario),
        Verb::Check(arguments) => Some(arguments.file),
        _ => None,
    });
    let status = wrong_use(error);
    match scenario.map(|scenario| output::print(&format!("\n{}\n", settings::of(&scenario)))) {
        Some(Err(failure)) => end(failure),
        _ => status,
    }
}

fn wrong_use(error: &clap::Error) -> u8 {
    let status = u8::try_from(error.exit_code()).unwrap_or(tidemark_lab::EXIT_USAGE);
    let text = error.render().to_string();
    // help has its layout; a refusal has not, and may quote a secret
    if let Some(refusal) = text.strip_prefix("error: ")
        && (output::Place::Stderr.fit(&text) != text || output::masked(&text) != text)
    {
        output::complain(refusal);
        return status;
    }
    match output::written(error.print()) {
        Ok(()) => status,
        Err(failure) => end(failure),
    }
}

/// What is wrong where a value below 0 looks like a flag: `-r -5/s`.
fn negative(error: &clap::Error, words: &[OsString]) -> Option<Failure> {
    let Some(ContextValue::String(found)) = error.get(ContextKind::InvalidArg) else { return None };
    let is_number = found.strip_prefix('-')?.starts_with(|c: char| c.is_ascii_digit());
    (is_number && error.kind() == ErrorKind::UnknownArgument).then(|| {
        // what was found may be the first letters of what was typed
        let words: Vec<_> = words.iter().map(|word| word.to_string_lossy()).collect();
        let at = words.iter().position(|word| word.starts_with(found.as_str()));
        let typed = at.map_or(found.as_str(), |at| &*words[at]);
        let flag = at.and_then(|at| words.get(at.checked_sub(1)?)).filter(|word| word.starts_with('-'));
        let place = flag.map_or_else(String::new, |flag| format!("{flag} {typed}: "));
        let reason =
            "is neither a flag nor a value: rates, times and numbers are never below 0; leave out the -";
        Failure::usage(format!("{place}{typed} {reason}"))
    })
}

fn carry_out(verb: Option<Verb>) -> u8 {
    if verb.as_ref().is_some_and(Verb::is_quiet) {
        output::be_quiet();
    }
    let result = match verb {
        None => overview::print(),
        Some(Verb::Run(arguments)) => run::run(*arguments),
        Some(Verb::Hit(arguments)) => hit::hit(&arguments),
        #[cfg(feature = "systems")]
        Some(Verb::Serve(arguments)) => serve::serve(arguments),
        #[cfg(not(feature = "systems"))]
        Some(Verb::Serve(arguments)) => Err(Failure::usage(format!(
            "there is no shipped system {}: this program was built without them; build it with: cargo build --release -p tidemark",
            arguments.system
        ))),
        Some(Verb::Up(arguments)) => up::up(&arguments),
        #[cfg(feature = "systems")]
        Some(Verb::Manifests(arguments)) => manifests::manifests(&arguments),
        Some(Verb::Roll(arguments)) => up::roll(arguments),
        Some(Verb::Scale(arguments)) => up::scale(arguments),
        Some(Verb::Check(arguments)) => check::check(&arguments),
        Some(Verb::Report(arguments)) => report::report(&arguments),
        Some(Verb::Compare(arguments)) => compare::compare(&arguments),
        Some(Verb::History(arguments)) => history::history(&arguments),
        Some(Verb::Limit(arguments)) => limit::limit(&arguments),
        Some(Verb::Verify(arguments)) => verify::verify(&arguments),
        Some(Verb::Cost(arguments)) => cost::cost(&arguments),
        Some(Verb::Plan(arguments)) => plan::plan(&arguments),
        Some(Verb::Reproduce(arguments)) => reproduce::reproduce(&arguments),
        Some(Verb::Cube(arguments)) => cube::cube(&arguments),
        Some(Verb::Init(arguments)) => init::init(&arguments),
        Some(Verb::Import(arguments)) => import::import(&arguments),
        Some(Verb::Ui(arguments)) => ui::ui(&arguments),
        Some(Verb::Agent(arguments)) => agent::agent(&arguments),
        Some(Verb::Fleet(arguments)) => fleet::fleet(&arguments),
        Some(Verb::Driver) => driving::drive(),
        Some(Verb::Schema) => check::schema(),
        Some(Verb::Completions(arguments)) => install::completions(&arguments),
        Some(Verb::Man(arguments)) => install::man(&arguments),
    };
    result.unwrap_or_else(end)
}

/// Says what failed, and with which status the program ends.
fn end(failure: Failure) -> u8 {
    output::complain(&failure.message);
    failure.status
}
