//! What a thread writes down: histograms by step and outcome, handed over at each interval's end.
//!
//! The receiver may give intervals back; then their histograms are used again and nothing is allocated any more.

use std::sync::mpsc::{Receiver, SyncSender};

use tidemark_record::ledger::{Entry, Part};
use tidemark_record::{
    ErrorExample, Outcome, OwnKind, OwnSeries, PartSeries, QUIET_US, Series, SlowRequest, ThreadInterval,
    new_histogram,
};

use crate::absence::{self, Absence, Look};
use crate::clock::{SECOND_NS, microseconds};
use crate::parts::Slowest;
use crate::run_queue::RunQueue;
use crate::session::Connecting;

/// First failures of each step and outcome that a thread keeps as examples.
pub(crate) const EXAMPLES_EACH: u8 = 3;
/// Most histograms that a thread keeps for use again.
const POOLED_SERIES: usize = 1024;

/// Status codes that are told apart: three digits.
const STATUSES: usize = 1_000;

/// Where intervals go and come back from.
#[derive(Debug)]
pub(crate) struct Exchange {
    /// To whoever started the drive.
    pub sink: SyncSender<ThreadInterval>,
    /// Emptied intervals.
    pub returned: Receiver<ThreadInterval>,
}

/// The times of one request.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Times {
    /// When it was due.
    pub due_ns: u64,
    /// When its first byte was sent, if it was.
    pub sent_ns: Option<u64>,
    /// When it ended.
    pub end_ns: u64,
    /// How much of the time in between was the driver's own doing.
    pub own_ns: u64,
}

/// What came of a group of steps.
#[derive(Debug, Clone, Copy)]
pub(crate) struct GroupEnd {
    /// Index into the plan's groups.
    pub group: u16,
    /// Good where all its requests were.
    pub outcome: Outcome,
    /// From when its first request was due, and sent, to when its last one ended.
    pub times: Times,
}

/// What is so at an interval's end.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Gauges {
    /// Requests that are due and wait for a connection.
    pub waiting: u64,
    /// Arrivals whose session waits for another one's end.
    pub unbegun: u64,
    /// Open connections.
    pub connections: u64,
    /// Bytes sent and received so far.
    pub traffic: (u64, u64),
}

/// One thread's recorder.
#[derive(Debug)]
pub(crate) struct Recorder {
    exchange: Option<Exchange>,
    current: ThreadInterval,
    start_ns: u64,
    edge_ns: u64,
    window: (u64, u64),
    series: Vec<Option<Series>>,
    /// The same of groups of steps.
    groups: Vec<Option<Series>>,
    pool: Vec<Series>,
    own: Own,
    /// Where the time of good answers went, by label and whether it is measured.
    parts: Vec<Option<PartSeries>>,
    spare_parts: Vec<PartSeries>,
    slowest: Slowest,
    example_counts: Vec<u8>,
    /// Answers by status code to requests that were due in the window, in this interval.
    statuses: Box<[u64; STATUSES]>,
    /// Sockets that carried requests which were due in the window.
    used: Vec<bool>,
    /// Connections that were made, of the whole run.
    connects: u64,
    /// Requests due and not yet ended or dropped.
    outstanding: u64,
    /// Groups of steps of which a request was due, and which are not over.
    groups_open: u64,
    /// Bytes and CPU time when the interval began.
    traffic: (u64, u64),
    cpu_us: u64,
    run_queue: RunQueue,
    /// None where nothing is handed over.
    absence: Option<Absence>,
    lost: u64,
    /// When the last good answer came; the begin where there was none.
    last_good_ns: u64,
    first_failure: Option<ErrorExample>,
    ledger: Part,
}

impl Recorder {
    /// For a plan with `labels` labels; intervals begin at `start_ns`.
    pub fn new(
        thread: usize,
        labels: usize,
        start_ns: u64,
        window: (u64, u64),
        exchange: Option<Exchange>,
    ) -> Self {
        let exchange_there = exchange.is_some();
        let mut recorder = Recorder {
            exchange,
            current: ThreadInterval::empty(thread as u16, 0, 0),
            start_ns,
            edge_ns: 0,
            window,
            series: vec![None; labels * Outcome::ALL.len() * 2],
            groups: Vec::new(),
            pool: Vec::new(),
            own: Own::default(),
            parts: (0..labels * 2).map(|_| None).collect(),
            spare_parts: Vec::new(),
            slowest: Slowest::of(if exchange_there { labels } else { 0 }),
            example_counts: vec![0; labels * Outcome::ALL.len()],
            statuses: Box::new([0; STATUSES]),
            used: Vec::new(),
            connects: 0,
            outstanding: 0,
            groups_open: 0,
            traffic: (0, 0),
            cpu_us: 0,
            run_queue: RunQueue::default(),
            absence: None,
            lost: 0,
            last_good_ns: start_ns,
            first_failure: None,
            ledger: Part::new(thread as u16),
        };
        recorder.edge_ns = recorder.edge_after(start_ns);
        recorder
    }

