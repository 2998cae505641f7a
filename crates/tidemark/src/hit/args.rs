//! `tidemark hit`: the flags that other tools of the trade have, under the same letters where they agree.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use clap::builder::UnknownArgumentValueParser;
use tidemark_scenario::plan::Watch;

use crate::driver::{DriverArguments, driver_pin};
use crate::quantities::{RateRange, count, length, rate, time, timeout, users};
use crate::reach::ReachArguments;
use crate::results::ResultArguments;
use crate::sinks::SinkArguments;
use crate::trace::TraceArguments;

/// The order in which a person thinks of the flags.
const LOAD: &str = "Load";
const REQUEST: &str = "Request";
const OUTPUT: &str = "Verdict and output";

/// `tidemark hit`
#[derive(Debug, Args)]
#[command(after_help = "\
Without -r the loop is closed: a connection sends again once its last answer has come. With -r it \
is open: requests are due at the rate whatever the server does, and times count from then.

Exit status: 0 every objective met, 1 one missed or the URL unreachable, 2 wrong use, \
3 no valid measurement, 130 stopped.

Examples:
  tidemark hit http://127.0.0.1:8080/
  tidemark hit :8080/ -c 200 --for 30s --latency
  tidemark hit :8080/ -r 5k --until 'p99<10ms' --until 'errors=0'
  tidemark hit :8080/ -r 100:5k -d 1m
  tidemark hit :8080/items -n 1000 -m POST -b @item.json
  tidemark hit :8080/login --expect 302
  tidemark hit grpc://127.0.0.1:50051/shop.Cart/Add -b '{\"amount\": 1}'
  tidemark hit :8080/ --watch port=8080 --watch name=postgres
  tidemark hit :8080/ --random-path 'item-[0-9]{4}' --save
  tidemark hit :8080/ -r 1k/s --for 30s --print-scenario > first.yaml
  tidemark hit --urls targets.txt -r 500
  tidemark hit -s trade.lua -c 100 :8080/trade -- buy
  tidemark hit -c 20 curl -X POST --data-raw '{}' http://127.0.0.1:8080/
  tidemark hit https://shop.test/ --connect-to 127.0.0.1:8443 --cacert ca.pem")]
