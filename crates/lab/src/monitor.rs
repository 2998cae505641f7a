//! Looks at processes once a second: what they used since the look before.
//!
//! Everything is read from `/proc`, and of a control group from where those are mounted; where there is no `/proc`, [`Monitor::look`] gives no samples and [`Monitor::note`]
//! says so.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::time::Instant;

use rustix::time::{ClockId, clock_gettime};
use tidemark_record::Sample;
pub use tidemark_record::{DRIVER, MACHINE, SYSTEM};

use crate::groups::Group;
use crate::proc;
use crate::timetable::microseconds;

/// Most processes followed below one that was started; further ones are left out.
const PROCESSES_MAX: usize = 256;
/// Most threads whose context switches are summed in one look; further ones are left out.
const THREADS_MAX: usize = 1024;

/// The pause until PSS is read again, as a multiple of how long the last reading took: the kernel walks all pages.
const PSS_PAUSE_FACTOR: u64 = 100;

/// Memory of several processes, in which what they share counts once.
#[derive(Debug, Clone, Copy, Default)]
struct GroupPss {
    bytes: u64,
    /// When it is asked for again.
    next_us: u64,
}

/// Counters since the process began, and sizes right now.
#[derive(Debug, Clone, Copy, Default)]
#[allow(missing_docs)]
pub struct Reading {
    pub cpu_us: u64,
    pub cpu_system_us: u64,
    pub rss_bytes: u64,
    pub threads: u64,
    pub voluntary_switches: u64,
    pub involuntary_switches: u64,
    pub disk_read_bytes: u64,
    pub disk_written_bytes: u64,
    pub net_received_bytes: u64,
    pub net_sent_bytes: u64,
    pub steal_us: u64,
    pub core_wait_us: u64,
}

/// What is looked at under a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Subject {
    /// The whole machine.
    Machine,
    /// Processes with all below them, as one.
    Processes(Vec<u32>),
    /// A control group.
    Group(Group),
}

/// One subject, and what it had used by the last look.
#[derive(Debug)]
struct Looked {
    name: String,
    subject: Subject,
    /// Whether it is not there: down on purpose, and its number nobody's.
    down: bool,
    before: Option<(u64, Reading)>,
    shared: GroupPss,
    /// When it was told of last.
    told_us: Option<u64>,
}

/// Looks at processes and at the machine.
#[derive(Debug)]
pub struct Monitor {
    root: PathBuf,
    all: Vec<Looked>,
    tick_us: u64,
    page_bytes: u64,
}

impl Monitor {
    /// Looks at the machine and at this process, the driver.
    pub fn new() -> Self {
        let mut monitor = Monitor::of_nothing();
        monitor.look_at(DRIVER, Some(Subject::Processes(vec![std::process::id()])));
        monitor.look_at(MACHINE, Some(Subject::Machine));
        monitor
    }

    /// Looks at nothing yet.
    pub fn of_nothing() -> Self {
        Monitor {
            root: PathBuf::from("/proc"),
            all: Vec::new(),
            tick_us: 1_000_000 / rustix::param::clock_ticks_per_second().max(1),
            page_bytes: rustix::param::page_size() as u64,
        }
    }

    /// Looks at a process and all its children from now on, under a name that may have had another one before, which it then
    /// was started in place of: all that it used counts, from when that name was told of last.
    /// None: it is down on purpose, and uses nothing.
    pub fn follow(&mut self, name: &str, process: Option<u32>) {
        let told_us = self.all.iter().find(|looked| looked.name == name).and_then(|looked| looked.told_us);
        self.look_at(name, process.map(|id| Subject::Processes(vec![id])));
        let is_new = |looked: &&mut Looked| looked.name == name && looked.told_us.is_none() && !looked.down;
        if let Some(looked) = self.all.iter_mut().find(is_new) {
            looked.told_us = told_us;
            looked.before = told_us.map(|us| (us, Reading::default()));
        }
    }

    /// Looks at a subject from now on, under a name that may have had another one before. None: it is not there, and uses
    /// nothing.
    pub fn look_at(&mut self, name: &str, subject: Option<Subject>) {
        let looked = |subject| Looked {
            name: name.to_owned(),
            subject,
            down: false,
            before: None,
            shared: GroupPss::default(),
            told_us: None,
        };
        match (self.all.iter_mut().find(|looked| looked.name == name), subject) {
            (Some(known), Some(subject)) if known.subject == subject && !known.down => {}
            (Some(known), Some(subject)) => *known = looked(subject),
            (Some(known), None) => (known.down, known.before) = (true, None),
            (None, Some(subject)) => self.all.push(looked(subject)),
            (None, None) => {}
        }
    }

