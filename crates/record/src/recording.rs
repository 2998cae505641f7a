//! The histogram that a driving thread records into, request by request.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::HISTOGRAM_HIGH_US;
use crate::packed::{Counts, Packed, pack};

/// Values below this have a counter each; from there on each power of two has half as many (`HdrHistogram` with three
/// significant digits: the least power of two that is not below 2 · 10³).
const OF_FIRST: u64 = 2_048;
/// Powers of two that a value's counter stands for are found by its leading zeros beyond those of the first counters.
const ZEROS_OF_FIRST: u32 = (OF_FIRST - 1).leading_zeros();
/// Counters up to the last power of two that [`HISTOGRAM_HIGH_US`] needs.
pub(crate) const COUNTERS: usize = index(HISTOGRAM_HIGH_US.next_power_of_two() - 1) + 1;

/// Which counter a value has.
const fn index(us: u64) -> usize {
    let halved = ZEROS_OF_FIRST - (us | (OF_FIRST - 1)).leading_zeros();
    halved as usize * (OF_FIRST / 2) as usize + (us >> halved) as usize
}

/// A latency histogram, microseconds; per second and series, so 32 bits a counter are enough.
///
/// Its counters are those of `hdrhistogram` with the bounds of a run, so that what is [merged](crate::merge) is the same as if
/// that had recorded it. That recording is inlined here, knows its bounds when it is compiled, and keeps no ends: it takes 12
/// instructions instead of 60, and a driving thread records four times for each request.
#[derive(Clone)]
pub struct Histogram {
    counts: Box<[u32; COUNTERS]>,
    /// Behind the highest counter that may have counted.
    end: usize,
}

impl Histogram {
    /// An empty one.
    pub(crate) fn new() -> Histogram {
        let counts = vec![0; COUNTERS].into_boxed_slice();
        let counts = counts.try_into().unwrap_or_else(|_| unreachable!("it was made as long as it is"));
        Histogram { counts, end: 0 }
    }

    /// Counts a value; one above [`HISTOGRAM_HIGH_US`] as that.
    #[inline]
    pub fn record(&mut self, us: u64) {
        self.record_n(us, 1);
    }

    /// Counts a value so many times. A counter that is full stays so.
    #[inline]
    pub fn record_n(&mut self, us: u64, count: u32) {
        let index = index(us.min(HISTOGRAM_HIGH_US));
        let counter = &mut self.counts[index];
        *counter = counter.saturating_add(count);
        self.end = self.end.max(index + 1);
    }

    /// How many values were counted.
    pub fn len(&self) -> u64 {
        self.counts[..self.end].iter().map(|count| u64::from(*count)).sum()
    }

    /// Whether none was.
    pub fn is_empty(&self) -> bool {
        self.recorded().next().is_none()
    }

    /// Takes every count back; all room is kept.
    pub fn reset(&mut self) {
        self.counts[..self.end].fill(0);
        self.end = 0;
    }

    /// Adds every count of another.
    pub fn add(&mut self, other: &Histogram) {
        for (counter, more) in self.counts[..other.end].iter_mut().zip(&other.counts[..other.end]) {
            *counter = counter.saturating_add(*more);
        }
        self.end = self.end.max(other.end);
    }

    /// Adds every count of one that was packed.
    pub fn add_packed(&mut self, other: Packed<'_>) {
        other.each(|counts| match counts {
            Counts::Low(at, low) => {
                let end = at + low.len();
                for (counter, count) in self.counts[at..end].iter_mut().zip(low) {
                    *counter = counter.saturating_add(u32::from(*count));
                }
                self.end = self.end.max(end);
            }
            Counts::Rest(at, count) => {
                self.counts[at] = self.counts[at].saturating_add(count);
                self.end = self.end.max(at + 1);
            }
        });
    }

    /// The values that were counted, the lowest first, and how often; each is the highest that shares its counter.
    pub fn recorded(&self) -> impl DoubleEndedIterator<Item = (u64, u32)> {
        let all = self.counts[..self.end].iter().enumerate();
        all.filter(|(_, count)| **count > 0).map(|(index, count)| (highest(index), *count))
    }

    /// How many values share a counter with one from the first to the last of these.
    pub fn count_between(&self, first_us: u64, last_us: u64) -> u64 {
        let [first, last] = [first_us, last_us].map(|us| index(us.min(HISTOGRAM_HIGH_US)));
        self.counts[first..=last].iter().map(|count| u64::from(*count)).sum()
    }

    /// The lowest value, as far as it is told apart; 0 where there is none.
    pub fn min(&self) -> u64 {
        self.recorded().next().map_or(0, |(us, _)| lowest(index(us)))
    }

