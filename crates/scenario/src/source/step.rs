//! Steps: requests and control steps with fields, all other kinds as they stand in the file.

use tidemark_wire::http1::is_token;

use super::record::{Field, Record, record};
use super::value::{Map, Scalar, Value};
use crate::steps::reading;

/// A step of a session.
#[derive(Debug, Clone, PartialEq)]
#[expect(clippy::large_enum_variant, reason = "a scenario has few steps, and most are requests")]
pub enum Step {
    /// An HTTP request.
    Request(Request),
    /// Steps that are done in a share of all passes.
    Sometimes(Sometimes),
    /// Steps that are done several times.
    Repeat(Repeat),
    /// One of several ways, by chance.
    Choose(Choose),
    /// Steps that are done if a condition holds.
    When(When),
    /// Steps that are done for each item of a list.
    Each(Each),
    /// A wait.
    Think(Think),
    /// Variables that are set.
    Set(Set),
    /// A row of a feeder that is drawn.
    Take(Take),
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

    /// The method of this verb, in capitals.
    pub fn from_name(name: &str) -> Option<Method> {
        Method::ALL.into_iter().chain([Method::Own]).find(|method| method.as_str() == name)
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

/// Stands for the method among the keys of a request.
const METHOD: &str = "GET";

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
    /// Steps that are done in a share of all passes.
    Sometimes {
        /// The share, like `25%`.
        share: Scalar = "sometimes",
        /// Spread evenly, or by chance.
        rhythm: Option<Scalar> = "rhythm",
        /// What is done.
        steps: Vec<Step> = "steps",
    }
}

record! {
    /// Steps that are done several times.
    Repeat {
        /// How often.
        times: Scalar = "repeat",
        /// The variable that counts the rounds, from 0.
        counter: Option<Scalar> = "as",
        /// What is done.
        steps: Vec<Step> = "steps",
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
    /// Steps that are done if a condition holds.
    When {
        /// The condition, an expression.
        condition: Scalar = "when",
        /// What is done if it holds.
        steps: Vec<Step> = "steps",
        /// What is done if it does not.
        otherwise: Vec<Step> = "else",
    }
}

record! {
    /// Steps that are done for each item of a list.
    Each {
        /// `NAME in ${LIST}`.
        binding: Scalar = "each",
        /// How many items at most.
        limit: Option<Scalar> = "limit",
        /// What is done.
        steps: Vec<Step> = "steps",
    }
}

record! {
    /// A wait.
    Think {
        /// A time like `2s`, or a mapping with `between` or `exponential`.
        time: Value = "think",
    }
}

record! {
    /// Variables that are set, in order.
    Set {
        /// Values by variable.
        values: Map = "set",
    }
}

record! {
    /// A row of a feeder that is drawn, or of several.
    Take {
        /// The feeder, or a list of some.
        feeders: Value = "take",
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

    fn read(method: Method, map: Map) -> Request {
        Request { method, ..Request::from_map(renamed(map, method.as_str(), METHOD)) }
    }
}

/// A mapping with another key in the place of one.
fn renamed(map: Map, from: &str, to: &str) -> Map {
    let mut entries = map.into_entries();
    if let Some(entry) = entries.iter_mut().find(|entry| entry.key == from) {
        entry.key = to.to_owned();
    }
    Map::of(entries)
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

steps!(Request, Sometimes, Repeat, Choose, When, Each, Think, Set, Take);

/// How a kind of step is read.
pub(crate) struct Reading {
    /// Whether the value of its verb is what the verb's field takes.
    fits: fn(&Value) -> bool,
    /// Takes the verb and the whole step.
    read: fn(&str, Map) -> Step,
}

impl Reading {
    /// Of requests: their verbs are methods.
    pub(crate) const REQUEST: Reading = Reading {
        fits: Scalar::fits,
        read: |verb, map| match Method::from_name(verb) {
            Some(method) => Request::read(method, map).into(),
            None => Step::Other(map),
        },
    };

    /// Of a record whose verb has a field of this type.
    pub(crate) const fn of<Kind: Record + Into<Step>, Verb: Field>() -> Reading {
        Reading { fits: Verb::fits, read: |_, map| Kind::from_map(map).into() }
    }
}

impl Record for Step {
    /// What is not clearly one of the kinds with fields stays as it is.
    fn from_map(map: Map) -> Step {
        let mut verbs = map.entries().iter().filter_map(|entry| Some((entry, reading(&entry.key)?)));
        match (verbs.next(), verbs.next()) {
            (Some((verb, reading)), None) if (reading.fits)(&verb.value) => {
                let verb = verb.key.clone();
                (reading.read)(&verb, map)
            }
            _ => Step::Other(map),
        }
    }

    fn to_map(&self) -> Map {
        match self {
            Step::Request(step) => renamed(step.to_map(), METHOD, step.method.as_str()),
            Step::Sometimes(step) => step.to_map(),
            Step::Repeat(step) => step.to_map(),
            Step::Choose(step) => step.to_map(),
            Step::When(step) => step.to_map(),
            Step::Each(step) => step.to_map(),
            Step::Think(step) => step.to_map(),
            Step::Set(step) => step.to_map(),
            Step::Take(step) => step.to_map(),
            Step::Other(map) => map.clone(),
        }
    }

    fn comment(&self) -> &str {
        match self {
            Step::Request(step) => &step.comment,
            Step::Sometimes(step) => &step.comment,
            Step::Repeat(step) => &step.comment,
            Step::Choose(step) => &step.comment,
            Step::When(step) => &step.comment,
            Step::Each(step) => &step.comment,
            Step::Think(step) => &step.comment,
            Step::Set(step) => &step.comment,
            Step::Take(step) => &step.comment,
            Step::Other(_) => "",
        }
    }
}
