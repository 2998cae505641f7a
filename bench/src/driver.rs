//! What each tool costs: the same load, the same server, in turn, several rounds.

mod measure;
mod memory;

use std::collections::BTreeMap;

use clap::Args;

use crate::machine::{self, Ticks};
use crate::shape::{self, Shape};
use crate::table::Table;
use crate::text::{median, thousands, three, time};
use crate::tool::{Tool, find};
use crate::tools;
pub use measure::{Measured, Place};

/// The share of ours' closed rate that the open load asks for.
const OPEN_SHARE: f64 = 0.8;
/// The one that all this is about.
const OURS: &str = "tidemark";
/// The one that others are related to.
const MEASURE: &str = "wrk";
/// A server that was busier than this share of its cores may have been the limit.
const SERVER_BUSY: f64 = 0.9;

/// `tidemark-bench driver`
#[derive(Debug, Args)]
pub struct Options {
    /// Rounds; each runs every tool once, and figures are the medians
    #[arg(long, env = "RUNS", default_value_t = 5)]
    runs: usize,
    /// Seconds of each run
    #[arg(long, env = "SECONDS_EACH", default_value_t = 5)]
    seconds: u64,
    /// One short round; not for publication
    #[arg(long, env = "QUICK", value_parser = clap::builder::FalseyValueParser::new())]
    quick: bool,
    /// Only these shapes, by their keys: get-100, get-10, get-1000, get-10000, open, session, post,
    /// large, pipeline, tls, tls-1000, tls-10000, tls-new, memory
    #[arg(long, env = "SHAPES", value_delimiter = ',')]
    shapes: Vec<String>,
    /// Only these tools
    #[arg(long, env = "TOOLS", value_delimiter = ',')]
    tools: Vec<String>,
    /// Cores of the server, as taskset takes them
    #[arg(long, env = "SERVER_CORES")]
    server_cores: Option<String>,
    /// Core of the tools
    #[arg(long, env = "CLIENT_CORE")]
    client_core: Option<String>,
}

/// All rounds of each tool, by its name.
type Results = BTreeMap<&'static str, Vec<Measured>>;

/// Everything that a run of the harness needs.
struct Bench {
    runs: usize,
    seconds: u64,
    quick: bool,
    place: Place,
    tools: Vec<Box<dyn Tool>>,
    shapes: Vec<String>,
}

/// Runs all shapes and prints their tables as Markdown.
pub fn run(options: &Options) -> std::io::Result<()> {
    let cores = machine::cores();
    if cores < 2 {
        return Err(std::io::Error::other("needs two cores: one for the server, one for the tool"));
    }
    // half of the cores serve, the last one drives, the others are left to everything else
    let half = cores / 2;
    let server_cores = options.server_cores.clone().unwrap_or_else(|| format!("0-{}", half - 1));
    let client_core = options.client_core.clone().unwrap_or_else(|| (cores - 1).to_string());
    let (there, absent): (Vec<_>, Vec<_>) =
        tools::all().into_iter().partition(|tool| find(tool.program()).is_some());
    let wanted =
        |tool: &dyn Tool| options.tools.is_empty() || options.tools.iter().any(|name| name == tool.name());
    let bench = Bench {
        runs: if options.quick { 1 } else { options.runs.max(1) },
        seconds: if options.quick { 2 } else { options.seconds.max(1) },
        quick: options.quick,
        place: Place::new(server_cores, client_core)?,
        tools: there.into_iter().filter(|tool| wanted(tool.as_ref())).collect(),
        shapes: options.shapes.clone(),
    };
    bench.preface(&absent.iter().map(|tool| tool.name()).collect::<Vec<_>>());
    let mut closed = None;
    for shape in shape::all().iter().filter(|shape| bench.wants(shape.key)) {
        let rate = if shape.open { Some(bench.open_rate(closed.as_ref())?) } else { None };
        let mut results = bench.table(shape, rate)?;
        if shape.back_ends {
            bench.compare(&results);
            closed = results.remove(OURS);
        } else if let (Some(open), Some(closed)) = (results.get(OURS).filter(|_| shape.open), &closed) {
            let dearer = 100.0 * (per_cpu_s(closed) / per_cpu_s(open).max(1e-9) - 1.0);
            println!("A request of {OURS} costs {dearer:+.0} % CPU against its closed loop above.\n");
        }
    }
    if bench.wants("memory") {
        memory::table(&bench)?;
    }
    Ok(())
}

