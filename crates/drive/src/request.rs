//! Requests made ready: what the loop knows of each.

use tidemark_scenario::plan::{Ask, LedgerPlan, RequestPlan};
use tidemark_scenario::{Context, Plan, Template, Unmet};

use crate::answer::Probe;
use crate::clock::nanoseconds;

/// A request as one thread makes it; how it is written is its transport's affair.
#[derive(Debug)]
pub(crate) struct Prepared {
    /// Index into the plan's labels.
    pub label: u16,
    /// Longest time from due to the last byte.
    pub timeout_ns: u64,
    /// What is looked at in the answer.
    pub probe: Probe,
    /// How its write is entered, if it is.
    pub ledger: Option<LedgerPlan>,
    /// What it sends over a WebSocket.
    message: Option<Template>,
}

impl Prepared {
    /// Prepares all requests of a plan.
    pub fn all(plan: &Plan) -> Vec<Self> {
        plan.requests.iter().map(Prepared::new).collect()
    }

    fn new(request: &RequestPlan) -> Self {
        Prepared {
            label: request.label,
            timeout_ns: nanoseconds(request.timeout),
            probe: Probe::new(request),
            ledger: request.ledger.clone(),
            message: match &request.ask {
                Ask::Message(message) => message.clone(),
                _ => None,
            },
        }
    }

    /// Appends what a message over a WebSocket holds.
    pub fn render_message(&self, cx: &mut Context<'_>, out: &mut Vec<u8>) -> Result<(), Unmet> {
        self.message.as_ref().map_or(Ok(()), |message| message.render(cx, out))
    }
}
