//! Markdown with tables (GitHub's flavour), for a comment or the summary of a CI job.

use tidemark_record::{RecordError, Run};

use crate::blocks::{self, Block, Cell, Level, Table, word};
use crate::history::sparkline;
use crate::quote::Quote;
use crate::text::steers;
use crate::units::{count, more_than, percent};

/// Rows of a table, at most; what is left out is counted. A CI job's summary must stay below a mebibyte.
const ROWS_MAX: usize = 100;
/// Rows of a curve.
const CURVE_ROWS: usize = 30;
/// Most runs of a history that are shown.
const HISTORY_MAX: usize = 40;
/// Longest text taken over from files and servers, characters.
const TEXT_MAX: usize = 300;
/// Longest reason or note, characters: its end says what to do.
const SENTENCE_MAX: usize = 4_000;
/// Last lines of a log that are shown.
const LOG_LINES: usize = 30;

/// What a person wants to know of a run.
pub fn summary(run: &Run) -> String {
    render(&blocks::run(run))
}

/// The same in detail.
///
/// # Errors
/// Where the run is damaged.
pub fn detailed(run: &Run) -> Result<String, RecordError> {
    Ok(render(&blocks::run_in_detail(run)?))
}

/// A report as Markdown.
pub fn render(blocks: &[Block]) -> String {
    let mut markdown = Markdown::default();
    blocks.iter().for_each(|block| markdown.block(block));
    markdown.end_points();
    markdown.out
}

impl Level {
    /// What stands before a text, with a space behind it.
    fn sign(self) -> &'static str {
        match self {
            Level::Plain | Level::Strong | Level::Quiet => "",
            Level::Good => "✅ ",
            Level::Warning | Level::Unsure => "⚠️ ",
            Level::Bad => "❌ ",
        }
    }
}

/// The text as it grows.
#[derive(Default)]
struct Markdown {
    out: String,
    /// Whether a list goes on.
    in_list: bool,
    /// Points of the section so far.
    points: usize,
}

impl Markdown {
    fn block(&mut self, block: &Block) {
        if !matches!(block, Block::Point(..)) {
            self.end_points();
        }
        match block {
            Block::Title(level, title) => {
                let sign = if *level == Level::Quiet { "➖ " } else { level.sign() };
                self.paragraph(&format!("### {sign}{}", plain(title)));
            }
            Block::Verdict(_, says) => {
                // reasons come first, and warnings last: of a long list the middle is left out
                let warnings = says.len().saturating_sub(ROWS_MAX).max(ROWS_MAX);
                says.iter().take(ROWS_MAX).for_each(|(level, said)| self.sentence(*level, said));
                self.left_out(warnings.min(says.len()).saturating_sub(ROWS_MAX));
                says.iter().skip(warnings).for_each(|(level, said)| self.sentence(*level, said));
            }
            Block::Lead(_, text) => self.paragraph(&format!("**{}**", sentence(text))),
            Block::Remark(level, text) | Block::Paragraph(level, text) => {
                let sign = if *level == Level::Bad { "" } else { level.sign() };
                self.paragraph(&format!("{sign}{}", sentence(text)));
            }
            Block::Heading(title) => {
                self.paragraph(&format!("#### {}", plain(title)));
            }
            Block::Line(name, parts) => self.line(name, parts),
            Block::Point(level, text, parts) => {
                self.points += 1;
                if self.points > ROWS_MAX {
                    return;
                }
                self.sentence(*level, text);
                self.go_on(&parts.iter().map(|part| plain(part)).collect::<Vec<_>>());
            }
            Block::Checks(checks) => {
                for (level, name, measured) in checks.iter().take(ROWS_MAX) {
                    self.item(&format!("{}{}: {}", level.sign(), code(name), plain(measured)));
                }
                self.left_out(checks.len().saturating_sub(ROWS_MAX));
            }
            Block::Tally(what, number, more) => {
                self.item(format!("**{}** {} {}", plain(what), count(*number), plain(more)).trim_end());
            }
            Block::Example(at, text) => {
                let at = if at.is_empty() { String::new() } else { format!("{at} ") };
                self.out += &format!("  - {at}{}\n", plain(text));
            }
            Block::Table(table) => self.table(table),
            Block::Layouts(layouts) => layouts.iter().take(1).flatten().for_each(|table| self.table(table)),
            Block::Worth(all) => {
                for (name, status, why) in all {
                    self.item(&format!("{}: {} {}", plain(name), word(*status), plain(why)));
                }
            }
            Block::Bars(bars) => {
                for bar in bars {
                    self.item(&format!("{} to {}: {}", bar.from, bar.to, percent(bar.share)));
                }
            }
            Block::Trend(_, trend) => {
                let marks: Vec<usize> = trend.changes.iter().map(|changed| changed.at).collect();
                let bars = code(&sparkline(&trend.values, &marks, HISTORY_MAX, false));
                self.item(&format!("{} {bars} last {}", trend.figure.name(), trend.last()));
            }
            Block::Tiers(load, tiers) => {
                self.paragraph(&plain(load));
                for tier in tiers {
                    self.item(&format!("{}: {}", plain(&tier.name), plain(&tier.about)));
                }
            }
            Block::Chart(chart) => {
                self.paragraph(&plain(&chart.caption));
                for (name, bars) in chart.sparklines(HISTORY_MAX, false) {
                    self.item(&format!("{} {}", plain(name), code(&bars)));
                }
            }
            Block::Curve(curve) => curve.shown(CURVE_ROWS).iter().for_each(|block| self.block(block)),
            Block::Folded(title, blocks) => {
                self.paragraph(&format!("<details><summary>{}</summary>", plain(title)));
                blocks.iter().for_each(|block| self.block(block));
                self.paragraph("</details>");
            }
            Block::Link(text, to) => self.item(&format!("{}: {}", plain(text), code(to))),
            Block::Place(what, dir) => {
                self.paragraph(&format!("{what}: {}", code(&dir.display().to_string())));
            }
            Block::Rounds(_) | Block::Gap => {}
        }
    }

