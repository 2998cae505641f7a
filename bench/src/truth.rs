//! What each tool reports of a server whose behaviour is known: a freeze, a fixed delay, and one that holds half of
//! what it is offered.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use crate::job::Job;
use crate::machine;
use crate::process;
use crate::served;
use crate::table::Table;
use crate::text::{thousands, time};
use crate::tool::{Figures, Tool, find, words};
use crate::tools;

/// Longest time that a tool may take beyond its seconds.
const OVERTIME: Duration = Duration::from_secs(90);
/// The length of the freeze.
const FREEZE_US: f64 = 1e6;
/// How long the frozen server keeps a request otherwise.
const FREEZE_DELAY_US: f64 = 1e3;
/// The fixed delay.
const DELAY_US: f64 = 20e3;
/// Requests that an overloaded server is behind by at the end: less than any tool's own bound, so that what shows is not that.
const BACKLOG: u64 = 8_000;
/// Longest time of an overload, seconds: what is behind needs as long again, and tools wait for answers only so long at the end.
const OVERLOAD_S: u64 = 8;
/// A figure is true when it is off by no more than a tenth, or by this where that is more.
const NEAR_US: f64 = 2e3;
/// The same for the longest of all, which a busy machine lengthens by itself.
const NEAR_LONGEST_US: f64 = 20e3;

/// `tidemark-bench truth`
#[derive(Debug, Args)]
pub struct Options {
    /// Requests a second where a tool knows a rate
    #[arg(long, env = "RATE", default_value_t = 5_000)]
    rate: u64,
    /// Seconds of each run
    #[arg(long, env = "SECONDS_EACH", default_value_t = 20)]
    seconds: u64,
    /// Connections
    #[arg(long, env = "CONNECTIONS", default_value_t = 64)]
    connections: usize,
    /// Only these tools
    #[arg(long, env = "TOOLS", value_delimiter = ',')]
    tools: Vec<String>,
    /// Only these cases: freeze, delay, overload
    #[arg(long, env = "CASES", value_delimiter = ',')]
    cases: Vec<String>,
}

/// One behaviour of the server, and what is true of it.
struct Case {
    key: &'static str,
    title: &'static str,
    about: String,
    /// Arguments of the server.
    server: Vec<String>,
    rate: u64,
    seconds: u64,
    /// Median, p99 and the longest, microseconds.
    true_us: [f64; 3],
}

fn cases(options: &Options) -> Vec<Case> {
    let (seconds, rate) = (options.seconds as f64, options.rate);
    let after_ms = (seconds * 250.0).to_string();
    let overload_s = options.seconds.clamp(1, OVERLOAD_S);
    let capacity = (rate / 4).min(BACKLOG / overload_s).max(1);
    vec![
        Case {
            key: "freeze",
            title: "A freeze of a second",
            about: format!(
                "The server answers after 1 ms, and {} s after its first request it answers nothing for a second. Requests that \
                 come evenly meanwhile wait for its end: the slowest hundredth of a run of {seconds} s are those of the freeze's \
                 first {} s.",
                seconds / 4.0,
                seconds / 100.0
            ),
            server: words(["--delay", "fixed:1ms", "--freeze-after-ms", &after_ms, "--freeze-ms", "1000"]),
            rate,
            seconds: options.seconds,
            true_us: [FREEZE_DELAY_US, FREEZE_US - 1e4 * seconds + FREEZE_DELAY_US, FREEZE_US + FREEZE_DELAY_US],
        },
        Case {
            key: "delay",
            title: "A fixed delay",
            about: "The server answers each request after 20 ms. Each tool is held against how long the server did keep its requests."
                .to_owned(),
            server: words(["--delay", "fixed:20ms"]),
            rate: rate / 5,
            seconds: options.seconds,
            true_us: [DELAY_US, DELAY_US, DELAY_US],
        },
        Case {
            key: "overload",
            title: "A server that holds half of what it is offered",
            about: format!(
                "It serves {} requests a second, one after the other, and is offered {}: the backlog grows, and whoever comes \
                 at the end of {overload_s} s waits for {overload_s} s.",
                thousands(capacity as f64),
                thousands(2.0 * capacity as f64)
            ),
            server: words(["--capacity", &capacity.to_string()]),
            rate: 2 * capacity,
            seconds: overload_s,
            true_us: [0.5e6, 0.99e6, 1e6].map(|us| us * overload_s as f64),
        },
    ]
}

