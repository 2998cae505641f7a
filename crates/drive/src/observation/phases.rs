//! The phases of the load as a thread records them: what was due in which, and the times of each by step and outcome.

use tidemark_record::{Outcome, PhaseCounts, Series, new_histogram};

use crate::clock::microseconds;
use crate::session::times::Times;

/// The phases, and how many requests were due in each.
#[derive(Debug, Default)]
pub(crate) struct Phases {
    begin_ns: u64,
    /// One after the other; what is due later is of none.
    ends_ns: Vec<u64>,
    /// Nothing that is due from then on is of a phase.
    stopped_ns: u64,
    /// The phase that was asked for last, and its time: nearly always it is asked for again.
    last: (usize, u64, u64),
    /// Offered and dropped in this interval, by phase; the last is of none.
    counts: Vec<(u64, u64)>,
}

impl Phases {
    /// Phases that end then, the first of which begins at `begin_ns`.
    pub fn of(begin_ns: u64, ends_ns: Vec<u64>) -> Phases {
        let counts = vec![(0, 0); ends_ns.len() + 1];
        let last = (ends_ns.len(), u64::MAX, u64::MAX);
        Phases { begin_ns, ends_ns, stopped_ns: u64::MAX, last, counts }
    }

    /// What is due from `at_ns` on is of no phase.
    pub fn stop(&mut self, at_ns: u64) {
        self.stopped_ns = self.stopped_ns.min(at_ns);
        self.last = (self.ends_ns.len(), u64::MAX, u64::MAX);
    }

    /// The phase in which this was due.
    #[inline(always)]
    pub fn at(&mut self, due_ns: u64) -> Option<u16> {
        let index = self.index(due_ns);
        (index < self.ends_ns.len()).then_some(index as u16)
    }

    /// Offered and dropped of the phase in which this was due.
    #[inline(always)]
    pub fn counts(&mut self, due_ns: u64) -> &mut (u64, u64) {
        let index = self.index(due_ns);
        if index >= self.counts.len() {
            self.counts.resize(index + 1, (0, 0));
        }
        &mut self.counts[index]
    }

    #[inline(always)]
    fn index(&mut self, due_ns: u64) -> usize {
        let (index, from_ns, until_ns) = self.last;
        if from_ns <= due_ns && due_ns < until_ns { index } else { self.look_up(due_ns) }
    }

    fn look_up(&mut self, due_ns: u64) -> usize {
        let none = self.ends_ns.len();
        if due_ns < self.begin_ns || due_ns >= self.stopped_ns {
            return none;
        }
        let index = self.ends_ns.partition_point(|end_ns| *end_ns <= due_ns);
        let from_ns = if index == 0 { self.begin_ns } else { self.ends_ns[index - 1] };
        let until_ns = self.ends_ns.get(index).copied().unwrap_or(u64::MAX).min(self.stopped_ns);
        self.last = (index, from_ns, until_ns);
        index
    }

    /// The first end of a phase after `at_ns`.
    pub fn edge_after(&self, at_ns: u64) -> u64 {
        self.ends_ns.get(self.ends_ns.partition_point(|end_ns| *end_ns <= at_ns)).copied().unwrap_or(u64::MAX)
    }

    /// Hands the counts over.
    pub fn take_into(&mut self, counts: &mut Vec<PhaseCounts>) {
        let of_phases = self.counts.iter_mut().take(self.ends_ns.len()).zip(0..);
        for (count, phase) in of_phases.filter(|(count, _)| **count != (0, 0)) {
            let (offered, dropped) = std::mem::take(count);
            counts.push(PhaseCounts { phase, offered, dropped });
        }
    }
}

/// Times by phase, label (or group) and outcome.
#[derive(Debug, Default)]
pub(crate) struct SeriesTable {
    labels: usize,
    /// By phase, then by label and outcome. First those of no phase, not measured and measured; made when the first is seen.
    rows: Vec<Vec<Option<Series>>>,
}

impl SeriesTable {
    /// Of so many labels.
    pub fn of(labels: usize) -> SeriesTable {
        SeriesTable { labels, rows: Vec::new() }
    }

