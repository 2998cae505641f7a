//! Figures pushed to an OpenTelemetry collector: OTLP over HTTP, in protobuf.
//!
//! Sums and histograms are cumulative, from the run's begin, so that a push that is lost takes nothing from the next one:
//! nothing is queued, and a collector that is away for a while misses only the time in between.

mod payload;
mod post;

use std::fmt;
use std::io;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime};

use percent_encoding::percent_decode_str;
use tidemark_record::{Facts, Manifest, RecordError, Sink};
use tidemark_wire::http1::is_token;

use self::post::Endpoint;
use super::{SharedFigures, beside_the_driver, looked_at};
use crate::pin::Pins;

/// Time between two pushes.
const PUSH_EVERY: Duration = Duration::from_secs(5);
/// Longest wait for the push at the end of a run: one that is under way, and its own.
const LAST_PUSH_MAX: Duration = Duration::from_secs(15);
/// Headers that are sent with each push.
const HEADERS_MAX: usize = 32;
/// The environment variable for those headers, as OpenTelemetry calls it.
pub const HEADERS_VARIABLE: &str = "OTEL_EXPORTER_OTLP_HEADERS";

/// What a push says of who makes it.
const USER_AGENT: &str = concat!("tidemark/", env!("CARGO_PKG_VERSION"));

/// Headers for authentication. Nothing shows what they hold.
#[derive(Clone, Default)]
pub struct Headers(Vec<(String, String)>);

impl fmt::Debug for Headers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} headers", self.0.len())
    }
}

impl Headers {
    /// Reads `name=value,name=value`, values percent-encoded where need be.
    ///
    /// # Errors
    /// What is wrong, without any value.
    pub fn parse(text: &str) -> Result<Headers, String> {
        let mut headers = Vec::new();
        for (at, pair) in text.split(',').filter(|pair| !pair.trim().is_empty()).enumerate() {
            let number = at + 1;
            let wrong = |why: &str| format!("header {number} {why}; write name=value,name=value");
            let (name, value) = pair.split_once('=').ok_or_else(|| wrong("has no ="))?;
            let name = name.trim();
            if !is_token(name.as_bytes()) {
                return Err(wrong("has an invalid name"));
            }
            if ["host", "content-length", "content-type", "connection", "transfer-encoding"]
                .iter()
                .any(|own| name.eq_ignore_ascii_case(own))
            {
                return Err(wrong("is set by each push already"));
            }
            let value = percent_decode_str(value.trim()).decode_utf8().map_err(|_| wrong("is not UTF-8"))?;
            if value.chars().any(char::is_control) {
                return Err(wrong("holds control characters"));
            }
            headers.push((name.to_owned(), value.into_owned()));
        }
        if headers.len() > HEADERS_MAX {
            return Err(format!("more than {HEADERS_MAX} headers"));
        }
        Ok(Headers(headers))
    }

    /// Them, and what each push says of itself.
    fn of_a_push(&self) -> Vec<(String, String)> {
        let own = [("content-type", "application/x-protobuf"), ("user-agent", USER_AGENT)];
        let own = own.map(|(name, value)| (name.to_owned(), value.to_owned()));
        own.into_iter().chain(self.0.iter().cloned()).collect()
    }
}

/// What became of the pushes of a run.
#[derive(Debug, Default)]
struct Pushes {
    made: u64,
    failed: u64,
    last_failure: Option<String>,
}

/// Pushes figures until it is dropped. It is told after the [`Figures`](super::Figures) that it looks at.
pub struct Otlp {
    url: String,
    run: String,
    pushes: Arc<Mutex<Pushes>>,
    /// Whoever asks for a push at once is told when it is over.
    orders: Option<SyncSender<SyncSender<()>>>,
    thread: Option<JoinHandle<()>>,
}

