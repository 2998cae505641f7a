//! What the stores of a run say of themselves while the load is on: their own figures once a second, and when they
//! rewrite their append-only files or take snapshots, whoever asked for it.
//!
//! Each server has a thread and a connection of its own, by which it is asked briefly ten times a second, so that a short
//! rewrite is not missed, and for everything once a second. Nothing of it waits for the driver or makes it wait; each
//! answer has [its time](WITHIN). What a product is asked and what that means is a file in its folder in [`products`](crate::products),
//! by the scheme of its URLs.

mod endpoint;
pub mod product;
mod tracker;
mod watcher;

use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use tidemark_record::fault::FaultEvent;
use tidemark_record::{Event, Maintenance, StoreLook};

pub use self::endpoint::{Connection, Endpoint, driven, endpoint, endpoints, is_of};
pub use self::product::{MaintenanceKind, Scope};
use self::watcher::{News, Watcher, What};
use crate::stop_signal::Threads;

/// How long a server may take to connect, and for each part of its answer.
pub const WITHIN: Duration = Duration::from_secs(1);
/// Most servers that are watched.
const SERVERS_MAX: usize = 64;
/// Most rewrites and snapshots that are kept; of further ones there are events.
const MAINTENANCE_MAX: usize = 1_000;
/// A look finds out so much later, microseconds.
const SEEN_AFTER_US: u64 = 300_000;

/// What came of looking since it was last asked for.
#[derive(Debug, Default)]
pub struct Seen {
    /// What the stores said.
    pub looks: Vec<StoreLook>,
    /// What they began and ended.
    pub events: Vec<Event>,
    /// When they began, microseconds since the run did.
    pub begun_us: Vec<u64>,
}

/// The stores of a run, asked.
#[derive(Debug)]
pub struct Figures {
    told: Receiver<News>,
    threads: Threads,
    stores: Vec<Store>,
    maintenance: Vec<Maintenance>,
    /// How many more there were.
    not_kept: u64,
    notes: Vec<String>,
}

/// What is kept of each server.
#[derive(Debug)]
struct Store {
    name: String,
    failed: u64,
    first_failure: Option<String>,
}

impl Figures {
    /// Begins to ask. Times count from `epoch`.
    ///
    /// # Errors
    /// Where no thread can be started.
    pub fn begin(endpoints: &[Endpoint], epoch: Instant) -> io::Result<Figures> {
        let (sender, told) = channel();
        let mut figures = Figures {
            told,
            threads: Threads::default(),
            stores: Vec::new(),
            maintenance: Vec::new(),
            not_kept: 0,
            notes: Vec::new(),
        };
        if let Some(more) = endpoints.len().checked_sub(SERVERS_MAX).filter(|more| *more > 0) {
            figures.notes.push(format!(
                "of {} servers of stores, {more} were not asked for their own figures: {SERVERS_MAX} at most",
                endpoints.len()
            ));
        }
        for (index, endpoint) in endpoints.iter().take(SERVERS_MAX).enumerate() {
            let name = endpoint.name.clone();
            figures.stores.push(Store { name, failed: 0, first_failure: None });
            let stop = Arc::clone(&figures.threads.stop);
            let watcher = Watcher::new(index, endpoint.clone(), epoch, stop, sender.clone());
            let thread = std::thread::Builder::new().name("figures".into());
            figures.threads.all.push(thread.spawn(move || watcher.watch())?);
        }
        Ok(figures)
    }

