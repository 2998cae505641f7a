//! The forms of payloads.

use postcard::ser_flavors::Flavor;
use serde::{Deserialize, Serialize};
use tidemark_wire::rpc;

use super::Refusal;

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
            Form::Json => serde_json::from_slice(bytes).map_err(|error| Refusal::bad(error.to_string())),
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
