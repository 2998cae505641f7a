//! Plans of Tsung as scenarios.

use std::path::Path;

use proptest::prelude::*;

use super::*;

/// A plan with these options and sessions.
fn plan_with(load: &str, options: &str, sessions: &str) -> String {
    format!(
        "<?xml version=\"1.0\"?>\n<!DOCTYPE tsung SYSTEM \"/usr/share/tsung/tsung-1.0.dtd\">\n\
         <tsung loglevel=\"notice\" version=\"1.0\">\n\
         <clients><client host=\"localhost\" use_controller_vm=\"true\" maxusers=\"1000\"/></clients>\n\
         <servers><server host=\"127.0.0.1\" port=\"8080\" type=\"tcp\"/></servers>\n\
         <load>{load}</load>\n<options>{options}</options>\n<sessions>\n{sessions}\n</sessions>\n</tsung>\n"
    )
}

const PHASE: &str = "<arrivalphase phase=\"1\" duration=\"1\" unit=\"minute\"><users arrivalrate=\"5\" unit=\"second\"/></arrivalphase>";

/// One with one session.
fn plan(steps: &str) -> String {
    plan_with(
        PHASE,
        "",
        &format!("<session name=\"s\" probability=\"100\" type=\"ts_http\">{steps}</session>"),
    )
}

fn read_in(folder: &Path, text: &str) -> Result<Imported, ImportError> {
    scenario(&Plan { name: "plan.xml", text, folder, prefix: "", properties: &[], environment: None })
}

/// The scenario as YAML, in which the checker finds no mistake, and what was told.
fn made_in(folder: &Path, text: &str) -> (String, Vec<LeftOut>) {
    let imported = read_in(folder, text).unwrap_or_else(|error| panic!("{error}"));
    let yaml = imported.scenario.to_yaml();
    let (_, mistakes) = tidemark_scenario::check_text("scenario.yaml", &yaml, folder, &imported.secrets());
    assert!(!mistakes.has_errors(), "{mistakes}\n{yaml}");
    (yaml, imported.left_out)
}

fn made(text: &str) -> (String, Vec<LeftOut>) {
    made_in(Path::new("."), text)
}

/// The steps of the only session, where nothing was told.
fn steps(steps: &str) -> String {
    let (yaml, told) = made(&plan(steps));
    assert!(told.is_empty(), "{told:?}\n{yaml}");
    of_sessions(&yaml)
}

fn of_sessions(yaml: &str) -> String {
    let steps = yaml.split_once("    steps:\n").map(|(_, steps)| steps).unwrap_or_default();
    let steps = steps.split("\nload:").next().unwrap_or_default();
    steps.lines().map(|line| format!("{}\n", line.strip_prefix("      ").unwrap_or(line))).collect()
}

/// What is told of a session's steps, and whether a request is missing.
fn told(steps: &str) -> Vec<(String, bool)> {
    let (_, told) = made(&plan(&format!("{steps}<request><http url=\"/last\"/></request>")));
    told.into_iter().map(|one| (one.to_string(), one.is_request)).collect()
}

#[track_caller]
fn assert_told(steps: &str, says: &str, is_request: bool) {
    let told = told(steps);
    assert!(told.iter().any(|(text, of)| text.contains(says) && *of == is_request), "{says}: {told:?}");
}

#[test]
fn a_simple_plan_reads_as_a_person_would_have_written_it() {
    let options = "<option type=\"ts_http\" name=\"user_agent\"><user_agent probability=\"100\">\n  Some Browser/1.0\n</user_agent></option>\
                   <option name=\"seed\" value=\"42\"/><option name=\"connect_timeout\" value=\"5000\"/><option name=\"idle_timeout\" value=\"20000\"/>";
    let sessions = "<session name=\"reader\" probability=\"70\" type=\"ts_http\">\
        <request><http url=\"/\" method=\"GET\" version=\"1.1\"/></request><thinktime value=\"20\" random=\"true\"/>\
        <transaction name=\"index\"><request><http url=\"/a?b=c\"/></request><thinktime value=\"2\"/>\
        <request><http url=\"/x\" method=\"POST\" contents=\"bla=blu&amp;to=1\"/></request></transaction>\
        <thinktime min=\"2\" max=\"10\" random=\"true\"/></session>\n\
        <session name=\"admin\" probability=\"30\" type=\"ts_http\"><request><http url=\"/admin\" method=\"PUT\" contents=\"{&quot;a&quot;: 1}\" \
        content_type=\"application/json\"/></request></session>";
    let (yaml, told) = made(&plan_with(PHASE, options, sessions));
    assert_eq!(told, []);
    assert_eq!(
        yaml,
        r#"# Made of plan.xml. What was left out was told on the way.
# Users arrive at random, as in Tsung. The phase "last users" is for those who are still there when no more arrive.
# Is this the one to drive? Another: run with --url.
system:
  url: http://127.0.0.1:8080

defaults:
  headers: {User-Agent: Some Browser/1.0}
  timeout: 20s

sessions:
  reader:
    weight: 7
    steps:
      - GET: /
      - think: {exponential: 20s}
      - group: index
        steps:
          - GET: /a?b=c
            label: GET /a
          - think: 2s
          - POST: /x
            form: {bla: blu, to: "1"}
      - think: {between: [2s, 10s]}
  admin:
    weight: 3
    steps:
      - PUT: /admin
        json: {a: 1}

load:
  spacing: poisson
  phases:
    - {name: phase 1, for: 1m, rate: 5/s}
    - {name: last users, for: 1m17s, rate: 0/s, measured: false}

limits:
  connect timeout: 5s

seed: 42
"#
    );
}

