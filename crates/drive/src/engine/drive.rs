//! Starting, stopping and ending a drive.

mod allotment;
mod check;
mod never;

use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, SyncSender, sync_channel};
use std::thread::JoinHandle;

use tidemark_record::ledger::Part;
use tidemark_record::{Bound, DriveEnd, NotFound, OwnKind, PhaseTimes, Raised, ThreadInterval};
use tidemark_scenario::plan::{Choose, Limits, MetricKind, Op, SessionKind, SlotIndex};
use tidemark_scenario::{Plan, Shared};

use crate::DriveOptions;
use crate::clock::{Clock, MILLISECOND_NS, SECOND_NS, nanoseconds};
use crate::engine::ahead::Ahead;
use crate::engine::codes;
use crate::engine::programs;
use crate::engine::request::Prepared;
use crate::engine::thread::{Bounds, Control, Flow, Thread, ThreadEnd};
use crate::engine::timers::Timers;
use crate::engine::waiting::{most_slots, most_waiting};
use crate::error::{DriveError, ONCE_THREAD, OnceError};
use crate::io::machine;
use crate::io::{Io, IoChoice, Poller, Timestamps, Waker};
use crate::observation::record::{Exchange, Recorder, emptied};
use crate::observation::secret_variables::SecretVariables;
use crate::observation::step_log::{LoggedStep, StepLogger};
use crate::observation::trace::Tracer;
use crate::observation::witness::Witness;
use crate::protocols::targets::Place;

use crate::session::Weights;
use crate::session::arrivals::{Schedule, phase_ends, share, span};
pub use never::never_sent;

use allotment::{Allotment, allot, dialer, few, origins, plans, pools, sites, transport};
use check::{check, check_ops};

/// Intervals that may lie untaken, for each thread: two minutes.
const UNTAKEN_INTERVALS: usize = 128;
/// Between the start of the threads and the first phase, so that all are there when it begins.
const START_DELAY_NS: u64 = 10 * MILLISECOND_NS;
/// Time for each connection that is made before a load that is measured from its begin on, and for all of them at most.
const AHEAD_EACH_NS: u64 = MILLISECOND_NS / 10;
const LONGEST_AHEAD_NS: u64 = 2 * SECOND_NS;
/// Connections to each target for a session that is run once and may have several requests under way.
const CONNECTIONS_ONCE: usize = 20;
/// Longest time that a session run once may take.
const LONGEST_ONCE_NS: u64 = 3_600 * SECOND_NS;

/// Stops a drive from any thread.
#[derive(Clone)]
pub struct Stopper {
    control: Arc<Control>,
    wakers: Arc<[Waker]>,
}

impl std::fmt::Debug for Stopper {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Stopper").field("control", &self.control).finish_non_exhaustive()
    }
}

impl Stopper {
    /// As [`Drive::stop`].
    pub fn stop(&self) {
        self.control.stop();
        self.wakers.iter().for_each(|wake| wake());
    }

    /// As [`Drive::abort`].
    pub fn abort(&self) {
        self.control.abort();
        self.wakers.iter().for_each(|wake| wake());
    }
}

/// A drive on its way. Dropping it ends it at once.
#[derive(Debug)]
pub struct Drive {
    intervals: Receiver<ThreadInterval>,
    back: Vec<SyncSender<ThreadInterval>>,
    /// The number of the first thread.
    first: usize,
    stopper: Stopper,
    threads: Vec<JoinHandle<ThreadEnd>>,
    plan: Arc<Plan>,
    phases: Vec<PhaseTimes>,
    io: IoChoice,
    connections_capped_to: Option<(usize, Bound)>,
    connections_raised_to: Option<(usize, Raised)>,
    connections_ahead: Option<usize>,
    places: Option<(usize, usize)>,
}

impl Drive {
    /// What the threads hand over, each once a second and at the edges of phases. It disconnects when
    /// all threads have ended. At most two minutes of it are kept for a reader that is late.
    pub fn intervals(&self) -> &Receiver<ThreadInterval> {
        &self.intervals
    }

