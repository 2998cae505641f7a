//! `tidemark serve`: a shipped system in this process.

use std::io::Read;
use std::path::PathBuf;

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use tidemark_airline as airline;
use tidemark_ingest as ingest;
use tidemark_scenario::{ShippedSystem, WrongSetting};
use tidemark_service::{LogForm, Setting, SettingError, Stop, start_logs};
use tidemark_store::scheduling::take_no_core_from_others;
use tidemark_trade as trade;

use crate::args::{Durability, ServeArguments};
use crate::failure::Failure;
use crate::output;
use crate::scenario::nearest_or_all;

/// A system that this program can serve.
struct Shipped {
    known: ShippedSystem,
    settings: fn() -> &'static [Setting],
    check_setting: fn(&str, &str) -> Result<(), WrongSetting>,
    /// Serves it until it is asked to stop.
    serve: fn(ServeArguments, Stop) -> Result<(), Failure>,
}

/// A system whose crate has `Options` (which announce, as they come), `settings`, `check_setting` and `serve`, and this
/// error of theirs. Its options begin with what is its own; a place that it needs stays until it has stopped.
macro_rules! shipped {
    ($system:ident, $error:ident, $known:expr, $begin:expr) => {
        Shipped {
            known: ShippedSystem { name: stringify!($system), ..$known },
            settings: $system::settings,
            check_setting: |name, value| {
                $system::check_setting(name, value).map_err(|error| match error {
                    $system::$error::Setting(SettingError::Unknown { .. }) => {
                        WrongSetting::Name(error.to_string())
                    }
                    error => WrongSetting::Value(error.to_string()),
                })
            },
            serve: |arguments, stop| {
                let begin: fn(&ServeArguments) -> Result<($system::Options, Option<Place>), Failure> = $begin;
                let (mut options, _place) = begin(&arguments)?;
                options.listen = arguments.listen;
                options.workers = arguments.workers.map(usize::from);
                options.settings = arguments.settings.into_iter().collect();
                $system::serve(options, stop.triggered()).map(drop).map_err(|error| match error {
                    $system::$error::Setting(error) => Failure::usage(format!("--set: {error}")),
                    error => Failure::usage(error.to_string()),
                })
            },
        }
    };
    // one that keeps data
    ($system:ident, $error:ident, $known:expr) => {
        shipped!($system, $error, $known, |arguments| {
            let place = Place::choose(arguments)?;
            let (data_dir, durability) = (place.dir.clone(), durability(arguments.durability));
            Ok(($system::Options { data_dir, durability, ..Default::default() }, Some(place)))
        })
    };
}

const KEEPS_DATA: ShippedSystem = ShippedSystem { name: "", keeps_data: true, store_is_readable: false };

/// Every shipped system.
const SYSTEMS: &[Shipped] = &[
    shipped!(airline, AirlineError, KEEPS_DATA),
    shipped!(ingest, IngestError, ShippedSystem { store_is_readable: true, ..KEEPS_DATA }),
    shipped!(trade, TradeError, ShippedSystem { keeps_data: false, ..KEEPS_DATA }, |arguments| {
        match arguments.data {
            Some(_) => {
                Err(Failure::usage("trade counts in memory and keeps nothing; leave --data out".to_owned()))
            }
            None => Ok((trade::Options::default(), None)),
        }
    }),
];

/// What a scenario must know of them.
pub const KNOWN: &[ShippedSystem] = &{
    let mut known = [SYSTEMS[0].known; SYSTEMS.len()];
    let mut at = 0;
    while at < SYSTEMS.len() {
        known[at] = SYSTEMS[at].known;
        at += 1;
    }
    known
};

/// Serves a system until SIGTERM or SIGINT.
pub fn serve(arguments: ServeArguments) -> Result<u8, Failure> {
    let Some(system) = shipped(&arguments.system) else {
        let names = SYSTEMS.iter().map(|system| system.known.name);
        return Err(Failure::usage(format!(
            "there is no shipped system {}; {}",
            arguments.system,
            nearest_or_all(&arguments.system, names)
        )));
    };
    start_logs(if arguments.log_json { LogForm::Json } else { LogForm::Automatic });
    // For all threads to come. On cores that it shares, a client then hands over all that it has before a worker answers,
    // and one answers all of that before the client runs again: fewer changes between them, and no request waits longer.
    take_no_core_from_others();
    let stop = Stop::new();
    stop_with_signals(stop.clone())?;
    if arguments.stop_with_parent {
        stop_with_parent(stop.clone())?;
    }
    (system.serve)(arguments, stop)?;
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

fn shipped(name: &str) -> Option<&'static Shipped> {
    SYSTEMS.iter().find(|system| system.known.name == name)
}

/// Whether a shipped system takes a setting, as far as its program can tell beforehand.
pub fn check_setting(system: &str, name: &str, value: &str) -> Result<(), WrongSetting> {
    shipped(system).map_or(Ok(()), |system| (system.check_setting)(name, value))
}

/// The settings of every shipped system, for the help.
pub fn settings_help() -> String {
    let line = |Setting { name, default, allowed, help }: &Setting| {
        format!("  {name:<16} {help} (from {allowed}; else {default})\n")
    };
    let of_one = |system: &Shipped| {
        let lines: String = (system.settings)().iter().map(line).collect();
        format!("Settings of {}:\n{lines}", system.known.name)
    };
    SYSTEMS.iter().map(of_one).collect::<Vec<_>>().join("\n")
}

/// The word of the command line as the stores know it.
fn durability(word: Durability) -> airline::Durability {
    match word {
        Durability::Synced => airline::Durability::Synced,
        Durability::Buffered => airline::Durability::Buffered,
        Durability::Memory => airline::Durability::Memory,
    }
}

/// The settings that say where a system keeps its data: all of a list, or all of another, where it has no directory of its
/// own; and the value for that.
const STORES: [&[&str]; 2] = [&["store"], &["customers_in", "sessions_in", "bookings_in"]];
const EMBEDDED: &str = "embedded";

/// Where a system keeps its data: the directory that was named, or a temporary one that goes with this.
struct Place {
    dir: Option<PathBuf>,
    temporary: bool,
}

impl Place {
    fn choose(arguments: &ServeArguments) -> Result<Place, Failure> {
        let is_elsewhere = |name: &&str| {
            let mut settings = arguments.settings.iter();
            settings.any(|(given, store)| given == name && store.trim() != EMBEDDED)
        };
        if STORES.iter().any(|names| names.iter().all(&is_elsewhere)) {
            return Ok(Place { dir: None, temporary: false });
        }
        if arguments.data.is_some() || arguments.durability == Durability::Memory {
            return Ok(Place { dir: arguments.data.clone(), temporary: false });
        }
        let dir = std::env::temp_dir().join(format!("tidemark-serve-{}", std::process::id()));
        output::private_dir(&dir).map_err(|error| {
            Failure::usage(format!("cannot make {}: {error}; name a directory with --data", dir.display()))
        })?;
        output::remark(&format!("no --data: the data is in {} and goes when this stops", dir.display()));
        Ok(Place { dir: Some(dir), temporary: true })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if let Some(dir) = self.dir.as_deref().filter(|_| self.temporary) {
            // what stays is in the system's folder for temporary files
            let _ = std::fs::remove_dir_all(dir);
        }
    }
}