#[test]
fn arrivals_keep_their_rates_and_bounds() {
    let of = |load: &str| {
        let (yaml, told) = made(&plan_with(
            load,
            "",
            "<session name=\"a\" weight=\"2\" type=\"ts_http\"><request><http url=\"/a\"/></request></session>\
             <session name=\"b\" weight=\"1\" type=\"ts_http\"><request><http url=\"/b\"/></request></session>",
        ));
        let load = yaml.split_once("\nload:\n").map(|(_, load)| load.to_owned()).unwrap_or_default();
        (load, told.iter().map(ToString::to_string).collect::<Vec<_>>())
    };
    // phases go by their number
    let (load, told) = of(
        "<arrivalphase phase=\"2\" duration=\"10\" unit=\"minute\"><users interarrival=\"2\" unit=\"second\"/></arrivalphase>\
        <arrivalphase phase=\"1\" duration=\"500\" unit=\"millisecond\"><users arrivalrate=\"90\" unit=\"minute\"/></arrivalphase>",
    );
    assert_eq!(
        load,
        "  spacing: poisson\n  phases:\n    - {name: phase 1, for: 500ms, rate: 1.5/s}\n    - {name: phase 2, for: 10m, rate: 0.5/s}\n    - {name: last users, for: 5s, rate: 0/s, measured: false}\n"
    );
    assert_eq!(told, [""; 0]);
    // a bound of the only phase is one of the whole
    let (load, told) = of(
        "<arrivalphase phase=\"1\" duration=\"1\" unit=\"hour\"><users maxnumber=\"30\" arrivalrate=\"2\" unit=\"second\"/></arrivalphase>",
    );
    assert!(
        load.contains("for: 1h, rate: 2/s}\n    - {name: last users, for: 1h, rate: 0/s}\n")
            && load.contains("limits:\n  sessions: 30\n"),
        "{load}"
    );
    assert_eq!(told, [""; 0]);
    // one of several cuts it
    let (load, told) = of(
        "<arrivalphase phase=\"1\" duration=\"1\" unit=\"minute\"><users maxnumber=\"30\" arrivalrate=\"2\" unit=\"second\"/></arrivalphase>\
        <arrivalphase phase=\"2\" duration=\"1\" unit=\"minute\"><users arrivalrate=\"4\" unit=\"second\"/></arrivalphase>",
    );
    assert!(
        load.contains("{name: phase 1, for: 15s, rate: 2/s}\n    - {name: phase 1 without arrivals, for: 45s, rate: 0/s}\n    - {name: phase 2, for: 1m, rate: 4/s}"),
        "{load}"
    );
    assert!(
        !load.contains("limits") && told.len() == 1 && told[0].contains("no more than 30 users"),
        "{load}{told:?}"
    );
    // sessions with another share in a phase: as Poisson's arrivals, those of a part are random, too
    let (load, told) = of(
        "<arrivalphase phase=\"1\" duration=\"1\" unit=\"minute\"><users arrivalrate=\"3\" unit=\"second\"/></arrivalphase>\
        <arrivalphase phase=\"2\" duration=\"1\" unit=\"minute\"><session_setup name=\"a\" weight=\"1\"/><session_setup name=\"b\" weight=\"3\"/>\
        <users arrivalrate=\"4\" unit=\"second\"/></arrivalphase>",
    );
    assert_eq!(
        load,
        "  sessions:\n    a:\n      spacing: poisson\n      phases:\n        - {name: phase 1, for: 1m, rate: 2/s}\n        - {name: phase 2, for: 1m, rate: 1/s}\n        - {name: last users, for: 5s, rate: 0/s, measured: false}\n\
         \x20   b:\n      spacing: poisson\n      phases:\n        - {name: phase 1, for: 1m, rate: 1/s}\n        - {name: phase 2, for: 1m, rate: 3/s}\n        - {name: last users, for: 5s, rate: 0/s, measured: false}\n"
    );
    assert_eq!(told, [""; 0]);
    // static users are told
    let (_, told) = of(&format!("{PHASE}<user session=\"b\" start_time=\"185\" unit=\"second\"/>"));
    assert!(
        told[0].contains("line 6: <user b>: would have begun one session \"b\" at 185 second"),
        "{told:?}"
    );
}

