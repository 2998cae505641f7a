//! What the lab knows of a run beside its figures, gathered as it goes, for the manifest.

mod notes;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::SystemTime;

use tidemark_drive::{DriveEnd, Protocol, Timestamps};
use tidemark_record::manifest::{Machine, Manifest, Phase, Service, Store, System, Target, Watched, digest};
use tidemark_record::{Counter, Counters, NotFound, Outcome, SYSTEM, Summary, Totals};
use tidemark_scenario::Plan;
use tidemark_scenario::plan::{LoadModel, Spacing};

use crate::run_options::RunOptions;
use crate::stores::Stores;
use crate::sync::SyncProbe;
use crate::system::Running;
use crate::tier::Tier;
use crate::watch::Watches;
use crate::{load_text, machine, own, target};
use tidemark_verdict::duration_text;

use notes::{
    answered_behind, bounds_only, called, connections_used, in_clear, lacked_cores, missed, never_requested,
    raised, redirected, spoken, stood_still, streamed, unfollowed, waited,
};

/// A hypervisor that takes more than this many cores' worth away is worth a note.
const STEAL_NOTED: f64 = 0.05;
/// A disk whose median sync differs more than this between the two probes is worth a note.
const SYNC_CHANGE_NOTED: f64 = 2.0;
/// Where more than this share of the median response time is the driver's own, its size is told.
const OWN_SHARE_NOTED: f64 = 0.1;
/// Most characters of a setting that are written down, and how many are of a longer one, before its digest.
const SETTING_MAX: usize = 200;
const SETTING_BEGIN: usize = 60;

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
    targets: Vec<Target>,
    services: Vec<Service>,
    stores: Vec<Store>,
    watched: Vec<Watched>,
    /// Whether any certificate was good enough.
    unchecked: bool,
    timestamps: Timestamps,
    /// Whether the driving threads never sleep.
    spin: bool,
    driver_io: String,
    uploads_cut: u64,
    /// Streams of a connection of HTTP/2, or calls at once, that are asked for.
    streams: usize,
    /// Whether sessions arrive and take connections that are kept; users have one each.
    arrives: bool,
}

