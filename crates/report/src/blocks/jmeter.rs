//! What JMeter measured, as the published reporter of Acme Air shows it.

use super::distribution::{ALL, distribution};
use super::run::under;
use super::{Bar, Block, Cell, Chart, Level, Table};
use crate::jmeter::{Figures, Responses, Series};
use crate::units::{count, percent, plural};

/// What cannot be computed.
const UNKNOWN: &str = "UNKNOWN";
/// Most lines of a chart; more are split.
const LINES_MAX: usize = 15;

/// The report. `whole`: with each step of each label's distribution, of which a terminal shows a table alone.
pub fn jmeter(figures: &Figures, whole: bool) -> Vec<Block> {
    let mut blocks = headline(figures);
    blocks.extend(response_times(figures));
    blocks.extend(errors(figures));
    let steps = |of: &Responses| of.distribution.iter().map(|step| (step.from_ms, step.requests)).collect();
    let rows = figures.overall.iter().chain(&figures.labels);
    blocks.extend(distribution("requests", rows.map(|of| (name(of), steps(of)))));
    if whole && !figures.labels.is_empty() {
        let bars = |of: &Responses| [Block::heading(&of.label), Block::Bars(bars(of))];
        let labels = figures.labels.iter().flat_map(bars).collect();
        blocks.push(Block::Folded("Latency distribution of each label".into(), labels));
    }
    blocks.extend(users(figures));
    blocks.extend(cpu(figures));
    blocks.extend(charts(figures));
    let level = |(level, text): (Level, &String)| Block::point(level, text);
    let unread = figures.unread.examples.iter().map(|example| (Level::Bad, example));
    let all = (figures.unread.count > 0).then(|| {
        let n = count(figures.unread.count);
        Block::Paragraph(Level::Bad, format!("not understood and left out, lines or files: {n}"))
    });
    let notes = figures.notes.iter().map(|note| (Level::Warning, note));
    blocks.extend(under("Notes", notes.map(level).chain(all).chain(unread.map(level))));
    blocks.push(Block::line("directory", &[&figures.directory]));
    blocks
}

/// As published: with one decimal where it has one.
pub(super) fn decimal(value: f64) -> String {
    let tenths = (value * 10.0).round();
    let whole = count((tenths / 10.0).trunc() as u64);
    match tenths % 10.0 {
        0.0 => whole,
        tenth => format!("{whole}.{tenth:.0}"),
    }
}

/// The same of millions; fewer are written out.
pub(super) fn millions(value: f64) -> String {
    if value < 1e6 { count(value.round() as u64) } else { format!("{} M", decimal(value / 1e6)) }
}

fn headline(figures: &Figures) -> Vec<Block> {
    let read = &figures.files;
    let kinds = [
        (read.logs, "log"),
        (read.results, "result file"),
        (read.nmon, "nmon file"),
        (read.others, "other file"),
    ];
    let read: Vec<String> =
        kinds.into_iter().filter(|(n, _)| *n > 0).map(|(n, what)| plural(n, what)).collect();
    let mut blocks = vec![Block::Title(Level::Plain, format!("JMeter: {}", figures.directory))];
    let lead = match &figures.throughput {
        Some(of) => format!(
            "{} requests/s on average, {} operations/day",
            decimal(of.average_per_s),
            millions(of.operations_per_day)
        ),
        None if figures.files.logs == 0 => "throughput UNKNOWN: no log has lines `summary +`".into(),
        None => "throughput UNKNOWN: the shortest log has fewer than three lines `summary +`".into(),
    };
    blocks.push(Block::Lead(Level::Strong, lead));
    blocks.push(Block::Gap);
    if let Some(of) = &figures.throughput {
        let [min, max] = [of.min_per_s, of.max_per_s].map(|rate| format!("{}/s", decimal(rate)));
        let left_out =
            format!("of {}; the first and the last are left out", plural(of.intervals, "interval"));
        let line = [
            format!("average {}/s", decimal(of.average_per_s)),
            format!("min {min}"),
            format!("max {max}"),
            left_out,
        ];
        blocks.push(Block::line("throughput", &line.each_ref().map(String::as_str)));
        blocks.push(Block::line("operations/day", &[&millions(of.operations_per_day)]));
    }
    let time = |of: &Option<String>| of.clone().unwrap_or_else(|| UNKNOWN.into());
    blocks.push(Block::line("from", &[&time(&figures.began), &format!("to {}", time(&figures.ended))]));
    blocks.push(Block::line("read", &read.iter().map(String::as_str).collect::<Vec<_>>()));
    blocks
}

fn response_times(figures: &Figures) -> Vec<Block> {
    let Some(overall) = &figures.overall else { return Vec::new() };
    let head =
        ["ms", "average", "min", "max", "90%", "p50", "p99", "p99.9", "requests", "% of all", "errors"];
    let mut table = Table::new(head).dispensable(&["p50", "p99.9", "% of all", "p99"]).whole_names();
    for of in std::iter::once(overall).chain(&figures.labels) {
        let times =
            [of.average_ms.round() as u64, of.min_ms, of.max_ms, of.p90_ms, of.p50_ms, of.p99_ms, of.p999_ms];
        let share = if of.label.is_empty() { "100%".to_owned() } else { format!("{:.2}%", of.share * 100.0) };
        let times = times.map(|ms| Cell::from(count(ms))).into_iter();
        let errors = match of.errors {
            0 => Cell::from("0"),
            n => Cell::Word(Level::Bad, count(n)),
        };
        table.row(name(of), times.chain([Cell::from(count(of.requests)), share.into(), errors]));
    }
    let says = "Milliseconds as JMeter took them: from when it sent, failed requests too; waiting to be sent is in none. 90% is as \
                published: of n sorted times that at index round(0.9 · n). The other percentiles are nearest ranks.";
    under("Response times", [Block::Table(table), Block::Paragraph(Level::Quiet, says.into())])
}

