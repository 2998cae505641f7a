//! The load models of the language: what they become, and what is said of their mistakes.

use std::time::Duration;

use crate::support;
use tidemark_scenario::plan::{AtLimit, Choose, Curve, LoadModel, Pause, Spacing};
use tidemark_scenario::{Plan, load_text};

fn file(load: &str) -> String {
    format!("sessions:\n  a: {{steps: [{{GET: /}}]}}\n  b: {{steps: [{{GET: /}}]}}\nload: {load}\n")
}

fn plan(load: &str) -> Plan {
    support::load(&file(load)).unwrap()
}

fn told(load: &str) -> String {
    support::load(&file(load)).unwrap_err().to_string()
}

fn s(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

#[test]
fn curves_of_a_rate() {
    let curve = |load: &str| {
        let phase = plan(load).load.phases.pop().unwrap();
        (phase.from, phase.to, phase.curve)
    };
    assert_eq!(curve("{rate: 100/s to 1k/s in 5 steps, hold: 1s}"), (100.0, 1_000.0, Curve::Steps(5)));
    assert_eq!(curve("{users: 1 to 9 in 3 steps, hold: 1s}"), (1.0, 9.0, Curve::Steps(3)));
    let sine = "{rate: {sine: {mean: 50/s, amplitude: 30/s, period: 1m}}, ramp: 1s, hold: 1s}";
    assert_eq!(curve(sine), (50.0, 50.0, Curve::Sine { amplitude: 30.0, period: s(60) }));
    assert_eq!(plan(sine).load.phases[0].curve, Curve::Line);
    let spikes = "{phases: [{rate: 50/s, spike: {rate: 1k/s, every: 30s, for: 2s}, for: 3m}]}";
    assert_eq!(curve(spikes).2, Curve::Spikes { level: 1_000.0, every: s(30), length: s(2) });
}

#[test]
fn users_think_or_keep_a_pace() {
    let model = |load: &str| plan(load).load.model;
    assert_eq!(model("{users: 5, pace: 10s, hold: 1s}"), LoadModel::Paced(s(10)));
    assert_eq!(model("{users: 5, think: 2s, hold: 1s}"), LoadModel::Thinking(Pause::Fixed(s(2))));
    let between = Pause::Between(s(1), s(3));
    assert_eq!(model("{users: 5, think: {between: [1s, 3s]}, hold: 1s}"), LoadModel::Thinking(between));
    let exponential = Pause::Exponential(s(2));
    assert_eq!(model("{users: 5, think: {exponential: 2s}, hold: 1s}"), LoadModel::Thinking(exponential));
}

#[test]
fn kinds_with_loads_of_their_own_share_what_is_measured_in_all() {
    let plan = plan(
        "{sessions: {b: {users: 5, ramp: 20s, hold: 60s}, a: {rate: 9/s, spacing: poisson, warm-up: 10s, hold: 90s}}}",
    );
    let kinds: Vec<_> = plan.load.kinds.iter().map(|kind| (kind.kind, kind.model)).collect();
    assert_eq!(kinds, [(1, LoadModel::Closed), (0, LoadModel::Open(Spacing::Poisson))]);
    let phases: Vec<_> = plan.load.phases.iter().map(|p| (p.name.as_str(), p.duration, p.measured)).collect();
    assert_eq!(phases, [("warm-up", s(20), false), ("hold", s(60), true), ("rest", s(20), false)]);
    assert_eq!(plan.load.most_users(), 5);
}

#[test]
fn sessions_in_flight_are_limited_where_they_arrive() {
    let limit = |rest: &str| plan(&format!("{{rate: 9/s, hold: 1s}}\nlimits: {rest}")).limits.in_flight;
    assert_eq!(limit("{in flight: 7}").map(|l| (l.most, l.at_limit)), Some((7, AtLimit::Wait)));
    assert_eq!(limit("{in flight: 7, at limit: drop}").map(|l| l.at_limit), Some(AtLimit::Drop));
    assert_eq!(limit("{}"), None);
    assert!(told("{users: 1, hold: 1s}\nlimits: {in flight: 7}").contains("users are their own limit"));
    let limits = |limits: &str| plan(&format!("{{rate: 1/s, hold: 1s}}\nlimits: {limits}")).limits;
    let usual = limits("{body: 1KiB}");
    assert_eq!((usual.choose, usual.connections_named, usual.waiting), (Choose::InTurn, false, None));
    let said = limits("{connections: 9, choose: first free, waiting: 5}");
    assert_eq!((said.choose, said.connections_named, said.waiting), (Choose::FirstFree, true, Some(5)));
    assert_eq!(limits("{choose: fill, pipeline: 4}").choose, Choose::Fill);
    assert!(
        told("{rate: 1/s, hold: 1s}\nlimits: {choose: last}")
            .contains("not one of in turn, first free, fill")
    );
    assert!(told("{rate: 1/s, hold: 1s}\nlimits: {at limit: drop}").contains("needs a limit beside it"));
}

#[test]
fn mistakes_in_loads() {
    let cases = [
        ("{rate: 1/s in 5 steps, hold: 1s}", "steps lead from one level to another"),
        ("{rate: 1/s to 9/s in 1 steps, hold: 1s}", "at least 2"),
        ("{rate: 1/s to 9/s in five steps, hold: 1s}", "\"five steps\" is not a number of steps"),
        ("{rate: {sine: {mean: 5/s, amplitude: 6/s, period: 1m}}, hold: 1s}", "falls below 0"),
        ("{rate: {sine: {mean: 5/s, amplitude: 5/s, period: 0s}}, hold: 1s}", "longer than 0"),
        ("{rate: {sine: {mean: 5/s, period: 1m}}, hold: 1s}", "a sine needs the key \"amplitude\""),
        ("{rate: {}, hold: 1s}", "needs one of the keys sine, file"),
        ("{rate: 5/s, spike: {rate: 9/s, every: 1s, for: 1s}, hold: 9s}", "shorter than its period"),
        ("{users: 5, spike: {rate: 9/s, every: 2s, for: 1s}, hold: 9s}", "spikes stand on a plain rate"),
        ("{rate: 5/s, spike: {rate: 9/s, every: 1ms, for: 1us}, hold: 9h}", "too many spikes"),
        ("{users: 5, think: 1s, pace: 1s, hold: 1s}", "either a pace or a think time"),
        ("{rate: 5/s, pace: 1s, hold: 1s}", "\"pace\" belongs to a load with users"),
        ("{users: 5, pace: 1us, hold: 1s}", "too short"),
        ("{phases: [{rate: 5/s}]}", "a phase needs the key \"for\""),
        ("{sessions: {a: {users: 1, hold: 1s}}}", "the session \"b\" has no load"),
        ("{sessions: {a: {users: 1, hold: 1s}, c: {users: 1, hold: 1s}}}", "there is no session \"c\""),
        ("{hold: 1s, sessions: {a: {users: 1, hold: 1s}}}", "\"hold\" stands in those"),
        (
            "{sessions: {a: {users: 1, hold: 9s}, b: {users: 1, warm-up: 9s, hold: 9s}}}",
            "have nothing in common",
        ),
        (
            "{sessions: {a: {sessions: {a: {users: 1, hold: 9s}}}, b: {users: 1, hold: 9s}}}",
            "the load of one kind already",
        ),
    ];
    for (load, reason) in cases {
        let told = told(load);
        assert!(told.contains(reason), "{load}: {told}");
    }
}

#[test]
fn rates_come_from_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let read = |csv: &str, load: &str| {
        std::fs::write(folder.path().join("r.csv"), csv).unwrap();
        load_text("t.yaml", &file(load), folder.path(), &[])
    };
    let hold = "{rate: {file: r.csv}}";
    let plan = read("rate, seconds\n5,100\n9,102\n0,105\n", hold).unwrap();
    let [phase] = plan.load.phases.as_slice() else { panic!() };
    let Curve::Series(series) = &phase.curve else { panic!() };
    assert_eq!(series.points, [(0.0, 5.0), (2.0, 9.0), (5.0, 0.0)]);
    assert_eq!((phase.duration, series.between, phase.measured), (s(8), false, true));
    let lines = read("seconds,rate\n0,5\n4,9\n", "{rate: {file: r.csv, between rows: line}, warm-up: 1s}");
    let durations: Vec<_> = lines.unwrap().load.phases.iter().map(|phase| phase.duration).collect();
    assert_eq!(durations, [s(1), s(4)]);

    for (csv, reason) in [
        ("seconds,rate\n0,5\n", "at least two rows"),
        ("second,rate\n0,5\n1,5\n", "no column \"seconds\""),
        ("seconds,rate\n0,5\n0,6\n", "line 3: its seconds are not later"),
        ("seconds,rate\n0,5\n1,-6\n", "line 3: \"-6\" is not a rate"),
        ("seconds,rate\n0,5\n1\n", "line 3: \"\" is not a rate"),
        ("seconds,rate\n0,5\n1,inf\n", "is not a rate"),
    ] {
        let told = read(csv, hold).unwrap_err().to_string();
        assert!(told.starts_with("t.yaml:4:21: cannot read") && told.contains(reason), "{csv}: {told}");
    }
}