#[test]
fn the_load_is_cut_and_repeated_as_it_says() {
    let text = plan_with(
        PHASE,
        "",
        "<session name=\"s\" probability=\"100\" type=\"ts_http\"><request><http url=\"/\"/></request></session>",
    );
    let (yaml, told) = made(&text.replace("<load>", "<load loop=\"2\" duration=\"150\">"));
    assert_eq!(told, []);
    assert!(
        yaml.contains("{name: phase 1, for: 1m, rate: 5/s}\n    - {name: phase 1 (2), for: 1m, rate: 5/s}\n    - {name: phase 1 (3), for: 30s, rate: 5/s}\n") && !yaml.contains("last users,"),
        "{yaml}"
    );
    let (yaml, told) = made(&text.replace(PHASE, ""));
    assert!(yaml.contains("users: 1\n") && told[0].is_request, "{yaml}");
}

#[test]
fn sessions_that_are_never_chosen_do_no_harm() {
    let session = |name: &str, share: &str, inner: &str| {
        format!("<session name=\"{name}\" probability=\"{share}\" type=\"ts_http\">{inner}</session>")
    };
    let http = "<request><http url=\"/\"/></request>";
    let jabber = "<request><jabber type=\"chat\" ack=\"no_ack\"/></request>";
    let setup = "<arrivalphase phase=\"1\" duration=\"9\" unit=\"second\"><session_setup name=\"b\" probability=\"100\"/><users arrivalrate=\"1\" unit=\"second\"/></arrivalphase>";
    for (load, a, b, inner, is_driven) in [
        (PHASE, "0", "0", http, false),
        (PHASE, "100", "0", http, true),
        (PHASE, "0", "100", jabber, false),
        (setup, "100", "0", http, true),
        (setup, "100", "0", jabber, false),
        ("", "0", "0", http, false),
    ] {
        let (yaml, told) = made(&plan_with(load, "", &(session("a", a, http) + &session("b", b, inner))));
        assert_eq!(yaml.contains("spacing: poisson"), is_driven, "{yaml}");
        assert_eq!(told.iter().any(|one| one.is_request), !is_driven, "{told:?}");
    }
}

#[test]
fn pauses_are_as_the_options_say() {
    let all = "<thinktime/><thinktime value=\"4\"/><thinktime value=\"4\" random=\"false\"/><thinktime min=\"2\" max=\"5\"/><request><http url=\"/\"/></request>";
    let session = format!("<session name=\"s\" probability=\"100\" type=\"ts_http\">{all}</session>");
    let of = |option: &str| {
        let (yaml, told) = made(&plan_with(PHASE, option, &session));
        assert_eq!(told, []);
        let thinks: Vec<String> =
            yaml.lines().filter_map(|line| Some(line.split_once("- think: ")?.1.to_owned())).collect();
        thinks.join(" ")
    };
    assert_eq!(
        of("<option name=\"thinktime\" value=\"3\" random=\"true\" override=\"false\"/>"),
        "{exponential: 3s} {exponential: 4s} 4s {between: [2s, 5s]}"
    );
    assert_eq!(of("<option name=\"thinktime\" value=\"3\" override=\"true\"/>"), "3s 3s 3s 3s");
    assert_eq!(
        of("<option name=\"thinktime\" min=\"1\" max=\"2\" override=\"true\"/>"),
        ["{between: [1s, 2s]}"; 4].join(" ")
    );
}

#[test]
fn loops_and_conditions_are_done_as_often() {
    let made = steps(
        "<for from=\"1\" to=\"3\" var=\"n\"><request subst=\"true\"><http url=\"/n/%%_n%%\"/></request></for>\
         <for from=\"0\" to=\"5\" incr=\"2\" var=\"m\"><request subst=\"true\"><http url=\"/m/%%_m%%\"/></request></for>\
         <for from=\"0\" to=\"9\" var=\"i\"><request><http url=\"/i\"/></request></for>\
         <setdynvars sourcetype=\"random_number\" start=\"3\" end=\"32\"><var name=\"to\"/></setdynvars>\
         <for from=\"1\" to=\"%%_to%%\" var=\"k\"><request><http url=\"/k\"/></request></for>\
         <repeat name=\"rep\" max_repeat=\"4\"><request><dyn_variable name=\"result\" re=\"Result: (.*)\"/><http url=\"/r\"/></request>\
         <until var=\"result\" eq=\"5\"/></repeat>\
         <if var=\"result\" gte=\"5\"><request><http url=\"/if\"/></request></if>",
    );
    assert_eq!(
        made,
        r#"- repeat: 3
  as: n_round
  steps:
    - set: {"n": "${n_round + 1}"}
    - GET: /n/${n}
- repeat: 4
  as: m_round
  steps:
    - set: {m: "${m_round * 2}"}
    - GET: /m/${m}
- repeat: 10
  as: i
  steps:
    - GET: /i
- set: {to: "${random(3, 32)}"}
- repeat: ${max(to - 1, 0) + 1}
  as: k_round
  steps:
    - set: {k: "${k_round + 1}"}
    - GET: /k
- set: {rep: true}
- repeat: 5
  steps:
    - when: ${rep}
      steps:
        - GET: /r
          extract: {result: {regex: "Result: (.*)"}}
        - set: {rep: "${exists(result) and not (result == '5')}"}
- when: ${result >= 5}
  steps:
    - GET: /if
"#
    );
    assert_told(
        "<if var=\"nowhere\" eq=\"1\"><request><http url=\"/x\"/></request></if>",
        "\"nowhere\", which is not set",
        false,
    );
    assert_told(
        "<for from=\"a\" to=\"2\" var=\"x\"><request><http url=\"/x\"/></request></for>",
        "bounds cannot be read",
        true,
    );
    assert_told(
        "<for from=\"1\" to=\"2\" incr=\"0\" var=\"x\"><request><http url=\"/x\"/></request></for>",
        "has no end",
        true,
    );
    assert_told(
        "<repeat name=\"x\"><request><http url=\"/x\"/></request></repeat>",
        "there is no while or until",
        true,
    );
}

