//! What a script measured itself: checks and metrics, as its own tool means them.

use tidemark_record::{ScriptCheck, ScriptFigures, ScriptMetric};

use super::tables::shown;
use super::{Block, Cell, Level, Table};
use crate::units::percent;

pub(super) fn blocks(of: &ScriptFigures) -> Vec<Block> {
    let mut blocks = shown("Checks of the script", checks(&of.checks));
    blocks.extend(shown("Metrics of the script", metrics(&of.metrics)));
    if of.exceptions > 0 {
        let text = format!("{} of {} iterations ended with an exception", of.exceptions, of.iterations);
        blocks.extend(super::run::under(
            "Iterations of the script",
            Some(Block::Paragraph(Level::Warning, text)),
        ));
    }
    blocks
}

fn checks(all: &[ScriptCheck]) -> Table {
    let mut table = Table::new(["", "share", "held", "failed"]).whole_names();
    for of in all {
        let group = of.group.trim_start_matches("::").replace("::", " › ");
        let name = if group.is_empty() { of.name.clone() } else { format!("{group} › {}", of.name) };
        let share = of.passes as f64 / (of.passes + of.fails).max(1) as f64;
        table.row(&name, [percent(share).into(), Cell::Count(of.passes), Cell::Count(of.fails)]);
    }
    table
}

fn metrics(all: &[ScriptMetric]) -> Table {
    let mut table = Table::new(["", "figures"]).whole_names();
    for of in all.iter().filter(|of| of.own) {
        let told = of.figures.iter().map(|figure| {
            let unit = if is_ms(of, &figure.name) { "ms" } else { "" };
            format!("{} {}{unit}", figure.name, number(figure.value))
        });
        table.row(&of.name, [Cell::from(told.collect::<Vec<_>>().join(" · "))]);
    }
    table
}

/// Whether a figure is in milliseconds: those of a gauge or a trend that measures time, but for the count.
fn is_ms(of: &ScriptMetric, figure: &str) -> bool {
    of.is_time && matches!(of.kind.as_str(), "gauge" | "trend") && figure != "count"
}

/// A figure with three digits.
fn number(value: f64) -> String {
    if value == 0.0 || (value.fract() == 0.0 && value.abs() < 1e15) {
        return format!("{value:.0}");
    }
    let digits = (2 - value.abs().log10().floor() as i32).clamp(0, 6) as usize;
    format!("{value:.digits$}")
}
