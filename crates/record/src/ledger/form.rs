//! Where a write's content carries its entry, and how a changed content is noticed.

use std::fs;
use std::path::Path;

use regex::bytes::Regex;
use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::{ENTRY_DIGITS, Entry};
use crate::error::{RecordError, damaged, io_error};
use crate::files;

/// Digits of a content's checksum, decimal like everything that must look like a number to the system under test.
pub const CHECK_DIGITS: usize = 12;
const CHECK_END: u64 = 1_000_000_000_000;

/// The checksum of a content in whose place for it stand zeros: XXH3 (64 bits) with the run's seed, modulo 10¹².
pub fn check(seed: u64, content: &[u8]) -> u64 {
    xxh3_64_with_seed(content, seed) % CHECK_END
}

/// Writes the checksum of `content` into its place, the [`CHECK_DIGITS`] bytes from `at` on.
pub fn stamp(seed: u64, content: &mut [u8], at: usize) {
    let place = at..at + CHECK_DIGITS;
    content[place.clone()].fill(b'0');
    write_digits(check(seed, content), &mut content[place]);
}

fn write_digits(mut number: u64, place: &mut [u8]) {
    for digit in place.iter_mut().rev() {
        *digit = b'0' + (number % 10) as u8;
        number /= 10;
    }
}

/// What the content of one kind of write looks like: a regular expression for all of it, whose groups `entry` and
/// `check` are the places of its entry and its checksum.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Form {
    /// Label of the step that makes such writes.
    pub label: String,
    /// The expression, in the syntax of the `regex` crate.
    pub pattern: String,
}

/// `ledger/forms.json`: all that is needed to read contents again.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
struct Kept {
    seed: u64,
    forms: Vec<Form>,
}

/// Reads contents that a store holds.
#[derive(Debug, Clone)]
pub struct Forms {
    seed: u64,
    patterns: Vec<Regex>,
}

/// What a content turned out to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reading {
    /// This write's, as it was sent.
    Whole(Entry),
    /// This write's, as far as can be told, but its checksum is another.
    Different(Entry),
    /// Nothing that this run wrote.
    Foreign,
}

impl Forms {
    /// Of these kinds of writes, of a run with this seed.
    ///
    /// # Errors
    /// If a pattern is no regular expression with the groups `entry` and `check`.
    pub fn new(seed: u64, forms: &[Form]) -> Result<Forms, String> {
        let pattern = |form: &Form| {
            let pattern = Regex::new(&form.pattern).map_err(|error| error.to_string())?;
            let has = |group| pattern.capture_names().flatten().any(|name| name == group);
            match has("entry") && has("check") {
                true => Ok(pattern),
                false => Err(format!("the form of {} lacks the group `entry` or `check`", form.label)),
            }
        };
        Ok(Forms { seed, patterns: forms.iter().map(pattern).collect::<Result<_, _>>()? })
    }

    /// Notes the forms in a run directory, so that its contents can be read later.
    pub fn write(run_dir: &Path, seed: u64, forms: Vec<Form>) -> Result<(), RecordError> {
        let dir = run_dir.join(files::LEDGER);
        fs::create_dir_all(&dir).map_err(io_error("create", &dir))?;
        let path = dir.join(files::FORMS);
        let text = serde_json::to_vec_pretty(&Kept { seed, forms }).map_err(|error| damaged(&path, error))?;
        fs::write(&path, text).map_err(io_error("write", &path))
    }

    /// The forms of a run directory.
    pub fn read(run_dir: &Path) -> Result<Forms, RecordError> {
        let path = run_dir.join(files::LEDGER).join(files::FORMS);
        let text = fs::read(&path).map_err(io_error("read", &path))?;
        let kept: Kept = serde_json::from_slice(&text).map_err(|error| damaged(&path, error))?;
        Forms::new(kept.seed, &kept.forms).map_err(|reason| damaged(&path, reason))
    }

