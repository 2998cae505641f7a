//! A run in a few stretches of equal length: what differs within it, without its every second.

use std::collections::BTreeMap;
use std::path::Path;

use crate::Manifest;
use crate::counts::Counts;
use crate::error::{RecordError, damaged};
use crate::files::{self, MEASURED_DROPPED};
use crate::interval::Outcome;
use crate::table::{Field, Groups, Kind, Table};

/// What is read of requests.
const SERIES: [Field; 8] = [
    ("start_us", Kind::Int),
    ("end_us", Kind::Int),
    ("in_window", Kind::Bool),
    ("label", Kind::Text),
    ("outcome", Kind::Text),
    ("measured", Kind::Bool),
    ("count", Kind::Int),
    ("response_time_us", Kind::Bytes),
];
/// What is read of the load.
const LOAD: [Field; 5] = [
    ("start_us", Kind::Int),
    ("end_us", Kind::Int),
    ("in_window", Kind::Bool),
    ("dropped", Kind::Int),
    (MEASURED_DROPPED, Kind::Int),
];
/// What is read of the processes.
const MONITOR: [Field; 4] =
    [("at_us", Kind::Int), ("process", Kind::Text), ("cpu_share", Kind::Float), (files::LENGTH, Kind::Int)];

/// One of the stretches of a run's measured window. What was due in the window and ended behind it is of the last.
#[derive(Debug, Clone, Default)]
pub struct Stretch {
    /// Its length, seconds.
    pub length_s: f64,
    /// By label, as [`Manifest::labels`] has them.
    pub labels: Vec<StretchOfLabel>,
    /// Requests given up because a bound was reached.
    pub dropped: u64,
    /// CPU time by process, seconds, as far as it was watched.
    pub cpu_s: Vec<(String, f64)>,
}

/// What one label did in a stretch.
#[derive(Debug, Clone, Default)]
pub struct StretchOfLabel {
    /// Good answers that came in it.
    pub answered: u64,
    /// Requests that ended in it without a good answer.
    pub failed: u64,
    /// Response times of the good answers, microseconds. Of these and the failed all were due in the measured window.
    pub times: Counts,
}

/// Cuts the measured window of a run into stretches of equally many seconds, at most so many; seconds that remain are of the
/// last. Of the run's files only those columns are read that this needs.
///
/// # Errors
/// Where a file cannot be read, or does not hold what it should.
pub fn stretches(dir: &Path, manifest: &Manifest, most: usize) -> Result<Vec<Stretch>, RecordError> {
    let load = Table::read_with(&dir.join(files::LOAD), &LOAD, &files::LATER)?;
    let (starts, ends, in_window) = (load.ints("start_us")?, load.ints("end_us")?, load.bools("in_window")?);
    let rows = (0..load.rows()).filter(|row| in_window[*row] && starts[*row] < ends[*row]);
    let window: BTreeMap<u64, u64> = rows.map(|row| (starts[row], ends[row])).collect();
    let Some(cut) = Cut::of(&window, most) else { return Ok(Vec::new()) };
    let empty =
        Stretch { labels: vec![StretchOfLabel::default(); manifest.labels.len()], ..Stretch::default() };
    let mut stretches = vec![empty; cut.count];
    for (start_us, end_us) in &window {
        stretches[cut.at(*start_us, *end_us)].length_s += (end_us - start_us) as f64 / 1e6;
    }
    let has_measured = load.has(MEASURED_DROPPED);
    let dropped = load.ints(if has_measured { MEASURED_DROPPED } else { "dropped" })?;
    for row in (0..load.rows()).filter(|row| has_measured || in_window[*row]) {
        stretches[cut.at(starts[row], ends[row])].dropped += dropped[row];
    }
    let series = Groups::open(&dir.join(files::SERIES), &SERIES)?;
    for group in 0..series.count() {
        add_series(&series.read(group)?, manifest, &cut, &mut stretches)?;
    }
    let monitor = dir.join(files::MONITOR);
    if monitor.exists() {
        add_cpu(&Table::read_with(&monitor, &MONITOR, &files::LATER)?, &cut, &mut stretches)?;
    }
    Ok(stretches)
}

