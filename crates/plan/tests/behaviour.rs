//! What a person would expect of bounds, failures and replacements.

use tidemark_plan::{
    Arrivals, Balancing, Breaker, Call, Change, Contention, Distribution, Happening, Load, Model, Outcome,
    RateFrom, Scaling, Span, Tier, Work, simulate,
};

use crate::{near, one, poisson};

fn run(model: &Model, measured_s: f64) -> Outcome {
    let span = Span { each_s: Some(1.0), ..Span::new(10.0, measured_s, 3) };
    simulate(model, &span).unwrap()
}

fn exponential(name: &str, instances: usize, cores: usize, mean_s: f64) -> Tier {
    Tier::new(name, instances, cores, Distribution::Exponential(mean_s))
}

/// Web instances that call data, both at 60 % of their cores.
fn two_tiers() -> Model {
    let calls = vec![Call { hop_s: 0.0005, ..Call::new(1) }];
    let mut model = one(poisson(1_200.0), Tier { calls, ..exponential("web", 4, 1, 0.002) });
    model.tiers.push(exponential("data", 2, 2, 0.002));
    model
}

#[test]
fn the_same_seed_gives_the_same_and_another_does_not() {
    let [one, again] = [(); 2].map(|()| run(&two_tiers(), 20.0));
    assert_eq!(one, again);
    let other = simulate(&two_tiers(), &Span::new(10.0, 20.0, 4)).unwrap();
    assert_ne!(one.good, other.good);
    near("p99 by another seed", other.quantile_s(0.99).unwrap(), one.quantile_s(0.99).unwrap(), 0.1);
}

#[test]
fn better_balancing_waits_less() {
    let p99 = |balancing| {
        let tier = Tier { balancing, ..exponential("a", 20, 1, 0.001) };
        run(&one(poisson(16_000.0), tier), 60.0).quantile_s(0.99).unwrap()
    };
    use Balancing::{LeastBusy, Random, RoundRobin, TwoChoices};
    let [random, in_turn, two, least] = [Random, RoundRobin, TwoChoices, LeastBusy].map(p99);
    assert!(random > in_turn && in_turn > two && two > least, "{random} {in_turn} {two} {least}");
}

#[test]
fn a_pool_bounds_what_a_tier_sees_and_a_cache_spares_it() {
    let mut model = two_tiers();
    model.tiers[0].calls[0].pool = 1;
    let outcome = run(&model, 60.0);
    // four connections in all, each busy for the hops, too
    let free = run(&two_tiers(), 60.0);
    assert!(outcome.tiers[1].wait_s < free.tiers[1].wait_s / 2.0);
    assert!(outcome.good.mean_s() > free.good.mean_s());
    model = two_tiers();
    model.tiers[0].calls[0].hit_rate = 0.75;
    let cached = run(&model, 60.0);
    near("utilisation", cached.tiers[1].utilisation, free.tiers[1].utilisation / 4.0, 0.03);
}

#[test]
fn a_batch_takes_all_that_wait() {
    let commit = |per_s| {
        let work = Work::Batch { fixed_s: 0.01, each_s: 0.0001, most: 1_000 };
        let tier = Tier { work, ..Tier::new("log", 1, 1, Distribution::Constant(0.0)) };
        run(&one(poisson(per_s), tier), 60.0)
    };
    // a hundred batches a second at most, and the more come the more go together
    let (few, many) = (commit(50.0), commit(5_000.0));
    assert_eq!((few.failed, many.failed), (0, 0));
    assert!(!many.grows());
    // a batch of n takes 0.01 + 0.0001 n and n come in that time: n = 50 / (1 - 0.5); each waits half a batch, then its own
    near("mean at 5000/s", many.good.mean_s(), 1.5 * 0.02, 0.03);
    assert!(commit(11_000.0).grows(), "each takes 0.1 ms: 10000 a second");
}

#[test]
fn what_comes_above_the_limit_grows_until_a_bound_refuses() {
    let mut model = one(poisson(1_300.0), exponential("a", 1, 1, 0.001));
    let outcome = run(&model, 30.0);
    assert!(outcome.grows() && outcome.quantile_s(0.99).unwrap() > 1.0);
    model.tiers[0].queue = 50;
    let outcome = run(&model, 30.0);
    assert!(!outcome.grows());
    near("refused", outcome.failed_share(), 0.3 / 1.3, 0.05);
    assert!(outcome.good.max_s() < 0.2);
    assert_eq!(outcome.quantile_s(0.9), None, "one that was refused is slower than every bound");
}

#[test]
fn retries_after_timeouts_make_an_overload_worse() {
    // two seconds of twice what it holds, then 80 %
    let rates = [(0.0, 800.0), (20.0, 2_000.0), (22.0, 800.0)];
    let rates = rates.map(|(from_s, per_s)| RateFrom { from_s, per_s }).to_vec();
    let load = Load::Open(Arrivals { even: false, rates });
    let mut model = one(load, Tier { queue: 3_000, ..exponential("a", 1, 1, 0.001) });
    model.entry.timeout_s = Some(0.25);
    model.entry.retries = 3;
    let stormy = run(&model, 60.0);
    model.entry.breaker = Some(Breaker { failures: 20, open_s: 1.0 });
    let broken = run(&model, 60.0);
    model.entry.breaker = None;
    model.entry.retries = 0;
    let calm = run(&model, 60.0);
    let late = |of: &Outcome| of.stretches[30..].iter().map(|of| of.failed).sum::<u64>();
    assert!(late(&stormy) > 10 * late(&calm).max(1), "{} {}", late(&stormy), late(&calm));
    assert!(late(&broken) < late(&stormy) && broken.tiers[0].broken > 0, "{}", late(&broken));
    assert!(stormy.tiers[0].timed_out > 0);
}

