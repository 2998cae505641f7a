//! What can be asked for: types, queries and mutations, with the names of the public version.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use async_graphql::{Context, EmptySubscription, Error, ErrorExtensions, ID, InputObject, Object, Schema};
use axum::http::StatusCode;
use parking_lot::Mutex;
use tidemark_store::feeds::{FeedPage, Post};
use tidemark_store::people::Friend as Friendship;
use tidemark_store::search::POSTERS_MAX;
use tokio::sync::{OnceCell, Semaphore, SemaphorePermit};

use super::room::Room;
use crate::app::App;
use crate::ids::{cursor_of, day_of, id_of};
use crate::input::{LIST_MAX, NewParticipant, NewPost, friendship_of, link_id};
use crate::operations::Operation;
use crate::refusal::Refusal;

/// The schema of the news feed.
pub(super) type Feed = Schema<Query, Mutation, EmptySubscription>;

pub(super) fn schema() -> Feed {
    Schema::new(Query, Mutation, EmptySubscription)
}

/// Most accesses of stores that one request has going on.
const AT_ONCE: usize = 16;

/// A request that goes on.
pub(super) struct Asked {
    app: Arc<App>,
    pub(super) room: Room,
    access: Semaphore,
    /// Each is read once, however often it is in the answer.
    names: Mutex<HashMap<u64, Arc<OnceCell<Arc<str>>>>>,
}

impl Asked {
    pub(super) fn of(app: Arc<App>, room: Room) -> Self {
        Asked { app, room, access: Semaphore::new(AT_ONCE), names: Mutex::default() }
    }

    /// Leave to access a store; none is ever refused, since nobody closes it.
    async fn access(&self) -> Option<SemaphorePermit<'_>> {
        self.access.acquire().await.ok()
    }

    /// Keeps a name that was read otherwise.
    fn knows(&self, id: u64, name: Arc<str>) {
        self.names.lock().insert(id, Arc::new(OnceCell::new_with(Some(name))));
    }

    async fn name(&self, id: u64) -> Result<Arc<str>, Error> {
        let cell = self.names.lock().entry(id).or_default().clone();
        let read = async {
            let _access = self.access().await;
            Ok(self.app.participant(id).await.map_err(error)?.name)
        };
        cell.get_or_try_init(|| read).await.cloned()
    }
}

fn asked<'a>(context: &Context<'a>) -> &'a Asked {
    context.data_unchecked::<Arc<Asked>>()
}

/// A refusal as GraphQL has it, with a code for programs.
fn error(refusal: Refusal) -> Error {
    let code = match refusal.status {
        StatusCode::NOT_FOUND => "NOT_FOUND",
        StatusCode::CONFLICT => "CONFLICT",
        StatusCode::SERVICE_UNAVAILABLE => "UNAVAILABLE",
        _ => "BAD_USER_INPUT",
    };
    Error::new(refusal.error).extend_with(|_, extensions| extensions.set("code", code))
}

fn participant_id(name: &str, id: &ID) -> Result<u64, Error> {
    let wrong =
        || Refusal::bad(format!("{name} is not a participant; write it as 7, \"7\" or \"/participant/7\""));
    link_id(id).ok_or_else(|| error(wrong()))
}

fn limit_of(limit: Option<i64>, max: usize) -> Result<usize, Error> {
    let wrong = || error(Refusal::bad(format!("limit is not a whole number from 1 to {max}")));
    match limit.map(usize::try_from) {
        None => Ok(max),
        Some(Ok(limit)) if (1..=max).contains(&limit) => Ok(limit),
        Some(_) => Err(wrong()),
    }
}

fn cursor<T>(
    name: &str,
    cursor: Option<String>,
    read: impl Fn(&str) -> Option<T>,
) -> Result<Option<T>, Error> {
    let Some(cursor) = cursor.filter(|cursor| !cursor.is_empty()) else { return Ok(None) };
    let wrong = || error(Refusal::bad(format!("{name} is not one of the list")));
    read(&cursor).map(Some).ok_or_else(wrong)
}

fn given<T>(input: Option<T>) -> Result<T, Error> {
    input.ok_or_else(|| error(Refusal::bad("input is missing")))
}

/// Reads; nothing is changed.
pub(super) struct Query;

#[Object]
impl Query {
    /// The participant with this id, null if there is none.
    async fn participant(&self, context: &Context<'_>, id: ID) -> Result<Option<Participant>, Error> {
        let asked = asked(context);
        asked.room.objects(context, 1)?;
        let id = participant_id("id", &id)?;
        let _access = asked.access().await;
        let found = asked.app.operations.timed(Operation::ParticipantGet, asked.app.participant(id)).await;
        match found {
            Ok(participant) => {
                asked.knows(id, participant.name);
                Ok(Some(Participant { id }))
            }
            Err(refusal) if refusal.status == StatusCode::NOT_FOUND => Ok(None),
            Err(refusal) => Err(error(refusal)),
        }
    }

