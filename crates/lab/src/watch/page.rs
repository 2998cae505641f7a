//! A page of metrics in the text formats of Prometheus and OpenMetrics: what is looked for in it, and what CPU, memory, disk
//! and network it tells of.

use std::collections::{HashMap, HashSet};

use tidemark_scenario::plan::MetricSeries;

use crate::monitor::Reading;

/// The series by which a page is one of a machine.
const CPU: &str = "node_cpu_seconds_total";
/// Modes of a CPU in which it does nothing for anybody here; `guest` time is in `user` as well.
const IDLE: [&str; 5] = ["idle", "iowait", "steal", "guest", "guest_nice"];
/// Modes in which it works in the kernel.
const KERNEL: [&str; 3] = ["system", "irq", "softirq"];
/// Most series of a page.
const POINTS_MAX: usize = 200_000;
/// Largest whole number that is taken as told: an exabyte, and 30,000 years of a core.
const WHOLE_MAX: u64 = 1_000_000_000_000_000_000;
/// Names that are told where one is not there.
const TOLD: usize = 12;

/// One series right now.
#[derive(Debug, PartialEq)]
struct Point<'p> {
    name: &'p str,
    labels: Vec<(&'p str, String)>,
    value: f64,
}

/// A page, read.
#[derive(Debug, Default)]
pub struct Page<'p> {
    points: Vec<Point<'p>>,
    types: HashMap<&'p str, &'p str>,
}

/// What one of the series came to.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Value {
    /// Sum over all that have the labels.
    pub value: f64,
    /// Whether it only rises, so that its rate is of interest.
    pub is_counter: bool,
}

impl<'p> Page<'p> {
    /// Reads a page; a line that cannot be read is passed over.
    pub fn read(text: &'p str) -> Page<'p> {
        let mut page = Page::default();
        for line in text.lines() {
            let line = line.trim_start();
            if let Some(comment) = line.strip_prefix('#') {
                let mut words = comment.split_ascii_whitespace();
                if let (Some("TYPE"), Some(name), Some(kind)) = (words.next(), words.next(), words.next()) {
                    page.types.insert(name, kind);
                }
            } else if page.points.len() < POINTS_MAX {
                page.points.extend(point(line));
            }
        }
        page
    }

    fn of<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a Point<'p>> {
        self.points.iter().filter(move |point| point.name == name)
    }

    fn sum(&self, name: &str) -> Option<f64> {
        sum(self.of(name))
    }

    /// What a series is now.
    pub fn value(&self, series: &MetricSeries) -> Option<Value> {
        let has_all = |point: &&Point<'_>| {
            let has = |(label, value): &(String, String)| {
                point.labels.iter().any(|(known, its)| *known == label.as_str() && its == value)
            };
            series.labels.iter().all(has)
        };
        let value = sum(self.of(&series.name).filter(has_all))?;
        Some(Value { value, is_counter: self.is_counter(&series.name) })
    }

    fn is_counter(&self, name: &str) -> bool {
        let kind = |name: &str| self.types.get(name).copied();
        if let Some(kind) = kind(name) {
            return kind == "counter";
        }
        // parts of a histogram, and counters of OpenMetrics, whose type stands under the name without its end
        let part = ["_total", "_count", "_sum", "_bucket"]
            .iter()
            .find_map(|end| Some((*end, name.strip_suffix(*end)?)));
        part.is_some_and(|(end, whole)| {
            end == "_total" || matches!(kind(whole), Some("histogram" | "summary" | "counter"))
        })
    }

    /// What the page tells of CPU, memory, disk and network: of a machine, as node_exporter does, else of the process that
    /// serves it, as libraries of metrics do.
    pub fn reading(&self) -> Option<Reading> {
        self.machine().or_else(|| self.process())
    }

    /// Whether that is of a whole machine.
    pub fn is_machine(&self) -> bool {
        self.of(CPU).next().is_some()
    }

    fn machine(&self) -> Option<Reading> {
        if !self.is_machine() {
            return None;
        }
        let mode = |point: &Point<'_>| {
            point
                .labels
                .iter()
                .find(|(label, _)| *label == "mode")
                .map(|(_, mode)| mode.clone())
                .unwrap_or_default()
        };
        let cpu = |is_it: &dyn Fn(&str) -> bool| {
            microseconds(sum(self.of(CPU).filter(|&point| is_it(&mode(point)))).unwrap_or(0.0))
        };
        let memory = |name: &str| self.sum(name).unwrap_or(0.0);
        let used = memory("node_memory_MemTotal_bytes") - memory("node_memory_MemAvailable_bytes");
        // what the kernel moved, in KiB; a page without it tells each disk
        let paged = |name: &str| self.sum(name).map(|kib| whole(kib * 1024.0));
        let disk =
            |kernel: &str, disks: &str| paged(kernel).or_else(|| self.sum(disks).map(whole)).unwrap_or(0);
        Some(Reading {
            cpu_us: cpu(&|mode| !IDLE.contains(&mode)),
            cpu_system_us: cpu(&|mode| KERNEL.contains(&mode)),
            steal_us: cpu(&|mode| mode == "steal"),
            rss_bytes: whole(used),
            voluntary_switches: self.sum("node_context_switches_total").map_or(0, whole),
            disk_read_bytes: disk("node_vmstat_pgpgin", "node_disk_read_bytes_total"),
            disk_written_bytes: disk("node_vmstat_pgpgout", "node_disk_written_bytes_total"),
            net_received_bytes: self.sum("node_network_receive_bytes_total").map_or(0, whole),
            net_sent_bytes: self.sum("node_network_transmit_bytes_total").map_or(0, whole),
            ..Reading::default()
        })
    }

    fn process(&self) -> Option<Reading> {
        let cpu_s = self.sum("process_cpu_seconds_total")?;
        Some(Reading {
            cpu_us: microseconds(cpu_s),
            rss_bytes: self.sum("process_resident_memory_bytes").map_or(0, whole),
            threads: self.sum("process_threads").or_else(|| self.sum("go_threads")).map_or(0, whole),
            net_received_bytes: self.sum("process_network_receive_bytes_total").map_or(0, whole),
            net_sent_bytes: self.sum("process_network_transmit_bytes_total").map_or(0, whole),
            ..Reading::default()
        })
    }

    /// What it has instead of a series that it has not: names that are like it, or the first.
    pub fn names_like(&self, name: &str) -> String {
        let mut known = HashSet::new();
        let mut names: Vec<&str> =
            self.points.iter().map(|point| point.name).filter(|name| known.insert(*name)).collect();
        if names.is_empty() {
            return "; it has none at all".into();
        }
        let near = tidemark_scenario::diagnostic::did_you_mean(name, names.iter().copied());
        if !near.is_empty() {
            return near;
        }
        let more = if names.len() > TOLD { ", …" } else { "" };
        names.truncate(TOLD);
        format!("; it has {}{more}", names.join(", "))
    }
}

