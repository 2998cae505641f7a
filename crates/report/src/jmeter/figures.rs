//! The figures of the published report.

use std::collections::BTreeMap;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;

use super::cpu::Machine;
use super::samples::{BOOK, LOGIN, Label, QUERY, Samples};
use super::summariser::Summaries;
use super::{Files, Found, Unread};
use crate::units::count;

/// Width of a step of the latency distribution, milliseconds.
pub const STEP_MS: u64 = 500;
const DAY_S: f64 = 86_400.0;

/// Everything that the report shows; what cannot be computed is null.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Figures {
    /// The directory that was read.
    pub directory: String,
    /// What was read in it.
    pub files: Files,
    /// Throughput of all load generators together, and the operations of a day at that.
    pub throughput: Option<Headline>,
    /// When the first and the last interval were logged; without logs, when the first request began and the last ended (UTC).
    pub began: Option<String>,
    #[allow(missing_docs)]
    pub ended: Option<String>,
    /// All requests.
    pub overall: Option<Responses>,
    /// Those of each label, in the published order.
    pub labels: Vec<Responses>,
    /// Users, queries and bookings.
    pub users: Users,
    /// CPU of each tier.
    pub cpu: Vec<Tier>,
    /// Requests per second of all load generators, for each interval.
    pub total: Series,
    /// Those of each.
    pub generators: Vec<Series>,
    /// What was not understood.
    pub unread: Unread,
    /// What is to be said beside.
    pub notes: Vec<String>,
}

/// Throughput over the intervals but the first and the last, requests per second.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
#[allow(missing_docs)]
pub struct Headline {
    pub average_per_s: f64,
    pub min_per_s: f64,
    pub max_per_s: f64,
    /// The average times 86,400.
    pub operations_per_day: f64,
    /// How many intervals that is of.
    pub intervals: u64,
}

/// Response times of some requests, milliseconds, failed ones too.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[allow(missing_docs)]
pub struct Responses {
    /// Empty of all.
    pub label: String,
    pub requests: u64,
    /// Of all requests, 0 to 1.
    pub share: f64,
    pub average_ms: f64,
    pub min_ms: u64,
    pub max_ms: u64,
    /// As published: of the sorted times that at index round(0.9 · n) from 0, or the last.
    pub p90_ms: u64,
    /// By nearest rank.
    pub p50_ms: u64,
    pub p99_ms: u64,
    pub p999_ms: u64,
    pub errors: u64,
    pub errors_by_code: BTreeMap<String, u64>,
    /// How the times are distributed; steps without a request are left out.
    pub distribution: Vec<Bucket>,
}

/// A step of a distribution.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
#[allow(missing_docs)]
pub struct Bucket {
    pub from_ms: u64,
    /// Excluded.
    pub to_ms: u64,
    pub requests: u64,
    /// Of those of the label, 0 to 1.
    pub share: f64,
}

/// Users, and what the Acme Air plan notes of queries and bookings.
#[derive(Debug, Default, Clone, Serialize, JsonSchema)]
pub struct Users {
    /// Distinct threads of all result files.
    pub total: Option<u64>,
    /// Those of each result file.
    pub by_file: BTreeMap<String, u64>,
    /// Queries without a flight.
    pub queries_empty: Option<u64>,
    /// Flights that queries returned, of the first leg.
    pub flights_returned: Option<u64>,
    #[allow(missing_docs)]
    pub flights_per_query: Option<f64>,
    /// Bookings of one way.
    pub one_way: Option<u64>,
    /// Empty queries of these and the flights returned, 0 to 1.
    pub queries_empty_share: Option<f64>,
    /// (logins − bookings) / logins.
    pub bookings_skipped_share: Option<f64>,
}

/// CPU of the machines of a tier, user and system time, per cent.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[allow(missing_docs)]
pub struct Tier {
    pub tier: String,
    pub average: Option<f64>,
    pub min: Option<f64>,
    pub max: Option<f64>,
    pub machines: u64,
    /// Each of them over time, with what the figures above leave out.
    pub nodes: Vec<Series>,
}

/// Values over time.
#[derive(Debug, Default, Clone, PartialEq, Serialize, JsonSchema)]
#[allow(missing_docs)]
pub struct Series {
    pub name: String,
    /// When each is of, as its file has it.
    pub at: Vec<String>,
    pub values: Vec<f64>,
}

