//! What a run came to so far, for whoever shows it elsewhere.

use std::collections::BTreeMap;
use std::time::SystemTime;

use tidemark_record::manifest::Phase;
use tidemark_record::summary::Status;
use tidemark_record::{
    Counter, Counters, Event, Facts, Live, Manifest, Merged, MergedInterval, Outcome, OwnKind, OwnMetric,
    OwnValues, PartTimes, RecordError, Sample, Sink, merge_merged, new_merged,
};

use super::family::{Family, Kind, Unit, Value};

/// Kinds of events that are counted apart; more are counted as one.
const EVENT_KINDS_MAX: usize = 32;
/// Of the scenario's own metrics these are shown, as text and as a share.
const OWN_QUANTILES: [(&str, f64); 4] = [("0.5", 0.5), ("0.9", 0.9), ("0.99", 0.99), ("1", 1.0)];
/// Processes that are shown.
const PROCESSES_MAX: usize = 256;
/// So long after it was last seen a process is shown, microseconds: not all are looked at in the same moment.
const SHOWN_US: u64 = 1_900_000;

/// Everything that was handed over since the run began, added up; cleared when another run begins.
#[derive(Default)]
pub struct Figures {
    run: RunFacts,
    /// By label, outcome, and whether they were due within the measured window.
    requests: BTreeMap<(u16, Outcome, bool), u64>,
    /// By label.
    times: Vec<Times>,
    /// What the scenario measures itself, by the metric's index.
    own: BTreeMap<u16, OwnValues>,
    lag_us: Option<Merged>,
    dropped: u64,
    measured_dropped: u64,
    counters: Counters,
    cpu_us_by_thread: Vec<u64>,
    last: Live,
    processes: BTreeMap<String, Sample>,
    events: BTreeMap<String, u64>,
    verdict: Option<Status>,
}

/// What the run is.
#[derive(Debug, Clone, Default)]
pub(crate) struct RunFacts {
    pub name: String,
    pub id: String,
    pub version: String,
    /// When its load began; none before.
    pub began: Option<SystemTime>,
    labels: Vec<String>,
    /// Of each label.
    tags: Vec<BTreeMap<String, String>>,
    metrics: Vec<OwnMetric>,
    phases: Vec<Phase>,
}

/// Times of one label's requests, warm-up included.
struct Times {
    response_us: Merged,
    service_us: Merged,
    /// Where the time of good answers went, as far as it was seen.
    parts: PartTimes,
    failed: u64,
}

impl Times {
    fn none() -> Times {
        Times { response_us: new_merged(), service_us: new_merged(), parts: PartTimes::default(), failed: 0 }
    }
}

impl Figures {
    /// What the run is.
    pub(crate) fn run(&self) -> &RunFacts {
        &self.run
    }

