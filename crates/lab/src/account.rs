//! What the lab knows of a run beside its figures, gathered as it goes, for the manifest.

use std::collections::BTreeSet;
use std::time::SystemTime;

use tidemark_drive::{DriveEnd, Handshakes, Http2, Rpc};
use tidemark_record::manifest::{Machine, Manifest, Phase, Store, System};
use tidemark_record::{Summary, Totals};
use tidemark_scenario::Plan;
use tidemark_scenario::plan::Op;

use crate::run_options::RunOptions;
use crate::stores::Stores;
use crate::sync::SyncProbe;
use crate::system::Running;
use crate::verdict::duration_text;
use crate::{load_text, machine, target};

/// A hypervisor that takes more than this many cores' worth away is worth a note.
const STEAL_NOTED: f64 = 0.05;
/// Driving threads that had no core for a larger share of the time are worth a note.
const WAITED_NOTED: f64 = 0.05;
/// A disk whose median sync differs more than this between the two probes is worth a note.
const SYNC_CHANGE_NOTED: f64 = 2.0;

/// Gathers what goes into the manifest.
#[derive(Debug, Clone)]
pub struct Account {
    /// What a reader of the figures must know.
    pub notes: Vec<String>,
    machine: Machine,
    git_revision: Option<String>,
    seed: u64,
    started_at: String,
    system: System,
    stores: Vec<Store>,
    /// Whether any certificate was good enough.
    unchecked: bool,
    driver_io: String,
    /// Streams of a connection of HTTP/2, or calls at once, that are asked for.
    streams: usize,
}

impl Account {
    /// Looks at the machine before anything is started on it.
    pub fn begin(options: &RunOptions, plan: &Plan, seed: u64) -> Account {
        let folder = std::env::current_dir().unwrap_or_default();
        Account {
            notes: Vec::new(),
            machine: machine::look(),
            git_revision: machine::git_revision(&folder),
            seed,
            started_at: String::new(),
            unchecked: plan.system.tls.insecure,
            driver_io: String::new(),
            streams: plan.limits.streams,
            stores: Vec::new(),
            system: System {
                settings: plan.system.settings.clone(),
                pinned_to: options.pins.system.clone(),
                ..System::default()
            },
        }
    }

    /// The run's zero, and the system as it stands ready.
    pub fn started(&mut self, wall_epoch: SystemTime, system: &Running) {
        self.started_at =
            jiff::Timestamp::try_from(wall_epoch).map_or_else(|_| String::new(), |at| at.to_string());
        self.system.name = system.name.clone();
        self.system.url = system.url.clone();
        self.system.address = system.target.address.to_string();
        self.system.http = match (&system.target.rpc, system.target.http2) {
            (Some(_), _) => "RPC over WebSocket (JSON)",
            (None, Some(_)) => "HTTP/2",
            (None, None) => "HTTP/1.1",
        }
        .into();
        self.notes.extend(system.target.rpc.as_ref().map(|server| called(server, self.streams)));
        self.notes.extend(
            system.target.http2.map(|server| spoken(server, system.target.tls.is_some(), self.streams)),
        );
        self.notes.extend(target::remark(&system.url, &system.target.address));
        self.system.command = system.command.clone();
        self.system.durability = system.durability.clone();
        if system.command.is_empty() {
            // pins and settings are for what we start; nobody told this one
            self.system.pinned_to.clear();
            self.system.settings.clear();
        }
    }

    /// The stores as they stand ready.
    pub fn stores(&mut self, stores: &Stores) {
        self.notes.extend(stores.notes());
        self.stores = stores.manifest();
    }

    /// How a node of a store ended when it was asked to.
    pub fn store_stopped(&mut self, name: &str, ending: &str) {
        if ending == "killed by signal 9" {
            self.notes.push(format!("{name} did not stop when it was asked to, and was killed"));
        }
    }

    /// How the system ended when it was asked to.
    pub fn stopped(&mut self, ending: &str) {
        if ending == "killed by signal 9" {
            self.notes.push("the system did not stop when it was asked to, and was killed".into());
        }
    }

    /// The disk's sync latency before and after the load.
    pub fn synced(&mut self, before: Option<SyncProbe>, after: Option<SyncProbe>) {
        let Some(mut all) = before else { return };
        let Some(after) = after else {
            self.system.sync_latency = Some(all.latency());
            return;
        };
        let (before_us, after_us) = (all.p50_us(), after.p50_us());
        all.merge(&after);
        if before_us.max(after_us) as f64 > SYNC_CHANGE_NOTED * before_us.min(after_us) as f64 {
            self.notes.push(format!(
                "the disk changed during the run: its median sync took {before_us} us before it and {after_us} us after"
            ));
        }
        self.system.sync_latency = Some(all.latency());
    }

