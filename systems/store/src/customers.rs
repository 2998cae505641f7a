//! Customers: who they are, where they live.

use serde::{Deserialize, Serialize};

use crate::answer::Answer;

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

impl CustomerStatus {
    /// The one with this number, as it is kept in stores.
    pub(crate) fn of_number(number: u8) -> Option<Self> {
        use CustomerStatus::*;
        [None, Silver, Gold, Platinum, ExecPlatinum, Graphite]
            .into_iter()
            .find(|status| *status as u8 == number)
    }
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

impl PhoneNumberType {
    /// The one with this number, as it is kept in stores.
    pub(crate) fn of_number(number: u8) -> Option<Self> {
        use PhoneNumberType::*;
        [Unknown, Home, Business, Mobile].into_iter().find(|kind| *kind as u8 == number)
    }
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

/// Who can fly.
pub trait Customers: Send + Sync {
    /// The customer with this id.
    fn find(&self, id: &str) -> Answer<'_, Option<Customer>>;

    /// Stores a customer. One with the same id is replaced.
    fn put(&self, customer: Customer) -> Answer<'_, ()>;

    /// Stores `after` in place of `before`, which has the same id, and tells whether it did: not if what is there is not
    /// `before` any more. Of several that change a customer this way at the same time, in whatever process, none
    /// undoes what another did.
    fn replace<'a>(&'a self, before: &'a Customer, after: Customer) -> Answer<'a, bool>;

    /// Stores those of many that are not there yet, for loading; tells how many. Those that are there stay as they are.
    /// Not one atomic write: after an error some are stored.
    fn put_missing<'a>(
        &'a self,
        customers: Box<dyn Iterator<Item = Customer> + Send + 'a>,
    ) -> Answer<'a, u64>;

    /// How many there are.
    fn count(&self) -> Answer<'_, u64>;
}
