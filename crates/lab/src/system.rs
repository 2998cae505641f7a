//! The system under test: started, waited for, stopped.
//!
//! A shipped one is our own executable with the verb `serve`, on a port that the kernel chooses and the child
//! announces. A command gets a free port in place of `{port}`; it must listen on 127.0.0.1. A URL is only driven.

use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use tidemark_drive::Target;
use tidemark_scenario::plan::{System, SystemOrigin};

use crate::child::{Child, Spec};
use crate::error::LabError;
use crate::health;
use crate::interrupt::Wish;
use crate::target::{knock, target};

/// How often a system that is to become ready is asked.
const ASK_EVERY: Duration = Duration::from_millis(20);
/// How long a system that is stopped may take to finish what is in flight.
const STOP_GRACE: Duration = Duration::from_secs(10);
/// How long a URL is tried that nobody answers at.
const URL_PATIENCE: Duration = Duration::from_secs(2);
/// Lines of a log that an error quotes.
const TAIL_LINES: usize = 12;
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
    /// Cores that the system is held to; empty for all.
    pub cores: Vec<usize>,
    /// Whether the data directory stays after the run.
    pub keep_data: bool,
}

/// A system that is ready; stopped, and its data removed, when dropped.
#[derive(Debug)]
pub struct Running {
    // the order matters: the child goes before its data
    child: Option<Child>,
    data: Option<DataDir>,
    /// Its name, or the URL that is driven.
    pub name: String,
    /// Where it is driven.
    pub target: Target,
    /// The same for a person.
    pub url: String,
    /// The command that started it; empty if it was there already.
    pub command: Vec<String>,
    /// `synced`, `buffered` or `memory`, where it is known.
    pub durability: Option<String>,
}

impl Running {
    /// Starts the system, or finds the one that is there, and waits until it is ready.
    pub fn start(system: &System, setup: &Setup, wish: &dyn Fn() -> Wish) -> Result<Running, LabError> {
        match &system.origin {
            SystemOrigin::Shipped(name) => start_shipped(name, system, setup, wish),
            SystemOrigin::Command(command) => start_command(command, system, setup, wish),
            SystemOrigin::Url(url) => find(url, system, wish),
            SystemOrigin::Unknown => Err(LabError::Usage(
                "the scenario does not say what system to drive; add `system:` to it, or give --url http://HOST:PORT"
                    .into(),
            )),
        }
    }

    /// Process id of the child, where one was started.
    pub fn process_id(&self) -> Option<u32> {
        self.child.as_ref().map(Child::id)
    }

    /// The folder of its data, where it has one.
    pub fn data_dir(&self) -> Option<&Path> {
        self.data.as_ref().map(|data| data.0.as_path())
    }

    /// How it ended, if it has ended by itself.
    pub fn ended(&mut self) -> Option<String> {
        self.child.as_mut()?.ending()
    }

    /// The end of its log, for an error to quote.
    pub fn log_tail(&self) -> String {
        self.child.as_ref().map_or_else(String::new, |child| child.log_tail(TAIL_LINES))
    }

    /// Stops the child, if there is one, and returns how it ended. Its data stays until this is dropped.
    pub fn stop(&mut self) -> Option<String> {
        Some(self.child.take()?.stop(STOP_GRACE))
    }

    /// Leaves the data directory where it is.
    pub fn keep_data(&mut self) {
        if let Some(data) = &mut self.data {
            data.1 = true;
        }
    }
}

/// A data directory and whether it is kept; otherwise removed when dropped.
#[derive(Debug)]
struct DataDir(PathBuf, bool);

impl Drop for DataDir {
    fn drop(&mut self) {
        if !self.1 {
            // a rest that cannot be removed is within the run directory, where the user sees it
            let _ = fs::remove_dir_all(&self.0);
        }
    }
}

