//! A strict reader of OpenMetrics and of Prometheus' own text.

use std::collections::{BTreeMap, BTreeSet};

/// A series' name with its labels, as written, and its value.
pub type Samples = BTreeMap<String, f64>;

/// Reads a page, and holds it against what its format asks for.
pub fn read(page: &str, openmetrics: bool) -> Samples {
    let page = match openmetrics {
        true => page.strip_suffix("# EOF\n").unwrap_or_else(|| panic!("no EOF at the end of {page}")),
        false => page,
    };
    let mut samples = Samples::new();
    let mut families = BTreeSet::new();
    let (mut family, mut kind) = (String::new(), String::new());
    for line in page.lines() {
        if let Some(said) = line.strip_prefix("# ") {
            let words: Vec<&str> = said.splitn(3, ' ').collect();
            match words[..] {
                ["HELP", name, help] => {
                    assert!(!help.is_empty() && families.insert(name.to_owned()), "again: {line}");
                    family = name.into();
                    kind.clear();
                }
                ["TYPE", name, of] => {
                    assert_eq!(name, family, "HELP and TYPE are of one family");
                    kind = of.into();
                }
                _ => panic!("{line}"),
            }
            continue;
        }
        let (series, value) = line.rsplit_once(' ').unwrap_or_else(|| panic!("{line}"));
        let name = series.split('{').next().unwrap();
        let suffix = name.strip_prefix(family.as_str()).unwrap_or_else(|| panic!("{line} in {family}"));
        let suffixes: &[&str] = match (kind.as_str(), openmetrics) {
            ("counter", true) => &["_total"],
            ("info", true) => &["_info"],
            ("counter" | "gauge", _) => &[""],
            ("histogram", _) => &["_bucket", "_sum", "_count"],
            other => panic!("{other:?}: {line}"),
        };
        assert!(suffixes.contains(&suffix), "{line} in a {kind}");
        let value: f64 = value.parse().unwrap_or_else(|_| panic!("{line}"));
        assert!(samples.insert(series.to_owned(), value).is_none(), "a series twice: {line}");
    }
    buckets_add_up(&samples);
    samples
}

fn buckets_add_up(samples: &Samples) {
    for (series, count) in
        samples.iter().filter(|(series, _)| series.split('{').next().unwrap().ends_with("_count"))
    {
        let (name, labels) =
            series.split_once('{').map_or((series.as_str(), ""), |(n, l)| (n, l.trim_end_matches('}')));
        let bucket = name.replace("_count", "_bucket");
        let of_series =
            samples.iter().filter(|(s, _)| s.starts_with(&format!("{bucket}{{")) && s.contains(labels));
        let mut buckets: Vec<(f64, f64)> = of_series
            .map(|(s, value)| {
                let le = s.split("le=\"").nth(1).unwrap().split('"').next().unwrap();
                (le.replace("+Inf", "inf").parse().unwrap(), *value)
            })
            .collect();
        buckets.sort_by(|a, b| a.0.total_cmp(&b.0));
        assert!(buckets.len() > 2 && buckets.is_sorted_by_key(|bucket| bucket.1), "{series}: {buckets:?}");
        assert_eq!(buckets.last().unwrap(), &(f64::INFINITY, *count), "{series}");
    }
}

/// The sum of a counter's series that have all of these labels.
pub fn sum(samples: &Samples, name: &str, labels: &[&str]) -> f64 {
    let of = |series: &&String| {
        series.split('{').next() == Some(name) && labels.iter().all(|label| series.contains(label))
    };
    samples.iter().filter(|(series, _)| of(series)).map(|(_, value)| value).sum()
}
