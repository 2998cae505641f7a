//! What each process used, on the time axis of the load.

use schemars::JsonSchema;
use serde::Serialize;
use tidemark_record::{Run, Sample};

use crate::bins::{Axis, Values};
use crate::units::round;

/// One process over time. Counts are per second.
#[derive(Debug, Default, Serialize, JsonSchema)]
#[allow(missing_docs)]
pub struct ProcessSeries {
    pub name: String,
    pub cpu_share: Values,
    pub cpu_system_share: Values,
    pub rss_bytes: Values,
    pub threads: Values,
    pub voluntary_switches: Values,
    pub involuntary_switches: Values,
    pub disk_read_bytes: Values,
    pub disk_written_bytes: Values,
    pub net_received_bytes: Values,
    pub net_sent_bytes: Values,
    pub steal_share: Values,
}

/// Every process that was looked at, in order of appearance.
pub(crate) fn over_time(run: &Run, axis: Axis) -> Vec<ProcessSeries> {
    let mut names: Vec<&str> = Vec::new();
    for sample in &run.samples {
        if !names.contains(&sample.process.as_str()) {
            names.push(&sample.process);
        }
    }
    names.into_iter().map(|name| process(run, axis, name)).collect()
}

fn process(run: &Run, axis: Axis, name: &str) -> ProcessSeries {
    let looks = Looks::of(run, axis, name);
    ProcessSeries {
        name: name.to_owned(),
        cpu_share: looks.mean(|sample, _| sample.cpu_share),
        cpu_system_share: looks.mean(|sample, _| sample.cpu_system_share),
        rss_bytes: looks.highest(|sample| sample.rss_bytes),
        threads: looks.highest(|sample| sample.threads),
        voluntary_switches: looks.mean(|sample, s| sample.voluntary_switches as f64 / s),
        involuntary_switches: looks.mean(|sample, s| sample.involuntary_switches as f64 / s),
        disk_read_bytes: looks.mean(|sample, s| sample.disk_read_bytes as f64 / s),
        disk_written_bytes: looks.mean(|sample, s| sample.disk_written_bytes as f64 / s),
        net_received_bytes: looks.mean(|sample, s| sample.net_received_bytes as f64 / s),
        net_sent_bytes: looks.mean(|sample, s| sample.net_sent_bytes as f64 / s),
        steal_share: looks.mean(|sample, _| sample.steal_share),
    }
}

/// For each bin the looks whose time reaches into it: the look, the seconds it is about, the seconds within.
struct Looks<'a> {
    bins: Vec<Vec<(&'a Sample, f64, f64)>>,
}

impl<'a> Looks<'a> {
    fn of(run: &'a Run, axis: Axis, name: &str) -> Looks<'a> {
        let bin_us = axis.bin_s * 1_000_000;
        let mut bins = vec![Vec::new(); axis.bins];
        let mut before_us = None;
        for sample in run.samples.iter().filter(|sample| sample.process == name) {
            let end_us = sample.at_us;
            let start_us = sample.begin_us(before_us).min(end_us);
            before_us = Some(end_us);
            if start_us == end_us {
                continue;
            }
            // A look is about the time since the one before; it seldom ends where a second does.
            for (bin, looks) in
                bins.iter_mut().enumerate().take(axis.bin(end_us) + 1).skip(axis.bin(start_us))
            {
                let bin_start_us = bin as u64 * bin_us;
                let within_us = end_us.min(bin_start_us + bin_us).saturating_sub(start_us.max(bin_start_us));
                if within_us > 0 {
                    looks.push((sample, (end_us - start_us) as f64 / 1e6, within_us as f64 / 1e6));
                }
            }
        }
        Looks { bins }
    }

    /// Mean over each bin, every look weighing as much as its time within.
    fn mean(&self, of: impl Fn(&Sample, f64) -> f64) -> Values {
        let mean = |looks: &Vec<(&Sample, f64, f64)>| {
            let seen_s: f64 = looks.iter().map(|look| look.2).sum();
            let sum: f64 =
                looks.iter().map(|(sample, about_s, within_s)| of(sample, *about_s) * within_s).sum();
            (seen_s > 0.0).then(|| round(sum / seen_s))
        };
        self.bins.iter().map(mean).collect()
    }

    fn highest(&self, of: impl Fn(&Sample) -> u64) -> Values {
        let highest =
            |looks: &Vec<(&Sample, f64, f64)>| looks.iter().map(|look| of(look.0)).max().map(|v| v as f64);
        self.bins.iter().map(highest).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_run;

    #[test]
    fn looks_that_straddle_seconds_make_no_saw_tooth() {
        let (_dir, mut run) = test_run::airline();
        run.samples = [900_000, 2_100_000, 3_000_000, 4_050_000]
            .map(|at_us| Sample { at_us, process: "p".into(), cpu_share: 1.0, ..Sample::default() })
            .to_vec();
        // 100 switches a second throughout, whatever the time between two looks.
        for (sample, length_us) in run.samples.iter_mut().zip([1_000_000u64, 1_200_000, 900_000, 1_050_000]) {
            sample.voluntary_switches = length_us / 10_000;
        }
        let series = over_time(&run, Axis { bin_s: 1, bins: 5 });
        assert_eq!(series.len(), 1);
        // The first look is taken to be about one second; what it is about before the run's begin is left out.
        assert_eq!(series[0].cpu_share[1..4], [Some(1.0); 3]);
        for bin in 1..4 {
            let per_s = series[0].voluntary_switches[bin].unwrap();
            assert!((per_s - 100.0).abs() < 1.0, "{per_s}");
        }
    }
}
