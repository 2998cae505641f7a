//! Which path does what.

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, RawQuery, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode};
use axum::response::IntoResponse;
use axum::routing::{MethodRouter, get, post};
use bytes::Bytes;
use tidemark_service::{Answer, OPENAPI_PATH};
use tidemark_store::feeds::{FeedPage, PostId};
use tidemark_store::people::Friend;
use tidemark_store::search::POSTERS_MAX;

use crate::app::App;
use crate::ids::{cursor_of, day_of, id_of};
use crate::input::{
    Form, LIST_MAX, ListQuery, NewFriend, NewParticipant, NewPost, check_name, friendship_of, path_id,
};
use crate::openapi::document;
use crate::operations::Operation;
use crate::refusal::Refusal;
use crate::shapes::{
    FriendObjects, FriendShape, Link, ParticipantShape, PostShape, json_of, made, ok, posts,
};

/// Names the next page.
static NEXT_CURSOR: HeaderName = HeaderName::from_static("next-cursor");

pub(crate) type Shared = State<Arc<App>>;
pub(crate) type Done<T = Answer> = Result<T, Refusal>;
/// The id in a path, which may be none.
pub(crate) type IdPath = Result<Path<String>, PathRejection>;

pub(crate) fn id_in(path: IdPath) -> Done<u64> {
    let Path(id) = path.map_err(|_| Refusal::bad("the path is not UTF-8"))?;
    path_id(&id)
}

/// All routes of the news feed, its pages among them.
pub(crate) fn router(app: Arc<App>) -> Router {
    let description = Bytes::from(document().to_string());
    let describe = get(async move || tidemark_service::json(StatusCode::OK, description.clone()));
    let router = Router::new().route(OPENAPI_PATH, describe);
    let (graphql, of_2014) = (crate::graphql::routes(app.clone()), crate::of_2014::routes(app.clone()));
    let add = |router: Router<Arc<App>>, (path, does)| router.route(path, does);
    routes()
        .into_iter()
        .fold(router, add)
        .with_state(app)
        .merge(crate::pages::routes())
        .merge(graphql)
        .merge(of_2014)
}

