//! How sure a ratio of two runs is: a moving block bootstrap over their seconds.
//!
//! Seconds beside each other are alike, so stretches of them are drawn, not single ones (Künsch 1989); their length
//! is the cube root of their number. Both runs are drawn anew each time, and the ratio lies between the 2.5th and the
//! 97.5th percentile of what comes out. What differs from one run to the next is seen only by several rounds.

use fastrand::Rng;
use tidemark_record::Merged;

/// How often the seconds are drawn anew.
const DRAWS: usize = 500;
/// Most pieces of time that are drawn from; longer runs are in pieces of several seconds.
const PIECES_MAX: usize = 300;
/// The same numbers come out of the same runs.
const SEED: u64 = 0x7469_6465;

/// What happened in one piece of time.
#[derive(Debug, Clone, Default)]
pub(super) struct Piece {
    /// Its length, seconds.
    pub length_s: f64,
    /// Requests answered as they should.
    pub answered: u64,
    /// Their response times, microseconds, and how many of each; ascending.
    pub times: Vec<(u64, u64)>,
}

impl Piece {
    /// Of a second.
    pub fn new(length_s: f64, answered: u64, times: &Merged) -> Piece {
        let times = times.iter_recorded().map(|step| (step.value_iterated_to(), step.count_at_value()));
        Piece { length_s, answered, times: times.collect() }
    }

    fn join(&mut self, other: &Piece) {
        self.length_s += other.length_s;
        self.answered += other.answered;
        self.times.extend_from_slice(&other.times);
    }
}

/// A measure of a run, for the ratio of two.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Measure {
    /// Requests answered as they should per second.
    AnsweredPerS,
    /// A quantile of the response time, 0 to 1.
    Quantile(f64),
}

/// Between which bounds the ratio lies, 95 of 100 times.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Bounds {
    pub low: f64,
    pub high: f64,
}

/// Few enough pieces: as they are, or several joined.
pub(super) fn few(pieces: &[Piece]) -> Vec<Piece> {
    let each = pieces.len().div_ceil(PIECES_MAX).max(1);
    let joined = |pieces: &[Piece]| {
        let mut joined = Piece::default();
        pieces.iter().for_each(|piece| joined.join(piece));
        joined.times.sort_unstable();
        joined
    };
    pieces.chunks(each).map(joined).collect()
}

/// The bounds of the ratio of `measures` of `of` to those of `to`; none where there are too few seconds to tell, or
/// nothing to divide by.
pub(super) fn bounds(of: &[Piece], to: &[Piece], measures: &[Measure]) -> Vec<Option<Bounds>> {
    if of.len() < 5 || to.len() < 5 {
        return vec![None; measures.len()];
    }
    let mut random = Rng::with_seed(SEED);
    let (mut of, mut to) = (Drawn::new(of), Drawn::new(to));
    let mut ratios = vec![Vec::with_capacity(DRAWS); measures.len()];
    for _ in 0..DRAWS {
        of.draw(&mut random);
        to.draw(&mut random);
        for (measure, ratios) in measures.iter().zip(&mut ratios) {
            ratios.push(of.measure(*measure) / to.measure(*measure));
        }
    }
    ratios.into_iter().map(between).collect()
}

fn between(mut ratios: Vec<f64>) -> Option<Bounds> {
    if ratios.iter().any(|ratio| !ratio.is_finite()) {
        return None;
    }
    ratios.sort_unstable_by(f64::total_cmp);
    let at = |share: f64| ratios[((ratios.len() - 1) as f64 * share).round() as usize];
    Some(Bounds { low: at(0.025), high: at(0.975) })
}

/// Pieces drawn from a run: how often each, and what they come to.
struct Drawn<'a> {
    pieces: &'a [Piece],
    block: usize,
    /// All response times that there are, ascending, and how many of each are drawn.
    values: Vec<u64>,
    counts: Vec<u64>,
    /// For each piece, indices into `values` and counts.
    places: Vec<Vec<(u32, u64)>>,
    picked: Vec<u64>,
    length_s: f64,
    answered: u64,
}

impl<'a> Drawn<'a> {
    fn new(pieces: &'a [Piece]) -> Self {
        let mut values: Vec<u64> =
            pieces.iter().flat_map(|piece| piece.times.iter().map(|(us, _)| *us)).collect();
        values.sort_unstable();
        values.dedup();
        let place = |us: &u64| values.binary_search(us).unwrap_or_default() as u32;
        let places = pieces
            .iter()
            .map(|piece| piece.times.iter().map(|(us, count)| (place(us), *count)).collect())
            .collect();
        let block = (pieces.len() as f64).cbrt().round().max(1.0) as usize;
        Drawn {
            pieces,
            block,
            counts: vec![0; values.len()],
            values,
            places,
            picked: vec![0; pieces.len()],
            length_s: 0.0,
            answered: 0,
        }
    }

