//! What is counted, and told one by one: operations on entities, as the published service logs them.

use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::http::StatusCode;
use hdrhistogram::Histogram;
use parking_lot::Mutex;
use tidemark_service::encode::DescriptorEncoder;
use tidemark_service::prometheus_client::encoding::EncodeMetric;
use tidemark_service::prometheus_client::metrics::MetricType;
use tidemark_service::prometheus_client::metrics::gauge::ConstGauge;
use tidemark_service::{OperationLog, Timings};

/// What a minute of the metrics is.
const MINUTE: Duration = Duration::from_secs(60);
/// An operation that takes longer is slow.
const SLOW: Duration = Duration::from_secs(1);
/// Longest time that is told apart, in microseconds.
const US_MAX: u64 = 3_600_000_000;

/// An operation on an entity: a request (`get`, `post`, `search`), or one access of a store (`load`, `store`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Operation {
    ParticipantPost,
    ParticipantGet,
    ParticipantStore,
    ParticipantLoad,
    FriendPost,
    FriendGet,
    FriendStore,
    FriendLoad,
    OutboundPost,
    OutboundGet,
    OutboundSearch,
    OutboundStore,
    OutboundLoad,
    InboundGet,
    InboundStore,
    InboundLoad,
}

/// Entity and operation of each.
pub(crate) const NAMES: [(&str, &str); 16] = [
    ("Participant", "post"),
    ("Participant", "get"),
    ("Participant", "store"),
    ("Participant", "load"),
    ("Friend", "post"),
    ("Friend", "get"),
    ("Friend", "store"),
    ("Friend", "load"),
    ("Outbound", "post"),
    ("Outbound", "get"),
    ("Outbound", "search"),
    ("Outbound", "store"),
    ("Outbound", "load"),
    ("Inbound", "get"),
    ("Inbound", "store"),
    ("Inbound", "load"),
];

/// The same for the histograms since the start.
const LABELS: &[&str] = &[
    "participant_post",
    "participant_get",
    "participant_store",
    "participant_load",
    "friend_post",
    "friend_get",
    "friend_store",
    "friend_load",
    "outbound_post",
    "outbound_get",
    "outbound_search",
    "outbound_store",
    "outbound_load",
    "inbound_get",
    "inbound_store",
    "inbound_load",
];

/// What one operation took within a minute.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Minute {
    count: u64,
    slow: u64,
    mean_us: f64,
    median_us: u64,
    p95_us: u64,
}

/// The operation within the minute that goes on, and the one before.
struct Recent {
    begun: Instant,
    now: Histogram<u32>,
    last: Minute,
}

impl Recent {
    /// Lets a minute that is over become the last one.
    fn turn(&mut self, now: Instant) {
        let minutes = now.saturating_duration_since(self.begun).as_secs() / MINUTE.as_secs();
        if minutes == 0 {
            return;
        }
        self.last = if minutes == 1 { minute(&self.now) } else { Minute::default() };
        self.now.reset();
        self.begun += MINUTE * minutes as u32;
    }
}

fn minute(of: &Histogram<u32>) -> Minute {
    let over = of.len() - of.count_between(0, SLOW.as_micros() as u64);
    Minute {
        count: of.len(),
        slow: over,
        mean_us: of.mean(),
        median_us: of.value_at_quantile(0.5),
        p95_us: of.value_at_quantile(0.95),
    }
}

/// Counts operations, since the start and within the last full minute, and tells each to the log where there is one.
pub(crate) struct Operations {
    pub(crate) timings: Arc<Timings>,
    recent: Vec<Mutex<Recent>>,
    log: Option<Arc<OperationLog>>,
}

/// What an operation that fails is answered with.
pub(crate) trait Fails {
    fn status(&self) -> StatusCode;
}

impl Operations {
    pub(crate) fn new(log: Option<Arc<OperationLog>>) -> Self {
        let help = "Time that an operation on an entity took, in seconds";
        let recent = || {
            let now = Histogram::new_with_max(US_MAX, 2).expect("two digits up to an hour are a histogram");
            Mutex::new(Recent { begun: Instant::now(), now, last: Minute::default() })
        };
        Operations {
            timings: Arc::new(Timings::new("newsfeed_operation_seconds", help, "operation", LABELS)),
            recent: NAMES.iter().map(|_| recent()).collect(),
            log,
        }
    }

