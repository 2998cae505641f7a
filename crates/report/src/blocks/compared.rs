//! Several scenarios held against each other.

use std::collections::BTreeSet;
use std::path::PathBuf;

use tidemark_record::summary::{Status, Verdict};
use tidemark_record::{Part, SYSTEM};

use super::{Block, Level, Table, cost, word};
use crate::comparison::{Compared, ComparedPart, Figures, Ratio, Ratios};
use crate::units::{bytes, compact, duration, percent, three_digits, time};

/// Most sides beside which ratios stand that claim nothing.
const CROWDED: usize = 2;
/// Most sides beside each other, where there is room; more are in further tables.
const BESIDE_MAX: usize = 3;
/// Of more sides than this there is a line each, and the page has all figures.
const TABLES_MAX: usize = 7;
/// How far what was offered may lie from an equal rate that is named without "about".
const RATE_MET: f64 = 0.02;
/// Most parts of a system that have a column; all count in the sum.
const PARTS_MAX: usize = 8;

/// What a person wants to know of scenarios that were compared.
pub fn compared(compared: &Compared) -> Vec<Block> {
    let mut blocks = vec![Block::Heading(compared.name.clone())];
    if !compared.description.is_empty() {
        blocks.push(Block::Paragraph(Level::Plain, compared.description.clone()));
    }
    let left_out = compared.left_out.iter().map(|left_out| format!("left out: {left_out}"));
    blocks.extend(left_out.map(|left_out| Block::point(Level::Plain, left_out)));
    let stopped = compared.stopped.iter().map(|stopped| format!("stopped early: {stopped}"));
    blocks.extend(stopped.map(|stopped| Block::Remark(Level::Warning, stopped)));
    let is_large = compared.parts.iter().any(|part| part.sides.len() > TABLES_MAX);
    for part in &compared.parts {
        blocks.push(Block::Heading(title(part.part, compared)));
        blocks.extend(if is_large { overview(part) } else { self::part(part) });
    }
    if let Some(part) = compared.parts.first().filter(|_| is_large) {
        let whose =
            if serves(part) == SYSTEM { "the system with all its parts and stores" } else { "the store" };
        let legend = format!(
            "{}, driver (the load generator): cores in use; memory: the most that {whose} had",
            serves(part)
        );
        blocks.push(Block::point(Level::Plain, legend));
    }
    let no_claim =
        compared.parts.iter().flat_map(|part| &part.ratios).find_map(|ratios| ratios.no_claim.as_ref());
    let claimed = match no_claim {
        Some(why) => format!(
            "no claim: {why}. What differs from run to run is not known by fewer; give them with `rounds` in the scenario."
        ),
        None => "In brackets: where the ratios lie 95 of 100 times, by how the rounds differ. Below 1 % no difference is \
                 claimed."
            .into(),
    };
    let dir = PathBuf::from(&compared.run_dir);
    blocks.extend([Block::Gap, Block::point(Level::Plain, claimed), Block::Place("Runs", dir)]);
    blocks.extend(cost::below(&compared.bills));
    blocks
}

/// What a part is called.
fn title(part: Part, compared: &Compared) -> String {
    match part {
        Part::OwnLoad => "Each with its own load".into(),
        Part::EqualRate => match compared.equal_rate_per_s {
            // of sessions that vary a rate is known in the mean
            Some(rate) => {
                let is_met = |of: &Figures| (of.offered_per_s / rate - 1.0).abs() < RATE_MET;
                let sides = compared.parts.iter().filter(|of| of.part == part).flat_map(|of| &of.sides);
                let about = if sides.clone().all(is_met) { "" } else { "about " };
                format!("Each at {about}{}/s", three_digits(rate))
            }
            None => "Each at the same rate".into(),
        },
        Part::OwnRate => format!("Each at {} of that", percent(compared.own_rate.unwrap_or(1.0))),
    }
}

/// What answers in these sides: a system, or a store by itself.
fn serves(part: &ComparedPart) -> &'static str {
    let is_system = part.sides.iter().any(|side| side.system_cpu_share.is_some());
    if is_system { SYSTEM } else { "store" }
}

/// The CPU time for each good answer of each part of the system, where it has several: a line for each side. What was refused
/// at once costs little, and would make a side look cheap.
fn cpu_by_part(part: &ComparedPart) -> Option<Table> {
    let names: BTreeSet<&str> =
        part.sides.iter().flat_map(|side| side.stores.keys()).map(String::as_str).collect();
    if serves(part) != SYSTEM || names.is_empty() {
        return None;
    }
    let names: Vec<&str> = names.into_iter().take(PARTS_MAX).collect();
    let head = ["", "all", "system itself"].into_iter().chain(names.iter().copied());
    let mut table = Table::new(head).whole_names();
    for of in &part.sides {
        let good = of.requests.saturating_sub(of.errors.values().sum());
        if good == 0 {
            continue;
        }
        let per_good = |us: f64| us * of.requests as f64 / good as f64;
        let own = of.system_cpu_us_per_request.map(per_good);
        let each = names.iter().map(|name| of.stores.get(*name).map(|of| per_good(of.cpu_us_per_request)));
        let others = of.stores.values().map(|of| per_good(of.cpu_us_per_request));
        let all = own.unwrap_or(0.0) + others.sum::<f64>();
        let cells = std::iter::once(Some(all)).chain([own]).chain(each);
        table.row(&of.name, cells.map(|us| us.map_or("-".to_owned(), duration)));
    }
    Some(table)
}

