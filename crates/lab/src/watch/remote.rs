//! Another machine, by an agent: a program that the scenario names starts `tidemark agent` there, and its lines come here.

use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, Read};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TryRecvError, sync_channel};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};
use tidemark_record::Sample;
use tidemark_record::manifest::Watched as Told;
use tidemark_scenario::plan::{Agent, Watched};

use crate::agent::Line;
use crate::child::{TAIL_LINES, log_tail};
use crate::error::LabError;
use crate::exchange::shown;
use crate::interrupt::StopRequest;
use crate::monitor::MACHINE;
use crate::served::{cannot_write, check_stop_request};

/// How long its first line may take.
const FIRST_WITHIN: Duration = Duration::from_secs(20);
/// How often it is looked for.
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// Longest line.
const LINE_BYTES_MAX: u64 = 256 << 10;
/// Lines that are no JSON and are passed over: greetings of a machine.
const OTHERS_MAX: usize = 1_000;
/// Lines that wait to be taken; more are lost.
const LINES_MAX: usize = 64;
/// Most lines of a second, where an agent says one; more are counted.
const LINES_PER_S_MAX: usize = 20;
/// Most events of a run; more are counted.
const EVENTS_MAX: usize = 200;
/// Most samples of a line.
const SAMPLES_MAX: usize = 256;
/// The share, in cores, from which on it is not taken as told.
const SHARE_MAX: f64 = 1e6;
/// Most of a count of anything that is taken as told: an exabyte.
const COUNT_MAX: u64 = 1_000_000_000_000_000_000;
/// How long it may take to end once its input has.
const END_WITHIN: Duration = Duration::from_secs(1);

/// What it is called here, and there.
#[derive(Debug)]
struct Name {
    here: String,
    there: String,
}

/// An agent that looks.
#[derive(Debug)]
pub struct Remote {
    child: Child,
    /// The command, for messages.
    command: String,
    log: PathBuf,
    lines: Receiver<(Instant, Line)>,
    names: Vec<Name>,
    /// Whether its end was told.
    ended: bool,
    /// Samples that cannot be.
    impossible: u64,
    /// The second since the epoch that is on, and its lines; those beyond the most of a second.
    second: (u64, usize),
    lines_beyond: u64,
    /// Events told, and those beyond the most of a run.
    events: usize,
    events_beyond: u64,
}

/// What an agent is to look at, each with its name.
pub struct Asked<'a> {
    /// What its machine is called.
    pub machine: String,
    /// Its processes.
    pub processes: Vec<(String, &'a Watched)>,
}

/// What came at a time each.
type Timed<T> = Vec<(Instant, T)>;

impl Remote {
    /// Starts it, and waits until it says what it has found. Its errors go into a log.
    ///
    /// # Errors
    /// Where it cannot be started, or does not find all, with what it said; [`LabError::Interrupted`] on a stop request.
    pub fn start(
        agent: &Agent,
        asked: &Asked<'_>,
        logs: &Path,
        stop_request: &dyn Fn() -> StopRequest,
    ) -> Result<(Remote, Vec<Told>), LabError> {
        let mut words = agent.words.clone();
        words.extend([agent.program.clone(), "agent".to_owned()]);
        for flag in asked.processes.iter().filter_map(|(_, what)| what.flag()) {
            words.extend(["--watch".to_owned(), flag]);
        }
        let command = agent.words.join(" ");
        std::fs::create_dir_all(logs).map_err(|error| cannot_write(logs, &error))?;
        let log = logs.join(format!("agent-{}.log", file_name(agent.machine())));
        let started = begin(&words, &log);
        let (child, lines) = started
            .map_err(|error| LabError::Usage(format!("the agent `{command}` cannot be started: {error}")))?;
        let names = vec![Name { here: asked.machine.clone(), there: MACHINE.to_owned() }];
        let mut remote = Remote {
            child,
            command,
            log,
            lines,
            names,
            ended: false,
            impossible: 0,
            second: (0, 0),
            lines_beyond: 0,
            events: 0,
            events_beyond: 0,
        };
        remote.names.extend(
            asked.processes.iter().map(|(name, what)| Name { here: name.clone(), there: what.to_string() }),
        );
        let found = remote.first(stop_request)?;
        let of_machine = Told {
            name: asked.machine.clone(),
            what: "machine".into(),
            found: format!("by the agent `{}`", remote.command),
            is_machine: true,
        };
        let told = |(name, what): &(String, &Watched)| {
            let there = what.to_string();
            let found = found.found.iter().find(|found| found.what == there);
            let found = found.map_or_else(String::new, |found| shown(&found.found));
            let what = format!("{there}, by the agent `{}`", remote.command);
            Told { name: name.clone(), what, found, is_machine: false }
        };
        let told = std::iter::once(of_machine).chain(asked.processes.iter().map(told)).collect();
        Ok((remote, told))
    }

