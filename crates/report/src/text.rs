//! The terminal: text of a width, with or without colours.

use std::path::Path;

use anstyle::{AnsiColor, Style as Paint};
use tidemark_record::Run;
use tidemark_record::summary::Status;

use crate::blocks::{self, Bar, Block, Curve, Level, Tier, word};
use crate::history::{Trend, sparkline};
use crate::quote::Quote;
use crate::table::{Table, cut, length, pad_right, wrap_parts};
pub use crate::table::{wrap, wrap_whole};
use crate::units::{count, more_than, percent};

/// Width from which numbers are written out.
const WIDE: usize = 100;
/// Narrowest width that is laid out for.
const NARROWEST: usize = 45;
/// Widest: longer lines are hard to follow.
const WIDEST: usize = 120;
/// Indentation of everything under a heading.
const INDENT: usize = 2;
/// Width of the words that name a line.
const NAME: usize = 15;
/// Columns of what went wrong, and of how often.
const WRONG: usize = 10;
const OFTEN: usize = 9;
/// Columns of the time of an example, and lines of what it says.
const EXAMPLE_AT: usize = 10;
const EXAMPLE_LINES: usize = 3;
/// Last lines of a log that is quoted; all are in the run directory.
const LOG_LINES: usize = 8;
/// Columns of the longest bar, where there is room, and of the share behind it.
const BAR_COLUMNS: usize = 36;
const SHARE: usize = 8;
/// Least room for the row of bars of a trend.
const TREND_MIN: usize = 8;
/// Rows of a curve.
const CURVE_ROWS: usize = 14;
/// Most rows of a table of what is of interest to few; the rest is in `--json`.
const FOLDED_ROWS: usize = 100;

/// How the text is laid out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Style {
    /// Columns of the terminal.
    pub width: usize,
    /// With ANSI colours. Whoever prints through a stream that removes them where they are not wanted leaves it on.
    pub colour: bool,
    /// Without any character beyond ASCII.
    pub ascii: bool,
}

impl Default for Style {
    fn default() -> Self {
        Style { width: 80, colour: true, ascii: false }
    }
}

/// What a person wants to know of a run, in one or two screens.
pub fn summary(run: &Run, style: Style) -> String {
    render(&blocks::run(run), style)
}

/// A report for a terminal.
pub fn render(blocks: &[Block], style: Style) -> String {
    let mut text = Text::new(style);
    blocks.iter().for_each(|block| text.block(block, usize::MAX));
    text.out
}

const GOOD: Paint = AnsiColor::Green.on_default().bold();
const BAD: Paint = AnsiColor::Red.on_default().bold();
const WARNING: Paint = AnsiColor::Yellow.on_default().bold();
const HEADING: Paint = Paint::new().bold();
const QUIET: Paint = Paint::new().dimmed();

impl Level {
    fn paint(self) -> Paint {
        match self {
            Level::Plain => Paint::new(),
            Level::Strong => HEADING,
            Level::Quiet => QUIET,
            Level::Good => GOOD,
            Level::Warning | Level::Unsure => WARNING,
            Level::Bad => BAD,
        }
    }

    /// What stands before a point.
    pub(crate) fn mark(self) -> &'static str {
        match self {
            Level::Plain | Level::Strong | Level::Quiet => "-",
            Level::Good => "✓",
            Level::Warning => "!",
            Level::Unsure => "?",
            Level::Bad => "✗",
        }
    }
}

/// The text as it grows, and how it is laid out.
struct Text {
    out: String,
    style: Style,
    width: usize,
}

impl Text {
    fn new(style: Style) -> Text {
        Text { out: String::new(), style, width: style.width.clamp(NARROWEST, WIDEST) }
    }