fn start_shipped(
    name: &str,
    system: &System,
    setup: &Setup,
    wish: &dyn Fn() -> Wish,
) -> Result<Running, LabError> {
    let data = setup.run_dir.join("data");
    let durability = system.durability.clone().unwrap_or_else(|| DEFAULT_DURABILITY.into());
    let mut command: Vec<String> = vec![setup.executable.display().to_string(), "serve".into(), name.into()];
    for (flag, value) in [
        ("--listen", "127.0.0.1:0".to_owned()),
        ("--data", data.display().to_string()),
        ("--durability", durability.clone()),
    ] {
        command.extend([flag.to_owned(), value]);
    }
    for (key, value) in &system.settings {
        command.extend(["--set".to_owned(), format!("{key}={value}")]);
    }
    command.push("--stop-with-parent".into());

    let data = DataDir(data, setup.keep_data);
    fs::create_dir_all(&data.0).map_err(|error| cannot_write(&data.0, &error))?;
    let mut child = spawn(name, command.clone(), setup, true)?;
    let deadline = Deadline { begin: Instant::now(), within: system.ready_within };
    let line = loop {
        check_wish(wish)?;
        match child.announcement() {
            Some(Ok(line)) => break line,
            None if !deadline.is_over() => std::thread::sleep(ASK_EVERY),
            // the output closes a moment before the end can be seen; waiting tells which it was
            Some(Err(())) if child.ending().is_none() && !deadline.is_over() => std::thread::sleep(ASK_EVERY),
            _ => return Err(never_ready(&mut child, &deadline, "it has not said where it listens")),
        }
    };
    let url = line.strip_prefix(ANNOUNCEMENT).ok_or_else(|| {
        LabError::Start(format!("the system `{name}` said `{line}` and not where it listens"))
    })?;
    let target = target(url, system)?;
    wait_ready(&mut child, &target, &system.health, &deadline, wish)?;
    Ok(Running {
        url: url.trim_end_matches('/').to_owned(),
        child: Some(child),
        data: Some(data),
        name: name.to_owned(),
        target,
        command,
        durability: Some(durability),
    })
}

fn start_command(
    command: &[String],
    system: &System,
    setup: &Setup,
    wish: &dyn Fn() -> Wish,
) -> Result<Running, LabError> {
    // another process could take the port between here and the child's bind; the child then says so and ends
    let free = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
    let port = free.map_err(|error| LabError::Start(format!("no free port on 127.0.0.1: {error}")))?.port();
    let command: Vec<String> = command.iter().map(|word| word.replace("{port}", &port.to_string())).collect();
    let program = command.first().map(String::as_str).unwrap_or_default();
    let name = Path::new(program)
        .file_name()
        .map_or_else(|| program.into(), |name| name.to_string_lossy())
        .into_owned();
    let mut child = spawn(&name, command.clone(), setup, false)?;
    let url = format!("http://127.0.0.1:{port}");
    let target = target(&url, system)?;
    let deadline = Deadline { begin: Instant::now(), within: system.ready_within };
    wait_ready(&mut child, &target, &system.health, &deadline, wish)?;
    Ok(Running {
        child: Some(child),
        data: None,
        name,
        target,
        url,
        command,
        durability: system.durability.clone(),
    })
}

/// A system that is there already need not have our health path; that somebody answers is enough.
fn find(url: &str, system: &System, wish: &dyn Fn() -> Wish) -> Result<Running, LabError> {
    let mut target = target(url, system)?;
    let deadline = Deadline { begin: Instant::now(), within: system.ready_within.min(URL_PATIENCE) };
    loop {
        check_wish(wish)?;
        match knock(&mut target, system.http, URL_PATIENCE) {
            Ok(Ok(())) => break,
            Ok(Err(error)) => {
                let wanted = if target.tls.is_some() { "TLS" } else { "HTTP/2" };
                return Err(LabError::Start(format!("no {wanted} with {url} ({}): {error}", target.address)));
            }
            Err(_) if !deadline.is_over() => std::thread::sleep(ASK_EVERY),
            Err(error) => {
                return Err(LabError::Start(format!(
                    "nobody answers at {url} ({}: {error}); start the system first, or check host and port",
                    target.address
                )));
            }
        }
    }
    Ok(Running {
        child: None,
        data: None,
        name: url.to_owned(),
        target,
        url: url.trim_end_matches('/').to_owned(),
        command: Vec::new(),
        durability: system.durability.clone(),
    })
}

