//! A scenario's system kept running without a load: its stores, services and the system itself, all children of this
//! process; replaced and scaled on request, and taken down at the end.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use tidemark_record::Sample;
use tidemark_scenario::Plan;
use tidemark_scenario::plan::{Balancer, Ready, System, SystemOrigin};

use crate::error::LabError;
use crate::http::{Bounds, Client};
use crate::interrupt::StopRequest;
use crate::monitor::Monitor;
use crate::started::{Handle, try_held};
use crate::stores::{self, Stores};
use crate::target::target;
use crate::tier::{self, Services, Tier};
use crate::timetable::microseconds;

/// Room for instances of each service of several, for `scale`.
const SCALE_ROOM: usize = 16;
/// Longest time that an instance is asked how it is.
const ASK_MAX: Duration = Duration::from_secs(1);
/// Most of a page of metrics that is read, bytes.
const PAGE_BYTES_MAX: usize = 4 << 20;
/// What the systems shipped count requests and breakers in.
const REQUESTS: &str = "tidemark_requests_total";
const BREAKER: &str = "mesh_breaker_state";

/// How a system is kept running.
#[derive(Debug, Clone)]
pub struct Options {
    /// The `tidemark` executable, for shipped systems.
    pub executable: PathBuf,
    /// Where logs, data and configuration are.
    pub dir: PathBuf,
    /// Whether the data stays there afterwards.
    pub keep_data: bool,
    /// Where the system is to be reached; a free port of the loopback where nothing is said.
    pub listen: Option<std::net::SocketAddr>,
}

/// A system that runs. Dropped, all of it is stopped.
#[derive(Debug)]
pub struct Up {
    monitor: Monitor,
    begun: Instant,
    /// Requests that instances had answered at the look before, and when that was.
    answered: Vec<(String, Instant, f64)>,
    // stopped from the first to the last
    system: Arc<Tier>,
    services: Services,
    stores: Stores,
}

/// How a process is.
#[derive(Debug, Clone, Default, PartialEq, serde::Serialize)]
pub struct Status {
    /// Its name: `web.1`, `redis`.
    pub name: String,
    /// Where it listens.
    pub address: String,
    /// `healthy`, `unhealthy`, `down`, or `up` where nobody can tell.
    pub health: &'static str,
    /// Requests it answers each second, where it tells.
    pub requests_per_s: Option<f64>,
    /// What it used since the look before, in cores.
    pub cores: Option<f64>,
    /// Its memory, bytes.
    pub rss_bytes: Option<u64>,
    /// Its circuit breakers that are not closed: the call, and `open` or `half open`.
    pub breakers: Vec<(String, &'static str)>,
    /// Whether it has circuit breakers.
    pub has_breakers: bool,
}

impl Up {
    /// Starts all that a plan has, but for its load. `tell` says what takes its time.
    ///
    /// # Errors
    /// Where something cannot be started or is not ready in time; [`LabError::Interrupted`] on a stop request.
    pub fn start(
        plan: &Plan,
        options: &Options,
        stop_request: &dyn Fn() -> StopRequest,
        tell: &mut dyn FnMut(String),
    ) -> Result<Up, LabError> {
        if matches!(plan.system.origin, SystemOrigin::Url(_) | SystemOrigin::Unknown) {
            let reason = "this scenario drives what runs already; only what it starts (`serve`, `command`, `service`) can be kept running";
            return Err(LabError::Usage(reason.into()));
        }
        let of_stores = stores::Setup {
            run_dir: options.dir.clone(),
            data_of: &|_| None,
            is_linked: &|_| false,
            cores: Vec::new(),
            keep_data: options.keep_data,
        };
        let stores = Stores::start(&plan.stores, &of_stores, stop_request, tell)?;
        let mut setup = tier::Setup {
            executable: options.executable.clone(),
            run_dir: options.dir.clone(),
            cores: Vec::new(),
            keep_data: options.keep_data,
            listen: None,
            room: SCALE_ROOM,
            linked: Vec::new(),
        };
        let resolve = |service: &mut System| stores.resolve(service);
        let services = Services::start(&plan.services, &setup, &resolve, stop_request, tell)?;
        let mut driven = plan.system.clone();
        if driven.tier.instances > 1 && driven.tier.balancer == Balancer::None {
            // one address for all of them
            match tier::installed_balancer() {
                Some(balancer) => {
                    driven.tier.balancer = balancer;
                    tell(format!("{} stands in front of {}", balancer.name(), driven.tier.name));
                }
                None if options.listen.is_some() => {
                    let reason = "several instances behind one address need a balancer, and neither nginx nor HAProxy is here; install one \
                                  (Debian: apt-get install nginx-light), or leave --listen out: then each has its own address";
                    return Err(LabError::Usage(reason.into()));
                }
                None => {}
            }
        }
        stores.resolve(&mut driven);
        services.resolve(&mut driven);
        setup.listen = options.listen;
        let system = Arc::new(Tier::start(&driven, &setup, stop_request, tell)?);
        let mut up = Up {
            monitor: Monitor::of_nothing(),
            begun: Instant::now(),
            answered: Vec::new(),
            system,
            services,
            stores,
        };
        up.follow();
        Ok(up)
    }

    /// Where it is reached.
    pub fn url(&self) -> String {
        self.system.url()
    }

    /// Its services, what is reached last.
    pub fn tiers(&self) -> impl Iterator<Item = &Arc<Tier>> {
        self.services.tiers().iter().chain([&self.system])
    }