    /// A block; its tables have so many rows at most.
    fn block(&mut self, block: &Block, rows: usize) {
        match block {
            Block::Title(..) | Block::Rounds(_) => {}
            Block::Verdict(status, says) => self.verdict(*status, says),
            Block::Lead(level, text) => self.wrapped(level.paint(), text, 0),
            Block::Remark(level, text) => {
                for line in wrap_whole(&clean(text), self.width, 0) {
                    let line = self.paint(level.paint(), &line);
                    self.line(&line);
                }
            }
            Block::Heading(title) => self.heading(title),
            Block::Line(name, parts) => self.named(name, parts),
            Block::Point(level, text, parts) => self.point(*level, text, parts),
            Block::Checks(checks) => self.checks(checks),
            Block::Tally(what, number, more) => {
                let what = self.paint(BAD, &pad_right(what, WRONG));
                let line = format!("{:>OFTEN$}  {}", count(*number), clean(more));
                let line = cut(line.trim_end(), self.width - INDENT - WRONG, self.ellipsis());
                self.line(&format!("{:INDENT$}{what}{line}", ""));
            }
            Block::Example(at, text) => self.example(at, text),
            Block::Paragraph(level, text) => self.wrapped(level.paint(), text, INDENT),
            Block::Table(table) => {
                self.table(&table.aligned(self.wide(), rows));
                if let Some(more) = more_than(table.rows.len(), rows) {
                    self.line(&format!("{:INDENT$}and {more} rows more, in --json", ""));
                }
            }
            Block::Layouts(layouts) => self.layouts(layouts),
            Block::Worth(all) => self.worth_of_each(all),
            Block::Bars(bars) => self.bars(bars),
            Block::Trend(_, trend) => self.trend(trend),
            Block::Curve(curve) => self.curve(curve),
            Block::Tiers(load, tiers) => self.tiers(load, tiers),
            Block::Chart(chart) => {
                self.wrapped(QUIET, &chart.caption, INDENT);
                for (name, bars) in
                    chart.sparklines(self.width.saturating_sub(INDENT + NAME), self.style.ascii)
                {
                    let name = pad_right(&cut(&clean(name), NAME - 1, self.ellipsis()), NAME);
                    self.line(&format!("{:INDENT$}{name}{bars}", ""));
                }
            }
            Block::Folded(title, blocks) => {
                self.heading(title);
                blocks.iter().for_each(|block| self.block(block, FOLDED_ROWS));
            }
            Block::Link(text, to) => self.named(text, &[(Level::Plain, to.clone())]),
            Block::Place(what, dir) => self.place(what, dir),
            Block::Gap => self.line(""),
        }
    }

    fn verdict(&mut self, status: Status, says: &[(Level, String)]) {
        let word = word(status).to_uppercase();
        let indent = word.len() + 2;
        let mut head = self.worth(status) + "  ";
        for (level, said) in says {
            // the log that a reason quotes keeps its lines
            let quote = Quote::of(said, LOG_LINES);
            let width = self.width - indent;
            let said = quote.said.iter().flat_map(|line| wrap(&clean(line), width));
            let before = quote.before().map(|before| format!("{} {before}", self.ellipsis()));
            let log = before.into_iter().chain(quote.log.iter().map(|line| clean(line)));
            let log = log.map(|line| cut(&format!("| {line}"), width, self.ellipsis()));
            for line in said.chain(log).collect::<Vec<_>>() {
                let line = self.paint(level.paint(), &line);
                self.line(&format!("{head}{line}"));
                head = " ".repeat(indent);
            }
        }
        if says.is_empty() {
            self.line(head.trim_end());
        }
    }

    /// A verdict in a word.
    fn worth(&self, status: Status) -> String {
        self.paint(if status == Status::Pass { GOOD } else { BAD }, &word(status).to_uppercase())
    }

    /// What each of some is worth, and why, one below the other.
    fn worth_of_each(&mut self, all: &[(String, Status, String)]) {
        let width = all.iter().map(|(name, ..)| length(&clean(name))).max().unwrap_or(0);
        for (name, status, reasons) in all {
            let name = pad_right(&clean(name), width);
            self.line(&format!("{:INDENT$}{name}  {}", "", self.worth(*status)));
            self.wrapped(Paint::new(), reasons, INDENT + width + 2);
        }
    }

    /// The first layout whose tables there is room for.
    fn layouts(&mut self, layouts: &[Vec<blocks::Table>]) {
        let aligned = |tables: &Vec<blocks::Table>| -> Vec<Table> {
            tables.iter().map(|table| table.aligned(self.wide(), usize::MAX)).collect()
        };
        let layouts: Vec<Vec<Table>> = layouts.iter().map(aligned).collect();
        let fits = |tables: &&Vec<Table>| tables.iter().all(|table| table.fits(self.width - INDENT));
        let first = layouts.iter().find(fits).or(layouts.last());
        for (number, table) in first.into_iter().flatten().enumerate() {
            if number > 0 {
                self.line("");
            }
            self.table(table);
        }
    }

