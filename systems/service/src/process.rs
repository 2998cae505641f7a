//! What the process itself uses: processor time, memory, time since its start.

use std::fmt;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;

use crate::encode::gauge;

/// Reads the figures of this process at each scrape.
#[derive(Debug)]
pub(crate) struct Process {
    began: Instant,
    began_unix_s: f64,
}

impl Process {
    pub(crate) fn new() -> Self {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Process { began: Instant::now(), began_unix_s: now.as_secs_f64() }
    }
}

impl Collector for Process {
    fn encode(&self, mut encoder: DescriptorEncoder) -> Result<(), fmt::Error> {
        let cpu = ConstCounter::new(cpu_s());
        let help = "Processor time of the process, user and system, in seconds";
        cpu.encode(encoder.encode_descriptor("process_cpu_seconds", help, None, MetricType::Counter)?)?;
        if let Some(bytes) = resident_bytes() {
            let help = "Memory of the process that is in RAM, in bytes";
            gauge(&mut encoder, "process_resident_memory_bytes", help, bytes)?;
        }
        let start = ConstGauge::new(self.began_unix_s);
        let help = "When the server was started, in seconds since 1970";
        start.encode(encoder.encode_descriptor(
            "process_start_time_seconds",
            help,
            None,
            MetricType::Gauge,
        )?)?;
        let uptime = ConstGauge::new(self.began.elapsed().as_secs_f64());
        let help = "Time since the server was started, in seconds";
        uptime.encode(encoder.encode_descriptor("process_uptime_seconds", help, None, MetricType::Gauge)?)
    }
}

fn cpu_s() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

/// From `/proc`; absent where there is none.
fn resident_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_process_uses_processor_time_and_memory() {
        let mut sum = 0u64;
        while cpu_s() == 0.0 {
            sum = std::hint::black_box(sum + 1);
        }
        assert!(cpu_s() > 0.0);
        if cfg!(target_os = "linux") {
            assert!(resident_bytes().unwrap() > 100_000);
        }
    }
}
