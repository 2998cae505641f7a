//! The little mathematics that is needed.

/// Looks for the least value between two places by golden sections; the place and the value. Of several minima it finds one.
pub(crate) fn golden(from: f64, to: f64, sections: usize, of: &dyn Fn(f64) -> f64) -> (f64, f64) {
    const RATIO: f64 = 0.618_033_988_749_895;
    let (mut from, mut to) = (from, to);
    let (mut a, mut b) = (to - RATIO * (to - from), from + RATIO * (to - from));
    let (mut at_a, mut at_b) = (of(a), of(b));
    for _ in 0..sections {
        if at_a <= at_b {
            (to, b, at_b) = (b, a, at_a);
            a = to - RATIO * (to - from);
            at_a = of(a);
        } else {
            (from, a, at_a) = (a, b, at_b);
            b = from + RATIO * (to - from);
            at_b = of(b);
        }
    }
    if at_a <= at_b { (a, at_a) } else { (b, at_b) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_is_found() {
        let (at, value) = golden(-3.0, 8.0, 40, &|x| (x - 1.25).powi(2) + 7.0);
        assert!((at - 1.25).abs() < 1e-4 && (value - 7.0).abs() < 1e-6);
    }
}
