//! A process of the system, and all that it takes to start it again where it was.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use tidemark_drive::{Target, Unserved, check_health};
use tidemark_scenario::plan::Ready;

use crate::child::{Child, LogSearch, Spec, TAIL_LINES};
use crate::error::LabError;
use crate::http::Client;
use crate::interrupt::StopRequest;
use crate::monitor::SYSTEM;
use crate::process::{Patience, Process};
use crate::started::{Started, held};
use crate::target::dial;

/// How often a system that is to become ready is asked.
pub const ASK_EVERY: Duration = Duration::from_millis(20);
/// After what time it is told what is waited for.
const TELL_AFTER: Duration = Duration::from_secs(5);
/// Longest time for one such question.
const ASK_MAX: Duration = Duration::from_secs(1);
/// How long a system that is stopped may take to finish what is in flight.
const STOP_GRACE: Duration = Duration::from_secs(10);
/// Ports that were handed out to be kept, whether somebody listens there by now or not.
static GIVEN: Mutex<BTreeSet<u16>> = Mutex::new(BTreeSet::new());
/// An address with this port is one that the kernel chooses.
pub const ANY_PORT: &str = "127.0.0.1:0";
/// Ports that may be tried until one is free.
const PORTS_TRIED: u32 = 200;
/// Ports from here to those that the kernel gives to connections are for systems that come back.
const LOWEST_PORT: u16 = 10_000;
/// Where the kernel says which ports it gives to connections, and what they are where it does not say.
const CONNECTION_PORTS: (&str, u16) = ("/proc/sys/net/ipv4/ip_local_port_range", 32_768);

/// A process of the system under test.
#[derive(Debug)]
pub struct Served {
    name: String,
    spec: Spec,
    process: Process,
    target: Target,
    ready: Ready,
    within: Duration,
    data: Option<PathBuf>,
}

impl Served {
    /// What was started by this and is ready at `target`.
    pub fn new(child: Child, mut spec: Spec, target: &Target, ready: &Ready, within: Duration) -> Served {
        // a port that the kernel chose is from now on this one
        for word in spec.command.iter_mut().filter(|word| *word == ANY_PORT) {
            *word = target.address.to_string();
        }
        let mut served = Served::down(SYSTEM, spec, target, ready, within);
        served.process.up(child);
        served
    }

    /// One that is down so far.
    pub fn down(name: &str, spec: Spec, target: &Target, ready: &Ready, within: Duration) -> Served {
        let (target, ready) = (target.clone(), ready.clone());
        let process = Process::down(STOP_GRACE);
        Served { name: name.to_owned(), spec, process, target, ready, within, data: None }
    }

    /// Starts it, where it is down, without waiting until it is ready.
    ///
    /// # Errors
    /// Where its program cannot be started.
    pub fn begin(&mut self) -> Result<(), LabError> {
        let child = start(&self.spec, &self.name)?;
        self.process.up(child);
        Ok(())
    }

    /// Waits until it is ready; tells what it waits for where that takes long.
    ///
    /// # Errors
    /// Where it ends before, or is not in time; [`LabError::Interrupted`] on a stop request.
    pub fn become_ready(
        &mut self,
        deadline: &Deadline,
        stop_request: &dyn Fn() -> StopRequest,
        tell: &mut dyn FnMut(String),
    ) -> Result<(), LabError> {
        let Some(child) = self.process.child() else { return Ok(()) };
        if self.spec.announces {
            // where it listens is known; its own word says that it does
            announced(child, deadline, stop_request)?;
        }
        let mut tell = |missing: &str| tell(format!("waiting for {}: {missing}", self.name));
        wait_ready(child, &self.target, &self.ready, deadline, stop_request, &mut tell)
    }

    /// Changes its command, from its next start on; returns what it was.
    pub fn change(&mut self, change: &dyn Fn(&mut Vec<String>)) -> Vec<String> {
        let before = self.spec.command.clone();
        change(&mut self.spec.command);
        before
    }

    /// The file of its log.
    pub fn log(&self) -> &Path {
        &self.spec.log
    }

    /// Names the folder of its data.
    pub fn with_data(self, folder: &Path) -> Served {
        Served { data: Some(folder.to_owned()), ..self }
    }
}

impl Started for Served {
    fn name(&self) -> &str {
        &self.name
    }

    fn process(&self) -> &Process {
        &self.process
    }

    fn process_mut(&mut self) -> &mut Process {
        &mut self.process
    }

    fn restart(&mut self, patience: Patience<'_>) -> Result<(), LabError> {
        let stop_request = || if patience() { StopRequest::None } else { StopRequest::Abort };
        if self.process.id().is_none() {
            self.begin()?;
        }
        let ready = self.become_ready(&Deadline::new(self.within), &stop_request, &mut |_| ());
        if ready.is_err() {
            // killed here, so that nobody reports a crash
            self.process.kill();
        }
        ready
    }

