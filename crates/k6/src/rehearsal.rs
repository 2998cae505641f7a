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

/// Rehearses the functions of a script, `setup` first.
pub(crate) fn rehearse(script: &Arc<Script>, functions: &[&str]) -> Sent {
    let mut sent = Sent::default();
    let metrics = Arc::new(Metrics::default());
    let Ok(mut vu) = Vu::begin(script, 1, &metrics) else { return sent };
    for function in functions {
        let call = Call {
            function: (*function).into(),
            takes_data: *function != "setup",
            argument: None,
            place: Place::default(),
        };
        let mut labels: Vec<String> = Vec::new();
        let mut output = vu.resume(Input::Call(call));
        for _ in 0..TURNS_MAX {
            output = match output {
                Output::Sleep(_) => vu.resume(Input::Woken),
                Output::Send(request) => {
                    if let Ok(url) = Url::parse(&request.url) {
                        let origin = url.origin().ascii_serialization();
                        if !sent.origins.contains(&origin) {
                            sent.origins.push(origin);
                        }
                        let label =
                            request.name.clone().unwrap_or_else(|| label(&request.method, url.path()));
                        if !labels.contains(&label) && labels.len() < LABELS_MAX {
                            labels.push(label);
                        }
                    }
                    let answer =
                        Answer { status: 200, body: BODY.into(), duration_ms: 1.0, ..Answer::default() };
                    vu.resume(Input::Answer(answer))
                }
                Output::Returned(json) => {
                    if *function == "setup"
                        && let Some(json) = json
                    {
                        let _ = script.data.set(json.into());
                    }
                    break;
                }
                Output::Ready | Output::Threw(_) => break,
            };
        }
        if *function != "setup" {
            sent.labels.push(((*function).to_owned(), labels));
        }
    }
    sent
}

/// What a rehearsal may take.
pub(crate) fn bounds(of: crate::script::Bounds) -> crate::script::Bounds {
    crate::script::Bounds { turn: TURN_MAX, ..of }
}
