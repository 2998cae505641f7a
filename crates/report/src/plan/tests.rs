use tempfile::TempDir;
use tidemark_plan::{Arrivals, Call, Distribution, Load, Tier};
use tidemark_record::manifest::{ObjectiveResult, Service, Store};
use tidemark_record::summary::{Process, Status, SteadyState};
use tidemark_record::{Outcome, Run, RunWriter, summarize};

use super::*;
use crate::blocks::tests::shown;
use crate::test_run::{self, timed};

/// Ten seconds of 1000 requests a second: web takes 2 ms of CPU for each, redis 0.5 ms; half of them 4 ms, half 6 ms.
fn measured() -> (TempDir, Run) {
    let dir = tempfile::tempdir().unwrap();
    let labels = vec!["Query".to_owned()];
    let mut writer = RunWriter::create(dir.path(), &labels, "name: shop\n").unwrap();
    writer.threads(1);
    for second in 0..10 {
        let mut one = test_run::second(second, 1_000);
        one.series = vec![timed(0, Outcome::Ok, true, &[([4_100, 4_000], 500), ([6_100, 6_000], 500)])];
        writer.add_interval(&one).unwrap();
    }
    let mut summary = summarize(writer.totals(), dir.path());
    let process = |name: &str, cpu_s: f64| Process {
        name: name.into(),
        cpu_s,
        seen_s: Some(10.0),
        ..Process::default()
    };
    summary.processes = vec![process("system", 20.0), process("redis", 5.0), process("driver", 1.0)];
    summary.verdict.status = Status::Pass;
    summary.verdict.reasons.clear();
    let mut manifest = Manifest::new("shop", labels, summary);
    manifest.machine.cores = 16;
    manifest.services =
        vec![Service { name: "web".into(), addresses: vec!["a".into()], driven: true, ..Service::default() }];
    manifest.stores = vec![Store { name: "redis".into(), addresses: vec!["b".into()], ..Store::default() }];
    let objective =
        |objective: &str| ObjectiveResult { objective: objective.into(), ..ObjectiveResult::default() };
    manifest.objectives = ["p99 < 20ms", "errors < 1%", "lost = 0"].map(objective).to_vec();
    writer.finish(&manifest).unwrap();
    let run = Run::open(dir.path()).unwrap();
    (dir, run)
}

fn wish() -> Wish<'static> {
    Wish {
        per_s: Some(10_000.0),
        growth: 1.0,
        objectives: &[],
        margin: 0.1,
        survives: Survives::Nothing,
        zones: 3,
        settings: &[],
        prices: None,
        customers: None,
        seed: 1,
    }
}

#[test]
fn a_run_becomes_tiers_with_its_cpu_and_its_times() {
    let (_dir, run) = measured();
    let planned = plan(&run, &Beside::default(), &wish()).unwrap();
    let [web, redis] = &planned.tiers[..] else { panic!("{:?}", planned.tiers) };
    assert_eq!((web.tier.as_str(), redis.tier.as_str()), ("web", "redis"));
    assert!((web.cpu_s - 0.002).abs() < 1e-6 && (redis.cpu_s - 0.000_5).abs() < 1e-6, "{web:?} {redis:?}");
    // 20 cores' worth of work for web, 5 for redis, and room for p99
    assert!((22..40).contains(&web.instances) && (6..14).contains(&redis.instances), "{planned:?}");
    assert!(planned.holds_per_s >= 10_900.0, "{}", planned.holds_per_s);
    // with the run's own load and a machine with room the model has the run's times
    let own = &planned.own_run;
    let near = |one: Option<f64>, other: Option<f64>| (one.unwrap() / other.unwrap() - 1.0).abs() < 0.1;
    assert!(
        near(own.simulated_p50_s, own.measured_p50_s) && near(own.simulated_p99_s, own.measured_p99_s),
        "{own:?}"
    );
    assert_eq!(planned.objectives, ["p99 < 20ms", "errors < 1%"]);
    assert_eq!(
        planned.notes,
        ["the run's objective `lost = 0` is not in the plan, which keeps percentiles and shares of errors"]
    );
    let text = shown(&crate::blocks::plan(&planned), 100);
    assert!(text.contains("10,000/s with p99 < 20ms and errors < 1% needs "), "{text}");
    assert!(text.contains("10,000/s, the plan") && text.contains("no end"), "{text}");
    assert!(text.contains("What matters most") && text.contains("Assumed"), "{text}");
    assert!(text.contains("/s, overloaded ") && text.contains("has no end there"), "{text}");
    assert!(text.contains('↑'), "{text}");
    // the line of the response time leaves the chart
    let page = crate::still::plan(&planned);
    let points = page.split("class=\"way\" points=\"").nth(1).unwrap().split('"').next().unwrap();
    let height = |point: &str| point.split_once(',').unwrap().1.parse::<f64>().unwrap();
    let heights: Vec<f64> = points.split(' ').map(height).collect();
    assert!(heights[0] > 0.0 && *heights.last().unwrap() < 0.0, "{heights:?}");
    let swapped = Planned { objectives: vec!["errors < 1%".into(), "p99 < 20ms".into()], ..planned.clone() };
    assert!(crate::still::plan(&swapped).contains("<figcaption>p99 &lt; 20ms by rate, ms"));
    assert_eq!(planned.assumptions[0], "requests come at random (Poisson), and the mix is the run's");
}

