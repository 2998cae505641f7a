//! Who sees requests as they were: whoever is told of one session step by step, and whoever wants a trace.
//!
//! A thread that nobody looks at pays for it with a look at one empty place.

use tidemark_record::Outcome;

use crate::observation::step_log::StepLogger;
use crate::observation::trace::{Ending, TraceCounts, Tracer};
use crate::session::answer::{Answer, Flaw, Probe, Scratch, Variables};

/// Sees the requests of one thread.
#[derive(Debug)]
pub(crate) struct Witness {
    logger: Option<StepLogger>,
    tracer: Option<Tracer>,
}

impl Witness {
    /// Of these, if there is one.
    pub fn of(logger: Option<StepLogger>, tracer: Option<Tracer>) -> Option<Box<Witness>> {
        (logger.is_some() || tracer.is_some()).then(|| Box::new(Witness { logger, tracer }))
    }

    /// Whether somebody is told of each step.
    pub fn logs(&self) -> bool {
        self.logger.is_some()
    }

    /// This is about to be sent for a session's request of this index.
    pub fn sent(&mut self, s: usize, request: u16, bytes: &[u8], variables: Variables<'_>) {
        if let Some(logger) = &mut self.logger {
            logger.sent(s, bytes);
        }
        if let Some(tracer) = &mut self.tracer {
            tracer.sent(s, request, bytes, variables);
        }
    }

    /// The answer was a redirect, which is followed.
    pub fn redirected(&mut self, s: usize, status: u16, location: &[u8]) {
        if let Some(logger) = &mut self.logger {
            logger.redirected(s, status, location);
        }
        if let Some(tracer) = &mut self.tracer {
            tracer.redirected(s, status, location);
        }
    }

    /// A cookie that an answer sets is not sent back.
    pub fn cookie_not_kept(&mut self, s: usize, name: &[u8], why: &'static str) {
        if let Some(logger) = &mut self.logger {
            logger.cookie_not_kept(s, name, why);
        }
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
        if let Some(logger) = &mut self.logger {
            logger.answered(s, answer, probe, variables, (flaw, scratch));
        }
        if let Some(tracer) = &mut self.tracer {
            tracer.answered(s, answer, probe, flaw);
        }
    }

    /// Code has run for so long; `failed`: why it did not do what it should.
    pub fn ran_code(&mut self, took_ns: u64, failed: Option<String>, variables: Variables<'_>) {
        if let Some(logger) = &mut self.logger {
            logger.ran_code(took_ns, failed, variables);
        }
    }

    /// Whether somebody wants to know why a session's request failed.
    pub fn wants_words(&self, s: usize) -> bool {
        self.logger.is_some() || self.tracer.as_ref().is_some_and(|tracer| tracer.wants_words(s))
    }

    /// It failed.
    pub fn failed(&mut self, s: usize, failure: &str) {
        if let Some(logger) = &mut self.logger {
            logger.failed(s, failure);
        }
        if let Some(tracer) = &mut self.tracer {
            tracer.failed(s, failure);
        }
    }

    /// It is over.
    pub fn over(&mut self, s: usize, end: &Ending, variables: Variables<'_>) {
        if let Some(logger) = &mut self.logger {
            let took_ns = end.times.sent_ns.map(|sent_ns| end.times.end_ns.saturating_sub(sent_ns));
            logger.over(s, (end.label, took_ns, end.outcome == Outcome::Unfinished), variables);
        }
        if let Some(tracer) = &mut self.tracer {
            tracer.over(s, end, variables);
        }
    }

    /// How many requests the trace lacks.
    pub fn trace_counts(&self) -> TraceCounts {
        self.tracer.as_ref().map(Tracer::counts).unwrap_or_default()
    }
}
