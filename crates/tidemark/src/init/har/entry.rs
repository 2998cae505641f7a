//! What a HAR file holds, as far as it is read.

use std::time::Duration;

use jiff::Timestamp;
use serde::Deserialize;
use tidemark_scenario::source::Method;
use tidemark_scenario::system_url::SystemUrl;
use tidemark_wire::http1::is_token;
use url::Url;

/// Longest URL, bytes.
const URL_BYTES_MAX: usize = 8 << 10;
/// Longest value of a header, bytes.
const HEADER_BYTES_MAX: usize = 2 << 10;
/// Most headers of a request that are looked at.
const HEADERS_MAX: usize = 100;
/// Longest time that a request may have taken, milliseconds.
const TOOK_MAX_MS: f64 = 3_600_000.0;

/// The file.
#[derive(Deserialize)]
pub(super) struct Recording {
    log: Log,
}

#[derive(Deserialize)]
struct Log {
    #[serde(default)]
    entries: Vec<Recorded>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Recorded {
    started_date_time: Option<String>,
    time: Option<f64>,
    request: Sent,
    response: Option<Answer>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Sent {
    method: String,
    url: String,
    headers: Option<Vec<Pair>>,
    post_data: Option<Body>,
    body_size: Option<f64>,
}

#[derive(Deserialize)]
struct Answer {
    status: Option<f64>,
}

/// A name and its value.
#[derive(Deserialize)]
pub(super) struct Pair {
    pub(super) name: String,
    pub(super) value: Option<String>,
}

/// What was sent behind the headers.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Body {
    pub(super) mime_type: Option<String>,
    pub(super) text: Option<String>,
    pub(super) params: Option<Vec<Pair>>,
    pub(super) encoding: Option<String>,
}

/// A request that can be sent again.
pub(super) struct Entry<'r> {
    pub(super) method: Method,
    pub(super) url: Url,
    /// Since 1970.
    pub(super) started: Option<Duration>,
    pub(super) took: Duration,
    /// The status that it must have again.
    pub(super) status: Option<u64>,
    pub(super) body: Option<&'r Body>,
    /// Whether it had a body that the recording does not have.
    pub(super) lacks_body: bool,
    headers: &'r [Pair],
}

/// Those that can be sent again, in order, and why others cannot.
pub(super) fn read(recording: &Recording) -> (Vec<Entry<'_>>, Vec<(String, usize)>) {
    let (mut entries, mut left_out) = (Vec::new(), Vec::new());
    let mut latest = None;
    for recorded in &recording.log.entries {
        match Entry::read(recorded) {
            Ok(entry) => {
                // one that does not say when it began came after the one before it
                latest = entry.started.or(latest);
                entries.push((latest, entry));
            }
            Err(reason) => count(&mut left_out, reason),
        }
    }
    entries.sort_by_key(|(started, _)| *started);
    (entries.into_iter().map(|(_, entry)| entry).collect(), left_out)
}

/// Counts a reason.
pub(super) fn count(reasons: &mut Vec<(String, usize)>, reason: &str) {
    match reasons.iter_mut().find(|(known, _)| known == reason) {
        Some((_, count)) => *count += 1,
        None => reasons.push((reason.to_owned(), 1)),
    }
}

impl<'r> Entry<'r> {
    fn read(recorded: &'r Recorded) -> Result<Entry<'r>, &'static str> {
        let sent = &recorded.request;
        if sent.url.len() > URL_BYTES_MAX {
            return Err("a URL of more than 8 KiB");
        }
        let url = Url::parse(&sent.url).map_err(|_| "what is no URL")?;
        match url.scheme() {
            "http" | "https" => {}
            "ws" | "wss" => {
                return Err("a WebSocket; steps `ws connect`, `ws send` and `ws expect` make one");
            }
            _ => return Err("what is not requested over HTTP (data:, blob:, an extension)"),
        }
        let method =
            Method::from_name(&sent.method.to_ascii_uppercase()).ok_or("a method that steps do not have")?;
        let status = recorded.response.as_ref().and_then(|answer| answer.status).map(|status| status as u64);
        if status == Some(0) {
            return Err("a request without an answer (blocked or given up)");
        }
        let milliseconds = recorded.time.filter(|time| *time > 0.0).unwrap_or(0.0).min(TOOK_MAX_MS);
        let has_body = |body: &Body| {
            let text = body.text.as_deref().is_some_and(|text| !text.is_empty());
            text || body.params.as_deref().is_some_and(|params| !params.is_empty())
        };
        let lacks_body =
            sent.body_size.is_some_and(|bytes| bytes > 0.0) && !sent.post_data.as_ref().is_some_and(has_body);
        let entry = Entry {
            method,
            url,
            started: recorded.started_date_time.as_deref().and_then(since_1970),
            took: Duration::from_secs_f64(milliseconds / 1_000.0),
            // what a browser had or asked for in part is asked for whole
            status: status.filter(|status| (200..600).contains(status) && ![206, 304].contains(status)),
            body: sent.post_data.as_ref(),
            lacks_body,
            headers: sent.headers.as_deref().unwrap_or_default(),
        };
        match SystemUrl::read(&entry.origin()) {
            Ok(_) => Ok(entry),
            Err(_) => Err("a host that cannot be driven"),
        }
    }

    /// Scheme, host and port.
    pub(super) fn origin(&self) -> String {
        self.url.origin().ascii_serialization()
    }

    /// Headers that can be sent again.
    pub(super) fn headers(&self) -> impl Iterator<Item = (&'r str, &'r str)> + use<'r> {
        self.headers.iter().take(HEADERS_MAX).filter_map(move |header| {
            let (name, value) = (header.name.as_str(), header.value.as_deref()?.trim());
            let is_whole = name.len() <= 100 && is_token(name.as_bytes());
            let is_plain =
                !value.is_empty() && value.len() <= HEADER_BYTES_MAX && !value.contains(char::is_control);
            (is_whole && is_plain).then_some((name, value))
        })
    }

    /// How much of it may come into a scenario.
    pub(super) fn bytes(&self) -> usize {
        let pairs = |pairs: &[Pair]| -> usize {
            pairs.iter().map(|pair| pair.name.len() + pair.value.as_ref().map_or(0, String::len)).sum()
        };
        let body = self.body.map_or(0, |body| {
            body.text.as_ref().map_or(0, String::len) + body.params.as_deref().map_or(0, pairs)
        });
        let headers: usize = self.headers().map(|(name, value)| name.len() + value.len()).sum();
        // and the words around it
        self.url.as_str().len() + body.min(super::body::BODY_BYTES_MAX) + headers + 64
    }
}

fn since_1970(text: &str) -> Option<Duration> {
    let milliseconds = text.parse::<Timestamp>().ok()?.as_millisecond();
    u64::try_from(milliseconds).ok().map(Duration::from_millis)
}
