//! The news feed on stores of other people's making: Apache Cassandra, which the test starts (it needs Java 17 and, the
//! first time, Maven), and OpenSearch, where there is one:
//!
//! `TIDEMARK_TEST_OPENSEARCH=http://127.0.0.1:9200 cargo test -p tidemark --features cassandra,opensearch --test
//! newsfeed_stores -- --include-ignored`

mod common;
#[path = "../crates/store/tests/common/feed_roles.rs"]
#[allow(dead_code, reason = "shared by tests that each use a part of it")]
mod feed_roles;

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use common::{Answer, Client, PATIENCE, Served};
use serde_json::Value;
use tempfile::TempDir;
use tidemark_lab::StopRequest;
use tidemark_lab::started::held;
use tidemark_lab::stores::{Setup, Stores};
use tidemark_scenario::load_text;
use tidemark_store::cassandra::{CassandraFeeds, Options};

/// Posts that are acknowledged before Cassandra is killed, and once more after it is back.
const POSTS: usize = 100;
const POSTERS: usize = 4;
const FRIENDS: usize = 3;

/// A Cassandra that acknowledges what is on its disk.
struct Cassandra {
    stores: Stores,
    contact: String,
    _folder: TempDir,
}

impl Cassandra {
    fn start() -> Self {
        let folder = tempfile::tempdir().expect("a temporary directory");
        let store = "stores: {cassandra: {heap: 256MiB, durability: synced, ready within: 8m}}
sessions: {a: {steps: [{GET: /}]}}
load: {users: 1, hold: 1s}
";
        let plan = load_text("store.yaml", store, Path::new("."), &[]).expect("a plan");
        let (data_of, is_linked) = (&|_: &str| None, &|_: &str| false);
        let run_dir = folder.path().join("store");
        let setup = Setup { run_dir, cores: Vec::new(), keep_data: false, data_of, is_linked };
        let stores = Stores::start(&plan.stores, &setup, &|| StopRequest::None, &mut |_| {})
            .expect("Cassandra starts");
        let contact = stores.settings().remove(0).1;
        Cassandra { stores, contact, _folder: folder }
    }
}

fn post(client: &mut Client, path: &str, body: &Value) -> Answer {
    client.request("POST", path, "Content-Type: application/json\r\n", &body.to_string())
}

fn made(client: &mut Client, path: &str, body: &Value) -> Value {
    let answer = post(client, path, body);
    assert_eq!(answer.status, 200, "{path} {body}: {}", answer.body);
    answer.json()
}

/// Participants, each with friends of its own: their ids, the poster first.
fn circles(authority: &str) -> Vec<Vec<u64>> {
    let mut client = Client::connect(authority);
    let circle = |_| {
        let name = serde_json::json!({"name": "Ann"});
        let participant = |_| made(&mut client, "/participant", &name)["id"].as_u64().expect("an id");
        let ids: Vec<u64> = (0..=FRIENDS).map(participant).collect();
        for friend in &ids[1..] {
            let to = serde_json::json!({"to": format!("/participant/{friend}")});
            made(&mut client, &format!("/participant/{}/friends", ids[0]), &to);
        }
        ids
    };
    (0..POSTERS).map(circle).collect()
}

/// The stories of a feed; each must be there once.
fn stories(authority: &str, participant: u64, feed: &str) -> BTreeSet<String> {
    let answer = Client::connect(authority).get(&format!("/participant/{participant}/{feed}"));
    assert_eq!(answer.status, 200, "{}", answer.body);
    let posts = answer.json();
    let posts = posts.as_array().expect("a list");
    let story = |post: &Value| post["story"].as_str().expect("a story").to_owned();
    let stories: BTreeSet<String> = posts.iter().map(story).collect();
    assert_eq!(stories.len(), posts.len(), "{feed} of {participant} has a post twice");
    stories
}