#[test]
fn the_command_line_changes_each_model_as_far_as_it_has_a_meaning() {
    let change = |load: &str, rate: Option<f64>, time: Option<u64>| {
        let mut plan = plan(load);
        plan.override_load(rate, time.map(s)).map(|()| plan.load).map_err(|error| error.to_string())
    };
    let sine = "{rate: {sine: {mean: 50/s, amplitude: 30/s, period: 1m}}, hold: 2m}";
    let phase = change(sine, Some(160.0), Some(240)).unwrap().phases.remove(0);
    assert_eq!((phase.from, phase.duration), (100.0, s(240)));
    assert_eq!(phase.curve, Curve::Sine { amplitude: 60.0, period: s(60) });
    let spikes = "{rate: 50/s, spike: {rate: 1k/s, every: 30s, for: 2s}, hold: 2m}";
    let phase = change(spikes, Some(500.0), Some(10)).unwrap().phases.remove(0);
    assert_eq!((phase.from, phase.peak()), (25.0, 500.0));
    let paced = change("{users: 50, pace: 10s, hold: 1m}", Some(25.0), None).unwrap();
    assert_eq!((paced.model, paced.phases[0].to), (LoadModel::Open(Spacing::Constant), 25.0));

    let same = "{sessions: {a: {users: 1, hold: 9s}, b: {rate: 9/s, hold: 9s}}}";
    let load = change(same, None, Some(18)).unwrap();
    let durations: Vec<_> = load.kinds.iter().map(|kind| kind.phases[0].duration).collect();
    assert_eq!((durations, load.phases[0].duration), (vec![s(18), s(18)], s(18)));
    assert!(change(same, Some(5.0), None).unwrap_err().contains("cannot tell whose to change"));
    let other = "{sessions: {a: {users: 1, hold: 9s}, b: {rate: 9/s, warm-up: 1s, hold: 9s}}}";
    assert!(change(other, None, Some(18)).unwrap_err().contains("not all measured at the same time"));
}

