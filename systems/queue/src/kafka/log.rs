//! A partition's committed records, and where in it which number is.

use std::time::{Duration, Instant};

use rdkafka::Offset;
use rdkafka::config::FromClientConfigAndContext;
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::error::{KafkaError, KafkaResult, RDKafkaErrorCode};
use rdkafka::message::{BorrowedMessage, Header, Headers as _, Message as _, OwnedHeaders};

use super::{Quiet, TURN, Topic};

/// The headers with a message's number and its sender's, and that of the record which is the end: without a value, or with a
/// failure's text.
const NUMBER: &str = "number";
const SENDER: &str = "sender";
const END: &str = "end";
/// Fetched ahead, KiB.
const FETCHED_KIB_MAX: &str = "4096";

/// What a record is.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Record {
    Message { number: u64, sender: u64, payload: Vec<u8> },
    End { number: u64, sender: u64, failure: Option<String> },
    Foreign,
}

impl Record {
    pub(super) fn of(message: &BorrowedMessage<'_>) -> Record {
        let headers = message.headers().into_iter().flat_map(|headers| headers.iter());
        let headers = headers.map(|header| (header.key.to_owned(), header.value.map(<[u8]>::to_vec)));
        Record::of_parts(headers, message.payload().unwrap_or_default())
    }

    fn of_parts(headers: impl Iterator<Item = (String, Option<Vec<u8>>)>, payload: &[u8]) -> Record {
        let (mut number, mut sender, mut end) = (None, None, None);
        for (key, value) in headers {
            match (&*key, value) {
                (NUMBER, Some(value)) => number = value.try_into().ok().map(u64::from_be_bytes),
                (SENDER, Some(value)) => sender = value.try_into().ok().map(u64::from_be_bytes),
                (END, value) => end = Some(value.map(|text| String::from_utf8_lossy(&text).into_owned())),
                _ => {}
            }
        }
        let sender = sender.unwrap_or_default();
        match (number, end) {
            // so that what comes next has a number, too
            (None | Some(u64::MAX), _) => Record::Foreign,
            (Some(number), None) => Record::Message { number, sender, payload: payload.to_vec() },
            (Some(number), Some(failure)) => Record::End { number, sender, failure },
        }
    }

    pub(super) fn number(&self) -> Option<u64> {
        match self {
            Record::Message { number, .. } | Record::End { number, .. } => Some(*number),
            Record::Foreign => None,
        }
    }

    /// The sender's own number; 0 where it has none.
    pub(super) fn sender(&self) -> u64 {
        match self {
            Record::Message { sender, .. } | Record::End { sender, .. } => *sender,
            Record::Foreign => 0,
        }
    }

    /// The headers of such a record.
    pub(super) fn headers(&self) -> OwnedHeaders {
        let numbers = [(NUMBER, self.number().unwrap_or_default()), (SENDER, self.sender())];
        let with = |headers: OwnedHeaders, (key, number): (&str, u64)| {
            headers.insert(Header { key, value: Some(&number.to_be_bytes()) })
        };
        let headers = numbers.into_iter().fold(OwnedHeaders::new(), with);
        match self {
            Record::End { failure, .. } => headers.insert(Header { key: END, value: failure.as_deref() }),
            Record::Message { .. } | Record::Foreign => headers,
        }
    }
}

/// A consumer of the partition.
pub(super) struct Log {
    pub(super) consumer: BaseConsumer<Quiet>,
    topic: Topic,
    within: Duration,
    is_assigned: bool,
}

impl Log {
    pub(super) fn open(topic: &Topic, message_bytes_max: usize, within: Duration) -> KafkaResult<Log> {
        let mut config = topic.config();
        config
            .set("group.id", &topic.group)
            .set("isolation.level", "read_committed")
            .set("enable.auto.commit", "false")
            .set("enable.auto.offset.store", "false")
            .set("enable.partition.eof", "true")
            // what is gone is an error
            .set("auto.offset.reset", "error")
            .set("fetch.wait.max.ms", "50")
            .set("fetch.message.max.bytes", (message_bytes_max + (1 << 16)).to_string())
            .set("queued.max.messages.kbytes", FETCHED_KIB_MAX)
            // a program may leave its messages for long
            .set("max.poll.interval.ms", "86400000");
        let consumer = BaseConsumer::from_config_and_context(&config, Quiet)?;
        Ok(Log { consumer, topic: topic.clone(), within, is_assigned: false })
    }

