//! What can be driven can be verified: over TLS and over a unix socket, with the run and again later.

use std::fs;
use std::path::Path;

use crate::program::store::{Store, VERIFY, scenario};
use crate::program::{code, json, run, stderr, tls_config};
use serde_json::Value;

fn ledger(folder: &Path, arguments: &[&str]) -> Value {
    let output = run(folder, arguments);
    let summary = json(&output);
    summary["ledger"].clone()
}

/// A run against a store all of whose writes are there, and the same run again after it has lost one.
fn verified_and_verified_again(folder: &Path, store: &Store, system: &str) {
    scenario(folder, system, VERIFY);
    let first = ledger(folder, &["run", "s.yaml", "--out", "out", "--json", "--quiet"]);
    let count = store.count() as u64;
    assert!(count >= 700, "{count}: {first:#}");
    assert_eq!(
        (&first["found"], &first["lost"], &first["counted"]),
        (&count.into(), &0.into(), &count.into())
    );

    store.kept().contents.pop();
    let output = run(folder, &["verify", "out", "--quiet", "--json"]);
    assert_eq!(code(&output), 1, "{}", stderr(&output));
    let again = json(&output);
    assert_eq!((&again["ledger"]["found"], &again["ledger"]["lost"]), (&(count - 1).into(), &1.into()));
}

#[test]
fn over_tls_with_an_authority_of_ones_own() {
    const NAME: &str = "store.test";
    let made = rcgen::generate_simple_self_signed(vec![NAME.to_owned()]).unwrap();
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("ca.pem"), made.cert.pem()).unwrap();
    let store = Store::start_tls(tls_config(&made.cert, &made.signing_key));
    let system = format!("'{}', tls: {{ca: ca.pem, server name: {NAME}}}", store.url);
    verified_and_verified_again(folder.path(), &store, &system);
}

#[test]
fn over_a_unix_socket() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.sock");
    let store = Store::start_unix(&path);
    let system = format!("'{}', connect to: 'unix:{}'", store.url, path.display());
    verified_and_verified_again(folder.path(), &store, &system);
}
