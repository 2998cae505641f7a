//! An instance of a store, of one node or several: its program, ports and folders chosen, each node configured, then all
//! of them started together. Or one that is there already, and only reached.

use std::fs::{self, Permissions};
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use tidemark_record::manifest;
use tidemark_scenario::plan::{Durability, Store};

use super::installed::{User, user};
use super::jars::cache;
use super::launcher::{Fetch, Identity, Launcher, NodeAddress, NodeSetup, Program, password, unique};
use super::node::{self, Node};
use super::ports::Ports;
use crate::child::Spec;
use crate::disk::is_memory;
use crate::error::LabError;
use crate::interrupt::StopRequest;
use crate::link::Link;
use crate::process::Patience;
use crate::products::launcher;
use crate::started::{Started as _, held};

/// Where stores are started.
pub struct Setup<'a> {
    /// The run directory: holds `stores/` with their configuration, `logs/` and `data/`.
    pub run_dir: PathBuf,
    /// Cores that they are held to; empty for all.
    pub cores: Vec<usize>,
    /// Whether their data stays after the run.
    pub keep_data: bool,
    /// The folder of a node's data, by the node's name, where that is not in `data/`.
    pub data_of: &'a dyn Fn(&str) -> Option<PathBuf>,
    /// Whether there is to be a link between a node, by its name, and its clients. It has one then, as have the other
    /// nodes of its store.
    pub is_linked: &'a dyn Fn(&str) -> bool,
}

/// How much higher the address is at which a node behind a link listens for the clients that the link brings.
const BEHIND: usize = 10;
/// Where data go that their user could not reach in the run directory.
const OUTSIDE: &str = "/var/tmp";

/// One instance; its data go with it.
#[derive(Debug)]
pub struct Instance {
    // the order matters: the nodes go before their data
    pub nodes: Vec<Arc<Mutex<Node>>>,
    pub _data: Vec<DataDir>,
    /// Between nodes and their clients, by the nodes' names.
    pub links: Vec<(String, Arc<Link>)>,
    pub _ports: Option<Ports>,
    pub store: Store,
    /// The URL by which clients reach it, where it has one.
    pub url: Option<String>,
    pub manifest: manifest::Store,
    /// What a reader of the figures must know.
    pub remarks: String,
}

/// A data directory and whether it is kept; otherwise removed when dropped.
#[derive(Debug)]
pub struct DataDir(PathBuf, bool);

impl Drop for DataDir {
    fn drop(&mut self) {
        if !self.1 {
            // a rest that cannot be removed is where the user sees it: in the run directory, or in that of the store
            let _ = fs::remove_dir_all(&self.0);
            // the folder of all data goes with the last that is in it
            let _ = self.0.parent().map(fs::remove_dir);
        }
    }
}

/// What is decided for an instance before its nodes are made.
struct Site<'a> {
    store: &'a Store,
    setup: &'a Setup<'a>,
    launcher: &'static dyn Launcher,
    program: Program,
    /// Who its processes run as, where that is not who we are.
    user: Option<User>,
    /// A whole path.
    run_dir: PathBuf,
    /// By which it is told from all others.
    identity: Identity,
    /// Where clients find the nodes.
    addresses: Vec<IpAddr>,
    /// Where the nodes listen: there, or behind links.
    listen: Vec<IpAddr>,
    ports: Ports,
}

/// What an instance has of each node.
#[derive(Default)]
struct Members {
    nodes: Vec<Arc<Mutex<Node>>>,
    data: Vec<DataDir>,
    links: Vec<(String, Arc<Link>)>,
    /// To be carried out before any of them is started.
    firsts: Vec<Spec>,
    /// What is to be said of their folders.
    remarks: String,
}

