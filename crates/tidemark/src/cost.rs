//! `tidemark cost`, and `--prices` of other verbs: what runs cost.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use clap::Args;
use tidemark_lab::EXIT_PASS;
use tidemark_limit::{Found, Search, SearchVerdict, Searches, Trial};
use tidemark_record::bill::{Bill, PublishedBill};
use tidemark_record::{
    ComparisonFile, DRIVER, LAST, Manifest, Part, RUNS_DIR, RecordError, limit as file, resolve, runs_in,
};
use tidemark_report::comparison::{Side, SideRun};
use tidemark_report::cost::{BilledRun, Costs, NamedBill, bill, tier_names};
use tidemark_report::limit::{at_least, level_text, says};
use tidemark_report::{blocks, markdown, text};
use tidemark_scenario::Plan;
use tidemark_scenario::diagnostic::did_you_mean;
use tidemark_scenario::plan::Balancer;
use tidemark_scenario::prices::{EXAMPLE, Prices, ROLES};
use tidemark_scenario::units::parse_count;

use crate::args::key_value;
use crate::carry_out;
use crate::failure::Failure;
use crate::output::{self, Place};
use crate::results::{self, Outcomes, ResultArguments};
use crate::systems::EXPERIMENTS;

/// `tidemark cost`
#[derive(Debug, Args)]
#[command(after_help = "\
Prices a million good answers, an hour, a day and a month (730 hours) at the run's rate, twice: for the CPU used, and for whole \
machines, one for each instance. A search is priced at the highest load that held; a comparison, each side. A tier is a service \
or a store by its name, or web (what is driven), services, balancer, stores, watched, driver. See docs/cost.md.

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
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true, default_missing_value = "-", help_heading = "Results")]
    pub json: Option<PathBuf>,
    /// Write Markdown in place of the text; - is standard output
    #[arg(long, value_name = "FILE", help_heading = "Results")]
    pub markdown: Option<PathBuf>,
}

/// Flags of every verb that shows what a run costs.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Cost")]
pub struct PriceArguments {
    /// Price file: machines and what an hour of each costs
    #[arg(long, value_name = "FILE")]
    pub prices: Option<PathBuf>,
    /// The kind of machine that a tier stands on, like web=m.large (repeatable)
    #[arg(long = "machine", value_name = "TIER=KIND", value_parser = key_value, requires = "prices")]
    pub machines: Vec<(String, String)>,
    /// Customers among whom a month's price is divided [default: the scenario's setting `customers`]
    #[arg(long, value_name = "N", value_parser = customers, requires = "prices")]
    pub customers: Option<u64>,
}

impl PriceArguments {
    /// Reads the price file, where one is given; machines stand where the command line has them.
    ///
    /// # Errors
    /// What is wrong with the file, or a kind of machine that is not in it.
    pub fn read(&self) -> Result<Pricing<'_>, Failure> {
        let Some(file) = &self.prices else { return Ok(Pricing { asked: self, prices: None }) };
        let mut prices = Prices::read(file).map_err(|wrong| Failure::usage(wrong.to_string()))?;
        for (tier, machine) in &self.machines {
            let wrong = |reason| Failure::usage(format!("--machine {tier}={machine}: {reason}"));
            prices.place(tier, machine).map_err(wrong)?;
        }
        Ok(Pricing { asked: self, prices: Some(prices) })
    }
}

/// What bills are made with. Without a price file there is none.
pub struct Pricing<'a> {
    asked: &'a PriceArguments,
    prices: Option<Prices>,
}

