//! What a run watches though it does not start it.

use crate::support;
use tidemark_scenario::Plan;
use tidemark_scenario::plan::{Agent, Watch, Watched};

fn check(system: &str, watch: &str, more: &str) -> (Option<Plan>, String) {
    let text = format!(
        "settings: {{there: 'yes'}}\nsystem: {system}\nwatch:\n{watch}\nsessions: {{a: {{steps: [{{GET: '/${{there}}'}}]}}}}\n\
         load: {{users: 1, hold: 60s}}\n{more}"
    );
    let (plan, told) = support::checked(&text);
    (plan, told.to_string())
}

const HERE: &str = "{url: 'http://127.0.0.1:8080'}";

fn plan(watch: &str) -> Plan {
    let (plan, told) = check(HERE, watch, "");
    plan.unwrap_or_else(|| panic!("{told}"))
}

#[test]
fn every_kind_is_read_and_has_a_name() {
    let plan = plan(
        "  - {port: 8080}
  - {port: 5432}
  - {pid: 12}
  - {name: nginx, as: front, faults: true}
  - {cgroup: /system.slice/x.service}
  - {unit: y.service}
  - {container: 0123456789ab}
  - {metrics: 'http://db1:9100/metrics', series: [node_load1, 'a_total{b=\"c\"}']}
  - {agent: ssh db2, name: postgres}
  - {agent: [kubectl, exec, -i, db-0, --], as: pod, program: /opt/tidemark}
  - {agent: [kubectl, exec, -i, db-0, --], program: /opt/tidemark, port: 80}
  - {name: nobody, when: \"${there == 'no'}\"}",
    );
    assert_eq!(
        plan.watched_names(),
        [
            "system",
            "port 5432",
            "pid 12",
            "front",
            "x.service",
            "y.service",
            "0123456789ab",
            "db1:9100",
            "postgres at db2",
            "pod",
            "port 80 at db-0"
        ]
    );
    assert_eq!(plan.watch[0], Watch::of(Watched::Port(8080)));
    assert!(plan.watch[3].faults && !plan.watch[0].faults);
    let Watched::Metrics { series, .. } = &plan.watch[7].what else { panic!("{:?}", plan.watch[7]) };
    assert_eq!(series[1].to_string(), "a_total{b=\"c\"}");
    assert_eq!(plan.watch[8].agent, Some(Agent::new(vec!["ssh".into(), "db2".into()])));
    assert_eq!(plan.watch[9].what, Watched::Machine);
}

#[test]
fn who_listens_at_the_port_of_the_system_is_the_system_only_on_this_machine() {
    for (url, name) in [
        ("http://localhost:8080", "system"),
        ("http://[::1]:8080/a", "system"),
        ("http://shop.test:8080", "port 8080"),
        ("http://127.0.0.1:8081", "port 8080"),
        ("redis://127.0.0.1:8080", "system"),
    ] {
        let mut plan = plan("  - {port: 8080}");
        plan.drive_instead(url).unwrap();
        assert_eq!(plan.watched_names(), [name], "{url}");
    }
}

#[test]
fn mistakes_are_told_where_they_stand() {
    for (watch, said) in [
        ("  - {}", "t.yaml:4:5: what is watched needs one of the keys pid, name, port"),
        ("  - {pid: 0}", "t.yaml:4:11: 0 is too small"),
        ("  - {port: 70000}", "up to 65535"),
        ("  - {port: 1, name: x}", "name"),
        ("  - {name: /bin/x}", "t.yaml:4:12: \"/bin/x\" is not a name"),
        ("  - {cgroup: ../x}", "is not a control group"),
        ("  - {metrics: 'ftp://x'}", "is not a page of metrics"),
        ("  - {metrics: 'http://x', series: ['a{']}", "its } is missing"),
        ("  - {name: x, series: [a]}", "t.yaml:4:15: \"series\" belongs to \"metrics\""),
        ("  - {name: x, program: a}", "\"program\" belongs to \"agent\""),
        ("  - {agent: ssh x, name: 'a;b'}", "goes through another machine's shell"),
        ("  - {agent: ssh x, metrics: 'http://x'}", "a page of metrics is asked from here"),
        ("  - {agent: ssh x, faults: true}", "faults are for processes of this machine"),
        ("  - {metrics: 'http://x', faults: true}", "faults are for processes of this machine"),
        ("  - {name: x}\n  - {unit: x}", "two of what is watched are called \"x\""),
        ("  - {name: db}\n  - {agent: ssh db, port: 1}", "two of what is watched are called \"db\""),
        ("  - {name: driver}", "\"driver\" is what this run starts, or its load generator"),
    ] {
        let (plan, told) = check(HERE, watch, "");
        assert!(plan.is_none() && told.contains(said), "{watch}\nshould say {said}:\n{told}");
    }
    let (plan, told) = check("{serve: airline}", "  - {name: x, as: system}", "");
    assert!(plan.is_none() && told.contains("\"system\" is what this run starts"), "{told}");
}

#[test]
fn faults_are_aimed_at_what_is_watched_only_where_that_is_said() {
    let faults = |watch: &str, fault: &str| check(HERE, watch, &format!("faults: [{fault}]"));
    let ours = "  - {port: 8080, faults: true}\n  - {name: nginx, faults: true}\n  - {name: seen}";
    let (plan, told) = faults(ours, "{at: 1s, freeze: system, for: 2s}, {at: 5s, kill: nginx}");
    let texts: Vec<String> =
        plan.unwrap_or_else(|| panic!("{told}")).faults.iter().map(ToString::to_string).collect();
    assert_eq!(texts, ["freeze system for 2s", "kill nginx"]);
    for (fault, said) in [
        ("{at: 1s, kill: seen}", "\"seen\" is only watched; `faults: true` beside it"),
        ("{at: 1s, kill: nginx, restart after: 1s}", "nobody here starts again what is only watched"),
        ("{at: 1s, slow: nginx, latency: 1ms, for: 1s}", "can be frozen, stopped or killed"),
        ("{at: 1s, fill: system, for: 1s}", "can be frozen, stopped or killed"),
        ("{at: 1s, kill: ngnx}", "did you mean nginx?"),
    ] {
        let (plan, told) = faults(ours, fault);
        assert!(plan.is_none() && told.contains(said), "{fault}\nshould say {said}:\n{told}");
    }
}
