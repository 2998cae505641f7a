//! Flags and their help, and nothing else.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::builder::styling::{AnsiColor, Style};
use clap::builder::{ArgPredicate, Styles, UnknownArgumentValueParser};
use clap::{Args, Parser, Subcommand, ValueEnum};
use tidemark_lab::drivers::DriverKind;
use tidemark_report::cube::{Dimension, Filter, Measure};
use tidemark_scenario::plan::{Watch, Watched};

use crate::compare::args::CompareArguments;
use crate::cost::{CostArguments, PriceArguments};
use crate::display::DisplayOptions;
use crate::driver::DriverArguments;
use crate::failure::Failure;
use crate::fleet::NatsArguments;
use crate::history::HistoryArguments;
use crate::hit::args::HitArguments;
use crate::import::ImportArguments;
use crate::init::InitArguments;
use crate::install::{CompletionArguments, ManArguments};
use crate::limit::args::LimitArguments;
#[cfg(feature = "systems")]
use crate::manifests::ManifestArguments;
use crate::plan::PlanArguments;
use crate::quantities::{RateRange, rate, time, users};
use crate::reach::ReachArguments;
use crate::reproduce::ReproduceArguments;
use crate::results::ResultArguments;
use crate::sinks::SinkArguments;
use crate::trace::TraceArguments;
use crate::up::{RollArguments, ScaleArguments, UpArguments};

const STYLES: Styles = Styles::styled()
    .header(Style::new().bold())
    .usage(Style::new().bold())
    .literal(AnsiColor::Cyan.on_default())
    .placeholder(AnsiColor::Cyan.on_default());

/// How much load a system really holds, at what latency and cost.
#[derive(Debug, Parser)]
#[command(name = "tidemark", version, styles = STYLES, max_term_width = 100)]
pub struct Arguments {
    /// What to do.
    #[command(subcommand)]
    pub verb: Option<Verb>,
}

/// What a person wants.
#[derive(Debug, Subcommand)]
pub enum Verb {
    /// Drive a scenario: start its system, load it, measure, report
    Run(Box<RunArguments>),
    /// Send requests to one URL, without a scenario
    Hit(Box<HitArguments>),
    /// Serve a shipped system until SIGTERM or Ctrl-C
    Serve(ServeArguments),
    /// Keep a scenario's system running: all its instances, without a load
    Up(UpArguments),
    /// Write files with which a reference system runs in Kubernetes, under systemd or in Compose
    #[cfg(feature = "systems")]
    Manifests(ManifestArguments),
    /// Replace the instances of what is up, one after another
    Roll(RollArguments),
    /// Have more or fewer instances of what is up
    Scale(ScaleArguments),
    /// Check a scenario for mistakes without running it
    Check(CheckArguments),
    /// Write a first scenario from a URL, an OpenAPI document or a recording (HAR)
    Init(InitArguments),
    /// Make a scenario of a plan of JMeter, Tsung, Postman or Artillery; report what cannot be taken over
    Import(ImportArguments),
    /// Show a run again, or what JMeter measured
    Report(ReportArguments),
    /// Compare two sides: stored runs, settings, commands, revisions
    Compare(Box<CompareArguments>),
    /// Show how figures changed over the runs of a folder
    History(HistoryArguments),
    /// Search for the highest load at which the objectives hold
    Limit(Box<LimitArguments>),
    /// Check again whether a run lost anything
    Verify(VerifyArguments),
    /// Say what a run, a search or a comparison costs, with a file of prices
    Cost(CostArguments),
    /// Say how many instances another load takes, by a simulation of what a run measured
    Plan(Box<PlanArguments>),
    /// Repeat the five published experiments on this machine, on one page
    Reproduce(ReproduceArguments),
    /// Break down the system's own operations by minute, entity and operation
    Cube(CubeArguments),
    /// Show the runs of a folder in a browser, live while one is on
    Ui(UiArguments),
    /// Report this machine's resource use to a run elsewhere; with --nats, drive for runs elsewhere
    Agent(AgentArguments),
    /// Show which agents are there: cores, memory, clock, version, idle or busy
    Fleet(FleetListArguments),
    /// Drive for another process of this program, which says what on standard input
    #[command(hide = true)]
    Driver,
    /// Print the JSON Schema of scenario files, for editors
    Schema,
    /// Print a shell's completions
    Completions(CompletionArguments),
    /// Write the manual pages, one for each verb
    Man(ManArguments),
}

