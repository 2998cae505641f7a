//! Histograms of many seconds added up: what counts, and nothing that a histogram of its own would need.

use crate::histogram::Encoded;

/// Values that a histogram tells apart up to the first that shares a place with its neighbour, half of them; the other half
/// is each further doubling. What three digits need: HdrHistogram's sub-buckets.
const HALF: usize = 1_024;
/// Bytes before the counts: cookie, length, digits, bounds.
const HEAD: usize = 40;
/// Most places: those of a histogram of 64 bits.
const PLACES_MAX: usize = 64 * HALF;

/// How many values there were of each size, added up from encoded histograms: several times as fast as decoding them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Counts(Vec<u64>);

impl Counts {
    /// Adds what an encoded histogram holds.
    ///
    /// The encoding is HdrHistogram's V2: behind the head a number each, zigzag in up to nine bytes of seven bits, the
    /// lowest first; below 0 it is so many empty places.
    pub(crate) fn add(&mut self, encoded: &[u8]) -> Result<(), String> {
        let length = Encoded::check_head(encoded)?;
        let counts = encoded.get(HEAD..HEAD + length);
        let mut bytes =
            counts.ok_or_else(|| format!("histogram of {} bytes is cut off", encoded.len()))?.iter();
        let mut place = 0_usize;
        while let Some(number) = number(&mut bytes) {
            if number < 0 {
                place = place.saturating_add(usize::try_from(number.unsigned_abs()).unwrap_or(usize::MAX));
            } else {
                if place >= PLACES_MAX {
                    return Err("histogram has more values than there are".into());
                }
                if self.0.len() <= place {
                    self.0.resize(place + 1, 0);
                }
                self.0[place] = self.0[place].saturating_add(number.unsigned_abs());
                place += 1;
            }
        }
        Ok(())
    }

    /// Values, each the highest of those that are not told apart, and how many of each; ascending.
    pub fn iter(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.0
            .iter()
            .enumerate()
            .filter(|(_, count)| **count > 0)
            .map(|(place, count)| (value(place), *count))
    }
}

/// The highest value at a place.
fn value(place: usize) -> u64 {
    let (doubling, within) = ((place / HALF).saturating_sub(1), place % HALF);
    let first = if place < HALF { within } else { within + HALF };
    // a place of 64 doublings is beyond every value
    let lowest = u128::from(first as u64) << doubling;
    u64::try_from(lowest + (1 << doubling) - 1).unwrap_or(u64::MAX)
}

/// The next number; none at the end, or where it is cut off.
fn number(bytes: &mut std::slice::Iter<'_, u8>) -> Option<i64> {
    let mut coded = 0_u64;
    for position in 0..9 {
        let byte = u64::from(*bytes.next()?);
        // the ninth byte is whole
        let (bits, is_last) = if position == 8 { (byte, true) } else { (byte & 0x7f, byte & 0x80 == 0) };
        coded |= bits << (7 * position);
        if is_last {
            break;
        }
    }
    Some((coded >> 1) as i64 ^ -((coded & 1) as i64))
}

#[cfg(test)]
mod tests {
    use hdrhistogram::serialization::V2Serializer;
    use proptest::prelude::*;

    use super::*;
    use crate::histogram::{Merged, new_merged};

    fn encoded(merged: &Merged) -> Encoded {
        Encoded::of(merged, &mut V2Serializer::new())
    }

    fn listed(merged: &Merged) -> Vec<(u64, u64)> {
        merged.iter_recorded().map(|step| (step.value_iterated_to(), step.count_at_value())).collect()
    }

    #[test]
    fn damaged_encodings_are_refused_or_short_and_never_more() {
        let mut merged = new_merged();
        for value in [1, 5_000, 7_000_000] {
            merged.record_n(value, 1 << 40).unwrap();
        }
        let whole = encoded(&merged);
        let mut counts = Counts::default();
        counts.add(&whole.0).unwrap();
        assert_eq!(counts.iter().collect::<Vec<_>>(), listed(&merged));
        for length in 0..whole.0.len() {
            assert!(Counts::default().add(&whole.0[..length]).is_err(), "cut to {length} bytes");
        }
        let mut greedy = whole.0.to_vec();
        // many empty places, then a value
        let end = greedy.len();
        greedy.truncate(HEAD);
        greedy.extend([0xff, 0xff, 0xff, 0xff, 0x0f, 0x02]);
        greedy.resize(end, 0);
        assert!(Counts::default().add(&greedy).unwrap_err().contains("more values"));
    }

    proptest! {
        /// What the library makes of the same histograms.
        #[test]
        fn it_is_what_the_library_decodes(
            first in prop::collection::vec((0u64..3_600_000_000, 1u64..1 << 50), 0..40),
            second in prop::collection::vec((0u64..5_000, 1u64..3), 0..40),
        ) {
            let (mut counts, mut all) = (Counts::default(), new_merged());
            for values in [first, second] {
                let mut merged = new_merged();
                for (value, count) in values {
                    merged.record_n(value, count).unwrap();
                    all.record_n(value, count).unwrap();
                }
                counts.add(&encoded(&merged).0).unwrap();
            }
            prop_assert_eq!(counts.iter().collect::<Vec<_>>(), listed(&all));
        }
    }
}
