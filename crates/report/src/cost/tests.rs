use tidemark_record::fault::FaultEvent;
use tidemark_record::manifest::{self, Manifest, Service, Store};
use tidemark_record::summary::{Process, Status};

use super::*;
use crate::blocks::tests::shown;
use crate::test_run;
use crate::tiers::cpu_by_tier;

const PRICES: &str = "
currency: EUR
source: by hand
date: 2026-11-29
machines:
  small: {cores: 1, memory: 2GiB, hour: 0.036}
  large: {cores: 4, memory: 8GiB, hour: 0.18, reserved_hour: 0.09, core_watts: 6, idle_watts: 20}
machine: large
energy: {kwh: 0.25}
inflation: {2014: 1.5}
";

fn prices(text: &str) -> Prices {
    Prices::parse("p.yaml", text).unwrap()
}

fn process(name: &str, cpu_s: f64, rss_bytes_max: u64) -> Process {
    Process { name: name.into(), cpu_s, rss_bytes_max, ..Process::default() }
}

/// 100 s at 1,000 good answers/s, with the web in two instances behind a balancer, a store, and a driver.
fn split() -> Manifest {
    let (_dir, run) = test_run::airline();
    let mut manifest = run.manifest;
    let summary = &mut manifest.summary;
    summary.verdict.status = Status::Pass;
    (summary.achieved_per_s, summary.measured_s) = (1_000.0, 100.0);
    summary.processes = vec![
        process("driver", 50.0, 1 << 20),
        process("system", 80.0, 2 << 30),
        process("web.1", 30.0, 1 << 30),
        process("web.2", 50.0, 1 << 30),
        process("web-balancer", 10.0, 1 << 20),
        process("redis", 20.0, 1 << 20),
    ];
    let addresses = vec!["a".into(), "b".into()];
    manifest.services =
        vec![Service { name: "web".into(), addresses, driven: true, ..manifest::Service::default() }];
    manifest.stores = vec![Store { name: "redis".into(), ..Store::default() }];
    manifest.settings.clear();
    manifest
}

fn amount(text: &str) -> Option<Amount> {
    Some(text.parse().unwrap())
}

fn tier<'b>(bill: &'b Bill, name: &str) -> &'b TierBill {
    bill.tiers.iter().find(|of| of.tier == name).unwrap()
}

#[test]
fn two_kinds_of_machines_by_hand() {
    let mut prices = prices(PRICES);
    prices.place("balancer", "small").unwrap();
    let bill = bill([&split()], &prices, Some(1_000)).unwrap();
    assert_eq!((bill.good, bill.caveat.as_deref(), bill.not_in_sums.len()), (100_000, None, 0));

    // web: 80 CPU-seconds for 100,000 answers are 800 s for a million: 800/3600 h of a core at 0.18/4 an hour = 0.01
    let web = tier(&bill, "web");
    assert_eq!((web.instances, web.machines, web.rss_bytes_max), (2, Some(2), 1 << 30));
    let at_cpu = web.at_cpu.unwrap();
    assert_eq!(at_cpu.per_million, amount("0.01"));
    // 0.8 cores of 4 are 0.2 machines at 0.18
    assert_eq!(Some(at_cpu.per_hour), amount("0.036"));
    // two machines at 0.18; a million takes 1,000 s
    let whole = web.whole.unwrap();
    assert_eq!((Some(whole.per_hour), whole.per_million), (amount("0.36"), amount("0.1")));

    // balancer: 0.1 cores of 1 at 0.036; and a whole one
    let balancer = tier(&bill, "web-balancer");
    assert_eq!(balancer.machine.as_deref(), Some("small"));
    let [at_cpu, whole] = [balancer.at_cpu, balancer.whole].map(Option::unwrap);
    assert_eq!((Some(at_cpu.per_hour), at_cpu.per_million), (amount("0.0036"), amount("0.001")));
    assert_eq!((Some(whole.per_hour), whole.per_million), (amount("0.036"), amount("0.01")));

    // with redis: 0.2 cores of 4 at 0.18; and a whole one. The driver is apart
    let sum = bill.at_cpu.unwrap();
    assert_eq!((Some(sum.per_hour), sum.per_million), (amount("0.0486"), amount("0.0135")));
    let sum = bill.whole.unwrap();
    assert_eq!((Some(sum.per_hour), Some(sum.per_day)), (amount("0.576"), amount("13.824")));
    assert_eq!((Some(sum.per_month), sum.per_customer_month), (amount("420.48"), amount("0.42048")));
    assert_eq!(sum.per_million, amount("0.16"));
    assert_eq!(tier(&bill, "driver").whole.unwrap().per_million, amount("0.05"));
}

