//! How many instances of each tier a load takes, what breaks first, and which input matters most.

mod questions;

use std::time::Duration;

use schemars::JsonSchema;
use serde::Serialize;

pub use self::questions::{Point, Sensitivity, curve, sensitivity};
use crate::model::{Call, Change, Happening, INSTANCES_MAX, Load, Model, Work, Wrong};
use crate::reduce::slice;
use crate::simulate::{Outcome, Span, Stretch, simulate};

/// A tier that is busier than this is not simulated: its queue is long, and grows for long.
const BUSY_MOST: f64 = 0.97;
/// Instances that are so idle that more would change nothing.
const IDLE: f64 = 0.3;
/// A rate is not simulated for more requests than these, unless its percentiles need them.
const LOOK_MOST: f64 = 2e6;
/// A loss is simulated where a second has so many requests at most.
const LOSS_MOST_PER_S: f64 = 200_000.0;
/// A percentile that is by less than this factor off an objective is looked at longer, with so many more seeds.
const NEAR: f64 = 1.3;
const LOOKS_MORE: u64 = 4;
/// A second of a loss breaks an objective where it has more bad requests than that allows, and so many standard deviations.
const CHANCE: f64 = 3.0;
/// Instances are added one after the other so often at most.
const STEPS_MAX: usize = 200;

/// A bound that is to be kept.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub struct Objective {
    /// The share of requests that are to be at most this slow; 0.99 for p99.
    pub share: f64,
    /// Response time, seconds.
    pub within_s: f64,
}

/// What is to survive without a bound being broken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Survives {
    /// Nothing fails.
    Nothing,
    /// An instance of each tier is lost.
    Instance,
    /// A zone is lost.
    Zone,
}

/// What a plan is asked for.
#[derive(Debug, Clone, PartialEq)]
pub struct Question {
    /// The tiers; how many instances each has is what is looked for.
    pub model: Model,
    /// The load, requests a second.
    pub per_s: f64,
    /// The load beyond that which is to hold, too: 0.1 for a tenth more.
    pub margin: f64,
    /// What is to be kept.
    pub objectives: Vec<Objective>,
    /// The share of requests that may fail.
    pub failed_most: f64,
    /// What is lost at that load.
    pub survives: Survives,
    /// The same seed gives the same plan.
    pub seed: u64,
}

/// How many instances it takes.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Answer {
    /// Instances of each tier.
    pub instances: Vec<usize>,
    /// Those of them that are there to be lost.
    pub spare: Vec<usize>,
    /// The highest rate that all of them hold, requests a second.
    pub holds_per_s: f64,
    /// Index of the tier that is the limit there.
    pub breaks: usize,
}

/// What came of one rate.
#[derive(Debug, Clone)]
pub(crate) struct Tried {
    pub(crate) holds: bool,
    pub(crate) outcome: Outcome,
}

impl Question {
    /// How long a request holds a worker of each tier where it never waits, with all that it calls, seconds.
    fn held_s(&self) -> Vec<f64> {
        let (tiers, request_s) = (&self.model.tiers, self.model.request.mean(0.0));
        let mut held_s = vec![0.0; tiers.len()];
        // calls lead to later tiers
        for (index, tier) in tiers.iter().enumerate().rev() {
            let work_s = match &tier.work {
                Work::Each(work) => work.mean(request_s),
                Work::Batch { fixed_s, each_s, .. } => fixed_s + each_s,
            };
            let call_s =
                |call: &Call| call.count * (2.0 * call.hop_s + (1.0 - call.hit_rate) * held_s[call.to]);
            let calls_s: f64 = tier.calls.iter().map(call_s).sum();
            held_s[index] = work_s + tier.pause.mean(request_s) + calls_s;
        }
        held_s
    }

    /// The mean time that a request takes where it never waits, seconds.
    fn path_s(&self) -> f64 {
        self.model.visits()[0] * self.held_s()[0]
    }