/// Where the window is cut.
struct Cut {
    start_us: u64,
    end_us: u64,
    /// Length of each stretch but the last.
    each_us: u64,
    count: usize,
}

impl Cut {
    /// By the intervals in the window; none where nothing was measured.
    fn of(window: &BTreeMap<u64, u64>, most: usize) -> Option<Cut> {
        let (start_us, end_us) = (*window.keys().next()?, *window.values().max()?);
        let seconds = (end_us - start_us) / 1_000_000;
        let each = seconds.div_ceil(most.max(1) as u64).max(1);
        let count = usize::try_from(seconds / each).unwrap_or(usize::MAX).clamp(1, most.max(1));
        Some(Cut { start_us, end_us, each_us: each * 1_000_000, count })
    }

    /// The stretch that the middle of an interval is in: the first or the last of what is beside the window.
    fn at(&self, start_us: u64, end_us: u64) -> usize {
        let within = (start_us / 2 + end_us / 2).saturating_sub(self.start_us) / self.each_us;
        usize::try_from(within).unwrap_or(usize::MAX).min(self.count - 1)
    }
}

fn add_series(
    table: &Table,
    manifest: &Manifest,
    cut: &Cut,
    stretches: &mut [Stretch],
) -> Result<(), RecordError> {
    let wrong = |reason: String| damaged(table.path(), reason);
    let (mut labels, mut outcomes) = (manifest.labels.clone(), Vec::new());
    let of_label = table.codes("label", &mut labels)?;
    if let Some(other) = labels.get(manifest.labels.len()) {
        return Err(wrong(format!("label {other:?} is not among those of run.json")));
    }
    let of_outcome = table.codes("outcome", &mut outcomes)?;
    let (starts, ends) = (table.ints("start_us")?, table.ints("end_us")?);
    let (in_window, measured, counts) =
        (table.bools("in_window")?, table.bools("measured")?, table.ints("count")?);
    for (row, times) in table.slices("response_time_us")?.enumerate() {
        let of = &mut stretches[cut.at(starts[row], ends[row])].labels[of_label[row]];
        let is_good = outcomes[of_outcome[row]] == Outcome::Ok.name();
        if is_good && in_window[row] {
            of.answered += counts[row];
        }
        match (measured[row], is_good) {
            (true, true) => of.times.add(times).map_err(wrong)?,
            (true, false) => of.failed += counts[row],
            (false, _) => {}
        }
    }
    Ok(())
}

