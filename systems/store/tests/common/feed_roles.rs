//! What holds of every store of feeds, and of everything that finds stories.

use std::collections::BTreeSet;
use std::future::Future;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use tidemark_store::StoreError;
use tidemark_store::feeds::{
    Delivery, FeedPage, FeedQuery, Feeds, INBOUND_US, PAGE_BYTES_MAX, Post, PostId, STORY_BYTES_MAX,
    SUBJECT_BYTES_MAX,
};
use tidemark_store::search::Search;

/// How long what should come soon may take on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

fn wait<T>(answer: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(answer)
}

fn now_us() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_micros() as u64
}

fn post(at_us: u64, server: u64, poster: u64, story: &str) -> Arc<Post> {
    let id = PostId { at_us, server };
    Arc::new(Post { id, poster, subject: format!("subject of {at_us}").into(), story: story.into() })
}

fn deliver(store: &dyn Feeds, post: &Arc<Post>, readers: &[u64]) -> Result<(), StoreError> {
    wait(store.post(Delivery { post: post.clone(), readers: readers.into() }))
}

/// All of a feed in pages of at most `limit`.
fn whole(limit: usize, page: impl Fn(FeedQuery) -> FeedPage, participant: u64) -> Vec<Arc<Post>> {
    let (mut posts, mut before) = (Vec::new(), None);
    loop {
        let page = page(FeedQuery { participant, before, limit });
        assert!(page.posts.len() <= limit);
        posts.extend(page.posts);
        before = page.next;
        if before.is_none() {
            return posts;
        }
    }
}

pub fn outbound(store: &dyn Feeds, participant: u64, limit: usize) -> Vec<Arc<Post>> {
    whole(limit, |query| wait(store.outbound(query)).unwrap(), participant)
}

pub fn inbound(store: &dyn Feeds, participant: u64, limit: usize) -> Vec<Arc<Post>> {
    whole(limit, |query| wait(store.inbound(query, now_us())).unwrap(), participant)
}

/// All checks; `open` opens one store again and again, of which at most one is open at a time.
pub fn feeds(open: &dyn Fn() -> Arc<dyn Feeds>) {
    let store = open();
    feeds_have_the_newest_first_whole_and_once(&*store);
    a_page_has_a_bound_of_bytes(&*store);
    old_posts_are_not_shown_in_inbound_feeds(&*store);
    what_is_too_long_is_refused(&*store);
    many_readers_all_get_a_post(&*store);
    drop(store);
    what_is_not_delivered_is_known_after_a_restart(open);
    each_story_is_shown_once(&*open());
}

fn feeds_have_the_newest_first_whole_and_once(store: &dyn Feeds) {
    let begin = now_us() - 1_000_000;
    // two servers that post at the same times, one of them with a number that has the first bits
    let mut posts = Vec::new();
    for at_us in begin..begin + 20 {
        for server in [3, u64::MAX >> 1, u64::MAX] {
            posts.push(post(at_us, server, 11 + at_us % 2, &format!("'story' \"of\" {server} at {at_us} ü")));
        }
    }
    for post in &posts {
        deliver(store, post, &[13, 14]).unwrap();
    }
    // the same again
    deliver(store, &posts[7], &[13, 14]).unwrap();
    posts.sort_by_key(|post| std::cmp::Reverse(post.id));
    for limit in [1, 7, posts.len(), 1000] {
        assert_eq!(inbound(store, 13, limit), posts, "in pages of {limit}");
        assert_eq!(inbound(store, 14, limit), posts, "in pages of {limit}");
        for poster in [11, 12] {
            let own: Vec<_> = posts.iter().filter(|post| post.poster == poster).cloned().collect();
            assert_eq!(outbound(store, poster, limit), own, "in pages of {limit}");
        }
    }
    assert!(inbound(store, 11, 10).is_empty() && outbound(store, 13, 10).is_empty());
    // places between posts, before the first and behind the last
    let from = |at_us, server| {
        let before = Some(PostId { at_us, server });
        wait(store.outbound(FeedQuery { participant: 11, before, limit: 1 })).unwrap().posts
    };
    assert_eq!(from(0, 0), []);
    assert_eq!(from(u64::MAX, u64::MAX)[0].id, outbound(store, 11, 1)[0].id);
    let third = outbound(store, 11, 10)[2].id;
    assert_eq!(from(third.at_us, third.server)[0].id, outbound(store, 11, 10)[3].id);
    assert_eq!(from(third.at_us, third.server + 1)[0].id, third);
}

