//! The processes below one.

use std::fs;

use rustix::process::Pid;

use crate::proc::process_ids;

/// Most processes and threads that are looked at for their children.
const DESCENDANTS_MAX: usize = 10_000;

/// All processes below one, as the kernel has them now; none on other systems.
pub fn descendants(of: Pid) -> Vec<Pid> {
    let children = |id: Pid| {
        let tasks =
            fs::read_dir(format!("/proc/{}/task", id.as_raw_nonzero())).into_iter().flatten().flatten();
        let texts = tasks.filter_map(|task| fs::read_to_string(task.path().join("children")).ok());
        texts.flat_map(|text| process_ids(&text).collect::<Vec<_>>()).collect::<Vec<_>>()
    };
    let mut found = Vec::new();
    let mut next = Some(of);
    let mut index = 0;
    while let Some(id) = next.filter(|_| found.len() < DESCENDANTS_MAX) {
        found.extend(children(id).into_iter().filter_map(|id| Pid::from_raw(i32::try_from(id).ok()?)));
        next = found.get(index).copied();
        index += 1;
    }
    found
}
