//! What was watched though the run did not start it: what it cost, and the series of pages.

use tidemark_record::manifest::Manifest;
use tidemark_record::summary::{FigureSummary, Process, Summary};

/// What samples call the system that is driven.
const SYSTEM: &str = "system";
/// Most series that have a line.
pub(crate) const SERIES_MAX: usize = 30;

/// Good answers in the measured window for each second of a process' CPU time.
pub(crate) fn good_per_cpu_s(summary: &Summary, process: &Process) -> Option<f64> {
    (process.cpu_s > 0.0).then(|| summary.achieved_per_s * summary.measured_s / process.cpu_s)
}

/// The same of the system, and of everything that was watched, by what it is called in a sentence.
pub(crate) fn costs(manifest: &Manifest) -> impl Iterator<Item = (&str, f64)> {
    let summary = &manifest.summary;
    let is_watched = |name: &str| manifest.watched.iter().any(|watched| watched.name == name);
    let meant = summary.processes.iter().filter(move |of| of.name == SYSTEM || is_watched(&of.name));
    meant.filter_map(|process| {
        let name = if process.name == SYSTEM { "the system" } else { process.name.as_str() };
        Some((name, good_per_cpu_s(summary, process)?))
    })
}

/// Each series of what was watched: whose it is, its name, and its figures over the measured window.
pub(crate) fn series(manifest: &Manifest) -> impl Iterator<Item = (&str, &str, &FigureSummary)> {
    let is_watched = |name: &str| manifest.watched.iter().any(|watched| watched.name == name);
    let of_watched = manifest.summary.stores_figures.iter().filter(move |of| is_watched(&of.store));
    of_watched
        .flat_map(|of| of.figures.iter().map(|(figure, values)| (of.store.as_str(), figure.as_str(), values)))
}
