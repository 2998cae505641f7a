//! What clients send: JSON, or a form where they say so.

use std::borrow::Cow;

use axum::http::{HeaderMap, header};
use serde::Deserialize;
use tidemark_store::people::NAME_CHARS_MAX;

use crate::refusal::Refusal;

/// How a body is written, and hence what it is answered with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// One object.
    Json,
    /// As the older versions had it: an array of one.
    UrlEncoded,
}

impl Form {
    pub(crate) fn of(headers: &HeaderMap) -> Self {
        let given =
            headers.get(header::CONTENT_TYPE).and_then(|given| given.to_str().ok()).unwrap_or_default();
        let media = given.split(';').next().unwrap_or_default().trim();
        match media.eq_ignore_ascii_case("application/x-www-form-urlencoded") {
            true => Form::UrlEncoded,
            false => Form::Json,
        }
    }

    /// Reads a body.
    pub(crate) fn read<'a, T: Deserialize<'a>>(self, body: &'a [u8]) -> Result<T, Refusal> {
        match self {
            Form::Json if body.is_empty() => Err(Refusal::bad("the body is empty; it must be a JSON object")),
            Form::Json => tidemark_service::read_json(body).map_err(|error| {
                Refusal::bad(format!("the body is not the JSON object that it must be: {error}"))
            }),
            Form::UrlEncoded => serde_urlencoded::from_bytes(body)
                .map_err(|error| Refusal::bad(format!("the body is not the form that it must be: {error}"))),
        }
    }
}

/// The body of a new participant.
#[derive(Debug, Deserialize)]
pub(crate) struct NewParticipant<'a> {
    #[serde(borrow)]
    pub(crate) name: Option<Cow<'a, str>>,
}

impl NewParticipant<'_> {
    pub(crate) fn name(&self) -> Result<&str, Refusal> {
        check_name(needed("name", self.name.as_deref())?)
    }
}

/// A name of a participant is as long as the published column at most.
pub(crate) fn check_name(name: &str) -> Result<&str, Refusal> {
    match name.chars().count() {
        count if count > NAME_CHARS_MAX => {
            Err(Refusal::bad(format!("name has {count} characters; at most {NAME_CHARS_MAX} are taken")))
        }
        _ => Ok(name),
    }
}

/// The body of a new friendship. Who asks is in the path; only those of 2014 have it in `from`.
#[derive(Debug, Deserialize)]
pub(crate) struct NewFriend<'a> {
    #[serde(borrow)]
    from: Option<Given<'a>>,
    #[serde(borrow)]
    to: Option<Link<'a>>,
}

/// What may be a participant, or anything else where it means nothing.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Given<'a> {
    Link(#[serde(borrow)] Link<'a>),
    Other(serde::de::IgnoredAny),
}

impl Given<'_> {
    /// The participant that it is.
    fn id(given: &Option<Self>) -> Result<u64, Refusal> {
        match given {
            None => Err(Refusal::bad("from is missing")),
            Some(Given::Link(link)) => link.id("from"),
            Some(Given::Other(serde::de::IgnoredAny)) => Err(not_a_participant("from")),
        }
    }
}

fn not_a_participant(name: &str) -> Refusal {
    Refusal::bad(format!("{name} is not a participant; write it as \"/participant/ID\""))
}

/// A participant as clients name it.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Link<'a> {
    Number(u64),
    /// `7.0` is a whole number, too.
    Real(f64),
    Text(#[serde(borrow)] Cow<'a, str>),
}

impl NewFriend<'_> {
    pub(crate) fn from(&self) -> Result<u64, Refusal> {
        Given::id(&self.from)
    }

    pub(crate) fn to(&self) -> Result<u64, Refusal> {
        self.to.as_ref().ok_or_else(|| Refusal::bad("to is missing"))?.id("to")
    }
}

impl Link<'_> {
    /// The participant in a field with this name.
    fn id(&self, name: &str) -> Result<u64, Refusal> {
        let wrong = || not_a_participant(name);
        match self {
            Link::Number(id) => positive(*id).ok_or_else(wrong),
            Link::Real(id) if id.fract() == 0.0 && *id > 0.0 => positive(*id as u64).ok_or_else(wrong),
            Link::Real(_) => Err(wrong()),
            Link::Text(text) if text.trim().is_empty() => Err(Refusal::bad(format!("{name} is missing"))),
            Link::Text(text) => link_id(text).ok_or_else(wrong),
        }
    }
}

