//! Any scenario that can be made as source is written and read as itself, by us and by others.

use std::path::Path;

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use tidemark_scenario::source::{
    Choose, Defaults, Feeder, Load, Map, Method, Named, Phase, Request, Scalar, Scenario, Session, Step,
    System, Think, Value, Way,
};
use tidemark_scenario::{check_text, shipped};

/// What means something to YAML or to the language, or looks like what it is not.
const PIECES: &[&str] = &[
    "",
    " ",
    "  ",
    "\n",
    "\n\n",
    "\t",
    "\r",
    "\r\n",
    "- ",
    "-",
    "--- ",
    "---",
    "...",
    "? ",
    "?",
    ": ",
    ":",
    ",",
    "[",
    "]",
    "{",
    "}",
    "#",
    " #",
    "&a",
    "*a",
    "!",
    "!!int ",
    "|",
    "|+\n",
    ">",
    ">-",
    "'",
    "''",
    "\"",
    "\\",
    "\\n",
    "%YAML",
    "@",
    "`",
    "${",
    "${a}",
    "$${",
    "$",
    "~",
    "null",
    "Null",
    "true",
    "True",
    "false",
    "yes",
    "No",
    "on",
    "OFF",
    "y",
    "N",
    "=",
    "<<",
    "0",
    "1",
    "-1",
    "+1",
    "007",
    "0o7",
    "0x1F",
    "0b11",
    "1_000",
    "1,000",
    "1.5",
    ".5",
    "5.",
    "1e3",
    "1E+3",
    "-.inf",
    ".NaN",
    "12:30",
    "1:2:3.5",
    "2001-12-14",
    "2001-12-14t21:59:43.10-05:00",
    "10s",
    "5k/s",
    "a",
    "word",
    "two words",
    "ä",
    "日本",
    "🌊",
    "\u{1}",
    "\u{7f}",
    "\u{85}",
    "\u{a0}",
    "\u{ad}",
    "\u{200b}",
    "\u{202e}",
    "\u{2028}",
    "\u{2029}",
    "\u{feff}",
    "\u{e000}",
    "\u{fffd}",
    "\u{ffff}",
    "\u{1f600}",
    "\u{10ffff}",
    "\0",
    "\u{1b}",
    "http://h:1/",
    "a: b",
    "a #b",
    "/x?y=z",
];

fn text() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        4 => proptest::sample::select(PIECES).prop_map(str::to_owned),
        1 => any::<char>().prop_map(String::from),
        1 => "\\PC{0,12}",
        1 => "[a-z ]{90,130}",
    ];
    vec(piece, 0..6).prop_map(|pieces| pieces.concat())
}

/// One that is something.
fn scalar() -> impl Strategy<Value = Scalar> {
    prop_oneof![
        6 => text().prop_map(Scalar::from),
        1 => any::<i64>().prop_map(Scalar::from),
        1 => any::<bool>().prop_map(Scalar::from),
    ]
}

fn key() -> impl Strategy<Value = String> {
    prop_oneof![20 => text(), 1 => "[a-z\n]{950,1200}"]
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![9 => scalar().prop_map(Value::Scalar), 1 => Just(Value::default())];
    leaf.prop_recursive(5, 40, 6, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..5).prop_map(Value::List),
            vec((key(), inner), 0..5).prop_map(|entries| Value::Map(entries.into_iter().collect())),
        ]
    })
}

fn map() -> impl Strategy<Value = Map> {
    vec((key(), value()), 0..4).prop_map(|entries| entries.into_iter().collect())
}

/// Keys that the model has no fields for.
fn other() -> impl Strategy<Value = Map> {
    vec(("x [a-z]{1,3}", value()), 0..2).prop_map(|entries| entries.into_iter().collect())
}

fn named<T: std::fmt::Debug>(one: impl Strategy<Value = T>) -> impl Strategy<Value = Named<T>> {
    vec((key(), one), 0..3).prop_map(|all| {
        let mut named: Named<T> = Vec::new();
        for (name, one) in all {
            if named.iter().all(|(known, _)| *known != name) {
                named.push((name, one));
            }
        }
        named
    })
}

