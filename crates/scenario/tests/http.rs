//! Authentication of HTTP requests, which requests follow redirects, and bodies from files.

use std::path::Path;

use crate::support;
use tidemark_scenario::plan::{HttpRequest, TargetForm, UploadPiece};
use tidemark_scenario::{Plan, check_text, load_text};

fn text(steps: &str, more: &str) -> String {
    support::scenario(&format!("{more}\n"), steps, "")
}

fn plan(steps: &str, more: &str) -> Plan {
    support::load(&text(steps, more)).unwrap_or_else(|told| panic!("{told}"))
}

fn mistakes(steps: &str, more: &str) -> String {
    support::checked(&text(steps, more)).1.to_string()
}

fn http(plan: &Plan, index: usize) -> &HttpRequest {
    plan.requests[index].http().unwrap()
}

/// The `Authorization` of a request, where it is fixed.
fn authorization(plan: &Plan, index: usize) -> Option<String> {
    let mut all =
        http(plan, index).headers.iter().filter(|(name, _)| name.eq_ignore_ascii_case("authorization"));
    let (_, value) = all.next()?;
    assert!(all.next().is_none(), "once");
    value.as_literal().map(|value| String::from_utf8(value.to_vec()).unwrap())
}

#[test]
fn who_comes_is_a_header() {
    let steps = "- GET: /a\n- GET: /b\n  auth: {basic: {user: Aladdin, password: open sesame}}\n- GET: /c\n  auth: none\n\
                 - GET: /d\n  headers: {authorization: Own}\n- GET: /e\n  auth: {basic: {user: a, password: 007}}\n\
                 - GET: /f\n  auth: {basic: {user: a, password: \"${7}\"}}";
    let plan = plan(steps, "defaults: {auth: {bearer: of-the-defaults}}");
    let all: Vec<Option<String>> = (0..6).map(|index| authorization(&plan, index)).collect();
    let wanted = [
        Some("Bearer of-the-defaults"),
        Some("Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ=="),
        None,
        Some("Own"),
        Some("Basic YTowMDc="),
        Some("Basic YTo3"),
    ];
    assert_eq!(all, wanted.map(|value| value.map(str::to_owned)));
}

#[test]
fn who_comes_is_written_down_nowhere() {
    let steps = "- GET: /a\n  auth: {basic: {user: ann, password: open-sesame}}\n- GET: /b\n  auth: {bearer: \"tick-${1 + 1}-tock\"}";
    let more = "defaults: {auth: {bearer: of-the-defaults}}\ntargets: {auth: {url: 'http://other.example'}}";
    let plan = plan(steps, more);
    for secret in ["open-sesame", "of-the-defaults", "YW5uOm9wZW4tc2VzYW1l"] {
        assert!(!plan.source.contains(secret), "{}", plan.source);
        assert_eq!(plan.secrets.masked(&format!("it was {secret}.")), "it was ***.");
    }
    for line in [
        "targets: {auth: {url: 'http://other.example'}}",
        "        auth: {basic: {user: ann, password: \"***\"}}",
        "        auth: {bearer: \"***${1 + 1}***\"}",
    ] {
        assert!(plan.source.lines().any(|found| found == line), "no {line} in\n{}", plan.source);
    }
}

#[test]
fn mistakes_about_who_comes_are_told() {
    for (steps, told) in [
        ("- GET: /a\n  auth: {basic: {user: a}}", "needs the key \"password\""),
        ("- GET: /a\n  auth: {basic: {user: 'a:b', password: c}}", "a user with a colon"),
        ("- GET: /a\n  auth: {bearer: a}\n  headers: {Authorization: b}", "leave one out"),
        ("- GET: /a\n  auth: {baerer: a}", "bearer"),
        ("- GET: /a\n  auth: of", "none"),
    ] {
        let mistakes = mistakes(steps, "");
        assert!(mistakes.contains(told), "{mistakes}");
    }
}

