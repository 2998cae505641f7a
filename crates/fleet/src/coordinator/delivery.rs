//! What members of a run hand over: a stream at NATS, read in order, and once.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::SyncSender;
use std::time::{Duration, Instant};

use async_nats::Client;
use async_nats::jetstream::Context;
use async_nats::jetstream::consumer::{DeliverPolicy, pull};
use async_nats::jetstream::stream::{self, StorageType};
use futures_util::StreamExt as _;

use super::{EXPIRES, Told};
use crate::BEAT;
use crate::error::FleetError;
use crate::pieces::Joiner;
use crate::protocol::{stream_of, told_by};

/// What lies in a run's stream at most, bytes; what comes then waits at the agents.
const STREAM_BYTES_MAX: i64 = 4 << 30;
/// How often what was taken is removed from the stream.
const PURGE_EVERY: Duration = Duration::from_secs(10);
/// The time that a server remembers which messages came.
const REPEATED_WITHIN: Duration = Duration::from_secs(120);

/// How far the stream of a run was read: by the numbers that the server gives its messages.
#[derive(Default)]
pub(super) struct Reading {
    /// The last one that was read.
    pub(super) read: AtomicU64,
    /// The last one that ends a message which was put where somebody takes it, the last one of these that was taken, and the last
    /// one with which he is done.
    pub(super) put: AtomicU64,
    pub(super) told: AtomicU64,
    pub(super) done: AtomicU64,
}

/// Makes the stream through which members of a run hand over.
pub(super) async fn make_stream(jetstream: &Context, run: &str) -> Result<(), FleetError> {
    let config = stream::Config {
        name: stream_of(run),
        subjects: vec![told_by(run, "*")],
        max_bytes: STREAM_BYTES_MAX,
        max_age: EXPIRES,
        discard: stream::DiscardPolicy::New,
        // a restart of the server loses nothing
        storage: StorageType::File,
        duplicate_window: REPEATED_WITHIN,
        ..stream::Config::default()
    };
    let made = jetstream.create_stream(config).await;
    made.map(|_| ()).map_err(|error| FleetError::nats("a stream (is JetStream on: nats-server -js?)", error))
}

/// Takes what members hand over, in order, whatever becomes of the connection, until nobody wants it any more.
pub(super) async fn deliver(
    nats: &(Client, Context),
    run: &str,
    members: usize,
    (joiner, reading): (&mut Joiner, &Reading),
    sink: &SyncSender<(Told, u64)>,
) {
    let mut next = 1;
    let mut purging = Purging { last: Instant::now(), begun: BTreeMap::new() };
    loop {
        let _ = follow(nats, run, members, sink, (&mut *joiner, reading, &mut next, &mut purging)).await;
        if sink_is_gone(sink) {
            return;
        }
        tokio::time::sleep(BEAT / 4).await;
    }
}

/// What was taken is removed from the server from time to time.
struct Purging {
    last: Instant,
    /// Where the messages begin that have not come whole, by member.
    begun: BTreeMap<usize, u64>,
}

impl Purging {
    /// Everything below this number is done with: also who goes on with the run needs none of it.
    fn end(&self, done: u64) -> u64 {
        self.begun.values().copied().min().unwrap_or(u64::MAX).min(done + 1)
    }
}

/// The number of the last message in a run's stream.
pub(super) async fn last_sequence(jetstream: &Context, run: &str) -> Result<u64, async_nats::Error> {
    Ok(jetstream.get_stream(stream_of(run)).await?.cached_info().state.last_sequence)
}

/// The number of the last message of a member that is in a run's stream; 0 where there is none.
pub(super) async fn last_of(jetstream: &Context, run: &str, member: usize) -> Result<u64, async_nats::Error> {
    let stream = jetstream.get_stream(stream_of(run)).await?;
    match stream.get_last_raw_message_by_subject(&told_by(run, &member.to_string())).await {
        Ok(last) => Ok(last.sequence),
        Err(error) if error.kind() == stream::LastRawMessageErrorKind::NoMessageFound => Ok(0),
        Err(error) => Err(error.into()),
    }
}

/// Whether nobody takes anything: a look costs a message that is passed over.
fn sink_is_gone(sink: &SyncSender<(Told, u64)>) -> bool {
    let nothing = ((usize::MAX, Ok(Vec::new())), 0);
    matches!(sink.try_send(nothing), Err(std::sync::mpsc::TrySendError::Disconnected(_)))
}

async fn follow(
    (client, jetstream): &(Client, Context),
    run: &str,
    members: usize,
    sink: &SyncSender<(Told, u64)>,
    (joiner, reading, next, purging): (&mut Joiner, &Reading, &mut u64, &mut Purging),
) -> Result<(), async_nats::Error> {
    let stream = jetstream.get_stream(stream_of(run)).await?;
    let config = pull::OrderedConfig {
        deliver_policy: DeliverPolicy::ByStartSequence { start_sequence: *next },
        ..pull::OrderedConfig::default()
    };
    let mut messages = stream.create_consumer(config).await?.messages().await?;
    let connections = || client.statistics().connects.load(Ordering::Relaxed);
    let connected = connections();
    loop {
        let message = match tokio::time::timeout(BEAT, messages.next()).await {
            Ok(Some(message)) => message?,
            Ok(None) => return Ok(()),
            // a consumer does not outlive its server, which would be found out only after half a minute
            Err(_) if connections() != connected || sink_is_gone(sink) => return Ok(()),
            // what the server has and the consumer does not deliver is asked for anew
            Err(_) if last_sequence(jetstream, run).await? >= *next => return Ok(()),
            Err(_) => continue,
        };
        let sequence = message.info()?.stream_sequence;
        if sequence < *next {
            continue;
        }
        *next = sequence + 1;
        let member = message.subject.rsplit('.').next().and_then(|member| member.parse::<usize>().ok());
        let Some(member) = member.filter(|member| *member < members) else { continue };
        let told = match joiner.add(member, &message.payload) {
            Ok(None) => {
                if joiner.is_within(member) {
                    purging.begun.entry(member).or_insert(sequence);
                }
                reading.read.store(sequence, Ordering::Release);
                continue;
            }
            Ok(Some(told)) => Ok(told),
            Err(flaw) => Err(flaw.to_string()),
        };
        purging.begun.remove(&member);
        reading.put.store(sequence, Ordering::Relaxed);
        // what is not taken stays at the server: the runtime has a thread for those who wait
        if tokio::task::block_in_place(|| sink.send(((member, told), sequence))).is_err() {
            return Ok(());
        }
        reading.read.store(sequence, Ordering::Release);
        if purging.last.elapsed() > PURGE_EVERY {
            purging.last = Instant::now();
            let end = purging.end(reading.done.load(Ordering::Relaxed));
            let _ = stream.purge().sequence(end).await;
        }
    }
}
