//! What the airline takes and answers, as JSON Schemas.

use serde_json::{Value, json};

use crate::customers::TEXT_CHARS_MAX;
use crate::form::FIELDS_MAX;

pub(super) const EXAMPLE_USER: &str = "uid0@email.com";
pub(super) const EXAMPLE_ID: &str = "6fa459ea-ee8a-4ca4-894e-db77e160355e";
/// Whole numbers that JSON carries exactly.
const EXACT_MAX: i64 = (1 << 53) - 1;

fn reference(name: &str) -> Value {
    json!({"$ref": format!("#/components/schemas/{name}")})
}

/// A form with these fields, of which those named are needed. More are tolerated.
fn form(fields: Value, required: &[&str]) -> Value {
    json!({"type": "object", "properties": fields, "required": required, "maxProperties": FIELDS_MAX})
}

/// An object with just these fields.
fn object(fields: Value) -> Value {
    let required: Vec<_> = fields.as_object().into_iter().flat_map(|fields| fields.keys().cloned()).collect();
    json!({"type": "object", "properties": fields, "required": required, "additionalProperties": false})
}

/// The text of a day, as the module [`dates`](crate::dates) reads it.
fn date() -> Value {
    let day = "(((Jan|Mar|May|Jul|Aug|Oct|Dec) (0?[1-9]|[12][0-9]|3[01]))|((Apr|Jun|Sep|Nov) (0?[1-9]|[12][0-9]|30))\
               |(Feb (0?[1-9]|1[0-9]|2[0-8])))";
    let weekday = "(Mon|Tue|Wed|Thu|Fri|Sat|Sun)";
    let time = "([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]";
    json!({
        "description": "A day, also with a time, which changes nothing; 29 February and the form of RFC 1123 are taken, too",
        "anyOf": [
            {"type": "string", "format": "date"},
            {"type": "string", "pattern": format!("^{weekday} {day} {time} [A-Z]{{3,4}} [0-9]{{4}}$")},
            {"type": "string", "pattern": format!("^{weekday} {day} [0-9]{{4}} {time} GMT[+-](0[0-9]|1[0-4])[0-5][0-9]( \\([A-Z]+\\))?$")},
        ],
        "examples": ["2026-11-21", "Sat Nov 21 00:00:00 UTC 2026", "Sat Nov 21 2026 00:00:00 GMT+0000 (UTC)"],
    })
}

fn airport(example: &str) -> Value {
    json!({"type": "string", "description": "IATA code; an unknown one has no flights", "examples": [example]})
}

/// A flag of a form: `true` or `false`, false when it is missing or empty.
fn flag() -> Value {
    json!({"type": "boolean"})
}

/// One way with the flag and the fields of one way; else with those of the way back, too.
fn either_way(flag: &str, fields: &Value, one_way: &[&str], there_and_back: &[&str]) -> Value {
    let (mut with, mut without) = (fields.clone(), fields.clone());
    with[flag] = json!({"type": "boolean", "const": true});
    for field in there_and_back {
        with[*field] = json!({"type": "string", "description": "Means nothing one way"});
    }
    without[flag] = json!({"type": "boolean", "const": false});
    json!({"anyOf": [
        form(with, &[one_way, &[flag]].concat()),
        form(without, &[one_way, there_and_back].concat()),
    ]})
}