    /// What a reader of the run must know, where there is nothing to look at.
    pub fn note(&self) -> Option<String> {
        let there = self.root.join("self/stat").exists() || self.root.join("stat").exists();
        (!there).then(|| {
            "no /proc on this system: CPU, memory and network of the processes were not recorded".into()
        })
    }

    /// What everything used since the look before. The first look at a process only sets where it counts from.
    pub fn look(&mut self, at_us: u64) -> Vec<Sample> {
        let mut samples = Vec::with_capacity(self.all.len());
        for index in 0..self.all.len() {
            let looked = &mut self.all[index];
            if looked.down {
                looked.told_us = Some(at_us);
                samples.push(Sample { at_us, process: looked.name.clone(), ..Sample::default() });
                continue;
            }
            let looked = &self.all[index];
            let mut shared = looked.shared;
            let reading = match &looked.subject {
                Subject::Processes(ids) if looked.name == DRIVER => {
                    ids.first().and_then(|id| self.read_ourselves(*id))
                }
                Subject::Processes(ids) => self.read_trees(ids, &mut shared, at_us),
                Subject::Group(group) => self.read_group(group),
                Subject::Machine => self.read_machine(),
            };
            let looked = &mut self.all[index];
            looked.shared = shared;
            looked.told_us = reading.map(|_| at_us).or(looked.told_us);
            let before = std::mem::replace(&mut looked.before, reading.map(|reading| (at_us, reading)));
            if let (Some(before), Some(after)) = (before, looked.before)
                && after.0 > before.0
            {
                samples.push(difference(&looked.name, before, after));
            }
        }
        samples
    }

    /// This process, without those that it started. Its CPU time is read from its own clock: `/proc` counts in ticks,
    /// of which a little load uses none for seconds.
    fn read_ourselves(&self, id: u32) -> Option<Reading> {
        let mut reading = self.read_process(id)?;
        if id == std::process::id() {
            let used = clock_gettime(ClockId::ProcessCPUTime);
            let us = used.tv_sec.saturating_mul(1_000_000).saturating_add(used.tv_nsec / 1_000);
            reading.cpu_us = u64::try_from(us).unwrap_or(0);
        }
        Some(reading)
    }

    /// Processes with all processes below them as one; none where not one of them is there.
    fn read_trees(&self, ids: &[u32], shared: &mut GroupPss, at_us: u64) -> Option<Reading> {
        let mut readings: Vec<(u32, Reading)> = Vec::new();
        let mut queue = ids.to_vec();
        let mut seen = HashSet::new();
        let mut index = 0;
        while index < queue.len() && index < PROCESSES_MAX {
            let id = queue[index];
            index += 1;
            if !seen.insert(id) {
                continue;
            }
            // a child may be gone by now; its time has then gone to its parent's sum
            readings.extend(self.read_process(id).map(|reading| (id, reading)));
            queue.extend(self.children(id));
        }
        if readings.is_empty() {
            return None;
        }
        let mut sum = Reading::default();
        readings.iter().for_each(|(_, reading)| sum.add(reading));
        // one alone shares its memory with nobody here
        if readings.len() > 1 {
            if at_us >= shared.next_us {
                let begin = Instant::now();
                let bytes = |(id, reading): &(u32, Reading)| self.pss_bytes(*id).unwrap_or(reading.rss_bytes);
                shared.bytes = readings.iter().map(bytes).sum();
                shared.next_us =
                    at_us.saturating_add(microseconds(begin.elapsed()).saturating_mul(PSS_PAUSE_FACTOR));
            }
            // what grew since it was asked for is at least that of the largest
            let largest = readings.iter().map(|(_, reading)| reading.rss_bytes).max().unwrap_or(0);
            sum.rss_bytes = shared.bytes.max(largest);
        }
        (sum.net_received_bytes, sum.net_sent_bytes) = self.own_network(ids);
        Some(sum)
    }

    /// A process's memory, with its share of what others have, too (PSS); none where the kernel does not tell.
    fn pss_bytes(&self, id: u32) -> Option<u64> {
        let text = read(&self.root.join(format!("{id}/smaps_rollup")))?;
        Some(proc::keyed(&text, "Pss")?.saturating_mul(1024))
    }

