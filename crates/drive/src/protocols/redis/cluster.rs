//! What a Redis Cluster says of where its keys are: the map of slots, and answers that send a client elsewhere.

use std::net::{IpAddr, SocketAddr};

use serde_json::Value;

use crate::protocols::sharding::{Redirect, Server, Sharding, Shards};

/// Most servers that a map may name.
const SERVERS_MAX: usize = 1_024;

/// Reads the reply to `CLUSTER SLOTS`, as JSON. `asked`: who was asked, whose address stands where the map has none.
/// `resolve`: looks a name up.
///
/// # Errors
/// What is wrong with it, in words.
pub(crate) fn read_map(
    reply: &[u8],
    asked: IpAddr,
    resolve: &dyn Fn(&str, u16) -> Option<SocketAddr>,
) -> Result<Shards, String> {
    let no_map = || "it is no map of slots".to_owned();
    let rows: Vec<Value> = serde_json::from_slice(reply).map_err(|_| no_map())?;
    let mut shards = Shards::new(Vec::new(), Sharding::Cluster);
    let mut replicas = Vec::new();
    for row in &rows {
        let [first, last, nodes @ ..] = row.as_array().ok_or_else(no_map)?.as_slice() else {
            return Err(no_map());
        };
        let slot = |value: &Value| u16::try_from(value.as_u64()?).ok().filter(|slot| *slot < 16_384);
        let (first, last) = slot(first).zip(slot(last)).ok_or_else(no_map)?;
        for (place, node) in nodes.iter().enumerate() {
            let Some(server) = server(node, asked, resolve) else {
                // a replica that nobody knows how to reach does no harm
                if place > 0 {
                    continue;
                }
                return Err(format!("it names a server that cannot be found: {node}"));
            };
            if place > 0 {
                replicas.push(server);
                continue;
            }
            let known = shards.servers.iter().position(|one| one.address == server.address);
            let index = known.unwrap_or_else(|| {
                shards.servers.push(server);
                shards.servers.len() - 1
            });
            if index == SERVERS_MAX {
                return Err(format!("it names more than {SERVERS_MAX} servers"));
            }
            shards.parts.push((first, last, index as u16));
        }
    }
    for replica in replicas {
        let is_new = || shards.servers.iter().all(|one| one.address != replica.address);
        if shards.servers.len() < SERVERS_MAX && is_new() {
            shards.servers.push(replica);
        }
    }
    match shards.servers.len() {
        0 => Err("no slot of the cluster has a server yet".into()),
        _ => Ok(shards),
    }
}

/// `["127.0.0.1", 7000, "id", …]`.
fn server(node: &Value, asked: IpAddr, resolve: &dyn Fn(&str, u16) -> Option<SocketAddr>) -> Option<Server> {
    let (host, port) = (node.get(0)?, u16::try_from(node.get(1)?.as_u64()?).ok()?);
    let (name, address) = match host.as_str() {
        None | Some("") => (None, SocketAddr::new(asked, port)),
        Some("?") => return None,
        Some(host) => match host.parse() {
            Ok(address) => (None, SocketAddr::new(address, port)),
            Err(_) => (Some(format!("{host}:{port}")), resolve(host, port)?),
        },
    };
    Some(Server { name: name.unwrap_or_else(|| address.to_string()), address })
}

/// What an error says of another server: `MOVED 3999 127.0.0.1:6381`, `ASK 3999 127.0.0.1:6381`.
pub(crate) fn read_redirect(words: &[u8]) -> Option<Redirect> {
    let text = std::str::from_utf8(words).ok()?;
    let mut words = text.split(' ');
    let is_asking = match words.next()? {
        "MOVED" => false,
        "ASK" => true,
        _ => return None,
    };
    let slot = words.next()?.parse().ok().filter(|slot| *slot < 16_384)?;
    let (host, port) = words.next()?.rsplit_once(':')?;
    let host = host.trim_matches(['[', ']']).to_owned();
    Some(Redirect { is_asking, slot, host, port: port.parse().ok()? })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const ASKED: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);

    fn map(text: &str) -> Result<Shards, String> {
        read_map(text.as_bytes(), ASKED, &|host, port| {
            (host == "known").then(|| ([10, 0, 0, 1], port).into())
        })
    }

    #[test]
    fn a_map_is_read_masters_first() {
        let text = r#"[[0,99,["127.0.0.1",7000,"a",[]],["127.0.0.1",7003,"d"]],
            [100,16383,["",7001,"b"],["?",0,"x"]],[50,60,["127.0.0.1",7000,"a"]]]"#;
        let shards = map(text).unwrap();
        let names: Vec<&str> = shards.servers.iter().map(|server| server.name.as_str()).collect();
        assert_eq!(names, ["127.0.0.1:7000", "127.0.0.1:7001", "127.0.0.1:7003"]);
        assert_eq!(shards.parts, [(0, 99, 0), (100, 16383, 1), (50, 60, 0)]);
        assert_eq!((shards.active(), shards.room()), (2, 11));
        assert_eq!(map(r#"[[0,1,["known",7000]]]"#).unwrap().servers[0].name, "known:7000");
    }

    #[test]
    fn what_is_no_map_is_an_error() {
        for (text, reason) in [
            ("[]", "no slot"),
            ("[[0,16384,[\"::1\",1]]]", "no map"),
            ("[[0]]", "no map"),
            ("{}", "no map"),
            ("[[0,1,[\"nobody\",7000]]]", "cannot be found"),
        ] {
            assert!(map(text).unwrap_err().contains(reason), "{text}");
        }
    }

    #[test]
    fn redirects_are_read_and_other_errors_are_none() {
        let read = |text: &str| read_redirect(text.as_bytes());
        let moved = Redirect { is_asking: false, slot: 3999, host: "127.0.0.1".into(), port: 6381 };
        assert_eq!(read("MOVED 3999 127.0.0.1:6381"), Some(moved.clone()));
        assert_eq!(read("ASK 3999 127.0.0.1:6381"), Some(Redirect { is_asking: true, ..moved.clone() }));
        assert_eq!(read("MOVED 3999 :6381"), Some(Redirect { host: String::new(), ..moved }));
        assert_eq!(read("MOVED 1 [::1]:6381").unwrap().host, "::1");
        assert_eq!(read("MOVED 1 ::1:6381").unwrap().host, "::1");
        assert_eq!(read("MOVED 1 name:1").unwrap().host, "name");
        for text in ["ERR unknown", "MOVED", "MOVED 16384 127.0.0.1:1", "MOVED 1 127.0.0.1", ""] {
            assert_eq!(read(text), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn any_words_are_taken(text in "(MOVED|ASK) ?[0-9]{0,6} ?[0-9.:\\[\\]a-z]{0,20}", json in "[\\[\\],0-9\"a]{0,40}") {
            let _ = read_redirect(text.as_bytes());
            let _ = map(&json);
        }
    }
}
