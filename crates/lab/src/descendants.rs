//! The processes below one.

use std::fs;

use rustix::process::Pid;

use crate::proc::{own_ticks, process_ids};

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

/// One process: its number alone may later be another's, with the time of its beginning it is not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Identity {
    /// Its number.
    pub id: Pid,
    begun_ticks: u64,
}

impl Identity {
    /// Who has this number now; none where nobody has it that lives, and on other systems.
    pub fn of(id: Pid) -> Option<Identity> {
        let stat = fs::read(format!("/proc/{}/stat", id.as_raw_nonzero())).ok()?;
        let stat = String::from_utf8_lossy(&stat);
        let state = stat.rsplit_once(") ")?.1.chars().next()?;
        let (_, begun_ticks) = own_ticks(&stat)?;
        (!matches!(state, 'Z' | 'X')).then_some(Identity { id, begun_ticks })
    }

    /// Whether it still lives.
    pub fn is_there(&self) -> bool {
        Identity::of(self.id).as_ref() == Some(self)
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn a_number_that_another_has_by_now_is_not_the_same_process() {
        let identity = Identity::of(rustix::process::getpid()).unwrap();
        assert!(identity.is_there());
        assert!(!Identity { begun_ticks: identity.begun_ticks + 1, ..identity }.is_there());
    }
}
