//! GraphQL at `POST /`, after the one public version that has nothing else: the same operations as over REST.

#[cfg(feature = "graphql")]
mod bounds;
#[cfg(feature = "graphql")]
mod introspection;
#[cfg(feature = "graphql")]
mod room;
#[cfg(feature = "graphql")]
mod schema;

use std::sync::Arc;

use axum::Router;
use axum::routing::post;

use crate::app::App;

#[cfg(feature = "graphql")]
pub(crate) use room::Memory;

/// The route of GraphQL; `/` with GET is the web page.
#[cfg(feature = "graphql")]
pub(crate) fn routes(app: Arc<App>) -> Router {
    let schema = schema::schema();
    Router::new().route("/", post(async move |body: bytes::Bytes| answer(&schema, app.clone(), &body).await))
}

/// The same in a program that has no GraphQL: the way to one.
#[cfg(not(feature = "graphql"))]
pub(crate) fn routes(_: Arc<App>) -> Router {
    let error = "this program is built without GraphQL: build it with --features graphql";
    Router::new()
        .route("/", post(async move || crate::refusal::refuse(axum::http::StatusCode::NOT_FOUND, error)))
}

/// Most errors that are told.
#[cfg(feature = "graphql")]
const ERRORS_MAX: usize = 10;

/// Answers a request: 200 for whatever is one, also where it fails, as GraphQL has it.
#[cfg(feature = "graphql")]
async fn answer(
    schema: &schema::Feed,
    app: Arc<App>,
    body: &[u8],
) -> Result<tidemark_service::Answer, crate::refusal::Refusal> {
    use async_graphql::{Request, Response};
    use room::{BYTES_MAX, Room, too_large};

    use crate::input::Form;
    use crate::refusal::Refusal;
    use crate::shapes::{json_of, ok};

    // before it is read
    let full = "the memory for answers of GraphQL is taken; try again in a second";
    let room = Room::of(&app.graphql, body.len()).ok_or_else(|| Refusal::unavailable(full))?;
    let mut request: Request = Form::Json.read(body)?;
    if request.query.trim().is_empty() {
        return Err(Refusal::bad("query is missing"));
    }
    let response = match bounds::parsed(&request.query, request.operation_name.as_deref()) {
        Ok(bounds::Parsed { document, introspected_bytes }) => {
            request.set_parsed_query(document);
            let asked = Arc::new(schema::Asked::of(app, room));
            let response = match asked.room.introspected(introspected_bytes) {
                Ok(()) => schema.execute(request.data(asked.clone())).await,
                Err(_) => Response::default(),
            };
            // one error, not one for each field that is missing then
            let response = asked.room.exceeded().map_or(response, |error| Response::from_errors(vec![error]));
            let json = json_of(&told(response));
            if json.len() <= BYTES_MAX {
                return Ok(ok(json));
            }
            let error = too_large(&format!("{BYTES_MAX} bytes"));
            Response::from_errors(vec![error.into_server_error(Default::default())])
        }
        Err(error) => Response::from_errors(vec![error]),
    };
    Ok(ok(json_of(&told(response))))
}

/// An answer with no more errors than are told, each with a code.
#[cfg(feature = "graphql")]
fn told(mut response: async_graphql::Response) -> async_graphql::Response {
    response.errors.truncate(ERRORS_MAX);
    for error in &mut response.errors {
        let extensions = error.extensions.get_or_insert_default();
        if extensions.get("code").is_none() {
            extensions.set("code", "BAD_USER_INPUT");
        }
    }
    response
}
