//! The ids of flights: made from segment and day, and readable back.
//!
//! A flight is always the same flight: after a restart, after the day has moved on, on another machine. So its id
//! is computed, never stored, and an id that a client sends is decoded rather than looked up. It has the form of
//! a UUID of version 8 (the one for own schemes) and looks random, but is neither secret nor hard to guess.

/// A flight: a segment on a day.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct FlightKey {
    /// Number of the segment.
    pub segment: u16,
    /// Day of departure, counted from 1970-01-01.
    pub day: i32,
}

const LOW_BITS: u32 = 62;
const LOW_MASK: u64 = (1 << LOW_BITS) - 1;
const VARIANT: u64 = 0b10 << LOW_BITS;
const VERSION: u64 = 8 << 12;
const VERSION_MASK: u64 = 0xf << 12;
/// An odd number, so that multiplying by it can be undone.
const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;
const UNSPREAD: u64 = inverse(SPREAD);

/// The number that undoes a multiplication by `odd` (Newton's method; each round doubles the right bits).
const fn inverse(odd: u64) -> u64 {
    let mut guess = odd;
    let mut round = 0;
    while round < 6 {
        guess = guess.wrapping_mul(2u64.wrapping_sub(odd.wrapping_mul(guess)));
        round += 1;
    }
    guess
}

/// Mixes all bits, as the finisher of a well-known generator does.
fn mixed(mut x: u64) -> u64 {
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

impl FlightKey {
    /// The id, a UUID as a number.
    pub fn id(self) -> u128 {
        let plain = (u64::from(self.segment) << 32) | u64::from(self.day.cast_unsigned());
        let low = plain.wrapping_mul(SPREAD) & LOW_MASK;
        let high = (mixed(low) & !VERSION_MASK) | VERSION;
        (u128::from(high) << 64) | u128::from(VARIANT | low)
    }

    /// The flight that has this id, if it has the form of a flight's id. Whether it is flown is another matter.
    pub fn of_id(id: u128) -> Option<Self> {
        let low = (id as u64) & LOW_MASK;
        let plain = low.wrapping_mul(UNSPREAD) & LOW_MASK;
        let key = FlightKey { segment: u16::try_from(plain >> 32).ok()?, day: (plain as u32).cast_signed() };
        (key.id() == id).then_some(key)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn ids_are_stable() {
        // Bookings refer to flights by these: they must not change from one version to the next.
        let id = uuid::Uuid::from_u128(FlightKey { segment: 280, day: 20_000 }.id());
        assert_eq!((id.get_version_num(), id.get_variant()), (8, uuid::Variant::RFC4122));
        assert_eq!(id.to_string(), "f824596f-0390-8e87-a77d-72f09b1de8a0");
    }

    proptest! {
        #[test]
        fn an_id_reads_back(segment: u16, day: i32) {
            let key = FlightKey { segment, day };
            prop_assert_eq!(FlightKey::of_id(key.id()), Some(key));
        }

        #[test]
        fn other_ids_are_nobodys(id: u128) {
            prop_assert_eq!(FlightKey::of_id(id), None);
        }
    }
}
