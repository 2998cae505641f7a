//! How many instances another load takes.

use tidemark_plan::{Interval, Point, Scalability};

use super::run::under;
use super::{Block, Chart, Level, Table, Tier};
use crate::cost::NamedBill;
use crate::jmeter::Series;
use crate::plan::{Loss, OwnRun, Planned, PlannedTier, rate, time};
use crate::units::{compact, count, duration, percent, plural, three_digits};

/// A chart ends at so many times the objective.
const DRAWN_MOST: f64 = 2.0;
/// Inputs that are shown.
const INPUTS_MAX: usize = 8;

/// The report.
pub fn plan(plan: &Planned) -> Vec<Block> {
    let is_lost = plan.loss.as_ref().is_some_and(|loss| loss.recovered_after_s.is_none());
    let level = if plan.notes.is_empty() && !is_lost { Level::Good } else { Level::Warning };
    let mut blocks = vec![
        Block::Title(level, format!("Plan of {}", plan.scenario)),
        Block::Lead(level, plan.says.clone()),
    ];
    blocks.extend(plan.notes.iter().map(|note| Block::point(Level::Warning, note)));
    blocks.extend([Block::Gap, picture(plan), Block::Gap, Block::Table(tiers(plan))]);
    if let Some(loss) = &plan.loss {
        blocks.push(lost(loss));
    }
    blocks.extend(under("Load", load(plan)));
    blocks.extend(under("What matters most", [Block::Table(inputs(plan))]));
    blocks.extend(plan.scalability.iter().flat_map(|law| under("Cores", [scalability(law)])));
    if let Some(bill) = &plan.bill {
        let named = NamedBill { name: plan.scenario.clone(), runs: Vec::new(), bill: bill.clone() };
        // the answer is said already
        let is_more = |block: &Block| !matches!(block, Block::Title(..) | Block::Lead(..));
        blocks.extend(super::cost(&[named]).into_iter().filter(is_more));
    }
    blocks.extend(under("The model and its run", own_run(&plan.own_run)));
    let assumed = plan.assumptions.iter().map(|says| Block::point(Level::Plain, says));
    blocks.extend(under("Assumed", assumed));
    blocks.push(Block::line("run", &[&plan.run_dir]));
    blocks
}

/// The tiers as boxes: clients call the first, and that one the others.
fn picture(plan: &Planned) -> Block {
    let of = |of: &PlannedTier| Tier {
        name: format!("{} {}", count(of.instances), of.tier),
        about: format!(
            "{}{}, {} busy",
            plural(of.cores, "core"),
            if of.instances > 1 { " each" } else { "" },
            percent(of.utilisation)
        ),
    };
    Block::Tiers(rate(plan.per_s), plan.tiers.iter().map(of).collect())
}

fn tiers(plan: &Planned) -> Table {
    let head = ["", "instances", "spare", "in the run", "cores", "busy", "CPU of a request"];
    let mut table = Table::new(head).dispensable(&["in the run", "cores"]).whole_names();
    for of in &plan.tiers {
        let spare = if of.spare > 0 { count(of.spare) } else { "-".to_owned() };
        let cells = [
            count(of.instances),
            spare,
            count(of.measured_instances),
            count(of.cores),
            percent(of.utilisation),
            duration(of.cpu_s * 1e6),
        ];
        table.row(&of.tier, cells);
    }
    table
}

fn lost(loss: &Loss) -> Block {
    let failed = match loss.failed {
        0 => "no request fails".to_owned(),
        1 => "1 request fails".to_owned(),
        many => format!("{} requests fail", count(many)),
    };
    match loss.recovered_after_s {
        Some(after) if after > 0.0 => {
            Block::line("loss", &[&failed, &format!("objectives are kept again after {after:.0}s")])
        }
        Some(_) => Block::line("loss", &[&failed, "objectives are kept all the time"]),
        None => Block::Line(
            "loss".into(),
            vec![(Level::Bad, format!("{failed}, and objectives are not kept again within 20s"))],
        ),
    }
}