impl Verb {
    /// Whether nothing but errors is to be on standard error.
    pub fn is_quiet(&self) -> bool {
        match self {
            Verb::Run(arguments) => arguments.quiet,
            Verb::Hit(arguments) => arguments.quiet,
            Verb::Compare(arguments) => arguments.quiet,
            Verb::Limit(arguments) => arguments.quiet,
            Verb::Verify(arguments) => arguments.quiet,
            _ => false,
        }
    }
}

/// Where iterations stand, in place of a flag of k6's.
const NO_ITERATIONS: &str = "a script's options say how many (export const options = { iterations: 10 }), a scenario's \
    `limits: {sessions: 10}`; -d TIME says how long";
/// Where stages stand, in place of a flag of k6's.
const NO_STAGE: &str = "stages are options of a script (-c N scales them to N users), and `load: phases` of a scenario; \
    tidemark import script.js -o my.yaml writes one";

/// `tidemark run`
#[derive(Debug, Args)]
#[command(after_help = "\
Exit status: 0 every objective met, 1 one missed, 2 wrong use, 3 no valid measurement, 130 stopped.

Examples:
  tidemark run airline
  tidemark run kv-redis --help   with the settings of that scenario
  tidemark run airline --for 60s --pin system=0,1 --pin driver=2,3
  tidemark run my.yaml -r 5k -d 60s --until 'p99<50ms' --json
  tidemark run my.yaml --once -v
  tidemark run plan.jmx -J host=127.0.0.1
  tidemark run script.js -e BASE=http://127.0.0.1:8080
  tidemark run my.yaml --watch port=8080 --watch name=postgres
  tidemark run my.yaml --watch 'http://db1:9100/metrics#node_load1'
  tidemark run my.yaml --trace requests.har --trace-every 1000
  tidemark run my.yaml --junit results.xml --github
  tidemark run my.yaml --url http://shop --connect-to unix:/run/shop.sock")]
