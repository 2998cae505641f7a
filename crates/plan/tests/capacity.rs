//! How many instances a load takes, beside what can be reckoned by hand.

use tidemark_plan::{
    Balancing, Call, Distribution, Model, Objective, Question, Stretch, Survives, Tier, curve, sensitivity,
};

use crate::theory::{mmc_above, quantile};
use crate::{near, one, poisson};

fn question(model: Model, per_s: f64, share: f64, within_s: f64) -> Question {
    let objectives = vec![Objective { share, within_s }];
    Question {
        model,
        per_s,
        margin: 0.0,
        objectives,
        failed_most: 0.001,
        survives: Survives::Nothing,
        seed: 1,
    }
}

fn random(name: &str, cores: usize, mean_s: f64) -> Tier {
    Tier { balancing: Balancing::Random, ..Tier::new(name, 1, cores, Distribution::Exponential(mean_s)) }
}

#[test]
fn the_fewest_instances_are_those_of_theory() {
    // each instance is an M/M/4 at its share of the load
    let p99 = |instances: usize| quantile(0.99, |t| mmc_above(4, 20_000.0 / instances as f64, 1_000.0, t));
    let wanted = (6..).find(|count| p99(*count) < 0.009).unwrap();
    let question = question(one(poisson(1.0), random("web", 4, 0.001)), 20_000.0, 0.99, 0.009);
    let answer = question.answer().unwrap();
    assert_eq!((&answer.instances[..], answer.breaks), (&[wanted][..], 0), "{}", p99(wanted));
    assert!(answer.holds_per_s >= 20_000.0);
    // the rate at which theory's p99 is the objective's
    let at = |per_s: f64| quantile(0.99, |t| mmc_above(4, per_s / wanted as f64, 1_000.0, t));
    let limit = (20_000..30_000).step_by(20).find(|per_s| at(f64::from(*per_s)) > 0.009).unwrap();
    near("limit", answer.holds_per_s, f64::from(limit), 0.02);
}

fn two(per_s: f64, survives: Survives) -> Question {
    let mut model = one(poisson(1.0), random("web", 2, 0.004));
    model.tiers[0].calls = vec![Call { hop_s: 0.0005, hit_rate: 0.5, ..Call::new(1) }];
    model.tiers.push(random("data", 2, 0.004));
    model.zones = 3;
    Question { margin: 0.1, survives, ..question(model, per_s, 0.99, 0.05) }
}

#[test]
fn one_less_of_any_tier_is_too_few_and_what_may_be_lost_is_there_in_addition() {
    let asked = two(3_000.0, Survives::Nothing);
    let answer = asked.answer().unwrap();
    assert_eq!(answer.spare, [0, 0]);
    assert!(answer.holds_per_s > 3_290.0, "{}", answer.holds_per_s);
    // data has half of the calls
    near("data of web", answer.instances[1] as f64, answer.instances[0] as f64 / 2.0, 0.25);
    let least = answer.instances.clone();
    let with_instance = two(3_000.0, Survives::Instance).answer().unwrap();
    assert_eq!(with_instance.instances, [least[0] + 1, least[1] + 1]);
    let asked = two(3_000.0, Survives::Zone);
    let with_zone = asked.answer().unwrap();
    for (all, needed) in with_zone.instances.iter().zip(&least) {
        assert!(all - all.div_ceil(3) >= *needed && (all - 1) - (all - 1).div_ceil(3) < *needed);
    }
    // and with a zone gone it does hold, but for what was lost with it
    let (lost, slices) = asked.loss(&with_zone.instances, 1.0, 10.0).unwrap().unwrap();
    assert_eq!(slices, 1);
    assert!(lost.failed > 0 && !lost.grows());
    let late = &lost.stretches[8..];
    assert!(late.iter().all(|of| of.failed == 0 && of.mean_s < 0.05 && asked.is_kept(of)), "{late:?}");
    assert!(!asked.is_kept(&lost.stretches[5]), "{:?}", lost.stretches[5]);
    assert!(lost.stretches.iter().all(|of| of.within[0] <= of.good), "{:?}", lost.stretches);
}

#[test]
fn a_second_is_judged_by_the_objectives_percentile() {
    let asked = two(3_000.0, Survives::Zone);
    let is_kept = |good, failed, within| {
        asked.is_kept(&Stretch { good, failed, mean_s: 0.01, within: vec![within], ..Stretch::default() })
    };
    // p99: a hundred may be slow, and some more by chance; the mean says nothing
    assert!(is_kept(10_000, 0, 9_900) && is_kept(10_000, 0, 9_880) && !is_kept(10_000, 0, 9_800));
    // 0.1 % may fail
    assert!(is_kept(9_990, 10, 9_990) && !is_kept(9_950, 50, 9_950));
    assert!(is_kept(0, 0, 0) && !is_kept(0, 10, 0));
}

#[test]
fn what_an_answer_holds_is_never_below_the_rate() {
    // so many instances that one more is less than a step of the search
    let asked = question(one(poisson(1.0), random("web", 4, 0.001)), 1_000_000.0, 0.99, 0.009);
    let holds_per_s = asked.answer().unwrap().holds_per_s;
    assert!(holds_per_s >= 1_000_000.0, "{holds_per_s}");
}

#[test]
fn workers_that_wait_for_others_count() {
    let pause = Distribution::Constant(0.1);
    let web = |pause: Distribution| Tier { workers: 10, pause, ..random("web", 1, 0.000_1) };
    let mut calls = one(poisson(1.0), web(Distribution::Constant(0.0)));
    calls.tiers[0].calls = vec![Call::new(1)];
    calls.tiers.push(Tier { pause: pause.clone(), ..random("data", 1, 0.000_1) });
    for model in [one(poisson(1.0), web(pause)), calls] {
        let answer = question(model, 1_000.0, 0.99, 0.2).answer().unwrap();
        // 100 requests are under way, 10 at an instance; a tenth of a core would be enough
        assert!((11..=15).contains(&answer.instances[0]), "{answer:?}");
    }
}

#[test]
fn the_curve_rises_and_the_rate_and_the_work_matter_most() {
    let asked = two(3_000.0, Survives::Nothing);
    let mut model = asked.model.clone();
    (model.tiers[0].instances, model.tiers[1].instances) = (8, 8);
    let points = curve(&asked, &model, &[500.0, 2_000.0, 3_500.0, 5_000.0]).unwrap();
    assert!(points.windows(2).all(|two| two[1].p99_s.is_none_or(|p99| p99 > two[0].p99_s.unwrap())));
    assert!(points[0].holds && !points[3].holds && points[3].p99_s.is_none(), "{:?}", points[3]);
    let found = sensitivity(&asked, &model).unwrap();
    let names: Vec<&str> = found.iter().map(|of| of.input.as_str()).collect();
    assert!(names[..2].contains(&"rate") && names[..2].contains(&"CPU of web"), "{names:?}");
    assert_eq!(names.len(), 6, "{names:?}");
}

#[test]
fn what_no_number_of_instances_keeps_is_told() {
    let told = |within_s| {
        let model = one(poisson(1.0), random("web", 4, 0.01));
        question(model, 1_000.0, 0.99, within_s).answer().unwrap_err().to_string()
    };
    assert!(told(0.03).starts_with("no number of instances keeps p99 < 30ms: it is 46."), "{}", told(0.03));
}
