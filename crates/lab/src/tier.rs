//! A part of the system in one or several instances, and the balancer in front of them: started, watched, replaced one
//! after another, and stopped.
//!
//! All addresses are known before anything is started: there is a port for each instance that there may be. HAProxy, and
//! nginx before a command, are told when one comes or goes; nginx before a shipped system finds out itself.

mod balancer;

use self::balancer::State;
pub use self::balancer::installed as installed_balancer;

use std::fs;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use socket2::{Domain, Socket, Type};
use tidemark_record::{Sample, manifest};
use tidemark_scenario::plan::{Balancer, Fault, INSTANCE, ROLL_PAUSE, Ready, System, SystemOrigin};
use tidemark_scenario::{StoreFact, with_service_facts};

use crate::error::LabError;
use crate::hooks::{self, AfterHooks, LaunchContext};
use crate::interrupt::StopRequest;
use crate::link::Link;
use crate::process::Patience;
use crate::served::{self, Deadline, Served, cannot_write};
use crate::started::{Handle, Started as _, held, try_held};
use crate::system::{self, Running, ShippedCommand};
use crate::target::target;

/// How often it is looked whether to go on meanwhile.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// What is set about an instance of ours: when it is to end it keeps idle connections longer than a balancer does, and
/// before it has started it lets requests wait.
pub const INSTANCE_SETTINGS: [(&str, &str); 2] = [("drain_ms", "1500"), ("accept", "ready")];

/// Where and how a tier is started.
#[derive(Debug, Clone)]
pub struct Setup {
    /// The `tidemark` executable, for shipped systems.
    pub executable: PathBuf,
    /// The run directory: holds `logs/` and `data/`.
    pub run_dir: PathBuf,
    /// Cores that instances are held to; empty for all.
    pub cores: Vec<usize>,
    /// Whether data directories stay.
    pub keep_data: bool,
    /// Where it is to be reached; a free port of the loopback where nothing is said.
    pub listen: Option<SocketAddr>,
    /// How many instances there may be of a tier that has several, where that is more than its scenario says.
    pub room: usize,
    /// Services and instances whose link is to be slowed or cut.
    pub linked: Vec<String>,
}

/// What is known of a service by the word of a scenario: it is reached at `entry`, its instances at `instances`, each
/// `HOST:PORT`.
///
/// ```
/// use tidemark_lab::tier::service_fact;
/// let instances = ["a:1".to_owned(), "b:2".to_owned()];
/// assert_eq!(service_fact("urls", "a:1", &instances).as_deref(), Some("http://a:1,http://b:2"));
/// assert_eq!(service_fact("port", "a:1", &instances).as_deref(), Some("1"));
/// ```
pub fn service_fact(fact: &str, entry: &str, instances: &[String]) -> Option<String> {
    let (host, port) = entry.rsplit_once(':')?;
    Some(match fact {
        "url" => format!("http://{entry}"),
        "urls" => instances.iter().map(|one| format!("http://{one}")).collect::<Vec<_>>().join(","),
        "address" => entry.to_owned(),
        "addresses" => instances.join(","),
        "host" => host.trim_matches(['[', ']']).to_owned(),
        "port" => port.to_owned(),
        _ => return None,
    })
}

/// A tier that serves. Dropped, all of it is stopped.
#[derive(Debug)]
pub struct Tier {
    system: System,
    /// The ports of instances that are down, so that nobody else gets what a balancer would send there.
    spare: Mutex<Vec<Option<Socket>>>,
    /// Held while instances are replaced, added or taken away.
    changing: Mutex<()>,
    /// How many instances are to be up.
    wanted: AtomicUsize,
    /// All instances that there may be; those behind the first few may be down.
    instances: Vec<Arc<Mutex<Served>>>,
    balancer: Option<Arc<Mutex<Served>>>,
    // behind the processes, so that they go later
    afterwards: Mutex<Vec<AfterHooks>>,
    _data: Vec<system::DataDir>,
    /// Where instances are reached.
    addresses: Vec<SocketAddr>,
    /// Where they listen: there, or behind their links.
    listens: Vec<SocketAddr>,
    links: Vec<(String, Arc<Link>)>,
    /// Where it is reached: the balancer, or the first instance.
    entry: SocketAddr,
    command: Vec<String>,
    durability: Option<String>,
}

