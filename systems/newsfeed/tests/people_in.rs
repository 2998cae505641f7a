//! The news feed on real servers: needs Debian's packages `postgresql`, `mariadb-server` and `redis-server`. What holds of
//! each store by itself is tested where they are.
#![cfg(all(feature = "mariadb", feature = "postgres", feature = "redis"))]

#[path = "../../store/tests/common/mariadb.rs"]
#[allow(dead_code)]
mod mariadb;
#[path = "../../store/tests/common/servers.rs"]
#[allow(dead_code)]
mod servers;

use crate::client::{self, eventually};
use crate::feed::{Running, befriend, participant, post, send};
use mariadb::MariadbServer;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;
use servers::{PostgresServer, RedisServer, Server};

#[test]
fn people_in_postgres_behind_a_cache_in_redis() {
    let mut postgres = PostgresServer::start(&[]);
    let mut redis = RedisServer::start(&[]);
    let url = postgres.database();
    let (people, cache) = (url.replace("tester@", "tester:hunter2@"), redis.database());
    let settings = [
        ("people", "postgres"),
        ("postgres", &*people),
        ("cache", "redis"),
        ("redis", &*cache),
        ("cache_timeout_ms", "2000"),
        ("store_timeout_s", "60"),
    ];
    let dir = tempfile::tempdir().unwrap();
    let running = Running::start_in(Some(dir.path()), &settings);
    let mut client = running.client();
    let ids: Vec<u64> = (0..3).map(|_| participant(&mut client, "O'Brien")).collect();
    let friends = |client: &mut client::Client, id: u64| {
        let reply = client.get(&format!("/participant/{id}/friends"));
        assert_eq!(reply.status, 200, "{}", reply.text());
        reply.json().as_array().unwrap().len()
    };
    befriend(&mut client, ids[0], ids[1]);
    let metric = |client: &mut client::Client, name: &str| {
        let text = client.get("/metrics").text().to_owned();
        let line = text.lines().find_map(|line| line.strip_prefix(&format!("{name} ")).map(str::to_owned));
        line.unwrap_or_else(|| panic!("{name}")).parse::<u64>().unwrap()
    };
    eventually("friends are cached", || {
        assert_eq!(friends(&mut client, ids[0]), 1);
        (metric(&mut client, "newsfeed_cache_hits_total") > 2).then_some(())
    });
    // what others read of it: the published routine, key and value
    postgres.sql(&url, "DO $$ BEGIN ASSERT (SELECT moniker FROM FetchParticipant(1)) = 'O''Brien'; END $$");

    // both lists are cached, and both change
    assert_eq!(friends(&mut client, ids[1]), 1);
    befriend(&mut client, ids[1], ids[0]);
    befriend(&mut client, ids[2], ids[0]);
    assert_eq!([ids[0], ids[1], ids[2]].map(|id| friends(&mut client, id)), [2, 1, 1]);
    post(&mut client, ids[0], "seen");
    for reader in &ids[1..] {
        let inbound = client.get(&format!("/participant/{reader}/inbound")).json();
        assert_eq!(inbound.as_array().unwrap().len(), 1);
    }
    assert_eq!(send(&mut client, "/participant/1/friends", &json!({"to": 99})).status, 404);
    assert_eq!(client.get("/participant/99").status, 404);

    // a cache that stands still, and then is gone, is in nobody's way, and shows nothing that is stale
    let process = Pid::from_raw(redis.id() as i32).unwrap();
    kill_process(process, Signal::STOP).unwrap();
    let late = participant(&mut client, "late");
    befriend(&mut client, ids[1], late);
    assert_eq!(friends(&mut client, ids[1]), 2);
    kill_process(process, Signal::CONT).unwrap();
    assert_eq!(friends(&mut client, ids[1]), 2);
    redis.kill();
    befriend(&mut client, ids[2], late);
    assert_eq!([ids[1], ids[2], late].map(|id| friends(&mut client, id)), [2, 2, 2]);
    redis.start_again();
    let hits = metric(&mut client, "newsfeed_cache_hits_total");
    eventually("it is used again", || {
        assert_eq!([ids[1], ids[2], late].map(|id| friends(&mut client, id)), [2, 2, 2]);
        (metric(&mut client, "newsfeed_cache_hits_total") > hits).then_some(())
    });

    // without the database it is another matter
    postgres.kill();
    eventually("no participant is made", || {
        (send(&mut client, "/participant", &json!({"name": "x"})).status == 503).then_some(())
    });
    assert_eq!(client.get("/health").status, 200);
    postgres.start_again();
    eventually("participants again", || {
        (send(&mut client, "/participant", &json!({"name": "x"})).status == 200).then_some(())
    });
    let text = client.get("/metrics").text().to_owned();
    for line in [
        "newsfeed_data_info{people=\"postgres\",feeds=\"embedded\",search=\"embedded\",cache=\"redis\"} 1",
        "newsfeed_postgres_connections 16",
        "newsfeed_cache_connections 2",
    ] {
        assert!(text.lines().any(|known| known == line), "{line}\n{text}");
    }
    assert!(!text.contains("hunter2"));
    drop(running);

    let again = Running::start_in(Some(dir.path()), &settings);
    let mut client = again.client();
    assert_eq!([ids[0], ids[1], ids[2], late].map(|id| friends(&mut client, id)), [2, 2, 2, 2]);
    assert_eq!(client.get("/participant/2/inbound").json().as_array().unwrap().len(), 1);
}

