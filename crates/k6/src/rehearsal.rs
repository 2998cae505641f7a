//! A rehearsal: the script runs once without a network, to learn where it sends what.
//!
//! Every request is answered with status 200 and a body of which every field is there. Scripts that end early, because a
//! made-up answer does not please them, are known as far as they came.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use url::Url;

use crate::label::label_of;
use crate::metrics::Metrics;
use crate::requests::is_grpc;
use crate::script::{GrpcTarget, Script};
use crate::sockets::{News, SWITCHING};
use crate::vu::{Answer, Call, Input, Output, Place, Request, Vu};

/// Most requests and pauses of a function in a rehearsal.
const TURNS_MAX: usize = 400;
/// Iterations of each scenario.
const ITERATIONS: u64 = 3;
/// Where those end that only tell of more hosts, as a script may choose one by chance.
const CHANCES: u64 = 100;
/// Longest that these take.
const CHANCES_MAX: Duration = Duration::from_millis(100);
/// Most labels.
const LABELS_MAX: usize = 60;
/// Most places that it sends to.
const ORIGINS_MAX: usize = 100;
/// What a host becomes that is a field of a made-up answer: `http://1/`.
const MADE_UP_HOST: &str = "0.0.0.1";
/// Longest that all of it takes.
const WHOLE_MAX: Duration = Duration::from_secs(5);
/// Longest that a rehearsal is at work without waiting.
const TURN_MAX: Duration = Duration::from_secs(3);
/// What every request is answered with.
pub(crate) const BODY: &str = "{\"tidemark rehearsal\":true}";

/// What is known of a script before it runs.
#[derive(Debug, Clone, Default)]
pub struct Sent {
    /// Schemes, hosts and ports that it sends to, in order.
    pub origins: Vec<String>,
    /// What its requests are counted as, by function.
    pub labels: Vec<(String, Vec<String>)>,
    /// What its clients of gRPC say, by origin.
    pub grpc: HashMap<String, GrpcTarget>,
    /// Environment variables that it got as secrets.
    pub secrets: Vec<String>,
    /// The first that it asks for which is no URL.
    pub nowhere: Option<String>,
    /// The first exception, as it may be why something is not known.
    pub threw: Option<String>,
}

/// A rehearsal that is on.
struct Rehearsal<'s> {
    script: &'s Arc<Script>,
    metrics: Arc<Metrics>,
    vu: Option<Vu>,
    begun: Instant,
    sent: Sent,
}

/// Rehearses a script: `setup`, and some iterations of each scenario.
pub(crate) fn rehearse(script: &Arc<Script>) -> Sent {
    let metrics = Arc::new(Metrics::default());
    let vu = Vu::begin(script, 1, &metrics).ok();
    let mut rehearsal = Rehearsal { script, metrics, vu, begun: Instant::now(), sent: Sent::default() };
    let told = script.told();
    let has = |function: &str| told.functions.iter().any(|known| known == function);
    if has("setup")
        && let Some(json) = rehearsal.function("setup", Place::NONE, &mut Vec::new())
    {
        let _ = script.data.set(json.into());
    }
    for (scenario, of) in told.scenarios.iter().enumerate().filter(|(_, of)| has(&of.exec)) {
        let mut labels = Vec::new();
        for iteration_in_scenario in 0..ITERATIONS {
            rehearsal.function(&of.exec, Place { scenario, iteration_in_scenario }, &mut labels);
        }
        let (begun, threw) = (Instant::now(), rehearsal.sent.threw.clone());
        for iteration_in_scenario in ITERATIONS..CHANCES {
            if begun.elapsed() > CHANCES_MAX {
                break;
            }
            rehearsal.function(&of.exec, Place { scenario, iteration_in_scenario }, &mut Vec::new());
        }
        // data may be at its end
        rehearsal.sent.threw = threw;
        match rehearsal.sent.labels.iter_mut().find(|(exec, _)| *exec == of.exec) {
            Some((_, known)) => {
                labels.retain(|label| !known.contains(label));
                known.extend(labels);
            }
            None => rehearsal.sent.labels.push((of.exec.clone(), labels)),
        }
    }
    if has("teardown") {
        rehearsal.function("teardown", Place::NONE, &mut Vec::new());
    }
    rehearsal.sent.secrets = script.secret_names();
    rehearsal.sent.grpc = script.grpc_origins.lock().unwrap_or_else(PoisonError::into_inner).clone();
    rehearsal.sent
}

