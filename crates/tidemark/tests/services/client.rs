//! A client like a browser's: several hosts, redirects, encodings, cookies, authentication, signatures; where time goes.

use super::{account, assert_says, folder, loaded, notes, of, once, once_failed};
use crate::program::{code, stderr, stdout, tidemark};

#[test]
fn one_scenario_goes_to_several_hosts_and_the_report_has_them_apart() {
    let summary = loaded(
        r#"
system: {url: "{httpbin}"}
targets: {pages: {url: "{nginx}"}}
sessions:
  visitor:
    steps:
      - GET: /get
        label: Get
      - GET: /words.txt
        at: pages
        label: Words
      - GET: {account}/seen
        label: Seen
load: {users: 2, hold: 1s}
"#,
    );
    for (target, label) in [("system", "Get"), ("pages", "Words"), (account().url.as_str(), "Seen")] {
        let requests = of(&summary, "targets", "target", target)["requests"].as_u64();
        assert!(requests > Some(0), "{target}: {summary}");
        let step = of(&summary, "steps", "label", label);
        assert_eq!((step["requests"].as_u64(), step["target"].as_str()), (requests, Some(target)));
    }
}

#[test]
fn redirects_are_followed_by_the_rules_of_http_and_each_hop_is_counted() {
    let steps = r#"
system: {url: "{httpbin}"}
targets: {account: {url: "{account}"}}
sessions:
  visitor:
    steps:
      - GET: /relative-redirect/3
        label: Relative
        follow: 5
        check: {status: 200, json: {$.url: "{httpbin}/get"}}
      - GET: /absolute-redirect/2
        label: Absolute
        follow: 5
        check: {status: 200}
      - GET: /chain/4
        at: account
        label: Relative to the last
        follow: 4
        check: {body: {equals: the end}}
      - POST: /to?status=307&url=/seen
        at: account
        label: "307"
        follow: 1
        body: as it was
        check: {json: {$.method: POST, $.body: as it was}}
      - POST: /to?status=303&url=/seen
        at: account
        label: "303"
        follow: 1
        body: as it was
        check: {json: {$.method: GET, $.body: "", $.type: ""}}
      - POST: /to?status=302&url=/seen
        at: account
        label: "302"
        follow: 1
        body: as it was
        check: {json: {$.method: GET, $.body: ""}}
      - PUT: /to?status=301&url=/seen
        at: account
        label: "301"
        follow: 1
        body: as it was
        check: {json: {$.method: PUT, $.body: as it was}}
      - GET: {account}/to?status=302&url={httpbin}/headers
        label: To another host
        auth: {bearer: of-account-only}
        follow: 1
        check: {status: 200, body: {matches: '^[^~]*Host[^~]*$'}, that: "${not contains(all, 'of-account-only')}"}
        extract: {all: body}
"#;
    let summary = loaded(&format!("{steps}load: {{users: 1, hold: 1s}}\n"));
    let hops = notes(&summary);
    for label in
        ["Relative", "Absolute", "Relative to the last", "307", "303", "302", "301", "To another host"]
    {
        assert!(hops.contains(label), "{label}: {hops}");
    }

    let told = once_failed(
        r#"
system: {url: "{httpbin}"}
sessions:
  visitor:
    steps:
      - GET: /redirect/3
        follow: 2
      - GET: /redirect/1
      - GET: /redirect-to?url=beside/it
        extract: {beside: {header: location}}
      - GET: ${beside}
        check: {status: 404}
      - GET: /redirect-to?url=http://nowhere.test/
        follow: 1
load: {users: 1, hold: 1s}
"#,
    );
    assert_says(
        &told,
        &[
            "one redirect more than `follow: 2` allows",
            "redirected to /get, which nobody follows and no check forbids",
            "extracted beside = /beside/it",
            "> GET /beside/it HTTP/1.1",
            "nowhere.test",
        ],
    );
    assert_says(&told, &["5 requests: 2 failed"]);
}

