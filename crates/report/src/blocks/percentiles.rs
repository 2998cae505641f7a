//! The long table of percentiles.

use tidemark_record::{Distribution, Merged, Outcome, RecordError, Run, new_merged};

use super::{Block, Table};
use crate::units::{count, time};

/// The percentiles of the long table.
const PERCENTILES: [f64; 8] = [50.0, 75.0, 90.0, 95.0, 99.0, 99.9, 99.99, 99.999];

/// Response and service times of the good answers to measured requests, and how many had none.
pub(super) struct Times {
    pub(super) response: Merged,
    service: Merged,
    failed: u64,
}

impl Times {
    /// Those of a run.
    ///
    /// # Errors
    /// Where it is damaged.
    pub(super) fn of(run: &Run) -> Result<Times, RecordError> {
        let failed = run.manifest.summary.failed;
        let mut times = Times { response: new_merged(), service: new_merged(), failed };
        for series in run.series.iter().filter(|series| series.measured && series.outcome == Outcome::Ok) {
            run.merge(&mut times.response, &series.response_time_us)?;
            run.merge(&mut times.service, &series.service_time_us)?;
        }
        Ok(times)
    }
}

/// As many as there are requests for.
pub(super) fn table(times: &Times) -> [Block; 2] {
    let response = Distribution::new(&times.response, times.failed);
    let service = Distribution::new(&times.service, times.failed);
    let head = ["", "response time", "service time", "requests above"];
    let mut table = Table::new(head).dispensable(&["requests above"]);
    for percentile in PERCENTILES {
        let share = percentile / 100.0;
        if !response.supports(share) {
            break;
        }
        let above = response.due() as f64 * (1.0 - share);
        let at = |of: Distribution<'_>| time(of.quantile(share));
        table.row(&format!("p{percentile}"), [at(response), at(service), count(above.round() as u64)]);
    }
    [Block::heading("Percentiles"), Block::Table(table)]
}