impl Series {
    fn new(name: &str, of: &[(String, f64)]) -> Series {
        let (at, values) = of.iter().cloned().unzip();
        Series { name: name.to_owned(), at, values }
    }
}

impl Found {
    /// What the report shows.
    pub fn figures(&self) -> Figures {
        let mut notes = Vec::new();
        let total = total(&self.summaries, &mut notes);
        let (began, ended) = span(&self.summaries, &self.samples).unzip();
        let labels = self.samples.ordered();
        let mut all = Label::default();
        for label in &labels {
            all.times.merge(&label.times);
            label.errors.iter().for_each(|(code, n)| *all.errors.entry(code.clone()).or_default() += n);
        }
        let requests = all.times.count();
        let throughput = headline(&total.values);
        let (parts, not_http) = (self.samples.parts, self.samples.not_http);
        let kinds = [
            (parts, "parts of another (redirects, embedded files)"),
            (not_http, "no HTTP requests (transactions, other samplers)"),
        ];
        for (n, what) in kinds.into_iter().filter(|(n, _)| *n > 0) {
            notes.push(format!("samples not counted, as they are {what}: {}", count(n)));
        }
        if self.files.logs_without_summary > 0 {
            notes.push(format!("logs without a line `summary +`: {}", self.files.logs_without_summary));
        }
        Figures {
            directory: self.dir.display().to_string(),
            files: self.files,
            throughput,
            began,
            ended,
            overall: (requests > 0).then(|| responses(&all, requests)),
            labels: labels.into_iter().map(|label| responses(label, requests)).collect(),
            users: users(&self.samples, &mut notes),
            cpu: tiers(&self.machines),
            total,
            generators: generators(&self.summaries),
            unread: self.unread.clone(),
            notes,
        }
    }
}

impl Figures {
    /// As one JSON object with a line end.
    pub fn json(&self) -> String {
        serde_json::to_string_pretty(self).unwrap_or_default() + "\n"
    }
}

/// Each load generator over time; those of one name are told apart by their files.
fn generators(logs: &[Summaries]) -> Vec<Series> {
    let name = |of: &Summaries| match logs.iter().filter(|other| other.name == of.name).count() {
        1 => of.name.clone(),
        _ => format!("{} ({})", of.name, of.file),
    };
    logs.iter().map(|of| Series::new(&name(of), &of.intervals)).collect()
}

/// The intervals of all load generators, added by position, as many as the shortest log has.
fn total(logs: &[Summaries], notes: &mut Vec<String>) -> Series {
    let lengths = || logs.iter().map(|log| log.intervals.len());
    let (Some(least), Some(most)) = (lengths().min(), lengths().max()) else { return Series::default() };
    if least < most {
        notes.push(format!(
            "the logs have {least} to {most} intervals: they are added by position up to the end of the shortest"
        ));
    }
    let ends = |log: &Summaries| Some((log.intervals.first()?.0.clone(), log.intervals.last()?.0.clone()));
    let (firsts, lasts): (Vec<_>, Vec<_>) = logs.iter().filter_map(ends).unzip();
    if firsts.iter().max() > lasts.iter().min() {
        notes.push("the logs are not of the same time, so that their sum was never reached; give a directory for each test".into());
    }
    let sum = |at: usize| logs.iter().map(|log| log.intervals[at].1).sum();
    let at = logs[0].intervals.iter().take(least).map(|(at, _)| at.clone()).collect();
    Series { name: "total".into(), at, values: (0..least).map(sum).collect() }
}

/// The headline, of all intervals but the first and the last.
fn headline(values: &[f64]) -> Option<Headline> {
    let whole = values.get(1..values.len().checked_sub(1)?)?;
    let (average_per_s, min_per_s, max_per_s) = spread(whole)?;
    let operations_per_day = average_per_s * DAY_S;
    Some(Headline { average_per_s, min_per_s, max_per_s, operations_per_day, intervals: whole.len() as u64 })
}

/// Mean, least and most; none of nothing.
fn spread(values: &[f64]) -> Option<(f64, f64, f64)> {
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    let least = values.iter().copied().reduce(f64::min)?;
    Some((mean, least, values.iter().copied().reduce(f64::max)?))
}