/// The same visits, wherever people are and whatever caches them.
#[test]
fn people_anywhere_behind_any_cache() {
    let postgres = PostgresServer::start(&["fsync=off"]);
    let mariadb = MariadbServer::start(&["--innodb-flush-log-at-trx-commit=0"]);
    let redis = RedisServer::start(&[]);
    for people in ["embedded", "postgres", "mariadb"] {
        for cache in ["off", "embedded", "redis"] {
            let urls = [postgres.database(), mariadb.database(), redis.database()];
            let settings = [
                ("people", people),
                ("postgres", &*urls[0]),
                ("mariadb", &*urls[1]),
                ("cache", cache),
                ("redis", &*urls[2]),
                ("store_timeout_s", "60"),
            ];
            let running = Running::start(&settings);
            let mut client = running.client();
            let ids: Vec<u64> = ["a", "b", "c"].map(|name| participant(&mut client, name)).to_vec();
            for round in 0..3 {
                // read, so that it is cached, and changed
                for id in &ids {
                    let friends = client.get(&format!("/participant/{id}/friends")).json();
                    let mut others: Vec<u64> = Vec::new();
                    for friend in friends.as_array().unwrap() {
                        let to = friend["to"].as_str().unwrap().rsplit('/').next().unwrap();
                        others.push(to.parse().unwrap());
                    }
                    let expected = match (round, ids.iter().position(|one| one == id).unwrap()) {
                        (1, 0) => vec![ids[1]],
                        (1, 1) => vec![ids[0]],
                        (2, 0) => vec![ids[1], ids[2]],
                        (2, _) => vec![ids[0]],
                        _ => vec![],
                    };
                    assert_eq!(others, expected, "{people} {cache} {round}");
                }
                if let Some(other) = ids.get(round + 1) {
                    befriend(&mut client, ids[0], *other);
                }
            }
            post(&mut client, ids[0], "seen");
            for reader in &ids[1..] {
                let inbound = client.get(&format!("/participant/{reader}/inbound")).json();
                assert_eq!(inbound.as_array().unwrap().len(), 1, "{people} {cache}");
            }
            assert_eq!(client.get("/participant?name=b").json()[0]["id"], ids[1], "{people} {cache}");
            assert_eq!(send(&mut client, "/participant/1/friends", &json!({"to": 99})).status, 404);
            assert_eq!(client.get("/participant/99").status, 404);
        }
    }
}
