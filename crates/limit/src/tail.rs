//! How many requests were slower than a bound, and than parts and multiples of it.

use serde::{Deserialize, Serialize};

/// Steps to an octave: neighbouring steps are 9 % apart.
const PER_OCTAVE: f64 = 8.0;
/// The step that is the bound itself; the lowest is a sixteenth of it.
const BOUND: usize = 32;
/// Steps, from a sixteenth of the bound to four times it.
const STEPS: usize = 49;

/// Requests by their response time, as parts of a bound. What failed is slower than every step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Vec<u64>", into = "Vec<u64>")]
pub struct Tail {
    /// `classes[n]`: requests slower than the n lowest steps and no more; never another length.
    classes: Vec<u64>,
}

impl Default for Tail {
    fn default() -> Tail {
        Tail { classes: vec![0; STEPS + 1] }
    }
}

impl Tail {
    /// Adds requests that took `parts` of the bound each.
    pub fn add(&mut self, parts: f64, count: u64) {
        self.classes[steps_below(parts)] += count;
    }

    /// Adds requests without a good answer.
    pub fn fail(&mut self, count: u64) {
        self.classes[STEPS] += count;
    }

    /// Requests that were due.
    pub fn due(&self) -> u64 {
        self.classes.iter().sum()
    }

    /// The same; none where it is more than can be counted.
    pub(crate) fn due_checked(&self) -> Option<u64> {
        self.classes.iter().try_fold(0u64, |sum, count| sum.checked_add(*count))
    }

    /// Those slower than the bound.
    pub fn slow(&self) -> u64 {
        self.classes[BOUND + 1..].iter().sum()
    }

    /// The same with what the fit needs of it worked out.
    pub(crate) fn cumulative(&self) -> Cumulative {
        let mut over = vec![0.0; STEPS];
        let mut sum = 0.0;
        for step in (0..STEPS).rev() {
            sum += self.classes.get(step + 1).copied().unwrap_or(0) as f64;
            over[step] = sum;
        }
        Cumulative { due: self.due() as f64, over }
    }
}

impl TryFrom<Vec<u64>> for Tail {
    type Error = String;

    fn try_from(classes: Vec<u64>) -> Result<Tail, String> {
        match classes.len() == STEPS + 1 {
            true => Ok(Tail { classes }),
            false => Err(format!("{} numbers where there are {}", classes.len(), STEPS + 1)),
        }
    }
}

impl From<Tail> for Vec<u64> {
    fn from(tail: Tail) -> Vec<u64> {
        tail.classes
    }
}

/// How many steps so many parts of the bound are above.
fn steps_below(parts: f64) -> usize {
    if parts <= 0.0 {
        return 0;
    }
    // what is equal to a step is not above it
    (place_of(parts) - 1e-9).ceil().clamp(0.0, STEPS as f64) as usize
}

/// On which step, counted from the lowest, so many parts of the bound are; between two of them, too.
fn place_of(parts: f64) -> f64 {
    parts.log2() * PER_OCTAVE + BOUND as f64
}

/// Requests of one trial over each step.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Cumulative {
    pub due: f64,
    over: Vec<f64>,
}

/// The distance of two steps, in logarithms.
pub(crate) const STEP: f64 = std::f64::consts::LN_2 / PER_OCTAVE;

/// A step, and how far beyond it, 0 to 1.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place(usize, f64);

impl Place {
    /// Of so many parts of the bound; what is beyond the steps is at their end.
    pub fn of(parts: f64) -> Place {
        let at = place_of(parts).clamp(0.0, (STEPS - 1) as f64);
        let step = (at.floor() as usize).min(STEPS - 2);
        Place(step, at - step as f64)
    }
}

impl Cumulative {
    /// Adds the requests of another trial.
    pub fn add(&mut self, other: &Cumulative) {
        self.due += other.due;
        for (mine, theirs) in self.over.iter_mut().zip(&other.over) {
            *mine += theirs;
        }
    }

    /// Requests slower than this.
    pub fn over(&self, place: Place) -> f64 {
        let Place(step, beyond) = place;
        self.over[step] * (1.0 - beyond) + self.over[step + 1] * beyond
    }

    /// The parts of the bound that `allowed` (0 to 1) of the requests were slower than, by the steps.
    pub fn quantile(&self, allowed: f64) -> f64 {
        let wanted = allowed * self.due;
        let step = self.over.iter().position(|over| *over <= wanted).unwrap_or(STEPS - 1);
        ((step as f64 - BOUND as f64) / PER_OCTAVE).exp2()
    }

    /// The check function of quantile regression at each step, from the lowest one on: its slope, by the logarithm of the
    /// time, is the requests that may be slower less those that are.
    pub fn losses(&self, allowed: f64) -> Losses {
        let may = allowed * self.due;
        let mut sums = vec![0.0; STEPS];
        for step in 1..STEPS {
            sums[step] = sums[step - 1] + STEP * (may - (self.over[step - 1] + self.over[step]) / 2.0);
        }
        Losses { may, sums }
    }
}

/// See [`Cumulative::losses`].
#[derive(Debug, Clone)]
pub(crate) struct Losses {
    may: f64,
    sums: Vec<f64>,
}

impl Losses {
    /// The loss there; `of` is what they were made from.
    pub fn at(&self, of: &Cumulative, place: Place) -> f64 {
        let Place(step, beyond) = place;
        let (here, next) = (of.over[step], of.over[step + 1]);
        self.sums[step] + STEP * (beyond * (self.may - here) - beyond * beyond / 2.0 * (next - here))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_counted_over_every_step_that_they_are_slower_than() {
        let mut tail = Tail::default();
        for (parts, count) in [(0.0, 1), (0.01, 2), (0.5, 4), (1.0, 8), (1.001, 16), (100.0, 32)] {
            tail.add(parts, count);
        }
        tail.fail(64);
        assert_eq!((tail.due(), tail.slow()), (127, 16 + 32 + 64));
        let cumulative = tail.cumulative();
        let over = |parts: f64| cumulative.over(Place::of(parts));
        assert_eq!((over(1.0 / 16.0), over(0.45), over(0.5)), (124.0, 124.0, 120.0));
        assert_eq!((over(1.0), over(1e-9), over(1e9)), (112.0, 124.0, 96.0));
    }

    #[test]
    fn the_loss_is_least_at_the_quantile() {
        let mut tail = Tail::default();
        // 1 % above twice the bound, the rest evenly below it
        (0..990).for_each(|i| tail.add(f64::from(i) / 990.0, 1));
        tail.add(3.0, 10);
        let cumulative = tail.cumulative();
        for (allowed, wanted) in [(0.1, 0.909), (0.3, 0.707), (0.5, 0.505)] {
            let losses = cumulative.losses(allowed);
            let at = |parts: f64| losses.at(&cumulative, Place::of(parts));
            let least =
                (1..400).map(|i| f64::from(i) / 100.0).min_by(|a, b| at(*a).total_cmp(&at(*b))).unwrap();
            assert!((least / wanted - 1.0).abs() < 0.03, "{allowed}: {least}");
            assert!((cumulative.quantile(allowed) / wanted - 1.0).abs() < 0.1);
        }
    }
}