impl Pricing<'_> {
    /// The price file, with the command line's machines.
    pub fn prices(&self) -> Option<&Prices> {
        self.prices.as_ref()
    }

    /// The bill of a run.
    pub fn bill(&self, run: &Manifest) -> Option<Bill> {
        self.of(&[run], self.unknown(&[run]))
    }

    /// The bills of runs that stand beside each other.
    pub fn bills(&self, sides: &[Side]) -> Vec<NamedBill> {
        let unknown = self.unknown(&manifests(sides));
        let of = |side: &Side| {
            let bill = self.of(&manifests(std::slice::from_ref(side)), unknown.clone())?;
            let run = |run: &SideRun| BilledRun {
                run_dir: run.dir.display().to_string(),
                started_at: run.manifest.started_at.clone(),
            };
            Some(NamedBill { name: side.name.clone(), runs: side.runs.iter().map(run).collect(), bill })
        };
        sides.iter().filter_map(of).collect()
    }

    /// The bills of a directory that is there.
    ///
    /// # Errors
    /// Nothing in it has a bill; or what is wrong with the flags.
    pub fn bills_of(&self, dir: &Path) -> Result<Vec<NamedBill>, Failure> {
        if self.prices.is_none() {
            return Ok(Vec::new());
        }
        let found = subjects(dir)?;
        self.check(
            &found.iter().flat_map(|of| manifests(std::slice::from_ref(&of.side))).collect::<Vec<_>>(),
        )?;
        Ok(self.bills_for(found))
    }

    /// The bills of a directory that was just made: where it has none that is told, as its result stands all the same.
    pub fn bills_now(&self, dir: &Path) -> Vec<NamedBill> {
        let found = if self.prices.is_some() { subjects(dir) } else { Ok(Vec::new()) };
        self.bills_for(found.unwrap_or_else(|failure| {
            output::remark(&format!("no bill: {failure}"));
            Vec::new()
        }))
    }

    fn bills_for(&self, found: Vec<Subject>) -> Vec<NamedBill> {
        let (sides, caveats): (Vec<Side>, Vec<Option<String>>) =
            found.into_iter().map(|of| (of.side, of.caveat)).unzip();
        let mut bills = self.bills(&sides);
        for (NamedBill { bill, .. }, caveat) in bills.iter_mut().zip(caveats) {
            // what the search came to is weightier than one trial of it
            let caveats: Vec<String> = caveat.into_iter().chain(bill.caveat.take()).collect();
            bill.caveat = (!caveats.is_empty()).then(|| caveats.join("; "));
        }
        bills
    }

    /// Whether these runs have the tiers that `--machine` names.
    ///
    /// # Errors
    /// One that they do not have, and those that they have.
    pub fn check(&self, runs: &[&Manifest]) -> Result<(), Failure> {
        self.unknown(runs).map_or(Ok(()), |reason| Err(Failure::usage(reason)))
    }

    /// Whether what is about to run has the tiers that `--machine` names.
    ///
    /// # Errors
    /// One that no plan has, and those that they have.
    pub fn check_plans<'p>(&self, plans: impl IntoIterator<Item = &'p Plan>) -> Result<(), Failure> {
        if self.asked.machines.is_empty() {
            return Ok(());
        }
        let names: BTreeSet<String> = plans.into_iter().flat_map(planned).collect();
        self.unknown_among(&Vec::from_iter(names)).map_or(Ok(()), |reason| Err(Failure::usage(reason)))
    }

    fn unknown(&self, runs: &[&Manifest]) -> Option<String> {
        self.unknown_among(&tier_names(runs.iter().copied()))
    }

    fn unknown_among(&self, names: &[String]) -> Option<String> {
        let known = |tier: &str| ROLES.contains(&tier) || names.iter().any(|name| name == tier);
        let (tier, machine) = self.asked.machines.iter().find(|(tier, _)| !known(tier))?;
        let mut hint = did_you_mean(tier, names.iter().map(String::as_str));
        if hint.is_empty() {
            hint = format!("; there are {}", names.join(", "));
        }
        Some(format!("--machine {tier}={machine}: no such tier{hint}"))
    }

    /// The bill of runs that belong together. What is wrong with the flags stands beside the prices.
    fn of(&self, runs: &[&Manifest], wrong: Option<String>) -> Option<Bill> {
        let mut bill = bill(runs.iter().copied(), self.prices.as_ref()?, self.asked.customers)?;
        bill.notes.extend(wrong);
        bill.published = runs.first().and_then(|run| self.published(&run.scenario));
        Some(bill)
    }

    /// What the published experiment of a scenario had and paid.
    pub fn published(&self, scenario: &str) -> Option<PublishedBill> {
        let of = EXPERIMENTS.iter().find(|of| of.has(scenario))?;
        Some(of.bill(self.prices.as_ref()?))
    }
}

