//! The report for the terminal: the verdict first.

mod bodies;
pub mod claims;
pub mod comparison;
mod driver;
pub mod history;
pub(crate) mod ledger;
pub mod limit;
mod percentiles;
pub mod quick;
mod tables;

use std::path::Path;

use anstyle::{AnsiColor, Style as Paint};
use tidemark_record::manifest::Manifest;
use tidemark_record::summary::{Latency, Status, Summary};
use tidemark_record::{Outcome, Reason, ReasonKind, RecordError, Run};

use self::percentiles::Times;
use crate::quote::Quote;
use crate::table::{Table, cut, length, pad_right, wrap_parts};
pub use crate::table::{wrap, wrap_whole};
use crate::units::{bytes, compact, count, duration, percent, seconds, three_digits};
use crate::{faults, maintenance, page, parts, watched};

/// Width from which numbers are written out.
const WIDE: usize = 100;
/// Narrowest width that is laid out for.
const NARROWEST: usize = 45;
/// Widest: longer lines are hard to follow.
const WIDEST: usize = 120;
/// Indentation of everything under a heading.
const INDENT: usize = 2;
/// Width of the words that name a line.
const NAME: usize = 15;
/// First failures that are shown of each kind.
const EXAMPLES: usize = 3;
/// Columns of the time of such a failure, and lines of what it says.
const EXAMPLE_AT: usize = 10;
const EXAMPLE_LINES: usize = 3;

/// Last lines of a log that is quoted; all are in the run directory.
const LOG_LINES: usize = 8;

/// How the text is laid out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Style {
    /// Columns of the terminal.
    pub width: usize,
    /// With ANSI colours. Whoever prints through a stream that removes them where they are not wanted leaves it on.
    pub colour: bool,
    /// Without any character beyond ASCII.
    pub ascii: bool,
}

impl Default for Style {
    fn default() -> Self {
        Style { width: 80, colour: true, ascii: false }
    }
}

/// What a person wants to know of a run, in one or two screens.
pub fn summary(run: &Run, style: Style) -> String {
    of(run, style, None)
}

/// The same with a long table of percentiles.
///
/// # Errors
/// Where the run is damaged.
pub fn with_percentiles(run: &Run, style: Style) -> Result<String, RecordError> {
    Ok(of(run, style, Some(&Times::of(run)?)))
}

fn of(run: &Run, style: Style, times: Option<&Times>) -> String {
    let mut text = Text::new(style);
    let manifest = &run.manifest;
    verdict(&mut text, manifest);
    what_ran(&mut text, manifest);
    throughput(&mut text, run);
    latency(&mut text, &manifest.summary);
    if let Some(times) = times {
        percentiles::table(&mut text, times);
    }
    time_parts(&mut text, manifest);
    slowest(&mut text, &manifest.summary);
    tables::phases(&mut text, &manifest.summary);
    tables::targets(&mut text, &manifest.summary);
    tables::labels(&mut text, &manifest.summary);
    tables::groups(&mut text, &manifest.summary);
    tables::own_metrics(&mut text, &manifest.summary);
    errors(&mut text, manifest);
    faults(&mut text, &manifest.summary);
    maintenance(&mut text, &manifest.summary);
    cpu(&mut text, manifest);
    watched_series(&mut text, manifest);
    driver::driver(&mut text, manifest);
    objectives(&mut text, manifest);
    ledger::ledger(&mut text, manifest);
    notes(&mut text, manifest);
    text.place("Run", &run.dir);
    text.out
}

const GOOD: Paint = AnsiColor::Green.on_default().bold();
const BAD: Paint = AnsiColor::Red.on_default().bold();
const WARNING: Paint = AnsiColor::Yellow.on_default().bold();
const HEADING: Paint = Paint::new().bold();
const QUIET: Paint = Paint::new().dimmed();

/// Slow requests that have a line.
const SLOWEST: usize = 3;

/// Most rewrites and snapshots that have a line.
const MAINTENANCE_MAX: usize = 20;

/// The text as it grows, and how it is laid out.
struct Text {
    out: String,
    style: Style,
    width: usize,
}

impl Text {
    fn new(style: Style) -> Text {
        Text { out: String::new(), style, width: style.width.clamp(NARROWEST, WIDEST) }
    }

    /// A line that is not styled as a whole.
    fn line(&mut self, line: &str) {
        self.out += &self.plain(line);
        self.out.push('\n');
    }

