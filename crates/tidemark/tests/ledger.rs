//! The ledger from the scenario to the run directory: what it says is what a store has seen, also of a run that is
//! killed.

use std::collections::BTreeSet;
use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::sync::{Arc, Mutex};

use crate::program::{begin_silent, code, read_json, run, stderr, stdout, wait_until};
use serde_json::Value;
use tidemark_record::ledger::{Entry, Findings, Forms, Ledger, Reading, Search};
use tidemark_wire::http1::{DecoderLimits, RequestDecoder};

const SCENARIO: &str = r#"
system: {serve: airline, durability: synced, settings: {customers: 7}}
feeders:
  people: {values: ["0000000001", "0000000002"]}
prepare:
  - take: people
  - repeat: 3
    steps:
      - POST: /m
        label: First
        ledger: {content: "${people}${now()}DEF${entry},${check}", as: message}
        body: ${message}
sessions:
  writer:
    steps:
      - take: people
      - POST: /m
        label: Message
        ledger: {content: "${people}${now()}ABC${entry},${check}", as: message}
        body: ${message}
        check: {status: 200}
load: {users: 4, hold: TIME}
limits: {drain: 5s}
"#;

/// A store of its own for each test.
#[derive(Default)]
struct Store {
    held: Mutex<Vec<Vec<u8>>>,
    /// Acknowledged and not kept.
    lost: Mutex<BTreeSet<Vec<u8>>>,
}

impl Store {
    /// Takes messages; loses one in so many on purpose.
    fn serve(self: &Arc<Store>, loses_each: Option<usize>) -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let store = self.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let store = store.clone();
                std::thread::spawn(move || store.take_all(stream, loses_each));
            }
        });
        address
    }

    /// None once the peer is gone.
    fn take_all(&self, mut stream: TcpStream, loses_each: Option<usize>) -> Option<()> {
        let _ = stream.set_nodelay(true);
        let mut decoder = RequestDecoder::new(DecoderLimits::default());
        let mut input = [0; 4096];
        loop {
            decoder.start();
            loop {
                let have = stream.read(&mut input).ok().filter(|have| *have > 0)?;
                if decoder.decode(&input[..have]).ok()?.complete {
                    break;
                }
            }
            if decoder.target() == b"/m" {
                let content = decoder.body().to_vec();
                let mut held = self.held.lock().unwrap();
                match loses_each {
                    Some(each) if (held.len() + self.lost.lock().unwrap().len()) % each == each - 1 => {
                        self.lost.lock().unwrap().insert(content);
                    }
                    _ => held.push(content),
                }
            }
            stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nOK").ok()?;
        }
    }

    fn entries(&self, forms: &Forms, contents: &BTreeSet<Vec<u8>>) -> BTreeSet<Entry> {
        let entry = |content: &Vec<u8>| match forms.reading(content, &mut Vec::new()) {
            Reading::Whole(entry) => entry,
            other => panic!("{other:?}: {}", String::from_utf8_lossy(content)),
        };
        contents.iter().map(entry).collect()
    }

    /// What it holds proves this; and how much it holds.
    fn findings(&self, forms: &Forms, ledger: &Ledger) -> (Findings, u64) {
        let mut search = Search::new(ledger);
        let held = self.held.lock().unwrap();
        for content in held.iter() {
            match forms.reading(content, &mut Vec::new()) {
                Reading::Whole(entry) => search.found(entry),
                other => panic!("{other:?}: {}", String::from_utf8_lossy(content)),
            }
        }
        (search.findings(), held.len() as u64)
    }
}

fn arguments(folder: &Path, address: SocketAddr, time: &str) -> [String; 6] {
    fs::write(folder.join("s.yaml"), SCENARIO.replace("TIME", time)).unwrap();
    ["run", "s.yaml", "--url", &format!("http://{address}"), "--out", "out"].map(str::to_owned)
}

