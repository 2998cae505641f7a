//! One experiment from the first file to the last.
//!
//! One thread does it all; the driving threads hand their intervals to it. Whatever goes wrong, the values on its
//! stack stop what they started when they are dropped: the drive, the system, its data, in this order.

mod reading_back;
mod watching;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Instant, SystemTime};

use tidemark_drive::{Address, DriveEnd, DriveError, DriveOptions, PhaseTimes};
use tidemark_record::fault::{self, Fault};
use tidemark_record::ledger::Part;
use tidemark_record::summary::Ledger;
use tidemark_record::{Event, Manifest, RunWriter, summarize};
use tidemark_scenario::plan::{Fault as PlannedFault, HttpVersion, Product, RPC_PATH, SystemOrigin};
use tidemark_scenario::{Plan, Shared};

use self::watching::{Driven, LOOK_EVERY, Tested, Watching};
use crate::account::{self, Account};
use crate::disk::Disks;
use crate::error::LabError;
use crate::faults::{Faults, Means};
use crate::finished::Finished;
use crate::interrupt::{Interrupt, Wish};
use crate::link::{self, Link};
use crate::monitor::{Monitor, SYSTEM};
use crate::progress::{Progress, Watcher};
use crate::run_options::RunOptions;
use crate::sinks::ProgressSink;
use crate::started::Handle;
use crate::stores::{self, Stores};
use crate::sync::SyncProbe;
use crate::system::{Running, Setup};
use crate::timetable::microseconds;
use crate::verify::{self, Known, Recipe};
use crate::{finished, machine, pin, secret, steady, verdict};

