//! Whole numbers, seven bits a byte, the lowest first; and places in a frame.

use super::RpcError;
use crate::protobuf::push_varint;

pub(super) fn write(out: &mut Vec<u8>, number: u64) {
    push_varint(number, out);
}

/// Small differences, both ways, as small numbers.
pub(super) fn zigzag(difference: i64) -> u64 {
    ((difference << 1) ^ (difference >> 63)) as u64
}

fn unzigzag(number: u64) -> i64 {
    (number >> 1) as i64 ^ -((number & 1) as i64)
}

/// A place in a frame.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place<'a> {
    pub(super) frame: &'a [u8],
    pub(super) at: usize,
}

impl<'a> Place<'a> {
    #[inline]
    pub(super) fn byte(&mut self) -> Result<u8, RpcError> {
        let byte = *self.frame.get(self.at).ok_or(RpcError::CutOff)?;
        self.at += 1;
        Ok(byte)
    }

    #[inline]
    pub(super) fn number(&mut self) -> Result<u64, RpcError> {
        let first = self.byte()?;
        if first < 0x80 {
            return Ok(first.into());
        }
        self.long_number(first)
    }

    fn long_number(&mut self, first: u8) -> Result<u64, RpcError> {
        let mut number = u64::from(first & 0x7f);
        for shift in (7..64).step_by(7) {
            let byte = self.byte()?;
            // the tenth byte has room for one bit; a last byte of 0 says nothing
            if (shift == 63 && byte > 1) || byte == 0 {
                return Err(RpcError::Number);
            }
            number |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(number);
            }
        }
        Err(RpcError::Number)
    }

    pub(super) fn difference(&mut self) -> Result<i64, RpcError> {
        self.number().map(unzigzag)
    }

    /// A length and so many bytes.
    #[inline]
    pub(super) fn bytes(&mut self, max: usize, too_long: RpcError) -> Result<&'a [u8], RpcError> {
        let length = self.number()?;
        if length > max as u64 {
            return Err(too_long);
        }
        let end = self.at + length as usize;
        let bytes = self.frame.get(self.at..end).ok_or(RpcError::CutOff)?;
        self.at = end;
        Ok(bytes)
    }

    pub(super) fn text(&mut self, max: usize, too_long: RpcError) -> Result<&'a str, RpcError> {
        std::str::from_utf8(self.bytes(max, too_long)?).map_err(|_| RpcError::Text)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(frame: &[u8]) -> Result<(u64, usize), RpcError> {
        let mut place = Place { frame, at: 0 };
        place.number().map(|number| (number, place.at))
    }

    proptest! {
        #[test]
        fn every_number_is_read_as_it_was_written(number: u64, bits in 0u32..64) {
            let number = number >> bits;
            let mut frame = Vec::new();
            write(&mut frame, number);
            prop_assert_eq!(read(&frame), Ok((number, frame.len())));
            for cut in 0..frame.len() {
                prop_assert_eq!(read(&frame[..cut]), Err(RpcError::CutOff));
            }
        }

        #[test]
        fn every_difference_is_read_as_it_was_written(difference: i64, bits in 0u32..64) {
            let difference = difference >> bits;
            prop_assert_eq!(unzigzag(zigzag(difference)), difference);
        }

        #[test]
        fn a_number_has_one_form(bytes in prop::collection::vec(any::<u8>(), 1..12)) {
            if let Ok((number, taken)) = read(&bytes) {
                let mut again = Vec::new();
                write(&mut again, number);
                prop_assert_eq!(&bytes[..taken], &again[..]);
            }
        }
    }

    #[test]
    fn numbers_beyond_64_bits_and_padded_ones_are_refused() {
        let largest = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01];
        assert_eq!(read(&largest), Ok((u64::MAX, 10)));
        let mut beyond = largest;
        beyond[9] = 0x02;
        assert_eq!(read(&beyond), Err(RpcError::Number));
        assert_eq!(read(&[0xff; 11]), Err(RpcError::Number));
        assert_eq!(read(&[0x81, 0x00]), Err(RpcError::Number));
    }
}
