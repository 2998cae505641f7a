//! That choosers choose as they say: Pearson's chi-square test, at a threshold that a right one fails once in a million.

use super::tests::{Keyed, parsed};
use super::*;
use crate::context::Shared;
use crate::keys::{Keys, WriteEnd};
use crate::plan::KeysPlan;
use crate::slot::Slot;

const DRAWS: usize = 400_000;

/// The value of chi-square, of so many degrees of freedom, that is exceeded once in a million: Wilson and Hilferty's
/// approximation (PNAS 17, 1931), which is above it by less than 1 % from 49 degrees on, 3 % from 9, 10 % from 2.
fn threshold(degrees: usize) -> f64 {
    let ninth = 2.0 / (9.0 * degrees as f64);
    degrees as f64 * (1.0 - ninth + 4.753_424 * ninth.sqrt()).powi(3)
}

/// Draws of an expression.
fn draws(expr: &Expr, shared: &Shared, seed: u64) -> Vec<i64> {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut slot = Slot::default();
    let draw = |_| {
        let mut cx = Context { slots: &[], shared, random: &mut random, epoch_ms: 0 };
        expr.eval_into(&mut cx, &mut slot);
        match slot.value() {
            Value::Int(value) => value,
            other => panic!("{other:?}"),
        }
    };
    (0..DRAWS).map(draw).collect()
}

/// Whether draws fall into classes, each given by its last number and its chance, in any proportion but this.
fn differs(draws: &[i64], classes: &[(i64, f64)]) -> Option<String> {
    let mut counts = vec![0.0_f64; classes.len()];
    for draw in draws {
        let class = classes.partition_point(|(last, _)| last < draw);
        if *draw < 1 || class == classes.len() {
            return Some(format!("{draw} is not within 1 to {:?}", classes.last()));
        }
        counts[class] += 1.0;
    }
    let sum: f64 = classes.iter().map(|(_, chance)| chance).sum();
    let expected: Vec<f64> = classes.iter().map(|(_, chance)| draws.len() as f64 * chance / sum).collect();
    assert!(
        expected.iter().all(|expected| *expected >= 5.0),
        "a class is too small for the test: {expected:?}"
    );
    let statistic: f64 =
        counts.iter().zip(&expected).map(|(count, expected)| (count - expected).powi(2) / expected).sum();
    let most = threshold(classes.len() - 1);
    (statistic > most).then(|| format!("{statistic:.1} is above {most:.1}, {} classes", classes.len()))
}

fn passes(text: &str, classes: &[(i64, f64)]) {
    let draws = draws(&parsed(text), &Shared::default(), 7);
    assert_eq!(differs(&draws, classes), None, "{text}");
}

/// Each number a class.
fn each(n: i64, chance: impl Fn(i64) -> f64) -> Vec<(i64, f64)> {
    (1..=n).map(|k| (k, chance(k))).collect()
}

/// The sum of k^-exponent from 1 on: term by term at first, then by Euler and Maclaurin's formula.
fn zeta(n: i64, exponent: f64) -> f64 {
    const TERMS: i64 = 1_000;
    let term = |k: f64| k.powf(-exponent);
    let first: f64 = (1..=n.min(TERMS)).map(|k| term(k as f64)).sum();
    if n <= TERMS {
        return first;
    }
    let (a, b) = (TERMS as f64, n as f64);
    let integral = match exponent == 1.0 {
        true => (b / a).ln(),
        false => (b.powf(1.0 - exponent) - a.powf(1.0 - exponent)) / (1.0 - exponent),
    };
    let slopes = exponent / 12.0 * (term(a) / a - term(b) / b);
    first + integral + (term(b) - term(a)) / 2.0 + slopes
}

/// Classes of many numbers: up to 20 each one, then ever wider.
fn zipf_classes(n: i64, exponent: f64) -> Vec<(i64, f64)> {
    let mut lasts: Vec<i64> = (1..=20).collect();
    while let Some(last) = lasts.last().copied().filter(|last| *last < n) {
        lasts.push((last * 3 / 2).min(n));
    }
    let before = std::iter::once(0).chain(lasts.iter().copied());
    let chance = |(before, last): (i64, &i64)| (*last, zeta(*last, exponent) - zeta(before, exponent));
    before.zip(&lasts).map(chance).collect()
}

#[test]
fn the_test_itself_can_tell() {
    for (degrees, known, off) in
        [(2, 27.631, 0.1), (9, 44.811, 0.03), (49, 111.136, 0.01), (1999, 2314.081, 0.001)]
    {
        let found = threshold(degrees);
        assert!((known..known * (1.0 + off)).contains(&found), "{degrees}: {found}");
    }
    assert!((zeta(1_000_000_000, 0.99) - 23.6038).abs() < 0.001, "{}", zeta(1_000_000_000, 0.99));
    let draws = draws(&parsed("zipf(50, 0.9)"), &Shared::default(), 7);
    assert!(differs(&draws, &each(50, |k| (k as f64).powf(-0.99))).is_some(), "another exponent");
    let draws: Vec<i64> = (0..400_000).map(|at| at % 49 + 1).collect();
    assert!(differs(&draws, &each(50, |_| 1.0)).is_some(), "one number never");
}

