//! The published experiments, repeated.

use tidemark_record::bill::Amount;
use tidemark_record::summary::Status;

use super::run::under;
use super::{Block, Cell, Level, Table, level, word};
use crate::reproduction::{Beside, Repeated, Reproduction};
use crate::units::{bytes, count, duration, plural, three_digits};

/// What of an experiment's trouble is shown.
const TROUBLE_MAX: usize = 6;

/// The report: what failed, all in a table, then each experiment.
pub fn reproduction(all: &Reproduction) -> Vec<Block> {
    let worst = level(all.status());
    let mut blocks = vec![
        Block::Title(worst, "The published experiments, repeated".into()),
        Block::Lead(worst, says(all)),
    ];
    for repeated in all.experiments.iter().filter(|repeated| repeated.status != Some(Status::Pass)) {
        let why = repeated.trouble.first().map_or("", String::as_str);
        let what = repeated.status.map_or("no run", word);
        blocks.push(Block::point(
            level(repeated.status.unwrap_or(Status::Invalid)),
            format!("{}: {what}: {why}", repeated.title),
        ));
    }
    blocks.extend([Block::Gap, Block::Table(beside(all))]);
    if let Some(of) = &all.machine {
        let cores = plural(of.cores, "core");
        let parts =
            [of.cpu_model.as_str(), &cores, &bytes(of.memory_bytes), &of.kernel, day(&all.started_at)];
        blocks.push(Block::line("machine", &parts));
    }
    let length = if all.full { "as published" } else { "short; --full has the published lengths" };
    blocks.push(Block::line("length", &[length]));
    let mut says =
        "÷ published: our rate divided by the published one. A machine, a core: the same for each machine of the system, \
         without those that made the load, and for each core. Ours is one machine."
            .to_owned();
    for of in all.experiments.iter().filter(|of| has_one_verdict(of)) {
        says += &format!(" {}: its rows have the verdict of their run.", of.title);
    }
    blocks.push(Block::Paragraph(Level::Quiet, says));
    blocks.extend(all.experiments.iter().flat_map(one));
    blocks.push(Block::line("runs", &[&all.run_dir]));
    blocks
}

/// Whether several of its rows stand for one run.
fn has_one_verdict(of: &Repeated) -> bool {
    of.figures.iter().filter(|figure| figure.per_s.is_some() && figure.status.is_none()).count() > 1
}

/// The day of a time of RFC 3339.
fn day(time: &str) -> &str {
    time.split('T').next().unwrap_or_default()
}

/// How many there are of each verdict.
fn says(all: &Reproduction) -> String {
    let of = |status: Option<Status>| all.experiments.iter().filter(|one| one.status == status).count();
    let each = [
        (of(Some(Status::Fail)), "failed"),
        (of(Some(Status::Invalid)), "invalid"),
        (of(None), "without a run"),
        (of(Some(Status::Pass)), "passed"),
    ];
    let parts: Vec<String> =
        each.iter().filter(|(many, _)| *many > 0).map(|(many, what)| format!("{many} {what}")).collect();
    match all.experiments.len() {
        1 => format!("1 experiment: {}", parts.join(", ")),
        many => format!("{many} experiments: {}", parts.join(", ")),
    }
}

fn beside(all: &Reproduction) -> Table {
    let head = [
        "",
        "verdict",
        "published/s",
        "here/s",
        "p50",
        "p99",
        "cores used",
        "÷ published",
        "a machine",
        "a core",
    ];
    let dispensable = ["cores used", "a core", "p50", "p99"];
    let mut table = Table::new(head).dispensable(&dispensable).whole_names();
    for repeated in &all.experiments {
        for of in &repeated.figures {
            // a side that was left out has no verdict of those that ran
            let status = of.status.or(repeated.status).filter(|_| of.per_s.is_some());
            let status = status.map_or((Level::Unsure, "no run"), |of| (level(of), word(of)));
            table.row(&of.name, [Cell::Word(status.0, status.1.into())].into_iter().chain(cells(of)));
        }
    }
    table
}

fn cells(of: &Beside) -> Vec<Cell> {
    let dash = || Cell::from("-");
    let time = |us: Option<u64>| us.map_or_else(dash, |us| duration(us as f64).into());
    let number = |of: Option<f64>| of.map_or_else(dash, |of| three_digits(of).into());
    vec![
        Cell::Rate(of.published_per_s),
        of.per_s.map_or_else(dash, Cell::Rate),
        time(of.p50_us),
        time(of.p99_us),
        number(of.cores_used),
        number(of.ratio),
        number(of.ratio_per_server),
        number(of.ratio_per_core),
    ]
}

fn one(of: &Repeated) -> Vec<Block> {
    let mut blocks = Vec::new();
    if let Some(status) = of.status {
        blocks.push(Block::Line("here".into(), vec![(level(status), word(status).into())]));
        blocks.push(Block::Link("its report".into(), format!("{}/report.html", of.scenario)));
    }
    blocks.push(Block::line("published", &[&of.published_machines, &of.year.to_string()]));
    if let Some(servers) = of.published_servers.filter(|servers| *servers > 1) {
        let says = format!("÷ published × {servers}, the machines that did not make the load");
        blocks.push(Block::line("a machine", &[&says]));
    }
    let times = |of: &Beside| match of.published_times.as_str() {
        "" => None,
        times => Some(format!("{}: {times}", of.name)),
    };
    let times: Vec<String> = of.figures.iter().filter_map(times).collect();
    if !times.is_empty() {
        blocks.push(Block::line("its times", &times.iter().map(String::as_str).collect::<Vec<_>>()));
    }
    let bill = of.published_usd.map_or("not known".to_owned(), |usd| format!("{usd} USD in all"));
    blocks.push(Block::line("its bill", &[&bill]));
    if let Some((per_million, currency)) = of.per_million.zip(of.currency.as_ref()) {
        let price =
            format!("{} {currency} for a million good answers, at the CPU used", Amount::shown(per_million));
        blocks.push(Block::line("bill here", &[&price]));
    }
    if let Some(durability) = &of.durability {
        blocks.push(Block::line("durability", &[durability]));
    }
    if let Some((found, lost)) = of.found.zip(of.lost) {
        let parts = [format!("{} found", count(found)), format!("{} lost", count(lost))];
        blocks.push(Block::line("acknowledged", &parts.each_ref().map(String::as_str)));
    }
    // what was left out of one that passed is no praise
    let status = of.status.filter(|status| *status != Status::Pass).unwrap_or(Status::Invalid);
    blocks.extend(of.trouble.iter().take(TROUBLE_MAX).map(|why| Block::point(level(status), why)));
    if let Some(more) = of.trouble.len().checked_sub(TROUBLE_MAX).filter(|more| *more > 0) {
        blocks.push(Block::point(Level::Quiet, format!("{more} more, in its report")));
    }
    blocks.extend(of.differs.iter().map(|says| Block::point(Level::Plain, says)));
    under(&of.title, blocks)
}