#[test]
fn values_of_answers_are_variables() {
    let made = steps(
        "<request><dyn_variable name=\"title\" re=\"&lt;title&gt;(.*)&lt;/title&gt;\"/><dyn_variable name=\"old\" regexp=\"n=\\(.*\\);\"/>\
         <dyn_variable name=\"form\"/><dyn_variable name=\"where\" header=\"location\"/><dyn_variable name=\"sid\" re=\"Set-Cookie: sid=([^;]*)\"/>\
         <dyn_variable name=\"id\" jsonpath=\"a.b[0].id\"/><dyn_variable name=\"all\" jsonpath=\"a[?name=x].items[*].id\"/>\
         <dyn_variable name=\"status\" re=\"HTTP/1.1 ([0-9]+)\"/><dyn_variable name=\"list\" jsonpath=\"list\"/><http url=\"/\"/></request>\
         <foreach name=\"one\" in=\"list\" include=\"^/.*$\"><request subst=\"true\"><http url=\"%%_one%%\"/></request></foreach>\
         <request subst=\"true\"><http url=\"/%%_id%%?s=%%_sid%%\" method=\"POST\" contents=\"t=%%_title%%\"/></request>",
    );
    assert_eq!(
        made,
        r#"- GET: /
  extract:
    title: {regex: <title>(.*)</title>}
    old: {regex: n=(.*);}
    form: {regex: 'name=["'']form["''][^>]*\svalue=["'']([^"'']*)["'']'}
    where: {header: location}
    sid: {cookie: sid}
    id: $.a.b[0].id
    all: {all: "$.a[?@.name == 'x'].items[*].id"}
    status: status
    list: {all: "$.list[*]"}
- each: one in ${list}
  steps:
    - when: ${starts_with(one, '/')}
      steps:
        - GET: ${one}
- POST: /${path(id)}?s=${path(sid)}
  label: POST /[id]
  headers: {Content-Type: application/x-www-form-urlencoded}
  body: t=${title}
"#
    );
    assert_told(
        "<request><dyn_variable name=\"x\" xpath=\"//a/@href\"/><http url=\"/\"/></request>",
        "from xpath \"//a/@href\"",
        true,
    );
    assert_told(
        "<request><dyn_variable name=\"x\" re=\"(?=a)b\"/><http url=\"/\"/></request>",
        "from re",
        true,
    );
    assert_told(
        "<request subst=\"true\"><http url=\"/%%_x%%\"/></request>",
        "\"undefined\" for the variable \"x\"",
        false,
    );
    assert_told("<request subst=\"true\"><http url=\"/%%own:code%%\"/></request>", "called own:code", true);
    // without subst a mark is a text
    assert!(steps("<request><http url=\"/%%_x%%\"/></request>").contains("- GET: /%%_x%%\n"));
}

#[test]
fn what_is_looked_for_is_checked_or_decides() {
    let made = steps(
        "<request><match do=\"continue\" when=\"match\">Welcome !</match><match do=\"log\" when=\"match\">Err[or]+</match><http url=\"/a\"/></request>\
         <request><match do=\"dump\" when=\"nomatch\">200 OK</match><match do=\"continue\">X-A: b.*</match><http url=\"/b\"/></request>\
         <request><match do=\"abort\" when=\"nomatch\">in</match><http url=\"/c\"/></request>\
         <request><match do=\"loop\" sleep_loop=\"2\" max_loop=\"3\" when=\"match\">Retry</match><http url=\"/d\"/></request>",
    );
    assert_eq!(
        made,
        r#"- GET: /a
  extract: {found: {regex: "Err[or]+", when missing: clear}}
  check: {body: {contains: Welcome !}, that: not exists(found)}
- GET: /b
  check: {status: 200, header: {x-a: {matches: b.*}}}
- GET: /c
  extract: {found_2: {regex: in, when missing: clear}}
  check: {status: 100-599}
- when: ${not exists(found_2)}
  steps:
    - measure: {match_stop: {counter: 1}}
    - end: session
- set: {again: true}
- repeat: 4
  steps:
    - when: ${again}
      steps:
        - GET: /d
          extract: {found_3: {regex: Retry, when missing: clear}}
          check: {status: 100-599}
        - set: {again: "${exists(found_3)}"}
        - when: ${again}
          steps:
            - think: 2s
"#
    );
    assert_told("<request><match do=\"restart\">x</match><http url=\"/\"/></request>", "done restart", true);
    assert_told(
        "<request><match do=\"log\" apply_to_content=\"ts_digest:md5hex\">x</match><http url=\"/\"/></request>",
        "a function of its own",
        false,
    );
    assert_told(
        "<request><match do=\"abort_test\">x</match><http url=\"/\"/></request>",
        "ended the whole test",
        false,
    );
    assert_told("<request><match>(?!x)y</match><http url=\"/\"/></request>", "no counterpart", false);
}