prop_compose! {
    fn request()(
        method in proptest::sample::select(Method::ALL.into_iter().chain([Method::Own]).collect::<Vec<_>>()),
        path in scalar(),
        label in option::of(scalar()),
        (query, headers, form, multipart, extract, check) in (map(), map(), map(), map(), map(), map()),
        json in option::of(value()),
        (body, timeout) in (option::of(scalar()), option::of(scalar())),
        other in other(),
    ) -> Request {
        Request { label, query, headers, form, json, multipart, body, timeout, extract, check, other, ..Request::new(method, path) }
    }
}

fn step() -> impl Strategy<Value = Step> {
    let verb = proptest::sample::select(&["end", "CALL", "redis", "ws connect", "ws send"][..]);
    let leaf = prop_oneof![
        4 => request().prop_map(Step::from),
        1 => value().prop_map(|time| Think { time, ..Think::default() }.into()),
        1 => (verb, value(), other()).prop_map(|(verb, value, mut rest)| {
            rest.insert(verb, value);
            Step::Other(rest)
        }),
    ];
    leaf.prop_recursive(3, 20, 4, |inner| {
        let way = (option::of(scalar()), vec(inner, 1..3)).prop_map(|(weight, steps)| Way {
            weight,
            steps,
            ..Way::default()
        });
        vec(way, 1..3).prop_map(|ways| Choose { ways, ..Choose::default() }.into())
    })
}

fn one_load() -> impl Strategy<Value = Load> {
    let phase = (scalar(), option::of(scalar()), option::of(value())).prop_map(|(duration, users, rate)| {
        Phase { duration: Some(duration), users, rate, ..Phase::default() }
    });
    (scalar(), option::of(value()), option::of(value()), vec(phase, 0..3), other()).prop_map(
        |(hold, think, rate, phases, other)| Load {
            hold: Some(hold),
            think,
            rate,
            phases,
            other,
            ..Load::default()
        },
    )
}

fn load() -> impl Strategy<Value = Load> {
    (one_load(), named(one_load())).prop_map(|(load, sessions)| Load { sessions, ..load })
}

prop_compose! {
    fn scenario()(
        (name, description, seed) in (option::of(scalar()), option::of(scalar()), option::of(scalar())),
        (settings, stores, limits, verify, other) in (map(), map(), map(), map(), other()),
        system in option::of((scalar(), map()).prop_map(|(url, tls)| System { url: Some(url), tls, ..System::default() })),
        feeders in named((scalar(), vec(value(), 0..4)).prop_map(|(file, values)| {
            Feeder { file: Some(file), values, ..Feeder::default() }
        })),
        defaults in option::of((map(), scalar()).prop_map(|(headers, timeout)| {
            Defaults { headers, timeout: Some(timeout), ..Defaults::default() }
        })),
        prepare in vec(step(), 0..3),
        sessions in named((option::of(scalar()), vec(step(), 1..4)).prop_map(|(weight, steps)| {
            Session { weight, steps, ..Session::default() }
        })),
        load in option::of(load()),
        (objectives, faults) in (vec(value(), 0..3), vec(value(), 0..3)),
    ) -> Scenario {
        Scenario {
            name, description, seed, settings, stores, limits, verify, other, system, feeders, defaults, prepare,
            sessions, load, objectives, faults, ..Scenario::default()
        }
    }
}

fn read(text: &str) -> Value {
    Value::from_yaml("t.yaml", text).unwrap_or_else(|error| panic!("{error}\nin\n{text}"))
}

