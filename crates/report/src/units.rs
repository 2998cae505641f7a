//! Numbers as people read them: three significant digits, the unit that fits.

/// A number with three significant digits; whole from 100 on, with separators from 1,000 on.
pub fn three_digits(value: f64) -> String {
    // Each limit is where rounding with the finer precision would show a fourth digit.
    match value.abs() {
        v if v == 0.0 || !v.is_finite() => "0".into(),
        v if v < 0.9995 => {
            let decimals = (2.0 - v.log10().floor()).clamp(0.0, 6.0) as usize;
            trim_zeros(&format!("{value:.decimals$}")).into()
        }
        v if v < 9.995 => format!("{value:.2}"),
        v if v < 99.95 => format!("{value:.1}"),
        _ => count(value.abs().round() as u64),
    }
}

pub(crate) fn trim_zeros(number: &str) -> &str {
    if number.contains('.') { number.trim_end_matches('0').trim_end_matches('.') } else { number }
}

/// A duration from microseconds: `740µs`, `1.23ms`, `12.3s`.
pub fn duration(us: f64) -> String {
    match us {
        v if v < 999.5 && (v >= 99.5 || v.fract() == 0.0) => format!("{v:.0}µs"),
        v if v < 999.5 => format!("{}µs", three_digits(v)),
        v if v < 999_500.0 => format!("{}ms", three_digits(v / 1e3)),
        v => format!("{}s", three_digits(v / 1e6)),
    }
}

/// A time in microseconds; a dash where there is none, as so few requests, or so many failed ones, have no such percentile.
pub(crate) fn time(us: Option<u64>) -> String {
    mean(us.map(|us| us as f64))
}

/// The same of a mean.
pub(crate) fn mean(us: Option<f64>) -> String {
    us.map_or_else(|| "-".into(), duration)
}

/// A length as it was asked for: `60s`, `2.5s`.
pub(crate) fn seconds(s: f64) -> String {
    format!("{}s", trim_zeros(&three_digits(s)))
}

/// A long time as it was asked for: `45s`, `3m`, `1m30s`, `2h`.
pub(crate) fn budget(s: f64) -> String {
    let whole = s.max(0.0).round() as u64;
    match (whole / 3_600, whole % 3_600 / 60, whole % 60) {
        (0, 0, _) => seconds(s),
        (0, minutes, 0) => format!("{minutes}m"),
        (0, minutes, s) => format!("{minutes}m{s}s"),
        (hours, 0, _) => format!("{hours}h"),
        (hours, minutes, _) => format!("{hours}h{minutes}m"),
    }
}

/// A count with separators: `1,234,567`.
pub fn count(value: u64) -> String {
    let digits = value.to_string();
    let groups: Vec<&str> = digits
        .as_bytes()
        .rchunks(3)
        .rev()
        .map(|group| std::str::from_utf8(group).expect("digits are ASCII"))
        .collect();
    groups.join(",")
}

/// A count of something: `1 run`, `1,200 runs`.
pub(crate) fn plural(value: u64, what: &str) -> String {
    format!("{} {what}{}", count(value), if value == 1 { "" } else { "s" })
}

/// How many of some are more than there is room for, if any are.
pub(crate) fn more_than(all: usize, most: usize) -> Option<u64> {
    all.checked_sub(most).filter(|more| *more > 0).map(|more| more as u64)
}

/// A number in little room: `999`, `12.3k`, `31.1M`.
pub fn compact(value: f64) -> String {
    match value.abs() {
        v if v < 999.5 && value.fract() == 0.0 => format!("{value:.0}"),
        v if v < 999.5 => three_digits(value),
        v if v < 999_500.0 => three_digits(value / 1e3) + "k",
        v if v < 999_500_000.0 => three_digits(value / 1e6) + "M",
        _ => three_digits(value / 1e9) + "G",
    }
}

/// A share as per cent: `12.3%`.
pub fn percent(share: f64) -> String {
    three_digits(share * 100.0) + "%"
}

/// Bytes: `212 MiB`.
pub fn bytes(bytes: u64) -> String {
    const UNITS: [&str; 4] = ["KiB", "MiB", "GiB", "TiB"];
    let mut value = bytes as f64;
    if value < 1023.5 {
        return format!("{bytes} B");
    }
    let mut unit = "B";
    for next in UNITS {
        if value < 1023.5 {
            break;
        }
        value /= 1024.0;
        unit = next;
    }
    format!("{} {unit}", trim_zeros(&three_digits(value)))
}

/// To three decimals: a page needs no more, and grows with every digit.
pub(crate) fn round(value: f64) -> f64 {
    (value * 1e3).round() / 1e3
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_is_shown_as_it_was_asked_for() {
        let all = [45.0, 60.0, 180.0, 90.0, 7_200.0, 5_400.0].map(budget);
        assert_eq!(all, ["45s", "1m", "3m", "1m30s", "2h", "1h30m"]);
    }

    #[test]
    fn durations_have_three_digits_and_never_four() {
        let of = |us: f64| duration(us);
        assert_eq!(
            [of(0.0), of(7.0), of(12.34), of(740.0), of(999.4), of(999.6)],
            ["0µs", "7µs", "12.3µs", "740µs", "999µs", "1.00ms"]
        );
        assert_eq!(
            [of(1_234.0), of(9_996.0), of(99_960.0), of(999_400.0), of(999_600.0)],
            ["1.23ms", "10.0ms", "100ms", "999ms", "1.00s"]
        );
        assert_eq!([of(12_345_678.0), of(3.6e9)], ["12.3s", "3,600s"]);
    }

    #[test]
    fn numbers_fit_their_room() {
        assert_eq!(
            [count(0), count(999), count(1_000), count(31_145_914)],
            ["0", "999", "1,000", "31,145,914"]
        );
        assert_eq!([compact(999.0), compact(1_000.0), compact(999_600.0)], ["999", "1.00k", "1.00M"]);
        assert_eq!(
            [percent(0.1234), percent(1.0), percent(0.0), percent(0.000_001)],
            ["12.3%", "100%", "0%", "0.0001%"]
        );
        assert_eq!([bytes(1023), bytes(1024), bytes(222_000_000)], ["1023 B", "1 KiB", "212 MiB"]);
        assert_eq!(three_digits(0.05), "0.05");
        assert_eq!(three_digits(f64::NAN), "0");
    }
}