#[test]
fn what_a_step_sets_that_may_not_be_done_is_undefined_behind_it() {
    let made = steps(
        "<request><dyn_variable name=\"c\" re=\"(h)\"/><http url=\"/\"/></request>\
         <if var=\"c\" eq=\"z\"><request><dyn_variable name=\"x\" re=\"(e)\"/><http url=\"/in\"/></request>\
         <request subst=\"true\"><http url=\"/in/%%_x%%\"/></request></if>\
         <request subst=\"true\"><http url=\"/use/%%_x%%/%%_c%%\"/></request>\
         <if var=\"x\" eq=\"z\"><request><http url=\"/perhaps\"/></request></if>\
         <request><dyn_variable name=\"x\" re=\"(o)\"/><http url=\"/\"/></request>\
         <request subst=\"true\"><http url=\"/last/%%_x%%\"/></request>",
    );
    assert!(made.contains("- GET: /in/${path(x)}\n"), "{made}");
    assert!(made.contains("- GET: /use/${path(default(x, 'undefined'))}/${path(c)}\n"), "{made}");
    assert!(made.contains("- when: ${not exists(x) or x == 'z'}\n  steps:\n    - GET: /perhaps\n"), "{made}");
    assert!(made.contains("- GET: /last/${path(x)}\n"), "{made}");
}

#[test]
fn files_become_feeders() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("users.csv"), "ann;secret-1;x\nbob;secret-2;y\n").unwrap();
    std::fs::write(folder.path().join("ragged.csv"), "ann;1\nbob\n").unwrap();
    let options = "<option name=\"file_server\" id=\"db\" value=\"users.csv\"/><option name=\"file_server\" id=\"odd\" value=\"ragged.csv\"/>\
                   <option name=\"file_server\" id=\"none\" value=\"/nowhere/none.csv\"/><option name=\"file_server\" id=\"far\" value=\"/home/me/users.csv\"/>";
    let of = |steps: &str| {
        let session = format!(
            "<session name=\"s\" probability=\"100\" type=\"ts_http\">{steps}<request><http url=\"/\"/></request></session>"
        );
        made_in(folder.path(), &plan_with(PHASE, options, &session))
    };
    let file = |id: &str, more: &str, names: &[&str]| {
        let vars: String = names.iter().map(|name| format!("<var name=\"{name}\"/>")).collect();
        format!("<setdynvars sourcetype=\"file\" fileid=\"{id}\" delimiter=\";\" {more}>{vars}</setdynvars>")
    };
    let (yaml, told) = of(&file("db", "order=\"iter\"", &["user", "pass"]));
    assert_eq!(told, []);
    assert!(
        yaml.contains("feeders:\n  db: {file: users.csv, header: [user, pass, db_3], delimiter: ;}\n"),
        "{yaml}"
    );
    assert!(yaml.contains("- take: db\n"), "{yaml}");
    // where it lay on another machine does not matter
    let (yaml, told) = of(&file("far", "", &["user", "pass"]));
    assert!(told.is_empty() && yaml.contains("far: {file: users.csv, "), "{yaml}");
    // other names for the same lines: one cursor
    let (yaml, told) = of(&(file("db", "", &["a", "b", "c", "d"])
        + &file("db", "", &["e"])
        + &file("db", "order=\"random\"", &["a", "b", "c", "d"])));
    assert_eq!(told, []);
    assert!(yaml.contains("header: [db_1, db_2, db_3]") && yaml.contains("order: random"), "{yaml}");
    assert!(
        yaml.contains("a: ${db_1}\n          b: ${db_2}\n          c: ${db_3}\n          d: \"\"\n"),
        "{yaml}"
    );
    assert!(yaml.contains("- set: {e: \"${concat(db_1, db_2, db_3)}\"}"), "{yaml}");
    for (id, says) in [
        ("odd", "another number of cells in line 2"),
        ("none", "which is not in the plan's folder"),
        ("who", "of which no option tells"),
    ] {
        let (yaml, told) = of(&file(id, "", &["a"]));
        assert!(told.iter().any(|one| one.would.contains(says) && one.is_request), "{told:?}");
        assert!(yaml.contains("a_value: FILL-IN"), "{yaml}");
    }
}

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

