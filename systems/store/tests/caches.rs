//! Every cache: that of Redis needs Debian's package `redis-server`.

use std::time::Duration;

use crate::common::caches;
use tidemark_store::cache::Memory;

#[test]
fn memory() {
    let cache = Memory::new(1 << 20, Duration::from_secs(300));
    caches::what_is_put_is_there(&*cache);
    caches::what_was_read_before_a_change_is_never_shown(&*cache);
    caches::readers_never_go_back(&*cache);
    caches::values_go_after_their_time(&*Memory::new(1 << 20, Duration::from_millis(50)));
}

#[cfg(feature = "redis")]
mod redis {
    use std::sync::Arc;
    use std::time::Instant;

    use rustix::process::{Pid, Signal, kill_process};
    use tidemark_store::cache::{Cache, CacheKey, Cached};
    use tidemark_store::redis::{Options, RedisCache};

    use super::*;
    use crate::common::servers::{RedisServer, Server, eventually};
    use crate::common::wait;

    const TTL: Duration = Duration::from_secs(300);

    fn options(url: &str, timeout: Duration) -> Options {
        Options {
            url: url.to_owned(),
            timeout,
            start_timeout: Duration::from_secs(120),
            ..Options::default()
        }
    }

    fn open(url: &str) -> Arc<RedisCache> {
        RedisCache::open(options(url, Duration::from_secs(60)), TTL).unwrap()
    }

    fn metric(cache: &RedisCache, name: &str) -> u64 {
        cache.metrics().own.iter().find(|own| own.name == name).expect("it is counted").value
    }

    fn put(cache: &RedisCache, key: CacheKey, value: &'static str) {
        let lease = caches::lease(cache, key);
        caches::put(cache, key, lease, value);
        assert_eq!(caches::get(cache, key), caches::hit(value));
    }

    #[test]
    fn it_is_a_cache_with_the_published_keys() {
        let server = RedisServer::start(&[]);
        let url = server.database();
        let cache = open(&url);
        caches::what_is_put_is_there(&*cache);
        caches::what_was_read_before_a_change_is_never_shown(&*cache);
        caches::readers_never_go_back(&*cache);
        let mut other = ::redis::Client::open(url.as_str()).unwrap().get_connection().unwrap();
        let value: String = ::redis::cmd("GET").arg("Participant::7").query(&mut other).unwrap();
        assert_eq!(value, "{}");
        let ttl: u64 = ::redis::cmd("TTL").arg("Participant::7").query(&mut other).unwrap();
        assert!((1..=TTL.as_secs()).contains(&ttl), "{ttl}");

        let url = server.database();
        let brief =
            RedisCache::open(options(&url, Duration::from_secs(60)), Duration::from_millis(50)).unwrap();
        caches::values_go_after_their_time(&*brief);
    }

    /// What an earlier process was to have forgotten, and could not, is not shown by a later one. Keys of others stay.
    #[test]
    fn what_is_there_at_the_start_is_not_shown() {
        let server = RedisServer::start(&[]);
        let url = server.database();
        let mut other = ::redis::Client::open(url.as_str()).unwrap().get_connection().unwrap();
        for id in 0..3_000 {
            ::redis::cmd("SET").arg(format!("Friends::{id}")).arg("[stale]").exec(&mut other).unwrap();
        }
        ::redis::cmd("SET").arg("theirs").arg(1).exec(&mut other).unwrap();
        let cache = open(&url);
        for id in 0..3_000 {
            let got = caches::get(&*cache, CacheKey::Friends(id));
            assert!(!matches!(got, Cached::Hit(_)), "{id}: {got:?}");
        }
        eventually("all is forgotten", || metric(&cache, "forgetting_all") == 0);
        let theirs: u64 = ::redis::cmd("GET").arg("theirs").query(&mut other).unwrap();
        assert_eq!(theirs, 1);
    }

