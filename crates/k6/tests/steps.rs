//! The code of `js` steps, run without a load.

use std::rc::Rc;
use std::time::Duration;

use proptest::prelude::*;
use tidemark_drive::{Code, CodeVariables, LastAnswer};
use tidemark_k6::Steps;
use tidemark_scenario::plan::{CodePlan, CodeVariable, ScriptBounds};
use tidemark_scenario::{Slot, Value};

/// Variables that nothing bounds.
struct Plain(Vec<Slot>);

impl CodeVariables for Plain {
    fn get(&self, slot: u16) -> Value<'_> {
        self.0[usize::from(slot)].value()
    }

    fn put(&mut self, slot: u16, made: &mut Slot) -> bool {
        std::mem::swap(&mut self.0[usize::from(slot)], made);
        true
    }
}

fn code(text: &str, variables: &[&str]) -> CodePlan {
    let variable = |(slot, name): (usize, &&str)| CodeVariable {
        name: (*name).to_owned(),
        slot: slot as u16,
        is_fixed: name.starts_with("fixed"),
    };
    CodePlan {
        text: text.into(),
        variables: variables.iter().enumerate().map(variable).collect(),
        reads_answer: true,
        file: "t.yaml".into(),
        places: (0..text.lines().count().max(1)).map(|line| (10 + line, 5)).collect(),
    }
}

/// Steps of a thread, one after the other with the same variables.
struct Ran {
    of_thread: Box<dyn Code>,
    variables: Plain,
}

impl Ran {
    fn new(codes: &[CodePlan], bounds: ScriptBounds, slots: usize) -> Ran {
        let of_thread = Steps::new(codes, bounds, 1).of_thread(0);
        Ran { of_thread, variables: Plain(vec![Slot::default(); slots]) }
    }

    fn run(&mut self, code: usize, answer: Option<LastAnswer>) -> Result<(), String> {
        self.of_thread.run(code, answer.map(Rc::new).as_ref(), &mut self.variables)
    }
}

/// What `vars.x` is after some code.
fn x(text: &str) -> Result<Slot, String> {
    let mut ran = Ran::new(&[code(text, &["x"])], ScriptBounds::default(), 1);
    ran.run(0, None).map(|()| ran.variables.0.remove(0))
}

fn text(code: &str) -> String {
    match x(code) {
        Ok(slot) => match slot.value() {
            Value::Text(text) => String::from_utf8_lossy(text).into_owned(),
            other => format!("{other:?}"),
        },
        Err(words) => words,
    }
}

#[test]
fn variables_get_what_they_can_be() {
    for (told, is) in [
        ("1", "Int(1)"),
        ("-0", "Int(0)"),
        ("2 ** 53", "Real(9007199254740992.0)"),
        ("1.5", "Real(1.5)"),
        ("true", "Bool(true)"),
        ("undefined", "Missing"),
        ("null", "Missing"),
        ("'grün'", "grün"),
        ("9007199254740993n", "Int(9007199254740993)"),
        ("10n ** 20n", "100000000000000000000"),
    ] {
        assert_eq!(text(&format!("vars.x = {told};")), is, "{told}");
    }
    let list = x("vars.x = ['a', 1, true];").unwrap();
    let Value::List(list) = list.value() else { panic!("{list:?}") };
    assert_eq!([list.get(0), list.get(1), list.get(2)], [Some(&b"a"[..]), Some(b"1"), Some(b"true")]);
    for (told, says) in [
        ("({})", "TypeError: vars.x is of type object; set text, a number"),
        ("() => 1", "TypeError: vars.x is of type function"),
        ("NaN", "TypeError: vars.x is NaN; set a number"),
        ("[{}]", "TypeError: vars.x is a list whose item 0 is neither"),
        ("'\\ud800'", "TypeError: vars.x is a string with a lone surrogate"),
    ] {
        assert!(
            text(&format!("vars.x = {told};")).starts_with(says),
            "{}",
            text(&format!("vars.x = {told};"))
        );
    }
}

#[test]
fn values_come_back_as_they_were() {
    let same = code("vars.a = vars.a; vars.b = vars.b; vars.c; vars.d; vars.e", &["a", "b", "c", "d", "e"]);
    let mut ran = Ran::new(&[same], ScriptBounds::default(), 5);
    ran.variables.0[0].set_text(b"\xff\xfe");
    ran.variables.0[1].set_int(i64::MAX);
    ran.variables.0[2].start_list();
    ran.variables.0[2].push_item(b"\xff");
    ran.variables.0[3].set_real(0.1);
    let before = format!("{:?}", ran.variables.0);
    ran.run(0, None).unwrap();
    assert_eq!(format!("{:?}", ran.variables.0), before);
}

