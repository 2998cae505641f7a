use super::eval::TOO_LARGE;
use super::*;
use crate::context::{Feeder, Shared};

/// Names for tests: `a` is slot 0, `b` slot 1, `list` slot 2; any counter is 0; `rows` is feeder 0.
struct TestNames;

impl parse::Names for TestNames {
    fn environment(&mut self, name: &str, _: Option<&Node>) -> Result<Option<String>, String> {
        Ok((name == "SET").then(|| "from outside".into()))
    }

    fn variable(&mut self, name: &str) -> Result<Node, String> {
        match name {
            "a" => Ok(Node::Variable(0)),
            "b" => Ok(Node::Variable(1)),
            "list" => Ok(Node::Variable(2)),
            _ => Err(format!("unknown variable \"{name}\"")),
        }
    }

    fn counter(&mut self, _: &str) -> Result<usize, String> {
        Ok(0)
    }

    fn feeder(&mut self, _: &str, column: Option<&str>) -> Result<Node, String> {
        let column = usize::from(column == Some("to"));
        Ok(Node::Cell { feeder: 0, column, row: Box::new(Node::NextRow(0)) })
    }
}

/// The same with keys of so many numbers.
pub(super) struct Keyed(pub(super) u64);

impl parse::Names for Keyed {
    fn environment(&mut self, name: &str, default: Option<&Node>) -> Result<Option<String>, String> {
        TestNames.environment(name, default)
    }

    fn variable(&mut self, name: &str) -> Result<Node, String> {
        TestNames.variable(name)
    }

    fn counter(&mut self, name: &str) -> Result<usize, String> {
        TestNames.counter(name)
    }

    fn keys(&mut self, _: &str) -> Result<(usize, u64), String> {
        Ok((0, self.0))
    }

    fn feeder(&mut self, name: &str, column: Option<&str>) -> Result<Node, String> {
        TestNames.feeder(name, column)
    }
}

pub(super) fn parsed(text: &str) -> Expr {
    Expr::written(parse::parse(text, &mut TestNames).unwrap_or_else(|e| panic!("{text}: {e:?}")), text)
}

fn shared() -> Shared {
    let rows = [["x", "1"], ["y", "2"]].map(|row| row.map(Into::into).to_vec()).to_vec();
    Shared::new(
        1,
        vec![Feeder { name: "rows".into(), columns: vec!["from".into(), "to".into()], rows, held: false }],
    )
}

fn slots() -> Vec<Slot> {
    let mut slots = vec![Slot::default(); 3];
    slots[0].set_text(b"123 Main St.");
    slots[1].set_text(b"27617");
    slots[2].start_list();
    for item in ["one", "two", "three"] {
        slots[2].push_item(item.as_bytes());
    }
    slots
}

fn text_of(expr: &Expr, shared: &Shared) -> String {
    let mut random = fastrand::Rng::with_seed(7);
    let slots = slots();
    let mut cx = Context { slots: &slots, shared, random: &mut random, epoch_ms: 1_795_219_200_000 };
    let mut out = Vec::new();
    let _ = expr.write(&mut cx, &mut out);
    let mut slot = Slot::default();
    // Writing and storing must agree; only what draws from a shared thing may differ.
    let shown = format!("{:?}", expr.node);
    if !["Row", "random", "Uniform"].iter().any(|draws| shown.contains(draws)) {
        expr.eval_into(&mut cx, &mut slot);
        let mut stored = Vec::new();
        Encoding::Raw.write_value(slot.value(), &mut stored);
        assert_eq!(stored, out);
    }
    String::from_utf8(out).unwrap()
}

