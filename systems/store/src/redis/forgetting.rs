//! What a cache still has to forget: nothing of it is shown until it has.

use std::collections::HashMap;

use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::cache::CacheKey;

/// Keys that are remembered; with one more, everything is forgotten.
const KEYS_MAX: usize = 10_000;

/// Keys, or everything, that the server has not forgotten yet. Whatever comes later has a greater number, so that who has
/// forgotten an earlier one does not take it for a later.
pub(super) struct Forgetting {
    state: Mutex<State>,
    /// Something was not forgotten at once.
    pub(super) left: Notify,
}

struct State {
    number: u64,
    keys: HashMap<CacheKey, u64>,
    all: Option<u64>,
}

/// What is to be forgotten, as it was at some time.
pub(super) enum Due {
    Nothing,
    Keys(Vec<(CacheKey, u64)>),
    All(u64),
}

impl Forgetting {
    /// Of a server about which nothing is known: it may have anything.
    pub(super) fn all() -> Self {
        let state = State { number: 1, keys: HashMap::new(), all: Some(1) };
        Forgetting { state: Mutex::new(state), left: Notify::new() }
    }

    /// Everything is to be forgotten.
    pub(super) fn add_all(&self) {
        let mut state = self.state.lock();
        state.number += 1;
        state.all = Some(state.number);
        self.left.notify_one();
    }

    /// These are. Tells them with their numbers, for [`Forgetting::forgotten`].
    pub(super) fn add(&self, keys: &[CacheKey]) -> Vec<(CacheKey, u64)> {
        let mut state = self.state.lock();
        state.number += 1;
        let number = state.number;
        for key in keys {
            if state.keys.len() >= KEYS_MAX && !state.keys.contains_key(key) {
                state.keys.clear();
                state.all = Some(number);
            }
            state.keys.insert(*key, number);
        }
        keys.iter().map(|key| (*key, number)).collect()
    }

    /// Whether one of these is not to be shown.
    pub(super) fn has(&self, key: CacheKey) -> bool {
        let state = self.state.lock();
        state.all.is_some() || state.keys.contains_key(&key)
    }

    /// The server has forgotten these.
    pub(super) fn forgotten(&self, keys: &[(CacheKey, u64)]) {
        let mut state = self.state.lock();
        for (key, number) in keys {
            if state.keys.get(key) == Some(number) {
                state.keys.remove(key);
            }
        }
    }

    /// The server has forgotten everything.
    pub(super) fn all_forgotten(&self, number: u64) {
        let mut state = self.state.lock();
        state.all.take_if(|all| *all == number);
        state.keys.retain(|_, later| *later > number);
    }

    /// What is to be done, at most so many keys.
    pub(super) fn due(&self, keys_max: usize) -> Due {
        let state = self.state.lock();
        match state.all {
            Some(number) => Due::All(number),
            None if state.keys.is_empty() => Due::Nothing,
            None => {
                Due::Keys(state.keys.iter().take(keys_max).map(|(key, number)| (*key, *number)).collect())
            }
        }
    }

    /// How many keys there are, and whether it is everything.
    pub(super) fn counts(&self) -> (usize, bool) {
        let state = self.state.lock();
        (state.keys.len(), state.all.is_some())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: CacheKey = CacheKey::Friends(7);

    fn nothing() -> Forgetting {
        let forgetting = Forgetting::all();
        assert!(forgetting.has(KEY));
        let Due::All(number) = forgetting.due(1) else { panic!("all is due") };
        forgetting.all_forgotten(number);
        assert!(matches!(forgetting.due(1), Due::Nothing) && !forgetting.has(KEY));
        forgetting
    }

    #[test]
    fn who_forgot_an_earlier_one_did_not_forget_a_later() {
        let forgetting = nothing();
        let earlier = forgetting.add(&[KEY]);
        let later = forgetting.add(&[KEY, CacheKey::Friends(8)]);
        forgetting.forgotten(&earlier);
        assert!(forgetting.has(KEY));
        forgetting.forgotten(&later);
        assert!(!forgetting.has(KEY) && !forgetting.has(CacheKey::Friends(8)));
    }

    #[test]
    fn beyond_the_bound_everything_is_to_be_forgotten() {
        let forgetting = nothing();
        for id in 0..KEYS_MAX as u64 {
            forgetting.add(&[CacheKey::Friends(id)]);
        }
        assert!(!forgetting.has(CacheKey::Friends(u64::MAX)));
        assert!(matches!(forgetting.due(3), Due::Keys(keys) if keys.len() == 3));
        forgetting.add(&[CacheKey::Participant(1)]);
        assert!(forgetting.has(CacheKey::Friends(u64::MAX)));
        assert!(forgetting.counts().0 <= KEYS_MAX);
        let Due::All(number) = forgetting.due(1) else { panic!("all is due") };
        forgetting.add(&[KEY]);
        forgetting.all_forgotten(number);
        assert!(forgetting.has(KEY), "it came while all the others were being forgotten");
        assert!(!forgetting.has(CacheKey::Friends(8)));
    }
}
