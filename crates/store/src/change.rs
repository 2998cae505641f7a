//! A write, as data: what goes through the queue, into the log and then into memory; and how the log writes it down.
//!
//! A change is one entry or several: a byte that says which kind, then its fields. Integers are little-endian, texts
//! have their length (2 bytes) before them.

use std::sync::Arc;

use crate::bookings::Booking;
use crate::record::{CustomerRecord, Interned, Malformed, Reader, write_text};
use crate::sessions::Session;

/// One write. Applying the same changes in the same order always gives the same state, also to a state that has had
/// some of them before.
#[derive(Debug, Clone)]
#[cfg_attr(test, derive(PartialEq))]
pub(crate) enum Change {
    PutSession(Session),
    RemoveSessions(Vec<u128>),
    RemoveSession(u128),
    PutCustomers(Vec<CustomerRecord>),
    AddBookings(Vec<Booking>),
    CancelBooking { customer_id: Arc<str>, id: u128 },
}

const PUT_SESSION: u8 = 1;
const REMOVE_SESSION: u8 = 2;
const PUT_CUSTOMER: u8 = 3;
const ADD_BOOKING: u8 = 4;
const CANCEL_BOOKING: u8 = 5;

impl Change {
    /// Writes the change down.
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        match self {
            Change::PutSession(session) => write_session(session, out),
            Change::RemoveSession(id) => write_removed(*id, out),
            Change::RemoveSessions(ids) => ids.iter().for_each(|id| write_removed(*id, out)),
            Change::PutCustomers(records) => records.iter().for_each(|record| write_customer(record, out)),
            Change::AddBookings(bookings) => {
                for booking in bookings {
                    let Booking { id, customer_id, flight_id, flight_segment_id, booked_ms } = booking;
                    write_booking(*id, customer_id, *flight_id, flight_segment_id, *booked_ms, out);
                }
            }
            Change::CancelBooking { customer_id, id } => {
                out.push(CANCEL_BOOKING);
                out.extend_from_slice(&id.to_le_bytes());
                write_text(customer_id, out);
            }
        }
    }
}

pub(crate) fn write_session(session: &Session, out: &mut Vec<u8>) {
    out.push(PUT_SESSION);
    out.extend_from_slice(&session.id.to_le_bytes());
    out.extend_from_slice(&session.created_ms.to_le_bytes());
    out.extend_from_slice(&session.expires_ms.to_le_bytes());
    write_text(&session.customer_id, out);
}

fn write_removed(session_id: u128, out: &mut Vec<u8>) {
    out.push(REMOVE_SESSION);
    out.extend_from_slice(&session_id.to_le_bytes());
}

pub(crate) fn write_customer(record: &CustomerRecord, out: &mut Vec<u8>) {
    out.push(PUT_CUSTOMER);
    out.extend_from_slice(&(record.bytes().len() as u32).to_le_bytes());
    out.extend_from_slice(record.bytes());
}

pub(crate) fn write_booking(
    id: u128,
    customer_id: &str,
    flight_id: u128,
    flight_segment_id: &str,
    booked_ms: i64,
    out: &mut Vec<u8>,
) {
    out.push(ADD_BOOKING);
    out.extend_from_slice(&id.to_le_bytes());
    out.extend_from_slice(&flight_id.to_le_bytes());
    out.extend_from_slice(&booked_ms.to_le_bytes());
    write_text(customer_id, out);
    write_text(flight_segment_id, out);
}

/// Reads what changes have been written down as, one change for each entry.
pub(crate) fn read(
    entries: &[u8],
    segments: &mut Interned,
    mut take: impl FnMut(Change),
) -> Result<(), Malformed> {
    let mut reader = Reader(entries);
    while !reader.0.is_empty() {
        take(read_one(&mut reader, segments)?);
    }
    Ok(())
}

fn read_one(reader: &mut Reader<'_>, segments: &mut Interned) -> Result<Change, Malformed> {
    let [kind] = reader.array()?;
    Ok(match kind {
        PUT_SESSION => Change::PutSession(Session {
            id: u128::from_le_bytes(reader.array()?),
            created_ms: i64::from_le_bytes(reader.array()?),
            expires_ms: i64::from_le_bytes(reader.array()?),
            customer_id: reader.text()?.into(),
        }),
        REMOVE_SESSION => Change::RemoveSession(u128::from_le_bytes(reader.array()?)),
        PUT_CUSTOMER => {
            let length = u32::from_le_bytes(reader.array()?) as usize;
            Change::PutCustomers(vec![CustomerRecord::from_log(reader.bytes(length)?)?])
        }
        ADD_BOOKING => Change::AddBookings(vec![Booking {
            id: u128::from_le_bytes(reader.array()?),
            flight_id: u128::from_le_bytes(reader.array()?),
            booked_ms: i64::from_le_bytes(reader.array()?),
            customer_id: reader.text()?.into(),
            flight_segment_id: segments.get(reader.text()?),
        }]),
        CANCEL_BOOKING => {
            let id = u128::from_le_bytes(reader.array()?);
            Change::CancelBooking { id, customer_id: reader.text()?.into() }
        }
        _ => return Err("an entry is of a kind that this version does not know"),
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::customers::Customer;

    fn change() -> impl Strategy<Value = Change> {
        let texts = (".{1,20}", ".{0,8}");
        (0..5u8, any::<(u128, u128, i64, i64)>(), texts).prop_map(|(kind, numbers, (customer, segment))| {
            let (id, flight_id, created_ms, expires_ms) = numbers;
            let customer_id: Arc<str> = customer.as_str().into();
            match kind {
                0 => Change::PutSession(Session { id, customer_id, created_ms, expires_ms }),
                1 => Change::RemoveSession(id),
                2 => {
                    let customer = Customer { id: customer, total_miles: created_ms, ..Customer::default() };
                    Change::PutCustomers(vec![CustomerRecord::new(&customer).unwrap()])
                }
                3 => {
                    let flight_segment_id = segment.as_str().into();
                    let booked_ms = created_ms;
                    Change::AddBookings(vec![Booking {
                        id,
                        customer_id,
                        flight_id,
                        flight_segment_id,
                        booked_ms,
                    }])
                }
                _ => Change::CancelBooking { customer_id, id },
            }
        })
    }

    fn read_all(bytes: &[u8]) -> Result<Vec<Change>, Malformed> {
        let mut changes = Vec::new();
        read(bytes, &mut Interned::default(), |change| changes.push(change))?;
        Ok(changes)
    }

    proptest! {
        #[test]
        fn changes_read_back(changes in prop::collection::vec(change(), 0..5)) {
            let mut bytes = Vec::new();
            changes.iter().for_each(|change| change.write(&mut bytes));
            prop_assert_eq!(read_all(&bytes), Ok(changes));
        }

        #[test]
        fn any_bytes_are_read_without_panic(bytes in prop::collection::vec(any::<u8>(), 0..80), kind in 0..7u8) {
            let _ = read_all(&bytes);
            let _ = read_all(&[&[kind], bytes.as_slice()].concat());
        }
    }
}