    fn first(&mut self, stop_request: &dyn Fn() -> StopRequest) -> Result<Line, LabError> {
        let begin = Instant::now();
        loop {
            check_stop_request(stop_request)?;
            match self.lines.recv_timeout(LOOK_EVERY) {
                Ok((_, Line { error: Some(error), .. })) => {
                    return Err(LabError::Usage(format!(
                        "the agent `{}` says: {}",
                        self.command,
                        shown(&error)
                    )));
                }
                Ok((_, line)) if line.version.is_some() => return Ok(line),
                Ok(_) => return Err(self.wrong("its first line is not from tidemark agent")),
                Err(RecvTimeoutError::Timeout) if begin.elapsed() < FIRST_WITHIN => {}
                Err(RecvTimeoutError::Timeout) => {
                    return Err(self.wrong(&format!("it said nothing within {} s", FIRST_WITHIN.as_secs())));
                }
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(self.wrong("it exited without output; is tidemark installed there, and does ssh ask for a password?"));
                }
            }
        }
    }

    fn wrong(&self, what: &str) -> LabError {
        LabError::Usage(format!("the agent `{}`: {what}; {}", self.command, log_tail(&self.log, TAIL_LINES)))
    }

    /// What it has told since the last call, from `epoch` on; its end, once.
    pub fn news(&mut self, epoch: Instant) -> (Timed<Vec<Sample>>, Timed<String>) {
        let (mut samples, mut events) = (Vec::new(), Vec::new());
        loop {
            match self.lines.try_recv() {
                Ok((at, _)) if at > epoch && !self.has_room(at.duration_since(epoch).as_secs()) => {
                    self.lines_beyond += 1;
                }
                Ok((at, line)) if at > epoch => {
                    let of_line = line.samples.into_iter().take(SAMPLES_MAX);
                    samples.push((at, of_line.filter_map(|sample| self.named(sample)).collect()));
                    let taken = line.events.len().min(EVENTS_MAX - self.events);
                    self.events += taken;
                    self.events_beyond += (line.events.len() - taken) as u64;
                    events.extend(line.events[..taken].iter().map(|event| (at, self.event(event))));
                }
                Ok(_) => {}
                Err(TryRecvError::Empty) => break,
                Err(TryRecvError::Disconnected) => {
                    if !std::mem::replace(&mut self.ended, true) {
                        events.push((Instant::now(), format!("the agent `{}` ended", self.command)));
                    }
                    break;
                }
            }
        }
        (samples, events)
    }

    /// Counts a line that came in this second; false where it is beyond the most.
    fn has_room(&mut self, second: u64) -> bool {
        if self.second.0 != second {
            self.second = (second, 0);
        }
        self.second.1 += 1;
        self.second.1 <= LINES_PER_S_MAX
    }

    /// What all that it looks at is called here.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.names.iter().map(|name| name.here.as_str())
    }

    /// What a reader of the figures must know.
    pub fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        if self.ended {
            notes.push("ended before the load did: what it watched has no figures from then on".to_owned());
        }
        if self.impossible > 0 {
            notes.push(format!("told {} figures that cannot be; they are left out", self.impossible));
        }
        if self.lines_beyond > 0 {
            notes.push(format!("told {} lines beyond {LINES_PER_S_MAX} a second", self.lines_beyond));
        }
        if self.events_beyond > 0 {
            notes.push(format!("told {} events beyond the first {EVENTS_MAX}", self.events_beyond));
        }
        notes.into_iter().map(|note| format!("the agent `{}` {note}", self.command)).collect()
    }

    /// A sample by its name here; none of what nobody asked for, or what cannot be.
    fn named(&mut self, sample: Sample) -> Option<Sample> {
        let name = self.names.iter().find(|name| name.there == sample.process)?;
        if !is_possible(&sample) {
            self.impossible += 1;
            return None;
        }
        Some(Sample { process: name.here.clone(), ..sample })
    }

    /// An event in our words: it begins with what it is about.
    fn event(&self, text: &str) -> String {
        let name = self
            .names
            .iter()
            .filter(|name| text.strip_prefix(&name.there).is_some_and(|rest| rest.starts_with(' ')));
        let longest = name.max_by_key(|name| name.there.len());
        let text = match longest {
            Some(name) => format!("{}{}", name.here, &text[name.there.len()..]),
            None => text.to_owned(),
        };
        shown(&text)
    }
}

