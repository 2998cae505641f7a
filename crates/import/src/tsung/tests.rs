//! Plans of Tsung as scenarios.

use std::path::Path;

use super::*;

mod any;
mod requests;

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
