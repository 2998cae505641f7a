//! Nothing lost? Everything that a system holds after the load is read back and held against the ledger.
//!
//! A [`Recipe`] says how; it is written into the run directory when the run begins, so that
//! [`again`] can do the same later, also for a run whose driver was killed. Where contents come from is behind
//! [`StoredContents`]: the system's own [API](Pages), page by page, or its store, read [directly](direct_store). Whatever
//! keeps the search from seeing everything makes the ledger *not verified*, which is never a pass.

pub(crate) mod answers;
mod client;
mod direct;
mod directory;
mod enter;
mod hidden;
mod pages;
mod recipe;
mod rows;
pub(crate) mod search;
#[cfg(test)]
mod tests;

use std::path::Path;
use std::time::{Duration, Instant};

use tidemark_drive::Target;
use tidemark_record::ledger::{Entry, Findings, Forms, Ledger, Search};
use tidemark_record::summary::{self, EntryExample, LOST_SECONDS, LostWhen, Verified};
use tidemark_record::{RecordError, Run, write_manifest};

use client::Client;
pub use direct::direct_store;
pub use pages::Pages;
use pages::ask_number;
pub use recipe::{Known, Recipe};
pub use search::{Bounds, DirectStore, PartReader, StoredContents, Unfinished};

use crate::LabError;
use crate::interrupt::{Interrupt, StopRequest};
use crate::shipped::ShippedStores;

/// Why nothing was asked where a scenario does not say how.
pub const NO_VERIFY: &str = "the scenario does not say how to read everything back (verify:)";
/// Why nothing was asked where there is nothing to hold it against.
pub const NO_LEDGER: &str = "no step enters its writes in the ledger (ledger:)";

/// How far a search is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Step {
    /// Contents read.
    pub read: u64,
    /// Writes that the system acknowledged: about so many there will be.
    pub of: u64,
}

/// What a run entered in its ledger, before anybody looked; none where it kept no ledger.
///
/// # Errors
/// If the ledger cannot be read.
pub fn entered(run_dir: &Path, not_verified: &str) -> Result<Option<summary::Ledger>, RecordError> {
    Ok(read(run_dir)?.map(|(ledger, _)| unverified(&ledger, not_verified.into())))
}

/// Where a store is to be read directly into which its system brings what it took only later: asks that until nothing
/// is missing there, and notes in the recipe of the run that nobody needs to be asked again. Returns why it could not.
///
/// # Errors
/// If the recipe cannot be understood or written.
pub fn catch_up(
    run_dir: &Path,
    recipe: &mut Recipe,
    target: &Target,
    goes_on: &dyn Fn() -> bool,
    progress: &mut dyn FnMut(Step),
) -> Result<Option<Unfinished>, LabError> {
    let Some(question) = recipe.behind.as_ref().filter(|_| recipe.store.is_some()) else { return Ok(None) };
    let bounds = Bounds::new(recipe.within());
    let ask = || ask_number(question, Client::new(target, &recipe.headers), &bounds);
    let ledger = read(run_dir).map_err(|error| LabError::Measure(error.to_string()))?;
    let of = ledger.map_or(0, |(ledger, _)| ledger.acknowledged());
    let mut tell = |read| progress(Step { read, of });
    let waited = search::settle(recipe.settle(), &bounds, goes_on, &mut tell)
        .and_then(|()| search::catch_up(&ask, &bounds, goes_on, &mut tell));
    if let Err(reason) = waited {
        return Ok(Some(reason));
    }
    recipe.caught_up();
    recipe.write(run_dir).map(|()| None)
}

