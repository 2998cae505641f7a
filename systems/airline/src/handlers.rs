//! What each route does for customers: log in and out, flights, bookings, profile.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, StatusCode, Uri, header};
use axum::response::Response;
use bytes::{Bytes, BytesMut};
use percent_encoding::percent_decode_str;
use tidemark_service::{json, text};
use tidemark_store::bookings::Booking;
use uuid::Uuid;

use crate::app::{App, Op, session_id};
use crate::customers::{Change, shown};
use crate::dates::parse_day;
use crate::form::Form;
use crate::other_sites;
use crate::refusal::Refusal;

type Answer = Result<Response, Refusal>;

/// What a POST has beside its body; refuses one that a page of another site sends.
fn posted(request: Request) -> Result<(Parts, Body), Refusal> {
    other_sites::refuse(request.headers())?;
    Ok(request.into_parts())
}

/// The whole body, which the server has read and bounded already.
async fn body_of(body: Body) -> Result<Bytes, Refusal> {
    let bytes = axum::body::to_bytes(body, usize::MAX).await;
    bytes.map_err(|_| Refusal::bad_request("the body cannot be read"))
}

/// The last `N` parts of the path, decoded.
fn path_tail<const N: usize>(uri: &Uri) -> Result<[String; N], Refusal> {
    let mut parts = uri.path().rsplit('/');
    let mut tail = [const { String::new() }; N];
    for part in tail.iter_mut().rev() {
        let decoded = percent_decode_str(parts.next().unwrap_or_default()).decode_utf8();
        *part = decoded.map_err(|_| Refusal::bad_request("the path is not UTF-8"))?.into_owned();
    }
    Ok(tail)
}

// --- log in and out ------------------------------------------------------------------------------------------

/// Sets the cookie of a session. No script of a page reads it, and no form of another site sends it along: clients that
/// are no browsers do not know what says so, and pass over it.
fn set_cookie(mut response: Response, session: &str) -> Response {
    if let Ok(cookie) = HeaderValue::try_from(format!("sessionid={session}; Path=/; HttpOnly; SameSite=Lax"))
    {
        response.headers_mut().insert(header::SET_COOKIE, cookie);
    }
    response
}

pub(crate) async fn login(State(app): State<Arc<App>>, request: Request) -> Answer {
    let (head, body) = posted(request)?;
    let body = body_of(body).await?;
    let form = Form::of_body(&head.headers, &body)?;
    let (login, password) = (form.need("login")?, form.need("password")?);
    let customer = app.timed(Op::CustomerFind, app.store.customers.find(login)).await?;
    let Some(customer) = customer.filter(|customer| customer.password == password) else {
        return Err(Refusal::forbidden("wrong user or password"));
    };
    let id = app.begin_session(&customer.id).await?;
    Ok(set_cookie(text(StatusCode::OK, "logged in"), &id.to_string()))
}

/// Always succeeds where sessions can be ended at all, but for pages of other sites. The field `login` in the query means nothing.
pub(crate) async fn logout(State(app): State<Arc<App>>, headers: HeaderMap) -> Answer {
    other_sites::refuse(&headers)?;
    if let Some(id) = session_id(&headers) {
        app.end_session(id).await?;
    }
    Ok(set_cookie(text(StatusCode::OK, "logged out"), ""))
}

// --- flights -------------------------------------------------------------------------------------------------

const LEG_BEGIN: &[u8] =
    br#"{"hasMoreOptions":false,"numPages":1,"pageSize":10,"currentPage":0,"flightsOptions":["#;
const LEG_END: &[u8] = b"]}";
/// Room for the answer to a query of two legs.
const QUERY_ROOM_BYTES: usize = 1536;

