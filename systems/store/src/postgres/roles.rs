//! What sessions, customers and bookings are as rows.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use tokio_postgres::Row;
use tokio_postgres::types::ToSql;
use uuid::Uuid;

use super::Postgres;
use super::airline::Do;
use super::text::{read, written};
use crate::answer::Answer;
use crate::bookings::{Booking, Bookings};
use crate::checks::{check_bookings, check_customer, check_id};
use crate::customers::{Address, Customer, CustomerStatus, Customers, PhoneNumberType};
use crate::error::StoreError;
use crate::sessions::{SWEEP_SESSIONS_MAX, Session, Sessions};

/// Customers in one statement of [`Customers::put_missing`].
const CUSTOMERS_PER_STATEMENT: usize = 1024;

/// A column that is of another type than this program made it.
pub(super) fn malformed(error: tokio_postgres::Error) -> StoreError {
    StoreError::no_answer(format!("the tables are not as they were made: {error}"))
}

impl Sessions for Postgres {
    fn create(&self, session: Session) -> Answer<'_, ()> {
        if let Err(error) = check_id("the session's customer id", &session.customer_id) {
            return Answer::ready(Err(error));
        }
        Answer::boxed(async move {
            let Session { id, customer_id, created_ms, expires_ms } = session;
            let (id, customer_id) = (Uuid::from_u128(id), written(&customer_id));
            self.change(Do::SessionCreate, &[&id, &customer_id, &created_ms, &expires_ms]).await.map(drop)
        })
    }

    fn find(&self, id: u128, now_ms: i64) -> Answer<'_, Option<Session>> {
        Answer::boxed(async move {
            let key = Uuid::from_u128(id);
            let rows = self.rows(Do::SessionFind, &[&key]).await?;
            let Some(row) = rows.first() else { return Ok(None) };
            let session = session(id, row).map_err(malformed)?;
            if session.expires_ms > now_ms {
                return Ok(Some(session));
            }
            self.change(Do::SessionExpire, &[&key, &now_ms]).await?;
            Ok(None)
        })
    }

    fn remove(&self, id: u128) -> Answer<'_, bool> {
        Answer::boxed(async move { Ok(self.change(Do::SessionRemove, &[&Uuid::from_u128(id)]).await? > 0) })
    }

    fn count(&self) -> Answer<'_, u64> {
        Answer::boxed(self.count_of(Do::SessionCount))
    }

    fn sweep(&self, now_ms: i64) -> Answer<'_, u64> {
        Answer::boxed(
            async move { self.change(Do::SessionSweep, &[&now_ms, &(SWEEP_SESSIONS_MAX as i64)]).await },
        )
    }
}

fn session(id: u128, row: &Row) -> Result<Session, tokio_postgres::Error> {
    let customer_id = read(row.try_get(0)?).into();
    Ok(Session { id, customer_id, created_ms: row.try_get(1)?, expires_ms: row.try_get(2)? })
}

impl Postgres {
    /// Stores customers with one statement; tells how many rows it changed. Of several with one id the last counts: a
    /// statement may not change a row twice.
    async fn put_all(&self, of: Do, customers: Vec<Customer>) -> Result<u64, StoreError> {
        for customer in &customers {
            check_customer(customer)?;
        }
        let last: HashMap<&str, usize> =
            customers.iter().enumerate().map(|(place, customer)| (&*customer.id, place)).collect();
        let mut kept: Vec<&Customer> = last.into_values().map(|place| &customers[place]).collect();
        // in one order everywhere, so that two statements do not wait for each other
        kept.sort_unstable_by(|a, b| a.id.cmp(&b.id));
        fn column<'a, T>(kept: &[&'a Customer], field: impl Fn(&'a Customer) -> T) -> Vec<T> {
            kept.iter().map(|customer| field(customer)).collect()
        }
        let kept = &kept[..];
        self.change(
            of,
            &[
                &column(kept, |of| written(&of.id)),
                &column(kept, |of| written(&of.password)),
                &column(kept, |of| of.status as i16),
                &column(kept, |of| of.total_miles),
                &column(kept, |of| of.miles_ytd),
                &column(kept, |of| written(&of.address.street_address1)),
                &column(kept, |of| of.address.street_address2.as_deref().map(written)),
                &column(kept, |of| written(&of.address.city)),
                &column(kept, |of| written(&of.address.state_province)),
                &column(kept, |of| written(&of.address.country)),
                &column(kept, |of| written(&of.address.postal_code)),
                &column(kept, |of| written(&of.phone_number)),
                &column(kept, |of| of.phone_number_type as i16),
            ],
        )
        .await
    }
}

