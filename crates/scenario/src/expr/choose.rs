//! Choosers of numbers from 1 to n, beside [Zipf's](super::zipf).

/// Popular items of a scrambled Zipf distribution, as YCSB has them: ranks are drawn from so many, however many numbers there are.
pub(super) const SCRAMBLED_RANKS: f64 = 1e10;
/// The share of draws that an exponential distribution has within [`EXPONENTIAL_NUMBERS`] where none is said; YCSB's.
pub(super) const EXPONENTIAL_DRAWS: f64 = 0.95;
/// The share of numbers that get them; YCSB's.
pub(super) const EXPONENTIAL_NUMBERS: f64 = 0.857_142_857_1;

/// FNV-1a, 64 bits, over the eight bytes of a number, the lowest first, and without its sign, as YCSB has it.
pub(super) fn hash(number: i64) -> i64 {
    let hash = number.to_le_bytes().iter().fold(0xCBF2_9CE4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01B3)
    });
    (hash as i64).saturating_abs()
}

/// The number from 1 to `n` that has this rank, from 1 on.
pub(super) fn scrambled(rank: i64, n: i64) -> i64 {
    1 + hash(rank - 1) % n.max(1)
}

/// One of the first `hot` numbers of `n` with the chance `share`, otherwise one of those behind them.
pub(super) fn hotspot(n: i64, hot: f64, share: f64, random: &mut fastrand::Rng) -> i64 {
    let n = n.max(1);
    let hot = ((n as f64 * hot) as i64).clamp(0, n);
    match hot {
        0 => random.i64(1..=n),
        _ if hot == n || random.f64() < share => random.i64(1..=hot),
        _ => random.i64(hot + 1..=n),
    }
}

/// From 1 to `n`, small ones more often: of an exponential distribution with `share` of all within the first `numbers` of them,
/// cut off behind n.
pub(super) fn exponential(n: i64, share: f64, numbers: f64, random: &mut fastrand::Rng) -> i64 {
    let n = n.max(1) as f64;
    let gamma = -(1.0 - share.clamp(0.0, 1.0 - 1e-12)).ln() / (numbers.max(1e-12) * n);
    let within = -(-gamma * n).exp_m1();
    let at = if gamma > 0.0 { -(-random.f64() * within).ln_1p() / gamma } else { random.f64() * n };
    (at.floor() + 1.0).clamp(1.0, n) as i64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_are_those_of_ycsb() {
        // site.ycsb.Utils.hash, by its own algorithm; "user" and this is the first key
        assert_eq!(hash(0), 6_284_781_860_667_377_211);
        assert_eq!(hash(1), 8_517_097_267_634_966_620);
        assert_eq!(hash(2), 1_820_151_046_732_198_393);
    }
}
