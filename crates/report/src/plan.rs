//! How many instances another load takes: what a run measured becomes a model, which is simulated.
//!
//! Each request draws a service time of the run's histogram. A share of it is CPU of each tier, as large as the tier's CPU time
//! for a request is of the mean service time; what no CPU explains goes by without a core. What requests waited for each other
//! in the run is taken out first: the model of the run, under the run's load, has the measured times, and the measured CPU.

mod model;
mod settings;
#[cfg(test)]
mod tests;
mod words;

use std::fmt;

use schemars::JsonSchema;
use serde::Serialize;
use tidemark_plan::{
    Answer, Model, Objective, Point, Question, Scalability, Sensitivity, Span, Survives, UNBOUNDED, curve,
    sensitivity, simulate,
};
use tidemark_record::bill::{Bill, Role};
use tidemark_record::summary::BOTTLENECK;
use tidemark_record::{Manifest, ReasonKind, Run};
use tidemark_scenario::plan::{self as scenario, About, Comparison, Metric};
use tidemark_scenario::prices::Prices;

use crate::cost::{Usage, of_usage};
use crate::units::{duration, percent, three_digits};
use model::Measured;

/// Rates that the curve shows, up to this share of the highest that holds.
const CURVE: (u32, f64) = (8, 1.2);
/// Requests that the model's own run is simulated for.
const OWN_REQUESTS: f64 = 500_000.0;
/// Shares of a search's limit at which the model of the run is looked at.
const OF_LIMIT: [f64; 4] = [0.5, 0.7, 0.9, 1.1];
/// A model that is further from its own run than this says so.
const OFF_MOST: f64 = 0.2;
/// Requests that may fail where no objective says it.
const FAILED_MOST: f64 = 0.001;
/// How long an instance or a zone is lost, and until that is noticed, seconds.
const LOST_S: f64 = 20.0;
const NOTICED_S: f64 = 2.0;
/// A run whose machine was busier than this has waits in its service times.
const BUSY: f64 = 0.5;

/// What is asked for.
#[derive(Debug, Clone)]
pub struct Wish<'a> {
    /// Requests a second; without, those of the run.
    pub per_s: Option<f64>,
    /// By how much that grows.
    pub growth: f64,
    /// Objectives; without, those of the run.
    pub objectives: &'a [String],
    /// The load that is to hold beyond that: 0.1 is a tenth more.
    pub margin: f64,
    /// What may be lost.
    pub survives: Survives,
    /// Zones that instances are spread over.
    pub zones: usize,
    /// `TIER.KEY` and its value.
    pub settings: &'a [(String, String)],
    /// What machines cost, and how many cores they have.
    pub prices: Option<&'a Prices>,
    /// Among how many a month's price is divided.
    pub customers: Option<u64>,
    /// Where random numbers begin.
    pub seed: u64,
}

/// What a plan is made of, beside the run.
#[derive(Debug, Clone, Default)]
pub struct Beside {
    /// The limit that a search found with the run's system, requests a second.
    pub limit_per_s: Option<f64>,
    /// CPU time of a request of each tier at the highest load that the search found to hold, seconds. A busy core does more
    /// with a wake-up, so that a request takes less there than at half of the load.
    pub busiest_cpu_s: Vec<(String, f64)>,
    /// How cores hinder each other, of searches at several sizes.
    pub scalability: Option<Scalability>,
    /// What is to be known of those.
    pub notes: Vec<String>,
}

/// A tier of a plan.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct PlannedTier {
    /// Its name.
    pub tier: String,
    /// What it is to the run.
    pub role: Role,
    /// Instances of the run.
    pub measured_instances: u64,
    /// Instances that it takes.
    pub instances: u64,
    /// Those of them that are there to be lost.
    pub spare: u64,
    /// Cores of an instance.
    pub cores: u64,
    /// CPU time of a request, seconds.
    pub cpu_s: f64,
    /// The share of its cores that is busy at the rate, 0 to 1.
    pub utilisation: f64,
}

