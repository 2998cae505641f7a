//! What a driver hands over to whoever started it, as a stream of bytes.
//!
//! A driver that is no thread of the same process writes [`Handover`]s: a [`Hello`] first, what each of its threads did
//! once a second, and at the end how it ended. All times are microseconds since the epoch that its hello names. Each is a
//! [frame](crate::frame). What is read came from elsewhere: lengths are bounded, and what no driver can have done is
//! refused.

use std::io::{self, Read, Write};

use serde::{Deserialize, Serialize};

use crate::interval::{Held, ThreadInterval};
use crate::ledger::Part;
use crate::{DriveEnd, Event, Histogram, Packed, PhaseTimes, Traced, frame};

/// The version of what is handed over. Driver and reader have the same, or do not begin.
pub const HANDOVER_VERSION: u32 = 5;

/// What a driver hands over.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(bound(
    serialize = "H: Serialize, H::Numbers: Serialize",
    deserialize = "H: Deserialize<'de>, H::Numbers: Deserialize<'de>"
))]
pub enum Handover<H: Held = Histogram> {
    /// It is about to begin: always the first.
    Hello(Hello),
    /// What a thread did in one interval, with its [share](ThreadInterval::store_shares), and what it entered in the ledger.
    Interval(Box<ThreadInterval<H>>, Part),
    /// A request as it was.
    Traced(Box<Traced>),
    /// Something that happened.
    Event(Event),
    /// It is over: the last one.
    End(Box<DriveEnd>),
    /// Why it could not begin, or go on: the last one.
    Error(String),
    /// Why it could not go on with threads that it was to take over, of which the first has this number.
    NotTaken(u16, String),
}

/// What a driver is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hello {
    /// Its [`HANDOVER_VERSION`]. First in every version, so that another is known for what it is.
    pub version: u32,
    /// The run's zero, to which all times are relative, microseconds since 1970 UTC.
    pub epoch_us: u64,
    /// How many threads drive.
    pub threads: u16,
    /// When the phases are planned to be.
    pub phases: Vec<PhaseTimes>,
}

impl Handover {
    /// Writes it.
    ///
    /// # Errors
    /// As the writer; `InvalidData` where it is longer than [`FRAME_BYTES_MAX`](crate::frame::FRAME_BYTES_MAX).
    pub fn write(&self, to: &mut dyn Write) -> io::Result<()> {
        frame::write(self, to)
    }

    /// Reads the next one; none where nothing follows.
    ///
    /// # Errors
    /// As the reader; `InvalidData` where it is none that a driver of this version can have written, `UnexpectedEof` where
    /// it is cut off.
    pub fn read(from: &mut dyn Read) -> io::Result<Option<Handover>> {
        frame::bytes(from)?.map(|bytes| Handover::decoded(&bytes)).transpose()
    }
}

impl<'a> Handover<Packed<'a>> {
    /// Reads what was written as one message; its histograms stay packed.
    ///
    /// # Errors
    /// As [`Handover::read`].
    pub fn packed(message: &'a [u8]) -> io::Result<Handover<Packed<'a>>> {
        Handover::decoded(frame::only(message)?)
    }
}

impl<'a, H: Deserialize<'a> + Held<Numbers: Deserialize<'a>>> Handover<H> {
    fn decoded(bytes: &'a [u8]) -> io::Result<Handover<H>> {
        let invalid = |reason: String| io::Error::new(io::ErrorKind::InvalidData, reason);
        match postcard::take_from_bytes::<(u32, u32)>(bytes) {
            Ok(((HELLO, version), _)) if version != HANDOVER_VERSION => {
                let reason =
                    format!("the driver hands over version {version}, and this reads {HANDOVER_VERSION}");
                return Err(invalid(reason));
            }
            _ => {}
        }
        let handover: Handover<H> = frame::decoded(bytes)?;
        match handover.flaw() {
            None => Ok(handover),
            Some(flaw) => Err(invalid(format!("no driver can have done this: {flaw}"))),
        }
    }

    /// What no driver can have done.
    fn flaw(&self) -> Option<&'static str> {
        match self {
            Handover::Interval(interval, part) => {
                let ends_late = interval.start_us >= interval.end_us;
                let is_one = matches!(&interval.shares[..], [share] if share.thread == interval.thread);
                (ends_late.then_some("an interval ends before it begins"))
                    .or((!is_one).then_some("an interval is of no thread, or several"))
                    .or((!part.is_sound()).then_some("it acknowledges what it has not sent"))
            }
            Handover::End(end) => end
                .untaken
                .iter()
                .any(|part| !part.is_sound())
                .then_some("it acknowledges what it has not sent"),
            _ => None,
        }
    }
}

