//! Thread groups, timers and data sets.

use super::*;

#[test]
fn timers_become_pauses_before_each_request_in_their_scope() {
    let found = steps(
        &[
            bean("ConstantTimer", "T", &[("ConstantTimer.delay", "300")]),
            get(
                "A",
                "/a",
                &bean(
                    "UniformRandomTimer",
                    "T",
                    &[("ConstantTimer.delay", "1000"), ("RandomTimer.range", "500")],
                ),
            ),
            get(
                "B",
                "/b",
                &bean(
                    "GaussianRandomTimer",
                    "T",
                    &[("ConstantTimer.delay", "900"), ("RandomTimer.range", "100")],
                ),
            ),
            node(
                "TestAction",
                "P",
                &[text("ActionProcessor.action", "1"), text("ActionProcessor.duration", "50")].concat(),
                "",
            ),
        ]
        .concat(),
    );
    assert_is(
        &found,
        "
- think: 300ms
- think: {between: [1s, 1.5s]}
- GET: /a
  label: A
- think: 300ms
- think: {between: [200ms, 400ms]}
- think: {between: [200ms, 400ms]}
- think: {between: [200ms, 400ms]}
- GET: /b
  label: B
- think: 300ms
- think: 50ms
",
    );
}

#[test]
fn timers_of_a_rate_become_a_pace_or_arrivals() {
    let two = [get("A", "/a", ""), get("B", "/b", "")].concat();
    let constant = bean("ConstantThroughputTimer", "T", &[("throughput", "120"), ("calcMode", "2")]);
    // 120 requests a minute of 10 users with 2 each: a round of each user every 10 s
    assert_is(
        &load(&plan(&group("Users", "", &format!("{constant}{two}")))),
        "load:\n  users: 10\n  pace: 10s\n  ramp: 5s\n  hold: 55s",
    );
    let precise =
        bean("PreciseThroughputTimer", "T", &[("throughput", "7200"), ("throughputPeriod", "3600")]);
    let found = load(&plan(&group("Users", "", &format!("{precise}{two}"))));
    assert_is(&found, "load:\n  rate: 1/s\n  spacing: poisson\n  hold: 1m\n\nlimits:\n  in flight: 10");
}

#[test]
fn data_sets_counters_and_random_variables_are_drawn_each_round() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("users.csv"), "ann;1\nbob;2\n").unwrap();
    fs::write(folder.path().join("items.csv"), "item,count\nlamp,1\n").unwrap();
    let text = plan(&group(
        "Users",
        "",
        &[
            bean(
                "CSVDataSet",
                "C",
                &[
                    ("filename", "C:\\data\\users.csv"),
                    ("variableNames", "name,id"),
                    ("delimiter", ";"),
                    ("shareMode", "shareMode.all"),
                    ("recycle", "true"),
                ],
            ),
            bean(
                "CSVDataSet",
                "D",
                &[
                    ("filename", "items.csv"),
                    ("variableNames", ""),
                    ("delimiter", ","),
                    ("shareMode", "shareMode.all"),
                    ("recycle", "true"),
                ],
            ),
            bean(
                "CounterConfig",
                "N",
                &[
                    ("CounterConfig.start", "5"),
                    ("CounterConfig.incr", "2"),
                    ("CounterConfig.end", "9"),
                    ("CounterConfig.name", "n"),
                    ("CounterConfig.format", "N-000"),
                ],
            ),
            bean(
                "RandomVariableConfig",
                "R",
                &[("minimumValue", "1"), ("maximumValue", "6"), ("variableName", "dice")],
            ),
            get("A", "/${name}/${id}/${item}?n=${n}&d=${dice}", ""),
        ]
        .concat(),
    ));
    let made = made_in(folder.path(), &text, &[]);
    let yaml =
        made.checked_in(folder.path()).unwrap_or_else(|error| panic!("{error}\n{}", made.scenario.to_yaml()));
    assert!(made.left_out.is_empty(), "{:?}", made.left_out);
    for part in [
        "  users: {file: users.csv, delimiter: ;, header: [name, id]}\n",
        "  items: {file: items.csv}\n",
        "      - take: users\n      - take: items\n      - set: {\"n\": \"${concat('N-', pad(5 + 2 * (count(counter) % 3), 3))}\"}\n      - set: {dice: \"${random(1, 6)}\"}\n",
        "      - GET: /${path(name)}/${path(id)}/${path(item)}?n=${path(n)}&d=${dice}\n",
    ] {
        assert!(yaml.contains(part), "{part}\n{yaml}");
    }
    // a first line with other names, and cells that the plan does not name
    for (file, names, skips, feeder, set) in [
        ("users.csv", "name,id", "false", "file: users.csv, delimiter: ;, header: [name, id]", ""),
        (
            "heads.csv",
            "name,id",
            "true",
            "file: heads.csv, delimiter: ;",
            "- set: {name: \"${user}\", id: \"${no}\"}",
        ),
        ("heads.csv", "name", "false", "file: heads.csv, delimiter: ;, header: [name, column, column_2]", ""),
        ("users.csv", "name,id,more", "false", "rows: [{name: name 1, id: id 1, more: more 1}]", ""),
        ("uneven.csv", "name", "false", "rows: [{name: name 1}]", ""),
    ] {
        fs::write(folder.path().join("heads.csv"), "user;no;town\nann;1;Ulm\n").unwrap();
        fs::write(folder.path().join("uneven.csv"), "ann;1\nbob\n").unwrap();
        let properties = [
            ("filename", file),
            ("variableNames", names),
            ("ignoreFirstLine", skips),
            ("delimiter", ";"),
            ("shareMode", "shareMode.all"),
            ("recycle", "true"),
        ];
        let set_of = bean("CSVDataSet", "C", &properties);
        let made = made_in(
            folder.path(),
            &plan(&group("Users", "", &format!("{set_of}{}", get("A", "/${name}", "")))),
            &[],
        );
        let yaml = made.checked_in(folder.path()).unwrap_or_else(|error| panic!("{error}"));
        assert!(yaml.contains(&format!("{{{feeder}}}")) || yaml.contains(feeder), "{feeder}\n{yaml}");
        assert!(yaml.contains(set), "{set}\n{yaml}");
        assert_eq!(made.left_out.is_empty(), !feeder.starts_with("rows"), "{:?}", made.left_out);
    }
    // a file that is not there
    let (yaml, left_out) = checked(&super::tests::made(&text));
    assert!(
        left_out.iter().any(|left| left.contains("users.csv, which is not in the plan's folder")),
        "{left_out:?}"
    );
    assert!(yaml.contains("rows: [{name: name 1, id: id 1}]"), "{yaml}");
}