#[test]
fn machines_are_watched_where_that_can_be() {
    let text = plan("<request><http url=\"/\"/></request>").replace(
        "<load>",
        "<monitoring><monitor host=\"db1\"/><monitor host=\"web\" type=\"snmp\"/><monitor host=\"localhost\" type=\"erlang\"/></monitoring>\n<load>",
    );
    let (yaml, told) = made(&text);
    assert!(yaml.contains("watch:\n  - {agent: ssh db1, when: \"${watch}\"}\n"), "{yaml}");
    assert_eq!(told.len(), 3, "{told:?}");
    assert!(told.iter().all(|one| !one.is_request));
}

#[test]
fn entities_may_be_files_beside_the_plan() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("login.xml"), "<request><http url=\"&begin;/login\"/></request>")
        .unwrap();
    let text = plan("&login;<request><http url=\"&begin;/a\"/></request>")
        .replace(".dtd\">", ".dtd\" [<!ENTITY login SYSTEM \"login.xml\"><!ENTITY begin \"/v1\">]>");
    let (yaml, told) = made_in(folder.path(), &text);
    assert_eq!(told, []);
    assert_eq!(of_sessions(&yaml), "- GET: /v1/login\n- GET: /v1/a\n");
    for elsewhere in ["none.xml", "../login.xml", "/etc/hostname"] {
        let error = read_in(folder.path(), &text.replace("login.xml", elsewhere)).unwrap_err();
        let says = format!("line 9: the entity &login; \"{elsewhere}\" is not a file beside the plan");
        assert!(error.to_string().contains(&says), "{error}");
    }
}

#[test]
fn requests_of_very_many_parts_are_bounded() {
    let header: String = (0..1_001).map(|n| format!("<http_header name=\"h{n}\" value=\"1\"/>")).collect();
    assert_told(&format!("<request><http url=\"/\">{header}</http></request>"), "more than 1000 parts", true);
    let fields: String = (0..2_000).map(|n| format!("&amp;f{n}=1")).collect();
    let made =
        steps(&format!("<request><http url=\"/\" method=\"POST\" contents=\"a=1{fields}\"/></request>"));
    assert!(made.contains("body: a=1&f0=1&") && !made.contains("form:"), "{made}");
}

#[test]
fn only_files_of_the_plans_folder_are_read() {
    let folder = tempfile::tempdir().unwrap();
    let plans = folder.path().join("plans");
    std::fs::create_dir_all(plans.join("data")).unwrap();
    for (file, text) in [("secret.txt", "a;b"), ("plans/body.txt", "text"), ("plans/data/deep.txt", "text")] {
        std::fs::write(folder.path().join(file), text).unwrap();
    }
    std::os::unix::fs::symlink(folder.path().join("secret.txt"), plans.join("link.txt")).unwrap();
    let whole = |name: &str| plans.join(name).display().to_string();
    for (name, ours) in [
        ("body.txt".to_owned(), "body.txt"),
        ("data/../body.txt".to_owned(), "body.txt"),
        ("data/deep.txt".to_owned(), "data/deep.txt"),
        (whole("data/deep.txt"), "data/deep.txt"),
        ("/home/me/body.txt".to_owned(), "body.txt"),
        ("C:\\plans\\body.txt".to_owned(), "body.txt"),
    ] {
        let text = plan(&format!(
            "<request><http url=\"/\" method=\"POST\" contents_from_file=\"{name}\"/></request>"
        ));
        let (yaml, told) = made_in(&plans, &text);
        assert!(told.is_empty() && yaml.contains(&format!("body: {{file: {ours}}}")), "{told:?}\n{yaml}");
    }
    for name in ["/etc/passwd", "/etc/hostname", "../secret.txt", "link.txt", "data", ""] {
        let options = format!("<option name=\"file_server\" id=\"f\" value=\"{name}\"/>");
        let session = format!(
            "<session name=\"s\" probability=\"100\" type=\"ts_http\"><setdynvars sourcetype=\"file\" fileid=\"f\"><var name=\"u\"/>\
             </setdynvars><request><http url=\"/\" method=\"POST\" contents_from_file=\"{name}\"/></request></session>"
        );
        let (yaml, told) = made_in(&plans, &plan_with(PHASE, &options, &session));
        let expected = if name.is_empty() { 1 } else { 2 };
        let count =
            told.iter().filter(|one| one.is_request && one.would.contains("in the plan's folder")).count();
        assert!(count == expected && !yaml.contains("file:"), "{name}: {told:?}\n{yaml}");
    }
}