fn sum<'a, 'p: 'a>(points: impl Iterator<Item = &'a Point<'p>>) -> Option<f64> {
    points.fold(None, |sum, point| Some(sum.unwrap_or(0.0) + point.value))
}

fn whole(value: f64) -> u64 {
    // what is below 0, and what is no number, becomes 0
    (value as u64).min(WHOLE_MAX)
}

fn microseconds(s: f64) -> u64 {
    whole(s * 1e6)
}

/// A line: name, labels in braces, value, and perhaps more that is of no interest.
fn point(line: &str) -> Option<Point<'_>> {
    let end = line.find(|c: char| c == '{' || c.is_ascii_whitespace())?;
    let (name, rest) = line.split_at(end);
    let (labels, rest) = match rest.strip_prefix('{') {
        Some(rest) => labels(rest)?,
        None => (Vec::new(), rest),
    };
    let value: f64 = rest.split_ascii_whitespace().next()?.parse().ok()?;
    (!name.is_empty() && value.is_finite()).then_some(Point { name, labels, value })
}

/// Labels up to the closing brace, and what is behind it.
fn labels(mut text: &str) -> Option<(Vec<(&str, String)>, &str)> {
    let mut labels = Vec::new();
    loop {
        text = text.trim_start_matches([' ', ',']);
        if let Some(rest) = text.strip_prefix('}') {
            return Some((labels, rest));
        }
        let (name, rest) = text.split_once('=')?;
        let (value, rest) = quoted(rest.trim_start().strip_prefix('"')?)?;
        labels.push((name.trim(), value));
        text = rest;
    }
}

