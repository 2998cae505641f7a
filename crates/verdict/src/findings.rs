//! What speaks against a run: what failed, and what was not decided. The verdict follows from these two lists alone.

use tidemark_record::summary::{Status, Verdict};
use tidemark_record::{Reason, ReasonKind};

/// Labels, groups, targets or kinds of sessions of which a verdict tells the same.
const PARTS_TOLD: usize = 5;

/// Reasons, the first of each list foremost.
#[derive(Debug, Clone, Default)]
pub(crate) struct Findings {
    /// Why the run failed.
    pub failed: Vec<Reason>,
    /// Why it is not decided.
    pub invalid: Vec<Reason>,
}

impl Findings {
    /// Those of a verdict.
    pub(crate) fn of(verdict: &Verdict) -> Findings {
        let reasons = verdict.reasons.clone();
        match verdict.status {
            Status::Fail => Findings { failed: reasons, invalid: Vec::new() },
            Status::Invalid | Status::Pass => Findings { failed: Vec::new(), invalid: reasons },
        }
    }

    /// What failed comes first; then nothing that is not decided can be a pass.
    pub(crate) fn verdict(&self) -> Verdict {
        let status = match (self.failed.is_empty(), self.invalid.is_empty()) {
            (false, _) => Status::Fail,
            (true, false) => Status::Invalid,
            (true, true) => Status::Pass,
        };
        Verdict { status, reasons: self.failed.iter().chain(&self.invalid).cloned().collect() }
    }

    /// Nothing is decided for this reason, whatever failed.
    pub(crate) fn void(&mut self, reasons: Vec<Reason>) {
        self.invalid.splice(0..0, reasons);
        self.invalid.append(&mut self.failed);
    }
}

/// Reasons of labels, groups, targets or kinds of sessions, each of which says the same of another one.
pub(crate) fn few(mut reasons: Vec<Reason>, did: &str) -> Vec<Reason> {
    if let Some(more) = reasons.len().checked_sub(PARTS_TOLD).filter(|more| *more > 0) {
        reasons.truncate(PARTS_TOLD);
        let kind = reasons.first().map_or(ReasonKind::Other, Reason::kind);
        reasons.push(kind.told(format!("{more} more {did}: see the tables by label and group")));
    }
    reasons
}

pub(crate) fn push_once(reasons: &mut Vec<String>, reason: String) {
    if !reasons.contains(&reason) {
        reasons.push(reason);
    }
}
