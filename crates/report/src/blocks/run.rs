//! A run: the verdict first.

use tidemark_record::manifest::{Manifest, ObjectiveResult, Service};
use tidemark_record::summary::{Latency, Status, Summary};
use tidemark_record::{Outcome, Reason, ReasonKind, RecordError, Run};

use super::jmeter::millions;
use super::percentiles::Times;
use super::script;
use super::{
    Block, Level, Table, cost, distribution, driver, faults, ledger, level, maintenance, parts, percentiles,
    phases, tables, word,
};
use crate::units::{
    bytes, compact, count, duration, mean, more_than, percent, plural, seconds, three_digits, time,
};
use crate::{page, watched};

/// First failures that are shown of each kind.
const EXAMPLES: usize = 3;
/// Less than this is not plainly all.
const ALL: f64 = 0.9995;
/// A day, seconds.
pub(super) const DAY_S: f64 = 86_400.0;

/// What a person wants to know of a run, in one or two screens.
pub fn run(run: &Run) -> Vec<Block> {
    of(run, None)
}

/// The same in detail: more percentiles, how many requests lie in each half second, operations a day.
///
/// # Errors
/// Where the run is damaged.
pub fn run_in_detail(run: &Run) -> Result<Vec<Block>, RecordError> {
    let mut detail = percentiles::table(&Times::of(run)?).to_vec();
    detail.extend(distribution::of_run(run)?);
    Ok(of(run, Some(detail)))
}

fn of(run: &Run, detail: Option<Vec<Block>>) -> Vec<Block> {
    let manifest = &run.manifest;
    let summary = &manifest.summary;
    let mut blocks = verdict(manifest).to_vec();
    blocks.extend(what_ran(manifest));
    blocks.extend(throughput(run));
    blocks.extend(detail.is_some().then(|| operations_per_day(summary)));
    blocks.extend(latency(summary));
    blocks.extend(detail.into_iter().flatten());
    blocks.extend(parts::time_parts(manifest));
    blocks.extend(parts::slowest(summary));
    blocks.extend(phases::phases(summary));
    blocks.extend(tables::targets(summary));
    blocks.extend(tables::labels(summary));
    blocks.extend(tables::groups(summary));
    blocks.extend(tables::own_metrics(summary));
    blocks.extend(tables::ratios(summary));
    blocks.extend(manifest.script.iter().flat_map(script::blocks));
    blocks.extend(errors(manifest));
    blocks.extend(faults::faults(summary));
    blocks.extend(maintenance::maintenance(summary));
    blocks.extend(cpu(manifest));
    blocks.extend(manifest.bill.iter().flat_map(cost::bill));
    blocks.extend(watched_series(manifest));
    blocks.extend(driver::driver(manifest));
    blocks.extend(objectives(manifest));
    blocks.extend(ledger::ledger(manifest));
    blocks.extend(notes(manifest));
    // of a run that is not kept there is no place
    blocks.extend((!summary.run_dir.is_empty()).then(|| Block::Place("Run", run.dir.clone())));
    blocks
}

pub(super) fn verdict(manifest: &Manifest) -> [Block; 2] {
    let summary = &manifest.summary;
    let status = summary.verdict.status;
    let mut says: Vec<(Level, String)> =
        summary.verdict.reasons.iter().map(|reason| (Level::Plain, reason.to_string())).collect();
    if status == Status::Pass && says.is_empty() {
        says.push((Level::Plain, met(manifest)));
    }
    if is_partial(manifest) {
        says.push((Level::Plain, "stopped early: the figures are of the part that ran".into()));
    }
    says.extend(drift(summary).map(|drift| (Level::Warning, drift)));
    says.extend(summary.warnings.iter().map(|warning| (Level::Warning, format!("warning: {warning}"))));
    [
        Block::Title(level(status), format!("{}: {}", manifest.scenario, word(status))),
        Block::Verdict(status, says),
    ]
}

