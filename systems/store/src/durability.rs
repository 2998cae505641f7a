//! What "written" means: the promise behind an acknowledged write.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// How far a write has come when it is acknowledged.
///
/// Part of every write figure: a rate without its durability says nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Durability {
    /// Only in the memory of the process: lost with it.
    Memory,
    /// The operating system has it: survives the death of the process (`kill -9`), not a power cut.
    Buffered,
    /// On disk before the answer: survives a power cut, as far as the disk keeps its own promises.
    #[default]
    Synced,
}

impl Durability {
    /// Every durability, weakest first.
    pub const ALL: [Durability; 3] = [Durability::Memory, Durability::Buffered, Durability::Synced];

    /// The word that people write and read.
    pub const fn as_str(self) -> &'static str {
        match self {
            Durability::Memory => "memory",
            Durability::Buffered => "buffered",
            Durability::Synced => "synced",
        }
    }
}

impl fmt::Display for Durability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// The text was none of the three words.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown durability {0:?}; use memory, buffered or synced")]
pub struct UnknownDurability(pub String);

impl FromStr for Durability {
    type Err = UnknownDurability;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::ALL
            .into_iter()
            .find(|durability| durability.as_str() == text)
            .ok_or_else(|| UnknownDurability(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_read_back() {
        for durability in Durability::ALL {
            assert_eq!(durability.to_string().parse(), Ok(durability));
        }
    }

    #[test]
    fn a_wrong_word_is_named_with_the_right_ones() {
        let error = "Synced".parse::<Durability>().unwrap_err();
        assert_eq!(error.to_string(), "unknown durability \"Synced\"; use memory, buffered or synced");
    }
}
