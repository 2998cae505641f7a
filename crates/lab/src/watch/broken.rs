//! A watched process as what faults can be aimed at. Nobody here started it: it can be frozen, stopped and killed, but not
//! started again.

use std::ffi::OsStr;
use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, geteuid, kill_process};

use super::find::{Finder, Process as Found};
use super::local::Processes;
use crate::child::Watchdog;
use crate::descendants::descendants;
use crate::error::LabError;
use crate::process::{Patience, Process};
use crate::started::{Started, held};

/// How long one that is asked to end may take.
const STOP_GRACE: Duration = Duration::from_secs(10);
/// How often one that should end is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// Its processes, to be broken.
pub struct Broken {
    name: String,
    finder: Finder,
    processes: Processes,
    /// What stands still, and who lets it go on if we die.
    frozen: Option<(Vec<Pid>, Watchdog)>,
    /// None of ours.
    none: Process,
}

impl Broken {
    /// Of this name.
    pub fn new(name: &str, finder: &Finder, processes: &Processes) -> Broken {
        let (finder, processes) = (finder.clone(), Processes::clone(processes));
        Broken { name: name.to_owned(), finder, processes, frozen: None, none: Process::default() }
    }

    /// Those that are there, the same as were found, and of our user.
    fn there(&self) -> Vec<Found> {
        let all = held(&self.processes).clone();
        let is_ours = |process: &Found| is_of_our_user(&self.finder, *process);
        all.into_iter().filter(|process| self.finder.is_there(*process) && is_ours(process)).collect()
    }

    fn roots(&self) -> Vec<Pid> {
        self.there()
            .into_iter()
            .filter_map(|process| Pid::from_raw(i32::try_from(process.id).ok()?))
            .collect()
    }

    /// Stops all where they stand (SIGSTOP), with what is below them: who stands still starts nothing more, so that this
    /// finds an end.
    fn stand_still(&self, stopped: &mut Vec<Pid>) -> io::Result<()> {
        for root in self.roots() {
            kill_process(root, Signal::STOP)?;
            stopped.push(root);
            loop {
                let more: Vec<Pid> =
                    descendants(root).into_iter().filter(|id| !stopped.contains(id)).collect();
                if more.is_empty() {
                    break;
                }
                for id in more {
                    // only fails where nobody is left to get it, or where it is another user's
                    let _ = kill_process(id, Signal::STOP);
                    stopped.push(id);
                }
            }
        }
        Ok(())
    }
}

/// Whether a process is of the user that we are.
pub fn is_of_our_user(finder: &Finder, process: Found) -> bool {
    finder.user(process) == Some(geteuid().as_raw())
}

fn go_on(all: &[Pid]) {
    for id in all.iter().rev() {
        // only fails where nobody is left to get it
        let _ = kill_process(*id, Signal::CONT);
    }
}

impl Started for Broken {
    fn name(&self) -> &str {
        &self.name
    }

    fn process(&self) -> &Process {
        &self.none
    }

    fn process_mut(&mut self) -> &mut Process {
        &mut self.none
    }

    fn is_ours(&self) -> bool {
        false
    }

    fn process_id(&self) -> Option<u32> {
        self.there().first().map(|process| process.id)
    }

    fn kill(&mut self) -> String {
        let mut all = Vec::new();
        // what cannot be stopped is killed all the same
        let _ = self.stand_still(&mut all);
        self.frozen = None;
        for id in &all {
            let _ = kill_process(*id, Signal::KILL);
        }
        "killed".into()
    }

    fn stop(&mut self, patience: Patience<'_>) -> String {
        let before = self.there();
        for id in self.roots() {
            let _ = kill_process(id, Signal::TERM);
        }
        self.thaw();
        let begin = Instant::now();
        while before.iter().any(|process| self.finder.is_there(*process)) {
            if begin.elapsed() > STOP_GRACE || !patience() {
                return self.kill();
            }
            std::thread::sleep(LOOK_EVERY);
        }
        "ended".into()
    }

    fn restart(&mut self, _: Patience<'_>) -> Result<(), LabError> {
        Err(LabError::Start(format!("{} is gone, and nobody here starts it again", self.name)))
    }

