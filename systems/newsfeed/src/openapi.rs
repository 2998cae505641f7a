//! The news feed as an OpenAPI 3.1 document, written by hand as the handlers are; tests hold it against the routes, and
//! others' tools (`tests/conformance`) against the answers.

use serde_json::{Map, Value, json};
use tidemark_store::feeds::{STORY_BYTES_MAX, SUBJECT_BYTES_MAX};
use tidemark_store::people::NAME_CHARS_MAX;
use tidemark_store::search::POSTERS_MAX;

use crate::input::LIST_MAX;

/// The document.
pub(crate) fn document() -> Value {
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "newsfeed",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "Participants, friends, posts and feeds. Bodies may be forms, too: then what was made is \
                answered in an array of one, and a friendship has both participants in it. GraphQL is at `POST /`, where \
                the program has it, and describes itself. The paths of 2014 are there for loads of then, and in \
                docs/newsfeed.md of the project. Beside the answers listed, \
                the server itself refuses what is no request, or too large or too slow (400, 408, 413, 414, 431), a \
                path that does not exist (404) and a method that a path does not have (405).",
        },
        "paths": {
            "/participant": {"get": named(), "post": create()},
            "/participant/{id}": {"get": with_id(operation("participant", "A participant", one("Participant"), &[400, 404]))},
            "/participant/{id}/friends": {"get": friends(), "post": befriend()},
            "/participant/{id}/inbound": {"get": feed("inbound", "What friends have posted, the newest first", "InboundPost")},
            "/participant/{id}/inbound/stream": {"get": stream()},
            "/participant/{id}/outbound": {
                "get": feed("outbound", "What a participant has posted, the newest first", "Post"), "post": post(),
            },
            "/outbound": {"get": search()},
            "/behind": {"get": number("behind", "How many posts are not in the feeds of friends yet")},
            "/count": {"get": number("count", "How many participants there are")},
            "/last": {"get": number("last", "The greatest id of a participant; ids begin with 1 and leave none out, as a rule")},
        },
        "components": {"schemas": schemas(), "responses": refusals()},
    })
}

fn reference(name: &str) -> Value {
    json!({"$ref": format!("#/components/schemas/{name}")})
}

fn object(properties: Value, required: &[&str]) -> Value {
    json!({"type": "object", "properties": properties, "required": required, "additionalProperties": false})
}

fn schemas() -> Value {
    let id = json!({"type": "integer", "format": "int64", "minimum": 1});
    let text = |max: usize| json!({"type": "string", "minLength": 1, "maxLength": max});
    let mut given = object(json!({"name": text(NAME_CHARS_MAX)}), &["name"]);
    given["additionalProperties"] = true.into();
    let to = json!({"anyOf": [reference("Link"), {"type": "string", "pattern": "^[1-9][0-9]{0,17}$"}, id]});
    let ignored = json!({"description": "Means nothing: the path says who", "examples": ["/participant/1"]});
    let mut friend = object(json!({"from": ignored, "to": to}), &["to"]);
    friend["additionalProperties"] = true.into();
    let texts = |date: Value| json!({"from": reference("Link"), "occurred": date, "subject": text(SUBJECT_BYTES_MAX), "story": text(STORY_BYTES_MAX)});
    let mut new_post =
        object(texts(json!({"type": ["string", "null"], "maxLength": 64})), &["subject", "story"]);
    new_post["properties"]["from"] = ignored;
    new_post["additionalProperties"] = true.into();
    let date = json!({"type": "string", "pattern": "^[0-9]{4}-[0-9]{2}-[0-9]{2}$", "description": "The day (UTC) on which the server took it"});
    let fields = ["from", "occurred", "subject", "story"];
    let mut inbound = object(texts(date.clone()), &["from", "to", "occurred", "subject", "story"]);
    inbound["properties"]["to"] = reference("Link");
    json!({
        "Error": object(json!({"error": {"type": "string"}}), &["error"]),
        "Link": {"type": "string", "pattern": "^/participant/[1-9][0-9]{0,17}$"},
        "NewParticipant": given,
        "Participant": object(
            json!({"id": id, "name": {"type": "string"}, "link": reference("Link")}), &["id", "name", "link"],
        ),
        "NewFriend": friend,
        "Friend": object(
            json!({"id": id, "from": reference("Link"), "to": reference("Link")}), &["id", "from", "to"],
        ),
        "NewPost": new_post,
        "EchoedPost": object(texts(json!({"type": "string"})), &fields),
        "Post": object(texts(date), &fields),
        "InboundPost": inbound,
    })
}

fn refusals() -> Value {
    let refusal = |text: &str| json!({"description": text, "content": {"application/json": {"schema": reference("Error")}}});
    json!({
        "400": refusal("A field is missing or not what it should be"),
        "404": refusal("There is no such participant"),
        "409": refusal("Nobody is their own friend, and a participant has 10,000 at most"),
        "413": refusal("The body is too large"),
        "503": refusal("A store does not work, too much waits, or the system is still starting"),
    })
}

/// An operation that is answered 200 with `answer`, or refused.
fn operation(id: &str, summary: &str, answer: Value, refused: &[u16]) -> Value {
    let mut responses = Map::from_iter([("200".to_owned(), answer)]);
    for status in refused.iter().chain(&[503]) {
        responses.insert(status.to_string(), json!({"$ref": format!("#/components/responses/{status}")}));
    }
    json!({"operationId": id, "summary": summary, "responses": responses, "parameters": []})
}