impl<'a> Site<'a> {
    fn choose(
        store: &'a Store,
        setup: &'a Setup<'a>,
        stop_request: &dyn Fn() -> StopRequest,
        tell: &mut dyn FnMut(String),
    ) -> Result<Site<'a>, LabError> {
        let launcher = launcher(store.product);
        let cache = cache()?;
        let program = launcher.program(store, &mut Fetch { cache: &cache, stop_request, tell })?;
        let user = unprivileged(launcher, &program.title)?;
        // all of them or none: brokers want the same of each, and no node is slower than another without its fault
        let linked = names(store).iter().any(|name| (setup.is_linked)(name));
        let (count, is_in_a_row) = (store.processes(), launcher.is_in_a_row());
        let at = |linked| {
            (0..count)
                .map(|index| address(if is_in_a_row { 0 } else { index }, linked))
                .collect::<Vec<IpAddr>>()
        };
        let (addresses, listen) = (at(false), at(linked));
        let mut all: Vec<IpAddr> = addresses.iter().chain(&listen).copied().collect();
        all.sort_unstable();
        all.dedup();
        let usual = usual_ports(launcher.ports(store), if is_in_a_row { count } else { 1 });
        let ports = Ports::choose(&program.title, &all, &usual, &cache)?;
        let run_dir = &setup.run_dir;
        // a process may have another working directory one day; paths in configurations are whole
        let run_dir = std::path::absolute(run_dir).map_err(|error| unwritable(run_dir, &error))?;
        let password = password().map_err(|error| LabError::Start(format!("no random numbers: {error}")))?;
        let identity = Identity { name: launcher.identity(&unique()), password };
        Ok(Site { store, setup, launcher, program, user, run_dir, identity, addresses, listen, ports })
    }

    /// The ports of a node.
    fn ports_of(&self, index: usize) -> &[u16] {
        let count = self.launcher.ports(self.store).len();
        let from = if self.launcher.is_in_a_row() { index * count } else { 0 };
        &self.ports.numbers[from..from + count]
    }

    /// Configures a node, not yet started.
    fn add(&self, index: usize, members: &mut Members) -> Result<(), LabError> {
        let name = name(self.store, index);
        let one = NodeSetup {
            store: self.store,
            index,
            identity: &self.identity.name,
            password: &self.identity.password,
            addresses: &self.addresses,
            listen: self.listen[index],
            ports: self.ports_of(index),
            configuration: self.run_dir.join("stores").join(&name),
            data: self.data(&name, members)?,
            program: &self.program,
        };
        self.launcher.write(&one).map_err(|error| unwritable(&self.run_dir, &error))?;
        let spec = self.spec(name, &one)?;
        let first = self.launcher.before_first_start(&one);
        members.firsts.extend(first.map(|command| Spec { command, ..spec.clone() }));
        let (launcher, within) = (self.launcher, self.store.ready_within);
        let place = |addresses: &[IpAddr]| SocketAddr::new(addresses[index], one.ports[0]);
        let address = place(&self.addresses);
        let mut node = Node::new(spec, address, one.data, launcher, self.identity.clone(), within);
        node.listens = place(&self.listen);
        if node.listens != address {
            let link = Link::between(address, node.listens);
            let link =
                link.map_err(|error| LabError::Start(format!("cannot open a link at {address}: {error}")))?;
            members.links.push((node.name.clone(), Arc::new(link)));
        }
        members.nodes.push(Arc::new(Mutex::new(node)));
        Ok(())
    }

    /// Makes the folder of a node's data, where the user that it runs as can reach it, and gives it to that.
    fn data(&self, name: &str, members: &mut Members) -> Result<PathBuf, LabError> {
        let mut given = (self.setup.data_of)(name);
        if let Some(directory) = &self.store.directory {
            let refused = |why: &str| {
                let (name, directory) = (&self.store.name, directory.display());
                Err(LabError::Usage(format!(
                    "the store {name} has its data in the directory {directory}: {why}"
                )))
            };
            if given.is_some() {
                return refused("a fault of its disk needs a disk of its own; leave `directory` out");
            }
            if !directory.is_dir() {
                return refused("this is not a directory that exists; make it first");
            }
            let folder = std::path::absolute(directory).map_err(|error| unwritable(directory, &error))?;
            given = Some(folder.join(format!("tidemark-{}", unique())).join(name));
            members.remarks = format!("; its data lay in {}", directory.display());
        }
        let mut data = given.clone().unwrap_or_else(|| self.run_dir.join("data").join(name));
        // nobody else enters it: it has the password
        let make = |data: &Path| {
            let made = fs::create_dir_all(data)
                .and_then(|()| fs::set_permissions(data, Permissions::from_mode(0o700)));
            made.map_err(|error| unwritable(data, &error))
        };
        let Some(user) = self.user else {
            make(&data)?;
            members.data.push(DataDir(data.clone(), self.setup.keep_data));
            return Ok(data);
        };
        let within = self.store.directory.as_ref().unwrap_or(&self.run_dir);
        if let Some(closed) = closed_to(within, user) {
            let (title, closed) = (&self.program.title, closed.display());
            let runs_as = self.launcher.user().unwrap_or_default();
            if given.is_some() || self.setup.keep_data {
                return Err(LabError::Usage(format!(
                    "{title} runs as the user `{runs_as}`, who cannot enter {closed}; choose another place with {}, like \
                     {OUTSIDE}/run",
                    if self.store.directory.is_some() { "`directory`" } else { "--out" }
                )));
            }
            data = Path::new(OUTSIDE).join(format!("tidemark-{}", unique())).join(name);
            members.remarks = format!(
                "; its data lay in {}, since it ran as `{runs_as}`, who cannot enter {closed}",
                data.display()
            );
        }
        make(&data)?;
        members.data.push(DataDir(data.clone(), self.setup.keep_data));
        let given = chown(&data, Some(user.uid), Some(user.gid));
        given.map_err(|error| unwritable(&data, &error))?;
        Ok(data)
    }

    /// How a node is started.
    fn spec(&self, name: String, one: &NodeSetup<'_>) -> Result<Spec, LabError> {
        let command = self.launcher.command(one).map_err(|error| {
            LabError::Start(format!(
                "{} in {} is not whole: {error}; remove that folder, and it is fetched again",
                self.program.title,
                self.program.folder.display()
            ))
        })?;
        let logs = self.run_dir.join("logs");
        fs::create_dir_all(&logs).map_err(|error| unwritable(&logs, &error))?;
        let log = logs.join(format!("{name}.log"));
        let (cores, yields) = (self.setup.cores.clone(), self.setup.cores.is_empty());
        let user = self.user.map(|user| (user.uid, user.gid));
        let stop_signal = self.launcher.stop_signal();
        // A store that is woken by each write of a client on its own core, and interrupts it for that, handles each by
        // itself; one that waits until the client has written all it has handles them together.
        Ok(Spec { cores, yields, takes_turns: true, user, stop_signal, ..Spec::new(name, command, log) })
    }

    fn manifest(&self, nodes: &[Arc<Mutex<Node>>]) -> manifest::Store {
        let store = self.store;
        manifest::Store {
            name: store.name.clone(),
            version: self.program.title.clone(),
            java: self.program.java.as_ref().map(|java| java.version.clone()).unwrap_or_default(),
            addresses: nodes.iter().map(|node| held(node).address.to_string()).collect(),
            durability: store.durability.name().into(),
            heap_bytes: self.program.java.as_ref().map_or(0, |_| store.heap_bytes),
            command: nodes.first().map(|node| held(node).spec.command.clone()).unwrap_or_default(),
        }
    }
}