/// The model beside the run that it is made of.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct OwnRun {
    /// The run's rate, requests a second.
    pub per_s: f64,
    /// Measured median, seconds.
    pub measured_p50_s: Option<f64>,
    /// Simulated median, seconds.
    pub simulated_p50_s: Option<f64>,
    /// Measured 99th percentile, seconds.
    pub measured_p99_s: Option<f64>,
    /// Simulated 99th percentile, seconds.
    pub simulated_p99_s: Option<f64>,
    /// The limit that a search found, requests a second; absent of a run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub measured_limit_per_s: Option<f64>,
    /// The model's limit with the run's instances on the run's machine, requests a second; absent of a run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub simulated_limit_per_s: Option<f64>,
    /// What the model says of the run's system at 50, 70, 90 and 110 % of the limit that a search found; empty of a run.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub at: Vec<Point>,
}

/// What happens while an instance or a zone is lost.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Loss {
    /// Requests that fail.
    pub failed: u64,
    /// From the loss until the objectives are kept again, seconds; null where they are not within the time simulated.
    pub recovered_after_s: Option<f64>,
}

/// What `tidemark plan --json` prints.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Planned {
    /// The answer, in two or three sentences.
    pub says: String,
    /// The scenario.
    pub scenario: String,
    /// The run that it is made of.
    pub run_dir: String,
    /// The rate, requests a second.
    pub per_s: f64,
    /// Objectives that are kept.
    pub objectives: Vec<String>,
    /// The bound of the first percentile among them, seconds.
    pub bound_s: f64,
    /// The load beyond the rate that holds, too, as a share of it.
    pub margin: f64,
    /// What may be lost.
    pub survives: Survives,
    /// Zones.
    pub zones: u64,
    /// The tiers.
    pub tiers: Vec<PlannedTier>,
    /// The highest rate that all of them hold, requests a second.
    pub holds_per_s: f64,
    /// The tier that breaks first.
    pub breaks_first: String,
    /// What comes of rates up to above the highest that holds, at equal distances, and of the rate itself.
    pub curve: Vec<Point>,
    /// What a fifth more or less of each input does to the first objective.
    pub sensitivity: Vec<Sensitivity>,
    /// What happens while something is lost; absent where nothing is to survive.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub loss: Option<Loss>,
    /// The model beside its own run.
    pub own_run: OwnRun,
    /// How cores hinder each other; absent where it was not measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scalability: Option<Scalability>,
    /// What it costs; absent without prices.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bill: Option<Bill>,
    /// What it assumes.
    pub assumptions: Vec<String>,
    /// What must be known before the answer.
    pub notes: Vec<String>,
}

impl Planned {
    /// As JSON with a line end: `docs/plan.schema.json`.
    pub fn json(&self) -> String {
        serde_json::to_string_pretty(self).expect("a plan is plain JSON") + "\n"
    }
}

/// Why there is no plan, for a person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NoPlan {
    /// What is asked for is wrong.
    Usage(String),
    /// The run says too little, or no number of instances is enough.
    Unknown(String),
}

impl fmt::Display for NoPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (NoPlan::Usage(why) | NoPlan::Unknown(why)) = self;
        f.write_str(why)
    }
}

impl From<String> for NoPlan {
    fn from(why: String) -> Self {
        NoPlan::Unknown(why)
    }
}

/// CPU time of a request of each tier, seconds.
///
/// # Errors
/// What the run lacks.
pub fn cpu_of_requests(run: &Run) -> Result<Vec<(String, f64)>, String> {
    let tiers = Measured::of(run)?.tiers;
    Ok(tiers.into_iter().map(|of| (of.tier.name, of.cpu_s)).collect())
}