impl Tier {
    /// Starts its instances, all at once, and the balancer, and waits until all are ready; tells what it waits for. `system` has what is known of
    /// stores and other services in it.
    ///
    /// # Errors
    /// Where one cannot be started, or is not ready in time; [`LabError::Interrupted`] on a stop request.
    pub fn start(
        system: &System,
        setup: &Setup,
        stop_request: &dyn Fn() -> StopRequest,
        tell: &mut dyn FnMut(String),
    ) -> Result<Tier, LabError> {
        let about = &system.tier;
        let is_alone = about.is_single();
        let balances = about.balancer != Balancer::None;
        // of one that has its data for itself, another would not see them
        let room =
            if about.instances > 1 { setup.room.max(about.instances_max) } else { about.instances_max };
        let mut addresses = Vec::new();
        while addresses.len() < room {
            addresses.push(match setup.listen.filter(|_| is_alone) {
                Some(address) => address,
                None => SocketAddr::from(([127, 0, 0, 1], served::free_port(true)?)),
            });
        }
        let entry = match (setup.listen, balances) {
            (Some(address), true) => address,
            (None, true) => SocketAddr::from(([127, 0, 0, 1], served::free_port(true)?)),
            (_, false) => addresses[0],
        };
        if let Some(address) = setup.listen {
            served::check_free_at(address)?;
        }
        let names = || (1..=room).map(|number| about.instance(number));
        let is_linked = |name: &str| setup.linked.iter().any(|of| *of == about.name || of == name);
        let (mut listens, mut links) = (addresses.clone(), Vec::new());
        // where one has a link, all have, so that none is slower than another without it
        if names().any(|name| is_linked(&name)) {
            for (name, listens) in names().zip(&mut listens) {
                let address = std::mem::replace(listens, ([127, 0, 0, 1], served::free_port(true)?).into());
                let link = Link::between(address, *listens)
                    .map_err(|error| LabError::Start(format!("cannot open a link at {address}: {error}")))?;
                links.push((name, Arc::new(link)));
            }
        }
        let mut tier = Tier {
            system: system.clone(),
            spare: Mutex::new(listens.iter().map(|address| reserve(*address)).collect()),
            changing: Mutex::new(()),
            wanted: AtomicUsize::new(about.instances),
            instances: Vec::new(),
            balancer: None,
            afterwards: Mutex::default(),
            _data: Vec::new(),
            addresses,
            listens,
            links,
            entry,
            command: Vec::new(),
            durability: None,
        };
        for number in 1..=room {
            let instance = tier.instance(number, setup, stop_request)?;
            tier.instances.push(Arc::new(Mutex::new(instance)));
        }
        for (index, instance) in tier.instances[..about.instances].iter().enumerate() {
            held(&tier.spare)[index] = None;
            held(instance).begin()?;
        }
        for instance in &tier.instances[..about.instances] {
            held(instance).become_ready(&Deadline::new(system.ready_within), stop_request, tell)?;
        }
        if balances {
            let mut balancer = balancer::served(&tier, setup)?;
            balancer.begin()?;
            balancer.become_ready(&Deadline::new(system.ready_within), stop_request, tell)?;
            tier.balancer = Some(Arc::new(Mutex::new(balancer)));
        }
        Ok(tier)
    }