    fn data_dir(&self) -> Option<&Path> {
        self.data.as_deref()
    }
}

/// A free port on 127.0.0.1. One that is to be `kept` over a restart is none that the kernel gives to connections:
/// while nobody listens there, a connection to it could get it as its own end, and keep it.
pub fn free_port(kept: bool) -> Result<u16, LabError> {
    let none = |error: io::Error| LabError::Start(format!("no free port on 127.0.0.1: {error}"));
    let bind = |port: u16| TcpListener::bind(("127.0.0.1", port)).and_then(|free| free.local_addr());
    if kept {
        let range = fs::read_to_string(CONNECTION_PORTS.0).unwrap_or_default();
        let lowest = range.split_whitespace().next().and_then(|port| port.parse().ok());
        let end = lowest.unwrap_or(CONNECTION_PORTS.1);
        if end > LOWEST_PORT {
            let tried = (0..PORTS_TRIED).find_map(|_| {
                let free = bind(fastrand::u16(LOWEST_PORT..end)).ok()?;
                held(&GIVEN).insert(free.port()).then_some(free)
            });
            return tried.map(|free| free.port()).ok_or_else(|| none(io::ErrorKind::AddrInUse.into()));
        }
    }
    bind(0).map(|free| free.port()).map_err(none)
}

/// How it is started: its log goes into the run directory, and it is held to these cores, if any.
pub fn spec(
    name: &str,
    command: Vec<String>,
    run_dir: &Path,
    cores: &[usize],
    announces: bool,
) -> Result<Spec, LabError> {
    let logs = run_dir.join("logs");
    fs::create_dir_all(&logs).map_err(|error| cannot_write(&logs, &error))?;
    let log = logs.join(format!("{}.log", if name.is_empty() { "system" } else { name }));
    let yields = cores.is_empty();
    Ok(Spec { cores: cores.to_vec(), yields, announces, ..Spec::new(name, command, log) })
}

/// Tells of an address that cannot be listened at.
pub fn check_free_at(address: SocketAddr) -> Result<(), LabError> {
    TcpListener::bind(address).map(drop).map_err(|error| {
        LabError::Usage(format!(
            "cannot listen at {address}: {error}; stop who does (`ss -ltnp` tells), or choose another --listen"
        ))
    })
}

/// Tells of a port that somebody else listens on.
pub fn check_free(port: u16) -> Result<(), LabError> {
    TcpListener::bind(("127.0.0.1", port)).map(drop).map_err(|error| {
        LabError::Start(format!(
            "the system cannot listen on port {port} of 127.0.0.1: {error}; stop who does (`ss -ltnp` tells), name another \
             `port`, or leave it out and write {{port}} into the command"
        ))
    })
}

/// Starts it. What is none of ours does not mind the end of its standard input, so somebody stands by for our death.
/// `name` is the system's, or an instance's of a service.
pub fn start(spec: &Spec, name: &str) -> Result<Child, LabError> {
    let guarded = |mut child: Child| if spec.announces { Ok(child) } else { child.guard().map(|()| child) };
    Child::spawn(spec).and_then(guarded).map_err(|error| {
        let program = spec.command.first().map(String::as_str).unwrap_or_default();
        let (who, key) = if name == SYSTEM { ("the system", "system") } else { (name, "services") };
        LabError::Start(format!("cannot start {who}: `{program}`: {error}; check `{key}:` in the scenario"))
    })
}

/// When a system is to be ready.
pub struct Deadline {
    begin: Instant,
    within: Duration,
}

impl Deadline {
    /// So long from now.
    pub fn new(within: Duration) -> Deadline {
        Deadline { begin: Instant::now(), within }
    }

    /// Whether it should be by now.
    pub fn is_over(&self) -> bool {
        self.begin.elapsed() >= self.within
    }
}

/// The first line that it prints.
pub fn announced(
    child: &mut Child,
    deadline: &Deadline,
    stop_request: &dyn Fn() -> StopRequest,
) -> Result<String, LabError> {
    loop {
        check_stop_request(stop_request)?;
        match child.announcement() {
            Some(Ok(line)) => return Ok(line),
            None if !deadline.is_over() => std::thread::sleep(ASK_EVERY),
            // the output closes a moment before the end can be seen; waiting tells which it was
            Some(Err(())) if child.ending().is_none() && !deadline.is_over() => std::thread::sleep(ASK_EVERY),
            _ => {
                return Err(never_ready(
                    child,
                    deadline,
                    "it has not printed the address that it listens on",
                    true,
                ));
            }
        }
    }
}

