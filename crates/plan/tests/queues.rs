//! Queues whose distributions are known: percentiles within 2 %.

use std::sync::Arc;

use tidemark_plan::{Call, Distribution, Load, Measured, Model, Outcome, Span, Tier, simulate};

use crate::theory::{self, quantile};
use crate::{near, one, poisson};

const SHARES: [f64; 4] = [0.5, 0.9, 0.99, 0.999];
const WITHIN: f64 = 0.02;

fn run(model: &Model, requests: f64, per_s: f64) -> Outcome {
    let outcome = simulate(model, &Span::of_requests(requests, per_s, 11)).unwrap();
    assert!(!outcome.cut);
    outcome
}

fn percentiles(what: &str, outcome: &Outcome, above: impl Fn(f64) -> f64) {
    for share in SHARES {
        let found = outcome.good.quantile_s(share, 0).unwrap();
        near(&format!("{what} p{}", share * 100.0), found, quantile(share, &above), WITHIN);
    }
}

#[test]
fn mm1() {
    let outcome =
        run(&one(poisson(700.0), Tier::new("a", 1, 1, Distribution::Exponential(0.001))), 1e7, 700.0);
    percentiles("M/M/1", &outcome, |t| (-300.0 * t).exp());
    near("utilisation", outcome.tiers[0].utilisation, 0.7, 0.005);
    // Little: those that wait are as many as come in the time that one waits
    near("waiting", outcome.tiers[0].waiting, 700.0 * (1.0 / 300.0 - 0.001), WITHIN);
    near("wait", outcome.tiers[0].wait_s, 1.0 / 300.0 - 0.001, WITHIN);
}

#[test]
fn mmc() {
    for (c, per_s) in [(4, 3_200.0), (16, 14_400.0)] {
        let tier = Tier::new("a", 1, c, Distribution::Exponential(0.001));
        let outcome = run(&one(poisson(per_s), tier), 5e6, per_s);
        percentiles(&format!("M/M/{c}"), &outcome, |t| theory::mmc_above(c, per_s, 1_000.0, t));
    }
}

#[test]
fn instances_by_random_choice_are_queues_of_their_own() {
    let tier = Tier {
        balancing: tidemark_plan::Balancing::Random,
        ..Tier::new("a", 10, 2, Distribution::Exponential(0.001))
    };
    let outcome = run(&one(poisson(15_000.0), tier), 1e7, 15_000.0);
    percentiles("10 times M/M/2", &outcome, |t| theory::mmc_above(2, 1_500.0, 1_000.0, t));
}

#[test]
fn md1() {
    let outcome = run(&one(poisson(700.0), Tier::new("a", 1, 1, Distribution::Constant(0.001))), 5e6, 700.0);
    percentiles("M/D/1", &outcome, |t| theory::md1_above(700.0, 0.001, t));
}

#[test]
fn mg1() {
    let (p, a, b) = (0.8, 2_000.0, 250.0);
    // a hyperexponential time as a measured one: its percentiles
    let above = |t: f64| p * (-a * t).exp() + (1.0 - p) * (-b * t).exp();
    let values = (0..8_000).map(|at| (quantile((f64::from(at) + 0.5) / 8_000.0, above), 1));
    let measured = Measured::new(values).unwrap();
    let mean = theory::mg1_mean(500.0, measured.mean_s(), measured.second_moment());
    let work = Distribution::Measured(Arc::new(measured));
    let outcome = run(&one(poisson(500.0), Tier::new("a", 1, 1, work)), 1e7, 500.0);
    near("mean of a measured M/G/1", outcome.good.mean_s(), mean, WITHIN);
    percentiles("M/H2/1", &outcome, |t| theory::mh1_above(500.0, p, a, b, t));

    let (mean_s, cv) = (0.001, 1.5f64);
    let work = Distribution::LogNormal { mean_s, cv };
    let outcome = run(&one(poisson(600.0), Tier::new("a", 1, 1, work)), 4e6, 600.0);
    let mean = theory::mg1_mean(600.0, mean_s, mean_s * mean_s * (1.0 + cv * cv));
    near("mean of M/G/1", outcome.good.mean_s(), mean, WITHIN);
}