/// Durability that waits for the disk, beside which the disk's own sync latency is measured.
const SYNCED: &str = "synced";
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
    mut plan: Plan,
    options: RunOptions,
    progress: &mut dyn FnMut(Progress),
) -> Result<Finished, LabError> {
    let interrupt = Interrupt::watch(options.before_exit)
        .map_err(|error| LabError::Measure(format!("no signals: {error}")))?;
    let cores = pin::available_cores();
    options.pins.check(&cores).map_err(LabError::Usage)?;
    machine::raise_open_files_limit(plan.limits.connections.max(plan.load.most_users()));
    if let Some(url) = &options.url {
        plan.system.origin = SystemOrigin::Url(url.clone());
    }
    if plan.system.connect_to.is_some() && !matches!(plan.system.origin, SystemOrigin::Url(_)) {
        let reason =
            "only the system of a URL can be connected to somewhere else; give --url with --connect-to";
        return Err(LabError::Usage(reason.into()));
    }
    if matches!(plan.system.origin, SystemOrigin::Url(_)) && !options.pins.system.is_empty() {
        let reason = "--pin system=… pins what this run starts, but the system is there already; pin it where it is started";
        return Err(LabError::Usage(reason.into()));
    }
    let seed = options.seed.or(plan.seed).unwrap_or_else(|| fastrand::u64(..SEED_END));
    // A thread without a connection would be of no use, and with one more than the scenario says.
    let threads = options.threads.unwrap_or_else(|| pin::default_threads(&options.pins, &cores));
    let threads = threads.min(plan.limits.connections).max(1);

    let run_dir = tidemark_record::new_run_dir(options.out.as_deref(), &plan.name)
        .map_err(|error| LabError::Usage(format!("{error}")))?;
    let ledger_seed = tidemark_record::ledger::seed(seed, SystemTime::now());
    let experiment =
        Experiment { plan: Arc::new(plan), options, seed, ledger_seed, threads, run_dir, interrupt };
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

struct Experiment {
    plan: Arc<Plan>,
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
        let plan = &self.plan;
        let mut account = Account::begin(&self.options, plan, self.seed);
        let mut writer = RunWriter::create(&self.run_dir, &plan.labels, &plan.source).map_err(written)?;
        writer.threads(self.threads);
        let plan_of_mask = Arc::clone(plan);
        writer.mask(Arc::new(move |text| plan_of_mask.secrets.masked(text)));
        let runs_dir = Path::new(tidemark_record::RUNS_DIR);
        if self.options.remember && runs_dir.is_dir() {
            // so that `last` is this run wherever it is; no directory is made for that alone
            writer.remember_in(runs_dir);
        }
        writer.add_sink(ProgressSink::new(progress)).add_sink(self.options.sinks.clone());
        if plan.entered().next().is_some() {
            writer.keep_ledger(self.ledger_seed, tidemark_drive::forms(plan)).map_err(written)?;
        }
        self.begun(&account, &mut writer, &[])?;

        let mut events = Vec::new();
        let begin = Instant::now();
        // declared before what is on it, hence dropped after that
        let disks = Arc::new(self.disks()?);
        account.notes.extend(disks.notes());
        // declared before the system, hence dropped after it
        let mut stores = self.start_stores(&disks, progress)?;
        for store in stores.manifest() {
            let text =
                format!("{} at {} after {:.2?}", store.version, store.addresses.join(", "), begin.elapsed());
            events.push((Instant::now(), "ready", text));
        }
        account.stores(&stores);
        let name = plan.secrets.masked(&stores.resolved(&system_name(&plan.system.origin)));
        progress.tell(Progress::Starting { system: name });
        let begin = Instant::now();
        let mut system = self.start_system(&stores, &disks)?;
        events.push((Instant::now(), "ready", format!("{} after {:.2?}", system.url, begin.elapsed())));
        let mut monitor = Monitor::new();
        account.notes.extend(monitor.note());
        monitor.follow(SYSTEM, system.process_id());
        for (name, id) in stores.processes() {
            monitor.follow(&name, Some(id));
        }
        let started: Vec<Handle> = system.started().into_iter().chain(stores.started()).collect();

        let known = Known { directory: self.store_of(&system), cassandra: stores.found(Product::Cassandra) };
        let mut recipe = Recipe::of(plan, &system.url, known, self.seed)?;
        recipe.as_ref().map_or(Ok(()), |recipe| recipe.write(&self.run_dir))?;
        let link = self.link(&mut system)?;
        account.notes.extend(link.as_ref().map(|link| {
            format!(
                "connections went through a link of the lab's own at {}, for the faults that slow or cut it; it takes part \
                 of a core, and its time is in every response time",
                link.address
            )
        }));
        let of_system = link.map(|link| (SYSTEM.to_owned(), link));
        let means = Means { links: of_system.into_iter().chain(stores.links()).collect(), disks };
        Faults::check(&plan.faults, &started, &means)?;

        let before = self.probe(&system, progress)?;
        if let Some(part) = self.prepare(&mut system, progress)? {
            writer.add_to_ledger(&part, 0).map_err(written)?;
        }

        // the run's zero
        let drive_options = self.drive_options(&system);
        let epoch = drive_options.epoch;
        account.started(drive_options.wall_epoch, &system);
        writer.anchor(drive_options.wall_epoch);
        for (at, kind, text) in events {
            let at_us = -i64::try_from(epoch.saturating_duration_since(at).as_micros()).unwrap_or(i64::MAX);
            writer.add_event(&Event { at_us, kind: kind.into(), text }).map_err(written)?;
        }
        let shared = Arc::new(Shared::new(plan.counters, plan.feeders.clone()));
        let drive = tidemark_drive::start(Arc::clone(plan), shared, drive_options).map_err(not_begun)?;
        self.begun(&account, &mut writer, drive.phases())?;
        let faults = Faults::begin(&plan.faults, started, means, epoch, window_start_us(drive.phases()));
        let mut tested = Tested { system: &mut system, stores: &stores, faults: faults.map_err(driven)? };
        let watching = Watching {
            plan,
            epoch,
            wish: &|| self.wish(),
            writer: &mut writer,
            monitor: &mut monitor,
            tested: &mut tested,
        };
        let driven = watching.until_over(drive)?;
        for part in &driven.end.untaken {
            writer.add_to_ledger(part, driven.end.ended_us).map_err(written)?;
        }
        let mut faults = tested.faults;
        faults.end().iter().try_for_each(|event| writer.add_event(event)).map_err(written)?;
        let needs_nodes = recipe.as_ref().is_some_and(|recipe| !recipe.is_of_a_directory());
        if needs_nodes && self.wish() == Wish::GoOn {
            let restored = faults.restore(&|| self.wish() == Wish::GoOn);
            restored.iter().try_for_each(|event| writer.add_event(event)).map_err(written)?;
        }
        let stop = |system: &mut Running, account: &mut Account, writer: &mut RunWriter<'_>| {
            let at_us = microseconds(epoch.elapsed()) as i64;
            let Some(ending) = system.stop() else { return Ok(()) };
            account.stopped(&ending);
            writer.add_event(&Event { at_us, kind: "stopped".into(), text: ending }).map_err(written)
        };
        let missing = self.catch_up(recipe.as_mut(), &system, &driven, progress)?;
        if recipe.as_ref().is_some_and(Recipe::is_of_a_directory) {
            // nobody reads a directory while another has it open
            stop(&mut system, &mut account, &mut writer)?;
        }
        let ledger = match missing {
            Some(reason) => verify::entered(&self.run_dir, &reason.to_string()).map_err(written)?,
            None => self.verify(recipe.as_ref(), &system, &driven, progress)?,
        };
        if let Some(ledger) = &ledger {
            let at_us = microseconds(epoch.elapsed()) as i64;
            let text = verify::in_words(ledger);
            writer.add_event(&Event { at_us, kind: "verified".into(), text }).map_err(written)?;
        }

        let at_us = microseconds(epoch.elapsed()) as i64;
        stop(&mut system, &mut account, &mut writer)?;
        // whoever stopped the run does not want to wait for this
        let after = if self.wish() == Wish::GoOn { self.probe(&system, progress)? } else { None };
        account.synced(before, after);
        for (name, ending) in stores.stop(&|| self.wish() != Wish::Abort) {
            account.store_stopped(&name, &ending);
            let text = format!("{name}: {ending}");
            writer.add_event(&Event { at_us, kind: "stopped".into(), text }).map_err(written)?;
        }
        drop(system);
        drop(stores);
        self.finish(account, writer, driven, faults.records(), ledger)
    }

    /// Notes what is known of the run by now, for the case that it does not come to its end.
    fn begun(
        &self,
        account: &Account,
        writer: &mut RunWriter<'_>,
        phases: &[PhaseTimes],
    ) -> Result<(), LabError> {
        let summary = summarize(writer.totals(), &self.run_dir);
        let mut manifest = account.clone().manifest(&self.plan, &self.options, summary, writer.totals());
        let planned = DriveEnd { phases: phases.to_vec(), ..DriveEnd::default() };
        manifest.phases = account::phases(&self.plan, &planned);
        writer.begun(&self.clean(&manifest)?).map_err(written)
    }

    /// A manifest that can be written down.
    fn clean(&self, manifest: &Manifest) -> Result<Manifest, LabError> {
        secret::manifest(&self.plan.secrets, manifest).map_err(|error| LabError::Measure(error.to_string()))
    }

    fn wish(&self) -> Wish {
        self.interrupt.wish()
    }

    fn start_stores(&self, disks: &Disks, progress: &Watcher<'_>) -> Result<Stores, LabError> {
        let setup = stores::Setup {
            run_dir: self.run_dir.clone(),
            data_of: &|name| disks.data_of(name),
            is_linked: &|name| self.has_link_faults(name),
            cores: self.options.pins.system.clone(),
            keep_data: self.options.keep_data,
        };
        let mut tell = |text| progress.tell(Progress::Store { text });
        Stores::start(&self.plan.stores, &setup, &|| self.wish(), &mut tell)
    }

    /// Disks of their own for the data of whatever faults are to fill.
    fn disks(&self) -> Result<Disks, LabError> {
        let faults = &self.plan.faults;
        let Some(fault) = faults.iter().find(|fault| fault.kind.disk_bytes().is_some()) else {
            return Ok(Disks::default());
        };
        let of_system = |fault: &&PlannedFault| fault.kind.disk_bytes().is_some() && fault.is_about(SYSTEM);
        if let Some(fault) = faults.iter().find(of_system)
            && !matches!(self.plan.system.origin, SystemOrigin::Shipped(_))
        {
            return Err(LabError::Usage(format!(
                "`{fault}` cannot be: only of a system that is started with `serve`, and of stores, it is known where its \
                 data is"
            )));
        }
        if self.options.keep_data {
            return Err(LabError::Usage(format!(
                "`{fault}` has the data on a disk that goes with the run; leave --keep-data or the fault out"
            )));
        }
        let mut names = vec![SYSTEM.to_owned()];
        names.extend(self.plan.stores.iter().filter(|store| store.is_started()).flat_map(stores::names));
        Disks::mount(&self.run_dir, faults, &names)
    }

    fn start_system(&self, stores: &Stores, disks: &Disks) -> Result<Running, LabError> {
        let setup = Setup {
            executable: self.options.executable.clone(),
            run_dir: self.run_dir.clone(),
            data: disks.data_of(SYSTEM),
            cores: self.options.pins.system.clone(),
            keep_data: self.options.keep_data,
            comes_back: self.plan.faults.iter().any(|fault| fault.kind.ends_processes()),
        };
        let mut system = self.plan.system.clone();
        let has_websockets = self.plan.has_websockets() || self.plan.has_calls();
        if system.http == HttpVersion::Auto && has_websockets {
            // A WebSocket begins with a request of HTTP/1.1.
            system.http = HttpVersion::One;
        }
        stores.resolve(&mut system);
        let mut running = Running::start(&system, &setup, &|| self.wish())?;
        if self.plan.has_calls() {
            let path = system.rpc.as_deref().unwrap_or(RPC_PATH);
            running.greet_calls(path, self.plan.called())?;
        }
        Ok(running)
    }

    fn has_link_faults(&self, name: &str) -> bool {
        self.plan.faults.iter().any(|fault| fault.kind.is_of_link() && fault.is_about(name))
    }

    /// Puts a link between the driver and the system where faults are to slow or cut it.
    fn link(&self, system: &mut Running) -> Result<Option<Arc<Link>>, LabError> {
        if !self.has_link_faults(SYSTEM) {
            return Ok(None);
        }
        let connections = self.plan.limits.connections;
        if connections > link::CONNECTIONS_MAX {
            return Err(LabError::Usage(format!(
                "faults that slow or cut the link leave room for {} connections, not for {connections}; lower \
                 `limits: connections`",
                link::CONNECTIONS_MAX
            )));
        }
        let Address::Tcp(address) = system.target.address else {
            return Err(LabError::Usage("only a link over TCP can be slowed or cut".into()));
        };
        let link = Link::to(address);
        let link = link.map_err(|error| LabError::Start(format!("no link to {address}: {error}")))?;
        system.target.address = link.address.into();
        Ok(Some(Arc::new(link)))
    }

    fn drive_options(&self, system: &Running) -> DriveOptions {
        DriveOptions {
            threads: self.threads,
            cores: self.options.pins.driver.clone(),
            seed: self.seed,
            ledger_seed: self.ledger_seed,
            io: self.options.io,
            spin: self.options.spin,
            timestamps: self.options.timestamps,
            target: system.target.clone(),
            epoch: Instant::now(),
            wall_epoch: SystemTime::now(),
        }
    }

    /// The sync latency of the disk under the system's data, if its answers wait for it.
    fn probe(&self, system: &Running, progress: &Watcher<'_>) -> Result<Option<SyncProbe>, LabError> {
        if self.wish() == Wish::Abort {
            return Err(LabError::Interrupted(None));
        }
        let Some(data) = system.data_dir().filter(|_| system.durability.as_deref() == Some(SYNCED)) else {
            return Ok(None);
        };
        progress.tell(Progress::Probing);
        let probe = SyncProbe::measure(data);
        probe
            .map(Some)
            .map_err(|error| LabError::Measure(format!("cannot sync in {}: {error}", data.display())))
    }

    /// Runs the scenario's `prepare`, and hands back what it entered in the ledger. A wish to stop leaves it to itself: it ends by its own time-outs, or because
    /// the system is stopped under it.
    fn prepare(&self, system: &mut Running, progress: &Watcher<'_>) -> Result<Option<Part>, LabError> {
        let Some(kind) = self.plan.prepare.clone() else { return self.go_on().map(|()| None) };
        progress.tell(Progress::Preparing);
        let options = self.drive_options(system);
        let plan = Arc::clone(&self.plan);
        let once = std::thread::Builder::new().name("prepare".into()).spawn(move || {
            // its own counters and cursors: those of the load begin at their beginning
            let shared = Shared::new(plan.counters, plan.feeders.clone());
            tidemark_drive::run_once(&plan, &kind, &shared, &options)
        });
        let once = once.map_err(driven)?;
        while !once.is_finished() {
            self.go_on()?;
            std::thread::sleep(LOOK_EVERY / 10);
        }
        match once.join() {
            Ok(Ok(entered)) => self.go_on().map(|()| Some(entered)),
            Ok(Err(error)) => {
                let log = match system.ended() {
                    Some(ending) => format!("; the system ended ({ending}); {}", system.log_tail()),
                    None => String::new(),
                };
                Err(LabError::Prepare(format!("`prepare` of {} failed: {error}{log}", self.plan.source_name)))
            }
            Err(panic) => std::panic::resume_unwind(panic),
        }
    }

    fn go_on(&self) -> Result<(), LabError> {
        if self.wish() == Wish::GoOn { Ok(()) } else { Err(LabError::Interrupted(None)) }
    }

    fn finish(
        &self,
        mut account: Account,
        mut writer: RunWriter<'_>,
        driven: Driven,
        faults: &[Fault],
        ledger: Option<Ledger>,
    ) -> Result<Finished, LabError> {
        let plan = &self.plan;
        account.notes.extend(writer.settle().map_err(written)?);
        let totals = writer.totals();
        let mut summary = summarize(totals, &self.run_dir);
        summary.faults = faults.to_vec();
        fault::find_dips(&mut summary.faults, writer.seconds());
        summary.steady_state = Some(steady::test(&plan.load, writer.seconds(), &summary.faults));
        let gone = driven.system_ended.clone().or_else(|| driven.silence.reason());
        summary.driver.busiest = driven.neighbours.busiest();
        summary.driver.limits = verdict::limits(&summary, &plan.load, self.options.spin);
        let (mut verdict, mut objectives) = verdict::judge(&verdict::Evidence {
            plan,
            totals,
            summary: &summary,
            calm: driven.calm.as_ref(),
            system_gone: gone.as_deref(),
        });
        if let Some(hopeless) = &driven.hopeless {
            hopeless.apply(&mut verdict, &mut objectives);
        }
        let stopped = driven.end.interrupted && driven.system_ended.is_none() && driven.hopeless.is_none();
        finished::complete(&mut verdict, &driven.end, stopped, summary.measured_s);
        let asked = plan.verify.is_some();
        summary.verdict = verify::judge(&verdict, &plan.objectives, &mut objectives, ledger.as_ref(), asked);
        summary.ledger = ledger;
        let loaded = account::labels_of_the_load(plan);
        summary.steps.retain(|step| loaded.contains(step.label.as_str()));
        account.drove(&driven.end, &summary);
        let mut manifest = account.manifest(plan, &self.options, summary, totals);
        manifest.objectives = objectives;
        manifest.verdict_before_verify = manifest.summary.ledger.as_ref().map(|_| verdict);
        manifest.cut_short = driven.hopeless.map(|hopeless| hopeless.reason);
        manifest.interrupted = stopped;
        manifest.phases = account::phases(plan, &driven.end);
        let verify_stopped = manifest.summary.ledger.as_ref().is_some_and(verify::was_stopped);
        let manifest = self.clean(&manifest)?;
        writer.finish(&manifest).map_err(written)?;
        Ok(Finished { run_dir: self.run_dir.clone(), manifest, verify_stopped })
    }
}

