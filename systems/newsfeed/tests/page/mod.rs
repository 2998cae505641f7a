//! The pages, as they are served and in a real browser.

use std::path::Path;
use std::process::Command;

use crate::feed::Running;

#[test]
fn the_pages_are_served_with_strict_headers_and_take_only_get() {
    let running = Running::start(&[]);
    let mut client = running.client();
    for path in ["/", "/docs"] {
        let reply = client.get(path);
        assert_eq!((reply.status, reply.header("content-type")), (200, Some("text/html; charset=utf-8")));
        assert!(reply.text().starts_with("<!doctype html>"), "{path}");
        let policy = reply.header("content-security-policy").unwrap();
        for part in ["default-src 'none'; ", "connect-src 'self'; ", "; frame-ancestors 'none'"] {
            assert!(policy.contains(part), "{path} {policy}");
        }
        assert!(!policy.contains("unsafe"), "{path} {policy}");
        assert_eq!(reply.header("x-content-type-options"), Some("nosniff"));
        assert_eq!(reply.header("referrer-policy"), Some("no-referrer"));
        let head = client.request("HEAD", path, &[], b"");
        assert_eq!((head.status, head.body.len()), (200, 0), "{path}");
        let refused = client.request("DELETE", path, &[], b"");
        assert_eq!((refused.status, refused.json()["error"].is_string()), (405, true), "{path}");
    }
    for path in ["/docs/", "/index.html", "/web"] {
        let reply = client.get(path);
        assert_eq!((reply.status, reply.json()["error"].is_string()), (404, true), "{path}");
    }
}

#[test]
fn a_whole_visit_in_a_browser() {
    let running = Running::start(&[]);
    let check = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../web/check-newsfeed.mjs");
    let output = Command::new("node")
        .arg(check)
        .arg(format!("http://{}", running.addr))
        .output()
        .expect("node runs; `make test-needs` installs it");
    assert!(
        output.status.success(),
        "{}\n{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
}