#[test]
fn expressions_give_what_the_reference_says() {
    let shared = shared();
    let cases = [
        ("1 + 2 * 3", "7"),
        ("(1 + 2) * 3", "9"),
        ("7 / 2", "3.5"),
        ("8 / 2", "4"),
        ("-7 % 3", "2"),
        ("1 / random(0, 0)", ""),
        ("9223372036854775807.0 + 1", "9223372036854776000"),
        ("b + 1", "27618"),
        ("a + 1", ""),
        ("number(before(a, ' ')) + 1", "124"),
        ("concat(before(a, ' ') + 1, ' ', after(a, ' '))", "124 Main St."),
        ("if(b + 1 > 99999, 10000, b + 1)", "27618"),
        ("if(98999 + 1001 > 99999, 10000, 1)", "10000"),
        ("1 < 2 and not (2 < 1) or false", "true"),
        ("not 1 == 2", "true"),
        ("'10' > '9'", "true"),
        ("'007' == '7'", "false"),
        ("'007' == 7", "true"),
        ("'x' != 'x'", "false"),
        ("'abc' < 'abd'", "true"),
        ("missing == missing", "true"),
        ("missing < 1", "false"),
        ("exists(missing)", "false"),
        ("default(missing, 'x')", "x"),
        ("list[0]", "one"),
        ("list[-1]", "three"),
        ("list[3]", ""),
        ("len(list) - 2", "1"),
        ("len('äöü')", "3"),
        ("join(list, '+')", "one+two+three"),
        ("list", "one,two,three"),
        ("contains(list, 'two')", "true"),
        ("contains(a, 'Main')", "true"),
        ("first(list)", "one"),
        ("upper(lower('AbC'))", "ABC"),
        ("upper(concat('x', list[1]))", "XTWO"),
        ("trim('  x ')", "x"),
        ("part('a;b;;d', ';', 2)", ""),
        ("part('a;b;;d', ';', 3)", "d"),
        ("exists(part('a;b', ';', 2))", "false"),
        ("slice('hello', 1, 3)", "el"),
        ("slice('hello', 4, 1)", ""),
        ("replace(a, ' ', '_')", "123_Main_St."),
        ("replace(upper(a), upper('main'), lower('X'))", "123 x ST."),
        ("pad(7, 3)", "007"),
        ("starts_with(a, '123') and ends_with(a, '.')", "true"),
        ("url('a b/c')", "a%20b%2Fc"),
        ("url(concat('a b', list[0]))", "a%20bone"),
        ("min(3, '2', 5)", "2"),
        ("max(3, 2.5)", "3"),
        ("round(2.5)", "3"),
        ("floor(-0.5)", "-1"),
        ("ceil(0.2)", "1"),
        ("abs(-4)", "4"),
        ("text(1.5)", "1.5"),
        ("number('x')", ""),
        ("number('1e3')", "1000"),
        ("date(0, '%Y-%m-%dT%H:%M:%SZ')", "1970-01-01T00:00:00Z"),
        ("date(now() + days(1), '%a %b %d 00:00:00 %Z %Y')", "Sun Nov 22 00:00:00 UTC 2026"),
        ("date(now(), concat('%Y', '-%m'))", "2026-11"),
        ("epoch_ms('2026-11-21', '%Y-%m-%d')", "1795219200000"),
        ("epoch_ms('nonsense', '%Y-%m-%d')", ""),
        ("hours(2) + minutes(1) + seconds(0.5)", "7260500"),
        ("'a\\'b\\n}'", "a'b\n}"),
    ];
    for (text, expected) in cases {
        assert_eq!(text_of(&parsed(text), &shared), expected, "{text}");
    }
}

