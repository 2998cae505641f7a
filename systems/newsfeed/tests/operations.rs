//! Which operations are told one by one, in the file that the server is started with.

use std::collections::BTreeMap;
use std::fs;

use crate::client::{Client, eventually};
use crate::feed::{self, Running, befriend, participant, post, send};
use serde_json::json;

/// How many of each are told while somebody is served.
fn told(settings: &[(&str, &str)], visit: impl FnOnce(&mut Client)) -> BTreeMap<String, u64> {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("told");
    let mut options = feed::options(None, settings);
    options.events = Some(path.clone());
    let running = Running::serve(options);
    let mut client = running.client();
    visit(&mut client);
    eventually("delivered", || (client.get("/behind").text() == "0").then_some(()));
    drop((client, running));
    let mut told = BTreeMap::new();
    let text = fs::read_to_string(path).unwrap();
    assert!(text.starts_with("#began file\n") && text.ends_with("#ended\n"), "{text}");
    for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let [at_us, entity, operation, duration_us, status] = line.split(',').collect::<Vec<_>>()[..] else {
            panic!("{line}")
        };
        // within this century, and no longer than a test
        assert!((1_600_000_000_000_000..4_000_000_000_000_000).contains(&at_us.parse::<u64>().unwrap()));
        assert!(duration_us.parse::<u64>().unwrap() < 600_000_000, "{line}");
        *told.entry(format!("{entity} {operation} {status}")).or_default() += 1;
    }
    told
}

fn expected(all: &[(&str, u64)]) -> BTreeMap<String, u64> {
    all.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect()
}

#[test]
fn a_post_is_one_store_of_its_own_and_one_for_each_friend() {
    for fan_out in ["sync", "async"] {
        let told = told(&[("fan_out", fan_out)], |client| {
            let ids: Vec<u64> = (0..3).map(|_| participant(client, "x")).collect();
            befriend(client, ids[0], ids[1]);
            befriend(client, ids[0], ids[2]);
            post(client, ids[0], "a story");
            post(client, ids[1], "another");
        });
        assert_eq!(
            told,
            expected(&[
                ("Participant post 200", 3),
                ("Participant store 200", 3),
                ("Friend post 200", 2),
                ("Friend store 200", 2),
                ("Participant load 200", 2),
                ("Friend load 200", 2),
                ("Outbound post 200", 2),
                ("Outbound store 200", 2),
                ("Inbound store 200", 3),
            ]),
            "{fan_out}"
        );
    }
}

#[test]
fn reading_is_told_and_what_is_refused_has_its_status() {
    let told = told(&[], |client| {
        let id = participant(client, "x");
        for path in ["", "/friends", "/inbound", "/outbound"] {
            for (who, status) in [(id, 200), (999, 404), (0, 400)] {
                assert_eq!(client.get(&format!("/participant/{who}{path}")).status, status);
            }
        }
        client.get("/outbound?keywords=word");
        client.get("/outbound");
        send(client, "/participant", &json!({}));
        send(client, "/participant/1/outbound", &json!({}));
        send(client, "/participant/1/friends", &json!({"to": 1}));
        // these are no operations
        client.get("/participant?name=x");
        client.get("/nowhere");
    });
    assert_eq!(
        told,
        expected(&[
            ("Participant post 200", 1),
            ("Participant store 200", 1),
            ("Participant get 200", 1),
            ("Participant get 404", 1),
            ("Participant get 400", 1),
            ("Friend get 200", 1),
            ("Friend get 404", 1),
            ("Friend get 400", 1),
            ("Inbound get 200", 1),
            ("Inbound get 404", 1),
            ("Inbound get 400", 1),
            ("Outbound get 200", 1),
            ("Outbound get 404", 1),
            ("Outbound get 400", 1),
            // one for each of these that names somebody, who may not be there: nothing is wrong with the store then
            ("Participant load 200", 8),
            ("Friend load 200", 1),
            ("Inbound load 200", 1),
            ("Outbound load 200", 1),
            ("Outbound search 200", 1),
            ("Outbound search 400", 1),
            ("Participant post 400", 1),
            ("Outbound post 400", 1),
            ("Friend post 409", 1),
        ])
    );
}

#[test]
fn nothing_is_told_where_it_is_off() {
    let dir = tempfile::tempdir().unwrap();
    let mut options = feed::options(None, &[("events", "off")]);
    options.events = Some(dir.path().join("told"));
    let running = Running::serve(options);
    participant(&mut running.client(), "x");
    drop(running);
    assert!(!dir.path().join("told").exists());
}