#[test]
fn a_file_of_rates_can_be_cut_off_and_not_be_made_longer() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("r.csv"), "seconds,rate\n0,5\n30,9\n").unwrap();
    let mut plan = load_text("t.yaml", &file("{rate: {file: r.csv}}"), folder.path(), &[]).unwrap();
    plan.override_load(Some(18.0), Some(s(40))).unwrap();
    assert_eq!((plan.load.phases[0].duration, plan.load.phases[0].peak()), (s(40), 18.0));
    let told = plan.override_load(None, Some(s(61))).unwrap_err().to_string();
    assert!(told.contains("lasts 1m; --for can only shorten it"), "{told}");
}

#[test]
fn a_kind_with_no_users_takes_no_part_and_all_of_them_are_a_mistake() {
    let text = |a: u32, b: u32| {
        let kind = |name: &str| format!("  {name}: {{steps: [{{GET: /}}]}}\n");
        format!(
            "sessions:\n{}{}load:\n  sessions:\n    a: {{users: {a}, hold: 1s}}\n    b: {{users: {b}, hold: 9s}}\n",
            kind("a"),
            kind("b")
        )
    };
    let check = |a, b| support::checked(&text(a, b));
    let (plan, told) = check(3, 0);
    let load = plan.unwrap_or_else(|| panic!("{told}")).load;
    assert_eq!((load.kinds.len(), load.most_users()), (1, 3));
    let (plan, told) = check(0, 0);
    assert!(plan.is_none() && told.to_string().contains("this load is always 0"), "{told}");
}

/// What is told about a scenario with these lines above its load, and these steps.
fn told_of(above: &str, steps: &str) -> String {
    let text =
        format!("{above}\nload: {{users: 1, hold: 1s}}\nsessions: {{s: {{steps: [\n  {steps}\n  ]}}}}\n");
    tidemark_scenario::load_text("s.yaml", &text, std::path::Path::new("."), &[])
        .map_or_else(|error| error.to_string(), |_| String::new())
}

