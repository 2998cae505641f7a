//! The shipped message intake, and the news feed, under load while it is killed or its disk is full: what its durability promises is
//! kept, and what it does not promise is shown as lost. Every other way to break them: `tests/matrix`.

use std::fs;

use crate::common::{project, tidemark};
use serde_json::Value;

/// A run of the intake's scenario for so long; its exit status, its `--json` and what it wrote for a person.
fn run_for(time: &str, settings: &[&str]) -> (i32, Value, String) {
    run_scenario("ingest", time, settings)
}

fn run_scenario(scenario: &str, time: &str, settings: &[&str]) -> (i32, Value, String) {
    let place = tempfile::tempdir().unwrap();
    let dir = place.path().join("run");
    let dir = dir.to_str().unwrap();
    let file = place.path().join("scenario.yaml");
    let shipped = fs::read_to_string(project().join(format!("scenarios/{scenario}.yaml"))).unwrap();
    // what happens comes sooner
    let sooner = [
        ("{at: 10s", "{at: 2s"),
        ("{at: 14s", "{at: 6s"),
        ("warm-up: 4s", "warm-up: 1s"),
        ("warm-up: 5s", "warm-up: 2s"),
    ];
    let text = sooner.iter().fold(shipped, |text, (from, to)| text.replace(from, to));
    fs::write(&file, text).unwrap();
    let output = tidemark()
        .args(["run", file.to_str().unwrap(), "--quiet", "--json", "--out", dir, "--for", time])
        .args(settings.iter().flat_map(|setting| ["--set", setting]))
        .output()
        .unwrap();
    let json = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&output.stderr)));
    let text = tidemark().args(["report", dir]).output().unwrap();
    (output.status.code().unwrap(), json, String::from_utf8(text.stdout).unwrap())
}

/// With a fault two seconds into what is measured.
fn run(durability: &str, fault: &str) -> (i32, Value, String) {
    run_for("8s", &[&format!("durability={durability}"), &format!("fault={fault}"), "users=16"])
}

fn number(json: &Value, name: &str) -> u64 {
    json["ledger"][name].as_u64().unwrap_or_else(|| panic!("no {name} in {}", json["ledger"]))
}

/// Everything acknowledged is there once and as it was sent.
fn all_is_there(json: &Value, text: &str) {
    // some hundred, also where the machine stands still for most of the time
    assert!(number(json, "acknowledged") > 200, "{text}");
    assert_eq!(number(json, "found"), number(json, "acknowledged"), "{text}");
    for name in ["lost", "duplicated", "different"] {
        assert_eq!(number(json, name), 0, "{name}: {text}");
    }
    assert_eq!(
        number(json, "counted"),
        number(json, "found") + number(json, "unacknowledged_found"),
        "{text}"
    );
}

#[test]
fn a_synced_intake_that_is_killed_loses_nothing() {
    let (_, json, text) = run("synced", "kill");
    assert_eq!(json["faults"].as_array().map(Vec::len), Some(1), "{text}");
    all_is_there(&json, &text);
}

/// It takes nothing from when its disk is full until it is started again, and answers so.
#[test]
fn a_synced_intake_whose_disk_was_full_loses_nothing() {
    if !may_mount() {
        return eprintln!(
            "skipped: this process may not mount the disk that is to be filled; run it as root"
        );
    }
    // some seconds longer than the others: it is started again after all that, beside other tests
    let (_, json, text) = run_for("16s", &["durability=synced", "fault=fill", "users=16"]);
    all_is_there(&json, &text);
    let (full, killed) = (&json["faults"][0], &json["faults"][1]);
    assert_eq!((&full["kind"], &full["error"]), (&Value::from("fill"), &Value::Null), "{text}");
    let (begin_us, ready_us) = (full["begin_us"].as_u64().unwrap(), killed["ready_us"].as_u64().unwrap());
    assert!(full["healed_us"].as_u64().unwrap() > begin_us, "{text}");
    let dip = &full["dip"];
    assert_eq!(dip["lowest_per_s"], 0.0, "it was felt: {dip} {text}");
    assert!(dip["errors"].as_u64().unwrap() > 0, "{dip} {text}");
    assert!(
        json["statuses"]["503"].as_u64() > Some(0) || json["statuses"]["500"].as_u64() > Some(0),
        "{json}"
    );
    // after the restart it takes messages again
    assert!(ready_us > begin_us && killed["dip"]["seen_s"].as_f64().unwrap() > 0.0, "{text}");
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let is_said = ["an ext4 of 512 MiB", "a tmpfs of 512 MiB"].iter().any(|disk| words.contains(disk));
    assert!(is_said, "what disk it was: {text}");
}

