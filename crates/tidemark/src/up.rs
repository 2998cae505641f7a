//! `tidemark up`, `roll` and `scale`: a scenario's system kept running, and changed while it runs.
//!
//! `up` listens on a Unix socket that only its user can reach; `roll` and `scale` say there what they want, as one line of
//! JSON, and read lines of what is done until one says that it is over.

use std::io::{BufRead, BufReader, ErrorKind, IsTerminal, Read, Write};
use std::net::SocketAddr;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use clap::Args;
use serde::{Deserialize, Serialize};
use tidemark_lab::interrupt::{Interrupt, StopRequest};
use tidemark_lab::tier::Tier;
use tidemark_lab::up::{Options, Status, Up, socket_of};
use tidemark_lab::{EXIT_INVALID, EXIT_PASS, LabError};
use tidemark_report::units::bytes;
use tidemark_scenario::Experiment;

use crate::args::{address, key_value};
use crate::failure::Failure;
use crate::output::{self, OwnDir};
use crate::scenario;

/// How often the table is made anew.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// How often signals and ends are looked for.
const MIND_EVERY: Duration = Duration::from_millis(50);
/// Longest order and longest line of an answer, bytes.
const LINE_MAX: u64 = 64 * 1024;
/// How long somebody who connects may take to say what is wanted.
const ORDER_WITHIN: Duration = Duration::from_secs(5);

/// `tidemark up`
#[derive(Debug, Args)]
#[command(after_help = "\
Once everything serves, it prints one line on standard output: listening http://ADDRESS. On a terminal a table of all \
processes stands below it; elsewhere it is printed when the state of one changes. Ctrl-C takes everything down.

Examples:
  tidemark up airline --set topology=split --set web=3 --set auth=2
  tidemark up my.yaml --listen 127.0.0.1:8080 --data ./data
  tidemark roll airline            in another terminal: replaces its instances, one after another
  tidemark scale airline web=5")]
pub struct UpArguments {
    /// A scenario file, or the name of a shipped scenario; its load is left out
    #[arg(value_name = "SCENARIO")]
    scenario: String,
    /// Set a setting of the scenario (repeatable)
    #[arg(long = "set", value_name = "KEY=VALUE", value_parser = key_value)]
    settings: Vec<(String, String)>,
    /// Where the system is reached [default: a free port of 127.0.0.1]
    #[arg(long, value_name = "ADDRESS", value_parser = address)]
    listen: Option<SocketAddr>,
    /// Where data and logs are kept [default: a temporary folder, removed at the end unless something failed]
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// What `roll` and `scale` call it [default: the name of the scenario]
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// Print a line of JSON for each state of all processes, once a second, instead of a table; the first is
    /// {"listening": "http://ADDRESS"}
    #[arg(long)]
    json: bool,
}

/// `tidemark roll`
#[derive(Debug, Args)]
#[command(after_help = "\
An instance that is replaced leaves the balancer and the registry, answers what it has, ends, and is started again before the \
next one goes. A shipped system behind a balancer or in a registry fails no request; a command of your own gets SIGTERM \
once it has answered what a balancer had sent to it.

Examples:
  tidemark roll airline
  tidemark roll airline web --to days=60
  tidemark roll airline --to ./target/release/tidemark   with another program")]
pub struct RollArguments {
    /// What `tidemark up` runs: the name of its scenario
    #[arg(value_name = "NAME")]
    name: String,
    /// A service of it [default: every service that has several instances]
    #[arg(value_name = "SERVICE")]
    service: Option<String>,
    /// What the new instances are started with: a setting of theirs as KEY=VALUE, or the path of a program (repeatable)
    #[arg(long = "to", value_name = "KEY=VALUE|PROGRAM")]
    to: Vec<String>,
}

/// `tidemark scale`
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tidemark scale airline web=5
  tidemark scale airline web=2 auth=1")]
pub struct ScaleArguments {
    /// What `tidemark up` runs: the name of its scenario
    #[arg(value_name = "NAME")]
    name: String,
    /// How many instances a service is to have
    #[arg(value_name = "SERVICE=N", required = true, value_parser = service_and_number)]
    services: Vec<(String, usize)>,
}

