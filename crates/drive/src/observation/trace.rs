//! Requests that are kept as they were, with their answers: one in so many, and those that failed.
//!
//! Only where a trace is wanted is any of it there: then each request of HTTP is copied as it is written, and its answer
//! where it is one of those. They go through a bounded channel that no driving thread ever waits for.

use std::sync::mpsc::SyncSender;

use tidemark_record::{LoggedAnswer, Outcome, Traced};
use tidemark_scenario::Plan;

use crate::observation::parts::parts;
use crate::observation::secret_variables::SecretVariables;
use crate::observation::step_log::{logged_answer, start};
use crate::session::answer::{Answer, Flaw, Probe, Variables};
use crate::session::times::Connecting;
use crate::session::times::Times;

/// Most bytes of a request, and of a body, that are kept.
pub const TRACED_BYTES: usize = 64 << 10;

/// What is traced, and who gets it.
#[derive(Debug, Clone)]
pub struct Tracing {
    /// One request in so many; 0 for those that failed only.
    pub every: u64,
    /// Most of these, over all threads.
    pub sampled_max: u64,
    /// Most of those that failed.
    pub failed_max: u64,
    /// Gets them. Where it is full they are lost, and counted.
    pub sink: SyncSender<Traced>,
}

/// How many requests a trace lacks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TraceCounts {
    /// One in so many, that were more than may be kept.
    pub sampled_beyond: u64,
    /// Failed ones that were more than may be kept.
    pub failed_beyond: u64,
    /// Those that nobody took in time.
    pub lost: u64,
}

impl std::ops::AddAssign for TraceCounts {
    fn add_assign(&mut self, more: TraceCounts) {
        self.sampled_beyond += more.sampled_beyond;
        self.failed_beyond += more.failed_beyond;
        self.lost += more.lost;
    }
}

/// How a request ended.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ending {
    pub label: u16,
    pub target: u16,
    pub outcome: Outcome,
    pub times: Times,
    pub connecting: Option<Connecting>,
    /// When the first bytes of its answer came, where it was not whole by them.
    pub begun_ns: Option<u64>,
    pub socket: u32,
    /// When it was due, milliseconds since 1970 UTC.
    pub due_ms: i64,
}

/// A session's request while it is under way.
#[derive(Debug, Default)]
struct UnderWay {
    is_sent: bool,
    /// Whether it is the one in so many.
    is_sampled: bool,
    sent: Vec<u8>,
    sent_bytes: usize,
    secrets: Vec<(String, String)>,
    hops: Vec<(u16, String)>,
    answer: Option<LoggedAnswer>,
    failure: Option<String>,
}

/// Traces the requests of one thread.
#[derive(Debug)]
pub(crate) struct Tracer {
    thread: u16,
    every: u64,
    sampled_left: u64,
    failed_left: u64,
    sink: SyncSender<Traced>,
    /// By request of the plan: whether it is one of HTTP.
    is_http: Vec<bool>,
    secrets: SecretVariables,
    /// By session.
    under_way: Vec<UnderWay>,
    seen: u64,
    counts: TraceCounts,
}

impl Tracer {
    /// For one of so many threads.
    pub fn new(tracing: &Tracing, plan: &Plan, (thread, threads): (usize, usize)) -> Tracer {
        let share = |all: u64| all.div_ceil(threads.max(1) as u64);
        Tracer {
            thread: u16::try_from(thread).unwrap_or(u16::MAX),
            every: tracing.every,
            sampled_left: share(tracing.sampled_max),
            failed_left: share(tracing.failed_max),
            sink: tracing.sink.clone(),
            is_http: plan.requests.iter().map(|request| request.http().is_some()).collect(),
            secrets: SecretVariables::of(plan, &plan.sessions),
            under_way: Vec::new(),
            seen: 0,
            counts: TraceCounts::default(),
        }
    }

