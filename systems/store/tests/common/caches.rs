//! What holds of every cache.

use std::time::{Duration, Instant};

use tidemark_store::cache::{Cache, CacheKey, Cached, Lease};

use super::wait;

pub const KEY: CacheKey = CacheKey::Friends(7);

pub fn get(cache: &dyn Cache, key: CacheKey) -> Cached {
    let mut got = wait(cache.get(&[key])).unwrap();
    assert_eq!(got.len(), 1);
    got.remove(0)
}

/// A lease, once nobody else has it and the cache works.
pub fn lease(cache: &dyn Cache, key: CacheKey) -> Lease {
    let begun = Instant::now();
    loop {
        match get(cache, key) {
            Cached::Miss(lease) => return lease,
            other => assert!(begun.elapsed() < Duration::from_secs(60), "{key}: {other:?}"),
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

pub fn put(cache: &dyn Cache, key: CacheKey, lease: Lease, value: &'static str) {
    wait(cache.put(key, lease, value.into())).unwrap();
}

pub fn hit(value: &'static str) -> Cached {
    Cached::Hit(value.into())
}

pub fn what_is_put_is_there(cache: &dyn Cache) {
    let first = lease(cache, KEY);
    assert_eq!(get(cache, KEY), Cached::Skip, "somebody has the lease");
    put(cache, KEY, first, "[1]");
    assert_eq!(get(cache, KEY), hit("[1]"));
    put(cache, KEY, first, "[2]");
    assert_eq!(get(cache, KEY), hit("[1]"), "a lease is for one value");

    wait(cache.put_new(CacheKey::Participant(7), "{}".into())).unwrap();
    let keys = [CacheKey::Participant(7), CacheKey::Friends(8), KEY];
    let got = wait(cache.get(&keys)).unwrap();
    assert_eq!((&got[0], &got[2]), (&hit("{}"), &hit("[1]")));
    let Cached::Miss(other) = got[1] else { panic!("{got:?}") };
    put(cache, CacheKey::Friends(8), other, "[8]");
    assert_eq!(wait(cache.get(&keys)).unwrap(), [hit("{}"), hit("[8]"), hit("[1]")]);
    assert_eq!(wait(cache.get(&[])).unwrap(), []);

    wait(cache.invalidate(&keys[1..])).unwrap();
    let got = wait(cache.get(&keys)).unwrap();
    assert_eq!(got[0], hit("{}"));
    assert!(matches!(got[1..], [Cached::Miss(one), Cached::Miss(other)] if one != other), "{got:?}");
}

/// A reader reads the old value, a writer changes it and invalidates, and the reader puts what it has read.
pub fn what_was_read_before_a_change_is_never_shown(cache: &dyn Cache) {
    let key = CacheKey::Friends(100);
    let old = lease(cache, key);
    wait(cache.invalidate(&[key])).unwrap();
    put(cache, key, old, "[old]");
    let new = lease(cache, key);
    assert_ne!(old, new);
    put(cache, key, old, "[old]");
    assert_eq!(get(cache, key), Cached::Skip, "the old lease is none any more");
    put(cache, key, new, "[new]");
    assert_eq!(get(cache, key), hit("[new]"));
    wait(cache.invalidate(&[key])).unwrap();
    put(cache, key, new, "[new]");
    assert!(matches!(get(cache, key), Cached::Miss(_)));
}

/// Readers and a writer of one value that only grows: nobody reads one from before the last change that was told.
pub fn readers_never_go_back(cache: &dyn Cache) {
    use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
    let key = CacheKey::Friends(200);
    let (stored, told) = (AtomicU64::new(0), AtomicU64::new(0));
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                loop {
                    let at_least = told.load(SeqCst);
                    let seen = match get(cache, key) {
                        Cached::Hit(value) => String::from_utf8(value.to_vec()).unwrap().parse().unwrap(),
                        Cached::Skip => stored.load(SeqCst),
                        Cached::Miss(lease) => {
                            let read = stored.load(SeqCst);
                            std::thread::yield_now();
                            wait(cache.put(key, lease, read.to_string().into())).unwrap();
                            read
                        }
                    };
                    assert!(seen >= at_least, "{seen} was shown, after {at_least} was told");
                    if at_least == 300 {
                        break;
                    }
                }
            });
        }
        scope.spawn(|| {
            for value in 1..=300 {
                stored.store(value, SeqCst);
                wait(cache.invalidate(&[key])).unwrap();
                told.store(value, SeqCst);
            }
        });
    });
}

pub fn values_go_after_their_time(cache: &dyn Cache) {
    let key = CacheKey::Friends(300);
    let first = lease(cache, key);
    put(cache, key, first, "[]");
    // it may be gone before it was seen, on a busy machine
    assert_ne!(first, lease(cache, key));
}
