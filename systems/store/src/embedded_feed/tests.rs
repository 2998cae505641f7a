//! What is written is there again, and what a feed shows.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::*;
use crate::feeds::{STORY_BYTES_MAX, SUBJECT_BYTES_MAX};

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

#[test]
fn participants_and_friendships_are_there_again_and_numbers_go_on() {
    let dir = tempfile::tempdir().unwrap();
    let mut befriended = BTreeMap::new();
    for life in 0..3u64 {
        let store = EmbeddedFeed::open(dir.path(), Durability::Synced).unwrap();
        for number in 1..=10 {
            let created = wait(store.create("Joe".into())).unwrap();
            assert_eq!(created.id, life * 10 + number);
        }
        for (from, to) in [(1, 2), (2, 1), (life * 10 + 3, 1), (1, life * 10 + 4)] {
            let Befriended::Friends(id) = wait(store.befriend(from, to)).unwrap() else {
                panic!("no friends")
            };
            assert_eq!(*befriended.entry(pair(from, to)).or_insert(id), id, "{from} {to}");
        }
        assert_eq!(befriended.values().collect::<BTreeSet<_>>().len(), befriended.len());
        let friends = wait(store.friends(1)).unwrap();
        assert!(friends.is_sorted() && friends.len() == befriended.len(), "{friends:?}");
        assert_eq!(
            wait(store.friends(2)).unwrap(),
            [Friend { friendship: befriended[&(1, 2)], participant: 1 }]
        );
        assert_eq!(wait(store.counts()).unwrap(), [life * 10 + 10, befriended.len() as u64]);
        let named: Vec<_> = wait(store.named("Joe")).unwrap().iter().map(|joe| joe.id).collect();
        assert_eq!(named, (1..=life * 10 + 10).collect::<Vec<_>>());
    }
}

#[test]
fn who_is_not_there_has_no_friends() {
    let store = EmbeddedFeed::in_memory();
    wait(store.create("Joe".into())).unwrap();
    assert_eq!(wait(store.befriend(1, 2)).unwrap(), Befriended::NoSuchParticipant(2));
    assert_eq!(wait(store.befriend(9, 1)).unwrap(), Befriended::NoSuchParticipant(9));
    assert!(wait(store.find(2)).unwrap().is_none() && wait(store.friends(2)).unwrap().is_empty());
    let long = wait(store.create("x".repeat(51).into())).unwrap_err().to_string();
    assert!(long.contains("more than 50"), "{long}");
}

#[test]
fn two_who_befriend_each_other_at_once_have_one_friendship() {
    let dir = tempfile::tempdir().unwrap();
    let store = EmbeddedFeed::open(dir.path(), Durability::Synced).unwrap();
    (0..2).for_each(|_| drop(wait(store.create("Joe".into())).unwrap()));
    let (one, other) = (store.befriend(1, 2), store.befriend(2, 1));
    assert_eq!(wait(one).unwrap(), wait(other).unwrap());
    assert_eq!(wait(store.friends(1)).unwrap().len(), 1);
}

#[test]
fn what_is_older_than_ninety_days_is_not_shown() {
    let store = EmbeddedFeed::in_memory();
    for at_us in [10, 20] {
        wait(Feeds::post(&*store, Delivery { post: a_post(at_us, 1), readers: [2].into() })).unwrap();
    }
    let seen = |now_us| wait(store.inbound(query(2), now_us)).unwrap().posts.len();
    assert_eq!([20, INBOUND_US + 10, INBOUND_US + 11, INBOUND_US + 21].map(seen), [2, 2, 1, 0]);
    assert_eq!(wait(store.outbound(query(1))).unwrap().posts.len(), 2, "one's own posts stay");
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

#[test]
fn what_is_not_delivered_is_known_after_a_restart() {
    let dir = tempfile::tempdir().unwrap();
    let store = EmbeddedFeed::open(dir.path(), Durability::Synced).unwrap();
    for at_us in 1..=3 {
        wait(store.post_undelivered(a_post(at_us, 1))).unwrap();
    }
    assert!(inbound(&store, 2, 10).is_empty());
    wait(store.deliver(vec![Delivery { post: a_post(2, 1), readers: [2, 3].into() }])).unwrap();
    drop(store);
    let store = EmbeddedFeed::open(dir.path(), Durability::Synced).unwrap();
    assert_eq!(wait(store.undelivered(None, 10)).unwrap().posts, [a_post(1, 1), a_post(3, 1)]);
    let first = wait(store.undelivered(None, 1)).unwrap();
    assert_eq!((first.posts, first.next), (vec![a_post(1, 1)], Some(PostId { at_us: 1, server: 3 })));
    assert_eq!(wait(store.undelivered(first.next, 10)).unwrap().posts, [a_post(3, 1)]);
    assert_eq!((inbound(&store, 2, 10), inbound(&store, 3, 10)), (vec![a_post(2, 1)], vec![a_post(2, 1)]));
    assert_eq!(wait(store.newest()).unwrap().map(|id| id.at_us), Some(3));
    let mut stories = Vec::new();
    store.each_story(&mut |post| stories.push(post.id.at_us)).unwrap();
    assert_eq!(stories, [1, 2, 3]);
}

#[test]
fn what_is_too_long_is_refused_and_the_longest_is_kept() {
    let store = EmbeddedFeed::in_memory();
    let post = |subject: usize, story: usize| {
        let post = Post {
            subject: "x".repeat(subject).into(),
            story: "y".repeat(story).into(),
            ..(*a_post(1, 1)).clone()
        };
        wait(Feeds::post(&*store, Delivery { post: post.into(), readers: [2].into() }))
    };
    assert!(matches!(post(SUBJECT_BYTES_MAX + 1, 1), Err(StoreError::Invalid { .. })));
    assert!(matches!(post(1, STORY_BYTES_MAX + 1), Err(StoreError::Invalid { .. })));
    post(SUBJECT_BYTES_MAX, STORY_BYTES_MAX).unwrap();
    assert_eq!(inbound(&store, 2, 1)[0].story.len(), STORY_BYTES_MAX);
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
