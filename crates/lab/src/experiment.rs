//! One experiment from the first file to the last.
//!
//! One thread does it all; the driving threads hand their intervals to it. Whatever goes wrong, the values on its
//! stack stop what they started when they are dropped: the drive, the system, its data, in this order.

mod loading;
mod once;
mod preparing;
mod reading_back;
#[cfg(feature = "fleet")]
mod resuming;
mod watching;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use tidemark_drive::{DriveEnd, DriveError, DriveOptions, PhaseTimes, TRACED_BYTES};
use tidemark_record::fault;
use tidemark_record::{Before, Event, Manifest, RunWriter, summarize, tell_achieved_due};
use tidemark_scenario::plan::{LABEL_BYTES, RequestPlan, ScriptTool, SessionKind, Store, SystemOrigin};
use tidemark_scenario::units::Size;
use tidemark_scenario::{Plan, Shared};
use tidemark_verdict::{self as verdict, Evidence};

pub use self::once::{Once, once};
use self::preparing::{Environment, Prepared};
use self::reading_back::Verified;
#[cfg(feature = "fleet")]
pub use self::resuming::resume;
use self::watching::Started;
use crate::account::{self, Account};
use crate::drivers::fleet::{Chosen, FleetOptions};
use crate::drivers::fleet_resume::Resumed;
use crate::drivers::process::{self, Process};
use crate::drivers::{Driver, DriverKind, Drivers};
use crate::error::LabError;
use crate::faults::Faults;
use crate::figures::Figures;
use crate::finished::Finished;
use crate::interrupt::{Interrupt, StopRequest};
use crate::monitor::DRIVER;
use crate::progress::{Progress, Watcher};
use crate::run_options::RunOptions;
use crate::script::{Begin, Script};
use crate::sinks::ProgressSink;
use crate::trace::{self, Trace};
use crate::{disk, machine, pin, script, secret, slowest, verify};

/// Seeds stay below this, so that every reader of JSON keeps them whole.
const SEED_END: u64 = 1 << 53;

/// Carries an experiment out.
///
/// SIGINT, SIGTERM and SIGHUP are taken over while it runs: the first stops the load and leads to a run that says
/// that it was interrupted; before the load, and after the second, everything is stopped at once, the run holds what
/// was recorded until then, and the result is [`LabError::Interrupted`]. Should even that take more than two seconds,
/// the process ends with status 130. What a process that ends in this or a harder way has recorded becomes a run when
/// it is asked for ([`tidemark_record::rebuild`]).
pub fn run(
    plan: Plan,
    options: RunOptions,
    progress: &mut dyn FnMut(Progress),
) -> Result<Finished, LabError> {
    finished(begin(plan, options)?, progress)
}

fn finished(experiment: Experiment, progress: &mut dyn FnMut(Progress)) -> Result<Finished, LabError> {
    let result = experiment.carry_out(&Watcher::new(progress));
    let secrets = &experiment.plan.secrets;
    secret::logs(secrets, &experiment.run_dir.join(tidemark_record::LOGS_DIR))
        .map_err(|error| LabError::Measure(format!("secrets may be left in the logs of the run: {error}")))?;
    match result.map_err(|error| error.in_words(|text| secrets.masked(text))) {
        Err(LabError::Interrupted(_)) => {
            let kept = tidemark_record::rebuild(&experiment.run_dir, true).is_ok();
            Err(LabError::Interrupted(kept.then_some(experiment.run_dir)))
        }
        result => result,
    }
}

