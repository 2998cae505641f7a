//! Ctrl-C: once stops the load and reports what there is, twice stops at once.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::{Handle, Signals};

use crate::child;

/// After the second signal: how long the run may take to stop by itself before its children are killed and the
/// process ends under it.
const ABORT_GRACE: Duration = Duration::from_secs(2);

/// How often a signal came.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum StopRequest {
    /// Go on.
    None,
    /// Stop the load, and report.
    Stop,
    /// Stop at once.
    Abort,
}

/// Watches SIGINT, SIGTERM and SIGHUP as long as it lives. The signals stay without effect after it: what is left
/// to do then is short.
#[derive(Debug)]
pub struct Interrupt {
    count: Arc<AtomicU8>,
    handle: Handle,
    over: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Interrupt {
    /// Begins to watch.
    ///
    /// `before_exit` is called where the process must be ended under the run.
    pub fn watch(before_exit: Option<fn()>) -> io::Result<Interrupt> {
        let mut signals = Signals::new([SIGINT, SIGTERM])?;
        if !hangup_is_ignored() {
            signals.add_signal(SIGHUP)?;
        }
        let handle = signals.handle();
        let count = Arc::new(AtomicU8::new(0));
        let counted = Arc::clone(&count);
        let (over, is_over) = channel::<()>();
        let thread = std::thread::Builder::new().name("signals".into()).spawn(move || {
            for _ in signals.forever() {
                if counted.fetch_add(1, Ordering::SeqCst) == 0 {
                    continue;
                }
                // whoever carries the run out sees the count and drops the watch; if it cannot, this ends it
                if is_over.recv_timeout(ABORT_GRACE) == Err(RecvTimeoutError::Timeout) {
                    child::kill_all();
                    if let Some(before_exit) = before_exit {
                        before_exit();
                    }
                    std::process::exit(crate::EXIT_INTERRUPTED.into());
                }
                return;
            }
        })?;
        Ok(Interrupt { count, handle, over: Some(over), thread: Some(thread) })
    }

    /// What the user wants by now.
    pub fn stop_request(&self) -> StopRequest {
        match self.count.load(Ordering::SeqCst) {
            0 => StopRequest::None,
            1 => StopRequest::Stop,
            _ => StopRequest::Abort,
        }
    }
}

impl Drop for Interrupt {
    fn drop(&mut self) {
        self.over.take();
        self.handle.close();
        if let Some(thread) = self.thread.take() {
            // the thread has nothing to give back; that it panicked would change nothing here
            let _ = thread.join();
        }
    }
}

/// While it lives, SIGINT and SIGTERM end the process at once: nothing else could end what is at work then.
#[cfg(any(feature = "lua", feature = "js"))]
#[derive(Debug)]
pub(crate) struct EndsAtOnce(Vec<signal_hook::SigId>);

#[cfg(any(feature = "lua", feature = "js"))]
impl EndsAtOnce {
    pub(crate) fn begin() -> EndsAtOnce {
        let ends = |signal| {
            let always = Arc::new(std::sync::atomic::AtomicBool::new(true));
            signal_hook::flag::register_conditional_shutdown(signal, crate::EXIT_INTERRUPTED.into(), always)
                .ok()
        };
        EndsAtOnce([SIGINT, SIGTERM].into_iter().filter_map(ends).collect())
    }
}

#[cfg(any(feature = "lua", feature = "js"))]
impl Drop for EndsAtOnce {
    fn drop(&mut self) {
        for id in self.0.drain(..) {
            signal_hook::low_level::unregister(id);
        }
    }
}

/// Whether the process was started with hang-ups ignored (`nohup`), which is then respected.
fn hangup_is_ignored() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).is_some_and(|mask| mask & 1 == 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;

    fn wait_for(interrupt: &Interrupt, stop_request: StopRequest) {
        let begin = Instant::now();
        while interrupt.stop_request() != stop_request {
            assert!(begin.elapsed() < Duration::from_secs(60), "the signal was not seen");
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    #[test]
    fn one_signal_stops_two_abort_and_a_watch_that_is_over_kills_nobody() {
        let interrupt = Interrupt::watch(None).unwrap();
        assert_eq!(interrupt.stop_request(), StopRequest::None);
        signal_hook::low_level::raise(SIGINT).unwrap();
        wait_for(&interrupt, StopRequest::Stop);
        signal_hook::low_level::raise(SIGTERM).unwrap();
        wait_for(&interrupt, StopRequest::Abort);
        // if it came back only after the grace, this process would have ended
        drop(interrupt);
    }
}
