//! `tidemark plan`: how many instances another load takes.

use std::fs;
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use tidemark_lab::EXIT_PASS;
use tidemark_limit::{Search, Searches, Trial};
use tidemark_plan::{SizePoint, Survives, scalability};
use tidemark_record::{Manifest, RUNS_DIR, limit as file, resolve, runs_in};
use tidemark_report::plan::{Beside, NoPlan, Wish, cpu_of_requests, plan as planned};
use tidemark_report::{blocks, markdown, still};
use tidemark_scenario::units::{parse_number, parse_share};

use crate::args::key_value;
use crate::carry_out;
use crate::cost::PriceArguments;
use crate::failure::Failure;
use crate::quantities::{rate, seed};
use crate::results::SeveralResultArguments;

/// Most zones.
const ZONES_MAX: u64 = 100;
/// Half of an interval of 95 % in standard errors.
const HALF_INTERVAL: f64 = 1.96;
/// A search tells most where its system was about this busy: a share of its limit.
const QUIET: f64 = 0.5;

/// `tidemark plan`
#[derive(Debug, Args)]
#[command(after_help = "\
Simulates the tiers of a run: its service times, the CPU that each tier took for a request, and cores of the kinds of machines in \
--prices (else 1). Of a search it takes the trial that held nearest to half of the limit, and with several sizes (limit --over \
cores=1,2,4, or several searches) how cores hinder each other. See docs/plan.md.

--set changes a tier: cores, cpu, pause, queue, workers, balancing, calls, hit, hop, pool, timeout, retries, breaker, commit, \
alpha, beta.

Examples:
  tidemark plan last --rate 50k/s --objective 'p99 < 300ms'
  tidemark plan shop.yaml --rate 50k/s --survive zone --prices prices.yaml
  tidemark plan last --rate 4.3G/day --growth 10 --html plan.html
  tidemark plan last --rate 50k/s --set redis.hit=80% --set web.cores=4 --json")]
pub struct PlanArguments {
    /// Runs or searches: directories, names of ones in runs/, or `last`; or a scenario file, whose last run is taken
    #[arg(value_name = "RUN", required = true)]
    pub runs: Vec<String>,
    /// The load, requests a second: 50k/s, 4.3G/day (a scenario's `rate` is of sessions) [default: the run's]
    #[arg(short = 'r', long, value_name = "RATE", value_parser = constant_rate)]
    pub rate: Option<f64>,
    /// Multiply the rate
    #[arg(long, value_name = "FACTOR", value_parser = factor, default_value = "1")]
    pub growth: f64,
    /// What is to be kept, like 'p99 < 300ms' or 'errors < 0.1%' (repeatable) [default: the run's]
    #[arg(long = "objective", visible_alias = "until", value_name = "OBJECTIVE")]
    pub objectives: Vec<String>,
    /// What may be lost while it is kept
    #[arg(long, value_name = "WHAT", value_enum, default_value = "nothing")]
    pub survive: Survive,
    /// Zones that instances are spread over
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(2..=ZONES_MAX), default_value = "3")]
    pub zones: u64,
    /// Headroom above the rate
    #[arg(long, value_name = "SHARE", value_parser = share, default_value = "10%")]
    pub margin: f64,
    /// Change a tier, like redis.hit=80% (repeatable)
    #[arg(long = "set", value_name = "TIER.KEY=VALUE", value_parser = key_value)]
    pub settings: Vec<(String, String)>,
    /// Seed of the random numbers
    #[arg(long, value_name = "N", value_parser = seed, default_value = "1")]
    pub seed: u64,
    /// Where results go.
    #[command(flatten)]
    pub results: SeveralResultArguments,
    /// What it is reckoned with.
    #[command(flatten)]
    pub prices: PriceArguments,
}

/// What may be lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Survive {
    /// Nothing
    Nothing,
    /// An instance of each tier
    Instance,
    /// All instances in a zone
    Zone,
}

fn constant_rate(text: &str) -> Result<f64, String> {
    rate(text)?.constant().ok_or_else(|| "a plan is for one rate".into())
}

