//! The table of bookings: a list for each customer, in the order in which they were added.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

use crate::bookings::Booking;
use crate::engine::bytes::{Interned, Malformed, Reader, write_text};
use crate::engine::rows::{Keyed, Shards};
use crate::engine::table::{Entries, InMemory, Table};

const TABLE: u8 = 3;
const ADD: u8 = 0;
const CANCEL: u8 = 1;

/// A booking without what its place says already.
struct Booked {
    id: u128,
    flight_id: u128,
    flight_segment_id: Arc<str>,
    booked_ms: i64,
}

/// What a customer has booked.
struct Customer {
    id: Arc<str>,
    booked: Vec<Booked>,
}

impl Keyed for Customer {
    type Key = str;

    fn key(&self) -> &str {
        &self.id
    }
}

impl Customer {
    fn booking(&self, booked: &Booked) -> Booking {
        Booking {
            id: booked.id,
            customer_id: self.id.clone(),
            flight_id: booked.flight_id,
            flight_segment_id: booked.flight_segment_id.clone(),
            booked_ms: booked.booked_ms,
        }
    }
}

/// The table.
#[derive(Default)]
pub(crate) struct BookingTable {
    customers: Shards<Customer>,
    count: AtomicU64,
    segments: Mutex<Interned>,
}

/// The entry that adds a booking.
pub(crate) fn add(booking: &Booking, out: &mut Vec<u8>) {
    let Booking { id, customer_id, flight_id, flight_segment_id, booked_ms } = booking;
    write(customer_id, &[*id, *flight_id], *booked_ms, flight_segment_id, out);
}

fn write(customer_id: &str, [id, flight_id]: &[u128; 2], booked_ms: i64, segment: &str, out: &mut Vec<u8>) {
    out.extend_from_slice(&[TABLE, ADD]);
    out.extend_from_slice(&id.to_le_bytes());
    write_text(customer_id, out);
    out.extend_from_slice(&flight_id.to_le_bytes());
    out.extend_from_slice(&booked_ms.to_le_bytes());
    write_text(segment, out);
}

/// The entry that removes a booking.
pub(crate) fn cancel(customer_id: &str, id: u128, out: &mut Vec<u8>) {
    out.extend_from_slice(&[TABLE, CANCEL]);
    out.extend_from_slice(&id.to_le_bytes());
    write_text(customer_id, out);
}

impl BookingTable {
    /// All bookings of a customer.
    pub(crate) fn of(&self, customer_id: &str) -> Vec<Booking> {
        let read = |customer: &Customer| customer.booked.iter().map(|one| customer.booking(one)).collect();
        self.customers.get(customer_id, read).unwrap_or_default()
    }

    /// One of them.
    pub(crate) fn find(&self, customer_id: &str, id: u128) -> Option<Booking> {
        self.customers.get(customer_id, |customer| {
            customer.booked.iter().find(|booked| booked.id == id).map(|booked| customer.booking(booked))
        })?
    }

    pub(crate) fn count(&self) -> u64 {
        self.count.load(Ordering::Relaxed)
    }

    /// Removes a booking of a customer, if there is one; whether there was.
    fn take(&self, customer_id: &str, id: u128) -> bool {
        let make = || Customer { id: customer_id.into(), booked: Vec::new() };
        let take = |customer: &mut Customer| {
            let at = customer.booked.iter().position(|booked| booked.id == id);
            at.map(|at| customer.booked.remove(at)).is_some()
        };
        self.customers.change(customer_id, make, take, |customer| customer.booked.is_empty())
    }
}

impl Table for BookingTable {
    fn number(&self) -> u8 {
        TABLE
    }

    fn name(&self) -> &'static str {
        "bookings"
    }

    fn apply_one(&self, entry: &mut Reader<'_>) -> Result<u64, Malformed> {
        let [what] = entry.array()?;
        let id = u128::from_le_bytes(entry.array()?);
        let customer_id = entry.text()?;
        match what {
            ADD => {
                let flight_id = u128::from_le_bytes(entry.array()?);
                let booked_ms = i64::from_le_bytes(entry.array()?);
                let flight_segment_id = self.segments.lock().get(entry.text()?);
                let make = || Customer { id: customer_id.into(), booked: Vec::new() };
                let add = |customer: &mut Customer| {
                    let before = customer.booked.len();
                    customer.booked.retain(|booked| booked.id != id);
                    let is_new = customer.booked.len() == before;
                    customer.booked.push(Booked { id, flight_id, flight_segment_id, booked_ms });
                    is_new
                };
                let is_new = self.customers.change(customer_id, make, add, |_| false);
                self.count.fetch_add(is_new.into(), Ordering::Relaxed);
                Ok(1)
            }
            CANCEL => {
                let is_cancelled = self.take(customer_id, id);
                self.count.fetch_sub(is_cancelled.into(), Ordering::Relaxed);
                Ok(is_cancelled.into())
            }
            _ => Err("an entry is of a kind that this version does not know"),
        }
    }
}

impl InMemory for BookingTable {
    fn write_part(&self, part: usize, out: &mut Entries) {
        self.customers.each(part, |customer| {
            for Booked { id, flight_id, flight_segment_id, booked_ms } in &customer.booked {
                write(&customer.id, &[*id, *flight_id], *booked_ms, flight_segment_id, &mut out.bytes);
                out.end_entry();
            }
        });
    }
}