/// Finds out whether it can be carried out as asked for, and makes its directory.
fn begin(mut plan: Plan, options: RunOptions) -> Result<Experiment, LabError> {
    let interrupt = Interrupt::watch(options.before_exit)
        .map_err(|error| LabError::Measure(format!("cannot watch signals: {error}")))?;
    let cores = pin::available_cores();
    options.pins.check(&cores).map_err(LabError::Usage)?;
    let targets = plan.targets.len() + 1;
    machine::raise_open_files_limit(
        plan.limits.connections.max(plan.load.most_users()).saturating_mul(targets),
    );
    settle(&mut plan, &options)?;
    if plan.system.connect_to.is_some() && !matches!(plan.system.origin, SystemOrigin::Url(_)) {
        let reason =
            "only the system of a URL can be connected to somewhere else; give --url with --connect-to";
        return Err(LabError::Usage(reason.into()));
    }
    let starts =
        !matches!(plan.system.origin, SystemOrigin::Url(_)) || plan.stores.iter().any(Store::is_started);
    if !starts && !options.pins.system.is_empty() {
        let reason = "--pin system=… pins what this run starts, but the system is there already; pin it where it is started";
        return Err(LabError::Usage(reason.into()));
    }
    if let Some(wanted) = &options.trace {
        trace::check(wanted, &plan)?;
    }
    if options.driver == DriverKind::Process && plan.prepare.is_some() && !plan.keys.is_empty() {
        let reason = "--driver process does not know which keys `prepare` inserted; leave it out";
        return Err(LabError::Usage(reason.into()));
    }
    script::check_scripts(&plan)?;
    if options.driver == DriverKind::Process && plan.sessions.iter().any(|kind| kind.script.is_some()) {
        let reason = "a script runs in threads of this process; leave --driver process out";
        return Err(LabError::Usage(reason.into()));
    }
    if options.fleet.is_some() && options.trace.is_some() {
        let reason = "--trace is of threads of this process; leave it out, or --fleet";
        return Err(LabError::Usage(reason.into()));
    }
    if let Some(url) = options.fleet.as_deref().and_then(FleetOptions::url) {
        // the command line names it
        plan.secrets.add_logins_of(url);
    }
    secret::labels(&mut plan);
    let chosen = options.fleet.as_deref();
    let chosen = chosen
        .map(|fleet| Chosen::choose(fleet, &plan, &options, &|| interrupt.stop_request()))
        .transpose()?;
    let seed = options.seed.or(plan.seed).unwrap_or_else(|| fastrand::u64(..SEED_END));
    // JavaScript takes most of a user's time. As k6 does, it takes all cores where the system is elsewhere.
    let is_k6 = |kind: &SessionKind| kind.script.as_ref().is_some_and(|script| script.tool == ScriptTool::K6);
    let is_alone = !starts && plan.sessions.iter().any(is_k6);
    let most = plan.limits.in_flight.map_or(usize::MAX, |limit| limit.most);
    let default_threads = || pin::default_threads(&options.pins, &cores, is_alone).min(most);
    // A thread without a connection or a session would have nothing to do.
    let threads = options.threads.unwrap_or_else(default_threads);
    let threads = threads.min(plan.limits.connections).max(1);
    let threads = chosen.as_ref().map_or(threads, Chosen::threads);
    check_memory(&plan, threads)?;

    let run_dir = tidemark_record::new_run_dir(options.out.as_deref(), &plan.name)
        .map_err(|error| LabError::Usage(format!("{error}")))?;
    let ledger_seed = tidemark_record::ledger::seed(seed, SystemTime::now());
    let chosen = Mutex::new(chosen);
    let (resumed, before, zero) = Default::default();
    let plan = Arc::new(plan);
    Ok(Experiment {
        plan,
        options,
        seed,
        ledger_seed,
        threads,
        chosen,
        resumed,
        before,
        zero,
        run_dir,
        interrupt,
    })
}

/// What the options of a run change in its plan.
pub(crate) fn settle(plan: &mut Plan, options: &RunOptions) -> Result<(), LabError> {
    if let Some(url) = &options.url {
        plan.drive_instead(url).map_err(LabError::Usage)?;
    }
    if options.trace.is_some() {
        let shown = |request: &mut RequestPlan| {
            request.shown_body_bytes = request.shown_body_bytes.max(TRACED_BYTES);
        };
        plan.requests.iter_mut().for_each(shown);
    }
    Ok(())
}

/// Finds histograms that this machine cannot hold: each label has some on each thread.
fn check_memory(plan: &Plan, threads: usize) -> Result<(), LabError> {
    let labels = plan.labels.len();
    let held = labels as u64 * threads as u64 * LABEL_BYTES;
    match disk::free_memory().filter(|free| held > *free) {
        None => Ok(()),
        Some(free) => Err(LabError::Usage(format!(
            "{labels} labels on {threads} driving threads hold {} of histograms, and {} of memory are free; give steps that are \
             alike the same `label`, or use fewer --threads",
            Size(held),
            Size(free)
        ))),
    }
}

