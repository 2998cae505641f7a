//! The level over time as one curve of pieces, its integral, and the inverse of that.

use std::f64::consts::{PI, TAU};
use std::sync::Arc;

use tidemark_scenario::plan::{Curve, Phase, Series};

use crate::clock::{SECOND_NS, nanoseconds};

/// Most pieces of a curve.
pub(crate) const MOST_PIECES: usize = 1_000_000;
/// Arrivals so near to the end of the load are beyond it: sums of many pieces are no exacter.
const END_TOLERANCE: f64 = 1e-6;
/// Most steps in the search for a moment of a sine; it halves the range at least.
const MOST_SEARCHES: usize = 80;
/// The search has found its moment, seconds.
const NEAR_S: f64 = 1e-10;

#[derive(Debug, Clone, Copy)]
enum Shape {
    Line,
    /// Around `from`, at it and rising at the begin.
    Sine {
        amplitude: f64,
        period_s: f64,
    },
}

#[derive(Debug, Clone)]
struct Piece {
    start_ns: u64,
    end_ns: u64,
    from: f64,
    to: f64,
    /// Integral of the level up to its start.
    before: f64,
    shape: Shape,
}

impl Piece {
    fn seconds(&self) -> f64 {
        (self.end_ns - self.start_ns) as f64 / SECOND_NS as f64
    }

    fn total(&self) -> f64 {
        self.integral(self.seconds())
    }

    /// Integral of the level over its first `t` seconds.
    fn integral(&self, t: f64) -> f64 {
        match self.shape {
            Shape::Line => self.from * t + (self.to - self.from) / 2.0 * t * (t / self.seconds()),
            Shape::Sine { amplitude, period_s } => {
                self.from * t + amplitude * period_s / TAU * (1.0 - (TAU * t / period_s).cos())
            }
        }
    }

    fn level_at(&self, at_ns: u64) -> f64 {
        let t = (at_ns - self.start_ns) as f64 / SECOND_NS as f64;
        match self.shape {
            Shape::Line if self.from == self.to => self.from,
            Shape::Line => self.from + (self.to - self.from) * (t / self.seconds()),
            Shape::Sine { amplitude, period_s } => self.from + amplitude * (TAU * t / period_s).sin(),
        }
    }

    /// When the integral since its start reaches `n`.
    fn inverse(&self, n: f64) -> u64 {
        let seconds = match self.shape {
            _ if n <= 0.0 => 0.0,
            Shape::Line => {
                let slope = (self.to - self.from) / self.seconds();
                // The root of from·t + slope/2·t² = n, in the form that is stable for every slope, also 0.
                let root = (self.from * self.from + 2.0 * slope * n).max(0.0).sqrt();
                2.0 * n / (self.from + root)
            }
            Shape::Sine { amplitude, period_s } => {
                // Whole periods bring the same each.
                let each = self.from * period_s;
                let whole = (n / each).floor();
                whole * period_s + self.within_period(n - whole * each, amplitude, period_s)
            }
        };
        let ns = (seconds * SECOND_NS as f64).round() as u64;
        (self.start_ns + ns).min(self.end_ns)
    }

    /// When the integral of a sine reaches `n` within its first period: Newton's steps, kept within what is known.
    fn within_period(&self, n: f64, amplitude: f64, period_s: f64) -> f64 {
        let (mut low, mut high) = (0.0, period_s);
        let mut t = (n / self.from).clamp(low, high);
        for _ in 0..MOST_SEARCHES {
            let beyond = self.integral(t) - n;
            if beyond > 0.0 {
                high = t;
            } else {
                low = t;
            }
            let level = self.from + amplitude * (TAU * t / period_s).sin();
            let mut next = t - beyond / level;
            if !(low..=high).contains(&next) {
                next = (low + high) / 2.0;
            }
            let step = (next - t).abs();
            t = next;
            if step < NEAR_S {
                break;
            }
        }
        t
    }