    /// Who has posted a story with any of the words, the newest first.
    async fn posters(
        &self,
        context: &Context<'_>,
        keywords: String,
        limit: Option<i64>,
    ) -> Result<Vec<Participant>, Error> {
        let asked = asked(context);
        let limit = limit_of(limit, POSTERS_MAX)?;
        if keywords.trim().is_empty() {
            return Err(error(Refusal::bad("keywords is missing")));
        }
        let _access = asked.access().await;
        let search = asked.app.search(&keywords, limit);
        let posters = asked.app.operations.timed(Operation::OutboundSearch, search).await.map_err(error)?;
        asked.room.objects(context, posters.len())?;
        Ok(posters.into_iter().map(|id| Participant { id }).collect())
    }
}

/// Changes, one behind the other.
pub(super) struct Mutation;

#[Object]
impl Mutation {
    /// Adds a participant.
    async fn create_participant(
        &self,
        context: &Context<'_>,
        input: Option<CreateParticipantRequest>,
    ) -> Result<Participant, Error> {
        let asked = asked(context);
        asked.room.objects(context, 1)?;
        let new = NewParticipant { name: given(input)?.name.map(Cow::Owned) };
        let create = async { Ok(asked.app.people.create(new.name()?).await?) };
        let created = asked.app.operations.timed(Operation::ParticipantPost, create).await.map_err(error)?;
        asked.knows(created.id, created.name);
        Ok(Participant { id: created.id })
    }

    /// Makes two participants friends; they are the same friends when it is asked for again.
    async fn create_friend(
        &self,
        context: &Context<'_>,
        input: Option<CreateFriendRequest>,
    ) -> Result<Friend, Error> {
        let asked = asked(context);
        asked.room.objects(context, 1)?;
        let CreateFriendRequest { from_id, to_id } = given(input)?;
        let (from, to) = (participant_id("from_id", &from_id)?, participant_id("to_id", &to_id)?);
        let befriend = asked.app.befriend(from, to);
        let id = asked.app.operations.timed(Operation::FriendPost, befriend).await.map_err(error)?;
        Ok(Friend { asker: from, friendship: Friendship { friendship: id, participant: to } })
    }

    /// Posts to all friends.
    async fn create_outbound(
        &self,
        context: &Context<'_>,
        input: Option<CreateOutboundRequest>,
    ) -> Result<Outbound, Error> {
        let asked = asked(context);
        asked.room.objects(context, 1)?;
        let CreateOutboundRequest { from_id, occurred, subject, story } = given(input)?;
        let poster = participant_id("from_id", &from_id)?;
        let new = NewPost::of([occurred, subject, story]);
        let texts = || Ok((new.subject()?, new.story()?, new.occurred()?));
        let (subject, story, occurred) = texts().map_err(error)?;
        let post = asked.app.post(poster, subject, story);
        let post = asked.app.operations.timed(Operation::OutboundPost, post).await.map_err(error)?;
        Ok(Outbound { post, occurred: occurred.map(str::to_owned) })
    }
}

/// A new participant.
#[derive(InputObject)]
struct CreateParticipantRequest {
    /// At most 50 characters.
    name: Option<String>,
}

/// Two participants who are to be friends.
#[derive(InputObject)]
#[graphql(rename_fields = "snake_case")]
struct CreateFriendRequest {
    from_id: ID,
    to_id: ID,
}

/// A new post.
#[derive(InputObject)]
#[graphql(rename_fields = "snake_case")]
struct CreateOutboundRequest {
    from_id: ID,
    /// Is echoed and not kept.
    occurred: Option<String>,
    subject: Option<String>,
    story: Option<String>,
}

/// Somebody who posts and reads.
pub(super) struct Participant {
    id: u64,
}

/// A participant that is a field of something.
fn one(context: &Context<'_>, id: u64) -> Result<Participant, Error> {
    asked(context).room.objects(context, 1)?;
    Ok(Participant { id })
}

#[Object]
impl Participant {
    async fn id(&self) -> ID {
        self.id.into()
    }

    async fn name(&self, context: &Context<'_>) -> Result<String, Error> {
        let name = asked(context).name(self.id).await?;
        text(context, &name)
    }

    /// The friends, the oldest friendship first, after that with the id `after`.
    async fn friends(
        &self,
        context: &Context<'_>,
        limit: Option<i64>,
        after: Option<String>,
    ) -> Result<Vec<Friend>, Error> {
        let asked = asked(context);
        let (limit, after) = (limit_of(limit, LIST_MAX)?, cursor("after", after, friendship_of)?);
        let access = asked.access().await;
        let friends = asked.app.friends(self.id);
        let friends = asked.app.operations.timed(Operation::FriendGet, friends).await.map_err(error)?;
        drop(access);
        let begin = after.map_or(0, |after| friends.partition_point(|friend| friend.friendship <= after));
        let some: Vec<_> = friends[begin..].iter().take(limit).collect();
        asked.room.objects(context, some.len())?;
        let friend = |friendship: &Friendship| Friend { asker: self.id, friendship: *friendship };
        Ok(some.into_iter().map(friend).collect())
    }

