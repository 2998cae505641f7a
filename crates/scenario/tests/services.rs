//! Services: parts of the system in several instances; what a scenario says, and what is told about mistakes.

use std::path::Path;

use tidemark_scenario::plan::{Balancer, Fault, FaultKind, SystemOrigin};
use tidemark_scenario::{Plan, check_text, service_facts};

fn check(text: &str, settings: &[(&str, &str)]) -> (Option<Plan>, String) {
    let text = format!("{text}\nsessions: {{a: {{steps: [{{GET: /}}]}}}}\nload: {{users: 1, hold: 60s}}\n");
    let settings: Vec<(String, String)> = settings.iter().map(|(k, v)| ((*k).into(), (*v).into())).collect();
    let (plan, diagnostics) = check_text("t.yaml", &text, Path::new("."), &settings);
    let lines = diagnostics.items().iter().map(|item| item.to_string());
    let first = |text: String| text.lines().next().unwrap_or_default().to_owned();
    (plan, lines.map(first).collect::<Vec<_>>().join("\n"))
}

const TWO: &str = "
settings: {n: 3, split: true}
services:
  auth: {command: 'a --port {port}', instances: 2, when: '${split}'}
  web:
    command: 'b {port} {instance}'
    env: {AUTH: \"${if(split, '{services.auth.urls}', '')}\"}
    instances: ${n}
    balancer: nginx
system: {service: web}
";

#[test]
fn what_is_driven_is_one_of_them() {
    let (plan, told) = check(TWO, &[]);
    assert_eq!(told, "");
    let plan = plan.unwrap();
    let tier = &plan.system.tier;
    assert_eq!((tier.name.as_str(), tier.instances, tier.balancer), ("web", 3, Balancer::Nginx));
    assert!(matches!(&plan.system.origin, SystemOrigin::Command(words) if words[0] == "b"));
    let auth: Vec<&str> = service_facts(&plan.system.launch.env["AUTH"]).map(|fact| fact.store).collect();
    assert_eq!(auth, ["auth"]);
    assert_eq!(plan.services.len(), 1);
    assert_eq!(plan.services[0].tier.names(), ["auth", "auth.1", "auth.2"]);
    assert_eq!(tier.names(), ["web", "web.1", "web.2", "web.3", "web-balancer"]);
    let (plan, told) = check(TWO, &[("split", "false"), ("n", "1")]);
    assert_eq!(told, "");
    let plan = plan.unwrap();
    assert!(plan.services.is_empty() && !plan.system.tier.is_single(), "a balancer is there");
}

#[test]
fn a_url_takes_the_place_of_all_of_them() {
    let mut plan = check(TWO, &[]).0.unwrap();
    plan.drive_instead("http://127.0.0.1:1").unwrap();
    assert!(plan.services.is_empty() && plan.system.tier.is_single());
}

#[test]
fn instances_are_replaced_and_scaled() {
    let faults = "
faults:
  - {at: 1s, roll: web}
  - {at: 10s, scale: auth, instances: 5}
  - {at: 20s, kill: auth.2, restart after: 1s}
  - {at: 30s, freeze: web-balancer, for: 1s}
  - {at: 40s, kill: system, restart after: 1s}
  - {at: 50s, slow: web, latency: 5ms, for: 1s}
";
    let (plan, told) = check(&format!("{TWO}{faults}"), &[]);
    assert_eq!(told, "");
    let plan = plan.unwrap();
    let texts: Vec<String> = plan.faults.iter().map(Fault::to_string).collect();
    assert_eq!(
        texts,
        [
            "roll web",
            "scale auth to 5",
            "kill auth.2, restart after 1s",
            "freeze web-balancer for 1s",
            "kill web, restart after 1s",
            "slow system by 5ms for 1s"
        ]
    );
    assert_eq!(plan.faults[1].kind, FaultKind::Scale { instances: 5 });
    assert!(plan.faults[0].kind.is_maintenance() && !plan.faults[2].kind.is_maintenance());
    assert_eq!((plan.services[0].tier.instances, plan.services[0].tier.instances_max), (2, 5));
}

#[test]
fn a_roll_that_outlasts_the_load_is_told_of() {
    let told = |at: &str| check(&format!("{TWO}faults: [{{at: {at}, roll: web}}]\n"), &[]);
    assert_eq!(told("55s").1, "");
    let (plan, says) = told("56s");
    assert!(says.contains("this takes at least 5s, and only 4s are left"), "{says}");
    let mut plan = plan.expect("only a warning");
    plan.override_load(None, Some(std::time::Duration::from_secs(61))).unwrap();
    let error = plan.override_load(None, Some(std::time::Duration::from_secs(60))).unwrap_err().to_string();
    assert!(error.contains("takes at least 5s and would not be over within --for 1m"), "{error}");
}

#[test]
fn services_of_which_none_is_driven_are_a_mistake() {
    let (plan, told) = check("services: {auth: {command: 'a {port}'}, web: {command: 'b {port}'}}", &[]);
    assert!(plan.is_none());
    assert!(
        told.contains("nothing says which service requests go to; add `system: {service: web}`"),
        "{told}"
    );
}

#[test]
fn mistakes_name_the_way_out() {
    let with = |service: &str, system: &str, more: &str| {
        check(&format!("services: {{{service}}}\nsystem: {system}\n{more}"), &[]).1
    };
    let web = "web: {command: 'b {port}'}";
    for (service, system, more, says) in [
        (web, "{service: wbe}", "", "t.yaml:2:19: no service is called \"wbe\"; did you mean web?"),
        (web, "{service: web, settings: {a: b}}", "", "move \"settings\" to the service itself"),
        ("system: {command: 'b {port}'}", "{url: 'http://a'}", "", "\"system\" is another part of the run"),
        ("redis: {command: 'b {port}'}", "{url: 'http://a'}", "", "\"redis\" is another part of the run"),
        (
            "web: {command: 'b', port: 80, instances: 2}",
            "{service: web}",
            "",
            "several instances need a port each",
        ),
        (
            "web: {command: 'b {port}', instances: 33}",
            "{service: web}",
            "",
            "33 instances are too many; at most 32",
        ),
        ("web: {command: 'b {port}', balancer: nginy}", "{service: web}", "", "did you mean nginx?"),
        (
            "web: {command: 'b {port} {services.auth.url}'}",
            "{service: web}",
            "",
            "no service is called \"auth\"",
        ),
        (
            "one: {command: 'b {port} {services.two.url}'}, two: {command: 'a {port}'}, web: {command: 'c {port}'}",
            "{service: web}",
            "",
            "\"two\" is started after this; write it further up",
        ),
        (
            "one: {command: 'b {port}'}, web: {command: 'c {port} {services.one.adress}'}",
            "{service: web}",
            "",
            "the service \"one\" has no \"adress\"; it has url, urls",
        ),
        (
            web,
            "{service: web}",
            "faults: [{at: 1s, roll: web}]",
            "\"web\" has one instance, and nobody answers",
        ),
        (
            web,
            "{service: web}",
            "faults: [{at: 1s, roll: wbe}]",
            "\"roll\" needs a service, and none is called \"wbe\"; did you mean web?",
        ),
        (
            "web: {command: 'b {port}', balancer: nginx}",
            "{service: web}",
            "faults: [{at: 1s, roll: web}]",
            "\"web\" has one instance, and nobody answers while it is replaced",
        ),
        (
            "web: {command: 'b {port}', instances: 2}",
            "{service: web}",
            "faults: [{at: 1s, scale: web, instances: 3}]",
            "put a `balancer` in front of it",
        ),
        (
            "web: {command: 'b {port}', instances: 2, balancer: nginx}",
            "{service: web}",
            "faults: [{at: 1s, scale: web}]",
            "\"scale\" needs the key \"instances\"",
        ),
        (
            "web: {command: 'b {port}', instances: 2, balancer: nginx}",
            "{service: web}",
            "faults: [{at: 1s, kill: web.3}]",
            "this run starts nothing named \"web.3\"; did you mean web.1?",
        ),
    ] {
        let told = with(service, system, more);
        assert!(told.contains(says), "{service} {system} {more}: {told}");
    }
}