impl Bench {
    fn wants(&self, key: &str) -> bool {
        self.shapes.is_empty() || self.shapes.iter().any(|wanted| wanted == key)
    }

    fn preface(&self, absent: &[&str]) {
        let place = &self.place;
        println!("{}, {}, load average {}.", machine::today(), machine::describe(), machine::load_average());
        println!(
            "The server has cores {} ({} threads), each tool core {}. {} round(s) of {} s for each tool, in turn; \
             figures are medians, the spread is the largest less the smallest in percent of the median.{}",
            place.server_cores,
            place.threads,
            place.client_core,
            self.runs,
            self.seconds,
            if self.quick { " A quick run: not for publication." } else { "" }
        );
        println!();
        for tool in self.tools.iter().filter(|tool| tool.name() == tool.program()) {
            if let Some(version) = measure::version(tool.as_ref()) {
                println!("- {version}");
            }
        }
        if !absent.is_empty() {
            println!(
                "- absent, and missing below: {} (`bench/peers` gets what can be had)",
                absent.join(", ")
            );
        }
        println!();
    }

    /// 80 % of what ours reaches closed: in this run, or by a run of its own.
    fn open_rate(&self, closed: Option<&Vec<Measured>>) -> std::io::Result<u64> {
        let closed = match closed {
            Some(runs) => median(&numbers(runs, |run| run.per_s)).unwrap_or(0.0),
            None => {
                let shape = &shape::all()[0];
                let ours = self.tools.iter().find(|tool| tool.name() == OURS);
                let ours =
                    ours.ok_or_else(|| std::io::Error::other("the open load needs tidemark for its rate"))?;
                let measured =
                    self.place.measure(shape, ours.as_ref(), shape.connections, self.seconds, None)?;
                measured.map_or(0.0, |measured| measured.per_s)
            }
        };
        let rounded = (closed * OPEN_SHARE / 1_000.0).round() * 1_000.0;
        Ok(rounded.max(1_000.0) as u64)
    }

    /// One shape: all rounds, then its table.
    fn table(&self, shape: &Shape, rate: Option<u64>) -> std::io::Result<Results> {
        let before = Ticks::now();
        let mut results: Results = BTreeMap::new();
        for round in 0..self.runs {
            for index in 0..self.tools.len() {
                // each round begins with another one, so that nobody always comes first
                let tool = self.tools[(index + round) % self.tools.len()].as_ref();
                if (tool.name() != tool.program() && tool.program() == "tidemark" && !shape.back_ends)
                    || shape.connections > tool.most_connections()
                {
                    continue;
                }
                if let Some(measured) =
                    self.place.measure(shape, tool, shape.connections, self.seconds, rate)?
                {
                    results.entry(tool.name()).or_default().push(measured);
                }
            }
        }
        println!("## {}\n", shape.title);
        if !shape.about.is_empty() {
            println!("{}\n", shape.about);
        }
        if let Some(rate) = rate {
            println!("Asked for: {}/s.\n", thousands(rate as f64));
        }
        self.print(shape, &results);
        let (stolen, _) = Ticks::now().since(&before);
        println!(
            "Load average {}, {stolen:.1} % of the time stolen by the hypervisor.\n",
            machine::load_average()
        );
        Ok(results)
    }

