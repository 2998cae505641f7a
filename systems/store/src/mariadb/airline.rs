//! Customers and bookings of an airline: tables, statements and rows.
//!
//! Ids are bytes, since as texts the longest would be too long for a key. A booking gets the number of its addition from its table;
//! one that is replaced gets a new one. A customer's row counts its changes, so that each of them changes something.

use std::collections::HashMap;
use std::sync::Arc;

use mysql_async::{Row, Value};

use super::schema::Schema;
use super::{Options, Server, column};
use crate::answer::Answer;
use crate::bookings::{Booking, Bookings};
use crate::checks::{check_bookings, check_customer};
use crate::customers::{Address, Customer, CustomerStatus, Customers, PhoneNumberType};
use crate::durability::Durability;
use crate::error::StoreError;
use crate::metrics::OwnMetric;

/// Customers in one statement of [`Customers::put_missing`]: less than the 16 MiB that a server takes at a time.
const CUSTOMERS_PER_STATEMENT: usize = 256;

/// Customers and bookings in MariaDB.
pub struct Mariadb {
    server: Server,
}

const SCHEMA: Schema = Schema {
    migrations: "airline_migrations",
    steps: STEPS,
    indexes: &["airline_bookings_added"],
    others: "it has tables airline_customers and airline_bookings of others; name a database without them",
    statements: &[
        CUSTOMER_FIND,
        CUSTOMER_REPLACE,
        CUSTOMER_COUNT,
        BOOKING_LIST,
        BOOKING_FIND,
        BOOKING_CANCEL,
        BOOKING_COUNT,
    ],
};

const STEPS: &[&[&str]] = &[&[
    "CREATE TABLE IF NOT EXISTS airline_customers (
        id varbinary(1024) NOT NULL PRIMARY KEY,
        password text NOT NULL,
        status tinyint unsigned NOT NULL,
        total_miles bigint NOT NULL,
        miles_ytd bigint NOT NULL,
        street_address1 text NOT NULL,
        street_address2 text,
        city text NOT NULL,
        state_province text NOT NULL,
        country text NOT NULL,
        postal_code text NOT NULL,
        phone_number text NOT NULL,
        phone_number_type tinyint unsigned NOT NULL,
        version bigint unsigned NOT NULL DEFAULT 0
    ) ENGINE=InnoDB CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin",
    "CREATE TABLE IF NOT EXISTS airline_bookings (
        customer_id varbinary(1024) NOT NULL,
        id binary(16) NOT NULL,
        flight_id binary(16) NOT NULL,
        flight_segment_id varbinary(1024) NOT NULL,
        booked_ms bigint NOT NULL,
        added bigint unsigned NOT NULL AUTO_INCREMENT,
        PRIMARY KEY (customer_id, id),
        UNIQUE INDEX airline_bookings_added (added)
    ) ENGINE=InnoDB",
]];

/// Those of a customer beside the id.
macro_rules! columns {
    () => {
        "password, status, total_miles, miles_ytd, street_address1, street_address2, city, state_province, country, \
         postal_code, phone_number, phone_number_type"
    };
}

const CUSTOMER_FIND: &str = concat!("SELECT id, ", columns!(), " FROM airline_customers WHERE id = ?");
const CUSTOMER_REPLACE: &str = "UPDATE airline_customers SET password = ?, status = ?, total_miles = ?, miles_ytd = ?, \
     street_address1 = ?, street_address2 = ?, city = ?, state_province = ?, country = ?, postal_code = ?, phone_number = ?, \
     phone_number_type = ?, version = version + 1 \
     WHERE id = ? AND password = ? AND status = ? AND total_miles = ? AND miles_ytd = ? AND street_address1 = ? \
     AND street_address2 <=> ? AND city = ? AND state_province = ? AND country = ? AND postal_code = ? AND phone_number = ? \
     AND phone_number_type = ?";
const CUSTOMER_COUNT: &str = "SELECT count(*) FROM airline_customers";
const BOOKING_LIST: &str = "SELECT id, flight_id, flight_segment_id, booked_ms FROM airline_bookings WHERE customer_id = ? ORDER BY added";
const BOOKING_FIND: &str = "SELECT id, flight_id, flight_segment_id, booked_ms FROM airline_bookings WHERE customer_id = ? AND id = ?";
const BOOKING_CANCEL: &str = "DELETE FROM airline_bookings WHERE customer_id = ? AND id = ?";
const BOOKING_COUNT: &str = "SELECT count(*) FROM airline_bookings";

