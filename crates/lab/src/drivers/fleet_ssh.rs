//! A fleet that a run makes for itself: NATS beside the coordinator, and an agent on each machine that `ssh` reaches.
//!
//! One `ssh` for each machine does it all. It takes this executable there, starts it as an agent, and holds a tunnel back to
//! NATS, which listens on loopback alone. The agent ends with its standard input: whatever becomes of the coordinator, nothing
//! stays behind.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{ChildStdin, ChildStdout};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::time::{Duration, Instant};

use rustix::system::uname;
use tidemark_fleet::{PrivateFolder, Server};

use super::could_not_drive;
use super::fleet_agent::word;
use crate::child::{Child, Spec, Watchdog};
use crate::error::LabError;
use crate::interrupt::StopRequest;
use crate::stores::password;

/// Most machines.
const MACHINES_MAX: usize = 999;
/// Longest time that NATS may take until it listens.
const NATS_WITHIN: Duration = Duration::from_secs(10);
/// Longest time that a copy may take, and that an agent may take until it waits for work.
const COPIED_WITHIN: Duration = Duration::from_secs(600);
const WAITS_WITHIN: Duration = Duration::from_secs(30);
/// Longest time that agents may take to end once their input has.
const END_WITHIN: Duration = Duration::from_secs(5);
/// How often something is looked for.
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// Bytes that are sent at once.
const CHUNK_BYTES: usize = 64 << 10;
/// What is read of a log, bytes, and how many of its last lines an error quotes.
const LOG_BYTES: u64 = 64 << 10;
const QUOTED_LINES: usize = 5;

/// What runs on a machine: `$1` is how this machine names its system and processor, `$2` the size of the executable, `$3` the
/// agent's name. One line without single quotes, so that every login shell hands it on as it is.
const SCRIPT: &str = "umask 077; there=$(uname -sm); [ \"$there\" = \"$1\" ] || { echo \"machine $there\"; exit 1; }; \
    d=$(mktemp -d \"${TMPDIR:-/tmp}/tidemark-agent.XXXXXX\") || exit 1; end() { rm -rf \"$d\"; }; \
    trap end EXIT; trap \"exit 1\" HUP INT TERM; \
    head -c \"$2\" >\"$d/tidemark\" && [ $(wc -c <\"$d/tidemark\") -eq \"$2\" ] && chmod 700 \"$d/tidemark\" || exit 1; \
    echo copied; \
    TMPDIR=\"$d\" \"$d/tidemark\" agent --nats - --name \"$3\" --allow 0.0.0.0/0 --allow ::/0";
/// What an agent says once it waits for work.
const WAITS: &str = "waits for work at";

/// Machines that `ssh` reaches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Machines {
    hosts: Vec<Host>,
    /// A file of settings for `ssh` in place of the user's.
    config: Option<PathBuf>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Host {
    user: Option<String>,
    host: String,
    port: Option<u16>,
    /// The name of its agent.
    agent: String,
}

impl Machines {
    /// Reads `host1,user@host2:port,…`, which is what follows `ssh://`.
    ///
    /// # Errors
    /// In words.
    pub fn parse(text: &str, config: Option<PathBuf>) -> Result<Machines, String> {
        let mut hosts: Vec<Host> = Vec::new();
        for part in text.split(',') {
            let mut host = Host::parse(part)
                .ok_or_else(|| format!("--fleet ssh://: \"{part}\" is not HOST, USER@HOST or HOST:PORT"))?;
            let plain = host.agent.clone();
            let mut number = 1;
            while hosts.iter().any(|other| other.agent == host.agent) {
                number += 1;
                host.agent = format!("{plain}-{number}");
            }
            hosts.push(host);
        }
        match hosts.len() {
            ..=MACHINES_MAX => Ok(Machines { hosts, config }),
            many => Err(format!("--fleet ssh://: {many} machines; {MACHINES_MAX} are the most")),
        }
    }

    /// How many.
    pub fn count(&self) -> usize {
        self.hosts.len()
    }
}

