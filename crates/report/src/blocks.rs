//! A report as a list of blocks: made once, and shown in the terminal ([`text`](crate::text)), as Markdown
//! ([`markdown`](crate::markdown)) and on a page that needs no script ([`still`](crate::still)).
//!
//! A block holds text as it came; whoever shows it removes or escapes what would steer a terminal or be markup.

mod claims;
mod compared;
mod cost;
mod distribution;
mod driver;
mod faults;
mod history;
mod jmeter;
mod ledger;
mod limit;
mod maintenance;
mod parts;
mod percentiles;
mod phases;
mod plan;
mod quick;
mod reproduction;
mod run;
mod script;
mod tables;

use std::path::PathBuf;

use tidemark_limit::{Found, Search};
use tidemark_record::summary::Status;

pub use self::claims::claims;
pub(crate) use self::claims::value;
pub use self::compared::compared;
pub use self::cost::cost;
pub use self::history::history;
pub use self::jmeter::jmeter;
pub(crate) use self::limit::limit_linked;
pub use self::limit::{Link, limit};
pub use self::plan::plan;
pub use self::quick::{Quick, quick};
pub use self::reproduction::reproduction;
pub(crate) use self::run::{closed_loop, drift, good_elsewhere};
pub use self::run::{run, run_in_detail};
use crate::comparison::Claim;
use crate::history::{Line, Trend, sparkline};
use crate::jmeter::Series;
use crate::table;
use crate::units::{compact, count, three_digits};

/// What a text is worth: its colour or its mark.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Level {
    Plain,
    Strong,
    Quiet,
    Good,
    Warning,
    /// Neither good nor bad: nobody knows.
    Unsure,
    Bad,
}

/// A verdict in a word.
pub(crate) fn word(status: Status) -> &'static str {
    match status {
        Status::Pass => "pass",
        Status::Fail => "fail",
        Status::Invalid => "invalid",
    }
}

/// What a verdict is worth.
fn level(status: Status) -> Level {
    match status {
        Status::Pass => Level::Good,
        Status::Fail => Level::Bad,
        Status::Invalid => Level::Warning,
    }
}

/// A part of a report.
#[derive(Debug, Clone)]
pub enum Block {
    /// What it is about, and what came of it: Markdown's heading. A terminal shows none, and a page has its own.
    Title(Level, String),
    /// A run's verdict, with what is to be said of it at once; one that quotes a log has its lines.
    Verdict(Status, Vec<(Level, String)>),
    /// The sentence that says it all.
    Lead(Level, String),
    /// What is said below such a sentence.
    Remark(Level, String),
    /// A heading of what follows.
    Heading(String),
    /// A name and what belongs to it; without a name it goes on with the line before.
    Line(String, Vec<(Level, String)>),
    /// A point of a list, with parts below it.
    Point(Level, String, Vec<String>),
    /// Objectives that were met or missed: what was asked for, and what was measured.
    Checks(Vec<(Level, String, String)>),
    /// What went wrong, how often, and more of it.
    Tally(String, u64, String),
    /// An example below a point or a tally: when it was, if that is known, and what.
    Example(String, String),
    /// A text under a heading.
    Paragraph(Level, String),
    /// A table.
    Table(Table),
    /// The same tables in several layouts, the widest first: a terminal shows the first that it has room for.
    Layouts(Vec<Vec<Table>>),
    /// What each of some is worth, and why.
    Worth(Vec<(String, Status, String)>),
    /// A histogram.
    Bars(Vec<Bar>),
    /// A figure over the runs of a history.
    Trend(Box<Line>, Trend),
    /// The rounds of a comparison, which only a page draws.
    Rounds(Vec<Claim>),
    /// The trials of a search: a curve.
    Curve(Box<Curve>),
    /// Tiers of a system: how much comes to the first, and what stands behind it.
    Tiers(String, Vec<Tier>),
    /// Lines over time.
    Chart(Chart),
    /// What is of interest to few. Markdown folds it.
    Folded(String, Vec<Block>),
    /// A link of a page: its text, and where it leads.
    Link(String, String),
    /// Where the files are: what they are, and their directory.
    Place(&'static str, PathBuf),
    /// An empty line of a terminal.
    Gap,
}

impl Block {
    /// A line of parts that are as good as each other; parts without text are left out.
    fn line(name: &str, parts: &[&str]) -> Block {
        Block::Line(name.into(), parts.iter().map(|part| (Level::Plain, (*part).to_owned())).collect())
    }

    /// A point of a list.
    fn point(level: Level, text: impl Into<String>) -> Block {
        Block::Point(level, text.into(), Vec::new())
    }

    fn heading(title: &str) -> Block {
        Block::Heading(title.into())
    }
}

/// One bar: its edges, how much is in it, and which share of all that is.
#[derive(Debug, Clone)]
#[allow(missing_docs)]
pub struct Bar {
    pub from: String,
    pub to: String,
    pub count: u64,
    pub share: f64,
}

/// The trials of a search, what was found by them, and the page of each trial, as far as there is one.
#[derive(Debug, Clone)]
#[allow(missing_docs)]
pub struct Curve {
    pub search: Search,
    pub found: Found,
    pub links: Vec<Option<String>>,
}

/// A tier as a box: its name and number of instances, and what is told of them.
#[derive(Debug, Clone)]
#[allow(missing_docs)]
pub struct Tier {
    pub name: String,
    pub about: String,
}

/// Lines over time, and the top of their scale where that does not follow from the values.
#[derive(Debug, Clone)]
#[allow(missing_docs)]
pub struct Chart {
    pub caption: String,
    pub most: Option<f64>,
    pub lines: Vec<Series>,
}

impl Chart {
    /// Each line with its last bars, so many at most; an arrow is a value without an end.
    pub(crate) fn sparklines(&self, most: usize, ascii: bool) -> impl Iterator<Item = (&str, String)> {
        self.lines.iter().map(move |line| {
            let shown = |value: &f64| value.is_finite().then(|| value.min(self.most.unwrap_or(f64::MAX)));
            let values: Vec<Option<f64>> = line.values.iter().map(shown).collect();
            let bars = sparkline(&values, &[], most, ascii);
            (line.name.as_str(), bars.replace(' ', if ascii { "^" } else { "↑" }))
        })
    }
}

/// A cell of a table.
#[derive(Debug, Clone)]
pub enum Cell {
    /// A text.
    Text(String),
    /// A word with what it is worth.
    Word(Level, String),
    /// A count, written out where there is room.
    Count(u64),
    /// A rate, the same.
    Rate(f64),
}

impl Cell {
    /// Whether it says that there is nothing.
    fn is_dash(&self) -> bool {
        matches!(self, Cell::Text(text) | Cell::Word(_, text) if text == "-")
    }