pub struct RunArguments {
    /// A scenario, the name of a shipped one, a script of k6, or a plan of JMeter, Tsung, Postman or Artillery
    #[arg(
        value_name = "SCENARIO",
        required = false,
        required_unless_present = "resume",
        default_value_if("resume", ArgPredicate::IsPresent, "")
    )]
    pub scenario: String,
    /// Resume a --fleet run whose coordinator was killed, in its directory, in place of a scenario (docs/fleet.md)
    #[arg(
        long, value_name = "RUN",
        conflicts_with_all = ["scenario", "settings", "properties", "env", "environment", "rate", "duration", "users", "objectives", "url", "watch",
            "agents", "on_agent_loss", "threads", "out", "abort_early", "once", "trace"]
    )]
    pub resume: Option<String>,
    /// Set a setting of the scenario (repeatable)
    #[arg(long = "set", value_name = "KEY=VALUE", value_parser = key_value)]
    pub settings: Vec<(String, String)>,
    /// Of a JMeter plan: a property that it asks for (repeatable)
    #[arg(short = 'J', value_name = "NAME=VALUE", value_parser = key_value)]
    pub properties: Vec<(String, String)>,
    /// Of a script of k6: what it finds as __ENV.NAME (repeatable)
    #[arg(short = 'e', long = "env", value_name = "NAME=VALUE", value_parser = key_value)]
    pub env: Vec<(String, String)>,
    /// Of a Postman collection the file of its environment, of an Artillery script the name of one
    #[arg(long, value_name = "FILE|NAME")]
    pub environment: Option<String>,
    /// Sessions that arrive each second in the measured phase, like 20k (open load)
    #[arg(short, long, short_alias = 'R', value_name = "RATE", value_parser = rate)]
    pub rate: Option<RateRange>,
    /// Length of the measured phase, like 60s or 5m
    #[arg(short = 'd', long = "for", visible_alias = "duration", short_alias = 'z', value_name = "TIME", value_parser = time)]
    pub duration: Option<Duration>,
    /// No flag here: the error names the one that is.
    #[arg(long = "hold", hide = true, num_args = 0..=1, value_parser = UnknownArgumentValueParser::suggest_arg("--for"))]
    _hold: Option<String>,
    /// No flag here: the error names the one that is.
    #[arg(long = "vus", short = 'u', hide = true, num_args = 0..=1, value_parser = UnknownArgumentValueParser::suggest_arg("--users"))]
    _vus: Option<String>,
    /// No flag here: the error says where it stands.
    #[arg(long = "iterations", short = 'i', hide = true, num_args = 0..=1, value_parser = UnknownArgumentValueParser::suggest(NO_ITERATIONS))]
    _iterations: Option<String>,
    /// No flag here: the error says where it stands.
    #[arg(long = "stage", short = 's', hide = true, num_args = 0..=1, value_parser = UnknownArgumentValueParser::suggest(NO_STAGE))]
    _stage: Option<String>,
    /// Users of a closed load. Under a load with a rate: connections, made beforehand and used in turn
    #[arg(short = 'c', long = "users", visible_alias = "connections", value_name = "N", value_parser = users)]
    pub users: Option<u32>,
    /// One more objective, like 'p99<10ms' or 'Login errors<0.1%' (repeatable)
    #[arg(long = "until", visible_alias = "objective", value_name = "OBJECTIVE")]
    pub objectives: Vec<String>,
    /// Drive the system at this URL instead of starting the scenario's
    #[arg(long, value_name = "URL")]
    pub url: Option<String>,
    /// Also watch what runs already: pid=N, name=PROGRAM, port=N, cgroup=/PATH, unit=NAME, container=NAME, or the URL of a metrics page, with series after # (repeatable)
    #[arg(long, value_name = "WHAT", value_parser = watch)]
    pub watch: Vec<Watch>,
    /// How it is driven.
    #[command(flatten)]
    pub driver: DriverArguments,
    /// Who drives: threads of this process, or a process of its own
    #[arg(long = "driver", value_name = "WHO", default_value_t, hide = true)]
    pub who_drives: DriverKind,
    /// The run directory, new or empty [default: a new one in runs/]
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// End the run as failed as soon as an objective is unreachable
    #[arg(long)]
    pub abort_early: bool,
    /// No load: one user does each kind of session once, or only the named one, and each step is shown
    #[arg(
        long, value_name = "SESSION", num_args = 0..=1, require_equals = true, default_missing_value = "",
        conflicts_with_all = ["rate", "duration", "users", "objectives", "latency", "json", "tui", "abort_early", "prices"]
    )]
    pub once: Option<String>,
    /// With --once: each request and answer, what was extracted, what checks saw, and the variables
    #[arg(long, short, requires = "once")]
    pub verbose: bool,
    /// Show more percentiles, how many good answers lie in each 500ms, and operations a day
    #[arg(long)]
    pub latency: bool,
    /// Leave the system's data in the run directory
    #[arg(long)]
    pub keep_data: bool,
    /// Print nothing while it runs, and nothing but errors on standard error
    #[arg(long, short)]
    pub quiet: bool,
    /// Show rate, latencies, errors and CPU on the full screen; q stops the run
    #[arg(long, conflicts_with = "quiet")]
    pub tui: bool,
    /// How that URL is reached
    #[command(flatten)]
    pub reach: ReachArguments,
    /// Results for machines.
    #[command(flatten)]
    pub results: ResultArguments,
    /// What it costs.
    #[command(flatten)]
    pub prices: PriceArguments,
    /// Metrics while it runs.
    #[command(flatten)]
    pub sinks: SinkArguments,
    /// A sample of the requests as they were.
    #[command(flatten)]
    pub trace: TraceArguments,
}

/// `tidemark serve`
#[derive(Debug, Args)]
#[command(after_help = format!("\
Examples:
  tidemark serve airline
  tidemark serve airline --listen 127.0.0.1:0 --durability buffered
  tidemark serve ingest --data ./data --set waiting_max=4096
  tidemark serve trade --workers 1