impl Account {
    /// Looks at the machine before anything is started on it.
    pub fn begin(options: &RunOptions, plan: &Plan, seed: u64) -> Account {
        let folder = std::env::current_dir().unwrap_or_default();
        Account {
            notes: Vec::new(),
            machine: machine::look(),
            git_revision: options.revision.clone().or_else(|| machine::git_revision(&folder)),
            seed,
            started_at: String::new(),
            unchecked: plan.system.tls.insecure || plan.targets.iter().any(|target| target.at.tls.insecure),
            timestamps: options.timestamps,
            spin: options.spin,
            driver_io: String::new(),
            uploads_cut: 0,
            streams: plan.limits.streams,
            arrives: plan.limits.keep_alive && plan.load.streams().iter().any(|one| !one.model.is_closed()),
            targets: Vec::new(),
            services: Vec::new(),
            stores: Vec::new(),
            watched: Vec::new(),
            system: System {
                service: Some(&plan.system.tier.name).filter(|name| *name != SYSTEM).cloned(),
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
        self.system.lookup_us = system.lookup.map(|took| took.as_micros() as u64);
        self.system.http = system.target.protocol.name().into();
        let spoken = match &system.target.protocol {
            Protocol::Calls(server) => Some((called(server, self.streams), server.most_calls)),
            Protocol::Http2(server) => {
                Some((spoken(*server, system.target.tls.is_some(), self.streams), server.most_streams))
            }
            _ => None,
        };
        let through = system.target.proxy.as_ref().map(|proxy| format!("through the proxy {}", proxy.name));
        self.system.spoken.extend(through);
        // the handshakes of the load tell where it was spoken
        self.system.spoken.extend(in_clear(&system.target));
        if let Some((how, most)) = spoken {
            // only what was not as it was asked for is to be noted
            let to = if most < self.streams { &mut self.notes } else { &mut self.system.spoken };
            to.push(how);
        }
        self.notes.extend(target::remark(&system.url, &system.target));
        self.system.command = system.command.clone();
        self.system.durability = system.durability.clone();
        if system.command.is_empty() {
            // pins and settings are for what we start; nobody told this one
            self.system.settings.clear();
            // of a store that we started the durability is known
            if system.durability.is_none() {
                self.system.pinned_to.clear();
            }
        }
    }

    /// The other targets as they stand ready.
    pub fn targets(&mut self, plan: &Plan, others: &[Running]) {
        for (target, found) in plan.targets.iter().zip(others) {
            self.notes.extend(
                target::remark(&found.url, &found.target).map(|note| format!("{}: {note}", target.name)),
            );
            self.targets.push(Target {
                name: target.name.clone(),
                url: found.url.clone(),
                address: found.target.address.to_string(),
                lookup_us: found.lookup.map(|took| took.as_micros() as u64),
                protocol: found.target.protocol.name().into(),
            });
        }
    }

    /// The stores as they stand ready.
    pub fn stores(&mut self, stores: &Stores) {
        self.notes.extend(stores.notes());
        self.stores = stores.manifest();
    }

    /// What the system is started with, now that services are there.
    pub fn settings(&mut self, settings: BTreeMap<String, String>) {
        self.system.settings = settings;
    }

    /// The parts of the system, as they stand ready, and that which is driven.
    pub fn services(&mut self, tiers: &[Arc<Tier>], driven: Option<&Arc<Tier>>) {
        let driven = driven.map(|tier| Service { driven: true, ..tier.manifest() });
        self.services = tiers.iter().map(|tier| tier.manifest()).chain(driven).collect();
    }

    /// What is watched, as it was found.
    pub fn watched(&mut self, watches: &Watches) {
        self.watched = watches.manifest();
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

    /// What the drive says about itself, and what was counted in it.
    pub fn drove(&mut self, end: &DriveEnd, counters: &Counters, summary: &Summary) {
        let unfinished = summary.errors.get(Outcome::Unfinished.name()).copied().unwrap_or(0);
        let in_no_figure = counters[Counter::Unfinished].saturating_sub(unfinished);
        let of_the_end = [
            (
                unfinished,
                "requests were due and without an answer when the run or their session ended; they count as failed",
            ),
            (
                in_no_figure,
                "requests that were due outside of the measured window were without an answer when the run or their session \
                 ended; they are in no figure",
            ),
            (
                end.lost_intervals,
                "seconds of a driving thread were lost, because they were not written in time",
            ),
        ];
        let counted = counters.counted().filter_map(|(counter, count)| Some((count, counter.note()?)));
        let counted = of_the_end.into_iter().filter(|(count, _)| *count > 0).chain(counted);
        self.notes.extend(counted.map(|(count, what)| format!("{count} {what}")));
        self.notes.extend(streamed(counters).filter(|_| counters[Counter::EventsReceived] > 0));
        self.driver_io = end.io.to_string();
        self.uploads_cut = counters[Counter::UploadsCut];
        self.secured(end.tls.as_deref(), counters);
        if let Some((connections, bound)) = end.connections_capped_to {
            self.notes.push(format!(
                "there was room for {connections} connections only: what bounds them is {bound}"
            ));
        }
        self.notes.extend(end.connections_raised_to.map(raised));
        self.notes.extend(bounds_only(summary));
        self.notes.extend(self.own_share(summary));
        self.notes.extend(connections_used(counters, end.connections_ahead).filter(|_| self.arrives));
        if let Some((users, places)) = end.places {
            self.notes.push(format!(
                "{users} users shared {places} places for requests and waited for each other: the server takes fewer \
                 at once on a connection than `limits: streams` says, and `limits: connections` holds; the waits count"
            ));
        }
        self.notes.extend(end.not_found.iter().map(|NotFound { label, variable, answers, .. }| {
            format!(
                "{label}: nothing was found for \"{variable}\" in {answers} {}, which left it without a value; `when \
                 missing` says what shall be then",
                if *answers == 1 { "answer" } else { "answers" }
            )
        }));
        self.notes.extend(redirected(end));
        self.notes.extend(waited(summary));
        self.notes.extend(stood_still(summary));
    }

    /// What a reader must know of the driver's own share of the response times.
    fn own_share(&self, summary: &Summary) -> Option<String> {
        let (driver, median_us) = (&summary.driver, summary.response_time_us.p50?);
        let left = driver.lag_us.p50.unwrap_or(0);
        // where they count to the kernel's timestamps it is in none of them
        let read = driver.read_lag_us.as_ref().and_then(|lag_us| lag_us.p50);
        let read = read.filter(|_| self.timestamps == Timestamps::Read);
        let own_us = left + read.unwrap_or(0);
        if own_us as f64 <= OWN_SHARE_NOTED * median_us as f64 {
            return None;
        }
        let told = |us: u64| duration_text(us as f64);
        let mut note = format!(
            "about {} of the median response time of {} is the load generator's own: requests left {} after they were due",
            told(own_us),
            told(median_us),
            told(left)
        );
        if let Some(read_us) = read {
            note += &format!(
                ", and answers were read {} after they came; --timestamps kernel leaves the latter out",
                told(read_us)
            );
        }
        if !self.spin {
            note += "; --spin lessens it where each driving thread has a core of its own";
        }
        Some(note)
    }

    /// What TLS was spoken, and how often it was begun.
    fn secured(&mut self, spoken: Option<&str>, counters: &Counters) {
        let Some(spoken) = spoken else { return };
        let (full, resumed) = (counters[Counter::FullHandshakes], counters[Counter::ResumedHandshakes]);
        let unchecked = if self.unchecked { ", certificates not checked" } else { "" };
        let line = format!("{spoken}: {full} full handshakes, {resumed} resumed{unchecked}");
        self.system.spoken.push(line);
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
        if totals.unmeasured_dropped > 0 {
            self.notes.push(format!(
                "{} requests that were due outside of the measured window (in the warm-up, say) were dropped; they are in \
                 no figure",
                totals.unmeasured_dropped
            ));
        }
        self.notes.extend(never_requested(plan, totals));
        self.notes.extend(missed(plan, totals));
        self.notes.extend(answered_behind(totals));
        self.notes.extend(own::notes(plan, totals));
        // a shorter one is the verdict's
        let changed = plan.changed_files().into_iter().filter(|change| !change.is_shorter);
        self.notes.extend(changed.map(|change| change.words));
        let shared = !self.system.command.is_empty()
            && (options.pins.driver.is_empty() || options.pins.system.is_empty());
        if shared {
            let yields = match options.pins.system.is_empty() {
                true => ", and the system yielded to the load generator (nice 10)",
                false => "",
            };
            let shares = format!("system and load generator shared the machine's cores{yields}");
            // alone it is no reason to doubt a figure
            match lacked_cores(&summary) {
                true => self.notes.push(format!("{shares}; --pin gives each its own")),
                false => self.system.spoken.push(shares),
            }
        }
        let mut manifest = Manifest::new(&plan.name, plan.labels.clone(), summary);
        manifest.settings = settings(plan);
        // a plan that a program built has no text
        manifest.scenario_digest = (!plan.source.is_empty()).then(|| digest(&plan.source));
        manifest.groups = plan.groups.clone();
        manifest.metrics = tidemark_verdict::custom_metrics(plan);
        manifest.description = plan.description.clone();
        manifest.command = options.command_line.clone();
        manifest.started_at = self.started_at;
        manifest.seed = self.seed;
        manifest.version = env!("CARGO_PKG_VERSION").to_owned();
        manifest.git_revision = self.git_revision;
        manifest.machine = self.machine;
        manifest.system = self.system;
        manifest.targets = self.targets;
        manifest.services = self.services;
        manifest.share_costs();
        manifest.stores = self.stores;
        manifest.watched = self.watched;
        manifest.load = load_text::load(plan);
        let streams = plan.load.streams();
        manifest.closed_users = streams
            .iter()
            .all(|stream| stream.model.is_closed())
            .then(|| streams.iter().map(|stream| stream.most_users() as u64).sum());
        manifest.even_arrivals =
            streams.iter().all(|stream| stream.model == LoadModel::Open(Spacing::Constant));
        manifest.driver_pinned_to = options.pins.driver.clone();
        manifest.driver_io = self.driver_io;
        manifest.uploads_cut = Some(self.uploads_cut).filter(|count| *count > 0);
        manifest.error_examples = totals.error_examples.clone();
        manifest.notes = self.notes;
        manifest
    }
}

/// The scenario's settings as they can be written down.
fn settings(plan: &Plan) -> BTreeMap<String, String> {
    let short = |value: String| match value.chars().count() {
        0..=SETTING_MAX => value,
        _ => {
            let begin: String = value.chars().take(SETTING_BEGIN).collect();
            format!("{begin}… ({})", digest(&value))
        }
    };
    // --url may have brought a secret since
    let masked = plan.settings.iter().map(|(name, value)| (name.clone(), plan.secrets.masked(value)));
    masked.map(|(name, value)| (name, short(value))).collect()
}

/// What a reader must know before the figures: answers that count as good and may be none.
pub fn warnings(end: &DriveEnd, counters: &Counters) -> Vec<String> {
    let silent = streamed(counters).filter(|_| counters[Counter::EventsReceived] == 0);
    let left = counters[Counter::StreamsLeft];
    let unknown = (left > 0).then(|| {
        format!("sessions left {left} streams of gRPC open: whether the server refused them is not known; end each with `grpc close`")
    });
    unfollowed(end).into_iter().chain(silent).chain(unknown).collect()
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
mod tests;
