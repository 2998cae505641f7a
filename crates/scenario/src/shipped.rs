//! The scenarios that come with the program: every file of the folder `scenarios`.

include!(concat!(env!("OUT_DIR"), "/shipped.rs"));

/// The text of a shipped scenario.
pub fn shipped(name: &str) -> Option<&'static str> {
    SHIPPED.iter().find(|(known, _)| *known == name).map(|(_, text)| *text)
}

/// The names of the shipped scenarios.
pub fn shipped_names() -> impl Iterator<Item = &'static str> {
    SHIPPED.iter().map(|(name, _)| *name)
}
