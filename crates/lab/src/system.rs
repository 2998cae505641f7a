//! The system under test: started, waited for, stopped.
//!
//! A shipped one is our own executable with the verb `serve`, on a port that the kernel chooses and the child
//! announces. A command gets a free port in place of `{port}`, or has one of its own; it must listen on 127.0.0.1. A URL
//! is only driven.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tidemark_drive::{Protocol, Target};
use tidemark_scenario::Plan;
use tidemark_scenario::plan::{NOBODY, RPC_PATH, Ready, System, SystemOrigin};

use crate::error::LabError;
use crate::hooks::{self, AfterHooks, LaunchContext};
use crate::interrupt::StopRequest;
use crate::monitor::SYSTEM;
use crate::served::{self, ANY_PORT, ASK_EVERY, Deadline, Served, cannot_write, check_stop_request};
use crate::started::{Handle, Started, held, try_held};
use crate::target::{Others, greet_calls, knock, looked_up, target};
use crate::tier::Tier;

/// How long a URL is tried that nobody answers at.
const URL_PATIENCE: Duration = Duration::from_secs(2);
/// What a shipped system that is bound prints, before its URL.
const ANNOUNCEMENT: &str = "listening ";
/// Durability of a shipped system where the scenario does not say.
const DEFAULT_DURABILITY: &str = "synced";

/// Where and how a system is started.
#[derive(Debug, Clone)]
pub struct Setup {
    /// The `tidemark` executable, for shipped systems.
    pub executable: PathBuf,
    /// The run directory: holds `logs/` and `data/`.
    pub run_dir: PathBuf,
    /// The folder of its data, where that is not `data/` in the run directory.
    pub data: Option<PathBuf>,
    /// Cores that the system is held to; empty for all.
    pub cores: Vec<usize>,
    /// Whether the data directory stays after the run.
    pub keep_data: bool,
    /// Whether it is to go down and come back at the same address.
    pub comes_back: bool,
}

/// A system that is ready; stopped, and its data removed, when dropped.
#[derive(Debug)]
pub struct Running {
    // the order matters: the process goes before what comes after it, and before its data
    process: Option<Arc<Mutex<Served>>>,
    /// Instances and their balancer, where it is not one process.
    tier: Option<Arc<Tier>>,
    afterwards: AfterHooks,
    data: Option<DataDir>,
    /// Its name, or the URL that is driven.
    pub name: String,
    /// Where it is driven.
    pub target: Target,
    /// How long it took to look its name up, where it has one.
    pub lookup: Option<Duration>,
    /// The same for a person.
    pub url: String,
    /// The command that started it; empty if it was there already.
    pub command: Vec<String>,
    /// `synced`, `buffered` or `memory`, where it is known.
    pub durability: Option<String>,
}

impl Running {
    /// Starts the system, or finds the one that is there, and waits until it is ready; tells what it waits for where that
    /// takes long.
    pub fn start(
        system: &System,
        setup: &Setup,
        stop_request: &dyn Fn() -> StopRequest,
        tell: &mut dyn FnMut(String),
    ) -> Result<Running, LabError> {
        let mut tell = |missing: &str| tell(format!("waiting for the system: {missing}"));
        match &system.origin {
            SystemOrigin::Shipped(name) => start_shipped(name, system, setup, stop_request, &mut tell),
            SystemOrigin::Command(command) => start_command(command, system, setup, stop_request, &mut tell),
            SystemOrigin::Url(url) => find(url, system, stop_request),
            SystemOrigin::Unknown => Err(LabError::Usage(
                "the scenario does not say what system to drive; add `system:` to it, or give --url http://HOST:PORT"
                    .into(),
            )),
        }
    }

    /// Finds one that is there already.
    pub fn find(system: &System, stop_request: &dyn Fn() -> StopRequest) -> Result<Running, LabError> {
        match &system.origin {
            SystemOrigin::Url(url) => find(url, system, stop_request),
            _ => Err(LabError::Usage("a target has a url, or is a store of the run".into())),
        }
    }

