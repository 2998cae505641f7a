//! The tables of headers: the standard's (RFC 7541, appendix A), and that of a connection.

use std::collections::VecDeque;

use super::OVERHEAD_BYTES;

/// Size of a connection's table, and its bound, as nobody has asked for another.
pub const TABLE_BYTES: usize = 4_096;

/// A header in the table.
#[derive(Debug, Clone, Copy)]
pub(super) struct Entry {
    begin: u32,
    name_bytes: u32,
    bytes: u32,
}

impl Entry {
    fn size(self) -> usize {
        self.bytes as usize + OVERHEAD_BYTES
    }
}

/// A connection's table. The newest stands first.
#[derive(Debug)]
pub(super) struct Table {
    /// Their names and values, the newest last. What stands in front of the oldest is of no more use.
    pub(super) bytes: Vec<u8>,
    pub(super) entries: VecDeque<Entry>,
    pub(super) size: usize,
    most: usize,
}

impl Default for Table {
    fn default() -> Table {
        Table { bytes: Vec::new(), entries: VecDeque::new(), size: 0, most: TABLE_BYTES }
    }
}

impl Table {
    /// The name and value at a place.
    pub fn get(&self, index: usize) -> Option<(&[u8], &[u8])> {
        let entry = self.entries.get(index)?;
        let begin = entry.begin as usize;
        Some(self.bytes[begin..begin + entry.bytes as usize].split_at(entry.name_bytes as usize))
    }

    /// Puts a header in front, as far as there is room once older ones are gone.
    pub fn insert(&mut self, header: &[u8], name_bytes: usize) {
        let size = header.len() + OVERHEAD_BYTES;
        if size > self.most {
            return self.shrink_to(0);
        }
        self.shrink_to(self.most - size);
        if self.bytes.len() + header.len() > TABLE_BYTES {
            self.compact();
        }
        let begin = self.bytes.len() as u32;
        self.bytes.extend_from_slice(header);
        self.entries.push_front(Entry { begin, name_bytes: name_bytes as u32, bytes: header.len() as u32 });
        self.size += size;
        debug_assert!(self.size <= self.most && self.bytes.len() <= TABLE_BYTES);
    }

    /// From now on it has so many bytes at most.
    pub fn resize(&mut self, most: usize) {
        self.most = most;
        self.shrink_to(most);
    }

    /// Takes the oldest away until so many bytes are left at most.
    fn shrink_to(&mut self, size: usize) {
        while self.size > size {
            let Some(oldest) = self.entries.pop_back() else { return };
            self.size -= oldest.size();
        }
    }

    /// Takes away what stands in front of the oldest.
    fn compact(&mut self) {
        let begin = self.entries.back().map_or(self.bytes.len() as u32, |oldest| oldest.begin);
        self.bytes.drain(..begin as usize);
        self.entries.iter_mut().for_each(|entry| entry.begin -= begin);
    }
}

/// The standard's table. Its first place is number 1.
pub(super) static STATIC: [(&str, &str); 61] = [
    (":authority", ""),
    (":method", "GET"),
    (":method", "POST"),
    (":path", "/"),
    (":path", "/index.html"),
    (":scheme", "http"),
    (":scheme", "https"),
    (":status", "200"),
    (":status", "204"),
    (":status", "206"),
    (":status", "304"),
    (":status", "400"),
    (":status", "404"),
    (":status", "500"),
    ("accept-charset", ""),
    ("accept-encoding", "gzip, deflate"),
    ("accept-language", ""),
    ("accept-ranges", ""),
    ("accept", ""),
    ("access-control-allow-origin", ""),
    ("age", ""),
    ("allow", ""),
    ("authorization", ""),
    ("cache-control", ""),
    ("content-disposition", ""),
    ("content-encoding", ""),
    ("content-language", ""),
    ("content-length", ""),
    ("content-location", ""),
    ("content-range", ""),
    ("content-type", ""),
    ("cookie", ""),
    ("date", ""),
    ("etag", ""),
    ("expect", ""),
    ("expires", ""),
    ("from", ""),
    ("host", ""),
    ("if-match", ""),
    ("if-modified-since", ""),
    ("if-none-match", ""),
    ("if-range", ""),
    ("if-unmodified-since", ""),
    ("last-modified", ""),
    ("link", ""),
    ("location", ""),
    ("max-forwards", ""),
    ("proxy-authenticate", ""),
    ("proxy-authorization", ""),
    ("range", ""),
    ("referer", ""),
    ("refresh", ""),
    ("retry-after", ""),
    ("server", ""),
    ("set-cookie", ""),
    ("strict-transport-security", ""),
    ("transfer-encoding", ""),
    ("user-agent", ""),
    ("vary", ""),
    ("via", ""),
    ("www-authenticate", ""),
];