#[test]
fn what_has_no_value_says_why() {
    let shared = shared();
    let unset = vec![Slot::default(); 3];
    let told = |text: &str| {
        let mut random = fastrand::Rng::with_seed(7);
        let mut cx = Context { slots: &unset, shared: &shared, random: &mut random, epoch_ms: 0 };
        let mut out = b"before".to_vec();
        match parsed(text).write(&mut cx, &mut out) {
            Ok(()) => Ok(String::from_utf8(out.split_off(6)).unwrap()),
            Err(unmet) => {
                assert_eq!(out, b"before");
                Err(unmet.describe(&["a".into(), "b".into(), "list".into()]))
            }
        }
    };
    let variable = |name| Err(format!("variable \"{name}\" is not set"));
    for text in [
        "a",
        "concat('x', a)",
        "a + 1",
        "text(a)",
        "a[0]",
        "if(true, a, 1)",
        "default(b, a)",
        "url(upper(a))",
    ] {
        assert_eq!(told(text), variable("a"), "{text}");
    }
    for (text, why) in [
        ("1 / random(0, 0)", "division by zero"),
        (" 7 % (3 - random(3, 3)) ", "division by zero"),
        ("random(7, 7) * 9223372036854775807", TOO_LARGE),
        ("-9223372036854775807 - random(2, 2)", TOO_LARGE),
        ("random(5, random(1, 1))", "empty range: the second number is below the first"),
        ("random_numbers(2, random(5, 5), 1)", "empty range: the second number is below the first"),
        ("random_numbers(random(-2, -2), 1, 5)", "a count is 0 or more"),
        ("random_text(random(-1, -1))", "a length is from 0 to 65536"),
        ("zipf(random(0, 0))", "how many numbers to choose from is 1 or more"),
        ("hotspot(random(-5, -5), 0.5, 0.5)", "how many numbers to choose from is 1 or more"),
        ("concat('x', random(1, 1)) * 2", "something in it is not a number"),
        ("number('x')", "something in it is not a number"),
        ("missing + random(1, 1)", "something in it is not a number"),
        ("hotspot(9, random(2, 2), 0.5)", "a share is from 0 to 1"),
        ("exponential(9, 0.5, random(80, 80))", "a share is from 0 to 1"),
        ("weighted(1, random(-1, -1), 2, 9)", "a weight is 0 or more"),
        ("part('a;b', ';', 2)", "the text has no such piece"),
        ("first('x')", "there is no list"),
        ("epoch_ms('nonsense', '%Y-%m-%d')", "the text is not a date in this format"),
    ] {
        assert_eq!(told(text), Err(format!("{}: {why}", text.trim())), "{text}");
    }
    for (text, said) in [
        ("missing", ""),
        ("default(a, '')", ""),
        ("default(a, missing)", ""),
        ("concat('x', missing)", "x"),
        ("if(exists(a), a, 'none')", "none"),
        ("len(list)", "0"),
        ("a == missing", "true"),
        ("a == 1 or b", "false"),
    ] {
        assert_eq!(told(text), Ok(said.to_owned()), "{text}");
    }
}

#[test]
fn counters_and_feeders_go_on_over_all_callers() {
    let shared = shared();
    let next = parsed("next(rows)");
    let drawn: Vec<_> = (0..3).map(|_| text_of(&next, &shared)).collect();
    assert_eq!(drawn, ["x", "y", "x"]);
    assert_eq!(text_of(&parsed("next(rows, to)"), &shared), "2");
    let before = shared.count(0);
    assert_eq!(before, 0);
    assert_eq!(shared.count(0), 1);
}

#[test]
fn random_numbers_stay_within_their_bounds_and_reach_them() {
    let shared = shared();
    let slots = slots();
    let mut random = fastrand::Rng::with_seed(3);
    let expr = parsed("random(0, 5)");
    let mut seen = [0u32; 6];
    let mut slot = Slot::default();
    for _ in 0..6_000 {
        let mut cx = Context { slots: &slots, shared: &shared, random: &mut random, epoch_ms: 0 };
        expr.eval_into(&mut cx, &mut slot);
        let Value::Int(drawn) = slot.value() else { panic!("{slot:?}") };
        seen[usize::try_from(drawn).unwrap()] += 1;
    }
    assert!(seen.iter().all(|count| (850..1150).contains(count)), "{seen:?}");
}

