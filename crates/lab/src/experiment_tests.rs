//! The timetable; whole experiments are tested with the real executable.

use tidemark_scenario::plan::LoadModel;

use super::*;
use crate::test_plan::{phase, plan};

fn timetable() -> Timetable {
    let mut plan = plan(LoadModel::Closed);
    plan.load.phases = vec![
        phase("warm-up", 1.5, 10.0, false),
        phase("hold", 2.0, 10.0, true),
        phase("more", 1.25, 20.0, true),
        phase("cool", 0.5, 1.0, false),
    ];
    let mut at_us = 0;
    let mut times = |phase: &plan::Phase| {
        let start_us = at_us;
        at_us += microseconds(phase.duration);
        PhaseTimes { name: phase.name.clone(), start_us, end_us: at_us, measured: phase.measured }
    };
    let times: Vec<PhaseTimes> = plan.load.phases.iter().map(&mut times).collect();
    Timetable::new(&plan, &times)
}

#[test]
fn the_monitor_looks_every_second() {
    let mut timetable = timetable();
    let looks: Vec<u64> = (0..4_000).step_by(50).filter(|ms| timetable.look_is_due(ms * 1000)).collect();
    assert_eq!(looks, [1000, 2000, 3000]);
    // one that comes late does not make up for what it missed
    assert!(timetable.look_is_due(9_100_000) && !timetable.look_is_due(9_900_000));
    assert!(timetable.look_is_due(10_000_000));
}

#[test]
fn phases_are_entered_once_each_in_order() {
    let mut timetable = timetable();
    let mut entered = Vec::new();
    for now_us in [0, 100, 1_500_000, 1_500_001, 4_900_000, 4_900_000, 4_900_000] {
        if let Some(phase) = timetable.entered(now_us) {
            entered.push((phase.name.clone(), phase.level.clone()));
        }
    }
    let wanted = [("warm-up", "10 users"), ("hold", "10 users"), ("more", "20 users"), ("cool", "1 user")];
    assert_eq!(entered, wanted.map(|(name, level)| (name.to_owned(), level.to_owned())));
}

#[test]
fn the_position_says_what_is_left() {
    let timetable = timetable();
    assert_eq!(timetable.position(0), Some(("warm-up".into(), Duration::from_millis(5250))));
    assert_eq!(timetable.position(3_500_000), Some(("more".into(), Duration::from_millis(1750))));
    assert_eq!(timetable.position(5_250_000), None);
}

#[test]
fn waiting_for_a_core_is_a_share_of_the_window() {
    let queue =
        RunQueue { window_us: None, first: Some((1_000_000, 50)), last: Some((3_000_000, 1_000_050)) };
    assert_eq!(queue.waited_share(2), Some(0.25));
    assert_eq!(RunQueue::new(&[]).waited_share(2), None);
}

#[test]
fn systems_are_named_for_persons() {
    let command = SystemOrigin::Command(vec!["/usr/bin/python3".into(), "x.py".into()]);
    assert_eq!(system_name(&command), "python3");
    assert_eq!(system_name(&SystemOrigin::Shipped("airline".into())), "airline");
}