#[test]
fn what_has_no_price_is_named_and_the_sums_say_so() {
    let text = PRICES.replace("machine: large", "tiers: {web: large}");
    let bill = bill([&split()], &prices(&text), None).unwrap();
    assert_eq!(bill.not_in_sums.len(), 2);
    assert!(
        bill.not_in_sums[0].starts_with("web-balancer is in no sum: it has no kind of machine; give "),
        "{:?}",
        bill.not_in_sums
    );
    assert!(bill.not_in_sums[1].contains("--machine redis=KIND"), "{:?}", bill.not_in_sums);
    assert_eq!(tier(&bill, "redis").whole, None);
    assert_eq!(bill.whole.unwrap().per_million, amount("0.1"));
    assert_eq!(bill.spot, None);
    assert!(bill.notes.iter().any(|note| note == "no spot price: none for large"), "{:?}", bill.notes);
    // the web's two
    assert_eq!(Some(bill.reserved.unwrap().per_hour), amount("0.18"));
    let text = shown(&crate::blocks::cost(&[NamedBill { name: "x".into(), runs: Vec::new(), bill }]), 100);
    assert!(
        text.contains("sum, incomplete") && text.contains("redis is in no sum: it has no kind of machine"),
        "{text}"
    );
    let is_head = |line: &&str| line.contains("a million") && line.contains("a month");
    let heads: Vec<&str> = text.lines().filter(is_head).map(str::trim_start).collect();
    assert!(heads[0].starts_with("incomplete "), "{text}");
    assert!(heads[1].starts_with("energy, incomplete "), "{text}");
}

#[test]
fn every_machine_that_lacks_a_price_is_named() {
    let text = PRICES.replace("machine: large", "machine: large\ntiers: {balancer: small}");
    let bill = bill([&split()], &prices(&text), None).unwrap();
    assert_eq!((bill.reserved, bill.spot, bill.energy), (None, None, None));
    assert_eq!(
        bill.notes,
        [
            "no reserved price: none for small",
            "no spot price: none for large, small",
            "no energy: no core_watts of small"
        ]
    );
    // a price for energy, and no watts
    let bill = super::bill(
        [&split()],
        &prices(&text.replace("core_watts: 6, idle_watts: 20", "spot_hour: 0.05")),
        None,
    );
    let notes = bill.unwrap().notes;
    assert!(notes.contains(&"no energy: no core_watts of large, small".to_owned()), "{notes:?}");
    let bill = super::bill([&split()], &prices(&PRICES.replace(", idle_watts: 20", "")), None).unwrap();
    assert!(bill.energy.is_some_and(|energy| energy.whole_wh.is_none()));
    assert!(bill.notes.contains(&"no energy of whole machines: no idle_watts of large".to_owned()));
}

#[test]
fn a_plan_of_a_million_cores_has_its_price() {
    let used = Usage::of(&split());
    let planned = Usage::planned(1e9, &[(&used.tiers[0], 250_000, 0.001)]);
    let bill = of_usage(&planned, &prices(PRICES), None);
    // 0.18 for each four of them
    let hour = amount("45000");
    assert_eq!((Some(bill.at_cpu.unwrap().per_hour), Some(bill.whole.unwrap().per_hour)), (hour, hour));
}

#[test]
fn a_machine_that_is_too_small_has_no_price_or_there_are_more_of_it() {
    let mut manifest = split();
    manifest.summary.processes[2].rss_bytes_max = 3 << 30;
    let mut all_small = prices(PRICES);
    all_small.machine = Some("small".into());
    let of = bill([&manifest], &all_small, None).unwrap();
    assert!(of.not_in_sums[0].starts_with("web is in no sum: an instance used"), "{:?}", of.not_in_sums);
    // 0.6 cores each fit; 1.6 do not, and just 1 does; what is hot has as many as it needs, and the other one
    for (one, two, machines) in [(60.0, 60.0, 2), (160.0, 160.0, 4), (100.0, 100.0, 2), (290.0, 10.0, 4)] {
        let cpu_s = one + two;
        let mut manifest = split();
        for (process, cpu_s) in manifest.summary.processes[1..4].iter_mut().zip([cpu_s, one, two]) {
            process.cpu_s = cpu_s;
        }
        let bill = bill([&manifest], &all_small, None).unwrap();
        assert_eq!(tier(&bill, "web").machines, Some(machines), "{cpu_s}");
        assert_eq!(bill.notes.iter().any(|note| note.contains("4 machines for 2 instances")), machines == 4);
    }
}

