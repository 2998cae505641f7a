//! Log lines: those that the published services write, and those of ours.
//!
//! A published line has eight fields with `|` or `,` between: year, month from 0, day, hour, minute, entity, operation,
//! milliseconds. One of ours has five: microseconds since 1970, entity, operation, microseconds, status.

use std::io::{self, BufRead};

use crate::table::cut;
use crate::text::clean;

/// What operations are published to be about.
pub(super) const ENTITIES: [&str; 4] = ["Friend", "Inbound", "Outbound", "Participant"];
/// What operations are published to be.
pub(super) const OPERATIONS: [&str; 5] = ["get", "load", "post", "search", "store"];
/// Lines that are not understood and are told of.
const TOLD_MAX: usize = 5;

/// The last time that the calendar has, microseconds since 1970: the year 9999.
const TIME_MAX_US: i64 = 253_402_207_200_000_000;
/// A year, microseconds.
const DURATION_MAX_US: i64 = 31_536_000_000_000;
/// Most characters of a field that are shown.
const SHOWN_MAX: usize = 60;

/// What the first month of a year is in published lines.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Months {
    /// 0, as most of the published services write it.
    #[default]
    FromZero,
    /// 1, as the one in Python writes it.
    FromOne,
}

/// An operation as a line says it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Line {
    /// Which of the log's it is, from 1.
    pub(super) number: u64,
    /// Microseconds since 1970, by the clock of whoever wrote it; of a published line, the begin of the minute.
    pub(super) at_us: i64,
    pub(super) entity: String,
    pub(super) operation: String,
    pub(super) duration_us: u64,
    pub(super) status: u16,
}

/// A log that was read.
#[derive(Debug, Default)]
pub struct LogLines {
    pub(super) lines: Vec<Line>,
    /// Whether some know no more than the minute.
    pub(super) minutes_only: bool,
    /// How many operations are missing, as lines `#dropped COUNT` say.
    pub missing: u64,
    /// How many lines were skipped as they are none.
    pub skipped: u64,
    /// The first of these: number from 1, and why.
    pub reasons: Vec<(u64, String)>,
}

impl LogLines {
    /// Reads a log. What is no line is skipped and counted.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn read(mut from: impl BufRead, months: Months) -> io::Result<LogLines> {
        let mut log = LogLines::default();
        let mut line = Vec::new();
        for number in 1.. {
            line.clear();
            if from.read_until(b'\n', &mut line)? == 0 {
                break;
            }
            let text = String::from_utf8_lossy(&line);
            let text = text.trim_start_matches('\u{feff}').trim();
            // a process begins and ends
            if text.is_empty() || text.starts_with("#began ") || text == "#ended" {
                continue;
            }
            if let Some(count) = text.strip_prefix("#dropped ").and_then(|count| count.parse::<u64>().ok()) {
                log.missing = log.missing.saturating_add(count);
                continue;
            }
            match parse(text, months) {
                Ok((line, minute_only)) => {
                    log.minutes_only |= minute_only;
                    log.lines.push(Line { number, ..line });
                }
                Err(reason) => {
                    log.skipped += 1;
                    if log.reasons.len() < TOLD_MAX {
                        log.reasons.push((number, clean(&reason)));
                    }
                }
            }
        }
        Ok(log)
    }

    /// How many lines there are.
    pub fn len(&self) -> usize {
        self.lines.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }
}

/// A line, and whether it knows no more than the minute.
fn parse(text: &str, months: Months) -> Result<(Line, bool), String> {
    let separator = if text.contains('|') { '|' } else { ',' };
    let fields: Vec<&str> = text.split(separator).map(str::trim).collect();
    match fields[..] {
        [at, entity, operation, duration, status] => {
            let line = Line {
                number: 0,
                at_us: number(at, "time", 0, TIME_MAX_US)?,
                entity: entity.to_owned(),
                operation: operation.to_owned(),
                duration_us: number(duration, "duration", 0, DURATION_MAX_US)? as u64,
                status: number(status, "status", 0, u16::MAX.into())? as u16,
            };
            Ok((line, false))
        }
        [year, month, day, hour, minute, entity, operation, duration] => {
            let first = if months == Months::FromOne { 1 } else { 0 };
            let year = number(year, "year", 1, 9999)? as i16;
            let month = number(month, "month", first, first + 11)? - first + 1;
            let day = number(day, "day", 1, 31)? as i8;
            let hour = number(hour, "hour", 0, 23)? as i8;
            let minute = number(minute, "minute", 0, 59)? as i8;
            let date = jiff::civil::Date::new(year, month as i8, day)
                .map_err(|_| format!("there is no day {day} in that month"))?;
            let time = date.at(hour, minute, 0, 0).to_zoned(jiff::tz::TimeZone::UTC);
            let time = time.map_err(|error| error.to_string())?;
            let ms = number(duration, "duration", 0, DURATION_MAX_US / 1000)?;
            let line = Line {
                number: 0,
                at_us: time.timestamp().as_microsecond(),
                entity: published_entity(entity)?,
                operation: published_operation(operation)?,
                duration_us: ms as u64 * 1000,
                status: 200,
            };
            Ok((line, true))
        }
        _ => Err(format!("it has {} fields, not 8 (published) or 5 (ours)", fields.len())),
    }
}