    /// What the first of these sent and received where it has a network of its own, as in a container.
    fn own_network(&self, ids: &[u32]) -> (u64, u64) {
        let namespace = |of: &str| std::fs::read_link(self.root.join(of).join("ns/net")).ok();
        let Some(id) = ids.first() else { return (0, 0) };
        match (namespace("self"), namespace(&id.to_string())) {
            (Some(ours), Some(its)) if ours != its => {
                proc::network_bytes(&read(&self.root.join(format!("{id}/net/dev"))).unwrap_or_default())
            }
            _ => (0, 0),
        }
    }

    /// A control group: what it counts itself, else its processes' sum. Its processes that have ended count as well.
    fn read_group(&self, group: &Group) -> Option<Reading> {
        let ids = group.processes()?;
        let mut reading = Reading::default();
        let readings = ids.iter().take(PROCESSES_MAX).filter_map(|id| self.read_process(*id));
        readings.for_each(|one| reading.add(&one));
        if let Some((cpu_us, cpu_system_us)) = group.cpu_us() {
            (reading.cpu_us, reading.cpu_system_us) = (cpu_us, cpu_system_us);
        }
        reading.rss_bytes = group.memory_bytes().unwrap_or(reading.rss_bytes);
        if let Some((read, written)) = group.disk_bytes() {
            (reading.disk_read_bytes, reading.disk_written_bytes) = (read, written);
        }
        (reading.net_received_bytes, reading.net_sent_bytes) = self.own_network(&ids);
        Some(reading)
    }

    fn read_process(&self, id: u32) -> Option<Reading> {
        let folder = self.root.join(id.to_string());
        let stat = proc::process_stat(&read(&folder.join("stat"))?)?;
        let mut reading = Reading {
            cpu_us: stat.user_ticks.saturating_add(stat.system_ticks).saturating_mul(self.tick_us),
            cpu_system_us: stat.system_ticks.saturating_mul(self.tick_us),
            rss_bytes: stat.rss_pages.saturating_mul(self.page_bytes),
            threads: stat.threads,
            ..Reading::default()
        };
        if let Some(io) = read(&folder.join("io")) {
            reading.disk_read_bytes = proc::keyed(&io, "read_bytes").unwrap_or(0);
            reading.disk_written_bytes = proc::keyed(&io, "write_bytes").unwrap_or(0);
        }
        // those files of a process count its first thread only
        for task in entries(&folder.join("task")).take(THREADS_MAX) {
            let Some(status) = read(&task.join("status")) else { continue };
            let count = |key| proc::keyed(&status, key).unwrap_or(0);
            reading.voluntary_switches += count("voluntary_ctxt_switches");
            reading.involuntary_switches += count("nonvoluntary_ctxt_switches");
            let waited_us = read(&task.join("schedstat")).as_deref().and_then(proc::core_wait_us);
            reading.core_wait_us = reading.core_wait_us.saturating_add(waited_us.unwrap_or(0));
        }
        Some(reading)
    }

    fn children(&self, id: u32) -> Vec<u32> {
        let tasks = entries(&self.root.join(id.to_string()).join("task")).take(THREADS_MAX);
        tasks
            .filter_map(|task| read(&task.join("children")))
            .flat_map(|text| proc::process_ids(&text).collect::<Vec<_>>())
            .collect()
    }

    fn read_machine(&self) -> Option<Reading> {
        let stat = proc::machine_stat(&read(&self.root.join("stat"))?)?;
        let vmstat = read(&self.root.join("vmstat")).unwrap_or_default();
        let paged = |key| proc::keyed(&vmstat, key).unwrap_or(0).saturating_mul(1024);
        let network = proc::network_bytes(&read(&self.root.join("net/dev")).unwrap_or_default());
        Some(Reading {
            cpu_us: stat.user_ticks.saturating_add(stat.system_ticks).saturating_mul(self.tick_us),
            cpu_system_us: stat.system_ticks.saturating_mul(self.tick_us),
            rss_bytes: read(&self.root.join("meminfo"))
                .and_then(|text| proc::memory_used(&text))
                .unwrap_or(0),
            // the kernel does not tell the machine's voluntary switches from the others
            voluntary_switches: stat.switches,
            disk_read_bytes: paged("pgpgin"),
            disk_written_bytes: paged("pgpgout"),
            net_received_bytes: network.0,
            net_sent_bytes: network.1,
            steal_us: stat.steal_ticks.saturating_mul(self.tick_us),
            ..Reading::default()
        })
    }
}

