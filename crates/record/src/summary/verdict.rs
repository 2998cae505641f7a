//! What a run is worth, and why.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::reason::{Of, Reason};

/// What a run is worth.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Status {
    /// Every objective was met.
    Pass,
    /// An objective was missed, or something was lost.
    Fail,
    /// The measurement itself cannot be trusted.
    Invalid,
}

/// Verdict with its reasons, the first the weightiest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "WrittenVerdict", into = "WrittenVerdict")]
pub struct Verdict {
    /// Pass, fail or invalid.
    pub status: Status,
    /// A line each; for example `driver-bound: …`, `p99 < 50ms missed: 71.2ms`.
    pub reasons: Vec<Reason>,
}

impl Verdict {
    /// All reasons, with this between two.
    pub fn in_words(&self, between: &str) -> String {
        self.reasons.iter().map(|reason| &**reason).collect::<Vec<_>>().join(between)
    }
}

/// Verdict with its reasons, the first the weightiest.
#[derive(Serialize, Deserialize, JsonSchema)]
struct WrittenVerdict {
    /// Pass, fail or invalid.
    status: Status,
    /// A line each; for example `driver-bound: …`, `p99 < 50ms missed: 71.2ms`.
    reasons: Vec<String>,
    /// What each of them is about, in the same order. Absent where there is none, and in runs of earlier versions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    kinds: Vec<Of>,
}

impl From<WrittenVerdict> for Verdict {
    fn from(written: WrittenVerdict) -> Verdict {
        let kinds = written.kinds.into_iter().chain(std::iter::repeat_with(Of::default));
        let reasons = written.reasons.into_iter().zip(kinds);
        Verdict {
            status: written.status,
            reasons: reasons.map(|(text, of)| Reason::with(text, of)).collect(),
        }
    }
}

impl From<Verdict> for WrittenVerdict {
    fn from(verdict: Verdict) -> WrittenVerdict {
        let (reasons, kinds) = verdict.reasons.into_iter().map(Reason::into_parts).unzip();
        WrittenVerdict { status: verdict.status, reasons, kinds }
    }
}

impl JsonSchema for Verdict {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Verdict".into()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        WrittenVerdict::json_schema(generator)
    }
}