/// What another reader makes of a value: a text must be a text there, and nothing else may be.
fn is_seen(value: &Value, seen: &serde_yaml_ng::Value) -> bool {
    use serde_yaml_ng::Value as Seen;
    match (value, seen) {
        (Value::Scalar(scalar), Seen::String(text)) => !scalar.is_bare() && scalar.as_str() == text,
        (Value::Scalar(scalar), _) if scalar.is_bare() => match seen {
            Seen::Null => scalar.is_null(),
            Seen::Bool(truth) => scalar.as_str() == truth.to_string(),
            Seen::Number(number) => scalar.as_str() == number.to_string(),
            _ => false,
        },
        (Value::List(items), Seen::Sequence(seen)) => {
            items.len() == seen.len() && items.iter().zip(seen).all(|(item, seen)| is_seen(item, seen))
        }
        (Value::Map(map), Seen::Mapping(seen)) => {
            map.len() == seen.len()
                && map.entries().iter().zip(seen).all(|(entry, (key, value))| {
                    key.as_str() == Some(entry.key.as_str()) && is_seen(&entry.value, value)
                })
        }
        _ => false,
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_000, failure_persistence: None, ..ProptestConfig::default() })]

    /// In a line and in a block, as a key, as an item and as a value.
    #[test]
    fn any_text_is_written_and_read_as_itself(key in key(), text in text()) {
        let short = Map::from([(key.as_str(), text.as_str())]);
        let list = vec![Value::from(&text), short.clone().into(), vec![Value::from(&text)].into()];
        let settings = Map::from([("value", Value::from(&text)), ("short", short.into()), ("list", list.into())]);
        let scenario = Scenario { settings: settings.clone(), ..Scenario::default() };
        let written = scenario.to_yaml();
        prop_assert_eq!(read(&written), scenario.to_map().into(), "{}", written);
        let seen: serde_yaml_ng::Value = serde_yaml_ng::from_str(&written).unwrap_or_else(|error| panic!("{error}\n{written}"));
        prop_assert!(is_seen(&settings.into(), &seen["settings"]), "{}", written);
    }

    #[test]
    fn any_comment_is_one(comment in text()) {
        let think = Think { time: "1s".into(), comment: comment.clone(), ..Think::default() };
        let mut settings = Map::new();
        settings.insert_with_comment(comment.as_str(), "a", "b");
        let session = Session { steps: vec![think.clone().into(), think.into()], comment: comment.clone(), ..Session::default() };
        let commented = Scenario { comment, settings, sessions: vec![("one".into(), session)], ..Scenario::default() };
        let written = commented.to_yaml();
        let plain = read("settings: {a: b}\nsessions: {one: {steps: [{think: 1s}, {think: 1s}]}}");
        prop_assert_eq!(read(&written), plain, "{}", written);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_model_is_written_and_read_as_itself(scenario in scenario()) {
        let written = scenario.to_yaml();
        prop_assert_eq!(read(&written), scenario.to_map().into(), "{}", written);
        prop_assert!(serde_yaml_ng::from_str::<serde_yaml_ng::Value>(&written).is_ok(), "{}", written);
    }

    /// What a file that can be read means, if it can run, is what that means which is written of it.
    #[test]
    fn a_broken_scenario_stays_one(at in 0.0..1.0f64, length in 0usize..40, piece in 0..PIECES.len()) {
        let text = shipped("airline").expect("is shipped");
        let boundary = |mut at: usize| { while !text.is_char_boundary(at) { at -= 1; } at };
        let start = boundary((at * text.len() as f64) as usize);
        let end = boundary((start + length).min(text.len()));
        let broken = format!("{}{}{}", &text[..start], PIECES[piece], &text[end..]);
        if let Ok(Value::Map(scenario)) = Value::from_yaml("t.yaml", &broken) {
            let written = scenario.to_yaml();
            prop_assert_eq!(meaning(&broken, Path::new(".")), meaning(&written, Path::new(".")), "{}", written);
        }
    }
}

/// The plan without its text; none where something is wrong.
fn meaning(text: &str, base: &Path) -> Option<String> {
    let (plan, _) = check_text("t.yaml", text, base, &[]);
    plan.map(|mut plan| {
        plan.source.clear();
        format!("{plan:#?}")
    })
}
