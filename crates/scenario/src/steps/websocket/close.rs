//! Closing a WebSocket.

use tidemark_wire::websocket::is_close_code;

use super::over;
use crate::compile::Session;
use crate::grammar::Scalar::{Template, Whole};
use crate::grammar::Shape::Scalar;
use crate::plan::WebSocketStep;
use crate::reader::Reader;
use crate::steps::Step;
use crate::steps::answer::{AT, LABEL, TAGS, TIMEOUT};
use crate::template::Encoding;
use crate::yaml::Node;

step! {
    /// Closes the session's WebSocket and waits until the other side has closed it, too.
    KIND("wsClose", "a ws close step") [
        "ws close": Scalar(Whole(1000)) => "The close code; 1000 is a normal end."
    ] {
        LABEL, TAGS, AT,
        "reason": Scalar(Template) => "Words for the other side, up to 123 bytes.",
        TIMEOUT,
    }
    example: "
- ws connect: /chat
- ws close: 1000
"
}

fn compile(session: &mut Session<'_, '_>, step: &Step<'_>) {
    let reason = step.get("reason").map(|reason| session.template(reason, Encoding::Raw));
    let code = close_code(step.value, session.reader);
    over(session, step, (WebSocketStep::Close { code, reason: reason.unwrap_or_default() }, None), None);
}

fn close_code(node: &Node, reader: &Reader<'_>) -> u16 {
    let Some(code) = reader.whole(node, 1000) else { return 1000 };
    match u16::try_from(code).ok().filter(|code| is_close_code(*code)) {
        Some(code) => code,
        None => {
            let message =
                format!("{code} is not a close code that can be sent; use 1000, or one of 3000 to 4999");
            reader.sink.error(node, message);
            1000
        }
    }
}
