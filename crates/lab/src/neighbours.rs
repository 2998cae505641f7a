//! Who else used the machine's cores while a run was measured: so that a driver that was kept waiting can say by whom.

use std::collections::{HashMap, HashSet};
use std::fs;

use tidemark_record::summary::Busy;

use crate::proc;

/// Programs that are named, at most: of the run's own, and of others.
const NAMED: usize = 3;
/// Less than this is not worth a word, cores.
const CORES_MIN: f64 = 0.05;

/// A process: its id, and when it began, as an id is given again.
type Process = (u32, u64);
/// CPU time of every process of this machine but our own.
type Ticks = HashMap<Process, Used>;

/// What is known of a process.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Used {
    /// Its name, which may change.
    name: String,
    /// Its CPU time, clock ticks.
    ticks: u64,
    /// Which process it is below.
    parent: u32,
}

/// Two looks at the processes of this machine: at the measured window's begin and at its end.
#[derive(Debug, Default)]
pub struct Neighbours {
    /// Processes that are watched: those and all below them are the run's own, as is what it started.
    watched: Vec<u32>,
    begin: Option<(u64, Ticks)>,
    end: Option<(u64, Ticks)>,
}

impl Neighbours {
    /// Beside what is watched.
    pub fn beside(watched: Vec<u32>) -> Neighbours {
        Neighbours { watched, ..Neighbours::default() }
    }

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
        let roots: HashSet<u32> = self.watched.iter().copied().chain([std::process::id()]).collect();
        let own = fs::read_to_string("/proc/self/comm").unwrap_or_default();
        let end = other_instances(end, own.trim_end(), &roots);
        busiest(begin, &end, end_us.saturating_sub(*begin_us) as f64 / 1e6, cores(), &roots)
    }
}

/// Other processes of this very program are named apart, each with its id, so that nobody takes them for this one.
fn other_instances(all: &Ticks, own: &str, roots: &HashSet<u32>) -> Ticks {
    let mut all = all.clone();
    let parents = parents(&all);
    for ((id, _), used) in all.iter_mut().filter(|(_, used)| !own.is_empty() && used.name == own) {
        if !is_below(*id, roots, &parents) {
            used.name = format!("another {own} (pid {id})");
        }
    }
    all
}

/// Which process each is below.
fn parents(all: &Ticks) -> HashMap<u32, u32> {
    all.iter().map(|((id, _), used)| (*id, used.parent)).collect()
}

/// Whether this is one of the roots, or below one.
fn is_below(id: u32, roots: &HashSet<u32>, parents: &HashMap<u32, u32>) -> bool {
    let mut seen = HashSet::new();
    let mut above = std::iter::successors(Some(id), |id| parents.get(id).copied());
    // a number that was given again while we looked could make a circle
    above.by_ref().take_while(|id| seen.insert(*id)).any(|id| roots.contains(&id))
}

/// Cores of the machine, of which we may be allowed fewer.
fn cores() -> usize {
    let stat = fs::read_to_string("/proc/stat").unwrap_or_default();
    let is_core = |line: &&str| line.strip_prefix("cpu").is_some_and(|rest| !rest.starts_with(' '));
    stat.lines().filter(is_core).count().max(1)
}

/// `cores`: of the machine. Nobody used more, whatever the kernel's ticks, each counted whole, add up to. `roots`: those, and
/// all below them, are the run's own.
fn busiest(begin: &Ticks, end: &Ticks, seconds: f64, cores: usize, roots: &HashSet<u32>) -> Vec<Busy> {
    let parents = parents(end);
    let is_ours = |id: u32| is_below(id, roots, &parents);
    let mut by_name: HashMap<(bool, &str), u64> = HashMap::new();
    for (process, Used { name, ticks: now, .. }) in end {
        // one that was not there has begun since; one whose counter fell is not to be trusted
        let before = begin.get(process).map_or(0, |used| used.ticks);
        if *now > before {
            *by_name.entry((is_ours(process.0), name)).or_default() += now - before;
        }
    }
    let per_s = rustix::param::clock_ticks_per_second() as f64 * seconds.max(f64::MIN_POSITIVE);
    let busy = |((is_ours, name), ticks): ((bool, &str), u64)| Busy {
        name: name.to_owned(),
        cores: (ticks as f64 / per_s).min(cores as f64),
        is_ours,
    };
    let mut all: Vec<Busy> = by_name.into_iter().map(busy).filter(|busy| busy.cores >= CORES_MIN).collect();
    all.sort_by(|a, b| b.cores.total_cmp(&a.cores));
    let mut named = [0, 0];
    all.retain(|busy| {
        let of = &mut named[usize::from(busy.is_ours)];
        *of += 1;
        *of <= NAMED
    });
    all
}

