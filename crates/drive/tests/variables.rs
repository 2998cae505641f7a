//! Requests that need what is not there, extractions that find nothing, and checks that say what they saw.

use crate::support::{Next, Server, Sum, answer, begin, finish, options, told, with_steps};
use tidemark_record::NotFound;
use tidemark_record::ledger::Part;
use tidemark_record::{Counter, Outcome};

/// So many sessions of these steps, or users for so long.
fn run(server: &Server, steps: &str, load: &str) -> Sum {
    let plan = with_steps(steps, &format!("load: {{users: 2, {load}}}"));
    finish(begin(plan, options(server.address, 1)))
}

fn ten(server: &Server, steps: &str) -> Sum {
    run(server, steps, "hold: 60s}\nlimits: {sessions: 10")
}

/// Answers every request with this body; a request for something below `/items` must never come.
fn telling(body: &'static str) -> Server {
    Server::start(move |request, stream| {
        assert!(!request.target().starts_with("/items"), "{}", request.target());
        answer(stream, "200 OK", "X-Kind: lamp\r\n", body)
    })
}

#[test]
fn a_request_whose_variable_is_not_set_is_not_sent() {
    let server = telling("{\"other\": 7}");
    let steps = "- GET: /first\n  extract: {id: $.id}\n- GET: \"/items/${id}\"\n  label: Item\n\
                 - POST: /items\n  label: Body\n  json: {deep: [\"${concat('a', id)}\"]}\n- GET: /last";
    let sum = ten(&server, steps);
    let (well, unsent) = (sum.outcome(Outcome::Ok), sum.outcome(Outcome::Variable));
    assert_eq!((well, unsent, sum.ended()), (20, 20, 40), "{:?}", sum.examples());
    assert_eq!(server.requests(), 20, "the session goes on");
    assert_eq!(told(&sum), ["variable \"id\" is not set"]);
    let sent: u64 = sum.intervals.iter().flat_map(|i| &i.series).map(|s| s.service_time_us.len()).sum();
    assert_eq!(sent, 20);
    let told = NotFound { label: "GET /first".into(), variable: "id".into(), answers: 10, found: 0 };
    assert_eq!(sum.end.not_found, [told]);
}

#[test]
fn a_request_whose_expression_fails_is_not_sent() {
    let server = telling("{}");
    let steps = "- set: {n: 0, word: lamp}\n- GET: \"/items/${1 / n}\"\n  label: Share\n\
                 - GET: /first\n  headers: {X-Next: \"${word + 1}\"}";
    let sum = ten(&server, steps);
    assert_eq!((sum.outcome(Outcome::Variable), sum.ended()), (20, 20));
    let mut told = told(&sum);
    told.sort_unstable();
    told.dedup();
    assert_eq!(told, ["1 / n: division by zero", "word + 1: something in it is not a number"]);
    assert_eq!(server.requests(), 0);
}

#[test]
fn a_repeat_whose_count_is_none_fails_and_is_no_request() {
    let server = telling("{\"few\": -3, \"two\": \"2\", \"word\": \"lamp\"}");
    let steps = |count: &str| {
        format!(
            "- GET: /first\n  extract:\n    few: $.few\n    two: $.two\n    word: $.word\n    none: {{json: $.none, when missing: clear}}\n\
             - repeat: {count}\n  steps:\n    - GET: /again\n    - GET: /more\n- GET: /last"
        )
    };
    for (count, again, refused) in [
        ("\"${two}\"", 20, 0),
        ("\"${two - 2}\"", 0, 0),
        ("\"${none}\"", 0, 0),
        ("\"${few}\"", 0, 10),
        ("\"${two - 5}\"", 0, 10),
        ("\"${word}\"", 0, 10),
    ] {
        let before = server.requests() as u64;
        let sum = ten(&server, &steps(count));
        // labels are in the order of the steps
        assert_eq!(sum.of(1, Outcome::Ok), again, "{count}: {:?}", sum.examples());
        assert_eq!(sum.failed_steps(), refused, "{count}: one failure each: {:?}", sum.examples());
        assert_eq!(
            (sum.outcome(Outcome::Variable), sum.ended()),
            (0, sum.offered()),
            "{count}: none was due"
        );
        assert_eq!(sum.offered(), server.requests() as u64 - before, "{count}");
        assert_eq!(sum.of(3, Outcome::Ok), 10, "{count}: the session goes on");
        if refused > 0 {
            assert!(told(&sum)[0].ends_with("a repeat needs a whole number, not below 0"), "{count}");
        }
    }
}