#[test]
fn a_run_that_failed_says_so_first_and_one_without_answers_has_no_price_for_a_million() {
    let mut manifest = split();
    manifest.summary.verdict.status = Status::Invalid;
    manifest.summary.verdict.reasons = vec!["driver-bound: no room".into()];
    manifest.summary.achieved_per_s = 0.0;
    let bill = bill([&manifest], &prices(PRICES), None).unwrap();
    assert_eq!(bill.caveat.as_deref(), Some("the run is invalid: driver-bound: no room"));
    let whole = bill.whole.unwrap();
    assert_eq!((whole.per_million, Some(whole.per_hour)), (None, amount("0.72")));
    let text = shown(&crate::blocks::cost(&[NamedBill { name: "x".into(), runs: Vec::new(), bill }]), 100);
    assert!(text.lines().next().unwrap().contains("the run is invalid: driver-bound"), "{text}");
}

#[test]
fn a_cent_in_a_million_is_seen_however_cheap() {
    let mut manifest = split();
    manifest.summary.achieved_per_s = 1e6;
    let bill = bill([&manifest], &prices(PRICES), None).unwrap();
    // 80 CPU-seconds for 100 million: 0.8 s for one, of a core at 0.045 an hour
    assert_eq!(tier(&bill, "web").at_cpu.unwrap().per_million, amount("0.00001"));
    let text = shown(&crate::blocks::cost(&[NamedBill { name: "x".into(), runs: Vec::new(), bill }]), 100);
    assert!(text.contains("0.00001"), "{text}");
    assert!(text.starts_with("x: a million good answers cost "), "{text}");
}

#[test]
fn energy_is_of_busy_cores_and_of_whole_machines() {
    let manifest = split();
    let of = bill([&manifest], &prices(PRICES), None).unwrap();
    let energy = of.energy.unwrap();
    // 110 CPU-seconds in 100 s are 1.1 cores at 6 W; 4 machines at 20 W
    assert_eq!(Some(energy.at_cpu_wh.per_hour), amount("6.6"));
    assert_eq!(Some(energy.whole_wh.unwrap().per_hour), amount("86.6"));
    // 86.6 Wh an hour for 730 hours at 0.25 a kWh
    assert_eq!(Some(energy.whole.unwrap().per_month), amount("15.8045"));
}

#[test]
fn rounds_count_together_and_the_scenario_says_its_customers() {
    let mut manifest = split();
    manifest.settings.insert("customers".into(), "500".into());
    let [one, two] = [1, 2].map(|rounds| {
        let runs = vec![manifest.clone(); rounds];
        bill(&runs, &prices(PRICES), None).unwrap()
    });
    assert_eq!((one.customers, two.good, two.measured_s), (Some(500), 200_000, 200.0));
    assert_eq!((one.at_cpu, one.whole), (two.at_cpu, two.whole));
    assert_eq!(bill(&Vec::<Manifest>::new(), &prices(PRICES), None), None);
}

#[test]
fn a_run_shows_its_bill_and_json_has_it() {
    let (_dir, mut run) = test_run::airline();
    run.manifest.bill = bill([&run.manifest], &prices(PRICES), None);
    let text = shown(&crate::blocks::run(&run), 100);
    assert!(text.contains("Cost\n") && text.contains("EUR · by hand · 2026-11-29"), "{text}");
    let json: serde_json::Value = serde_json::from_str(&crate::json::summary(&run).unwrap()).unwrap();
    assert_eq!(json["run"]["bill"]["currency"], "EUR");
    assert!(crate::markdown::summary(&run).contains("Cost"));
}

#[test]
fn what_is_driven_alone_has_the_name_of_its_service() {
    let mut manifest = split();
    manifest.services.clear();
    manifest.summary.processes.retain(|of| !of.name.starts_with("web"));
    let first = |manifest: &Manifest| bill([manifest], &prices(PRICES), None).unwrap().tiers.remove(0);
    assert_eq!(first(&manifest).tier, "system");
    manifest.system.service = Some("web".into());
    let web = first(&manifest);
    assert_eq!((web.tier.as_str(), web.role, web.cpu_s), ("web", Role::System, 80.0));
    assert_eq!(cpu_by_tier(&manifest, &[])[0].tier, "web");
    assert_eq!(tier_names([&manifest])[0], "web");
}

