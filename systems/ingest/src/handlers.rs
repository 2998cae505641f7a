//! Which path does what.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Path, RawQuery, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, any, get};
use axum::{Extension, Router};
use bytes::Bytes;
use tidemark_service::OPENAPI_PATH;
use tidemark_service::{Answer, System, not_allowed};
use tidemark_store::messages::{Message, MessageId, Place, Query};

use crate::app::App;
use crate::identity::Identity;
use crate::openapi::document;
use crate::page::{LIMIT_MAX, Rendering};
use crate::payload::{NotAMessage, field, message_of_query, read_message};
use crate::refusal::Refusal;

/// Takes messages.
const MESSAGE_PATH: &str = "/m";
/// Names the next page.
static NEXT_CURSOR: HeaderName = HeaderName::from_static("next-cursor");

type Shared = State<Arc<App>>;

/// All routes of the intake.
fn router(app: Arc<App>) -> Router {
    let description = Bytes::from(document().to_string());
    let describe = get(async move || tidemark_service::json(StatusCode::OK, description.clone()));
    let router = Router::new().route(OPENAPI_PATH, describe);
    let add = |router: Router<Arc<App>>, (path, does)| router.route(path, does);
    routes().into_iter().fold(router, add).with_state(app)
}

/// Which path does what.
fn routes() -> [(&'static str, MethodRouter<Arc<App>>); 4] {
    [
        (MESSAGE_PATH, any(take)),
        ("/count", get(count)),
        ("/behind", get(behind)),
        ("/messages/{user}", get(messages)),
    ]
}

/// The intake as it is served: its routes, and a fast path for messages past them.
pub(crate) fn system(app: Arc<App>, identity: Identity) -> System {
    let routes = router(app.clone()).layer(Extension(identity));
    System::new(routes).fast_path(MESSAGE_PATH, move |request| {
        // none: the router says which methods there are
        let message = message(request.method, request.query, request.body, identity, request.headers)?;
        let app = app.clone();
        Some(async move { taken(&app, message).await })
    })
}

/// The message that a request has, as its body or in its query; none with a method that takes no message.
fn message(
    method: &Method,
    query: Option<&str>,
    body: &[u8],
    identity: Identity,
    headers: &HeaderMap,
) -> Option<Result<Message, NotAMessage>> {
    let message = match *method {
        Method::POST => read_message(Bytes::copy_from_slice(body)),
        Method::GET | Method::HEAD => message_of_query(query.unwrap_or_default()),
        _ => return None,
    };
    Some(message.and_then(|message| {
        let id = identity.id_of(headers, &message.payload)?;
        Ok(Message { id, ..message })
    }))
}

fn plain(body: impl Into<Body>) -> Response {
    let mut response = Response::new(body.into());
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("text/plain"));
    response
}

/// What a message is answered with, whichever way it came.
async fn taken(app: &App, message: Result<Message, NotAMessage>) -> Answer {
    let taken = async { app.take(message?).await };
    match taken.await {
        Ok(()) => Answer::new(StatusCode::OK, "text/plain", Bytes::from_static(b"OK")),
        Err(refusal) => refusal.into_response().into(),
    }
}

async fn take(
    State(app): Shared,
    Extension(identity): Extension<Identity>,
    method: Method,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
    body: Bytes,
) -> Answer {
    match message(&method, query.as_deref(), &body, identity, &headers) {
        Some(message) => taken(&app, message).await,
        None => not_allowed("GET,HEAD,POST").into(),
    }
}

async fn count(State(app): Shared) -> Result<Response, Refusal> {
    Ok(plain(app.store.count().await?.to_string()))
}

async fn behind(State(app): Shared) -> Result<Response, Refusal> {
    Ok(plain(app.store.behind().await?.to_string()))
}

/// The number that these digits are; a sign is none.
fn digits<T: std::str::FromStr>(text: &[u8]) -> Option<T> {
    let text = text.iter().all(u8::is_ascii_digit).then_some(text)?;
    std::str::from_utf8(text).ok()?.parse().ok()
}