    /// For how long a rate is simulated: for enough requests beyond the highest percentile, and much longer than one takes.
    fn span(&self, per_s: f64) -> Span {
        let share = self.objectives.iter().map(|of| of.share).fold(0.5, f64::max);
        let requests = (500.0 / (1.0 - share)).clamp(40_000.0, 1_000_000.0);
        let path_s = self.path_s();
        let per_s = per_s.max(1e-6);
        let measured_s = (requests / per_s).max((100.0 * path_s).min(LOOK_MOST / per_s)).min(1e7);
        let warm_s = (20.0 * path_s).min(LOOK_MOST / per_s).max(3.0 * path_s).max(measured_s / 10.0);
        Span { events_max: 400_000_000, ..Span::new(warm_s, measured_s, self.seed) }
    }

    /// Simulates a model at a rate.
    fn at(&self, model: &Model, per_s: f64, seed: u64) -> Result<Outcome, Wrong> {
        let (part, slices) = slice(&model.at(per_s));
        simulate(&part, &Span { seed, ..self.span(per_s / slices as f64) })
    }

    /// Simulates a model at a rate, and longer where the first look leaves open whether it holds.
    pub(crate) fn try_at(&self, model: &Model, per_s: f64) -> Result<Tried, Wrong> {
        let mut outcome = self.at(model, per_s, self.seed)?;
        let is_near = |outcome: &Outcome, of: &Objective| {
            let took_s = outcome.quantile_s(of.share).unwrap_or(f64::INFINITY);
            (of.within_s / NEAR..of.within_s * NEAR).contains(&took_s)
        };
        if self.objectives.iter().any(|of| is_near(&outcome, of)) && !outcome.grows() {
            for more in 1..=LOOKS_MORE {
                outcome.add(&self.at(model, per_s, self.seed.wrapping_add(more))?);
            }
        }
        let keeps = |of: &Objective| outcome.quantile_s(of.share).is_some_and(|took| took < of.within_s);
        let holds = !outcome.grows()
            && outcome.failed_share() <= self.failed_most
            && self.objectives.iter().all(keeps);
        Ok(Tried { holds, outcome })
    }

    /// What comes of a rate.
    ///
    /// # Errors
    /// What is wrong with the model.
    pub fn look(&self, model: &Model, per_s: f64) -> Result<Outcome, Wrong> {
        self.try_at(model, per_s).map(|tried| tried.outcome)
    }

    /// The rate with its margin.
    fn wanted_per_s(&self) -> f64 {
        self.per_s * (1.0 + self.margin)
    }

    fn is_busy(&self, model: &Model, per_s: f64) -> bool {
        (0..model.tiers.len()).any(|tier| model.utilisation(tier, per_s) > BUSY_MOST)
    }

    fn holds(&self, model: &Model) -> Result<bool, Wrong> {
        let per_s = self.wanted_per_s();
        Ok(!self.is_busy(model, per_s) && self.try_at(model, per_s)?.holds)
    }

    /// The model with that many instances of each tier, which do not change.
    pub fn with_instances(&self, instances: &[usize]) -> Model {
        let mut model = self.model.clone();
        model.tiers.iter_mut().zip(instances).for_each(|(tier, count)| {
            tier.instances = *count;
            tier.scaling = None;
        });
        model.changes.clear();
        model
    }

    /// Instances of a tier of which cores and workers are this busy.
    fn instances_at(&self, tier: usize, busy: f64) -> Result<usize, Wrong> {
        let mut model = self.model.clone();
        model.tiers[tier].instances = 1;
        let per_s = self.wanted_per_s();
        let workers = model.visits()[tier] * per_s * self.held_s()[tier] / model.tiers[tier].workers as f64;
        let count = (model.utilisation(tier, per_s).max(workers) / busy).ceil().max(1.0);
        if count > INSTANCES_MAX as f64 {
            return Err(Wrong(format!("{} would need {count:.0} instances", model.tiers[tier].name)));
        }
        Ok(count as usize)
    }