/// Makes a plan of a run.
///
/// # Errors
/// Why there is none, for a person: the run measured the load generator, say, or no number of instances is enough.
pub fn plan(run: &Run, beside: &Beside, wish: &Wish<'_>) -> Result<Planned, NoPlan> {
    refuse(&run.manifest)?;
    let mut measured = Measured::of(run)?;
    let mut notes = caveats(&run.manifest, &measured);
    notes.extend(beside.notes.iter().cloned());
    let without_waits = measured.take_waits_out(wish.seed).map_err(|wrong| wrong.to_string())?;
    notes.extend(
        measured.machine_busy().filter(|busy| *busy > BUSY).map(|busy| words::busy(busy, without_waits)),
    );
    let own = measured.model_of_run();
    measured.set_cpu(&beside.busiest_cpu_s);
    let own_busy = measured.model_of_run();
    let kept = objectives(&run.manifest, wish).map_err(NoPlan::Usage)?;
    let failed_most = kept.failed_most.unwrap_or(FAILED_MOST);
    if measured.failed_share > failed_most {
        return Err(NoPlan::Unknown(format!(
            "no plan from this run: {} of its requests failed, and {} may; measure it at a load at which it answers",
            percent(measured.failed_share),
            percent(failed_most)
        )));
    }
    notes.extend(kept.percentiles.iter().filter_map(|of| measured.too_few_for(of.share)));
    measured.set_machines(wish.prices);
    if let Some(law) = &beside.scalability {
        measured.set_contention(law.contention());
    }
    let mut model = measured.model(wish.zones);
    settings::apply(&mut model, wish.settings).map_err(NoPlan::Usage)?;
    let per_s = wish.per_s.unwrap_or(run.manifest.summary.achieved_per_s) * wish.growth;
    let question = Question {
        model,
        per_s,
        margin: wish.margin,
        objectives: kept.percentiles,
        failed_most,
        survives: wish.survives,
        seed: wish.seed,
    };
    let says = |wrong: tidemark_plan::Wrong| wrong.to_string();
    let own_run = own_run(run, [&own, &own_busy], &question, beside).map_err(says)?;
    notes.extend(words::off(&own_run, OFF_MOST));
    let answer = question.answer().map_err(says)?;
    let planned = question.with_instances(&answer.instances);
    let curve = curve(&question, &planned, &rates(answer.holds_per_s, per_s)).map_err(says)?;
    let sensitivity = sensitivity(&question, &planned).map_err(says)?;
    let loss = loss(&question, &answer)?;
    if loss.is_none() && wish.survives != Survives::Nothing {
        notes.push(
            "the loss itself was not simulated: there are too many requests for tiers of so few instances"
                .into(),
        );
    }
    let tiers = tiers(&measured, &planned, &answer, per_s);
    let bill = wish.prices.map(|prices| bill(run, &measured, &tiers, per_s, prices, wish.customers));
    let breaks_first = planned.tiers[answer.breaks].name.clone();
    if planned.tiers[0].workers == UNBOUNDED {
        let of_instance_per_s = answer.holds_per_s / answer.instances[0] as f64;
        notes.splice(0..0, words::beyond(&measured, of_instance_per_s));
    }
    // what is planned comes before how well
    notes.splice(0..0, kept.left_out);
    let mut assumptions = words::assumptions(&measured, beside, wish);
    if kept.failed_most.is_none() {
        assumptions.insert(0, format!("errors < {}, as no objective is about them", percent(FAILED_MOST)));
    }
    let mut planned = Planned {
        says: String::new(),
        scenario: run.manifest.scenario.clone(),
        run_dir: run.dir.display().to_string(),
        per_s,
        objectives: kept.texts,
        bound_s: question.objectives.first().map_or(0.0, |of| of.within_s),
        margin: wish.margin,
        survives: wish.survives,
        zones: wish.zones as u64,
        tiers,
        holds_per_s: answer.holds_per_s,
        breaks_first,
        curve,
        sensitivity,
        loss,
        own_run,
        scalability: beside.scalability.clone(),
        bill,
        assumptions,
        notes,
    };
    planned.says = words::says(&planned);
    Ok(planned)
}