    /// First moment at or after `from_ns` at which its level is above `k`, or is not.
    fn when(&self, is_above: bool, k: f64, from_ns: u64) -> Option<u64> {
        let from_ns = from_ns.max(self.start_ns);
        if from_ns >= self.end_ns {
            return None;
        }
        if (self.level_at(from_ns) > k) == is_above {
            return Some(from_ns);
        }
        let seconds = match self.shape {
            Shape::Line if (self.to > k) != is_above => return None,
            Shape::Line => (k - self.from) / (self.to - self.from) * self.seconds(),
            Shape::Sine { amplitude, .. } if is_above && self.from + amplitude <= k => return None,
            Shape::Sine { amplitude, .. } if !is_above && self.from - amplitude > k => return None,
            Shape::Sine { amplitude, period_s } => {
                let rising = ((k - self.from) / amplitude).asin();
                let passing = if is_above { rising } else { PI - rising };
                let angle = TAU * (from_ns - self.start_ns) as f64 / SECOND_NS as f64 / period_s;
                (passing + TAU * ((angle - passing) / TAU).ceil()) / TAU * period_s
            }
        };
        let at_ns = self.start_ns + (seconds * SECOND_NS as f64).ceil() as u64;
        Some(at_ns.max(from_ns)).filter(|at_ns| *at_ns < self.end_ns)
    }
}

/// A time in which the level stays the same.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Steady {
    from_ns: u64,
    until_ns: u64,
    level: f64,
}

impl Steady {
    /// Whether user `k` is certainly at work at a moment.
    pub fn has_at_work(&self, k: u32, at_ns: u64) -> bool {
        (self.from_ns..self.until_ns).contains(&at_ns) && self.level > f64::from(k)
    }
}

/// The level over time.
#[derive(Debug, Clone)]
pub(crate) struct Profile {
    pieces: Arc<[Piece]>,
    /// Begin of the first phase.
    pub begin_ns: u64,
    total: f64,
}

impl Profile {
    /// The phases, one after the other from `begin_ns`.
    pub fn new(phases: &[Phase], begin_ns: u64) -> Self {
        let mut builder = Builder::default();
        let mut start_ns = begin_ns;
        for phase in phases {
            let end_ns = start_ns.saturating_add(nanoseconds(phase.duration));
            builder.phase(phase, start_ns, end_ns);
            start_ns = end_ns;
        }
        Profile { pieces: builder.pieces.into(), begin_ns, total: builder.before }
    }

    /// Nothing at all.
    pub fn nothing(begin_ns: u64) -> Self {
        Profile { pieces: Arc::new([]), begin_ns, total: 0.0 }
    }

    /// When the last piece ends.
    pub fn end_ns(&self) -> u64 {
        self.pieces.last().map_or(self.begin_ns, |piece| piece.end_ns)
    }

    /// The level at a moment; 0 before and after.
    #[cfg(test)]
    pub fn level_at(&self, at_ns: u64) -> f64 {
        let next = self.pieces.partition_point(|p| p.start_ns <= at_ns);
        let piece = next.checked_sub(1).map(|last| &self.pieces[last]).filter(|p| at_ns < p.end_ns);
        piece.map_or(0.0, |p| p.level_at(at_ns))
    }

    /// The integral of the level from the begin to a moment: how many arrivals are due before it.
    pub fn integral(&self, at_ns: u64) -> f64 {
        let next = self.pieces.partition_point(|p| p.start_ns <= at_ns);
        next.checked_sub(1).map_or(0.0, |last| {
            let piece = &self.pieces[last];
            let ns = at_ns.min(piece.end_ns) - piece.start_ns;
            piece.before + piece.integral(ns as f64 / SECOND_NS as f64)
        })
    }

    /// When arrival `n` is due; none after the last phase.
    pub fn arrival_ns(&self, n: f64) -> Option<u64> {
        if n >= self.total - END_TOLERANCE {
            return None;
        }
        let last = self.pieces.partition_point(|p| p.before <= n).checked_sub(1)?;
        // A piece without arrivals shares its `before` with the next: partition_point already took the later one.
        let piece = &self.pieces[last];
        Some(piece.inverse(n - piece.before))
    }

    /// How it is from this moment on for a time, where the level stays the same.
    pub fn steady_at(&self, at_ns: u64) -> Option<Steady> {
        let piece = self.pieces.get(self.pieces.partition_point(|p| p.end_ns <= at_ns))?;
        let is_steady = matches!(piece.shape, Shape::Line) && piece.from == piece.to;
        (is_steady && piece.start_ns <= at_ns).then_some(Steady {
            from_ns: at_ns,
            until_ns: piece.end_ns,
            level: piece.from,
        })
    }

    /// First moment at or after `from_ns` at which user `k` is at work.
    pub fn when_above(&self, k: u32, from_ns: u64) -> Option<u64> {
        let first = self.pieces.partition_point(|p| p.end_ns <= from_ns);
        self.pieces[first..].iter().find_map(|p| p.when(true, k.into(), from_ns))
    }