fn factor(text: &str) -> Result<f64, String> {
    let factor = parse_number(text).map_err(|error| error.to_string())?;
    if factor > 0.0 && factor <= 1e6 {
        Ok(factor)
    } else {
        Err("a factor is above 0 and at most a million".into())
    }
}

fn share(text: &str) -> Result<f64, String> {
    parse_share(text).map_err(|error| error.to_string())
}

/// Shows how many instances another load takes.
pub fn plan(arguments: &PlanArguments) -> Result<u8, Failure> {
    arguments.results.check()?;
    let pricing = arguments.prices.read()?;
    let mut sources = Vec::new();
    for name in &arguments.runs {
        sources.extend(sources_of(name)?);
    }
    let source = smallest(&sources).ok_or_else(|| Failure::usage("name a run"))?;
    let run = carry_out::open(&source.dir)?;
    pricing.check(&[&run.manifest])?;
    let wish = Wish {
        per_s: arguments.rate,
        growth: arguments.growth,
        objectives: &arguments.objectives,
        margin: arguments.margin,
        survives: match arguments.survive {
            Survive::Nothing => Survives::Nothing,
            Survive::Instance => Survives::Instance,
            Survive::Zone => Survives::Zone,
        },
        zones: arguments.zones as usize,
        settings: &arguments.settings,
        prices: pricing.prices(),
        customers: arguments.prices.customers,
        seed: arguments.seed,
    };
    let mut beside = beside(&sources, source);
    if let Some(busiest) = source.busiest.as_ref().filter(|busiest| **busiest != source.dir) {
        // without it the plan has the CPU of its own run
        beside.busiest_cpu_s = cpu_of_requests(&carry_out::open(busiest)?).unwrap_or_default();
    }
    let mut plan = planned(&run, &beside, &wish).map_err(|none| match none {
        NoPlan::Usage(why) => Failure::usage(why),
        NoPlan::Unknown(why) => Failure::broken(why),
    })?;
    if let Some(bill) = &mut plan.bill {
        bill.published = pricing.published(&plan.scenario);
    }
    let shown = blocks::plan(&plan);
    let places = arguments.results.places(false);
    places.put(&shown, || plan.json(), || markdown::render(&shown), || still::plan(&plan)).map(|()| EXIT_PASS)
}

/// A run that a plan may be made of.
#[derive(Debug, Clone, Default)]
struct Source {
    dir: PathBuf,
    /// The trial of a search that held the highest load.
    busiest: Option<PathBuf>,
    /// What was set for it, and the size that this is: `cores=2`.
    setting: Option<(String, f64)>,
    /// The limit with its interval, where it is of a search.
    limit: Option<Limit>,
    /// What the search says of itself.
    notes: Vec<String>,
}

#[derive(Debug, Clone, Copy)]
struct Limit {
    per_s: f64,
    /// Standard error as a share; none where the interval has no probability.
    error: Option<f64>,
}

/// The runs of a directory, or the last one of a scenario.
fn sources_of(name: &str) -> Result<Vec<Source>, Failure> {
    let path = Path::new(name);
    let dir = match path.is_file() {
        true => last_of(path)?,
        false => resolve(name, Path::new(RUNS_DIR)).map_err(|error| Failure::usage(error.to_string()))?,
    };
    if !file::is_at(&dir) {
        return Ok(vec![Source { dir, ..Source::default() }]);
    }
    let text = file::read(&dir).map_err(|error| Failure::usage(error.to_string()))?;
    let searches = Searches::from_json(&text)
        .map_err(|reason| Failure::usage(file::damaged(&dir, &reason).to_string()))?;
    let sources: Vec<Source> = searches.searches.iter().filter_map(|search| searched(&dir, search)).collect();
    if sources.is_empty() {
        let reason = "no trial that counts held, so that nothing is known of the system below its limit";
        return Err(Failure::usage(format!("{}: {reason}", dir.display())));
    }
    Ok(sources)
}

