//! What chance makes of rare events.

/// That a healthy run is told by chance is less probable than this, over everything that is looked at.
const BY_CHANCE: f64 = 0.001;
/// Beyond so many expected events the normal distribution is near enough, ...
const MANY: f64 = 500.0;
/// ... and so many standard deviations are no chance.
const DEVIATIONS: f64 = 4.0;

/// Whether so many events are more than chance makes of `expected` (Poisson), where `looks` such numbers are looked at.
pub(super) fn is_beyond(count: u64, expected: f64, looks: usize) -> bool {
    if count == 0 || count as f64 <= expected {
        return false;
    }
    if expected > MANY {
        return count as f64 - expected > DEVIATIONS * expected.sqrt();
    }
    let (mut term, mut fewer) = ((-expected).exp(), 0.0);
    for number in 0..count {
        fewer += term;
        term *= expected / (number + 1) as f64;
        if term < f64::MIN_POSITIVE && number as f64 > expected {
            break;
        }
    }
    1.0 - fewer < by_chance(looks)
}

/// Whether that nothing happened is less than chance makes of `expected` events.
pub(super) fn is_too_rare(expected: f64, looks: usize) -> bool {
    (-expected).exp() < by_chance(looks)
}

/// The bound of each of so many looks.
fn by_chance(looks: usize) -> f64 {
    BY_CHANCE / looks.max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_events_may_be_chance_and_many_are_none() {
        // by the tables of the Poisson distribution
        assert!(!is_beyond(1, 0.01, 1) && is_beyond(2, 0.01, 1));
        assert!(!is_beyond(5, 1.0, 1) && is_beyond(6, 1.0, 1));
        assert!(is_beyond(6, 1.0, 1) && !is_beyond(6, 1.0, 10), "of ten one may have six");
        assert!(is_beyond(1, 0.0, 100) && !is_beyond(0, 0.0, 1) && !is_beyond(0, 9.0, 1));
        assert!(!is_beyond(1_050, 1_000.0, 1) && is_beyond(1_200, 1_000.0, 1));
        assert!(is_beyond(1_000_000, 1.0, 1), "and soon known");
        assert!(is_too_rare(7.0, 1) && !is_too_rare(6.0, 1) && !is_too_rare(7.0, 10));
    }
}
