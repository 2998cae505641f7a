//! Who may reach what in a fleet: TLS and credentials of NATS, the networks that an agent allows, versions.

use std::io::Read as _;
use std::net::UdpSocket;
use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tidemark_fleet::{Presence, Server};

use super::{Asked, Nats, begin, command, result, scenario, wait_until};
use crate::common::{Killed, tidemark};

/// An operator with an account, and the credentials of a user of it: for this test alone.
const ACCOUNTS: &str = include_str!("accounts.conf");
const CREDENTIALS: &str = include_str!("user.creds");

#[test]
fn nats_is_reached_by_tls_with_credentials() {
    let keys = tempfile::tempdir().expect("a folder");
    let at = |name: &str| keys.path().join(name).display().to_string();
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).expect("a certificate");
    std::fs::write(at("cert.pem"), made.cert.pem()).expect("written");
    std::fs::write(at("key.pem"), made.signing_key.serialize_pem()).expect("written");
    std::fs::write(at("user.creds"), CREDENTIALS).expect("written");
    let tls = format!("tls {{ cert_file: {:?}, key_file: {:?} }}\n", at("cert.pem"), at("key.pem"));
    std::fs::write(at("nats.conf"), ACCOUNTS.to_owned() + &tls).expect("written");
    let nats = Nats::start_with(&["-c", &at("nats.conf")]);
    let url = format!("tls://localhost:{}", nats.port);
    let reach = ["--nats-creds", &at("user.creds"), "--nats-ca", &at("cert.pem")];
    let asked = Asked::start();
    let folder = tempfile::tempdir().expect("a folder");
    scenario(folder.path(), &asked, 1);
    let list = |reach: &[&str]| {
        let output = tidemark().args(["fleet", "--json", "--nats", &url]).args(reach).output();
        output.expect("tidemark runs")
    };
    // without the one or the other nobody is let in
    for reach in [&reach[..2], &reach[2..]] {
        let output = list(reach);
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && told.contains("cannot connect to NATS"), "{reach:?}: {told}");
    }
    let mut agent = tidemark();
    agent.args(["agent", "--nats", &url, "--name", "a1", "-t", "1"]).args(reach);
    let _agent =
        Killed(agent.stdin(Stdio::null()).stdout(Stdio::null()).spawn().expect("tidemark agent starts"));
    wait_until("the agent is there", || String::from_utf8_lossy(&list(&reach).stdout).contains("\"a1\""));
    let output = command(folder.path(), &["--fleet", &url]).args(reach).output().expect("it runs");
    let of = result(&output);
    assert!(output.status.success(), "{of}\n{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(asked.count(), 150, "{of}");
    // neither seed nor token is written down
    let seed = CREDENTIALS.lines().find(|line| line.starts_with("SU")).expect("a seed");
    let run = std::fs::read_to_string(folder.path().join("run/run.json")).expect("a run");
    assert!(!run.contains(seed), "{run}");
}

