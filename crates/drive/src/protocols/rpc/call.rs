//! Calls made ready, and what comes back.

use tidemark_scenario::plan::{RequestKind, RequestPlan};
use tidemark_scenario::{Context, Template, Unmet};

use crate::session::answer::Answer;

/// The status of a call that did not fail.
const DONE: u16 = 200;

/// A call made ready.
#[derive(Debug, Clone)]
struct Prepared {
    /// Its method, as [`Calls::name`] knows it.
    method: usize,
    deadline_ms: u32,
    arguments: Template,
}

/// The calls of a plan.
#[derive(Debug)]
pub(super) struct Calls {
    /// By the index of their requests.
    prepared: Vec<Option<Prepared>>,
    names: Vec<String>,
}

/// A call that was written, and is about to be sent.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Call {
    /// Its method, as [`Calls::name`] knows it.
    pub method: usize,
    /// The time that it has.
    pub deadline_ms: u32,
    /// Its arguments.
    pub payload: Vec<u8>,
}

impl Calls {
    /// Those among these requests.
    pub fn new(requests: &[RequestPlan]) -> Self {
        let mut names: Vec<String> = Vec::new();
        let prepared = requests.iter().map(|request| {
            let RequestKind::Call(call) = &request.ask else { return None };
            let method = names.iter().position(|known| *known == call.method).unwrap_or_else(|| {
                names.push(call.method.clone());
                names.len() - 1
            });
            Some(Prepared { method, deadline_ms: call.deadline_ms, arguments: call.arguments.clone() })
        });
        Calls { prepared: prepared.collect(), names }
    }

    /// A method's name.
    pub fn name(&self, method: usize) -> &str {
        &self.names[method]
    }

    /// Writes the call of a request, in place of the one before.
    pub fn write(&self, request: usize, cx: &mut Context<'_>, call: &mut Call) -> Result<(), Unmet> {
        let Some(prepared) = &self.prepared[request] else { return Ok(()) };
        (call.method, call.deadline_ms) = (prepared.method, prepared.deadline_ms);
        call.payload.clear();
        prepared.arguments.render(cx, &mut call.payload)
    }
}

/// The answer to a call; its buffer is used for the next one.
#[derive(Debug, Default)]
pub(super) struct Reply {
    status: u16,
    body: Vec<u8>,
}

impl Reply {
    /// Takes what came in place of the answer before; the id of its call.
    pub fn take(&mut self, answer: tidemark_wire::rpc::Answer<'_>) -> u64 {
        use tidemark_wire::rpc::Answer::{Done, Failed};
        let (id, status, body) = match answer {
            Done { id, payload } => (id, DONE, payload),
            Failed { id, code, reason } => (id, code, reason.as_bytes()),
        };
        self.status = status;
        self.body.clear();
        self.body.extend_from_slice(body);
        id
    }
}

impl Answer for Reply {
    fn status(&self) -> u16 {
        self.status
    }

    fn body(&self) -> &[u8] {
        &self.body
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tidemark_scenario::Shared;
    use tidemark_scenario::plan;
    use tidemark_wire::rpc::Answer as Wired;

    use super::*;

    fn request(method: &str, deadline_ms: u32, arguments: &str) -> RequestPlan {
        let arguments = Template::literal(arguments);
        RequestPlan {
            label: 0,
            target: 0,
            ask: RequestKind::Call(plan::Call { method: method.into(), deadline_ms, arguments }),
            ledger: None,
            key: None,
            timeout: Duration::from_secs(1),
            extractions: Vec::new(),
            checks: Vec::new(),
            shown_body_bytes: 0,
            follow: None,
        }
    }

    #[test]
    fn calls_of_a_method_share_its_name() {
        let given = [("trade.trade", 5_000, "[1]"), ("trade.price", 5_000, "[]"), ("trade.trade", 1, "")];
        let calls = Calls::new(&given.map(|(method, deadline_ms, args)| request(method, deadline_ms, args)));
        assert_eq!(calls.names.len(), 2);
        let shared = Shared::new(0, Vec::new());
        let mut random = fastrand::Rng::with_seed(1);
        let mut cx = Context { slots: &[], shared: &shared, random: &mut random, epoch_ms: 0 };
        let mut call = Call { payload: b"before".to_vec(), ..Call::default() };
        for (index, (method, deadline_ms, arguments)) in given.into_iter().enumerate() {
            calls.write(index, &mut cx, &mut call).unwrap();
            assert_eq!((calls.name(call.method), call.deadline_ms), (method, deadline_ms));
            assert_eq!(call.payload, arguments.as_bytes());
        }
    }

    #[test]
    fn a_failure_is_a_status_with_its_words() {
        let mut reply = Reply::default();
        for (answer, status, body) in [
            (Wired::Done { id: 3, payload: b"true" }, 200, &b"true"[..]),
            (Wired::Failed { id: 3, code: 404, reason: "no such method" }, 404, b"no such method"),
            (Wired::Done { id: 3, payload: b"" }, 200, b""),
        ] {
            assert_eq!(reply.take(answer), 3);
            assert_eq!((reply.status(), reply.body()), (status, body));
        }
    }
}
