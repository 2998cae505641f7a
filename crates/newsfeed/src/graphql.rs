//! GraphQL at `POST /`, after the one public version that has nothing else: the same operations as over REST.

#[cfg(feature = "graphql")]
mod bounds;
#[cfg(feature = "graphql")]
mod schema;

use std::sync::Arc;

use axum::Router;
use axum::routing::post;

use crate::app::App;

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

/// Answers a request: 200 for whatever is one, also where it fails, as GraphQL has it.
#[cfg(feature = "graphql")]
async fn answer(
    schema: &schema::Feed,
    app: Arc<App>,
    body: &[u8],
) -> Result<tidemark_service::Answer, crate::refusal::Refusal> {
    use async_graphql::{Request, Response};

    use crate::input::Form;
    use crate::refusal::Refusal;
    use crate::shapes::{json_of, ok};

    let mut request: Request = Form::Json.read(body)?;
    if request.query.trim().is_empty() {
        return Err(Refusal::bad("query is missing"));
    }
    let response = match bounds::parsed(&request.query) {
        Ok(document) => {
            request.set_parsed_query(document);
            let asked = Arc::new(schema::Asked::of(app));
            let response = schema.execute(request.data(asked.clone())).await;
            // one error, not one for each field that is missing then
            asked.room.exceeded().map_or(response, |error| Response::from_errors(vec![error]))
        }
        Err(error) => Response::from_errors(vec![error]),
    };
    Ok(ok(json_of(&response)))
}
