//! Several scenarios held against each other: figures and JSON; [`blocks::compared`](crate::blocks::compared) makes a report
//! of them.
//!
//! Everything is made from the runs of a comparison's directory. Rounds of one scenario count as one longer run: their
//! histograms are merged. What differs and how sure that is are its [`Claims`]: told by how much the rounds differ; with
//! fewer than three nothing is claimed.

mod broken;
mod claims;
mod errors;
mod figure;
mod measured;
mod rule;
mod starved;
mod words;

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::Serialize;
use tidemark_record::summary::{Latency, Status, Summary, Verdict};
use tidemark_record::{
    ComparedRuns, Distribution, Manifest, Merged, Outcome, Part, Reason, RecordError, Run, SYSTEM,
    merge_merged, new_merged,
};

use crate::cost::NamedBill;
use crate::page::curve;
use crate::statistics::LEAST;
pub use crate::statistics::Looks;
use crate::watched::counted_processes;
pub use broken::Broken;
pub use claims::{Asked, Claim, Claims, Covers, SIDES_MAX, ShownSide, Side, SideRun};
pub use errors::Errors;
pub use figure::{Figure, Reading};
pub use rule::{Judged, Rule};
pub(crate) use words::{change, range, title};

/// A comparison in figures: the object that `--json` prints for one.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Compared {
    /// Its name.
    pub name: String,
    /// What is compared, for a person.
    pub description: String,
    /// The rate of requests at which each ran again; null where none did.
    pub equal_rate_per_s: Option<f64>,
    /// The share of its own rate at which each ran again; null where none did.
    pub own_rate: Option<f64>,
    /// With their own loads first, then at an equal rate, or each at a share of its own.
    pub parts: Vec<ComparedPart>,
    /// What was to be compared and is not here, with why.
    pub left_out: Vec<String>,
    /// Why it did not come to its end, if it did not.
    pub stopped: Option<String>,
    /// Where it is.
    pub run_dir: String,
    /// With `--prices`: what each side costs; absent without.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub bills: Vec<NamedBill>,
}

/// One part of a comparison.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct ComparedPart {
    /// Which.
    pub part: Part,
    /// In the comparison's order; those that ran.
    #[serde(rename = "variants")]
    pub sides: Vec<Figures>,
    /// The others against the first.
    pub ratios: Vec<Ratios>,
}

/// What one side did, all its rounds together.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Figures {
    /// Its name.
    pub name: String,
    /// Rounds that ended.
    pub rounds: u64,
    /// The worst verdict of them, with every reason.
    pub verdict: Verdict,
    /// Good answers per second.
    pub answered_per_s: f64,
    /// Requests that became due per second.
    pub offered_per_s: f64,
    /// Requests that ended.
    pub requests: u64,
    /// Failures by kind.
    pub errors: BTreeMap<String, u64>,
    /// Arrivals given up because a bound was reached.
    pub dropped: u64,
    /// Response time of all requests that were due: a failure is slower than every bound.
    pub response_time_us: Latency,
    /// Bytes of a good answer's body, mean; null where no size is known.
    pub body_bytes_mean: Option<f64>,
    /// CPU time of the system for each request, microseconds; null where it was not started here.
    pub system_cpu_us_per_request: Option<f64>,
    /// Mean CPU use of the system in cores; null where it was not started here.
    pub system_cpu_share: Option<f64>,
    /// Most memory of the system, bytes; null where it was not started here.
    pub system_rss_bytes_max: Option<u64>,
    /// What each store that was started took, and what was watched beside the system, by its name; no whole machines.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub stores: BTreeMap<String, StoreFigures>,
    /// CPU time of the driver for each request, microseconds.
    pub driver_cpu_us_per_request: f64,
    /// Mean CPU use of the driver in cores.
    pub driver_cpu_share: f64,
    /// Where its runs are.
    pub run_dirs: Vec<String>,
    /// Percentile (0 to 100) and response time (microseconds), ascending.
    #[serde(skip)]
    pub(crate) curve: Vec<(f64, u64)>,
}

/// What a store took, or what was watched, all nodes and rounds together.
#[derive(Debug, Clone, Copy, Default, Serialize, JsonSchema)]
pub struct StoreFigures {
    /// CPU time for each request to the system, microseconds.
    pub cpu_us_per_request: f64,
    /// Mean CPU use in cores.
    pub cpu_share: f64,
    /// Most memory, bytes.
    pub rss_bytes_max: u64,
}