    /// First moment at or after `from_ns` at which user `k` is not at work.
    pub fn when_not_above(&self, k: u32, from_ns: u64) -> u64 {
        let first = self.pieces.partition_point(|p| p.end_ns <= from_ns);
        let left_ns = self.pieces[first..].iter().find_map(|p| p.when(false, k.into(), from_ns));
        left_ns.unwrap_or_else(|| self.end_ns().max(from_ns))
    }

    /// When the last piece with any level ends.
    pub fn over_ns(&self) -> u64 {
        let last = self.pieces.iter().rfind(|piece| piece.from > 0.0 || piece.to > 0.0);
        last.map_or(self.begin_ns, |piece| piece.end_ns)
    }
}

/// Pieces of a phase, at most; what [`Profile::new`] makes of it.
pub(crate) fn pieces_of(phase: &Phase) -> usize {
    match &phase.curve {
        Curve::Line | Curve::Sine { .. } => 1,
        Curve::Steps(steps) => *steps as usize,
        Curve::Spikes { every, .. } => {
            (phase.duration.as_nanos() / every.as_nanos().max(1) + 1).min(1 << 40) as usize * 2
        }
        Curve::Series(series) => series.points.len(),
    }
}

#[derive(Default)]
struct Builder {
    pieces: Vec<Piece>,
    before: f64,
}

impl Builder {
    fn phase(&mut self, phase: &Phase, start_ns: u64, end_ns: u64) {
        let (from, to) = (phase.from.max(0.0), phase.to.max(0.0));
        match &phase.curve {
            Curve::Line => self.line(start_ns, end_ns, from, to),
            Curve::Steps(steps) => {
                let length_ns = u128::from(end_ns - start_ns);
                let edge = |i: u32| start_ns + (length_ns * u128::from(i) / u128::from(*steps)) as u64;
                for i in 0..*steps {
                    let level = from + (to - from) * f64::from(i) / f64::from(steps.saturating_sub(1).max(1));
                    self.line(edge(i), edge(i + 1), level, level);
                }
            }
            Curve::Sine { amplitude, period } => {
                let shape = Shape::Sine { amplitude: *amplitude, period_s: period.as_secs_f64() };
                self.push(Piece { start_ns, end_ns, from, to: from, before: self.before, shape });
            }
            Curve::Spikes { level, every, length } => {
                let (every_ns, length_ns) = (nanoseconds(*every).max(1), nanoseconds(*length));
                let at = |ns: u64| {
                    from + (to - from) * ((ns - start_ns) as f64 / (end_ns - start_ns).max(1) as f64)
                };
                let mut even_ns = start_ns;
                while even_ns < end_ns {
                    let next_ns = even_ns.saturating_add(every_ns);
                    let spike_ns = next_ns.saturating_sub(length_ns).clamp(even_ns, end_ns);
                    self.line(even_ns, spike_ns, at(even_ns), at(spike_ns));
                    self.line(spike_ns, next_ns.min(end_ns), *level, *level);
                    even_ns = next_ns;
                }
            }
            Curve::Series(series) => self.series(series, start_ns, end_ns),
        }
    }

    fn series(&mut self, series: &Series, start_ns: u64, end_ns: u64) {
        let at = |seconds: f64| start_ns.saturating_add((seconds * SECOND_NS as f64).round() as u64);
        for (index, (seconds, level)) in series.points.iter().enumerate() {
            let piece_ns = at(*seconds);
            if piece_ns >= end_ns {
                return;
            }
            let (next_ns, next_level) = match series.points.get(index + 1) {
                Some((next_s, next)) => (at(*next_s), if series.between { *next } else { *level }),
                None => (end_ns, *level),
            };
            let cut_ns = next_ns.min(end_ns);
            let share = (cut_ns - piece_ns) as f64 / (next_ns - piece_ns).max(1) as f64;
            self.line(piece_ns, cut_ns, *level, level + (next_level - level) * share);
        }
    }

    fn line(&mut self, start_ns: u64, end_ns: u64, from: f64, to: f64) {
        self.push(Piece { start_ns, end_ns, from, to, before: self.before, shape: Shape::Line });
    }

    fn push(&mut self, piece: Piece) {
        if piece.end_ns > piece.start_ns {
            self.before += piece.total();
            self.pieces.push(piece);
        }
    }
}