    /// The fewest instances that keep the objectives.
    ///
    /// # Errors
    /// What is wrong with the model; or that no number of instances keeps them, and why.
    pub fn answer(&self) -> Result<Answer, Wrong> {
        let tiers = 0..self.model.tiers.len();
        let floors =
            tiers.clone().map(|tier| self.instances_at(tier, BUSY_MOST)).collect::<Result<Vec<_>, _>>()?;
        let ample = tiers.clone().map(|tier| self.instances_at(tier, IDLE)).collect::<Result<Vec<_>, _>>()?;
        let most = self.try_at(&self.with_instances(&ample), self.wanted_per_s())?;
        if !most.holds {
            return Err(Wrong(self.never(&most.outcome)));
        }
        // each tier alone, beside others that never keep anybody waiting
        let mut needed = floors;
        for tier in tiers {
            let mut enough = ample[tier];
            while needed[tier] < enough {
                let middle = needed[tier].midpoint(enough);
                let mut instances = ample.clone();
                instances[tier] = middle;
                if self.holds(&self.with_instances(&instances))? {
                    enough = middle
                } else {
                    needed[tier] = middle + 1
                }
            }
        }
        self.all_together(&mut needed, &ample)?;
        let needed = needed;
        let instances: Vec<usize> = needed.iter().map(|count| self.with_spare(*count)).collect();
        let spare = instances.iter().zip(&needed).map(|(all, needed)| all - needed).collect();
        let (holds_per_s, breaks) = self.limit(&self.with_instances(&instances))?;
        Ok(Answer { instances, spare, holds_per_s, breaks })
    }

    /// Adds where it is busiest until all tiers together keep the objectives.
    fn all_together(&self, needed: &mut [usize], ample: &[usize]) -> Result<(), Wrong> {
        for _ in 0..STEPS_MAX {
            let model = self.with_instances(needed);
            if self.holds(&model)? {
                return Ok(());
            }
            let busy = |tier: &usize| model.utilisation(*tier, self.per_s);
            let open = (0..needed.len()).filter(|tier| needed[*tier] < ample[*tier]);
            let Some(tier) = open.max_by(|one, other| busy(one).total_cmp(&busy(other))) else {
                return Ok(());
            };
            needed[tier] += (needed[tier] / 50).max(1);
        }
        needed.copy_from_slice(ample);
        Ok(())
    }

    /// With what may be lost.
    fn with_spare(&self, needed: usize) -> usize {
        let zones = self.model.zones;
        match self.survives {
            Survives::Nothing => needed,
            Survives::Instance => needed + 1,
            // the largest zone is lost
            Survives::Zone if zones > 1 => {
                (needed..).find(|all| all - all.div_ceil(zones) >= needed).unwrap_or(INSTANCES_MAX)
            }
            Survives::Zone => 2 * needed,
        }
    }

    /// Why no number of instances is enough.
    fn never(&self, outcome: &Outcome) -> String {
        for of in &self.objectives {
            let p = of.share * 100.0;
            match outcome.quantile_s(of.share) {
                Some(took_s) if took_s >= of.within_s => {
                    let [within, took] =
                        [of.within_s, took_s].map(|s| Duration::try_from_secs_f64(s).unwrap_or_default());
                    return format!(
                        "no number of instances keeps p{p} < {within:?}: it is {took:.1?} where nothing waits for a core"
                    );
                }
                _ => {}
            }
        }
        let busiest = outcome
            .tiers
            .iter()
            .zip(&self.model.tiers)
            .max_by(|one, other| one.0.wait_s.total_cmp(&other.0.wait_s));
        let name = busiest.map_or("", |(_, tier)| tier.name.as_str());
        format!(
            "no number of instances is enough: {:.2} % fail, most wait for {name}",
            outcome.failed_share() * 100.0
        )
    }

