//! Sessions whose requests come from code: the seam for scripts.
//!
//! At [`Op::Program`](tidemark_scenario::plan::Op::Program) a session asks its thread's [`Program`] what comes next, and
//! hands it the answer. Load models, due times, connections, cookies, outcomes and histograms are those of every session.
//!
//! A program runs in turn with its driving thread. What [`Program::next`] takes makes its request late, as operations of
//! a plan do; what [`Program::answered`] takes is in no figure, as checks are, and what follows is due after it.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tidemark_record::{Outcome, RequestParts, is_wrong_status};
use tidemark_wire::http1::is_token;

use crate::session::answer::{Answer, Flaw, Scratch};
use crate::session::sockets::{Heard, Said};

/// Headers that the driver writes itself, or that say how a body is sent.
const OWN_HEADERS: [&str; 4] = ["content-length", "transfer-encoding", "connection", "upgrade"];

/// Headers of a handshake that the driver writes itself.
const HANDSHAKE_HEADERS: [&str; 4] =
    ["sec-websocket-key", "sec-websocket-version", "sec-websocket-protocol", "sec-websocket-extensions"];

/// Decides what the sessions of one thread do. Session numbers are reused: `begin` says that a new session has one.
pub trait Program {
    /// A session of the plan's kind with this index begins.
    fn begin(&mut self, session: u32, kind: usize);
    /// What a session does next, so long after the run's zero.
    fn next(&mut self, session: u32, now: Duration) -> Next;
    /// The answer to a session's request came in time; whether it is good.
    fn answered(&mut self, session: u32, answer: &AnswerView<'_>) -> AnswerCheck;
    /// A session's request failed without an answer.
    fn failed(&mut self, session: u32, outcome: Outcome);
    /// A session ends where it is, as its time or the run's is over. What is under way of it fails after this. False: it only
    /// rests, and goes on with that while the run does.
    fn interrupted(&mut self, session: u32) -> bool {
        let _ = session;
        true
    }
    /// Whether nothing more is to begin on this thread: asked several times a second, also while no session is under way.
    fn is_over(&self) -> bool {
        false
    }
    /// Whether sessions that are under way at the end of the load come to their own end, within the plan's drain.
    /// Otherwise only their requests do.
    fn finishes(&self) -> bool {
        false
    }
    /// A session's [`Next::Branch`] has begun under this session number, which is no other's; what comes of its request is told
    /// under that. None: too many are under way ([`MOST_BRANCHES`](crate::MOST_BRANCHES) of the session,
    /// [`MOST_BRANCHES_OF_THREAD`](crate::MOST_BRANCHES_OF_THREAD) of all), and the request is counted as dropped.
    fn branched(&mut self, session: u32, branch: Option<u32>) {
        let _ = (session, branch);
    }
    /// Something came over a branch's WebSocket. False: the program takes no more, and it breaks off.
    fn heard(&mut self, branch: u32, heard: Heard<'_>) -> bool {
        let _ = (branch, heard);
        true
    }
}

/// What a session does next.
#[derive(Debug)]
pub enum Next {
    /// It makes a request, which is due at once.
    Request(ProgramRequest),
    /// It says more on the stream that its last request left open, which is due at once.
    Message(ProgramMessage),
    /// It waits for so long; from when the answer came.
    Think(Duration),
    /// It has nothing to do, and asks again after so long; at the end of the load it is over.
    Rest(Duration),
    /// It makes a request beside what else it does, on a branch: a session of its own with this request, due as the
    /// session's own would be. It is told by [`Program::branched`], and the session is asked again at once.
    ///
    /// A branch is then a session as any other, but that no load counts it: it is asked what comes next once its request is
    /// over, until [`Next::End`]. Cookies and groups are those of the session. When that leaves the program, its branches
    /// end: their requests that are under way are cut off.
    Branch(ProgramRequest),
    /// It waits until something has come of one of its branches since it last waited (an answer, a failure, its end), or
    /// for so long; from when it was due.
    Await(Option<Duration>),
    /// One of its branches says something over the WebSocket that it holds, at once; nothing where it holds none.
    Say(u32, Said),
    /// It leaves the program, and goes on with the plan's next operation.
    End,
    /// Nothing more begins on this thread; what is under way is waited for.
    Stop,
    /// The program cannot go on: the drive ends at once, for this reason.
    Failed(String),
}

/// A request of HTTP. The driver adds `Host` where it has none, `Content-Length` and the session's cookies.
#[derive(Debug, Clone, Default)]
pub struct ProgramRequest {
    /// Index into the plan's labels. One that is not there counts as the last label.
    pub label: u16,
    /// Where it goes: 0 is the system, what follows are the plan's targets.
    pub target: u16,
    /// Longest time from due to the last byte.
    pub timeout: Duration,
    /// `GET`, `POST`, …
    pub method: String,
    /// Path and query, begun with a slash; the target's base path is put in front.
    pub path: String,
    /// Names and values, in order.
    pub headers: Vec<(String, String)>,
    /// The body, if any.
    pub body: Option<Vec<u8>>,
    /// The whole request as its bytes, sent over HTTP/1.1 as they are, in place of method, path, headers and body. The
    /// driver adds nothing to it.
    pub written: Option<Arc<[u8]>>,
    /// Whether its connection is closed after it, which the server is told; over HTTP/1.1 only.
    pub closes: bool,
    /// Whether the session's cookies stay at home: the program keeps its own.
    pub without_cookies: bool,
    /// Whether the program looks at nothing of the answer but its status.
    pub status_only: bool,
    /// The subprotocols that it offers, where it asks for a WebSocket. That needs a branch, HTTP/1.1, `GET`, and
    /// [`Programs::opening_websockets`].
    pub websocket: Option<Vec<String>>,
    /// Whether messages follow, either way, over the same stream of HTTP/2. The request is over with the first part of its
    /// answer that the program takes. Of gRPC that needs a branch and [`Programs::opening_websockets`]: the request is over
    /// once the stream is open, messages are said and heard as texts of JSON, a close says that no more are said, and the
    /// status is heard as the peer's close.
    pub stays_open: bool,
}

/// A message on an open stream.
#[derive(Debug, Clone, Default)]
pub struct ProgramMessage {
    /// Index into the plan's labels, as of a [request](ProgramRequest::label).
    pub label: u16,
    /// Longest time from due to the last byte.
    pub timeout: Duration,
    /// What is said; nothing to wait for more of the answer.
    pub data: Vec<u8>,
    /// Whether it is the last: the session's side of the stream is closed, and the rest of the answer is waited for.
    pub ends: bool,
    /// Whether a part of the answer is waited for. Otherwise it is over once sent, and no answer is looked at.
    pub awaits: bool,
}

/// What a program has a session send.
#[derive(Debug)]
pub(crate) enum Outgoing {
    Request(ProgramRequest),
    Message(ProgramMessage),
}

impl ProgramRequest {
    /// In words why it cannot be sent, if so.
    pub(crate) fn flaw(&self) -> Option<String> {
        if self.written.is_some() {
            return None;
        }
        let is_value = |value: &str| !value.bytes().any(|byte| byte.is_ascii_control() && byte != b'\t');
        if !is_token(self.method.as_bytes()) {
            return Some(format!("a program's request cannot be sent: its method is {:?}", self.method));
        }
        if !self.path.starts_with('/') || self.path.bytes().any(|byte| byte <= b' ' || byte == 0x7f) {
            return Some(format!("a program's request cannot be sent: its path is {:?}", self.path));
        }
        let is_wrong = |(name, value): &&(String, String)| {
            let is_own = OWN_HEADERS.iter().any(|own| name.eq_ignore_ascii_case(own));
            is_own || !is_token(name.as_bytes()) || !is_value(value)
        };
        if let Some(protocols) = &self.websocket {
            let is_plain = self.method == "GET" && self.body.is_none();
            let is_own = |(name, _): &(String, String)| {
                HANDSHAKE_HEADERS.iter().any(|own| name.eq_ignore_ascii_case(own))
            };
            if !is_plain
                || self.headers.iter().any(is_own)
                || !protocols.iter().all(|one| is_token(one.as_bytes()))
            {
                return Some("a program's WebSocket cannot be asked for: it needs GET, no body, and subprotocols that are tokens".into());
            }
        }
        let (name, value) = self.headers.iter().find(is_wrong)?;
        Some(format!("a program's request cannot be sent: it has the header {name:?}: {value:?}"))
    }

