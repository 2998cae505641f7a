//! A virtual user: a JavaScript runtime on a stack of its own.
//!
//! What waits in k6 (a request, `sleep`) suspends the user's stack and gives its thread back to the driver. The driver
//! resumes it with the answer.

use std::cell::{Cell, RefCell};
use std::fmt;
use std::ptr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use corosensei::stack::DefaultStack;
use corosensei::{Coroutine, CoroutineResult, Yielder};
use tidemark_drive::Said;

use crate::host;
use crate::metrics::Metrics;
use crate::script::Script;
use crate::sockets::Inbox;

/// Stack of a user, bytes. Only what is touched takes memory.
const STACK_BYTES: usize = 512 << 10;
/// Of which JavaScript may use, bytes; what is left is for what it calls.
pub(crate) const SCRIPT_STACK_BYTES: usize = 320 << 10;
/// Most suspensions of a user that is to end, before its memory is given up.
const LAST_TURNS_MAX: usize = 1_000;

/// What a user is resumed with.
#[derive(Debug)]
pub(crate) enum Input {
    /// It runs an exported function.
    Call(Call),
    /// The answer to its request.
    Answer(Answer),
    /// The answer to a request of this number, which it sent beside others.
    Arrived(u64, Answer),
    /// Something has come over its WebSockets: the inbox has it.
    Heard,
    /// Its sleep is over, or what it did at once is done.
    Woken,
    /// Its iteration ends, wherever it is.
    Interrupt,
    /// It ends, wherever it is.
    End,
}

/// A function that a user runs.
#[derive(Debug, Clone)]
pub(crate) struct Call {
    /// Its name among the exports.
    pub function: Arc<str>,
    /// Whether the result of `setup` is its argument.
    pub takes_data: bool,
    /// JSON that is its argument, where it is not that result.
    pub argument: Option<Arc<str>>,
    /// Where the iteration belongs.
    pub place: Place,
}

/// Where an iteration belongs.
#[derive(Debug, Clone)]
pub(crate) struct Place {
    /// Index into the script's scenarios.
    pub scenario: usize,
    /// The number of the iteration in its scenario, over all users.
    pub iteration_in_scenario: u64,
}

impl Place {
    /// In no scenario.
    pub const NONE: Place = Place { scenario: usize::MAX, iteration_in_scenario: 0 };
}

/// What a user suspends itself with.
#[derive(Debug)]
pub(crate) enum Output {
    /// It can be called.
    Ready,
    /// It sends a request.
    Send(Box<Request>),
    /// It sends a request beside what else it does, and goes on at once.
    Begin(u64, Box<Request>),
    /// It says something over a WebSocket that it has begun under this number.
    Say(u64, Said),
    /// It waits for the answer to any of those, or what comes over a WebSocket, for so long at most.
    Await(Option<Duration>),
    /// It sleeps.
    Sleep(Duration),
    /// The function that it was called for has returned, with this JSON.
    Returned(Option<String>),
    /// It threw, with these words.
    Threw(String),
    /// The function ended where it was, as its user was told to.
    Interrupted,
}

/// A request that a user makes.
#[derive(Debug, Clone, Default)]
pub(crate) struct Request {
    pub method: String,
    pub url: String,
    pub headers: Vec<(String, String)>,
    pub body: Option<Vec<u8>>,
    pub timeout: Option<Duration>,
    /// What it is counted as, where the script says so.
    pub name: Option<String>,
    /// Whether the script looks at no body.
    pub discards_body: bool,
    /// Statuses that are good; none where every one below 400 is.
    pub expected: Option<Arc<[(u16, u16)]>>,
    /// The subprotocols that it offers, where it asks for a WebSocket.
    pub websocket: Option<Vec<String>>,
    /// Whether it opens a stream of gRPC.
    pub is_stream: bool,
    /// Whether its connection is closed after it.
    pub closes: bool,
    /// Why it cannot be sent, if so.
    pub flaw: Option<String>,
}

impl Request {
    /// Whether it opens what stays open.
    pub fn opens(&self) -> bool {
        self.is_stream || self.websocket.is_some()
    }

    /// What its label begins with, unless the script names it.
    pub fn verb(&self) -> &str {
        if self.websocket.is_some() { "WS" } else { &self.method }
    }
}

/// Parts of a request's time, ms, as k6 names them.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Parts {
    /// Until it had a connection.
    pub blocked: f64,
    pub connecting: f64,
    pub handshaking: f64,
    /// From the first byte sent to the first received.
    pub waiting: f64,
    pub receiving: f64,
}