    /// For a plan with so many groups.
    pub fn with_groups(mut self, groups: usize) -> Self {
        self.groups = vec![None; groups * Outcome::ALL.len() * 2];
        self
    }

    /// For a plan with these metrics of its own.
    pub fn with_metrics(mut self, kinds: impl Iterator<Item = OwnKind>) -> Self {
        self.own = Own::new(kinds);
        self
    }

    /// Called by the thread itself, whose CPU time, waits for a core and absence count from here.
    pub fn begin(&mut self, now_ns: u64) {
        self.cpu_us = thread_cpu_us();
        if self.exchange.is_some() {
            self.run_queue = RunQueue::of_this_thread();
            self.absence = Some(Absence::since(self.look_at(now_ns)));
        }
    }

    fn look_at(&mut self, at_ns: u64) -> Look {
        let waited_ns = self.run_queue.waited_ns().unwrap_or(0);
        let (cpu_ns, suspended_ns) = (absence::thread_cpu_ns(), absence::suspended_ns());
        Look { at_ns, cpu_ns, waited_ns, suspended_ns }
    }

    /// Sees whether the thread was there all the time since the last look.
    pub fn look(&mut self, now_ns: u64) {
        if self.absence.is_none() {
            return;
        }
        let now = self.look_at(now_ns);
        if let Some(absence) = &mut self.absence {
            absence.look(now);
        }
    }

    /// When the thread is to be back for the next look, whatever it waits for.
    pub fn look_ns(&self) -> u64 {
        self.absence.as_ref().map_or(u64::MAX, Absence::next_ns)
    }

    /// Whole seconds, and both edges of the measured window.
    fn edge_after(&self, at_ns: u64) -> u64 {
        let mut edge_ns = (at_ns / SECOND_NS + 1) * SECOND_NS;
        for window_edge_ns in [self.window.0, self.window.1] {
            if window_edge_ns > at_ns && window_edge_ns < edge_ns {
                edge_ns = window_edge_ns;
            }
        }
        edge_ns
    }

    /// When the interval ends.
    pub fn edge_ns(&self) -> u64 {
        self.edge_ns
    }

    /// Requests due and not yet ended or dropped.
    pub fn outstanding(&self) -> u64 {
        self.outstanding
    }

    /// Whether nothing that was due has yet to end: no request, and no group of steps.
    pub fn is_idle(&self) -> bool {
        self.outstanding == 0 && self.groups_open == 0
    }

    /// Intervals that nobody took in time.
    pub fn lost(&self) -> u64 {
        self.lost
    }

    /// A request became due.
    pub fn offered(&mut self, due_ns: u64) {
        self.current.offered += 1;
        self.current.measured_offered += u64::from(self.is_measured(due_ns));
        if due_ns < self.start_ns {
            let end_us = self.edge_after(due_ns) / 1_000;
            self.current.offered_late(end_us.saturating_sub(1));
        }
        self.outstanding += 1;
    }

    /// A request that became due was given up because a bound was reached.
    pub fn dropped(&mut self, due_ns: u64) {
        debug_assert!(self.outstanding > 0, "only what was offered is dropped");
        self.current.dropped += 1;
        self.current.measured_dropped += u64::from(self.is_measured(due_ns));
        self.outstanding -= 1;
    }

    /// A session's first request became due, and never began.
    pub fn given_up_unbegun(&mut self, due_ns: u64) {
        self.offered(due_ns);
        self.dropped(due_ns);
    }

    /// A request that was due then is sent over this socket.
    pub fn used(&mut self, socket: usize, due_ns: u64) {
        if self.is_measured(due_ns) {
            if socket >= self.used.len() {
                self.used.resize(socket + 1, false);
            }
            self.used[socket] = true;
        }
    }

    /// How many sockets carried requests that were due in the window.
    pub fn sockets_used(&self) -> u64 {
        self.used.iter().filter(|used| **used).count() as u64
    }

    /// How many connections were made.
    pub fn connects(&self) -> u64 {
        self.connects
    }

    /// A connection was made.
    pub fn connected(&mut self) {
        self.current.connects += 1;
        self.connects += 1;
    }

    /// A request that was due then left this late, where only the driver was in the way. It counts by when it was due, as
    /// its response time does: what kept it until the window was over made it late within the window.
    pub fn lag(&mut self, due_ns: u64, lag_ns: u64) {
        let lag_us = match self.is_measured(due_ns) {
            true => &mut self.current.lag_us,
            false => &mut self.current.unmeasured_lag_us,
        };
        lag_us.saturating_record(microseconds(lag_ns));
    }

