//! What a thread's sessions do: each is an iteration of a user.

use std::cell::Cell;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use tidemark_drive::{AnswerCheck, AnswerView, Heard, Next, Program, ProgramRequest, Said};
use tidemark_record::Outcome;
use tidemark_scenario::protobuf::{Method, MethodName, Types};
use url::Url;

use crate::label::label_of;
use crate::metrics::{self, Kind, Metrics};
use crate::options::Executor;
use crate::script::Script;
use crate::sent::Sent;
use crate::sockets::{News, SWITCHING};
use crate::urls;
use crate::vu::{Answer, Call, Input, Output, Place, Request, Vu};

/// How often a user whose iterations are all done looks whether others are at work.
const REST: Duration = Duration::from_millis(100);
/// How long the others of its thread rest, whose iterations are all done: the end of the load ends it.
const LONG_REST: Duration = Duration::from_secs(3_600);
/// k6's number of a URL or header that is none, and of other errors.
const INVALID_URL: u32 = 1000;
/// k6's number of a host that `blockHostnames` names.
const BLOCKED_HOST: u32 = 1111;
/// Most that a user says over a stream that is not open yet.
const UNSAID_MAX: usize = 1_000;
/// Most URLs whose label is remembered.
const KNOWN_MAX: usize = 10_000;

/// A place that requests go to.
#[derive(Debug, Clone)]
pub struct Origin {
    /// `http` or `https`.
    pub scheme: String,
    /// Host, and port where it is not the scheme's own.
    pub authority: String,
    /// The path of its URL, without a slash at its end.
    pub base_path: String,
    /// Message types of gRPC, where files tell them.
    pub types: Option<Types>,
}

/// What a kind of sessions runs.
#[derive(Debug, Clone)]
pub struct Runs {
    /// The kind's name; where a scenario of the script has it, it is that.
    pub name: String,
    /// The exported function.
    pub function: String,
    /// Iterations of all its users, where that is fixed.
    pub iterations: Option<u64>,
    /// Index into the plan's labels: what its requests are counted as unless they have one of their own.
    pub label: u16,
    /// Labels by the names of requests.
    pub labels: Vec<(String, u16)>,
    /// Longest time for an answer, unless the request says otherwise.
    pub timeout: Duration,
}

/// What a kind of sessions is driven by, made ready.
struct Ready {
    call: Arc<str>,
    iterations: Option<u64>,
    /// How many each user makes, where that is fixed.
    of_each: Option<u64>,
    /// Most users at once, where the load does not bound them.
    most_users: Option<u64>,
    /// Index into the script's scenarios.
    scenario: usize,
    label: u16,
    labels: HashMap<String, u16>,
    timeout: Duration,
}

/// The users of a thread.
pub(crate) struct Users {
    script: Arc<Script>,
    metrics: Arc<Metrics>,
    origins: Arc<[Origin]>,
    /// By the plan's kinds of sessions.
    kinds: Vec<Option<Ready>>,
    /// By the number of a session.
    users: Vec<Option<User>>,
    /// By the number of a branch.
    branches: HashMap<u32, Branch>,
    /// Where URLs lead, that have been asked for.
    known: HashMap<String, Vec<Arc<Way>>>,
    /// Whether the session that just began is over at once.
    is_over: Cell<bool>,
    /// The session of those that rest which looks whether all iterations are done.
    looks: Option<u32>,
    /// Users in an iteration.
    at_work: u32,
    /// Whether it runs `setup` or `teardown`.
    is_main: bool,
}

/// Why a request cannot be sent.
enum Unplaced {
    /// It leads nowhere: the script sees it fail, with k6's number of the error.
    Nowhere(u32, String),
    /// It is no call that the types know, or no message of its type: the script throws, and nothing is counted.
    Unsendable(String),
    /// The run cannot go on.
    Elsewhere(String),
}

/// Where a URL leads.
#[derive(Debug)]
struct Way {
    kind: usize,
    method: String,
    target: u16,
    /// Path and query, below the target's own path.
    path: String,
    label: u16,
    /// What a call of gRPC is, where files tell the types; or why it is none.
    call: Option<Result<Method, String>>,
}

impl Way {
    fn is_of(&self, kind: usize, method: &str) -> bool {
        self.kind == kind && self.method == method
    }
}

