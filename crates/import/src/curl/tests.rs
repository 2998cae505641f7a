use super::flags::{KNOWN, REFUSED};
use super::*;
use crate::shell::words;

fn curl(line: &str) -> Result<Curl, String> {
    parse(&words(line)?)
}

fn target(line: &str) -> Target {
    curl(line).unwrap_or_else(|error| panic!("{line}: {error}")).target
}

fn body(target: &Target) -> &str {
    target.body.as_deref().map_or("", |body| std::str::from_utf8(body).unwrap())
}

#[test]
fn as_a_browser_copies_it() {
    let line = "curl 'https://shop.test/api/items?page=2' \\\n  -H 'accept: application/json' \\\n  -H 'content-length: 17' \\\n  \
                -b 'sid=1; theme=dark' \\\n  -H 'user-agent: Mozilla/5.0 (X11)' \\\n  --data-raw $'{\"it\\'s\":\"\\u00e4\\n\"}' \\\n  --compressed";
    let of = target(line);
    assert_eq!((of.method.as_str(), of.url.as_str()), ("POST", "https://shop.test/api/items?page=2"));
    assert_eq!(body(&of), "{\"it's\":\"ä\n\"}");
    let names: Vec<&str> = of.headers.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["accept", "user-agent", "Cookie", "Content-Type", "Accept-Encoding"]);
    assert_eq!(of.header("cookie"), Some("sid=1; theme=dark"));
}

#[test]
fn what_is_sent_is_what_curl_sends() {
    for (line, method, path, sent) in [
        ("curl h/a", "GET", "/a", ""),
        ("curl -XDELETE h/a", "DELETE", "/a", ""),
        ("curl -sSLI h/a", "HEAD", "/a", ""),
        ("curl -d a=1 -d b=2 h", "POST", "/", "a=1&b=2"),
        ("curl -X PUT -da=1 --url h/x", "PUT", "/x", "a=1"),
        ("curl -G -d a=1 -d b=2 'h/s?q=0'", "GET", "/s?q=0&a=1&b=2", ""),
        ("curl --data-urlencode 'a=b c&d' h", "POST", "/", "a=b+c%26d"),
        ("curl --json '{}' h", "POST", "/", "{}"),
        ("curl -o /dev/null -w '%{http_code}' -s h/x", "GET", "/x", ""),
        ("curl -- h/x", "GET", "/x", ""),
        ("curl -X PURGE h/x", "PURGE", "/x", ""),
        ("curl -X PROPFIND -H 'Depth: 1' h/x", "PROPFIND", "/x", ""),
        ("curl --url-query 'a=b c' --url-query +c=%20 'h/x?y'", "GET", "/x?y&a=b+c&c=%20", ""),
        ("curl -sSLkgvf 'h/x?a[]={b}'", "GET", "/x?a[]={b}", ""),
        (r"curl 'h/x?a\[0\]=1'", "GET", "/x?a[0]=1", ""),
        ("curl -IG -d a=1 h/x", "HEAD", "/x?a=1", ""),
    ] {
        let of = target(line);
        assert_eq!((of.method.as_str(), of.path(), body(&of)), (method, path, sent), "{line}");
    }
    assert_eq!(target("curl --json '{}' h").header("accept"), Some("application/json"));
    assert_eq!(target("curl -H 'Content-Type: text/x' -d a h").header("content-type"), Some("text/x"));
    assert_eq!(target("curl -A me -e from -H 'X-Empty;' -H 'Accept:' h").headers.len(), 3);
    assert_eq!(target("curl -u ann:p:w h").login, Some(("ann".into(), "p:w".into())));
    assert!(target("curl -L h").follow == Follow::MOST && target("curl h").follow == 0);
    let form = target("curl -F a=1 -F 'b=x' h");
    assert!(form.header("content-type").unwrap().starts_with("multipart/form-data; boundary="));
    assert!(body(&form).contains("name=\"a\"\r\n\r\n1\r\n"), "{}", body(&form));
}

#[test]
fn files_are_read_as_curl_reads_them() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("data");
    std::fs::write(&file, [b'a', b'\n', 0xff]).unwrap();
    let sent = |flag: &str| target(&format!("curl {flag} @{} h", file.display())).body.unwrap();
    assert_eq!(sent("-d"), [b'a', 0xff]);
    assert_eq!(sent("--data-binary"), [b'a', b'\n', 0xff]);
    let upload = target(&format!("curl -T {} h/x", file.display()));
    assert_eq!((upload.method.as_str(), upload.body.unwrap().len()), ("PUT", 3));
}

