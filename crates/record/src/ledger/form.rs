//! Where a write's content carries its entry, and how a changed content is noticed.

use std::fs;
use std::path::Path;
use std::time::SystemTime;

use regex::bytes::Regex;
use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::{ENTRY_DIGITS, Entry, write_digits};
use crate::error::{RecordError, damaged, io_error};
use crate::files;

/// Digits of a content's checksum, decimal like everything that must look like a number to the system under test.
pub const CHECK_DIGITS: usize = 12;
const CHECK_END: u64 = 1_000_000_000_000;
/// Seeds stay below this, so that every reader of JSON keeps them whole.
const SEED_END: u64 = 1 << 53;

/// The checksum of a write's content, in whose place for it stand zeros: XXH3 (64 bits), keyed with the run's seed and
/// the entry, modulo 10¹². Whoever takes other digits of a content for its entry finds that the checksum is wrong.
pub fn check(seed: u64, entry: Entry, content: &[u8]) -> u64 {
    // Odd factor: every entry has a key of its own.
    let own = (entry.number | u64::from(entry.thread) << 48).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    xxh3_64_with_seed(content, seed ^ own) % CHECK_END
}

/// Writes the checksum of an entry's `content` into its place, the [`CHECK_DIGITS`] bytes from `at` on.
pub fn stamp(seed: u64, entry: Entry, content: &mut [u8], at: usize) {
    let place = at..at + CHECK_DIGITS;
    content[place.clone()].fill(b'0');
    write_digits(check(seed, entry, content), &mut content[place]);
}

/// The seed of a run's checksums: its own, and when it began. So a store that still holds what an earlier run with the
/// same seed wrote cannot answer for this one.
pub fn seed(run_seed: u64, begun: SystemTime) -> u64 {
    let since_1970 = begun.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    xxh3_64_with_seed(&since_1970.as_nanos().to_le_bytes(), run_seed) % SEED_END
}

/// What the content of one kind of write looks like.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Form {
    /// Label of the step that makes such writes.
    pub label: String,
    /// A regular expression for all of it, in the syntax of the `regex` crate, whose groups `entry` and `check` are the
    /// places of its entry and its checksum.
    pub pattern: String,
    /// Where the entry and the checksum begin, where that is always the same: bytes from the begin, or, below 0, from
    /// the end. It only saves the search.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub places: Option<(i64, i64)>,
}

/// A stretch of a content, in its order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Piece<'a> {
    /// Always the same.
    Literal(&'a [u8]),
    /// Anything.
    Varying,
    /// The entry.
    Entry,
    /// The checksum.
    Check,
}

impl Piece<'_> {
    /// Its length, where it has one.
    fn bytes(&self) -> Option<usize> {
        match self {
            Piece::Literal(text) => Some(text.len()),
            Piece::Varying => None,
            Piece::Entry => Some(ENTRY_DIGITS),
            Piece::Check => Some(CHECK_DIGITS),
        }
    }
}

