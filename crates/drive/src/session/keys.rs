//! What requests do with numbers of the scenario's `keys`: a number or version is taken before one is sent, and settled when it
//! has ended.

use std::sync::Arc;

use tidemark_record::Outcome;
use tidemark_scenario::keys::WriteEnd;
use tidemark_scenario::plan::{KeyStep, KeyUse};
use tidemark_scenario::{Shared, Unmet, Value};

use crate::session::Session;
use crate::session::answer::Wrote;

/// Makes ready what a request needs of its number. Where it is sent again, because nothing of it was taken before, a write stays
/// what it was.
pub(crate) fn begin(step: &KeyStep, shared: &Shared, session: &mut Session) -> Result<(), Unmet> {
    let Some(keys) = shared.keys(step.keys) else { return Ok(()) };
    let begun = match step.does {
        _ if session.cold().is_some_and(|cold| cold.write.is_some()) => return Ok(()),
        KeyUse::Insert => {
            keys.insert(step.keys).ok_or_else(|| lacks("all numbers of these keys are inserted"))
        }
        KeyUse::Write => {
            let number = number(step, session)?;
            keys.write(step.keys, number).ok_or_else(|| lacks("these keys have no such number"))
        }
        KeyUse::Read => {
            let least = keys.least(number(step, session)?);
            session.slots[usize::from(step.version)].set_int(least as i64);
            return Ok(());
        }
    };
    let write = begun?;
    session.slots[usize::from(step.number)].set_int(write.number as i64);
    session.slots[usize::from(step.version)].set_int(write.version as i64);
    session.cold_or_new().write = Some(write);
    Ok(())
}

fn lacks(reason: &'static str) -> Unmet {
    Unmet::Expression { text: Arc::from("number"), reason }
}

fn number(step: &KeyStep, session: &Session) -> Result<u64, Unmet> {
    match session.slots.get(usize::from(step.number)).map_or(Value::Missing, |slot| slot.value()) {
        Value::Int(number) => Ok(u64::try_from(number).unwrap_or(0)),
        Value::Text(text) => {
            Ok(std::str::from_utf8(text).ok().and_then(|text| text.parse().ok()).unwrap_or(0))
        }
        Value::Missing => Err(Unmet::Variable(step.number)),
        _ => Err(lacks("it is no whole number; round(), floor() or ceil() makes it one")),
    }
}

/// Ends a write whose answer does not say that it was made. Whether that is a failed insert: not where this run has tried to
/// insert the number before, as that attempt may have been carried out late.
pub(crate) fn end_unwritten(shared: &Shared, session: &mut Session, wrote: Wrote) -> bool {
    let Some(write) = session.take_write() else { return false };
    let end = match wrote {
        Wrote::No if write.is_insert() => WriteEnd::Taken,
        Wrote::No => WriteEnd::Unsent,
        Wrote::Yes | Wrote::Unknown => WriteEnd::Open,
    };
    if let Some(keys) = shared.keys(write.keys) {
        keys.end(write, end);
    }
    end == WriteEnd::Taken && write.version == 1
}

/// A request has ended.
pub(crate) fn end(shared: &Shared, session: &mut Session, outcome: Outcome) {
    let Some(write) = session.take_write() else { return };
    let end = match outcome {
        Outcome::Ok => WriteEnd::Acknowledged,
        // a redirect of it may fail so, too
        Outcome::Connect | Outcome::Variable if session.sent_ns().is_none() => WriteEnd::Unsent,
        _ => WriteEnd::Open,
    };
    if let Some(keys) = shared.keys(write.keys) {
        keys.end(write, end);
    }
}
