//! Finds the Java that a store runs on.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::error::LabError;

/// The version of Java that the stores run on: the one that all of them support.
const MAJOR: u32 = 17;
/// Where Linux distributions put theirs.
const JVMS: &str = "/usr/lib/jvm";

/// A Java runtime.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Java {
    /// The program.
    pub program: PathBuf,
    /// As it names itself: `17.0.15`.
    pub version: String,
}

/// Looks at `JAVA_HOME`, the `PATH` and where distributions put theirs.
///
/// # Errors
/// Where none of them is the version wanted, with those that were found and how to install it.
pub fn find(what: &str) -> Result<Java, LabError> {
    let mut others = Vec::new();
    for program in candidates() {
        match version(&program) {
            Some(version) if major(&version) == Some(MAJOR) => return Ok(Java { program, version }),
            Some(version) => others.push(format!("{} is {version}", program.display())),
            None => {}
        }
    }
    let found = if others.is_empty() { String::new() } else { format!(" ({})", others.join(", ")) };
    Err(LabError::Usage(format!(
        "{what} needs Java {MAJOR}, which is not here{found}; install it (Debian: apt-get install \
         openjdk-{MAJOR}-jre-headless) or point JAVA_HOME to it"
    )))
}

fn candidates() -> Vec<PathBuf> {
    let mut homes: Vec<PathBuf> = std::env::var_os("JAVA_HOME").map(PathBuf::from).into_iter().collect();
    let installed =
        std::fs::read_dir(JVMS).into_iter().flatten().filter_map(|entry| Some(entry.ok()?.path()));
    let mut installed: Vec<PathBuf> =
        installed.filter(|path| path.to_string_lossy().contains(&MAJOR.to_string())).collect();
    installed.sort();
    homes.extend(installed);
    let mut programs: Vec<PathBuf> = homes.iter().map(|home| home.join("bin/java")).collect();
    programs.insert(usize::from(std::env::var_os("JAVA_HOME").is_some()), "java".into());
    programs
}

/// What the program says it is.
fn version(program: &Path) -> Option<String> {
    let output = Command::new(program).arg("-version").stdin(Stdio::null()).output().ok()?;
    named(&String::from_utf8_lossy(&output.stderr))
}

/// `17.0.15` of `openjdk version "17.0.15" 2025-04-15`.
fn named(text: &str) -> Option<String> {
    text.lines()
        .find_map(|line| line.split_once("version \"")?.1.split_once('"'))
        .map(|(name, _)| name.into())
}

fn major(version: &str) -> Option<u32> {
    let mut parts = version.split(['.', '-', '+', '_']).map(|part| part.parse().ok());
    // up to 8 they were called 1.8
    match parts.next()?? {
        1 => parts.next()?,
        major => Some(major),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_as_java_names_them() {
        let text =
            "Picked up _JAVA_OPTIONS: -Xmx1g\nopenjdk version \"17.0.15\" 2025-04-15\nOpenJDK Runtime\n";
        assert_eq!(named(text).as_deref(), Some("17.0.15"));
        assert_eq!(named("no such thing"), None);
        for (name, wanted) in [("17.0.15", 17), ("1.8.0_402", 8), ("25", 25), ("26-ea", 26)] {
            assert_eq!(major(name), Some(wanted), "{name}");
        }
        assert_eq!(major("x"), None);
    }

    #[test]
    fn a_program_that_is_not_there_has_no_version() {
        assert_eq!(version(Path::new("/no/such/java")), None);
    }
}