    /// An instance that is down.
    fn instance(
        &mut self,
        number: usize,
        setup: &Setup,
        stop_request: &dyn Fn() -> StopRequest,
    ) -> Result<Served, LabError> {
        let system = &self.system;
        let (name, address) = (system.tier.instance(number), self.listens[number - 1]);
        let at = target(&format!("http://{address}"), system)?;
        let (spec, ready, data) = match &system.origin {
            SystemOrigin::Shipped(shipped) => {
                let data = setup.run_dir.join("data").join(&name);
                let mut system = system.clone();
                if !system.tier.is_single() {
                    for (name, value) in INSTANCE_SETTINGS {
                        system.settings.entry(name.into()).or_insert_with(|| value.into());
                    }
                }
                let reached = self.addresses[number - 1];
                if reached != address {
                    system.settings.insert("advertise".into(), reached.to_string());
                }
                let events = setup.run_dir.join(format!("{}.{name}", tidemark_record::OPERATIONS_TOLD));
                let command = ShippedCommand {
                    executable: &setup.executable,
                    name: shipped,
                    system: &system,
                    listen: address.to_string(),
                    data: &data,
                    events: Some(&events),
                };
                let (command, durability) = command.words_of_child();
                self.durability = Some(durability);
                let data = (!system.keeps_nothing).then(|| system::DataDir(data, setup.keep_data));
                if let Some(system::DataDir(data, _)) = &data {
                    fs::create_dir_all(data).map_err(|error| cannot_write(data, &error))?;
                }
                let spec = served::spec(&name, command, &setup.run_dir, &setup.cores, true)?;
                (spec, system.ready.clone(), data)
            }
            SystemOrigin::Command(command) => {
                let numbered = |text: &str| text.replace(INSTANCE, &number.to_string());
                let command: Vec<String> = command.iter().map(|word| numbered(word)).collect();
                let mut of = system.clone();
                of.texts_mut().for_each(|text| *text = numbered(text));
                let (port, run_dir) = (address.port(), setup.run_dir.clone());
                let context = LaunchContext::of(&of.launch, port, run_dir, setup.cores.clone());
                if number <= system.tier.instances {
                    held(&self.afterwards).push(AfterHooks::new(&of.launch.after, &context));
                    hooks::run_before(&of.launch, &context, stop_request)?;
                }
                let ready = match &system.ready {
                    Ready::Prints(text) => Ready::Prints(context.with_port(&numbered(text))),
                    ready => ready.clone(),
                };
                (context.spec(&name, &command)?, ready, None)
            }
            SystemOrigin::Url(_) | SystemOrigin::Unknown => {
                return Err(LabError::Usage(format!("the service {name} needs `serve` or `command`")));
            }
        };
        if self.command.is_empty() {
            self.command.clone_from(&spec.command);
        }
        let served = Served::down(&name, spec, &at, &ready, system.ready_within);
        let served = match &data {
            Some(data) => served.with_data(&data.0),
            None => served,
        };
        self._data.extend(data);
        Ok(served)
    }

    /// What the scenario calls it.
    pub fn name(&self) -> &str {
        &self.system.tier.name
    }

    /// `http://HOST:PORT` of the balancer, or of the first instance.
    pub fn url(&self) -> String {
        format!("http://{}", self.entry)
    }

    /// Where it is reached.
    pub fn entry(&self) -> SocketAddr {
        self.entry
    }

    /// The command of its first instance.
    pub fn command(&self) -> &[String] {
        &self.command
    }

    /// `synced`, `buffered` or `memory`, where it is known.
    pub fn durability(&self) -> Option<&str> {
        self.durability.as_deref()
    }

