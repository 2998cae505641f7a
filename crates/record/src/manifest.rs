//! `run.json`: what was run, on what, and what it is worth.

use std::collections::BTreeMap;
use std::path::Path;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;

use crate::bill::Bill;
use crate::interval::ErrorExample;
use crate::summary::{Summary, Verdict};
use crate::{OwnMetric, SYSTEM, ScriptFigures};

/// The machine that a run was made on.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
pub struct Machine {
    /// CPU model as the kernel names it.
    pub cpu_model: String,
    /// Cores that the run could use.
    pub cores: u64,
    /// Memory, bytes.
    pub memory_bytes: u64,
    /// Kernel name and release.
    pub kernel: String,
    /// Operating system, as it names itself.
    pub os: String,
    /// Limit of open files of the driver.
    pub open_files_limit: u64,
    /// Load average over one minute when the run began: who else was using the machine.
    pub load_average_1m: f64,
    /// Mean cores' worth of time that the hypervisor took away during the measured window.
    pub steal_share: f64,
}

/// How long the disk under the system's data took to sync a small append, measured by the lab beside the run.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
pub struct SyncLatency {
    /// The directory it was measured in.
    pub path: String,
    /// How many syncs were made.
    pub count: u64,
    /// Median, microseconds.
    pub p50_us: u64,
    /// 99th percentile, microseconds.
    pub p99_us: u64,
    /// Longest, microseconds.
    pub max_us: u64,
}

/// The system under test.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
pub struct System {
    /// Its name, or the URL that was driven.
    pub name: String,
    /// The service of the scenario that it is; absent where it is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service: Option<String>,
    /// Where it was driven.
    pub url: String,
    /// The one address that connections were made to: `127.0.0.1:9080`, `[::1]:80`, `unix:/run/system.sock`.
    #[serde(default)]
    pub address: String,
    /// How long it took to look its name up, once, before the load, microseconds; absent where it has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lookup_us: Option<u64>,
    /// The version of HTTP that was spoken: `HTTP/1.1`, `HTTP/2`; or how calls were made, `RPC over WebSocket (JSON)`.
    #[serde(default)]
    pub http: String,
    /// What was agreed on with it, for a person: how HTTP/2 or calls were spoken, which TLS with how many handshakes; and
    /// whether it shared the cores of the driver.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub spoken: Vec<String>,
    /// The command that started it; empty if it was there already.
    pub command: Vec<String>,
    /// Its settings.
    pub settings: BTreeMap<String, String>,
    /// `synced`, `buffered`, `memory`, or null where the system is not ours and did not say.
    pub durability: Option<String>,
    /// Sync latency of its disk in the same run.
    pub sync_latency: Option<SyncLatency>,
    /// Cores that it was pinned to; empty if not pinned.
    pub pinned_to: Vec<usize>,
}

/// Where requests went beside the system.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
// the summary has targets, too: their figures
#[schemars(rename = "DrivenTarget")]
pub struct Target {
    /// What the scenario calls it.
    pub name: String,
    /// Where it was driven.
    pub url: String,
    /// The one address that connections were made to.
    pub address: String,
    /// How long it took to look its name up, once, before the load, microseconds; absent where it has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lookup_us: Option<u64>,
    /// What was spoken there: `HTTP/1.1`, `Redis (RESP2)`.
    pub protocol: String,
}

/// A store that was started for the run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Store {
    /// What the scenario calls it: `cassandra`.
    pub name: String,
    /// Product and version: `Cassandra 5.0.9`.
    pub version: String,
    /// Version of the Java that it ran on.
    pub java: String,
    /// Where each of its nodes served.
    pub addresses: Vec<String>,
    /// When it acknowledged a write: `synced`, `buffered` or `memory`.
    pub durability: String,
    /// Heap of each node, bytes.
    pub heap_bytes: u64,
    /// The command that started its first node.
    pub command: Vec<String>,
}

/// A part of the system that was started in one or several instances.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Service {
    /// What the scenario calls it. Its instances are called `NAME.1` and so on where they may be several, and its balancer
    /// `NAME-balancer`.
    pub name: String,
    /// Where it was reached: the balancer, or the first instance.
    pub url: String,
    /// Where each of its instances served at the beginning.
    pub addresses: Vec<String>,
    /// `nginx` or `haproxy`, where one stood in front of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub balancer: Option<String>,
    /// The command that started its first instance.
    pub command: Vec<String>,
    /// Whether it is what was driven: its figures are those of `system`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub driven: bool,
}

impl Service {
    /// What its balancer is called, where it has one.
    pub fn balancer_name(&self) -> String {
        balancer_name(&self.name)
    }
}

/// What the balancer of a service of this name is called.
pub fn balancer_name(service: &str) -> String {
    format!("{service}-balancer")
}

fn is_of_system(services: &[Service], process: &str) -> bool {
    let is_it = |service: &Service| service.name == process || service.balancer_name() == process;
    process == SYSTEM || services.iter().any(is_it)
}

