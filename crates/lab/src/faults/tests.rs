use std::path::Path;
use std::sync::Mutex;

use super::*;
use crate::child::{Child, Spec};
use crate::process::Process;
use crate::started::Started;

/// What was done to it, in order.
#[derive(Debug, Default)]
struct FakeTarget {
    name: &'static str,
    done: Vec<&'static str>,
    never_back: bool,
    /// Always down; what is done to the stand is only noted.
    process: Process,
}

impl Started for FakeTarget {
    fn name(&self) -> &str {
        if self.name.is_empty() { "system" } else { self.name }
    }
    fn process(&self) -> &Process {
        &self.process
    }
    fn process_mut(&mut self) -> &mut Process {
        &mut self.process
    }
    fn kill(&mut self) -> String {
        self.done.push("kill");
        String::new()
    }
    fn stop(&mut self, _: Patience<'_>) -> String {
        self.done.push("stop");
        String::new()
    }
    fn restart(&mut self, patience: Patience<'_>) -> Result<(), LabError> {
        self.done.push("restart");
        while self.never_back && patience() {
            std::thread::sleep(Duration::from_millis(1));
        }
        if self.never_back { Err(LabError::Interrupted(None)) } else { Ok(()) }
    }
    fn freeze(&mut self) -> io::Result<()> {
        self.done.push("freeze");
        Ok(())
    }
    fn thaw(&mut self) {
        self.done.push("thaw");
    }
    fn data_dir(&self) -> Option<&Path> {
        None
    }
}

fn fault(at_ms: u64, kind: FaultKind, lasts_ms: Option<u64>) -> Fault {
    let lasts = lasts_ms.map(Duration::from_millis);
    Fault { at: Duration::from_millis(at_ms), share: None, target: "system".into(), kind, lasts }
}

fn begin(target: FakeTarget, plan: &[Fault]) -> (Arc<Mutex<FakeTarget>>, Faults) {
    let target = Arc::new(Mutex::new(target));
    let started = vec![Arc::clone(&target) as Handle];
    Faults::check(plan, &started, &Injectors::default()).unwrap();
    let faults = Faults::begin(plan, started, Injectors::default(), Instant::now(), 1_000).unwrap();
    (target, faults)
}

/// Waits for so many events.
fn events(faults: &mut Faults, count: usize) -> Vec<Event> {
    let (begin, mut all) = (Instant::now(), Vec::new());
    while all.len() < count {
        assert!(begin.elapsed() < Duration::from_secs(60), "{all:?}");
        all.extend(faults.news());
        std::thread::sleep(Duration::from_millis(1));
    }
    all
}

#[test]
fn each_comes_in_its_time_and_is_told_with_the_true_one() {
    let plan = [
        fault(1, FaultKind::Kill, Some(2)),
        fault(10, FaultKind::Freeze, Some(5)),
        fault(20, FaultKind::Stop, Some(1)),
    ];
    let (target, mut faults) = begin(FakeTarget::default(), &plan);
    let told = events(&mut faults, 8);
    assert_eq!(held(&target).done, ["kill", "restart", "freeze", "thaw", "stop", "restart"]);
    assert_eq!(told[0].text, "kill system, restart after 2ms");
    assert!(told.is_sorted_by_key(|event| event.at_us), "{told:?}");
    let records = faults.records();
    for (record, at_us) in records.iter().zip([2_000, 11_000, 21_000]) {
        assert!(record.begin_us.unwrap() >= at_us, "{record:?}");
        assert!(record.healed_us > record.begin_us && record.error.is_none(), "{record:?}");
    }
    assert!(records[0].ready_us >= records[0].healed_us && records[1].ready_us.is_none());
    assert_eq!(faults.gone(), None);
}

#[test]
fn an_end_in_the_middle_thaws_and_waits_for_nothing() {
    let (target, mut faults) = begin(FakeTarget::default(), &[fault(0, FaultKind::Freeze, Some(600_000))]);
    events(&mut faults, 1);
    assert!(faults.are_felt(5_000_000, 6_000_000) && !faults.are_felt(0, 0));
    assert_eq!(faults.end().len(), 1);
    assert_eq!(held(&target).done, ["freeze", "thaw"]);
    // a restart that takes long is given up
    let never_back = FakeTarget { never_back: true, ..FakeTarget::default() };
    let (target, mut faults) = begin(never_back, &[fault(0, FaultKind::Kill, Some(0))]);
    events(&mut faults, 2);
    drop(faults);
    assert_eq!(held(&target).done, ["kill", "restart"]);
    // and one that is not due yet never comes
    let (target, faults) = begin(FakeTarget::default(), &[fault(600_000, FaultKind::Kill, None)]);
    drop(faults);
    assert!(held(&target).done.is_empty());
}

#[test]
fn a_store_is_all_of_its_nodes() {
    let node = |name| Arc::new(Mutex::new(FakeTarget { name, ..FakeTarget::default() }));
    let nodes = [node("cassandra.1"), node("cassandra.2"), node("cassandra2"), node("system")];
    let started: Vec<Handle> = nodes.iter().map(|node| Arc::clone(node) as Handle).collect();
    let plan = [Fault { target: "cassandra".into(), ..fault(0, FaultKind::Freeze, Some(1)) }];
    let mut faults = Faults::begin(&plan, started, Injectors::default(), Instant::now(), 0).unwrap();
    events(&mut faults, 2);
    let done = nodes.each_ref().map(|node| held(node).done.len());
    assert_eq!(done, [2, 2, 0, 0]);
}

