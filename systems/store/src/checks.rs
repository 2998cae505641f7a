//! What every store refuses, since one of them could not keep it.

use crate::bookings::Booking;
use crate::customers::Customer;
use crate::error::StoreError;

/// Longest customer id or segment id, in bytes.
const ID_BYTES_MAX: usize = 1024;
/// Longest text field of a customer, in bytes.
const TEXT_BYTES_MAX: usize = 4096;
/// Bookings in one write: all or none are kept.
const BOOKINGS_PER_WRITE_MAX: usize = 4096;

/// Refuses ids that cannot be a key.
pub(crate) fn check_id(what: &'static str, id: &str) -> Result<(), StoreError> {
    if id.is_empty() {
        return Err(StoreError::invalid(what, "it is empty"));
    }
    if id.len() > ID_BYTES_MAX {
        let reason = format!("it has {} bytes, at most {ID_BYTES_MAX} are possible", id.len());
        return Err(StoreError::invalid(what, reason));
    }
    Ok(())
}

/// Refuses customers that cannot be kept.
pub(crate) fn check_customer(customer: &Customer) -> Result<(), StoreError> {
    check_id("the customer's id", &customer.id)?;
    for (what, text) in texts_of(customer) {
        if let Some(text) = text.filter(|text| text.len() > TEXT_BYTES_MAX) {
            let reason = format!("it has {} bytes, at most {TEXT_BYTES_MAX} are possible", text.len());
            return Err(StoreError::invalid(what, reason));
        }
    }
    Ok(())
}

/// Refuses bookings that cannot be kept together.
pub(crate) fn check_bookings(bookings: &[Booking]) -> Result<(), StoreError> {
    if bookings.len() > BOOKINGS_PER_WRITE_MAX {
        let reason =
            format!("there are {}, at most {BOOKINGS_PER_WRITE_MAX} are possible at a time", bookings.len());
        return Err(StoreError::invalid("bookings", reason));
    }
    bookings.iter().try_for_each(|booking| {
        check_id("the booking's customer id", &booking.customer_id)?;
        check_id("the booking's flight segment id", &booking.flight_segment_id)
    })
}

/// The texts of a customer in the order in which rows have them.
pub(crate) fn texts_of(customer: &Customer) -> [(&'static str, Option<&str>); 8] {
    let address = &customer.address;
    [
        ("the customer's password", Some(&customer.password)),
        ("the customer's street address", Some(&address.street_address1)),
        ("the customer's second street address", address.street_address2.as_deref()),
        ("the customer's city", Some(&address.city)),
        ("the customer's state or province", Some(&address.state_province)),
        ("the customer's country", Some(&address.country)),
        ("the customer's postal code", Some(&address.postal_code)),
        ("the customer's phone number", Some(&customer.phone_number)),
    ]
}
