//! Requests made ready: what the loop knows of each.

use tidemark_scenario::Plan;
use tidemark_scenario::plan::{
    Follow, GrpcStep, KeyStep, LedgerPlan, RequestKind, RequestPlan, SessionKind, SlotIndex, TransactionPart,
};

use crate::clock::nanoseconds;
use crate::engine::programs::has_program;
use crate::protocols::target::Target;
use crate::session::answer::Probe;

/// A request as one thread makes it; how it is written is its transport's affair.
#[derive(Debug)]
pub(crate) struct Prepared {
    /// Index into the plan's labels.
    pub label: u16,
    /// Where it goes.
    pub target: u16,
    /// Longest time from due to the last byte.
    pub timeout_ns: u64,
    /// Whether it is a step with what a connection is bound to: a WebSocket, an event stream, a transaction.
    pub is_of_binding: bool,
    /// Whether it asks for nothing, and waits for what the server tells by itself.
    pub is_wait: bool,
    /// What is looked at in the answer.
    pub probe: Probe,
    /// How its write is entered, if it is.
    pub ledger: Option<LedgerPlan>,
    /// What it does with a number of the scenario's `keys`, if it does.
    pub key: Option<KeyStep>,
    /// Whether anything is made ready before it is written: a number of the scenario's `keys`, an entry of the ledger, what
    /// its hops repeat.
    pub is_entered: bool,
    /// How it follows redirects, if it does.
    pub follow: Option<Follow>,
    /// Whether its answer may set cookies.
    pub sets_cookies: bool,
    /// The path of cookies for which its answer says none, where that does not vary.
    pub cookie_path: Option<Vec<u8>>,
    /// Variables that are of its session once it is over.
    pub keeps: Box<[SlotIndex]>,
    /// How many it has followed.
    pub hops: u64,
}

impl Prepared {
    /// Prepares all requests of a plan for its targets; behind them, where sessions of these kinds ask a program, one for
    /// each label, as which its requests are counted.
    pub fn all(plan: &Plan, kinds: &[SessionKind], targets: &[Target]) -> Vec<Self> {
        let base_path = |request: &RequestPlan| {
            targets.get(usize::from(request.target)).map_or("", |target| target.base_path.as_str())
        };
        let planned = plan.requests.iter().map(|request| Prepared::new(request, base_path(request)));
        let labels = if kinds.iter().any(has_program) { plan.labels.len() as u16 } else { 0 };
        planned.chain((0..labels).map(Prepared::of_program)).collect()
    }

    fn of_program(label: u16) -> Self {
        Prepared {
            label,
            target: 0,
            timeout_ns: 0,
            is_of_binding: false,
            is_wait: false,
            probe: Probe::of_program(),
            ledger: None,
            key: None,
            is_entered: false,
            follow: None,
            sets_cookies: true,
            cookie_path: None,
            keeps: Box::default(),
            hops: 0,
        }
    }

    fn new(request: &RequestPlan, base_path: &str) -> Self {
        Prepared {
            sets_cookies: request.http().is_some(),
            cookie_path: request.http().and_then(|http| http.cookie_path(base_path)),
            label: request.label,
            target: request.target,
            timeout_ns: nanoseconds(request.timeout),
            is_of_binding: match &request.ask {
                RequestKind::WebSocket(_) | RequestKind::EventStream(_) => true,
                RequestKind::Grpc(step) => !matches!(step, GrpcStep::Call { .. }),
                RequestKind::Sql(statement) => statement.part != TransactionPart::Alone,
                _ => false,
            },
            is_wait: request.ask.is_wait(),
            probe: Probe::new(request),
            ledger: request.ledger.clone(),
            key: request.key,
            is_entered: request.key.is_some() || request.ledger.is_some() || request.follow.is_some(),
            follow: request.follow.clone(),
            keeps: kept_by(request).collect(),
            hops: 0,
        }
    }
}

/// The variables that a request sets.
fn kept_by(request: &RequestPlan) -> impl Iterator<Item = SlotIndex> + '_ {
    let of_key = request.key.iter().flat_map(|key| [key.number, key.version]);
    let of_ledger = request.ledger.iter().map(|ledger| ledger.slot);
    request.extractions.iter().map(|extraction| extraction.slot).chain(of_key).chain(of_ledger)
}
