//! Rows of a PostgreSQL or a Cassandra as what they hold: every value of those that a statement has, as they come.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tidemark_drive::{Protocol, Stream, Target};
use tidemark_wire::cql::{self, CqlError, Frames, opcode};
use tidemark_wire::postgres::{self, Messages, PostgresError};

use super::answers::{Answers, failed, patiently};
use super::search::{Bounds, DirectStore, Part, StoredContents, Unfinished};
use crate::LabError;
use crate::target::speak;

/// Most bytes of a row, and of a page of them.
const MESSAGE_BYTES: usize = 256 << 20;
/// Longest time without a byte: a statement may have to look for its first row.
const SILENCE: Duration = Duration::from_secs(120);
/// Rows of a page of Cassandra's.
const PAGE_ROWS: i32 = 5_000;
const POSTGRES: &str = "PostgreSQL";
const CASSANDRA: &str = "Cassandra";

/// Consistencies, as the protocol counts them.
const ONE: u16 = 1;
const QUORUM: u16 = 4;
const ALL: u16 = 5;
const LOCAL_QUORUM: u16 = 6;
const EACH_QUORUM: u16 = 7;

/// Reads the rows of a statement.
pub struct Rows<'a> {
    target: &'a Target,
    statement: &'a str,
    /// Whether there was none.
    none: AtomicBool,
}

impl<'a> Rows<'a> {
    /// Those that this statement has at this server.
    pub fn new(target: &'a Target, statement: &'a str) -> Rows<'a> {
        Rows { target, statement, none: AtomicBool::new(false) }
    }
}

impl DirectStore for Rows<'_> {
    fn must_be_there(&self) -> Result<(), LabError> {
        Ok(())
    }
}

impl StoredContents for Rows<'_> {
    fn parts(&self) -> usize {
        1
    }

    fn reader(&self) -> Result<Box<dyn Part + '_>, Unfinished> {
        Ok(Box::new(self))
    }

    fn count(&self, _: &Bounds) -> Result<Option<u64>, Unfinished> {
        Ok(None)
    }

    fn hint(&self) -> Option<String> {
        let is_none = self.none.load(Ordering::Relaxed);
        is_none.then(|| format!("the statement of `verify` has no row: {}", self.statement))
    }
}

impl Part for &Rows<'_> {
    fn read(&mut self, _: usize, bounds: &Bounds, visit: &mut dyn FnMut(&[u8])) -> Result<(), Unfinished> {
        let mut seen = false;
        let mut shown = |value: &[u8]| {
            seen = true;
            visit(value);
        };
        let mut target = self.target.clone();
        let (name, consistency) = match &target.protocol {
            Protocol::Postgres(_) => (POSTGRES, None),
            Protocol::Cassandra(cassandra) => (CASSANDRA, Some(to_read(cassandra.consistency))),
            other => return Err(Unfinished::Failed(format!("{} has no rows to read", other.name()))),
        };
        patiently(name, bounds, || {
            speak(&mut target, SILENCE, |stream| match consistency {
                None => of_postgres(stream, self.statement, bounds, &mut shown),
                Some(consistency) => of_cassandra(stream, self.statement, consistency, bounds, &mut shown),
            })
        })??;
        self.none.store(!seen, Ordering::Relaxed);
        Ok(())
    }
}

/// As many replicas as it takes to miss nothing that was acknowledged by so many.
fn to_read(written: u16) -> u16 {
    match written {
        QUORUM | EACH_QUORUM => QUORUM,
        LOCAL_QUORUM => LOCAL_QUORUM,
        ALL => ONE,
        _ => ALL,
    }
}