fn load(plan: &Planned) -> Vec<Block> {
    let mut blocks = vec![Block::Table(rates(plan)), Block::Chart(chart(plan))];
    if plan.curve.iter().any(|of| of.objective_s.is_none()) {
        let says = "Overloaded: the queue grows as long as the load lasts, or more requests fail than the percentile leaves \
                    out. A response time has no end there, and its line leaves the chart.";
        blocks.push(Block::Paragraph(Level::Quiet, says.into()));
    }
    blocks
}

fn rates(plan: &Planned) -> Table {
    let mut table = Table::new(["", "p50", "p99", "failed", "holds", "busiest"]).whole_names();
    for of in &plan.curve {
        let failed = if of.failed_share > 0.0 { percent(of.failed_share) } else { "0".to_owned() };
        let holds = if of.holds { "yes" } else { "no" };
        let busy = plan.tiers.iter().zip(&of.utilisation).max_by(|one, other| one.1.total_cmp(other.1));
        let busiest = busy.map_or_else(String::new, |(of, busy)| format!("{} {}", of.tier, percent(*busy)));
        let is_plan = if of.per_s == plan.per_s { ", the plan" } else { "" };
        let is_overloaded = if of.objective_s.is_none() { ", overloaded" } else { "" };
        table.row(
            &format!("{}{is_plan}{is_overloaded}", rate(of.per_s)),
            [time(of.p50_s), time(of.p99_s), failed, holds.to_owned(), busiest],
        );
    }
    table
}

/// The first percentile among the objectives over the rate, with its bound.
fn chart(plan: &Planned) -> Chart {
    // the rate itself stands between others
    let points: Vec<&Point> = plan.curve.iter().filter(|of| of.per_s != plan.per_s).collect();
    let at: Vec<String> = points.iter().map(|of| format!("{}/s", compact(of.per_s))).collect();
    let bound_ms = plan.bound_s * 1e3;
    let value = |of: &Point| of.objective_s.map_or(f64::INFINITY, |seconds| seconds * 1e3);
    let is_percentile = |text: &&String| !text.trim_start().starts_with("errors");
    let first = plan.objectives.iter().find(is_percentile).map_or("", String::as_str);
    let lines = vec![
        Series {
            name: "response time".into(),
            at: at.clone(),
            values: points.into_iter().map(value).collect(),
        },
        Series { name: first.to_owned(), values: vec![bound_ms; at.len()], at },
    ];
    Chart { caption: format!("{first} by rate, ms"), most: Some(DRAWN_MOST * bound_ms), lines }
}

fn inputs(plan: &Planned) -> Table {
    let mut table = Table::new(["", "a fifth less", "a fifth more", "holds"]).whole_names();
    for of in plan.sensitivity.iter().take(INPUTS_MAX) {
        let holds = if of.holds { "yes" } else { "no" };
        table.row(&of.input, [time(of.less_s), time(of.more_s), holds.to_owned()]);
    }
    table
}

fn scalability(law: &Scalability) -> Block {
    let interval = |of: &Interval| {
        let [value, low, high] = [of.value, of.low, of.high].map(three_digits);
        format!("{value} ({low} to {high})")
    };
    let best = law.best_size.map_or_else(String::new, |size| format!("most at {} cores", three_digits(size)));
    let parts = [
        format!("{} with one", rate(law.one_per_s)),
        format!("contention {}", interval(&law.alpha)),
        format!("coherence {}", interval(&law.beta)),
        best,
    ];
    Block::line("scalability", &parts.each_ref().map(String::as_str))
}

fn own_run(own: &OwnRun) -> Vec<Block> {
    let mut table = Table::new(["", "measured", "simulated"]).whole_names();
    // what too few requests tell nothing of is not without an end
    let measured = |seconds: Option<f64>| seconds.map_or("-".to_owned(), |_| time(seconds));
    table.row("p50", [measured(own.measured_p50_s), time(own.simulated_p50_s)]);
    table.row("p99", [measured(own.measured_p99_s), time(own.simulated_p99_s)]);
    if let Some((measured, simulated)) = own.measured_limit_per_s.zip(own.simulated_limit_per_s) {
        table.row("limit", [measured, simulated].map(rate));
    }
    vec![Block::line("rate", &[&rate(own.per_s)]), Block::Table(table)]
}