/// Runs all cases and prints their tables as Markdown.
pub fn run(options: &Options) -> std::io::Result<()> {
    let server = std::env::current_exe()?.with_file_name("truth-server");
    if !server.is_file() {
        return Err(std::io::Error::other("truth-server is not built; bench/truth/run builds it"));
    }
    let dir = tempfile::tempdir()?;
    let place = Place { server, dir: dir.path().to_owned(), cores: split() };
    println!(
        "{}, {}, load average {}; {} s each, {} connections; server on core {}, tools on {}.",
        machine::today(),
        machine::describe(),
        machine::load_average(),
        options.seconds,
        options.connections,
        place.cores.0,
        place.cores.1
    );
    println!("True: off by no more than a tenth (or 2 ms; the longest: 20 ms).\n");
    let wanted =
        |tool: &dyn Tool| options.tools.is_empty() || options.tools.iter().any(|name| name == tool.name());
    let (there, absent): (Vec<_>, Vec<_>) = tools::all()
        .into_iter()
        .filter(|tool| tool.name() == tool.program() && wanted(tool.as_ref()))
        .partition(|tool| find(tool.program()).is_some());
    for case in cases(options)
        .iter()
        .filter(|case| options.cases.is_empty() || options.cases.iter().any(|key| key == case.key))
    {
        println!("## {}\n\n{}\n", case.title, case.about);
        place.table(case, options, &there)?;
    }
    if !absent.is_empty() {
        let names: Vec<&str> = absent.iter().map(|tool| tool.name()).collect();
        println!("Absent, and left out: {} (`bench/peers` gets what can be had).\n", names.join(", "));
    }
    Ok(())
}

/// The cores of the server and of the tools.
fn split() -> (String, String) {
    match machine::cores() {
        1 => ("0".to_owned(), "0".to_owned()),
        cores => ("0".to_owned(), format!("1-{}", cores - 1)),
    }
}

struct Place {
    server: PathBuf,
    dir: PathBuf,
    cores: (String, String),
}

impl Place {
    fn table(&self, case: &Case, options: &Options, tools: &[Box<dyn Tool>]) -> std::io::Result<()> {
        let mut table = Table::new(&[
            "tool",
            "load",
            "requests/s",
            "p50",
            "p99",
            "longest",
            "errors",
            "remarks",
            "tells the truth",
        ]);
        let truth = case.true_us.map(|us| format!("*{}*", time(Some(us))));
        let [p50, p99, longest] = truth;
        let none = String::new;
        table.row(vec!["*the truth*".to_owned(), none(), none(), p50, p99, longest, none(), none(), none()]);
        for tool in tools {
            for (load, job) in self.jobs(tool.name(), case, options) {
                let Some((figures, kept_us)) = self.measure(tool.as_ref(), job, case)? else { continue };
                // what the server says that it did, where that is what is true
                let true_us = kept_us.filter(|_| case.key == "delay").unwrap_or(case.true_us);
                table.row(vec![
                    tool.name().to_owned(),
                    load,
                    figures.per_s.map_or("–".to_owned(), thousands),
                    time(figures.p50_us),
                    time(figures.p99_us),
                    time(figures.max_us),
                    figures.errors.map_or("–".to_owned(), thousands),
                    figures.remark.clone(),
                    verdict(true_us, &figures).to_owned(),
                ]);
            }
        }
        table.print();
        Ok(())
    }

