//! Minutes by the clock, UTC.

use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use jiff::{Timestamp, Unit};

const MINUTE_S: i64 = 60;
const DAY_MINUTES: i64 = 24 * 60;

/// Year, month from 1, day, hour and minute of a minute since 1970; the first that the calendar has where it is beyond.
pub(super) fn fields(minute: i64) -> [i64; 5] {
    let time = Timestamp::from_second(minute.saturating_mul(MINUTE_S)).unwrap_or(Timestamp::MIN);
    let time = time.to_zoned(TimeZone::UTC);
    [time.year().into(), time.month().into(), time.day().into(), time.hour().into(), time.minute().into()]
}

/// `2026-01-31 14:05`
pub(super) fn minute(minute: i64) -> String {
    let [year, month, day, hour, minute] = fields(minute);
    format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}")
}

/// The minutes since 1970 that `2026-01-31` or `2026-01-31 14:05` is: from the first to before the second.
pub(super) fn range(text: &str) -> Option<(i64, i64)> {
    let minute = |time: DateTime| {
        let time = time.to_zoned(TimeZone::UTC).ok()?;
        Some(time.timestamp().as_second().div_euclid(MINUTE_S))
    };
    if let Ok(time) = DateTime::strptime("%Y-%m-%d %H:%M", text) {
        let from = minute(time)?;
        return Some((from, from + 1));
    }
    let day = jiff::civil::Date::strptime("%Y-%m-%d", text).ok()?;
    let from = minute(day.at(0, 0, 0, 0).round(Unit::Minute).ok()?)?;
    Some((from, from + DAY_MINUTES))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_shown_is_read() {
        for of in [0, 23_190_753, -5, 29_500_000] {
            assert_eq!(range(&minute(of)), Some((of, of + 1)));
        }
        assert_eq!(range("1970-01-02"), Some((1440, 2880)));
        for text in ["zzz", "2026-02-30", "2026-01-31T14:05", ""] {
            assert_eq!(range(text), None, "{text}");
        }
    }
}
