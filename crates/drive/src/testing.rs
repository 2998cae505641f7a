//! Plans for this crate's own tests.

use std::time::Duration;

use tidemark_scenario::Plan;
use tidemark_scenario::plan::{Limits, Load, LoadModel, Op, RequestPlan, SessionKind, System};

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
        name: "test".into(),
        description: String::new(),
        labels: vec!["first".into()],
        requests,
        sessions: vec![kind(vec![Op::Request(0), Op::End])],
        prepare: None,
        load: Load::new(LoadModel::Closed, Vec::new()),
        counters: 0,
        feeders: Vec::new(),
        limits: Limits {
            connections: 1,
            waiting: 0,
            in_flight: None,
            connect_timeout: Duration::from_secs(1),
            body_bytes: 1 << 20,
            drain: Duration::from_secs(1),
            sessions: None,
            keep_alive: true,
            pipeline: 1,
            streams: 1,
        },
        verify: None,
        objectives: Vec::new(),
        system: System::default(),
        stores: Vec::new(),
        seed: None,
        faults: Vec::new(),
        source_name: String::new(),
        source: String::new(),
    }
}
