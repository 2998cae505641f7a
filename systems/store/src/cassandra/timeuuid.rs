//! A post's id as a timeuuid, and back.
//!
//! Its time is the post's to the microsecond. What stands below that, the clock sequence and the node are the server's 64
//! bits, so that no two ids are one timeuuid. Cassandra compares what is behind the time by signed bytes; the bytes are
//! turned so that its order is that of the ids.

use scylla::value::CqlTimeuuid;

use crate::feeds::PostId;

/// From the beginning of the timeuuids' calendar, 1582-10-15, to 1970, microseconds.
const CALENDAR_US: u64 = 12_219_292_800_000_000;
/// Ticks of a microsecond.
const TICKS: u64 = 10;
/// The last tick that there is.
const LAST: u64 = (1 << 60) - 1;
/// The first time that a timeuuid cannot have, microseconds since 1970: in the year 5236.
pub(super) const AT_US_END: u64 = LAST / TICKS - CALENDAR_US;
/// Bits of the server behind the time.
const BEHIND: u32 = 62;
/// A byte that is compared with its sign has the order of one without when its first bit is turned; the first byte has
/// the bits of the variant there.
const TURNED: u64 = 0x0080_8080_8080_8080;
const VARIANT: u64 = 1 << 63;

fn of_parts(ticks: u64, behind: u64) -> CqlTimeuuid {
    let (low, middle, high) = (ticks as u32, (ticks >> 32) as u16, (ticks >> 48) as u16 | 0x1000);
    let mut bytes = [0; 16];
    bytes[..4].copy_from_slice(&low.to_be_bytes());
    bytes[4..6].copy_from_slice(&middle.to_be_bytes());
    bytes[6..8].copy_from_slice(&high.to_be_bytes());
    bytes[8..].copy_from_slice(&((behind ^ TURNED) | VARIANT).to_be_bytes());
    CqlTimeuuid::from_bytes(bytes)
}

/// The timeuuid of an id, unless its time is too late.
pub(super) fn timeuuid(PostId { at_us, server }: PostId) -> Option<CqlTimeuuid> {
    let ticks = (at_us < AT_US_END).then(|| (at_us + CALENDAR_US) * TICKS + (server >> BEHIND))?;
    Some(of_parts(ticks, server & ((1 << BEHIND) - 1)))
}

/// The id of a timeuuid, if it is one of [`timeuuid`].
pub(super) fn id(timeuuid: CqlTimeuuid) -> Option<PostId> {
    let bytes = timeuuid.as_bytes();
    let part =
        |from: usize, to: usize| bytes[from..to].iter().fold(0, |all, byte| all << 8 | u64::from(*byte));
    let high = part(6, 8);
    if high >> 12 != 1 || bytes[8] >> 6 != 2 {
        return None;
    }
    let ticks = (high & 0xfff) << 48 | part(4, 6) << 32 | part(0, 4);
    let behind = (part(8, 16) ^ TURNED) & ((1 << BEHIND) - 1);
    let at_us = (ticks / TICKS).checked_sub(CALENDAR_US)?;
    let first = ticks % TICKS;
    (first < 1 << (64 - BEHIND)).then_some(PostId { at_us, server: first << BEHIND | behind })
}

/// A timeuuid before all those of ids.
pub(super) fn least() -> CqlTimeuuid {
    of_parts(0, 0)
}

/// A timeuuid behind all those of ids.
pub(super) fn greatest() -> CqlTimeuuid {
    of_parts(LAST, (1 << BEHIND) - 1)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_timeuuid_has_the_time_of_its_post() {
        let at = PostId { at_us: 1_391_426_380_123_456, server: 0 };
        assert_eq!(timeuuid(at).unwrap().to_string(), "12b04480-8cc5-11e3-8080-808080808080");
        // ticks of the beginning of 1970, as the standard has them
        let begin = timeuuid(PostId { at_us: 0, server: 0 }).unwrap().to_string();
        assert!(begin.starts_with("13814000-1dd2-11b2-"), "{begin}");
        assert_eq!(timeuuid(PostId { at_us: AT_US_END, server: 0 }), None);
        let last = timeuuid(PostId { at_us: AT_US_END - 1, server: u64::MAX }).unwrap();
        assert!(least() < timeuuid(PostId { at_us: 0, server: 0 }).unwrap() && last < greatest());
        assert_eq!(id(last), Some(PostId { at_us: AT_US_END - 1, server: u64::MAX }));
    }

    fn ids() -> impl Strategy<Value = PostId> {
        // few times, so that the servers decide, too
        let at_us = prop_oneof![0..AT_US_END, 1_700_000_000_000_000..1_700_000_000_000_003u64];
        (at_us, any::<u64>()).prop_map(|(at_us, server)| PostId { at_us, server })
    }

    proptest! {
        #[test]
        fn an_id_is_its_timeuuid_and_none_other(one in ids()) {
            prop_assert_eq!(id(timeuuid(one).unwrap()), Some(one));
        }

        /// The client compares as Cassandra does.
        #[test]
        fn they_have_one_order(one in ids(), other in ids()) {
            prop_assert_eq!(one.cmp(&other), timeuuid(one).unwrap().cmp(&timeuuid(other).unwrap()));
        }

        #[test]
        fn any_timeuuid_is_one_of_an_id_or_none(bytes: [u8; 16]) {
            let any = CqlTimeuuid::from_bytes(bytes);
            if let Some(found) = id(any) {
                prop_assert!(found.at_us >= AT_US_END || timeuuid(found).unwrap().as_bytes() == any.as_bytes());
            }
        }
    }
}
