//! `tidemark reproduce`: the five published experiments on this machine, on one page.

use std::path::{Path, PathBuf};

use clap::{Args, Parser};
use tidemark_lab::{EXIT_FAIL, EXIT_INTERRUPTED, EXIT_INVALID, EXIT_PASS, Pins, available_cores, cores_text};
use tidemark_record::summary::Status;
use tidemark_record::{ComparedRuns, ComparisonFile, Manifest, Run, new_run_dir};
use tidemark_report::published::Experiment;
use tidemark_report::reproduction::{Repeated, Reproduction};
use tidemark_report::{blocks, markdown, still};

use crate::args::{Arguments, Verb};
use crate::carry_out::PAGE;
use crate::cost::PriceArguments;
use crate::failure::Failure;
use crate::results::SeveralResultArguments;
use crate::systems::EXPERIMENTS;
use crate::{output, results, run};

/// `tidemark reproduce`
#[derive(Debug, Args)]
#[command(after_help = "\
Runs a shipped scenario for each experiment: airline, newsfeed, ingest, trade, kv. One that fails does not keep the others from \
running. See docs/reproduction.md.

Examples:
  tidemark reproduce                      all five, in about 15 minutes
  tidemark reproduce trade ingest         two of them
  tidemark reproduce --full               the published lengths: about two hours
  tidemark reproduce --markdown page.md --prices prices.yaml")]
pub struct ReproduceArguments {
    /// Experiments [default: all]
    #[arg(value_name = "EXPERIMENT", value_parser = experiment)]
    pub experiments: Vec<&'static str>,
    /// As long as was published
    #[arg(long)]
    pub full: bool,
    /// The directory of the runs and of the page, new or empty [default: a new one in runs/]
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Cores of the system and of the load generator, as for `tidemark run` (repeatable) [default: half of the cores each]
    #[arg(long = "pin", value_name = "SIDE=CORES")]
    pub pins: Vec<String>,
    /// Where results go.
    #[command(flatten)]
    pub results: SeveralResultArguments,
    /// What is reckoned with.
    #[command(flatten)]
    pub prices: PriceArguments,
}

fn experiment(text: &str) -> Result<&'static str, String> {
    let names = || EXPERIMENTS.iter().map(|of| of.scenario);
    names()
        .find(|name| *name == text)
        .ok_or_else(|| format!("one of {}", names().collect::<Vec<_>>().join(", ")))
}

/// Repeats the experiments, one after another, and shows what came of them.
pub fn reproduce(arguments: &ReproduceArguments) -> Result<u8, Failure> {
    arguments.results.check()?;
    let pricing = arguments.prices.read()?;
    Pins::parse(&arguments.pins).map_err(|error| Failure::usage(format!("--pin: {error}")))?;
    let dir = new_run_dir(arguments.out.as_deref(), "reproduce")
        .map_err(|error| Failure::usage(error.to_string()))?;
    let mut all = Reproduction {
        machine: None,
        started_at: String::new(),
        full: arguments.full,
        experiments: Vec::new(),
        run_dir: dir.display().to_string(),
    };
    let is_asked =
        |of: &&Experiment| arguments.experiments.is_empty() || arguments.experiments.contains(&of.scenario);
    let mut stopped = false;
    let pins = if arguments.pins.is_empty() { halves() } else { arguments.pins.clone() };
    for experiment in EXPERIMENTS.iter().filter(is_asked) {
        let out = dir.join(experiment.scenario);
        if stopped {
            let repeated =
                Repeated::without(experiment, &out.display().to_string(), "stopped before it began");
            all.add(repeated, None);
            continue;
        }
        let words = words(experiment, arguments.full, &pins);
        output::remark(&format!("{}: tidemark {}", experiment.title, words.join(" ")));
        let ended = carried_out(words, &out);
        let status = ended.as_ref().map_or_else(|failure| failure.status, |status| *status);
        let (repeated, manifest) = match result(experiment, &out, |manifest| pricing.bill(manifest)) {
            Ok(Some(done)) => done,
            Ok(None) => {
                let why =
                    ended.err().map_or_else(|| "it has no results".to_owned(), |failure| failure.message);
                (Repeated::without(experiment, &out.display().to_string(), &why), None)
            }
            Err(why) => (Repeated::without(experiment, &out.display().to_string(), &why), None),
        };
        stopped =
            status == EXIT_INTERRUPTED || manifest.as_ref().is_some_and(|manifest| manifest.interrupted);
        all.add(repeated, manifest.as_ref());
    }
    let shown = blocks::reproduction(&all);
    let page = results::write("--out", &dir.join(PAGE), &still::reproduction(&all));
    let places = arguments.results.places(false);
    let put = places.put(&shown, || all.json(), || markdown::render(&shown), || still::reproduction(&all));
    page.and(put).map(|()| match all.status() {
        _ if stopped => EXIT_INTERRUPTED,
        Status::Pass => EXIT_PASS,
        Status::Fail => EXIT_FAIL,
        Status::Invalid => EXIT_INVALID,
    })
}

