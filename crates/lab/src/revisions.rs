//! Revisions of one's own repository side by side: each in a worktree of its own, built where it stands.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::child::Spec;
use crate::error::LabError;
use crate::hooks::to_end;
use crate::interrupt::Interrupt;

/// Longest time of a build.
const BUILD_WITHIN: Duration = Duration::from_secs(3_600);
/// What would make git look elsewhere: a hook of git sets them.
const OF_GIT: [&str; 4] = ["GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_PREFIX"];

/// The root of the repository that a folder is in, without links.
///
/// # Errors
/// It is in none, or there is no git.
pub fn repository(folder: &Path) -> Result<PathBuf, LabError> {
    let root = git(folder, &["rev-parse", "--show-toplevel"]).map_err(|reason| {
        LabError::Usage(format!("{} is in no git repository: {reason}", folder.display()))
    })?;
    let root = PathBuf::from(root);
    Ok(root.canonicalize().unwrap_or(root))
}

/// A tree of files at a revision, beside the one of the repository; removed when dropped.
#[derive(Debug)]
pub struct Worktree {
    repository: PathBuf,
    path: PathBuf,
    revision: String,
}

impl Worktree {
    /// Lays a revision (a commit, a branch, a tag) out in a folder that is not there yet.
    ///
    /// # Errors
    /// There is no such revision, or the folder cannot be made.
    pub fn add(repository: &Path, name: &str, path: &Path) -> Result<Worktree, LabError> {
        let unknown = |reason: String| {
            let reason = if reason.is_empty() { String::new() } else { format!(" ({reason})") };
            LabError::Usage(format!("there is no revision \"{name}\" in {}{reason}", repository.display()))
        };
        // it would be a flag of git
        if name.starts_with('-') {
            return Err(unknown(String::new()));
        }
        let commit = format!("{name}^{{commit}}");
        let revision = git(repository, &["rev-parse", "--verify", "--quiet", &commit]).map_err(unknown)?;
        let place = path.display().to_string();
        git(repository, &["worktree", "add", "--quiet", "--detach", &place, &revision])
            .map_err(|reason| LabError::Usage(format!("no worktree of {name} at {place}: {reason}")))?;
        Ok(Worktree { repository: repository.to_owned(), path: path.to_owned(), revision })
    }

    /// The whole hash of the revision.
    pub fn revision(&self) -> &str {
        &self.revision
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Runs a command in a folder of it, to its end: what it says goes into a log.
    ///
    /// # Errors
    /// It fails, takes longer than an hour, or the user stops it.
    pub fn build(&self, command: &[String], folder: &Path, log: &Path) -> Result<(), LabError> {
        let program = command.first().map(String::as_str).unwrap_or_default();
        let spec = Spec {
            cwd: Some(self.path.join(folder)),
            ..Spec::new("build", command.to_vec(), log.to_owned())
        };
        let interrupt = Interrupt::watch(None)
            .map_err(|error| LabError::Measure(format!("cannot watch signals: {error}")))?;
        to_end(&spec, BUILD_WITHIN, "no flag", &|| interrupt.stop_request()).map_err(|error| {
            let short: String = self.revision.chars().take(10).collect();
            error.in_words(|text| {
                format!("the build of {short} (`{program}`) {text}; its log is {}", log.display())
            })
        })
    }
}

impl Drop for Worktree {
    fn drop(&mut self) {
        let place = self.path.display().to_string();
        // what stays is a folder in that of the comparison, and `git worktree prune` forgets it
        let _ = git(&self.repository, &["worktree", "remove", "--force", &place]);
    }
}

/// What git prints, without the line's end; else why not.
fn git(folder: &Path, arguments: &[&str]) -> Result<String, String> {
    let mut command = Command::new("git");
    command.arg("-C").arg(folder).args(arguments).stdin(Stdio::null());
    for name in OF_GIT {
        command.env_remove(name);
    }
    let output = command.output().map_err(|error| format!("git cannot be started: {error}"))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).trim_end().to_owned());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(said.lines().next().unwrap_or_default().trim_start_matches("fatal: ").to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A repository with a file of two contents, in two commits.
    fn made() -> tempfile::TempDir {
        let temp = tempfile::tempdir().unwrap();
        let git = |arguments: &[&str]| super::git(temp.path(), arguments).unwrap();
        git(&["init", "--quiet"]);
        git(&["config", "user.email", "a@example.com"]);
        git(&["config", "user.name", "a"]);
        for content in ["one", "two"] {
            std::fs::create_dir_all(temp.path().join("app")).unwrap();
            std::fs::write(temp.path().join("app/file"), content).unwrap();
            git(&["add", "."]);
            git(&["commit", "--quiet", "-m", content]);
        }
        temp
    }

    fn words(text: &str) -> Vec<String> {
        text.split(' ').map(str::to_owned).collect()
    }

    #[test]
    fn each_revision_has_a_tree_of_its_own_for_a_while() {
        let temp = made();
        let root = repository(&temp.path().join("app")).unwrap();
        assert_eq!(root, temp.path().canonicalize().unwrap());
        let place = temp.path().join("trees/a");
        let tree = Worktree::add(&root, "HEAD~1", &place).unwrap();
        assert_eq!(std::fs::read_to_string(tree.path().join("app/file")).unwrap(), "one");
        assert_eq!(tree.revision().len(), 40);
        let log = temp.path().join("build.log");
        tree.build(&words("cp file built"), Path::new("app"), &log).unwrap();
        assert_eq!(std::fs::read_to_string(place.join("app/built")).unwrap(), "one");
        let error = tree.build(&words("ls nowhere"), Path::new("app"), &log).unwrap_err().to_string();
        assert!(error.contains("the build of ") && error.contains("(`ls`) failed"), "{error}");
        drop(tree);
        assert!(!place.exists(), "also with what was built");
        assert_eq!(super::git(&root, &["worktree", "list"]).unwrap().lines().count(), 1);
    }

    #[test]
    fn what_is_no_revision_is_told() {
        let temp = made();
        for name in ["nothing", "--all", ""] {
            let error = Worktree::add(temp.path(), name, &temp.path().join("x")).unwrap_err().to_string();
            assert!(error.contains(&format!("there is no revision \"{name}\"")), "{error}");
        }
        let other = tempfile::tempdir().unwrap();
        assert!(repository(other.path()).unwrap_err().to_string().contains("is in no git repository"));
    }
}
