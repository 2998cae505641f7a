//! Redis: its configuration, its command. What it is asked is one line of its own protocol.

use std::fs;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::SocketAddr;
use std::path::Path;

use tidemark_scenario::plan::{Durability, Store};

use super::installed::{Package, usual_folders};
use super::launcher::{Fetch, Identity, Launcher, NodeAddress, NodeSetup, NotReady, Program, dial, text};
use crate::error::LabError;

/// Longest answer that is one, bytes.
const ANSWER_BYTES_MAX: u64 = 64 * 1024;

const PACKAGE: Package = Package { title: "Redis", programs: &["redis-server"], debian: "redis-server" };

/// The file of its data folder that has the password.
const PASSWORD: &str = "password.conf";

/// Redis.
pub struct Redis;

impl Launcher for Redis {
    fn program(&self, _: &Store, _: &mut Fetch<'_>) -> Result<Program, LabError> {
        let folder = PACKAGE.folder(usual_folders())?;
        Ok(Program { title: PACKAGE.title(&folder), folder, java: None })
    }

    fn ports(&self) -> &'static [u16] {
        &[6379]
    }

    fn url(&self, address: SocketAddr, password: &str) -> Option<String> {
        Some(format!("redis://:{password}@{address}"))
    }

    fn remarks(&self, store: &Store) -> String {
        match store.durability {
            Durability::Synced => "appendfsync always: acknowledged when it is on disk",
            Durability::Buffered => {
                "appendfsync everysec: acknowledged before it is on disk, synced every second"
            }
            Durability::Memory => "no append-only file and no snapshots: nothing outlives its process",
        }
        .to_owned()
    }

    fn write(&self, node: &NodeSetup<'_>) -> io::Result<()> {
        fs::create_dir_all(&node.configuration)?;
        fs::write(node.data.join(PASSWORD), format!("requirepass {}\n", node.password))?;
        fs::write(node.configuration.join(file_name(node.identity)), configuration(node))
    }

    fn command(&self, node: &NodeSetup<'_>) -> io::Result<Vec<String>> {
        let file = node.configuration.join(file_name(node.identity));
        Ok(vec![text(&node.program.folder.join(PACKAGE.programs[0])), text(&file)])
    }

    fn ask(&self, place: NodeAddress, identity: &Identity, _: Option<usize>) -> Result<(), NotReady> {
        let Some(said) = info(place.listens, &identity.password)? else {
            return Err(NotReady::Another("a Redis that does not take its password".into()));
        };
        // the name of its file of configuration, which no other has
        let file = field(&said, "config_file").unwrap_or_default();
        let name = Path::new(file).file_stem().map(|name| name.to_string_lossy().into_owned());
        NotReady::unless_same(name.unwrap_or_default(), &identity.name)?;
        match field(&said, "loading") {
            Some("0") => Ok(()),
            _ => Err(io::Error::other("it still loads its data").into()),
        }
    }
}

fn file_name(identity: &str) -> String {
    format!("{identity}.conf")
}

fn configuration(node: &NodeSetup<'_>) -> String {
    let append = match node.store.durability {
        Durability::Synced => "appendonly yes\nappendfsync always\n",
        Durability::Buffered => "appendonly yes\nappendfsync everysec\n",
        Durability::Memory => "appendonly no\n",
    };
    let memory = node.store.memory_bytes.map(|bytes| format!("maxmemory {bytes}\n")).unwrap_or_default();
    format!(
        "bind {}\nport {}\nprotected-mode yes\ndaemonize no\ndir {}\ninclude {}\nsave \"\"\n{append}{memory}",
        node.listen,
        node.ports[0],
        quoted(&node.data),
        quoted(&node.data.join(PASSWORD)),
    )
}

/// A path as its configuration takes any.
fn quoted(path: &Path) -> String {
    format!("\"{}\"", text(path).replace('\\', "\\\\").replace('"', "\\\""))
}