struct User {
    vu: Vu,
    kind: usize,
    /// Of that kind, how many it has begun.
    iterations: u64,
    next: Turn,
    begun: Instant,
    sent: Option<Sent>,
    /// Whether its next request has waited for its turn, where the rate of all is bounded.
    has_slot: bool,
    /// The request that it sends beside others, while the driver begins that.
    begins: Option<Branch>,
    /// Answers to requests that it sent beside others, which it has not waited for yet.
    arrived: VecDeque<(u64, Answer)>,
    /// The branches of its WebSockets, by their numbers.
    sockets: HashMap<u64, u32>,
    /// Whether something came over them while it did something else.
    has_heard: bool,
}

/// The number of what a user sends beside others, and whether that opens a WebSocket or a stream.
type Begun = (u64, bool);

/// A request that a user sent beside others.
struct Branch {
    session: u32,
    id: u64,
    /// None once it is over.
    sent: Option<Sent>,
    /// Whether it asks for a WebSocket, or opens a stream.
    is_socket: bool,
    /// Whether it is a stream.
    is_stream: bool,
    /// Whether it holds one.
    is_open: bool,
    /// Where the types are known, the method whose stream it is.
    method: Option<Method>,
    /// What is said over a stream once that is open.
    unsaid: VecDeque<Said>,
}

#[derive(Debug)]
enum Turn {
    Does(Output),
    /// It goes on when it is asked.
    Wakes,
    /// It waits for what it sent beside others; until then, if there is an end to that.
    Awaits(Option<Instant>),
    /// There is nothing left to do.
    Rests,
    /// Its iteration is over, or has no place among the users of its scenario.
    Ends,
}