/// A plan with nearly all there is.
fn rich() -> String {
    let options = "<option name=\"thinktime\" value=\"3\"/><option name=\"user_agent\" type=\"ts_http\"><user_agent probability=\"60\">A</user_agent>\
                   <user_agent probability=\"40\">B</user_agent></option>";
    let session = "<session name=\"s\" probability=\"100\" type=\"ts_http\">\
        <setdynvars sourcetype=\"random_string\" length=\"5\"><var name=\"r\"/></setdynvars>\
        <transaction name=\"t\"><request subst=\"true\"><match>x</match><dyn_variable name=\"d\" jsonpath=\"a\"/><http url=\"/%%_r%%\"><soap action=\"a\"/>\
        <http_header name=\"X\" value=\"y\"/></http></request><thinktime value=\"1\"/></transaction>\
        <for from=\"1\" to=\"2\" var=\"i\"><request><http url=\"/i\"/></request></for>\
        <repeat name=\"p\"><request><http url=\"/p\"/></request><while var=\"d\" eq=\"1\"/></repeat>\
        <if var=\"d\" eq=\"1\"><request><http url=\"/f\"/></request></if><foreach name=\"e\" in=\"d\"><request><http url=\"/e\"/></request></foreach>\
        <request><jabber type=\"chat\" ack=\"no_ack\"/></request></session>";
    let text = plan_with(
        &format!(
            "{PHASE}<arrivalphase phase=\"2\" duration=\"9\" unit=\"second\"><session_setup name=\"s\" probability=\"100\"/><users interarrival=\"1\" unit=\"second\"/></arrivalphase>"
        ),
        options,
        session,
    );
    text.replace(
        "<load>",
        "<monitoring><monitor host=\"db\" type=\"snmp\"><snmp version=\"v2\"/></monitor></monitoring><load>",
    )
}

proptest! {
    /// Wherever something stands that is not known, it is told, and what is made is right all the same.
    #[test]
    fn what_is_not_known_is_told_wherever_it_stands(places in proptest::collection::vec(0usize..200, 1..4), attribute in 0usize..200) {
        let text = rich();
        let body = text.find("<tsung").unwrap();
        let inside: Vec<usize> = text.match_indices('>').map(|(at, _)| at + 1).filter(|at| *at > body && *at < text.len() - 2).collect();
        let mut places: Vec<usize> = places.iter().map(|place| inside[place % inside.len()]).collect();
        places.sort_unstable();
        places.dedup();
        let mut text = text;
        for (number, place) in places.iter().enumerate().rev() {
            text.insert_str(*place, &format!("<odd{number} name=\"n{number}\"/>"));
        }
        let tags: Vec<usize> = text.match_indices("<server host").map(|(at, _)| at + 7)
            .chain(text.match_indices("<http url").map(|(at, _)| at + 5))
            .chain(text.match_indices("<thinktime").map(|(at, _)| at + 10))
            .chain(text.match_indices("<for from").map(|(at, _)| at + 4)).collect();
        text.insert_str(tags[attribute % tags.len()], " strange=\"1\"");
        let root = crate::xml::parse(&text).unwrap();
        let (yaml, told) = made(&text);
        for number in 0..places.len() {
            let name = format!("<odd{number} n{number}>");
            // what stands in a request of another protocol is told with it
            let is_in_jabber = within(&root, "jabber", &format!("odd{number}")) || within(&root, "snmp", &format!("odd{number}"));
            let count = told.iter().filter(|one| one.element == name).count();
            prop_assert!(count == 1 || is_in_jabber && count == 0, "{}: {:?}\n{}", name, told, yaml);
        }
        prop_assert!(told.iter().any(|one| one.would.contains("strange=\"1\"")), "{:?}", told);
    }

    #[test]
    fn steps_within_each_other_are_read(steps in within_each_other()) {
        made(&plan(&format!("{steps}<request><http url=\"/\"/></request>")));
    }

    #[test]
    fn any_steps_are_read_or_refused(parts in proptest::collection::vec(proptest::sample::select(PARTS), 0..8)) {
        let text = plan(&format!("{}<request><http url=\"/\"/></request>", parts.concat()));
        if crate::xml::parse(&text).is_ok() {
            made(&text);
        }
    }
}

/// Steps, and steps within them.
fn within_each_other() -> impl Strategy<Value = String> {
    let is_whole = |part: &&str| crate::xml::parse(&format!("<a>{part}</a>")).is_ok();
    let whole: Vec<&str> = PARTS.iter().copied().filter(is_whole).collect();
    let leaf = proptest::sample::select(whole).prop_map(str::to_owned);
    leaf.prop_recursive(16, 80, 3, |inner| {
        let around = proptest::sample::select(AROUND);
        (around, proptest::collection::vec(inner, 0..3))
            .prop_map(|((begin, end), inner)| format!("{begin}{}{end}", inner.concat()))
    })
}