/// What is written down of a run, from its beginning.
struct Record<'a> {
    account: Account,
    writer: RunWriter<'a>,
    /// What is kept of requests, where that is wanted and the load has begun.
    trace: Option<Trace>,
    /// The script that the load asks, if there is one.
    script: Option<Box<dyn Script>>,
    /// What happened before another coordinator was gone.
    before: Vec<Event>,
}

impl Record<'_> {
    /// Enters something that happened.
    fn event(&mut self, at_us: i64, kind: &str, text: String) -> Result<(), LabError> {
        let event = Event { at_us, kind: kind.into(), text };
        if self.before.contains(&event) {
            return Ok(());
        }
        self.writer.add_event(&event).map_err(written)
    }

    /// Records anew what another coordinator had recorded, but for the intervals, which are told again.
    fn go_on(&mut self, before: &mut Before) -> Result<(), LabError> {
        for event in before.events() {
            self.writer.add_event(event).map_err(written)?;
        }
        self.before = before.events().to_vec();
        let writer = &mut self.writer;
        let looks = before.looks(&mut |look| match look {
            Ok(sample) => writer.add_sample(&sample),
            Err(look) => writer.add_store_looks(&[look]),
        });
        looks.map_err(written)
    }
}

/// An experiment and its stages: what is prepared is started, driven, verified, and finished.
struct Experiment {
    plan: Arc<Plan>,
    /// The agents that drive, until the load begins; gone before the options, which may hold NATS.
    chosen: Mutex<Option<Chosen>>,
    /// What is left of a run whose coordinator is gone, until this one goes on with it; what that had recorded; and when the run's
    /// clock was zero.
    resumed: Mutex<Option<Resumed>>,
    before: Mutex<Option<Before>>,
    zero: Option<SystemTime>,
    options: RunOptions,
    seed: u64,
    /// What the checksums of the ledger are keyed with.
    ledger_seed: u64,
    threads: usize,
    run_dir: PathBuf,
    interrupt: Interrupt,
}

impl Experiment {
    fn carry_out(&self, progress: &Watcher<'_>) -> Result<Finished, LabError> {
        let mut record = self.record(progress)?;
        let prepared = self.prepare(&mut record, progress)?;
        let started = self.start(prepared, &mut record)?;
        let driven = self.drive(started, &mut record)?;
        let verified = self.verify(driven, &mut record, progress)?;
        self.finish(record, verified)
    }

    /// Begins what is written down of the run.
    fn record<'a>(&self, progress: &'a Watcher<'_>) -> Result<Record<'a>, LabError> {
        let plan = &self.plan;
        let account = Account::begin(&self.options, plan, self.seed);
        let mut before = self.zero.map(|_| Before::take(&self.run_dir)).transpose().map_err(written)?;
        let mut writer = RunWriter::create(&self.run_dir, &plan.labels, &plan.source).map_err(written)?;
        writer.threads(self.threads);
        writer.targets(&plan.target_names(), &plan.targets_of_labels());
        writer.tags(&plan.tags);
        writer.groups(&plan.groups).map_err(written)?;
        writer.own_metrics(&verdict::custom_metrics(plan)).map_err(written)?;
        writer.ratios(&verdict::ratios(plan));
        let plan_of_mask = Arc::clone(plan);
        writer.mask(Arc::new(move |text| plan_of_mask.secrets.masked(text)));
        let runs_dir = Path::new(tidemark_record::RUNS_DIR);
        if self.options.remember && runs_dir.is_dir() {
            // so that `last` is this run wherever it is; no directory is made for that alone
            writer.remember_in(runs_dir);
        }
        writer.add_sink(ProgressSink::new(progress)).add_sink(self.options.sinks.clone());
        match before {
            _ if plan.entered().next().is_none() => {}
            None => {
                writer.keep_ledger(self.ledger_seed, tidemark_drive::forms(plan)).map_err(written)?;
            }
            Some(_) => {
                writer.go_on_with_ledger().map_err(written)?;
            }
        }
        self.zero.iter().for_each(|zero| {
            writer.anchor(*zero);
        });
        let mut record = Record { account, writer, trace: None, script: None, before: Vec::new() };
        self.begun(&mut record, &[])?;
        if let Some(before) = &mut before {
            record.go_on(before)?;
        }
        *self.before.lock().unwrap_or_else(PoisonError::into_inner) = before;
        Ok(record)
    }