#[test]
fn names_that_may_stand_before_a_kind_of_machine() {
    let manifest = split();
    let all = ["web", "web-balancer", "balancer", "redis", "stores", "driver"];
    assert_eq!(tier_names([&manifest]), all);
}

/// The bill of runs, each changed by one of these, with what it shows.
fn bill_of(changes: &[&dyn Fn(&mut Manifest)]) -> (Bill, String) {
    let changed = |change: &&dyn Fn(&mut Manifest)| {
        let mut manifest = split();
        change(&mut manifest);
        manifest
    };
    let runs: Vec<Manifest> = changes.iter().map(changed).collect();
    let bill = bill(&runs, &prices(PRICES), None).unwrap();
    let text = shown(
        &crate::blocks::cost(&[NamedBill { name: "x".into(), runs: Vec::new(), bill: bill.clone() }]),
        100,
    );
    (bill, text)
}

fn of<'m>(manifest: &'m mut Manifest, name: &str) -> &'m mut Process {
    manifest.summary.processes.iter_mut().find(|of| of.name == name).unwrap()
}

#[test]
fn what_ran_and_was_not_seen_is_named() {
    let (bill, _) = bill_of(&[&|manifest| {
        let service =
            |name: &str| Service { name: name.into(), balancer: Some("nginx".into()), ..Service::default() };
        manifest.services.push(service("auth"));
        manifest.stores.push(Store { name: "data".into(), ..Store::default() });
    }]);
    let why = "is in no sum: none of its processes was seen";
    assert_eq!(bill.not_in_sums, ["auth", "auth-balancer", "data"].map(|name| format!("{name} {why}")));
    // two of three nodes
    let (bill, text) = bill_of(&[&|manifest| {
        manifest.stores[0].addresses = vec!["a".into(), "b".into(), "c".into()];
        of(manifest, "redis").name = "redis.1".into();
        manifest.summary.processes.push(process("redis.3", 1.0, 1 << 20));
    }]);
    assert_eq!(tier(&bill, "redis").instances, 3);
    assert_eq!(bill.not_in_sums, ["redis is in no sum: 2 of its 3 instances were seen"]);
    assert!(text.contains("sum, incomplete"), "{text}");
    // one of two instances of a service
    let (bill, _) = bill_of(&[&|manifest| manifest.summary.processes.retain(|of| of.name != "web.2")]);
    assert_eq!(bill.not_in_sums, ["web is in no sum: 1 of its 2 instances were seen"]);
    let (bill, _) = bill_of(&[&|manifest| of(manifest, "web.2").seen_s = Some(8.0)]);
    assert_eq!(bill.not_in_sums, ["web is in no sum: it was seen for only 8s of 100s"]);
}

#[test]
fn not_seen_is_not_zero() {
    let (bill, _) = bill_of(&[&|manifest| of(manifest, "redis").seen_s = Some(30.0)]);
    assert_eq!(bill.not_in_sums, ["redis is in no sum: it was seen for only 30s of 100s"]);
    assert_eq!((tier(&bill, "redis").whole, bill.whole.unwrap().per_hour), (None, amount("0.54").unwrap()));
    let (bill, text) = bill_of(&[&|manifest| {
        of(manifest, "redis").seen_s = Some(96.0);
        of(manifest, "redis").cpu_s = 0.0;
        of(manifest, "redis").rss_bytes_max = 0;
    }]);
    assert!(bill.not_in_sums.is_empty(), "{:?}", bill.not_in_sums);
    assert!(bill.notes.iter().any(|note| note == "memory of redis was not seen: large may be too small"));
    // 0.01 s for 100,000 answers are 0.1 s of a core at 0.045 an hour for a million
    assert_eq!(tier(&bill, "redis").at_cpu.unwrap().per_million, amount("0.00000125"));
    assert!(tier(&bill, "redis").at_cpu_is_less && !tier(&bill, "web").at_cpu_is_less);
    assert!(text.contains("<0.00000125"), "{text}");
}