/// A value up to its closing quote, and what is behind that.
fn quoted(text: &str) -> Option<(String, &str)> {
    let mut value = String::new();
    let mut letters = text.char_indices();
    while let Some((at, letter)) = letters.next() {
        match letter {
            '"' => return Some((value, &text[at + 1..])),
            '\\' => value.push(match letters.next()?.1 {
                'n' => '\n',
                other => other,
            }),
            other => value.push(other),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const NODE: &str = "\
# HELP node_cpu_seconds_total Seconds the CPUs spent in each mode.
# TYPE node_cpu_seconds_total counter
node_cpu_seconds_total{cpu=\"0\",mode=\"idle\"} 1000.5
node_cpu_seconds_total{cpu=\"0\",mode=\"user\"} 10
node_cpu_seconds_total{cpu=\"0\",mode=\"system\"} 2.5
node_cpu_seconds_total{cpu=\"1\",mode=\"user\"} 1
node_cpu_seconds_total{cpu=\"1\",mode=\"steal\"} 0.5
# TYPE node_load1 gauge
node_load1 0.25
node_memory_MemTotal_bytes 8.0e+09
node_memory_MemAvailable_bytes 2.0e+09
node_disk_read_bytes_total{device=\"sda\"} 100
node_disk_read_bytes_total{device=\"sdb\"} 11
node_vmstat_pgpgout 3
node_network_receive_bytes_total{device=\"eth0\"} 5
node_network_receive_bytes_total{device=\"lo\"} 6
process_cpu_seconds_total 77
";

    fn value(page: &Page<'_>, series: &str) -> Option<(f64, bool)> {
        let value = page.value(&MetricSeries::parse(series).unwrap())?;
        Some((value.value, value.is_counter))
    }

    #[test]
    fn a_machine_is_read_as_its_exporter_tells() {
        let reading = Page::read(NODE).reading().unwrap();
        assert_eq!(
            (reading.cpu_us, reading.cpu_system_us, reading.steal_us),
            (13_500_000, 2_500_000, 500_000)
        );
        assert_eq!(reading.rss_bytes, 6_000_000_000);
        assert_eq!((reading.disk_read_bytes, reading.disk_written_bytes), (111, 3072));
        assert_eq!((reading.net_received_bytes, reading.net_sent_bytes), (11, 0));
    }

    #[test]
    fn a_process_is_read_as_its_library_tells() {
        let text = "process_cpu_seconds_total 1.5\nprocess_resident_memory_bytes 2048\ngo_threads 9\n";
        let reading = Page::read(text).reading().unwrap();
        assert_eq!((reading.cpu_us, reading.rss_bytes, reading.threads), (1_500_000, 2048, 9));
        assert!(Page::read("x 1\n").reading().is_none());
    }

    #[test]
    fn nonsense_is_no_endless_figure() {
        let text = "process_cpu_seconds_total{a=\"1\"} 1e308\nprocess_cpu_seconds_total{a=\"2\"} 1e308\n\
                    process_resident_memory_bytes 1e300\nprocess_threads -5\n";
        let reading = Page::read(text).reading().unwrap();
        assert_eq!((reading.cpu_us, reading.rss_bytes, reading.threads), (WHOLE_MAX, WHOLE_MAX, 0));
    }

    #[test]
    fn series_are_added_up_over_labels_that_are_not_said() {
        let page = Page::read(NODE);
        assert_eq!(value(&page, "node_load1"), Some((0.25, false)));
        assert_eq!(value(&page, "node_network_receive_bytes_total"), Some((11.0, true)));
        assert_eq!(value(&page, "node_network_receive_bytes_total{device=\"lo\"}"), Some((6.0, true)));
        assert_eq!(value(&page, "node_network_receive_bytes_total{device=\"x\"}"), None);
        assert_eq!(value(&page, "node_load"), None);
        assert_eq!(page.names_like("node_load"), "; did you mean node_load1?");
        assert!(page.names_like("zzz").starts_with("; it has node_cpu_seconds_total, node_load1"));
        assert_eq!(Page::read("").names_like("x"), "; it has none at all");
        assert_eq!(Page::read("b 1\na 1\nb{c=\"d\"} 1\n").names_like("zzz"), "; it has b, a");
    }

    #[test]
    fn the_names_of_the_largest_page_are_told_as_those_of_a_small_one() {
        let text: String = (0..POINTS_MAX).map(|number| format!("series_{number} 1\n")).collect();
        assert!(Page::read(&text).names_like("zzz").starts_with("; it has series_0, series_1, "));
    }

    #[test]
    fn both_formats_say_what_a_counter_is() {
        let text = "# TYPE a counter\na_total 5 # {trace=\"x\"} 1\n# TYPE h histogram\nh_bucket{le=\"+Inf\"} 3\nh_count 3\nh_sum 9\n\
                    # TYPE b counter\nb 7 1700000000\n# TYPE n_count gauge\nn_count 4\nfree_count 6\nbad{x 1\nn NaN\n# EOF\n";
        let page = Page::read(text);
        for (series, is) in [
            ("a_total", Some((5.0, true))),
            ("h_bucket{le=\"+Inf\"}", Some((3.0, true))),
            ("h_count", Some((3.0, true))),
            ("b", Some((7.0, true))),
            ("n_count", Some((4.0, false))),
            ("free_count", Some((6.0, false))),
            ("n", None),
        ] {
            assert_eq!(value(&page, series), is, "{series}");
        }
        let odd = "x{a=\"b\\\"c\\\\\\n,}\",d=\"e\"} 1";
        let read = point(odd).unwrap();
        assert_eq!(read.labels, [("a", "b\"c\\\n,}".to_owned()), ("d", "e".to_owned())]);
    }

    proptest! {
        #[test]
        fn odd_pages_never_panic(text in "([a-z_]{0,6}[{}=\",\\\\ \n#0-9.eE+-]{0,8}){0,40}|\\PC{0,80}") {
            let page = Page::read(&text);
            let _ = page.reading();
            let _ = page.names_like("x");
        }
    }
}
