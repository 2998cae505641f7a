//! Programs that are installed on this machine: found, asked for their version, and used as clients.

use std::ffi::OsStr;
use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::error::LabError;

/// Longest time that a client may take for its answer.
const ANSWER_MAX: Duration = Duration::from_secs(10);
/// How often it is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(2);
/// Most of an answer that is read, bytes.
const ANSWER_BYTES_MAX: u64 = 64 * 1024;

/// A product's programs, as a package installs them.
#[derive(Debug)]
pub struct Package {
    /// The product, for people.
    pub title: &'static str,
    /// The server, first, and what else is needed. All lie in one folder.
    pub programs: &'static [&'static str],
    /// How to get it: `install it (Debian: apt-get install …)`.
    pub how: &'static str,
}

impl Package {
    /// The folder of its programs: the first of the `PATH` that has them all, or else of `places`.
    ///
    /// # Errors
    /// Where none has, with how to install it.
    pub fn folder(&self, places: impl IntoIterator<Item = PathBuf>) -> Result<PathBuf, LabError> {
        self.folder_or(places, "say `url:` of one that runs already")
    }

    /// The same, with what else would do.
    ///
    /// # Errors
    /// As [`folder`](Package::folder).
    pub fn folder_or(
        &self,
        places: impl IntoIterator<Item = PathBuf>,
        otherwise: &str,
    ) -> Result<PathBuf, LabError> {
        let path = std::env::var_os("PATH").unwrap_or_default();
        self.folder_among(std::env::split_paths(&path).chain(places)).ok_or_else(|| {
            LabError::Usage(format!(
                "{} is not here: {} is neither on the PATH nor where Debian puts it; {}, or {otherwise}",
                self.title,
                self.programs.join(" with "),
                self.how
            ))
        })
    }

    fn folder_among(&self, places: impl Iterator<Item = PathBuf>) -> Option<PathBuf> {
        let is_whole = |folder: &PathBuf| self.programs.iter().all(|name| folder.join(name).is_file());
        places.into_iter().filter(|folder| folder.is_absolute()).find(is_whole)
    }

    /// Its name with the version that its server gives itself.
    pub fn title(&self, folder: &Path) -> String {
        let program = folder.join(self.programs[0]);
        let said = answer(&program, ["--version"], &[]).unwrap_or_default();
        match version(&said) {
            Some(version) => format!("{} {version}", self.title),
            None => self.title.to_owned(),
        }
    }
}

/// `7.0.15` of `Redis server v=7.0.15 sha=00000000:0`.
fn version(text: &str) -> Option<&str> {
    let is_part = |c: char| c.is_ascii_digit() || c == '.';
    text.split(|c: char| !is_part(c))
        .find(|word| word.contains('.') && word.starts_with(|c: char| c.is_ascii_digit()))
}

/// What a client prints, without the space around it.
///
/// # Errors
/// What it prints as its error, where it fails; one of [`ANSWER_MAX`] where it takes too long.
pub fn answer<A: AsRef<OsStr>>(
    program: &Path,
    arguments: impl IntoIterator<Item = A>,
    environment: &[(&str, &str)],
) -> io::Result<String> {
    let mut client = Command::new(program)
        .args(arguments)
        .env_clear()
        .envs(std::env::vars_os().filter(|(name, _)| !is_of_a_client(name)))
        .envs(environment.iter().copied())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    let begin = Instant::now();
    // it prints a line or two, which the pipes hold
    let status = loop {
        if let Some(status) = client.try_wait()? {
            break status;
        }
        if begin.elapsed() > ANSWER_MAX {
            let _ = (client.kill(), client.wait());
            return Err(io::Error::new(io::ErrorKind::TimedOut, "no answer from it in time"));
        }
        std::thread::sleep(LOOK_EVERY);
    };
    let text = |stream: Option<&mut dyn Read>| {
        let mut bytes = Vec::new();
        if let Some(stream) = stream {
            // what cannot be read is missing in the text, which says so by itself
            let _ = stream.take(ANSWER_BYTES_MAX).read_to_end(&mut bytes);
        }
        String::from_utf8_lossy(&bytes).trim().to_owned()
    };
    match status.success() {
        true => Ok(text(client.stdout.as_mut().map(|out| out as &mut dyn Read))),
        false => Err(io::Error::other(text(client.stderr.as_mut().map(|out| out as &mut dyn Read)))),
    }
}

/// Whether an environment variable says where servers are, or who their clients are: those of the user's are not meant.
pub fn is_of_a_client(name: &OsStr) -> bool {
    let name = name.to_string_lossy();
    ["PG", "MYSQL", "MARIADB", "REDISCLI"].iter().any(|prefix| name.starts_with(prefix))
}

/// Folders in which Debian has the servers of packages, some of them not on a user's `PATH`.
pub fn usual_folders() -> Vec<PathBuf> {
    ["/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin"].map(PathBuf::from).into()
}

/// A user of this machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct User {
    /// Its number.
    pub uid: u32,
    /// The number of its group.
    pub gid: u32,
}

/// A user by name; none where there is no such user.
pub fn user(name: &str) -> Option<User> {
    user_in(&fs::read_to_string("/etc/passwd").ok()?, name)
}

fn user_in(passwd: &str, name: &str) -> Option<User> {
    let line = passwd.lines().find(|line| line.split(':').next() == Some(name))?;
    let mut numbers = line.split(':').skip(2).map(|number| number.parse().ok());
    Some(User { uid: numbers.next()??, gid: numbers.next()?? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_found_in_what_servers_say() {
        for (said, wanted) in [
            ("Redis server v=7.0.15 sha=00000000:0 malloc=jemalloc-5.2.1 bits=64", "7.0.15"),
            ("postgres (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)", "15.18"),
            ("/usr/sbin/mariadbd  Ver 10.11.14-MariaDB-0+deb12u2 for debian-linux-gnu", "10.11.14"),
        ] {
            assert_eq!(version(said), Some(wanted));
        }
        assert_eq!(version("no such thing."), None);
    }

    #[test]
    fn a_folder_has_all_programs_or_is_not_it() {
        let folder = tempfile::tempdir().unwrap();
        let package = Package { title: "X", programs: &["xd", "x"], how: "install x-server" };
        let places = || [folder.path().to_owned()].into_iter();
        fs::write(folder.path().join("xd"), "").unwrap();
        assert_eq!(package.folder_among(places()), None);
        fs::write(folder.path().join("x"), "").unwrap();
        assert_eq!(package.folder_among(places()), Some(folder.path().to_owned()));
        let missing = Package { title: "X", programs: &["no-such-program"], how: "install x-server" };
        let error = missing.folder([]).unwrap_err();
        assert!(error.to_string().contains("install x-server, or say"), "{error}");
        assert_eq!(error.exit_status(), 2);
    }

    #[test]
    fn users_are_found_by_the_whole_name() {
        let passwd = "root:x:0:0::/root:/bin/sh\nmysqld:x:5:6:::\nmysql:x:108:115:,,,:/x:/y\nodd:x:a:b\n";
        assert_eq!(user_in(passwd, "mysql"), Some(User { uid: 108, gid: 115 }));
        assert_eq!((user_in(passwd, "odd"), user_in(passwd, "sql")), (None, None));
    }

    #[test]
    fn a_client_answers_or_says_why_not() {
        let sh = Path::new("/bin/sh");
        assert_eq!(answer(sh, ["-c", "echo $A"], &[("A", "yes")]).unwrap(), "yes");
        assert_eq!(answer(sh, ["-c", "echo no >&2; exit 1"], &[]).unwrap_err().to_string(), "no");
    }
}