#[test]
fn hops_are_requests_to_each_target_of_http() {
    let steps = "- POST: /a\n  follow: 3\n  headers: {Authorization: x, X-Id: \"${uuid()}\"}\n  body: hello\n- GET: /b\n- redis: [PING]";
    let more = "targets: {other: {url: 'https://other.example'}, cache: {url: 'redis://cache.example'}}";
    let plan = plan(steps, more);
    let follow = plan.requests[0].follow.as_ref().unwrap();
    assert!(plan.requests[1..].iter().all(|request| request.follow.is_none()));
    let targets: Vec<u16> = follow.hops.iter().map(|hops| hops.target).collect();
    assert_eq!((follow.most, follow.is_post, targets), (3, true, vec![0, 1]));
    let of = |index: u16| {
        let request = http(&plan, usize::from(index));
        let names: Vec<&str> = request.headers.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(request.form, TargetForm::Whole);
        assert_eq!(plan.requests[usize::from(index)].label, plan.requests[0].label);
        (request.method.as_str(), names.join(" "), request.body.is_some())
    };
    let (own, other) = (follow.hops[0], follow.hops[1]);
    assert_eq!(of(own.same), ("POST", "Authorization X-Id Content-Type User-Agent".to_owned(), true));
    assert_eq!(of(own.get), ("GET", "Authorization X-Id User-Agent".to_owned(), false));
    assert_eq!(of(other.same), ("POST", "X-Id Content-Type User-Agent".to_owned(), true));
    assert_eq!(of(other.get), ("GET", "X-Id User-Agent".to_owned(), false));
    assert_eq!(follow.fixed.len(), 1, "what varies by itself, and nothing else");
    assert_eq!(plan.labels.len(), 3);
}

#[test]
fn defaults_follow_and_a_step_may_not() {
    let steps = "- GET: /a\n- GET: /b\n  follow: 0\n- GET: /c\n  follow: 2";
    let plan = plan(steps, "defaults: {follow: 5}");
    let most: Vec<Option<u32>> =
        plan.requests[..3].iter().map(|request| request.follow.as_ref().map(|follow| follow.most)).collect();
    assert_eq!(most, [Some(5), None, Some(2)]);
    let told = mistakes("- GET: /a\n  follow: 21", "");
    assert!(told.contains("21 is too large; at most 20"), "{told}");
    let told = mistakes("- GET: /a\n  follow: true", "");
    assert!(told.contains("follow"), "{told}");
    // a target that only redirects lead to is no mistake
    let more = "targets: {other: {url: 'https://other.example'}}";
    assert!(mistakes("- GET: /a", more).contains("no step goes to"));
    assert_eq!(mistakes("- GET: /a\n  follow: 1", more), "");
}

#[test]
fn a_variable_may_be_all_of_a_path() {
    let plan = plan("- GET: /a\n  extract: {to: {header: location}}\n- GET: ${to}\n- GET: /x/${to}", "");
    let forms: Vec<TargetForm> = (0..3).map(|index| http(&plan, index).form).collect();
    assert_eq!(forms, [TargetForm::Below, TargetForm::Location, TargetForm::Below]);
    assert!(mistakes("- GET: a/b", "").contains("a path begins with a slash"));
}

#[test]
fn a_file_is_read_beside_the_scenario() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("body.bin"), b"\x00\xffhello").unwrap();
    std::fs::write(folder.path().join("api_key.txt"), "held-in-a-file\n").unwrap();
    let steps =
        "- POST: /a\n  body: ${file('body.bin')}\n  headers: {X-Of: \"${trim(file('api_key.txt'))}\"}";
    let plan = load_text("t.yaml", &text(steps, ""), folder.path(), &[]).unwrap();
    let request = http(&plan, 0);
    assert_eq!(request.body.as_ref().unwrap().as_literal(), Some(&b"\x00\xffhello"[..]));
    assert_eq!(plan.secrets.masked("it was held-in-a-file."), "it was ***.");
    let steps = "- POST: /a\n  body: ${file('no-such-file')}";
    let told = check_text("t.yaml", &text(steps, ""), folder.path(), &[]).1.to_string();
    assert!(told.contains("no-such-file: there is no such file") && told.contains("t.yaml:6:"), "{told}");
}

