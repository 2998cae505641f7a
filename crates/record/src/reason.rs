//! Why a run has its verdict: a sentence for a person, and what kind of reason it is for code.

use std::fmt;
use std::ops::Deref;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a reason is about. Code decides by this, never by the sentence.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ReasonKind {
    /// An objective was missed.
    Missed,
    /// An objective could no longer be met, and the run was cut short.
    OutOfReach,
    /// The system ended by itself.
    SystemEnded,
    /// A script of the scenario failed.
    Script,
    /// The system, or a part of it, stopped answering.
    Silent,
    /// All requests of a label, group, target or kind of sessions failed.
    AllFailed,
    /// More of them failed than may.
    PartFailed,
    /// Requests of a label, group, target or kind of sessions piled up.
    FellBehind,
    /// Users waited in vain.
    UsersWaited,
    /// No good answer came within the window.
    NoGoodAnswer,
    /// Writes were lost, duplicated, changed or miscounted.
    Ledger,
    /// An objective is neither met nor missed.
    NotDecided,
    /// The window is too short beside the answers.
    ShortWindow,
    /// The connections that the scenario allows were the bound.
    Connections,
    /// Sessions only computed.
    Computing,
    /// A step was never reached.
    NeverReached,
    /// The load generator was the bottleneck.
    DriverBound,
    /// What the run started had no core.
    MachineBound,
    /// Nothing was due in the window.
    NothingMeasured,
    /// A file of the scenario became shorter, so that not everything could be sent.
    NotAllSent,
    /// The ledger was not held against the store.
    NotVerified,
    /// The run was stopped by the user.
    Stopped,
    /// A part of the run was not recorded.
    Incomplete,
    /// A fault was not carried out, or not over in time.
    Fault,
    /// Something else, or of a run that an earlier version recorded.
    #[default]
    Other,
}

impl ReasonKind {
    /// Whether it says something of the measurement alone, and nothing of the system.
    pub fn is_of_measurement(self) -> bool {
        use ReasonKind::*;
        match self {
            NotDecided | ShortWindow | Connections | Computing | NeverReached | DriverBound
            | MachineBound | NothingMeasured | NotAllSent | NotVerified | Stopped | Incomplete | Fault => {
                true
            }
            Missed | OutOfReach | SystemEnded | Script | Silent | AllFailed | PartFailed | FellBehind
            | UsersWaited | NoGoodAnswer | Ledger | Other => false,
        }
    }

    /// What stands before a sentence of this kind.
    fn prefix(self) -> &'static str {
        match self {
            ReasonKind::DriverBound => "driver-bound: ",
            ReasonKind::MachineBound => "machine-bound: ",
            _ => "",
        }
    }

    /// A reason of this kind.
    pub fn told(self, text: impl Into<String>) -> Reason {
        let text = text.into();
        let text = if self.prefix().is_empty() { text } else { self.prefix().to_owned() + &text };
        Reason { text, of: Of { kind: self, objective: None } }
    }

    /// The same about an objective.
    pub fn of_objective(self, objective: &str, text: impl Into<String>) -> Reason {
        let mut reason = self.told(text);
        reason.of.objective = Some(objective.to_owned());
        reason
    }
}

/// A reason. It is its sentence, with its kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reason {
    text: String,
    of: Of,
}

/// What stands beside the sentence in files.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Of {
    /// What the reason is about.
    kind: ReasonKind,
    /// The objective that it is about, as it was written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    objective: Option<String>,
}

impl Reason {
    pub(crate) fn with(text: String, of: Of) -> Reason {
        Reason { text, of }
    }

    pub(crate) fn into_parts(self) -> (String, Of) {
        (self.text, self.of)
    }

    /// What it is about.
    pub fn kind(&self) -> ReasonKind {
        self.of.kind
    }

    /// The objective that it is about.
    pub fn objective(&self) -> Option<&str> {
        self.of.objective.as_deref()
    }

    /// The sentence without the word for its kind before it.
    pub fn detail(&self) -> &str {
        self.text.strip_prefix(self.of.kind.prefix()).unwrap_or(&self.text)
    }

    /// The same reason in other words.
    pub fn in_words(&mut self, words: impl FnOnce(&str) -> String) {
        self.text = words(&self.text);
    }
}

impl Deref for Reason {
    type Target = str;

    fn deref(&self) -> &str {
        &self.text
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.text)
    }
}

impl From<String> for Reason {
    fn from(text: String) -> Reason {
        Reason { text, of: Of::default() }
    }
}

impl From<&str> for Reason {
    fn from(text: &str) -> Reason {
        text.to_owned().into()
    }
}

impl PartialEq<str> for Reason {
    fn eq(&self, other: &str) -> bool {
        self.text == other
    }
}

impl PartialEq<&str> for Reason {
    fn eq(&self, other: &&str) -> bool {
        self.text == *other
    }
}

impl PartialEq<String> for Reason {
    fn eq(&self, other: &String) -> bool {
        self.text == *other
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::summary::{Status, Verdict};

    #[test]
    fn a_verdict_is_written_as_sentences_with_their_kinds_and_read_without_them_too() {
        let verdict = Verdict {
            status: Status::Fail,
            reasons: vec![
                ReasonKind::Missed.of_objective("p99 < 5ms", "p99 < 5ms missed: 7ms"),
                ReasonKind::DriverBound.told("it was busy"),
            ],
        };
        let written = serde_json::to_value(&verdict).unwrap();
        let expected = serde_json::json!({"status": "fail", "reasons": ["p99 < 5ms missed: 7ms", "driver-bound: it was busy"],
            "kinds": [{"kind": "missed", "objective": "p99 < 5ms"}, {"kind": "driver-bound"}]});
        assert_eq!(written, expected);
        let read: Verdict = serde_json::from_value(written).unwrap();
        assert_eq!((&read, read.reasons[1].detail()), (&verdict, "it was busy"));
        // of an earlier version
        let earlier = serde_json::json!({"status": "fail", "reasons": ["lost: 3"]});
        let read: Verdict = serde_json::from_value(earlier).unwrap();
        assert_eq!((&*read.reasons[0], read.reasons[0].kind()), ("lost: 3", ReasonKind::Other));
        let none = serde_json::to_value(Verdict { status: Status::Pass, reasons: Vec::new() }).unwrap();
        assert_eq!(none, serde_json::json!({"status": "pass", "reasons": []}));
    }
}
