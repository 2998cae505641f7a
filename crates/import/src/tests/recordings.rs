//! Recordings of browsers.

use super::*;

#[test]
fn a_recording_is_bounded() {
    let entry = |number: usize| {
        json!({"request": {"method": "POST", "url": format!("http://h{}/{number}?{}", number % 90, "%00".repeat(2_000)),
            "headers": [{"name": "X-Long", "value": "é".repeat(900)}],
            "postData": {"mimeType": "text/plain", "text": "\u{1}".repeat(9_000)}}, "response": {"status": 200}})
    };
    let entries: Vec<Json> = (0..3_000).map(entry).collect();
    let recording = json!({"log": {"entries": entries}});
    let hosts: Vec<String> = (0..90).map(|number| format!("h{number}")).collect();
    let hosts: Vec<&str> = hosts.iter().map(String::as_str).collect();
    let text = checked(&har_of(&recording, &hosts).unwrap());
    assert!(text.contains("beyond 2000 requests or"), "{}", &text[..1_000]);
}

/// A page, the parts that it loads at once, and what is asked for when one of them is there.
#[test]
fn what_was_under_way_together_is_sent_together() {
    let entry = |ms: u64, took: u64, path: &str| {
        json!({"startedDateTime": format!("2026-01-01T00:00:{:02}.{:03}Z", ms / 1_000, ms % 1_000), "time": took,
            "response": {"status": 200}, "request": {"method": "GET", "url": format!("http://h{path}"),
                "headers": [{"name": "Accept", "value": "text/html"}]}})
    };
    let mut entries = vec![entry(0, 100, "/"), entry(110, 90, "/a.css"), entry(120, 300, "/b.js")];
    // the script is on its way still, and yet these came behind the style
    entries.extend([entry(210, 90, "/c"), entry(220, 500, "/d"), entry(1_720, 10, "/last")]);
    entries.extend((0..8).map(|nth| entry(2_000 + nth, 50, &format!("/{nth}"))));
    let text = checked(&har_of(&json!({"log": {"entries": entries}}), &[]).unwrap());
    let steps = "    steps:
      - GET: /
        check: {status: 200}
      - parallel:
          - GET: /a.css
            check: {status: 200}
          - GET: /b.js
            check: {status: 200}
      - parallel:
          - GET: /c
            check: {status: 200}
          - GET: /d
            check: {status: 200}
      - think: 1s
      - GET: /last
        check: {status: 200}
      - think: 270ms
      - parallel:
";
    assert!(text.contains(steps), "{text}");
    assert!(
        text.contains("          - GET: /7\n            check: {status: 200}\n        at most: 6\n"),
        "{text}"
    );
    assert!(text.contains("headers: {Accept: text/html}"), "{text}");
}

#[test]
fn what_only_seems_to_be_under_way_together_is_not() {
    let entry = |ms: u64, took: f64, path: &str, leads_to: &str| {
        let status = if leads_to.is_empty() { 200 } else { 302 };
        json!({"startedDateTime": format!("2026-01-01T00:00:00.{ms:03}Z"), "time": took,
            "response": {"status": status, "redirectURL": leads_to},
            "request": {"method": "GET", "url": format!("http://h{path}"), "headers": []}})
    };
    // the times of a recording are whole milliseconds; a redirect is followed once it is there
    let entries =
        [entry(0, 20.9, "/x", ""), entry(20, 10.0, "/login", "/home"), entry(25, 10.0, "/home", "")];
    let text = checked(&har_of(&json!({"log": {"entries": entries}}), &[]).unwrap());
    assert!(!text.contains("- parallel:") && text.contains("/home"), "{text}");
}

#[test]
fn many_hosts_are_counted() {
    let request = |host: usize| json!({"request": {"method": "GET", "url": format!("http://h{host}/")}});
    let entries: Vec<Json> = (0..20_000).map(request).collect();
    let text = checked(&har_of(&json!({"log": {"entries": entries}}), &["h0", "h19999"]).unwrap());
    assert!(text.contains("at: h19999") && text.contains("and 19978 more"), "{text}");
    assert!(text.len() < 10_000, "{}", text.len());
}

/// The line with the system's URL.
fn system_of(made: &Imported) -> String {
    let text = checked(made);
    let url =
        text.lines().skip_while(|line| !line.starts_with("system:")).find(|line| line.contains("url: "));
    url.unwrap_or_default().trim().trim_start_matches("url: ").to_owned()
}