    /// Asks for its greeting where it takes calls, and whether it has these methods.
    fn greet_calls<'m>(
        &mut self,
        path: &str,
        methods: impl Iterator<Item = &'m str>,
    ) -> Result<(), LabError> {
        greet_calls(&mut self.target, path, methods, URL_PATIENCE).map_err(|error| {
            let wrong = if self.command.is_empty() { LabError::Unreachable } else { LabError::Start };
            wrong(format!("no calls to {} ({}) at {path}: {error}", self.url, self.target.address))
        })
    }

    /// Instances and their balancer, as what is driven at `target`.
    pub fn of_tier(tier: Arc<Tier>, target: Target) -> Running {
        Running {
            process: None,
            afterwards: AfterHooks::default(),
            data: None,
            name: tier.name().to_owned(),
            target,
            lookup: None,
            url: tier.url(),
            command: tier.command().to_vec(),
            durability: tier.durability().map(str::to_owned),
            tier: Some(tier),
        }
    }

    /// Its instances and their balancer, where it is not one process.
    pub fn tier(&self) -> Option<&Arc<Tier>> {
        self.tier.as_ref()
    }

    /// What was started, for whoever breaks it on purpose.
    pub fn started(&self) -> Vec<Handle> {
        let process = self.process.clone().map(|process| process as Handle);
        process.into_iter().chain(self.tier.iter().flat_map(|tier| tier.started())).collect()
    }

    /// The ids of its processes that are up. None while somebody is at work on it.
    pub fn process_ids(&self) -> Vec<u32> {
        let process = self.process.as_ref().and_then(|process| try_held(process)?.process_id());
        process.into_iter().chain(self.tier.iter().flat_map(|tier| tier.process_ids())).collect()
    }

    /// The folder of its data, where it has one.
    pub fn data_dir(&self) -> Option<&Path> {
        self.data.as_ref().map(|data| data.0.as_path())
    }

    /// How it ended, if it has ended by itself; of several instances the first that has, with its name.
    pub fn ended(&mut self, expected: &dyn Fn(&str) -> bool) -> Option<String> {
        if let Some(tier) = &self.tier {
            return tier.ended(expected).map(|(name, ending)| format!("{name}: {ending}"));
        }
        let ending = try_held(self.process.as_ref()?)?.ended();
        ending.filter(|_| !expected(SYSTEM))
    }

    /// The end of its log, for an error to quote: of several instances of the one that has ended.
    pub fn log_tail(&self) -> String {
        if let Some(tier) = &self.tier {
            return tier.ended(&|_| false).map_or_else(String::new, |(name, _)| tier.log_tail(&name));
        }
        self.process.as_ref().map_or_else(String::new, |process| held(process).log_tail())
    }

    /// Stops the process, if it is up, and returns how it ended. Its data stays until this is dropped.
    pub fn stop(&mut self) -> Option<String> {
        if let Some(tier) = &self.tier {
            return tier.stop(&|| true);
        }
        let process = self.process.take()?;
        let mut process = held(&process);
        process.process_id()?;
        Some(process.stop(&|| true))
    }

    /// Runs what the scenario wants to be run once it was stopped; returns what went wrong.
    pub fn run_after(&mut self) -> Vec<String> {
        let of_tier = self.tier.iter().flat_map(|tier| tier.run_after());
        of_tier.chain(self.afterwards.run().iter().map(LabError::to_string)).collect()
    }

    /// Leaves the data directory where it is.
    pub fn keep_data(&mut self) {
        if let Some(data) = &mut self.data {
            data.1 = true;
        }
    }
}

/// Asks a target of the plan, which was found so, for its greeting, where calls go to it.
pub fn greet_calls_of(
    found: &mut Running,
    plan: &Plan,
    target: usize,
    system: &System,
) -> Result<(), LabError> {
    match plan.has_calls_to(target) {
        true => found.greet_calls(system.rpc.as_deref().unwrap_or(RPC_PATH), plan.called_at(target)),
        false => Ok(()),
    }
}

/// A data directory and whether it is kept; otherwise removed when dropped.
#[derive(Debug)]
pub struct DataDir(pub PathBuf, pub bool);

impl Drop for DataDir {
    fn drop(&mut self) {
        if !self.1 {
            // a rest that cannot be removed is within the run directory, where the user sees it
            let _ = fs::remove_dir_all(&self.0);
        }
    }
}

/// How a shipped system is started.
pub struct ShippedCommand<'a> {
    /// Our own executable.
    pub executable: &'a Path,
    /// The name of the system.
    pub name: &'a str,
    /// Its settings.
    pub system: &'a System,
    /// Where it is to listen.
    pub listen: String,
    /// The folder of its data.
    pub data: &'a Path,
    /// Where it is to tell of its operations; of one that a run watches.
    pub events: Option<&'a Path>,
}