#[test]
fn a_set_step_whose_value_is_too_long_fails_though_nobody_asks_for_it() {
    let server = telling("{}");
    // 64 KiB, five times eightfold
    let longer = "- set: {a: \"${concat(a, a, a, a, a, a, a, a)}\"}\n".repeat(5);
    let steps = format!("- set: {{a: \"${{random_text(65536)}}\"}}\n{longer}- GET: /first");
    let sum = run(&server, &steps, "hold: 60s}\nlimits: {sessions: 2");
    assert_eq!((sum.outcome(Outcome::Ok), sum.failed_steps()), (2, 2), "{:?}", sum.examples());
    assert_eq!(told(&sum), ["set a: concat(a, a, a, a, a, a, a, a): it is longer than 32 MiB"]);
}

/// What cannot be computed fails by itself: as many requests are offered as the server is asked.
#[test]
fn a_step_that_cannot_be_computed_fails_and_is_no_request() {
    let server = telling("{}");
    let steps = "- set: {n: 0, word: lamp}\n- set: {share: \"${1 / n}\"}\n- when: ${word + 1 > 2}\n  steps:\n    - GET: /never\n  \
                 else:\n    - GET: /else\n- GET: /last";
    let sum = ten(&server, steps);
    assert_eq!((sum.failed_steps(), sum.outcome(Outcome::Ok)), (20, 20), "{:?}", sum.examples());
    assert_eq!((sum.offered(), sum.ended(), server.requests()), (20, 20, 20));
    let mut told = told(&sum);
    told.sort_unstable();
    told.dedup();
    assert_eq!(
        told,
        ["set share: 1 / n: division by zero", "when: word + 1 > 2: something in it is not a number"]
    );
}

/// A second answer behind the first is nobody's: the next request goes over another connection.
#[test]
fn an_answer_that_nobody_asked_for_is_no_answer_to_the_next_request() {
    let server = Server::start(|request, stream| {
        let body = request.target();
        let answer = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len());
        crate::support::write(stream, &answer.repeat(2))
    });
    let steps =
        "- repeat: 5\n  as: i\n  steps:\n    - GET: /no/${i}\n      check: {body: {contains: '/no/${i}'}}";
    let sum = run(&server, steps, "hold: 60s}\nlimits: {sessions: 4");
    assert_eq!((sum.outcome(Outcome::Ok), sum.ended()), (20, 20), "{:?}", sum.examples());
    assert_eq!((sum.counted(Counter::Unsolicited), server.connections()), (20, 20));
}

#[test]
fn what_the_scenario_gives_a_default_is_sent() {
    let server = telling("{}");
    let steps = "- GET: /first\n  extract:\n    id: {json: $.id, when missing: clear}\n    no: {json: $.no, when missing: keep}\n\
                 - GET: \"/other/${default(id, 'none')}\"\n- POST: /other\n  json: {id: \"${default(no, missing)}\"}\n  \
                   check: {json: {$.nothing: {exists: true}}}";
    let sum = ten(&server, steps);
    assert_eq!((sum.outcome(Outcome::Ok), sum.outcome(Outcome::Check)), (20, 10), "{:?}", sum.examples());
    assert_eq!(sum.end.not_found, []);
}

