//! Files and command lines of other tools become requests and scenarios.
//!
//! [`scenario`] makes a scenario of a URL, an OpenAPI document or a HAR recording, [`plan`] of a plan of JMeter or Tsung, a
//! collection of Postman or a script of Artillery. [`list()`] reads a file of requests:
//! URLs, vegeta's targets, command lines of curl. [`curl`] reads one such command line, and [`shell`] its quotes.
//! What is read comes from elsewhere: it is bounded, nothing in it becomes a hole of the scenario, and secrets become
//! settings.
//!
//! ```
//! let imported = tidemark_import::scenario("http://127.0.0.1:8080/orders", &[])?;
//! assert!(imported.checked()?.contains("- GET: /orders"));
//!
//! let words = tidemark_import::shell::words("curl -X PUT -d n=1 http://127.0.0.1:8080/orders/7")?;
//! let curl = tidemark_import::curl::parse(&words)?;
//! assert_eq!((curl.target.method.as_str(), curl.target.path()), ("PUT", "/orders/7"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod artillery;
mod checks;
pub mod curl;
mod draft;
mod error;
mod foreign;
mod form;
mod har;
mod holes;
mod javascript;
mod jmeter;
mod left_out;
mod list;
mod names;
mod openapi;
mod page;
mod percent;
mod plan;
mod postman;
mod reach;
pub mod shell;
mod target;
mod tree;
mod tsung;
mod xml;

use std::fs::File;
use std::io::Read;
use std::path::{Component, Path, PathBuf};

use serde::Deserialize;
use serde::de::IgnoredAny;
use tidemark_scenario::source::{Load, Map, Scalar, Scenario, Value};

pub use error::ImportError;
pub use foreign::{Tool, of_file};
pub use left_out::LeftOut;
pub use list::{Defaults, List, list, list_of};
pub use page::OF_CURL;
pub use reach::{Reach, TlsReach};
pub use target::{Target, header, method, origin, parse_url, read_small};

/// Largest file that is read, bytes.
const FILE_BYTES_MAX: u64 = 64 << 20;
/// Most bytes of one that is YAML: as of a scenario.
const YAML_BYTES_MAX: u64 = 4 << 20;
/// How a file's name ends, so that it is hardly a URL.
const FILES: [&str; 4] = [".har", ".json", ".yaml", ".yml"];

/// The value of a setting that the plan has no value for: a person has to give one.
pub const UNSET: &str = "FILL-IN";

/// Why `--host` is refused.
const ONLY_HOSTS: &str = "--host is for recordings (HAR files); leave it out";

/// What came of something foreign.
#[derive(Debug)]
pub struct Imported {
    /// The scenario.
    pub scenario: Scenario,
    /// What of it is not in the scenario, for the person who asked; empty where all is.
    pub remark: String,
    /// What of a plan of another load tool has no counterpart; empty elsewhere.
    pub left_out: Vec<LeftOut>,
    /// Secrets that stand in the plan itself, by the settings that stand for them.
    pub given: Vec<(String, String)>,
}

impl From<Scenario> for Imported {
    fn from(scenario: Scenario) -> Imported {
        Imported { scenario, remark: String::new(), left_out: Vec::new(), given: Vec::new() }
    }
}

impl Imported {
    /// Its settings that a run must be given, with a value for each that stands in for the secret.
    pub fn secrets(&self) -> Vec<(String, String)> {
        let is_secret = |value: &Value| value.as_str().is_some_and(|text| text.starts_with("${env("));
        let settings = self.scenario.settings.entries().iter().filter(|entry| is_secret(&entry.value));
        settings.map(|entry| (entry.key.clone(), "given".to_owned())).collect()
    }

    /// Settings without a value that are the URL of the system or of a target.
    fn unset_urls(&self) -> Vec<String> {
        let targets = self.scenario.targets.entries().iter().filter_map(|entry| match &entry.value {
            Value::Map(target) => target.get("url").and_then(Value::as_str),
            _ => None,
        });
        let system = self.scenario.system.as_ref().and_then(|system| system.url.as_ref()).map(Scalar::as_str);
        let name = |url: &str| Some(url.strip_prefix("${")?.strip_suffix('}')?.to_owned());
        let is_unset =
            |name: &String| self.scenario.settings.get(name).and_then(Value::as_str) == Some(UNSET);
        system.into_iter().chain(targets).filter_map(name).filter(is_unset).collect()
    }

