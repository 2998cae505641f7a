//! Rates, times, sizes and shares as people write them: `20k/s`, `10s`, `64KiB`, `25%`.
//!
//! The scenario language and the command line read and show them here, so that they are the same everywhere.
//!
//! ```
//! use tidemark_scenario::units::{Rate, parse_duration, parse_rate};
//!
//! assert_eq!(parse_rate("20k/s")?, 20_000.0);
//! assert_eq!(Rate(20_000.0).to_string(), "20k/s");
//! assert_eq!(parse_duration("1m30s")?.as_secs(), 90);
//! # Ok::<(), tidemark_scenario::units::UnitError>(())
//! ```

use std::fmt;
use std::time::Duration;

use tidemark_record::bill::Amount;

/// Longest time that is accepted: a year, so that no sum of times overflows.
const TIME_MAX: Duration = Duration::from_secs(366 * 86_400);

/// Why a text is not a quantity.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("\"{text}\" is not a {quantity}{reason}; write it like {example}")]
pub struct UnitError {
    text: String,
    quantity: &'static str,
    /// Begins with a colon and a space, or is empty.
    reason: String,
    example: &'static str,
}

const RATE: (&str, &str) = ("rate", "500/s, 20k/s or 90/min");
const TIME: (&str, &str) = ("time", "250ms, 10s, 1m30s or 2h");
const SIZE: (&str, &str) = ("size", "512B, 64KiB or 16MiB");
const BANDWIDTH: (&str, &str) = ("bandwidth", "1MiB/s or 500KB/s");
const SHARE: (&str, &str) = ("share", "25% or 0.01%");
const NUMBER: (&str, &str) = ("number", "20, 0.5 or 20k");
const COUNT: (&str, &str) = ("whole number", "100 or 20k");

fn error(text: &str, (quantity, example): (&'static str, &'static str), reason: &str) -> UnitError {
    const SHOWN_MAX: usize = 60;
    let shown: String = text.chars().take(SHOWN_MAX).collect();
    let reason = if reason.is_empty() { String::new() } else { format!(": {reason}") };
    UnitError { text: shown, quantity, reason, example }
}

/// Splits into a number (at least one digit, at most one point, `_` between digits allowed) and what follows.
fn number_and_unit(text: &str) -> Option<(f64, &str)> {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.' && c != '_').unwrap_or(text.len());
    let (digits, unit) = text.split_at(end);
    let plain: String = digits.chars().filter(|c| *c != '_').collect();
    let starts_well = plain.starts_with(|c: char| c.is_ascii_digit());
    let value = plain.parse::<f64>().ok().filter(|value| starts_well && value.is_finite())?;
    Some((value, unit.trim_start()))
}

fn decimal_factor(suffix: &str) -> Option<f64> {
    Some(match suffix {
        "" => 1.0,
        "k" | "K" => 1e3,
        "M" => 1e6,
        "G" => 1e9,
        _ => return None,
    })
}

/// Reads a number, not below 0, perhaps with a factor: `20`, `0.5`, `20k`.
///
/// # Errors
/// Where the text is none, with an example of one.
pub fn parse_number(text: &str) -> Result<f64, UnitError> {
    let text = text.trim();
    let number = number_and_unit(text).and_then(|(value, suffix)| Some(value * decimal_factor(suffix)?));
    number.ok_or_else(|| error(text, NUMBER, ""))
}

/// Reads a rate: how many each second.
///
/// # Errors
/// Where the text is none, with an example of one.
pub fn parse_rate(text: &str) -> Result<f64, UnitError> {
    let text = text.trim();
    let Some((count, period)) = text.split_once('/') else {
        let reason = if number_and_unit(text).is_some() { "the period is missing" } else { "" };
        return Err(error(text, RATE, reason));
    };
    let (value, suffix) = number_and_unit(count.trim()).ok_or_else(|| error(text, RATE, ""))?;
    let factor =
        decimal_factor(suffix).ok_or_else(|| error(text, RATE, &format!("unknown factor \"{suffix}\"")))?;
    let seconds = match period.trim() {
        "s" | "sec" | "second" => 1.0,
        "m" | "min" | "minute" => 60.0,
        "h" | "hour" => 3_600.0,
        "d" | "day" => 86_400.0,
        other => return Err(error(text, RATE, &format!("unknown period \"{other}\""))),
    };
    let per_s = value * factor / seconds;
    if per_s > RATE_MAX_PER_S {
        return Err(error(text, RATE, "it is more than 1000M/s, which no machine reaches"));
    }
    Ok(per_s)
}

/// Highest rate that is believed.
const RATE_MAX_PER_S: f64 = 1e9;

