//! Consistent hashing as `ketama` has it (libmemcached's `MEMCACHED_BEHAVIOR_KETAMA_WEIGHTED` with equal weights, which
//! pylibmc, spymemcached and others share): a client of theirs finds each key where we put it.

use md5::{Digest, Md5};

use super::Server;

/// Points are made four at a time.
const DIGESTS: usize = 40;
/// The port that is left out of a server's name.
const USUAL_PORT: &str = ":11211";

/// Points on a circle, each of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Ring(Vec<(u32, u16)>);

impl Ring {
    /// For these servers.
    pub fn new(servers: &[Server]) -> Ring {
        let mut points = Vec::with_capacity(servers.len() * DIGESTS * 4);
        for (index, server) in servers.iter().enumerate() {
            let name = server.name.strip_suffix(USUAL_PORT).unwrap_or(&server.name);
            for digest in 0..DIGESTS {
                let digest = Md5::digest(format!("{name}-{digest}"));
                let parts = digest.chunks_exact(4).filter_map(|part| part.try_into().ok());
                points.extend(parts.map(|part| (u32::from_le_bytes(part), index as u16)));
            }
        }
        points.sort_unstable();
        Ring(points)
    }

    /// The server of a key: that of the first point from the key's on.
    pub fn server(&self, key: &[u8]) -> usize {
        let digest = Md5::digest(key);
        let hash = u32::from_le_bytes([digest[0], digest[1], digest[2], digest[3]]);
        let next = self.0.partition_point(|(point, _)| *point < hash);
        self.0.get(next).or(self.0.first()).map_or(0, |(_, server)| usize::from(*server))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ring(ports: &[u16]) -> Ring {
        let server = |port: &u16| Server {
            name: format!("127.0.0.1:{port}"),
            address: ([127, 0, 0, 1], *port).into(),
        };
        Ring::new(&ports.iter().map(server).collect::<Vec<_>>())
    }

    #[test]
    fn each_server_has_its_part_and_keeps_it_when_another_comes() {
        let (three, four) = (ring(&[7000, 7001, 7002]), ring(&[7000, 7001, 7002, 7003]));
        let (mut counts, mut moved) = ([0; 3], 0);
        for key in (0..30_000).map(|k| format!("key:{k}")) {
            let server = three.server(key.as_bytes());
            counts[server] += 1;
            let then = four.server(key.as_bytes());
            assert!(then == server || then == 3, "a key moves to the new server only");
            moved += u32::from(then == 3);
        }
        assert!(counts.iter().all(|count| (7_000..13_000).contains(count)), "{counts:?}");
        assert!((5_000..10_000).contains(&moved), "{moved}");
    }

    /// The order of points is the publication's: four of each digest, little-endian.
    #[test]
    fn points_are_those_of_libmemcached() {
        let digest = Md5::digest("127.0.0.1-0");
        let first = u32::from_le_bytes([digest[0], digest[1], digest[2], digest[3]]);
        assert!(ring(&[11211]).0.contains(&(first, 0)), "the usual port is left out");
        assert_eq!(ring(&[7000]).0.len(), 160);
    }
}
