//! Text in which nothing varies but numbers that are drawn, each in a place of fixed width.

use crate::expr::Drawn;
use crate::template::{Part, Template};

/// Bytes that are copied as a whole; then the numbers are written into their places.
#[derive(Debug, Clone, Default)]
pub struct Stencil {
    /// With zeros where numbers stand.
    bytes: Vec<u8>,
    /// Where, in order.
    holes: Vec<(usize, Drawn)>,
}

impl Stencil {
    /// Whether there is nothing in it.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// The bytes to append what never varies to.
    pub fn bytes_mut(&mut self) -> &mut Vec<u8> {
        &mut self.bytes
    }

    /// Appends a template, of which only that much is written where it has [fixed bytes](Template::fixed_bytes).
    pub fn append(&mut self, template: &Template) {
        for part in &template.parts {
            match part {
                Part::Literal(bytes) => self.bytes.extend_from_slice(bytes),
                Part::Hole(expr, encoding) => {
                    let Some(drawn) = expr.as_drawn(*encoding) else { continue };
                    self.holes.push((self.bytes.len(), drawn));
                    self.bytes.resize(self.bytes.len() + drawn.width, b'0');
                }
            }
        }
    }

    /// Appends the text to `out`.
    pub fn write(&self, random: &mut fastrand::Rng, out: &mut Vec<u8>) {
        let begin = out.len();
        out.extend_from_slice(&self.bytes);
        for (at, drawn) in &self.holes {
            let mut number = random.i64(drawn.low..=drawn.high).unsigned_abs();
            for digit in out[begin + at..][..drawn.width].iter_mut().rev() {
                if number == 0 {
                    break;
                }
                *digit = b'0' + (number % 10) as u8;
                number /= 10;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::context::{Context, Shared};
    use crate::encoding::Encoding;
    use crate::expr::Expr;

    #[test]
    fn it_is_what_the_template_writes_of_the_same_draws() {
        let shared = Shared::default();
        let (mut one, mut other) = (fastrand::Rng::with_seed(3), fastrand::Rng::with_seed(3));
        for expr in ["pad(random(0, 999), 3)", "pad(random(7, 123456), 12)", "pad(random(0, 0), 1)"] {
            let mut template = Template::literal("a:");
            template.push_hole(Expr::parse_constant(expr).unwrap(), Encoding::Raw);
            template.push_literal(b"-");
            template.push_hole(Expr::parse_constant(expr).unwrap(), Encoding::Url);
            let mut stencil = Stencil::default();
            stencil.append(&template);
            assert!(!stencil.is_empty());
            for _ in 0..300 {
                let (mut expected, mut written) = (b"before".to_vec(), b"before".to_vec());
                let mut cx = Context { slots: &[], shared: &shared, random: &mut one, epoch_ms: 0 };
                template.render(&mut cx, &mut expected).unwrap();
                stencil.write(&mut other, &mut written);
                assert_eq!(written, expected);
            }
        }
    }
}
