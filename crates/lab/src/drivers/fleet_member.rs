//! An agent while it drives, as its coordinator knows it.

use std::ops::Range;
use std::time::Instant;

use serde::{Deserialize, Serialize};
use tidemark_drive::DriveEnd;
use tidemark_fleet::clock::Offset;
use tidemark_record::ThreadShare;
use tidemark_record::summary::{AgentFigures, TakenThreads};

/// A thread of an agent that is lost: which arrivals and users it takes, and where its last interval ended, microseconds.
pub(super) type LostThread = (usize, u64);

/// Threads that an agent drives: its own, or those that it took over.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Part {
    /// The first arrivals and users that they take.
    pub(super) threads: Range<usize>,
    /// The number of the first of them.
    pub(super) number: usize,
    /// Where the last interval of each ended, microseconds since the run began; before the first, where that begins. Whoever
    /// goes on with a run sees it by what is recorded.
    #[serde(skip)]
    pub(super) told_us: Vec<u64>,
    /// From when on they are its, where they were another's.
    pub(super) taken_us: Option<u64>,
    /// Requests due within the measured window of which it has not told what became.
    #[serde(skip)]
    pub(super) open: u64,
}

impl Part {
    /// The same, of which nothing is told yet.
    pub(super) fn untold(self) -> Part {
        Part { told_us: vec![self.taken_us.unwrap_or(0); self.threads.len()], ..self }
    }

    /// Takes note of what one of its threads did in an interval; none where that is another's, and false where it was told before.
    pub(super) fn note(&mut self, share: &ThreadShare, (start_us, end_us): (u64, u64)) -> Option<bool> {
        let told_us = self.told_us.get_mut(usize::from(share.thread).checked_sub(self.number)?)?;
        let is_new = end_us > *told_us;
        *told_us = end_us.max(*told_us);
        // what is given up lies within what was told
        let gives_up = end_us - start_us.min(end_us) == 1;
        if is_new || gives_up {
            self.open = (self.open + share.measured_offered).saturating_sub(share.measured_ended);
        }
        Some(is_new)
    }

    /// Its threads, and where the last interval of each ended.
    pub(super) fn lost(&self) -> impl Iterator<Item = LostThread> + '_ {
        self.threads.clone().zip(self.told_us.iter().copied())
    }
}

/// An agent while it drives.
pub(super) struct Agent {
    pub(super) name: String,
    pub(super) parts: Vec<Part>,
    /// When something came from it last.
    pub(super) heard: Instant,
    pub(super) end: Option<DriveEnd>,
    /// The message that had its end.
    pub(super) ended_by: u64,
    pub(super) lost: Option<String>,
    /// That others have all of its share since it is lost.
    pub(super) replaced: bool,
    /// When its share ended, once it is lost: others have it from then on, or nobody. Microseconds since the run began.
    pub(super) until_us: u64,
    /// Whether it drives, as far as is known: one that stopped as no coordinator was there does not.
    pub(super) drives: bool,
    pub(super) offset: Offset,
}

impl Agent {
    pub(super) fn new(name: String, threads: &Range<usize>, offset: Offset) -> Agent {
        let told_us = vec![0; threads.len()];
        let own = Part { threads: threads.clone(), number: threads.start, told_us, taken_us: None, open: 0 };
        Agent {
            name,
            parts: vec![own],
            heard: Instant::now(),
            end: None,
            ended_by: 0,
            lost: None,
            replaced: false,
            until_us: u64::MAX,
            drives: true,
            offset,
        }
    }

    pub(super) fn is_there(&self) -> bool {
        self.end.is_none() && self.lost.is_none()
    }

    pub(super) fn threads(&self) -> usize {
        self.parts.iter().map(|part| part.threads.len()).sum()
    }

    /// Where the last interval ended that came from it, microseconds since the run began.
    pub(super) fn last_us(&self) -> u64 {
        // a share that it took over begins in the future, until something of it came
        let came = |part: &Part| {
            let last_us = part.told_us.iter().copied().max()?;
            part.taken_us.is_none_or(|begin_us| last_us > begin_us).then_some(last_us)
        };
        self.parts.iter().filter_map(came).max().unwrap_or(0)
    }

    pub(super) fn figures(&self) -> AgentFigures {
        // the first are its own
        let own = self.parts.first();
        let taken = self.parts.iter().filter_map(|part| {
            let (first_thread, threads) = (part.number as u64, part.threads.len() as u64);
            Some(TakenThreads { first_thread, threads, from_s: part.taken_us? as f64 / 1e6 })
        });
        AgentFigures {
            agent: self.name.clone(),
            first_thread: own.map_or(0, |own| own.number as u64),
            threads: own.map_or(0, |own| own.threads.len() as u64),
            clock_offset_us: self.offset.offset_us,
            clock_bound_us: self.offset.bound_us,
            lost: self.lost.clone(),
            taken: taken.collect(),
            ..AgentFigures::default()
        }
    }
}
