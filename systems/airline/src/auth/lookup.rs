//! The short way of the call that comes with every request to an airline: whose session is this?

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Instant;

use axum::http::{Method, StatusCode};
use tidemark_service::{Answer, Begun, Endpoint, EndpointRequest, RouteId, ServiceError, Starting, reason};
use uuid::Uuid;

use super::{CONTEXT, DEADLINE, Op, Service, UNKNOWN, shown};
use crate::logins::TOKENS;

/// Answers a look-up past the router where the session is in memory; leaves everything else to the router.
pub(super) struct Lookup {
    auth: Arc<Service>,
    is_here: bool,
    route: Option<RouteId>,
}

impl Lookup {
    /// `is_here`: the sessions are in this process, so that most are found without waiting.
    pub(super) fn new(auth: Arc<Service>, is_here: bool) -> Self {
        Lookup { auth, is_here, route: None }
    }
}

impl Endpoint for Lookup {
    fn start(&mut self, server: &mut Starting<'_>) -> Result<(), ServiceError> {
        self.route = Some(server.route(&format!("{TOKENS}{{tokenid}}")));
        Ok(())
    }

    fn begin(&self, request: &EndpointRequest<'_>) -> Option<(RouteId, Begun)> {
        let route = self.route.filter(|_| self.is_here && *request.method == Method::GET)?;
        let path = request.path.strip_prefix(CONTEXT).unwrap_or(request.path);
        let id = Uuid::try_parse(path.strip_prefix(TOKENS)?).ok()?;
        if request.headers.get(DEADLINE).is_some_and(|left| left == "0") {
            return None;
        }
        let began = Instant::now();
        let keeper = &self.auth.keeper;
        let mut found = pin!(keeper.store.find(id.as_u128(), keeper.clock.now_ms()));
        // one that has expired is removed, which takes time; to look again does no harm
        let Poll::Ready(found) = found.as_mut().poll(&mut Context::from_waker(Waker::noop())) else {
            return None;
        };
        self.auth.timings.record(Op::Find as usize, began.elapsed());
        let answer = match found.ok()? {
            Some(session) => Answer::new(StatusCode::OK, "application/json", shown(&session)),
            None => reason(StatusCode::NOT_FOUND, UNKNOWN).into(),
        };
        Some((route, Begun::Done(answer)))
    }
}
