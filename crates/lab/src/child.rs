//! A child process that never outlives its reason: stopped on success, on error, on a panic.
//!
//! It stands in a process group of its own, so that a terminal's Ctrl-C reaches us only and its own children can be
//! stopped with it. Its standard input is a pipe that we hold open and never write to: when we die, by `kill -9`
//! too, the pipe closes, and a child that minds it (`tidemark serve --stop-with-parent` does) ends itself. A child
//! that is frozen cannot mind anything, and other people's servers do not: as long as that is so, a small shell waits
//! for our end and kills it then.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, sync_channel};
use std::time::{Duration, Instant};

use rustix::process::{
    Pid, Signal, WaitId, WaitIdOptions, getpgid, kill_process, kill_process_group, waitid,
};

use crate::descendants::{Identity, descendants};
use crate::pin;

/// How often a child that should end is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(5);
/// Longest line of a child's output that is read as one.
const LINE_BYTES_MAX: u64 = 64 * 1024;
/// Bytes at the end of a log that an error quotes from.
const TAIL_BYTES: u64 = 16 * 1024;
/// Lines of a log that an error quotes: Node says what is wrong above some fifteen lines of a trace.
pub const TAIL_LINES: usize = 25;
/// Longest quoted line, characters.
const TAIL_LINE_CHARS: usize = 300;
/// Most bytes of a log that are looked through at once.
const LOG_READ_BYTES: u64 = 1 << 20;
/// What stands by while a process group is frozen: its standard input ends when we do.
const WATCHDOG: &str = "read -r _ || kill -s KILL -- \"-$0\" \"$@\"";
/// What stands by while others' processes stand still, which are to go on then.
const WATCHDOG_OF_FROZEN: &str = "read -r _ || kill -s CONT -- \"$0\" \"$@\"";
#[cfg(feature = "fleet")]
/// The same for a folder, in which somebody who is killed at the same time may still write.
const WATCHDOG_OF_FOLDER: &str = "read -r _ || { rm -rf -- \"$0\"; sleep 1; rm -rf -- \"$0\"; }";
/// The same for a mount.
const WATCHDOG_OF_MOUNT: &str = "read -r _ || { umount -l \"$0\"; rmdir \"$0\" \"${0%/*}\"; }";

/// Process groups of the children that live; for the one way out that runs no destructor.
static ALIVE: Mutex<Vec<Pid>> = Mutex::new(Vec::new());

/// Kills every child that is alive. Only for an end of the process that runs no destructors.
pub fn kill_all() {
    let groups = ALIVE.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).clone();
    for group in groups {
        let below = descendants(group);
        let _ = kill_process_group(group, Signal::KILL);
        for id in below {
            let _ = kill_process(id, Signal::KILL);
        }
    }
}

/// What is started.
#[derive(Debug, Clone)]
pub struct Spec {
    /// Name for messages.
    pub name: String,
    /// The command and its arguments.
    pub command: Vec<String>,
    /// Variables of its environment, beside ours.
    pub env: BTreeMap<String, String>,
    /// The folder that it is started in; ours if there is none.
    pub cwd: Option<PathBuf>,
    /// Where its output goes.
    pub log: PathBuf,
    /// Cores that it and its children are held to; empty for all.
    pub cores: Vec<usize>,
    /// Whether others on its cores go first: it runs at a lower priority.
    pub yields: bool,
    /// Whether it takes a core from nobody when something comes for it, but waits for its turn.
    pub takes_turns: bool,
    /// Whether its first line on standard output is waited for; what follows goes into the log.
    pub announces: bool,
    /// Whether whoever starts it takes its [pipes](Child::pipes): nothing that it writes on standard output goes into the log.
    pub hands_over: bool,
    /// The numbers of the user and the group that it runs as; ours where there are none.
    pub user: Option<(u32, u32)>,
    /// The signal by which it is asked to end.
    pub stop_signal: Signal,
}

impl Spec {
    /// On all cores, as any other process, and with nothing waited for.
    pub fn new(name: impl Into<String>, command: Vec<String>, log: PathBuf) -> Self {
        let (name, cores) = (name.into(), Vec::new());
        Spec {
            name,
            command,
            env: BTreeMap::new(),
            cwd: None,
            log,
            cores,
            yields: false,
            takes_turns: false,
            announces: false,
            hands_over: false,
            user: None,
            stop_signal: Signal::TERM,
        }
    }
}

