//! Figures as an `ExportMetricsServiceRequest` of OTLP 1.x. The numbers of fields are those of `metrics.proto`,
//! `common.proto` and `resource.proto` of opentelemetry-proto.

use std::time::{SystemTime, UNIX_EPOCH};

use tidemark_record::Merged;
use tidemark_wire::protobuf::Message;

use crate::sinks::Figures;
use crate::sinks::family::{Family, Kind, Point, Unit, Value};

/// Sums and histograms count from the run's begin: `AGGREGATION_TEMPORALITY_CUMULATIVE`.
const CUMULATIVE: u64 = 2;
/// Buckets of an exponential histogram, as the specification's default has it.
const BUCKETS_MAX: usize = 160;
/// The finest scale: 128 buckets for each doubling, which is about what our histograms tell apart.
const SCALE_MAX: i32 = 7;
/// One bucket for all that is from 1 µs to an hour is the coarsest that can be needed.
const SCALE_MIN: i32 = -6;

/// What is pushed now; nothing before the load begins.
pub fn request(figures: &Figures, now: SystemTime) -> Option<Vec<u8>> {
    let run = figures.run();
    let start = run.began?;
    let times = (nanoseconds(start), nanoseconds(now.max(start)));
    let mut request = Message::default();
    request.message(1, |of_resource| {
        of_resource.message(1, |resource| {
            attribute(resource, 1, "service.name", "tidemark");
            attribute(resource, 1, "service.version", &run.version);
            attribute(resource, 1, "service.instance.id", &run.id);
            attribute(resource, 1, "tidemark.scenario", &run.name);
        });
        of_resource.message(2, |of_scope| {
            of_scope.message(1, |scope| {
                scope.bytes(1, b"tidemark");
                scope.bytes(2, run.version.as_bytes());
            });
            // what an info says is in the resource's attributes
            let families = figures.families();
            for family in families.iter().filter(|f| f.kind != Kind::Info && !f.points.is_empty()) {
                of_scope.message(2, |metric| write(metric, family, times));
            }
        });
    });
    Some(request.into_bytes())
}

fn nanoseconds(time: SystemTime) -> u64 {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}

fn attribute(message: &mut Message, field: u64, key: &str, value: &str) {
    message.message(field, |pair| {
        pair.bytes(1, key.as_bytes());
        pair.message(2, |any| any.bytes(1, value.as_bytes()));
    });
}

fn write(metric: &mut Message, family: &Family<'_>, times: (u64, u64)) {
    let unit = match family.unit {
        Unit::None => "1",
        Unit::Seconds => "s",
        Unit::Bytes => "By",
    };
    metric.bytes(1, format!("tidemark.{}", family.name).as_bytes());
    metric.bytes(2, family.help.as_bytes());
    metric.bytes(3, unit.as_bytes());
    let points = |of: &mut Message| {
        for point in &family.points {
            of.message(1, |data_point| write_point(data_point, point, times));
        }
    };
    match family.kind {
        Kind::Gauge | Kind::Info => metric.message(5, points),
        Kind::Counter => metric.message(7, |sum| {
            points(sum);
            sum.uint(2, CUMULATIVE);
            sum.uint(3, 1);
        }),
        Kind::Histogram => metric.message(10, |histogram| {
            points(histogram);
            histogram.uint(2, CUMULATIVE);
        }),
    }
}

fn write_point(data_point: &mut Message, point: &Point<'_>, (start_ns, now_ns): (u64, u64)) {
    data_point.fixed(2, start_ns);
    data_point.fixed(3, now_ns);
    let attributes = match point.value {
        Value::Times { .. } => 1,
        _ => 7,
    };
    for (key, value) in &point.labels {
        attribute(data_point, attributes, key, value);
    }
    match &point.value {
        Value::Int(value) => data_point.fixed(6, *value),
        Value::Float(value) => data_point.double(4, *value),
        Value::Times { good_us, .. } => write_histogram(data_point, &Exponential::of(good_us)),
    }
}

fn write_histogram(data_point: &mut Message, histogram: &Exponential) {
    data_point.fixed(4, histogram.count);
    data_point.double(5, histogram.sum_s);
    data_point.sint(6, histogram.scale);
    data_point.fixed(7, histogram.zeros);
    if !histogram.counts.is_empty() {
        data_point.message(8, |buckets| {
            buckets.sint(1, histogram.offset);
            buckets.packed(2, &histogram.counts);
        });
    }
    if let Some((min_s, max_s)) = histogram.ends_s {
        data_point.double(12, min_s);
        data_point.double(13, max_s);
    }
}