/// Reads a time, perhaps of several parts: `1m30s`.
///
/// # Errors
/// Where the text is none or longer than a year, with an example of one.
pub fn parse_duration(text: &str) -> Result<Duration, UnitError> {
    let text = text.trim();
    let mut rest = text;
    let mut total_s = 0.0;
    while !rest.is_empty() {
        let (value, unit) = number_and_unit(rest).ok_or_else(|| error(text, TIME, ""))?;
        let end = unit.find(|c: char| c.is_ascii_digit() || c == ' ').unwrap_or(unit.len());
        let (name, after) = unit.split_at(end);
        total_s += value
            * match name {
                "ns" => 1e-9,
                "us" | "µs" | "μs" => 1e-6,
                "ms" => 1e-3,
                "s" | "sec" => 1.0,
                "m" | "min" => 60.0,
                "h" => 3_600.0,
                "d" => 86_400.0,
                "" => return Err(error(text, TIME, "the unit is missing")),
                other => return Err(error(text, TIME, &format!("unknown unit \"{other}\""))),
            };
        rest = after.trim_start();
    }
    if text.is_empty() {
        return Err(error(text, TIME, ""));
    }
    match Duration::try_from_secs_f64(total_s) {
        Ok(time) if time <= TIME_MAX => Ok(time),
        _ => Err(error(text, TIME, "it is longer than a year")),
    }
}

/// Reads a bandwidth in bytes each second: `1MiB/s`.
///
/// # Errors
/// Where the text is none, with an example of one.
pub fn parse_bandwidth(text: &str) -> Result<u64, UnitError> {
    let size = text.trim().strip_suffix("/s").ok_or_else(|| error(text, BANDWIDTH, "the /s is missing"))?;
    match parse_size(size) {
        Ok(0) => Err(error(text, BANDWIDTH, "nothing would get through; that is a cut")),
        Ok(bytes) => Ok(bytes),
        Err(_) => Err(error(text, BANDWIDTH, "")),
    }
}

/// Reads a size in bytes.
///
/// # Errors
/// Where the text is none, with an example of one.
pub fn parse_size(text: &str) -> Result<u64, UnitError> {
    let text = text.trim();
    let (value, unit) = number_and_unit(text).ok_or_else(|| error(text, SIZE, ""))?;
    let factor: f64 = match unit {
        "B" => 1.0,
        "kB" | "KB" => 1e3,
        "MB" => 1e6,
        "GB" => 1e9,
        "KiB" => 1024.0,
        "MiB" => 1024.0 * 1024.0,
        "GiB" => 1024.0 * 1024.0 * 1024.0,
        "" => return Err(error(text, SIZE, "the unit is missing")),
        other => return Err(error(text, SIZE, &format!("unknown unit \"{other}\""))),
    };
    let bytes = value * factor;
    if bytes > 1e15 { Err(error(text, SIZE, "it is too large")) } else { Ok(bytes as u64) }
}

/// Reads a share, from `0%` to `100%`, as 0 to 1.
///
/// # Errors
/// Where the text is none, with an example of one.
pub fn parse_share(text: &str) -> Result<f64, UnitError> {
    let text = text.trim();
    let Some(percent) = text.strip_suffix('%') else {
        let reason = if number_and_unit(text).is_some() { "the % is missing" } else { "" };
        return Err(error(text, SHARE, reason));
    };
    match number_and_unit(percent.trim_end()) {
        Some((value, "")) if value <= 100.0 => Ok(value / 100.0),
        Some((_, "")) => Err(error(text, SHARE, "it is above 100%")),
        _ => Err(error(text, SHARE, "")),
    }
}

/// Reads a whole number: `100`, `10_000`, `20k`.
///
/// # Errors
/// Where the text is none, with an example of one.
pub fn parse_count(text: &str) -> Result<u64, UnitError> {
    let text = text.trim();
    let is_negative = || text.strip_prefix('-').and_then(number_and_unit).is_some();
    let none = || error(text, COUNT, if is_negative() { "it is below 0" } else { "" });
    let (value, suffix) = number_and_unit(text).ok_or_else(none)?;
    let factor = decimal_factor(suffix)
        .ok_or_else(|| error(text, COUNT, &format!("unexpected \"{suffix}\" behind it")))?;
    let count = value * factor;
    if (count - count.round()).abs() > 1e-6 {
        return Err(error(text, COUNT, "it is not whole"));
    }
    if count >= COUNT_END { Err(error(text, COUNT, "it is too large")) } else { Ok(count.round() as u64) }
}

/// Largest number with decimals.
const DECIMAL_MAX: Amount = Amount::whole(1_000_000);

/// Reads an exact number like `0.0416`, at most a million.
///
/// # Errors
/// Where the text is none, with an example of one.
pub fn parse_decimal(text: &str) -> Result<Amount, String> {
    let amount: Amount = text.trim().parse()?;
    if amount > DECIMAL_MAX { Err(format!("{amount} is larger than {DECIMAL_MAX}")) } else { Ok(amount) }
}

/// Beyond all whole numbers that are read: the first of which not every digit would be kept.
const COUNT_END: f64 = 9_007_199_254_740_992.0;