    /// The value of its first header of this name.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let named = |(given, _): &&(String, String)| given.eq_ignore_ascii_case(name);
        self.headers.iter().find(named).map(|(_, value)| value.as_str())
    }
}

/// What a program says of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AnswerCheck {
    /// It is good if its status is below 400.
    ByStatus,
    /// It is good, whatever its status.
    Good,
    /// It fails a check, in these words.
    Wrong(String),
    /// More of it is to come, over a stream that is open; what is there is shown again, with that.
    More,
}

/// An answer, as a program sees it.
pub struct AnswerView<'a> {
    answer: &'a dyn Answer,
    whole: Option<Whole>,
}

/// The times of a whole answer, and how it came.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Whole {
    /// From when its request was sent to its last byte.
    pub service: Duration,
    /// Where the time of its request went.
    pub parts: RequestParts,
    /// Version and cipher suite of TLS.
    pub tls: Option<(&'static str, &'static str)>,
}

impl fmt::Debug for AnswerView<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AnswerView").field("status", &self.status()).finish_non_exhaustive()
    }
}

impl AnswerView<'_> {
    /// The status.
    pub fn status(&self) -> u16 {
        self.answer.status()
    }

    /// A header by its lower-case name.
    pub fn header(&self, name: &str) -> Option<&[u8]> {
        self.answer.header(name)
    }

    /// Its headers, one after the other, by name and value.
    pub fn each_header(&self, tell: &mut dyn FnMut(&[u8], &[u8])) {
        self.answer.each_header(tell);
    }

    /// The body, decoded if it came encoded; of an answer over an open stream what came since the last part was taken.
    pub fn body(&self) -> &[u8] {
        self.answer.body()
    }

    /// A trailer, by its lower-case name.
    pub fn trailer(&self, name: &str) -> Option<&[u8]> {
        self.answer.trailer(name)
    }

    /// Its trailers, one after the other, by name and value; of gRPC they are the last of `each_header`, too.
    pub fn each_trailer(&self, tell: &mut dyn FnMut(&[u8], &[u8])) {
        self.answer.each_trailer(tell);
    }

    /// Whether it is at its end; over an open stream parts of it come before.
    pub fn is_whole(&self) -> bool {
        self.whole.is_some()
    }

    /// From when its request was sent to its last byte; none for a part of an answer.
    pub fn service(&self) -> Option<Duration> {
        self.whole.map(|whole| whole.service)
    }

    /// Where the time of its request went; none for a part of an answer.
    pub fn parts(&self) -> Option<RequestParts> {
        self.whole.map(|whole| whole.parts)
    }

    /// Version and cipher suite of TLS that it came by, as `TLS 1.3` and `TLS13_AES_128_GCM_SHA256`; none without TLS, and for
    /// a part of an answer.
    pub fn tls(&self) -> Option<(&'static str, &'static str)> {
        self.whole.and_then(|whole| whole.tls)
    }
}