fn service_and_number(text: &str) -> Result<(String, usize), String> {
    let parts = text.split_once('=').and_then(|(name, count)| Some((name, count.parse().ok()?)));
    match parts {
        Some((name, count)) if !name.is_empty() && count > 0 => Ok((name.to_owned(), count)),
        _ => Err("write SERVICE=N with a number from 1 on, as in web=5".into()),
    }
}

/// What is wanted of a system that runs.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
enum Order {
    Roll { service: Option<String>, settings: Vec<(String, String)>, program: Option<PathBuf> },
    Scale { services: Vec<(String, usize)> },
}

/// What is said of it.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Said {
    Told(String),
    Done,
    Failed { reason: String, status: u8 },
}

/// Starts all that a scenario has but for its load, and keeps it running.
pub fn up(arguments: &UpArguments) -> Result<u8, Failure> {
    let Experiment::One(plan) = scenario::load(&arguments.scenario, &arguments.settings)? else {
        return Err(Failure::usage(
            "`up` runs one scenario, and this compares several; name one of those under `compare:`",
        ));
    };
    let interrupt =
        Interrupt::watch(None).map_err(|error| Failure::broken(format!("cannot watch signals: {error}")))?;
    let stop_request = || interrupt.stop_request();
    let name = arguments.name.clone().unwrap_or_else(|| plan.name.clone());
    let orders = Orders::listen(&name)?;
    let mut dir = match &arguments.data {
        Some(dir) => {
            std::fs::create_dir_all(dir).map_err(|error| {
                Failure::usage(format!("cannot make {}: {error}; choose another with --data", dir.display()))
            })?;
            OwnDir { path: Some(dir.clone()), temporary: false }
        }
        None => OwnDir::temporary("up", "--data")?,
    };
    let place = dir.path.clone().unwrap_or_default();
    // two would configure and stop each other's processes
    let lock = std::fs::File::create(place.join("up.lock"));
    let is_ours = lock.as_ref().is_ok_and(|lock| lock.try_lock().is_ok());
    if !is_ours {
        let reason = "cannot be locked: another `tidemark up` may have it; choose another with --data";
        return Err(Failure::usage(format!("{} {reason}", place.display())));
    }
    let options = Options {
        executable: std::env::current_exe().unwrap_or_else(|_| "tidemark".into()),
        dir: place.canonicalize().unwrap_or(place),
        keep_data: arguments.data.is_some(),
        listen: arguments.listen,
    };
    let mut tell = |text: String| output::remark(&text);
    let started = Up::start(&plan, &options, &stop_request, &mut tell);
    // the logs that a reason names stay
    let has_logs = options.dir.join(tidemark_record::LOGS_DIR).is_dir();
    let is_of_interest = |error: &LabError| has_logs && !matches!(error, LabError::Interrupted(_));
    dir.temporary &= !started.as_ref().is_err_and(is_of_interest);
    let mut up = started?;
    output::print(&match arguments.json {
        true => format!("{}\n", serde_json::json!({"listening": up.url()})),
        false => format!("listening {}\n", up.url()),
    })?;
    let tiers: Vec<Arc<Tier>> = up.tiers().cloned().collect();
    let over = Arc::new(AtomicBool::new(false));
    let taking = orders.take(tiers, Arc::clone(&over))?;
    let mut shown = Shown { json: arguments.json, ..Shown::default() };
    let mut ended = None;
    let mut next = Instant::now();
    while stop_request() == StopRequest::None && ended.is_none() {
        if Instant::now() >= next {
            next = Instant::now() + LOOK_EVERY;
            let all = up.look(&|| stop_request() == StopRequest::None);
            if stop_request() == StopRequest::None {
                shown.show(&all)?;
            }
        }
        ended = up.ended();
        std::thread::sleep(MIND_EVERY);
    }
    over.store(true, Ordering::SeqCst);
    drop(taking);
    up.down(&|| interrupt.stop_request() != StopRequest::Abort);
    dir.temporary &= ended.is_none();
    match ended {
        Some((name, how)) => Err(Failure {
            message: format!("{name} ended by itself: {how}; everything was taken down"),
            status: EXIT_INVALID,
        }),
        None => Ok(EXIT_PASS),
    }
}

