//! A reason, or a note, that quotes the end of a log.

/// What stands before a line of a log.
const MARK: &str = "  | ";

/// Its parts.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Quote<'a> {
    /// What is said, a line each.
    pub said: Vec<&'a str>,
    /// The last lines of the log, as they stood in it.
    pub log: Vec<&'a str>,
    /// Lines before these that are left out.
    pub left_out: usize,
}

impl<'a> Quote<'a> {
    /// Of a text, with so many lines of the log at most: the end says why something ended.
    pub(crate) fn of(text: &'a str, most: usize) -> Quote<'a> {
        let said = text.lines().filter(|line| !line.starts_with(MARK)).collect();
        let mut log: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix(MARK)).collect();
        let left_out = log.len().saturating_sub(most);
        log.drain(..left_out);
        Quote { said, log, left_out }
    }

    /// How much is left out, in words, if anything is.
    pub(crate) fn before(&self) -> Option<String> {
        match self.left_out {
            0 => None,
            1 => Some("1 line before".to_owned()),
            n => Some(format!("{n} lines before")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_log_stays() {
        let text = "it ended; its log:\n  | one\n  |   two\n  | three";
        let quote = Quote::of(text, 2);
        assert_eq!(
            (quote.said.as_slice(), quote.log.as_slice()),
            (&["it ended; its log:"][..], &["  two", "three"][..])
        );
        assert_eq!(quote.before().unwrap(), "1 line before");
        assert_eq!(Quote::of(text, 3).before(), None);
        let plain = Quote { said: vec!["a | b"], log: Vec::new(), left_out: 0 };
        assert_eq!(Quote::of("a | b", 2), plain);
    }
}