#[test]
fn what_the_language_bounds_is_bounded_here_too() {
    assert!(text("vars.y = 1;").contains("TypeError"), "{}", text("vars.y = 1;"));
    let mut ran = Ran::new(&[code("vars.fixed = 1;", &["fixed"])], ScriptBounds::default(), 1);
    assert!(ran.run(0, None).unwrap_err().starts_with("TypeError"));
    let mut ran = Ran::new(&[code("vars.l.push('x');", &["l"])], ScriptBounds::default(), 1);
    ran.variables.0[0].start_list();
    assert!(ran.run(0, None).unwrap_err().starts_with("TypeError"));
}

#[test]
fn an_answer_is_seen_as_in_k6() {
    let seen = code(
        "vars.x = [res.status, res.headers['Content-Type'], res.headers['content-type'], res.headers.etag ?? 'none',
         res.json('items.#.id').join('+'), res.json('items.1.id'), res.json().items.length, res.body.length].join(' ');",
        &["x"],
    );
    let mut ran = Ran::new(&[seen, code("vars.x = res === undefined;", &["x"])], ScriptBounds::default(), 1);
    let body = br#"{"items": [{"id": 7}, {"id": 8}]}"#;
    ran.run(0, Some(LastAnswer::new(201, b"content-type: a/b\nx: y\n", body))).unwrap();
    assert_eq!(ran.variables.0[0].value(), Value::Text(b"201 a/b a/b none 7+8 8 2 33"));
    ran.run(1, None).unwrap();
    assert_eq!(ran.variables.0[0].value(), Value::Bool(true));
    assert!(
        ran.run(0, Some(LastAnswer::new(200, b"", b"<html>"))).unwrap_err().contains("cannot parse json")
    );
}

#[test]
fn pages_are_seen_as_in_k6() {
    let seen = code(
        "const rows = res.html('li');
         vars.x = [res.html().find('a').attr('href'), res.html('a').get(0).href(), rows.size(), rows.first().text(), rows.eq(1).text(),
           rows.map((at, row) => at + row.attr('id')).join('+'), res.html('h6').get(0)?.textContent() ?? 'none'].join(' ');",
        &["x"],
    );
    let leaks = code(
        "const page = res.html('li');
         for (const of of [page.constructor, page.constructor.prototype, page.get(0).constructor.prototype]) {
           try { of.leak = 1; } catch {}
         }",
        &[],
    );
    let look = code(
        "const page = res.html('li');
         vars.x = [page.constructor.leak, page.leak, page.get(0).leak].every((leak) => leak === undefined);",
        &["x"],
    );
    let hides = code("vars.x = res['ht' + 'ml']('li').size();", &["x"]);
    let page = || LastAnswer::new(200, b"", b"<ul><li id=a>A<li id=b>B</ul><a href='/b?x=1'>next</a>");
    let mut ran = Ran::new(&[seen, leaks, look, hides.clone()], ScriptBounds::default(), 1);
    ran.run(0, Some(page())).unwrap();
    assert_eq!(ran.variables.0[0].value(), Value::Text(b"/b?x=1 /b?x=1 2 A B 0a+1b none"));
    ran.run(1, Some(page())).unwrap();
    ran.run(2, Some(page())).unwrap();
    assert_eq!(ran.variables.0[0].value(), Value::Bool(true));
    ran.run(3, Some(page())).unwrap();
    assert_eq!(ran.variables.0[0].value(), Value::Int(2));
    // what no step names is not loaded
    let mut ran = Ran::new(&[hides], ScriptBounds::default(), 1);
    assert!(ran.run(0, Some(page())).unwrap_err().starts_with("TypeError"));
    // pages have as much memory as the code, and its time
    let large = "<p>".repeat(200_000);
    for (memory, ms, says) in [(4, 20_000, "more than 4MiB"), (64, 1, "it ran for more than 1ms")] {
        let bounds = ScriptBounds { memory_bytes: Some(memory << 20), step: Some(Duration::from_millis(ms)) };
        let steps = [code("vars.x = res.html('p').size();", &["x"])];
        let mut ran = Ran::new(&steps, bounds, 1);
        let words = ran.run(0, Some(LastAnswer::new(200, b"", large.as_bytes()))).unwrap_err();
        assert!(words.contains(says), "{words}");
    }
}

