//! Against grpc-python: what ghz, grpcurl and k6 make of its calls.

use std::fs;
use std::path::Path;

use super::{
    assert_all_good, assert_says, cart, filled, folder, loaded, measured, notes, of, once, once_failed,
    python, services,
};
use crate::program::{code, run, stderr, stdout};

#[test]
fn a_call_sends_a_message_and_looks_at_the_answer() {
    for types in ["", ", protos: '{cart.proto}'"] {
        let shown = once(&format!(
            r#"
system: {{url: "grpc://{{cart}}"{types}}}
sessions:
  buyer:
    steps:
      - set: {{amount: "${{40 + 2}}"}}
      - grpc: shop.Cart/Add
        message: {{name: ibm, amount: "${{amount}}", size: LARGE, picture: aGk=, marks: {{a: 1}}, at: "2025-01-02T03:04:05Z", cash: true}}
        metadata: {{user: "ann ${{amount}}"}}
        deadline: 5s
        extract: {{total: $.total, cost: {{header: cost}}, status: status}}
        check:
          status: OK
          metadata: {{cost: "42", served-by: cart}}
          json: {{$.total: "42", $.user: ann 42, $.item.size: LARGE, $.item.at: "2025-01-02T03:04:05Z", $.item.cash: true}}
          that: [cost == 42, "total == 42"]
      - grpc: shop.Cart/Add
        message: {{name: constant}}
        compress: true
        check: {{json: {{$.item.name: constant, $.total: "0"}}}}
load: {{users: 1, hold: 1s}}
"#
        ));
        assert_says(&shown, &["shop.Cart/Add", "user: ann 42", "\"total\":\"42\"", "status OK"]);
    }
}

#[test]
fn every_kind_of_streaming_works_in_one_step_and_step_by_step() {
    once(
        r#"
system: {url: "grpc://{cart}"}
sessions:
  streams:
    steps:
      - grpc: shop.Cart/Watch
        message: {count: 3}
        extract: {count: {count: "$[*]"}}
        check: {json: {"$[2].name": item 2}, that: count == 3}
      - grpc: shop.Cart/Watch
        message: {count: 0}
        check: {body: "[]"}
      - grpc: shop.Cart/Fill
        message: [{amount: 1}, {amount: 2}, {amount: 39}]
        check: {json: {$.total: "42"}}
      - grpc: shop.Cart/Chat
        message: [{text: a}, {text: b}]
        check: {json: {"$[0].text": a, "$[1].text": b}}
      - grpc open: shop.Cart/Chat
      - grpc send: {text: first}
      - grpc send: {text: second}
        expect: {json: {$.text: second}}
        extract: {said: $.text}
      - grpc send: {text: "${said} again"}
      - grpc expect: {json: {$.text: second again}}
      - grpc close: OK
      - grpc open: shop.Cart/Watch
      - grpc send: {count: 3}
      - grpc expect: any
      - grpc expect: {json: {$.name: item 2}}
      - grpc close: OK
      - grpc open: shop.Cart/Chat
      - grpc send: {text: stop}
      - grpc close: ABORTED
load: {users: 1, hold: 1s}
"#,
    );
}