impl Host {
    fn parse(text: &str) -> Option<Host> {
        let (user, place) = match text.split_once('@') {
            Some((user, place)) => (Some(user.to_owned()), place),
            None => (None, text),
        };
        let (host, port) = match (place.strip_prefix('['), place.rsplit_once(':')) {
            (Some(bracketed), _) => {
                let (host, behind) = bracketed.split_once(']')?;
                (host, if behind.is_empty() { None } else { Some(behind.strip_prefix(':')?) })
            }
            (None, Some((host, port))) => (host, Some(port)),
            (None, None) => (place, None),
        };
        // an option of ssh begins with a dash
        let is_word = |text: &str, more: &str| {
            let is_right = |letter: char| letter.is_ascii_alphanumeric() || more.contains(letter);
            !text.is_empty() && !text.starts_with('-') && text.len() <= 253 && text.chars().all(is_right)
        };
        let colons = if place.starts_with('[') { "._-:%" } else { "._-" };
        if !is_word(host, colons) || user.as_ref().is_some_and(|user| !is_word(user, "._-")) {
            return None;
        }
        let port = port.map(|port| port.parse().ok().filter(|port| *port > 0).ok_or(())).transpose().ok()?;
        let agent = word(host).chars().take(50).collect();
        Some(Host { user, host: host.to_owned(), port, agent })
    }

    /// The command that has it run something: `ssh` with a tunnel back to a port of this machine.
    fn command(&self, config: Option<&Path>, nats_port: u16, words: &[&str]) -> Vec<String> {
        let mut command: Vec<String> = vec!["ssh".into()];
        if let Some(config) = config {
            command.extend(["-F".into(), config.display().to_string()]);
        }
        // without a password, and apart from connections that the user shares; the port is told in the log
        for option in [
            "BatchMode=yes",
            "ConnectTimeout=10",
            "ControlMaster=no",
            "ControlPath=none",
            "ExitOnForwardFailure=yes",
            "ForwardAgent=no",
            "ForwardX11=no",
            "LogLevel=INFO",
            "RemoteCommand=none",
            "ServerAliveInterval=5",
        ] {
            command.extend(["-o".into(), option.into()]);
        }
        command.extend(["-T".into(), "-R".into(), format!("127.0.0.1:0:127.0.0.1:{nats_port}")]);
        command.extend(self.port.into_iter().flat_map(|port| ["-p".into(), port.to_string()]));
        command.extend(self.user.iter().flat_map(|user| ["-l".into(), user.clone()]));
        command.extend(["--".into(), self.host.clone()]);
        command.push(words.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" "));
        command
    }
}

/// A word as every shell reads it as one.
fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// A fleet that is there, and is taken down when dropped.
#[derive(Debug)]
pub struct Placed {
    // agents end before the server, and the folder is the last
    agents: Vec<PlacedAgent>,
    /// Where the coordinator finds them.
    pub server: Server,
    _nats: Child,
    _watchdog: Watchdog,
    _folder: PrivateFolder,
}