    /// A line that is not styled as a whole.
    fn line(&mut self, line: &str) {
        self.out += &self.plain(line);
        self.out.push('\n');
    }

    fn heading(&mut self, title: &str) {
        if !self.out.is_empty() {
            self.out.push('\n');
        }
        self.wrapped(HEADING, title, 0);
    }

    /// A paragraph, all of it painted.
    fn wrapped(&mut self, paint: Paint, value: &str, indent: usize) {
        for line in wrap(&clean(value), self.width - indent) {
            let line = self.paint(paint, &line);
            self.line(&format!("{:indent$}{line}", ""));
        }
    }

    /// A named line under a heading; its parts stay beside the name and whole where they can. A part is painted where it
    /// is on one line.
    fn named(&mut self, name: &str, parts: &[(Level, String)]) {
        let texts: Vec<String> = parts.iter().map(|(_, part)| clean(part)).collect();
        for (i, line) in wrap_parts(&texts, " · ", self.width - INDENT - NAME).into_iter().enumerate() {
            let name = self.paint(QUIET, &pad_right(if i == 0 { name } else { "" }, NAME));
            let painted = parts.iter().filter(|(level, part)| *level != Level::Plain && !part.is_empty());
            let line = painted.fold(line, |line, (level, part)| {
                line.replacen(part.as_str(), &self.paint(level.paint(), part), 1)
            });
            self.line(&format!("{:INDENT$}{name}{line}", ""));
        }
    }

    fn point(&mut self, level: Level, text: &str, parts: &[String]) {
        let mark = level.mark();
        let painted = if mark == "-" { mark.to_owned() } else { self.paint(level.paint(), mark) };
        for (i, line) in wrap(&clean(text), self.width - INDENT - 2).into_iter().enumerate() {
            let mark = if i == 0 { painted.as_str() } else { " " };
            self.line(&format!("{:INDENT$}{mark} {line}", ""));
        }
        let parts: Vec<String> = parts.iter().map(|part| clean(part)).collect();
        for line in wrap_parts(&parts, " · ", self.width - 2 * INDENT) {
            self.line(&format!("{:1$}{line}", "", 2 * INDENT));
        }
    }

    /// What was asked for, one below the other, with what was measured beside it.
    fn checks(&mut self, checks: &[(Level, String, String)]) {
        let width = checks.iter().map(|(_, name, _)| length(&clean(name))).max().unwrap_or(0);
        for (level, name, measured) in checks {
            let mark = self.paint(level.paint(), level.mark());
            let name = pad_right(&clean(name), width + 3);
            let indent = INDENT + 2 + length(&name);
            let measured = clean(measured);
            for (i, line) in wrap(&measured, self.width.saturating_sub(indent)).into_iter().enumerate() {
                match i {
                    0 => self.line(&format!("{:INDENT$}{mark} {name}{line}", "")),
                    _ => self.line(&format!("{:indent$}{line}", "")),
                }
            }
        }
    }

    fn example(&mut self, at: &str, text: &str) {
        let at_width = if at.is_empty() { 0 } else { EXAMPLE_AT };
        let width = self.width - 2 * INDENT - at_width;
        let mut lines = wrap(&clean(text), width);
        if lines.len() > EXAMPLE_LINES {
            lines.truncate(EXAMPLE_LINES);
            let last = lines.pop().unwrap_or_default();
            lines.push(cut(&last, width.saturating_sub(length(self.ellipsis())), "") + self.ellipsis());
        }
        for (i, line) in lines.iter().enumerate() {
            let line = match (i, at) {
                (_, "") => self.paint(QUIET, line),
                (0, at) => self.paint(QUIET, &format!("{at:>8}  {line}")),
                _ => self.paint(QUIET, &format!("{:>8}  {line}", "")),
            };
            self.line(&format!("{:1$}{line}", "", 2 * INDENT));
        }
    }

    /// The first behind the load, the others behind the first.
    fn tiers(&mut self, load: &str, tiers: &[Tier]) {
        let (to, and, end) = if self.style.ascii { ("->", "|-", "`-") } else { ("→", "├─", "└─") };
        let load = clean(load);
        for (at, tier) in tiers.iter().enumerate() {
            let before = match at {
                0 => format!("{load} {to} "),
                _ => {
                    format!("{:1$}", "", length(&load) + 4)
                        + if at + 1 < tiers.len() { and } else { end }
                        + " "
                }
            };
            let line = format!("{:INDENT$}{before}{}  {}", "", clean(&tier.name), clean(&tier.about));
            self.line(&cut(&line, self.width, self.ellipsis()));
        }
    }