impl Drop for Remote {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        let begin = Instant::now();
        while matches!(self.child.try_wait(), Ok(None)) && begin.elapsed() < END_WITHIN {
            std::thread::sleep(LOOK_EVERY);
        }
        if !matches!(self.child.try_wait(), Ok(Some(_))) {
            let _ = kill_process_group(Pid::from_child(&self.child), Signal::KILL);
            let _ = self.child.wait();
        }
    }
}

/// Whether a machine could have used that much.
pub(super) fn is_possible(sample: &Sample) -> bool {
    let shares = [sample.cpu_share, sample.cpu_system_share, sample.steal_share, sample.core_wait_share];
    let counts = [
        sample.rss_bytes,
        sample.threads,
        sample.voluntary_switches,
        sample.involuntary_switches,
        sample.disk_read_bytes,
        sample.disk_written_bytes,
        sample.net_received_bytes,
        sample.net_sent_bytes,
    ];
    // what is no number is in no range
    shares.iter().all(|share| (0.0..SHARE_MAX).contains(share))
        && counts.iter().all(|count| *count <= COUNT_MAX)
}

fn file_name(machine: &str) -> String {
    let plain = machine.chars().map(|c| if c.is_ascii_alphanumeric() || "._-".contains(c) { c } else { '_' });
    plain.take(100).collect()
}

/// No shell: the words are the command.
fn begin(words: &[String], log: &Path) -> io::Result<(Child, Receiver<(Instant, Line)>)> {
    let (program, arguments) =
        words.split_first().ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "no command"))?;
    let log: File = OpenOptions::new().create(true).append(true).open(log)?;
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(log);
    // a terminal's Ctrl-C is for us
    let mut child = command.process_group(0).spawn()?;
    let (sender, lines) = sync_channel(LINES_MAX);
    if let Some(output) = child.stdout.take() {
        let thread = std::thread::Builder::new().name("agent".into());
        thread.spawn(move || read(BufReader::new(output), &sender))?;
    }
    Ok((child, lines))
}