fn number(text: &str, what: &str, least: i64, most: i64) -> Result<i64, String> {
    match text.parse::<i64>() {
        Ok(number) if (least..=most).contains(&number) => Ok(number),
        Ok(number) => Err(format!("{what} {number} is not within {least} to {most}")),
        Err(_) => Err(format!("{what} `{}` is no whole number", cut(text, SHOWN_MAX, "…"))),
    }
}

/// The published name of what some of the services write otherwise: `class feed.core.Outbound`, `friends`.
fn published_entity(text: &str) -> Result<String, String> {
    let name = text.strip_prefix("class ").unwrap_or(text);
    let name = name.rsplit('.').next().unwrap_or(name);
    let is = |entity: &&&str| {
        name.eq_ignore_ascii_case(entity)
            || name.strip_suffix(['s', 'S']).is_some_and(|singular| singular.eq_ignore_ascii_case(entity))
    };
    let found = ENTITIES.iter().find(is).map(|&entity| entity.to_owned());
    found.ok_or_else(|| format!("entity `{}` is none of {}", cut(text, SHOWN_MAX, "…"), ENTITIES.join(", ")))
}

fn published_operation(text: &str) -> Result<String, String> {
    let found = OPERATIONS.iter().find(|operation| text.eq_ignore_ascii_case(operation));
    let found = found.map(|&operation| operation.to_owned());
    found.ok_or_else(|| {
        format!("operation `{}` is none of {}", cut(text, SHOWN_MAX, "…"), OPERATIONS.join(", "))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(text: &str) -> Result<(Line, bool), String> {
        parse(text, Months::FromZero)
    }

    #[test]
    fn published_lines_are_read_whatever_they_call_things() {
        let (line, minute_only) = one("2014|1|3|0|33|Outbound|post|20").unwrap();
        assert!(minute_only);
        assert_eq!(line.duration_us, 20_000);
        assert_eq!(super::super::clock::minute(line.at_us / 60_000_000), "2014-02-03 00:33");
        for (entity, name) in [
            ("class feed.core.Friend", "Friend"),
            ("friends", "Friend"),
            ("outbound", "Outbound"),
            ("INBOUND", "Inbound"),
            ("participant", "Participant"),
        ] {
            let (line, _) = one(&format!("2020, 11, 31, 23, 59, {entity}, LOAD, 0")).unwrap();
            assert_eq!((line.entity.as_str(), line.operation.as_str()), (name, "load"));
        }
        let (line, _) = parse("2014|02|03|00|33|outbound|post|1", Months::FromOne).unwrap();
        assert_eq!(super::super::clock::minute(line.at_us / 60_000_000), "2014-02-03 00:33");
    }

    #[test]
    fn lines_of_ours_are_read() {
        let (line, minute_only) = one("1764046912123456,Outbound,post,5234,503").unwrap();
        assert!(!minute_only);
        assert_eq!((line.at_us, line.duration_us, line.status), (1_764_046_912_123_456, 5_234, 503));
    }

    #[test]
    fn what_is_no_line_says_why() {
        for (text, reason) in [
            ("a|b", "2 fields"),
            ("2014|12|3|0|33|Outbound|post|1", "month 12"),
            ("2014|1|30|0|33|Outbound|post|1", "no day 30"),
            ("2014|1|3|24|33|Outbound|post|1", "hour 24"),
            ("2014|1|3|0|33|Outbound|post|x", "duration `x`"),
            ("2014|1|3|0|33|Outbound|post|-1", "duration -1"),
            ("2014|1|3|0|33|Post|post|1", "entity `Post`"),
            ("2014|1|3|0|33|Outbound|delete|1", "operation `delete`"),
            ("99999999999999999999,a,b,1,200", "time"),
            ("400000000000000000,a,b,1,200", "time"),
        ] {
            let error = one(text).unwrap_err();
            assert!(error.contains(reason), "{text}: {error}");
        }
        let log = LogLines::read(
            &b"x\n#began file\n2014|1|3|0|33|Outbound|post|1\n\xff|\n#ended\n"[..],
            Months::FromZero,
        )
        .unwrap();
        assert_eq!((log.len(), log.skipped, log.reasons[0].0, log.reasons[1].0), (1, 2, 1, 4));
    }

    #[test]
    fn no_bytes_make_the_reader_panic() {
        fastrand::seed(1);
        for _ in 0..20_000 {
            let bytes: Vec<u8> = (0..fastrand::usize(0..60))
                .map(|_| {
                    *fastrand::choice(b"0123456789|,-. \nabOutbound\xc3").as_ref().copied().unwrap_or(&b'|')
                })
                .collect();
            LogLines::read(&bytes[..], Months::FromZero).unwrap();
        }
    }
}
