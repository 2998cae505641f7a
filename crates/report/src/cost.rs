//! What a run costs: what each tier used, and a price file, become a [`Bill`].
//!
//! Two prices stand side by side. *For the CPU used*: cores that were used, as a share of the machine's. *Whole machines*: one
//! for each instance, more where an instance used more cores than a machine has. Both are linear in the rate of the run and say
//! nothing of another rate. CPU time is counted in microseconds from there on; nothing is rounded but each amount at its end.

#[cfg(test)]
mod tests;
mod usage;

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::Serialize;
use tidemark_record::Manifest;
use tidemark_record::bill::{Amount, Bill, Energy, MONTH_HOURS, Price, Role, TierBill};
use tidemark_scenario::diagnostic::did_you_mean;
use tidemark_scenario::prices::{MachineKind, Prices, ROLES};

use crate::units::{bytes, plural};
pub(crate) use usage::{Tier, Usage, measured_us};

/// Most CPU time and most of a measured window that is reckoned with, microseconds: a plan of 100 million cores takes less.
const US_MAX: f64 = 1e18;

/// The clock of CPU time goes on by so much, seconds: less is not told from nothing.
const TICK_S: f64 = 0.01;

/// Makes the bill of runs that belong together: of one, or of all rounds of a side of a comparison. None of none.
///
/// `customers`: among how many a month is divided; without it, the scenario's setting `customers`, where it has one. What a
/// published experiment paid is the caller's to add.
pub fn bill<'a>(
    runs: impl IntoIterator<Item = &'a Manifest>,
    prices: &Prices,
    customers: Option<u64>,
) -> Option<Bill> {
    let runs: Vec<&Manifest> = runs.into_iter().collect();
    let mut usages = runs.iter().copied().map(Usage::of);
    let mut usage = usages.next()?;
    usages.for_each(|other| usage.add(other));
    let mut bill = of_usage(&usage, prices, customers.or(usage.customers));
    bill.notes.extend(names_of_none(&runs, prices));
    Some(bill)
}

/// What the price file names and these runs do not have.
fn names_of_none(runs: &[&Manifest], prices: &Prices) -> Vec<String> {
    let names = tier_names(runs.iter().copied());
    let is_known = |tier: &str| ROLES.contains(&tier) || names.iter().any(|name| name == tier);
    let of_none = prices.tiers.keys().filter(|tier| !is_known(tier));
    let tells = |tier: &String| {
        let hint = did_you_mean(tier, names.iter().map(String::as_str));
        format!("the price file has {tier} among its tiers, and this run has none of that name{hint}")
    };
    of_none.map(tells).collect()
}

/// What runs have that a price file and `--machine` can name: each tier, and what it may be called beside.
pub fn tier_names<'a>(runs: impl IntoIterator<Item = &'a Manifest>) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for manifest in runs {
        let tiers = usage::tiers(manifest).into_iter();
        let names = tiers.flat_map(|tier| [tier.name, called(tier.role).to_owned()]);
        for name in names.chain(usage::declared(manifest)) {
            if !found.contains(&name) {
                found.push(name);
            }
        }
    }
    found
}

/// What the kinds of tiers are called in price files.
pub(crate) fn called(role: Role) -> &'static str {
    match role {
        Role::System => "web",
        Role::Service => "services",
        Role::Balancer => "balancer",
        Role::Store => "stores",
        Role::Watched => "watched",
        Role::Driver => "driver",
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
        // a machine's cores are counted in billionths
        let cpu_us = us(tier.cpu_s.max(TICK_S)) * Amount::whole(1).nano();
        self.price(kind.hour, cpu_us, self.window_us * kind.cores.nano())
    }
}

/// A tier that has a price.
struct Placed<'a> {
    tier: &'a Tier,
    kind: &'a MachineKind,
    name: &'a str,
    machines: u64,
}

