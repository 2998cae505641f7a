//! Times that are different for each post.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use jiff::Timestamp;
use parking_lot::Mutex;
use tidemark_store::feeds::PostId;

/// So far ahead of the clock ids may be without a word, in microseconds.
const AHEAD_US: u64 = 1_000_000;
/// How often it is said that they are.
const WORD_EVERY: Duration = Duration::from_secs(60);

/// Microseconds since 1970.
pub(crate) fn now_us() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |now| now.as_micros() as u64)
}

/// The day of a moment, in UTC: `2026-01-31`.
pub(crate) fn day_of(at_us: u64) -> String {
    let at = i64::try_from(at_us).ok().and_then(|us| Timestamp::from_microsecond(us).ok());
    at.unwrap_or(Timestamp::MAX).strftime("%Y-%m-%d").to_string()
}

/// Gives posts their ids: the clock's time, or the next microsecond where that is taken.
#[derive(Debug)]
pub(crate) struct PostIds {
    last_us: AtomicU64,
    server: u64,
    /// When it was last said that ids are ahead of the clock.
    said: Mutex<Option<Instant>>,
}

impl PostIds {
    /// Begins behind the newest post that there is.
    pub(crate) fn behind(newest: Option<PostId>) -> Self {
        // a signed number in every store
        let server = fastrand::u64(..) >> 1;
        PostIds { last_us: AtomicU64::new(newest.map_or(0, |id| id.at_us)), server, said: Mutex::default() }
    }

    pub(crate) fn next(&self) -> PostId {
        let now_us = now_us();
        let next = |last_us: u64| now_us.max(last_us + 1);
        let update = self.last_us.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |last| Some(next(last)));
        let last = update.unwrap_or_else(|last| last);
        let at_us = next(last);
        if at_us - now_us > AHEAD_US && self.is_to_be_said() {
            let (day, ahead_s) = (day_of(at_us), (at_us - now_us) / 1_000_000);
            tracing::error!(
                day,
                ahead_s,
                "posts get dates ahead of the clock, behind the newest that there is, until the clock is there: it was \
                 wrong then, or is now"
            );
        }
        PostId { at_us, server: self.server }
    }

    /// How far the latest id is ahead of the clock, in microseconds.
    pub(crate) fn ahead_us(&self) -> u64 {
        self.last_us.load(Ordering::Relaxed).saturating_sub(now_us())
    }

    fn is_to_be_said(&self) -> bool {
        let mut said = self.said.lock();
        let is_due = said.is_none_or(|said| said.elapsed() >= WORD_EVERY);
        if is_due {
            *said = Some(Instant::now());
        }
        is_due
    }
}

/// A post as a cursor, `TIME-SERVER` in hexadecimal digits.
pub(crate) fn cursor_of(PostId { at_us, server }: PostId) -> String {
    format!("{at_us:x}-{server:x}")
}

/// The post that a cursor names.
pub(crate) fn id_of(cursor: &str) -> Option<PostId> {
    let digits = |text: &str| match text.bytes().all(|digit| digit.is_ascii_hexdigit()) {
        true => u64::from_str_radix(text, 16).ok(),
        false => None,
    };
    let (at_us, server) = cursor.split_once('-')?;
    Some(PostId { at_us: digits(at_us)?, server: digits(server)? })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn ids_rise_whatever_the_clock_does() {
        let future = now_us() + 3_600_000_000;
        let ids = PostIds::behind(Some(PostId { at_us: future, server: 0 }));
        let some: Vec<_> = (0..100).map(|_| ids.next()).collect();
        assert!(some.is_sorted_by(|a, b| a < b) && some[0].at_us > future);
        assert!((3_000_000_000..=3_600_000_100).contains(&ids.ahead_us()), "{}", ids.ahead_us());
        assert!(ids.said.lock().is_some() && !ids.is_to_be_said(), "it is said, and not for each post");
        let ids = PostIds::behind(None);
        ids.next();
        assert!(ids.ahead_us() < AHEAD_US && ids.said.lock().is_none());
    }

    #[test]
    fn a_day_is_one_in_utc() {
        assert_eq!(day_of(1_391_426_380_000_000), "2014-02-03");
        assert_eq!(day_of(u64::MAX), "9999-12-30");
    }

    proptest! {
        #[test]
        fn a_cursor_is_an_id(at_us: u64, server: u64) {
            let id = PostId { at_us, server };
            prop_assert_eq!(id_of(&cursor_of(id)), Some(id));
        }

        #[test]
        fn any_text_is_a_cursor_or_none(text in ".{0,40}") {
            let _ = id_of(&text);
        }
    }
}