/// What it says of itself; nothing where the password is not its own.
fn info(address: SocketAddr, password: &str) -> io::Result<Option<String>> {
    let mut stream = dial(address)?;
    stream.write_all(format!("AUTH {password}\r\nINFO\r\n").as_bytes())?;
    let mut answer = BufReader::new(stream).take(ANSWER_BYTES_MAX);
    let mut line = String::new();
    answer.read_line(&mut line)?;
    if line.starts_with("-WRONGPASS") || line.starts_with("-ERR") {
        return Ok(None);
    }
    line.clear();
    answer.read_line(&mut line)?;
    let length = line.strip_prefix('$').and_then(|length| length.trim_end().parse::<u64>().ok());
    let length = length.filter(|length| *length < ANSWER_BYTES_MAX);
    let length = length.ok_or_else(|| io::Error::other(format!("it answers {:?}", line.trim_end())))?;
    let mut text = Vec::new();
    answer.take(length).read_to_end(&mut text)?;
    Ok(Some(String::from_utf8_lossy(&text).into_owned()))
}

/// A line `name:value`.
fn field<'t>(text: &'t str, name: &str) -> Option<&'t str> {
    text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).map(str::trim_end)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::net::{IpAddr, TcpListener};
    use tidemark_scenario::plan::Product;

    #[test]
    fn a_node_is_configured_by_what_the_scenario_says() {
        let addresses: [IpAddr; 1] = ["127.0.0.1".parse().unwrap()];
        let text = |durability, memory_bytes| {
            let store = Store { durability, memory_bytes, ..Store::new("cache", Product::Redis) };
            configuration(&NodeSetup {
                store: &store,
                index: 0,
                identity: "tidemark-1",
                password: "p",
                addresses: &addresses,
                listen: addresses[0],
                ports: &[6479],
                configuration: "/run/stores/cache".into(),
                data: "/run/it's \"here\"".into(),
                program: &Program::default(),
            })
        };
        let synced = text(Durability::Synced, Some(16 << 20));
        for line in [
            "bind 127.0.0.1",
            "port 6479",
            "appendfsync always",
            "maxmemory 16777216",
            "dir \"/run/it's \\\"here\\\"\"",
        ] {
            assert!(synced.lines().any(|had| had == line), "{line} in\n{synced}");
        }
        assert!(text(Durability::Buffered, None).contains("appendfsync everysec\n"));
        let memory = text(Durability::Memory, None);
        assert!(memory.contains("appendonly no\n") && !memory.contains("maxmemory"), "{memory}");
    }

    fn ask(answer: Vec<u8>) -> Result<(), NotReady> {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let server = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            stream.read_exact(&mut [0; 13]).unwrap();
            let _ = stream.write_all(&[&b"+OK\r\n"[..], &answer].concat());
        });
        let said = Redis.ask(address.into(), &"ours".into(), None);
        server.join().unwrap();
        said
    }

    #[test]
    fn one_that_loads_or_is_anothers_is_not_ready() {
        let answer = |text: &str| format!("${}\r\n{text}\r\n", text.len()).into_bytes();
        let ours = "config_file:/run/stores/cache/ours.conf\r\n";
        assert!(ask(answer(&format!("{ours}loading:0\r\n"))).is_ok());
        let loads = ask(answer(&format!("{ours}loading:1\r\n"))).unwrap_err().to_string();
        assert_eq!(loads, "it still loads its data");
        let other = ask(answer("config_file:/etc/redis/theirs.conf\r\nloading:0\r\n")).unwrap_err();
        assert!(matches!(&other, NotReady::Another(name) if name == "theirs"), "{other}");
        let odd = ask(b"HTTP/1.1 400 Bad Request\r\n".to_vec()).unwrap_err().to_string();
        assert_eq!(odd, "it answers \"HTTP/1.1 400 Bad Request\"");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(40))]
        #[test]
        fn any_answer_is_taken(bytes in proptest::collection::vec(any::<u8>(), 0..80), sized in any::<bool>()) {
            let head = if sized { b"$40\r\n".to_vec() } else { Vec::new() };
            prop_assert!(ask([head, bytes].concat()).is_err());
        }
    }
}
