//! `tidemark cost`, and `--prices` of other verbs: what runs cost.

use std::path::{Path, PathBuf};

use clap::Args;
use tidemark_lab::EXIT_PASS;
use tidemark_limit::{Search, Searches};
use tidemark_record::{ComparisonFile, Manifest, Part, RUNS_DIR, Run, limit as file, resolve};
use tidemark_report::cost::{Costs, NamedBill, bill, tier_names};
use tidemark_report::limit::level_text;
use tidemark_report::{blocks, markdown, text};
use tidemark_scenario::diagnostic::did_you_mean;
use tidemark_scenario::prices::{EXAMPLE, Prices, ROLES};

use crate::args::key_value;
use crate::carry_out;
use crate::failure::Failure;
use crate::output::{self, Place};
use crate::results::{self, Outcomes, ResultArguments};

/// `tidemark cost`
#[derive(Debug, Args)]
#[command(after_help = "\
Prices are for a million good answers, an hour, a day and a month (730 hours) at the rate of the run: of the CPU that was used, \
as a share of machines, and of whole machines, one for each instance. Of a search it is the highest load that held, of a \
comparison each side. A tier is a service or a store by its name, or web (what is driven), services, balancer, stores, watched, \
driver. See docs/cost.md.

Examples:
  tidemark cost --example > prices.yaml
  tidemark cost last --prices prices.yaml
  tidemark cost last --prices prices.yaml --machine web=m.large --machine stores=r.large --customers 10000
  tidemark run airline --prices prices.yaml")]
pub struct CostArguments {
    /// A directory of a run, a search or a comparison, the name of one in runs/, or `last`
    #[arg(value_name = "RUN", required_unless_present = "example")]
    pub run: Option<String>,
    /// Print an example of a price file
    #[arg(long, conflicts_with_all = ["run", "prices", "json", "markdown"])]
    pub example: bool,
    /// What it is reckoned with.
    #[command(flatten)]
    pub prices: PriceArguments,
    /// Write one JSON object in place of the text, to standard output unless =FILE is said
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true, default_missing_value = "-")]
    pub json: Option<PathBuf>,
    /// Write Markdown in place of the text; - is standard output
    #[arg(long, value_name = "FILE")]
    pub markdown: Option<PathBuf>,
}

/// Flags of every verb that shows what a run costs.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Cost")]
pub struct PriceArguments {
    /// Say what it costs, with the machines of this price file; `tidemark cost --example` prints one
    #[arg(long, value_name = "FILE")]
    pub prices: Option<PathBuf>,
    /// The kind of machine that a tier stands on, like web=m.large (repeatable)
    #[arg(long = "machine", value_name = "TIER=KIND", value_parser = key_value, requires = "prices")]
    pub machines: Vec<(String, String)>,
    /// Customers among whom a month's price is divided [default: the scenario's setting `customers`]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..), requires = "prices")]
    pub customers: Option<u64>,
}

impl PriceArguments {
    /// The prices, where there is a file; machines stand where the command line has them.
    ///
    /// # Errors
    /// What is wrong with the file, or a kind of machine that is not in it.
    pub fn read(&self) -> Result<Option<Prices>, Failure> {
        let Some(file) = &self.prices else { return Ok(None) };
        let mut prices = Prices::read(file).map_err(|wrong| Failure::usage(wrong.to_string()))?;
        for (tier, machine) in &self.machines {
            let wrong = |reason| Failure::usage(format!("--machine {tier}={machine}: {reason}"));
            prices.place(tier, machine).map_err(wrong)?;
        }
        Ok(Some(prices))
    }

    /// What is wrong with tiers that `--machine` names, where these runs do not have them.
    fn unknown<'a>(&self, runs: impl IntoIterator<Item = &'a Manifest>) -> Option<String> {
        let names = tier_names(runs);
        let known = |tier: &str| ROLES.contains(&tier) || names.iter().any(|name| name == tier);
        let (tier, machine) = self.machines.iter().find(|(tier, _)| !known(tier))?;
        let mut hint = did_you_mean(tier, names.iter().map(String::as_str));
        if hint.is_empty() {
            hint = format!("; there are {}", names.join(", "));
        }
        Some(format!("--machine {tier}={machine}: no such tier{hint}"))
    }

    /// Puts the bill into a run that is shown.
    ///
    /// # Errors
    /// What is wrong with the flags.
    pub fn put(&self, run: &mut Run) -> Result<(), Failure> {
        let Some(prices) = self.read()? else { return Ok(()) };
        if let Some(reason) = self.unknown([&run.manifest]) {
            return Err(Failure::usage(reason));
        }
        run.manifest.bill = bill([&run.manifest], &prices, self.customers);
        Ok(())
    }

    /// The same where the run was just made: what is wrong stands beside the prices.
    pub fn put_now(&self, prices: &Prices, run: &mut Run) {
        let unknown = self.unknown([&run.manifest]);
        let mut bill = bill([&run.manifest], prices, self.customers);
        if let Some(bill) = &mut bill {
            bill.notes.extend(unknown);
        }
        run.manifest.bill = bill;
    }
}

