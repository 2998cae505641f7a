//! Markdown tables.

/// A table: the first and the last column are words where the titles say so, the others are figures.
#[derive(Debug)]
pub struct Table {
    rows: Vec<Vec<String>>,
    words: Vec<bool>,
}

/// Titles of columns that hold words.
const WORDS: [&str; 5] = ["tool", "load", "remarks", "tells the truth", "case"];

impl Table {
    pub fn new(titles: &[&str]) -> Table {
        let words = titles.iter().map(|title| WORDS.contains(title)).collect();
        Table { rows: vec![titles.iter().map(|title| (*title).to_owned()).collect()], words }
    }

    pub fn row(&mut self, cells: Vec<String>) {
        debug_assert_eq!(cells.len(), self.words.len(), "a cell for each title");
        self.rows.push(cells);
    }

    pub fn print(&self) {
        print!("{}", self.text());
        println!();
    }

    fn text(&self) -> String {
        let mut out = String::new();
        for (index, row) in self.rows.iter().enumerate() {
            out += &format!("| {} |\n", row.join(" | "));
            if index == 0 {
                let rule: Vec<&str> =
                    self.words.iter().map(|words| if *words { "---" } else { "---:" }).collect();
                out += &format!("| {} |\n", rule.join(" | "));
            }
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_markdown() {
        let mut table = Table::new(&["tool", "p50"]);
        table.row(vec!["wrk".into(), "1 ms".into()]);
        assert_eq!(table.text(), "| tool | p50 |\n| --- | ---: |\n| wrk | 1 ms |\n");
    }
}