/// How one side compares to the first.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Ratios {
    /// Its name.
    #[serde(rename = "variant")]
    pub side: String,
    /// The name of the first.
    pub to: String,
    /// Of good answers per second.
    pub answered_per_s: Ratio,
    /// Of the median response time.
    pub p50: Ratio,
    /// Of its 99th percentile.
    pub p99: Ratio,
    /// Of the mean size of a good answer's body.
    pub body_bytes: Ratio,
    /// Of the system's CPU time for each request.
    pub system_cpu_per_request: Ratio,
    /// Why no difference is claimed whatever the ratios are: `needs 3 rounds, has 1`; null where claims are made.
    pub no_claim: Option<String>,
}

/// A ratio and between which bounds it lies, held together with all others of its part; null what cannot be told.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, JsonSchema)]
pub struct Ratio {
    /// The ratio.
    pub ratio: Option<f64>,
    /// Lower bound.
    pub low: Option<f64>,
    /// Upper bound.
    pub high: Option<f64>,
    /// The claim in a word or two, as `tidemark compare` has it: `worse`, `better`, `no difference` (known to within 5 %), `too
    /// noisy`, `not sure`; empty where nothing is known of how sure it is.
    pub says: &'static str,
    /// Whether there is a difference: 1 lies outside the bounds, and the ratio is not nearer to 1 than 1 %. Null where
    /// nothing is claimed.
    pub difference: Option<bool>,
}

impl Ratio {
    /// What is claimed of a figure; nothing where it was not measured.
    fn of(claim: Option<&Claim>) -> Ratio {
        claim.map_or_else(Ratio::default, |claim| Ratio {
            ratio: claim.ratio.filter(|ratio| ratio.is_finite()),
            low: claim.low,
            high: claim.high,
            says: claim.word(),
            // without a ratio there is nothing to show it by
            difference: claim.difference.filter(|_| claim.ratio.is_some()),
        })
    }
}

impl Compared {
    /// Computes the figures.
    ///
    /// # Errors
    /// Where a run's histograms are damaged.
    pub fn of(runs: &ComparedRuns) -> Result<Compared, RecordError> {
        let mut parts = Vec::new();
        for part in [Part::OwnLoad, Part::EqualRate, Part::OwnRate] {
            let mut sides = Vec::new();
            for (index, name) in runs.comparison.sides.iter().enumerate() {
                let of: Vec<(u64, &Run)> = rounds(runs, index, part);
                if !of.is_empty() {
                    sides.push(Figures::of(name, &of)?);
                }
            }
            if !sides.is_empty() {
                // at rates of their own times are not held against each other
                let ratios = if part == Part::OwnRate { Vec::new() } else { ratios(runs, part, &sides)? };
                parts.push(ComparedPart { part, ratios, sides });
            }
        }
        Ok(Compared {
            name: runs.comparison.name.clone(),
            description: runs.comparison.description.clone(),
            equal_rate_per_s: runs.comparison.equal_rate_per_s,
            own_rate: runs.comparison.own_rate,
            parts,
            left_out: runs.comparison.left_out.clone(),
            stopped: runs.comparison.stopped.clone(),
            run_dir: runs.dir.display().to_string(),
            bills: Vec::new(),
        })
    }

    /// What all of it is worth: the worst verdict of its rows; none where nothing ran.
    pub fn status(&self) -> Option<Status> {
        let all = || self.parts.iter().flat_map(|part| &part.sides).map(|side| side.verdict.status);
        [Status::Fail, Status::Invalid, Status::Pass].into_iter().find(|status| all().any(|of| of == *status))
    }

    /// As one JSON object, indented, with a line end: `docs/run-comparison.schema.json`.
    pub fn json(&self) -> String {
        serde_json::to_string_pretty(self).expect("a comparison is plain JSON") + "\n"
    }
}