fn spawn(name: &str, command: Vec<String>, setup: &Setup, announces: bool) -> Result<Child, LabError> {
    let logs = setup.run_dir.join("logs");
    fs::create_dir_all(&logs).map_err(|error| cannot_write(&logs, &error))?;
    let log = logs.join(format!("{}.log", if name.is_empty() { "system" } else { name }));
    let yields = setup.cores.is_empty();
    let spec = Spec { name: name.to_owned(), command, log, cores: setup.cores.clone(), yields, announces };
    Child::spawn(&spec).map_err(|error| {
        let program = spec.command.first().map(String::as_str).unwrap_or_default();
        LabError::Start(format!(
            "cannot start the system: `{program}`: {error}; check `system:` in the scenario"
        ))
    })
}

struct Deadline {
    begin: Instant,
    within: Duration,
}

impl Deadline {
    fn is_over(&self) -> bool {
        self.begin.elapsed() >= self.within
    }
}

fn wait_ready(
    child: &mut Child,
    target: &Target,
    path: &str,
    deadline: &Deadline,
    wish: &dyn Fn() -> Wish,
) -> Result<(), LabError> {
    let path = if path.is_empty() { "/health" } else { path };
    loop {
        check_wish(wish)?;
        let last = match health::ask(&target.address, &target.authority, path) {
            Ok(200) => return Ok(()),
            Ok(status) => format!("GET {path} was answered with {status} instead of 200"),
            Err(error) => format!("GET http://{}{path}: {error}", target.address),
        };
        if child.ending().is_some() || deadline.is_over() {
            return Err(never_ready(child, deadline, &last));
        }
        std::thread::sleep(ASK_EVERY);
    }
}

fn never_ready(child: &mut Child, deadline: &Deadline, last: &str) -> LabError {
    let name = child.name().to_owned();
    match child.ending() {
        // our own systems end with this status where their settings are wrong, and say which in their log
        Some(_) if child.exit_code() == Some(crate::EXIT_USAGE.into()) => LabError::Usage(format!(
            "the system `{name}` refused its settings; {}",
            child.log_tail(TAIL_LINES)
        )),
        Some(ending) => LabError::Start(format!(
            "the system `{name}` ended before it was ready ({ending}); {}",
            child.log_tail(TAIL_LINES)
        )),
        None => LabError::Start(format!(
            "the system `{name}` was not ready within {:?}: {last}; if it needs longer, raise `ready_within` in the \
             scenario; {}",
            deadline.within,
            child.log_tail(TAIL_LINES)
        )),
    }
}

fn check_wish(wish: &dyn Fn() -> Wish) -> Result<(), LabError> {
    if wish() == Wish::GoOn { Ok(()) } else { Err(LabError::Interrupted(None)) }
}