/// What was watched though the run did not start it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Watched {
    /// What it is called in samples and figures; `system` where it is what was driven.
    pub name: String,
    /// What was looked for: `port 8080`, the URL of a page.
    pub what: String,
    /// What was found there: `nginx, pid 123`.
    pub found: String,
    /// Whether its figures are of a whole machine, and so have those of processes in them that are counted already.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_machine: bool,
}

/// A phase of the load, as it came to pass.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
pub struct Phase {
    /// Its name.
    pub name: String,
    /// Begin, microseconds since the run began.
    pub start_us: u64,
    /// End, microseconds since the run began.
    pub end_us: u64,
    /// Whether it belongs to the measured window.
    pub measured: bool,
    /// What it offered, for a person: `100 users`, `5000/s`, `0/s to 5000/s`.
    pub level: String,
}

/// An objective and whether it was met.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ObjectiveResult {
    /// As the scenario writes it: `p99 < 50ms`.
    pub objective: String,
    /// Whether it was met.
    pub met: bool,
    /// What was measured, for a person: `71.2ms`.
    pub measured: String,
    /// Whether nobody asked for it: each run is judged by it where the scenario says nothing on the matter.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub default: bool,
    /// Whether it is neither met nor missed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub undecided: bool,
    /// Why that is so; absent where it is decided, and in runs of before, of which the driver was the reason.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub undecided_by: Option<Undecided>,
}

crate::named! {
    /// Why an objective is neither met nor missed.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "kebab-case")]
    pub enum Undecided {
        /// The load generator was the bottleneck: its own share could have changed the answer.
        DriverBound = "driver-bound",
        /// What the run started had no core, as others used them.
        MachineBound = "machine-bound",
        /// So few requests do not have the percentile.
        TooFew = "too-few",
        /// The measured window is shorter than the answers take.
        ShortWindow = "short-window",
        /// Requests were not sent, as the connections that the scenario allows were too few.
        Connections = "connections",
        /// A part of the run is missing: an agent of a fleet was lost, or the driver broke off.
        Incomplete = "incomplete",
    }
}

/// `run.json`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Manifest {
    /// Version of the run directory's form.
    pub format: u32,
    /// Name of the run directory.
    pub id: String,
    /// Name of the scenario.
    pub scenario: String,
    /// Digest of the scenario's text without its secrets, 16 hexadecimal digits; absent where it was not written down.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scenario_digest: Option<String>,
    /// What the scenario's settings were in this run, without secrets; the rest of a long one is a digest.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub settings: BTreeMap<String, String>,
    /// What the scenario says it is.
    pub description: String,
    /// The full command.
    pub command: Vec<String>,
    /// The one wall-clock anchor: when the run's clock was zero, RFC 3339, UTC.
    pub started_at: String,
    /// Seed of the run's random numbers.
    pub seed: u64,
    /// Version of Tidemark.
    pub version: String,
    /// Git revision of the directory that the run was started in, if any.
    pub git_revision: Option<String>,
    /// What it ran on.
    pub machine: Machine,
    /// What was driven.
    pub system: System,
    /// Where requests went beside it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub targets: Vec<Target>,
    /// Parts of the system that were started in instances, in the order in which they were started.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub services: Vec<Service>,
    /// Stores that were started for it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stores: Vec<Store>,
    /// What was watched though the run did not start it, in the scenario's order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub watched: Vec<Watched>,
    /// Load model for a person: `closed, 100 users`, `open, Poisson arrivals`.
    pub load: String,
    /// Users at once at most, each of whom waits for an answer before the next request; absent where sessions arrive at a rate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub closed_users: Option<u64>,
    /// Whether all sessions arrive at a rate, spaced evenly.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub even_arrivals: bool,
    /// Cores that the driver was pinned to; empty if not pinned.
    pub driver_pinned_to: Vec<usize>,
    /// The back end that carried the driver's sockets: `io_uring`, `epoll`, `portable`; empty where it is not known.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub driver_io: String,
    /// Answers over the whole run that came before the body of their request, a file's, was sent whole; the rest of it was not
    /// sent. Absent where there were none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uploads_cut: Option<u64>,
    /// Phases as they came to pass.
    pub phases: Vec<Phase>,
    /// Labels, in the scenario's order; series name them by index.
    pub labels: Vec<String>,
    /// Groups of steps, in the scenario's order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<String>,
    /// What the scenario measured itself, in its order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub metrics: Vec<OwnMetric>,
    /// Objectives and whether they were met.
    pub objectives: Vec<ObjectiveResult>,
    /// The first failures of each kind.
    pub error_examples: Vec<ErrorExample>,
    /// Whether the user stopped it early.
    pub interrupted: bool,
    /// Why it was cut short by itself: the objective that could no longer be met.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cut_short: Option<String>,
    /// What the run was worth before its ledger was held against the store, where that changed the verdict or may.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verdict_before_verify: Option<Verdict>,
    /// Notes that a reader of the figures must know.
    pub notes: Vec<String>,
    /// What its script measured itself; absent where it has none, or one that measures nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub script: Option<ScriptFigures>,
    /// What it costs; absent where no price file was given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bill: Option<Bill>,
    /// The figures.
    pub summary: Summary,
}

