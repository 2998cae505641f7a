//! Services that nobody here started, watched beside the load: a master with its workers, and what stands behind.
#![cfg(target_os = "linux")]

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::{Service, assert_all_good, folder, httpbin, measured, nginx, of};
use crate::program::{PATIENCE, children, wait_until};

#[test]
fn masters_with_their_workers_are_watched_by_their_ports() {
    let port = |url: &str| url.rsplit(':').next().unwrap().to_owned();
    let (own, pages) = (port(&httpbin().url), port(&nginx().url));
    let folder = folder(&format!(
        r#"
system: {{url: "{{httpbin}}"}}
targets: {{pages: {{url: "{{nginx}}"}}}}
watch:
  - {{port: {own}}}
  - {{port: {pages}, as: pages}}
sessions: {{a: {{steps: [{{GET: /get}}, {{GET: /words.txt, at: pages}}]}}}}
load: {{users: 4, hold: 3s}}
"#
    ));
    let summary = measured(folder.path(), &["run", "s.yaml", "--out", "run"]);
    let system = of(&summary, "processes", "name", "system");
    // the worker does the work, not the master
    assert!(system["cpu_s"].as_f64() > Some(0.05) && system["good_per_cpu_s"].is_number(), "{system}");
    let pages = of(&summary, "processes", "name", "pages");
    assert!(
        pages["cpu_s"].as_f64() > Some(0.0) && pages["rss_bytes_max"].as_u64() > Some(1 << 20),
        "{pages}"
    );
    let found: Vec<&str> =
        summary["watched"].as_array().unwrap().iter().filter_map(|one| one["found"].as_str()).collect();
    assert!(found[0].contains("gunicorn") || found[0].contains("python"), "{found:?}");
    assert!(found[1].contains("nginx"), "{found:?}");
}

/// The master of an nginx.
fn master(nginx: &Service) -> u32 {
    let file = nginx.folder.join("nginx.pid");
    let number = || -> Option<u32> { fs::read_to_string(&file).ok()?.trim().parse().ok() };
    wait_until("nginx writes its number", || number().is_some());
    number().unwrap()
}

#[test]
fn a_process_and_all_of_a_name_are_watched() {
    let master = master(nginx());
    let folder = folder(&format!(
        r#"
system: {{url: "{{nginx}}"}}
watch: [{{pid: {master}, as: one}}, {{name: nginx}}]
sessions: {{a: {{steps: [{{GET: /words.txt}}]}}}}
load: {{users: 4, hold: 3s}}
"#
    ));
    let summary = measured(folder.path(), &["run", "s.yaml", "--out", "run"]);
    assert_all_good(&summary);
    for (name, what) in [("one", format!("pid {master}")), ("nginx", "name nginx".to_owned())] {
        // the worker below does the work
        let process = of(&summary, "processes", "name", name);
        assert!(process["cpu_s"].as_f64() > Some(0.0), "{process}");
        assert!(process["rss_bytes_max"].as_u64() > Some(1 << 20), "{process}");
        let watched = of(&summary, "watched", "name", name);
        assert_eq!(watched["what"], what.as_str(), "{watched}");
        assert!(watched["found"].as_str().unwrap().contains("nginx"), "{watched}");
    }
    let report = fs::read_to_string(folder.path().join("run/report.html")).unwrap();
    assert!(report.contains(&format!("pid {master}")));
}

/// A control group of this test in each hierarchy that is there; gone with its processes.
struct Group(Vec<PathBuf>);

impl Group {
    const HIERARCHIES: [&str; 4] = ["unified", "cpuacct", "memory", "pids"];

    /// None where nobody here may make one.
    fn make(name: &str) -> Option<Group> {
        let root = Path::new("/sys/fs/cgroup");
        let hierarchies = match root.join("cgroup.controllers").exists() {
            true => vec![root.to_owned()],
            false => {
                Group::HIERARCHIES.iter().map(|name| root.join(name)).filter(|one| one.is_dir()).collect()
            }
        };
        let mut group = Group(Vec::new());
        for folder in hierarchies.iter().map(|one| one.join(name)) {
            fs::create_dir(&folder).ok()?;
            group.0.push(folder);
        }
        (!group.0.is_empty()).then_some(group)
    }

    /// Whether it may have this process.
    fn takes(&self, process: u32) -> bool {
        self.0.iter().all(|folder| fs::write(folder.join("cgroup.procs"), process.to_string()).is_ok())
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let begin = Instant::now();
        // busy as long as a process is there
        while self.0.iter().any(|folder| folder.exists() && fs::remove_dir(folder).is_err())
            && begin.elapsed() < PATIENCE
        {
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

#[test]
fn a_control_group_is_watched_with_what_it_counts_itself() {
    let name = format!("tidemark-services-{}", std::process::id());
    let Some(group) = Group::make(&name) else {
        eprintln!("skipped: no control group can be made here; root can where /sys/fs/cgroup is writable");
        return;
    };
    // dropped before the group is
    let own = Service::start("nginx");
    let master = master(&own);
    wait_until("nginx has its worker", || !children(master).is_empty());
    let workers = children(master);
    if ![&[master][..], &workers].concat().into_iter().all(|process| group.takes(process)) {
        eprintln!("skipped: no process can be put into a control group here");
        return;
    }
    let url = &own.url;
    let folder = folder(&format!(
        r#"
system: {{url: "{url}"}}
watch: [{{cgroup: /{name}, as: pages}}]
sessions: {{a: {{steps: [{{GET: /words.txt}}]}}}}
load: {{users: 4, hold: 3s}}
"#
    ));
    let summary = measured(folder.path(), &["run", "s.yaml", "--out", "run"]);
    assert_all_good(&summary);
    let pages = of(&summary, "processes", "name", "pages");
    assert!(pages["cpu_s"].as_f64() > Some(0.0), "{pages}");
    let found = of(&summary, "watched", "name", "pages")["found"].as_str().unwrap();
    let count = 1 + workers.len();
    for said in ["nginx", &format!("{count} processes"), &master.to_string()] {
        assert!(found.contains(said), "no `{said}` in {found}");
    }
}