#[test]
fn encodings_and_digests_are_there_without_an_import() {
    assert_eq!(text("vars.x = encoding.b64encode('a?b>');"), "YT9iPg==");
    assert_eq!(text("vars.x = encoding.b64decode('YT9iPg', 'rawstd', 's');"), "a?b>");
    assert_eq!(text("vars.x = crypto.md5('a', 'hex');"), "0cc175b9c0f1b6a831c399e269772661");
    let signed = text("vars.x = crypto.hmac('sha256', 'key', 'text', 'hex');");
    let by_subtle = text(
        "const bytes = (text) => new Uint8Array([...text].map((c) => c.charCodeAt(0)));
         const use = { name: 'HMAC', hash: 'SHA-256' };
         crypto.subtle.importKey('raw', bytes('key'), use, false, ['sign'])
           .then((key) => crypto.subtle.sign(use, key, bytes('text')))
           .then((made) => { vars.x = crypto.hexEncode(made); });",
    );
    assert_eq!((signed.len(), signed), (64, by_subtle));
    assert_eq!(text("vars.x = crypto.randomUUID();").len(), 36);
}

#[test]
fn a_mistake_is_told_where_it_stands() {
    assert_eq!(text("let a;\n  a.b;"), "TypeError: cannot read property 'b' of undefined (t.yaml:11:7)");
    assert_eq!(text("throw new Error('too dear')"), "Error: too dear (t.yaml:10:15)");
    assert_eq!(text("throw 'no'"), "no (t.yaml:10:5)");
    assert!(text("JSON.parse('{');").contains(" (t.yaml:10:"), "{}", text("JSON.parse('{');"));
    assert_eq!(
        text("Promise.reject(new Error('late'))").split(" (").next(),
        Some("Error: uncaught in a promise: Error: late")
    );
    let mut told = Vec::new();
    for (text, (line, column)) in [
        ("let a = 1;\nlet a = 2;", (11, 11)),
        ("if (true) {\n  x();", (11, 11)),
        ("await 1", (10, 5)),
        ("import 'x'", (10, 12)),
    ] {
        let mistakes = Steps::new(&[code(text, &[])], ScriptBounds::default(), 1).check();
        let [mistake] = &mistakes[..] else { panic!("{text}: {mistakes:?}") };
        told.push(((mistake.line, mistake.column) != (line, column), format!("{text}: {mistake:?}")));
        assert!(mistake.message.starts_with("SyntaxError: "), "{mistake:?}");
    }
    assert!(told.iter().all(|(is_wrong, _)| !is_wrong), "{told:?}");
    assert!(
        text("import('k6/crypto')").contains("a js step imports nothing"),
        "{}",
        text("import('k6/crypto')")
    );
}

#[test]
fn a_step_that_fails_sets_nothing() {
    let mut ran = Ran::new(&[code("vars.x = 2; throw 1", &["x"])], ScriptBounds::default(), 1);
    ran.variables.0[0].set_int(1);
    assert!(ran.run(0, None).is_err());
    assert_eq!(ran.variables.0[0].value(), Value::Int(1));
}

#[test]
fn what_takes_too_much_ends_and_the_next_step_runs() {
    let bounds = |ms| ScriptBounds { memory_bytes: Some(8 << 20), step: Some(Duration::from_millis(ms)) };
    for (text, says) in [
        ("for (;;);", "it ran for more than 50ms; have it do less, or give `script: {step: …}` more ("),
        ("try { for (;;); } catch { vars.x = 2; }", "it ran for more than 50ms"),
        ("const f = () => Promise.resolve().then(f); f();", "it ran for more than 50ms"),
        ("/(a*)*$/.test('a'.repeat(100) + 'b')", "it ran for more than 50ms"),
        (
            "for (const all = [];;) all.push('x'.repeat(1000) + all.length);",
            "it took more memory than 8MiB; have",
        ),
        ("'x'.repeat(1e9)", "it took more memory than 8MiB"),
        ("const all = []; for (;;) all.push(crypto.randomBytes(1 << 20));", "it took more memory than 8MiB"),
        (
            "vars.x = new Array(2000).fill('a'.repeat(1 << 16));",
            "TypeError: vars.x is a list that takes more time or memory",
        ),
        ("const f = () => f() + 1; f();", "RangeError: "),
        ("Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0)", "TypeError: "),
        ("vars.x = JSON.parse('['.repeat(100000))", ""),
    ] {
        // what ends by its memory has the time for that on a busy machine, too
        let bounds = bounds(if says.contains("ran for") { 50 } else { 20_000 });
        let mut ran = Ran::new(&[code(text, &["x"]), code("vars.x = 1;", &["x"])], bounds, 1);
        let words = ran.run(0, None).unwrap_err();
        assert!(words.starts_with(says), "{text}: {words}");
        ran.run(1, None).unwrap();
        assert_eq!(ran.variables.0[0].value(), Value::Int(1), "{text}");
    }
}