{}
Once it is ready, it prints one line on standard output: listening http://ADDRESS. Until then /health is 503. \
Logs go to standard error.", crate::systems::settings_help()))]
pub struct ServeArguments {
    /// The name of a shipped system
    #[arg(value_name = "SYSTEM")]
    pub system: String,
    /// Address and port; port 0 takes a free one
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:9080", value_parser = address)]
    pub listen: SocketAddr,
    /// Where its data is stored; without it, in a temporary directory that is removed at the end
    #[arg(long, value_name = "DIR")]
    pub data: Option<PathBuf>,
    /// When a write is acknowledged. synced: once it is on disk. buffered: once the operating system has it. memory: at once
    #[arg(long, value_name = "WHEN", value_enum, default_value_t = Durability::Synced, hide_possible_values = true)]
    pub durability: Durability,
    /// A setting of the system (repeatable)
    #[arg(long = "set", value_name = "KEY=VALUE", value_parser = key_value)]
    pub settings: Vec<(String, String)>,
    /// Take a setting from an environment variable, so that no list of processes shows it (repeatable)
    #[arg(long = "set-env", value_name = "KEY=VARIABLE", value_parser = key_value)]
    pub settings_from_env: Vec<(String, String)>,
    /// Append each operation to this file: AT,ENTITY,OPERATION,DURATION,STATUS, in microseconds
    #[arg(long, value_name = "FILE")]
    pub events: Option<PathBuf>,
    /// Worker threads [default: one for each core]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub workers: Option<u16>,
    /// Logs as JSON, a line each
    #[arg(long)]
    pub log_json: bool,
    /// Stop gracefully at the end of standard input: whoever started this holds it open, and its death closes it
    #[arg(long, hide = true)]
    pub stop_with_parent: bool,
}

/// When a write is answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Durability {
    /// Once it is on disk
    Synced,
    /// Once the operating system has it
    Buffered,
    /// At once; it is stored in memory only
    Memory,
}

/// `tidemark check`
#[derive(Debug, Args)]
#[command(after_help = "\
Prints what the scenario is, and its settings with their defaults.

Examples:
  tidemark check my.yaml
  tidemark check kv-redis --set store=valkey")]
pub struct CheckArguments {
    /// A scenario file, the name of a shipped scenario, or a script of k6
    #[arg(value_name = "FILE")]
    pub file: String,
    /// Of a script of k6: what it finds as __ENV.NAME (repeatable)
    #[arg(short = 'e', long = "env", value_name = "NAME=VALUE", value_parser = key_value)]
    pub env: Vec<(String, String)>,
    /// Set a setting of the scenario (repeatable)
    #[arg(long = "set", value_name = "KEY=VALUE", value_parser = key_value)]
    pub settings: Vec<(String, String)>,
}

/// `tidemark ui`
#[derive(Debug, Args)]
#[command(after_help = "\
The list has the newest run first. Each run has a page. Two runs can be compared, and a run that is on is shown live. \
The folder is only read, but a run that was killed is made readable. Once it listens, it prints one line: \
listening http://ADDRESS.

There is no login: whoever reaches the address reads the runs.

Examples:
  tidemark ui
  tidemark ui results --listen 127.0.0.1:0")]
pub struct UiArguments {
    /// The folder that the runs are in
    #[arg(value_name = "FOLDER", default_value = tidemark_record::RUNS_DIR)]
    pub folder: PathBuf,
    /// Address and port; port 0 takes a free one
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:9470", value_parser = address)]
    pub listen: SocketAddr,
    /// A name of this machine under which it may be asked, beside localhost and addresses (repeatable)
    #[arg(long = "host", value_name = "NAME")]
    pub hosts: Vec<String>,
}

/// `tidemark agent`
#[derive(Debug, Args)]
#[command(after_help = "\
A run starts it with the command of `agent` in its scenario, like ssh HOST, and holds its standard input open; it ends when \
that does. What it prints is of `watch` in docs/scenario.md.

With --nats it waits for work and drives for `tidemark run … --fleet URL` until SIGTERM or Ctrl-C (docs/fleet.md). It drives \
loopback and what --allow names, and nothing else.

Examples:
  ssh db1 tidemark agent --watch name=postgres
  tidemark agent --watch port=8080   until Ctrl-D
  tidemark agent --nats nats://host:4222 --name eu-1 --allow 10.0.0.0/8")]
#[cfg_attr(not(feature = "fleet"), allow(dead_code, reason = "what is refused is not looked at"))]
pub struct AgentArguments {
    /// What is looked at beside the machine: pid=N, name=PROGRAM, port=N, cgroup=/PATH, unit=NAME or container=NAME (repeatable)
    #[arg(long, value_name = "WHAT", value_parser = watch)]
    pub watch: Vec<Watch>,
    /// Wait at this NATS server for runs, and drive for them; - reads the URL from standard input, and ends with that
    #[arg(long, value_name = "URL", conflicts_with = "watch")]
    pub nats: Option<String>,
    /// With --nats: the agent's name [default: the machine's]
    #[arg(long, value_name = "NAME", requires = "nats")]
    pub name: Option<String>,
    /// With --nats: a network that may be driven beside loopback, like 10.0.0.0/8 (repeatable)
    #[arg(long, value_name = "NETWORK", requires = "nats")]
    pub allow: Vec<String>,
    /// With --nats: driving threads [default: one for each core]
    #[arg(short, long, value_name = "N", requires = "nats", value_parser = clap::value_parser!(u16).range(1..=999))]
    pub threads: Option<u16>,
    /// How NATS is reached.
    #[command(flatten)]
    pub reach: NatsArguments,
}