#[test]
fn machines_have_their_cores_and_a_zone_costs_what_it_adds() {
    let (_dir, run) = measured();
    let text = "{currency: EUR, source: x, date: 2026-11-29, machines: {m: {cores: 4, memory: 8GiB, hour: 0.2}}, machine: m}";
    let prices = Prices::parse("p", text).unwrap();
    let asked = Wish { prices: Some(&prices), survives: Survives::Zone, ..wish() };
    let planned = plan(&run, &Beside::default(), &asked).unwrap();
    let web = &planned.tiers[0];
    assert_eq!(web.cores, 4);
    assert!(
        web.spare >= 3 && web.instances - web.instances.div_ceil(3) >= web.instances - web.spare,
        "{web:?}"
    );
    let all: u64 = planned.tiers.iter().map(|of| of.instances).sum();
    let hour = planned.bill.as_ref().unwrap().whole.unwrap().per_hour;
    assert_eq!(hour.nano(), u128::from(all) * 200_000_000);
    assert!(
        planned.says.contains(" EUR a month. It survives the loss of a zone. All of them hold up to "),
        "{}",
        planned.says
    );
    let with = |loss: Option<Loss>| words::says(&Planned { loss, ..planned.clone() });
    let broken = with(Some(Loss { failed: 9, recovered_after_s: None }));
    assert!(broken.contains("a month. It does not survive the loss of a zone. All of them hold"), "{broken}");
    let unknown = with(None);
    assert!(unknown.contains(" redis, with spare ones for the loss of a zone; "), "{unknown}");
    assert!(!unknown.contains("survive"), "{unknown}");
    assert!(
        planned.loss.as_ref().is_some_and(|loss| loss.failed > 0 && loss.recovered_after_s.is_some()),
        "{planned:?}"
    );
    // what was not seen costs, too
    let mut unseen = run.clone();
    unseen.manifest.stores.push(Store { name: "data".into(), ..Store::default() });
    let says = plan(&unseen, &Beside::default(), &asked).unwrap().says;
    assert!(says.contains(" EUR a month at least. "), "{says}");
    // cores that hinder each other do less
    let interval = |value: f64| tidemark_plan::Interval { value, low: value / 2.0, high: value * 2.0 };
    let law = Scalability { one_per_s: 400.0, alpha: interval(0.2), beta: interval(0.0), best_size: None };
    let beside = Beside { scalability: Some(law), ..Beside::default() };
    let hindered = plan(&run, &beside, &asked).unwrap();
    assert!(
        hindered.tiers[0].instances > web.instances
            && hindered.tiers[1].instances == planned.tiers[1].instances
    );
    let text = shown(&crate::blocks::plan(&hindered), 100);
    assert!(text.contains("contention 0.2 (0.1 to 0.4)"), "{text}");
    // a day's rate is one a second
    assert!(rate(430e9 / 86_400.0).starts_with("4,976,852"));
}

