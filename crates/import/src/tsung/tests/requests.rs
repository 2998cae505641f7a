//! What is sent, and where.

use super::*;

#[test]
fn servers_are_driven_where_requests_go() {
    let made = steps(
        "<request><http url=\"https://other.example:8443/a\"/></request><request><http url=\"/b\"/></request>\
         <request><http url=\"http://127.0.0.1:8080/c\"/></request><request><http url=\"d\"/></request>\
         <change_type new_type=\"ts_http\" host=\"third\" port=\"80\" server_type=\"tcp\" store=\"true\" restore=\"true\"/>\
         <request><http url=\"/e\"/></request>",
    );
    assert_eq!(
        made,
        "- GET: https://other.example:8443/a\n- GET: https://other.example:8443/b\n- GET: /c\n- GET: /d\n- GET: http://third/e\n"
    );
    assert_told(
        "<setdynvars sourcetype=\"value\" value=\"x\"><var name=\"h\"/></setdynvars><request subst=\"true\"><http url=\"http://%%_h%%/a\"/></request>",
        "a host that is not known",
        true,
    );
    let text = plan("<request><http url=\"/\"/></request>");
    let (yaml, told) =
        self::made(&text.replace(
            "</servers>",
            "<server host=\"second\" port=\"80\" weight=\"3\" type=\"tcp\"/></servers>",
        ));
    assert!(
        yaml.contains("url: http://127.0.0.1:8080\n")
            && told[0].to_string().contains("<server second>: would have been driven by a share")
            && told[0].is_request,
        "{told:?}"
    );
    let (yaml, _) =
        self::made(&text.replace(
            "host=\"127.0.0.1\" port=\"8080\" type=\"tcp\"",
            "host=\"::1\" port=\"443\" type=\"ssl6\"",
        ));
    assert!(yaml.contains("url: https://[::1]\n  resolve: ipv6\n"), "{yaml}");
}

#[test]
fn headers_credentials_and_cookies_are_sent() {
    let text = plan(
        "<request><http url=\"/?token=abcdef123\" if_modified_since=\"Fri, 14 Nov 2003 02:43:31 GMT\"><www_authenticate userid=\"Aladdin\" passwd=\"open sesame\"/>\
         <soap action=\"do\"/><http_header name=\"X-A\" value=\"b c\"/><http_header name=\"X-B\" value=\"zz\" encoding=\"base64\"/>\
         <http_header name=\"X-Api-Key\" value=\"0123456789\"/></http></request>\
         <request><http url=\"/login\" method=\"POST\" contents=\"user=ann&amp;password=open+sesame\"/></request>",
    );
    let (yaml, told) = made(&text);
    assert_eq!(told, []);
    assert_eq!(
        of_sessions(&yaml),
        r#"- GET: /?token=${token}
  label: GET /
  headers:
    If-Modified-Since: Fri, 14 Nov 2003 02:43:31 GMT
    SOAPAction: '"do"'
    X-A: b c
    X-B: eno=
    X-Api-Key: ${X_Api_Key}
  auth: {basic: {user: Aladdin, password: "${password}"}}
- POST: /login
  form: {user: ann, password: "${password}"}
"#
    );
    let made = steps(
        "<setdynvars sourcetype=\"value\" value=\"sesame-2\"><var name=\"user_password\"/></setdynvars>\
         <setdynvars sourcetype=\"value\" value=\"ann\"><var name=\"u\"/></setdynvars>\
         <request subst=\"true\"><http url=\"/x\" method=\"POST\" content_type=\"text/xml\" contents=\"&lt;a:password t='1'&gt;sesame&lt;/a:password&gt;&lt;u&gt;%%_u%%&lt;/u&gt;\"/></request>\
         <request subst=\"true\"><http url=\"/y\" method=\"POST\" content_type=\"application/json\" contents=\"{&quot;u&quot;: &quot;%%_u%%&quot;, &quot;password&quot; : &quot;sesame&quot;}\"/></request>",
    );
    assert_eq!(
        made,
        r#"- set: {user_password: "${user_password_setting}"}
- set: {u: ann}
- POST: /x
  headers: {Content-Type: text/xml}
  body: <a:password t='1'>${password}</a:password><u>${u}</u>
- POST: /y
  headers: {Content-Type: application/json}
  body: '{"u": "${u}", "password" : "${password}"}'
"#
    );
    let given = read_in(Path::new("."), &text).unwrap().given;
    let given: Vec<(&str, &str)> =
        given.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    assert_eq!(given, [("token", "abcdef123"), ("password", "open sesame"), ("X_Api_Key", "0123456789")]);
    for secret in ["abcdef123", "sesame", "0123456789"] {
        assert!(!yaml.contains(secret), "{yaml}");
    }
    assert!(yaml.contains("password: ${env(\"TIDEMARK_PASSWORD\")}"), "{yaml}");
    for (inner, says) in [
        ("<www_authenticate userid=\"u\" passwd=\"p\" type=\"digest\"/>", "by digest"),
        ("<oauth consumer_key=\"k\" consumer_secret=\"s\"/>", "by OAuth 1.0"),
    ] {
        assert_told(&format!("<request><http url=\"/\">{inner}</http></request>"), says, true);
    }
    assert_told("<request><http url=\"/\" version=\"1.0\"/></request>", "HTTP/1.0", false);
}