impl Placed {
    /// Starts NATS here and an agent on each machine, and waits until all of them wait for work.
    ///
    /// # Errors
    /// With what a machine said, and on a stop request.
    pub fn start(
        machines: &Machines,
        executable: &Path,
        stop_request: &dyn Fn() -> StopRequest,
    ) -> Result<Placed, LabError> {
        let folder = PrivateFolder::new("fleet").map_err(could_not_drive)?;
        let watchdog = Watchdog::over_folder(folder.path()).map_err(could_not_drive)?;
        let password = password().map_err(could_not_drive)?;
        let (nats, port) = start_nats(folder.path(), &password, stop_request)?;
        let server = Server::at(&url(port, &password));
        let is_stopped = AtomicBool::new(false);
        let agents = std::thread::scope(|scope| {
            let started: Vec<_> = machines
                .hosts
                .iter()
                .enumerate()
                .map(|(number, host)| {
                    let log = folder.path().join(format!("ssh-{number}.log"));
                    let (password, is_stopped) = (&password, &is_stopped);
                    scope.spawn(move || {
                        let nats = (port, password.as_str());
                        PlacedAgent::start(
                            host,
                            machines.config.as_deref(),
                            executable,
                            (nats, log),
                            is_stopped,
                        )
                        .inspect_err(|_| is_stopped.store(true, Ordering::Relaxed))
                    })
                })
                .collect();
            while started.iter().any(|thread| !thread.is_finished()) {
                if stop_request() != StopRequest::None {
                    is_stopped.store(true, Ordering::Relaxed);
                }
                std::thread::sleep(LOOK_EVERY);
            }
            let ended = started.into_iter().map(|thread| {
                thread.join().unwrap_or_else(|_| Err(could_not_drive("a thread for ssh broke")))
            });
            ended.collect::<Vec<Result<PlacedAgent, LabError>>>()
        });
        // the flaw itself rather than that others were stopped for it
        let (agents, mut flaws): (Vec<_>, Vec<_>) = agents.into_iter().partition(Result::is_ok);
        let placed = Placed {
            agents: agents.into_iter().flatten().collect(),
            server,
            _nats: nats,
            _watchdog: watchdog,
            _folder: folder,
        };
        flaws.sort_by_key(|flaw| matches!(flaw, Err(LabError::Interrupted(_))));
        match flaws.into_iter().find_map(Result::err) {
            Some(flaw) => Err(flaw),
            None => Ok(placed),
        }
    }
}

impl Drop for Placed {
    fn drop(&mut self) {
        // all at once, and then each is waited for
        for agent in &mut self.agents {
            agent.input.take();
        }
    }
}

fn url(port: u16, password: &str) -> String {
    format!("nats://tidemark:{password}@127.0.0.1:{port}")
}

/// Starts NATS on a free port of loopback. Its password stands in a file that only its owner reads.
fn start_nats(
    folder: &Path,
    password: &str,
    stop_request: &dyn Fn() -> StopRequest,
) -> Result<(Child, u16), LabError> {
    let config = folder.join("nats.conf");
    let text = format!(
        "listen: \"127.0.0.1:-1\"\nports_file_dir: {0:?}\njetstream {{ store_dir: {0:?} }}\n\
         authorization {{ user: tidemark, password: \"{password}\" }}\n",
        folder.display().to_string()
    );
    std::fs::write(&config, text).map_err(could_not_drive)?;
    let command = vec!["nats-server".to_owned(), "-c".into(), config.display().to_string()];
    let log = folder.join("nats.log");
    let spec = Spec::new("nats-server", command, log.clone());
    let mut nats = Child::spawn(&spec).map_err(|error| not_started("nats-server", "nats-server", &error))?;
    nats.guard().map_err(could_not_drive)?;
    let begun = Instant::now();
    loop {
        if let Some(port) = port_of(folder) {
            return Ok((nats, port));
        }
        if stop_request() != StopRequest::None {
            return Err(LabError::Interrupted(None));
        }
        let flaw = match nats.ending() {
            Some(ending) => ending,
            None if begun.elapsed() > NATS_WITHIN => "it does not listen".into(),
            None => {
                std::thread::sleep(LOOK_EVERY);
                continue;
            }
        };
        return Err(could_not_drive(format!("nats-server: {flaw}: {}", last_lines(&log))));
    }
}

/// The port that NATS wrote down; none as long as it has not.
fn port_of(folder: &Path) -> Option<u16> {
    let files = std::fs::read_dir(folder).ok()?.flatten().map(|entry| entry.path());
    let file = files.into_iter().find(|path| path.extension().is_some_and(|end| end == "ports"))?;
    let ports: serde_json::Value = serde_json::from_slice(&std::fs::read(file).ok()?).ok()?;
    ports["nats"][0].as_str()?.rsplit_once(':')?.1.parse().ok()
}

fn not_started(program: &str, package: &str, error: &io::Error) -> LabError {
    match error.kind() {
        io::ErrorKind::NotFound => LabError::Usage(format!(
            "--fleet ssh://: {program} is not on the PATH; install it (Debian: apt-get install {package})"
        )),
        _ => could_not_drive(format!("{program}: {error}")),
    }
}