#[test]
fn nothing_is_left_for_the_next_session() {
    let look = code(
        "vars.x = typeof leak + typeof Object.prototype.leak + [].map.leak + (function* () {}).constructor.leak + Math.random.leak
          + crypto.leak + console.log.leak + Object.getPrototypeOf(crypto.createHash('md5')).leak + typeof globalThis.__k6;",
        &["x"],
    );
    for leaks in [
        "globalThis.leak = 1;",
        "leak = 1;",
        "(0, eval)('var leak = 1');",
        "new Function('leak = 1')();",
        "Object.prototype.leak = 1;",
        "Object.defineProperty(Object.prototype, 'leak', { value: 1 });",
        "Object.setPrototypeOf(Object.prototype, { leak: 1 });",
        "[].map.leak = 1;",
        "(function* () {}).constructor.leak = 1;",
        "Math.random.leak = 1;",
        "crypto.leak = 1;",
        "console.log.leak = 1;",
        "Object.getPrototypeOf(crypto.createHash('md5')).leak = 1;",
    ] {
        let steps = [code(&format!("try {{ {leaks} }} catch {{}}"), &[]), look.clone()];
        let mut ran = Ran::new(&steps, ScriptBounds::default(), 1);
        ran.run(0, None).unwrap();
        ran.run(1, None).unwrap();
        let undefined = "undefined".repeat(9);
        assert_eq!(ran.variables.0[0].value(), Value::Text(undefined.as_bytes()), "{leaks}");
    }
    // what is frozen is no hindrance
    let own = text(
        "class Own extends Error { constructor() { super('m'); this.name = 'Own'; } }; throw new Own();",
    );
    assert!(own.starts_with("Own: m (t.yaml:10:"), "{own}");
    assert_eq!(text("const own = {}; own.toString = () => 'own'; vars.x = `${own}`;"), "own");
}

#[test]
fn random_numbers_follow_the_seed() {
    let draws = |seed| {
        let steps =
            Steps::new(&[code("vars.x = String(Math.random());", &["x"])], ScriptBounds::default(), seed);
        let mut variables = Plain(vec![Slot::default()]);
        let mut of_thread = steps.of_thread(0);
        of_thread.run(0, None, &mut variables).unwrap();
        format!("{:?}", variables.0)
    };
    assert_eq!(draws(1), draws(1));
    assert_ne!(draws(1), draws(2));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, ..ProptestConfig::default() })]

    /// Whatever stands there: it is refused, or it runs, or it fails.
    #[test]
    fn any_text_is_code_or_a_mistake(
        text in prop_oneof![
            any::<String>(),
            "[{}()\\[\\];:,.=+*/`'\"$\\\\a-c0-9 \n#@!?<>&|-]{0,60}",
            prop::collection::vec(prop::sample::select(vec![
                "vars.x", "=", "res", ".body", "(", ")", "{", "}", "[", "]", "=>", "function", "class", "yield", "async", "await",
                "`", "${", "'", "/", "/*", "*/", "//", "\n", ";", ",", "...", "throw", "try", "catch", "for", "of", "new",
                "Proxy", "Symbol", "1n", "0.5", "delete", "globalThis", "eval", "this", "with", "import", "export", "super", "#a",
            ]), 0..40).prop_map(|words| words.join(" ")),
        ]
    ) {
        let codes = [code(&text, &["x"])];
        for mistake in Steps::new(&codes, ScriptBounds::default(), 1).check() {
            prop_assert!(!mistake.message.is_empty() && mistake.line >= 10);
        }
        let bounds = ScriptBounds { memory_bytes: Some(8 << 20), step: Some(Duration::from_millis(5)) };
        let mut ran = Ran::new(&codes, bounds, 1);
        let _ = ran.run(0, None);
        let _ = ran.run(0, Some(LastAnswer::new(200, b"a: b\n", text.as_bytes())));
    }
}
