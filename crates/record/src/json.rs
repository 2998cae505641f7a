//! One reader of JSON: what serde makes of each type is compiled once, not again for texts.

use serde::de::DeserializeOwned;

/// What a text says.
pub(crate) fn read<T: DeserializeOwned>(text: impl AsRef<[u8]>) -> serde_json::Result<T> {
    serde_json::from_slice(text.as_ref())
}