fn errors(figures: &Figures) -> Vec<Block> {
    let codes = |of: &Responses| {
        let parts = of.errors_by_code.iter().map(|(code, n)| {
            let code = if code.is_empty() { "no code" } else { code };
            format!("{} × {code}", count(*n))
        });
        let said = parts.collect::<Vec<_>>().join(" · ");
        (of.errors > 0).then(|| Block::point(Level::Bad, format!("{}: {said}", name(of))))
    };
    under("Errors by code", figures.overall.iter().chain(&figures.labels).filter_map(codes))
}

/// What the requests of a label are called, or all.
fn name(of: &Responses) -> &str {
    if of.label.is_empty() { ALL } else { &of.label }
}

/// Each step of a label's distribution.
fn bars(of: &Responses) -> Vec<Bar> {
    let seconds = |ms: u64| format!("{:.1}s", ms as f64 / 1e3);
    let bar = |step: &crate::jmeter::Bucket| Bar {
        from: seconds(step.from_ms),
        to: seconds(step.to_ms),
        count: step.requests,
        share: step.share,
    };
    of.distribution.iter().map(bar).collect()
}

fn users(figures: &Figures) -> Vec<Block> {
    if figures.overall.is_none() {
        return Vec::new();
    }
    let of = &figures.users;
    let known = |value: Option<String>| match value {
        Some(value) => (Level::Plain, value),
        None => (Level::Bad, UNKNOWN.to_owned()),
    };
    let whole = |value: Option<u64>| known(value.map(count));
    let share = |value: Option<f64>| known(value.map(percent));
    let each: Vec<u64> = of.by_file.values().copied().collect();
    let each = match (each.iter().min(), each.iter().max()) {
        (Some(least), Some(most)) if least == most => {
            format!("{} in each of {}", count(*least), plural(each.len() as u64, "file"))
        }
        (Some(least), Some(most)) => {
            format!("{} to {} in each of {}", count(*least), count(*most), plural(each.len() as u64, "file"))
        }
        _ => String::new(),
    };
    let lines = [
        ("virtual users", [whole(of.total), (Level::Plain, each)]),
        ("queries with zero results", [whole(of.queries_empty), share(of.queries_empty_share)]),
        (
            "flights returned",
            [
                whole(of.flights_returned),
                known(of.flights_per_query.map(|n| format!("{n:.2} for each query"))),
            ],
        ),
        ("one-way flights booked", [whole(of.one_way), (Level::Plain, String::new())]),
        ("bookings skipped", [(Level::Plain, "-".into()), share(of.bookings_skipped_share)]),
    ];
    let mut table = Table::new(["", "count", "that is"]).whole_names();
    for (name, cells) in lines {
        table.row(name, cells.map(|(level, text)| Cell::Word(level, text)));
    }
    let says = "The share of queries with zero results is of these and the flights returned, as published.";
    under("Run statistics", [Block::Table(table), Block::Paragraph(Level::Quiet, says.into())])
}

fn cpu(figures: &Figures) -> Vec<Block> {
    let mut table = Table::new(["% user and system", "average", "min", "max", "machines"]);
    for of in &figures.cpu {
        let percent = |value: Option<f64>| Cell::from(value.map_or_else(|| UNKNOWN.to_owned(), decimal));
        table.row(
            &of.tier,
            [percent(of.average), percent(of.min), percent(of.max), count(of.machines).into()],
        );
    }
    let says = "Without values below 1%, and then without the first and the last of each machine.";
    let shown = (!table.rows.is_empty())
        .then_some([Block::Table(table), Block::Paragraph(Level::Quiet, says.into())]);
    under("CPU", shown.into_iter().flatten())
}

/// Throughput and CPU over time.
fn charts(figures: &Figures) -> Vec<Block> {
    let of = |caption: &str, most: Option<f64>, lines: &[Series]| -> Vec<Block> {
        let parts = lines.chunks(LINES_MAX);
        let several = parts.len() > 1;
        let chart = |(part, lines): (usize, &[Series])| {
            let caption = if several { format!("{caption} ({part})") } else { caption.to_owned() };
            Block::Chart(Chart { caption, most, lines: lines.to_vec() })
        };
        (1..).zip(parts).map(chart).collect()
    };
    let is_drawn = |lines: &[Series]| lines.iter().any(|line| line.values.len() > 1);
    let total = std::slice::from_ref(&figures.total);
    let mut blocks = Vec::new();
    for (caption, lines) in
        [("requests/s, all", total), ("requests/s by load generator", &figures.generators)]
    {
        blocks.extend(is_drawn(lines).then(|| of(caption, None, lines)).into_iter().flatten());
    }
    for tier in figures.cpu.iter().filter(|tier| is_drawn(&tier.nodes)) {
        blocks.extend(of(&format!("CPU of {}, %", tier.tier), Some(100.0), &tier.nodes));
    }
    under("Over time", blocks)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_have_the_published_form() {
        assert_eq!(
            [516.6, 8_501.9, 5_749.4, 12_783.0, 0.04].map(decimal),
            ["516.6", "8,501.9", "5,749.4", "12,783", "0"]
        );
        assert_eq!([516.6, 8_501.9].map(|rate| millions(rate * 86_400.0)), ["44.6 M", "734.6 M"]);
        assert_eq!([0.0, 86_400.4, 2e6].map(millions), ["0", "86,400", "2 M"]);
    }
}
