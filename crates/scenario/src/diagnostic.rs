//! What is wrong with a scenario, where, and what to do about it.

use std::fmt;

use crate::secrets::Secrets;

/// Most diagnostics that are kept of one file; more are only counted.
pub const DIAGNOSTICS_MAX: usize = 100;
/// Longest stretch of a source line that is shown, characters.
const SHOWN_LINE_MAX: usize = 140;

/// How grave a diagnostic is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Suspicious; the scenario can run.
    Warning,
    /// The scenario cannot run.
    Error,
}

/// One mistake in a scenario.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnostic {
    /// How grave it is.
    pub severity: Severity,
    /// The file as the user named it, or `--set KEY` where a setting from outside is wrong.
    pub file: String,
    /// Line, from 1; 0 where the mistake is in no line.
    pub line: usize,
    /// Column, from 1, in characters.
    pub column: usize,
    /// How many characters are marked, at least 1.
    pub length: usize,
    /// What is wrong, and what to do.
    pub message: String,
    /// The line as it stands in the file.
    pub source_line: String,
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = if self.severity == Severity::Warning { "warning: " } else { "" };
        if self.line == 0 {
            return write!(f, "{}: {kind}{}", self.file, self.message);
        }
        writeln!(f, "{}:{}:{}: {kind}{}", self.file, self.line, self.column, self.message)?;
        let number = self.line.to_string();
        let margin = " ".repeat(number.len());
        let (shown, before) = shown_part(&self.source_line, self.column);
        let indent: String = shown.chars().take(before).map(|c| if c == '\t' { '\t' } else { ' ' }).collect();
        let marked = self.length.clamp(1, shown.chars().count().saturating_sub(before).max(1));
        writeln!(f, " {number} | {shown}")?;
        write!(f, " {margin} | {indent}{}", "^".repeat(marked))
    }
}

/// A long line's stretch around `column`, and how many of its characters stand before that column.
fn shown_part(line: &str, column: usize) -> (String, usize) {
    let before = column.saturating_sub(1);
    let skipped = if before < SHOWN_LINE_MAX * 2 / 3 { 0 } else { before - SHOWN_LINE_MAX / 3 };
    let shown = line.chars().skip(skipped).take(SHOWN_LINE_MAX);
    (shown.map(|c| if c.is_control() && c != '\t' { '\u{fffd}' } else { c }).collect(), before - skipped)
}

/// Everything that is wrong with a scenario, in the order of the file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Diagnostics {
    items: Vec<Diagnostic>,
    not_kept: usize,
}

impl Diagnostics {
    /// One by one.
    pub fn items(&self) -> &[Diagnostic] {
        &self.items
    }

    /// How many more there are than were kept.
    pub fn not_kept(&self) -> usize {
        self.not_kept
    }

    /// Whether the scenario cannot run.
    pub fn has_errors(&self) -> bool {
        self.items.iter().any(|item| item.severity == Severity::Error)
    }

    /// Whether more are only counted, so that their places need not be found.
    pub(crate) fn is_full(&self) -> bool {
        self.items.len() >= DIAGNOSTICS_MAX
    }

    /// Adds one, unless there is one at the same place already: the first says it best.
    pub(crate) fn push(&mut self, item: Diagnostic) {
        let same_place = |other: &Diagnostic| {
            item.line != 0
                && (other.line, other.column) == (item.line, item.column)
                && other.file == item.file
        };
        if let Some(other) = self.items.iter_mut().find(|other| same_place(other)) {
            if other.severity < item.severity {
                *other = item;
            }
            return;
        }
        if self.items.len() < DIAGNOSTICS_MAX {
            self.items.push(item);
            return;
        }
        self.not_kept += 1;
        // An error must not be hidden by warnings.
        let warning = self.items.iter_mut().rfind(|other| other.severity == Severity::Warning);
        if let (Severity::Error, Some(warning)) = (item.severity, warning) {
            *warning = item;
        }
    }

    /// Takes secrets out of what is told. `line_of` tells a line without them, as long as it was, so that marks stand where
    /// they belong.
    pub(crate) fn mask(&mut self, secrets: &Secrets, line_of: impl Fn(usize) -> String) {
        for item in &mut self.items {
            item.message = secrets.masked(&item.message);
            if item.line > 0 {
                item.source_line = line_of(item.line);
            }
        }
    }

    /// Whether there is none.
    pub(crate) fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// Adds those of another file behind its own; beside errors warnings are left out.
    pub(crate) fn append(&mut self, others: Diagnostics) {
        others.items.into_iter().for_each(|item| self.push(item));
        self.not_kept += others.not_kept;
        if self.has_errors() {
            self.items.retain(|item| item.severity == Severity::Error);
        }
    }

