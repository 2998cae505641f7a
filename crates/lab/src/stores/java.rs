//! Finds the Java that a store runs on.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::error::LabError;

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

impl Java {
    /// Its compiler, which stands beside it, in a JDK.
    pub fn compiler(&self) -> PathBuf {
        self.program.with_file_name("javac")
    }
}

/// Which Java will do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Needs {
    /// This version only.
    Exactly(u32),
    /// This version or a later one, of a JDK: with its compiler.
    CompilerFrom(u32),
}

impl Needs {
    /// Why this one will not do.
    fn lacks(self, java: &Java) -> Option<&'static str> {
        let major = major(&java.version);
        match self {
            Needs::Exactly(wanted) => (major != Some(wanted)).then_some(""),
            Needs::CompilerFrom(least) if major.is_none_or(|major| major < least) => Some(""),
            Needs::CompilerFrom(_) => {
                (!java.compiler().is_file()).then_some(" without a compiler, a JRE only")
            }
        }
    }

    fn title(self) -> String {
        match self {
            Needs::Exactly(version) => format!("Java {version}"),
            Needs::CompilerFrom(version) => format!("a JDK of Java {version} or later"),
        }
    }

    /// How to have it.
    fn remedy(self) -> String {
        match self {
            Needs::Exactly(version) => {
                format!("install it (Debian: apt-get install openjdk-{version}-jre-headless)")
            }
            Needs::CompilerFrom(version) => format!(
                "install one ({}: apt-get install default-jdk-headless; elsewhere a JDK of any maker, below {JVMS})",
                if version <= 17 { "Debian" } else { "Debian 13" }
            ),
        }
    }
}

/// Looks at `JAVA_HOME`, the `PATH` and where distributions put theirs.
///
/// # Errors
/// Where none of them will do, with those that were found and how to install one.
pub fn find(what: &str, needs: Needs) -> Result<Java, LabError> {
    let mut others = Vec::new();
    for program in candidates() {
        let Some(version) = version(&program) else { continue };
        let java = Java { program, version };
        match needs.lacks(&java) {
            None => return Ok(java),
            Some(lack) => others.push(format!("{} is {}{lack}", java.program.display(), java.version)),
        }
    }
    let found = if others.is_empty() { String::new() } else { format!(" ({})", others.join(", ")) };
    let (wanted, remedy) = (needs.title(), needs.remedy());
    Err(LabError::Usage(format!(
        "{what} needs {wanted}, which is not here{found}; {remedy} or point JAVA_HOME to it"
    )))
}

/// Whole paths of programs that may be there, each once.
fn candidates() -> Vec<PathBuf> {
    let variable = |name| std::env::var_os(name).unwrap_or_default();
    let mut folders = vec![PathBuf::from(variable("JAVA_HOME")).join("bin")];
    folders.extend(std::env::split_paths(&variable("PATH")));
    let installed = std::fs::read_dir(JVMS).into_iter().flatten().flatten();
    let mut installed: Vec<PathBuf> = installed.map(|entry| entry.path().join("bin")).collect();
    installed.sort();
    folders.extend(installed);
    let mut programs: Vec<PathBuf> = Vec::new();
    for folder in folders.iter().filter(|folder| folder.is_absolute()) {
        // what a distribution has on the path are links
        let Ok(program) = folder.join("java").canonicalize() else { continue };
        if !programs.contains(&program) {
            programs.push(program);
        }
    }
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
    fn a_runtime_that_cannot_compile_is_told_from_one_that_is_too_old() {
        let bin = tempfile::tempdir().unwrap();
        let java = |version: &str| Java { program: bin.path().join("java"), version: version.into() };
        let needs = Needs::CompilerFrom(21);
        assert_eq!(needs.lacks(&java("17.0.15")), Some(""));
        assert_eq!(needs.lacks(&java("25")), Some(" without a compiler, a JRE only"));
        std::fs::write(bin.path().join("javac"), "").unwrap();
        assert_eq!((needs.lacks(&java("25")), needs.lacks(&java("21.0.1"))), (None, None));
        assert!(Needs::Exactly(17).lacks(&java("17.0.15")).is_none());
        assert!(Needs::Exactly(17).lacks(&java("25")).is_some());
        let error = find("It", Needs::CompilerFrom(1_000)).unwrap_err().to_string();
        assert!(error.starts_with("It needs a JDK of Java 1000 or later, which is not here"), "{error}");
    }

    #[test]
    fn a_program_that_is_not_there_has_no_version() {
        assert_eq!(version(Path::new("/no/such/java")), None);
    }
}
