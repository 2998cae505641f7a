//! Slots as Redis Cluster has them (its specification: "Keys distribution model" and "Hash tags").

use super::Shards;

/// How many there are.
const SLOTS: usize = 16_384;
/// Of no server.
const NOBODY: u16 = u16::MAX;

/// Which server has which slot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Slots(Box<[u16]>);

impl Slots {
    /// None is anybody's.
    pub fn empty() -> Slots {
        Slots(vec![NOBODY; SLOTS].into())
    }

    /// Equal parts for so many servers.
    pub fn divided(servers: usize) -> Slots {
        Slots((0..SLOTS).map(|slot| (slot * servers / SLOTS) as u16).collect())
    }

    /// As a cluster tells it, by the indices that its servers have here.
    pub fn of(shards: &Shards, index: &dyn Fn(usize) -> Option<usize>) -> Slots {
        let mut slots = Slots::empty();
        for (first, last, server) in &shards.parts {
            if let Some(server) = index(usize::from(*server)) {
                slots.give(*first, *last, server);
            }
        }
        slots
    }

    /// The slots from the first to the last are a server's.
    pub fn give(&mut self, first: u16, last: u16, server: usize) {
        for slot in self.0.iter_mut().take(usize::from(last) + 1).skip(first.into()) {
            *slot = server as u16;
        }
    }

    /// Whose a slot is.
    pub fn server(&self, slot: u16) -> Option<usize> {
        self.0.get(usize::from(slot)).filter(|server| **server != NOBODY).map(|server| (*server).into())
    }

    /// Whether a server has any.
    pub fn has(&self, server: usize) -> bool {
        self.0.iter().any(|one| usize::from(*one) == server)
    }
}

/// The slot of a key. Of `{…}` in it, where that is not empty, only what is between the first `{` and the next `}` counts.
pub(crate) fn slot(key: &[u8]) -> u16 {
    crc16(tag(key)) % SLOTS as u16
}

/// What of a key decides where it is.
pub(crate) fn tag(key: &[u8]) -> &[u8] {
    let Some(open) = memchr::memchr(b'{', key) else { return key };
    match memchr::memchr(b'}', &key[open + 1..]) {
        None | Some(0) => key,
        Some(length) => &key[open + 1..open + 1 + length],
    }
}

/// CRC16 of XMODEM: polynomial 0x1021, from 0, most significant bit first.
fn crc16(bytes: &[u8]) -> u16 {
    bytes.iter().fold(0, |crc: u16, byte| (crc << 8) ^ TABLE[usize::from((crc >> 8) as u8 ^ byte)])
}

const TABLE: [u16; 256] = {
    let mut table = [0; 256];
    let mut index = 0;
    while index < 256 {
        let (mut crc, mut bit) = ((index as u16) << 8, 0);
        while bit < 8 {
            crc = if crc & 0x8000 == 0 { crc << 1 } else { (crc << 1) ^ 0x1021 };
            bit += 1;
        }
        table[index] = crc;
        index += 1;
    }
    table
};

#[cfg(test)]
mod tests {
    use super::*;

    /// The specification's own examples, and what `CLUSTER KEYSLOT` of Redis 7 answers.
    #[test]
    fn slots_are_those_of_redis() {
        assert_eq!(crc16(b"123456789"), 0x31C3);
        for (key, expected) in [("foo", 12182), ("bar", 5061), ("hello", 866), ("", 0), ("key:1", 6657)] {
            assert_eq!(slot(key.as_bytes()), expected, "{key}");
        }
        assert_eq!(slot(b"{user1000}.following"), slot(b"{user1000}.followers"));
        assert_eq!(tag(b"foo{}{bar}"), b"foo{}{bar}");
        assert_eq!(tag(b"foo{{bar}}zap"), b"{bar");
        assert_eq!(tag(b"foo{bar}{zap}"), b"bar");
        assert_eq!(tag(b"foo{bar"), b"foo{bar");
    }

    #[test]
    fn parts_are_equal_and_moved() {
        let mut slots = Slots::divided(3);
        let of =
            |slots: &Slots, server| (0..SLOTS as u16).filter(|s| slots.server(*s) == Some(server)).count();
        assert_eq!([0, 1, 2].map(|server| of(&slots, server)), [5462, 5461, 5461]);
        slots.give(0, 99, 2);
        assert_eq!([0, 2].map(|server| of(&slots, server)), [5362, 5561]);
        assert!(slots.has(2) && !slots.has(3));
        assert_eq!(Slots::empty().server(7), None);
    }
}
