//! The paths of 2014, for a load of then: numbers in place of links, participants in place of their numbers, and an array
//! around everything. What was no JSON then (keys without quotes, a comma before the end) is JSON here.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::Arc;

use axum::Router;
use axum::extract::{RawQuery, State};
use axum::http::HeaderMap;
use axum::routing::{get, post};
use bytes::Bytes;
use serde::ser::{Serialize, SerializeStruct, Serializer};
use tidemark_store::people::Participant;
use tidemark_store::search::POSTERS_MAX;

use crate::app::App;
use crate::handlers::{Done, IdPath, Shared, feed_query, id_in};
use crate::ids::day_of;
use crate::input::{Form, ListQuery, NewFriend, NewParticipant, NewPost, Terms};
use crate::operations::Operation;
use crate::refusal::Refusal;
use crate::shapes::{json_of, ok};

/// The routes, beside those of today.
pub(crate) fn routes(app: Arc<App>) -> Router {
    Router::new()
        .route("/participant/new", post(create_participant))
        .route("/friends/new", post(befriend))
        .route("/friends/{id}", get(friends))
        .route("/inbound/{id}", get(inbound))
        .route("/outbound/{id}", get(outbound))
        .route("/outbound/new", post(post_outbound))
        .route("/outbound/search", post(search))
        .with_state(app)
}

/// A participant.
#[derive(Debug, Clone)]
struct Person(Participant);

impl Serialize for Person {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Person(Participant { id, name }) = self;
        let mut person = serializer.serialize_struct("Person", 2)?;
        person.serialize_field("id", id)?;
        person.serialize_field("name", &**name)?;
        person.end()
    }
}

/// A friendship.
#[derive(Debug, serde::Serialize)]
struct Friendship {
    id: u64,
    from: Person,
    to: Person,
}

/// A post: its poster as a number, or, in an inbound feed, as a participant.
#[derive(Debug, serde::Serialize)]
struct Item<'a, P> {
    from: P,
    #[serde(skip_serializing_if = "Option::is_none")]
    to: Option<u64>,
    occurred: &'a str,
    subject: &'a str,
    story: &'a str,
}

async fn person(app: &App, id: u64) -> Result<Person, Refusal> {
    app.participant(id).await.map(Person)
}

/// Each of these participants once.
async fn people(app: &App, ids: impl Iterator<Item = u64>) -> Result<BTreeMap<u64, Person>, Refusal> {
    let mut people = BTreeMap::new();
    for id in ids {
        if let Entry::Vacant(place) = people.entry(id) {
            place.insert(person(app, id).await?);
        }
    }
    Ok(people)
}

async fn create_participant(State(app): Shared, headers: HeaderMap, body: Bytes) -> Done {
    let created = async {
        let new: NewParticipant<'_> = Form::of(&headers).read(&body)?;
        Ok::<_, Refusal>(app.people.create(new.name()?).await?)
    };
    let participant = app.operations.timed(Operation::ParticipantPost, created).await?;
    Ok(ok(json_of(&[Person(participant)])))
}

async fn befriend(State(app): Shared, headers: HeaderMap, body: Bytes) -> Done {
    let befriended = async {
        let new: NewFriend<'_> = Form::of(&headers).read(&body)?;
        let (from, to) = (new.from()?, new.to()?);
        let id = app.befriend(from, to).await?;
        Ok::<_, Refusal>(Friendship { id, from: person(&app, from).await?, to: person(&app, to).await? })
    };
    let friendship = app.operations.timed(Operation::FriendPost, befriended).await?;
    Ok(ok(json_of(&[friendship])))
}

async fn friends(State(app): Shared, id: IdPath) -> Done {
    let found = async {
        let id = id_in(id)?;
        let friends = app.friends(id).await?;
        let ids = friends.iter().map(|friend| friend.participant);
        let people = people(&app, std::iter::once(id).chain(ids)).await?;
        let friendship = |friend: &tidemark_store::people::Friend| {
            let (from, to) = (people.get(&id)?.clone(), people.get(&friend.participant)?.clone());
            Some(Friendship { id: friend.friendship, from, to })
        };
        Ok::<_, Refusal>(json_of(&friends.iter().filter_map(friendship).collect::<Vec<_>>()))
    };
    Ok(ok(app.operations.timed(Operation::FriendGet, found).await?))
}

async fn inbound(State(app): Shared, id: IdPath, RawQuery(query): RawQuery) -> Done {
    let found = async {
        let (id, before, limit) = feed_query(id, query)?;
        let page = app.inbound(id, before, limit).await?;
        let people = people(&app, page.posts.iter().map(|post| post.poster)).await?;
        let days: Vec<String> = page.posts.iter().map(|post| day_of(post.id.at_us)).collect();
        let item = |(post, day): (&Arc<tidemark_store::feeds::Post>, &'_ String)| {
            let from = people.get(&post.poster).cloned();
            json_of(&Item { from, to: Some(id), occurred: day, subject: &post.subject, story: &post.story })
        };
        Ok::<_, Refusal>(array(page.posts.iter().zip(&days).map(item)))
    };
    Ok(ok(app.operations.timed(Operation::InboundGet, found).await?))
}

async fn outbound(State(app): Shared, id: IdPath, RawQuery(query): RawQuery) -> Done {
    let found = async {
        let (id, before, limit) = feed_query(id, query)?;
        let page = app.outbound(id, before, limit).await?;
        let item = |post: &Arc<tidemark_store::feeds::Post>| {
            let day = day_of(post.id.at_us);
            json_of(&Item {
                from: post.poster,
                to: None,
                occurred: &day,
                subject: &post.subject,
                story: &post.story,
            })
        };
        Ok::<_, Refusal>(array(page.posts.iter().map(item)))
    };
    Ok(ok(app.operations.timed(Operation::OutboundGet, found).await?))
}

/// An array of what is JSON already.
fn array(items: impl Iterator<Item = Bytes>) -> Bytes {
    let items: Vec<Bytes> = items.collect();
    [&b"["[..], &items.join(&b","[..]), b"]"].concat().into()
}

async fn post_outbound(State(app): Shared, headers: HeaderMap, body: Bytes) -> Done {
    let posted = async {
        let new: NewPost<'_> = Form::of(&headers).read(&body)?;
        let poster = new.from()?;
        let (subject, story, occurred) = (new.subject()?, new.story()?, new.occurred()?);
        let post = app.post(poster, subject, story).await?;
        let day = occurred.map_or_else(|| day_of(post.id.at_us), str::to_owned);
        Ok::<_, Refusal>(json_of(&[Item { from: poster, to: None, occurred: &day, subject, story }]))
    };
    Ok(ok(app.operations.timed(Operation::OutboundPost, posted).await?))
}

/// The words are `terms` of the body, or, as from 2016 on, `keywords` of the query.
async fn search(State(app): Shared, headers: HeaderMap, RawQuery(query): RawQuery, body: Bytes) -> Done {
    let found = async {
        let query = ListQuery::read(query.as_deref())?;
        let words = match query.keywords {
            Some(keywords) => keywords,
            None => Form::of(&headers).read::<Terms<'_>>(&body)?.terms.unwrap_or_default().into_owned(),
        };
        if words.trim().is_empty() {
            return Err(Refusal::bad("terms is missing"));
        }
        app.search(&words, POSTERS_MAX).await
    };
    Ok(ok(json_of(&app.operations.timed(Operation::OutboundSearch, found).await?)))
}