/// The table as it stands on the terminal.
#[derive(Default)]
struct Shown {
    json: bool,
    lines: usize,
    /// What was told last where there is no terminal.
    told: String,
}

impl Shown {
    fn show(&mut self, all: &[Status]) -> Result<(), Failure> {
        if self.json {
            let line = serde_json::to_string(all).unwrap_or_default();
            return output::print(&format!("{line}\n"));
        }
        let table = table(all);
        if std::io::stdout().is_terminal() {
            let up = if self.lines == 0 { String::new() } else { format!("\x1b[{}A\x1b[J", self.lines) };
            self.lines = table.lines().count();
            return output::print(&format!("{up}{table}"));
        }
        // figures change all the time; a log has what matters
        let of = |one: &Status| format!("{} {} {:?}", one.name, one.health, one.breakers);
        let told = all.iter().map(of).collect::<Vec<_>>().join("\n");
        if std::mem::replace(&mut self.told, told.clone()) != told {
            output::print(&table)?;
        }
        Ok(())
    }
}

/// All processes, a line each.
fn table(all: &[Status]) -> String {
    let head =
        ["instance", "address", "health", "requests/s", "cores", "memory", "breakers"].map(str::to_owned);
    let row = |one: &Status| {
        let or_dash = |text: Option<String>| text.unwrap_or_else(|| "-".into());
        let breakers = match (&one.breakers[..], one.has_breakers) {
            ([], false) => "-".into(),
            ([], true) => "closed".into(),
            (some, _) => {
                some.iter().map(|(call, state)| format!("{call} {state}")).collect::<Vec<_>>().join(", ")
            }
        };
        [
            one.name.clone(),
            if one.address.is_empty() { "-".into() } else { one.address.clone() },
            one.health.to_owned(),
            or_dash(one.requests_per_s.map(|rate| format!("{rate:.0}"))),
            or_dash(one.cores.map(|cores| format!("{cores:.2}"))),
            or_dash(one.rss_bytes.map(bytes)),
            breakers,
        ]
    };
    let rows: Vec<[String; 7]> = std::iter::once(head).chain(all.iter().map(row)).collect();
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..7).map(width).collect();
    let mut out = String::new();
    for row in &rows {
        let mut line = String::new();
        for (column, cell) in row.iter().enumerate() {
            let width = widths[column];
            line += &if (3..6).contains(&column) {
                format!("{cell:>width$}  ")
            } else {
                format!("{cell:<width$}  ")
            };
        }
        out += line.trim_end();
        out.push('\n');
    }
    out
}

/// Removed when dropped.
struct SocketFile(PathBuf);

impl Drop for SocketFile {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// The socket at which orders are taken.
struct Orders {
    file: SocketFile,
    listener: UnixListener,
}

impl Orders {
    fn listen(name: &str) -> Result<Orders, Failure> {
        let wrong =
            |error: std::io::Error| Failure::broken(format!("cannot listen for `roll` and `scale`: {error}"));
        let path = socket_of(name).map_err(wrong)?;
        if UnixStream::connect(&path).is_ok() {
            return Err(Failure::usage(format!(
                "{name} is up already; stop it, or give this one another --name"
            )));
        }
        // what nobody listens at is left of one that was killed
        let _ = std::fs::remove_file(&path);
        let listener = UnixListener::bind(&path).map_err(wrong)?;
        listener.set_nonblocking(true).map_err(wrong)?;
        Ok(Orders { file: SocketFile(path), listener })
    }

