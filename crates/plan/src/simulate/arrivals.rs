//! When requests of an open load come.

use fastrand::Rng;

use super::ns;
use crate::distribution::exponential;
use crate::model::{Arrivals, Load};

/// Draws arrivals one after the other.
pub(super) struct Source<'a> {
    arrivals: Option<&'a Arrivals>,
    rng: Rng,
    at_s: f64,
    /// Which rate holds.
    index: usize,
}

impl<'a> Source<'a> {
    pub(super) fn new(load: &'a Load, from_s: f64, seed: u64) -> Source<'a> {
        let arrivals = match load {
            Load::Open(arrivals) => Some(arrivals),
            Load::Closed { .. } => None,
        };
        let before = |of: &Arrivals| of.rates.partition_point(|rate| rate.from_s <= from_s);
        let index = arrivals.map_or(0, |of| before(of).saturating_sub(1));
        Source { arrivals, rng: Rng::with_seed(seed), at_s: from_s, index }
    }

    /// The next one, nanoseconds. None where none comes any more.
    pub(super) fn next(&mut self) -> Option<u64> {
        let Arrivals { even, rates } = self.arrivals?;
        // requests to come until the next one: the area below the curve of the rate
        let mut left = if *even { 1.0 } else { exponential(&mut self.rng) };
        loop {
            let per_s = rates[self.index].per_s;
            let Some(next) = rates.get(self.index + 1) else {
                self.at_s += left / per_s;
                return (per_s > 0.0 && self.at_s < 1e9).then(|| ns(self.at_s));
            };
            let area = (next.from_s - self.at_s) * per_s;
            if left < area {
                self.at_s += left / per_s;
                return Some(ns(self.at_s));
            }
            left -= area;
            self.at_s = next.from_s;
            self.index += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::RateFrom;

    #[test]
    fn a_recorded_series_is_followed_through_its_changes() {
        let rates = [(0.0, 100.0), (10.0, 0.0), (20.0, 400.0), (30.0, 0.0)];
        let rates = rates.map(|(from_s, per_s)| RateFrom { from_s, per_s }).to_vec();
        for even in [true, false] {
            let load = Load::Open(Arrivals { even, rates: rates.clone() });
            let mut source = Source::new(&load, 0.0, 3);
            let came: Vec<u64> = std::iter::from_fn(|| source.next()).collect();
            let between =
                |from: f64, to: f64| came.iter().filter(|at| (ns(from)..ns(to)).contains(at)).count();
            let near = |found: usize, wanted: usize| {
                found.abs_diff(wanted) <= if even { 1 } else { 4 * wanted.isqrt() }
            };
            assert!(near(between(0.0, 10.0), 1_000) && near(between(20.0, 30.0), 4_000), "{}", came.len());
            assert_eq!(between(10.5, 20.0), 0);
            assert!(*came.last().unwrap() < ns(30.1));
        }
        let load = Load::Open(Arrivals { even: true, rates });
        assert!(Source::new(&load, 25.0, 3).next().unwrap() >= ns(25.0));
    }
}
