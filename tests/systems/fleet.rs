//! A fleet: agents of this machine drive together what one process drives. Needs `nats-server` on the path.

use std::collections::BTreeSet;
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use serde_json::Value;

use crate::common::{Killed, free_port, tidemark, wait_until};
use crate::server::Server as Asked;
use faults::send;

mod faults;
mod losses;
mod reach;
mod resumed;
mod ssh;

/// A NATS server of this test, killed when dropped.
struct Nats {
    child: Killed,
    port: u16,
    folder: tempfile::TempDir,
    more: Vec<String>,
}

impl Nats {
    fn start() -> Nats {
        Nats::start_with(&[])
    }

    fn start_with(more: &[&str]) -> Nats {
        let port = free_port();
        let folder = tempfile::tempdir().expect("a temporary directory");
        let more: Vec<String> = more.iter().map(|&word| word.to_owned()).collect();
        Nats { child: Nats::serve(port, folder.path(), &more), port, folder, more }
    }

    fn serve(port: u16, folder: &Path, more: &[String]) -> Killed {
        let mut server = Command::new("nats-server");
        server.args(["-a", "127.0.0.1", "-p", &port.to_string()]).args(more);
        // where a file says so, it stays so when the file is loaded again
        let says_so =
            |word: &String| std::fs::read_to_string(word).is_ok_and(|text| text.contains("jetstream"));
        if !more.iter().any(says_so) {
            server.args(["-js", "-sd"]).arg(folder);
        }
        let child = server
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("nats-server starts; Debian: apt-get install nats-server");
        wait_until("nats-server is ready", || TcpStream::connect(("127.0.0.1", port)).is_ok());
        Killed(child)
    }

    fn kill(&mut self) {
        self.child.kill().expect("it is there");
        self.child.wait().expect("it is gone");
    }

    fn restart(&mut self) {
        self.kill();
        self.child = Nats::serve(self.port, self.folder.path(), &self.more);
    }

    fn url(&self) -> String {
        format!("nats://127.0.0.1:{}", self.port)
    }

    /// What `tidemark fleet` tells of the agents.
    fn agents(&self) -> Vec<Value> {
        let output =
            tidemark().args(["fleet", "--json", "--nats", &self.url()]).output().expect("tidemark runs");
        serde_json::from_slice(&output.stdout).unwrap_or_default()
    }

    /// One with a thread, killed when dropped.
    fn agent(&self, name: &str, more: &[&str]) -> Killed {
        let child = tidemark()
            .args(["agent", "--nats", &self.url(), "--name", name, "-t", "1"])
            .args(more)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn();
        Killed(child.expect("tidemark agent starts"))
    }

    /// So many agents with a thread each, all idle.
    fn with_agents(&self, count: usize) -> Vec<Killed> {
        let agents = (1..=count).map(|number| self.agent(&format!("a{number}"), &[])).collect();
        self.wait_for_idle(count);
        agents
    }

    fn wait_for_idle(&self, count: usize) {
        wait_until("all agents are there and idle", || {
            self.agents().iter().filter(|agent| agent["run"].is_null()).count() == count
        });
    }
}

/// A ramp of a second up to 100 a second, and so many seconds of that; each request with a number and a row of its own.
fn scenario(folder: &Path, asked: &Asked, seconds: u32) {
    let rows: String = (0..1_000).map(|row| format!("u{row}\n")).collect();
    std::fs::write(folder.join("rows.csv"), format!("name\n{rows}")).expect("written");
    let text = format!(
        "name: fleet\nsystem: {{url: 'http://{}'}}\nsettings: {{token: '${{env(\"FLEET_TOKEN\")}}'}}\n\
         feeders: {{users: {{file: rows.csv}}}}\nsessions:\n  a:\n    steps:\n      \
         - take: users\n      - {{GET: '/${{count(n)}}/${{name}}', headers: {{X-Token: '${{token}}'}}}}\n\
         load: {{rate: 100/s, ramp: 1s, hold: {seconds}s}}\n\
         objectives: [errors < 1%]\n",
        asked.place
    );
    std::fs::write(folder.join("s.yaml"), text).expect("written");
}

fn command(folder: &Path, more: &[&str]) -> Command {
    let mut command = tidemark();
    command
        .current_dir(folder)
        .env("FLEET_TOKEN", "sesame-opens")
        .args(["run", "s.yaml", "--out", "run", "--json", "--seed", "7"])
        .args(more);
    command
}

