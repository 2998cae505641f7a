//! A cube as a table for a person, as CSV, and as JSON.

use std::collections::BTreeMap;

use serde_json::{Map, Number, json};

use super::{Cube, Dimension, Measure, Measured, Value};
use crate::csv::quoted;
use crate::table::{Table, length, pad_right};
use crate::text::clean;
use crate::units::{count, duration, three_digits, trim_zeros};

/// What is measured of a cell; nothing where there is no cell.
type Shown = Option<(Measure, Measured)>;

/// Columns and rows of text: one row for each cell, or for each with one dimension across.
struct Grid {
    head: Vec<String>,
    rows: Vec<(Vec<String>, Vec<Shown>)>,
    /// How many columns are dimensions.
    dimensions: usize,
}

/// The values of `across` beside each other, for each measure.
fn grid(cube: &Cube, measures: &[Measure], across: Option<Dimension>, column: fn(Measure) -> String) -> Grid {
    let place = across.and_then(|across| cube.by.iter().position(|by| *by == across));
    let mut head: Vec<String> =
        (0..).zip(&cube.by).filter(|(n, _)| Some(*n) != place).map(|(_, by)| by.name().into()).collect();
    let dimensions = head.len();
    let Some(place) = place else {
        head.extend(measures.iter().map(|measure| column(*measure)));
        let cells = |of: Measured| measures.iter().map(|measure| Some((*measure, of))).collect();
        let row = |row: &super::Row| (row.values.iter().map(Value::to_string).collect(), cells(row.measured));
        return Grid { head, rows: cube.rows.iter().map(row).collect(), dimensions };
    };
    let mut columns: Vec<&Value> = cube.rows.iter().map(|row| &row.values[place]).collect();
    columns.sort();
    columns.dedup();
    for value in &columns {
        for measure in measures {
            // one measure needs no name where only values are compared
            head.push(if measures.len() == 1 {
                value.to_string()
            } else {
                format!("{value} {}", column(*measure))
            });
        }
    }
    let mut rows: BTreeMap<Vec<Value>, Vec<Shown>> = BTreeMap::new();
    for row in &cube.rows {
        let mut values = row.values.clone();
        let value = values.remove(place);
        let cells = rows.entry(values).or_insert_with(|| vec![None; columns.len() * measures.len()]);
        let Some(at) = columns.iter().position(|column| **column == value) else { continue };
        for (n, measure) in measures.iter().enumerate() {
            cells[at * measures.len() + n] = Some((*measure, row.measured));
        }
    }
    let text = |(values, cells): (Vec<Value>, _)| (values.iter().map(Value::to_string).collect(), cells);
    Grid { head, rows: rows.into_iter().map(text).collect(), dimensions }
}

/// A dash where it is not reached.
fn for_persons((measure, measured): (Measure, Measured)) -> String {
    let Some(value) = measure.of(&measured) else { return "-".into() };
    match measure {
        Measure::Count | Measure::Errors => count(value as u64),
        Measure::Throughput => format!("{}/s", three_digits(value)),
        // a tenth of what the clock tells is enough of a mean
        _ if value < 1.0 => duration((value * 10.0).round() / 10.0),
        _ => duration(value),
    }
}

/// Milliseconds, and rates, with at most three decimals; nothing where it is not reached.
fn for_programs((measure, measured): (Measure, Measured)) -> String {
    let Some(value) = measure.of(&measured) else { return String::new() };
    match measure {
        Measure::Count | Measure::Errors => format!("{value:.0}"),
        Measure::Throughput => trim_zeros(&format!("{value:.3}")).into(),
        _ => trim_zeros(&format!("{:.3}", value / 1e3)).into(),
    }
}

/// Aligned columns, no line wider than `width` if the numbers leave room: measures after the first are left out before names
/// are cut. With a dimension `across`, its values are columns, and all are there.
pub fn table(
    cube: &Cube,
    measures: &[Measure],
    across: Option<Dimension>,
    width: usize,
    ellipsis: &str,
) -> Vec<String> {
    let mut grid = grid(cube, measures, across, |measure| measure.name().into());
    for text in grid.head.iter_mut().chain(grid.rows.iter_mut().flat_map(|(values, _)| values)) {
        *text = clean(text);
    }
    // the dimensions stand in one column of names, aligned among themselves
    let dimensions: Vec<usize> = (0..grid.dimensions)
        .map(|n| {
            let of_rows = grid.rows.iter().map(|(values, _)| length(&values[n]));
            of_rows.chain([length(&grid.head[n])]).max().unwrap_or(0)
        })
        .collect();
    let names = |texts: &[String]| {
        let padded = texts.iter().zip(&dimensions).map(|(text, width)| pad_right(text, *width));
        padded.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };
    let names_head = names(&grid.head[..grid.dimensions]);
    let head: Vec<&str> = [names_head.as_str()]
        .into_iter()
        .chain(grid.head[grid.dimensions..].iter().map(String::as_str))
        .collect();
    let may_go = [
        Measure::Mode,
        Measure::Mean,
        Measure::P99,
        Measure::Throughput,
        Measure::Median,
        Measure::Errors,
        Measure::P95,
    ];
    let may_go: Vec<&str> = may_go
        .into_iter()
        .filter(|measure| measures.first() != Some(measure) && across.is_none())
        .map(Measure::name)
        .collect();
    let mut table = Table::new(&head).dispensable(&may_go).whole_names();
    for (values, cells) in &grid.rows {
        let cells = cells.iter().map(|cell| cell.map_or("-".into(), for_persons));
        table.row([names(values)].into_iter().chain(cells).collect());
    }
    table.lines(width, ellipsis)
}

/// A head line and a line for each row; durations in milliseconds, an empty field where there is nothing.
pub fn csv(cube: &Cube, measures: &[Measure], across: Option<Dimension>) -> String {
    let grid = grid(cube, measures, across, Measure::column);
    let mut out = grid.head.iter().map(|name| quoted(name)).collect::<Vec<_>>().join(",") + "\n";
    for (values, cells) in &grid.rows {
        let values = values.iter().map(|value| quoted(value));
        let cells = cells.iter().map(|cell| cell.map_or(String::new(), for_programs));
        out += &(values.chain(cells).collect::<Vec<_>>().join(",") + "\n");
    }
    out
}

/// A list of objects, one for each cell.
pub fn json(cube: &Cube, measures: &[Measure]) -> String {
    let rows: Vec<_> = cube
        .rows
        .iter()
        .map(|row| {
            let mut object = Map::new();
            for (by, value) in cube.by.iter().zip(&row.values) {
                let value = match value {
                    Value::Number(number) => json!(number),
                    Value::Text(_) | Value::Date(_) => json!(value.to_string()),
                    Value::All => json!(null),
                };
                object.insert(by.name().into(), value);
            }
            for measure in measures {
                let value = for_programs((*measure, row.measured));
                let value =
                    serde_json::from_str::<Number>(&value).map_or(json!(null), |number| json!(number));
                object.insert(measure.column(), value);
            }
            object
        })
        .collect();
    serde_json::to_string_pretty(&rows).expect("rows of texts and numbers are JSON") + "\n"
}