/// What a round alone says is not lost in the others.
#[test]
fn what_is_hot_or_not_seen_in_one_round_counts() {
    let hot = |cpu_s: [f64; 2]| {
        move |manifest: &mut Manifest| {
            manifest.stores[0].addresses = vec!["a".into(), "b".into()];
            manifest.summary.processes.retain(|of| of.name != "redis");
            let node = |(number, cpu_s)| process(&format!("redis.{number}"), cpu_s, 1 << 20);
            manifest.summary.processes.extend([(1, cpu_s[0]), (2, cpu_s[1])].map(node));
        }
    };
    let machines = |changes: &[&dyn Fn(&mut Manifest)]| tier(&bill_of(changes).0, "redis").machines;
    let (first, second) = (hot([900.0, 10.0]), hot([10.0, 900.0]));
    let alone = machines(&[&first]).unwrap();
    assert!(alone > 2 && machines(&[&second]) == Some(alone), "{alone}");
    // each of them needs as many as in its worst round
    assert_eq!(machines(&[&first, &second]), Some(2 * (alone - 1)));
    let only = |name: &'static str| {
        move |manifest: &mut Manifest| {
            hot([1.0, 1.0])(manifest);
            manifest.summary.processes.retain(|of| !of.name.starts_with("redis.") || of.name == name);
        }
    };
    let (bill, _) = bill_of(&[&only("redis.1"), &only("redis.2")]);
    assert_eq!(bill.not_in_sums, ["redis is in no sum: in a round, 1 of its 2 instances were seen"]);
}

#[test]
fn rounds_that_did_not_pass_or_lack_a_tier_are_counted() {
    let failed = |status, reason: &'static str| {
        move |manifest: &mut Manifest| {
            manifest.summary.verdict.status = status;
            manifest.summary.verdict.reasons = vec![reason.into()];
        }
    };
    let invalid = failed(Status::Invalid, "driver-bound");
    let fail = failed(Status::Fail, "p99 > 5ms");
    let (bill, _) = bill_of(&[&invalid, &|_| (), &fail]);
    assert_eq!(bill.caveat.unwrap(), "1 of 3 rounds failed, 1 is invalid: p99 > 5ms; driver-bound");
    let (bill, _) =
        bill_of(&[&|_| (), &|manifest| manifest.summary.processes.retain(|of| of.name != "redis")]);
    assert_eq!(bill.not_in_sums, ["redis is in no sum: only 1 of 2 rounds have its figures"]);
    assert_eq!(tier(&bill, "redis").at_cpu, None);
}

#[test]
fn what_failed_and_what_was_broken_stand_beside_the_rate() {
    let (bill, text) = bill_of(&[&|manifest| {
        manifest.summary.failed = 300_000;
        let fault = |kind: &str, target: &str, begin_us| FaultEvent {
            fault: format!("{kind} {target}"),
            kind: kind.into(),
            target: target.into(),
            begin_us,
            ..FaultEvent::default()
        };
        let (from_us, to_us) = usage::measured_us(manifest);
        manifest.summary.faults = vec![
            fault("freeze", "system", Some(from_us + 1_000_000)),
            fault("kill", "redis.2", Some(from_us + 2_000_000)),
            fault("freeze", "late", Some(to_us.saturating_add(1)).filter(|at| *at > to_us)),
            fault("freeze", "never", None),
        ];
    }]);
    assert_eq!(bill.failed, 300_000);
    assert!(text.contains("100,000 good answers in 100s, 300,000 failed (75.0%)"), "{text}");
    let faults: Vec<_> = bill.notes.iter().filter(|note| note.starts_with("during")).collect();
    assert_eq!(faults.len(), 2, "{faults:?}");
    assert!(
        faults[0].contains("`freeze system` at") && faults[0].ends_with("the tier web was down"),
        "{faults:?}"
    );
    assert!(faults[1].ends_with("an instance of the tier redis was down"), "{faults:?}");
}

#[test]
fn a_name_in_the_file_that_the_run_does_not_have_is_told_with_the_nearest() {
    let text = PRICES.replace("machine: large", "machine: large\ntiers: {reddis: small, stores: large}");
    let bill = bill([&split()], &prices(&text), None).unwrap();
    let notes: Vec<_> = bill.notes.iter().filter(|note| note.contains("price file")).collect();
    assert_eq!(notes.len(), 1, "{notes:?}");
    assert!(notes[0].ends_with("none of that name; did you mean redis?"), "{notes:?}");
}

#[test]
fn without_a_measured_window_whole_machines_have_their_price() {
    let (bill, text) = bill_of(&[&|manifest| manifest.summary.measured_s = 0.0]);
    assert_eq!(bill.not_in_sums, ["no price for the CPU used: nothing was measured"]);
    assert_eq!((bill.at_cpu, bill.whole.unwrap().per_hour), (None, amount("0.72").unwrap()));
    assert!(!text.contains("the sums lack"), "{text}");
}