/// A line for each side, the verdict first, and why what did not pass did not.
fn overview(part: &ComparedPart) -> Vec<Block> {
    let serves = serves(part);
    let columns = ["", "", "answered", "median", "p99", "failed", serves, "driver", "memory"];
    // the worth of each and what it did stay longest
    let may_go = ["memory", "driver", serves, "failed", "median"];
    let mut table = Table::new(columns).dispensable(&may_go).whole_names();
    for of in &part.sides {
        let all = of.stores.values();
        let served = of.system_cpu_share.unwrap_or(0.0) + all.clone().map(|of| of.cpu_share).sum::<f64>();
        let memory = of.system_rss_bytes_max.unwrap_or(0) + all.map(|of| of.rss_bytes_max).sum::<u64>();
        let figures = [
            word(of.verdict.status).to_uppercase(),
            format!("{}/s", rate(of.answered_per_s)),
            time(of.response_time_us.p50),
            time(of.response_time_us.p99),
            failed(of),
            if served > 0.0 { format!("{served:.2}") } else { "-".into() },
            format!("{:.2}", of.driver_cpu_share),
            if memory > 0 { bytes(memory) } else { "-".into() },
        ];
        table.row(&of.name, figures);
    }
    let is_told = |verdict: &Verdict| verdict.status != Status::Pass || !verdict.reasons.is_empty();
    let reasons = part.sides.iter().filter(|side| is_told(&side.verdict)).map(|side| {
        // in full on its page
        let reason = side.verdict.reasons.first().map_or("", |reason| &**reason);
        let short = reason.split(';').next().unwrap_or(reason).trim_end();
        Block::point(Level::Warning, format!("{}: {short}", side.name))
    });
    let by_part = cpu_by_part(part).map(|table| {
        let title = "CPU time for each good answer, by part of the system".to_owned();
        [Block::Paragraph(Level::Plain, title), Block::Table(table)]
    });
    let blocks = std::iter::once(Block::Table(table)).chain(reasons);
    blocks.chain(by_part.into_iter().flatten()).collect()
}

/// As many sides beside each other as there is room for, and what each is worth.
fn part(part: &ComparedPart) -> Vec<Block> {
    let tables = |beside| part.sides.chunks(beside).map(|some| figures(some, part)).collect();
    let worth = |side: &Figures| (side.name.clone(), side.verdict.status, side.verdict.in_words("; "));
    vec![
        Block::Layouts((1..=BESIDE_MAX).rev().map(tables).collect()),
        Block::Worth(part.sides.iter().map(worth).collect()),
    ]
}

/// Some of the sides beside each other, and beside the first as far as something can be said.
fn figures(sides: &[Figures], part: &ComparedPart) -> Table {
    let names = sides.iter().map(|side| side.name.clone());
    // beside many sides there is only room for ratios that say something
    let is_crowded = part.sides.len() > CROWDED;
    let is_shown = |ratios: &&Ratios| {
        (!is_crowded || ratios.no_claim.is_none()) && sides.iter().any(|of| of.name == ratios.side)
    };
    let shown: Vec<&Ratios> = part.ratios.iter().filter(is_shown).collect();
    let against = shown.iter().map(|ratios| format!("{} / {}", ratios.side, ratios.to));
    let mut table = Table::new(std::iter::once(String::new()).chain(names).chain(against));
    let mut row = |name: &str, figure: &dyn Fn(&Figures) -> String, ratio: &dyn Fn(&Ratios) -> Ratio| {
        let ratios = shown.iter().map(|ratios| in_words(ratio(ratios)));
        table.row(name, sides.iter().map(figure).chain(ratios));
    };
    let no_ratio = |_: &Ratios| Ratio::default();
    row("answered", &|of| format!("{}/s", rate(of.answered_per_s)), &|ratios| ratios.answered_per_s);
    row("median", &|of| time(of.response_time_us.p50), &|ratios| ratios.p50);
    row("p99", &|of| time(of.response_time_us.p99), &|ratios| ratios.p99);
    row("p99.9", &|of| time(of.response_time_us.p999), &no_ratio);
    let size = |mean: Option<f64>| mean.map_or("-".to_owned(), |mean| bytes(mean.round() as u64));
    if sides.iter().any(|side| side.body_bytes_mean.is_some()) {
        row("bytes per good answer", &|of| size(of.body_bytes_mean), &|ratios| ratios.body_bytes);
    }
    row("longest", &|of| time(of.response_time_us.max), &no_ratio);
    let cpu = |us: Option<f64>| us.map_or("-".to_owned(), duration);
    row("system: CPU per request", &|of| cpu(of.system_cpu_us_per_request), &|ratios| {
        ratios.system_cpu_per_request
    });
    let cores = |share: Option<f64>| share.map_or("-".to_owned(), |share| format!("{share:.2}"));
    row("system: cores used", &|of| cores(of.system_cpu_share), &no_ratio);
    row("system: memory", &|of| of.system_rss_bytes_max.map_or("-".to_owned(), bytes), &no_ratio);
    let stores: BTreeSet<&String> = sides.iter().flat_map(|side| side.stores.keys()).collect();
    for store in stores {
        let of = |side: &Figures| side.stores.get(store).copied();
        let name = store;
        row(&format!("{name}: CPU per request"), &|v| cpu(of(v).map(|of| of.cpu_us_per_request)), &no_ratio);
        row(&format!("{name}: cores used"), &|v| cores(of(v).map(|of| of.cpu_share)), &no_ratio);
        row(
            &format!("{name}: memory"),
            &|v| of(v).map_or("-".into(), |of| bytes(of.rss_bytes_max)),
            &no_ratio,
        );
    }
    row("load generator: CPU per request", &|of| duration(of.driver_cpu_us_per_request), &no_ratio);
    row("failed", &failed, &no_ratio);
    if sides.iter().any(|side| side.dropped > 0) {
        row("arrivals dropped", &|of| compact(of.dropped as f64), &no_ratio);
    }
    table
}

