//! Dates as the clients of the airline write them.
//!
//! | written | by |
//! | --- | --- |
//! | `Sat Nov 21 00:00:00 UTC 2026` | the JMeter plan |
//! | `Sat Nov 21 2026 00:00:00 GMT+0000 (UTC)` | browsers |
//! | `Sat, 21 Nov 2026 00:00:00 GMT` | RFC 1123 |
//! | `2026-11-21`, `2026-11-21T00:00:00.000Z` | ISO 8601 |
//!
//! What counts is the calendar day as it is written: the person who chose it meant that day, wherever they sit.
//! Time of day and zone must be well-formed but do not change it; nor does a weekday that does not fit.

use jiff::civil::Date;

/// Longer texts are not dates.
const TEXT_BYTES_MAX: usize = 100;

/// The text is no date in any of the forms.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a date; write it like 2026-11-21 or like Sat Nov 21 00:00:00 UTC 2026")]
pub struct NotADate;

/// Reads a date in any of the forms; the day is counted from 1970-01-01.
///
/// ```
/// use tidemark_airline::dates::parse_day;
/// assert_eq!(parse_day("1970-01-02"), Ok(1));
/// assert_eq!(parse_day("Fri Jan 02 00:00:00 UTC 1970"), Ok(1));
/// assert!(parse_day("tomorrow").is_err());
/// ```
pub fn parse_day(text: &str) -> Result<i32, NotADate> {
    if text.len() > TEXT_BYTES_MAX || !text.is_ascii() {
        return Err(NotADate);
    }
    let text = text.trim();
    let date = if text.starts_with(|c: char| c.is_ascii_digit()) { iso(text) } else { worded(text) };
    date.map(days_from_epoch).ok_or(NotADate)
}

fn days_from_epoch(date: Date) -> i32 {
    const EPOCH: Date = jiff::civil::date(1970, 1, 1);
    // Dates span less than four million days either way.
    (date.duration_since(EPOCH).as_hours() / 24) as i32
}

/// `2026-11-21`, perhaps with a time and a zone.
fn iso(text: &str) -> Option<Date> {
    let (date, time) = text.split_at_checked(10)?;
    let (year, rest) = date.split_once('-')?;
    let (month, day) = rest.split_once('-')?;
    if !time.is_empty() {
        let time = time.strip_prefix(['T', 't', ' '])?;
        let zone_at = time.find(['Z', 'z', '+', '-']).unwrap_or(time.len());
        let (time, zone) = time.split_at(zone_at);
        let (time, fraction) = time.split_once('.').unwrap_or((time, "0"));
        let zone_is_right = match zone {
            "" | "Z" | "z" => true,
            offset => is_offset(offset),
        };
        if !is_time(time) || !is_number(fraction, 1, 9) || !zone_is_right {
            return None;
        }
    }
    civil(number(year, 4, 4)?, number(month, 2, 2)?, number(day, 2, 2)?)
}

/// The three forms that begin with a weekday.
fn worded(text: &str) -> Option<Date> {
    let (weekday, rest) = text.split_once(' ')?;
    let (weekday, comma) = weekday.strip_suffix(',').map_or((weekday, false), |word| (word, true));
    position(&["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"], weekday)?;
    let mut words = rest.split(' ').filter(|word| !word.is_empty());
    let (first, second, third) = (words.next()?, words.next()?, words.next()?);
    let date = if comma {
        // Sat, 21 Nov 2026 00:00:00 GMT
        let date = parts(third, second, first)?;
        (is_time(words.next()?) && is_zone(words.next()?)).then_some(date)?
    } else if third.contains(':') {
        // Sat Nov 21 00:00:00 UTC 2026
        let zone = words.next()?;
        let date = parts(words.next()?, first, second)?;
        (is_time(third) && is_zone(zone)).then_some(date)?
    } else {
        // Sat Nov 21 2026 00:00:00 GMT+0000 (UTC); the name in brackets may have several words
        let date = parts(third, first, second)?;
        let well_formed = match (words.next(), words.next()) {
            (None, None) => true,
            (Some(time), zone) => is_time(time) && zone.is_none_or(is_zone),
            (None, Some(_)) => false,
        };
        let name: Vec<&str> = words.by_ref().collect();
        let bracketed = match (name.first(), name.last()) {
            (Some(first), Some(last)) => first.starts_with('(') && last.ends_with(')'),
            _ => true,
        };
        return (well_formed && bracketed).then_some(date);
    };
    words.next().is_none().then_some(date)
}

fn parts(year: &str, month: &str, day: &str) -> Option<Date> {
    const MONTHS: [&str; 12] =
        ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    civil(number(year, 4, 4)?, position(&MONTHS, month)? as i16 + 1, number(day, 1, 2)?)
}

fn civil(year: i16, month: i16, day: i16) -> Option<Date> {
    Date::new(year, i8::try_from(month).ok()?, i8::try_from(day).ok()?).ok()
}

fn position(words: &[&str], word: &str) -> Option<usize> {
    words.iter().position(|known| known.eq_ignore_ascii_case(word))
}

