//! The curve over the load, and what changes where an input is other than thought.

use std::sync::atomic::{AtomicUsize, Ordering};

use schemars::JsonSchema;
use serde::Serialize;

use super::Question;
use crate::model::{Model, Work, Wrong};

/// What comes of a rate.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Point {
    /// Requests a second.
    pub per_s: f64,
    /// Whether all objectives are kept.
    pub holds: bool,
    /// Median of the response time, seconds; null where it has no end.
    pub p50_s: Option<f64>,
    /// 99th percentile, seconds.
    pub p99_s: Option<f64>,
    /// The percentile of the first objective, seconds.
    pub objective_s: Option<f64>,
    /// Requests without a good answer, 0 to 1.
    pub failed_share: f64,
    /// The share of each tier's cores that is busy.
    pub utilisation: Vec<f64>,
}

/// What one input does.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Sensitivity {
    /// Which input.
    pub input: String,
    /// The first objective's percentile with a fifth less of it, seconds; null where it has no end.
    pub less_s: Option<f64>,
    /// The same with a fifth more.
    pub more_s: Option<f64>,
    /// Whether the objectives are kept with a fifth more, and with a fifth less.
    pub holds: bool,
}

impl Sensitivity {
    /// How far apart the two are; what has no end is furthest.
    fn effect(&self) -> f64 {
        match (self.less_s, self.more_s) {
            (Some(less), Some(more)) => (more - less).abs(),
            _ => f64::INFINITY,
        }
    }
}

impl Question {
    fn point(&self, model: &Model, per_s: f64) -> Result<Point, Wrong> {
        let tried = self.try_at(model, per_s)?;
        let grows = tried.outcome.grows();
        // of a queue that grows a percentile says only how long was simulated
        let quantile = |share: f64| tried.outcome.quantile_s(share).filter(|_| !grows);
        Ok(Point {
            per_s,
            holds: tried.holds,
            p50_s: quantile(0.5),
            p99_s: quantile(0.99),
            objective_s: self.objectives.first().and_then(|of| quantile(of.share)),
            failed_share: tried.outcome.failed_share(),
            utilisation: tried.outcome.tiers.iter().map(|tier| tier.utilisation).collect(),
        })
    }
}

/// What comes of each of these rates.
///
/// # Errors
/// What is wrong with the model.
pub fn curve(question: &Question, model: &Model, rates_per_s: &[f64]) -> Result<Vec<Point>, Wrong> {
    in_parallel(rates_per_s, |per_s| question.point(model, *per_s)).into_iter().collect()
}

/// Multiplies an input.
type Change = Box<dyn Fn(&mut Model, f64) + Sync>;

/// An input, and what multiplies it; the rate is none of the model's.
struct Input {
    name: String,
    change: Option<Change>,
}

/// What changes with a fifth less and a fifth more of each input, at the rate; what matters most comes first.
///
/// # Errors
/// What is wrong with the model.
pub fn sensitivity(question: &Question, model: &Model) -> Result<Vec<Sensitivity>, Wrong> {
    let look = |input: &Input| {
        let at = |by: f64| match &input.change {
            None => question.point(model, question.per_s * by),
            Some(change) => {
                let mut model = model.clone();
                change(&mut model, by);
                question.point(&model, question.per_s)
            }
        };
        let (less, more) = (at(0.8)?, at(1.2)?);
        let holds = less.holds && more.holds;
        Ok(Sensitivity {
            input: input.name.clone(),
            less_s: less.objective_s,
            more_s: more.objective_s,
            holds,
        })
    };
    let mut all = vec![Input { name: "rate".to_owned(), change: None }];
    all.extend(inputs(model));
    let mut found = in_parallel(&all, look).into_iter().collect::<Result<Vec<_>, Wrong>>()?;
    found.sort_by(|one, other| other.effect().total_cmp(&one.effect()));
    Ok(found)
}

/// Does the same with each on all cores, and keeps the order.
fn in_parallel<T: Sync, R: Send>(all: &[T], work: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(all.len());
    let next = AtomicUsize::new(0);
    let takes = || {
        let mut done = Vec::new();
        while let Some((at, of)) =
            Some(next.fetch_add(1, Ordering::Relaxed)).and_then(|at| Some((at, all.get(at)?)))
        {
            done.push((at, work(of)));
        }
        done
    };
    let mut done: Vec<(usize, R)> = std::thread::scope(|scope| {
        let others: Vec<_> = (1..threads).map(|_| scope.spawn(takes)).collect();
        let own = takes();
        let join = |other: std::thread::ScopedJoinHandle<'_, Vec<(usize, R)>>| {
            other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        };
        own.into_iter().chain(others.into_iter().flat_map(join)).collect()
    });
    done.sort_by_key(|(at, _)| *at);
    done.into_iter().map(|(_, of)| of).collect()
}

fn inputs(model: &Model) -> Vec<Input> {
    let mut inputs: Vec<Input> = Vec::new();
    let mut add = |name: String, change: Change| {
        inputs.push(Input { name, change: Some(change) });
    };
    for (at, tier) in model.tiers.iter().enumerate() {
        let name = &tier.name;
        add(
            format!("CPU of {name}"),
            Box::new(move |model, by| {
                let work = &mut model.tiers[at].work;
                match work {
                    Work::Each(each) => *each = each.scaled(by),
                    Work::Batch { fixed_s, each_s, .. } => {
                        (*fixed_s, *each_s) = (*fixed_s * by, *each_s * by)
                    }
                }
            }),
        );
        if tier.pause.mean(model.request.mean(0.0)) > 0.0 {
            let change = move |model: &mut Model, by: f64| {
                model.tiers[at].pause = model.tiers[at].pause.scaled(by);
            };
            add(format!("time of {name} without CPU"), Box::new(change));
        }
        for (call, of) in tier.calls.iter().enumerate() {
            let to = &model.tiers[of.to].name;
            let change = move |model: &mut Model, by: f64| model.tiers[at].calls[call].count *= by;
            add(format!("calls from {name} to {to}"), Box::new(change));
            if of.hop_s > 0.0 {
                let change = move |model: &mut Model, by: f64| model.tiers[at].calls[call].hop_s *= by;
                add(format!("network from {name} to {to}"), Box::new(change));
            }
            if of.hit_rate > 0.0 {
                let change = move |model: &mut Model, by: f64| {
                    let rate = &mut model.tiers[at].calls[call].hit_rate;
                    *rate = (*rate * by).min(1.0);
                };
                add(format!("cache of {name} before {to}"), Box::new(change));
            }
        }
    }
    inputs
}
