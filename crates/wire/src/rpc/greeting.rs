//! What a server says first.

use super::varint::{self, Place};
use super::{GREETING, Limits, METHODS_MAX, NAME_BYTES_MAX, RpcError};

/// What a server says in its first frame: what it takes, and which methods it has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Greeting {
    /// What it takes of one frame.
    pub limits: Limits,
    /// Calls that it works on at once for this connection; with so many unanswered it stops reading.
    pub in_flight_max: usize,
    /// Its methods, `service.method`; the place in the list is the method's number.
    pub methods: Vec<String>,
}

impl Greeting {
    /// Appends the greeting, a frame of its own.
    ///
    /// # Errors
    /// Too many methods, or too long a name.
    pub fn write(&self, out: &mut Vec<u8>) -> Result<(), RpcError> {
        let too_long = |name: &String| name.len() > NAME_BYTES_MAX;
        if self.methods.len() > METHODS_MAX || self.methods.iter().any(too_long) {
            return Err(RpcError::GreetingTooLarge);
        }
        out.push(GREETING);
        let Limits { frame_bytes, items, payload_bytes } = self.limits;
        for number in [frame_bytes, items, payload_bytes, self.in_flight_max, self.methods.len()] {
            varint::write(out, number as u64);
        }
        for name in &self.methods {
            varint::write(out, name.len() as u64);
            out.extend_from_slice(name.as_bytes());
        }
        Ok(())
    }

    /// Reads a greeting. What stands behind the methods is of a later version, and not looked at.
    ///
    /// # Errors
    /// Why it is none.
    pub fn read(frame: &[u8]) -> Result<Self, RpcError> {
        let mut place = Place { frame, at: 0 };
        if place.byte()? != GREETING {
            return Err(RpcError::NoGreeting);
        }
        let mut number = || place.number().map(|number| usize::try_from(number).unwrap_or(usize::MAX));
        let limits = Limits { frame_bytes: number()?, items: number()?, payload_bytes: number()? };
        let (in_flight_max, count) = (number()?, number()?);
        if count > METHODS_MAX {
            return Err(RpcError::GreetingTooLarge);
        }
        let mut name = || place.text(NAME_BYTES_MAX, RpcError::GreetingTooLarge).map(str::to_owned);
        let methods = (0..count).map(|_| name()).collect::<Result<_, _>>()?;
        Ok(Greeting { limits, in_flight_max, methods })
    }

    /// The number of a method.
    pub fn number_of(&self, method: &str) -> Option<u32> {
        self.methods.iter().position(|name| name == method).map(|at| at as u32)
    }
}