#[test]
fn an_instance_that_fails_costs_what_it_had_and_what_was_sent_to_it_until_it_is_noticed() {
    let mut model = two_tiers();
    model.tiers[0].noticed_after_s = 2.0;
    model.changes =
        vec![Change { at_s: 15.0, what: Happening::Fails { tier: 0, instance: 1, for_s: Some(10.0) } }];
    let outcome = run(&model, 60.0);
    // a quarter of 1200/s for two seconds
    near("failed", outcome.failed as f64, 600.0, 0.1);
    let failed_in =
        |from: usize, to: usize| outcome.stretches[from..to].iter().map(|of| of.failed).sum::<u64>();
    assert_eq!(failed_in(0, 4) + failed_in(8, 60), 0);
    model.entry.retries = 1;
    let retried = run(&model, 60.0);
    assert!(retried.failed < outcome.failed / 10, "{}", retried.failed);
    near("instances", outcome.tiers[0].instances, 4.0 - 10.0 / 60.0, 0.001);
}

#[test]
fn a_zone_that_is_lost_leaves_a_queue_that_drains() {
    let mut model = two_tiers();
    model.zones = 2;
    model.changes = vec![Change { at_s: 20.0, what: Happening::ZoneFails { zone: 0, for_s: Some(10.0) } }];
    let outcome = run(&model, 90.0);
    // half of what is there is 120 % busy; then 60 % again
    let mean = |at: usize| outcome.stretches[at].mean_s;
    assert!(mean(18) > 50.0 * mean(5), "{} {}", mean(18), mean(5));
    assert!(mean(80) < 2.0 * mean(5), "{}", mean(80));
    assert!(outcome.failed > 0 && outcome.failed < 50, "{}", outcome.failed);
    // at 90 % of all the same takes nine times as long to drain
    let drained = |outcome: &Outcome| outcome.stretches.iter().rposition(|of| of.mean_s > 0.1).unwrap_or(0);
    let heavy = run(&Model { load: poisson(1_700.0), ..model.clone() }, 200.0);
    assert!(drained(&heavy) > 2 * drained(&outcome), "{} {}", drained(&heavy), drained(&outcome));
}

#[test]
fn a_roll_fails_nothing() {
    let mut model = two_tiers();
    model.changes = vec![Change { at_s: 15.0, what: Happening::Rolls { tier: 0, each_s: 5.0 } }];
    let outcome = run(&model, 60.0);
    assert_eq!(outcome.failed, 0);
    // three of four do all the work for 20 s
    let mean =
        |from: usize| outcome.stretches[from..from + 10].iter().map(|of| of.mean_s).sum::<f64>() / 10.0;
    assert!(mean(10) > 1.2 * mean(40), "{} {}", mean(10), mean(40));
}

#[test]
fn scaling_follows_the_load_after_its_delay() {
    let mut model = one(
        Load::Open(Arrivals::recorded(100.0, &[500.0, 3_000.0, 500.0])),
        Tier { balancing: Balancing::LeastBusy, ..exponential("web", 1, 1, 0.001) },
    );
    model.tiers[0].scaling = Some(Scaling { target: 0.6, least: 1, most: 10, every_s: 5.0, delay_s: 15.0 });
    let outcome = run(&model, 280.0);
    let mean =
        |from: usize| outcome.stretches[from..from + 20].iter().map(|of| of.mean_s).sum::<f64>() / 20.0;
    // behind while instances come, then as before
    assert!(mean(92) > 0.1 && mean(160) < 0.01, "{} {}", mean(92), mean(160));
    assert!((2.0..4.0).contains(&outcome.tiers[0].instances), "{}", outcome.tiers[0].instances);
    assert_eq!(outcome.failed, 0);
}

#[test]
fn cores_that_hinder_each_other_follow_the_scalability_law() {
    let contention = Contention { alpha: 0.05, beta: 0.002 };
    for cores in [1, 4, 16] {
        let tier = Tier { contention, queue: 1_000, ..exponential("a", 1, cores, 0.001) };
        let outcome = run(&one(poisson(30_000.0), tier), 20.0);
        let n = cores as f64;
        near("throughput", outcome.good_per_s(), 1_000.0 * n / contention.factor(cores), 0.01);
    }
}

#[test]
fn threads_that_wait_for_others_are_not_free() {
    let mut model = two_tiers();
    model.tiers[0].cores = 4;
    model.tiers[0].workers = 4;
    model.tiers[1].work = Work::Each(Distribution::Constant(0.02));
    model.tiers[1].cores = 100;
    // 16 threads, each busy for 23 ms
    let outcome = run(&Model { load: poisson(690.0 * 1.2), ..model.clone() }, 30.0);
    assert!(outcome.grows());
    let per_s = 16.0 / 0.023;
    let begun = outcome.tiers[0].begun as f64 / 30.0;
    near("through 16 threads", begun, per_s, 0.01);
    assert!(!run(&Model { load: poisson(690.0 * 0.8), ..model }, 30.0).grows());
}

#[test]
fn what_is_out_of_bounds_is_told() {
    let wrong = |change: fn(&mut Model)| {
        let mut model = two_tiers();
        change(&mut model);
        simulate(&model, &Span::new(0.0, 1.0, 1)).unwrap_err().to_string()
    };
    assert!(wrong(|of| of.tiers[0].instances = 0).contains("instances"));
    assert!(wrong(|of| of.tiers[1].calls = vec![Call::new(0)]).contains("stand after"));
    assert!(wrong(|of| of.tiers[1].work = Work::Each(Distribution::Constant(f64::NAN))).contains("data"));
    assert!(wrong(|of| of.load = poisson(-1.0)).contains("rate"));
    assert!(wrong(|of| of.tiers.clear()).contains("tiers"));
}
