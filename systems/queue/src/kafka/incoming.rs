//! The receiving end: fetches as far as there is room, puts what comes into the queue once and in order, and commits what was
//! taken out of it.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rdkafka::consumer::{CommitMode, Consumer as _};
use rdkafka::error::KafkaError;
use rdkafka::message::Message as _;
use rdkafka::{Offset, TopicPartitionList};

use super::log::{Log, Record, is_final};
use super::{TURN, Topic};
use crate::remote::{GIVEN_UP, Message, Options, RemoteError, RemoteFailure, read};
use crate::taken::Taken;
use crate::{Receiver, Sender};

/// Links a topic to a [`Receiver`]. It begins at the position that is given ([`Options::position`]). Without one it goes on
/// behind what its group has committed. Where nothing was committed, it begins with the topic.
///
/// # Errors
/// If the topic does not answer in time ([`Options::within`]), or does not have the position.
pub fn receive<T: Message>(topic: &Topic, options: Options) -> Result<(Receiver<T>, Incoming), RemoteError> {
    let unreachable = |error| topic.unreachable(error);
    let mut log = Log::open(topic, options.message_bytes_max, options.within).map_err(unreachable)?;
    let (low, last) = log.last().map_err(unreachable)?;
    let committed = if options.position.is_some() { None } else { log.committed().map_err(unreachable)? };
    let (offset, expected) = match (options.position, committed) {
        (Some(position), _) => {
            let end = last.and_then(|last| last.number()).map_or(0, |number| number + 1);
            if position > end {
                let reason = format!(
                    "topic {} ends before message {end}, and begins with {position} here",
                    topic.name
                );
                return Err(RemoteError::Refused(reason));
            }
            (log.offset_of(position).map_err(unreachable)?, Some(position))
        }
        (None, Some(offset)) => (offset, None),
        (None, None) => (low, Some(0)),
    };
    log.go_to(offset).map_err(unreachable)?;
    let (sender, receiver) = options.queue.queue();
    let stops = Arc::new(AtomicBool::new(false));
    let receiving = Receiving {
        topic: topic.clone(),
        log,
        taken: sender.taken(),
        sender: Some(sender),
        stops: stops.clone(),
        commits: options.position.is_none(),
        expected,
        put: 0,
        offsets: VecDeque::new(),
    };
    let thread = std::thread::Builder::new().name("queue receiver".into());
    let thread = thread.spawn(move || receiving.run());
    let thread =
        thread.map_err(|error| RemoteError::Refused(format!("no thread can be started: {error}")))?;
    Ok((receiver, Incoming { stops, thread: Some(thread) }))
}

/// The receiving end's hold on its link. Dropped, it commits what was taken, and fetches no more.
pub struct Incoming {
    stops: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Drop for Incoming {
    fn drop(&mut self) {
        self.stops.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            // it says nothing
            let _ = thread.join();
        }
    }
}

impl std::fmt::Debug for Incoming {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Incoming(..)")
    }
}

struct Receiving<T> {
    topic: Topic,
    log: Log,
    taken: Taken<T>,
    /// Until the queue in the topic has ended.
    sender: Option<Sender<T>>,
    stops: Arc<AtomicBool>,
    /// Whether the group keeps the position.
    commits: bool,
    /// The number that comes next, where it is known.
    expected: Option<u64>,
    /// Messages that were put into the queue.
    put: u64,
    /// Where to go on when so many of these have been taken; of each that may not be.
    offsets: VecDeque<(u64, i64)>,
}

