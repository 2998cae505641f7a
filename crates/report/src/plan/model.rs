//! A run as a model.

use std::sync::Arc;

use tidemark_plan::{Arrivals, Call, Contention, Distribution, Load, Model, Tier, Work};
use tidemark_record::bill::Role;
use tidemark_record::{MACHINE, Outcome, Run, new_merged};
use tidemark_scenario::prices::Prices;

use crate::cost::{self, Usage, called};
use crate::units::{count, duration};

/// Least CPU time of what is driven, seconds: a system counts it in hundredths.
const CPU_LEAST_S: f64 = 0.1;
/// Answers beyond a percentile that it rests on.
const BEYOND_LEAST: f64 = 10.0;
/// Most cores of an instance.
const CORES_MAX: f64 = 10_000.0;

/// What was measured of a tier.
#[derive(Debug, Clone)]
pub(super) struct MeasuredTier {
    pub(super) tier: cost::Tier,
    /// CPU time of a request, seconds.
    pub(super) cpu_s: f64,
    cores: usize,
    /// By how much a core is less than a whole one: work takes so many times as long.
    slow: f64,
    contention: Contention,
}

/// What was measured of a run.
#[derive(Debug, Clone)]
pub(super) struct Measured {
    pub(super) tiers: Vec<MeasuredTier>,
    /// What is not in the plan, a sentence each.
    pub(super) left_out: Vec<String>,
    pub(super) service_times: Arc<tidemark_plan::Measured>,
    /// Cores of the machine of the run, and how many of them were busy.
    machine_cores: u64,
    busy_cores: f64,
    /// Cores that the system was bound to; 0 where it was not.
    pinned_cores: usize,
    /// CPU time of the load generator for a request, seconds.
    driver_cpu_s: f64,
    /// Good answers whose service times were measured.
    good: u64,
}

impl Measured {
    /// # Errors
    /// What it lacks.
    pub(super) fn of(run: &Run) -> Result<Measured, String> {
        let manifest = &run.manifest;
        let usage = Usage::of(manifest);
        let mut merged = new_merged();
        for series in run.series.iter().filter(|of| of.measured && of.outcome == Outcome::Ok) {
            run.merge(&mut merged, &series.service_time_us).map_err(|error| error.to_string())?;
        }
        let good = merged.len();
        let seen = merged
            .iter_recorded()
            .map(|of| (of.value_iterated_to() as f64 * 1e-6, of.count_since_last_iteration()));
        let service_times = tidemark_plan::Measured::new(seen).filter(|of| of.mean_s() > 0.0);
        let service_times = service_times.ok_or("no plan from this run: it has no good answers")?;
        // CPU went into the requests that were answered in the window, well or not
        let answered = (usage.good + usage.failed).max(1) as f64;
        let (mut tiers, mut left_out) = (Vec::new(), Vec::new());
        for tier in usage.tiers.iter().filter(|tier| tier.role != Role::Driver) {
            if let Some(why) = usage.not_seen(tier) {
                left_out.push(format!("{} is in the plan as far as it was seen: {why}", tier.name));
            }
            let cpu_s = tier.cpu_s / answered;
            tiers.push(MeasuredTier {
                tier: tier.clone(),
                cpu_s,
                cores: 1,
                slow: 1.0,
                contention: Contention::default(),
            });
        }
        // clients call the balancer of what is driven first, then that itself, which calls all others
        let order = |of: &MeasuredTier| match of.tier.role {
            Role::System => 0,
            Role::Balancer | Role::Service => 1,
            _ => 2,
        };
        tiers.sort_by_key(order);
        if tiers.first().is_none_or(|of| of.tier.role != Role::System) {
            return Err("no plan from this run: what was driven was not watched; start it by the scenario, or give --watch".into());
        }
        let busy_cores = manifest.summary.processes.iter().find(|of| of.name == MACHINE).map_or_else(
            || usage.tiers.iter().map(|tier| cost::cores_used(tier, &usage)).sum(),
            |machine| machine.cpu_share,
        );
        let driven_cpu_s = tiers[0].tier.cpu_s;
        if driven_cpu_s < CPU_LEAST_S {
            return Err(format!(
                "no plan from this run: {} took {} of CPU in it, too little to say how much a request takes; drive more load, or longer",
                tiers[0].tier.name,
                duration(driven_cpu_s * 1e6)
            ));
        }
        Ok(Measured {
            good,
            tiers,
            left_out,
            service_times: Arc::new(service_times),
            machine_cores: manifest.machine.cores,
            busy_cores,
            pinned_cores: manifest.system.pinned_to.len(),
            driver_cpu_s: usage
                .tiers
                .iter()
                .filter(|tier| tier.role == Role::Driver)
                .map(|tier| tier.cpu_s)
                .sum::<f64>()
                / answered,
        })
    }

