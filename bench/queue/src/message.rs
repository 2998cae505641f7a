//! What is sent: a number as it is, in a trade, and in a box.

/// A message that carries its number.
pub trait Message: Send + Sync + 'static {
    /// As the table calls it.
    const NAME: &'static str;
    /// The message of this number.
    fn of(number: u64) -> Self;
    /// Its number.
    fn number(&self) -> u64;
}

impl Message for u64 {
    const NAME: &'static str = "u64";

    #[inline(always)]
    fn of(number: u64) -> u64 {
        number
    }

    #[inline(always)]
    fn number(&self) -> u64 {
        *self
    }
}

/// A trade of 16 bytes.
#[derive(Debug, Clone, Copy)]
pub struct Trade {
    id: u64,
    instrument: u32,
    amount: u32,
}

impl Message for Trade {
    const NAME: &'static str = "trade of 16 bytes";

    #[inline(always)]
    fn of(number: u64) -> Trade {
        Trade { id: number, instrument: 7, amount: 1 }
    }

    #[inline(always)]
    fn number(&self) -> u64 {
        self.id.wrapping_mul(u64::from(self.amount)).wrapping_add(u64::from(self.instrument) - 7)
    }
}

impl Message for Box<u64> {
    const NAME: &'static str = "boxed object";

    #[inline(always)]
    fn of(number: u64) -> Box<u64> {
        Box::new(number)
    }

    #[inline(always)]
    fn number(&self) -> u64 {
        **self
    }
}
