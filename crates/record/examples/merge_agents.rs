//! What a second of a fleet costs its coordinator: so many agents hand a second over as bytes, with so many labels each, and
//! all of it is read, merged and written into a run directory, as in a run; time is made up. `bench/fleet/run` runs it.
//!
//!   merge_agents [AGENTS [LABELS [SECONDS [REQUESTS [METRICS]]]]]
//!
//! 1000 agents, 20 labels, 20 seconds, 5000 requests of each label, and no metrics of the scenario's own.

use rustix::time::{ClockId, clock_gettime};
use tidemark_record::ledger::Part;
use tidemark_record::{
    Handover, IntervalSums, Outcome, OwnKind, OwnMetric, OwnSeries, RunWriter, Series, ThreadInterval,
    new_histogram,
};

/// Numbers that look random, the same each time: xorshift.
struct Random(u64);

impl Random {
    /// From 0 to 1.
    fn share(&mut self) -> f64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as f64 / (1u64 << 53) as f64
    }
}

/// A second of an agent: response times of a label, and numbers of a metric, spread over two decades around its own.
fn second(agent: u16, (labels, metrics): (u16, u16), requests: u64, random: &mut Random) -> Handover {
    let mut interval = ThreadInterval::empty(agent, 0, 1_000_000);
    interval.in_window = true;
    for label in 0..labels {
        let mut response_time_us = new_histogram();
        for _ in 0..requests {
            let middle = 200.0 * f64::from(1 + label % 10);
            response_time_us.record((middle * 10f64.powf(2.0 * random.share() - 1.0)) as u64);
        }
        interval.series.push(Series {
            label,
            outcome: Outcome::Ok,
            measured: true,
            phase: Some(0),
            service_time_us: response_time_us.clone(),
            response_time_less_lag_us: response_time_us.clone(),
            response_time_us,
            bodies: requests,
            body_bytes: 100 * requests,
        });
    }
    for metric in 0..metrics {
        let mut own = OwnSeries::empty(metric, OwnKind::Histogram);
        (0..requests).for_each(|_| own.add(f64::from(1 + metric) * 10f64.powf(2.0 * random.share())));
        interval.own.push(own);
    }
    interval.offered = requests * u64::from(labels);
    interval.measured_offered = interval.offered;
    for _ in 0..requests {
        interval.lag_us.record((5.0 + 295.0 * random.share()) as u64);
    }
    Handover::Interval(Box::new(interval), Part::new(agent))
}

/// How long this thread was on a core: others may use the machine.
fn core_ms() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 * 1e3 + time.tv_nsec as f64 / 1e6
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut words = std::env::args().skip(1);
    let mut number = |default: u16| words.next().map_or(Ok(default), |word| word.parse());
    let (agents, labels, seconds) = (number(1_000)?, number(20)?, number(20)?);
    let (requests, metrics) = (u64::from(number(5_000)?), number(0)?);
    let names: Vec<String> = (0..labels).map(|label| format!("label {label}")).collect();
    let folder = std::env::temp_dir().join(format!("merge-agents-{}", std::process::id()));
    std::fs::create_dir(&folder)?;
    let mut writer = RunWriter::create(&folder, &names, "")?;
    writer.threads(usize::from(agents));
    let own = |metric| OwnMetric { name: format!("metric {metric}"), ..OwnMetric::default() };
    writer.own_metrics(&(0..metrics).map(own).collect::<Vec<_>>())?;
    let mut sums = IntervalSums::default();
    let mut random = Random(0x9E37_79B9_7F4A_7C15);
    // a few different seconds stand for all: making one costs more than merging it
    let made: Vec<Handover> =
        (0..8).map(|agent| second(agent, (labels, metrics), requests, &mut random)).collect();
    let (mut bytes, mut slowest, mut all) = (0, 0.0f64, 0.0);
    for at_s in 0..u64::from(seconds) {
        let mut handed = Vec::new();
        for agent in 0..agents {
            let Handover::Interval(interval, _) = &made[usize::from(agent) % made.len()] else { continue };
            let mut interval = interval.clone();
            (interval.thread, interval.start_us, interval.end_us) =
                (agent, at_s * 1_000_000, (at_s + 1) * 1_000_000);
            interval.store_shares();
            let mut message = Vec::new();
            Handover::Interval(interval, Part::new(agent)).write(&mut message)?;
            bytes += message.len();
            handed.push(message);
        }
        let began_ms = core_ms();
        for (message, number) in handed.iter().zip(0..) {
            if let Handover::Interval(interval, _) = Handover::packed(message)? {
                sums.add(*interval, number, usize::from(agents))?;
            }
            while let Some(interval) = sums.next_whole() {
                writer.add_interval(&interval)?;
            }
        }
        let took_ms = core_ms() - began_ms;
        slowest = slowest.max(took_ms);
        all += took_ms;
    }
    drop(writer);
    std::fs::remove_dir_all(&folder)?;
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap_or("unknown").trim();
    let seconds = f64::from(seconds);
    println!(
        "{agents} agents with {labels} labels each, {requests} requests of each and {metrics} metrics in a second"
    );
    println!("a second is merged in   {:.0} ms of a core (mean), {slowest:.0} ms (slowest)", all / seconds);
    println!("an agent's second has   {:.1} KiB", bytes as f64 / seconds / f64::from(agents) / 1024.0);
    println!("memory                  {peak} at most");
    Ok(())
}
