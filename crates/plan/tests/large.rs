//! Slices and samples beside the whole.

use tidemark_plan::{
    Balancing, Call, Change, Distribution, Happening, Load, Model, SLICE_LEAST, Sampling, Span, Tier, day,
    sample, simulate, slice,
};

use crate::{near, one, poisson};

/// 600 web instances, 300 of auth and 150 of data, at 64 % of their cores.
fn large(balancing: Balancing) -> Model {
    let tier = |name, instances, mean_s| Tier {
        balancing,
        ..Tier::new(name, instances, 4, Distribution::LogNormal { mean_s, cv: 0.8 })
    };
    let mut model = one(poisson(45_000.0), tier("web", 600, 0.034));
    model.tiers[0].calls = vec![
        Call { hop_s: 0.0003, pool: 8, ..Call::new(1) },
        Call { hop_s: 0.0002, hit_rate: 0.5, count: 2.0, ..Call::new(2) },
    ];
    model.tiers.extend([tier("auth", 300, 0.017), tier("data", 150, 0.0085)]);
    model
}

#[test]
fn a_slice_is_as_the_whole() {
    for balancing in [Balancing::TwoChoices, Balancing::LeastBusy] {
        let whole = large(balancing);
        let (part, slices) = slice(&whole);
        assert_eq!(slices, 3);
        let whole = simulate(&whole, &Span::of_requests(800_000.0, 45_000.0, 1)).unwrap();
        let part = simulate(&part, &Span::of_requests(800_000.0, 15_000.0, 2)).unwrap();
        for share in [0.5, 0.9, 0.99] {
            let [part, whole] = [&part, &whole].map(|of| of.quantile_s(share).unwrap());
            near(&format!("{balancing:?} {share}"), part, whole, 0.02);
        }
        for (part, whole) in part.tiers.iter().zip(&whole.tiers) {
            near("utilisation", part.utilisation, whole.utilisation, 0.01);
        }
    }
}

#[test]
fn what_does_not_divide_is_stretched_and_what_is_small_stays() {
    let mut model = large(Balancing::Random);
    model.tiers[2].instances = 157;
    let (part, slices) = slice(&model);
    assert_eq!((slices, part.tiers[2].instances), (3, 52));
    let [part, whole] =
        [(part, 15_000.0), (model.clone(), 45_000.0)].map(|(of, per_s)| of.utilisation(2, per_s));
    near("utilisation", part, whole, 1e-9);
    model.tiers[2].instances = 2 * SLICE_LEAST - 1;
    assert_eq!(slice(&model), (model.clone(), 1));
    model = large(Balancing::Random);
    model.changes = vec![Change { at_s: 1.0, what: Happening::Rolls { tier: 0, each_s: 1.0 } }];
    assert_eq!(slice(&model).1, 1);
}

#[test]
fn samples_of_a_day_are_as_the_day() {
    let mut model = one(Load::Open(day(40.0, 1.6)), Tier::new("web", 2, 4, Distribution::Exponential(0.1)));
    model.tiers[0].balancing = Balancing::Random;
    let whole = simulate(&model, &Span::new(0.0, 86_400.0, 1)).unwrap();
    let sampling = Sampling { length_s: 86_400.0, pieces: 96, warm_s: 30.0, measured_s: 300.0, seed: 2 };
    let sampled = sample(&model, &sampling).unwrap();
    near("requests", sampled.requests() as f64 * 3.0, whole.requests() as f64, 0.01);
    for share in [0.5, 0.9, 0.99] {
        near("sampled", sampled.quantile_s(share).unwrap(), whole.quantile_s(share).unwrap(), 0.02);
    }
    assert!(!sampled.cut);
    // a peak above what it holds leaves a backlog, and samples say so
    model.load = Load::Open(day(70.0, 1.6));
    assert!(sample(&model, &sampling).unwrap().cut);
}
