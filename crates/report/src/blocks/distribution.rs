//! How many requests lie in each half second, as the published reporter of Acme Air has it.

use std::collections::BTreeMap;

use tidemark_record::{Outcome, RecordError, Run, merge_merged, new_merged};

use super::run::under;
use super::{Block, Cell, Level, Table};
use crate::jmeter::STEP_MS;
use crate::units::{plural, trim_zeros};

/// Columns of the table; what is slower stands in one more.
const STEPS: u64 = 6;
/// What all labels together are called.
pub(super) const ALL: &str = "all";

/// A row for each label: how many of its requests, `whose`, lie in each of the first steps. Steps are known by their begins.
pub(super) fn distribution<'a>(
    whose: &str,
    rows: impl IntoIterator<Item = (&'a str, BTreeMap<u64, u64>)>,
) -> Vec<Block> {
    let seconds = |ms: u64| format!("{}s", trim_zeros(&format!("{:.1}", ms as f64 / 1e3)));
    let begins = (0..STEPS).map(|step| step * STEP_MS);
    let head = begins.clone().map(|begin| seconds(begin + STEP_MS));
    let head =
        std::iter::once("below".to_owned()).chain(head).chain([format!("{} on", seconds(STEPS * STEP_MS))]);
    let mut table = Table::new(head).whole_names();
    for (name, steps) in rows {
        let slower = steps.range(STEPS * STEP_MS..).map(|(_, n)| n).sum();
        let cells = begins.clone().map(|begin| steps.get(&begin).copied().unwrap_or(0)).chain([slower]);
        table.row(name, cells.map(|n| if n == 0 { Cell::from("-") } else { Cell::Count(n) }));
    }
    let shown = !table.rows.is_empty();
    under(&format!("Latency distribution, {whose} in each 500ms"), shown.then_some(Block::Table(table)))
}

/// That of the good answers of a run, by their response times.
///
/// # Errors
/// Where the run is damaged.
pub(super) fn of_run(run: &Run) -> Result<Vec<Block>, RecordError> {
    let mut times: BTreeMap<u16, _> = BTreeMap::new();
    for series in run.series.iter().filter(|series| series.measured && series.outcome == Outcome::Ok) {
        run.merge(times.entry(series.label).or_insert_with(new_merged), &series.response_time_us)?;
    }
    let mut all = new_merged();
    times.values().for_each(|of| merge_merged(&mut all, of));
    let labels =
        (0..).zip(&run.manifest.labels).filter_map(|(label, name)| Some((name.as_str(), times.get(&label)?)));
    let steps = |of: &tidemark_record::Merged| {
        let mut steps = BTreeMap::new();
        for value in of.iter_recorded() {
            *steps.entry(value.value_iterated_to() / 1_000 / STEP_MS * STEP_MS).or_default() +=
                value.count_since_last_iteration();
        }
        steps
    };
    let rows = [(ALL, &all)].into_iter().chain(labels).map(|(name, of)| (name, steps(of)));
    let mut blocks = distribution("good answers", rows);
    let failed = run.manifest.summary.failed;
    if failed > 0 && !blocks.is_empty() {
        let text = format!("{} without a good answer are in no column", plural(failed, "request"));
        blocks.push(Block::point(Level::Plain, text));
    }
    Ok(blocks)
}