/// The body of a search of 2014.
#[derive(Debug, Deserialize)]
pub(crate) struct Terms<'a> {
    #[serde(borrow)]
    pub(crate) terms: Option<Cow<'a, str>>,
}

/// The body of a new post.
#[derive(Debug, Deserialize)]
pub(crate) struct NewPost<'a> {
    #[serde(borrow)]
    from: Option<Given<'a>>,
    #[serde(borrow)]
    occurred: Option<Cow<'a, str>>,
    #[serde(borrow)]
    subject: Option<Cow<'a, str>>,
    #[serde(borrow)]
    story: Option<Cow<'a, str>>,
}

/// Longest date that is echoed, in bytes.
const OCCURRED_BYTES_MAX: usize = 64;

impl NewPost<'_> {
    /// Of texts, from somebody who is known.
    #[cfg(feature = "graphql")]
    pub(crate) fn of([occurred, subject, story]: [Option<String>; 3]) -> NewPost<'static> {
        let [occurred, subject, story] = [occurred, subject, story].map(|text| text.map(Cow::Owned));
        NewPost { from: None, occurred, subject, story }
    }

    /// Who posts, where the path does not say it.
    pub(crate) fn from(&self) -> Result<u64, Refusal> {
        Given::id(&self.from)
    }

    pub(crate) fn subject(&self) -> Result<&str, Refusal> {
        needed("subject", self.subject.as_deref())
    }

    pub(crate) fn story(&self) -> Result<&str, Refusal> {
        needed("story", self.story.as_deref())
    }

    /// What the client says when it was, which nothing but the answer shows.
    pub(crate) fn occurred(&self) -> Result<Option<&str>, Refusal> {
        match self.occurred.as_deref().filter(|occurred| !occurred.trim().is_empty()) {
            Some(long) if long.len() > OCCURRED_BYTES_MAX => Err(Refusal::bad("occurred is not a date")),
            occurred => Ok(occurred),
        }
    }
}

fn needed<'a>(name: &str, value: Option<&'a str>) -> Result<&'a str, Refusal> {
    match value {
        Some(value) if !value.trim().is_empty() => Ok(value),
        _ => Err(Refusal::bad(format!("{name} is missing"))),
    }
}

fn positive(id: u64) -> Option<u64> {
    (1..=i64::MAX as u64).contains(&id).then_some(id)
}

/// The positive whole number of 64 bits that these digits are.
fn id_of(text: &str) -> Option<u64> {
    let is_digits = !text.is_empty() && text.bytes().all(|digit| digit.is_ascii_digit());
    is_digits.then(|| text.parse().ok().and_then(positive)).flatten()
}

/// The participant that a link or a number names.
pub(crate) fn link_id(text: &str) -> Option<u64> {
    let text = text.trim();
    id_of(text.strip_prefix("/participant/").unwrap_or(text))
}

/// The participant in a path.
pub(crate) fn path_id(text: &str) -> Result<u64, Refusal> {
    id_of(text).ok_or_else(|| Refusal::bad("the id of a participant is a whole number from 1 on"))
}

/// Most things that a list has at once.
pub(crate) const LIST_MAX: usize = 1_000;

/// A query, each name with its last value.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct ListQuery {
    pub(crate) limit: Option<String>,
    pub(crate) cursor: Option<String>,
    pub(crate) keywords: Option<String>,
    pub(crate) name: Option<String>,
}

impl ListQuery {
    pub(crate) fn read(query: Option<&str>) -> Result<Self, Refusal> {
        let mut read = ListQuery::default();
        let pairs = serde_urlencoded::from_str::<Vec<(String, String)>>(query.unwrap_or_default());
        for (name, value) in pairs.map_err(|_| Refusal::bad("the query is not one"))? {
            let field = match name.as_str() {
                "limit" => &mut read.limit,
                "cursor" => &mut read.cursor,
                "keywords" => &mut read.keywords,
                "name" => &mut read.name,
                _ => continue,
            };
            *field = Some(value);
        }
        Ok(read)
    }

