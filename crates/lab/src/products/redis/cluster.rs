//! Redis Cluster: nodes that have started each by itself become one, and are asked whether they still are.

use std::io;
use std::time::{Duration, Instant};

use tidemark_scenario::plan::{Cluster, Store};

use super::start::{Connection, connect, field};
use crate::process::Patience;
use crate::stores::launcher::{Identity, NodeAddress};

/// How many slots a cluster has.
const SLOTS: usize = 16_384;
/// How often nodes are asked that are to learn of each other.
const ASK_EVERY: Duration = Duration::from_millis(50);

/// What a reader of the figures must know.
pub fn remarks(cluster: Cluster) -> String {
    let after = cluster.failover_after;
    match cluster.replicas {
        0 => format!(
            "; a cluster without replicas: with a node down its keys are not served, and no others either once that is \
             noticed, after {after:?}"
        ),
        count => format!(
            "; a cluster, each node with {count} of replicas that get what is written after it is acknowledged: a \
             failover, {after:?} after a node fell silent, loses what its replica lacks"
        ),
    }
}

/// Makes nodes that are up, each by itself, a cluster: the first ones of it have even parts of the slots, each of the
/// others is a replica of one of these.
///
/// # Errors
/// Where a node refuses, or they do not learn of each other in time.
pub fn join(
    store: &Store,
    nodes: &[NodeAddress],
    identity: &Identity,
    patience: Patience<'_>,
) -> io::Result<()> {
    let begin = Instant::now();
    let connections = nodes.iter().map(|node| connect(node.listens, &identity.password));
    let mut connections = connections.collect::<io::Result<Vec<_>>>()?;
    let (masters, all) = (store.nodes, nodes.len());
    for (index, connection) in connections.iter_mut().take(masters).enumerate() {
        // each its own epoch from the beginning, or they would first have to settle that
        connection.demand(&["CLUSTER", "SET-CONFIG-EPOCH", &(index + 1).to_string()])?;
        let (first, end) = (index * SLOTS / masters, (index + 1) * SLOTS / masters);
        connection.demand(&["CLUSTER", "ADDSLOTSRANGE", &first.to_string(), &(end - 1).to_string()])?;
    }
    for node in &nodes[1..] {
        let (ip, port) = (node.listens.ip().to_string(), node.listens.port().to_string());
        connections[0].demand(&["CLUSTER", "MEET", &ip, &port])?;
    }
    let is_over = || !patience() || begin.elapsed() > store.ready_within;
    all_know(&mut connections, "nodes", all, &|flags| !flags.contains("handshake"), &is_over)?;
    let ids = connections.iter_mut().take(masters).map(|master| master.demand(&["CLUSTER", "MYID"]));
    let ids = ids.collect::<io::Result<Vec<_>>>()?;
    for (index, replica) in connections[masters..].iter_mut().enumerate() {
        replica.demand(&["CLUSTER", "REPLICATE", &ids[index % masters]])?;
    }
    all_know(&mut connections, "replicas", all - masters, &|flags| flags.contains("slave"), &is_over)
}

/// Waits until each node knows so many of which this holds.
fn all_know(
    connections: &mut [Connection],
    what: &str,
    wanted: usize,
    holds: &dyn Fn(&str) -> bool,
    is_over: &dyn Fn() -> bool,
) -> io::Result<()> {
    for (index, connection) in connections.iter_mut().enumerate() {
        loop {
            let said = connection.demand(&["CLUSTER", "NODES"])?;
            let known = flags(&said).filter(|flags| holds(flags)).count();
            if known == wanted {
                break;
            }
            if is_over() {
                let error = format!("node {} knows {known} of {wanted} {what}", index + 1);
                return Err(io::Error::new(io::ErrorKind::TimedOut, error));
            }
            std::thread::sleep(ASK_EVERY);
        }
    }
    Ok(())
}

/// The flags of each node that `CLUSTER NODES` tells of: `myself,master`.
fn flags(text: &str) -> impl Iterator<Item = &str> {
    text.lines().filter_map(|line| line.split(' ').nth(2))
}

/// That a node takes part: its cluster serves, and where the node is a replica it follows its master. With `all` also
/// that it knows so many nodes; one that comes back later is not to blame for others that are down.
///
/// # Errors
/// What is missing.
pub fn serves(connection: &mut Connection, all: Option<usize>) -> io::Result<()> {
    let about = connection.demand(&["CLUSTER", "INFO"])?;
    // in this order: a former master that comes back learns what it is now before its cluster serves for it
    let info = connection.demand(&["INFO", "replication"])?;
    part(&about, &info, all).map_err(io::Error::other)
}

fn part(about: &str, info: &str, all: Option<usize>) -> Result<(), String> {
    let number = |name| field(about, name).and_then(|text| text.parse::<usize>().ok()).unwrap_or_default();
    let known = number("cluster_known_nodes");
    match all {
        // alone, before it has joined
        None if known <= 1 => return Ok(()),
        Some(all) if known != all => return Err(format!("it knows {known} of {all} nodes")),
        _ => {}
    }
    if field(about, "cluster_state") != Some("ok") {
        let of_others = number("cluster_slots_pfail") + number("cluster_slots_fail");
        return match all {
            None if of_others > 0 => Ok(()),
            _ => Err(format!("its cluster does not serve yet; {of_others} slots are of nodes that are down")),
        };
    }
    match (field(info, "role"), field(info, "master_link_status")) {
        (Some("slave"), link) if link != Some("up") => Err("it does not follow its master yet".into()),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_takes_part_once_its_cluster_serves_and_it_follows() {
        let about = |state: &str, failed: usize, known: usize| {
            format!("cluster_state:{state}\r\ncluster_slots_fail:{failed}\r\ncluster_known_nodes:{known}\r\n")
        };
        let (master, follows) = ("role:master\r\n", "role:slave\r\nmaster_link_status:up\r\n");
        assert!(part(&about("ok", 0, 6), master, Some(6)).is_ok());
        assert!(part(&about("ok", 0, 6), follows, Some(6)).is_ok());
        assert!(part(&about("fail", 0, 1), master, None).is_ok(), "alone it is ready to join");
        assert!(part(&about("fail", 0, 1), master, Some(6)).unwrap_err().contains("1 of 6"));
        assert!(part(&about("fail", 0, 6), master, Some(6)).is_err());
        assert!(part(&about("fail", 0, 6), master, None).is_err(), "what comes back waits until it serves");
        assert!(part(&about("fail", 5461, 6), master, None).is_ok(), "others are down");
        assert!(part(&about("fail", 5461, 6), master, Some(6)).is_err());
        let behind = "role:slave\r\nmaster_link_status:down\r\n";
        for all in [None, Some(6)] {
            assert!(part(&about("ok", 0, 6), behind, all).unwrap_err().contains("follow"));
        }
    }

    #[test]
    fn flags_are_read_of_each_line() {
        let text = "a 127.0.0.1:1@2 myself,master - 0 0 1 connected 0-5\nb 127.0.0.1:3@4,x slave a 0 0 1 connected\n";
        assert_eq!(flags(text).collect::<Vec<_>>(), ["myself,master", "slave"]);
        assert_eq!(flags("").count(), 0);
    }
}
