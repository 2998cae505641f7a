//! Starts a store as a run would, carries a command out beside it, and stops it: for tests and measurements that need one.
//!
//! ```text
//! cargo run -p tidemark-lab --example with_store -- cassandra 'durability: buffered' -- \
//!   cargo test -p tidemark-store --features cassandra --test every_store -- --ignored cassandra::
//! ```
//!
//! The command finds the addresses of the store's clients in `TIDEMARK_TEST_CASSANDRA` (or `_KAFKA`), with commas
//! between, and the processes of its nodes in `TIDEMARK_STORE_PIDS`. What stands before `--` behind the store's name is
//! what `stores:` of a scenario says about it. The exit status is the command's; logs and data are in a folder below
//! `TMPDIR` that is removed, unless this is killed.

use std::env;
use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use tidemark_lab::stores::{Setup, Stores};
use tidemark_lab::{EXIT_USAGE, StopRequest};

const USAGE: &str = "with_store: a store, what the scenario language says about it, `--` and a command, like:
  with_store cassandra 'nodes: 3, durability: buffered' -- env";

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    match carry_out(&arguments) {
        Ok(status) => status,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::from(EXIT_USAGE)
        }
    }
}

fn carry_out(arguments: &[String]) -> Result<ExitCode, Box<dyn Error>> {
    let end = arguments.iter().position(|word| word == "--").ok_or(USAGE)?;
    let (said, command) = (&arguments[..end], &arguments[end + 1..]);
    let (Some((store, said)), Some((program, words))) = (said.split_first(), command.split_first()) else {
        return Err(USAGE.into());
    };
    let text = format!(
        "stores: {{{store}: {{{}}}}}\nsessions: {{a: {{steps: [{{GET: /}}]}}}}\nload: {{users: 1, hold: 1s}}\n",
        said.join(", ")
    );
    let plan = tidemark_scenario::load_text("the command line", &text, Path::new("."), &[])?;
    let folder = Folder::new()?;
    let (data_of, is_linked) = (&|_: &str| None, &|_: &str| false);
    // named cores, all of them: what shares those of a driver would yield to it
    let cores = tidemark_lab::available_cores();
    let setup = Setup { run_dir: folder.0.clone(), cores, keep_data: false, data_of, is_linked };
    // a signal ends this process, and with it its stores
    let stores = Stores::start(&plan.stores, &setup, &|| StopRequest::None, &mut |text| eprintln!("{text}"))?;
    let addresses = stores.manifest().iter().flat_map(|store| store.addresses.clone()).collect::<Vec<_>>();
    let ids = stores.processes().iter().map(|(_, id)| id.to_string()).collect::<Vec<_>>();
    let status = Command::new(program)
        .args(words)
        .env(format!("TIDEMARK_TEST_{}", store.to_uppercase()), addresses.join(","))
        .env("TIDEMARK_STORE_PIDS", ids.join(","))
        .stdin(Stdio::null())
        .status()
        .map_err(|error| format!("{program}: {error}"))?;
    drop(stores);
    Ok(ExitCode::from(status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(1)))
}

/// A folder of its own, removed when dropped.
struct Folder(PathBuf);

impl Folder {
    fn new() -> std::io::Result<Folder> {
        let folder = env::temp_dir().join(format!("tidemark-with-store-{}", std::process::id()));
        std::fs::create_dir_all(&folder)?;
        Ok(Folder(folder))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // what cannot be removed is where the user looks for it
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
