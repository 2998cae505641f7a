//! What a load needs before it begins: stores, the system, links and disks for faults, the scenario's own preparation.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use tidemark_drive::{Address, DriveOptions};
use tidemark_record::ledger::Part;
use tidemark_scenario::Shared;
use tidemark_scenario::plan::{
    Balancer, Fault, HttpVersion, Preparation, Product, RequestKind, RequestPlan, System, SystemOrigin,
    Target,
};

use super::{Experiment, Record, driven, written};
use crate::disk::Disks;
use crate::error::LabError;
use crate::faults::{Faults, Injectors};
use crate::figures;
use crate::interrupt::StopRequest;
use crate::link::{self, Link};
use crate::monitor::{Monitor, SYSTEM};
use crate::operations::Operations;
use crate::progress::{Progress, Watcher};
use crate::started::{Handle, held};
use crate::stores::{self, Stores};
use crate::sync::SyncProbe;
use crate::system::{Running, Setup, greet_calls_of};
use crate::tier::{self, Services};
use crate::verify::{Known, Recipe};
use crate::watch::Watches;

/// How often a preparing session is looked at.
pub(super) const LOOK_EVERY: Duration = Duration::from_millis(5);

/// Durability that waits for the disk, beside which the disk's own sync latency is measured.
const SYNCED: &str = "synced";

/// What a load is driven against. When it is dropped, the system is stopped before the stores, and both before the disks
/// that their data is on are unmounted.
pub struct Environment {
    pub monitor: Monitor,
    /// How what the system holds is read back.
    pub recipe: Option<Recipe>,
    /// The sync latency of the disk under the system's data before the load.
    pub synced_before: Option<SyncProbe>,
    pub system: Running,
    /// What runs already beside it, to which requests go: the plan's targets.
    pub others: Vec<Running>,
    /// Where it tells of its operations.
    pub operations: Operations,
    /// Parts of the system that are started before it.
    pub services: Services,
    pub stores: Stores,
    /// What was there before, and is looked at.
    pub watches: Watches,
    pub _disks: Arc<Disks>,
}

/// An environment that serves, and has what the scenario prepares in it.
pub struct Prepared {
    /// What faults can be aimed at.
    pub targets: Vec<Handle>,
    pub injectors: Injectors,
    /// When the stores and the system were ready.
    pub ready: Vec<(Instant, String)>,
    /// What the preparing sessions shared.
    pub shared: Arc<Shared>,
    pub environment: Environment,
}

