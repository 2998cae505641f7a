//! What was watched though the run did not start it: what it cost, and the series of pages.

use tidemark_record::manifest::{Manifest, Service};
use tidemark_record::summary::{FigureSummary, Process};
use tidemark_record::{DRIVER, MACHINE, SYSTEM};

/// Most series that have a line.
pub(crate) const SERIES_MAX: usize = 30;

/// The processes whose CPU and memory count together as what a run took: all that it started or watched, but the driver. A
/// whole machine is left out: what runs on it would count twice.
pub(crate) fn counted_processes(manifest: &Manifest) -> impl Iterator<Item = &Process> {
    manifest.summary.processes.iter().filter(|process| is_counted(manifest, &process.name))
}

/// Whether what has this name in samples is one of them. What a service uses is not counted again for each of its instances.
pub(crate) fn is_counted(manifest: &Manifest, name: &str) -> bool {
    let is_other = name == DRIVER || name == MACHINE || manifest.service_of(name).is_some();
    !is_other && !manifest.watched.iter().any(|watched| watched.is_machine && watched.name == name)
}

/// Good answers in the measured window for each second of CPU time, of the system and of everything that was watched, by
/// what it is called in a sentence.
pub(crate) fn costs(manifest: &Manifest) -> impl Iterator<Item = (&str, f64)> {
    let is_watched = |name: &str| manifest.watched.iter().any(|watched| watched.name == name);
    let meant = manifest.summary.processes.iter();
    let meant = meant.filter(move |of| of.name == SYSTEM || is_watched(&of.name));
    meant.filter_map(|process| {
        let name = if process.name == SYSTEM { "the system" } else { process.name.as_str() };
        Some((name, process.good_per_cpu_s?))
    })
}

/// All processes with what each is called in a table. Services come first, in the order of their start, and each has its
/// instances and its balancer behind it.
pub(crate) fn in_order(manifest: &Manifest) -> impl Iterator<Item = (String, &Process)> {
    let place = |name: &str| {
        let of = manifest.service_of(name).or(manifest.service_of_balancer(name));
        let of = of.map_or(name, |service| service.name.as_str());
        let is_it = |service: &Service| service.name == of || (service.driven && of == SYSTEM);
        manifest.services.iter().position(is_it).unwrap_or(usize::MAX)
    };
    let driven = manifest.services.iter().find(|service| service.driven);
    let mut all: Vec<&Process> = manifest.summary.processes.iter().collect();
    all.sort_by_key(|of| (place(&of.name), manifest.service_of_balancer(&of.name).is_some()));
    all.into_iter().map(move |process| {
        let name = match driven {
            Some(service) if process.name == SYSTEM => format!("{} (system)", service.name),
            _ if manifest.service_of(&process.name).is_some() => format!("  {}", process.name),
            _ => process.name.clone(),
        };
        (name, process)
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
    use tidemark_record::manifest::{self, Watched};

    use super::*;
    use crate::comparison::{Figure, Reading};
    use crate::test_run;

    #[test]
    fn a_machine_does_not_count_beside_what_runs_on_it() {
        let (_dir, run) = test_run::airline();
        let mut manifest = run.manifest;
        let process = |name: &str, cpu_s, rss_bytes_max| {
            let (cpu_share, core_wait_share, good_per_cpu_s) = (0.1, None, None);
            Process {
                name: name.into(),
                cpu_s,
                cpu_share,
                core_wait_share,
                rss_bytes_max,
                good_per_cpu_s,
                seen_s: None,
            }
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

    #[test]
    fn a_service_counts_once_and_the_system_is_all_of_them() {
        let (_dir, run) = test_run::airline();
        let mut manifest = run.manifest;
        let process = |name: &str, cpu_s, good: Option<f64>| {
            let (cpu_share, core_wait_share, rss_bytes_max) = (0.1, None, 100);
            Process {
                name: name.into(),
                cpu_s,
                cpu_share,
                core_wait_share,
                rss_bytes_max,
                good_per_cpu_s: good,
                seen_s: None,
            }
        };
        manifest.summary.requests = 1_000;
        manifest.summary.processes = vec![
            process(SYSTEM, 2.0, Some(500.0)),
            process("web.1", 1.0, Some(1_000.0)),
            process("web.2", 1.0, Some(1_000.0)),
            process("web-balancer", 1.0, Some(1_000.0)),
            process("auth", 1.0, Some(1_000.0)),
            process("redis", 1.0, Some(1_000.0)),
            process(DRIVER, 9.0, None),
        ];
        let service =
            |name: &str, driven| manifest::Service { name: name.into(), driven, ..Default::default() };
        manifest.services = vec![service("auth", false), service("web", true)];
        manifest.share_costs();
        assert_eq!(costs(&manifest).collect::<Vec<_>>(), [("the system", 250.0)]);
        // 5 s of everything for 1,000 requests
        assert_eq!(Figure::Cpu.read(&manifest, None), Reading::Value(5_000.0));
        assert_eq!(Figure::Memory.read(&manifest, None), Reading::Value(400.0));
    }
}