    /// Every metric, in the order in which it is shown.
    pub(crate) fn families(&self) -> Vec<Family<'_>> {
        let mut families = vec![self.info()];
        families.extend(self.counters());
        families.extend(self.histograms());
        families.extend(self.own());
        families.extend(self.gauges());
        families.extend(self.of_processes());
        families
    }

    fn info(&self) -> Family<'_> {
        let RunFacts { name, id, version, .. } = &self.run;
        let labels = vec![("name", name.clone()), ("run", id.clone()), ("version", version.clone())];
        Family::new("run", Unit::None, Kind::Info, "The run that is on").each([(labels, Value::Int(1))])
    }

    fn label(&self, label: u16) -> String {
        self.run.labels.get(usize::from(label)).cloned().unwrap_or_default()
    }

    fn tags(&self, label: u16) -> &BTreeMap<String, String> {
        static NONE: BTreeMap<String, String> = BTreeMap::new();
        self.run.tags.get(usize::from(label)).unwrap_or(&NONE)
    }

    fn counters(&self) -> Vec<Family<'_>> {
        let counter = |name, unit, help| Family::new(name, unit, Kind::Counter, help);
        let counted = |counter| Value::Int(self.counters[counter]);
        let requests = self.requests.iter().map(|((label, outcome, measured), count)| {
            let labels = vec![
                ("label", self.label(*label)),
                ("outcome", outcome.name().to_owned()),
                ("measured", measured.to_string()),
            ];
            (labels, self.tags(*label), Value::Int(*count))
        });
        let unmeasured = self.dropped.saturating_sub(self.measured_dropped);
        let drops = [("true", self.measured_dropped), ("false", unmeasured)];
        let drops = drops.map(|(measured, count)| (vec![("measured", measured.into())], Value::Int(count)));
        let events =
            self.events.iter().map(|(kind, count)| (vec![("kind", kind.clone())], Value::Int(*count)));
        vec![
            counter(
                "requests",
                Unit::None,
                "Requests that ended, by outcome, and whether they were due in the measured window",
            )
            .each_tagged(requests),
            counter("dropped", Unit::None, "Arrivals given up because a bound was reached").each(drops),
            counter("sent", Unit::Bytes, "Bytes written to sockets").one(counted(Counter::SentBytes)),
            counter("received", Unit::Bytes, "Bytes read from sockets").one(counted(Counter::ReceivedBytes)),
            counter("encoded", Unit::Bytes, "Bytes of bodies that were decoded, as they came")
                .one(counted(Counter::EncodedBytes)),
            counter("decoded", Unit::Bytes, "Bytes of the same bodies once decoded")
                .one(counted(Counter::DecodedBytes)),
            counter("connects", Unit::None, "Connections made").one(counted(Counter::Connects)),
            counter(
                "events",
                Unit::None,
                "What happened to the run, by kind; fault and healed are what was broken on purpose",
            )
            .each(events),
        ]
    }

    fn histograms(&self) -> Vec<Family<'_>> {
        let histogram = |name, help| Family::new(name, Unit::Seconds, Kind::Histogram, help);
        let of = |times: fn(&Times) -> &Merged| {
            let points =
                (0..).zip(&self.times).zip(&self.run.labels).map(move |((index, of_label), label)| {
                    let value = Value::Times { good_us: times(of_label), failed: of_label.failed };
                    (vec![("label", label.clone())], self.tags(index), value)
                });
            points.collect::<Vec<_>>()
        };
        let seen = |part: fn(&PartTimes) -> &Merged| {
            let all = self
                .times
                .iter()
                .zip(&self.run.labels)
                .map(move |(of_label, label)| (part(&of_label.parts), label));
            let seen = all.filter(|(times, _)| !times.is_empty());
            seen.map(|(good_us, label)| (vec![("label", label.clone())], Value::Times { good_us, failed: 0 }))
                .collect::<Vec<_>>()
        };
        let lag = self.lag_us.as_ref().map(|good_us| (Vec::new(), Value::Times { good_us, failed: 0 }));
        vec![
            histogram("response_time", "From when a request was due to the last byte of its answer")
                .each_tagged(of(|times| &times.response_us)),
            histogram("service_time", "From the first byte of a request to the last byte of its answer")
                .each_tagged(of(|times| &times.service_us)),
            histogram(
                "connect_time",
                "Until the socket of a connection was there that was made for a request",
            )
            .each(seen(|parts| &parts.connect_us)),
            histogram("handshake_time", "What was spoken on such a connection first: TLS, a greeting")
                .each(seen(|parts| &parts.handshake_us)),
            histogram(
                "transfer_time",
                "From the first byte received to the last, of answers that came in pieces",
            )
            .each(seen(|parts| &parts.transfer_us)),
            histogram("driver_lag", "How late the load generator sent requests").each(lag),
        ]
    }

    /// What the scenario measures itself.
    fn own(&self) -> Vec<Family<'_>> {
        type Labels = Vec<(&'static str, String)>;
        let all = || {
            let metrics = self.own.iter();
            metrics.filter_map(|(index, of)| Some((self.run.metrics.get(usize::from(*index))?, of)))
        };
        let labels = |metric: &OwnMetric| -> Labels {
            vec![("metric", metric.name.clone()), ("unit", metric.unit.clone())]
        };
        let each = |kind, value: fn(&OwnValues) -> Value<'static>| {
            let of_kind = all().filter(move |(metric, _)| metric.kind == kind);
            of_kind.map(|(metric, of)| (labels(metric), value(of))).collect::<Vec<_>>()
        };
        let without = all().filter(|(_, of)| of.no_number > 0);
        let quantiles = all().flat_map(|(metric, of)| {
            OWN_QUANTILES.into_iter().filter_map(move |(text, share)| {
                let mut labels = labels(metric);
                labels.push(("quantile", text.to_owned()));
                Some((labels, Value::Float(of.quantile(share)?)))
            })
        });
        let counter = |name, help| Family::new(name, Unit::None, Kind::Counter, help);
        vec![
            counter("own_counter", "What a counter of the scenario's own counted")
                .each(each(OwnKind::Counter, |of| Value::Float(of.sum))),
            counter("own_numbers", "How many numbers of a metric of the scenario's own were measured")
                .each(each(OwnKind::Histogram, |of| Value::Int(of.count))),
            counter("own_sum", "All of these numbers together")
                .each(each(OwnKind::Histogram, |of| Value::Float(of.sum))),
            Family::new("own_quantile", Unit::None, Kind::Gauge, "Percentiles of these numbers")
                .each(quantiles.collect::<Vec<_>>()),
            counter("own_no_number", "How often there was no number where one was to be measured").each(
                without.map(|(metric, of)| (labels(metric), Value::Int(of.no_number))).collect::<Vec<_>>(),
            ),
        ]
    }

    fn gauges(&self) -> Vec<Family<'_>> {
        let gauge = |name, help| Family::new(name, Unit::None, Kind::Gauge, help);
        let Live { offered_per_s, achieved_per_s, in_flight, waiting, connections, .. } = self.last;
        let phase = self.phase().map(|phase| {
            let labels = vec![
                ("phase", phase.name.clone()),
                ("level", phase.level.clone()),
                ("measured", phase.measured.to_string()),
            ];
            (labels, Value::Int(1))
        });
        let verdict = self.verdict.map(|status| {
            let status = match status {
                Status::Pass => "pass",
                Status::Fail => "fail",
                Status::Invalid => "invalid",
            };
            (vec![("status", status.to_owned())], Value::Int(1))
        });
        vec![
            gauge("offered_per_second", "Requests that became due in the last second")
                .one(Value::Float(offered_per_s)),
            gauge("achieved_per_second", "Good answers in the last second").one(Value::Float(achieved_per_s)),
            gauge("in_flight", "Requests under way").one(Value::Int(in_flight)),
            gauge("waiting", "Arrivals that wait for a connection").one(Value::Int(waiting)),
            gauge("connections", "Connections open").one(Value::Int(connections)),
            gauge("phase", "The phase of the load that is on").each(phase),
            gauge("verdict", "What the run is worth, once it is over").each(verdict),
        ]
    }

    fn of_processes(&self) -> Vec<Family<'_>> {
        let each = |value: fn(&Sample) -> Value<'static>| {
            let points = self.processes.iter();
            points
                .map(move |(name, sample)| (vec![("process", name.clone())], value(sample)))
                .collect::<Vec<_>>()
        };
        let threads = self
            .cpu_us_by_thread
            .iter()
            .enumerate()
            .map(|(thread, us)| (vec![("thread", thread.to_string())], Value::Float(*us as f64 / 1e6)));
        vec![
            Family::new("driver_thread_cpu", Unit::Seconds, Kind::Counter, "CPU time of each driving thread")
                .each(threads),
            Family::new(
                "process_cpu_cores",
                Unit::None,
                Kind::Gauge,
                "CPU use in cores: driver, system, stores, machine",
            )
            .each(each(|sample| Value::Float(sample.cpu_share))),
            Family::new("process_resident_memory", Unit::Bytes, Kind::Gauge, "Resident memory of the same")
                .each(each(|sample| Value::Int(sample.rss_bytes))),
        ]
    }

    /// The phase that the last second lay in; none before the load and after the run.
    fn phase(&self) -> Option<&Phase> {
        let at_us = (self.last.at_s * 1e6) as u64;
        let phases = self.run.phases.iter().rev().filter(|_| self.verdict.is_none());
        phases.into_iter().find(|phase| phase.start_us < at_us.max(1))
    }
}