impl Experiment {
    /// Starts stores and system, and prepares them.
    pub(super) fn prepare(
        &self,
        record: &mut Record<'_>,
        progress: &Watcher<'_>,
    ) -> Result<Prepared, LabError> {
        let plan = &self.plan;
        let mut ready = Vec::new();
        let begin = Instant::now();
        // declared before what is on it, hence dropped after that
        let disks = Arc::new(self.disks()?);
        record.account.notes.extend(disks.notes());
        // declared before the system, hence dropped after it
        let stores = self.start_stores(&disks, progress)?;
        for store in stores.manifest() {
            let text =
                format!("{} at {} after {:.2?}", store.version, store.addresses.join(", "), begin.elapsed());
            ready.push((Instant::now(), text));
        }
        record.account.stores(&stores);
        let mut told = plan.system.clone();
        stores.resolve(&mut told);
        let mut tell = |text: String| progress.tell(Progress::Store { text: plan.secrets.masked(&text) });
        let services = self.start_services(&stores, &mut ready, &mut tell)?;
        let name = plan.secrets.masked(&stores.resolved(&system_name(&plan.system)));
        progress.tell(Progress::Starting { system: name });
        services.resolve(&mut told);
        let mut shown = plan.system.clone();
        services.resolve(&mut shown);
        record.account.settings(shown.settings);
        let operations = Operations::of(&told, self.options.shipped);
        let begin = Instant::now();
        let mut system = self.start_system(&stores, &services, &disks, &mut tell)?;
        record.account.services(services.tiers(), system.tier());
        ready.push((Instant::now(), format!("{} after {:.2?}", system.url, begin.elapsed())));
        let others = self.find_targets(&stores)?;
        let mut monitor = Monitor::new();
        record.account.notes.extend(monitor.note());
        for handle in services.tiers().iter().flat_map(|tier| tier.started()).chain(system.started()) {
            let handle = held(&handle);
            monitor.follow(handle.name(), handle.process_id());
        }
        for (name, id) in stores.processes() {
            monitor.follow(&name, Some(id));
        }
        let watches = Watches::find(plan, &self.run_dir, &|| self.stop_request())?;
        record.account.watched(&watches);
        let of_services = services.tiers().iter().flat_map(|tier| tier.started());
        let ours = system.started().into_iter().chain(of_services).chain(stores.started());
        let targets: Vec<Handle> = ours.chain(watches.handles()).collect();

        let known = Known {
            system: Some(&told),
            directory: self.store_of(&system),
            cassandra: stores.found(Product::Cassandra),
            started: stores.started_at(&self.asked(&system, &others).url),
        };
        let recipe = Recipe::of(plan, &self.asked(&system, &others).url, known, self.seed)?;
        recipe.as_ref().map_or(Ok(()), |recipe| recipe.write(&self.run_dir))?;
        let of_system = self.link(&mut system)?;
        let of_services: Vec<_> = services.tiers().iter().flat_map(|tier| tier.links()).cloned().collect();
        record.account.notes.extend(linked_note(of_system.iter().chain(&of_services)));
        let mut endpoints = stores.endpoints();
        match &told.origin {
            SystemOrigin::Url(url) if !stores.has_url(url) => endpoints.extend(figures::driven(url, &told)),
            _ => {}
        }
        let links = of_system.into_iter().chain(of_services).chain(stores.links()).collect();
        let tiers = services.tiers().iter().chain(system.tier()).cloned().collect();
        let injectors = Injectors { links, disks: disks.clone(), endpoints, tiers };
        Faults::check(&plan.faults, &targets, &injectors)?;

        let synced_before = self.probe(&system, &stores, progress)?;
        let shared = Arc::new(Shared::of(plan));
        if let Some(part) = self.prepare_data(&mut system, &others, &shared, progress)? {
            record.writer.add_to_ledger(&part, 0).map_err(written)?;
        }
        let environment = Environment {
            monitor,
            recipe,
            synced_before,
            system,
            others,
            operations,
            services,
            stores,
            watches,
            _disks: disks,
        };
        Ok(Prepared { targets, injectors, ready, shared, environment })
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
        Stores::start(&self.plan.stores, &setup, &|| self.stop_request(), &mut tell)
    }

