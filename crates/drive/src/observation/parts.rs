//! Where the time of a request went.

use crate::clock::microseconds;
use crate::session::times::Connecting;
use crate::session::times::Times;

/// Where the time of a request went, microseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Parts {
    /// Until it was sent, or a connection was begun for it.
    pub wait_us: u64,
    /// Until its socket was there; none where none was made for it.
    pub connect_us: Option<u64>,
    /// What was spoken on that first.
    pub handshake_us: Option<u64>,
    /// From first byte sent to first byte received, or to its end.
    pub first_byte_us: u64,
    /// From there to its last byte.
    pub transfer_us: u64,
}

impl Parts {
    /// Of a request with these times, the making of its connection, and when the first bytes of its answer came, where it was
    /// not whole by them. What was never sent has no first byte.
    pub(crate) fn of(times: &Times, connecting: Option<Connecting>, begun_ns: Option<u64>) -> Parts {
        let sent_ns = times.sent_ns.unwrap_or(times.end_ns).min(times.end_ns);
        let begun_ns = begun_ns.unwrap_or(times.end_ns).clamp(sent_ns, times.end_ns);
        let made_ns = connecting.map_or(0, |made| made.connect_ns + made.handshake_ns);
        let handshake_ns = connecting.map(|made| made.handshake_ns).filter(|ns| *ns > 0);
        Parts {
            wait_us: microseconds(sent_ns.saturating_sub(times.due_ns).saturating_sub(made_ns)),
            connect_us: connecting.map(|made| microseconds(made.connect_ns)),
            handshake_us: handshake_ns.map(microseconds),
            first_byte_us: microseconds(begun_ns - sent_ns),
            transfer_us: microseconds(times.end_ns - begun_ns),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIMES: Times = Times { due_ns: 1_000_000, sent_ns: Some(4_000_600), end_ns: 9_000_000, own_ns: 0 };

    #[test]
    fn all_parts_are_rounded_to_the_nearest() {
        let connecting = Some(Connecting { begun_ns: 0, connect_ns: 1_000_500, handshake_ns: 500_400 });
        let parts = Parts {
            wait_us: 1_500,
            connect_us: Some(1_001),
            handshake_us: Some(500),
            first_byte_us: 2_000,
            transfer_us: 2_999,
        };
        assert_eq!(Parts::of(&TIMES, connecting, Some(6_000_900)), parts);
    }

    #[test]
    fn an_answer_that_came_at_once_has_no_transfer_and_what_was_never_sent_only_a_wait() {
        let parts = Parts::of(&TIMES, None, None);
        assert_eq!((parts.first_byte_us, parts.transfer_us), (4_999, 0));
        assert_eq!((parts.connect_us, parts.handshake_us), (None, None));
        let parts = Parts::of(&Times { sent_ns: None, ..TIMES }, None, None);
        assert_eq!(parts, Parts { wait_us: 8_000, ..Parts::default() });
        // times of different sources
        let parts = Parts::of(&TIMES, None, Some(3_000_000));
        assert_eq!((parts.first_byte_us, parts.transfer_us), (0, 4_999));
    }
}
