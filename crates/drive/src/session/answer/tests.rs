use std::time::Duration;

use tidemark_scenario::plan::SlotIndex;
use tidemark_scenario::{Expr, Shared, Template, Value};
use tidemark_wire::http1::{DecoderLimits, ResponseDecoder};

use super::*;

const JSON: &[u8] =
    b"HTTP/1.1 200 OK\r\nX-Id: seven\r\nSet-Cookie: sid=abc; Path=/\r\nContent-Length: 60\r\n\r\n\
    {\"a\": [{\"n\": 1}, {\"n\": \"tw\\u006f\"}], \"none\": null, \"t\": \"x\"}";

fn path(text: &str) -> json::Path {
    json::Path::parse(text).unwrap()
}

struct Judged {
    result: Result<(), Flaw>,
    slots: Vec<Slot>,
    detail: Option<String>,
}

fn judged(bytes: &[u8], extractions: Vec<(Source, WhenMissing)>, checks: Vec<Check>) -> Judged {
    let slots = extractions.len();
    let extractions = extractions.into_iter().enumerate();
    let extractions = extractions
        .map(|(i, (source, when_missing))| Extraction { slot: i as SlotIndex, source, when_missing })
        .collect();
    let request = RequestPlan {
        label: 0,
        target: 0,
        ask: crate::testing::get("/"),
        ledger: None,
        key: None,
        timeout: Duration::from_secs(1),
        extractions,
        checks,
        shown_body_bytes: 0,
        follow: None,
    };
    let mut probe = Probe::new(&request);
    let mut answer = ResponseDecoder::new(DecoderLimits::default());
    answer.start(false, probe.needs_body);
    assert!(answer.decode(bytes).unwrap().complete);
    let mut slots = vec![Slot::default(); slots];
    slots.iter_mut().for_each(|slot| slot.set_text(b"before"));
    let shared = Shared::new(0, Vec::new());
    let mut random = fastrand::Rng::with_seed(1);
    let mut environment = Environment { shared: &shared, random: &mut random, epoch_ms: 0 };
    let mut scratch = Scratch::default();
    let result = probe.judge((&answer, answer.status()), &mut slots, &mut environment, &mut scratch);
    let variables = Variables { slots: &slots, names: &["it".to_owned()] };
    let detail = result.err().map(|flaw| probe.describe(flaw, &answer, bytes, variables, &scratch));
    Judged { result, slots, detail }
}

fn kept(source: Source) -> Slot {
    let mut judged = judged(JSON, vec![(source, WhenMissing::Clear)], Vec::new());
    assert_eq!(judged.result, Ok(()));
    judged.slots.remove(0)
}

#[test]
fn numbers_and_truth_values_stay_such_where_they_are_written_again_as_they_came() {
    let kept = |token: &str| {
        let (mut slot, mut text) = (Slot::default(), Vec::new());
        keep(token.as_bytes(), &mut slot, &mut text);
        slot
    };
    for (token, value) in [
        ("17", Value::Int(17)),
        ("-3", Value::Int(-3)),
        ("19.99", Value::Real(19.99)),
        ("true", Value::Bool(true)),
        ("false", Value::Bool(false)),
        ("-0", Value::Text(b"-0")),
        ("1.50", Value::Text(b"1.50")),
        ("1e3", Value::Text(b"1e3")),
        ("18446744073709551615", Value::Text(b"18446744073709551615")),
        ("\"17\"", Value::Text(b"17")),
        ("[1]", Value::Text(b"[1]")),
    ] {
        assert_eq!(kept(token).value(), value, "{token}");
    }
}