    /// Gives an interval's histograms back for use again.
    pub fn recycle(&self, interval: ThreadInterval) {
        let thread = usize::from(interval.thread).checked_sub(self.first);
        if let Some(back) = thread.and_then(|thread| self.back.get(thread)) {
            // Where there is no room, or the thread has ended, they are simply freed.
            let _ = back.try_send(emptied(interval));
        }
    }

    /// When the phases are planned to be, on the run's clock.
    pub fn phases(&self) -> &[PhaseTimes] {
        &self.phases
    }

    /// The back end that it uses; never `Auto`.
    pub fn io(&self) -> IoChoice {
        self.io
    }

    /// Something that can stop this drive from another thread.
    pub fn stopper(&self) -> Stopper {
        self.stopper.clone()
    }

    /// Ends it well: nothing new becomes due, requests under way are waited for (no longer than the plan's drain).
    pub fn stop(&self) {
        self.stopper.stop();
    }

    /// Ends it at once. Requests under way count as unfinished.
    pub fn abort(&self) {
        self.stopper.abort();
    }

    /// Waits for the end. Intervals that have not been taken before are given up.
    ///
    /// # Errors
    /// If a thread broke down.
    pub fn join(mut self) -> Result<DriveEnd, DriveError> {
        let mut end = DriveEnd {
            io: self.io.to_string(),
            connections_capped_to: self.connections_capped_to,
            connections_raised_to: self.connections_raised_to,
            connections_ahead: self.connections_ahead,
            places: self.places,
            ..DriveEnd::default()
        };
        for (index, thread) in std::mem::take(&mut self.threads).into_iter().enumerate() {
            let one = thread.join().map_err(|_| DriveError::Thread(index))?;
            if let Some(error) = one.broken {
                return Err(system("waiting for sockets")(error));
            }
            end.ended_us = end.ended_us.max(one.ended_ns / 1_000);
            end.interrupted |= one.interrupted;
            if one.program_stopped {
                let (threads, first_us) = end.script_stopped.unwrap_or((0, u64::MAX));
                end.script_stopped = Some((threads + 1, first_us.min(one.ended_ns / 1_000)));
            }
            end.script_failed = end.script_failed.or(one.program_failed);
            end.counters += &one.counters;
            end.lost_intervals += one.lost_intervals;
            end.untaken.extend(one.untaken);
            end.tls = end.tls.or(one.tls);
            one.hops.iter().for_each(|told| add_to_label(&self.plan, *told, &mut end.hops));
            one.unfollowed.iter().for_each(|told| add_to_label(&self.plan, *told, &mut end.unfollowed));
            end.slowest.extend(one.slowest);
            for (request, told) in one.not_found {
                add_not_found(&self.plan, request, told, &mut end.not_found);
            }
        }
        end.not_found.retain(|told| told.answers > 0);
        end.phases = std::mem::take(&mut self.phases);
        end.stopped_us = self.stopper.control.stopped_ns().map(|at_ns| at_ns / 1_000);
        // stopped, or out of sessions
        let over_us = end.stopped_us.unwrap_or(end.ended_us);
        end.phases.retain(|phase| phase.start_us < over_us);
        for phase in &mut end.phases {
            phase.end_us = phase.end_us.min(over_us);
        }
        Ok(end)
    }
}

fn label_of(plan: &Plan, request: usize) -> String {
    let label = plan.requests.get(request).and_then(|request| plan.labels.get(usize::from(request.label)));
    label.cloned().unwrap_or_default()
}

/// Adds what is told of a request to its label.
fn add_to_label(plan: &Plan, (request, count): (usize, u64), all: &mut Vec<(String, u64)>) {
    let label = label_of(plan, request);
    match all.iter_mut().find(|(known, _)| *known == label) {
        Some((_, known)) => *known += count,
        None => all.push((label, count)),
    }
}

