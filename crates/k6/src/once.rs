//! A script's function run once, with answers made up by the caller: for tests.

use crate::host;
use crate::metrics::Measured;
use crate::sockets::News;
use crate::summary;
use crate::vu::{Answer, Call, Input, Output, Place, Request, Vu};
use crate::{K6, ScriptError};
use std::collections::VecDeque;
use std::sync::Arc;
use tidemark_record::ScriptCheck;

/// Most requests and pauses.
const TURNS_MAX: usize = 1_000;

/// A request that the function made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SentOnce {
    /// Its method.
    pub method: String,
    /// Its URL.
    pub url: String,
    /// Its headers, in order.
    pub headers: Vec<(String, String)>,
    /// Its body, if it has one.
    pub body: Option<Vec<u8>>,
}

/// What the function did.
#[derive(Debug, Clone)]
pub struct Once {
    /// What it returned, as JSON; none where that is nothing.
    pub returned: Option<String>,
    /// What it sent, in order.
    pub sent: Vec<SentOnce>,
    /// Its checks.
    pub checks: Vec<ScriptCheck>,
    /// Why it ended the run, or failed it.
    pub ended: Option<String>,
}

impl K6 {
    /// Runs a function once. Each request is answered with a status, header lines and a body.
    ///
    /// # Errors
    /// What it threw.
    #[doc(hidden)]
    pub fn run_once(
        &self,
        function: &str,
        mut answer: impl FnMut(&SentOnce) -> (u16, String, Vec<u8>),
    ) -> Result<Once, ScriptError> {
        let metrics = Arc::default();
        let mut vu = Vu::begin(&self.script, host::MAIN + 1, &metrics).map_err(ScriptError)?;
        let call = Call {
            function: function.into(),
            takes_data: false,
            argument: None,
            place: Place { scenario: 0, iteration_in_scenario: 0 },
        };
        let mut sent = Vec::new();
        let mut arrived = VecDeque::new();
        let mut answer = |request: Box<Request>| {
            let Request { method, url, headers, body, flaw, .. } = *request;
            if let Some(error) = flaw {
                return Answer { error_code: 1_000, error, ..Answer::default() };
            }
            let request = SentOnce { method, url, headers, body };
            let (status, head, body) = answer(&request);
            sent.push(request);
            let sets_cookies = head.to_ascii_lowercase().contains("set-cookie:");
            Answer { status, head, body, sets_cookies, duration_ms: 1.0, ..Answer::default() }
        };
        let mut output = vu.resume(Input::Call(call));
        for _ in 0..TURNS_MAX {
            output = match output {
                Output::Sleep(_) | Output::Ready => vu.resume(Input::Woken),
                Output::Send(request) => vu.resume(Input::Answer(answer(request))),
                Output::Say(..) => vu.resume(Input::Woken),
                Output::Begin(id, request) if request.opens() => {
                    let news = [News::Answer(answer(request).into()), News::Ended];
                    news.into_iter().all(|news| vu.inbox.borrow_mut().push(id, news));
                    vu.resume(Input::Woken)
                }
                Output::Begin(id, request) => {
                    arrived.push_back(Input::Arrived(id, answer(request)));
                    vu.resume(Input::Woken)
                }
                Output::Await(_) => vu.resume(arrived.pop_front().unwrap_or(Input::Woken)),
                Output::Threw(words) if self.script.aborted().is_none() => return Err(ScriptError(words)),
                output => {
                    let returned = if let Output::Returned(json) = output { json } else { None };
                    let mut measured = Measured::default();
                    metrics.add_to(&mut measured);
                    let ended = self.script.aborted().or_else(|| self.script.failed());
                    return Ok(Once {
                        returned,
                        sent,
                        checks: summary::checks(&self.script, &measured),
                        ended,
                    });
                }
            };
        }
        Err(ScriptError(format!("{}: {function} does not end", self.script.name)))
    }
}
