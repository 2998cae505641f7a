//! Reading what tools print, and writing figures.

/// Microseconds of `1.03ms`, `250.00us`, `1.01s`, `2.50m`.
pub fn time_us(text: &str) -> Option<f64> {
    let text = text.trim();
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let number: f64 = text[..digits].parse().ok()?;
    let unit = match text[digits..].trim_end_matches(',') {
        "us" | "µs" => 1.0,
        "ms" => 1e3,
        "s" | "" => 1e6,
        "m" => 60e6,
        "h" => 3_600e6,
        _ => return None,
    };
    Some(number * unit)
}

/// The number behind a word at the begin of a line: 12.5 of `Requests/sec:   12.5`.
pub fn number_behind(text: &str, word: &str) -> Option<f64> {
    let line = text.lines().find_map(|line| line.trim().strip_prefix(word))?;
    let first = line.split_whitespace().next()?;
    first.trim_end_matches([',', '%', ')']).parse().ok()
}

/// A time with three digits: `950 µs`, `12.3 ms`, `1.02 s`.
pub fn time(us: Option<f64>) -> String {
    match us {
        None => "–".to_owned(),
        Some(us) if us < 999.5 => format!("{} µs", three(us)),
        Some(us) if us < 999_500.0 => format!("{} ms", three(us / 1e3)),
        Some(us) => format!("{} s", three(us / 1e6)),
    }
}

/// Three digits of a number.
pub fn three(number: f64) -> String {
    let places = if number >= 99.95 {
        0
    } else if number >= 9.995 {
        1
    } else {
        2
    };
    format!("{number:.places$}")
}

/// A number with its thousands set apart.
pub fn thousands(number: f64) -> String {
    // the sum of no numbers is -0
    let digits = format!("{:.0}", number + 0.0);
    let mut out = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index) % 3 == 0 {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// The middle one; the mean of the middle two where there are two.
pub fn median(numbers: &[f64]) -> Option<f64> {
    let mut sorted = numbers.to_vec();
    sorted.sort_by(f64::total_cmp);
    match sorted.len() {
        0 => None,
        n if n % 2 == 1 => Some(sorted[n / 2]),
        n => Some((sorted[n / 2 - 1] + sorted[n / 2]) / 2.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read() {
        for (text, us) in
            [("1.03ms", 1_030.0), ("250.00us", 250.0), ("1.01s", 1_010_000.0), ("2m", 120e6), ("3", 3e6)]
        {
            assert_eq!(time_us(text), Some(us), "{text}");
        }
        assert_eq!(time_us("no"), None);
        assert_eq!(time_us("3.x"), None);
        assert_eq!(number_behind("a\n  Requests/sec:  12.5\n", "Requests/sec:"), Some(12.5));
    }

    #[test]
    fn figures_are_written() {
        assert_eq!(time(Some(950.4)), "950 µs");
        assert_eq!(time(Some(12_345.0)), "12.3 ms");
        assert_eq!(time(Some(1_020_000.0)), "1.02 s");
        assert_eq!(time(Some(999_600.0)), "1.00 s");
        assert_eq!(time(None), "–");
        assert_eq!(thousands(1_234_567.4), "1,234,567");
        assert_eq!(thousands(999.0), "999");
        assert_eq!(thousands(-0.0), "0");
        assert_eq!(median(&[3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(&[4.0, 1.0]), Some(2.5));
        assert_eq!(median(&[]), None);
    }
}
