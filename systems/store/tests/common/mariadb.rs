//! A MariaDB of a test's own, on a free port and in a folder of its own, killed when dropped.

use std::fs::{self, File};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use super::servers::{eventually, folder_of, free_port, made_once, user_of};

/// A MariaDB that runs.
pub struct MariadbServer {
    port: u16,
    settings: Vec<String>,
    /// Who it runs as, where we are root.
    user: Option<(u32, u32)>,
    folder: tempfile::TempDir,
    child: Child,
    databases: AtomicU32,
}

impl MariadbServer {
    /// With these settings, as `--NAME=VALUE`.
    pub fn start(settings: &[&str]) -> Self {
        let user = user_of("mysql", "mariadb-server");
        let folder = folder_of(user);
        let settings: Vec<String> = settings.iter().map(|setting| setting.to_string()).collect();
        let mut install = logged("mariadb-install-db", user, folder.path());
        install.args(["--no-defaults", "--auth-root-authentication-method=normal", "--skip-test-db"]);
        install.arg(format!("--datadir={}", folder.path().join("db").display()));
        let server = PathBuf::from(program("mariadbd", user, folder.path()).get_program());
        made_once(&server, folder.path(), "db", || {
            let made = install.status();
            let made = made.expect("mariadb-install-db runs; Debian: apt-get install mariadb-server");
            assert!(
                made.success(),
                "mariadb-install-db failed; its words are in {}",
                folder.path().display()
            );
        });
        // a statement is a line
        let init = "CREATE USER IF NOT EXISTS tester@'127.0.0.1';\nGRANT ALL ON *.* TO tester@'127.0.0.1';\n";
        fs::write(folder.path().join("init.sql"), init).expect("a file");
        let port = free_port();
        let child = spawn(port, &settings, user, folder.path());
        let server = MariadbServer { port, settings, user, folder, child, databases: AtomicU32::new(0) };
        server.wait();
        server
    }

    fn wait(&self) {
        eventually("the start of MariaDB", || self.run("mysql", "SELECT 1"));
    }

    fn run(&self, database: &str, text: &str) -> bool {
        let port = format!("--port={}", self.port);
        let mut command = logged("mariadb", self.user, self.folder.path());
        command.args(["--no-defaults", "--protocol=tcp", "--host=127.0.0.1", "--user=tester", &port]);
        command.args(["--execute", text, database]).status().expect("mariadb runs").success()
    }

    /// Says something to it, in a database by its address.
    pub fn sql(&self, url: &str, text: &str) {
        let database = url.rsplit_once('/').expect("a database").1;
        assert!(self.run(database, text), "{text}\n{}", self.words());
    }

    /// What it and its tools have said.
    fn words(&self) -> String {
        fs::read_to_string(self.folder.path().join("log")).unwrap_or_default()
    }

    /// What it answers to a question, without the names of columns.
    pub fn answer(&self, url: &str, text: &str) -> String {
        let database = url.rsplit_once('/').expect("a database").1;
        let port = format!("--port={}", self.port);
        let mut command = program("mariadb", self.user, self.folder.path());
        command.args([
            "--no-defaults",
            "--protocol=tcp",
            "--host=127.0.0.1",
            "--user=tester",
            &port,
            "-N",
            "-B",
        ]);
        let output = command.args(["--execute", text, database]).output().expect("mariadb runs");
        assert!(output.status.success(), "{text}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).trim_end().to_owned()
    }

    /// The address of a new, empty database.
    pub fn database(&self) -> String {
        let name = format!("own{}", self.databases.fetch_add(1, Ordering::Relaxed));
        assert!(self.run("mysql", &format!("CREATE DATABASE {name}")), "{}", self.words());
        format!("mysql://tester@127.0.0.1:{}/{name}", self.port)
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

    /// Starts it once more on what it left.
    pub fn start_again(&mut self) {
        self.child = spawn(self.port, &self.settings, self.user, self.folder.path());
        self.wait();
    }
}

impl Drop for MariadbServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn spawn(port: u16, settings: &[String], user: Option<(u32, u32)>, folder: &Path) -> Child {
    let file = |name: &str| folder.join(name).display().to_string();
    let mut command = logged("mariadbd", user, folder);
    command.args(["--no-defaults", "--bind-address=127.0.0.1", "--innodb-buffer-pool-size=32M"]);
    command.args(["--innodb-log-file-size=16M", "--max-connections=200", "--skip-name-resolve"]);
    command.arg(format!("--port={port}")).arg(format!("--datadir={}", file("db")));
    command.arg(format!("--socket={}", file("socket"))).arg(format!("--pid-file={}", file("pid")));
    command.arg(format!("--init-file={}", file("init.sql"))).args(settings);
    command.spawn().expect("mariadbd starts; Debian: apt-get install mariadb-server")
}

/// One of MariaDB's programs, whose words go to a file.
fn logged(name: &str, user: Option<(u32, u32)>, folder: &Path) -> Command {
    let log = File::options().create(true).append(true).open(folder.join("log")).expect("a log");
    let mut command = program(name, user, folder);
    command.stdout(log.try_clone().expect("a log")).stderr(log);
    command
}

/// One of MariaDB's programs; Debian has the server where only root's path leads.
fn program(name: &str, user: Option<(u32, u32)>, folder: &Path) -> Command {
    let installed = Path::new("/usr/sbin").join(name);
    let mut command = Command::new(if installed.exists() { installed } else { PathBuf::from(name) });
    // one that starts removes what lies in a folder of others
    command.current_dir(folder).env("TMPDIR", folder).stdin(Stdio::null());
    if let Some((uid, gid)) = user {
        command.uid(uid).gid(gid);
    }
    command
}