impl Figures {
    fn of(name: &str, runs: &[(u64, &Run)]) -> Result<Figures, RecordError> {
        let (mut times, mut answered) = (new_merged(), 0);
        for (_, run) in runs {
            let (count, histogram) = good(run)?;
            answered += count;
            merge_merged(&mut times, &histogram);
        }
        let summaries: Vec<&Summary> = runs.iter().map(|(_, run)| &run.manifest.summary).collect();
        let total = |of: &dyn Fn(&Summary) -> f64| summaries.iter().map(|summary| of(summary)).sum::<f64>();
        let measured_s = total(&|summary| summary.measured_s).max(f64::MIN_POSITIVE);
        let requests: u64 = summaries.iter().map(|summary| summary.requests).sum();
        let mut errors = BTreeMap::new();
        for (kind, count) in summaries.iter().flat_map(|summary| &summary.errors) {
            *errors.entry(kind.clone()).or_default() += count;
        }
        let failed = summaries.iter().map(|summary| summary.failed).sum();
        let all = Distribution::new(&times, failed);
        let system = |of: &dyn Fn(&tidemark_record::summary::Process) -> f64| {
            let each = summaries
                .iter()
                .map(|summary| summary.processes.iter().find(|process| process.name == SYSTEM).map(of));
            each.collect::<Option<Vec<f64>>>()
        };
        let per_request = |cpu_s: f64| cpu_s * 1e6 / requests.max(1) as f64;
        let mut stores: BTreeMap<String, StoreFigures> = BTreeMap::new();
        let processes = runs.iter().flat_map(|(_, run)| counted_processes(&run.manifest));
        for process in processes.filter(|process| process.name != SYSTEM) {
            let of = stores.entry(process.name.clone()).or_default();
            of.cpu_us_per_request += per_request(process.cpu_s);
            of.cpu_share += process.cpu_s / measured_s;
            of.rss_bytes_max = of.rss_bytes_max.max(process.rss_bytes_max);
        }
        let system_cpu_s = system(&|process| process.cpu_s).map(|all| all.iter().sum::<f64>());
        Ok(Figures {
            name: name.to_owned(),
            rounds: runs.iter().map(|(round, _)| round).collect::<BTreeSet<_>>().len() as u64,
            verdict: worst(runs.iter().map(|(_, run)| &run.manifest)),
            answered_per_s: answered as f64 / measured_s,
            offered_per_s: total(&|summary| summary.offered_per_s * summary.measured_s) / measured_s,
            requests,
            errors,
            dropped: summaries.iter().map(|summary| summary.dropped).sum(),
            response_time_us: all.latency(),
            body_bytes_mean: body_bytes(&summaries),
            system_cpu_us_per_request: system_cpu_s.map(per_request),
            system_cpu_share: system_cpu_s.map(|cpu_s| cpu_s / measured_s),
            system_rss_bytes_max: system(&|process| process.rss_bytes_max as f64)
                .map(|all| all.into_iter().fold(0.0, f64::max) as u64),
            stores,
            driver_cpu_us_per_request: per_request(total(&|summary| summary.driver.cpu_s)),
            driver_cpu_share: total(&|summary| summary.driver.cpu_s) / measured_s,
            run_dirs: runs.iter().map(|(_, run)| run.dir.display().to_string()).collect(),
            curve: curve(all),
        })
    }
}

/// The runs of one side in one part, with their rounds.
fn rounds(runs: &ComparedRuns, side: usize, part: Part) -> Vec<(u64, &Run)> {
    let of = runs.comparison.runs.iter().filter(|run| run.side == side && run.part == part);
    of.map(|run| run.round).zip(runs.of(side, part)).collect()
}

/// What was answered in a run's measured window as it should, and the response times of what was due in it.
fn good(run: &Run) -> Result<(u64, Merged), RecordError> {
    let window: BTreeSet<u64> =
        run.load.iter().filter(|load| load.in_window).map(|load| load.start_us).collect();
    let (mut answered, mut times) = (0, new_merged());
    for series in run.series.iter().filter(|series| series.outcome == Outcome::Ok) {
        if series.in_window && window.contains(&series.start_us) {
            answered += series.count;
        }
        // what was due in the window and ended behind it belongs to it
        if series.measured {
            run.merge(&mut times, &series.response_time_us)?;
        }
    }
    Ok((answered, times))
}

/// The mean size of a good answer's body in all runs; none where one does not know it.
fn body_bytes(summaries: &[&Summary]) -> Option<f64> {
    let each = summaries.iter().map(|of| Some((of.good.requests as f64, of.good.body_bytes_mean?)));
    let each = each.collect::<Option<Vec<(f64, f64)>>>()?;
    let requests: f64 = each.iter().map(|(requests, _)| requests).sum();
    (requests > 0.0).then(|| each.iter().map(|(requests, mean)| requests * mean).sum::<f64>() / requests)
}