#[test]
fn even() {
    passes("random(1, 100)", &each(100, |_| 1.0));
}

#[test]
fn zipf() {
    for exponent in [0.0, 0.5, 0.99, 1.0, 1.5] {
        // of a constant n, and of one that is not: two ways to draw the same
        for n in ["50", "random(50, 50)"] {
            passes(&format!("zipf({n}, {exponent})"), &each(50, |k| (k as f64).powf(-exponent)));
        }
    }
    passes("zipf(2000)", &each(2000, |k| (k as f64).powf(-0.99)));
}

#[test]
fn zipf_of_a_billion() {
    for exponent in [0.5, 0.99, 1.0] {
        for n in ["1000000000", "random(1000000000, 1000000000)"] {
            let first = if exponent == 0.5 { 17 } else { 0 };
            // of the small exponent the first classes are too small to be counted one by one
            let mut classes = zipf_classes(1_000_000_000, exponent);
            let together: f64 = classes[..first + 20].iter().map(|(_, chance)| chance).sum();
            if exponent == 0.5 {
                classes.drain(..first + 19);
                classes[0].1 = together;
            }
            passes(&format!("zipf({n}, {exponent})"), &classes);
        }
    }
}

#[test]
fn scrambled() {
    // what ranks of 10 billion come to by their hash: the first by themselves, all others evenly
    for n in ["100", "random(100, 100)"] {
        let all = zeta(10_000_000_000, 0.99);
        let single = 1_000_000;
        let rest = (all - zeta(single, 0.99)) / 100.0;
        let mut chances = vec![rest; 100];
        for rank in 1..=single {
            chances[choose::scrambled(rank, 100) as usize - 1] += (rank as f64).powf(-0.99);
        }
        passes(&format!("scrambled_zipf({n})"), &each(100, |k| chances[k as usize - 1]));
    }
}

#[test]
fn hot_sets() {
    passes("hotspot(100, 0.2, 0.8)", &each(100, |k| if k <= 20 { 0.8 / 20.0 } else { 0.2 / 80.0 }));
    passes("hotspot(10, 1, 0.5)", &each(10, |_| 1.0));
    passes("hotspot(10, 0, 0.5)", &each(10, |_| 1.0));
}

#[test]
fn exponential() {
    let below = |gamma: f64, k: i64| -(-gamma * k as f64).exp_m1();
    let gamma = -(0.05_f64).ln() / (0.857_142_857_1 * 100.0);
    passes("exponential(100)", &each(100, |k| below(gamma, k) - below(gamma, k - 1)));
    let gamma = -(0.5_f64).ln() / 10.0;
    passes("exponential(100, 0.1, 0.5)", &zipf_like(100, |k| below(gamma, k) - below(gamma, k - 1)));
}

/// Numbers one by one as long as there are enough draws of each, the rest together.
fn zipf_like(n: i64, chance: impl Fn(i64) -> f64) -> Vec<(i64, f64)> {
    let mut classes = each(n, chance);
    while classes.len() > 2 && classes[classes.len() - 1].1 * (DRAWS as f64) < 10.0 {
        let (last, chance) = classes.pop().unwrap();
        let end = classes.len() - 1;
        classes[end] = (last, classes[end].1 + chance);
    }
    classes
}

#[test]
fn weighted_values() {
    let chance = |k: i64| [0.0, 90.0, 9.0, 1.0][k as usize];
    passes("weighted(1, 90, 2, 9, 7, 0, 3, 1)", &each(3, chance));
}

#[test]
fn the_latest_are_those_inserted_last() {
    // twice as many may come as are there, so that draws beyond the newest are made anew
    let plan = KeysPlan { name: "records".into(), most: 200, loaded: 98 };
    let shared = Shared::with_keys(vec![Keys::new(&plan)]);
    let keys = shared.keys(0).unwrap();
    for _ in 0..2 {
        keys.end(keys.insert(0).unwrap(), WriteEnd::Acknowledged);
    }
    let (open, later) = (keys.insert(0).unwrap(), keys.insert(0).unwrap());
    keys.end(later, WriteEnd::Acknowledged);
    let check = |text: &str, exponent: f64| {
        let expr = Expr::written(parse::parse(text, &mut Keyed(200)).unwrap(), text);
        let draws = draws(&expr, &shared, 3);
        let classes = each(100, |k| ((101 - k) as f64).powf(-exponent));
        assert_eq!(differs(&draws, &classes), None, "{text}");
    };
    check("latest(records)", 0.99);
    check("latest(records, 0.5)", 0.5);
    keys.end(open, WriteEnd::Acknowledged);
    assert_eq!(keys.inserted(), 102);
}