/// As curl 7.88 sent it to a server that showed what came, but for Host, User-Agent, Content-Length, Expect and boundaries.
#[test]
fn method_headers_and_body_are_those_that_curl_sends() {
    const FORM: &str = "Content-Type: application/x-www-form-urlencoded";
    const ACCEPT: &str = "Accept: */*";
    const JSON: [&str; 2] = ["Content-Type: application/json", "Accept: application/json"];
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, content: &str| {
        std::fs::write(folder.path().join(name), content).unwrap();
    };
    file("f.txt", "a\nb");
    file("f.json", "{\"a\":1}");
    for (line, first, headers, content) in [
        ("-T FOLDER/f.txt h/x", "PUT /x", &[ACCEPT][..], "a\nb"),
        ("-T FOLDER/f.txt h/", "PUT /f.txt", &[ACCEPT], "a\nb"),
        ("-T FOLDER/f.json h/x", "PUT /x", &[ACCEPT], "{\"a\":1}"),
        (
            "-T FOLDER/f.json -H 'Content-Type: application/json' h/x",
            "PUT /x",
            &[JSON[0], ACCEPT],
            "{\"a\":1}",
        ),
        ("-X POST -T FOLDER/f.txt h/x", "POST /x", &[ACCEPT], "a\nb"),
        ("-G -T FOLDER/f.txt h/x", "PUT /x", &[ACCEPT], "a\nb"),
        ("-d a=1 h/x", "POST /x", &[FORM, ACCEPT], "a=1"),
        ("-d '' h/x", "POST /x", &[FORM, ACCEPT], ""),
        ("-X DELETE -d a=1 h/x", "DELETE /x", &[FORM, ACCEPT], "a=1"),
        ("-d a -X POST -X PUT h/x", "PUT /x", &[FORM, ACCEPT], "a"),
        ("-d @FOLDER/f.txt h/x", "POST /x", &[FORM, ACCEPT], "ab"),
        ("--data-raw @f.txt h/x", "POST /x", &[FORM, ACCEPT], "@f.txt"),
        ("--data-binary @FOLDER/f.txt h/x", "POST /x", &[FORM, ACCEPT], "a\nb"),
        ("-d a=1 -H 'Content-Type:' h/x", "POST /x", &[ACCEPT], "a=1"),
        ("-d a=1 -H 'Content-Type;' h/x", "POST /x", &["Content-Type: ", ACCEPT], "a=1"),
        ("--data-urlencode 'a=b c' -d c=d h/x", "POST /x", &[FORM, ACCEPT], "a=b+c&c=d"),
        ("--data-urlencode 'ä/=~-._*+()' h/x", "POST /x", &[FORM, ACCEPT], "ä/=~-._%2A%2B%28%29"),
        ("--json '{\"a\":1}' h/x", "POST /x", &JSON, "{\"a\":1}"),
        ("--json '' h/x", "POST /x", &JSON, ""),
        ("--json '{}' --json ,2 h/x", "POST /x", &JSON, "{},2"),
        ("--json '{}' -d b h/x", "POST /x", &JSON, "{}&b"),
        ("-d b --json '{}' h/x", "POST /x", &JSON, "b{}"),
        (
            "--json 1 -H 'Accept: x/y' -H 'content-type: p/q' h/x",
            "POST /x",
            &["Accept: x/y", "content-type: p/q"],
            "1",
        ),
        ("-G -d a=1 -d b=2 h/x", "GET /x?a=1&b=2", &[ACCEPT], ""),
        ("-G --data-urlencode 'q=a b' 'h/x?z=1'", "GET /x?z=1&q=a+b", &[ACCEPT], ""),
        ("-G --json 1 h/x", "GET /x?1", &JSON, ""),
        ("-G -X POST -d a=1 h/x", "POST /x?a=1", &[ACCEPT], ""),
        ("-G h/x", "GET /x", &[ACCEPT], ""),
        ("-I -G -d a=1 h/x", "HEAD /x?a=1", &[ACCEPT], ""),
        ("-X POST h/x", "POST /x", &[ACCEPT], ""),
        ("-b a=1 -H 'Cookie: b=2' h/x", "GET /x", &["Cookie: b=2", ACCEPT], ""),
        (
            "-F a=1 h/x",
            "POST /x",
            &["Content-Type: multipart/form-data; boundary=B", ACCEPT],
            "--B\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\n1\r\n--B--\r\n",
        ),
        (
            "-F =1 -X PUT h/x",
            "PUT /x",
            &["Content-Type: multipart/form-data; boundary=B", ACCEPT],
            "--B\r\nContent-Disposition: form-data\r\n\r\n1\r\n--B--\r\n",
        ),
        (
            "-F f=@FOLDER/f.txt -H 'Content-Type: multipart/form-data' h/x",
            "POST /x",
            &["Content-Type: multipart/form-data; boundary=B", ACCEPT],
            "--B\r\nContent-Disposition: form-data; name=\"f\"; filename=\"f.txt\"\r\nContent-Type: text/plain\r\n\r\na\nb\r\n--B--\r\n",
        ),
        (
            "-F 'f=@FOLDER/f.json;filename=p.jpg' h/x",
            "POST /x",
            &["Content-Type: multipart/form-data; boundary=B", ACCEPT],
            "--B\r\nContent-Disposition: form-data; name=\"f\"; filename=\"p.jpg\"\r\nContent-Type: image/jpeg\r\n\r\n{\"a\":1}\r\n--B--\r\n",
        ),
        (
            "-F 'm=<FOLDER/f.json;type=text/html;charset=utf-8' h/x",
            "POST /x",
            &["Content-Type: multipart/form-data; boundary=B", ACCEPT],
            "--B\r\nContent-Disposition: form-data; name=\"m\"\r\nContent-Type: text/html;charset=utf-8\r\n\r\n{\"a\":1}\r\n--B--\r\n",
        ),
    ] {
        let of = target(&format!("curl {}", line.replace("FOLDER", &folder.path().display().to_string())));
        let own = |text: &str| text.replace("------------------------tidemark00000000", "B");
        assert_eq!(format!("{} {}", of.method, of.path()), first, "{line}");
        let sent: Vec<String> =
            of.headers.iter().map(|(name, value)| own(&format!("{name}: {value}"))).collect();
        assert_eq!(sent, headers, "{line}");
        assert_eq!(own(body(&of)), content, "{line}");
        let is_typed = of.header("content-type").is_some();
        assert_eq!(of.omitted.contains(&"Content-Type"), !is_typed, "{line}");
    }
    assert_eq!(target("curl -A '' h").omitted, ["Content-Type", "User-Agent"]);
}