#[test]
fn what_a_store_loses_is_what_the_ledger_misses() {
    let (folder, store) = (tempfile::tempdir().unwrap(), Arc::new(Store::default()));
    let arguments = arguments(folder.path(), store.serve(Some(100)), "2s");
    let output = run(folder.path(), &arguments.each_ref().map(String::as_str));
    assert!([0, 3].contains(&code(&output)), "{}{}", stdout(&output), stderr(&output));

    let out = folder.path().join("out");
    let (forms, ledger) = (Forms::read(&out).unwrap(), Ledger::read(&out).unwrap());
    let lost = store.entries(&forms, &store.lost.lock().unwrap());
    assert!(lost.len() > 1);
    let (findings, _) = store.findings(&forms, &ledger);
    assert_eq!(findings.lost, lost.len() as u64);
    assert!(findings.lost_examples.iter().eq(lost.iter().take(10)));
    assert_eq!(findings.sent, findings.acknowledged, "every answer came: {}", stderr(&output));
    assert_eq!(findings.found + findings.lost, findings.acknowledged);
    assert_eq!((findings.duplicated, findings.different, findings.foreign, findings.torn), (0, 0, 0, 0));
    // what the figures of the load say, and the three of the preparation, which are none of them
    let prepared = ledger.acknowledged_entries().filter(|entry| entry.thread == 9_999).count();
    assert_eq!(prepared, 3);
    let summary = read_json(out.join("run.json"));
    assert_eq!(summary["summary"]["requests"].as_u64().unwrap() + 3, findings.sent, "{summary}");
    // what the scenario says of a system that it would start is not said of the one at the URL
    let system = &summary["system"];
    assert_eq!((&system["durability"], &system["settings"]), (&Value::Null, &serde_json::json!({})));
}

/// `kill -9` of the driver: what it had handed over is on record, and nothing that is on record is wrong.
#[test]
fn a_driver_that_is_killed_leaves_its_ledger() {
    let (folder, store) = (tempfile::tempdir().unwrap(), Arc::new(Store::default()));
    let arguments = arguments(folder.path(), store.serve(None), "10m");
    let mut child = begin_silent(folder.path(), &arguments.each_ref().map(String::as_str));
    let out = folder.path().join("out");
    let acknowledged = || Ledger::read(&out).map_or(0, |ledger| ledger.acknowledged());
    wait_until("the ledger is written while the run goes on", || acknowledged() > 100);
    child.kill().unwrap();
    child.wait().unwrap();

    let before = read_dir(&out.join("ledger"));
    // what is left becomes a run, and the ledger stays
    let report = run(folder.path(), &["report", "out", "--json"]);
    assert_eq!(code(&report), 0, "{}", stderr(&report));
    assert!(out.join("run.json").is_file());
    assert_eq!(read_dir(&out.join("ledger")), before);

    let (forms, ledger) = (Forms::read(&out).unwrap(), Ledger::read(&out).unwrap());
    let (findings, held) = store.findings(&forms, &ledger);
    assert!(findings.acknowledged > 100);
    assert_eq!((findings.lost, findings.duplicated, findings.different), (0, 0, 0));
    // Of its last second the ledger knows nothing; but what the store holds of it is this run's, too.
    assert_eq!((findings.found + findings.unacknowledged_found, findings.foreign), (held, 0));
}

fn read_dir(dir: &Path) -> Vec<(String, Vec<u8>)> {
    let files = fs::read_dir(dir).unwrap().flatten();
    let mut files: Vec<_> = files
        .map(|file| (file.file_name().to_string_lossy().into_owned(), fs::read(file.path()).unwrap()))
        .collect();
    files.sort();
    files
}

#[test]
fn check_names_what_is_entered() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("s.yaml"), SCENARIO.replace("TIME", "1s")).unwrap();
    let output = run(folder.path(), &["check", "s.yaml"]);
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    assert!(
        stdout(&output).contains("each write of Message, First is entered in the ledger"),
        "{}",
        stdout(&output)
    );
}