/// A look tells of the time since the one before, or of less.
fn add_cpu(table: &Table, cut: &Cut, stretches: &mut [Stretch]) -> Result<(), RecordError> {
    let mut names = Vec::new();
    let of = table.codes("process", &mut names)?;
    let (at_us, shares) = (table.ints("at_us")?, table.floats("cpu_share")?);
    let lengths_us = if table.has(files::LENGTH) { table.ints(files::LENGTH)? } else { Default::default() };
    for stretch in stretches.iter_mut() {
        stretch.cpu_s = names.iter().map(|name| (name.clone(), 0.0)).collect();
    }
    let mut last_us = vec![0; names.len()];
    for row in 0..table.rows() {
        let last_us = std::mem::replace(&mut last_us[of[row]], at_us[row]);
        let length_us = lengths_us.get(row).copied().filter(|us| *us > 0);
        let before_us = length_us.map_or(last_us, |us| at_us[row].saturating_sub(us));
        let middle_us = before_us / 2 + at_us[row] / 2;
        if (cut.start_us..cut.end_us).contains(&middle_us) && shares[row].is_finite() {
            let length_s = at_us[row].saturating_sub(before_us) as f64 / 1e6;
            stretches[cut.at(before_us, at_us[row])].cpu_s[of[row]].1 += shares[row] * length_s;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_run::{interval, series};
    use crate::{RunWriter, Sample, summarize};

    fn sample(at_us: u64, process: &str, cpu_share: f64) -> Sample {
        Sample { at_us, process: process.into(), cpu_share, ..Sample::default() }
    }

    /// A second of warm-up, ten that are measured, and one of the drain.
    fn written(dir: &Path) -> Manifest {
        let labels = vec!["a".to_owned(), "b".to_owned()];
        let mut writer = RunWriter::create(dir, &labels, "").unwrap();
        writer.threads(1);
        for second in 0..12 {
            let mut one = interval(0, second, second + 1);
            let is_in = (1..11).contains(&second);
            one.in_window = is_in;
            let due = is_in || second == 11;
            one.series = vec![series(0, Outcome::Ok, due, &[(1_000 + second * 10, 20)])];
            if second == 3 {
                one.series.push(series(1, Outcome::Timeout, true, &[(5_000_000, 2)]));
                (one.dropped, one.measured_dropped) = (7, 7);
            }
            writer.add_interval(&one).unwrap();
            writer.add_sample(&sample((second + 1) * 1_000_000, "system", 0.5)).unwrap();
            writer.add_sample(&sample((second + 1) * 1_000_000, "driver", 0.25)).unwrap();
        }
        let manifest = Manifest::new("x", labels, summarize(writer.totals(), dir));
        writer.finish(&manifest).unwrap();
        Manifest::open(dir).unwrap()
    }

    #[test]
    fn stretches_together_are_the_run() {
        let dir = tempfile::tempdir().unwrap();
        let manifest = written(dir.path());
        let found = stretches(dir.path(), &manifest, 5).unwrap();
        assert_eq!((found.len(), found[0].length_s), (5, 2.0));
        let answered: Vec<u64> = found.iter().map(|of| of.labels[0].answered).collect();
        assert_eq!(answered, [40; 5]);
        let failed: Vec<(u64, u64)> = found.iter().map(|of| (of.labels[1].failed, of.dropped)).collect();
        assert_eq!(failed, [(0, 0), (2, 7), (0, 0), (0, 0), (0, 0)]);
        let times = |at: usize| found[at].labels[0].times.iter().collect::<Vec<_>>();
        assert_eq!(times(0), [(1_010, 20), (1_020, 20)]);
        assert_eq!(times(4), [(1_090, 20), (1_100, 20), (1_110, 20)], "with those that came late");
        for stretch in &found {
            let cpu_s: Vec<(&str, f64)> =
                stretch.cpu_s.iter().map(|(name, cpu_s)| (name.as_str(), *cpu_s)).collect();
            assert_eq!(cpu_s, [("system", 1.0), ("driver", 0.5)]);
        }
        let all: u64 = found.iter().flat_map(|of| of.labels[0].times.iter()).map(|(_, count)| count).sum();
        assert_eq!(all, manifest.summary.good.requests);
    }

    #[test]
    fn no_stretch_is_shorter_than_a_second_and_a_damaged_file_is_told() {
        let dir = tempfile::tempdir().unwrap();
        let manifest = written(dir.path());
        assert_eq!(stretches(dir.path(), &manifest, 1_000).unwrap().len(), 10);
        let other = Manifest { labels: vec!["a".into()], ..manifest.clone() };
        let error = stretches(dir.path(), &other, 5).unwrap_err().to_string();
        assert!(error.contains("label \"b\" is not among"), "{error}");
        let uneven: Vec<f64> =
            stretches(dir.path(), &manifest, 3).unwrap().iter().map(|of| of.length_s).collect();
        assert_eq!(uneven, [4.0, 6.0], "four seconds each, and what remains");
        std::fs::write(dir.path().join(files::SERIES), "no table").unwrap();
        assert!(matches!(stretches(dir.path(), &manifest, 5), Err(RecordError::Damaged { .. })));
    }
}