    /// A session's request of this index is about to be sent so, or a hop of it.
    pub fn sent(&mut self, s: usize, request: u16, bytes: &[u8], variables: Variables<'_>) {
        // behind the plan's requests are those of programs, which are of HTTP
        if self.is_http.get(usize::from(request)).is_some_and(|is_http| !is_http) {
            return;
        }
        if self.under_way.len() <= s {
            self.under_way.resize_with(s + 1, UnderWay::default);
        }
        let one = &mut self.under_way[s];
        if !one.is_sent {
            one.is_sent = true;
            one.is_sampled = self.every > 0 && self.seen.is_multiple_of(self.every);
            one.secrets.clear();
            self.seen += 1;
        }
        self.secrets.add_to(&mut one.secrets, variables);
        one.sent.clear();
        one.sent.extend_from_slice(&bytes[..bytes.len().min(TRACED_BYTES)]);
        one.sent_bytes = bytes.len();
    }

    /// The answer of a session was a redirect, which is followed.
    pub fn redirected(&mut self, s: usize, status: u16, location: &[u8]) {
        if let Some(one) = self.under_way.get_mut(s).filter(|one| one.is_sent) {
            let location = String::from_utf8_lossy(&start(location, TRACED_BYTES)).into_owned();
            one.hops.push((status, location));
        }
    }

    /// A session's answer has been judged.
    pub fn answered(&mut self, s: usize, answer: &dyn Answer, probe: &Probe, flaw: Option<Flaw>) {
        let is_wanted = |one: &&mut UnderWay| one.is_sent && (one.is_sampled || flaw.is_some());
        if let Some(one) = self.under_way.get_mut(s).filter(is_wanted) {
            one.answer = Some(logged_answer(answer, probe, TRACED_BYTES));
        }
    }

    /// Whether it is of interest why a session's request failed.
    pub fn wants_words(&self, s: usize) -> bool {
        self.failed_left > 0 && self.under_way.get(s).is_some_and(|one| one.is_sent)
    }

    /// A session's request failed.
    pub fn failed(&mut self, s: usize, failure: &str) {
        if let Some(one) = self.under_way.get_mut(s).filter(|one| one.is_sent) {
            one.failure = Some(failure.to_owned());
        }
    }

    /// A session's request is over. One that was never sent is in no trace.
    pub fn over(&mut self, s: usize, end: &Ending, variables: Variables<'_>) {
        let Some(one) = self.under_way.get_mut(s).filter(|one| one.is_sent) else { return };
        one.is_sent = false;
        let (answer, failure, hops) = (one.answer.take(), one.failure.take(), std::mem::take(&mut one.hops));
        let (left, beyond) = match end.outcome.is_error() {
            true => (&mut self.failed_left, &mut self.counts.failed_beyond),
            false if one.is_sampled => (&mut self.sampled_left, &mut self.counts.sampled_beyond),
            false => return,
        };
        if *left == 0 {
            *beyond += 1;
            return;
        }
        *left -= 1;
        let mut secrets = std::mem::take(&mut one.secrets);
        self.secrets.add_to(&mut secrets, variables);
        let traced = Traced {
            label: end.label,
            target: end.target,
            due_ms: end.due_ms,
            sent: one.sent.clone(),
            sent_bytes: one.sent_bytes,
            hops,
            answer,
            outcome: end.outcome,
            failure,
            secrets,
            parts: parts(&end.times, end.connecting, end.begun_ns),
            connection: (self.thread, end.socket),
        };
        if self.sink.try_send(traced).is_err() {
            self.counts.lost += 1;
        }
    }