/// A session that never sends anything must not keep the thread busy with nothing.
#[test]
fn users_who_send_nothing_begin_again_at_their_leisure() {
    let server = telling("{}");
    let sum =
        run(&server, "- set: {n: 0}\n- repeat: 3\n  steps:\n    - GET: \"/items/${1 / n}\"", "hold: 300ms");
    assert_eq!(sum.outcome(Outcome::Variable), sum.ended());
    assert!((6..=3_000).contains(&sum.ended()), "{}", sum.ended());
}

#[test]
fn what_was_never_sent_is_not_in_the_ledger() {
    let server = telling("{}");
    let write = |content: &str, query: &str| {
        format!(
            "- POST: /notes\n  ledger: {{content: \"{content}\", as: it}}\n  query: {{c: \"${{it}}\", d: \"{query}\"}}"
        )
    };
    let steps = [
        "- set: {gone: \"${missing}\"}".to_owned(),
        write("|${entry}|${check}|", "1"),
        write("${gone}|${entry}|${check}|", "2"),
        write("|${entry}|${check}|", "${gone}"),
        write("|${entry}|${check}|", "3"),
    ];
    let sum = ten(&server, &steps.join("\n"));
    assert_eq!((sum.outcome(Outcome::Ok), sum.outcome(Outcome::Variable)), (20, 20), "{:?}", sum.examples());
    let parts: Vec<&Part> = sum.intervals.iter().map(|interval| &interval.ledger).collect();
    let sent = parts.iter().map(|part| part.sent()).max();
    let acknowledged: u64 = parts.iter().map(|part| part.acknowledged()).sum();
    assert_eq!((sent, acknowledged), (Some(20), 20));
}

#[test]
fn a_failed_check_says_what_it_looked_at_and_what_was_there() {
    let server = telling("{\"count\": 3, \"state\": \"shut\"}");
    for (check, expected) in [
        ("json: {$.state: open}", "check $.state: expected open, got shut"),
        ("json: {$.state: {contains: pen}}", "check $.state: expected to contain pen, got shut"),
        ("json: {$.state: {matches: '^o'}}", "check $.state: expected to match ^o, got shut"),
        ("json: {$.day: {exists: true}}", "check $.day: expected anything, got nothing"),
        ("json: {$.count: \"${wanted}\"}", "check $.count: expected 5, got 3"),
        ("json: {$.count: \"${unset}\"}", "check $.count: variable \"unset\" is not set"),
        ("body: {contains: \"${unset}\"}", "check body: variable \"unset\" is not set"),
        ("header: {x-kind: desk}", "check header x-kind: expected desk, got lamp"),
        ("header: {x-none: desk}", "check header x-none: expected desk, got nothing"),
        ("body: {equals: full}", "check body: expected full, got {\"count\": 3, \"state\": \"shut\"}"),
        ("that: \"${count > wanted}\"", "check count > wanted: count is 3, wanted is 5"),
        ("that: \"${exists(unset)}\"", "check exists(unset): unset is not set"),
        ("status: [201, 3xx]", "check status: expected 201 or 300-399, got 200: {\"count\""),
    ] {
        let steps = format!(
            "- set: {{wanted: 5, unset: \"${{missing}}\"}}\n- GET: /a\n  extract: {{count: $.count}}\n  check: {{{check}}}"
        );
        let sum = ten(&server, &steps);
        assert_eq!(sum.outcome(Outcome::Ok), 0, "{check}");
        assert!(
            sum.examples().iter().all(|example| example.detail.starts_with(expected)),
            "{check}: {:?}",
            told(&sum)
        );
    }
    let long = Server::start(|_, stream| answer(stream, "200 OK", "", &"x".repeat(100_000)) as Next);
    let sum = ten(&long, &format!("- GET: /a\n  check: {{body: {}}}", "y".repeat(50_000)));
    assert!(sum.examples().iter().all(|example| example.detail.len() < 400), "{:?}", told(&sum));
}
