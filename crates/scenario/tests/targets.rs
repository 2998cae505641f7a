//! Where requests go: to the system, to a named target, to one that a URL names; and what is told of mistakes.

use crate::support;
use tidemark_scenario::plan::{Plan, RequestKind, SystemOrigin};
use tidemark_scenario::template::Part;

fn text(head: &str, steps: &str) -> String {
    support::scenario(&format!("{head}\n"), steps, "")
}

fn plan(head: &str, steps: &str) -> Plan {
    let (plan, told) = support::checked(&text(head, steps));
    assert_eq!(told.to_string(), "");
    plan.expect("it has no mistake")
}

/// Label and target of each request.
fn goes(plan: &Plan) -> Vec<(&str, &str)> {
    let names = plan.target_names();
    let name = |target: u16| match target {
        0 => "system",
        other => plan.targets[usize::from(other) - 1].name.as_str(),
    };
    assert_eq!(names.len(), plan.targets.len() + 1);
    plan.requests.iter().map(|one| (plan.labels[usize::from(one.label)].as_str(), name(one.target))).collect()
}

fn mistake(head: &str, steps: &str) -> String {
    let told = support::load(&text(head, steps)).expect_err("a mistake");
    let first = |item: &dyn ToString| item.to_string().lines().next().unwrap_or_default().to_owned();
    told.items().iter().map(|item| first(item)).collect::<Vec<_>>().join("\n")
}

const SYSTEM: &str = "system: {url: 'http://shop.test/v1'}";
const BESIDE: &str = "system: {url: 'http://shop.test/v1'}\ntargets: {cache: {url: 'redis://127.0.0.1'}, auth: {url: \
                      'https://auth.test:8443/base', tls: {insecure: true}}, db: {url: 'postgres://127.0.0.1'}}";

#[test]
fn a_step_goes_where_it_says_else_to_the_system_else_to_the_only_one_that_takes_it() {
    let steps = "- GET: /a\n- redis: [GET, k]\n- {GET: /a, at: auth}\n- {redis: [GET, k], at: cache}\n- sql: SELECT 1\n- {POST: /b, at: system, label: B}";
    let plan = plan(BESIDE, steps);
    let goes = goes(&plan);
    assert_eq!(
        goes,
        [
            ("GET /a", "system"),
            ("GET", "cache"),
            ("auth GET /a", "auth"),
            ("cache GET", "cache"),
            ("SELECT", "db"),
            ("B", "system")
        ]
    );
    assert!(plan.targets[1].at.tls.insecure);
    assert_eq!(plan.targets_of_labels(), [0, 1, 2, 1, 3, 0]);
    let of_cache: Vec<_> = plan.requests_to(1).collect();
    assert!(of_cache.len() == 2 && matches!(of_cache[0].ask, RequestKind::Redis(_)));
}

#[test]
fn a_store_of_the_run_is_a_target_of_its_protocol() {
    let head = "system: {url: 'http://h'}\nstores: {redis: {}, more: {product: memcached}}\ntargets: {fast: {store: redis}, other: {store: more}}";
    let plan = plan(head, "- redis: [GET, k]\n- memcached: [get, k]\n- GET: /");
    assert_eq!(goes(&plan), [("GET", "fast"), ("get", "other"), ("GET /", "system")]);
    assert!(matches!(&plan.targets[0].at.origin, SystemOrigin::Url(url) if url == "{stores.redis.url}"));
}

#[test]
fn absolute_urls_are_targets_of_their_own_one_for_each_origin() {
    let steps = "- set: {id: \"${random(1, 9)}\"}\n- GET: http://other.test/x${id}\n- POST: https://OTHER.test:443/y\n- GET: \
                 http://other.test:80\n- GET: http://shop.test/v1/c?d=${id}\n- GET: https://auth.test:8443/base/in";
    let head = "system: {url: 'http://shop.test/v1'}\ntargets: {auth: {url: 'https://auth.test:8443/base'}}";
    let plan = plan(head, steps);
    let targets: Vec<&str> = goes(&plan).iter().map(|(_, target)| *target).collect();
    assert_eq!(
        targets,
        ["http://other.test", "https://OTHER.test:443", "http://other.test", "system", "auth"]
    );
    assert_eq!(plan.requests[2].http().and_then(|http| http.target.as_literal()), Some(&b"/"[..]));
    assert_eq!(plan.requests[4].http().and_then(|http| http.target.as_literal()), Some(&b"/in"[..]));
    let of_system = plan.requests[3].http().and_then(|http| http.target.parts.first());
    assert!(
        matches!(of_system, Some(Part::Literal(path)) if path.starts_with(b"/c?d=")),
        "without what the system's paths begin with: {of_system:?}"
    );
    assert!(plan.targets[2].at.ready_within.as_secs() > 0);
}

