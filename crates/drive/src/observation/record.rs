//! What a thread writes down: histograms by step and outcome, handed over at each interval's end.
//!
//! The receiver may give intervals back; then their histograms are used again and nothing is allocated any more.

use std::sync::mpsc::{Receiver, SyncSender};

use tidemark_record::ledger::{Entry, Part};
use tidemark_record::{
    Counter, ErrorExample, GrpcCode, LostTime, Outcome, OwnKind, OwnSeries, PartSeries, QUIET_US, Series,
    SlowRequest, ThreadInterval,
};

use crate::clock::{SECOND_NS, microseconds};
use crate::observation::absence::{self, Absence, Look};
use crate::observation::parts::parts;
use crate::observation::phases::{Phases, SeriesTable};
use crate::observation::run_queue::RunQueue;
use crate::observation::slowest::Slowest;
use crate::session::times::{Connecting, GroupEnd, Times};

/// First failures of each step and outcome that a thread keeps as examples.
pub(crate) const EXAMPLES_EACH: u8 = 3;
/// Most histograms that a thread keeps for use again.
const POOLED_SERIES: usize = 1024;

/// Status codes that are told apart: three digits, and behind them those of gRPC.
const STATUSES: usize = 1_024;
/// Where those of gRPC begin among them.
const GRPC_STATUSES: usize = 1_000;

/// Where a status is counted; beyond all of them, if it is not.
#[inline]
fn place_of(status: u16) -> usize {
    match usize::from(status) {
        place if place < GRPC_STATUSES => place,
        _ => GrpcCode::of_status(status).map_or(STATUSES, |code| GRPC_STATUSES + code as usize),
    }
}

/// The status that is counted at a place.
fn status_at(place: usize) -> u16 {
    match place.checked_sub(GRPC_STATUSES) {
        Some(number) => GrpcCode::from_number(number as u32).status(),
        None => place as u16,
    }
}

