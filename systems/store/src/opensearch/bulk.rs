//! Stories on their way into the index: those that gather while a request is under way go with the next one.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use hyper::{Method, StatusCode};
use serde::Deserialize;
use serde_json::json;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot};

use super::http::said;
use super::{Server, id_text};
use crate::error::StoreError;
use crate::feeds::Post;

/// Stories of one request: at most some 45 MB of JSON, where a server takes 100 MB.
const STORIES_MAX: usize = 500;
/// Bytes of JSON that wait.
const BYTES_MAX: usize = 64 << 20;
/// What is read of an answer.
const TARGET: &str = "/_bulk?filter_path=errors,items.*.status,items.*.error.reason";

/// A story that waits for its answer.
struct Story {
    lines: Bytes,
    answer: oneshot::Sender<Result<(), StoreError>>,
    _bytes: OwnedSemaphorePermit,
}

/// Takes stories, in bounds.
pub(super) struct Bulk {
    sender: mpsc::Sender<Story>,
    bytes: Arc<Semaphore>,
}

/// Carries them out.
pub(super) struct Sender {
    receiver: mpsc::Receiver<Story>,
}

#[derive(Deserialize)]
struct Outcome {
    #[serde(default)]
    errors: bool,
    #[serde(default)]
    items: Vec<Item>,
}

#[derive(Deserialize)]
struct Item {
    index: ItemOutcome,
}

#[derive(Deserialize)]
struct ItemOutcome {
    status: u16,
    error: Option<Reason>,
}

#[derive(Deserialize)]
struct Reason {
    #[serde(default)]
    reason: String,
}

impl Bulk {
    pub(super) fn new(waiting_max: usize) -> (Bulk, Sender) {
        let (sender, receiver) = mpsc::channel(waiting_max);
        (Bulk { sender, bytes: Arc::new(Semaphore::new(BYTES_MAX)) }, Sender { receiver })
    }

    /// Takes a story; its answer comes later.
    pub(super) fn take(
        &self,
        index: &str,
        post: &Post,
    ) -> Result<oneshot::Receiver<Result<(), StoreError>>, StoreError> {
        let busy = StoreError::Busy { what: "as many stories wait to be indexed as may" };
        let lines = lines(index, post);
        let bytes = u32::try_from(lines.len()).unwrap_or(u32::MAX);
        let Ok(bytes) = self.bytes.clone().try_acquire_many_owned(bytes) else { return Err(busy) };
        let (answer, answered) = oneshot::channel();
        match self.sender.try_send(Story { lines, answer, _bytes: bytes }) {
            Ok(()) => Ok(answered),
            Err(mpsc::error::TrySendError::Full(_)) => Err(busy),
            Err(mpsc::error::TrySendError::Closed(_)) => Err(StoreError::Closed),
        }
    }

    /// Stories that wait to be sent.
    pub(super) fn waiting(&self) -> usize {
        self.sender.max_capacity() - self.sender.capacity()
    }
}

/// A story as a request has it. Its key is the post's, so that the same again is the same document.
fn lines(index: &str, post: &Post) -> Bytes {
    let id = id_text(post.id);
    let what = json!({"index": {"_index": index, "_id": id}});
    let document = json!({"id": id, "sender": post.poster, "story": &*post.story});
    format!("{what}\n{document}\n").into()
}

impl Sender {
    /// Sends what is taken, until nobody takes any more.
    pub(super) async fn work(mut self, server: Arc<Server>) {
        let mut stories = Vec::new();
        while self.receiver.recv_many(&mut stories, STORIES_MAX).await > 0 {
            // whoever does not wait any more need not have it
            stories.retain(|story| !story.answer.is_closed());
            let body: Vec<u8> = stories.iter().flat_map(|story| story.lines.iter().copied()).collect();
            let outcomes = match stories.is_empty() {
                true => continue,
                false => outcomes(&server, body.into(), stories.len()).await,
            };
            for (story, outcome) in stories.drain(..).zip(outcomes) {
                // nobody may wait for it any more
                let _ = story.answer.send(outcome);
            }
        }
    }
}

