//! What the lab sees of each process once a second.

use serde::{Deserialize, Serialize};

use crate::interval::SECOND_US;

/// One look at one process, or at the whole machine (`process` is `machine`).
/// Counters are differences since the look before.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Sample {
    /// Microseconds since the run began.
    pub at_us: u64,
    /// How long before that the look before was, microseconds; 0 in runs of earlier versions, and where nothing was there.
    pub length_us: u64,
    /// Which process: `system`, `driver`, `machine`, a store's name, that of what was watched.
    pub process: String,
    /// CPU used since the look before, in cores (1.0 is one core fully used).
    pub cpu_share: f64,
    /// Of that, in the kernel.
    pub cpu_system_share: f64,
    /// Resident memory, bytes.
    pub rss_bytes: u64,
    /// Threads.
    pub threads: u64,
    /// Voluntary context switches.
    pub voluntary_switches: u64,
    /// Involuntary context switches.
    pub involuntary_switches: u64,
    /// Bytes read from storage.
    pub disk_read_bytes: u64,
    /// Bytes written to storage.
    pub disk_written_bytes: u64,
    /// Bytes received over the network (machine only, all interfaces).
    pub net_received_bytes: u64,
    /// Bytes sent over the network (machine only, all interfaces).
    pub net_sent_bytes: u64,
    /// Cores' worth of time that the hypervisor took away (machine only).
    pub steal_share: f64,
    /// How long its threads, all together, were ready to run but had no core since the look before, as a share of that time;
    /// 0 where the system does not tell.
    pub core_wait_share: f64,
}

impl Sample {
    /// Where the time begins that it is about, microseconds since the run began; `before_us`: when the sample before was taken.
    pub fn begin_us(&self, before_us: Option<u64>) -> u64 {
        let known = (self.length_us > 0).then_some(self.length_us);
        let length_us = known.or_else(|| Some(self.at_us.saturating_sub(before_us?))).unwrap_or(SECOND_US);
        self.at_us.saturating_sub(length_us)
    }

    /// This and another process as one, under this one's name and time.
    pub fn with(mut self, other: &Sample) -> Sample {
        self.cpu_share += other.cpu_share;
        self.cpu_system_share += other.cpu_system_share;
        self.rss_bytes += other.rss_bytes;
        self.threads += other.threads;
        self.voluntary_switches += other.voluntary_switches;
        self.involuntary_switches += other.involuntary_switches;
        self.disk_read_bytes += other.disk_read_bytes;
        self.disk_written_bytes += other.disk_written_bytes;
        self.net_received_bytes += other.net_received_bytes;
        self.net_sent_bytes += other.net_sent_bytes;
        self.core_wait_share += other.core_wait_share;
        self
    }
}
