//! What the lab knows of a run beside its figures, gathered as it goes, for the manifest.

mod notes;

use std::collections::BTreeSet;
use std::time::SystemTime;

use tidemark_drive::{DriveEnd, Handshakes, NotFound, Protocol, Timestamps};
use tidemark_record::manifest::{Machine, Manifest, Phase, Store, System, Target, Watched};
use tidemark_record::{Summary, Totals};
use tidemark_scenario::Plan;
use tidemark_scenario::plan::{Ask, EventStreamStep, Op, RequestPlan};

use crate::run_options::RunOptions;
use crate::stores::Stores;
use crate::sync::SyncProbe;
use crate::system::Running;
use crate::verdict::duration_text;
use crate::watch::Watches;
use crate::{load_text, machine, own, target};

use notes::{
    answered_behind, bounds_only, called, connections_used, missed, never_requested, raised, redirected,
    spoken, stood_still, streamed, waited,
};

/// A hypervisor that takes more than this many cores' worth away is worth a note.
const STEAL_NOTED: f64 = 0.05;
/// A disk whose median sync differs more than this between the two probes is worth a note.
const SYNC_CHANGE_NOTED: f64 = 2.0;
/// Where more than this share of the median response time is the driver's own, its size is told.
const OWN_SHARE_NOTED: f64 = 0.1;

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
            stores: Vec::new(),
            watched: Vec::new(),
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

    /// What the drive says about itself.
    pub fn drove(&mut self, end: &DriveEnd, summary: &Summary) {
        let counted = [
            (
                end.unfinished,
                "requests were due and without an answer when the run ended; they count as failed",
            ),
            (
                end.lost_intervals,
                "seconds of a driving thread were lost, because they were not written in time",
            ),
            (
                end.spent_turns,
                "turns of sessions were ended because they only computed; is there an endless loop?",
            ),
            (
                end.sent_again,
                "requests were sent again after a GOAWAY, by which the server said that it had not taken them; they count once",
            ),
            (
                end.uploads_cut,
                "answers came before the body of their request was sent whole, and the rest of it was not sent; over the whole run",
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
            (
                end.unexpected_messages,
                "messages came over WebSockets that no step took, over the whole run: tables count its measured window only",
            ),
            (
                end.events.too_large,
                "events were larger than 1 MiB, or than `limits: body` where that is less, and were passed over",
            ),
            (
                end.events.ended,
                "event streams were ended by the server, in order, before the session was over, and no step waited for that or \
                 followed; no figure has them",
            ),
            (
                end.events.dropped,
                "events were dropped by the driver before the step that waited: at most 64 are held for a stream",
            ),
            (
                end.redirects.moved,
                "requests were redirected to the server that has their slot now (MOVED); the detour is in their response time",
            ),
            (
                end.redirects.asked,
                "requests were redirected once while their slot was being moved (ASK); the detour is in their response time",
            ),
            (end.redirects.maps, "times the map of the cluster was read again while the load was on"),
            (
                end.redirects.held,
                "requests waited in the driver because all connections to their server were busy; the wait is in their response time",
            ),
            (
                end.cookies.foreign,
                "cookies were not kept: their Domain is none that their host is in, or one without a dot",
            ),
            (
                end.cookies.insecure,
                "cookies are `Secure` and were set over plain HTTP, over which they are not sent back",
            ),
            (
                end.cookies.no_room,
                "cookies were not kept: at most 64 are, of 4 KiB each, in a session for each target",
            ),
            (
                end.rows_not_alone,
                "times a session was given a row that another one held, because all rows of its feeder were held; give it more",
            ),
        ];
        self.notes.extend(
            counted.iter().filter(|(count, _)| *count > 0).map(|(count, what)| format!("{count} {what}")),
        );
        self.notes.extend(streamed(&end.events));
        self.driver_io = end.io.to_string();
        self.uploads_cut = end.uploads_cut;
        self.secured(&end.handshakes);
        if let Some((connections, bound)) = end.connections_capped_to {
            self.notes.push(format!(
                "there was room for {connections} connections only: what bounds them is {bound}"
            ));
        }
        self.notes.extend(end.connections_raised_to.map(raised));
        self.notes.extend(bounds_only(summary));
        self.notes.extend(self.own_share(summary));
        self.notes.extend(connections_used(end).filter(|_| self.arrives));
        if let Some((users, places)) = end.places {
            self.notes.push(format!(
                "{users} users shared {places} places for requests and waited for each other: the server takes fewer \
                 at once on a connection than `limits: streams` says, and `limits: connections` holds; the waits count"
            ));
        }
        self.notes.extend(end.not_found.iter().map(|NotFound { label, variable, answers }| {
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
            "about {} of the median response time of {} is the driver's own: requests left {} after they were due",
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
    fn secured(&mut self, handshakes: &Handshakes) {
        let Handshakes { full, resumed, spoken: Some(spoken) } = handshakes else { return };
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
                true => ", and the system yielded to the driver (nice 10)",
                false => "",
            };
            self.notes.push(format!(
                "system and driver shared the machine's cores{yields}; --pin gives each its own"
            ));
        }
        let mut manifest = Manifest::new(&plan.name, plan.labels.clone(), summary);
        manifest.groups = plan.groups.clone();
        manifest.metrics = own::metrics(plan);
        manifest.description = plan.description.clone();
        manifest.command = options.command_line.clone();
        manifest.started_at = self.started_at;
        manifest.seed = self.seed;
        manifest.version = env!("CARGO_PKG_VERSION").to_owned();
        manifest.git_revision = self.git_revision;
        manifest.machine = self.machine;
        manifest.system = self.system;
        manifest.targets = self.targets;
        manifest.stores = self.stores;
        manifest.watched = self.watched;
        manifest.load = load_text::load(plan);
        manifest.driver_pinned_to = options.pins.driver.clone();
        manifest.driver_io = self.driver_io;
        manifest.uploads_cut = Some(self.uploads_cut).filter(|count| *count > 0);
        manifest.error_examples = totals.error_examples.clone();
        manifest.notes = self.notes;
        manifest
    }
}

/// The labels that the load can show; those that only `prepare` has are in no figure.
pub fn labels_of_the_load(plan: &Plan) -> BTreeSet<&str> {
    let has_load = |index: usize| plan.load.kinds.iter().any(|own| own.kind == index);
    let sessions = plan.sessions.iter().enumerate();
    let loaded = sessions.filter(|(index, kind)| kind.weight > 0 || has_load(*index));
    let ops = loaded.flat_map(|(_, kind)| &kind.ops);
    let requests = ops.filter_map(|op| match op {
        Op::Request(request) => plan.requests.get(usize::from(*request)),
        Op::Set { .. }
        | Op::Take { .. }
        | Op::Jump(_)
        | Op::JumpUnless { .. }
        | Op::Choose { .. }
        | Op::Think(_)
        | Op::BeginGroup(_)
        | Op::EndGroup
        | Op::Measure { .. }
        | Op::End => None,
    });
    requests.filter_map(|request| plan.labels.get(usize::from(request.label))).map(String::as_str).collect()
}

/// The labels under which there is a request only where something is wrong: a stream is left, and is not there any more.
pub fn labels_of_failures(plan: &Plan) -> BTreeSet<&str> {
    let leaves = |request: &&RequestPlan| matches!(request.ask, Ask::EventStream(EventStreamStep::Close));
    let label = |request: &RequestPlan| plan.labels.get(usize::from(request.label)).map(String::as_str);
    let others: BTreeSet<_> =
        plan.requests.iter().filter(|request| !leaves(request)).filter_map(label).collect();
    let all = plan.requests.iter().filter(leaves).filter_map(label);
    all.filter(|label| !others.contains(label)).collect()
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
    use tidemark_record::Outcome;

    use tidemark_drive::{EventCounts, Http2, Raised, Rpc};

    use super::*;

    #[test]
    fn a_driver_that_was_held_up_is_a_bound_only_where_something_was_achieved() {
        let mut summary = tidemark_record::summarize(&Totals::new(&[]), std::path::Path::new("x"));
        summary.driver.limits = vec!["it had no core".into()];
        let told = bounds_only(&summary).unwrap();
        assert!(told.contains("nothing was answered well") && !told.contains("at least"), "{told}");
        summary.achieved_per_s = 10.0;
        assert!(bounds_only(&summary).unwrap().contains("at least what was achieved"));
    }

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
    fn more_connections_than_asked_for_are_told_with_the_reason() {
        let users = raised((4, Raised::Users));
        assert!(users.starts_with("up to 4 connections") && users.contains("share of the users"), "{users}");
        let servers = raised((6, Raised::Servers(3)));
        assert!(servers.contains("equally many to each of the 3 servers"), "{servers}");
    }

    #[test]
    fn messages_that_no_step_took_are_of_the_whole_run() {
        let text = "sessions: {a: {steps: [{GET: /}]}}\nload: {users: 1, hold: 1s}\n";
        let plan = tidemark_scenario::load_text("t.yaml", text, std::path::Path::new("."), &[]).unwrap();
        let mut account = Account::begin(&RunOptions::default(), &plan, 1);
        let summary = tidemark_record::summarize(&Totals::new(&[]), std::path::Path::new("x"));
        account.drove(&DriveEnd { unexpected_messages: 3, ..DriveEnd::default() }, &summary);
        let told = "3 messages came over WebSockets that no step took, over the whole run: tables count its measured window only";
        assert!(account.notes.iter().any(|note| note == told), "{:?}", account.notes);
    }

    #[test]
    fn bodies_that_were_not_sent_whole_and_requests_that_were_sent_again_are_told() {
        let text = "sessions: {a: {steps: [{GET: /}]}}\nload: {users: 1, hold: 1s}\n";
        let plan = tidemark_scenario::load_text("t.yaml", text, std::path::Path::new("."), &[]).unwrap();
        let mut account = Account::begin(&RunOptions::default(), &plan, 1);
        let totals = Totals::new(&plan.labels);
        let summary = tidemark_record::summarize(&totals, std::path::Path::new("x"));
        account.drove(&DriveEnd { uploads_cut: 3, sent_again: 2, ..DriveEnd::default() }, &summary);
        for told in ["3 answers came before the body", "2 requests were sent again after a GOAWAY"] {
            assert!(account.notes.iter().any(|note| note.starts_with(told)), "{:?}", account.notes);
        }
        let manifest = account.manifest(&plan, &RunOptions::default(), summary, &totals);
        assert_eq!(manifest.uploads_cut, Some(3));
    }

    #[test]
    fn a_stream_that_is_left_is_no_request() {
        let text = "sessions: {a: {steps: [{sse connect: /s, label: S}, {think: 1s}, {sse close: now, label: L}]}}\nload: {users: 1, hold: 1s}\n";
        let plan = tidemark_scenario::load_text("t.yaml", text, std::path::Path::new("."), &[]).unwrap();
        assert_eq!(labels_of_failures(&plan), ["L"].into());
        let mut totals = Totals::new(&plan.labels);
        totals.add_interval(&tidemark_record::ThreadInterval {
            series: vec![crate::test_plan::series(0, Outcome::Ok, 50, 1)],
            ..tidemark_record::ThreadInterval::empty(0, 0, 1_000_000)
        });
        assert!(totals.all.ended > 0);
        assert_eq!(never_requested(&plan, &totals), None);
    }

    #[test]
    fn service_times_of_what_was_answered_behind_the_window_are_told_to_be_such() {
        let interval = |in_window, second: u64| tidemark_record::ThreadInterval {
            in_window,
            series: vec![crate::test_plan::series(0, Outcome::Ok, 50, 7)],
            ..tidemark_record::ThreadInterval::empty(0, second * 1_000_000, (second + 1) * 1_000_000)
        };
        let mut totals = Totals::new(&["A".into()]);
        assert_eq!(answered_behind(&totals), None);
        totals.add_interval(&interval(false, 1));
        assert!(answered_behind(&totals).unwrap().contains("are of the 7 requests"));
        totals.add_interval(&interval(true, 0));
        assert_eq!(answered_behind(&totals), None);
    }

    #[test]
    fn events_are_counted() {
        let text = "sessions: {a: {steps: [{GET: /}]}}\nload: {users: 1, hold: 1s}\n";
        let plan = tidemark_scenario::load_text("t.yaml", text, std::path::Path::new("."), &[]).unwrap();
        let mut account = Account::begin(&RunOptions::default(), &plan, 1);
        let summary = tidemark_record::summarize(&Totals::new(&[]), std::path::Path::new("x"));
        let events = EventCounts { streams: 3, received: 9, taken: 2, too_large: 1, ended: 5, dropped: 4 };
        account.drove(&DriveEnd { events, ..DriveEnd::default() }, &summary);
        let events = EventCounts { streams: 3, ..EventCounts::default() };
        account.drove(&DriveEnd { events, ..DriveEnd::default() }, &summary);
        account.drove(&DriveEnd::default(), &summary);
        assert_eq!(account.notes.iter().filter(|note| note.contains("over 3 event streams")).count(), 2);
        for told in [
            "9 events came over 3 event streams, over the whole run; steps waited for 2 of them",
            "1 events were larger than 1 MiB, or than `limits: body` where that is less, and were passed over",
            "4 events were dropped by the driver before the step that waited: at most 64 are held for a stream",
            "5 event streams were ended by the server, in order, before the session was over, and no step waited for that or \
             followed; no figure has them",
            "warning: 0 events came over 3 event streams, over the whole run: nothing shows that they work",
        ] {
            assert!(account.notes.iter().any(|note| note == told), "{:?}", account.notes);
        }
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
    fn the_drivers_own_share_is_noted_where_it_is_more_than_a_tenth_of_the_median() {
        let plan = crate::test_plan::plan(tidemark_scenario::plan::LoadModel::Closed);
        let note = |lag_us, read_us: Option<u64>, timestamps, spin| {
            let mut summary = tidemark_record::summarize(&Totals::new(&[]), std::path::Path::new("x"));
            (summary.response_time_us.p50, summary.driver.lag_us.p50) = (Some(1_000), Some(lag_us));
            summary.driver.read_lag_us =
                read_us.map(|p50| tidemark_record::summary::Latency { p50: Some(p50), ..Default::default() });
            let options = RunOptions { timestamps, spin, ..RunOptions::default() };
            Account::begin(&options, &plan, 1).own_share(&summary)
        };
        assert_eq!(note(40, Some(60), Timestamps::Read, false), None);
        assert_eq!(
            note(41, Some(60), Timestamps::Read, false).unwrap(),
            "about 101µs of the median response time of 1ms is the driver's own: requests left 41µs after they were due, \
             and answers were read 60µs after they came; --timestamps kernel leaves the latter out; --spin lessens it where each driving \
             thread has a core of its own"
        );
        assert_eq!(note(41, Some(60), Timestamps::Kernel, false), None);
        let text = note(150, None, Timestamps::Read, true).unwrap();
        assert!(text.contains("150µs") && !text.contains("--"), "{text}");
    }

    #[test]
    fn fewer_connections_than_were_asked_for_are_noted() {
        let note = |used, ahead| {
            let end = DriveEnd { connections_used: used, connections_ahead: ahead, ..DriveEnd::default() };
            connections_used(&end)
        };
        assert_eq!((note(0, None), note(9, None)), (None, None));
        let end = DriveEnd { connections_used: 1, connections_made: 300, ..DriveEnd::default() };
        let told = connections_used(&end).unwrap();
        assert!(
            told.starts_with("300 connections were made while the load was on, 1 at most at once"),
            "{told}"
        );
        assert_eq!(note(400, Some(400)), None, "as it was asked for");
        assert!(note(0, Some(400)).unwrap().starts_with("none of the 400 connections"));
        assert!(note(100, Some(400)).unwrap().starts_with("100 of the 400 connections"));
    }

    #[test]
    fn what_was_dropped_in_the_warm_up_is_noted() {
        let plan = crate::test_plan::plan(tidemark_scenario::plan::LoadModel::Closed);
        let notes = |dropped, measured_dropped| {
            let mut totals = Totals::new(&[]);
            let mut interval = tidemark_record::ThreadInterval::empty(0, 0, 1_000_000);
            (interval.dropped, interval.measured_dropped) = (dropped, measured_dropped);
            totals.add_interval(&interval);
            let summary = tidemark_record::summarize(&totals, std::path::Path::new("x"));
            let options = RunOptions::default();
            Account::begin(&options, &plan, 1).manifest(&plan, &options, summary, &totals).notes
        };
        let about = |notes: Vec<String>| notes.into_iter().find(|note| note.contains("were dropped"));
        assert!(about(notes(7, 3)).unwrap().starts_with("4 requests that were due outside"));
        assert_eq!(about(notes(3, 3)), None);
    }

    #[test]
    fn redirects_are_noted_whether_they_are_followed_or_not() {
        let end = DriveEnd {
            hops: vec![("Login".into(), 1), ("Shop".into(), 20)],
            unfollowed: vec![("Home".into(), 6)],
            ..DriveEnd::default()
        };
        let notes = redirected(&end);
        assert!(notes[0].starts_with("Login: 1 redirect was followed, as part"), "{notes:?}");
        assert!(notes[1].starts_with("Shop: 20 redirects were followed, as part"), "{notes:?}");
        assert!(notes[2].starts_with("Home: 6 answers said only where else to ask (3xx)"), "{notes:?}");
        assert_eq!(redirected(&DriveEnd::default()), [""; 0]);
    }

    #[test]
    fn answers_of_stores_that_are_mostly_empty_are_noted() {
        let plan = |step: &str, url: &str| {
            let text = format!(
                "system: {{url: '{url}'}}\nsessions: {{s: {{steps: [{step}]}}}}\nload: {{users: 1, hold: 1s}}\n"
            );
            tidemark_scenario::load_text("x.yaml", &text, std::path::Path::new("."), &[]).unwrap()
        };
        let redis = plan("{redis: [GET, k]}", "redis://h");
        let mut totals = Totals::new(&redis.labels);
        totals.statuses = [(200, 5), (204, 5)].into();
        totals.all.measured[tidemark_record::Outcome::Ok as usize] = 10;
        assert_eq!(missed(&redis, &totals), None);
        totals.statuses = [(200, 5), (204, 6)].into();
        totals.all.measured[tidemark_record::Outcome::Ok as usize] = 11;
        assert!(missed(&redis, &totals).unwrap().starts_with("6 of 11 answers were empty"));
        assert_eq!(missed(&plan("{GET: /}", "http://h"), &totals), None, "as others answer to a PUT");
        totals.all.measured[tidemark_record::Outcome::Ok as usize] = 5;
        assert_eq!(missed(&redis, &totals), None, "a check says that they are wrong");
    }

    #[test]
    fn a_label_that_was_never_requested_is_noted() {
        let text = "system: {url: 'http://h'}\nsessions: {s: {steps: [{GET: /a, label: A}, {GET: /b, label: B}]}}\n\
                    load: {users: 1, hold: 1s}\n";
        let plan = tidemark_scenario::load_text("x.yaml", text, std::path::Path::new("."), &[]).unwrap();
        let mut totals = Totals::new(&plan.labels);
        assert_eq!(never_requested(&plan, &totals), None, "nothing was, which is said");
        let mut warm = tidemark_record::ThreadInterval::empty(0, 0, 1_000_000);
        let series = |label| tidemark_record::Series {
            measured: false,
            ..crate::test_plan::series(label, Outcome::Status, 5, 1)
        };
        warm.series = vec![series(0)];
        totals.add_interval(&warm);
        assert!(never_requested(&plan, &totals).unwrap().starts_with("`B` was never requested"));
        warm.series = vec![series(1)];
        totals.add_interval(&warm);
        assert_eq!(never_requested(&plan, &totals), None);
    }

    #[test]
    fn a_driver_that_stood_still_says_so() {
        let mut summary = tidemark_record::summarize(&Totals::new(&[]), std::path::Path::new("x"));
        assert_eq!(stood_still(&summary), None);
        summary.driver.absent_s = 0.3;
        assert!(stood_still(&summary).unwrap().starts_with("the driver itself was suspended for 300ms"));
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
        assert_eq!(account.system.spoken, ["TLS 1.3, A: 2 full handshakes, 3 resumed"]);
        assert_eq!(account.notes.len(), 1);
    }
}