#[test]
fn what_is_down_at_the_end_comes_back_to_be_asked_if_it_was_to() {
    let node = |name| Arc::new(Mutex::new(FakeTarget { name, ..FakeTarget::default() }));
    let nodes = [node("cassandra.1"), node("cassandra.2"), node("system")];
    let started: Vec<Handle> = nodes.iter().map(|node| Arc::clone(node) as Handle).collect();
    let of = |target: &str, lasts| Fault { target: target.into(), ..fault(600_000, FaultKind::Kill, lasts) };
    let plan = [of("cassandra.1", None), of("cassandra.2", Some(1))];
    let mut faults = Faults::begin(&plan, started, Injectors::default(), Instant::now(), 0).unwrap();
    faults.end();
    assert_eq!(faults.restore(&|| true).len(), 2);
    assert_eq!(nodes.each_ref().map(|node| held(node).done.len()), [0, 1, 1]);
}

#[test]
fn what_was_on_its_way_up_at_the_end_is_waited_for_to_be_asked() {
    let folder = tempfile::tempdir().unwrap();
    let node =
        Arc::new(Mutex::new(FakeTarget { name: "cassandra", never_back: true, ..FakeTarget::default() }));
    let plan = [Fault { target: "cassandra".into(), ..fault(0, FaultKind::Kill, Some(0)) }];
    let started = vec![Arc::clone(&node) as Handle];
    let mut faults = Faults::begin(&plan, started, Injectors::default(), Instant::now(), 0).unwrap();
    events(&mut faults, 2);
    faults.end();
    let command = ["sleep", "600"].map(str::to_owned).to_vec();
    let log = folder.path().join("log");
    let spec = Spec::new("it", command, log);
    held(&node).process.up(Child::spawn(&spec).unwrap());
    held(&node).never_back = false;
    assert_eq!(faults.restore(&|| true)[0].text, "cassandra is started again, after the load");
    assert_eq!(held(&node).done, ["kill", "restart", "restart"]);
}

#[test]
fn what_is_not_ready_again_at_the_end_is_told() {
    let down = |faults: &mut Faults| {
        faults.end();
        faults.still_down()
    };
    let (_target, mut faults) = begin(FakeTarget::default(), &[fault(0, FaultKind::Kill, None)]);
    events(&mut faults, 1);
    let told = "system was not ready again when the load ended, after `kill system`";
    assert_eq!(down(&mut faults), [told]);
    let never_back = FakeTarget { never_back: true, ..FakeTarget::default() };
    let (_target, mut faults) = begin(never_back, &[fault(0, FaultKind::Stop, Some(0))]);
    events(&mut faults, 2);
    assert_eq!(down(&mut faults).len(), 1);
    // a later one has brought it back
    let plan = [fault(0, FaultKind::Kill, None), fault(2, FaultKind::Kill, Some(1))];
    let (_target, mut faults) = begin(FakeTarget::default(), &plan);
    events(&mut faults, 4);
    assert_eq!(down(&mut faults), [""; 0]);
    // what never came took nothing down
    let (_target, mut faults) = begin(FakeTarget::default(), &[fault(600_000, FaultKind::Kill, None)]);
    assert_eq!(down(&mut faults), [""; 0]);
}

#[test]
fn what_is_felt_after_a_fault_is_bounded() {
    let (_target, mut faults) = begin(FakeTarget::default(), &[fault(0, FaultKind::Freeze, Some(1))]);
    events(&mut faults, 2);
    let healed_us = faults.records()[0].healed_us.unwrap();
    assert!(faults.are_felt(healed_us + 1, healed_us + 2));
    assert!(!faults.are_felt(healed_us + FELT_AFTER_US, healed_us + FELT_AFTER_US + 1));

    // what stays down is to be lived with
    let (_target, mut faults) = begin(FakeTarget::default(), &[fault(0, FaultKind::Kill, None)]);
    events(&mut faults, 1);
    let begin_us = faults.records()[0].begin_us.unwrap();
    assert!(faults.are_felt(begin_us, begin_us + 1));

    // what is due just before one may be answered within it
    let (_target, soon) = begin(FakeTarget::default(), &[fault(600_000, FaultKind::Kill, None)]);
    let due_us = 600_000_000;
    assert!(soon.are_felt(due_us - FELT_BEFORE_US, due_us) && !soon.are_felt(0, due_us - FELT_BEFORE_US));
    assert!(!faults.are_felt(begin_us + FELT_AFTER_US, begin_us + FELT_AFTER_US + 1));
}

#[test]
fn what_is_not_there_cannot_be_broken() {
    let error = Faults::check(&[fault(0, FaultKind::Kill, None)], &[], &Injectors::default()).unwrap_err();
    assert!(error.to_string().contains("`kill system` is not possible"), "{error}");
    assert_eq!(error.exit_status(), 2);
}