fn answer(description: &str, schema: Value) -> Value {
    json!({"description": description, "content": {"application/json": {"schema": schema}}})
}

fn one(name: &str) -> Value {
    answer("It", reference(name))
}

fn many(items: Value) -> Value {
    answer("A list", json!({"type": "array", "items": items}))
}

/// A list that may have more pages.
fn paged(name: &str) -> Value {
    let mut list = many(reference(name));
    list["headers"] = json!({"next-cursor": {
        "description": "Leads to the next page; the last one has none", "schema": {"type": "string"},
    }});
    list
}

fn parameter(operation: &mut Value, parameter: Value) {
    if let Some(parameters) = operation["parameters"].as_array_mut() {
        parameters.push(parameter);
    }
}

fn query(name: &str, description: &str, schema: Value) -> Value {
    json!({"name": name, "in": "query", "description": description, "schema": schema})
}

fn with_id(mut operation: Value) -> Value {
    let schema = json!({"type": "integer", "format": "int64", "minimum": 1});
    parameter(
        &mut operation,
        json!({"name": "id", "in": "path", "required": true, "schema": schema, "example": 1}),
    );
    operation
}

fn limit(max: usize) -> Value {
    query(
        "limit",
        "Most things of the list",
        json!({"type": "integer", "minimum": 1, "maximum": max, "default": max}),
    )
}

fn with_pages(mut operation: Value, pattern: &str) -> Value {
    parameter(&mut operation, limit(LIST_MAX));
    let cursor = json!({"type": "string", "pattern": pattern});
    parameter(&mut operation, query("cursor", "The header `next-cursor` of the page before", cursor));
    operation
}

fn with_body(mut operation: Value, name: &str) -> Value {
    operation["requestBody"] =
        json!({"required": true, "content": {"application/json": {"schema": reference(name)}}});
    operation
}

fn create() -> Value {
    let created = operation("createParticipant", "Adds a participant", one("Participant"), &[400, 413]);
    with_body(created, "NewParticipant")
}

fn named() -> Value {
    let found = many(reference("Participant"));
    let mut named = operation("participantsNamed", "The first participants with a name", found, &[400]);
    let schema = json!({"type": "string", "minLength": 1, "maxLength": NAME_CHARS_MAX});
    let mut name = query("name", "Exactly this name", schema);
    name["required"] = true.into();
    parameter(&mut named, name);
    named
}

fn friends() -> Value {
    let listed =
        operation("friends", "The friends of a participant, the oldest first", paged("Friend"), &[400, 404]);
    with_pages(with_id(listed), "^([1-9][0-9]{0,17})?$")
}

fn befriend() -> Value {
    let summary = "Makes two participants friends; they are the same friends when it is asked for again";
    let made = operation("befriend", summary, one("Friend"), &[400, 404, 409, 413]);
    with_body(with_id(made), "NewFriend")
}

fn feed(id: &str, summary: &str, name: &str) -> Value {
    with_pages(
        with_id(operation(id, summary, paged(name), &[400, 404])),
        "^([0-9a-f]{1,16}-[0-9a-f]{1,16})?$",
    )
}

fn post() -> Value {
    let summary = "Posts to all friends; `occurred` is echoed and not kept";
    with_body(with_id(operation("post", summary, one("EchoedPost"), &[400, 404, 413])), "NewPost")
}

fn stream() -> Value {
    let events = json!({
        "description": "Events `post` with a post as in the inbound feed, or `reload` where some were missed",
        "content": {"text/event-stream": {"schema": {"type": "string"}}},
    });
    with_id(operation("inboundStream", "What comes into the inbound feed from now on", events, &[400, 404]))
}

fn search() -> Value {
    let summary = "Who has posted a story with any of the words, the newest first";
    let mut search = operation("search", summary, many(reference("Link")), &[400]);
    let schema = json!({"type": "string", "pattern": "\\S"});
    let mut keywords = query("keywords", "Words, whatever their case", schema);
    keywords["required"] = true.into();
    parameter(&mut search, keywords);
    parameter(&mut search, limit(POSTERS_MAX));
    search
}

fn number(id: &str, summary: &str) -> Value {
    let number = json!({
        "description": "Their number",
        "content": {"text/plain": {"schema": {"type": "string", "pattern": "^[0-9]+$"}}},
    });
    operation(id, summary, number, &[])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_has_the_paths_that_are_routed_and_what_it_refers_to() {
        let document = document();
        let mut documented: Vec<_> = document["paths"].as_object().expect("paths").keys().cloned().collect();
        let mut routed: Vec<_> = crate::handlers::routes().into_iter().map(|(path, _)| path).collect();
        routed.sort_unstable();
        documented.sort_unstable();
        assert_eq!(documented, routed);
        let text = document.to_string();
        let places: Vec<_> =
            text.split(r##""$ref":"#"##).skip(1).filter_map(|rest| rest.split('"').next()).collect();
        assert!(places.len() > 10);
        for place in places {
            assert!(document.pointer(place).is_some(), "{place}");
        }
    }
}
