//! Customers: how they are made, how they are shown, and what of them can be changed.

use serde::{Deserialize, Serialize};
use serde_json::Number;
use tidemark_store::customers::{Address, Customer, CustomerStatus, PhoneNumberType};

use crate::refusal::Refusal;

/// Most customers that can be generated.
pub const CUSTOMERS_MAX: u64 = 10_000_000;
/// No text about a customer has more characters.
pub(crate) const TEXT_CHARS_MAX: usize = 256;

/// The login name of a generated customer.
pub fn customer_id(number: u64) -> String {
    format!("uid{number}@email.com")
}

/// A generated customer: all are alike but for their name. The password is `password`, and stored as it is,
/// because the benchmark stores it so: these are no real people.
pub fn generated(number: u64) -> Customer {
    Customer {
        id: customer_id(number),
        password: "password".into(),
        status: CustomerStatus::Gold,
        total_miles: 1_000_000,
        miles_ytd: 1_000,
        address: Address {
            street_address1: "123 Main St.".into(),
            street_address2: None,
            city: "Anytown".into(),
            state_province: "NC".into(),
            country: "USA".into(),
            postal_code: "27617".into(),
        },
        phone_number: "919-123-4567".into(),
        phone_number_type: PhoneNumberType::Business,
    }
}

/// A customer as JSON for its owner: everything but the password.
pub fn shown(customer: &Customer) -> Vec<u8> {
    #[derive(Serialize)]
    struct Shown<'a> {
        #[serde(rename = "_id")]
        id: &'a str,
        status: CustomerStatus,
        total_miles: i64,
        miles_ytd: i64,
        address: &'a Address,
        #[serde(rename = "phoneNumber")]
        phone_number: &'a str,
        #[serde(rename = "phoneNumberType")]
        phone_number_type: PhoneNumberType,
        username: &'a str,
    }
    let shown = Shown {
        id: &customer.id,
        status: customer.status,
        total_miles: customer.total_miles,
        miles_ytd: customer.miles_ytd,
        address: &customer.address,
        phone_number: &customer.phone_number,
        phone_number_type: customer.phone_number_type,
        username: &customer.id,
    };
    // Strings and numbers always serialise.
    serde_json::to_vec(&shown).unwrap_or_default()
}

/// What a client sends to change a customer. Other fields are tolerated and have no effect: nobody makes himself
/// platinum.
#[derive(Debug, Deserialize)]
pub struct Change {
    #[serde(rename = "_id")]
    id: Option<String>,
    username: Option<String>,
    password: Option<String>,
    address: Option<ChangedAddress>,
    #[serde(rename = "phoneNumber")]
    phone_number: Option<Text>,
    #[serde(rename = "phoneNumberType")]
    phone_number_type: Option<PhoneNumberType>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct ChangedAddress {
    street_address1: Text,
    #[serde(default)]
    street_address2: Option<Text>,
    city: Text,
    state_province: Text,
    country: Text,
    postal_code: Text,
}

/// A text that some clients send as a number: postal code, telephone.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Text {
    Text(String),
    Number(Number),
}

impl Text {
    fn checked(&self, field: &str) -> Result<String, Refusal> {
        match self {
            Text::Number(number) => whole(number)
                .map(|number| number.to_string())
                .ok_or_else(|| Refusal::bad_request(format!("{field} is neither a text nor a whole number"))),
            // bytes are counted faster, and there are no fewer
            Text::Text(text) if text.len() <= TEXT_CHARS_MAX || text.chars().count() <= TEXT_CHARS_MAX => {
                Ok(text.clone())
            }
            Text::Text(_) => {
                Err(Refusal::bad_request(format!("{field} is longer than {TEXT_CHARS_MAX} characters")))
            }
        }
    }
}

/// Largest number up to which all whole ones are told apart by JSON's.
const EXACT_MAX: f64 = ((1_i64 << 53) - 1) as f64;

/// The whole number that it is; in JSON `1.0` is one, too.
fn whole(number: &Number) -> Option<i64> {
    let exact = number.as_f64().filter(|number| number.fract() == 0.0 && number.abs() <= EXACT_MAX);
    exact.map(|number| number as i64)
}

impl Change {
    /// Reads the JSON that was sent.
    pub fn parse(body: &[u8]) -> Result<Self, Refusal> {
        tidemark_service::read_json(body)
            .map_err(|error| Refusal::bad_request(format!("not a customer as JSON: {error}")))
    }

    /// Whether it is about this customer. It must say whom it is about, by `_id` or `username`.
    pub fn is_about(&self, customer_id: &str) -> Result<bool, Refusal> {
        if self.id.is_none() && self.username.is_none() {
            return Err(Refusal::bad_request("_id or username must say which customer it is"));
        }
        Ok(self.id.iter().chain(&self.username).all(|named| named == customer_id))
    }

