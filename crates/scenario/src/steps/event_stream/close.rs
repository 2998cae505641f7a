//! The end of an event stream.

use super::with;
use crate::compile::Session;
use crate::grammar::Scalar::Word;
use crate::grammar::Shape::Scalar;
use crate::grammar::record::record;
use crate::plan::EventStreamStep;
use crate::steps::answer::{AT, LABEL, TAGS, TIMEOUT};
use crate::steps::{Step, StepKind};

const WHO: [&str; 2] = ["now", "by server"];

record! {
    /// Ends the session's event stream. A stream that the server ended before is a failure; otherwise `now` is no
    /// request, and in no figure.
    static CLOSE("sseClose", "an sse close step") [
        "sse close": Scalar(Word(&WHO)) =>
            "`now`: as a browser that leaves. `by server`: waits until the server has ended it, which is right then."
    ] {
        LABEL, TAGS, AT, TIMEOUT,
    }
}

pub(in crate::steps) static KIND: StepKind = StepKind {
    record: || &CLOSE,
    compile,
    beside: None,
    example: "
- sse connect: /news/live
- think: 10s
- sse close: now
",
};

fn compile(session: &mut Session<'_, '_>, step: &Step<'_>) {
    let action = match session.reader.word(step.value, &WHO) {
        Some("by server") => EventStreamStep::CloseByServer,
        _ => EventStreamStep::Close,
    };
    if let Some(plan) = with(session, step, action) {
        session.push_request(step, plan);
    }
}