    /// The addresses of the instances that there were at the beginning.
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses[..self.system.tier.instances]
    }

    /// What is known of it, by the word of a scenario.
    fn fact(&self, fact: &str) -> Option<String> {
        // those that only `tidemark scale` adds are found through a registry or a balancer
        let known = &self.addresses[..self.system.tier.instances_max];
        let known: Vec<String> = known.iter().map(ToString::to_string).collect();
        service_fact(fact, &self.entry.to_string(), &known)
    }

    /// The link of each instance, by its name, where faults are to slow or cut one.
    pub fn links(&self) -> &[(String, Arc<Link>)] {
        &self.links
    }

    fn all(&self) -> impl Iterator<Item = &Arc<Mutex<Served>>> {
        self.instances.iter().chain(&self.balancer)
    }

    /// Every process that it has or may have, for whoever breaks them on purpose.
    pub fn started(&self) -> Vec<Handle> {
        self.all().map(|one| Arc::clone(one) as Handle).collect()
    }

    /// What it is, for the manifest.
    pub fn manifest(&self) -> manifest::Service {
        let balancer = self.system.tier.balancer;
        manifest::Service {
            name: self.name().to_owned(),
            url: self.url(),
            addresses: self.addresses().iter().map(ToString::to_string).collect(),
            balancer: (balancer != Balancer::None).then(|| balancer.name().to_owned()),
            command: self.command.clone(),
            driven: false,
        }
    }

    /// What its instances used together, under another name, where they are several.
    pub fn sum(&self, name: &str, samples: &[Sample]) -> Option<Sample> {
        let is_one = |sample: &&Sample| {
            let rest = sample.process.strip_prefix(self.name());
            rest.is_some_and(|rest| rest.starts_with('.'))
        };
        let mut own = samples.iter().filter(is_one);
        let first = Sample { process: name.to_owned(), ..own.next()?.clone() };
        Some(own.fold(first, |sum, one| sum.with(one)))
    }

    /// The ids of its instances' processes that are up.
    pub fn process_ids(&self) -> Vec<u32> {
        self.instances.iter().filter_map(|one| try_held(one)?.process_id()).collect()
    }

    /// Which process ended by itself, and how. One that somebody is at work on is not asked, nor one whose end is
    /// `expected`.
    pub fn ended(&self, expected: &dyn Fn(&str) -> bool) -> Option<(String, String)> {
        self.all().find_map(|one| {
            let mut one = try_held(one)?;
            let ending = one.ended().filter(|_| !expected(one.name()))?;
            Some((one.name().to_owned(), ending))
        })
    }

    /// The end of this process' log, for a reason to quote.
    pub fn log_tail(&self, name: &str) -> String {
        let of = |one: &Arc<Mutex<Served>>| {
            let one = try_held(one).filter(|one| one.name() == name)?;
            Some(one.log_tail())
        };
        self.all().find_map(of).unwrap_or_default()
    }

    /// Instances that the balancer took out though no fault explains it, for a note.
    pub fn taken_out(&self, faults: &[Fault]) -> Vec<String> {
        let Some(balancer) = &self.balancer else { return Vec::new() };
        let names: Vec<String> =
            (1..=self.instances.len()).map(|number| self.system.tier.instance(number)).collect();
        let out = balancer::taken_out(held(balancer).log());
        let unexplained =
            out.into_iter().filter(|(name, _)| !faults.iter().any(|fault| fault.is_about(name)));
        // one of another instance explains nothing; one of something else may be felt here
        let may_be_felt = |fault: &&Fault| !fault.kind.asks_a_store() && !names.contains(&fault.target);
        let perhaps = faults.iter().find(may_be_felt).map(|fault| format!(" (perhaps by `{fault}`)"));
        let perhaps = perhaps.unwrap_or_default();
        unexplained.map(|(name, reason)| format!("the balancer took {name} out: {reason}{perhaps}")).collect()
    }

    /// Stops all of it: what takes requests first. Returns how its first instance ended.
    pub fn stop(&self, patience: &(dyn Fn() -> bool + Sync)) -> Option<String> {
        if let Some(balancer) = &self.balancer {
            held(balancer).stop(&|| patience());
        }
        let stop = |one: &Mutex<Served>| {
            let mut one = held(one);
            let is_up = one.process_id().is_some() && one.ended().is_none();
            is_up.then(|| one.stop(&|| patience()))
        };
        std::thread::scope(|scope| {
            let threads: Vec<_> = self.instances.iter().map(|one| scope.spawn(move || stop(one))).collect();
            let endings: Vec<_> = threads.into_iter().map(|thread| thread.join().ok().flatten()).collect();
            endings.into_iter().flatten().next()
        })
    }

    /// Runs what the scenario wants to be run once it was stopped; returns what went wrong.
    pub fn run_after(&self) -> Vec<String> {
        let mut all = held(&self.afterwards);
        all.iter_mut().flat_map(AfterHooks::run).map(|error| error.to_string()).collect()
    }

    /// Names and addresses of all processes that there may be, and what says of an instance that it is ready.
    pub fn places(&self) -> Vec<(String, SocketAddr, Option<Ready>)> {
        let about = &self.system.tier;
        let instance = |(index, address): (usize, &SocketAddr)| {
            (about.instance(index + 1), *address, Some(self.system.ready.clone()))
        };
        let balancer = self.balancer.as_ref().map(|_| (about.balancer_name(), self.entry, None));
        self.addresses.iter().enumerate().map(instance).chain(balancer).collect()
    }

    /// Whether a process of this name is to be up: one of the first, or the balancer.
    pub fn is_wanted(&self, name: &str) -> bool {
        let wanted = self.wanted.load(Ordering::Relaxed);
        name == self.system.tier.balancer_name()
            || (1..=wanted).any(|number| self.system.tier.instance(number) == name)
    }

    /// Whether its instances are shipped systems, which have settings.
    pub fn is_shipped(&self) -> bool {
        matches!(self.system.origin, SystemOrigin::Shipped(_))
    }

    /// How many instances are up.
    pub fn up(&self) -> usize {
        self.instances.iter().filter(|one| held(one).process_id().is_some()).count()
    }

    /// Replaces its instances that are up, one after another: each is asked to end, finishes what it has, and is started
    /// again, with `change` made to its command before.
    ///
    /// # Errors
    /// Where one does not come back; those behind it are as they were. [`LabError::Interrupted`] without patience.
    pub fn roll(
        &self,
        patience: Patience<'_>,
        change: &dyn Fn(&mut Vec<String>),
        tell: &mut dyn FnMut(&str),
    ) -> Result<(), LabError> {
        let _alone = held(&self.changing);
        if self.up() < 2 {
            return Err(LabError::Usage(format!(
                "{} has one instance: it would be down while it is replaced; scale it to two first",
                self.name()
            )));
        }
        let last = self.instances.iter().rposition(|one| held(one).process_id().is_some());
        for (index, instance) in self.instances.iter().enumerate() {
            if !patience() {
                return Err(LabError::Interrupted(None));
            }
            if held(instance).process_id().is_none() {
                continue;
            }
            self.leave(instance, patience);
            let before = held(instance).change(change);
            if let Err(error) = self.join(instance, patience) {
                // one that serves as before is better than none
                held(instance).change(&|words| words.clone_from(&before));
                let again = match self.join(instance, patience) {
                    Ok(()) => "it was started again as it was before",
                    Err(_) => "and it could not be started as it was before",
                };
                return Err(error.in_words(|text| format!("{text}; {again}")));
            }
            tell(held(instance).name());
            // the balancer must see this one again before the next goes
            let until = Instant::now() + ROLL_PAUSE;
            while last.is_some_and(|last| index < last) && patience() && Instant::now() < until {
                std::thread::sleep(LOOK_EVERY);
            }
        }
        Ok(())
    }

    /// Whether there can be so many instances.
    ///
    /// # Errors
    /// There is no room for them, with why.
    pub fn check_scale(&self, wanted: usize) -> Result<(), LabError> {
        if (1..=self.instances.len()).contains(&wanted) {
            return Ok(());
        }
        let (name, most) = (self.name(), self.instances.len());
        let way_out = match most {
            1 => "; it was started as one, and another would not see its data: start it with two",
            _ => "",
        };
        Err(LabError::Usage(format!("{name} can have 1 to {most} instances, not {wanted}{way_out}")))
    }

    /// Has so many instances up; those with the highest numbers come and go.
    ///
    /// # Errors
    /// Where there is no room for so many, or one cannot be started.
    pub fn scale(&self, wanted: usize, patience: Patience<'_>) -> Result<(), LabError> {
        self.check_scale(wanted)?;
        let _alone = held(&self.changing);
        for (index, instance) in self.instances.iter().enumerate() {
            let is_up = held(instance).process_id().is_some();
            if !patience() {
                return Err(LabError::Interrupted(None));
            }
            match (index < wanted, is_up) {
                (true, false) => {
                    held(&self.spare)[index] = None;
                    self.join(instance, patience)?;
                }
                (false, true) => {
                    self.leave(instance, patience);
                    held(&self.spare)[index] = reserve(self.listens[index]);
                }
                _ => {}
            }
        }
        self.wanted.store(wanted, Ordering::Relaxed);
        Ok(())
    }

    /// The balancer, where it is told of instances that come and go. nginx closes idle connections of clients when it is
    /// told; it need not know of a shipped system, which itself answers what comes until nobody sends it anything.
    fn told_balancer(&self) -> Option<&Arc<Mutex<Served>>> {
        let is_told = self.system.tier.balancer != Balancer::Nginx || !self.is_shipped();
        self.balancer.as_ref().filter(|_| is_told)
    }

    /// Takes an instance out, once it has finished what it has.
    fn leave(&self, instance: &Mutex<Served>, patience: Patience<'_>) {
        if let Some(of) = self.told_balancer() {
            // where it cannot be told, it finds out a moment later
            let name = held(instance).name().to_owned();
            let _ = balancer::set_state(of, &name, State::Drain, patience);
        }
        held(instance).stop(patience);
    }

    /// Starts an instance again, and lets it have requests.
    fn join(&self, instance: &Mutex<Served>, patience: Patience<'_>) -> Result<(), LabError> {
        held(instance).restart(patience)?;
        if let Some(of) = self.told_balancer() {
            let name = held(instance).name().to_owned();
            balancer::set_state(of, &name, State::Ready, patience).map_err(|error| {
                LabError::Start(format!("the balancer cannot be told that {name} is back: {error}"))
            })?;
        }
        Ok(())
    }
}

