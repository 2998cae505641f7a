//! A client that is not ours: Debian's Tsung sends messages to the intake, and every one that it saw answered with 200 is
//! there afterwards, under its user, once: also where, as in the experiment of 2015, the same message comes again and again.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use crate::common::{Client, Killed, PATIENCE, Served, free_port, project};

/// Users, each with a number of its own.
const USERS: usize = 20;
/// Messages of each: 50 rounds of five kinds.
const MESSAGES: usize = 250;

/// Erlang's registry of names, which Tsung needs, on a port of its own; ended when dropped.
struct Registry {
    _process: Killed,
    port: u16,
}

impl Registry {
    fn start() -> Registry {
        let port = free_port();
        let registry = Command::new("epmd")
            .args(["-port", &port.to_string(), "-address", "127.0.0.1"])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("epmd is missing: install tsung (Debian: apt-get install tsung)");
        Registry { _process: Killed(registry), port }
    }
}

fn number(user: usize) -> String {
    format!("{user:010}")
}

/// The session file and its numbers, in `place`.
fn prepare(place: &Path, file: &str, authority: &str) -> std::path::PathBuf {
    let numbers = place.join("numbers.csv");
    let lines: String = (1..=USERS).map(|user| number(user) + "\n").collect();
    std::fs::write(&numbers, lines).unwrap();
    let port = authority.rsplit_once(':').expect("a port").1;
    let text = std::fs::read_to_string(project().join("tests/tsung").join(file)).unwrap();
    let text = text
        .replace("\"PORT\"", &format!("{port:?}"))
        .replace("\"USERS\"", &format!("\"{USERS}\""))
        .replace("\"NUMBERS\"", &format!("\"{}\"", numbers.display()))
        .replace("tsung-1.0.dtd", "/usr/share/tsung/tsung-1.0.dtd");
    let file = place.join("messages.xml");
    std::fs::write(&file, text).unwrap();
    file
}

/// Runs Tsung to its end and returns what it wrote about itself.
pub(crate) fn tsung(place: &Path, session: &Path) -> String {
    let registry = Registry::start();
    let log = place.join("tsung.log");
    let mut tsung = Command::new("tsung")
        .arg("-f")
        .arg(session)
        .arg("-l")
        .arg(place.join("log"))
        .arg("-m")
        .arg(&log)
        .arg("start")
        .env("HOME", place)
        .env("ERL_EPMD_PORT", registry.port.to_string())
        .env("ERL_EPMD_ADDRESS", "127.0.0.1")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .spawn()
        .expect("tsung is missing: install it (Debian: apt-get install tsung)");
    let begin = Instant::now();
    while tsung.try_wait().expect("wait").is_none() {
        if begin.elapsed() > PATIENCE {
            let _ = tsung.kill();
            let _ = tsung.wait();
            panic!("tsung did not end; {}", std::fs::read_to_string(&log).unwrap_or_default());
        }
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    std::fs::read_to_string(&log).expect("tsung's log")
}

/// The last total of a count in Tsung's log: `stats: 200 COUNT TOTAL`.
fn total(log: &str, name: &str) -> Option<usize> {
    let wanted = format!("stats: {name} ");
    log.lines().rev().find_map(|line| line.strip_prefix(&wanted)?.rsplit(' ').next()?.parse().ok())
}

/// Runs a file of Tsung; how often each payload is there afterwards.
fn found_after(file: &str, settings: &[&str]) -> BTreeMap<String, usize> {
    let place = tempfile::tempdir().unwrap();
    let data = place.path().join("data");
    let arguments = [&["--data", data.to_str().unwrap(), "--durability", "buffered"], settings].concat();
    let served = Served::start("ingest", &arguments);
    let log = tsung(place.path(), &prepare(place.path(), file, &served.authority));
    assert_eq!(total(&log, "200"), Some(USERS * MESSAGES), "{log}");
    assert_eq!(total(&log, "400"), None, "{log}");

    let mut client = Client::connect(&served.authority);
    let count = client.get("/count").body.trim().to_owned();
    let mut seen = BTreeMap::new();
    for user in 1..=USERS {
        let messages = client.get(&format!("/messages/{}", number(user))).json();
        let messages = messages.as_array().expect("a list");
        assert!(messages.is_sorted_by_key(|message| message["time"].to_string()), "user {user}");
        for message in messages {
            let payload = message["payload"].as_str().expect("a payload");
            assert!(payload.starts_with(&number(user)), "{payload}");
            *seen.entry(payload.to_owned()).or_default() += 1;
        }
    }
    assert_eq!(count, seen.values().sum::<usize>().to_string());
    seen
}

#[test]
fn what_tsung_saw_answered_is_there() {
    let found = found_after("messages.xml", &[]);
    assert_eq!(found.len(), USERS * MESSAGES);
    assert!(found.values().all(|times| *times == 1), "{found:?}");
}

/// Five messages of each user, again and again: each that was sent is found, and with `identity=key` one of each.
#[test]
fn the_published_file_finds_as_many_as_it_sent() {
    for (settings, times) in [(&[][..], MESSAGES / 5), (&["--set", "identity=key"], 1)] {
        let found = found_after("published.xml", settings);
        assert_eq!(found.len(), USERS * 5, "{settings:?}");
        assert!(found.values().all(|found| *found == times), "{settings:?}: {found:?}");
    }
}
