//! `tidemark init`: a first scenario from a URL, an OpenAPI document or a recording.
//!
//! What is read comes from elsewhere: it is bounded, nothing in it becomes a hole of the scenario, and what is written
//! is checked before anybody sees it.

mod har;
mod names;
mod openapi;
mod page;

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use clap::Args;
use serde::Deserialize;
use serde::de::IgnoredAny;
use tidemark_scenario::source::{Load, Map, Scalar, Scenario, Value};

use crate::failure::Failure;
use crate::{foreign, output, results, scenario};

/// Largest file that is read, bytes.
const FILE_BYTES_MAX: u64 = 64 << 20;
/// Most bytes of one that is YAML: as of a scenario.
const YAML_BYTES_MAX: u64 = 4 << 20;
/// How a file's name ends, so that it is hardly a URL.
const FILES: [&str; 4] = [".har", ".json", ".yaml", ".yml"];

/// `tidemark init`
#[derive(Debug, Args)]
#[command(after_help = "\
A URL becomes a scenario of one request. An OpenAPI document (2 or 3, JSON or YAML) becomes one with a step for each \
GET, and for what writes a step that is commented out; credentials become settings. A HAR file, as browsers and proxies save it, becomes one with its requests to \
the page's host, in order, and the pauses between them; cookies, passwords and tokens are left out.

Examples:
  tidemark init http://127.0.0.1:8080/ > my.yaml
  tidemark init openapi.json -o my.yaml
  tidemark init shop.har --host api.shop.example -o my.yaml")]
pub struct InitArguments {
    /// A URL, an OpenAPI document, or a HAR file
    #[arg(value_name = "URL|FILE")]
    pub from: String,
    /// Write the scenario to this new file [default: standard output]
    #[arg(short, long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// Take a recording's requests to this host only, not those to its page's: HOST, HOST:PORT or *.DOMAIN (repeatable; the first is the system)
    #[arg(long = "host", value_name = "HOST")]
    pub hosts: Vec<String>,
}

/// Writes a first scenario.
pub fn init(arguments: &InitArguments) -> Result<u8, Failure> {
    let out = arguments.out.as_deref().filter(|file| !results::is_stdout(file));
    if let Some(file) = out.filter(|file| fs::symlink_metadata(file).is_ok()) {
        return Err(is_there(file));
    }
    let made = made(arguments)?;
    let text = made.scenario.to_yaml();
    let mistakes = scenario::diagnostics("scenario.yaml", &text, &made.secrets());
    if mistakes.has_errors() {
        // what can be read can be written; whoever comes here has found a mistake of ours
        return Err(Failure::usage(format!("{}: no scenario can be made of it: {mistakes}", arguments.from)));
    }
    match out {
        Some(file) => save(file, &text)?,
        None => output::print(&text)?,
    }
    output::remark(&made.remark);
    let secrets = made.secrets();
    if !secrets.is_empty() {
        let names: Vec<&str> = secrets.iter().map(|(name, _)| name.as_str()).collect();
        output::remark(&format!(
            "Give a run these settings, with --set or by the environment variables in the scenario: {}",
            names.join(", ")
        ));
    }
    Ok(tidemark_lab::EXIT_PASS)
}

/// What came of something foreign.
#[derive(Debug)]
struct Made {
    scenario: Scenario,
    /// What of it is not in the scenario, for the person who asked; empty where all is.
    remark: String,
}

impl From<Scenario> for Made {
    fn from(scenario: Scenario) -> Made {
        Made { scenario, remark: String::new() }
    }
}

impl Made {
    /// Its settings that a run must be given, with values for them.
    fn secrets(&self) -> Vec<(String, String)> {
        let is_secret = |value: &Value| value.as_str().is_some_and(|text| text.starts_with("${env("));
        let settings = self.scenario.settings.entries().iter().filter(|entry| is_secret(&entry.value));
        settings.map(|entry| (entry.key.clone(), "given".to_owned())).collect()
    }
}

/// The scenario, whatever it is made from.
fn made(arguments: &InitArguments) -> Result<Made, Failure> {
    let from = &arguments.from;
    let file = Path::new(from);
    let is_file = !from.contains("://")
        && (file.exists() || FILES.iter().any(|end| from.ends_with(end)) || foreign::has_its_name(file));
    let only_hosts = || Failure::usage("--host is for recordings (HAR files); leave it out");
    if !is_file {
        return if arguments.hosts.is_empty() { Ok(page::scenario(from)?.into()) } else { Err(only_hosts()) };
    }
    if let Some(failure) = foreign::of_tool(file) {
        return Err(failure);
    }
    let text = read(file)?;
    match kind(from, &text)? {
        Kind::Recording => har::scenario(from, &text, &arguments.hosts),
        _ if !arguments.hosts.is_empty() => Err(only_hosts()),
        Kind::Json => openapi::scenario(from, &bundled(file, json(from, &text)?)),
        Kind::Yaml => openapi::scenario(from, &bundled(file, yaml(from, &text)?)),
    }
}

/// A document with the files beside it that it refers to.
fn bundled(file: &Path, document: serde_json::Value) -> serde_json::Value {
    openapi::bundle::bundled(file, document, |part| {
        let name = part.display().to_string();
        let text = read(part).ok()?;
        json(&name, &text).or_else(|_| yaml(&name, &text)).ok()
    })
}