/// Makes the program of each thread.
#[derive(Clone)]
pub struct Programs {
    make: Arc<dyn Fn(usize) -> Box<dyn Program> + Send + Sync>,
    open_websockets: bool,
}

impl fmt::Debug for Programs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Programs")
    }
}

impl Programs {
    /// By a function that is called with a thread's number, on that thread.
    pub fn new(make: impl Fn(usize) -> Box<dyn Program> + Send + Sync + 'static) -> Programs {
        Programs { make: Arc::new(make), open_websockets: false }
    }

    /// They may ask for WebSockets, and hold streams of gRPC.
    #[must_use]
    pub fn opening_websockets(self) -> Programs {
        Programs { open_websockets: true, ..self }
    }

    /// Whether they may.
    pub(crate) fn open_websockets(&self) -> bool {
        self.open_websockets
    }

    /// The program of a thread.
    pub(crate) fn make(&self, thread: usize) -> Box<dyn Program> {
        (self.make)(thread)
    }
}

/// Has a program judge a whole answer, or a part of one (no times); none where it waits for more.
pub(crate) fn judge(
    program: &mut dyn Program,
    session: usize,
    (answer, whole): (&dyn Answer, Option<Whole>),
    scratch: &mut Scratch,
) -> Option<Result<(), Flaw>> {
    let is_whole = whole.is_some();
    let words = match program.answered(session as u32, &AnswerView { answer, whole }) {
        AnswerCheck::ByStatus if is_wrong_status(answer.status()) => return Some(Err(Flaw::Status)),
        AnswerCheck::ByStatus | AnswerCheck::Good => return Some(Ok(())),
        AnswerCheck::More if !is_whole => return None,
        AnswerCheck::More => "it ended before the program had all of it".into(),
        AnswerCheck::Wrong(words) => words,
    };
    scratch.objection = words;
    Some(Err(Flaw::Objection))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_sent_is_told() {
        let request = |method: &str, path: &str, headers: &[(&str, &str)]| ProgramRequest {
            method: method.into(),
            path: path.into(),
            headers: headers.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect(),
            ..ProgramRequest::default()
        };
        assert_eq!(request("GET", "/a?b=c", &[("X-A", "a b"), ("Cookie", "a=b")]).flaw(), None);
        for (request, what) in [
            (request("", "/", &[]), "method"),
            (request("GET /", "/", &[]), "method"),
            (request("GET", "a", &[]), "path"),
            (request("GET", "/ HTTP/1.1\r\nX: y", &[]), "path"),
            (request("GET", "/", &[("x y", "")]), "header"),
            (request("GET", "/", &[("x", "a\r\nb: c")]), "header"),
            (request("GET", "/", &[("content-Length", "3")]), "header"),
            (request("GET", "/", &[("Upgrade", "x")]), "header"),
        ] {
            assert!(request.flaw().is_some_and(|words| words.contains(what)), "{request:?}");
        }
    }
}
