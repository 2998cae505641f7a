//! Aligned tables of text.

use std::collections::HashMap;

/// A table whose first column is text and whose others are numbers.
pub(crate) struct Table {
    rows: Vec<Vec<String>>,
    dispensable: Vec<String>,
    /// Fewest characters that names are cut to while there are columns to leave out.
    name_min: usize,
}

/// The same where nobody says.
const NAME_MIN: usize = 16;

impl Table {
    /// A table with a head; its first entry is the title of the names.
    pub(crate) fn new(head: &[&str]) -> Table {
        Table {
            rows: vec![head.iter().map(|&name| name.to_owned()).collect()],
            dispensable: Vec::new(),
            name_min: NAME_MIN,
        }
    }

    /// Columns that may be left out where there is no room, the first first.
    pub(crate) fn dispensable(mut self, columns: &[&str]) -> Table {
        self.dispensable = columns.iter().map(|&name| name.to_owned()).collect();
        self
    }

    /// Names are never cut: columns are left out first, and then names get lines of their own.
    pub(crate) fn whole_names(mut self) -> Table {
        self.name_min = usize::MAX;
        self
    }

    /// Appends a row; as many cells as the head has.
    pub(crate) fn row(&mut self, cells: Vec<String>) {
        debug_assert_eq!(cells.len(), self.rows[0].len());
        self.rows.push(cells);
    }

    /// The lines, none longer than `width` if the numbers leave room; names are cut with `ellipsis` where needed, or, where
    /// that would make two the same, stand above their numbers.
    pub(crate) fn lines(&self, width: usize, ellipsis: &str) -> Vec<String> {
        let columns = self.columns(width);
        let widths: Vec<usize> = columns.iter().map(|&column| self.column_width(column)).collect();
        let numbers: usize = widths[1..].iter().sum();
        // Wide apart where there is room, closer where not.
        let fits = |gap: &usize| widths[0] + numbers + gap * (columns.len() - 1) <= width;
        let gap = (1..=3).rev().find(fits).unwrap_or(1);
        let name_width = widths[0].min(width.saturating_sub(numbers + gap * (columns.len() - 1)));
        let line = |name: &str, row: &Vec<String>| {
            let mut line = pad_right(name, name_width);
            for (&column, width) in columns[1..].iter().zip(&widths[1..]) {
                line += &" ".repeat(gap + width - length(&row[column]));
                line += &row[column];
            }
            line.trim_end().to_owned()
        };
        let short: Vec<String> = self.rows.iter().map(|row| cut(&row[0], name_width, ellipsis)).collect();
        let is_whole = name_width == widths[0];
        if is_whole || (self.name_min < usize::MAX && self.are_told_apart(&short)) {
            return self.rows.iter().zip(&short).map(|(row, name)| line(name, row)).collect();
        }
        let above = |row: &Vec<String>| {
            let mut lines = wrap(&row[0], width);
            lines.push(line("", row));
            lines
        };
        self.rows.iter().flat_map(above).collect()
    }

    /// Whether names that differ still do so.
    fn are_told_apart(&self, short: &[String]) -> bool {
        let mut seen = HashMap::new();
        self.rows.iter().zip(short).all(|(row, short)| *seen.entry(short).or_insert(&row[0]) == &row[0])
    }

    /// Whether a line holds the numbers beside names of some length.
    pub(crate) fn fits(&self, width: usize) -> bool {
        self.least_width(&self.columns(width)) <= width
    }

    fn least_width(&self, columns: &[usize]) -> usize {
        let name_width = self.column_width(0).min(self.name_min);
        name_width + columns[1..].iter().map(|&c| 1 + self.column_width(c)).sum::<usize>()
    }

    /// The columns that fit: all, or without some that may be left out.
    fn columns(&self, width: usize) -> Vec<usize> {
        let mut columns: Vec<usize> = (0..self.rows[0].len()).collect();
        for name in &self.dispensable {
            if self.least_width(&columns) <= width {
                break;
            }
            columns.retain(|&column| self.rows[0][column] != *name);
        }
        columns
    }

    fn column_width(&self, column: usize) -> usize {
        self.rows.iter().map(|row| length(&row[column])).max().unwrap_or(0)
    }
}

/// Length in characters; the names of this field are not written in wide ones.
pub(crate) fn length(text: &str) -> usize {
    text.chars().count()
}

pub(crate) fn pad_right(text: &str, width: usize) -> String {
    format!("{text}{}", " ".repeat(width.saturating_sub(length(text))))
}

/// The beginning of a text, with `ellipsis` where something was left out.
pub(crate) fn cut(text: &str, width: usize, ellipsis: &str) -> String {
    if length(text) <= width {
        return text.to_owned();
    }
    let kept: String = text.chars().take(width.saturating_sub(length(ellipsis))).collect();
    kept.trim_end().to_owned() + ellipsis
}

