//! What a run costs: what each tier used, and a price file, become a [`Bill`].
//!
//! Two prices stand side by side. *At the CPU used*: cores that were used, as a share of the machine's. *Whole machines*: one
//! for each instance, more where an instance used more cores than a machine has. Both are linear in the rate of the run and say
//! nothing of another rate. CPU time is counted in microseconds from there on; nothing is rounded but each amount at its end.

mod published;
#[cfg(test)]
mod tests;
mod usage;

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use tidemark_record::bill::{Amount, Bill, Energy, MONTH_HOURS, Price, Role, TierBill};
use tidemark_record::{Manifest, Sample};
use tidemark_scenario::prices::{MachineKind, Prices};

use crate::json::schema_of;
use crate::units::{bytes, plural};
pub(crate) use usage::{Tier, Usage};

/// Most CPU time and most of a measured window that is reckoned with, microseconds: above thirty years of one core.
const US_MAX: f64 = 1e15;

/// Makes the bill of runs that belong together: of one, or of all rounds of a side of a comparison. None of none.
///
/// `customers`: among how many a month is divided; without it, the scenario's setting `customers`, where it has one.
pub fn bill<'a>(
    runs: impl IntoIterator<Item = &'a Manifest>,
    prices: &Prices,
    customers: Option<u64>,
) -> Option<Bill> {
    let mut usages = runs.into_iter().map(Usage::of);
    let mut usage = usages.next()?;
    usages.for_each(|other| usage.add(other));
    Some(of_usage(&usage, prices, customers.or(usage.customers)))
}

/// What runs have that a price file and `--machine` can name: each tier, and what it may be called beside.
pub fn tier_names<'a>(runs: impl IntoIterator<Item = &'a Manifest>) -> Vec<String> {
    let tiers = runs.into_iter().flat_map(usage::tiers);
    let names = tiers.flat_map(|tier| {
        let role = roles(tier.role).first().map(|role| (*role).to_owned());
        std::iter::once(tier.name).chain(role)
    });
    let mut found: Vec<String> = Vec::new();
    names.for_each(|name| {
        if !found.contains(&name) {
            found.push(name);
        }
    });
    found
}

/// What the kinds of tiers are called in price files.
fn roles(role: Role) -> &'static [&'static str] {
    match role {
        Role::System => &["web"],
        Role::Service => &["services"],
        Role::Balancer => &["balancer"],
        Role::Store => &["stores"],
        Role::Watched => &["watched"],
        Role::Driver => &["driver"],
    }
}

/// Whole microseconds.
fn us(seconds: f64) -> u128 {
    (seconds * 1e6).round().clamp(0.0, US_MAX) as u128
}

/// What prices are reckoned over.
#[derive(Clone, Copy)]
struct Rate {
    window_us: u128,
    good: u128,
    customers: Option<u64>,
}

impl Rate {
    /// The price of `part / of` machines all the time. `None` where nothing was measured.
    fn price(self, hour: Amount, part: u128, of: u128) -> Option<Price> {
        let hours = |hours: u128| hour.part(part.checked_mul(hours)?, of);
        let each = |customers: u64| hour.part(part * MONTH_HOURS, of.checked_mul(customers.into())?);
        // an hour's price, for the hours of the window, for a million of its answers
        let million = hour.part(part.checked_mul(self.window_us)?, of.checked_mul(3_600 * self.good)?);
        Some(Price {
            per_million: million,
            per_hour: hours(1)?,
            per_day: hours(24)?,
            per_month: hours(MONTH_HOURS)?,
            per_customer_month: self.customers.and_then(each),
        })
    }

    fn at_cpu(self, tier: &Tier, kind: &MachineKind) -> Option<Price> {
        self.price(kind.hour, us(tier.cpu_s), self.window_us * u128::from(kind.cores))
    }
}

/// A tier that has a price.
struct Placed<'a> {
    tier: &'a Tier,
    kind: &'a MachineKind,
    name: &'a str,
    machines: u64,
}

