//! Fetches a store's jars, once, and keeps them.
//!
//! Maven reads a small pom that this program carries and copies what it names, from wherever its own settings say,
//! into a folder of the cache. The folder is made under another name and gets its own when it is whole, so that one
//! that is there is complete; a lock keeps two runs from fetching the same at once.

use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::child::{Child, Spec, TAIL_LINES};
use crate::error::LabError;
use crate::interrupt::StopRequest;

/// Names the folder of the cache in place of the usual one.
pub const CACHE_VARIABLE: &str = "TIDEMARK_STORES";
/// Longest time that fetching may take, and that another run's is waited for.
const FETCH_MAX: Duration = Duration::from_secs(20 * 60);
/// How often it is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// The goal of Maven that copies jars, at the version that was tried.
const GOAL: &str = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies";

/// A store's jars.
#[derive(Debug, Clone, Copy)]
pub struct Jars {
    /// Name and version for people: `Cassandra 5.0.9`.
    pub title: &'static str,
    /// Name of its folder: `cassandra-5.0.9`.
    pub folder: &'static str,
    /// What Maven is to copy.
    pub pom: &'static str,
}

/// The folder in which everything fetched is kept.
///
/// # Errors
/// Where neither the variables nor a home directory say where that is.
pub fn cache() -> Result<PathBuf, LabError> {
    let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let usual = || variable("XDG_CACHE_HOME").or_else(|| Some(variable("HOME")?.join(".cache")));
    variable(CACHE_VARIABLE).or_else(|| usual().map(|cache| cache.join("tidemark/stores"))).ok_or_else(|| {
        let reason = format!("no place to keep stores: neither {CACHE_VARIABLE} nor HOME is set; set one");
        LabError::Usage(reason)
    })
}

impl Jars {
    /// The folder of the jars in `cache`; fetches them if they are not there. `tell` is called before that takes long.
    ///
    /// # Errors
    /// Where Maven is missing or fails, or the cache cannot be written, with what to do.
    pub fn get(
        &self,
        cache: &Path,
        stop_request: &dyn Fn() -> StopRequest,
        tell: &mut dyn FnMut(String),
    ) -> Result<PathBuf, LabError> {
        let folder = cache.join(self.folder);
        if folder.is_dir() {
            return Ok(folder);
        }
        fs::create_dir_all(cache).map_err(|error| self.unwritable(cache, &error))?;
        let _lock = self.lock(cache, stop_request, tell)?;
        if folder.is_dir() {
            return Ok(folder); // another run has fetched them meanwhile
        }
        tell(format!("fetching {} (once)", self.title));
        let unfinished = cache.join(format!("{}.unfinished", self.folder));
        // what an interrupted run has left
        let _ = fs::remove_dir_all(&unfinished);
        let fetched = self.fetch(&unfinished, stop_request).and_then(|()| {
            fs::rename(unfinished.join("lib"), &folder).map_err(|error| self.unwritable(&folder, &error))
        });
        let _ = fs::remove_dir_all(&unfinished);
        fetched.map(|()| folder)
    }

    /// Held while they are fetched; the kernel takes it back from a run that dies.
    fn lock(
        &self,
        cache: &Path,
        stop_request: &dyn Fn() -> StopRequest,
        tell: &mut dyn FnMut(String),
    ) -> Result<File, LabError> {
        let path = cache.join(format!("{}.lock", self.folder));
        let lock = File::create(&path).map_err(|error| self.unwritable(&path, &error))?;
        let begin = Instant::now();
        let mut told = false;
        loop {
            match lock.try_lock() {
                Ok(()) => return Ok(lock),
                Err(TryLockError::Error(error)) => return Err(self.unwritable(&path, &error)),
                Err(TryLockError::WouldBlock) if begin.elapsed() > FETCH_MAX => {
                    return Err(LabError::Start(format!(
                        "another run has been fetching {} for {FETCH_MAX:?}; end it, or set {CACHE_VARIABLE} to \
                         another folder",
                        self.title
                    )));
                }
                Err(TryLockError::WouldBlock) => {}
            }
            if !std::mem::replace(&mut told, true) {
                tell(format!("waiting for another run that fetches {}", self.title));
            }
            go_on(stop_request)?;
            std::thread::sleep(LOOK_EVERY);
        }
    }