    /// Adds the times of one request, or group, to those of its label, outcome, whether it is measured, and phase; gives its
    /// response time, microseconds.
    #[inline(always)]
    pub fn add(
        &mut self,
        pool: &mut Vec<Series>,
        (label, outcome): (u16, Outcome),
        (measured, phase): (bool, Option<u16>),
        times: &Times,
    ) -> u64 {
        let row = phase.map_or(usize::from(measured), |phase| usize::from(phase) + 2);
        if self.rows.get(row).is_none_or(Vec::is_empty) {
            self.make(row);
        }
        let place = &mut self.rows[row][usize::from(label) * Outcome::ALL.len() + outcome as usize];
        let series = place.get_or_insert_with(|| fresh(pool, label, outcome));
        (series.measured, series.phase) = (measured, phase);
        let response_ns = times.end_ns.saturating_sub(times.due_ns);
        let response_us = microseconds(response_ns);
        series.response_time_us.record(response_us);
        let less_lag_ns = response_ns.saturating_sub(times.own_ns);
        series.response_time_less_lag_us.record(microseconds(less_lag_ns));
        if let Some(sent_ns) = times.sent_ns {
            series.service_time_us.record(microseconds(times.end_ns.saturating_sub(sent_ns)));
        }
        response_us
    }

    /// Adds the body of a good answer, the times of which were [added](SeriesTable::add).
    #[inline]
    pub fn body(&mut self, label: u16, (measured, phase): (bool, Option<u16>), bytes: u64) {
        let row = phase.map_or(usize::from(measured), |phase| usize::from(phase) + 2);
        let at = usize::from(label) * Outcome::ALL.len() + Outcome::Ok as usize;
        if let Some(Some(series)) = self.rows.get_mut(row).and_then(|row| row.get_mut(at)) {
            series.bodies += 1;
            series.body_bytes += bytes;
        }
    }

    fn make(&mut self, row: usize) {
        if self.rows.len() <= row {
            self.rows.resize_with(row + 1, Vec::new);
        }
        self.rows[row] = vec![None; self.labels * Outcome::ALL.len()];
    }

    /// Hands the times over.
    pub fn take_into(&mut self, series: &mut Vec<Series>) {
        series.extend(self.rows.iter_mut().flatten().filter_map(Option::take));
    }
}

fn fresh(pool: &mut Vec<Series>, label: u16, outcome: Outcome) -> Series {
    match pool.pop() {
        Some(series) => Series { label, outcome, ..series },
        None => Series {
            label,
            outcome,
            measured: false,
            phase: None,
            response_time_us: new_histogram(),
            response_time_less_lag_us: new_histogram(),
            service_time_us: new_histogram(),
            bodies: 0,
            body_bytes: 0,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_due_at_an_edge_is_of_the_phase_that_begins() {
        let mut phases = Phases::of(10, vec![20, 20, 35]);
        let at = |phases: &mut Phases, times: [u64; 8]| times.map(|due_ns| phases.at(due_ns));
        let times = [9, 10, 19, 20, 34, 35, 10, 99];
        let all = [None, Some(0), Some(0), Some(2), Some(2), None, Some(0), None];
        assert_eq!(at(&mut phases, times), all);
        assert_eq!([0, 19, 20, 35].map(|at_ns| phases.edge_after(at_ns)), [20, 20, 35, u64::MAX]);
        phases.counts(12).0 += 3;
        phases.counts(21).1 += 1;
        phases.counts(99).0 += 7;
        let mut told = Vec::new();
        phases.take_into(&mut told);
        let counts = |phase, offered, dropped| PhaseCounts { phase, offered, dropped };
        assert_eq!(told, [counts(0, 3, 0), counts(2, 0, 1)]);
        phases.stop(30);
        assert_eq!([29, 30, 34].map(|due_ns| phases.at(due_ns)), [Some(2), None, None]);
    }

    #[test]
    fn times_are_kept_apart_by_phase_and_pooled_histograms_used_again() {
        let mut table = SeriesTable::of(2);
        let mut pool = Vec::new();
        let times = Times { due_ns: 0, sent_ns: Some(0), end_ns: 5_000, own_ns: 0 };
        for (label, due) in
            [(0, (false, Some(0))), (1, (true, Some(1))), (1, (true, Some(1))), (1, (false, None))]
        {
            table.add(&mut pool, (label, Outcome::Ok), due, &times);
        }
        let mut series = Vec::new();
        table.take_into(&mut series);
        let told = |one: &Series| (one.label, one.measured, one.phase, one.response_time_us.len());
        let told: Vec<_> = series.iter().map(told).collect();
        assert_eq!(told, [(1, false, None, 1), (0, false, Some(0), 1), (1, true, Some(1), 2)]);
        series.iter_mut().for_each(|one| one.response_time_us.reset());
        pool.append(&mut series);
        table.add(&mut pool, (0, Outcome::Reset), (true, Some(1)), &times);
        assert_eq!(pool.len(), 2);
        table.take_into(&mut series);
        assert_eq!((series[0].outcome, series[0].phase), (Outcome::Reset, Some(1)));
    }
}
