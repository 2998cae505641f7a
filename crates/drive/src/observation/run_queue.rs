//! How long a driving thread had no core: the kernel's own account, read by the thread itself.
//!
//! The kernel counts a wait when it is over. Who looks from outside may look while it still goes on, and never see it; a
//! thread that reads its own account is on a core, so that none of its waits is missing then.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

use tidemark_record::CoreWaits;

/// Longest status of a thread that is read, bytes.
const STATUS_BYTES: usize = 8 << 10;

/// The account of one thread. Once open, reading it allocates nothing.
#[derive(Debug, Default)]
pub(crate) struct RunQueue {
    /// None where the system keeps no such account.
    files: Option<Files>,
    before: Reading,
    /// What was waited and belongs to no interval yet.
    carried_ns: u64,
}

#[derive(Debug)]
struct Files {
    schedstat: File,
    status: File,
    text: Box<[u8; STATUS_BYTES]>,
}

/// Since the thread began.
#[derive(Debug, Clone, Copy, Default)]
struct Reading {
    waited_ns: u64,
    sleeps: u64,
}

impl RunQueue {
    /// Of the calling thread, counted from now on.
    pub fn of_this_thread() -> Self {
        RunQueue::open(Path::new("/proc/thread-self"))
    }

    fn open(folder: &Path) -> Self {
        let open = |name| File::open(folder.join(name)).ok();
        let files = open("schedstat").zip(open("status"));
        let files =
            files.map(|(schedstat, status)| Files { schedstat, status, text: Box::new([0; STATUS_BYTES]) });
        let mut queue = RunQueue { files, ..RunQueue::default() };
        match queue.read() {
            Some(reading) => queue.before = reading,
            None => queue.files = None,
        }
        queue
    }

    /// What was waited before counts, too, as far as it can lie within so long: the thread was to be there since.
    pub fn count_before(&mut self, length_ns: u64) {
        self.carried_ns = self.before.waited_ns.min(length_ns);
    }

    /// What belongs to an interval that ended `late_ns` ago: what was waited since the last one. The wait that kept the
    /// thread until now lies right before now, so that as much of it as there was time since the end belongs to the
    /// intervals after it. None where nothing is known, from the first time on that this is so.
    pub fn take(&mut self, late_ns: u64) -> Option<CoreWaits> {
        let Some(now) = self.read() else {
            self.files = None;
            return None;
        };
        let waited_ns = self.carried_ns + now.waited_ns.saturating_sub(self.before.waited_ns);
        let waited_us = waited_ns.saturating_sub(late_ns) / 1_000;
        let sleeps = now.sleeps.saturating_sub(self.before.sleeps);
        self.carried_ns = waited_ns - waited_us * 1_000;
        self.before = now;
        Some(CoreWaits { waited_us, sleeps })
    }

    /// How long it waited so far.
    pub fn waited_ns(&mut self) -> Option<u64> {
        let Files { schedstat, text, .. } = self.files.as_mut()?;
        let length = schedstat.read_at(&mut text[..], 0).ok()?;
        waited_ns(&text[..length])
    }

    fn read(&mut self) -> Option<Reading> {
        let waited_ns = self.waited_ns()?;
        let Files { status, text, .. } = self.files.as_mut()?;
        let length = status.read_at(&mut text[..], 0).ok()?;
        Some(Reading { waited_ns, sleeps: sleeps(&text[..length])? })
    }
}

/// From `schedstat`: nanoseconds on a CPU, nanoseconds ready to run without one, how often it was put on one. A thread that
/// reads this has been put on one: a kernel that keeps no account says 0.
pub(crate) fn waited_ns(text: &[u8]) -> Option<u64> {
    let mut numbers = std::str::from_utf8(text).ok()?.split_ascii_whitespace().map_while(|n| n.parse().ok());
    let (_, waited_ns, slices): (u64, u64, u64) = (numbers.next()?, numbers.next()?, numbers.next()?);
    (slices > 0).then_some(waited_ns)
}

/// From `status`.
pub(crate) fn sleeps(text: &[u8]) -> Option<u64> {
    const KEY: &str = "\nvoluntary_ctxt_switches:";
    let text = std::str::from_utf8(text).ok()?;
    text[text.find(KEY)? + KEY.len()..].lines().next()?.trim().parse().ok()
}