#[test]
fn how_it_gets_there() {
    let of = curl("curl -k --http2 -4 -m 2.5 --connect-timeout 1 --resolve shop:443:127.0.0.1 https://shop/")
        .unwrap();
    assert!(of.reach.tls.insecure && of.reach.ipv4);
    assert_eq!(
        (of.reach.http, of.target.timeout),
        (Some(HttpVersion::Auto), Some(Duration::from_millis(2_500)))
    );
    assert_eq!(of.connect_timeout, Some(Duration::from_secs(1)));
    assert_eq!(of.reach.connect_to.as_deref(), Some("127.0.0.1:443"));
    let place = |flag: &str| curl(&format!("curl {flag} http://h:1/")).unwrap().reach.connect_to.unwrap();
    assert_eq!(place("--connect-to ::other:2"), "other:2");
    assert_eq!(place("--connect-to h:1::2"), "h:2");
    assert_eq!(place("--resolve h:1:::1"), "[::1]:1");
    let proxy = |flag: &str| curl(&format!("curl {flag} http://h/")).unwrap().reach.proxy.unwrap();
    assert_eq!(proxy("-x me:mine@p:3128"), "http://me:mine@p:3128");
    assert_eq!(proxy("--proxy http://p"), "http://p");
}

#[test]
fn every_known_flag_says_something_and_what_is_passed_over_nothing() {
    for (_, name, takes) in KNOWN {
        let value = if *takes == Takes::Value { "1" } else { "" };
        let told = Line::default().apply(name, value);
        assert_ne!(told, Err(not_understood(&format!("--{name}"))));
        assert!(REFUSED.iter().all(|(flags, _)| !flags.contains(&format!("--{name}").as_str())), "{name}");
    }
    assert_eq!(target("curl --basic --tlsv1.2 -s -u a:b h").login, Some(("a".into(), "b".into())));
}

