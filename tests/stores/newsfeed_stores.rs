//! The news feed on stores of other people's making, which the tests start: Apache Cassandra needs Java 17 and, the
//! first time, Maven. Where there is no JDK of Java 21 or later for OpenSearch, its tests say so and are skipped.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use crate::common::{Answer, Client, PATIENCE, Served};
use serde_json::Value;
use tempfile::TempDir;
use tidemark_lab::started::held;
use tidemark_lab::stores::{Setup, Stores};
use tidemark_lab::{LabError, StopRequest};
use tidemark_scenario::load_text;
use tidemark_store::cassandra::{CassandraFeeds, Options};

/// Posts that are acknowledged before Cassandra is killed, and once more after it is back.
const POSTS: usize = 100;
const POSTERS: usize = 4;
const FRIENDS: usize = 3;
/// How long a store stands still, or is not reached.
#[cfg(all(feature = "opensearch", feature = "postgres", feature = "redis"))]
const SHORT: Duration = Duration::from_secs(1);

const CASSANDRA: &str = "cassandra: {heap: 256MiB, durability: synced, ready within: 8m}";

/// Stores that acknowledge what is on their disks.
pub(crate) struct Started {
    pub(crate) stores: Stores,
    /// By which a system finds them.
    settings: Vec<String>,
    _folder: TempDir,
}

impl Started {
    /// Those that a scenario would name so; behind links, if they are to be cut.
    pub(crate) fn start(stores: &str, are_linked: bool) -> Result<Self, LabError> {
        let folder = tempfile::tempdir().expect("a temporary directory");
        let text = format!(
            "stores: {{{stores}}}\nsessions: {{a: {{steps: [{{GET: /}}]}}}}\nload: {{users: 1, hold: 1s}}\n"
        );
        let plan = load_text("store.yaml", &text, Path::new("."), &[]).expect("a plan");
        let (data_of, is_linked) = (&|_: &str| None, &|_: &str| are_linked);
        let run_dir = folder.path().join("stores");
        let setup = Setup { run_dir, cores: Vec::new(), keep_data: false, data_of, is_linked };
        let stores = Stores::start(&plan.stores, &setup, &|| StopRequest::None, &mut |_| {})?;
        let settings = stores.settings().into_iter().map(|(name, value)| format!("{name}={value}")).collect();
        Ok(Started { stores, settings, _folder: folder })
    }