impl Otlp {
    /// Pushes to a collector's base URL; nothing before a load begins.
    ///
    /// # Errors
    /// What is wrong with the URL, or that there is no thread to be had.
    pub fn push_to(url: &str, headers: Headers, figures: SharedFigures, pins: &Pins) -> Result<Otlp, String> {
        let endpoint = Endpoint::parse(url)?;
        let pushes = Arc::new(Mutex::new(Pushes::default()));
        let (orders, taken) = sync_channel(1);
        let counted = pushes.clone();
        let pusher = Pusher { endpoint, headers, figures, pushes: counted };
        let thread = beside_the_driver("otlp", pins, move || pusher.run(&taken));
        let thread = thread.map_err(|error: io::Error| error.to_string())?;
        Ok(Otlp {
            url: url.to_owned(),
            run: String::new(),
            pushes,
            orders: Some(orders),
            thread: Some(thread),
        })
    }

    fn pushes(&self) -> std::sync::MutexGuard<'_, Pushes> {
        self.pushes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Pushes now, and waits until that is over.
    fn push_now(&self) {
        let (done, over) = sync_channel(1);
        if self.orders.as_ref().is_some_and(|orders| orders.send(done).is_ok()) {
            // longer than a push can take
            let _ = over.recv_timeout(LAST_PUSH_MAX);
        }
    }

    /// What a person must know of the pushes of the last run, if anything.
    pub fn trouble(&self) -> Option<String> {
        let pushes = self.pushes();
        let reason = pushes.last_failure.as_ref()?;
        let Pushes { made, failed, .. } = *pushes;
        Some(format!(
            "{failed} of {made} pushes of metrics to {} failed, the last one because: {reason}",
            self.url
        ))
    }
}

impl Sink for Otlp {
    fn begin(&mut self, facts: &Facts<'_>) -> Result<(), RecordError> {
        if facts.manifest.id != self.run {
            self.run.clone_from(&facts.manifest.id);
            *self.pushes() = Pushes::default();
        }
        Ok(())
    }

    fn notes(&mut self) -> Vec<String> {
        self.push_now();
        self.trouble().into_iter().collect()
    }

    fn end(&mut self, _: &Manifest) -> Result<(), RecordError> {
        // once more, with the verdict
        self.push_now();
        Ok(())
    }
}

impl Drop for Otlp {
    fn drop(&mut self) {
        self.orders.take();
        if let Some(thread) = self.thread.take() {
            // that it panicked was said by the hook
            let _ = thread.join();
        }
    }
}

/// What the thread has.
struct Pusher {
    endpoint: Endpoint,
    headers: Headers,
    figures: SharedFigures,
    pushes: Arc<Mutex<Pushes>>,
}

impl Pusher {
    fn run(&self, orders: &Receiver<SyncSender<()>>) {
        loop {
            match orders.recv_timeout(PUSH_EVERY) {
                Ok(done) => {
                    self.push();
                    // whoever asked may have gone
                    let _ = done.try_send(());
                }
                Err(RecvTimeoutError::Timeout) => self.push(),
                Err(RecvTimeoutError::Disconnected) => return,
            }
        }
    }

    fn push(&self) {
        let Some(body) = payload::request(&looked_at(&self.figures), SystemTime::now()) else { return };
        let failed = self.endpoint.push(&body, &self.headers).err();
        let mut pushes = self.pushes.lock().unwrap_or_else(PoisonError::into_inner);
        pushes.made += 1;
        pushes.failed += u64::from(failed.is_some());
        pushes.last_failure = failed.or_else(|| pushes.last_failure.take());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_are_read_and_never_shown() {
        let headers = Headers::parse("authorization=Basic%20c2VjcmV0, x-scope = a=b ,").unwrap();
        let read: Vec<_> = headers.0.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        assert_eq!(read, [("authorization", "Basic c2VjcmV0"), ("x-scope", "a=b")]);
        assert_eq!(format!("{headers:?}"), "2 headers");
        for wrong in ["hush", "a b=hush", "=hush", "host=hush", "a=hush%0d%0ab: c", "a=hush%ff"] {
            let error = Headers::parse(wrong).unwrap_err();
            assert!(!error.contains("hush"), "{error}");
        }
    }
}
