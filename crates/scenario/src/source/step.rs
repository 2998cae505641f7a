//! Steps: those that makers need often with fields, all other kinds as they stand in the file.

use tidemark_wire::http1::is_token;

use super::record::{Record, record};
use super::value::{Map, Scalar, Value};

/// A step of a session.
#[derive(Debug, Clone, PartialEq)]
#[expect(clippy::large_enum_variant, reason = "a scenario has few steps, and most are requests")]
pub enum Step {
    /// An HTTP request.
    Request(Request),
    /// One of several ways, by chance.
    Choose(Choose),
    /// Requests that leave at the same time.
    Parallel(Parallel),
    /// A wait.
    Think(Think),
    /// Any other: a call, a command of Redis, a message over a WebSocket, the end of the session. Its first key is its
    /// verb, by custom, and has the step's comment.
    Other(Map),
}

/// Methods of HTTP requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[allow(missing_docs, reason = "they are their names")]
pub enum Method {
    #[default]
    Get,
    Post,
    Put,
    Patch,
    Delete,
    Head,
    Options,
    /// Any other, which stands under `method`: `REQUEST: /path` with `method: PURGE`.
    Own,
}

impl Method {
    /// All with a verb of their own.
    pub const ALL: [Method; 7] = [
        Method::Get,
        Method::Post,
        Method::Put,
        Method::Patch,
        Method::Delete,
        Method::Head,
        Method::Options,
    ];

    /// The verb of its step, which is its name for all but [`Own`](Method::Own).
    pub fn as_str(self) -> &'static str {
        match self {
            Method::Get => "GET",
            Method::Post => "POST",
            Method::Put => "PUT",
            Method::Patch => "PATCH",
            Method::Delete => "DELETE",
            Method::Head => "HEAD",
            Method::Options => "OPTIONS",
            Method::Own => "REQUEST",
        }
    }
}

/// Longest name of a method, bytes.
const METHOD_BYTES_MAX: usize = 40;

/// The name of a method as it is sent: one with a verb of its own in capitals, any other as it is written. None where it is no
/// token of HTTP, has more than 40 bytes, or is CONNECT, which asks for a tunnel.
///
/// ```
/// use tidemark_scenario::source::method_as_sent;
/// assert_eq!((method_as_sent("get"), method_as_sent("Own-1")), (Some("GET"), Some("Own-1")));
/// assert_eq!((method_as_sent("A B"), method_as_sent("connect")), (None, None));
/// ```
pub fn method_as_sent(name: &str) -> Option<&str> {
    if let Some(known) = Method::ALL.iter().find(|known| known.as_str().eq_ignore_ascii_case(name)) {
        return Some(known.as_str());
    }
    let is_one =
        is_token(name.as_bytes()) && name.len() <= METHOD_BYTES_MAX && !name.eq_ignore_ascii_case("CONNECT");
    is_one.then_some(name)
}

record! {
    /// An HTTP request. Of `form`, `json`, `multipart` and `body` it has at most one.
    Request [
        /// Its method.
        method: Method
    ] {
        /// Its path, begun with a slash.
        path: Scalar = "GET",
        /// Its name in the report.
        label: Option<Scalar> = "label",
        /// Parameters that are put behind the path, encoded.
        query: Map = "query",
        /// Headers.
        headers: Map = "headers",
        /// The body as fields of a form.
        form: Map = "form",
        /// The body as JSON.
        json: Option<Value> = "json",
        /// The body as a form of parts, of which some may be files: `{file: PATH}`.
        multipart: Map = "multipart",
        /// The body as it is.
        body: Option<Scalar> = "body",
        /// Longest time for the answer.
        timeout: Option<Scalar> = "timeout",
        /// What is kept of the answer, by variable: a JSON path, or a mapping with `json`, `header`, `regex`, ….
        extract: Map = "extract",
        /// What must hold of the answer: `status`, `body`, `header`, `json`, `that`.
        check: Map = "check",
    }
}

record! {
    /// One of several ways.
    Choose {
        /// The ways.
        ways: Vec<Way> = "choose",
        /// `random` or `in turn`.
        order: Option<Scalar> = "order",
    }
}

record! {
    /// A way of a choose step.
    Way {
        /// How often it is gone, against the sum of all.
        weight: Option<Scalar> = "weight",
        /// What is done.
        steps: Vec<Step> = "steps",
    }
}

record! {
    /// Requests that leave at the same time.
    Parallel {
        /// The requests.
        requests: Vec<Step> = "parallel",
        /// How many are under way to one target.
        at_most: Option<Scalar> = "at most",
    }
}

record! {
    /// A wait.
    Think {
        /// A time like `2s`, or a mapping with `between` or `exponential`.
        time: Value = "think",
    }
}

impl Request {
    /// A request for a path, which begins with a slash.
    pub fn new(method: Method, path: impl Into<Scalar>) -> Request {
        Request { method, path: path.into(), ..Request::default() }
    }

    /// The same with a method of any name, which is a token of HTTP.
    pub fn named(method: &str, path: impl Into<Scalar>) -> Request {
        match Method::ALL.into_iter().find(|known| known.as_str() == method) {
            Some(known) => Request::new(known, path),
            None => {
                let mut request = Request::new(Method::Own, path);
                request.other.insert("method", method);
                request
            }
        }
    }
}

macro_rules! steps {
    ($($kind:ident),*) => {$(
        impl From<$kind> for Step {
            fn from(step: $kind) -> Step {
                Step::$kind(step)
            }
        }
    )*};
}

steps!(Request, Choose, Parallel, Think);

impl Record for Step {
    const KEYS: &[&str] = &[];

    fn to_map(&self) -> Map {
        match self {
            Step::Request(step) => {
                let mut entries = step.to_map().into_entries();
                // the path, which is always there
                if let Some(verb) = entries.first_mut() {
                    step.method.as_str().clone_into(&mut verb.key);
                }
                Map::of(entries)
            }
            Step::Choose(step) => step.to_map(),
            Step::Parallel(step) => step.to_map(),
            Step::Think(step) => step.to_map(),
            Step::Other(map) => map.clone(),
        }
    }

    fn comment(&self) -> &str {
        match self {
            Step::Request(step) => &step.comment,
            Step::Choose(step) => &step.comment,
            Step::Parallel(step) => &step.comment,
            Step::Think(step) => &step.comment,
            Step::Other(_) => "",
        }
    }
}