/// An iteration of a kind of sessions is over: another may take its place, where they are bounded.
fn leave_place(script: &Script, at: usize, kind: Option<&Ready>) {
    let is_bounded = kind.is_some_and(|kind| kind.most_users.is_some());
    if let Some(active) = script.active_of.get(at).filter(|_| is_bounded) {
        active.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Branch {
    /// Whether it is a stream that is not open yet, or has yet to say what was said before.
    fn is_opening(&self) -> bool {
        self.is_stream && (self.sent.is_some() || !self.unsaid.is_empty())
    }

    /// Why it cannot say that, if so.
    fn refusal(&self, said: &Said) -> Option<String> {
        if self.unsaid.len() >= UNSAID_MAX {
            return Some(format!("more than {UNSAID_MAX} messages before the stream is open"));
        }
        let (Some(method), Said::Text(json)) = (&self.method, said) else { return None };
        method.encode(json.as_bytes(), &mut Vec::new()).err()
    }

    /// What it does next, under this number: its request is over.
    fn next(&mut self, number: u32) -> Next {
        if self.is_stream && self.sent.take().is_some() {
            self.is_open = true;
        }
        match self.unsaid.pop_front() {
            _ if !self.is_open => Next::End,
            Some(said) => {
                self.is_open = !matches!(said, Said::Leave(_));
                Next::Say(number, said)
            }
            None => Next::Await(None),
        }
    }
}

impl Turn {
    /// Whether an iteration is under way.
    fn is_within(&self) -> bool {
        use Output::{Interrupted, Ready, Returned, Threw};
        let is_over = matches!(
            self,
            Turn::Rests | Turn::Ends | Turn::Does(Returned(_) | Threw(_) | Ready | Interrupted)
        );
        !is_over
    }
}

impl Users {
    pub fn new(
        script: &Arc<Script>,
        metrics: &Arc<Metrics>,
        origins: &Arc<[Origin]>,
        kinds: &[Option<Runs>],
        is_main: bool,
    ) -> Users {
        let told = script.told();
        let are_several = kinds.iter().flatten().count() > 1;
        let ready = |runs: &Runs| {
            let scenario =
                told.scenarios.iter().position(|of| of.name == runs.name && of.exec == runs.function);
            let executor = scenario.map(|at| &told.scenarios[at].executor);
            Ready {
                call: runs.function.as_str().into(),
                iterations: runs.iterations,
                of_each: match executor {
                    Some(Executor::PerVuIterations { iterations, .. }) if runs.iterations.is_some() => {
                        Some(*iterations)
                    }
                    _ => None,
                },
                most_users: match executor {
                    Some(
                        Executor::ConstantArrivalRate { vus, .. } | Executor::RampingArrivalRate { vus, .. },
                    ) => Some(*vus).filter(|_| are_several),
                    _ => None,
                },
                scenario: scenario.unwrap_or(usize::MAX),
                label: runs.label,
                labels: runs.labels.iter().cloned().collect(),
                timeout: runs.timeout,
            }
        };
        Users {
            script: Arc::clone(script),
            metrics: Arc::clone(metrics),
            origins: Arc::clone(origins),
            kinds: kinds.iter().map(|runs| runs.as_ref().map(ready)).collect(),
            users: Vec::new(),
            branches: HashMap::new(),
            known: HashMap::new(),
            is_over: Cell::new(false),
            looks: None,
            at_work: 0,
            is_main,
        }
    }

    /// Resumes a user, and notes what it does next.
    fn resume(&mut self, session: u32, input: Input) {
        let Some(Some(user)) = self.users.get_mut(session as usize) else { return };
        if let Input::Call(_) = &input {
            self.at_work += 1;
            if !self.is_main {
                let now = self.script.under_way.fetch_add(1, Ordering::Relaxed) + 1;
                if now > self.script.most_under_way.load(Ordering::Relaxed) {
                    self.script.most_under_way.fetch_max(now, Ordering::Relaxed);
                }
            }
        }
        let output = user.vu.resume(input);
        if let Output::Returned(_) | Output::Threw(_) = &output {
            self.at_work = self.at_work.saturating_sub(1);
            let took_ms = user.begun.elapsed().as_secs_f64() * 1_000.0;
            if self.is_main {
                match &output {
                    Output::Threw(words) => self.script.abort(words.clone()),
                    Output::Returned(Some(json)) => drop(self.script.data.set(json.as_str().into())),
                    _ => {}
                }
            } else {
                self.script.under_way.fetch_sub(1, Ordering::Relaxed);
                if let Output::Threw(words) = &output {
                    self.script.threw(words);
                }
                self.script.iterations.fetch_add(1, Ordering::Relaxed);
                let kind = self.kinds.get(user.kind).and_then(Option::as_ref);
                leave_place(&self.script, user.kind, kind);
                let scenario = kind.map(|of| of.scenario);
                let name =
                    scenario.and_then(|at| self.script.told().scenarios.get(at)).map(|of| of.name.as_str());
                let has = |tag: &str, value: &str| tag == "scenario" && name == Some(value);
                let parts = &self.script.told().parts;
                let values = [
                    (metrics::ITERATIONS, Kind::Counter, 1.0),
                    (metrics::ITERATION_DURATION, Kind::Trend, took_ms),
                ];
                self.metrics.add(&values, parts, has);
            }
        }
        user.next = Turn::Does(output);
    }

    /// Whether a scenario has a place for one more user; it is taken then.
    fn takes_place(&self, kind: usize) -> bool {
        let Some(Some(ready)) = self.kinds.get(kind) else { return false };
        let (Some(most), Some(active)) = (ready.most_users, self.script.active_of.get(kind)) else {
            return true;
        };
        if active.fetch_add(1, Ordering::Relaxed) < most {
            return true;
        }
        active.fetch_sub(1, Ordering::Relaxed);
        self.script.dropped.fetch_add(1, Ordering::Relaxed);
        false
    }

    /// A user has nothing to do any more: it waits for the others, and the load is over once none has.
    fn rests(&mut self, session: u32) -> Next {
        if *self.looks.get_or_insert(session) != session {
            return Next::Rest(LONG_REST);
        }
        if self.are_all_over() { Next::Stop } else { Next::Rest(REST) }
    }

    /// Whether no scenario has an iteration to begin.
    fn are_all_over(&self) -> bool {
        let elapsed = self.script.elapsed();
        let is_over = |(at, ready): (usize, &Ready)| match ready.iterations {
            Some(most) => {
                self.script.iterations_of.get(at).is_none_or(|of| of.load(Ordering::Relaxed) >= most)
            }
            None => {
                let scenario = self.script.told().scenarios.get(ready.scenario);
                scenario.is_some_and(|of| elapsed >= of.start + of.executor.duration())
            }
        };
        let mut kinds = self.kinds.iter().enumerate().filter_map(|(at, ready)| Some((at, ready.as_ref()?)));
        kinds.all(is_over)
    }

    /// Where a URL leads.
    ///
    /// # Errors
    /// If that is nowhere, or among no targets.
    fn way(&mut self, kind: usize, request: &Request) -> Result<Arc<Way>, Unplaced> {
        let known = self
            .known
            .get(&request.url)
            .and_then(|known| known.iter().find(|way| way.is_of(kind, request.verb())));
        if let Some(known) = known {
            return Ok(Arc::clone(known));
        }
        let nowhere =
            |why: &dyn std::fmt::Display| Unplaced::Nowhere(INVALID_URL, format!("{}: {why}", request.url));
        let url = Url::parse(&request.url).map_err(|error| nowhere(&error))?;
        if !matches!(url.scheme(), "http" | "https" | "grpc" | "grpcs") {
            return Err(nowhere(&"unsupported protocol scheme"));
        }
        let host = url.host_str().unwrap_or_default();
        if let Some(pattern) = self.script.told().common.blocks(host) {
            let why = format!("hostname ({host}) is in a blocked pattern ({pattern})");
            return Err(Unplaced::Nowhere(BLOCKED_HOST, why));
        }
        // of gRPC's schemes `Url` knows neither the port nor that a host's capitals are small letters
        let own_port = match url.scheme() {
            "grpc" => Some(80),
            "grpcs" => Some(443),
            _ => None,
        };
        let authority = match url.port().filter(|port| Some(*port) != own_port) {
            Some(port) => format!("{}:{port}", host.to_ascii_lowercase()),
            None => host.to_ascii_lowercase(),
        };
        let path = urls::path_as_written(&request.url);
        let fits = |(_, of): &(usize, &Origin)| {
            let below = path.strip_prefix(of.base_path.as_str());
            of.scheme == url.scheme()
                && of.authority == authority
                && below.is_some_and(|rest| rest.starts_with('/'))
        };
        let Some((target, origin)) = self.origins.iter().enumerate().find(fits) else {
            let place = format!("{}://{authority}", url.scheme());
            return Err(Unplaced::Elsewhere(format!(
                "{place} is not among the scenario's targets: a run without a network did not come to it; write the scenario \
                 (tidemark import {} -o my.yaml), add it there (targets: {{more: {{url: {place}}}}}) and run that",
                self.script.name
            )));
        };
        let Some(Some(ready)) = self.kinds.get(kind) else {
            return Err(Unplaced::Elsewhere("this session has no script".to_owned()));
        };
        let label = ready.labels.get(&label_of(request.verb(), &url)).copied().unwrap_or(ready.label);
        let path = path[origin.base_path.len()..].to_owned();
        let call = origin.types.as_ref().map(|types| match MethodName::read(&path) {
            Some(name) => types.method(&name),
            None => Err(format!("{path} is no SERVICE/METHOD")),
        });
        let way = Arc::new(Way {
            kind,
            method: request.verb().to_owned(),
            target: target as u16,
            path,
            label,
            call,
        });
        if self.known.len() < KNOWN_MAX {
            self.known.entry(request.url.clone()).or_default().push(Arc::clone(&way));
        }
        Ok(way)
    }

    /// What the user takes in place of an answer to what cannot be sent; none where the run cannot go on.
    fn unplaced(&self, why: Unplaced) -> Option<Answer> {
        match why {
            Unplaced::Nowhere(error_code, error) => {
                self.script.nowhere.fetch_add(1, Ordering::Relaxed);
                Some(Answer { error_code, error, ..Answer::default() })
            }
            Unplaced::Unsendable(error) => Some(Answer { error, is_unsendable: true, ..Answer::default() }),
            Unplaced::Elsewhere(why) => {
                self.script.abort(format!("{}: {why}", self.script.name));
                None
            }
        }
    }

    /// The answer to a request that a user sent beside others is there: it goes on if it waits for that.
    fn arrive(&mut self, session: u32, (id, is_socket): Begun, answer: Answer) {
        let Some(Some(user)) = self.users.get_mut(session as usize) else { return };
        if is_socket {
            if answer.status != SWITCHING {
                user.sockets.remove(&id);
            }
            user.vu.inbox.borrow_mut().push(id, News::Answer(answer.into()));
            return self.wake(session);
        }
        match user.next {
            Turn::Awaits(_) => self.resume(session, Input::Arrived(id, answer)),
            _ => user.arrived.push_back((id, answer)),
        }
    }

    /// A user's inbox has something: it goes on if it waits for that.
    fn wake(&mut self, session: u32) {
        let Some(Some(user)) = self.users.get_mut(session as usize) else { return };
        match user.next {
            Turn::Awaits(_) => self.resume(session, Input::Heard),
            _ => user.has_heard = true,
        }
    }

    /// Something came over a user's WebSocket: it goes on if it waits for that. False where it takes no more.
    fn hear(&mut self, branch: u32, news: News) -> bool {
        let Some(Branch { session, id, is_open, .. }) = self.branches.get_mut(&branch) else { return false };
        let (session, id) = (*session, *id);
        let Some(Some(user)) = self.users.get_mut(session as usize) else { return false };
        let is_last = news.is_last();
        let has_room = user.vu.inbox.borrow_mut().push(id, news);
        if is_last || !has_room {
            *is_open = false;
            user.sockets.remove(&id);
        }
        self.wake(session);
        has_room
    }

    /// The request as the driver sends it.
    ///
    /// # Errors
    /// Why it cannot be sent.
    fn placed(&mut self, kind: usize, request: &mut Request) -> Result<ProgramRequest, Unplaced> {
        if let Some(why) = request.flaw.take() {
            return Err(Unplaced::Nowhere(INVALID_URL, why));
        }
        let way = self.way(kind, request)?;
        if let Some(call) = &way.call {
            let call = call.as_ref().map_err(|why| Unplaced::Unsendable(why.clone()))?;
            if !request.is_stream {
                let message = request.body.as_deref().unwrap_or(b"{}");
                call.encode(message, &mut Vec::new()).map_err(Unplaced::Unsendable)?;
            }
        }
        let Some(Some(ready)) = self.kinds.get(kind) else {
            return Err(Unplaced::Elsewhere("this session has no script".to_owned()));
        };
        let named = request.name.as_ref().map(|name| ready.labels.get(name).copied().unwrap_or(ready.label));
        Ok(ProgramRequest {
            label: named.unwrap_or(way.label),
            target: way.target,
            timeout: request.timeout.filter(|timeout| !timeout.is_zero()).unwrap_or(ready.timeout),
            method: std::mem::take(&mut request.method),
            path: way.path.clone(),
            headers: std::mem::take(&mut request.headers),
            body: request.body.take(),
            websocket: request.websocket.take(),
            stays_open: request.is_stream,
            closes: request.closes,
            without_cookies: true,
            ..ProgramRequest::default()
        })
    }
}

impl Program for Users {
    fn begin(&mut self, session: u32, kind: usize) {
        let at = session as usize;
        if self.users.len() <= at {
            self.users.resize_with(at + 1, || None);
        }
        let Some(Some(ready)) = self.kinds.get(kind) else { return };
        self.is_over.set(false);
        let own = self.users[at].as_ref().filter(|user| user.kind == kind).map_or(0, |user| user.iterations);
        if ready.of_each.is_some_and(|most| own >= most) {
            if let Some(user) = &mut self.users[at] {
                user.next = Turn::Rests;
            }
            return;
        }
        // `setup` and `teardown` are nobody's iterations
        let counted = match self.is_main {
            true => 0,
            false => self.script.iterations_of.get(kind).map_or(0, |of| of.fetch_add(1, Ordering::Relaxed)),
        };
        let rests = ready.iterations.is_some_and(|most| counted >= most);
        let ends = !self.is_main && ready.most_users.is_some() && !self.takes_place(kind);
        let Some(Some(ready)) = self.kinds.get(kind) else { return };
        if self.users[at].is_none() {
            if rests || ends {
                self.is_over.set(ends);
                return;
            }
            let number = match self.is_main {
                true => crate::host::MAIN,
                false => self.script.users.fetch_add(1, Ordering::Relaxed) + 1,
            };
            match Vu::begin(&self.script, number, &self.metrics) {
                Ok(vu) => {
                    self.users[at] = Some(User {
                        vu,
                        kind,
                        iterations: 0,
                        next: Turn::Rests,
                        begun: Instant::now(),
                        sent: None,
                        has_slot: false,
                        begins: None,
                        arrived: VecDeque::new(),
                        sockets: HashMap::new(),
                        has_heard: false,
                    });
                }
                Err(words) => {
                    self.script.abort(words);
                    return;
                }
            }
        }
        let call = Call {
            function: Arc::clone(&ready.call),
            takes_data: !self.is_main || &*ready.call == "teardown",
            argument: None,
            place: Place { scenario: ready.scenario, iteration_in_scenario: counted },
        };
        let Some(user) = &mut self.users[at] else { return };
        user.iterations = if user.kind == kind { user.iterations + 1 } else { 1 };
        (user.kind, user.begun, user.sent) = (kind, Instant::now(), None);
        user.arrived.clear();
        user.sockets.clear();
        user.has_heard = false;
        if ends {
            user.next = Turn::Ends;
            return;
        }
        if rests {
            user.next = Turn::Rests;
            return;
        }
        self.resume(session, Input::Call(call));
    }

    // users of other threads may have done what these wait for
    fn is_over(&self) -> bool {
        !self.is_main
            && self.kinds.iter().flatten().any(|ready| ready.iterations.is_some())
            && self.are_all_over()
    }

    fn next(&mut self, session: u32, _: Duration) -> Next {
        if !self.branches.is_empty()
            && let Some(branch) = self.branches.get_mut(&session)
        {
            return branch.next(session);
        }
        loop {
            if let Some(why) = self.script.aborted() {
                return Next::Failed(why);
            }
            let Some(Some(user)) = self.users.get_mut(session as usize) else {
                return if self.is_over.get() { Next::End } else { self.rests(session) };
            };
            let sends = matches!(user.next, Turn::Does(Output::Send(_) | Output::Begin(..)));
            if sends
                && !std::mem::take(&mut user.has_slot)
                && let Some(wait) = self.script.wait_for_slot()
            {
                user.has_slot = true;
                return Next::Think(wait);
            }
            match std::mem::replace(&mut user.next, Turn::Wakes) {
                Turn::Rests => {
                    user.next = Turn::Rests;
                    return self.rests(session);
                }
                Turn::Ends => return Next::End,
                Turn::Wakes => self.resume(session, Input::Woken),
                Turn::Awaits(until) => {
                    // it is also asked when nothing has come
                    let left = until.map(|until| until.saturating_duration_since(Instant::now()));
                    if left != Some(Duration::ZERO) {
                        user.next = Turn::Awaits(until);
                        return Next::Await(left);
                    }
                    self.resume(session, Input::Woken);
                }
                Turn::Does(Output::Await(_)) if user.has_heard => {
                    user.has_heard = false;
                    self.resume(session, Input::Heard);
                }
                Turn::Does(Output::Say(id, said)) => {
                    let Some(socket) = user.sockets.get(&id).copied() else {
                        self.resume(session, Input::Woken);
                        continue;
                    };
                    let leaves = matches!(said, Said::Leave(_));
                    if leaves {
                        user.sockets.remove(&id);
                    }
                    let Some(branch) = self.branches.get_mut(&socket) else { return Next::Say(socket, said) };
                    if let Some(why) = branch.refusal(&said) {
                        let answer = Answer { error: why, is_unsendable: true, ..Answer::default() };
                        self.resume(session, Input::Answer(answer));
                        continue;
                    }
                    if branch.is_opening() {
                        branch.unsaid.push_back(said);
                        self.resume(session, Input::Woken);
                        continue;
                    }
                    branch.is_open &= !leaves;
                    return Next::Say(socket, said);
                }
                Turn::Does(Output::Await(time)) => match user.arrived.pop_front() {
                    Some((id, answer)) => self.resume(session, Input::Arrived(id, answer)),
                    None => {
                        user.next = Turn::Awaits(time.map(|time| Instant::now() + time));
                        return Next::Await(time);
                    }
                },
                Turn::Does(Output::Begin(id, mut request)) => {
                    let sent = Sent::now(&request);
                    let (kind, is_stream) = (user.kind, request.is_stream);
                    let begun = (id, request.opens());
                    let way = if is_stream { self.way(kind, &request).ok() } else { None };
                    match self.placed(kind, &mut request) {
                        Ok(placed) => {
                            let call = way.and_then(|way| way.call.clone());
                            if let Some(Some(user)) = self.users.get_mut(session as usize) {
                                user.begins = Some(Branch {
                                    session,
                                    id,
                                    sent: Some(sent),
                                    is_socket: begun.1,
                                    is_stream,
                                    is_open: false,
                                    method: call.and_then(Result::ok),
                                    unsaid: VecDeque::new(),
                                });
                            }
                            return Next::Branch(placed);
                        }
                        Err(why) => match self.unplaced(why) {
                            Some(answer) if is_stream && answer.is_unsendable => {
                                self.resume(session, Input::Answer(answer));
                            }
                            Some(answer) => {
                                self.arrive(session, begun, answer);
                                self.resume(session, Input::Woken);
                            }
                            None => self.resume(session, Input::Woken),
                        },
                    }
                }
                Turn::Does(Output::Sleep(time)) => return Next::Think(time),
                Turn::Does(Output::Returned(_) | Output::Threw(_) | Output::Ready | Output::Interrupted) => {
                    let shortest =
                        if self.is_main { Duration::ZERO } else { self.script.told().common.shortest };
                    let left = shortest.saturating_sub(user.begun.elapsed());
                    if left.is_zero() {
                        return Next::End;
                    }
                    user.next = Turn::Ends;
                    return Next::Rest(left);
                }
                Turn::Does(Output::Send(mut request)) => {
                    user.sent = Some(Sent::now(&request));
                    let kind = user.kind;
                    match self.placed(kind, &mut request) {
                        Ok(placed) => return Next::Request(placed),
                        Err(why) => {
                            if let Some(answer) = self.unplaced(why) {
                                self.resume(session, Input::Answer(answer));
                            }
                        }
                    }
                }
            }
        }
    }

    fn branched(&mut self, session: u32, branch: Option<u32>) {
        let Some(Some(user)) = self.users.get_mut(session as usize) else { return };
        let Some(begun) = user.begins.take() else { return };
        match branch {
            Some(branch) => {
                if begun.is_socket {
                    user.sockets.insert(begun.id, branch);
                }
                self.branches.insert(branch, begun);
            }
            None => {
                let error = "too many requests are under way".to_owned();
                let answer = Answer { error_code: 1000, error, ..Answer::default() };
                self.arrive(session, (begun.id, begun.is_socket), answer);
            }
        }
    }

    fn answered(&mut self, session: u32, view: &AnswerView<'_>) -> AnswerCheck {
        let Some((sent, of)) = self.take_sent(session) else { return AnswerCheck::ByStatus };
        if let Some(branch) = self.branches.get_mut(&session) {
            branch.is_open = branch.is_socket && view.status() == SWITCHING;
        }
        self.hand_over(session, of, sent.answer(view));
        sent.check(view.status())
    }

    fn failed(&mut self, session: u32, outcome: Outcome) {
        let Some((sent, of)) = self.take_sent(session) else { return };
        self.hand_over(session, of, sent.failure(outcome));
    }

    fn interrupted(&mut self, session: u32) -> bool {
        let user = self.users.get_mut(session as usize).and_then(Option::as_mut);
        let Some(user) = user.filter(|user| user.next.is_within()) else { return false };
        // what comes of its requests is told nobody
        (user.sent, user.begins, user.next) = (None, None, Turn::Ends);
        for branch in self.branches.values_mut().filter(|branch| branch.session == session) {
            (branch.sent, branch.is_open) = (None, false);
        }
        let kind = user.kind;
        if !matches!(user.vu.resume(Input::Interrupt), Output::Interrupted) {
            self.users[session as usize] = None;
        }
        self.at_work = self.at_work.saturating_sub(1);
        if !self.is_main {
            leave_place(&self.script, kind, self.kinds.get(kind).and_then(Option::as_ref));
            self.script.under_way.fetch_sub(1, Ordering::Relaxed);
            self.script.interrupted.fetch_add(1, Ordering::Relaxed);
        }
        true
    }

    fn finishes(&self) -> bool {
        self.at_work > 0
    }

    fn heard(&mut self, branch: u32, heard: Heard<'_>) -> bool {
        self.hear(branch, News::of(&heard))
    }
}

impl Users {
    /// The request of a session that is over; whose it is and under which number, where it was sent beside others.
    fn take_sent(&mut self, session: u32) -> Option<(Sent, Option<(u32, Begun)>)> {
        if let Some(branch) = self.branches.get_mut(&session) {
            let of = (branch.session, (branch.id, branch.is_socket));
            return Some((branch.sent.take()?, Some(of)));
        }
        let user = self.users.get_mut(session as usize)?.as_mut()?;
        Some((user.sent.take()?, None))
    }

    fn hand_over(&mut self, session: u32, of: Option<(u32, Begun)>, answer: Answer) {
        match of {
            Some((parent, id)) => self.arrive(parent, id, answer),
            None => self.resume(session, Input::Answer(answer)),
        }
    }
}
