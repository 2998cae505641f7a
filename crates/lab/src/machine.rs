//! What a run is made on.

use std::fs;
use std::path::{Path, PathBuf};

use tidemark_record::manifest::Machine;

use crate::{pin, proc};

/// Longest text read from a file of the machine or of `.git`.
const TEXT_MAX: usize = 1 << 20;

/// Looks at the machine. `steal_share` is for the run to fill in afterwards.
pub fn look() -> Machine {
    let uname = rustix::system::uname();
    let text = |path: &str| read(Path::new(path)).unwrap_or_default();
    Machine {
        cpu_model: proc::cpu_model(&text("/proc/cpuinfo"))
            .unwrap_or_else(|| format!("unknown, {}", uname.machine().to_string_lossy())),
        cores: pin::available_cores().len() as u64,
        memory_bytes: proc::keyed(&text("/proc/meminfo"), "MemTotal").unwrap_or(0).saturating_mul(1024),
        kernel: format!("{} {}", uname.sysname().to_string_lossy(), uname.release().to_string_lossy()),
        os: proc::os_name(&text("/etc/os-release"))
            .unwrap_or_else(|| uname.sysname().to_string_lossy().into_owned()),
        open_files_limit: open_files_limit(),
        load_average_1m: proc::load_average(&text("/proc/loadavg")).unwrap_or(0.0),
        steal_share: 0.0,
    }
}

fn open_files_limit() -> u64 {
    rustix::process::getrlimit(rustix::process::Resource::Nofile).current.unwrap_or(u64::MAX)
}

/// Open files of a system or of this program beside the connections.
const OTHER_FILES: u64 = 1_024;

/// Raises this process's limit of open files as far as it may, beyond the hard limit only where so many connections
/// need it; children inherit it. A load of many connections needs it, and nothing is lost by it.
pub fn raise_open_files_limit(connections: usize) {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let mut limit = getrlimit(Resource::Nofile);
    let wanted = (connections as u64).saturating_add(OTHER_FILES);
    if limit.maximum.is_some_and(|most| most < wanted) {
        // the right to go there is mostly root's
        let beyond = Rlimit { current: Some(wanted), maximum: Some(wanted) };
        if setrlimit(Resource::Nofile, beyond).is_ok() {
            return;
        }
    }
    if limit.current != limit.maximum {
        limit.current = limit.maximum;
        // where the system refuses, the old limit stays; the manifest shows it either way
        let _ = setrlimit(Resource::Nofile, limit);
    }
}

/// The git revision that `folder` or a folder above it is at, read from `.git` itself.
pub fn git_revision(folder: &Path) -> Option<String> {
    let dot_git = folder.ancestors().map(|folder| folder.join(".git")).find(|path| path.exists())?;
    let git = if dot_git.is_file() {
        // a worktree: `gitdir: PATH`
        let path = PathBuf::from(read(&dot_git)?.strip_prefix("gitdir:")?.trim());
        if path.is_absolute() { path } else { dot_git.parent()?.join(path) }
    } else {
        dot_git
    };
    let head = read(&git.join("HEAD"))?;
    let Some(reference) = head.trim().strip_prefix("ref:").map(str::trim) else {
        return revision(&head);
    };
    // the references of a worktree are kept in the main one
    let common =
        read(&git.join("commondir")).map(|path| git.join(path.trim())).unwrap_or_else(|| git.clone());
    [&git, &common]
        .iter()
        .find_map(|git| read(&git.join(reference)).and_then(|text| revision(&text)))
        .or_else(|| {
            let packed = read(&common.join("packed-refs"))?;
            packed.lines().find_map(|line| line.strip_suffix(reference)?.strip_suffix(' ').and_then(revision))
        })
}

fn revision(text: &str) -> Option<String> {
    let text = text.trim();
    (text.len() >= 40 && text.bytes().all(|byte| byte.is_ascii_hexdigit())).then(|| text.to_owned())
}

fn read(path: &Path) -> Option<String> {
    let bytes = fs::read(path).ok().filter(|bytes| bytes.len() <= TEXT_MAX)?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    const REVISION: &str = "0123456789abcdef0123456789abcdef01234567";

    #[test]
    fn a_machine_has_cores_and_a_kernel() {
        let machine = look();
        assert!(machine.cores >= 1);
        assert!(!machine.kernel.trim().is_empty() && !machine.cpu_model.is_empty() && !machine.os.is_empty());
    }

    #[test]
    fn the_limit_of_open_files_is_raised_to_what_is_allowed() {
        raise_open_files_limit(10);
        let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile);
        assert_eq!(limit.current, limit.maximum);
    }

    #[test]
    fn the_revision_is_found_from_below() {
        let folder = tempfile::tempdir().unwrap();
        let git = folder.path().join(".git");
        let below = folder.path().join("a/b");
        fs::create_dir_all(git.join("refs/heads")).unwrap();
        fs::create_dir_all(&below).unwrap();
        fs::write(git.join("HEAD"), "ref: refs/heads/main\n").unwrap();
        assert_eq!(git_revision(&below), None, "no commit yet");
        fs::write(git.join("packed-refs"), format!("# pack-refs\n{REVISION} refs/heads/main\n")).unwrap();
        assert_eq!(git_revision(&below).as_deref(), Some(REVISION));
        fs::write(git.join("refs/heads/main"), format!("{}\n", REVISION.replace('0', "f"))).unwrap();
        assert_eq!(git_revision(&below), Some(REVISION.replace('0', "f")));
        fs::write(git.join("HEAD"), format!("{REVISION}\n")).unwrap();
        assert_eq!(git_revision(&below).as_deref(), Some(REVISION));
        fs::write(git.join("HEAD"), "nonsense").unwrap();
        assert_eq!(git_revision(&below), None);
    }
}
