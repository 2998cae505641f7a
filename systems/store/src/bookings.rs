//! Bookings: which customer flies where.

use std::sync::Arc;

use crate::answer::Answer;

/// A seat on a flight, bought.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Booking {
    /// Identifies the booking among those of its customer; a UUID as a number.
    pub id: u128,
    /// Who flies.
    pub customer_id: Arc<str>,
    /// The flight; a UUID as a number.
    pub flight_id: u128,
    /// The route of that flight, for example `AA280`.
    pub flight_segment_id: Arc<str>,
    /// When it was booked, milliseconds since 1970.
    pub booked_ms: i64,
}

/// Who flies where.
pub trait Bookings: Send + Sync {
    /// Stores bookings, all or none. One with the same customer and id is replaced and counts as newest.
    fn add(&self, bookings: &[Booking]) -> Answer<'_, ()>;

    /// All bookings of a customer, in the order in which they were added.
    fn of_customer(&self, customer_id: &str) -> Answer<'_, Vec<Booking>>;

    /// One booking of a customer.
    fn find(&self, customer_id: &str, id: u128) -> Answer<'_, Option<Booking>>;

    /// Removes a booking of a customer; tells whether it was there.
    fn cancel(&self, customer_id: &str, id: u128) -> Answer<'_, bool>;

    /// How many there are, of all customers.
    fn count(&self) -> Answer<'_, u64>;
}