/// Begins such a run over the agents at `url`; what it says is had at its end.
fn begin(folder: &Path, url: &str, more: &[&str]) -> Child {
    let mut running = command(folder, &["--fleet", url]);
    running.args(more).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it runs")
}

fn result(output: &Output) -> Value {
    let told = String::from_utf8_lossy(&output.stderr);
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {told}"))
}

/// What comes before and behind the second slash of each path.
fn parts(paths: &[String]) -> (BTreeSet<u64>, BTreeSet<&str>) {
    let part = |path: &str, at: usize| path.split('/').nth(at).map(str::to_owned).unwrap_or_default();
    let numbers = paths.iter().map(|path| part(path, 1).parse().expect("a number")).collect();
    (numbers, paths.iter().filter_map(|path| path.rsplit('/').next()).collect())
}

#[test]
fn agents_drive_together_what_one_process_drives() {
    let (nats, asked) = (Nats::start(), Asked::start());
    let folder = tempfile::tempdir().expect("a folder");
    scenario(folder.path(), &asked, 2);
    let alone = result(&command(folder.path(), &["-t", "2"]).output().expect("it runs"));
    let paths = asked.take_targets();
    assert_eq!(paths.len(), 250, "{alone}");
    let agents = nats.with_agents(3);
    for count in ["1", "2", "3"] {
        std::fs::remove_dir_all(folder.path().join("run")).expect("a run");
        let output =
            command(folder.path(), &["--fleet", &nats.url(), "--agents", count]).output().expect("it runs");
        let of = result(&output);
        assert!(output.status.success(), "{count}: {of}\n{}", String::from_utf8_lossy(&output.stderr));
        for figure in ["requests", "dropped", "failed"] {
            assert_eq!(of[figure], alone[figure], "{count} agents: {figure}: {of}");
        }
        let paths = asked.take_targets();
        let (numbers, rows) = parts(&paths);
        assert_eq!(paths.len(), 250, "{count} agents");
        assert_eq!(
            (numbers.len(), rows.len()),
            (250, 250),
            "{count} agents: numbers and rows are each one's own"
        );
        let text = std::fs::read_to_string(folder.path().join("run/run.json")).expect("a run");
        assert!(text.contains("a1") && !text.contains("sesame-opens"), "{text}");
        nats.wait_for_idle(3);
    }
    drop(agents);
}

#[test]
fn what_was_due_at_an_agent_that_is_killed_was_never_sent() {
    let (nats, asked) = (Nats::start(), Asked::start());
    let folder = tempfile::tempdir().expect("a folder");
    scenario(folder.path(), &asked, 8);
    let mut agents = nats.with_agents(2);
    let running = begin(folder.path(), &nats.url(), &[]);
    wait_until("the load has begun", || asked.count() > 200);
    drop(agents.remove(0));
    let output = running.wait_with_output().expect("it ends");
    let of = result(&output);
    assert_eq!(output.status.code(), Some(3), "{of}");
    let told = of.to_string();
    assert!(told.contains("incomplete: ") && told.contains("agent a1: "), "{told}");
    // all that was due is told, and what came is what the server saw
    let came = asked.count() as u64;
    let number = |name: &str| of[name].as_u64().unwrap_or_else(|| panic!("no {name} in {of}"));
    assert_eq!(number("requests") + number("dropped"), 800, "{of}");
    assert!((300..850).contains(&came) && number("dropped") > 100, "{came}: {of}");
    nats.wait_for_idle(1);
}

