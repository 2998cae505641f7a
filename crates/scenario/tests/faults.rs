//! Faults: what a scenario says, what is told about mistakes.

use std::path::Path;
use std::time::Duration;

use crate::support;
use tidemark_scenario::plan::FaultKind;
use tidemark_scenario::{Plan, check_text};

fn check(faults: &str, settings: &[(&str, &str)]) -> (Option<Plan>, String) {
    let text = format!(
        "settings: {{how: kill}}\n\
         system: {{serve: airline}}\n\
         sessions: {{a: {{steps: [{{GET: '/${{how}}'}}]}}}}\n\
         load: {{users: 1, warm-up: 5s, hold: 60s}}\n\
         faults:\n{faults}"
    );
    let settings: Vec<(String, String)> = settings.iter().map(|(k, v)| ((*k).into(), (*v).into())).collect();
    let (plan, diagnostics) = check_text("t.yaml", &text, Path::new("."), &settings);
    let lines = diagnostics.items().iter().map(|item| item.to_string());
    let first = |text: String| text.lines().next().unwrap_or_default().to_owned();
    (plan, lines.map(first).collect::<Vec<_>>().join("\n"))
}

fn told(faults: &str) -> String {
    check(faults, &[]).1
}

#[test]
fn faults_come_in_order_of_time() {
    let (plan, told) = check(
        "  - {at: 30s, freeze: system, for: 1500ms}\n  - {at: 10s, kill: system, restart after: 2s}\n  \
         - {at: 40s, stop: system}\n",
        &[],
    );
    assert_eq!(told, "");
    let faults = plan.unwrap().faults;
    let texts: Vec<String> = faults.iter().map(ToString::to_string).collect();
    assert_eq!(texts, ["kill system, restart after 2s", "freeze system for 1.5s", "stop system"]);
    assert_eq!((faults[0].at, faults[0].kind), (Duration::from_secs(10), FaultKind::Kill));
    assert_eq!((faults[2].lasts, faults[2].until()), (None, None));
}

#[test]
fn a_store_is_asked_for_maintenance() {
    let check = |system: &str, faults: &str| {
        let text = format!(
            "stores: {{cache: {{product: redis}}, other: {{product: postgres}}}}\nsystem: {system}\n\
             sessions: {{a: {{steps: [{{redis: [PING]}}]}}}}\nload: {{users: 1, hold: 60s}}\nfaults: [{faults}]"
        );
        let (plan, diagnostics) = support::checked(&text);
        let told: Vec<String> = diagnostics.items().iter().map(ToString::to_string).collect();
        (plan.map(|plan| plan.faults).unwrap_or_default(), told.join("\n"))
    };
    let both = "{at: 10s, rewrite: cache}, {at: 10s, snapshot: system}, {at: 11s, kill: cache}";
    let (faults, told) = check("{store: cache}", both);
    assert_eq!(told, "");
    let texts: Vec<String> = faults.iter().map(ToString::to_string).collect();
    assert_eq!(texts, ["rewrite cache", "snapshot cache", "kill cache"], "the store that is driven");
    let (faults, told) = check("{url: 'redis://127.0.0.1:1'}", "{at: 1s, rewrite: system}");
    assert_eq!((faults[0].to_string().as_str(), told.as_str()), ("rewrite system", ""));
    for (faults, wanted) in [
        ("{at: 1s, rewrite: other}", "is PostgreSQL; only what speaks"),
        ("{at: 1s, rewrite: nobody}", "starts nothing named \"nobody\""),
        ("{at: 1s, rewrite: cache, for: 2s}", "leave this out"),
        ("{at: 1s, snapshot: cache, restart after: 2s}", "leave this out"),
        ("{at: 1s, freeze: cache, for: 5s}, {at: 2s, rewrite: cache}", "at the same time as"),
    ] {
        let told = check("{store: cache}", faults).1;
        assert!(told.contains(wanted), "{faults}: {told}");
    }
    let told = told_of("{serve: airline}");
    assert!(told.contains("is that of a store"), "{told}");
}

fn told_of(system: &str) -> String {
    let text = format!(
        "system: {system}\nsessions: {{a: {{steps: [{{GET: /}}]}}}}\nload: {{users: 1, hold: 60s}}\n\
         faults: [{{at: 1s, rewrite: system}}]"
    );
    let (_, diagnostics) = support::checked(&text);
    diagnostics.items().iter().map(ToString::to_string).collect()
}