/// Takes a port without listening there, so that nobody else can; none where somebody has it.
fn reserve(address: SocketAddr) -> Option<Socket> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, None).ok()?;
    socket.bind(&address.into()).ok()?;
    Some(socket)
}

impl Drop for Tier {
    fn drop(&mut self) {
        self.stop(&|| true);
    }
}

/// The services of a run, in the order in which they were started; stopped in the other one when dropped.
#[derive(Debug, Default)]
pub struct Services(Vec<Arc<Tier>>);

impl Services {
    /// Starts them, one after another, and tells of it. `resolve` puts what is known of stores into one.
    ///
    /// # Errors
    /// As [`Tier::start`].
    pub fn start(
        services: &[System],
        setup: &Setup,
        resolve: &dyn Fn(&mut System),
        stop_request: &dyn Fn() -> StopRequest,
        tell: &mut dyn FnMut(String),
    ) -> Result<Services, LabError> {
        let mut started = Services::default();
        for service in services {
            let mut service = service.clone();
            resolve(&mut service);
            started.resolve(&mut service);
            tell(format!("starting {}", service.tier.name));
            let tier = Tier::start(&service, setup, stop_request, tell)?;
            started.0.push(Arc::new(tier));
        }
        Ok(started)
    }

    /// Puts what is known of services into what another is started with.
    pub fn resolve(&self, system: &mut System) {
        let known =
            |asked: &StoreFact<'_>| self.0.iter().find(|tier| tier.name() == asked.store)?.fact(asked.fact);
        let resolved = |text: &str| with_service_facts(text, &known);
        system.texts_mut().for_each(|text| *text = resolved(text));
        system.settings.values_mut().for_each(|value| *value = resolved(value));
    }

    /// All of them.
    pub fn tiers(&self) -> &[Arc<Tier>] {
        &self.0
    }

    /// Stops all of them, the last first; returns what went wrong in what is run afterwards.
    pub fn stop(&mut self, patience: &(dyn Fn() -> bool + Sync)) -> Vec<String> {
        let mut wrong = Vec::new();
        while let Some(tier) = self.0.pop() {
            tier.stop(patience);
            wrong.extend(tier.run_after());
        }
        wrong
    }
}

impl Drop for Services {
    fn drop(&mut self) {
        drop(self.stop(&|| true));
    }
}

/// A system of several instances, or behind a balancer, as what is driven.
///
/// # Errors
/// As [`Tier::start`].
pub fn running(
    system: &System,
    setup: &Setup,
    stop_request: &dyn Fn() -> StopRequest,
    tell: &mut dyn FnMut(String),
) -> Result<Running, LabError> {
    let tier = Tier::start(system, setup, stop_request, tell)?;
    let mut target = target(&tier.url(), system)?;
    if system.tier.balancer == Balancer::None {
        target.others = tier.addresses()[1..].iter().map(|address| (*address).into()).collect();
    }
    Ok(Running::of_tier(Arc::new(tier), target))
}
