//! Requests that JavaScript makes: sent one after another, or beside what else a user does.

use std::cell::{Cell, RefCell};
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use rquickjs::function::Func;
use rquickjs::{Array, Class, Ctx, Object, Result, Value};
use tidemark_drive::MOST_BRANCHES;
use tidemark_record::GrpcCode;

use crate::ask::time;
use crate::bytes;
use crate::head;
use crate::host::{Host, host};
use crate::metrics::{self, Kind};
use crate::modules::thrown;
use crate::reply::{self, Asked, Reply};
use crate::text::Told;
use crate::vu::{Answer, Input, Output, Request};

/// What is measured of a request once its answer is there.
#[derive(Debug)]
pub(crate) struct Made {
    method: String,
    url: String,
    name: Option<String>,
    /// Statuses that are good; none where every one from 200 to 399 is.
    expected: Option<Arc<[(u16, u16)]>>,
    is_judged: bool,
    group: String,
    tags: String,
    /// The lines of its head that the script knows.
    head: String,
    sent_bytes: usize,
}

impl Made {
    /// Of a request with these lines of a head, which become its headers.
    pub fn of(host: &Host, request: &mut Request, head: String, (group, tags): (String, String)) -> Made {
        head::give(request, &head);
        if let Some(url) = below(host, &request.url) {
            request.url = url;
        }
        Made {
            method: request.method.clone(),
            url: request.url.clone(),
            name: request.name.clone(),
            expected: request.expected.clone(),
            is_judged: true,
            group,
            tags,
            sent_bytes: head.len() + request.body.as_ref().map_or(0, Vec::len),
            head,
        }
    }
}

/// Requests of a user that are under way beside what else it does, by their numbers.
#[derive(Debug, Default)]
pub(crate) struct Beside {
    last: Cell<u64>,
    made: RefCell<HashMap<u64, Made>>,
    /// Answers that came while the script waited for something else.
    aside: RefCell<VecDeque<(u64, Answer)>>,
}

impl Beside {
    /// Whether there are any.
    pub fn is_any(&self) -> bool {
        !self.made.borrow().is_empty()
    }

    /// None is waited for any more.
    pub fn forget(&self) {
        self.made.borrow_mut().clear();
        self.aside.borrow_mut().clear();
    }

    /// A number for what is sent beside others.
    pub fn number(&self) -> u64 {
        self.last.set(self.last.get() + 1);
        self.last.get()
    }

    /// Keeps an answer until the script waits for such.
    pub fn put_aside(&self, id: u64, answer: Answer) {
        if self.made.borrow().contains_key(&id) {
            self.aside.borrow_mut().push_back((id, answer));
        }
    }
}

/// Adds the natives that send.
pub(crate) fn install(natives: &Object<'_>) -> Result<()> {
    natives.set("send", Func::from(send))?;
    natives.set("sendBeside", Func::from(send_beside))?;
    natives.set("awaitBeside", Func::from(await_beside))
}

/// Whether a URL is a method of gRPC.
pub(crate) fn is_grpc(url: &str) -> bool {
    url.starts_with("grpc://") || url.starts_with("grpcs://")
}

/// A URL that begins with a slash, as one of the system.
pub(crate) fn below(host: &Host, url: &str) -> Option<String> {
    let base = host.script.base.get().filter(|_| url.starts_with('/'))?;
    Some(format!("{base}{url}"))
}