fn of_usage(usage: &Usage, prices: &Prices, customers: Option<u64>) -> Bill {
    let rate = Rate { window_us: us(usage.measured_s), good: usage.good.into(), customers };
    let (mut tiers, mut placed) = (Vec::new(), Vec::new());
    let (mut not_in_sums, mut notes) = (usage.unseen.clone(), Vec::new());
    for tier in &usage.tiers {
        let found = place(tier, usage, prices);
        let of = found.as_ref().ok();
        tiers.push(TierBill {
            tier: tier.name.clone(),
            role: tier.role,
            instances: tier.instances,
            cpu_s: tier.cpu_s,
            cores_used: cores_used(tier, usage),
            rss_bytes_max: tier.rss_bytes_max,
            machine: of.map(|of| of.name.to_owned()),
            machines: of.map(|of| of.machines),
            at_cpu: of.and_then(|of| rate.at_cpu(tier, of.kind)),
            whole: of.and_then(|of| rate.price(of.kind.hour, of.machines.into(), 1)),
        });
        match found {
            Ok(of) => {
                notes.extend((of.machines > tier.instances).then(|| {
                    let machines = plural(of.machines, "machine");
                    let of_instances = plural(tier.instances, "instance");
                    let used = format!("{}: an instance used more cores than {} has", tier.name, of.name);
                    format!("{used}: {machines} for {of_instances}")
                }));
                placed.extend((tier.role != Role::Driver).then_some(of));
            }
            Err(lack) if tier.role == Role::Driver => notes.push(lack),
            Err(lack) => not_in_sums.push(lack),
        }
    }
    if usage.good == 0 {
        notes.push("there was no good answer: there is no price for a million".to_owned());
    }
    if usage.measured_s <= 0.0 {
        not_in_sums.push("nothing was measured: there is no price".to_owned());
    }
    let sum = |of: fn(&TierBill) -> Option<Price>| {
        let prices: Vec<Price> = tiers.iter().filter(|of| of.role != Role::Driver).filter_map(of).collect();
        (!prices.is_empty()).then(|| prices.into_iter().sum())
    };
    let mut other = |what: &str, hour: fn(&MachineKind) -> Option<Amount>| {
        let without: Vec<&str> =
            placed.iter().filter(|of| hour(of.kind).is_none()).map(|of| of.name).collect();
        if let Some(name) = without.first() {
            notes.push(format!("no {what} price: {name} has none"));
            return None;
        }
        let price = |of: &Placed<'_>| rate.price(hour(of.kind)?, of.machines.into(), 1);
        let prices: Option<Vec<Price>> = placed.iter().map(price).collect();
        prices.filter(|prices| !prices.is_empty()).map(|prices| prices.into_iter().sum())
    };
    let reserved = other("reserved", |kind| kind.reserved_hour);
    let spot = other("spot", |kind| kind.spot_hour);
    let energy = energy(&placed, rate, prices, &mut notes);
    Bill {
        currency: prices.currency.clone(),
        source: prices.source.clone(),
        date: prices.date.clone(),
        caveat: usage.caveat.clone(),
        good: usage.good,
        measured_s: usage.measured_s,
        customers,
        at_cpu: sum(|of| of.at_cpu),
        whole: sum(|of| of.whole),
        reserved,
        spot,
        not_in_sums,
        notes,
        energy,
        published: published::of(&usage.scenario, prices),
        tiers,
    }
}

fn cores_used(tier: &Tier, usage: &Usage) -> f64 {
    if usage.measured_s > 0.0 { tier.cpu_s / usage.measured_s } else { 0.0 }
}

/// The machines that a tier stands on, or why it has no price.
fn place<'a>(tier: &'a Tier, usage: &Usage, prices: &'a Prices) -> Result<Placed<'a>, String> {
    let name = &tier.name;
    let (machine, kind) = prices.machine_of(name, roles(tier.role)).ok_or_else(|| {
        format!(
            "{name}: no kind of machine; name one: --machine {name}=KIND, or `machine:` in the price file"
        )
    })?;
    if tier.rss_bytes_max > kind.memory_bytes {
        let [used, has] = [tier.rss_bytes_max, kind.memory_bytes].map(bytes);
        return Err(format!(
            "{name}: an instance used {used} of memory, and {machine} has {has}; give it a larger one: --machine {name}=KIND"
        ));
    }
    // in billionths of a core, so that what fits exactly is not one machine more
    let of_one = (cores_used(tier, usage) / tier.instances as f64 * 1e9).round() as u64;
    let each = of_one.div_ceil(kind.cores.saturating_mul(1_000_000_000)).max(1);
    Ok(Placed { tier, kind, name: machine, machines: tier.instances.saturating_mul(each) })
}

