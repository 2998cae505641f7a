//! What driving threads count. A line of the list below is a counter everywhere: in an interval, in what threads come to
//! together, in the journal, in totals, and in the notes of a run.

use std::collections::BTreeMap;
use std::ops::{AddAssign, Index, IndexMut};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

macro_rules! counters {
    ($($(#[doc = $doc:literal])+ $counter:ident = $name:literal $(, note $note:literal)?;)+) => {
        /// Something that driving threads count.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Counter {
            $($(#[doc = $doc])+ $counter,)+
        }

        impl Counter {
            /// Every counter, in the order in which a run's notes tell them.
            pub const ALL: &[Counter] = &[$(Counter::$counter,)+];

            /// Its name in files.
            pub fn name(self) -> &'static str {
                match self {
                    $(Counter::$counter => $name,)+
                }
            }

            /// What the notes of a run say behind the number, where it is not 0; none of a counter that is a figure.
            pub fn note(self) -> Option<&'static str> {
                let note: &[&'static str] = match self {
                    $(Counter::$counter => &[$($note)?],)+
                };
                note.first().copied()
            }
        }
    };
}

// Another counter is a line here, and the place that counts it.
counters! {
    /// Connections that were made.
    Connects = "connects";
    /// Bytes written to sockets.
    SentBytes = "sent_bytes";
    /// Bytes read from sockets.
    ReceivedBytes = "received_bytes";
    /// Bytes of bodies as they came, of those that were decoded because a step looks at them.
    EncodedBytes = "encoded_bytes";
    /// Bytes of the same bodies once decoded.
    DecodedBytes = "decoded_bytes";
    /// How long a thread did nothing but compute for sessions that went on without a request or a pause, microseconds.
    ComputingUs = "computing_us";
    /// Requests that were due and without an answer when the run ended, be it that the drain was over or that it was
    /// aborted; they count as [`Outcome::Unfinished`](crate::Outcome::Unfinished).
    Unfinished = "unfinished";
    /// Turns of sessions that were ended because they only computed: a sign of an endless loop in the scenario.
    SpentTurns = "spent_turns",
        note "turns of sessions were ended because they only computed; is there an endless loop?";
    /// Values that variables could not keep: too long, or too much for all sessions together.
    ValuesNotKept = "values_not_kept",
        note "values did not fit: more than 2 GiB for all users; their steps failed; over the whole run";
    /// How often requests were sent again, because the server said that it had not taken them: it ended their
    /// connection in order (GOAWAY of HTTP/2), or refused the stream (REFUSED_STREAM).
    SentAgain = "sent_again",
        note "resends of requests that were left untaken by a GOAWAY or REFUSED_STREAM; each request counts once";
    /// Answers that came before the body of their request, a file's, was sent whole; the rest was not sent.
    UploadsCut = "uploads_cut",
        note "answers came before the body of their request was sent whole, and the rest of it was not sent; over the whole run";
    /// Streams of gRPC that were still open when their session ended.
    StreamsLeft = "streams_left",
        note "streams of gRPC were still open when their session ended: their status is not known; over the whole run";
    /// Answers that came and that nobody had asked for, over the whole run; their connections were closed.
    Unsolicited = "unasked",
        note "answers came that nobody had asked for; their connections were closed; over the whole run";
    /// Steps of sessions that are no requests and failed in the measured window: what they say could not be computed or kept.
    FailedSteps = "failed_steps",
        note "steps of sessions (`set`, `repeat`, `when`) failed in the measured window, and count as errors; none of them is a \
              request";
    /// Sessions that had to wait because as many as allowed were in flight.
    SessionsWaited = "sessions_waited",
        note "sessions had to wait, because as many as the limit allows were in flight; their wait counts";
    /// Sessions that were dropped because as many as allowed were in flight.
    SessionsDropped = "sessions_dropped",
        note "sessions were dropped, because as many as the limit allows were in flight";
    /// Requests that waited in the driver for a stream, because the server lowered their number while it ran.
    Held = "held",
        note "requests waited in the load generator, as the server came to take fewer at once; service times contain it";
    /// Messages that came over WebSockets and that no step took.
    UnexpectedMessages = "unexpected_messages",
        note "messages came over WebSockets that no step took, over the whole run: tables count its measured window only";
    /// Messages that scripts sent over WebSockets.
    MessagesSaid = "messages_said",
        note "messages were sent over WebSockets and streams of the script, over the whole run; no table has them";
    /// Messages that came over WebSockets of scripts.
    MessagesHeard = "messages_heard",
        note "messages came over WebSockets and streams of the script, over the whole run; no table has them";
    /// Event streams that began.
    EventStreams = "event_streams";
    /// Events that came over them.
    EventsReceived = "events_received";
    /// Those that a step waited for and took.
    EventsTaken = "events_taken";
    /// Those that were larger than an event may be, and were passed over.
    EventsTooLarge = "events_too_large",
        note "events were larger than 1 MiB, or than `limits: body` where that is less, and were passed over";
    /// Event streams that the server ended in order, of which no step knew.
    EventStreamsEnded = "event_streams_ended",
        note "event streams were ended by the server, in order, before the session was over, and no step waited for that or \
              followed; no figure has them";
    /// Events that were kept for a step and given up before it waited, since others came.
    EventsDropped = "events_dropped",
        note "events were dropped by the load generator before the step that waited: at most 64 are held for a stream";
    /// Requests that were sent on because another server has their slot.
    Moved = "moved",
        note "requests were redirected to the server that has their slot now (MOVED); the detour is in their response time";
    /// Requests that were sent on once, while their slot moved.
    Asked = "asked",
        note "requests were redirected once while their slot was being moved (ASK); the detour is in their response time";
    /// How often the map of a cluster was read again.
    MapsRead = "maps_read",
        note "times the map of the cluster was read again while the load was on";
    /// Requests that waited for a place at their server while others had some.
    HeldForServer = "held_for_server",
        note "requests waited in the load generator because all connections to their server were busy; the wait is in their \
              response time";
    /// Cookies for a domain that their host is not in, or that has no dot.
    CookiesForeign = "cookies_foreign",
        note "cookies were not kept: their Domain is none that their host is in, or one without a dot";
    /// Cookies for secured connections only, set over one that is not.
    CookiesInsecure = "cookies_insecure",
        note "cookies are `Secure` and were set over plain HTTP, over which they are not sent back";
    /// Cookies for which there was no room, or that were too large.
    CookiesWithoutRoom = "cookies_without_room",
        note "cookies were not kept: at most 64 are, of 4 KiB each, in a session for each target";
    /// Rows of feeders that sessions were given though others held them, because as many as there are were held.
    RowsNotAlone = "rows_not_alone",
        note "times a session was given a row that another one held, because all rows of its feeder were held; give it more";
    /// TLS handshakes with certificates.
    FullHandshakes = "full_handshakes";
    /// TLS handshakes that were resumed by a ticket or a session of an earlier one.
    ResumedHandshakes = "resumed_handshakes";
    /// Connections that carried requests which were due in the measured window.
    ConnectionsUsed = "connections_used";
    /// Requests that the trace lacks, one in so many, as there were more than may be kept.
    UntracedSampled = "untraced_sampled";
    /// Failed requests that the trace lacks, as there were more than may be kept.
    UntracedFailed = "untraced_failed";
    /// Requests that the trace lacks, as nobody took them in time.
    UntracedLost = "untraced_lost";
}

/// A number for each [`Counter`].
#[derive(Clone, PartialEq, Eq)]
pub struct Counters([u64; Counter::ALL.len()]);

impl Counters {
    /// Those that are not 0.
    pub fn counted(&self) -> impl Iterator<Item = (Counter, u64)> + '_ {
        Counter::ALL.iter().map(|counter| (*counter, self[*counter])).filter(|(_, count)| *count > 0)
    }
}