/// Hands its lines on until it ends, or says what no agent says.
fn read(mut output: impl BufRead, sender: &SyncSender<(Instant, Line)>) {
    let (mut bytes, mut others) = (Vec::new(), 0);
    loop {
        bytes.clear();
        let read = output.by_ref().take(LINE_BYTES_MAX).read_until(b'\n', &mut bytes);
        if !read.is_ok_and(|read| read > 0) || bytes.last() != Some(&b'\n') {
            return;
        }
        match serde_json::from_slice::<Line>(&bytes) {
            // where nobody takes them, before the load for example, they are of no use later
            Ok(line) => drop(sender.try_send((Instant::now(), line))),
            Err(_) if others < OTHERS_MAX => others += 1,
            Err(_) => return,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stand_in(folder: &Path, body: &str) -> Agent {
        let path = folder.join("reach").display().to_string();
        let write = ["-c", r#"printf '#!/bin/sh\n%s\n' "$1" >"$0" && chmod 755 "$0""#, &path, body];
        assert!(Command::new("sh").args(write).status().unwrap().success());
        Agent::new(vec![path, "db1".into()])
    }

    fn start(agent: &Agent, folder: &Path) -> Result<(Remote, Vec<Told>), LabError> {
        let port = Watched::Port(80);
        let asked = Asked { machine: "db1".into(), processes: vec![("shop".into(), &port)] };
        Remote::start(agent, &asked, folder, &|| StopRequest::None)
    }

    #[test]
    fn its_lines_are_told_by_the_names_here_and_it_ends_with_its_input() {
        let folder = tempfile::tempdir().unwrap();
        let body = "echo \"$@\" >&2; echo Welcome
            echo '{\"version\":\"1\",\"found\":[{\"what\":\"port 80\",\"found\":\"nginx, pid 7\"}]}'
            echo '{\"samples\":[{\"process\":\"machine\",\"cpu_share\":1.5},{\"process\":\"port 80\",\"cpu_share\":0.5},{\"process\":\"else\",\"cpu_share\":9}],\"events\":[\"port 80 is gone: nginx\"]}'
            cat > /dev/null; echo over >&2";
        let agent = stand_in(folder.path(), body);
        let epoch = Instant::now();
        let (mut remote, told) = start(&agent, folder.path()).unwrap();
        assert_eq!(
            (told[0].name.as_str(), told[1].name.as_str(), told[1].found.as_str()),
            ("db1", "shop", "nginx, pid 7")
        );
        let (mut samples, mut events) = (Vec::new(), Vec::new());
        while samples.is_empty() {
            assert!(epoch.elapsed() < Duration::from_secs(60));
            (samples, events) = remote.news(epoch);
        }
        let named: Vec<(&str, f64)> =
            samples[0].1.iter().map(|sample| (sample.process.as_str(), sample.cpu_share)).collect();
        assert_eq!(named, [("db1", 1.5), ("shop", 0.5)]);
        assert_eq!(events[0].1, "shop is gone: nginx");
        assert!(remote.notes().is_empty());
        drop(remote);
        let log = std::fs::read_to_string(folder.path().join("agent-db1.log")).unwrap();
        assert_eq!(log, "db1 tidemark agent --watch port=80\nover\n");
    }

    #[test]
    fn what_cannot_be_and_too_many_events_are_left_out_and_counted() {
        let folder = tempfile::tempdir().unwrap();
        let body = "echo '{\"version\":\"1\"}'
            echo '{\"samples\":[{\"process\":\"machine\",\"cpu_share\":1e308},{\"process\":\"machine\",\"cpu_share\":1000000},{\"process\":\"machine\",\"rss_bytes\":18446744073709551615},{\"process\":\"machine\",\"cpu_share\":2}]}'
            for line in 1 2 3; do printf '{\"events\":[\"0\"'; for n in $(seq 99); do printf ',\"%s\"' $n; done; echo ]}; done
            cat > /dev/null";
        let epoch = Instant::now();
        let (mut remote, _) = start(&stand_in(folder.path(), body), folder.path()).unwrap();
        let (mut samples, mut events) = (Vec::new(), Vec::new());
        while remote.events_beyond == 0 {
            assert!(epoch.elapsed() < Duration::from_secs(60));
            let news = remote.news(epoch);
            samples.extend(news.0.into_iter().flat_map(|(_, samples)| samples));
            events.extend(news.1);
        }
        let shares: Vec<f64> = samples.iter().map(|sample| sample.cpu_share).collect();
        assert_eq!((shares, events.len()), (vec![2.0], EVENTS_MAX));
        let notes = remote.notes().join("\n");
        for said in ["told 3 figures that cannot be", "told 100 events beyond the first 200"] {
            assert!(notes.contains(said), "{notes}");
        }
    }

    #[test]
    fn lines_of_a_second_have_a_bound() {
        let folder = tempfile::tempdir().unwrap();
        let body = "echo '{\"version\":\"1\"}'; cat > /dev/null";
        let (mut remote, _) = start(&stand_in(folder.path(), body), folder.path()).unwrap();
        let room = |remote: &mut Remote, second| (0..100).filter(|_| remote.has_room(second)).count();
        assert_eq!((room(&mut remote, 0), room(&mut remote, 1)), (LINES_PER_S_MAX, LINES_PER_S_MAX));
        let (sender, lines) = sync_channel(LINES_MAX);
        remote.lines = lines;
        let epoch = Instant::now() - Duration::from_secs(5);
        for _ in 0..50 {
            sender.send((epoch + Duration::from_secs(4), Line::default())).unwrap();
        }
        assert_eq!(remote.news(epoch).0.len(), LINES_PER_S_MAX);
        assert!(remote.notes().join("\n").contains("told 30 lines beyond 20 a second"));
    }

    #[test]
    fn what_goes_wrong_is_told_with_what_it_said() {
        let folder = tempfile::tempdir().unwrap();
        for (body, said) in [
            ("echo '{\"error\":\"nobody listens\"}'", "says: nobody listens"),
            ("echo no route to host >&2; exit 255", "| no route to host"),
            ("echo '{}'", "its first line is not from tidemark agent"),
        ] {
            let error = start(&stand_in(folder.path(), body), folder.path()).unwrap_err();
            assert!(error.to_string().contains(said), "{error}");
            assert_eq!(error.exit_status(), 2);
        }
        let error = start(&Agent::new(vec!["/no/such/program".into()]), folder.path()).unwrap_err();
        assert!(error.to_string().contains("cannot be started"), "{error}");
    }
}
