//! What a run costs, and what `tidemark cost` shows.

use tidemark_record::bill::{Amount, Bill, Price, PublishedBill};

use super::run::under;
use super::{Block, Level, Table};
use crate::cost::Costs;
use crate::units::{bytes, count, seconds};

/// The bills of runs that stand beside each other.
pub fn cost(costs: &Costs) -> Vec<Block> {
    costs
        .bills
        .iter()
        .flat_map(|of| {
            let level = if of.bill.doubt.is_some() { Level::Warning } else { Level::Plain };
            let mut blocks = vec![Block::Title(level, format!("{}: cost", of.name))];
            blocks.push(match &of.bill.doubt {
                Some(doubt) => Block::Lead(Level::Warning, format!("{}: {doubt}", of.name)),
                None => Block::Lead(Level::Strong, format!("{}{}", of.name, says(&of.bill))),
            });
            blocks.extend(bill(&of.bill));
            blocks
        })
        .collect()
}

/// The two prices for a million, in half a sentence.
fn says(bill: &Bill) -> String {
    let million = |price: Option<Price>| price.and_then(|price| price.per_million).map(Amount::shown);
    let lacking = if bill.lacks.is_empty() { "" } else { "; not all tiers have a price" };
    match million(bill.at_cpu).zip(million(bill.whole)) {
        Some((cpu, whole)) => format!(
            ": a million good answers cost {cpu} {} at the CPU used, {whole} on whole machines{lacking}",
            bill.currency
        ),
        None => ": there is no price for a million good answers".to_owned(),
    }
}

/// A bill under its heading.
pub(super) fn bill(bill: &Bill) -> Vec<Block> {
    let mut blocks = vec![Block::line("prices", &[&bill.currency, &bill.source, &bill.date])];
    let good = format!("{} good answers in {}", count(bill.good), seconds(bill.measured_s));
    blocks.push(Block::line("rate", &[&good]));
    for table in [used(bill), by_tier(bill), sums(bill)] {
        blocks.extend([Block::Gap, Block::Table(table)]);
    }
    blocks
        .extend(bill.lacks.iter().map(|lack| Block::point(Level::Warning, format!("the sums lack {lack}"))));
    blocks.extend(bill.notes.iter().map(|note| Block::point(Level::Plain, note)));
    blocks.extend(energy(bill));
    blocks.extend(bill.published.as_ref().map(published));
    under("Cost", blocks)
}

fn shown(amount: Option<Amount>) -> String {
    amount.map_or_else(|| "-".to_owned(), Amount::shown)
}

fn used(bill: &Bill) -> Table {
    let head = ["", "machine", "instances", "machines", "cores used", "memory"];
    let mut table = Table::new(head).dispensable(&["memory", "machines"]).whole_names();
    for of in &bill.tiers {
        let machine = of.machine.clone().unwrap_or_else(|| "-".to_owned());
        let machines = of.machines.map_or_else(|| "-".to_owned(), count);
        let cores = format!("{:.2}", of.cores_used);
        table.row(&of.tier, [machine, count(of.instances), machines, cores, bytes(of.rss_bytes_max)]);
    }
    table
}

/// Prices for a million good answers and for a month.
fn by_tier(bill: &Bill) -> Table {
    let head = ["", "million, CPU", "month, CPU", "million, whole", "month, whole"];
    let mut table = Table::new(head).dispensable(&["month, CPU", "million, whole"]).whole_names();
    let mut row = |name: &str, at_cpu: Option<Price>, whole: Option<Price>| {
        let two = |price: Option<Price>| {
            [price.and_then(|price| price.per_million), price.map(|price| price.per_month)].map(shown)
        };
        table.row(name, two(at_cpu).into_iter().chain(two(whole)));
    };
    for of in &bill.tiers {
        row(&of.tier, of.at_cpu, of.whole);
    }
    row(sum_of(bill), bill.at_cpu, bill.whole);
    table
}

fn sum_of(bill: &Bill) -> &'static str {
    if bill.lacks.is_empty() { "sum, no driver" } else { "sum, incomplete" }
}

fn sums(bill: &Bill) -> Table {
    let head = ["", "a million", "an hour", "a day", "a month", "a customer's month"];
    let mut table = Table::new(head).dispensable(&["a day", "an hour"]).whole_names();
    let rows = [
        ("CPU used", bill.at_cpu),
        ("whole machines", bill.whole),
        ("whole, reserved", bill.reserved),
        ("whole, spot", bill.spot),
    ];
    for (name, price) in rows {
        let Some(price) = price else { continue };
        table.row(name, amounts(&price));
    }
    table
}

fn amounts(price: &Price) -> [String; 5] {
    let Price { per_million, per_hour, per_day, per_month, per_customer_month } = *price;
    [per_million, Some(per_hour), Some(per_day), Some(per_month), per_customer_month].map(shown)
}

fn energy(bill: &Bill) -> Vec<Block> {
    let Some(energy) = &bill.energy else { return Vec::new() };
    let mut table = Table::new(["energy", "a million", "an hour", "a day", "a month", "a customer's month"])
        .dispensable(&["a day", "an hour"])
        .whole_names();
    let currency = &bill.currency;
    let rows = [
        ("CPU used, Wh".to_owned(), Some(energy.at_cpu_wh)),
        ("whole machines, Wh".to_owned(), energy.whole_wh),
        (format!("CPU used, {currency}"), energy.at_cpu),
        (format!("whole machines, {currency}"), energy.whole),
    ];
    for (name, price) in rows {
        let Some(price) = price else { continue };
        table.row(&name, amounts(&price));
    }
    vec![Block::Gap, Block::Table(table)]
}

/// What the published experiment had, and what it paid.
fn published(of: &PublishedBill) -> Block {
    let paid = of.usd.map(|usd| {
        let today = of.usd_today.map_or_else(String::new, |usd| format!(", {} in today's", usd.shown()));
        format!("{} US dollars of {}{today}", usd.shown(), of.year)
    });
    Block::line("published", &[&of.what, &paid.unwrap_or_default()])
}