/// Holds what `contents` shows against the ledger of a run. `goes_on` is asked several times a second; once it says
/// no, the ledger is not verified.
///
/// # Errors
/// If the ledger cannot be read.
pub fn verify(
    run_dir: &Path,
    recipe: &Recipe,
    contents: &dyn StoredContents,
    goes_on: &dyn Fn() -> bool,
    progress: &mut dyn FnMut(Step),
) -> Result<summary::Ledger, RecordError> {
    let Some((ledger, forms)) = read(run_dir)? else {
        return Ok(no_ledger());
    };
    if let Some(damage) = ledger.damage() {
        return Ok(unverified(&ledger, incomplete(damage)));
    }
    let begin = Instant::now();
    let bounds = Bounds::new(recipe.within());
    let of = ledger.acknowledged();
    let mut tell = |read| progress(Step { read, of });
    let searched = search::settle(recipe.settle(), &bounds, goes_on, &mut tell)
        .and_then(|()| search::catch_up(&|| contents.behind(&bounds), &bounds, goes_on, &mut tell))
        .and_then(|()| {
            search::search(&ledger, &forms, contents, recipe.parallel, &bounds, goes_on, &mut tell)
        });
    Ok(match (searched, contents.unread()) {
        (Ok((search, _)), Some(unread)) => {
            let found = search.findings().found;
            let reason = format!(
                "{unread}; the others hold {found} of {of} acknowledged writes, and whether the rest is lost nobody knows"
            );
            unverified(&ledger, reason)
        }
        (Ok((search, counted)), None) => summary::Ledger {
            sent: ledger.sent(),
            acknowledged: of,
            verified: Some(Verified {
                hint: contents.hint(),
                absent: contents.absent(),
                ..verified(&ledger, &search, counted, begin.elapsed())
            }),
            not_verified: None,
            torn: ledger.torn(),
            broke_off: false,
        },
        (Err(reason), _) => unverified(&ledger, reason.to_string()),
    })
}

/// Verifies a finished run once more, by the recipe that it kept, and writes the result into it. `url`: where its
/// system is now, if not where it was. `given`: the secrets of the recipe, by name; those of the environment are there. `shipped` reads what a shipped system stored. A search that did not see everything takes nothing from what an earlier one found.
///
/// Returns the exit status that says what the ledger alone came to: 0 nothing lost, or not more than the objectives
/// allow; 1 something lost, doubled or changed; 3 not verified. SIGINT, SIGTERM and SIGHUP end the search.
///
/// # Errors
/// If the run kept no recipe, the URL leads nowhere, the store is gone, or the run cannot be read or written.
pub fn again(
    run: &mut Run,
    url: Option<&str>,
    given: &[(String, String)],
    shipped: &dyn ShippedStores,
    progress: &mut dyn FnMut(Step),
) -> Result<u8, LabError> {
    let interrupt =
        Interrupt::watch(None).map_err(|error| LabError::Measure(format!("no signals: {error}")))?;
    let goes_on = || interrupt.stop_request() == StopRequest::None;
    let mut recipe = Recipe::read(&run.dir, given, url)?;
    match url {
        Some(url) if recipe.asks_the_system() => recipe.move_to(url),
        Some(_) => {
            let reason = "--url has no meaning for this run: its store is read, and its system not asked";
            return Err(LabError::Usage(reason.into()));
        }
        None => {}
    }
    let failed = |error: RecordError| LabError::Measure(error.to_string());
    let target = recipe.target()?;
    // a run that came to its end has waited already
    let missing = catch_up(&run.dir, &mut recipe, &target, &goes_on, progress)?;
    let mut search = |contents: &dyn StoredContents| {
        verify(&run.dir, &recipe, contents, &goes_on, progress).map_err(failed)
    };
    let shrunk = shrunk(&run.dir, run.manifest.summary.ledger.as_ref()).map_err(failed)?;
    let ledger = match (missing, direct_store(&recipe, &run.dir, &target, shipped)) {
        _ if shrunk.is_some() => shrunk.unwrap_or_default(),
        (Some(reason), _) => {
            entered(&run.dir, &reason.to_string()).map_err(failed)?.unwrap_or_else(no_ledger)
        }
        (None, Some(store)) => {
            store.must_be_there()?;
            search(&*store)?
        }
        (None, None) => search(&Pages::new(&recipe, &target)?)?,
    };
    let broke_off = run.manifest.summary.ledger.as_ref().is_some_and(|ledger| ledger.broke_off);
    let known = run.manifest.summary.ledger.as_ref().and_then(|ledger| ledger.verified.as_ref());
    let masked = |reason: &String| recipe.secrets.masked(reason);
    let not_verified = ledger.not_verified.as_ref().map(masked);
    let ledger = summary::Ledger { not_verified, broke_off, ..ledger };
    if let (Some(reason), Some(known)) = (&ledger.not_verified, known) {
        if was_stopped(&ledger) {
            return Err(LabError::Interrupted(None));
        }
        let asked = url.is_none() && recipe.asks_the_system();
        let moved = if asked { "; is the system there? --url says where it is now" } else { "" };
        let stays = format!("what was found at {} stays", known.verified_at);
        return Err(LabError::Measure(format!("not verified: {reason}{moved}; {stays}")));
    }
    let objectives = recipe.objectives();
    enter::enter(&mut run.manifest, &objectives, ledger);
    write_manifest(&run.dir, &run.manifest).map_err(failed)?;
    Ok(enter::exit_status(&run.manifest, &objectives))
}

