//! How long the disk takes to sync a small append: what every answer of a `synced` system waits for at least.
//!
//! Measured beside the run, because it varies widely between machines and, on shared ones, between minutes.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use tidemark_record::manifest::SyncLatency;

/// Bytes of one append.
const APPEND_BYTES: usize = 4096;
/// Most syncs of one probe.
const SYNCS_MAX: u64 = 200;
/// Longest time of one probe; a sync that is under way is waited for.
const PROBE_MAX: Duration = Duration::from_secs(1);

/// Syncs of one or more probes.
#[derive(Debug, Clone)]
pub struct SyncProbe {
    path: String,
    latency_us: Histogram<u64>,
}

impl SyncProbe {
    /// Appends 4 KiB and syncs, again and again, in a file of its own in `folder`.
    pub fn measure(folder: &Path) -> io::Result<SyncProbe> {
        let path = folder.join(".sync-probe");
        let result = measure_in(&path);
        // the file is of no use afterwards; that it cannot be removed spoils nothing
        let _ = fs::remove_file(&path);
        Ok(SyncProbe { path: folder.display().to_string(), latency_us: result? })
    }

    /// Adds the syncs of another probe.
    pub fn merge(&mut self, other: &SyncProbe) {
        for value in other.latency_us.iter_recorded() {
            self.latency_us
                .saturating_record_n(value.value_iterated_to(), value.count_since_last_iteration());
        }
    }

    /// Median, microseconds.
    pub fn p50_us(&self) -> u64 {
        self.latency_us.value_at_quantile(0.5)
    }

    /// The figures for the manifest.
    pub fn latency(&self) -> SyncLatency {
        SyncLatency {
            path: self.path.clone(),
            count: self.latency_us.len(),
            p50_us: self.p50_us(),
            p99_us: self.latency_us.value_at_quantile(0.99),
            max_us: self.latency_us.max(),
        }
    }
}

fn measure_in(path: &Path) -> io::Result<Histogram<u64>> {
    let mut latency_us = Histogram::new_with_bounds(1, tidemark_record::HISTOGRAM_HIGH_US, 3)
        .expect("the bounds are constants that hdrhistogram accepts");
    let mut file = File::create(path)?;
    let block = [0x5au8; APPEND_BYTES];
    let begin = Instant::now();
    while latency_us.len() < SYNCS_MAX && begin.elapsed() < PROBE_MAX {
        file.write_all(&block)?;
        let before = Instant::now();
        file.sync_data()?;
        latency_us.saturating_record(u64::try_from(before.elapsed().as_micros()).unwrap_or(u64::MAX).max(1));
    }
    Ok(latency_us)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_probe_syncs_and_leaves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let mut first = SyncProbe::measure(folder.path()).unwrap();
        let second = SyncProbe::measure(folder.path()).unwrap();
        let (one, two) = (first.latency(), second.latency());
        assert!(one.count >= 1 && one.count <= SYNCS_MAX);
        assert!(one.p50_us >= 1 && one.p50_us <= one.p99_us && one.p99_us <= one.max_us);
        first.merge(&second);
        assert_eq!(first.latency().count, one.count + two.count);
        assert_eq!(first.latency().max_us, one.max_us.max(two.max_us));
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_folder_that_is_not_there_is_an_error() {
        assert!(SyncProbe::measure(Path::new("/no/such/folder")).is_err());
    }
}
