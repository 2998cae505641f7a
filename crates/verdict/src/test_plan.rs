//! A plan for tests: three labels, nothing sent.

use std::time::Duration;

use tidemark_record::{Outcome, Series, new_histogram};
use tidemark_scenario::Plan;
use tidemark_scenario::plan::{Curve, Limits, Load, LoadModel, Phase};

/// A plan with the labels A, B and C and no phases.
pub fn plan(model: LoadModel) -> Plan {
    Plan {
        labels: vec!["A".into(), "B".into(), "C".into()],
        limits: Limits { connections: 1, waiting: Some(1), ..Limits::default() },
        source_name: "x.yaml".into(),
        ..Plan::new("x", Load::new(model, Vec::new()))
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

/// Measured requests of a label that ended so after so many microseconds.
pub fn series(label: u16, outcome: Outcome, us: u64, count: u32) -> Series {
    let mut times = new_histogram();
    times.record_n(us, count);
    let [response_time_us, response_time_less_lag_us, service_time_us] = [(); 3].map(|()| times.clone());
    Series {
        label,
        outcome,
        measured: true,
        phase: None,
        response_time_us,
        response_time_less_lag_us,
        service_time_us,
        bodies: 0,
        body_bytes: 0,
    }
}