    /// Begins the load and the faults: the run's zero.
    fn start(&self, prepared: Prepared, record: &mut Record<'_>) -> Result<Started, LabError> {
        // dropped from the last to the first
        let Prepared { mut environment, ready, shared, injectors, targets } = prepared;
        let plan = &self.plan;
        let mut options = self.drive_options(&environment.system, &environment.others);
        if let Some(zero) = self.zero {
            let since = SystemTime::now().duration_since(zero).map_err(driven)?;
            let epoch = options.epoch.checked_sub(since).ok_or("its zero is before this machine's");
            (options.epoch, options.wall_epoch) = (epoch.map_err(driven)?, zero);
        }
        if let Some(wanted) = &self.options.trace {
            let systems = std::iter::once(&environment.system).chain(&environment.others);
            let (trace, tracing) = Trace::begin(wanted, None, plan, systems)?;
            (record.trace, options.trace) = (Some(trace), Some(tracing));
        }
        // counters and cursors begin at their beginning; what is inserted stays so
        let shared = Arc::new(shared.followed(plan));
        if let Some((script, with_script)) =
            script::begin(&self.begin_of_script(plan, &shared, &options, &|| self.stop_request()))?
        {
            (record.script, options) = (Some(script), with_script);
        }
        let epoch = options.epoch;
        record.account.started(options.wall_epoch, &environment.system);
        record.account.targets(plan, &environment.others);
        record.writer.anchor(options.wall_epoch);
        // it was so when the run began
        for (at, text) in ready.into_iter().filter(|_| self.zero.is_none()) {
            let at_us = -i64::try_from(epoch.saturating_duration_since(at).as_micros()).unwrap_or(i64::MAX);
            record.event(at_us, "ready", text)?;
        }
        let plan_driven =
            record.script.as_ref().map_or_else(|| Arc::clone(plan), |script| script.driven(plan));
        let drivers = self.start_drivers(plan_driven, shared, options, &environment)?;
        for id in drivers.process_ids() {
            environment.monitor.follow(DRIVER, Some(id));
        }
        self.begun(record, drivers.phases())?;
        let window_us = window_start_us(drivers.phases());
        let figures = Figures::begin(&injectors.endpoints, epoch).map_err(driven)?;
        environment.watches.begin(epoch).map_err(driven)?;
        let faults = Faults::begin(&plan.faults, targets, injectors, epoch, window_us).map_err(driven)?;
        Ok(Started { drivers, faults, figures, epoch, environment })
    }