impl Sink for Figures {
    fn begin(&mut self, facts: &Facts<'_>) -> Result<(), RecordError> {
        let Manifest { scenario, id, version, labels, metrics, phases, .. } = facts.manifest;
        if *id != self.run.id {
            *self = Figures::default();
            self.times = labels.iter().map(|_| Times::none()).collect();
            self.events = [("fault".into(), 0), ("healed".into(), 0)].into();
        }
        self.run = RunFacts {
            name: scenario.clone(),
            id: id.clone(),
            version: version.clone(),
            began: facts.anchor,
            labels: labels.clone(),
            tags: facts.manifest.tags(),
            metrics: metrics.clone(),
            phases: phases.clone(),
        };
        Ok(())
    }

    fn interval(&mut self, interval: &MergedInterval) -> Result<(), RecordError> {
        for ((label, outcome, due), times) in &interval.series {
            let count = times.response_time_us.len();
            *self.requests.entry((*label, *outcome, due.measured)).or_default() += count;
            let Some(of_label) = self.times.get_mut(usize::from(*label)) else { continue };
            if outcome.is_error() {
                of_label.failed += count;
            } else {
                merge_merged(&mut of_label.response_us, &times.response_time_us);
                merge_merged(&mut of_label.service_us, &times.service_time_us);
            }
        }
        for ((label, _), of) in &interval.parts {
            if let Some(of_label) = self.times.get_mut(usize::from(*label)) {
                of_label.parts.add_times(of);
            }
        }
        for (metric, of) in &interval.own {
            self.own.entry(*metric).or_default().add_values(of);
        }
        if let Some(lag_us) = &interval.lag_us {
            merge_merged(self.lag_us.get_or_insert_with(new_merged), lag_us);
        }
        self.dropped += interval.dropped;
        self.measured_dropped += interval.measured_dropped;
        self.counters += &interval.counters;
        if self.cpu_us_by_thread.len() < interval.cpu_us_by_thread.len() {
            self.cpu_us_by_thread.resize(interval.cpu_us_by_thread.len(), 0);
        }
        for (sum, us) in self.cpu_us_by_thread.iter_mut().zip(&interval.cpu_us_by_thread) {
            *sum += us;
        }
        Ok(())
    }

    fn second(&mut self, second: &Live) -> Result<(), RecordError> {
        self.last = second.clone();
        Ok(())
    }

    fn samples(&mut self, samples: &[Sample]) -> Result<(), RecordError> {
        let kept = samples.iter().take(PROCESSES_MAX);
        self.processes.extend(kept.map(|sample| (sample.process.clone(), sample.clone())));
        // one that is gone is not shown any more
        let newest_us = self.processes.values().map(|sample| sample.at_us).max().unwrap_or(0);
        self.processes.retain(|_, sample| sample.at_us + SHOWN_US >= newest_us);
        Ok(())
    }

    fn event(&mut self, event: &Event) -> Result<(), RecordError> {
        let known = self.events.contains_key(&event.kind) || self.events.len() < EVENT_KINDS_MAX;
        let kind = if known { event.kind.clone() } else { "(other)".into() };
        *self.events.entry(kind).or_default() += 1;
        Ok(())
    }

    fn end(&mut self, manifest: &Manifest) -> Result<(), RecordError> {
        self.verdict = Some(manifest.summary.verdict.status);
        // nothing is under way any more
        self.last = Live::default();
        Ok(())
    }
}
