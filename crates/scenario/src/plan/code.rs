//! Code of a session: what a step does in JavaScript.

use std::sync::Arc;

use super::SlotIndex;

/// A step's code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CodePlan {
    /// The body of a function in JavaScript.
    pub text: Arc<str>,
    /// The variables that it names, each once.
    pub variables: Vec<CodeVariable>,
    /// Whether it looks at the last answer.
    pub reads_answer: bool,
    /// The scenario's file, as messages name it.
    pub file: String,
    /// Where each line of it stands in the file: line and column of its first character, from 1. Only where all of it begins,
    /// where its lines are others than the file's.
    pub places: Vec<(usize, usize)>,
}

/// A variable that code names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CodeVariable {
    /// Its name.
    pub name: String,
    /// Where its value is.
    pub slot: SlotIndex,
    /// Whether it is a setting, which code cannot change.
    pub is_fixed: bool,
}

impl CodePlan {
    /// Where a character of it stands in the file: line and column, from 1. What is behind its end is at its end.
    pub fn place(&self, line: usize, column: usize) -> (usize, usize) {
        if self.places.len() < self.text.lines().count() {
            return self.places.first().copied().unwrap_or((0, 1));
        }
        let last = self.places.len().max(1);
        let column = if line > last { usize::MAX } else { column };
        let line = line.clamp(1, last);
        let length = self.text.lines().nth(line - 1).map_or(0, |text| text.chars().count());
        let (of_line, first) = self.places.get(line - 1).copied().unwrap_or((0, 1));
        (of_line, first + column.saturating_sub(1).min(length))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_in_code_is_one_in_the_file() {
        let code = CodePlan {
            text: "let a;\n  b();\n".into(),
            variables: Vec::new(),
            reads_answer: false,
            file: "t.yaml".into(),
            places: vec![(7, 11), (8, 11)],
        };
        assert_eq!((code.place(1, 1), code.place(2, 3)), ((7, 11), (8, 13)));
        assert_eq!((code.place(0, 0), code.place(9, 1), code.place(1, 99)), ((7, 11), (8, 17), (7, 17)));
    }
}
