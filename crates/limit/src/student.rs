//! Student's distribution, for limits and for comparisons. Written out here, as the libraries that have it bring linear
//! algebra with them.

/// Longest continued fraction; it converges in some tens of steps for every number of degrees of freedom.
const STEPS: usize = 500;
/// Halvings of an interval: what they leave of it is below the last digit of a float.
const HALVINGS: usize = 60;

/// How likely a value is that lies at least so far from 0 to either side.
///
/// The regularised incomplete beta function I(ν / (ν + t²); ν/2, 1/2), NIST's Digital Library of Mathematical Functions,
/// 8.17.
pub fn two_sided(t: f64, freedom: f64) -> f64 {
    if !t.is_finite() {
        return if t.is_nan() { 1.0 } else { 0.0 };
    }
    beta(freedom / (freedom + t * t), freedom / 2.0, 0.5)
}

/// How far from 0 a value lies that is exceeded, to either side, with this probability, above 0 and at most 1; `freedom`
/// above 0.
pub fn quantile(probability: f64, freedom: f64) -> f64 {
    let (mut low, mut high) = (0.0, 1.0);
    while two_sided(high, freedom) > probability && high < 1e150 {
        high *= 2.0;
    }
    for _ in 0..HALVINGS {
        let middle = (low + high) / 2.0;
        if two_sided(middle, freedom) > probability { low = middle } else { high = middle }
    }
    high
}

/// The regularised incomplete beta function, by its continued fraction (DLMF 8.17.22) where that converges fast.
fn beta(x: f64, a: f64, b: f64) -> f64 {
    if x <= 0.0 || x >= 1.0 {
        return x.clamp(0.0, 1.0);
    }
    if x > (a + 1.0) / (a + b + 2.0) {
        return 1.0 - beta(1.0 - x, b, a);
    }
    let front = (ln_gamma(a + b) - ln_gamma(a) - ln_gamma(b) + a * x.ln() + b * (1.0 - x).ln()).exp() / a;
    // the method of Lentz: numerators and denominators of successive fractions by their ratios
    let tiny = 1e-300;
    let safe = |value: f64| if value.abs() < tiny { tiny } else { value };
    let (mut c, mut d, mut fraction) = (1.0, 1.0 / safe(1.0 - (a + b) * x / (a + 1.0)), 0.0);
    fraction += d;
    for m in 1..STEPS {
        let m = m as f64;
        let even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m));
        let odd = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0));
        let mut change = 1.0;
        for term in [even, odd] {
            d = 1.0 / safe(1.0 + term * d);
            c = safe(1.0 + term / c);
            change *= c * d;
        }
        fraction *= change;
        if (change - 1.0).abs() < 1e-14 {
            break;
        }
    }
    (front * fraction).clamp(0.0, 1.0)
}

/// The logarithm of the gamma function above 0, by Stirling's series (DLMF 5.11.1) where that is exact.
fn ln_gamma(mut x: f64) -> f64 {
    let mut shift = 0.0;
    while x < 12.0 {
        shift += x.ln();
        x += 1.0;
    }
    let series = 1.0 / (12.0 * x) - 1.0 / (360.0 * x.powi(3)) + 1.0 / (1_260.0 * x.powi(5));
    (x - 0.5) * x.ln() - x + 0.5 * (2.0 * std::f64::consts::PI).ln() + series - shift
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_the_published_table() {
        // two-sided 5 % and 0.1 %, as in any table of Student's distribution
        for (freedom, five, tenth) in [
            (1.0, 12.706, 636.619),
            (2.0, 4.303, 31.599),
            (4.0, 2.776, 8.610),
            (9.0, 2.262, 4.781),
            (22.0, 2.074, 3.792),
            (120.0, 1.980, 3.373),
        ] {
            assert!((quantile(0.05, freedom) - five).abs() < 6e-4, "{freedom}: {}", quantile(0.05, freedom));
            let found = quantile(0.001, freedom);
            assert!((found - tenth).abs() < 6e-4 * tenth.max(1.0) / 3.0, "{freedom}: {found}");
        }
        assert!((quantile(0.05, 1e6) - 1.959_966).abs() < 1e-4);
    }

    #[test]
    fn ends_are_ends() {
        assert_eq!((two_sided(0.0, 3.0), two_sided(f64::INFINITY, 3.0)), (1.0, 0.0));
        assert_eq!(two_sided(f64::NAN, 3.0), 1.0);
        assert!(two_sided(1e9, 3.0) < 1e-20 && two_sided(1e-12, 50.0) > 0.999_999);
    }
}