#[command(mut_arg("pins", |arg| {
    let help = "Cores for the driving threads, one after the other: driver=2,3, or only 2,3";
    arg.value_name("CORES").value_parser(driver_pin).help(help)
}))]
pub struct HitArguments {
    /// What to send requests to; http:// may be left out. Or a command line of curl, behind all other flags
    #[arg(value_name = "URL", required_unless_present = "urls")]
    pub url: Option<String>,
    /// The words of a command line of curl, from that word on.
    #[arg(skip)]
    pub curl: Vec<String>,
    /// Connections [default: 50 in a closed loop; in an open loop as needed, up to 1000]; in an open loop N are made beforehand and used in turn
    #[arg(short, long, value_name = "N", value_parser = users, help_heading = LOAD)]
    pub connections: Option<u32>,
    /// Length of the measurement, like 30s or 5m [default: 10s]
    #[arg(short = 'd', long = "for", visible_alias = "duration", short_alias = 'z', value_name = "TIME", value_parser = length, help_heading = LOAD)]
    pub duration: Option<Duration>,
    /// No flag here: the error names the one that is.
    #[arg(long = "hold", hide = true, num_args = 0..=1, value_parser = UnknownArgumentValueParser::suggest_arg("--for"))]
    _hold: Option<String>,
    /// No flag here: the error names the one that is.
    #[arg(long = "out", hide = true, num_args = 0..=1, value_parser = UnknownArgumentValueParser::suggest_arg("--save"))]
    _out: Option<String>,
    /// No flag here: the error names the one that is.
    #[arg(long = "vus", hide = true, num_args = 0..=1, value_parser = UnknownArgumentValueParser::suggest_arg("--connections"))]
    _vus: Option<String>,
    /// Stop after exactly N requests; all of them count
    #[arg(short = 'n', long, value_name = "N", value_parser = count, help_heading = LOAD)]
    pub requests: Option<u64>,
    /// Requests that are due each second, like 5k (open loop); 100:5k ramps evenly from 100 to 5,000 over the measurement
    #[arg(short, long, short_alias = 'R', value_name = "RATE", value_parser = rate, help_heading = LOAD)]
    pub rate: Option<RateRange>,
    /// Requests that may wait for a free connection; more are dropped [default: as many as fit into 256 MiB]
    #[arg(long, value_name = "N", requires = "rate", help_heading = LOAD)]
    pub waiting: Option<u32>,
    /// Poisson arrivals, as from many independent users, instead of even spacing
    #[arg(long, requires = "rate", help_heading = LOAD)]
    pub poisson: bool,
    /// How it is driven.
    #[command(flatten, next_help_heading = LOAD)]
    pub driver: DriverArguments,
    /// Method; GET, or POST where there is a body
    #[arg(short, short_alias = 'X', long, alias = "request", value_name = "METHOD", help_heading = REQUEST)]
    pub method: Option<String>,
    /// A header, as 'Name: value' (repeatable)
    #[arg(short = 'H', long = "header", value_name = "HEADER", help_heading = REQUEST)]
    pub headers: Vec<String>,
    /// The body, or @FILE; @- reads standard input
    #[arg(short, long, value_name = "TEXT", conflicts_with = "body_file", help_heading = REQUEST)]
    pub body: Option<String>,
    /// A file with the body; - reads standard input
    #[arg(short = 'B', short_alias = 'D', long, value_name = "FILE", help_heading = REQUEST)]
    pub body_file: Option<PathBuf>,
    /// Content-Type of the body [default: application/json, text/plain or application/octet-stream, as it is]
    #[arg(long, value_name = "TYPE", help_heading = REQUEST)]
    pub content_type: Option<String>,
    /// Longest time for an answer [default: 30s]
    #[arg(short = 'T', long, value_name = "TIME", value_parser = timeout, help_heading = REQUEST)]
    pub timeout: Option<Duration>,
    /// Statuses of good answers, like 200 or 2xx,404 or 200-204; all others are failures [default: all below 400]
    #[arg(long, value_name = "STATUSES", value_delimiter = ',', value_parser = crate::quantities::statuses, help_heading = REQUEST)]
    pub expect: Vec<String>,
    /// Load before the measurement, excluded from all figures; 0s for none [default: 1s]
    #[arg(long, value_name = "TIME", value_parser = time, help_heading = LOAD)]
    pub warm_up: Option<Duration>,
    /// A file of requests to one server, in turn, each with a line of the report: URLs or paths, METHOD URL BODY, vegeta's
    /// targets, command lines of curl
    #[arg(long, value_name = "FILE", conflicts_with = "random_path", help_heading = REQUEST)]
    pub urls: Option<PathBuf>,
    /// A script of wrk or wrk2 (Lua), which makes the requests; arguments after -- go to its `init`
    #[arg(short = 's', long, value_name = "FILE", help_heading = REQUEST, conflicts_with_all =
          ["urls", "random_path", "method", "body", "body_file", "content_type", "expect", "pipeline"])]
    pub script: Option<PathBuf>,
    /// What the script's `init` is given.
    #[arg(last = true, requires = "script", hide = true)]
    pub script_args: Vec<String>,
    /// Append random text to the path: item-[0-9]{4}, (cats|dogs)/[a-z]{1,8}
    #[arg(long, value_name = "PATTERN", help_heading = REQUEST)]
    pub random_path: Option<String>,
    /// Of grpc://: a .proto file with the method (repeatable) [default: the server's reflection tells it]
    #[arg(long, value_name = "FILE", conflicts_with = "protoset", help_heading = REQUEST)]
    pub proto: Vec<PathBuf>,
    /// Of grpc://: a folder that --proto imports from (repeatable) [default: that of the file]
    #[arg(long, value_name = "DIR", requires = "proto", help_heading = REQUEST)]
    pub import_path: Vec<PathBuf>,
    /// Of grpc://: a file with a descriptor set
    #[arg(long, value_name = "FILE", help_heading = REQUEST)]
    pub protoset: Option<PathBuf>,
    /// A new connection for each request
    #[arg(long, help_heading = REQUEST)]
    pub disable_keepalive: bool,
    /// Requests at once on each connection, sent without waiting for earlier answers
    #[arg(long, value_name = "N", default_value_t = 1, hide_default_value = true,
          value_parser = clap::value_parser!(u16).range(1..=1024), conflicts_with = "disable_keepalive",
          help_heading = REQUEST)]
    pub pipeline: u16,
    /// What is looked at beside the load: port=8080, pid=N, name=PROGRAM, cgroup=/PATH, unit=NAME, container=NAME, or the URL of a page of metrics, with series behind a # (repeatable)
    #[arg(long, value_name = "WHAT", value_parser = crate::args::watch, help_heading = LOAD)]
    pub watch: Vec<Watch>,
    /// An objective, which exit status 0 requires, like 'p99<10ms', 'errors<0.1%' or 'rate>5k/s' (repeatable)
    #[arg(long = "until", visible_alias = "objective", value_name = "OBJECTIVE", help_heading = OUTPUT)]
    pub objectives: Vec<String>,
    /// Show more percentiles
    #[arg(long, help_heading = OUTPUT)]
    pub latency: bool,
    /// Keep the run and its report, in a new directory in runs/ or in DIR
    #[arg(long, value_name = "DIR", num_args = 0..=1, require_equals = true, help_heading = OUTPUT)]
    pub save: Option<Option<PathBuf>>,
    /// Only print the scenario that the flags describe, for `tidemark run`; it holds headers and body as given
    #[arg(long, help_heading = OUTPUT, conflicts_with_all =
          ["json", "save", "tui", "junit", "markdown", "github", "csv", "hlog"])]
    pub print_scenario: bool,
    /// Show rate, latencies, errors and CPU on the full screen; q stops the run
    #[arg(long, conflicts_with = "quiet", help_heading = OUTPUT)]
    pub tui: bool,
    /// Print nothing while it runs, and nothing but errors on standard error
    #[arg(short, long, help_heading = OUTPUT)]
    pub quiet: bool,
    /// How the URL is reached
    #[command(flatten)]
    pub reach: ReachArguments,
    /// Results for machines.
    #[command(flatten)]
    pub results: ResultArguments,
    /// Metrics while it runs.
    #[command(flatten)]
    pub sinks: SinkArguments,
    /// A sample of the requests as they were.
    #[command(flatten)]
    pub trace: TraceArguments,
}