    fn bars(&mut self, bars: &[Bar]) {
        let most = bars.iter().map(|bar| bar.count).max().unwrap_or(0).max(1);
        let width = bars.iter().map(|bar| length(&bar.from).max(length(&bar.to))).max().unwrap_or(0);
        for bar in bars {
            let range = format!("{:>width$} to {:>width$}", bar.from, bar.to);
            let columns = self.width.saturating_sub(INDENT + length(&range) + 2 + 1 + SHARE);
            let columns = columns.clamp(1, BAR_COLUMNS);
            let drawn = pad_right(&drawn(bar.count, most, columns, self.style.ascii), columns);
            self.line(&format!("{:INDENT$}{range}  {drawn} {:>SHARE$}", "", percent(bar.share)));
        }
    }

    /// A figure: its name, a bar for each run, and what it was last.
    fn trend(&mut self, trend: &Trend) {
        let last = format!("last {}", trend.last());
        let room = self.width.saturating_sub(INDENT + NAME + 2 + length(&last)).max(TREND_MIN);
        let marks: Vec<usize> = trend.changes.iter().map(|changed| changed.at).collect();
        let bars = sparkline(&trend.values, &marks, room.saturating_sub(marks.len()), self.style.ascii);
        let name = self.paint(QUIET, &pad_right(trend.figure.word(), NAME));
        self.line(&format!("{:INDENT$}{name}{bars}  {last}", ""));
    }

    fn curve(&mut self, curve: &Curve) {
        if !curve.found.curve.is_empty() {
            self.line("");
            curve.shown(CURVE_ROWS).iter().for_each(|block| self.block(block, usize::MAX));
        }
    }

    /// Where it is, and its page. Paths are not wrapped: they are there to be copied. The page comes last, where the eye
    /// and a script find it.
    fn place(&mut self, name: &str, dir: &Path) {
        self.out.push('\n');
        let name = self.paint(HEADING, &pad_right(name, INDENT + NAME));
        self.line(&format!("{name}{}", dir.display()));
        let report = dir.join("report.html");
        if report.is_file() {
            let name = self.paint(HEADING, &pad_right("Report", INDENT + NAME));
            self.line(&format!("{name}{}", report.display()));
        }
    }

    fn table(&mut self, table: &Table) {
        for (i, line) in table.lines(self.width - INDENT, self.ellipsis()).into_iter().enumerate() {
            let line = if i == 0 { self.paint(QUIET, &line) } else { line };
            self.line(&format!("{:INDENT$}{line}", ""));
        }
    }

    fn ellipsis(&self) -> &'static str {
        if self.style.ascii { "..." } else { "…" }
    }

    fn paint(&self, paint: Paint, text: &str) -> String {
        if self.style.colour && !text.trim().is_empty() {
            format!("{paint}{text}{paint:#}")
        } else {
            text.into()
        }
    }

    fn wide(&self) -> bool {
        self.width >= WIDE
    }

    fn plain(&self, text: &str) -> String {
        if !self.style.ascii {
            return text.to_owned();
        }
        let plain = |c: char| match c {
            'µ' => 'u',
            '·' => ',',
            '✓' => '+',
            '✗' => 'x',
            '–' => '-',
            c if c.is_ascii() => c,
            _ => '?',
        };
        text.chars().map(plain).collect()
    }
}

/// What came from files and servers must not steer the terminal.
pub fn clean(text: &str) -> String {
    text.chars().map(|c| if steers(c) { ' ' } else { c }).collect()
}

/// Whether a character is a control character, or changes the direction of the text around it (Unicode's Bidi_Control).
pub fn steers(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// A bar as long as its share of the longest; what is there at all can be seen.
fn drawn(count: u64, most: u64, columns: usize, ascii: bool) -> String {
    const EIGHTHS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
    let eighths = (count as f64 / most as f64 * (columns * 8) as f64).round() as usize;
    let eighths = eighths.max(usize::from(count > 0));
    if ascii { "#".repeat(eighths.div_ceil(8)) } else { "█".repeat(eighths / 8) + EIGHTHS[eighths % 8] }
}

#[cfg(test)]
mod tests;
