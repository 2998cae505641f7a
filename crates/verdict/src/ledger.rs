//! What a run is worth once its ledger was held against the store.
//!
//! | | verdict |
//! | --- | --- |
//! | lost > 0 | `fail`, unless objectives name `lost`: then these decide |
//! | nothing acknowledged | objectives that name `lost` are missed |
//! | duplicated > 0 | the same with `duplicated` |
//! | different > 0 | `fail` |
//! | the system counts something else than it shows | `fail` |
//! | not everything could be read, though the scenario says how | `invalid` (`not verified: …`), unless it failed anyway |
//! | the scenario does not say how | unchanged; objectives that the ledger decides are missed |
//!
//! A `fail` of this kind stands whatever the measurement is worth: that something was lost is proven also where the
//! driver was the limit.

use tidemark_record::manifest::ObjectiveResult;
use tidemark_record::summary::{Ledger, Verdict, Verified};
use tidemark_record::{Reason, ReasonKind};
use tidemark_scenario::plan::{Metric, Objective};

use crate::findings::Findings;
use crate::judge::missed_objective;
use crate::objectives::{NOT_MEASURED, holds};
use crate::text::text;

/// What is measured of losses where there was nothing to lose: that nothing is gone proves nothing then.
const NOTHING_ACKNOWLEDGED: &str = "nothing was acknowledged, so nothing was verified";

/// The verdict of a run with the ledger in it. `before`: without. `results`: of all objectives; those that the ledger decides
/// are filled in. `asked`: whether the scenario says how to verify.
pub fn judge(
    before: &Verdict,
    objectives: &[Objective],
    results: &mut [ObjectiveResult],
    ledger: Option<&Ledger>,
    asked: bool,
) -> Verdict {
    let mut findings = Findings::of(before);
    add(&mut findings, objectives, results, ledger, asked);
    findings.verdict()
}

/// Adds what the ledger came to.
pub(crate) fn add(
    findings: &mut Findings,
    objectives: &[Objective],
    results: &mut [ObjectiveResult],
    ledger: Option<&Ledger>,
    asked: bool,
) {
    let verified = ledger.and_then(|ledger| ledger.verified.as_ref());
    let mut reasons = match (ledger, verified) {
        (Some(ledger), Some(verified)) => broken(ledger, verified, objectives),
        _ => Vec::new(),
    };
    for objective in objectives.iter().filter(|objective| objective.metric.is_of_the_ledger()) {
        let measured =
            ledger.zip(verified).and_then(|(of, verified)| measured(objective.metric, of, verified));
        let result = ObjectiveResult {
            objective: objective.text.clone(),
            met: measured.is_some_and(|value| holds(value, objective.comparison, objective.bound)),
            measured: match measured {
                None if verified.is_some() => NOTHING_ACKNOWLEDGED.into(),
                Some(value) => text(objective.metric, value),
                None if ledger.is_some() => "not verified".into(),
                None => NOT_MEASURED.into(),
            },
            ..ObjectiveResult::default()
        };
        // where it could not be verified that is reason enough
        if !result.met && (verified.is_some() || !asked) {
            reasons.push(missed_objective(&result));
        }
        results.iter_mut().filter(|of| of.objective == result.objective).for_each(|of| *of = result.clone());
    }
    if let Some(hint) = verified.filter(|of| of.lost > 0).and_then(|of| of.hint.as_ref()) {
        reasons.extend((!reasons.is_empty()).then(|| ReasonKind::Ledger.told(hint)));
    }
    findings.failed.splice(0..0, reasons);
    if let Some(reason) = ledger.and_then(|ledger| ledger.not_verified.as_ref()).filter(|_| asked) {
        findings.invalid.push(ReasonKind::NotVerified.told(format!("not verified: {reason}")));
    }
}

/// What fails without an objective.
fn broken(ledger: &Ledger, verified: &Verified, objectives: &[Objective]) -> Vec<Reason> {
    let names = |metrics: &[Metric]| objectives.iter().any(|objective| metrics.contains(&objective.metric));
    let mut told: Vec<String> = Vec::new();
    if verified.lost > 0 && !names(&[Metric::Lost, Metric::LostShare]) {
        told.push(format!("lost: {} of {} acknowledged writes are gone", verified.lost, ledger.acknowledged));
    }
    if verified.duplicated > 0 && !names(&[Metric::Duplicated]) {
        told.push(format!("duplicated: writes were found {} times too often", verified.duplicated));
    }
    if verified.different > 0 {
        told.push(format!(
            "different: {} writes have another content than was sent, or an earlier run left it under their keys: \
             begin with an empty store, or with keys that no run had before",
            verified.different
        ));
    }
    if let Some(counted) = verified.counted.filter(|_| verified.is_miscounted()) {
        told.push(format!("miscounted: the system counts {counted}, but showed {}", verified.shown()));
    }
    told.into_iter().map(|told| ReasonKind::Ledger.told(told)).collect()
}

fn measured(metric: Metric, ledger: &Ledger, verified: &Verified) -> Option<f64> {
    match metric {
        Metric::Lost | Metric::LostShare if ledger.acknowledged == 0 => None,
        Metric::Lost => Some(verified.lost as f64),
        Metric::LostShare => Some(verified.lost as f64 / ledger.acknowledged as f64),
        Metric::Duplicated => Some(verified.duplicated as f64),
        _ => None,
    }
}
