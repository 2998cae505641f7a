//! The stores as calls: one trait, of which `tidemark_rpc` makes the server's side and the client's.

use std::sync::Arc;

use tidemark_rpc::{Refusal, service};
use tidemark_store::bookings::{Booking, Bookings};
use tidemark_store::customers::{Customer, Customers};
use tidemark_store::sessions::Sessions;
use tidemark_store::{Embedded, StoreError};
use uuid::Uuid;

use super::rows::{About, BookingPart, BookingRow, CustomerRow, NewBooking, SessionRow, Worth};

/// The code of a value that the store does not take.
pub(super) const INVALID: u16 = 422;
/// The code of a list that is another one now.
pub(super) const CHANGED: u16 = 409;
/// The code of a write that was to be worth more.
const LESS_DURABLE: u16 = 412;
/// The code of a store that does not work for now.
const NOT_NOW: u16 = 503;

/// Customers, sessions and bookings of an airline, for all who serve it.
///
/// Each write names the durability it wants. The answer is 412 if this process keeps less, 422 if the store refuses the
/// write, and 503 if the store does not work.
#[service(name = "data")]
pub(crate) trait Data {
    /// What is kept, and how well.
    #[get("/about")]
    async fn about(&self) -> About;

    /// Stores a session, in place of one with the same id.
    async fn session_create(&self, worth: Worth, session: SessionRow) -> Result<(), Refused>;

    /// A session that has not expired at `now_ms`.
    async fn session_find(&self, id: Uuid, now_ms: i64) -> Result<Option<SessionRow>, Refused>;

    /// Removes a session; tells whether it was there.
    async fn session_remove(&self, worth: Worth, id: Uuid) -> Result<bool, Refused>;

    /// How many sessions there are.
    async fn session_count(&self) -> Result<u64, Refused>;

    /// Removes some sessions that have expired; tells how many.
    async fn session_sweep(&self, worth: Worth, now_ms: i64) -> Result<u64, Refused>;

    /// A customer.
    async fn customer_find(&self, id: String) -> Result<Option<CustomerRow>, Refused>;

    /// Stores a customer, in place of one with the same id.
    async fn customer_put(&self, worth: Worth, customer: CustomerRow) -> Result<(), Refused>;

    /// Stores a customer in place of what it was; tells whether it still was.
    async fn customer_replace(
        &self,
        worth: Worth,
        before: CustomerRow,
        after: CustomerRow,
    ) -> Result<bool, Refused>;

    /// Stores those that are not there; tells how many.
    async fn customer_put_missing(&self, worth: Worth, customers: Vec<CustomerRow>) -> Result<u64, Refused>;

    /// How many customers there are.
    async fn customer_count(&self) -> Result<u64, Refused>;

    /// Stores bookings, all or none.
    async fn booking_add(&self, worth: Worth, bookings: Vec<NewBooking>) -> Result<(), Refused>;

    /// Bookings of a customer from that place on; 409 if the list is not `of` any more.
    async fn booking_list(
        &self,
        customer_id: String,
        from: u32,
        of: Option<u64>,
    ) -> Result<BookingPart, Refused>;

    /// One booking of a customer.
    async fn booking_find(&self, customer_id: String, id: Uuid) -> Result<Option<BookingRow>, Refused>;

    /// Removes a booking of a customer; tells whether it was there.
    async fn booking_cancel(&self, worth: Worth, customer_id: String, id: Uuid) -> Result<bool, Refused>;

    /// How many bookings there are.
    async fn booking_count(&self) -> Result<u64, Refused>;
}

/// Why a call is not done.
pub(crate) struct Refused(Refusal);

impl From<StoreError> for Refused {
    fn from(error: StoreError) -> Self {
        Refused(match error {
            StoreError::Invalid { what, reason } => Refusal::new(INVALID, format!("{what}: {reason}")),
            error => Refusal::new(NOT_NOW, error.to_string()),
        })
    }
}

impl From<Refused> for Refusal {
    fn from(Refused(refusal): Refused) -> Self {
        refusal
    }
}

/// The store behind the calls.
pub(super) struct Kept {
    pub(super) store: Arc<Embedded>,
    /// Of two that load the same customers the second finds them there.
    loading: tokio::sync::Mutex<()>,
}