fn cannot_write(path: &Path, error: &std::io::Error) -> LabError {
    LabError::Usage(format!("cannot write {}: {error}; choose another place with --out", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn setup(folder: &Path, executable: &str) -> Setup {
        Setup {
            executable: executable.into(),
            run_dir: folder.to_owned(),
            cores: Vec::new(),
            keep_data: false,
        }
    }

    fn system(origin: SystemOrigin, within_ms: u64) -> System {
        System {
            origin,
            ready_within: Duration::from_millis(within_ms),
            health: "/health".into(),
            ..System::default()
        }
    }

    fn command(words: &[&str]) -> SystemOrigin {
        SystemOrigin::Command(words.iter().map(|word| (*word).to_owned()).collect())
    }

    fn go_on() -> Wish {
        Wish::GoOn
    }

    #[test]
    fn a_child_that_dies_at_once_is_quoted() {
        let folder = tempfile::tempdir().unwrap();
        let origin = command(&["sh", "-c", "echo cannot bind {port} >&2; exit 3"]);
        let error = Running::start(&system(origin, 20_000), &setup(folder.path(), "x"), &go_on).unwrap_err();
        let text = error.to_string();
        assert!(
            text.contains("ended before it was ready (exit status 3)") && text.contains("| cannot bind"),
            "{text}"
        );
        assert!(!text.contains("{port}"), "{text}");
        assert_eq!(error.exit_status(), 3);
    }

    #[test]
    fn a_child_that_never_becomes_ready_is_stopped() {
        let folder = tempfile::tempdir().unwrap();
        let pid_file = folder.path().join("pid");
        let script = format!("echo $$ > {}; exec sleep 600", pid_file.display());
        let origin = command(&["sh", "-c", &script]);
        let error = Running::start(&system(origin, 500), &setup(folder.path(), "x"), &go_on).unwrap_err();
        let text = error.to_string();
        assert!(text.contains("not ready within 500ms") && text.contains("ready_within"), "{text}");
        let id: i32 = fs::read_to_string(pid_file).unwrap().trim().parse().unwrap();
        assert!(rustix::process::test_kill_process(rustix::process::Pid::from_raw(id).unwrap()).is_err());
    }

    #[test]
    fn a_wish_to_stop_ends_the_wait() {
        let folder = tempfile::tempdir().unwrap();
        let begin = Instant::now();
        let origin = command(&["sleep", "600"]);
        let error =
            Running::start(&system(origin, 600_000), &setup(folder.path(), "x"), &|| Wish::Stop).unwrap_err();
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
        let mut running = Running::start(&system, &setup(folder.path(), &executable), &go_on).unwrap();
        assert_eq!(running.url, format!("http://127.0.0.1:{port}"));
        assert_eq!(running.durability.as_deref(), Some("synced"));
        let data = running.data_dir().unwrap().to_owned();
        assert!(data.is_dir() && running.ended().is_none());
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

    #[test]
    fn a_shipped_system_that_refuses_its_settings_is_wrong_use() {
        let folder = tempfile::tempdir().unwrap();
        let executable = stand_in(folder.path(), "echo 'no such setting: customres' >&2; exit 2");
        let system = system(SystemOrigin::Shipped("airline".into()), 20_000);
        let error = Running::start(&system, &setup(folder.path(), &executable), &go_on).unwrap_err();
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
        let running = Running::start(&system, &setup, &go_on).unwrap();
        assert_eq!(running.target.address.to_string(), format!("unix:{}", path.display()));
        assert_eq!(running.target.authority, "shop.invalid");
        system.connect_to = Some("unix:/no/such.sock".into());
        let error = Running::start(&system, &setup, &go_on).unwrap_err().to_string();
        assert!(error.contains("nobody answers") && error.contains("unix:/no/such.sock"), "{error}");
    }

    #[test]
    fn nobody_at_a_url_says_so() {
        let folder = tempfile::tempdir().unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let setup = setup(folder.path(), "x");
        let mut running =
            Running::start(&system(SystemOrigin::Url(url.clone()), 100), &setup, &go_on).unwrap();
        assert!(running.process_id().is_none() && running.stop().is_none());
        drop(listener);
        let error = Running::start(&system(SystemOrigin::Url(url), 100), &setup, &go_on).unwrap_err();
        assert!(error.to_string().contains("nobody answers"), "{error}");
        let error = Running::start(&system(SystemOrigin::Unknown, 100), &setup, &go_on).unwrap_err();
        assert_eq!(error.exit_status(), 2);
    }
}