    /// What a script begins with.
    fn begin_of_script<'a>(
        &'a self,
        plan: &'a Arc<Plan>,
        shared: &'a Arc<Shared>,
        options: &'a DriveOptions,
        stop_request: &'a dyn Fn() -> StopRequest,
    ) -> Begin<'a> {
        let prints_to_stderr = self.options.prints_to_stderr;
        Begin { plan, shared, options, prints_to_stderr, stop_request }
    }

    /// Begins the load.
    fn start_drivers(
        &self,
        plan: Arc<Plan>,
        shared: Arc<Shared>,
        options: DriveOptions,
        environment: &Environment,
    ) -> Result<Drivers, LabError> {
        let targets: Vec<_> = std::iter::once(&environment.system).chain(&environment.others).collect();
        let resumed = self.resumed.lock().unwrap_or_else(PoisonError::into_inner).take();
        let before = self.before.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some((resumed, before)) = resumed.zip(before) {
            return Ok(Drivers::new(vec![resumed.go_on(before, &plan, &self.run_dir, &options)?]));
        }
        let chosen = self.chosen.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(chosen) = chosen {
            let run = (&*plan, self.run_dir.as_path());
            let fleet = chosen.start(&self.options, run, &targets, &options, &|| self.stop_request())?;
            return Ok(Drivers::new(vec![fleet]));
        }
        let driver: Box<dyn Driver> = match self.options.driver {
            DriverKind::Threads => Box::new(tidemark_drive::start(plan, shared, options).map_err(not_begun)?),
            DriverKind::Process => {
                let run = process::Run {
                    executable: &self.options.executable,
                    words: &self.options.command_line,
                    scenario: &self.plan.source,
                    targets,
                    run_dir: &self.run_dir,
                };
                Box::new(Process::start(&run, &options, &|| self.stop_request())?)
            }
        };
        Ok(Drivers::new(vec![driver]))
    }

    /// Notes what is known of the run by now, for the case that it does not come to its end.
    fn begun(&self, record: &mut Record<'_>, phases: &[PhaseTimes]) -> Result<(), LabError> {
        let Record { account, writer, .. } = record;
        let summary = summarize(writer.totals(), &self.run_dir);
        let mut manifest = account.clone().manifest(&self.plan, &self.options, summary, writer.totals());
        let planned = DriveEnd { phases: phases.to_vec(), ..DriveEnd::default() };
        manifest.phases = account::phases(&self.plan, &planned);
        writer.phases(&manifest.phases, |phase| self.plan.judges_parts_of_phase(phase));
        writer.begun(&self.clean(&manifest)?).map_err(written)
    }

    /// A manifest that can be written down.
    fn clean(&self, manifest: &Manifest) -> Result<Manifest, LabError> {
        secret::manifest(&self.plan.secrets, manifest).map_err(|error| LabError::Measure(error.to_string()))
    }

    fn stop_request(&self) -> StopRequest {
        self.interrupt.stop_request()
    }

    fn finish(&self, record: Record<'_>, verified: Verified) -> Result<Finished, LabError> {
        let Record { mut account, mut writer, trace, mut script, before: _ } = record;
        let Verified { load, faults, maintenance, ledger } = verified;
        let plan = &self.plan;
        let trace = trace.map(|trace| trace.end(&load.end.counters)).transpose();
        let trace_unwritten = trace.as_ref().err().cloned();
        account.notes.extend(trace.unwrap_or_else(Some));
        account.notes.extend(writer.settle().map_err(written)?);
        let totals = writer.totals();
        let mut summary = summarize(totals, &self.run_dir);
        summary.faults = faults;
        fault::find_dips(&mut summary.faults, writer.seconds());
        summary.maintenance = maintenance;
        writer.find_bumps(&mut summary.maintenance, &summary.faults);
        summary.steady_state =
            Some(tidemark_verdict::steady::test(&plan.load, writer.seconds(), &summary.faults));
        if verdict::has_a_rate(&plan.load) {
            tell_achieved_due(&mut summary, totals);
        }
        let (single, joined) = verdict::judged_by_silence(plan);
        let outages = load.silence.outages(&single, &joined);
        summary.driver.busiest = load.neighbours.busiest();
        summary.driver.agents = load.agents;
        tidemark_record::tell_agents(&mut summary.driver.agents, &totals.threads);
        // what was watched here is the coordinator alone
        let agents_cores: f64 = summary.driver.agents.iter().map(|agent| agent.cpu_share).sum();
        for driver in summary.processes.iter_mut().filter(|process| process.name == DRIVER) {
            driver.cpu_share += agents_cores;
            driver.cpu_s += agents_cores * summary.measured_s;
        }
        summary.driver.limits = verdict::driver_limits(&summary, totals, &plan.load, self.options.spin);
        summary.slowest = slowest::of(load.end.slowest.clone(), &plan.labels);
        let meant = load.unreachable.is_some() || load.enough || load.end.script_failed.is_some();
        let stopped = load.end.interrupted && load.system_ended.is_none() && !meant;
        let findings = script.as_mut().map(|script| script.findings(summary.dropped)).unwrap_or_default();
        account.notes.extend(findings.notes);
        let exceptions = findings.figures.as_ref().filter(|of| of.exceptions > 0);
        let exceptions = exceptions.map(|of| {
            format!("{} of {} iterations of the script ended with an exception", of.exceptions, of.iterations)
        });
        let stops_early = script.as_ref().is_none_or(|script| script.stops_early());
        let script_stopped = load.end.script_stopped.filter(|_| stops_early);
        let judgement = verdict::judge(&Evidence {
            undisturbed: load.undisturbed.as_ref(),
            system_ended: load.system_ended.as_deref(),
            outages: &outages,
            not_found: &load.end.not_found,
            spin: self.options.spin,
            is_part: self.options.is_part,
            cores: match self.options.pins.system.len() {
                0 => pin::available_cores().len(),
                pinned => pinned,
            },
            cut_short: load.unreachable.as_ref(),
            stopped,
            lost_intervals: load.end.lost_intervals,
            broke_off: load.broke.as_deref(),
            taken_over: load.taken_over.as_ref().map(|of| (of.reason.as_str(), of.never_sent)),
            resumed: load.resumed.as_deref(),
            script_stopped,
            script_failed: load.end.script_failed.as_deref().or(findings.failed.as_deref()),
            thresholds: &findings.thresholds,
            judges_without_requests: findings.judges_without_requests,
            ledger: ledger.as_ref(),
            ..Evidence::of(plan, totals, &summary)
        });
        account.notes.extend(verdict::backlog_before(plan, &summary));
        account.notes.extend(script_stopped.map(|(threads, first_us)| {
            let first = verdict::duration_text(first_us as f64);
            format!(
                "the script stopped {threads} of {} driving threads, the first after {first}",
                self.threads
            )
        }));
        summary.verdict = judgement.verdict;
        summary.ledger = ledger;
        let loaded = verdict::labels_of_the_load(plan);
        let failures = verdict::labels_of_failures(plan);
        let is_told =
            |label: &str, requests| loaded.contains(label) && (requests > 0 || !failures.contains(label));
        summary.steps.retain(|step| is_told(&step.label, step.requests));
        summary.groups.retain(|group| group.count > 0);
        summary.warnings = account::warnings(&load.end, &totals.counters);
        summary.warnings.extend(exceptions);
        let median_us = totals.all.service_time_us.value_at_quantile(0.5);
        let median_of = |label: usize| totals.by_label[label].service_time_us.value_at_quantile(0.5);
        let medians = single.into_iter().map(|part| {
            let slowest_us = part.labels.iter().map(|label| median_of(*label)).max();
            (part, slowest_us.unwrap_or(median_us))
        });
        summary.warnings.extend(load.silence.freeze(median_us, &medians.collect::<Vec<_>>()));
        summary.warnings.extend(verdict::warnings(plan, totals, &load.end.not_found));
        let listed = self.options.listed.as_ref();
        summary.warnings.extend(listed.and_then(|listed| listed.warning(totals.all.due(), true)));
        account.drove(&load.end, &totals.counters, &summary);
        let mut manifest = account.manifest(plan, &self.options, summary, totals);
        manifest.objectives = judgement.objectives;
        manifest.script = findings.figures;
        manifest.verdict_before_verify = manifest.summary.ledger.as_ref().map(|_| judgement.without_ledger);
        manifest.cut_short = load.unreachable.map(|unreachable| unreachable.reason);
        manifest.interrupted = stopped;
        manifest.phases = account::phases(plan, &load.end);
        let verify_stopped = manifest.summary.ledger.as_ref().is_some_and(verify::was_stopped);
        let manifest = self.clean(&manifest)?;
        let script = script.and_then(|script| script.end(&writer, self.threads));
        writer.finish(&manifest).map_err(written)?;
        Ok(Finished { run_dir: self.run_dir.clone(), manifest, verify_stopped, trace_unwritten, script })
    }
}

/// Where the measured window begins.
fn window_start_us(phases: &[PhaseTimes]) -> u64 {
    phases.iter().filter(|phase| phase.measured).map(|phase| phase.start_us).min().unwrap_or(0)
}

fn written(error: tidemark_record::RecordError) -> LabError {
    LabError::Measure(error.to_string())
}

/// What is asked for does not fit: wrong use. The rest is no measurement.
fn not_begun(error: DriveError) -> LabError {
    match error {
        DriveError::Room { .. } | DriveError::Io { .. } | DriveError::Grpc(_) => {
            LabError::Usage(error.to_string())
        }
        other => driven(other),
    }
}

fn driven(error: impl std::fmt::Display) -> LabError {
    LabError::Measure(format!("the load could not be driven: {error}"))
}
