//! Who is logged in: sessions of this process's own, or those of the auth service.

use std::future::Future;
use std::sync::Arc;
use std::time::Instant;

use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use tidemark_mesh::{CallError, Client, Method, Reply};
use tidemark_store::StoreError;
use tidemark_store::sessions::{SWEEP_SESSIONS_MAX, Session, Sessions};
use uuid::Uuid;

use crate::clock::Clock;
use crate::gate::Gate;
use crate::refusal::Refusal;

/// Sessions in a store: made, found, ended, swept.
pub(crate) struct Keeper {
    pub(crate) store: Arc<dyn Sessions>,
    pub(crate) clock: Clock,
    session_ms: i64,
    gate: Gate,
}

impl Keeper {
    pub(crate) fn new(store: Arc<dyn Sessions>, clock: Clock, session_ms: i64, sessions_max: u64) -> Self {
        Keeper { store, clock, session_ms, gate: Gate::new(sessions_max) }
    }

    /// A new session, which is not stored yet; refused where there are as many as may be.
    pub(crate) async fn new_session(&self, customer_id: &str) -> Result<Session, Refusal> {
        self.gate.pass("sessions", || self.store.count()).await?;
        let now_ms = self.clock.now_ms();
        Ok(Session {
            id: Uuid::new_v4().as_u128(),
            customer_id: customer_id.into(),
            created_ms: now_ms,
            expires_ms: now_ms + self.session_ms,
        })
    }

    /// Removes all sessions that have expired; returns how many.
    pub(crate) async fn sweep(&self) -> u64 {
        let mut swept = 0;
        loop {
            match self.store.sweep(self.clock.now_ms()).await {
                Ok(removed) => {
                    swept += removed;
                    if removed < SWEEP_SESSIONS_MAX as u64 {
                        break;
                    }
                }
                Err(error) => {
                    tracing::warn!(%error, "expired sessions could not be removed");
                    break;
                }
            }
        }
        if swept > 0 {
            tracing::info!(swept, "expired sessions removed");
        }
        swept
    }
}

/// Where the airline has its sessions.
pub(crate) enum Logins {
    /// In a store.
    Here(Keeper),
    /// With the auth service.
    Auth(Auth),
}

/// The names of the calls to the auth service, as the public port has them.
pub(crate) const COMMANDS: &[&str] =
    &["CreateTokenCommand", "ValidateTokenCommand", "InvalidateTokenCommand"];
const CREATE: usize = 0;
const VALIDATE: usize = 1;
const INVALIDATE: usize = 2;

/// The auth service, as the airline asks it.
pub(crate) struct Auth(pub(crate) Arc<Client>);

/// A session as the auth service shows it.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Token<'a> {
    #[serde(rename = "_id", default)]
    pub(crate) id: &'a str,
    /// The same: of the public servers one says `_id`, the other `id`.
    #[serde(rename = "id", default)]
    pub(crate) plain_id: &'a str,
    pub(crate) customerid: std::borrow::Cow<'a, str>,
    #[serde(rename = "lastAccessedTime", default)]
    pub(crate) created_ms: i64,
    #[serde(rename = "timeoutTime", default)]
    pub(crate) expires_ms: i64,
}

impl Token<'_> {
    /// The one of both ids that there is.
    fn any_id(&self) -> &str {
        if self.id.is_empty() { self.plain_id } else { self.id }
    }
}

impl Auth {
    /// Begins a session; its id.
    pub(crate) async fn begin(&self, customer_id: &str) -> Result<Uuid, Refusal> {
        let customer = percent_encoding::utf8_percent_encode(customer_id, percent_encoding::NON_ALPHANUMERIC);
        let path = format!("{TOKENS}byuserid/{customer}");
        let reply = self.0.call(CREATE, Method::Post, &path).await.map_err(unavailable)?;
        let token = token_of(&reply)?;
        if token.customerid != customer_id {
            return Err(unreadable(&"another customer's session"));
        }
        Uuid::try_parse(token.any_id()).map_err(|_| unreadable(&"its id is no UUID"))
    }

    /// The session with this id; `None` if the auth service knows none, or one that is over by now. An error if it does not
    /// answer, or with another session.
    pub(crate) async fn find(&self, id: u128, now_ms: i64) -> Result<Option<Session>, Refusal> {
        let path = format!("{TOKENS}{}", Uuid::from_u128(id));
        let reply = self.0.call(VALIDATE, Method::Get, &path).await.map_err(unavailable)?;
        if reply.status == 404 {
            return Ok(None);
        }
        let token = token_of(&reply)?;
        if Uuid::try_parse(token.any_id()).map(|found| found.as_u128()) != Ok(id) {
            return Err(unreadable(&"another session"));
        }
        if token.expires_ms <= now_ms {
            return Ok(None);
        }
        let (created_ms, expires_ms) = (token.created_ms, token.expires_ms);
        Ok(Some(Session { id, customer_id: token.customerid.as_ref().into(), created_ms, expires_ms }))
    }

    /// Ends a session.
    pub(crate) async fn end(&self, id: u128) -> Result<(), Refusal> {
        let path = format!("{TOKENS}{}", Uuid::from_u128(id));
        let reply = self.0.call(INVALIDATE, Method::Delete, &path).await.map_err(unavailable)?;
        if reply.status == 200 { Ok(()) } else { Err(unreadable(&reply.status)) }
    }
}

/// Where the auth service has its sessions.
pub(crate) const TOKENS: &str = "/rest/api/authtoken/";

fn token_of(reply: &Reply) -> Result<Token<'_>, Refusal> {
    if reply.status != 200 {
        return Err(unreadable(&reply.status));
    }
    let token: Token = serde_json::from_slice(&reply.body).map_err(|error| unreadable(&error))?;
    if token.customerid.is_empty() { Err(unreadable(&"nobody's session")) } else { Ok(token) }
}

/// There is no answer, so nobody is let in.
fn unavailable(error: CallError) -> Refusal {
    tracing::debug!(%error, "the auth service did not answer");
    Refusal::new(StatusCode::SERVICE_UNAVAILABLE, "the auth service does not answer; try again later")
}

fn unreadable(what: &dyn std::fmt::Display) -> Refusal {
    tracing::debug!(%what, "the auth service sent an unreadable answer");
    Refusal::new(StatusCode::SERVICE_UNAVAILABLE, "the auth service does not answer as it should")
}

/// Awaits a store's answer and enters how long it took.
pub(crate) async fn timed<T>(
    timings: &tidemark_service::Timings,
    op: usize,
    answer: impl Future<Output = Result<T, StoreError>>,
) -> Result<T, Refusal> {
    let began = Instant::now();
    let result = answer.await;
    timings.record(op, began.elapsed());
    Ok(result?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_session_lets_nobody_in() {
        let reply = |status, body: &'static str| Reply { status, body: body.into() };
        let good = r#"{"id":"x","customerid":"a\"b","lastAccessedTime":1,"timeoutTime":2,"other":[]}"#;
        assert_eq!(token_of(&reply(200, good)).unwrap().customerid, "a\"b");
        for (status, body) in
            [(200, ""), (200, "{}"), (200, r#"{"customerid":""}"#), (200, "null"), (204, good), (302, good)]
        {
            assert_eq!(token_of(&reply(status, body)).unwrap_err().status(), 503, "{status} {body}");
        }
    }
}