/// What masks secrets in messages finds none in what this program says itself.
#[test]
fn nothing_of_a_refusal_is_masked() {
    let secrets = tidemark_scenario::Secrets::of_command(&[]);
    for (flags, _) in REFUSED {
        for flag in *flags {
            let refusal = find(flag, |_| false).unwrap_err();
            assert_eq!(secrets.masked(&refusal), refusal);
        }
    }
    let from_outside = "not sent: Bearer abcdefgh12345678";
    assert_eq!(secrets.masked(from_outside), "not sent: Bearer ***");
}

#[test]
fn what_is_not_understood_is_named() {
    for (line, says) in [
        ("curl --sslv2 h", "curl's flag --sslv2 is not understood here"),
        ("curl '- ' h", "curl's flag -  is not understood here"),
        ("curl -K config h", "curl's -K is not supported"),
        ("curl h -c 100", "Flags of hit stand before the word curl: hit -c 100 curl …"),
        ("curl h -c100", "Flags of hit stand before the word curl: hit -c 100 curl …"),
        ("curl h -r 5k", "Flags of hit stand before the word curl: hit -r 5k curl …"),
        ("curl h -d 10s", "the body, which is written --data-raw where it looks like a time"),
        ("curl h -d 10s", "hit -d 10s curl …"),
        ("curl h --latency", "Flags of hit stand before the word curl: hit --latency … curl …"),
        ("curl h -z 10s", "hit -z 10s curl …"),
        ("curl h -n 100", "hit's own -n stands before the word curl"),
        ("curl -X", "-X has no value"),
        ("curl", "no URL"),
        ("curl h i", "two URLs"),
        ("curl -b /no/such/jar h", "/no/such/jar"),
        ("curl --digest -u a:b h", "curl's --digest is not supported: only Basic"),
        ("curl --retry 3 h", "--retry is not supported: a request that fails"),
        ("curl h --next h", "--next is not supported: several requests stand in a list"),
        ("curl -: h", "-: is not supported"),
        ("curl -U a:b -x p h", "-x http://NAME:PASSWORD@HOST:PORT"),
        ("curl --request=POST h", "write --request VALUE"),
        ("curl 'h/[1-3]'", "several URLs"),
        ("curl 'h/{a,b}'", "several URLs"),
        ("curl -I -d a h", "HEAD none"),
        ("curl -T /dev/null -d a h", "one body"),
        ("curl -H 'Connection: Upgrade' h", "ws connect"),
        ("curl -H 'Transfer-Encoding: chunked' -d a h", "bodies are sent whole"),
        ("curl -H 'Expect: 100-continue' -d a h", "bodies are sent at once"),
        ("curl --resolve other:80:127.0.0.1 http://h/", "is for another host; this URL's is h:80"),
        ("curl --max-redirs x -L h", "is not a number"),
        ("curl -C - h", "not a number of bytes"),
        ("curl \"h/$ID\"", "$ID would be expanded by a shell"),
        ("curl -u ann h", "NAME:PASSWORD"),
        ("curl -d a -F b=c h", "one body"),
        ("curl -d @/no/such/file h", "/no/such/file"),
        ("curl -X 'A B' h", "cannot be the method"),
        ("curl 'h", "quotes are not closed"),
        ("curl $'h", "quotes are not closed"),
        ("curl ftp://h/", "begins neither with http://"),
    ] {
        let told = curl(line).unwrap_err();
        assert!(told.contains(says), "{line}: {told}");
    }
}

#[test]
fn headers_are_as_curl_sends_them() {
    let of = target("curl -H 'X-A: 1' -H 'x-a: 2' -H 'Connection: keep-alive' -H ':authority: h' -r 0-99 h");
    let all: Vec<String> = of.headers.iter().map(|(name, value)| format!("{name}: {value}")).collect();
    assert_eq!(all, ["X-A: 1", "x-a: 2", "Range: bytes=0-99", "Accept: */*"]);
    assert!(curl("curl -H 'Connection: close' h").unwrap().no_keepalive);
    assert!(!curl("curl -H 'Connection: keep-alive' h").unwrap().no_keepalive);
    assert_eq!(target("curl -H 'accept:' h").headers, []);
    assert_eq!(target("curl -C 100 h").header("range"), Some("bytes=100-"));
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("headers");
    std::fs::write(&file, "X-A: 1\r\n\nX-B: 2\n").unwrap();
    let of = target(&format!("curl -H @{} h", file.display()));
    assert_eq!((of.header("x-a"), of.header("x-b")), (Some("1"), Some("2")));
}