#[test]
fn uuids_are_version_4_and_differ() {
    let shared = shared();
    let mut random = fastrand::Rng::with_seed(3);
    let expr = parsed("uuid()");
    let mut draw = || {
        let mut out = Vec::new();
        expr.write(&mut Context { slots: &[], shared: &shared, random: &mut random, epoch_ms: 0 }, &mut out)
            .unwrap();
        String::from_utf8(out).unwrap()
    };
    let (one, two) = (draw(), draw());
    assert_ne!(one, two);
    assert_eq!(uuid::Uuid::parse_str(&one).unwrap().get_version_num(), 4);
}

#[test]
fn a_rhythm_of_a_quarter_fires_on_the_3rd_7th_11th() {
    let shared = shared();
    let mut random = fastrand::Rng::with_seed(3);
    let mut fired = |share_ppb: u64, shared: &Shared, n: usize| {
        let expr = Expr::new(Node::Rhythm { counter: 0, share_ppb });
        (1..=n)
            .filter(|_| expr.is_true(&mut Context { slots: &[], shared, random: &mut random, epoch_ms: 0 }))
            .collect::<Vec<_>>()
    };
    assert_eq!(fired(250_000_000, &shared, 20), [3, 7, 11, 15, 19]);
    let fresh = self::shared();
    assert_eq!(fired(0, &fresh, 10).len(), 0);
    let fresh = self::shared();
    assert_eq!(fired(1_000_000_000, &fresh, 10).len(), 10);
    let fresh = self::shared();
    assert_eq!(fired(333_333_333, &fresh, 3_000_000 / 1_000).len(), 1_000);
}

#[test]
fn conditions_follow_the_table_of_truth() {
    let shared = shared();
    let slots = slots();
    let mut random = fastrand::Rng::with_seed(3);
    for (text, expected) in [
        ("missing", false),
        ("''", false),
        ("'false'", false),
        ("'0'", false),
        ("0.0", false),
        ("'x'", true),
        ("list", true),
        ("-1", true),
    ] {
        let mut cx = Context { slots: &slots, shared: &shared, random: &mut random, epoch_ms: 0 };
        assert_eq!(parsed(text).is_true(&mut cx), expected, "{text}");
    }
}

#[test]
fn think_times_are_never_negative() {
    let shared = shared();
    let mut random = fastrand::Rng::with_seed(3);
    let mut cx = Context { slots: &[], shared: &shared, random: &mut random, epoch_ms: 0 };
    assert_eq!(parsed("0 - 5").duration_us(&mut cx), 0);
    assert_eq!(parsed("'x'").duration_us(&mut cx), 0);
    assert_eq!(Expr::int(1_500).duration_us(&mut cx), 1_500);
    let exponential = Expr::new(Node::Exponential { mean: 1_000.0 });
    let sum: u64 = (0..20_000).map(|_| exponential.duration_us(&mut cx)).sum();
    assert!((19_000_000..21_000_000).contains(&sum), "{sum}");
}