impl Rehearsal<'_> {
    /// Rehearses a function; what it returned, as JSON.
    fn function(&mut self, function: &str, place: Place, labels: &mut Vec<String>) -> Option<String> {
        if self.begun.elapsed() > WHOLE_MAX {
            return None;
        }
        let takes_data = function != "setup";
        let call = Call { function: function.into(), takes_data, argument: None, place };
        let vu = self.vu.as_mut()?;
        let mut output = vu.resume(Input::Call(call));
        let mut arrived = VecDeque::new();
        let answer = || Answer { status: 200, body: BODY.into(), duration_ms: 1.0, ..Answer::default() };
        for _ in 0..TURNS_MAX {
            output = match output {
                _ if self.begun.elapsed() > WHOLE_MAX => break,
                Output::Sleep(_) => vu.resume(Input::Woken),
                Output::Send(request) => {
                    self.sent.note(self.script, &request, labels);
                    vu.resume(Input::Answer(answer()))
                }
                Output::Begin(id, request) if request.opens() => {
                    self.sent.note(self.script, &request, labels);
                    let open = Answer { status: SWITCHING, head: "Upgrade: websocket".into(), ..answer() };
                    let open = (!request.is_stream).then(|| News::Answer(open.into()));
                    let code = if request.is_stream { 0 } else { 1000 };
                    let rest = [News::Text(BODY.into()), News::Closed(Some(code), String::new())];
                    open.into_iter().chain(rest).all(|news| vu.inbox.borrow_mut().push(id, news));
                    vu.resume(Input::Woken)
                }
                Output::Say(..) => vu.resume(Input::Woken),
                Output::Begin(id, request) => {
                    self.sent.note(self.script, &request, labels);
                    arrived.push_back(id);
                    vu.resume(Input::Woken)
                }
                Output::Await(_) => {
                    let input = arrived.pop_front().map_or(Input::Woken, |id| Input::Arrived(id, answer()));
                    vu.resume(input)
                }
                Output::Returned(json) => return json,
                Output::Threw(words) => {
                    self.sent.threw.get_or_insert(words);
                    return None;
                }
                Output::Ready | Output::Interrupted => return None,
            };
        }
        // it waits still, for an answer that it never gets
        self.vu = Vu::begin(self.script, 1, &self.metrics).ok();
        None
    }
}

/// Whether the options let nothing be sent to a URL's host.
fn is_blocked(script: &Script, url: &str) -> bool {
    let url = Url::parse(url).ok();
    let host = url.as_ref().and_then(Url::host_str);
    host.is_some_and(|host| script.told().common.blocks(host).is_some())
}

/// Scheme, host and port of a URL of gRPC.
pub(crate) fn origin_of(url: &Url) -> Option<String> {
    let host = url.host_str().filter(|_| is_grpc(url.as_str()))?;
    let port = url.port().map(|port| format!(":{port}")).unwrap_or_default();
    Some(format!("{}://{host}{port}", url.scheme()))
}

impl Sent {
    /// Notes where a request goes.
    fn note(&mut self, script: &Script, request: &Request, labels: &mut Vec<String>) {
        if is_blocked(script, &request.url) {
            return;
        }
        let Ok(url) = Url::parse(&request.url) else {
            self.nowhere.get_or_insert_with(|| request.url.clone());
            return;
        };
        // a host that is a part of an answer is not known
        if !matches!(url.scheme(), "http" | "https" | "grpc" | "grpcs") {
            self.nowhere.get_or_insert_with(|| request.url.clone());
            return;
        }
        if url.host_str() == Some(MADE_UP_HOST) {
            return;
        }
        let origin = origin_of(&url).unwrap_or_else(|| url.origin().ascii_serialization());
        if !self.origins.contains(&origin) && self.origins.len() < ORIGINS_MAX {
            self.origins.push(origin);
        }
        let label = request.name.clone().unwrap_or_else(|| label_of(request.verb(), &url));
        if !labels.contains(&label) && labels.len() < LABELS_MAX {
            labels.push(label);
        }
    }
}

/// What a rehearsal may take.
pub(crate) fn bounds(of: crate::script::Bounds) -> crate::script::Bounds {
    crate::script::Bounds { turn: TURN_MAX, ..of }
}