    /// As text, in much room or in little.
    pub(crate) fn text(&self, wide: bool) -> String {
        match self {
            Cell::Text(text) | Cell::Word(_, text) => text.clone(),
            Cell::Count(value) if wide => count(*value),
            Cell::Count(value) => compact(*value as f64),
            Cell::Rate(per_s) if wide || *per_s < 999.5 => three_digits(*per_s),
            Cell::Rate(per_s) => compact(*per_s),
        }
    }
}

impl From<String> for Cell {
    fn from(text: String) -> Cell {
        Cell::Text(text)
    }
}

impl From<&str> for Cell {
    fn from(text: &str) -> Cell {
        Cell::Text(text.into())
    }
}

/// A table whose first column names its rows.
#[derive(Debug, Clone)]
pub struct Table {
    pub(crate) head: Vec<String>,
    pub(crate) rows: Vec<Vec<Cell>>,
    dispensable: Vec<&'static str>,
    whole_names: bool,
}

impl Table {
    fn new<S: ToString>(head: impl IntoIterator<Item = S>) -> Table {
        let head = head.into_iter().map(|name| name.to_string()).collect();
        Table { head, rows: Vec::new(), dispensable: Vec::new(), whole_names: false }
    }

    /// Columns that a narrow terminal leaves out, the first first.
    fn dispensable(self, dispensable: &[&'static str]) -> Table {
        Table { dispensable: dispensable.to_vec(), ..self }
    }

    /// Whether a narrow terminal leaves columns out before it cuts names.
    fn whole_names(self) -> Table {
        Table { whole_names: true, ..self }
    }

    /// The columns that are shown: those in which something is told, or all where none is.
    pub(crate) fn columns(&self) -> Vec<usize> {
        let is_told = |column: &usize| *column == 0 || self.rows.iter().any(|row| !row[*column].is_dash());
        let told: Vec<usize> = (0..self.head.len()).filter(is_told).collect();
        if told.len() > 1 { told } else { (0..self.head.len()).collect() }
    }

    /// Whether a cell that is shown is a dash.
    fn has_dash(&self) -> bool {
        let columns = self.columns();
        self.rows.iter().any(|row| columns.iter().any(|column| row[*column].is_dash()))
    }

    fn row(&mut self, name: &str, cells: impl IntoIterator<Item = impl Into<Cell>>) {
        self.rows.push(std::iter::once(Cell::from(name)).chain(cells.into_iter().map(Into::into)).collect());
    }

    /// The same for a terminal, with so many rows at most.
    pub(crate) fn aligned(&self, wide: bool, most: usize) -> table::Table {
        let columns = self.columns();
        let head: Vec<String> = columns.iter().map(|at| crate::text::clean(&self.head[*at])).collect();
        let head: Vec<&str> = head.iter().map(String::as_str).collect();
        let mut table = table::Table::new(&head).dispensable(&self.dispensable);
        if self.whole_names {
            table = table.whole_names();
        }
        for row in self.rows.iter().take(most) {
            table.row(columns.iter().map(|at| crate::text::clean(&row[*at].text(wide))).collect());
        }
        table
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::{Block, Table};
    use crate::table::length;
    use crate::text::{Style, render};

    #[test]
    fn a_column_of_dashes_alone_is_left_out_everywhere() {
        let mut table = Table::new(["", "p50", "p99", "max"]);
        table.row("a", ["1", "-", "-"]);
        assert_eq!(table.columns(), [0, 1]);
        assert!(!table.has_dash());
        table.row("b", ["-", "-", "3"]);
        assert_eq!(table.columns(), [0, 1, 3]);
        assert!(table.has_dash());
        let blocks = [Block::Table(table)];
        assert_eq!(shown(&blocks, 80).lines().next(), Some("      p50   max"));
        assert_eq!(crate::markdown::render(&blocks).lines().next(), Some("| | p50 | max |"));
        // of nothing at all the heads say what there is none of
        let mut table = Table::new(["", "p50", "p99"]);
        table.row("a", ["-", "-"]);
        assert_eq!(table.columns(), [0, 1, 2]);
    }

    /// A report in a terminal of a width, without colours.
    pub(crate) fn shown(blocks: &[Block], width: usize) -> String {
        render(blocks, Style { width, colour: false, ascii: false })
    }

    /// The words of a report in a terminal of a width, which no line is longer than; places may be.
    pub(crate) fn fitted(blocks: &[Block], width: usize) -> String {
        let text = shown(blocks, width);
        assert_eq!(text.lines().find(|line| length(line) > width), None, "{width}: {text}");
        assert!(render(blocks, Style { width, colour: true, ascii: true }).is_ascii(), "{text}");
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    }
}
