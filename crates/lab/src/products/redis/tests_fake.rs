//! Products that cannot be had everywhere: their command lines, held against programs that take just those and then are
//! a Redis.

use std::fs::{self, Permissions};
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::time::{Duration, Instant};

use tidemark_scenario::plan::{Durability, Product, Store};

use super::flavour::Flavour;
use super::start::connect;
use super::{DRAGONFLY, GARNET, KEYDB, REDIS};
use crate::child::Spec;
use crate::started::Started as _;
use crate::stores::launcher::{Identity, Launcher as _, NodeSetup, Program};
use crate::stores::node::Node;

/// Takes Dragonfly's flags and no others.
const AS_DRAGONFLY: &str = r#"#!/bin/sh
for word; do
  case $word in
  --flagfile=*) password=$(sed -n 's/^--requirepass=//p' "${word#*=}") ;;
  --bind=*) bind=${word#*=} ;;
  --port=*) port=${word#*=} ;;
  --dir=*) dir=${word#*=} ;;
  --maxmemory=*) memory=${word#*=} ;;
  --proactor_threads=[0-9]*) ;;
  --dbfilename= | --logtostderr | --version_check=false) ;;
  *) echo "Unknown command line flag '$word'" >&2; exit 1 ;;
  esac
done
exec redis-server --bind "$bind" --port "$port" --dir "$dir" --maxmemory "$memory" --requirepass "$password" --save ''
"#;

/// Takes Garnet's file, each of whose settings stands on a line of its own.
const AS_GARNET: &str = r#"#!/bin/sh
[ "$1" = --config-import-path ] && [ $# = 2 ] || exit 1
of() { sed -n "s/^ *\"$1\": \"\{0,1\}\([^\",]*\)\"\{0,1\},\{0,1\}$/\1/p" "$file"; }
file=$2
[ "$(of AuthenticationMode)" = Password ] || exit 1
[ "$(of EnableAOF)" = true ] && [ "$(of Recover)" = true ] && keeps=yes
exec redis-server --bind "$(of Address)" --port "$(of Port)" --dir "$(of CheckpointDir)" --maxmemory "$(of MemorySize)b" \
  --requirepass "$(of Password)" --save '' --appendonly "${keeps:-no}"
"#;

/// Takes KeyDB's directive for threads.
const AS_KEYDB: &str = r#"#!/bin/sh
grep -q '^server-threads 2$' "$1" || exit 1
mkdir -p "$(dirname "$1")/as" && as="$(dirname "$1")/as/$(basename "$1")"
sed 's/^server-threads/io-threads/' "$1" >"$as" && exec redis-server "$as"
"#;

/// Starts a node of the product by a program of this name, and asks it for what it was told.
fn is_started(flavour: &'static Flavour, store: &Store, name: &str, script: &str, said: &[(&str, &str)]) {
    if REDIS.found(&crate::stores::installed::usual_folders()).is_err() {
        eprintln!("skipped: no redis-server");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let (programs, data) = (folder.path().join("bin"), folder.path().join("data"));
    [&programs, &data].into_iter().for_each(|folder| fs::create_dir_all(folder).unwrap());
    fs::write(programs.join(name), script).unwrap();
    fs::set_permissions(programs.join(name), Permissions::from_mode(0o755)).unwrap();
    let addresses: [IpAddr; 1] = ["127.0.0.1".parse().unwrap()];
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let identity = Identity { name: "tidemark-1".into(), password: "secret".into() };
    let (_, found) = flavour.found(std::slice::from_ref(&programs)).unwrap();
    assert_eq!(found, programs);
    let setup = NodeSetup {
        store,
        index: 0,
        identity: &identity.name,
        password: &identity.password,
        addresses: &addresses,
        listen: addresses[0],
        ports: &[port],
        configuration: folder.path().join("stores"),
        data: data.clone(),
        program: &Program { folder: programs, ..Program::default() },
    };
    flavour.write(&setup).unwrap();
    let command = flavour.command(&setup).unwrap();
    assert!(!command.iter().any(|word| word.contains("secret")), "all users see a command: {command:?}");
    let address = SocketAddr::new(addresses[0], port);
    let spec = Spec::new("cache", command, folder.path().join("log"));
    let mut node = Node::new(spec, address, data, flavour, identity, Duration::from_secs(60));
    node.spawn().unwrap();
    node.wait(Instant::now(), Some(1), &|| true).unwrap();
    let mut connection = connect(address, "secret").unwrap();
    for (directive, value) in said {
        let answer = connection.demand(&["CONFIG", "GET", directive]).unwrap();
        assert_eq!(answer, format!("[\"{directive}\",\"{value}\"]"));
    }
    connection.demand(&["SET", "a", "1"]).unwrap();
    node.kill();
    node.restart(&|| true).unwrap();
    let kept = connect(address, "secret").unwrap().demand(&["GET", "a"]).unwrap();
    let expected = if store.durability == Durability::Memory { "" } else { "1" };
    assert_eq!(kept, expected, "{}", flavour.remarks(store));
}

#[test]
fn dragonfly_is_told_by_flags() {
    let usual = Store::new("cache", Product::Dragonfly);
    assert_eq!(usual.durability, Durability::Memory);
    let store = Store { threads: Some(2), memory_bytes: Some(512 << 20), ..usual };
    is_started(&DRAGONFLY, &store, "dragonfly", AS_DRAGONFLY, &[("maxmemory", "536870912")]);
}

#[test]
fn garnet_is_told_by_a_file_and_goes_by_two_names() {
    for (name, durability) in [("GarnetServer", Durability::Buffered), ("garnet-server", Durability::Memory)]
    {
        let usual = Store::new("cache", Product::Garnet);
        let store = Store { durability, memory_bytes: Some(64 << 20), ..usual };
        is_started(&GARNET, &store, name, AS_GARNET, &[("maxmemory", "67108864")]);
    }
}

#[test]
fn keydb_is_told_by_a_file_as_redis_is() {
    let store = Store { threads: Some(2), ..Store::new("cache", Product::Keydb) };
    is_started(&KEYDB, &store, "keydb-server", AS_KEYDB, &[("io-threads", "2"), ("appendfsync", "always")]);
}

#[test]
fn what_is_missing_is_told_with_the_way_out() {
    let nowhere = [Path::new("/nonexistent").to_owned()];
    for (flavour, words) in [
        (&DRAGONFLY, "Dragonfly is not here: dragonfly is neither on the PATH"),
        (&GARNET, "or as garnet-server"),
        (&KEYDB, "Debian has none"),
    ] {
        // where it is after all, there is nothing to tell
        let Err(error) = flavour.found(&nowhere) else { continue };
        let text = error.to_string();
        assert!(text.contains(words) && text.contains("say `url:` of one that runs already"), "{text}");
        assert_eq!(error.exit_status(), 2);
    }
}