#[test]
fn messages_of_websockets_are_sent() {
    let session = "<session name=\"w\" probability=\"100\" type=\"ts_websocket\">\
        <request subst=\"true\"><websocket type=\"connect\" path=\"/chat\" subprotocols=\"a, b\" origin=\"http://o\"/></request>\
        <request><dyn_variable name=\"uid\" jsonpath=\"uid\"/><websocket type=\"message\" frame=\"text\">{\"user\":\"u\"}</websocket></request>\
        <request subst=\"true\"><match do=\"log\" when=\"nomatch\">ok</match><websocket type=\"message\">{\"uid\":\"%%_uid%%\"}</websocket></request>\
        <request><websocket type=\"message\" ack=\"no_ack\">bye</websocket></request><request><websocket type=\"close\"/></request></session>";
    let (yaml, told) = made(&plan_with(PHASE, "", session));
    assert_eq!(told, []);
    assert_eq!(
        of_sessions(&yaml),
        r#"- ws connect: /chat
  headers: {Origin: http://o}
  subprotocol: [a, b]
- ws send: {text: '{"user":"u"}'}
  expect: any
  extract: {uid: $.uid}
- ws send: {binary: '{"uid":"${uid}"}'}
  expect: {body: {contains: ok}}
- ws send: {binary: bye}
- ws close: 1000
  reason: close
"#
    );
}

#[test]
fn statements_of_postgresql_are_executed() {
    let session = "<session name=\"db\" probability=\"100\" type=\"ts_pgsql\">\
        <transaction name=\"connection\"><request><pgsql type=\"connect\" database=\"bench\" username=\"me\"/></request></transaction>\
        <request><pgsql type=\"authenticate\" password=\"sesame-1\"/></request>\
        <setdynvars sourcetype=\"random_number\" start=\"1\" end=\"9\"><var name=\"n\"/></setdynvars>\
        <request subst=\"true\"><pgsql type=\"sql\"><![CDATA[SELECT * FROM a WHERE id < %%_n%% AND name = 'it''s x%%_n%%' AND b = 'c;';]]></pgsql></request>\
        <request><dyn_variable name=\"m\" pgsql_expr=\"data_row[2].mtime\"/><pgsql type=\"sql\">SELECT 1;</pgsql></request>\
        <request><pgsql type=\"sql\">BEGIN</pgsql></request><request><pgsql type=\"sql\">SELECT 1; SELECT 2</pgsql></request>\
        <request><pgsql type=\"close\"/></request></session>";
    let text = plan_with(PHASE, "", session);
    let (yaml, told) = made(&text);
    assert!(
        yaml.contains("url: postgres://me:${password}@127.0.0.1:8080/bench\n") && !yaml.contains("sesame"),
        "{yaml}"
    );
    assert_eq!(
        of_sessions(&yaml),
        "- set: {\"n\": \"${random(1, 9)}\"}\n- sql: SELECT * FROM a WHERE id < $1 AND name = $2 AND b = 'c;'\n  with: [\"${n}\", \"it's x${n}\"]\n\
         - sql: SELECT 1\n  extract: {m: \"$[1].mtime\"}\n"
    );
    let told: Vec<&str> = told.iter().filter(|one| one.is_request).map(|one| one.would.as_str()).collect();
    assert!(
        told.len() == 2 && told[0].contains("\"BEGIN\"") && told[1].contains("several statements"),
        "{told:?}"
    );
}

#[test]
fn what_is_not_spoken_here_is_told_request_by_request() {
    let jabber = "<session name=\"chat\" probability=\"60\" type=\"ts_jabber\"><request><jabber type=\"connect\" ack=\"local\"/></request>\
        <transaction name=\"t\"><request><jabber type=\"chat\" ack=\"no_ack\" size=\"16\"/></request></transaction><thinktime value=\"wait_global\"/></session>";
    let http = "<session name=\"web\" probability=\"40\" type=\"ts_http\"><request><http url=\"/\"/></request></session>";
    let (yaml, told) = made(&plan_with(PHASE, "", &format!("{jabber}{http}")));
    let requests: Vec<String> = told.iter().filter(|one| one.is_request).map(ToString::to_string).collect();
    assert_eq!(requests.len(), 3, "{requests:?}");
    assert!(
        requests[0].contains("line 9: <jabber connect>: would have sent a request of jabber (connect)"),
        "{requests:?}"
    );
    assert!(told.iter().any(|one| one.would.contains("until all users are connected")), "{told:?}");
    // those who are driven come as often as before
    assert!(yaml.contains("rate: 2/s") && !yaml.contains("chat"), "{yaml}");
    let error = read_in(Path::new("."), &plan_with(PHASE, "", jabber)).unwrap_err().to_string();
    assert!(
        error.starts_with("plan.xml: nothing of it can be driven here:\n  line 9: <jabber connect>: "),
        "{error}"
    );
}
