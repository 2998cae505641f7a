//! The airline as an OpenAPI 3.1 document. The handlers write and read by hand what the two public servers write and
//! read, so nothing can be generated from types; tests hold the document against the routes, and others' tools
//! (`tests/conformance`) against the answers.

mod schemas;

use serde_json::{Map, Value, json};

use self::schemas::{EXAMPLE_ID, EXAMPLE_USER};
use crate::customers::CUSTOMERS_MAX;
use crate::routes::{CONTEXT, HOUSE_BASES};

/// The media type of forms.
const FORM: &str = "application/x-www-form-urlencoded";
/// What any call may be refused with: the store is full or does not work, or the system is still starting.
const UNAVAILABLE: u16 = 503;

/// The document.
pub(crate) fn document() -> Value {
    let mut paths = Map::new();
    let api = |path: &str| format!("/rest/api/{path}");
    for (path, operations) in customers() {
        paths.insert(api(path), operations);
    }
    for base in HOUSE_BASES {
        for (path, operation) in house() {
            // one id for each operation, so those at the second base have its name in front
            let mut operation = operation;
            if base != "/rest/api"
                && let Some(id) = operation["operationId"].as_str()
            {
                operation["operationId"] = format!("info.{id}").into();
            }
            paths.insert(format!("{base}/{path}"), json!({"get": operation}));
        }
    }
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "airline",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "The public Acme Air benchmark's service. Beside the answers listed, the server itself \
                refuses what is no request, or too large or too slow (400, 408, 413, 414, 431), a path that does not \
                exist (404) and a method that a path does not have (405), with a reason, \
                but for what is not HTTP.",
        },
        "servers": [{"url": "/"}, {"url": CONTEXT, "description": "the same"}],
        "tags": [
            {"name": "session", "description": "Log in and out"},
            {"name": "flights", "description": "What is on offer"},
            {"name": "bookings", "description": "Book, list, cancel"},
            {"name": "customer", "description": "One's own profile"},
            {"name": "house", "description": "For whoever runs it; needs no session"},
        ],
        "paths": paths,
        "components": {
            "schemas": schemas::all(),
            "responses": refusals(),
            "securitySchemes": {
                "session": {
                    "type": "apiKey", "in": "cookie", "name": "sessionid",
                    "description": "Set by a login; valid for 24 hours by default",
                },
            },
        },
    })
}

/// The answers that refuse, by status.
fn refusals() -> Value {
    let refusal = |text: &str| {
        json!({
            "description": text,
            "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Reason"}}},
        })
    };
    let mut unavailable = refusal("The store is full or does not work, or the system is still starting");
    unavailable["headers"] = json!({"Retry-After": {"schema": {"type": "integer"}}});
    json!({
        "400": refusal("A field is missing or not what it should be"),
        "403": refusal("There is no valid session, it is another customer's, or a page of another site asks"),
        "404": refusal("There is no such flight or customer"),
        "413": refusal("The body is too large"),
        "415": refusal("The body is no form"),
        "503": unavailable,
    })
}

/// An operation that is answered 200 with `answer`, or refused.
fn operation(tag: &str, id: &str, summary: &str, answer: Value, refused: &[u16]) -> Value {
    let mut responses = Map::from_iter([("200".to_owned(), answer)]);
    for status in refused.iter().chain([&UNAVAILABLE]) {
        responses.insert(status.to_string(), json!({"$ref": format!("#/components/responses/{status}")}));
    }
    json!({"operationId": id, "tags": [tag], "summary": summary, "responses": responses})
}

/// The same for those who are logged in.
fn secured(tag: &str, id: &str, summary: &str, answer: Value, refused: &[u16]) -> Value {
    let refused = [refused, &[403]].concat();
    let mut operation = operation(tag, id, summary, answer, &refused);
    operation["security"] = json!([{"session": []}]);
    operation
}

/// With a form as the body.
fn with_form(mut operation: Value, schema: &str) -> Value {
    let schema = json!({"$ref": format!("#/components/schemas/{schema}")});
    operation["requestBody"] = json!({"required": true, "content": {FORM: {"schema": schema}}});
    for status in ["400", "413", "415"] {
        operation["responses"][status] = json!({"$ref": format!("#/components/responses/{status}")});
    }
    operation
}

fn in_json(description: &str, schema: &str) -> Value {
    let schema = json!({"$ref": format!("#/components/schemas/{schema}")});
    json!({"description": description, "content": {"application/json": {"schema": schema}}})
}

fn in_text(description: &str, schema: Value) -> Value {
    json!({"description": description, "content": {"text/plain": {"schema": schema}}})
}

fn in_path(name: &str, description: &str, example: &str) -> Value {
    json!({
        "name": name, "in": "path", "required": true, "description": description,
        "schema": {"type": "string", "minLength": 1}, "example": example,
    })
}

