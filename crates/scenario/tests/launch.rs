//! Systems of one's own: commands, and what is around them.

use std::path::{Path, PathBuf};
use std::time::Duration;

use tidemark_scenario::plan::{Hook, Ready, System, SystemOrigin};
use tidemark_scenario::{Plan, check_text};

fn check(system: &str) -> (Option<Plan>, String) {
    let text = format!(
        "system:\n{system}\nsettings: {{name: pears}}\nsessions: {{a: {{steps: [{{GET: '/${{name}}'}}]}}}}\nload: {{users: 1, hold: 1s}}\n"
    );
    let base = Path::new(env!("CARGO_MANIFEST_DIR"));
    let (plan, told) = check_text("t.yaml", &text, base, &[]);
    (plan, told.to_string())
}

fn system(text: &str) -> System {
    let (plan, told) = check(text);
    assert_eq!(told, "");
    plan.unwrap().system
}

fn hook(words: &[&str], seconds: u64) -> Hook {
    Hook {
        command: words.iter().map(|word| (*word).to_owned()).collect(),
        within: Duration::from_secs(seconds),
    }
}

#[test]
fn a_command_has_an_environment_a_folder_a_port_and_commands_around_it() {
    let system = system(
        "  command: python3 -m http.server \"${name} and plums\"
  env: {PORT: '{port}', FRUIT: '${name}'}
  cwd: tests
  port: 8080
  before:
    - make all
    - [echo, a  b]
    - {command: sh -c 'sleep 1', within: 5s}
  after: [rm -f x]
  ready: {log: \"Listening on {port}\"}",
    );
    let SystemOrigin::Command(words) = &system.origin else { panic!("{system:?}") };
    assert_eq!(words[3], "pears and plums");
    let launch = system.launch;
    let env: Vec<_> = launch.env.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    assert_eq!(env, [("FRUIT", "pears"), ("PORT", "{port}")]);
    assert_eq!(launch.cwd, Some(PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests")));
    assert_eq!(launch.port, Some(8080));
    let before = [hook(&["make", "all"], 60), hook(&["echo", "a  b"], 60), hook(&["sh", "-c", "sleep 1"], 5)];
    assert_eq!((launch.before, launch.after), (before.to_vec(), vec![hook(&["rm", "-f", "x"], 60)]));
    assert_eq!(system.ready, Ready::Prints("Listening on {port}".into()));
}

#[test]
fn what_says_that_it_is_ready() {
    let ready = |more: &str| system(&format!("  command: x {{port}}{more}")).ready;
    let answers = |path: &str, status| Ready::Answers { path: path.into(), status };
    assert_eq!(ready(""), Ready::Connects);
    assert_eq!(ready("\n  health: /up"), answers("/up", (200, 200)));
    assert_eq!(ready("\n  ready: {path: /up}"), answers("/up", (200, 200)));
    assert_eq!(ready("\n  ready: {path: /, status: 2xx}"), answers("/", (200, 299)));
    assert_eq!(system("  serve: airline").ready, answers("/health", (200, 200)));
}

#[test]
fn mistakes_are_told_where_they_stand() {
    for (system, said) in [
        ("  command: x", "t.yaml:2:12: nobody tells this command where to listen; write {port}"),
        ("  command: x {port}\n  cwd: nowhere", "t.yaml:3:8: "),
        ("  command: x {port}\n  port: 70000", "t.yaml:3:9: port out of range: 70000; ports are 1 to 65535"),
        ("  command: x {port}\n  port: 0", "t.yaml:3:9: 0 is too small"),
        ("  command: x {port}\n  env: {A=B: c}", "t.yaml:3:9: the name of a variable has no ="),
        (
            "  command: x {port}\n  before: [\"sh -c 'x\"]",
            "t.yaml:3:12: a quote in this command is not closed",
        ),
        ("  command: x {port}\n  before: []", "t.yaml:3:11: \"before\" is an empty list"),
        (
            "  command: x {port}\n  before: [{within: 5s}]",
            "t.yaml:3:12: a command before or after the system needs",
        ),
        ("  command: x {port}\n  after: [{command: y, witin: 5s}]", "did you mean within?"),
        ("  command: x {port}\n  after: [[x, '{stores.db.url}']]", "t.yaml:3:15: no store is called \"db\""),
        ("  command: x {port}\n  ready: {log: ''}", "t.yaml:3:16: a part of one line is looked for"),
        ("  command: x {port}\n  ready: {log: a, status: 200}", "t.yaml:3:19: a status belongs to"),
        ("  command: x {port}\n  ready: {path: up}", "t.yaml:3:17: a path begins with a slash"),
        (
            "  command: x {port}\n  ready: {status: 200}",
            "t.yaml:3:10: what says that a system is ready needs one of",
        ),
        ("  command: x {port}\n  ready: {path: /, status: 999}", "t.yaml:3:28: \"999\" is not a status"),
        ("  command: x {port}\n  health: /\n  ready: {path: /}", "t.yaml:4:3: a system has either"),
        ("  url: http://a\n  env: {A: b}", "t.yaml:3:3: \"env\" belongs to a system that is a `command`"),
        ("  serve: airline\n  port: 8080", "t.yaml:3:3: \"port\" belongs to a system that is a `command`"),
    ] {
        let (plan, told) = check(system);
        assert!(plan.is_none() && told.contains(said), "{system}\nshould say {said}:\n{told}");
    }
}

#[test]
fn words_that_only_a_shell_understands_are_told_unless_they_are_quoted() {
    let said = "for a shell, and no shell runs this: write sh -c \"…\", or use cwd and env";
    for (command, word) in [
        ("x {port} | tee log", "|"),
        ("x {port} || y", "||"),
        ("cd a && x {port}", "&&"),
        ("x {port} ; y", ";"),
        ("x {port} &", "&"),
        ("x {port} > log 2>&1", ">"),
        ("x {port} 2>&1", "2>&1"),
        ("x {port} >> log", ">>"),
        ("x {port} < in", "<"),
        ("PORT={port} x", "PORT="),
        ("A_1='b c' x {port}", "A_1="),
    ] {
        let (plan, told) = check(&format!("  command: {command}"));
        let said = format!("t.yaml:2:12: `{word}` is {said}");
        assert!(plan.is_none() && told.contains(&said), "{command}\nshould say {said}:\n{told}");
        let (plan, told) = check(&format!("  command: y {{port}}\n  before: [x, {{command: {command:?}}}]"));
        assert!(plan.is_none() && told.contains(&format!("`{word}` is")), "{command}\n{told}");
    }
    for command in [
        "sh -c \"cd a && x {port} | tee log\"",
        "x {port} '|' \"&&\" \\;",
        "x {port} A=b --c=d a&b",
        "./x=y {port}",
        "[x, '{port}', '|', '>']",
        "[A=b, '{port}']",
    ] {
        let (plan, told) = check(&format!("  command: {command}"));
        assert!(plan.is_some(), "{command}\n{told}");
    }
}

#[test]
fn no_secret_of_an_environment_is_written_down() {
    let (plan, told) = check("  command: x {port}\n  env: {DB_PASSWORD: hunter22, COLOUR: blue}");
    let plan = plan.unwrap_or_else(|| panic!("{told}"));
    assert!(plan.source.contains("{DB_PASSWORD: \"***\", COLOUR: blue}"), "{}", plan.source);
    assert_eq!(plan.secrets.masked("it said hunter22 and blue"), "it said *** and blue");
}