/// What a search came to, in one line.
pub fn in_words(ledger: &summary::Ledger) -> String {
    match (&ledger.verified, &ledger.not_verified) {
        (Some(verified), _) => format!(
            "{} acknowledged writes: {} found, {} lost, {} duplicated, {} different; {} found that {}",
            ledger.acknowledged,
            verified.found,
            verified.lost,
            verified.duplicated,
            verified.different,
            verified.unacknowledged_found,
            match ledger.is_cut_off() {
                true => "may have been acknowledged: the run broke off, and what was sent last is not known",
                false => "were never acknowledged",
            }
        ),
        (None, reason) => format!("not verified: {}", reason.as_deref().unwrap_or("nobody looked")),
    }
}

/// Whether it was the user who ended the search.
pub fn was_stopped(ledger: &summary::Ledger) -> bool {
    ledger.not_verified.as_deref() == Some(Unfinished::Stopped.to_string().as_str())
}

/// Ledger and forms of a run; none where it kept none.
fn read(run_dir: &Path) -> Result<Option<(Ledger, Forms)>, RecordError> {
    match Forms::read(run_dir) {
        Ok(forms) => Ok(Some((Ledger::read(run_dir)?, forms))),
        Err(RecordError::Io { source, .. }) if source.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Why a ledger that does not hold what it held is nothing to verify by.
fn incomplete(damage: &str) -> String {
    format!("the ledger is not whole: {damage}, so that nobody knows all that was acknowledged")
}

/// What a run's ledger lacks of what is known to have been in it.
fn shrunk(run_dir: &Path, known: Option<&summary::Ledger>) -> Result<Option<summary::Ledger>, RecordError> {
    let (Some(known), Some(is)) = (known, entered(run_dir, "")?) else { return Ok(None) };
    let shrunk = is.sent < known.sent || is.acknowledged < known.acknowledged;
    let reason = format!(
        "it holds {} acknowledged writes of {} sent, but the run had {} of {}",
        is.acknowledged, is.sent, known.acknowledged, known.sent
    );
    Ok(shrunk.then(|| summary::Ledger { not_verified: Some(incomplete(&reason)), ..is }))
}

fn no_ledger() -> summary::Ledger {
    summary::Ledger { not_verified: Some(NO_LEDGER.into()), ..summary::Ledger::default() }
}

fn unverified(ledger: &Ledger, reason: String) -> summary::Ledger {
    summary::Ledger {
        sent: ledger.sent(),
        acknowledged: ledger.acknowledged(),
        verified: None,
        not_verified: Some(reason),
        torn: ledger.torn(),
        broke_off: false,
    }
}

fn verified(ledger: &Ledger, search: &Search<'_>, counted: Option<u64>, took: Duration) -> Verified {
    let findings: Findings = search.findings();
    let mut examples = Vec::new();
    for (kind, entries) in [
        ("lost", &findings.lost_examples),
        ("duplicated", &findings.duplicated_examples),
        ("different", &findings.different_examples),
        ("unacknowledged_found", &findings.unacknowledged_examples),
    ] {
        let example = |entry: &Entry| EntryExample {
            kind: kind.into(),
            entry: entry.to_string(),
            sent_us: ledger.sent_between(*entry),
        };
        examples.extend(entries.iter().map(example));
    }
    let mut lost_when: Vec<LostWhen> = search.lost_when();
    lost_when.truncate(LOST_SECONDS);
    Verified {
        found: findings.found,
        lost: findings.lost,
        changed: findings.changed,
        incomplete: findings.incomplete,
        duplicated: findings.duplicated,
        unacknowledged_found: findings.unacknowledged_found,
        different: findings.different,
        foreign: findings.foreign,
        counted,
        absent: 0,
        hint: None,
        took_s: took.as_secs_f64(),
        verified_at: jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
        lost_when,
        examples,
    }
}
