//! One URL that was hit: shorter than a run of a scenario, and it says which loop it was.

use tidemark_record::manifest::Manifest;
use tidemark_record::summary::Status;
use tidemark_record::{Merged, RecordError, Run};

use super::percentiles::{self, Times};
use super::run::{achieved_of_offered, at_least, pinned, under};
use super::{Bar, Block, Level, driver, parts, run, tables};
use crate::table::cut;
use crate::units::{bytes, count, duration, plural, seconds, three_digits};

/// Most bars of the histogram.
const BARS_MAX: usize = 12;
/// Fewest bars that show a shape; with fewer the range is cut evenly.
const BARS_MIN: usize = 4;
/// Bars where the range is cut evenly.
const EVEN_BARS: u64 = 8;
/// Characters of the request that are shown.
const LABEL: usize = 63;
/// How a run names the version that is told apart from the usual one.
const HTTP_2: &str = "HTTP/2";

/// What is shown beside the usual.
#[derive(Debug, Clone, Copy, Default)]
pub struct Quick {
    /// A long table of percentiles.
    pub percentiles: bool,
    /// Whether the run's directory stays.
    pub kept: bool,
}

/// What a person wants to know of a URL that was hit, in one screen.
///
/// # Errors
/// Where the run is damaged.
pub fn quick(run: &Run, quick: Quick) -> Result<Vec<Block>, RecordError> {
    let manifest = &run.manifest;
    let mut blocks = run::verdict(manifest).to_vec();
    blocks.extend(which_loop(manifest));
    // where somebody must ask whether it was the limit, or wants to know everything
    let full_driver = quick.percentiles || manifest.summary.verdict.status == Status::Invalid;
    blocks.extend(what_ran(manifest));
    if !full_driver {
        let brief = driver::brief(manifest).into_iter().map(|of| (Level::Plain, of));
        blocks.push(Block::Line("load generator".into(), brief.collect()));
    }
    blocks.extend(throughput(run));
    let times = Times::of(run)?;
    blocks.extend(run::latency(&manifest.summary));
    if quick.percentiles {
        blocks.extend(percentiles::table(&times));
    }
    blocks.extend(parts::time_parts(manifest));
    blocks.extend(histogram(&times.response));
    if manifest.summary.steps.len() > 1 {
        blocks.extend(tables::labels(&manifest.summary));
    }
    blocks.extend(run::errors(manifest));
    if !manifest.watched.is_empty() {
        blocks.extend(run::cpu(manifest));
        blocks.extend(run::watched_series(manifest));
    }
    if full_driver {
        blocks.extend(driver::driver(manifest));
    }
    blocks.extend(run::objectives(manifest));
    blocks.extend(run::notes(manifest));
    if quick.kept {
        blocks.push(Block::Place("Run", run.dir.clone()));
    } else {
        let hint = "not kept; --save keeps the run and its report";
        blocks.extend([Block::Gap, Block::Remark(Level::Quiet, hint.into())]);
    }
    Ok(blocks)
}

/// Which loop it was and what that means for the figures.
fn which_loop(manifest: &Manifest) -> [Block; 2] {
    let (name, meaning) = match run::closed_loop(manifest) {
        Some(meaning) => ("closed loop", format!("{meaning} (-r RATE counts it)")),
        None => {
            let meaning = "requests are due at the rate whatever the server does; response times count from then, \
                so that every wait is in them";
            ("open loop", meaning.to_owned())
        }
    };
    [Block::Gap, Block::line(name, &[&meaning])]
}

fn what_ran(manifest: &Manifest) -> [Block; 3] {
    let summary = &manifest.summary;
    let warm_up_us: u64 = manifest.phases.iter().filter(|p| !p.measured).map(|p| p.end_us - p.start_us).sum();
    let warm_up = match warm_up_us {
        0 => String::new(),
        us => format!("after {} of warm-up, in no figure", seconds(us as f64 / 1e6)),
    };
    let level = manifest.phases.iter().find(|phase| phase.measured).map_or("", |phase| phase.level.as_str());
    let shared = manifest.load.split("; ").find(|part| part.ends_with("requests at once"));
    let level = match level.strip_suffix(" users").or(level.strip_suffix(" user")) {
        _ if shared.is_some() => level.to_owned(),
        Some("1") => "1 connection".to_owned(),
        Some(users) if manifest.system.http == HTTP_2 => format!("{users} requests at once"),
        Some(users) => format!("{users} connections"),
        // a session of a hit is one request
        None => level.replace("sessions/s", "requests/s"),
    };
    let spacing = if manifest.load.contains("Poisson") { "Poisson arrivals" } else { "" };
    let label = match &manifest.labels[..] {
        [] => String::new(),
        [label] => cut(label, LABEL, "..."),
        labels => format!("{} requests in turn", labels.len()),
    };
    // what was agreed on names the version, too
    let is_told = manifest.system.spoken.iter().any(|how| how.starts_with(HTTP_2));
    let version = if manifest.system.http == HTTP_2 && !is_told { HTTP_2 } else { "" };
    let spoken = manifest.system.spoken.iter().map(String::as_str);
    let parts = [manifest.system.url.as_str(), &label, version].into_iter().chain(spoken);
    let threads = plural(summary.driver.threads, "thread");
    let cores = pinned(&manifest.driver_pinned_to);
    let load = [&level, shared.unwrap_or(""), spacing, &threads, &cores, &manifest.driver_io];
    let measured = match summary.measured_s {
        s if s < 1.0 => duration(s * 1e6),
        s => seconds(s),
    };
    [
        Block::line("requests to", &parts.collect::<Vec<_>>()),
        Block::line("load", &load),
        Block::line("measured", &[&format!("for {measured}"), &warm_up]),
    ]
}