/// The worst verdict of some runs, with every reason.
fn worst<'m>(runs: impl Iterator<Item = &'m Manifest>) -> Verdict {
    let rank = |status: Status| match status {
        Status::Pass => 0,
        Status::Invalid => 1,
        Status::Fail => 2,
    };
    let (mut status, mut reasons) = (None, Vec::<Reason>::new());
    for verdict in runs.map(starved::verdict) {
        if status.is_none_or(|worst| rank(worst) < rank(verdict.status)) {
            status = Some(verdict.status);
        }
        let new = verdict.reasons.into_iter().filter(|reason| !reasons.contains(reason));
        reasons.extend(new.collect::<Vec<_>>());
    }
    Verdict { status: status.unwrap_or(Status::Invalid), reasons }
}

/// All rounds count here, as they do in the figures beside, whose verdict says where one is invalid.
fn counted(run: &Run) -> Manifest {
    let mut manifest = run.manifest.clone();
    manifest.summary.verdict.status = Status::Pass;
    manifest
}

/// The others of a part against the first.
fn ratios(runs: &ComparedRuns, part: Part, all: &[Figures]) -> Result<Vec<Ratios>, RecordError> {
    let side = |figures: &Figures| {
        let index = runs.comparison.sides.iter().position(|name| *name == figures.name);
        let of = rounds(runs, index.unwrap_or(0), part).into_iter();
        let run = |(round, run): (u64, &Run)| SideRun {
            dir: run.dir.clone(),
            round: Some(round),
            manifest: counted(run),
        };
        Side { name: figures.name.clone(), runs: of.map(run).collect() }
    };
    let sides: Vec<Side> = all.iter().map(side).collect();
    let level = runs.comparison.in_rounds.map(|of| of.level);
    let claims = Claims::of(&sides, Asked { level, ..Asked::default() })?;
    let of = |index: usize| {
        let letter = claims::letter(index);
        let claim =
            |figure| claims.of_side(&letter).find(|claim| claim.label.is_none() && claim.figure == figure);
        let (other, first) = (&all[index], &all[0]);
        let cpu = other.system_cpu_us_per_request.zip(first.system_cpu_us_per_request);
        let beside = sides[index].rounds_beside(&sides[0]).len();
        Ratios {
            side: other.name.clone(),
            to: first.name.clone(),
            answered_per_s: Ratio::of(claim(Figure::Rate)),
            p50: Ratio::of(claim(Figure::P50)),
            p99: Ratio::of(claim(Figure::P99)),
            body_bytes: Ratio::of(claim(Figure::Bytes)),
            system_cpu_per_request: Ratio {
                ratio: cpu.map(|(of, to)| of / to).filter(|ratio| ratio.is_finite()),
                ..Ratio::default()
            },
            no_claim: (beside < LEAST).then(|| format!("needs {LEAST} rounds, has {beside}")),
        }
    };
    Ok((1..all.len()).map(of).collect())
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::test_run::{self, timed};
    use std::path::Path;
    use tempfile::TempDir;
    use tidemark_record::summary::Process;
    use tidemark_record::{ComparedRun, ComparisonFile, RunWriter, summarize};

    /// A run of so many seconds, each with so many answers after so many microseconds; the system took `cpu_s`.
    fn write(dir: &Path, seconds: u64, answers: u32, us: u64, cpu_s: f64, status: Status) {
        let mut writer = RunWriter::create(dir, &["Trade".into()], "").unwrap();
        writer.threads(1);
        for second in 0..seconds {
            let mut one = test_run::second(second, u64::from(answers) + 1);
            let series =
                |outcome, count: u32| timed(0, outcome, true, &[([us + second % 3 * 10, us], count)]);
            one.series = vec![series(Outcome::Ok, answers + (second % 4) as u32), series(Outcome::Status, 1)];
            writer.add_interval(&one).unwrap();
        }
        let mut summary = summarize(writer.totals(), dir);
        summary.verdict = Verdict { status, reasons: vec![format!("it is {status:?}").into()] };
        summary.processes = vec![Process {
            name: SYSTEM.into(),
            cpu_s,
            cpu_share: cpu_s / seconds as f64,
            core_wait_share: None,
            seen_s: None,
            rss_bytes_max: 10 << 20,
            good_per_cpu_s: None,
        }];
        writer.finish(&Manifest::new("x", vec!["Trade".into()], summary)).unwrap();
    }

    /// Two sides: three rounds with their own load, one at an equal rate.
    pub(crate) fn runs() -> (TempDir, ComparedRuns) {
        let temp = tempfile::tempdir().unwrap();
        let names = vec!["REST".to_owned(), "WebSocket".to_owned()];
        let mut comparison = ComparisonFile::new("trade", "The same service, called in two ways.", names);
        comparison.equal_rate_per_s = Some(500.0);
        for (side, part, round, answers, us, cpu_s, status) in [
            (0, Part::OwnLoad, 1, 1_000, 900, 2.0, Status::Pass),
            (1, Part::OwnLoad, 1, 9_000, 1_800, 4.0, Status::Pass),
            (0, Part::OwnLoad, 2, 1_000, 900, 2.0, Status::Invalid),
            (1, Part::OwnLoad, 2, 9_000, 1_800, 4.0, Status::Pass),
            (0, Part::OwnLoad, 3, 1_010, 910, 2.0, Status::Pass),
            (1, Part::OwnLoad, 3, 8_900, 1_800, 4.0, Status::Pass),
            (0, Part::EqualRate, 1, 500, 400, 1.0, Status::Pass),
            (1, Part::EqualRate, 1, 500, 400, 0.5, Status::Fail),
        ] {
            let dir = format!("{}-x", comparison.runs.len() + 1);
            write(&temp.path().join(&dir), 10, answers, us, cpu_s, status);
            comparison.runs.push(ComparedRun { side, part, round, dir });
        }
        comparison.write(temp.path()).unwrap();
        let runs = ComparedRuns::open(temp.path()).unwrap();
        (temp, runs)
    }

    #[test]
    fn rounds_are_one_longer_run_and_the_others_stand_against_the_first() {
        let (_temp, runs) = runs();
        let compared = Compared::of(&runs).unwrap();
        let own = &compared.parts[0];
        let [rest, websocket] = &own.sides[..] else { panic!("two") };
        assert_eq!((rest.rounds, rest.requests), (3, 2 * (10_000 + 13 + 10) + 10_100 + 13 + 10));
        assert!((rest.answered_per_s - 30_139.0 / 30.0).abs() < 1e-9, "{}", rest.answered_per_s);
        assert_eq!((rest.errors["status"], rest.verdict.status), (30, Status::Invalid));
        assert_eq!(rest.verdict.reasons, ["it is Pass", "it is Invalid"]);
        assert_eq!(rest.response_time_us.p50, Some(910));
        let cpu = rest.system_cpu_us_per_request.unwrap();
        assert!((cpu - 6e6 / rest.requests as f64).abs() < 1e-9 && websocket.requests > 90_000);
        let ratios = &own.ratios[0];
        assert_eq!((ratios.side.as_str(), ratios.to.as_str()), ("WebSocket", "REST"));
        let rate = ratios.answered_per_s;
        assert!(rate.low < rate.ratio && rate.ratio < rate.high && rate.difference == Some(true), "{rate:?}");
        assert_eq!(ratios.no_claim, None);

        let equal = &compared.parts[1].ratios[0];
        assert_eq!(equal.no_claim.as_deref(), Some("needs 3 rounds, has 1"));
        assert_eq!((equal.p50.low, equal.p50.difference), (None, None));
        assert_eq!(equal.system_cpu_per_request.ratio, Some(0.5));
    }

    #[test]
    fn the_published_names_are_there() {
        let (_temp, runs) = runs();
        let value: serde_json::Value = serde_json::from_str(&Compared::of(&runs).unwrap().json()).unwrap();
        for pointer in [
            "/equal_rate_per_s",
            "/parts/0/part",
            "/parts/0/variants/0/verdict/status",
            "/parts/0/variants/1/answered_per_s",
            "/parts/0/variants/1/response_time_us/p99",
            "/parts/0/variants/1/system_cpu_us_per_request",
            "/parts/0/ratios/0/p99/low",
            "/parts/0/ratios/0/p50/difference",
            "/parts/1/ratios/0/no_claim",
            "/parts/1/ratios/0/system_cpu_per_request/ratio",
        ] {
            assert!(value.pointer(pointer).is_some_and(|value| !value.is_null()), "{pointer}");
        }
        crate::json::tests::assert_fits_verb(&value, "run-comparison");
        assert_eq!(value["parts"][0]["part"], "own-load");
        assert_eq!(value["stopped"], serde_json::Value::Null);
    }

    #[test]
    fn one_that_was_stopped_shows_what_there_is() {
        let (temp, runs) = runs();
        let mut comparison = runs.comparison.clone();
        comparison.runs.truncate(1);
        comparison.stopped = Some("stopped by the user".into());
        comparison.write(temp.path()).unwrap();
        let compared = Compared::of(&ComparedRuns::open(temp.path()).unwrap()).unwrap();
        assert_eq!((compared.parts.len(), compared.parts[0].ratios.len()), (1, 0));
    }
}
