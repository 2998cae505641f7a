//! Tables of what a run was made of: targets, labels, groups, phases, and what it measured itself.

use std::collections::BTreeMap;

use tidemark_record::summary::{Latency, Summary};

use super::run::under;
use super::{Block, Cell, Table};
use crate::own;
use crate::units::{percent, time};

/// Five times of those that had an answer.
pub(super) fn times(of: &Latency) -> impl Iterator<Item = Cell> {
    [of.p50, of.p90, of.p99, of.p999, of.max].into_iter().map(|us| time(us).into())
}

fn failed(errors: &BTreeMap<String, u64>) -> [Cell; 1] {
    [Cell::Count(errors.values().sum())]
}

/// A table under its heading; nothing where it has no row.
pub(super) fn shown(title: &str, table: Table) -> Vec<Block> {
    under(title, (!table.rows.is_empty()).then_some(Block::Table(table)))
}

pub(super) fn targets(summary: &Summary) -> Vec<Block> {
    let head = ["", "count", "share", "per s", "p50", "p99", "failed"];
    let mut table = Table::new(head).dispensable(&["share", "per s"]);
    for of in &summary.targets {
        let counted = [Cell::Count(of.requests), percent(of.share).into(), Cell::Rate(of.achieved_per_s)];
        let times = [of.response_time_us.p50, of.response_time_us.p99].map(|us| Cell::from(time(us)));
        table.row(&of.target, counted.into_iter().chain(times).chain(failed(&of.errors)));
    }
    shown("By target", table)
}

pub(super) fn labels(summary: &Summary) -> Vec<Block> {
    let head = ["", "count", "share", "per s", "p50", "p90", "p99", "p99.9", "max", "failed"];
    let mut table = Table::new(head).dispensable(&["share", "p99.9", "p90", "per s", "max"]);
    for of in &summary.steps {
        let counted = [Cell::Count(of.requests), percent(of.share).into(), Cell::Rate(of.achieved_per_s)];
        let times = times(&of.response_time_us);
        table.row(&of.label, counted.into_iter().chain(times).chain(failed(&of.errors)));
    }
    shown("By label", table)
}

/// Several steps together.
pub(super) fn groups(summary: &Summary) -> Vec<Block> {
    let head = ["", "count", "per s", "p50", "p90", "p99", "p99.9", "max", "failed"];
    let mut table = Table::new(head).dispensable(&["p99.9", "p90", "per s", "max"]);
    for of in &summary.groups {
        let counted = [Cell::Count(of.count), Cell::Rate(of.achieved_per_s)];
        let times = times(&of.response_time_us);
        table.row(&of.group, counted.into_iter().chain(times).chain(failed(&of.errors)));
    }
    shown("By group", table)
}

/// What the scenario measured itself.
pub(super) fn own_metrics(summary: &Summary) -> Vec<Block> {
    let without = summary.metrics.iter().any(|of| of.no_number > 0).then_some(own::NO_NUMBER);
    let head = std::iter::once("").chain(own::HEAD).chain(without);
    let mut table = Table::new(head).dispensable(&["sum", "p90", "count", "mean"]);
    for of in &summary.metrics {
        let figures = own::figures(of).map(Cell::from).into_iter();
        table.row(&own::name(of), figures.chain(without.map(|_| Cell::Count(of.no_number))));
    }
    shown("Own metrics", table)
}

/// Ratios of what the scenario counted.
pub(super) fn ratios(summary: &Summary) -> Vec<Block> {
    let mut table = Table::new(["", "ratio", "of", "per"]).dispensable(&["of", "per"]).whole_names();
    for of in &summary.ratios {
        table.row(&of.name, [own::ratio(of), of.of.join(" + "), of.per.join(" + ")].map(Cell::from));
    }
    shown("Ratios", table)
}
