//! Dates: moments to text and back, in UTC, with strftime's formats.

use jiff::fmt::strtime::{self, BrokenDownTime};
use jiff::tz::TimeZone;

use super::eval::{Absent, Bytes, Got, Machine, Made, argument, whole};
use super::node::Node;

const DAY_MS: i64 = 86_400_000;
const WEEKDAYS: [&[u8]; 7] = [b"Sun", b"Mon", b"Tue", b"Wed", b"Thu", b"Fri", b"Sat"];
const MONTHS: [&[u8]; 12] =
    [b"Jan", b"Feb", b"Mar", b"Apr", b"May", b"Jun", b"Jul", b"Aug", b"Sep", b"Oct", b"Nov", b"Dec"];

pub(super) fn date<'e>(m: &mut Machine<'e>, nodes: &'e [Node]) -> Made<'e> {
    let moment_ms = whole(m, &nodes[0])?;
    let format = argument(m, &nodes[1])?;
    if jiff::Timestamp::from_millisecond(moment_ms).is_err() {
        return Err(Absent::Failed("no calendar has this moment"));
    }
    let start = m.made.len();
    let done = match format {
        Bytes::Borrowed(format) => write_date(moment_ms, format, &mut m.made),
        Bytes::Made(from, to) => {
            // It lies in the buffer that is written to. Computed formats are rare, so it is copied.
            let format = m.made[from..to].to_vec();
            write_date(moment_ms, &format, &mut m.made)
        }
    };
    if done {
        Ok(Got::Text(Bytes::Made(start, m.made.len())))
    } else {
        Err(Absent::Failed("the format is wrong"))
    }
}

fn write_date(moment_ms: i64, format: &[u8], out: &mut Vec<u8>) -> bool {
    let start = out.len();
    if write_common(moment_ms, format, out) {
        return true;
    }
    out.truncate(start);
    let Ok(moment) = jiff::Timestamp::from_millisecond(moment_ms) else { return false };
    BrokenDownTime::from(&moment.to_zoned(TimeZone::UTC)).format(format, out).is_ok()
}

/// Writes the fields that most formats are made of, several times faster than the library does; false, with some
/// of it written, if there is another one.
fn write_common(moment_ms: i64, format: &[u8], out: &mut Vec<u8>) -> bool {
    let days = moment_ms.div_euclid(DAY_MS);
    let second = moment_ms.rem_euclid(DAY_MS) / 1_000;
    let (year, month, day) = civil(days);
    if !(0..=9_999).contains(&year) {
        return false;
    }
    let mut rest = format;
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        if byte != b'%' {
            out.push(byte);
            continue;
        }
        let Some((&field, after)) = rest.split_first() else { return false };
        rest = after;
        match field {
            b'Y' => {
                push_two(year / 100, out);
                push_two(year % 100, out);
            }
            b'm' => push_two(month, out),
            b'd' => push_two(day, out),
            b'H' => push_two(second / 3_600, out),
            b'M' => push_two(second / 60 % 60, out),
            b'S' => push_two(second % 60, out),
            b'a' => out.extend_from_slice(WEEKDAYS[(days + 4).rem_euclid(7) as usize]),
            b'b' => out.extend_from_slice(MONTHS[(month - 1) as usize]),
            b'Z' => out.extend_from_slice(b"UTC"),
            b'%' => out.push(b'%'),
            _ => return false,
        }
    }
    true
}

fn push_two(number: i64, out: &mut Vec<u8>) {
    out.extend_from_slice(&[b'0' + (number / 10) as u8, b'0' + (number % 10) as u8]);
}

/// Year, month and day of a day counted from 1970-01-01. Years are counted from March, so that leap days come last,
/// in eras of 400 years, after which the calendar repeats itself.
fn civil(days: i64) -> (i64, i64, i64) {
    const ERA_DAYS: i64 = 146_097;
    let days = days + 719_468;
    let era = days.div_euclid(ERA_DAYS);
    let of_era = days.rem_euclid(ERA_DAYS);
    let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    (year_of_era + era * 400 + i64::from(month <= 2), month, day)
}

/// Why a strftime format is wrong, if it is.
pub(super) fn format_problem(format: &[u8]) -> Option<String> {
    let epoch = BrokenDownTime::from(&jiff::Timestamp::UNIX_EPOCH.to_zoned(TimeZone::UTC));
    let mut out = Vec::new();
    epoch.format(format, &mut out).err().map(|error| error.to_string())
}

pub(super) fn epoch_ms<'e>(m: &mut Machine<'e>, nodes: &'e [Node]) -> Made<'e> {
    const NO_DATE: Absent = Absent::Failed("the text is not a date in this format");
    let (text, format) = (argument(m, &nodes[0])?, argument(m, &nodes[1])?);
    let parsed = strtime::parse(m.bytes(&format), m.bytes(&text)).map_err(|_| NO_DATE)?;
    let moment = parsed.to_timestamp().or_else(|_| {
        let midnight = parsed.to_datetime().or_else(|_| parsed.to_date().map(|date| date.at(0, 0, 0, 0)));
        midnight.and_then(|midnight| midnight.to_zoned(TimeZone::UTC)).map(|zoned| zoned.timestamp())
    });
    moment.map(|moment| Got::Int(moment.as_millisecond())).map_err(|_| NO_DATE)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn by_library(moment_ms: i64, format: &str) -> String {
        let moment = jiff::Timestamp::from_millisecond(moment_ms).unwrap();
        strtime::format(format, &moment.to_zoned(TimeZone::UTC)).unwrap()
    }

    proptest! {
        #[test]
        fn the_fast_way_writes_what_the_library_writes(moment_ms in -62_000_000_000_000i64..250_000_000_000_000) {
            let format = "%a %b %d %H:%M:%S %Z %Y %m 100%%";
            let mut out = Vec::new();
            prop_assert!(write_common(moment_ms, format.as_bytes(), &mut out));
            prop_assert_eq!(String::from_utf8(out).unwrap(), by_library(moment_ms, format));
        }
    }

    #[test]
    fn other_fields_go_to_the_library() {
        let mut out = b"kept ".to_vec();
        assert!(write_date(1_795_219_200_000, b"%Y-%j %B", &mut out));
        assert_eq!(out, b"kept 2026-325 November");
        assert!(write_date(-99_999_999_999_999, b"%Y", &mut out));
        assert!(!write_date(0, b"%J", &mut Vec::new()));
        assert!(!write_date(0, b"%", &mut Vec::new()));
    }
}
