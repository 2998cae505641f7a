//! The end of an event stream.

use super::with;
use crate::compile::Session;
use crate::grammar::Scalar::Word;
use crate::grammar::Shape::Scalar;
use crate::plan::EventStreamStep;
use crate::steps::Step;
use crate::steps::answer::{AT, LABEL, TAGS, TIMEOUT};

const WHO: [&str; 2] = ["now", "by server"];

step! {
    /// Ends the session's event stream. A stream that the server ended before is a failure; otherwise `now` is no
    /// request, and in no figure.
    KIND("sseClose", "an sse close step") [
        "sse close": Scalar(Word(&WHO)) =>
            "`now`: as a browser that leaves. `by server`: waits until the server has ended it, which is right then."
    ] {
        LABEL, TAGS, AT, TIMEOUT,
    }
    example: "
- sse connect: /news/live
- think: 10s
- sse close: now
"
}

fn compile(session: &mut Session<'_, '_>, step: &Step<'_>) {
    let action = match session.reader.word(step.value, &WHO) {
        Some("by server") => EventStreamStep::CloseByServer,
        _ => EventStreamStep::Close,
    };
    if let Some(plan) = with(session, step, action) {
        session.push_request(step, plan);
    }
}