/// `tidemark fleet`
#[derive(Debug, Args)]
#[command(after_help = "\
An agent is there while it says so: one that was killed is listed for up to 5 seconds more. The offset of its clock is the middle of \
the shortest of 40 ways to it and back.

Examples:
  tidemark fleet --nats nats://host:4222
  tidemark fleet --nats nats://host:4222 --json | jq -r '.[].name'")]
#[cfg_attr(not(feature = "fleet"), allow(dead_code, reason = "what is refused is not looked at"))]
pub struct FleetListArguments {
    /// The NATS server at which agents wait
    #[arg(long, value_name = "URL")]
    pub nats: String,
    /// How it is reached.
    #[command(flatten)]
    pub reach: NatsArguments,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// `tidemark cube`
#[derive(Debug, Args)]
#[command(after_help = "\
Dimensions: run, source, entity, operation, status, second, minute, hour (since the measured window began), date \
(the minute by the clock, UTC).
Measures: count, errors, throughput, mean, median, p95, p99, mode.

Examples:
  tidemark cube last
  tidemark cube last --by minute,entity --where operation=store --measure p95
  tidemark cube runs/a runs/b --by minute --where entity=Outbound,operation=store --measure p95
  tidemark cube last --by entity,operation --rollup --format csv
  tidemark cube performance.log --format published
  tidemark cube last --format postgres | psql -v ON_ERROR_STOP=1 feedmetrics")]
pub struct CubeArguments {
    /// Run directories, names of some in runs/, `last`; files of log lines, or - for standard input
    #[arg(value_name = "RUN", required = true)]
    pub runs: Vec<String>,
    /// Dimensions, the coarsest first [default: minute,entity,operation,source; of files date,entity,operation]
    #[arg(long, value_name = "DIMENSION,…", value_delimiter = ',', value_parser = dimension)]
    pub by: Vec<Dimension>,
    /// What operations must be, like entity=Outbound|Inbound,minute>=5 (repeatable)
    #[arg(long = "where", value_name = "FILTER,…", value_delimiter = ',', value_parser = Filter::parse)]
    pub filters: Vec<Filter>,
    /// Measures [default: all]
    #[arg(long = "measure", value_name = "MEASURE,…", value_delimiter = ',', value_parser = measure)]
    pub measures: Vec<Measure>,
    /// The dimension whose values are columns [default: run, of several runs and one measure]
    #[arg(long, value_name = "DIMENSION", value_parser = dimension)]
    pub across: Option<Dimension>,
    /// Sums, too: over the last dimension, the last two, all
    #[arg(long)]
    pub rollup: bool,
    /// Take what lies outside the measured window, too; times count from the begin of the run
    #[arg(long)]
    pub whole: bool,
    /// Table, csv or json; published, the published line for each minute; postgres or mariadb, SQL that loads the published star schema
    #[arg(long, value_name = "FORM", value_enum, default_value_t = CubeFormat::Table, hide_possible_values = true)]
    pub format: CubeFormat,
    /// Months in log lines count from 1, not from 0
    #[arg(long)]
    pub months_from_one: bool,
}

/// What a cube is shown as.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum CubeFormat {
    /// For a person
    Table,
    /// Comma-separated values
    Csv,
    /// A list of objects
    Json,
    /// The published line for each minute
    Published,
    /// The published star schema for PostgreSQL
    Postgres,
    /// The published star schema for MariaDB
    Mariadb,
}

fn dimension(name: &str) -> Result<Dimension, String> {
    Dimension::from_name(name)
        .ok_or_else(|| format!("unknown dimension; use one of {}", Dimension::NAMES.join(", ")))
}

fn measure(name: &str) -> Result<Measure, String> {
    Measure::from_name(name)
        .ok_or_else(|| format!("unknown measure; use one of {}", Measure::NAMES.join(", ")))
}

/// `tidemark report`
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tidemark report last
  tidemark report runs/20260102-030405-airline --html airline.html
  tidemark report last --json
  tidemark report last --markdown - --csv seconds.csv
  tidemark report last --prices prices.yaml
  tidemark report --jmeter results --html results.html

