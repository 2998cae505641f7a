//! The intake as an OpenAPI 3.1 document. What it takes and answers is read and written by hand, so nothing can be
//! generated from types; tests hold the document against the routes, and others' tools (`tests/conformance`) against
//! the answers.

use serde_json::{Map, Value, json};
use tidemark_store::messages::PAYLOAD_BYTES_MAX;

use crate::page::LIMIT_MAX;

/// The document.
pub(crate) fn document() -> Value {
    let reason = json!({
        "type": "object", "properties": {"reason": {"type": "string"}}, "required": ["reason"],
        "additionalProperties": false,
    });
    let message = json!({
        "type": "object",
        "properties": {
            "user": {"type": "string", "pattern": "^[0-9]{10,}$"},
            "time": {"type": "integer", "minimum": 0, "description": "Milliseconds since 1970"},
            "type": {"type": "string", "minLength": 3, "maxLength": 3},
            "payload": {"type": "string", "description": "The whole message as it was sent"},
        },
        "required": ["user", "time", "type", "payload"],
        "additionalProperties": false,
    });
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "ingest",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "Takes small messages and keeps every one that it has acknowledged. Beside the answers \
                listed, the server itself refuses what is no request, or too large or too slow (400, 408, 413, 414, \
                431), a path that does not exist (404) and a method that a path does not have (405), with a reason, \
                but for what is not HTTP.",
        },
        "paths": {
            "/m": {"get": take_query(), "post": take_body()},
            "/count": {"get": number("count", "How many messages there are")},
            "/behind": {
                "get": number("behind", "How many were acknowledged and are not counted and shown yet"),
            },
            "/messages/{user}": {"get": messages()},
        },
        "components": {
            "schemas": {
                "Reason": reason,
                "Message": message,
                "Text": {
                    "type": "string",
                    "description": "10 digits of the user, 13 of the time in milliseconds, 3 characters of the type, and what \
                        the sender likes; as UTF-8 it has at most 4096 bytes",
                    "pattern": "^[0-9]{23}[!-~]{3}", "maxLength": PAYLOAD_BYTES_MAX,
                    "examples": ["00000000421425000000123DEF41.7127837,42.7127837"],
                },
            },
            "responses": {
                "400": refusal("It is no message, or a field or the Idempotency-Key is not what it should be"),
                "413": refusal("The body is too large"),
                "503": unavailable(),
            },
        },
    })
}

fn refusal(text: &str) -> Value {
    json!({
        "description": text,
        "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Reason"}}},
    })
}

fn unavailable() -> Value {
    let mut unavailable =
        refusal("Too many messages wait, the store does not work, or the system is still starting");
    unavailable["headers"] = json!({"Retry-After": {"schema": {"type": "integer"}}});
    unavailable
}

/// An operation that is answered 200 with `answer`, or refused.
fn operation(id: &str, summary: &str, answer: Value, refused: &[u16]) -> Value {
    let mut responses = Map::from_iter([("200".to_owned(), answer)]);
    for status in refused.iter().chain(&[503]) {
        responses.insert(status.to_string(), json!({"$ref": format!("#/components/responses/{status}")}));
    }
    json!({"operationId": id, "summary": summary, "responses": responses})
}

fn in_text(description: &str, schema: Value) -> Value {
    json!({"description": description, "content": {"text/plain": {"schema": schema}}})
}

fn taken() -> Value {
    in_text("The message is as durable as the server was told to make it", json!({"const": "OK"}))
}

fn take_query() -> Value {
    let mut take = operation("take", "Takes a message", taken(), &[400]);
    take["parameters"] = json!([
        {"name": "c", "in": "query", "required": true, "schema": {"$ref": "#/components/schemas/Text"}},
        idempotency_key(),
    ]);
    take
}

fn idempotency_key() -> Value {
    json!({
        "name": "Idempotency-Key", "in": "header", "schema": {"type": "string", "pattern": "[^ \t\"]"},
        "description": "Requests with the same one and the same content are one message; without it each is a message of \
            its own. Ignored with `identity=key`.",
    })
}

fn take_body() -> Value {
    let mut take =
        operation("takeBody", "Takes a message that is the body, of whatever type", taken(), &[400, 413]);
    let schema = json!({"$ref": "#/components/schemas/Text"});
    take["parameters"] = json!([idempotency_key()]);
    take["requestBody"] = json!({"required": true, "content": {"text/plain": {"schema": schema}}});
    take
}

fn number(id: &str, summary: &str) -> Value {
    operation(id, summary, in_text("Their number", json!({"type": "string", "pattern": "^[0-9]+$"})), &[])
}

fn messages() -> Value {
    let cursor = json!({"type": "string", "pattern": "^[0-9]{1,20}-[0-9a-f]{6}-[0-9a-f]{32}$"});
    let mut page = operation(
        "messages",
        "A user's messages in order of time. A page has at most `limit` of them, or some megabytes",
        json!({
            "description": "A page",
            "headers": {"next-cursor": {
                "description": "Leads to the next page; the last one has none", "schema": cursor,
            }},
            "content": {"application/json": {
                "schema": {"type": "array", "items": {"$ref": "#/components/schemas/Message"}},
            }},
        }),
        &[400],
    );
    // no more digits than are always a number of 64 bits
    let cursor = json!({"type": "string", "pattern": "^([0-9]{1,19}-[0-9a-f]{6}-[0-9a-f]{32})?$"});
    let field = |name: &str, description: &str, schema: Value| json!({"name": name, "in": "query", "description": description, "schema": schema});
    let time = || json!({"type": "integer", "minimum": 0, "maximum": u64::MAX});
    page["parameters"] = json!([
        {
            "name": "user", "in": "path", "required": true, "description": "With or without zeros in front",
            "schema": {"type": "string", "pattern": "^[0-9]{1,19}$"}, "example": "0000000042",
        },
        field("from", "Only those of this time or later, in milliseconds since 1970", time()),
        field("to", "Only those before this time", time()),
        field(
            "limit",
            "Most messages of the page",
            json!({"type": "integer", "minimum": 1, "maximum": LIMIT_MAX, "default": LIMIT_MAX}),
        ),
        field("cursor", "The header `next-cursor` of the page before", cursor),
    ]);
    page
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_it_refers_to_is_there() {
        let document = document();
        let text = document.to_string();
        let places: Vec<_> =
            text.split(r##""$ref":"#"##).skip(1).filter_map(|rest| rest.split('"').next()).collect();
        assert!(places.len() > 10);
        for place in places {
            assert!(document.pointer(place).is_some(), "{place}");
        }
    }
}
