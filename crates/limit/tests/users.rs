//! A closed load whose limit is known: users who ask one worker again as soon as they have their answer.
//!
//! With `n` users each answer takes as long as `n` services, which has Erlang's distribution.

use std::collections::VecDeque;
use std::convert::Infallible;

use fastrand::Rng;
use tidemark_limit::{
    Figures, GoalResult, Options, Percentile, StoppingRule, Tail, Trial, TrialPlan, Trials, counted,
    estimate, search,
};

use crate::queues::goal;

const P99: Percentile = Percentile { allowed: 0.01, bound_s: 0.05 };
const PER_S: f64 = 1_000.0;

struct Users {
    random: Rng,
}

impl Trials for Users {
    type Error = Infallible;

    fn run(&mut self, ask: &TrialPlan, rule: &StoppingRule) -> Result<Trial, Infallible> {
        let users = ask.level as usize;
        // all begin at once
        let mut ends: VecDeque<f64> = vec![0.0; users].into();
        let (mut tail, mut now_s, mut second_s) = (Tail::default(), 0.0, ask.warm_up_s + 1.0);
        loop {
            now_s -= (1.0 - self.random.f64()).ln() / PER_S;
            if now_s >= second_s {
                let measured_s = second_s - ask.warm_up_s;
                if measured_s >= ask.measured_max_s || rule.is_sure(&[Some(tail.clone())], measured_s) {
                    break;
                }
                second_s += 1.0;
            }
            let asked_s = ends.pop_front().unwrap_or_default();
            ends.push_back(now_s);
            if asked_s >= ask.warm_up_s {
                tail.add((now_s - asked_s) / P99.bound_s, 1);
            }
        }
        let measured_s = second_s - ask.warm_up_s;
        let met = (tail.slow() as f64) < P99.allowed * tail.due() as f64;
        let figures = Figures { achieved_per_s: tail.due() as f64 / measured_s, ..Figures::default() };
        let seen = vec![GoalResult { met, measured: String::new(), tail: Some(tail), undecided: false }];
        let took_s = ask.warm_up_s + measured_s + 0.3;
        Ok(Trial { measured_s, took_s, ..Trial::new(*ask, seen, figures) })
    }
}

/// The most users of whom no more than is allowed wait longer.
fn most_users() -> f64 {
    let mean = PER_S * P99.bound_s;
    let (mut users, mut slower, mut term) = (0.0, 0.0, (-mean).exp());
    // fewer than n services have ended within the bound
    while slower + term <= P99.allowed {
        slower += term;
        users += 1.0;
        term *= mean / users;
    }
    users
}

#[test]
fn the_most_users_are_found() {
    let truth = most_users();
    assert!((30.0..40.0).contains(&truth), "{truth}");
    let mut near = 0;
    for seed in 0..20 {
        let goals = [goal(P99)];
        let options = Options { users: true, seed, ..Options::new(4.0, 180.0) };
        let mut trials = Vec::new();
        let Ok(_) = search(&goals, &options, &mut trials, &mut Users { random: Rng::with_seed(seed) });
        let found = estimate(&goals, &counted(&trials)).unwrap();
        assert!((found.level - truth).abs() <= 3.0, "{seed}: {found:?}");
        // between the last number that holds and the first that does not
        near += u64::from(found.low.unwrap() <= truth + 1.0 && truth <= found.high.unwrap());
    }
    assert!(near >= 18, "{near} of 20 intervals hold {truth}");
}