    /// Reads on from this offset.
    pub(super) fn go_to(&mut self, offset: i64) -> KafkaResult<()> {
        if self.is_assigned {
            let (name, partition) = (&self.topic.name, self.topic.partition);
            return self.consumer.seek(name, partition, Offset::Offset(offset), self.within);
        }
        let mut list = self.topic.list();
        list.set_all_offsets(Offset::Offset(offset))?;
        self.consumer.assign(&list)
    }

    /// The first record at this offset or behind it, with its own offset.
    fn first_from(&mut self, offset: i64) -> KafkaResult<Option<(i64, Record)>> {
        self.go_to(offset)?;
        let begun = Instant::now();
        loop {
            match self.consumer.poll(TURN) {
                Some(Ok(message)) => {
                    self.is_assigned = true;
                    return Ok(Some((message.offset(), Record::of(&message))));
                }
                Some(Err(KafkaError::PartitionEOF(_))) => {
                    self.is_assigned = true;
                    return Ok(None);
                }
                Some(Err(error)) if is_final(&error) || begun.elapsed() > self.within => return Err(error),
                None if begun.elapsed() > self.within => {
                    return Err(KafkaError::MessageConsumption(RDKafkaErrorCode::OperationTimedOut));
                }
                Some(Err(_)) | None => {}
            }
        }
    }

    fn offsets(&self) -> KafkaResult<(i64, i64)> {
        self.consumer.fetch_watermarks(&self.topic.name, self.topic.partition, self.within)
    }

    /// The last record, and the offset of the first one that is still there.
    pub(super) fn last(&mut self) -> KafkaResult<(i64, Option<Record>)> {
        let (low, high) = self.offsets()?;
        let (mut found, mut there, mut none) = (None, low, high);
        // mostly a commit's marker is behind it
        let mut look = (high - 2).max(low);
        while there < none {
            match self.first_from(look)? {
                Some((offset, record)) => (found, there) = (Some(record), offset + 1),
                None => none = look,
            }
            look = there + (none - there) / 2;
        }
        Ok((low, found))
    }

    /// The offset from which on messages have this number or a later one.
    pub(super) fn offset_of(&mut self, number: u64) -> KafkaResult<i64> {
        let (mut before, mut from) = self.offsets()?;
        while before < from {
            let look = before + (from - before) / 2;
            match self.first_from(look)? {
                Some((offset, record)) if record.number().is_some_and(|found| found < number) => {
                    before = offset + 1;
                }
                Some(_) | None => from = look,
            }
        }
        Ok(before)
    }

    /// The offset that the group has committed, if it has.
    pub(super) fn committed(&self) -> KafkaResult<Option<i64>> {
        let committed = self.consumer.committed_offsets(self.topic.list(), self.within)?;
        Ok(committed.elements().iter().find_map(|partition| match partition.offset() {
            Offset::Offset(offset) => Some(offset),
            _ => None,
        }))
    }
}

/// Whether an error of a consumer does not pass by itself.
pub(super) fn is_final(error: &KafkaError) -> bool {
    matches!(
        error.rdkafka_error_code(),
        Some(
            RDKafkaErrorCode::AutoOffsetReset
                | RDKafkaErrorCode::OffsetOutOfRange
                | RDKafkaErrorCode::TopicAuthorizationFailed
                | RDKafkaErrorCode::GroupAuthorizationFailed
                | RDKafkaErrorCode::Fatal
        )
    )
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn parts(headers: &OwnedHeaders) -> impl Iterator<Item = (String, Option<Vec<u8>>)> {
        headers.iter().map(|header| (header.key.to_owned(), header.value.map(<[u8]>::to_vec)))
    }

    #[test]
    fn what_a_record_says_is_found_in_it() {
        for record in [
            Record::Message { number: 7, sender: u64::MAX, payload: b"seven".to_vec() },
            Record::End { number: 8, sender: 9, failure: None },
            Record::End { number: 8, sender: 9, failure: Some("out of paper".into()) },
        ] {
            let payload = if let Record::Message { payload, .. } = &record { &payload[..] } else { &[] };
            assert_eq!(Record::of_parts(parts(&record.headers()), payload), record);
        }
    }

    proptest! {
        #[test]
        fn any_headers_are_a_record_or_foreign(
            headers in prop::collection::vec(
                (prop_oneof![Just(NUMBER), Just(SENDER), Just(END), Just("other")], any::<Option<Vec<u8>>>()),
                0..4,
            ),
            payload in any::<Vec<u8>>(),
        ) {
            let headers = headers.into_iter().map(|(key, value)| (key.to_owned(), value));
            if let Record::Message { number, payload: found, .. } = Record::of_parts(headers, &payload) {
                prop_assert!(number < u64::MAX);
                prop_assert_eq!(found, payload);
            }
        }
    }
}
