//! Plans for this crate's own tests.

use tidemark_scenario::Plan;
use tidemark_scenario::plan::{Limits, Load, LoadModel, Op, RequestPlan, SessionKind};

/// A session kind of these operations.
pub(crate) fn kind(ops: Vec<Op>) -> SessionKind {
    SessionKind {
        name: "user".into(),
        weight: 1,
        slots: 1,
        slot_names: vec!["it".into()],
        keep_cookies: false,
        ops,
    }
}

/// A plan of these requests and nothing else.
pub(crate) fn plan(requests: Vec<RequestPlan>) -> Plan {
    Plan {
        labels: vec!["first".into()],
        requests,
        sessions: vec![kind(vec![Op::Request(0), Op::End])],
        limits: Limits { connections: 1, waiting: Some(0), body_bytes: 1 << 20, ..Limits::default() },
        ..Plan::new("test", Load::new(LoadModel::Closed, Vec::new()))
    }
}