    /// An answer to a request that was due then was read this late.
    pub fn read_lag(&mut self, due_ns: u64, lag_ns: u64) {
        if self.is_measured(due_ns) {
            self.current.read_lag_us.saturating_record(microseconds(lag_ns));
        }
    }

    fn is_measured(&self, due_ns: u64) -> bool {
        self.window.0 <= due_ns && due_ns < self.window.1
    }

    /// A request ended. Intervals that ended before it have been [cut](Recorder::cut) before.
    pub fn ended(&mut self, label: u16, outcome: Outcome, times: &Times) {
        debug_assert!(self.outstanding > 0, "only what was offered ends");
        self.outstanding -= 1;
        let measured = self.is_measured(times.due_ns);
        add(&mut self.series, &mut self.pool, (label, outcome, measured), times);
        if outcome == Outcome::Ok {
            self.heard(times.end_ns);
        } else if outcome != Outcome::Variable {
            let end_us = times.end_ns / 1_000;
            let (first, last) = self.current.failed_us.unwrap_or((end_us, end_us));
            self.current.failed_us = Some((first.min(end_us), last.max(end_us)));
        }
    }

    /// Where the time of a good answer went: a connection was made for its request, or its first bytes came then.
    pub fn parted(
        &mut self,
        label: u16,
        times: &Times,
        connecting: Option<Connecting>,
        begun_ns: Option<u64>,
    ) {
        let measured = self.is_measured(times.due_ns);
        let Some(place) = self.parts.get_mut(label as usize * 2 + usize::from(measured)) else { return };
        let spare = &mut self.spare_parts;
        let parts = place.get_or_insert_with(|| match spare.pop() {
            Some(parts) => PartSeries { label, measured, ..parts },
            None => PartSeries::empty(label, measured),
        });
        if let Some(Connecting { connect_ns, handshake_ns, .. }) = connecting {
            parts.connect_us.saturating_record(microseconds(connect_ns));
            if handshake_ns > 0 {
                parts.handshake_us.saturating_record(microseconds(handshake_ns));
            }
        }
        if let Some((begun_ns, sent_ns)) = begun_ns.zip(times.sent_ns) {
            let begun_ns = begun_ns.max(sent_ns).min(times.end_ns.max(sent_ns));
            let service_ns = times.end_ns.saturating_sub(sent_ns);
            parts.pieces_service_us.saturating_record(microseconds(service_ns));
            parts.first_byte_us.saturating_record(microseconds(begun_ns - sent_ns));
            parts.transfer_us.saturating_record(microseconds(times.end_ns.saturating_sub(begun_ns)));
        }
    }

    /// Whether a request is among the slowest so far.
    pub fn is_slow(&self, label: u16, times: &Times) -> bool {
        self.is_measured(times.due_ns)
            && self.slowest.takes(label, microseconds(times.end_ns.saturating_sub(times.due_ns)))
    }

    /// Keeps one that is; with how it ended, the status of its answer, and its socket.
    pub fn slow(
        &mut self,
        label: u16,
        times: &Times,
        connecting: Option<Connecting>,
        begun_ns: Option<u64>,
        (outcome, status, connection): (Outcome, u16, u32),
    ) {
        let Times { due_ns, end_ns, .. } = *times;
        let sent_ns = times.sent_ns.unwrap_or(end_ns);
        let begun_ns = begun_ns.unwrap_or(end_ns).max(sent_ns).min(end_ns.max(sent_ns));
        let handshake_ns = connecting.map(|of| of.handshake_ns).filter(|ns| *ns > 0);
        self.slowest.keep(SlowRequest {
            label,
            due_us: due_ns / 1_000,
            response_time_us: microseconds(end_ns.saturating_sub(due_ns)),
            outcome,
            status,
            thread: self.current.thread,
            connection,
            connect_us: connecting.map(|of| microseconds(of.connect_ns)),
            handshake_us: handshake_ns.map(microseconds),
            first_byte_us: microseconds(begun_ns - sent_ns),
            transfer_us: microseconds(end_ns.saturating_sub(begun_ns)),
        });
    }

    /// The slowest requests that were answered.
    pub fn take_slowest(&mut self) -> Vec<SlowRequest> {
        self.slowest.take()
    }

    /// So many groups of steps have begun: their first request was due.
    pub fn groups_begun(&mut self, count: u64) {
        self.groups_open += count;
    }

    /// A group is over. It is none of the requests.
    pub fn group_ended(&mut self, end: GroupEnd) {
        debug_assert!(self.groups_open > 0, "only what has begun ends");
        self.groups_open -= 1;
        let measured = self.is_measured(end.times.due_ns);
        add(&mut self.groups, &mut self.pool, (end.group, end.outcome, measured), &end.times);
    }