/// Begin and end.
fn span(logs: &[Summaries], samples: &Samples) -> Option<(String, String)> {
    let all = || logs.iter().flat_map(|log| log.intervals.first().into_iter().chain(log.intervals.last()));
    // one JMeter writes times in one form, in which texts are in the order of time
    let of_logs = all().map(|(at, _)| at).min().zip(all().map(|(at, _)| at).max());
    let time = |ms: u64| {
        Some(Timestamp::from_millisecond(i64::try_from(ms).ok()?).ok()?.strftime("%F %T UTC").to_string())
    };
    of_logs.map(|(began, ended)| (began.clone(), ended.clone())).or_else(|| {
        let (first, last) = samples.span_ms?;
        time(first).zip(time(last))
    })
}

fn responses(of: &Label, all: u64) -> Responses {
    let times = &of.times;
    let requests = times.count();
    let share = |n: u64, of: u64| n as f64 / of.max(1) as f64;
    let (min_ms, max_ms) = times.range_ms();
    let bucket = |(from_ms, n): (u64, u64)| Bucket {
        from_ms,
        to_ms: from_ms + STEP_MS,
        requests: n,
        share: share(n, requests),
    };
    Responses {
        label: of.name.clone(),
        requests,
        share: share(requests, all),
        average_ms: times.mean_ms(),
        min_ms,
        max_ms,
        p90_ms: times.published_p90(),
        p50_ms: times.permille(500),
        p99_ms: times.permille(990),
        p999_ms: times.permille(999),
        errors: of.errors.values().sum(),
        errors_by_code: of.errors.clone(),
        distribution: times.by_step(STEP_MS).into_iter().map(bucket).collect(),
    }
}

fn users(samples: &Samples, notes: &mut Vec<String>) -> Users {
    let requests = |name: &str| {
        let label = samples.labels.iter().find(|label| label.name == name);
        label.map_or((0, 0), |label| (label.times.count(), label.errors.values().sum()))
    };
    let [(logins, _), (bookings, failed_bookings), (queries, failed_queries)] =
        [LOGIN, BOOK, QUERY].map(requests);
    let flights = samples.flights;
    let known = [
        (queries.saturating_sub(failed_queries + flights.queries), QUERY, "FLIGHTTOCOUNT"),
        (bookings.saturating_sub(failed_bookings + flights.bookings), BOOK, "ONEWAY"),
    ];
    for (without, label, variable) in known {
        if without > 0 {
            let n = count(without);
            notes.push(format!(
                "{label} without {variable}: {n}; JMeter writes it with -Jsample_variables={variable}"
            ));
        }
    }
    let of_queries = |of: u64| (flights.queries > 0).then_some(of);
    let seen = flights.empty + flights.returned;
    Users {
        total: (!samples.threads.is_empty())
            .then(|| samples.threads.iter().map(|(_, threads)| threads).sum()),
        by_file: samples.threads.iter().cloned().collect(),
        queries_empty: of_queries(flights.empty),
        flights_returned: of_queries(flights.returned),
        flights_per_query: of_queries(flights.queries).map(|n| flights.returned as f64 / n as f64),
        one_way: (flights.bookings > 0).then_some(flights.one_way),
        queries_empty_share: (seen > 0).then(|| flights.empty as f64 / seen as f64),
        bookings_skipped_share: (logins > 0).then(|| (logins as f64 - bookings as f64) / logins as f64),
    }
}

fn tiers(machines: &[Machine]) -> Vec<Tier> {
    let mut tiers: BTreeMap<&str, Vec<&Machine>> = BTreeMap::new();
    machines.iter().for_each(|machine| tiers.entry(&machine.tier).or_default().push(machine));
    let tier = |(tier, machines): (&str, Vec<&Machine>)| {
        let values: Vec<f64> = machines.iter().flat_map(|machine| machine.busy()).collect();
        let spread = spread(&values);
        Tier {
            tier: tier.to_owned(),
            average: spread.map(|(mean, ..)| mean),
            min: spread.map(|(_, min, _)| min),
            max: spread.map(|(.., max)| max),
            machines: machines.len() as u64,
            nodes: machines.iter().map(|machine| Series::new(&machine.name, &machine.cpu)).collect(),
        }
    };
    tiers.into_iter().map(tier).collect()
}