impl Customers for Postgres {
    fn find(&self, id: &str) -> Answer<'_, Option<Customer>> {
        let id = written(id).into_owned();
        Answer::boxed(async move {
            let rows = self.rows(Do::CustomerFind, &[&id]).await?;
            rows.first().map(customer).transpose().map_err(malformed)
        })
    }

    fn put(&self, customer: Customer) -> Answer<'_, ()> {
        Answer::boxed(async move { self.put_all(Do::CustomerPut, vec![customer]).await.map(drop) })
    }

    fn replace<'a>(&'a self, before: &'a Customer, after: Customer) -> Answer<'a, bool> {
        if let Err(error) = check_customer(&after) {
            return Answer::ready(Err(error));
        }
        if before.id != after.id {
            return Answer::ready(Ok(false));
        }
        Answer::boxed(async move {
            let id = written(&after.id);
            let (old, new) = (Fields::of(before), Fields::of(&after));
            let id: [&(dyn ToSql + Sync); 1] = [&id];
            let parameters: Vec<_> = id.into_iter().chain(old.all()).chain(new.all()).collect();
            Ok(self.change(Do::CustomerReplace, &parameters).await? > 0)
        })
    }

    fn put_missing<'a>(
        &'a self,
        mut customers: Box<dyn Iterator<Item = Customer> + Send + 'a>,
    ) -> Answer<'a, u64> {
        Answer::boxed(async move {
            let mut stored = 0;
            loop {
                let some: Vec<Customer> = customers.by_ref().take(CUSTOMERS_PER_STATEMENT).collect();
                if some.is_empty() {
                    return Ok(stored);
                }
                stored += self.put_all(Do::CustomerPutMissing, some).await?;
            }
        })
    }

    fn count(&self) -> Answer<'_, u64> {
        Answer::boxed(self.count_of(Do::CustomerCount))
    }
}

/// A customer's columns beside the id.
struct Fields<'a> {
    of: &'a Customer,
    texts: [Cow<'a, str>; 7],
    street_address2: Option<Cow<'a, str>>,
    status: i16,
    phone_number_type: i16,
}

impl<'a> Fields<'a> {
    fn of(of: &'a Customer) -> Self {
        let Address { street_address1, street_address2, city, state_province, country, postal_code } =
            &of.address;
        let texts =
            [&of.password, street_address1, city, state_province, country, postal_code, &of.phone_number];
        Fields {
            of,
            texts: texts.map(|text| written(text)),
            street_address2: street_address2.as_deref().map(written),
            status: of.status as i16,
            phone_number_type: of.phone_number_type as i16,
        }
    }

    fn all(&self) -> [&(dyn ToSql + Sync); 12] {
        let [password, street, city, state, country, postal_code, phone] = &self.texts;
        let Customer { total_miles, miles_ytd, .. } = self.of;
        let (status, second, kind) = (&self.status, &self.street_address2, &self.phone_number_type);
        [
            password,
            status,
            total_miles,
            miles_ytd,
            street,
            second,
            city,
            state,
            country,
            postal_code,
            phone,
            kind,
        ]
    }
}

fn customer(row: &Row) -> Result<Customer, tokio_postgres::Error> {
    let (status, kind): (i16, i16) = (row.try_get(2)?, row.try_get(12)?);
    Ok(Customer {
        id: read(row.try_get(0)?),
        password: read(row.try_get(1)?),
        // a number of a later version is told as none
        status: u8::try_from(status).ok().and_then(CustomerStatus::of_number).unwrap_or_default(),
        total_miles: row.try_get(3)?,
        miles_ytd: row.try_get(4)?,
        address: Address {
            street_address1: read(row.try_get(5)?),
            street_address2: row.try_get::<_, Option<&str>>(6)?.map(read),
            city: read(row.try_get(7)?),
            state_province: read(row.try_get(8)?),
            country: read(row.try_get(9)?),
            postal_code: read(row.try_get(10)?),
        },
        phone_number: read(row.try_get(11)?),
        phone_number_type: u8::try_from(kind).ok().and_then(PhoneNumberType::of_number).unwrap_or_default(),
    })
}

