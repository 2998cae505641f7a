//! Participants of a news feed, and who is whose friend.

use std::sync::Arc;

use crate::answer::Answer;
use crate::error::StoreError;
use crate::metrics::StoreMetrics;

/// Longest name, in characters: the width of the published column.
pub const NAME_CHARS_MAX: usize = 50;
/// Most friends of a participant, and hence most copies of a post.
pub const FRIENDS_MAX: usize = 10_000;
/// Most participants that [`People::named`] tells.
pub const NAMED_MAX: usize = 100;

/// Somebody who posts and reads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Participant {
    /// From 1 on, given by the store.
    pub id: u64,
    /// Need not be unique.
    pub name: Arc<str>,
}

/// A friendship as one of the two sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Friend {
    /// The friendship, from 1 on: the same for both.
    pub friendship: u64,
    /// The other one.
    pub participant: u64,
}

/// What came of a wish to be friends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Befriended {
    /// They are friends, also if they were before: the friendship has this number.
    Friends(u64),
    /// One of the two is not there.
    NoSuchParticipant(u64),
    /// This one has [`FRIENDS_MAX`] friends.
    TooManyFriends(u64),
}

/// Participants and friendships. A friendship is symmetric, and there is one of two participants.
pub trait People: Send + Sync {
    /// Adds a participant with this name, at most [`NAME_CHARS_MAX`] characters.
    fn create(&self, name: Arc<str>) -> Answer<'_, Participant>;

    /// The participant with this id.
    fn find(&self, id: u64) -> Answer<'_, Option<Participant>>;

    /// The first of those with this name, at most [`NAMED_MAX`].
    fn named(&self, name: &str) -> Answer<'_, Vec<Participant>>;

    /// Makes two different participants friends.
    fn befriend(&self, from: u64, to: u64) -> Answer<'_, Befriended>;

    /// The friends of a participant, the oldest friendship first; none of one who is not there.
    fn friends(&self, id: u64) -> Answer<'_, Vec<Friend>>;

    /// How many participants and how many friendships there are.
    fn counts(&self) -> Answer<'_, [u64; 2]>;

    /// The greatest id of a participant, 0 where there is none. A database leaves ids out when it is killed.
    fn last(&self) -> Answer<'_, u64>;

    /// The store's counters, now.
    fn metrics(&self) -> StoreMetrics {
        StoreMetrics::default()
    }
}

/// Refuses a name that is too long for the published column.
pub(crate) fn check_name(name: &str) -> Result<(), StoreError> {
    match name.chars().count() > NAME_CHARS_MAX {
        true => Err(StoreError::invalid("the name", format!("it has more than {NAME_CHARS_MAX} characters"))),
        false => Ok(()),
    }
}