fn a_page_has_a_bound_of_bytes(store: &dyn Feeds) {
    let begin = now_us() - 1_000_000;
    let count = PAGE_BYTES_MAX / STORY_BYTES_MAX + 10;
    let story = "x".repeat(STORY_BYTES_MAX);
    for at_us in begin..begin + count as u64 {
        deliver(store, &post(at_us, 1, 21, &story), &[22]).unwrap();
    }
    let page = wait(store.outbound(FeedQuery { participant: 21, before: None, limit: 1000 })).unwrap();
    let bytes: usize = page.posts.iter().map(|post| post.bytes()).sum();
    assert!(
        (PAGE_BYTES_MAX..PAGE_BYTES_MAX + STORY_BYTES_MAX + SUBJECT_BYTES_MAX).contains(&bytes),
        "{bytes}"
    );
    assert!(page.next.is_some());
    assert_eq!(inbound(store, 22, 1000).len(), count);
}

fn old_posts_are_not_shown_in_inbound_feeds(store: &dyn Feeds) {
    let now = now_us();
    deliver(store, &post(now - 10, 1, 31, "old"), &[32]).unwrap();
    deliver(store, &post(now, 1, 31, "new"), &[32]).unwrap();
    let query = FeedQuery { participant: 32, before: None, limit: 10 };
    let seen = |now_us| wait(store.inbound(query, now_us)).unwrap().posts.len();
    let times = [now, now + INBOUND_US - 10, now + INBOUND_US - 9, now + INBOUND_US + 1];
    assert_eq!(times.map(seen), [2, 2, 1, 0]);
    assert_eq!(outbound(store, 31, 10).len(), 2, "one's own posts stay");
}

fn what_is_too_long_is_refused(store: &dyn Feeds) {
    let of = |subject: usize, story: usize| {
        let post = post(now_us(), 1, 41, &"y".repeat(story));
        let post = Post { subject: "x".repeat(subject).into(), ..(*post).clone() };
        deliver(store, &post.into(), &[42])
    };
    assert!(matches!(of(SUBJECT_BYTES_MAX + 1, 1), Err(StoreError::Invalid { .. })));
    assert!(matches!(of(1, STORY_BYTES_MAX + 1), Err(StoreError::Invalid { .. })));
    assert!(outbound(store, 41, 10).is_empty() && inbound(store, 42, 10).is_empty());
    of(SUBJECT_BYTES_MAX, STORY_BYTES_MAX).unwrap();
    assert_eq!(inbound(store, 42, 10)[0].bytes(), SUBJECT_BYTES_MAX + STORY_BYTES_MAX);
    // none at all
    of(0, 0).unwrap();
    assert_eq!(inbound(store, 42, 10)[0].bytes(), 0);
}

fn many_readers_all_get_a_post(store: &dyn Feeds) {
    let readers: Vec<u64> = (1_000..2_000).collect();
    let one = post(now_us(), 1, 51, "for many");
    deliver(store, &one, &readers).unwrap();
    for reader in readers {
        assert_eq!(inbound(store, reader, 10), std::slice::from_ref(&one), "{reader}");
    }
}

