//! Rows of a PostgreSQL or a Cassandra as what they hold: every value of those that a statement has, as they come.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tidemark_drive::{Protocol, Stream, Target};
use tidemark_wire::cql::{self, CqlError, Frames, opcode};
use tidemark_wire::postgres::{self, Messages, PostgresError, Types};

use super::answers::{Answers, failed, patiently};
use super::search::{Bounds, DirectStore, PartReader, StoredContents, Unfinished};
use crate::target::speak;

/// Most bytes of a row, and of a page of them.
const MESSAGE_BYTES: usize = 256 << 20;
/// Longest time without a byte: a statement may have to look for its first row.
const SILENCE: Duration = Duration::from_secs(120);
/// Rows of a page of Cassandra's.
const PAGE_ROWS: i32 = 5_000;
const POSTGRES: &str = "PostgreSQL";
/// What is said before the statement: it is to read only, and bytes come as `\x` and hexadecimal digits.
const SETTINGS: [&str; 2] = ["SET default_transaction_read_only = on", "SET bytea_output = hex"];
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

impl DirectStore for Rows<'_> {}

impl StoredContents for Rows<'_> {
    fn reader(&self) -> Result<Box<dyn PartReader + '_>, Unfinished> {
        Ok(Box::new(self))
    }

    fn hint(&self) -> Option<String> {
        let is_none = self.none.load(Ordering::Relaxed);
        is_none.then(|| format!("the statement of `verify` has no row: {}", self.statement))
    }
}

impl PartReader for &Rows<'_> {
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
    let mut answers = Answers::new(POSTGRES, stream);
    for setting in SETTINGS {
        carry_out(&mut answers, setting, bounds, &mut |_| {})?;
    }
    carry_out(&mut answers, statement, bounds, visit)
}

/// Carries a statement out and shows each value of its rows.
fn carry_out(
    answers: &mut Answers<'_>,
    statement: &str,
    bounds: &Bounds,
    visit: &mut dyn FnMut(&[u8]),
) -> Result<(), Unfinished> {
    let mut question = Vec::new();
    postgres::write::parse("", statement, &mut question);
    postgres::write::Bind::begin("", 0, &mut question).end(&mut question);
    postgres::write::describe_portal(&mut question);
    postgres::write::execute(&mut question);
    postgres::write::sync(&mut question);
    answers.ask(&question)?;
    let mut messages = Messages::new(MESSAGE_BYTES);
    let mut types = Types::default();
    // without its end nobody knows whether these are all rows
    let mut has_ended = false;
    let mut refusal = None;
    let taken = answers.take(bounds, |received| {
        messages.each(received, |message| {
            match message.kind {
                b'T' => types = Types::read(message.payload)?,
                b'D' => types.each_value(message.payload, &mut *visit)?,
                b'E' => refusal = Some(postgres::error_words(message.payload)?),
                // what was done, nothing to do
                b'C' | b'I' => has_ended = true,
                b'Z' if has_ended || refusal.is_some() => return Ok(true),
                // parsed, bound, no rows, a setting, a warning
                b'1' | b'2' | b'n' | b'S' | b'N' | b'A' => {}
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

    /// Answers with the next of these to each question.
    struct Says(std::vec::IntoIter<&'static [u8]>, &'static [u8]);

    impl std::io::Read for Says {
        fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
            std::io::Read::read(&mut self.1, buffer)
        }
    }

    impl std::io::Write for Says {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.1 = self.0.next().unwrap_or_default();
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn rows_without_an_end_are_not_taken_for_all() {
        let set: &[u8] = b"1\0\0\0\x042\0\0\0\x04n\0\0\0\x04C\0\0\0\x08SET\0Z\0\0\0\x05I";
        let read = |last: &'static [u8]| {
            let mut stream = Says(vec![set, set, last].into_iter(), &[]);
            let bounds = Bounds::new(Duration::from_secs(9));
            of_postgres(&mut stream, "SELECT 1", &bounds, &mut |_| {}).map_err(|error| error.to_string())
        };
        assert_eq!(read(b"1\0\0\0\x042\0\0\0\x04n\0\0\0\x04I\0\0\0\x04Z\0\0\0\x05I"), Ok(()));
        let told = read(b"1\0\0\0\x042\0\0\0\x04n\0\0\0\x04Z\0\0\0\x05I").unwrap_err();
        assert!(told.contains("'Z' has no place"), "{told}");
        let told = read(b"E\0\0\0\x17C25006\0Mread only\0\0Z\0\0\0\x05I").unwrap_err();
        assert!(told.contains("25006: read only"), "{told}");
    }

    #[test]
    fn as_many_replicas_are_read_as_it_takes_to_miss_nothing() {
        let local_one = 10;
        assert_eq!([QUORUM, LOCAL_QUORUM, EACH_QUORUM].map(to_read), [QUORUM, LOCAL_QUORUM, QUORUM]);
        assert_eq!([ALL, ONE, local_one].map(to_read), [ONE, ALL, ALL]);
    }
}
