//! What a fleet's coordinator tells its agents beforehand: a [`Task`], the same for all of them.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use tidemark_fleet::FleetError;
use tidemark_scenario::Plan;
use tidemark_scenario::outside::{Given, Origin};
use tidemark_scenario::plan::{Limits, Load, System, TlsSettings};

use super::Setup;

/// The name of the task among a run's files.
pub const TASK: &str = "task";
/// Most bytes of it.
pub const TASK_BYTES_MAX: u64 = 256 << 20;
/// Most bytes of a file that comes with it.
const FILE_BYTES_MAX: u64 = 4 << 30;

/// What is to be driven.
#[derive(Debug, Serialize, Deserialize)]
pub struct Task {
    pub setup: Setup,
    /// What the plan is read from.
    pub from: Origin,
    /// Files that come with it, each with its name among the run's files.
    pub files: Vec<(PathBuf, String)>,
    /// The load as a search or the command line changed it.
    pub load: Load,
    pub limits: Limits,
    /// How TLS is spoken to each target, the system first.
    pub tls: Vec<TlsSettings>,
    /// The first thread of each member, and how many it has.
    pub dealt: Vec<(usize, usize)>,
    /// Threads of all members.
    pub threads: usize,
    /// The back end for sockets, by its name.
    pub io: String,
    pub spin: bool,
    /// When a response time ends, by its name.
    pub timestamps: String,
}

/// How TLS is spoken to each target, the system first.
pub fn tls_of(plan: &Plan) -> Vec<TlsSettings> {
    let targets = plan.targets.iter().map(|target| &target.at);
    std::iter::once(&plan.system).chain(targets).map(|system: &System| system.tls.clone()).collect()
}

/// The files that a run names.
pub fn files_of(from: &Origin, tls: &[TlsSettings]) -> Vec<(PathBuf, String)> {
    let of_tls = tls.iter().flat_map(|tls| [&tls.ca, &tls.certificate, &tls.key]).flatten();
    let mut files = from.files.clone();
    files.extend(of_tls.cloned());
    files.into_iter().enumerate().map(|(number, path)| (path, format!("file-{number}"))).collect()
}

/// Fetches what came with a task into a folder, by its names.
pub fn given_of(
    task: &Task,
    folder: &Path,
    fetch_into: &dyn Fn(&str, &Path, u64) -> Result<(), FleetError>,
) -> Result<Given, String> {
    let mut given = Given { variables: task.from.variables.clone(), ..Given::default() };
    for (number, (path, name)) in task.files.iter().enumerate() {
        let copy: PathBuf = folder.join(number.to_string());
        fetch_into(name, &copy, FILE_BYTES_MAX).map_err(|error| error.to_string())?;
        given.files.insert(path.clone(), copy);
    }
    Ok(given)
}

/// Puts the plan of a task right, which was read from copies: what was changed of it since, and where copies are.
pub fn settle(plan: &mut Plan, given: &Given, (load, limits): (Load, Limits), tls: Vec<TlsSettings>) {
    (plan.load, plan.limits) = (load, limits);
    let targets = plan.targets.iter_mut().map(|target| &mut target.at);
    for (system, mut tls) in std::iter::once(&mut plan.system).chain(targets).zip(tls) {
        for file in [&mut tls.ca, &mut tls.certificate, &mut tls.key].into_iter().flatten() {
            *file = given.path(file);
        }
        system.tls = tls;
    }
}