#[test]
fn faults_of_the_link_say_what_they_do() {
    let (plan, told) = check(
        "  - {at: 1s, slow: system, latency: 50ms, bandwidth: 1MiB/s, for: 5s}\n  - {at: 10s, cut: system, for: 2s}\n  \
         - {at: 20s, cut: system, share: 30%, for: 2s}\n",
        &[],
    );
    assert_eq!(told, "");
    let texts: Vec<String> = plan.unwrap().faults.iter().map(ToString::to_string).collect();
    let wanted = [
        "slow system by 50ms to 1MiB/s for 5s",
        "cut system for 2s",
        "cut system, 30% of new connections, for 2s",
    ];
    assert_eq!(texts, wanted);
}

#[test]
fn a_disk_that_is_filled_has_a_size() {
    let (plan, told) = check(
        "  - {at: 1s, fill: system, for: 5s}\n  - {at: 10s, fill: system, disk: 64MiB, for: 2s}\n",
        &[],
    );
    assert_eq!(told, "");
    let faults = plan.unwrap().faults;
    let sizes: Vec<Option<u64>> = faults.iter().map(|fault| fault.kind.disk_bytes()).collect();
    assert_eq!(sizes, [Some(512 << 20), Some(64 << 20)]);
    assert_eq!(faults[0].to_string(), "fill system for 5s");
    let in_memory = "system: {serve: airline, durability: memory}\nsessions: {a: {steps: [{GET: /}]}}\n\
                     load: {users: 1, hold: 9s}\nfaults: [{at: 1s, fill: system, for: 1s}]\n";
    let (plan, diagnostics) = support::checked(in_memory);
    assert!(plan.is_some() && diagnostics.to_string().contains("does not feel a full disk"), "{diagnostics}");
    let command = in_memory.replace("serve: airline", "command: 'x {port}'");
    let (plan, diagnostics) = support::checked(&command);
    assert!(
        plan.is_none() && diagnostics.to_string().contains("started with `serve` can be filled"),
        "{diagnostics}"
    );
}

#[test]
fn stores_have_links_and_disks_too() {
    let text = "stores: {cassandra: {nodes: 3}}\nsystem: {command: 'x {port} {contact}'}\nsettings: {s: none}\n\
                sessions: {a: {steps: [{GET: /}]}}\nload: {users: 1, hold: 60s}\nfaults:\n  \
                - {at: 1s, slow: cassandra, latency: 5ms, for: 1s}\n  - {at: 9s, cut: cassandra.2, for: 1s}\n  \
                - {at: 19s, fill: cassandra.3, disk: 256MiB, for: 1s}\n";
    let (plan, diagnostics) = support::checked(text);
    assert_eq!(plan.unwrap().faults.len(), 3, "{diagnostics}");
    let wrong = text.replace("cassandra.3", "cassandra.4");
    let (plan, diagnostics) = support::checked(&wrong);
    assert!(
        plan.is_none() && diagnostics.to_string().contains("nothing named \"cassandra.4\""),
        "{diagnostics}"
    );
    let small = text.replace("256MiB", "64MiB");
    let (plan, diagnostics) = support::checked(&small);
    assert!(plan.is_none() && diagnostics.to_string().contains("has no room for a store"), "{diagnostics}");
}

#[test]
fn settings_choose_the_faults_that_happen() {
    let text = "  - {at: 1s, kill: system, restart after: 1s, when: \"${how == 'kill'}\"}\n  \
                - {at: 1s, freeze: cassandra, for: 1s, when: \"${how == 'store'}\"}\n";
    let (plan, told) = check(text, &[]);
    assert_eq!((plan.unwrap().faults.len(), told.as_str()), (1, ""));
    let (plan, told) = check(text, &[("how", "none")]);
    assert_eq!((plan.unwrap().faults.len(), told.as_str()), (0, ""));
    assert!(check(text, &[("how", "store")]).1.contains("starts nothing named \"cassandra\""));
}

