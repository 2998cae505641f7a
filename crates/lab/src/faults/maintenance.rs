//! Asks stores for a rewrite of their append-only file, or for a snapshot, and waits until they are done with it.

use std::io;
use std::time::{Duration, Instant};

use super::{News, Over};
use crate::figures::{Connection, Endpoint, MaintenanceKind, Scope, Stats};

/// How often a store is asked whether it is done.
const ASK_EVERY: Duration = Duration::from_millis(50);
/// What a store says that is at something of the kind already: it is asked again.
const BUSY: [&str; 3] = ["in progress", "child process is active", "already"];

/// Asks all of these at once, and tells when the first has begun and when the last is done.
pub fn carry_out(endpoints: &[Endpoint], word: &str, over: &Over, tell: &(dyn Fn(Instant, News) + Sync)) {
    let began = std::sync::Once::new();
    let began = |at: Instant| began.call_once(|| tell(at, News::Began));
    let ask = |endpoint: &Endpoint| -> io::Result<bool> {
        let kind = endpoint.product.maintenance().iter().find(|kind| kind.word == word);
        let kind = kind.ok_or_else(|| io::Error::other(format!("it has no {word}")))?;
        endpoint.speak(|connection| until_done(connection, kind, over, &began))
    };
    let asked: Vec<(&str, io::Result<bool>)> = std::thread::scope(|scope| {
        let threads: Vec<_> = endpoints.iter().map(|endpoint| (endpoint, scope.spawn(|| ask(endpoint)))).collect();
        let joined = threads.into_iter().map(|(endpoint, thread)| {
            let asked = thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            (endpoint.name.as_str(), asked)
        });
        joined.collect()
    });
    let failed = asked.iter().find_map(|(name, asked)| Some((name, asked.as_ref().err()?)));
    match failed {
        Some((name, error)) => tell(Instant::now(), News::Failed(format!("{name}: {error}"))),
        None if asked.iter().all(|(_, asked)| matches!(asked, Ok(true))) => {
            let done =
                if word == "snapshot" { "has its snapshot" } else { "has rewritten its append-only file" };
            tell(Instant::now(), News::Healed(done));
        }
        // all was over before
        None => {}
    }
}

/// False if all is over before it is done.
fn until_done(
    connection: &mut Connection<'_>,
    kind: &MaintenanceKind,
    over: &Over,
    began: &dyn Fn(Instant),
) -> io::Result<bool> {
    let counted = |stats: &Stats| kind.counted.iter().find_map(|name| stats.text(name)).map(str::to_owned);
    let is_set = |stats: &Stats, name: &str| stats.number(name).is_some_and(|number| number > 0.0);
    let mut before = counted(&connection.ask(Scope::Maintenance)?);
    let mut at = Instant::now();
    while let Err(error) = connection.command(kind.command) {
        let busy =
            error.kind() == io::ErrorKind::Other && BUSY.iter().any(|of| error.to_string().contains(of));
        if !busy {
            return Err(error);
        }
        if !over.wait_until(Instant::now() + ASK_EVERY) {
            return Ok(false);
        }
        before = counted(&connection.ask(Scope::Maintenance)?);
        at = Instant::now();
    }
    began(at);
    let mut seen = false;
    loop {
        let stats = connection.ask(Scope::Maintenance)?;
        let is_on = is_set(&stats, kind.under_way);
        seen |= is_on || counted(&stats) != before;
        if seen && !is_on && !is_set(&stats, kind.scheduled) {
            return match stats.text(kind.status) {
                Some("ok") | None => Ok(true),
                Some(status) => Err(io::Error::other(format!("it says \"{status}\" of it"))),
            };
        }
        if !over.wait_until(Instant::now() + ASK_EVERY) {
            return Ok(false);
        }
    }
}
