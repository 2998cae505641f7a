//! Logs of JMeter: the lines of its summariser.
//!
//! ```text
//! 2013/07/11 21:10:30 INFO  - jmeter.reporters.Summariser: summary +  15498 in    30s =  516.6/s Avg:   112 Min: …
//! 2026-11-29 00:30:00,045 INFO o.a.j.r.Summariser: summary +     12 in 00:00:05 =    2.4/s Avg:     3 Min: …
//! ```

use std::io::{self, BufRead};

use super::Unread;
use super::lines::Lines;

/// What tells a line of an interval; sums so far have `=` in place of `+`.
const INTERVAL: &str = "summary +";
/// Behind it stands the name of the machine.
const NAME: &str = " Name:";
/// Most intervals of a log: half a year of one every 15 s.
const INTERVALS_MAX: usize = 1_000_000;

/// The intervals of a load generator.
#[derive(Debug, Default)]
pub(super) struct Summaries {
    /// Its machine, or else its file.
    pub(super) name: String,
    /// Its file.
    pub(super) file: String,
    /// When each was logged, as the log has it, and its requests per second.
    pub(super) intervals: Vec<(String, f64)>,
}

impl Summaries {
    /// Reads a log. `file` is what it is called where a line is not understood.
    pub(super) fn read(
        name: String,
        file: &str,
        from: impl BufRead,
        unread: &mut Unread,
    ) -> io::Result<Self> {
        let mut of = Summaries { name, file: file.to_owned(), ..Summaries::default() };
        let mut lines = Lines::new(from);
        while let Some((number, line)) = lines.next()? {
            if line.contains(INTERVAL) {
                match interval(&line) {
                    Ok(interval) if of.intervals.len() < INTERVALS_MAX => of.intervals.push(interval),
                    Ok(_) => unread.line(file, number, "too many intervals"),
                    Err(reason) => unread.line(file, number, reason),
                }
            } else if let Some((_, rest)) = line.split_once(NAME)
                && let Some(host) = rest.split_whitespace().next()
            {
                of.name = host.to_owned();
            }
        }
        Ok(of)
    }
}

/// When it was logged, and its requests per second.
fn interval(line: &str) -> Result<(String, f64), &'static str> {
    let mut words = line.split_whitespace();
    let (Some(date), Some(time)) = (words.next(), words.next()) else { return Err("no date and time") };
    if !date.starts_with(|c: char| c.is_ascii_digit()) || !time.starts_with(|c: char| c.is_ascii_digit()) {
        return Err("no date and time before `summary +`");
    }
    let rate = line.split_once(INTERVAL).and_then(|(_, rest)| rest.split_once('=')?.1.split_once("/s"));
    let rate = rate.ok_or("no requests per second between = and /s")?.0.trim().replace(',', ".");
    let rate = rate.parse::<f64>().ok().filter(|rate| rate.is_finite() && *rate >= 0.0);
    let rate = rate.ok_or("what stands between = and /s is no rate")?;
    // newer logs have milliseconds
    let time = time.split(',').next().unwrap_or(time);
    Ok((format!("{date} {time}"), rate))
}