/// What is sent, and what is measured of it. `extra`: time-out in ms (below 0 none), name, whether the body is of no
/// interest, good statuses as pairs (null: none is bad or good), tags.
fn made(
    host: &Host,
    (method, url): (String, String),
    body: &Value<'_>,
    (head, group): (String, String),
    extra: Option<Array<'_>>,
) -> Result<(Request, Made)> {
    let mut request = Request { method, url, ..Request::default() };
    let mut tags = String::new();
    let mut is_judged = true;
    if let Some(extra) = extra {
        let timeout_ms: f64 = extra.get(0)?;
        request.timeout = time(timeout_ms);
        request.name = extra.get::<Option<Told>>(1)?.map(|name| name.0);
        request.discards_body = extra.get(2)?;
        let ranges: Value<'_> = extra.get(3)?;
        is_judged = !ranges.is_null();
        request.expected = match ranges.as_array() {
            Some(ranges) => {
                let bounds = ranges.iter::<f64>().collect::<Result<Vec<f64>>>()?;
                Some(bounds.chunks_exact(2).map(|pair| (pair[0] as u16, pair[1] as u16)).collect())
            }
            None if !is_judged => Some(Arc::from([(0, u16::MAX)])),
            None => None,
        };
        tags = extra.get::<Told>(4)?.0;
    }
    request.body = bytes::optional(body)?;
    let made = Made { is_judged, ..Made::of(host, &mut request, head, (group, tags)) };
    Ok((request, made))
}

/// Sends a request, and waits for its answer.
fn send<'js>(
    ctx: Ctx<'js>,
    method: String,
    Told(url): Told,
    body: Value<'js>,
    Told(head): Told,
    Told(group): Told,
    extra: Option<Array<'js>>,
) -> Result<Class<'js, Reply>> {
    let host = host(&ctx)?;
    host.is_in_run(&ctx, "a request")?;
    let (request, made) = made(&host, (method, url), &body, (head, group), extra)?;
    exchange(&ctx, &host, request, made)
}

/// Sends a request, waits for its answer, and measures it.
pub(crate) fn exchange<'js>(
    ctx: &Ctx<'js>,
    host: &Host,
    request: Request,
    made: Made,
) -> Result<Class<'js, Reply>> {
    let answer = match host.wait(ctx, Output::Send(Box::new(request)))? {
        Input::Answer(answer) => answer,
        _ => Answer { error: "the request was not sent".into(), error_code: 1000, ..Answer::default() },
    };
    measured(ctx, host, made, answer)
}

/// Sends a request beside what else the user does; the number under which its answer arrives.
fn send_beside<'js>(
    ctx: Ctx<'js>,
    method: String,
    Told(url): Told,
    body: Value<'js>,
    Told(head): Told,
    Told(group): Told,
    extra: Option<Array<'js>>,
) -> Result<u64> {
    let host = host(&ctx)?;
    host.is_in_run(&ctx, "a request")?;
    let under_way = host.beside.made.borrow().len();
    if under_way >= MOST_BRANCHES {
        return Err(thrown(&ctx, &format!("too many requests in flight ({under_way}); await some first")));
    }
    let (request, made) = made(&host, (method, url), &body, (head, group), extra)?;
    let id = host.beside.number();
    host.leaves_something();
    host.beside.made.borrow_mut().insert(id, made);
    host.wait(&ctx, Output::Begin(id, Box::new(request)))?;
    Ok(id)
}

/// Waits until something comes of what is under way beside, for so long at most.
pub(crate) fn wait(ctx: &Ctx<'_>, host: &Host, at_most: Option<Duration>) -> Result<Input> {
    let aside = host.beside.aside.borrow_mut().pop_front();
    match aside {
        Some((id, answer)) => Ok(Input::Arrived(id, answer)),
        None => host.wait(ctx, Output::Await(at_most)),
    }
}

/// Waits for the answer to any request that was sent beside others: its number, and the answer.
fn await_beside(ctx: Ctx<'_>) -> Result<Array<'_>> {
    let host = host(&ctx)?;
    while host.beside.is_any() {
        if let Input::Arrived(id, answer) = wait(&ctx, &host, None)?
            && let Some(raw) = arrived(&ctx, &host, id, answer)?
        {
            let both = Array::new(ctx.clone())?;
            both.set(0, id)?;
            both.set(1, raw)?;
            return Ok(both);
        }
    }
    Err(thrown(&ctx, "no request is under way"))
}

/// An answer as JavaScript takes it; none where nobody waits for it.
pub(crate) fn arrived<'js>(
    ctx: &Ctx<'js>,
    host: &Host,
    id: u64,
    answer: Answer,
) -> Result<Option<Class<'js, Reply>>> {
    let made = host.beside.made.borrow_mut().remove(&id);
    made.map(|made| measured(ctx, host, made, answer)).transpose()
}