/// How a hello begins.
const HELLO: u32 = 0;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::test_run::{interval, series};
    use crate::{Counter, ErrorExample, LostTime, Outcome, OwnKind, OwnSeries, PartSeries};

    fn hello(version: u32) -> Handover {
        let phases =
            vec![PhaseTimes { name: "hold".into(), start_us: 10_000, end_us: 1_010_000, measured: true }];
        Handover::Hello(Hello { version, epoch_us: 1_700_000_000_000_000, threads: 2, phases })
    }

    /// A second in which everything happened.
    fn second() -> Handover {
        let mut one = interval(1, 3, 4);
        (one.in_window, one.offered, one.measured_offered) = (true, 60, 58);
        one.series = vec![series(0, Outcome::Ok, true, &[(300, 49), (3_600_000_000, 1)])];
        one.series[0].phase = Some(2);
        one.groups = vec![series(7, Outcome::Reset, false, &[(700, 9)])];
        one.counters[Counter::Connects] = 3;
        one.lag_us.record_n(1_500, 7);
        one.offered_earlier = vec![(2_999_999, 4)];
        one.lost_time = LostTime { refused_us: 5, ..LostTime::default() };
        one.unconnected = vec![(None, 3), (Some(1), 2)];
        one.quiet = vec![(1_000_000, 3_500_000)];
        one.failed_us = Some((3_100_000, 3_200_000));
        one.statuses = vec![(200, 50)];
        let detail = "404: nothing".to_owned();
        one.examples = vec![ErrorExample { at_us: 9, label: 0, outcome: Outcome::Status, detail }];
        let mut own = OwnSeries::empty(0, OwnKind::Histogram);
        own.add(19.5);
        own.add(0.0);
        one.own = vec![own, OwnSeries::empty(1, OwnKind::Counter)];
        let mut parts = PartSeries::empty(0, true);
        parts.connect_us.record_n(90, 2);
        one.parts = vec![parts];
        let mut part = Part::new(1);
        for _ in 0..9 {
            part.enter();
        }
        [0, 1, 4].into_iter().for_each(|number| part.acknowledge(number));
        one.store_shares();
        Handover::Interval(Box::new(one), part)
    }

    fn all() -> Vec<Handover> {
        let counters = [(Counter::Unfinished, 2), (Counter::SentAgain, 1)].into();
        let end = DriveEnd { ended_us: 5_000_000, counters, io: "epoll".into(), ..DriveEnd::default() };
        let event = Event { at_us: -7, kind: "driver".into(), text: "its clock was set".into() };
        let error = Handover::Error("no sockets".into());
        let (end, not_taken) = (Handover::End(Box::new(end)), Handover::NotTaken(7, "no ports".into()));
        vec![hello(HANDOVER_VERSION), second(), Handover::Event(event), end, error, not_taken]
    }

    fn stream(all: &[Handover]) -> Vec<u8> {
        let mut bytes = Vec::new();
        all.iter().for_each(|one| one.write(&mut bytes).unwrap());
        bytes
    }

    #[test]
    fn what_is_handed_over_comes_back_whole() {
        let bytes = stream(&all());
        let mut reader = &bytes[..];
        for one in all() {
            let read = Handover::read(&mut reader).unwrap().unwrap();
            assert_eq!(stream(&[read]), stream(&[one]));
        }
        assert!(Handover::read(&mut reader).unwrap().is_none());
    }

    #[test]
    fn another_version_is_known_for_what_it_is() {
        // whatever follows the version then
        let mut bytes = stream(&[hello(HANDOVER_VERSION + 1)]);
        let error = Handover::read(&mut &bytes[..]).unwrap_err().to_string();
        let version = format!("hands over version {}", HANDOVER_VERSION + 1);
        assert!(error.contains(&version), "{error}");
        let last = bytes.len() - 1;
        bytes[last] = 0xff;
        assert_eq!(Handover::read(&mut &bytes[..]).unwrap_err().to_string(), error);
    }

    #[test]
    fn what_no_driver_can_have_done_is_refused() {
        let refused = |change: fn(&mut ThreadInterval, &mut Part)| {
            let Handover::Interval(mut interval, mut part) = second() else { unreachable!() };
            change(&mut interval, &mut part);
            let bytes = stream(&[Handover::Interval(interval, part)]);
            Handover::read(&mut &bytes[..]).unwrap_err().to_string()
        };
        assert!(refused(|interval, _| interval.start_us = interval.end_us).contains("before it begins"));
        assert!(refused(|_, part| *part = Part::acknowledging(9, 3..11)).contains("has not sent"));
        assert!(refused(|_, part| *part = Part::acknowledging(u64::MAX, 0..1)).contains("has not sent"));
    }

    proptest! {
        /// Bytes that were changed, cut off, or are none of ours are read or refused; nobody panics.
        #[test]
        fn damaged_streams_are_read_or_refused(
            changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..8),
            length in any::<prop::sample::Index>(),
        ) {
            let mut bytes = stream(&all());
            for (at, byte) in changes {
                let at = at.index(bytes.len());
                bytes[at] = byte;
            }
            bytes.truncate(length.index(bytes.len() + 1));
            let mut reader = &bytes[..];
            while let Ok(Some(_)) = Handover::read(&mut reader) {}
        }

        #[test]
        fn any_message_is_read_or_refused(message in prop::collection::vec(any::<u8>(), 0..300)) {
            let bytes = [&(message.len() as u32).to_le_bytes()[..], &message].concat();
            let _ = Handover::read(&mut &bytes[..]);
        }
    }
}