    /// Whose a content is, and whether it is as it was sent. `spare` is a buffer to work in.
    pub fn reading(&self, content: &[u8], spare: &mut Vec<u8>) -> Reading {
        for pattern in &self.patterns {
            let Some(groups) = pattern.captures(content) else { continue };
            let (Some(entry), Some(place)) = (groups.name("entry"), groups.name("check")) else { continue };
            let digits = std::str::from_utf8(entry.as_bytes()).ok();
            let Some(entry) = digits.and_then(|digits| digits.parse::<Entry>().ok()) else { continue };
            if place.len() != CHECK_DIGITS {
                return Reading::Different(entry);
            }
            spare.clear();
            spare.extend_from_slice(content);
            stamp(self.seed, spare, place.start());
            return if spare == content { Reading::Whole(entry) } else { Reading::Different(entry) };
        }
        Reading::Foreign
    }

    /// The part of a pattern that an entry's place takes.
    pub fn entry_pattern() -> String {
        format!("(?<entry>[0-9]{{{ENTRY_DIGITS}}})")
    }

    /// The part of a pattern that a checksum's place takes.
    pub fn check_pattern() -> String {
        format!("(?<check>[0-9]{{{CHECK_DIGITS}}})")
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn form() -> Form {
        let pattern = format!(r"(?s-u)^.*?\|{}\|{}\|.*?$", Forms::entry_pattern(), Forms::check_pattern());
        Form { label: "Write".into(), pattern }
    }

    fn content(seed: u64, before: &str, entry: Entry, after: &str) -> Vec<u8> {
        let mut content = format!("{before}|{entry}|").into_bytes();
        let at = content.len();
        content.extend_from_slice(&[b'0'; CHECK_DIGITS]);
        content.extend_from_slice(format!("|{after}").as_bytes());
        stamp(seed, &mut content, at);
        content
    }

    proptest! {
        #[test]
        fn a_content_is_known_again_and_a_changed_one_too(
            seed in any::<u64>(), number in 0..1_000_000u64, before in "[a-z]{0,40}", after in "[a-z]{0,40}",
            at in any::<prop::sample::Index>(), bit in 0..8u8,
        ) {
            let entry = Entry { thread: 3, number };
            let forms = Forms::new(seed, &[form()]).unwrap();
            let mut whole = content(seed, &before, entry, &after);
            let mut spare = Vec::new();
            prop_assert_eq!(forms.reading(&whole, &mut spare), Reading::Whole(entry));
            let at = at.index(whole.len());
            whole[at] ^= 1 << bit;
            let is_whole = matches!(forms.reading(&whole, &mut spare), Reading::Whole(_));
            prop_assert!(!is_whole);
        }

        #[test]
        fn any_bytes_are_read(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let forms = Forms::new(1, &[form()]).unwrap();
            prop_assert_eq!(forms.reading(&bytes, &mut Vec::new()), Reading::Foreign);
        }
    }

    #[test]
    fn forms_are_kept_in_the_run_directory() {
        let dir = tempfile::tempdir().unwrap();
        Forms::write(dir.path(), 7, vec![form()]).unwrap();
        let forms = Forms::read(dir.path()).unwrap();
        let entry = Entry { thread: 0, number: 12 };
        let whole = content(7, "a", entry, "b");
        assert_eq!(forms.reading(&whole, &mut Vec::new()), Reading::Whole(entry));
        let other_run = content(8, "a", entry, "b");
        assert_eq!(forms.reading(&other_run, &mut Vec::new()), Reading::Different(entry));
        assert_eq!(forms.reading(b"something else", &mut Vec::new()), Reading::Foreign);
    }

    #[test]
    fn a_pattern_without_its_groups_is_refused() {
        for pattern in ["(", "^a$", "(?<entry>a)"] {
            let form = Form { label: "x".into(), pattern: pattern.into() };
            assert!(Forms::new(1, &[form]).is_err(), "{pattern}");
        }
    }
}