fn add_not_found(
    plan: &Plan,
    request: usize,
    (slot, answers, found): (SlotIndex, u64, u64),
    all: &mut Vec<NotFound>,
) {
    let makes = |op: &Op| match op {
        Op::Request(made) => usize::from(*made) == request,
        _ => false,
    };
    let kind = plan.sessions.iter().find(|kind| kind.ops.iter().any(makes));
    let variable = kind.and_then(|kind| kind.slot_names.get(usize::from(slot))).cloned().unwrap_or_default();
    let label = label_of(plan, request);
    match all.iter_mut().find(|known| known.label == label && known.variable == variable) {
        Some(known) => {
            known.answers += answers;
            known.found += found;
        }
        None => all.push(NotFound { label, variable, answers, found }),
    }
}

impl Drop for Drive {
    fn drop(&mut self) {
        if !self.threads.is_empty() {
            self.stopper.abort();
        }
    }
}

/// Begins a drive: the plan's load, on the options' threads.
///
/// # Errors
/// If the plan leaves nothing to do or cannot be sent, or the system does not give what is needed. No request has
/// been made then.
pub fn start(plan: Arc<Plan>, shared: Arc<Shared>, options: DriveOptions) -> Result<Drive, DriveError> {
    check(&plan, &options)?;
    let allotments = allot(&plan, &options)?;
    let clock = Clock::new(options.epoch, options.wall_epoch);
    let mut parts = Vec::with_capacity(options.threads);
    let shares: Vec<usize> =
        (0..options.threads).map(|thread| allotments.iter().map(|to| to.shares[thread]).sum()).collect();
    let has_streams = allotments.iter().all(Allotment::has_streams);
    let (io, pollers) = Poller::all(options.io, &shares, has_streams).map_err(no_poller(options.io))?;
    for poller in pollers {
        parts.push((poller, Prepared::all(&plan, &plan.sessions, &options.targets)));
    }
    let control = Arc::new(Control::default());
    let wakers = parts.iter().map(|(poller, ..)| poller.waker()).collect();
    let stopper = Stopper { control: control.clone(), wakers };
    let (sink, intervals) = sync_channel(UNTAKEN_INTERVALS * options.threads);
    let ahead = makes_ahead(&plan);
    let all_ahead = allotments.iter().map(Allotment::allowed).sum();
    let begin_ns = match options.share {
        Some(share) => nanoseconds(share.begin),
        None => clock.now_ns() + START_DELAY_NS + if ahead { time_ahead_ns(&plan, all_ahead) } else { 0 },
    };
    let (window, _) = span(&plan.load, begin_ns);
    let mut drive = Drive {
        intervals,
        back: Vec::new(),
        first: options.number(0),
        stopper,
        threads: Vec::new(),
        plan: plan.clone(),
        phases: phase_times(&plan, begin_ns),
        io,
        connections_capped_to: allotments.iter().find_map(|to| to.capped_to),
        connections_raised_to: allotments.iter().find_map(|to| to.raised_to),
        connections_ahead: ahead.then_some(all_ahead),
        places: allotments.iter().find_map(|to| to.places),
    };
    let limits = Limits { waiting: Some(most_waiting(&plan)), ..plan.limits.clone() };
    let allotments = Arc::new(allotments);
    for (index, (poller, prepared)) in parts.into_iter().enumerate() {
        let (back, returned) = sync_channel(UNTAKEN_INTERVALS);
        drive.back.push(back);
        let (place, threads) = options.place(index);
        let number = options.number(index);
        let mut random = fastrand::Rng::with_seed(stream_seed(options.seed, number));
        let mut schedule = Schedule::new(&plan.load, &limits, begin_ns, place, threads, &mut random);
        let taken = options.share.and_then(|share| share.taken);
        let from_ns = taken.map_or(begin_ns, |taken| nanoseconds(taken.from).max(begin_ns));
        if from_ns > begin_ns {
            schedule.begin_at(from_ns, &mut random);
        }
        let exchange = Some(Exchange { sink: sink.clone(), returned });
        let recorder = Recorder::new(number, plan.labels.len(), from_ns, window, exchange);
        let recorder = recorder
            .with_groups(plan.groups.len())
            .with_kinds(plan.sessions.len())
            .with_metrics(own_kinds(&plan));
        let recorder = recorder.with_phases(phase_ends(&plan.load, begin_ns));
        let (plan, shared, control) = (plan.clone(), shared.clone(), control.clone());
        let core = (!options.cores.is_empty()).then(|| options.cores[index % options.cores.len()]);
        let allotments = allotments.clone();
        let programs = options.programs.clone();
        let fence_ns = options.fence_ns.clone();
        let codes = options.codes.clone().filter(|_| plan.sessions.iter().any(codes::has_code));
        let opens_websockets = options.open_websockets();
        let may_bind = programs::may_bind(&plan.sessions, &options);
        let tracer = options.trace.as_ref().map(|tracing| Tracer::new(tracing, &plan, (number, threads)));
        // Users who wait for answers make as many requests as the driver's CPU allows, of which it is the less the better;
        // arrivals come when they come.
        let is_open = plan.load.streams().iter().all(|stream| !stream.model.is_closed());
        let all_stamped = is_open || options.timestamps == Timestamps::Kernel;
        let spawned = std::thread::Builder::new().name(format!("drive-{number}")).spawn(move || {
            machine::settle_in(core);
            let places: Vec<Place<'_>> = allotments.iter().map(|to| to.place(index)).collect();
            let sockets = places.iter().map(|place| place.sockets).sum();
            let sources = allotments.iter().map(|to| to.sources).max().unwrap_or(1);
            let io = dialer(&places, sources).and_then(|dialer| poller.into_io(dialer, sockets, all_stamped));
            let io = match io {
                Ok(io) => io,
                Err(error) => return ThreadEnd { broken: Some(error), ..ThreadEnd::default() },
            };
            let mut transport = transport(io, &plan, &places, &mut random);
            let witness = Witness::of(None, tracer);
            if witness.is_some() {
                transport.keep_written();
            }
            let thread = Thread {
                clock,
                transport,
                control,
                shared: &shared,
                kinds: &plan.sessions,
                weights: Weights::new(&plan.sessions),
                flow: Flow {
                    slots: most_slots(&plan.sessions),
                    secrets: SecretVariables::of(&plan, &plan.sessions),
                    labels: plan.labels.len(),
                    keeps_answers: codes::keeps_answers(&plan.sessions),
                    binds: prepared.iter().any(|request| request.is_of_binding) || may_bind,
                    has_grace: plan.sessions.iter().any(|kind| programs::grace(kind).is_some()),
                    open: vec![0; places.len()],
                    ..Flow::default()
                },
                prepared,
                schedule,
                timers: Timers::default(),
                recorder,
                origins: origins(&places),
                sites: sites(&places),
                pools: pools(&places, &plan.limits),
                ahead: allotments
                    .iter()
                    .map(|to| Ahead::new(if ahead { to.shares[index] } else { 0 }))
                    .collect(),
                witness,
                opens_websockets,
                program: programs.map(|programs| programs.make(number)),
                code: codes.map(|codes| codes.make(number)),
                bounds: bounds(&plan, place, threads),
                random,
                ledger_seed: options.ledger_seed,
                spin: options.spin,
                timestamps: options.timestamps,
                fence_ns,
            };
            thread.run().0
        });
        drive.threads.push(spawned.map_err(system("starting a driving thread"))?);
    }
    Ok(drive)
}