--jmeter reads, below DIR: logs of JMeter (*.log, lines `summary +`), its results (*.jtl, as XML or as CSV with a head \
line), and nmon files (*.nmon). See docs/jmeter.md.")]
pub struct ReportArguments {
    /// A run directory, the name of one in runs/, or `last`
    #[arg(value_name = "RUN", required_unless_present = "jmeter")]
    pub run: Option<String>,
    /// Report what JMeter and nmon wrote below DIR, as the reporter of the Acme Air benchmark does
    #[arg(long, value_name = "DIR", conflicts_with = "run")]
    pub jmeter: Option<PathBuf>,
    /// Write the page to this file; - is standard output
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Show more percentiles, how many good answers lie in each 500ms, and operations a day; in Markdown, too
    #[arg(long)]
    pub latency: bool,
    /// What it costs.
    #[command(flatten)]
    pub prices: PriceArguments,
    /// Results for machines.
    #[command(flatten)]
    pub results: ResultArguments,
}

/// `tidemark verify`
#[derive(Debug, Args)]
#[command(after_help = "\
Reads everything that the system holds, as `verify:` in the run's scenario says, compares it with the run's ledger, and \
writes the result into the run. It also works for a run whose driver was killed. A search that is cut short does not \
replace an earlier result. A run does not store its secrets: those that `verify:` needs are read from the environment \
again, or given with --set.

Exit status: 0 nothing lost (or no more than the objectives allow), 1 something lost, doubled or changed, 2 wrong use, \
3 not verified, 130 stopped.

Examples:
  tidemark verify last
  tidemark verify runs/20260102-030405-ingest --url http://127.0.0.1:9080")]
pub struct VerifyArguments {
    /// A run directory, the name of one in runs/, or `last`
    #[arg(value_name = "RUN")]
    pub run: String,
    /// Where the system is now, if not where it was
    #[arg(long, value_name = "URL")]
    pub url: Option<String>,
    /// A secret that the run did not keep: a setting of the scenario, or a header under `verify:` (repeatable)
    #[arg(long = "set", value_name = "NAME=VALUE", value_parser = key_value)]
    pub secrets: Vec<(String, String)>,
    /// Write one JSON object, to standard output unless =FILE is said; the text goes to standard error then
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true, default_missing_value = "-")]
    pub json: Option<PathBuf>,
    /// Print nothing while it reads
    #[arg(long, short)]
    pub quiet: bool,
}

impl RunArguments {
    /// How it is to be watched.
    pub fn display_options(&self) -> DisplayOptions {
        DisplayOptions { tui: self.tui, quiet: self.quiet, goal: None }
    }

    /// The one rate that is asked for.
    pub fn constant_rate(&self) -> Result<Option<f64>, Failure> {
        let Some(range) = self.rate else { return Ok(None) };
        let reason = "--rate: a scenario ramps by phases of its own, like `phases: [{for: 1m, rate: 100/s to 5k/s}]`; give \
                      one rate, which becomes the highest of them";
        range.constant().map(Some).ok_or_else(|| Failure::usage(reason))
    }
}

/// Where something listens.
pub fn address(text: &str) -> Result<SocketAddr, String> {
    text.parse().map_err(|_| "write an IP address and a port, as in 127.0.0.1:8080".to_owned())
}

/// `KEY=VALUE`.
pub fn key_value(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.trim().is_empty() => Ok((key.trim().to_owned(), value.to_owned())),
        _ => Err("write it as KEY=VALUE".into()),
    }
}

/// What `--watch` names.
pub fn watch(text: &str) -> Result<Watch, String> {
    Watched::parse(text).map(Watch::of)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_flags_do_not_contradict_each_other() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn runs_are_shown_to_this_machine_unless_another_address_is_named() {
        let arguments = Arguments::try_parse_from(["tidemark", "ui"]).unwrap();
        let Some(Verb::Ui(ui)) = arguments.verb else { panic!("it is ui") };
        assert!(ui.listen.ip().is_loopback(), "{}", ui.listen);
    }

    #[test]
    fn settings_keep_what_follows_the_first_equals_sign() {
        assert_eq!(key_value("a=b=c").unwrap(), ("a".into(), "b=c".into()));
        assert_eq!(key_value("a=").unwrap(), ("a".into(), String::new()));
        assert!(key_value("=b").is_err() && key_value("ab").is_err());
    }
}