    /// The highest value, as far as it is told apart; 0 where there is none.
    pub fn max(&self) -> u64 {
        self.recorded().next_back().map_or(0, |(us, _)| us)
    }

    /// The value that this share (0 to 1) of all is not above, as far as it is told apart; 0 where there is none.
    pub fn value_at_quantile(&self, share: f64) -> u64 {
        if share <= 0.0 {
            return self.min();
        }
        let rank = ((share.clamp(0.0, 1.0) * self.len() as f64).ceil() as u64).max(1);
        let mut below = 0;
        let found = self.recorded().find(|(_, count)| {
            below += u64::from(*count);
            below >= rank
        });
        found.map_or(0, |(us, _)| us)
    }
}

impl std::fmt::Debug for Histogram {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_map().entries(self.recorded()).finish()
    }
}

impl Serialize for Histogram {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bytes(&pack(&self.counts[..self.end]))
    }
}

impl<'de> Deserialize<'de> for Histogram {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let packed = Packed::deserialize(deserializer)?;
        let mut histogram = Histogram::new();
        histogram.add_packed(packed);
        Ok(histogram)
    }
}

/// How often the values of a counter were halved.
fn halved(index: usize) -> usize {
    (index / (OF_FIRST as usize / 2)).saturating_sub(1)
}

/// The lowest value of a counter.
fn lowest(index: usize) -> u64 {
    let halved = halved(index);
    ((index - halved * (OF_FIRST as usize / 2)) as u64) << halved
}

/// The highest value of a counter.
fn highest(index: usize) -> u64 {
    lowest(index) + (1 << halved(index)) - 1
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{HISTOGRAM_DIGITS, HISTOGRAM_LOW_US, merge, new_histogram, new_merged};

    /// Any length in bits is as likely as another.
    fn value() -> impl Strategy<Value = u64> {
        (0u32..64, any::<u64>()).prop_map(|(zeros, any)| any >> zeros)
    }

    proptest! {
        /// Against the library that it stands for: the same figures, by itself and when it is merged.
        #[test]
        fn it_is_what_the_library_has(values in prop::collection::vec((value(), 1u32..5), 0..200)) {
            let mut theirs =
                hdrhistogram::Histogram::<u32>::new_with_bounds(HISTOGRAM_LOW_US, HISTOGRAM_HIGH_US, HISTOGRAM_DIGITS)
                    .unwrap();
            prop_assert_eq!(theirs.distinct_values(), COUNTERS);
            let mut ours = new_histogram();
            for (us, count) in values {
                theirs.saturating_record_n(us.min(HISTOGRAM_HIGH_US), count);
                ours.record_n(us, count);
                prop_assert_eq!(ours.count_between(us, us), u64::from(theirs.count_at(us.min(HISTOGRAM_HIGH_US))));
            }
            let counted: Vec<(u64, u32)> =
                theirs.iter_recorded().map(|v| (v.value_iterated_to(), v.count_at_value())).collect();
            prop_assert!(ours.recorded().eq(counted));
            let ends = (theirs.len(), theirs.is_empty(), theirs.min(), theirs.max());
            prop_assert_eq!((ours.len(), ours.is_empty(), ours.min(), ours.max()), ends);
            let mut merged = new_merged();
            merge(&mut merged, &ours);
            prop_assert_eq!((merged.len(), merged.is_empty(), merged.min(), merged.max()), ends);
            prop_assert_eq!(merged.mean(), theirs.mean());
            let read: Histogram = postcard::from_bytes(&postcard::to_stdvec(&ours).unwrap()).unwrap();
            prop_assert!(read.recorded().eq(ours.recorded()));
            for share in [0.0, 0.01, 0.25, 0.5, 0.9, 0.99, 0.999, 1.0] {
                let expected = theirs.value_at_quantile(share);
                prop_assert_eq!(ours.value_at_quantile(share), expected, "{}", share);
                prop_assert_eq!(merged.value_at_quantile(share), expected, "{}", share);
            }
        }
    }

    #[test]
    fn what_is_taken_back_or_added_leaves_no_trace_of_the_rest() {
        let (mut one, mut other) = (new_histogram(), new_histogram());
        [0, 17, u64::MAX].into_iter().for_each(|us| one.record(us));
        other.record_n(17, u32::MAX);
        other.add(&one);
        assert_eq!(
            (other.count_between(17, 17), other.len()),
            (u64::from(u32::MAX), 2 + u64::from(u32::MAX))
        );
        assert_eq!((other.min(), other.max()), (0, one.max()));
        one.reset();
        assert_eq!((one.len(), one.max(), one.recorded().count()), (0, 0, 0));
        assert!(one.counts.iter().all(|count| *count == 0));
        assert_eq!(format!("{one:?}"), "{}");
    }
}