pub(crate) fn of_usage(usage: &Usage, prices: &Prices, customers: Option<u64>) -> Bill {
    let rate = Rate { window_us: us(usage.measured_s), good: usage.good.into(), customers };
    let (mut tiers, mut placed) = (Vec::new(), Vec::new());
    let (mut not_in_sums, mut notes) = (usage.unseen(), usage.faults.clone());
    for tier in &usage.tiers {
        let found = place(tier, usage, prices);
        tiers.push(tier_bill(tier, usage, rate, found.as_ref().ok()));
        match found {
            Ok(of) => {
                notes.extend(told_of(&of));
                placed.extend((tier.role != Role::Driver).then_some(of));
            }
            Err(why) if tier.role == Role::Driver => notes.push(format!("{} has no price: {why}", tier.name)),
            Err(why) => not_in_sums.push(format!("{} is in no sum: {why}", tier.name)),
        }
    }
    if usage.good == 0 {
        notes.push("no price for a million: there was no good answer".to_owned());
    }
    if usage.measured_s <= 0.0 {
        not_in_sums.push("no price for the CPU used: nothing was measured".to_owned());
    }
    let sum = |of: fn(&TierBill) -> Option<Price>| {
        let prices: Vec<Price> = tiers.iter().filter(|of| of.role != Role::Driver).filter_map(of).collect();
        (!prices.is_empty()).then(|| prices.into_iter().sum())
    };
    let reserved = whole_at(&placed, rate, "reserved", |kind| kind.reserved_hour, &mut notes);
    let spot = whole_at(&placed, rate, "spot", |kind| kind.spot_hour, &mut notes);
    let energy = energy(&placed, rate, prices, &mut notes);
    Bill {
        currency: prices.currency.clone(),
        source: prices.source.clone(),
        date: prices.date.clone(),
        caveat: usage.caveat(),
        good: usage.good,
        failed: usage.failed,
        measured_s: usage.measured_s,
        customers,
        at_cpu: sum(|of| of.at_cpu),
        whole: sum(|of| of.whole),
        reserved,
        spot,
        not_in_sums,
        notes,
        energy,
        published: None,
        tiers,
    }
}

fn tier_bill(tier: &Tier, usage: &Usage, rate: Rate, of: Option<&Placed<'_>>) -> TierBill {
    let at_cpu = of.and_then(|of| rate.at_cpu(tier, of.kind));
    TierBill {
        tier: tier.name.clone(),
        role: tier.role,
        instances: tier.instances,
        cpu_s: tier.cpu_s,
        cores_used: cores_used(tier, usage),
        rss_bytes_max: tier.rss_bytes_max(),
        machine: of.map(|of| of.name.to_owned()),
        machines: of.map(|of| of.machines),
        at_cpu_is_less: at_cpu.is_some() && tier.cpu_s < TICK_S,
        at_cpu,
        whole: of.and_then(|of| rate.price(of.kind.hour, of.machines.into(), 1)),
    }
}

/// What is to be said of a tier's machines.
fn told_of(of: &Placed<'_>) -> Vec<String> {
    let Tier { name, instances, .. } = of.tier;
    let mut notes = Vec::new();
    if of.machines > *instances {
        let [machines, instances] =
            [(of.machines, "machine"), (*instances, "instance")].map(|(count, what)| plural(count, what));
        let used = format!("{name}: an instance used more cores than {} has", of.name);
        notes.push(format!("{used}: {machines} for {instances}"));
    }
    if of.tier.rss_bytes_max() == 0 {
        notes.push(format!("memory of {name} was not seen: {} may be too small", of.name));
    }
    notes
}