#[test]
fn what_stands_behind_the_equals_sign_of_a_query_is_encoded() {
    let steps = "- GET: \"/a${base}?x=${sum}&y=${base64('a?>')}&${rest}\"";
    let plan = plan(steps, "settings: {base: /b/c, sum: 'a+b&c', rest: 'p=1&q=2'}");
    let target = http(&plan, 0).target.as_literal().unwrap().to_owned();
    assert_eq!(String::from_utf8(target).unwrap(), "/a/b/c?x=a%2Bb%26c&y=YT8%2B&p=1&q=2");
}

/// A folder with a small file and one that is too large to be held.
fn files() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("small.bin"), b"\x00\xffhello").unwrap();
    std::fs::File::create(folder.path().join("large.bin")).unwrap().set_len(3 << 20).unwrap();
    std::fs::write(folder.path().join("empty"), b"").unwrap();
    folder
}

fn header<'a>(request: &'a HttpRequest, name: &str) -> Option<&'a [u8]> {
    let (_, value) = request.headers.iter().find(|(header, _)| header.eq_ignore_ascii_case(name))?;
    value.as_literal()
}

#[test]
fn a_file_is_a_body_and_a_large_one_is_read_while_it_is_sent() {
    let folder = files();
    let steps = "- POST: /a\n  body: {file: small.bin}\n- PUT: /b\n  body: {file: \"${name}.bin\"}\n  headers: {content-type: video/mp4}\n\
                 - PUT: /c\n  body: {file: empty}";
    let text = text(steps, "settings: {name: large}");
    let plan = load_text("t.yaml", &text, folder.path(), &[]).unwrap();
    let [small, large, empty] = [0, 1, 2].map(|index| http(&plan, index));
    assert_eq!(small.body.as_ref().unwrap().as_literal(), Some(&b"\x00\xffhello"[..]));
    assert!(small.upload.is_empty() && large.body.is_none());
    assert!(matches!(&large.upload[..], [UploadPiece::File(file)] if file.bytes == 3 << 20), "{large:?}");
    assert_eq!(header(small, "content-type"), Some(&b"application/octet-stream"[..]));
    assert_eq!(header(large, "content-type"), Some(&b"video/mp4"[..]));
    assert_eq!(empty.body.as_ref().unwrap().as_literal(), Some(&b""[..]), "it says that it is empty");
}

#[test]
fn a_form_has_parts_of_texts_and_files() {
    let folder = files();
    let steps = "- POST: /a\n  multipart:\n    title: Of ${who}\n    \"a\\\"b\": {text: x, type: text/markdown}\n    small: {file: small.bin}\n\
                 - POST: /b\n  multipart:\n    title: Of ${who}\n    film: {file: large.bin, name: film.mp4, type: video/mp4}\n    last: ${uuid()}\n  follow: 1";
    let plan = load_text("t.yaml", &text(steps, "settings: {who: ann}"), folder.path(), &[]).unwrap();
    let (small, large) = (http(&plan, 0), http(&plan, 1));
    let content_type = String::from_utf8_lossy(header(small, "content-type").unwrap()).into_owned();
    let boundary = content_type.strip_prefix("multipart/form-data; boundary=").unwrap();
    let wanted = format!(
        "--{boundary}\r\nContent-Disposition: form-data; name=\"title\"\r\n\r\nOf ann\r\n\
         --{boundary}\r\nContent-Disposition: form-data; name=\"a%22b\"\r\nContent-Type: text/markdown\r\n\r\nx\r\n\
         --{boundary}\r\nContent-Disposition: form-data; name=\"small\"; filename=\"small.bin\"\r\n\
         Content-Type: application/octet-stream\r\n\r\n"
    );
    let wanted = [wanted.as_bytes(), b"\x00\xffhello", format!("\r\n--{boundary}--\r\n").as_bytes()].concat();
    let body = small.body.as_ref().unwrap().as_literal().unwrap();
    assert_eq!(String::from_utf8_lossy(body), String::from_utf8_lossy(&wanted));

    let [UploadPiece::Text(before), UploadPiece::File(file), UploadPiece::Text(behind)] = &large.upload[..]
    else {
        panic!("{:?}", large.upload);
    };
    let before = String::from_utf8_lossy(before.as_literal().unwrap());
    assert!(before.ends_with("; filename=\"film.mp4\"\r\nContent-Type: video/mp4\r\n\r\n"), "{before}");
    assert_eq!((file.bytes, behind.as_literal()), (3 << 20, None), "the last text varies");
    // the hop that sends it again has the same texts, and the one by GET none
    let follow = plan.requests[1].follow.as_ref().unwrap();
    assert_eq!(follow.fixed.len(), 1, "what varies by itself is made once");
    assert_eq!(http(&plan, usize::from(follow.hops[0].same)).upload.len(), 3);
    assert!(http(&plan, usize::from(follow.hops[0].get)).upload.is_empty());
}

