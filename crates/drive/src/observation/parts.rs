//! Where the time of a request went.

use tidemark_record::RequestParts;

use crate::clock::microseconds;
use crate::session::times::Connecting;
use crate::session::times::Times;

/// Of a request with these times, the making of its connection, and when the first bytes of its answer came, where it was
/// not whole by them. What was never sent has no first byte.
pub(crate) fn parts(times: &Times, connecting: Option<Connecting>, begun_ns: Option<u64>) -> RequestParts {
    let sent_ns = times.sent_ns.unwrap_or(times.end_ns).min(times.end_ns);
    let begun_ns = begun_ns.unwrap_or(times.end_ns).clamp(sent_ns, times.end_ns);
    let made_ns = connecting.map_or(0, |made| made.connect_ns + made.handshake_ns);
    let handshake_ns = connecting.map(|made| made.handshake_ns).filter(|ns| *ns > 0);
    RequestParts {
        wait_us: microseconds(sent_ns.saturating_sub(times.due_ns).saturating_sub(made_ns)),
        connect_us: connecting.map(|made| microseconds(made.connect_ns)),
        handshake_us: handshake_ns.map(microseconds),
        first_byte_us: microseconds(begun_ns - sent_ns),
        transfer_us: microseconds(times.end_ns - begun_ns),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIMES: Times = Times { due_ns: 1_000_000, sent_ns: Some(4_000_600), end_ns: 9_000_000, own_ns: 0 };

    #[test]
    fn all_parts_are_rounded_to_the_nearest() {
        let connecting = Some(Connecting { begun_ns: 0, connect_ns: 1_000_500, handshake_ns: 500_400 });
        let expected = RequestParts {
            wait_us: 1_500,
            connect_us: Some(1_001),
            handshake_us: Some(500),
            first_byte_us: 2_000,
            transfer_us: 2_999,
        };
        assert_eq!(parts(&TIMES, connecting, Some(6_000_900)), expected);
    }

    #[test]
    fn an_answer_that_came_at_once_has_no_transfer_and_what_was_never_sent_only_a_wait() {
        let found = parts(&TIMES, None, None);
        assert_eq!((found.first_byte_us, found.transfer_us), (4_999, 0));
        assert_eq!((found.connect_us, found.handshake_us), (None, None));
        let found = parts(&Times { sent_ns: None, ..TIMES }, None, None);
        assert_eq!(found, RequestParts { wait_us: 8_000, ..RequestParts::default() });
        // times of different sources
        let found = parts(&TIMES, None, Some(3_000_000));
        assert_eq!((found.first_byte_us, found.transfer_us), (0, 4_999));
    }
}