impl Form {
    /// Of contents that consist of these pieces. The pattern holds of them only what shows where entry and checksum are:
    /// so a content that was changed elsewhere is still known, and the checksum tells that it was changed.
    pub fn new(label: &str, pieces: &[Piece<'_>]) -> Form {
        let is_mark = |at: Option<usize>| {
            let piece = at.and_then(|at| pieces.get(at));
            matches!(piece, Some(Piece::Entry | Piece::Check))
        };
        let mut pattern = String::from("(?s-u)^");
        for (at, piece) in pieces.iter().enumerate() {
            match piece {
                Piece::Literal(text) => {
                    push_literal(text, is_mark(at.checked_sub(1)), is_mark(Some(at + 1)), &mut pattern);
                }
                Piece::Varying => push_varying(&mut pattern),
                Piece::Entry => pattern.push_str(&Forms::entry_pattern()),
                Piece::Check => pattern.push_str(&Forms::check_pattern()),
            }
        }
        pattern.push('$');
        let places = place(pieces, Piece::Entry).zip(place(pieces, Piece::Check));
        Form { label: label.to_owned(), pattern, places }
    }
}

/// What a literal tells of the places beside it: all of it between two, else as far as the first byte that is no digit.
fn push_literal(text: &[u8], behind_mark: bool, before_mark: bool, pattern: &mut String) {
    let is_other = |byte: &u8| !byte.is_ascii_digit();
    let stored = match (behind_mark, before_mark) {
        (true, true) => 0..text.len(),
        (true, false) => 0..text.iter().position(is_other).map_or(text.len(), |at| at + 1),
        (false, true) => text.iter().rposition(is_other).unwrap_or(0)..text.len(),
        (false, false) => text.len()..text.len(),
    };
    if stored.start > 0 {
        push_varying(pattern);
    }
    text[stored.clone()].iter().for_each(|byte| push_byte(*byte, pattern));
    if stored.end < text.len() {
        push_varying(pattern);
    }
}

fn push_varying(pattern: &mut String) {
    const VARYING: &str = ".*?";
    if !pattern.ends_with(VARYING) {
        pattern.push_str(VARYING);
    }
}

/// Where a piece begins, if that is always the same.
fn place(pieces: &[Piece<'_>], wanted: Piece<'_>) -> Option<i64> {
    let at = pieces.iter().position(|piece| *piece == wanted)?;
    let length = |pieces: &[Piece<'_>]| pieces.iter().map(Piece::bytes).sum::<Option<usize>>();
    let from_begin = length(&pieces[..at]).and_then(|bytes| i64::try_from(bytes).ok());
    from_begin
        .or_else(|| length(&pieces[at..]).and_then(|bytes| i64::try_from(bytes).ok()).map(|bytes| -bytes))
}

/// A byte that stands for itself in an expression of bytes.
fn push_byte(byte: u8, pattern: &mut String) {
    match byte {
        b' '..=b'~' => pattern.push_str(&regex::escape(char::from(byte).encode_utf8(&mut [0; 4]))),
        _ => pattern.push_str(&format!("\\x{byte:02x}")),
    }
}

/// `ledger/forms.json`: all that is needed to read contents again.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
struct StoredForms {
    seed: u64,
    forms: Vec<Form>,
}

/// Reads contents that a store holds.
#[derive(Debug, Clone)]
pub struct Forms {
    seed: u64,
    forms: Vec<Known>,
}

/// A form, ready to be looked for.
#[derive(Debug, Clone)]
struct Known {
    pattern: Regex,
    places: Option<(i64, i64)>,
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
                true => Ok(Known { pattern, places: form.places }),
                false => Err(format!("the form of {} lacks the group `entry` or `check`", form.label)),
            }
        };
        Ok(Forms { seed, forms: forms.iter().map(pattern).collect::<Result<_, _>>()? })
    }

    /// Notes the forms in a run directory, so that its contents can be read later.
    pub fn write(run_dir: &Path, seed: u64, forms: Vec<Form>) -> Result<(), RecordError> {
        let dir = run_dir.join(files::LEDGER);
        fs::create_dir_all(&dir).map_err(io_error("create", &dir))?;
        let path = dir.join(files::FORMS);
        let text =
            serde_json::to_vec_pretty(&StoredForms { seed, forms }).map_err(|error| damaged(&path, error))?;
        fs::write(&path, text).map_err(io_error("write", &path))
    }

    /// The forms of a run directory.
    pub fn read(run_dir: &Path) -> Result<Forms, RecordError> {
        let path = run_dir.join(files::LEDGER).join(files::FORMS);
        let text = fs::read(&path).map_err(io_error("read", &path))?;
        let stored: StoredForms = crate::json::read(&text).map_err(|error| damaged(&path, error))?;
        Forms::new(stored.seed, &stored.forms).map_err(|reason| damaged(&path, reason))
    }

    /// Whose a content is, and whether it is as it was sent. `spare` is a buffer to work in. A content that is whole by
    /// any of the forms is whole.
    pub fn reading(&self, content: &[u8], spare: &mut Vec<u8>) -> Reading {
        let by_place = |known: &Known| known.at_its_places(content);
        if let Some(entry) =
            self.forms.iter().filter_map(by_place).find_map(|found| self.whole(content, found, spare))
        {
            return Reading::Whole(entry);
        }
        let mut different = None;
        for known in &self.forms {
            let Some(groups) = known.pattern.captures(content) else { continue };
            let (Some(entry), Some(place)) = (groups.name("entry"), groups.name("check")) else { continue };
            let Some(entry) = parsed(entry.as_bytes()) else { continue };
            if let Some(entry) = self.whole(content, (entry, place.start()), spare) {
                return Reading::Whole(entry);
            }
            different.get_or_insert(entry);
        }
        different.map_or(Reading::Foreign, Reading::Different)
    }