    /// How many points of the section before were left out.
    fn end_points(&mut self) {
        let points = std::mem::take(&mut self.points);
        self.left_out(points.saturating_sub(ROWS_MAX));
    }

    fn left_out(&mut self, number: usize) {
        if number > 0 {
            self.item(&format!("… and {} more", count(number as u64)));
        }
    }

    fn paragraph(&mut self, text: &str) {
        if !self.out.is_empty() {
            self.out.push('\n');
        }
        self.out += text;
        self.out.push('\n');
        self.in_list = false;
    }

    fn item(&mut self, text: &str) {
        if !self.in_list && !self.out.is_empty() {
            self.out.push('\n');
        }
        self.out += &format!("- {text}\n");
        self.in_list = true;
    }

    /// More of what was written last, on its line.
    fn go_on(&mut self, parts: &[String]) {
        for part in parts.iter().filter(|part| !part.is_empty()) {
            self.out.pop();
            self.out += &format!(" · {part}\n");
        }
    }

    fn line(&mut self, name: &str, parts: &[(Level, String)]) {
        let mut parts = parts.iter().map(|(_, part)| plain(part)).filter(|part| !part.is_empty());
        if !name.is_empty() {
            let Some(first) = parts.next() else { return };
            self.item(&format!("**{}** {first}", plain(name)));
        }
        self.go_on(&parts.collect::<Vec<_>>());
    }

    /// A reason or a note as a point of a list, with the log that it quotes below it as it stood there.
    fn sentence(&mut self, level: Level, text: &str) {
        let quote = Quote::of(text, LOG_LINES);
        self.item(&format!("{}{}", level.sign(), sentence(&quote.said.join(" "))));
        if quote.log.is_empty() {
            return;
        }
        let log: Vec<String> = quote.log.iter().map(|of_log| one_line(of_log)).collect();
        // a fence ends only at one that is as long
        let fence = "`".repeat(log.iter().map(|of_log| backquotes(of_log)).max().unwrap_or(0).max(2) + 1);
        self.out += &format!("\n  {fence}text\n");
        for of_log in quote.before().map(|before| format!("… {before}")).into_iter().chain(log) {
            self.out += format!("  {of_log}").trim_end();
            self.out.push('\n');
        }
        self.out += &format!("  {fence}\n");
    }

    fn table(&mut self, table: &Table) {
        let columns = table.columns();
        let head: Vec<String> = columns.iter().map(|at| plain(&table.head[*at])).collect();
        let mut lines = format!("|{} |\n| ---{} |", in_cells(&head), " | ---:".repeat(head.len() - 1));
        for row in table.rows.iter().take(ROWS_MAX) {
            lines +=
                &format!("\n|{} |", in_cells(&columns.iter().map(|at| cell(&row[*at])).collect::<Vec<_>>()));
        }
        self.paragraph(&lines);
        if let Some(more) = more_than(table.rows.len(), ROWS_MAX) {
            self.paragraph(&format!("… and {} more", count(more)));
        }
    }
}

/// ` a | b`, and nothing of what is empty but its bar.
fn in_cells(cells: &[String]) -> String {
    let cell = |cell: &String| if cell.is_empty() { String::new() } else { format!(" {cell}") };
    cells.iter().map(cell).collect::<Vec<_>>().join(" |")
}

fn cell(cell: &Cell) -> String {
    let text = plain(&cell.text(true));
    match cell {
        Cell::Word(Level::Bad, _) => format!("**{text}**"),
        _ => text,
    }
}

/// One line of text that means itself: nothing in it is markup.
fn plain(value: &str) -> String {
    escaped(&one_line(value))
}

/// The same of a sentence, which may be longer.
fn sentence(text: &str) -> String {
    escaped(&line(text, SENTENCE_MAX))
}

fn escaped(line: &str) -> String {
    let mut out = String::with_capacity(line.len());
    for c in line.chars() {
        match c {
            '<' => out += "&lt;",
            '>' => out += "&gt;",
            '&' => out += "&amp;",
            '\\' | '`' | '*' | '_' | '[' | ']' | '|' | '~' | '#' | '!' | '$' => {
                out.push('\\');
                out.push(c);
            }
            // would become a mention, and of the name of a person
            '@' => out += "&#64;",
            c => out.push(c),
        }
    }
    out
}