fn of_postgres(
    stream: &mut dyn Stream,
    statement: &str,
    bounds: &Bounds,
    visit: &mut dyn FnMut(&[u8]),
) -> Result<(), Unfinished> {
    let mut question = Vec::new();
    postgres::write::parse("", statement, &mut question);
    postgres::write::Bind::begin("", 0, &mut question).end(&mut question);
    postgres::write::execute(&mut question);
    postgres::write::sync(&mut question);
    let mut answers = Answers::new(POSTGRES, stream);
    answers.ask(&question)?;
    let mut messages = Messages::new(MESSAGE_BYTES);
    let mut refusal = None;
    let taken = answers.take(bounds, |received| {
        messages.each(received, |message| {
            match message.kind {
                b'D' => each_value(message.payload, visit)?,
                b'E' => refusal = Some(postgres::error_words(message.payload)?),
                b'Z' => return Ok(true),
                // parsed, bound, a setting, a warning, what was done, nothing to do
                b'1' | b'2' | b'S' | b'N' | b'A' | b'C' | b'I' => {}
                other => return Err(PostgresError::Unexpected(other)),
            }
            Ok(false)
        })
    });
    match refusal {
        Some(words) => Err(failed(POSTGRES, "the server answered", words)),
        None => taken,
    }
}

/// The values of a row, those that are null left out.
fn each_value(row: &[u8], visit: &mut dyn FnMut(&[u8])) -> Result<(), PostgresError> {
    let (count, mut rest) = row.split_first_chunk::<2>().ok_or(PostgresError::Malformed)?;
    for _ in 0..u16::from_be_bytes(*count) {
        let (length, values) = rest.split_first_chunk::<4>().ok_or(PostgresError::Malformed)?;
        rest = values;
        if let Ok(length) = usize::try_from(i32::from_be_bytes(*length)) {
            let (value, behind) = rest.split_at_checked(length).ok_or(PostgresError::Malformed)?;
            visit(value);
            rest = behind;
        }
    }
    Ok(())
}

fn of_cassandra(
    stream: &mut dyn Stream,
    statement: &str,
    consistency: u16,
    bounds: &Bounds,
    visit: &mut dyn FnMut(&[u8]),
) -> Result<(), Unfinished> {
    let mut answers = Answers::new(CASSANDRA, stream);
    let mut frames = Frames::new(MESSAGE_BYTES);
    let mut question = Vec::new();
    let mut page: Option<Box<[u8]>> = None;
    loop {
        question.clear();
        cql::write::query_page(statement, consistency, PAGE_ROWS, page.as_deref(), &mut question);
        answers.ask(&question)?;
        let mut refusal = None;
        answers.take(bounds, |received| {
            frames.each(received, |frame| {
                match frame.opcode {
                    opcode::RESULT => page = cql::each_value(frame.body, visit)?,
                    opcode::ERROR => refusal = Some(cql::error_words(frame.body)?),
                    other => return Err(CqlError::Unexpected(other)),
                }
                Ok(true)
            })
        })?;
        if let Some(words) = refusal {
            return Err(failed(CASSANDRA, "the server answered", words));
        }
        if page.is_none() {
            return Ok(());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_values_of_a_row_are_shown_and_what_is_no_row_is_told() {
        let row = b"\0\x03\0\0\0\x02ab\xff\xff\xff\xff\0\0\0\0";
        let mut shown: Vec<Vec<u8>> = Vec::new();
        each_value(row, &mut |value| shown.push(value.to_vec())).unwrap();
        assert_eq!(shown, [b"ab".to_vec(), Vec::new()]);
        for cut in 0..row.len() {
            assert_eq!(each_value(&row[..cut], &mut |_| {}), Err(PostgresError::Malformed), "{cut}");
        }
    }

    #[test]
    fn as_many_replicas_are_read_as_it_takes_to_miss_nothing() {
        let local_one = 10;
        assert_eq!([QUORUM, LOCAL_QUORUM, EACH_QUORUM].map(to_read), [QUORUM, LOCAL_QUORUM, QUORUM]);
        assert_eq!([ALL, ONE, local_one].map(to_read), [ONE, ALL, ALL]);
    }
}