    /// That it has too few requests for a percentile, if so.
    pub(super) fn too_few_for(&self, share: f64) -> Option<String> {
        let beyond = self.good as f64 * (1.0 - share);
        (beyond < BEYOND_LEAST).then(|| {
            format!(
                "the run has {} answers, too few for p{}: {BEYOND_LEAST} should be slower than that",
                count(self.good),
                (share * 1e6).round() / 1e4
            )
        })
    }

    /// The share of the machine that was busy.
    pub(super) fn machine_busy(&self) -> Option<f64> {
        (self.machine_cores > 0).then(|| self.busy_cores / self.machine_cores as f64)
    }

    /// Takes the cores of an instance from its kind of machine.
    pub(super) fn set_machines(&mut self, prices: Option<&Prices>) {
        for of in &mut self.tiers {
            let kind = prices.and_then(|prices| prices.machine_of(&of.tier.name, called(of.tier.role)));
            let Some((_, kind)) = kind else { continue };
            let cores = (kind.cores.nano() as f64 / 1e9).clamp(1e-3, CORES_MAX);
            of.cores = cores.floor().max(1.0) as usize;
            of.slow = of.cores as f64 / cores;
        }
    }

    /// What was found of what is driven.
    pub(super) fn set_contention(&mut self, contention: Contention) {
        self.tiers[0].contention = contention;
    }

    /// The part of the mean service time that no tier's CPU explains, seconds.
    pub(super) fn rest_s(&self) -> f64 {
        (self.service_times.mean_s() - self.tiers.iter().map(|of| of.cpu_s).sum::<f64>()).max(0.0)
    }

    /// Instances on machines of their own.
    pub(super) fn model(&self, zones: usize) -> Model {
        let mean_s = self.service_times.mean_s();
        let tier = |of: &MeasuredTier| Tier {
            work: Work::Each(Distribution::Share(of.cpu_s * of.slow / mean_s)),
            contention: of.contention,
            ..Tier::new(&of.tier.name, of.tier.instances as usize, of.cores, Distribution::Constant(0.0))
        };
        let mut tiers: Vec<Tier> = self.tiers.iter().map(tier).collect();
        tiers[0].calls = (1..tiers.len()).map(Call::new).collect();
        tiers[0].pause = Distribution::Share(self.rest_s() / mean_s);
        Model {
            load: Load::Open(Arrivals::poisson(1.0)),
            entry: Call::new(0),
            request: Distribution::Measured(self.service_times.clone()),
            tiers,
            zones,
            changes: Vec::new(),
        }
    }

    /// The run as it was: its tiers share the cores of a machine, beside the load generator where nothing is pinned.
    pub(super) fn model_of_run(&self) -> Model {
        let cpu_s: f64 = self.tiers.iter().map(|of| of.cpu_s).sum();
        let cores = match self.pinned_cores {
            0 => (self.machine_cores as f64 * cpu_s / (cpu_s + self.driver_cpu_s).max(f64::MIN_POSITIVE))
                .round(),
            pinned => pinned as f64,
        };
        let mut model = self.model(1);
        model.tiers.truncate(1);
        let machine = &mut model.tiers[0];
        machine.calls.clear();
        machine.instances = 1;
        machine.cores = cores.clamp(1.0, CORES_MAX) as usize;
        machine.contention = Contention::default();
        machine.work = Work::Each(Distribution::Share(cpu_s / self.service_times.mean_s()));
        model
    }
}