fn throughput(run: &Run) -> Vec<Block> {
    let (manifest, summary) = (&run.manifest, &run.manifest.summary);
    let in_window = run.load.iter().filter(|load| load.in_window);
    let (received, connects) = in_window.fold((0, 0), |(received, connects), load| {
        (received + load.received_bytes, connects + load.connects)
    });
    let rate = match summary.measured_s {
        s if s > 0.0 => format!("{}/s received", bytes((received as f64 / s) as u64)),
        _ => String::new(),
    };
    let offered = match run::is_closed(manifest) {
        true => String::new(),
        false => {
            let share = achieved_of_offered(summary).map(|share| format!(" ({share} achieved)"));
            format!("{}/s offered{}", three_digits(summary.offered_per_s), share.unwrap_or_default())
        }
    };
    let at_least = at_least(manifest);
    let achieved = format!("{at_least}{}/s good answers", three_digits(summary.achieved_per_s));
    let connects = format!("{} new connections", count(connects));
    let mut blocks = vec![
        Block::heading("Throughput"),
        Block::line("rate", &[&achieved, &offered, &rate]),
        Block::line("requests", &[&count(summary.due()), &connects]),
        run::failures(summary),
    ];
    blocks.extend(run::decoded(run));
    if summary.dropped > 0 {
        let is_lost = summary.driver.agents.iter().any(|agent| agent.lost.is_some());
        let why = if is_lost {
            "was due at an agent that was lost, or found no room to wait"
        } else {
            "found no room to wait"
        };
        let dropped = format!("{} {why}", count(summary.dropped));
        blocks.push(Block::line("dropped", &[&dropped]));
    }
    blocks.push(run::statuses(summary).unwrap_or_else(|| Block::line("status codes", &["none"])));
    blocks
}

fn histogram(response: &Merged) -> Vec<Block> {
    if response.len() < 2 {
        return Vec::new();
    }
    let shown = |bin: &Bin| Bar {
        from: edge(bin.from_us),
        to: edge(bin.to_us),
        count: bin.count,
        share: bin.count as f64 / response.len() as f64,
    };
    let bars = told_apart(bins(response)).iter().map(shown).collect();
    under("Response times of good answers", [Block::Bars(bars)])
}

/// Requests that took at least `from_us` and less than `to_us`.
struct Bin {
    from_us: u64,
    to_us: u64,
    count: u64,
}

/// An edge of a bar as it is written.
fn edge(us: u64) -> String {
    duration(us as f64)
}

/// Bins whose edges are written alike become one: no two rows look the same.
fn told_apart(bars: Vec<Bin>) -> Vec<Bin> {
    let mut apart: Vec<Bin> = Vec::new();
    for bar in bars {
        match apart.last_mut() {
            Some(last) if edge(last.from_us) == edge(last.to_us) || edge(bar.from_us) == edge(bar.to_us) => {
                (last.to_us, last.count) = (bar.to_us, last.count + bar.count);
            }
            _ => apart.push(bar),
        }
    }
    apart
}

