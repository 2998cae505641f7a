//! The table of customers. Their rows are flat bytes, in the log as well as in memory.
//!
//! Every record begins with the byte of its format, so that a later version can tell old records from its own.
//! Integers are little-endian.

use crate::checks::{check_customer, texts_of};
use crate::customers::{Address, Customer, CustomerStatus, PhoneNumberType};
use crate::engine::bytes::{Malformed, Reader, write_optional_text};
use crate::engine::rows::{Keyed, Row};
use crate::error::StoreError;

/// First byte of every record.
const FORMAT: u8 = 1;

/// A customer as one block of bytes: what the log keeps, and also what memory keeps, because a dozen `String`s
/// each would cost several times as much with millions of customers. The row of the table of customers.
#[derive(Debug, Clone)]
pub(crate) struct CustomerRecord(Box<[u8]>);

impl CustomerRecord {
    /// Format byte and length of the id.
    const HEAD_BYTES: usize = 3;

    pub(crate) fn new(customer: &Customer) -> Result<Self, StoreError> {
        check_customer(customer)?;
        let texts = texts_of(customer);
        let length = Self::HEAD_BYTES
            + customer.id.len()
            + 18
            + texts.iter().map(|(_, text)| 2 + text.map_or(0, str::len)).sum::<usize>();
        let mut bytes = Vec::with_capacity(length);
        bytes.push(FORMAT);
        bytes.extend_from_slice(&(customer.id.len() as u16).to_le_bytes());
        bytes.extend_from_slice(customer.id.as_bytes());
        bytes.push(customer.status as u8);
        bytes.push(customer.phone_number_type as u8);
        bytes.extend_from_slice(&customer.total_miles.to_le_bytes());
        bytes.extend_from_slice(&customer.miles_ytd.to_le_bytes());
        for (_, text) in texts {
            write_optional_text(text, &mut bytes);
        }
        debug_assert_eq!(bytes.len(), length);
        Ok(CustomerRecord(bytes.into_boxed_slice()))
    }

    /// From what the log kept; checked, so that reading it later cannot fail.
    pub(crate) fn from_log(bytes: &[u8]) -> Result<Self, Malformed> {
        decode_customer(bytes)?;
        Ok(CustomerRecord(bytes.into()))
    }

    pub(crate) fn id_bytes(&self) -> &[u8] {
        let length = usize::from(u16::from_le_bytes([self.0[1], self.0[2]]));
        &self.0[Self::HEAD_BYTES..Self::HEAD_BYTES + length]
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.0
    }

    pub(crate) fn to_customer(&self) -> Customer {
        decode_customer(&self.0).expect("records are checked when they are made")
    }
}

impl Keyed for CustomerRecord {
    type Key = [u8];

    fn key(&self) -> &[u8] {
        self.id_bytes()
    }
}

impl Row for CustomerRecord {
    const TABLE: u8 = 2;
    const NAME: &'static str = "customers";
    type Index = ();

    fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&(self.0.len() as u32).to_le_bytes());
        out.extend_from_slice(&self.0);
    }

    fn decode(entry: &mut Reader<'_>) -> Result<Self, Malformed> {
        let length = u32::from_le_bytes(entry.array()?) as usize;
        CustomerRecord::from_log(entry.bytes(length)?)
    }

    fn encode_key(id: &[u8], out: &mut Vec<u8>) {
        out.extend_from_slice(&(id.len() as u16).to_le_bytes());
        out.extend_from_slice(id);
    }

    fn decode_key(entry: &mut Reader<'_>) -> Result<Vec<u8>, Malformed> {
        let length = u16::from_le_bytes(entry.array()?);
        Ok(entry.bytes(length.into())?.to_vec())
    }
}

fn decode_customer(bytes: &[u8]) -> Result<Customer, Malformed> {
    let mut reader = Reader(bytes);
    match reader.array()? {
        [FORMAT] => {}
        _ => return Err("it was written by another version"),
    }
    let id = reader.text()?.to_owned();
    let [status, phone] = reader.array()?;
    let total_miles = i64::from_le_bytes(reader.array()?);
    let miles_ytd = i64::from_le_bytes(reader.array()?);
    let password = reader.text()?.to_owned();
    let address = Address {
        street_address1: reader.text()?.to_owned(),
        street_address2: reader.optional_text()?.map(str::to_owned),
        city: reader.text()?.to_owned(),
        state_province: reader.text()?.to_owned(),
        country: reader.text()?.to_owned(),
        postal_code: reader.text()?.to_owned(),
    };
    let phone_number = reader.text()?.to_owned();
    if !reader.0.is_empty() {
        return Err("it is too long");
    }
    Ok(Customer {
        id,
        password,
        status: CustomerStatus::of_number(status).ok_or("its status is unknown")?,
        total_miles,
        miles_ytd,
        address,
        phone_number,
        phone_number_type: PhoneNumberType::of_number(phone).ok_or("its phone number type is unknown")?,
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn customers() -> impl Strategy<Value = Customer> {
        let texts = prop::collection::vec(".{0,20}", 7);
        (".{1,30}", texts, prop::option::of(".{0,20}"), any::<(i64, i64)>(), 0..6u8, 0..4u8).prop_map(
            |(id, texts, street_address2, (total_miles, miles_ytd), status, phone)| {
                let mut texts = texts.into_iter();
                let mut next = || texts.next().unwrap();
                Customer {
                    id,
                    password: next(),
                    status: CustomerStatus::of_number(status).unwrap(),
                    total_miles,
                    miles_ytd,
                    address: Address {
                        street_address1: next(),
                        street_address2,
                        city: next(),
                        state_province: next(),
                        country: next(),
                        postal_code: next(),
                    },
                    phone_number: next(),
                    phone_number_type: PhoneNumberType::of_number(phone).unwrap(),
                }
            },
        )
    }

    proptest! {
        #[test]
        fn customers_read_back(customer in customers()) {
            let record = CustomerRecord::new(&customer).unwrap();
            prop_assert_eq!(record.id_bytes(), customer.id.as_bytes());
            prop_assert_eq!(CustomerRecord::from_log(record.bytes()).unwrap().to_customer(), customer);
        }

        #[test]
        fn a_cut_customer_is_malformed(customer in customers(), cut in any::<prop::sample::Index>()) {
            let record = CustomerRecord::new(&customer).unwrap();
            let cut = cut.index(record.bytes().len());
            prop_assert!(CustomerRecord::from_log(&record.bytes()[..cut]).is_err());
        }

        #[test]
        fn any_bytes_are_read_without_panic(bytes in prop::collection::vec(any::<u8>(), 0..80)) {
            let _ = CustomerRecord::from_log(&bytes);
        }
    }

    #[test]
    fn a_reference_customer_is_small() {
        let customer = Customer { id: "uid123456@email.com".into(), ..Customer::default() };
        assert!(CustomerRecord::new(&customer).unwrap().bytes().len() < 64);
    }
}
