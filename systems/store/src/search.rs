//! Which participants have posted stories with some word.

use crate::answer::Answer;
use crate::feeds::Post;
use crate::metrics::StoreMetrics;

/// Most posters that a search tells.
pub const POSTERS_MAX: usize = 1_000;
/// Most words of a query; those behind them are not looked for.
pub const WORDS_MAX: usize = 64;

/// An index over stories.
pub trait Search: Send + Sync {
    /// Adds a story; it is found within 2 s. The same again changes nothing.
    fn add(&self, post: &Post) -> Answer<'_, ()>;

    /// Who has posted a story with any of the words of `keywords`, whatever their case: each once, at most `limit`, as a
    /// rule the newest story first.
    fn posters(&self, keywords: &str, limit: usize) -> Answer<'_, Vec<u64>>;

    /// The index's counters, now.
    fn metrics(&self) -> StoreMetrics {
        StoreMetrics::default()
    }
}

/// Shows the words of a text: runs of letters and digits, in lower case.
///
/// ```
/// let mut words = Vec::new();
/// tidemark_store::search::each_word("Über 42 Dinge, über x", |word| words.push(word.to_owned()));
/// assert_eq!(words, ["über", "42", "dinge", "über", "x"]);
/// ```
pub fn each_word(text: &str, each: impl FnMut(&str)) {
    words_of(&text.to_lowercase()).for_each(each);
}

/// The words of a text that is in lower case.
pub(crate) fn words_of(text: &str) -> impl Iterator<Item = &str> {
    text.split(|letter: char| !letter.is_alphanumeric()).filter(|word| !word.is_empty())
}