/// Breaks a text between words; a longer word begins a line, and is broken where that ends.
pub fn wrap(text: &str, width: usize) -> Vec<String> {
    let pieces = |mut word| {
        std::iter::from_fn(move || {
            let at = str::char_indices(word).nth(width.max(1)).map_or(word.len(), |(at, _)| at);
            let (piece, rest) = word.split_at(at);
            word = rest;
            (!piece.is_empty()).then_some(piece)
        })
    };
    joined(text.split_whitespace().flat_map(pieces), width, 0)
}

/// The same with words that stay whole, however long; every line but the first begins with `hang` spaces.
pub fn wrap_whole(text: &str, width: usize, hang: usize) -> Vec<String> {
    joined(text.split_whitespace(), width, hang)
}

fn joined<'a>(words: impl Iterator<Item = &'a str>, width: usize, hang: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in words {
        match lines.last_mut() {
            Some(line) if length(line) + 1 + length(word) <= width => {
                line.push(' ');
                line.push_str(word);
            }
            Some(_) => lines.push(format!("{:hang$}{word}", "")),
            None => lines.push(word.to_owned()),
        }
    }
    lines
}

/// Puts parts side by side with a separator between them, a line after the other; a part is only broken where it
/// is longer than a line. Empty parts are left out.
pub(crate) fn wrap_parts(parts: &[String], separator: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for part in parts.iter().filter(|part| !part.is_empty()) {
        match lines.last_mut() {
            Some(line) if length(line) + length(separator) + length(part) <= width => {
                line.push_str(separator);
                line.push_str(part);
            }
            _ => lines.extend(wrap(part, width)),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_stand_under_each_other_and_names_give_way() {
        let mut table = Table::new(&["step", "count", "p99"]);
        table.row(vec!["Größe ändern und speichern".into(), "1,234".into(), "12.3ms".into()]);
        table.row(vec!["b".into(), "7".into(), "9µs".into()]);
        assert_eq!(
            table.lines(60, "…"),
            [
                "step                         count      p99",
                "Größe ändern und speichern   1,234   12.3ms",
                "b                                7      9µs",
            ]
        );
        let narrow = table.lines(30, "…");
        assert_eq!(narrow[1], "Größe ändern und… 1,234 12.3ms");
        assert!(narrow.iter().all(|line| length(line) <= 30));
    }

    #[test]
    fn columns_that_may_are_left_out() {
        let mut table = Table::new(&["step", "count", "share", "p99"]).dispensable(&["share", "count"]);
        table.row(vec!["a name of some length".into(), "1,234".into(), "100%".into(), "12.3ms".into()]);
        assert!(table.lines(36, "…")[0].contains("share"));
        let narrow = table.lines(34, "…");
        assert!(!narrow[0].contains("share") && narrow[0].contains("count"), "{narrow:?}");
        assert_eq!(table.lines(20, "…")[1], "a name of so… 12.3ms");
    }

    #[test]
    fn names_that_would_be_cut_to_the_same_stand_above_their_numbers() {
        let mut table = Table::new(&["", "answered", "p99"]);
        table.row(vec!["Redis, 80/20".into(), "712k/s".into(), "3.51ms".into()]);
        table.row(vec!["Redis, 80/20, AOF".into(), "655k/s".into(), "3.77ms".into()]);
        assert_eq!(table.lines(33, "…")[2], "Redis, 80/20, AOF   655k/s 3.77ms");
        assert_eq!(
            table.lines(26, "…"),
            [
                "           answered    p99",
                "Redis, 80/20",
                "             712k/s 3.51ms",
                "Redis, 80/20, AOF",
                "             655k/s 3.77ms",
            ]
        );
        let names = table.whole_names().lines(31, "…").concat();
        assert!(names.contains("Redis, 80/20, AOF"), "{names}");
    }

    #[test]
    fn words_are_kept_whole() {
        assert_eq!(wrap("one two  three", 7), ["one two", "three"]);
        assert_eq!(wrap("a übergroße b", 4), ["a", "über", "groß", "e b"]);
        assert_eq!(wrap("ab cd", 5), ["ab cd"]);
        assert_eq!(wrap_whole("a übergroße b c", 4, 1), ["a", " übergroße", " b c"]);
        let parts = ["a b", "", "c d", "e f g h"].map(String::from);
        assert_eq!(wrap_parts(&parts, " · ", 9), ["a b · c d", "e f g h"]);
        assert_eq!(wrap_parts(&parts, " · ", 5), ["a b", "c d", "e f g", "h"]);
        assert_eq!(cut("abcdef", 4, "..."), "a...");
        assert_eq!(cut("abcd", 4, "..."), "abcd");
    }
}