#[test]
fn every_source() {
    assert_eq!(kept(Source::Json(path("$.a[0].n"))).value(), Value::Int(1));
    assert_eq!(kept(Source::Json(path("$.a[-1].n"))).value(), Value::Text(b"two"));
    assert_eq!(kept(Source::Json(path("$.none"))).value(), Value::Missing);
    assert_eq!(kept(Source::Json(path("$.b"))).value(), Value::Missing);
    assert_eq!(kept(Source::JsonCount(path("$.a[*]"))).value(), Value::Int(2));
    assert_eq!(kept(Source::Header("x-id".into())).value(), Value::Text(b"seven"));
    assert_eq!(kept(Source::Header("x-no".into())).value(), Value::Missing);
    assert_eq!(kept(Source::Cookie("sid".into())).value(), Value::Text(b"abc"));
    assert_eq!(kept(Source::Cookie("other".into())).value(), Value::Missing);
    assert_eq!(kept(Source::Status).value(), Value::Int(200));
    let regex = regex::bytes::Regex::new(r#""t": "(.)""#).unwrap();
    assert_eq!(kept(Source::Regex(regex, 1)).value(), Value::Text(b"x"));
    match kept(Source::JsonAll(path("$.a[*].n"))).value() {
        Value::List(list) => {
            assert_eq!((list.len(), list.get(0), list.get(1)), (2, Some(&b"1"[..]), Some(&b"two"[..])));
        }
        other => panic!("{other:?}"),
    }
    assert!(matches!(kept(Source::Body).value(), Value::Text(body) if body.len() == 60));
}

#[test]
fn missing_values_are_cleared_kept_or_fail() {
    let nothing = || Source::Header("x-no".into());
    let each =
        judged(JSON, vec![(nothing(), WhenMissing::Keep), (nothing(), WhenMissing::Clear)], Vec::new());
    assert_eq!(each.result, Ok(()));
    assert_eq!(each.slots[0].value(), Value::Text(b"before"));
    assert_eq!(each.slots[1].value(), Value::Missing);
    let failed = judged(JSON, vec![(nothing(), WhenMissing::Fail)], Vec::new());
    assert_eq!(failed.result, Err(Flaw::Extraction(0)));
    assert!(failed.detail.unwrap().starts_with("status 200, nothing found for it: {\"a\""));
}

#[test]
fn the_status_is_judged_first() {
    let answer = b"HTTP/1.1 404 Not Found\r\nContent-Length: 7\r\n\r\nno\n\x07one";
    let plain = judged(answer, vec![(Source::Status, WhenMissing::Clear)], Vec::new());
    assert_eq!(plain.result, Err(Flaw::Status));
    assert_eq!(plain.detail.unwrap(), "status 404: no\\n\\u{7}one");
    let expected =
        judged(answer, vec![(Source::Status, WhenMissing::Clear)], vec![Check::Status(vec![(404, 404)])]);
    assert_eq!(expected.result, Ok(()));
    let unexpected = judged(JSON, Vec::new(), vec![Check::Status(vec![(201, 299), (404, 404)])]);
    assert_eq!(unexpected.result, Err(Flaw::Status));
}

#[test]
fn every_check() {
    let literal = |text: &str| Template::literal(text);
    let regex = |text: &str| regex::bytes::Regex::new(text).unwrap();
    let right = vec![
        Check::Header("x-id".into(), TextTest::Equals(literal("seven"))),
        Check::Header("x-id".into(), TextTest::Exists),
        Check::Body(TextTest::Contains(literal("\"t\""))),
        Check::Body(TextTest::Matches(regex("^.\"a"))),
        Check::Body(TextTest::Exists),
        Check::Json(path("$.a[1].n"), TextTest::Equals(literal("two"))),
        Check::Holds(Expr::int(1), "1".into()),
    ];
    assert_eq!(judged(JSON, Vec::new(), right).result, Ok(()));
    let wrong = [
        Check::Header("x-id".into(), TextTest::Equals(literal("eight"))),
        Check::Header("x-no".into(), TextTest::Exists),
        Check::Body(TextTest::Contains(literal("absent"))),
        Check::Body(TextTest::Matches(regex("^x"))),
        Check::Json(path("$.none"), TextTest::Exists),
        Check::Json(path("$.t"), TextTest::Equals(literal("y"))),
        Check::Holds(Expr::int(0), "0 == 1".into()),
    ];
    for check in wrong {
        let judged = judged(JSON, Vec::new(), vec![check.clone()]);
        assert_eq!(judged.result, Err(Flaw::Check(0)), "{check:?}");
        assert!(judged.detail.unwrap().starts_with("check "), "{check:?}");
    }
}

#[test]
fn values_of_json_are_told_apart_by_type_null_and_absence() {
    const BODY: &str = r#"{"n": 3.0, "big": 18446744073709551616, "s": "3", "t": true, "none": null,
        "l": [1, 2.50, {"b": null, "a": "x"}], "e": []}"#;
    let answer = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{BODY}", BODY.len());
    let is = |value: &str| JsonTest::Is(Template::literal(value));
    let right = [
        ("$.n", is("3")),
        ("$.n", JsonTest::Type(JsonType::Number)),
        ("$.big", is("18446744073709551616")),
        ("$.t", is("true")),
        ("$.none", is("null")),
        ("$.none", JsonTest::Empty),
        ("$.gone", JsonTest::Empty),
        ("$.gone", JsonTest::Absent),
        ("$.l", is(r#"[1.0, 2.5, {"a": "x", "b": null}]"#)),
        ("$.e", is("[]")),
        ("$.e", JsonTest::Type(JsonType::Array)),
    ];
    for (at, test) in right {
        let judged = judged(answer.as_bytes(), Vec::new(), vec![Check::JsonValue(path(at), test.clone())]);
        assert_eq!(judged.result, Ok(()), "{at} {test:?}");
    }
    let wrong = [
        ("$.s", is("3"), "check $.s: expected 3, got \"3\""),
        ("$.s", JsonTest::Type(JsonType::Number), "expected a value of type number, got \"3\""),
        ("$.big", is("18446744073709551617"), "expected 18446744073709551617"),
        ("$.t", is("false"), "expected false, got true"),
        ("$.gone", is("null"), "expected null, got nothing"),
        ("$.none", JsonTest::Absent, "expected nothing at all, got null"),
        ("$.n", JsonTest::Empty, "expected nothing, or null, got 3.0"),
        ("$.l", is("[1]"), "expected [1], got [1, 2.50"),
    ];
    for (at, test, words) in wrong {
        let judged = judged(answer.as_bytes(), Vec::new(), vec![Check::JsonValue(path(at), test)]);
        assert_eq!(judged.result, Err(Flaw::Check(0)), "{at}");
        assert!(judged.detail.as_ref().unwrap().contains(words), "{:?}", judged.detail);
    }
    // as texts: a number is the same however it is written
    for (at, text, holds) in
        [("$.n", "3", true), ("$.n", "3.00", true), ("$.s", "3", true), ("$.s", "3.0", false)]
    {
        let check = Check::Json(path(at), TextTest::Equals(Template::literal(text)));
        let judged = judged(answer.as_bytes(), Vec::new(), vec![check]);
        assert_eq!(judged.result.is_ok(), holds, "{at} {text}");
    }
    let no_json = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";
    let absent = judged(no_json, Vec::new(), vec![Check::JsonValue(path("$.a"), JsonTest::Absent)]);
    assert!(
        absent.detail.unwrap().contains("not JSON"),
        "no JSON has nothing in it, and is not right for that"
    );
}

#[test]
fn a_long_body_is_cut_in_its_example() {
    assert_eq!(shown(&[b'x'; 500]).chars().count(), EXAMPLE_BODY_BYTES + 1);
    assert_eq!(shown(b""), "(no body)");
}

#[test]
fn a_body_that_is_json_only_at_its_beginning_is_none() {
    let n_is = || vec![Check::JsonValue(path("$.n"), JsonTest::Is(Template::literal("3")))];
    let as_text = || vec![Check::Json(path("$.n"), TextTest::Equals(Template::literal("3")))];
    let there = || vec![Check::Json(path("$.n"), TextTest::Exists)];
    let answer = |body: &str| format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len());
    for (body, is_json) in [
        ("{\"n\":3}", true),
        (" {\"n\":3, \"x\": [1]} \r\n", true),
        ("{\"n\":3", false),
        ("{\"n\":3}<html></html>", false),
        ("{\"n\":3}{\"n\":4}", false),
        ("{\"n\":3,\"x\":nope}", false),
    ] {
        let bytes = answer(body);
        for checks in [n_is(), as_text(), there()] {
            let judged = judged(bytes.as_bytes(), Vec::new(), checks);
            assert_eq!(judged.result.is_ok(), is_json, "{body}");
            let says = judged.detail.is_none_or(|detail| detail.contains("the body is not JSON: "));
            assert!(says, "{body}");
        }
        // nothing is taken out of it either; what does not look into JSON does not mind
        for source in
            [Source::Json(path("$.n")), Source::JsonAll(path("$.n")), Source::JsonCount(path("$.n"))]
        {
            let judged = judged(bytes.as_bytes(), vec![(source, WhenMissing::Fail)], Vec::new());
            assert_eq!(judged.result, if is_json { Ok(()) } else { Err(Flaw::Extraction(0)) }, "{body}");
        }
        assert!(judged(bytes.as_bytes(), vec![(Source::Body, WhenMissing::Fail)], Vec::new()).result.is_ok());
    }
}
