//! Calls of gRPC.

use std::time::Duration;

use super::{RequestKind, RequestPlan};
use crate::protobuf::MethodName;
use crate::template::Template;

/// What a step of gRPC does.
#[derive(Debug, Clone)]
pub enum GrpcStep {
    /// Call a method: send all messages, and wait for the whole answer.
    Call {
        /// Which, and with what beside the messages.
        call: GrpcCall,
        /// What is sent, each as JSON.
        messages: Vec<Template>,
    },
    /// Begin a call that stays open, which becomes the session's stream.
    Open(GrpcCall),
    /// Send a message over the session's stream.
    Send {
        /// The message, as JSON.
        message: Template,
        /// Whether a message that passes the request's checks is waited for.
        expects: bool,
    },
    /// Wait for a message that passes the request's checks.
    Expect,
    /// Send nothing more, and wait for the status; messages that come before it are passed over.
    Close,
}

/// The beginning of a call.
#[derive(Debug, Clone, Default)]
pub struct GrpcCall {
    /// The method.
    pub method: MethodName,
    /// Names and values, in order.
    pub metadata: Vec<(String, Template)>,
    /// The time that the server is told the call has; none for a stream that says none.
    pub deadline: Option<Duration>,
    /// Whether messages are sent compressed (gzip).
    pub compresses: bool,
}

impl GrpcStep {
    /// How a call begins, if this begins one.
    pub fn call(&self) -> Option<&GrpcCall> {
        match self {
            GrpcStep::Call { call, .. } | GrpcStep::Open(call) => Some(call),
            GrpcStep::Send { .. } | GrpcStep::Expect | GrpcStep::Close => None,
        }
    }
}

impl RequestPlan {
    /// The step of gRPC, if it is one.
    pub fn grpc(&self) -> Option<&GrpcStep> {
        match &self.ask {
            RequestKind::Grpc(step) => Some(step),
            _ => None,
        }
    }
}
