//! The message intake on stores that a run starts: scenarios of it, how they are run, and what came of its messages.
#![allow(dead_code, reason = "each test binary uses its own part")]

use std::fs;
use std::io::Read;
use std::path::Path;
use std::process::{Output, Stdio};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::common::tidemark;

/// Longest time that a run may take on a busy machine.
const RUN_PATIENCE: Duration = Duration::from_secs(600);

/// Messages of users in turn, each entered in the ledger, each with a minute for its answer: not so many that all cores are busy.
const SESSIONS: &str = r#"
feeders:
  user: {from: 1, to: 1000, digits: 10}
sessions:
  sender:
    steps:
      - take: user
      - GET: /m
        label: Message
        ledger: {content: "${user}${now()}ABC${entry}${check}41.7127837,42.7127837", as: message}
        query: {c: "${message}"}
        check: {status: 200, body: {equals: OK}}
        timeout: 60s
      - think: 10ms
"#;

/// Writes a scenario into a folder: these messages, beside what the test says of system, stores, load and faults.
pub fn write_scenario(folder: &Path, name: &str, said: &str) {
    fs::write(folder.join(name), format!("{said}{SESSIONS}")).expect("the scenario is written");
}

/// Runs the program in a folder to its end. Threads read what it prints: a full pipe would hold it up.
pub fn run(folder: &Path, arguments: &[&str]) -> Output {
    fn reader(mut stream: impl Read + Send + 'static) -> JoinHandle<Vec<u8>> {
        std::thread::spawn(move || {
            let mut bytes = Vec::new();
            stream.read_to_end(&mut bytes).expect("output");
            bytes
        })
    }
    let mut child = tidemark()
        .args(arguments)
        .current_dir(folder)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("tidemark starts");
    let stdout = reader(child.stdout.take().expect("a pipe"));
    let stderr = reader(child.stderr.take().expect("a pipe"));
    let begin = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait().expect("wait") {
            break status;
        }
        assert!(begin.elapsed() < RUN_PATIENCE, "{arguments:?} does not end");
        std::thread::sleep(Duration::from_millis(50));
    };
    let [stdout, stderr] = [stdout, stderr].map(|reader| reader.join().expect("output"));
    Output { status, stdout, stderr }
}

/// What it told a person.
pub fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// What a run or its verification found, with `--json`.
pub fn ledger(output: &Output) -> Value {
    let told = stderr(output);
    let result: Value = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}{told}", String::from_utf8_lossy(&output.stdout)));
    let ledger = result["ledger"].clone();
    assert!(ledger["acknowledged"].as_u64().is_some_and(|acknowledged| acknowledged > 0), "{result:#}{told}");
    ledger
}

/// Everything that was acknowledged is there once, as it was sent, whatever the run is worth as a measurement: on a
/// machine as busy as that of a test the driver may be the limit, and what was killed may be back late.
pub fn assert_nothing_lost(ledger: &Value) {
    for number in ["lost", "different", "duplicated"] {
        assert_eq!(ledger[number], 0, "{number}: {ledger:#}");
    }
    assert_eq!(ledger["found"], ledger["acknowledged"], "{ledger:#}");
}