/// The last run of the scenario in a file.
fn last_of(file: &Path) -> Result<PathBuf, Failure> {
    let unreadable = |error: std::io::Error| Failure::usage(format!("{}: {error}", file.display()));
    let text = fs::read_to_string(file).map_err(unreadable)?;
    let digest = tidemark_record::manifest::digest(&text);
    let runs = match Path::new(RUNS_DIR) {
        dir if dir.is_dir() => runs_in(dir).map_err(|error| Failure::usage(error.to_string()))?.runs,
        _ => Vec::new(),
    };
    // by name, which begins with the time
    let is_of = |dir: &&PathBuf| {
        Manifest::open(dir).is_ok_and(|manifest| manifest.scenario_digest.as_ref() == Some(&digest))
    };
    let last = runs.iter().rev().find(is_of).cloned();
    last.ok_or_else(|| {
        let name = file.display();
        Failure::usage(format!("{name} has no run in {RUNS_DIR} as it is now; measure it first: tidemark run {name}; or name a run of how it was"))
    })
}

/// What a search tells: the trial that held nearest to half of its limit.
fn searched(dir: &Path, search: &Search) -> Option<Source> {
    let found = search.found();
    let most = found.level.or(found.high_level)?;
    let held = |trial: &&Trial| trial.holds() && trial.ask.level <= most && !trial.dir.is_empty();
    let from_half = |trial: &Trial| (trial.ask.level - QUIET * most).abs();
    let trials: Vec<_> = search.decided().into_iter().filter(held).collect();
    let busiest = trials.iter().max_by(|one, other| one.ask.level.total_cmp(&other.ask.level));
    let busiest = busiest.map(|trial| dir.join(&trial.dir));
    let trial = trials.iter().min_by(|one, other| from_half(one).total_cmp(&from_half(other)))?;
    let setting = search.setting.as_ref().and_then(|text| {
        let (name, value) = text.split_once('=')?;
        Some((name.trim().to_owned(), value.trim().parse().ok().filter(|size: &f64| *size > 0.0)?))
    });
    let limit = found.per_s.map(|per_s| {
        let ends = found.low_per_s.zip(found.high_per_s).filter(|_| !found.is_between_trials);
        let error =
            ends.map(|(low, high)| (high - low) / (2.0 * HALF_INTERVAL) / per_s).filter(|error| *error > 0.0);
        Limit { per_s, error }
    });
    let notes = if search.ended.is_none() {
        vec!["the search did not come to its end".to_owned()]
    } else {
        Vec::new()
    };
    Some(Source { dir: dir.join(&trial.dir), busiest, setting, limit, notes })
}

/// The one with the smallest size, as cores do not hinder each other there; of those without sizes, the first.
fn smallest(sources: &[Source]) -> Option<&Source> {
    let size = |source: &Source| source.setting.as_ref().map_or(f64::INFINITY, |(_, size)| *size);
    sources.iter().min_by(|one, other| size(one).total_cmp(&size(other)))
}

/// What searches say beside the run: its limit, and how cores hinder each other.
fn beside(sources: &[Source], of: &Source) -> Beside {
    let mut beside = Beside {
        limit_per_s: of.limit.map(|limit| limit.per_s),
        notes: of.notes.clone(),
        ..Beside::default()
    };
    if sources.len() < 2 {
        return beside;
    }
    let name = of.setting.as_ref().map(|(name, _)| name.as_str());
    let point = |source: &Source| {
        let (of, size) = source.setting.as_ref()?;
        let limit = source.limit.filter(|_| Some(of.as_str()) == name)?;
        Some(SizePoint { size: *size, per_s: limit.per_s, error: limit.error })
    };
    let points: Vec<SizePoint> = sources.iter().filter_map(point).collect();
    match (name, scalability(&points)) {
        (Some(name), Ok(law)) if name.contains("cores") || name.contains("threads") => {
            beside.scalability = Some(law)
        }
        (Some(name), Ok(_)) => {
            beside.notes.push(format!("how {name} scales is not in the plan, which knows cores and threads"));
        }
        (Some(name), Err(why)) => beside.notes.push(format!("how {name} scales is not known: {why}")),
        (None, _) => beside.notes.push(
            "how it scales is not known: searches need a size; limit --over cores=1,2,4 makes them".into(),
        ),
    }
    beside
}
