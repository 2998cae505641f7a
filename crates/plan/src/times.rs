//! Times as they came: a histogram with a relative precision, from a nanosecond to longer than anything lasts.

/// A class is 2^-8 of its value wide; values inside it are taken to be spread evenly.
const FRACTION_BITS: u32 = 8;
const CLASSES: usize = 60 << FRACTION_BITS;

/// A histogram of times.
#[derive(Debug, Clone, PartialEq)]
pub struct Times {
    counts: Vec<u64>,
    count: u64,
    sum_s: f64,
    max_ns: u64,
}

impl Default for Times {
    fn default() -> Times {
        Times { counts: vec![0; CLASSES], count: 0, sum_s: 0.0, max_ns: 0 }
    }
}

/// The class of a value: one each up to 2^8, then 2^8 for each doubling.
fn class(ns: u64) -> usize {
    let octave = (64 - ns.leading_zeros()).saturating_sub(FRACTION_BITS + 1);
    let at = ((octave as usize) << FRACTION_BITS) + (ns >> octave) as usize;
    at.min(CLASSES - 1)
}

/// Where a class begins, and how wide it is.
fn edges(class: usize) -> (f64, f64) {
    let octave = (class >> FRACTION_BITS).saturating_sub(1);
    let from = class - (octave << FRACTION_BITS);
    let width = (1u64 << octave) as f64;
    (from as f64 * width, width)
}

impl Times {
    /// Adds a time.
    pub(crate) fn record(&mut self, ns: u64) {
        self.counts[class(ns)] += 1;
        self.count += 1;
        self.sum_s += ns as f64 * 1e-9;
        self.max_ns = self.max_ns.max(ns);
    }

    /// Adds all of another one.
    pub fn add(&mut self, other: &Times) {
        self.counts.iter_mut().zip(&other.counts).for_each(|(count, more)| *count += more);
        self.count += other.count;
        self.sum_s += other.sum_s;
        self.max_ns = self.max_ns.max(other.max_ns);
    }

    /// How many there are.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Their mean, seconds; 0 of none.
    pub fn mean_s(&self) -> f64 {
        if self.count > 0 { self.sum_s / self.count as f64 } else { 0.0 }
    }

    /// The longest, seconds.
    pub fn max_s(&self) -> f64 {
        self.max_ns as f64 * 1e-9
    }

    /// The time that this share of them is at most, seconds; where `slower` more were slower than all of these. None where
    /// the percentile is among those, or there is none at all.
    pub fn quantile_s(&self, share: f64, slower: u64) -> Option<f64> {
        let rank = (share.clamp(0.0, 1.0) * (self.count + slower) as f64).max(f64::MIN_POSITIVE);
        if self.count == 0 || rank > self.count as f64 {
            return None;
        }
        let mut below = 0;
        for (class, count) in self.counts.iter().enumerate().filter(|(_, count)| **count > 0) {
            if (below + count) as f64 >= rank {
                let (from, width) = edges(class);
                let inside = (rank - below as f64) / *count as f64;
                return Some(((from + width * inside).min(self.max_ns as f64)) * 1e-9);
            }
            below += count;
        }
        Some(self.max_s())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_is_in_its_class() {
        let values = (0..300).chain((0..50).map(|at| (1u64 << at) + (1 << at) / 3)).chain([u64::MAX >> 12]);
        for ns in values {
            let (from, width) = edges(class(ns));
            assert!((from..from + width).contains(&(ns as f64)), "{ns}: {from} {width}");
        }
    }

    #[test]
    fn quantiles_are_those_of_all_that_were_due() {
        let mut times = Times::default();
        (1..=1_000_000).for_each(|ns| times.record(ns * 1_000));
        for share in [0.5, 0.9, 0.999] {
            assert!((times.quantile_s(share, 0).unwrap() / share - 1.0).abs() < 2e-3);
        }
        assert!((times.quantile_s(0.5, 250_000).unwrap() - 0.625).abs() < 1e-3);
        assert_eq!(times.quantile_s(0.9, 250_000), None);
        assert_eq!(Times::default().quantile_s(0.5, 0), None);
    }
}
