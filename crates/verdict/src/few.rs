//! A percentile of too few requests.
//!
//! Of so few it would be the slowest under another name. One that is slower than the bound is a larger share of them than
//! may be: the objective is missed. That all of them are faster proves nothing of a share that none of them stands for:
//! the objective is not decided. `max` is decided by any number.

use tidemark_record::{least, supports};

/// What is said behind the slowest of so many, which were measured in a window of so many seconds, or in the phase of this
/// name; nothing of enough.
pub(super) fn told(
    percent: f64,
    due: u64,
    measured_s: f64,
    phase: Option<&str>,
    what: &str,
) -> Option<String> {
    let share = percent / 100.0;
    // 100 is the slowest by name
    if percent >= 100.0 || due == 0 || supports(share, due) {
        return None;
    }
    let least = least(share);
    let measured_s = (measured_s * least as f64 / due as f64).ceil();
    let longer = match phase {
        _ if measured_s <= 0.0 => String::new(),
        Some(phase) => format!("; let phase {phase} last at least {measured_s:.0}s"),
        None => format!("; measure for at least {measured_s:.0}s"),
    };
    Some(format!(" (the slowest of {due}; p{percent} needs {least} {what}){longer}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn how_many_a_percentile_needs_is_told_and_how_long_that_takes() {
        assert_eq!(
            told(99.9, 10, 5.0, None, "requests").unwrap(),
            " (the slowest of 10; p99.9 needs 1000 requests); measure for at least 500s"
        );
        assert_eq!(
            told(99.0, 50, 4.0, Some("low"), "requests").unwrap(),
            " (the slowest of 50; p99 needs 100 requests); let phase low last at least 8s"
        );
        assert_eq!(
            [told(99.9, 1_000, 5.0, None, ""), told(100.0, 1, 5.0, None, ""), told(50.0, 2, 5.0, None, "")],
            [None, None, None]
        );
        assert!(told(99.99, 9_999, 5.0, None, "").unwrap().contains("needs 10000"));
        assert!(told(99.0, 99, 5.0, None, "").unwrap().contains("needs 100 "));
    }
}