    /// A number of the scenario's own was measured.
    pub fn measured(&mut self, metric: u16, number: f64) {
        if let Some(series) = self.own.series(metric) {
            series.add(number);
        }
    }

    /// There was no number where one was to be measured; `what` there was is told once.
    pub fn not_measured(&mut self, metric: u16, what: impl FnOnce() -> String) {
        let is_first = self.own.is_first_without(metric);
        if let Some(series) = self.own.series(metric) {
            series.no_number += 1;
            if is_first {
                series.example = Some(what());
            }
        }
    }

    /// The system is alive: a good answer came, or something that it tells unasked. Intervals that ended before have been
    /// cut before.
    pub fn heard(&mut self, at_ns: u64) {
        if at_ns.saturating_sub(self.last_good_ns) >= QUIET_US * 1_000 {
            self.current.quiet.push((self.last_good_ns / 1_000, at_ns / 1_000));
        }
        self.last_good_ns = self.last_good_ns.max(at_ns);
    }

    /// A whole answer came, right or wrong, to a request that was due then; its status is 0 if it has none.
    pub fn answered(&mut self, status: u16, due_ns: u64) {
        if status > 0
            && self.is_measured(due_ns)
            && let Some(count) = self.statuses.get_mut(usize::from(status))
        {
            *count += 1;
        }
    }

    /// A write is about to be sent.
    pub fn enter(&mut self) -> Entry {
        self.ledger.enter()
    }

    /// The write of this number, the last that was entered, was not sent.
    pub fn withdraw(&mut self, number: u64) {
        self.ledger.withdraw(number);
    }

    /// The write of this number was acknowledged.
    pub fn acknowledge(&mut self, number: u64) {
        self.ledger.acknowledge(number);
    }

    /// What was entered and never handed over.
    pub fn take_ledger(&mut self) -> Part {
        std::mem::take(&mut self.ledger)
    }

    /// Whether the next failure of this kind is kept as an example.
    pub fn wants_example(&self, label: u16, outcome: Outcome) -> bool {
        let index = label as usize * Outcome::ALL.len() + outcome as usize;
        self.example_counts[index] < EXAMPLES_EACH
    }

    /// Keeps an example.
    pub fn example(&mut self, at_ns: u64, label: u16, outcome: Outcome, detail: String) {
        self.example_counts[label as usize * Outcome::ALL.len() + outcome as usize] += 1;
        let example = ErrorExample { at_us: at_ns / 1_000, label, outcome, detail };
        if self.exchange.is_none() {
            self.first_failure.get_or_insert(example);
        } else {
            self.current.examples.push(example);
        }
    }

    /// The first failure of a drive that hands nothing over.
    pub fn first_failure(&self) -> Option<&ErrorExample> {
        self.first_failure.as_ref()
    }

    /// Ends every interval whose end is not after `now_ns`.
    pub fn cut(&mut self, now_ns: u64, gauges: Gauges) {
        self.look(now_ns);
        while self.edge_ns <= now_ns {
            self.hand_over(self.edge_ns, now_ns, gauges);
        }
    }

    /// Ends the last interval, wherever it stands.
    pub fn finish(&mut self, now_ns: u64, gauges: Gauges) {
        self.cut(now_ns, gauges);
        if now_ns > self.start_ns {
            self.hand_over(now_ns, now_ns, gauges);
        }
    }

