//! What many drivers hand over of the same interval, added up as it comes: a fleet of a thousand agents costs its coordinator
//! little more than one agent.

use crate::frame::SERIES_MAX;
use crate::interval::{PhaseCounts, Series, ThreadInterval};
use crate::merge::Pending;
use crate::totals::{LabelStart, keep_first};
use crate::{OwnSeries, Packed, PartSeries, new_histogram};

/// Intervals that may wait for slower drivers. Whoever is slower yet is told of apart.
const WAITING_MAX: usize = 2;

/// Intervals that wait until all drivers have handed them over.
#[derive(Debug, Default)]
pub struct IntervalSums(Pending<(u64, u64, bool), Sum>);

#[derive(Debug)]
struct Sum {
    interval: ThreadInterval,
    /// The message that came first of those that it is made of.
    from: u64,
}

impl IntervalSums {
    /// Adds what came in the message of this number. `threads`: how many tell of each interval.
    ///
    /// # Errors
    /// Where there are more series than an interval may have; nothing is added then.
    pub fn add(
        &mut self,
        interval: ThreadInterval<Packed<'_>>,
        message: u64,
        threads: usize,
    ) -> Result<(), String> {
        let ThreadInterval { thread, start_us, end_us, in_window, .. } = interval;
        let new = || {
            let empty = ThreadInterval::empty(thread, start_us, end_us);
            Sum { interval: ThreadInterval { in_window, ..empty }, from: message }
        };
        let mut added = Ok(());
        self.0.add((start_us, end_us, in_window), new, |sum| {
            added = sum.interval.add(interval);
            sum.interval.shares.len() >= threads
        });
        added
    }

    /// The next interval that waits no longer: all threads have told of it or of a later one, or too many wait.
    pub fn next_whole(&mut self) -> Option<ThreadInterval> {
        self.0.take_whole(WAITING_MAX).map(|sum| sum.interval)
    }

    /// The first interval, whole or not.
    pub fn take_first(&mut self) -> Option<ThreadInterval> {
        self.0.take_first().map(|sum| sum.interval)
    }

    /// The first message that is part of an interval which waits.
    pub fn first_message(&self) -> Option<u64> {
        self.0.waiting().map(|sum| sum.from).min()
    }
}

