//! The forms of payloads.

use postcard::ser_flavors::Flavor;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tidemark_service::{Objects, read_json};
use tidemark_wire::rpc;

use crate::Refusal;

/// The form of the payloads of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Form {
    /// JSON.
    #[default]
    Json,
    /// postcard: compact, and not told what it is.
    Binary,
}

impl Form {
    /// The WebSocket subprotocol with payloads of this form.
    pub fn protocol(self) -> &'static str {
        match self {
            Form::Json => rpc::JSON,
            Form::Binary => rpc::BINARY,
        }
    }

    pub(crate) fn of_protocol(protocol: &str) -> Option<Self> {
        [Form::Json, Form::Binary].into_iter().find(|form| form.protocol() == protocol)
    }

    /// Reads a value.
    ///
    /// # Errors
    /// 400, with what is wrong.
    pub fn read<'a, T: Deserialize<'a>>(self, bytes: &'a [u8]) -> Result<T, Refusal> {
        match self {
            Form::Json => read_json(bytes)
                .or_else(|error| with_whole_numbers(bytes).ok_or_else(|| Refusal::bad(error.to_string()))),
            Form::Binary => match postcard::take_from_bytes(bytes) {
                Ok((value, [])) => Ok(value),
                Ok((_, rest)) => Err(Refusal::bad(format!("{} bytes too many", rest.len()))),
                Err(error) => Err(Refusal::bad(error.to_string())),
            },
        }
    }

    /// Writes a value over what is in `out`.
    ///
    /// # Errors
    /// 500, if it cannot be written in this form.
    pub fn write<T: Serialize + ?Sized>(self, out: &mut Vec<u8>, value: &T) -> Result<(), Refusal> {
        out.clear();
        self.append(out, value)
    }

    /// The same behind what is in `out`. After an error anything may have been appended.
    pub(crate) fn append<T: Serialize + ?Sized>(self, out: &mut Vec<u8>, value: &T) -> Result<(), Refusal> {
        let failed = |error: &dyn std::fmt::Display| Refusal::new(rpc::code::INTERNAL, error.to_string());
        match self {
            Form::Json => serde_json::to_writer(out, value).map_err(|error| failed(&error)),
            Form::Binary => {
                let flavor = Appending(out);
                postcard::serialize_with_flavor(value, flavor).map_err(|error| failed(&error))
            }
        }
    }
}

/// Reads JSON in which a whole number is written with a fraction or an exponent, as JSON Schema, and with it the OpenAPI
/// description, takes `1.0` and `1e3` for integers. Asked only where it could not be read as it stands.
fn with_whole_numbers<'a, T: Deserialize<'a>>(bytes: &[u8]) -> Option<T> {
    let mut value = serde_json::from_slice(bytes).ok()?;
    T::deserialize(Objects(if make_whole(&mut value) { value } else { return None })).ok()
}

/// Makes integers of all numbers that are whole; whether there was one that was none before.
fn make_whole(value: &mut Value) -> bool {
    match value {
        Value::Number(number) => {
            let whole = number.as_f64().filter(|_| number.is_f64()).and_then(whole);
            if let Some(whole) = whole {
                *number = whole.into();
            }
            whole.is_some()
        }
        Value::Array(values) => values.iter_mut().fold(false, |some, value| make_whole(value) | some),
        Value::Object(members) => members.values_mut().fold(false, |some, value| make_whole(value) | some),
        _ => false,
    }
}

/// The integer that is this number, as far as a float has all of them.
pub(crate) fn whole(number: f64) -> Option<i64> {
    const EXACT: f64 = (1u64 << 53) as f64;
    (number.fract() == 0.0 && number.abs() <= EXACT).then_some(number as i64)
}

struct Appending<'a>(&'a mut Vec<u8>);

impl Flavor for Appending<'_> {
    type Output = ();

    fn try_push(&mut self, byte: u8) -> postcard::Result<()> {
        self.0.push(byte);
        Ok(())
    }

    fn try_extend(&mut self, bytes: &[u8]) -> postcard::Result<()> {
        self.0.extend_from_slice(bytes);
        Ok(())
    }

    fn finalize(self) -> postcard::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_integer_may_be_written_with_a_fraction_as_its_schema_has_it() {
        let read = |text: &str| Form::Json.read::<(u32, Vec<i64>, f64)>(text.as_bytes());
        assert_eq!(read("[0.0, [1e3, -2.0], 3.0]"), Ok((0, vec![1000, -2], 3.0)));
        assert_eq!(read("[-0.0, [], 3]"), Ok((0, vec![], 3.0)));
        for wrong in
            ["[0.5, [], 3]", "[-1.0, [], 3]", "[1e300, [], 3]", "[4294967296.0, [], 3]", "[0.0, [], 3"]
        {
            assert_eq!(read(wrong).unwrap_err().code(), 400, "{wrong}");
        }
    }

    #[test]
    fn a_value_comes_back_in_either_form() {
        for form in [Form::Json, Form::Binary] {
            let mut bytes = b"old".to_vec();
            form.write(&mut bytes, &("ibm", 7u32, Some(1.5))).unwrap();
            assert_eq!(
                form.read::<(String, u32, Option<f64>)>(&bytes).unwrap(),
                ("ibm".into(), 7, Some(1.5))
            );
            bytes.push(b'x');
            assert_eq!(form.read::<(String, u32, Option<f64>)>(&bytes).unwrap_err().code(), 400);
            assert_eq!(Form::of_protocol(form.protocol()), Some(form));
            form.write(&mut bytes, &[false; 0]).unwrap();
            assert!(form.read::<[bool; 0]>(&bytes).is_ok());
        }
    }
}
