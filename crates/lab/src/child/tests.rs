use super::*;
use rustix::process::test_kill_process;

fn spec(folder: &Path, command: &[&str]) -> Spec {
    let words = command.iter().map(|word| (*word).to_owned()).collect();
    Spec::new(command[0], words, folder.join("log"))
}

fn alive(id: u32) -> bool {
    test_kill_process(Pid::from_raw(id as i32).unwrap()).is_ok()
}

fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !holds() {
        assert!(begin.elapsed() < Duration::from_secs(60), "{what}");
        std::thread::sleep(LOOK_EVERY);
    }
}

#[test]
fn a_child_is_asked_to_stop() {
    let folder = tempfile::tempdir().unwrap();
    let mut child = Child::spawn(&spec(folder.path(), &["sleep", "600"])).unwrap();
    assert!(alive(child.id()) && child.ending().is_none());
    assert_eq!(child.stop(Duration::from_secs(20)), "killed by signal 15");
    assert!(!alive(child.id()));
    assert_eq!(child.stop(Duration::ZERO), "killed by signal 15", "stopping twice is nothing new");
}

#[test]
fn a_child_that_ignores_the_wish_is_killed_with_its_children() {
    let folder = tempfile::tempdir().unwrap();
    let script = "trap '' TERM; sleep 600 & echo $!; while :; do sleep 0.05; done";
    let mut child =
        Child::spawn(&Spec { announces: true, ..spec(folder.path(), &["sh", "-c", script]) }).unwrap();
    let mut line = None;
    wait_until("the child says its child's number", || {
        line = child.announcement();
        line.is_some()
    });
    let grandchild: u32 = line.unwrap().unwrap().parse().unwrap();
    assert!(alive(grandchild));
    assert_eq!(child.stop(Duration::from_millis(50)), "killed by signal 9");
    // the grandchild is somebody else's to reap; it may stand as a zombie for a moment
    let gone = |id: u32| {
        let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
        stat.is_empty() || stat.contains(") Z ")
    };
    wait_until("the grandchild is gone", || gone(grandchild));
}

#[test]
#[cfg(target_os = "linux")]
fn a_frozen_child_goes_on_when_thawed_and_is_stopped_in_any_case() {
    let state = |id: u32| {
        let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
        stat.rsplit_once(") ").and_then(|(_, rest)| rest.chars().next())
    };
    let folder = tempfile::tempdir().unwrap();
    let mut child = Child::spawn(&spec(folder.path(), &["sleep", "600"])).unwrap();
    child.freeze().unwrap();
    child.freeze().unwrap();
    wait_until("it stands still", || state(child.id()) == Some('T'));
    child.thaw();
    wait_until("it goes on", || state(child.id()) == Some('S'));
    child.freeze().unwrap();
    assert_eq!(
        child.stop(Duration::from_secs(20)),
        "killed by signal 15",
        "it could answer the stop request"
    );
    let mut child = Child::spawn(&spec(folder.path(), &["sleep", "600"])).unwrap();
    child.freeze().unwrap();
    assert_eq!(child.kill(), "killed by signal 9");
    assert!(!alive(child.id()));
}

#[test]
#[cfg(target_os = "linux")]
fn what_it_started_in_a_group_of_its_own_stands_still_and_ends_with_it() {
    let state = |id: u32| {
        let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
        stat.rsplit_once(") ").and_then(|(_, rest)| rest.chars().next())
    };
    let folder = tempfile::tempdir().unwrap();
    let script = "setsid sleep 600 & wait";
    let mut child = Child::spawn(&spec(folder.path(), &["sh", "-c", script])).unwrap();
    let mut other = 0;
    wait_until("it has left the group", || {
        let found = descendants(child.group).first().copied();
        other = found.map_or(0, |id| id.as_raw_nonzero().get() as u32);
        found.is_some_and(|id| getpgid(Some(id)).is_ok_and(|group| group != child.group))
    });
    child.freeze().unwrap();
    wait_until("it stands still", || state(other) == Some('T'));
    child.thaw();
    wait_until("it goes on", || state(other) == Some('S'));
    child.kill();
    wait_until("it is gone", || matches!(state(other), None | Some('Z')));
}

