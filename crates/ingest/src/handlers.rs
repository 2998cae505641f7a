//! Which path does what.

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::{Path, RawQuery, State};
use axum::http::{HeaderName, HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use bytes::Bytes;
use tidemark_service::{Answer, System};
use tidemark_store::messages::{Message, Place, Query};

use crate::app::App;
use crate::page::Rendering;
use crate::payload::{NotAMessage, field, message_of_query, read_message};
use crate::refusal::Refusal;

/// Most messages of one page, and as many as there are where nothing is said.
const LIMIT_MAX: usize = 100_000;
/// Names the next page.
static NEXT_CURSOR: HeaderName = HeaderName::from_static("next-cursor");

type Shared = State<Arc<App>>;

/// All routes of the intake.
fn router(app: Arc<App>) -> Router {
    Router::new()
        .route("/m", get(take_query).post(take_body))
        .route("/count", get(count))
        .route("/behind", get(behind))
        .route("/messages/{user}", get(messages))
        .with_state(app)
}

/// The intake as it is served: its routes, and a short way for messages past them.
pub(crate) fn system(app: Arc<App>) -> System {
    let routes = router(app.clone());
    System::new(routes).short_way("/m", move |method, query, body| {
        let message = match *method {
            Method::GET => message_of_query(query.unwrap_or_default()),
            Method::POST => read_message(Bytes::copy_from_slice(body)),
            _ => return None, // the router says what is allowed
        };
        let app = app.clone();
        Some(async move { taken(&app, message).await })
    })
}

fn plain(body: impl Into<Body>) -> Response {
    let mut response = Response::new(body.into());
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("text/plain"));
    response
}

async fn take(app: &App, message: Result<Message, NotAMessage>) -> Result<Response, Refusal> {
    app.take(message?).await?;
    Ok(plain(Bytes::from_static(b"OK")))
}

/// The same for the short way.
async fn taken(app: &App, message: Result<Message, NotAMessage>) -> Answer {
    let taken = async { app.take(message?).await };
    match taken.await {
        Ok(()) => Answer::new(StatusCode::OK, "text/plain", Bytes::from_static(b"OK")),
        Err(refusal) => refusal.into_response().into(),
    }
}

async fn take_query(State(app): Shared, RawQuery(query): RawQuery) -> Result<Response, Refusal> {
    take(&app, message_of_query(query.as_deref().unwrap_or_default())).await
}

async fn take_body(State(app): Shared, body: Bytes) -> Result<Response, Refusal> {
    take(&app, read_message(body)).await
}

async fn count(State(app): Shared) -> Result<Response, Refusal> {
    Ok(plain(app.store.count().await?.to_string()))
}

async fn behind(State(app): Shared) -> Result<Response, Refusal> {
    Ok(plain(app.store.behind().await?.to_string()))
}

/// A field of the query that is a whole number.
fn number<T: std::str::FromStr>(query: &str, name: &str, otherwise: T) -> Result<T, Refusal> {
    let Some(value) = field(query, name).filter(|value| !value.is_empty()) else { return Ok(otherwise) };
    let text = std::str::from_utf8(&value).ok();
    let number = text.and_then(|text| text.parse().ok());
    number.ok_or_else(|| Refusal::BadRequest(format!("{name} is no whole number").into()))
}

/// A place as a cursor: time, then the kind in hexadecimal digits.
fn cursor_of(place: Place) -> String {
    let [a, b, c] = place.kind;
    format!("{}-{a:02x}{b:02x}{c:02x}", place.time_ms)
}

fn place_of(cursor: &[u8]) -> Option<Place> {
    let (time, kind) = std::str::from_utf8(cursor).ok()?.split_once('-')?;
    let kind = u32::from_str_radix(kind, 16).ok().filter(|_| kind.len() == 6)?.to_be_bytes();
    Some(Place { time_ms: time.parse().ok()?, kind: [kind[1], kind[2], kind[3]] })
}

fn read_query(user: &str, query: &str) -> Result<Query, Refusal> {
    let bad = |text: &'static str| Refusal::BadRequest(text.into());
    let is_number = !user.is_empty() && user.bytes().all(|byte| byte.is_ascii_digit());
    let user = user.parse().ok().filter(|_| is_number).ok_or_else(|| bad("the user is no whole number"))?;
    let after = match field(query, "cursor").filter(|cursor| !cursor.is_empty()) {
        None => None,
        Some(cursor) => {
            let wrong = "the cursor is none; send the header next-cursor of the page before as it was";
            Some(place_of(&cursor).ok_or_else(|| bad(wrong))?)
        }
    };
    let limit = number(query, "limit", LIMIT_MAX)?;
    if !(1..=LIMIT_MAX).contains(&limit) {
        return Err(Refusal::BadRequest(format!("the limit is {limit}; allowed is 1 to {LIMIT_MAX}").into()));
    }
    let (from_ms, to_ms) = (number(query, "from", 0)?, number(query, "to", u64::MAX)?);
    Ok(Query { user, from_ms, to_ms, after, limit })
}

async fn messages(
    State(app): Shared,
    Path(user): Path<String>,
    RawQuery(query): RawQuery,
) -> Result<Response, Refusal> {
    let query = read_query(&user, query.as_deref().unwrap_or_default())?;
    let turn = app.pages.clone().acquire_owned().await;
    let turn = turn.map_err(|_| Refusal::Unavailable("the server stops".into()))?;
    let page = app.store.of_user(query).await?;
    debug_assert!(page.messages.is_sorted_by_key(Message::place));
    let next = page.next;
    let mut response = Response::new(Body::new(Rendering::new(page.messages, turn)));
    *response.status_mut() = StatusCode::OK;
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    if let Some(cursor) = next.and_then(|place| HeaderValue::try_from(cursor_of(place)).ok()) {
        headers.insert(NEXT_CURSOR.clone(), cursor);
    }
    Ok(response)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_cursor_is_a_place(time_ms: u64, kind: [u8; 3]) {
            let place = Place { time_ms, kind };
            prop_assert_eq!(place_of(cursor_of(place).as_bytes()), Some(place));
        }

        #[test]
        fn any_bytes_are_a_cursor_or_none(bytes: Vec<u8>) {
            let _ = place_of(&bytes);
        }
    }
}