#[test]
fn what_if() {
    let (_dir, run) = measured();
    let with = |name: &str, value: &str| {
        let settings = [(name.to_owned(), value.to_owned())];
        plan(&run, &Beside::default(), &Wish { settings: &settings, ..wish() })
    };
    let plain = plan(&run, &Beside::default(), &wish()).unwrap();
    let instances = |of: &Planned| [of.tiers[0].instances, of.tiers[1].instances];
    let [web, redis] = instances(&plain);
    let cached = instances(&with("redis.hit", "80%").unwrap());
    assert!(cached[1] * 2 < redis && cached[0].abs_diff(web) <= 2, "{cached:?} {web} {redis}");
    assert!(instances(&with("web.cpu", "1ms").unwrap())[0] < web * 2 / 3);
    let told = with("wbe.cores", "2").unwrap_err();
    assert!(matches!(told, NoPlan::Usage(_)), "{told}");

    let apply = |name: &str, value: &str| {
        let mut model = Measured::of(&run).unwrap().model(wish().zones);
        settings::apply(&mut model, &[(name.to_owned(), value.to_owned())]).map(|()| model)
    };
    assert_eq!(apply("web.cores", "8").unwrap().tiers[0].cores, 8);
    for (name, value, says) in [
        ("wbe.cores", "2", "did you mean web"),
        ("web.core", "2", "did you mean cores"),
        ("web.cores", "two", "whole number"),
        ("cores", "2", "like web.cores=4"),
        ("web.pool", "2", "no pool"),
        ("web.cores", "0", "1 to 10000 cores"),
        ("web.workers", "0", "at least one worker"),
        ("web.alpha", "2000", "above 1000"),
        ("web.timeout", "0s", "a timeout is above 0"),
        ("web.breaker", "0", "at least one failure"),
        ("redis.pool", "0", "at least one connection"),
        ("redis.retries", "1000", "100 retries at most"),
    ] {
        let told = apply(name, value).unwrap_err();
        assert!(told.starts_with(&format!("--set {name}={value}: ")) && told.contains(says), "{told}");
    }
}

#[test]
fn a_run_that_measured_the_load_generator_is_refused_and_one_that_drifts_says_so() {
    let (_dir, mut run) = measured();
    run.manifest.summary.steady_state =
        Some(SteadyState { steady: Some(false), reason: "the rate falls".into(), ..SteadyState::default() });
    let planned = plan(&run, &Beside::default(), &wish()).unwrap();
    // which objectives are planned for comes first
    let [objective, unsteady, ..] = &planned.notes[..] else { panic!("{:?}", planned.notes) };
    assert!(objective.contains("`lost = 0` is not in the plan"), "{objective}");
    assert!(unsteady.contains("not steady") && unsteady.contains("the rate falls"), "{unsteady}");
    run.manifest.summary.driver.limits = vec!["its busiest thread had 98% of a core".into()];
    let told = plan(&run, &Beside::default(), &wish()).unwrap_err().to_string();
    assert_eq!(
        told,
        "no plan from this run: the load generator was the bottleneck: its busiest thread had 98% of a core"
    );
    run.manifest.summary.driver.limits.clear();
    run.manifest.summary.verdict.reasons = vec![ReasonKind::DriverBound.told("too slow")];
    assert!(plan(&run, &Beside::default(), &wish()).unwrap_err().to_string().contains("bottleneck"));
}

#[test]
fn a_run_that_failed_more_than_may_is_refused() {
    let (_dir, mut run) = measured();
    run.manifest.summary.failed = 200;
    let told = plan(&run, &Beside::default(), &wish()).unwrap_err();
    assert_eq!(
        told,
        NoPlan::Unknown(
            "no plan from this run: 1.96% of its requests failed, and 1.00% may; measure it at a load at which it answers"
                .into()
        )
    );
    let with = |objectives: &[&str]| {
        let objectives: Vec<String> = objectives.iter().map(|text| (*text).to_owned()).collect();
        plan(&run, &Beside::default(), &Wish { objectives: &objectives, ..wish() })
    };
    assert!(with(&["p90 < 20ms", "errors < 3%"]).is_ok());
    // without an objective 0.1 % may, and the plan says so
    assert!(with(&["p90 < 20ms"]).unwrap_err().to_string().contains("failed, and 0.1% may"));
    run.manifest.summary.failed = 0;
    let planned = plan(&run, &Beside::default(), &Wish { objectives: &["p90 < 20ms".into()], ..wish() });
    assert_eq!(planned.unwrap().assumptions[0], "errors < 0.1%, as no objective is about them");
}