#[test]
fn encoded_bodies_are_read_and_asked_for_only_where_the_scenario_does() {
    loaded(
        r#"
system: {url: "{httpbin}"}
targets: {account: {url: "{account}"}, shop: {url: "{shop}"}, pages: {url: "{nginx}"}}
sessions:
  visitor:
    steps:
      - GET: /gzip
        check: {header: {content-encoding: gzip}, json: {$.gzipped: true}}
      - GET: /deflate
        check: {header: {content-encoding: deflate}, json: {$.deflated: true}}
      - GET: /brotli
        check: {header: {content-encoding: br}, json: {$.brotli: true}}
      - GET: /items
        at: shop
        headers: {Accept-Encoding: zstd}
        check: {header: {content-encoding: zstd}, json: {"$[99].name": item 100}}
      - GET: /words.txt
        at: pages
        headers: {Accept-Encoding: gzip}
        extract: {words: body}
        check: {header: {content-encoding: gzip}, that: "${len(words) == 31893}"}
      - GET: /seen
        at: account
        check: {json: {$.encodings: ""}}
load: {users: 1, hold: 1s}
"#,
    );
    let told = once_failed(
        r#"
system: {url: "{account}"}
sessions:
  visitor:
    steps:
      - GET: /odd
        check: {body: {contains: hello}}
load: {users: 1, hold: 1s}
"#,
    );
    assert_says(&told, &["encoded with \"rot13\", which is not known here"]);
}

#[test]
fn cookies_go_where_and_as_long_as_they_are_meant_to() {
    let told = once(
        r#"
system: {url: "{account}"}
sessions:
  member:
    steps:
      - POST: /login
        form: {user: ann}
        follow: 1
        # this machine may have what is `secure`, as in browsers
        check: {json: {$.user: ann, $.cookies: [secret, seen, sid]}}
      - GET: /cookies
        check: {body: {equals: '{"seen":"yes","secret":"yes"}'}}
      - POST: /account/logout
        follow: 1
        check: {body: {equals: '{"seen":"yes","secret":"yes"}'}}
      - GET: /account/home
        check: {status: 401}
load: {users: 1, hold: 1s}
"#,
    );
    assert_says(&told, &["> Cookie: sid=***; seen=***; secret=***", "> Cookie: seen=***; secret=***"]);
    loaded(
        r#"
system: {url: "{httpbin}"}
sessions:
  visitor:
    steps:
      - GET: /cookies/set?fruit=plum&root=beet
        follow: 1
        check: {json: {$.cookies.fruit: plum, $.cookies.root: beet}}
      - GET: /cookies/delete?fruit
        follow: 1
        check: {body: {matches: '^[^~]*root[^~]*$'}}
        extract: {gone: $.cookies.fruit}
      - GET: /response-headers?Set-Cookie=short%3D1%3B%20Max-Age%3D0
      - GET: /cookies
        extract: {short: $.cookies.short}
        check: {that: "${not exists(gone) and not exists(short)}"}
load: {users: 1, hold: 1s}
"#,
    );
}

#[test]
fn requests_are_authenticated_and_signed_as_services_ask_for_it() {
    let text = r#"
system: {url: "{httpbin}"}
targets: {account: {url: "{account}"}, shop: {url: "{shop}"}}
settings: {hook_key: a key of this test}
sessions:
  caller:
    steps:
      - GET: /basic-auth/ann/plum
        auth: {basic: {user: ann, password: plum}}
        check: {json: {$.user: ann}}
      - GET: /hidden-basic-auth/ann/plum
        auth: {basic: {user: ann, password: pear}}
        check: {status: 404}
      - GET: /bearer
        auth: {bearer: for-this-test-only}
        check: {json: {$.authenticated: true}}
      - POST: /login
        at: shop
        form: {username: ann, password: password of ann}
        extract: {token: $.access_token}
      - GET: /me
        at: shop
        auth: {bearer: "${token}"}
        check: {json: {$.name: ann}}
      - set: {event: '{"paid": "${uuid()}"}'}
      - POST: /hook
        at: account
        headers: {X-Hub-Signature-256: "sha256=${hmac(hook_key, event)}", Content-Type: application/json}
        body: ${event}
        check: {status: 204}
      - set: {date: "${now()}", content: some content}
      - PUT: /signed/a?x=1
        at: account
        headers:
          X-Date: ${date}
          Authorization: "HMAC ${hmac(hook_key, concat('PUT\n/signed/a?x=1\n', date, '\n', sha256(content)), 'base64')}"
        body: ${content}
        check: {status: 200}
      - set: {claims: "${concat(base64url('{\"alg\":\"HS256\"}'), '.', base64url(concat('{\"sub\":\"ann\",\"exp\":', now(), '}')))}"}
      - GET: /token
        at: account
        auth: {bearer: "${concat(claims, '.', hmac(hook_key, claims, 'base64url'))}"}
        check: {json: {$.sub: ann}}
load: {users: 2, hold: 1s}
"#;
    loaded(text);
    let told = once(text);
    for secret in ["plum:", "YW5uOnBsdW0", "for-this-test-only", "password of ann", "a key of this test"] {
        assert!(!told.contains(secret), "{secret} in\n{told}");
    }
}