impl Default for Monitor {
    fn default() -> Self {
        Monitor::new()
    }
}

impl Reading {
    fn add(&mut self, other: &Reading) {
        self.cpu_us = self.cpu_us.saturating_add(other.cpu_us);
        self.cpu_system_us = self.cpu_system_us.saturating_add(other.cpu_system_us);
        self.rss_bytes = self.rss_bytes.saturating_add(other.rss_bytes);
        self.threads = self.threads.saturating_add(other.threads);
        self.voluntary_switches = self.voluntary_switches.saturating_add(other.voluntary_switches);
        self.involuntary_switches = self.involuntary_switches.saturating_add(other.involuntary_switches);
        self.disk_read_bytes = self.disk_read_bytes.saturating_add(other.disk_read_bytes);
        self.disk_written_bytes = self.disk_written_bytes.saturating_add(other.disk_written_bytes);
        self.core_wait_us = self.core_wait_us.saturating_add(other.core_wait_us);
    }
}

/// What happened between two readings. A counter that fell (a thread that ended) counts as nothing.
pub fn difference(
    name: &str,
    (before_us, before): (u64, Reading),
    (after_us, after): (u64, Reading),
) -> Sample {
    let elapsed_us = (after_us - before_us) as f64;
    let share = |after: u64, before: u64| after.saturating_sub(before) as f64 / elapsed_us;
    Sample {
        at_us: after_us,
        length_us: after_us - before_us,
        process: name.to_owned(),
        cpu_share: share(after.cpu_us, before.cpu_us),
        cpu_system_share: share(after.cpu_system_us, before.cpu_system_us),
        rss_bytes: after.rss_bytes,
        threads: after.threads,
        voluntary_switches: after.voluntary_switches.saturating_sub(before.voluntary_switches),
        involuntary_switches: after.involuntary_switches.saturating_sub(before.involuntary_switches),
        disk_read_bytes: after.disk_read_bytes.saturating_sub(before.disk_read_bytes),
        disk_written_bytes: after.disk_written_bytes.saturating_sub(before.disk_written_bytes),
        net_received_bytes: after.net_received_bytes.saturating_sub(before.net_received_bytes),
        net_sent_bytes: after.net_sent_bytes.saturating_sub(before.net_sent_bytes),
        steal_share: share(after.steal_us, before.steal_us),
        core_wait_share: share(after.core_wait_us, before.core_wait_us),
    }
}

fn read(path: &Path) -> Option<String> {
    std::fs::read(path).ok().map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
}