/// Where the measured window begins.
fn window_start_us(phases: &[PhaseTimes]) -> u64 {
    phases.iter().filter(|phase| phase.measured).map(|phase| phase.start_us).min().unwrap_or(0)
}

fn system_name(origin: &SystemOrigin) -> String {
    match origin {
        SystemOrigin::Shipped(name) | SystemOrigin::Url(name) => name.clone(),
        SystemOrigin::Command(command) => {
            let program = command.first().map_or("", String::as_str);
            Path::new(program).file_name().map_or(program.into(), |name| name.to_string_lossy().into_owned())
        }
        SystemOrigin::Unknown => "nothing".into(),
    }
}

fn written(error: tidemark_record::RecordError) -> LabError {
    LabError::Measure(error.to_string())
}

/// What is asked for does not fit: wrong use. The rest is no measurement.
fn not_begun(error: DriveError) -> LabError {
    match error {
        DriveError::Room { .. } | DriveError::Io { .. } => LabError::Usage(error.to_string()),
        other => driven(other),
    }
}

fn driven(error: impl std::fmt::Display) -> LabError {
    LabError::Measure(format!("the load could not be driven: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn systems_are_named_for_persons() {
        let command = SystemOrigin::Command(vec!["/usr/bin/python3".into(), "x.py".into()]);
        assert_eq!(system_name(&command), "python3");
        assert_eq!(system_name(&SystemOrigin::Shipped("airline".into())), "airline");
    }
}