/// A number of people, above 0: `10k`.
fn customers(text: &str) -> Result<u64, String> {
    match parse_count(text) {
        Ok(0) => Err("there must be at least one".into()),
        Ok(count) => Ok(count),
        Err(error) => Err(error.to_string()),
    }
}

/// What the tiers of a plan are called.
fn planned(plan: &Plan) -> impl Iterator<Item = String> {
    let tiers = std::iter::once(&plan.system).chain(&plan.services).map(|system| &system.tier);
    let systems = tiers.flat_map(|tier| {
        let balancer = (tier.balancer != Balancer::None).then(|| tier.balancer_name());
        std::iter::once(tier.name.clone()).chain(balancer)
    });
    let stores = plan.stores.iter().map(|store| store.name.clone());
    systems.chain(stores).chain(plan.watched_names()).chain([DRIVER.to_owned()])
}

fn manifests(sides: &[Side]) -> Vec<&Manifest> {
    sides.iter().flat_map(|side| &side.runs).map(|run| &run.manifest).collect()
}

/// Shows what runs cost.
pub fn cost(arguments: &CostArguments) -> Result<u8, Failure> {
    if arguments.example {
        return output::print(EXAMPLE).map(|()| EXIT_PASS);
    }
    let CostArguments { json, markdown, .. } = arguments;
    let written = ResultArguments { json: json.clone(), markdown: markdown.clone(), ..Default::default() };
    written.check(None)?;
    if arguments.prices.prices.is_none() {
        let way_out = "tidemark cost --example > prices.yaml writes one to begin with";
        return Err(Failure::usage(format!("a price file is needed: --prices FILE; {way_out}")));
    }
    let prices = arguments.prices.read()?;
    // there is one without --example
    let run = arguments.run.as_deref().unwrap_or_default();
    let dir = resolve(run, Path::new(RUNS_DIR)).map_err(usage)?;
    if let Some(newer) = newer_without_result(&dir).filter(|_| run == LAST) {
        let found = dir.display();
        output::remark(&format!("{} is newer and has no result; this is {found}", newer.display()));
    }
    let costs = Costs { bills: prices.bills_of(&dir)? };
    let blocks = blocks::cost(&costs.bills);
    let mut outcomes = Outcomes::default();
    if let Some(file) = json {
        outcomes.add(results::write("--json", file, &costs.json()));
    }
    if let Some(file) = markdown {
        outcomes.add(results::write("--markdown", file, &markdown::render(&blocks)));
    }
    // whoever asks for a file needs no text
    if json.is_none() && markdown.is_none() {
        outcomes.add(Place::Stdout.tell(&text::render(&blocks, Place::Stdout.style()), false));
    }
    outcomes.all().map(|()| EXIT_PASS)
}

/// A run in the usual folder that began after this one and has no result.
fn newer_without_result(dir: &Path) -> Option<PathBuf> {
    let began = |dir: &Path| {
        let of = fs::metadata(dir).ok()?;
        of.created().or_else(|_| of.modified()).ok()
    };
    let this = began(dir)?;
    let found = runs_in(Path::new(RUNS_DIR)).ok()?;
    let others = found.unfinished.into_iter().chain(found.damaged);
    let newer = others.filter_map(|other| Some((began(&other).filter(|at| *at > this)?, other)));
    newer.max().map(|(_, other)| other)
}

/// What has a bill of its own.
struct Subject {
    side: Side,
    /// What must be known before its price; that its runs failed is not in it.
    caveat: Option<String>,
}