/// A rate, shown as it is written.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rate(pub f64);

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (value, suffix) = match self.0 {
            rate if rate >= 1e6 => (rate / 1e6, "M"),
            rate if rate >= 1e4 => (rate / 1e3, "k"),
            rate => (rate, ""),
        };
        write!(f, "{}{suffix}/s", Short(value))
    }
}

/// A time, shown as it is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Time(pub Duration);

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.0.as_secs_f64();
        let whole = self.0.as_secs();
        match seconds {
            0.0 => write!(f, "0s"),
            s if s < 1e-3 => write!(f, "{}us", Short(s * 1e6)),
            s if s < 1.0 => write!(f, "{}ms", Short(s * 1e3)),
            s if s < 60.0 => write!(f, "{}s", Short(s)),
            _ if whole < 3_600 && whole.is_multiple_of(60) => write!(f, "{}m", whole / 60),
            _ if whole < 3_600 => write!(f, "{}m{}s", whole / 60, whole % 60),
            _ if whole % 3_600 < 60 => write!(f, "{}h", whole / 3_600),
            _ => write!(f, "{}h{}m", whole / 3_600, whole % 3_600 / 60),
        }
    }
}

/// A size in bytes, shown as it is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Size(pub u64);

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const STEP: f64 = 1024.0;
        let bytes = self.0 as f64;
        match bytes {
            b if b < STEP => write!(f, "{b}B"),
            b if b < STEP * STEP => write!(f, "{}KiB", Short(b / STEP)),
            b if b < STEP * STEP * STEP => write!(f, "{}MiB", Short(b / STEP / STEP)),
            b => write!(f, "{}GiB", Short(b / STEP / STEP / STEP)),
        }
    }
}

/// A share of 1, shown in percent.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Share(pub f64);

impl fmt::Display for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let percent = self.0 * 100.0;
        if percent != 0.0 && percent.abs() < 0.01 {
            return write!(f, "{}%", (percent * 1e7).round() / 1e7);
        }
        write!(f, "{}%", Short(percent))
    }
}

/// A number with up to three digits behind the point, without zeros at its end.
struct Short(f64);

impl fmt::Display for Short {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", (self.0 * 1e3).round() / 1e3)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_and_shown_again() {
        for text in ["500/s", "20k/s", "1.5M/s", "0.5/s"] {
            assert_eq!(Rate(parse_rate(text).unwrap()).to_string(), text);
        }
        for text in ["0s", "5us", "250ms", "10s", "1.5s", "1m30s", "2m", "1h", "2h5m"] {
            assert_eq!(Time(parse_duration(text).unwrap()).to_string(), text);
        }
        for text in ["512B", "64KiB", "16MiB", "1.5GiB"] {
            assert_eq!(Size(parse_size(text).unwrap()).to_string(), text);
        }
        for text in ["25%", "0.01%", "0.0025%", "100%", "0%"] {
            assert_eq!(Share(parse_share(text).unwrap()).to_string(), text);
        }
    }

    #[test]
    fn other_spellings_are_read() {
        assert_eq!(parse_rate("90 / min").unwrap(), 1.5);
        assert_eq!(parse_duration("1m 30s").unwrap(), Duration::from_secs(90));
        assert_eq!(parse_size("2kB").unwrap(), 2_000);
        assert_eq!(parse_count("10_000").unwrap(), 10_000);
        assert_eq!(parse_count("1.5k").unwrap(), 1_500);
        assert_eq!(parse_count("9007199254740991").unwrap(), (1 << 53) - 1);
        assert!(parse_count("9007199254740992").unwrap_err().to_string().contains("too large"));
    }

    #[test]
    fn mistakes_name_the_text_the_reason_and_an_example() {
        let message = |result: Result<f64, UnitError>| result.unwrap_err().to_string();
        assert_eq!(
            message(parse_rate("20k")),
            "\"20k\" is not a rate: the period is missing; write it like 500/s, 20k/s or 90/min"
        );
        assert_eq!(
            message(parse_rate("5x/s")),
            "\"5x/s\" is not a rate: unknown factor \"x\"; write it like 500/s, 20k/s or 90/min"
        );
        let time = parse_duration("5 parsecs").unwrap_err().to_string();
        assert!(time.contains("unknown unit \"parsecs\""), "{time}");
        assert!(parse_duration("10").unwrap_err().to_string().contains("the unit is missing"));
        assert!(parse_duration("").is_err());
        assert!(parse_duration("400d").unwrap_err().to_string().contains("longer than a year"));
        assert!(parse_share("101%").unwrap_err().to_string().contains("above 100%"));
        assert!(parse_share("0.5").unwrap_err().to_string().contains("the % is missing"));
        assert!(parse_size("10").is_err() && parse_size("-1B").is_err());
        assert!(parse_count("1.5").unwrap_err().to_string().contains("not whole"));
        assert!(parse_count("5 apples").unwrap_err().to_string().contains("unexpected \"apples\""));
    }
}