impl ShippedCommand<'_> {
    /// Its words, and how durable it is.
    pub fn words(self) -> (Vec<String>, String) {
        let ShippedCommand { executable, name, system, listen, data, events } = self;
        let durability = system.durability.clone().unwrap_or_else(|| DEFAULT_DURABILITY.into());
        let mut command: Vec<String> = vec![executable.display().to_string(), "serve".into(), name.into()];
        command.extend(["--listen".to_owned(), listen]);
        if !system.keeps_nothing {
            command.extend(["--data".to_owned(), data.display().to_string()]);
        }
        command.extend(["--durability".to_owned(), durability.clone()]);
        if let Some(events) = events.filter(|_| system.tells_operations) {
            command.extend(["--events".to_owned(), events.display().to_string()]);
        }
        for (key, value) in &system.settings {
            command.extend(["--set".to_owned(), format!("{key}={value}")]);
        }
        (command, durability)
    }

    /// The same, for a child of this process that is to end with it.
    pub(crate) fn words_of_child(self) -> (Vec<String>, String) {
        let (mut command, durability) = self.words();
        command.push("--stop-with-parent".into());
        (command, durability)
    }
}

fn start_shipped(
    name: &str,
    system: &System,
    setup: &Setup,
    stop_request: &dyn Fn() -> StopRequest,
    tell: &mut dyn FnMut(&str),
) -> Result<Running, LabError> {
    let data = setup.data.clone().unwrap_or_else(|| setup.run_dir.join("data"));
    let listen = match setup.comes_back {
        true => format!("127.0.0.1:{}", served::free_port(true)?),
        false => ANY_PORT.to_owned(),
    };
    let events = setup.run_dir.join(tidemark_record::OPERATIONS_TOLD);
    let executable = &setup.executable;
    let command = ShippedCommand { executable, name, system, listen, data: &data, events: Some(&events) };
    let (command, durability) = command.words_of_child();
    let data = (!system.keeps_nothing).then(|| DataDir(data, setup.keep_data));
    if let Some(data) = &data {
        fs::create_dir_all(&data.0).map_err(|error| cannot_write(&data.0, &error))?;
    }
    let spec = served::spec(name, command.clone(), &setup.run_dir, &setup.cores, true)?;
    let mut child = served::start(&spec, &system.tier.name)?;
    let deadline = Deadline::new(system.ready_within);
    let line = served::announced(&mut child, &deadline, stop_request)?;
    let url = line.strip_prefix(ANNOUNCEMENT).ok_or_else(|| {
        LabError::Start(format!(
            "the system `{name}` printed `{line}` instead of the address that it listens on"
        ))
    })?;
    let url = match url.strip_prefix("http://").filter(|_| system.is_grpc) {
        Some(place) => format!("grpc://{place}"),
        None => url.to_owned(),
    };
    let mut target = target(&url, system)?;
    served::wait_ready(&mut child, &target, &system.ready, &deadline, stop_request, tell)?;
    meet_grpc(&mut target, &url, system)?;
    let mut served = Served::new(child, spec, &target, &system.ready, system.ready_within);
    if let Some(data) = &data {
        served = served.with_data(&data.0);
    }
    Ok(Running {
        url: url.trim_end_matches('/').to_owned(),
        process: Some(Arc::new(Mutex::new(served))),
        tier: None,
        afterwards: AfterHooks::default(),
        data,
        name: name.to_owned(),
        target,
        lookup: None,
        command,
        durability: Some(durability),
    })
}

/// Asks a system that was started for what a client of gRPC has to know, where it is one.
fn meet_grpc(target: &mut Target, url: &str, system: &System) -> Result<(), LabError> {
    if !system.is_grpc {
        return Ok(());
    }
    let met = knock(target, &Others::new(), system.http, URL_PATIENCE).and_then(|greeted| greeted);
    met.map_err(|error| LabError::Start(format!("no connection by gRPC with {url}: {error}")))
}

