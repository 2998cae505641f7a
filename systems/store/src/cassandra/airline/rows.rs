//! What customers and bookings are as rows.

use std::sync::Arc;

use scylla::value::CqlValue;
use uuid::Uuid;

use crate::bookings::Booking;
use crate::customers::{Address, Customer, CustomerStatus, PhoneNumberType};

/// A customer's columns beside the id.
pub(super) const FIELDS: [&str; 12] = [
    "password",
    "status",
    "total_miles",
    "miles_ytd",
    "street_address1",
    "street_address2",
    "city",
    "state_province",
    "country",
    "postal_code",
    "phone_number",
    "phone_number_type",
];

/// The id of a customer, then [`FIELDS`].
pub(super) type CustomerRow<'a> = (
    &'a str,
    &'a str,
    i8,
    i64,
    i64,
    &'a str,
    Option<&'a str>,
    &'a str,
    &'a str,
    &'a str,
    &'a str,
    &'a str,
    i8,
);

/// A booking's id, its flight, the route of that, when it was booked, and its time of writing.
pub(super) type BookingRow<'a> = (Uuid, Uuid, &'a str, i64, i64);

pub(super) fn id_of(customer: &Customer) -> Option<CqlValue> {
    text(&customer.id)
}

fn text(text: &str) -> Option<CqlValue> {
    Some(CqlValue::Text(text.to_owned()))
}

/// The values of [`FIELDS`].
pub(super) fn fields(of: &Customer) -> [Option<CqlValue>; 12] {
    let Address { street_address1, street_address2, city, state_province, country, postal_code } =
        &of.address;
    [
        text(&of.password),
        Some(CqlValue::TinyInt(of.status as i8)),
        Some(CqlValue::BigInt(of.total_miles)),
        Some(CqlValue::BigInt(of.miles_ytd)),
        text(street_address1),
        street_address2.as_deref().and_then(text),
        text(city),
        text(state_province),
        text(country),
        text(postal_code),
        text(&of.phone_number),
        Some(CqlValue::TinyInt(of.phone_number_type as i8)),
    ]
}

pub(super) fn customer(row: CustomerRow<'_>) -> Customer {
    let (
        id,
        password,
        status,
        total_miles,
        miles_ytd,
        street,
        second,
        city,
        state,
        country,
        code,
        phone,
        kind,
    ) = row;
    Customer {
        id: id.into(),
        password: password.into(),
        // a number of a later version is told as none
        status: u8::try_from(status).ok().and_then(CustomerStatus::of_number).unwrap_or_default(),
        total_miles,
        miles_ytd,
        address: Address {
            street_address1: street.into(),
            street_address2: second.map(str::to_owned),
            city: city.into(),
            state_province: state.into(),
            country: country.into(),
            postal_code: code.into(),
        },
        phone_number: phone.into(),
        phone_number_type: u8::try_from(kind).ok().and_then(PhoneNumberType::of_number).unwrap_or_default(),
    }
}

pub(super) fn booking(
    customer_id: &Arc<str>,
    (id, flight_id, segment, booked_ms, _): BookingRow<'_>,
) -> Booking {
    Booking {
        id: id.as_u128(),
        customer_id: customer_id.clone(),
        flight_id: flight_id.as_u128(),
        flight_segment_id: segment.into(),
        booked_ms,
    }
}