    /// Whether it carries the customer's present password.
    pub fn knows_password_of(&self, customer: &Customer) -> bool {
        self.password.as_deref() == Some(customer.password.as_str())
    }

    /// Changes address and telephone of the customer.
    pub fn apply(&self, customer: &mut Customer) -> Result<(), Refusal> {
        let address = self.address.as_ref().ok_or_else(|| Refusal::bad_request("the address is missing"))?;
        let old = &mut customer.address;
        old.street_address1 = address.street_address1.checked("streetAddress1")?;
        if let Some(text) = &address.street_address2 {
            old.street_address2 = Some(text.checked("streetAddress2")?);
        }
        old.city = address.city.checked("city")?;
        old.state_province = address.state_province.checked("stateProvince")?;
        old.country = address.country.checked("country")?;
        old.postal_code = address.postal_code.checked("postalCode")?;
        if let Some(number) = &self.phone_number {
            customer.phone_number = number.checked("phoneNumber")?;
        }
        if let Some(kind) = self.phone_number_type {
            customer.phone_number_type = kind;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_customer_is_shown_without_the_password() {
        let json: serde_json::Value = serde_json::from_slice(&shown(&generated(7))).unwrap();
        let expected = serde_json::json!({
            "_id": "uid7@email.com", "status": "GOLD", "total_miles": 1000000, "miles_ytd": 1000,
            "address": {"streetAddress1": "123 Main St.", "city": "Anytown", "stateProvince": "NC",
                "country": "USA", "postalCode": "27617"},
            "phoneNumber": "919-123-4567", "phoneNumberType": "BUSINESS", "username": "uid7@email.com"
        });
        assert_eq!(json, expected);
    }

    #[test]
    fn only_address_and_telephone_change() {
        let body =
            br#"{"_id":"uid0@email.com","password":"password","status":"GRAPHITE","total_miles":1,"x":[],
            "address":{"streetAddress1":"124 Main St.","streetAddress2":"b","city":"c","stateProvince":"SC",
            "country":"d","postalCode":27618},"phoneNumber":"1","phoneNumberType":"MOBILE"}"#;
        let change = Change::parse(body).unwrap();
        assert!(change.is_about("uid0@email.com").unwrap() && !change.is_about("uid1@email.com").unwrap());
        let mut customer = generated(0);
        assert!(change.knows_password_of(&customer));
        change.apply(&mut customer).unwrap();
        assert_eq!((customer.status, customer.total_miles), (CustomerStatus::Gold, 1_000_000));
        assert_eq!(customer.address.postal_code, "27618");
        assert_eq!(customer.address.street_address2.as_deref(), Some("b"));
        assert_eq!(customer.phone_number_type, PhoneNumberType::Mobile);
        assert_eq!(customer.password, "password");
    }

    #[test]
    fn broken_changes_are_refused() {
        for body in [
            "",
            "{",
            "[]",
            "null",
            r#"{"phoneNumberType":"PIGEON"}"#,
            r#"{"address":{"city":"x"}}"#,
            r#"{"address":["1 Main St.",null,"c","NC","d","27618"]}"#,
            r#"["uid0@email.com","uid0@email.com","password",null,"1","HOME"]"#,
        ] {
            assert_eq!(Change::parse(body.as_bytes()).unwrap_err().status(), 400, "{body}");
        }
        assert_eq!(Change::parse(b"{}").unwrap().is_about("x").unwrap_err().status(), 400);
        assert_eq!(Change::parse(b"{}").unwrap().apply(&mut generated(0)).unwrap_err().status(), 400);
        let change = Change::parse(br#"{"_id":"uid0@email.com","username":"uid1@email.com"}"#).unwrap();
        assert!(!change.is_about("uid0@email.com").unwrap(), "both names must be the same");
        let long = "x".repeat(TEXT_CHARS_MAX + 1);
        assert!(Text::Text(long).checked("city").is_err());
        assert!(Text::Text("é".repeat(TEXT_CHARS_MAX)).checked("city").is_ok());
    }

    #[test]
    fn a_whole_number_is_one_however_it_is_written() {
        let read = |text: &str| serde_json::from_str::<Text>(text).unwrap().checked("postalCode").ok();
        assert_eq!(read("27618").as_deref(), Some("27618"));
        assert_eq!(read("27618.0").as_deref(), Some("27618"));
        assert_eq!(read("-0.0").as_deref(), Some("0"));
        assert_eq!(read("9007199254740991").as_deref(), Some("9007199254740991"));
        for wrong in ["0.5", "9007199254740992", "1e300"] {
            assert_eq!(read(wrong), None, "{wrong}");
        }
    }

    proptest! {
        #[test]
        fn no_body_makes_it_panic(body: Vec<u8>) {
            let _ = Change::parse(&body);
        }
    }
}
