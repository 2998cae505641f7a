//! Branches: sessions that a session's program begins, so that several of its requests are under way at once.

use tidemark_scenario::plan::PARALLEL_REQUESTS_MAX;

/// Most branches of a session that are under way at once.
pub const MOST_BRANCHES: usize = PARALLEL_REQUESTS_MAX;
/// Most branches of all sessions of a thread that are under way at once.
pub const MOST_BRANCHES_OF_THREAD: usize = 100_000;

/// What a session has to do with branches: those that it began, or whose branch it is.
#[derive(Debug, Default)]
pub(crate) struct Branching {
    /// The session that began it, where it is a branch.
    pub parent: Option<u32>,
    /// Its branches that are not over.
    pub branches: Vec<u32>,
    /// When something came of one of them, which its program has not been asked about.
    pub news_ns: Option<u64>,
    /// Until when it waits for that.
    pub until_ns: u64,
    /// The operations of its parallel step whose requests are not due yet; none outside of one.
    pub unsent: Option<Vec<u32>>,
    /// Whether a branch of that has not ended well.
    pub any_failed: bool,
    /// Up to when its user's time has been counted as lost.
    pub lost_ns: u64,
}

/// The branches of a thread. Their numbers are never those of other sessions.
#[derive(Debug, Default)]
pub(crate) struct BranchNumbers {
    free: Vec<u32>,
    made: usize,
}

impl BranchNumbers {
    /// Whether any branch is under way.
    #[inline]
    pub fn any(&self) -> bool {
        self.made > self.free.len()
    }

    /// Numbers that there are.
    pub fn made(&self) -> usize {
        self.made
    }

    /// Whether one more may be under way.
    pub fn has_room(&self) -> bool {
        self.made - self.free.len() < MOST_BRANCHES_OF_THREAD
    }

    /// A number; `next` where there is none that is free.
    pub fn take(&mut self, next: usize) -> u32 {
        self.free.pop().unwrap_or_else(|| {
            self.made += 1;
            next as u32
        })
    }

    /// A branch is over.
    pub fn give(&mut self, branch: u32) {
        self.free.push(branch);
        debug_assert!(self.free.len() <= self.made);
    }
}