/// A digest of a text, 16 hexadecimal digits, the same on every machine and of every version (XXH3): it tells texts apart, and
/// is no protection.
pub fn digest(text: &str) -> String {
    format!("{:016x}", xxh3_64(text.as_bytes()))
}

impl Manifest {
    /// What a text in JSON says.
    ///
    /// # Errors
    /// Where it is no manifest.
    pub fn from_json(text: &[u8]) -> Result<Manifest, serde_json::Error> {
        crate::json::read(text)
    }

    /// Divides the good answers of `system` by the CPU time of all services and balancers, in place of what was driven alone.
    /// To be called once, when summary and services are there.
    pub fn share_costs(&mut self) {
        let Manifest { services, summary, .. } = self;
        let of_phases = summary.phases.iter_mut().map(|phase| &mut phase.processes);
        for processes in of_phases.chain([&mut summary.processes]) {
            let all = processes.iter().filter(|of| is_of_system(services, &of.name));
            let all_s: f64 = all.map(|of| of.cpu_s).sum();
            for process in processes.iter_mut().filter(|of| of.name == SYSTEM && all_s > 0.0) {
                process.good_per_cpu_s = process.good_per_cpu_s.map(|good| good * process.cpu_s / all_s);
            }
        }
    }

    /// Whether the process of this name in samples is a part of the system: what was driven, another service, a balancer.
    /// An instance is not, for its figures are in those of its service.
    pub fn is_of_system(&self, process: &str) -> bool {
        is_of_system(&self.services, process)
    }

    /// The service that has this balancer.
    pub fn service_of_balancer(&self, process: &str) -> Option<&Service> {
        self.services.iter().find(|service| service.balancer_name() == process)
    }

    /// The service of which the process of this name in samples is one instance among several: its figures are in those of
    /// the service, too.
    pub fn service_of(&self, process: &str) -> Option<&Service> {
        let (name, number) = process.rsplit_once('.')?;
        let is_number = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
        self.services.iter().find(|service| is_number && service.name == name)
    }

    /// A manifest with the figures; everything that only its maker knows is still empty.
    pub fn new(scenario: &str, labels: Vec<String>, summary: Summary) -> Manifest {
        let dir = Path::new(&summary.run_dir);
        Manifest {
            format: crate::FORMAT,
            id: dir.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned()),
            scenario: scenario.to_owned(),
            scenario_digest: None,
            settings: BTreeMap::new(),
            description: String::new(),
            command: Vec::new(),
            started_at: String::new(),
            seed: 0,
            version: String::new(),
            git_revision: None,
            machine: Machine::default(),
            system: System::default(),
            targets: Vec::new(),
            services: Vec::new(),
            stores: Vec::new(),
            watched: Vec::new(),
            load: String::new(),
            closed_users: None,
            even_arrivals: false,
            driver_pinned_to: Vec::new(),
            driver_io: String::new(),
            uploads_cut: None,
            phases: Vec::new(),
            labels,
            groups: Vec::new(),
            metrics: Vec::new(),
            objectives: Vec::new(),
            error_examples: Vec::new(),
            interrupted: false,
            cut_short: None,
            verdict_before_verify: None,
            notes: Vec::new(),
            bill: None,
            script: None,
            summary,
        }
    }

    /// Of each label: texts by name that the scenario gives it.
    pub fn tags(&self) -> Vec<BTreeMap<String, String>> {
        let step = |label: &String| self.summary.steps.iter().find(|step| step.label == *label);
        self.labels
            .iter()
            .map(|label| step(label).map(|step| step.tags.clone()).unwrap_or_default())
            .collect()
    }

    /// What tells a run from all others, and not from copies of it, wherever they are: its name, when it began, and its seed.
    pub fn identity(&self) -> (String, String, u64) {
        (self.id.clone(), self.started_at.clone(), self.seed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Totals, summarize};

    #[test]
    fn a_digest_stays_what_it_is() {
        // the digest of nothing, as the algorithm's authors give it
        assert_eq!(digest(""), "2d06800538d394c2");
        assert_ne!(digest("load: {users: 1}\n"), digest("load: {users: 2}\n"));
    }

    #[test]
    fn settings_are_read_back_and_a_manifest_of_before_has_none() {
        let mut manifest = Manifest::new("x", Vec::new(), summarize(&Totals::new(&[]), Path::new("x")));
        let before = serde_json::to_value(&manifest).unwrap();
        assert!(before.get("settings").is_none() && before.get("scenario_digest").is_none(), "{before}");
        let before: Manifest = serde_json::from_value(before).unwrap();
        assert!(before.settings.is_empty() && before.scenario_digest.is_none());
        manifest.settings.insert("ms".into(), "20".into());
        manifest.scenario_digest = Some(digest("x"));
        let json = serde_json::to_value(&manifest).unwrap();
        let again: Manifest = serde_json::from_value(json).unwrap();
        assert_eq!((again.settings["ms"].as_str(), again.scenario_digest), ("20", manifest.scenario_digest));
    }
}