    /// What a server is started with that uses them.
    fn arguments<'a>(&'a self, rest: &[&'a str]) -> Vec<&'a str> {
        let settings = self.settings.iter().map(String::as_str).chain(rest.iter().copied());
        let settings = settings.flat_map(|setting| ["--set", setting]);
        ["--durability", "synced", "--set", "feeds=cassandra"].into_iter().chain(settings).collect()
    }

    /// Where the one of this setting is.
    pub(crate) fn place(&self, setting: &str) -> String {
        let found = self.settings.iter().find_map(|one| one.strip_prefix(setting)?.strip_prefix('='));
        found.expect("a store with that setting").to_owned()
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

/// The stories of a feed, of all its pages; each must be there once.
fn stories(authority: &str, participant: u64, feed: &str) -> BTreeSet<String> {
    let mut client = Client::connect(authority);
    let (mut stories, mut count) = (BTreeSet::new(), 0);
    let mut cursor = String::new();
    loop {
        let answer = client.get(&format!("/participant/{participant}/{feed}?limit=1000{cursor}"));
        assert_eq!(answer.status, 200, "{}", answer.body);
        let posts = answer.json();
        for post in posts.as_array().expect("a list") {
            stories.insert(post["story"].as_str().expect("a story").to_owned());
            count += 1;
        }
        let Some(next) = answer.next_cursor else { break };
        cursor = format!("&cursor={next}");
    }
    assert_eq!(stories.len(), count, "{feed} of {participant} has a post twice");
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

/// All in one, since a Cassandra takes its time to start.
#[test]
#[ignore = "takes long: make test-long"]
fn feeds_in_cassandra_are_feeds_and_nothing_is_lost_when_it_is_killed() {
    let cassandra = Started::start(CASSANDRA, false).expect("Cassandra starts");
    let contact = vec![cassandra.place("contact")];
    let options = Options { contact, keyspace: "checks".into(), ..Options::default() };
    crate::feed_roles::feeds(&|| CassandraFeeds::open(options.clone()).expect("feeds"));

    for fan_out in ["fan_out=sync", "fan_out=async"] {
        let data = tempfile::tempdir().expect("a temporary directory");
        let keyspace = format!("keyspace={}", fan_out.replace('=', "_"));
        let mut arguments = cassandra.arguments(&[fan_out, &keyspace, "feeds_timeout_s=60"]);
        arguments.extend(["--data", data.path().to_str().expect("UTF-8")]);
        posts_survive(&arguments, &|posts, _| {
            posts.go_on();
            let handle = cassandra.stores.started().remove(0);
            held(&handle).kill();
            held(&handle).restart(&|| true).expect("Cassandra starts again");
            posts.go_on();
        });
    }
}

/// How many posts were acknowledged.
struct Posts<'a>(&'a AtomicUsize);

impl Posts<'_> {
    /// Waits until so many more are.
    fn go_on(&self) {
        let wanted = self.0.load(Ordering::SeqCst) + POSTS;
        let begun = Instant::now();
        while self.0.load(Ordering::SeqCst) < wanted {
            assert!(begun.elapsed() < PATIENCE * 5, "no more posts are acknowledged");
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

/// Ends the posts, also where the test fails.
struct Over<'a>(&'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

/// Posts while stores are broken; then the service is killed and started again, and everything that was acknowledged is
/// in all feeds, once, and is found. `breaks` has the address of the service and of a poster.
fn posts_survive(arguments: &[&str], breaks: &dyn Fn(&Posts<'_>, (&str, u64))) {
    let mut served = Served::start("newsfeed", arguments);
    let circles = circles(&served.authority);
    let (count, is_over) = (AtomicUsize::new(0), AtomicBool::new(false));
    let acknowledged: Vec<Mutex<BTreeSet<String>>> = circles.iter().map(|_| Mutex::default()).collect();
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
        breaks(&Posts(&count), (&served.authority, circles[0][0]));
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
        // an index in the process begins anew, with what is in Cassandra
        let word = acknowledged.iter().next().and_then(|story| story.split(' ').next()).expect("a post");
        finds(&served.authority, word, poster);
    }
}

/// Four stores, each of which is killed, frozen and cut off while posts are taken; and the next server finds stories that
/// this one has taken.
#[cfg(all(feature = "opensearch", feature = "postgres", feature = "redis"))]
#[test]
#[ignore = "takes long: make test-long"]
fn with_everything_in_stores_nothing_is_lost_whichever_breaks() {
    use tidemark_store::opensearch;
    let all = format!(
        "{CASSANDRA}, opensearch: {{heap: 256MiB, ready within: 8m}}, postgres: {{}}, redis: {{durability: memory}}"
    );
    let stores = match Started::start(&all, true) {
        Ok(stores) => stores,
        Err(LabError::Usage(reason)) => return eprintln!("skipped: {reason}"),
        Err(error) => panic!("{error}"),
    };
    let url = stores.place("opensearch");
    let options = opensearch::Options { url, index: "checks".into(), ..opensearch::Options::default() };
    crate::feed_roles::search(&*opensearch::OpenSearch::open(options).expect("an index"));

    let arguments = stores.arguments(&["search=opensearch", "people=postgres", "cache=redis"]);
    posts_survive(&arguments, &|posts, (authority, poster)| {
        posts.go_on();
        let said = Client::connect(authority).get("/metrics").body;
        for store in
            ["people=\"postgres\"", "feeds=\"cassandra\"", "search=\"opensearch\"", "cache=\"redis\""]
        {
            assert!(said.contains(store), "no {store} in {said}");
        }
        for (name, link) in stores.stores.links() {
            let handle = stores.stores.started().into_iter().find(|handle| held(handle).name() == name);
            let handle = handle.expect("what has a link was started");
            held(&handle).kill();
            match name.as_str() {
                // a cache that is not there is a miss
                "redis" => posts.go_on(),
                // posters and friends are cached
                "postgres" => {}
                _ => {
                    let story = serde_json::json!({"subject": "s", "story": "of nobody"});
                    let path = format!("/participant/{poster}/outbound");
                    let refused = post(&mut Client::connect(authority), &path, &story);
                    assert_eq!(refused.status, 503, "{name}: {}", refused.body);
                }
            }
            held(&handle).restart(&|| true).expect("it starts again");
            posts.go_on();
            held(&handle).freeze().expect("it is frozen");
            std::thread::sleep(SHORT);
            held(&handle).thaw();
            posts.go_on();
            link.set(|condition| (condition.refused, condition.cuts) = (1.0, condition.cuts + 1));
            std::thread::sleep(SHORT);
            link.set(|condition| condition.refused = 0.0);
            posts.go_on();
        }
    });
}

/// Posts are found in Solr by the published fields, and nothing that was posted is lost when it is killed.
#[cfg(feature = "opensearch")]
#[test]
fn stories_in_solr_are_found_and_posts_outlive_its_death() {
    use tidemark_store::opensearch::{Engine, OpenSearch, Options};
    let solr = match Started::start("solr: {heap: 256MiB, ready within: 8m}", false) {
        Ok(stores) => stores,
        Err(LabError::Usage(reason)) => return eprintln!("skipped: {reason}"),
        Err(error) => panic!("{error}"),
    };
    let usual = Options { engine: Engine::Solr, index: "outbound".into(), ..Options::default() };
    let options = Options { url: solr.place("solr"), ..usual.clone() };
    crate::feed_roles::search(&*OpenSearch::open(options.clone()).expect("a core"));
    let Err(error) = OpenSearch::open(Options { index: "nowhere".into(), ..options }) else {
        panic!("there is no such core");
    };
    assert!(error.to_string().contains("404"), "{error}");

    let data = tempfile::tempdir().expect("a temporary directory");
    let (data, place) =
        (data.path().join("data").display().to_string(), format!("solr={}", solr.place("solr")));
    let arguments = ["--durability", "synced", "--data", &data, "--set", "search=solr", "--set", &place];
    posts_survive(&arguments, &|posts, (authority, _)| {
        posts.go_on();
        let said = Client::connect(authority).get("/metrics").body;
        assert!(said.contains("search=\"solr\""), "{said}");
        let handle = solr.stores.started().remove(0);
        held(&handle).kill();
        held(&handle).restart(&|| true).expect("it starts again");
        posts.go_on();
    });
}

/// The shipped scenario.
#[cfg(all(feature = "opensearch", feature = "postgres", feature = "redis"))]
#[test]
#[ignore = "takes long: make test-long"]
fn a_run_starts_all_four_stores_and_finds_every_post_although_one_stood_still() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let chosen = ["people=postgres", "feeds=cassandra", "search=opensearch", "cache=redis"];
    let settings = ["broadcasters=4", "searchers=1", "fault=freeze", "fault_of=opensearch"];
    let output = crate::common::tidemark()
        .args(["run", "newsfeed", "--for", "16s", "--out", "run", "--json"])
        .args(chosen.iter().chain(&settings).flat_map(|setting| ["--set", setting]))
        .current_dir(folder.path())
        .output()
        .expect("tidemark runs");
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    if output.status.code() == Some(2) && told.contains("needs a JDK") {
        return eprintln!("skipped: {told}");
    }
    let result: Value =
        serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {told}"));
    let (ledger, fault) = (&result["ledger"], &result["faults"][0]);
    assert_eq!((&fault["target"], &fault["error"]), (&"opensearch".into(), &Value::Null), "{told}");
    assert!(fault["healed_us"].as_u64() > fault["begin_us"].as_u64(), "{fault}");
    for (of, wanted) in [("lost", 0), ("duplicated", 0), ("different", 0)] {
        assert_eq!(ledger[of].as_u64(), Some(wanted), "{of}: {ledger}{told}");
    }
    assert!(
        ledger["acknowledged"].as_u64() > Some(0) && ledger["found"] == ledger["acknowledged"],
        "{ledger}"
    );
}