impl ThreadInterval {
    /// Adds what others did in the same interval, [kept apart](ThreadInterval::store_shares).
    fn add(&mut self, more: ThreadInterval<Packed<'_>>) -> Result<(), String> {
        // every field by name: one that is added has to be thought of here
        let ThreadInterval {
            thread: _,
            start_us: _,
            end_us: _,
            in_window: _,
            series,
            groups,
            own,
            parts,
            offered,
            offered_earlier,
            measured_offered,
            dropped,
            measured_dropped,
            by_phase,
            waiting,
            in_flight,
            open_by_label,
            sessions_begun,
            lost_time,
            counters,
            unconnected,
            connections,
            lag_us,
            unmeasured_lag_us,
            read_lag_us,
            // of each thread, in its share
            cpu_us: _,
            core_waits: _,
            absent_us: _,
            mut examples,
            statuses,
            ledger: _,
            quiet: _,
            failed_us,
            last_good_us: _,
            shares,
            label_starts,
        } = more;
        let (of, of_packed) = (Series::key, Series::key);
        let lengths = [
            length(&self.series, &series, (of, of_packed)),
            length(&self.groups, &groups, (of, of_packed)),
            length(&self.own, &own, (OwnSeries::key, OwnSeries::key)),
            length(&self.parts, &parts, (PartSeries::key, PartSeries::key)),
        ];
        if lengths.into_iter().any(|length| length > SERIES_MAX) {
            return Err(format!("an interval has more than {SERIES_MAX} series"));
        }
        add_each(&mut self.series, &series, (of, of_packed), Series::empty_as, Series::add);
        add_each(&mut self.groups, &groups, (of, of_packed), Series::empty_as, Series::add);
        let own_key = (OwnSeries::key, OwnSeries::key);
        add_each(&mut self.own, &own, own_key, OwnSeries::empty_as, OwnSeries::add_series);
        let new = |of: &PartSeries<Packed<'_>>| PartSeries::empty(of.label, of.measured);
        add_each(&mut self.parts, &parts, (PartSeries::key, PartSeries::key), new, PartSeries::add);
        self.offered += offered;
        add_counts(&mut self.offered_earlier, &offered_earlier);
        self.measured_offered += measured_offered;
        self.dropped += dropped;
        self.measured_dropped += measured_dropped;
        let phase = |of: &PhaseCounts| of.phase;
        let new = |of: &PhaseCounts| PhaseCounts { phase: of.phase, offered: 0, dropped: 0 };
        add_each(&mut self.by_phase, &by_phase, (phase, phase), new, |known, more| {
            known.offered += more.offered;
            known.dropped += more.dropped;
        });
        self.waiting += waiting;
        self.in_flight += in_flight;
        add_counts(&mut self.open_by_label, &open_by_label);
        add_counts(&mut self.sessions_begun, &sessions_begun);
        self.lost_time.add(&lost_time);
        self.counters += &counters;
        add_counts(&mut self.unconnected, &unconnected);
        self.connections += connections;
        self.lag_us.add_packed(lag_us);
        self.unmeasured_lag_us.add_packed(unmeasured_lag_us);
        self.read_lag_us.add_packed(read_lag_us);
        self.examples.append(&mut examples);
        keep_first(&mut self.examples);
        add_counts(&mut self.statuses, &statuses);
        self.failed_us = match (self.failed_us, failed_us) {
            (Some((first, last)), Some((other, latest))) => Some((first.min(other), last.max(latest))),
            (known, other) => known.or(other),
        };
        self.shares.extend(shares);
        let label = |of: &(u16, LabelStart)| of.0;
        let new = |of: &(u16, LabelStart)| (of.0, LabelStart::default());
        add_each(&mut self.label_starts, &label_starts, (label, label), new, |known, more| {
            known.1.add(more.1)
        });
        Ok(())
    }
}

/// How many there would be with more of them.
fn length<S, M, K: Ord>(
    sum: &[S],
    more: &[M],
    (of_sum, of_more): (impl Fn(&S) -> K + Copy, impl Fn(&M) -> K),
) -> usize {
    let most = sum.len() + more.len();
    // rarely so many that those of both must be known
    if most <= SERIES_MAX {
        return most;
    }
    let is_new = |one: &&M| sum.binary_search_by_key(&of_more(one), of_sum).is_err();
    sum.len() + more.iter().filter(is_new).count()
}

/// Adds each to the one with its key, or to a new one; they stay in order of their keys.
fn add_each<S, M, K: Ord>(
    sum: &mut Vec<S>,
    more: &[M],
    (of_sum, of_more): (impl Fn(&S) -> K + Copy, impl Fn(&M) -> K),
    new: impl Fn(&M) -> S,
    add: impl Fn(&mut S, &M),
) {
    for one in more {
        let at = sum.binary_search_by_key(&of_more(one), of_sum).unwrap_or_else(|at| {
            sum.insert(at, new(one));
            at
        });
        add(&mut sum[at], one);
    }
}

fn add_counts<K: Copy + Ord>(sum: &mut Vec<(K, u64)>, more: &[(K, u64)]) {
    let key = |of: &(K, u64)| of.0;
    add_each(sum, more, (key, key), |of| (of.0, 0), |known, more| known.1 += more.1);
}

impl Series {
    fn empty_as(of: &Series<Packed<'_>>) -> Series {
        Series {
            label: of.label,
            outcome: of.outcome,
            measured: of.measured,
            phase: of.phase,
            response_time_us: new_histogram(),
            response_time_less_lag_us: new_histogram(),
            service_time_us: new_histogram(),
            bodies: 0,
            body_bytes: 0,
        }
    }