/// What became of a request.
#[derive(Debug, Clone, Default)]
pub(crate) struct Answer {
    /// 0 where there was none.
    pub status: u16,
    /// Header lines, as `Name: value`, with a line feed behind each.
    pub head: String,
    pub body: Vec<u8>,
    /// Whether a line of the head sets a cookie.
    pub sets_cookies: bool,
    /// From when it was sent to its last byte, ms.
    pub duration_ms: f64,
    pub parts: Parts,
    /// Version and cipher suite of TLS, where it came by that.
    pub tls: Option<(&'static str, &'static str)>,
    /// k6's number of the error, 0 without one.
    pub error_code: u32,
    /// The error in words.
    pub error: String,
    /// Whether it could not be a request at all: its script throws, and nothing is measured.
    pub is_unsendable: bool,
}

/// The way from JavaScript to whoever resumes its user.
#[derive(Clone)]
pub(crate) struct Way(*const Yielder<Input, Output>);

impl Way {
    /// Suspends the user.
    pub fn suspend(&self, output: Output) -> Input {
        // SAFETY: the yielder lives as long as the function on whose stack the script runs, and only that calls here.
        #[allow(unsafe_code)]
        let yielder = unsafe { &*self.0 };
        yielder.suspend(output)
    }
}

impl Way {
    /// Does something that needs more stack than a user has.
    pub fn on_thread_stack<T: Send>(&self, does: impl FnOnce() -> T + Send) -> T {
        // SAFETY: as above.
        #[allow(unsafe_code)]
        let yielder = unsafe { &*self.0 };
        yielder.on_parent_stack(does)
    }
}

/// A virtual user.
pub(crate) struct Vu {
    stack: Coroutine<Input, Output, (), DefaultStack>,
    /// What came over its WebSockets.
    pub inbox: Rc<RefCell<Inbox>>,
}

impl fmt::Debug for Vu {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Vu")
    }
}

impl Vu {
    /// Begins a user: its script has run as far as the functions that it exports.
    ///
    /// # Errors
    /// What the script threw, or why there is no memory for it.
    pub fn begin(script: &Arc<Script>, number: u64, metrics: &Arc<Metrics>) -> Result<Vu, String> {
        let stack =
            DefaultStack::new(STACK_BYTES).map_err(|error| format!("no stack for a user: {error}"))?;
        let (script, metrics) = (Arc::clone(script), Arc::clone(metrics));
        let inbox: Rc<RefCell<Inbox>> = Rc::default();
        let seen = Rc::clone(&inbox);
        let coroutine = Coroutine::with_stack(stack, move |yielder: &Yielder<Input, Output>, _| {
            let way = Way(ptr::from_ref(yielder));
            if let Err(words) = host::live(&script, (number, &seen), &metrics, &way) {
                way.suspend(Output::Threw(words));
            }
        });
        let mut vu = Vu { stack: coroutine, inbox };
        match vu.resume(Input::Woken) {
            Output::Threw(words) => Err(words),
            _ => Ok(vu),
        }
    }

    /// Runs the user until it waits.
    pub fn resume(&mut self, input: Input) -> Output {
        if self.stack.done() {
            return Output::Threw("the user has ended".into());
        }
        match self.stack.resume(input) {
            CoroutineResult::Yield(output) => output,
            CoroutineResult::Return(()) => Output::Threw("the user has ended".into()),
        }
    }
}

impl Drop for Vu {
    fn drop(&mut self) {
        for _ in 0..LAST_TURNS_MAX {
            if self.stack.done() {
                return;
            }
            self.stack.resume(Input::End);
        }
        // SAFETY: what the stack owns is leaked, and nothing else refers to it.
        #[allow(unsafe_code)]
        unsafe {
            self.stack.force_reset();
        }
    }
}

/// Whether a user is to end, as seen by what runs on its stack.
#[derive(Debug, Default)]
pub(crate) struct Ending {
    is_begun: Cell<bool>,
    /// Whether it is all of the user, and not just its iteration.
    is_users: Cell<bool>,
}

impl Ending {
    /// Notes whether a user that was resumed with this is to end; whether it is.
    pub fn note(&self, input: &Input) -> bool {
        let is_users = matches!(input, Input::End);
        self.is_users.set(is_users);
        self.is_begun.set(is_users || matches!(input, Input::Interrupt));
        self.is_begun.get()
    }

    /// Whether it ends.
    pub fn is_begun(&self) -> bool {
        self.is_begun.get()
    }

    /// Whether all of it does.
    pub fn is_users(&self) -> bool {
        self.is_users.get()
    }
}