    fn freeze(&mut self) -> io::Result<()> {
        if self.frozen.is_some() {
            return Ok(());
        }
        let roots = self.roots();
        if roots.is_empty() {
            return Err(io::Error::new(io::ErrorKind::NotFound, "none of its processes is there"));
        }
        // before anything stands still, and again with what does
        let first = watchdog(&roots)?;
        let mut stopped = Vec::new();
        let result = self.stand_still(&mut stopped).and_then(|()| watchdog(&stopped));
        match result {
            Ok(watchdog) => self.frozen = Some((stopped, watchdog)),
            Err(error) => {
                go_on(&stopped);
                return Err(error);
            }
        }
        drop(first);
        Ok(())
    }

    fn thaw(&mut self) {
        if let Some((stopped, _watchdog)) = self.frozen.take() {
            go_on(&stopped);
        }
    }

    fn data_dir(&self) -> Option<&Path> {
        None
    }

    fn log_tail(&self) -> String {
        String::new()
    }
}

impl Drop for Broken {
    fn drop(&mut self) {
        self.thaw();
    }
}

fn watchdog(all: &[Pid]) -> io::Result<Watchdog> {
    let words: Vec<String> = all.iter().map(|id| id.as_raw_nonzero().to_string()).collect();
    Watchdog::over_frozen(words.iter().map(OsStr::new))
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use std::process::Command;

    use tidemark_scenario::plan::Watched;

    use super::*;
    use crate::watch::local::Local;

    fn state(id: u32) -> Option<char> {
        let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
        stat.rsplit_once(") ").and_then(|(_, rest)| rest.chars().next())
    }

    fn until(what: &str, mut holds: impl FnMut() -> bool) {
        let begin = Instant::now();
        while !holds() {
            assert!(begin.elapsed() < Duration::from_secs(60), "{what}");
            std::thread::sleep(LOOK_EVERY);
        }
    }

    /// A shell with a child, in nobody's way.
    fn tree() -> (std::process::Child, u32, Broken) {
        let parent = Command::new("sh").args(["-c", "setsid sleep 600 & wait"]).spawn().unwrap();
        let id = Pid::from_child(&parent);
        let mut child = 0;
        until("it has a child", || {
            child = descendants(id).first().map_or(0, |id| id.as_raw_nonzero().get() as u32);
            child > 0
        });
        let mut local = Local::new();
        let (_, processes) = local.follow("it", &Watched::Pid(parent.id())).unwrap();
        (parent, child, Broken::new("it", local.finder(), &processes))
    }

    #[test]
    fn what_is_frozen_goes_on_with_all_below_it_and_also_when_it_is_dropped() {
        let (mut parent, child, mut broken) = tree();
        assert_eq!(broken.process_id(), Some(parent.id()));
        for drops in [false, true] {
            broken.freeze().unwrap();
            broken.freeze().unwrap();
            until("both stand still", || [parent.id(), child].map(state) == [Some('T'); 2]);
            if drops {
                let (finder, processes) = (broken.finder.clone(), Processes::clone(&broken.processes));
                drop(broken);
                broken = Broken::new("it", &finder, &processes);
            } else {
                broken.thaw();
            }
            until("both go on", || [parent.id(), child].map(state) == [Some('S'); 2]);
        }
        broken.kill();
        parent.wait().unwrap();
        until("its child is gone", || matches!(state(child), None | Some('Z')));
        assert_eq!(broken.process_id(), None);
        assert!(broken.freeze().is_err() && broken.restart(&|| true).is_err());
    }

    #[test]
    fn what_stands_still_goes_on_if_we_die() {
        let (mut parent, child, mut broken) = tree();
        broken.freeze().unwrap();
        until("both stand still", || [parent.id(), child].map(state) == [Some('T'); 2]);
        if let Some((_, watchdog)) = &mut broken.frozen {
            watchdog.as_if_we_died();
        }
        until("both go on", || [parent.id(), child].map(state) == [Some('S'); 2]);
        assert_eq!(broken.stop(&|| true), "ended");
        parent.wait().unwrap();
        let _ = kill_process(Pid::from_raw(child as i32).unwrap(), Signal::KILL);
    }
}