    fn heading(&mut self, title: &str) {
        self.out.push('\n');
        self.wrapped(HEADING, title);
    }

    /// A text over the whole width.
    fn wrapped(&mut self, paint: Paint, value: &str) {
        for line in wrap(&clean(value), self.width) {
            let line = self.paint(paint, &line);
            self.line(&line);
        }
    }

    /// A named line under a heading; its parts stay beside the name and whole where they can.
    fn named(&mut self, name: &str, parts: &[&str]) {
        self.named_painted(name, parts, "", HEADING);
    }

    /// The same, of which `what` is painted where it is on one line.
    fn named_painted(&mut self, name: &str, parts: &[&str], what: &str, paint: Paint) {
        let parts: Vec<String> = parts.iter().map(|part| clean(part)).collect();
        let painted = self.paint(paint, what);
        for (i, line) in wrap_parts(&parts, " · ", self.width - INDENT - NAME).into_iter().enumerate() {
            let name = self.paint(QUIET, &pad_right(if i == 0 { name } else { "" }, NAME));
            let line = if what.is_empty() { line } else { line.replacen(what, &painted, 1) };
            self.line(&format!("{:INDENT$}{name}{line}", ""));
        }
    }

    /// Where it is, and its page. Paths are not wrapped: they are there to be copied. The page comes last, where the eye
    /// and a script find it.
    fn place(&mut self, name: &str, dir: &Path) {
        self.out.push('\n');
        let name = self.paint(HEADING, &pad_right(name, INDENT + NAME));
        self.line(&format!("{name}{}", dir.display()));
        let report = dir.join("report.html");
        if report.is_file() {
            let name = self.paint(HEADING, &pad_right("Report", INDENT + NAME));
            self.line(&format!("{name}{}", report.display()));
        }
    }

    /// A wrapped paragraph under a heading.
    fn paragraph(&mut self, value: &str) {
        for line in wrap(&clean(value), self.width - INDENT) {
            self.line(&format!("{:INDENT$}{line}", ""));
        }
    }

    /// The same behind a mark.
    fn marked(&mut self, mark: &str, value: &str) {
        for (i, line) in wrap(&clean(value), self.width - INDENT - 2).into_iter().enumerate() {
            let mark = if i == 0 { mark } else { " " };
            self.line(&format!("{:INDENT$}{mark} {line}", ""));
        }
    }

    fn table(&mut self, table: &Table) {
        for (i, line) in table.lines(self.width - INDENT, self.ellipsis()).into_iter().enumerate() {
            let line = if i == 0 { self.paint(QUIET, &line) } else { line };
            self.line(&format!("{:INDENT$}{line}", ""));
        }
    }

    fn ellipsis(&self) -> &'static str {
        if self.style.ascii { "..." } else { "…" }
    }

    fn paint(&self, paint: Paint, text: &str) -> String {
        if self.style.colour && !text.trim().is_empty() {
            format!("{paint}{text}{paint:#}")
        } else {
            text.into()
        }
    }

    fn wide(&self) -> bool {
        self.width >= WIDE
    }

    /// A count, written out where there is room.
    fn count(&self, value: u64) -> String {
        if self.wide() { count(value) } else { compact(value as f64) }
    }

    fn plain(&self, text: &str) -> String {
        if !self.style.ascii {
            return text.to_owned();
        }
        let plain = |c: char| match c {
            'µ' => 'u',
            '·' => ',',
            '✓' => '+',
            '✗' => 'x',
            '–' => '-',
            c if c.is_ascii() => c,
            _ => '?',
        };
        text.chars().map(plain).collect()
    }
}

/// What came from files and servers must not steer the terminal.
pub fn clean(text: &str) -> String {
    text.chars().map(|c| if steers(c) { ' ' } else { c }).collect()
}