#[test]
#[cfg(target_os = "linux")]
fn what_it_started_in_a_group_of_its_own_ends_with_it_when_it_is_asked_to_end() {
    let folder = tempfile::tempdir().unwrap();
    // the second one does not mind the wish, and has children of its own
    for other in ["sleep 600", "sh -c 'trap \"\" TERM; while :; do sleep 0.05; done'"] {
        let script = format!("setsid {other} & wait");
        let mut child = Child::spawn(&spec(folder.path(), &["sh", "-c", &script])).unwrap();
        let mut others: Vec<Identity> = Vec::new();
        wait_until("it has left the group", || {
            others = child.in_other_groups().into_iter().filter_map(Identity::of).collect();
            !others.is_empty()
        });
        assert_eq!(child.stop(Duration::from_millis(300)), "killed by signal 15");
        wait_until("it is gone", || !others.iter().any(Identity::is_there));
    }
}

#[test]
fn who_stands_by_kills_the_group_when_we_end() {
    let folder = tempfile::tempdir().unwrap();
    let mut child = Child::spawn(&spec(folder.path(), &["sleep", "600"])).unwrap();
    drop(Watchdog::over(child.group, &[]).unwrap());
    assert!(child.ending().is_none(), "called off");
    let mut watchdog = Watchdog::over(child.group, &[]).unwrap();
    drop(watchdog.0.stdin.take());
    wait_until("it is killed", || child.ending().is_some());
    assert_eq!(child.ending().unwrap(), "killed by signal 9");
}

#[test]
fn a_dropped_child_is_gone_after_a_panic_too() {
    let folder = tempfile::tempdir().unwrap();
    let id = std::sync::atomic::AtomicU32::new(0);
    let result = std::panic::catch_unwind(|| {
        let child = Child::spawn(&spec(folder.path(), &["sleep", "600"])).unwrap();
        id.store(child.id(), std::sync::atomic::Ordering::SeqCst);
        panic!("on purpose");
    });
    assert!(result.is_err());
    assert!(!alive(id.into_inner()));
}

#[test]
fn a_child_that_ends_by_itself_is_noticed_and_its_log_quoted() {
    let folder = tempfile::tempdir().unwrap();
    let script = "echo first; echo last >&2; exit 7";
    let mut child = Child::spawn(&spec(folder.path(), &["sh", "-c", script])).unwrap();
    wait_until("it ends", || child.ending().is_some());
    assert_eq!(child.ending().unwrap(), "exit status 7");
    let tail = child.log_tail(5);
    assert!(tail.contains("  | first\n  | last"), "{tail}");
    assert!(!child.log_tail(1).contains("first"));

    let script = format!("echo {}", "x".repeat(301));
    let mut child = Child::spawn(&spec(folder.path(), &["sh", "-c", &script])).unwrap();
    wait_until("it ends", || child.ending().is_some());
    let tail = child.log_tail(1);
    assert!(tail.ends_with(&format!("  | {}…", "x".repeat(300))), "{tail}");
}

#[test]
fn a_secret_that_begins_before_what_is_quoted_is_not_quoted() {
    const SECRET: &str = "Zq81-correct-horse-battery";
    let mut secrets = tidemark_scenario::Secrets::default();
    secrets.add("KEY", tidemark_scenario::secrets::Origin::Environment, SECRET);
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("log");
    let missing = "x".repeat(20_000);
    for (after, wanted) in [
        (format!(" is the one\n{}\nlast\n", "z".repeat(9_000)), "  | last"),
        (" is the one\n".into(), "\n  | …"),
        (String::new(), "\n  | …"),
    ] {
        // with its line's end so far behind that the last bytes begin within the secret
        let gap = "y".repeat(TAIL_BYTES as usize - after.len() - (SECRET.len() - 4));
        std::fs::write(&log, format!("{missing}{SECRET}{gap}{after}")).unwrap();
        let tail = secrets.masked_traffic(&log_tail(&log, TAIL_LINES));
        assert!(tail.ends_with(wanted), "{tail}");
        for piece in SECRET.as_bytes().windows(6) {
            let piece = std::str::from_utf8(piece).unwrap();
            assert!(!tail.contains(piece), "{piece}: {tail}");
        }
    }
    // a log that is read as a whole keeps its first line
    std::fs::write(&log, "first\nlast\n").unwrap();
    assert!(log_tail(&log, TAIL_LINES).ends_with("  | first\n  | last"));
}

