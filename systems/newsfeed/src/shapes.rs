//! What answers look like.

use axum::http::StatusCode;
use bytes::Bytes;
use serde::{Serialize, Serializer};
use tidemark_service::Answer;
use tidemark_store::feeds::Post;
use tidemark_store::people::{Friend, Participant};

use crate::ids::day_of;
use crate::input::Form;

/// The link of a participant.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Link(pub(crate) u64);

impl Serialize for Link {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&format_args!("/participant/{}", self.0))
    }
}

/// A participant.
#[derive(Debug, Serialize)]
pub(crate) struct ParticipantShape<'a> {
    id: u64,
    name: &'a str,
    link: Link,
}

impl<'a> From<&'a Participant> for ParticipantShape<'a> {
    fn from(Participant { id, name }: &'a Participant) -> Self {
        ParticipantShape { id: *id, name, link: Link(*id) }
    }
}

/// A friendship as one of the two sees it.
#[derive(Debug, Serialize)]
pub(crate) struct FriendShape {
    id: u64,
    from: Link,
    to: Link,
}

impl FriendShape {
    pub(crate) fn new(asker: u64, Friend { friendship, participant }: Friend) -> Self {
        FriendShape { id: friendship, from: Link(asker), to: Link(participant) }
    }
}

/// The same with both participants in it, as the older versions answer a new one.
#[derive(Debug, Serialize)]
pub(crate) struct FriendObjects<'a> {
    pub(crate) id: u64,
    pub(crate) from: ParticipantShape<'a>,
    pub(crate) to: ParticipantShape<'a>,
}

/// A post in an outbound feed, or in an inbound one, where it has a reader.
#[derive(Debug, Serialize)]
pub(crate) struct PostShape<'a> {
    from: Link,
    #[serde(skip_serializing_if = "Option::is_none")]
    to: Option<Link>,
    occurred: &'a str,
    subject: &'a str,
    story: &'a str,
}

impl<'a> PostShape<'a> {
    /// Of an outbound feed.
    pub(crate) fn outbound(post: &'a Post, occurred: &'a str) -> Self {
        PostShape { from: Link(post.poster), to: None, occurred, subject: &post.subject, story: &post.story }
    }

    /// Of the inbound feed of a reader.
    pub(crate) fn inbound(post: &'a Post, reader: u64, occurred: &'a str) -> Self {
        PostShape { to: Some(Link(reader)), ..Self::outbound(post, occurred) }
    }
}

/// Several posts; `reader` is whose inbound feed it is, if it is one.
pub(crate) fn posts<'a>(posts: impl IntoIterator<Item = &'a Post>, reader: Option<u64>) -> Bytes {
    let mut out = vec![b'['];
    // neighbours are mostly of one day
    let (mut day_us, mut day) = (u64::MAX, String::new());
    for post in posts {
        if out.len() > 1 {
            out.push(b',');
        }
        let at = post.id.at_us / DAY_US;
        if at != day_us {
            (day_us, day) = (at, day_of(post.id.at_us));
        }
        write(&PostShape { to: reader.map(Link), ..PostShape::outbound(post, &day) }, &mut out);
    }
    out.push(b']');
    out.into()
}

const DAY_US: u64 = 24 * 3600 * 1_000_000;

fn write(value: &impl Serialize, out: &mut Vec<u8>) {
    // numbers and texts always serialise, and a buffer always takes them
    let _ = serde_json::to_writer(out, value);
}

/// JSON of a value.
pub(crate) fn json_of(value: &impl Serialize) -> Bytes {
    let mut out = Vec::with_capacity(128);
    write(value, &mut out);
    out.into()
}

/// 200 with JSON.
pub(crate) fn ok(json: Bytes) -> Answer {
    Answer::new(StatusCode::OK, "application/json", json)
}

/// 200 with what was just made, in the form in which it was asked for.
pub(crate) fn made(form: Form, value: &impl Serialize) -> Answer {
    match form {
        Form::Json => ok(json_of(value)),
        Form::UrlEncoded => ok(json_of(&[value])),
    }
}
