//! Agents that are lost while others take their share over.

use std::net::{Shutdown, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use serde_json::Value;

use super::faults::{number, send, write_notes};
use super::{Asked, Nats, begin, command, parts, result, scenario, wait_until};
use crate::common::{Killed, tidemark};
use crate::store::Store;

/// Rebalances over agents with two threads each.
const REBALANCE: [&str; 4] = ["-t", "2", "--on-agent-loss", "rebalance"];

/// A load against a server that counts; each request with a number and a row of its own.
fn write(folder: &Path, asked: &Asked, load: &str, objective: &str) {
    let rows: String = (0..6_000).map(|row| format!("u{row}\n")).collect();
    std::fs::write(folder.join("rows.csv"), format!("name\n{rows}")).expect("written");
    let text = format!(
        "name: losses\nsystem: {{url: 'http://{}'}}\nfeeders: {{users: {{file: rows.csv}}}}\nsessions:\n  a:\n    steps:\n      \
         - take: users\n      - {{GET: '/${{count(n)}}/${{name}}'}}\nload: {{{load}}}\nobjectives: [{objective}]\n",
        asked.place
    );
    std::fs::write(folder.join("s.yaml"), text).expect("written");
}

fn events(folder: &Path) -> String {
    std::fs::read_to_string(folder.join("run/events.jsonl")).expect("events")
}

fn refused(mut command: Command) -> String {
    let output: Output = command.output().expect("it runs");
    assert_eq!(output.status.code(), Some(2));
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn what_a_killed_agent_had_to_do_is_taken_over_by_the_others() {
    let (nats, asked) = (Nats::start(), Asked::start());
    let folder = tempfile::tempdir().expect("a folder");
    write(folder.path(), &asked, "rate: 90/s, hold: 24s", "errors < 40%");
    let mut agents = nats.with_agents(3);
    let running = begin(folder.path(), &nats.url(), &REBALANCE);
    wait_until("the load has begun", || asked.count() > 270);
    drop(agents.remove(1));
    let output = running.wait_with_output().expect("it ends");
    let of = result(&output);
    // all that was due is told, and two threads beside those of before drove
    let (requests, dropped) = (number(&of, "/requests"), number(&of, "/dropped"));
    assert_eq!((requests + dropped, number(&of, "/driver/threads")), (24 * 90, 8), "{of}");
    // what was sent in the second that it never told of is all that the server has beyond that, and counts as never sent
    let paths = asked.take_targets();
    let beyond = (paths.len() as u64).checked_sub(requests).expect("no request is made up");
    assert!(dropped > 0 && beyond <= dropped, "{beyond} of {dropped}: {of}");
    let (numbers, rows) = parts(&paths);
    assert_eq!((numbers.len(), rows.len()), (paths.len(), paths.len()), "no number and no row comes twice");
    let events = events(folder.path());
    assert!(events.contains("agent a2 lost, its share taken over by a1 and a3 from "), "{events}");
    let told = of.to_string();
    assert!(told.contains("agent a2 was lost: from ") && told.contains("a1 thread 2 as thread 6"), "{told}");
    // the objective is met, and what a2 sent last is not known
    assert_eq!(output.status.code(), Some(3), "{of}");
    let reasons = of.pointer("/verdict/reasons").expect("reasons").to_string();
    assert!(
        reasons.contains(
            "incomplete: agent a2 was lost and others took its share over; what it sent after its last report is not known"
        ),
        "{reasons}"
    );
    let agents = of.pointer("/driver/agents").and_then(Value::as_array).expect("agents");
    let taken = agents.iter().map(|agent| agent["taken"].as_array().map_or(0, Vec::len));
    assert_eq!(taken.collect::<Vec<_>>(), [1, 0, 1], "{of}");
    nats.wait_for_idle(2);
}

#[test]
fn what_nobody_sent_before_that_makes_an_objective_undecided() {
    let (nats, asked) = (Nats::start(), Asked::start());
    let folder = tempfile::tempdir().expect("a folder");
    write(folder.path(), &asked, "rate: 60/s, hold: 24s", "errors < 1%");
    let mut agents = nats.with_agents(2);
    let running = begin(folder.path(), &nats.url(), &["--on-agent-loss", "rebalance"]);
    wait_until("the load has begun", || asked.count() > 120);
    drop(agents.remove(0));
    let output = running.wait_with_output().expect("it ends");
    let of = result(&output);
    assert_eq!(output.status.code(), Some(3), "{of}");
    let told = of.to_string();
    assert!(
        told.contains("incomplete: agent a1 was lost and ") && told.contains("errors < 1% is not decided"),
        "{told}"
    );
    assert!(
        told.contains("if what was never sent had been answered"),
        "nobody else is called the cause: {told}"
    );
}

#[test]
fn users_of_a_killed_agent_begin_anew_at_the_others() {
    let (nats, asked) = (Nats::start(), Asked::start());
    let folder = tempfile::tempdir().expect("a folder");
    write(folder.path(), &asked, "users: 6, pace: 100ms, hold: 24s", "errors < 40%");
    let mut agents = nats.with_agents(3);
    let running = begin(folder.path(), &nats.url(), &REBALANCE);
    wait_until("the load has begun", || asked.count() > 180);
    drop(agents.remove(0));
    let output = running.wait_with_output().expect("it ends");
    let of = result(&output);
    let paths = asked.take_targets();
    // two of six users were gone for a while, and two more threads drove then
    // (four do 240 each, the two had done 60 together)
    assert!((1_021..6 * 240).contains(&paths.len()), "{}: {of}", paths.len());
    assert_eq!(number(&of, "/driver/threads"), 8, "{of}");
    assert_eq!(parts(&paths).0.len(), paths.len(), "no number comes twice");
    // nobody counts what they would have done
    assert_eq!(output.status.code(), Some(3), "{of}");
    assert!(of.to_string().contains("agent a1 was lost: from "), "{of}");
    assert!(events(folder.path()).contains("its share taken over by a2 and a3"), "{of}");
}

#[test]
fn the_ledger_stays_whole_over_a_take_over() {
    let (nats, notes) = (Nats::start(), Store::start(0));
    let folder = tempfile::tempdir().expect("a folder");
    write_notes(folder.path(), &notes, "rate: 200/s, hold: 24s");
    let mut agents = nats.with_agents(2);
    let running = begin(folder.path(), &nats.url(), &["--on-agent-loss", "rebalance"]);
    wait_until("the load has begun", || notes.count() > 500);
    drop(agents.remove(0));
    let output = running.wait_with_output().expect("it ends");
    let of = result(&output);
    assert_eq!(output.status.code(), Some(3), "{of}");
    let acknowledged = number(&of, "/ledger/acknowledged");
    let verified = |name: &str| number(&of, &format!("/ledger/{name}"));
    assert_eq!((verified("lost"), verified("different"), verified("duplicated")), (0, 0, 0), "{of}");
    assert_eq!(verified("found"), acknowledged, "{of}");
    assert_eq!(acknowledged + verified("unacknowledged_found"), notes.count() as u64, "{of}");
    let of_taken = folder.path().join("run/ledger/thread-2.log");
    assert!(of_taken.is_file(), "others went on with it, under a number of its own");
    assert!(of.to_string().contains("what it sent after its last report is not known"), "{of}");
}

#[test]
fn what_stands_still_too_long_is_taken_over_and_does_not_come_back() {
    let (nats, asked) = (Nats::start(), Asked::start());
    let folder = tempfile::tempdir().expect("a folder");
    write(folder.path(), &asked, "rate: 60/s, hold: 22s", "errors < 60%");
    let agents = nats.with_agents(2);
    let running = begin(folder.path(), &nats.url(), &["--on-agent-loss", "rebalance"]);
    wait_until("the load has begun", || asked.count() > 60);
    send("STOP", &agents[0]);
    let of = result(&running.wait_with_output().expect("it ends"));
    assert_eq!(number(&of, "/requests") + number(&of, "/dropped"), 22 * 60, "{of}");
    assert!(number(&of, "/dropped") > 0, "{of}");
    assert!(events(folder.path()).contains("agent a1 lost, its share taken over by a2"), "{of}");
    let sent = asked.count();
    send("CONT", &agents[0]);
    nats.wait_for_idle(2);
    // what was due meanwhile are some 550
    assert_eq!(asked.count(), sent, "its fence had passed while it stood still");
    let paths = asked.take_targets();
    assert_eq!(parts(&paths).0.len(), paths.len(), "no number comes twice");
}

/// A way to NATS that can be cut: who came over it has no connection any more, and NATS does not know.
struct Way {
    port: u16,
    is_cut: Arc<AtomicBool>,
    /// Both ends of each connection.
    connections: Arc<Mutex<Vec<[TcpStream; 2]>>>,
}

impl Way {
    fn to(port: u16) -> Way {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let own = listener.local_addr().expect("an address").port();
        let way = Way { port: own, is_cut: Arc::default(), connections: Arc::default() };
        let (is_cut, connections) = (Arc::clone(&way.is_cut), Arc::clone(&way.connections));
        std::thread::spawn(move || {
            for here in listener.incoming().flatten().filter(|_| !is_cut.load(Ordering::Relaxed)) {
                let Ok(there) = TcpStream::connect(("127.0.0.1", port)) else { return };
                for (from, to) in [(&here, &there), (&there, &here)] {
                    let (Ok(mut from), Ok(mut to)) = (from.try_clone(), to.try_clone()) else { return };
                    std::thread::spawn(move || std::io::copy(&mut from, &mut to));
                }
                connections.lock().expect("whole").push([here, there]);
            }
        });
        way
    }

    fn cut(&self) {
        self.is_cut.store(true, Ordering::Relaxed);
        for [here, _] in &*self.connections.lock().expect("whole") {
            let _ = here.shutdown(Shutdown::Both);
        }
    }
}

#[test]
fn what_is_cut_off_has_stopped_by_itself_before_others_have_its_share() {
    let (nats, asked) = (Nats::start(), Asked::start());
    let folder = tempfile::tempdir().expect("a folder");
    write(folder.path(), &asked, "rate: 60/s, hold: 24s", "errors < 60%");
    let way = Way::to(nats.port);
    let mut cut_off = tidemark();
    cut_off.args(["agent", "--nats", &format!("nats://127.0.0.1:{}", way.port), "--name", "a1", "-t", "1"]);
    let _cut_off = Killed(cut_off.stdin(Stdio::null()).stdout(Stdio::null()).spawn().expect("it starts"));
    let _other = nats.agent("a2", &[]);
    nats.wait_for_idle(2);
    let running = begin(folder.path(), &nats.url(), &["--on-agent-loss", "rebalance"]);
    wait_until("the load has begun", || asked.count() > 120);
    way.cut();
    // rows are dealt out by threads: every second one is its own, whoever drives
    let of_cut_off = || {
        let is_its = |path: &String| {
            path.rsplit('u').next().and_then(|row| row.parse::<u64>().ok()).is_some_and(|row| row % 2 == 0)
        };
        asked.targets().iter().filter(|path| is_its(path)).count()
    };
    let at_the_cut = of_cut_off();
    let told = folder.path().join("run/events.jsonl");
    let mut before = at_the_cut;
    wait_until("it is lost", || {
        // read in this order: what comes between the two is the other's alone
        before = of_cut_off();
        std::fs::read_to_string(&told)
            .is_ok_and(|told| told.contains("agent a1 lost, its share taken over by a2"))
    });
    assert!(before > at_the_cut + 150, "a cut of 10 s is no reason to stop: {at_the_cut}, then {before}");
    let of = result(&running.wait_with_output().expect("it ends"));
    assert_eq!(of_cut_off(), before, "it sent nothing any more: {of}");
    assert_eq!(number(&of, "/requests") + number(&of, "/dropped"), 24 * 60, "{of}");
    way.is_cut.store(false, Ordering::Relaxed);
    nats.wait_for_idle(2);
}

/// Three users of NATS: one is to be thrown out, one may say nothing any more.
fn users(folder: &Path, are_limited: bool) -> String {
    let users = match are_limited {
        false => "{user: a1, password: p}, {user: a2, password: p}",
        true => "{user: a2, password: p, permissions: {publish: {deny: \">\"}}}",
    };
    let path = folder.join("nats.conf").display().to_string();
    let kept = folder.join("js").display().to_string();
    let text = format!(
        "jetstream {{ store_dir: '{kept}' }}\nauthorization {{ users: [{users}, {{user: a3, password: p}}] }}\n"
    );
    std::fs::write(&path, text).expect("written");
    path
}

#[test]
fn what_nats_throws_out_or_refuses_has_stopped_before_others_have_its_share() {
    let folder = tempfile::tempdir().expect("a folder");
    let nats = Nats::start_with(&["-c", &users(folder.path(), false)]);
    let asked = Asked::start();
    write(folder.path(), &asked, "rate: 60/s, hold: 24s", "errors < 60%");
    let url = |user: &str| format!("nats://{user}:p@127.0.0.1:{}", nats.port);
    let agent = |name: &str| {
        let mut agent = tidemark();
        agent.args(["agent", "--nats", &url(name), "--name", name, "-t", "1"]).stderr(Stdio::null());
        Killed(agent.stdin(Stdio::null()).stdout(Stdio::null()).spawn().expect("it starts"))
    };
    let _agents = ["a1", "a2", "a3"].map(agent);
    wait_until("all agents are there", || {
        let output = tidemark().args(["fleet", "--json", "--nats", &url("a3")]).output().expect("it runs");
        String::from_utf8_lossy(&output.stdout).matches("\"name\"").count() == 3
    });
    let more = ["--on-agent-loss", "rebalance"];
    let running = begin(folder.path(), &url("a3"), &more);
    wait_until("the load has begun", || asked.count() > 120);
    users(folder.path(), true);
    let reload = Command::new("kill").args(["-s", "HUP", &nats.child.id().to_string()]).status();
    assert!(reload.expect("kill").success());
    // rows are dealt out by threads: of three two are theirs, whoever drives
    let of_lost = || {
        let row = |path: &String| path.rsplit('u').next().and_then(|row| row.parse::<u64>().ok());
        let paths = asked.targets();
        paths.iter().filter_map(row).filter(|row| row % 3 != 2).count()
    };
    let (at_reload, told) = (of_lost(), folder.path().join("run/events.jsonl"));
    let mut before = at_reload;
    wait_until("both are lost", || {
        // read in this order: what comes between the two is the other's alone
        before = of_lost();
        std::fs::read_to_string(&told).is_ok_and(|told| {
            ["a1", "a2"].iter().all(|name| told.contains(&format!("agent {name} lost, its share taken")))
        })
    });
    assert!(before > at_reload + 200, "neither stops before its fence: {at_reload}, then {before}");
    let of = result(&running.wait_with_output().expect("it ends"));
    assert_eq!(of_lost(), before, "they sent nothing any more: {of}");
    assert_eq!(number(&of, "/requests") + number(&of, "/dropped"), 24 * 60, "{of}");
}

#[test]
fn what_is_told_to_end_says_so_and_is_taken_over_at_once() {
    let (nats, asked) = (Nats::start(), Asked::start());
    let folder = tempfile::tempdir().expect("a folder");
    write(folder.path(), &asked, "rate: 60/s, hold: 10s", "errors < 40%");
    let agents = nats.with_agents(2);
    for (more, taken) in [(&["--on-agent-loss", "rebalance"][..], true), (&[][..], false)] {
        asked.forget();
        let running = begin(folder.path(), &nats.url(), more);
        wait_until("the load has begun", || asked.count() > 120);
        // as Kubernetes does it; the first is stopped first
        send("TERM", &agents[usize::from(!taken)]);
        let output = running.wait_with_output().expect("it ends");
        let of = result(&output);
        // nobody stopped the run
        assert_eq!(output.status.code(), Some(3), "{of}");
        let (requests, dropped) = (number(&of, "/requests"), number(&of, "/dropped"));
        assert_eq!(requests + dropped, 600, "{of}");
        let told = of.to_string();
        match taken {
            true => {
                // a killed one would be taken over after 4 s, 120 requests, at the earliest
                assert!((1..110).contains(&dropped), "{of}");
                let reason = "agent a1 was lost and others took its share over; what was due in between was never sent";
                assert!(told.contains("agent a1 was lost: from ") && told.contains(reason), "{told}");
                nats.wait_for_idle(1);
            }
            false => {
                assert!(dropped > 200, "{of}");
                assert!(told.contains("agent a2: it was stopped"), "{told}");
            }
        }
        std::fs::remove_dir_all(folder.path().join("run")).expect("a run");
    }
}

#[test]
fn a_take_over_that_cannot_be_written_down_does_not_take_place() {
    let (nats, asked) = (Nats::start(), Asked::start());
    let folder = tempfile::tempdir().expect("a folder");
    write(folder.path(), &asked, "rate: 60/s, hold: 26s", "errors < 90%");
    let mut agents = nats.with_agents(2);
    let running = begin(folder.path(), &nats.url(), &["--on-agent-loss", "rebalance"]);
    wait_until("the load has begun", || asked.count() > 60);
    // nothing takes the place of a folder with something in it
    let kept = folder.path().join("run/unfinished.fleet");
    std::fs::remove_file(&kept).expect("it is there");
    std::fs::create_dir_all(kept.join("full")).expect("a folder");
    drop(agents.remove(0));
    let output = running.wait_with_output().expect("it ends");
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success() && told.contains("unfinished.fleet"), "{:?}: {told}", output.status);
    // the other one was told to end, and of no take-over
    // (with a take-over it would be 1,100 or more)
    assert!(asked.count() < 15 * 60, "{}", asked.count());
    nats.wait_for_idle(1);
}

#[test]
fn what_cannot_be_taken_over_is_said_before_anything_is_sent() {
    let (nats, asked) = (Nats::start(), Asked::start());
    let folder = tempfile::tempdir().expect("a folder");
    scenario(folder.path(), &asked, 1);
    let told = refused(command(folder.path(), &["--on-agent-loss", "rebalance"]));
    assert!(told.contains("--on-agent-loss needs --fleet"), "{told}");
    let _agents = nats.with_agents(2);
    let url = nats.url();
    let more = ["--fleet", &url, "--on-agent-loss", "rebalance"];
    std::fs::write(folder.path().join("rows.csv"), "name\na\nb\nc\nd\ne\n").expect("written");
    let text = format!(
        "system: {{url: 'http://{}'}}\nfeeders: {{users: {{file: rows.csv, held: true}}}}\nsessions: {{a: {{steps: [{{take: users}}, \
         {{GET: '/0/${{name}}'}}]}}}}\nload: {{users: 3, hold: 1s}}\n",
        asked.place
    );
    std::fs::write(folder.path().join("s.yaml"), text).expect("written");
    let told = refused(command(folder.path(), &more));
    assert!(told.contains("give it 6 rows or more"), "{told}");
    assert_eq!(asked.count(), 0);
}
