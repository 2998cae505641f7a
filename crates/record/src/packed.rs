//! A histogram as bytes: in the journal, and from driver to coordinator. A second of a fleet has tens of thousands of them, and
//! each is [added](Histogram::add_packed) to another as it came.
//!
//! Counters that stand beside each other are a run, a byte each, so that sixteen of them are added at once. All numbers but
//! these bytes have seven bits in a byte, the lowest first:
//!
//! - how many runs there are,
//! - of each run how many counters are left out before it, how many it has, and the lowest byte of each,
//! - of each counter that counted more than a byte holds how many are left out before it, and its count without the lowest byte.

use std::ops::Range;

use serde::{Deserialize, Deserializer, de};

use crate::recording::COUNTERS;

/// So many counters without a count between two others begin a new run: fewer cost less as bytes.
const GAP: usize = 8;

/// A histogram that somebody packed, and that is sound.
#[derive(Debug, Clone, Copy)]
pub struct Packed<'a>(&'a [u8]);

/// What a packed histogram says of its counters.
pub(crate) enum Counts<'a> {
    /// The lowest bytes from this counter on.
    Low(usize, &'a [u8]),
    /// What this counter has beside its lowest byte.
    Rest(usize, u32),
}

impl<'a> Packed<'a> {
    /// These bytes; none where they are no histogram.
    pub(crate) fn checked(bytes: &'a [u8]) -> Option<Packed<'a>> {
        let mut end = 0;
        walk(bytes, |counts| {
            end = end.max(match counts {
                Counts::Low(at, low) => at.saturating_add(low.len()),
                Counts::Rest(at, _) => at.saturating_add(1),
            });
        })?;
        (end <= COUNTERS).then_some(Packed(bytes))
    }

    /// Tells of all counters.
    pub(crate) fn each(self, tell: impl FnMut(Counts<'a>)) {
        // it was checked
        let _ = walk(self.0, tell);
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Packed<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let bytes = <&[u8]>::deserialize(deserializer)?;
        let packed = Packed::checked(bytes);
        packed.ok_or_else(|| de::Error::custom("not a histogram"))
    }
}

/// Packs counters.
pub(crate) fn pack(counts: &[u32]) -> Vec<u8> {
    let mut runs: Vec<Range<usize>> = Vec::new();
    for (at, _) in counts.iter().enumerate().filter(|(_, count)| **count > 0) {
        match runs.last_mut() {
            Some(run) if at < run.end + GAP => run.end = at + 1,
            _ => runs.push(at..at + 1),
        }
    }
    let mut packed = Vec::with_capacity(counts.len());
    write(runs.len(), &mut packed);
    let mut next = 0;
    for run in runs {
        write(run.start - next, &mut packed);
        write(run.len(), &mut packed);
        next = run.end;
        packed.extend(counts[run].iter().map(|count| *count as u8));
    }
    let mut next = 0;
    for (at, count) in counts.iter().enumerate().filter(|(_, count)| **count > u32::from(u8::MAX)) {
        write(at - next, &mut packed);
        write((count >> u8::BITS) as usize, &mut packed);
        next = at + 1;
    }
    packed
}

fn write(mut number: usize, to: &mut Vec<u8>) {
    while number > 0x7f {
        to.push(number as u8 | 0x80);
        number >>= 7;
    }
    to.push(number as u8);
}

/// The next number, of 28 bits at most; none where there is none.
fn number(bytes: &mut &[u8]) -> Option<usize> {
    let mut number = 0;
    for position in 0..4 {
        let (byte, rest) = bytes.split_first()?;
        *bytes = rest;
        number |= usize::from(byte & 0x7f) << (7 * position);
        if byte & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}

/// Tells of all counters; none where the bytes are not whole.
fn walk<'a>(mut bytes: &'a [u8], mut tell: impl FnMut(Counts<'a>)) -> Option<()> {
    let mut at = 0_usize;
    for _ in 0..number(&mut bytes)? {
        at = at.saturating_add(number(&mut bytes)?);
        let length = number(&mut bytes)?;
        let (low, behind) = bytes.split_at_checked(length)?;
        tell(Counts::Low(at, low));
        at = at.saturating_add(length);
        bytes = behind;
    }
    let mut at = 0_usize;
    while !bytes.is_empty() {
        at = at.saturating_add(number(&mut bytes)?);
        let rest = u32::try_from(number(&mut bytes)?).ok()?.checked_mul(1 << u8::BITS)?;
        tell(Counts::Rest(at, rest));
        at = at.saturating_add(1);
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::new_histogram;

    proptest! {
        #[test]
        fn what_is_packed_comes_back_and_is_added_as_it_is(
            values in prop::collection::vec((0u64..5_000_000_000, 1u32..100_000), 0..200),
            near in prop::collection::vec((0u64..3_000, 1u32..3), 0..200),
        ) {
            let [mut one, mut other] = [(); 2].map(|()| new_histogram());
            near.iter().for_each(|(us, count)| one.record_n(*us, *count));
            values.iter().chain(&near).for_each(|(us, count)| other.record_n(*us, *count));
            let bytes = postcard::to_stdvec(&other).unwrap();
            let packed: Packed<'_> = postcard::from_bytes(&bytes).unwrap();
            let mut sum = one.clone();
            sum.add_packed(packed);
            one.add(&other);
            prop_assert!(sum.recorded().eq(one.recorded()));
            prop_assert_eq!((sum.len(), sum.max()), (one.len(), one.max()));
        }

        #[test]
        fn any_bytes_are_a_histogram_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..60)) {
            if let Some(packed) = Packed::checked(&bytes) {
                new_histogram().add_packed(packed);
            }
        }
    }

    #[test]
    fn neighbours_are_a_run_and_what_is_cut_off_or_behind_the_last_counter_is_refused() {
        let mut histogram = new_histogram();
        [5, 7, 7 + GAP as u64, 1_000].into_iter().for_each(|us| histogram.record(us));
        histogram.record_n(7, 299);
        let packed = postcard::to_stdvec(&histogram).unwrap();
        let gap = [0; GAP - 1];
        let runs = [&[2, 5, GAP as u8 + 3, 1, 0, 44][..], &gap, &[1]].concat();
        let expected = [&runs[..], &[0xd8, 7, 1, 1], &[7, 1]].concat();
        assert_eq!(packed[1..], expected);
        for length in 0..expected.len() - 2 {
            assert!(Packed::checked(&expected[..length]).is_none(), "cut to {length} bytes");
        }
        let (last, behind) = ((COUNTERS - 1) as u16, COUNTERS as u16);
        let at = |at: u16| [at as u8 & 0x7f | 0x80, (at >> 7) as u8 & 0x7f | 0x80, (at >> 14) as u8];
        assert!(Packed::checked(&[&[1][..], &at(last), &[1, 9]].concat()).is_some());
        assert!(Packed::checked(&[&[1][..], &at(behind), &[1, 9]].concat()).is_none());
        assert!(Packed::checked(&[&[0][..], &at(behind), &[1]].concat()).is_none());
    }
}