/// Waits until it is ready; tells what is missing where that takes long.
pub fn wait_ready(
    child: &mut Child,
    target: &Target,
    ready: &Ready,
    deadline: &Deadline,
    stop_request: &dyn Fn() -> StopRequest,
    tell: &mut dyn FnMut(&str),
) -> Result<(), LabError> {
    let mut log_search = match ready {
        Ready::Prints(text) => {
            let log = child.log_search(text);
            Some(log.map_err(|error| LabError::Start(format!("cannot read the system's log: {error}")))?)
        }
        _ => None,
    };
    let mut told = String::new();
    let mut tell_at = Instant::now() + TELL_AFTER;
    loop {
        check_stop_request(stop_request)?;
        let asked = ask(target, ready, log_search.as_mut());
        // somebody else may answer for one that has ended
        if child.ending().is_none() && asked.is_ok() {
            return Ok(());
        }
        let missing = asked.err().unwrap_or_default();
        if child.ending().is_none() && missing.is_final {
            let name = child.name().to_owned();
            return Err(LabError::Start(format!(
                "the system `{name}` cannot become ready: {}; {}",
                missing.words,
                child.log_tail(TAIL_LINES)
            )));
        }
        if child.ending().is_some() || deadline.is_over() {
            return Err(never_ready(child, deadline, &missing.words, false));
        }
        if Instant::now() >= tell_at && missing.words != told {
            tell(missing.words.split(';').next().unwrap_or_default());
            (told, tell_at) = (missing.words, Instant::now() + TELL_AFTER);
        }
        std::thread::sleep(ASK_EVERY);
    }
}

/// Why a system is not ready, and what says that it would be.
#[derive(Default)]
struct Missing {
    words: String,
    /// Whether it is not going to be.
    is_final: bool,
}

impl From<String> for Missing {
    fn from(words: String) -> Missing {
        Missing { words, is_final: false }
    }
}

/// Whether a system is ready.
fn ask(target: &Target, ready: &Ready, log_search: Option<&mut LogSearch>) -> Result<(), Missing> {
    match ready {
        Ready::Answers { path, status: (low, high) } => {
            let wanted = if low == high { low.to_string() } else { format!("{low} to {high}") };
            let said = match Client::status(target, path, ASK_MAX) {
                Ok(status) if (*low..=*high).contains(&status.as_u16()) => return Ok(()),
                Ok(status) => format!("GET {path} was answered with {} instead of {wanted}", status.as_u16()),
                Err(error) => format!("GET http://{}{path}: {error}", target.address),
            };
            Err(format!("{said}; `ready` names the path that answers {wanted} once it is ready").into())
        }
        Ready::Serves(service) => {
            let health = |mut stream| check_health(&mut stream, &target.authority, service);
            match dial(&target.address, ASK_MAX).and_then(health) {
                Ok(Ok(())) => Ok(()),
                Ok(Err(Unserved { words, is_final: false })) => {
                    Err(format!("{words}; `ready: {{grpc: …}}` names the service that it is asked for").into())
                }
                Ok(Err(Unserved { words, is_final: true })) => Err(Missing {
                    words: format!(
                        "{words}; add one, or let `ready: {{log: …}}` name a line of its output, beside `protos` or \
                         `descriptors`"
                    ),
                    is_final: true,
                }),
                Err(error) => Err(format!("the health check of gRPC at {}: {error}", target.address).into()),
            }
        }
        Ready::Connects => dial(&target.address, ASK_MAX).map(drop).map_err(|error| {
            format!(
                "nobody listens at {}: {error}; that is where it must listen (`{{port}}`)",
                target.address
            )
            .into()
        }),
        Ready::Prints(text) => match log_search.map(LogSearch::is_found) {
            Some(Ok(true)) => Ok(()),
            _ => Err(format!(
                "no line of its output has \"{text}\" in it; many programs hold back what they print into a file \
                 (`python3 -u` does not)"
            )
            .into()),
        },
    }
}

/// `announces`: whether it is one of ours.
fn never_ready(child: &mut Child, deadline: &Deadline, last: &str, announces: bool) -> LabError {
    let name = child.name().to_owned();
    match child.ending() {
        // our own systems end with this status where their settings are wrong, and say which in their log
        Some(_) if announces && child.exit_code() == Some(crate::EXIT_USAGE.into()) => LabError::Usage(
            format!("the system `{name}` refused its settings; {}", child.log_tail(TAIL_LINES)),
        ),
        Some(ending) => LabError::Start(format!(
            "the system `{name}` ended before it was ready ({ending}); {}",
            child.log_tail(TAIL_LINES)
        )),
        None => LabError::Start(format!(
            "the system `{name}` was not ready within {:?}: {last}; `ready within` says how long it may take; {}",
            deadline.within,
            child.log_tail(TAIL_LINES)
        )),
    }
}

/// Says that the user does not want to wait any more.
pub fn check_stop_request(stop_request: &dyn Fn() -> StopRequest) -> Result<(), LabError> {
    if stop_request() == StopRequest::None { Ok(()) } else { Err(LabError::Interrupted(None)) }
}

/// Says that a place cannot be written.
pub fn cannot_write(path: &Path, error: &std::io::Error) -> LabError {
    LabError::Usage(format!("cannot write {}: {error}; choose another place with --out", path.display()))
}
