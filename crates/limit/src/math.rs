//! The little mathematics that is needed.

/// The 97.5 % quantile of Student's t: Abramowitz and Stegun, Handbook of Mathematical Functions, 26.7.5, and the table for
/// one and two degrees of freedom, for which that is too rough.
pub(crate) fn student_t(freedom: usize) -> f64 {
    let z: f64 = 1.959_964;
    let n = freedom as f64;
    match freedom {
        0 | 1 => 12.706,
        2 => 4.303,
        _ => {
            let first = (z.powi(3) + z) / 4.0;
            let second = (5.0 * z.powi(5) + 16.0 * z.powi(3) + 3.0 * z) / 96.0;
            let third = (3.0 * z.powi(7) + 19.0 * z.powi(5) + 17.0 * z.powi(3) - 15.0 * z) / 384.0;
            z + first / n + second / n.powi(2) + third / n.powi(3)
        }
    }
}

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
    fn students_t_is_that_of_the_tables() {
        for (freedom, t) in [(1, 12.706), (2, 4.303), (3, 3.182), (5, 2.571), (10, 2.228), (30, 2.042)] {
            assert!((student_t(freedom) / t - 1.0).abs() < 0.01, "{freedom}: {}", student_t(freedom));
        }
        assert!((student_t(1_000_000) - 1.96).abs() < 0.001);
    }

    #[test]
    fn the_least_is_found() {
        let (at, value) = golden(-3.0, 8.0, 40, &|x| (x - 1.25).powi(2) + 7.0);
        assert!((at - 1.25).abs() < 1e-4 && (value - 7.0).abs() < 1e-6);
    }
}
