//! What a post, a friendship and a search are: the stores in the order in which they are asked.

use std::sync::Arc;
use std::time::Instant;

use axum::http::StatusCode;
use tidemark_store::feeds::{
    Delivery, FeedPage, FeedQuery, Feeds, Post, PostId, STORY_BYTES_MAX, SUBJECT_BYTES_MAX,
};
use tidemark_store::people::{Befriended, FRIENDS_MAX, Friend, Participant};
use tidemark_store::search::Search;

use crate::delivery::{Deliveries, Room};
use crate::ids::{PostIds, now_us};
use crate::live::Live;
use crate::operations::{Operation, Operations};
use crate::people::CachedPeople;
use crate::refusal::Refusal;

/// When a post is in the inbound feeds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FanOut {
    /// Before it is answered.
    Sync,
    /// Soon after.
    Async,
}

/// The news feed behind its routes.
pub(crate) struct App {
    pub(crate) people: CachedPeople,
    pub(crate) feeds: Arc<dyn Feeds>,
    pub(crate) search: Arc<dyn Search>,
    pub(crate) fan_out: FanOut,
    pub(crate) deliveries: Arc<Deliveries>,
    pub(crate) live: Arc<Live>,
    pub(crate) ids: PostIds,
    pub(crate) operations: Arc<Operations>,
    #[cfg(feature = "graphql")]
    pub(crate) graphql: Arc<crate::graphql::Memory>,
}

impl App {
    pub(crate) async fn participant(&self, id: u64) -> Result<Participant, Refusal> {
        self.people.participant(id).await?.ok_or_else(|| Refusal::nobody(id))
    }

    /// The friends of a participant, the oldest friendship first.
    pub(crate) async fn friends(&self, id: u64) -> Result<Vec<Friend>, Refusal> {
        let (_, friends) = self.people.with_friends(id).await?.ok_or_else(|| Refusal::nobody(id))?;
        Ok(friends)
    }

    /// Makes two participants friends; the number of their friendship.
    pub(crate) async fn befriend(&self, from: u64, to: u64) -> Result<u64, Refusal> {
        if from == to {
            return Err(Refusal::new(StatusCode::CONFLICT, "nobody can be their own friend"));
        }
        match self.people.befriend(from, to).await? {
            Befriended::Friends(id) => Ok(id),
            Befriended::NoSuchParticipant(id) => Err(Refusal::nobody(id)),
            Befriended::TooManyFriends(id) => Err(Refusal::new(
                StatusCode::CONFLICT,
                format!("participant {id} has {FRIENDS_MAX} friends, the most that there can be"),
            )),
        }
    }

    /// Whose inbound feeds a post goes into.
    async fn readers(&self, poster: u64) -> Result<Arc<[u64]>, Refusal> {
        let friends = self.friends(poster).await?;
        Ok(friends.iter().map(|friend| friend.participant).collect())
    }

    /// Takes a post: it is durable and can be found, and delivered or noted as to be.
    pub(crate) async fn post(
        self: &Arc<Self>,
        poster: u64,
        subject: &str,
        story: &str,
    ) -> Result<Arc<Post>, Refusal> {
        let within = |name, text: &str, max| match text.len() <= max {
            true => Ok(()),
            false => Err(Refusal::bad(format!("{name} has {} bytes; at most {max} are taken", text.len()))),
        };
        within("subject", subject, SUBJECT_BYTES_MAX)?;
        within("story", story, STORY_BYTES_MAX)?;
        let mut readers = self.readers(poster).await?;
        let room = match self.fan_out {
            FanOut::Sync => None,
            FanOut::Async => match self.deliveries.room_now(readers.len())? {
                Some(room) => Some(room),
                None => {
                    // who waits holds no list
                    let count = std::mem::take(&mut readers).len();
                    let room = self.deliveries.room(count).await?;
                    readers = self.readers(poster).await?;
                    Some(room)
                }
            },
        };
        let (subject, story) = (subject.into(), story.into());
        let post = Arc::new(Post { id: self.ids.next(), poster, subject, story });
        let delivery = Delivery { post: post.clone(), readers };
        // a client that goes away leaves nothing half done
        let app = self.clone();
        let done = tokio::spawn(async move { app.store(delivery, room).await }).await;
        done.unwrap_or_else(|_| Err(Refusal::unavailable("the post was given up; the log has the details")))?;
        Ok(post)
    }

    async fn store(&self, delivery: Delivery, room: Option<Room>) -> Result<(), Refusal> {
        let post = delivery.post.clone();
        match room {
            None => {
                let began = Instant::now();
                let stored = self.feeds.post(delivery.clone()).await;
                let (took, readers) = (began.elapsed(), delivery.readers.len());
                if let Err(error) = stored {
                    self.operations.fail(Operation::OutboundStore, 1, took, &error);
                    self.operations.fail(Operation::InboundStore, readers, took, &error);
                    return Err(error.into());
                }
                self.operations.enter(Operation::OutboundStore, 1, took);
                self.operations.enter(Operation::InboundStore, readers, took);
                self.live.tell(&delivery);
            }
            Some(room) => {
                let stored = self.feeds.post_undelivered(post.clone());
                self.operations.timed(Operation::OutboundStore, stored).await?;
                self.deliveries.take(delivery, room);
            }
        }
        // behind the store: what cannot be stored is not found
        Ok(self.search.add(&post).await?)
    }

    pub(crate) async fn outbound(
        &self,
        participant: u64,
        before: Option<PostId>,
        limit: usize,
    ) -> Result<FeedPage, Refusal> {
        self.participant(participant).await?;
        let query = FeedQuery { participant, before, limit };
        Ok(self.operations.timed(Operation::OutboundLoad, self.feeds.outbound(query)).await?)
    }

    pub(crate) async fn inbound(
        &self,
        participant: u64,
        before: Option<PostId>,
        limit: usize,
    ) -> Result<FeedPage, Refusal> {
        self.participant(participant).await?;
        let query = FeedQuery { participant, before, limit };
        Ok(self.operations.timed(Operation::InboundLoad, self.feeds.inbound(query, now_us())).await?)
    }

    /// Who has posted a story with any of these words.
    pub(crate) async fn search(&self, keywords: &str, limit: usize) -> Result<Vec<u64>, Refusal> {
        Ok(self.search.posters(keywords, limit).await?)
    }
}