/// A histogram with buckets whose bounds are powers of 2^(2^-scale): bucket `i` holds what is above base^i seconds and
/// not above base^(i + 1).
#[derive(Debug, PartialEq)]
struct Exponential {
    count: u64,
    sum_s: f64,
    scale: i32,
    zeros: u64,
    offset: i32,
    counts: Vec<u64>,
    ends_s: Option<(f64, f64)>,
}

impl Exponential {
    /// At the finest scale whose buckets are few enough.
    fn of(times_us: &Merged) -> Exponential {
        let seconds = |us: u64| us as f64 / 1e6;
        let zeros = times_us.count_at(0);
        let value = |us: u64| times_us.median_equivalent(us);
        let recorded = || times_us.iter_recorded().filter(|v| v.value_iterated_to() > 0);
        let ends = recorded().next().zip(recorded().last());
        let ends = ends.map(|(low, high)| (value(low.value_iterated_to()), value(high.value_iterated_to())));
        let (low, high) = ends.unwrap_or((1, 1));
        let fits = |scale: &i32| {
            let buckets = index(seconds(high), *scale) - index(seconds(low), *scale) + 1;
            usize::try_from(buckets).is_ok_and(|buckets| buckets <= BUCKETS_MAX)
        };
        let scale = (SCALE_MIN..=SCALE_MAX).rev().find(fits).unwrap_or(SCALE_MIN);
        let offset = index(seconds(low), scale);
        let mut counts = Vec::new();
        let mut sum_s = 0.0;
        for of_value in recorded() {
            let s = seconds(value(of_value.value_iterated_to()));
            let bucket = usize::try_from(index(s, scale) - offset).unwrap_or(0);
            if counts.len() <= bucket {
                counts.resize(bucket + 1, 0);
            }
            counts[bucket] += of_value.count_at_value();
            sum_s += s * of_value.count_at_value() as f64;
        }
        let ends_s = (!times_us.is_empty()).then(|| (seconds(times_us.min()), seconds(times_us.max())));
        Exponential { count: times_us.len(), sum_s, scale, zeros, offset, counts, ends_s }
    }
}

/// The bucket of a value above 0 at a scale.
fn index(value: f64, scale: i32) -> i32 {
    (value.log2() * f64::from(scale).exp2()).ceil() as i32 - 1
}

#[cfg(test)]
mod tests {
    use tidemark_record::new_merged;

    use super::*;

    #[test]
    fn each_value_lies_within_its_bucket() {
        let mut times_us = new_merged();
        // no two of them in one bucket of a quarter of a doubling
        let values = [1, 2, 17, 700, 1_000, 62_500, 1_000_000, 3_599_000_000];
        for (count, value) in (1..).zip(values) {
            times_us.record_n(value, count).unwrap();
        }
        times_us.record_n(0, 5).unwrap();
        let histogram = Exponential::of(&times_us);
        assert_eq!((histogram.count, histogram.zeros), (times_us.len(), 5));
        assert!(histogram.counts.len() <= BUCKETS_MAX, "{}", histogram.counts.len());
        assert_eq!(histogram.counts.iter().sum::<u64>(), times_us.len() - 5);
        assert_eq!(histogram.scale, 2, "32 doublings, so at most 5 buckets for each");
        let base = f64::from(-histogram.scale).exp2().exp2();
        let filled = histogram.counts.iter().enumerate().filter(|(_, count)| **count > 0);
        for ((at, count), (expected, value)) in filled.zip((1..).zip(values)) {
            let low = base.powi(histogram.offset + at as i32);
            // within what our histograms tell apart
            let s = value as f64 / 1e6;
            assert!(low * 0.999 <= s && s <= low * base * 1.001, "{s} s in {low} to {}", low * base);
            assert_eq!(*count, expected);
        }
    }

    #[test]
    fn a_narrow_histogram_is_fine_and_none_is_empty() {
        let mut times_us = new_merged();
        times_us.record(1_000).unwrap();
        times_us.record(1_100).unwrap();
        assert_eq!(Exponential::of(&times_us).scale, SCALE_MAX);
        let empty = Exponential::of(&new_merged());
        assert_eq!((empty.count, empty.counts.len(), empty.ends_s), (0, 0, None));
    }
}
