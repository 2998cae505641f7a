//! What became of the writes that a run entered in its ledger.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What was entered in the ledger, and what became of it; absent where no write was entered.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Ledger {
    /// Writes sent, those of the warm-up and of `prepare` included.
    pub sent: u64,
    /// Writes that the system acknowledged.
    pub acknowledged: u64,
    /// What was found of them; absent where nobody could look. Its fields stand beside those above.
    #[serde(flatten)]
    pub verified: Option<Verified>,
    /// Why it was not verified.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_verified: Option<String>,
    /// Files of the ledger whose end was cut off, because the driver died.
    #[serde(default)]
    pub torn: u64,
    /// Whether the run broke off, so that what was sent last is in none of these numbers, nor whether it was acknowledged.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub broke_off: bool,
}

impl Ledger {
    /// Whether the end of the ledger is not known, so that nothing lost in it proves nothing about that.
    pub fn is_cut_off(&self) -> bool {
        self.broke_off || self.torn > 0
    }
}

/// What a search through the store found.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Verified {
    /// Acknowledged and found, with the content that was sent.
    pub found: u64,
    /// Acknowledged and not found so.
    pub lost: u64,
    /// Of those, how many are there with another content: changed, or of a run before this one.
    #[serde(default)]
    pub changed: u64,
    /// Of those, how many are in some of the places in which they are to be, and not in all.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub incomplete: u64,
    /// Found more than once: how many times too often, over all.
    pub duplicated: u64,
    /// Found though never acknowledged.
    pub unacknowledged_found: u64,
    /// Found with another content than was sent.
    pub different: u64,
    /// Found and not of this run.
    pub foreign: u64,
    /// What the system itself says that it holds, where it was asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub counted: Option<u64>,
    /// Numbers up to the last one that the system answered 404: ids that were left out, or whoever had them is gone.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub absent: u64,
    /// What may be wrong with the question, where the store showed nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// How long the search took, seconds.
    pub took_s: f64,
    /// When the search ended, RFC 3339, UTC.
    pub verified_at: String,
    /// In which seconds the lost ones were sent; the first [`LOST_SECONDS`] such.
    #[serde(default)]
    pub lost_when: Vec<LostWhen>,
    /// The first of each kind.
    #[serde(default)]
    pub examples: Vec<EntryExample>,
}

impl Verified {
    /// How many contents the store showed.
    pub fn shown(&self) -> u64 {
        self.found
            + self.changed
            + self.incomplete
            + self.unacknowledged_found
            + self.duplicated
            + self.foreign
    }

    /// Nothing that was acknowledged is missing, doubled or changed, and the system counts what it shows.
    pub fn is_whole(&self) -> bool {
        self.lost == 0 && self.duplicated == 0 && self.different == 0 && !self.is_miscounted()
    }

    /// Whether the system counts something else than it shows.
    pub fn is_miscounted(&self) -> bool {
        self.counted.is_some_and(|counted| counted != self.shown())
    }
}

pub(super) fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// Seconds in which lost writes were sent that a summary names.
pub const LOST_SECONDS: usize = 100;

/// Lost writes by when they were sent, microseconds since the run began.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[allow(missing_docs)]
pub struct LostWhen {
    pub from_us: u64,
    pub to_us: u64,
    pub lost: u64,
}

/// A write that a search tells of.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct EntryExample {
    /// Which number it belongs to: `lost`, `duplicated`, `unacknowledged_found` or `different`.
    pub kind: String,
    /// The entry as it stands in the content.
    pub entry: String,
    /// It was sent between these moments, microseconds since the run began; absent where that is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sent_us: Option<(u64, u64)>,
}