fn what_is_not_delivered_is_known_after_a_restart(open: &dyn Fn() -> Arc<dyn Feeds>) {
    let begin = now_us() - 1_000_000;
    let posts: Vec<_> = (begin..begin + 40).map(|at_us| post(at_us, 1, 61, "later")).collect();
    let store = open();
    for post in &posts {
        wait(store.post_undelivered(post.clone())).unwrap();
    }
    assert!(inbound(&*store, 62, 10).is_empty());
    assert_eq!(outbound(&*store, 61, 100).len(), 40);
    let delivery = |post: &Arc<Post>| Delivery { post: post.clone(), readers: [62, 63].into() };
    wait(store.deliver(posts[10..].iter().map(delivery).collect())).unwrap();
    drop(store);
    let store = open();
    let noted = |store: &dyn Feeds, after, limit| wait(store.undelivered(after, limit)).unwrap();
    assert_eq!(noted(&*store, None, 100).posts, posts[..10]);
    // page by page
    let (mut pages, mut after) = (Vec::new(), None);
    loop {
        let page = noted(&*store, after, 4);
        assert!(page.missing == 0 && page.posts.len() <= 4);
        pages.extend(page.posts);
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    assert_eq!(pages, posts[..10]);
    // what was delivered before is delivered once more
    wait(store.deliver(posts.iter().map(delivery).collect())).unwrap();
    assert_eq!(noted(&*store, None, 100).posts, []);
    let newest: Vec<_> = posts.iter().rev().cloned().collect();
    assert_eq!(inbound(&*store, 62, 100), newest);
    assert_eq!(inbound(&*store, 63, 100), newest);
    // noted late, after it was delivered: it is delivered again
    wait(store.post_undelivered(posts[0].clone())).unwrap();
    for post in noted(&*store, None, 100).posts {
        wait(store.deliver(vec![delivery(&post)])).unwrap();
    }
    assert_eq!(noted(&*store, None, 100).posts, []);
}

/// Of all that the checks before this one have posted.
fn each_story_is_shown_once(store: &dyn Feeds) {
    let mut shown = Vec::new();
    store.each_story(&mut |post| shown.push((post.poster, post.id))).unwrap();
    let posters: BTreeSet<u64> = shown.iter().map(|(poster, _)| *poster).collect();
    assert_eq!(posters.into_iter().collect::<Vec<_>>(), [11, 12, 21, 31, 41, 51, 61]);
    for poster in [11, 12, 21, 31, 41, 51, 61] {
        let own = outbound(store, poster, 1000);
        let of_poster = shown.iter().filter(|(of, _)| *of == poster);
        let ids: BTreeSet<PostId> = of_poster.clone().map(|(_, id)| *id).collect();
        assert_eq!((ids.len(), of_poster.count()), (own.len(), own.len()), "{poster}");
        assert!(own.iter().all(|post| ids.contains(&post.id)));
    }
}

/// Whoever is found, as soon as it is what is expected.
fn eventually_found(index: &dyn Search, keywords: &str, limit: usize, expected: &[u64]) {
    let begun = Instant::now();
    loop {
        let found = wait(index.posters(keywords, limit)).unwrap();
        if found == expected {
            return;
        }
        assert!(begun.elapsed() < PATIENCE, "{keywords:?}: {found:?}, not {expected:?}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// All checks of an index that is empty.
pub fn search(index: &dyn Search) {
    assert!(wait(index.posters("rain", 10)).unwrap().is_empty());
    let stories = [
        (71, "Rain today, über alles."),
        (72, "no RAIN"),
        (71, "snow and snow, 12345"),
        (73, "sunshine"),
        (72, "{\"rain\": \"\\\"}\n* AND NOT ü"),
    ];
    let begin = now_us();
    let posts: Vec<_> = (begin..).zip(stories).map(|(at, (who, story))| post(at, 1, who, story)).collect();
    for post in &posts {
        wait(index.add(post)).unwrap();
    }
    eventually_found(index, "rain", 10, &[72, 71]);
    eventually_found(index, "RAIN snow", 10, &[72, 71]);
    eventually_found(index, "sunshine, snow!", 10, &[73, 71]);
    eventually_found(index, "rain", 1, &[72]);
    eventually_found(index, "ÜBER", 10, &[71]);
    eventually_found(index, "12345", 10, &[71]);
    // no word is anything but a word
    for none in ["1234", "hail", "sun", "*", "-", "", "s*"] {
        assert!(wait(index.posters(none, 10)).unwrap().is_empty(), "{none:?}");
    }
    // the same again changes nothing
    wait(index.add(&posts[0])).unwrap();
    wait(index.add(&post(begin + 9, 1, 74, "hail"))).unwrap();
    eventually_found(index, "hail", 10, &[74]);
    let found: BTreeSet<u64> = wait(index.posters("rain hail", 10)).unwrap().into_iter().collect();
    assert_eq!(found, BTreeSet::from([71, 72, 74]));
    // more words than are looked for
    let words = "word ".repeat(5_000);
    assert!(wait(index.posters(&words, 10)).unwrap().is_empty());
}
