//! A system is a type and a line in a list: here one that only this test has.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::client::{Client, eventually};
use axum::Router;
use axum::routing::{get, post};
use tidemark_service::encode::counter;
use tidemark_service::{
    Durability, Options, ReferenceSystem, Setting, SettingError, Settings, StartError, Stop, System,
    SystemEntry,
};

/// Says what it was told, louder.
struct Echo {
    ending: String,
    is_in_memory: bool,
}

impl ReferenceSystem for Echo {
    const NAME: &'static str = "echo";
    const DESCRIPTION: &'static str = "says what it was told";
    const SETTINGS: &'static [Setting] = &[
        Setting { name: "ending", default: "!", allowed: "! or ?", help: "what comes behind" },
        Setting {
            name: "store",
            default: "embedded",
            allowed: "embedded or memory",
            help: "where it keeps it",
        },
    ];

    fn read(settings: &Settings<'_>) -> Result<Self, SettingError> {
        let ending = |text: &str| ["!", "?"].contains(&text).then(|| text.to_owned());
        let is_in_memory = |text: &str| ["embedded", "memory"].contains(&text).then_some(text == "memory");
        Ok(Echo {
            ending: settings.text("ending", ending)?,
            is_in_memory: settings.text("store", is_in_memory)?,
        })
    }

    fn body_bytes_max(&self) -> usize {
        8
    }

    fn uses_directory(&self) -> bool {
        !self.is_in_memory
    }

    fn start(self, options: &Options) -> Result<System, StartError> {
        if let Some(dir) = &options.data_dir {
            std::fs::metadata(dir)?;
        }
        let said = Arc::new(AtomicU64::new(0));
        let counted = said.clone();
        let echo = async move |text: String| {
            said.fetch_add(1, Ordering::Relaxed);
            text + &self.ending
        };
        let workers = options.worker_count().to_string();
        let router = Router::new().route("/echo", post(echo)).route("/workers", get(async move || workers));
        Ok(System::new(router)
            .counters(move |e| counter(e, "echo_said", "Times", counted.load(Ordering::Relaxed))))
    }
}

/// The list of a program.
const SYSTEMS: &[SystemEntry] = &[SystemEntry::of::<Echo>()];

fn options(settings: &[(&str, &str)], durability: Durability) -> Options {
    let settings = settings.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
    let listen = "127.0.0.1:0".parse().unwrap();
    Options { listen, settings, durability, workers: Some(2), announce: false, ..Options::default() }
}

#[test]
fn a_system_is_served_with_all_that_every_system_has() {
    let settings = [("ending", "?"), ("stop_deadline_s", "1")];
    let server = (SYSTEMS[0].bind)(options(&settings, Durability::Memory)).unwrap();
    let (addr, stop) = (server.addr(), Stop::new());
    let triggered = stop.triggered();
    let serving = std::thread::spawn(move || server.serve(triggered));
    let mut client = Client::new(addr);
    let health = eventually("ready", || {
        let health = client.get("/health");
        (health.status == 200).then(|| health.json())
    });
    assert_eq!(health["system"], "echo");
    assert_eq!(client.request("POST", "/echo", &[], b"so").text(), "so?");
    assert_eq!(client.get("/workers").text(), "2");
    assert_eq!(client.get("/nowhere").status, 404);
    let metrics = client.get("/metrics");
    assert!(metrics.text().lines().any(|line| line == "echo_said_total 1"), "{}", metrics.text());
    assert_eq!(client.request("POST", "/echo", &[], b"far too long").status, 413);
    stop.trigger();
    serving.join().unwrap().unwrap();
}

#[test]
fn wrong_options_are_refused_before_anything_is_served() {
    let refused = |settings: &[(&str, &str)], durability| {
        (SYSTEMS[0].bind)(options(settings, durability)).map(drop).unwrap_err().to_string()
    };
    assert!(refused(&[("endng", "!")], Durability::Memory).contains("did you mean ending?"));
    assert!(refused(&[("ending", ".")], Durability::Memory).contains("allowed is ! or ?"));
    assert!(refused(&[("head_timeout_s", "0")], Durability::Memory).contains("1 to 86400"));
    assert!(refused(&[], Durability::Synced).contains("needs a data directory"));
    assert!((SYSTEMS[0].bind)(options(&[("store", "memory")], Durability::Synced)).is_ok());
}

#[test]
fn an_entry_tells_beforehand_what_serving_would() {
    let entry = SYSTEMS[0];
    assert!((entry.check_setting)("ending", "?").is_ok());
    assert!((entry.check_setting)("connections_max", "0").is_err());
    assert!(matches!((entry.check_setting)("colour", "red"), Err(SettingError::Unknown { .. })));
    let elsewhere = options(&[("store", "memory")], Durability::Synced).settings;
    assert!(!(entry.uses_directory)(&elsewhere).unwrap());
    assert!((entry.uses_directory)(&Default::default()).unwrap());
    assert!(entry.keeps_data && !entry.store_is_readable);
}
