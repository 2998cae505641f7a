//! What a run costs, and what `tidemark cost` shows.

use tidemark_record::bill::{Amount, Bill, Energy, Price, PublishedBill};

use super::run::under;
use super::{Block, Level, Table};
use crate::cost::NamedBill;
use crate::units::{bytes, count, percent, seconds};

/// The bills of runs that stand beside each other.
pub fn cost(bills: &[NamedBill]) -> Vec<Block> {
    below(bills).skip(1).collect()
}

/// The same below something else.
pub(super) fn below(bills: &[NamedBill]) -> impl Iterator<Item = Block> {
    bills.iter().flat_map(|NamedBill { name, runs, bill: of }| {
        let (level, says) = match &of.caveat {
            Some(caveat) => (Level::Warning, format!("{name}: {caveat}")),
            None => (Level::Strong, format!("{name}{}", says(of))),
        };
        let head = [Block::Gap, Block::Title(level, format!("{name}: cost")), Block::Lead(level, says)];
        let more = match runs.len() {
            0 | 1 => String::new(),
            all => format!("and {} more", all - 1),
        };
        let from = runs.first().map(|run| Block::line("of", &[&run.run_dir, &more, &run.started_at]));
        head.into_iter().chain(from).chain(bill(of))
    })
}

/// The two prices for a million, in half a sentence.
fn says(bill: &Bill) -> String {
    let million = |price: Option<Price>| price.and_then(|price| price.per_million).map(Amount::shown);
    let lacking = if bill.not_in_sums.is_empty() { "" } else { "; not all tiers have a price" };
    match million(bill.at_cpu).zip(million(bill.whole)) {
        Some((cpu, whole)) => format!(
            ": a million good answers cost {cpu} {} for the CPU used, {whole} on whole machines{lacking}",
            bill.currency
        ),
        None => ": there is no price for a million good answers".to_owned(),
    }
}

/// A bill under its heading.
pub(super) fn bill(bill: &Bill) -> Vec<Block> {
    let mut blocks = vec![Block::line("prices", &[&bill.currency, &bill.source, &bill.date])];
    let mut good = format!("{} good answers in {}", count(bill.good), seconds(bill.measured_s));
    if bill.failed > 0 {
        let share = bill.failed as f64 / (bill.failed + bill.good) as f64;
        good += &format!(", {} failed ({})", count(bill.failed), percent(share));
    }
    blocks.push(Block::line("rate", &[&good]));
    for table in [used(bill), by_tier(bill), sums(bill)].into_iter().filter(|table| !table.rows.is_empty()) {
        blocks.extend([Block::Gap, Block::Table(table)]);
    }
    blocks.extend(bill.not_in_sums.iter().map(|says| Block::point(Level::Warning, says)));
    blocks.extend(bill.notes.iter().map(|note| Block::point(Level::Plain, note)));
    let energy = bill.energy.as_ref().map(|of| energy(of, bill));
    blocks.extend(energy.into_iter().flat_map(|table| [Block::Gap, Block::Table(table)]));
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
        let cores = if of.cores_used < 0.005 { "<0.01".to_owned() } else { format!("{:.2}", of.cores_used) };
        let memory = if of.rss_bytes_max > 0 { bytes(of.rss_bytes_max) } else { "-".to_owned() };
        table.row(&of.tier, [machine, count(of.instances), machines, cores, memory]);
    }
    table
}

/// Prices for a million good answers and for a month.
fn by_tier(bill: &Bill) -> Table {
    let head = ["", "million, CPU", "month, CPU", "million, whole", "month, whole"];
    let mut table = Table::new(head).dispensable(&["month, CPU", "million, whole"]).whole_names();
    let sum = if bill.not_in_sums.is_empty() { "sum, no driver" } else { "sum, incomplete" };
    let tiers = bill.tiers.iter().map(|of| (of.tier.as_str(), of.at_cpu, of.whole, of.at_cpu_is_less));
    for (name, at_cpu, whole, is_less) in tiers.chain([(sum, bill.at_cpu, bill.whole, false)]) {
        let two =
            |of: Option<Price>| [of.and_then(|of| of.per_million), of.map(|of| of.per_month)].map(shown);
        let less = |of: String| if is_less && of != "-" { format!("<{of}") } else { of };
        table.row(name, two(at_cpu).map(less).into_iter().chain(two(whole)));
    }
    table
}

fn sums(bill: &Bill) -> Table {
    let rows = [
        ("CPU used", bill.at_cpu),
        ("whole machines", bill.whole),
        ("whole, reserved", bill.reserved),
        ("whole, spot", bill.spot),
    ];
    let what = if bill.not_in_sums.is_empty() { "" } else { "incomplete" };
    prices(what, rows.map(|(name, price)| (name.to_owned(), price)))
}

fn energy(energy: &Energy, bill: &Bill) -> Table {
    let currency = &bill.currency;
    let what = if bill.not_in_sums.is_empty() { "energy" } else { "energy, incomplete" };
    let rows = [
        ("CPU used, Wh".to_owned(), Some(energy.at_cpu_wh)),
        ("whole machines, Wh".to_owned(), energy.whole_wh),
        (format!("CPU used, {currency}"), energy.at_cpu),
        (format!("whole machines, {currency}"), energy.whole),
    ];
    prices(what, rows)
}

/// Prices for all that they are reckoned for; a line for each that is known.
fn prices(what: &str, rows: [(String, Option<Price>); 4]) -> Table {
    let head = [what, "a million", "an hour", "a day", "a month", "a customer's month"];
    let mut table = Table::new(head).dispensable(&["a day", "an hour"]).whole_names();
    for (name, price) in rows {
        let Some(Price { per_million, per_hour, per_day, per_month, per_customer_month }) = price else {
            continue;
        };
        let amounts = [per_million, Some(per_hour), Some(per_day), Some(per_month), per_customer_month];
        table.row(&name, amounts.map(shown));
    }
    table
}

/// What the published experiment had, and what it paid.
fn published(of: &PublishedBill) -> Block {
    let paid = of.usd.map(|usd| {
        let today = of.usd_today.map_or_else(String::new, |usd| format!(", {} in today's", usd.shown()));
        format!("{} US dollars of {}{today}", usd.shown(), of.year)
    });
    Block::line("published", &[&of.what, &paid.unwrap_or_default()])
}
