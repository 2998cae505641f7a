//! `tidemark init`: a first scenario from a URL, an OpenAPI document or a recording.
//!
//! What is read comes from elsewhere: it is bounded, nothing in it becomes a hole of the scenario, and what is written
//! is checked before anybody sees it.

mod grpc;

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use clap::Args;

use crate::failure::Failure;
use crate::{hit, output, results};

/// `tidemark init`
#[derive(Debug, Args)]
#[command(after_help = "\
A URL becomes a scenario of one request; of grpc:// it becomes one with the methods that the server's reflection tells. An OpenAPI document (2 or 3, JSON or YAML) becomes one with a step for each \
GET, and for what writes a step that is commented out; credentials become settings. A HAR file, as browsers and proxies save it, becomes one with its requests to \
the page's host, in order, and the pauses between them; cookies, passwords and tokens are left out.

Examples:
  tidemark init http://127.0.0.1:8080/ > my.yaml
  tidemark init grpc://127.0.0.1:50051 > my.yaml
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
    let made = match hit::grpc::is_grpc(&arguments.from) {
        true => grpc::scenario(&arguments.from)?.into(),
        false => tidemark_import::scenario(&arguments.from, &arguments.hosts)?,
    };
    let text = made.checked().map_err(|error| Failure::usage(format!("{}: {error}", arguments.from)))?;
    match out {
        Some(file) => save(file, &text)?,
        None => output::print(&text)?,
    }
    output::remark(&made.remark);
    tell_secrets(&made);
    Ok(tidemark_lab::EXIT_PASS)
}

/// Says which settings of a scenario are secrets, which a run is to be given.
pub fn tell_secrets(made: &tidemark_import::Imported) {
    let secrets = made.secrets();
    if !secrets.is_empty() {
        let names: Vec<&str> = secrets.iter().map(|(name, _)| name.as_str()).collect();
        output::remark(&format!(
            "Give a run these settings, with --set or by the environment variables in the scenario: {}",
            names.join(", ")
        ));
    }
}

/// A file that was there stays as it is.
pub fn save(file: &Path, text: &str) -> Result<(), Failure> {
    let mut made =
        OpenOptions::new().write(true).create_new(true).open(file).map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => is_there(file),
            io::ErrorKind::NotFound => no_folder(file),
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

pub fn no_folder(file: &Path) -> Failure {
    Failure::usage(format!("cannot write {}: there is no such folder; make it first", file.display()))
}

pub fn is_there(file: &Path) -> Failure {
    Failure::usage(format!("{} is there already and stays as it is; name a new file", file.display()))
}