#[test]
fn more_requests_under_way_than_in_the_run_are_told_unless_workers_bound_them() {
    let (_dir, mut run) = measured();
    // 0.2 and 0.1 ms of 5 ms
    run.manifest.summary.processes[0].cpu_s = 2.0;
    run.manifest.summary.processes[1].cpu_s = 1.0;
    let with =
        |settings: &[(String, String)]| plan(&run, &Beside::default(), &Wish { settings, ..wish() }).unwrap();
    let told = |planned: &Planned| planned.notes.iter().position(|note| note.contains("requests under way"));
    let free = with(&[]);
    // behind what the plan is for
    assert_eq!(told(&free), Some(1), "{:?}", free.notes);
    let note = &free.notes[1];
    assert!(note.contains(" of a request's time has no CPU") && note.contains("the run had 5.0: "), "{note}");
    assert!(note.ends_with("--set TIER.workers=N says how many"), "{note}");
    // 55 requests are under way at the rate and a tenth more
    let bounded = with(&[("web.workers".to_owned(), "8".to_owned())]);
    assert_eq!(told(&bounded), None, "{:?}", bounded.notes);
    assert!(free.tiers[0].instances < 7 && bounded.tiers[0].instances >= 7, "{bounded:?}");
}

/// Half of the requests take 4 ms: less than the objective, which the mean is above.
#[test]
fn after_a_loss_the_objectives_percentile_decides_and_not_the_mean() {
    let (_dir, run) = measured();
    let objectives = ["p40 < 5ms".to_owned()];
    let asked = Wish { objectives: &objectives, survives: Survives::Zone, ..wish() };
    let planned = plan(&run, &Beside::default(), &asked).unwrap();
    assert!(planned.loss.as_ref().is_some_and(|loss| loss.recovered_after_s.is_some()), "{planned:?}");
}

#[test]
fn what_cannot_be_planned_is_told() {
    let (_dir, mut run) = measured();
    let told = |run: &Run, objective: &str| {
        let objectives = [objective.to_owned()];
        plan(run, &Beside::default(), &Wish { objectives: &objectives, ..wish() }).unwrap_err().to_string()
    };
    assert!(
        told(&run, "p99 < 5ms").starts_with("no number of instances keeps p99 < "),
        "{}",
        told(&run, "p99 < 5ms")
    );
    assert!(told(&run, "mean < 5ms").contains("is neither"));
    assert!(told(&run, "errors < 1%").contains("a percentile to keep"));
    run.manifest.summary.processes.retain(|of| of.name != "system");
    assert!(told(&run, "p99 < 20ms").contains("was not watched"));
}

#[test]
fn what_matters_and_limits_stand_beside_what_was_measured() {
    let (_dir, run) = measured();
    let beside = Beside { limit_per_s: Some(9_000.0), ..Beside::default() };
    let planned = plan(&run, &beside, &wish()).unwrap();
    // 16 cores, less the driver's share of 1 in 26, hold at most 15 / 2.5 ms
    let limit = planned.own_run.simulated_limit_per_s.unwrap();
    assert!((5_000.0..6_000.0).contains(&limit), "{limit}");
    assert!(
        planned.notes.iter().any(|note| note.contains("does not fit its own search: the limit was 9,000/s")),
        "{:?}",
        planned.notes
    );
}