/// What a file may be.
enum Kind {
    Recording,
    Json,
    Yaml,
}

/// The keys that tell.
#[derive(Deserialize)]
struct Head {
    log: Option<IgnoredAny>,
}

fn kind(name: &str, text: &str) -> Result<Kind, Failure> {
    if !text.trim_start().starts_with('{') {
        return Ok(Kind::Yaml);
    }
    let head: Head = serde_json::from_str(text).map_err(|error| unreadable(name, &error))?;
    Ok(if head.log.is_some() { Kind::Recording } else { Kind::Json })
}

fn json(name: &str, text: &str) -> Result<serde_json::Value, Failure> {
    serde_json::from_str(text).map_err(|error| unreadable(name, &error))
}

fn yaml(name: &str, text: &str) -> Result<serde_json::Value, Failure> {
    if text.trim().is_empty() {
        return Err(Failure::usage(format!("{name} is empty; give an OpenAPI document or a HAR file")));
    }
    let value = Value::from_yaml(name, text).map_err(|diagnostics| {
        let is_large = text.len() as u64 > YAML_BYTES_MAX;
        let hint = if is_large {
            format!("\nAs JSON it may have {} MiB.", FILE_BYTES_MAX >> 20)
        } else {
            String::new()
        };
        Failure::usage(format!("{diagnostics}{hint}"))
    })?;
    Ok(as_json(&value))
}

fn unreadable(name: &str, error: &serde_json::Error) -> Failure {
    let reason = error.to_string();
    let reason = reason.split(" at line ").next().unwrap_or_default();
    Failure::usage(format!(
        "{name}:{}:{}: this is not an OpenAPI document or a HAR file: {reason}",
        error.line(),
        error.column()
    ))
}

/// What YAML holds, as JSON.
fn as_json(value: &Value) -> serde_json::Value {
    match value {
        Value::Scalar(scalar) if scalar.is_bare() => {
            serde_json::from_str(scalar.as_str()).unwrap_or_else(|_| scalar.as_str().into())
        }
        Value::Scalar(scalar) => scalar.as_str().into(),
        Value::List(items) => items.iter().map(as_json).collect(),
        Value::Map(map) => {
            map.entries().iter().map(|entry| (entry.key.clone(), as_json(&entry.value))).collect()
        }
    }
}

fn read(file: &Path) -> Result<String, Failure> {
    let cannot = |reason: String| Failure::usage(format!("cannot read {}: {reason}", file.display()));
    let mut bytes = Vec::new();
    File::open(file)
        .and_then(|opened| opened.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes))
        .map_err(|error| cannot(error.to_string()))?;
    if bytes.len() as u64 > FILE_BYTES_MAX {
        return Err(cannot(format!("it is larger than {} MiB", FILE_BYTES_MAX >> 20)));
    }
    foreign::text(bytes).map_err(|reason| cannot(reason.into()))
}

/// A file that was there stays as it is.
fn save(file: &Path, text: &str) -> Result<(), Failure> {
    let mut made = OpenOptions::new().write(true).create_new(true).open(file).map_err(|error| match error
        .kind()
    {
        io::ErrorKind::AlreadyExists => is_there(file),
        io::ErrorKind::NotFound => {
            Failure::usage(format!("cannot write {}: there is no such folder; make it first", file.display()))
        }
        _ => Failure::unwritable(format!("cannot write {}: {error}", file.display())),
    })?;
    if let Err(error) = made.write_all(text.as_bytes()) {
        // half a scenario is of no use
        let _ = fs::remove_file(file);
        return Err(Failure::unwritable(format!("cannot write {}: {error}", file.display())));
    }
    output::remark(&format!(
        "{0} is written; try one session of it, then all:\n  tidemark run {0} --once -v\n  tidemark run {0}",
        file.display()
    ));
    Ok(())
}

fn is_there(file: &Path) -> Failure {
    Failure::usage(format!("{} is there already and stays as it is; name a new file", file.display()))
}

/// Adds a header; one that is there already is sent several times.
pub(crate) fn add_header(headers: &mut Map, name: &str, value: String) {
    let known = headers.entries().iter().find(|known| known.key.eq_ignore_ascii_case(name));
    let Some((name, before)) = known.map(|known| (known.key.clone(), known.value.clone())) else {
        return headers.insert(name, value);
    };
    let mut values = match before {
        Value::List(values) => values,
        one => vec![one],
    };
    values.push(value.into());
    headers.insert(name, Value::List(values));
}

/// Settings with the number of users, for a closed load.
fn users() -> Map {
    let mut settings = Map::new();
    settings.insert_with_comment("replaced with --set users=100", "users", 10u64);
    settings
}

/// Users who come back again and again.
fn closed(warm_up: Scalar, hold: Scalar) -> Load {
    Load {
        comment: "How many users there are, and for how long; in its place `rate: 100/s` makes them arrive."
            .into(),
        users: Some("${users}".into()),
        warm_up: Some(warm_up),
        hold: Some(hold),
        ..Load::default()
    }
}

/// What decides pass or fail at first.
fn objectives() -> Vec<Value> {
    vec!["p99 < 250ms".into(), "errors < 0.1%".into()]
}

#[cfg(test)]
mod tests;