#[test]
fn mmck() {
    // above what it holds: one is refused where all places are taken
    let tier = Tier { queue: 9, ..Tier::new("a", 1, 1, Distribution::Exponential(0.001)) };
    let outcome = run(&one(poisson(1_200.0), tier), 4e6, 1_200.0);
    let chances = theory::mmck(1, 10, 1.2);
    near("refused", outcome.failed_share(), chances[10], WITHIN);
    percentiles("M/M/1/10", &outcome, |t| theory::mm1k_above(10, 1_200.0, 1_000.0, t));

    let tier = Tier { queue: 6, ..Tier::new("a", 1, 4, Distribution::Exponential(0.001)) };
    let outcome = run(&one(poisson(4_000.0), tier), 4e6, 4_000.0);
    let chances = theory::mmck(4, 10, 4.0);
    near("refused by 4", outcome.failed_share(), chances[10], WITHIN);
    let there: f64 = chances.iter().enumerate().map(|(n, of)| n as f64 * of).sum();
    near("mean of M/M/4/10", outcome.good.mean_s(), there / (4_000.0 * (1.0 - chances[10])), WITHIN);
    // a percentile is of all that were due
    assert_eq!(outcome.quantile_s(1.0 - chances[10] / 2.0), None);
}

#[test]
fn closed_networks_by_mean_value_analysis() {
    let tier = |name, mean| Tier::new(name, 1, 1, Distribution::Exponential(mean));
    let demands = [0.004, 0.005, 0.006];
    for users in [1, 10, 40] {
        let mut model = one(
            Load::Closed { users, think: Distribution::Exponential(0.2) },
            Tier {
                calls: vec![Call::new(1), Call { count: 2.0, ..Call::new(2) }],
                ..tier("web", demands[0])
            },
        );
        model.tiers.extend([tier("auth", demands[1]), tier("data", demands[2] / 2.0)]);
        let (throughput, response) = theory::mva(users, 0.2, &demands);
        let outcome = simulate(&model, &Span::new(100.0, 8_000.0, 5)).unwrap();
        near("throughput", outcome.good_per_s(), throughput, 0.01);
        near("response time", outcome.good.mean_s(), response, WITHIN);
        near("utilisation", outcome.tiers[2].utilisation, throughput * demands[2], 0.01);
    }
    // several servers, and any distribution of the time between requests
    let model = one(
        Load::Closed { users: 60, think: Distribution::Constant(0.1) },
        Tier::new("web", 1, 4, Distribution::Exponential(0.008)),
    );
    let (throughput, response) = theory::repair(60, 0.1, 4, 0.008);
    let outcome = simulate(&model, &Span::new(100.0, 5_000.0, 5)).unwrap();
    near("throughput of 4 servers", outcome.good_per_s(), throughput, 0.01);
    near("response time of 4 servers", outcome.good.mean_s(), response, WITHIN);
}

/// A line of M/M/1 queues: by Burke's theorem the second has Poisson arrivals, too.
#[test]
fn tiers_in_a_row_and_hops_add_up() {
    let hop = Call { hop_s: 0.002, ..Call::new(1) };
    let mut model = one(
        poisson(600.0),
        Tier { calls: vec![hop], ..Tier::new("web", 1, 1, Distribution::Exponential(0.001)) },
    );
    model.tiers.push(Tier::new("data", 1, 1, Distribution::Exponential(0.0012)));
    let outcome = run(&model, 4e6, 600.0);
    let mean = 1.0 / (1_000.0 - 600.0) + 1.0 / (1.0 / 0.0012 - 600.0) + 2.0 * 0.002;
    near("a row of two", outcome.good.mean_s(), mean, WITHIN);
}
