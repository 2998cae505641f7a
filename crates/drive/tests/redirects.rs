//! Redirects: followed where a step says so, by the rules of HTTP, and told where nobody does.

use std::net::TcpStream;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::support::{Next, Request, Server, Sum, answer, begin, finish, options, told};
use tidemark_drive::{Address, Target};
use tidemark_record::Outcome;

/// What a server was asked, each as method, target and the lines that matter.
type Asked = Arc<Mutex<Vec<String>>>;

/// Header lines that tests look at.
const TOLD: [&str; 5] = ["Authorization", "Cookie", "X-Id", "Content-Type", "X-Api-Key"];

fn asked_line(request: &Request) -> String {
    let line = request.head.lines().next().unwrap_or_default();
    let mut told = line.trim_end_matches(" HTTP/1.1").to_owned();
    for header in request.head.lines().filter(|line| TOLD.iter().any(|name| line.starts_with(name))) {
        told += &format!(" | {header}");
    }
    if !request.body.is_empty() {
        told += &format!(" | {}", String::from_utf8_lossy(&request.body));
    }
    told
}

fn serving(behave: impl Fn(&Request, &mut TcpStream) -> Next + Send + Sync + 'static) -> (Server, Asked) {
    let asked = Asked::default();
    let seen = asked.clone();
    let server = Server::start(move |request, stream| {
        seen.lock().unwrap().push(asked_line(request));
        behave(request, stream)
    });
    (server, asked)
}

/// Redirects what lies below `/NUMBER/` with that status to what follows it, and says hello otherwise.
fn redirecting(request: &Request, stream: &mut TcpStream) -> Next {
    let target = request.target().to_owned();
    let status = target[1..].split('/').next().and_then(|status| status.parse::<u16>().ok());
    match status {
        Some(status) => {
            let to = target[1..].split_once('/').map_or("", |(_, to)| to).replace("%3A", ":");
            let to = if to.contains("://") { to } else { format!("/{to}") };
            answer(
                stream,
                &format!("{status} Elsewhere"),
                &format!("Location: {to}\r\nSet-Cookie: at{status}=1; Path=/\r\n"),
                "gone",
            )
        }
        None => answer(stream, "200 OK", "", "{\"id\": 7}"),
    }
}

/// `sessions` of these steps by one user; the second target, if there is one, is `other.local`.
fn run(server: &Server, other: Option<&Server>, sessions: u64, steps: &str) -> Sum {
    let steps: String = steps.lines().map(|line| format!("      {line}\n")).collect();
    let targets = other.map_or("", |_| "targets: {other: {url: 'http://other.local'}}\n");
    let text = format!(
        "{targets}sessions:\n  a:\n    steps:\n{steps}load: {{users: 1, hold: 60s}}\nlimits: {{sessions: {sessions}}}\n"
    );
    let (plan, told) = tidemark_scenario::check_text("t.yaml", &text, Path::new("."), &[]);
    let plan = plan.unwrap_or_else(|| panic!("{told}"));
    let mut options = options(server.address, 1);
    if let Some(other) = other {
        let beside = Target { address: Address::Tcp(other.address), ..options.targets[0].clone() };
        options.targets.push(Target { authority: "other.local:80".into(), ..beside });
    }
    finish(begin(plan, options))
}

#[test]
fn a_step_with_its_hops_is_one_request() {
    let (server, asked) = serving(redirecting);
    let steps = "- GET: /303/302/home?q=1\n  label: Home\n  follow: 5\n  check: {status: 200, json: {$.id: \"7\"}}\n  \
                 extract: {id: $.id}\n- GET: /end/${id}";
    let sum = run(&server, None, 10, steps);
    assert_eq!((sum.ended(), sum.outcome(Outcome::Ok)), (20, 20), "{:?}", told(&sum));
    assert_eq!(sum.end.hops, [("Home".to_owned(), 20)]);
    assert_eq!(sum.end.unfollowed, []);
    assert_eq!((server.requests(), server.connections()), (40, 1));
    let first: Vec<String> = asked.lock().unwrap().iter().take(4).cloned().collect();
    let cookies = ["", " | Cookie: at303=1", " | Cookie: at303=1; at302=1"];
    assert_eq!(
        first,
        [
            format!("GET /303/302/home?q=1{}", cookies[0]),
            format!("GET /302/home?q=1{}", cookies[1]),
            format!("GET /home?q=1{}", cookies[2]),
            format!("GET /end/7{}", cookies[2]),
        ]
    );
    // an answer for each request, the last one
    let statuses: u64 =
        sum.intervals.iter().flat_map(|interval| &interval.statuses).map(|(_, count)| count).sum();
    assert_eq!(statuses, 20);
}

