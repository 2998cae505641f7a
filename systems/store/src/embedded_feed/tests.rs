//! Feeds where tables are written as runs and joined.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::*;
use crate::feeds::STORY_BYTES_MAX;

fn wait<T>(answer: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(answer)
}

fn a_post(at_us: u64, poster: u64) -> Arc<Post> {
    let story = format!("story of {poster} at {at_us}").into();
    Arc::new(Post { id: PostId { at_us, server: 3 }, poster, subject: "s".into(), story })
}

fn query(participant: u64) -> FeedQuery {
    FeedQuery { participant, before: None, limit: 1000 }
}

/// All that a participant sees, page by page.
fn inbound(store: &EmbeddedFeed, participant: u64, limit: usize) -> Vec<Arc<Post>> {
    let (mut posts, mut before) = (Vec::new(), None);
    loop {
        let page = wait(store.inbound(FeedQuery { participant, before, limit }, 1000)).unwrap();
        assert!(page.posts.len() <= limit);
        posts.extend(page.posts);
        match page.next {
            Some(next) => before = Some(next),
            None => return posts,
        }
    }
}

/// A clock that is far ahead of all posts, as this one is, destroys none of them.
#[test]
fn what_is_joined_loses_nothing_to_a_clock_that_is_ahead() {
    let dir = tempfile::tempdir().unwrap();
    let post = |store: &EmbeddedFeed, at_us| {
        let story = "x".repeat(STORY_BYTES_MAX).into();
        let post = Arc::new(Post { story, ..(*a_post(at_us, 1)).clone() });
        wait(Feeds::post(store, Delivery { post, readers: [2].into() })).unwrap();
    };
    post(&EmbeddedFeed::open(dir.path(), Durability::Buffered).unwrap(), 1);
    let store = EmbeddedFeed::open_with(dir.path(), Durability::Buffered, 64 * 1024).unwrap();
    let merges = || store.engine.as_ref().unwrap().counters().merges.load(Ordering::Relaxed);
    let mut count = 1;
    // of each table that has runs
    while merges() < 6 {
        count += 1;
        assert!(count < 5_000, "nothing is joined");
        post(&store, count);
    }
    assert_eq!(inbound(&store, 2, 1000).len() as u64, count);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 16, ..ProptestConfig::default() })]

    /// Also where tables are written as runs and joined in the meantime.
    #[test]
    fn feeds_are_the_newest_first_whole_and_once(
        posts in prop::collection::vec((0u64..400, 1u64..4, prop::collection::btree_set(1u64..5, 0..4)), 1..300),
        limit in 1usize..30,
    ) {
        let dir = tempfile::tempdir().unwrap();
        let (mut sent, mut received) = (BTreeMap::<u64, BTreeSet<u64>>::new(), BTreeMap::<u64, BTreeMap<u64, u64>>::new());
        let mut store = EmbeddedFeed::open(dir.path(), Durability::Buffered).unwrap();
        let mut at_us = 0;
        for (step, poster, readers) in &posts {
            at_us += step / 200 + 1;
            let readers: Vec<u64> = readers.iter().copied().filter(|reader| reader != poster).collect();
            wait(Feeds::post(&*store, Delivery { post: a_post(at_us, *poster), readers: readers.clone().into() })).unwrap();
            sent.entry(*poster).or_default().insert(at_us);
            for reader in &readers {
                received.entry(*reader).or_default().insert(at_us, *poster);
            }
            if *step == 0 {
                drop(store);
                store = EmbeddedFeed::open(dir.path(), Durability::Buffered).unwrap();
            }
        }
        for participant in 1..5 {
            let outbound = wait(store.outbound(query(participant))).unwrap().posts;
            let times: Vec<_> = outbound.iter().map(|post| post.id.at_us).collect();
            prop_assert_eq!(times, sent.get(&participant).into_iter().flatten().rev().copied().collect::<Vec<_>>());
            let expected: Vec<_> =
                received.get(&participant).into_iter().flatten().rev().map(|(at, poster)| a_post(*at, *poster)).collect();
            prop_assert_eq!(inbound(&store, participant, limit), expected);
        }
    }
}
