//! What a run that gave figures comes back as.

use std::path::PathBuf;

use tidemark_drive::DriveEnd;
use tidemark_record::summary::{Status, Verdict};
use tidemark_record::{Manifest, ReasonKind};

use crate::verdict::duration_text;

/// A run that gave figures.
#[derive(Debug, Clone)]
pub struct Finished {
    /// Where it is.
    pub run_dir: PathBuf,
    /// What it came to.
    pub manifest: Manifest,
    /// Whether the user stopped it while it was verified.
    pub verify_stopped: bool,
    /// Why the trace is not whole, where it is not.
    pub trace_unwritten: Option<String>,
}

/// A run of which a part is missing is no pass, whatever the rest of it came to.
pub fn complete(verdict: &mut Verdict, end: &DriveEnd, stopped: bool, measured_s: f64) {
    let mut missing = Vec::new();
    if stopped {
        missing.push(ReasonKind::Stopped.told(format!(
            "incomplete: stopped by the user; these are the figures of the {} measured until then",
            duration_text(measured_s * 1e6)
        )));
    }
    if end.lost_intervals > 0 {
        missing.push(ReasonKind::Incomplete.told(format!(
            "incomplete: {} seconds of a driving thread are in no figure, because they could not be written in time; is \
             the disk of the run directory too slow?",
            end.lost_intervals
        )));
    }
    if missing.is_empty() {
        return;
    }
    if verdict.status == Status::Pass {
        verdict.status = Status::Invalid;
        verdict.reasons.splice(0..0, missing);
    } else {
        verdict.reasons.extend(missing);
    }
}

impl Finished {
    /// The exit status that says what the run is worth.
    pub fn exit_status(&self) -> u8 {
        match self.manifest.summary.verdict.status {
            _ if self.manifest.interrupted || self.verify_stopped => crate::EXIT_INTERRUPTED,
            Status::Pass => crate::EXIT_PASS,
            Status::Fail => crate::EXIT_FAIL,
            Status::Invalid => crate::EXIT_INVALID,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_incomplete_is_never_a_pass() {
        let judged = |status, stopped, lost_intervals| {
            let mut verdict = Verdict { status, reasons: vec!["before".into()] };
            let end = DriveEnd { lost_intervals, ..DriveEnd::default() };
            complete(&mut verdict, &end, stopped, 1.5);
            (verdict.status, verdict.reasons.iter().position(|reason| reason == "before"))
        };
        assert_eq!(judged(Status::Pass, false, 0), (Status::Pass, Some(0)));
        assert_eq!(judged(Status::Pass, true, 0), (Status::Invalid, Some(1)));
        assert_eq!(judged(Status::Pass, false, 1), (Status::Invalid, Some(1)));
        assert_eq!(judged(Status::Pass, true, 1), (Status::Invalid, Some(2)));
        assert_eq!(judged(Status::Fail, true, 0), (Status::Fail, Some(0)));
        assert_eq!(judged(Status::Invalid, true, 0), (Status::Invalid, Some(0)));
    }
}
