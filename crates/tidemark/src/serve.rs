//! `tidemark serve`: a shipped system in this process.

use std::io::Read;

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use tidemark_service::{LogForm, Options, ServiceError, Stop, SystemEntry, start_logs};
use tidemark_store::scheduling::take_no_core_from_others;

use crate::args::{Durability, ServeArguments};
use crate::failure::Failure;
use crate::output::{self, OwnDir};
use crate::scenario::nearest_or_all;
use crate::systems::{SYSTEMS, shipped};

/// Serves a system until SIGTERM or SIGINT.
pub fn serve(mut arguments: ServeArguments) -> Result<u8, Failure> {
    let Some(system) = shipped(&arguments.system) else {
        let names = SYSTEMS.iter().map(|system| system.name);
        return Err(Failure::usage(format!(
            "there is no shipped system {}; {}",
            arguments.system,
            nearest_or_all(&arguments.system, names)
        )));
    };
    for (name, variable) in &arguments.settings_from_env {
        let value = std::env::var(variable).map_err(|_| {
            Failure::usage(format!(
                "--set-env {name}={variable}: the environment variable {variable} is not set or not UTF-8; set it, or give the setting with --set"
            ))
        })?;
        arguments.settings.push((name.clone(), value));
    }
    start_logs(if arguments.log_json { LogForm::Json } else { LogForm::Automatic });
    // For all threads to come. On cores that it shares, a client then hands over all that it has before a worker answers,
    // and one answers all of that before the client runs again: fewer changes between them, and no request waits longer.
    take_no_core_from_others();
    let stop = Stop::new();
    stop_with_signals(stop.clone())?;
    if arguments.stop_with_parent {
        stop_with_parent(stop.clone())?;
    }
    if !system.tells_operations && arguments.events.is_some() {
        return Err(Failure::usage(format!(
            "{} does not log its operations; leave out --events",
            system.name
        )));
    }
    let data = data_dir(system, &arguments)?;
    let options = Options {
        listen: arguments.listen,
        data_dir: data.path.clone(),
        durability: durability(arguments.durability),
        workers: arguments.workers.map(usize::from),
        events: arguments.events,
        settings: arguments.settings.into_iter().collect(),
        announce: true,
    };
    let server = (system.bind)(options).map_err(failure)?;
    server.serve(stop.triggered()).map_err(failure)?;
    Ok(tidemark_lab::EXIT_PASS)
}

/// The first SIGTERM or SIGINT stops gracefully, the second at once. They are watched before anything is announced,
/// so that whoever reads the announcement can stop us from then on.
fn stop_with_signals(stop: Stop) -> Result<(), Failure> {
    let mut signals = Signals::new([SIGTERM, SIGINT])
        .map_err(|error| Failure::broken(format!("cannot watch signals: {error}")))?;
    start_thread("signals", move || {
        for _ in signals.forever() {
            if stop.is_triggered() {
                std::process::exit(tidemark_lab::EXIT_INTERRUPTED.into());
            }
            stop.trigger();
        }
    })
}

/// Whoever started this holds our standard input open; its end is the end of the parent.
fn stop_with_parent(stop: Stop) -> Result<(), Failure> {
    start_thread("parent", move || {
        let mut input = std::io::stdin().lock();
        let mut ignored = [0; 256];
        while !matches!(input.read(&mut ignored), Ok(0) | Err(_)) {}
        stop.trigger();
    })
}

fn start_thread(name: &str, work: impl FnOnce() + Send + 'static) -> Result<(), Failure> {
    let thread = std::thread::Builder::new().name(name.into()).spawn(work);
    thread.map(drop).map_err(|error| Failure::broken(format!("cannot start a thread: {error}")))
}

fn failure(error: ServiceError) -> Failure {
    match error {
        ServiceError::Settings(error) => Failure::usage(format!("--set: {error}")),
        error => Failure::usage(error.to_string()),
    }
}

/// The word of the command line as the stores know it.
fn durability(word: Durability) -> tidemark_service::Durability {
    match word {
        Durability::Synced => tidemark_service::Durability::Synced,
        Durability::Buffered => tidemark_service::Durability::Buffered,
        Durability::Memory => tidemark_service::Durability::Memory,
    }
}

/// Where a system keeps its data: the directory that was named, or a temporary one.
fn data_dir(system: &SystemEntry, arguments: &ServeArguments) -> Result<OwnDir, Failure> {
    if !system.keeps_data && arguments.data.is_some() {
        return Err(Failure::usage(format!("{} stores nothing; leave out --data", system.name)));
    }
    let settings = arguments.settings.iter().cloned().collect();
    let uses_directory =
        (system.uses_directory)(&settings).map_err(|error| failure(ServiceError::Settings(error)))?;
    if !uses_directory {
        return Ok(OwnDir { path: None, temporary: false });
    }
    if arguments.data.is_some() || arguments.durability == Durability::Memory {
        return Ok(OwnDir { path: arguments.data.clone(), temporary: false });
    }
    let dir = std::env::temp_dir().join(format!("tidemark-serve-{}", std::process::id()));
    output::private_dir(&dir).map_err(|error| {
        Failure::usage(format!("cannot make {}: {error}; name a directory with --data", dir.display()))
    })?;
    output::remark(&format!("no --data: the data is in {} and goes when this stops", dir.display()));
    Ok(OwnDir { path: Some(dir), temporary: true })
}
