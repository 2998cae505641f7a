//! When answers came, by the kernel's account.
#![cfg(target_os = "linux")]

use std::time::Duration;

use crate::support::{OPEN, Server, begin, finish, get, options, phase, plan};
use tidemark_drive::{DriveOptions, IoChoice, Timestamps};
use tidemark_scenario::plan::LoadModel;

/// Where the system tells when answers came, each answer of an open load says how late it was read, and a sample of a
/// closed one's; what is counted to the kernel's time is none too early.
#[test]
fn late_reading_is_known() {
    const DELAY: Duration = Duration::from_millis(5);
    let server = Server::plain(DELAY);
    let answers_and_told = |model, timestamps| {
        let level = if model == LoadModel::Closed { 3.0 } else { 200.0 };
        let plan = plan(vec![get(0, "/")], model, vec![phase(300, level)]);
        let options = DriveOptions { timestamps, ..options(server.address, 1) };
        let sum = finish(begin(plan, options));
        let told = sum.end.io != IoChoice::Portable.to_string();
        let series: Vec<_> = sum.intervals.iter().flat_map(|i| &i.series).collect();
        let least_us = series.iter().map(|s| s.response_time_us.min()).min();
        assert!(least_us >= Some(DELAY.as_micros() as u64), "{least_us:?}");
        let answers: u64 = series.iter().filter(|s| s.measured).map(|s| s.response_time_us.len()).sum();
        let read: u64 = sum.intervals.iter().map(|i| i.read_lag_us.len()).sum();
        assert!(told || read == 0);
        (answers, if told { read } else { answers })
    };
    let (answers, told) = answers_and_told(OPEN, Timestamps::Read);
    assert_eq!(answers, told);
    let (answers, told) = answers_and_told(OPEN, Timestamps::Kernel);
    assert_eq!(answers, told);
    let (answers, told) = answers_and_told(LoadModel::Closed, Timestamps::Read);
    assert!(0 < told && told < answers || answers == told, "{told} of {answers}");
}