/// What became of each story of a request.
async fn outcomes(server: &Server, body: Bytes, count: usize) -> Vec<Result<(), StoreError>> {
    let (status, body) = match server.ask(Method::POST, TARGET, "application/x-ndjson", body).await {
        Ok(answered) => answered,
        Err(error) => return vec![Err(error); count],
    };
    read(status, &body, count)
}

fn read(status: StatusCode, body: &[u8], count: usize) -> Vec<Result<(), StoreError>> {
    let no_answer = |reason: String| StoreError::NoAnswer { reason: reason.into() };
    if status == StatusCode::TOO_MANY_REQUESTS {
        return vec![
            Err(StoreError::Busy { what: "OpenSearch has as many stories to index as it takes" });
            count
        ];
    }
    let outcome = match serde_json::from_slice::<Outcome>(body) {
        Ok(outcome) if status.is_success() && outcome.items.len() == count => outcome,
        _ => return vec![Err(no_answer(said(status, body))); count],
    };
    let of_item = |Item { index: ItemOutcome { status, error } }: Item| match status {
        200..=299 if !outcome.errors || error.is_none() => Ok(()),
        429 => Err(StoreError::Busy { what: "OpenSearch has as many stories to index as it takes" }),
        _ => {
            let reason = error.map(|error| error.reason).unwrap_or_default();
            Err(no_answer(format!("the story was answered {status}: {reason}")))
        }
    };
    outcome.items.into_iter().map(of_item).collect()
}

/// How long a story waits at most, where a request may take so long: for the one under way, and its own.
pub(super) fn longest(timeout: Duration) -> Duration {
    timeout * 2
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::feeds::PostId;

    fn post(story: &str) -> Post {
        let id = PostId { at_us: 255, server: 16 };
        Post { id, poster: 7, subject: "".into(), story: story.into() }
    }

    #[test]
    fn a_story_is_two_lines_whatever_it_says() {
        let lines = lines("feed", &post("rain\n\"and\" {snow}"));
        let lines: Vec<serde_json::Value> = std::str::from_utf8(&lines)
            .unwrap()
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        let id = "00000000000000ff-0000000000000010";
        let expected = [
            json!({"index": {"_index": "feed", "_id": id}}),
            json!({"id": id, "sender": 7, "story": "rain\n\"and\" {snow}"}),
        ];
        assert_eq!(lines, expected);
    }

    #[test]
    fn each_story_has_the_outcome_of_its_item() {
        let body = br#"{"errors":true,"items":[{"index":{"status":201}},{"index":{"status":429}},
            {"index":{"status":400,"error":{"reason":"no such field"}}}]}"#;
        let outcomes = read(StatusCode::OK, body, 3);
        assert!(outcomes[0].is_ok() && matches!(outcomes[1], Err(StoreError::Busy { .. })), "{outcomes:?}");
        assert!(outcomes[2].as_ref().unwrap_err().to_string().contains("no such field"), "{outcomes:?}");
    }

    #[test]
    fn an_answer_that_says_nothing_of_a_story_is_no_acknowledgement() {
        for (status, body) in [
            (200, &br#"{"errors":false,"items":[{"index":{"status":201}}]}"#[..]),
            (200, b"{}"),
            (200, b"no JSON"),
            (503, br#"{"errors":false,"items":[{"index":{"status":201}},{"index":{"status":201}}]}"#),
        ] {
            let outcomes = read(StatusCode::from_u16(status).unwrap(), body, 2);
            assert_eq!(outcomes.len(), 2);
            assert!(outcomes.iter().all(Result::is_err), "{status} {outcomes:?}");
        }
    }

    #[test]
    fn what_waits_has_a_bound() {
        let (bulk, mut sender) = Bulk::new(2);
        let _waits = [(); 2].map(|()| bulk.take("feed", &post("rain")).unwrap());
        assert!(matches!(bulk.take("feed", &post("rain")), Err(StoreError::Busy { .. })));
        assert_eq!(bulk.waiting(), 2);
        drop(sender.receiver.try_recv());
        assert!(bulk.take("feed", &post("rain")).is_ok());
        assert_eq!(bulk.bytes.available_permits(), BYTES_MAX - 2 * lines("feed", &post("rain")).len());
    }
}