    fn hand_over(&mut self, end_ns: u64, now_ns: u64, gauges: Gauges) {
        let cpu_us = thread_cpu_us();
        let interval = &mut self.current;
        interval.start_us = self.start_ns / 1_000;
        interval.end_us = end_ns / 1_000;
        interval.in_window = self.window.0 <= self.start_ns && end_ns <= self.window.1;
        interval.last_good_us = self.last_good_ns / 1_000;
        interval.waiting = gauges.waiting + gauges.unbegun;
        interval.in_flight = self.outstanding.saturating_sub(gauges.waiting);
        interval.connections = gauges.connections;
        interval.sent_bytes = gauges.traffic.0 - self.traffic.0;
        interval.received_bytes = gauges.traffic.1 - self.traffic.1;
        interval.cpu_us = cpu_us.saturating_sub(self.cpu_us);
        let late_ns = now_ns.saturating_sub(end_ns);
        interval.core_waits = self.run_queue.take(late_ns);
        interval.absent_us = self.absence.as_mut().map_or(0, |absence| absence.take(late_ns));
        interval.series.extend(self.series.iter_mut().filter_map(Option::take));
        interval.groups.extend(self.groups.iter_mut().filter_map(Option::take));
        interval.own.extend(self.own.series.iter_mut().filter_map(Option::take));
        interval.parts.extend(self.parts.iter_mut().filter_map(Option::take));
        for (status, count) in self.statuses.iter_mut().enumerate().filter(|(_, count)| **count > 0) {
            interval.statuses.push((status as u16, std::mem::take(count)));
        }
        if self.exchange.is_some() {
            let used = std::mem::take(&mut interval.ledger);
            interval.ledger = self.ledger.hand_over(used);
        }
        self.traffic = gauges.traffic;
        self.cpu_us = cpu_us;
        self.start_ns = end_ns;
        self.edge_ns = self.edge_after(end_ns);
        let thread = self.current.thread;
        let next = self.next_interval(thread);
        let full = std::mem::replace(&mut self.current, next);
        let Some(exchange) = &self.exchange else {
            return self.take_back(full);
        };
        // A receiver that is gone wants no more; one that is too slow by minutes loses figures, and is told. What was
        // acknowledged is never given up: it goes with the next interval that is taken, or with the thread's end.
        if let Err(error) = exchange.sink.try_send(full) {
            self.lost += 1;
            let (std::sync::mpsc::TrySendError::Full(mut back)
            | std::sync::mpsc::TrySendError::Disconnected(mut back)) = error;
            self.ledger.take_back(std::mem::take(&mut back.ledger));
            self.take_back(back);
        }
    }

    /// An empty interval, out of what came back if anything did.
    fn next_interval(&mut self, thread: u16) -> ThreadInterval {
        let mut found = None;
        while let Some(back) = self.exchange.as_ref().and_then(|e| e.returned.try_recv().ok()) {
            match found {
                None => found = Some(back),
                Some(_) => self.take_back(back),
            }
        }
        let Some(mut next) = found else { return ThreadInterval::empty(thread, 0, 0) };
        self.pool.append(&mut next.series);
        self.pool.append(&mut next.groups);
        self.pool.truncate(POOLED_SERIES);
        self.own.keep(&mut next.own);
        self.spare_parts.append(&mut next.parts);
        self.spare_parts.truncate(self.parts.len());
        next.thread = thread;
        next
    }

    fn take_back(&mut self, interval: ThreadInterval) {
        let mut interval = emptied(interval);
        self.pool.append(&mut interval.series);
        self.pool.append(&mut interval.groups);
        self.pool.truncate(POOLED_SERIES);
        self.own.keep(&mut interval.own);
        self.spare_parts.append(&mut interval.parts);
        self.spare_parts.truncate(self.parts.len());
    }
}

/// What a thread measures of the scenario's own metrics, each by its index.
#[derive(Debug, Default)]
struct Own {
    kinds: Vec<OwnKind>,
    /// In this interval.
    series: Vec<Option<OwnSeries>>,
    /// Empty ones, for use again.
    spare: Vec<Option<OwnSeries>>,
    /// Whether there was no number before.
    without: Vec<bool>,
}

impl Own {
    fn new(kinds: impl Iterator<Item = OwnKind>) -> Own {
        let kinds: Vec<OwnKind> = kinds.collect();
        let none = || kinds.iter().map(|_| None).collect();
        Own { series: none(), spare: none(), without: vec![false; kinds.len()], kinds }
    }

    /// That of a metric in this interval; none where nothing of it is recorded.
    fn series(&mut self, metric: u16) -> Option<&mut OwnSeries> {
        let at = usize::from(metric);
        let kind = *self.kinds.get(at)?;
        let spare = &mut self.spare[at];
        Some(
            self.series[at]
                .get_or_insert_with(|| spare.take().unwrap_or_else(|| OwnSeries::empty(metric, kind))),
        )
    }

    /// Whether there was a number each time until now.
    fn is_first_without(&mut self, metric: u16) -> bool {
        self.without.get_mut(usize::from(metric)).is_some_and(|before| !std::mem::replace(before, true))
    }

    /// Takes emptied ones back.
    fn keep(&mut self, series: &mut Vec<OwnSeries>) {
        for one in series.drain(..) {
            if let Some(spare) = self.spare.get_mut(usize::from(one.metric)) {
                spare.get_or_insert(one);
            }
        }
    }
}

/// Adds the times of one request, or group, to those of its label, outcome and whether it is measured.
fn add(
    all: &mut [Option<Series>],
    pool: &mut Vec<Series>,
    (label, outcome, measured): (u16, Outcome, bool),
    times: &Times,
) {
    let index = (label as usize * Outcome::ALL.len() + outcome as usize) * 2 + usize::from(measured);
    let series = all[index].get_or_insert_with(|| fresh(pool, label, outcome, measured));
    let response_ns = times.end_ns.saturating_sub(times.due_ns);
    series.response_time_us.saturating_record(microseconds(response_ns));
    let less_lag_ns = response_ns.saturating_sub(times.own_ns);
    series.response_time_less_lag_us.saturating_record(microseconds(less_lag_ns));
    if let Some(sent_ns) = times.sent_ns {
        series.service_time_us.saturating_record(microseconds(times.end_ns.saturating_sub(sent_ns)));
    }
}