/// Whether the figures are of a part of the run and no reason says so.
fn is_partial(manifest: &Manifest) -> bool {
    let says = |reason: &Reason| reason.kind() == ReasonKind::Stopped;
    (manifest.interrupted || manifest.cut_short.is_some())
        && !manifest.summary.verdict.reasons.iter().any(says)
}

/// What a pass says.
fn met(manifest: &Manifest) -> String {
    let (unasked, asked): (Vec<_>, Vec<_>) = manifest.objectives.iter().partition(|of| of.default);
    match (asked.len(), &unasked[..]) {
        (0, []) => "no objectives were set".to_owned(),
        // what was measured of those that nobody wrote says how good it was
        (0, unasked) => {
            let each = unasked.iter().map(|of| format!("{} ({})", of.objective, of.measured));
            format!("{}; no objectives were set", each.collect::<Vec<_>>().join(", "))
        }
        (1, _) => "the objective was met".to_owned(),
        (n, _) => format!("all {n} objectives were met"),
    }
}

/// What is to be said where the measured window was not steady.
pub(crate) fn drift(summary: &Summary) -> Option<String> {
    let state = summary.steady_state.as_ref().filter(|state| state.steady == Some(false))?;
    Some(format!("not steady: {}", state.reason))
}

/// Whether users wait for answers; the load is told in words that begin so.
pub(super) fn is_closed(manifest: &Manifest) -> bool {
    manifest.load.starts_with("closed")
}

/// What the times of such a load leave out.
pub(crate) fn closed_loop(manifest: &Manifest) -> Option<&'static str> {
    is_closed(manifest).then_some(
        "each user sends when the last answer has come, in lock-step with the server; times leave out the wait of users \
         who would have come meanwhile",
    )
}

fn what_ran(manifest: &Manifest) -> Vec<Block> {
    let Manifest { system, machine, summary, .. } = manifest;
    let measured = format!("measured for {}", seconds(summary.measured_s));
    let name = match (system.url.is_empty(), system.name == system.url) {
        (true, _) => system.name.clone(),
        (false, true) => system.url.clone(),
        (false, false) => format!("{} at {}", system.name, system.url),
    };
    let pins = pinned(&system.pinned_to);
    let spoken = system.spoken.iter().map(String::as_str);
    let mut blocks =
        vec![Block::Gap, Block::line("scenario", &[&manifest.scenario, &manifest.load, &measured])];
    let closed = closed_loop(manifest).map(|meaning| format!("{meaning} (a `rate` counts it)"));
    blocks.extend(closed.map(|meaning| Block::line("closed loop", &[&meaning])));
    blocks.push(Block::line("system", &[name.as_str(), &pins].into_iter().chain(spoken).collect::<Vec<_>>()));
    let services: Vec<String> = manifest.services.iter().map(service).collect();
    if !services.is_empty() {
        blocks.push(Block::line("services", &services.iter().map(String::as_str).collect::<Vec<_>>()));
    }
    for target in &manifest.targets {
        let at = if target.name == target.url { "" } else { &target.url };
        blocks.push(Block::line("beside it", &[&target.name, at, &target.protocol]));
    }
    for watched in &manifest.watched {
        blocks.push(Block::line("watched", &[&watched.name, &watched.what, &watched.found]));
    }
    if let Some(durability) = &system.durability {
        let sync = system.sync_latency.as_ref().map(|sync| {
            let [p50, p99, max] = [sync.p50_us, sync.p99_us, sync.max_us].map(|us| duration(us as f64));
            format!("disk syncs in {p50}, 99th {p99}, longest {max}")
        });
        blocks.push(Block::line("durability", &[durability, &sync.unwrap_or_default()]));
    }
    if !system.settings.is_empty() {
        let settings = system.settings.iter().map(|(name, value)| (Level::Plain, format!("{name}={value}")));
        blocks.push(Block::Line("settings".into(), settings.collect()));
    }
    let cores = if machine.cores > 0 { plural(machine.cores, "core") } else { String::new() };
    let memory = if machine.memory_bytes > 0 { bytes(machine.memory_bytes) } else { String::new() };
    let steal = match machine.steal_share {
        share if share >= 0.01 => format!("{} cores taken by the hypervisor", three_digits(share)),
        _ => String::new(),
    };
    blocks.push(Block::line("machine", &[&machine.cpu_model, &cores, &memory, &machine.kernel, &steal]));
    blocks
}

