//! What-if: `TIER.KEY=VALUE` changes a model.

use tidemark_plan::{Balancing, Breaker, Distribution, Model, UNBOUNDED, Work};
use tidemark_scenario::diagnostic::did_you_mean;
use tidemark_scenario::units::{parse_count, parse_duration, parse_number, parse_share};

/// Most cores of an instance that can be set: a simulation with more does not come to its end in time.
const SET_CORES_MAX: usize = 1_024;
/// What can be set of a tier.
pub(super) const KEYS: [&str; 16] = [
    "cores",
    "cpu",
    "pause",
    "queue",
    "workers",
    "balancing",
    "calls",
    "hit",
    "hop",
    "pool",
    "timeout",
    "retries",
    "breaker",
    "commit",
    "alpha",
    "beta",
];

/// Changes the model as it is asked for.
///
/// # Errors
/// A tier, key or value that there is not.
pub(super) fn apply(model: &mut Model, settings: &[(String, String)]) -> Result<(), String> {
    for (name, value) in settings {
        let wrong = |why: String| format!("--set {name}={value}: {why}");
        let (tier, key) = name.rsplit_once('.').ok_or_else(|| wrong("write it like web.cores=4".into()))?;
        let index = model.tiers.iter().position(|of| of.name == tier).ok_or_else(|| {
            let names = model.tiers.iter().map(|of| of.name.as_str());
            wrong(format!("no tier {tier}{}; tiers: {}", did_you_mean(tier, names.clone()), join(names)))
        })?;
        set(model, index, key, value).map_err(wrong)?;
        model.check().map_err(|out_of_bounds| wrong(out_of_bounds.0))?;
    }
    Ok(())
}

fn join<'a>(names: impl Iterator<Item = &'a str>) -> String {
    names.collect::<Vec<_>>().join(", ")
}

fn time_s(value: &str) -> Result<f64, String> {
    parse_duration(value).map(|time| time.as_secs_f64()).map_err(|error| error.to_string())
}

fn whole(value: &str) -> Result<usize, String> {
    let count = parse_count(value).map_err(|error| error.to_string())?;
    usize::try_from(count).map_err(|error| error.to_string())
}

/// Of a call to a tier: from clients of the first, else from the first.
fn set(model: &mut Model, index: usize, key: &str, value: &str) -> Result<(), String> {
    let mean_s = model.request.mean(0.0);
    let (callers, rest) = model.tiers.split_at_mut(index);
    let tier = &mut rest[0];
    let call = match callers.first_mut() {
        None => &mut model.entry,
        Some(caller) => caller.calls.iter_mut().find(|call| call.to == index).ok_or("nothing calls it")?,
    };
    let number = |text: &str| parse_number(text).map_err(|error| error.to_string());
    match key {
        "cores" => {
            tier.cores = whole(value)?;
            if tier.cores > SET_CORES_MAX {
                return Err(format!("an instance has {SET_CORES_MAX} cores at most"));
            }
        }
        // its requests keep their shape
        "cpu" => {
            let cpu_s = time_s(value)?;
            if cpu_s <= 0.0 {
                return Err("a request takes more CPU than 0".into());
            }
            tier.work = Work::Each(Distribution::Share(cpu_s / mean_s / call.count));
        }
        "pause" => tier.pause = Distribution::Share(time_s(value)? / mean_s),
        "queue" => tier.queue = whole(value)?,
        "workers" => tier.workers = whole(value)?,
        "balancing" => tier.balancing = balancing(value)?,
        "calls" => {
            let count = number(value)?;
            if count <= 0.0 {
                return Err("a request calls it more than 0 times".into());
            }
            if let Work::Each(work) = &tier.work {
                // the CPU of a request is spread over its calls
                tier.work = Work::Each(work.scaled(call.count / count));
            }
            call.count = count;
        }
        "hit" => call.hit_rate = parse_share(value).map_err(|error| error.to_string())?,
        "hop" => call.hop_s = time_s(value)?,
        "pool" if index == 0 => return Err("clients have no pool".into()),
        "pool" => call.pool = whole(value)?,
        "timeout" => call.timeout_s = Some(time_s(value)?),
        "retries" => call.retries = u32::try_from(whole(value)?).map_err(|error| error.to_string())?,
        "breaker" => {
            let failures = u32::try_from(whole(value)?).map_err(|error| error.to_string())?;
            call.breaker = Some(Breaker { failures, open_s: 1.0 });
        }
        "commit" => {
            let each_s = match &tier.work {
                Work::Each(work) => work.mean(mean_s),
                Work::Batch { each_s, .. } => *each_s,
            };
            tier.work = Work::Batch { fixed_s: time_s(value)?, each_s, most: UNBOUNDED };
        }
        "alpha" => tier.contention.alpha = number(value)?,
        "beta" => tier.contention.beta = number(value)?,
        _ => {
            let hint = did_you_mean(key, KEYS);
            return Err(format!("no key {key}{hint}; keys: {}", join(KEYS.into_iter())));
        }
    }
    Ok(())
}

fn balancing(value: &str) -> Result<Balancing, String> {
    Ok(match value {
        "round-robin" => Balancing::RoundRobin,
        "random" => Balancing::Random,
        "least-busy" => Balancing::LeastBusy,
        "two-choices" => Balancing::TwoChoices,
        _ => return Err("balancing is round-robin, random, least-busy or two-choices".into()),
    })
}
