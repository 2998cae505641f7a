//! Rates over time: a sine, spikes, and series from CSV files.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use super::load::{Level, Unit};
use crate::language::{BetweenRows, RateOverTime, Sine, Spike};
use crate::plan::{Curve, Series};
use crate::sink::Sink;

/// Most rows of a file of rates.
const ROWS_MAX: usize = 100_000;
/// Most spikes of a phase.
const SPIKES_MAX: u128 = 100_000;
/// Longest time that a file of rates may cover, seconds: a year.
const SECONDS_MAX: f64 = 366.0 * 86_400.0;

/// Reads a `rate` that is a mapping.
pub(super) fn read(said: &RateOverTime<'_>, base: &Path, sink: &Sink<'_>) -> Option<Level> {
    if let Some(sine) = &said.sine.value {
        said.between_rows.refuse(sink, "a sine has no rows; \"between rows\" belongs to a file");
        return self::sine(sine, sink);
    }
    let path = base.join(said.file.value.as_ref()?);
    match read_csv(&path, said.between_rows.value == Some(BetweenRows::Line)) {
        Ok(series) => {
            let level = |point: Option<&(f64, f64)>| point.map_or(0.0, |(_, level)| *level);
            let (from, to) = (level(series.points.first()), level(series.points.last()));
            let length = Some(Duration::from_secs_f64(series.length_s));
            Some(Level { unit: Unit::Rate, from, to, curve: Curve::Series(Arc::new(series)), length })
        }
        Err(message) => {
            said.file.error(sink, format!("cannot read {}: {message}", path.display()));
            None
        }
    }
}

fn sine(said: &Sine<'_>, sink: &Sink<'_>) -> Option<Level> {
    let (mean, amplitude, period) = (said.mean.value?, said.amplitude.value?, said.period.value?);
    if amplitude > mean {
        sink.error(said.node, "this sine falls below 0; its amplitude is at most its mean");
        return None;
    }
    if period.is_zero() {
        sink.error(said.node, "the period of a sine must be longer than 0");
        return None;
    }
    let curve = Curve::Sine { amplitude, period };
    Some(Level { unit: Unit::Rate, from: mean, to: mean, curve, length: None })
}

/// Reads a `spike`.
pub(super) fn spikes(said: &Spike<'_>, sink: &Sink<'_>) -> Option<Curve> {
    let (level, every, length) = (said.rate.value?, said.every.value?, said.length.value?);
    if length.is_zero() || length >= every {
        sink.error(said.node, "a spike must be longer than 0 and shorter than its period (every)");
        return None;
    }
    Some(Curve::Spikes { level, every, length })
}

/// Whether a phase of this length has few enough spikes.
pub(crate) fn are_few(curve: &Curve, length: Duration) -> bool {
    match curve {
        Curve::Spikes { every, .. } => length.as_nanos() / every.as_nanos().max(1) <= SPIKES_MAX,
        _ => true,
    }
}

/// Rows of seconds and rate. Seconds count from the first row.
fn read_csv(path: &Path, between: bool) -> Result<Series, String> {
    if !path.is_file() {
        return Err("there is no such file".into());
    }
    let mut csv = csv::ReaderBuilder::new()
        .trim(csv::Trim::All)
        .flexible(true)
        .from_path(path)
        .map_err(|error| error.to_string())?;
    let headers = csv.headers().map_err(|error| error.to_string())?;
    let column = |name: &str| {
        let found = headers.iter().position(|header| header == name);
        found.ok_or_else(|| format!("it has no column \"{name}\"; its first line must name seconds and rate"))
    };
    let (seconds_column, rate_column) = (column("seconds")?, column("rate")?);
    let mut points: Vec<(f64, f64)> = Vec::new();
    let mut first_s = 0.0;
    for record in csv.records() {
        let record = record.map_err(|error| error.to_string())?;
        let line = record.position().map_or(0, csv::Position::line);
        let number = |column: usize, what: &str| {
            let text = record.get(column).unwrap_or_default();
            let value = text.parse::<f64>().ok().filter(|value| value.is_finite() && *value >= 0.0);
            value.ok_or_else(|| {
                format!("line {line}: \"{text}\" is not a {what}; expected a number, 0 or more")
            })
        };
        let (seconds, rate) = (number(seconds_column, "time in seconds")?, number(rate_column, "rate")?);
        if points.is_empty() {
            first_s = seconds;
        }
        let at_s = seconds - first_s;
        if points.last().is_some_and(|(last_s, _)| at_s <= *last_s) {
            return Err(format!("line {line}: its seconds are not later than those of the line before"));
        }
        if at_s > SECONDS_MAX {
            return Err(format!("line {line}: it is more than a year behind the first"));
        }
        if points.len() == ROWS_MAX {
            return Err(format!("it has more than {ROWS_MAX} rows"));
        }
        points.push((at_s, rate));
    }
    let length_s = match points.as_slice() {
        [.., (_, _), (last_s, _)] if between => *last_s,
        // The last rate holds as long as the one before it.
        [.., (before_s, _), (last_s, _)] => last_s + (last_s - before_s),
        _ => return Err("it needs at least two rows behind its header".into()),
    };
    Ok(Series { points, between, length_s })
}