impl Kept {
    pub(super) fn new(store: Arc<Embedded>) -> Self {
        Kept { store, loading: tokio::sync::Mutex::default() }
    }

    fn check(&self, Worth(wanted): Worth) -> Result<(), Refused> {
        let given = self.store.durability();
        if given >= wanted {
            return Ok(());
        }
        let reason =
            format!("an acknowledged write is {given} here, not {wanted}; begin with durability {wanted}");
        Err(Refused(Refusal::new(LESS_DURABLE, reason)))
    }
}

impl Data for Arc<Kept> {
    async fn about(&self) -> About {
        let [sessions, customers, bookings] = self.store.counts();
        About { durability: Worth(self.store.durability()), sessions, customers, bookings }
    }

    async fn session_create(&self, worth: Worth, session: SessionRow) -> Result<(), Refused> {
        self.check(worth)?;
        Ok(self.store.create(session.into()).await?)
    }

    async fn session_find(&self, id: Uuid, now_ms: i64) -> Result<Option<SessionRow>, Refused> {
        Ok(Sessions::find(&*self.store, id.as_u128(), now_ms).await?.map(SessionRow::from))
    }

    async fn session_remove(&self, worth: Worth, id: Uuid) -> Result<bool, Refused> {
        self.check(worth)?;
        Ok(self.store.remove(id.as_u128()).await?)
    }

    async fn session_count(&self) -> Result<u64, Refused> {
        Ok(Sessions::count(&*self.store).await?)
    }

    async fn session_sweep(&self, worth: Worth, now_ms: i64) -> Result<u64, Refused> {
        self.check(worth)?;
        Ok(self.store.sweep(now_ms).await?)
    }

    async fn customer_find(&self, id: String) -> Result<Option<CustomerRow>, Refused> {
        Ok(Customers::find(&*self.store, &id).await?.map(CustomerRow::from))
    }

    async fn customer_put(&self, worth: Worth, customer: CustomerRow) -> Result<(), Refused> {
        self.check(worth)?;
        Ok(self.store.put(customer.into()).await?)
    }

    async fn customer_replace(
        &self,
        worth: Worth,
        before: CustomerRow,
        after: CustomerRow,
    ) -> Result<bool, Refused> {
        self.check(worth)?;
        Ok(self.store.replace(&before.into(), after.into()).await?)
    }

    async fn customer_put_missing(&self, worth: Worth, customers: Vec<CustomerRow>) -> Result<u64, Refused> {
        self.check(worth)?;
        let _one_at_a_time = self.loading.lock().await;
        Ok(self.store.put_missing(Box::new(customers.into_iter().map(Customer::from))).await?)
    }

    async fn customer_count(&self) -> Result<u64, Refused> {
        Ok(Customers::count(&*self.store).await?)
    }

    async fn booking_add(&self, worth: Worth, bookings: Vec<NewBooking>) -> Result<(), Refused> {
        self.check(worth)?;
        let bookings: Vec<_> = bookings.into_iter().map(Booking::from).collect();
        Ok(self.store.add(&bookings).await?)
    }

    async fn booking_list(
        &self,
        customer_id: String,
        from: u32,
        of: Option<u64>,
    ) -> Result<BookingPart, Refused> {
        let all = self.store.of_customer(&customer_id).await?;
        let changed = || Refused(Refusal::new(CHANGED, "the list has changed; read it from its beginning"));
        BookingPart::cut(&all, from as usize, of).ok_or_else(changed)
    }

    async fn booking_find(&self, customer_id: String, id: Uuid) -> Result<Option<BookingRow>, Refused> {
        let found = Bookings::find(&*self.store, &customer_id, id.as_u128()).await?;
        Ok(found.as_ref().map(BookingRow::from))
    }

    async fn booking_cancel(&self, worth: Worth, customer_id: String, id: Uuid) -> Result<bool, Refused> {
        self.check(worth)?;
        Ok(self.store.cancel(&customer_id, id.as_u128()).await?)
    }

    async fn booking_count(&self) -> Result<u64, Refused> {
        Ok(Bookings::count(&*self.store).await?)
    }
}