/// What has a bill of its own in a directory, with the runs that it is made of.
fn subjects(dir: &Path) -> Result<Vec<Subject>, Failure> {
    let plain = |side| Subject { side, caveat: None };
    let found: Vec<Subject> = if ComparisonFile::is_at(dir) {
        compared(dir)?.into_iter().map(plain).collect()
    } else if file::is_at(dir) {
        searched(dir)?
    } else {
        let manifest = carry_out::open(dir)?.manifest;
        let name = manifest.scenario.clone();
        vec![plain(Side { name, runs: vec![SideRun { dir: dir.to_owned(), round: None, manifest }] })]
    };
    match found.is_empty() {
        true => Err(Failure::usage(format!("{}: no run in it has ended", dir.display()))),
        false => Ok(found),
    }
}

/// Each side of a comparison under its own load, and again at the rate that all have.
fn compared(dir: &Path) -> Result<Vec<Side>, Failure> {
    let comparison = ComparisonFile::open(dir).map_err(usage)?;
    let mut sides: BTreeMap<(Part, usize), Vec<PathBuf>> = BTreeMap::new();
    for run in &comparison.runs {
        sides.entry((run.part, run.side)).or_default().push(dir.join(&run.dir));
    }
    let side = |((part, side), runs): ((Part, usize), Vec<PathBuf>)| {
        let side = &comparison.sides[side];
        let name = match part {
            Part::OwnLoad => side.clone(),
            Part::EqualRate => format!("{side}, at the rate that all have"),
            Part::OwnRate => format!("{side}, at a share of its own rate"),
        };
        Side::of_runs(&name, &runs).map_err(usage)
    };
    sides.into_iter().map(side).collect()
}

/// The highest load that held in each search of a directory, and is not above the limit that was found.
fn searched(dir: &Path) -> Result<Vec<Subject>, Failure> {
    let text = file::read(dir).map_err(usage)?;
    let searches = Searches::from_json(&text).map_err(|reason| usage(file::damaged(dir, &reason)))?;
    let mut priced: Vec<Subject> = Vec::new();
    let mut without = Vec::new();
    for search in &searches.searches {
        let found = search.found();
        let Some((name, trial)) = held(search, &found, &searches.name) else {
            without.extend(search.setting.clone());
            continue;
        };
        let side = Side::of_runs(&name, &[dir.join(trial)]).map_err(usage)?;
        priced.push(Subject { side, caveat: caveat(search, &found) });
    }
    if priced.is_empty() {
        let reason =
            "no trial held at or below a limit, so that no load has a price; name one of the trials in it";
        return Err(Failure::usage(format!("{}: {reason}", dir.display())));
    }
    if !without.is_empty() {
        let says = format!("no load held, and none has a price, with {}", without.join(", "));
        for Subject { caveat, .. } in &mut priced {
            *caveat = Some(caveat.take().map_or_else(|| says.clone(), |other| format!("{other}; {says}")));
        }
    }
    Ok(priced)
}

/// What the search says, where it did not find a limit.
fn caveat(search: &Search, found: &Found) -> Option<String> {
    let is_decided = search.ended.is_some() && found.verdict(search.at_least_per_s) == SearchVerdict::Pass;
    let wanted = search.at_least_per_s.map(|per_s| format!("; {}", at_least(found, per_s)));
    (!is_decided).then(|| format!("the search: {}{}", says(found), wanted.unwrap_or_default()))
}

fn usage(error: RecordError) -> Failure {
    Failure::usage(error.to_string())
}

/// The trial with the highest load that held at or below the limit, and what to call it.
fn held<'a>(search: &'a Search, found: &Found, name: &str) -> Option<(String, &'a str)> {
    let most = found.level.or(found.high_level)?;
    let held = |trial: &&Trial| trial.holds() && trial.ask.level <= most && !trial.dir.is_empty();
    let trials = search.decided().into_iter().filter(held);
    let trial = trials.max_by(|a, b| a.ask.level.total_cmp(&b.ask.level))?;
    let setting = search.setting.as_ref().map_or_else(String::new, |setting| format!(" {setting}"));
    let level = level_text(trial.ask.level, found.users);
    Some((format!("{name}{setting} at {level}, the highest that held"), &trial.dir))
}
