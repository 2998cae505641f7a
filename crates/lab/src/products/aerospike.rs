//! An Aerospike as what it holds: the value of every bin of the records of a set, which a scan of all partitions tells.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tidemark_drive::{Protocol, Stream, Target};
use tidemark_wire::aerospike::{Found, PARTITIONS, Records, scan, words};

use crate::target::speak;
use crate::verify::answers::{Answers, failed, patiently};
use crate::verify::search::{Bounds, DirectStore, PartReader, StoredContents, Unfinished};

const SERVER: &str = "Aerospike";
/// Most bytes of a frame, in which there are many records.
const FRAME_BYTES: usize = 256 << 20;
/// Longest time without a byte.
const SILENCE: Duration = Duration::from_secs(30);
/// How a node calls it that nothing is in a set.
const NONE: u8 = 2;

/// Reads the records of a set.
pub struct Set<'a> {
    target: &'a Target,
    name: &'a str,
    /// Whether there was none.
    none: AtomicBool,
}

impl<'a> Set<'a> {
    /// Those of this server in the set of this name; of all sets where it is empty.
    pub fn new(target: &'a Target, name: &'a str) -> Set<'a> {
        Set { target, name, none: AtomicBool::new(false) }
    }
}

impl DirectStore for Set<'_> {}

impl StoredContents for Set<'_> {
    fn reader(&self) -> Result<Box<dyn PartReader + '_>, Unfinished> {
        Ok(Box::new(self))
    }

    fn hint(&self) -> Option<String> {
        let is_none = self.none.load(Ordering::Relaxed);
        is_none.then(|| format!("no record is in the set \"{}\" (`set` of `verify`)", self.name))
    }
}

impl PartReader for &Set<'_> {
    fn read(&mut self, _: usize, bounds: &Bounds, visit: &mut dyn FnMut(&[u8])) -> Result<(), Unfinished> {
        let mut target = self.target.clone();
        let Protocol::Aerospike(aerospike) = &target.protocol else {
            return Err(Unfinished::Failed(format!("{} has no sets to read", target.protocol.name())));
        };
        let mut question = Vec::new();
        let silence_ms = u32::try_from(SILENCE.as_millis()).unwrap_or(u32::MAX);
        scan(&aerospike.namespace, self.name, fastrand::u64(1..), silence_ms, &mut question);
        let mut seen = false;
        let mut shown = |value: &[u8]| {
            seen = true;
            visit(value);
        };
        patiently(SERVER, bounds, || {
            speak(&mut target, SILENCE, |stream| values(stream, &question, bounds, &mut shown))
        })??;
        self.none.store(!seen, Ordering::Relaxed);
        Ok(())
    }
}

/// Shows what a scan tells. It is whole where every partition was.
fn values(
    stream: &mut dyn Stream,
    question: &[u8],
    bounds: &Bounds,
    visit: &mut dyn FnMut(&[u8]),
) -> Result<(), Unfinished> {
    let mut answers = Answers::new(SERVER, stream);
    answers.ask(question)?;
    let mut records = Records::new(FRAME_BYTES);
    let mut partitions = 0;
    let mut wrong = None;
    answers.take(bounds, |received| {
        records.decode(received, &mut |found| match found {
            Found::Value(value) => visit(value),
            Found::Partition { code: 0, .. } => partitions += 1,
            Found::Partition { number, code } => {
                wrong = Some(format!("partition {number} is not there: {}", words(code)));
            }
            Found::End { code: 0 | NONE } => {}
            Found::End { code } => wrong = Some(format!("{code}: {}", words(code))),
        })
    })?;
    match wrong {
        Some(wrong) => Err(failed(SERVER, "not all records were told", wrong)),
        None if partitions < PARTITIONS => {
            let told = format!("the scan ended after {partitions} of {PARTITIONS} partitions");
            Err(failed(SERVER, "not all records were told", told))
        }
        None => Ok(()),
    }
}