/// The last lines that a program wrote, in one.
fn last_lines(log: &Path) -> String {
    let mut text = String::new();
    let mut bytes = Vec::new();
    if let Ok(file) = File::open(log) {
        let _ = file.take(LOG_BYTES).read_to_end(&mut bytes);
        text = String::from_utf8_lossy(&bytes).into_owned();
    }
    let lines =
        text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with("Allocated port"));
    let lines: Vec<String> = lines.map(crate::exchange::shown).collect();
    match lines.len() {
        0 => "it said nothing".into(),
        all => lines[all.saturating_sub(QUOTED_LINES)..].join("; "),
    }
}

/// An agent on another machine, with the `ssh` that holds it.
#[derive(Debug)]
struct PlacedAgent {
    ssh: Child,
    /// The agent ends with it.
    input: Option<ChildStdin>,
}

impl PlacedAgent {
    fn start(
        host: &Host,
        config: Option<&Path>,
        executable: &Path,
        ((nats_port, password), log): ((u16, &str), PathBuf),
        is_stopped: &AtomicBool,
    ) -> Result<PlacedAgent, LabError> {
        let unread = |error: io::Error| could_not_drive(format!("{}: {error}", executable.display()));
        let file = File::open(executable).map_err(unread)?;
        let bytes = file.metadata().map_err(unread)?.len();
        let here = uname();
        let here = format!("{} {}", here.sysname().to_string_lossy(), here.machine().to_string_lossy());
        let size = bytes.to_string();
        let words = ["sh", "-c", SCRIPT, "tidemark", &here, &size, &host.agent];
        let mut spec =
            Spec::new(format!("ssh {}", host.host), host.command(config, nats_port, &words), log.clone());
        spec.hands_over = true;
        let mut ssh = Child::spawn(&spec).map_err(|error| not_started("ssh", "openssh-client", &error))?;
        let (input, output) = ssh.pipes().ok_or_else(|| could_not_drive("ssh has no pipes"))?;
        let mut agent = PlacedAgent { ssh, input: Some(input) };
        let mut starting = Starting { agent: &mut agent, host, log: &log, lines: lines(output)?, is_stopped };
        starting.copy(file, &here)?;
        let port = starting.until(WAITS_WITHIN, "ssh opened no tunnel", |_| allocated(&log))?;
        let url = format!("{}\n", url(port, password));
        if let Some(input) = &mut starting.agent.input {
            // one that is gone is told of below
            let _ = input.write_all(url.as_bytes());
        }
        starting.until(WAITS_WITHIN, "its agent does not begin", |_| {
            let log = std::fs::read(&log).ok()?;
            String::from_utf8_lossy(&log).contains(WAITS).then_some(())
        })?;
        Ok(agent)
    }
}

impl Drop for PlacedAgent {
    fn drop(&mut self) {
        self.input.take();
        let begun = Instant::now();
        while self.ssh.ending().is_none() && begun.elapsed() < END_WITHIN {
            std::thread::sleep(LOOK_EVERY);
        }
    }
}

/// An agent that is about to be.
struct Starting<'a> {
    agent: &'a mut PlacedAgent,
    host: &'a Host,
    log: &'a Path,
    lines: Receiver<String>,
    is_stopped: &'a AtomicBool,
}

