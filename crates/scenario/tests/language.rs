//! What compiled scenarios do.

use std::path::Path;

use crate::support::{self, Answer, Sent, User, World};
use tidemark_scenario::plan::{
    About, Counted, LoadModel, MetricKind, MetricPlan, Op, RatioForm, RatioPlan, Ready, Resolve, Spacing,
    SystemOrigin, TlsSettings, WhenMissing,
};
use tidemark_scenario::{Plan, load_text};

fn plan(text: &str) -> Plan {
    support::load(text).unwrap_or_else(|diagnostics| panic!("{diagnostics}"))
}

fn with_steps(steps: &str) -> Plan {
    plan(&format!("sessions:\n  a:\n    steps:\n{steps}\nload: {{users: 1, hold: 1s}}\n"))
}

/// Requests of `sessions` sessions, each as method, target and body; every answer is `body`.
fn sent(plan: &Plan, sessions: usize, body: &str) -> Vec<String> {
    let mut world = World::new(plan, 5);
    let mut user = User::new(&plan.sessions[0]);
    let mut log = Vec::new();
    for _ in 0..sessions {
        while user.step(&mut world, &mut |sent: &Sent| {
            log.push(format!("{} {} {}", sent.method, sent.target, sent.body).trim_end().to_owned());
            Answer { status: 200, body: body.to_owned() }
        }) {}
    }
    assert_eq!(world.failures, [""; 0]);
    log
}

#[test]
fn repeat_counts_its_rounds() {
    let plan =
        with_steps("      - repeat: 3\n        as: i\n        steps:\n          - GET: /${i}/${i * 2}");
    assert_eq!(sent(&plan, 2, ""), ["GET /0/0", "GET /1/2", "GET /2/4", "GET /0/0", "GET /1/2", "GET /2/4"]);
}