impl<T: Message> Receiving<T> {
    fn run(mut self) {
        let list = self.topic.list();
        let mut is_paused = false;
        let mut committed = Instant::now();
        while !self.stops.load(Ordering::Acquire) && !self.is_over() {
            if !self.has_room() {
                let is_full =
                    self.taken.wait(Instant::now() + TURN, || self.has_room().then_some(())).is_none();
                // not at once: what was fetched ahead is fetched again then
                is_paused = is_paused || is_full && self.log.consumer.pause(&list).is_ok();
            } else {
                is_paused = is_paused && self.log.consumer.resume(&list).is_err();
                self.fetch();
            }
            if committed.elapsed() >= TURN {
                self.commit(CommitMode::Async);
                committed = Instant::now();
            }
        }
        self.commit(CommitMode::Sync);
        // nobody takes this for the end
        if let Some(sender) = self.sender {
            sender.fail(RemoteFailure(GIVEN_UP.into()));
        }
    }

    /// Whether nothing will be taken any more.
    fn is_over(&self) -> bool {
        self.taken.is_over()
    }

    fn has_room(&self) -> bool {
        // an ended queue takes nothing
        self.sender.is_some()
            && !self.taken.is_closed()
            && self.put < self.taken.count() + self.taken.capacity()
    }

    /// Waits for records and puts what is there into the queue, as far as there is room.
    fn fetch(&mut self) {
        let room = self.taken.count() + self.taken.capacity() - self.put;
        let (mut messages, mut wait, mut last, mut end) = (Vec::new(), TURN, None, None);
        while (messages.len() as u64) < room && end.is_none() {
            let polled = self.log.consumer.poll(wait);
            match polled.map(|polled| polled.map(|record| (record.offset(), Record::of(&record)))) {
                Some(Ok((offset, record))) => match self.next(record) {
                    Ok(Some(Record::Message { number, payload, .. })) => match read(&payload, number) {
                        Ok(message) => {
                            messages.push(message);
                            last = Some(offset);
                        }
                        Err(error) => end = Some(Some(error.to_string())),
                    },
                    Ok(Some(Record::End { failure, .. })) => end = Some(failure),
                    Ok(_) => {}
                    Err(error) => end = Some(Some(error)),
                },
                Some(Err(error)) if is_final(&error) => end = Some(Some(error.to_string())),
                Some(Err(KafkaError::PartitionEOF(_))) | None => break,
                Some(Err(_)) => {}
            }
            wait = Duration::ZERO;
        }
        let Some(sender) = &mut self.sender else { return };
        self.put += messages.len() as u64;
        if self.commits
            && let Some(last) = last
        {
            self.offsets.push_back((self.put, last + 1));
        }
        // there is room; a queue that was closed meanwhile takes nothing
        let sent = sender.try_send_batch(&mut messages.into_iter());
        debug_assert!(sent.is_ok() || sender.is_closed());
        if let Some(failure) = end {
            match (self.sender.take(), failure) {
                (Some(sender), Some(failure)) => sender.fail(RemoteFailure(failure)),
                (sender, _) => drop(sender),
            }
        }
    }

    /// The record, if it is the next one. None where it is known.
    fn next(&mut self, record: Record) -> Result<Option<Record>, String> {
        let topic = &self.topic.name;
        let Some(number) = record.number() else {
            return Err(format!("topic {topic} holds what is no message of a queue"));
        };
        let expected = self.expected.unwrap_or(number);
        if number > expected {
            return Err(format!("topic {topic} goes on with message {number}, and {expected} is missing"));
        }
        self.expected = Some(expected.max(number + 1));
        Ok((number == expected).then_some(record))
    }

    /// Commits the offset behind what was taken.
    fn commit(&mut self, mode: CommitMode) {
        let taken = self.taken.count();
        let mut behind = None;
        while let Some((_, offset)) = self.offsets.front().filter(|(put, _)| *put <= taken) {
            behind = Some(*offset);
            self.offsets.pop_front();
        }
        let Some(behind) = behind else { return };
        let mut list = TopicPartitionList::new();
        let listed =
            list.add_partition_offset(&self.topic.name, self.topic.partition, Offset::Offset(behind));
        // what is not committed comes again after a restart, which is what is claimed
        let _ = listed.and_then(|()| self.log.consumer.commit(&list, mode));
    }
}