#[test]
fn a_recording_is_of_its_page() {
    let get = |url: &str| entry_of("GET", url, 200, Json::Null);
    let document =
        |url: &str| entry_of("GET", url, 200, json!({"_resourceType": "document", "pageref": "page_1"}));
    let moved = |from: &str, to: &str| entry_of("GET", from, 301, json!({"response": {"redirectURL": to}}));
    let titled = |title: &str| json!([{"id": "page_1", "title": title}]);
    let ad = || get("https://ads.example/id");
    let many = || vec![ad(), ad(), ad(), get("https://shop.example/api")];
    let html = json!({"response": {"content": {"mimeType": "text/html; charset=utf-8"}}});
    let fetched =
        |wanted: &str| json!({"request": {"headers": [{"name": "Sec-Fetch-Dest", "value": wanted}]}});
    for (pages, begin, wanted) in [
        // Chrome: the title is the URL
        (
            titled("https://shop.example/#top"),
            vec![ad(), get("https://shop.example/")],
            "https://shop.example",
        ),
        (titled("https://shop.example/gone"), vec![ad()], "https://shop.example"),
        // Firefox and Safari: it is the page's
        (titled("The shop"), vec![ad(), document("https://shop.example/")], "https://shop.example"),
        (
            titled("The shop"),
            vec![
                entry_of("GET", "https://ads.example/frame", 200, fetched("iframe")),
                entry_of("GET", "https://shop.example/", 200, fetched("document")),
            ],
            "https://shop.example",
        ),
        // proxies: there are no pages
        (Json::Null, vec![ad(), entry_of("GET", "https://shop.example/", 200, html)], "https://shop.example"),
        (Json::Null, vec![get("https://shop.example/")], "https://ads.example"),
        // behind redirects
        (
            titled("http://apex.example/"),
            vec![
                moved("http://apex.example/", "https://apex.example/"),
                moved("https://apex.example/", "https://shop.example/"),
                get("https://shop.example/"),
            ],
            "https://shop.example",
        ),
        (
            json!([]),
            vec![
                entry_of(
                    "GET",
                    "https://apex.example/",
                    302,
                    json!({"response": {"headers": [{"name": "location", "value": "//shop.example/"}]}}),
                ),
                get("https://shop.example/"),
            ],
            "https://shop.example",
        ),
        // a login elsewhere is not the page
        (
            titled("https://shop.example/"),
            vec![
                moved("https://shop.example/", "https://login.example/"),
                get("https://login.example/"),
                get("https://shop.example/home"),
            ],
            "https://shop.example",
        ),
    ] {
        let entries: Vec<Json> = begin.into_iter().chain(many()).collect();
        assert_eq!(system_of(&recorded(pages.clone(), &entries, &[])), wanted, "{pages} {entries:?}");
    }
}

#[test]
fn named_hosts_are_all_that_is_driven_and_what_is_left_out_is_counted() {
    let get = |url: &str| entry_of("GET", url, 200, Json::Null);
    let entries = [
        get("https://shop.example/"),
        get("https://api.shop.example/a"),
        get("https://ads.example/1"),
        get("https://ads.example/2"),
        get("wss://shop.example/live"),
    ];
    let pages = json!([{"id": "p", "title": "https://shop.example/"}]);
    let made = recorded(pages.clone(), &entries, &[]);
    for part in [
        "shop.har: 1 of 5 requests are taken: those to shop.example",
        "left out, 3 to other hosts: ads.example (2), api.shop.example (1); --host HOST",
        "left out, 1: a WebSocket",
    ] {
        assert!(made.remark.contains(part), "{part}\n{}", made.remark);
    }
    assert!(checked(&made).contains("#   ads.example (2), api.shop.example (1)"));
    let made = recorded(pages.clone(), &entries, &["api.shop.example"]);
    assert_eq!(system_of(&made), "https://api.shop.example");
    assert!(made.remark.contains("ads.example (2), shop.example (1)"), "{}", made.remark);
    let made = recorded(pages, &entries, &["shop.example", "*.shop.example"]);
    let text = checked(&made);
    assert!(text.contains("at: api_shop_example") && !text.contains("ads_example"), "{text}");
    let all = recorded(Json::Null, &[get("http://h/a")], &[]);
    assert_eq!(all.remark, "");
}

#[test]
fn what_a_browser_did_not_send_is_left_out() {
    let of = |more: Json| entry_of("GET", "http://h/x", 200, more);
    for (entry, reason) in [
        (of(json!({"_fromCache": "memory"})), "cache"),
        (of(json!({"_fetchType": "Disk Cache"})), "cache"),
        (of(json!({"_fetchedViaServiceWorker": true})), "service worker"),
        (of(json!({"_resourceType": "websocket"})), "a WebSocket"),
        (entry_of("GET", "https://h/x", 101, Json::Null), "a WebSocket"),
        (of(json!({"_resourceType": "eventsource"})), "sse connect"),
        (of(json!({"response": {"content": {"mimeType": "text/event-stream"}}})), "sse connect"),
        (entry_of("OPTIONS", "http://h/x", 204, json!({"_resourceType": "preflight"})), "preflight"),
        (
            entry_of(
                "OPTIONS",
                "http://h/x",
                204,
                json!({"request": {"headers": [{"name": "Access-Control-Request-Method", "value": "PUT"}]}}),
            ),
            "preflight",
        ),
        (entry_of("CONNECT", "http://h:443/", 200, Json::Null), "a tunnel"),
        (
            entry_of("GET", "http://h/x", 0, json!({"response": {"_error": "net::ERR_ABORTED"}})),
            "without an answer",
        ),
        (entry_of("GET", "blob:http://h/1", 200, Json::Null), "not HTTP (data:"),
        (entry_of("GET", "chrome-extension://a/b.js", 200, Json::Null), "not HTTP (data:"),
        (json!({"response": {"status": 200}}), "without a request"),
    ] {
        let made = recorded(Json::Null, &[entry.clone(), entry_of("GET", "http://h/", 200, Json::Null)], &[]);
        let text = checked(&made);
        assert!(text.contains("Left out, 1: ") && text.contains(reason), "{entry}\n{text}");
        assert!(made.remark.contains(reason) && text.matches("- GET: ").count() == 1, "{entry}\n{text}");
    }
}

