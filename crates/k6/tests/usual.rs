//! Requests that the host makes at once, beside the same ones that go through the module for the unusual.

use std::fs;

use tidemark_k6::{Given, K6, Once, Source};

fn run(text: &str, others: &[(&str, &str)], status: u16) -> Once {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("script.js");
    fs::write(&path, text).unwrap();
    for (name, text) in others {
        fs::write(folder.path().join(name), text).unwrap();
    }
    let source = Source {
        name: "script.js",
        path: &path,
        text: text.as_bytes(),
        env: &[],
        given: Given::default(),
        bounds: Default::default(),
    };
    let k6 = K6::read(&source).unwrap();
    let answer =
        |_: &_| (status, "Content-Type: application/json\nX-A: 1\n".into(), b"{\"a\":[1,2]}".to_vec());
    k6.run_once("default", answer).unwrap()
}

/// What its requests are sent as and what it returns, in both ways. A callback of its own makes requests unusual.
fn both(body: &str, status: u16) -> [Once; 2] {
    ["", "http.setResponseCallback(http.expectedStatuses({min: 200, max: 399}));"].map(|before| {
        let text =
            format!("import http from 'k6/http';\nexport default function () {{\n{before}\n{body}\n}}");
        run(&text, &[], status)
    })
}

#[test]
fn usual_requests_are_as_unusual_ones() {
    let requests = [
        "http.get('http://h/a')",
        "http.get('http://h/a', null)",
        "http.get('http://h/a', { headers: { Accept: 'x', 'X-N': 7, Cookie: 'a=b', Host: '', 'Content-Length': '3' } })",
        "http.get('http://h/a', { headers: { 'user-agent': 'me' }, tags: { name: 'a', kind: 1 }, timeout: '3s' })",
        "http.get('http://h/a', Object.create({ headers: { Accept: 'inherited' } }))",
        "http.post('http://h/a', 'text', { headers: { 'Content-Type': 'text/plain' }, timeout: 500 })",
        "http.post('http://h/a', { b: 'c d' })",
        "http.put('http://h/a', null)",
        "http.del('http://h/a')",
        "http.request('get', 'http://h/a', undefined, { tags: { name: undefined } })",
        "http.get('http://me:secret@h/a')",
    ];
    for request in requests {
        for status in [200, 404] {
            let body = format!(
                "const r = {request}; return [r.status, r.url, r.error, r.error_code, r.json('a.1'), r.headers, r.request,
                 r instanceof http.Response, r.timings.duration > 0, r.body.length];"
            );
            let [usual, unusual] = both(&body, status);
            assert_eq!(usual.sent, unusual.sent, "{request}");
            assert_eq!(usual.returned, unusual.returned, "{request}");
            assert!(usual.returned.unwrap().contains(&format!("[{status},\"http://")), "{request}");
        }
    }
}

#[test]
fn what_is_wrong_with_a_request_is_told() {
    let told = |request: &str| {
        let body = format!("try {{ {request}; return 'sent'; }} catch (error) {{ return error.message; }}");
        both(&body, 200).map(|once| once.returned.unwrap())
    };
    // as in k6, a header that Go does not send fails the request
    for (headers, words) in
        [(r"{ a: 'b\nc' }", r#"value for \"A\""#), ("{ 'a b': 1, c: 'd' }", r#"name \"a b\""#)]
    {
        let body = format!(
            "const r = http.get('http://h/', {{ headers: {headers} }}); return [r.status, r.error_code, r.error];"
        );
        let wanted = format!(r#"[0,1000,"net/http: invalid header field {words}"]"#);
        for once in both(&body, 200) {
            assert!(once.sent.is_empty());
            assert_eq!(once.returned.as_ref(), Some(&wanted));
        }
    }
    let [usual, unusual] = told("http.get('http://h/', 7)");
    assert!(usual == unusual && usual.contains("are an object"), "{usual} {unusual}");
    let [usual, unusual] = told("http.get('http://h/', { timeout: 'soon' })");
    assert!(usual == unusual && usual.contains("invalid timeout"), "{usual} {unusual}");
}

#[test]
fn groups_and_checks_know_where_they_are() {
    let once = run(
        "import { check, group } from 'k6';
         export default function () {
           group('a', () => { group('b', () => check(1, { one: (v) => v === 1 })); check(1, { two: false }); });
           try { group('c', () => { throw new Error('out'); }); } catch {}
           check(1, { three: true });
           const wrong = (call) => { try { call(); return ''; } catch (error) { return error.message; } };
           return [wrong(() => group('d', async () => {})), wrong(() => group('x::y', () => {})),
             wrong(() => check(1, { late: async () => true }))].map((words) => words.length > 10);
         }",
        &[],
        200,
    );
    let told: Vec<_> = once.checks.iter().map(|check| (&*check.group, &*check.name, check.passes)).collect();
    assert_eq!(told, [("::a::b", "one", 1), ("::a", "two", 0), ("", "three", 1)]);
    assert_eq!(once.returned.unwrap(), "[true,true,true]");
}

#[test]
fn modules_find_all_that_they_name() {
    let once = run(
        "import { made } from './dates.js';
         export default function () { return made(); }",
        &[(
            "dates.js",
            "export const made = () => [new Date(0).getTime(), new Uint8Array([1, 2]).length, new ArrayBuffer(3).byteLength,
               new Proxy({}, { get: () => 5 }).a, btoa('a'), typeof WeakRef, typeof performance.now(), typeof DOMException];",
        )],
        200,
    );
    assert_eq!(once.returned.unwrap(), r#"[0,2,3,5,"YQ==","function","number","function"]"#);
    let bytes = run(
        "import http from 'k6/http';
         const file = open('./a.bin', 'b');
         export default function () {
           return [file.byteLength, http.get('http://h/', { responseType: 'binary' }).body.byteLength];
         }",
        &[("a.bin", "abc")],
        200,
    );
    assert_eq!(bytes.returned.unwrap(), "[3,11]");
}
