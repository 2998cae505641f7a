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
use std::process::{Command, ExitStatus, Stdio};
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

/// Kills a process group, or detaches a mount, if we die; ended when dropped.
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
        command.stdout(if spec.announces { Stdio::piped() } else { log.try_clone()?.into() });
        let mut process = pin::with_cores(&spec.cores, || {
            pin::considerate(spec.yields, spec.takes_turns, || command.spawn())
        })??;
        let group = Pid::from_child(&process);
        ALIVE.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).push(group);
        let output = process.stdout.take();
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
        file.seek(SeekFrom::Start(length.saturating_sub(TAIL_BYTES)))?;
        let mut bytes = Vec::new();
        file.take(TAIL_BYTES).read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    let text = String::from_utf8_lossy(&read().unwrap_or_default()).into_owned();
    let mut tail: Vec<String> = text
        .lines()
        .rev()
        .filter(|line| !line.trim().is_empty())
        .take(lines)
        .map(|line| format!("  | {}", line.chars().take(TAIL_LINE_CHARS).collect::<String>()))
        .collect();
    tail.reverse();
    if tail.is_empty() {
        format!("its log {} is empty", log.display())
    } else {
        format!("the end of its log {}:\n{}", log.display(), tail.join("\n"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::process::test_kill_process;

    fn spec(folder: &Path, command: &[&str]) -> Spec {
        let words = command.iter().map(|word| (*word).to_owned()).collect();
        Spec::new(command[0], words, folder.join("log"))
    }

    fn alive(id: u32) -> bool {
        test_kill_process(Pid::from_raw(id as i32).unwrap()).is_ok()
    }

    fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
        let begin = Instant::now();
        while !holds() {
            assert!(begin.elapsed() < Duration::from_secs(60), "{what}");
            std::thread::sleep(LOOK_EVERY);
        }
    }

    #[test]
    fn a_child_is_asked_to_stop() {
        let folder = tempfile::tempdir().unwrap();
        let mut child = Child::spawn(&spec(folder.path(), &["sleep", "600"])).unwrap();
        assert!(alive(child.id()) && child.ending().is_none());
        assert_eq!(child.stop(Duration::from_secs(20)), "killed by signal 15");
        assert!(!alive(child.id()));
        assert_eq!(child.stop(Duration::ZERO), "killed by signal 15", "stopping twice is nothing new");
    }

    #[test]
    fn a_child_that_ignores_the_wish_is_killed_with_its_children() {
        let folder = tempfile::tempdir().unwrap();
        let script = "trap '' TERM; sleep 600 & echo $!; while :; do sleep 0.05; done";
        let mut child =
            Child::spawn(&Spec { announces: true, ..spec(folder.path(), &["sh", "-c", script]) }).unwrap();
        let mut line = None;
        wait_until("the child says its child's number", || {
            line = child.announcement();
            line.is_some()
        });
        let grandchild: u32 = line.unwrap().unwrap().parse().unwrap();
        assert!(alive(grandchild));
        assert_eq!(child.stop(Duration::from_millis(50)), "killed by signal 9");
        // the grandchild is somebody else's to reap; it may stand as a zombie for a moment
        let gone = |id: u32| {
            let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
            stat.is_empty() || stat.contains(") Z ")
        };
        wait_until("the grandchild is gone", || gone(grandchild));
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn a_frozen_child_goes_on_when_thawed_and_is_stopped_in_any_case() {
        let state = |id: u32| {
            let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
            stat.rsplit_once(") ").and_then(|(_, rest)| rest.chars().next())
        };
        let folder = tempfile::tempdir().unwrap();
        let mut child = Child::spawn(&spec(folder.path(), &["sleep", "600"])).unwrap();
        child.freeze().unwrap();
        child.freeze().unwrap();
        wait_until("it stands still", || state(child.id()) == Some('T'));
        child.thaw();
        wait_until("it goes on", || state(child.id()) == Some('S'));
        child.freeze().unwrap();
        assert_eq!(
            child.stop(Duration::from_secs(20)),
            "killed by signal 15",
            "it could answer the stop request"
        );
        let mut child = Child::spawn(&spec(folder.path(), &["sleep", "600"])).unwrap();
        child.freeze().unwrap();
        assert_eq!(child.kill(), "killed by signal 9");
        assert!(!alive(child.id()));
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn what_it_started_in_a_group_of_its_own_stands_still_and_ends_with_it() {
        let state = |id: u32| {
            let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
            stat.rsplit_once(") ").and_then(|(_, rest)| rest.chars().next())
        };
        let folder = tempfile::tempdir().unwrap();
        let script = "setsid sleep 600 & wait";
        let mut child = Child::spawn(&spec(folder.path(), &["sh", "-c", script])).unwrap();
        let mut other = 0;
        wait_until("it has left the group", || {
            let found = descendants(child.group).first().copied();
            other = found.map_or(0, |id| id.as_raw_nonzero().get() as u32);
            found.is_some_and(|id| getpgid(Some(id)).is_ok_and(|group| group != child.group))
        });
        child.freeze().unwrap();
        wait_until("it stands still", || state(other) == Some('T'));
        child.thaw();
        wait_until("it goes on", || state(other) == Some('S'));
        child.kill();
        wait_until("it is gone", || matches!(state(other), None | Some('Z')));
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn what_it_started_in_a_group_of_its_own_ends_with_it_when_it_is_asked_to_end() {
        let folder = tempfile::tempdir().unwrap();
        // the second one does not mind the wish, and has children of its own
        for other in ["sleep 600", "sh -c 'trap \"\" TERM; while :; do sleep 0.05; done'"] {
            let script = format!("setsid {other} & wait");
            let mut child = Child::spawn(&spec(folder.path(), &["sh", "-c", &script])).unwrap();
            let mut others: Vec<Identity> = Vec::new();
            wait_until("it has left the group", || {
                others = child.in_other_groups().into_iter().filter_map(Identity::of).collect();
                !others.is_empty()
            });
            assert_eq!(child.stop(Duration::from_millis(300)), "killed by signal 15");
            wait_until("it is gone", || !others.iter().any(Identity::is_there));
        }
    }

    #[test]
    fn who_stands_by_kills_the_group_when_we_end() {
        let folder = tempfile::tempdir().unwrap();
        let mut child = Child::spawn(&spec(folder.path(), &["sleep", "600"])).unwrap();
        drop(Watchdog::over(child.group, &[]).unwrap());
        assert!(child.ending().is_none(), "called off");
        let mut watchdog = Watchdog::over(child.group, &[]).unwrap();
        drop(watchdog.0.stdin.take());
        wait_until("it is killed", || child.ending().is_some());
        assert_eq!(child.ending().unwrap(), "killed by signal 9");
    }

    #[test]
    fn a_dropped_child_is_gone_after_a_panic_too() {
        let folder = tempfile::tempdir().unwrap();
        let id = std::sync::atomic::AtomicU32::new(0);
        let result = std::panic::catch_unwind(|| {
            let child = Child::spawn(&spec(folder.path(), &["sleep", "600"])).unwrap();
            id.store(child.id(), std::sync::atomic::Ordering::SeqCst);
            panic!("on purpose");
        });
        assert!(result.is_err());
        assert!(!alive(id.into_inner()));
    }

    #[test]
    fn a_child_that_ends_by_itself_is_noticed_and_its_log_quoted() {
        let folder = tempfile::tempdir().unwrap();
        let script = "echo first; echo last >&2; exit 7";
        let mut child = Child::spawn(&spec(folder.path(), &["sh", "-c", script])).unwrap();
        wait_until("it ends", || child.ending().is_some());
        assert_eq!(child.ending().unwrap(), "exit status 7");
        let tail = child.log_tail(5);
        assert!(tail.contains("  | first\n  | last"), "{tail}");
        assert!(!child.log_tail(1).contains("first"));
    }

    #[test]
    fn a_text_in_its_output_is_found_however_it_comes_and_only_if_it_is_its_own() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("log"), "Listening on 1\n").unwrap();
        let script = "printf Listen; sleep 0.1; echo 'ing on 2' >&2; exec sleep 600";
        let child = Child::spawn(&spec(folder.path(), &["sh", "-c", script])).unwrap();
        let mut log_search = child.log_search("Listening on").unwrap();
        wait_until("it is found", || log_search.is_found().unwrap());
        let mut other = child.log_search("on 1").unwrap();
        assert!(!other.is_found().unwrap(), "that was somebody else's");
        assert!(!log_search.is_found().unwrap(), "it came once");
    }

    #[test]
    fn a_child_has_an_environment_and_a_folder() {
        let folder = tempfile::tempdir().unwrap();
        let mut given = spec(folder.path(), &["sh", "-c", "echo $COLOUR in $(pwd -P) with ${PATH:+a path}"]);
        given.env.insert("COLOUR".into(), "blue".into());
        given.cwd = Some("/".into());
        let mut child = Child::spawn(&given).unwrap();
        wait_until("it ends", || child.ending().is_some());
        assert_eq!(std::fs::read_to_string(folder.path().join("log")).unwrap(), "blue in / with a path\n");
    }

    #[test]
    fn a_closed_pipe_tells_a_child_that_we_are_gone() {
        let folder = tempfile::tempdir().unwrap();
        let mut child = Child::spawn(&spec(folder.path(), &["cat"])).unwrap();
        assert!(child.ending().is_none());
        drop(child.process.stdin.take());
        wait_until("cat ends at the end of its input", || child.ending().is_some());
        assert_eq!(child.ending().unwrap(), "exit status 0");
    }

    #[test]
    fn a_command_that_is_not_there_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let error = Child::spawn(&spec(folder.path(), &["/no/such/program"])).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
        assert!(Child::spawn(&Spec { command: vec![], ..spec(folder.path(), &["x"]) }).is_err());
    }

    /// A field of proc_pid_stat(5), counted from behind the name.
    #[cfg(target_os = "linux")]
    fn of_stat(id: u32, field: usize) -> i32 {
        let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).unwrap();
        let behind_name = stat.rsplit_once(") ").unwrap().1.to_owned();
        behind_name.split(' ').nth(field).unwrap().parse().unwrap()
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn a_child_that_takes_turns_has_the_policy_for_it_and_we_keep_ours() {
        const BATCH: i32 = 3; // of sched(7)
        let policy = |id: u32| of_stat(id, 38);
        let folder = tempfile::tempdir().unwrap();
        let ours = policy(std::process::id());
        assert_ne!(ours, BATCH);
        for yields in [false, true] {
            let spec = Spec { yields, takes_turns: true, ..spec(folder.path(), &["sleep", "600"]) };
            assert_eq!(policy(Child::spawn(&spec).unwrap().id()), BATCH);
        }
        assert_eq!(policy(std::process::id()), ours);
        assert_eq!(policy(Child::spawn(&spec(folder.path(), &["sleep", "600"])).unwrap().id()), ours);
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn a_child_that_yields_has_a_lower_priority_and_we_keep_ours() {
        let nice = |id: u32| of_stat(id, 16);
        let folder = tempfile::tempdir().unwrap();
        let ours = nice(std::process::id());
        let child = Child::spawn(&Spec { yields: true, ..spec(folder.path(), &["sleep", "600"]) }).unwrap();
        assert_eq!(nice(child.id()), (ours + pin::YIELDING).min(19));
        assert_eq!(nice(std::process::id()), ours);
        let equal = Child::spawn(&spec(folder.path(), &["sleep", "600"])).unwrap();
        assert_eq!(nice(equal.id()), ours);
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn a_child_is_held_to_its_cores() {
        let folder = tempfile::tempdir().unwrap();
        let core = pin::available_cores()[0];
        let spec = Spec { cores: vec![core], ..spec(folder.path(), &["sleep", "600"]) };
        let child = Child::spawn(&spec).unwrap();
        let status = std::fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap();
        let allowed = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:")).unwrap();
        assert_eq!(allowed.trim(), core.to_string());
    }
}