impl Instance {
    /// Starts a store and waits until all its nodes are ready.
    pub fn start(
        store: &Store,
        setup: &Setup<'_>,
        stop_request: &dyn Fn() -> StopRequest,
        tell: &mut dyn FnMut(String),
    ) -> Result<Instance, LabError> {
        let site = Site::choose(store, setup, stop_request, tell)?;
        let mut members = Members::default();
        (0..store.processes()).try_for_each(|index| site.add(index, &mut members))?;
        let addresses: Vec<SocketAddr> = members.nodes.iter().map(|node| held(node).address).collect();
        let mut remarks = site.launcher.remarks(store) + &members.remarks;
        if store.durability == Durability::Synced && members.data.iter().any(|data| is_memory(&data.0)) {
            let says = "its data are on a tmpfs, which is memory: a sync costs next to nothing there";
            tell(format!("{}: {says}", store.name));
            remarks += "; ";
            remarks += says;
        }
        let instance = Instance {
            manifest: site.manifest(&members.nodes),
            nodes: members.nodes,
            _data: members.data,
            links: members.links,
            url: site.launcher.url(store, &addresses, &site.identity.password),
            _ports: Some(site.ports),
            store: store.clone(),
            remarks,
        };
        instance.begin(&site.program.title, &members.firsts, stop_request, tell)?;
        Ok(instance)
    }

