//! The scenarios that come with the program.

/// Name and text of each.
const SHIPPED: [(&str, &str); 5] = [
    ("airline", include_str!("../../../scenarios/airline.yaml")),
    ("ingest", include_str!("../../../scenarios/ingest.yaml")),
    ("trade", include_str!("../../../scenarios/trade.yaml")),
    ("trade-rest", include_str!("../../../scenarios/trade-rest.yaml")),
    ("trade-websocket", include_str!("../../../scenarios/trade-websocket.yaml")),
];

/// The text of a shipped scenario.
pub fn shipped(name: &str) -> Option<&'static str> {
    SHIPPED.iter().find(|(known, _)| *known == name).map(|(_, text)| *text)
}

/// The names of the shipped scenarios.
pub fn shipped_names() -> impl Iterator<Item = &'static str> {
    SHIPPED.iter().map(|(name, _)| *name)
}