#[test]
fn a_status_is_told_by_its_name_with_its_words() {
    let shown = once_failed(
        r#"
system: {url: "grpc://{cart}"}
sessions:
  one:
    steps:
      - grpc: shop.Cart/Fail
        message: {code: 5, words: "no such cart: 100% – sorry"}
load: {users: 1, hold: 1s}
"#,
    );
    assert_says(&shown, &["NOT_FOUND", "no such cart: 100% – sorry"]);
    let folder = folder(
        r#"
system: {url: "grpc://{cart}", protos: '{cart.proto}'}
sessions:
  one:
    steps:
      - grpc: shop.Cart/Fail
        message: {code: 14, words: over}
      - grpc: shop.Cart/Fail
        message: {code: 5}
        check: {status: [NOT_FOUND, UNAVAILABLE], metadata: {reason: wished}}
      - grpc: shop.Cart/Wait
        label: late
        message: {after: 1.5s}
        deadline: 100ms
        check: {status: DEADLINE_EXCEEDED}
load: {users: 1, hold: 1s}
limits: {sessions: 1}
"#,
    );
    let summary = measured(folder.path(), &["run", "s.yaml", "--out", "run"]);
    assert_eq!(summary["requests"], 3, "{summary}");
    let statuses = summary["statuses"].to_string();
    assert_says(&statuses, &["\"UNAVAILABLE\":1", "\"NOT_FOUND\":1", "\"DEADLINE_EXCEEDED\":1"]);
    assert_eq!(summary["failed"], 1);
    assert_eq!(of(&summary, "steps", "label", "late")["errors"].to_string(), "{}");
}

#[test]
fn what_reflection_does_not_have_is_told_with_its_line() {
    let folder = folder(
        r#"
system: {url: "grpc://{cart}"}
sessions:
  one:
    steps:
      - grpc: shop.Cart/Add
        message: {name: "a ${random(1, 9)}", size: LARG}
load: {users: 1, hold: 1s}
"#,
    );
    let output = run(folder.path(), &["run", "s.yaml", "--once"]);
    assert_eq!(code(&output), 2, "{}", stdout(&output));
    let words = "s.yaml:6: shop.Cart/Add: size of shop.Item takes shop.Size (SMALL, LARGE), not \"LARG\"; did you mean LARGE?";
    assert_says(&stderr(&output), &[words]);
}

#[test]
fn load_goes_over_few_connections_and_over_tls() {
    let summary = loaded(
        r#"
system: {url: "grpc://{cart}"}
sessions: {one: {steps: [{grpc: shop.Cart/Add, message: {amount: 1}}]}}
load: {users: 20, hold: 2s}
limits: {connections: 2, streams: 10}
"#,
    );
    assert_eq!(summary["statuses"].as_object().map(|all| all.len()), Some(1), "{}", summary["statuses"]);
    loaded(
        r#"
system: {url: "grpcs://{secure cart}", tls: {ca: "{cart's certificate}"}}
sessions: {one: {steps: [{grpc: shop.Cart/Add, message: {amount: 1}}]}}
load: {users: 2, hold: 1s}
"#,
    );
}