#[test]
fn a_restart_of_nats_loses_nothing() {
    let (mut nats, asked) = (Nats::start(), Asked::start());
    let folder = tempfile::tempdir().expect("a folder");
    scenario(folder.path(), &asked, 8);
    let agents = nats.with_agents(2);
    let running = begin(folder.path(), &nats.url(), &[]);
    wait_until("the load has begun", || asked.count() > 200);
    nats.restart();
    let output = running.wait_with_output().expect("it ends");
    let of = result(&output);
    assert!(output.status.success(), "{of}\n{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!((asked.count(), of["requests"].as_u64()), (850, Some(800)), "{of}");
    drop(agents);
}

#[test]
fn agents_stop_without_a_coordinator_and_take_the_next_run() {
    let (nats, asked) = (Nats::start(), Asked::start());
    let folder = tempfile::tempdir().expect("a folder");
    scenario(folder.path(), &asked, 600);
    let agents = nats.with_agents(2);
    let mut running = command(folder.path(), &["--fleet", &nats.url()])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("it runs");
    wait_until("the load has begun", || asked.count() > 100);
    assert!(nats.agents().iter().all(|agent| agent["run"].is_string()));
    running.kill().expect("it is there");
    running.wait().expect("it is gone");
    nats.wait_for_idle(2);
    let sent = asked.count();
    std::thread::sleep(Duration::from_millis(500));
    assert_eq!(asked.count(), sent, "nothing is sent any more");
    drop(agents);
}

#[test]
fn what_cannot_be_is_said_before_anything_is_sent() {
    let (nats, asked) = (Nats::start(), Asked::start());
    let folder = tempfile::tempdir().expect("a folder");
    scenario(folder.path(), &asked, 1);
    let refused = |more: &[&str]| {
        let _ = std::fs::remove_dir_all(folder.path().join("run"));
        let output = command(folder.path(), more).output().expect("it runs");
        assert!(!output.status.success());
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    let url = nats.url();
    let told = refused(&["--fleet", &url]);
    assert!(told.contains("no idle agent is there"), "{told}");
    let agents = nats.with_agents(1);
    let told = refused(&["--fleet", &url, "--agents", "2"]);
    assert!(told.contains("--agents 2, and 1 agent is there"), "{told}");
    let told = refused(&["--nats-creds", "x"]);
    assert!(told.contains("are of --fleet"), "{told}");
    let told = refused(&["--fleet", "nats://me:secret-word@127.0.0.1:1"]);
    assert!(
        told.contains("cannot connect to NATS at nats://***@127.0.0.1:1") && !told.contains("secret-word"),
        "{told}"
    );
    let second = tidemark().args(["agent", "--nats", &url, "--name", "a1"]).output().expect("it ends");
    let told = String::from_utf8_lossy(&second.stderr).into_owned();
    assert!(!second.status.success() && told.contains("an agent named a1 is there already"), "{told}");
    assert_eq!(asked.count(), 0);
    drop(agents);
}

#[test]
fn an_agent_that_was_killed_begins_anew_under_its_name() {
    let nats = Nats::start();
    let mut agents = nats.with_agents(1);
    drop(agents.remove(0));
    let mut again = nats.agent("a1", &[]);
    // the entry of the first one has expired by then
    std::thread::sleep(Duration::from_secs(7));
    nats.wait_for_idle(1);
    send("TERM", &again);
    // who keeps it up starts another
    assert_eq!(again.0.wait().expect("it ends").code(), Some(130));
    assert_eq!(nats.agents().len(), 0);
}

#[test]
fn a_url_and_a_search_are_driven_by_the_same_agents() {
    let (nats, asked) = (Nats::start(), Asked::start());
    let agents = nats.with_agents(2);
    let url = format!("http://{}/hit", asked.place);
    let output = tidemark()
        .args(["hit", &url, "-r", "50/s", "-d", "2s", "--json", "--fleet", &nats.url()])
        .output()
        .expect("it runs");
    let of = result(&output);
    assert!(output.status.success(), "{of}\n{}", String::from_utf8_lossy(&output.stderr));
    let warm_up = asked.take_targets().len() as u64 - of["requests"].as_u64().expect("requests");
    assert_eq!(of["requests"], 100, "{of}");
    assert!(warm_up < 100, "{warm_up}");
    // a search and a comparison are many runs by the same agents
    let folder = tempfile::tempdir().expect("a folder");
    scenario(folder.path(), &asked, 1);
    let driven = |words: &[&str]| {
        asked.forget();
        let mut command = tidemark();
        command.current_dir(folder.path()).env("FLEET_TOKEN", "sesame-opens");
        let output = command.args(words).args(["--json", "--fleet", &nats.url()]).output().expect("it runs");
        (result(&output), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let (of, told) = driven(&["run", "s.yaml", "--out", "base"]);
    assert_eq!(asked.count(), 150, "{of}\n{told}");
    let (of, told) = driven(&["compare", "s.yaml", "--baseline", "base", "--out", "fresh"]);
    assert_eq!(asked.count(), 3 * 150, "{of}\n{told}");
    let (of, told) =
        driven(&["limit", "s.yaml", "--rate", "50/s", "--most", "50/s", "--budget", "8s", "--out", "limit"]);
    assert!(of.to_string().contains("\"offered") && asked.count() >= 50, "{of}\n{told}");
    drop(agents);
}