/// Half of the cores for the system, the others for the load generator; nothing where there is one.
fn halves() -> Vec<String> {
    let cores = available_cores();
    match cores.split_at(cores.len().div_ceil(2)) {
        (_, []) => Vec::new(),
        (system, driver) => {
            vec![format!("system={}", cores_text(system)), format!("driver={}", cores_text(driver))]
        }
    }
}

/// The command line that repeats it.
fn words(experiment: &Experiment, full: bool, pins: &[String]) -> Vec<String> {
    let more = if full { experiment.full } else { experiment.short };
    let fixed = ["run", experiment.scenario].into_iter().chain(more.iter().copied()).map(str::to_owned);
    fixed.chain(pins.iter().flat_map(|pin| ["--pin".to_owned(), pin.clone()])).collect()
}

/// Runs its scenario, as `tidemark run` does.
fn carried_out(words: Vec<String>, out: &Path) -> Result<u8, Failure> {
    let out = ["--out".to_owned(), out.display().to_string()];
    let words = std::iter::once("tidemark".to_owned()).chain(words).chain(out);
    let parsed = Arguments::try_parse_from(words).map_err(|error| Failure::usage(error.to_string()))?;
    match parsed.verb {
        Some(Verb::Run(mut arguments)) => {
            arguments.results.are_shown_later = true;
            run::run(*arguments)
        }
        _ => Err(Failure::broken("it is not a run")),
    }
}

/// What is in a run's directory; none where there is nothing.
type Done = Option<(Repeated, Option<Manifest>)>;

fn result(
    experiment: &Experiment,
    dir: &Path,
    bill: impl Fn(&Manifest) -> Option<tidemark_record::bill::Bill>,
) -> Result<Done, String> {
    if ComparisonFile::is_at(dir) {
        let runs = ComparedRuns::open(dir).map_err(|error| error.to_string())?;
        let repeated = Repeated::of_comparison(experiment, &runs).map_err(|error| error.to_string())?;
        return Ok(Some((repeated, runs.runs.into_iter().next_back().map(|run| run.manifest))));
    }
    match Run::open(dir) {
        Ok(run) => {
            let repeated = Repeated::of_run(experiment, &run.manifest, bill(&run.manifest).as_ref());
            Ok(Some((repeated, Some(run.manifest))))
        }
        Err(_) if !dir.join("run.json").exists() => Ok(None),
        Err(error) => Err(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use tidemark_report::published::Of;

    use super::*;

    /// Each figure is of something that its scenario has.
    #[test]
    fn labels_and_sides_are_those_of_the_scenarios() {
        for experiment in EXPERIMENTS {
            let text = tidemark_scenario::shipped(experiment.scenario).unwrap();
            for figure in experiment.figures {
                let wanted = match figure.of {
                    Of::All => "sessions:".to_owned(),
                    Of::Label(label) => format!("label: {label}\n"),
                    Of::Side(side) => side.to_owned(),
                };
                assert!(text.contains(&wanted), "{}: {wanted}", experiment.scenario);
            }
        }
    }

    #[test]
    fn each_is_a_command_line_of_run() {
        let pins = vec!["system=0".to_owned(), "driver=1".to_owned()];
        for (experiment, full) in EXPERIMENTS.iter().flat_map(|of| [(of, false), (of, true)]) {
            let words = words(experiment, full, &pins);
            let parsed = Arguments::try_parse_from(std::iter::once("tidemark".to_owned()).chain(words));
            assert!(matches!(parsed.unwrap().verb, Some(Verb::Run(_))), "{}", experiment.scenario);
        }
        assert!(experiment("airlines").is_err());
    }
}