    /// Takes orders, one after another, until all is over.
    fn take(self, tiers: Vec<Arc<Tier>>, over: Arc<AtomicBool>) -> Result<Taking, Failure> {
        let Orders { file, listener } = self;
        let thread = std::thread::Builder::new().name("orders".into()).spawn(move || {
            while !over.load(Ordering::SeqCst) {
                match listener.accept() {
                    Ok((stream, _)) => carry_out(stream, &tiers, &over),
                    Err(_) => std::thread::sleep(MIND_EVERY),
                }
            }
        });
        match thread {
            Ok(thread) => Ok(Taking { _file: file, thread: Some(thread) }),
            Err(error) => Err(Failure::broken(format!("cannot start a thread: {error}"))),
        }
    }
}

/// The thread that takes orders; waited for when dropped.
struct Taking {
    _file: SocketFile,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Drop for Taking {
    fn drop(&mut self) {
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn carry_out(stream: UnixStream, tiers: &[Arc<Tier>], over: &AtomicBool) {
    // whoever is gone is not told
    let _ = stream.set_nonblocking(false).and_then(|()| stream.set_read_timeout(Some(MIND_EVERY)));
    let _ = stream.set_write_timeout(Some(ORDER_WITHIN));
    let Some(line) = line_of(&stream, over) else { return };
    let say = |said: &Said| {
        let text = serde_json::to_string(said).unwrap_or_default();
        let _ = (&stream).write_all(format!("{text}\n").as_bytes());
    };
    let done = serde_json::from_str::<Order>(&line)
        .map_err(|error| LabError::Usage(format!("cannot read the request: {error}")))
        .and_then(|order| {
            order.carry_out(tiers, &|| !over.load(Ordering::SeqCst), &|text| say(&Said::Told(text)))
        });
    match done {
        Ok(()) => say(&Said::Done),
        Err(error) => say(&Said::Failed { status: error.exit_status(), reason: error.to_string() }),
    }
}

/// The line that somebody sends; none where it does not come in time, or all is over.
fn line_of(mut stream: &UnixStream, over: &AtomicBool) -> Option<String> {
    let begun = Instant::now();
    let mut line = Vec::new();
    let mut some = [0; 4096];
    while !line.ends_with(b"\n") {
        if over.load(Ordering::SeqCst) || begun.elapsed() > ORDER_WITHIN || line.len() as u64 > LINE_MAX {
            return None;
        }
        match stream.read(&mut some) {
            Ok(0) => return None,
            Ok(count) => line.extend_from_slice(&some[..count]),
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
            Err(_) => return None,
        }
    }
    String::from_utf8(line).ok()
}

impl Order {
    fn carry_out(
        self,
        tiers: &[Arc<Tier>],
        patience: &dyn Fn() -> bool,
        tell: &dyn Fn(String),
    ) -> Result<(), LabError> {
        let find = |name: &str| {
            tiers.iter().find(|tier| tier.name() == name).ok_or_else(|| {
                let names = tiers.iter().map(|tier| tier.name()).collect::<Vec<_>>().join(", ");
                LabError::Usage(format!("no service is called \"{name}\"; there is {names}"))
            })
        };
        match self {
            Order::Scale { services } => {
                let wanted: Vec<_> = services
                    .iter()
                    .map(|(name, count)| Ok((find(name)?, *count)))
                    .collect::<Result<_, LabError>>()?;
                wanted.iter().try_for_each(|(tier, count)| tier.check_scale(*count))?;
                for (tier, count) in wanted {
                    tier.scale(count, patience)?;
                    tell(format!(
                        "{} has {count} instance{}",
                        tier.name(),
                        if count == 1 { "" } else { "s" }
                    ));
                }
            }
            Order::Roll { service, settings, program } => {
                let wanted: Vec<&Arc<Tier>> = match service {
                    Some(name) => vec![find(&name)?],
                    None => tiers.iter().filter(|tier| tier.up() > 1).collect(),
                };
                if wanted.is_empty() {
                    let reason = "no service has several instances: each would be down while it is replaced; scale one to two first";
                    return Err(LabError::Usage(reason.into()));
                }
                if let Some(tier) = wanted.iter().find(|tier| !settings.is_empty() && !tier.is_shipped()) {
                    let reason = "is a command; --to KEY=VALUE is for shipped systems, --to PROGRAM for both";
                    return Err(LabError::Usage(format!("{} {reason}", tier.name())));
                }
                for tier in wanted {
                    let change = |words: &mut Vec<String>| changed(words, &settings, program.as_deref());
                    tier.roll(patience, &change, &mut |name| tell(format!("replaced {name}")))?;
                }
            }
        }
        Ok(())
    }
}

/// A command with other settings, or another program.
fn changed(words: &mut Vec<String>, settings: &[(String, String)], program: Option<&Path>) {
    if let (Some(first), Some(program)) = (words.first_mut(), program) {
        *first = program.display().to_string();
    }
    for (key, value) in settings {
        let begin = format!("{key}=");
        match words.iter_mut().find(|word| word.starts_with(&begin)) {
            Some(word) => *word = format!("{key}={value}"),
            None => {
                let end = words.iter().position(|word| word == "--stop-with-parent").unwrap_or(words.len());
                words.splice(end..end, ["--set".to_owned(), format!("{key}={value}")]);
            }
        }
    }
}

/// Tells the one that is up what to do, and what it says of that.
fn order(name: &str, order: &Order) -> Result<u8, Failure> {
    let gone = |error: std::io::Error| Failure::broken(format!("{name} has ended: {error}"));
    let path = socket_of(name).map_err(gone)?;
    let mut stream = UnixStream::connect(&path)
        .map_err(|_| Failure::usage(format!("{name} is not up; start it with: tidemark up {name}")))?;
    let text = serde_json::to_string(order).unwrap_or_default();
    stream.write_all(format!("{text}\n").as_bytes()).map_err(gone)?;
    let mut lines = BufReader::new(&stream);
    loop {
        let mut line = String::new();
        let read = (&mut lines).take(LINE_MAX).read_line(&mut line).map_err(gone)?;
        match serde_json::from_str(&line) {
            Ok(Said::Told(text)) => output::print(&format!("{text}\n"))?,
            Ok(Said::Done) => return Ok(EXIT_PASS),
            Ok(Said::Failed { reason, status }) => return Err(Failure { message: reason, status }),
            Err(_) if read == 0 => return Err(Failure::broken(format!("{name} ended before this was done"))),
            Err(error) => return Err(Failure::broken(format!("{name} sent an unreadable answer: {error}"))),
        }
    }
}

/// Replaces instances of what is up.
pub fn roll(arguments: RollArguments) -> Result<u8, Failure> {
    let (mut settings, mut program) = (Vec::new(), None);
    for text in arguments.to {
        let path = Path::new(&text);
        match text.split_once('=') {
            _ if path.is_file() => {
                program =
                    Some(path.canonicalize().map_err(|error| Failure::usage(format!("{text}: {error}")))?);
            }
            Some((key, value)) if !key.is_empty() => settings.push((key.to_owned(), value.to_owned())),
            _ => {
                return Err(Failure::usage(format!(
                    "--to {text}: neither KEY=VALUE nor a program that is there"
                )));
            }
        }
    }
    order(&arguments.name, &Order::Roll { service: arguments.service, settings, program })
}

/// Has more or fewer instances of what is up.
pub fn scale(arguments: ScaleArguments) -> Result<u8, Failure> {
    order(&arguments.name, &Order::Scale { services: arguments.services })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_has_its_new_settings_once() {
        let words = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
        let mut of = words("tidemark serve airline --set days=30 --stop-with-parent");
        let settings =
            [("days", "60"), ("root", "x=y")].map(|(key, value)| (key.to_owned(), value.to_owned()));
        changed(&mut of, &settings, Some(Path::new("/new")));
        assert_eq!(of, words("/new serve airline --set days=60 --set root=x=y --stop-with-parent"));
    }

    #[test]
    fn a_table_says_what_is_known() {
        let web = Status {
            name: "web.1".into(),
            address: "127.0.0.1:9".into(),
            health: "healthy",
            requests_per_s: Some(1234.4),
            cores: Some(0.5),
            rss_bytes: Some(3 << 20),
            breakers: vec![("Validate".into(), "open")],
            has_breakers: true,
        };
        let text = table(&[web, Status { name: "redis".into(), health: "up", ..Status::default() }]);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[1], "web.1     127.0.0.1:9  healthy        1234   0.50   3 MiB  Validate open");
        assert_eq!(lines[2], "redis     -            up                -      -       -  -");
    }

    #[test]
    fn services_are_scaled_by_name_and_number() {
        assert_eq!(service_and_number("web=5").unwrap(), ("web".into(), 5));
        for wrong in ["web", "web=", "web=0", "=3", "web=-1"] {
            assert!(service_and_number(wrong).is_err(), "{wrong}");
        }
    }
}