#[test]
fn the_status_says_what_becomes_of_method_and_body() {
    let (server, asked) = serving(redirecting);
    let with = " | X-Id: 1 | Content-Type: text/plain; charset=utf-8";
    for (method, status, stays) in [
        ("POST", 301, false),
        ("POST", 302, false),
        ("POST", 303, false),
        ("POST", 307, true),
        ("POST", 308, true),
        ("PUT", 301, true),
        ("PUT", 302, true),
        ("DELETE", 303, false),
    ] {
        asked.lock().unwrap().clear();
        let body = if method == "DELETE" { "" } else { "\n  body: hello" };
        let steps = format!("- {method}: /{status}/to\n  follow: 1\n  headers: {{X-Id: \"1\"}}{body}");
        let sum = run(&server, None, 1, &steps);
        assert_eq!(sum.outcome(Outcome::Ok), 1, "{:?}", told(&sum));
        let asked = asked.lock().unwrap();
        let wanted = match stays {
            true => format!("{method} /to{with} | Cookie: at{status}=1 | hello"),
            false => format!("GET /to | X-Id: 1 | Cookie: at{status}=1"),
        };
        assert_eq!(asked[1], wanted, "{method} {status}: {asked:?}");
    }
    // once a GET, always a GET
    asked.lock().unwrap().clear();
    run(&server, None, 1, "- POST: /303/307/to\n  follow: 2\n  body: hello");
    assert_eq!(asked.lock().unwrap()[2], "GET /to | Cookie: at303=1; at307=1");
}

#[test]
fn what_is_made_anew_each_time_stays_the_same_from_hop_to_hop() {
    let (server, asked) = serving(redirecting);
    let steps = "- POST: /307/308/to\n  follow: 2\n  headers: {X-Id: \"${uuid()}\"}\n  json: {n: \"${random(1, 1000000000)}\"}";
    let sum = run(&server, None, 3, steps);
    assert_eq!(sum.outcome(Outcome::Ok), 3, "{:?}", told(&sum));
    let asked = asked.lock().unwrap();
    let part = |line: &String, part: &str| {
        line.split(" | ").find(|found| found.starts_with(part)).unwrap_or_default().to_owned()
    };
    for three in asked.chunks(3) {
        for what in ["X-Id: ", "{\"n\":"] {
            assert!(!part(&three[0], what).is_empty(), "{three:?}");
            assert!(three.iter().all(|line| part(line, what) == part(&three[0], what)), "{three:?}");
        }
    }
    assert_ne!(part(&asked[0], "X-Id: "), part(&asked[3], "X-Id: "), "another request has another");
}

#[test]
fn hops_are_bounded_by_number_and_time() {
    let (server, _) = serving(|_, stream| answer(stream, "302 Again", "Location: /again\r\n", ""));
    let sum = run(&server, None, 5, "- GET: /again\n  follow: 3");
    assert_eq!((sum.ended(), sum.outcome(Outcome::Status)), (5, 5));
    assert_eq!(told(&sum), ["status 302: /again: one redirect more than `follow: 3` allows"]);
    assert_eq!((server.requests(), sum.end.hops.clone()), (20, vec![("GET /again".to_owned(), 15)]));
    let (server, _) = serving(|_, stream| {
        std::thread::sleep(Duration::from_millis(200));
        answer(stream, "302 Again", "Location: /again\r\n", "")
    });
    let sum = run(&server, None, 1, "- GET: /again\n  follow: 20\n  timeout: 500ms");
    assert_eq!(sum.outcome(Outcome::Timeout), 1, "{:?}", told(&sum));
}

#[test]
fn a_redirect_to_another_target_takes_no_secret_along() {
    let ((server, asked), (other, asked_other)) = (serving(redirecting), serving(redirecting));
    let steps = "- GET: /302/http%3A//other.local/302/http%3A//TEST.local%3A80/back\n  label: Round\n  follow: 5\n  \
                 headers: {X-Api-Key: mine, X-Id: \"1\"}\n  auth: {bearer: given-to-one}";
    let sum = run(&server, Some(&other), 2, steps);
    assert_eq!(sum.outcome(Outcome::Ok), 2, "{:?}", told(&sum));
    assert_eq!(sum.end.hops, [("Round".to_owned(), 4)]);
    let other = asked_other.lock().unwrap();
    assert_eq!(other[0], "GET /302/http://TEST.local:80/back | X-Id: 1");
    let own = " | X-Api-Key: mine | X-Id: 1 | Authorization: Bearer given-to-one";
    let asked = asked.lock().unwrap();
    assert!(asked[0].ends_with(own), "{asked:?}");
    assert_eq!(asked[1], format!("GET /back{own} | Cookie: at302=1"), "the other's cookie is its own");
}