/// Writes one leg: the flights of a day, or of all days on offer.
async fn write_leg(
    app: &App,
    out: &mut BytesMut,
    (from, to): (&str, &str),
    day: Option<i32>,
) -> Result<(), Refusal> {
    out.extend_from_slice(LEG_BEGIN);
    match day {
        Some(day) => app.flights.write_on(out, from, to, day).await?,
        None => app.flights.write_all_days(out, from, to).await?,
    }
    out.extend_from_slice(LEG_END);
    Ok(())
}

fn legs_begin(one_way: bool) -> &'static [u8] {
    if one_way { br#"{"tripLegs":1,"tripFlights":["# } else { br#"{"tripLegs":2,"tripFlights":["# }
}

fn day_in(form: &Form, name: &'static str) -> Result<i32, Refusal> {
    let text = form.need(name)?;
    parse_day(text).map_err(|error| Refusal::bad_request(format!("{name}: {error}")))
}

pub(crate) async fn query_flights(State(app): State<Arc<App>>, request: Request) -> Answer {
    flights_of(&app, request, true).await
}

/// All flights of a route, on any day.
pub(crate) async fn browse_flights(State(app): State<Arc<App>>, request: Request) -> Answer {
    flights_of(&app, request, false).await
}

/// The flights there and back that a form asks for, on the days that it names or on any.
async fn flights_of(app: &App, request: Request, on_days: bool) -> Answer {
    let (head, body) = posted(request)?;
    app.session(&head.headers).await?;
    let body = body_of(body).await?;
    let form = Form::of_body(&head.headers, &body)?;
    let one_way = form.flag("oneWay")?;
    let (from, to) = (form.need("fromAirport")?, form.need("toAirport")?);
    let day = |name| on_days.then(|| day_in(&form, name)).transpose();
    let there = day("fromDate")?;
    let mut out = BytesMut::with_capacity(QUERY_ROOM_BYTES);
    out.extend_from_slice(legs_begin(one_way));
    write_leg(app, &mut out, (from, to), there).await?;
    if !one_way {
        let back = day("returnDate")?;
        out.extend_from_slice(b",");
        write_leg(app, &mut out, (to, from), back).await?;
    }
    out.extend_from_slice(LEG_END);
    Ok(json(StatusCode::OK, out.freeze()))
}

// --- bookings ------------------------------------------------------------------------------------------------

const NOT_YOURS: &str = "a customer has access to his own data only";

fn flight_in(form: &Form, name: &'static str) -> Result<u128, Refusal> {
    let id = Uuid::try_parse(form.need(name)?)
        .map_err(|_| Refusal::bad_request(format!("{name} is not the id of a flight")))?;
    Ok(id.as_u128())
}