#[test]
fn a_text_in_its_output_is_found_however_it_comes_and_only_if_it_is_its_own() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("log"), "Listening on 1\n").unwrap();
    let script = "printf Listen; sleep 0.1; echo 'ing on 2' >&2; exec sleep 600";
    let child = Child::spawn(&spec(folder.path(), &["sh", "-c", script])).unwrap();
    let mut log_search = child.log_search("Listening on").unwrap();
    wait_until("it is found", || log_search.is_found().unwrap());
    let mut other = child.log_search("on 1").unwrap();
    assert!(!other.is_found().unwrap(), "that was somebody else's");
    assert!(!log_search.is_found().unwrap(), "it came once");
}

#[test]
fn a_child_has_an_environment_and_a_folder() {
    let folder = tempfile::tempdir().unwrap();
    let mut given = spec(folder.path(), &["sh", "-c", "echo $COLOUR in $(pwd -P) with ${PATH:+a path}"]);
    given.env.insert("COLOUR".into(), "blue".into());
    given.cwd = Some("/".into());
    let mut child = Child::spawn(&given).unwrap();
    wait_until("it ends", || child.ending().is_some());
    assert_eq!(std::fs::read_to_string(folder.path().join("log")).unwrap(), "blue in / with a path\n");
}

#[test]
fn a_closed_pipe_tells_a_child_that_we_are_gone() {
    let folder = tempfile::tempdir().unwrap();
    let mut child = Child::spawn(&spec(folder.path(), &["cat"])).unwrap();
    assert!(child.ending().is_none());
    drop(child.process.stdin.take());
    wait_until("cat ends at the end of its input", || child.ending().is_some());
    assert_eq!(child.ending().unwrap(), "exit status 0");
}

#[test]
fn a_command_that_is_not_there_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let error = Child::spawn(&spec(folder.path(), &["/no/such/program"])).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::NotFound);
    assert!(Child::spawn(&Spec { command: vec![], ..spec(folder.path(), &["x"]) }).is_err());
}

/// A field of proc_pid_stat(5), counted from behind the name.
#[cfg(target_os = "linux")]
fn of_stat(id: u32, field: usize) -> i32 {
    let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).unwrap();
    let behind_name = stat.rsplit_once(") ").unwrap().1.to_owned();
    behind_name.split(' ').nth(field).unwrap().parse().unwrap()
}

#[test]
#[cfg(target_os = "linux")]
fn a_child_that_takes_turns_has_the_policy_for_it_and_we_keep_ours() {
    const BATCH: i32 = 3; // of sched(7)
    let policy = |id: u32| of_stat(id, 38);
    let folder = tempfile::tempdir().unwrap();
    let ours = policy(std::process::id());
    assert_ne!(ours, BATCH);
    for yields in [false, true] {
        let spec = Spec { yields, takes_turns: true, ..spec(folder.path(), &["sleep", "600"]) };
        assert_eq!(policy(Child::spawn(&spec).unwrap().id()), BATCH);
    }
    assert_eq!(policy(std::process::id()), ours);
    assert_eq!(policy(Child::spawn(&spec(folder.path(), &["sleep", "600"])).unwrap().id()), ours);
}

#[test]
#[cfg(target_os = "linux")]
fn a_child_that_yields_has_a_lower_priority_and_we_keep_ours() {
    let nice = |id: u32| of_stat(id, 16);
    let folder = tempfile::tempdir().unwrap();
    let ours = nice(std::process::id());
    let child = Child::spawn(&Spec { yields: true, ..spec(folder.path(), &["sleep", "600"]) }).unwrap();
    assert_eq!(nice(child.id()), (ours + pin::YIELDING).min(19));
    assert_eq!(nice(std::process::id()), ours);
    let equal = Child::spawn(&spec(folder.path(), &["sleep", "600"])).unwrap();
    assert_eq!(nice(equal.id()), ours);
}

#[test]
#[cfg(target_os = "linux")]
fn a_child_is_held_to_its_cores() {
    let folder = tempfile::tempdir().unwrap();
    let core = pin::available_cores()[0];
    let spec = Spec { cores: vec![core], ..spec(folder.path(), &["sleep", "600"]) };
    let child = Child::spawn(&spec).unwrap();
    let status = std::fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap();
    let allowed = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:")).unwrap();
    assert_eq!(allowed.trim(), core.to_string());
}
