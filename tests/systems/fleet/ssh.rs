//! A fleet that a run places itself, by a real `sshd` on loopback.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use super::{Asked, command, parts, result, scenario, wait_until};
use crate::common::{Killed, free_port, tidemark};

/// An `sshd` of this test with the machines `left` and `right`, killed when dropped.
struct Sshd {
    _child: Killed,
    folder: tempfile::TempDir,
}

impl Sshd {
    fn start() -> Sshd {
        let folder = tempfile::tempdir().expect("a temporary directory");
        let at = |name: &str| folder.path().join(name).display().to_string();
        for key in ["host", "user"] {
            let made =
                Command::new("ssh-keygen").args(["-q", "-t", "ed25519", "-N", "", "-f", &at(key)]).status();
            assert!(made.expect("ssh-keygen; Debian: apt-get install openssh-client").success());
        }
        std::fs::create_dir(at("there")).expect("a folder");
        std::fs::create_dir(at("here")).expect("a folder");
        // as root it wants a folder that its package makes only when it starts it
        let _ = std::fs::create_dir_all("/run/sshd");
        let port = free_port();
        let config = format!(
            "Port {port}\nListenAddress 127.0.0.1\nHostKey {}\nAuthorizedKeysFile {}\nStrictModes no\nUsePAM no\n\
             PidFile none\nSetEnv TMPDIR={}\n",
            at("host"),
            at("user.pub"),
            at("there")
        );
        std::fs::write(at("sshd_config"), config).expect("written");
        let host_key = std::fs::read_to_string(at("host.pub")).expect("a key");
        std::fs::write(at("known"), format!("[127.0.0.1]:{port} {host_key}")).expect("written");
        let config = format!(
            "Host left right\n HostName 127.0.0.1\n Port {port}\n IdentityFile {}\n IdentitiesOnly yes\n \
             UserKnownHostsFile {}\n StrictHostKeyChecking yes\nHost nowhere\n HostName 127.0.0.1\n Port 1\n",
            at("user"),
            at("known")
        );
        std::fs::write(at("ssh_config"), config).expect("written");
        let child = Command::new("/usr/sbin/sshd")
            .args(["-D", "-f", &at("sshd_config"), "-E", &at("log")])
            .stdin(Stdio::null())
            .spawn()
            .expect("sshd starts; Debian: apt-get install openssh-server");
        let log = at("log");
        wait_until("sshd listens", || {
            std::fs::read_to_string(&log).is_ok_and(|log| log.contains("Server listening"))
        });
        Sshd { _child: Killed(child), folder }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// A command whose fleet is on these machines.
    fn on(&self, mut command: Command, machines: &str) -> Command {
        command.args(["--fleet", &format!("ssh://{machines}"), "--ssh-config"]).arg(self.path("ssh_config"));
        command.env("TMPDIR", self.path("here"));
        command
    }

    /// How often somebody came.
    fn sessions(&self) -> usize {
        std::fs::read_to_string(self.path("log")).expect("a log").matches("Accepted publickey").count()
    }

    /// What is left of a fleet on either side: files, and processes by their command lines.
    fn left(&self) -> Vec<String> {
        let names = |folder: &str| {
            let entries = std::fs::read_dir(self.path(folder)).expect("a folder").flatten();
            entries.map(|entry| entry.path().display().to_string()).collect::<Vec<_>>()
        };
        let mut left = [names("there"), names("here")].concat();
        let folders = [self.path("there"), self.path("here"), self.path("ssh_config")];
        for process in std::fs::read_dir("/proc").expect("processes").flatten() {
            let line = std::fs::read(process.path().join("cmdline")).unwrap_or_default();
            let line = String::from_utf8_lossy(&line).into_owned();
            let is_of_it = folders.iter().any(|folder| line.contains(&*folder.to_string_lossy()));
            if is_of_it && !line.contains("--fleet") {
                left.push(line);
            }
        }
        left
    }
}

fn hit(asked: &Asked, seconds: u32) -> Command {
    let mut command = tidemark();
    let url = format!("http://{}/", asked.place);
    command.args(["hit", &url, "-r", "50/s", "-d", &format!("{seconds}s"), "--warm-up", "0s", "--json"]);
    command
}

fn told(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn machines_are_driven_from_and_nothing_stays_there() {
    let (sshd, asked) = (Sshd::start(), Asked::start());
    let folder = tempfile::tempdir().expect("a folder");
    scenario(folder.path(), &asked, 2);
    let output = sshd.on(command(folder.path(), &["-t", "1"]), "left,right").output().expect("it runs");
    let of = result(&output);
    assert!(output.status.success(), "{of}\n{}", told(&output));
    let paths = asked.take_targets();
    let (numbers, rows) = parts(&paths);
    assert_eq!((paths.len(), numbers.len(), rows.len()), (250, 250, 250), "{of}");
    let text = std::fs::read_to_string(folder.path().join("run/run.json")).expect("a run");
    assert!(text.contains("left") && text.contains("right"), "{text}");
    assert_eq!((sshd.sessions(), sshd.left()), (2, Vec::new()));
}

#[test]
fn a_search_places_its_fleet_once() {
    let (sshd, asked) = (Sshd::start(), Asked::start());
    let folder = tempfile::tempdir().expect("a folder");
    scenario(folder.path(), &asked, 1);
    let mut limit = tidemark();
    limit.current_dir(folder.path()).env("FLEET_TOKEN", "sesame-opens");
    limit.args(["limit", "s.yaml", "--rate", "50/s", "--most", "50/s", "--budget", "8s", "--json"]);
    let output = sshd.on(limit, "left").output().expect("it runs");
    let of = result(&output);
    assert!(asked.count() >= 50, "{of}\n{}", told(&output));
    assert_eq!((sshd.sessions(), sshd.left()), (1, Vec::new()));
}

#[test]
fn a_fleet_is_taken_down_with_its_run() {
    let (sshd, asked) = (Sshd::start(), Asked::start());
    for (signals, status) in [(&["INT"][..], 130), (&["INT", "INT"], 130), (&["KILL"], -1)] {
        asked.forget();
        let running = sshd.on(hit(&asked, 600), "left").stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
        let running = running.expect("it runs");
        wait_until("the load has begun", || asked.count() > 50);
        for signal in signals {
            let sent = Command::new("kill").args(["-s", signal, &running.id().to_string()]).status();
            assert!(sent.expect("kill").success());
        }
        let output = running.wait_with_output().expect("it ends");
        assert_eq!(output.status.code().unwrap_or(-1), status, "{signals:?}: {}", told(&output));
        // one that is ended at once leaves the rest to others, and the run's own folder
        let is_left = |left: &String| !left.contains("/tidemark-hit-");
        match signals {
            ["INT"] => assert_eq!(sshd.left(), Vec::<String>::new()),
            _ => wait_until("nothing is left", || !sshd.left().iter().any(is_left)),
        }
    }
}

#[test]
fn what_is_missing_is_said() {
    let (sshd, asked) = (Sshd::start(), Asked::start());
    let refused = |machines: &str, path: Option<&Path>| {
        let mut command = sshd.on(hit(&asked, 1), machines);
        if let Some(path) = path {
            command.env("PATH", path);
        }
        let output = command.output().expect("it runs");
        assert!(!output.status.success());
        let told = told(&output);
        assert_eq!(sshd.left(), Vec::<String>::new(), "{told}");
        told
    };
    let told = refused("left,nowhere", None);
    assert!(told.contains("nowhere: ssh: exit status 255") && told.contains("Connection refused"), "{told}");
    let told = refused("left,-oProxyCommand=x", None);
    assert!(told.contains("\"-oProxyCommand=x\" is not HOST, USER@HOST or HOST:PORT"), "{told}");
    let folder = tempfile::tempdir().expect("a folder");
    let told = refused("left", Some(folder.path()));
    assert!(told.contains("nats-server is not on the PATH"), "{told}");
    let path = std::env::var_os("PATH").expect("a path");
    let nats =
        std::env::split_paths(&path).map(|folder| folder.join("nats-server")).find(|path| path.is_file());
    let place = |name: &str| folder.path().join(name);
    std::os::unix::fs::symlink(nats.expect("nats-server"), place("nats-server")).expect("a link");
    let told = refused("left", Some(folder.path()));
    assert!(told.contains("ssh is not on the PATH"), "{told}");
    // in place of a machine of another kind
    std::fs::write(place("ssh"), "#!/bin/sh\necho machine Linux riscv64\nexit 1\n").expect("written");
    std::fs::set_permissions(place("ssh"), std::fs::Permissions::from_mode(0o755)).expect("executable");
    let told = refused("left", Some(folder.path()));
    assert!(told.contains("left: it is Linux riscv64, and this program is for Linux"), "{told}");
    assert_eq!(asked.count(), 0);
}