fn fresh(pool: &mut Vec<Series>, label: u16, outcome: Outcome, measured: bool) -> Series {
    match pool.pop() {
        Some(series) => Series { label, outcome, measured, ..series },
        None => Series {
            label,
            outcome,
            measured,
            response_time_us: new_histogram(),
            response_time_less_lag_us: new_histogram(),
            service_time_us: new_histogram(),
        },
    }
}

/// The same interval with nothing in it; what it had room for is kept.
pub(crate) fn emptied(mut interval: ThreadInterval) -> ThreadInterval {
    interval.clear();
    interval
}

/// CPU time of this thread so far.
fn thread_cpu_us() -> u64 {
    absence::thread_cpu_ns() / 1_000
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::sync_channel;

    use super::*;
    use crate::run_queue::tests::Told;

    const S: u64 = SECOND_NS;

    fn times(due_ns: u64, end_ns: u64) -> Times {
        Times { due_ns, sent_ns: Some(due_ns + 1_000), end_ns, own_ns: 400 }
    }

    #[test]
    fn intervals_end_at_seconds_and_at_the_windows_edges() {
        let (sink, intervals) = sync_channel(16);
        let (_back, returned) = sync_channel(16);
        let window = (S + S / 2, 3 * S + S / 4);
        let mut recorder = Recorder::new(2, 1, S / 10, window, Some(Exchange { sink, returned }));
        recorder.cut(5 * S, Gauges::default());
        recorder.finish(5 * S + 7_000, Gauges::default());
        drop(recorder);
        let all: Vec<(u64, u64, bool)> =
            intervals.iter().map(|i| (i.start_us / 1_000, i.end_us / 1_000, i.in_window)).collect();
        assert_eq!(
            all,
            [
                (100, 1_000, false),
                (1_000, 1_500, false),
                (1_500, 2_000, true),
                (2_000, 3_000, true),
                (3_000, 3_250, true),
                (3_250, 4_000, false),
                (4_000, 5_000, false),
                (5_000, 5_000, false)
            ]
        );
    }

    #[test]
    fn a_request_is_measured_by_when_it_was_due() {
        let (sink, intervals) = sync_channel(16);
        let (_back, returned) = sync_channel(16);
        let mut recorder = Recorder::new(0, 2, 0, (S, 2 * S), Some(Exchange { sink, returned }));
        for (due, end) in [(S - 1, S + 5_000), (S, S + 9_000), (2 * S - 1, 3 * S)] {
            recorder.offered(due);
            recorder.cut(end, Gauges::default());
            recorder.ended(1, Outcome::Ok, &times(due, end));
        }
        recorder.finish(3 * S + 1, Gauges::default());
        drop(recorder);
        let all: Vec<ThreadInterval> = intervals.iter().collect();
        let counts = |measured| -> u64 {
            let of = all.iter().flat_map(|i| &i.series).filter(|s| s.measured == measured);
            of.map(|s| s.response_time_us.len()).sum()
        };
        assert_eq!((counts(false), counts(true)), (1, 2));
        let last = all.last().unwrap();
        assert_eq!(last.series.len(), 1);
        assert_eq!(last.series[0].response_time_us.max() / 1_000, 1_000);
        assert!(all.iter().all(|i| i.series.iter().all(|s| s.label == 1)));
    }

    #[test]
    fn a_wait_for_a_core_over_the_windows_edges_is_in_the_window_as_far_as_it_lies_there() {
        let (sink, intervals) = sync_channel(16);
        let (_back, returned) = sync_channel(16);
        let mut recorder = Recorder::new(0, 1, 0, (S, 3 * S), Some(Exchange { sink, returned }));
        let told = Told::new();
        recorder.run_queue = told.queue();
        // from 0.6 s on, until 1.4 s
        told.say(8 * S / 10, 1);
        recorder.cut(14 * S / 10, Gauges::default());
        told.say(9 * S / 10, 30);
        recorder.cut(2 * S, Gauges::default());
        // from 2.2 s on, until 3.9 s: nobody sees it before it is over
        told.say(26 * S / 10, 31);
        recorder.finish(39 * S / 10, Gauges::default());
        drop(recorder);
        let all: Vec<_> = intervals.iter().map(|i| (i.in_window, i.core_waits.unwrap().waited_us)).collect();
        assert_eq!(all, [(false, 400_000), (true, 500_000), (true, 800_000), (false, 900_000)]);
    }

    #[test]
    fn an_absence_over_the_windows_edges_is_in_the_window_as_far_as_it_lies_there() {
        let (sink, intervals) = sync_channel(16);
        let (_back, returned) = sync_channel(16);
        let mut recorder = Recorder::new(0, 1, 0, (S, 3 * S), Some(Exchange { sink, returned }));
        assert_eq!(recorder.look_ns(), u64::MAX, "nobody drives yet");
        recorder.absence = Some(Absence::since(recorder.look_at(0)));
        let mut now_ns = 0;
        while now_ns < S / 2 {
            now_ns = recorder.look_ns();
            recorder.look(now_ns);
        }
        // there until half of the warm-up, back in the drain
        recorder.finish(35 * S / 10, Gauges::default());
        drop(recorder);
        let all: Vec<_> = intervals.iter().map(|i| (i.in_window, i.absent_us)).collect();
        let [(false, before_us), within @ .., (false, after_us)] = &all[..] else { panic!("{all:?}") };
        assert_eq!(within, [(true, 1_000_000), (true, 1_000_000)]);
        assert_eq!(*after_us, 500_000);
        // from half a second on, less one look and what the test itself works; two clocks are not read at once
        assert!((350_000..=451_000).contains(before_us), "{before_us}");
    }

    #[test]
    fn a_request_is_late_in_the_window_where_it_was_due_in_it() {
        let (sink, intervals) = sync_channel(16);
        let (_back, returned) = sync_channel(16);
        let mut recorder = Recorder::new(0, 1, 0, (S, 2 * S), Some(Exchange { sink, returned }));
        for (due_ns, left_ns) in [(S - 1, S + 1), (S, S + 2), (2 * S - 1, 4 * S), (2 * S, 4 * S)] {
            recorder.cut(left_ns, Gauges::default());
            recorder.lag(due_ns, left_ns - due_ns);
        }
        recorder.finish(5 * S, Gauges::default());
        drop(recorder);
        let all: Vec<_> = intervals.iter().map(|i| (i.lag_us.len(), i.unmeasured_lag_us.len())).collect();
        assert_eq!(all, [(0, 0), (1, 1), (0, 0), (0, 0), (1, 1)]);
    }

    #[test]
    fn a_response_time_is_kept_with_the_drivers_lag_and_without() {
        let (sink, intervals) = sync_channel(16);
        let (_back, returned) = sync_channel(16);
        let mut recorder = Recorder::new(0, 1, 0, (0, S), Some(Exchange { sink, returned }));
        for own_ns in [0, 300_000, 2_000_000] {
            recorder.offered(7_000);
            let times = Times { due_ns: 7_000, sent_ns: None, end_ns: 1_007_000, own_ns };
            recorder.ended(0, Outcome::Ok, &times);
        }
        recorder.finish(S / 2, Gauges::default());
        drop(recorder);
        let all: Vec<ThreadInterval> = intervals.iter().collect();
        let series = &all[0].series[0];
        assert_eq!((series.response_time_us.min(), series.response_time_us.len()), (1_000, 3));
        let less_lag = &series.response_time_less_lag_us;
        assert_eq!([1_000, 700, 0].map(|us| less_lag.count_at(us)), [1; 3], "never below nothing");
    }

    #[test]
    fn what_the_driver_turned_to_late_is_told_with_the_interval_in_which_it_was_due() {
        let (sink, intervals) = sync_channel(16);
        let (_back, returned) = sync_channel(16);
        let window = (2 * S + S / 4, 9 * S);
        let mut recorder = Recorder::new(0, 1, 0, window, Some(Exchange { sink, returned }));
        recorder.offered(S / 2);
        recorder.cut(4 * S + S / 10, Gauges::default());
        for due_ns in [3 * S - 1, 2 * S + S / 4, 2 * S, S + 1, S, 4 * S] {
            recorder.offered(due_ns);
        }
        recorder.finish(5 * S, Gauges::default());
        drop(recorder);
        let all: Vec<ThreadInterval> = intervals.iter().collect();
        assert!(all[..5].iter().all(|interval| interval.offered_earlier.is_empty()));
        let last = all.last().unwrap();
        assert_eq!(last.offered, 6);
        // with the edges of the window the second of it is two intervals
        assert_eq!(last.offered_earlier, [(2_999_999, 2), (2_249_999, 1), (1_999_999, 2)]);
    }

    #[test]
    fn what_comes_back_is_used_again_empty() {
        let (sink, intervals) = sync_channel(16);
        let (back, returned) = sync_channel(16);
        let mut recorder = Recorder::new(0, 1, 0, (0, 100 * S), Some(Exchange { sink, returned }));
        for second in 0..20 {
            recorder.offered(second * S);
            recorder.ended(0, Outcome::Ok, &times(second * S, second * S + 5_000_000));
            recorder.cut((second + 1) * S, Gauges::default());
            let interval = intervals.try_recv().unwrap();
            assert_eq!(interval.offered, 1);
            assert_eq!(interval.series[0].response_time_us.len(), 1);
            back.try_send(emptied(interval)).unwrap();
        }
        assert!(recorder.pool.len() <= 2, "{}", recorder.pool.len());
    }

    #[test]
    fn what_is_told_unasked_is_a_sign_of_life() {
        let (sink, intervals) = sync_channel(16);
        let (_back, returned) = sync_channel(16);
        let mut recorder = Recorder::new(0, 1, 0, (0, 10 * S), Some(Exchange { sink, returned }));
        let tenths = |recorder: &mut Recorder, from: u64, to: u64| {
            (from..to).for_each(|tenth| recorder.heard(tenth * S / 10));
        };
        tenths(&mut recorder, 1, 30);
        recorder.heard(7 * S);
        recorder.cut(8 * S, Gauges::default());
        let quiet: Vec<_> = intervals.try_iter().flat_map(|interval| interval.quiet).collect();
        assert_eq!(quiet, [(2_900_000, 7_000_000)]);
    }

    #[test]
    fn intervals_that_nobody_takes_are_counted() {
        let (sink, _intervals) = sync_channel(2);
        let (_back, returned) = sync_channel(2);
        let mut recorder = Recorder::new(0, 1, 0, (0, S), Some(Exchange { sink, returned }));
        recorder.cut(5 * S, Gauges::default());
        assert_eq!(recorder.lost(), 3);
    }

    #[test]
    fn what_was_acknowledged_is_handed_over_later_where_nobody_took_it_in_time() {
        let (sink, intervals) = sync_channel(2);
        let (_back, returned) = sync_channel(2);
        let mut recorder = Recorder::new(0, 1, 0, (0, 10 * S), Some(Exchange { sink, returned }));
        let enter_until = |recorder: &mut Recorder, second: u64| {
            let entry = recorder.enter();
            recorder.acknowledge(entry.number);
            recorder.cut(second * S, Gauges::default());
        };
        (1..=5).for_each(|second| enter_until(&mut recorder, second));
        let taken = |count| intervals.try_iter().take(count).map(|i| i.ledger.acknowledged()).sum::<u64>();
        assert_eq!((recorder.lost(), taken(2)), (3, 2));
        enter_until(&mut recorder, 6);
        assert_eq!(taken(1), 4, "those of three seconds before, too");
        // and what nobody takes any more goes with the end
        (7..=9).for_each(|second| enter_until(&mut recorder, second));
        assert_eq!((recorder.take_ledger().acknowledged(), taken(2)), (1, 2));
    }

    #[test]
    fn what_is_measured_is_handed_over_with_the_interval_and_its_room_comes_back() {
        let (sink, intervals) = sync_channel(16);
        let (back, returned) = sync_channel(16);
        let recorder = Recorder::new(0, 1, 0, (0, 100 * S), Some(Exchange { sink, returned }));
        let mut recorder = recorder.with_metrics([OwnKind::Histogram, OwnKind::Counter].into_iter());
        for second in 1..=4 {
            recorder.measured(0, 7.0);
            recorder.measured(0, 9.0);
            (0..second).for_each(|_| recorder.not_measured(0, || format!("second {second}")));
            recorder.measured(1, 0.5);
            recorder.measured(2, 3.0);
            recorder.cut(second * S, Gauges::default());
            let interval = intervals.try_recv().unwrap();
            let [numbers, counted] = &interval.own[..] else { panic!("{:?}", interval.own) };
            assert_eq!((numbers.metric, numbers.count, numbers.sum, numbers.no_number), (0, 2, 16.0, second));
            let told = numbers.example.as_deref();
            assert_eq!(told, (second == 1).then_some("second 1"), "the first of all only");
            assert_eq!(numbers.values.as_ref().unwrap().len(), 2);
            assert_eq!((counted.metric, counted.sum, counted.values.is_none()), (1, 0.5, true));
            back.try_send(emptied(interval)).unwrap();
        }
        recorder.cut(5 * S, Gauges::default());
        assert!(intervals.try_recv().unwrap().own.is_empty(), "nothing was measured");
        assert!(recorder.own.spare.iter().all(Option::is_some));
        // where nothing is recorded nothing is kept
        let mut once = Recorder::new(0, 1, 0, (0, S), None);
        once.measured(0, 1.0);
        once.not_measured(0, || panic!("nobody is told"));
    }
}