#[test]
fn hit_and_init_need_no_types() {
    let folder = tempfile::tempdir().unwrap();
    let url = filled("grpc://{cart}/shop.Cart/Add");
    let body = r#"{"name": "${no hole}", "amount": 3}"#;
    let summary = measured(folder.path(), &["hit", &url, "-b", body, "-n", "20", "-H", "user: ann"]);
    assert_all_good(&summary);
    assert_eq!(summary["statuses"].to_string(), r#"{"OK":20}"#);
    let proto = filled("{cart.proto}");
    let expecting = ["hit", &filled("grpc://{cart}/shop.Cart/Fail"), "-b", r#"{"code": 5}"#, "-n", "5"];
    let expecting = [&expecting[..], &["--expect", "5", "--proto", &proto]].concat();
    assert_all_good(&measured(folder.path(), &expecting));
    let wrong = |arguments: &[&str]| {
        let output = run(folder.path(), arguments);
        assert_eq!(code(&output), 2, "{}", stdout(&output));
        stderr(&output)
    };
    let text = wrong(&["hit", &url, "--proto", &proto, "-b", r#"{"nmae": 1}"#]);
    assert_says(&text, &["no field nmae; did you mean name?"]);
    let methods = "Add, Watch, Fill, Chat, Fail, Wait";
    let text = wrong(&["hit", &filled("grpc://{cart}/shop.Cart/Ad")]);
    assert_says(&text, &[&format!("(it has {methods}); did you mean Add?")]);
    let text = wrong(&["hit", &filled("grpc://{cart}/shop.Cart")]);
    assert_says(&text, &["shop.Cart is a service", methods]);
    assert_says(
        &wrong(&["hit", &filled("grpc://{cart}/shop.Card/Add")]),
        &["(there is ", "did you mean shop.Cart?"],
    );
    assert_says(
        &wrong(&["hit", &filled("grpc://{cart}")]),
        &["needs a method", "the server has shop.Cart/Add, shop.Cart/Watch"],
    );
    assert_says(&wrong(&["hit", &url, "--expect", "NOT_FOND"]), &["did you mean NOT_FOUND?"]);
    let unreached = |url: &str, more: &[&str], words: &str| {
        let output = run(folder.path(), &[&["hit", &*filled(url)][..], more].concat());
        assert_eq!(code(&output), 1, "{}", stdout(&output));
        assert_says(&stderr(&output), &[words]);
    };
    unreached("grpc://{secure cart}/shop.Cart/Add", &[], "grpcs://");
    unreached("grpcs://{cart}/shop.Cart/Add", &["-k"], "is it grpc:// instead of grpcs://?");
    unreached(
        &format!("{}/shop.Cart/Add", filled("{httpbin}").replace("http:", "grpc:")),
        &[],
        "is it REST?",
    );
    let text = wrong(&["hit", &url, "-H", "user: ann\r\nrole: admin"]);
    assert_says(&text, &["the metadata \"user\" cannot be sent: its value may have printable characters"]);
    assert_says(&wrong(&["hit", &url, "-H", "trace-bin: a b"]), &["a name that ends with -bin is base64"]);
    assert_says(&wrong(&["hit", &url, "-H", ":path: /"]), &["is not metadata"]);

    let output = run(folder.path(), &["init", &filled("grpc://{cart}"), "-o", "made.yaml"]);
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    let text = fs::read_to_string(folder.path().join("made.yaml")).unwrap();
    assert_says(&text, &["- grpc: shop.Cart/Add", "# - grpc: shop.Cart/Watch", "size: SMALL"]);
    let output = run(folder.path(), &["run", "made.yaml", "--once"]);
    assert_eq!(code(&output), 0, "{}{}", stdout(&output), stderr(&output));
}

#[test]
fn a_command_is_ready_once_its_health_check_says_so() {
    assert!(
        cart().url.starts_with("http://"),
        "whoever is asked for it says so here where it is not installed"
    );
    let (python, serve) = (python().join("python"), services().join("cart.py"));
    for (service, types) in [("shop.Cart", ""), ("''", ", protos: '{cart.proto}'")] {
        once(&format!(
            r#"
system: {{command: ["{}", "{}", "{{port}}"], ready: {{grpc: {service}}}{types}}}
sessions:
  one:
    steps:
      - grpc: shop.Cart/Add
        message: {{amount: 2}}
        check: {{json: {{$.total: "2"}}}}
load: {{users: 1, hold: 1s}}
"#,
            python.display(),
            serve.display()
        ));
    }
    let folder = folder(&format!(
        r#"
system: {{command: ["{}", "{}", "{{port}}"], ready: {{grpc: shop.Card}}, ready within: 2s}}
sessions: {{one: {{steps: [{{grpc: shop.Cart/Add}}]}}}}
load: {{users: 1, hold: 1s}}
"#,
        python.display(),
        serve.display()
    ));
    let output = run(folder.path(), &["run", "s.yaml", "--once"]);
    assert_says(&stderr(&output), &["its health check says NOT_FOUND", "`ready: {grpc: …}`"]);
    // one without a health check is not waited for
    let text = fs::read_to_string(folder.path().join("s.yaml")).unwrap();
    let text = text.replace("ready within: 2s", "ready within: 50s, env: {NO_HEALTH: '1'}");
    fs::write(folder.path().join("s.yaml"), text).unwrap();
    let output = run(folder.path(), &["run", "s.yaml", "--once"]);
    assert_says(&stderr(&output), &["cannot become ready: it has no health check", "`ready: {log: …}`"]);
}

#[test]
fn the_page_of_grpc_begins_with_what_works() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/grpc.md");
    let page = fs::read_to_string(page).unwrap();
    let first = page.split("```yaml\n").nth(1).unwrap().split("```").next().unwrap();
    once(&first.replace("127.0.0.1:50051", "{cart}").replace("cart.proto", "{cart.proto}"));
}

/// The real k6 prints the same of this script.
#[test]
fn a_script_of_k6_calls_as_k6_does() {
    let folder = tempfile::tempdir().unwrap();
    let script = services().join("../../crates/tidemark/tests/services/grpc.js");
    fs::copy(script, folder.path().join("grpc.js")).unwrap();
    // a file that imports another by its place below a third folder
    let shop = folder.path().join("protos/shop");
    fs::create_dir_all(&shop).unwrap();
    let types = fs::read_to_string(services().join("cart.proto")).unwrap();
    let (service, messages) = types.split_at(types.find("enum Size").unwrap());
    let head = "syntax = \"proto3\";\npackage shop;\n";
    let imports = "import \"google/protobuf/duration.proto\";\nimport \"google/protobuf/timestamp.proto\";\n";
    let own = service.replace("package shop;", "package shop;\nimport \"shop/messages.proto\";");
    fs::write(shop.join("cart.proto"), own).unwrap();
    fs::write(shop.join("messages.proto"), format!("{head}{imports}{messages}")).unwrap();
    let cart = format!("CART={}", filled("{cart}"));
    let output = run(folder.path(), &["run", "grpc.js", "-e", &cart]);
    let shown = format!("{}{}", stdout(&output), stderr(&output));
    let told: Vec<serde_json::Value> = shown
        .lines()
        .filter_map(|line| serde_json::from_str(line.get(line.find("{\"what")?..)?).ok())
        .collect();
    let wanted = [
        serde_json::json!({
            "what": "add", "status": 0, "error": null, "type": ["application/grpc"], "servedBy": ["cart"], "place": ["before"],
            "trailers": {"cost": ["42"], "place": ["after"]},
            "message": {"user": "ann", "leftS": 0, "total": "42", "item": {
                "at": "2025-01-02T03:04:05Z", "cash": true, "name": "lamp", "amount": "42", "size": "LARGE", "picture": "aGk=",
                "marks": {"a": 1},
            }},
        }),
        serde_json::json!({
            "what": "fail", "status": 5, "message": null, "trailers": {"content-type": ["application/grpc"], "reason": ["wished"]},
            "error": {"code": 5, "message": "no such cart: 100% – sorry", "details": []},
        }),
        serde_json::json!({
            "what": "late", "status": 4, "message": null, "trailers": {}, "error": {"code": 4, "message": "", "details": []},
        }),
        serde_json::json!({"what": "health", "status": 1, "serves": true}),
        serde_json::json!({
            "what": "metadata", "reserved": null,
            "text": {"code": 13, "message": "header key \"user\" contains value with non-printable ASCII characters", "details": []},
            "name": {"code": 13, "message": "header key \"a b\" contains illegal characters not in [0-9a-z-_.]", "details": []},
        }),
        serde_json::json!({"what": "nobody", "threw": true}),
    ];
    assert_eq!(told, wanted, "{shown}");
    assert_says(&shown, &["shop.Cart/Fail", "grpc_req_duration"]);
}

/// The real k6 prints the same of this script, in some order.
#[test]
fn a_script_of_k6_streams_as_k6_does() {
    let folder = tempfile::tempdir().unwrap();
    fs::copy(
        services().join("../../crates/tidemark/tests/services/streams.js"),
        folder.path().join("streams.js"),
    )
    .unwrap();
    let types = fs::read_to_string(services().join("cart.proto")).unwrap();
    fs::write(folder.path().join("cart.proto"), &types).unwrap();
    fs::write(folder.path().join("other.proto"), types.replace("string text = 1;", "string words = 1;"))
        .unwrap();
    let cart = format!("CART={}", filled("{cart}"));
    let output = run(folder.path(), &["run", "streams.js", "-e", &cart]);
    let shown = format!("{}{}", stdout(&output), stderr(&output));
    let mut told: Vec<serde_json::Value> = shown
        .lines()
        .filter_map(|line| serde_json::from_str(line.get(line.find("{\"what")?..)?).ok())
        .collect();
    told.sort_by_key(|json| json["what"].to_string());
    let stopped = serde_json::json!({"code": 10, "message": "stopped: 100%, as wished – good bye"});
    let late = serde_json::json!({"code": 4, "message": "context deadline exceeded"});
    let wanted = [
        serde_json::json!({"what": "chat", "said": ["a", "aa", "aaa"]}),
        serde_json::json!({"what": "fill", "said": ["42"]}),
        serde_json::json!({"what": "late", "said": [late]}),
        serde_json::json!({"what": "no method", "threw": true}),
        serde_json::json!({"what": "renamed", "said": ["c"]}),
        serde_json::json!({"what": "stops", "said": ["b", stopped]}),
        serde_json::json!({"what": "watch", "said": ["item 0", "item 1", "item 2"]}),
    ];
    assert_eq!(told, wanted, "{shown}");
    assert_says(&shown, &["fill", "shop.Cart/Chat", "grpc_streams: count==6", "ABORTED"]);
}

/// So many bytes of zeros in base64.
fn zeros(bytes: usize) -> String {
    let rest = ["", "AA==", "AAA="][bytes % 3];
    format!("{}{rest}", "AAAA".repeat(bytes / 3))
}

#[test]
fn the_cases_of_interoperability_pass() {
    interoperability("{cart}");
}

/// The official interoperability cases, by the names that gRPC gives them (docs/grpc.md lists them).
pub(super) fn interoperability(server: &str) {
    let (asked, answered) = (zeros(271_828), zeros(314_159));
    let inputs: Vec<String> =
        [27_182, 8, 1_828, 45_904].map(|size| format!("{{payload: {{body: {}}}}}", zeros(size))).into();
    let sizes = [31_415, 9, 2_653, 58_979];
    let wanted: Vec<String> = sizes.map(|size| format!("{{size: {size}}}")).into();
    let outputs: String =
        (0..).zip(sizes).map(|(at, size)| format!("\"$[{at}].payload.body\": {}, ", zeros(size))).collect();
    let ping_pong: String = sizes
        .into_iter()
        .zip(&inputs)
        .map(|(size, input)| {
            let input = input.trim_matches(['{', '}']);
            format!(
                "      - grpc send: {{response_parameters: [{{size: {size}}}], {input}}}}}\n        \
                 expect: {{json: {{$.payload.body: {}}}}}\n",
                zeros(size)
            )
        })
        .collect();
    let service = "grpc.testing.TestService";
    let folder = folder(&format!(
        r#"
system: {{url: "grpc://{server}", protos: '{}'}}
sessions:
  cases:
    steps:
      - {{grpc: {service}/EmptyCall, label: empty_unary, check: {{body: "{{}}"}}}}
      - grpc: {service}/UnaryCall
        label: large_unary
        message: {{response_size: 314159, payload: {{body: {asked}}}}}
        check: {{json: {{$.payload.body: {answered}}}}}
      - grpc: {service}/UnaryCall
        label: client_compressed_unary
        compress: true
        message: {{expect_compressed: {{value: true}}, response_size: 314159, payload: {{body: {asked}}}}}
        check: {{json: {{$.payload.body: {answered}}}}}
      - grpc: {service}/UnaryCall
        label: server_compressed_unary
        message: {{response_compressed: {{value: false}}, response_size: 314159, payload: {{body: {asked}}}}}
        check: {{json: {{$.payload.body: {answered}}}}}
      - grpc: {service}/StreamingInputCall
        label: client_streaming
        message: [{}]
        check: {{json: {{$.aggregatedPayloadSize: 74922}}}}
      - grpc: {service}/StreamingOutputCall
        label: server_streaming
        message: {{response_parameters: [{}]}}
        check: {{json: {{{outputs}}}}}
      - grpc: {service}/StreamingOutputCall
        label: server_compressed_streaming
        message: {{response_parameters: [{{size: 31415, compressed: {{value: true}}}}, {{size: 92653, compressed: {{value: false}}}}]}}
        check: {{json: {{"$[1].payload.body": {}}}}}
      - grpc open: {service}/FullDuplexCall
        label: ping_pong
{ping_pong}      - grpc close: OK
      - {{grpc open: {service}/FullDuplexCall, label: empty_stream}}
      - grpc close: OK
      - grpc: {service}/UnaryCall
        label: custom_metadata
        metadata: {{x-grpc-test-echo-initial: test_initial_metadata_value, x-grpc-test-echo-trailing-bin: q6urqw}}
        check: {{metadata: {{x-grpc-test-echo-initial: test_initial_metadata_value, x-grpc-test-echo-trailing-bin: q6urqw==}}}}
      - grpc: {service}/FullDuplexCall
        label: custom_metadata, streaming
        message: [{{response_parameters: [{{size: 1}}]}}]
        metadata: {{x-grpc-test-echo-initial: test_initial_metadata_value, x-grpc-test-echo-trailing-bin: CgsKCwoL}}
        check: {{metadata: {{x-grpc-test-echo-initial: test_initial_metadata_value, x-grpc-test-echo-trailing-bin: CgsKCwoL}}}}
      - grpc: {service}/UnaryCall
        label: status_code_and_message
        message: {{response_status: {{code: 2, message: test status message}}}}
        check: {{status: UNKNOWN, metadata: {{grpc-message: test status message}}}}
      - grpc: {service}/FullDuplexCall
        label: status_code_and_message, streaming
        message: [{{response_status: {{code: 2, message: test status message}}}}]
        check: {{status: UNKNOWN, metadata: {{grpc-message: test status message}}}}
      - grpc: {service}/UnaryCall
        label: special_status_message
        message: {{response_status: {{code: 2, message: "\t\ntest with whitespace\r\nand Unicode BMP ☺ and non-BMP 😈\t\n"}}}}
        check:
          status: UNKNOWN
          metadata:
            grpc-message: "%09%0Atest with whitespace%0D%0Aand Unicode BMP %E2%98%BA and non-BMP %F0%9F%98%88%09%0A"
      - {{grpc: {service}/UnimplementedCall, label: unimplemented_method, check: {{status: UNIMPLEMENTED}}}}
      - {{grpc: grpc.testing.UnimplementedService/UnimplementedCall, label: unimplemented_service, check: {{status: UNIMPLEMENTED}}}}
      - grpc: {service}/FullDuplexCall
        label: timeout_on_sleeping_server
        message: [{{response_parameters: [{{size: 31415, interval_us: 500000}}]}}]
        deadline: 1ms
        check: {{status: DEADLINE_EXCEEDED}}
      - {{grpc open: {service}/FullDuplexCall, label: cancel_after_first_response}}
      - grpc send: {{response_parameters: [{{size: 31415}}]}}
        expect: any
load: {{users: 1, hold: 10s}}
limits: {{sessions: 3}}
"#,
        services().join("interop.proto").display(),
        inputs.join(", "),
        wanted.join(", "),
        zeros(92_653),
    ));
    let summary = measured(folder.path(), &["run", "s.yaml", "--out", "run"]);
    assert_all_good(&summary);
    let notes = notes(&summary);
    assert!(notes.contains("3 streams of gRPC were still open when their session ended"), "{notes}");
}