fn finds(authority: &str, keywords: &str, expected: u64) {
    let begun = Instant::now();
    loop {
        let answer = Client::connect(authority).get(&format!("/outbound?keywords={keywords}"));
        assert_eq!(answer.status, 200, "{}", answer.body);
        if answer.json() == serde_json::json!([format!("/participant/{expected}")]) {
            return;
        }
        assert!(begun.elapsed() < PATIENCE, "{keywords}: {}", answer.body);
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn settings<'a>(contact: &'a str, rest: &[&'a str]) -> Vec<&'a str> {
    let mut all = vec!["--durability", "synced", "--set", "feeds=cassandra", "--set", contact];
    rest.iter().for_each(|setting| all.extend(["--set", setting]));
    all
}

/// All in one, since a Cassandra takes its time to start.
#[test]
fn feeds_in_cassandra_are_feeds_and_nothing_is_lost_when_it_is_killed() {
    let cassandra = Cassandra::start();
    let contact = vec![cassandra.contact.clone()];
    let options = Options { contact, keyspace: "checks".into(), ..Options::default() };
    feed_roles::feeds(&|| CassandraFeeds::open(options.clone()).expect("feeds"));

    let contact = format!("contact={}", cassandra.contact);
    for fan_out in ["fan_out=sync", "fan_out=async"] {
        let data = tempfile::tempdir().expect("a temporary directory");
        let keyspace = format!("keyspace={}", fan_out.replace('=', "_"));
        let mut arguments = settings(&contact, &[fan_out, &keyspace, "feeds_timeout_s=60"]);
        arguments.extend(["--data", data.path().to_str().expect("UTF-8")]);
        posts_survive(&cassandra, &arguments);
    }
}

/// Ends the posts, also where the test fails.
struct Over<'a>(&'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

/// Posts while Cassandra is killed and started again; the service is killed and started again, too. Then everything that
/// was acknowledged is in all feeds, and is found.
fn posts_survive(cassandra: &Cassandra, arguments: &[&str]) {
    let mut served = Served::start("newsfeed", arguments);
    let circles = circles(&served.authority);
    let (count, is_over) = (AtomicUsize::new(0), AtomicBool::new(false));
    let acknowledged: Vec<Mutex<BTreeSet<String>>> = circles.iter().map(|_| Mutex::default()).collect();
    let until = |wanted: usize| {
        let begun = Instant::now();
        while count.load(Ordering::SeqCst) < wanted {
            assert!(begun.elapsed() < PATIENCE * 5, "no more posts are acknowledged");
            std::thread::sleep(Duration::from_millis(5));
        }
    };
    std::thread::scope(|scope| {
        let _over = Over(&is_over);
        for (poster, acknowledged) in acknowledged.iter().enumerate() {
            let (authority, id, count, is_over) = (&served.authority, circles[poster][0], &count, &is_over);
            scope.spawn(move || {
                let mut client = Client::connect(authority);
                for number in 0.. {
                    if is_over.load(Ordering::SeqCst) {
                        return;
                    }
                    let story = format!("story{poster}x{number} of all");
                    let body = serde_json::json!({"subject": "s", "story": story});
                    let answer = post(&mut client, &format!("/participant/{id}/outbound"), &body);
                    match answer.status {
                        200 => {
                            acknowledged.lock().expect("no panic").insert(story);
                            count.fetch_add(1, Ordering::SeqCst);
                        }
                        503 => std::thread::sleep(Duration::from_millis(10)),
                        // the time-out of a request that waits for Cassandra
                        0 => client = Client::connect(authority),
                        status => panic!("{status} {}", answer.body),
                    }
                }
            });
        }
        until(POSTS);
        let handle = cassandra.stores.started().remove(0);
        held(&handle).kill();
        held(&handle).restart(&|| true).expect("Cassandra starts again");
        until(count.load(Ordering::SeqCst) + POSTS);
    });
    served.kill_9();
    let served = Served::start("newsfeed", arguments);
    for (circle, acknowledged) in circles.iter().zip(acknowledged) {
        let acknowledged = acknowledged.into_inner().expect("no panic");
        let (poster, friends) = (circle[0], &circle[1..]);
        let outbound = stories(&served.authority, poster, "outbound");
        let lost: Vec<_> = acknowledged.difference(&outbound).collect();
        assert!(lost.is_empty(), "not in the outbound feed of {poster}: {lost:?}");
        for friend in friends {
            let inbound = stories(&served.authority, *friend, "inbound");
            let lost: Vec<_> = acknowledged.difference(&inbound).collect();
            assert!(lost.is_empty(), "not in the inbound feed of {friend}: {lost:?}");
        }
        // the index in the process begins anew, with what is in Cassandra
        let word = acknowledged.iter().next().and_then(|story| story.split(' ').next()).expect("a post");
        finds(&served.authority, word, poster);
    }
}

#[cfg(feature = "opensearch")]
#[test]
#[ignore = "needs an OpenSearch: see the top of this file"]
fn stories_in_cassandra_are_found_through_opensearch_also_by_the_next_server() {
    let url = std::env::var("TIDEMARK_TEST_OPENSEARCH")
        .expect("TIDEMARK_TEST_OPENSEARCH names an OpenSearch to test with, http://HOST:PORT");
    let cassandra = Cassandra::start();
    let (contact, url) = (format!("contact={}", cassandra.contact), format!("opensearch={url}"));
    let index = format!("search_index=test_{}", std::process::id());
    let data = tempfile::tempdir().expect("a temporary directory");
    let mut arguments = settings(&contact, &["search=opensearch", &url, &index, "feeds_timeout_s=60"]);
    arguments.extend(["--data", data.path().to_str().expect("UTF-8")]);

    let mut served = Served::start("newsfeed", &arguments);
    let circles = circles(&served.authority);
    let mut client = Client::connect(&served.authority);
    for circle in &circles {
        let story = serde_json::json!({"subject": "s", "story": format!("Of {} and ALL", circle[0])});
        made(&mut client, &format!("/participant/{}/outbound", circle[0]), &story);
    }
    let check = |authority: &str| {
        for circle in &circles {
            finds(authority, &circle[0].to_string(), circle[0]);
            let story = BTreeSet::from([format!("Of {} and ALL", circle[0])]);
            assert_eq!(stories(authority, circle[0], "outbound"), story);
            assert_eq!(stories(authority, circle[1], "inbound"), story);
        }
        let found = Client::connect(authority).get("/outbound?keywords=all+nothing").json();
        let found: BTreeSet<String> = found
            .as_array()
            .expect("a list")
            .iter()
            .map(|link| link.as_str().expect("a link").to_owned())
            .collect();
        assert_eq!(found, circles.iter().map(|circle| format!("/participant/{}", circle[0])).collect());
        let metrics = Client::connect(authority).get("/metrics").body;
        for line in
            ["feeds=\"cassandra\"", "search=\"opensearch\"", "newsfeed_feeds_cassandra_nodes_connected 1"]
        {
            assert!(metrics.contains(line), "no {line} in {metrics}");
        }
    };
    check(&served.authority);
    served.stop();
    let served = Served::start("newsfeed", &arguments);
    check(&served.authority);
}
