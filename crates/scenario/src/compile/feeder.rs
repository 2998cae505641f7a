//! Feeders: rows from a CSV file or from the scenario itself.

mod csv;

use std::path::Path;

use super::scope::SharedNames;
use crate::grammar::record::Kind;
use crate::language::{self, Order};
use crate::plan::Feeder;
use crate::reader::Reader;
use crate::units::Size;
use crate::yaml::Node;

/// Most rows of one feeder.
const ROWS_MAX: usize = 10_000_000;
/// Most memory that the rows of all feeders take, bytes.
const ROWS_BYTES_MAX: u64 = 2 << 30;
/// What a row takes beside its cells, and a cell beside its text, bytes.
const ROW_BYTES: u64 = 48;
const CELL_BYTES: u64 = 32;
/// Most digits of a number: those of the largest.
const DIGITS_MAX: u64 = 20;

/// Reads all feeders.
pub(super) fn read(node: Option<&Node>, base: &Path, reader: &Reader<'_>) -> SharedNames {
    let mut shared = SharedNames::default();
    // memory that is left for rows
    let mut room = ROWS_BYTES_MAX;
    for (name_node, node) in node.map(Node::entries).unwrap_or_default() {
        let Some(name) = name_node.text() else { continue };
        let Some(said) = language::Feeder::read(node, reader) else { continue };
        let rows = if let Some(values) = said.values.value {
            let cell = |value: &Node| Some(vec![reader.text(value)?.into_boxed_str()]);
            Some((vec![name.to_owned()], values.items().iter().filter_map(cell).collect()))
        } else if let Some(rows) = said.rows.value {
            from_rows(rows, reader)
        } else if said.from.is_there() {
            from_numbers(&said, room, reader).map(|rows| (vec![name.to_owned()], rows))
        } else {
            csv::read(&said, base, room, reader)
        };
        csv::check_keys(&said, reader);
        let held: u64 = rows
            .iter()
            .flat_map(|(_, rows)| rows)
            .map(|row| bytes_of(row.iter().map(|cell| cell.len())))
            .sum();
        if held > room {
            reader.sink.error(name_node, too_many(held));
        }
        room = room.saturating_sub(held);
        let is_random = said.order.value == Some(Order::Random);
        let held = said.held.value == Some(true);
        if held && is_random {
            let message = "rows that are held are taken in turn; leave out \"order: random\", or \"held\"";
            said.order.error(reader.sink, message);
        }
        // A feeder that could not be read is kept, so that its users are not reported, too; nor is a name that may be of a column.
        shared.lacks_columns |= rows.is_none();
        let (columns, rows) = rows.unwrap_or_else(|| (vec![name.to_owned()], vec![vec!["".into()]]));
        shared.feeders.push(Feeder { name: name.to_owned(), columns, rows, held });
        shared.random.push(is_random);
    }
    shared
}

type Rows = Vec<Vec<Box<str>>>;

/// The memory of a row whose cells have so many bytes.
fn bytes_of(cells: impl Iterator<Item = usize>) -> u64 {
    cells.fold(ROW_BYTES, |bytes, cell| bytes + CELL_BYTES + cell as u64)
}

fn too_many(held: u64) -> String {
    format!(
        "its rows hold {}, and all feeders together may hold {}; use fewer rows",
        Size(held),
        Size(ROWS_BYTES_MAX)
    )
}

fn from_numbers(said: &language::Feeder<'_>, room: u64, reader: &Reader<'_>) -> Option<Rows> {
    let sink = reader.sink;
    if !said.to.is_there() {
        said.from.error(sink, "numbers need an end, too; add `to`");
        return None;
    }
    let (first, last) = said.from.value.zip(said.to.value)?;
    if last < first {
        said.to.error(sink, format!("numbers from {first} on cannot end at {last}"));
        return None;
    }
    if last - first >= ROWS_MAX as u64 {
        said.to.error(sink, format!("these are more than {ROWS_MAX} numbers"));
        return None;
    }
    let width = said.digits.value.unwrap_or(1);
    if width > DIGITS_MAX {
        said.digits.error(sink, format!("a number has at most {DIGITS_MAX} digits"));
        return None;
    }
    let width = width as usize;
    let digits = last.checked_ilog10().map_or(1, |log| log as usize + 1);
    let held = (last - first + 1) * bytes_of([width.max(digits)].into_iter());
    if held > room {
        said.to.error(sink, too_many(held));
        return None;
    }
    Some((first..=last).map(|number| vec![format!("{number:0width$}").into_boxed_str()]).collect())
}

fn from_rows(node: &Node, reader: &Reader<'_>) -> Option<(Vec<String>, Rows)> {
    let columns: Vec<String> =
        node.items().first()?.entries().iter().filter_map(|(key, _)| key.text().map(str::to_owned)).collect();
    if columns.is_empty() {
        reader.sink.error(node, "the rows of a feeder need at least one column");
        return None;
    }
    let mut rows = Rows::new();
    for row in node.items() {
        if let Some((extra, _)) =
            row.entries().iter().find(|(key, _)| !columns.iter().any(|c| Some(c.as_str()) == key.text()))
        {
            let name = extra.text().unwrap_or_default();
            reader
                .sink
                .error(extra, format!("the first row has no column \"{name}\"; all rows have the same"));
        }
        let mut cells = Vec::new();
        for column in &columns {
            match row.get(column) {
                Some(value) => cells.push(reader.text(value).unwrap_or_default().into_boxed_str()),
                None => reader.sink.error(row, format!("this row lacks the column \"{column}\"")),
            }
        }
        rows.push(cells);
    }
    Some((columns, rows))
}
