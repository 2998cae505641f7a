//! What `run --once -v` says of real services: what is missing, what is easily overlooked, what they say themselves.

use super::{assert_says, once, once_failed};

#[test]
fn a_variable_that_is_not_set_is_named_and_what_the_service_says_is_shown() {
    let told = once_failed(
        r#"
system: {url: "{shop}"}
sessions:
  buyer:
    steps:
      - GET: /items/1
        extract: {article: $.article}
      - DELETE: /items/${article}
      - POST: /items
        label: Half of it
        json: {name: lamp}
        check: {status: 201}
      - GET: /me
        auth: {bearer: not-the-right-one}
        check: {json: {$.name: ann}}
load: {users: 1, hold: 1s}
"#,
    );
    assert_says(
        &told,
        &[
            "extracted nothing for article ($.article)",
            "2. DELETE /items/${article}: not sent, FAILED",
            "variable \"article\" is not set",
            "3. Half of it: status 422 in ",
            "> {\"name\":\"lamp\"}",
            // FastAPI's own words
            "Field required",
            "FAILED check status: 201; saw status 422",
            "4. GET /me: status 401 in ",
            "4 requests: 3 failed",
        ],
    );
    assert!(!told.contains("not-the-right-one"), "{told}");
}

#[test]
fn what_was_sent_and_what_came_is_shown_as_it_was() {
    let told = once(
        r#"
system: {url: "{httpbin}"}
sessions:
  sender:
    steps:
      - POST: /anything/a%20b
        query: {q: "über & mehr"}
        form: {kind: "a=b", text: "ein wort"}
        extract: {q: $.args.q, kind: $.form.kind}
        check: {json: {$.form.text: ein wort, $.method: POST}}
load: {users: 1, hold: 1s}
"#,
    );
    assert_says(
        &told,
        &[
            "> POST /anything/a%20b?q=%C3%BCber%20%26%20mehr HTTP/1.1",
            "> Content-Type: application/x-www-form-urlencoded",
            "> kind=a%3Db&text=ein+wort",
            "< Server: gunicorn",
            "extracted q = über & mehr ($.args.q)",
            "extracted kind = a=b ($.form.kind)",
            "held check $.form.text: ein wort; saw \"ein wort\"",
            "variables q = über & mehr, kind = a=b",
            "1 request: all good",
        ],
    );
}