    /// Enters `count` operations that succeeded and took so long, together.
    pub(crate) fn enter(&self, operation: Operation, count: usize, took: Duration) {
        self.tell(operation, count, took, StatusCode::OK);
        self.timings.record_many(operation as usize, took, count as u64);
        let mut recent = self.recent[operation as usize].lock();
        recent.turn(Instant::now());
        let us = (took.as_micros() as u64).min(US_MAX);
        recent.now.saturating_record_n(us, count as u32);
    }

    /// Enters `count` operations that failed after so long, together: only the log has those.
    pub(crate) fn fail(&self, operation: Operation, count: usize, took: Duration, error: &impl Fails) {
        self.tell(operation, count, took, error.status());
    }

    fn tell(&self, operation: Operation, count: usize, took: Duration, status: StatusCode) {
        if let Some(log) = &self.log {
            log.enter(operation as usize, count, took, status.as_u16());
        }
    }

    /// Awaits something that succeeds or fails, and enters it.
    pub(crate) async fn timed<T, E: Fails>(
        &self,
        operation: Operation,
        work: impl Future<Output = Result<T, E>>,
    ) -> Result<T, E> {
        let began = Instant::now();
        let done = work.await;
        match &done {
            Ok(_) => self.enter(operation, 1, began.elapsed()),
            Err(error) => self.fail(operation, 1, began.elapsed(), error),
        }
        done
    }

    /// Writes what was told to where it goes, as the last thing.
    pub(crate) fn close(&self) {
        if let Some(log) = &self.log {
            log.close();
        }
    }

    /// How many operations are missing in the log.
    pub(crate) fn dropped(&self) -> u64 {
        self.log.as_ref().map_or(0, |log| log.dropped())
    }

    /// Writes the last full minute.
    pub(crate) fn encode(&self, e: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let now = Instant::now();
        let minutes: Vec<Minute> = self
            .recent
            .iter()
            .map(|recent| {
                let mut recent = recent.lock();
                recent.turn(now);
                recent.last
            })
            .collect();
        let mut family = |name: &str, help: &str, of: fn(&Minute) -> f64| -> fmt::Result {
            let mut metric = e.encode_descriptor(name, help, None, MetricType::Gauge)?;
            for ((entity, operation), minute) in NAMES.iter().zip(&minutes) {
                let labels = [("entity", *entity), ("operation", *operation)];
                ConstGauge::new(of(minute)).encode(metric.encode_family(&labels)?)?;
            }
            Ok(())
        };
        family("newsfeed_minute_count", "Operations in the last full minute", |m| m.count as f64)?;
        family("newsfeed_minute_slow", "Of these, those that took more than a second", |m| m.slow as f64)?;
        family("newsfeed_minute_mean_seconds", "Their mean time", |m| m.mean_us / 1e6)?;
        family("newsfeed_minute_median_seconds", "Their median time", |m| m.median_us as f64 / 1e6)?;
        family("newsfeed_minute_p95_seconds", "Their 95th percentile", |m| m.p95_us as f64 / 1e6)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_labels_are_the_same_in_the_same_order() {
        let of_names = NAMES.map(|(entity, operation)| format!("{}_{operation}", entity.to_lowercase()));
        assert_eq!(of_names.as_slice(), LABELS);
        assert_eq!(NAMES[Operation::InboundLoad as usize], ("Inbound", "load"));
        assert_eq!(NAMES[Operation::OutboundSearch as usize], ("Outbound", "search"));
    }

    #[test]
    fn a_minute_is_shown_once_it_is_over_and_until_the_next_is() {
        let operations = Operations::new(None);
        for ms in [1, 2, 3, 2000] {
            operations.enter(Operation::FriendGet, 1, Duration::from_millis(ms));
        }
        operations.enter(Operation::FriendGet, 2, Duration::from_millis(2));
        let mut recent = operations.recent[Operation::FriendGet as usize].lock();
        let begun = recent.begun;
        recent.turn(begun + Duration::from_secs(59));
        assert_eq!(recent.last, Minute::default());
        recent.turn(begun + Duration::from_secs(61));
        let Minute { count, slow, median_us, p95_us, mean_us } = recent.last;
        assert_eq!((count, slow), (6, 1));
        assert!((1_980..2_020).contains(&median_us) && p95_us > 1_900_000 && mean_us > 300_000.0);
        recent.turn(begun + Duration::from_secs(200));
        assert_eq!(recent.last, Minute::default(), "nothing came in the minute that was over last");
        assert_eq!(operations.timings.count(Operation::FriendGet as usize), 6);
    }
}
