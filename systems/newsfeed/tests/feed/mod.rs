//! A running news feed for tests, and what its clients do all the time.
#![allow(dead_code)] // each test file uses another part

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::ops::Deref;
use std::path::Path;

use serde_json::{Value, json};
use tidemark_newsfeed::NewsFeed;
use tidemark_service::{Durability, Options, ReferenceSystem};

use crate::client::{Client, Reply, Serving};

pub fn options(dir: Option<&Path>, settings: &[(&str, &str)]) -> Options {
    let settings: BTreeMap<_, _> =
        settings.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
    Options {
        listen: SocketAddr::from(([127, 0, 0, 1], 0)),
        data_dir: dir.map(Path::to_owned),
        durability: if dir.is_some() { Durability::Synced } else { Durability::Memory },
        workers: Some(2),
        settings,
        announce: false,
        ..Options::default()
    }
}

pub struct Running(Serving);

impl Running {
    pub fn start(settings: &[(&str, &str)]) -> Self {
        Self::start_in(None, settings)
    }

    pub fn start_in(dir: Option<&Path>, settings: &[(&str, &str)]) -> Self {
        Self::serve(options(dir, settings))
    }

    pub fn serve(options: Options) -> Self {
        Running(Serving::start(NewsFeed::bind(options).unwrap()))
    }
}

impl Deref for Running {
    type Target = Serving;

    fn deref(&self) -> &Serving {
        &self.0
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(served) = self.0.finish() {
            assert_eq!(served.connections_cut, 0);
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
