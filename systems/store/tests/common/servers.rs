//! A PostgreSQL and a Redis of a test's own, on free ports and in folders of their own, killed when dropped.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::ops::DerefMut;
use std::os::unix::fs::{MetadataExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// Longest wait for a server, on a machine that has much else to do.
pub const PATIENCE: Duration = Duration::from_secs(120);

pub fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr()).expect("a free port").port()
}

pub fn eventually(what: &str, mut ask: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !ask() {
        assert!(begun.elapsed() < PATIENCE, "{what} did not happen");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Asks until it works.
pub fn until_it_works<T, E: std::fmt::Display>(mut ask: impl FnMut() -> Result<T, E>) -> T {
    let begun = Instant::now();
    loop {
        match ask() {
            Ok(answer) => return answer,
            Err(error) => assert!(begun.elapsed() < PATIENCE, "{error}"),
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// A folder that the tests' user made for another one.
pub fn folder_of(owner: Option<(u32, u32)>) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a temporary directory");
    if let Some((uid, gid)) = owner {
        chown(folder.path(), Some(uid), Some(gid)).expect("the folder can be given away");
    }
    folder
}

/// Has `folder/name`, which a server needs before its first start and which takes a second of a core to make: the first
/// test with this program makes it, others copy what that one left.
pub fn made_once(program: &Path, folder: &Path, name: &str, make: impl FnOnce()) {
    let built = fs::metadata(program).map_or(0, |program| program.mtime());
    let kept = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let (made, template) = (folder.join(name), kept.join(format!("{name}-{built}")));
    let copy = |from: &Path, to: &Path| {
        let status = Command::new("cp").arg("--archive").args([from, to]).status();
        assert!(status.expect("cp runs").success(), "{}", from.display());
    };
    if template.is_dir() {
        return copy(&template, &made);
    }
    make();
    let own = tempfile::tempdir_in(kept).expect("a temporary directory");
    copy(&made, &own.path().join(name));
    // another test may have been faster
    let _ = fs::rename(own.path().join(name), template);
}

/// A server that runs, whichever it is.
pub struct Process {
    pub port: u16,
    settings: Vec<String>,
    /// Who it runs as, where we are root.
    pub user: Option<(u32, u32)>,
    pub folder: tempfile::TempDir,
    pub child: Child,
    databases: AtomicU32,
    spawn: Spawn,
}

/// Starts a server on a port, with settings, as some user, in a folder.
type Spawn = fn(u16, &[String], Option<(u32, u32)>, &Path) -> Child;

impl Process {
    pub fn start(
        settings: &[&str],
        user: Option<(u32, u32)>,
        folder: tempfile::TempDir,
        spawn: Spawn,
    ) -> Self {
        let port = free_port();
        let settings: Vec<String> = settings.iter().map(|setting| setting.to_string()).collect();
        let child = spawn(port, &settings, user, folder.path());
        Process { port, settings, user, folder, child, databases: AtomicU32::new(0), spawn }
    }

    /// Starts it once more on what it left.
    pub fn spawn_again(&mut self) {
        self.child = (self.spawn)(self.port, &self.settings, self.user, self.folder.path());
    }

    /// The number of a new database.
    pub fn next_database(&self) -> u32 {
        self.databases.fetch_add(1, Ordering::Relaxed)
    }

    /// The port.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Its process.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Ends it at once, as a power cut of its process.
    pub fn kill(&mut self) {
        self.child.kill().expect("it can be killed");
        self.child.wait().expect("it ends");
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A server that can be killed and started again.
pub trait Server: DerefMut<Target = Process> {
    /// Until it answers.
    fn wait(&mut self);

    /// Starts it once more on what it left.
    fn start_again(&mut self) {
        self.spawn_again();
        self.wait();
    }
}

macro_rules! server {
    ($server:ident) => {
        impl std::ops::Deref for $server {
            type Target = Process;

            fn deref(&self) -> &Process {
                &self.0
            }
        }

        impl std::ops::DerefMut for $server {
            fn deref_mut(&mut self) -> &mut Process {
                &mut self.0
            }
        }
    };
}
#[allow(unused_imports, reason = "of MariaDB, which not every build has")]
pub(super) use server;

/// A PostgreSQL that runs.
pub struct PostgresServer(Process);

server!(PostgresServer);

impl PostgresServer {
    /// With these settings, as `NAME=VALUE`.
    pub fn start(settings: &[&str]) -> Self {
        let user = user_of("postgres", "postgresql");
        let folder = folder_of(user);
        let mut initdb = logged("initdb", user, folder.path());
        initdb.args(["--auth=trust", "--username=tester", "--encoding=UTF8", "--no-locale", "--no-sync"]);
        made_once(&PathBuf::from(initdb.get_program()), folder.path(), "data", || {
            let made = initdb.arg("data").status().expect("initdb runs; Debian: apt-get install postgresql");
            assert!(made.success(), "initdb failed; its words are in {}", folder.path().display());
        });
        let mut server = PostgresServer(Process::start(settings, user, folder, spawn));
        server.wait();
        server
    }

    /// Runs one of its programs against it.
    fn run(&self, name: &str, arguments: &[&str]) -> bool {
        let port = self.port.to_string();
        let mut command = logged(name, self.user, self.folder.path());
        let status =
            command.args(["--host=127.0.0.1", "--username=tester", "--port", &port]).args(arguments).status();
        status.expect("PostgreSQL's programs run").success()
    }

    /// Says something to it, in a database by its address.
    pub fn sql(&self, url: &str, text: &str) {
        let status =
            logged("psql", self.user, self.folder.path()).args(["--quiet", "--command", text, url]).status();
        assert!(status.expect("psql runs").success(), "{text}");
    }

    /// The address of a new, empty database.
    pub fn database(&self) -> String {
        create_database(self.port, &format!("own{}", self.next_database()))
    }
}

impl Server for PostgresServer {
    fn wait(&mut self) {
        eventually("the start of PostgreSQL", || {
            // after a kill its children may hold its memory for a moment, and it ends at once
            if self.child.try_wait().expect("a child").is_some() {
                self.spawn_again();
            }
            self.run("psql", &["--quiet", "--command=SELECT 1", "template1"])
        });
    }
}

/// Makes an empty database in the server with this port; its address.
pub fn create_database(port: u16, name: &str) -> String {
    let folder = std::env::temp_dir();
    let port_text = port.to_string();
    let mut command = program("createdb", None, &folder);
    command.stdout(Stdio::inherit()).stderr(Stdio::inherit());
    let status = command.args(["--host=127.0.0.1", "--username=tester", "--port", &port_text, name]).status();
    assert!(
        status.expect("createdb runs; Debian: apt-get install postgresql").success(),
        "createdb {name} failed"
    );
    format!("postgres://tester@127.0.0.1:{port}/{name}")
}

fn spawn(port: u16, settings: &[String], user: Option<(u32, u32)>, folder: &Path) -> Child {
    let port = format!("port={port}");
    let own = [
        &port,
        "listen_addresses=127.0.0.1",
        "unix_socket_directories=",
        "shared_buffers=16MB",
        "max_connections=200",
    ];
    let settings =
        own.into_iter().chain(settings.iter().map(String::as_str)).flat_map(|setting| ["-c", setting]);
    logged("postgres", user, folder).args(["-D", "data"]).args(settings).spawn().expect("postgres starts")
}

/// One of PostgreSQL's programs, whose words go to a file.
fn logged(name: &str, user: Option<(u32, u32)>, folder: &Path) -> Command {
    let log = File::options().create(true).append(true).open(folder.join("log")).expect("a log");
    let mut command = program(name, user, folder);
    command.stdout(log.try_clone().expect("a log")).stderr(log);
    command
}

/// One of PostgreSQL's programs, which Debian does not put on the path.
fn program(name: &str, user: Option<(u32, u32)>, folder: &Path) -> Command {
    let mut folders: Vec<PathBuf> = fs::read_dir("/usr/lib/postgresql")
        .map(|entries| entries.flatten().map(|entry| entry.path().join("bin")).collect())
        .unwrap_or_default();
    folders.sort();
    let found = folders.iter().rev().map(|folder| folder.join(name)).find(|path| path.exists());
    let mut command = Command::new(found.unwrap_or_else(|| name.into()));
    command.current_dir(folder).stdin(Stdio::null());
    if let Some((uid, gid)) = user {
        command.uid(uid).gid(gid);
    }
    command
}

/// User and group of a server's own user, where we are root.
pub fn user_of(name: &str, package: &str) -> Option<(u32, u32)> {
    let is_root = fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0);
    if !is_root {
        return None;
    }
    let users = fs::read_to_string("/etc/passwd").expect("the users of this machine");
    let line = users.lines().find(|line| line.split(':').next() == Some(name));
    let line = line.unwrap_or_else(|| panic!("a user {name} (Debian: apt-get install {package})"));
    let mut numbers = line.split(':').skip(2).map(|number| number.parse().expect("a number"));
    Some((numbers.next().expect("a user"), numbers.next().expect("a group")))
}

/// A Redis that runs.
pub struct RedisServer(Process);

server!(RedisServer);

impl RedisServer {
    /// With these settings beside those that keep it in its own folder.
    pub fn start(settings: &[&str]) -> Self {
        let mut server = RedisServer(Process::start(settings, None, folder_of(None), Self::spawn));
        server.wait();
        server
    }

    fn spawn(port: u16, settings: &[String], _: Option<(u32, u32)>, folder: &Path) -> Child {
        let log = File::options().create(true).append(true).open(folder.join("log")).expect("a log");
        Command::new("redis-server")
            .current_dir(folder)
            .args(["--port", &port.to_string(), "--bind", "127.0.0.1", "--save", "", "--databases", "1000"])
            .args(settings)
            .stdin(Stdio::null())
            .stdout(log)
            .spawn()
            .expect("redis-server starts; Debian: apt-get install redis-server")
    }

    fn answers(&self) -> std::io::Result<[u8; 7]> {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port))?;
        stream.set_read_timeout(Some(Duration::from_secs(5)))?;
        stream.write_all(b"PING\r\n")?;
        let mut answer = [0; 7];
        stream.read_exact(&mut answer)?;
        Ok(answer)
    }

    /// The address of an empty database.
    pub fn database(&self) -> String {
        format!("redis://127.0.0.1:{}/{}", self.port, self.next_database())
    }
}

impl Server for RedisServer {
    fn wait(&mut self) {
        eventually("the start of Redis", || self.answers().is_ok_and(|answer| answer == *b"+PONG\r\n"));
    }
}
