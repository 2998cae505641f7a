//! What a scenario takes from the machine that reads it: files and variables of the environment.
//!
//! A fleet reads a scenario on several machines. A [`Plan`](crate::Plan) says in its [`Origin`] what it was read from; an
//! agent reads it again [from copies](given), and from nothing of its own.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::env::VarError;
use std::fmt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// What a plan was read from. It holds secrets as they are, and is never written down.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Origin {
    /// What the scenario is called in messages.
    pub name: String,
    /// Its text.
    pub text: String,
    /// Where files are looked for that it names.
    pub folder: PathBuf,
    /// Settings from outside.
    pub settings: Vec<(String, String)>,
    /// Files that were read, as they were named.
    pub files: BTreeSet<PathBuf>,
    /// Variables of the environment that were set, and their values.
    pub variables: BTreeMap<String, String>,
}

impl fmt::Debug for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Origin").field("name", &self.name).finish_non_exhaustive()
    }
}

/// What is taken in its place.
#[derive(Clone, Default)]
pub struct Given {
    /// Where the copy of each file is.
    pub files: BTreeMap<PathBuf, PathBuf>,
    /// Variables of the environment. No other is set.
    pub variables: BTreeMap<String, String>,
}

impl Given {
    /// Where the copy of a file is; a place at which nothing is where there is none.
    pub fn path(&self, path: &Path) -> PathBuf {
        let nowhere = || Path::new(NOT_GIVEN).join(path.file_name().unwrap_or_default());
        self.files.get(path).cloned().unwrap_or_else(nowhere)
    }
}

/// Where files are looked for that did not come with the scenario. Nothing is below a device.
const NOT_GIVEN: &str = "/dev/null/not-given";

enum Look {
    Here,
    Recording(BTreeSet<PathBuf>, BTreeMap<String, String>),
    Given(Given),
}

thread_local! {
    static LOOK: RefCell<Look> = const { RefCell::new(Look::Here) };
}

/// Reads on this thread, and says which files and variables that took.
pub(crate) fn recorded<T>(read: impl FnOnce() -> T) -> (T, (BTreeSet<PathBuf>, BTreeMap<String, String>)) {
    if LOOK.with_borrow(|look| matches!(look, Look::Given(_))) {
        return (read(), Default::default());
    }
    let (made, look) = looking(Look::Recording(BTreeSet::new(), BTreeMap::new()), read);
    match look {
        Look::Recording(files, variables) => (made, (files, variables)),
        Look::Here | Look::Given(_) => (made, Default::default()),
    }
}

/// Reads on this thread, from what is given alone.
pub fn given<T>(given: &Given, read: impl FnOnce() -> T) -> T {
    looking(Look::Given(given.clone()), read).0
}

fn looking<T>(look: Look, read: impl FnOnce() -> T) -> (T, Look) {
    /// Puts back what was, on a panic too.
    struct Restore(Option<Look>);
    impl Drop for Restore {
        fn drop(&mut self) {
            if let Some(before) = self.0.take() {
                LOOK.replace(before);
            }
        }
    }
    let mut restore = Restore(Some(LOOK.replace(look)));
    let made = read();
    let before = restore.0.take().unwrap_or(Look::Here);
    (made, LOOK.replace(before))
}

/// Where a file is.
pub(crate) fn path_of(path: &Path) -> PathBuf {
    LOOK.with_borrow_mut(|look| match look {
        Look::Here => path.to_owned(),
        Look::Recording(files, _) => {
            files.insert(path.to_owned());
            path.to_owned()
        }
        Look::Given(given) => given.path(path),
    })
}

/// A variable of the environment.
pub(crate) fn variable(name: &str) -> Result<String, VarError> {
    LOOK.with_borrow_mut(|look| match look {
        Look::Here => std::env::var(name),
        Look::Recording(_, variables) => {
            let value = std::env::var(name)?;
            variables.insert(name.to_owned(), value.clone());
            Ok(value)
        }
        Look::Given(given) => given.variables.get(name).cloned().ok_or(VarError::NotPresent),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Plan, check_text};

    const TEXT: &str = "system: {url: 'http://127.0.0.1:1'}
settings: {path: '${env(\"PATH\")}', greeting: hello}
feeders: {users: {file: rows.csv}}
load: {users: 1, hold: 1s}
sessions: {a: {steps: [{take: users}, {GET: '/${greeting}/${path}/${name}'}]}}
";

    fn read(folder: &Path) -> Result<Plan, String> {
        let settings = [("greeting".to_owned(), "hi".to_owned())];
        let (plan, diagnostics) = check_text("t.yaml", TEXT, folder, &settings);
        plan.ok_or_else(|| diagnostics.to_string())
    }

    #[test]
    fn what_was_taken_is_enough_to_read_it_again() {
        let folder = tempfile::tempdir().unwrap();
        let rows = folder.path().join("rows.csv");
        std::fs::write(&rows, "name\nann\nbob\n").unwrap();
        let from = read(folder.path()).unwrap().read_from;
        assert_eq!(from.files.iter().collect::<Vec<_>>(), [&rows]);
        assert_eq!(from.variables.keys().collect::<Vec<_>>(), ["PATH"]);
        assert_eq!((from.name.as_str(), from.text.as_str()), ("t.yaml", TEXT));
        assert!(!format!("{from:?}").contains("hi"), "no secret is shown");

        let copy = folder.path().join("copy");
        std::fs::rename(&rows, &copy).unwrap();
        let copies = Given { files: [(rows, copy)].into(), variables: from.variables.clone() };
        let again = given(&copies, || read(folder.path())).unwrap();
        assert_eq!(again.feeders[0].rows.len(), 2);
        assert!(read(folder.path()).is_err(), "it is over");
    }

    #[test]
    fn what_is_here_and_was_not_given_is_not_read() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("rows.csv"), "name\nann\n").unwrap();
        assert!(read(folder.path()).is_ok());
        let refused = given(&Given::default(), || read(folder.path())).unwrap_err();
        assert!(refused.contains("PATH is not set") && refused.contains("rows.csv"), "{refused}");
        assert!(!Path::new(NOT_GIVEN).exists());
    }
}