/// What is below `/rest/api` and about customers.
fn customers() -> Vec<(&'static str, Value)> {
    let mut login = in_text("Logged in", json!({"const": "logged in"}));
    login["headers"] = json!({"Set-Cookie": {"required": true, "schema": {"type": "string"}}});
    let mut logout = in_text("Logged out, or never was in", json!({"const": "logged out"}));
    logout["headers"] = login["headers"].clone();
    let login = operation("session", "login", "Begins a session", login, &[403]);
    let mut logout = operation("session", "logout", "Ends the session", logout, &[403]);
    logout["parameters"] = json!([{
        "name": "login", "in": "query", "description": "Means nothing; clients send it", "schema": {"type": "string"},
    }]);

    let query = "The flights of a day, and of the way back; empty where there are none";
    let query = secured("flights", "queryFlights", query, in_json("Flights", "Legs"), &[]);
    let browse = "All flights between two airports, on any day";
    let browse = secured("flights", "browseFlights", browse, in_json("Flights", "Legs"), &[]);

    let book = "Books one flight or two. The return flight is ignored on one way, the ids of segments always";
    let book = secured("bookings", "bookFlights", book, in_json("Booked", "Booked"), &[404]);
    let bookings =
        secured("bookings", "bookings", "A customer's bookings", in_json("All", "Bookings"), &[400]);
    let booking = "One booking";
    let mut booking = secured("bookings", "bookingByNumber", booking, in_json("It", "Booking"), &[400]);
    booking["responses"]["204"] = json!({"description": "There is none with this number"});
    let cancel = "Cancels a booking; one that is not there (any more), too";
    let cancelled = in_json("There is none with this number now", "Success");
    let cancel = secured("bookings", "cancelBooking", cancel, cancelled, &[]);

    let profile =
        secured("customer", "customer", "A customer's profile", in_json("It", "Customer"), &[400, 404]);
    let change =
        "Changes address and telephone. Who is meant stands in the body; other fields have no effect";
    let mut change =
        secured("customer", "changeCustomer", change, in_json("As it is now", "Customer"), &[400, 413]);
    let schema = json!({"$ref": "#/components/schemas/Change"});
    change["requestBody"] = json!({"required": true, "content": {"application/json": {"schema": schema}}});

    let user = || in_path("user", "The customer's login name; only one's own", EXAMPLE_USER);
    let number = in_path("number", "The booking's id", EXAMPLE_ID);
    vec![
        ("login", json!({"post": with_form(login, "Login")})),
        ("login/logout", json!({"get": logout})),
        ("flights/queryflights", json!({"post": with_form(query, "Query")})),
        ("flights/browseflights", json!({"post": with_form(browse, "Browse")})),
        ("bookings/bookflights", json!({"post": with_form(book, "Book")})),
        ("bookings/byuser/{user}", json!({"get": bookings, "parameters": [user()]})),
        ("bookings/bybookingnumber/{user}/{number}", json!({"get": booking, "parameters": [user(), number]})),
        ("bookings/cancelbooking", json!({"post": with_form(cancel, "Cancel")})),
        ("customer/byid/{user}", json!({"get": profile, "post": change, "parameters": [user()]})),
    ]
}

/// What needs no session, without the base.
fn house() -> Vec<(&'static str, Value)> {
    let get = |id: &str, summary: &str, answer: Value| operation("house", id, summary, answer, &[]);
    let counts = [
        ("config/countCustomers", "countCustomers"),
        ("config/countSessions", "countSessions"),
        ("config/countFlights", "countFlights"),
        ("config/countFlightSegments", "countFlightSegments"),
        ("config/countBookings", "countBookings"),
        ("config/countAirports", "countAirports"),
    ];
    let count = |id: &str| get(id, "How many there are", in_json("Their number", "Count"));
    let mut all: Vec<_> = counts.into_iter().map(|(path, id)| (path, count(id))).collect();
    let loads = json!({"type": "string", "pattern": "^[0-9]+$"});
    let loaded = json!({"type": "string", "pattern": r"^Loaded flights and [0-9]+ customers in [0-9]+\.[0-9]{3} seconds$"});
    let load = "Makes the customers that are missing, and touches nothing else";
    let mut load = operation("house", "load", load, in_text("Made", loaded), &[400, 403]);
    load["parameters"] = json!([{
        "name": "numCustomers", "in": "query",
        "description": "How many there are to be; those of the last load where nothing is said",
        "schema": {"type": "integer", "minimum": 1, "maximum": CUSTOMERS_MAX}, "example": 200,
    }]);
    all.extend([
        ("loader/query", get("loadQuery", "How many customers a load makes", in_text("Their number", loads))),
        ("loader/load", load),
        ("config/runtime", get("runtime", "What it runs on", in_json("Names", "Names"))),
        ("config/dataServices", get("dataServices", "The stores there are", in_json("Names", "Names"))),
        (
            "config/activeDataService",
            get("activeDataService", "The store in use", in_text("Its name", json!({"type": "string"}))),
        ),
        ("checkstatus", get("checkStatus", "Whether it is there", in_text("It is", json!({"const": "OK"})))),
    ]);
    all
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::routes::paths;

    #[test]
    fn it_has_the_paths_that_are_routed_and_no_others() {
        let document = document();
        let documented = document["paths"].as_object().expect("paths").keys().cloned();
        assert_eq!(documented.collect::<BTreeSet<_>>(), paths().into_iter().collect());
    }

    /// All places that a document refers to.
    fn references(value: &Value, found: &mut Vec<String>) {
        match value {
            Value::Object(object) => object.iter().for_each(|(key, value)| match value.as_str() {
                Some(place) if key == "$ref" => found.push(place.to_owned()),
                _ => references(value, found),
            }),
            Value::Array(values) => values.iter().for_each(|value| references(value, found)),
            _ => {}
        }
    }

    #[test]
    fn what_it_refers_to_is_there_and_ids_are_unique() {
        let document = document();
        let mut found = Vec::new();
        references(&document, &mut found);
        assert!(found.len() > 50);
        for place in found {
            assert!(document.pointer(place.trim_start_matches('#')).is_some(), "{place}");
        }
        let paths = document["paths"].as_object().expect("paths").values();
        let operations = paths.flat_map(|path| path.as_object().expect("operations").values());
        let ids: Vec<_> = operations.filter_map(|operation| operation["operationId"].as_str()).collect();
        assert_eq!(ids.iter().collect::<BTreeSet<_>>().len(), ids.len());
        assert_eq!(ids.len(), 10 + 2 * 12);
    }
}
