//! Fetches into the cache what is looked at soon.
//!
//! Thousands of users' states do not fit into a core's own cache. Where answers of many users come in one reading, who is next
//! is known, and mostly who is first in the next reading: its state is fetched while those before it have their turn.
//! `bench/kv/run redis` is what to measure a change of it with (500 connections, 16 deep).

/// Asks for all cache lines that a value lies in. It changes nothing but how long looking at it takes.
#[inline]
pub(crate) fn prefetch<T>(value: &T) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        let first: *const u8 = (&raw const *value).cast();
        for offset in (0..size_of::<T>()).step_by(64) {
            // SAFETY: a prefetch is a hint, which reads and faults nothing, whatever the address.
            #[allow(unsafe_code)]
            unsafe {
                _mm_prefetch::<_MM_HINT_T0>(first.wrapping_add(offset).cast());
            }
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = value;
}