    /// What friends have posted within 90 days, the newest first, before that with the cursor `before`.
    async fn inbound(
        &self,
        context: &Context<'_>,
        limit: Option<i64>,
        before: Option<String>,
    ) -> Result<Vec<Inbound>, Error> {
        let (limit, before) = (limit_of(limit, LIST_MAX)?, cursor("before", before, id_of)?);
        let posts = posts(context, Operation::InboundGet, asked(context).app.inbound(self.id, before, limit));
        Ok(posts.await?.map(|post| Inbound { reader: self.id, post }).collect())
    }

    /// What this one has posted, the newest first, before that with the cursor `before`.
    async fn outbound(
        &self,
        context: &Context<'_>,
        limit: Option<i64>,
        before: Option<String>,
    ) -> Result<Vec<Outbound>, Error> {
        let (limit, before) = (limit_of(limit, LIST_MAX)?, cursor("before", before, id_of)?);
        let posts =
            posts(context, Operation::OutboundGet, asked(context).app.outbound(self.id, before, limit));
        Ok(posts.await?.collect())
    }
}

/// A page of a feed, read as that operation, for which there is room.
async fn posts(
    context: &Context<'_>,
    operation: Operation,
    read: impl Future<Output = Result<FeedPage, Refusal>>,
) -> Result<impl Iterator<Item = Outbound>, Error> {
    let asked = asked(context);
    let _access = asked.access().await;
    let page = asked.app.operations.timed(operation, read).await.map_err(error)?;
    asked.room.objects(context, page.posts.len())?;
    asked.room.bytes(page.posts.iter().map(|post| post.subject.len() + post.story.len()).sum())?;
    Ok(page.posts.into_iter().map(|post| Outbound { post, occurred: None }))
}

/// A text of an answer.
fn text(context: &Context<'_>, text: &str) -> Result<String, Error> {
    asked(context).room.text(text)?;
    Ok(text.to_owned())
}

/// A friendship as one of the two sees it.
pub(super) struct Friend {
    asker: u64,
    friendship: Friendship,
}

#[Object]
impl Friend {
    /// The friendship: the same for both.
    async fn id(&self) -> ID {
        self.friendship.friendship.into()
    }

    /// Whose list it is.
    async fn from(&self, context: &Context<'_>) -> Result<Participant, Error> {
        one(context, self.asker)
    }

    /// The other one.
    async fn to(&self, context: &Context<'_>) -> Result<Participant, Error> {
        one(context, self.friendship.participant)
    }
}

/// A post in an inbound feed.
pub(super) struct Inbound {
    reader: u64,
    post: Outbound,
}

#[Object]
impl Inbound {
    #[graphql(flatten)]
    async fn post(&self) -> &Outbound {
        &self.post
    }

    /// Whose feed it is in.
    async fn to(&self, context: &Context<'_>) -> Result<Participant, Error> {
        one(context, self.reader)
    }
}

/// A post in an outbound feed, and what one in an inbound feed has of it.
pub(super) struct Outbound {
    post: Arc<Post>,
    occurred: Option<String>,
}

#[Object]
impl Outbound {
    /// Who has posted it.
    async fn from(&self, context: &Context<'_>) -> Result<Participant, Error> {
        one(context, self.post.poster)
    }

    /// The day (UTC) on which the server took it; what was sent, in the answer to a new post.
    async fn occurred(&self, context: &Context<'_>) -> Result<String, Error> {
        match &self.occurred {
            Some(sent) => text(context, sent),
            None => Ok(day_of(self.post.id.at_us)),
        }
    }

    async fn subject(&self, context: &Context<'_>) -> Result<String, Error> {
        text(context, &self.post.subject)
    }

    async fn story(&self, context: &Context<'_>) -> Result<String, Error> {
        text(context, &self.post.story)
    }

    /// The `before` of what is older.
    async fn cursor(&self) -> String {
        cursor_of(self.post.id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_has_its_reason_and_a_code() {
        for (refusal, code) in [
            (Refusal::bad("a"), "BAD_USER_INPUT"),
            (Refusal::nobody(7), "NOT_FOUND"),
            (Refusal::new(StatusCode::CONFLICT, "b"), "CONFLICT"),
            (Refusal::from(tidemark_store::StoreError::Closed), "UNAVAILABLE"),
        ] {
            let reason = refusal.error.clone();
            let error = error(refusal);
            assert_eq!(error.message, reason);
            assert_eq!(error.extensions.and_then(|all| all.get("code").cloned()), Some(code.into()));
        }
    }
}