    /// The entry, if the checksum at this place is its content's.
    fn whole(&self, content: &[u8], (entry, at): (Entry, usize), spare: &mut Vec<u8>) -> Option<Entry> {
        if content.len().checked_sub(at).is_none_or(|rest| rest < CHECK_DIGITS) {
            return None;
        }
        spare.clear();
        spare.extend_from_slice(content);
        stamp(self.seed, entry, spare, at);
        (spare == content).then_some(entry)
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

impl Known {
    /// The entry that stands at its place, and the place of the checksum.
    fn at_its_places(&self, content: &[u8]) -> Option<(Entry, usize)> {
        let at = |place: i64| match usize::try_from(place) {
            Ok(from_begin) => Some(from_begin),
            Err(_) => content.len().checked_sub(usize::try_from(place.unsigned_abs()).ok()?),
        };
        let (entry, check) = self.places?;
        let entry_at = at(entry)?;
        let digits = content.get(entry_at..entry_at.checked_add(ENTRY_DIGITS)?)?;
        parsed(digits).zip(at(check))
    }
}

fn parsed(digits: &[u8]) -> Option<Entry> {
    std::str::from_utf8(digits).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn form() -> Form {
        let mark = Piece::Literal(b"|");
        let pieces = [Piece::Varying, mark, Piece::Entry, mark, Piece::Check, mark, Piece::Varying];
        Form::new("Write", &pieces)
    }

    fn content(seed: u64, before: &str, entry: Entry, after: &str) -> Vec<u8> {
        let mut content = format!("{before}|{entry}|").into_bytes();
        let at = content.len();
        content.extend_from_slice(&[b'0'; CHECK_DIGITS]);
        content.extend_from_slice(format!("|{after}").as_bytes());
        stamp(seed, entry, &mut content, at);
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
            let form = Form { label: "x".into(), pattern: pattern.into(), places: None };
            assert!(Forms::new(1, &[form]).is_err(), "{pattern}");
        }
    }

    #[test]
    fn a_place_that_never_changes_needs_no_search() {
        let pieces = [Piece::Varying, Piece::Entry, Piece::Literal("·.".as_bytes()), Piece::Check];
        let form = Form::new("Write", &pieces);
        assert_eq!(form.places, Some((-31, -12)));
        assert_eq!(Form::new("Write", &pieces[1..]).places, Some((0, 19)));
        assert_eq!(self::form().places, None);
        // Neither a pattern that never matches nor a misleading place is the other's undoing.
        let blind = Form { pattern: "^(?<entry>a)(?<check>b)$".into(), ..form.clone() };
        let misled = Form { places: Some((-40, 1 << 40)), ..form.clone() };
        let entry = Entry { thread: 1, number: 23 };
        let mut whole = format!("0123456789{entry}·.000000000000").into_bytes();
        let at = whole.len() - CHECK_DIGITS;
        stamp(5, entry, &mut whole, at);
        for form in [blind, misled, form] {
            let forms = Forms::new(5, &[form]).unwrap();
            assert_eq!(forms.reading(&whole, &mut Vec::new()), Reading::Whole(entry));
        }
    }

    #[test]
    fn a_changed_literal_leaves_a_content_known() {
        let pieces = [
            Piece::Literal(b"one of 12|34"),
            Piece::Entry,
            Piece::Literal(b"5.6.7"),
            Piece::Varying,
            Piece::Literal(b" and "),
            Piece::Check,
            Piece::Literal(b"; end"),
        ];
        let form = Form::new("x", &pieces);
        let (entry, check) = (Forms::entry_pattern(), Forms::check_pattern());
        assert_eq!(form.pattern, format!(r"(?s-u)^.*?\|34{entry}5\..*? {check};.*?$"));
        assert_eq!(form.places, Some((12, -17)));
    }

    #[test]
    fn another_form_that_fits_by_chance_hides_nothing() {
        let loose =
            Form::new("Loose", &[Piece::Varying, Piece::Entry, Piece::Varying, Piece::Check, Piece::Varying]);
        let entry = Entry { thread: 0, number: 7 };
        let whole = content(3, "2026112200000000000000001234567890", entry, "123456789012345678901234567890");
        let forms = Forms::new(3, &[loose.clone(), form()]).unwrap();
        assert_eq!(forms.reading(&whole, &mut Vec::new()), Reading::Whole(entry));
        // Digits that were taken for an entry are not found to be whole.
        let forms = Forms::new(3, &[loose]).unwrap();
        assert!(
            matches!(forms.reading(&whole, &mut Vec::new()), Reading::Different(other) if other != entry)
        );
    }

    #[test]
    fn any_byte_stands_for_itself() {
        let all: Vec<u8> = (0..=255).collect();
        let form = Form::new("x", &[Piece::Varying, Piece::Entry, Piece::Literal(&all), Piece::Check]);
        let forms = Forms::new(1, &[Form { places: None, ..form }]).unwrap();
        let entry = Entry { thread: 0, number: 1 };
        let mut whole = [b"?", entry.to_string().as_bytes(), &all[..], &[b'0'; CHECK_DIGITS]].concat();
        let at = whole.len() - CHECK_DIGITS;
        stamp(1, entry, &mut whole, at);
        assert_eq!(forms.reading(&whole, &mut Vec::new()), Reading::Whole(entry));
    }

    #[test]
    fn two_runs_with_one_seed_have_different_checksums() {
        let begun = SystemTime::UNIX_EPOCH + std::time::Duration::from_millis(1_800_000_000_000);
        assert_eq!(seed(7, begun), seed(7, begun));
        assert_ne!(seed(7, begun), seed(7, begun + std::time::Duration::from_millis(1)));
        assert_ne!(seed(7, begun), seed(8, begun));
    }
}