/// What stores one customer or several.
const CUSTOMERS_INSERT: &str = concat!("INSERT INTO airline_customers (id, ", columns!(), ") VALUES ");
/// What stores one booking or several; one that is there is removed and added again.
const BOOKINGS_REPLACE: &str =
    "REPLACE INTO airline_bookings (customer_id, id, flight_id, flight_segment_id, booked_ms) VALUES ";

/// What is done about a customer that is there.
#[derive(Clone, Copy)]
enum There {
    Replace,
    Keep,
}

impl There {
    fn text(self) -> &'static str {
        match self {
            There::Replace => {
                " ON DUPLICATE KEY UPDATE password = VALUE(password), status = VALUE(status), \
                 total_miles = VALUE(total_miles), miles_ytd = VALUE(miles_ytd), street_address1 = VALUE(street_address1), \
                 street_address2 = VALUE(street_address2), city = VALUE(city), state_province = VALUE(state_province), \
                 country = VALUE(country), postal_code = VALUE(postal_code), phone_number = VALUE(phone_number), \
                 phone_number_type = VALUE(phone_number_type), version = version + 1"
            }
            // changes nothing, and hides no other mistake
            There::Keep => " ON DUPLICATE KEY UPDATE version = version",
        }
    }
}

/// A statement with the values of so many rows of so many columns.
fn with_rows(begin: &str, rows: usize, columns: usize, end: &str) -> String {
    let row = format!("({})", vec!["?"; columns].join(", "));
    format!("{begin}{}{end}", vec![row; rows].join(", "))
}

impl Mariadb {
    /// Connects, waiting for a server that is not there yet, and makes the tables where they are not there. Blocks; not to be
    /// called on a thread of an async runtime.
    ///
    /// # Errors
    /// Options that cannot work, a server that is not there in time, refuses, has tables of others or of a later version, or
    /// keeps less than was asked for.
    pub fn open(options: Options) -> Result<Arc<Self>, StoreError> {
        Ok(Arc::new(Mariadb { server: Server::open(options, &SCHEMA)? }))
    }

    /// What an acknowledged write is worth here, at least.
    pub fn durability(&self) -> Durability {
        self.server.durability
    }

    /// What is counted about connections and requests.
    pub fn metrics(&self) -> Vec<OwnMetric> {
        self.server.links.metrics()
    }

    async fn count_of(&self, text: &'static str) -> Result<u64, StoreError> {
        let rows = self.server.rows(text, Vec::new()).await?;
        rows.first().map_or(Ok(0), |row| column(row, 0))
    }

    /// Stores customers with one statement; tells how many rows it changed. Of several with one id the last counts.
    async fn put_all(&self, customers: Vec<Customer>, there: There) -> Result<u64, StoreError> {
        customers.iter().try_for_each(check_customer)?;
        let last: HashMap<&str, &Customer> = customers.iter().map(|of| (&*of.id, of)).collect();
        let mut kept: Vec<&Customer> = last.into_values().collect();
        // in one order everywhere, so that two statements do not wait for each other
        kept.sort_unstable_by(|a, b| a.id.cmp(&b.id));
        let text = with_rows(CUSTOMERS_INSERT, kept.len(), 13, there.text());
        let values = kept.iter().flat_map(|of| std::iter::once(id_of(of)).chain(fields(of))).collect();
        self.server.change(text, values).await
    }
}

fn id_of(customer: &Customer) -> Value {
    (&*customer.id).into()
}

/// A customer's columns beside the id.
fn fields(of: &Customer) -> [Value; 12] {
    let Address { street_address1, street_address2, city, state_province, country, postal_code } =
        &of.address;
    [
        (&*of.password).into(),
        (of.status as u8).into(),
        of.total_miles.into(),
        of.miles_ytd.into(),
        street_address1.into(),
        street_address2.as_ref().into(),
        city.into(),
        state_province.into(),
        country.into(),
        postal_code.into(),
        (&*of.phone_number).into(),
        (of.phone_number_type as u8).into(),
    ]
}

