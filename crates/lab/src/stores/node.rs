//! A node of a store: a process, and all that it takes to start it again where it was.

use std::fmt;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::launcher::{Identity, Launcher, NodeAddress, NotReady};
use crate::child::{Child, Spec, TAIL_LINES};
use crate::error::LabError;
use crate::process::{Patience, Process};
use crate::started::Started;

/// How often a node that is to become ready is asked.
const ASK_EVERY: Duration = Duration::from_millis(100);
/// How long a node that is stopped may take to write what it holds.
const STOP_GRACE: Duration = Duration::from_secs(30);
/// Longest time of what is done before the first start.
const FIRST_MAX: Duration = Duration::from_secs(120);

/// A node of a store; stopped when dropped.
pub struct Node {
    /// `cassandra`, or `cassandra.2` where there are several.
    pub name: String,
    /// How it is started.
    pub spec: Spec,
    /// Where its clients connect.
    pub address: SocketAddr,
    /// Where it listens for them: there, or behind a link.
    pub listens: SocketAddr,
    /// The folder of its data.
    pub data: PathBuf,
    /// How it is asked whether it serves.
    pub launcher: &'static dyn Launcher,
    /// By which its instance is told from all others.
    pub identity: Identity,
    /// Longest time until it serves.
    pub within: Duration,
    process: Process,
}

impl Node {
    /// A node that is to be started.
    pub fn new(
        spec: Spec,
        address: SocketAddr,
        data: PathBuf,
        launcher: &'static dyn Launcher,
        identity: Identity,
        within: Duration,
    ) -> Node {
        Node {
            name: spec.name.clone(),
            spec,
            address,
            listens: address,
            data,
            launcher,
            identity,
            within,
            process: Process::down(STOP_GRACE),
        }
    }

    /// Where it is.
    pub fn place(&self) -> NodeAddress {
        NodeAddress { listens: self.listens, address: self.address, process: self.process.id() }
    }

    /// Starts its process.
    ///
    /// # Errors
    /// Where the program cannot be executed.
    pub fn spawn(&mut self) -> Result<(), LabError> {
        let program = self.spec.command.first().cloned().unwrap_or_default();
        let cannot = |error| LabError::Start(format!("cannot start {}: `{program}`: {error}", self.name));
        let mut child = Child::spawn(&self.spec).map_err(cannot)?;
        child.guard().map_err(cannot)?;
        self.process.up(child);
        Ok(())
    }

    /// Waits until it serves, and, where `all` says so, until it holds that many nodes for alive.
    ///
    /// # Errors
    /// Where it ends or the time is over, with the end of its log; at once where another cluster has its port;
    /// [`LabError::Interrupted`] without patience.
    pub fn wait(
        &mut self,
        begin: Instant,
        all: Option<usize>,
        patience: Patience<'_>,
    ) -> Result<(), LabError> {
        let place = self.place();
        loop {
            if !patience() {
                return Err(LabError::Interrupted(None));
            }
            let last = match self.launcher.ask(place, &self.identity, all) {
                Ok(()) => return Ok(()),
                Err(NotReady::Another(other)) => return Err(self.port_taken(&other)),
                Err(NotReady::Yet(error)) => format!("{}: {error}", self.listens),
            };
            let (name, within) = (&self.name, self.within);
            let reason = match self.process.child().map(Child::ending) {
                Some(None) if begin.elapsed() < within => {
                    std::thread::sleep(ASK_EVERY);
                    continue;
                }
                Some(None) => format!(
                    "{name} was not ready within {within:?}: {last}; if it needs longer, raise `ready within` of \
                     the store in the scenario"
                ),
                Some(Some(ending)) => format!("{name} ended before it was ready ({ending})"),
                None => format!("{name} was stopped before it was ready"),
            };
            return Err(LabError::Start(format!("{reason}; {}", self.log_tail())));
        }
    }

    fn port_taken(&self, other: &str) -> LabError {
        let (name, address) = (&self.name, self.listens);
        LabError::Start(format!(
            "{name} is to be at {address}, but a node of another cluster, `{other}`, took that port and answers there; \
             run again, and the next free ports are chosen, or end what listens there (`ss -ltnp 'sport = :{}'`)",
            address.port()
        ))
    }
}

/// Carries out what must be done once before the first start of nodes, for all of them together.
///
/// # Errors
/// Where one fails or takes longer than [`FIRST_MAX`]; [`LabError::Interrupted`] without patience.
pub fn carry_out(commands: &[Spec], patience: Patience<'_>) -> Result<(), LabError> {
    let cannot = |spec: &Spec, error| LabError::Start(format!("cannot prepare {}: {error}", spec.name));
    let spawn = |spec: &Spec| {
        let mut child = Child::spawn(spec).map_err(|error| cannot(spec, error))?;
        child.guard().map_err(|error| cannot(spec, error))?;
        Ok::<_, LabError>(child)
    };
    let mut children = commands.iter().map(spawn).collect::<Result<Vec<_>, _>>()?;
    let begin = Instant::now();
    for child in &mut children {
        while child.ending().is_none() && begin.elapsed() < FIRST_MAX {
            if !patience() {
                return Err(LabError::Interrupted(None));
            }
            std::thread::sleep(ASK_EVERY);
        }
        if child.exit_code() != Some(0) {
            let how = child.ending().unwrap_or_else(|| format!("not done within {FIRST_MAX:?}"));
            let text = format!("{} could not be prepared ({how})", child.name());
            return Err(LabError::Start(format!("{text}; {}", child.log_tail(TAIL_LINES))));
        }
    }
    Ok(())
}

impl fmt::Debug for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Node")
            .field("name", &self.name)
            .field("address", &self.address)
            .finish_non_exhaustive()
    }
}

impl Started for Node {
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
        let begin = Instant::now();
        loop {
            if self.process.id().is_none() {
                self.spawn()?;
            }
            // others of the store may be down meanwhile, on purpose
            let waited = self.wait(begin, None, patience);
            let may_be_later = matches!(waited, Err(LabError::Start(_)))
                && begin.elapsed() < self.within
                && self.process.ended().is_some()
                && self.launcher.is_held_up_by_predecessor(&self.log_tail());
            if !may_be_later {
                return waited;
            }
            self.process.kill();
            std::thread::sleep(ASK_EVERY);
        }
    }

    fn data_dir(&self) -> Option<&Path> {
        Some(&self.data)
    }
}
