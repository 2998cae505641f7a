//! Ending a stream of gRPC.

use tidemark_record::GrpcCode;

use super::code;
use crate::compile::Session;
use crate::grammar::Scalar::Word;
use crate::grammar::Shape::{Either, List, Scalar};
use crate::plan::{Check, GrpcStep, RequestKind};
use crate::steps::Step;
use crate::steps::answer::{AT, LABEL, TAGS, TIMEOUT};
use crate::yaml::one_or_many;

step! {
    /// Sends nothing more over the session's stream, and waits for its status; messages that come before it are passed over.
    KIND("grpcClose", "a grpc close step") [
        "grpc close": Either(&[Scalar(Word(&GrpcCode::NAMES)), List(&Scalar(Word(&GrpcCode::NAMES)), 1)]) =>
            "Right statuses: `OK`, or others."
    ] {
        LABEL, TAGS, AT, TIMEOUT,
    }
    example: "
- grpc open: shop.Cart/Chat
- grpc close: OK
"
}

fn compile(session: &mut Session<'_, '_>, step: &Step<'_>) {
    let words = || "grpc close".to_owned();
    let Some(label) = session.label_or(step, step.node.position, words) else { return };
    let mut plan = session.request(step, label, (RequestKind::Grpc(GrpcStep::Close), None), None);
    let codes = one_or_many(step.value).iter().filter_map(|node| code(session, node));
    plan.checks.push(Check::Status(codes.map(|code| (code.status(), code.status())).collect()));
    session.push_request(step, plan);
}