fn rate(per_s: f64) -> String {
    if per_s < 99_950.0 { three_digits(per_s) } else { compact(per_s) }
}

/// Requests without a good answer, as a share of all that were due.
fn failed(of: &Figures) -> String {
    match of.errors.values().sum::<u64>() + of.dropped {
        0 => "none".into(),
        failed => percent(failed as f64 / (of.requests + of.dropped).max(1) as f64),
    }
}

/// `12.2 (11.9 to 12.6)`, `0.99 no difference`, `1.42 too noisy`.
fn in_words(ratio: Ratio) -> String {
    let Some(value) = ratio.ratio.map(three_digits) else { return String::new() };
    match (ratio.low, ratio.high) {
        _ if ratio.difference != Some(true) && !ratio.says.is_empty() => format!("{value} {}", ratio.says),
        (Some(low), Some(high)) => format!("{value} ({} to {})", three_digits(low), three_digits(high)),
        _ => value,
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::shown;
    use super::*;
    use crate::comparison::tests::runs;
    use crate::table::length;

    #[test]
    fn a_comparison_fits_a_terminal_and_says_what_each_is_worth() {
        let (temp, runs) = runs();
        let compared = Compared::of(&runs).unwrap();
        for width in [45, 60, 80, 110] {
            let text = shown(&super::compared(&compared), width);
            let text = text.replace(&temp.path().display().to_string(), "runs/x");
            assert!(text.lines().all(|line| length(line) <= width), "{text}");
            insta::assert_snapshot!(format!("comparison_{width}"), text);
        }
    }

    #[test]
    fn names_of_many_are_whole_however_narrow_it_is() {
        let (_temp, runs) = runs();
        let mut compared = Compared::of(&runs).unwrap();
        let part = &mut compared.parts[0];
        let one = part.sides[0].clone();
        let names = ["100/0", "100/0, AOF", "80/20", "80/20, AOF"];
        let names = names.iter().flat_map(|name| [format!("Redis, {name}"), format!("Redis ×2, {name}")]);
        let named = |name| {
            let mut side = one.clone();
            side.name = name;
            side
        };
        part.sides = names.map(named).collect();
        part.sides[7].verdict.reasons = vec![
            "driver-bound: it waited for a core (the busiest beside it: java 1.25 cores); give it cores"
                .into(),
        ];
        for width in [45, 60, 80, 110] {
            let shown = shown(&super::compared(&compared), width);
            let lines = || shown.lines().filter(|line| !line.starts_with("Runs"));
            assert!(lines().all(|line| length(line) <= width), "{width}: {shown}");
            for side in &compared.parts[0].sides {
                let of = |line: &&str| {
                    line.trim_start().strip_prefix(side.name.as_str()).is_some_and(|rest| {
                        rest.starts_with("  ") || rest.starts_with(" INVALID") || rest.is_empty()
                    })
                };
                assert_eq!(lines().filter(of).count(), 1, "{width}, {}: {shown}", side.name);
            }
            let flat = shown.split_whitespace().collect::<Vec<_>>().join(" ");
            assert!(
                flat.contains("(the busiest beside it: java 1.25 cores)") && !flat.contains("give it cores"),
                "{shown}"
            );
        }
    }
}
