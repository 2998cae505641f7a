//! Expressions: what stands between `${` and `}`.

use crate::context::Context;
use crate::slot::Slot;

/// A compiled expression.
#[derive(Debug, Clone)]
pub struct Expr {
    // The seam only: the language grows behind it.
    literal: i64,
}

impl Expr {
    /// A whole number as an expression.
    pub fn int(value: i64) -> Self {
        Expr { literal: value }
    }

    /// Evaluates into `out`, whose buffers are used again.
    pub fn eval_into(&self, _cx: &mut Context<'_>, out: &mut Slot) {
        out.set_int(self.literal);
    }

    /// Evaluates as a condition: missing, false, 0 and empty text or list are false.
    pub fn is_true(&self, _cx: &mut Context<'_>) -> bool {
        self.literal != 0
    }

    /// Evaluates as a duration in microseconds (think time); what is no number, or negative, is 0.
    pub fn duration_us(&self, _cx: &mut Context<'_>) -> u64 {
        self.literal.max(0) as u64
    }

    /// Writes the value as text.
    pub fn write(&self, _cx: &mut Context<'_>, out: &mut Vec<u8>) {
        out.extend_from_slice(self.literal.to_string().as_bytes());
    }
}