fn customer(row: &Row) -> Result<Customer, StoreError> {
    Ok(Customer {
        id: column(row, 0)?,
        password: column(row, 1)?,
        // a number of a later version is told as none
        status: CustomerStatus::of_number(column(row, 2)?).unwrap_or_default(),
        total_miles: column(row, 3)?,
        miles_ytd: column(row, 4)?,
        address: Address {
            street_address1: column(row, 5)?,
            street_address2: column(row, 6)?,
            city: column(row, 7)?,
            state_province: column(row, 8)?,
            country: column(row, 9)?,
            postal_code: column(row, 10)?,
        },
        phone_number: column(row, 11)?,
        phone_number_type: PhoneNumberType::of_number(column(row, 12)?).unwrap_or_default(),
    })
}

impl Customers for Mariadb {
    fn find(&self, id: &str) -> Answer<'_, Option<Customer>> {
        let key = vec![id.into()];
        Answer::boxed(
            async move { self.server.rows(CUSTOMER_FIND, key).await?.first().map(customer).transpose() },
        )
    }

    fn put(&self, customer: Customer) -> Answer<'_, ()> {
        Answer::boxed(async move { self.put_all(vec![customer], There::Replace).await.map(drop) })
    }

    fn replace<'a>(&'a self, before: &'a Customer, after: Customer) -> Answer<'a, bool> {
        if let Err(error) = check_customer(&after) {
            return Answer::ready(Err(error));
        }
        if before.id != after.id {
            return Answer::ready(Ok(false));
        }
        let values = fields(&after).into_iter().chain([id_of(before)]).chain(fields(before)).collect();
        Answer::boxed(async move { Ok(self.server.change(CUSTOMER_REPLACE, values).await? > 0) })
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
                stored += self.put_all(some, There::Keep).await?;
            }
        })
    }

    fn count(&self) -> Answer<'_, u64> {
        Answer::boxed(self.count_of(CUSTOMER_COUNT))
    }
}

/// A UUID as it is kept.
fn bytes(id: u128) -> Value {
    Value::Bytes(id.to_be_bytes().into())
}

fn id(row: &Row, place: usize) -> Result<u128, StoreError> {
    let bytes: Vec<u8> = column(row, place)?;
    let bytes =
        bytes.try_into().map_err(|_| StoreError::no_answer("an id in the tables has not 16 bytes"))?;
    Ok(u128::from_be_bytes(bytes))
}

fn booking(customer_id: &Arc<str>, row: &Row) -> Result<Booking, StoreError> {
    Ok(Booking {
        id: id(row, 0)?,
        customer_id: customer_id.clone(),
        flight_id: id(row, 1)?,
        flight_segment_id: column::<String>(row, 2)?.into(),
        booked_ms: column(row, 3)?,
    })
}

impl Bookings for Mariadb {
    fn add(&self, bookings: &[Booking]) -> Answer<'_, ()> {
        if let Err(error) = check_bookings(bookings) {
            return Answer::ready(Err(error));
        }
        if bookings.is_empty() {
            return Answer::ready(Ok(()));
        }
        let text = with_rows(BOOKINGS_REPLACE, bookings.len(), 5, "");
        let values = bookings.iter().flat_map(|of| {
            let Booking { id, customer_id, flight_id, flight_segment_id, booked_ms } = of;
            [
                (&**customer_id).into(),
                bytes(*id),
                bytes(*flight_id),
                (&**flight_segment_id).into(),
                booked_ms.into(),
            ]
        });
        let values = values.collect();
        Answer::boxed(async move { self.server.change(text, values).await.map(drop) })
    }

    fn of_customer(&self, customer_id: &str) -> Answer<'_, Vec<Booking>> {
        let customer_id: Arc<str> = customer_id.into();
        Answer::boxed(async move {
            let rows = self.server.rows(BOOKING_LIST, vec![(&*customer_id).into()]).await?;
            rows.iter().map(|row| booking(&customer_id, row)).collect()
        })
    }

    fn find(&self, customer_id: &str, id: u128) -> Answer<'_, Option<Booking>> {
        let customer_id: Arc<str> = customer_id.into();
        Answer::boxed(async move {
            let rows = self.server.rows(BOOKING_FIND, vec![(&*customer_id).into(), bytes(id)]).await?;
            rows.first().map(|row| booking(&customer_id, row)).transpose()
        })
    }

    fn cancel(&self, customer_id: &str, id: u128) -> Answer<'_, bool> {
        let key = vec![customer_id.into(), bytes(id)];
        Answer::boxed(async move { Ok(self.server.change(BOOKING_CANCEL, key).await? > 0) })
    }

    fn count(&self) -> Answer<'_, u64> {
        Answer::boxed(self.count_of(BOOKING_COUNT))
    }
}
