//! A scenario's `prepare` that many users do: data is loaded by the driver's own threads, before anything is measured.

use std::sync::Arc;
use std::time::Duration;

use tidemark_drive::{DriveOptions, start};
use tidemark_record::Counter;
use tidemark_scenario::plan::{Curve, Load, LoadModel, Phase, Preparation, SessionKind};
use tidemark_scenario::{Plan, Shared};

use super::preparing::LOOK_EVERY;
use super::{Experiment, not_begun};
use crate::drivers::{Drivers, Handed};
use crate::error::LabError;
use crate::interrupt::StopRequest;
use crate::progress::{Progress, Watcher};

/// Longest time that it may take.
const LONGEST: Duration = Duration::from_secs(24 * 3_600);

impl Experiment {
    /// Does `prepare` as often as the plan says. The first request that fails ends it.
    pub(super) fn load(
        &self,
        kind: &SessionKind,
        shared: Arc<Shared>,
        options: DriveOptions,
        progress: &Watcher<'_>,
    ) -> Result<(), LabError> {
        let plan = loading(&self.plan, kind);
        let of = plan.limits.sessions.unwrap_or(0);
        let last = plan.requests_of(kind).next_back().map(|request| request.label);
        let drive = start(Arc::new(plan), shared, options).map_err(not_begun)?;
        let mut drivers = Drivers::new(vec![Box::new(drive)]);
        let mut done = 0;
        let mut failure: Option<String> = None;
        progress.tell(Progress::Loading { done, of });
        loop {
            if self.stop_request() != StopRequest::None {
                drivers.abort();
            }
            let interval = match drivers.next(LOOK_EVERY) {
                Handed::Interval(interval) => interval,
                Handed::Nothing | Handed::Event(_) => continue,
                Handed::Over => break,
            };
            for series in &interval.series {
                let requests = series.response_time_us.len();
                if !series.outcome.is_error() {
                    done += if Some(series.label) == last { requests } else { 0 };
                } else if failure.is_none() {
                    let is_it = |example: &&tidemark_record::ErrorExample| {
                        (example.label, example.outcome) == (series.label, series.outcome)
                    };
                    let detail = interval.examples.iter().find(is_it).map(|example| example.detail.clone());
                    let label = self.plan.labels.get(usize::from(series.label)).cloned().unwrap_or_default();
                    let (outcome, detail) = (series.outcome.name(), detail.unwrap_or_default());
                    failure = Some(format!("{label} failed ({outcome}): {detail}"));
                    drivers.abort();
                }
            }
            drivers.recycle(interval);
            progress.tell(Progress::Loading { done: done.min(of), of });
        }
        let end = drivers.end()?.end;
        self.go_on()?;
        if failure.is_none() && (end.interrupted || end.counters[Counter::Unfinished] > 0) {
            failure = Some("it did not come to its end in time".to_owned());
        }
        failure.map_or(Ok(()), |failure| Err(self.not_prepared(&format!("{failure}, after {done} of {of}"))))
    }
}

/// A plan that does nothing but this session, by as many users as there are to be.
fn loading(plan: &Plan, kind: &SessionKind) -> Plan {
    let Preparation { users, times } = plan.preparation;
    let level = users as f64;
    let phase = Phase {
        name: "loading".into(),
        duration: LONGEST,
        from: level,
        to: level,
        measured: false,
        curve: Curve::Line,
    };
    let mut loading = Plan {
        sessions: vec![kind.clone()],
        load: Load::new(LoadModel::Closed, vec![phase]),
        ..plan.clone()
    };
    loading.limits.sessions = Some(times);
    loading.limits.in_flight = None;
    let depth = loading.limits.pipeline.max(loading.limits.streams).max(1);
    loading.limits.connections = loading.limits.connections.max(users.div_ceil(depth));
    loading
}