#[test]
fn a_setting_may_be_the_host_and_a_variable_may_not() {
    let head = "settings: {api: 'http://api.test:81'}\nsystem: {url: 'http://h'}";
    assert_eq!(goes(&plan(head, "- GET: ${api}/x"))[0].1, "http://api.test:81");
    let steps = "- set: {host: a}\n- GET: http://${host}/x";
    let told = mistake(SYSTEM, steps);
    assert!(told.starts_with("t.yaml:6:14:") && told.contains("no variable stands in them"), "{told}");
    assert!(told.contains("name each host under `targets`"), "{told}");
}

#[test]
fn what_is_about_a_websocket_goes_where_it_was_opened_and_others_go_on_beside_it() {
    let head = "system: {url: 'http://h'}\ntargets: {chat: {url: 'ws://chat.test'}}";
    let plan = plan(head, "- {ws connect: /c, at: chat}\n- ws send: hi\n- GET: /a\n- ws close: 1000");
    let targets: Vec<&str> = goes(&plan).iter().map(|(_, target)| *target).collect();
    assert_eq!(targets, ["chat", "chat", "system", "chat"]);
    let told = mistake(head, "- {ws connect: /c, at: chat}\n- {GET: /a, at: chat}");
    assert!(told.contains("connection is a WebSocket here"), "{told}");
}

#[test]
fn mistakes_say_what_to_do() {
    let two = "system: {url: 'http://h'}\ntargets: {one: {url: 'redis://a'}, two: {url: 'redis://b'}}";
    for (head, steps, wanted) in [
        (BESIDE, "- {redis: [GET, k], at: queue}", "there is no target \"queue\"; there is cache, auth, db"),
        (SYSTEM, "- {GET: /, at: cache}", "there is no target \"cache\"; say under `targets` where it is"),
        (BESIDE, "- {redis: [GET, k], at: cach}", "there is no target \"cach\"; did you mean cache"),
        (BESIDE, "- {GET: /, at: cache}", "\"cache\" is a server of Redis, which takes no requests of HTTP"),
        (
            BESIDE,
            "- {redis: [GET, k], at: auth}",
            "\"auth\" is a server of HTTP, which takes no commands of Redis",
        ),
        (two, "- redis: [GET, k]", "several targets take commands of Redis: one, two; say which with `at`"),
        (BESIDE, "- memcached: [get, k]", "beside another system, to one of `targets`"),
        (
            BESIDE,
            "- {GET: 'http://x.test/', at: auth}",
            "an absolute URL says where it goes; leave one of the two out",
        ),
        (BESIDE, "- GET: http://me:pw@x.test/", "who comes does not stand in it"),
        (BESIDE, "- GET: http://shop.test/v2/x", "all of whose paths begin with /v1"),
        (
            BESIDE,
            "- {GET: /, label: A}\n- {GET: /, label: A, at: auth}",
            "go to \"system\" and to \"auth\"; give each target",
        ),
        ("targets: {system: {url: 'http://h'}}", "- GET: /", "\"system\" is what stands under `system`"),
        ("targets: {a: {url: 'http://h', store: redis}}\nstores: {redis: {}}", "- GET: /", "not both"),
        ("targets: {a: {store: b}}", "- {GET: /, at: a}", "\"b\""),
        (
            BESIDE,
            "- CALL: a.b\n  at: auth\n- {GET: /, at: auth}",
            "calls and requests are not made over the same connections",
        ),
    ] {
        let told = mistake(head, steps);
        assert!(told.contains(wanted), "{wanted}\n{told}");
        assert_eq!(told.lines().count(), 1, "told once: {told}");
    }
    let entered =
        "- POST: /\n  at: auth\n  ledger: {content: \"${entry}${check}\", as: note}\n  body: ${note}";
    let verify = format!("{BESIDE}\nverify: {{contents: {{GET: /, items: '$[*]'}}}}");
    let told = mistake(&verify, entered);
    assert!(told.contains("looked for in \"system\", and this goes to \"auth\"; say with `at`"), "{told}");
}

#[test]
fn a_target_that_no_step_goes_to_is_a_warning() {
    let (plan, told) = support::checked(&text(BESIDE, "- redis: [GET, k]\n- sql: SELECT 1"));
    assert!(plan.is_some() && told.to_string().contains("no step goes to \"auth\""), "{told}");
}