/// A child process; stopped when dropped.
#[derive(Debug)]
pub struct Child {
    name: String,
    process: std::process::Child,
    group: Pid,
    log: PathBuf,
    /// Where its own output begins in the log, bytes.
    log_begin: u64,
    announcement: Option<Receiver<String>>,
    stop_signal: Signal,
    ended: Option<ExitStatus>,
    /// Who stands by while it is frozen.
    frozen: Option<Watchdog>,
    /// What stands still with it in groups of their own.
    others: Vec<Pid>,
    /// What was below it when it was asked to end: once it has ended, they are nobody's.
    below: Vec<Identity>,
    /// Who stands by as long as it lives.
    guard: Option<Watchdog>,
}

/// Kills a process group, removes a folder, or detaches a mount, if we die; ended when dropped.
#[derive(Debug)]
pub struct Watchdog(std::process::Child);

impl Watchdog {
    /// Over a group, and processes of other groups that stand still.
    fn over(group: Pid, others: &[Pid]) -> io::Result<Watchdog> {
        let words = std::iter::once(&group).chain(others).map(|id| id.as_raw_nonzero().to_string());
        let words: Vec<String> = words.collect();
        Watchdog::start(WATCHDOG, words.iter().map(OsStr::new))
    }

    /// Lets processes go on that stand still.
    pub fn over_frozen<'a>(ids: impl IntoIterator<Item = &'a OsStr>) -> io::Result<Watchdog> {
        Watchdog::start(WATCHDOG_OF_FROZEN, ids)
    }

    /// Has it do what it stands by for.
    #[cfg(test)]
    pub fn as_if_we_died(&mut self) {
        drop(self.0.stdin.take());
    }

    /// Removes a folder with all that is in it.
    #[cfg(feature = "fleet")]
    pub fn over_folder(folder: &Path) -> io::Result<Watchdog> {
        Watchdog::start(WATCHDOG_OF_FOLDER, [folder.as_os_str()])
    }

    /// Detaches what is mounted at a folder, and removes that.
    pub fn over_mount(folder: &Path) -> io::Result<Watchdog> {
        Watchdog::start(WATCHDOG_OF_MOUNT, [folder.as_os_str()])
    }

    /// The script is one of ours; what it is about is its `$0` and `$@` and never read as one.
    fn start<'a>(script: &str, about: impl IntoIterator<Item = &'a OsStr>) -> io::Result<Watchdog> {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", script]).args(about).stdin(Stdio::piped());
        // a group of its own: a terminal's Ctrl-C is not for it
        command.stdout(Stdio::null()).stderr(Stdio::null()).process_group(0);
        command.spawn().map(Watchdog)
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        // killed before its input ends, or it would do what it stands by for
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Child {
    /// Starts it.
    pub fn spawn(spec: &Spec) -> io::Result<Child> {
        let (program, arguments) = spec
            .command
            .split_first()
            .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "no command"))?;
        let log = OpenOptions::new().create(true).append(true).open(&spec.log)?;
        let log_begin = log.metadata()?.len();
        let mut command = Command::new(program);
        command.args(arguments).stdin(Stdio::piped()).stderr(log.try_clone()?).process_group(0);
        command.envs(&spec.env);
        if let Some(folder) = &spec.cwd {
            command.current_dir(folder);
        }
        if let Some((uid, gid)) = spec.user {
            command.uid(uid).gid(gid);
        }
        let is_read = spec.announces || spec.hands_over;
        command.stdout(if is_read { Stdio::piped() } else { log.try_clone()?.into() });
        let mut process = pin::with_cores(&spec.cores, || {
            pin::considerate(spec.yields, spec.takes_turns, || command.spawn())
        })??;
        let group = Pid::from_child(&process);
        ALIVE.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).push(group);
        let output = if spec.hands_over { None } else { process.stdout.take() };
        let mut child = Child {
            name: spec.name.clone(),
            process,
            group,
            log: spec.log.clone(),
            log_begin,
            announcement: None,
            stop_signal: spec.stop_signal,
            ended: None,
            frozen: None,
            others: Vec::new(),
            below: Vec::new(),
            guard: None,
        };
        // from here on a return drops the child, which stops it
        if let Some(output) = output {
            let (sender, receiver) = sync_channel(1);
            std::thread::Builder::new().name(format!("out-{}", spec.name)).spawn(move || {
                let mut output = BufReader::new(output);
                let mut line = Vec::new();
                if output
                    .by_ref()
                    .take(LINE_BYTES_MAX)
                    .read_until(b'\n', &mut line)
                    .is_ok_and(|read| read > 0)
                {
                    let _ = sender.send(String::from_utf8_lossy(&line).trim_end().to_owned());
                }
                drop(sender);
                let mut log: File = log;
                // must be drained to the end, or the child would block; a full disk only loses its log
                let _ = io::copy(&mut output, &mut log);
                let _ = log.flush();
                let _ = io::copy(&mut output, &mut io::sink());
            })?;
            child.announcement = Some(receiver);
        }
        Ok(child)
    }

    /// Has it killed, with its children, should this process die before it: for a program that does not mind the end
    /// of its standard input.
    pub fn guard(&mut self) -> io::Result<()> {
        if self.guard.is_none() && self.ending().is_none() {
            self.guard = Some(Watchdog::over(self.group, &[])?);
        }
        Ok(())
    }

    /// Its standard input and output, of one that hands over; once. It may end when its input does.
    pub fn pipes(&mut self) -> Option<(ChildStdin, ChildStdout)> {
        Some((self.process.stdin.take()?, self.process.stdout.take()?))
    }

    /// Its process id.
    pub fn id(&self) -> u32 {
        self.process.id()
    }

    /// The first line of its standard output, if it is there by now. `Some(Err(()))` where it closed its output
    /// without a line.
    pub fn announcement(&self) -> Option<Result<String, ()>> {
        use std::sync::mpsc::TryRecvError;
        match self.announcement.as_ref()?.try_recv() {
            Ok(line) => Some(Ok(line)),
            Err(TryRecvError::Empty) => None,
            Err(TryRecvError::Disconnected) => Some(Err(())),
        }
    }

    /// How it ended, if it has: `exit status 1`, `killed by signal 9`.
    pub fn ending(&mut self) -> Option<String> {
        if self.ended.is_none() && self.has_ended() {
            self.reap();
        }
        self.ended.map(ending_text)
    }

    /// The exit status, if it has ended with one.
    pub fn exit_code(&mut self) -> Option<i32> {
        self.ending()?;
        self.ended?.code()
    }

    /// Asks it to end (SIGTERM where its [`Spec`] names no other signal) and, once it has, what it started in groups of
    /// their own; waits as long as `grace`, kills what is left (SIGKILL), and returns how it ended.
    pub fn stop(&mut self, grace: Duration) -> String {
        self.stop_while(grace, &|| true)
    }

    /// The same; it is killed at once where it need not be waited for any more.
    pub fn stop_while(&mut self, grace: Duration, patient: &dyn Fn() -> bool) -> String {
        if self.ended.is_none() {
            self.below = descendants(self.group).into_iter().filter_map(Identity::of).collect();
            // only fails where nobody is left to get it
            let _ = kill_process_group(self.group, self.stop_signal);
            self.thaw();
            let begin = Instant::now();
            let is_waited_for = || begin.elapsed() < grace && patient();
            while !self.has_ended() && is_waited_for() {
                std::thread::sleep(LOOK_EVERY);
            }
            if self.has_ended() {
                for id in self.in_other_groups() {
                    let _ = kill_process(id, self.stop_signal);
                }
                while !self.in_other_groups().is_empty() && is_waited_for() {
                    std::thread::sleep(LOOK_EVERY);
                }
            }
        }
        self.kill()
    }

    /// Kills it and all its children (SIGKILL), and returns how it ended.
    pub fn kill(&mut self) -> String {
        self.reap();
        self.ended.map_or_else(|| "unknown end".into(), ending_text)
    }

    /// Stops it and its children where they stand (SIGSTOP), until they are [thawed](Child::thaw). Should this
    /// process die before that, they are killed.
    pub fn freeze(&mut self) -> io::Result<()> {
        if self.frozen.is_none() && self.ending().is_none() {
            // before anything stands still, and again with what does
            self.frozen = Some(Watchdog::over(self.group, &[])?);
            kill_process_group(self.group, Signal::STOP)?;
            self.others = self.stop_others();
            if !self.others.is_empty() {
                self.frozen = Some(Watchdog::over(self.group, &self.others)?);
            }
        }
        Ok(())
    }

    /// Stops (SIGSTOP) what its processes have started in groups of their own, as PostgreSQL does, once its own group
    /// stands still. Who stands still starts nothing more, so that this finds an end; and who is not reaped, since who
    /// would do that stands still, too, keeps its number.
    fn stop_others(&self) -> Vec<Pid> {
        let mut stopped: Vec<Pid> = Vec::new();
        loop {
            let mut more = self.in_other_groups();
            more.retain(|id| !stopped.contains(id));
            if more.is_empty() {
                return stopped;
            }
            for id in more {
                // only fails where nobody is left to get it
                let _ = kill_process(id, Signal::STOP);
                stopped.push(id);
            }
        }
    }

    /// What its processes have started in groups of their own, also what was below it before and is nobody's by now.
    fn in_other_groups(&self) -> Vec<Pid> {
        let mut all = descendants(self.group);
        for process in self.below.iter().filter(|process| process.is_there()) {
            if !all.contains(&process.id) {
                all.push(process.id);
                all.extend(descendants(process.id));
            }
        }
        all.retain(|id| getpgid(Some(*id)).is_ok_and(|group| group != self.group));
        all
    }

    /// Lets it go on.
    pub fn thaw(&mut self) {
        if self.frozen.take().is_some() {
            // only fails where nobody is left to get it
            for id in self.others.drain(..) {
                let _ = kill_process(id, Signal::CONT);
            }
            let _ = kill_process_group(self.group, Signal::CONT);
        }
    }

    /// Whether it has ended; it is not reaped yet, so that its process group stays its own.
    fn has_ended(&self) -> bool {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
        match waitid(WaitId::Pid(self.group), options) {
            Ok(status) => status.is_some(),
            Err(_) => true,
        }
    }

    /// Kills whatever is left of the group and of what it started in others, then reaps the child. The order matters: as
    /// long as the child is not reaped nobody else can have its number.
    fn reap(&mut self) {
        if self.ended.is_some() {
            return;
        }
        (self.frozen, self.guard) = (None, None);
        let _ = kill_process_group(self.group, Signal::STOP);
        for id in self.stop_others() {
            let _ = kill_process(id, Signal::KILL);
        }
        let _ = kill_process_group(self.group, Signal::KILL);
        self.ended = Some(self.process.wait().unwrap_or_else(|_| ExitStatus::from_raw(0)));
        ALIVE.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).retain(|group| *group != self.group);
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Looks for a text in what it has printed since it was started.
    ///
    /// # Errors
    /// Where its log cannot be read.
    pub fn log_search(&self, wanted: &str) -> io::Result<LogSearch> {
        let mut log = File::open(&self.log)?;
        log.seek(SeekFrom::Start(self.log_begin))?;
        Ok(LogSearch { log, wanted: wanted.as_bytes().to_vec(), seen: Vec::new() })
    }

    /// The last lines of its log, indented, for an error to quote; says so where there are none.
    pub fn log_tail(&self, lines: usize) -> String {
        log_tail(&self.log, lines)
    }
}

