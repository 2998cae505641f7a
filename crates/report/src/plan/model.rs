//! A run as a model.

use std::sync::Arc;

use tidemark_plan::{
    Arrivals, Call, Contention, Distribution, Load, Model, Span, Tier, Work, Wrong, simulate,
};
use tidemark_record::bill::Role;
use tidemark_record::{MACHINE, Manifest, Outcome, Run, new_merged};
use tidemark_scenario::prices::Prices;

use crate::cost::{self, Usage, called};
use crate::units::{count, duration};

/// Least CPU time of what is driven, seconds: a system counts it in hundredths.
const CPU_LEAST_S: f64 = 0.1;
/// Answers beyond a percentile that it rests on.
const BEYOND_LEAST: f64 = 10.0;
/// Most cores of an instance.
const CORES_MAX: f64 = 10_000.0;
/// How often waits are looked for, over how many requests, and by what a time changes at once at most.
const FITS: u64 = 8;
const FIT_REQUESTS: f64 = 200_000.0;
const FIT_STEP: (f64, f64) = (0.5, 1.5);
/// Slower requests than these are too few to be looked at one by one.
const FIT_BEYOND: f64 = 50.0;

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
    /// Service times as they were measured, seconds, in order, and how many requests had each.
    seen: Vec<(f64, u64)>,
    load: Load,
    /// Cores of the machine of the run, and how many of them were busy.
    machine_cores: u64,
    busy_cores: f64,
    /// Cores that the system was bound to; 0 where it was not.
    pinned_cores: usize,
    /// CPU time of the load generator for a request, seconds.
    driver_cpu_s: f64,
    /// Good answers whose service times were measured.
    good: u64,
    /// Requests that an instance of what is driven had under way, on average.
    pub(super) under_way: f64,
    /// Requests without a good answer, 0 to 1.
    pub(super) failed_share: f64,
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
        let seen: Vec<(f64, u64)> = merged
            .iter_recorded()
            .map(|of| (of.value_iterated_to() as f64 * 1e-6, of.count_since_last_iteration()))
            .collect();
        let service_times = tidemark_plan::Measured::new(seen.iter().copied()).filter(|of| of.mean_s() > 0.0);
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
        let instances = tiers[0].tier.instances.max(1) as f64;
        Ok(Measured {
            under_way: manifest.summary.achieved_per_s * service_times.mean_s() / instances,
            failed_share: usage.failed as f64 / answered,
            load: load_of(manifest, service_times.mean_s()),
            seen,
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

    /// Takes out of the service times what requests waited for each other in the run, so that the model of the run, which
    /// waits by itself, has the times that were measured: each time changes by the ratio of measured to simulated time at
    /// the same percentile, until they agree. Says whether it did: where the simulated queue grows, times stay as they are.
    ///
    /// # Errors
    /// What is wrong with the model.
    pub(super) fn take_waits_out(&mut self, seed: u64) -> Result<bool, Wrong> {
        let per_s = match &self.load {
            Load::Open(arrivals) => arrivals.peak_per_s(),
            Load::Closed { users, think } => {
                *users as f64 / (think.mean(0.0) + self.service_times.mean_s()).max(f64::MIN_POSITIVE)
            }
        };
        let cpu_s: f64 = self.tiers.iter().map(|of| of.cpu_s).sum();
        let last = 1.0 - FIT_BEYOND / FIT_REQUESTS.min(self.good as f64).max(2.0 * FIT_BEYOND);
        let mut times: Vec<f64> = self.seen.iter().map(|(time, _)| *time).collect();
        for fit in 0..FITS {
            let span = Span::of_requests(FIT_REQUESTS, per_s, seed.wrapping_add(fit));
            let outcome = simulate(&self.model_of_run(), &span)?;
            if outcome.grows() {
                return Ok(fit > 0);
            }
            let (mut below, mut factor, mut least) = (0, 1.0, 0.0f64);
            for (time, (measured, count)) in times.iter_mut().zip(&self.seen) {
                let share = (below as f64 + *count as f64 / 2.0) / self.good as f64;
                if share <= last {
                    let simulated = outcome.good.quantile_s(share, 0).unwrap_or(*measured);
                    factor = (measured / simulated.max(1e-9)).clamp(FIT_STEP.0, FIT_STEP.1);
                }
                // percentiles keep their order
                *time = (*time * factor).max(least);
                least = *time;
                below += count;
            }
            // no request takes less than its CPU, on average
            let counts = self.seen.iter().map(|(_, count)| *count);
            let mean_s =
                times.iter().zip(counts.clone()).map(|(time, count)| time * count as f64).sum::<f64>()
                    / self.good as f64;
            if mean_s < cpu_s {
                times.iter_mut().for_each(|time| *time *= cpu_s / mean_s);
            }
            if let Some(fitted) = tidemark_plan::Measured::new(times.iter().copied().zip(counts)) {
                self.service_times = Arc::new(fitted);
            }
        }
        Ok(true)
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

    /// Takes the CPU time of a request from elsewhere, by tier.
    pub(super) fn set_cpu(&mut self, cpu_s: &[(String, f64)]) {
        for of in &mut self.tiers {
            let found = cpu_s.iter().find(|(name, _)| *name == of.tier.name);
            of.cpu_s = found.map_or(of.cpu_s, |(_, cpu_s)| *cpu_s);
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

    /// The run as it was, with its load: its tiers share the cores of a machine, beside the load generator where nothing is
    /// pinned.
    pub(super) fn model_of_run(&self) -> Model {
        let cpu_s: f64 = self.tiers.iter().map(|of| of.cpu_s).sum();
        let cores = match self.pinned_cores {
            0 => (self.machine_cores as f64 * cpu_s / (cpu_s + self.driver_cpu_s).max(f64::MIN_POSITIVE))
                .round(),
            pinned => pinned as f64,
        };
        let mut model = Model { load: self.load.clone(), ..self.model(1) };
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

/// The load of a run whose requests took so long. What users do between their requests follows from their number and their
/// rate (Little's law).
fn load_of(manifest: &Manifest, mean_s: f64) -> Load {
    let per_s = manifest.summary.achieved_per_s;
    match manifest.closed_users.filter(|users| *users > 0) {
        Some(users) => Load::Closed {
            users: users as usize,
            think: Distribution::Constant((users as f64 / per_s - mean_s).max(0.0)),
        },
        // a session of several requests spreads them by itself
        None if manifest.even_arrivals && manifest.labels.len() == 1 => Load::Open(Arrivals::even(per_s)),
        None => Load::Open(Arrivals::poisson(per_s)),
    }
}
