//! A run whose ledger is held against the store later.

use tidemark_record::Manifest;
use tidemark_record::summary::{Ledger, Status, Verdict};
use tidemark_scenario::plan::Objective;
use tidemark_verdict::ledger::judge;

use crate::{EXIT_FAIL, EXIT_INVALID, EXIT_PASS};

/// Enters what a later search found into a run.
pub(super) fn enter(manifest: &mut Manifest, objectives: &[Objective], ledger: Ledger) {
    let before =
        manifest.verdict_before_verify.get_or_insert_with(|| manifest.summary.verdict.clone()).clone();
    manifest.summary.verdict = judge(&before, objectives, &mut manifest.objectives, Some(&ledger), true);
    manifest.summary.ledger = Some(ledger);
}

/// The exit status that says what the ledger alone came to: 0 nothing lost, or not more than the objectives allow; 1
/// something lost, doubled or changed; 3 not verified.
pub(super) fn exit_status(manifest: &Manifest, objectives: &[Objective]) -> u8 {
    let Some(ledger) = manifest.summary.ledger.as_ref().filter(|ledger| ledger.verified.is_some()) else {
        return EXIT_INVALID;
    };
    let nothing_else = Verdict { status: Status::Pass, reasons: Vec::new() };
    match judge(&nothing_else, objectives, &mut [], Some(ledger), true).status {
        Status::Pass => EXIT_PASS,
        _ => EXIT_FAIL,
    }
}