pub(crate) async fn book_flights(State(app): State<Arc<App>>, request: Request) -> Answer {
    let (head, body) = posted(request)?;
    let session = app.session(&head.headers).await?;
    let body = body_of(body).await?;
    let form = Form::of_body(&head.headers, &body)?;
    if form.need("userid")? != &*session.customer_id {
        return Err(Refusal::forbidden(NOT_YOURS));
    }
    // The segment ids that come along are implied by the flights; clients send stale ones.
    let one_way = form.flag("oneWayFlight")?;
    let booked_ms = app.clock.now_ms();
    let fields: &[&'static str] = if one_way { &["toFlightId"] } else { &["toFlightId", "retFlightId"] };
    let ids = fields.iter().map(|name| flight_in(&form, name)).collect::<Result<Vec<_>, _>>()?;
    let bookable = app.flights.bookable(&ids).await?;
    let booking = |(&flight_id, name): (&u128, &&str)| {
        let Some((_, segment_id)) = bookable.iter().find(|(id, _)| *id == flight_id) else {
            return Err(Refusal::new(StatusCode::NOT_FOUND, format!("{name}: there is no such flight")));
        };
        Ok(Booking {
            id: Uuid::new_v4().as_u128(),
            customer_id: session.customer_id.clone(),
            flight_id,
            flight_segment_id: segment_id.clone(),
            booked_ms,
        })
    };
    let bookings = ids.iter().zip(fields).map(booking).collect::<Result<Vec<_>, _>>()?;
    app.bookings.pass("bookings", || app.store.bookings.count()).await?;
    app.timed(Op::BookingAdd, app.store.bookings.add(&bookings)).await?;
    let depart = Uuid::from_u128(bookings[0].id);
    let body = match bookings.get(1) {
        None => format!(r#"{{"departBookingId":"{depart}","oneWay":true}}"#),
        Some(back) => {
            let back = Uuid::from_u128(back.id);
            format!(r#"{{"departBookingId":"{depart}","returnBookingId":"{back}","oneWay":false}}"#)
        }
    };
    Ok(json(StatusCode::OK, body))
}

/// Writes one booking; `customer` is the customer's id as JSON, quotes included. `whole` is its whole flight, where that
/// is to be in it.
fn write_booking(out: &mut BytesMut, booking: &Booking, customer: &[u8], whole: Option<&Bytes>) {
    let mut buffer = Uuid::encode_buffer();
    let id = Uuid::from_u128(booking.id).hyphenated().encode_lower(&mut buffer).as_bytes();
    let mut buffer = Uuid::encode_buffer();
    let flight = Uuid::from_u128(booking.flight_id).hyphenated().encode_lower(&mut buffer).as_bytes();
    let mut buffer = itoa::Buffer::new();
    let booked_ms = buffer.format(booking.booked_ms).as_bytes();
    for part in [
        br#"{"_id":""#,
        id,
        br#"","bookingId":""#,
        id,
        br#"","pkey":{"id":""#,
        id,
        br#"","customerId":"#,
        customer,
        br#"},"customerId":"#,
        customer,
        br#","flightId":""#,
        flight,
        br#"","flightSegmentId":""#,
        booking.flight_segment_id.as_bytes(),
        br#"","dateOfBooking":"#,
        booked_ms,
    ] as [&[u8]; 16]
    {
        out.extend_from_slice(part);
    }
    if let Some(whole) = whole {
        out.extend_from_slice(br#","flight":"#);
        out.extend_from_slice(whole);
    }
    out.extend_from_slice(b"}");
}

/// The flights of an answer's bookings, where they are asked for: `?flight=nested`, as the mobile app of 2013 needs them.
async fn nested(app: &App, uri: &Uri, bookings: &[Booking]) -> Result<Vec<Option<Bytes>>, Refusal> {
    let query = uri.query().unwrap_or_default();
    let is_asked = query.split('&').any(|pair| pair == "flight=nested");
    if !is_asked && !app.nests_flights {
        return Ok(Vec::new());
    }
    let ids: Vec<u128> = bookings.iter().map(|booking| booking.flight_id).collect();
    app.flights.whole(&ids).await
}

/// About the size of a booking as JSON.
const BOOKING_ROOM_BYTES: usize = 400;

pub(crate) async fn bookings_by_user(State(app): State<Arc<App>>, request: Request) -> Answer {
    let session = app.session(request.headers()).await?;
    let [user] = path_tail(request.uri())?;
    if user != *session.customer_id {
        return Err(Refusal::forbidden(NOT_YOURS));
    }
    let bookings = app.timed(Op::BookingList, app.store.bookings.of_customer(&user)).await?;
    let customer = serde_json::to_vec(&user).unwrap_or_default();
    let flights = nested(&app, request.uri(), &bookings).await?;
    let mut out = BytesMut::with_capacity(2 + bookings.len() * BOOKING_ROOM_BYTES);
    out.extend_from_slice(b"[");
    for (index, booking) in bookings.iter().enumerate() {
        if index > 0 {
            out.extend_from_slice(b",");
        }
        write_booking(&mut out, booking, &customer, flights.get(index).and_then(Option::as_ref));
    }
    out.extend_from_slice(b"]");
    Ok(json(StatusCode::OK, out.freeze()))
}

/// One booking; 204 if there is none with this number.
pub(crate) async fn booking_by_number(State(app): State<Arc<App>>, request: Request) -> Answer {
    let session = app.session(request.headers()).await?;
    let [user, number] = path_tail(request.uri())?;
    if user != *session.customer_id {
        return Err(Refusal::forbidden(NOT_YOURS));
    }
    let found = match Uuid::try_parse(&number) {
        Ok(id) => app.timed(Op::BookingFind, app.store.bookings.find(&user, id.as_u128())).await?,
        Err(_) => None,
    };
    let Some(booking) = found else {
        let mut nothing = Response::new(Body::empty());
        *nothing.status_mut() = StatusCode::NO_CONTENT;
        return Ok(nothing);
    };
    let mut out = BytesMut::with_capacity(BOOKING_ROOM_BYTES);
    let flights = nested(&app, request.uri(), std::slice::from_ref(&booking)).await?;
    let flight = flights.first().and_then(Option::as_ref);
    write_booking(&mut out, &booking, &serde_json::to_vec(&user).unwrap_or_default(), flight);
    Ok(json(StatusCode::OK, out.freeze()))
}

/// Cancels a booking. One that does not exist (any more) is the same success: what was asked for holds.
pub(crate) async fn cancel_booking(State(app): State<Arc<App>>, request: Request) -> Answer {
    let (head, body) = posted(request)?;
    let session = app.session(&head.headers).await?;
    let body = body_of(body).await?;
    let form = Form::of_body(&head.headers, &body)?;
    let number = form.need("number")?;
    if form.need("userid")? != &*session.customer_id {
        return Err(Refusal::forbidden(NOT_YOURS));
    }
    if let Ok(id) = Uuid::try_parse(number) {
        let cancelled = app.store.bookings.cancel(&session.customer_id, id.as_u128());
        app.timed(Op::BookingCancel, cancelled).await?;
    }
    Ok(json(StatusCode::OK, r#"{"status":"success"}"#))
}

// --- the customer's profile ----------------------------------------------------------------------------------

pub(crate) async fn customer(State(app): State<Arc<App>>, request: Request) -> Answer {
    let session = app.session(request.headers()).await?;
    let [user] = path_tail(request.uri())?;
    if user != *session.customer_id {
        return Err(Refusal::forbidden(NOT_YOURS));
    }
    match app.timed(Op::CustomerFind, app.store.customers.find(&user)).await? {
        Some(customer) => Ok(json(StatusCode::OK, shown(&customer))),
        None => Err(Refusal::new(StatusCode::NOT_FOUND, "there is no such customer")),
    }
}

/// A change is tried again where another airline has changed the profile meanwhile.
const CHANGE_TRIES: usize = 16;

/// Changes address and telephone. Who is meant stands in the body, not in the path.
pub(crate) async fn update_customer(State(app): State<Arc<App>>, request: Request) -> Answer {
    let (head, body) = posted(request)?;
    let session = app.session(&head.headers).await?;
    let change = Change::parse(&body_of(body).await?)?;
    if !change.is_about(&session.customer_id)? {
        return Err(Refusal::forbidden(NOT_YOURS));
    }
    let _only_one = app.change_profile(&session.customer_id).await;
    for _ in 0..CHANGE_TRIES {
        let found = app.timed(Op::CustomerFind, app.store.customers.find(&session.customer_id)).await?;
        let Some(before) = found.filter(|customer| change.knows_password_of(customer)) else {
            return Err(Refusal::forbidden("wrong password"));
        };
        let mut after = before.clone();
        change.apply(&mut after)?;
        let body = shown(&after);
        if app.timed(Op::CustomerPut, app.store.customers.replace(&before, after)).await? {
            return Ok(json(StatusCode::OK, body));
        }
    }
    Err(Refusal::new(
        StatusCode::SERVICE_UNAVAILABLE,
        "others change this profile all the time; try again later",
    ))
}
