//! Asking over a WebSocket whether the other side is there.

use super::over;
use crate::compile::Session;
use crate::grammar::Scalar::Template;
use crate::grammar::Shape::Scalar;
use crate::plan::WebSocketStep;
use crate::steps::Step;
use crate::steps::answer::{AT, LABEL, TAGS, TIMEOUT};
use crate::template::Encoding;

step! {
    /// Sends a ping and waits for its pong.
    KIND("wsPing", "a ws ping step") ["ws ping": Scalar(Template) => "What the ping holds: up to 125 bytes."] {
        LABEL, TAGS, AT, TIMEOUT,
    }
    example: "
- ws connect: /chat
- ws ping: are you there
"
}

fn compile(session: &mut Session<'_, '_>, step: &Step<'_>) {
    let ping = WebSocketStep::Ping(session.template(step.value, Encoding::Raw));
    over(session, step, (ping, None), None);
}
