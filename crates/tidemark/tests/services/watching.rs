//! Services that nobody here started, watched beside the load: a master with its workers, and what stands behind.
#![cfg(target_os = "linux")]

use super::{folder, httpbin, measured, nginx, of};

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