/// A service, how many instances it had at the beginning, and what stood in front of them.
fn service(of: &Service) -> String {
    let count = if of.addresses.len() > 1 { format!(" ×{}", of.addresses.len()) } else { String::new() };
    let balancer = of.balancer.as_ref().map_or(String::new(), |balancer| format!(" behind {balancer}"));
    format!("{}{count}{balancer}", of.name)
}

pub(super) fn pinned(cores: &[usize]) -> String {
    let list = cores.iter().map(usize::to_string).collect::<Vec<_>>().join(",");
    match cores.len() {
        0 => String::new(),
        1 => format!("on core {list}"),
        _ => format!("on cores {list}"),
    }
}

/// What stands before an achieved rate where the driver was held up. Of nothing there is no bound to tell, nor where as much
/// was answered as was offered: users who wait for answers would have made more, arrivals are what they are.
pub(super) fn at_least(manifest: &Manifest) -> &'static str {
    let summary = &manifest.summary;
    let is_all = !is_closed(manifest) && summary.achieved_per_s >= summary.offered_per_s;
    let is_bound = !summary.driver.limits.is_empty() && summary.achieved_per_s > 0.0 && !is_all;
    if is_bound { "at least " } else { "" }
}

/// What of the offered load was achieved, as the objective on it has it, where that is not all of it.
pub(super) fn achieved_of_offered(summary: &Summary) -> Option<String> {
    let share = summary.achieved_share?;
    let came = summary.achieved_per_s / summary.offered_per_s.max(f64::MIN_POSITIVE);
    (share < ALL || came < ALL).then(|| format!("{} of offered", percent(share)))
}

fn throughput(run: &Run) -> Vec<Block> {
    let summary = &run.manifest.summary;
    let achieved = format!("{}{}/s", at_least(&run.manifest), three_digits(summary.achieved_per_s));
    // those that came in the window; `good` has those that were due in it
    let came = (summary.achieved_per_s * summary.measured_s).round() as u64;
    let counted = format!("{} good answers in {}", count(came), seconds(summary.measured_s));
    let share = achieved_of_offered(summary).unwrap_or_default();
    let achieved = vec![(Level::Strong, achieved), (Level::Plain, counted), (Level::Plain, share)];
    let mut blocks = vec![Block::heading("Throughput"), Block::Line("achieved".into(), achieved)];
    blocks.extend(good_elsewhere(run).iter().map(|line| Block::line("", &[line])));
    let dropped = match summary.dropped {
        0 => (Level::Plain, "none dropped".into()),
        n => (Level::Bad, format!("{} dropped", count(n))),
    };
    let offered = format!("{}/s", three_digits(summary.offered_per_s));
    let due = format!("{} due", count(summary.due()));
    let offered = vec![(Level::Plain, offered), (Level::Plain, due), dropped];
    blocks.push(Block::Line("offered".into(), offered));
    blocks.push(failures(summary));
    blocks.extend(statuses(summary));
    blocks.extend(decoded(run));
    blocks
}

/// What a day would have at that rate, as the published reporter of Acme Air has it.
fn operations_per_day(summary: &Summary) -> Block {
    Block::line("operations/day", &[&millions(summary.achieved_per_s * DAY_S)])
}

/// Good answers that were due outside of the window and came in it, and the other way round, as far as there are any.
pub(crate) fn good_elsewhere(run: &Run) -> Vec<String> {
    let good = |in_window: bool| {
        let those = run.series.iter().filter(|of| of.outcome == Outcome::Ok);
        let those = those.filter(|of| of.in_window == in_window && of.measured != in_window);
        those.map(|of| of.count).sum::<u64>()
    };
    let lines = [
        (good(true), "of them", "due in the warm-up, and came later"),
        (good(false), "more", "due in the window, and came after it"),
    ];
    let told = lines.into_iter().filter(|(n, ..)| *n > 0);
    told.map(|(n, which, words)| {
        format!("{} {which} {} {words}", count(n), if n == 1 { "was" } else { "were" })
    })
    .collect()
}