/// One user does one session of a kind, once, on this thread; nothing is recorded but what it entered in the ledger,
/// which is handed back. Used before the load, to prepare the system.
///
/// # Errors
/// The first request that failed.
pub fn run_once(
    plan: &Plan,
    kind: &SessionKind,
    shared: &Shared,
    options: &DriveOptions,
) -> Result<Part, OnceError> {
    one_session(plan, kind, shared, options, (ONCE_THREAD, None), &mut |_| {})
}

/// The same, and each step is told as it ends. `number` tells several such sessions apart: what they enter in the ledger has
/// it as the number of its thread. `begun` is handed what can abort the session from another thread; the step that is under
/// way then is told as unfinished.
///
/// # Errors
/// The first request that failed.
pub fn run_logged(
    plan: &Plan,
    kind: &SessionKind,
    shared: &Shared,
    options: &DriveOptions,
    number: u16,
    steps: Sender<LoggedStep>,
    begun: &mut dyn FnMut(Stopper),
) -> Result<Part, OnceError> {
    let logger = Some(StepLogger::new(steps, &plan.labels));
    one_session(plan, kind, shared, options, (number % ONCE_THREAD, logger), begun)
}

/// Whether sessions of a kind may have several requests under way.
fn has_branches(kind: &SessionKind) -> bool {
    kind.ops.iter().any(|op| matches!(op, Op::Program | Op::Parallel { .. }))
}

