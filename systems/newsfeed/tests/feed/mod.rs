//! A running news feed for tests, and what its clients do all the time.
#![allow(dead_code)] // each test file uses another part

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::Path;
use std::thread::JoinHandle;

use serde_json::{Value, json};
use tidemark_newsfeed::NewsFeed;
use tidemark_service::{Durability, Options, ReferenceSystem, Served, ServiceError, Stop};

use crate::client::{Client, Reply, eventually};

pub fn options(dir: Option<&Path>, settings: &[(&str, &str)]) -> Options {
    let settings: BTreeMap<_, _> =
        settings.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
    Options {
        listen: SocketAddr::from(([127, 0, 0, 1], 0)),
        data_dir: dir.map(Path::to_owned),
        durability: if dir.is_some() { Durability::Synced } else { Durability::Memory },
        workers: Some(2),
        events: None,
        settings,
        announce: false,
    }
}

pub struct Running {
    pub addr: SocketAddr,
    stop: Stop,
    thread: Option<JoinHandle<Result<Served, ServiceError>>>,
}

impl Running {
    pub fn start(settings: &[(&str, &str)]) -> Self {
        Self::start_in(None, settings)
    }

    pub fn start_in(dir: Option<&Path>, settings: &[(&str, &str)]) -> Self {
        Self::serve(options(dir, settings))
    }

    pub fn serve(options: Options) -> Self {
        let server = NewsFeed::bind(options).unwrap();
        let (addr, stop) = (server.addr(), Stop::new());
        let triggered = stop.triggered();
        let thread = std::thread::spawn(move || server.serve(triggered));
        let mut client = Client::new(addr);
        eventually("ready", || (client.get("/health").status == 200).then_some(()));
        Running { addr, stop, thread: Some(thread) }
    }

    pub fn client(&self) -> Client {
        Client::new(self.addr)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop.trigger();
        let ended = self.thread.take().unwrap().join();
        if !std::thread::panicking() {
            assert_eq!(ended.unwrap().unwrap().connections_cut, 0);
        }
    }
}

pub const JSON: (&str, &str) = ("content-type", "application/json");

pub fn send(client: &mut Client, path: &str, body: &Value) -> Reply {
    client.request("POST", path, &[JSON], body.to_string().as_bytes())
}

pub fn made(client: &mut Client, path: &str, body: &Value) -> Value {
    let reply = send(client, path, body);
    assert_eq!(reply.status, 200, "{path} {body}: {}", reply.text());
    reply.json()
}

/// A participant's id.
pub fn participant(client: &mut Client, name: &str) -> u64 {
    made(client, "/participant", &json!({"name": name}))["id"].as_u64().unwrap()
}

pub fn befriend(client: &mut Client, from: u64, to: u64) -> Value {
    made(client, &format!("/participant/{from}/friends"), &json!({"to": format!("/participant/{to}")}))
}

pub fn post(client: &mut Client, poster: u64, story: &str) -> Value {
    made(client, &format!("/participant/{poster}/outbound"), &json!({"subject": "s", "story": story}))
}
