//! When a server begins and ends what it does beside its work, by what it says of itself.

use super::product::{MaintenanceKind, Stats};

/// It has begun.
#[derive(Debug, Clone, PartialEq)]
pub struct Begun {
    /// [`MaintenanceKind::word`].
    pub kind: &'static str,
    /// How long the server stood still to fork, microseconds.
    pub fork_us: Option<u64>,
    /// Size of what it makes smaller, bytes.
    pub size_bytes: Option<u64>,
}

/// It is over.
#[derive(Debug, Clone, PartialEq)]
pub struct Ended {
    /// [`MaintenanceKind::word`].
    pub kind: &'static str,
    /// Size of what it made smaller, bytes.
    pub size_bytes: Option<u64>,
    /// Memory copied meanwhile, bytes.
    pub copied_bytes: Option<u64>,
    /// Why it failed.
    pub error: Option<String>,
    /// Whether its server is another process now.
    pub went_away: bool,
}

/// What a look has found.
#[derive(Debug, Clone, PartialEq)]
pub enum Change {
    /// It has begun, at a moment, microseconds since the run did.
    Began(u64, Begun),
    /// It is over.
    Ended(u64, Ended),
}

/// Follows one kind of maintenance of one server.
#[derive(Debug)]
pub struct Tracker {
    kind: &'static MaintenanceKind,
    before: Option<Before>,
    /// Whether it is under way, and the begin was told.
    under_way: bool,
}

/// What the last look stats.
#[derive(Debug)]
struct Before {
    at_us: u64,
    counted: Option<String>,
    size_bytes: Option<u64>,
}

impl Tracker {
    /// Nothing is known yet.
    pub fn new(kind: &'static MaintenanceKind) -> Tracker {
        Tracker { kind, before: None, under_way: false }
    }

    /// Takes what a look found. `fork`: asks how long the last fork took, where that is not said with it.
    pub fn look(&mut self, at_us: u64, stats: &Stats, fork: &mut dyn FnMut() -> Option<u64>) -> Vec<Change> {
        let kind = self.kind;
        // a server that knows nothing of it
        let Some(now) = stats.number(kind.under_way).map(|number| number > 0.0) else { return Vec::new() };
        let counted = kind.counted.iter().find_map(|name| stats.text(name)).map(str::to_owned);
        let size_bytes = stats.count(kind.size);
        let before = self.before.replace(Before { at_us, counted: counted.clone(), size_bytes });
        let is_another = before.as_ref().is_some_and(|before| before.counted != counted);
        let began = |at_us, size_bytes, fork: &mut dyn FnMut() -> Option<u64>| {
            let fork_us = stats.count(kind.fork).or_else(fork);
            Change::Began(at_us, Begun { kind: kind.word, fork_us, size_bytes })
        };
        let ended = || {
            let error = stats.text(kind.status).filter(|status| *status != "ok");
            let error = error.map(|status| format!("the store says \"{status}\""));
            let copied_bytes = stats.count(kind.copied);
            Change::Ended(at_us, Ended { kind: kind.word, size_bytes, copied_bytes, error, went_away: false })
        };
        let before_us = before.as_ref().map_or(at_us, |before| before.at_us);
        let size_before = before.and_then(|before| before.size_bytes).or(size_bytes);
        let changes = match (self.under_way, now) {
            (false, true) => vec![began(at_us, size_before, fork)],
            (true, false) => vec![ended()],
            // between two looks
            (false, false) if is_another => vec![began(before_us, size_before, fork), ended()],
            (true, true) if is_another => vec![ended(), began(at_us, size_before, fork)],
            _ => Vec::new(),
        };
        self.under_way = now;
        changes
    }

    /// Another process answers in the server's place.
    pub fn forget(&mut self, at_us: u64) -> Option<Change> {
        self.before = None;
        let ended = Ended {
            kind: self.kind.word,
            size_bytes: None,
            copied_bytes: None,
            error: Some("the store went away".into()),
            went_away: true,
        };
        std::mem::take(&mut self.under_way).then_some(Change::Ended(at_us, ended))
    }
}