    /// The scenario as YAML, checked as every file is.
    ///
    /// # Errors
    /// Where the checker finds a mistake in it, which is one of the importer's.
    pub fn checked(&self) -> Result<String, ImportError> {
        self.checked_in(Path::new("."))
    }

    /// The same of one that lies in a folder, with the files that it names.
    ///
    /// # Errors
    /// As of [`checked`](Imported::checked).
    pub fn checked_in(&self, folder: &Path) -> Result<String, ImportError> {
        let text = self.scenario.to_yaml();
        let mut given = self.secrets();
        given.extend(self.unset_urls().into_iter().map(|name| (name, "http://127.0.0.1".to_owned())));
        let (_, mistakes) = tidemark_scenario::check_text("scenario.yaml", &text, folder, &given);
        if mistakes.has_errors() {
            return Err(ImportError::new(format!("no scenario can be made of it: {mistakes}")));
        }
        Ok(text)
    }
}

/// The scenario of a URL or a file. `hosts`: those that are driven of a recording, the first as the system; empty for
/// those of its page.
///
/// # Errors
/// Where nothing can be made of it, with the place and a way out.
pub fn scenario(from: &str, hosts: &[String]) -> Result<Imported, ImportError> {
    let file = Path::new(from);
    let is_file = !from.contains("://")
        && (file.exists() || FILES.iter().any(|end| from.ends_with(end)) || foreign::has_its_name(file));
    if !is_file {
        return match hosts {
            [] => Ok(page::scenario(from)?.into()),
            _ => Err(ImportError::new(ONLY_HOSTS)),
        };
    }
    if let Some(reason) = foreign::of_tool(file) {
        return Err(ImportError::new(reason));
    }
    scenario_of(file, &read(file)?, hosts)
}

/// The same of a file's text; `file` is what messages call it, and where the files lie that it refers to.
///
/// # Errors
/// As of [`scenario`].
pub fn scenario_of(file: &Path, text: &str, hosts: &[String]) -> Result<Imported, ImportError> {
    let from = &file.display().to_string();
    let only_hosts = || ImportError::new(ONLY_HOSTS);
    match kind(from, text)? {
        Kind::Recording => har::scenario(from, text, hosts),
        _ if !hosts.is_empty() => Err(only_hosts()),
        Kind::Json => openapi::scenario(from, &bundled(file, json(from, text)?)),
        Kind::Yaml => openapi::scenario(from, &bundled(file, yaml(from, text)?)),
    }
}

/// What a plan is read with.
#[derive(Debug, Clone, Copy, Default)]
pub struct PlanOptions<'o> {
    /// What JMeter is given with `-J`.
    pub properties: &'o [(String, String)],
    /// Of Postman the file with the environment, of Artillery the name of one in the script.
    pub environment: Option<&'o str>,
    /// Whose plan it is; none where its content tells.
    pub tool: Option<Tool>,
}

/// The scenario of another load tool's plan. `beside` is the folder in which the scenario is to lie, so that it names the
/// plan's files from there.
///
/// # Errors
/// Where it is no plan, or nothing in it can be sent, with the place.
pub fn plan(file: &Path, options: &PlanOptions<'_>, beside: &Path) -> Result<Imported, ImportError> {
    plan_of(file, &read(file)?, options, beside)
}

/// The same of what a reader gives; `file` is what messages call it, and where the files lie that it names.
///
/// # Errors
/// As of [`plan`].
pub fn plan_from(
    from: impl Read,
    file: &Path,
    options: &PlanOptions<'_>,
    beside: &Path,
) -> Result<Imported, ImportError> {
    let text = read_all(from, file)?;
    let is_plan = options.tool.is_some() || foreign::plan_of(&text).is_some();
    match foreign::of_no_file(&text).filter(|_| !is_plan) {
        Some(told) => Err(ImportError::new(format!("{}: {told}", file.display()))),
        None => plan_of(file, &text, options, beside),
    }
}