#[test]
fn a_redirect_to_nobody_fails_and_says_where_it_leads() {
    let (server, _) = serving(redirecting);
    for (to, why) in [
        ("http%3A//evil.example/x", "this leads to a host that is no target of the scenario"),
        ("https%3A//test.local/x", "this leads to a host that is no target of the scenario"),
        ("ftp%3A//test.local/x", "it is no URL of HTTP"),
    ] {
        let sum = run(&server, None, 1, &format!("- GET: /302/{to}\n  follow: 5"));
        assert_eq!(sum.outcome(Outcome::Status), 1, "{:?}", told(&sum));
        assert!(told(&sum)[0].contains(why) && told(&sum)[0].contains(&to[..3]), "{:?}", told(&sum));
        assert_eq!(sum.end.hops, []);
    }
}

#[test]
fn a_redirect_without_a_place_is_the_last_answer() {
    let (server, _) = serving(|_, stream| answer(stream, "302 Elsewhere", "", ""));
    let sum = run(&server, None, 1, "- GET: /a\n  follow: 5\n  check: {status: 302}");
    assert_eq!(sum.outcome(Outcome::Ok), 1, "{:?}", told(&sum));
}

#[test]
fn redirects_that_nobody_follows_are_told_where_no_check_is_about_them() {
    let (server, _) = serving(redirecting);
    let steps = "- GET: /302/a\n  label: Silent\n- GET: /301/a\n  label: Checked\n  check: {status: 3xx}\n\
                 - GET: /304/a\n  label: Unchanged\n- GET: /a\n  label: Plain";
    let sum = run(&server, None, 4, steps);
    assert_eq!(sum.outcome(Outcome::Ok), 16, "{:?}", told(&sum));
    assert_eq!(sum.end.unfollowed, [("Silent".to_owned(), 4)]);
    assert_eq!(sum.end.hops, []);
}

#[test]
fn what_stands_behind_a_hash_is_not_sent() {
    let (server, asked) = serving(|_, stream| answer(stream, "200 OK", "", "/b?c=d#there"));
    let steps = "- GET: \"/a?b=c#top\"\n  label: A\n  query: {d: \"e#f\"}\n  extract: {found: body}\n\
                 - GET: \"${path(found)}\"\n  label: B\n- GET: \"/#${found}\"\n  label: C";
    let sum = run(&server, None, 1, steps);
    assert_eq!(sum.outcome(Outcome::Ok), 3, "{:?}", told(&sum));
    assert_eq!(*asked.lock().unwrap(), ["GET /a?b=c&d=e%23f", "GET /b?c=d", "GET /"]);
}

#[test]
fn a_location_is_a_path_of_a_later_step() {
    let (server, asked) = serving(|request, stream| match request.target() {
        "/orders/new?a" => answer(stream, "201 Created", "Location: ../items/7?v=1#top\r\n", ""),
        "/absolute" => answer(stream, "201 Created", "Location: http://Test.local/a/../b c\r\n", ""),
        "/foreign" => answer(stream, "201 Created", "Location: http://other.local/x\r\n", ""),
        "/path" => answer(stream, "201 Created", "Location: /p\r\n", ""),
        _ => answer(stream, "200 OK", "", "x"),
    });
    let mut steps = String::new();
    for (from, query) in
        [("/orders/new?a", ""), ("/absolute", "\n  query: {q: \"a b\"}"), ("/foreign", ""), ("/path", "")]
    {
        steps += &format!(
            "- GET: {from}\n  label: From\n  extract: {{location: {{header: location}}}}\n\
             - GET: ${{location}}\n  label: To{query}\n"
        );
    }
    steps += "- set: {word: nowhere}\n- GET: ${word}\n  label: Nowhere";
    let sum = run(&server, None, 1, &steps);
    assert_eq!((sum.outcome(Outcome::Ok), sum.outcome(Outcome::Variable)), (7, 2), "{:?}", told(&sum));
    let asked: Vec<String> = asked.lock().unwrap().iter().map(|line| line.replace("GET ", "")).collect();
    assert_eq!(
        asked,
        ["/orders/new?a", "/items/7?v=1", "/absolute", "/b%20c?q=a%20b", "/foreign", "/path", "/p"]
    );
    assert_eq!(
        told(&sum),
        [
            "location: it leads to another server than this step's; say `at` which target that is",
            "word: it is neither a path begun with a slash nor a URL of HTTP"
        ]
    );
}