fn start_command(
    command: &[String],
    system: &System,
    setup: &Setup,
    stop_request: &dyn Fn() -> StopRequest,
    tell: &mut dyn FnMut(&str),
) -> Result<Running, LabError> {
    let launch = &system.launch;
    // another process could take a free port between here and the child's bind; the child then says so and ends
    let port = launch.port.map_or_else(|| served::free_port(setup.comes_back), Ok)?;
    let context = LaunchContext::of(launch, port, setup.run_dir.clone(), setup.cores.clone());
    let afterwards = AfterHooks::new(&launch.after, &context);
    hooks::run_before(launch, &context, stop_request)?;
    if launch.port.is_some() {
        served::check_free(port)?;
    }
    let program = command.first().map(String::as_str).unwrap_or_default();
    let name = Path::new(program)
        .file_name()
        .map_or_else(|| program.into(), |name| name.to_string_lossy())
        .into_owned();
    let spec = context.spec(&name, command)?;
    let command = spec.command.clone();
    let mut child = served::start(&spec, &system.tier.name)?;
    let scheme = if system.is_grpc { "grpc" } else { "http" };
    let url = format!("{scheme}://127.0.0.1:{port}");
    let mut target = target(&url, system)?;
    let deadline = Deadline::new(system.ready_within);
    let ready = match &system.ready {
        Ready::Prints(text) => Ready::Prints(context.with_port(text)),
        ready => ready.clone(),
    };
    served::wait_ready(&mut child, &target, &ready, &deadline, stop_request, tell)?;
    meet_grpc(&mut target, &url, system)?;
    let served = Served::new(child, spec, &target, &ready, system.ready_within);
    Ok(Running {
        process: Some(Arc::new(Mutex::new(served))),
        tier: None,
        afterwards,
        data: None,
        name,
        target,
        lookup: None,
        url,
        command,
        durability: system.durability.clone(),
    })
}