/// The same of a plan's text; `file` is what messages call it, and where the files lie that it names.
///
/// # Errors
/// As of [`plan`].
pub fn plan_of(
    file: &Path,
    text: &str,
    options: &PlanOptions<'_>,
    beside: &Path,
) -> Result<Imported, ImportError> {
    let name = file.display().to_string();
    let folder = folder_of(file);
    let Some(tool) = options.tool.or_else(|| foreign::plan_of(text)) else {
        return Err(ImportError::new(format!(
            "{name}: this is not a plan of JMeter or Tsung, a collection of Postman or a script of Artillery; a HAR file or an OpenAPI document \
             is read by: tidemark init"
        )));
    };
    let PlanOptions { properties, environment, .. } = *options;
    if tool != foreign::Tool::JMeter && !properties.is_empty() {
        return Err(ImportError::new(format!("{name}: -J is for plans of JMeter; leave it out")));
    }
    let has_environment = matches!(tool, foreign::Tool::Postman | foreign::Tool::Artillery);
    if environment.is_some() && !has_environment {
        return Err(ImportError::new(format!(
            "{name}: --environment is for Postman and Artillery; leave it out"
        )));
    }
    let prefix = prefix(&folder, beside);
    let plan = plan::Plan { name: &name, text, folder: &folder, prefix: &prefix, properties, environment };
    match tool {
        foreign::Tool::JMeter => jmeter::scenario(&plan),
        foreign::Tool::Tsung => tsung::scenario(&plan),
        foreign::Tool::Postman => postman::scenario(&plan),
        foreign::Tool::Artillery => artillery::scenario(&plan),
    }
}

/// Whether a file is the plan of another load tool, by its beginning.
pub fn is_plan(file: &Path) -> bool {
    foreign::is_plan(file)
}

/// The folder that a file lies in.
fn folder_of(file: &Path) -> PathBuf {
    match file.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent.to_owned(),
        _ => PathBuf::from("."),
    }
}

/// What stands before the name of a file in one folder where it is named from another.
fn prefix(folder: &Path, from: &Path) -> String {
    let whole = |path: &Path| path.canonicalize().ok();
    let (Some(folder), Some(from)) = (whole(folder), whole(from)) else { return String::new() };
    let common = folder.components().zip(from.components()).take_while(|(one, other)| one == other).count();
    let up = from.components().skip(common).map(|_| Component::ParentDir);
    let path: PathBuf = up.chain(folder.components().skip(common)).collect();
    if path.as_os_str().is_empty() { String::new() } else { format!("{}/", path.display()) }
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

fn kind(name: &str, text: &str) -> Result<Kind, ImportError> {
    if !text.trim_start().starts_with('{') {
        return Ok(Kind::Yaml);
    }
    let head: Head = serde_json::from_str(text).map_err(|error| unreadable(name, &error))?;
    Ok(if head.log.is_some() { Kind::Recording } else { Kind::Json })
}

fn json(name: &str, text: &str) -> Result<serde_json::Value, ImportError> {
    serde_json::from_str(text).map_err(|error| unreadable(name, &error))
}

fn yaml(name: &str, text: &str) -> Result<serde_json::Value, ImportError> {
    if text.trim().is_empty() {
        return Err(ImportError::new(format!("{name} is empty; give an OpenAPI document or a HAR file")));
    }
    let value = Value::from_yaml(name, text).map_err(|diagnostics| {
        let is_large = text.len() as u64 > YAML_BYTES_MAX;
        let hint = if is_large {
            format!("\nAs JSON it may have {} MiB.", FILE_BYTES_MAX >> 20)
        } else {
            String::new()
        };
        ImportError::new(format!("{diagnostics}{hint}"))
    })?;
    Ok(as_json(&value))
}

fn unreadable(name: &str, error: &serde_json::Error) -> ImportError {
    let reason = error.to_string();
    let reason = reason.split(" at line ").next().unwrap_or_default();
    ImportError::new(format!(
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

fn read(file: &Path) -> Result<String, ImportError> {
    let opened = File::open(file);
    read_all(
        opened.map_err(|error| ImportError::new(format!("cannot read {}: {error}", file.display())))?,
        file,
    )
}

fn read_all(from: impl Read, file: &Path) -> Result<String, ImportError> {
    let cannot = |reason: String| ImportError::new(format!("cannot read {}: {reason}", file.display()));
    let mut bytes = Vec::new();
    from.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes).map_err(|error| cannot(error.to_string()))?;
    if bytes.len() as u64 > FILE_BYTES_MAX {
        return Err(cannot(format!("it is larger than {} MiB", FILE_BYTES_MAX >> 20)));
    }
    foreign::text(bytes).map_err(|reason| cannot(reason.into()))
}

/// Adds a header; one that is there already is sent several times.
pub fn add_header(headers: &mut Map, name: &str, value: String) {
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
