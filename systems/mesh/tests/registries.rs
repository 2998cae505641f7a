//! Members of registries: ours, and where they are installed Eureka and etcd.

use std::io::Read;
use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tidemark_mesh::{Member, Registry, RegistrySystem};
use tidemark_service::{Durability, Options, ReferenceSystem};

use crate::client::Serving;

/// A server of others may take so long to start beside everything else.
const PATIENCE: Duration = Duration::from_secs(240);

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
}

fn addr(port: u16) -> SocketAddr {
    ([127, 0, 0, 1], port).into()
}

/// Waits until the registry knows just these.
async fn knows(registry: &Registry, ports: &[u16]) {
    let begun = Instant::now();
    loop {
        let found = registry.find("toy-service").await;
        let mut known: Vec<u16> = found.iter().flatten().map(SocketAddr::port).collect();
        known.sort_unstable();
        if known == ports && found.is_ok() {
            return;
        }
        assert!(begun.elapsed() < PATIENCE, "{found:?} instead of {ports:?}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// What holds of every registry.
async fn instances_come_and_go(registry: Registry) {
    knows(&registry, &[]).await;
    let member = || Member::new(registry.clone(), "toy-service", Duration::from_secs(3));
    let (stays, leaves, dies) = (member(), member(), member());
    let keeping: Vec<_> = [(&stays, 1), (&leaves, 2), (&dies, 3)]
        .map(|(member, port)| tokio::spawn(member.clone().keep(addr(port))))
        .into();
    knows(&registry, &[1, 2, 3]).await;
    leaves.leave().await;
    knows(&registry, &[1, 3]).await;
    keeping[2].abort();
    knows(&registry, &[1]).await;
    // much longer than a lease
    tokio::time::sleep(Duration::from_secs(7)).await;
    knows(&registry, &[1]).await;
    stays.leave().await;
    knows(&registry, &[]).await;
}

#[test]
fn our_own() {
    let options = Options {
        listen: addr(0),
        durability: Durability::Memory,
        workers: Some(1),
        announce: false,
        ..Options::default()
    };
    let serving = Serving::start(RegistrySystem::bind(options).unwrap());
    let (at, mut client) = (serving.addr, serving.client());
    for path in ["/eureka", "/eureka/v2/"] {
        runtime().block_on(instances_come_and_go(format!("http://{at}{path}").parse().unwrap()));
    }

    // as other clients ask
    let instance = r#"{"instance":{"instanceId":"i","ipAddr":"10.0.0.1","port":{"$":80,"@enabled":"true"},"status":"UP"}}"#;
    let json = [("content-type", "application/json")];
    assert_eq!(client.request("POST", "/eureka/apps/other", &json, instance.as_bytes()).status, 204);
    let all = client.get("/eureka/apps/").json();
    assert_eq!(all["applications"]["apps__hashcode"], "UP_1_");
    assert_eq!(all["applications"]["application"][0]["name"], "OTHER");
    let delta = client.get("/eureka/apps/delta").json();
    assert!(delta.to_string().contains("\"actionType\":\"DELETED\""), "{delta}");
    assert_eq!(client.get("/eureka/v2/apps/OTHER/i").json()["instance"]["ipAddr"], "10.0.0.1");
    assert_eq!(client.request("PUT", "/eureka/apps/other/i?status=UP", &[], b"").status, 200);
    assert_eq!(client.request("PUT", "/eureka/apps/other/j", &[], b"").status, 404);
    assert_eq!(client.request("POST", "/eureka/apps/other", &json, b"{}").status, 400);
    let xml = [("content-type", "application/xml")];
    assert_eq!(client.request("POST", "/eureka/apps/other", &xml, b"<instance/>").status, 415);
    assert_eq!(client.request("DELETE", "/eureka/apps/other/i", &[], b"").status, 200);
    assert_eq!(client.get("/eureka/apps/other").status, 404);
}

/// A server of others; it ends with the test.
struct Server(Child);

impl Server {
    fn start(command: &mut Command) -> Self {
        Server(command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap())
    }

    /// Waits until it answers.
    fn ready(mut self, registry: &Registry) -> Self {
        let begun = Instant::now();
        while runtime().block_on(registry.find("nobody")).is_err() {
            if let Some(status) = self.0.try_wait().unwrap() {
                let mut said = String::new();
                let _ = self.0.stderr.take().unwrap().read_to_string(&mut said);
                panic!("it ended with {status}: {said}");
            }
            assert!(begun.elapsed() < PATIENCE, "it does not answer");
            std::thread::sleep(Duration::from_millis(200));
        }
        self
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn free_port() -> u16 {
    TcpListener::bind(addr(0)).unwrap().local_addr().unwrap().port()
}

/// Needs Debian's package `etcd-server`.
#[test]
fn etcd() {
    if Command::new("etcd").arg("--version").stdout(Stdio::null()).status().is_err() {
        eprintln!("skipped: no etcd here (Debian: apt-get install etcd-server)");
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let [clients, peers] = [(); 2].map(|()| format!("http://127.0.0.1:{}", free_port()));
    let mut command = Command::new("etcd");
    command.args(["--data-dir", dir.path().to_str().unwrap(), "--log-level", "error"]);
    command.args(["--listen-client-urls", &clients, "--advertise-client-urls", &clients]);
    command.args(["--listen-peer-urls", &peers, "--initial-advertise-peer-urls", &peers]);
    command.args(["--initial-cluster", &format!("default={peers}")]);
    let registry: Registry = clients.replace("http", "etcd").parse().unwrap();
    let _server = Server::start(&mut command).ready(&registry);
    runtime().block_on(instances_come_and_go(registry));
}

/// Starts a server; Java compiles it each time.
const EUREKA: &str =
    concat!(env!("CARGO_MANIFEST_DIR"), "/../../crates/lab/src/products/eureka/Registry.java");

/// Where `tests/needs`, or a run that starts a Eureka server, puts the jars.
fn eureka_folder() -> Option<PathBuf> {
    let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let cache = || variable("XDG_CACHE_HOME").or_else(|| Some(variable("HOME")?.join(".cache")));
    let stores = || variable("TIDEMARK_STORES").or_else(|| Some(cache()?.join("tidemark/stores")));
    Some(stores()?.join("eureka-4.3.0")).filter(|folder| folder.is_dir())
}

/// Needs a JDK of Java 17 or later and what `tests/needs` fetches with Maven.
#[test]
fn eureka() {
    let Some(folder) = eureka_folder() else {
        eprintln!("skipped: no Eureka here (tests/needs test fetches it with Maven)");
        return;
    };
    let port = free_port();
    let mut command = Command::new("java");
    let jars = format!("{}/*", folder.display());
    command.args(["-Xmx256m", "-XX:TieredStopAtLevel=1", "-cp", &jars, EUREKA]);
    command.args([format!("--server.port={port}"), "--server.address=127.0.0.1".into()]);
    command.args(["--eureka.client.register-with-eureka=false", "--eureka.client.fetch-registry=false"]);
    // a lease that is over is seen at once
    command.args([
        "--eureka.server.enable-self-preservation=false",
        "--eureka.server.eviction-interval-timer-in-ms=500",
    ]);
    command.arg("--eureka.server.use-read-only-response-cache=false");
    let registry: Registry = format!("http://127.0.0.1:{port}/eureka").parse().unwrap();
    let _server = Server::start(&mut command).ready(&registry);
    runtime().block_on(instances_come_and_go(registry));
}