    /// The highest rate that a model holds, by halving to one in 200, and the tier that is the limit there.
    ///
    /// # Errors
    /// What is wrong with the model.
    pub fn limit(&self, model: &Model) -> Result<(f64, usize), Wrong> {
        // no rate is above what keeps the busiest tier's cores busy all the time
        let busiest = |per_s: f64| {
            let busy = |tier: usize| model.utilisation(tier, per_s);
            (0..model.tiers.len())
                .map(|tier| (tier, busy(tier)))
                .fold((0, 0.0), |most, of| if of.1 > most.1 { of } else { most })
        };
        let (_, busy) = busiest(self.per_s);
        let (mut low, mut high) = (0.0, if busy > 0.0 { self.per_s / busy } else { self.per_s * 100.0 });
        // so that no step is coarser than the answer
        let wanted_per_s = self.wanted_per_s();
        if wanted_per_s < high && self.try_at(model, wanted_per_s)?.holds {
            low = wanted_per_s;
        }
        while high - low > high / 200.0 {
            let middle = (low + high) / 2.0;
            if self.try_at(model, middle)?.holds {
                low = middle
            } else {
                high = middle
            }
            if high < self.per_s / 1e4 {
                break;
            }
        }
        let outcome = self.at(model, high, self.seed)?;
        let by_wait = outcome.tiers.iter().enumerate().max_by(|one, other| {
            let kept = |of: &crate::TierOutcome| of.wait_s * of.begun as f64;
            kept(one.1).total_cmp(&kept(other.1))
        });
        Ok((low, by_wait.map_or(0, |(tier, _)| tier)))
    }

    /// Whether a second of a [loss](Question::loss) keeps the objectives, by the percentile that each names.
    pub fn is_kept(&self, second: &Stretch) -> bool {
        let requests = second.good + second.failed;
        let may_be = |bad: u64, share: f64| {
            let allowed = share * requests as f64;
            bad as f64 <= allowed + CHANCE * allowed.sqrt()
        };
        let mut objectives = self.objectives.iter().zip(&second.within);
        may_be(second.failed, self.failed_most)
            && objectives.all(|(of, within)| may_be(requests - within, 1.0 - of.share))
    }

    /// What becomes of requests while something is lost for a time, 5 s after measuring began, by second: of one of so many
    /// slices of the system. None where nothing
    /// is to survive, or a second has too many requests for a look.
    ///
    /// # Errors
    /// What is wrong with the model.
    pub fn loss(
        &self,
        instances: &[usize],
        noticed_after_s: f64,
        for_s: f64,
    ) -> Result<Option<(Outcome, usize)>, Wrong> {
        let mut model = self.with_instances(instances).at(self.per_s);
        let at_s = 15.0;
        let change = |what| Change { at_s, what };
        match self.survives {
            Survives::Nothing => return Ok(None),
            Survives::Instance => {
                let of = |tier| change(Happening::Fails { tier, instance: 0, for_s: Some(for_s) });
                model.changes = (0..model.tiers.len()).map(of).collect();
            }
            Survives::Zone => {
                model.changes = vec![change(Happening::ZoneFails { zone: 0, for_s: Some(for_s) })]
            }
        }
        model.tiers.iter_mut().for_each(|tier| tier.noticed_after_s = noticed_after_s);
        let (part, slices) = slice(&model);
        let per_s = match &part.load {
            Load::Open(arrivals) => arrivals.peak_per_s(),
            Load::Closed { .. } => self.per_s,
        };
        if per_s > LOSS_MOST_PER_S {
            return Ok(None);
        }
        let measured_s = (for_s + 30.0).min((3e6 / per_s).max(for_s));
        let span = Span {
            each_s: Some(1.0),
            bounds_s: self.objectives.iter().map(|of| of.within_s).collect(),
            events_max: 200_000_000,
            ..Span::new(10.0, measured_s, self.seed)
        };
        Ok(Some((simulate(&part, &span)?, slices)))
    }
}
