//! A process that goes down and comes up again: a child, or none for the time being.

use std::io;
use std::time::Duration;

use crate::child::{Child, TAIL_LINES};

/// Whether whoever waits is still to wait; false once the run is to be over.
pub type Patience<'a> = &'a dyn Fn() -> bool;

/// What is said of the end of what is down.
const DOWN: &str = "it was down";

/// A process of what the lab started; stopped when dropped.
#[derive(Debug, Default)]
pub struct Process {
    child: Option<Child>,
    /// How long it may take to end when it is asked to.
    grace: Duration,
}

impl Process {
    /// One that is down, and that may later take so long to end when it is asked to.
    pub fn down(grace: Duration) -> Process {
        Process { child: None, grace }
    }

    /// It is up: this is it.
    pub fn up(&mut self, child: Child) {
        self.child = Some(child);
    }

    /// The child, while it is up.
    pub fn child(&mut self) -> Option<&mut Child> {
        self.child.as_mut()
    }

    /// Its process id, while it is up.
    pub fn id(&self) -> Option<u32> {
        self.child.as_ref().map(Child::id)
    }

    /// How it ended, if it did so by itself.
    pub fn ended(&mut self) -> Option<String> {
        self.child.as_mut()?.ending()
    }

    /// Kills it and all its children; returns how it ended.
    pub fn kill(&mut self) -> String {
        self.child.take().map_or_else(|| DOWN.into(), |mut child| child.kill())
    }

    /// Asks it to end and waits; kills it where that takes too long or there is no patience. Returns how it ended.
    pub fn stop(&mut self, patience: Patience<'_>) -> String {
        let grace = self.grace;
        self.child.take().map_or_else(|| DOWN.into(), |mut child| child.stop_while(grace, patience))
    }

    /// Stops it where it stands.
    ///
    /// # Errors
    /// Where the operating system refuses.
    pub fn freeze(&mut self) -> io::Result<()> {
        self.child.as_mut().map_or(Ok(()), Child::freeze)
    }

    /// Lets it go on.
    pub fn thaw(&mut self) {
        if let Some(child) = &mut self.child {
            child.thaw();
        }
    }

    /// The end of its log, for an error to quote; nothing while it is down.
    pub fn log_tail(&self) -> String {
        self.child.as_ref().map_or_else(String::new, |child| child.log_tail(TAIL_LINES))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::child::Spec;

    #[test]
    fn it_is_down_once_it_was_killed_or_stopped_but_not_when_it_ended_by_itself() {
        let folder = tempfile::tempdir().unwrap();
        let words = |command: &str| command.split(' ').map(str::to_owned).collect();
        let spec = |command: &str| Spec::new("it", words(command), folder.path().join("log"));
        let mut process = Process::down(Duration::from_secs(20));
        assert_eq!((process.id(), process.ended()), (None, None));
        assert_eq!((process.kill(), process.stop(&|| true)), (DOWN.into(), DOWN.into()));
        process.up(Child::spawn(&spec("sleep 600")).unwrap());
        assert!(process.id().is_some() && process.ended().is_none());
        assert_eq!(process.kill(), "killed by signal 9");
        assert_eq!((process.id(), process.ended()), (None, None));
        process.up(Child::spawn(&spec("sleep 600")).unwrap());
        assert_eq!(process.stop(&|| true), "killed by signal 15");
        process.up(Child::spawn(&spec("true")).unwrap());
        let begin = std::time::Instant::now();
        while process.ended().is_none() {
            assert!(begin.elapsed() < Duration::from_secs(60));
            std::thread::sleep(Duration::from_millis(1));
        }
        assert_eq!(process.ended().unwrap(), "exit status 0");
        assert!(process.id().is_some());
    }
}