/// Whether a character is a control character, or changes the direction of the text around it (Unicode's Bidi_Control).
pub fn steers(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

fn verdict(text: &mut Text, manifest: &Manifest) {
    let verdict = &manifest.summary.verdict;
    let (word, paint) = match verdict.status {
        Status::Pass => ("PASS", GOOD),
        Status::Fail => ("FAIL", BAD),
        Status::Invalid => ("INVALID", BAD),
    };
    let unsaid = [met(manifest).into()];
    let reasons = match verdict.status {
        Status::Pass if verdict.reasons.is_empty() => &unsaid[..],
        _ => &verdict.reasons[..],
    };
    let mut head = Some(text.paint(paint, word));
    let indent = word.len() + 2;
    for reason in reasons {
        // the log that a reason quotes keeps its lines
        let quote = Quote::of(reason, LOG_LINES);
        let width = text.width - indent;
        let said = quote.said.iter().flat_map(|line| wrap(&clean(line), width));
        let before = quote.before().map(|before| format!("{} {before}", text.ellipsis()));
        let log = before.into_iter().chain(quote.log.iter().map(|line| clean(line)));
        let log = log.map(|line| cut(&format!("| {line}"), width, text.ellipsis()));
        for line in said.chain(log).collect::<Vec<_>>() {
            match head.take() {
                Some(head) => text.line(&format!("{head}  {line}")),
                None => text.line(&format!("{:indent$}{line}", "")),
            }
        }
    }
    if let Some(head) = head {
        text.line(&head);
    }
    if is_partial(manifest) {
        let early = "stopped early: the figures are of the part that ran";
        wrap(early, text.width - indent).iter().for_each(|line| text.line(&format!("{:indent$}{line}", "")));
    }
    if let Some(drift) = drift(&manifest.summary) {
        for line in wrap(&drift, text.width - indent) {
            let line = text.paint(WARNING, &line);
            text.line(&format!("{:indent$}{line}", ""));
        }
    }
    for warning in &manifest.summary.warnings {
        for line in wrap(&format!("warning: {}", clean(warning)), text.width - indent) {
            let line = text.paint(WARNING, &line);
            text.line(&format!("{:indent$}{line}", ""));
        }
    }
}

/// Whether the figures are of a part of the run and no reason says so.
pub(crate) fn is_partial(manifest: &Manifest) -> bool {
    let says = |reason: &Reason| reason.kind() == ReasonKind::Stopped;
    (manifest.interrupted || manifest.cut_short.is_some())
        && !manifest.summary.verdict.reasons.iter().any(says)
}

/// What a pass says.
pub(crate) fn met(manifest: &Manifest) -> String {
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

fn what_ran(text: &mut Text, manifest: &Manifest) {
    let Manifest { system, machine, summary, .. } = manifest;
    text.line("");
    let measured = format!("measured for {}", seconds(summary.measured_s));
    text.named("scenario", &[&manifest.scenario, &manifest.load, &measured]);
    let name = match (system.url.is_empty(), system.name == system.url) {
        (true, _) => system.name.clone(),
        (false, true) => system.url.clone(),
        (false, false) => format!("{} at {}", system.name, system.url),
    };
    let pins = pinned("", &system.pinned_to);
    let spoken = system.spoken.iter().map(String::as_str);
    text.named("system", &[name.as_str(), &pins].into_iter().chain(spoken).collect::<Vec<_>>());
    for target in &manifest.targets {
        let at = if target.name == target.url { "" } else { &target.url };
        text.named("beside it", &[&target.name, at, &target.protocol]);
    }
    for watched in &manifest.watched {
        text.named("watched", &[&watched.name, &watched.what, &watched.found]);
    }
    if let Some(durability) = &system.durability {
        let sync = system.sync_latency.as_ref().map(|sync| {
            let [p50, p99, max] = [sync.p50_us, sync.p99_us, sync.max_us].map(|us| duration(us as f64));
            format!("disk syncs in {p50}, 99th {p99}, longest {max}")
        });
        text.named("durability", &[durability, &sync.unwrap_or_default()]);
    }
    if !system.settings.is_empty() {
        let settings: Vec<String> =
            system.settings.iter().map(|(name, value)| format!("{name}={value}")).collect();
        text.named("settings", &settings.iter().map(String::as_str).collect::<Vec<_>>());
    }
    let cores = match machine.cores {
        0 => String::new(),
        1 => "1 core".into(),
        n => format!("{n} cores"),
    };
    let memory = if machine.memory_bytes > 0 { bytes(machine.memory_bytes) } else { String::new() };
    let steal = match machine.steal_share {
        share if share >= 0.01 => format!("{} cores taken by the hypervisor", three_digits(share)),
        _ => String::new(),
    };
    text.named("machine", &[&machine.cpu_model, &cores, &memory, &machine.kernel, &steal]);
}

fn pinned(who: &str, cores: &[usize]) -> String {
    let list = cores.iter().map(usize::to_string).collect::<Vec<_>>().join(",");
    match cores.len() {
        0 => String::new(),
        1 => format!("{who}on core {list}"),
        _ => format!("{who}on cores {list}"),
    }
}

/// What stands before an achieved rate where the driver was held up. Of nothing there is no bound to tell, nor where as much
/// was answered as was offered: users who wait for answers would have made more, arrivals are what they are.
pub(crate) fn at_least(manifest: &Manifest) -> &'static str {
    let summary = &manifest.summary;
    let is_all = !manifest.load.starts_with("closed") && summary.achieved_per_s >= summary.offered_per_s;
    let is_bound = !summary.driver.limits.is_empty() && summary.achieved_per_s > 0.0 && !is_all;
    if is_bound { "at least " } else { "" }
}

/// Less than this is not plainly all.
const ALL: f64 = 0.9995;

/// What of the offered load was achieved, as the objective on it has it, where that is not all of it.
pub(crate) fn achieved_of_offered(summary: &Summary) -> Option<String> {
    let share = summary.achieved_share?;
    let came = summary.achieved_per_s / summary.offered_per_s.max(f64::MIN_POSITIVE);
    (share < ALL || came < ALL).then(|| format!("{} of offered", percent(share)))
}

fn throughput(text: &mut Text, run: &Run) {
    let summary = &run.manifest.summary;
    text.heading("Throughput");
    let at_least = at_least(&run.manifest);
    let achieved = format!("{at_least}{}/s", three_digits(summary.achieved_per_s));
    // those that came in the window; `good` has those that were due in it
    let came = (summary.achieved_per_s * summary.measured_s).round() as u64;
    let counted = format!("{} good answers in {}", count(came), seconds(summary.measured_s));
    let share = achieved_of_offered(summary).unwrap_or_default();
    text.named_painted("achieved", &[&achieved, &counted, &share], &achieved, HEADING);
    for line in good_elsewhere(run) {
        text.named("", &[&line]);
    }
    let offered = format!("{}/s", three_digits(summary.offered_per_s));
    let due = format!("{} due", count(summary.due()));
    let dropped = match summary.dropped {
        0 => "none dropped".into(),
        n => format!("{} dropped", count(n)),
    };
    let painted = if summary.dropped > 0 { dropped.as_str() } else { "" };
    text.named_painted("offered", &[&offered, &due, &dropped], painted, BAD);
    failures(text, summary);
    bodies::decoded(text, run);
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
fn failures(text: &mut Text, summary: &Summary) {
    let (failed, paint) = match summary.failed {
        0 => ("none".to_owned(), GOOD),
        n => (format!("{} ({} of what was due)", count(n), percent(summary.failed_share())), BAD),
    };
    text.named_painted("failed", &[&failed], &failed, paint);
}

fn latency(text: &mut Text, summary: &Summary) {
    text.heading("Latency");
    let head = ["", "mean", "median", "p90", "p99", "p99.9", "max"];
    let mut table = Table::new(&head).dispensable(&["mean", "p99.9", "p90"]).whole_names();
    let row = |name: &str, of: &Latency| {
        let mut row = vec![name.to_owned(), time(of.mean)];
        row.extend([of.p50, of.p90, of.p99, of.p999, of.max].map(|us| time(us.map(|us| us as f64))));
        row
    };
    table.row(row("response time", &summary.response_time_us));
    table.row(row("service time", &summary.service_time_us));
    if summary.failed > 0 {
        table.row(row("good: response", &summary.good.response_time_us));
        table.row(row("good: service", &summary.good.service_time_us));
    }
    text.table(&table);
    if let Some(why) = dashes(summary) {
        let paint = if summary.failed > 0 { BAD } else { QUIET };
        for line in wrap(&why, text.width - INDENT) {
            let line = text.paint(paint, &line);
            text.line(&format!("{:INDENT$}{line}", ""));
        }
    }
}

/// Where the time of the good answers went.
fn time_parts(text: &mut Text, manifest: &Manifest) {
    let Some(of) = parts::told(&manifest.summary) else { return };
    text.heading("Where the time went");
    let head: Vec<&str> = [""].into_iter().chain(parts::HEAD).collect();
    let mut table = Table::new(&head).dispensable(&["count", "p50"]).whole_names();
    for (name, figures) in parts::rows(of) {
        table.row([name.to_owned()].into_iter().chain(figures).collect());
    }
    text.table(&table);
    if let Some(told) = parts::lookups(&manifest.system, &manifest.targets) {
        for line in wrap(&clean(&told), text.width - INDENT) {
            let line = text.paint(QUIET, &line);
            text.line(&format!("{:INDENT$}{line}", ""));
        }
    }
}

/// The slowest requests that were answered.
fn slowest(text: &mut Text, summary: &Summary) {
    if summary.slowest.is_empty() {
        return;
    }
    text.heading("Slowest");
    for slow in summary.slowest.iter().take(SLOWEST) {
        text.marked("-", &format!("{} {}", duration(slow.response_time_us as f64), slow.label));
        for line in wrap_parts(&parts::of_slow(slow), " · ", text.width - 2 * INDENT) {
            text.line(&format!("{:1$}{line}", "", 2 * INDENT));
        }
    }
}

/// What a dash in the tables of latencies means.
pub(crate) fn dashes(summary: &Summary) -> Option<String> {
    let share = percent(summary.failed_share());
    let missing = (summary.failed > 0)
        .then(|| format!("not reached: {share} had no good answer, which is slower than every bound"));
    let few = too_few_for(summary.due())
        .map(|percentile| format!("too few: {} have no {percentile}", requests(summary.due())));
    let why = [missing, few].into_iter().flatten().collect::<Vec<_>>().join("; or ");
    (!why.is_empty()).then(|| format!("- {why}"))
}

/// The first percentile of the tables that so many requests do not have.
fn too_few_for(due: u64) -> Option<&'static str> {
    const LEAST: [(u64, &str); 4] = [(2, "median"), (10, "p90"), (100, "p99"), (1_000, "p99.9")];
    LEAST.iter().find(|(least, _)| (1..*least).contains(&due)).map(|(_, name)| *name)
}

fn requests(number: u64) -> String {
    if number == 1 { "1 request".to_owned() } else { format!("{} requests", count(number)) }
}

/// A duration, or a [dash](dashes).
pub(crate) fn time(us: Option<f64>) -> String {
    us.map_or_else(|| "-".into(), duration)
}

fn rate(text: &Text, per_s: f64) -> String {
    if text.wide() || per_s < 999.5 { three_digits(per_s) } else { compact(per_s) }
}

fn counted_steps(steps: u64) -> String {
    if steps == 1 { "1 step".into() } else { format!("{} steps", count(steps)) }
}

fn errors(text: &mut Text, manifest: &Manifest) {
    let kinds = page::errors(manifest);
    if kinds.is_empty() {
        return;
    }
    text.heading("Failures");
    for kind in kinds {
        let counted = text.paint(BAD, &pad_right(kind.kind, 10));
        let is_of_steps = kind.kind == Outcome::Variable.name();
        let steps = if is_of_steps { manifest.summary.failed_steps } else { 0 };
        let more = match (kind.count, kind.known_after_us.p50.zip(kind.known_after_us.max)) {
            (0, _) if steps > 0 => String::new(),
            (0, _) => "  outside the measured window".into(),
            (_, Some((p50, max))) => {
                let [p50, max] = [p50, max].map(|us| duration(us as f64));
                format!("  known after {p50} (median), {max} at most")
            }
            _ => String::new(),
        };
        let of_steps = match steps {
            0 => String::new(),
            _ => format!("  and {} without a request", counted_steps(steps)),
        };
        let more = cut(&(of_steps + &more), text.width - INDENT - 19, text.ellipsis());
        text.line(&format!("{:INDENT$}{counted}{:>9}{more}", "", count(kind.count)));
        if kind.kind == Outcome::Connect.name() && kind.count > 0 {
            let says = "from when they were due, with the wait before another try (100ms at most)";
            let says = cut(says, text.width - 2 * INDENT, text.ellipsis());
            let says = text.paint(QUIET, &says);
            text.line(&format!("{:1$}{says}", "", 2 * INDENT));
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
            let said = format!("{}: {}", clean(example.label), clean(example.detail).trim());
            let width = text.width - 2 * INDENT - EXAMPLE_AT;
            let mut lines = wrap(&said, width);
            if lines.len() > EXAMPLE_LINES {
                lines.truncate(EXAMPLE_LINES);
                let last = lines.pop().unwrap_or_default();
                lines.push(cut(&last, width.saturating_sub(length(text.ellipsis())), "") + text.ellipsis());
            }
            for (i, line) in lines.iter().enumerate() {
                let at = if i == 0 { at.as_str() } else { "" };
                let line = text.paint(QUIET, &format!("{at:>8}  {line}"));
                text.line(&format!("{:1$}{line}", "", 2 * INDENT));
            }
        }
    }
}

fn faults(text: &mut Text, summary: &Summary) {
    if summary.faults.is_empty() {
        return;
    }
    text.heading("Faults");
    for fault in &summary.faults {
        text.marked("-", &fault.fault);
        for line in wrap_parts(&faults::parts(fault), " · ", text.width - 2 * INDENT) {
            text.line(&format!("{:1$}{line}", "", 2 * INDENT));
        }
    }
    for mistake in faults::mistakes(summary) {
        let mark = text.paint(BAD, "✗");
        text.marked(&mark, &mistake);
    }
}

fn maintenance(text: &mut Text, summary: &Summary) {
    if summary.maintenance.is_empty() {
        return;
    }
    text.heading("Rewrites and snapshots of stores");
    for line in maintenance::lines(summary).take(MAINTENANCE_MAX) {
        text.marked("-", &line);
    }
    if let Some(more) = summary.maintenance.len().checked_sub(MAINTENANCE_MAX).filter(|more| *more > 0) {
        text.marked(" ", &format!("and {more} more, in run.json"));
    }
}

fn cpu(text: &mut Text, manifest: &Manifest) {
    let summary = &manifest.summary;
    if summary.processes.is_empty() {
        return;
    }
    text.heading("CPU and memory");
    let mut table = Table::new(&["", "CPU time", "cores used", "memory"]);
    for process in &summary.processes {
        table.row(vec![
            clean(&process.name),
            duration(process.cpu_s * 1e6),
            format!("{:.2}", process.cpu_share),
            bytes(process.rss_bytes_max),
        ]);
    }
    text.table(&table);
    for (name, cost) in watched::costs(manifest) {
        text.paragraph(&format!("{} good answers for each CPU-second of {name}", three_digits(cost)));
    }
}

/// What pages of metrics told.
fn watched_series(text: &mut Text, manifest: &Manifest) {
    let count = watched::series(manifest).count();
    if count == 0 {
        return;
    }
    text.heading("Series that were watched");
    let mut table = Table::new(&["", "mean", "most", "last"]);
    for (name, series, of) in watched::series(manifest).take(watched::SERIES_MAX) {
        let [mean, max, last] = [of.mean, of.max, of.last].map(compact);
        table.row(vec![clean(&format!("{name} {series}")), mean, max, last]);
    }
    text.table(&table);
    if let Some(more) = count.checked_sub(watched::SERIES_MAX).filter(|more| *more > 0) {
        text.paragraph(&format!("and {more} more, in run.json"));
    }
}

fn objectives(text: &mut Text, manifest: &Manifest) {
    if manifest.objectives.is_empty() {
        return;
    }
    text.heading("Objectives");
    let width = manifest.objectives.iter().map(|o| length(&clean(&o.objective))).max().unwrap_or(0);
    for objective in &manifest.objectives {
        let mark = match (objective.met, objective.undecided) {
            (true, _) => text.paint(GOOD, "✓"),
            (false, true) => text.paint(WARNING, "?"),
            (false, false) => text.paint(BAD, "✗"),
        };
        let name = pad_right(&clean(&objective.objective), width + 3);
        let default = if objective.default { "  (default)" } else { "" };
        let indent = INDENT + 2 + length(&name);
        let measured = clean(&objective.measured) + default;
        for (i, line) in wrap(&measured, text.width.saturating_sub(indent)).into_iter().enumerate() {
            match i {
                0 => text.line(&format!("{:INDENT$}{mark} {name}{line}", "")),
                _ => text.line(&format!("{:indent$}{line}", "")),
            }
        }
    }
}

fn notes(text: &mut Text, manifest: &Manifest) {
    if manifest.notes.is_empty() {
        return;
    }
    text.heading("Notes");
    for note in &manifest.notes {
        let mark = text.paint(WARNING, "!");
        text.marked(&mark, note);
    }
}

#[cfg(test)]
mod tests;