fn forms() -> [(&'static str, Value); 5] {
    let user = || json!({"type": "string", "description": "Oneself", "examples": [EXAMPLE_USER]});
    let text = || json!({"type": "string"});
    let flight = || json!({"type": "string", "format": "uuid", "description": "A flight's `_id`", "examples": [EXAMPLE_ID]});
    let route = json!({
        "fromAirport": airport("CDG"), "toAirport": airport("SVO"), "oneWay": flag(),
    });
    let mut query = route.clone();
    query["fromDate"] = date();
    query["returnDate"] = date();
    let book = json!({
        "userid": user(), "toFlightId": flight(), "retFlightId": flight(), "toFlightSegId": text(),
        "retFlightSegId": text(), "oneWayFlight": flag(),
    });
    let login = json!({
        "login": {"type": "string", "examples": [EXAMPLE_USER]},
        "password": {"type": "string", "examples": ["password"]},
    });
    let number = json!({"type": "string", "description": "A booking's id", "examples": [EXAMPLE_ID]});
    [
        ("Login", form(login, &["login", "password"])),
        ("Query", either_way("oneWay", &query, &["fromAirport", "toAirport", "fromDate"], &["returnDate"])),
        ("Browse", form(route, &["fromAirport", "toAirport"])),
        ("Book", either_way("oneWayFlight", &book, &["userid", "toFlightId"], &["retFlightId"])),
        ("Cancel", form(json!({"userid": user(), "number": number}), &["userid", "number"])),
    ]
}

fn flights() -> [(&'static str, Value); 3] {
    let uuid = || json!({"type": "string", "format": "uuid"});
    let segment_id = || json!({"type": "string", "pattern": "^AA[0-9]+$"});
    let code = || json!({"type": "string", "pattern": "^[A-Z]{3}$"});
    let ms = || json!({"type": "integer", "description": "Milliseconds since 1970"});
    let count = || json!({"type": "integer", "minimum": 0});
    let segment = object(json!({
        "_id": segment_id(), "flightName": segment_id(), "originPort": code(), "destPort": code(), "miles": count(),
    }));
    let flight = object(json!({
        "_id": uuid(), "id": uuid(), "flightSegmentId": segment_id(),
        "pkey": object(json!({"id": uuid(), "flightSegmentId": segment_id()})),
        "scheduledDepartureTime": ms(), "scheduledArrivalTime": ms(),
        "firstClassBaseCost": count(), "economyClassBaseCost": count(),
        "numFirstClassSeats": count(), "numEconomyClassSeats": count(),
        "airplaneTypeId": {"type": "string"}, "flightSegment": segment,
    }));
    let leg = object(json!({
        "hasMoreOptions": {"const": false}, "numPages": {"const": 1}, "pageSize": {"const": 10},
        "currentPage": {"const": 0}, "flightsOptions": {"type": "array", "items": reference("Flight")},
    }));
    let legs = object(json!({
        "tripLegs": {"enum": [1, 2]},
        "tripFlights": {"type": "array", "items": reference("Leg"), "minItems": 1, "maxItems": 2},
    }));
    [("Flight", flight), ("Leg", leg), ("Legs", legs)]
}

fn bookings() -> [(&'static str, Value); 4] {
    let uuid = || json!({"type": "string", "format": "uuid"});
    let text = || json!({"type": "string"});
    let mut booked = object(json!({"departBookingId": uuid(), "oneWay": {"type": "boolean"}}));
    booked["properties"]["returnBookingId"] = uuid();
    let booking = object(json!({
        "_id": uuid(), "bookingId": uuid(), "pkey": object(json!({"id": uuid(), "customerId": text()})),
        "customerId": text(), "flightId": uuid(), "flightSegmentId": text(),
        "dateOfBooking": {"type": "integer", "description": "Milliseconds since 1970"},
    }));
    [
        ("Booked", booked),
        ("Booking", booking),
        ("Bookings", json!({"type": "array", "items": reference("Booking")})),
        ("Success", object(json!({"status": {"const": "success"}}))),
    ]
}

/// The profile as it is shown, and what changes it.
fn profiles() -> [(&'static str, Value); 2] {
    let shown = || json!({"type": "string"});
    let kind = || json!({"enum": ["UNKNOWN", "HOME", "BUSINESS", "MOBILE"]});
    let fields = ["streetAddress1", "city", "stateProvince", "country", "postalCode"];
    let mut address = object(fields.into_iter().map(|field| (field.to_owned(), shown())).collect());
    address["properties"]["streetAddress2"] = shown();
    let customer = object(json!({
        "_id": shown(), "username": shown(),
        "status": {"enum": ["NONE", "SILVER", "GOLD", "PLATINUM", "EXEC_PLATINUM", "GRAPHITE"]},
        "total_miles": {"type": "integer"}, "miles_ytd": {"type": "integer"},
        "address": address, "phoneNumber": shown(), "phoneNumberType": kind(),
    }));

    // some clients send numbers for these
    let text = || {
        json!({"anyOf": [
            {"type": "string", "maxLength": TEXT_CHARS_MAX},
            {"type": "integer", "minimum": -EXACT_MAX, "maximum": EXACT_MAX},
        ]})
    };
    let or_null = |schema: Value| json!({"anyOf": [schema, {"type": "null"}]});
    let mut address = json!({
        "type": "object", "required": fields,
        "properties": fields.into_iter().map(|field| (field.to_owned(), text())).collect::<Value>(),
    });
    address["properties"]["streetAddress2"] = or_null(text());
    let name = || json!({"type": ["string", "null"], "description": "Oneself; one of both is needed"});
    let is_there = |name: &str| json!({"required": [name], "properties": {name: {"type": "string"}}});
    let change = json!({
        "type": "object",
        "properties": {
            "_id": name(), "username": name(),
            "password": {"type": "string", "description": "The present one"},
            "address": address, "phoneNumber": or_null(text()), "phoneNumberType": or_null(kind()),
        },
        "required": ["password", "address"],
        "anyOf": [is_there("_id"), is_there("username")],
        "examples": [{
            "_id": EXAMPLE_USER, "password": "password", "phoneNumber": "919-123-4567", "phoneNumberType": "HOME",
            "address": {
                "streetAddress1": "123 Main St.", "city": "Anytown", "stateProvince": "NC", "country": "USA",
                "postalCode": 27617,
            },
        }],
    });
    [("Customer", customer), ("Change", change)]
}

/// All of them, by name.
pub(super) fn all() -> Value {
    let name = object(json!({"name": {"type": "string"}, "description": {"type": "string"}}));
    let rest = [
        ("Reason", object(json!({"reason": {"type": "string"}}))),
        ("Count", json!({"type": "integer", "minimum": -1, "description": "-1: the store does not work"})),
        ("Names", json!({"type": "array", "items": name})),
    ];
    let all = forms().into_iter().chain(flights()).chain(bookings()).chain(profiles()).chain(rest);
    all.map(|(name, schema)| (name.to_owned(), schema)).collect()
}