/// Nothing where there is no `/proc`.
fn ticks() -> Ticks {
    let Ok(processes) = fs::read_dir("/proc") else { return Ticks::new() };
    let own = std::process::id();
    let ids = processes.flatten().filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    ids.filter(|id| *id != own)
        .filter_map(|id| process(id, &fs::read_to_string(format!("/proc/{id}/stat")).ok()?))
        .collect()
}

/// One process and what it used, without that of its children, which stand for themselves. A worker of the
/// kernel's (`kworker/0:1-events`) is called by what it does at the moment: all are one.
fn process(id: u32, stat: &str) -> Option<(Process, Used)> {
    let name = &stat[stat.find('(')? + 1..stat.rfind(')')?];
    let name = if name.starts_with("kworker/") { "kworker" } else { name };
    let name: String = name.chars().map(|c| if c.is_control() { '?' } else { c }).collect();
    let (ticks, began) = proc::own_ticks(stat)?;
    let parent = stat[stat.rfind(')')? + 1..].split_ascii_whitespace().nth(1)?.parse().ok()?;
    Some(((id, began), Used { name, ticks, parent }))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Id, begin, name, ticks.
    fn of(processes: &[(u32, u64, &str, u64)]) -> Ticks {
        let one = |(id, began, name, ticks): &(u32, u64, &str, u64)| {
            // each is below the one before it
            ((*id, *began), Used { name: (*name).to_owned(), ticks: *ticks, parent: id - 1 })
        };
        processes.iter().map(one).collect()
    }

    fn busy(name: &str, cores: f64) -> Busy {
        Busy { name: name.into(), cores, is_ours: false }
    }

    fn others(begin: &Ticks, end: &Ticks, seconds: f64, cores: usize) -> Vec<Busy> {
        busiest(begin, end, seconds, cores, &HashSet::new())
    }

    #[test]
    fn what_the_run_started_and_watches_is_its_own_with_all_below_it() {
        let second = rustix::param::clock_ticks_per_second();
        let end = of(&[(10, 1, "shop", 4 * second), (11, 1, "worker", 3 * second), (20, 1, "cargo", second)]);
        let found = busiest(&Ticks::new(), &end, 10.0, 4, &HashSet::from([10]));
        let own: Vec<(&str, bool)> = found.iter().map(|busy| (busy.name.as_str(), busy.is_ours)).collect();
        assert_eq!(own, [("shop", true), ("worker", true), ("cargo", false)]);
        // many of the run's own hide nobody else
        let many: Vec<(u32, u64, String, u64)> =
            (10..20).map(|id| (id, 1, format!("own{id}"), 9 * second)).collect();
        let mut all: Vec<_> =
            many.iter().map(|(id, began, name, ticks)| (*id, *began, name.as_str(), *ticks)).collect();
        all.push((30, 1, "cargo", second));
        let found = busiest(&Ticks::new(), &of(&all), 10.0, 64, &HashSet::from([10]));
        assert_eq!((found.len(), found[3].name.as_str()), (4, "cargo"));
        // a circle ends
        let circle = HashMap::from([((7, 1), Used { name: "x".into(), ticks: second, parent: 7 })]);
        assert!(!busiest(&Ticks::new(), &circle, 1.0, 2, &HashSet::from([9]))[0].is_ours);
    }

    #[test]
    fn another_instance_of_this_program_is_named_with_its_id() {
        let second = rustix::param::clock_ticks_per_second();
        let used = |name: &str, parent| Used { name: name.into(), ticks: second, parent };
        let end = HashMap::from([
            ((7, 1), used("tidemark", 1)),
            ((8, 1), used("tidemark", 1)),
            // the driver that this one started
            ((9, 1), used("tidemark", 6)),
            ((10, 1), used("cargo", 1)),
        ]);
        let roots = HashSet::from([6]);
        let found = busiest(&Ticks::new(), &other_instances(&end, "tidemark", &roots), 10.0, 4, &roots);
        let mut names: Vec<&str> = found.iter().map(|busy| busy.name.as_str()).collect();
        names.sort_unstable();
        assert_eq!(names, ["another tidemark (pid 7)", "another tidemark (pid 8)", "cargo", "tidemark"]);
        assert!(found.iter().all(|busy| busy.is_ours == (busy.name == "tidemark")));
        assert_eq!(other_instances(&end, "", &roots), end);
    }

    #[test]
    fn programs_are_added_up_and_the_busiest_come_first() {
        let second = rustix::param::clock_ticks_per_second();
        let begin =
            of(&[(1, 1, "java", 1_000), (2, 1, "cargo", 7), (5, 1, "gone", 9), (6, 1, "old", 9 * second)]);
        let end = of(&[
            (1, 1, "java", 1_000 + second),
            (2, 1, "cargo", 7 + second / 2),
            (3, 900, "java", second),
            (4, 900, "idle", 0),
            // the same id, another program
            (6, 900, "old", second / 4),
        ]);
        let found = others(&begin, &end, 2.0, 4);
        let names: Vec<&str> = found.iter().map(|busy| busy.name.as_str()).collect();
        assert_eq!(names, ["java", "cargo", "old"]);
        assert!((found[0].cores - 1.0).abs() < 1e-9, "{found:?}");
    }

    #[test]
    fn what_a_process_used_before_does_not_count_whatever_it_is_called_now() {
        let second = rustix::param::clock_ticks_per_second();
        let begin = of(&[(7, 1, "waiting", 600 * second)]);
        let end = of(&[(7, 1, "working", 600 * second + second)]);
        assert_eq!(others(&begin, &end, 2.0, 4), [busy("working", 0.5)]);
        let worker = |stat: &str| process(7, stat).unwrap();
        let numbers = "S 2 0 0 0 -1 0 0 0 0 0 0 300 0 0 20 0 1 0 11 0 0";
        let one = worker(&format!("7 (kworker/0:1-events) {numbers}"));
        assert_eq!(one, worker(&format!("7 (kworker/0:1-mm_percpu_wq) {numbers}")));
        assert_eq!(one, ((7, 11), Used { name: "kworker".into(), ticks: 300, parent: 2 }));
    }

    #[test]
    fn nobody_used_more_cores_than_there_are() {
        let second = rustix::param::clock_ticks_per_second();
        let found = others(&Ticks::new(), &of(&[(1, 5, "new", 9 * second)]), 1.0, 2);
        assert_eq!(found, [busy("new", 2.0)]);
        #[cfg(target_os = "linux")]
        assert!(cores() >= std::thread::available_parallelism().unwrap().get());
    }

    #[test]
    fn this_machine_tells_and_a_name_may_hold_anything() {
        let stat = "42 (a) b\n(c)) S 1 2 3 4 5 6 7 8 9 10 11 12 900 800 0 0 1 0 5 6 7";
        let used = Used { name: "a) b?(c)".to_owned(), ticks: 23, parent: 1 };
        assert_eq!(process(42, stat), Some(((42, 5), used)));
        assert_eq!(process(42, "no stat"), None);
        let mut neighbours = Neighbours::default();
        neighbours.look(0, false);
        neighbours.look(1, true);
        assert!(neighbours.busiest().is_empty());
        neighbours.look(1_000_000, false);
        assert!(neighbours.busiest().len() <= 2 * NAMED);
    }
}