/// A field of the query that is a whole number.
fn number<T: std::str::FromStr>(query: &str, name: &str, otherwise: T) -> Result<T, Refusal> {
    let Some(value) = field(query, name).filter(|value| !value.is_empty()) else { return Ok(otherwise) };
    digits(&value).ok_or_else(|| Refusal::BadRequest(format!("{name} is not a whole number").into()))
}

/// A place as a cursor: time, then the kind and the id in hexadecimal digits.
fn cursor_of(place: Place) -> String {
    let [a, b, c] = place.kind;
    let id = u128::from_be_bytes(*place.id.as_bytes());
    format!("{}-{a:02x}{b:02x}{c:02x}-{id:032x}", place.time_ms)
}

fn place_of(cursor: &[u8]) -> Option<Place> {
    let mut parts = std::str::from_utf8(cursor).ok()?.splitn(3, '-');
    let time_ms = digits(parts.next()?.as_bytes())?;
    let mut hex = |length| {
        let digits = parts.next()?;
        let is_one = digits.len() == length && digits.bytes().all(|digit| digit.is_ascii_hexdigit());
        u128::from_str_radix(digits, 16).ok().filter(|_| is_one)
    };
    let [.., a, b, c] = hex(6)?.to_be_bytes();
    Some(Place { time_ms, kind: [a, b, c], id: MessageId::from_bytes(hex(32)?.to_be_bytes()) })
}

fn read_query(user: &str, query: &str) -> Result<Query, Refusal> {
    let bad = |text: &'static str| Refusal::BadRequest(text.into());
    let user = digits(user.as_bytes()).ok_or_else(|| bad("the user is not a whole number"))?;
    let after = match field(query, "cursor").filter(|cursor| !cursor.is_empty()) {
        None => None,
        Some(cursor) => {
            let wrong = "the cursor is not valid; send the header next-cursor of the page before as it was";
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
    let mut page = app.page(query).await?;
    let room = app.room.take(&mut page)?;
    debug_assert!(page.messages.is_sorted_by_key(Message::place));
    let next = page.next;
    let mut response = Response::new(Body::new(Rendering::new(page.messages, room)));
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

    #[test]
    fn the_description_has_the_paths_that_are_routed_and_no_others() {
        let document = document();
        let mut documented: Vec<_> = document["paths"].as_object().expect("paths").keys().cloned().collect();
        let mut routed: Vec<_> = routes().into_iter().map(|(path, _)| path).collect();
        routed.sort_unstable();
        documented.sort_unstable();
        assert_eq!(documented, routed);
    }

    #[test]
    fn a_number_has_no_sign() {
        assert_eq!(digits::<u64>(b"0042"), Some(42));
        assert_eq!(number("limit=%2B5", "limit", 1).ok(), None);
        assert_eq!(number("limit=5", "limit", 1).ok(), Some(5));
        let id = "0".repeat(32);
        assert!(place_of(format!("1-414243-{id}").as_bytes()).is_some());
        let signed = [format!("+1-414243-{id}"), format!("1-+14243-{id}"), format!("1-414243-+{}", &id[1..])];
        for wrong in signed.iter().map(String::as_str).chain(["1-414243", "1-414243-", "1", ""]) {
            assert_eq!(place_of(wrong.as_bytes()), None, "{wrong}");
        }
    }

    proptest! {
        #[test]
        fn a_cursor_is_a_place(time_ms: u64, kind: [u8; 3], id: [u8; 16]) {
            let place = Place { time_ms, kind, id: MessageId::from_bytes(id) };
            prop_assert_eq!(place_of(cursor_of(place).as_bytes()), Some(place));
        }

        #[test]
        fn any_bytes_are_a_cursor_or_none(bytes: Vec<u8>) {
            let _ = place_of(&bytes);
        }
    }
}
