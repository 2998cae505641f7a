//! A session that is told of step by step, for whoever looks for a mistake in a scenario.
//!
//! Only a session that is run once is ([`run_logged`](crate::run_logged)): each step is copied as it ends, up to a bound, and
//! handed over. No load pays for it with more than a look at an empty place.

use std::collections::HashMap;
use std::sync::mpsc::Sender;

use tidemark_record::LoggedAnswer;

use crate::session::answer::{Answer, Flaw, Probe, Scratch, Variables};
use crate::session::findings::{Checked, Extracted, LOGGED_BYTES, text};

/// What came of one step.
#[derive(Debug, Clone, Default)]
pub struct LoggedStep {
    /// Its label.
    pub label: String,
    /// Whether it is code that ran, and no request.
    pub is_code: bool,
    /// What was sent, where the protocol is one of bytes; no more than [`LOGGED_BYTES`] of it.
    pub sent: Vec<u8>,
    /// Bytes of all of it.
    pub sent_bytes: usize,
    /// The redirects that were followed before that: status and location of each.
    pub hops: Vec<(u16, String)>,
    /// What came, if an answer did.
    pub answer: Option<LoggedAnswer>,
    /// What was kept from the answer.
    pub extracted: Vec<Extracted>,
    /// What was looked at in the answer.
    pub checks: Vec<Checked>,
    /// Cookies that are not sent back, by name, and why.
    pub cookies: Vec<(String, &'static str)>,
    /// Why it failed, if it did.
    pub failure: Option<String>,
    /// Whether it was still under way when the session was aborted.
    pub is_unfinished: bool,
    /// From its first byte to the end of the answer, microseconds; none if it was never sent.
    pub took_us: Option<u64>,
    /// The session's variables afterwards, and their values; none of one that is not set.
    pub variables: Vec<(String, Option<String>)>,
}

/// An answer with so many bytes of its body at most.
pub(crate) fn logged_answer(answer: &dyn Answer, probe: &Probe, body_bytes_max: usize) -> LoggedAnswer {
    let mut headers = Vec::new();
    let lossy = |text: &[u8]| String::from_utf8_lossy(text).into_owned();
    answer.each_header(&mut |name, value| headers.push((lossy(name), lossy(value))));
    LoggedAnswer {
        status: answer.status(),
        status_words: answer.status_words(),
        is_unfollowed: probe.is_unfollowed(answer),
        headers,
        body: start(answer.body(), body_bytes_max),
        body_bytes: answer.body().len(),
        received_bytes: answer.received_bytes(),
        is_decoded: probe.needs_body,
        unreadable: answer.unreadable().map(str::to_owned),
    }
}

/// Hands over what a thread's one session does.
#[derive(Debug)]
pub(crate) struct StepLogger {
    steps: Sender<LoggedStep>,
    labels: Vec<String>,
    /// What is under way, by session: branches are several.
    current: HashMap<usize, LoggedStep>,
}

impl StepLogger {
    /// For a plan with these labels.
    pub fn new(steps: Sender<LoggedStep>, labels: &[String]) -> StepLogger {
        StepLogger { steps, labels: labels.to_vec(), current: HashMap::new() }
    }

    fn current(&mut self, s: usize) -> &mut LoggedStep {
        self.current.entry(s).or_default()
    }

    /// This is about to be sent; what was before was not, or it was a redirect.
    pub fn sent(&mut self, s: usize, bytes: &[u8]) {
        let current = self.current(s);
        let LoggedStep { hops, cookies, .. } = std::mem::take(current);
        let (sent, sent_bytes) = (start(bytes, LOGGED_BYTES), bytes.len());
        *current = LoggedStep { sent, sent_bytes, hops, cookies, ..LoggedStep::default() };
    }

    /// The answer was a redirect, which is followed.
    pub fn redirected(&mut self, s: usize, status: u16, location: &[u8]) {
        let location = String::from_utf8_lossy(&start(location, LOGGED_BYTES)).into_owned();
        self.current(s).hops.push((status, location));
    }

    /// A cookie that an answer sets is not sent back.
    pub fn cookie_not_kept(&mut self, s: usize, name: &[u8], why: &'static str) {
        let name = String::from_utf8_lossy(&start(name, LOGGED_BYTES)).into_owned();
        self.current(s).cookies.push((name, why));
    }

    /// This was the answer.
    pub fn answered(
        &mut self,
        s: usize,
        answer: &dyn Answer,
        probe: &Probe,
        variables: Variables<'_>,
        (flaw, scratch): (Option<Flaw>, &Scratch),
    ) {
        let current = self.current(s);
        current.answer = Some(logged_answer(answer, probe, LOGGED_BYTES));
        current.extracted = probe.extracted(variables, flaw);
        current.checks = probe.checked(answer, variables, flaw, scratch);
    }

    /// It failed.
    pub fn failed(&mut self, s: usize, failure: &str) {
        self.current(s).failure = Some(failure.to_owned());
    }

    /// Code has run for so long, between two requests.
    pub fn ran_code(&mut self, took_ns: u64, failure: Option<String>, variables: Variables<'_>) {
        let step = LoggedStep {
            label: "js".into(),
            is_code: true,
            failure,
            took_us: Some(took_ns / 1_000),
            variables: told(variables),
            ..LoggedStep::default()
        };
        let _ = self.steps.send(step);
    }

    /// It is over.
    pub fn over(
        &mut self,
        s: usize,
        (label, took_ns, is_unfinished): (u16, Option<u64>, bool),
        variables: Variables<'_>,
    ) {
        let mut step = self.current.remove(&s).unwrap_or_default();
        step.is_unfinished = is_unfinished;
        step.label = self.labels.get(usize::from(label)).cloned().unwrap_or_default();
        step.took_us = took_ns.map(|took_ns| took_ns / 1_000);
        step.variables = told(variables);
        // whoever does not listen any more does not want to know
        let _ = self.steps.send(step);
    }
}

/// Variables and their values. What no expression can name is none of the scenario's.
fn told(variables: Variables<'_>) -> Vec<(String, Option<String>)> {
    let all = variables.names.iter().zip(variables.slots).filter(|(name, _)| !name.starts_with('('));
    all.map(|(name, slot)| (name.clone(), text(slot.value()))).collect()
}

/// The beginning; what is cut off is marked, so that what is secret is also known by its beginning.
pub(crate) fn start(bytes: &[u8], most: usize) -> Vec<u8> {
    if bytes.len() <= most {
        return bytes.to_vec();
    }
    let beginning = &bytes[..most];
    let whole = text_of(beginning).map_or(beginning, str::as_bytes);
    [whole, "…".as_bytes()].concat()
}

/// Bytes as text, less a character at their end that a cut has parted; none where they are no text.
pub fn text_of(bytes: &[u8]) -> Option<&str> {
    match std::str::from_utf8(bytes) {
        Ok(text) => Some(text),
        Err(error) if error.error_len().is_none() => std::str::from_utf8(&bytes[..error.valid_up_to()]).ok(),
        Err(_) => None,
    }
}