/// One line of code. Within it only the back quotes and the bar of a table mean something.
fn code(value: &str) -> String {
    let line = one_line(value);
    if line.trim().is_empty() {
        return String::new();
    }
    let fence = "`".repeat(backquotes(&line) + 1);
    let line = line.replace('|', "\\|");
    // a back quote at an end would join the fence
    let gap = if line.starts_with('`') || line.ends_with('`') { " " } else { "" };
    format!("{fence}{gap}{line}{gap}{fence}")
}

/// How many back quotes stand in a row at most.
fn backquotes(line: &str) -> usize {
    let (mut longest, mut run) = (0, 0);
    for c in line.chars() {
        run = if c == '`' { run + 1 } else { 0 };
        longest = longest.max(run);
    }
    longest
}

/// On one line, without control characters, and no longer than is good.
fn one_line(value: &str) -> String {
    line(value, TEXT_MAX)
}

/// The same of so many characters.
fn line(value: &str, most: usize) -> String {
    let line: String = value.chars().take(most).map(|c| if steers(c) { ' ' } else { c }).collect();
    if value.chars().nth(most).is_some() { line + "…" } else { line }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_run;

    #[test]
    fn a_failed_run() {
        let (_dir, mut run) = test_run::airline();
        run.dir = "runs/x".into();
        insta::assert_snapshot!(summary(&run));
    }

    #[test]
    fn nothing_in_a_run_turns_the_text_around() {
        assert_eq!(plain("a\u{202e}b\u{2066}c\u{200f}d"), "a b c d");
        assert_eq!(code("a\u{202e}b"), "`a b`");
    }

    #[test]
    fn nothing_in_a_run_is_markup() {
        let nasty = "a|b `c` ``d`` <img src=x> **e** [f](g) @h \\ \r\n# i";
        let plain = plain(nasty);
        assert_eq!(
            plain,
            "a\\|b \\`c\\` \\`\\`d\\`\\` &lt;img src=x&gt; \\*\\*e\\*\\* \\[f\\](g) &#64;h \\\\   \\# i"
        );
        assert_eq!(code(nasty).matches('\n').count(), 0);
        assert!(code(nasty).starts_with("```a\\|b") && code(nasty).ends_with("# i```"));
        assert_eq!(code("`"), "`` ` ``");
        assert_eq!(code(" "), "");
        let long = "x".repeat(10_000);
        assert_eq!(super::plain(&long).chars().count(), TEXT_MAX + 1);
    }

    #[test]
    fn a_log_that_is_quoted_keeps_its_end_and_its_lines_and_a_note_its_advice() {
        let (_dir, mut run) = test_run::airline();
        let log: String = (0..40).map(|n| format!("\n  | {n} {}", "word ".repeat(20))).collect();
        let end = "\n  |   File \"svc.py\"\n  | ```` <b>\n  | FATAL: the real reason";
        run.manifest.summary.verdict.reasons =
            vec![format!("it ended; its log:{log}{end}").into(), "another".into()];
        run.manifest.notes = vec![format!("{} do this", "a note that is long ".repeat(50))];
        let text = summary(&run);
        let quoted =
            text.split("- it ended; its log:\n\n  `````text\n").nth(1).unwrap_or_else(|| panic!("{text}"));
        assert!(quoted.starts_with("  … 13 lines before\n  13 word"), "{quoted}");
        let end = "\n    File \"svc.py\"\n  ```` <b>\n  FATAL: the real reason\n  `````\n- another\n";
        assert!(quoted.contains(end), "{quoted}");
        assert!(text.contains("long  do this\n"), "{text}");
    }

    #[test]
    fn tables_are_bounded_and_what_is_left_out_is_counted() {
        let (_dir, run) = test_run::long(2, 120);
        let text = summary(&run);
        assert!(text.contains("\n… and 20 more\n"), "{text}");
        assert_eq!(text.matches("\n| Step ").count(), ROWS_MAX);
    }

    #[test]
    fn lists_are_bounded_and_warnings_stay() {
        let (_dir, mut run) = test_run::airline();
        let objective = run.manifest.objectives[0].clone();
        run.manifest.objectives = vec![objective; 150];
        run.manifest.notes = (0..130).map(|number| format!("note {number}.")).collect();
        run.manifest.summary.verdict.reasons =
            (0..330).map(|number| format!("reason {number}.").into()).collect();
        run.manifest.summary.warnings = vec!["an important warning".into()];
        let text = summary(&run);
        assert!(text.contains("an important warning"), "{text}");
        assert!(text.contains("- … and 50 more") && text.contains("note 99.\n- … and 30 more"), "{text}");
        let reasons = text.matches("- reason ").count();
        assert!((190..200).contains(&reasons), "{reasons}: {text}");
        assert!(text.contains(&format!("- … and {} more\n- reason ", 330 - reasons)), "{text}");
        assert!(!text.contains("note 100"), "{text}");
    }
}