impl Default for Counters {
    fn default() -> Self {
        Counters([0; Counter::ALL.len()])
    }
}

impl<const N: usize> From<[(Counter, u64); N]> for Counters {
    fn from(counted: [(Counter, u64); N]) -> Self {
        let mut counters = Counters::default();
        counted.into_iter().for_each(|(counter, count)| counters[counter] += count);
        counters
    }
}

impl Index<Counter> for Counters {
    type Output = u64;

    #[inline(always)]
    fn index(&self, counter: Counter) -> &u64 {
        &self.0[counter as usize]
    }
}

impl IndexMut<Counter> for Counters {
    #[inline(always)]
    fn index_mut(&mut self, counter: Counter) -> &mut u64 {
        &mut self.0[counter as usize]
    }
}

impl AddAssign<&Counters> for Counters {
    fn add_assign(&mut self, more: &Counters) {
        self.0.iter_mut().zip(more.0).for_each(|(count, more)| *count = count.saturating_add(more));
    }
}

impl std::fmt::Debug for Counters {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_map().entries(self.counted().map(|(counter, count)| (counter.name(), count))).finish()
    }
}

impl Serialize for Counters {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        // some forms want to know beforehand how many there are
        let counted: Vec<(&str, u64)> =
            self.counted().map(|(counter, count)| (counter.name(), count)).collect();
        serializer.collect_map(counted)
    }
}

impl<'de> Deserialize<'de> for Counters {
    /// What another version counts is passed over.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let named = BTreeMap::<String, u64>::deserialize(deserializer)?;
        let mut counters = Counters::default();
        for counter in Counter::ALL {
            counters[*counter] = named.get(counter.name()).copied().unwrap_or(0);
        }
        Ok(counters)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_counter_has_a_place_and_a_name_of_its_own_and_comes_back_from_a_file() {
        let names: BTreeSet<&str> = Counter::ALL.iter().map(|counter| counter.name()).collect();
        assert_eq!(names.len(), Counter::ALL.len());
        let mut all = Counters::default();
        for (place, counter) in Counter::ALL.iter().enumerate() {
            assert_eq!(*counter as usize, place);
            all[*counter] = place as u64 + 1;
        }
        let text = serde_json::to_string(&all).unwrap();
        assert_eq!(serde_json::from_str::<Counters>(&text).unwrap(), all);
        let bytes = postcard::to_stdvec(&all).unwrap();
        assert_eq!(postcard::from_bytes::<Counters>(&bytes).unwrap(), all);
        let mut twice = all.clone();
        twice += &all;
        assert!(twice.counted().eq(all.counted().map(|(counter, count)| (counter, 2 * count))));
    }

    #[test]
    fn what_was_not_counted_is_not_written_and_what_is_not_known_is_passed_over() {
        let counters = Counters::from([(Counter::Connects, 3), (Counter::Connects, 1)]);
        assert_eq!(serde_json::to_string(&counters).unwrap(), r#"{"connects":4}"#);
        assert_eq!(format!("{counters:?}"), r#"{"connects": 4}"#);
        let read: Counters = serde_json::from_str(r#"{"of_tomorrow":7,"connects":4}"#).unwrap();
        assert_eq!(read, counters);
    }
}
