//! What an airline needs from its stores: sessions, customers, bookings.
//!
//! The three are separate traits because they are separate needs: a split system keeps its sessions elsewhere,
//! and a real deployment may hold them in another product than the bookings.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::answer::Answer;

/// Somebody who is logged in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Session {
    /// The random id that the client presents; a UUID as a number.
    pub id: u128,
    /// Whose session it is.
    pub customer_id: Arc<str>,
    /// When it began, milliseconds since 1970.
    pub created_ms: i64,
    /// From this moment on it does not count any more, milliseconds since 1970.
    pub expires_ms: i64,
}

/// Frequent-flyer standing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
#[allow(missing_docs)]
pub enum CustomerStatus {
    #[default]
    None,
    Silver,
    Gold,
    Platinum,
    ExecPlatinum,
    Graphite,
}

/// What kind of telephone a number belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
#[allow(missing_docs)]
pub enum PhoneNumberType {
    #[default]
    Unknown,
    Home,
    Business,
    Mobile,
}

/// Where a customer lives. Serialises with the field names of the airline's JSON.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[allow(missing_docs)]
pub struct Address {
    pub street_address1: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub street_address2: Option<String>,
    pub city: String,
    pub state_province: String,
    pub country: String,
    pub postal_code: String,
}

/// A customer as stored, password included: what a client sees is for the system to decide.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Customer {
    /// The login name; identifies the customer.
    pub id: String,
    /// In clear text, as the benchmark has it.
    pub password: String,
    /// Frequent-flyer standing.
    pub status: CustomerStatus,
    /// Miles flown ever.
    pub total_miles: i64,
    /// Miles flown this year.
    pub miles_ytd: i64,
    /// Where the customer lives.
    pub address: Address,
    /// Telephone number, as text.
    #[serde(rename = "phoneNumber")]
    pub phone_number: String,
    /// What kind of telephone that is.
    #[serde(rename = "phoneNumberType")]
    pub phone_number_type: PhoneNumberType,
}

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

/// Who is logged in.
pub trait Sessions: Send + Sync {
    /// Stores a session. One with the same id is replaced.
    fn create(&self, session: Session) -> Answer<'_, ()>;

    /// The session with this id, if there is one that has not expired at `now_ms`.
    /// One that has expired is absent, and is removed in passing.
    fn find(&self, id: u128, now_ms: i64) -> Answer<'_, Option<Session>>;

    /// Removes a session; tells whether it was there.
    fn remove(&self, id: u128) -> Answer<'_, bool>;

    /// How many are stored, expired ones that nobody has removed yet included.
    fn count(&self) -> Answer<'_, u64>;

    /// Removes sessions that have expired at `now_ms`, oldest first, and tells how many.
    /// One call does a bounded amount of work; call again at once while it returns
    /// [`SWEEP_SESSIONS_MAX`](crate::SWEEP_SESSIONS_MAX).
    fn sweep(&self, now_ms: i64) -> Answer<'_, u64>;
}

/// Who can fly.
pub trait Customers: Send + Sync {
    /// The customer with this id.
    fn find(&self, id: &str) -> Answer<'_, Option<Customer>>;

    /// Stores a customer. One with the same id is replaced.
    fn put(&self, customer: Customer) -> Answer<'_, ()>;

    /// Stores many, for loading; tells how many. Not one atomic write: after an error some are stored.
    fn put_many<'a>(&'a self, customers: Box<dyn Iterator<Item = Customer> + Send + 'a>) -> Answer<'a, u64>;

    /// How many there are.
    fn count(&self) -> Answer<'_, u64>;
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

/// The stores that an airline stands on; each may be another product.
#[derive(Clone)]
pub struct AirlineStore {
    /// Who is logged in.
    pub sessions: Arc<dyn Sessions>,
    /// Who can fly.
    pub customers: Arc<dyn Customers>,
    /// Who flies where.
    pub bookings: Arc<dyn Bookings>,
}