fn one_session(
    plan: &Plan,
    kind: &SessionKind,
    shared: &Shared,
    options: &DriveOptions,
    (number, logger): (u16, Option<StepLogger>),
    // a type of its own would have whoever calls this compile the engine once more
    begun: &mut dyn FnMut(Stopper),
) -> Result<Part, OnceError> {
    let plans = plans(plan, &options.targets);
    plans.iter().zip(&options.targets).try_for_each(|(plan, target)| target.protocol.check(plan))?;
    let connections = if has_branches(kind) { CONNECTIONS_ONCE } else { 1 };
    let places = few(&plans, options, connections);
    let sockets = places.iter().map(|place| place.sockets).sum();
    let poller = Poller::new(options.io, sockets).map_err(no_poller(options.io))?;
    let wakers = Arc::from([poller.waker()]);
    let io = dialer(&places, 1).and_then(|dialer| poller.into_io(dialer, sockets, false));
    let io = io.map_err(no_poller(options.io))?;
    let tracer = options.trace.as_ref().map(|tracing| Tracer::new(tracing, plan, (number.into(), 1)));
    let witness = Witness::of(logger, tracer);
    let mut thread = Thread { witness, ..once(plan, kind, shared, options, &places, number, io)? };
    if thread.witness.is_some() {
        thread.transport.keep_written();
    }
    begun(Stopper { control: thread.control.clone(), wakers });
    let end_ns = thread.schedule.end_ns();
    let (end, mut recorder) = thread.run();
    if let Some(error) = end.broken {
        return Err(system("waiting for sockets")(error).into());
    }
    if let Some(reason) = end.program_failed {
        return Err(OnceError::Program(reason));
    }
    match recorder.first_failure() {
        None if end.ended_ns >= end_ns => Err(OnceError::TooLong),
        None => Ok(recorder.take_ledger()),
        Some(failure) => Err(OnceError::Request {
            label: plan.labels.get(failure.label as usize).cloned().unwrap_or_default(),
            outcome: failure.outcome,
            detail: failure.detail.clone(),
        }),
    }
}