/// The rates of the curve, at equal distances, and the rate itself among them.
fn rates(holds_per_s: f64, per_s: f64) -> Vec<f64> {
    let (count, most) = CURVE;
    let at = |number: u32| holds_per_s * most * f64::from(number) / f64::from(count);
    let mut rates: Vec<f64> = (1..=count).map(at).chain([per_s]).collect();
    rates.sort_by(f64::total_cmp);
    rates
}

/// A run that says nothing of the system.
fn refuse(manifest: &Manifest) -> Result<(), String> {
    let summary = &manifest.summary;
    let reason = summary.verdict.reasons.iter().find(|reason| reason.kind() == ReasonKind::DriverBound);
    let says = summary.driver.limits.first().map(String::as_str).or(reason.map(|reason| &**reason));
    if let Some(says) = says {
        let says = says.trim_start_matches("driver-bound: ").trim_start_matches(BOTTLENECK);
        return Err(format!("no plan from this run: {BOTTLENECK}{says}"));
    }
    if summary.measured_s <= 0.0 || summary.achieved_per_s <= 0.0 {
        return Err("no plan from this run: no good answer came in its measured window".into());
    }
    Ok(())
}

/// What a reader must know of the run.
fn caveats(manifest: &Manifest, measured: &Measured) -> Vec<String> {
    let usage = Usage::of(manifest);
    let mut notes: Vec<String> = usage.caveat().into_iter().collect();
    if let Some(state) = manifest.summary.steady_state.as_ref().filter(|state| state.steady == Some(false)) {
        notes.push(format!("the run was not steady, and neither is what follows from it: {}", state.reason));
    }
    notes.extend(usage.unseen().into_iter().map(|says| says.replace("is in no sum", "is not in the plan")));
    notes.extend(usage.faults.iter().cloned());
    notes.extend(measured.left_out.iter().cloned());
    notes
}

/// Objectives that a plan keeps.
#[derive(Default)]
struct Kept {
    /// As they are written.
    texts: Vec<String>,
    percentiles: Vec<Objective>,
    /// The share of requests that may fail, where an objective says it.
    failed_most: Option<f64>,
    /// Those of the run that it does not keep, a sentence each.
    left_out: Vec<String>,
}

fn objectives(manifest: &Manifest, wish: &Wish<'_>) -> Result<Kept, String> {
    let is_asked = !wish.objectives.is_empty();
    let texts: Vec<String> = match is_asked {
        true => wish.objectives.to_vec(),
        false => manifest.objectives.iter().map(|of| of.objective.clone()).collect(),
    };
    let mut kept = Kept::default();
    for text in texts {
        let upper = |of: &scenario::Objective| {
            of.about == About::All && matches!(of.comparison, Comparison::Less | Comparison::LessOrEqual)
        };
        match scenario::Objective::read(&text) {
            Ok(of) if upper(&of) && matches!(of.metric, Metric::Percentile(p) if p < 100.0) => {
                let Metric::Percentile(p) = of.metric else { continue };
                kept.percentiles.push(Objective { share: p / 100.0, within_s: of.bound * 1e-6 });
                kept.texts.push(text);
            }
            Ok(of) if upper(&of) && of.metric == Metric::ErrorShare => {
                kept.failed_most = Some(of.bound);
                kept.texts.push(text);
            }
            Err(wrong) if is_asked => return Err(wrong),
            _ if is_asked => {
                return Err(format!("a plan keeps percentiles and shares of errors; \"{text}\" is neither; write it like \"p99 < 50ms\""));
            }
            _ => kept.left_out.push(format!("the run's objective `{text}` is not in the plan, which keeps percentiles and shares of errors")),
        }
    }
    if kept.percentiles.is_empty() {
        return Err("a plan needs a percentile to keep; give --objective 'p99 < 300ms'".into());
    }
    Ok(kept)
}