    /// Disks of their own for the data of whatever faults are to fill.
    fn disks(&self) -> Result<Disks, LabError> {
        let faults = &self.plan.faults;
        let Some(fault) = faults.iter().find(|fault| fault.kind.disk_bytes().is_some()) else {
            return Ok(Disks::default());
        };
        let of_system = |fault: &&Fault| fault.kind.disk_bytes().is_some() && fault.is_about(SYSTEM);
        if let Some(fault) = faults.iter().find(of_system)
            && !matches!(self.plan.system.origin, SystemOrigin::Shipped(_))
        {
            return Err(LabError::Usage(format!(
                "`{fault}` is not possible: only of a system that is started with `serve`, and of stores, it is known where its \
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

    fn start_services(
        &self,
        stores: &Stores,
        ready: &mut Vec<(Instant, String)>,
        tell: &mut dyn FnMut(String),
    ) -> Result<Services, LabError> {
        let begin = Instant::now();
        let resolve = |service: &mut System| stores.resolve(service);
        let services = Services::start(
            &self.plan.services,
            &self.tier_setup(),
            &resolve,
            &|| self.stop_request(),
            tell,
        )?;
        for tier in services.tiers() {
            let text = format!("{} at {} after {:.2?}", tier.name(), tier.url(), begin.elapsed());
            ready.push((Instant::now(), text));
        }
        Ok(services)
    }

    fn tier_setup(&self) -> tier::Setup {
        let driven = &self.plan.system.tier;
        // without a balancer the links of what is driven are those of its instances
        let linked = |fault: &Fault| match fault.target == SYSTEM && driven.balancer == Balancer::None {
            true => driven.name.clone(),
            false => fault.target.clone(),
        };
        let of_links = self.plan.faults.iter().filter(|fault| fault.kind.is_of_link());
        tier::Setup {
            executable: self.options.executable.clone(),
            run_dir: self.run_dir.clone(),
            cores: self.options.pins.system.clone(),
            keep_data: self.options.keep_data,
            listen: None,
            room: 0,
            linked: of_links.map(linked).collect(),
        }
    }

    fn start_system(
        &self,
        stores: &Stores,
        services: &Services,
        disks: &Disks,
        tell: &mut dyn FnMut(String),
    ) -> Result<Running, LabError> {
        let setup = Setup {
            executable: self.options.executable.clone(),
            run_dir: self.run_dir.clone(),
            data: disks.data_of(SYSTEM),
            cores: self.options.pins.system.clone(),
            keep_data: self.options.keep_data,
            comes_back: self.plan.faults.iter().any(|fault| fault.kind.ends_processes()),
        };
        let mut system = self.plan.system.clone();
        self.settle_http(&mut system, 0);
        stores.resolve(&mut system);
        services.resolve(&mut system);
        let mut running = match system.tier.is_single() {
            true => Running::start(&system, &setup, &|| self.stop_request(), tell)?,
            false => tier::running(&system, &self.tier_setup(), &|| self.stop_request(), tell)?,
        };
        greet_calls_of(&mut running, &self.plan, 0, &system)?;
        if let Some((durability, _)) = stores.driven(&self.plan.system) {
            running.durability = Some(durability.to_owned());
        }
        Ok(running)
    }

    /// Settles what is left to the server where only one version of HTTP will do.
    fn settle_http(&self, system: &mut System, target: usize) {
        // A WebSocket begins with a request of HTTP/1.1, and large files are sent by it only.
        let needs_one = |request: &RequestPlan| {
            matches!(request.ask, RequestKind::WebSocket(_) | RequestKind::Call(_)) || request.ask.is_upload()
        };
        if system.http == HttpVersion::Auto && self.plan.requests_to(target).any(needs_one) {
            system.http = HttpVersion::One;
        }
    }

    /// Finds what requests go to beside the system, and begins to speak with it.
    fn find_targets(&self, stores: &Stores) -> Result<Vec<Running>, LabError> {
        let find = |(index, target): (usize, &Target)| {
            let mut at = target.at.clone();
            self.settle_http(&mut at, index + 1);
            stores.resolve(&mut at);
            let mut found = Running::find(&at, &|| self.stop_request())?;
            greet_calls_of(&mut found, &self.plan, index + 1, &at)?;
            Ok(found)
        };
        let named = |(index, target): (usize, &Target)| {
            find((index, target))
                .map_err(|error: LabError| error.in_words(|text| format!("target {}: {text}", target.name)))
        };
        self.plan.targets.iter().enumerate().map(named).collect()
    }

    fn has_link_faults(&self, name: &str) -> bool {
        self.plan.faults.iter().any(|fault| fault.kind.is_of_link() && fault.is_about(name))
    }

    /// Puts a link between the driver and the system where faults are to slow or cut it. Returns the links of the system and
    /// of its instances, by their names.
    fn link(&self, system: &mut Running) -> Result<Vec<(String, Arc<Link>)>, LabError> {
        let of_instances = system.tier().map_or(&[][..], |tier| tier.links()).to_vec();
        let is_about_all = self.has_link_faults(SYSTEM);
        let has_own = self.plan.system.tier.is_single() || self.plan.system.tier.balancer != Balancer::None;
        let connections = self.plan.limits.connections;
        if (is_about_all || !of_instances.is_empty()) && connections > link::CONNECTIONS_MAX {
            return Err(LabError::Usage(format!(
                "faults that slow or cut the link leave room for {} connections, not for {connections}; lower \
                 `limits: connections`",
                link::CONNECTIONS_MAX
            )));
        }
        if !is_about_all {
            return Ok(of_instances);
        }
        if !has_own {
            let as_system = of_instances.iter().map(|(_, link)| (SYSTEM.to_owned(), Arc::clone(link)));
            return Ok(of_instances.iter().cloned().chain(as_system).collect());
        }
        let Address::Tcp(address) = system.target.address else {
            return Err(LabError::Usage("only a link over TCP can be slowed or cut".into()));
        };
        let link = Link::to(address);
        let link =
            link.map_err(|error| LabError::Start(format!("cannot open a link to {address}: {error}")))?;
        system.target.address = link.address.into();
        Ok([(SYSTEM.to_owned(), Arc::new(link))].into_iter().chain(of_instances).collect())
    }

    pub(super) fn drive_options(&self, system: &Running, others: &[Running]) -> DriveOptions {
        DriveOptions {
            threads: self.threads,
            share: None,
            cores: self.options.pins.driver.clone(),
            seed: self.seed,
            ledger_seed: self.ledger_seed,
            io: self.options.io,
            spin: self.options.spin,
            timestamps: self.options.timestamps,
            targets: std::iter::once(system).chain(others).map(|one| one.target.clone()).collect(),
            trace: None,
            programs: None,
            codes: crate::script::codes(&self.plan, self.seed),
            epoch: Instant::now(),
            wall_epoch: SystemTime::now(),
            fence_ns: None,
        }
    }

    /// The sync latency of the disk under the data of the system, or of the store that is driven, if answers wait for it.
    pub(super) fn probe(
        &self,
        system: &Running,
        stores: &Stores,
        progress: &Watcher<'_>,
    ) -> Result<Option<SyncProbe>, LabError> {
        if self.stop_request() == StopRequest::Abort {
            return Err(LabError::Interrupted(None));
        }
        let data = match system.data_dir() {
            Some(data) => Some(data.to_owned()),
            None => stores.driven(&self.plan.system).map(|(_, data)| data),
        };
        let Some(data) = data.filter(|_| system.durability.as_deref() == Some(SYNCED)) else {
            return Ok(None);
        };
        progress.tell(Progress::Probing);
        let probe = SyncProbe::measure(&data);
        probe
            .map(Some)
            .map_err(|error| LabError::Measure(format!("cannot sync in {}: {error}", data.display())))
    }

    /// Runs the scenario's `prepare`; `shared` has the keys that it inserts. Hands back what it entered in the ledger. A stop request leaves it to itself: it ends by its own time-outs, or because
    /// the system is stopped under it.
    fn prepare_data(
        &self,
        system: &mut Running,
        others: &[Running],
        shared: &Arc<Shared>,
        progress: &Watcher<'_>,
    ) -> Result<Option<Part>, LabError> {
        let Some(kind) = self.plan.prepare.clone() else { return self.go_on().map(|()| None) };
        progress.tell(Progress::Preparing);
        let options = self.drive_options(system, others);
        if self.plan.preparation != Preparation::default() {
            return self.load(&kind, Arc::clone(shared), options, progress).map(|()| None);
        }
        let shared = Arc::clone(shared);
        let plan = Arc::clone(&self.plan);
        let once = std::thread::Builder::new()
            .name("prepare".into())
            .spawn(move || tidemark_drive::run_once(&plan, &kind, &shared, &options));
        let once = once.map_err(driven)?;
        while !once.is_finished() {
            self.go_on()?;
            std::thread::sleep(LOOK_EVERY);
        }
        match once.join() {
            Ok(Ok(entered)) => self.go_on().map(|()| Some(entered)),
            Ok(Err(error)) => {
                let log = match system.ended(&|_| false) {
                    Some(ending) => format!("; the system ended ({ending}); {}", system.log_tail()),
                    None => String::new(),
                };
                Err(self.not_prepared(&format!("{error}{log}")))
            }
            Err(panic) => std::panic::resume_unwind(panic),
        }
    }

    pub(super) fn not_prepared(&self, reason: &str) -> LabError {
        LabError::Prepare(format!("`prepare` of {} failed: {reason}", self.plan.source_name))
    }

    pub(super) fn go_on(&self) -> Result<(), LabError> {
        if self.stop_request() == StopRequest::None { Ok(()) } else { Err(LabError::Interrupted(None)) }
    }
}

fn system_name(system: &System) -> String {
    match &system.origin {
        SystemOrigin::Shipped(_) | SystemOrigin::Command(_) if system.tier.name != SYSTEM => {
            system.tier.name.clone()
        }
        SystemOrigin::Shipped(name) | SystemOrigin::Url(name) => name.clone(),
        SystemOrigin::Command(command) => {
            let program = command.first().map_or("", String::as_str);
            Path::new(program).file_name().map_or(program.into(), |name| name.to_string_lossy().into_owned())
        }
        SystemOrigin::Unknown => "nothing".into(),
    }
}

/// What a run with links says about them; each is named once.
fn linked_note<'l>(links: impl Iterator<Item = &'l (String, Arc<Link>)>) -> Option<String> {
    let mut seen: Vec<&(String, Arc<Link>)> = Vec::new();
    for one in links {
        if !seen.iter().any(|(_, link)| Arc::ptr_eq(link, &one.1)) {
            seen.push(one);
        }
    }
    let names: Vec<&str> = seen.iter().map(|(name, _)| name.as_str()).collect();
    (!names.is_empty()).then(|| {
        format!(
            "connections to {} went through a link of the lab's own, for the faults that slow or cut them; it takes part of a \
             core, and its time is in every answer",
            names.join(", ")
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn systems_are_named_for_persons() {
        let command = SystemOrigin::Command(vec!["/usr/bin/python3".into(), "x.py".into()]);
        let of = |origin| System { origin, ..System::default() };
        assert_eq!(system_name(&of(command)), "python3");
        assert_eq!(system_name(&of(SystemOrigin::Shipped("airline".into()))), "airline");
    }
}
