//! Figures as OpenMetrics text.

use std::collections::HashMap;
use std::fmt;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, MetricEncoder};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::exemplar::Exemplar;
use prometheus_client::registry::Registry;
use tidemark_record::Merged;

use super::family::{Family, Kind, Unit, Value};
use super::{SharedFigures, looked_at};

/// Upper bounds of the buckets, microseconds: 1, 2.5 and 5 times each power of ten from 100 µs to a minute.
pub const BOUNDS_US: [u64; 18] = [
    100, 250, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000, 1_000_000,
    2_500_000, 5_000_000, 10_000_000, 25_000_000, 60_000_000,
];

type NoLabels = [(&'static str, &'static str); 0];

/// The whole page.
///
/// # Errors
/// Only if the library refuses a metric, which would be a mistake of ours.
pub fn page(figures: &SharedFigures) -> Result<String, fmt::Error> {
    let mut registry = Registry::default();
    registry.register_collector(Box::new(Page(figures.clone())));
    let mut text = String::new();
    prometheus_client::encoding::text::encode(&mut text, &registry)?;
    Ok(text)
}

struct Page(SharedFigures);

impl fmt::Debug for Page {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Page")
    }
}

impl Collector for Page {
    fn encode(&self, mut encoder: DescriptorEncoder) -> Result<(), fmt::Error> {
        let figures = looked_at(&self.0);
        figures
            .families()
            .iter()
            .filter(|family| !family.points.is_empty())
            .try_for_each(|family| write(family, &mut encoder))
    }
}

fn write(family: &Family<'_>, encoder: &mut DescriptorEncoder) -> Result<(), fmt::Error> {
    let unit = match family.unit {
        Unit::None => "",
        Unit::Seconds => "_seconds",
        Unit::Bytes => "_bytes",
    };
    let name = format!("tidemark_{}{unit}", family.name);
    let kind = match family.kind {
        Kind::Counter => MetricType::Counter,
        Kind::Gauge => MetricType::Gauge,
        Kind::Info => MetricType::Info,
        Kind::Histogram => MetricType::Histogram,
    };
    let mut metric = encoder.encode_descriptor(&name, family.help, None, kind)?;
    for point in &family.points {
        if family.kind == Kind::Info {
            metric.encode_info(&point.labels)?;
        } else if point.labels.is_empty() {
            value(&mut metric, family.kind, &point.value)?;
        } else {
            value(&mut metric.encode_family(&point.labels)?, family.kind, &point.value)?;
        }
    }
    Ok(())
}

fn value(metric: &mut MetricEncoder<'_>, kind: Kind, value: &Value<'_>) -> Result<(), fmt::Error> {
    match (value, kind) {
        (Value::Times { good_us, failed }, _) => histogram(metric, good_us, *failed),
        (Value::Int(value), Kind::Counter) => metric.encode_counter::<NoLabels, u64, f64>(value, None),
        (Value::Float(value), Kind::Counter) => metric.encode_counter::<NoLabels, f64, f64>(value, None),
        (Value::Int(value), _) => metric.encode_gauge(&i64::try_from(*value).unwrap_or(i64::MAX)),
        (Value::Float(value), _) => metric.encode_gauge(value),
    }
}

/// What failed is slower than every bound; the sum is of what ended well.
fn histogram(metric: &mut MetricEncoder<'_>, good_us: &Merged, failed: u64) -> Result<(), fmt::Error> {
    let mut counts = [0; BOUNDS_US.len() + 1];
    let mut sum_us = 0.0;
    for value in good_us.iter_recorded() {
        let us = good_us.median_equivalent(value.value_iterated_to());
        counts[BOUNDS_US.partition_point(|&bound_us| bound_us < us)] += value.count_at_value();
        sum_us += us as f64 * value.count_at_value() as f64;
    }
    counts[BOUNDS_US.len()] += failed;
    let bounds_s = BOUNDS_US.iter().map(|&us| us as f64 / 1e6).chain([f64::INFINITY]);
    let buckets: Vec<(f64, u64)> = bounds_s.zip(counts).collect();
    let exemplars: Option<&HashMap<usize, Exemplar<NoLabels, f64>>> = None;
    metric.encode_histogram(sum_us / 1e6, counts.iter().sum(), &buckets, exemplars)
}