    fn draw(&mut self, random: &mut Rng) {
        self.picked.fill(0);
        let mut left = self.pieces.len();
        while left > 0 {
            let start = random.usize(..=self.pieces.len() - self.block);
            let length = self.block.min(left);
            self.picked[start..start + length].iter_mut().for_each(|picked| *picked += 1);
            left -= length;
        }
        self.counts.fill(0);
        (self.length_s, self.answered) = (0.0, 0);
        for ((piece, places), picked) in self.pieces.iter().zip(&self.places).zip(&self.picked) {
            if *picked == 0 {
                continue;
            }
            self.length_s += piece.length_s * *picked as f64;
            self.answered += piece.answered * picked;
            for (place, count) in places {
                self.counts[*place as usize] += count * picked;
            }
        }
    }

    fn measure(&self, measure: Measure) -> f64 {
        match measure {
            Measure::AnsweredPerS => self.answered as f64 / self.length_s,
            Measure::Quantile(share) => {
                let all: u64 = self.counts.iter().sum();
                let wanted = ((all as f64 * share).ceil() as u64).max(1);
                let mut seen = 0;
                let found = self.counts.iter().position(|count| {
                    seen += count;
                    seen >= wanted
                });
                found.map_or(f64::NAN, |index| self.values[index] as f64)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MEASURES: [Measure; 2] = [Measure::AnsweredPerS, Measure::Quantile(0.99)];

    fn pieces(count: usize, rate: u64, spread: u64, us: u64, seed: u64) -> Vec<Piece> {
        let mut random = Rng::with_seed(seed);
        let piece = |_| {
            let answered = rate + random.u64(..=spread);
            Piece {
                length_s: 1.0,
                answered,
                times: vec![(us, answered - 1), (us * 9 + random.u64(..100), 1)],
            }
        };
        (0..count).map(piece).collect()
    }

    #[test]
    fn a_difference_is_seen_where_there_is_one_and_not_where_there_is_none() {
        let (a, b) = (pieces(30, 1_000, 100, 500, 1), pieces(30, 2_000, 200, 1_000, 2));
        let seen = bounds(&b, &a, &MEASURES);
        let rate = seen[0].unwrap();
        assert!(rate.low > 1.9 && rate.high < 2.1 && rate.low < rate.high, "{rate:?}");
        let p99 = seen[1].unwrap();
        assert!(p99.low <= 2.0 && p99.high >= 2.0 && p99.low > 1.5 && p99.high < 2.5, "{p99:?}");

        // by their own word the bounds miss the truth 5 times of 100; with so few seconds it is some more
        let sees_none = |seed: &u64| {
            let (a, b) =
                (pieces(30, 1_000, 100, 500, seed * 2 + 10), pieces(30, 1_000, 100, 500, seed * 2 + 11));
            let rate = bounds(&a, &b, &MEASURES)[0].unwrap();
            rate.low <= 1.0 && rate.high >= 1.0
        };
        let right = (0..100).filter(sees_none).count();
        assert!((85..100).contains(&right), "{right} of 100");
    }

    #[test]
    fn neighbours_that_are_alike_make_it_less_sure() {
        // the same seconds, once in any order and once sorted: slow stretches and fast ones
        let mixed = pieces(60, 1_000, 400, 500, 5);
        let mut sorted = mixed.clone();
        sorted.sort_by_key(|piece| piece.answered);
        let steady = pieces(60, 1_000, 0, 500, 6);
        let width = |pieces: &[Piece]| {
            let bounds = bounds(pieces, &steady, &MEASURES)[0].unwrap();
            bounds.high - bounds.low
        };
        assert!(width(&sorted) > 1.3 * width(&mixed), "{} {}", width(&sorted), width(&mixed));
    }

    #[test]
    fn what_cannot_be_told_is_not_told() {
        let a = pieces(30, 1_000, 100, 500, 1);
        assert_eq!(bounds(&a[..4], &a, &MEASURES), [None, None], "too few seconds");
        let nothing = vec![Piece { length_s: 1.0, ..Piece::default() }; 30];
        assert_eq!(bounds(&a, &nothing, &MEASURES), [None, None], "nothing to divide by");
    }

    #[test]
    fn long_runs_are_joined_and_nothing_is_lost() {
        let a = pieces(1_000, 10, 5, 500, 1);
        let few = few(&a);
        assert!(few.len() <= PIECES_MAX && few.len() > PIECES_MAX / 2, "{}", few.len());
        let sum = |pieces: &[Piece]| pieces.iter().map(|piece| piece.answered).sum::<u64>();
        assert_eq!(sum(&few), sum(&a));
        assert!(few[0].times.is_sorted());
    }
}