/// Shows what runs cost.
pub fn cost(arguments: &CostArguments) -> Result<u8, Failure> {
    if arguments.example {
        return output::print(EXAMPLE).map(|()| EXIT_PASS);
    }
    let CostArguments { json, markdown, .. } = arguments;
    let written = ResultArguments { json: json.clone(), markdown: markdown.clone(), ..Default::default() };
    written.check(None)?;
    let Some(prices) = arguments.prices.read()? else {
        let way_out = "tidemark cost --example > prices.yaml writes one to begin with";
        return Err(Failure::usage(format!("a price file is needed: --prices FILE; {way_out}")));
    };
    // there is one without --example
    let run = arguments.run.as_deref().unwrap_or_default();
    let dir = resolve(run, Path::new(RUNS_DIR)).map_err(|error| Failure::usage(error.to_string()))?;
    let sides = sides(&dir)?;
    let all = || sides.iter().flat_map(|(_, runs)| runs);
    if let Some(reason) = arguments.prices.unknown(all()) {
        return Err(Failure::usage(reason));
    }
    let of = |(name, runs): &(String, Vec<Manifest>)| {
        let bill = bill(runs, &prices, arguments.prices.customers)?;
        Some(NamedBill { name: name.clone(), bill })
    };
    let costs = Costs { bills: sides.iter().filter_map(of).collect() };
    let mut outcomes = Outcomes::default();
    if let Some(file) = json {
        outcomes.add(results::write("--json", file, &costs.json()));
    }
    if let Some(file) = markdown {
        outcomes.add(results::write("--markdown", file, &markdown::render(&blocks::cost(&costs))));
    }
    // whoever asks for a file needs no text
    if json.is_none() && markdown.is_none() {
        outcomes.add(Place::Stdout.tell(&text::render(&blocks::cost(&costs), Place::Stdout.style()), false));
    }
    outcomes.all().map(|()| EXIT_PASS)
}

/// What has a bill of its own, with the runs that it is made of.
fn sides(dir: &Path) -> Result<Vec<(String, Vec<Manifest>)>, Failure> {
    let sides = if ComparisonFile::is_at(dir) {
        compared(dir)?
    } else if file::is_at(dir) {
        searched(dir)?
    } else {
        let manifest = carry_out::open(dir)?.manifest;
        vec![(manifest.scenario.clone(), vec![manifest])]
    };
    match sides.is_empty() {
        true => Err(Failure::usage(format!("{}: no run in it has ended", dir.display()))),
        false => Ok(sides),
    }
}

fn manifest(dir: &Path) -> Result<Manifest, Failure> {
    Manifest::open(dir).map_err(|error| Failure::usage(error.to_string()))
}

/// Each side of a comparison under its own load, and again at the rate that all have.
fn compared(dir: &Path) -> Result<Vec<(String, Vec<Manifest>)>, Failure> {
    let comparison = ComparisonFile::open(dir).map_err(|error| Failure::usage(error.to_string()))?;
    let mut sides: Vec<((usize, Part), String, Vec<Manifest>)> = Vec::new();
    for run in &comparison.runs {
        let of = manifest(&dir.join(&run.dir))?;
        let key = (run.side, run.part);
        match sides.iter_mut().find(|(other, ..)| *other == key) {
            Some((.., runs)) => runs.push(of),
            None => {
                let side = &comparison.sides[run.side];
                let name = match run.part {
                    Part::OwnLoad => side.clone(),
                    Part::EqualRate => format!("{side}, at the rate that all have"),
                    Part::OwnRate => format!("{side}, at a share of its own rate"),
                };
                sides.push((key, name, vec![of]));
            }
        }
    }
    Ok(sides.into_iter().map(|(_, name, runs)| (name, runs)).collect())
}

/// The highest load that held in each search of a directory.
fn searched(dir: &Path) -> Result<Vec<(String, Vec<Manifest>)>, Failure> {
    let text = file::read(dir).map_err(|error| Failure::usage(error.to_string()))?;
    let searches = Searches::from_json(&text)
        .map_err(|reason| Failure::usage(file::damaged(dir, &reason).to_string()))?;
    let mut found = Vec::new();
    for search in &searches.searches {
        let Some((name, trial)) = held(search, &searches.name) else { continue };
        found.push((name, vec![manifest(&dir.join(trial))?]));
    }
    if found.is_empty() {
        let reason = "nothing held in this search, so that no load has a price; name one of the trials in it";
        return Err(Failure::usage(format!("{}: {reason}", dir.display())));
    }
    Ok(found)
}

/// The trial with the highest load that held, and what to call it.
fn held<'a>(search: &'a Search, name: &str) -> Option<(String, &'a str)> {
    let trials = search.decided().into_iter().filter(|trial| trial.holds() && !trial.dir.is_empty());
    let trial = trials.max_by(|a, b| a.ask.level.total_cmp(&b.ask.level))?;
    let setting = search.setting.as_ref().map_or_else(String::new, |setting| format!(" {setting}"));
    let level = level_text(trial.ask.level, search.found().users);
    Some((format!("{name}{setting} at {level}, the highest that held"), &trial.dir))
}
