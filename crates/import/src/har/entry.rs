//! What a HAR file holds, as far as it is read. Browsers and proxies differ in what they leave out and what they add.

use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Deserializer};
use serde_json::Value as Json;
use tidemark_scenario::source::method_as_sent;
use tidemark_scenario::system_url::SystemUrl;
use tidemark_wire::http1::is_token;
use url::Url;

use super::body::encoded;

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
    pages: Option<Vec<Page>>,
}

/// A page that was opened.
#[derive(Deserialize)]
pub(super) struct Page {
    pub(super) id: Option<String>,
    pub(super) title: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Recorded {
    started_date_time: Option<String>,
    time: Option<f64>,
    request: Option<Sent>,
    response: Option<Answer>,
    pageref: Option<String>,
    /// Of Chrome and its kin: `document`, `xhr`, `websocket`, `preflight`, …
    #[serde(rename = "_resourceType")]
    resource_type: Option<String>,
    /// Of the same: the cache that answered.
    #[serde(rename = "_fromCache")]
    from_cache: Option<Json>,
    #[serde(rename = "_fetchedViaServiceWorker")]
    via_service_worker: Option<bool>,
    /// Of Safari: `Network Load`, `Memory Cache`, …
    #[serde(rename = "_fetchType")]
    fetch_type: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Sent {
    #[serde(default)]
    method: String,
    #[serde(default)]
    url: String,
    headers: Option<Vec<Pair>>,
    query_string: Option<Vec<Pair>>,
    post_data: Option<Body>,
    body_size: Option<f64>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Answer {
    status: Option<f64>,
    #[serde(rename = "redirectURL")]
    redirect_url: Option<String>,
    headers: Option<Vec<Pair>>,
    content: Option<Content>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Content {
    mime_type: Option<String>,
}

/// A name and its value; of a form's part, perhaps a file.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Pair {
    #[serde(default)]
    pub(super) name: String,
    #[serde(default, deserialize_with = "plain")]
    pub(super) value: Option<String>,
    pub(super) file_name: Option<String>,
    pub(super) content_type: Option<String>,
}

impl Pair {
    pub(super) fn bytes(&self) -> usize {
        let texts = [&self.value, &self.file_name, &self.content_type];
        self.name.len() + texts.into_iter().flatten().map(String::len).sum::<usize>()
    }
}

/// A text; some recorders write a number or a truth value as it is.
fn plain<'d, D: Deserializer<'d>>(from: D) -> Result<Option<String>, D::Error> {
    Ok(match Json::deserialize(from)? {
        Json::String(text) => Some(text),
        Json::Null => None,
        other => Some(other.to_string()),
    })
}

/// What was sent behind the headers.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Body {
    pub(super) mime_type: Option<String>,
    pub(super) text: Option<String>,
    pub(super) params: Option<Vec<Pair>>,
    #[serde(alias = "_encoding")]
    pub(super) encoding: Option<String>,
}

/// A request that can be sent again.
pub(super) struct Entry<'r> {
    pub(super) method: &'r str,
    pub(super) url: Url,
    /// Since 1970.
    pub(super) started: Option<Duration>,
    pub(super) took: Duration,
    /// The status that it must have again.
    pub(super) status: Option<u64>,
    pub(super) body: Option<&'r Body>,
    /// Whether it had a body that the recording does not have.
    pub(super) lacks_body: bool,
    /// The page that it belongs to.
    pub(super) page: Option<&'r str>,
    /// Whether it asks for a page, not for what is in one.
    pub(super) is_document: bool,
    /// Where its answer leads.
    pub(super) redirect: Option<Url>,
    headers: &'r [Pair],
}

/// All pages, in order.
pub(super) fn pages(recording: &Recording) -> &[Page] {
    recording.log.pages.as_deref().unwrap_or_default()
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
        let sent = recorded.request.as_ref().ok_or("entries without a request")?;
        let answer = recorded.response.as_ref();
        if sent.url.len() > URL_BYTES_MAX {
            return Err("a URL of more than 8 KiB");
        }
        if sent.method.eq_ignore_ascii_case("CONNECT") {
            return Err("a tunnel through a proxy (CONNECT)");
        }
        let mut url = Url::parse(&sent.url).map_err(|_| "entries with an invalid URL")?;
        let status = answer.and_then(|answer| answer.status).map(|status| status as u64);
        let is_web_socket = ["ws", "wss"].contains(&url.scheme())
            || status == Some(101)
            || recorded.resource_type.as_deref() == Some("websocket");
        if is_web_socket {
            return Err("a WebSocket; steps `ws connect`, `ws send` and `ws expect` make one");
        }
        if !["http", "https"].contains(&url.scheme()) {
            return Err("URLs that are not HTTP (data:, blob:, browser extensions)");
        }
        let method = method_as_sent(&sent.method).ok_or("invalid HTTP methods")?;
        let headers = sent.headers.as_deref().unwrap_or_default();
        if recorded.resource_type.as_deref() == Some("preflight")
            || method == "OPTIONS" && value_of(headers, "access-control-request-method").is_some()
        {
            return Err("CORS preflights, which a browser sends by itself");
        }
        let is_of_network = recorded.fetch_type.as_deref().is_none_or(|of| of.starts_with("Network"));
        let is_cached = recorded.from_cache.as_ref().is_some_and(|of| !of.is_null() && *of != false);
        if is_cached || !is_of_network || recorded.via_service_worker == Some(true) {
            return Err("an answer from the browser's cache or a service worker: nothing was sent");
        }
        if status == Some(0) {
            return Err("a request without an answer (blocked or given up)");
        }
        let mime =
            answer.and_then(|answer| answer.content.as_ref()?.mime_type.as_deref()).unwrap_or_default();
        if recorded.resource_type.as_deref() == Some("eventsource") || mime.starts_with("text/event-stream") {
            return Err("an event stream; a step `sse connect` opens one");
        }
        if let Some(pairs) = sent.query_string.as_deref().filter(|pairs| !pairs.is_empty())
            && url.query().is_none()
        {
            url.set_query(Some(&encoded(pairs)));
        }
        let milliseconds = recorded.time.filter(|time| *time > 0.0).unwrap_or(0.0).min(TOOK_MAX_MS);
        let has_body = |body: &Body| {
            let text = body.text.as_deref().is_some_and(|text| !text.is_empty());
            text || body.params.as_deref().is_some_and(|params| !params.is_empty())
        };
        let lacks_body =
            sent.body_size.is_some_and(|bytes| bytes > 0.0) && !sent.post_data.as_ref().is_some_and(has_body);
        let is_redirect = status.is_some_and(|status| (300..400).contains(&status) && status != 304);
        let place = answer.filter(|_| is_redirect).and_then(|answer| {
            let url = answer.redirect_url.as_deref().filter(|url| !url.is_empty());
            url.or_else(|| value_of(answer.headers.as_deref().unwrap_or_default(), "location"))
        });
        let redirect =
            place.filter(|place| place.len() <= URL_BYTES_MAX).and_then(|place| url.join(place).ok());
        let wanted = value_of(headers, "sec-fetch-dest");
        let is_document = match (wanted, recorded.resource_type.as_deref()) {
            (Some(wanted), _) => wanted == "document",
            (None, Some(kind)) => kind == "document",
            (None, None) => {
                let takes_pages =
                    value_of(headers, "accept").is_none_or(|accept| accept.contains("text/html"));
                method == "GET" && takes_pages && (mime.starts_with("text/html") || redirect.is_some())
            }
        };
        let entry = Entry {
            method,
            url,
            started: recorded.started_date_time.as_deref().and_then(since_1970),
            took: Duration::from_secs_f64(milliseconds / 1_000.0),
            // what a browser had or asked for in part is asked for whole
            status: status.filter(|status| (200..600).contains(status) && ![206, 304].contains(status)),
            body: sent.post_data.as_ref(),
            lacks_body,
            page: recorded.pageref.as_deref(),
            is_document,
            redirect,
            headers,
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

    pub(super) fn host(&self) -> &str {
        self.url.host_str().unwrap_or_default()
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
        let body = self.body.map_or(0, |body| {
            let params = body.params.as_deref().unwrap_or_default();
            body.text.as_ref().map_or(0, String::len) + params.iter().map(Pair::bytes).sum::<usize>()
        });
        let headers: usize = self.headers().map(|(name, value)| name.len() + value.len()).sum();
        // and the words around it
        self.url.as_str().len() + body.min(super::body::BODY_BYTES_MAX) + headers + 64
    }
}

/// The value of the first header of a name, in lower case here.
fn value_of<'r>(headers: &'r [Pair], name: &str) -> Option<&'r str> {
    let header = headers.iter().find(|header| header.name.eq_ignore_ascii_case(name))?;
    header.value.as_deref()
}

fn since_1970(text: &str) -> Option<Duration> {
    let milliseconds = text.parse::<Timestamp>().ok()?.as_millisecond();
    u64::try_from(milliseconds).ok().map(Duration::from_millis)
}