    /// What the drive says about itself.
    pub fn drove(&mut self, end: &DriveEnd, summary: &Summary) {
        let counted = [
            (end.cut_off, "requests were still under way when the drain was over; they count as timed out"),
            (end.unfinished, "requests were left without an end; they are in no figure"),
            (
                end.lost_intervals,
                "seconds of a driving thread were lost, because they were not written in time",
            ),
            (
                end.spent_turns,
                "turns of sessions were ended because they only computed; is there an endless loop?",
            ),
            (
                end.sessions_waited,
                "sessions had to wait, because as many as the limit allows were in flight; their wait counts",
            ),
            (
                end.sessions_dropped,
                "sessions were dropped, because as many as the limit allows were in flight",
            ),
            (
                end.held,
                "requests waited in the driver, as the server came to take fewer at once; service times contain it",
            ),
            (end.unexpected_messages, "messages came over WebSockets that no step took"),
            (
                end.rows_not_alone,
                "times a session was given a row that another one held, because all rows of its feeder were held; give it more",
            ),
        ];
        self.notes.extend(
            counted.iter().filter(|(count, _)| *count > 0).map(|(count, what)| format!("{count} {what}")),
        );
        self.driver_io = end.io.to_string();
        self.secured(&end.handshakes);
        if let Some((connections, bound)) = end.connections_capped_to {
            self.notes.push(format!(
                "there was room for {connections} connections only: what bounds them is {bound}"
            ));
        }
        if let Some(connections) = end.connections_raised_to {
            self.notes.push(format!(
                "up to {connections} connections were made, more than `limits: connections` says: each driving thread \
                 has an equal share of the users, and whole connections for them; another number of --threads may fit"
            ));
        }
        self.notes.extend(waited(summary));
        self.notes.extend(stood_still(summary));
    }

    /// What TLS was spoken, and how often it was begun.
    fn secured(&mut self, handshakes: &Handshakes) {
        let Handshakes { full, resumed, spoken: Some(spoken) } = handshakes else { return };
        let unchecked = if self.unchecked { "; certificates were not checked" } else { "" };
        self.notes.push(format!("{spoken}: {full} full handshakes, {resumed} resumed{unchecked}"));
    }

    /// The manifest, with the figures.
    pub fn manifest(
        mut self,
        plan: &Plan,
        options: &RunOptions,
        summary: Summary,
        totals: &Totals,
    ) -> Manifest {
        self.machine.steal_share = totals.steal_share();
        if self.machine.steal_share > STEAL_NOTED {
            self.notes.push(format!(
                "the hypervisor took {:.2} cores' worth of time away during the measured window",
                self.machine.steal_share
            ));
        }
        let shared = !self.system.command.is_empty()
            && (options.pins.driver.is_empty() || options.pins.system.is_empty());
        if shared {
            let yields = match options.pins.system.is_empty() {
                true => ", and the system yielded to the driver (nice 10)",
                false => "",
            };
            self.notes.push(format!(
                "system and driver shared the machine's cores{yields}; --pin gives each its own"
            ));
        }
        let mut manifest = Manifest::new(&plan.name, plan.labels.clone(), summary);
        manifest.description = plan.description.clone();
        manifest.command = options.command_line.clone();
        manifest.started_at = self.started_at;
        manifest.seed = self.seed;
        manifest.version = env!("CARGO_PKG_VERSION").to_owned();
        manifest.git_revision = self.git_revision;
        manifest.machine = self.machine;
        manifest.system = self.system;
        manifest.stores = self.stores;
        manifest.load = load_text::load(plan);
        manifest.driver_pinned_to = options.pins.driver.clone();
        manifest.driver_io = self.driver_io;
        manifest.error_examples = totals.error_examples.clone();
        manifest.notes = self.notes;
        manifest
    }
}

/// What a reader must know of the driving threads' waits for a core.
fn waited(summary: &Summary) -> Option<String> {
    match summary.driver.waited_share {
        Some(share) if share > WAITED_NOTED => Some(format!(
            "the driving threads were ready to run but had no core for {:.0} % of the time; latencies contain it",
            share * 100.0
        )),
        None if summary.measured_s > 0.0 => Some(
            "this system does not tell how long a thread waited for a core (no schedstat): a driver that was starved of \
             its cores is known only by requests that left late"
                .into(),
        ),
        _ => None,
    }
}

/// What a reader must know of a driver that was not there.
fn stood_still(summary: &Summary) -> Option<String> {
    let absent_s = summary.driver.absent_s;
    (absent_s > 0.0).then(|| {
        format!(
            "the driver itself stood still for {} of the measured window (stopped, or its machine was suspended); rate and \
             latencies contain it",
            duration_text(absent_s * 1e6)
        )
    })
}

/// How HTTP/2 was spoken.
fn spoken(server: Http2, is_secure: bool, wanted: usize) -> String {
    let how = if is_secure { "agreed to by ALPN" } else { "by prior knowledge" };
    let streams = match wanted.min(server.most_streams) {
        1 => "one request at a time".to_owned(),
        streams => format!("up to {streams} requests at once"),
    };
    let fewer = match server.most_streams < wanted {
        true => format!("; {wanted} were wanted, but the server takes no more"),
        false => String::new(),
    };
    format!("HTTP/2 {how}, {streams} on each connection{fewer}")
}