impl Starting<'_> {
    /// Sends the executable, and waits until it is there.
    fn copy(&mut self, mut file: File, here: &str) -> Result<(), LabError> {
        let Some(mut input) = self.agent.input.take() else { return Ok(()) };
        // a machine may take nothing: a thread waits for it, which ends with ssh
        let write = move || {
            let mut chunk = vec![0; CHUNK_BYTES];
            while let Ok(read) = file.read(&mut chunk) {
                // whoever takes no more says why
                if read == 0 || input.write_all(&chunk[..read]).is_err() {
                    break;
                }
            }
            input
        };
        let writer =
            std::thread::Builder::new().name("ssh copy".into()).spawn(write).map_err(could_not_drive)?;
        let said = self.until(COPIED_WITHIN, "the copy did not finish", |starting| {
            match starting.lines.recv_timeout(LOOK_EVERY) {
                // greetings of a machine are passed over
                Ok(line) if line == "copied" || line.starts_with("machine ") => Some(line),
                Ok(_) | Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => None,
            }
        })?;
        match said.strip_prefix("machine ") {
            None => {
                self.agent.input = writer.join().ok();
                Ok(())
            }
            Some(there) => Err(LabError::Usage(format!(
                "{}: it is {}, and this program is for {here}; start `tidemark agent --nats …` there with one for it",
                self.host.host,
                crate::exchange::shown(there)
            ))),
        }
    }

    /// Waits until something is there.
    fn until<T>(
        &mut self,
        within: Duration,
        late: &str,
        mut look: impl FnMut(&mut Self) -> Option<T>,
    ) -> Result<T, LabError> {
        let begun = Instant::now();
        loop {
            // what it said before it ended counts
            let ending = self.agent.ssh.ending();
            if let Some(found) = look(self) {
                return Ok(found);
            }
            if self.is_stopped.load(Ordering::Relaxed) {
                return Err(LabError::Interrupted(None));
            }
            let flaw = match ending {
                Some(ending) => format!("ssh: {ending}"),
                None if begun.elapsed() > within => late.to_owned(),
                None => {
                    std::thread::sleep(LOOK_EVERY);
                    continue;
                }
            };
            return Err(could_not_drive(format!("{}: {flaw}: {}", self.host.host, last_lines(self.log))));
        }
    }
}

/// The port on the other machine that leads to NATS, as `ssh` tells it.
fn allocated(log: &Path) -> Option<u16> {
    let log = std::fs::read(log).ok()?;
    let log = String::from_utf8_lossy(&log);
    let line = log.lines().find_map(|line| line.trim().strip_prefix("Allocated port "))?;
    line.split(' ').next()?.parse().ok()
}

/// The lines of an output as they come; few are kept, and others are of no use.
fn lines(output: ChildStdout) -> Result<Receiver<String>, LabError> {
    let (sender, lines) = sync_channel(16);
    let thread = std::thread::Builder::new().name("ssh".into());
    let read = move || {
        let mut output = BufReader::new(output);
        let mut line = Vec::new();
        while output.by_ref().take(LOG_BYTES).read_until(b'\n', &mut line).is_ok_and(|read| read > 0) {
            // where nobody takes it any more, it is drained all the same
            let _ = sender.send(String::from_utf8_lossy(&line).trim_end().to_owned());
            line.clear();
        }
    };
    thread.spawn(read).map_err(could_not_drive)?;
    Ok(lines)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn machines_are_words_of_ssh_and_agents_have_names() {
        let machines = Machines::parse("load1,me@load2:2222,[::1]:22,load1", None).unwrap();
        let named: Vec<&str> = machines.hosts.iter().map(|host| host.agent.as_str()).collect();
        assert_eq!(named, ["load1", "load2", "--1", "load1-2"]);
        let second = &machines.hosts[1];
        assert_eq!((second.user.as_deref(), second.port), (Some("me"), Some(2222)));
        for wrong in [
            "",
            "a,,b",
            "-oProxyCommand=x",
            "me@-x",
            "a b",
            "a;b",
            "a:",
            "a:0",
            "a:70000",
            "u:p@a",
            "[::1",
            "a/b",
        ] {
            assert!(Machines::parse(wrong, None).is_err(), "{wrong}");
        }
    }

    #[test]
    fn the_words_reach_a_program_as_they_are() {
        let host = Host::parse("me@load2:2222").unwrap();
        let command =
            host.command(Some(Path::new("/a b/config")), 4222, &["printf", "%s|", "it's", "$HOME; `x`", ""]);
        assert_eq!(command[..3], ["ssh", "-F", "/a b/config"]);
        let end = ["-p", "2222", "-l", "me", "--", "load2"];
        let last = command.len() - 1;
        assert_eq!(command[last - end.len()..last], end);
        let output = std::process::Command::new("sh").args(["-c", &command[last]]).output().unwrap();
        assert_eq!(String::from_utf8_lossy(&output.stdout), "it's|$HOME; `x`||");
        assert!(!SCRIPT.contains(['\'', '\n']));
    }
}