/// Whether this process may mount, as the lab does for the disk that it fills.
fn may_mount() -> bool {
    let folder = tempfile::tempdir().unwrap();
    let mount = |program: &str, arguments: &[&str]| {
        let status = std::process::Command::new(program).args(arguments).arg(folder.path()).status();
        status.is_ok_and(|status| status.success())
    };
    mount("mount", &["-t", "tmpfs", "-o", "size=1m", "tidemark-test"]) && mount("umount", &[])
}

#[test]
fn an_intake_in_memory_that_is_killed_loses_all_that_it_had_and_the_report_says_so() {
    let (status, json, text) = run("memory", "kill");
    assert_eq!((status, &json["verdict"]["status"]), (1, &Value::from("fail")), "{text}");
    assert!(number(&json, "lost") > 200, "{text}");
    assert_eq!(number(&json, "found") + number(&json, "lost"), number(&json, "acknowledged"), "{text}");
    assert!(number(&json, "found") > 0, "what came after the restart is there: {text}");
    assert!(json["verdict"]["reasons"].to_string().contains("lost"), "{text}");
    assert!(text.contains("memory"), "a loss names the durability: {text}");
}

/// A message of the same number, millisecond and type replaces another, so no two users may have the same number at once:
/// not even where there are so few that each is soon taken again.
#[test]
fn few_numbers_are_no_two_users_at_once() {
    let (_, json, text) = run_for("2s", &["durability=buffered", "users=100", "numbers=200"]);
    all_is_there(&json, &text);
}

/// A post is in the outbound feed of its poster and in the inbound feed of every friend, once each, also where feeds are
/// filled behind the answer.
fn no_feed_lacks_a_post(fan_out: &str, fault: &str) {
    // few posts: a start finds each word of each story anew, and the machine may be busy with other tests
    let settings =
        ["broadcasters=4", "searchers=1", &format!("fan_out={fan_out}"), &format!("fault={fault}")];
    let (status, json, text) = run_scenario("newsfeed", "12s", &settings);
    // 3 where it was not ready again before the load ended, on a busy machine
    assert!([0, 3].contains(&status), "{status}: {text}");
    assert_eq!(json["faults"].as_array().map(Vec::len), Some(1), "{text}");
    assert!(number(&json, "acknowledged") > 200, "{text}");
    assert_eq!(number(&json, "found"), number(&json, "acknowledged"), "{text}");
    for name in ["lost", "duplicated", "different"] {
        assert_eq!(number(&json, name), 0, "{name}: {text}");
    }
}

#[test]
fn a_news_feed_that_is_killed_lacks_no_post_in_any_feed() {
    no_feed_lacks_a_post("sync", "kill");
}

#[test]
fn a_news_feed_that_fills_feeds_later_and_is_killed_lacks_no_post_in_any_feed() {
    no_feed_lacks_a_post("async", "kill");
}

/// The share of reads is what the scenario says, viewers hold streams open and are told of posts, and no post is missing.
#[test]
fn a_news_feed_that_is_read_has_twenty_reads_for_each_post_and_lacks_none() {
    let settings = ["participants=120", "people_at_once=30", "viewers=8", "think=10ms"];
    let (_, json, text) = run_scenario("newsfeed-reads", "6s", &settings);
    let requests = |labels: &[&str]| -> u64 {
        let steps = json["steps"].as_array().expect("steps");
        let of = |step: &&Value| labels.iter().any(|label| step["label"] == **label);
        steps.iter().filter(of).filter_map(|step| step["requests"].as_u64()).sum()
    };
    let reads =
        requests(&["Inbound get", "Outbound get", "Participant get", "Friend get", "Outbound search"]);
    let (posts, streams) = (requests(&["Outbound post"]), requests(&["Live"]));
    let share = reads as f64 / posts as f64;
    assert!((19.6..=20.4).contains(&share), "{reads} reads, {posts} posts: {text}");
    assert!(streams > 0 && json["errors"].as_object().is_none_or(|errors| errors.is_empty()), "{text}");
    assert!(text.contains(" events came over "), "{text}");
    assert!(number(&json, "acknowledged") > 20, "{text}");
    assert_eq!(number(&json, "found"), number(&json, "acknowledged"), "{text}");
    for name in ["lost", "duplicated", "different"] {
        assert_eq!(number(&json, name), 0, "{name}: {text}");
    }
}
