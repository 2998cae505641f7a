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
    /// Whether it had begun before the server was first looked at.
    pub was_under_way: bool,
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

/// What the last look found.
#[derive(Debug)]
struct Before {
    at_us: u64,
    mark: [Option<String>; 2],
    size_bytes: Option<u64>,
}

impl Tracker {
    /// Nothing is known yet.
    pub fn new(kind: &'static MaintenanceKind) -> Tracker {
        Tracker { kind, before: None, under_way: false }
    }

    /// Takes what a look found. `fork`: asks how long the last fork took, where that is not told with it.
    pub fn look(&mut self, at_us: u64, stats: &Stats, fork: &mut dyn FnMut() -> Option<u64>) -> Vec<Change> {
        let kind = self.kind;
        // a server that knows nothing of it
        let Some(now) = kind.is_under_way(stats) else { return Vec::new() };
        let (mark, size_bytes) = (kind.mark(stats), stats.number(kind.size));
        let before = self.before.replace(Before { at_us, mark: mark.clone(), size_bytes });
        let is_another = before.as_ref().is_some_and(|before| before.mark != mark);
        let mut began = |before: Option<Before>, is_over: bool| {
            let fork_us = stats.number(kind.fork).or_else(&mut *fork);
            let was_under_way = before.is_none();
            let (from_us, size_bytes) =
                before.map_or((at_us, None), |before| (before.at_us, before.size_bytes));
            // a store answers nothing while it forks
            let forked_us = at_us.saturating_sub(fork_us.unwrap_or(0));
            let begin_us = if is_over { from_us } else { forked_us.max(from_us) };
            Change::Began(begin_us, Begun { kind: kind.word, fork_us, size_bytes, was_under_way })
        };
        let ended = || {
            let (error, copied_bytes) = (kind.failure(stats), stats.number(kind.copied));
            Change::Ended(at_us, Ended { kind: kind.word, size_bytes, copied_bytes, error, went_away: false })
        };
        let changes = match (self.under_way, now) {
            (false, true) => vec![began(before, false)],
            (true, false) => vec![ended()],
            // between two looks
            (false, false) if is_another => vec![began(before, true), ended()],
            (true, true) if is_another => vec![ended(), began(before, false)],
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