    /// How many of a list are asked for.
    pub(crate) fn limit(&self, max: usize) -> Result<usize, Refusal> {
        let Some(limit) = self.limit.as_deref() else { return Ok(max) };
        let limit = id_of(limit).and_then(|limit| usize::try_from(limit).ok());
        limit
            .filter(|limit| *limit <= max)
            .ok_or_else(|| Refusal::bad(format!("limit is not a whole number from 1 to {max}")))
    }

    /// What to begin behind, as `read` has it.
    pub(crate) fn cursor<T>(&self, read: impl FnOnce(&str) -> Option<T>) -> Result<Option<T>, Refusal> {
        let Some(cursor) = self.cursor.as_deref().filter(|cursor| !cursor.is_empty()) else {
            return Ok(None);
        };
        let wrong = "the cursor is not valid; send the header next-cursor of the page before as it was";
        read(cursor).map(Some).ok_or_else(|| Refusal::bad(wrong))
    }
}

/// A friendship as a cursor.
pub(crate) fn friendship_of(cursor: &str) -> Option<u64> {
    id_of(cursor)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_participant_is_named_by_link_or_number() {
        let to = |body: &str| Form::Json.read::<NewFriend>(body.as_bytes()).and_then(|friend| friend.to());
        for body in [
            r#"{"to":"/participant/7"}"#,
            r#"{"to":"7"}"#,
            r#"{"to":7,"from":"/participant/x"}"#,
            r#"{"to":7.0}"#,
        ] {
            assert_eq!(to(body), Ok(7), "{body}");
        }
        for body in [
            r#"{"to":"/participant/x"}"#,
            r#"{"to":0}"#,
            r#"{"to":-1}"#,
            r#"{"to":7.5}"#,
            r#"{"to":1e300}"#,
            r#"{"to":"/participant/"}"#,
            r#"{"to":"99999999999999999999"}"#,
            r#"{"to":" "}"#,
            r#"{"to":null}"#,
            r#"{"to":[7]}"#,
            r#"["7"]"#,
            "{}",
            "{",
            "",
        ] {
            assert_eq!(to(body).unwrap_err().status, 400, "{body}");
        }
        let form: NewFriend = Form::UrlEncoded.read(b"from=1&to=%2Fparticipant%2F7").unwrap();
        assert_eq!(form.to(), Ok(7));
    }

    #[test]
    fn what_is_missing_is_named() {
        let post: NewPost = Form::Json.read(br#"{"subject":" ","story":"s\u0041"}"#).unwrap();
        assert_eq!(post.subject().unwrap_err().error, "subject is missing");
        assert_eq!(post.story(), Ok("sA"));
        let form: NewPost = Form::UrlEncoded.read(b"subject=a+b&story=%C3%BC").unwrap();
        assert_eq!((form.subject(), form.story(), form.occurred()), (Ok("a b"), Ok("\u{fc}"), Ok(None)));
        let long = "x".repeat(51);
        let body = format!(r#"{{"name":"{long}"}}"#);
        let participant: NewParticipant = Form::Json.read(body.as_bytes()).unwrap();
        assert!(participant.name().unwrap_err().error.contains("51 characters"));
    }

    #[test]
    fn a_limit_is_within_its_bound() {
        let limit = |query: &str| ListQuery::read(Some(query)).and_then(|query| query.limit(1000));
        assert_eq!((limit(""), limit("limit=5"), limit("limit=1000")), (Ok(1000), Ok(5), Ok(1000)));
        for wrong in ["limit=", "limit=0", "limit=1001", "limit=x", "limit=-1", "limit=%2B1"] {
            assert!(limit(wrong).is_err(), "{wrong}");
        }
    }

    proptest! {
        #[test]
        fn any_body_is_one_or_says_why_not(body in prop::collection::vec(any::<u8>(), 0..60)) {
            for form in [Form::Json, Form::UrlEncoded] {
                let _ = form.read::<NewPost>(&body).and_then(|post| post.story().map(str::len));
                let _ = form.read::<NewFriend>(&body).and_then(|friend| friend.to());
                let _ = form.read::<NewParticipant>(&body).and_then(|new| new.name().map(str::len));
            }
        }
    }
}