    fn add(&mut self, more: &Series<Packed<'_>>) {
        self.response_time_us.add_packed(more.response_time_us);
        self.response_time_less_lag_us.add_packed(more.response_time_less_lag_us);
        self.service_time_us.add_packed(more.service_time_us);
        self.bodies += more.bodies;
        self.body_bytes += more.body_bytes;
    }
}

impl PartSeries {
    fn add(&mut self, more: &PartSeries<Packed<'_>>) {
        for (all, more) in self.histograms_mut().into_iter().zip(more.histograms()) {
            all.add_packed(*more);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;
    use std::time::{Duration, UNIX_EPOCH};

    use super::*;
    use crate::ledger::{Form, Part, Piece};
    use crate::manifest::Phase;
    use crate::summary::AgentFigures;
    use crate::test_run::{interval, series};
    use crate::{
        CoreWaits, Counter, ErrorExample, Handover, LostTime, Manifest, Outcome, OwnKind, OwnMetric, Run,
        RunWriter, summarize, tell_agents,
    };

    const AGENTS: u16 = 3;

    /// What each agent did in each of six seconds: of warm-up, of the window, and behind it. No two do the same.
    fn seconds() -> Vec<Vec<(ThreadInterval, Part)>> {
        let mut parts: Vec<Part> = (0..AGENTS).map(Part::new).collect();
        let mut second = |at: u64, thread: u16| {
            let of = u64::from(thread);
            let mut one = interval(thread, at, at + 1);
            one.in_window = (2..5).contains(&at);
            let phase = u16::from(at >= 2);
            let good = |measured, us: u64| series(0, Outcome::Ok, measured, &[(us, 300), (us + 9_000, 7)]);
            one.series = vec![
                good(one.in_window || at == 5, 1_000 + 13 * at + 100 * of),
                series(1, Outcome::Timeout, true, &[(5_000_000 + of, 2)]),
                series(1, Outcome::Ok, false, &[(3_500_000 * (1 + of), 1)]),
            ];
            // not everybody has all of them, nor in this order
            one.series.rotate_left(usize::from(thread) % 3);
            one.series.truncate(1 + usize::from(thread));
            one.series.iter_mut().for_each(|of| of.phase = Some(phase));
            one.groups = vec![series(0, Outcome::Ok, true, &[(2_000 + of, 4)])];
            let mut spent = OwnSeries::empty(0, OwnKind::Histogram);
            spent.add(0.5 + of as f64);
            (spent.no_number, spent.example) = (of, (thread == 1).then(|| "none".into()));
            let mut orders = OwnSeries::empty(1, OwnKind::Counter);
            orders.add(2.0);
            one.own = if thread == 2 { vec![orders] } else { vec![spent, orders] };
            let mut of_parts = PartSeries::empty(of as u16 % 2, true);
            of_parts.connect_us.record_n(90 + of, 2);
            one.parts = vec![of_parts];
            (one.offered, one.dropped, one.waiting, one.in_flight, one.connections) = (40 + of, 3, of, 5, 8);
            (one.measured_offered, one.measured_dropped) = (35 + of, 2);
            one.offered_earlier = vec![(at * 1_000_000, of), (7, 1)];
            one.by_phase = vec![PhaseCounts { phase, offered: 30, dropped: of }];
            one.open_by_label = vec![(1, 4 + of), (0, 2 * at)];
            one.sessions_begun = vec![(of as u16 % 2, 3)];
            one.lost_time = LostTime { refused_us: 5, stuck: of, ..LostTime::default() };
            (one.counters[Counter::Connects], one.counters[Counter::ComputingUs]) = (2, 100 * of);
            one.unconnected = vec![(None, 1), (Some(of as u16 % 2), 2)];
            one.lag_us.record_n(20 + of, 300);
            one.lag_us.record_n(1_500 + 700 * of, 1 + thread as u32);
            one.unmeasured_lag_us.record(9);
            one.read_lag_us.record_n(4, 70_000);
            (one.cpu_us, one.absent_us) = (100_000 * (1 + of), 30 * of);
            one.core_waits = Some(CoreWaits { waited_us: 2_000 * of, sleeps: 10 });
            one.statuses = vec![(200, 300), (500 + of as u16, 1)];
            one.quiet = vec![(at * 1_000_000, at * 1_000_000 + of)];
            (one.failed_us, one.last_good_us) = (Some((at * 1_000_000 + of, at * 1_000_000 + 9)), at + of);
            let detail = format!("thread {thread} in second {at}");
            let example =
                |at_us| ErrorExample { at_us, label: 1, outcome: Outcome::Timeout, detail: detail.clone() };
            one.examples = (0..3).map(|number| example(at * 1_000_000 + 10 * number + of)).collect();
            let part = &mut parts[usize::from(thread)];
            let entry = part.enter();
            part.acknowledge(entry.number);
            (one, part.hand_over(Part::default()))
        };
        (0..6).map(|at| (0..AGENTS).map(|thread| second(at, thread)).collect()).collect()
    }

    fn writer(dir: &Path) -> (RunWriter<'static>, Manifest) {
        let labels = vec!["a".to_owned(), "b".to_owned()];
        let mut writer = RunWriter::create(dir, &labels, "name: x\n").unwrap();
        writer.threads(AGENTS.into()).anchor(UNIX_EPOCH + Duration::from_secs(1_700_000_000));
        writer.groups(&["both".to_owned()]).unwrap();
        let metric = |name: &str, kind| OwnMetric { name: name.into(), kind, unit: String::new() };
        let metrics = [metric("spent", OwnKind::Histogram), metric("orders", OwnKind::Counter)];
        writer.own_metrics(&metrics).unwrap();
        let phase = |name: &str, start_us, end_us, measured| Phase {
            name: name.into(),
            start_us,
            end_us,
            measured,
            level: String::new(),
        };
        let phases = [phase("warm-up", 0, 2_000_000, false), phase("hold", 2_000_000, 5_000_000, true)];
        writer.phases(&phases, |_| true);
        writer.keep_ledger(1, vec![Form::new("a", &[Piece::Entry, Piece::Check])]).unwrap();
        let mut manifest = Manifest::new("x", labels, summarize(writer.totals(), dir));
        (manifest.groups, manifest.metrics) = (vec!["both".to_owned()], metrics.to_vec());
        manifest.phases = phases.to_vec();
        writer.begun(&manifest).unwrap();
        (writer, manifest)
    }

    /// As a coordinator does it.
    fn add_summed(writer: &mut RunWriter<'_>, seconds: Vec<Vec<(ThreadInterval, Part)>>) {
        let mut sums = IntervalSums::default();
        for (mut one, part) in seconds.into_iter().flatten() {
            let (number, last) = (one.end_us, one.thread + 1 == AGENTS);
            one.store_shares();
            let mut message = Vec::new();
            Handover::Interval(Box::new(one), part).write(&mut message).unwrap();
            let Handover::Interval(mut one, part) = Handover::packed(&message).unwrap() else {
                unreachable!()
            };
            one.shares[0].ledger = part;
            sums.add(*one, number, AGENTS.into()).unwrap();
            assert_eq!(sums.first_message(), Some(number));
            let whole = sums.next_whole();
            assert_eq!(whole.is_some(), last);
            whole.iter().for_each(|whole| writer.add_interval(whole).unwrap());
        }
        assert_eq!(sums.first_message(), None);
    }

    #[test]
    fn a_run_of_sums_is_the_run_of_its_threads() {
        let [of_threads, of_sums, killed] = [(); 3].map(|()| tempfile::tempdir().unwrap());
        let told = |writer: &RunWriter<'_>| {
            let totals = writer.totals();
            let mut agents: Vec<AgentFigures> = (0..u64::from(AGENTS))
                .map(|first_thread| AgentFigures { first_thread, threads: 1, ..AgentFigures::default() })
                .collect();
            tell_agents(&mut agents, &totals.threads);
            let summary = summarize(totals, Path::new("x"));
            let achieved = [totals.achieved(), totals.achieved_by_labels(&[1].into(), None)];
            let live = (writer.live(), writer.seconds().to_vec());
            let entered = totals.entered.clone();
            (serde_json::to_value(&summary).unwrap(), agents, achieved, live, entered, totals.threads.clone())
        };
        let (mut writer_of_threads, mut manifest) = writer(of_threads.path());
        for (one, part) in seconds().into_iter().flatten() {
            writer_of_threads.add_interval(&ThreadInterval { ledger: part, ..one }).unwrap();
        }
        let (mut writer_of_sums, _) = writer(of_sums.path());
        add_summed(&mut writer_of_sums, seconds());
        assert_eq!(told(&writer_of_sums), told(&writer_of_threads));
        manifest.summary = summarize(writer_of_threads.totals(), Path::new("x"));
        writer_of_threads.finish(&manifest).unwrap();
        writer_of_sums.finish(&manifest).unwrap();
        let mut names = Vec::new();
        for file in fs::read_dir(of_threads.path()).unwrap().flatten().filter(|file| file.path().is_file()) {
            assert_eq!(
                fs::read(file.path()).unwrap(),
                fs::read(of_sums.path().join(file.file_name())).unwrap(),
                "{file:?}"
            );
            names.push(file.file_name());
        }
        assert!(names.len() >= 9, "{names:?}");
        for thread in 0..AGENTS {
            let ledger = |dir: &Path| fs::read(dir.join(format!("ledger/thread-{thread}.log"))).unwrap();
            assert_eq!(ledger(of_threads.path()), ledger(of_sums.path()));
        }
        // and what is built again from its journal
        let (mut writer_of_sums, _) = writer(killed.path());
        add_summed(&mut writer_of_sums, seconds());
        drop(writer_of_sums);
        let [rebuilt, whole] = [killed.path(), of_threads.path()].map(|dir| Run::open(dir).unwrap());
        let rows = |run: &Run| {
            format!("{:?} {:?} {:?} {:?} {:?}", run.series, run.groups, run.own, run.parts, run.load)
        };
        assert_eq!(rows(&rebuilt), rows(&whole));
        let figures = |run: &Run| {
            let summary = &run.manifest.summary;
            serde_json::to_value((&summary.driver, &summary.steps, &summary.response_time_us)).unwrap()
        };
        assert_eq!(figures(&rebuilt), figures(&whole));
    }

    #[test]
    fn who_is_slow_is_told_of_apart_and_holds_nobody_up() {
        let mut sums = IntervalSums::default();
        let mut add = |thread: u16, at: u64| {
            let mut one = interval(thread, at, at + 1);
            one.store_shares();
            let mut message = Vec::new();
            Handover::Interval(Box::new(one), Part::new(thread)).write(&mut message).unwrap();
            let Handover::Interval(one, _) = Handover::packed(&message).unwrap() else { unreachable!() };
            sums.add(*one, 100 * at + u64::from(thread), 2).unwrap();
            let whole: Vec<(u64, usize)> = std::iter::from_fn(|| sums.next_whole())
                .map(|of| (of.start_us / 1_000_000, of.shares.len()))
                .collect();
            (whole, sums.first_message())
        };
        assert_eq!(add(0, 0), (vec![], Some(0)));
        assert_eq!(add(0, 1), (vec![], Some(0)));
        assert_eq!(add(0, 2), (vec![(0, 1)], Some(100)), "two may wait");
        assert_eq!(add(1, 0), (vec![(0, 1)], Some(100)), "it is late");
        assert_eq!(add(1, 1), (vec![(1, 2)], Some(200)));
        assert_eq!(add(1, 2), (vec![(2, 2)], None));
    }
}