    /// Ours against the least loops.
    fn compare(&self, results: &Results) {
        let Some(ours) = results.get(OURS) else { return };
        let ours = numbers(ours, Measured::per_cpu_s);
        let of = |loops: &str| {
            ratio(&ours, results.get(loops)).map(|ratio| format!("{} of the {loops}", three(ratio)))
        };
        let said: Vec<String> =
            ["bare io_uring loop", "bare epoll loop"].into_iter().filter_map(of).collect();
        if !said.is_empty() {
            println!("{OURS} makes {} for each CPU-second.\n", said.join(" and "));
        }
    }

    fn print(&self, shape: &Shape, results: &Results) {
        let mut titles = vec![
            "tool",
            "requests/s",
            "per client CPU-s",
            "spread",
            "× wrk",
            "p50",
            "p99",
            "longest",
            "errors",
            "peak memory",
            "server cores",
        ];
        if shape.close {
            titles.push("resumed");
        }
        titles.push("remarks");
        let mut table = Table::new(&titles);
        let (mut silent, mut busy) = (Vec::new(), Vec::new());
        for tool in &self.tools {
            let Some(runs) = results.get(tool.name()) else {
                if tool.name() == tool.program() {
                    silent.push(tool.name());
                }
                continue;
            };
            let per_cpu = numbers(runs, |run| run.per_cpu_s());
            let middle = median(&per_cpu).unwrap_or(0.0);
            let (least, most) = (
                per_cpu.iter().fold(f64::MAX, |a, b| a.min(*b)),
                per_cpu.iter().fold(0.0f64, |a, b| a.max(*b)),
            );
            let server_cores = median(&numbers(runs, |run| run.server_cores)).unwrap_or(0.0);
            if server_cores > SERVER_BUSY * self.place.threads as f64 {
                busy.push(tool.name());
            }
            let said =
                |of: fn(&Measured) -> Option<f64>| median(&runs.iter().filter_map(of).collect::<Vec<_>>());
            let mut row = vec![
                tool.name().to_owned(),
                thousands(median(&numbers(runs, |run| run.per_s)).unwrap_or(0.0)),
                thousands(middle),
                match runs.len() {
                    1 => "–".to_owned(),
                    _ => format!("{:.0} %", 100.0 * (most - least) / middle.max(1e-9)),
                },
                ratio(&per_cpu, results.get(MEASURE)).map_or("–".to_owned(), three),
                time(said(|run| run.said.p50_us)),
                time(said(|run| run.said.p99_us)),
                time(said(|run| run.said.max_us)),
                said(|run| run.said.errors).map_or("–".to_owned(), thousands),
                format!(
                    "{} MiB",
                    three(median(&numbers(runs, |run| run.peak_bytes as f64)).unwrap_or(0.0) / 1048576.0)
                ),
                three(server_cores),
            ];
            if shape.close {
                row.push(format!(
                    "{:.0} %",
                    100.0 * median(&numbers(runs, |run| run.resumed)).unwrap_or(0.0)
                ));
            }
            row.push(runs.last().map(Measured::remark).unwrap_or_default());
            table.row(row);
        }
        table.print();
        if !silent.is_empty() {
            println!("Cannot do this, or not yet: {}.\n", silent.join(", "));
        }
        if !busy.is_empty() {
            println!("Held back by the server (more than 90 % of its cores busy): {}.\n", busy.join(", "));
        }
    }
}

/// The median of the rounds' ratios, each of two runs that followed each other closely.
fn ratio(of: &[f64], to: Option<&Vec<Measured>>) -> Option<f64> {
    let pairs: Vec<f64> = of.iter().zip(to?).map(|(of, to)| of / to.per_cpu_s().max(1e-9)).collect();
    median(&pairs)
}

/// Requests for each CPU-second: the median of the rounds.
fn per_cpu_s(runs: &[Measured]) -> f64 {
    median(&numbers(runs, Measured::per_cpu_s)).unwrap_or(0.0)
}

fn numbers(runs: &[Measured], of: impl Fn(&Measured) -> f64) -> Vec<f64> {
    runs.iter().map(of).collect()
}
