//! `js` steps, from a scenario's text to what is sent and said.

use std::fs;
use std::path::Path;
use std::process::Output;

use crate::program::server::Server;
use crate::program::{code, json, run, stderr, stdout};

fn answer(target: &str) -> (&'static str, &'static str) {
    match target {
        "/cart" => ("", r#"{"items": [{"id": "lamp", "price": 20.5}, {"id": "pen", "price": 1.25}]}"#),
        "/products" => ("", r#"[{"id": "lamp", "weight": 0}, {"id": "pen", "weight": 3}]"#),
        "/messages?from=first" => ("", r#"{"next": "b"}"#),
        "/messages?from=b" => ("", r#"{"next": null}"#),
        "/items" => ("Link: </items?page=2&all>; rel=\"next\"\r\n", "[]"),
        // {"sub": "ann?>"}
        "/token" => ("", r#"{"token": "e30.eyJzdWIiOiAiYW5uPz4ifQ.x"}"#),
        "/report.csv" => ("", "id,price\npen,1\nsofa,900\nlamp,20\n"),
        "/login" => {
            ("", "<nav><a href='/a'>A</a> <a href='/b'>B</a></nav><form><input name=csrf value=t1></form>")
        }
        "/bill" => ("", r#"{"items": [{"price": 2}, {"price": 3}], "total": 6}"#),
        _ => ("", "hello"),
    }
}

/// A shop whose answers are known.
fn shop() -> Server {
    Server::answering(answer)
}

/// The requests since it was asked last, whole.
fn seen(shop: &Server) -> Vec<String> {
    let seen = shop.requests();
    shop.forget();
    seen
}

/// The first lines of those.
fn asked(shop: &Server) -> Vec<String> {
    seen(shop).iter().map(|text| text.split(" HTTP/").next().unwrap_or_default().to_owned()).collect()
}

/// Runs steps, written as in a list, with more above them.
fn with_steps(shop: &Server, top: &str, steps: &str, flags: &[&str]) -> (Output, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let steps: String = steps.lines().map(|line| format!("      {line}\n")).collect();
    let place = &shop.place;
    let text = format!(
        "{top}system: {{url: \"http://{place}\"}}\nsessions:\n  one:\n    steps:\n{steps}load: {{users: 2, hold: 1s}}\n"
    );
    fs::write(folder.path().join("a.yaml"), text).unwrap();
    let output = run(folder.path(), &[&["run", "a.yaml"], flags].concat());
    (output, folder)
}

fn once(shop: &Server, steps: &str) -> Output {
    with_steps(shop, "", steps, &["--once", "-v"]).0
}

#[test]
fn the_examples_do_what_they_say() {
    let page = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/js.md")).unwrap();
    let blocks = page.split("```yaml\n").skip(1).filter_map(|rest| rest.split("```").next());
    let blocks: Vec<&str> = blocks.filter(|block| block.starts_with("- ")).collect();
    let shop = shop();
    let ran = |block: &str| {
        let output = once(&shop, block);
        assert_eq!(code(&output), 0, "{block}\n{}{}", stdout(&output), stderr(&output));
        seen(&shop)
    };
    let [first, sign, total, choose, date, pages, header, base64, csv, login, check, think] = &blocks[..]
    else {
        panic!("{} examples", blocks.len())
    };
    assert!(ran(first)[1].ends_with("{\"total\": 21.75, \"id\": \"pen\"}"));
    let signed = &ran(sign)[0];
    let header_of = |name: &str| {
        let line = signed.lines().find_map(|line| line.strip_prefix(name));
        line.unwrap_or_else(|| panic!("{signed}")).trim_start_matches(": ").to_owned()
    };
    assert_eq!((header_of("X-Signature").len(), header_of("X-Stamp").len()), (64, 13), "{signed}");
    assert!(ran(total)[1].ends_with("{\"total\":\"21.75\"}"));
    let asked = |block: &str| {
        let first = |text: &String| text.split(" HTTP/").next().unwrap_or_default().to_owned();
        ran(block).iter().map(first).collect::<Vec<String>>()
    };
    assert_eq!(asked(choose), ["GET /products", "GET /products/pen"]);
    let flights = asked(date).remove(0);
    assert!(flights.starts_with("GET /flights?on=20") && flights.len() == 26, "{flights}");
    assert_eq!(asked(pages), ["GET /messages?from=first", "GET /messages?from=b"]);
    assert_eq!(asked(header), ["GET /items", "GET /items?page=2"]);
    assert_eq!(asked(base64), ["GET /token", "GET /users/ann%3F%3E"]);
    assert_eq!(asked(csv), ["GET /report.csv", "GET /products/sofa"]);
    let login = ran(login);
    assert!(login[1].ends_with("\r\n\r\ncsrf=t1") && login[2].starts_with("GET /b HTTP"), "{login:?}");
    assert_eq!(asked(think), ["GET /article", "GET /next"]);
    let output = once(&shop, check);
    let shown = stdout(&output);
    assert_eq!(code(&output), 1, "{shown}");
    let says = "Error: the total is 6, and its items are 5 (a.yaml:9:";
    assert!(shown.contains(says) && shown.contains("1 request: 1 failed"), "{shown}");
}

#[test]
fn a_failed_step_is_counted_and_the_run_goes_on() {
    let shop = shop();
    let steps = "- GET: /cart\n- js: for (;;);\n- js: vars.n = res.status;\n- GET: /after/${n}";
    let top = "script: {step: 5ms}\nseed: 1\n";
    let (output, _folder) = with_steps(&shop, top, steps, &["--json", "-q", "-t", "1"]);
    let json = json(&output);
    let text = json.to_string();
    assert!(text.contains("js: it ran for more than 5ms; have it do less"), "{text}");
    assert!(asked(&shop).iter().any(|asked| asked == "GET /after/200"));
}

#[test]
fn mistakes_are_told_by_check_with_their_place() {
    let shop = shop();
    for (steps, says) in [
        ("- GET: /\n- js: |\n    vars.a = 1;\n    if (vars.a {", "a.yaml:9:22: SyntaxError: "),
        ("- GET: /\n- js: \"let a = 1;\\nlet a = 2;\"", "a.yaml:7:13: SyntaxError: "),
        (
            "- GET: /\n- js: vars.total = vars.totl;",
            "a.yaml:7:31: unknown variable \"totl\"; did you mean total?",
        ),
        ("- GET: /\n- js: '  '", "there is no JavaScript here"),
    ] {
        let (output, folder) = with_steps(&shop, "# one\n", steps, &["--once"]);
        let checked = run(folder.path(), &["check", "a.yaml"]);
        for output in [output, checked] {
            assert_eq!(code(&output), 2, "{steps}: {}", stdout(&output));
            assert!(stderr(&output).contains(says), "{steps}: {}", stderr(&output));
        }
    }
    assert_eq!(asked(&shop), [""; 0]);
}

#[test]
fn steps_work_where_steps_do() {
    let shop = shop();
    let top = "settings: {region: eu}\nprepare:\n  - GET: /cart\n  - js: vars.n = res.json('items.#');\n  - GET: /prepared/${n}\n";
    let steps = "- js: vars.first = res === undefined;
- group: all
  steps:
    - repeat: 2
      as: i
      steps:
        - GET: /cart
        - js: vars.path = `${vars.region}-${vars.i}-${vars.first}-${res.headers['content-length']}`;
        - GET: /in/${path}
- js: console.log(`at ${vars.path}`);";
    let (output, _folder) = with_steps(&shop, top, steps, &["--once", "-v"]);
    let shown = stdout(&output);
    assert_eq!(code(&output), 0, "{shown}{}", stderr(&output));
    let wanted = [
        "GET /cart",
        "GET /prepared/2",
        "GET /cart",
        "GET /in/eu-0-true-72",
        "GET /cart",
        "GET /in/eu-1-true-72",
    ];
    assert_eq!(asked(&shop), wanted);
    assert!(stderr(&output).contains("at eu-1-true-72"), "{}", stderr(&output));
    assert!(shown.contains("js ran in ") && shown.contains("4 requests: all good"), "{shown}");
    assert!(shown.contains("path = eu-0-true-72"), "{shown}");
    // what prepares fails as a whole
    let top = "prepare:\n  - GET: /cart\n  - js: throw new Error('not ready');\n";
    let (output, _folder) = with_steps(&shop, top, "- GET: /", &["-q"]);
    assert_eq!(code(&output), 3, "{}", stderr(&output));
    assert!(stderr(&output).contains("js: Error: not ready (a.yaml:3:"), "{}", stderr(&output));
}

#[test]
fn the_answer_is_gone_with_a_request_that_has_none() {
    let shop = shop();
    let steps = "- GET: /cart\n- GET: /stall\n  timeout: 200ms\n- js: vars.seen = res === undefined;\n- GET: /gone/${seen}";
    with_steps(&shop, "", steps, &["--once"]);
    assert_eq!(asked(&shop), ["GET /cart", "GET /stall", "GET /gone/true"]);
}

#[test]
fn a_process_that_drives_runs_them_too() {
    let shop = shop();
    let steps = "- GET: /cart\n- js: vars.n = res.json('items.#');\n- GET: /n/${n}";
    let (output, _folder) = with_steps(&shop, "", steps, &["-q", "--json", "--driver", "process"]);
    let asked = asked(&shop);
    assert!(asked.contains(&"GET /n/2".to_owned()), "{asked:?} {}{}", stdout(&output), stderr(&output));
}