    /// What has ended by itself, and how, with the end of its log.
    pub fn ended(&self) -> Option<(String, String)> {
        let of_tiers = self.tiers().find_map(|tier| {
            let (name, ending) = tier.ended(&|_| false)?;
            let tail = tier.log_tail(&name);
            Some((name, format!("{ending}; {tail}")))
        });
        of_tiers.or_else(|| self.stores.ended(&|_| false))
    }

    fn handles(&self) -> Vec<Handle> {
        self.tiers().flat_map(|tier| tier.started()).chain(self.stores.started()).collect()
    }

    fn follow(&mut self) -> Vec<Sample> {
        for handle in self.handles() {
            if let Some(handle) = try_held(&handle) {
                self.monitor.follow(handle.name(), handle.process_id());
            }
        }
        self.monitor.look(microseconds(self.begun.elapsed()))
    }

    /// How every process is by now, as far as `go_on` says so. Those of a service that may come later are left out.
    pub fn look(&mut self, go_on: &dyn Fn() -> bool) -> Vec<Status> {
        let samples = self.follow();
        let mut all = Vec::new();
        let tiers: Vec<Arc<Tier>> = self.tiers().cloned().collect();
        for tier in tiers {
            for ((name, address, ready), handle) in tier.places().into_iter().zip(tier.started()) {
                // whoever replaces or scales it may hold it
                let id = try_held(&handle).map(|handle| handle.process_id());
                if id == Some(None) && !tier.is_wanted(&name) {
                    continue;
                }
                if !go_on() {
                    return all;
                }
                let mut status =
                    Status { name, address: address.to_string(), health: "down", ..Status::default() };
                if id.flatten().is_some() {
                    self.ask(&mut status, ready.as_ref());
                }
                all.push(status);
            }
        }
        for (name, _) in self.stores.processes() {
            all.push(Status { name, health: "up", ..Status::default() });
        }
        for status in &mut all {
            let sample = samples.iter().find(|sample| sample.process == status.name);
            status.cores = sample.filter(|_| status.health != "down").map(|sample| sample.cpu_share);
            status.rss_bytes = sample.filter(|_| status.health != "down").map(|sample| sample.rss_bytes);
        }
        all
    }

    fn ask(&mut self, status: &mut Status, ready: Option<&Ready>) {
        status.health = "up";
        let Ok(at) = target(&format!("http://{}", status.address), &System::default()) else { return };
        let Some(ready) = ready else { return };
        if let Ready::Answers { path, status: (low, high) } = ready {
            let answer = Client::status(&at, path, ASK_MAX);
            let is_good = answer.is_ok_and(|status| (*low..=*high).contains(&status.as_u16()));
            status.health = if is_good { "healthy" } else { "unhealthy" };
        }
        let begin = Instant::now();
        let go_on = || if begin.elapsed() < ASK_MAX { Ok(()) } else { Err(()) };
        let bounds = Bounds { silence: ASK_MAX, body_bytes: PAGE_BYTES_MAX };
        let page = Client::new(&at).get("/metrics", &[], bounds, &go_on);
        let Some(page) = page.ok().and_then(|answer| String::from_utf8(answer.body).ok()) else { return };
        let lines = |name: &'static str| page.lines().filter(move |line| line.starts_with(name));
        let value = |line: &str| line.rsplit(' ').next().and_then(|value| value.parse::<f64>().ok());
        // what is asked here is no request of anybody
        let counted =
            lines(REQUESTS).filter(|line| !line.contains("/metrics\"") && !line.contains("/health\""));
        let answered: Option<f64> = lines(REQUESTS).next().map(|_| counted.filter_map(value).sum());
        if let Some(answered) = answered {
            let now = Instant::now();
            let before = self.answered.iter_mut().find(|(name, ..)| *name == status.name);
            if let Some((_, at, before)) = before {
                // one that was started anew begins at 0
                status.requests_per_s =
                    Some((answered - *before).max(0.0) / (now - *at).as_secs_f64().max(1e-3));
                (*at, *before) = (now, answered);
            } else {
                self.answered.push((status.name.clone(), now, answered));
            }
        }
        for line in lines(BREAKER) {
            status.has_breakers = true;
            let name = line.split("command=\"").nth(1).and_then(|rest| rest.split('"').next());
            let state = match value(line) {
                Some(2.0) => "open",
                Some(1.0) => "half open",
                _ => continue,
            };
            status.breakers.push((name.unwrap_or_default().to_owned(), state));
        }
    }

    /// Takes all of it down: what takes requests first.
    pub fn down(mut self, patience: &(dyn Fn() -> bool + Sync)) {
        self.system.stop(patience);
        self.system.run_after();
        self.services.stop(patience);
        self.stores.stop(patience);
    }
}

/// Where a system of this name is told what to do, by whoever may.
///
/// # Errors
/// The folder cannot be made, or is somebody else's.
pub fn socket_of(name: &str) -> std::io::Result<PathBuf> {
    use std::os::unix::fs::{DirBuilderExt, MetadataExt};
    let id = rustix::process::getuid();
    let dir = match std::env::var_os("XDG_RUNTIME_DIR").filter(|dir| Path::new(dir).is_dir()) {
        Some(dir) => Path::new(&dir).join("tidemark"),
        None => std::env::temp_dir().join(format!("tidemark-{}", id.as_raw())),
    };
    match std::fs::DirBuilder::new().mode(0o700).create(&dir) {
        Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    let about = std::fs::symlink_metadata(&dir)?;
    if !about.is_dir() || about.uid() != id.as_raw() || about.mode() & 0o077 != 0 {
        let text = format!("{} is not a folder that only its owner can enter", dir.display());
        return Err(std::io::Error::new(std::io::ErrorKind::PermissionDenied, text));
    }
    let name: String =
        name.chars().map(|c| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' }).collect();
    Ok(dir.join(format!("{name}.sock")))
}