#[test]
fn loads_are_those_of_the_thread_groups() {
    let one = get("A", "/a", "");
    assert_is(&load(&plan(&group("Users", "", &one))), "load:\n  users: 10\n  ramp: 5s\n  hold: 55s");
    // threads with a number of rounds begin at a rate, and end
    let found = load(&plan(&rounds("20", "10", "3", &one)));
    assert!(found.contains("  rate: 2/s\n") && found.contains("limits:\n  sessions: 20\n"), "{found}");
    let found = load(&plan(&rounds("1", "1", "50", &one)));
    assert!(found.contains("  users: 1\n") && found.contains("limits:\n  sessions: 50\n"), "{found}");
    let found = load(&plan(&rounds("7", "0", "50", &one)));
    assert!(found.contains("  users: 7\n") && found.contains("limits:\n  sessions: 7\n"), "{found}");
    // those with a duration end then, whatever is left of their rounds
    let within = |threads: &str, ramp: &str, s: &str| {
        let until = format!(
            "{}{}</ThreadGroup>",
            flag("ThreadGroup.scheduler", true),
            text("ThreadGroup.duration", s)
        );
        plan(&rounds(threads, ramp, "3", &one).replace("</ThreadGroup>", &until))
    };
    for (threads, ramp, s, rate, hold, sessions) in [
        ("20", "10", "60", "2/s", "1m", 20),
        ("20", "10", "5", "2/s", "5s", 10),
        ("7", "0", "60", "", "1m", 7),
    ] {
        let (yaml, left_out) = checked(&made(&within(threads, ramp, s)));
        assert!(left_out.is_empty(), "{left_out:?}");
        let (hold, sessions) = (format!("  hold: {hold}\n"), format!("  sessions: {sessions}\n"));
        for part in [hold.as_str(), sessions.as_str(), rate, "- repeat: 3\n"] {
            assert!(yaml.contains(part), "{part}\n{yaml}");
        }
    }
    // properties stay settings, and one that would change nothing is none
    let asks = plan(&group("Users", "", &one))
        .replace(">5<", ">${__P(ramp,5)}<")
        .replace(">60<", ">${__P(length,60)}<");
    assert_is(&load(&asks), "load:\n  users: 10\n  ramp: ${ramp}s\n  hold: ${length - ramp}s");
    let (yaml, _) = checked(&made(&plan(&rounds("${__P(threads,7)}", "0", "2", &one))));
    assert!(!yaml.contains("settings:"), "{yaml}");
    let ultimate = |rows: &[[u32; 5]]| {
        let rows: String = rows
            .iter()
            .map(|row| {
                format!(
                    "<collectionProp name=\"1\">{}</collectionProp>",
                    row.iter().map(|cell| text("1", &cell.to_string())).collect::<String>()
                )
            })
            .collect();
        plan(&node(
            "kg.apc.jmeter.threads.UltimateThreadGroup",
            "U",
            &format!("<collectionProp name=\"ultimatethreadgroupdata\">{rows}</collectionProp>"),
            &one,
        ))
    };
    assert_is(
        &load(&ultimate(&[[10, 0, 30, 60, 10], [5, 30, 0, 60, 0]])),
        "
load:
  phases:
    - {for: 30s, users: 0 to 10, measured: false}
    - {for: 1m, users: 15}
    - {for: 10s, users: 10 to 0, measured: false}",
    );
    let stepping = plan(&node(
        "kg.apc.jmeter.threads.SteppingThreadGroup",
        "S",
        &[
            ("ThreadGroup.num_threads", "10"),
            ("Threads initial delay", "0"),
            ("Start users count", "5"),
            ("Start users count burst", "0"),
            ("Start users period", "30"),
            ("Stop users count", "5"),
            ("Stop users period", "1"),
            ("flighttime", "60"),
            ("rampUp", "5"),
        ]
        .iter()
        .map(|(name, value)| text(name, value))
        .collect::<String>(),
        &one,
    ));
    assert_is(
        &load(&stepping),
        "
load:
  phases:
    - {for: 5s, users: 0 to 5, measured: false}
    - {for: 30s, users: 5}
    - {for: 5s, users: 5 to 10}
    - {for: 1m, users: 10}
    - {for: 1s, users: 5}",
    );
    let target = |kind: &str, unit: &str| {
        plan(&node(
            kind,
            "C",
            &[("TargetLevel", "60"), ("RampUp", "1"), ("Steps", "3"), ("Hold", "2"), ("Unit", unit)]
                .iter()
                .map(|(name, value)| text(name, value))
                .collect::<String>(),
            &one,
        ))
    };
    assert_is(
        &load(&target("com.blazemeter.jmeter.threads.concurrency.ConcurrencyThreadGroup", "M")),
        "
load:
  phases:
    - {for: 1m, users: 20 to 60 in 3 steps, measured: false}
    - {for: 2m, users: 60}",
    );
    assert_is(
        &load(&target("com.blazemeter.jmeter.threads.arrivals.ArrivalsThreadGroup", "M")),
        "
load:
  spacing: poisson
  phases:
    - {for: 1m, rate: 20/min to 1/s in 3 steps, measured: false}
    - {for: 2m, rate: 1/s}",
    );
    let open = plan(&node(
        "OpenModelThreadGroup",
        "O",
        &text(
            "OpenModelThreadGroup.schedule",
            "rate(0/s) random_arrivals(10 s) rate(5/s) random_arrivals(1 min) pause(2 s)",
        ),
        &one,
    ));
    assert_is(
        &load(&open),
        "
load:
  spacing: poisson
  phases:
    - {for: 10s, rate: 0/s to 5/s}
    - {for: 1m, rate: 5/s}
    - {for: 2s, rate: 0/s}",
    );
    let two = plan(&[group("Buyers", "", &one), group("Visitors", "", &one)].concat());
    assert_is(
        &load(&two),
        "
load:
  sessions:
    Buyers: {users: 10, ramp: 5s, hold: 55s}
    Visitors: {users: 10, ramp: 5s, hold: 55s}",
    );
}

#[test]
fn set_up_is_prepared_and_tear_down_is_told() {
    let set_up = node("SetupThreadGroup", "S", &text("ThreadGroup.num_threads", "1").add(&format!("<elementProp name=\"ThreadGroup.main_controller\" elementType=\"LoopController\">{}</elementProp>", text("LoopController.loops", "1"))), &get("Fill", "/fill", ""));
    let tear_down = node("PostThreadGroup", "T", "", &get("Clear", "/clear", ""));
    let made = made(&plan(&[set_up, group("Users", "", &get("A", "/a", "")), tear_down].concat()));
    let (yaml, left_out) = checked(&made);
    assert!(yaml.contains("prepare:\n  - GET: /fill\n"), "{yaml}");
    assert!(
        left_out.len() == 1 && left_out[0].contains("sent its requests once the other threads had ended"),
        "{left_out:?}"
    );
    assert!(made.left_out[0].is_request);
}
