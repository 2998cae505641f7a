//! What goes over the wire: the rows of the stores with nothing left out, which the binary form needs.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tidemark_store::Durability;
use tidemark_store::bookings::Booking;
use tidemark_store::customers::{Address, Customer, CustomerStatus, PhoneNumberType};
use tidemark_store::sessions::Session;
use uuid::Uuid;
use xxhash_rust::xxh3::xxh3_64;

/// Bytes of a part of a list of bookings, about, in the longer form. A payload may have twice as many.
const PART_BYTES: usize = 128 << 10;
/// What a booking takes in JSON beside its segment, whose every byte may become six.
const BOOKING_BYTES: usize = 192;

/// What a write is to be worth.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub(crate) struct Worth(#[schemars(with = "String")] pub(crate) Durability);

/// What is kept, and how well.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct About {
    /// What an acknowledged write is worth: `memory`, `buffered` or `synced`.
    pub(crate) durability: Worth,
    /// Sessions, expired ones that nobody has removed yet included.
    pub(crate) sessions: u64,
    pub(crate) customers: u64,
    pub(crate) bookings: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct SessionRow {
    id: Uuid,
    customer_id: String,
    created_ms: i64,
    expires_ms: i64,
}

impl From<Session> for SessionRow {
    fn from(Session { id, customer_id, created_ms, expires_ms }: Session) -> Self {
        SessionRow { id: Uuid::from_u128(id), customer_id: (*customer_id).to_owned(), created_ms, expires_ms }
    }
}

impl From<SessionRow> for Session {
    fn from(SessionRow { id, customer_id, created_ms, expires_ms }: SessionRow) -> Self {
        Session { id: id.as_u128(), customer_id: customer_id.into(), created_ms, expires_ms }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct CustomerRow {
    id: String,
    password: String,
    #[schemars(with = "String")]
    status: CustomerStatus,
    total_miles: i64,
    miles_ytd: i64,
    street_address1: String,
    street_address2: Option<String>,
    city: String,
    state_province: String,
    country: String,
    postal_code: String,
    phone_number: String,
    #[schemars(with = "String")]
    phone_number_type: PhoneNumberType,
}

impl CustomerRow {
    /// What it takes in the binary form, at most.
    pub(crate) fn bytes(&self) -> usize {
        let texts = [
            &self.id,
            &self.password,
            &self.street_address1,
            &self.city,
            &self.state_province,
            &self.country,
            &self.postal_code,
            &self.phone_number,
        ];
        let texts = texts.into_iter().chain(&self.street_address2);
        64 + texts.map(String::len).sum::<usize>()
    }
}

impl From<Customer> for CustomerRow {
    fn from(customer: Customer) -> Self {
        let Customer { id, password, status, total_miles, miles_ytd, address, .. } = customer;
        let Address { street_address1, street_address2, city, state_province, country, postal_code } =
            address;
        CustomerRow {
            id,
            password,
            status,
            total_miles,
            miles_ytd,
            street_address1,
            street_address2,
            city,
            state_province,
            country,
            postal_code,
            phone_number: customer.phone_number,
            phone_number_type: customer.phone_number_type,
        }
    }
}

impl From<CustomerRow> for Customer {
    fn from(row: CustomerRow) -> Self {
        Customer {
            id: row.id,
            password: row.password,
            status: row.status,
            total_miles: row.total_miles,
            miles_ytd: row.miles_ytd,
            address: Address {
                street_address1: row.street_address1,
                street_address2: row.street_address2,
                city: row.city,
                state_province: row.state_province,
                country: row.country,
                postal_code: row.postal_code,
            },
            phone_number: row.phone_number,
            phone_number_type: row.phone_number_type,
        }
    }
}

/// A booking without its customer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct BookingRow {
    id: Uuid,
    flight_id: Uuid,
    flight_segment_id: String,
    booked_ms: i64,
}

impl BookingRow {
    /// As a booking of this customer.
    pub(crate) fn of(self, customer_id: std::sync::Arc<str>) -> Booking {
        Booking {
            id: self.id.as_u128(),
            customer_id,
            flight_id: self.flight_id.as_u128(),
            flight_segment_id: self.flight_segment_id.into(),
            booked_ms: self.booked_ms,
        }
    }
}

impl From<&Booking> for BookingRow {
    fn from(booking: &Booking) -> Self {
        BookingRow {
            id: Uuid::from_u128(booking.id),
            flight_id: Uuid::from_u128(booking.flight_id),
            flight_segment_id: (*booking.flight_segment_id).to_owned(),
            booked_ms: booking.booked_ms,
        }
    }
}

/// A booking to be added.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct NewBooking {
    customer_id: String,
    booking: BookingRow,
}

impl From<&Booking> for NewBooking {
    fn from(booking: &Booking) -> Self {
        NewBooking { customer_id: (*booking.customer_id).to_owned(), booking: booking.into() }
    }
}

impl From<NewBooking> for Booking {
    fn from(NewBooking { customer_id, booking }: NewBooking) -> Self {
        booking.of(customer_id.into())
    }
}

/// Some of a customer's bookings, in order.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub(crate) struct BookingPart {
    pub(crate) bookings: Vec<BookingRow>,
    /// If there are more behind these: which list it is, to be asked for these.
    pub(crate) more: Option<u64>,
}