fn own_run(
    run: &Run,
    [own, own_busy]: [&Model; 2],
    question: &Question,
    beside: &Beside,
) -> Result<OwnRun, tidemark_plan::Wrong> {
    let per_s = run.manifest.summary.achieved_per_s;
    let simulated = simulate(own, &Span::of_requests(OWN_REQUESTS, per_s, question.seed))?;
    let simulated_limit_per_s = beside.limit_per_s.map(|_| question.limit(own_busy)).transpose()?;
    let at = beside.limit_per_s.map_or_else(Vec::new, |limit| OF_LIMIT.map(|share| share * limit).to_vec());
    let at = curve(question, own_busy, &at)?;
    let times = &run.manifest.summary.good.response_time_us;
    let seconds = |us: Option<u64>| us.map(|us| us as f64 * 1e-6);
    Ok(OwnRun {
        per_s,
        measured_p50_s: seconds(times.p50),
        simulated_p50_s: simulated.good.quantile_s(0.5, 0).filter(|_| !simulated.grows()),
        measured_p99_s: seconds(times.p99),
        simulated_p99_s: simulated.good.quantile_s(0.99, 0).filter(|_| !simulated.grows()),
        measured_limit_per_s: beside.limit_per_s,
        simulated_limit_per_s: simulated_limit_per_s.map(|(per_s, _)| per_s),
        at,
    })
}

fn loss(question: &Question, answer: &Answer) -> Result<Option<Loss>, String> {
    let outcome = question.loss(&answer.instances, NOTICED_S, LOST_S).map_err(|wrong| wrong.to_string())?;
    Ok(outcome.map(|(outcome, slices)| {
        // the loss comes 5 s after measuring began
        let last = outcome.stretches.iter().rposition(|second| !question.is_kept(second));
        let is_over = last.is_none_or(|at| at + 1 < outcome.stretches.len());
        let after = last.map_or(0.0, |at| (at as f64 + 1.0 - 5.0).max(0.0));
        Loss { failed: outcome.failed * slices as u64, recovered_after_s: is_over.then_some(after) }
    }))
}

fn tiers(measured: &Measured, planned: &Model, answer: &Answer, per_s: f64) -> Vec<PlannedTier> {
    // as it is in the plan, whatever was measured
    let of_request = |index: usize| {
        let tier = &planned.tiers[index];
        planned.utilisation(index, per_s) * (tier.instances * tier.cores) as f64 / per_s
    };
    let tier = |(index, of): (usize, &model::MeasuredTier)| PlannedTier {
        tier: of.tier.name.clone(),
        role: of.tier.role,
        measured_instances: of.tier.instances,
        instances: answer.instances[index] as u64,
        spare: answer.spare[index] as u64,
        cores: planned.tiers[index].cores as u64,
        cpu_s: of_request(index),
        utilisation: planned.utilisation(index, per_s),
    };
    measured.tiers.iter().enumerate().map(tier).collect()
}

fn bill(
    run: &Run,
    measured: &Measured,
    planned: &[PlannedTier],
    per_s: f64,
    prices: &Prices,
    customers: Option<u64>,
) -> Bill {
    let tiers = measured.tiers.iter().zip(planned);
    let tiers: Vec<_> = tiers.map(|(of, planned)| (&of.tier, planned.instances, planned.cpu_s)).collect();
    let mut bill = of_usage(&Usage::planned(per_s, &tiers), prices, customers);
    // what the run did not see is not in the plan, and not free
    bill.not_in_sums.extend(Usage::of(&run.manifest).unseen());
    bill
}

/// A time for a person; `no end` of a queue that grows.
pub(crate) fn time(seconds: Option<f64>) -> String {
    seconds.map_or_else(|| "no end".to_owned(), |seconds| duration(seconds * 1e6))
}

/// A rate for a person.
pub(crate) fn rate(per_s: f64) -> String {
    match per_s {
        1_000.0.. => format!("{}/s", crate::units::count(per_s.round() as u64)),
        _ => format!("{}/s", three_digits(per_s)),
    }
}
