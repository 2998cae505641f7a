//! Steps with an event stream: server-sent events.

pub(super) mod close;
pub(super) mod connect;
pub(super) mod expect;

use super::Step;
use crate::compile::{Session, Whole};
use crate::plan::{EventStreamStep, HttpVersion, RequestKind, RequestPlan};

/// What a step does with an event stream that there is.
fn with(session: &mut Session<'_, '_>, step: &Step<'_>, action: EventStreamStep) -> Option<RequestPlan> {
    let words = || step.verb.text().unwrap_or_default().to_owned();
    let label = session.label_or(step, step.node.position, words)?;
    Some(session.request(step, label, (RequestKind::EventStream(action), None), None))
}

/// Event streams stand beside requests only.
fn check_beside(whole: &Whole<'_>) {
    let is_stream = |ask: &RequestKind| matches!(ask, RequestKind::EventStream(_));
    let Some(position) = whole.requests.first_anywhere(is_stream) else { return };
    if whole.requests.first_anywhere(|ask| matches!(ask, RequestKind::WebSocket(_))).is_some() {
        let message = "a scenario has WebSockets or event streams, not both; make two of it";
        whole.reader.sink.error_at(position, message.to_owned());
    }
    if let Some(position) = whole.requests.first(is_stream).filter(|_| whole.system.http == HttpVersion::Two)
    {
        let message = "event streams go over HTTP/1.1 only; leave out `http: 2`";
        whole.reader.sink.error_at(position, message.to_owned());
    }
}
