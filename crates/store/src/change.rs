//! A write, as data: what goes through the queue, into the log and then into memory.

use std::sync::Arc;

use crate::airline::{Booking, Session};
use crate::record::CustomerRecord;

/// One write. Applying the same changes in the same order always gives the same state.
#[derive(Debug, Clone)]
pub(crate) enum Change {
    PutSession(Session),
    RemoveSessions(Vec<u128>),
    RemoveSession(u128),
    PutCustomers(Vec<CustomerRecord>),
    /// `first_number` is given when the change enters the log; the bookings are numbered on from it.
    AddBookings {
        bookings: Vec<Booking>,
        first_number: u64,
    },
    CancelBooking {
        customer_id: Arc<str>,
        id: u128,
    },
}
