//! Processes of this machine that were there already: looked at once a second, and found again where they are others now.

use std::sync::{Arc, Mutex};

use tidemark_record::Sample;
use tidemark_scenario::plan::Watched;

use super::find::{Finder, Found, Process};
use crate::monitor::{MACHINE, Monitor, Subject};
use crate::started::held;

/// The processes of one, shared with who breaks it on purpose.
pub type Processes = Arc<Mutex<Vec<Process>>>;

/// One that is followed.
#[derive(Debug)]
struct Followed {
    name: String,
    what: Watched,
    subject: Option<Subject>,
    processes: Processes,
    /// How it is called for a person, where it is there.
    text: String,
}

/// All processes of this machine that are watched.
#[derive(Debug)]
pub struct Local {
    finder: Finder,
    monitor: Monitor,
    all: Vec<Followed>,
}

impl Local {
    /// None yet.
    pub fn new() -> Local {
        Local { finder: Finder::default(), monitor: Monitor::of_nothing(), all: Vec::new() }
    }

    /// Looks at the whole machine as well.
    pub fn with_machine(mut self) -> Local {
        self.monitor.look_at(MACHINE, Some(Subject::Machine));
        self
    }

    /// Finds one and follows it from now on.
    ///
    /// # Errors
    /// Why it is not found.
    pub fn follow(&mut self, name: &str, what: &Watched) -> Result<(Found, Processes), String> {
        let found = self.finder.find(what)?;
        let processes: Processes = Arc::new(Mutex::new(found.processes.clone()));
        self.monitor.look_at(name, Some(found.subject.clone()));
        self.all.push(Followed {
            name: name.to_owned(),
            what: what.clone(),
            subject: Some(found.subject.clone()),
            processes: Arc::clone(&processes),
            text: found.text.clone(),
        });
        Ok((found, processes))
    }

    /// Who finds them.
    pub fn finder(&self) -> &Finder {
        &self.finder
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// What each used since the look before; and what has become of one that is gone, or is there again.
    pub fn look(&mut self, at_us: u64) -> (Vec<Sample>, Vec<String>) {
        let mut events = Vec::new();
        for one in &mut self.all {
            let is_there = one.subject.is_some() && one.is_there(&self.finder);
            if is_there {
                continue;
            }
            // a number that is given again is another's
            let found =
                if matches!(one.what, Watched::Pid(_)) { None } else { self.finder.find(&one.what).ok() };
            match found {
                Some(found) => {
                    let before = one.subject.replace(found.subject.clone());
                    if before.as_ref() != Some(&found.subject) {
                        let how = if before.is_some() { "is now" } else { "is there again" };
                        events.push(format!("{} {how}: {}", one.name, found.text));
                    }
                    held(&one.processes).clone_from(&found.processes);
                    one.text = found.text;
                }
                None if one.subject.take().is_some() => {
                    held(&one.processes).clear();
                    events.push(format!("{} is gone: {}", one.name, one.text));
                }
                None => {}
            }
            self.monitor.look_at(&one.name, one.subject.clone());
        }
        (self.monitor.look(at_us), events)
    }
}

impl Followed {
    /// Whether all its processes are there; of a control group whether that has any.
    fn is_there(&self, finder: &Finder) -> bool {
        match &self.subject {
            Some(Subject::Group(group)) => group.processes().is_some_and(|ids| !ids.is_empty()),
            _ => held(&self.processes).iter().all(|process| finder.is_there(*process)),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::{SocketAddr, TcpListener};
    use std::os::fd::OwnedFd;
    use std::process::{Child, Command};
    use std::time::{Duration, Instant};

    use super::*;

    /// Somebody who listens there: a program that was handed the socket, and knows nothing of it.
    fn listening(address: SocketAddr) -> Child {
        let socket = TcpListener::bind(address).unwrap();
        Command::new("sleep").arg("600").stdin(OwnedFd::from(socket)).spawn().unwrap()
    }

    fn until<T>(what: &str, mut found: impl FnMut() -> Option<T>) -> T {
        let begin = Instant::now();
        loop {
            if let Some(found) = found() {
                return found;
            }
            assert!(begin.elapsed() < Duration::from_secs(60), "{what}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn who_listens_at_a_port_is_followed_over_a_restart() {
        let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let mut first = listening(address);
        let mut local = Local::new();
        let (found, processes) = local.follow("shop", &Watched::Port(address.port())).unwrap();
        assert_eq!(found.text, format!("sleep, pid {}", first.id()));
        local.look(0);
        let (samples, events) = local.look(1_000_000);
        assert_eq!((samples.len(), samples[0].process.as_str(), events.len()), (1, "shop", 0));
        assert!(samples[0].rss_bytes > 0);
        first.kill().unwrap();
        first.wait().unwrap();
        let (samples, events) = local.look(2_000_000);
        assert_eq!(events, [format!("shop is gone: sleep, pid {}", first.id())]);
        assert_eq!((samples[0].process.as_str(), samples[0].rss_bytes), ("shop", 0));
        assert!(held(&processes).is_empty() && local.look(2_500_000).1.is_empty());
        let mut second = listening(address);
        let mut at_us = 3_000_000;
        let event = until("it is there again", || {
            at_us += 1;
            local.look(at_us).1.pop()
        });
        assert_eq!(event, format!("shop is there again: sleep, pid {}", second.id()));
        assert_eq!(held(&processes)[0].id, second.id());
        let samples = local.look(at_us + 1_000_000).0;
        assert!(samples[0].rss_bytes > 0);
        second.kill().unwrap();
        second.wait().unwrap();
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn a_number_is_not_looked_for_again() {
        let mut child = Command::new("sleep").arg("600").spawn().unwrap();
        let mut local = Local::new().with_machine();
        local.follow("it", &Watched::Pid(child.id())).unwrap();
        local.look(0);
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(local.look(1_000_000).1[0].starts_with("it is gone: sleep, pid"));
        let samples = local.look(2_000_000).0;
        let names: Vec<&str> = samples.iter().map(|sample| sample.process.as_str()).collect();
        assert_eq!(names, [MACHINE, "it"]);
    }
}