#[test]
fn a_login_of_nats_is_written_nowhere() {
    let login = ["--user", "me", "--pass", "sesame-word"];
    let nats = Nats::start_with(&login);
    let url = format!("nats://me:sesame-word@127.0.0.1:{}", nats.port);
    let asked = Asked::start();
    let folder = tempfile::tempdir().expect("a folder");
    scenario(folder.path(), &asked, 4);
    let mut agent = tidemark();
    agent.args(["agent", "--nats", &url, "--name", "a1", "-t", "1"]).stdin(Stdio::null());
    let mut agent = Killed(agent.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("it starts"));
    wait_until("the agent is there", || {
        let output = tidemark().args(["fleet", "--json", "--nats", &url]).output().expect("tidemark runs");
        String::from_utf8_lossy(&output.stdout).contains("\"a1\"")
    });
    let is_within = |bytes: &[u8]| String::from_utf8_lossy(bytes).contains("sesame-word");
    let files_with_it = || {
        let run = std::fs::read_dir(folder.path().join("run")).expect("a run").flatten();
        let files = run.map(|file| file.path()).filter(|path| path.is_file());
        files.filter(|path| std::fs::read(path).is_ok_and(|bytes| is_within(&bytes))).collect::<Vec<_>>()
    };
    let running = begin(folder.path(), &url, &["--on-agent-loss", "rebalance"]);
    wait_until("the load has begun", || asked.count() > 150);
    assert_eq!(files_with_it(), Vec::<std::path::PathBuf>::new());
    let output = running.wait_with_output().expect("it ends");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(!is_within(&output.stdout) && !is_within(&output.stderr));
    assert_eq!(files_with_it(), Vec::<std::path::PathBuf>::new());
    // nor is it in what goes wrong, here and at the agent
    let wrong = url.replace("sesame-word", "sesame-word2");
    for url in [&wrong, &format!("{wrong}x"), &url.replace("nats://", "natz://")] {
        let output = tidemark().args(["fleet", "--nats", url]).output().expect("tidemark runs");
        assert!(!output.status.success() && !is_within(&output.stderr), "{output:?}");
    }
    agent.0.kill().expect("it is there");
    let mut told = Vec::new();
    agent.0.stderr.take().expect("a pipe").read_to_end(&mut told).expect("read");
    assert!(!told.is_empty() && !is_within(&told), "{}", String::from_utf8_lossy(&told));
}

#[test]
fn an_agent_drives_only_what_it_allows() {
    // an address of this machine that is not loopback; nothing is sent to find it
    let own = UdpSocket::bind("0.0.0.0:0").and_then(|socket| {
        socket.connect("192.0.2.1:9")?;
        socket.local_addr()
    });
    let Some(own) = own.ok().map(|address| address.ip()).filter(|ip| !ip.is_loopback()) else {
        eprintln!("skipped: this machine has loopback alone");
        return;
    };
    let (nats, asked) = (Nats::start(), Asked::start_at(own, |_| ("", "hello")));
    let folder = tempfile::tempdir().expect("a folder");
    scenario(folder.path(), &asked, 1);
    let agent = nats.with_agents(1);
    let run = || {
        let _ = std::fs::remove_dir_all(folder.path().join("run"));
        command(folder.path(), &["--fleet", &nats.url()]).output().expect("it runs")
    };
    let output = run();
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success(), "{told}");
    assert!(told.contains(&format!("agent a1: it may not drive {}", asked.place)), "{told}");
    assert!(told.contains(&format!("--allow {own}")), "{told}");
    assert_eq!(asked.count(), 0);
    drop(agent);
    let _agent = nats.agent("a2", &["--allow", &format!("{own}/32")]);
    wait_until("a2 is the only one", || {
        let agents = nats.agents();
        agents.len() == 1 && agents[0]["name"] == "a2"
    });
    let output = run();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(asked.count(), 150);
}

#[test]
fn an_agent_of_another_version_is_refused() {
    let (nats, asked) = (Nats::start(), Asked::start());
    let folder = tempfile::tempdir().expect("a folder");
    scenario(folder.path(), &asked, 1);
    let stop = Arc::new(AtomicBool::new(false));
    let other = Presence { name: "old".into(), version: "0.0.9".into(), handover: 1, ..Presence::default() };
    let (server, stopped) = (Server::at(&nats.url()), Arc::clone(&stop));
    let serving =
        std::thread::spawn(move || tidemark_fleet::serve(&server, other, &stopped, &|_| {}, &|_| {}));
    nats.wait_for_idle(1);
    let output = command(folder.path(), &["--fleet", &nats.url()]).output().expect("it runs");
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success() && !Path::new(&folder.path().join("run")).exists(), "{told}");
    let versions = ["agent old: it is Tidemark 0.0.9", env!("CARGO_PKG_VERSION")];
    assert!(versions.iter().all(|version| told.contains(version)), "{told}");
    assert_eq!(asked.count(), 0);
    stop.store(true, Ordering::Relaxed);
    serving.join().expect("it ends").expect("it served");
}
