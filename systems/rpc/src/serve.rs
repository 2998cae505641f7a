//! A service as the server sees it.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use crate::call_buffer::CallBuffer;
use crate::{Description, Form, Refusal, Request};
use axum::http::StatusCode;
use tidemark_service::{Answer, Answering, reason};

/// What `#[service]` makes of a trait; not to be written by hand.
pub trait Service: Send + Sync + 'static {
    /// What it is.
    fn description(&self) -> &'static Description;

    /// Reads the arguments of the method with this number from `buffer`, calls it, and writes what it returns there.
    fn call(
        &self,
        method: usize,
        form: Form,
        buffer: &mut Vec<u8>,
    ) -> impl Future<Output = Result<(), Refusal>> + Send;

    /// The same from a REST request, in JSON.
    fn request(
        &self,
        method: usize,
        request: Request,
        answer: &mut Vec<u8>,
    ) -> impl Future<Output = Result<(), Refusal>> + Send;
}

/// The services of a system. A method's number over the WebSocket counts through all of them.
pub(crate) type Services = Vec<Arc<dyn AnyService>>;

pub(crate) type Lane = Pin<Box<dyn Future<Output = ()> + Send>>;

/// A service whose type is forgotten.
pub(crate) trait AnyService: Send + Sync {
    fn description(&self) -> &'static Description;

    /// Works on one call after the other, for ever.
    fn lane(self: Arc<Self>, call_buffer: Arc<CallBuffer>, service: usize, lane: usize) -> Lane;

    fn request(self: Arc<Self>, method: usize, request: Request) -> Answering;
}

/// What a lane keeps of its buffer from call to call.
pub(crate) const BUFFER_KEPT_BYTES: usize = 1 << 10;

impl<S: Service> AnyService for S {
    fn description(&self) -> &'static Description {
        Service::description(self)
    }

    fn lane(self: Arc<Self>, call_buffer: Arc<CallBuffer>, service: usize, lane: usize) -> Lane {
        Box::pin(async move {
            let form = call_buffer.form();
            let mut buffer = Vec::new();
            let mut done = None;
            loop {
                let Some(method) = call_buffer.exchange(service, lane, done.take(), &mut buffer) else {
                    if buffer.capacity() > BUFFER_KEPT_BYTES {
                        buffer = Vec::new();
                    }
                    idle().await;
                    continue;
                };
                done = Some(self.call(method, form, &mut buffer).await);
            }
        })
    }

    fn request(self: Arc<Self>, method: usize, request: Request) -> Answering {
        Box::pin(async move {
            let mut answer = Vec::new();
            match Service::request(&*self, method, request, &mut answer).await {
                Ok(()) => Answer::new(StatusCode::OK, "application/json", answer),
                Err(refusal) => {
                    let status =
                        StatusCode::from_u16(refusal.code()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
                    reason(status, refusal.reason()).into()
                }
            }
        })
    }
}

/// Until the lane is polled again, which happens when there is a call for it.
async fn idle() {
    let mut waited = false;
    std::future::poll_fn(|_| {
        if std::mem::replace(&mut waited, true) {
            std::task::Poll::Ready(())
        } else {
            std::task::Poll::Pending
        }
    })
    .await;
}
