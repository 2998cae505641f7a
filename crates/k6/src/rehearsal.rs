//! A rehearsal: the script runs once without a network, to learn where it sends what.
//!
//! Every request is answered with status 200 and a body of which every field is there. Scripts that end early, because a
//! made-up answer does not please them, are known as far as they came.

use std::sync::Arc;
use std::time::Duration;

use url::Url;

use crate::metrics::Metrics;
use crate::program::label;
use crate::script::Script;
use crate::vu::{Answer, Call, Input, Output, Place, Vu};

/// Most requests and pauses of a function in a rehearsal.
const TURNS_MAX: usize = 400;
/// Iterations of each scenario.
const ITERATIONS: u64 = 3;
/// Most labels.
const LABELS_MAX: usize = 60;
/// Longest that a rehearsal is at work without waiting.
const TURN_MAX: Duration = Duration::from_secs(3);
/// What every request is answered with.
pub(crate) const BODY: &str = "{\"tidemark rehearsal\":true}";

/// What is known of a script before it runs.
#[derive(Debug, Clone, Default)]
pub struct Sent {
    /// Schemes, hosts and ports that it sends to, in order.
    pub origins: Vec<String>,
    /// What its requests are counted as, by function.
    pub labels: Vec<(String, Vec<String>)>,
}

/// Rehearses a script: `setup`, and some iterations of each scenario.
pub(crate) fn rehearse(script: &Arc<Script>) -> Sent {
    let mut sent = Sent::default();
    let metrics = Arc::new(Metrics::default());
    let Ok(mut vu) = Vu::begin(script, 1, &metrics) else { return sent };
    let told = script.told();
    let has = |function: &str| told.functions.iter().any(|known| known == function);
    if has("setup") {
        let call = call("setup", Place::NONE);
        if let Some(json) = function(&mut vu, call, &mut sent.origins, &mut Vec::new()) {
            let _ = script.data.set(json.into());
        }
    }
    for (scenario, of) in told.scenarios.iter().enumerate().filter(|(_, of)| has(&of.exec)) {
        let mut labels = Vec::new();
        for iteration_in_scenario in 0..ITERATIONS {
            let call = call(&of.exec, Place { scenario, iteration_in_scenario });
            function(&mut vu, call, &mut sent.origins, &mut labels);
        }
        match sent.labels.iter_mut().find(|(exec, _)| *exec == of.exec) {
            Some((_, known)) => labels.into_iter().for_each(|label| {
                if !known.contains(&label) {
                    known.push(label)
                }
            }),
            None => sent.labels.push((of.exec.clone(), labels)),
        }
    }
    if has("teardown") {
        function(&mut vu, call("teardown", Place::NONE), &mut sent.origins, &mut Vec::new());
    }
    sent
}

fn call(function: &str, place: Place) -> Call {
    Call { function: function.into(), takes_data: function != "setup", argument: None, place }
}

/// Rehearses a function; what it returned, as JSON.
fn function(vu: &mut Vu, call: Call, origins: &mut Vec<String>, labels: &mut Vec<String>) -> Option<String> {
    let mut output = vu.resume(Input::Call(call));
    for _ in 0..TURNS_MAX {
        output = match output {
            Output::Sleep(_) => vu.resume(Input::Woken),
            Output::Send(request) => {
                if let Ok(url) = Url::parse(&request.url) {
                    let origin = url.origin().ascii_serialization();
                    if !origins.contains(&origin) {
                        origins.push(origin);
                    }
                    let label = request.name.clone().unwrap_or_else(|| label(&request.method, url.path()));
                    if !labels.contains(&label) && labels.len() < LABELS_MAX {
                        labels.push(label);
                    }
                }
                let answer = Answer { status: 200, body: BODY.into(), duration_ms: 1.0, ..Answer::default() };
                vu.resume(Input::Answer(answer))
            }
            Output::Returned(json) => return json,
            Output::Ready | Output::Threw(_) => return None,
        };
    }
    None
}

/// What a rehearsal may take.
pub(crate) fn bounds(of: crate::script::Bounds) -> crate::script::Bounds {
    crate::script::Bounds { turn: TURN_MAX, ..of }
}
