//! A bounded log of what breakers do.

use std::collections::VecDeque;
use std::time::{SystemTime, UNIX_EPOCH};

use parking_lot::Mutex;
use serde::Serialize;

use crate::breaker::State;

/// Most events that are kept; the oldest goes first.
const EVENTS_MAX: usize = 1000;

/// A breaker has changed.
#[derive(Debug, Serialize)]
struct Event {
    /// When, milliseconds since 1970.
    time_ms: u64,
    command: &'static str,
    from: String,
    to: String,
}

/// The log.
#[derive(Debug, Default)]
pub(crate) struct Events(Mutex<VecDeque<Event>>);

impl Events {
    pub(crate) fn enter(&self, command: &'static str, from: State, to: State) {
        tracing::warn!(command, %from, %to, "a circuit breaker has changed");
        let event = Event { time_ms: unix_ms(), command, from: from.to_string(), to: to.to_string() };
        let mut events = self.0.lock();
        if events.len() >= EVENTS_MAX {
            events.pop_front();
        }
        events.push_back(event);
    }

    /// One JSON object a line, the oldest first.
    pub(crate) fn lines(&self) -> String {
        let events = self.0.lock();
        // a struct of texts and a number always serialises
        let line = |event| serde_json::to_string(event).unwrap_or_default() + "\n";
        events.iter().map(line).collect()
    }
}

/// Milliseconds since 1970.
pub(crate) fn unix_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_goes_first() {
        let events = Events::default();
        events.enter("First", State::Closed, State::Open);
        assert!(events.lines().ends_with("\"command\":\"First\",\"from\":\"closed\",\"to\":\"open\"}\n"));
        for _ in 0..EVENTS_MAX {
            events.enter("Next", State::Open, State::HalfOpen);
        }
        assert_eq!(events.lines().lines().count(), EVENTS_MAX);
        assert!(!events.lines().contains("First"));
    }
}
