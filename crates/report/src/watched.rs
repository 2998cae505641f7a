//! What was watched though the run did not start it: what it cost, and the series of pages.

use tidemark_record::manifest::{self, Manifest};
use tidemark_record::summary::{FigureSummary, Process};
use tidemark_record::{DRIVER, MACHINE, SYSTEM};

/// Most series that have a line.
pub(crate) const SERIES_MAX: usize = 30;

/// The processes whose CPU and memory count together as what a run took: all that it started or watched, but the driver. A
/// whole machine is left out: what runs on it would count twice.
pub(crate) fn counted_processes(manifest: &Manifest) -> impl Iterator<Item = &Process> {
    manifest.summary.processes.iter().filter(|process| is_counted(manifest, &process.name))
}

/// Whether what has this name in samples is one of them.
pub(crate) fn is_counted(manifest: &Manifest, name: &str) -> bool {
    let is_other = name == DRIVER || name == MACHINE;
    !is_other && !manifest.watched.iter().any(|watched| watched.is_machine && watched.name == name)
}

/// Good answers in the measured window for each second of CPU time, of the system and of everything that was watched, by
/// what it is called in a sentence.
///
/// A system of several services is all of them, with what balances in front of them.
pub(crate) fn costs(manifest: &Manifest) -> impl Iterator<Item = (&str, f64)> {
    let summary = &manifest.summary;
    let cpu_s = |name: &str| summary.processes.iter().find(|of| of.name == name).map_or(0.0, |of| of.cpu_s);
    let beside = |service: &manifest::Service| {
        let balancer = format!("{}-balancer", service.name);
        cpu_s(&service.name) + cpu_s(&balancer)
    };
    let beside_s: f64 = manifest.services.iter().map(beside).sum();
    let is_watched = |name: &str| manifest.watched.iter().any(|watched| watched.name == name);
    let meant = summary.processes.iter().filter(move |of| of.name == SYSTEM || is_watched(&of.name));
    meant.filter_map(move |process| {
        let cost = process.good_per_cpu_s?;
        match process.name == SYSTEM {
            true if process.cpu_s + beside_s > 0.0 => {
                Some(("the system", cost * process.cpu_s / (process.cpu_s + beside_s)))
            }
            true => Some(("the system", cost)),
            false => Some((process.name.as_str(), cost)),
        }
    })
}

/// Each series of what was watched: whose it is, its name, and its figures over the measured window.
pub(crate) fn series(manifest: &Manifest) -> impl Iterator<Item = (&str, &str, &FigureSummary)> {
    let is_watched = |name: &str| manifest.watched.iter().any(|watched| watched.name == name);
    let of_watched = manifest.summary.stores_figures.iter().filter(move |of| is_watched(&of.store));
    of_watched
        .flat_map(|of| of.figures.iter().map(|(figure, values)| (of.store.as_str(), figure.as_str(), values)))
}

#[cfg(test)]
mod tests {
    use tidemark_record::manifest::Watched;

    use super::*;
    use crate::comparison::{Figure, Reading};
    use crate::test_run;

    #[test]
    fn a_machine_does_not_count_beside_what_runs_on_it() {
        let (_dir, run) = test_run::airline();
        let mut manifest = run.manifest;
        let process = |name: &str, cpu_s, rss_bytes_max| {
            let (cpu_share, core_wait_share, good_per_cpu_s) = (0.1, None, None);
            Process { name: name.into(), cpu_s, cpu_share, core_wait_share, rss_bytes_max, good_per_cpu_s }
        };
        manifest.summary.requests = 1_000;
        manifest.summary.processes =
            vec![process(DRIVER, 9.0, 900), process("db2", 5.0, 500), process("postgres", 2.0, 200)];
        let read = |manifest: &Manifest| [Figure::Cpu, Figure::Memory].map(|of| of.read(manifest, None));
        let watched = |name: &str, is_machine| {
            let (what, found) = (String::new(), String::new());
            Watched { name: name.into(), what, found, is_machine }
        };
        manifest.watched = vec![watched("db2", true), watched("postgres", false)];
        assert_eq!(read(&manifest), [Reading::Value(2_000.0), Reading::Value(200.0)]);
        assert!(!is_counted(&manifest, MACHINE));
        manifest.watched[0].is_machine = false;
        assert_eq!(read(&manifest), [Reading::Value(7_000.0), Reading::Value(700.0)]);
    }
}