/// A core that is 80 % busy: 1,000 requests a second of 0.8 ms of CPU each (exponential), for ten seconds.
fn busy() -> (TempDir, Run) {
    let mut model = Model {
        load: Load::Open(Arrivals::poisson(1_000.0)),
        entry: Call::new(0),
        request: Distribution::Constant(0.0),
        tiers: vec![Tier::new("web", 1, 1, Distribution::Exponential(0.000_8))],
        zones: 1,
        changes: Vec::new(),
    };
    model.tiers[0].pause = Distribution::Constant(0.000_2);
    let times = simulate(&model, &Span::of_requests(500_000.0, 1_000.0, 3)).unwrap().good;
    let at = |number: u32| (times.quantile_s((f64::from(number) + 0.5) / 1_000.0, 0).unwrap() * 1e6) as u64;
    let each: Vec<([u64; 2], u32)> = (0..1_000).map(|number| ([at(number) + 100, at(number)], 1)).collect();
    let (dir, mut run) = measured();
    let mut writer = RunWriter::create(dir.path().join("busy").as_path(), &run.manifest.labels, "").unwrap();
    writer.threads(1);
    for second in 0..10 {
        let mut one = test_run::second(second, 1_000);
        one.series = vec![timed(0, Outcome::Ok, true, &each)];
        writer.add_interval(&one).unwrap();
    }
    let mut summary = summarize(writer.totals(), &dir.path().join("busy"));
    summary.processes = run.manifest.summary.processes.drain(..).filter(|of| of.name != "redis").collect();
    summary.processes[0].cpu_s = 8.0;
    summary.verdict = run.manifest.summary.verdict.clone();
    let mut manifest = Manifest { summary, ..run.manifest.clone() };
    manifest.machine.cores = 1;
    manifest.stores.clear();
    writer.finish(&manifest).unwrap();
    let run = Run::open(&dir.path().join("busy")).unwrap();
    (dir, run)
}

#[test]
fn what_requests_waited_for_a_core_is_no_service_time() {
    let (_dir, run) = busy();
    let mut taken = Measured::of(&run).unwrap();
    let with_waits_s = taken.service_times.mean_s();
    assert!(taken.take_waits_out(1).unwrap());
    let without_s = taken.service_times.mean_s();
    // 0.2 ms and 0.8 ms, where requests took 4.2 ms: a queue at 80 % makes five times of the CPU
    assert!(with_waits_s > 0.003_5 && (0.000_8..0.001_6).contains(&without_s), "{with_waits_s} {without_s}");
    let planned = plan(&run, &Beside::default(), &wish()).unwrap();
    let own = &planned.own_run;
    let near = |one: Option<f64>, other: Option<f64>| (one.unwrap() / other.unwrap() - 1.0).abs() < 0.2;
    assert!(near(own.simulated_p50_s, own.measured_p50_s), "{own:?}");
    assert!(near(own.simulated_p99_s, own.measured_p99_s), "{own:?}");
    assert!(planned.notes.iter().any(|note| note.contains("were taken out")), "{:?}", planned.notes);
    // with the waits for service times ten cores' worth of work would need far more
    assert!((10..=14).contains(&planned.tiers[0].instances), "{planned:?}");
}

#[test]
fn a_runs_own_load_is_simulated_as_it_was() {
    let (_dir, mut run) = measured();
    run.manifest.closed_users = Some(7);
    let Load::Closed { users: 7, think } = Measured::of(&run).unwrap().model_of_run().load else { panic!() };
    // 7 users and 1,000 requests a second of 5 ms
    assert!((think.mean(0.0) - 0.002).abs() < 0.000_1, "{think:?}");
    run.manifest.closed_users = None;
    run.manifest.even_arrivals = true;
    let model = Measured::of(&run).unwrap().model_of_run();
    assert!(matches!(&model.at(5.0).load, Load::Open(arrivals) if arrivals.even));
}

#[test]
fn the_cpu_near_a_limit_goes_before_that_of_the_quieter_run() {
    let (_dir, run) = measured();
    let found = cpu_of_requests(&run).unwrap();
    let [(web, cpu_s), (redis, _)] = &found[..] else { panic!("{found:?}") };
    assert_eq!((web.as_str(), redis.as_str()), ("web", "redis"));
    let alone = plan(&run, &Beside::default(), &wish()).unwrap();
    let beside = Beside { busiest_cpu_s: vec![(web.clone(), cpu_s / 2.0)], ..Beside::default() };
    let planned = plan(&run, &beside, &wish()).unwrap();
    assert!(planned.tiers[0].instances < alone.tiers[0].instances, "{planned:?}");
    assert!((planned.tiers[1].cpu_s - alone.tiers[1].cpu_s).abs() < 1e-9, "redis was not told");
}