/// How many requests had no good answer.
pub(super) fn failures(summary: &Summary) -> Block {
    let failed = match summary.failed {
        0 => (Level::Good, "none".to_owned()),
        n => (Level::Bad, format!("{} ({} of what was due)", count(n), percent(summary.failed_share()))),
    };
    Block::Line("failed".into(), vec![failed])
}

/// Answers by status code, right and wrong ones; nothing where no answer had one.
pub(super) fn statuses(summary: &Summary) -> Option<Block> {
    let parts = summary.statuses.iter().map(|(status, n)| (Level::Plain, format!("{status}: {}", count(*n))));
    (!summary.statuses.is_empty()).then(|| Block::Line("status codes".into(), parts.collect()))
}

/// Bodies that were decoded because a step looks at them: how many bytes they had, and how many came for them. Nothing
/// where none was decoded in the measured window.
pub(super) fn decoded(run: &Run) -> Option<Block> {
    let in_window = run.load.iter().filter(|load| load.in_window);
    let (came, decoded) = in_window
        .fold((0, 0), |(came, decoded), load| (came + load.encoded_bytes, decoded + load.decoded_bytes));
    let times = format!("{} times as much", three_digits(decoded as f64 / came as f64));
    (came > 0)
        .then(|| Block::line("bodies", &[&format!("{} decoded of {}", bytes(decoded), bytes(came)), &times]))
}

pub(super) fn latency(summary: &Summary) -> Vec<Block> {
    let head = ["", "mean", "median", "p90", "p99", "p99.9", "max"];
    let mut table = Table::new(head).dispensable(&["mean", "p99.9", "p90"]).whole_names();
    let mut row = |name: &str, of: &Latency| {
        let times = [of.p50, of.p90, of.p99, of.p999, of.max].map(time);
        table.row(name, [mean(of.mean)].into_iter().chain(times));
    };
    row("response time", &summary.response_time_us);
    row("service time", &summary.service_time_us);
    if summary.failed > 0 {
        row("good: response", &summary.good.response_time_us);
        row("good: service", &summary.good.service_time_us);
    }
    let level = if summary.failed > 0 { Level::Bad } else { Level::Quiet };
    let mark = if table.has_dash() { "- " } else { "" };
    let mut blocks = vec![Block::heading("Latency"), Block::Table(table)];
    blocks.extend(without(summary).map(|why| Block::Paragraph(level, format!("{mark}{why}"))));
    blocks
}

/// Why the tables of latencies lack a figure: it is a dash, or its column is left out.
fn without(summary: &Summary) -> Option<String> {
    let share = percent(summary.failed_share());
    let missing = (summary.failed > 0)
        .then(|| format!("not reached: {share} had no good answer, which is slower than every bound"));
    let few = too_few_for(summary.due())
        .map(|percentile| format!("too few: {} have no {percentile}", plural(summary.due(), "request")));
    let why = [missing, few].into_iter().flatten().collect::<Vec<_>>().join("; or ");
    (!why.is_empty()).then_some(why)
}

/// The first percentile of the tables that so many requests do not have.
fn too_few_for(due: u64) -> Option<&'static str> {
    const LEAST: [(u64, &str); 4] = [(2, "median"), (10, "p90"), (100, "p99"), (1_000, "p99.9")];
    LEAST.iter().find(|(least, _)| (1..*least).contains(&due)).map(|(_, name)| *name)
}

/// Blocks with a heading; no heading without any.
pub(super) fn under(title: &str, blocks: impl IntoIterator<Item = Block>) -> Vec<Block> {
    let mut all = vec![Block::heading(title)];
    all.extend(blocks);
    if all.len() > 1 { all } else { Vec::new() }
}