/// Bookings as columns, in the order of their keys.
#[derive(Default)]
struct Columns {
    customer_ids: Vec<Arc<str>>,
    ids: Vec<Uuid>,
    flight_ids: Vec<Uuid>,
    segment_ids: Vec<Arc<str>>,
    booked_ms: Vec<i64>,
    places: Vec<i64>,
}

impl Columns {
    /// Of several with one key the last counts: a statement may not change a row twice.
    fn of(bookings: &[Booking]) -> Self {
        let mut places: Vec<usize> = (0..bookings.len()).collect();
        let key = |place: usize| (&bookings[place].customer_id, bookings[place].id);
        // in one order everywhere, so that two statements do not wait for each other
        places.sort_unstable_by_key(|place| (key(*place), std::cmp::Reverse(*place)));
        places.dedup_by(|later, kept| key(*later) == key(*kept));
        let mut columns = Columns::default();
        for place in places {
            let booking = &bookings[place];
            columns.customer_ids.push(booking.customer_id.clone());
            columns.ids.push(Uuid::from_u128(booking.id));
            columns.flight_ids.push(Uuid::from_u128(booking.flight_id));
            columns.segment_ids.push(booking.flight_segment_id.clone());
            columns.booked_ms.push(booking.booked_ms);
            columns.places.push(place as i64);
        }
        columns
    }
}

impl Bookings for Postgres {
    fn add(&self, bookings: &[Booking]) -> Answer<'_, ()> {
        if let Err(error) = check_bookings(bookings) {
            return Answer::ready(Err(error));
        }
        if bookings.is_empty() {
            return Answer::ready(Ok(()));
        }
        let columns = Columns::of(bookings);
        Answer::boxed(async move {
            let Columns { customer_ids, ids, flight_ids, segment_ids, booked_ms, places } = &columns;
            let customer_ids: Vec<_> = customer_ids.iter().map(|id| written(id)).collect();
            let segment_ids: Vec<_> = segment_ids.iter().map(|id| written(id)).collect();
            let parameters: super::Parameters<'_> =
                &[&customer_ids, ids, flight_ids, &segment_ids, booked_ms, places];
            self.change(Do::BookingAdd, parameters).await.map(drop)
        })
    }

    fn of_customer(&self, customer_id: &str) -> Answer<'_, Vec<Booking>> {
        let customer_id: Arc<str> = customer_id.into();
        Answer::boxed(async move {
            let rows = self.rows(Do::BookingList, &[&written(&customer_id)]).await?;
            rows.iter().map(|row| booking(&customer_id, row)).collect::<Result<_, _>>().map_err(malformed)
        })
    }

    fn find(&self, customer_id: &str, id: u128) -> Answer<'_, Option<Booking>> {
        let customer_id: Arc<str> = customer_id.into();
        Answer::boxed(async move {
            let rows = self.rows(Do::BookingFind, &[&written(&customer_id), &Uuid::from_u128(id)]).await?;
            rows.first().map(|row| booking(&customer_id, row)).transpose().map_err(malformed)
        })
    }

    fn cancel(&self, customer_id: &str, id: u128) -> Answer<'_, bool> {
        let customer_id = written(customer_id).into_owned();
        Answer::boxed(async move {
            Ok(self.change(Do::BookingCancel, &[&customer_id, &Uuid::from_u128(id)]).await? > 0)
        })
    }

    fn count(&self) -> Answer<'_, u64> {
        Answer::boxed(self.count_of(Do::BookingCount))
    }
}

fn booking(customer_id: &Arc<str>, row: &Row) -> Result<Booking, tokio_postgres::Error> {
    Ok(Booking {
        id: row.try_get::<_, Uuid>(0)?.as_u128(),
        customer_id: customer_id.clone(),
        flight_id: row.try_get::<_, Uuid>(2)?.as_u128(),
        flight_segment_id: read(row.try_get(3)?).into(),
        booked_ms: row.try_get(4)?,
    })
}