    /// What has been seen since the last call.
    pub fn news(&mut self) -> Seen {
        let mut seen = Seen::default();
        while let Ok(News { index, at_us, what }) = self.told.try_recv() {
            let store = &mut self.stores[index];
            match what {
                What::Figures(figures) => {
                    let (store, measured) = (store.name.clone(), false);
                    seen.looks.push(StoreLook { at_us, store, measured, figures });
                }
                What::Failed(reason) => {
                    store.failed += 1;
                    store.first_failure.get_or_insert(reason);
                }
                What::Began(begun) => {
                    let one = Maintenance {
                        kind: begun.kind.into(),
                        store: store.name.clone(),
                        begin_us: at_us,
                        fork_us: begun.fork_us,
                        size_before_bytes: begun.size_bytes,
                        ..Maintenance::default()
                    };
                    seen.begun_us.push(at_us);
                    seen.events.push(event(at_us, &one.kind, began(&one, begun.was_under_way)));
                    match self.maintenance.len() < MAINTENANCE_MAX {
                        true => self.maintenance.push(one),
                        false => self.not_kept += 1,
                    }
                }
                What::Ended(ended) => {
                    let is_it = |one: &&mut Maintenance| {
                        one.kind == ended.kind && one.store == store.name && one.end_us.is_none()
                    };
                    // one that was not kept has an event all the same
                    let mut unknown = Maintenance {
                        kind: ended.kind.into(),
                        store: store.name.clone(),
                        begin_us: at_us,
                        ..Maintenance::default()
                    };
                    let one = self.maintenance.iter_mut().rev().find(is_it).unwrap_or(&mut unknown);
                    // whose store went away was not over
                    one.end_us = (!ended.went_away).then_some(at_us);
                    one.size_after_bytes = ended.size_bytes;
                    one.copied_bytes = ended.copied_bytes;
                    one.error = ended.error;
                    seen.events.push(event(at_us, &one.kind, is_over(one)));
                }
            }
        }
        seen
    }

    /// Ends to ask; an answer that is waited for is given up.
    pub fn end(&mut self) -> Seen {
        self.threads.end();
        self.news()
    }

    /// What the stores did beside their work, with the faults that asked for it.
    pub fn maintenance(&self, faults: &[FaultEvent]) -> Vec<Maintenance> {
        let mut all = self.maintenance.clone();
        for fault in faults {
            let Some(begin_us) = fault.begin_us else { continue };
            let mut had: Vec<String> = Vec::new();
            for one in &mut all {
                let until_us = fault.healed_us.unwrap_or(u64::MAX);
                let is_of_it = one.kind == fault.kind
                    && is_of(&one.store, &fault.target)
                    && one.fault.is_none()
                    && (begin_us..=until_us).contains(&(one.begin_us + SEEN_AFTER_US).min(until_us))
                    && one.begin_us <= until_us
                    && !had.contains(&one.store);
                if is_of_it {
                    one.fault = Some(fault.fault.clone());
                    had.push(one.store.clone());
                }
            }
        }
        all
    }

    /// What a reader of the figures must know.
    pub fn notes(&self) -> Vec<String> {
        let mut notes = self.notes.clone();
        for Store { name, failed, first_failure } in &self.stores {
            if let Some(reason) = first_failure {
                let times = if *failed == 1 { "once".to_owned() } else { format!("{failed} times") };
                notes.push(format!("{name} could not be asked for its own figures {times}, first: {reason}"));
            }
        }
        if self.not_kept > 0 {
            notes.push(format!(
                "stores rewrote files or took snapshots {} more times than the {MAINTENANCE_MAX} of which the dips are told; \
                 all are in events.jsonl",
                self.not_kept
            ));
        }
        notes
    }
}

fn event(at_us: u64, kind: &str, text: String) -> Event {
    Event { at_us: at_us as i64, kind: kind.into(), text }
}

fn began(one: &Maintenance, was_under_way: bool) -> String {
    let how = if was_under_way { "was under way already" } else { "began" };
    let mut text = format!("{} of {} {how}", one.kind, one.store);
    let fork = one.fork_us.map(|us| format!("fork {:.1} ms", us as f64 / 1e3));
    let size = one.size_before_bytes.map(|bytes| format!("{} in the file", size(bytes)));
    let about: Vec<String> = fork.into_iter().chain(size).collect();
    if !about.is_empty() {
        text += &format!(" ({})", about.join(", "));
    }
    text
}

fn is_over(one: &Maintenance) -> String {
    let mut text = match &one.error {
        Some(error) => format!("{} of {} failed: {error}", one.kind, one.store),
        None => format!("{} of {} is over", one.kind, one.store),
    };
    if let Some(s) = one.length_s() {
        text += &format!(" after {s:.1}s");
    }
    if let (Some(before), Some(after)) = (one.size_before_bytes, one.size_after_bytes) {
        text += &format!(": {} became {}", size(before), size(after));
    }
    text
}

fn size(bytes: u64) -> String {
    match bytes {
        0..1_048_576 => format!("{:.1} KiB", bytes as f64 / 1_024.0),
        _ => format!("{:.1} MiB", bytes as f64 / 1_048_576.0),
    }
}

#[cfg(test)]
mod tests;
#[cfg(test)]
pub(crate) mod tests_servers;