#[test]
fn mistakes_say_where_and_what() {
    let mistake = |text: &str| {
        let mistakes = parse::parse(text, &mut TestNames).expect_err(text);
        mistakes
            .iter()
            .map(|m| format!("{}+{} {}", m.offset, m.length, m.reason))
            .collect::<Vec<_>>()
            .join("\n")
    };
    assert_eq!(mistake("1 +"), "3+1 the expression ends too early; expected a value");
    assert_eq!(mistake("lne(a)"), "0+3 unknown function \"lne\"; did you mean len?");
    assert_eq!(mistake("nxt(rows)"), "0+3 unknown function \"nxt\"; did you mean next?");
    assert_eq!(mistake("x + y"), "0+1 unknown variable \"x\"\n4+1 unknown variable \"y\"");
    assert_eq!(mistake("9223372036854775807+1"), format!("20+1 {TOO_LARGE}"));
    assert_eq!(mistake("4 * 9223372036854775807"), format!("4+19 {TOO_LARGE}"));
    assert_eq!(mistake("'x' * 2"), "6+1 something in it is not a number");
    assert_eq!(mistake("1 / 0"), "4+1 this is always 0: a division by zero");
    assert_eq!(mistake("random(5,1)"), "9+1 empty range: the second number is below the first");
    assert_eq!(mistake("random_numbers(3, 5, 1)"), "21+1 empty range: the second number is below the first");
    assert_eq!(mistake("random_text(-1)"), "12+2 a length is from 0 to 65536");
    assert_eq!(mistake("a && b"), "2+2 unexpected \"&&\"; write and");
    assert_eq!(mistake("a = b"), "2+1 unexpected \"=\"; write == to compare");
    assert_eq!(mistake("!a"), "0+1 unexpected \"!\"; write not");
    assert_eq!(
        mistake("random(1)"),
        "0+6 random is called with 1 value; random(low, high) gives a random whole number, both bounds included"
    );
    assert!(mistake("if(1)").starts_with("0+2 if is called with 1 value; if(condition, then, else)"));
    assert!(mistake("pick()").starts_with("0+4 pick is called with 0 values"));
    assert_eq!(mistake("'abc"), "0+1 the text that begins here has no closing quote");
    assert_eq!(mistake("(1"), "2+1 the expression ends too early; expected a closing parenthesis");
    assert_eq!(mistake("3x"), "0+2 \"3x\" is neither a number nor a name");
    assert!(mistake("date(now(), '%J-')").starts_with("12+3 bad date format"));
    assert!(mistake(&"(".repeat(100)).contains("nested more than 64 deep"));
    assert!(mistake(&format!("a{}", "+a".repeat(100_000))).contains("more than 400 operators"));
    assert!(mistake(&format!("a{}", "[0]".repeat(100_000))).contains("more than 400 operators"));
    assert!(mistake(&"-".repeat(100)).contains("nested more than 64 deep"));
    assert!(mistake(&"not ".repeat(100)).contains("nested more than 64 deep"));
}

/// What is made ready, and written without a machine, is the same text from the same random numbers.
#[test]
fn a_number_that_is_drawn_is_the_same_however_it_is_written() {
    let shared = shared();
    let mut slots = slots();
    slots[0].set_int(0);
    let encodings = [
        Encoding::Raw,
        Encoding::Url,
        Encoding::Path,
        Encoding::Form,
        Encoding::JsonText,
        Encoding::JsonValue,
        Encoding::Header,
    ];
    for (ready, computed) in [
        ("random(-50, 99)", "random(-50, 99 + a)"),
        ("random('7', 7.9)", "random(7 + a, 7)"),
        ("pad(random(0, 99), 3)", "pad(random(0, 99 + a), 3 + a)"),
        ("pad(random(-5000, 5000), '4')", "pad(random(-5000, 5000 + a), 4)"),
        ("pad(zipf(1000), 2)", "pad(zipf(1000), 2 + a)"),
        ("pad(a, 4)", "pad(a, 4 + a)"),
        ("pad(random(1, 9), -1)", "pad(random(1, 9 + a), a - 1)"),
        ("pad(missing, 2)", "pad(missing, 2 + a)"),
    ] {
        let texts = |text: &str| -> Vec<Vec<u8>> {
            let mut random = fastrand::Rng::with_seed(3);
            let mut cx = Context { slots: &slots, shared: &shared, random: &mut random, epoch_ms: 0 };
            let expr = parsed(text);
            let each = encodings.iter().cycle().take(200).map(|encoding| {
                let mut out = b"before".to_vec();
                expr.write_encoded(&mut cx, *encoding, &mut out).unwrap();
                out
            });
            each.collect()
        };
        assert_eq!(texts(ready), texts(computed), "{ready}");
    }
}