impl BookingPart {
    /// As much as fits of `all`, from the one at `from` on. None if `all` is not the list `of` any more.
    pub(crate) fn cut(all: &[Booking], from: usize, of: Option<u64>) -> Option<Self> {
        let rest = all.get(from..).unwrap_or_default();
        let mut bytes = 0;
        let fits = |booking: &&Booking| {
            bytes += BOOKING_BYTES + 6 * booking.flight_segment_id.len();
            bytes <= PART_BYTES
        };
        let bookings: Vec<_> = rest.iter().take_while(fits).map(BookingRow::from).collect();
        let is_last = bookings.len() == rest.len();
        if is_last && of.is_none() {
            return Some(BookingPart { bookings, more: None });
        }
        let now = which(all);
        of.is_none_or(|of| of == now).then(|| BookingPart { bookings, more: (!is_last).then_some(now) })
    }
}

/// Tells lists of bookings apart.
fn which(all: &[Booking]) -> u64 {
    let fields = |booking: &Booking| {
        [
            booking.id.to_le_bytes(),
            booking.flight_id.to_le_bytes(),
            i128::from(booking.booked_ms).to_le_bytes(),
        ]
    };
    xxh3_64(all.iter().flat_map(fields).collect::<Vec<_>>().as_flattened())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use tidemark_rpc::Form;

    use super::*;

    fn booking(id: u128, segment: &str) -> Booking {
        let (customer_id, flight_segment_id) = ("ann".into(), segment.into());
        Booking { id, customer_id, flight_id: u128::MAX - id, flight_segment_id, booked_ms: -1 }
    }

    fn read_in_parts(all: &[Booking]) -> (Vec<Booking>, usize) {
        let (mut read, mut of, mut parts) = (Vec::new(), None, 0);
        loop {
            let part = BookingPart::cut(all, read.len(), of).unwrap();
            for form in [Form::Json, Form::Binary] {
                let mut bytes = Vec::new();
                form.write(&mut bytes, &part).unwrap();
                assert!(bytes.len() < 256 << 10, "a payload has room for it");
            }
            read.extend(part.bookings.into_iter().map(|row| row.of("ann".into())));
            parts += 1;
            of = part.more;
            if of.is_none() {
                return (read, parts);
            }
        }
    }

    #[test]
    fn a_list_is_read_in_as_few_parts_as_it_needs() {
        let short: Vec<_> = (0..600).map(|id| booking(id, "AA0")).collect();
        assert_eq!(read_in_parts(&short), (short, 1));
        let long: Vec<_> = (0..1000).map(|id| booking(id, &"\u{1}".repeat(1024))).collect();
        let (read, parts) = read_in_parts(&long);
        assert_eq!(read, long);
        assert!(parts > 10);
        assert_eq!(read_in_parts(&[]), (vec![], 1));
    }

    #[test]
    fn a_list_that_changes_between_its_parts_is_told_apart() {
        let mut all: Vec<_> = (0..2000).map(|id| booking(id, "AA0")).collect();
        let first = BookingPart::cut(&all, 0, None).unwrap();
        assert!(BookingPart::cut(&all, first.bookings.len(), first.more).is_some());
        let last = all.pop().unwrap();
        assert_eq!(BookingPart::cut(&all, first.bookings.len(), first.more), None);
        all.push(Booking { flight_id: 1, ..last });
        assert_eq!(BookingPart::cut(&all, first.bookings.len(), first.more), None);
    }

    proptest! {
        #[test]
        fn a_customer_comes_back_in_either_form(
            texts in prop::collection::vec(any::<String>(), 8), second in any::<Option<String>>(),
            miles in any::<(i64, i64)>(), is_known in any::<bool>()
        ) {
            let mut texts = texts.into_iter();
            let mut next = || texts.next().unwrap_or_default();
            let customer = Customer {
                id: next(),
                password: next(),
                status: if is_known { CustomerStatus::Graphite } else { CustomerStatus::None },
                total_miles: miles.0,
                miles_ytd: miles.1,
                address: Address {
                    street_address1: next(), street_address2: second, city: next(), state_province: next(),
                    country: next(), postal_code: next(),
                },
                phone_number: next(),
                phone_number_type: if is_known { PhoneNumberType::Mobile } else { PhoneNumberType::Unknown },
            };
            let row = CustomerRow::from(customer.clone());
            let mut bytes = Vec::new();
            Form::Binary.write(&mut bytes, &row).unwrap();
            prop_assert!(bytes.len() <= row.bytes());
            prop_assert_eq!(Customer::from(Form::Binary.read::<CustomerRow>(&bytes).unwrap()), customer.clone());
            Form::Json.write(&mut bytes, &row).unwrap();
            prop_assert_eq!(Customer::from(Form::Json.read::<CustomerRow>(&bytes).unwrap()), customer);
        }

        #[test]
        fn sessions_and_bookings_come_back_in_either_form(
            ids in any::<(u128, u128)>(), times in any::<(i64, i64)>(), texts in any::<(String, String)>()
        ) {
            let session = Session {
                id: ids.0, customer_id: texts.0.as_str().into(), created_ms: times.0, expires_ms: times.1,
            };
            let booking = Booking {
                id: ids.0, customer_id: texts.0.as_str().into(), flight_id: ids.1,
                flight_segment_id: texts.1.as_str().into(), booked_ms: times.0,
            };
            for form in [Form::Json, Form::Binary] {
                let mut bytes = Vec::new();
                form.write(&mut bytes, &SessionRow::from(session.clone())).unwrap();
                prop_assert_eq!(Session::from(form.read::<SessionRow>(&bytes).unwrap()), session.clone());
                form.write(&mut bytes, &NewBooking::from(&booking)).unwrap();
                prop_assert_eq!(Booking::from(form.read::<NewBooking>(&bytes).unwrap()), booking.clone());
            }
        }
    }
}