#[test]
fn mistakes_are_told_where_they_are() {
    for (fault, wanted) in [
        (
            "{at: 1s, kill: systen}",
            "t.yaml:6:20: this run starts nothing named \"systen\"; did you mean system?",
        ),
        (
            "{at: 60s, kill: system}",
            "t.yaml:6:10: only 1m are measured, and faults are due from the beginning",
        ),
        ("{at: 1s, freeze: system}", "t.yaml:6:5: \"freeze\" needs the key \"for\""),
        ("{at: 1s, kill: system, for: 2s}", "t.yaml:6:28: \"kill\" has no \"for\"; write \"restart after\""),
        (
            "{at: 1s, freeze: system, for: 1s, restart after: 2s}",
            "t.yaml:6:39: \"freeze\" has no \"restart after\"",
        ),
        (
            "{at: 1s, kill: system, stop: system}",
            "t.yaml:6:28: a fault has either \"kill\" or \"stop\", not both",
        ),
        ("{at: 1s, slow: system, for: 1s}", "t.yaml:6:5: \"slow\" needs a latency or a bandwidth"),
        (
            "{at: 1s, slow: system, bandwidth: 5MiB, for: 1s}",
            "t.yaml:6:39: \"5MiB\" is not a bandwidth: the /s is missing",
        ),
        (
            "{at: 1s, cut: system, latency: 1s, for: 1s}",
            "t.yaml:6:27: \"cut\" has no \"latency\"; it belongs to \"slow\"",
        ),
        ("{at: 1s, fill: system}", "t.yaml:6:5: \"fill\" needs the key \"for\""),
        (
            "{at: 1s, kill: system, disk: 1GiB}",
            "t.yaml:6:28: \"kill\" has no \"disk\"; it belongs to \"fill\"",
        ),
        (
            "{at: 1s, fill: system, disk: 1KiB, for: 1s}",
            "t.yaml:6:34: a disk of less than 1MiB has no room for a system",
        ),
        ("{kill: system}", "t.yaml:6:5: a fault needs the key \"at\""),
        ("{at: 1s, kil: system}", "t.yaml:6:14: unknown key \"kil\"; did you mean kill?"),
    ] {
        let told = told(&format!("  - {fault}\n"));
        assert!(told.contains(wanted), "{fault}:\n{told}");
    }
    let overlap = told("  - {at: 1s, kill: system}\n  - {at: 50s, freeze: system, for: 1s}\n");
    assert!(overlap.contains("t.yaml:7:5: this is at the same time as `kill system` at 1s"), "{overlap}");
    let warning = told("  - {at: 59s, freeze: system, for: 2s}\n");
    assert!(warning.contains("undone when the load ends"), "{warning}");
}

#[test]
fn a_store_and_each_of_its_nodes_can_be_broken() {
    let text = |fault: &str| {
        format!(
            "system: {{serve: airline}}\nstores: {{cassandra: {{nodes: 3}}}}\nsessions: {{a: {{steps: [{{GET: /}}]}}}}\n\
             load: {{users: 1, hold: 60s}}\nfaults:\n  - {{at: 1s, kill: cassandra.2}}\n  - {fault}\n"
        )
    };
    let load = |fault: &str| support::checked(&text(fault));
    let (plan, diagnostics) = load("{at: 5s, freeze: cassandra.3, for: 5s}");
    assert_eq!(plan.unwrap_or_else(|| panic!("{diagnostics}")).faults.len(), 2);
    let (plan, diagnostics) = load("{at: 5s, stop: cassandra, restart after: 5s}");
    assert!(
        plan.is_none() && diagnostics.to_string().contains("same time as `kill cassandra.2`"),
        "{diagnostics}"
    );
    let (plan, diagnostics) = load("{at: 5s, kill: cassandra.4}");
    assert!(plan.is_none() && diagnostics.to_string().contains("\"cassandra.4\""), "{diagnostics}");
}

#[test]
fn what_was_there_already_is_not_broken() {
    let text = "system: {url: 'http://127.0.0.1:1'}\nsessions: {a: {steps: [{GET: /}]}}\n\
                load: {users: 1, hold: 9s}\nfaults: [{at: 1s, kill: system}]\n";
    let (plan, diagnostics) = support::checked(text);
    assert!(
        plan.is_none() && diagnostics.to_string().contains("only what a run itself starts"),
        "{diagnostics}"
    );
}

#[test]
fn a_shorter_load_must_leave_room_for_them() {
    let mut plan = check("  - {at: 10s, kill: system}\n", &[]).0.unwrap();
    assert!(plan.override_load(None, Some(Duration::from_secs(11))).is_ok());
    let error = plan.override_load(None, Some(Duration::from_secs(10))).unwrap_err().to_string();
    assert!(error.contains("`kill system` is due 10s after"), "{error}");
}
