//! How large the good answers of a label were over the window: a system may answer less once it is full, and call it good.

/// Most parts of a window that are kept; then two become one.
const PARTS_MAX: usize = 96;
/// Fewer answers in a third of the window say nothing of their size.
const BODIES_MIN: u64 = 10;
/// A change of less than this share is told by nobody.
const SHARE_MIN: f64 = 0.2;

/// By so many standard deviations of a part the first one has to be larger than those behind the first third.
const EARLY_DEVIATIONS: f64 = 8.0;

/// The sizes of a label's good answers, part by part of the measured window.
#[derive(Debug, Clone, Default)]
pub struct Bodies {
    parts: Vec<Part>,
    /// Intervals in each part.
    width: usize,
    /// Intervals in the last one.
    filled: usize,
    last_end_us: u64,
}

#[derive(Debug, Clone, Copy, Default)]
struct Part {
    bodies: u64,
    bytes: u64,
}

impl Bodies {
    /// So many bodies of so many bytes came in an interval that ends then. Threads tell each of their own.
    pub(super) fn add(&mut self, end_us: u64, bodies: u64, bytes: u64) {
        if bodies == 0 {
            return;
        }
        self.width = self.width.max(1);
        if end_us > self.last_end_us {
            self.last_end_us = end_us;
            if self.filled == self.width || self.parts.is_empty() {
                self.filled = 0;
                self.parts.push(Part::default());
            }
            self.filled += 1;
        }
        if let Some(part) = self.parts.last_mut() {
            part.bodies += bodies;
            part.bytes += bytes;
        }
        if self.parts.len() > PARTS_MAX {
            let sum = |two: &[Part]| Part {
                bodies: two.iter().map(|part| part.bodies).sum(),
                bytes: two.iter().map(|part| part.bytes).sum(),
            };
            // the last one alone is half full
            self.filled += if self.parts.len().is_multiple_of(2) { self.width } else { 0 };
            self.parts = self.parts.chunks(2).map(sum).collect();
            self.width *= 2;
        }
    }

    /// The mean size in the first third of the window and in the last, bytes, where they differ by a fifth or more and beyond
    /// what the parts of each third differ.
    pub fn change(&self) -> Option<(f64, f64)> {
        let third = self.parts.len() / 3;
        // two of each are few: then they have to differ by more
        let deviations = match third {
            0 | 1 => return None,
            2 => 8.0,
            _ => 5.0,
        };
        let (first, last) = (&self.parts[..third], &self.parts[self.parts.len() - third..]);
        let count = |parts: &[Part]| parts.iter().map(|part| part.bodies).sum::<u64>();
        if count(first).min(count(last)) < BODIES_MIN {
            return None;
        }
        let mean =
            |parts: &[Part]| parts.iter().map(|part| part.bytes).sum::<u64>() as f64 / count(parts) as f64;
        let variance = |parts: &[Part], mean: f64| {
            let squares = parts.iter().map(|part| (part.bytes as f64 / part.bodies as f64 - mean).powi(2));
            squares.sum::<f64>() / (parts.len() - 1) as f64 / parts.len() as f64
        };
        let (before, after) = (mean(first), mean(last));
        let error = (variance(first, before) + variance(last, after)).sqrt();
        let change = (after - before).abs();
        let is_change = change > SHARE_MIN * before.max(after) && change > deviations * error;
        is_change.then_some((before, after)).or_else(|| {
            // what becomes smaller early is noise of the first third: its first part against all behind that third
            let (first, rest) = (&self.parts[..1], &self.parts[third..]);
            if count(first) < BODIES_MIN {
                return None;
            }
            let (before, of_rest) = (mean(first), mean(rest));
            let deviation = (variance(rest, of_rest) * rest.len() as f64).sqrt();
            let change = before - of_rest.max(after);
            (change > SHARE_MIN * before && change > EARLY_DEVIATIONS * deviation).then_some((before, after))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(sizes: impl IntoIterator<Item = u64>) -> Bodies {
        let mut bodies = Bodies::default();
        for (size, second) in sizes.into_iter().zip(1..) {
            // two threads
            bodies.add(second * 1_000_000, 50, 50 * size);
            bodies.add(second * 1_000_000, 50, 50 * size);
        }
        bodies
    }

    #[test]
    fn answers_that_become_smaller_or_larger_are_told_and_noise_is_not() {
        let overloaded = |second: u64| if second < 7 { 2_000 } else { 22 };
        assert_eq!(of((0..10).map(overloaded)).change(), Some((2_000.0, 22.0)));
        assert_eq!(of((1..10).map(|second| 10 * second)).change(), Some((20.0, 80.0)));
        let early = |second: u64| [20_000, 11_000][usize::from(second > 0)] * u64::from(second < 2) + 13;
        assert_eq!(of((0..9).map(early)).change(), Some((20_013.0, 13.0)), "in the second second");
        assert_eq!(
            of((0..9).map(|second| 20_000_u64.saturating_sub(5_000 * second))).change(),
            Some((15_000.0, 0.0))
        );
        assert_eq!(of([900, 700, 300, 710, 450, 820, 510, 640, 390]).change(), None);
        assert_eq!(of([500; 30]).change(), None);
        assert_eq!(of([500, 900, 300, 700, 450, 820, 510, 640, 390]).change(), None);
        assert_eq!(of([1_000, 1_010, 1_020, 1_030, 1_040, 1_050, 1_060, 1_070, 1_080]).change(), None, "8 %");
        assert_eq!(of([2_000, 22]).change(), None, "too short");
        assert_eq!(Bodies::default().change(), None);
    }

    #[test]
    fn a_long_window_is_kept_in_few_parts() {
        let long = of((0..10_000).map(|second| if second < 5_000 { 100 } else { 50 }));
        assert!(long.parts.len() <= PARTS_MAX, "{}", long.parts.len());
        assert_eq!(long.parts.iter().map(|part| part.bodies).sum::<u64>(), 1_000_000);
        assert_eq!(long.change(), Some((100.0, 50.0)));
    }
}