#[test]
fn constants_are_folded() {
    assert_eq!(Expr::parse_constant("1 + 2 * 3").unwrap().as_constant(), Some(Value::Int(7)));
    assert_eq!(Expr::parse_constant("upper('x')").unwrap().as_constant(), Some(Value::Text(b"X")));
    assert_eq!(Expr::parse_constant("random(1, 2)").unwrap().as_constant(), None);
    assert!(Expr::parse_constant("x").is_err());
}

#[test]
fn holes_end_at_the_brace_outside_quotes() {
    assert_eq!(crate::pieces::end_of_hole("a} b"), Some(2));
    assert_eq!(crate::pieces::end_of_hole("'}' + \"}\"} b"), Some(10));
    assert_eq!(crate::pieces::end_of_hole("'\\'}'} b"), Some(6));
    assert_eq!(crate::pieces::end_of_hole("'}"), None);
}

#[test]
fn no_function_panics_whatever_it_is_given() {
    let shared = shared();
    let values =
        ["missing", "true", "-1", "9223372036854775807", "1.5", "''", "'é'", "'12'", "a", "list", "'1e300'"];
    for function in function::FUNCTIONS {
        for count in function.arguments_min..=function.arguments_max.min(3) {
            for pick in 0..values.len().pow(count as u32) {
                let arguments: Vec<&str> =
                    (0..count).map(|at| values[pick / values.len().pow(at as u32) % values.len()]).collect();
                let text = format!("{}({})", function.name, arguments.join(", "));
                if let Ok(node) = parse::parse(&text, &mut TestNames) {
                    let mut random = fastrand::Rng::with_seed(7);
                    let slots = slots();
                    let mut cx = Context { slots: &slots, shared: &shared, random: &mut random, epoch_ms: 0 };
                    Expr::new(node).eval_into(&mut cx, &mut Slot::default());
                }
            }
        }
    }
}

/// A condition that cannot be computed is neither true nor false, wherever in it that is; what is missing does not hold.
#[test]
fn a_condition_that_cannot_be_computed_says_why() {
    let shared = Shared::new(0, Vec::new());
    let mut random = fastrand::Rng::with_seed(1);
    let mut slots = [Slot::default(), Slot::default()];
    slots[1].set_text(b"abc");
    let mut cx = Context { slots: &slots, shared: &shared, random: &mut random, epoch_ms: 0 };
    let by_zero = "1 / random(0, 0)";
    for text in [
        by_zero.to_owned(),
        format!("{by_zero} > 2"),
        format!("2 == {by_zero}"),
        format!("2 != {by_zero}"),
        format!("not {by_zero}"),
        format!("not ({by_zero} > 2)"),
        format!("true and {by_zero}"),
        format!("{by_zero} or true"),
        format!("if({by_zero} > 1, 1, 1)"),
        format!("len(concat('x', {by_zero})) > 0"),
    ] {
        assert_eq!(parsed(&text).holds(&mut cx), Err("division by zero"), "{text}");
        let mut out = Slot::default();
        assert_eq!(parsed(&text).compute_into(&mut cx, &mut out), Err("division by zero"), "{text}");
    }
    assert_eq!(parsed("b + 1 > 2").holds(&mut cx), Err("something in it is not a number"));
    assert_eq!(parsed("random(1, 1) * 9223372036854775807 * 2 > 1").holds(&mut cx), Err(TOO_LARGE));
    for (text, holds) in [
        ("a", false),
        ("a > 1", false),
        ("a + 1 > 1", false),
        ("a == missing", true),
        ("not a", true),
        ("number(b) > 1", false),
        ("part(b, ',', 7) == missing", true),
        ("exists(1 / random(0, 0))", false),
        ("default(1 / random(0, 0), 1) > 0", true),
        ("false and 1 / random(0, 0) > 1", false),
        ("true or 1 / random(0, 0) > 1", true),
    ] {
        assert_eq!(parsed(text).holds(&mut cx), Ok(holds), "{text}");
    }
}
