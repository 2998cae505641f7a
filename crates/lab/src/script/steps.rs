//! `js` steps: read before anything is started, run by the driving threads.

use tidemark_drive::Codes;
use tidemark_k6::{Mistake, Steps};
use tidemark_scenario::{Diagnostic, Plan, Severity};

use crate::error::LabError;

/// Reads the code of a plan's steps.
///
/// # Errors
/// Every mistake, with its line.
pub(super) fn check(plan: &Plan) -> Result<(), LabError> {
    if plan.codes.is_empty() {
        return Ok(());
    }
    let mistakes = Steps::new(&plan.codes, plan.script, 0).check();
    if mistakes.is_empty() {
        return Ok(());
    }
    let told: Vec<String> = mistakes.into_iter().map(|mistake| told(plan, mistake)).collect();
    Err(LabError::Usage(told.join("\n")))
}

/// What runs them.
pub(super) fn codes(plan: &Plan, seed: u64) -> Option<Codes> {
    (!plan.codes.is_empty()).then(|| Steps::new(&plan.codes, plan.script, seed).codes())
}

fn told(plan: &Plan, mistake: Mistake) -> String {
    let Mistake { code, line, column, message } = mistake;
    let source_line = line.checked_sub(1).and_then(|line| plan.source.lines().nth(line));
    Diagnostic {
        severity: Severity::Error,
        file: plan.codes.get(code).map(|code| code.file.clone()).unwrap_or_default(),
        line,
        column,
        length: 1,
        message,
        source_line: source_line.unwrap_or_default().to_owned(),
    }
    .to_string()
}