#[test]
fn what_recorders_write_each_in_their_way_is_read() {
    let h2 = json!({"request": {"httpVersion": "h3", "headers": [
        {"name": ":authority", "value": "h"}, {"name": ":method", "value": "GET"}, {"name": "x-a", "value": "1"},
        {"name": "X-A", "value": "2"}, {"name": "X-Number", "value": 3}, {"name": "X-Mask", "value": "[REDACTED]"}],
        "queryString": [{"name": "a b", "value": "c&d"}], "cookies": [{"name": "sid", "value": "hunter2"}]}});
    let purge = entry_of("PURGE", "http://h/cache", 304, Json::Null);
    let made = recorded(Json::Null, &[entry_of("GET", "http://ann:hunter2@h/", 200, h2), purge], &[]);
    let text = checked(&made);
    for part in [
        "- GET: /?a+b=c%26d",
        "x-a: [\"1\", \"2\"]",
        "X-Number: \"3\"",
        "X-Mask",
        "- REQUEST: /cache\n        method: PURGE\n",
        "auth: {basic: {user: ann, password: \"${password}\"}}",
    ] {
        assert!(text.contains(part), "{part}\n{text}");
    }
    assert!(!text.contains("hunter2") && !text.contains("304"), "{text}");
}

#[test]
fn a_form_is_sent_as_it_was() {
    let posted = |post_data: Json| {
        let more = json!({"request": {"postData": post_data}});
        checked(&recorded(Json::Null, &[entry_of("POST", "http://h/", 200, more)], &[]))
    };
    let form =
        |params: Json| posted(json!({"mimeType": "application/x-www-form-urlencoded", "params": params}));
    // encoded, as Chrome records it
    assert!(
        form(json!([{"name": "item%5B1%5D", "value": "a%20b+c"}])).contains("form: {\"item[1]\": a b c}")
    );
    // decoded
    let text = form(json!([{"name": "item[1]", "value": "a b"}, {"name": "share", "value": "100%"}]));
    assert!(text.contains("form: {\"item[1]\": a b, share: 100%}"), "{text}");
    assert!(form(json!([{"name": "a", "value": "1+1"}])).contains("form: {a: 1+1}"));
    let parts = json!([{"name": "title", "value": "hello"}, {"name": "password", "value": "hunter2"},
        {"name": "file", "fileName": "a.csv", "contentType": "text/csv", "value": "1,2"}]);
    let text = posted(json!({"mimeType": "multipart/form-data; boundary=----x", "params": parts}));
    for part in [
        r#"------x\r\nContent-Disposition: form-data; name=\"title\"\r\n\r\nhello\r\n"#,
        r#"name=\"password\"\r\n\r\n${password}\r\n"#,
        r#"name=\"file\"; filename=\"a.csv\"\r\nContent-Type: text/csv\r\n\r\n1,2\r\n------x--\r\n"#,
        "Content-Type: multipart/form-data; boundary=----x",
    ] {
        assert!(text.contains(part), "{part}\n{text}");
    }
    let text =
        posted(json!({"mimeType": "multipart/form-data", "params": [{"name": "f", "fileName": "a.png"}]}));
    assert!(
        text.contains("boundary=----tidemark-recorded") && text.contains("# what its files hold"),
        "{text}"
    );
    // Chrome leaves out what files hold, in the text and in the parts
    let mime = "multipart/form-data; boundary=----x";
    let file = |name: &str, content: &str| {
        posted(json!({"mimeType": mime, "text": format!(
            "------x\r\nContent-Disposition: form-data; name=\"f\"; filename=\"{name}\"\r\n\
             Content-Type: image/png\r\n\r\n{content}\r\n------x--\r\n"
        )}))
    };
    assert!(file("a.png", "").contains("# what its files hold"));
    assert!(!file("a.png", "x").contains("# what") && !file("", "").contains("# what"));
    let text = posted(json!({"mimeType": mime, "params": [{"name": "f", "fileName": "a.png", "value": ""}]}));
    assert!(text.contains("# what its files hold"), "{text}");
    // proxies record bytes
    let text = posted(json!({"mimeType": "text/plain", "text": "aGVsbG8=", "encoding": "base64"}));
    assert!(text.contains("body: hello\n"), "{text}");
    let text = posted(json!({"mimeType": "application/octet-stream", "text": "/wA=", "encoding": "base64"}));
    assert!(text.contains("base64_decode('/wA=')"), "{text}");
    assert!(
        posted(json!({"mimeType": "a/b", "text": "?", "encoding": "base64"}))
            .contains("# its body was left out")
    );
}