    /// The ways in which a tool can be asked, each with its name.
    fn jobs(&self, tool: &str, case: &Case, options: &Options) -> Vec<(String, Job)> {
        let job = Job {
            path: "/".to_owned(),
            connections: options.connections,
            seconds: case.seconds,
            rate: Some(case.rate),
            pipeline: 1,
            dir: self.dir.join(tool),
            ..Job::default()
        };
        let rate = format!("{}/s", thousands(case.rate as f64));
        match tool {
            // it speaks HTTP/1.0, which this server does not
            "ab" => Vec::new(),
            "wrk" | "h2load" => vec![("closed, knows no rate".to_owned(), Job { rate: None, ..job })],
            "vegeta" => vec![
                (format!("{rate}, {} workers", job.connections), job.clone()),
                (format!("{rate}, workers as it likes"), Job { unlimited: true, ..job }),
            ],
            "k6" => vec![
                (format!("{rate}, {} users", job.connections), job.clone()),
                (format!("{rate}, {} users", 10 * job.connections), Job { unlimited: true, ..job }),
            ],
            "oha" => vec![
                (rate.clone(), Job { uncorrected: true, ..job.clone() }),
                (format!("{rate}, `--latency-correction`"), job),
            ],
            _ => vec![(rate, job)],
        }
    }

    /// What the tool said, and how long the server kept the requests: p50, p99 and the longest, microseconds.
    fn measure(
        &self,
        tool: &dyn Tool,
        mut job: Job,
        case: &Case,
    ) -> std::io::Result<Option<(Figures, Option<[f64; 3]>)>> {
        match std::fs::remove_dir_all(&job.dir) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error),
            _ => std::fs::create_dir_all(&job.dir)?,
        }
        let command = [vec![self.server.display().to_string()], case.server.clone()].concat();
        let server = served::start(&command, &self.cores.0)?;
        job.origin = format!("http://{}", server.address);
        let (Some(program), Some(arguments)) = (find(tool.program()), tool.arguments(&job)?) else {
            server.end()?;
            return Ok(None);
        };
        let limit = Duration::from_secs(2 * job.seconds) + OVERTIME;
        let with = |arguments: Vec<String>| [vec![program.display().to_string()], arguments].concat();
        let mut used = process::run(&with(arguments), &self.cores.1, limit, &job.dir)?;
        let kept = &server.end()?.said["kept_us"];
        let kept_us = kept["p50"].as_f64().zip(kept["p99"].as_f64()).zip(kept["max"].as_f64());
        let kept_us = kept_us.map(|((p50, p99), longest)| [p50, p99, longest]);
        if let Some(report) = tool.report(&job) {
            used.stdout = process::run(&with(report), &self.cores.1, OVERTIME, &job.dir)?.stdout;
        }
        Ok(Some((tool.figures(&job, &used), kept_us)))
    }
}

fn verdict(true_us: [f64; 3], figures: &Figures) -> &'static str {
    let near = |said: Option<f64>, truth: f64, most: f64| {
        said.is_some_and(|said| (said - truth).abs() <= (0.1 * truth).max(most))
    };
    let p50 = near(figures.p50_us, true_us[0], NEAR_US);
    let p99 = near(figures.p99_us, true_us[1], NEAR_US);
    let longest = near(figures.max_us, true_us[2], NEAR_LONGEST_US);
    match (p50 && p99, longest) {
        (true, true) => "yes",
        (true, false) => "but for the longest",
        (false, true) => "only of the longest",
        (false, false) => "no",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verdicts() {
        let options =
            Options { rate: 5_000, seconds: 20, connections: 64, tools: Vec::new(), cases: Vec::new() };
        let cases = cases(&options);
        let said = |p50: f64, p99: f64, max: f64| {
            let ms = |ms: f64| Some(ms * 1e3);
            Figures { p50_us: ms(p50), p99_us: ms(p99), max_us: ms(max), ..Figures::default() }
        };
        assert_eq!(verdict(cases[0].true_us, &said(1.2, 812.0, 1_002.0)), "yes");
        assert_eq!(verdict(cases[0].true_us, &said(1.2, 4.0, 1_002.0)), "only of the longest");
        assert_eq!(verdict(cases[0].true_us, &Figures::default()), "no");
        assert_eq!(verdict(cases[1].true_us, &said(20.1, 20.9, 95.0)), "but for the longest");
        assert_eq!(verdict(cases[2].true_us, &said(3_900.0, 7_700.0, 7_990.0)), "yes");
    }
}
