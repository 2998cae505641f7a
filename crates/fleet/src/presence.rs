//! Who is there: an entry for each agent, which expires unless the agent puts it again.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// The bucket with the agents.
pub(crate) const BUCKET: &str = "tidemark-agents";
/// An agent that has not been heard of for so long is not there.
pub(crate) const EXPIRES: Duration = Duration::from_secs(5);
/// Most bytes of a name.
const NAME_BYTES_MAX: usize = 64;

/// What an agent says of itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Presence {
    /// Its name, which no other agent has.
    pub name: String,
    /// Tells it from another that had its name before.
    pub instance: String,
    /// Version of Tidemark.
    pub version: String,
    /// Version of what it hands over.
    pub handover: u32,
    /// Its machine.
    pub host: String,
    /// Cores that it may use.
    pub cores: usize,
    /// Threads that it drives with.
    pub threads: usize,
    /// Memory of its machine, bytes.
    pub memory_bytes: u64,
    /// What it may drive.
    pub allows: String,
    /// The run that it drives for; none where it is idle.
    pub run: Option<String>,
}

/// Whether a name can be an agent's: it is a part of subjects and a key.
///
/// # Errors
/// In words.
pub(crate) fn check_name(name: &str) -> Result<(), String> {
    let is_right = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    if name.is_empty() || name.len() > NAME_BYTES_MAX || !name.bytes().all(is_right) {
        return Err(format!(
            "\"{name}\" cannot be an agent's name; use up to {NAME_BYTES_MAX} letters, digits, - and _"
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_a_word() {
        assert!(check_name("eu-1").is_ok() && check_name("A_b").is_ok());
        for name in ["", "a.b", "a b", "*", ">", "ä", &"x".repeat(65)] {
            assert!(check_name(name).is_err(), "{name}");
        }
    }
}