#[test]
fn small_files_that_expand_are_refused_before_the_text_is_made() {
    let tenfold = |last: usize, ten: &dyn Fn(usize) -> String| {
        let each: Vec<String> = (1..=last).map(|at| format!("a{at}: {}", ten(at - 1))).collect();
        each.join(", ")
    };
    let holes = |at: usize| format!("\"{}\"", format!("${{a{at}}}").repeat(10));
    let settings = format!("settings: {{a0: xxxxxxxxxx, {}}}", tenfold(11, &holes));
    let said = told_of(&settings, "GET: '/${a11}'");
    assert!(said.contains("settings that are named take more than 64MiB together"), "{said}");
    // the same at one place
    let once = format!("settings: {{a0: xxxxxxxxxx, {}}}", tenfold(6, &holes));
    let said = told_of(&once, &format!("GET: '/{}'", "${a6}".repeat(20)));
    assert!(said.contains("\"a6\" has 9.537MiB") && said.contains("64MiB"), "{said}");
    // functions make longer texts of texts, too
    let nested = format!("{}a6{}", "base64(".repeat(60), ")".repeat(60));
    let said = told_of(&once, &format!("GET: '/${{{nested}}}'"));
    assert!(said.len() < 4_000, "{said}");

    let aliases = |at: usize| format!("&a{} [{}]", at + 1, vec![format!("*a{at}"); 10].join(", "));
    let lists = format!("x: {{a0: &a0 [xxxxxxxxxx], {}}}", tenfold(9, &aliases));
    assert!(told_of(&lists, "GET: /").contains("the scenario has more than 200000 nodes"));
    let long = format!("x: [&a {}, {}]", "x".repeat(1 << 20), vec!["*a"; 100].join(", "));
    assert!(told_of(&long, "GET: /").contains("stand for more than 32 MiB of text"));
}

#[test]
fn what_a_run_cannot_hold_is_refused_with_what_it_would_be() {
    let steps: Vec<String> = (0..2_001).map(|at| format!("GET: /x{at}")).collect();
    let said = told_of("", &steps.join(",\n  "));
    let wanted =
        "more than 2000 labels: each holds 256KiB of histograms on each driving thread, 500MiB together";
    assert!(said.starts_with("s.yaml:2004:3: ") && said.contains(wanted), "{said}");
    assert_eq!(said.matches("labels").count(), 1, "{said}");
    assert_eq!(told_of("", &steps[1..].join(",\n  ")), "");
    let alike = steps.iter().map(|step| format!("{{{step}, label: x}}")).collect::<Vec<_>>();
    assert_eq!(told_of("", &alike.join(",\n  ")), "");

    let variables: Vec<String> = (0..5_000).map(|at| format!("v{at}: 1")).collect();
    let many = format!("{{set: {{{}}}}}, GET: /", variables.join(",\n  "));
    let said = told_of("limits: {connections: 1000000}", &many);
    assert!(said.contains("1000000 sessions at once with the 5000 variables of \"s\" hold"), "{said}");
    assert!(!told_of("", &many).contains("sessions at once"));
}

#[test]
fn what_variables_come_to_hold_is_refused_where_lengths_say_it() {
    let told = |users: u32, steps: &str| {
        let text = format!(
            "sessions: {{s: {{steps: [{steps}, GET: '/${{a}}']}}}}\nload: {{users: {users}, hold: 1s}}\n"
        );
        tidemark_scenario::load_text("s.yaml", &text, std::path::Path::new("."), &[])
            .map_or_else(|error| error.to_string(), |_| String::new())
    };
    let long = "set: {a: 'x${random_text(65536)}', b: '${pad(7, 40000)}'}";
    let wanted = "the variables of 30000 users hold at least 2.949GiB; at most 2GiB for all together";
    let said = told(30_000, long);
    assert!(said.starts_with("s.yaml:1:") && said.contains(wanted), "{said}");
    assert_eq!(told(20_000, long), "");
    assert_eq!(told(30_000, "set: {a: '${random_text(65536)}'}, set: {a: short}"), "", "the last one counts");
    assert_eq!(told(1_000_000, "set: {a: '${random_text(random(1, 65536))}'}"), "", "nobody knows");
}