    /// Killed with what it had on disk: after its return it has the old values, and nobody sees them.
    #[test]
    fn a_server_that_was_killed_is_a_miss_and_comes_back_without_what_is_stale() {
        let mut server = RedisServer::start(&["--appendonly", "yes", "--appendfsync", "always"]);
        let cache = open(&server.database());
        put(&cache, caches::KEY, "[old]");
        put(&cache, CacheKey::Friends(8), "[as it was]");
        server.kill();
        assert_eq!(caches::get(&*cache, CacheKey::Friends(8)), Cached::Skip);
        wait(cache.invalidate(&[caches::KEY])).unwrap();
        for _ in 0..20 {
            assert_eq!(caches::get(&*cache, caches::KEY), Cached::Skip);
        }
        eventually("the breaker is open", || {
            caches::get(&*cache, caches::KEY);
            metric(&cache, "breaker_open") == 1
        });
        server.start_again();
        let begun = Instant::now();
        let lease = loop {
            match caches::get(&*cache, caches::KEY) {
                Cached::Miss(lease) => break lease,
                got => assert_eq!(got, Cached::Skip, "a stale value"),
            }
            assert!(begun.elapsed() < Duration::from_secs(120), "it is not used again");
            std::thread::sleep(Duration::from_millis(5));
        };
        caches::put(&*cache, caches::KEY, lease, "[new]");
        assert_eq!(caches::get(&*cache, caches::KEY), caches::hit("[new]"));
        assert_eq!((metric(&cache, "forgetting"), metric(&cache, "breaker_open")), (0, 0));
    }

    /// Frozen with a value that changes meanwhile, and with a put on its way: neither is seen when it goes on.
    #[test]
    fn a_server_that_stands_still_is_a_miss_and_goes_on_without_what_is_stale() {
        let server = RedisServer::start(&[]);
        let url = server.database();
        // long enough for a busy machine, so that only what is frozen is late
        let cache = RedisCache::open(options(&url, Duration::from_secs(2)), TTL).unwrap();
        let late = CacheKey::Friends(9);
        put(&cache, caches::KEY, "[old]");
        let lease = caches::lease(&*cache, late);
        let id = Pid::from_raw(server.id() as i32).unwrap();
        kill_process(id, Signal::STOP).unwrap();
        caches::put(&*cache, late, lease, "[old]");
        wait(cache.invalidate(&[late, caches::KEY])).unwrap();
        assert!(metric(&cache, "forgetting") > 0);
        for key in [late, caches::KEY] {
            assert_eq!(caches::get(&*cache, key), Cached::Skip);
        }
        kill_process(id, Signal::CONT).unwrap();
        eventually("it is used again", || {
            [late, caches::KEY].iter().all(|key| {
                let got = caches::get(&*cache, *key);
                assert!(!matches!(got, Cached::Hit(_)), "{key} is stale: {got:?}");
                matches!(got, Cached::Miss(_)) || metric(&cache, "forgetting") == 0
            })
        });
        let mut other = ::redis::Client::open(url.as_str()).unwrap().get_connection().unwrap();
        for key in [late, caches::KEY] {
            let there: bool = ::redis::cmd("EXISTS").arg(key.to_string()).query(&mut other).unwrap();
            assert!(!there, "{key}");
        }
    }

    #[test]
    fn a_server_that_is_not_there_at_the_start_is_used_later_and_one_that_refuses_is_told() {
        let mut server = RedisServer::start(&[]);
        let url = server.database();
        server.kill();
        let short =
            Options { start_timeout: Duration::from_millis(100), ..options(&url, Duration::from_secs(60)) };
        let cache = RedisCache::open(short.clone(), TTL).unwrap();
        assert_eq!(caches::get(&*cache, caches::KEY), Cached::Skip);
        server.start_again();
        put(&cache, caches::KEY, "[1]");
        let secret = url.replace("redis://", "redis://:hunter2@");
        let error =
            RedisCache::open(Options { url: secret, ..short }, TTL).err().expect("it has no password");
        let error = error.to_string();
        assert!(error.contains("cannot be used") && !error.contains("hunter2"), "{error}");
    }
}