/// A thread on which one user does one session of a kind, once.
fn once<'a>(
    plan: &Plan,
    kind: &'a SessionKind,
    shared: &'a Shared,
    options: &DriveOptions,
    places: &[Place<'_>],
    number: u16,
    io: impl Io + 'static,
) -> Result<Thread<'a>, DriveError> {
    check_ops(plan, kind)?;
    programs::check(plan, [kind], options.programs.as_ref(), &options.targets)?;
    codes::check([kind], options.codes.as_ref())?;
    let clock = Clock::new(options.epoch, options.wall_epoch);
    let now_ns = clock.now_ns();
    let kinds = std::slice::from_ref(kind);
    let mut random = fastrand::Rng::with_seed(options.seed);
    let prepared = Prepared::all(plan, kinds, &options.targets);
    Ok(Thread {
        clock,
        transport: transport(io, plan, places, &mut random),
        control: Arc::new(Control::default()),
        shared,
        kinds,
        weights: Weights::new(kinds),
        flow: Flow {
            slots: kind.slots,
            secrets: SecretVariables::of(plan, kinds),
            labels: plan.labels.len(),
            keeps_answers: codes::keeps_answers(kinds),
            binds: prepared.iter().any(|request| request.is_of_binding) || programs::may_bind(kinds, options),
            open: vec![0; places.len()],
            ..Flow::default()
        },
        prepared,
        schedule: Schedule::once(now_ns, now_ns + LONGEST_ONCE_NS),
        timers: Timers::default(),
        recorder: Recorder::new(number.into(), plan.labels.len(), now_ns, (u64::MAX, u64::MAX), None)
            .with_groups(plan.groups.len()),
        origins: origins(places),
        sites: sites(places),
        pools: pools(places, &plan.limits),
        ahead: Vec::new(),
        witness: None,
        opens_websockets: options.open_websockets(),
        program: options.programs.as_ref().map(|programs| programs.make(number.into())),
        code: options.codes.as_ref().filter(|_| codes::has_code(kind)).map(|codes| codes.make(number.into())),
        bounds: bounds(plan, 0, 1),
        random,
        ledger_seed: options.ledger_seed,
        spin: false,
        timestamps: Timestamps::Read,
        fence_ns: options.fence_ns.clone(),
    })
}

/// What becomes of the numbers of each metric of the scenario's own.
fn own_kinds(plan: &Plan) -> impl Iterator<Item = OwnKind> + '_ {
    plan.metrics.iter().map(|metric| match metric.kind {
        MetricKind::Histogram => OwnKind::Histogram,
        MetricKind::Counter => OwnKind::Counter,
    })
}

fn no_poller(io: IoChoice) -> impl Fn(std::io::Error) -> DriveError {
    move |error| DriveError::Io { io, error }
}

fn system(what: &'static str) -> impl Fn(std::io::Error) -> DriveError {
    move |error| DriveError::System { what, error }
}

/// Each thread draws from its own stream: neighbouring seeds, spread over the whole range.
fn stream_seed(seed: u64, thread: usize) -> u64 {
    let spread = (thread as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    (seed ^ spread).rotate_left(31).wrapping_mul(0xBF58_476D_1CE4_E5B9)
}

fn bounds(plan: &Plan, thread: usize, threads: usize) -> Bounds {
    Bounds {
        // Users are never dropped; those who find no place wait.
        waiting: share(most_waiting(plan).max(plan.load.most_users()), thread, threads),
        connect_timeout_ns: nanoseconds(plan.limits.connect_timeout),
        drain_ns: nanoseconds(plan.limits.drain),
    }
}

/// Whether connections are made before they are needed. Each user of a closed load brings its own.
fn makes_ahead(plan: &Plan) -> bool {
    let limits = &plan.limits;
    let arrives = plan.load.streams().iter().any(|stream| !stream.model.is_closed());
    arrives && limits.connections_named && limits.keep_alive && limits.choose != Choose::FirstFree
}

/// How long the load's begin waits for connections that are made ahead: where there is no warm-up in which they are.
fn time_ahead_ns(plan: &Plan, connections: usize) -> u64 {
    match plan.load.phases.first() {
        Some(phase) if phase.measured => {
            (connections as u64).saturating_mul(AHEAD_EACH_NS).min(LONGEST_AHEAD_NS)
        }
        _ => 0,
    }
}

fn phase_times(plan: &Plan, begin_ns: u64) -> Vec<PhaseTimes> {
    let mut start_ns = begin_ns;
    let times = plan.load.phases.iter().map(|phase| {
        let end_ns = start_ns.saturating_add(nanoseconds(phase.duration));
        let times = PhaseTimes {
            name: phase.name.clone(),
            start_us: start_ns / 1_000,
            end_us: end_ns / 1_000,
            measured: phase.measured,
        };
        start_ns = end_ns;
        times
    });
    times.collect()
}

#[cfg(test)]
mod tests;
