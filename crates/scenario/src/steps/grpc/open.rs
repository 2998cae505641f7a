//! Beginning a stream of gRPC.

use super::{COMPRESS, DEADLINE, METADATA, begin, end, metadata};
use crate::compile::Session;
use crate::grammar::Scalar::Text;
use crate::grammar::Shape::Scalar;
use crate::plan::{GrpcStep, RequestKind};
use crate::steps::Step;
use crate::steps::answer::{AT, LABEL, TAGS, TIMEOUT};

step! {
    /// Begins a call that stays open as the session's stream, until it is closed or the session ends.
    KIND("grpcOpen", "a grpc open step") ["grpc open": Scalar(Text) => "The method: `shop.Cart/Watch`."] {
        LABEL, TAGS, AT, METADATA, DEADLINE, COMPRESS, TIMEOUT,
    }
    example: "
- grpc open: shop.Cart/Chat
- grpc send: {say: hello}
- grpc close: OK
"
}

fn compile(session: &mut Session<'_, '_>, step: &Step<'_>) {
    let Some((label, mut call)) = begin(session, step, "open ") else { return };
    call.metadata = metadata(session, step);
    let mut plan = session.request(step, label, (RequestKind::Grpc(GrpcStep::Open(call)), None), None);
    end(session, step, &mut plan, None);
}
