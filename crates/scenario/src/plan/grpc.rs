//! Calls of gRPC.

use std::time::Duration;

use super::{RequestKind, RequestPlan};
use crate::protobuf::{Method, MethodName, Types, WrongMessage};
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
        /// The scenario's line in which its step begins.
        line: usize,
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
    /// The scenario's line in which its step begins; 0 where that is in none.
    pub line: usize,
}

impl GrpcStep {
    /// Whether a server of these types takes what this sends. A message over an open stream has to be one of a method of
    /// `opened`, which are those of all streams that steps open there.
    ///
    /// # Errors
    /// What is wrong, and with which of its messages.
    pub fn check<'m>(
        &self,
        types: &Types,
        opened: impl Iterator<Item = &'m Method>,
    ) -> Result<(), (usize, WrongMessage)> {
        let wrong = |words: String| (0, WrongMessage { way: Vec::new(), words });
        match self {
            GrpcStep::Call { call, messages } => {
                let method = types.method(&call.method).map_err(wrong)?;
                if messages.len() != 1 && !method.sends_many() {
                    let words = format!("{} takes one message, and {} are sent", call.method, messages.len());
                    return Err(wrong(words));
                }
                let mut messages = messages.iter().enumerate();
                messages.try_for_each(|(at, message)| method.check(message).map_err(|wrong| (at, wrong)))
            }
            GrpcStep::Open(call) => types.method(&call.method).map(drop).map_err(wrong),
            GrpcStep::Send { message, .. } => {
                let mut first = None;
                for method in opened {
                    match method.check(message) {
                        Ok(()) => return Ok(()),
                        Err(wrong) => first = first.or(Some((0, wrong))),
                    }
                }
                first.map_or(Ok(()), Err)
            }
            GrpcStep::Expect | GrpcStep::Close => Ok(()),
        }
    }

    /// The method of the stream that this opens, if it opens one that these types have.
    pub fn opens(&self, types: &Types) -> Option<Method> {
        match self {
            GrpcStep::Open(call) => types.method(&call.method).ok(),
            _ => None,
        }
    }

    /// The scenario's line in which the step begins, where it sends something; else 0.
    pub fn line(&self) -> usize {
        match self {
            GrpcStep::Call { call, .. } | GrpcStep::Open(call) => call.line,
            GrpcStep::Send { line, .. } => *line,
            GrpcStep::Expect | GrpcStep::Close => 0,
        }
    }

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