/// What stands around steps.
const AROUND: &[(&str, &str)] = &[
    ("<for from=\"1\" to=\"3\" var=\"i\">", "</for>"),
    ("<for from=\"0\" to=\"%%_v%%\" incr=\"2\" var=\"v\">", "</for>"),
    ("<if var=\"v\" eq=\"1\">", "</if>"),
    ("<if var=\"v\" eq=\"a}b${c'\\\">", "</if>"),
    ("<if var=\"nowhere\" gt=\"1\">", "</if>"),
    ("<foreach name=\"e\" in=\"in\" include=\"^a\">", "</foreach>"),
    ("<foreach name=\"v\" in=\"v\">", "</foreach>"),
    ("<transaction name=\"t\">", "</transaction>"),
    ("<repeat name=\"r\" max_repeat=\"3\">", "<while var=\"v\" neq=\"2\"/></repeat>"),
    ("<repeat name=\"r\">", "<until var=\"i\" gte=\"2\"/></repeat>"),
];

/// Parts of a session, right or not.
const PARTS: &[&str] = &[
    "<request>",
    "</request>",
    "<http url=\"/a?b=%%_v%%&amp;c=${d}\" method=\"POST\" contents=\"a=$%%_v%%&amp;b\"/>",
    "<request subst=\"true\"><http url=\"%%_v%%\" contents=\"x\" method=\"PUT\"/></request>",
    "<request subst=\"true\"><http url=\"http://h/%%_v%%/%%a:b%%\"/></request>",
    "<setdynvars sourcetype=\"value\" value=\"${x} '\\\"><var name=\"v\"/></setdynvars>",
    "<setdynvars sourcetype=\"random_number\" start=\"9\" end=\"1\"><var name=\"w\"/></setdynvars>",
    "<request><dyn_variable name=\"v\" re=\"a(${b\"/><dyn_variable name=\"in\" jsonpath=\"a-b['c\"/><http url=\"/\"/></request>",
    "<for from=\"1\" to=\"%%_v%%\" incr=\"3\" var=\"v\">",
    "</for>",
    "<if var=\"v[2]\" neq=\"it's\">",
    "</if>",
    "<foreach name=\"v\" in=\"v\" exclude=\"a\">",
    "</foreach>",
    "<transaction name=\"t ${u}\">",
    "</transaction>",
    "<repeat name=\"v\" max_repeat=\"2\">",
    "<until var=\"v\" eq=\"$\"/></repeat>",
    "<thinktime value=\"%%_v%%\"/>",
    "<thinktime/>",
    "<request><match do=\"loop\" when=\"nomatch\">a.c</match><match do=\"abort\">${x}</match><http url=\"/m\"/></request>",
    "<request><websocket type=\"connect\" path=\"p%%_v%%\"/></request>",
    "<request subst=\"true\"><websocket type=\"message\">%%_v%%</websocket></request>",
    "<request><dyn_variable name=\"v\" jsonpath=\"a\"/><websocket type=\"message\" ack=\"no_ack\">x</websocket></request>",
    "<request><dyn_variable name=\"in\" jsonpath=\"a[*]\"/><match>x</match><websocket type=\"message\" frame=\"text\">%%_v%%</websocket></request>",
    "<request><websocket type=\"close\"/></request>",
    "<request tag=\"a\"><http url=\"/tag\"/></request><request tag=\"b ${c}\"><http url=\"/tag\"/></request><request><http url=\"/tag\"/></request>",
    "<request><http url=\"/é ü?é=%zz#f\" method=\"PROPFIND\" contents=\"é\" content_type=\"text/plain; charset=${x}\"/></request>",
    "<request><http url=\"/h\"><http_header name=\"Host\" value=\"other\"/><http_header name=\"Content-Length\" value=\"5\"/></http></request>",
    "<request><http url=\"/h\"><http_header name=\"Connection\" value=\"close\"/><http_header name=\"Transfer-Encoding\" value=\"chunked\"/></http></request>",
    "<request><http url=\"/h\"><http_header name=\"bad name:\" value=\"é\"/><http_header name=\"Cookie\" value=\"a=b\"/><add_cookie key=\"k\" value=\"v\"/></http></request>",
    "<request><http url=\"/h\" method=\"GET \"/></request><request><http url=\"//\" method=\"get\"/></request><request><http url=\"http://[::1]:x/\"/></request>",
    "<request><http url=\"/a\" method=\"POST\" content_type=\"application/json\" contents=\"[1.50, 1e400, {&quot;a&quot;:1,&quot;a&quot;:2}]\"/></request>",
    "<request><http url=\"/a\" method=\"POST\" content_type=\"application/json\" contents=\"{&quot;${a&quot;: &quot;$&quot;, &quot;b&quot;: [null, true, -0.0]}\"/></request>",
    "<abort/>",
    "<change_type new_type=\"ts_http\" host=\"x\" port=\"1\" server_type=\"tcp\"/>",
];

fn within(element: &Element, outer: &str, name: &str) -> bool {
    fn has(element: &Element, name: &str) -> bool {
        element.children.iter().any(|child| child.name == name || has(child, name))
    }
    element.name == outer && has(element, name)
        || element.children.iter().any(|child| within(child, outer, name))
}
