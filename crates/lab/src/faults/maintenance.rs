//! Asks stores for a rewrite of their append-only file, or for a snapshot, and waits until they are done with it.

use std::io;
use std::time::{Duration, Instant};

use super::News;
use crate::exchange::shown;
use crate::figures::{Connection, Endpoint, MaintenanceKind, Scope};
use crate::stop_signal::StopSignal;

/// How long it may take for each answer: it gives none while it forks.
const ANSWER_WITHIN: Duration = Duration::from_secs(30);
/// How often a store is asked whether it is done.
const ASK_EVERY: Duration = Duration::from_millis(50);
/// What a store says that is at something of the kind already: it is asked again.
const BUSY: [&str; 3] = ["in progress", "child process is active", "already"];

/// Asks all of these at once, and tells when the first has begun and when the last is done.
pub fn carry_out(
    endpoints: &[Endpoint],
    word: &str,
    stop: &StopSignal,
    tell: &(dyn Fn(Instant, News) + Sync),
) {
    let began = std::sync::Once::new();
    let began = |at: Instant| began.call_once(|| tell(at, News::Began));
    let ask = |endpoint: &Endpoint| -> io::Result<bool> {
        let kind = endpoint.product.maintenance().iter().find(|kind| kind.word == word);
        let kind = kind.ok_or_else(|| io::Error::other(format!("it has no {word}")))?;
        let done =
            endpoint.speak(ANSWER_WITHIN, stop, |connection| until_done(connection, kind, stop, &began));
        if stop.is_set() { done.or(Ok(false)) } else { done }
    };
    let asked: Vec<(&str, io::Result<bool>)> = std::thread::scope(|scope| {
        let threads: Vec<_> =
            endpoints.iter().map(|endpoint| (endpoint, scope.spawn(|| ask(endpoint)))).collect();
        let joined = threads.into_iter().map(|(endpoint, thread)| {
            let asked = thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            (endpoint.name.as_str(), asked)
        });
        joined.collect()
    });
    let failed = asked.iter().find_map(|(name, asked)| Some((name, asked.as_ref().err()?)));
    match failed {
        Some((name, error)) => {
            tell(Instant::now(), News::Failed(format!("{name}: {}", shown(&error.to_string()))))
        }
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
    stop: &StopSignal,
    began: &dyn Fn(Instant),
) -> io::Result<bool> {
    let mut before = kind.mark(&connection.ask(Scope::Maintenance)?);
    let mut at = Instant::now();
    while let Err(error) = connection.command(kind.command) {
        let busy =
            error.kind() == io::ErrorKind::Other && BUSY.iter().any(|of| error.to_string().contains(of));
        if !busy {
            return Err(error);
        }
        if !stop.wait_until(Instant::now() + ASK_EVERY) {
            return Ok(false);
        }
        before = kind.mark(&connection.ask(Scope::Maintenance)?);
        at = Instant::now();
    }
    began(at);
    let mut seen = false;
    loop {
        let stats = connection.ask(Scope::Maintenance)?;
        let is_on = kind.is_under_way(&stats) == Some(true);
        let is_scheduled = stats.number(kind.scheduled).is_some_and(|number| number > 0);
        seen |= is_on || kind.mark(&stats) != before;
        if seen && !is_on && !is_scheduled {
            return kind.failure(&stats).map_or(Ok(true), |failure| Err(io::Error::other(failure)));
        }
        if !stop.wait_until(Instant::now() + ASK_EVERY) {
            return Ok(false);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::net::SocketAddr;
    use std::sync::Mutex;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;
    use crate::figures::endpoints;
    use crate::figures::tests_servers::{bulk, server};
    use crate::started::held;

    fn news(address: SocketAddr, word: &str, stop: &StopSignal) -> Vec<String> {
        let endpoints = endpoints("cache", &format!("redis://{address}"), &Default::default());
        let told = Mutex::new(Vec::new());
        carry_out(&endpoints, word, stop, &|_, news| held(&told).push(format!("{news:?}")));
        told.into_inner().unwrap()
    }

    /// It forks before it answers.
    #[test]
    fn a_store_that_stands_still_to_fork_is_waited_for() {
        let asked_since = AtomicUsize::new(0);
        let address = server(move |_, asked, stream| {
            if asked == "BGREWRITEAOF" {
                asked_since.store(1, Ordering::Relaxed);
                std::thread::sleep(Duration::from_millis(1_500));
                return stream.write_all(b"+Background append only file rewriting started\r\n").is_ok();
            }
            let at = asked_since.load(Ordering::Relaxed);
            asked_since.store(if at == 0 { 0 } else { at + 1 }, Ordering::Relaxed);
            let text = format!("aof_rewrite_in_progress:{}\r\n", u8::from((1..4).contains(&at)));
            stream.write_all(&bulk(&text)).is_ok()
        });
        let told = news(address, "rewrite", &StopSignal::default());
        assert_eq!(told, ["Began", "Healed(\"has rewritten its append-only file\")"]);
    }

    /// Its counter is of those that succeeded, and it is over before anybody looks.
    #[test]
    fn a_snapshot_that_fails_at_once_is_not_waited_for() {
        let asked_for = AtomicUsize::new(0);
        let address = server(move |_, asked, stream| {
            if asked == "BGSAVE SCHEDULE" {
                asked_for.store(1, Ordering::Relaxed);
                return stream.write_all(b"+Background saving started\r\n").is_ok();
            }
            let status = ["ok", "err"][asked_for.load(Ordering::Relaxed)];
            let text =
                format!("rdb_bgsave_in_progress:0\r\nrdb_saves:3\r\nrdb_last_bgsave_status:{status}\r\n");
            stream.write_all(&bulk(&text)).is_ok()
        });
        let stop = std::sync::Arc::new(StopSignal::default());
        let ends = std::sync::Arc::clone(&stop);
        // or it would wait for ever
        std::thread::spawn(move || {
            std::thread::sleep(Duration::from_secs(60));
            ends.set();
        });
        let told = news(address, "snapshot", &stop);
        assert_eq!(told, ["Began", "Failed(\"cache: the store says \\\"err\\\"\")"]);
    }

    #[test]
    fn the_end_of_the_run_is_no_failure() {
        let stop = std::sync::Arc::new(StopSignal::default());
        let ends = std::sync::Arc::clone(&stop);
        // it answers nothing any more, once it is asked for one
        let address = server(move |_, asked, stream| {
            if asked == "BGREWRITEAOF" {
                ends.set();
                std::thread::sleep(Duration::from_secs(120));
            }
            stream.write_all(&bulk("aof_rewrite_in_progress:0\r\n")).is_ok()
        });
        assert_eq!(news(address, "rewrite", &stop), [""; 0]);
    }
}
