//! A plan for tests: three labels, nothing sent.

use std::time::Duration;

use tidemark_scenario::Plan;
use tidemark_scenario::plan::{Curve, Limits, Load, LoadModel, Phase, System};

/// A plan with the labels A, B and C and no phases.
pub fn plan(model: LoadModel) -> Plan {
    Plan {
        name: "x".into(),
        description: String::new(),
        labels: vec!["A".into(), "B".into(), "C".into()],
        requests: Vec::new(),
        sessions: Vec::new(),
        prepare: None,
        load: Load::new(model, Vec::new()),
        counters: 0,
        feeders: Vec::new(),
        limits: Limits {
            connections: 1,
            waiting: 1,
            in_flight: None,
            connect_timeout: Duration::from_secs(1),
            body_bytes: 1,
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
        source_name: "x.yaml".into(),
        source: String::new(),
    }
}

/// A phase of one level.
pub fn phase(name: &str, seconds: f64, level: f64, measured: bool) -> Phase {
    Phase {
        name: name.into(),
        duration: Duration::from_secs_f64(seconds),
        from: level,
        to: level,
        measured,
        curve: Curve::Line,
    }
}