/// The price of whole machines by another price of an hour; `None`, and a note, where one has none.
fn whole_at(
    placed: &[Placed<'_>],
    rate: Rate,
    what: &str,
    hour: fn(&MachineKind) -> Option<Amount>,
    notes: &mut Vec<String>,
) -> Option<Price> {
    if let Some(names) = without(placed, |kind| hour(kind).is_some()) {
        notes.push(format!("no {what} price: none for {names}"));
        return None;
    }
    let price = |of: &Placed<'_>| rate.price(hour(of.kind)?, of.machines.into(), 1);
    let prices: Option<Vec<Price>> = placed.iter().map(price).collect();
    prices.filter(|prices| !prices.is_empty()).map(|prices| prices.into_iter().sum())
}

/// The kinds of machines that lack something, each once.
fn without(placed: &[Placed<'_>], has: impl Fn(&MachineKind) -> bool) -> Option<String> {
    let names: BTreeSet<&str> = placed.iter().filter(|of| !has(of.kind)).map(|of| of.name).collect();
    (!names.is_empty()).then(|| Vec::from_iter(names).join(", "))
}

pub(crate) fn cores_used(tier: &Tier, usage: &Usage) -> f64 {
    if usage.measured_s > 0.0 { tier.cpu_s / usage.measured_s } else { 0.0 }
}

/// The machines that a tier stands on, or why it has no price.
fn place<'a>(tier: &'a Tier, usage: &Usage, prices: &'a Prices) -> Result<Placed<'a>, String> {
    if let Some(why) = usage.not_seen(tier) {
        return Err(why);
    }
    let name = &tier.name;
    let (machine, kind) = prices.machine_of(name, called(tier.role)).ok_or_else(|| {
        format!("it has no kind of machine; give --machine {name}=KIND, or `machine:` in the price file")
    })?;
    if tier.rss_bytes_max() > kind.memory_bytes {
        let [used, has] = [tier.rss_bytes_max(), kind.memory_bytes].map(bytes);
        return Err(format!(
            "an instance used {used} of memory, and {machine} has {has}; give it a larger one: --machine {name}=KIND"
        ));
    }
    Ok(Placed { tier, kind, name: machine, machines: tier.machines(kind.cores) })
}

/// Watts are reckoned as prices: a watt is a watt-hour each hour.
fn energy(placed: &[Placed<'_>], rate: Rate, prices: &Prices, notes: &mut Vec<String>) -> Option<Energy> {
    if placed.is_empty() {
        return None;
    }
    if let Some(names) = without(placed, |kind| kind.core_watts.is_some()) {
        let has_any = |of: &Placed<'_>| of.kind.core_watts.or(of.kind.idle_watts).is_some();
        if prices.kwh.is_some() || placed.iter().any(has_any) {
            notes.push(format!("no energy: no core_watts of {names}"));
        }
        return None;
    }
    let busy = |of: &Placed<'_>| rate.price(of.kind.core_watts?, us(of.tier.cpu_s), rate.window_us);
    let idle = |of: &Placed<'_>| rate.price(of.kind.idle_watts?, of.machines.into(), 1);
    let all = |of: &dyn Fn(&Placed<'_>) -> Option<Price>| -> Option<Price> {
        placed.iter().map(of).collect::<Option<Vec<Price>>>().map(|prices| prices.into_iter().sum())
    };
    let at_cpu_wh = all(&busy)?;
    let whole_wh = all(&idle).map(|idle| [at_cpu_wh, idle].into_iter().sum());
    if let Some(names) = without(placed, |kind| kind.idle_watts.is_some()) {
        notes.push(format!("no energy of whole machines: no idle_watts of {names}"));
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

/// A run that is in a bill.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct BilledRun {
    /// Its directory.
    pub run_dir: String,
    /// When it began, RFC 3339.
    pub started_at: String,
}

/// A bill, and what it is of.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct NamedBill {
    /// The run, or the side of a comparison.
    pub name: String,
    /// The runs that it is made of.
    pub runs: Vec<BilledRun>,
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
    /// As JSON with a line end: `docs/cost.schema.json`.
    pub fn json(&self) -> String {
        serde_json::to_string_pretty(self).expect("bills are plain JSON") + "\n"
    }
}
