//! The scenario's `keys`.

use crate::grammar::record::Kind;
use crate::keys::KEYS_MAX;
use crate::language::Keyspace;
use crate::plan::KeysPlan;
use crate::reader::Reader;
use crate::yaml::Node;

/// Reads all of them.
pub(super) fn read(node: Option<&Node>, reader: &Reader<'_>) -> Vec<KeysPlan> {
    let mut all = Vec::new();
    for (name, node) in node.map(Node::entries).unwrap_or_default() {
        let (Some(name), Some(Keyspace { most, loaded, .. })) = (name.text(), Keyspace::read(node, reader))
        else {
            continue;
        };
        // what could not be read is kept, so that its users are not reported, too
        let count = most.value.or_else(|| reader.whole(node, 1)).unwrap_or(1);
        if count > KEYS_MAX {
            reader
                .sink
                .error(most.node().unwrap_or(node), format!("{count} is too large; at most {KEYS_MAX}"));
        }
        let there = loaded.value.unwrap_or(0);
        if there > count {
            loaded.error(reader.sink, format!("{there} are more than there can be, {count}"));
        }
        all.push(KeysPlan { name: name.to_owned(), most: count.min(KEYS_MAX), loaded: there });
    }
    all
}
