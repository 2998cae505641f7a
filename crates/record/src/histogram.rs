//! Histograms merged and encoded. Percentiles are only ever taken from merged counts.

use bytes::Bytes;
use hdrhistogram::Counter;
use hdrhistogram::serialization::{Deserializer, Serializer, V2Serializer};

use crate::{HISTOGRAM_DIGITS, HISTOGRAM_LOW_US, Histogram};

/// A histogram that others are merged into: 64 bits a counter, and no larger than its highest value needs.
pub type Merged = hdrhistogram::Histogram<u64>;

/// Longest encoded histogram that is believed, bytes: every counter of a full one at its longest.
const ENCODED_BYTES_MAX: usize = 1 << 20;
/// Highest value that a decoded histogram may be able to hold: those of a scenario's own metrics hold most (guards memory
/// against damaged files: one has less than half a mebibyte).
const DECODED_HIGH_MAX: u64 = 1 << 61;

/// An empty histogram to merge into.
pub fn new_merged() -> Merged {
    let mut merged = Merged::new_with_bounds(HISTOGRAM_LOW_US, 2 * HISTOGRAM_LOW_US, HISTOGRAM_DIGITS)
        .expect("the bounds are constants that hdrhistogram accepts");
    merged.auto(true);
    merged
}

/// Adds every count of what a thread recorded.
pub fn merge(into: &mut Merged, from: &Histogram) {
    // as below
    if !from.is_empty() {
        add(into, from.max(), 0);
    }
    for (value_us, count) in from.recorded() {
        add(into, value_us, count.into());
    }
}

/// Adds every count of `from`.
pub(crate) fn merge_counts<T: Counter>(into: &mut Merged, from: &hdrhistogram::Histogram<T>) {
    if from.is_empty() {
        return;
    }
    // The highest first: the histogram then grows once, not bucket by bucket.
    add(into, from.max(), 0);
    for value in from.iter_recorded() {
        add(into, value.value_iterated_to(), value.count_at_value().as_u64());
    }
}

/// Adds every count of a histogram that was merged itself: the same, faster.
pub fn merge_merged(into: &mut Merged, from: &Merged) {
    if into.add(from).is_err() {
        merge_counts(into, from);
    }
}

/// Growing fails only beyond what the machine can address; such a value then counts as the highest there is.
fn add(into: &mut Merged, value_us: u64, count: u64) {
    if into.record_n(value_us, count).is_err() {
        into.saturating_record_n(value_us, count);
    }
}

/// A histogram as the run directory holds it: HdrHistogram's V2 encoding, uncompressed (the file's own
/// compression follows).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Encoded(pub(crate) Bytes);

impl Encoded {
    /// Encodes; the buffer is reused from call to call.
    pub(crate) fn of(histogram: &Merged, serializer: &mut V2Serializer) -> Encoded {
        let mut bytes = Vec::new();
        match serializer.serialize(histogram, &mut bytes) {
            Ok(_) => Encoded(bytes.into()),
            // Only an index or a length beyond 32 bits, or a refusing writer, is an error: neither can be here.
            Err(error) => unreachable!("encoding a histogram into memory failed: {error}"),
        }
    }

    /// Decodes it into one that can be merged further.
    pub fn decode(&self) -> Result<Merged, String> {
        Encoded::check_head(&self.0)?;
        let mut decoded: Merged = Deserializer::new()
            .deserialize(&mut &self.0[..])
            .map_err(|error| format!("histogram cannot be decoded: {error}"))?;
        decoded.auto(true);
        Ok(decoded)
    }

    /// Holds the head against the bounds before anything is allocated for what it asks for; gives the length of what follows
    /// it, bytes.
    pub(crate) fn check_head(encoded: &[u8]) -> Result<usize, String> {
        let number = |at: usize, len: usize| {
            encoded.get(at..at + len).map(|b| b.iter().fold(0u64, |n, &byte| (n << 8) | u64::from(byte)))
        };
        let (Some(payload), Some(digits), Some(low), Some(high)) =
            (number(4, 4), number(12, 4), number(16, 8), number(24, 8))
        else {
            return Err(format!("histogram of {} bytes is cut off", encoded.len()));
        };
        if encoded.len() > ENCODED_BYTES_MAX || payload as usize > encoded.len() {
            return Err(format!("histogram says it is {payload} bytes long, but has {}", encoded.len()));
        }
        if digits != u64::from(HISTOGRAM_DIGITS) || low != HISTOGRAM_LOW_US || high > DECODED_HIGH_MAX {
            return Err(format!("histogram with foreign bounds: {low} to {high}, {digits} digits"));
        }
        Ok(payload as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{HISTOGRAM_HIGH_US, new_histogram};

    #[test]
    fn merging_keeps_every_count_and_both_ends() {
        let mut a = new_histogram();
        let mut b = new_histogram();
        a.record(0);
        a.record_n(250, 3);
        b.record(HISTOGRAM_HIGH_US);
        let mut merged = new_merged();
        merge(&mut merged, &a);
        merge(&mut merged, &b);
        assert_eq!(merged.len(), 5);
        assert_eq!(merged.count_at(250), 3);
        assert_eq!(merged.count_at(0), 1);
        assert_eq!((merged.min(), merged.max()), (0, b.max()));
        let mut twice = new_merged();
        twice.record(17).unwrap();
        merge_merged(&mut twice, &merged);
        merge_merged(&mut twice, &merged);
        assert_eq!((twice.len(), twice.count_at(250), twice.count_at(0)), (11, 6, 2));
        assert_eq!((twice.min(), twice.max()), (0, b.max()));
    }

    #[test]
    fn encoding_comes_back() {
        let mut merged = new_merged();
        for value in [1, 17, 1_000, 123_456, 99_000_000] {
            merged.record_n(value, value % 7 + 1).unwrap();
        }
        let encoded = Encoded::of(&merged, &mut V2Serializer::new());
        assert_eq!(encoded.decode().unwrap(), merged);
        assert!(new_merged() == Encoded::of(&new_merged(), &mut V2Serializer::new()).decode().unwrap());
    }

    #[test]
    fn damaged_encodings_are_refused() {
        let mut merged = new_merged();
        merged.record(99).unwrap();
        let good = Encoded::of(&merged, &mut V2Serializer::new()).0;
        for length in 0..good.len() {
            assert!(Encoded(good.slice(..length)).decode().is_err(), "cut to {length} bytes");
        }
        let mut greedy = good.to_vec();
        greedy[4..8].fill(0xff);
        assert!(Encoded(greedy.into()).decode().unwrap_err().contains("bytes long"));
        let mut foreign = good.to_vec();
        foreign[15] = 5;
        assert!(Encoded(foreign.into()).decode().unwrap_err().contains("foreign"));
    }
}