fn is_number(text: &str, least: usize, most: usize) -> bool {
    (least..=most).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit())
}

fn number(text: &str, least: usize, most: usize) -> Option<i16> {
    if is_number(text, least, most) { text.parse().ok() } else { None }
}

/// `00:00` or `00:00:00`.
fn is_time(text: &str) -> bool {
    let mut fields = text.split(':').map(|field| number(field, 2, 2));
    let within = |field: Option<Option<i16>>, most: i16| field.flatten().is_some_and(|value| value <= most);
    let (hour, minute) = (within(fields.next(), 23), within(fields.next(), 59));
    let second = match fields.next() {
        None => true,
        second => within(second, 60), // 60 is a leap second
    };
    hour && minute && second && fields.next().is_none()
}

/// `UTC`, `CEST`, `GMT+0100`, `+01:00`: letters, an offset, or both.
fn is_zone(text: &str) -> bool {
    let offset_at = text.find(['+', '-']).unwrap_or(text.len());
    let (name, offset) = text.split_at(offset_at);
    let named = name.len() <= 5 && name.bytes().all(|byte| byte.is_ascii_alphabetic());
    named && !text.is_empty() && (offset.is_empty() || is_offset(offset))
}

/// `+0100`, `-01:00`.
fn is_offset(text: &str) -> bool {
    text.strip_prefix(['+', '-']).is_some_and(|digits| {
        let (hours, minutes) = match digits.split_once(':') {
            Some(split) => split,
            None => match digits.split_at_checked(2) {
                Some(split) => split,
                None => return false,
            },
        };
        number(hours, 2, 2).is_some_and(|h| h <= 23) && number(minutes, 2, 2).is_some_and(|m| m <= 59)
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// 2026-11-21
    const DAY: i32 = 20_778;

    #[test]
    fn all_forms_mean_the_day_that_is_written() {
        for text in [
            "Sat Nov 21 00:00:00 UTC 2026",
            "Sat Nov 21 23:59:59 CEST 2026",
            "Sat Nov 21 00:00:00 GMT+01:00 2026",
            "Sat Nov 21 2026 00:00:00 GMT+0000 (UTC)",
            "Sat Nov 21 2026 00:00:00 GMT+0100 (Central European Standard Time)",
            "Sat Nov 21 2026 00:00:00 GMT-0800",
            "Sat Nov 21 2026",
            "Tue Nov 21 2026 00:00:00 GMT+0000 (UTC)", // the wrong weekday
            "Sat, 21 Nov 2026 00:00:00 GMT",
            "sat, 21 nov 2026 00:00:00 +0000",
            "2026-11-21",
            " 2026-11-21 ",
            "2026-11-21T00:00:00.000Z",
            "2026-11-21T23:30:00-08:00",
            "2026-11-21 10:00",
        ] {
            assert_eq!(parse_day(text), Ok(DAY), "{text}");
        }
    }

    #[test]
    fn the_rest_is_refused() {
        for text in [
            "",
            " ",
            "tomorrow",
            "null",
            "21.11.2026",
            "11/21/2026",
            "2026",
            "2026-11",
            "2026-13-01",
            "2026-02-29",
            "2026-11-21T",
            "2026-11-21T25:00:00Z",
            "2026-11-21T00:00:00+99:00",
            "2026-11-21x",
            "2026-1-2-3",
            "+026-11-21",
            "Sat",
            "Sat Nov 21",
            "Sat Nov 21 00:00:00 2026",
            "Sat Foo 21 00:00:00 UTC 2026",
            "Xyz Nov 21 00:00:00 UTC 2026",
            "Sat Nov 31 00:00:00 UTC 2026",
            "Sat Nov 21 24:00:00 UTC 2026",
            "Sat Nov 21 00:00:00 UTC 2026 more",
            "Sat, 21 Nov 2026 00:00:00 GMT more",
            "Sat, 21 Nov 2026",
            "Sat Nov 21 2026 00:00:00 GMT+0000 UTC",
            "Sat Nov 21 2026 00:00:00 <b>",
            "Sät Nov 21 00:00:00 UTC 2026",
            "99999999999999999999",
            "2026-11-2１",
        ] {
            assert_eq!(parse_day(text), Err(NotADate), "{text}");
        }
        assert_eq!(parse_day(&"2026-11-21 ".repeat(1000)), Err(NotADate));
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in ".{0,120}") {
            let _ = parse_day(&text);
        }

        #[test]
        fn nearly_dates_do_not_make_it_panic(text in "(Sat,? ?)?[0-9:TZ+ ()NovGMT-]{0,45}") {
            let _ = parse_day(&text);
        }

        #[test]
        fn every_day_reads_back_in_every_form(day in 0i32..40_000) {
            let date = jiff::civil::date(1970, 1, 1) + jiff::Span::new().days(day);
            for form in ["%Y-%m-%d", "%a %b %d 00:00:00 UTC %Y", "%a %b %d %Y 00:00:00 GMT+0000 (UTC)",
                "%a, %d %b %Y 00:00:00 GMT"] {
                prop_assert_eq!(parse_day(&date.strftime(form).to_string()), Ok(day));
            }
        }
    }
}
