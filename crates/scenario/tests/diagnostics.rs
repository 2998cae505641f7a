//! What is told about mistakes: where, what, and what to do.

use std::path::Path;

use crate::support::{self, load};
use tidemark_scenario::{
    Checker, ShippedSystem, WrongSetting, check_text, load_file, load_shipped, load_text,
};

const GOOD: &str = "\
settings:
  users: 10
feeders:
  airports: {values: [AMS, CDG]}
sessions:
  customer:
    steps:
      - set: {user: \"uid${random(0, 9)}\"}
      - POST: /login
        label: Login
        form: {login: \"${user}\"}
        extract:
          token: {header: x-token, when missing: fail}
      - GET: /flights/${next(airports)}
        label: Flights
        headers: {X-Token: \"${token}\"}
        check: {status: 200}
load:
  users: ${users}
  hold: 10s
objectives:
  - Login p99 < 50ms
";

/// The first lines of what is told about `GOOD` with `old` replaced by `new`.
fn told(old: &str, new: &str) -> String {
    assert!(GOOD.contains(old), "{old}");
    told_of(&GOOD.replacen(old, new, 1))
}

/// What is told about `GOOD` with a text replaced by another, for each of these.
fn assert_told(cases: &[(&str, &str, &str)]) {
    let told = cases.iter().map(|(old, new, expected)| (told(old, new), *expected));
    let wrong = told.filter(|(told, expected)| told != expected);
    let wrong: Vec<String> =
        wrong.map(|(told, expected)| format!("{told}\ninstead of\n{expected}")).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

fn told_of(text: &str) -> String {
    let diagnostics = load(text).err().unwrap_or_else(|| panic!("this loads:\n{text}"));
    let lines: Vec<String> = diagnostics
        .items()
        .iter()
        .map(|item| {
            item.to_string().lines().next().unwrap_or_default().trim_start_matches("t.yaml:").to_owned()
        })
        .collect();
    lines.join("\n")
}

#[test]
fn the_good_one_loads_without_a_word() {
    let (plan, diagnostics) = support::checked(GOOD);
    assert_eq!(diagnostics.to_string(), "");
    assert!(plan.is_some());
}

#[test]
fn misspelt_words_are_told_with_the_nearest_right_one() {
    let cases = [
        (
            "sessions:",
            "sesions:",
            "1:1: a scenario needs the key \"sessions\": What virtual users do; where there are several kinds, each is chosen by its weight.\n5:1: unknown key \"sesions\"; did you mean sessions?\n22:5: no request has the label \"Login\"",
        ),
        ("POST:", "PSOT:", "9:9: unknown step \"PSOT\"; did you mean POST?"),
        ("label: Flights", "lable: Flights", "15:9: unknown key \"lable\"; did you mean label?"),
        ("when missing", "when_missing", "13:36: unknown key \"when_missing\"; did you mean when missing?"),
        (": fail}", ": fial}", "13:50: \"fial\" is not one of clear, keep, fail; did you mean fail?"),
        ("random(0", "randm(0", "8:27: unknown function \"randm\"; did you mean random?"),
        ("\"${user}\"", "\"${usr}\"", "11:26: unknown variable \"usr\"; did you mean user?"),
        (
            "${users}",
            "${user}",
            "19:12: unknown setting \"user\"; did you mean users? (only settings can be used here)",
        ),
        ("next(airports)", "next(airport)", "14:25: unknown feeder \"airport\"; did you mean airports?"),
        ("Login p99", "Logn p99", "22:5: no request has the label \"Logn\"; did you mean Login?"),
        ("Login p99", "Login p9x", "22:5: unknown metric \"p9x\"; did you mean p90?"),
        (
            "hold: 10s",
            "hodl: 10s",
            "19:3: a load needs the key \"hold\" (how long is measured), or phases\n20:3: unknown key \"hodl\"; did you mean hold?",
        ),
    ];
    assert_told(&cases);
}

#[test]
fn values_of_the_wrong_kind_are_told() {
    let cases = [
        (
            "10s",
            "10",
            "20:9: \"10\" is not a time: the unit is missing; write it like 250ms, 10s, 1m30s or 2h",
        ),
        ("10s", "0s", "19:3: nothing is measured; a phase needs \"measured: true\" and a time"),
        ("users: 10", "users: 0", "19:3: this load is always 0; nothing would be sent"),
        (
            "users: 10",
            "users: many",
            "19:10: \"many\" is not a whole number; write it like 100 or 20k; that is ${users} with users = many",
        ),
        (
            "users: ${users}",
            "users: ${users - 20}",
            "19:10: \"-10\" is not a whole number: it is below 0; write it like 100 or 20k; that is ${users - 20} with users = 10",
        ),
        (
            "status: 200",
            "status: [200, 2000]",
            "17:31: \"2000\" is not a status; write it like 200, 2xx or 200-204",
        ),
        ("/login", "login", "9:15: a path begins with a slash"),
        (
            "/login",
            "http://me:mine@x/login",
            "9:15: \"http://***@x\" cannot be driven: who comes does not stand in it; say it with `auth: {basic: {user: …, password: …}}`",
        ),
        (
            "X-Token: ",
            "Connection: ",
            "16:19: the header Connection is not for a scenario to set: limits: {keep alive: false} closes them",
        ),
        ("X-Token: ", "\"X Token\": ", "16:19: \"X Token\" cannot be a header's name"),
        (
            "form: {login: \"${user}\"}",
            "form: [\"${user}\"]",
            "11:15: \"form\" is a list; expected a mapping from fields to values",
        ),
        (
            "label: Login",
            "label: Login\n        json: {}",
            "12:9: a request has either \"json\" or \"form\", not both",
        ),
        (
            "  users: ${users}",
            "  users: ${users}\n  rate: 5/s",
            "20:3: a load has either \"users\" or \"rate\", not both",
        ),
        (
            "  users: ${users}",
            "  rate: 5",
            "19:9: \"5\" is not a rate: the period is missing; write it like 500/s, 20k/s or 90/min",
        ),
        ("values: [AMS, CDG]", "file: nowhere.csv", "4:20: cannot read ./nowhere.csv: there is no such file"),
        (
            "p99 < 50ms",
            "p99 < 50",
            "22:5: \"50\" is not a time: the unit is missing; write it like 250ms, 10s, 1m30s or 2h",
        ),
        (
            "set: {user:",
            "set: {users:",
            "8:15: \"users\" is a setting and cannot be set here; choose another name\n11:26: unknown variable \"user\"; did you mean users?",
        ),
        (
            "set: {user:",
            "set: {in:",
            "8:15: \"in\" is a word of the expressions; choose another name\n11:26: unknown variable \"user\"; did you mean users?",
        ),
    ];
    assert_told(&cases);
}

#[test]
fn mistakes_in_expressions_are_marked_in_the_text() {
    let text = GOOD.replace("uid${random(0, 9)}", "uid${random(0, 9) +}");
    let diagnostics = load(&text).unwrap_err().to_string();
    let expected = "t.yaml:8:41: the expression ends too early; expected a value\n \
                    8 |       - set: {user: \"uid${random(0, 9) +}\"}\n   |                                         ^";
    assert_eq!(diagnostics, expected);
}

#[test]
fn columns_are_right_in_every_style_of_text() {
    let at = |body: &str| {
        let text = format!(
            "sessions:\n  a:\n    steps:\n      - POST: /\n        body: {body}\nload: {{users: 1, hold: 1s}}\n"
        );
        told_of(&text)
    };
    let unknown = "unknown variable \"nix\"; set it with set, extract or settings";
    assert_eq!(at("é ${nix}"), format!("5:19: {unknown}"));
    assert_eq!(at("'it''s ${nix}'"), format!("5:24: {unknown}"));
    assert_eq!(at("\"\\t\\u00e9 ${nix}\""), format!("5:27: {unknown}"));
    assert_eq!(at("|\n          one\n          two ${nix}"), format!("7:17: {unknown}"));
    assert_eq!(at(">\n          one ${1}\n          ${ nix }"), format!("7:14: {unknown}"));
    assert_eq!(at("$${x} ${nix}"), format!("5:23: {unknown}"));
}

#[test]
fn yaml_itself_is_checked() {
    assert!(told_of("a: [1, 2\nb: 3\n").contains("this is not YAML"));
    let tab = told_of("name: x\n\tseed: 1\n");
    assert!(tab.starts_with("2:1: ") && tab.contains("spaces, not tabs"), "{tab}");
    assert_eq!(told_of(""), "1:1: the scenario is empty; it needs at least sessions and load");
    assert!(told_of("- a\n- b\n").starts_with("1:1: the scenario is a list; expected a mapping: a scenario"));
    let twice = GOOD.replace("        label: Login\n", "        label: Login\n        label: Again\n");
    assert_eq!(
        told_of(&twice).lines().next(),
        Some("11:9: the key \"label\" stands here twice, first in line 10")
    );
    assert!(
        told("\"${user}\"", "${user}").contains("must stand in quotes"),
        "{}",
        told("\"${user}\"", "${user}")
    );
    let two = format!("{GOOD}---\n{GOOD}");
    assert!(told_of(&two).contains("one YAML document"));
    let tab = GOOD.replacen("        label: Login", "\tlabel: Login", 1);
    assert!(told_of(&tab).contains("not YAML"), "{}", told_of(&tab));
    let deep = format!("a: {}", "[".repeat(100));
    assert!(told_of(&deep).contains("nested more than 64 deep"), "{}", told_of(&deep));
    let deeper = format!("a: {}", "[".repeat(100_000));
    assert!(
        told_of(&deeper).contains("deep") || told_of(&deeper).contains("recursion"),
        "{}",
        told_of(&deeper)
    );
    let bomb = "a: &a [x, x, x, x, x, x, x, x, x, x]\n".to_owned()
        + &(b'b'..=b'h')
            .map(|letter| {
                let (name, before) = (char::from(letter), char::from(letter - 1));
                format!("{name}: &{name} [{}]\n", vec![format!("*{before}"); 10].join(", "))
            })
            .collect::<String>();
    assert!(told_of(&bomb).contains("has more than"), "{}", told_of(&bomb));
}

#[test]
fn all_mistakes_are_told_at_once() {
    let text = GOOD
        .replace("POST:", "PSOT:")
        .replace("${next(airports)}", "${next(airport)}")
        .replace("status: 200", "status: 20")
        .replace("10s", "10 parsecs")
        .replace("p99 < 50ms", "p99 < x");
    assert_eq!(told_of(&text).lines().count(), 5, "{}", told_of(&text));
}

#[test]
fn steps_say_what_they_do() {
    let step = |step: &str| {
        told_of(&format!("sessions:\n  a:\n    steps:\n      - {step}\nload: {{users: 1, hold: 1s}}\n"))
    };
    assert!(
        step("label: x").starts_with("4:9: this step does not say what it does; it needs one of GET, POST")
    );
    assert!(step("jump: /").starts_with("4:9: unknown step \"jump\"; a step is one of GET, POST"));
    assert!(
        step("{GET: /, POST: /}")
            .starts_with("4:18: a step does one thing; \"POST\" beside \"GET\" must be a step of its own")
    );
    assert!(step("{think: {between: [2s, 1s]}}").ends_with("the first time is longer than the second"));
    assert!(step("{think: {between: [2s]}}").contains("\"between\" has only 1; expected at least 2"));
    assert!(step("{each: x of y, steps: [{GET: /}]}").contains("write it like: each: id in ${bookings}"));
    assert!(step("{repeat: x, steps: [{GET: /}]}").contains("expected a whole number"));
    assert!(step("{sometimes: 25, steps: [{GET: /}]}").contains("the % is missing"));
    assert!(step("{choose: [{weight: 0, steps: [{GET: /}]}]}").contains("the sum of the weights"));
    assert!(step("{take: nobody}").contains("unknown feeder \"nobody\""));
    assert!(
        step("{GET: /, extract: {a: b}}").contains("neither a JSON path begun with $, nor status, nor body")
    );
    assert!(step("{GET: /, extract: {a: $.b.}}").contains("is not a JSON path"));
    assert!(
        step("{GET: /, extract: {a: {regex: a(b, group: 1}}}")
            .contains("bad regular expression: unclosed group")
    );
    assert!(step("{GET: /, extract: {a: {regex: ab, group: 1}}}").contains("has only 0 groups"));
    assert!(step("{GET: /, check: {that: 1 +}}").contains("ends too early"));
    assert!(
        step("{GET: /, check: {body: {contains: a, equals: b}}}")
            .contains("either \"contains\" or \"equals\", not both")
    );
}

#[test]
fn numbers_of_a_feeder_have_an_end_and_a_bound() {
    let told = |feeder: &str| {
        told_of(&format!(
            "feeders: {{n: {feeder}}}\nsessions: {{a: {{steps: [{{GET: /}}]}}}}\nload: {{users: 1, hold: 1s}}\n"
        ))
    };
    assert_eq!(told("{from: 1}"), "1:21: numbers need an end, too; add `to`");
    assert_eq!(told("{from: 2, to: 1}"), "1:28: numbers from 2 on cannot end at 1");
    assert_eq!(told("{from: 0, to: 10000000}"), "1:28: these are more than 10000000 numbers");
    assert_eq!(told("{from: 0, to: 9, digits: 21}"), "1:39: a number has at most 20 digits");
    assert!(told("{to: 9}").contains("from"));
}

#[test]
fn rows_that_are_held_are_taken_by_a_step_and_in_turn() {
    let told = |feeder: &str, steps: &str| {
        told_of(&format!(
            "feeders: {{n: {feeder}}}\nsessions: {{a: {{steps: [{steps}]}}}}\nload: {{users: 1, hold: 1s}}\n"
        ))
    };
    let taken = "{take: n}, {GET: '/${n}'}";
    assert_eq!(
        told("{values: [a], held: true}", "{GET: '/${next(n)}'}"),
        "2:34: rows of the feeder \"n\" are held by sessions; take one with the step take: n"
    );
    assert_eq!(
        told("{values: [a], held: true, order: random}", taken),
        "1:47: rows that are held are taken in turn; leave out \"order: random\", or \"held\""
    );
    assert!(told("{values: [a], held: perhaps}", taken).starts_with("1:34: "));
}

#[test]
fn a_very_wrong_file_is_told_of_in_time() {
    let steps = "      - PSOT: \"${nix}${nix}\"\n        label: \"${nix}\"\n".repeat(10_000);
    let text = format!("sessions:\n  a:\n    steps:\n{steps}load: {{users: 1, hold: 1s}}\n");
    let diagnostics = load(&text).unwrap_err();
    assert_eq!(diagnostics.items().len(), tidemark_scenario::diagnostic::DIAGNOSTICS_MAX);
    assert!(diagnostics.not_kept() > 15_000, "{}", diagnostics.not_kept());
}

#[test]
fn a_session_must_send_something() {
    let told = told_of("sessions: {a: {steps: [{think: 1s}]}}\nload: {users: 1, hold: 1s}\n");
    assert_eq!(told, "1:23: the session \"a\" sends nothing; it needs at least one request");
}

#[test]
fn line_ends_and_byte_order_marks_of_other_systems_are_fine() {
    let text = format!("\u{feff}{}", GOOD.replace('\n', "\r\n"));
    assert!(load(&text).is_ok(), "{}", told_of(&text));
    let wrong = GOOD.replace("POST:", "PSOT:").replace('\n', "\r\n");
    let expected =
        "t.yaml:9:9: unknown step \"PSOT\"; did you mean POST?\n 9 |       - PSOT: /login\n   |         ^^^^";
    assert!(load(&wrong).unwrap_err().to_string().starts_with(expected));
}

#[test]
fn a_step_that_is_not_known_hides_nothing_else_that_is_wrong_with_it() {
    let step =
        |step: &str| told_of(&format!("sessions:\n  a:\n    steps:\n{step}load: {{users: 1, hold: 1s}}\n"));
    let misspelt = step(
        "      - PSOT: items\n        lable: x\n        check: {status: ok}\n        timeout: 3 parsecs\n        \
         body: \"${nobody}\"\n      - reapet: many\n        steps: [{GTE: /}]\n",
    );
    let places: Vec<&str> = misspelt.lines().map(|line| line.split(": ").next().unwrap()).collect();
    let wanted = ["4:9", "4:15", "5:9", "6:25", "7:18", "8:18", "9:9", "9:17", "10:18"];
    assert_eq!(places, wanted, "{misspelt}");
    assert!(misspelt.contains("did you mean label?") && misspelt.contains("did you mean GET?"), "{misspelt}");
    let unknown = step(
        "      - jump: /\n        lable: x\n        check: {status: ok, that: \"${nobody > 1}\"}\n        \
         steps: [{GTE: /}]\n",
    );
    let places: Vec<&str> = unknown.lines().map(|line| line.split(": ").next().unwrap()).collect();
    assert_eq!(places, ["4:9", "5:9", "6:25", "6:38", "7:18"], "{unknown}");
}

#[test]
fn a_setting_that_its_system_refuses_is_told_where_it_stands() {
    let text = "settings: {n: -1}\nsystem:\n  serve: airline\n  settings:\n    days: 30\n    dyas: 30\n    customers: \
                ${n}\nsessions: {a: {steps: [{GET: /}]}}\nload: {users: 1, hold: 1s}\n";
    const SYSTEMS: &[ShippedSystem] = &[ShippedSystem {
        name: "airline",
        keeps_data: true,
        store_is_readable: false,
        tells_operations: false,
    }];
    let checker = Checker {
        systems: SYSTEMS,
        setting: |system, name, value| match (system, name) {
            ("airline", "days") => Ok(()),
            ("airline", "customers") => Err(WrongSetting::Value(format!("no {value} customers"))),
            _ => Err(WrongSetting::Name(format!("no {name}"))),
        },
        ..Checker::default()
    };
    let (plan, told) = checker.text("t.yaml", text, Path::new("."), &[]);
    assert!(plan.is_none());
    let told: Vec<_> = told.items().iter().map(|d| (d.line, d.column, d.message.as_str())).collect();
    assert_eq!(told, [(6, 5, "no dyas"), (7, 16, "no -1 customers")]);
    let (plan, told) = checker.text("t.yaml", &text.replace("airline", "url"), Path::new("."), &[]);
    assert!(plan.is_none() && told.items().len() == 1, "no system of ours: {told}");
}

#[test]
fn a_list_of_an_each_step_is_marked_in_its_place() {
    let each = |header: &str| {
        let step = format!("- each: {header}\n        steps: [{{GET: \"/${{x}}\"}}]");
        told_of(&format!("sessions:\n  a:\n    steps:\n      {step}\nload: {{users: 1, hold: 1s}}\n"))
    };
    let unknown = "unknown variable \"nix\"; set it with set, extract or settings";
    assert_eq!(each("x in ${nix}"), format!("4:22: {unknown}"));
    assert_eq!(each("x in nix"), format!("4:20: {unknown}"));
    assert_eq!(each("\"x in ${ nix }\""), format!("4:24: {unknown}"));
}

#[test]
fn loads_must_fit_together() {
    let with = |load: &str| told_of(&format!("sessions: {{a: {{steps: [{{GET: /}}]}}}}\nload: {load}\n"));
    assert!(with("{hold: 1s}").contains("a load needs users, a rate, or phases"));
    assert!(with("{users: 1, spacing: poisson, hold: 1s}").contains("users do not arrive"));
    assert!(with("{phases: [{for: 1s}]}").contains("this phase needs users or a rate"));
    assert!(
        with("{users: 1, hold: 1s, phases: [{for: 1s}]}").contains("either \"phases\" or \"hold\", not both")
    );
    assert!(with("{phases: [{for: 1s, users: 1}, {for: 1s, rate: 1/s}]}").contains("all have a rate"));
    let gap = "{users: 1, phases: [{for: 1s}, {for: 1s, measured: false}, {for: 1s}]}";
    assert!(with(gap).contains("must follow each other"));
    assert!(with("{users: 1, phases: [{name: ramp, for: 1s}]}").contains("nothing is measured"));
}

#[test]
fn settings_from_outside_are_checked() {
    let with =
        |key: &str, value: &str| load_text("t.yaml", GOOD, Path::new("."), &[(key.into(), value.into())]);
    assert_eq!(with("users", "2k").unwrap().load.phases[0].to, 2_000.0);
    let told = |key, value| with(key, value).unwrap_err().to_string();
    assert_eq!(told("usres", "5"), "--set usres: the scenario has no setting \"usres\"; did you mean users?");
    assert_eq!(told("users", "abc"), "--set users: the setting \"users\" is a whole number, not \"abc\"");

    let choices = GOOD
        .replace("settings:\n", "settings:\n  fault: [none, kill, 2014]\n")
        .replace("label: Flights", "label: Flights ${fault}");
    let with = |value: &str| load_text("t.yaml", &choices, Path::new("."), &[("fault".into(), value.into())]);
    let told = with("kil").unwrap_err().to_string();
    assert_eq!(told, "--set fault: \"kil\" is not one of none, kill, 2014; did you mean kill?");
    assert!(with("kill").is_ok() && with("2014").is_ok());
    assert!(support::load(&choices.replace("[none, kill, 2014]", "[]")).is_err());
}

#[test]
fn a_stream_that_no_step_closes_is_a_warning() {
    let told = |steps: &str| {
        let text = format!(
            "system: {{url: 'grpc://h'}}\nsessions:\n  a:\n    steps:\n{steps}load: {{users: 1, hold: 1s}}\n"
        );
        support::checked(&text).1.to_string()
    };
    let open = "      - grpc open: t.S/Both\n      - grpc send: {}\n";
    assert!(told(open).contains("t.yaml:5:9: warning: no grpc close follows"), "{}", told(open));
    assert_eq!(told(&format!("{open}      - grpc close: OK\n")), "");
}

fn told_of_metadata(metadata: &str, check: &str) -> String {
    let text = format!(
        "system: {{url: 'grpc://h'}}\nsessions:\n  a:\n    steps:\n      - grpc: t.S/One\n        metadata:\n          \
         {metadata}\n        check: {{metadata: {{{check}}}}}\nload: {{users: 1, hold: 1s}}\n"
    );
    support::checked(&text).1.to_string()
}

#[test]
fn metadata_is_not_what_the_protocol_writes_or_forbids() {
    for name in ["x-user", "X-User", "x.y_z-1"] {
        assert_eq!(told_of_metadata(&format!("{name}: a"), ""), "");
    }
    for (name, why) in [
        ("Connection", "HTTP/2 forbids"),
        ("keep-alive", "HTTP/2 forbids"),
        ("proxy-connection", "HTTP/2 forbids"),
        ("Transfer-Encoding", "HTTP/2 forbids"),
        ("upgrade", "HTTP/2 forbids"),
        ("te", "gRPC writes it itself"),
        ("content-length", "gRPC writes it itself"),
        ("grpc-timeout", "gRPC writes it itself"),
        ("x user", "small letters"),
        ("x*user", "small letters"),
        (":path", "small letters"),
    ] {
        let told = told_of_metadata(&format!("{name}: a"), "");
        assert!(told.contains("t.yaml:7:11: ") && told.contains(why), "{name}: {told}");
        assert!(told.contains(&format!("\"{name}\" cannot be the name of metadata")), "{told}");
    }
}

#[test]
fn constant_metadata_is_what_grpc_can_send() {
    for good in ["a: ''", "a: b c", "a: 7", "a: '${1 + 2}'", "a-bin: aGk", "a-bin: aGk=", "a-bin: ''"] {
        assert_eq!(told_of_metadata(good, "b-bin: aGk, c-bin: {matches: 'a.*'}, d: é"), "", "{good}");
    }
    // one that varies is looked at when it is sent
    assert_eq!(told_of_metadata("a-bin: '${random(1, 9)}-'", ""), "");
    for (value, why) in [
        (r#""b\r\nc""#, "printable"),
        (r#""b\nc""#, "printable"),
        (r#""b\0c""#, "printable"),
        (r#""b\tc""#, "printable"),
        ("bé", "in base64"),
        ("' b'", "begins or ends with a space"),
    ] {
        let told = told_of_metadata(&format!("a: {value}"), "");
        assert!(
            told.contains("t.yaml:7:14: the metadata \"a\" cannot be sent: ") && told.contains(why),
            "{told}"
        );
    }
    for value in ["a", "_-8=", "'a b='", "aGl", "'${1 + 2}'"] {
        let told = told_of_metadata(&format!("a-bin: {value}"), "");
        assert!(told.contains("t.yaml:7:18: ") && told.contains("is base64"), "{told}");
    }
    assert!(
        told_of_metadata("a: b", "c-bin: n_").contains("t.yaml:8:35: "),
        "{}",
        told_of_metadata("a: b", "c-bin: n_")
    );
}

#[cfg(feature = "grpc")]
#[test]
fn what_a_method_does_not_take_is_told_where_it_stands() {
    let folder = tempfile::tempdir().unwrap();
    let types = "syntax = \"proto3\"; package t; enum Size { SMALL = 0; LARGE = 1; } message M { string text = 1; \
                 int64 number = 2; int32 small = 3; Size size = 4; oneof how { string card = 5; bool cash = 6; } \
                 repeated M more = 7; } service S { rpc One(M) returns (M); rpc Both(stream M) returns (stream M); }";
    std::fs::write(folder.path().join("t.proto"), types).unwrap();
    let told = |steps: &str| {
        let text = format!(
            "system: {{url: 'grpc://h', protos: t.proto}}\nsessions:\n  a:\n    steps:\n{steps}load: {{users: 1, hold: 1s}}\n"
        );
        check_text("t.yaml", &text, folder.path(), &[]).1.to_string()
    };
    let close = "      - grpc close: OK\n";
    let good = "      - grpc open: t.S/Both\n      - grpc send: {more: ['${random(1, 9)}', {size: LARGE}]}\n";
    assert_eq!(told(&format!("{good}{close}")), "");
    for (message, words) in [
        ("txet: a", "t.yaml:7:11: t.M has no field txet; did you mean text?"),
        ("more: [{}, {number: x}]", "t.yaml:7:23: more[1].number of t.M takes int64"),
        (
            "small: 3000000000",
            "t.yaml:7:11: small of t.M takes int32 (-2147483648 to 2147483647), not 3000000000",
        ),
        (
            "text: 'a ${random(1, 9)}'\n          size: LARG",
            "t.yaml:8:11: size of t.M takes t.Size (SMALL, LARGE)",
        ),
        (
            "card: a\n          cash: true",
            "t.yaml:8:11: cash: card and cash are both in the oneof `how` of t.M; give one",
        ),
    ] {
        let told = told(&format!("      - grpc: t.S/One\n        message:\n          {message}\n"));
        assert!(told.starts_with(words), "{told}");
    }
    for (steps, words) in [
        ("      - grpc open: t.S/Both\n      - grpc send: {txet: a}\n", "t.yaml:6:21: t.M has no field txet"),
        ("      - grpc open: t.S/Bot\n", "t.S has no method Bot (it has One, Both); did you mean Both?"),
        ("      - grpc open: t.S\n", "t.yaml:5:9: t.S is a service"),
        (
            "      - grpc open: t.S/Both\n      - grpc close: 5\n",
            "\"5\" is not one of OK, CANCELLED, UNKNOWN",
        ),
        ("      - grpc: t.S/One\n        check: {status: NOT_FOND}\n", "did you mean NOT_FOUND?"),
        ("      - grpc: t.S/One\n        check: {status: [OK, not_found]}\n", "did you mean NOT_FOUND?"),
    ] {
        let told = told(&format!("{steps}{}", if steps.contains("open") { close } else { "" }));
        assert!(told.contains(words), "{told}");
    }
}

#[test]
fn warnings_do_not_keep_a_scenario_from_running() {
    let text = GOOD
        .replace("settings:\n", "settings:\n  spare: 1\n")
        .replace("- set: {user:", "- set: {other: 1, user:")
        .replace("      - GET", "      - end: session\n      - GET");
    let (plan, diagnostics) = support::checked(&text);
    assert!(plan.is_some());
    let lines: Vec<String> = diagnostics
        .items()
        .iter()
        .map(|item| item.to_string().lines().next().unwrap_or_default().to_owned())
        .collect();
    let expected = [
        "t.yaml:2:3: warning: the setting \"spare\" is never used",
        "t.yaml:9:15: warning: the variable \"other\" is set but never used",
        "t.yaml:17:16: warning: no session ever reaches \"Flights\"",
    ];
    assert_eq!(lines, expected);
}

#[test]
fn files_that_cannot_be_read_are_told() {
    let told = load_file(Path::new("airlin"), &[]).unwrap_err().to_string();
    assert!(told.starts_with("airlin: cannot read the scenario"), "{told}");
    assert!(told.contains("did you mean airline?"), "{told}");
    assert!(load_shipped("nothing", &[]).unwrap_err().to_string().contains("shipped: airline"));
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("latin.yaml");
    std::fs::write(&file, b"name: x\ndescription: \xe9\n").unwrap();
    assert!(load_file(&file, &[]).unwrap_err().to_string().ends_with("line 2 is not UTF-8 text"));
    std::fs::write(dir.path().join("people.csv"), "name,age\nann,5\nbob\n").unwrap();
    let text = GOOD.replace("values: [AMS, CDG]", "file: people.csv");
    std::fs::write(&file, text).unwrap();
    let told = load_file(&file, &[]).unwrap_err().to_string();
    assert!(told.contains("line 3 has 1 cell, not 2"), "{told}");
}

#[test]
fn a_division_by_zero_that_is_always_one_is_told_with_its_place() {
    let text = GOOD.replacen("${next(airports)}", "${1/0}", 1);
    let told = load(&text).unwrap_err().to_string();
    assert!(told.contains("t.yaml:14:27: this is always 0: a division by zero"), "{told}");
    let text = GOOD.replacen("users: 10", "users: '${7 % (3 - 3)}'", 1);
    assert!(load(&text).unwrap_err().to_string().contains("division by zero"));
    // whoever knows only later is told later
    assert!(load(&GOOD.replacen("${next(airports)}", "${1 / token}", 1)).is_ok());
}

#[test]
fn a_chooser_that_never_can_choose_is_told_with_its_place() {
    let told = |chooser: &str| {
        let text = GOOD.replacen("${next(airports)}", &format!("${{{chooser}}}"), 1);
        load(&text).err().map(|told| told.to_string())
    };
    let (share, none) = ("a share is from 0 to 1", "this is always below 1");
    for (chooser, column, why) in [
        ("hotspot(100, 20, 80)", 38, share),
        ("hotspot(100, 0.2, 80)", 43, share),
        ("exponential(100, -0.1)", 42, share),
        ("zipf(0)", 30, none),
        ("scrambled_zipf(1 - 2)", 40, none),
        ("weighted(1, 2, 2, -1)", 43, "a weight is 0 or more"),
    ] {
        let told = told(chooser).unwrap_or_else(|| panic!("{chooser} is taken"));
        assert!(told.contains(&format!("t.yaml:14:{column}: {why}")), "{chooser}: {told}");
    }
    for chooser in ["hotspot(100, 0, 1)", "exponential(100, 1, 0)", "zipf(token)", "weighted(1, 0, 2, 1)"] {
        assert_eq!(told(chooser), None, "{chooser}");
    }
}

/// A setting that makes a value wrong elsewhere is named, and how far it may go from its default.
#[test]
fn a_setting_out_of_its_range_is_told_with_its_range() {
    for (name, value, expected) in [
        (
            "reads",
            "180",
            ": \"-80\" is not a whole number: it is below 0; write it like 100 or 20k; that is ${100 - reads} with reads = 180, which can be at most 100 here",
        ),
        (
            "reads",
            "-5",
            ": \"-5\" is not a whole number: it is below 0; write it like 100 or 20k; that is ${reads} with reads = -5, which can be at least 0 here",
        ),
        (
            "shards",
            "0",
            ": 0 is too small; at least 1; that is ${shards} with shards = 0, which \
             can be at least 1 here",
        ),
    ] {
        let set = [(name.to_owned(), value.to_owned())];
        let said = load_shipped("kv-redis", &set).expect_err("refused").to_string();
        assert!(
            said.lines().any(|line| line.starts_with("kv-redis.yaml:") && line.ends_with(expected)),
            "{said}\ninstead of\n{expected}"
        );
    }
}

#[test]
fn mistakes_with_groups_of_steps() {
    let with = |steps: &str, objective: &str| {
        told_of(&format!(
            "sessions:\n  a:\n    steps: {steps}\nload: {{users: 1, hold: 1s}}\nobjectives: [{objective}]\n"
        ))
    };
    let buy = "[{group: Purchase, steps: [{GET: /}]}]";
    assert_eq!(
        with(buy, "group Purchse p99 < 1s"),
        "5:14: no group has the name \"Purchse\"; did you mean Purchase?"
    );
    assert_eq!(
        with(buy, "Purchase p99 < 1s"),
        "5:14: no request has the label \"Purchase\"; of a group it is \"group Purchase …\""
    );
    let early = with(buy, "{objective: group Purchase max < 1s, abort early: true}");
    assert!(early.contains("decided at the end"), "{early}");
    assert!(
        with(buy, "group Purchase dropped = 0")
            .contains("is for the whole run only, not for one label or group")
    );
    let deep = (0..5).fold("[{GET: /}]".to_owned(), |steps, n| format!("[{{group: g{n}, steps: {steps}}}]"));
    assert!(with(&deep, "p99 < 1s").contains("a group within 4 others is too deep"));
    assert!(with("[{group: '', steps: [{GET: /}]}]", "p99 < 1s").contains("a group needs a name"));
    assert!(with("[{group: Buy}]", "p99 < 1s").contains("needs the key \"steps\""));
    assert!(with("[{group: Buy, steps: [{think: 1s}]}, {GET: /}]", "p99 < 1s").contains("without a request"));
    let both = "[{group: G, steps: [{GET: /, label: group G}]}]";
    assert!(with(both, "group G p99 < 1s").contains("is a label, and a group has that name, too"));
}

#[test]
fn mistakes_with_what_is_measured() {
    let with = |steps: &str, objective: &str| {
        told_of(&format!(
            "sessions:\n  a:\n    steps: [{{GET: /, extract: {{n: $.n}}, label: Cart}}, {steps}]\nload: {{users: 1, hold: 1s}}\n\
             objectives: [{objective}]\n"
        ))
    };
    let items = "{measure: {items: '${n}', seen: {counter: 1}}}";
    assert_eq!(
        with(items, "itms p99 < 20"),
        "5:14: \"20\" is not a time: the unit is missing; write it like 250ms, 10s, 1m30s or 2h; did you mean items?"
    );
    assert_eq!(
        with(items, "items p99 < 20ms"),
        "5:14: \"20ms\" is not a number; write it like 20, 0.5 or 20k"
    );
    assert!(with(items, "seen p99 < 20").contains("\"seen\" is a counter, which has count, sum and rate"));
    let early = with(items, "{objective: items max < 20, abort early: true}");
    assert!(early.contains("an objective on a metric of your own is decided at the end"), "{early}");
    let both = with("{measure: {Cart: '${n}'}}", "Cart p99 < 20");
    assert!(both.contains("\"Cart\" is a label, and a metric has that name, too"), "{both}");
    let measured = |steps: &str| with(steps, "p99 < 1s");
    let twice = measured(&format!("{items}, {{measure: {{seen: 1}}}}"));
    assert!(twice.contains("\"seen\" is a counter at another step, and a histogram here"), "{twice}");
    let units = "{measure: {a: {histogram: '${n}', unit: ms}}}, {measure: {a: {histogram: '${n}', unit: s}}}";
    assert!(measured(units).contains("\"a\" is in ms at another step, and in s here"));
    assert!(
        measured("{measure: {a: many}}").contains("this is not a number; write a number, or an expression")
    );
    assert!(measured("{measure: {a: '${m}'}}").contains("unknown variable \"m\""));
    assert!(measured("{measure: {}}").contains("nothing is measured here"));
    assert!(measured("{measure: {a: {unit: ms}}}").contains("needs one of the keys histogram, counter"));
    assert!(measured("{measure: {a b: 1}}").contains("\"a b\" cannot be a name"));
    assert!(measured("{set: {x: 1}, measure: {a: 1}}").contains("a step does one thing"));
    let many: Vec<String> = (0..101).map(|n| format!("m{n}: 1")).collect();
    let many = measured(&format!("{{measure: {{{}}}}}", many.join(", ")));
    assert!(many.contains("measures more than 100 metrics"), "{many}");
    let of = |name: &str| {
        let steps = "{measure: {items: 1, seen: {counter: 1}, Cart: {counter: 1}}}";
        with(steps, &format!("errors = 0]\nratios:\n  one: {{of: seen, per: [seen, {name}]}}\n#"))
    };
    let told = "7:31: \"Cart\" is a label, and a metric has that name, too; call one of them otherwise";
    assert_eq!(of("Cart"), told);
    assert_eq!(of("sen"), "7:31: no counter and no label has the name \"sen\"; did you mean seen?");
    let told =
        "7:31: \"items\" is a histogram, and a ratio is of counters and labels; measure it with \"counter\"";
    assert_eq!(of("items"), told);
}