/// Watts are reckoned as prices: a watt is a watt-hour each hour.
fn energy(placed: &[Placed<'_>], rate: Rate, prices: &Prices, notes: &mut Vec<String>) -> Option<Energy> {
    let knows = |of: &Placed<'_>| of.kind.core_watts.is_some();
    if !placed.iter().any(knows) {
        return None;
    }
    if let Some(of) = placed.iter().find(|of| !knows(of)) {
        notes.push(format!("no energy: {} has no core_watts", of.name));
        return None;
    }
    let busy = |of: &Placed<'_>| rate.price(of.kind.core_watts?, us(of.tier.cpu_s), rate.window_us);
    let idle = |of: &Placed<'_>| rate.price(of.kind.idle_watts?, of.machines.into(), 1);
    let all = |of: &dyn Fn(&Placed<'_>) -> Option<Price>| -> Option<Price> {
        placed.iter().map(of).collect::<Option<Vec<Price>>>().map(|prices| prices.into_iter().sum())
    };
    let at_cpu_wh = all(&busy)?;
    let whole_wh = all(&idle).map(|idle| [at_cpu_wh, idle].into_iter().sum());
    if let Some(of) = placed.iter().find(|of| of.kind.idle_watts.is_none()) {
        notes.push(format!("no energy of whole machines: {} has no idle_watts", of.name));
    }
    let cost = |wh: Price| {
        let kwh = prices.kwh?;
        let of = |wh: Amount| wh.part(kwh.nano(), Amount::whole(1_000).nano()).unwrap_or_default();
        Some(Price {
            per_million: wh.per_million.map(of),
            per_hour: of(wh.per_hour),
            per_day: of(wh.per_day),
            per_month: of(wh.per_month),
            per_customer_month: wh.per_customer_month.map(of),
        })
    };
    Some(Energy { at_cpu_wh, whole_wh, at_cpu: cost(at_cpu_wh), whole: whole_wh.and_then(cost) })
}

/// A bill, and what it is of.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct NamedBill {
    /// The run, or the side of a comparison.
    pub name: String,
    /// What it costs.
    pub bill: Bill,
}

/// What `tidemark cost --json` prints.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Costs {
    /// A bill of a run or of the limit of each search, or one for each side of a comparison.
    pub bills: Vec<NamedBill>,
}

impl Costs {
    /// As JSON with a line end.
    pub fn json(&self) -> String {
        serde_json::to_string_pretty(self).expect("bills are plain JSON") + "\n"
    }

    /// The schema of that: `docs/cost.schema.json`.
    pub fn schema() -> Value {
        schema_of::<Costs>("What tidemark cost prints with --json")
    }
}

/// CPU of a tier over the measured window, 1 being a whole core.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct TierCpu {
    /// The service, the store, `web-balancer`, `driver`.
    pub tier: String,
    /// What it is to the run.
    pub role: Role,
    /// Instances.
    pub instances: u64,
    /// Cores that one of them used, mean.
    pub mean: f64,
    /// Least that one of them used in a look.
    pub min: f64,
    /// Most that one of them used in a look.
    pub max: f64,
    /// Highest resident memory of one of them, bytes.
    pub rss_bytes_max: u64,
}

/// CPU by tier and node.
pub(crate) fn cpu_by_tier(manifest: &Manifest, samples: &[Sample]) -> Vec<TierCpu> {
    let usage = Usage::of(manifest);
    let measured = manifest.phases.iter().filter(|phase| phase.measured);
    let from_us = measured.clone().map(|phase| phase.start_us).min().unwrap_or(0);
    let to_us = measured.map(|phase| phase.end_us).max().unwrap_or(u64::MAX);
    let cpu = |tier: &Tier| {
        let looks = samples.iter().filter(|look| tier.nodes.contains(&look.process));
        let looks = looks.filter(|look| (from_us..=to_us).contains(&look.at_us)).map(|look| look.cpu_share);
        let (min, max) =
            looks.fold((f64::INFINITY, 0.0_f64), |(min, max), share| (min.min(share), max.max(share)));
        TierCpu {
            tier: tier.name.clone(),
            role: tier.role,
            instances: tier.instances,
            mean: cores_used(tier, &usage) / tier.instances as f64,
            min: if min.is_finite() { min } else { 0.0 },
            max,
            rss_bytes_max: tier.rss_bytes_max,
        }
    };
    usage.tiers.iter().map(cpu).collect()
}