/// Where intervals go and come back from.
#[derive(Debug)]
pub(crate) struct Exchange {
    /// To whoever started the drive.
    pub sink: SyncSender<ThreadInterval>,
    /// Emptied intervals.
    pub returned: Receiver<ThreadInterval>,
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
    /// What is due in it is measured.
    window: (u64, u64),
    /// When the measured time ends: with the window, or when the drive was stopped.
    window_end_ns: u64,
    phases: Phases,
    series: SeriesTable,
    /// The same of groups of steps.
    groups: SeriesTable,
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
    /// Requests due and not yet ended or dropped.
    outstanding: u64,
    /// Those of each label.
    open: Vec<u64>,
    /// Sessions that began in this interval, by kind.
    begun: Vec<u64>,
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
            window_end_ns: window.1,
            phases: Phases::default(),
            series: SeriesTable::of(labels),
            groups: SeriesTable::default(),
            pool: Vec::new(),
            own: Own::default(),
            parts: (0..labels * 2).map(|_| None).collect(),
            spare_parts: Vec::new(),
            slowest: Slowest::of(if exchange_there { labels } else { 0 }),
            example_counts: vec![0; labels * Outcome::ALL.len()],
            statuses: Box::new([0; STATUSES]),
            used: Vec::new(),
            outstanding: 0,
            open: vec![0; labels],
            begun: Vec::new(),
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
        self.groups = SeriesTable::of(groups);
        self
    }

    /// For a plan with so many kinds of sessions.
    pub fn with_kinds(mut self, kinds: usize) -> Self {
        self.begun = vec![0; kinds];
        self
    }

    /// For a load with phases that end then, one after the other from the begin of the first interval on.
    pub fn with_phases(mut self, ends_ns: Vec<u64>) -> Self {
        self.phases = Phases::of(self.start_ns, ends_ns);
        self.edge_ns = self.edge_after(self.start_ns);
        self
    }

    /// For a plan with these metrics of its own.
    pub fn with_metrics(mut self, kinds: impl Iterator<Item = OwnKind>) -> Self {
        self.own = Own::new(kinds);
        self
    }

    /// Called by the thread itself, whose CPU time, waits for a core and absence count from here; one that comes late waited
    /// before.
    pub fn begin(&mut self, now_ns: u64) {
        self.cpu_us = thread_cpu_us();
        if self.exchange.is_some() {
            self.run_queue = RunQueue::of_this_thread();
            self.run_queue.count_before(now_ns.saturating_sub(self.start_ns));
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

    /// Nothing new becomes due from now on, before its time: the measured time ends at `at_ns`, which another thread may
    /// have set a moment ago. What is under way has its end later, as after a window that ends as planned.
    pub fn end_window(&mut self, at_ns: u64, now_ns: u64) {
        self.window_end_ns = self.window_end_ns.min(at_ns);
        // what was due meanwhile counts already; what completes a group that has begun does not
        self.window.1 = self.window.1.min(now_ns.saturating_add(1));
        self.phases.stop(now_ns.saturating_add(1));
        self.edge_ns = self.edge_after(self.start_ns);
    }

    /// Whole seconds, the edges of phases, and both edges of the measured window.
    fn edge_after(&self, at_ns: u64) -> u64 {
        let mut edge_ns = ((at_ns / SECOND_NS + 1) * SECOND_NS).min(self.phases.edge_after(at_ns));
        for window_edge_ns in [self.window.0, self.window_end_ns] {
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

    /// A request of this label became due.
    #[inline(always)]
    pub fn offered(&mut self, label: u16, due_ns: u64) {
        self.open[usize::from(label)] += 1;
        self.count_offered(due_ns);
    }

    #[inline(always)]
    fn count_offered(&mut self, due_ns: u64) {
        self.current.offered += 1;
        self.current.measured_offered += u64::from(self.is_measured(due_ns));
        self.phases.counts(due_ns).0 += 1;
        if due_ns < self.start_ns {
            let end_us = self.edge_after(due_ns) / 1_000;
            self.current.offered_late(end_us.saturating_sub(1));
        }
        self.outstanding += 1;
    }

    /// A request of this label that became due was given up because a bound was reached.
    pub fn dropped(&mut self, label: u16, due_ns: u64) {
        self.open[usize::from(label)] -= 1;
        self.count_dropped(due_ns);
    }

    fn count_dropped(&mut self, due_ns: u64) {
        debug_assert!(self.outstanding > 0, "only what was offered is dropped");
        self.current.dropped += 1;
        self.current.measured_dropped += u64::from(self.is_measured(due_ns));
        self.phases.counts(due_ns).1 += 1;
        self.outstanding -= 1;
    }

    /// A session's first request became due, and never began.
    pub fn given_up_unbegun(&mut self, due_ns: u64) {
        self.count_offered(due_ns);
        self.count_dropped(due_ns);
    }

    /// A request that was due then is sent over this socket.
    #[inline(always)]
    pub fn used(&mut self, socket: usize, due_ns: u64) {
        if self.is_measured(due_ns) {
            match self.used.get_mut(socket) {
                Some(used) => *used = true,
                None => self.used_first(socket),
            }
        }
    }

    fn used_first(&mut self, socket: usize) {
        self.used.resize(socket + 1, false);
        self.used[socket] = true;
    }

    /// How many sockets carried requests that were due in the window.
    pub fn sockets_used(&self) -> u64 {
        self.used.iter().filter(|used| **used).count() as u64
    }

    /// Counts so many in this interval.
    #[inline]
    pub fn count(&mut self, counter: Counter, count: u64) {
        self.current.counters[counter] += count;
    }

    /// A connection was made.
    pub fn connected(&mut self) {
        self.count(Counter::Connects, 1);
    }

    /// A session did nothing but compute for so long.
    pub fn computed(&mut self, time_ns: u64) {
        self.count(Counter::ComputingUs, time_ns / 1_000);
    }

    /// A body of so many bytes was decoded, and has so many now.
    pub fn decoded(&mut self, encoded_bytes: u64, decoded_bytes: u64) {
        self.count(Counter::EncodedBytes, encoded_bytes);
        self.count(Counter::DecodedBytes, decoded_bytes);
    }

    /// A request that was due then left this late, where only the driver was in the way. It counts by when it was due, as
    /// its response time does: what kept it until the window was over made it late within the window.
    pub fn lag(&mut self, due_ns: u64, lag_ns: u64) {
        let lag_us = match self.is_measured(due_ns) {
            true => &mut self.current.lag_us,
            false => &mut self.current.unmeasured_lag_us,
        };
        lag_us.record(microseconds(lag_ns));
    }

    /// An answer to a request that was due then was read this late.
    pub fn read_lag(&mut self, due_ns: u64, lag_ns: u64) {
        if self.is_measured(due_ns) {
            self.current.read_lag_us.record(microseconds(lag_ns));
        }
    }

    /// A step that is no request failed then.
    pub fn step_failed(&mut self, at_ns: u64) {
        self.count(Counter::FailedSteps, u64::from(self.is_measured(at_ns)));
    }

    /// A request of this label that was due then came to nothing for want of a connection.
    /// None: a session's first, which never began.
    pub fn unconnected(&mut self, label: Option<u16>, due_ns: u64) {
        if !self.is_measured(due_ns) {
            return;
        }
        match self.current.unconnected.iter_mut().find(|(known, _)| *known == label) {
            Some((_, count)) => *count += 1,
            None => self.current.unconnected.push((label, 1)),
        }
    }

    fn is_measured(&self, due_ns: u64) -> bool {
        self.window.0 <= due_ns && due_ns < self.window.1
    }

    /// A request ended; whether it was answered, and is among the slowest so far that were. Intervals that ended before it
    /// have been [cut](Recorder::cut) before.
    #[inline(always)]
    pub fn ended(&mut self, label: u16, outcome: Outcome, times: &Times) -> bool {
        debug_assert!(self.outstanding > 0, "only what was offered ends");
        self.outstanding -= 1;
        self.open[usize::from(label)] -= 1;
        let measured = self.is_measured(times.due_ns);
        let phase = self.phases.at(times.due_ns);
        let response_us = self.series.add(&mut self.pool, (label, outcome), (measured, phase), times);
        if outcome == Outcome::Ok {
            self.heard(times.end_ns);
        } else if outcome != Outcome::Variable {
            let end_us = times.end_ns / 1_000;
            let (first, last) = self.current.failed_us.unwrap_or((end_us, end_us));
            self.current.failed_us = Some((first.min(end_us), last.max(end_us)));
        }
        measured && outcome.is_answered() && self.slowest.takes(label, response_us)
    }

    /// Whether a request was open for the whole measured window: it ended behind it, however well.
    #[inline(always)]
    pub fn spans_window(&self, times: &Times) -> bool {
        times.due_ns <= self.window.0 && times.end_ns >= self.window_end_ns
    }

    /// A user's request came to nothing for the window: it failed so, or was open for all of it.
    pub fn came_to_nothing(&mut self, outcome: Outcome, times: &Times) {
        let (from_ns, to_ns) = (self.window.0, self.window_end_ns);
        let within_ns = times.end_ns.min(to_ns).saturating_sub(times.due_ns.max(from_ns));
        let within_us = within_ns / 1_000;
        let LostTime { refused_us, waited_us, stuck_us, stuck } = &mut self.current.lost_time;
        match outcome {
            // what the scenario lacks takes no time
            Outcome::Variable => return,
            Outcome::Ok | Outcome::Timeout | Outcome::Unfinished => *waited_us += within_us,
            Outcome::Status | Outcome::Check | Outcome::Connect | Outcome::Reset | Outcome::Protocol => {
                *refused_us += within_us;
            }
        }
        if within_ns > 0 && times.end_ns >= to_ns && 2 * within_ns >= to_ns.saturating_sub(from_ns) {
            *stuck_us += within_us;
            *stuck += 1;
        }
    }

    /// A good answer, which has just [ended](Recorder::ended), has a body of so many bytes.
    #[inline]
    pub fn body(&mut self, label: u16, due_ns: u64, bytes: u64) {
        let due = (self.is_measured(due_ns), self.phases.at(due_ns));
        self.series.body(label, due, bytes);
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
        let series = place.get_or_insert_with(|| match spare.pop() {
            Some(parts) => PartSeries { label, measured, ..parts },
            None => PartSeries::empty(label, measured),
        });
        let parts = parts(times, connecting, begun_ns);
        if let Some(connect_us) = parts.connect_us {
            series.connect_us.record(connect_us);
        }
        if let Some(handshake_us) = parts.handshake_us {
            series.handshake_us.record(handshake_us);
        }
        if let (Some(_), Some(sent_ns)) = (begun_ns, times.sent_ns) {
            let service_ns = times.end_ns.saturating_sub(sent_ns);
            series.pieces_service_us.record(microseconds(service_ns));
            series.first_byte_us.record(parts.first_byte_us);
            series.transfer_us.record(parts.transfer_us);
        }
    }

    /// Keeps one that is among the slowest so far; with how it ended, the status of its answer, and its socket.
    pub fn slow(
        &mut self,
        label: u16,
        times: &Times,
        connecting: Option<Connecting>,
        begun_ns: Option<u64>,
        (outcome, status, connection): (Outcome, u16, u32),
    ) {
        let Times { due_ns, end_ns, .. } = *times;
        let parts = parts(times, connecting, begun_ns);
        self.slowest.keep(SlowRequest {
            label,
            due_us: due_ns / 1_000,
            response_time_us: microseconds(end_ns.saturating_sub(due_ns)),
            outcome,
            status,
            thread: self.current.thread,
            connection,
            connect_us: parts.connect_us,
            handshake_us: parts.handshake_us,
            first_byte_us: parts.first_byte_us,
            transfer_us: parts.transfer_us,
        });
    }

    /// The slowest requests that were answered.
    pub fn take_slowest(&mut self) -> Vec<SlowRequest> {
        self.slowest.take()
    }

    /// A session of this kind began.
    #[inline]
    pub fn session_begun(&mut self, kind: usize) {
        if let Some(count) = self.begun.get_mut(kind) {
            *count += 1;
        }
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
        let phase = self.phases.at(end.times.due_ns);
        self.groups.add(&mut self.pool, (end.group, end.outcome), (measured, phase), &end.times);
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
            && let Some(count) = self.statuses.get_mut(place_of(status))
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
        interval.in_window = self.window.0 <= self.start_ns && end_ns <= self.window_end_ns;
        interval.last_good_us = self.last_good_ns / 1_000;
        interval.waiting = gauges.waiting + gauges.unbegun;
        interval.in_flight = self.outstanding.saturating_sub(gauges.waiting);
        let open = self.open.iter().enumerate().filter(|(_, count)| **count > 0);
        interval.open_by_label.extend(open.map(|(label, count)| (label as u16, *count)));
        for (kind, count) in self.begun.iter_mut().enumerate().filter(|(_, count)| **count > 0) {
            interval.sessions_begun.push((kind as u16, std::mem::take(count)));
        }
        interval.connections = gauges.connections;
        interval.counters[Counter::SentBytes] = gauges.traffic.0 - self.traffic.0;
        interval.counters[Counter::ReceivedBytes] = gauges.traffic.1 - self.traffic.1;
        interval.cpu_us = cpu_us.saturating_sub(self.cpu_us);
        let late_ns = now_ns.saturating_sub(end_ns);
        interval.core_waits = self.run_queue.take(late_ns);
        interval.absent_us = self.absence.as_mut().map_or(0, |absence| absence.take(late_ns));
        self.series.take_into(&mut interval.series);
        self.groups.take_into(&mut interval.groups);
        self.phases.take_into(&mut interval.by_phase);
        interval.own.extend(self.own.series.iter_mut().filter_map(Option::take));
        interval.parts.extend(self.parts.iter_mut().filter_map(Option::take));
        for (status, count) in self.statuses.iter_mut().enumerate().filter(|(_, count)| **count > 0) {
            interval.statuses.push((status_at(status), std::mem::take(count)));
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
mod tests;
