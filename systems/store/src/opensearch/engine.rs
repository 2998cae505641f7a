//! What OpenSearch and Solr are asked, and how each answers.

use bytes::Bytes;
use hyper::{Method, StatusCode};
use serde::Deserialize;
use serde_json::json;

use super::http::{JSON, said};
use super::id_text;
use crate::error::StoreError;
use crate::feeds::Post;

/// How long stories may take in OpenSearch until they can be found.
const REFRESH: &str = "1s";

/// What the index is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Engine {
    /// OpenSearch, or Elasticsearch 7 or later. It shows what is new within a second.
    #[default]
    OpenSearch,
    /// Solr. Each request commits softly and waits for the new searcher, as published: what is acknowledged is found.
    Solr,
}

/// A request: method, target, type of the body, body.
pub(super) type Question = (Method, String, &'static str, Bytes);

/// What became of each story of a request.
pub(super) type Outcomes = Vec<Result<(), StoreError>>;

#[derive(Deserialize)]
struct Bulk {
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

#[derive(Deserialize)]
struct Found {
    timed_out: bool,
    #[serde(default)]
    hits: Hits,
}

#[derive(Deserialize, Default)]
struct Hits {
    #[serde(default)]
    hits: Vec<Hit>,
}

#[derive(Deserialize)]
struct Hit {
    fields: Fields,
}

#[derive(Deserialize)]
struct Fields {
    sender: [u64; 1],
}

/// What Solr says to an update.
#[derive(Deserialize)]
struct Updated {
    #[serde(rename = "responseHeader")]
    head: UpdatedHead,
}

#[derive(Deserialize)]
struct UpdatedHead {
    status: i64,
}

/// What Solr says to a search.
#[derive(Deserialize)]
struct Selected {
    response: Response,
}

#[derive(Deserialize)]
struct Response {
    docs: Vec<Document>,
}

#[derive(Deserialize)]
struct Document {
    sender: u64,
}

impl Engine {
    /// Its name, for people.
    pub fn title(self) -> &'static str {
        match self {
            Engine::OpenSearch => "OpenSearch",
            Engine::Solr => "Solr",
        }
    }

    /// The port where none is named.
    pub(super) fn port(self) -> u16 {
        match self {
            Engine::OpenSearch => 9200,
            Engine::Solr => 8983,
        }
    }

    /// Path of the index, or core.
    pub(super) fn path(self, index: &str) -> String {
        match self {
            Engine::OpenSearch => format!("/{index}"),
            Engine::Solr => format!("/solr/{index}"),
        }
    }

    /// Asks whether the index is there.
    pub(super) fn look(self, index: &str) -> (Method, String) {
        match self {
            Engine::OpenSearch => (Method::HEAD, self.path(index)),
            Engine::Solr => (Method::GET, format!("{}/select?q=*:*&rows=0", self.path(index))),
        }
    }

    /// Makes the index; none where whoever runs the server has to.
    pub(super) fn make(self) -> Option<Bytes> {
        let index = json!({
            "settings": {
                "index": {"number_of_shards": 1, "auto_expand_replicas": "0-1", "refresh_interval": REFRESH}
            },
            "mappings": {"properties": {
                "id": {"type": "keyword"},
                "sender": {"type": "long"},
                "story": {"type": "text", "analyzer": "standard"},
            }},
        });
        (self == Engine::OpenSearch).then(|| index.to_string().into())
    }

    /// A story as a request has it. Its key is the post's, so that the same again is the same document.
    pub(super) fn story(self, index: &str, post: &Post) -> Bytes {
        let id = id_text(post.id);
        let document = json!({"id": id, "sender": post.poster, "story": &*post.story});
        match self {
            Engine::OpenSearch => {
                let what = json!({"index": {"_index": index, "_id": id}});
                format!("{what}\n{document}\n").into()
            }
            Engine::Solr => document.to_string().into(),
        }
    }

    /// A request that adds stories.
    pub(super) fn add<'s>(self, index: &str, stories: impl Iterator<Item = &'s Bytes>) -> Question {
        match self {
            Engine::OpenSearch => {
                let target = "/_bulk?filter_path=errors,items.*.status,items.*.error.reason".to_owned();
                let body: Vec<u8> = stories.flatten().copied().collect();
                (Method::POST, target, "application/x-ndjson", body.into())
            }
            Engine::Solr => {
                let target = format!("{}/update?softCommit=true&waitSearcher=true", self.path(index));
                let stories: Vec<&[u8]> = stories.map(|story| &**story).collect();
                let body = [b"[", &*stories.join(&b','), b"]"].concat();
                (Method::POST, target, JSON, body.into())
            }
        }
    }

    /// What became of each of so many stories.
    pub(super) fn added(self, status: StatusCode, body: &[u8], count: usize) -> Outcomes {
        let no_answer = |reason: String| StoreError::NoAnswer { reason: reason.into() };
        let busy = || StoreError::Busy { what: "the index has as many stories to take as it can" };
        if status == StatusCode::TOO_MANY_REQUESTS {
            return (0..count).map(|_| Err(busy())).collect();
        }
        let refused = || (0..count).map(|_| Err(no_answer(said(status, body)))).collect();
        if self == Engine::Solr {
            // all of them or none
            let updated = serde_json::from_slice::<Updated>(body);
            return match updated {
                Ok(Updated { head: UpdatedHead { status: 0 } }) if status.is_success() => vec![Ok(()); count],
                _ => refused(),
            };
        }
        let outcome = match serde_json::from_slice::<Bulk>(body) {
            Ok(outcome) if status.is_success() && outcome.items.len() == count => outcome,
            _ => return refused(),
        };
        let of_item = |Item { index: ItemOutcome { status, error } }: Item| match status {
            200..=299 if !outcome.errors || error.is_none() => Ok(()),
            429 => Err(busy()),
            _ => {
                let reason = error.map(|error| error.reason).unwrap_or_default();
                Err(no_answer(format!("the story was answered {status}: {reason}")))
            }
        };
        outcome.items.into_iter().map(of_item).collect()
    }

    /// A request for who has posted a story with any of the words: the newest story of each poster.
    pub(super) fn find(self, index: &str, words: &str, limit: usize) -> Question {
        let (target, body) = match self {
            Engine::OpenSearch => (
                format!("{}/_search?filter_path=timed_out,hits.hits.fields", self.path(index)),
                json!({
                    "size": limit,
                    "query": {"match": {"story": {"query": words, "operator": "or"}}},
                    "collapse": {"field": "sender"},
                    "sort": [{"id": "desc"}],
                    "_source": false,
                    "track_total_hits": false,
                }),
            ),
            Engine::Solr => (
                format!("{}/select?omitHeader=true", self.path(index)),
                json!({
                    // a parser that takes every letter but a blank as it is, but for a star alone
                    "query": {"simple": {"query": if words.trim() == "*" { "" } else { words }, "qf": "story", "q.operators": "WHITESPACE", "q.op": "OR"}},
                    "sort": "id desc",
                    "fields": "sender",
                    "limit": limit,
                    // its collapsing takes no fields of 64 bits
                    "params": {"group": true, "group.field": "sender", "group.main": true},
                }),
            ),
        };
        (Method::POST, target, JSON, body.to_string().into())
    }

    /// Who is named in the answer to that.
    pub(super) fn posters(self, status: StatusCode, body: &[u8]) -> Result<Vec<u64>, StoreError> {
        let found = match self {
            Engine::OpenSearch => serde_json::from_slice::<Found>(body)
                .ok()
                .filter(|found| !found.timed_out)
                .map(|found| found.hits.hits.into_iter().map(|hit| hit.fields.sender[0]).collect()),
            Engine::Solr => serde_json::from_slice::<Selected>(body)
                .ok()
                .map(|found| found.response.docs.into_iter().map(|document| document.sender).collect()),
        };
        let no_answer = || StoreError::NoAnswer { reason: said(status, body).into() };
        found.filter(|_| status.is_success()).ok_or_else(no_answer)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::feeds::PostId;

    fn post(story: &str) -> Post {
        let id = PostId { at_us: 255, server: 16 };
        Post { id, poster: 7, subject: "".into(), story: story.into() }
    }

    fn json_of(bytes: &[u8]) -> Value {
        serde_json::from_slice(bytes).unwrap()
    }

    #[test]
    fn a_story_is_added_whatever_it_says() {
        let document = json!({
            "id": "00000000000000ff-0000000000000010", "sender": 7, "story": "rain\n\"and\" {snow}"
        });
        let story = |engine: Engine| engine.story("feed", &post("rain\n\"and\" {snow}"));
        let lines = story(Engine::OpenSearch);
        let lines: Vec<Value> =
            std::str::from_utf8(&lines).unwrap().lines().map(|line| json_of(line.as_bytes())).collect();
        let index = json!({"index": {"_index": "feed", "_id": document["id"]}});
        assert_eq!(lines, [index, document.clone()]);
        let (_, target, _, body) =
            Engine::Solr.add("outbound", [&story(Engine::Solr), &story(Engine::Solr)].into_iter());
        assert_eq!(json_of(&body), json!([document, document]));
        assert_eq!(target, "/solr/outbound/update?softCommit=true&waitSearcher=true");
    }

    #[test]
    fn each_story_has_the_outcome_of_its_item() {
        let body = br#"{"errors":true,"items":[{"index":{"status":201}},{"index":{"status":429}},
            {"index":{"status":400,"error":{"reason":"no such field"}}}]}"#;
        let outcomes = Engine::OpenSearch.added(StatusCode::OK, body, 3);
        assert!(outcomes[0].is_ok() && matches!(outcomes[1], Err(StoreError::Busy { .. })), "{outcomes:?}");
        assert!(outcomes[2].as_ref().unwrap_err().to_string().contains("no such field"), "{outcomes:?}");
        let of_solr = |status: u16, body: &[u8]| {
            let outcomes = Engine::Solr.added(StatusCode::from_u16(status).unwrap(), body, 2);
            assert_eq!(outcomes.len(), 2);
            outcomes.iter().filter(|outcome| outcome.is_ok()).count()
        };
        assert_eq!(of_solr(200, br#"{"responseHeader":{"status":0,"QTime":3}}"#), 2);
        assert_eq!(of_solr(400, br#"{"responseHeader":{"status":400},"error":{"msg":"unknown field"}}"#), 0);
        assert_eq!(of_solr(503, br#"{"responseHeader":{"status":0}}"#) + of_solr(200, b"<html>"), 0);
    }

    #[test]
    fn an_answer_that_says_nothing_of_a_story_is_no_acknowledgement() {
        for (status, body) in [
            (200, &br#"{"errors":false,"items":[{"index":{"status":201}}]}"#[..]),
            (200, b"{}"),
            (200, b"no JSON"),
            (503, br#"{"errors":false,"items":[{"index":{"status":201}},{"index":{"status":201}}]}"#),
        ] {
            let outcomes = Engine::OpenSearch.added(StatusCode::from_u16(status).unwrap(), body, 2);
            assert_eq!(outcomes.len(), 2);
            assert!(outcomes.iter().all(Result::is_err), "{status} {outcomes:?}");
        }
    }

    #[test]
    fn the_posters_are_read_and_what_is_none_is_an_error() {
        let of = |engine: Engine, body: &str| engine.posters(StatusCode::OK, body.as_bytes());
        let two =
            r#"{"timed_out":false,"hits":{"hits":[{"fields":{"sender":[7]}},{"fields":{"sender":[1]}}]}}"#;
        assert_eq!(of(Engine::OpenSearch, two).unwrap(), [7, 1]);
        assert!(of(Engine::OpenSearch, r#"{"timed_out":false}"#).unwrap().is_empty());
        for wrong in [r#"{"timed_out":true}"#, "{}", ""] {
            assert!(of(Engine::OpenSearch, wrong).is_err() && of(Engine::Solr, wrong).is_err(), "{wrong}");
        }
        assert!(Engine::OpenSearch.posters(StatusCode::NOT_FOUND, two.as_bytes()).is_err());
        let of_solr = r#"{"response":{"numFound":2,"start":0,"docs":[{"sender":7},{"sender":1}]}}"#;
        assert_eq!(of(Engine::Solr, of_solr).unwrap(), [7, 1]);
        assert!(Engine::Solr.posters(StatusCode::BAD_REQUEST, of_solr.as_bytes()).is_err());
    }
}