/// How calls were made.
fn called(server: &Rpc, wanted: usize) -> String {
    let calls = match wanted.min(server.most_calls) {
        1 => "one call at a time".to_owned(),
        calls => format!("up to {calls} calls at once"),
    };
    let fewer = match server.most_calls < wanted {
        true => format!("; {wanted} were wanted, but the server takes no more"),
        false => String::new(),
    };
    format!("calls over a WebSocket at {}, {calls} on each connection{fewer}", server.path)
}

/// The labels that the load can show; those that only `prepare` has are in no figure.
pub fn labels_of_the_load(plan: &Plan) -> BTreeSet<&str> {
    let ops = plan.sessions.iter().flat_map(|kind| &kind.ops);
    let requests = ops.filter_map(|op| match op {
        Op::Request(index) => plan.requests.get(usize::from(*index)),
        _ => None,
    });
    requests.filter_map(|request| plan.labels.get(usize::from(request.label))).map(String::as_str).collect()
}

/// The phases as they came to pass.
pub fn phases(plan: &Plan, end: &DriveEnd) -> Vec<Phase> {
    let levels = load_text::levels(plan);
    let phases = end.phases.iter().zip(levels.into_iter().chain(std::iter::repeat(String::new())));
    phases
        .map(|(phase, level)| Phase {
            name: phase.name.clone(),
            start_us: phase.start_us,
            end_us: phase.end_us,
            measured: phase.measured,
            level,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn how_http_2_was_spoken_is_said() {
        let server = |most_streams| Http2 { most_streams };
        assert_eq!(
            spoken(server(usize::MAX), false, 1),
            "HTTP/2 by prior knowledge, one request at a time on each connection"
        );
        let text = spoken(server(100), true, 250);
        assert_eq!(
            text,
            "HTTP/2 agreed to by ALPN, up to 100 requests at once on each connection; 250 were wanted, but the \
             server takes no more"
        );
    }

    #[test]
    fn how_calls_were_made_is_said() {
        let server = Rpc { path: "/rpc".into(), most_calls: 100 };
        assert_eq!(
            called(&server, 1),
            "calls over a WebSocket at /rpc, one call at a time on each connection"
        );
        let text = called(&server, 250);
        assert_eq!(
            text,
            "calls over a WebSocket at /rpc, up to 100 calls at once on each connection; 250 were wanted, but the \
             server takes no more"
        );
    }

    #[test]
    fn waits_for_a_core_are_noted_and_so_is_that_nobody_counts_them() {
        let note = |measured_s, waited_share| {
            let mut summary = tidemark_record::summarize(&Totals::new(&[]), std::path::Path::new("x"));
            (summary.measured_s, summary.driver.waited_share) = (measured_s, waited_share);
            waited(&summary)
        };
        assert_eq!(note(1.0, Some(0.05)), None);
        assert!(note(1.0, Some(0.06)).unwrap().contains("no core for 6 %"));
        assert!(note(1.0, None).unwrap().contains("no schedstat"));
        assert_eq!(note(0.0, None), None, "nothing was measured, which is said");
    }

    #[test]
    fn a_driver_that_stood_still_says_so() {
        let mut summary = tidemark_record::summarize(&Totals::new(&[]), std::path::Path::new("x"));
        assert_eq!(stood_still(&summary), None);
        summary.driver.absent_s = 0.3;
        assert!(stood_still(&summary).unwrap().starts_with("the driver itself stood still for 300ms"));
    }

    #[test]
    fn a_disk_that_changed_is_noted() {
        let folder = tempfile::tempdir().unwrap();
        let probe = SyncProbe::measure(folder.path()).unwrap();
        let plan = crate::test_plan::plan(tidemark_scenario::plan::LoadModel::Closed);
        let mut account = Account::begin(&RunOptions::default(), &plan, 1);
        account.synced(Some(probe.clone()), Some(probe.clone()));
        assert!(account.notes.is_empty());
        assert_eq!(account.system.sync_latency.as_ref().unwrap().count, 2 * probe.latency().count);
        account.synced(Some(probe.clone()), None);
        assert_eq!(account.system.sync_latency.as_ref().unwrap().count, probe.latency().count);
        account.secured(&Handshakes::default());
        assert!(account.notes.is_empty());
        account.stopped("exit status 0");
        assert!(account.notes.is_empty());
        account.stopped("killed by signal 9");
        assert_eq!(account.notes.len(), 1);
        account.secured(&Handshakes { full: 2, resumed: 3, spoken: Some("TLS 1.3, A".into()) });
        assert_eq!(account.notes[1], "TLS 1.3, A: 2 full handshakes, 3 resumed");
    }
}