/// Measures a request, and makes its answer what JavaScript takes.
fn measured<'js>(ctx: &Ctx<'js>, host: &Host, made: Made, answer: Answer) -> Result<Class<'js, Reply>> {
    if answer.is_unsendable {
        return Err(thrown(ctx, &answer.error));
    }
    let is_expected = match &made.expected {
        Some(ranges) => ranges.iter().any(|(least, most)| (*least..=*most).contains(&answer.status)),
        None => (200..400).contains(&answer.status),
    } && answer.status != 0;
    measure(host, &made, &answer, is_expected);
    reply::of(ctx, host, answer, Asked { method: made.method, head: made.head })
}

fn measure(host: &Host, made: &Made, answer: &Answer, is_expected: bool) {
    let mut number = [0; 8];
    let status = bytes::decimal(answer.status.into(), &mut number);
    let mut code = [0; 8];
    let code = match answer.status {
        400.. => bytes::decimal(u32::from(answer.status) + 1_000, &mut code),
        _ if answer.error_code > 0 => bytes::decimal(answer.error_code, &mut code),
        _ => "",
    };
    let own = [
        ("name", made.name.as_deref().unwrap_or(&made.url)),
        ("url", &made.url),
        ("method", &made.method),
        ("status", status),
        ("expected_response", if is_expected { "true" } else { "false" }),
        ("error_code", code),
        ("error", &answer.error),
        ("proto", "HTTP/1.1"),
        ("tls_version", reply::tls_version(answer)),
    ];
    let own = if made.is_judged { &own[..] } else { &own[..4] };
    let received_bytes = answer.head.len() + answer.body.len();
    if is_grpc(&made.url) {
        let values = [
            (metrics::GRPC_REQ_DURATION, Kind::Trend, answer.duration_ms),
            (metrics::DATA_RECEIVED, Kind::Counter, received_bytes as f64),
            (metrics::DATA_SENT, Kind::Counter, made.sent_bytes as f64),
        ];
        let status = GrpcCode::of_status(answer.status).unwrap_or_default() as u32;
        let mut number = [0; 8];
        let own = [own[0], own[1], own[2], ("status", bytes::decimal(status, &mut number))];
        return host.add(&values, &made.group, &made.tags, &own);
    }
    let values = [
        (metrics::HTTP_REQS, Kind::Counter, 1.0),
        (metrics::HTTP_REQ_DURATION, Kind::Trend, answer.duration_ms),
        (metrics::HTTP_REQ_WAITING, Kind::Trend, answer.parts.waiting),
        (metrics::HTTP_REQ_BLOCKED, Kind::Trend, answer.parts.blocked),
        (metrics::HTTP_REQ_CONNECTING, Kind::Trend, answer.parts.connecting),
        (metrics::HTTP_REQ_TLS_HANDSHAKING, Kind::Trend, answer.parts.handshaking),
        (metrics::HTTP_REQ_RECEIVING, Kind::Trend, answer.parts.receiving),
        (metrics::DATA_RECEIVED, Kind::Counter, received_bytes as f64),
        (metrics::DATA_SENT, Kind::Counter, made.sent_bytes as f64),
        (metrics::HTTP_REQ_FAILED, Kind::Rate, f64::from(u8::from(!is_expected))),
    ];
    // a request that nobody judges neither failed nor did not
    let values = if made.is_judged { &values[..] } else { &values[..values.len() - 1] };
    host.add(values, &made.group, &made.tags, own);
}