/// A system that is there already need not have our health path; that somebody answers is enough.
pub(crate) fn find(
    url: &str,
    system: &System,
    stop_request: &dyn Fn() -> StopRequest,
) -> Result<Running, LabError> {
    let (mut target, lookup, others) = looked_up(url, system)?;
    let deadline = Deadline::new(system.ready_within.min(URL_PATIENCE));
    loop {
        check_stop_request(stop_request)?;
        if target.authority == NOBODY {
            break;
        }
        match knock(&mut target, &others, system.http, URL_PATIENCE) {
            Ok(Ok(())) => break,
            Ok(Err(error)) => {
                let wanted = match (&target.protocol, &target.tls) {
                    (Protocol::Http1 | Protocol::Http2(_), Some(_)) => "TLS".to_owned(),
                    (Protocol::Http1 | Protocol::Http2(_), None) => "HTTP/2".to_owned(),
                    (other, _) => format!("connection by {}", other.name()),
                };
                return Err(LabError::Unreachable(format!(
                    "no {wanted} with {url} ({}): {error}",
                    target.address
                )));
            }
            Err(_) if !deadline.is_over() => std::thread::sleep(ASK_EVERY),
            Err(error) => {
                if let Some(proxy) = &target.proxy {
                    return Err(LabError::Unreachable(format!(
                        "the proxy {} before {url} is unreachable ({error}); start it, or check its host and port \
                         (`proxy`, `--proxy`)",
                        proxy.name
                    )));
                }
                return Err(LabError::Unreachable(format!(
                    "{url} is unreachable ({error}); start the system first, or check host and port"
                )));
            }
        }
    }
    Ok(Running {
        process: None,
        tier: None,
        afterwards: AfterHooks::default(),
        data: None,
        name: url.to_owned(),
        target,
        lookup,
        url: url.trim_end_matches('/').to_owned(),
        command: Vec::new(),
        // what the scenario says is for what it starts; nobody asked this one
        durability: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;
    use std::time::Instant;

    fn setup(folder: &Path, executable: &str) -> Setup {
        Setup {
            executable: executable.into(),
            run_dir: folder.to_owned(),
            data: None,
            cores: Vec::new(),
            keep_data: false,
            comes_back: false,
        }
    }

    fn system(origin: SystemOrigin, within_ms: u64) -> System {
        System {
            origin,
            ready_within: Duration::from_millis(within_ms),
            ready: Ready::Answers { path: "/health".into(), status: (200, 200) },
            ..System::default()
        }
    }

    fn command(words: &[&str]) -> SystemOrigin {
        SystemOrigin::Command(words.iter().map(|word| (*word).to_owned()).collect())
    }

    fn go_on() -> StopRequest {
        StopRequest::None
    }

    #[test]
    fn where_nobody_answers_at_a_names_first_address_the_others_are_tried() {
        // only the addresses of the loopback are sure to be there, and localhost may have one of them or both
        let Ok(listener) = TcpListener::bind("[::1]:0") else { return };
        let port = listener.local_addr().unwrap().port();
        let go_on: &dyn Fn() -> StopRequest = &|| StopRequest::None;
        let asked = System { ready_within: Duration::from_millis(300), ..System::default() };
        match find(&format!("http://localhost:{port}"), &asked, go_on) {
            Ok(found) => assert_eq!(found.target.address.to_string(), format!("[::1]:{port}")),
            Err(error) => assert!(!error.to_string().contains("[::1]"), "{error}"),
        }
    }

    #[test]
    fn a_child_that_never_becomes_ready_is_stopped() {
        let folder = tempfile::tempdir().unwrap();
        let pid_file = folder.path().join("pid");
        let script = format!("echo $$ > {}; exec sleep 600", pid_file.display());
        let origin = command(&["sh", "-c", &script]);
        let error = Running::start(&system(origin, 500), &setup(folder.path(), "x"), &go_on, &mut |_| ())
            .unwrap_err();
        let text = error.to_string();
        assert!(text.contains("not ready within 500ms") && text.contains("`ready within`"), "{text}");
        let id: i32 = fs::read_to_string(pid_file).unwrap().trim().parse().unwrap();
        assert!(rustix::process::test_kill_process(rustix::process::Pid::from_raw(id).unwrap()).is_err());
    }

    #[test]
    fn a_wish_to_stop_ends_the_wait() {
        let folder = tempfile::tempdir().unwrap();
        let begin = Instant::now();
        let origin = command(&["sleep", "600"]);
        let error = Running::start(
            &system(origin, 600_000),
            &setup(folder.path(), "x"),
            &|| StopRequest::Stop,
            &mut |_| (),
        )
        .unwrap_err();
        assert_eq!(error.exit_status(), 130);
        assert!(begin.elapsed() < Duration::from_secs(60));
    }

    /// A stand-in for our own executable: a script that looks at the arguments it gets.
    fn stand_in(folder: &Path, body: &str) -> String {
        // Another process writes it: were it open for writing here, a child that another test starts at this very
        // moment would inherit that, and the system would refuse to execute it ("text file busy").
        let path = folder.join("stand-in").display().to_string();
        let write = ["-c", r#"printf '#!/bin/sh\n%s\n' "$1" >"$0" && chmod 755 "$0""#, &path, body];
        assert!(std::process::Command::new("sh").args(write).status().unwrap().success());
        path
    }

    #[test]
    fn a_shipped_system_says_where_it_listens() {
        let folder = tempfile::tempdir().unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        std::thread::spawn(move || {
            use std::io::{Read, Write};
            // not ready at first
            for answer in ["HTTP/1.1 503 Later\r\n\r\n", "HTTP/1.1 200 OK\r\n\r\n"] {
                let (mut stream, _) = listener.accept().unwrap();
                let _ = stream.read(&mut [0; 1024]).unwrap();
                stream.write_all(answer.as_bytes()).unwrap();
            }
        });
        let body = format!("echo \"$@\" >&2\necho listening http://127.0.0.1:{port}\nexec cat");
        let executable = stand_in(folder.path(), &body);
        let mut system = system(SystemOrigin::Shipped("airline".into()), 20_000);
        system.settings.insert("customers".into(), "7".into());
        let mut running =
            Running::start(&system, &setup(folder.path(), &executable), &go_on, &mut |_| ()).unwrap();
        assert_eq!(running.url, format!("http://127.0.0.1:{port}"));
        assert_eq!(running.durability.as_deref(), Some("synced"));
        let data = running.data_dir().unwrap().to_owned();
        assert!(data.is_dir() && running.ended(&|_| false).is_none());
        assert_eq!(running.stop().unwrap(), "killed by signal 15");
        drop(running);
        assert!(!data.exists());
        let log = fs::read_to_string(folder.path().join("logs/airline.log")).unwrap();
        let wanted = format!(
            "serve airline --listen 127.0.0.1:0 --data {} --durability synced --set customers=7 --stop-with-parent",
            data.display()
        );
        assert_eq!(log.trim(), wanted);
    }

    /// Answers every question with 200, until the process ends.
    fn healthy() -> u16 {
        use std::io::{Read, Write};
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        std::thread::spawn(move || {
            for mut stream in listener.incoming().flatten() {
                let _ = stream.read(&mut [0; 1024]);
                let _ = stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n");
            }
        });
        port
    }

    #[test]
    fn a_system_that_was_killed_comes_back_where_it_was_with_its_data() {
        let folder = tempfile::tempdir().unwrap();
        let port = healthy();
        // its data says how often it was started
        let body = format!(
            "echo \"$@\" >&2\necho x >> \"$6/starts\"\necho listening http://127.0.0.1:{port}\nexec cat"
        );
        let executable = stand_in(folder.path(), &body);
        let system = system(SystemOrigin::Shipped("airline".into()), 20_000);
        let mut running =
            Running::start(&system, &setup(folder.path(), &executable), &go_on, &mut |_| ()).unwrap();
        let starts = || fs::read_to_string(folder.path().join("data/starts")).unwrap().lines().count();
        let (first, handle) = (running.process_ids()[0], running.started().remove(0));
        assert_eq!(held(&handle).kill(), "killed by signal 9");
        assert_eq!(
            (running.process_ids(), running.ended(&|_| false)),
            (Vec::new(), None),
            "that is not its own end"
        );
        held(&handle).restart(&|| true).unwrap();
        assert_ne!(running.process_ids()[0], first);
        assert_eq!((starts(), running.ended(&|_| false)), (2, None));
        assert_eq!(held(&handle).stop(&|| true), "killed by signal 15");
        let interrupted = held(&handle).restart(&|| false).unwrap_err();
        assert!(matches!(interrupted, LabError::Interrupted(_)), "{interrupted}");
        drop(handle);
        running.stop();
        let log = fs::read_to_string(folder.path().join("logs/airline.log")).unwrap();
        assert!(log.lines().nth(1).unwrap().contains(&format!("--listen 127.0.0.1:{port} ")), "{log}");
    }

    #[test]
    fn a_port_that_is_kept_is_none_of_those_that_connections_get() {
        let range = fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range").unwrap_or_default();
        let lowest = range.split_whitespace().next().and_then(|port| port.parse::<u16>().ok());
        let port = served::free_port(true).unwrap();
        assert!(lowest.is_none_or(|lowest| port < lowest || lowest <= 10_000), "{port} of {range}");
    }

    #[test]
    fn a_shipped_system_that_refuses_its_settings_is_wrong_use() {
        let folder = tempfile::tempdir().unwrap();
        let executable = stand_in(folder.path(), "echo 'no such setting: customres' >&2; exit 2");
        let system = system(SystemOrigin::Shipped("airline".into()), 20_000);
        let error =
            Running::start(&system, &setup(folder.path(), &executable), &go_on, &mut |_| ()).unwrap_err();
        assert_eq!(error.exit_status(), 2);
        assert!(error.to_string().contains("customres"), "{error}");
        assert!(!folder.path().join("data").exists());
    }

    #[test]
    fn a_url_may_be_reached_by_a_unix_socket() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("system.sock");
        let _listener = std::os::unix::net::UnixListener::bind(&path).unwrap();
        let mut system = system(SystemOrigin::Url("http://shop.invalid".into()), 100);
        let setup = setup(folder.path(), "x");
        system.connect_to = Some(format!("unix:{}", path.display()));
        let running = Running::start(&system, &setup, &go_on, &mut |_| ()).unwrap();
        assert_eq!(running.target.address.to_string(), format!("unix:{}", path.display()));
        assert_eq!(running.target.authority, "shop.invalid");
        system.connect_to = Some("unix:/no/such.sock".into());
        let error = Running::start(&system, &setup, &go_on, &mut |_| ()).unwrap_err().to_string();
        assert!(error.contains("unreachable") && error.contains("unix:/no/such.sock"), "{error}");
    }

    #[test]
    fn nobody_at_a_url_says_so() {
        let folder = tempfile::tempdir().unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let setup = setup(folder.path(), "x");
        let mut there = system(SystemOrigin::Url(url.clone()), 100);
        there.durability = Some("synced".into());
        let mut running = Running::start(&there, &setup, &go_on, &mut |_| ()).unwrap();
        assert!(running.process_ids().is_empty() && running.stop().is_none());
        assert_eq!(running.durability, None, "it is not known how durable it is");
        drop(listener);
        let error =
            Running::start(&system(SystemOrigin::Url(url), 100), &setup, &go_on, &mut |_| ()).unwrap_err();
        assert!(error.to_string().contains("unreachable"), "{error}");
        let error =
            Running::start(&system(SystemOrigin::Unknown, 100), &setup, &go_on, &mut |_| ()).unwrap_err();
        assert_eq!(error.exit_status(), 2);
    }
}