    fn fetch(&self, folder: &Path, stop_request: &dyn Fn() -> StopRequest) -> Result<(), LabError> {
        let (pom, lib, log) = (folder.join("pom.xml"), folder.join("lib"), folder.join("maven.log"));
        fs::create_dir_all(folder)
            .and_then(|()| fs::write(&pom, self.pom))
            .map_err(|error| self.unwritable(folder, &error))?;
        let words = ["mvn", "-B", "-f", &text(&pom), GOAL, "-DincludeScope=runtime"].map(str::to_owned);
        let command = words.into_iter().chain([format!("-DoutputDirectory={}", text(&lib))]).collect();
        let spec = Spec::new("mvn", command, log);
        let cannot = |error: io::Error| {
            let title = self.title;
            let fetch = format!("cannot fetch {title} with Maven: mvn: {error}");
            LabError::Usage(format!("{fetch}; install it (Debian: apt-get install maven)"))
        };
        let mut maven = Child::spawn(&spec).map_err(cannot)?;
        maven.guard().map_err(cannot)?;
        let begin = Instant::now();
        while maven.ending().is_none() {
            go_on(stop_request)?;
            if begin.elapsed() > FETCH_MAX {
                let text = format!("{} was not fetched within {FETCH_MAX:?}", self.title);
                return Err(LabError::Start(format!("{text}; {}", maven.log_tail(TAIL_LINES))));
            }
            std::thread::sleep(LOOK_EVERY);
        }
        if maven.exit_code() != Some(0) {
            return Err(LabError::Start(format!(
                "Maven could not fetch {}; check its settings (~/.m2/settings.xml) and the network; {}",
                self.title,
                maven.log_tail(TAIL_LINES)
            )));
        }
        Ok(())
    }

    fn unwritable(&self, path: &Path, error: &io::Error) -> LabError {
        LabError::Usage(format!(
            "cannot keep {} in {}: {error}; set {CACHE_VARIABLE} to a folder that can be written",
            self.title,
            path.display()
        ))
    }
}

fn text(path: &Path) -> String {
    path.display().to_string()
}

fn go_on(stop_request: &dyn Fn() -> StopRequest) -> Result<(), LabError> {
    if stop_request() == StopRequest::None { Ok(()) } else { Err(LabError::Interrupted(None)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BROKEN: Jars =
        Jars { title: "Nothing 1.0", folder: "nothing-1.0", pom: "<project><no/></project>" };

    fn get(cache: &Path, stop_request: StopRequest) -> (Result<PathBuf, LabError>, Vec<String>) {
        let mut told = Vec::new();
        let result = BROKEN.get(cache, &|| stop_request, &mut |text| told.push(text));
        (result, told)
    }

    #[test]
    fn what_is_there_is_taken_as_it_is() {
        let cache = tempfile::tempdir().unwrap();
        let folder = cache.path().join("nothing-1.0");
        fs::create_dir(&folder).unwrap();
        let (found, told) = get(cache.path(), StopRequest::None);
        assert_eq!((found.unwrap(), told.len()), (folder, 0));
    }

    #[test]
    fn what_cannot_be_fetched_is_quoted_and_leaves_nothing() {
        let cache = tempfile::tempdir().unwrap();
        // as a run that was killed leaves it
        let unfinished = cache.path().join("nothing-1.0.unfinished");
        fs::create_dir_all(unfinished.join("lib")).unwrap();
        fs::write(unfinished.join("lib/half.jar"), "x").unwrap();
        let (fetched, told) = get(cache.path(), StopRequest::None);
        let error = fetched.unwrap_err().to_string();
        assert!(error.contains("Maven could not fetch Nothing 1.0") && error.contains("  | "), "{error}");
        assert_eq!(told, ["fetching Nothing 1.0 (once)"]);
        assert!(!unfinished.exists() && !cache.path().join("nothing-1.0").exists());
    }

    #[test]
    fn another_run_that_fetches_the_same_is_waited_for() {
        let cache = tempfile::tempdir().unwrap();
        let lock = File::create(cache.path().join("nothing-1.0.lock")).unwrap();
        lock.lock().unwrap();
        let (fetched, told) = get(cache.path(), StopRequest::Stop);
        assert!(matches!(fetched, Err(LabError::Interrupted(_))), "{fetched:?}");
        assert_eq!(told, ["waiting for another run that fetches Nothing 1.0"]);
        // the other has them in place before it lets go
        let folder = cache.path().join("nothing-1.0");
        let finish = || {
            std::thread::sleep(LOOK_EVERY);
            fs::create_dir(&folder).unwrap();
            lock.unlock().unwrap();
        };
        let fetched = std::thread::scope(|scope| {
            scope.spawn(finish);
            get(cache.path(), StopRequest::None).0
        });
        assert_eq!(fetched.unwrap(), folder);
    }

    #[test]
    fn a_cache_that_cannot_be_made_says_what_to_set() {
        let cache = tempfile::tempdir().unwrap();
        let file = cache.path().join("file");
        fs::write(&file, "").unwrap();
        let error = get(&file.join("stores"), StopRequest::None).0.unwrap_err();
        assert!(error.to_string().contains(CACHE_VARIABLE), "{error}");
        assert_eq!(error.exit_status(), 2);
    }
}