/// Which path does what.
pub(crate) fn routes() -> [(&'static str, MethodRouter<Arc<App>>); 10] {
    [
        ("/participant", post(create_participant).get(named)),
        ("/participant/{id}", get(participant)),
        ("/participant/{id}/friends", get(friends).post(befriend)),
        ("/participant/{id}/inbound", get(inbound)),
        ("/participant/{id}/inbound/stream", get(stream)),
        ("/participant/{id}/outbound", get(outbound).post(post_outbound)),
        ("/outbound", get(search)),
        ("/behind", get(behind)),
        ("/count", get(count)),
        ("/last", get(last)),
    ]
}

async fn create_participant(State(app): Shared, headers: HeaderMap, body: Bytes) -> Done {
    app.operations
        .timed(Operation::ParticipantPost, async {
            let form = Form::of(&headers);
            let new: NewParticipant<'_> = form.read(&body)?;
            let participant = app.people.create(new.name()?).await?;
            Ok(made(form, &ParticipantShape::from(&participant)))
        })
        .await
}

/// Participants by their name.
async fn named(State(app): Shared, RawQuery(query): RawQuery) -> Done {
    let query = ListQuery::read(query.as_deref())?;
    let name = query.name.as_deref().filter(|name| !name.is_empty());
    let name = check_name(name.ok_or_else(|| Refusal::bad("name is missing: /participant?name=NAME"))?)?;
    let named = app.people.store.named(name).await?;
    Ok(ok(json_of(&named.iter().map(ParticipantShape::from).collect::<Vec<_>>())))
}

async fn participant(State(app): Shared, id: IdPath) -> Done {
    let found = async { app.participant(id_in(id)?).await };
    let participant = app.operations.timed(Operation::ParticipantGet, found).await?;
    Ok(ok(json_of(&ParticipantShape::from(&participant))))
}

async fn befriend(State(app): Shared, id: IdPath, headers: HeaderMap, body: Bytes) -> Done {
    let befriended = async {
        let from = id_in(id)?;
        let form = Form::of(&headers);
        let to = form.read::<NewFriend<'_>>(&body)?.to()?;
        let id = app.befriend(from, to).await?;
        match form {
            Form::Json => Ok(made(form, &FriendShape::new(from, Friend { friendship: id, participant: to }))),
            Form::UrlEncoded => {
                let (from, to) = (app.participant(from).await?, app.participant(to).await?);
                let (from, to) = (ParticipantShape::from(&from), ParticipantShape::from(&to));
                Ok(made(form, &FriendObjects { id, from, to }))
            }
        }
    };
    app.operations.timed(Operation::FriendPost, befriended).await
}

async fn friends(State(app): Shared, id: IdPath, RawQuery(query): RawQuery) -> Done<Response<Body>> {
    let found = async {
        let id = id_in(id)?;
        let query = ListQuery::read(query.as_deref())?;
        let (limit, after) = (query.limit(LIST_MAX)?, query.cursor(friendship_of)?);
        Ok::<_, Refusal>((id, limit, after, app.friends(id).await?))
    };
    let (id, limit, after, friends) = app.operations.timed(Operation::FriendGet, found).await?;
    let begin = after.map_or(0, |after| friends.partition_point(|friend| friend.friendship <= after));
    let rest = &friends[begin..];
    let some = &rest[..limit.min(rest.len())];
    let next = some.last().filter(|_| some.len() < rest.len()).map(|last| last.friendship.to_string());
    let shapes: Vec<_> = some.iter().map(|friend| FriendShape::new(id, *friend)).collect();
    Ok(list(json_of(&shapes), next))
}

/// A list, and where the next page begins.
fn list(json: Bytes, next: Option<String>) -> Response<Body> {
    let mut response = ok(json).into_response();
    if let Some(cursor) = next.and_then(|next| HeaderValue::try_from(next).ok()) {
        response.headers_mut().insert(NEXT_CURSOR.clone(), cursor);
    }
    response
}

fn feed(FeedPage { posts: page, next }: &FeedPage, reader: Option<u64>) -> Response<Body> {
    list(posts(page.iter().map(|post| &**post), reader), next.map(cursor_of))
}

/// Whose feed is asked for, from where on, and how many posts of it.
pub(crate) fn feed_query(id: IdPath, query: Option<String>) -> Done<(u64, Option<PostId>, usize)> {
    let id = id_in(id)?;
    let query = ListQuery::read(query.as_deref())?;
    Ok((id, query.cursor(id_of)?, query.limit(LIST_MAX)?))
}

async fn inbound(State(app): Shared, id: IdPath, RawQuery(query): RawQuery) -> Done<Response<Body>> {
    let found = async {
        let (id, before, limit) = feed_query(id, query)?;
        Ok::<_, Refusal>((id, app.inbound(id, before, limit).await?))
    };
    let (id, page) = app.operations.timed(Operation::InboundGet, found).await?;
    Ok(feed(&page, Some(id)))
}

async fn outbound(State(app): Shared, id: IdPath, RawQuery(query): RawQuery) -> Done<Response<Body>> {
    let found = async {
        let (id, before, limit) = feed_query(id, query)?;
        app.outbound(id, before, limit).await
    };
    let page = app.operations.timed(Operation::OutboundGet, found).await?;
    Ok(feed(&page, None))
}

async fn post_outbound(State(app): Shared, id: IdPath, headers: HeaderMap, body: Bytes) -> Done {
    let posted = async {
        let poster = id_in(id)?;
        let form = Form::of(&headers);
        let new: NewPost<'_> = form.read(&body)?;
        let (subject, story, occurred) = (new.subject()?, new.story()?, new.occurred()?);
        let post = app.post(poster, subject, story).await?;
        let day = occurred.map_or_else(|| day_of(post.id.at_us), str::to_owned);
        Ok(made(form, &PostShape::outbound(&post, &day)))
    };
    app.operations.timed(Operation::OutboundPost, posted).await
}

async fn search(State(app): Shared, RawQuery(query): RawQuery) -> Done {
    let found = async {
        let query = ListQuery::read(query.as_deref())?;
        let limit = query.limit(POSTERS_MAX)?;
        let keywords = query.keywords.as_deref().filter(|keywords| !keywords.trim().is_empty());
        let missing = || Refusal::bad("keywords is missing: /outbound?keywords=WORDS");
        app.search(keywords.ok_or_else(missing)?, limit).await
    };
    let posters = app.operations.timed(Operation::OutboundSearch, found).await?;
    Ok(ok(json_of(&posters.into_iter().map(Link).collect::<Vec<_>>())))
}

/// The posts that come into an inbound feed from now on, as server-sent events.
async fn stream(State(app): Shared, id: IdPath) -> Done<Response<Body>> {
    let participant = app.participant(id_in(id)?).await?;
    app.live.begin(participant.id)
}

/// How many participants there are.
async fn count(State(app): Shared) -> Done {
    let [participants, _] = app.people.store.counts().await?;
    Ok(Answer::new(StatusCode::OK, "text/plain", participants.to_string()))
}

/// The greatest id of a participant.
async fn last(State(app): Shared) -> Done {
    let id = app.people.store.last().await?;
    Ok(Answer::new(StatusCode::OK, "text/plain", id.to_string()))
}

/// How many posts are not delivered yet.
async fn behind(State(app): Shared) -> Answer {
    Answer::new(StatusCode::OK, "text/plain", app.deliveries.behind().to_string())
}