#[test]
fn mistakes_about_bodies_are_told() {
    let folder = files();
    let told =
        |steps: &str, more: &str| check_text("t.yaml", &text(steps, more), folder.path(), &[]).1.to_string();
    let large = "- POST: /a\n  body: {file: large.bin}";
    let elsewhere = format!("{large}\n  at: other");
    for (steps, more, wanted) in [
        ("- POST: /a\n  body: {file: none.bin}", "", "none.bin: there is no such file"),
        ("- POST: /a\n  body: {file: .}", "", "there is no such file"),
        ("- POST: /a\n  body: {fil: small.bin}", "", "did you mean file?"),
        ("- POST: /a\n  body: {}", "", "needs the key \"file\""),
        ("- POST: /a\n  body: {file: \"${id}\"}", "", "only settings can be used here"),
        ("- POST: /a\n  multipart: {a: {type: x}}", "", "needs one of the keys file, text"),
        ("- POST: /a\n  multipart: {a: {file: small.bin, text: x}}", "", "not both"),
        ("- POST: /a\n  multipart: {a: b}\n  body: c", "", "either \"multipart\" or \"body\""),
        (large, "limits: {pipeline: 4}", "limits: pipeline"),
        (large, "system: {url: 'https://shop.example', http: 2}", "http: 2"),
        (elsewhere.as_str(), "targets: {other: {url: 'https://o.example', http: 2}}", "HTTP/1.1"),
    ] {
        let told = told(steps, more);
        assert!(told.contains(wanted), "{steps}\n{more}\n{told}");
    }
    assert_eq!(
        told("- POST: /a\n  body: {file: small.bin}", "limits: {pipeline: 4}"),
        "",
        "it is held in memory"
    );
}

#[test]
fn a_fragment_is_not_sent() {
    let system = "system: {url: 'http://h.example'}";
    let plan = plan("- GET: /a?b=c#there${1}/x\n- GET: /a%23b", system);
    assert_eq!(http(&plan, 0).target.as_literal(), Some(&b"/a?b=c"[..]));
    assert_eq!(http(&plan, 1).target.as_literal(), Some(&b"/a%23b"[..]));
    let said = mistakes("- GET: /a?b=c#there", system);
    assert!(said.contains("warning: what stands behind a `#`"), "{said}");
}

