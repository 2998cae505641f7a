//! Who else used the machine's cores while a run was measured: so that a driver that was kept waiting can say by whom.

use std::collections::HashMap;
use std::fs;

use tidemark_record::summary::Busy;

use crate::proc;

/// Programs that are named, at most.
const NAMED: usize = 3;
/// Less than this is not worth a word, cores.
const CORES_MIN: f64 = 0.05;

/// CPU time of every process of this machine but our own, by process id: its name and clock ticks.
type Ticks = HashMap<u32, (String, u64)>;

/// Two looks at the processes of this machine: at the measured window's begin and at its end.
#[derive(Debug, Default)]
pub struct Neighbours {
    begin: Option<(u64, Ticks)>,
    end: Option<(u64, Ticks)>,
}

impl Neighbours {
    /// Looks where the window begins or ends at this moment, microseconds since the run began.
    pub fn look(&mut self, now_us: u64, in_window: bool) {
        if in_window && self.begin.is_none() {
            self.begin = Some((now_us, ticks()));
        } else if !in_window && self.begin.is_some() && self.end.is_none() {
            self.end = Some((now_us, ticks()));
        }
    }

    /// The busiest programs between the two looks, the busiest first; nothing where the system does not say. A process that
    /// ended meanwhile is not seen.
    pub fn busiest(&self) -> Vec<Busy> {
        let (Some((begin_us, begin)), Some((end_us, end))) = (&self.begin, &self.end) else {
            return Vec::new();
        };
        busiest(begin, end, end_us.saturating_sub(*begin_us) as f64 / 1e6)
    }
}

fn busiest(begin: &Ticks, end: &Ticks, seconds: f64) -> Vec<Busy> {
    let mut by_name: HashMap<&str, u64> = HashMap::new();
    for (id, (name, now)) in end {
        // an id that was given again to another program begins anew
        let before =
            begin.get(id).filter(|(was, ticks)| was == name && ticks <= now).map_or(0, |(_, ticks)| *ticks);
        *by_name.entry(name).or_default() += now - before;
    }
    let per_s = rustix::param::clock_ticks_per_second() as f64 * seconds.max(f64::MIN_POSITIVE);
    let busy = |(name, ticks): (&str, u64)| Busy { name: name.to_owned(), cores: ticks as f64 / per_s };
    let mut all: Vec<Busy> = by_name.into_iter().map(busy).filter(|busy| busy.cores >= CORES_MIN).collect();
    all.sort_by(|a, b| b.cores.total_cmp(&a.cores));
    all.truncate(NAMED);
    all
}

/// Nothing where there is no `/proc`.
fn ticks() -> Ticks {
    let Ok(processes) = fs::read_dir("/proc") else { return Ticks::new() };
    let own = std::process::id();
    let ids = processes.flatten().filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    ids.filter(|id| *id != own)
        .filter_map(|id| Some((id, named_ticks(&fs::read_to_string(format!("/proc/{id}/stat")).ok()?)?)))
        .collect()
}

/// Name and CPU time of one process, without that of its children, which stand for themselves.
fn named_ticks(stat: &str) -> Option<(String, u64)> {
    let name = &stat[stat.find('(')? + 1..stat.rfind(')')?];
    let name: String = name.chars().map(|c| if c.is_control() { '?' } else { c }).collect();
    Some((name, proc::own_ticks(stat)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(processes: &[(u32, &str, u64)]) -> Ticks {
        processes.iter().map(|(id, name, ticks)| (*id, ((*name).to_owned(), *ticks))).collect()
    }

    #[test]
    fn programs_are_added_up_and_the_busiest_come_first() {
        let second = rustix::param::clock_ticks_per_second();
        let begin = of(&[(1, "java", 1_000), (2, "cargo", 7), (5, "gone", 9), (6, "old", 9 * second)]);
        let end = of(&[
            (1, "java", 1_000 + second),
            (2, "cargo", 7 + second / 2),
            (3, "java", second),
            (4, "idle", 0),
            // the same id, another program
            (6, "new", second / 4),
        ]);
        let found = busiest(&begin, &end, 2.0);
        let names: Vec<&str> = found.iter().map(|busy| busy.name.as_str()).collect();
        assert_eq!(names, ["java", "cargo", "new"]);
        assert!((found[0].cores - 1.0).abs() < 1e-9, "{found:?}");
    }

    #[test]
    fn this_machine_tells_and_a_name_may_hold_anything() {
        let stat = "42 (a) b\n(c)) S 1 2 3 4 5 6 7 8 9 10 11 12 900 800 0 0 1 0 5 6 7";
        assert_eq!(named_ticks(stat), Some(("a) b?(c)".to_owned(), 23)));
        assert_eq!(named_ticks("no stat"), None);
        let mut neighbours = Neighbours::default();
        neighbours.look(0, false);
        neighbours.look(1, true);
        assert!(neighbours.busiest().is_empty());
        neighbours.look(1_000_000, false);
        assert!(neighbours.busiest().len() <= NAMED);
    }
}
