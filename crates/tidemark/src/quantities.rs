//! Times, rates and counts as flags have them: the same for every verb. A number alone is in seconds, or for each
//! second.

use std::time::Duration;

use tidemark_record::GrpcCode;
use tidemark_scenario::diagnostic::did_you_mean;
use tidemark_scenario::units;

/// Requests or sessions each second: always the same, or evenly from one rate to another.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RateRange {
    /// At the begin.
    pub from: f64,
    /// At the end.
    pub to: f64,
}

impl RateRange {
    /// The rate, if it does not change.
    pub fn constant(self) -> Option<f64> {
        (self.from == self.to).then_some(self.from)
    }
}

/// A time.
pub fn time(text: &str) -> Result<Duration, String> {
    if text.starts_with(['{', '[', '@']) || text.contains('=') {
        return Err("this is a time; a body is given with -b".into());
    }
    let text = if text.parse::<f64>().is_ok() { &format!("{text}s") } else { text };
    units::parse_duration(text).map_err(|error| error.to_string())
}

/// How long a load lasts.
pub fn length(text: &str) -> Result<Duration, String> {
    time(text).and_then(|time| match time.is_zero() {
        true => Err("the load must last longer than 0".into()),
        false => Ok(time),
    })
}

/// The largest seed: JSON holds no larger whole number exactly.
const SEED_MAX: u64 = (1 << 53) - 1;

/// What random numbers begin with.
pub fn seed(text: &str) -> Result<u64, String> {
    let seed = text.parse().ok().filter(|seed| *seed <= SEED_MAX);
    seed.ok_or_else(|| format!("--seed takes a whole number, 0 to {SEED_MAX}"))
}

/// The longest time for an answer.
pub fn timeout(text: &str) -> Result<Duration, String> {
    match text.contains('/') {
        true => Err("this is the time-out; a content type is given with --content-type".into()),
        false => time(text).and_then(|time| {
            if time.is_zero() { Err("the time-out must be above 0".into()) } else { Ok(time) }
        }),
    }
}

/// A rate, `5k`, or two, `100:5k`.
pub fn rate(text: &str) -> Result<RateRange, String> {
    let (from, to) = text.split_once(':').unwrap_or((text, text));
    let range = RateRange { from: per_second(from)?, to: per_second(to)? };
    if range.from.max(range.to) > 0.0 { Ok(range) } else { Err("the rate must be above 0".into()) }
}

fn per_second(text: &str) -> Result<f64, String> {
    let is_whole = text.contains('/');
    let rate = if is_whole { text } else { &format!("{text}/s") };
    // of what nobody typed nothing is said
    units::parse_rate(rate).map_err(|error| match is_whole {
        true => error.to_string(),
        false => {
            error.to_string().replacen(&format!("\"{}\"", rate.trim()), &format!("\"{}\"", text.trim()), 1)
        }
    })
}

/// A whole number of at least 1: `100`, `20k`.
pub fn count(text: &str) -> Result<u64, String> {
    match units::parse_count(text).map_err(|error| error.to_string())? {
        0 => Err("at least 1".into()),
        count => Ok(count),
    }
}

/// Most connections, or users.
const USERS_MAX: u32 = tidemark_scenario::plan::USERS_MAX as u32;

/// A number of connections, or of users.
pub fn users(text: &str) -> Result<u32, String> {
    let few = u32::try_from(count(text)?).ok().filter(|count| *count <= USERS_MAX);
    few.ok_or_else(|| format!("at most {USERS_MAX}"))
}

/// A status, `200`, all of a kind, `2xx`, or from one to another, `200-204`, or one of gRPC by its name or, as grpcurl shows
/// it, by its number; as scenarios write them.
pub fn statuses(text: &str) -> Result<String, String> {
    let text = text.trim();
    let is_status = |text: &str| text.trim().parse::<u16>().is_ok_and(|status| (100..=599).contains(&status));
    let is_kind = matches!(text, "1xx" | "2xx" | "3xx" | "4xx" | "5xx");
    let is_range = text
        .split_once('-')
        .is_some_and(|(low, high)| is_status(low) && is_status(high) && low.trim() <= high.trim());
    let number = || GrpcCode::ALL.get(text.parse::<usize>().ok()?).copied();
    match GrpcCode::from_name(&text.to_ascii_uppercase()).or_else(number) {
        Some(code) => Ok(code.name().to_owned()),
        None if is_kind || is_range || is_status(text) => Ok(text.to_owned()),
        None => {
            let hint = did_you_mean(text, GrpcCode::NAMES);
            Err(format!("write a status like 200, 2xx or 200-204, or of gRPC one like NOT_FOUND{hint}"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statuses_are_as_scenarios_write_them() {
        for text in ["200", " 2xx", "200-204"] {
            assert_eq!(statuses(text).unwrap(), text.trim());
        }
        for text in ["", "99", "600", "6xx", "204-200", "okay"] {
            assert!(statuses(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_length_of_nothing_and_a_seed_that_is_no_number_are_refused_in_words() {
        assert_eq!(length("0").unwrap_err(), "the load must last longer than 0");
        assert_eq!(length("1").unwrap(), Duration::from_secs(1));
        assert_eq!(seed("7").unwrap(), 7);
        for text in ["x", "-1", "9007199254740992"] {
            assert!(seed(text).unwrap_err().starts_with("--seed takes a whole number"), "{text}");
        }
    }

    #[test]
    fn a_number_alone_is_for_each_second() {
        assert_eq!(time("30").unwrap(), Duration::from_secs(30));
        assert_eq!(time("1m30s").unwrap(), Duration::from_secs(90));
        assert_eq!(rate("5k").unwrap().constant(), Some(5_000.0));
        assert_eq!(rate("90/min").unwrap().constant(), Some(1.5));
        assert_eq!(users("2k").unwrap(), 2_000);
    }

    #[test]
    fn two_rates_are_a_ramp() {
        assert_eq!(rate("100:5k").unwrap(), RateRange { from: 100.0, to: 5_000.0 });
        assert_eq!(rate("1k/s:60/min").unwrap(), RateRange { from: 1_000.0, to: 1.0 });
        assert_eq!(rate("0:10").unwrap(), RateRange { from: 0.0, to: 10.0 });
        assert_eq!(rate("7:7").unwrap().constant(), Some(7.0));
    }

    #[test]
    fn what_is_none_is_told() {
        assert!(rate("0").unwrap_err().contains("above 0") && rate("0:0").unwrap_err().contains("above 0"));
        assert!(rate("100:").unwrap_err().contains("20k/s") && rate("1:2:3").is_err());
        assert!(rate("x").unwrap_err().starts_with("\"x\" is not a rate"), "{:?}", rate("x"));
        assert!(rate("x/s").unwrap_err().starts_with("\"x/s\" is not a rate"));
        assert!(users("0").unwrap_err().contains("at least 1"));
        assert!(users("2M").unwrap_err().contains("at most 1000000"));
        assert!(timeout("0").is_err() && timeout("text/html").unwrap_err().contains("--content-type"));
    }
}