    /// Starts all nodes together and waits until each serves and sees the others.
    fn begin(
        &self,
        title: &str,
        firsts: &[Spec],
        stop_request: &dyn Fn() -> StopRequest,
        tell: &mut dyn FnMut(String),
    ) -> Result<(), LabError> {
        let name = match self.store.name == self.store.product.name() {
            true => String::new(),
            false => format!(" ({})", self.store.name),
        };
        tell(match self.nodes.len() {
            1 => format!("starting {title}{name}"),
            count => format!("starting {title}{name}, {count} nodes"),
        });
        let begin = Instant::now();
        let patience = || stop_request() == StopRequest::None;
        node::carry_out(firsts, &patience)?;
        self.nodes.iter().try_for_each(|node| held(node).spawn())?;
        if launcher(self.store.product).is_joined(&self.store) {
            self.nodes.iter().try_for_each(|node| held(node).wait(begin, None, &patience))?;
            self.join(&patience)?;
        }
        self.nodes.iter().try_for_each(|node| held(node).wait(begin, Some(self.nodes.len()), &patience))
    }

    /// Makes nodes that are up one.
    fn join(&self, patience: Patience<'_>) -> Result<(), LabError> {
        let places: Vec<NodeAddress> = self.nodes.iter().map(|node| held(node).place()).collect();
        let Some(first) = self.nodes.first() else { return Ok(()) };
        let identity = held(first).identity.clone();
        let joined = launcher(self.store.product).join(&self.store, &places, &identity, patience);
        joined.map_err(|error| match patience() {
            false => LabError::Interrupted(None),
            true => LabError::Start(format!(
                "the nodes of the store `{}` do not become a cluster: {error}; {}",
                self.store.name,
                held(first).log_tail()
            )),
        })
    }
}

/// Who a product's processes run as, where we are root and it is not to be.
fn unprivileged(launcher: &dyn Launcher, title: &str) -> Result<Option<User>, LabError> {
    let Some(name) = launcher.user().filter(|_| rustix::process::geteuid().is_root()) else {
        return Ok(None);
    };
    user(name).map(Some).ok_or_else(|| {
        LabError::Usage(format!(
            "{title} does not run as root, and there is no user `{name}` to run it; add one (adduser --system --group \
             {name}), or start tidemark as another user"
        ))
    })
}

/// The folder above which a user does not come on the way to this one.
fn closed_to(path: &Path, user: User) -> Option<PathBuf> {
    let is_open = |path: &Path| {
        fs::metadata(path).is_ok_and(|about| {
            let bit = match () {
                () if about.uid() == user.uid => 0o100,
                () if about.gid() == user.gid => 0o010,
                () => 0o001,
            };
            about.mode() & bit != 0
        })
    };
    // what is not there yet is made by us, open
    let mut folders: Vec<&Path> = path.ancestors().filter(|folder| folder.exists()).collect();
    folders.reverse();
    folders.into_iter().find(|folder| !is_open(folder)).map(Path::to_owned)
}

/// The address of a node: 127.0.0.1 and on, or, behind a link, 127.0.0.11 and on.
fn address(index: usize, behind: bool) -> IpAddr {
    let number = index + if behind { 1 + BEHIND } else { 1 };
    Ipv4Addr::new(127, 0, 0, u8::try_from(number).unwrap_or(u8::MAX)).into()
}

/// The usual ports of nodes that have theirs one after the other.
fn usual_ports(first: &[u16], nodes: usize) -> Vec<u16> {
    let nodes = u16::try_from(nodes).unwrap_or(u16::MAX);
    (0..nodes).flat_map(|node| first.iter().map(move |port| port.saturating_add(node))).collect()
}

/// What the nodes of a store are called.
pub fn names(store: &Store) -> Vec<String> {
    (0..store.processes()).map(|index| name(store, index)).collect()
}

/// What a node is called: by its number only where there are several.
fn name(store: &Store, index: usize) -> String {
    match store.processes() {
        1 => store.name.clone(),
        _ => format!("{}.{}", store.name, index + 1),
    }
}

fn unwritable(path: &Path, error: &io::Error) -> LabError {
    LabError::Usage(format!("cannot write {}: {error}; choose another place with --out", path.display()))
}