/// The range cut at 1, 2, 5, 10, 20, 50, …, so that both the bulk and the tail can be seen; cut evenly where that
/// shows no shape.
fn bins(of: &Merged) -> Vec<Bin> {
    let (low, high) = (of.min().max(1), of.max().max(1));
    let mut edges: Vec<u64> = Vec::new();
    let mut decade = 1u64;
    while decade <= high.saturating_mul(10) {
        edges.extend([1, 2, 5].map(|step| step * decade));
        decade *= 10;
    }
    let first = edges.iter().rposition(|edge| *edge <= low).unwrap_or(0);
    let last = edges.iter().position(|edge| *edge > high).unwrap_or(edges.len() - 1);
    let mut edges = edges[first..=last].to_vec();
    if edges.len() > BARS_MAX + 1 {
        // only the decades
        edges.retain(|edge| edge.to_string().trim_start_matches('1').chars().all(|c| c == '0'));
        edges.insert(0, edges[0] / 10);
        edges.push(edges[edges.len() - 1] * 10);
    } else if edges.len() <= BARS_MIN {
        let step = ((high - low + 1).div_ceil(EVEN_BARS)).max(1);
        let bars = (high - low + 1).div_ceil(step);
        edges = (0..=bars).map(|bar| low + bar * step).collect();
    }
    let mut bars: Vec<Bin> =
        edges.windows(2).map(|two| Bin { from_us: two[0], to_us: two[1], count: 0 }).collect();
    for value in of.iter_recorded() {
        let us = value.value_iterated_to();
        let index = bars.partition_point(|bar| bar.to_us <= us).min(bars.len() - 1);
        bars[index].count += value.count_since_last_iteration();
    }
    let used = |bar: &Bin| bar.count > 0;
    let end = bars.iter().rposition(used).map_or(0, |last| last + 1);
    bars.truncate(end);
    let begin = bars.iter().position(used).unwrap_or(0);
    bars.drain(..begin);
    bars
}

#[cfg(test)]
mod tests {
    use tidemark_record::new_merged;

    use super::*;
    use crate::test_run;

    fn merged(values: &[(u64, u64)]) -> Merged {
        let mut merged = new_merged();
        values.iter().for_each(|(us, count)| merged.record_n(*us, *count).unwrap());
        merged
    }

    #[test]
    fn every_request_is_in_one_bar() {
        for values in [
            vec![(1, 5)],
            vec![(50_100, 10), (50_200, 20), (50_400, 3)],
            vec![(100, 1_000), (150, 2_000), (1_000, 50), (9_999, 2)],
            vec![(1, 1), (1_000_000_000, 1)],
            vec![(3, 1), (3_599_000_000, 7)],
        ] {
            let merged = merged(&values);
            let bars = bins(&merged);
            assert!(bars.len() <= BARS_MAX + 2, "{}", bars.len());
            assert_eq!(bars.iter().map(|bar| bar.count).sum::<u64>(), merged.len(), "{values:?}");
            assert!(bars.iter().all(|bar| bar.from_us < bar.to_us));
            assert!(bars[0].count > 0 && bars[bars.len() - 1].count > 0);
            let (first, last) = (&bars[0], &bars[bars.len() - 1]);
            assert!(first.from_us <= merged.min() && merged.max() <= last.to_us, "{values:?}");
        }
    }

    /// Answers of before the window come in it, so that more are good than were offered.
    #[test]
    fn no_more_than_was_offered_is_at_least_so_much() {
        let (_dir, mut run) = test_run::airline();
        run.manifest.summary.driver.limits = vec!["its threads".into()];
        let mut bound = |load: &str, offered: f64, achieved: f64| {
            run.manifest.load = load.into();
            (run.manifest.summary.offered_per_s, run.manifest.summary.achieved_per_s) = (offered, achieved);
            at_least(&run.manifest)
        };
        assert_eq!(bound("open, Poisson arrivals", 100.0, 101.0), "");
        assert_eq!(bound("open, Poisson arrivals", 100.0, 100.0), "");
        assert_eq!(bound("open, Poisson arrivals", 100.0, 90.0), "at least ");
        assert_eq!(bound("closed, 60 users", 100.0, 101.0), "at least ");
        assert_eq!(bound("closed, 60 users", 100.0, 0.0), "");
    }

    #[test]
    fn no_two_rows_of_the_histogram_look_the_same() {
        for values in [
            vec![(10_001, 5), (10_003, 7), (10_030, 2)],
            vec![(123_456, 1), (123_460, 1)],
            vec![(1_000_000, 3), (1_000_900, 3), (1_009_000, 3)],
            vec![(50_100, 10), (50_200, 20), (50_400, 3)],
        ] {
            let merged = merged(&values);
            let bars = told_apart(bins(&merged));
            let rows: Vec<String> =
                bars.iter().map(|bar| format!("{} to {}", edge(bar.from_us), edge(bar.to_us))).collect();
            let unique: std::collections::BTreeSet<&String> = rows.iter().collect();
            assert_eq!(unique.len(), rows.len(), "{rows:?}");
            assert!(
                bars.len() == 1 || bars.iter().all(|bar| edge(bar.from_us) != edge(bar.to_us)),
                "{rows:?}"
            );
            assert_eq!(bars.iter().map(|bar| bar.count).sum::<u64>(), merged.len());
        }
    }
}