#[test]
fn who_comes_may_stand_in_the_url() {
    let of = target("curl 'http://admin:p%40ss@h:1/api'");
    assert_eq!((of.url.as_str(), of.login), ("http://h:1/api", Some(("admin".into(), "p@ss".into()))));
    assert_eq!(target("curl -u ann:b http://admin:c@h/").login, Some(("ann".into(), "b".into())));
    assert_eq!(target("curl -H 'Authorization: Own' http://admin:c@h/").login, None);
    let told = curl("curl 'http://ann:hunter2@h/{a,b}'").unwrap_err();
    assert!(!told.contains("hunter2"), "{told}");
}

#[test]
fn a_file_of_cookies_has_those_of_the_url() {
    let folder = tempfile::tempdir().unwrap();
    let jar = folder.path().join("jar");
    let lines = [
        "# Netscape HTTP Cookie File",
        "",
        "#HttpOnly_h.test\tFALSE\t/\tFALSE\t0\tsid\t1",
        ".h.test\tTRUE\t/\tFALSE\t4102444800\tlong\t2",
        "h.test\tFALSE\t/\tFALSE\t1\tover\t3",
        "h.test\tFALSE\t/other\tFALSE\t0\tpath\t4",
        "h.test\tFALSE\t/\tTRUE\t0\tsecure\t5",
        "other.test\tTRUE\t/\tFALSE\t0\tother\t6",
    ];
    std::fs::write(&jar, lines.join("\n")).unwrap();
    let cookies = |url: &str| {
        let of = target(&format!("curl -b {} {url}", jar.display()));
        of.header("cookie").unwrap_or_default().to_owned()
    };
    assert_eq!(cookies("http://h.test/a"), "sid=1; long=2");
    assert_eq!(cookies("https://h.test/a"), "sid=1; long=2; secure=5");
    assert_eq!(cookies("http://h.test/other/a"), "sid=1; long=2; path=4");
    assert_eq!(cookies("http://a.h.test/"), "long=2");
    std::fs::write(&jar, "sid 1\n").unwrap();
    assert!(curl(&format!("curl -b {} h", jar.display())).unwrap_err().contains("line 1 has not 7 fields"));
}

#[test]
fn a_line_may_begin_with_a_prompt() {
    for line in
        ["curl h", "$ curl h", "  % curl h", "> curl.exe h", "sudo /usr/bin/curl h", "C:\\bin\\curl.exe h"]
    {
        assert!(command_line(line).is_some_and(|line| line.ends_with("h")), "{line}");
    }
    for other in ["", "curly h", "http://h/curl x", "wget h", "http POST h"] {
        assert_eq!(command_line(other), None, "{other}");
    }
}

#[test]
fn what_curl_does_without_tls_and_with_bounds() {
    assert!(!curl("curl -k http://h/").unwrap().reach.tls.insecure);
    assert!(curl("curl -k https://h/").unwrap().reach.tls.insecure);
    assert_eq!(target("curl -L --max-redirs 3 h").follow, 3);
    assert_eq!(target("curl -L --max-redirs -1 h").follow, Follow::MOST);
    assert_eq!(target("curl --max-redirs 3 h").follow, 0);
    assert!(curl("curl --no-sessionid https://h/").unwrap().reach.tls.no_resumption);
    let place = |line: &str| curl(line).unwrap().reach.connect_to;
    let line = "curl --resolve other:80:127.0.0.1 --resolve h:80:127.0.0.2 http://h/";
    assert_eq!(place(line).as_deref(), Some("127.0.0.2:80"));
    assert_eq!(place("curl --resolve '*:80:127.0.0.3' http://h/").as_deref(), Some("127.0.0.3:80"));
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a b.txt");
    std::fs::write(&file, "x").unwrap();
    assert_eq!(target(&format!("curl -T '{}' h/d/", file.display())).path(), "/d/a%20b.txt");
}

proptest::proptest! {
    #[test]
    fn any_line_is_read_or_refused(line in "curl( -{0,2}[a-zA-Z:#.0-9]{0,12}| [ -~]{0,12}){0,6}") {
        // it waits for nothing, and looks at no file that happens to be there
        if !line.contains(['@', '<', '/']) && !line.split_whitespace().any(|word| word.ends_with('-')) {
            let _ = curl(&line);
        }
    }
}