#[test]
fn each_goes_over_a_list_up_to_its_limit() {
    let steps = "      - GET: /
        extract: {ids: {all: \"$[*].id\"}, n: {count: \"$[*]\"}}
      - each: id in ${ids}
        limit: ${n - 1}
        steps:
          - DELETE: /items/${id}
      - each: id in ids
        steps: [{set: {seen: \"${id}\"}}]
      - GET: /last/${seen}";
    let plan = with_steps(steps);
    let log = sent(&plan, 1, r#"[{"id": "a/b"}, {"id": 2}, {"id": "c"}]"#);
    assert_eq!(log, ["GET /", "DELETE /items/a%2Fb", "DELETE /items/2", "GET /last/c"]);
    assert_eq!(sent(&plan, 1, r#"[{"id": 7}]"#), ["GET /", "GET /last/7"]);
}

#[test]
fn when_has_an_else_and_a_session_can_end() {
    let steps = "      - set: {n: \"${count(pass)}\"}
      - when: n % 2 == 0
        steps:
          - GET: /even
        else:
          - GET: /odd
          - end: session
      - GET: /after";
    assert_eq!(sent(&with_steps(steps), 2, ""), ["GET /even", "GET /after", "GET /odd"]);
}

#[test]
fn choose_follows_its_weights() {
    let steps = "      - choose:
          - weight: 3
            steps: [{GET: /often}]
          - weight: 0
            steps: [{GET: /never}]
          - steps: [{GET: /rarely}]";
    let text = format!("sessions:\n  a:\n    steps:\n{steps}\nload: {{users: 1, hold: 1s}}\n");
    let log = sent(&plan(&text), 8_000, "");
    let often = log.iter().filter(|line| *line == "GET /often").count();
    assert_eq!(log.len(), 8_000);
    assert!((5_800..6_200).contains(&often), "{often}");
    assert!(!log.iter().any(|line| line == "GET /never"));
}

#[test]
fn sometimes_is_even_or_by_chance() {
    let even = with_steps("      - sometimes: 40%\n        steps: [{GET: /}]");
    assert_eq!(sent(&even, 1_000, "").len(), 400);
    let chance = "      - sometimes: 40%\n        rhythm: random\n        steps: [{GET: /}]";
    let fired = sent(&with_steps(chance), 10_000, "").len();
    assert!((3_800..4_200).contains(&fired), "{fired}");
}

#[test]
fn feeders_give_rows_from_files_and_from_the_scenario() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("people.csv"), "name, city\nann,\"a,b\"\nbob,Köln\n").unwrap();
    let text = "
feeders:
  people: {file: people.csv}
  pairs: {rows: [{x: 1, y: 2}, {x: 3, y: 4}]}
  any: {values: [p, q], order: random}
  seats: {from: 8, to: 11, digits: 4}
sessions:
  a:
    steps:
      - take: [people, pairs]
      - GET: /${name}/${x}/${y}
        query: {city: \"${city}\", next: \"${next(pairs, y)}\"}
      - GET: /${next(any)}
load: {users: 1, hold: 1s}
";
    let plan = load_text("t.yaml", text, dir.path(), &[]).unwrap();
    let seats: Vec<&str> = plan.feeders[3].rows.iter().map(|row| &*row[0]).collect();
    assert_eq!(
        (&plan.feeders[3].columns[..], &seats[..]),
        (&["seats".to_owned()][..], &["0008", "0009", "0010", "0011"][..])
    );
    let log = sent(&plan, 3, "");
    let firsts: Vec<&str> = log.iter().step_by(2).map(String::as_str).collect();
    assert_eq!(
        firsts,
        [
            "GET /ann/1/2?city=a,b&next=4",
            "GET /bob/1/2?city=K%C3%B6ln&next=4",
            "GET /ann/1/2?city=a,b&next=4"
        ]
    );
    assert!(log.iter().skip(1).step_by(2).all(|line| line == "GET /p" || line == "GET /q"));
}

#[test]
fn bodies_are_encoded_for_their_place() {
    let steps = r#"      - set: {text: "a&\"b", number: 5, code: "007", flag: true, none: "${missing}"}
      - POST: /form?x=1
        query: {q: "${text}"}
        form: {text: "${text}", "odd key": 1}
      - PUT: /json
        json:
          text: ${text}
          both: "<${text}>"
          number: ${number}
          list: [1, 2.5, true, null, "3", "${code}", 08]
          none: ${default(none, missing)}
          nested: {flag: "${flag}"}
      - PATCH: /raw
        headers: {content-type: text/csv}
        body: ${number};${text}"#;
    let log = sent(&with_steps(steps), 1, "");
    assert_eq!(log[0], "POST /form?x=1&q=a%26%22b text=a%26%22b&odd+key=1");
    let json: serde_json::Value = serde_json::from_str(log[1].strip_prefix("PUT /json ").unwrap()).unwrap();
    let expected = serde_json::json!({
        "text": "a&\"b", "both": "<a&\"b>", "number": 5, "list": [1, 2.5, true, null, "3", "007", "08"],
        "none": null, "nested": {"flag": true},
    });
    assert_eq!(json, expected);
    assert_eq!(log[2], "PATCH /raw 5;a&\"b");
}

#[test]
fn headers_come_from_defaults_and_requests() {
    let text = "
defaults:
  headers: {Accept: application/json, X-Kind: default}
  timeout: 2s
sessions:
  a:
    steps:
      - GET: /
      - POST: /
        body: hello
        timeout: 5s
        headers: {x-kind: \"own\\r\\nEvil: 1\", User-Agent: me}
load: {users: 1, hold: 1s}
";
    let plan = plan(text);
    let head = |index: usize| {
        let head = plan.requests[index].http().unwrap().head("", "");
        String::from_utf8_lossy(head.as_literal().unwrap()).into_owned()
    };
    assert_eq!(
        head(0),
        "GET / HTTP/1.1\r\nAccept: application/json\r\nX-Kind: default\r\nUser-Agent: tidemark\r\n"
    );
    let own = "POST / HTTP/1.1\r\nAccept: application/json\r\nx-kind: ownEvil: 1\r\nUser-Agent: me\r\n\
               Content-Type: text/plain; charset=utf-8\r\n";
    assert_eq!(head(1), own);
    assert_eq!((plan.requests[0].timeout.as_secs(), plan.requests[1].timeout.as_secs()), (2, 5));
}

#[test]
fn values_are_kept_from_everywhere_and_checked() {
    let steps = r#"      - set: {kept: before, cleared: before}
      - GET: /
        extract:
          id: $.items[0].id
          word: {regex: 'name="([a-z]+)"'}
          whole: {regex: 'name="[a-z]+"'}
          code: status
          all: body
          kept: {json: $.nothing, when missing: keep}
          cleared: {json: $.nothing}
        check:
          status: [2xx, 404]
          body: {contains: "${id}"}
          json: {"$.items[0].id": x1, "$.items": {exists: true}}
          that: ["${code == 200}", len(all) > 10]
      - GET: /${id}/${word}/${whole}/${kept}/${default(cleared, "gone")}"#;
    let plan = with_steps(steps);
    let body = r#"{"items": [{"id": "x1"}], "text": name="abc"}"#;
    let log = sent(&plan, 1, body);
    assert_eq!(log[1], "GET /x1/abc/name%3D%22abc%22/before/gone");
    assert_eq!(plan.requests[0].checks.len(), 6);
    assert!(plan.requests[0].needs_body());
    assert!(!plan.requests[1].needs_body());
}

#[test]
fn values_of_json_are_checked_with_their_types() {
    use tidemark_scenario::plan::{Check, JsonTest, JsonType, TextTest};
    let plan = with_steps(
        r#"      - GET: /
        check:
          json:
            $.a: 3
            $.b: "3"
            $.c: null
            $.d: [1, "x", null]
            $.e: {equals: {k: 18446744073709551616}}
            $.f: {absent: true}
            $.g: {exists: false}
            $.h: {type: array}
            $.i: ${1 + 2}
            $.j: true"#,
    );
    let text = |template: &tidemark_scenario::Template| {
        String::from_utf8(template.as_literal().unwrap().to_vec()).unwrap()
    };
    let told: Vec<String> = plan.requests[0]
        .checks
        .iter()
        .map(|check| match check {
            Check::Json(_, TextTest::Equals(wanted)) => format!("text {}", text(wanted)),
            Check::JsonValue(_, JsonTest::Is(wanted)) => format!("is {}", text(wanted)),
            Check::JsonValue(_, JsonTest::Absent) => "absent".into(),
            Check::JsonValue(_, JsonTest::Empty) => "empty".into(),
            Check::JsonValue(_, JsonTest::Type(JsonType::Array)) => "a list".into(),
            other => format!("{other:?}"),
        })
        .collect();
    let wanted = [
        "is 3",
        "text 3",
        "is null",
        "is [1,\"x\",null]",
        "is {\"k\":18446744073709551616}",
        "absent",
        "empty",
        "a list",
        "text 3",
        "is true",
    ];
    assert_eq!(told, wanted);
}

#[test]
fn failed_checks_are_seen() {
    let plan = with_steps(
        "      - GET: /
        label: a
        extract: {x: {json: $.x, when missing: fail}}
        check: {body: {matches: ^ok, }}
      - GET: /${x}
        label: b
        check: {that: exists(x)}",
    );
    assert_eq!(plan.requests[0].extractions[0].when_missing, WhenMissing::Fail);
    let mut world = World::new(&plan, 1);
    let mut user = User::new(&plan.sessions[0]);
    while user.step(&mut world, &mut |_| Answer { status: 200, body: "{}".into() }) {}
    let failed: Vec<&str> = world.failures.iter().map(|failure| &failure[..1]).collect();
    assert_eq!(failed, ["a", "a", "b"], "{:?}", world.failures);
}

#[test]
fn think_times_follow_their_distribution() {
    let plan = with_steps(
        "      - think: 1.5s
      - think: {between: [10ms, 20ms]}
      - think: {exponential: 2s}
      - GET: /",
    );
    let shared = tidemark_scenario::Shared::default();
    let mut random = fastrand::Rng::with_seed(9);
    let mut cx = tidemark_scenario::Context { slots: &[], shared: &shared, random: &mut random, epoch_ms: 0 };
    let thinks: Vec<_> = plan.sessions[0]
        .ops
        .iter()
        .filter_map(|op| if let Op::Think(time) = op { Some(time) } else { None })
        .collect();
    assert_eq!(thinks[0].duration_us(&mut cx), 1_500_000);
    assert!((0..1_000).all(|_| (10_000..=20_000).contains(&thinks[1].duration_us(&mut cx))));
    let mean = (0..20_000).map(|_| thinks[2].duration_us(&mut cx)).sum::<u64>() / 20_000;
    assert!((1_900_000..2_100_000).contains(&mean), "{mean}");
}

#[test]
fn labels_of_the_same_name_are_one() {
    let plan = with_steps(
        "      - GET: /a
        label: page
      - GET: /b
        label: page
      - GET: /c/${random(1, 2)}",
    );
    assert_eq!(plan.labels, ["page", "GET /c/${random(1, 2)}"]);
    assert_eq!(plan.requests.iter().map(|request| request.label).collect::<Vec<_>>(), [0, 0, 1]);
}

#[test]
fn loads_systems_and_limits_are_read() {
    let plan = plan(
        "
name: all
seed: 7
settings: {users: 40, base: /api, size: 5}
system:
  command: server --port {port} --size ${size}
  health: ${base}/ready
  ready within: 5s
prepare:
  - GET: ${base}/load
sessions:
  reader: {weight: 9, steps: [{GET: /}]}
  writer: {keep cookies: true, steps: [{POST: /, body: x}]}
load:
  spacing: poisson
  phases:
    - {name: warm-up, for: 2s, rate: 10/s}
    - {name: ramp, for: 5s, rate: 10/s to 50/s}
    - {for: 10s, rate: 50/s}
    - {name: peak, for: 500ms, rate: 1k/s, measured: true}
limits: {connections: 50, waiting: 0, connect timeout: 1s, body: 64KiB, drain: 2s}
",
    );
    assert_eq!((plan.name.as_str(), plan.seed), ("all", Some(7)));
    assert_eq!(plan.load.model, LoadModel::Open(Spacing::Poisson));
    let phases: Vec<_> = plan
        .load
        .phases
        .iter()
        .map(|phase| (phase.name.as_str(), phase.from, phase.to, phase.measured))
        .collect();
    let expected = [
        ("warm-up", 10.0, 10.0, false),
        ("ramp", 10.0, 50.0, false),
        ("hold 50/s", 50.0, 50.0, true),
        ("peak", 1_000.0, 1_000.0, true),
    ];
    assert_eq!(phases, expected);
    let SystemOrigin::Command(command) = &plan.system.origin else { panic!("{:?}", plan.system) };
    assert_eq!(command, &["server", "--port", "{port}", "--size", "5"]);
    let answers = Ready::Answers { path: "/api/ready".into(), status: (200, 200) };
    assert_eq!((&plan.system.ready, plan.system.ready_within.as_secs()), (&answers, 5));
    assert_eq!((plan.limits.connections, plan.limits.waiting, plan.limits.body_bytes), (50, Some(0), 65_536));
    assert_eq!(plan.sessions.iter().map(|kind| kind.weight).collect::<Vec<_>>(), [9, 1]);
    assert!(plan.sessions[1].keep_cookies && !plan.sessions[0].keep_cookies);
    assert_eq!(plan.prepare.unwrap().ops.len(), 2);
}

#[test]
fn a_command_is_split_as_a_shell_does_it() {
    let read = |command: &str| {
        let text = format!(
            "settings: {{size: 5}}\nsystem:\n  command: {command}\nsessions: {{a: {{steps: [{{GET: /}}]}}}}\nload: {{users: 1, hold: 1s}}\n"
        );
        let (plan, told) = support::checked(&text);
        let words = plan.map(|plan| match plan.system.origin {
            SystemOrigin::Command(words) => words,
            other => panic!("{other:?}"),
        });
        (words.unwrap_or_default(), told.to_string())
    };
    assert_eq!(
        read("sh -c \"echo hi; exec s {port} ${size}\" 'a  b'").0,
        ["sh", "-c", "echo hi; exec s {port} 5", "a  b"]
    );
    assert_eq!(
        read("[sh, -c, \"echo 'hi\", '{port}']").0,
        ["sh", "-c", "echo 'hi", "{port}"],
        "a list is its words as they are"
    );
    for (command, said) in [
        ("sh -c \"echo hi", "t.yaml:3:12: a quote in this command is not closed"),
        ("\"''\"", "t.yaml:3:12: this command is empty"),
    ] {
        let (words, told) = read(command);
        assert!(words.is_empty() && told.contains(said), "{command}: {words:?} {told}");
    }
}

#[test]
fn settings_that_nobody_is_handed_are_told_where_they_stand() {
    for (system, said) in [
        (
            "{command: 'x {port}', settings: {size: 5}}",
            "t.yaml:1:31: only a system of `serve` has settings; write",
        ),
        (
            "{url: 'http://a', settings: {size: 5}}",
            "t.yaml:1:27: only a system of `serve` has settings; a running",
        ),
    ] {
        let text = format!(
            "system: {system}\nsessions: {{a: {{steps: [{{GET: /}}]}}}}\nload: {{users: 1, hold: 1s}}\n"
        );
        let told = support::load(&text).unwrap_err();
        assert!(told.to_string().contains(said), "{told}");
    }
}

#[test]
fn a_closed_load_has_a_connection_for_each_user() {
    let text = "sessions: {a: {steps: [{GET: /}]}}\nload: {users: 5000, ramp: 1s, hold: 1s}\n";
    let plan = plan(text);
    assert_eq!(plan.limits.connections, 5_000);
    assert_eq!((plan.load.phases[0].from, plan.load.phases[0].to), (0.0, 5_000.0));
    assert_eq!(plan.load.model, LoadModel::Closed);
}

#[test]
fn pipelined_users_share_connections() {
    let text = "sessions: {a: {steps: [{GET: /}]}}\nload: {users: 100, hold: 1s}\nlimits: {connections: 5, pipeline: 16}\n";
    assert_eq!((plan(text).limits.connections, plan(text).limits.pipeline), (7, 16), "16 users on each");
    assert_eq!(plan(&text.replace("pipeline: 16", "pipeline: 1")).limits.connections, 100);
    let wrong = |text: String| {
        let told = support::load(&text).unwrap_err();
        told.to_string()
    };
    let told = wrong(text.replace("16", "1025"));
    assert!(told.contains("1025 is too large; at most 1024"), "{told}");
    let told = wrong(text.replace("16", "16, keep alive: false"));
    assert!(told.contains("one at a time"), "{told}");
    let told = wrong(text.replace("{GET: /}", "{GET: /}, {ws connect: /w}"));
    assert!(told.contains("a WebSocket has its own"), "{told}");
}

#[test]
fn counts_that_no_machine_has_room_for_are_told_where_they_stand() {
    let told = |load: &str, limits: &str| {
        let text = format!("sessions: {{a: {{steps: [{{GET: /}}]}}}}\nload: {load}\nlimits: {limits}\n");
        support::load(&text).map_or_else(|told| told.to_string(), |_| String::new())
    };
    let users = "{users: 1, hold: 1s}";
    for (limits, wanted) in [
        ("{connections: 99999999999}", "t.yaml:3:23: 99999999999 is too large; at most 1000000"),
        ("{pipeline: 99999999999}", "99999999999 is too large; at most 1024"),
        ("{streams: 99999999999}", "99999999999 is too large; at most 65535"),
        ("{waiting: 99999999999}", "99999999999 is too large; at most 10000000"),
        ("{batch: 99999999999}", "99999999999 is too large; a connection carries 1 at once"),
        (
            "{connections: 1M, pipeline: 1024}",
            "1000000 connections with 1024 requests at once each are too many",
        ),
    ] {
        let told = told(users, limits);
        assert!(told.contains(wanted), "{limits}: {told}");
    }
    let told_of_users = told("{users: 99999999999, hold: 1s}", "{pipeline: 1024}");
    assert!(told_of_users.contains("99999999999 users are too many; at most 1000000"), "{told_of_users}");
    let in_flight = told("{rate: 9/s, hold: 1s}", "{in flight: 99999999999}");
    assert!(in_flight.contains("at most 10000000"), "{in_flight}");
    assert_eq!(told("{users: 1M, hold: 1s}", "{connections: 1M, pipeline: 10}"), "");
}

#[test]
fn limits_of_sessions_and_connections_and_another_place_to_connect_to() {
    let text = "
system: {url: 'http://shop.example/api', connect to: '127.0.0.1:8080'}
sessions: {a: {steps: [{GET: /, headers: {Cookie: 'a=1'}}]}}
load: {users: 2, hold: 10s}
limits: {sessions: 500, keep alive: false}
";
    let plan = support::load(text).unwrap();
    assert_eq!((plan.limits.sessions, plan.limits.keep_alive), (Some(500), false));
    assert_eq!(plan.system.connect_to.as_deref(), Some("127.0.0.1:8080"));

    for (wrong, says) in [
        (text.replace("127.0.0.1:8080", "127.0.0.1"), "write HOST:PORT"),
        (text.replace("url: 'http://shop.example/api'", "serve: airline"), "belongs to a url"),
        (text.replace("url: 'http", "durability: synced, url: 'http"), "belongs to one that is started"),
        (text.replace("500", "0"), "1"),
    ] {
        let told = support::load(&wrong).unwrap_err();
        assert!(told.to_string().contains(says), "{told}");
    }
}

#[test]
fn a_row_that_is_held_sets_the_variables_of_its_columns() {
    let text = "
feeders: {pairs: {rows: [{x: 1, y: 2}, {x: 3, y: 4}], held: true}}
sessions: {a: {steps: [{take: pairs}, {GET: '/${x}/${y}'}, {take: pairs}, {GET: '/${y}/${x}'}]}}
load: {users: 1, hold: 1s}
";
    let plan = support::load(text).unwrap();
    assert!(plan.feeders[0].held);
    assert_eq!(sent(&plan, 2, ""), ["GET /1/2", "GET /4/3", "GET /1/2", "GET /4/3"]);
    assert_eq!(plan.requests_per_session(), Some(2));
    assert_eq!(plan.think_time(), std::time::Duration::ZERO);
}

#[test]
fn a_value_that_is_called_a_path_keeps_its_slashes_but_cannot_leave_the_request_line() {
    let text = "
feeders: {urls: {values: ['a/b?c=d&e=%20', \"x y\\r\\nEvil: 1\", 'ü{}']}}
sessions: {a: {steps: [{GET: '/${path(next(urls))}', label: x}]}}
load: {users: 1, hold: 1s}
";
    let plan = support::load(text).unwrap();
    let shared = tidemark_scenario::Shared::new(plan.counters, plan.feeders.clone());
    let mut random = fastrand::Rng::with_seed(1);
    let mut lines = Vec::new();
    for _ in 0..3 {
        let mut cx =
            tidemark_scenario::Context { slots: &[], shared: &shared, random: &mut random, epoch_ms: 0 };
        let mut out = Vec::new();
        plan.requests[0].http().unwrap().head("", "").render(&mut cx, &mut out).unwrap();
        lines.push(String::from_utf8(out).unwrap().lines().next().unwrap().to_owned());
    }
    assert_eq!(
        lines,
        ["GET /a/b?c=d&e=%20 HTTP/1.1", "GET /x%20y%0D%0AEvil:%201 HTTP/1.1", "GET /%C3%BC%7B%7D HTTP/1.1"]
    );
}

#[test]
fn how_a_url_is_reached() {
    let text = "sessions: {a: {steps: [{GET: /}]}}\nload: {users: 1, hold: 1s}\nsystem: ";
    let system = |keys: &str| plan(&format!("{text}{{url: 'http://shop', {keys}}}\n")).system;
    let plain = system("");
    assert_eq!((plain.resolve, plain.connect_to), (Resolve::Ipv4, None));
    assert_eq!(system("resolve: ipv6").resolve, Resolve::Ipv6);
    assert_eq!(system("resolve: first").resolve, Resolve::First);
    assert_eq!(system("connect to: 'unix:/x'").connect_to.as_deref(), Some("unix:/x"));
    for wrong in ["{url: 'http://a', resolve: ipv5}", "{serve: airline, connect to: 'a:1'}"] {
        let text = format!("{text}{wrong}\n");
        let diagnostics = tidemark_scenario::load_text("x.yaml", &text, Path::new("."), &[]).unwrap_err();
        assert_eq!(diagnostics.items().len(), 1, "{diagnostics}");
    }
}

#[test]
fn the_version_of_http_is_one_that_is_spoken() {
    use tidemark_scenario::plan::HttpVersion;
    let text = "sessions: {a: {steps: [{GET: /}]}}\nload: {users: 40, hold: 1s}\n";
    let load =
        |rest: &str| tidemark_scenario::load_text("x.yaml", &format!("{text}{rest}\n"), Path::new("."), &[]);
    let version =
        |word: &str| load(&format!("system: {{url: 'http://a', http: {word}}}")).map(|plan| plan.system.http);
    for (word, expected) in [("1.1", HttpVersion::One), ("2", HttpVersion::Two), ("auto", HttpVersion::Auto)]
    {
        assert_eq!(version(word).unwrap(), expected);
    }
    for wrong in ["3", "1.0", "h2"] {
        assert!(version(wrong).unwrap_err().to_string().contains("auto"), "{wrong}");
    }
    let started = load("system: {serve: airline, http: 2}").unwrap_err();
    assert!(started.to_string().contains("belongs to a url"), "{started}");
    let limits =
        load("system: {url: 'http://a', http: 2}\nlimits: {connections: 2, streams: 10}").unwrap().limits;
    assert_eq!((limits.connections, limits.streams), (4, 10), "room for 40 users");
    assert!(load("limits: {streams: 0}").is_err());
}

#[test]
fn tls_belongs_to_an_https_url() {
    let text = "sessions: {a: {steps: [{GET: /}]}}\nload: {users: 1, hold: 1s}\nsystem: ";
    let load = |system: &str| {
        tidemark_scenario::load_text("x.yaml", &format!("{text}{system}\n"), Path::new("/base"), &[])
    };
    let plain = load("{url: 'https://shop'}").unwrap().system.tls;
    assert_eq!(plain, TlsSettings::default());
    let all = "{ca: a.pem, certificate: me.pem, key: me.key, insecure: true, server name: x.test, resumption: false}";
    let tls = load(&format!("{{url: 'https://shop', tls: {all}}}")).unwrap().system.tls;
    let expected = TlsSettings {
        insecure: true,
        ca: Some("/base/a.pem".into()),
        server_name: Some("x.test".into()),
        certificate: Some("/base/me.pem".into()),
        key: Some("/base/me.key".into()),
        resumption: false,
        any_name: false,
    };
    assert_eq!(tls, expected);
    assert_eq!(
        load("{url: 'wss://shop', tls: {ca: a.pem}}").unwrap().system.tls.ca,
        Some("/base/a.pem".into())
    );
    let alone = load("{url: 'https://shop', tls: {key: me.key}}").unwrap_err();
    assert!(alone.to_string().contains("belongs to a certificate"), "{alone}");
    let unknown = load("{url: 'https://shop', tls: {zebra: 1}}").unwrap_err();
    assert!(unknown.to_string().contains("; a block of TLS settings has insecure, ca, "), "{unknown}");
    for wrong in ["{url: 'http://a', tls: {insecure: true}}", "{serve: airline, tls: {}}", "{url: 'ftp://a'}"]
    {
        let diagnostics = load(wrong).unwrap_err();
        assert!(diagnostics.to_string().contains("http"), "{diagnostics}");
    }
}

#[test]
fn groups_lie_within_each_other_and_objectives_name_them() {
    let steps = "      - group: Buy
        steps:
          - GET: /cart
          - group: ${if(kind == 'a', 'Pay', 'Order')}
            steps: [{POST: /orders}]
      - group: Buy
        steps: [{GET: /again}]";
    let text = format!(
        "settings: {{kind: a}}\nsessions:\n  a:\n    steps:\n{steps}\nload: {{users: 1, hold: 1s}}\n\
         objectives: ['group Buy p99 < 1s', 'group Pay errors = 0', 'GET /cart p99 < 1s', 'p99 < 2s']\n"
    );
    let plan = plan(&text);
    assert_eq!(plan.groups, ["Buy", "Pay"]);
    let ops: Vec<String> = plan.sessions[0].ops.iter().map(|op| format!("{op:?}")).collect();
    let expected = [
        "BeginGroup(0)",
        "Request(0)",
        "BeginGroup(1)",
        "Request(1)",
        "EndGroup",
        "EndGroup",
        "BeginGroup(0)",
        "Request(2)",
        "EndGroup",
        "End",
    ];
    assert_eq!(ops, expected);
    let about: Vec<About> = plan.objectives.iter().map(|of| of.about).collect();
    assert_eq!(about, [About::Group(0), About::Group(1), About::Label(0), About::All]);
    assert_eq!(sent(&plan, 1, ""), ["GET /cart", "POST /orders", "GET /again"]);
}

#[test]
fn numbers_are_measured_at_requests_and_by_themselves() {
    let steps = "      - measure: {seen: {counter: 1}}
        GET: /cart
        extract: {n: $.n}
      - measure: {items: '${n}', seen: {counter: '${n + 1}', unit: pcs}}
      - GET: /again
        extract: {n: $.n}
        measure:
          items: {histogram: 'n: ${n}', unit: pcs}";
    let text = format!(
        "sessions:\n  a:\n    steps:\n{steps}\nload: {{users: 1, hold: 1s}}\n\
         objectives: [items p99 < 20 pcs, seen count < 10, 'GET /cart p99 < 1s']\n\
         ratios:\n  seen each: {{of: seen, per: [GET /cart, GET /again], as: percent}}\n"
    );
    let plan = plan(&text);
    let (of, per) = (vec![Counted::Counter(0)], vec![Counted::Label(0), Counted::Label(1)]);
    let ratio = RatioPlan { name: "seen each".into(), of, per, form: RatioForm::Percent };
    assert_eq!(plan.ratios, [ratio]);
    let metric = |name: &str, kind| MetricPlan { name: name.into(), kind, unit: "pcs".into() };
    assert_eq!(plan.metrics, [metric("seen", MetricKind::Counter), metric("items", MetricKind::Histogram)]);
    let ops = plan.sessions[0].ops.iter().map(|op| match op {
        Op::Request(request) => format!("request {request}"),
        Op::Measure { metric, text, if_good, .. } => format!("{metric} {text} {if_good}"),
        other => format!("{other:?}"),
    });
    let expected =
        ["request 0", "0 1 true", "1 ${n} false", "0 ${n + 1} false", "request 1", "1 n: ${n} true", "End"];
    assert_eq!(ops.collect::<Vec<_>>(), expected);
    let about: Vec<About> = plan.objectives.iter().map(|of| of.about).collect();
    assert_eq!(about, [About::Metric(1), About::Metric(0), About::Label(0)]);
    assert_eq!(sent(&plan, 1, ""), ["GET /cart", "GET /again"]);
}
