//! Values that the tests store.

use std::future::Future;
use std::sync::Arc;

use tidemark_store::bookings::Booking;
use tidemark_store::customers::{Address, Customer, CustomerStatus, PhoneNumberType};
use tidemark_store::sessions::Session;

pub fn wait<T>(answer: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(answer)
}

pub fn session(id: u128, expires_ms: i64) -> Session {
    Session { id, customer_id: format!("uid{id}@email.com").into(), created_ms: expires_ms - 100, expires_ms }
}

pub fn booking(customer_id: &str, id: u128, flight_id: u128) -> Booking {
    Booking {
        id,
        customer_id: customer_id.into(),
        flight_id,
        flight_segment_id: Arc::from(format!("AA{}", flight_id % 394)),
        booked_ms: 1_700_000_000_000 + flight_id as i64 % 1000,
    }
}

pub fn customer(id: &str, miles_ytd: i64) -> Customer {
    Customer {
        id: id.into(),
        password: "password".into(),
        status: CustomerStatus::Gold,
        total_miles: 1_000_000,
        miles_ytd,
        address: Address {
            street_address1: "123 Main St.".into(),
            street_address2: (miles_ytd % 2 == 0).then(|| "Apt. Ü".into()),
            city: "Anytown".into(),
            state_province: "NC".into(),
            country: "USA".into(),
            postal_code: "27617".into(),
        },
        phone_number: "919-123-4567".into(),
        phone_number_type: PhoneNumberType::Business,
    }
}
