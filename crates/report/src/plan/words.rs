//! A plan in words.

use tidemark_plan::Survives;

use super::model::Measured;
use super::{Beside, OwnRun, Planned, Wish, rate, time};
use crate::units::{duration, percent, plural};

/// The answer: `50,000/s with p99 < 300ms needs 14 web and 4 data. All of them hold up to 58,300/s, then web breaks first`.
pub(super) fn says(plan: &Planned) -> String {
    let tiers: Vec<String> =
        plan.tiers.iter().map(|of| format!("{} {}", crate::units::count(of.instances), of.tier)).collect();
    let what = if plan.survives == Survives::Zone { "a zone" } else { "one of each" };
    let (spare, survives) = match plan.loss.as_ref().map(|loss| loss.recovered_after_s.is_some()) {
        Some(true) => (String::new(), format!(" It survives the loss of {what}.")),
        Some(false) => (String::new(), format!(" It does not survive the loss of {what}.")),
        None if plan.survives == Survives::Nothing => Default::default(),
        None => (format!(", with spare ones for the loss of {what}"), String::new()),
    };
    let month = plan.bill.as_ref().and_then(|bill| {
        let price = bill.whole?;
        let sum = if bill.not_in_sums.is_empty() { "" } else { " at least" };
        Some(format!("; {} {} a month{sum}", price.per_month.shown(), bill.currency))
    });
    format!(
        "{} with {} needs {}{spare}{}.{survives} All of them hold up to {}, then {} breaks first",
        rate(plan.per_s),
        plan.objectives.join(" and "),
        listed(&tiers),
        month.unwrap_or_default(),
        rate(plan.holds_per_s),
        plan.breaks_first
    )
}

/// `a, b and c`.
fn listed(all: &[String]) -> String {
    match all {
        [] => String::new(),
        [one] => one.clone(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

/// What a plan takes for granted.
pub(super) fn assumptions(measured: &Measured, beside: &Beside, wish: &Wish<'_>) -> Vec<String> {
    let mean_s = measured.service_times.mean_s();
    let is_set = |key: &str| wish.settings.iter().any(|(name, _)| name.rsplit('.').next() == Some(key));
    let mut all = vec![
        "requests come at random (Poisson), and the mix is the run's".to_owned(),
        format!(
            "each request visits each tier once, one tier after the other, and takes the CPU that it took {}",
            match beside.busiest_cpu_s.is_empty() {
                true => "in the run",
                false => "at the highest load that held in the search",
            }
        ),
        "a core does as much work as one of the run's machine".to_owned(),
        "stores spread their load evenly over their instances, and more instances do as much more work"
            .to_owned(),
    ];
    if !is_set("balancing") {
        all.push("callers send to instances in turn".to_owned());
    }
    if !is_set("hop") {
        all.push(
            "the network between instances takes no time beyond the run's; --set TIER.hop=1ms adds some"
                .to_owned(),
        );
    }
    all.extend(wish.settings.iter().map(|(name, value)| format!("{name} is {value}, as --set says")));
    let rest_s = measured.rest_s();
    if rest_s > 0.0 && !is_set("pause") && !is_set("cpu") {
        let share = rest_s / mean_s;
        all.push(format!(
            "{} of the mean service time of {} have no CPU, and do not grow with the load",
            percent(share),
            duration(mean_s * 1e6)
        ));
    }
    if wish.prices.is_none() && !is_set("cores") {
        all.push("an instance has 1 core; --prices FILE or --set TIER.cores=N says otherwise".to_owned());
    }
    if wish.survives != Survives::Nothing {
        all.push(
            "what is lost refuses calls at once; where it is silent, each call waits for its timeout"
                .to_owned(),
        );
    }
    if wish.survives == Survives::Zone {
        all.push(format!("instances are spread evenly over {}", plural(wish.zones as u64, "zone")));
    }
    all
}

/// More requests under way at an instance than in the run, so many times.
const BEYOND: f64 = 2.0;
/// Where a greater share of a request's time has no CPU, something else than cores may bound what an instance holds.
const WITHOUT_CPU: f64 = 0.7;

/// That an instance is to have more requests under way than was measured, most of which time has no CPU: how many it can have
/// is not known.
pub(super) fn beyond(measured: &Measured, per_s: f64) -> Option<String> {
    let mean_s = measured.service_times.mean_s();
    let (share, under_way) = (measured.rest_s() / mean_s, per_s * mean_s);
    (share > WITHOUT_CPU && under_way > BEYOND * measured.under_way.max(1.0)).then(|| {
        format!(
            "{} of a request's time has no CPU, and the plan has {:.0} requests under way at an instance, the run had {:.1}: where \
             threads, connections or locks bound them, it holds less; --set TIER.workers=N says how many",
            percent(share),
            under_way,
            measured.under_way
        )
    })
}

/// That the run's machine was busy, and what that did to its times.
pub(super) fn busy(share: f64, without_waits: bool) -> String {
    let waits = match without_waits {
        true => "waits for its cores were taken out of the service times",
        false => "waits for its cores are in the service times, as the simulated queue grows",
    };
    format!("the run's machine was {} busy: {waits}; a run at less load tells more", percent(share))
}

/// Where the model says something else of its own run than was measured.
pub(super) fn off(own: &OwnRun, most: f64) -> Vec<String> {
    let is_off = |measured: f64, simulated: f64| (simulated / measured - 1.0).abs() > most;
    let mut notes = Vec::new();
    let pairs =
        [("p50", own.measured_p50_s, own.simulated_p50_s), ("p99", own.measured_p99_s, own.simulated_p99_s)];
    for (name, measured, simulated) in pairs {
        if measured.is_some_and(|measured| simulated.is_none_or(|simulated| is_off(measured, simulated))) {
            notes.push(format!(
                "the model does not fit its own run: {name} was {}, and it says {}",
                time(measured),
                time(simulated)
            ));
        }
    }
    if let Some((measured, simulated)) = own.measured_limit_per_s.zip(own.simulated_limit_per_s)
        && is_off(measured, simulated)
    {
        notes.push(format!(
            "the model does not fit its own search: the limit was {}, and it says {}",
            rate(measured),
            rate(simulated)
        ));
    }
    notes
}