    /// Puts them in the order of the file. Beside errors warnings are left out: most follow from the errors.
    pub(crate) fn settle(&mut self) {
        if self.has_errors() {
            self.items.retain(|item| item.severity == Severity::Error);
        }
        self.items.sort_by_key(|item| (item.line, item.column));
    }
}

impl fmt::Display for Diagnostics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, item) in self.items.iter().enumerate() {
            if index > 0 {
                writeln!(f)?;
            }
            write!(f, "{item}")?;
        }
        if self.not_kept > 0 {
            write!(f, "\nand {} more", self.not_kept)?;
        }
        Ok(())
    }
}

impl std::error::Error for Diagnostics {}

/// `; did you mean NEAREST?`, or nothing where no word is near.
pub fn did_you_mean<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> String {
    nearest(word, candidates).map_or(String::new(), |near| format!("; did you mean {near}?"))
}

/// The candidate that is most like `word`, if it is like enough.
pub(crate) fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    const WORD_MAX: usize = 64;
    let plain = |text: &str| text.to_lowercase().replace(['_', '-'], " ");
    if word.chars().count() > WORD_MAX {
        return None;
    }
    let word = plain(word);
    let mut best: Option<(usize, &str)> = None;
    for candidate in candidates {
        let other = plain(candidate);
        let longer = word.chars().count().max(other.chars().count());
        let distance = strsim::osa_distance(&word, &other);
        let near_enough = distance <= (longer / 3).max(1) && distance < longer;
        if near_enough && best.is_none_or(|(least, _)| distance < least) {
            best = Some((distance, candidate));
        }
    }
    best.map(|(_, candidate)| candidate)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(line: usize, column: usize, source_line: &str) -> Diagnostic {
        Diagnostic {
            severity: Severity::Error,
            file: "scenario.yaml".into(),
            line,
            column,
            length: 4,
            message: "unknown step \"PSOT\"; did you mean POST?".into(),
            source_line: source_line.into(),
        }
    }

    #[test]
    fn a_diagnostic_shows_the_line_and_a_caret() {
        let text = at(14, 9, "      - PSOT: /login").to_string();
        let expected = "scenario.yaml:14:9: unknown step \"PSOT\"; did you mean POST?\n \
                        14 |       - PSOT: /login\n    |         ^^^^";
        assert_eq!(text, expected);
    }

    #[test]
    fn tabs_and_long_lines_keep_the_caret_in_place() {
        let text = at(1, 3, "\t\tPSOT: x").to_string();
        assert!(text.ends_with("\t\t^^^^"), "{text}");
        let long = format!("{}PSOT{}", "x".repeat(5_000), "y".repeat(5_000));
        let text = at(1, 5_001, &long).to_string();
        let lines: Vec<&str> = text.lines().collect();
        let caret = lines[2].find('^').unwrap();
        assert_eq!(&lines[1][caret..caret + 4], "PSOT");
        assert!(lines[1].len() < 200);
    }

    #[test]
    fn the_nearest_word_is_near() {
        assert_eq!(nearest("PSOT", ["GET", "POST", "PUT"]), Some("POST"));
        assert_eq!(nearest("when_missing", ["when missing", "json"]), Some("when missing"));
        assert_eq!(nearest("labl", ["label", "limit"]), Some("label"));
        assert_eq!(nearest("zebra", ["label", "limit"]), None);
        assert_eq!(nearest("x", ["y"]), None);
    }

    #[test]
    fn only_so_many_are_kept_and_the_rest_is_counted() {
        let mut all = Diagnostics::default();
        for line in 1..=DIAGNOSTICS_MAX + 5 {
            all.push(at(line, 1, "x"));
        }
        all.push(at(3, 1, "x"));
        assert_eq!((all.items().len(), all.not_kept()), (DIAGNOSTICS_MAX, 5));
        assert!(all.to_string().ends_with("and 5 more"));
    }

    #[test]
    fn errors_push_warnings_out() {
        let mut all = Diagnostics::default();
        for line in 1..=DIAGNOSTICS_MAX {
            all.push(Diagnostic { severity: Severity::Warning, ..at(line, 1, "x") });
        }
        assert!(!all.has_errors());
        all.push(at(DIAGNOSTICS_MAX + 1, 1, "x"));
        assert!(all.has_errors());
        all.settle();
        assert_eq!((all.items().len(), all.not_kept()), (1, 1));
    }
}
