//! nginx as it comes: TLS with a certificate of one's own, HTTP/2, gzip, and connections that it ends.

use std::fs;
use std::process::Command;

use super::{assert_all_good, filled, loaded, measured, once};
use crate::program::{code, run, stderr, stdout};

#[test]
fn a_certificate_that_curl_takes_is_taken() {
    let (url, certificate) = (filled("{secure}/protocol"), filled("{certificate}"));
    let curl = Command::new("curl").args(["-sS", "--cacert", &certificate, &url]).output().unwrap();
    assert!(curl.status.success(), "{}", stderr(&curl));
    let folder = tempfile::tempdir().unwrap();
    for version in ["1.1", "2", "auto"] {
        let hit = ["hit", &url, "--cacert", &certificate, "--http", version, "-n", "50", "-c", "2"];
        let summary = measured(folder.path(), &hit);
        assert_eq!(summary["statuses"]["200"], 50, "{version}: {summary}");
        let spoken = summary["run"]["system"]["spoken"].to_string();
        assert!(spoken.contains("TLS 1."), "{spoken}");
        assert_eq!(spoken.contains("HTTP/2"), version != "1.1", "{spoken}");
    }
    // and not without it
    let output = run(folder.path(), &["hit", &url, "-n", "1", "-q"]);
    assert!(code(&output) == 1 && stderr(&output).contains("--cacert"), "{}", stderr(&output));
}

#[test]
fn a_server_that_asks_for_a_certificate_is_shown_it() {
    let folder = tempfile::tempdir().unwrap();
    let (url, authority) = (filled("{members}/"), filled("{certificate}"));
    let (member, key) = (filled("{folder}/member.pem"), filled("{folder}/member-key.pem"));
    let both = fs::read_to_string(&key).unwrap() + &fs::read_to_string(&member).unwrap();
    let both_file = folder.path().join("both.pem");
    fs::write(&both_file, both).unwrap();
    for version in ["1.1", "2"] {
        let hit = ["hit", &url, "--cacert", &authority, "--http", version, "-n", "20", "-c", "2"];
        for shown in [&["-E", &member, "--key", &key][..], &["--cert", "both.pem"]] {
            let summary = measured(folder.path(), &[&hit[..], shown].concat());
            assert_eq!(summary["statuses"]["200"], 20, "{version} {shown:?}: {summary}");
            assert_all_good(&summary);
        }
        // nginx refuses with a status, and not in the handshake
        let summary = measured(folder.path(), &hit);
        assert_eq!((&summary["failed"], &summary["statuses"]["400"]), (&20.into(), &20.into()), "{version}");
    }
    let text = r#"
system: {url: "{members}", tls: {ca: "{certificate}", certificate: "{folder}/member.pem", key: "{folder}/member-key.pem"}}
targets:
  both: {url: "{members}", http: 2, tls: {ca: "{certificate}", certificate: "BOTH"}}
  nobody: {url: "{members}", tls: {ca: "{certificate}"}}
  stranger: {url: "{members}", tls: {ca: "{certificate}", certificate: "{certificate}", key: "{folder}/key.pem"}}
sessions:
  member:
    steps:
      - {GET: /, check: {body: {equals: hello CN=ann}}}
      - {GET: /, at: both, check: {body: {equals: hello CN=ann}}}
      - {GET: /, at: nobody, check: {status: 400, body: {contains: No required SSL certificate was sent}}}
      - {GET: /, at: stranger, check: {status: 400, body: {contains: The SSL certificate error}}}
load: {users: 1, hold: 1s}
"#;
    once(&text.replace("BOTH", both_file.to_str().unwrap()));
}

/// `tlsAuth` of k6's options.
#[test]
fn a_script_of_k6_shows_its_certificate() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["member.pem", "member-key.pem"] {
        fs::copy(filled(&format!("{{folder}}/{name}")), folder.path().join(name)).unwrap();
    }
    let text = filled(
        r#"import http from "k6/http"; import { check } from "k6";
export const options = {
  iterations: 2, insecureSkipTLSVerify: true, thresholds: { checks: ["rate==1"] },
  tlsAuth: [{ domains: ["DOMAIN"], cert: open("./member.pem"), key: open("./member-key.pem") }],
};
export default () => {
  const res = http.get("{members}/");
  check(res, {
    "it is ann": () => res.body === "hello CN=ann",
    "it came by TLS": () => /^tls1[.][23]$/.test(res.tls_version) && /^TLS_/.test(res.tls_cipher_suite) && res.ocsp.status === "unknown",
  });
};"#,
    );
    let run_for = |text: &str| {
        fs::write(folder.path().join("it.js"), text).unwrap();
        let output = run(folder.path(), &["run", "it.js", "-q"]);
        (code(&output), format!("{}{}", stdout(&output), stderr(&output)))
    };
    // as of k6, a host that no domain names gets the first
    for domain in ["localhost", "*.example.com"] {
        let (status, shown) = run_for(&text.replace("DOMAIN", domain));
        assert_eq!(status, 0, "{domain}: {shown}");
    }
    let (status, shown) =
        run_for(&text.replace("DOMAIN", "localhost").replace("open(\"./member.pem\")", "'PEM'"));
    assert!(status == 2 && shown.contains("what open() returns"), "{shown}");
}

#[test]
fn connections_that_nginx_ends_cost_no_request() {
    let folder = tempfile::tempdir().unwrap();
    let certificate = filled("{certificate}");
    // it ends each after 1,000 requests
    let plain = filled("{nginx}/");
    let summary = measured(folder.path(), &["hit", &plain, "-n", "3500", "-c", "2"]);
    assert_all_good(&summary);
    let secure = filled("{secure}/");
    let secured =
        ["hit", &secure, "--cacert", &certificate, "--http", "2", "-n", "6000", "-c", "2", "-p", "8"];
    assert_all_good(&measured(folder.path(), &secured));
    // more streams than it takes at once
    let many = ["hit", &secure, "--cacert", &certificate, "--http", "2", "-n", "1500", "-c", "1", "-p", "64"];
    assert_all_good(&measured(folder.path(), &many));
}

#[test]
fn over_http_2_bodies_redirects_and_checks_are_the_same() {
    let summary = loaded(
        r#"
system: {url: "{secure}", http: 2, tls: {ca: "{certificate}"}}
defaults: {follow: 3}
sessions:
  reader:
    steps:
      - GET: /words.txt
        headers: {Accept-Encoding: gzip}
        check: {header: {content-encoding: gzip}, body: {contains: "there again: 1000"}}
      - GET: /moved
        check: {status: 200, body: {contains: hello}}
      - GET: /there
        check: {status: 200, body: {contains: "there again: 1000"}}
      - GET: /protocol
        check: {body: {equals: HTTP/2.0}}
      - GET: /nothing
        check: {status: 404}
load: {users: 4, hold: 1s}
limits: {connections: 1, streams: 4}
"#,
    );
    assert_eq!(summary["statuses"]["503"], serde_json::Value::Null);
}