/// Looks for a text in a log that grows.
#[derive(Debug)]
pub struct LogSearch {
    log: File,
    wanted: Vec<u8>,
    /// The end of what was read before, in which the text may begin.
    seen: Vec<u8>,
}

impl LogSearch {
    /// Whether it has come by now; a log that grows faster than it is read is gone on with next time.
    ///
    /// # Errors
    /// Where the log cannot be read.
    pub fn is_found(&mut self) -> io::Result<bool> {
        (&mut self.log).take(LOG_READ_BYTES).read_to_end(&mut self.seen)?;
        let is_found = self.seen.windows(self.wanted.len().max(1)).any(|part| part == self.wanted);
        let rest = self.seen.len().saturating_sub(self.wanted.len().saturating_sub(1));
        self.seen.drain(..rest);
        Ok(is_found)
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        self.reap();
    }
}

fn ending_text(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("exit status {code}"),
        (None, Some(signal)) => format!("killed by signal {signal}"),
        (None, None) => "unknown end".into(),
    }
}

pub(crate) fn log_tail(log: &Path, lines: usize) -> String {
    let read = || -> io::Result<Vec<u8>> {
        let mut file = File::open(log)?;
        let length = file.metadata()?.len();
        let begin = length.saturating_sub(TAIL_BYTES);
        file.seek(SeekFrom::Start(begin))?;
        let mut bytes = Vec::new();
        file.take(TAIL_BYTES).read_to_end(&mut bytes)?;
        if begin > 0 {
            // by its end alone a secret is not known: a line whose beginning was not read is not quoted
            let first = bytes.iter().position(|byte| *byte == b'\n').map_or(bytes.len(), |at| at + 1);
            bytes.drain(..first);
            if bytes.trim_ascii().is_empty() {
                bytes = "…".into();
            }
        }
        Ok(bytes)
    };
    let text = String::from_utf8_lossy(&read().unwrap_or_default()).into_owned();
    let mut tail: Vec<String> = text
        .lines()
        .rev()
        .filter(|line| !line.trim().is_empty())
        .take(lines)
        .map(|line| match line.char_indices().nth(TAIL_LINE_CHARS) {
            // what is cut off says so, and a secret that is cut is known by that
            Some((end, _)) => format!("  | {}…", &line[..end]),
            None => format!("  | {line}"),
        })
        .collect();
    tail.reverse();
    if tail.is_empty() {
        format!("its log {} is empty", log.display())
    } else {
        format!("the end of its log {}:\n{}", log.display(), tail.join("\n"))
    }
}

#[cfg(test)]
mod tests;
