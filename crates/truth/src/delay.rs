//! Delays drawn from distributions that are known.

use std::f64::consts::TAU;
use std::time::Duration;

/// How long a request is kept.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Delay {
    /// Always the same.
    Fixed(Duration),
    /// Exponential: few are long.
    Exponential {
        /// Mean.
        mean: Duration,
    },
    /// Lognormal: the usual form of a service's latency.
    Lognormal {
        /// Median.
        median: Duration,
        /// Standard deviation of the logarithm.
        sigma: f64,
    },
    /// One of two: a cache that hits or misses.
    Bimodal {
        /// The usual one.
        fast: Duration,
        /// The other one.
        slow: Duration,
        /// How often the other one, 0 to 1.
        slow_share: f64,
    },
}

impl Delay {
    /// None at all.
    pub const NONE: Delay = Delay::Fixed(Duration::ZERO);

    /// Draws one, nanoseconds.
    pub(crate) fn draw_ns(&self, random: &mut fastrand::Rng) -> u64 {
        let ns = |duration: &Duration| duration.as_secs_f64() * 1e9;
        let drawn = match self {
            Delay::Fixed(delay) => ns(delay),
            // 1 - u lies in (0, 1]
            Delay::Exponential { mean } => -ns(mean) * (1.0 - random.f64()).ln(),
            Delay::Lognormal { median, sigma } => ns(median) * (sigma * normal(random)).exp(),
            Delay::Bimodal { fast, slow, slow_share } => {
                ns(if random.f64() < *slow_share { slow } else { fast })
            }
        };
        drawn as u64
    }
}

/// A number from the standard normal distribution (Box and Muller 1958).
fn normal(random: &mut fastrand::Rng) -> f64 {
    (-2.0 * (1.0 - random.f64()).ln()).sqrt() * (TAU * random.f64()).cos()
}

impl std::str::FromStr for Delay {
    type Err = String;

    /// `fixed:5ms`, `exponential:5ms`, `lognormal:4ms,0.8`, `bimodal:2ms,50ms,0.05`.
    fn from_str(text: &str) -> Result<Delay, String> {
        let wrong = || {
            format!(
                "`{text}` is not a delay; write fixed:5ms, exponential:5ms, lognormal:4ms,0.8 or bimodal:2ms,50ms,0.05"
            )
        };
        let (name, values) = text.split_once(':').ok_or_else(wrong)?;
        let values: Vec<&str> = values.split(',').collect();
        let time = |value: &str| milliseconds(value).ok_or_else(wrong);
        let number =
            |value: &str| value.parse::<f64>().ok().filter(|n| n.is_finite() && *n >= 0.0).ok_or_else(wrong);
        match (name, values.as_slice()) {
            ("fixed", [delay]) => Ok(Delay::Fixed(time(delay)?)),
            ("exponential", [mean]) => Ok(Delay::Exponential { mean: time(mean)? }),
            ("lognormal", [median, sigma]) => {
                Ok(Delay::Lognormal { median: time(median)?, sigma: number(sigma)? })
            }
            ("bimodal", [fast, slow, share]) => {
                Ok(Delay::Bimodal { fast: time(fast)?, slow: time(slow)?, slow_share: number(share)? })
            }
            _ => Err(wrong()),
        }
    }
}

/// `5ms`, `0.2ms`, `1s`.
pub(crate) fn milliseconds(text: &str) -> Option<Duration> {
    let (number, unit_s) = match text.strip_suffix("ms") {
        Some(number) => (number, 1e-3),
        None => (text.strip_suffix('s')?, 1.0),
    };
    Duration::try_from_secs_f64(number.parse::<f64>().ok()? * unit_s).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const DRAWS: usize = 200_000;

    /// Quantiles in milliseconds.
    fn quantiles(delay: Delay, of: &[f64]) -> Vec<f64> {
        let mut random = fastrand::Rng::with_seed(7);
        let mut drawn: Vec<u64> = (0..DRAWS).map(|_| delay.draw_ns(&mut random)).collect();
        drawn.sort_unstable();
        of.iter().map(|q| drawn[(q * DRAWS as f64) as usize] as f64 / 1e6).collect()
    }

    fn near(got: &[f64], wanted: &[f64]) {
        for (got, wanted) in got.iter().zip(wanted) {
            assert!((got / wanted - 1.0).abs() < 0.02, "{got} ms, but the distribution says {wanted} ms");
        }
    }

    #[test]
    fn quantiles_are_those_of_the_distributions() {
        let ms = Duration::from_millis;
        near(&quantiles(Delay::Fixed(ms(5)), &[0.0, 0.5, 0.999]), &[5.0, 5.0, 5.0]);
        // -mean ln(1 - q)
        let exponential = quantiles(Delay::Exponential { mean: ms(5) }, &[0.5, 0.9, 0.99]);
        near(&exponential, &[3.4657, 11.5129, 23.0259]);
        // median exp(sigma z(q))
        let lognormal = quantiles(Delay::Lognormal { median: ms(4), sigma: 0.8 }, &[0.5, 0.9, 0.99]);
        near(&lognormal, &[4.0, 4.0 * (0.8f64 * 1.281_55).exp(), 4.0 * (0.8f64 * 2.326_35).exp()]);
        let bimodal = Delay::Bimodal { fast: ms(2), slow: ms(50), slow_share: 0.05 };
        near(&quantiles(bimodal, &[0.5, 0.94, 0.96]), &[2.0, 2.0, 50.0]);
    }

    #[test]
    fn delays_are_read_and_mistakes_told() {
        let ms = Duration::from_millis;
        assert_eq!("fixed:5ms".parse(), Ok(Delay::Fixed(ms(5))));
        assert_eq!("exponential:0.2s".parse(), Ok(Delay::Exponential { mean: ms(200) }));
        assert_eq!("lognormal:4ms,0.8".parse(), Ok(Delay::Lognormal { median: ms(4), sigma: 0.8 }));
        let bimodal = Delay::Bimodal { fast: ms(2), slow: ms(50), slow_share: 0.05 };
        assert_eq!("bimodal:2ms,50ms,0.05".parse(), Ok(bimodal));
        for wrong in ["", "fixed", "fixed:5", "fixed:-5ms", "lognormal:4ms", "gamma:1ms", "bimodal:1ms,2ms,x"]
        {
            assert!(wrong.parse::<Delay>().is_err(), "{wrong}");
        }
    }
}