pub(super) fn errors(manifest: &Manifest) -> Vec<Block> {
    let mut blocks = Vec::new();
    for kind in page::errors(manifest) {
        let is_of_steps = kind.kind == Outcome::Variable.name();
        let steps = if is_of_steps { manifest.summary.failed_steps } else { 0 };
        let of_steps = match steps {
            0 => None,
            n => Some(format!("and {} without a request", plural(n, "step"))),
        };
        let known = match (kind.count, kind.known_after_us.p50.zip(kind.known_after_us.max)) {
            (0, _) => (steps == 0).then(|| "outside the measured window".to_owned()),
            (_, known) => known.map(|(p50, max)| {
                let [p50, max] = [p50, max].map(|us| duration(us as f64));
                format!("known after {p50} (median), {max} at most")
            }),
        };
        let more = of_steps.into_iter().chain(known).collect::<Vec<_>>().join("  ");
        blocks.push(Block::Tally(kind.kind.to_owned(), kind.count, more));
        if kind.kind == Outcome::Connect.name() && kind.count > 0 {
            let says = "from when they were due, with the wait before another try (100ms at most)";
            blocks.push(Block::Example(String::new(), says.into()));
        }
        let mut shown: Vec<(&str, &str)> = Vec::new();
        for example in kind.examples.iter().take(EXAMPLES) {
            // the same again says nothing new
            let said = (example.label, example.detail);
            if shown.contains(&said) {
                continue;
            }
            shown.push(said);
            let at = format!("{}s", three_digits(example.at_s));
            blocks.push(Block::Example(at, format!("{}: {}", example.label, example.detail.trim())));
        }
    }
    under("Failures", blocks)
}

pub(super) fn cpu(manifest: &Manifest) -> Vec<Block> {
    let summary = &manifest.summary;
    if summary.processes.is_empty() {
        return Vec::new();
    }
    let mut table = Table::new(["", "CPU time", "cores used", "memory"]);
    for (name, process) in watched::in_order(manifest) {
        let (cpu, memory) = (duration(process.cpu_s * 1e6), bytes(process.rss_bytes_max));
        table.row(&name, [cpu, format!("{:.2}", process.cpu_share), memory]);
    }
    let costs = watched::costs(manifest).map(|(name, cost)| {
        let cost = three_digits(cost);
        Block::Paragraph(Level::Plain, format!("{cost} good answers for each CPU-second of {name}"))
    });
    under("CPU and memory", std::iter::once(Block::Table(table)).chain(costs))
}

/// What pages of metrics told.
pub(super) fn watched_series(manifest: &Manifest) -> Vec<Block> {
    let count = watched::series(manifest).count();
    if count == 0 {
        return Vec::new();
    }
    let mut table = Table::new(["", "mean", "most", "last"]);
    for (name, series, of) in watched::series(manifest).take(watched::SERIES_MAX) {
        table.row(&format!("{name} {series}"), [of.mean, of.max, of.last].map(compact));
    }
    let more = more_than(count, watched::SERIES_MAX);
    let more = more.map(|more| Block::Paragraph(Level::Plain, format!("and {more} more, in run.json")));
    under("Series that were watched", std::iter::once(Block::Table(table)).chain(more))
}

pub(super) fn objectives(manifest: &Manifest) -> Vec<Block> {
    let check = |objective: &ObjectiveResult| {
        let level = match (objective.met, objective.undecided) {
            (true, _) => Level::Good,
            (false, true) => Level::Unsure,
            (false, false) => Level::Bad,
        };
        let default = if objective.default { "  (default)" } else { "" };
        (level, objective.objective.clone(), objective.measured.clone() + default)
    };
    let checks: Vec<_> = manifest.objectives.iter().map(check).collect();
    under("Objectives", (!checks.is_empty()).then_some(Block::Checks(checks)))
}

pub(super) fn notes(manifest: &Manifest) -> Vec<Block> {
    under("Notes", manifest.notes.iter().map(|note| Block::point(Level::Warning, note)))
}