#[test]
fn where_the_time_went_is_told_by_label() {
    let summary = loaded(
        r#"
system: {url: "{secure}", tls: {ca: "{certificate}"}}
targets: {drops: {url: "{httpbin}"}}
sessions:
  visitor:
    steps:
      - GET: /words.txt
        label: Words
      - GET: /drip?duration=0.2&numbytes=4&delay=0.1
        at: drops
        label: Drip
load: {users: 1, hold: 2s}
limits: {keep alive: false}
"#,
    );
    let of_part = |label: &str, part: &str, figure: &str| {
        of(&summary, "steps", "label", label)["parts"][part]["times_us"][figure].as_u64().unwrap_or_default()
    };
    let part = |label: &str, part: &str| of_part(label, part, "min");
    assert!(part("Words", "connect") > 0 && part("Words", "handshake") > 0, "{}", summary["steps"]);
    // it sleeps for 0.1 s before the first byte, and three or four times for 0.05 s behind it
    assert!(part("Drip", "first_byte") >= 90_000, "{}", summary["steps"]);
    // the longest, as a driver that reads the first byte late sees a shorter one
    assert!(of_part("Drip", "transfer", "max") >= 140_000, "{}", summary["steps"]);
    assert_eq!(part("Drip", "handshake"), 0, "{}", summary["steps"]);
    // not always the first: on a machine that stands still another is as slow
    let slowest = of(&summary, "slowest", "label", "Drip");
    assert_eq!(slowest["status"], 200, "{slowest}");
}

#[test]
fn values_are_encoded_taken_from_the_environment_and_sent_where_an_answer_says() {
    let folder = folder(
        r#"
system: {url: "{httpbin}"}
settings: {word: "über & 50%/mehr?"}
sessions:
  visitor:
    steps:
      - POST: /anything/encoded
        headers: {Content-Type: application/x-www-form-urlencoded}
        body: "q=${url_encode(word)}&fixed=1"
        check: {json: {$.form.q: "${word}", $.form.fixed: "1"}}
      - POST: /anything/sent
        json: {who: '${env("WHO_BUYS", "nobody")}'}
        headers: {X-Who: '${env("WHO_BUYS", "nobody")}', X-Where: '${env("NOBODY_SETS_THIS", "here")}'}
        check: {json: {$.json.who: ann, $.headers.X-Who: ann, $.headers.X-Where: here}}
      - GET: /redirect-to?url={httpbin}/anything/there%3Fa%3D1
        check: {status: 302}
        extract: {place: {header: location}}
      - GET: ${place}
        check: {json: {$.args.a: "1", $.method: GET}}
load: {users: 1, hold: 1s}
"#,
    );
    let mut command = tidemark(folder.path(), &["run", "s.yaml", "--once", "-v"]);
    let output = command.env("WHO_BUYS", "ann").output().unwrap();
    assert_eq!(code(&output), 0, "{}{}", stdout(&output), stderr(&output));
    assert_says(
        &stdout(&output),
        &[
            "> q=%C3%BCber%20%26%2050%25%2Fmehr%3F&fixed=1",
            "> GET /anything/there?a=1 HTTP/1.1",
            "4 requests: all good",
        ],
    );
}