    /// How many the trace lacks.
    pub fn counts(&self) -> TraceCounts {
        self.counts
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::sync_channel;

    use tidemark_scenario::Slot;
    use tidemark_scenario::plan::{RedisCommand, RequestKind};

    use super::*;

    const NONE: Variables<'static> = Variables { slots: &[], names: &[] };

    fn plan() -> Plan {
        let text = "sessions: {a: {steps: [{GET: /a}]}}\nload: {users: 1, hold: 1s}\n";
        let mut plan =
            tidemark_scenario::load_text("t.yaml", text, std::path::Path::new("."), &[]).expect("a scenario");
        let mut other = plan.requests[0].clone();
        other.ask = RequestKind::Redis(RedisCommand::default());
        plan.requests.push(other);
        plan
    }

    fn end(outcome: Outcome) -> Ending {
        let times = Times { due_ns: 1_000_000, sent_ns: Some(4_000_000), end_ns: 9_000_000, own_ns: 0 };
        let connecting = Some(Connecting { begun_ns: 0, connect_ns: 1_000_000, handshake_ns: 500_000 });
        let begun_ns = Some(6_000_000);
        Ending { label: 0, target: 0, outcome, times, connecting, begun_ns, socket: 3, due_ms: 7 }
    }

    #[test]
    fn one_in_so_many_and_all_that_failed_are_kept_up_to_a_bound() {
        let (sink, traced) = sync_channel(100);
        let tracing = Tracing { every: 4, sampled_max: 3, failed_max: 2, sink };
        let mut tracer = Tracer::new(&tracing, &plan(), (1, 1));
        for n in 0..20 {
            tracer.sent(5, 0, format!("GET /{n}").as_bytes(), NONE);
            let failed = n % 5 == 1;
            if failed {
                tracer.failed(5, "why");
            }
            tracer.over(5, &end(if failed { Outcome::Status } else { Outcome::Ok }), NONE);
        }
        let told: Vec<(String, bool)> = traced
            .try_iter()
            .map(|one| (String::from_utf8(one.sent).unwrap(), one.failure.as_deref() == Some("why")))
            .collect();
        let wanted =
            [("GET /0", false), ("GET /1", true), ("GET /4", false), ("GET /6", true), ("GET /8", false)];
        assert_eq!(told, wanted.map(|(sent, failed)| (sent.to_owned(), failed)));
        // 12 and 16; 11 and 16, of which the latter failed
        assert_eq!(tracer.counts(), TraceCounts { sampled_beyond: 1, failed_beyond: 2, lost: 0 });
    }

    #[test]
    fn the_secrets_of_a_session_go_with_its_request_as_they_were_before_and_after() {
        let text = "sessions: {a: {steps: [{GET: /a, extract: {mine: $.token, id: $.id}}]}}\nload: {users: 1, hold: 1s}\n";
        let plan =
            tidemark_scenario::load_text("t.yaml", text, std::path::Path::new("."), &[]).expect("a scenario");
        let (sink, traced) = sync_channel(1);
        let mut tracer =
            Tracer::new(&Tracing { every: 1, sampled_max: 9, failed_max: 9, sink }, &plan, (0, 1));
        let names = &plan.sessions[0].slot_names;
        let slots = |mine: &[u8]| {
            let slot = |name: &String| {
                let mut slot = Slot::default();
                match name.as_str() {
                    "mine" => slot.set_text(mine),
                    "id" => slot.set_int(12_345_678),
                    _ => {}
                }
                slot
            };
            names.iter().map(slot).collect::<Vec<_>>()
        };
        tracer.sent(0, 0, b"GET /a", Variables { slots: &slots(b"before"), names });
        tracer.over(0, &end(Outcome::Ok), Variables { slots: &slots(b"after"), names });
        let wanted = ["before", "after"].map(|value| ("mine".to_owned(), value.to_owned()));
        assert_eq!(traced.try_recv().unwrap().secrets, wanted);
    }

    #[test]
    fn what_is_no_http_or_never_sent_is_in_no_trace_and_what_nobody_takes_is_counted() {
        let (sink, traced) = sync_channel(1);
        let tracing = Tracing { every: 1, sampled_max: 9, failed_max: 9, sink };
        let mut tracer = Tracer::new(&tracing, &plan(), (0, 2));
        tracer.sent(0, 1, b"*1\r\n", NONE);
        tracer.over(0, &end(Outcome::Ok), NONE);
        assert!(!tracer.wants_words(1));
        tracer.over(1, &end(Outcome::Variable), NONE);
        assert_eq!(traced.try_iter().count(), 0);
        for _ in 0..2 {
            tracer.sent(0, 0, &[b'x'; TRACED_BYTES + 9], NONE);
            tracer.redirected(0, 302, b"/there");
            tracer.over(0, &end(Outcome::Ok), NONE);
        }
        let one = traced.try_recv().unwrap();
        assert_eq!((one.sent.len(), one.sent_bytes), (TRACED_BYTES, TRACED_BYTES + 9));
        assert_eq!(one.hops, [(302, "/there".to_owned())]);
        let parts = tidemark_record::RequestParts {
            wait_us: 1_500,
            connect_us: Some(1_000),
            handshake_us: Some(500),
            first_byte_us: 2_000,
            transfer_us: 3_000,
        };
        assert_eq!((one.parts, one.due_ms, one.connection), (parts, 7, (0, 3)));
        assert_eq!(tracer.counts().lost, 1);
    }
}