#[test]
fn a_method_may_have_any_name_and_a_header_may_be_sent_several_times() {
    let steps =
        "- REQUEST: /cache/a\n  method: PURGE\n  headers: {X-Tag: [a, \"b${1}\"], X-One: c}\n- GET: /b";
    let plan = plan(steps, "defaults: {headers: {x-tag: [d, e], X-Two: [f, g]}}");
    let of = http(&plan, 0);
    assert_eq!((of.method.as_str(), plan.labels[0].as_str()), ("PURGE", "PURGE /cache/a"));
    let values = |request: &HttpRequest, name: &str| -> Vec<String> {
        let same = request.headers.iter().filter(|(known, _)| known.eq_ignore_ascii_case(name));
        same.map(|(_, value)| String::from_utf8_lossy(value.as_literal().unwrap()).into_owned()).collect()
    };
    assert_eq!(values(of, "x-tag"), ["a", "b1"]);
    assert_eq!(values(of, "x-two"), ["f", "g"]);
    assert_eq!(values(http(&plan, 1), "X-Tag"), ["d", "e"]);
    // as `tidemark hit -X` has it
    let of_name = |name: &str| self::plan(&format!("- REQUEST: /a\n  method: {name}"), "");
    for (name, sent) in
        [("get", "GET"), ("Patch", "PATCH"), ("Own-1", "Own-1"), (&"A".repeat(40), &"A".repeat(40))]
    {
        assert_eq!(http(&of_name(name), 0).method, sent);
    }
    let long = format!("- REQUEST: /a\n  method: {}", "A".repeat(41));
    for (steps, says) in [
        (long.as_str(), "cannot be the method"),
        ("- REQUEST: /a", "REQUEST needs its method"),
        ("- GET: /a\n  method: PURGE", "the method is GET; for another one write REQUEST"),
        ("- REQUEST: /a\n  method: 'A B'", "\"A B\" cannot be the method"),
        ("- REQUEST: /a\n  method: CONNECT", "see system: proxy"),
    ] {
        let told = mistakes(steps, "");
        assert!(told.contains(says), "{steps}: {told}");
    }
}

#[test]
fn what_is_sent_by_itself_is_not_where_its_header_has_no_value() {
    let steps = "- POST: /a\n  body: x\n- POST: /b\n  body: x\n  headers: {content-type: [], User-Agent: []}\n\
                 - POST: /c\n  json: {}\n  headers: {Content-Type: [], User-Agent: me}\n- POST: /d\n  body: x\n  headers: {Content-Type: ''}";
    let of = plan(steps, "");
    let sent = |index: usize, name: &str| {
        header(http(&of, index), name).map(|value| String::from_utf8_lossy(value).into_owned())
    };
    assert_eq!(sent(0, "Content-Type").as_deref(), Some("text/plain; charset=utf-8"));
    assert_eq!(sent(0, "User-Agent").as_deref(), Some("tidemark"));
    assert_eq!((sent(1, "Content-Type"), sent(1, "User-Agent")), (None, None));
    assert_eq!((sent(2, "Content-Type"), sent(2, "User-Agent").as_deref()), (None, Some("me")));
    assert_eq!(sent(3, "Content-Type").as_deref(), Some(""), "an empty text is a value");
    let of = plan(
        "- POST: /a\n  body: x\n- POST: /b\n  body: x\n  headers: {Content-Type: a/b}",
        "defaults: {headers: {Content-Type: []}}",
    );
    assert_eq!(header(http(&of, 0), "Content-Type"), None);
    assert_eq!(header(http(&of, 1), "Content-Type"), Some(b"a/b".as_slice()));
}

#[test]
fn a_header_that_is_sent_several_times_is_as_secret_as_one() {
    let plan = plan("- GET: /a\n  headers: {X-Api-Key: [not-for-everyone, nor-this-one]}", "");
    for secret in ["not-for-everyone", "nor-this-one"] {
        assert!(!plan.source.contains(secret), "{}", plan.source);
        assert_eq!(plan.secrets.masked(&format!("it was {secret}.")), "it was ***.");
    }
}

#[test]
fn a_setting_that_is_given_needs_no_variable() {
    let text = text("- GET: /a?k=${password}", "settings: {password: '${env(\"TIDEMARK_NOT_SET\")}'}");
    let told = support::checked(&text).1.to_string();
    assert!(
        told.contains("TIDEMARK_NOT_SET is not set; set it, or give the setting password with --set"),
        "{told}"
    );
    let given = [("password".to_owned(), "not-for-everyone".to_owned())];
    let plan = load_text("t.yaml", &text, Path::new("."), &given).unwrap();
    assert_eq!(plan.secrets.masked("k=not-for-everyone"), "k=***");
}