#[cfg(test)]
pub(crate) mod tests {
    use std::fs;

    use super::*;

    const MS: u64 = 1_000_000;

    /// An account that a test writes.
    pub(crate) struct Told(tempfile::TempDir);

    impl Told {
        pub(crate) fn new() -> Told {
            let told = Told(tempfile::tempdir().unwrap());
            told.say(0, 0);
            told
        }

        pub(crate) fn say(&self, waited_ns: u64, sleeps: u64) {
            fs::write(self.0.path().join("schedstat"), format!("77 {waited_ns} 3\n")).unwrap();
            let status = format!(
                "Name:\tdrive-0\nvoluntary_ctxt_switches:\t{sleeps}\nnonvoluntary_ctxt_switches:\t9\n"
            );
            fs::write(self.0.path().join("status"), status).unwrap();
        }

        pub(crate) fn queue(&self) -> RunQueue {
            RunQueue::open(self.0.path())
        }
    }

    fn waits(waited_us: u64, sleeps: u64) -> Option<CoreWaits> {
        Some(CoreWaits { waited_us, sleeps })
    }

    #[test]
    fn a_wait_over_the_end_of_an_interval_is_shared_out_and_nothing_is_lost() {
        let told = Told::new();
        told.say(5 * MS, 1);
        let mut queue = told.queue();
        assert_eq!(queue.take(0), waits(0, 0), "what was before is nobody's");
        told.say(15 * MS + 999, 4);
        assert_eq!(queue.take(0), waits(10_000, 3));
        // 700 ms at once, which ended 400 ms after the interval
        told.say(715 * MS + 1_000, 5);
        assert_eq!(queue.take(400 * MS), waits(300_001, 1));
        assert_eq!(queue.take(0), waits(400_000, 0), "and the nanoseconds left over have counted");
    }

    #[test]
    fn a_wait_over_several_intervals_fills_those_in_the_middle() {
        let told = Told::new();
        let mut queue = told.queue();
        told.say(2_700 * MS, 1);
        let shares =
            [2_500 * MS, 1_500 * MS, 500 * MS, 0].map(|late_ns| queue.take(late_ns).unwrap().waited_us);
        assert_eq!(shares, [200_000, 1_000_000, 1_000_000, 500_000]);
    }

    #[test]
    fn a_thread_that_had_no_core_to_begin_on_waited() {
        let told = Told::new();
        told.say(2_700 * MS, 1);
        let mut queue = told.queue();
        queue.count_before(2_500 * MS);
        let shares = [1_500 * MS, 500 * MS, 0].map(|late_ns| queue.take(late_ns).unwrap().waited_us);
        assert_eq!(shares, [1_000_000, 1_000_000, 500_000]);
        let mut in_time = told.queue();
        in_time.count_before(0);
        assert_eq!(in_time.take(0), waits(0, 0));
    }

    #[test]
    fn late_without_a_wait_takes_nothing_from_anybody() {
        let told = Told::new();
        let mut queue = told.queue();
        assert_eq!(queue.take(800 * MS), waits(0, 0));
        told.say(3 * MS, 2);
        assert_eq!(queue.take(0), waits(3_000, 2));
    }

    #[test]
    fn what_is_not_told_is_not_nothing() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(RunQueue::open(folder.path()).take(0), None);
        let told = Told::new();
        let mut queue = told.queue();
        for odd in ["", "0 0 0\n", "1 2", "x 2 3", "1 -2 3"] {
            fs::write(told.0.path().join("schedstat"), odd).unwrap();
            assert_eq!(told.queue().take(0), None, "{odd:?}");
        }
        assert_eq!(queue.take(0), None);
        told.say(9 * MS, 1);
        assert_eq!(queue.take(0), None, "how long it waited meanwhile is not known");
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn a_threads_own_account_counts_its_sleeps() {
        let mut queue = RunQueue::of_this_thread();
        if queue.files.is_none() {
            return;
        }
        for _ in 0..3 {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        assert!(queue.take(0).unwrap().sleeps >= 3);
    }
}