fn entries(folder: &Path) -> impl Iterator<Item = PathBuf> + use<> {
    std::fs::read_dir(folder).into_iter().flatten().filter_map(|entry| Some(entry.ok()?.path()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn write_process(root: &Path, id: u32, user_ticks: u64, children: &str) {
        let task = root.join(format!("{id}/task/{id}"));
        fs::create_dir_all(&task).unwrap();
        let stat = format!("{id} (x y) S 1 1 1 0 -1 0 0 0 0 0 {user_ticks} 10 0 0 20 0 3 0 1 1 50 1");
        fs::write(root.join(format!("{id}/stat")), stat).unwrap();
        fs::write(root.join(format!("{id}/io")), "read_bytes: 4096\nwrite_bytes: 100\n").unwrap();
        fs::write(task.join("status"), "voluntary_ctxt_switches: 7\nnonvoluntary_ctxt_switches: 2\n")
            .unwrap();
        fs::write(task.join("schedstat"), format!("5 {} 9\n", user_ticks * 4_000_000)).unwrap();
        fs::write(task.join("children"), children).unwrap();
    }

    fn fake(root: &Path) -> Monitor {
        Monitor { root: root.to_owned(), all: Vec::new(), tick_us: 10_000, page_bytes: 4096 }
    }

    #[test]
    fn what_the_driver_uses_is_seen_below_a_tick() {
        let thread_us = || {
            let used = clock_gettime(ClockId::ThreadCPUTime);
            used.tv_sec * 1_000_000 + used.tv_nsec / 1_000
        };
        let mut monitor = Monitor::new();
        monitor.look(0);
        for at_us in 1..=20u64 {
            let begin = thread_us();
            while thread_us() - begin < 500 {
                std::hint::black_box(at_us);
            }
            let samples = monitor.look(at_us * 1_000_000);
            let driver = samples.iter().find(|sample| sample.process == DRIVER).expect("a sample");
            assert!(driver.cpu_share >= 500e-6, "half a millisecond in a second: {}", driver.cpu_share);
        }
    }

    #[test]
    fn a_process_and_its_children_are_one() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        write_process(root, 10, 100, "11 ");
        write_process(root, 11, 0, "12 99");
        write_process(root, 12, 0, "");
        let mut monitor = fake(root);
        monitor.follow("system", Some(10));
        assert!(monitor.look(1_000_000).is_empty(), "the first look only sets the base");
        write_process(root, 10, 150, "11 ");
        write_process(root, 12, 50, "");
        let samples = monitor.look(2_000_000);
        assert_eq!(samples.len(), 1);
        let sample = &samples[0];
        assert_eq!(sample.process, "system");
        assert!(
            (sample.cpu_share - 1.0).abs() < 1e-9,
            "50 + 50 ticks of 10 ms in a second: {}",
            sample.cpu_share
        );
        assert_eq!(sample.cpu_system_share, 0.0);
        assert!(
            (sample.core_wait_share - 0.4).abs() < 1e-9,
            "50 + 50 times 4 ms: {}",
            sample.core_wait_share
        );
        assert_eq!((sample.threads, sample.rss_bytes), (9, 3 * 50 * 4096));
    }

    #[test]
    fn memory_that_processes_of_a_group_share_counts_once() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        write_process(root, 10, 0, "11 12");
        write_process(root, 11, 0, "");
        write_process(root, 12, 0, "");
        write_process(root, 20, 0, "");
        let pss = |id: u32, kib: u64| {
            let text = format!(
                "55d0-7ffe ---p 00000000 00:00 0   [rollup]\nRss:   200 kB\nPss:   {kib} kB\nPss_Dirty: 1 kB\n"
            );
            fs::write(root.join(format!("{id}/smaps_rollup")), text).unwrap();
        };
        [(10, 30), (11, 20), (20, 7)].iter().for_each(|(id, kib)| pss(*id, *kib));
        let mut monitor = fake(root);
        monitor.follow("group", Some(10));
        monitor.follow("one", Some(20));
        monitor.look(0);
        let samples = monitor.look(1_000_000);
        // of the third nobody tells: it counts whole
        assert_eq!(samples[0].rss_bytes, (30 + 20) * 1024 + 50 * 4096);
        assert_eq!(samples[1].rss_bytes, 50 * 4096, "one process is asked for nothing more");
        monitor.all[0].shared.next_us = 3_000_000;
        pss(10, 60);
        assert_eq!(monitor.look(2_000_000)[0].rss_bytes, samples[0].rss_bytes, "not yet asked again");
        assert_eq!(monitor.look(3_000_000)[0].rss_bytes, (60 + 20) * 1024 + 50 * 4096);
    }

    #[test]
    fn several_processes_are_one_and_none_counts_twice() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        write_process(root, 10, 0, "11");
        write_process(root, 11, 0, "");
        write_process(root, 20, 0, "");
        let mut monitor = fake(root);
        monitor.look_at("x", Some(Subject::Processes(vec![10, 11, 20, 99])));
        monitor.look(0);
        [10, 11, 20].iter().for_each(|id| write_process(root, *id, 50, if *id == 10 { "11" } else { "" }));
        let sample = monitor.look(1_000_000).remove(0);
        assert!((sample.cpu_share - 1.5).abs() < 1e-9, "{}", sample.cpu_share);
        assert_eq!(sample.threads, 9);
    }

    #[test]
    fn a_process_with_a_network_of_its_own_has_its_traffic() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        write_process(root, 10, 0, "");
        fs::create_dir_all(root.join("self/ns")).unwrap();
        fs::create_dir_all(root.join("10/ns")).unwrap();
        fs::create_dir_all(root.join("10/net")).unwrap();
        std::os::unix::fs::symlink("net:[1]", root.join("self/ns/net")).unwrap();
        std::os::unix::fs::symlink("net:[2]", root.join("10/ns/net")).unwrap();
        let write = |bytes: u64| {
            fs::write(root.join("10/net/dev"), format!("eth0: {bytes} 0 0 0 0 0 0 0 5 0\n")).unwrap();
        };
        let mut monitor = fake(root);
        monitor.follow("x", Some(10));
        write(100);
        monitor.look(0);
        write(350);
        let sample = monitor.look(1_000_000).remove(0);
        assert_eq!((sample.net_received_bytes, sample.net_sent_bytes), (250, 0));
        fs::remove_file(root.join("10/ns/net")).unwrap();
        std::os::unix::fs::symlink("net:[1]", root.join("10/ns/net")).unwrap();
        monitor.look(2_000_000);
        write(900);
        assert_eq!(monitor.look(3_000_000)[0].net_received_bytes, 0, "that is the machine's");
    }

    #[test]
    fn a_process_that_is_gone_gives_nothing_and_one_that_loops_ends() {
        let folder = tempfile::tempdir().unwrap();
        let mut monitor = fake(folder.path());
        write_process(folder.path(), 10, 1, "10 10");
        monitor.follow("system", Some(10));
        monitor.look(1);
        assert_eq!(monitor.look(2).len(), 1);
        fs::remove_dir_all(folder.path().join("10")).unwrap();
        assert!(monitor.look(3).is_empty());
        assert!(monitor.note().is_some());
    }

    #[test]
    fn a_name_is_followed_over_a_restart() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        write_process(root, 10, 100, "");
        write_process(root, 20, 20, "");
        let mut monitor = fake(root);
        monitor.follow("system", None);
        monitor.follow("system", Some(10));
        monitor.look(1_000_000);
        monitor.follow("system", None);
        let down = monitor.look(2_000_000);
        assert_eq!((down[0].process.as_str(), down[0].rss_bytes, down[0].cpu_share), ("system", 0, 0.0));
        monitor.follow("system", Some(20));
        let up = monitor.look(3_000_000);
        assert!(
            (up[0].cpu_share - 0.3).abs() < 1e-9,
            "all of it, as it was started since: {}",
            up[0].cpu_share
        );
        write_process(root, 20, 70, "");
        monitor.follow("system", Some(20));
        let up = monitor.look(4_000_000);
        assert!((up[0].cpu_share - 0.5).abs() < 1e-9, "{}", up[0].cpu_share);
        // one that nobody saw down, and looks that saw neither of them
        fs::remove_dir_all(root.join("20")).unwrap();
        monitor.follow("system", Some(20));
        assert!(monitor.look(5_000_000).is_empty());
        write_process(root, 30, 90, "");
        monitor.follow("system", Some(30));
        let up = monitor.look(6_000_000);
        assert!((up[0].cpu_share - 0.5).abs() < 1e-9, "a second in two: {}", up[0].cpu_share);
    }

    #[test]
    fn the_machine_counts_steal_and_network() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        fs::create_dir_all(root.join("net")).unwrap();
        let write = |ticks: u64, bytes: u64| {
            fs::write(root.join("stat"), format!("cpu  {ticks} 0 0 0 0 0 0 {ticks}\nctxt {ticks}\n"))
                .unwrap();
            fs::write(root.join("net/dev"), format!("lo: {bytes} 0 0 0 0 0 0 0 {bytes} 0\n")).unwrap();
            fs::write(root.join("vmstat"), format!("pgpgin {bytes}\npgpgout 0\n")).unwrap();
        };
        let mut monitor = fake(root);
        monitor.look_at(MACHINE, Some(Subject::Machine));
        write(100, 1000);
        monitor.look(0);
        write(300, 3000);
        let sample = monitor.look(1_000_000).remove(0);
        assert!((sample.cpu_share - 2.0).abs() < 1e-9 && (sample.steal_share - 2.0).abs() < 1e-9);
        assert_eq!((sample.net_received_bytes, sample.net_sent_bytes), (2000, 2000));
        assert_eq!((sample.voluntary_switches, sample.disk_read_bytes), (200, 2000 * 1024));
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn this_process_and_this_machine_are_seen() {
        let mut monitor = Monitor::new();
        monitor.look(0);
        let samples = monitor.look(1_000_000);
        let names: Vec<&str> = samples.iter().map(|sample| sample.process.as_str()).collect();
        assert_eq!(names, [DRIVER, MACHINE]);
        assert!(samples.iter().all(|sample| sample.rss_bytes > 0));
        assert!(monitor.note().is_none());
    }
}
